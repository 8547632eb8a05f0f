//! Frames of a stream.

use std::io::{self, BufRead, ErrorKind, Read, Write};

use fathom_model::tables::SCHEMA_VERSION;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::SessionError;

/// Version of the frames and messages.
const STREAM_VERSION: u32 = 1;
/// How a stream begins.
const MARK: &str = "fathom-stream";
/// More than its first line has.
const MAX_HELLO: u64 = 200;
/// The longest payload of a frame, bytes.
pub const MAX: usize = 1 << 20;

const TEXT: u8 = b'T';
const DATA: u8 = b'D';
const OUT: u8 = b'O';
const ERR: u8 = b'E';

/// Why a session was not transferred.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// The stream does not begin as one of fathom does.
    #[error(
        "there is no answer from fathom but {0:?}; the shell there must print nothing at login"
    )]
    NoStream(String),
    /// It ended before its end.
    #[error("the connection ended early")]
    Cut,
    /// The fathom there has other tables or messages.
    #[error(
        "fathom {theirs} there and fathom {ours} here do not understand each other; install the same version on both"
    )]
    OtherVersion {
        /// Version there.
        theirs: String,
        /// Version here.
        ours: &'static str,
    },
    /// The stream has something that no session has.
    #[error("the stream is refused: {0}")]
    Refused(String),
    /// The error of the other side.
    #[error("{0}")]
    There(String),
    /// The copy cannot be written, or the session not be read.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// Reading or writing the stream failed.
    #[error("the connection failed: {0}")]
    Io(#[from] io::Error),
}

/// A frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A message in JSON.
    Text(Vec<u8>),
    /// Bytes of a file.
    Data(Vec<u8>),
    /// Standard output of a recorded command.
    Out(Vec<u8>),
    /// Standard error of it and its recorder.
    Err(Vec<u8>),
}

impl Frame {
    fn parts(&self) -> (u8, &[u8]) {
        match self {
            Frame::Text(bytes) => (TEXT, bytes),
            Frame::Data(bytes) => (DATA, bytes),
            Frame::Out(bytes) => (OUT, bytes),
            Frame::Err(bytes) => (ERR, bytes),
        }
    }
}

/// Writes frames.
#[derive(Debug)]
pub struct FrameWriter<W>(W);

impl<W: Write> FrameWriter<W> {
    /// Begins a stream.
    ///
    /// # Errors
    /// The errors of writing.
    pub fn begin(mut to: W) -> io::Result<Self> {
        let ours = env!("CARGO_PKG_VERSION");
        writeln!(to, "{MARK} {STREAM_VERSION} {SCHEMA_VERSION} {ours}")?;
        to.flush()?;
        Ok(Self(to))
    }

    /// Writes a message.
    ///
    /// # Errors
    /// The errors of writing.
    pub fn message(&mut self, message: &impl Serialize) -> io::Result<()> {
        self.frame(&Frame::Text(serde_json::to_vec(message)?))?;
        self.0.flush()
    }

    /// Writes a frame, without flushing.
    ///
    /// # Errors
    /// The errors of writing; [`ErrorKind::InvalidInput`] for one that is too long.
    pub fn frame(&mut self, frame: &Frame) -> io::Result<()> {
        let (kind, bytes) = frame.parts();
        let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
        if bytes.len() > MAX {
            return Err(ErrorKind::InvalidInput.into());
        }
        self.0.write_all(&[kind])?;
        self.0.write_all(&length.to_le_bytes())?;
        self.0.write_all(bytes)
    }

    /// Hands everything on.
    ///
    /// # Errors
    /// The errors of writing.
    pub fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Reads frames.
#[derive(Debug)]
pub struct FrameReader<R> {
    from: R,
    version: String,
}

impl<R: BufRead> FrameReader<R> {
    /// Reads the beginning of a stream.
    ///
    /// # Errors
    /// [`TransferError::NoStream`], [`TransferError::Cut`], [`TransferError::OtherVersion`], and
    /// the errors of reading.
    pub fn begin(mut from: R) -> Result<Self, TransferError> {
        let mut line = Vec::new();
        from.by_ref().take(MAX_HELLO).read_until(b'\n', &mut line)?;
        line.pop_if(|last| *last == b'\n');
        if line.is_empty() {
            return Err(TransferError::Cut);
        }
        let line = String::from_utf8_lossy(&line).into_owned();
        let words: Vec<&str> = line.split(' ').collect();
        let [MARK, stream, schema, version] = words[..] else {
            return Err(TransferError::NoStream(line));
        };
        let known = [STREAM_VERSION, SCHEMA_VERSION].map(|n| n.to_string());
        if [stream, schema] != [known[0].as_str(), known[1].as_str()] {
            return Err(TransferError::OtherVersion {
                theirs: version.to_owned(),
                ours: env!("CARGO_PKG_VERSION"),
            });
        }
        let version = version.to_owned();
        Ok(Self { from, version })
    }

    /// Version of the fathom that writes the stream, as it says.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The next frame.
    ///
    /// # Errors
    /// [`TransferError::Cut`], [`TransferError::Refused`], and the errors of reading.
    pub fn frame(&mut self) -> Result<Frame, TransferError> {
        let mut head = [0; 5];
        self.read(&mut head)?;
        let [kind, length @ ..] = head;
        let length = usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX);
        if length > MAX {
            return Err(TransferError::Refused(format!("a frame of {length} bytes")));
        }
        let mut bytes = vec![0; length];
        self.read(&mut bytes)?;
        match kind {
            TEXT => Ok(Frame::Text(bytes)),
            DATA => Ok(Frame::Data(bytes)),
            OUT => Ok(Frame::Out(bytes)),
            ERR => Ok(Frame::Err(bytes)),
            _ => Err(TransferError::Refused(format!("a frame of kind {kind}"))),
        }
    }

    fn read(&mut self, bytes: &mut [u8]) -> Result<(), TransferError> {
        self.from.read_exact(bytes).map_err(|e| match e.kind() {
            ErrorKind::UnexpectedEof => TransferError::Cut,
            _ => e.into(),
        })
    }
}

/// The message that a frame of text is.
///
/// # Errors
/// [`TransferError::Refused`].
pub fn parse<M: DeserializeOwned>(text: &[u8]) -> Result<M, TransferError> {
    serde_json::from_slice(text)
        .map_err(|e| TransferError::Refused(format!("an unknown message: {e}")))
}
