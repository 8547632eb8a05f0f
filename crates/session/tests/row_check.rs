//! Rows that are compared with their checksums after a session was opened by its footers.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use fathom_session::{RowCheck, Session, SessionWriter, WriterOptions};

fn recorded(dir: &Path) {
    let options = WriterOptions {
        part_rows: 500,
        compact: false,
        ..WriterOptions::default()
    };
    let writer = SessionWriter::create(dir, fathom_testkit::meta(), options).unwrap();
    let mut workload = fathom_testkit::Workload::new(11);
    for _ in 0..4 {
        writer.append(workload.batch(500)).unwrap();
    }
    let mut meta = fathom_testkit::meta();
    meta.totals.seen = 2000;
    writer.finish(meta).unwrap();
}

#[test]
fn damaged_rows_are_found_before_they_are_read() {
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path().join("s.fathom");
    recorded(&dir);
    let session = Session::glance(&dir).unwrap();
    let parts = session.parts("syscalls");
    let check = RowCheck::new(session);
    assert!(check.passed(&["files", "syscalls"]));
    assert!(!check.is_over());
    assert!(check.passed(&["syscalls", "slices", "no such table"]));

    let part = parts.last().unwrap();
    let mut bytes = fs::read(part).unwrap();
    // Behind the magic number: of the rows.
    bytes[40] ^= 1;
    fs::write(part, bytes).unwrap();
    let session = Session::glance(&dir).unwrap();
    assert!(!session.is_damaged(), "the footer is as it was");
    let check = RowCheck::new(session);
    assert!(!check.passed(&["syscalls"]));
    assert!(!check.is_over());
    let session = Session::open(&dir).unwrap();
    assert!(session.is_damaged());
    assert!(session.rows("syscalls") < 2000);
}
