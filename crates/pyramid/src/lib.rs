//! A pyramid over time: sums of a session's rows that answer any window at any
//! number of pixels without reading the rows.
//!
//! A *cell* is the activity of one key (a thread, a call, a file) in one bucket of time: [`Sum`].
//! The width of a bucket is 2^shift nanoseconds and its start is a multiple of the width, so
//! buckets of one width nest in buckets of any larger one.
//!
//! A *segment* holds the cells of the rows of some parts of a table, which its
//! range of part numbers names: one block a dimension, with the narrowest
//! buckets that fit its budget of bytes. A segment of tier 0 is closed every
//! quarter of a million rows or so; eight of a tier make one of the next, with
//! as many cells as one of them and so with wider buckets. That is a tree of
//! fan-out eight whose nodes are of about one size: a query takes the highest
//! segments whose buckets are narrow enough, a number that does not grow with
//! the rows in the window and with the logarithm of those in the session.
//!
//! Segments are only ever appended to one file next to the tables ([`file`] describes it). Sums add
//! up, so rows may come late: the order of a part's rows in time does not matter. A segment is
//! valid as long as the parts of its range exist, merged or not. The reader sums up the parts that
//! no segment covers ([`Pyramid::cover`]).
//!
//! A bucket keeps at most [`MAX_KEYS`] keys, those with the most time; the others are
//! one cell, [`Key::Rest`]. All keys of a bucket and its rest together are
//! exact at every tier.

mod block;
mod builder;
mod cells;
mod cover;
pub mod file;
mod source;
mod sum;

pub use builder::{Builder, Segment};
pub use cover::{Cells, Cover, Part, Plan, Pyramid};
pub use source::{
    Dimension, Keys, SLICES, SOURCES, SYSCALLS, Source, WAITS, WAITS_QUEUE, WAITS_REASON,
};
pub use sum::{LATENCY_BUCKETS, Latency, Sum, latency_bucket};

/// Most keys of a bucket in a stored block.
pub const MAX_KEYS: usize = 64;

/// The subject of a cell.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Key {
    Null,
    /// A number; of a pair of columns the first in the upper 32 bits.
    Int(i64),
    /// A name.
    Text(std::sync::Arc<str>),
    /// All keys that have no cell of their own in this bucket. With `cut`, some of them may also
    /// have one, for a part of their rows.
    Rest {
        /// Whether the cells of other keys in this bucket are lower bounds.
        cut: bool,
    },
}

/// Why a pyramid could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum PyramidError {
    /// Reading or writing failed.
    #[error("the pyramid could not be read or written: {0}")]
    Io(#[from] std::io::Error),
    /// A block is damaged: the segment must be made again from the rows.
    #[error("the pyramid is damaged: {0}; `fathom zoom --rebuild` rebuilds it from the tables")]
    Damaged(&'static str),
    /// A later version of the format.
    #[error("the pyramid is of version {0}, which this fathom does not know; use a newer fathom")]
    Version(u32),
}
