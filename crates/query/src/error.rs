//! Errors of queries.

use std::time::Duration;

use crate::escape;
use crate::limits::Limits;
use crate::mistaken;

/// Why a session could not be queried. Messages are safe to print: control
/// characters of data that they quote are escaped.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// The text is not one statement that selects.
    #[error(
        "only one SELECT is accepted ({0}); a session cannot be changed through SQL. \
         WITH, VALUES, DESCRIBE, SUMMARIZE, SHOW TABLES and EXPLAIN work too"
    )]
    NotASelect(String),
    /// A table function that reaches outside the session.
    #[error(
        "table function {0} is not available: SQL can read only the tables of this session \
         (SHOW TABLES lists them)"
    )]
    Function(String),
    /// DuckDB's library cannot be loaded; the dynamic linker's message.
    #[error(
        "SQL needs DuckDB's library: {0}; put the libduckdb.so of this version of fathom into the program's directory"
    )]
    Engine(String),
    /// The database refused or failed the query; its message.
    #[error("{0}")]
    Sql(String),
    /// The query took longer than allowed.
    #[error(
        "the query was stopped after {0:?}, its time limit: narrow it down, or raise the limit"
    )]
    TimeLimit(Duration),
    /// The query was stopped by [`crate::Interrupter::interrupt`].
    #[error("the query was stopped")]
    Interrupted,
    /// The query needed more memory than allowed.
    #[error(
        "the query needs more memory than its limit of {limit_mib} MiB: narrow it down, or raise \
         the limit ({detail})"
    )]
    Memory {
        limit_mib: u64,
        /// The message of the database.
        detail: String,
    },
    /// The rows of an earlier query are still being read.
    #[error("another query on this session is still running: read its rows to the end first")]
    Busy,
    /// The path of a part cannot be given to the database.
    #[error("cannot read {path}: {reason}")]
    Path {
        /// The path, escaped.
        path: String,
        reason: String,
    },
    /// A critical path that a statement asks for cannot be computed.
    #[error("{0}")]
    CriticalPath(String),
    /// A view that a user wrote is refused, or wrong.
    #[error("view {file} cannot be used: {detail}; correct the file, or move it away")]
    View {
        /// Its file, escaped.
        file: String,
        /// The reason, or the message of the database.
        detail: String,
    },
    /// A file cannot become a table of the user's.
    #[error("{0}")]
    OwnTable(String),
    /// The files of a table do not hold its columns.
    #[error(
        "table {table} cannot be read: {detail}; the session is damaged or was not written by fathom"
    )]
    Table {
        table: &'static str,
        /// The message of the database.
        detail: String,
    },
    /// The rows of a part are not the rows that were written.
    #[error(
        "a part of the session is damaged: its checksum is another; `fathom repair` repairs as much as possible"
    )]
    Damaged,
    /// A view lacks a column, or it has another type.
    #[error(
        "view column {0} is missing or has an unexpected type: this session was written by an incompatible version of fathom"
    )]
    Column(&'static str),
    /// A result cannot be written in the format asked for.
    #[error("the result cannot be written as {format}: {detail}")]
    Format {
        format: &'static str,
        /// The reason.
        detail: String,
    },
    /// The process that runs SQL cannot be used.
    #[error("the process that runs SQL cannot be used: {0}")]
    Worker(String),
    /// The process that ran a query ended before the query did.
    #[error(
        "the statement ended the process that ran it (signal {signal}): it may need more memory \
         than its limit of {limit_mib} MiB, or be nested too deeply; narrow it down, or raise the \
         limit"
    )]
    Died {
        /// The signal that ended it.
        signal: i32,
        limit_mib: u64,
    },
    /// The result could not be written.
    #[error("cannot write the result: {0}")]
    Output(#[from] std::io::Error),
}

impl QueryError {
    /// Whether the session may have changed under the query, as parts of a recording are merged:
    /// then another try on its new state may do.
    pub fn may_be_stale(&self) -> bool {
        match self {
            Self::Table { .. } | Self::Damaged => true,
            Self::Sql(text) => text.starts_with("IO Error") || text.contains("No files found"),
            _ => false,
        }
    }

    /// Turns a failure of the database into an error. `limits` are the query's limits; `timed_out`
    /// is true if it was interrupted for its time.
    pub(crate) fn from_db(error: &duckdb::Error, limits: &Limits, timed_out: bool) -> QueryError {
        let text = message(error);
        if text.starts_with("INTERRUPT") {
            return match timed_out {
                true => QueryError::TimeLimit(limits.time.unwrap_or_default()),
                false => QueryError::Interrupted,
            };
        }
        // The second is what the library says where the kernel gives no more.
        if text.starts_with("Out of Memory") || text.contains("std::bad_alloc") {
            return QueryError::Memory {
                limit_mib: limits.memory_bytes >> 20,
                detail: text,
            };
        }
        QueryError::Sql(text)
    }
}

/// The database's message, fit for a terminal.
pub(crate) fn message(error: &duckdb::Error) -> String {
    let text = match error {
        duckdb::Error::DuckDBFailure(_, Some(text)) => text.clone(),
        duckdb::Error::NulError(_) => "the text holds a NUL character".to_string(),
        other => other.to_string(),
    };
    let text = escape::lines(text.trim_end());
    match mistaken::in_message(&text) {
        Some(column) => format!("{text}\nThe tables of a session call it {column}"),
        None => text,
    }
}
