//! Sessions that need repair, each in its own way.
#![allow(clippy::unwrap_used, clippy::panic)]

mod read;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use fathom_model::meta::State;
use fathom_session::{Session, SessionError, SessionWriter, WriterOptions, repair};

/// A closed session of one part with 60 rows, next to the parts of ten rows each that it was merged
/// from.
fn session(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let options = WriterOptions {
        part_rows: 1,
        ..WriterOptions::default()
    };
    let writer = SessionWriter::create(dir, fathom_testkit::meta(), options).unwrap();
    let mut workload = fathom_testkit::Workload::new(6);
    for _ in 0..6 {
        writer.append(workload.batch(10)).unwrap();
    }
    while writer.stats().tables[0].rows < 60 {
        std::thread::yield_now();
    }
    let parts = fs::read_dir(dir.join("syscalls")).unwrap().map(|entry| {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        (name, fs::read(entry.path()).unwrap())
    });
    let mut parts: Vec<_> = parts.collect();
    parts.sort();
    let mut meta = fathom_testkit::meta();
    meta.totals.seen = 60;
    writer.finish(meta).unwrap();
    assert_eq!(parts.len(), 7);
    parts
}

fn rows(dir: &Path) -> usize {
    let session = Session::open(dir).unwrap();
    let glob = fs::read_dir(dir.join("syscalls")).unwrap();
    let parts: Vec<_> = glob
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "parquet"))
        .collect();
    let rows: usize = parts.iter().map(|part| read::file(part).len()).sum();
    assert_eq!(
        rows as u64,
        session.rows("syscalls"),
        "a plain glob is right"
    );
    assert_eq!(rows as u64, session.meta().totals.stored);
    rows
}

/// Repairs, and checks that there is nothing left to do; returns what was said.
fn repaired(dir: &Path) -> String {
    let planned = repair(dir, false).unwrap();
    let done = repair(dir, true).unwrap();
    assert_eq!(planned.found, done.found);
    let again = repair(dir, true).unwrap();
    assert_eq!(again.found, Vec::<String>::new());
    done.found.join("\n")
}

const MERGED: &str = "syscalls/part-00000000-00000006.parquet";

#[test]
fn what_is_whole_needs_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("s.fathom");
    session(&dir);
    assert_eq!(repaired(&dir), "");
    assert_eq!(rows(&dir), 60);
}

#[test]
fn a_merge_that_was_not_finished() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("s.fathom");
    let parts = session(&dir);
    // Published, and the parts it was made from are still there.
    for (name, bytes) in &parts {
        fs::write(dir.join("syscalls").join(name), bytes).unwrap();
    }
    let said = repaired(&dir);
    assert!(said.contains("merged into another part"), "{said}");
    assert_eq!(rows(&dir), 60);
    // Not published, and torn.
    let merged = fs::read(dir.join(MERGED)).unwrap();
    fs::remove_file(dir.join(MERGED)).unwrap();
    for (name, bytes) in &parts {
        fs::write(dir.join("syscalls").join(name), bytes).unwrap();
    }
    let torn = dir.join(MERGED).with_extension("parquet.tmp");
    fs::write(&torn, &merged[..merged.len() / 2]).unwrap();
    let said = repaired(&dir);
    assert!(said.contains("never finished"), "{said}");
    assert_eq!(rows(&dir), 60);
    // Published but damaged: what it was made from counts.
    for (name, bytes) in &parts {
        fs::write(dir.join("syscalls").join(name), bytes).unwrap();
    }
    fs::write(dir.join(MERGED), &merged[..merged.len() - 9]).unwrap();
    let said = repaired(&dir);
    assert!(said.contains("set-aside"), "{said}");
    assert_eq!(rows(&dir), 60);
    assert!(
        dir.join("set-aside/syscalls-part-00000000-00000006.parquet.aside")
            .exists()
    );
}

#[test]
fn a_part_without_its_name_gets_it() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("s.fathom");
    let parts = session(&dir);
    let next = dir.join("syscalls/part-00000007.parquet.tmp");
    fs::write(&next, &parts[3].1).unwrap();
    let said = repaired(&dir);
    assert!(said.contains("was complete but not published"), "{said}");
    assert_eq!(rows(&dir), 70);
}

