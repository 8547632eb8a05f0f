//! Simulated interleavings: threads that share one position.

use super::*;

/// A call as it was, and as the kernel side sees it.
#[derive(Clone, Copy, Debug)]
struct Seen {
    truth: i64,
    call: Use,
    moved: Moved,
}

/// The activities of the simulated threads.
struct Scene {
    threads: usize,
    calls: usize,
    sizes: &'static [i64],
    appends: bool,
    /// One step in this many belongs to an unrelated process: an append through another
    /// description. 0: never.
    others: u32,
    /// One step in so many moves the position. 0: none does.
    seeks: u32,
}

const READS: Scene = Scene {
    threads: 4,
    calls: 500,
    sizes: &[4096],
    appends: false,
    others: 0,
    seeks: 0,
};

#[derive(Clone, Copy)]
enum Phase {
    Idle,
    Entered {
        entry: i64,
        begin_ns: i64,
    },
    Moved {
        entry: i64,
        begin_ns: i64,
        truth: i64,
        bytes: i64,
    },
}

/// Calls in the order of their ends, and the calls of lseek(). Between its entry and its I/O, and
/// between its I/O and its end, each call lets others run.
fn simulate(rng: &mut fastrand::Rng, scene: &Scene) -> (Vec<Seen>, Vec<Use>) {
    let mut phases = vec![Phase::Idle; scene.threads];
    let (mut position, mut size) = (0, 0);
    let (mut seen, mut seeks) = (Vec::new(), Vec::new());
    let mut begun = 0;
    let mut now = 0;
    while seen.len() < scene.calls {
        now += 1;
        if scene.others > 0 && rng.u32(0..scene.others) == 0 {
            size += rng.i64(1..2000);
        }
        if scene.seeks > 0 && rng.u32(0..scene.seeks) == 0 {
            position = 4096 * rng.i64(0..4);
            seeks.push(unmoved(now, now));
            now += 1;
        }
        let thread = rng.usize(0..scene.threads);
        phases[thread] = match phases[thread] {
            // From time to time no thread is in a call.
            Phase::Idle if begun == scene.calls || rng.u32(0..3) > 0 => Phase::Idle,
            Phase::Idle => {
                begun += 1;
                Phase::Entered {
                    entry: if scene.appends { size } else { position },
                    begin_ns: now,
                }
            }
            Phase::Entered { entry, begin_ns } => {
                let bytes = *rng.choice(scene.sizes).unwrap();
                let truth = if scene.appends { size } else { position };
                position = truth + bytes;
                size = size.max(position);
                Phase::Moved {
                    entry,
                    begin_ns,
                    truth,
                    bytes,
                }
            }
            Phase::Moved {
                entry,
                begin_ns,
                truth,
                bytes,
            } => {
                let derived = position - bytes;
                let moved = Moved {
                    row: seen.len(),
                    entry,
                    derived,
                    bytes,
                    appends: scene.appends,
                };
                let call = Use {
                    begin_ns,
                    ended_at_ns: now,
                    moved: Some(moved),
                };
                seen.push(Seen { truth, call, moved });
                Phase::Idle
            }
        };
    }
    (seen, seeks)
}

/// A call that moves the position or gives it up.
fn unmoved(begin_ns: i64, ended_at_ns: i64) -> Use {
    Use {
        begin_ns,
        ended_at_ns,
        moved: None,
    }
}

/// The offsets of the calls, settled after each `batch` of them.
fn resolve(seen: &[Seen], seeks: &[Use], batch: usize) -> Vec<Option<i64>> {
    let mut positions = Positions::default();
    let mut offsets: Vec<_> = seen
        .iter()
        .map(|s| (s.moved.row, Some(s.moved.derived)))
        .collect();
    let mut set = |row, offset| {
        let at = offsets.binary_search_by_key(&row, |(row, _)| *row).unwrap();
        offsets[at].1 = offset;
    };
    let mut seeks = seeks.iter().peekable();
    for (i, s) in seen.iter().enumerate() {
        while let Some(seek) = seeks.next_if(|seek| seek.ended_at_ns <= s.call.ended_at_ns) {
            positions.note(1, 1, *seek);
        }
        positions.note(1, 1, s.call);
        if (i + 1) % batch == 0 {
            positions.resolve(&mut set);
        }
    }
    positions.resolve(&mut set);
    offsets.into_iter().map(|(_, offset)| offset).collect()
}

