//! What became of the spans of an import.

/// Counts of the spans that were read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpanCounts {
    /// All.
    pub read: u64,
    /// Those that became rows.
    pub stored: u64,
    /// Those that lie outside of the recording, and are left out.
    pub outside: u64,
    /// Those without valid ids or times, which are left out.
    pub invalid: u64,
    /// Rows whose thread.id is not a thread of their process in the recording: their tid is null.
    pub other_threads: u64,
    /// Rows with texts that were cut or attributes that were left out for their size.
    pub cut: u64,
}
