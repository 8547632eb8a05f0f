//! Errors of shipping.

use std::path::{Path, PathBuf};

use fathom_model::escape::text;
use fathom_redact::RedactError;
use fathom_session::SessionError;

/// Why a session was not shipped. Each says what happened, to what, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum ShipError {
    /// The destination is none.
    #[error("{}: {reason}", text(destination))]
    Destination {
        /// As it was given.
        destination: String,
        /// The defect.
        reason: String,
    },
    /// The store refused, or could not be reached.
    #[error(
        "cannot {action} {}: {source}; ship again to go on from there",
        text(object)
    )]
    Store {
        /// The operation that failed.
        action: &'static str,
        /// Destination and name of the object.
        object: String,
        /// The answer of the store.
        source: Box<object_store::Error>,
    },
    /// The session is being recorded, was not closed, or is damaged.
    #[error("{}: {reason}", path.display())]
    Unfit {
        /// Directory of the session.
        path: PathBuf,
        /// The obstacle, and what to do.
        reason: &'static str,
    },
    /// The session has changed since it was shipped.
    #[error(
        "{} has another state of session {}: it has changed since, or was shipped with other \
         options of redaction; replace it with --force",
        text(destination),
        text(session)
    )]
    Changed {
        /// Where it was shipped.
        destination: String,
        /// Id of the session.
        session: String,
    },
    /// A file cannot be read.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The operation that failed.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The answer of the operating system.
        source: std::io::Error,
    },
    /// Rows cannot be read or encoded.
    #[error("{}: {source}", path.display())]
    Parquet {
        /// Directory of the session.
        path: PathBuf,
        /// The reason.
        source: parquet::errors::ParquetError,
    },
    /// The session cannot be read.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The session cannot be redacted.
    #[error(transparent)]
    Redact(#[from] RedactError),
}

impl ShipError {
    /// Whether another attempt may succeed without a change of the session or the options: the store is
    /// away.
    pub fn is_of_store(&self) -> bool {
        matches!(self, Self::Store { .. })
    }

    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io {
            action,
            path,
            source,
        }
    }

    pub(crate) fn parquet<E>(path: &Path) -> impl FnOnce(E) -> Self
    where
        parquet::errors::ParquetError: From<E>,
    {
        let path = path.to_owned();
        move |source| Self::Parquet {
            path,
            source: source.into(),
        }
    }
}
