//! Percentiles of a histogram of durations.

use fathom_pyramid::{LATENCY_BUCKETS, Latency};

/// The duration that `share` (0 to 1) of the counted ones do not exceed: the end of
/// its bucket, nanoseconds, so up to twice too high, but never above
/// `max_ns`. `None` when nothing was counted.
pub fn percentile(latency: &Latency, share: f64, max_ns: u64) -> Option<u64> {
    let count: u64 = latency.iter().map(|n| u64::from(*n)).sum();
    if count == 0 {
        return None;
    }
    let rank = ((count as f64 * share).ceil() as u64).clamp(1, count);
    let mut below = 0;
    for (bucket, n) in latency.iter().enumerate() {
        below += u64::from(*n);
        if below >= rank {
            let end = if bucket + 1 == LATENCY_BUCKETS {
                u64::MAX
            } else {
                (2 << bucket) - 1
            };
            return Some(end.min(max_ns));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use fathom_pyramid::latency_bucket;

    use super::*;

    fn of(durations: &[i64]) -> Latency {
        let mut latency = [0; LATENCY_BUCKETS];
        for ns in durations {
            latency[latency_bucket(*ns)] += 1;
        }
        latency
    }

    #[test]
    fn percentiles_are_ends_of_buckets() {
        assert_eq!(percentile(&of(&[]), 0.5, 0), None);
        let durations: Vec<i64> = (1..=100).map(|n| n * 100).collect();
        let latency = of(&durations);
        // The exact ones are 5,000 and 9,900.
        assert_eq!(percentile(&latency, 0.5, 10_000), Some(8191));
        assert_eq!(percentile(&latency, 0.99, 10_000), Some(10_000));
        assert_eq!(percentile(&of(&[0]), 0.5, 0), Some(0));
        let longest = of(&[i64::MAX]);
        assert_eq!(
            percentile(&longest, 1.0, i64::MAX as u64),
            Some(i64::MAX as u64)
        );
    }
}
