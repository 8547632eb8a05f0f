//! Sessions that keep their latest rows only, and copies of them.
#![allow(clippy::unwrap_used, clippy::panic)]

mod read;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use fathom_model::meta::{Keep, Moment, State, Totals};
use fathom_pyramid::SYSCALLS;
use fathom_session::{SaveRequest, Session, SessionWriter, WriterOptions, repair};

fn writer(dir: &Path, keep: Option<Keep>) -> SessionWriter {
    let mut meta = fathom_testkit::meta();
    meta.history.keep = keep;
    let options = WriterOptions {
        part_rows: 2000,
        part_interval: Duration::from_millis(5),
        compact_interval: Duration::from_millis(5),
        ..WriterOptions::default()
    };
    SessionWriter::create(dir, meta, options).unwrap()
}

fn save(writer: &SessionWriter, to: &Path) {
    writer.save(SaveRequest {
        to: to.to_owned(),
        because: "a test".into(),
        at: Moment {
            monotonic_ns: 7,
            realtime_ns: 8,
        },
    });
}

fn bytes_below(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    entries
        .map(|entry| match entry.metadata() {
            // Parts come and go meanwhile.
            Err(_) => 0,
            Ok(kind) if kind.is_dir() => bytes_below(&entry.path()),
            Ok(kind) => kind.len(),
        })
        .sum()
}

fn rids(session: &Session) -> Vec<i64> {
    let rid = |row: &read::Row| match row[0] {
        read::Value::Int(rid) => rid,
        _ => panic!("no rid"),
    };
    read::table(session, "syscalls").iter().map(rid).collect()
}

fn assert_latest(session: &Session, last: i64, what: &str) {
    let rids = rids(session);
    assert_eq!(rids.last(), Some(&last), "{what}");
    for pair in rids.windows(2) {
        assert_eq!(pair[1], pair[0] + 1, "{what}");
    }
    let totals = &session.meta().totals;
    assert_eq!(totals.stored, rids.len() as u64, "{what}");
    assert_eq!(totals.expired, rids[0] as u64 - 1, "{what}: {totals:?}");
    assert_eq!(totals.seen, totals.stored + totals.expired, "{what}");
    assert_eq!(session.problems(), Vec::<String>::new(), "{what}");
}

#[test]
fn a_ring_has_the_latest_rows_and_a_flat_size() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("ring.fathom");
    const LIMIT: u64 = 2 << 20;
    let keep = Keep {
        bytes: Some(LIMIT),
        ..Keep::default()
    };
    let writer = writer(&dir, Some(keep));
    let mut workload = fathom_testkit::Workload::new(3);
    let mut appended = 0;
    let mut largest = 0;
    let expired = |writer: &SessionWriter| writer.stats().tables[0].expired;
    // Goes round twice, however slow the machine.
    while expired(&writer) < 2 * writer.stats().tables[0].rows.max(20_000) {
        writer.append(workload.batch(2000)).unwrap();
        appended += 2000;
        // Bytes that are not written back wait.
        while writer.stats().queue_bytes > 1 << 20 {
            std::thread::sleep(Duration::from_millis(1));
        }
        if appended % 20_000 == 0 {
            largest = largest.max(bytes_below(&dir));
        }
    }
    let totals = Totals {
        seen: appended,
        ..Totals::default()
    };
    writer.update_totals(totals.clone());
    let copy = temp.path().join("copy.fathom");
    save(&writer, &copy);
    let mut meta = fathom_testkit::meta();
    meta.totals = totals;
    let finished = writer.finish(meta).unwrap();
    assert_eq!(finished.last_error, None);
    let session = Session::open(&dir).unwrap();
    assert_latest(&session, appended as i64, "the ring");
    let history = &session.meta().history;
    assert_eq!(history.saves.len(), 1, "{history:?}");
    assert_eq!(history.saves[0].error, None);
    assert!(history.keep.as_ref().unwrap().complete_from_ns.is_some());
    let copy = Session::open(&copy).unwrap();
    assert_latest(&copy, appended as i64, "its copy");
    assert_eq!(copy.meta().history.saved_because, "a test");
    assert_eq!(copy.meta().clock.end_monotonic_ns, Some(7));
    // The limit, the reserve, and what comes until the next look.
    assert!(largest < LIMIT + (2 << 20) + (6 << 20), "{largest} bytes");
}

