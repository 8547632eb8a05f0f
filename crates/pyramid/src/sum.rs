//! The sums.

/// Buckets of a latency histogram.
pub const LATENCY_BUCKETS: usize = 40;

/// Durations: entry b counts those from 2^b to below 2^(b+1) ns; the first has 0
/// too, the last all that are longer. Stops counting at 2^32 - 1.
pub type Latency = [u32; LATENCY_BUCKETS];

/// Sums over rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// Rows.
    pub count: u64,
    pub errors: u64,
    pub bytes: u64,
    /// Sum of the durations, nanoseconds.
    pub time_ns: u64,
    pub max_ns: u64,
}

impl Sum {
    /// Adds another sum.
    pub fn merge(&mut self, other: &Sum) {
        self.count += other.count;
        self.errors += other.errors;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.time_ns = self.time_ns.saturating_add(other.time_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }
}

/// The entry of a [`Latency`] that counts a duration.
pub fn latency_bucket(dur_ns: i64) -> usize {
    let ns = u64::try_from(dur_ns).unwrap_or(0).max(1);
    (ns.ilog2() as usize).min(LATENCY_BUCKETS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Durations and sizes in a damaged capture can be anything.
    #[test]
    fn sums_that_do_not_fit_stay_at_the_largest() {
        let large = Sum {
            count: 1,
            errors: 0,
            bytes: u64::MAX - 1,
            time_ns: i64::MAX as u64,
            max_ns: i64::MAX as u64,
        };
        let mut sum = large;
        for _ in 0..2 {
            sum.merge(&large);
        }
        assert_eq!((sum.count, sum.bytes, sum.time_ns), (3, u64::MAX, u64::MAX));
        assert_eq!(sum.max_ns, large.max_ns);
    }
}
