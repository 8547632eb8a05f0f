//! Directories that may be replaced, and directories that never are.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use fathom_session::{Session, SessionError, SessionWriter, WriterOptions};

fn create(dir: &Path, force: bool) -> Result<SessionWriter, SessionError> {
    SessionWriter::create(
        dir,
        fathom_testkit::meta(),
        WriterOptions {
            force,
            ..WriterOptions::default()
        },
    )
}

fn record(dir: &Path, rows: usize, force: bool) {
    let writer = create(dir, force).unwrap();
    writer
        .append(fathom_testkit::Workload::new(5).batch(rows))
        .unwrap();
    writer.finish(fathom_testkit::meta()).unwrap();
}

#[test]
fn an_existing_session_is_replaced_only_when_told() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("s.fathom");
    fs::create_dir(&dir).unwrap();
    record(&dir, 10, false);
    assert!(matches!(create(&dir, false), Err(SessionError::Exists(_))));
    assert_eq!(Session::open(&dir).unwrap().rows("syscalls"), 10);
    fs::write(dir.join("notes.txt"), "mine").unwrap();
    fs::write(dir.join("syscalls/mine.csv"), "mine").unwrap();
    // The folder of the user's tables, with a file that is none.
    fs::create_dir(dir.join("own")).unwrap();
    fs::write(dir.join("own/mine.csv"), "mine").unwrap();
    fs::create_dir(dir.join("empty")).unwrap();
    record(&dir, 3, true);
    assert_eq!(Session::open(&dir).unwrap().rows("syscalls"), 3);
    for kept in ["notes.txt", "syscalls/mine.csv", "own/mine.csv", "empty"] {
        assert!(dir.join(kept).exists(), "{kept}");
    }
    assert!(!dir.join(".reserve").exists());
}

#[test]
fn other_directories_are_left_alone() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("home");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("part-00000001.parquet"), "mine").unwrap();
    fs::create_dir(dir.join("syscalls")).unwrap();
    fs::write(dir.join("syscalls/part-00000001.parquet"), "mine").unwrap();
    assert!(matches!(
        create(&dir, true),
        Err(SessionError::NotReplaceable { .. })
    ));
    assert_eq!(
        fs::read(dir.join("part-00000001.parquet")).unwrap(),
        b"mine"
    );
    assert_eq!(
        fs::read(dir.join("syscalls/part-00000001.parquet")).unwrap(),
        b"mine"
    );
}

#[test]
fn links_are_not_followed() {
    let temp = tempfile::tempdir().unwrap();
    let elsewhere = temp.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("part-00000001.parquet"), "mine").unwrap();
    let dir = temp.path().join("s.fathom");
    record(&dir, 3, false);
    fs::remove_dir_all(dir.join("files")).unwrap();
    symlink(&elsewhere, dir.join("files")).unwrap();
    assert!(matches!(
        create(&dir, true),
        Err(SessionError::NotReplaceable { .. })
    ));
    assert!(elsewhere.join("part-00000001.parquet").exists());
}

#[test]
fn a_directory_that_is_being_recorded_is_busy() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("s.fathom");
    let writer = create(&dir, false).unwrap();
    // A recording makes session.json again and again: files go while they are looked at.
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let temporary = dir.join("session.json.tmp");
            while !stop.load(Ordering::Relaxed) {
                fs::write(&temporary, "{}").unwrap();
                // The recording renames this name as well: it may be gone.
                let _ = fs::remove_file(&temporary);
            }
        });
        // Each waits a second for the recording.
        let errors: Vec<_> = (0..3).filter_map(|_| create(&dir, true).err()).collect();
        stop.store(true, Ordering::Relaxed);
        let busy = |error: &SessionError| matches!(error, SessionError::Busy(_));
        assert!(errors.len() == 3 && errors.iter().all(busy), "{errors:?}");
    });
    writer.finish(fathom_testkit::meta()).unwrap();
    record(&dir, 2, true);
}

#[test]
fn an_impossible_directory_is_named() {
    let temp = tempfile::tempdir().unwrap();
    let error = create(&temp.path().join("no/such/parent"), false)
        .err()
        .unwrap();
    assert!(error.to_string().contains("no/such/parent"), "{error}");
    let file = temp.path().join("file");
    fs::write(&file, "x").unwrap();
    assert!(create(&file, true).is_err());
    assert_eq!(fs::read(&file).unwrap(), b"x");
}
