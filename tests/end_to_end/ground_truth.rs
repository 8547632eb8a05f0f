//! Known calls by one thread and by many: rows equal calls.

use std::collections::BTreeSet;
use std::fs;

use fathom_model::syscalls::{Api, SYSCALLS};
use fathom_tests::truth::{Selection, compare, logs, rows_of};
use fathom_tests::{Record, Scratch, need_root, workload};

fn record_calls(options: &[&str]) -> (Scratch, fathom_tests::Recording) {
    let scratch = Scratch::new();
    let recording = Record::new(&scratch)
        .options(options)
        .command([workload("calls").as_os_str(), scratch.work().as_os_str()])
        .run()
        .must_exit(0);
    recording.complete();
    (scratch, recording)
}

#[test]
fn every_call_of_all_file_types() {
    need_root!();
    let (scratch, recording) = record_calls(&["--syscalls", "all"]);
    compare(&recording, &logs(&scratch.truth()), Selection::All);
}

#[test]
fn every_storage_call() {
    need_root!();
    let (scratch, recording) = record_calls(&[]);
    compare(&recording, &logs(&scratch.truth()), Selection::Storage);
}

/// With less detail the calls are the same; only what they say of files is less.
#[test]
fn less_detail_records_the_same_calls() {
    need_root!();
    for detail in ["raw", "fds"] {
        let (scratch, recording) = record_calls(&["--detail", detail, "--syscalls", "all"]);
        for log in logs(&scratch.truth()) {
            let rows = recording.rows(&format!(
                "SELECT syscall, ret, fd FROM syscalls WHERE tid = {} ORDER BY ts_ns, rid",
                log.tid
            ));
            // Paths may be missing, so the markers cannot be found by theirs:
            // the calls are a stretch of the thread's.
            let rows: Vec<_> = rows
                .iter()
                .map(|r| (r.text("syscall").unwrap().to_owned(), r.int("ret").unwrap()))
                .collect();
            let calls: Vec<_> = log
                .calls
                .iter()
                .map(|c| (c.syscall.clone(), c.ret))
                .collect();
            assert!(
                rows.windows(calls.len()).any(|stretch| stretch == calls),
                "--detail {detail}: the calls are not among the {} rows",
                rows.len()
            );
        }
    }
}

/// The workload makes every call that the table declares, with success and with
/// failure where it can fail.
#[test]
fn the_workload_makes_every_call_of_the_table() {
    let scratch = Scratch::new();
    let status = std::process::Command::new(workload("calls"))
        .arg(scratch.work())
        .env("TRUTH_DIR", scratch.truth())
        .status()
        .unwrap();
    assert!(status.success());
    let logs = logs(&scratch.truth());
    let made = |failed: bool| -> BTreeSet<&str> {
        let calls = logs.iter().flat_map(|l| &l.calls);
        calls
            .filter(|c| (-4095..0).contains(&c.ret) == failed)
            .map(|c| c.syscall.as_str())
            .collect()
    };
    let (succeeded, failed) = (made(false), made(true));
    let declared = || {
        SYSCALLS
            .iter()
            .filter(|s| s.number().is_some() && s.api == Api::Syscall)
            .map(|s| s.name)
    };
    // A submitted read ends before it can be cancelled.
    let missing: Vec<_> = declared()
        .filter(|n| !succeeded.contains(n) && *n != "io_cancel")
        .collect();
    assert!(missing.is_empty(), "never succeed: {missing:?}");
    // sync(2) has no errors.
    let missing: Vec<_> = declared()
        .filter(|n| !failed.contains(n) && *n != "sync")
        .collect();
    assert!(missing.is_empty(), "never fail: {missing:?}");
}

