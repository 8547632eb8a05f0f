//! Whether more calls than before take very long.
//!
//! A quantile shows a tail only where the tail begins, so calls beyond several thresholds are
//! counted, an octave apart. The test is a permutation test (Good, Permutation, Parametric and
//! Bootstrap Tests of Hypotheses, 3rd edition, 2005, chapter 3): without a difference the pieces
//! of time of both sides are exchangeable, so they are dealt out to the sides again and again.
//! Calls of a piece stay together, because long calls come in bursts. The chance is corrected
//! for the number of thresholds (Bonferroni).

use std::collections::BTreeMap;

use fastrand::Rng;

use crate::profile::{Block, Latency, STEPS};
use crate::spread::MIN_BLOCKS;
use crate::stats::{self, Test};

/// Calls on a side below which nothing is said of their tail.
const MIN_CALLS: u64 = 100;
/// Calls of both sides beyond a threshold below which it is not tested.
const MIN_BEYOND: u64 = 5;
/// Thresholds begin where the tail of both sides together does.
const BEGIN: f64 = 0.9;
/// So often pieces are dealt out at most.
const DRAWS: u32 = 40_000;
/// Dealing ends when as many draws differ as much as the sides do: then the chance is known
/// well enough (Besag and Clifford, Biometrika 78, 1991).
const ENOUGH: u32 = 20;

/// The result of a test of tails.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tail {
    /// The test; of its difference only the sign means something.
    pub test: Test,
    /// The threshold at which the sides differ most, nanoseconds.
    pub threshold_ns: f64,
    /// Calls beyond it, by session.
    pub beyond: [Vec<f64>; 2],
}

/// Calls of a piece of time, and how many of them are beyond each threshold.
type Piece = (u64, Vec<u64>);

/// One session per side. The tail must be longer, or shorter, by more than `factor`: tails differ
/// by as much from run to run.
pub(crate) fn one(before: &Latency, after: &Latency, factor: f64) -> Option<Tail> {
    let pieces = |side: &Latency| side.blocks.iter().filter(|b| b.calls > 0).count();
    if [before, after]
        .iter()
        .any(|l| calls(l) < MIN_CALLS || pieces(l) < MIN_BLOCKS)
    {
        return None;
    }
    let shift = (factor.max(1.0).log2() * f64::from(STEPS)).round() as i32;
    let longer = one_sided(before, shift, after);
    let shorter = one_sided(after, shift, before);
    let (p, threshold, longer) = match (longer, shorter) {
        (Some((p, at)), Some((q, _))) if p <= q => (p, at, true),
        (_, Some((q, at))) => (q, at, false),
        (Some((p, at)), None) => (p, at, true),
        (None, None) => return None,
    };
    Some(Tail {
        test: Test {
            p: (2.0 * p).min(1.0),
            difference: if longer { 1.0 } else { -1.0 },
            margin: 0.0,
        },
        threshold_ns: duration(threshold),
        beyond: [before, after].map(|l| vec![beyond(l, threshold) as f64]),
    })
}

/// Several sessions on a side: Welch's t-test on the square roots of the shares of calls
/// beyond each threshold (their variance hardly depends on the share; Bartlett, Supplement
/// to the Journal of the Royal Statistical Society 3, 1936), corrected for the number of thresholds
/// (Bonferroni).
pub(crate) fn several(sides: [&[&Latency]; 2]) -> Option<Tail> {
    let [before, after] = sides;
    let all = || before.iter().chain(after);
    if all().any(|l| calls(l) < MIN_CALLS) {
        return None;
    }
    let thresholds = thresholds(all().map(|l| (*l, 0)));
    let counts = |side: &[&Latency], at: i32| -> Vec<f64> {
        side.iter().map(|l| beyond(l, at) as f64).collect()
    };
    let tested = thresholds.iter().filter_map(|at| {
        let roots = |side: &[&Latency]| -> Vec<f64> {
            side.iter()
                .map(|l| (beyond(l, *at) as f64 / calls(l) as f64).sqrt())
                .collect()
        };
        // Chance alone makes as much.
        let least = |side: &[&Latency]| {
            let each: Vec<f64> = side.iter().map(|l| 0.25 / calls(l) as f64).collect();
            stats::mean(&each)
        };
        let least = [least(before), least(after)];
        Some((
            *at,
            stats::welch_at_least(&roots(before), &roots(after), least)?,
        ))
    });
    let (at, test) = tested.min_by(|a, b| a.1.p.total_cmp(&b.1.p))?;
    Some(Tail {
        test: Test {
            p: (test.p * thresholds.len() as f64).min(1.0),
            ..test
        },
        threshold_ns: duration(at),
        beyond: [counts(before, at), counts(after, at)],
    })
}

