//! Other hosts, reached over ssh: one process there, `fathom remote`, does what is asked on its
//! standard input and answers with a stream of frames. So no argument passes through a shell there.

mod host;
mod lines;
#[cfg(feature = "analysis")]
mod on;
#[cfg(feature = "analysis")]
mod peer;
mod pull;
mod serve;
mod serve_record;

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

#[cfg(feature = "analysis")]
pub use on::run as record_on;
pub use pull::run as pull;
pub use serve::run as serve;

/// A helper that hears nothing for this long ends its recording: the connection is gone.
const SILENCE: Duration = Duration::from_secs(60);
/// How often it hears something.
#[cfg(feature = "analysis")]
const ALIVE: Duration = Duration::from_secs(10);
#[cfg(feature = "analysis")]
/// A copy has at most this size unless the user says otherwise.
const MAX_BYTES: u64 = 64 << 30;

/// A line on the standard input of a helper. Strings are bytes: arguments and paths need not be
/// UTF-8.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Request {
    /// Send a session, and go on while it is recorded.
    Send { dir: Vec<u8>, follow: bool },
    /// Record with these arguments into a new session in `dir`, and send it.
    Record {
        arguments: Vec<Vec<u8>>,
        dir: Vec<u8>,
    },
    /// Begin to record.
    Go,
    /// End the recording.
    Stop,
    /// The other side is there.
    Alive,
    /// The session has arrived: remove it.
    Done,
}

/// The answers of a helper that records.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "kebab-case")]
enum Answer {
    /// It can begin; where its session is.
    Ready { session: String },
    /// The recorder has ended; its exit status, and whether a session follows.
    Ended { status: u8, session: bool },
}

/// Writes a request.
fn ask(to: &mut impl Write, request: &Request) -> io::Result<()> {
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    to.write_all(&line)?;
    to.flush()
}

fn path(bytes: Vec<u8>) -> PathBuf {
    OsString::from_vec(bytes).into()
}
