//! Counts of an import of spans.

/// Counts of the spans that were read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpanCounts {
    /// All.
    pub read: u64,
    /// Spans with a row.
    pub stored: u64,
    /// Spans outside of the recording, which are left out.
    pub outside: u64,
    /// Spans without valid ids or times, which are left out.
    pub invalid: u64,
    /// Rows whose thread.id is not a thread of their process in the recording: their tid is null.
    pub other_threads: u64,
    /// Rows with texts that were cut or attributes that were left out for their size.
    pub cut: u64,
}
