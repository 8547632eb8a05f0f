//! Paths and identities of files.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use fathom_tests::session::meta;
use fathom_tests::truth::{Selection, compare, logs, rows_of};
use fathom_tests::{Record, Recording, Scratch, need_root, skip, workload};

fn record_names(scratch: &Scratch, mode: &str) -> Recording {
    let recording = Record::new(scratch)
        .command([
            workload("names").as_os_str(),
            mode.as_ref(),
            scratch.work().as_os_str(),
        ])
        .run()
        .must_exit(0);
    recording.complete();
    compare(&recording, &logs(&scratch.truth()), Selection::Storage);
    recording
}

#[test]
fn paths_follow_renames_links_and_directories() {
    need_root!();
    let scratch = Scratch::new();
    let recording = record_names(&scratch, "moves");
    // A file keeps its id whatever it is called, and one id is one file.
    let files = recording.rows(
        "SELECT count(*) AS files, count(DISTINCT (dev, ino, generation)) AS identities
         FROM files WHERE generation IS NOT NULL",
    );
    assert_eq!(files[0].int("files"), files[0].int("identities"));
    let renamed = scratch.work().join("after");
    let names = recording.rows(&format!(
        "SELECT p.path FROM file_paths p JOIN files f USING (file_id)
         WHERE f.path = '{}' ORDER BY p.ts_ns",
        renamed.display()
    ));
    let names: Vec<_> = names
        .iter()
        .map(|r| r.text("path").unwrap().to_owned())
        .collect();
    let before = scratch.work().join("before");
    assert_eq!(
        names,
        [before.display().to_string(), renamed.display().to_string()]
    );
}

/// Memory does not grow with paths beyond the limit that is told.
#[test]
#[ignore = "long"]
fn long_paths_stay_within_the_memory_that_is_promised() {
    need_root!();
    let scratch = Scratch::new();
    let recording = Record::new(&scratch)
        .command([
            workload("names").as_os_str(),
            "long".as_ref(),
            scratch.work().as_os_str(),
        ])
        .run()
        .must_exit(0);
    recording.balanced();
    let cost = &meta(&recording.session)["cost"];
    let limit = cost["recorder_limit_bytes"].as_u64().unwrap();
    let peak = cost["recorder_peak_rss_bytes"].as_u64().unwrap();
    println!("{} of {} MiB", peak >> 20, limit >> 20);
    assert!(peak <= limit, "{peak} of {limit}");
    // Names are remembered in 256 MiB: these are far more.
    let named = recording.number(
        "SELECT sum(length(path)) FROM syscalls WHERE syscall = 'openat' AND length(path) > 3600",
    );
    assert!(named as u64 > 3 * (256 << 20), "{named}");
    let told = recording.number("SELECT recorder_limit_bytes FROM session");
    assert_eq!(told as u64, limit);
}

/// A name is only partial where its own path changed while it was read, whatever
/// others on the machine rename meanwhile.
#[test]
fn renames_of_others_leave_names_whole() {
    need_root!();
    const FILES: usize = 1500;
    let scratch = Scratch::new();
    let deep = scratch.work().join("a/b/c/d/e/f/g/h/i/j");
    fs::create_dir_all(&deep).unwrap();
    let names: Vec<PathBuf> = (0..FILES).map(|i| deep.join(i.to_string())).collect();
    for name in &names {
        fs::write(name, "x").unwrap();
    }
    // In memory, where a rename is short: some hundred thousand a second.
    let quick = tempfile::tempdir_in("/dev/shm").unwrap();
    let moving = quick.path().join("moving");
    fs::write(&moving, "").unwrap();
    let ended = AtomicBool::new(false);
    let (recording, renames) = thread::scope(|scope| {
        let renamer = scope.spawn(|| {
            let moved = quick.path().join("moved");
            let mut renames = 0_usize;
            while !ended.load(Ordering::Relaxed) {
                fs::rename(&moving, &moved).unwrap();
                fs::rename(&moved, &moving).unwrap();
                renames += 2;
            }
            renames
        });
        let recording = Record::new(&scratch)
            .command(
                ["cat".as_ref()]
                    .into_iter()
                    .chain(names.iter().map(|n| n.as_os_str())),
            )
            .run();
        ended.store(true, Ordering::Relaxed);
        (recording, renamer.join().unwrap())
    });
    let recording = recording.must_exit(0);
    recording.complete();
    assert!(renames > FILES, "only {renames} renames");
    let read = recording.rows(&format!(
        "SELECT count(DISTINCT path) AS files FROM syscalls
         WHERE syscall = 'close' AND starts_with(path, '{}/')",
        deep.display()
    ));
    assert_eq!(read[0].int("files"), Some(FILES as i64));
    let partial = recording.rows("SELECT path FROM file_paths WHERE NOT path_complete");
    assert!(partial.is_empty(), "{partial:?}");
}

#[test]
fn names_of_any_bytes_and_the_longest_path() {
    need_root!();
    let scratch = Scratch::new();
    let recording = record_names(&scratch, "strange");
    // Byte-exact where text cannot be.
    let raw: BTreeSet<_> = recording
        .rows("SELECT hex(path_raw) AS raw FROM files WHERE path_raw IS NOT NULL")
        .iter()
        .map(|r| r.text("raw").unwrap().to_lowercase())
        .collect();
    for name in [&b"not utf-8 \xff\xfe\x80 end"[..], b"cut sequence \xe2\x82"] {
        let mut path = scratch.work().into_os_string().into_encoded_bytes();
        path.push(b'/');
        path.extend_from_slice(name);
        let hex: String = path.iter().map(|b| format!("{b:02x}")).collect();
        assert!(
            raw.contains(&hex),
            "{} is not among {raw:?}",
            path.escape_ascii()
        );
    }
    assert_eq!(
        recording.number("SELECT count(*) FROM files WHERE length(path) = 4095 AND path_complete"),
        1
    );
}

#[test]
fn a_recycled_inode_is_a_new_file() {
    need_root!();
    let scratch = Scratch::new();
    let recording = record_names(&scratch, "recycle");
    if recording.text().trim() == "0" {
        skip("the file system of the temporary directory does not reuse inode numbers");
        return;
    }
    let mut ids = BTreeSet::new();
    let mut inodes = BTreeSet::new();
    let mut opens = 0;
    let mut current = None;
    for log in logs(&scratch.truth()) {
        for row in rows_of(&recording, &log) {
            match row.text("syscall").unwrap() {
                "openat" => {
                    opens += 1;
                    current = row.int("file_id");
                    assert!(ids.insert(current), "the id of an earlier file: {row:?}");
                    inodes.insert(row.int("ino"));
                }
                "unlinkat" => {}
                _ => assert_eq!(row.int("file_id"), current, "{row:?}"),
            }
        }
    }
    assert!(
        inodes.len() < opens,
        "inode numbers came back, but not in the rows"
    );
}
