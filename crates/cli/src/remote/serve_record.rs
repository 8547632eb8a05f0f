//! A recording that another host asked for. It ends when the connection does, and its session stays
//! until the other side has it.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fathom_session::{Frame, discard, send};
use rustix::process::{Pid, Signal, kill_process};

use super::serve::Stream;
use super::{Answer, Request, SILENCE};
use crate::exit::Failure;
use crate::record::held;

/// How often the recorder is looked at.
const TURN: Duration = Duration::from_millis(20);
/// How long processes that the command left behind may hold its output open.
const REST: Duration = Duration::from_secs(1);
/// When a recorder whose connection is gone gets the next signal.
const AGAIN: Duration = Duration::from_secs(10);
/// Bytes of output in one frame.
const BLOCK: usize = 1 << 15;

/// The stream, until the output of the command is over.
type Shared = Arc<Mutex<Option<Stream>>>;

/// Records with `arguments` into a session in `dir` and sends it.
pub fn run(
    arguments: Vec<Vec<u8>>,
    dir: &Path,
    stream: Stream,
    requests: &Receiver<Request>,
) -> Result<u8, Failure> {
    let number = RandomState::new().build_hasher().finish();
    let session = dir.join(format!("fathom-{number:016x}.fathom"));
    let (gate, theirs) = UnixStream::pair().map_err(Failure::recording)?;
    let mut child = Command::new(std::env::current_exe().map_err(Failure::recording)?)
        .args(["record", "--held", "-o"])
        .arg(&session)
        .args(arguments.into_iter().map(std::ffi::OsString::from_vec))
        .stdin(OwnedFd::from(theirs))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(Failure::recording)?;
    let stream: Shared = Arc::new(Mutex::new(Some(stream)));
    let out = child
        .stdout
        .take()
        .map(|from| pass_on(from, Frame::Out, &stream));
    let err = child
        .stderr
        .take()
        .map(|from| pass_on(from, Frame::Err, &stream));
    announce(&gate, &session, &stream).map_err(Failure::recording)?;
    let (status, lost) = supervise(&mut child, gate, requests).map_err(Failure::recording)?;

    let since = Instant::now();
    let threads: Vec<JoinHandle<()>> = out.into_iter().chain(err).collect();
    while !threads.iter().all(JoinHandle::is_finished) && since.elapsed() < REST {
        std::thread::sleep(TURN);
    }
    let stream = stream.lock().unwrap_or_else(PoisonError::into_inner).take();
    let (Some(mut stream), false) = (stream, lost) else {
        return Ok(125);
    };
    let there = session.join("session.json").exists();
    let code = status.code().or(status.signal().map(|signal| 128 + signal));
    let ended = Answer::Ended {
        status: code.and_then(|code| u8::try_from(code).ok()).unwrap_or(125),
        session: there,
    };
    stream.message(&ended).map_err(Failure::input)?;
    if there {
        send(&session, None, &mut stream).map_err(Failure::input)?;
        // Without an answer the session stays.
        loop {
            match requests.recv_timeout(SILENCE) {
                Ok(Request::Done) => break discard(&session).map_err(Failure::input)?,
                Ok(_) => {}
                Err(_) => break,
            }
        }
    }
    Ok(0)
}

/// Sends the output of the command on.
fn pass_on(
    mut from: impl Read + Send + 'static,
    frame: fn(Vec<u8>) -> Frame,
    stream: &Shared,
) -> JoinHandle<()> {
    let stream = stream.clone();
    std::thread::spawn(move || {
        let mut block = vec![0; BLOCK];
        // Once the stream is over, output is read and dropped: the command must not stop at it.
        while let Ok(n) = from.read(&mut block) {
            let Some(bytes) = block.get(..n).filter(|bytes| !bytes.is_empty()) else {
                break;
            };
            if let Some(stream) = &mut *stream.lock().unwrap_or_else(PoisonError::into_inner) {
                // The end of the connection is noticed at standard input.
                let _ = stream.frame(&frame(bytes.to_vec()));
                let _ = stream.flush();
            }
        }
    })
}

/// Says when the recorder could begin.
fn announce(gate: &UnixStream, session: &Path, stream: &Shared) -> std::io::Result<()> {
    let (gate, stream) = (gate.try_clone()?, stream.clone());
    let session = session.to_string_lossy().into_owned();
    std::thread::spawn(move || {
        let mut line = String::new();
        let ready = BufReader::new(gate).read_line(&mut line).is_ok() && line == held::READY;
        if ready && let Some(stream) = &mut *stream.lock().unwrap_or_else(PoisonError::into_inner) {
            let _ = stream.message(&Answer::Ready { session });
        }
    });
    Ok(())
}

/// Passes requests on until the recorder has ended; its status, and whether the connection is gone.
fn supervise(
    child: &mut Child,
    gate: UnixStream,
    requests: &Receiver<Request>,
) -> std::io::Result<(ExitStatus, bool)> {
    let mut gate = Some(gate);
    let mut heard = Instant::now();
    let mut lost: Option<Instant> = None;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok((status, lost.is_some()));
        }
        let gone = match requests.recv_timeout(TURN) {
            Ok(request) => {
                heard = Instant::now();
                match request {
                    Request::Go => {
                        if let Some(mut gate) = gate.take() {
                            // A recorder that has ended is noticed above.
                            let _ = gate.write_all(held::GO.as_bytes());
                        }
                    }
                    Request::Stop => end(child, &mut gate),
                    _ => {}
                }
                false
            }
            Err(RecvTimeoutError::Timeout) => heard.elapsed() > SILENCE,
            Err(RecvTimeoutError::Disconnected) => {
                std::thread::sleep(TURN);
                true
            }
        };
        // A command that ignores the first signal is left to itself at the second.
        if gone && lost.is_none_or(|at| at.elapsed() > AGAIN) {
            lost = Some(Instant::now());
            end(child, &mut gate);
        }
    }
}

/// Has the recorder end: by a signal, or before it has begun by closing the gate.
fn end(child: &Child, gate: &mut Option<UnixStream>) {
    match gate.take() {
        Some(gate) => {
            let _ = gate.shutdown(std::net::Shutdown::Both);
        }
        None => {
            // Not waited for yet, so that the number is still the recorder's.
            let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
            let _ = pid.map(|pid| kill_process(pid, Signal::INT));
        }
    }
}
