//! Errors of imports.

use std::io;
use std::path::{Path, PathBuf};

use fathom_session::SessionError;

use crate::Format;

/// Why a log could not be imported.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// Nothing was given.
    #[error("no file to import: give the log, or the logs that strace -ff wrote")]
    NoFile,
    /// The operating system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The operation that failed.
        action: &'static str,
        path: PathBuf,
        /// Its answer.
        source: io::Error,
    },
    /// The file is of no format that is known.
    #[error(
        "{} is neither {}; if it is one of them, select it with --format",
        .0.display(),
        Format::ALL.iter().map(|f| f.log()).collect::<Vec<_>>().join(" nor ")
    )]
    Unknown(PathBuf),
    /// The log has no times.
    #[error(
        "{} has no times: run strace with -ttt -T (best), -tt, -t \
         or -r",
        .0.display()
    )]
    NoTimes(PathBuf),
    /// There is no call in the log.
    #[error("{} contains no call that fathom records", .0.display())]
    NoCalls(PathBuf),
    /// The session could not be written.
    #[error(transparent)]
    Session(#[from] SessionError),
}

impl ImportError {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| ImportError::Io {
            action,
            path,
            source,
        }
    }
}
