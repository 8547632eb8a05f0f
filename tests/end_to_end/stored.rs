//! What lies on disk, read without fathom.

use std::collections::BTreeSet;

use fathom_model::tables::TABLES;
use fathom_tests::parts;
use fathom_tests::truth::logs;
use fathom_tests::{Record, Scratch, need_root, workload};

#[test]
fn the_parts_hold_what_a_query_answers() {
    need_root!();
    let scratch = Scratch::new();
    let recording = Record::new(&scratch)
        .command([workload("calls").as_os_str(), scratch.work().as_os_str()])
        .run()
        .must_exit(0);
    let totals = recording.complete();
    assert!(!logs(&scratch.truth()).is_empty());
    let batches = parts::read(&recording.session, "syscalls");
    let rids = parts::ints(&batches, "rid");
    assert_eq!(rids.len() as i64, totals.stored);
    let unique: BTreeSet<_> = rids.iter().collect();
    assert_eq!(unique.len(), rids.len(), "an id occurs twice");
    let rows = recording.rows("SELECT * FROM syscalls ORDER BY rid");
    let mut order: Vec<usize> = (0..rids.len()).collect();
    order.sort_by_key(|i| rids[*i]);
    for column in [
        "ts_ns",
        "dur_ns",
        "pid",
        "tid",
        "ret",
        "fd",
        "file_id",
        "file_offset",
        "size",
    ] {
        let stored = parts::ints(&batches, column);
        let stored: Vec<_> = order.iter().map(|i| stored[*i]).collect();
        let answered: Vec<_> = rows.iter().map(|r| r.int(column)).collect();
        assert_eq!(stored, answered, "{column}");
    }
    for column in [
        "syscall", "class", "errno", "flags", "path_arg", "path", "comm", "args",
    ] {
        let stored = parts::texts(&batches, column);
        let stored: Vec<_> = order.iter().map(|i| stored[*i].as_deref()).collect();
        let answered: Vec<_> = rows.iter().map(|r| r.text(column)).collect();
        assert_eq!(stored, answered, "{column}");
    }
}

#[test]
fn every_table_has_the_columns_that_are_declared() {
    need_root!();
    let scratch = Scratch::new();
    let recording = Record::new(&scratch)
        .command(["ls", "/"])
        .run()
        .must_exit(0);
    for table in TABLES {
        let rows = recording.rows(&format!(
            "SELECT column_name FROM (DESCRIBE SELECT * FROM {})",
            table.name
        ));
        let columns: Vec<_> = rows
            .iter()
            .map(|r| r.text("column_name").unwrap().to_owned())
            .collect();
        let differences = table.differences().iter().map(|d| d.name);
        let declared = table.shown().map(|c| c.name).chain(differences);
        let declared: Vec<_> = declared.map(str::to_owned).collect();
        assert_eq!(columns, declared, "{}", table.name);
    }
}

/// Ids lead somewhere: from calls to files and threads.
#[test]
fn calls_refer_to_files_and_threads_that_exist() {
    need_root!();
    let scratch = Scratch::new();
    let recording = Record::new(&scratch)
        .command([workload("processes").as_os_str(), "tree".as_ref()])
        .command([scratch.work()])
        .run()
        .must_exit(0);
    recording.complete();
    for (what, sql) in [
        (
            "calls without their file",
            "SELECT count(*) FROM syscalls s WHERE file_id IS NOT NULL
             AND NOT EXISTS (SELECT 1 FROM files f WHERE f.file_id = s.file_id)",
        ),
        (
            "calls outside the life of their thread",
            "SELECT count(*) FROM syscalls s WHERE NOT EXISTS (SELECT 1 FROM processes p
             WHERE p.tid = s.tid AND p.pid = s.pid AND p.started_at_ns <= s.ts_ns
             AND coalesce(p.ended_at_ns, s.ts_ns) >= s.ts_ns)",
        ),
        (
            "files twice",
            "SELECT count(*) - count(DISTINCT file_id) FROM files",
        ),
        (
            "threads twice",
            "SELECT count(*) - count(DISTINCT (tid, started_at_ns)) FROM processes",
        ),
    ] {
        assert_eq!(recording.number(sql), 0, "{what}");
    }
}