#[test]
fn sums_go_with_their_rows() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("ring.fathom");
    let keep = Keep {
        bytes: Some(1 << 20),
        ..Keep::default()
    };
    let writer = writer(&dir, Some(keep));
    let mut workload = fathom_testkit::Workload::new(3);
    let (mut appended, mut largest) = (0, 0);
    let file = dir.join(SYSCALLS.file);
    let length = || fs::metadata(&file).map_or(0, |m| m.len());
    let expired = |writer: &SessionWriter| writer.stats().tables[0].expired;
    while expired(&writer) < 40 * writer.stats().tables[0].rows.max(20_000) {
        writer.append(workload.batch(2000)).unwrap();
        appended += 2000;
        while writer.stats().queue_bytes > 1 << 20 {
            std::thread::sleep(Duration::from_millis(1));
        }
        largest = largest.max(length());
    }
    let mut meta = fathom_testkit::meta();
    meta.totals.seen = appended;
    assert_eq!(writer.finish(meta).unwrap().last_error, None);
    let session = Session::open(&dir).unwrap();
    // The parts that were ever there are forty times that, and sums take a fortieth or more.
    let made = session.part_infos("syscalls");
    let made: u64 = made.iter().map(|part| part.bytes).sum();
    assert!(largest < made, "{largest} bytes, of {made} or more in all");
    // The remaining rows can be read.
    let (pyramid, _) = session.pyramid(&SYSCALLS, None).unwrap().unwrap();
    assert!(pyramid.segments() > 0);
}

#[test]
fn time_passes() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("ring.fathom");
    let keep = Keep {
        time_ns: Some(100_000_000),
        ..Keep::default()
    };
    let writer = writer(&dir, Some(keep));
    let mut workload = fathom_testkit::Workload::new(3);
    let mut appended = 0;
    let deadline = Instant::now() + Duration::from_secs(60);
    while writer.stats().tables[0].expired < 2000 {
        assert!(Instant::now() < deadline, "nothing is dropped");
        writer.append(workload.batch(100)).unwrap();
        appended += 100;
        std::thread::sleep(Duration::from_millis(2));
    }
    let mut meta = fathom_testkit::meta();
    meta.totals.seen = appended;
    writer.finish(meta).unwrap();
    let session = Session::open(&dir).unwrap();
    assert_latest(&session, appended as i64, "the ring");
}

#[test]
fn copies_of_a_recording_that_keeps_all() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("s.fathom");
    let writer = writer(&dir, None);
    let mut workload = fathom_testkit::Workload::new(5);
    let copies: Vec<_> = (0..3)
        .map(|n| temp.path().join(format!("copy-{n}.fathom")))
        .collect();
    for (n, copy) in copies.iter().enumerate() {
        for _ in 0..40 {
            writer.append(workload.batch(10)).unwrap();
        }
        save(&writer, copy);
        // One that cannot be made: the name is taken.
        if n == 1 {
            save(&writer, &copies[0]);
        }
    }
    let mut meta = fathom_testkit::meta();
    meta.totals.seen = 1200;
    writer.finish(meta).unwrap();
    for (n, copy) in copies.iter().enumerate() {
        let session = Session::open(copy).unwrap();
        let rows = 400 * (n as i64 + 1);
        assert_latest(&session, rows, &format!("copy {n}"));
        assert_eq!(rids(&session)[0], 1);
        assert_eq!(session.meta().state, State::Complete);
        let nothing = repair(copy, false).unwrap();
        assert_eq!(nothing.found, Vec::<String>::new(), "copy {n}");
    }
    let session = Session::open(&dir).unwrap();
    assert_latest(&session, 1200, "the recording");
    let saves = &session.meta().history.saves;
    assert_eq!(saves.iter().filter(|s| s.error.is_none()).count(), 3);
    let error = saves.iter().find_map(|s| s.error.clone()).unwrap();
    assert!(error.contains("copy-0.fathom"), "{error}");
}
