//! Recorders that are killed at any moment: what was stored stays, once, and
//! repairing makes a session of it that adds up.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use fathom_model::meta::{Keep, State, Totals};
use fathom_model::tables::{FileRow, FileRows};
use fathom_model::{Batch, StringTable};
use fathom_session::{Session, SessionWriter, WriterOptions, repair};
use parquet::column::reader::ColumnReader;
use parquet::file::reader::{FileReader, SerializedFileReader};

const DIR: &str = "FATHOM_TEST_KILLED_SESSION";
const RING: &str = "FATHOM_TEST_RING";
/// `FATHOM_ROUNDS=1000` takes two minutes.
const KILLS: u32 = 150;

/// Not a test by itself: what `kills_at_any_moment` kills. It writes and merges, and
/// as a ring drops, parts as fast as it can.
#[test]
#[ignore = "runs as a child of another test"]
fn child_that_records_for_ever() {
    let Ok(dir) = std::env::var(DIR) else { return };
    let mut meta = fathom_testkit::meta();
    if std::env::var_os(RING).is_some() {
        meta.history.keep = Some(Keep {
            time_ns: Some(8_000_000),
            bytes: Some(200_000),
            complete_from_ns: None,
        });
    }
    let options = WriterOptions {
        part_rows: 1,
        part_interval: Duration::from_millis(1),
        compact_interval: Duration::from_millis(1),
        ..WriterOptions::default()
    };
    let writer = SessionWriter::create(Path::new(&dir), meta, options).unwrap();
    let mut workload = fathom_testkit::Workload::new(4);
    let mut appended = 0;
    let mut out = std::io::stdout().lock();
    loop {
        writer.append(workload.batch(10)).unwrap();
        writer.append(files(appended)).unwrap();
        appended += 10;
        writer.update_totals(Totals {
            seen: appended,
            ..Totals::default()
        });
        // Rows stored by now must survive any kill.
        let calls = &writer.stats().tables[0];
        writeln!(out, "stored {}", calls.rows + calls.expired).unwrap();
        out.flush().unwrap();
    }
}

/// Rows of table files, with keys that come again and again.
fn files(turn: u64) -> Batch {
    let (mut strings, mut rows) = (StringTable::new(), FileRows::default());
    for i in 0..3 {
        rows.push(FileRow {
            file_id: ((turn / 10 * 7 + i) % 50) as i64,
            dev: 1,
            ino: 2,
            generation: 3,
            file_tag: strings.intern(b"1|2|3"),
            path: strings.intern(format!("/{turn}").as_bytes()),
            file_type: strings.intern(b"regular"),
            size: 4,
            first_seen_at_ns: 5,
            path_complete: true,
            mount_namespace: 6,
            ..Default::default()
        });
    }
    rows.into_batch(strings)
}

/// The first column of a part: rid or file_id.
fn rids(part: &Path) -> Vec<i64> {
    let reader = SerializedFileReader::new(File::open(part).unwrap()).unwrap();
    let mut rids = Vec::new();
    for group in 0..reader.num_row_groups() {
        let group = reader.get_row_group(group).unwrap();
        let ColumnReader::Int64ColumnReader(mut column) = group.get_column_reader(0).unwrap()
        else {
            panic!("rid is no number");
        };
        let rows = group.metadata().num_rows() as usize;
        column.read_records(rows, None, None, &mut rids).unwrap();
    }
    rids
}

/// The rows found by a reader that takes all files that look like parts.
fn glob(dir: &Path, table: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(dir.join(table))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "parquet"))
        .collect();
    found.sort();
    found
}

fn assert_in_sequence(rids: &[i64], what: &str) {
    // Row groups are arranged.
    let mut rids = rids.to_vec();
    rids.sort_unstable();
    for pair in rids.windows(2) {
        assert_eq!(pair[1], pair[0] + 1, "{what}");
    }
}

