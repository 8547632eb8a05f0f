//! Merging parts keeps rows exactly, and of keyed rows the last.
#![allow(clippy::unwrap_used, clippy::panic)]

mod read;

use std::fs;
use std::ops::Range;
use std::time::{Duration, Instant};

use fathom_model::tables::{LossRow, LossRows, SYSCALLS};
use fathom_model::{Batch, ColumnData, StringTable};
use fathom_session::{Session, SessionWriter, WriterOptions};

fn losses(keys: &[(&str, i32, i64)]) -> fathom_model::Batch {
    let mut strings = StringTable::new();
    let mut rows = LossRows::default();
    for (stage, cpu, count) in keys {
        rows.push(LossRow {
            stage: strings.intern(stage.as_bytes()),
            cpu: *cpu,
            syscall: strings.intern(b"read"),
            layer: strings.intern(b"syscall"),
            count: *count,
            pid: -1,
            hist: vec![*count; 40],
            ..Default::default()
        });
    }
    rows.into_batch(strings)
}

/// Measurements at the end (CPU time, memory) include the merges at the end.
#[test]
fn what_is_measured_at_the_end_comes_after_the_merges() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("s.fathom");
    let options = WriterOptions {
        part_rows: 100,
        compact: false,
        ..WriterOptions::default()
    };
    let writer = SessionWriter::create(&dir, fathom_testkit::meta(), options).unwrap();
    let mut workload = fathom_testkit::Workload::new(2);
    for _ in 0..5 {
        writer.append(workload.batch(100)).unwrap();
    }
    let parts = || std::fs::read_dir(dir.join("syscalls")).unwrap().count();
    let mut seen = None;
    let finished = writer.finish_with(fathom_testkit::meta(), |meta| {
        seen = Some((parts(), meta.totals.stored));
        meta.cost.recorder_peak_rss_bytes = Some(77);
    });
    finished.unwrap();
    assert_eq!(seen, Some((1, 500)));
    let session = Session::open(&dir).unwrap();
    assert_eq!(session.meta().cost.recorder_peak_rss_bytes, Some(77));
}

#[test]
fn the_end_merges_and_keeps_the_last_of_each_key() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("s.fathom");
    // A part an append.
    let options = WriterOptions {
        part_rows: 1,
        compact: false,
        ..WriterOptions::default()
    };
    let writer = SessionWriter::create(&dir, fathom_testkit::meta(), options).unwrap();
    let mut workload = fathom_testkit::Workload::new(9);
    let mut expected = Vec::new();
    for rows in [1, 100, 150_000, 7, 200_000, 3] {
        let batch = workload.batch(rows);
        expected.extend(read::expected(&batch));
        writer.append(batch).unwrap();
    }
    writer
        .append(fathom_testkit::files(&[(1, "/a"), (2, "/b"), (1, "/c")]))
        .unwrap();
    writer
        .append(fathom_testkit::files(&[(3, "/d"), (2, "/e")]))
        .unwrap();
    writer
        .append(losses(&[("ring", 0, 5), ("ring", 1, 6)]))
        .unwrap();
    writer
        .append(losses(&[("ring", 1, 8), ("scratch", 1, 1)]))
        .unwrap();
    let done = writer.finish(fathom_testkit::meta()).unwrap();
    assert_eq!(done.rows, 350_111);
    let session = Session::open(&dir).unwrap();
    assert_eq!(session.problems(), &[] as &[String]);
    for table in ["syscalls", "files", "losses"] {
        let listed = fs::read_dir(dir.join(table)).unwrap().count();
        assert_eq!((session.parts(table).len(), listed), (1, 1), "{table}");
    }
    assert!(read::table(&session, "syscalls") == expected);
    let paths: Vec<_> = read::table(&session, "files")
        .into_iter()
        .map(|row| (row[0].clone(), row[5].clone()))
        .collect();
    let file = |id, path: &str| (read::Value::Int(id), read::Value::Text(path.into()));
    assert_eq!(paths, [file(1, "/c"), file(3, "/d"), file(2, "/e")]);
    let counts: Vec<_> = read::table(&session, "losses")
        .into_iter()
        .map(|row| row[4].clone())
        .collect();
    assert_eq!(counts, [5, 8, 1].map(read::Value::Int));
}

#[test]
fn parts_are_merged_while_recording() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("s.fathom");
    let options = WriterOptions {
        part_rows: 1,
        ..WriterOptions::default()
    };
    let writer = SessionWriter::create(&dir, fathom_testkit::meta(), options).unwrap();
    let mut workload = fathom_testkit::Workload::new(9);
    let mut expected = Vec::new();
    for _ in 0..150 {
        let batch = workload.batch(20);
        expected.extend(read::expected(&batch));
        writer.append(batch).unwrap();
    }
    let deadline = Instant::now() + Duration::from_secs(30);
    while writer.stats().tables[0].parts > 64 {
        assert!(Instant::now() < deadline, "{:?}", writer.stats());
        std::thread::sleep(Duration::from_millis(50));
    }
    // A reader at this moment finds every row once.
    let mut session = Session::open(&dir).unwrap();
    while writer.stats().tables[0].rows < 3000 {
        assert!(Instant::now() < deadline, "{:?}", writer.stats());
        std::thread::sleep(Duration::from_millis(20));
    }
    session.refresh().unwrap();
    assert!(read::table(&session, "syscalls") == expected);
    writer.finish(fathom_testkit::meta()).unwrap();
    session.refresh().unwrap();
    assert!(read::table(&session, "syscalls") == expected);
}

