//! Comparisons of how long calls take.

use std::collections::BTreeMap;

use fastrand::Rng;

use super::session;
use crate::profile::*;
use crate::result::{Diff, Figure, Metric, Outcome, Verdict};
use crate::{Options, Profile, compare};

const PATH: &str = "/data/app.db";

/// Durations of the calls of a name: a base that scatters by about 2, and a share of long
/// calls, which come in bursts.
#[derive(Clone, Copy)]
struct Load {
    call: &'static str,
    calls: u64,
    base_ns: f64,
    share: f64,
    long_ns: f64,
}

const SYNC: Load = Load {
    call: "fdatasync",
    calls: 1_536,
    base_ns: 1e6,
    share: 0.02,
    long_ns: 7.5e6,
};
const READ: Load = Load {
    call: "pread64",
    calls: 4_800,
    base_ns: 5e3,
    share: 0.1,
    long_ns: 3e5,
};
const STAT: Load = Load {
    call: "newfstatat",
    calls: 480,
    base_ns: 2e3,
    share: 0.0,
    long_ns: 0.0,
};

fn latency(rng: &mut Rng, load: Load, factor: f64) -> (Latency, f64) {
    let mut blocks = Vec::new();
    let mut all = Vec::new();
    for _ in 0..BLOCKS {
        let burst = rng.f64() * 2.0;
        let mut block = Block::default();
        let mut hist: BTreeMap<i32, u64> = BTreeMap::new();
        for _ in 0..load.calls / BLOCKS as u64 {
            let base = match rng.f64() < load.share * burst {
                true => load.long_ns,
                false => load.base_ns,
            };
            let ns = base * factor * (rng.f64() + rng.f64() - 1.0).exp2();
            block.calls += 1;
            block.sum_ns += ns;
            all.push(ns);
            *hist
                .entry((ns.log2() * f64::from(STEPS)).floor() as i32)
                .or_default() += 1;
        }
        block.hist = hist.into_iter().collect();
        blocks.push(block);
    }
    all.sort_by(f64::total_cmp);
    let at = |q: f64| {
        all.get((all.len() as f64 * q) as usize)
            .map(|ns| *ns as i64)
    };
    let latency = Latency {
        p50_ns: at(0.5),
        p90_ns: at(0.9),
        p99_ns: at(0.99),
        max_ns: all.last().map(|ns| *ns as i64),
        blocks,
    };
    (latency, all.iter().sum())
}

/// A run of some loads. `scatter` is the standard deviation of the logarithm of its speed, which
/// all of its calls share in part.
fn run(rng: &mut Rng, loads: &[Load], scatter: f64) -> Profile {
    let mut normal = || (0..12).map(|_| rng.f64()).sum::<f64>() - 6.0;
    let common = normal() * scatter / 2f64.sqrt();
    let factors: Vec<f64> = loads
        .iter()
        .map(|_| (common + normal() * scatter / 2f64.sqrt()).exp())
        .collect();
    let calls: Vec<_> = loads
        .iter()
        .map(|l| (l.call, PATH, l.calls as i64, 4096, 1))
        .collect();
    let mut profile = session(&calls);
    let mut whole = 0.0;
    for ((load, factor), operation) in loads.iter().zip(factors).zip(&mut profile.operations) {
        let (latency, sum) = latency(rng, *load, factor);
        operation.time_ns = sum as i64;
        whole += sum;
        profile.latencies.insert(load.call.to_owned(), latency);
    }
    profile.duration_ns = (whole * 1.2) as i64;
    profile
}

fn asked(before: &[Profile], after: &[Profile]) -> Diff {
    let options = Options {
        guards: Some(vec![Metric::Time, Metric::P99]),
        ..Options::default()
    };
    compare(before, after, &options).unwrap()
}

fn plain(before: &[Profile], after: &[Profile]) -> Diff {
    compare(before, after, &Options::default()).unwrap()
}

/// Long calls 29 times as long, while the median is a bit shorter.
fn slowed() -> Load {
    Load {
        base_ns: SYNC.base_ns * 0.8,
        long_ns: SYNC.long_ns * 29.0,
        ..SYNC
    }
}

