//! Limits of a query.

use std::time::Duration;

/// Limits of a query.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Memory of the database, bytes. Nothing is spilled to disk.
    pub memory_bytes: u64,
    /// Threads; 0 for one a processor.
    pub threads: u32,
    /// Time of one query from its start to its last row; `None` for no limit.
    pub time: Option<Duration>,
}

impl Default for Limits {
    /// 1 GiB, all processors, no time limit.
    fn default() -> Self {
        Self {
            memory_bytes: 1 << 30,
            threads: 0,
            time: None,
        }
    }
}
