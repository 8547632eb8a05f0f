//! The two ways of reading a session, rows in order and SQL, keep to the contract in
//! `crates/session/src/read/mod.rs`.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use fathom_model::tables::{SYSCALLS, Stored, TABLES, Table};
use fathom_query::arrow::array::{AsArray, RecordBatch};
use fathom_query::arrow::datatypes::Int64Type;
use fathom_query::arrow::util::display::{ArrayFormatter, FormatOptions};
use fathom_query::{Db, Limits};
use fathom_session::{Session, SessionWriter, WriterOptions};
use fathom_testkit::sample::{self, record_batch};
use fathom_testkit::{Workload, files, meta};

/// Calls of a part, and parts.
const PART: usize = 1000;
const PARTS: usize = 5;

/// Values of the rows in text.
fn texts(rows: &RecordBatch) -> Vec<Vec<String>> {
    let options = FormatOptions::default().with_null("NULL");
    let columns = rows.columns().iter();
    let columns: Vec<_> = columns
        .map(|column| ArrayFormatter::try_new(column, &options).unwrap())
        .collect();
    let row = |row| columns.iter().map(|c| c.value(row).to_string()).collect();
    (0..rows.num_rows()).map(row).collect()
}

fn by_batches(session: &Session, table: &'static Table) -> Vec<Vec<String>> {
    session
        .batches(table, None)
        .flat_map(|batch| texts(&record_batch(&batch.unwrap())))
        .collect()
}

fn by_sql(db: &Db, sql: &str) -> Vec<RecordBatch> {
    let mut rows = db.query(sql).unwrap();
    std::iter::from_fn(|| rows.next_batch().unwrap()).collect()
}

/// Of rows with one key the last.
fn latest(table: &Table, rows: Vec<Vec<String>>) -> Vec<Vec<String>> {
    if table.key.is_empty() {
        return rows;
    }
    let key = |row: &Vec<String>| -> Vec<String> {
        let columns = table.columns.iter().zip(row);
        let of_key = columns.filter(|(column, _)| table.key.contains(&column.name));
        of_key.map(|(_, value)| value.clone()).collect()
    };
    let rows: BTreeMap<_, _> = rows.into_iter().map(|row| (key(&row), row)).collect();
    rows.into_values().collect()
}

/// Compares all tables; returns the calls, and rows of keys that were written before.
fn compare(dir: &Path) -> (usize, usize) {
    let session = Session::open(dir).unwrap();
    let db = Db::open(&session, Limits::default()).unwrap();
    let mut earlier = 0;
    for table in TABLES {
        let mut all = by_batches(&session, table);
        for row in &mut all {
            // SQL does not show all columns.
            let mut columns = table.columns.iter();
            row.retain(|_| columns.next().is_some_and(|c| c.stored != Stored::Hidden));
        }
        let rows = all.len();
        let mut ours = latest(table, all);
        earlier += rows - ours.len();
        let sql = by_sql(&db, &format!("FROM {}", table.name));
        let mut theirs: Vec<_> = sql.iter().flat_map(texts).collect();
        ours.sort();
        theirs.sort();
        assert!(ours == theirs, "table {}", table.name);
    }
    let calls = by_batches(&session, &SYSCALLS);
    assert!(calls.iter().flatten().any(|value| value == "NULL"));
    let column = |name| {
        SYSCALLS
            .columns
            .iter()
            .position(|c| c.name == name)
            .unwrap()
    };
    let (begin, duration) = (column("ts_ns"), column("dur_ns"));
    let number = |text: &String| text.parse::<i64>().unwrap();
    let end = |row: &Vec<String>| number(&row[begin]) + number(&row[duration]);
    let ours: Vec<i64> = calls.iter().map(end).collect();
    let ordered = by_sql(&db, "SELECT ts_ns + dur_ns AS t FROM syscalls ORDER BY t");
    let theirs: Vec<i64> = ordered
        .iter()
        .flat_map(|rows| rows.column(0).as_primitive::<Int64Type>().values().to_vec())
        .collect();
    assert!(ours == theirs, "order");
    (calls.len(), earlier)
}

#[test]
fn rows_in_order_and_sql_agree() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("s.fathom");
    let options = WriterOptions {
        part_rows: PART,
        part_interval: Duration::from_secs(600),
        compact: false,
        ..WriterOptions::default()
    };
    let writer = SessionWriter::create(&dir, meta(), options).unwrap();
    let mut workload = Workload::new(3);
    let loss = |count| sample::Loss {
        syscall: "write",
        pid: 7,
        file_id: -1,
        count,
        errors: 0,
        bytes: 10,
        each_ns: 70_000,
    };
    for part in 0..PARTS {
        let path = format!("/data/{part}");
        writer.append(files(&[(1, &path), (2, "/same")])).unwrap();
        writer.append(sample::losses(&[loss(part as i64)])).unwrap();
        writer.append(workload.batch(PART)).unwrap();
    }
    let deadline = Instant::now() + Duration::from_secs(60);
    while writer.stats().tables[0].rows < (PART * PARTS) as u64 {
        assert!(Instant::now() < deadline, "{:?}", writer.stats());
        std::thread::sleep(Duration::from_millis(5));
    }
    // Versions of rows are in several parts.
    let (calls, earlier) = compare(&dir);
    assert_eq!(calls, PART * PARTS);
    assert!(earlier >= 2 * (PARTS - 1), "{earlier}");

    // Merged: rows of a thread lie together.
    writer.finish(meta()).unwrap();
    assert_eq!(compare(&dir), (PART * PARTS, 0));

    let part = Session::open(&dir).unwrap().parts("files").remove(0);
    let mut bytes = fs::read(&part).unwrap();
    bytes[20] ^= 1;
    fs::write(&part, bytes).unwrap();
    assert_eq!(compare(&dir), (PART * PARTS, 0));
    let session = Session::open(&dir).unwrap();
    assert!(session.is_damaged());
    assert_eq!(by_batches(&session, &fathom_model::tables::FILES).len(), 0);
}
