//! What every stage of fathom agrees on: the records that come from the kernel
//! ([`abi`]), the calls that are recorded ([`syscalls`]), the tables that are
//! stored ([`tables`]), the layers below the calls ([`layers`]) and what a session says of
//! itself ([`meta`]).
//!
//! Nothing in here does I/O.

pub mod abi;
pub mod batch;
pub mod bytes;
pub mod choice;
pub mod container;
pub mod errno;
pub mod escape;
pub mod failure;
pub mod kind;
pub mod layers;
pub mod meta;
pub mod perf_counters;
pub mod raw;
pub mod strings;
pub mod syscalls;
mod table;
pub mod tables;
pub mod units;
pub mod varint;

pub use batch::{Batch, ColumnData};
pub use strings::{StrId, StringTable};
