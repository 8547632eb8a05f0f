//! Errors of imports.

use std::io;
use std::path::{Path, PathBuf};

use fathom_session::SessionError;

use crate::Format;
use crate::counts::SpanCounts;

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
    /// The file contains spans, which make no session.
    #[error(
        "{} contains spans of OTLP: name the session that was recorded meanwhile with --into",
        .0.display()
    )]
    Spans(PathBuf),
    /// The file contains no spans.
    #[error(
        "{} is no file of OTLP spans: {reason}; give requests of type ExportTraceServiceRequest as \
         JSON, JSON lines, or protobuf",
        path.display()
    )]
    NotOtlp {
        path: PathBuf,
        /// The defect, escaped.
        reason: String,
    },
    /// A request is larger than memory is meant for.
    #[error("{} has a request of more than 64 MiB; write one request on each line", .0.display())]
    LargeRequest(PathBuf),
    /// More spans than memory is meant for.
    #[error("the files have more than {0} spans; import fewer files at a time")]
    ManySpans(u64),
    /// Nothing is left to store.
    #[error("no span is added: {}", no_spans(.0))]
    NoSpans(SpanCounts),
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
    /// A directory without a trace that can be read.
    #[error(
        "{} contains no trace in CTF 1.8: {reason}; give the directory of a trace, or the one that \
         lttng create made",
        path.display()
    )]
    NotCtf {
        path: PathBuf,
        /// The defect, escaped.
        reason: String,
    },
    /// The session could not be written.
    #[error(transparent)]
    Session(#[from] SessionError),
}

fn no_spans(counts: &SpanCounts) -> String {
    match counts {
        SpanCounts { read: 0, .. } => "the files contain none".to_owned(),
        SpanCounts { outside: 0, .. } => {
            format!("all {} lack valid ids or times", counts.read)
        }
        SpanCounts { read, outside, .. } => format!(
            "{outside} of {read} are outside of the time of the recording, the others lack valid ids \
             or times; choose the session that was recorded while the application ran"
        ),
    }
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