#[test]
fn a_tail_29_times_as_long_is_worse() {
    let mut rng = Rng::with_seed(1);
    let before = [run(&mut rng, &[SYNC, READ, STAT], 0.0)];
    let after = [run(&mut rng, &[slowed(), READ, STAT], 0.0)];
    let diff = asked(&before, &after);
    assert_eq!(diff.outcome, Outcome::Worse);
    let first = &diff.changes[0];
    assert_eq!(
        (first.subject.as_str(), first.verdict),
        ("fdatasync", Verdict::Worse)
    );
    assert!(first.fails && first.impact_ns > Some(1e9), "{first:?}");
    assert!(
        first
            .moves
            .iter()
            .any(|m| m.starts_with("median") && m.ends_with("shorter"))
    );
    assert!(
        first
            .moves
            .iter()
            .any(|m| m.starts_with("p99") && m.contains("times as long"))
    );
    assert!(
        first
            .moves
            .iter()
            .any(|m| m.contains(" calls longer than ")),
        "{first:?}"
    );
    // The other way round.
    let diff = asked(&after, &before);
    assert_ne!(diff.outcome, Outcome::Worse);
    assert!(diff.changes.iter().all(|c| c.verdict != Verdict::Worse));
    assert_eq!(diff.changes[0].verdict, Verdict::Better);
}

#[test]
fn a_large_change_that_is_not_proven_comes_before_trifles() {
    let mut rng = Rng::with_seed(1);
    let before = [run(&mut rng, &[SYNC, READ, STAT], 0.0)];
    let mut slow = run(&mut rng, &[slowed(), READ, STAT], 0.0);
    let visit = |ms: i64| LayerVisit {
        call: Some("fdatasync".to_owned()),
        layer: "block".to_owned(),
        name: "vda".to_owned(),
        visits: 1_536,
        self_ns: ms * 1_000_000,
    };
    let mut quick = before[0].clone();
    quick.layers.push(visit(20));
    slow.layers.push(visit(5_000));
    slow.operations.push(Operation {
        syscall: "getdents64".to_owned(),
        path: Some("/tmp".to_owned()),
        calls: 1,
        bytes: 432,
        time_ns: 4_000,
        ..Operation::default()
    });
    let diff = plain(&[quick.clone()], &[slow.clone()]);
    let [call, layer] = diff.unproven.as_slice() else {
        panic!("{:#?}", diff.unproven);
    };
    assert_eq!((call.subject.as_str(), call.fails), ("fdatasync", false));
    assert_eq!(call.mostly_on.as_deref(), Some(PATH));
    assert_eq!(layer.subject, "layer block (vda)");
    assert!(
        diff.changes
            .iter()
            .any(|c| c.subject == "getdents64 on /tmp")
    );
    let text = &diff.headline.text;
    assert!(text.starts_with("After was slower: it ran "), "{text}");
    assert!(text.contains("fdatasync on /data/app.db took "), "{text}");
    assert!(text.contains("of it in the queue of vda"), "{text}");
    assert!(text.ends_with("cannot prove it."), "{text}");
    assert!(!diff.headline.proven && diff.headline.direction == Verdict::Worse);
    // And faster the other way round.
    let text = plain(&[slow], &[quick]).headline.text;
    assert!(text.starts_with("After was faster: it ran "), "{text}");
}

#[test]
fn a_shorter_median_is_not_better_where_the_tail_got_longer() {
    let quick = Load {
        base_ns: SYNC.base_ns / 8.0,
        ..SYNC
    };
    let worse_tail = Load {
        long_ns: SYNC.long_ns * 29.0,
        ..quick
    };
    let mut rng = Rng::with_seed(4);
    let mut side = |load: Load| [(); 4].map(|()| run(&mut rng, &[load, STAT], 0.05));
    let (before, better, tail) = (side(SYNC), side(quick), side(worse_tail));
    let verdict = |after: &[Profile]| {
        let diff = plain(&before, after);
        let row = diff
            .tables
            .syscalls
            .iter()
            .find(|r| r.name == SYNC.call)
            .unwrap();
        let change = diff
            .changes
            .iter()
            .find(|c| c.metric.is_duration())
            .unwrap();
        (row.figure(Metric::P50).unwrap().verdict, change.verdict)
    };
    assert_eq!(verdict(&better), (Verdict::Better, Verdict::Better));
    assert_eq!(verdict(&tail), (Verdict::Mixed, Verdict::Worse));
}

#[test]
fn changes_come_in_the_order_of_their_impact() {
    let mut rng = Rng::with_seed(9);
    let twice = |load: Load, factor: f64| Load {
        base_ns: load.base_ns * factor,
        long_ns: load.long_ns * factor,
        ..load
    };
    let mut side = |loads: &[Load]| [(); 4].map(|()| run(&mut rng, loads, 0.02));
    let before = side(&[SYNC, READ, STAT]);
    let after = side(&[twice(SYNC, 1.5), twice(READ, 3.0), STAT]);
    let diff = plain(&before, &after);
    let parts = diff.changes.iter().filter(|c| c.table == "syscalls");
    let subjects: Vec<&str> = parts.map(|c| c.subject.as_str()).collect();
    assert_eq!(subjects, ["fdatasync", "pread64"], "{:#?}", diff.changes);
    assert_eq!(
        diff.headline.source.as_deref(),
        Some("fdatasync on /data/app.db")
    );
}