#[test]
fn what_a_merged_part_came_from_is_not_read_twice() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("s.fathom");
    let options = WriterOptions {
        part_rows: 1,
        compact: false,
        ..WriterOptions::default()
    };
    let writer = SessionWriter::create(&dir, fathom_testkit::meta(), options).unwrap();
    let mut workload = fathom_testkit::Workload::new(2);
    for _ in 0..3 {
        writer.append(workload.batch(10)).unwrap();
    }
    let original = dir.join("syscalls/part-00000002.parquet");
    let deadline = Instant::now() + Duration::from_secs(30);
    while !original.exists() {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(5));
    }
    let bytes = fs::read(&original).unwrap();
    writer.finish(fathom_testkit::meta()).unwrap();
    assert!(!original.exists());
    // As a recorder leaves it that is killed between publishing and removing.
    fs::write(&original, &bytes).unwrap();
    let session = Session::open(&dir).unwrap();
    assert_eq!(session.rows("syscalls"), 30);
    let merged = dir.join("syscalls/part-00000000-00000003.parquet");
    assert_eq!(session.parts("syscalls"), std::slice::from_ref(&merged));
    // If the merged part is not whole, what is left of the others counts.
    fs::write(&merged, b"PAR1").unwrap();
    let session = Session::open(&dir).unwrap();
    assert_eq!(session.parts("syscalls"), [original]);
    assert_eq!(session.rows("syscalls"), 10);
    assert!(!session.problems().is_empty());
}

/// Merged calls of a thread and kind lie together, take less room for it, and are given out in
/// the order in which they ended.
#[test]
fn merged_calls_lie_together_and_come_in_order() {
    // More than a row group that is arranged: a merge copies it as it is.
    const ROWS: usize = 140_000;
    let temp = tempfile::tempdir().unwrap();
    let written = |batches: usize| {
        let dir = temp.path().join(format!("{batches}.fathom"));
        // A part an append.
        let options = WriterOptions {
            part_rows: 1,
            ..WriterOptions::default()
        };
        let writer = SessionWriter::create(&dir, fathom_testkit::meta(), options).unwrap();
        let mut workload = fathom_testkit::Workload::new(5);
        let all = workload.batch(ROWS);
        for batch in 0..batches {
            let rows = batch * ROWS / batches..(batch + 1) * ROWS / batches;
            writer.append(part_of(&all, rows)).unwrap();
        }
        writer.finish(fathom_testkit::meta()).unwrap();
        Session::open(&dir).unwrap()
    };
    let bytes = |session: &Session| -> u64 {
        let parts = session.part_infos("syscalls");
        parts.iter().map(|part| part.bytes).sum()
    };
    // The last has row groups that are arranged when they are written, and copied.
    let (whole, merged, copied) = (written(1), written(28), written(7));
    let place = |name: &str| {
        let mut columns = SYSCALLS.columns.iter();
        columns.position(|c| c.name == name).unwrap()
    };
    let (tid, call) = (place("tid"), place("syscall"));
    let changes = |session: &Session| {
        let rows = read::stored(session, "syscalls");
        let differ = |a: &read::Row, b: &read::Row| a[tid] != b[tid] || a[call] != b[call];
        let pairs = rows.iter().zip(rows.iter().skip(1));
        pairs.filter(|(a, b)| differ(a, b)).count()
    };
    let (before, after) = (changes(&whole), changes(&merged));
    assert!(before > ROWS / 2, "{before}");
    assert!(after < 200, "{after}");
    assert!(changes(&copied) < 7 * 100, "{}", changes(&copied));
    assert!(bytes(&copied) < bytes(&whole));
    assert!(read::table(&copied, "syscalls") == read::table(&whole, "syscalls"));
    assert!(
        bytes(&merged) * 100 < bytes(&whole) * 95,
        "{} bytes, not merged {}",
        bytes(&merged),
        bytes(&whole)
    );
    assert!(read::table(&merged, "syscalls") == read::table(&whole, "syscalls"));
    let given = |session: &Session| -> Vec<(i64, i64)> {
        let batches = session.batches(&SYSCALLS, Some(&["rid", "ts_ns", "dur_ns"]));
        let mut rows = Vec::new();
        for batch in batches {
            let batch = batch.unwrap();
            let column = |name: &str| match &batch.columns[place(name)] {
                ColumnData::I64(values) => values.clone(),
                _ => panic!("{name} is no number"),
            };
            let ends = column("ts_ns").into_iter().zip(column("dur_ns"));
            let ends = ends.map(|(begin, duration)| begin + duration);
            rows.extend(ends.zip(column("rid")));
        }
        rows
    };
    let mut rows = given(&merged);
    assert_eq!(rows.len(), ROWS);
    assert!(rows.is_sorted_by_key(|row| row.0));
    let mut expected = given(&whole);
    rows.sort_unstable();
    expected.sort_unstable();
    assert!(rows == expected);
}

/// Some rows of a batch.
fn part_of(batch: &Batch, rows: Range<usize>) -> Batch {
    let columns = batch.columns.iter().map(|column| match column {
        ColumnData::I64(v) => ColumnData::I64(v[rows.clone()].to_vec()),
        ColumnData::I32(v) => ColumnData::I32(v[rows.clone()].to_vec()),
        ColumnData::Bool(v) => ColumnData::Bool(v[rows.clone()].to_vec()),
        ColumnData::Str(v) => ColumnData::Str(v[rows.clone()].to_vec()),
        ColumnData::Blob(v) => ColumnData::Blob(v[rows.clone()].to_vec()),
        ColumnData::ListI64(v) => ColumnData::ListI64(v[rows.clone()].to_vec()),
    });
    Batch {
        table: batch.table,
        columns: columns.collect(),
        strings: batch.strings.clone(),
    }
}
