//! Why a recording did not start or broke off.

use std::io;
use std::path::Path;

use fathom_decode::capture::CaptureError;
use fathom_probe::{ProbeError, SpawnError};
use fathom_session::SessionError;

/// An error of a recording.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The options contradict each other, or name something that is not there.
    #[error("{0}")]
    Input(String),
    /// The command did not start.
    #[error(transparent)]
    Command(#[from] SpawnError),
    /// The kernel refused.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// The session could not be written.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The system refused, or a raw capture is no such.
    #[error("{what}: {source}")]
    System {
        /// The failed operation.
        what: String,
        /// Why.
        source: io::Error,
    },
    /// A defect of the recorder.
    #[error("{0}")]
    Internal(&'static str),
}

impl RecordError {
    /// Whether another choice of options or target would help.
    pub fn is_input(&self) -> bool {
        use ProbeError::{Function, Itself, Library, NoFilter, NoProcess};
        matches!(
            self,
            Self::Input(_)
                | Self::Probe(
                    NoFilter(_) | NoProcess { .. } | Itself(_) | Library(_) | Function(_)
                )
        )
    }

    pub(crate) fn input(error: impl ToString) -> Self {
        Self::Input(error.to_string())
    }

    pub(crate) fn system<E: Into<io::Error>>(what: impl Into<String>) -> impl FnOnce(E) -> Self {
        let what = what.into();
        |source| Self::System {
            what,
            source: source.into(),
        }
    }

    pub(crate) fn capture(what: &str, path: &Path) -> impl FnOnce(CaptureError) -> Self {
        let what = format!("{what} {}", path.display());
        |error| match error {
            CaptureError::Io(source) => Self::System { what, source },
            other => Self::System {
                what,
                source: io::Error::other(other),
            },
        }
    }
}