/// How many calls of how many have an offset; fails when one is wrong.
fn known(seen: &[Seen], offsets: &[Option<i64>], what: &str) -> (usize, usize) {
    let mut known = 0;
    for (s, offset) in seen.iter().zip(offsets) {
        if let Some(offset) = offset {
            assert_eq!(*offset, s.truth, "{what}: {s:?}");
            known += 1;
        }
    }
    (known, seen.len())
}

/// Runs a scene with many seeds; the share of calls with an offset, all of them right.
fn share_known(scene: &Scene, batch: usize) -> f64 {
    let (mut all, mut right) = (0, 0);
    for seed in 0..300 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let (seen, seeks) = simulate(&mut rng, scene);
        let offsets = resolve(&seen, &seeks, batch);
        let (known, of) = known(&seen, &offsets, &format!("seed {seed}"));
        right += known;
        all += of;
    }
    right as f64 / all as f64
}

#[test]
fn what_is_told_is_the_truth() {
    let mixed: &[i64] = &[1, 10, 100, 512, 4096, 5000];
    for (scene, at_least) in [
        (READS, 0.5),
        (
            Scene {
                threads: 2,
                ..READS
            },
            0.8,
        ),
        (
            Scene {
                sizes: mixed,
                ..READS
            },
            0.5,
        ),
        (
            Scene {
                appends: true,
                ..READS
            },
            0.3,
        ),
        (
            Scene {
                appends: true,
                threads: 1,
                others: 5,
                ..READS
            },
            1.0,
        ),
        (
            Scene {
                appends: true,
                others: 20,
                sizes: mixed,
                ..READS
            },
            0.2,
        ),
        (
            Scene {
                threads: 2,
                seeks: 40,
                ..READS
            },
            0.5,
        ),
    ] {
        let share = share_known(&scene, usize::MAX);
        assert!(share >= at_least, "{share} of {at_least}");
    }
}

#[test]
fn small_batches_say_nothing_wrong() {
    for batch in [1, 3, 10, 40] {
        share_known(&READS, batch);
    }
}

#[test]
fn missing_calls_make_no_offset_wrong() {
    for seed in 0..300 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let (mut seen, seeks) = simulate(&mut rng, &READS);
        seen.retain(|_| rng.u32(0..20) > 0);
        let batch = rng.usize(1..80);
        known(
            &seen,
            &resolve(&seen, &seeks, batch),
            &format!("seed {seed}"),
        );
    }
}

fn call(row: usize, times: (i64, i64), entry: i64, derived: i64, bytes: i64) -> Use {
    let moved = Moved {
        row,
        entry,
        derived,
        bytes,
        appends: false,
    };
    Use {
        begin_ns: times.0,
        ended_at_ns: times.1,
        moved: Some(moved),
    }
}

fn appended(call: Use) -> Use {
    let moved = call.moved.map(|m| Moved { appends: true, ..m });
    Use { moved, ..call }
}

/// Rows whose offset differs from the derived one.
fn settled(calls: &[Use]) -> Vec<(usize, Option<i64>)> {
    let mut positions = Positions::default();
    for call in calls {
        positions.note(1, 1, *call);
    }
    let mut out = Vec::new();
    positions.resolve(|row, offset| out.push((row, offset)));
    out.sort_unstable();
    let unknown = out.iter().filter(|(_, offset)| offset.is_none()).count();
    assert_eq!(positions.unknown(), unknown as u64);
    out
}