#[test]
fn only_the_selected_calls() {
    need_root!();
    let (scratch, recording) = record_calls(&["--syscalls", "fsync,xattr"]);
    let logs = logs(&scratch.truth());
    let selected = |name: &str| name == "fsync" || name.contains("xattr");
    let calls: Vec<_> = logs[0]
        .calls
        .iter()
        .filter(|c| selected(&c.syscall))
        .map(|c| (c.syscall.clone(), c.ret))
        .collect();
    let rows: Vec<_> = recording
        .rows("SELECT syscall, ret FROM syscalls ORDER BY ts_ns")
        .iter()
        .map(|r| (r.text("syscall").unwrap().to_owned(), r.int("ret").unwrap()))
        .collect();
    assert_eq!(calls, rows);
}

#[test]
fn threads_with_files_of_their_own() {
    need_root!();
    let scratch = Scratch::new();
    let recording = Record::new(&scratch)
        .command([
            workload("threads").as_os_str(),
            "own".as_ref(),
            scratch.work().as_os_str(),
        ])
        .command(["8", "500"])
        .run()
        .must_exit(0);
    recording.complete();
    let logs = logs(&scratch.truth());
    assert_eq!(logs.len(), 8);
    compare(&recording, &logs, Selection::Storage);
}

const SHARED_BYTES: i64 = 512 * 3001 + 77;

fn make_shared(scratch: &Scratch) {
    fs::write(
        scratch.work().join("shared"),
        vec![7; SHARED_BYTES as usize],
    )
    .unwrap();
}

/// Checks that I/O of `(offset, bytes)` covers `0..end` without gap or overlap.
pub fn assert_partition(mut pieces: Vec<(i64, i64)>, end: i64) {
    pieces.sort_unstable();
    let mut at = 0;
    let mut wrong = 0;
    let mut first = None;
    for (offset, bytes) in &pieces {
        if *offset != at {
            wrong += 1;
            first = first.or(Some((at, *offset, *bytes)));
        }
        at = at.max(offset + bytes);
    }
    assert_eq!(
        wrong,
        0,
        "of {} pieces; first: expected at, is at, bytes: {first:?}",
        pieces.len()
    );
    assert_eq!(at, end);
}

fn shared_reads(scratch: &Scratch, recording: &fathom_tests::Recording, readers: usize) {
    recording.complete();
    let logs = logs(&scratch.truth());
    assert_eq!(logs.len(), readers);
    compare(recording, &logs, Selection::Storage);
    let mut pieces = Vec::new();
    for log in &logs {
        for row in rows_of(recording, log) {
            if row.text("syscall") == Some("read") && row.int("ret") > Some(0) {
                pieces.push((row.int("offset").unwrap(), row.int("ret").unwrap()));
            }
        }
    }
    assert_partition(pieces, SHARED_BYTES);
}

#[test]
fn threads_that_share_a_descriptor() {
    need_root!();
    let scratch = Scratch::new();
    make_shared(&scratch);
    let recording = Record::new(&scratch)
        .command([
            workload("threads").as_os_str(),
            "shared".as_ref(),
            scratch.work().as_os_str(),
        ])
        .command(["4", "0"])
        .run()
        .must_exit(0);
    shared_reads(&scratch, &recording, 4);
}

#[test]
fn processes_that_share_a_descriptor() {
    need_root!();
    let scratch = Scratch::new();
    make_shared(&scratch);
    let recording = Record::new(&scratch)
        .command([workload("processes").as_os_str(), "inherit".as_ref()])
        .command([scratch.work()])
        .run()
        .must_exit(0);
    shared_reads(&scratch, &recording, 2);
}

#[test]
fn processes_that_append_to_one_file() {
    need_root!();
    let scratch = Scratch::new();
    let recording = Record::new(&scratch)
        .command([workload("processes").as_os_str(), "append".as_ref()])
        .command([scratch.work()])
        .run()
        .must_exit(0);
    recording.complete();
    let logs = logs(&scratch.truth());
    assert_eq!(logs.len(), 2);
    compare(&recording, &logs, Selection::Storage);
    let mut pieces = Vec::new();
    for log in &logs {
        for row in rows_of(&recording, log) {
            if row.text("syscall") == Some("write") {
                pieces.push((row.int("offset").unwrap(), row.int("ret").unwrap()));
            }
        }
    }
    assert_partition(pieces, 2000 * (7 + 11));
}
