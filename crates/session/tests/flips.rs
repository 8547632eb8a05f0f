//! Single bits that change in the files of a session: either no answer changes, or the session
//! says which file is damaged.
#![allow(clippy::unwrap_used, clippy::panic)]

mod read;

use std::fs;
use std::path::{Path, PathBuf};

use fathom_model::tables::TABLES;
use fathom_pyramid::{SOURCES, Source};
use fathom_session::{RowCheck, Session, SessionWriter, WriterOptions};

/// A session with a merged part and parts that are not.
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

/// Everything that a reader can learn.
#[derive(Debug, PartialEq)]
struct Answers {
    meta: serde_json::Value,
    tables: Vec<Vec<read::Row>>,
    sums: Vec<String>,
}

fn answers(session: &Session) -> Answers {
    let tables = TABLES.iter().map(|t| read::stored(session, t.name));
    Answers {
        meta: serde_json::to_value(session.meta()).unwrap(),
        tables: tables.collect(),
        sums: SOURCES.iter().map(|s| sums(session, s)).collect(),
    }
}

/// The answer of the pyramid, or of the rows if it has none.
fn sums(session: &Session, source: &'static Source) -> String {
    let rows = || format!("{} rows", session.rows(source.table));
    let Ok(Some((pyramid, cover))) = session.pyramid(source, None) else {
        return rows();
    };
    if !cover.uncovered.is_empty() {
        return rows();
    }
    let window = (i64::MIN, i64::MAX);
    let of_dimension = |dimension| {
        let mut counted = 0;
        let plan = pyramid.plan(&cover, dimension, window, 60);
        let read = pyramid.read(&plan, true, |cells| {
            counted += cells
                .in_window(window)
                .map(|cell| cell.2.count)
                .sum::<u64>();
        });
        read.map_or_else(|_| rows(), |()| format!("{counted} rows"))
    };
    let all: Vec<String> = (0..source.dimensions.len()).map(of_dimension).collect();
    match all.iter().all(|one| *one == all[0]) {
        true => all[0].clone(),
        false => format!("{all:?}"),
    }
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(self::files(&path)),
            false if fs::metadata(&path).unwrap().len() > 0 => files.push(path),
            false => {}
        }
    }
    files.sort();
    files
}

#[test]
fn a_changed_bit_changes_no_answer_silently() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("s.fathom");
    recorded(&dir);
    let session = Session::open(&dir).unwrap();
    assert_eq!(session.problems(), [""; 0]);
    let sound = answers(&session);
    assert_eq!(sound.sums[0], "2000 rows");
    let files = files(&dir);
    assert!(files.len() > TABLES.len(), "{files:?}");
    let mut random = fathom_testkit::Random::new(5);
    let (mut named, mut harmless) = (0, 0);
    let mut flip = |file: &Path, place: usize, bit: u64| {
        let whole = fs::read(file).unwrap();
        let mut bytes = whole.clone();
        bytes[place] ^= 1 << bit;
        fs::write(file, bytes).unwrap();
        let what = format!("bit {bit} of byte {place} of {}", file.display());
        match Session::open(&dir) {
            Ok(session) if session.problems().is_empty() => {
                harmless += 1;
                assert!(answers(&session) == sound, "{what} changes answers");
            }
            Ok(session) => {
                named += 1;
                let said = session.problems().join("\n");
                let name = file.file_name().unwrap().to_str().unwrap();
                assert!(said.contains(name), "{what}: {said}");
            }
            Err(e) => {
                named += 1;
                assert!(e.to_string().contains("session.json"), "{what}: {e}");
            }
        }
        fs::write(file, whole).unwrap();
    };
    for _ in 0..1500 {
        let file = &files[random.below(files.len() as u64) as usize];
        let length = fs::metadata(file).unwrap().len();
        flip(file, random.below(length) as usize, random.below(8));
    }
    // Heads of blocks, which are read alone when a session is opened.
    for source in SOURCES {
        let pyramid = dir.join(source.file);
        // Tables without rows have none.
        let length = fs::metadata(&pyramid).map_or(0, |meta| meta.len() as usize);
        for place in 0..length.min(600) {
            flip(&pyramid, place, 0);
        }
    }
    // Where the checksums are.
    let meta = dir.join("session.json");
    let length = fs::metadata(&meta).unwrap().len() as usize;
    let part = session.parts("syscalls").remove(0);
    let bytes = fs::read(&part).unwrap();
    let mark = bytes.windows(8).position(|b| b == b"FATHOMCK").unwrap();
    let ends = |length: usize| (0..40).chain(length - 40..length);
    for (file, places) in [
        (&meta, ends(length).collect::<Vec<_>>()),
        (&part, (mark..mark + 24).collect()),
        (&part, ends(bytes.len()).collect()),
    ] {
        for place in places {
            flip(file, place, random.below(8));
        }
    }
    assert!(named > 1000, "{named} named, {harmless} harmless");
    assert_eq!(answers(&Session::open(&dir).unwrap()), sound);
}

/// The same of a session that was opened by its footers.
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
