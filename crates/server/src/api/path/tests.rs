use std::path::Path;

use fathom_model::layers::Layer;
use fathom_model::meta::{RecordedLayer, SessionMeta};
use fathom_query::{Db, Limits};
use fathom_testkit::sample::{self, Call, Files, START};
use fathom_testkit::waits::{self, Block, Wait};

use super::*;

/// Request 1 of thread 100 waits for its helper (101), whose request 2 waits for a device; before,
/// it changes between running and waiting many times.
fn gathered(dir: &Path) -> CriticalPath {
    let mut files = Files::new(dir);
    let mut all: Vec<Wait> = (0..50)
        .map(|i| Wait::new(100, 1_000 + i * 20, 1_010 + i * 20, "timer").by("timer", "timer"))
        .collect();
    all.push(
        Wait::new(100, 5_000, 100_000, "futex")
            .woken(95_000)
            .by_thread(101, "helper")
            .within(1, "read"),
    );
    all.push(
        Wait::new(101, 21_000, 79_000, "disk")
            .woken(78_000)
            .by_block(22_000)
            .within(2, "fdatasync"),
    );
    files
        .add(&sample::lives(&[
            (100, 100, "server", START, None),
            (100, 101, "helper", START, None),
        ]))
        .add(&sample::files(&[(1, "/srv/log")]))
        .add(&sample::syscalls(
            1,
            &[
                Call::new("read", 1_000, 109_000).by(100, 100),
                Call::new("fdatasync", 20_000, 60_000).on(1).by(100, 101),
            ],
        ))
        .add(&waits::waits(&all))
        .add(&waits::blocks(&[Block {
            tid: 101,
            rid: Some(2),
            queued_ns: 22_000,
            issued_ns: 60_000,
            completed_ns: 77_500,
        }]));
    let layers = Layer::ALL.iter().map(|layer| RecordedLayer {
        name: *layer,
        recorded: true,
        reason: String::new(),
    });
    let meta = SessionMeta {
        layers: layers.collect(),
        ..sample::meta()
    };
    let db = Db::open_parts(&meta, |table| files.parts(table), Limits::default()).unwrap();
    CriticalPath::gather(&db, &meta, Scope::Request(1)).unwrap()
}

/// The sums of an answer by kind.
fn sums(answer: &PathAnswer) -> Vec<(String, i64)> {
    let mut sums = std::collections::BTreeMap::new();
    let own = answer.segments.iter().map(|s| (s.kind, s.dur_ns));
    let parts = answer.rest.iter().flat_map(|rest| &rest.parts);
    for (kind, dur_ns) in own.chain(parts.map(|part| (part.kind, part.dur_ns))) {
        *sums.entry(format!("{kind:?}")).or_default() += dur_ns;
    }
    sums.into_iter().collect()
}

#[test]
fn segments_are_those_of_the_path() {
    let dir = tempfile::tempdir().unwrap();
    let path = gathered(dir.path());
    let answer = told(&path, START, MOST);
    assert_eq!((answer.from, answer.dur_ns), (1_000, 109_000));
    assert_eq!(answer.rest, []);
    let own = answer
        .segments
        .iter()
        .map(|s| (s.t + START, s.dur_ns, s.tid));
    let of_path = path.segments.iter().map(|s| (s.ts_ns, s.dur_ns, s.tid));
    assert!(own.eq(of_path));
    let device = answer.segments.iter().find(|s| s.kind == PathKind::Device);
    let device = device.unwrap();
    assert_eq!(
        (device.t, device.dur_ns, device.rid),
        (60_000, 17_500, Some(2))
    );
    assert_eq!(
        (
            device.tid,
            device.depth,
            device.wakes.as_ref().map(|woken| woken.tid)
        ),
        (101, 1, None)
    );
    assert!(device.device.is_some());
    // The last segment of the helper ends with the wake-up.
    let wakes: Vec<_> = answer
        .segments
        .iter()
        .filter(|s| s.wakes.is_some())
        .collect();
    assert_eq!(wakes.len(), 1);
    let woken = wakes[0].wakes.as_ref().map(|woken| woken.tid);
    assert_eq!((wakes[0].tid, woken), (101, Some(100)));
    assert_eq!(wakes[0].t + wakes[0].dur_ns, 95_000);
}

#[test]
fn short_segments_are_summed_up_without_changing_sums() {
    let dir = tempfile::tempdir().unwrap();
    let path = gathered(dir.path());
    let all = told(&path, START, MOST);
    assert_eq!(sums(&all).iter().map(|(_, ns)| ns).sum::<i64>(), 109_000);
    for most in [0, 1, 3, 7, 20] {
        let answer = told(&path, START, most);
        assert_eq!(answer.segments.len(), most);
        assert!(answer.rest.len() <= 2 * most + 1, "{most}");
        assert_eq!(sums(&answer), sums(&all), "{most}");
        let folded: usize = answer.rest.iter().map(|rest| rest.segments).sum();
        assert_eq!(answer.segments.len() + folded, answer.total);
        // Together they are contiguous.
        let mut times: Vec<(i64, i64)> = answer.segments.iter().map(|s| (s.t, s.dur_ns)).collect();
        times.extend(answer.rest.iter().map(|rest| (rest.t, rest.dur_ns)));
        times.sort_unstable();
        let mut at = answer.from;
        for (t, dur_ns) in times {
            assert_eq!(t, at, "{most}");
            at += dur_ns;
        }
        assert_eq!(at, answer.from + answer.dur_ns);
        let of_threads: i64 = answer.threads.iter().map(|thread| thread.dur_ns).sum();
        assert_eq!(of_threads, answer.dur_ns);
    }
    let one = told(&path, START, 1);
    assert_eq!(one.rest[0].tid, None, "of both threads");
}
