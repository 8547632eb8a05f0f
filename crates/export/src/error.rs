//! Errors of exports.

use std::io;

use fathom_query::QueryError;

/// Why a session could not be exported. Messages are safe to print.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The condition of `--where` is not one.
    #[error(
        "cannot parse the condition: {0}; it must be an SQL expression over the columns of table \
         syscalls, such as \"class = 'data' AND dur_ns > 1e6\""
    )]
    Condition(String),
    /// A time of `--from` or `--until` is not one.
    #[error(
        "{0:?} is not a time: give a time since the start of the recording, in seconds without a unit \
         (2, 1.5s, 250ms, 10us), a time of day (2026-01-31T12:00:05.25Z), or @ and nanoseconds as \
         column ts_ns has them (@1234567890)"
    )]
    Time(String),
    /// The session could not be read.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// The session lacks a column, or has it in another type.
    #[error("column {0} cannot be read; the session is damaged or was not written by fathom")]
    Column(&'static str),
    /// The id of the session cannot be a part of ids of documents.
    #[error(
        "the id in session.json is not one that fathom makes (letters, digits, and -, at most 128); \
         the session is damaged or was not written by fathom"
    )]
    Id,
    /// The format cannot hold a set.
    #[error("--format {format} takes one session, and this is a set of several: {instead}")]
    Set {
        format: &'static str,
        /// The next step.
        instead: &'static str,
    },
    /// The format is the page, which its server makes.
    #[error("the page is made by its server")]
    Page,
    /// The format is a directory of files, which [`crate::export_ctf`] writes.
    #[error("the format is a directory of files")]
    Directory,
    /// The output could not be written.
    #[error("cannot write the export: {0}")]
    Output(#[from] io::Error),
}

pub type Result<T> = std::result::Result<T, ExportError>;
