//! Sessions as streams of bytes, for copies to another host.
//!
//! A stream is a line that names the versions of the writer, then frames: a kind, a length of at
//! most [`frame::MAX`], and the payload. Frames of text are messages in JSON. A file is a message
//! with its name and size, frames of data, and a message with its XXH64. A pass brings the copy to
//! one state of the session; a session that is being recorded may have several.
//!
//! The writer of a stream is not trusted: the reader makes only files with names that fathom gives
//! to files of a session, in a directory of its own.

mod frame;
mod receive;
mod send;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use frame::{Frame, FrameReader, FrameWriter, TransferError, parse};
pub use receive::{Pass, Received, Receiver};
pub use send::send;

/// The messages of a stream. Times are nanoseconds of the sender's clocks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "kebab-case")]
enum Message {
    /// Begins a pass.
    State(State),
    /// Begins a file: its name in the session, and its size.
    File { name: String, bytes: u64 },
    /// Ends a file: XXH64 (seed 0) of its bytes.
    Whole { xxh64: u64 },
    /// A part that has been merged or dropped.
    Removed { name: String },
    /// Ends a pass: the copy is as the session was.
    Pass,
    /// Ends the stream: how many files it had, and their bytes.
    End { files: u64, bytes: u64 },
    /// Ends it with an error.
    Failed { reason: String },
}

/// The session at the beginning of a pass.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct State {
    id: String,
    /// It is being recorded.
    live: bool,
    monotonic_ns: i64,
    realtime_ns: i64,
}
