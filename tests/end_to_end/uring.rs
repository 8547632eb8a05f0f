//! Operations of io_uring: a row each, with what the program knows of them.

use std::collections::BTreeSet;

use fathom_model::syscalls::{Api, SYSCALLS};
use fathom_tests::truth::{ALL_BUT_NETWORK, Log, Selection, compare, logs};
use fathom_tests::{Record, Recording, Scratch, need_root, workload};
use rustix::process::Signal;

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
    let (scratch, recording) = record(&["--syscalls", ALL_BUT_NETWORK]);
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
    let never = [
        "ACCEPT",
        "CONNECT",
        "BIND",
        "LISTEN",
        "RECV_ZC",
        "SEND_ZC",
        "SENDMSG_ZC",
    ];
    let new = [
        "FTRUNCATE",
        "READV_FIXED",
        "WRITEV_FIXED",
        "FIXED_FD_INSTALL",
    ];
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

/// A recorder of `uring_ways`, on a file of 1.2 MB.
fn ways(scratch: &Scratch, way: &str, count: i64) -> Record {
    let file = scratch.work().join("file");
    std::fs::write(&file, vec![1; 1_200_000]).unwrap();
    Record::new(scratch)
        .command([workload("uring_ways").as_os_str(), way.as_ref()])
        .command([file.as_os_str(), count.to_string().as_ref()])
}

/// Places and sizes that the workload printed.
fn printed(recording: &Recording) -> Vec<(i64, i64)> {
    let text = recording.text();
    text.lines()
        .map(|line| {
            let (offset, size) = line.split_once(' ').unwrap();
            (offset.parse().unwrap(), size.parse().unwrap())
        })
        .collect()
}

const READS: &str = "SELECT file_offset, size, ret, op_flags, tid, pid, comm, path FROM syscalls
    WHERE syscall = 'IORING_OP_READ' ORDER BY ts_ns";

fn pieces(rows: &[fathom_tests::session::Row]) -> Vec<(i64, i64)> {
    rows.iter()
        .map(|r| (r.int("file_offset").unwrap(), r.int("size").unwrap()))
        .collect()
}

/// The thread of a ring submits: its rows name it, and it is among the threads
/// of the process.
#[test]
fn reads_that_the_kernels_thread_submits() {
    need_root!();
    let scratch = Scratch::new();
    let recording = ways(&scratch, "sqpoll", 300).run().must_exit(0);
    recording.complete();
    let rows = recording.rows(READS);
    assert_eq!(pieces(&rows), printed(&recording));
    let file = scratch.work().join("file").display().to_string();
    for (i, row) in rows.iter().enumerate() {
        assert_eq!(row.int("ret"), row.int("size"));
        assert_eq!(row.text("path"), Some(file.as_str()));
        let fixed = if i % 2 == 1 { "FIXED_FILE|" } else { "" };
        assert_eq!(
            row.text("op_flags"),
            Some(format!("{fixed}SQPOLL").as_str())
        );
        assert_ne!(row.int("tid"), row.int("pid"));
        assert!(row.text("comm").unwrap().starts_with("iou-sqp-"), "{row:?}");
    }
    let known = recording.number(
        "SELECT count(DISTINCT tid) FROM syscalls JOIN processes USING (pid, tid)
         WHERE syscall = 'IORING_OP_READ'",
    );
    assert_eq!(known, 1);
}

#[test]
fn rings_of_several_threads() {
    need_root!();
    let scratch = Scratch::new();
    let recording = ways(&scratch, "threads", 1000).run().must_exit(0);
    recording.complete();
    let wrong = recording.number(
        "SELECT count(*) FROM (SELECT count(*) AS n, count(DISTINCT user_data) AS ids,
                bool_and(ret = size AND file_offset = user_data * 997 % 1000000) AS ok
            FROM syscalls WHERE syscall = 'IORING_OP_READ' GROUP BY tid)
         WHERE n <> 1000 OR ids <> 1000 OR NOT ok",
    );
    assert_eq!(wrong, 0);
    let rows = "SELECT count(*) FROM syscalls WHERE syscall = 'IORING_OP_READ'";
    assert_eq!(recording.number(rows), 4000);
}

