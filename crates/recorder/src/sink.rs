//! Another place for the rows of a recording.

use fathom_model::Batch;

/// Gets every row of a recording before it is stored.
pub trait RowSink: Send {
    /// Rows that were made at one time; rows of table counters come alone. On the thread that
    /// stores rows: slow code here makes records wait.
    fn rows(&mut self, batches: &[Batch]);
}