/// Logarithm of a quantile of all calls; `None` when fewer than one call is beyond it.
pub(crate) fn quantile(latency: &Latency, q: f64) -> Option<f64> {
    let hist = sum([(latency, 0)].into_iter());
    has_beyond(latency, q).then(|| crate::spread::quantile(&hist, q))
}

/// Whether there are calls beyond a quantile.
pub(crate) fn has_beyond(latency: &Latency, q: f64) -> bool {
    calls(latency) as f64 * (1.0 - q) >= 1.0 - 1e-9
}

fn duration(bucket: i32) -> f64 {
    (f64::from(bucket) / f64::from(STEPS)).exp2()
}

fn calls(latency: &Latency) -> u64 {
    latency.blocks.iter().map(|b| b.calls).sum()
}

fn beyond(latency: &Latency, bucket: i32) -> u64 {
    latency.blocks.iter().map(|b| past(b, bucket)).sum()
}

/// Calls of a piece from a bucket on.
fn past(block: &Block, bucket: i32) -> u64 {
    let long = block.hist.iter().filter(|(at, _)| *at >= bucket);
    long.map(|(_, n)| n).sum()
}

fn sum<'a>(sides: impl Iterator<Item = (&'a Latency, i32)>) -> BTreeMap<i32, u64> {
    let mut all = BTreeMap::new();
    for (latency, shift) in sides {
        for (bucket, n) in latency.blocks.iter().flat_map(|b| &b.hist) {
            *all.entry(bucket.saturating_add(shift)).or_default() += n;
        }
    }
    all
}

/// Octaves from where the tail of all calls together begins: which call is on which side plays
/// no part, so that choosing them does not favor a difference.
fn thresholds<'a>(sides: impl Iterator<Item = (&'a Latency, i32)>) -> Vec<i32> {
    let all = sum(sides);
    let total: u64 = all.values().sum();
    let mut below = 0;
    let begin = all.iter().find(|(_, n)| {
        below += **n;
        below as f64 >= total as f64 * BEGIN
    });
    let Some((begin, _)) = begin else {
        return Vec::new();
    };
    let mut out = Vec::new();
    let mut at = begin.saturating_add(1);
    while all.range(at..).map(|(_, n)| n).sum::<u64>() >= MIN_BEYOND {
        out.push(at);
        at = at.saturating_add(STEPS);
    }
    out
}

/// Whether `long` has more calls beyond a threshold than `short` has beyond one that is `shift`
/// buckets lower: the chance, and the threshold that shows it best.
fn one_sided(short: &Latency, shift: i32, long: &Latency) -> Option<(f64, i32)> {
    let thresholds = thresholds([(short, 0), (long, 0)].into_iter());
    let pieces = |latency: &Latency, shift: i32| -> Vec<Piece> {
        let used = latency.blocks.iter().filter(|b| b.calls > 0);
        let moved: Vec<i32> = thresholds.iter().map(|t| t.saturating_sub(shift)).collect();
        let counts = |b: &Block| moved.iter().map(|t| past(b, *t)).collect();
        used.map(|b| (b.calls, counts(b))).collect()
    };
    let mut all = pieces(long, 0);
    let ours = all.len();
    all.extend(pieces(short, shift));
    let whole = total(&all, thresholds.len());
    let seen = excess(&total(all.get(..ours)?, thresholds.len()), &whole);
    // The same sessions give the same answer.
    let mut rng = Rng::with_seed(whole.0);
    let mut as_much: Vec<u32> = seen
        .iter()
        .map(|e| if *e > 0.0 { 0 } else { ENOUGH })
        .collect();
    let mut draws = 0;
    while draws < DRAWS && as_much.iter().any(|n| *n < ENOUGH) {
        for i in 0..ours {
            let other = rng.usize(i..all.len());
            all.swap(i, other);
        }
        let drawn = excess(&total(all.get(..ours)?, thresholds.len()), &whole);
        for ((drawn, seen), n) in drawn.iter().zip(&seen).zip(&mut as_much) {
            *n += u32::from(*drawn >= seen - 1e-12);
        }
        draws += 1;
    }
    let chance = |n: &u32| f64::from(n + 1) / f64::from(draws + 1);
    let chances = as_much
        .iter()
        .zip(&seen)
        .map(|(n, seen)| match *seen > 0.0 {
            true => (chance(n) * thresholds.len() as f64).min(1.0),
            false => 1.0,
        });
    let best = chances.zip(&thresholds).zip(&seen);
    let best = best.min_by(|a, b| a.0.0.total_cmp(&b.0.0).then(b.1.total_cmp(a.1)));
    best.map(|((p, threshold), _)| (p, *threshold))
}

fn total(pieces: &[Piece], thresholds: usize) -> Piece {
    let mut sum = (0, vec![0; thresholds]);
    for (calls, beyond) in pieces {
        sum.0 += calls;
        for (sum, n) in sum.1.iter_mut().zip(beyond) {
            *sum += n;
        }
    }
    sum
}

