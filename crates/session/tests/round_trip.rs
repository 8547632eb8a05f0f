//! Other readers find the appended rows.
#![allow(clippy::unwrap_used, clippy::panic)]

mod read;

use fathom_model::batch::{NULL_I32, NULL_I64};
use fathom_model::meta::{State, Totals};
use fathom_model::tables::{ColumnType, TABLES, Table};
use fathom_model::{Batch, ColumnData, StrId, StringTable};
use fathom_session::{Session, SessionError, SessionWriter, WriterOptions};
use fathom_testkit::Random;

fn options() -> WriterOptions {
    WriterOptions {
        compact: false,
        ..WriterOptions::default()
    }
}

/// Values of each column by a law of its own: constant, null, few, sequential,
/// random, extreme.
fn arbitrary(table: &'static Table, rows: usize, law: u64, random: &mut Random) -> Batch {
    let mut strings = StringTable::new();
    let mut columns = Vec::new();
    for (i, column) in table.columns.iter().enumerate() {
        let law = law + i as u64;
        let number = |row: usize, random: &mut Random| match law % 7 {
            0 => 42,
            1 if column.nullable => NULL_I64,
            2 => random.below(9) as i64 - 4,
            3 => 1_000_000 + row as i64 * 3,
            4 if column.nullable && random.below(3) == 0 => NULL_I64,
            5 => [i64::MAX, i64::MIN + 1, 0, -1][random.below(4) as usize],
            _ => random.next() as i64 | 1,
        };
        let narrow = |v: i64| {
            if v == NULL_I64 {
                NULL_I32
            } else {
                (v as i32).max(-i32::MAX)
            }
        };
        columns.push(match column.ty {
            ColumnType::I64 => ColumnData::I64((0..rows).map(|r| number(r, random)).collect()),
            ColumnType::I32 => {
                ColumnData::I32((0..rows).map(|r| narrow(number(r, random))).collect())
            }
            ColumnType::Bool => {
                ColumnData::Bool((0..rows).map(|r| number(r, random) & 1 == 0).collect())
            }
            ColumnType::Str | ColumnType::Blob => {
                let ids = (0..rows).map(|r| match number(r, random) {
                    NULL_I64 => StrId::NULL,
                    0 => strings.intern(b""),
                    1 => strings.intern("a\"'\n\u{1b}[31m\u{fc}\u{1f600}".as_bytes()),
                    v if column.ty == ColumnType::Blob => strings.intern(&v.to_le_bytes()),
                    v => strings
                        .intern(format!("/dir/{v}/{}", "x".repeat(v as usize % 90)).as_bytes()),
                });
                let ids = ids.collect();
                if column.ty == ColumnType::Str {
                    ColumnData::Str(ids)
                } else {
                    ColumnData::Blob(ids)
                }
            }
            ColumnType::ListI64 => ColumnData::ListI64(
                (0..rows)
                    .map(|r| (0..r % 5).map(|_| random.next() as i64).collect())
                    .collect(),
            ),
        });
    }
    Batch {
        table,
        columns,
        strings,
    }
}

/// Leaves out the values of columns that are null in every row.
fn without_nulls(batch: &mut Batch) {
    for (column, data) in batch.table.columns.iter().zip(&mut batch.columns) {
        let is_null = match data {
            ColumnData::I64(v) => v.iter().all(|v| *v == NULL_I64),
            ColumnData::I32(v) => v.iter().all(|v| *v == NULL_I32),
            ColumnData::Str(v) | ColumnData::Blob(v) => v.iter().all(|v| *v == StrId::NULL),
            ColumnData::Bool(_) | ColumnData::ListI64(_) => false,
        };
        if column.nullable && is_null {
            *data = ColumnData::empty(column.ty);
        }
    }
}

#[test]
fn every_table_and_type_comes_back() {
    let mut random = Random::new(3);
    let mut left_out = 0;
    for law in 0..7 {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("s.fathom");
        let writer = SessionWriter::create(&dir, fathom_testkit::meta(), options()).unwrap();
        let mut expected = vec![Vec::new(); TABLES.len()];
        for (n, rows) in [1, 2, 31, 32, 33, 1000, 40_000, 20_000, 50]
            .into_iter()
            .enumerate()
        {
            for (i, table) in TABLES.iter().enumerate() {
                // Columns become null, and cease to be, between batches and between parts.
                let law = law + n as u64 / 2;
                let mut batch = arbitrary(table, rows, law, &mut random);
                expected[i].extend(read::expected(&batch));
                if n % 3 != 0 {
                    without_nulls(&mut batch);
                    left_out += batch.columns.iter().filter(|c| c.is_empty()).count();
                }
                writer.append(batch).unwrap();
            }
        }
        // Dropped: all is written, but keyed tables keep every version.
        drop(writer);
        let session = Session::open(&dir).unwrap();
        for (i, table) in TABLES.iter().enumerate() {
            let mut found = read::stored(&session, table.name);
            assert_eq!(found.len(), expected[i].len(), "{} law {law}", table.name);
            if table.name == "syscalls" {
                // Calls of a thread and kind lie together.
                for rows in [&mut found, &mut expected[i]] {
                    rows.sort_by_cached_key(|row| format!("{row:?}"));
                }
            }
            for (row, (found, expected)) in found.iter().zip(&expected[i]).enumerate() {
                assert_eq!(found, expected, "{} law {law} row {row}", table.name);
            }
        }
    }
    assert!(left_out > 1000, "{left_out}");
}

