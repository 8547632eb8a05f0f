//! Calls of classes socket and wait.

use fathom_tests::truth::{Selection, compare, logs};
use fathom_tests::{Record, Recording, Scratch, need_root, workload};

fn record(options: &[&str]) -> (Scratch, Recording) {
    let scratch = Scratch::new();
    let recording = Record::new(&scratch)
        .options(options)
        .command([workload("sockets").as_os_str(), scratch.work().as_os_str()])
        .run()
        .must_exit(0);
    recording.complete();
    (scratch, recording)
}

/// The markers of a log are calls of faccessat.
#[test]
fn every_call_of_sockets_and_every_call_that_waits() {
    need_root!();
    let (scratch, recording) = record(&["--syscalls", "socket,wait,faccessat"]);
    compare(&recording, &logs(&scratch.truth()), Selection::All);
}

#[test]
fn no_such_call_is_recorded_unless_it_is_asked_for() {
    need_root!();
    let (_scratch, recording) = record(&[]);
    let rows = recording.rows("SELECT * FROM syscalls WHERE class IN ('socket', 'wait')");
    assert!(rows.is_empty(), "{rows:?}");
}
