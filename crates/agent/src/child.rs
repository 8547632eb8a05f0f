//! fathom's own commands as processes, so that neither their memory nor their waits touch the
//! recording.

use std::ffi::OsString;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::JoinHandle;

/// Its priority: all other programs go first.
const NICE: i32 = 10;
/// Bytes of its message that are passed on.
const MESSAGE: u64 = 1000;
/// Bytes of its answer at most.
const ANSWER: u64 = 1 << 20;

/// How the process ended.
#[derive(Debug)]
pub enum Outcome {
    /// Successfully, with this answer.
    Done(Vec<u8>),
    /// It was stopped.
    Stopped,
    /// It failed, for this reason.
    Failed(String),
}

/// Runs `program`. `stopped` waits a moment, and returns true to end the process.
pub fn run(program: &Path, arguments: &[OsString], stopped: &mut dyn FnMut() -> bool) -> Outcome {
    let child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) => return Outcome::Failed(error.to_string()),
    };
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::setpriority_process(Some(pid), NICE).ok();
    let answer = child.stdout.take().map(|out| read(out, ANSWER + 1));
    let said = child.stderr.take().map(|err| read(err, MESSAGE));
    let ended = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) => {}
            Err(error) => return Outcome::Failed(error.to_string()),
        }
        if stopped() {
            child.kill().ok();
            child.wait().ok();
            return Outcome::Stopped;
        }
    };
    let text = |thread: Option<JoinHandle<Vec<u8>>>| {
        let text = thread.and_then(|thread| thread.join().ok());
        text.unwrap_or_default()
    };
    if !ended.success() {
        let text = text(said);
        let text = String::from_utf8_lossy(&text);
        let line = text.lines().find(|line| !line.trim().is_empty());
        let line = line.unwrap_or("it said nothing");
        return Outcome::Failed(line.strip_prefix("fathom: ").unwrap_or(line).to_owned());
    }
    let answer = text(answer);
    match answer.len() as u64 > ANSWER {
        true => Outcome::Failed(format!("it answered more than {ANSWER} bytes")),
        false => Outcome::Done(answer),
    }
}

fn read(from: impl Read + Send + 'static, most: u64) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut from = from;
        let mut text = Vec::new();
        (&mut from).take(most).read_to_end(&mut text).ok();
        // So that it is never kept from writing.
        std::io::copy(&mut from, &mut std::io::sink()).ok();
        text
    })
}
