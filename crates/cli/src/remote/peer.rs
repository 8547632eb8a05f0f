//! One host of `record --on`: a thread reads its stream and copies its session.

use std::io::{BufReader, stderr, stdout};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use fathom_session::{Frame, Pass, Received, Receiver, TransferError, parse};

use super::host;
use super::lines::{self, Lines};
use super::{Answer, MAX_BYTES, Request, ask, pull};
use crate::args::Host;

/// How long a helper may take to remove a session that was copied.
const PATIENCE: Duration = Duration::from_secs(10);
const TURN: Duration = Duration::from_millis(20);

/// News of the host with this place in the list.
#[derive(Debug)]
pub enum Event {
    /// It can begin.
    Ready(usize),
    /// It is over.
    Over(usize, Box<Outcome>),
}

/// The end of a host's recording.
#[derive(Debug)]
pub struct Outcome {
    /// The command's exit status, once it is known.
    pub status: Option<u8>,
    /// Its session there, once it is known.
    pub there: Option<String>,
    /// The copy, `None` if nothing was recorded.
    pub copy: Result<Option<Received>, TransferError>,
}

/// A connection.
#[derive(Debug)]
pub struct Peer {
    /// The host.
    pub host: Host,
    /// Directory of the copy.
    pub to: PathBuf,
    child: Child,
    stdin: Option<ChildStdin>,
}

impl Peer {
    /// Asks the helper `child` of a host to record into `options.0`, and starts the thread that listens
    /// to it. `place`: its number, the host, and the directory of the copy.
    pub fn start(
        place: (usize, Host, PathBuf),
        mut child: Child,
        options: (&Path, bool),
        arguments: &[Vec<u8>],
        events: Sender<Event>,
    ) -> Self {
        let ((index, host, to), (dir, force)) = (place, options);
        let mut peer_stdin = child.stdin.take();
        if let Some(stdin) = &mut peer_stdin {
            let request = Request::Record {
                arguments: arguments.to_vec(),
                dir: dir.as_os_str().as_bytes().to_vec(),
            };
            // A connection that has ended is noticed when its answer is read.
            let _ = ask(stdin, &request);
        }
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let (name, copy) = (host.name().to_owned(), to.clone());
        std::thread::spawn(move || {
            let shown = name.clone();
            let errors = err.map(|err| std::thread::spawn(move || lines::print(&shown, err)));
            let mut outcome = Outcome {
                status: None,
                there: None,
                copy: Err(TransferError::Cut),
            };
            if let Some(out) = out {
                outcome.copy = listen(out, index, &name, (&copy, force), &events, &mut outcome);
            }
            if let (Some(errors), Err(_)) = (errors, &outcome.copy) {
                // They say more than the error.
                let _ = errors.join();
            }
            let _ = events.send(Event::Over(index, Box::new(outcome)));
        });
        Self {
            host,
            to,
            child,
            stdin: peer_stdin,
        }
    }

    /// Asks for something; a connection that has ended is noticed by its thread.
    pub fn ask(&mut self, request: &Request) {
        if let Some(stdin) = &mut self.stdin
            && ask(stdin, request).is_err()
        {
            self.stdin = None;
        }
    }

    /// Ends the connection. Returns why it had ended already, if so.
    pub fn end(mut self) -> Option<String> {
        drop(self.stdin.take());
        let since = Instant::now();
        while since.elapsed() < PATIENCE {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return host::because(&mut self.child);
            }
            std::thread::sleep(TURN);
        }
        self.kill();
        None
    }

    /// Ends it at once.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads what the helper says until the session is copied.
fn listen(
    out: ChildStdout,
    index: usize,
    name: &str,
    (to, force): (&Path, bool),
    events: &Sender<Event>,
    outcome: &mut Outcome,
) -> Result<Option<Received>, TransferError> {
    let mut frames = pull::open(BufReader::with_capacity(1 << 16, out), name)?;
    let (mut printed, mut errors) = (Lines::of(name), Lines::of(name));
    let follows = loop {
        match frames.frame()? {
            Frame::Out(bytes) => printed.push(&bytes, &mut stdout()),
            Frame::Err(bytes) => errors.push(&bytes, &mut stderr()),
            Frame::Text(text) => match parse(&text)? {
                Answer::Ready { session } => {
                    outcome.there = Some(session);
                    let _ = events.send(Event::Ready(index));
                }
                Answer::Ended { status, session } => {
                    outcome.status = Some(status);
                    break session;
                }
            },
            Frame::Data(_) => return Err(TransferError::Refused("data of no file".to_owned())),
        }
    };
    printed.finish(&mut stdout());
    errors.finish(&mut stderr());
    if !follows {
        return Ok(None);
    }
    let mut copy = Receiver::begin(frames, to, force, MAX_BYTES)?;
    while copy.pass()? != Pass::Last {}
    copy.finish().map(Some)
}
