//! The definitions that all stages of fathom share: the records from the kernel ([`abi`]), the
//! recorded calls ([`syscalls`]), the stored tables ([`tables`]), the layers below the calls
//! ([`layers`]), and the metadata of a session ([`meta`]).
//!
//! Nothing in here does I/O.

#![warn(missing_docs)]

pub mod abi;
pub mod batch;
pub mod bytes;
pub mod choice;
mod clock;
pub mod container;
pub mod errno;
pub mod escape;
pub mod failure;
pub mod findings;
pub mod ids;
pub mod kind;
pub mod layers;
pub mod library;
pub mod lttng;
pub mod meta;
pub mod perf_counters;
pub mod protocols;
pub mod raw;
pub mod set;
pub mod statement;
pub mod strings;
pub mod syscalls;
mod table;
pub mod tables;
pub mod units;
pub mod usdt;
pub mod varint;

pub use batch::{Batch, ColumnData};
pub use strings::{StrId, StringTable};
