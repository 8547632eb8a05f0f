//! Runs of `fathom record`.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::environment::{Scratch, fathom};

/// After this long a recorder that has not ended is killed and its test fails.
/// Emulated machines are slow.
const PATIENCE: Duration = Duration::from_secs(600);
/// Conditions often run a query, which takes a processor that the recorder could use.
const LONGEST_PAUSE: Duration = Duration::from_millis(200);

/// A recording to be made.
pub struct Record {
    session: PathBuf,
    output: PathBuf,
    args: Vec<OsString>,
    command: Vec<OsString>,
    truth: PathBuf,
    envs: Vec<(OsString, OsString)>,
    wrapper: Vec<OsString>,
    interactive: bool,
}

impl Record {
    /// A recording into a session of `scratch`.
    pub fn new(scratch: &Scratch) -> Record {
        Record::named(scratch, "session")
    }

    /// The same, for tests that make several.
    pub fn named(scratch: &Scratch, name: &str) -> Record {
        Record {
            session: scratch.session(name),
            output: scratch.root().join(name),
            args: Vec::new(),
            command: Vec::new(),
            truth: scratch.truth(),
            envs: Vec::new(),
            wrapper: Vec::new(),
            interactive: false,
        }
    }

    /// Adds options of `fathom record`.
    pub fn options<S: AsRef<OsStr>>(mut self, options: impl IntoIterator<Item = S>) -> Record {
        self.args
            .extend(options.into_iter().map(|o| o.as_ref().to_owned()));
        self
    }

    /// The command to trace.
    pub fn command<S: AsRef<OsStr>>(mut self, command: impl IntoIterator<Item = S>) -> Record {
        self.command
            .extend(command.into_iter().map(|c| c.as_ref().to_owned()));
        self
    }

    /// Sets an environment variable of the command.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Record {
        self.envs.push((name.into(), value.as_ref().to_owned()));
        self
    }

    /// Runs the recorder by this command, which is to replace itself by it.
    pub fn by<S: AsRef<OsStr>>(mut self, wrapper: impl IntoIterator<Item = S>) -> Record {
        self.wrapper
            .extend(wrapper.into_iter().map(|w| w.as_ref().to_owned()));
        self
    }

    /// Keeps standard input and output open for the test to talk to the command.
    pub fn interactive(mut self) -> Record {
        self.interactive = true;
        self
    }

    /// Starts it.
    pub fn spawn(self) -> Running {
        let mut line = self.wrapper.clone();
        line.push(fathom().into());
        let mut command = Command::new(&line[0]);
        command
            .args(&line[1..])
            .arg("record")
            .arg("-o")
            .arg(&self.session)
            .args(&self.args);
        if !self.command.is_empty() {
            command.arg("--").args(&self.command);
        }
        // Cargo's own libraries are looked for by every program that it starts; what is
        // recorded would not be what the program does elsewhere.
        command.env_remove("LD_LIBRARY_PATH");
        command.env("TRUTH_DIR", &self.truth).envs(self.envs);
        let [out, err] = ["stdout", "stderr"].map(|name| self.output.with_extension(name));
        command.stderr(File::create(&err).expect("file for standard error"));
        if self.interactive {
            command.stdin(Stdio::piped()).stdout(Stdio::piped());
        } else {
            command.stdin(Stdio::null());
            command.stdout(File::create(&out).expect("file for standard output"));
        }
        let mut child = command.spawn().expect("fathom record");
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().map(BufReader::new);
        Running {
            child,
            stdin,
            stdout,
            session: self.session,
            out,
            err,
            done: false,
        }
    }

    /// Makes it.
    pub fn run(self) -> Recording {
        self.spawn().wait()
    }
}

/// A recording that is being made. Its recorder is killed when a test fails.
pub struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: Option<BufReader<ChildStdout>>,
    session: PathBuf,
    out: PathBuf,
    err: PathBuf,
    done: bool,
}

impl Running {
    /// Process id of the recorder.
    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Where it records.
    pub fn session(&self) -> PathBuf {
        self.session.clone()
    }

