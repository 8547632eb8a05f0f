//! Durations added up in bounded memory.

/// Buckets a power of two.
const STEPS: u32 = 4;
const BUCKETS: usize = 64 * STEPS as usize;
/// Buckets that are added at once.
const GROWTH: usize = 16;

/// Count, sum, maximum, and median of durations. The median comes from a histogram with four
/// buckets per power of two: at most 13 % off.
#[derive(Clone, Debug, Default)]
pub struct Durations {
    /// How many.
    pub count: u64,
    pub sum_ns: i64,
    pub max_ns: i64,
    /// Grows to the longest duration that was seen.
    buckets: Vec<u32>,
}

fn bucket(ns: i64) -> usize {
    let ns = ns.max(1).unsigned_abs();
    let power = ns.ilog2();
    let step = if power >= 2 {
        (ns >> (power - 2)) & 3
    } else {
        0
    };
    (power * STEPS) as usize + step as usize
}

/// Middle of a bucket, nanoseconds.
fn middle(bucket: usize) -> i64 {
    let (power, step) = (bucket as u32 / STEPS, bucket as u32 % STEPS);
    let base = 2f64.powi(power as i32);
    (base * (1.0 + (f64::from(step) + 0.5) / f64::from(STEPS))) as i64
}

impl Durations {
    pub fn add(&mut self, ns: i64) {
        let ns = ns.max(0);
        self.count += 1;
        self.sum_ns = self.sum_ns.saturating_add(ns);
        self.max_ns = self.max_ns.max(ns);
        let bucket = bucket(ns).min(BUCKETS - 1);
        if self.buckets.len() <= bucket {
            // To a multiple of some powers of two, so that a few steps do.
            self.buckets
                .resize((bucket + 1).next_multiple_of(GROWTH), 0);
        }
        if let Some(count) = self.buckets.get_mut(bucket) {
            *count = count.saturating_add(1);
        }
    }

    /// Adds all of another.
    pub fn merge(&mut self, other: &Durations) {
        self.count += other.count;
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        if self.buckets.len() < other.buckets.len() {
            self.buckets.resize(other.buckets.len(), 0);
        }
        for (own, more) in self.buckets.iter_mut().zip(&other.buckets) {
            *own = own.saturating_add(*more);
        }
    }

    /// The mean, nanoseconds; 0 when there are none.
    pub fn mean_ns(&self) -> i64 {
        self.sum_ns / i64::try_from(self.count.max(1)).unwrap_or(i64::MAX)
    }

    /// Their sum when none counts for more than a limit.
    pub fn sum_up_to_ns(&self, limit_ns: i64) -> i64 {
        let each = self.buckets.iter().enumerate();
        let sum = each.fold(0i64, |sum, (i, count)| {
            let own = middle(i).min(self.max_ns).min(limit_ns);
            sum.saturating_add(own.saturating_mul(i64::from(*count)))
        });
        sum.min(self.sum_ns)
    }

    /// The duration that a share of them, 0 to 1, does not reach; 0 without durations.
    pub fn quantile_ns(&self, share: f64) -> i64 {
        let wanted = (self.count as f64 * share).max(1.0);
        let mut seen = 0.0;
        for (i, count) in self.buckets.iter().enumerate() {
            seen += f64::from(*count);
            if seen >= wanted {
                return middle(i).min(self.max_ns);
            }
        }
        self.max_ns
    }

    pub fn median_ns(&self) -> i64 {
        self.quantile_ns(0.5)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_near() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut values: Vec<i64> = (0..10_001).map(|_| 1 << random.u32(0..30)).collect();
        values.iter_mut().for_each(|v| *v += random.i64(0..*v));
        let mut durations = Durations::default();
        values.iter().for_each(|v| durations.add(*v));
        values.sort_unstable();
        for share in [0.1, 0.5, 0.99] {
            let exact = values[(share * 10_000.0) as usize] as f64;
            let error = (durations.quantile_ns(share) as f64 - exact).abs() / exact;
            assert!(error < 0.14, "{share}: {error}");
        }
        assert_eq!(durations.sum_ns, values.iter().sum::<i64>());
        let limit = values[5000];
        let exact: i64 = values.iter().map(|v| (*v).min(limit)).sum();
        let error = (durations.sum_up_to_ns(limit) - exact) as f64 / exact as f64;
        assert!(error.abs() < 0.05, "{error}");
        assert_eq!(durations.max_ns, values[10_000]);
    }

    #[test]
    fn none_have_a_median_of_nothing() {
        assert_eq!(Durations::default().median_ns(), 0);
    }
}
