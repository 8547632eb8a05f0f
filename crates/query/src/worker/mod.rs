//! SQL that users write, in a process of its own.
//!
//! A limit of DuckDB's covers what its buffer manager allocates and what looks whether it was
//! interrupted. A scalar function does neither: `repeat('x', 4000000000)` allocates 4 GB and
//! `levenshtein` of two long texts runs for minutes. So text that a user has written runs in a
//! child process ([`Worker`]) whose memory the kernel limits, that is killed at the deadline, and
//! that can do nothing but read its session (module `confine`). The child is the same program,
//! started with an argument that makes it call [`serve`].
//!
//! Both ends speak in frames: a tag, the length of what follows, and that. The parent asks in
//! JSON; the child answers with the bytes of the result, written in the form that was asked for,
//! and then with how it ended. The parent never holds more of an answer than a frame unless it
//! wants to.

mod child;
mod confine;
mod frames;
mod parent;

use std::time::Duration;

use fathom_model::findings::FindingRow;
use serde::{Deserialize, Serialize};

use crate::output::Format;
use crate::{Limits, QueryError, UserView};
pub use child::serve;
pub use parent::{Killer, Program, Worker};

/// The argument with which a program becomes a worker: it must call [`serve`] and do nothing else.
pub const ARGUMENT: &str = "sql-worker";

/// A request to the child.
#[derive(Debug, Serialize, Deserialize)]
enum Ask {
    /// Open a session, or a set of sessions. Comes first, and once.
    Open {
        /// Bytes of its path.
        path: Vec<u8>,
        /// The same of the directories of the sessions.
        dirs: Vec<Vec<u8>>,
        memory_bytes: u64,
        threads: u32,
        time: Option<Duration>,
        /// Views that the user wrote.
        views: Vec<UserView>,
    },
    Query(Statement),
}

/// One SELECT and what is to become of its rows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Statement {
    /// The text, which is checked.
    pub sql: String,
    /// How the rows are written.
    pub form: Form,
    /// Rows of table `findings` of each session, for a statement that names it
    /// ([`crate::names_findings`]).
    pub findings: Option<Vec<Vec<FindingRow>>>,
    /// Whether the session may have changed since the worker opened it or last refreshed it.
    pub refresh: bool,
}

/// How the rows of a result are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Form {
    /// For the command line.
    Output {
        format: Format,
        /// As [`crate::output::Options::width`].
        width: Option<usize>,
        /// As [`crate::output::Options::color`].
        color: bool,
        /// As [`crate::output::Options::terminal`].
        terminal: bool,
        /// As [`crate::output::Options::exact`].
        exact: bool,
    },
    /// For the page: an Arrow IPC stream in the types of [`crate::output::plain`], in one piece.
    Page { max_rows: usize },
}

impl Form {
    /// A JSON object per line, for programs.
    pub const LINES: Form = Form::Output {
        format: Format::Ndjson,
        width: None,
        color: false,
        terminal: false,
        exact: false,
    };
}

/// How a query ended that gave all its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    pub rows: u64,
    /// Whether there are more than were asked for.
    pub cut: bool,
    /// Time from the start of the query to its last row.
    pub elapsed: Duration,
}

/// A failure on its way from the child to its parent.
#[derive(Debug, Serialize, Deserialize)]
enum Failure {
    NotASelect(String),
    Function(String),
    Engine(String),
    Sql(String),
    TimeLimit,
    Interrupted,
    Memory(String),
    CriticalPath(String),
    Path {
        path: String,
        reason: String,
    },
    View {
        file: String,
        detail: String,
    },
    Table {
        table: String,
        detail: String,
    },
    Format {
        format: String,
        detail: String,
    },
    /// Anything else, in words.
    Other(String),
}

impl From<QueryError> for Failure {
    fn from(error: QueryError) -> Self {
        match error {
            QueryError::NotASelect(why) => Self::NotASelect(why),
            QueryError::Function(name) => Self::Function(name),
            QueryError::Engine(text) => Self::Engine(text),
            QueryError::Sql(text) => Self::Sql(text),
            QueryError::TimeLimit(_) => Self::TimeLimit,
            QueryError::Interrupted => Self::Interrupted,
            QueryError::Memory { detail, .. } => Self::Memory(detail),
            QueryError::CriticalPath(text) => Self::CriticalPath(text),
            QueryError::Path { path, reason } => Self::Path { path, reason },
            QueryError::View { file, detail } => Self::View { file, detail },
            QueryError::Table { table, detail } => Self::Table {
                table: table.to_owned(),
                detail,
            },
            QueryError::Format { format, detail } => Self::Format {
                format: format.to_owned(),
                detail,
            },
            other => Self::Other(other.to_string()),
        }
    }
}

impl Failure {
    /// The error that the parent returns.
    fn into_error(self, limits: &Limits) -> QueryError {
        match self {
            Self::NotASelect(why) => QueryError::NotASelect(why),
            Self::Function(name) => QueryError::Function(name),
            Self::Engine(text) => QueryError::Engine(text),
            Self::Sql(text) => QueryError::Sql(text),
            Self::TimeLimit => QueryError::TimeLimit(limits.time.unwrap_or_default()),
            Self::Interrupted => QueryError::Interrupted,
            Self::Memory(detail) => QueryError::Memory {
                limit_mib: limits.memory_bytes >> 20,
                detail,
            },
            Self::CriticalPath(text) => QueryError::CriticalPath(text),
            Self::Path { path, reason } => QueryError::Path { path, reason },
            Self::View { file, detail } => QueryError::View { file, detail },
            Self::Table { table, detail } => {
                let known = fathom_model::tables::TABLES;
                match known.iter().find(|t| t.name == table) {
                    Some(known) => QueryError::Table {
                        table: known.name,
                        detail,
                    },
                    None => QueryError::Worker(detail),
                }
            }
            Self::Format { format, detail } => {
                match Format::ALL.into_iter().find(|f| f.name() == format) {
                    Some(known) => QueryError::Format {
                        format: known.name(),
                        detail,
                    },
                    None => QueryError::Worker(detail),
                }
            }
            Self::Other(text) => QueryError::Worker(text),
        }
    }
}