    /// Writes to the standard input of an interactive command.
    pub fn say(&mut self, text: &str) {
        let stdin = self.stdin.as_mut().expect("interactive");
        stdin.write_all(text.as_bytes()).expect("standard input");
        stdin.flush().expect("standard input");
    }

    /// Closes the standard input of an interactive command.
    pub fn say_no_more(&mut self) {
        self.stdin = None;
    }

    /// The next line that an interactive command prints.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout
            .as_mut()
            .expect("interactive")
            .read_line(&mut line)
            .expect("standard output");
        assert!(
            line.ends_with('\n'),
            "the command ended early: {line:?}\n{}",
            self.errors()
        );
        line.trim_end().to_owned()
    }

    /// What the recorder has written to standard error so far.
    pub fn errors(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.err).unwrap_or_default()).into_owned()
    }

    /// Sends a signal to the recorder only.
    pub fn signal(&self, signal: Signal) {
        self.try_signal(signal).expect("signal");
    }

    /// The same when the recorder may have ended by itself.
    ///
    /// # Errors
    /// Those of kill(2).
    pub fn try_signal(&self, signal: Signal) -> rustix::io::Result<()> {
        // Not waited for yet, so that the number is still the recorder's.
        kill_process(Pid::from_raw(self.pid()).expect("process id"), signal)
    }

    /// Waits until `condition` holds; the recorder must live on meanwhile.
    pub fn until(&mut self, what: &str, mut condition: impl FnMut() -> bool) {
        let start = Instant::now();
        let mut pause = Duration::from_millis(20);
        while !condition() {
            let ended = self.child.try_wait().expect("state of the recorder");
            assert!(
                ended.is_none(),
                "recorder ended before {what}: {ended:?}\n{}",
                self.errors()
            );
            assert!(
                start.elapsed() < PATIENCE,
                "no sign of: {what}\n{}",
                self.errors()
            );
            std::thread::sleep(pause);
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// The recorder was killed: returns what the command still prints, which
    /// lives on.
    pub fn end_after_kill(mut self) -> BufReader<ChildStdout> {
        let status = self.child.wait().expect("state of the recorder");
        self.done = true;
        assert!(status.signal().is_some(), "not killed: {status}");
        self.stdout.take().expect("interactive")
    }

    /// Waits for the end of a program that says `ready`, floods the rings when it is spoken
    /// to and says `done`: it does so while the recorder stands still.
    pub fn flooded(mut self) -> Recording {
        assert_eq!(self.line(), "ready");
        self.signal(Signal::STOP);
        self.say("\n");
        assert_eq!(self.line(), "done");
        self.signal(Signal::CONT);
        self.wait()
    }

    /// The recorder was killed: waits until it has ended.
    pub fn killed(mut self) {
        let status = self.child.wait().expect("state of the recorder");
        self.done = true;
        assert!(status.signal().is_some(), "not killed: {status}");
    }

    /// Waits for its end.
    pub fn wait(mut self) -> Recording {
        drop(self.stdin.take());
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("state of the recorder") {
                break status;
            }
            assert!(
                start.elapsed() < PATIENCE,
                "the recorder does not end:\n{}",
                self.errors()
            );
            std::thread::sleep(Duration::from_millis(5));
        };
        self.done = true;
        let stdout = match self.stdout.take() {
            Some(mut pipe) => {
                let mut rest = Vec::new();
                std::io::Read::read_to_end(&mut pipe, &mut rest).expect("standard output");
                rest
            }
            None => fs::read(&self.out).unwrap_or_default(),
        };
        Recording {
            session: self.session.clone(),
            status,
            stdout,
            stderr: self.errors(),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.done {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// A recording that has ended.
pub struct Recording {
    /// Directory of the session.
    pub session: PathBuf,
    /// How the recorder ended.
    pub status: ExitStatus,
    /// Standard output of recorder and command.
    pub stdout: Vec<u8>,
    /// Standard error of both.
    pub stderr: String,
}

impl Recording {
    /// Fails the test unless the recorder's exit status is `status`.
    pub fn must_exit(self, status: i32) -> Recording {
        assert_eq!(
            self.status.code(),
            Some(status),
            "signal {:?}, standard error:\n{}",
            self.status.signal(),
            self.stderr
        );
        self
    }

    /// Standard output as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }
}
