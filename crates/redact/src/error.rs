//! Errors of redaction.

use std::io;
use std::path::{Path, PathBuf};

use fathom_session::SessionError;

/// Why there is no copy.
#[derive(Debug, thiserror::Error)]
pub enum RedactError {
    /// The operating system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The operation that failed.
        action: &'static str,
        path: PathBuf,
        /// Its answer.
        source: io::Error,
    },
    /// The file of rules is wrong; the message names the line.
    #[error("{}: {reason}", path.display())]
    Rules { path: PathBuf, reason: String },
    /// The key would be easy to guess.
    #[error(
        "{} has fewer than {minimum} bytes; make a key with `head -c 32 /dev/urandom > {}`",
        path.display(),
        path.display()
    )]
    ShortKey { path: PathBuf, minimum: usize },
    /// The system has no random numbers for a key.
    #[error("cannot make a random key: give a file with --key")]
    NoKey,
    /// The session is not whole, or not closed.
    #[error("{}: {reason}", path.display())]
    Unfit { path: PathBuf, reason: String },
    /// The disk is full, or similar.
    #[error("cannot write the copy: {0}")]
    Incomplete(String),
    #[error(transparent)]
    Session(#[from] SessionError),
}

impl RedactError {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| RedactError::Io {
            action,
            path,
            source,
        }
    }
}