#[test]
fn damage_is_moved_aside_and_remembered() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("s.fathom");
    let parts = session(&dir);
    fs::remove_file(dir.join(MERGED)).unwrap();
    for (n, (name, bytes)) in parts.iter().enumerate() {
        let mut bytes = bytes.clone();
        if n == 4 {
            // In the data: the footer is intact, so only reading shows the damage.
            for byte in &mut bytes[8..200] {
                *byte ^= 0x55;
            }
        }
        fs::write(dir.join("syscalls").join(name), bytes).unwrap();
    }
    symlink("/etc/passwd", dir.join("syscalls/part-00000009.parquet")).unwrap();
    fs::write(dir.join("syscalls/copy of part.parquet"), b"x").unwrap();
    fs::write(dir.join("syscalls/notes.txt"), b"x").unwrap();
    let said = repaired(&dir);
    assert_eq!(
        said.matches("moved to folder set-aside").count(),
        3,
        "{said}"
    );
    assert_eq!(rows(&dir), 50);
    assert!(dir.join("syscalls/notes.txt").exists());
    assert!(Path::new("/etc/passwd").exists());
    let session = Session::open(&dir).unwrap();
    assert_eq!(session.meta().totals.missing, 10);
    let problems = session.problems().join("\n");
    assert!(
        problems.contains("part-00000004.parquet could not be read"),
        "{problems}"
    );
}

#[test]
fn session_json_is_made_again() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("s.fathom");
    session(&dir);
    let file = dir.join("session.json");
    for content in [None, Some(""), Some("{\"schema_version\": 1"), Some("[]")] {
        match content {
            None => fs::remove_file(&file).unwrap(),
            Some(text) => fs::write(&file, text).unwrap(),
        }
        assert!(
            Session::open(&dir)
                .unwrap()
                .problems()
                .join("")
                .contains("session.json")
        );
        let said = repaired(&dir);
        assert!(said.contains("session.json"), "{said}");
        assert_eq!(rows(&dir), 60);
        let meta = Session::open(&dir).unwrap().meta().clone();
        assert_eq!(
            (meta.id, meta.state),
            (fathom_testkit::meta().id, State::Complete)
        );
    }
    // Files of another fathom stay.
    fs::write(&file, r#"{"schema_version": 99, "fathom_version": "7.0"}"#).unwrap();
    assert!(matches!(
        repair(&dir, true),
        Err(SessionError::OtherVersion { .. })
    ));
    // With nothing to make it from there is nothing to repair.
    let empty = temp.path().join("empty");
    fs::create_dir(&empty).unwrap();
    assert!(matches!(
        repair(&empty, true),
        Err(SessionError::NotASession { .. })
    ));
    assert!(matches!(
        repair(&temp.path().join("none"), true),
        Err(SessionError::NotASession { .. })
    ));
}

#[test]
fn folders_that_are_missing_or_lead_elsewhere() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("s.fathom");
    session(&dir);
    fs::remove_dir_all(dir.join("faults")).unwrap();
    fs::remove_file(dir.join("writeback/part-00000000.parquet")).unwrap();
    let said = repaired(&dir);
    assert_eq!(said.matches("has no part").count(), 2, "{said}");
    assert_eq!(
        Session::open(&dir).unwrap().problems(),
        Vec::<String>::new()
    );
    let elsewhere = temp.path().join("elsewhere");
    fs::rename(dir.join("files"), &elsewhere).unwrap();
    symlink(&elsewhere, dir.join("files")).unwrap();
    assert!(matches!(
        repair(&dir, true),
        Err(SessionError::NotReplaceable { .. })
    ));
}

#[test]
fn a_session_that_is_recorded_is_left_alone() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("s.fathom");
    let writer =
        SessionWriter::create(&dir, fathom_testkit::meta(), WriterOptions::default()).unwrap();
    assert!(matches!(repair(&dir, true), Err(SessionError::Busy(_))));
    assert!(matches!(repair(&dir, false), Err(SessionError::Busy(_))));
    // A copy is not being recorded.
    let copy = temp.path().join("copy.fathom");
    let status = Command::new("cp").arg("-r").arg(&dir).arg(&copy).status();
    assert!(status.unwrap().success());
    assert!(Session::open(&copy).unwrap().was_killed());
    assert!(repaired(&copy).contains("it is closed"));
    drop(writer);
}
