//! Paths and identities of files.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use fathom_tests::session::{Row, meta};
use fathom_tests::truth::{Selection, compare, logs, rows_of};
use fathom_tests::{Record, Recording, Scratch, need_program, need_root, skip, workload};

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

/// A service reaches its data by a link to a directory: a file has one path, by whichever call.
#[test]
fn calls_by_a_link_to_a_directory_have_the_path_behind_it() {
    need_root!();
    need_program!("python3");
    let scratch = Scratch::new();
    let work = scratch.work().display().to_string();
    let script = "
import os, sys
os.chdir(sys.argv[1])
def make(path):
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o644))
here = os.getcwd() + '/'
for name in ['v1', 'v2', 'etc', 'store']:
    os.mkdir(name)
os.symlink('v1', 'current')
make(here + 'current/a.tmp')
os.rename(here + 'current/a.tmp', here + 'current/a')
os.stat(here + 'current/a')
os.symlink('v2', 'next')
os.rename('next', 'current')
os.access(here + 'current/b', 0)
make(here + 'current/b')
os.unlink(here + 'current/b')
# A link to a file of the same name says nothing of the directory.
make('store/x')
os.symlink(here + 'store/x', 'etc/x')
make(here + 'etc/x')
os.access(here + 'etc/y', 0)
os.close(os.open(here + 'current', os.O_RDONLY))
os.mkdir(here + 'current/d')
# Where a relative path began is not known when the directory was left.
os.chdir('current')
os.access(here + 'current/d', 0)
os.chdir('d')
os.access(here + 'v2/d/d/e', 0)
";
    let recording = Record::new(&scratch)
        .command(["python3", "-c", script, &work])
        .run()
        .must_exit(0);
    recording.complete();
    let rows = recording.rows(&format!(
        "SELECT syscall, replace(path, '{work}/', '') AS path, replace(path2, '{work}/', '') AS path2
         FROM syscalls WHERE starts_with(path_arg, '{work}/')
         AND syscall NOT IN ('chdir', 'openat', 'readlink', 'newfstatat') OR starts_with(path2, '{work}/')
         ORDER BY ts_ns"
    ));
    let text = |row: &Row, column: &str| row.text(column).unwrap_or("-").to_owned();
    let found: Vec<String> = rows
        .iter()
        .map(|row| ["syscall", "path", "path2"].map(|c| text(row, c)).join(" "))
        .collect();
    assert_eq!(
        found,
        [
            "symlink - current",
            "rename v1/a.tmp v1/a",
            "symlink - next",
            "rename next current",
            "access current/b -",
            "unlink v2/b -",
            "symlink - etc/x",
            "access etc/y -",
            "mkdir v2/d -",
            "access v2/d -",
            "access v2/d/d/e -",
        ]
    );
    // What was opened and what was renamed is one file.
    let opened = "SELECT count(DISTINCT path) FROM syscalls WHERE path_arg LIKE '%current/a%'";
    assert_eq!(recording.number(opened), 2);
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
