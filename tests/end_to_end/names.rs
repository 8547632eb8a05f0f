//! Paths and identities of files.

use std::collections::BTreeSet;

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
