//! Operations of io_uring: a row each, with what the program knows of them.

use std::collections::BTreeSet;

use fathom_model::syscalls::{Api, SYSCALLS};
use fathom_tests::truth::{Log, Selection, compare, logs};
use fathom_tests::{Record, Recording, Scratch, need_root, workload};

fn record(options: &[&str]) -> (Scratch, Recording) {
    let scratch = Scratch::new();
    let recording = Record::new(&scratch)
        .options(options)
        .command([workload("uring").as_os_str(), scratch.work().as_os_str()])
        .run()
        .must_exit(0);
    recording.complete();
    (scratch, recording)
}

#[test]
fn every_operation_of_all_file_types() {
    need_root!();
    let (scratch, recording) = record(&["--syscalls", "all"]);
    let logs = logs(&scratch.truth());
    compare(&recording, &logs, Selection::All);
    is_complete(&logs);
    multishot(&recording);
}

#[test]
fn every_storage_operation() {
    need_root!();
    let (scratch, recording) = record(&[]);
    compare(&recording, &logs(&scratch.truth()), Selection::Storage);
    let sockets = recording.number(
        "SELECT count(*) FROM syscalls JOIN files USING (file_id)
         WHERE api = 'io_uring' AND file_type NOT IN ('regular', 'directory')
           AND syscall NOT IN ('IORING_OP_SPLICE', 'IORING_OP_TEE')",
    );
    assert_eq!(sockets, 0);
}

/// The workload makes what operations on storage there are, with success and
/// with failure.
fn is_complete(logs: &[Log]) {
    let made = |failed: bool| -> BTreeSet<&str> {
        let calls = logs.iter().flat_map(|l| &l.calls);
        calls
            .filter(|c| (c.ret < 0) == failed)
            .map(|c| c.syscall.as_str())
            .collect()
    };
    let (succeeded, failed) = (made(false), made(true));
    let declared = || {
        SYSCALLS
            .iter()
            .filter(|s| s.api == Api::IoUring && s.class.name() != "async" && !s.all_types)
            .map(|s| s.name.trim_start_matches("IORING_OP_"))
    };
    // They need a network, or a kernel that is newer than most.
    let never = ["ACCEPT", "CONNECT", "BIND", "LISTEN", "RECV_ZC", "SEND_ZC", "SENDMSG_ZC"];
    let new = ["FTRUNCATE", "READV_FIXED", "WRITEV_FIXED", "FIXED_FD_INSTALL"];
    let missing = |made: &BTreeSet<&str>, but: &[&str]| -> Vec<&str> {
        declared()
            .filter(|n| !made.contains(format!("IORING_OP_{n}").as_str()))
            .filter(|n| !never.contains(n) && !new.contains(n) && !but.contains(n))
            .collect()
    };
    // Multishot has a test of its own.
    let other = missing(&succeeded, &["READ_MULTISHOT"]);
    assert!(other.is_empty(), "never succeed: {other:?}");
    let other = missing(&failed, &["READ_MULTISHOT"]);
    assert!(other.is_empty(), "never fail: {other:?}");
}

/// A request that completes several times has a row for each, one after the
/// other.
fn multishot(recording: &Recording) {
    let text = recording.text();
    let shots: Vec<(i64, i64)> = text
        .lines()
        .filter_map(|line| {
            let mut words = line.strip_prefix("shot ")?.split(' ');
            Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
        })
        .collect();
    let rows = recording.rows(
        "SELECT user_data, ret, op_flags, ts_ns, dur_ns FROM syscalls
         WHERE syscall = 'IORING_OP_READ_MULTISHOT' ORDER BY ts_ns",
    );
    let stored: Vec<_> = rows
        .iter()
        .map(|r| (r.int("user_data").unwrap(), r.int("ret").unwrap()))
        .collect();
    assert_eq!(stored, shots);
    for (i, row) in rows.iter().enumerate() {
        let more = row.text("op_flags").unwrap().contains("MORE");
        assert_eq!(more, i + 1 < rows.len(), "{row:?}");
    }
    for pair in rows.windows(2) {
        let end = pair[0].int("ts_ns").unwrap() + pair[0].int("dur_ns").unwrap();
        assert_eq!(pair[1].int("ts_ns"), Some(end));
    }
}
