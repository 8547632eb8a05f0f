//! Killed recorders and damaged files.
#![allow(clippy::unwrap_used, clippy::panic)]

mod read;

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use fathom_model::meta::Totals;
use fathom_session::{Session, SessionError, SessionWriter, WriterOptions};

const DIR: &str = "FATHOM_TEST_SESSION";

/// Not a test by itself: what `a_killed_recorder_leaves_a_session` kills.
#[test]
#[ignore = "runs as a child of another test"]
fn child_that_records_for_ever() {
    let Ok(dir) = std::env::var(DIR) else { return };
    let options = WriterOptions::default();
    let writer = SessionWriter::create(Path::new(&dir), fathom_testkit::meta(), options).unwrap();
    let mut workload = fathom_testkit::Workload::new(4);
    let mut appended = 0;
    loop {
        writer.append(workload.batch(100)).unwrap();
        appended += 100;
        writer.update_totals(Totals {
            seen: appended,
            ..Totals::default()
        });
        // Rows appended by now must be on disk after a second.
        fs::write(
            Path::new(&dir).with_extension("count.tmp"),
            appended.to_string(),
        )
        .unwrap();
        fs::rename(
            Path::new(&dir).with_extension("count.tmp"),
            Path::new(&dir).with_extension("count"),
        )
        .unwrap();
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn a_killed_recorder_leaves_a_session() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("s.fathom");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_that_records_for_ever", "--ignored"])
        .env(DIR, &dir)
        .spawn()
        .unwrap();
    let count = || -> u64 {
        let text = fs::read_to_string(dir.with_extension("count")).unwrap_or_default();
        text.parse().unwrap_or(0)
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    while count() < 50_000 {
        if Instant::now() > deadline || child.try_wait().unwrap().is_some() {
            child.kill().unwrap();
            panic!("the child recorded {} rows only", count());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(Session::open(&dir).unwrap().is_live());
    let before = count();
    std::thread::sleep(Duration::from_millis(1500));
    child.kill().unwrap();
    child.wait().unwrap();
    let session = Session::open(&dir).unwrap();
    assert!(!session.is_live() && session.was_killed());
    assert!(
        session.rows("syscalls") >= before,
        "{} < {before}",
        session.rows("syscalls")
    );
    let problems = session.problems();
    assert!(
        problems.len() == 1 && problems[0].contains("last second"),
        "{problems:?}"
    );
    assert!(session.meta().totals.seen > 0);
    let rows = read::table(&session, "syscalls");
    for (i, row) in rows.iter().enumerate() {
        assert_eq!(row[0], read::Value::Int(i as i64 + 1));
    }
}

/// A session with three parts of ten rows, not closed.
fn three_parts(dir: &Path) {
    let options = WriterOptions {
        part_rows: 1,
        compact: false,
        ..WriterOptions::default()
    };
    let writer = SessionWriter::create(dir, fathom_testkit::meta(), options).unwrap();
    let mut workload = fathom_testkit::Workload::new(6);
    for _ in 0..3 {
        writer.append(workload.batch(10)).unwrap();
    }
}

#[test]
fn damaged_parts_are_named_and_left_out() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("s.fathom");
    three_parts(&dir);
    let part = dir.join("syscalls/part-00000002.parquet");
    let whole = fs::read(&part).unwrap();
    let mut random = fathom_testkit::Random::new(8);
    let noise: Vec<u8> = (0..5000).map(|_| random.next() as u8).collect();
    let mut noise_with_magic = noise.clone();
    noise_with_magic.extend_from_slice(&4000u32.to_le_bytes());
    noise_with_magic.extend_from_slice(b"PAR1");
    let mut cut_front = whole.clone();
    cut_front.drain(..whole.len() / 3);
    for (what, bytes) in [
        ("empty", Vec::new()),
        ("half", whole[..whole.len() / 2].to_vec()),
        ("one byte short", whole[..whole.len() - 1].to_vec()),
        ("noise", noise),
        ("noise with a magic number", noise_with_magic),
        ("front cut", cut_front),
        (
            "other table",
            fs::read(dir.join("files/part-00000000.parquet")).unwrap(),
        ),
    ] {
        fs::write(&part, bytes).unwrap();
        let session = Session::open(&dir).unwrap();
        assert_eq!(session.rows("syscalls"), 20, "{what}");
        let named = session
            .problems()
            .iter()
            .any(|p| p.contains("part-00000002.parquet"));
        assert!(named, "{what}: {:?}", session.problems());
        assert_eq!(read::table(&session, "syscalls").len(), 20, "{what}");
    }
    // Footers with single bytes changed: accepted or not, never a panic.
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        fs::write(&part, bytes).unwrap();
        let session = Session::open(&dir).unwrap();
        assert!(session.parts("syscalls").len() >= 3, "byte {at}");
    }
    fs::remove_file(&part).unwrap();
    let session = Session::open(&dir).unwrap();
    assert!(
        session
            .problems()
            .iter()
            .any(|p| p.contains("part 2 is missing"))
    );
}

#[test]
fn tables_without_a_folder_are_empty_and_named() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = scratch.path().join("s.fathom");
    three_parts(&dir);
    let told = |session: &Session| {
        let problems = session.problems().iter();
        problems
            .filter(|p| p.contains("folder"))
            .cloned()
            .collect::<Vec<_>>()
    };
    assert!(told(&Session::open(&dir).unwrap()).is_empty());
    for table in ["counters", "irqs"] {
        fs::remove_dir_all(dir.join(table)).unwrap();
    }
    let session = Session::open(&dir).unwrap();
    let problems = told(&session);
    let [problem] = problems.as_slice() else {
        panic!("{problems:?}");
    };
    assert!(
        problem.contains("tables counters, irqs") || problem.contains("tables irqs, counters"),
        "{problem}"
    );
    assert!(problem.contains("the session is incomplete"), "{problem}");
    assert_eq!(session.rows("counters"), 0);
    assert!(session.rows("syscalls") > 0);
}

#[test]
fn what_is_not_a_part_is_not_read() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("s.fathom");
    three_parts(&dir);
    let parts = Session::open(&dir).unwrap().parts("syscalls");
    fs::copy(&parts[1], dir.join("syscalls/copy\n.parquet")).unwrap();
    fs::copy(&parts[1], dir.join("syscalls/part-00000009.parquet.tmp")).unwrap();
    fs::create_dir(dir.join("syscalls/part-00000004.parquet")).unwrap();
    let pipe = dir.join("syscalls/part-00000005.parquet");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let session = Session::open(&dir).unwrap();
    assert_eq!(session.parts("syscalls"), parts);
    let all = session.problems().join("\n");
    for named in ["copy\\n.parquet", "part-00000004", "part-00000005"] {
        assert!(all.contains(named), "{named} in {all}");
    }
}

