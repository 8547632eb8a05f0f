//! Processes and threads that come and go.

use std::collections::BTreeSet;

use fathom_tests::truth::{Selection, compare, logs};
use fathom_tests::{Record, Scratch, need_root, workload};

#[test]
fn forks_clones_and_chains_of_execs() {
    need_root!();
    let scratch = Scratch::new();
    let recording = Record::new(&scratch)
        .command([workload("processes").as_os_str(), "tree".as_ref()])
        .command([scratch.work()])
        .run()
        .must_exit(0);
    recording.complete();
    let logs = logs(&scratch.truth());
    // 4 children, 4 grandchildren, 4 links of the chain, the clone, the first.
    assert_eq!(logs.len(), 14);
    compare(&recording, &logs, Selection::Storage);
    for log in &logs {
        let rows = recording.rows(&format!(
            "SELECT ppid, started_at_ns, ended_at_ns, exit_status FROM processes WHERE tid = {} AND pid = {}",
            log.tid, log.pid
        ));
        assert_eq!(rows.len(), 1, "{}: {rows:?}", log.pid);
        assert!(
            rows[0].int("ended_at_ns") > rows[0].int("started_at_ns"),
            "{rows:?}"
        );
        assert_eq!(rows[0].int("exit_status"), Some(0), "{rows:?}");
    }
}

#[test]
fn a_daemon_is_recorded_to_its_end() {
    need_root!();
    let scratch = Scratch::new();
    let recording = Record::new(&scratch)
        .command([workload("processes").as_os_str(), "daemon".as_ref()])
        .command([scratch.work()])
        .run()
        .must_exit(0);
    recording.complete();
    let logs = logs(&scratch.truth());
    assert_eq!(logs.len(), 2, "the recorder ended before the daemon did");
    compare(&recording, &logs, Selection::Storage);
}

#[test]
fn ten_thousand_short_lived_processes() {
    need_root!();
    const COUNT: usize = 10_000;
    let scratch = Scratch::new();
    let recording = Record::new(&scratch)
        .command([workload("processes").as_os_str(), "short".as_ref()])
        .command([scratch.work()])
        .command([COUNT.to_string()])
        .run()
        .must_exit(0);
    recording.complete();
    let made: Vec<i64> = recording
        .text()
        .lines()
        .map(|l| l.parse().unwrap())
        .collect();
    assert_eq!(made.len(), COUNT);
    let pids = |sql: &str| -> Vec<i64> {
        recording
            .rows(sql)
            .iter()
            .map(|r| r.int("pid").unwrap())
            .collect()
    };
    let calls = pids(&format!(
        "SELECT pid FROM syscalls WHERE syscall = 'newfstatat' AND path_arg = '{}'",
        scratch.work().display()
    ));
    let sorted = |mut pids: Vec<i64>| {
        pids.sort_unstable();
        pids
    };
    // With repetitions: the system may give a number twice.
    assert_eq!(sorted(calls), sorted(made.clone()));
    let known: BTreeSet<i64> = pids("SELECT pid FROM processes WHERE ended_at_ns IS NOT NULL")
        .into_iter()
        .collect();
    let missing: Vec<_> = made.iter().filter(|pid| !known.contains(pid)).collect();
    assert!(
        missing.is_empty(),
        "{} processes have no row: {missing:?}",
        missing.len()
    );
}