/// The kernel does not say to which request a completion belongs when there is
/// no room for it; all have a row all the same.
#[test]
fn more_completions_than_there_is_room_for() {
    need_root!();
    let scratch = Scratch::new();
    let recording = ways(&scratch, "overflow", 100).run().must_exit(0);
    recording.complete();
    let rows = recording.rows(READS);
    assert_eq!(pieces(&rows), printed(&recording));
    assert!(rows.iter().all(|r| r.int("ret") == r.int("size")));
}

/// Without a completion there is no result: null, and marked.
#[test]
fn completions_that_are_left_out() {
    need_root!();
    let scratch = Scratch::new();
    let recording = ways(&scratch, "skip", 100).run().must_exit(0);
    recording.complete();
    let mut rows = recording.rows(READS);
    assert_eq!(pieces(&rows), printed(&recording));
    let last = rows.pop().unwrap();
    assert_eq!(last.int("ret"), Some(-14));
    assert_eq!(last.text("op_flags"), Some("CQE_SKIP"));
    for row in rows {
        assert_eq!(row.int("ret"), None);
        // The last ones are seen no more.
        let flags = row.text("op_flags").unwrap();
        assert!(
            ["CQE_SKIP|COMPLETION_UNSEEN", "CQE_SKIP"].contains(&flags),
            "{flags}"
        );
    }
}

/// An operation that had not ended is a row without a result.
#[test]
fn an_operation_that_never_ends() {
    need_root!();
    let scratch = Scratch::new();
    let mut running = ways(&scratch, "pending", 1)
        .options(["--syscalls", ALL_BUT_NETWORK])
        .interactive()
        .spawn();
    assert_eq!(running.line(), "waits");
    // A shell that starts tests in the background has them ignore SIGINT, and the program, too.
    running.signal(Signal::TERM);
    let recording = running.wait();
    recording.complete();
    let rows = recording.rows(
        "SELECT ret, file_offset, syscalls.size, file_type FROM syscalls JOIN files USING (file_id)
         WHERE syscall = 'IORING_OP_READ'",
    );
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].text("file_type"), Some("fifo"));
    assert_eq!(rows[0].int("size"), Some(512));
    assert_eq!(rows[0].int("file_offset"), None);
    // Null, or cancelled as the program ended.
    assert!(rows[0].int("ret").is_none_or(|ret| ret < 0), "{rows:?}");
}

/// With less detail the operations are the same; only what they say of files is
/// less.
#[test]
fn less_detail_records_the_same_operations() {
    need_root!();
    for (detail, paths) in [("raw", false), ("fds", true)] {
        let scratch = Scratch::new();
        let recording = Record::new(&scratch)
            .options(["--detail", detail, "--syscalls", ALL_BUT_NETWORK])
            .command([workload("uring").as_os_str(), scratch.work().as_os_str()])
            .run()
            .must_exit(0);
        recording.complete();
        let made: Vec<_> = logs(&scratch.truth())
            .iter()
            .flat_map(|l| l.calls.clone())
            .filter(|c| c.syscall.starts_with("IORING_OP_"))
            .map(|c| (c.syscall, c.ret))
            .collect();
        let rows = recording.rows(
            "SELECT syscall, ret, path, path_arg FROM syscalls
             WHERE api = 'io_uring' ORDER BY ts_ns",
        );
        let stored: Vec<_> = rows
            .iter()
            .map(|r| (r.text("syscall").unwrap().to_owned(), r.int("ret").unwrap()))
            .collect();
        assert_eq!(stored[..made.len()], made, "--detail {detail}");
        assert!(rows.iter().all(|r| r.text("path_arg").is_none()));
        assert_eq!(rows.iter().any(|r| r.text("path").is_some()), paths);
    }
}
