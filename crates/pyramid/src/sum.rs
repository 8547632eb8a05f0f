//! What is added up.

/// Buckets of a latency histogram.
pub const LATENCY_BUCKETS: usize = 40;

/// Sums over rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sum {
    /// Rows.
    pub count: u64,
    /// Rows that failed.
    pub errors: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Sum of the durations, nanoseconds.
    pub time_ns: u64,
    /// Longest duration, nanoseconds.
    pub max_ns: u64,
    /// Durations: entry b counts those from 2^b to below 2^(b+1) ns; the first
    /// has 0 too, the last all that are longer.
    pub latency: [u64; LATENCY_BUCKETS],
}

impl Default for Sum {
    fn default() -> Self {
        Self {
            count: 0,
            errors: 0,
            bytes: 0,
            time_ns: 0,
            max_ns: 0,
            latency: [0; LATENCY_BUCKETS],
        }
    }
}

impl Sum {
    /// Adds another sum.
    pub fn merge(&mut self, other: &Sum) {
        self.count += other.count;
        self.errors += other.errors;
        self.bytes += other.bytes;
        self.time_ns += other.time_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
        for (mine, theirs) in self.latency.iter_mut().zip(&other.latency) {
            *mine += theirs;
        }
    }
}

/// The entry of [`Sum::latency`] that counts a duration.
pub fn latency_bucket(dur_ns: i64) -> usize {
    let ns = u64::try_from(dur_ns).unwrap_or(0).max(1);
    (ns.ilog2() as usize).min(LATENCY_BUCKETS - 1)
}
