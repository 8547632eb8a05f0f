//! A session that is being recorded is followed at the cost of what is new.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::time::{Duration, Instant};

use fathom_query::arrow::array::AsArray;
use fathom_query::arrow::datatypes::Int64Type;
use fathom_query::zoom::{Request, Zoom};
use fathom_query::{Db, Limits};
use fathom_session::{Session, SessionWriter, WriterOptions};
use fathom_testkit::sample::{self, Call, START};

/// Calls of a part.
const PART: usize = 100;

fn options() -> WriterOptions {
    WriterOptions {
        part_rows: PART,
        part_interval: Duration::from_secs(600),
        compact: false,
        ..WriterOptions::default()
    }
}

/// Writes parts `from..to` and waits until they are there.
fn write(writer: &SessionWriter, from: usize, to: usize) {
    for part in from..to {
        let first = part * PART;
        let calls: Vec<Call> = (first..first + PART)
            .map(|i| Call::new("read", i as i64 * 1000, 10))
            .collect();
        let batch = sample::syscalls(first as i64, &calls);
        writer.append(batch).unwrap();
    }
    let deadline = Instant::now() + Duration::from_secs(60);
    while writer.stats().tables[0].rows < (to * PART) as u64 {
        assert!(Instant::now() < deadline, "{:?}", writer.stats());
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn number(zoom: &Zoom, sql: &str) -> i64 {
    let mut rows = zoom.db().query(sql).unwrap();
    let batch = rows.next_batch().unwrap().unwrap();
    batch.column(0).as_primitive::<Int64Type>().value(0)
}

/// Calls by the sums over time.
fn summed(zoom: &Zoom) -> i64 {
    let rows = zoom.query(&Request::default()).unwrap().rows;
    let calls = rows.column_by_name("calls").unwrap();
    calls.as_primitive::<Int64Type>().values().iter().sum()
}

#[test]
fn only_parts_that_are_new_are_looked_at() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("s.fathom");
    let writer = SessionWriter::create(&dir, sample::meta(), options()).unwrap();
    write(&writer, 0, 20);
    let mut session = Session::open(&dir).unwrap();
    let mut zoom = Zoom::open(&session, Limits::default()).unwrap();
    assert!(zoom.parts_read() >= 20);
    assert_eq!(summed(&zoom), 20 * PART as i64);
    for parts in 21..24 {
        write(&writer, parts - 1, parts);
        let before = session.clone();
        session.refresh().unwrap();
        assert_eq!(session.parts_examined() - before.parts_examined(), 1);
        let next = zoom.follow(&before, &session).unwrap();
        assert_eq!(next.parts_read(), 1);
        let calls = (parts * PART) as i64;
        assert_eq!(summed(&next), calls);
        let last = START + (calls - 1) * 1000;
        assert_eq!(next.span(), Some((START, last)));
        // SQL sees it, on every connection, and so do the session's totals.
        for zoom in [&zoom, &next] {
            assert_eq!(number(zoom, "SELECT count(*) FROM syscalls"), calls);
            assert_eq!(
                number(zoom, "SELECT sum(calls)::BIGINT FROM by_syscall"),
                calls
            );
            assert_eq!(number(zoom, "SELECT stored::BIGINT FROM session"), calls);
        }
        // Sums of the previous state still equal the sums of its parts.
        assert_eq!(summed(&zoom), calls - PART as i64);
        zoom = next;
    }
    // With nothing new nothing is looked at.
    let before = session.clone();
    session.refresh().unwrap();
    assert_eq!(session.parts_examined(), before.parts_examined());
    assert_eq!(zoom.follow(&before, &session).unwrap().parts_read(), 0);
    drop(writer);
}

#[test]
fn the_first_part_without_a_recorder_is_examined_again() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("s.fathom");
    let writer = SessionWriter::create(&dir, sample::meta(), options()).unwrap();
    write(&writer, 0, 3);
    let mut session = Session::open(&dir).unwrap();
    writer.finish(sample::meta()).unwrap();
    // A part of the closed session is damaged.
    let part = session.parts("syscalls").pop().unwrap();
    if part.exists() {
        fs::write(&part, "no part").unwrap();
    } else {
        let folder = fs::read_dir(dir.join("syscalls")).unwrap();
        for part in folder {
            fs::write(part.unwrap().path(), "no part").unwrap();
        }
    }
    session.refresh().unwrap();
    assert!(session.rows("syscalls") < 3 * PART as u64);
    assert!(!session.problems().is_empty());
}

#[test]
fn a_recording_that_is_followed_gives_no_other_file() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("s.fathom");
    let writer = SessionWriter::create(&dir, sample::meta(), options()).unwrap();
    write(&writer, 0, 1);
    let mut session = Session::open(&dir).unwrap();
    let other = temp.path().join("other.parquet");
    fs::copy(session.parts("syscalls").pop().unwrap(), &other).unwrap();
    let zoom = Zoom::open(&session, Limits::default()).unwrap();
    write(&writer, 1, 2);
    let before = session.clone();
    session.refresh().unwrap();
    let next = zoom.follow(&before, &session).unwrap();
    let through = dir.join("syscalls/../../other.parquet");
    for path in [&other, &through] {
        let from = format!("'{}'", path.display());
        for sql in [
            format!("SELECT count(*) FROM {from}"),
            format!("SELECT count(*) FROM read_parquet({from})"),
        ] {
            let refused = next.db().query(&sql).and_then(|mut rows| rows.next_batch());
            assert!(refused.is_err(), "{sql}");
        }
        // Nor does an unchecked statement.
        let unchecked = format!("SELECT count(*) FROM read_parquet({from})");
        let refused = next
            .db()
            .run(&unchecked)
            .and_then(|mut rows| rows.next_batch());
        assert!(refused.is_err(), "{unchecked}");
    }
    drop(writer);
}

#[test]
fn a_statement_on_a_closed_session_reads_its_tables_only() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("s.fathom");
    let writer = SessionWriter::create(&dir, sample::meta(), options()).unwrap();
    write(&writer, 0, 1);
    writer.finish(sample::meta()).unwrap();
    let session = Session::open(&dir).unwrap();
    let db = Db::open(&session, Limits::default()).unwrap();
    fs::remove_dir_all(dir.join("block")).unwrap();
    let rows = |sql: &str| db.query(sql).and_then(|mut rows| rows.next_batch());
    for sql in ["SELECT count(*) FROM syscalls", "FROM by_syscall"] {
        assert!(rows(sql).unwrap().is_some(), "{sql}");
    }
    for sql in ["FROM block", "FROM by_device", "SHOW TABLES"] {
        let text = rows(sql).unwrap_err().to_string();
        assert!(
            text.starts_with("table block cannot be read"),
            "{sql}: {text}"
        );
    }
    // A statement that fails is tried with all tables; its own message stays.
    let text = rows("SELECT nothing FROM syscalls")
        .unwrap_err()
        .to_string();
    assert!(text.contains("\"nothing\" not found"), "{text}");
}
