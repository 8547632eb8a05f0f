//! Known calls by one thread and by many: rows equal calls.

use std::collections::BTreeSet;
use std::fs;

use fathom_model::syscalls::{Api, SYSCALLS};
use fathom_tests::truth::{ALL_BUT_NETWORK, Selection, compare, logs, recordable, rows_of};
use fathom_tests::{Record, Scratch, need_root, workload};

use crate::kernel::skips_for_oldest_programs;

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
    let (scratch, recording) = record_calls(&["--syscalls", ALL_BUT_NETWORK]);
    compare(&recording, &logs(&scratch.truth()), Selection::All);
}

/// Calls around files (mounts, roots, mappings, watches), and arguments that do not
/// fill a register or no column.
#[test]
fn calls_on_mounts_mappings_and_watches() {
    need_root!();
    // They do not look up mappings.
    if skips_for_oldest_programs() {
        return;
    }
    let scratch = Scratch::new();
    let recording = Record::new(&scratch)
        .options(["--syscalls", ALL_BUT_NETWORK])
        .command([workload("system").as_os_str(), scratch.work().as_os_str()])
        .run()
        .must_exit(0);
    recording.complete();
    compare(&recording, &logs(&scratch.truth()), Selection::All);
    // What is no path has none, and nothing that a path could be taken for.
    let rows = recording.rows(
        "SELECT path, path_arg, args FROM syscalls
         WHERE syscall = 'chdir' AND ret < 0 AND path_arg IS DISTINCT FROM 'none' ORDER BY ts_ns",
    );
    let texts: Vec<_> = rows
        .iter()
        .map(|r| {
            (
                r.text("path"),
                r.text("path_arg").map(str::len),
                r.text("args"),
            )
        })
        .collect();
    assert_eq!(
        texts,
        [
            (None, Some(4095), Some("path_arg=partial")),
            (None, None, Some("path_arg=NULL")),
            (None, None, Some("path_arg=partial")),
            (None, Some(0), None),
        ]
    );
    // What stat says of a file that nothing else is known of.
    let seen = recording.rows(
        "SELECT f.file_type, f.size FROM syscalls s JOIN files f USING (file_id)
         WHERE s.path_arg = '../outside' AND s.syscall = 'newfstatat' LIMIT 1",
    );
    assert_eq!(seen[0].text("file_type"), Some("regular"));
}

/// A path that is given inside of a jail stays there for the filter, too.
#[test]
fn paths_of_a_jail_are_filtered_as_the_kernel_follows_them() {
    need_root!();
    let recorded = |filter: &str| {
        let scratch = Scratch::new();
        let path = format!("{}{}", filter, scratch.work().join("jail").display());
        let recording = Record::new(&scratch)
            .options(["--path", &path, "--syscalls", "newfstatat,faccessat"])
            .command([workload("system").as_os_str(), scratch.work().as_os_str()])
            .run()
            .must_exit(0);
        recording.complete();
        let rows = recording.rows("SELECT path_arg FROM syscalls ORDER BY ts_ns");
        let args = rows.iter().filter_map(|r| r.text("path_arg"));
        args.filter(|arg| arg.contains("outside") || arg.contains("gone"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    // Two rounds of seven, and the one before the jail.
    let inside = recorded("");
    assert_eq!(inside.len(), 15, "{inside:?}");
    let others = recorded("!");
    assert!(others.is_empty(), "{others:?}");
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
        let (scratch, recording) =
            record_calls(&["--detail", detail, "--syscalls", ALL_BUT_NETWORK]);
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
            let calls: Vec<_> = recordable(&recording, &log)
                .map(|c| (c.syscall.clone(), c.ret))
                .collect();
            let agreeing = |from: usize| {
                let pairs = rows[from..].iter().zip(&calls);
                pairs.take_while(|(row, call)| row == call).count()
            };
            let from = (0..rows.len()).max_by_key(|from| agreeing(*from)).unwrap();
            let agree = agreeing(from);
            assert!(
                agree == calls.len(),
                "--detail {detail}: {agree} of {} calls are among the rows; then {:?} instead of {:?}",
                calls.len(),
                rows.get(from + agree),
                calls[agree]
            );
        }
    }
}

/// The workload makes every call that the table declares, with success and with
/// failure where it can fail.
#[test]
fn the_workloads_make_every_call_of_the_table() {
    need_root!();
    let scratch = Scratch::new();
    for name in ["calls", "system", "sockets"] {
        let work = scratch.work().join(name);
        fs::create_dir(&work).unwrap();
        let status = std::process::Command::new(workload(name))
            .arg(work)
            .env("TRUTH_DIR", scratch.truth())
            .status()
            .unwrap();
        assert!(status.success());
    }
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
    // A submitted read ends before it can be cancelled. No file system with quotas
    // and no swap space is to be had everywhere, and the root of the machine is to
    // stay where it is.
    let never = [
        "io_cancel",
        "quotactl",
        "quotactl_fd",
        "swapon",
        "swapoff",
        "pivot_root",
        // A signal ends it; another thread would have to wake the others.
        "pause",
        "futex_wait",
        "futex_waitv",
    ];
    let missing: Vec<_> = declared()
        .filter(|n| !succeeded.contains(n) && !never.contains(n))
        .collect();
    assert!(missing.is_empty(), "never succeed: {missing:?}");
    // These have no errors.
    let never = ["sync", "umask", "munlockall", "inotify_init", "eventfd"];
    let missing: Vec<_> = declared()
        .filter(|n| !failed.contains(n) && !never.contains(n))
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

/// Checks that I/O of `(offset, bytes)`, which adds up to `end` bytes at a shared position, does
/// not overlap where its offset is known, and that all calls have one where nothing raced.
pub fn assert_shared(pieces: &[(Option<i64>, i64)], end: i64) {
    assert_eq!(pieces.iter().map(|p| p.1).sum::<i64>(), end);
    let known = pieces.iter().filter_map(|(o, bytes)| Some(((*o)?, *bytes)));
    let mut known: Vec<_> = known.collect();
    known.sort_unstable();
    for pair in known.windows(2) {
        assert!(pair[0].0 + pair[0].1 <= pair[1].0, "{pair:?}");
    }
    let last = known.last().expect("no offset is known");
    assert!(known[0].0 >= 0 && last.0 + last.1 <= end, "{last:?}");
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
                pieces.push((row.int("file_offset"), row.int("ret").unwrap()));
            }
        }
    }
    assert_shared(&pieces, SHARED_BYTES);
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
                pieces.push((row.int("file_offset").unwrap(), row.int("ret").unwrap()));
            }
        }
    }
    assert_partition(pieces, 2000 * (7 + 11));
}
