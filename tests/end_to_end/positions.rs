//! Offsets that the kernel chooses: at a position or an end of file that several threads use.
//! What the file holds, or the data that were read, tell where each call took place.

use std::collections::HashMap;
use std::fs;

use fathom_tests::session::meta;
use fathom_tests::{Record, Recording, Scratch, need_root, workload};

const THREADS: i64 = 3;
const CALLS: i64 = 4000;

/// Where the call took place, by name of the thread and number of the call.
type Places = HashMap<(String, usize), i64>;

fn record(scratch: &Scratch, mode: &str) -> Recording {
    let recording = Record::new(scratch)
        .command([workload("positions").as_os_str(), mode.as_ref()])
        .command([scratch.work()])
        .command([THREADS.to_string(), CALLS.to_string()])
        .run()
        .must_exit(0);
    recording.complete();
    recording
}

/// Lines `THREAD NUMBER ...` at their places in the file.
fn written(scratch: &Scratch) -> Places {
    let log = fs::read_to_string(scratch.work().join("log")).unwrap();
    let mut at = 0;
    let mut places = Places::new();
    for line in log.split_inclusive('\n') {
        let mut words = line.split_whitespace();
        let key = (
            format!("io-{}", words.next().unwrap()),
            words.next().unwrap().parse().unwrap(),
        );
        assert_eq!(places.insert(key, at), None, "{line}");
        at += line.len() as i64;
    }
    places
}

/// Compares the calls on `file` with where they took place; returns how many have no offset.
fn compare(recording: &Recording, syscall: &str, file: &str, truth: &Places) -> i64 {
    let rows = recording.rows(&format!(
        "SELECT comm, row_number() OVER (PARTITION BY comm ORDER BY ts_ns) - 1 AS number, \
         file_offset FROM syscalls WHERE syscall = '{syscall}' AND path LIKE '%/{file}' \
         AND comm LIKE 'io-%'"
    ));
    assert_eq!(rows.len() as i64, THREADS * CALLS);
    let mut unknown = 0;
    for row in &rows {
        let number = row.int("number").unwrap() as usize;
        let place = truth[&(row.text("comm").unwrap().to_owned(), number)];
        match row.int("file_offset") {
            Some(offset) => assert_eq!(offset, place, "{row:?}"),
            None => unknown += 1,
        }
    }
    let counted = meta(&recording.session)["totals"]["offsets_unknown"].clone();
    assert_eq!(counted, unknown);
    unknown
}

/// Each opens the file anew, so each description is used by one thread, at an address that the
/// kernel uses for many, and the end of the file moves at any time.
#[test]
fn appends_by_descriptions_of_their_own() {
    need_root!();
    let scratch = Scratch::new();
    let recording = record(&scratch, "own");
    assert_eq!(compare(&recording, "write", "log", &written(&scratch)), 0);
    let overwrites =
        recording.number("SELECT count(*) FROM findings WHERE rule = 'redundant-write'");
    assert_eq!(overwrites, 0);
}

#[test]
fn appends_by_one_description() {
    need_root!();
    let scratch = Scratch::new();
    let recording = record(&scratch, "description");
    let unknown = compare(&recording, "write", "log", &written(&scratch));
    assert!(unknown < THREADS * CALLS, "no offset is known");
}

#[test]
fn writes_at_one_position() {
    need_root!();
    let scratch = Scratch::new();
    let recording = record(&scratch, "position");
    let unknown = compare(&recording, "write", "log", &written(&scratch));
    assert!(unknown < THREADS * CALLS, "no offset is known");
}

#[test]
fn reads_at_one_position() {
    need_root!();
    let scratch = Scratch::new();
    let recording = record(&scratch, "reads");
    let mut truth = Places::new();
    for line in String::from_utf8_lossy(&recording.stdout).lines() {
        let words: Vec<i64> = line.split(' ').map(|w| w.parse().unwrap()).collect();
        truth.insert((format!("io-{}", words[0]), words[1] as usize), words[2]);
    }
    let unknown = compare(&recording, "read", "numbers", &truth);
    assert!(unknown < THREADS * CALLS, "no offset is known");
}

/// The offset that is passed says nothing, and no position moves.
#[test]
fn positional_writes_that_append() {
    need_root!();
    for (mode, syscall) in [("pwrite", "pwrite64"), ("flag", "pwritev2")] {
        let scratch = Scratch::new();
        let recording = record(&scratch, mode);
        let unknown = compare(&recording, syscall, "log", &written(&scratch));
        assert!(unknown < THREADS * CALLS, "{mode}: no offset is known");
    }
}