#[test]
fn calls_that_pass_each_other_have_no_owner() {
    // Both entered at 0; which one moved the first ten bytes is not known.
    let calls = [call(0, (1, 5), 0, 10, 10), call(1, (2, 6), 0, 10, 10)];
    assert_eq!(settled(&calls), [(0, None), (1, None)]);
    // A call with a certain place leaves its end as the position.
    let calls = [
        call(0, (1, 5), 0, 0, 10),
        call(1, (2, 6), 0, 10, 10),
        call(2, (3, 7), 0, 20, 5),
    ];
    assert_eq!(settled(&calls), []);
    let calls = [
        call(0, (1, 5), 0, 0, 10),
        call(1, (2, 6), 0, 15, 10),
        call(2, (3, 7), 20, 20, 5),
    ];
    assert_eq!(settled(&calls), [(1, Some(10))]);
}

#[test]
fn a_position_that_something_unseen_moved_is_unknown() {
    let alone = call(7, (1, 5), 0, 50, 50);
    assert_eq!(settled(&[alone]), [(7, None)]);
    // Under O_APPEND others move the end of the file, not this position.
    assert_eq!(settled(&[appended(alone)]), []);
}

/// The processor stood still between the end of a call and the look at its position, while another thread wrote.
#[test]
fn a_position_that_was_read_late_says_nothing() {
    let late = appended(call(7, (1, 5), 0, 50, 50));
    let next = |entry, derived| appended(call(8, (6, 9), entry, derived, 50));
    // This one began at an end of the file that is before the position which the first one is said to have left.
    assert_eq!(settled(&[late, next(50, 50)]), [(7, None)]);
    assert_eq!(settled(&[late, next(100, 100)]), []);
}

#[test]
fn seeks_and_closed_descriptors_take_offsets_away() {
    for alone in [
        call(0, (10, 20), 0, 0, 50),
        appended(call(0, (10, 20), 0, 50, 50)),
    ] {
        for (times, takes) in [
            ((12, 13), true),
            ((5, 10), true),
            ((5, 9), false),
            ((21, 22), false),
        ] {
            let expected: &[_] = if takes { &[(0, None)] } else { &[] };
            assert_eq!(
                settled(&[alone, unmoved(times.0, times.1)]),
                expected,
                "{times:?}"
            );
        }
    }
}

#[test]
fn descriptions_at_one_address_are_not_mixed_up() {
    // A file of 200 bytes is opened and read by two threads, three times: each time at the
    // same address.
    let mut calls = Vec::new();
    for turn in 0..3 {
        let (row, at) = (2 * turn as usize, 100 * turn);
        calls.push(call(row, (at + 1, at + 5), 0, 0, 100));
        calls.push(call(row + 1, (at + 2, at + 6), 0, 100, 100));
    }
    assert_eq!(settled(&calls), []);
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
        for row in 0..60 {
            let seen = call(row, (number(), number()), number(), number(), number());
            positions.note(1, 1, if row % 2 == 0 { appended(seen) } else { seen });
            if row % 5 == 0 {
                positions.note(1, 1, unmoved(number(), number()));
            }
        }
        positions.resolve(|row, _| assert!(row < 60));
    }
}

#[test]
fn what_is_kept_is_bounded() {
    let mut positions = Positions::default();
    for i in 0..20_000 {
        positions.note(1, 1, call(0, (i, i + 2), 0, 1, 5));
    }
    assert!(positions.descriptions[&(1, 1)].len() <= MAX_WAITING);
    for id in 0..(MAX_DESCRIPTIONS as u32 * 2) {
        positions.note(id, 1, call(0, (1, 2), 0, 0, 5));
    }
    assert!(positions.descriptions.len() <= MAX_DESCRIPTIONS);
    positions.resolve(|_, _| {});
    assert!(positions.descriptions.is_empty());
}

#[test]
fn nothing_is_settled_among_calls_that_were_left_out() {
    let calls = [call(0, (1, 5), 0, 0, 10), call(1, (2, 6), 0, 10, 10)];
    for (left_out, expected) in [(false, &[][..]), (true, &[(1, None)][..])] {
        let mut positions = Positions::new(left_out);
        calls.iter().for_each(|c| positions.note(1, 1, *c));
        let mut offsets = Vec::new();
        positions.resolve(|row, offset| offsets.push((row, offset)));
        assert_eq!(offsets, expected);
    }
}
