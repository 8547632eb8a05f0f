//! Simulated interleavings: threads that share one position.

use super::*;

/// A call as it really was, and as the kernel side would see it.
#[derive(Clone, Copy, Debug)]
struct Seen {
    truth: i64,
    bytes: i64,
    entry: i64,
    derived: i64,
}

/// `calls` calls by `threads` threads, in order of their ends. Between its
/// entry and its I/O, and between its I/O and its end, each lets others run.
fn interleave(rng: &mut fastrand::Rng, threads: usize, calls: usize, sizes: &[i64]) -> Vec<Seen> {
    #[derive(Clone, Copy)]
    enum Phase {
        Idle,
        Entered { entry: i64 },
        Done { entry: i64, truth: i64, bytes: i64 },
    }
    let mut phases = vec![Phase::Idle; threads];
    let mut position = 0;
    let mut seen = Vec::new();
    let mut begun = 0;
    while seen.len() < calls {
        let thread = rng.usize(0..threads);
        phases[thread] = match phases[thread] {
            Phase::Idle if begun == calls => Phase::Idle,
            Phase::Idle => {
                begun += 1;
                Phase::Entered { entry: position }
            }
            Phase::Entered { entry } => {
                let (truth, bytes) = (position, *rng.choice(sizes).unwrap());
                position += bytes;
                Phase::Done {
                    entry,
                    truth,
                    bytes,
                }
            }
            Phase::Done {
                entry,
                truth,
                bytes,
            } => {
                seen.push(Seen {
                    truth,
                    bytes,
                    entry,
                    derived: position - bytes,
                });
                Phase::Idle
            }
        };
    }
    seen
}

/// What comes out for `seen`, with a resolution after every `batch` calls.
fn resolve(seen: &[Seen], batch: usize) -> Vec<Option<i64>> {
    let mut positions = Positions::default();
    let mut offsets = vec![None; seen.len()];
    for (row, call) in seen.iter().enumerate() {
        if call.entry == call.derived {
            positions.certain(1, 1, call.derived, call.bytes);
            offsets[row] = Some(call.derived);
        } else {
            let raced = Raced {
                row,
                entry: call.entry,
                derived: call.derived,
                bytes: call.bytes,
            };
            positions.raced(1, 1, raced);
        }
        if (row + 1) % batch == 0 {
            positions.resolve(|row, offset| offsets[row] = offset);
        }
    }
    positions.resolve(|row, offset| offsets[row] = offset);
    offsets
}

/// Ranges in order, none missing, none twice.
fn is_partition(seen: &[Seen], offsets: &[Option<i64>]) -> bool {
    let mut ranges: Vec<(i64, i64)> = seen
        .iter()
        .zip(offsets)
        .filter_map(|(s, o)| o.map(|o| (o, o + s.bytes)))
        .collect();
    ranges.sort();
    let total: i64 = seen.iter().map(|s| s.bytes).sum();
    ranges.len() == seen.len()
        && ranges.first().is_none_or(|r| r.0 == 0)
        && ranges.last().is_none_or(|r| r.1 == total)
        && ranges.windows(2).all(|w| w[0].1 == w[1].0)
}

#[test]
fn equal_sizes_come_out_as_the_exact_partition() {
    for seed in 0..400 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let threads = rng.usize(2..9);
        let seen = interleave(&mut rng, threads, 500, &[4096]);
        assert!(seen.iter().any(|s| s.entry != s.derived), "nothing raced");
        let offsets = resolve(&seen, usize::MAX);
        assert!(is_partition(&seen, &offsets), "seed {seed}");
    }
}

#[test]
fn mixed_sizes_come_out_as_the_exact_partition() {
    let (mut right, mut all) = (0, 0);
    for seed in 0..400 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let threads = rng.usize(2..9);
        let seen = interleave(&mut rng, threads, 500, &[1, 10, 100, 512, 4096, 5000]);
        let offsets = resolve(&seen, usize::MAX);
        assert!(is_partition(&seen, &offsets), "seed {seed}");
        right += seen
            .iter()
            .zip(&offsets)
            .filter(|(s, o)| **o == Some(s.truth))
            .count();
        all += seen.len();
    }
    // In this simulation every call races with several others, and more than
    // one order of them explains what was seen.
    assert!(right * 10 >= all * 6, "{right} of {all}");
}

