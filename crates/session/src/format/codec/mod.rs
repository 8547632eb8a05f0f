//! Batches to the pages of a part, and back.

pub(crate) mod clusters;
pub(crate) mod decode;
pub(crate) mod encode;
pub(crate) mod less;

/// Where an encoded row group ends: readers pass over row groups by their times,
/// and read one as a whole.
pub(crate) const GROUP_ROWS: usize = 1 << 17;
/// The same in memory that it takes.
pub(crate) const GROUP_BYTES: usize = 64 << 20;