#[test]
fn session_json_is_checked() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("s.fathom");
    let error = Session::open(&dir).unwrap_err();
    assert!(error.to_string().contains("does not exist"), "{error}");
    three_parts(&dir);
    let path = dir.join("session.json");
    let json = fs::read_to_string(&path).unwrap();
    assert!(matches!(
        Session::open(&path),
        Err(SessionError::NotASession { .. })
    ));
    // The parts tell what it said at the start.
    let rebuilt = |what: &str| {
        let session = Session::open(&dir).unwrap();
        assert_eq!(session.rows("syscalls"), 30, "{what}");
        assert_eq!(session.meta().id, fathom_testkit::meta().id, "{what}");
        let problems = session.problems();
        assert!(problems.iter().any(|p| p.contains(what)), "{problems:?}");
    };
    fs::write(&path, &json[..json.len() / 2]).unwrap();
    rebuilt("session.json is damaged");
    fs::write(&path, "").unwrap();
    rebuilt("session.json is damaged");
    for version in [1, 99] {
        let other =
            format!(r#"{{"schema_version": {version}, "fathom_version": "7.0", "what": []}}"#);
        fs::write(&path, other).unwrap();
        let error = Session::open(&dir).unwrap_err();
        assert!(
            matches!(error, SessionError::OtherVersion { found, .. } if found == version),
            "{error}"
        );
        assert!(error.to_string().contains("7.0"), "{error}");
    }
    let mut value: serde_json::Value = serde_json::from_str(&json).unwrap();
    value["later"] = 1.into();
    fs::write(&path, value.to_string()).unwrap();
    rebuilt("session.json is damaged (its checksum is another)");
    value.as_object_mut().unwrap().remove("checksum").unwrap();
    fs::write(&path, value.to_string()).unwrap();
    rebuilt("session.json is damaged (its checksum is another)");
    fs::remove_file(&path).unwrap();
    rebuilt("session.json is missing");
    for table in fathom_model::tables::TABLES {
        fs::remove_dir_all(dir.join(table.name)).unwrap();
    }
    assert!(matches!(
        Session::open(&dir),
        Err(SessionError::NotASession { .. })
    ));
    fs::write(&path, &json[..json.len() / 2]).unwrap();
    let error = Session::open(&dir).unwrap_err();
    assert!(matches!(error, SessionError::Damaged { .. }), "{error}");
    assert!(error.to_string().contains("session.json"), "{error}");
}

/// A part that is gone leaves no gap when it was the only one: the counts in session.json tell.
#[test]
fn a_table_whose_only_part_is_gone_is_named() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("s.fathom");
    let writer =
        SessionWriter::create(&dir, fathom_testkit::meta(), WriterOptions::default()).unwrap();
    writer
        .append(fathom_testkit::files(&[(1, "/a"), (2, "/b")]))
        .unwrap();
    writer.finish(fathom_testkit::meta()).unwrap();
    let session = Session::open(&dir).unwrap();
    assert_eq!(session.problems(), [""; 0]);
    let rows = 2;
    assert_eq!(session.rows("files"), rows);
    for part in fs::read_dir(dir.join("files")).unwrap() {
        fs::remove_file(part.unwrap().path()).unwrap();
    }
    let named = format!("table files has 0 rows in readable parts, but {rows} were stored");
    assert_eq!(Session::open(&dir).unwrap().problems(), [named.as_str()]);
    let lost = format!("table files has 0 rows, {rows} were stored");
    let repaired = fathom_session::repair(&dir, true).unwrap();
    assert!(repaired.found.contains(&lost), "{:?}", repaired.found);
    let again = fathom_session::repair(&dir, true).unwrap();
    assert!(again.found.is_empty(), "{:?}", again.found);
    let session = Session::open(&dir).unwrap();
    assert!(session.problems().iter().any(|p| p.ends_with(&lost)));
}