#[test]
fn offsets_lie_in_the_window_of_their_call_and_never_overlap() {
    for seed in 0..200 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut seen = interleave(&mut rng, 6, 400, &[100, 300, 700]);
        // Some records never arrive, and resolution happens in between.
        seen.retain(|_| rng.u32(0..20) > 0);
        let batch = rng.usize(1..80);
        let offsets = resolve(&seen, batch);
        let mut placed = 0;
        for (call, offset) in seen.iter().zip(&offsets) {
            if let Some(offset) = offset {
                assert!(
                    (call.entry..=call.derived).contains(offset),
                    "seed {seed}: {call:?}"
                );
                placed += 1;
            }
        }
        assert!(
            placed * 10 >= seen.len() * 8,
            "seed {seed}: {placed} of {}",
            seen.len()
        );
        let raced = |s: &&(&Seen, &Option<i64>)| s.0.entry != s.0.derived;
        let mut ranges: Vec<(i64, i64)> = seen
            .iter()
            .zip(&offsets)
            .collect::<Vec<_>>()
            .iter()
            .filter(raced)
            .filter_map(|(s, o)| o.map(|o| (o, o + s.bytes)))
            .collect();
        ranges.sort();
        assert!(ranges.windows(2).all(|w| w[0].1 <= w[1].0), "seed {seed}");
    }
}

#[test]
fn small_batches_still_give_a_partition_of_equal_sizes() {
    let mut exact = 0;
    for seed in 0..200 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let seen = interleave(&mut rng, 4, 300, &[4096]);
        let batch = rng.usize(10..60);
        exact += usize::from(is_partition(&seen, &resolve(&seen, batch)));
    }
    // A call that ends in the next batch may own what is given away in this
    // one; that is rare.
    assert!(exact >= 190, "{exact} of 200");
}

#[test]
fn two_calls_that_pass_each_other() {
    // Both entered at 0; the one that did its I/O first ended last.
    let seen = [
        Seen {
            truth: 10,
            bytes: 10,
            entry: 0,
            derived: 10,
        },
        Seen {
            truth: 0,
            bytes: 10,
            entry: 0,
            derived: 10,
        },
    ];
    let offsets = resolve(&seen, usize::MAX);
    assert!(is_partition(&seen, &offsets), "{offsets:?}");
    // The size of one gives it away.
    let seen = [
        Seen {
            truth: 10,
            bytes: 5,
            entry: 0,
            derived: 10,
        },
        Seen {
            truth: 0,
            bytes: 10,
            entry: 0,
            derived: 5,
        },
    ];
    assert_eq!(resolve(&seen, usize::MAX), [Some(10), Some(0)]);
}

#[test]
fn no_place_is_no_offset() {
    let mut positions = Positions::default();
    positions.certain(1, 1, 0, 100);
    positions.raced(
        1,
        1,
        Raced {
            row: 7,
            entry: 0,
            derived: 50,
            bytes: 50,
        },
    );
    let mut out = Vec::new();
    positions.resolve(|row, offset| out.push((row, offset)));
    assert_eq!(out, [(7, None)]);
}

#[test]
fn moving_the_position_back_begins_anew() {
    let mut positions = Positions::default();
    for _ in 0..3 {
        // Two threads read a file of 200 bytes from its beginning.
        positions.certain(1, 1, 0, 100);
        positions.raced(
            1,
            1,
            Raced {
                row: 1,
                entry: 0,
                derived: 100,
                bytes: 100,
            },
        );
        let mut out = Vec::new();
        positions.resolve(|row, offset| out.push((row, offset)));
        assert_eq!(out, [(1, Some(100))]);
    }
}

#[test]
fn hostile_numbers() {
    for seed in 0..300 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let edges = [0, 1, -1, i64::MAX, i64::MIN, i64::MAX - 1, 4096];
        let mut number = || match rng.u32(0..3) {
            0 => edges[rng.usize(0..edges.len())],
            1 => rng.i64(-100..100),
            _ => rng.i64(..),
        };
        let mut positions = Positions::default();
        let mut rows = 0;
        for row in 0..60 {
            let (a, b, c) = (number(), number(), number());
            if row % 3 == 0 {
                positions.certain(1, 1, a, b);
            } else {
                positions.raced(
                    1,
                    1,
                    Raced {
                        row,
                        entry: a,
                        derived: b,
                        bytes: c,
                    },
                );
                rows += 1;
            }
        }
        positions.resolve(|_, _| rows -= 1);
        assert_eq!(rows, 0);
    }
}

#[test]
fn what_is_kept_is_bounded() {
    let mut positions = Positions::default();
    for i in 0..10_000 {
        positions.certain(1, 1, i * 10, 5);
    }
    assert!(positions.descriptions[&(1, 1)].claims.len() <= MAX_CLAIMS);
    for id in 0..(MAX_DESCRIPTIONS as u32 * 2) {
        positions.certain(id, 1, 0, 5);
    }
    assert!(positions.descriptions.len() <= MAX_DESCRIPTIONS);
    positions.resolve(|_, _| {});
    positions.resolve(|_, _| {});
    assert!(positions.descriptions.is_empty());
}

#[test]
fn nothing_is_placed_among_calls_that_were_left_out() {
    let call = Raced {
        row: 3,
        entry: 0,
        derived: 100,
        bytes: 50,
    };
    for left_out in [false, true] {
        let mut positions = Positions::new(left_out);
        positions.raced(1, 1, call);
        let mut offsets = Vec::new();
        positions.resolve(|row, offset| offsets.push((row, offset.is_none())));
        assert_eq!(offsets, [(3, left_out)]);
    }
}
