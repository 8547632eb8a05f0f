//! Differences between two sides, each of one or several sessions: calls, bytes, time, errors, and
//! findings, and whether a difference is more than noise.
//!
//! [`Profile::gather`] takes the figures of one session; [`compare`] is pure. In
//! between nothing is kept, so that sessions can be opened one after the other:
//!
//! ```no_run
//! # fn main() -> Result<(), fathom_diff::DiffError> {
//! # let (session, db): (fathom_session::Session, fathom_query::Db) = unimplemented!();
//! # let (session2, db2): (fathom_session::Session, fathom_query::Db) = unimplemented!();
//! use fathom_diff::{Options, Profile, compare};
//! let extensions = fathom_extensions::Extensions::default();
//! let before = [Profile::gather(&db, &session, "before", &extensions)?];
//! let after = [Profile::gather(&db2, &session2, "after", &extensions)?];
//! let diff = compare(&before, &after, &Options::default())?;
//! # Ok(())
//! # }
//! ```
//!
//! With several sessions on a side differences are judged by a test over the sessions'
//! figures, with one on each by what one recording can tell (module `verdict` has the
//! reasons); [`Method`] says which in words.

mod comparability;
mod compare;
mod comparison_rows;
mod direction;
mod findings;
mod gather;
mod headline;
mod matching;
mod names;
mod profile;
mod regression_gate;
mod result;
mod spread;
mod stats;
mod tail;
#[cfg(test)]
mod tests;
mod timed;
mod verdict;

pub use compare::{Options, compare};
pub use profile::Profile;
pub use result::{
    Change, Diff, Figure, FindingChange, Guard, Headline, Method, Metric, Outcome, Row, SessionRef,
    Side, Status, Tables, Verdict,
};

/// Why sessions could not be compared.
#[derive(Debug, thiserror::Error)]
pub enum DiffError {
    /// A session could not be queried.
    #[error(transparent)]
    Query(#[from] fathom_query::QueryError),
    /// A session could not be diagnosed.
    #[error(transparent)]
    Diagnose(#[from] fathom_diagnose::DiagnoseError),
    /// Rules or views of the user cannot be used.
    #[error(transparent)]
    Extensions(#[from] fathom_extensions::ExtensionError),
    /// A side has no session.
    #[error("there is no session {0}: give at least one a side")]
    NoSession(&'static str),
}
