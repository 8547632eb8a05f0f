//! How much durations differ within one session: a bootstrap over pieces of time.
//!
//! Calls that follow each other are alike (one phase of the program, one state of the
//! caches), so whole pieces of time are drawn, not calls.

use std::collections::BTreeMap;

use fastrand::Rng;

use crate::profile::{Block, Latency, STEPS};
use crate::stats;

/// How often pieces are drawn. The standard error of a standard error is 1 in the
/// square root of twice as many: 4 %.
const DRAWS: usize = 300;
/// Calls below which nothing is said of their durations.
pub(crate) const MIN_CALLS: u64 = 20;
/// Calls beyond a quantile below which nothing is said of it: it would be one of the
/// longest.
const MIN_BEYOND: f64 = 2.0;
/// Pieces of time with calls below which nothing is said.
pub(crate) const MIN_BLOCKS: usize = 4;

/// Standard errors of the logarithms of figures.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Spread {
    pub mean: f64,
    /// Of [`QUANTILES`].
    pub quantiles: [f64; 4],
    pub calls: u64,
}

impl Spread {
    /// The spread of a quantile, if there are enough calls beyond it.
    pub(crate) fn quantile(&self, index: usize) -> Option<f64> {
        let (q, error) = (QUANTILES.get(index)?, self.quantiles.get(index)?);
        (self.calls as f64 * (1.0 - q) >= MIN_BEYOND).then_some(*error)
    }
}

/// Quantiles of durations that are compared.
pub(crate) const QUANTILES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

/// The spread of the durations of a call; `None` when there are too few.
pub(crate) fn of(latency: &Latency) -> Option<Spread> {
    let blocks: Vec<&Block> = latency.blocks.iter().filter(|b| b.calls > 0).collect();
    let calls = blocks.iter().map(|b| b.calls).sum();
    if calls < MIN_CALLS || blocks.len() < MIN_BLOCKS {
        return None;
    }
    // The same sessions give the same answer.
    let mut rng = Rng::with_seed(calls);
    let mut draws = [const { Vec::new() }; 5];
    for _ in 0..DRAWS {
        let (mut count, mut sum) = (0, 0.0);
        let mut hist: BTreeMap<i32, u64> = BTreeMap::new();
        for _ in 0..blocks.len() {
            let Some(block) = rng.choice(&blocks) else {
                continue;
            };
            count += block.calls;
            sum += block.sum_ns;
            for (bucket, n) in &block.hist {
                *hist.entry(*bucket).or_default() += n;
            }
        }
        let mean = (sum / count.max(1) as f64).max(1.0).ln();
        let quantiles = QUANTILES.iter().map(|q| quantile(&hist, *q));
        for (draws, value) in draws.iter_mut().zip([mean].into_iter().chain(quantiles)) {
            draws.push(value);
        }
    }
    let [mean, quantiles @ ..] = draws.map(|values| stats::variance(&values).sqrt());
    // A median in the middle of one bucket in all draws still has the bucket's width.
    let width = bucket_ln() / 12f64.sqrt();
    Some(Spread {
        mean,
        quantiles: quantiles.map(|error| error.hypot(width)),
        calls,
    })
}

pub(crate) fn bucket_ln() -> f64 {
    std::f64::consts::LN_2 / f64::from(STEPS)
}

pub(crate) fn quantile(hist: &BTreeMap<i32, u64>, q: f64) -> f64 {
    let total: u64 = hist.values().sum();
    let rank = (total as f64 * q).ceil().max(1.0) as u64;
    let mut below = 0;
    for (bucket, n) in hist {
        below += n;
        if below >= rank {
            return (f64::from(*bucket) + 0.5) * bucket_ln();
        }
    }
    0.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latency(blocks: &[&[f64]]) -> Latency {
        let block = |durations: &&[f64]| {
            let mut hist: BTreeMap<i32, u64> = BTreeMap::new();
            for ns in *durations {
                *hist
                    .entry((ns.log2() * f64::from(STEPS)).floor() as i32)
                    .or_default() += 1;
            }
            Block {
                calls: durations.len() as u64,
                sum_ns: durations.iter().sum(),
                hist: hist.into_iter().collect(),
            }
        };
        Latency {
            blocks: blocks.iter().map(block).collect(),
            ..Latency::default()
        }
    }

    #[test]
    fn pieces_that_are_alike_spread_little() {
        let even = vec![&[1000.0; 50][..]; 24];
        let spread = of(&latency(&even)).unwrap();
        assert!(spread.mean < 1e-9, "{spread:?}");
        assert!(spread.quantiles[0] < 0.03, "{spread:?}");
        // Half of the pieces take twice as long: the mean of 24 of them has a standard
        // error of 1/3 / sqrt(24) of itself.
        let mut uneven = vec![&[1000.0; 50][..]; 12];
        uneven.extend(vec![&[2000.0; 50][..]; 12]);
        let spread = of(&latency(&uneven)).unwrap();
        let expected = (500.0 / 1500.0) / 24f64.sqrt();
        assert!(
            (spread.mean / expected - 1.0).abs() < 0.2,
            "{spread:?} {expected}"
        );
    }

    #[test]
    fn too_few_calls_say_nothing() {
        assert_eq!(of(&latency(&[&[1000.0; 19]])), None);
        assert_eq!(of(&latency(&[&[1000.0; 500]])), None);
        assert_eq!(of(&Latency::default()), None);
    }
}