/// The excess of one side's share of calls beyond each threshold over the rest's.
fn excess(side: &Piece, whole: &Piece) -> Vec<f64> {
    let (n, rest) = (side.0.max(1) as f64, (whole.0 - side.0).max(1) as f64);
    let of = |(x, all): (&u64, &u64)| *x as f64 / n - (all - x) as f64 / rest;
    side.1.iter().zip(&whole.1).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::BLOCKS;

    /// Calls of lengths that differ by about 2, of which a share is `long` times as long;
    /// those come in bursts.
    fn run(rng: &mut Rng, calls: u64, share: f64, long: f64) -> Latency {
        let mut blocks = Vec::new();
        for _ in 0..BLOCKS {
            let mut hist: BTreeMap<i32, u64> = BTreeMap::new();
            let burst = rng.f64() * 2.0;
            let mut sum_ns = 0.0;
            for _ in 0..calls / BLOCKS as u64 {
                let mut ns = 1e5 * (rng.f64() + rng.f64() - 1.0).exp2();
                if rng.f64() < share * burst {
                    ns *= long;
                }
                sum_ns += ns;
                *hist
                    .entry((ns.log2() * f64::from(STEPS)).floor() as i32)
                    .or_default() += 1;
            }
            blocks.push(Block {
                calls: hist.values().sum(),
                sum_ns,
                hist: hist.into_iter().collect(),
            });
        }
        Latency {
            blocks,
            ..Latency::default()
        }
    }

    #[test]
    fn a_tail_is_found_that_the_median_does_not_show() {
        let mut rng = Rng::with_seed(7);
        let before = run(&mut rng, 1_500, 0.015, 8.0);
        let after = run(&mut rng, 1_500, 0.015, 8.0 * 29.0);
        let tail = one(&before, &after, 4.0).unwrap();
        assert!(
            tail.test.p < 0.001 && tail.test.difference > 0.0,
            "{tail:?}"
        );
        assert!(tail.threshold_ns > 8e5, "{tail:?}");
        assert!(tail.beyond[0][0] < tail.beyond[1][0], "{tail:?}");
        let tail = one(&after, &before, 4.0).unwrap();
        assert!(
            tail.test.p < 0.001 && tail.test.difference < 0.0,
            "{tail:?}"
        );
        // Twice as long is what runs differ by.
        let twice = run(&mut rng, 1_500, 0.015, 16.0);
        assert!(one(&before, &twice, 4.0).unwrap().test.p > 0.05);
    }

    #[test]
    fn one_burst_is_no_tail() {
        let mut rng = Rng::with_seed(3);
        let before = run(&mut rng, 1_500, 0.0, 1.0);
        let mut after = run(&mut rng, 1_500, 0.0, 1.0);
        after.blocks[5].hist = vec![(230, 40)];
        after.blocks[5].calls = 40;
        let tail = one(&before, &after, 4.0).unwrap();
        assert!(tail.test.p > 0.05, "{tail:?}");
    }

    #[test]
    fn too_few_calls_say_nothing() {
        let mut rng = Rng::with_seed(3);
        let (few, many) = (run(&mut rng, 72, 0.0, 1.0), run(&mut rng, 720, 0.0, 1.0));
        assert_eq!(one(&few, &many, 4.0), None);
        assert_eq!(several([&[&few, &few], &[&many]]), None);
    }

    #[test]
    fn several_sessions_show_a_tail() {
        let mut rng = Rng::with_seed(5);
        let mut side = |long: f64| [(); 4].map(|()| run(&mut rng, 2_400, 0.01, long));
        let (before, after) = (side(4.0), side(60.0));
        let tail = several([&before.each_ref(), &after.each_ref()]).unwrap();
        assert!(tail.test.p < 0.01 && tail.test.difference > 0.0, "{tail:?}");
    }

    /// Runs of one program, whose long calls come in bursts: with no factor to exceed, few
    /// tests call them different.
    #[test]
    fn false_alarms_are_as_rare_as_promised() {
        let mut rng = Rng::with_seed(11);
        let rounds = 400;
        let (mut alone, mut together) = (0, 0);
        for _ in 0..rounds {
            let mut side = || [(); 3].map(|()| run(&mut rng, 480, 0.03, 20.0));
            let (before, after) = (side(), side());
            let p = one(&before[0], &after[0], 1.0).map_or(1.0, |t| t.test.p);
            alone += u32::from(p < 0.05);
            let p = several([&before.each_ref(), &after.each_ref()]).map_or(1.0, |t| t.test.p);
            together += u32::from(p < 0.05);
        }
        let most = f64::from(rounds) * 0.08;
        assert!(f64::from(alone) <= most, "{alone}");
        assert!(f64::from(together) <= most, "{together}");
        // The test can see something.
        assert!(alone > 0, "{alone}");
    }
}
