//! The critical path of a thread: the chain of work and waits that its time consists of, across
//! threads and devices.
//!
//! [`walk::walk`] follows the wake-ups backwards over rows in memory; [`CriticalPath::gather`] reads
//! the rows that a walk needs from the session by SQL. The segments of a path are contiguous and add
//! up to the interval.

mod critical_path;
mod error;
mod gather;
mod headline;
mod label;
mod name;
pub mod rows;
mod segment;
mod sql;
pub mod walk;

pub use critical_path::{CriticalPath, HostClock, Scope};
pub use error::PathError;
pub use name::Name;
pub use segment::{
    Because, BlockPart, Culprit, CulpritKind, Request, Segment, State, Total, totals,
};
pub use sql::sql_rows;