#[test]
fn realistic_rows_are_small() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("s.fathom");
    let writer = SessionWriter::create(&dir, fathom_testkit::meta(), options()).unwrap();
    let mut workload = fathom_testkit::Workload::new(11);
    let mut expected = Vec::new();
    for _ in 0..40 {
        let batch = workload.batch(10_000);
        expected.extend(read::expected(&batch));
        writer.append(batch).unwrap();
    }
    let mut meta = fathom_testkit::meta();
    meta.totals = Totals {
        seen: 400_000,
        ..Totals::default()
    };
    let done = writer.finish(meta).unwrap();
    assert_eq!(done.rows, 400_000);
    let per_row = done.bytes_on_disk as f64 / done.rows as f64;
    assert!(per_row <= 12.0, "{per_row} bytes per row");
    let session = Session::open(&dir).unwrap();
    assert!(read::table(&session, "syscalls") == expected);
    assert_eq!(session.meta().state, State::Complete);
    assert_eq!(session.meta().totals.stored, 400_000);
    assert_eq!(session.problems(), &[] as &[String]);
    let on_disk: u64 = session.part_infos("syscalls").iter().map(|p| p.bytes).sum();
    assert!(on_disk <= done.bytes_on_disk);
}

/// Bytes that belong to no column are in the footers.
#[test]
fn bytes_of_columns_are_told() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("s.fathom");
    let writer = SessionWriter::create(&dir, fathom_testkit::meta(), options()).unwrap();
    let mut random = Random::new(5);
    for table in TABLES {
        let batch = arbitrary(table, 5_000, 1, &mut random);
        writer.append(batch).unwrap();
    }
    drop(writer);
    let session = Session::open(&dir).unwrap();
    let sizes = session.column_sizes().unwrap();
    for table in TABLES {
        let of_table = || sizes.iter().filter(|s| s.table == table.name);
        let parts = session.parts(table.name);
        let footers: u64 = parts
            .iter()
            .map(|path| {
                let bytes = std::fs::read(path).unwrap();
                let tail: [u8; 4] = bytes[bytes.len() - 8..][..4].try_into().unwrap();
                u64::from(u32::from_le_bytes(tail))
            })
            .sum();
        let rest: u64 = of_table()
            .filter(|s| s.column.is_empty())
            .map(|s| s.bytes)
            .sum();
        let about = footers..=footers + 64 * parts.len() as u64;
        assert!(
            about.contains(&rest),
            "{}: {rest}, not {about:?}",
            table.name
        );
        let all: u64 = of_table().map(|s| s.bytes).sum();
        let on_disk: u64 = parts.iter().map(|p| p.metadata().unwrap().len()).sum();
        assert_eq!(all, on_disk, "{}", table.name);
    }
}

#[test]
fn text_that_is_not_utf8_is_escaped() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("s.fathom");
    let writer = SessionWriter::create(&dir, fathom_testkit::meta(), options()).unwrap();
    let mut batch = fathom_testkit::Workload::new(1).batch(1);
    let id = batch.strings.intern(b"/tmp/\xff\n\xc3(");
    let path = batch
        .table
        .columns
        .iter()
        .position(|c| c.name == "path")
        .unwrap();
    batch.columns[path] = ColumnData::Str(vec![id]);
    writer.append(batch).unwrap();
    writer.finish(fathom_testkit::meta()).unwrap();
    let rows = read::table(&Session::open(&dir).unwrap(), "syscalls");
    assert_eq!(
        rows[0][path],
        read::Value::Text("/tmp/\\xff\n\\xc3(".into())
    );
}

#[test]
fn rows_are_visible_while_recording() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("s.fathom");
    let writer = SessionWriter::create(&dir, fathom_testkit::meta(), options()).unwrap();
    let mut session = Session::open(&dir).unwrap();
    assert!(session.is_live());
    // Also before there is a row the glob of a plain reader matches.
    assert_eq!(session.parts("syscalls").len(), 1);
    writer
        .append(fathom_testkit::Workload::new(1).batch(3))
        .unwrap();
    writer.update_totals(Totals {
        seen: 3,
        ..Totals::default()
    });
    std::thread::sleep(std::time::Duration::from_millis(2500));
    session.refresh().unwrap();
    assert_eq!(session.rows("syscalls"), 3);
    assert_eq!(
        session.meta().totals,
        Totals {
            seen: 3,
            stored: 3,
            lost: 0,
            compat: 0,
            ..Totals::default()
        }
    );
    assert_eq!(writer.stats().tables[0].rows, 3);
    assert_eq!(session.problems(), &[] as &[String]);
    drop(writer);
}

#[test]
fn a_malformed_batch_is_refused() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("s.fathom");
    let writer = SessionWriter::create(&dir, fathom_testkit::meta(), options()).unwrap();
    let mut batch = fathom_testkit::Workload::new(1).batch(3);
    batch.columns[0] = ColumnData::I64(vec![1]);
    assert!(matches!(
        writer.append(batch),
        Err(SessionError::BadBatch { .. })
    ));
    let mut batch = fathom_testkit::Workload::new(1).batch(3);
    batch.columns.pop();
    assert!(matches!(
        writer.append(batch),
        Err(SessionError::BadBatch { .. })
    ));
}

#[test]
fn a_batch_waits_for_room_in_the_queue() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("s.fathom");
    let options = WriterOptions {
        queue_bytes: 1,
        ..options()
    };
    let writer = SessionWriter::create(&dir, fathom_testkit::meta(), options).unwrap();
    let mut workload = fathom_testkit::Workload::new(1);
    for rows in [20_000, 1, 1, 20_000] {
        writer.append(workload.batch(rows)).unwrap();
    }
    let done = writer.finish(fathom_testkit::meta()).unwrap();
    assert_eq!(done.rows, 40_002);
}