/// Kills a recorder after `micros` and looks at what it leaves. Returns 1 when it
/// was in the middle of a part or of a merge.
fn kill(dir: &Path, ring: bool, micros: u64) -> usize {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "child_that_records_for_ever", "--ignored"])
        .args(["--nocapture", "--test-threads=1"])
        .env(DIR, dir)
        .stdout(Stdio::piped());
    if ring {
        command.env(RING, "1");
    }
    let mut child = command.spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.starts_with("stored ") {
        line.clear();
        assert!(out.read_line(&mut line).unwrap() > 0, "the child has ended");
    }
    std::thread::sleep(Duration::from_micros(micros));
    child.kill().unwrap();
    child.wait().unwrap();
    let mut text = String::new();
    out.read_to_string(&mut text).unwrap();
    // The last line may be cut.
    let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
    let said = whole.lines().last().and_then(|l| l.strip_prefix("stored "));
    let said: i64 = said.map_or(0, |n| n.parse().unwrap());

    let what = format!("{} ring {ring} after {micros} us", dir.display());
    let session = Session::open(dir).unwrap();
    assert!(session.was_killed(), "{what}");
    let read = |session: &Session| -> Vec<i64> {
        let parts = session.parts("syscalls");
        parts.iter().flat_map(|part| rids(part)).collect()
    };
    let before = read(&session);
    assert_in_sequence(&before, &what);
    let last = before.iter().max().copied().unwrap_or(0);
    assert!(last >= said, "{what}: {last} of {said} that were stored");
    if !ring {
        assert_eq!(before.iter().min().copied().unwrap_or(1), 1, "{what}");
    }

    let planned = repair(dir, false).unwrap();
    let same = Session::open(dir).unwrap();
    assert_eq!(
        read(&same),
        before,
        "{what}: a dry run has changed something"
    );
    let done = repair(dir, true).unwrap();
    assert_eq!(planned.found, done.found, "{what}");
    assert!(!done.found.is_empty(), "{what}");
    let again = repair(dir, true).unwrap();
    assert_eq!(again.found, Vec::<String>::new(), "{what}");
    let session = Session::open(dir).unwrap();
    let after: Vec<i64> = glob(dir, "syscalls").iter().flat_map(|p| rids(p)).collect();
    // A part that was whole but had no name yet is one more.
    assert_in_sequence(&after, &what);
    let first = after.iter().min();
    assert_eq!(first, before.iter().min().or(first), "{what}");
    assert!(after.len() >= before.len(), "{what}");
    let mut files: Vec<i64> = glob(dir, "files").iter().flat_map(|p| rids(p)).collect();
    let rows = files.len();
    files.sort();
    files.dedup();
    assert_eq!(files.len(), rows, "{what}: a file is there twice");
    assert_eq!(session.meta().state, State::Complete, "{what}");
    let totals = &session.meta().totals;
    assert_eq!(totals.stored, after.len() as u64, "{what}");
    assert_eq!(
        totals.seen,
        totals.stored + totals.lost + totals.expired + totals.missing,
        "{what}: {totals:?}"
    );
    if ring && let Some(first) = first {
        assert!(totals.expired + 1 >= *first as u64, "{what}: {totals:?}");
    }
    for table in ["syscalls", "files"] {
        let entries = fs::read_dir(dir.join(table)).unwrap();
        for entry in entries {
            let name = entry.unwrap().file_name();
            assert!(
                name.to_string_lossy().ends_with(".parquet"),
                "{what}: {name:?}"
            );
        }
    }
    let of = |text: &str| usize::from(done.found.iter().any(|f| f.contains(text)));
    fs::remove_dir_all(dir).unwrap();
    of("removed").max(of("was complete but not published"))
}

#[test]
fn kills_at_any_moment() {
    // In memory, if there is such a place: flushing is not what is tested.
    let temp = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    let temp = temp.unwrap();
    let kills = fathom_testkit::rounds(KILLS);
    // Two at a time: most of the time goes into waiting.
    let hits: usize = std::thread::scope(|scope| {
        let halves: Vec<_> = (0..2u64)
            .map(|half| {
                let temp = temp.path();
                scope.spawn(move || {
                    let mut random = fathom_testkit::Random::new(91 + half);
                    let kills = (0..kills / 2).map(|i| {
                        let dir = temp.join(format!("{half}-{i}.fathom"));
                        kill(&dir, i % 2 == 1, random.below(30_000))
                    });
                    kills.sum::<usize>()
                })
            })
            .collect();
        halves.into_iter().map(|half| half.join().unwrap()).sum()
    });
    // Some must have hit a part or a merge in the middle, else this tests little.
    assert!(hits > 0);
    eprintln!("{hits} of {kills} kills left something unfinished");
}
