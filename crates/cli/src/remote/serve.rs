//! `fathom remote`: does on this host what another fathom asks for on standard input.

use std::io::{self, BufRead, BufWriter, IsTerminal, Read, Stdout};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use anyhow::anyhow;
use fathom_session::{FrameWriter, send};

use super::{Request, path, serve_record};
use crate::exit::Failure;

/// The longest request, bytes: the kernel limits arguments to less.
const MAX_REQUEST: u64 = 16 << 20;
/// How often a session that is being recorded is looked at.
const FOLLOW: Duration = Duration::from_millis(500);

/// The stream to the other side.
pub type Stream = FrameWriter<BufWriter<Stdout>>;

/// Runs `remote` and returns the exit status.
pub fn run() -> Result<u8, Failure> {
    if io::stdout().is_terminal() {
        return Err(Failure::input(anyhow!(
            "remote is what `fathom pull` and `fathom record --on` start on other hosts"
        )));
    }
    let stream = FrameWriter::begin(BufWriter::with_capacity(1 << 16, io::stdout()));
    let mut stream = stream.map_err(Failure::input)?;
    let first = read(&mut io::stdin().lock()).map_err(Failure::input)?;
    match first {
        Some(Request::Send { dir, follow }) => {
            let follow = follow.then_some(FOLLOW);
            send(&path(dir), follow, &mut stream).map_err(Failure::input)?;
            Ok(0)
        }
        Some(Request::Record { arguments, dir }) => {
            serve_record::run(arguments, &path(dir), stream, &requests())
        }
        _ => Err(Failure::input(anyhow!("there is no request"))),
    }
}

/// The next request; `None` at the end.
fn read(from: &mut impl BufRead) -> io::Result<Option<Request>> {
    let mut line = Vec::new();
    from.take(MAX_REQUEST).read_until(b'\n', &mut line)?;
    match line.is_empty() {
        true => Ok(None),
        false => Ok(Some(serde_json::from_slice(&line)?)),
    }
}

/// Requests as they come, until the connection ends.
fn requests() -> Receiver<Request> {
    let (sender, receiver): (Sender<Request>, _) = mpsc::channel();
    std::thread::spawn(move || {
        let mut from = io::stdin().lock();
        while let Ok(Some(request)) = read(&mut from) {
            if sender.send(request).is_err() {
                break;
            }
        }
    });
    receiver
}