/// Under a load of fixed duration times are of as many calls.
#[test]
fn a_fixed_time_is_no_equal_time() {
    let mut rng = Rng::with_seed(2);
    let slow = Load {
        calls: READ.calls / 4,
        base_ns: READ.base_ns * 4.0,
        long_ns: READ.long_ns * 4.0,
        ..READ
    };
    let close = Load {
        call: "close",
        ..STAT
    };
    let mut before = run(&mut rng, &[READ, STAT, close], 0.0);
    let mut after = run(&mut rng, &[slow, STAT, close], 0.0);
    before.duration_ns = 5_000_000_000;
    after.duration_ns = 5_000_000_000;
    let diff = plain(&[before], &[after]);
    assert!(diff.notes.iter().any(|n| n.contains("fixed time")));
    let impact = diff.headline.impact_ns.unwrap();
    let before = diff
        .totals
        .iter()
        .find(|f| f.metric == Metric::Time)
        .unwrap()
        .before
        .unwrap();
    // A quarter of the reads took as long.
    assert!((2.0..4.0).contains(&(impact / before)), "{impact} {before}");
    let text = &diff.headline.text;
    assert!(text.contains("Call for call, After spent"), "{text}");
    assert!(text.contains("more in I/O calls; it made"), "{text}");
    // A quarter of the calls in the same time is no improvement.
    let calls = |figures: &[Figure]| {
        let found = figures.iter().find(|f| f.metric == Metric::Calls);
        found.map(|f| f.verdict)
    };
    let reads = diff
        .tables
        .syscalls
        .iter()
        .find(|row| row.name == READ.call);
    assert_eq!(calls(&diff.totals), Some(Verdict::Differs));
    assert_eq!(calls(&reads.unwrap().figures), Some(Verdict::Differs));
    let better: Vec<_> = diff
        .changes
        .iter()
        .filter(|c| c.verdict == Verdict::Better)
        .collect();
    assert!(better.is_empty(), "{better:#?}");
    assert_eq!(diff.outcome, Outcome::Changed);
}

/// Fewer calls are better where they also took less time.
#[test]
fn fewer_calls_that_take_longer_are_no_improvement() {
    let fewer = |times: f64| Load {
        calls: READ.calls / 4,
        base_ns: READ.base_ns * times,
        long_ns: READ.long_ns * times,
        ..READ
    };
    let close = Load {
        call: "close",
        ..STAT
    };
    for (times, expected) in [(1.0, Verdict::Better), (8.0, Verdict::Differs)] {
        let mut rng = Rng::with_seed(3);
        let before = run(&mut rng, &[READ, STAT, close], 0.0);
        let after = run(&mut rng, &[fewer(times), STAT, close], 0.0);
        let diff = plain(&[before], &[after]);
        let reads = diff
            .tables
            .syscalls
            .iter()
            .find(|row| row.name == READ.call);
        let calls = reads.and_then(|row| row.figure(Metric::Calls)).unwrap();
        assert_eq!(calls.verdict, expected, "{times}: {}", calls.why);
    }
}

/// Runs of one program: in one comparison of twenty something may be called different, in all
/// of its statistics together.
#[test]
fn false_alarms_are_as_rare_as_documented() {
    let loads = [SYNC, READ, STAT];
    let rounds = 100;
    for (sessions, scatter) in [(1, 0.12), (3, 0.2), (5, 0.3)] {
        let mut rng = Rng::with_seed(sessions as u64);
        let (mut alarms, mut unasked, mut unproven) = (0, 0, 0);
        for _ in 0..rounds {
            let mut side = || -> Vec<Profile> {
                (0..sessions)
                    .map(|_| run(&mut rng, &loads, scatter))
                    .collect()
            };
            let (before, after) = (side(), side());
            alarms += u32::from(asked(&before, &after).outcome != Outcome::WithinNoise);
            let diff = plain(&before, &after);
            unproven += u32::from(!diff.unproven.is_empty());
            if sessions == 1 {
                unasked += u32::from(diff.outcome != Outcome::WithinNoise);
            }
        }
        // 5 %, and what a sample of this size may be above that.
        assert!(alarms <= 10, "{sessions} sessions: {alarms} of {rounds}");
        assert_eq!((unasked, unproven), (0, 0), "{sessions} sessions");
    }
}
