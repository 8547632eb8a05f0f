//! A recorder that gets little of the processor, and programs that are preempted in
//! the middle of a call: nothing is lost uncounted, and what is recorded is right.

use std::process::{Child, Command, Stdio};

use fathom_tests::truth::{Selection, compare, logs};
use fathom_tests::{Record, Scratch, need_program, need_root, workload};

const CALLS: i64 = 400_000;

/// Processes that use all of the first processor; they end with the test.
struct Hogs(Vec<Child>);

impl Hogs {
    fn new(count: usize) -> Hogs {
        let hog = || {
            Command::new("taskset")
                .args(["-c", "0", "sh", "-c", "while :; do :; done"])
                .stdin(Stdio::null())
                .spawn()
                .unwrap()
        };
        Hogs((0..count).map(|_| hog()).collect())
    }
}

impl Drop for Hogs {
    fn drop(&mut self) {
        for hog in &mut self.0 {
            let _ = hog.kill();
            let _ = hog.wait();
        }
    }
}

/// The recorder has the lowest priority on the processor on which the command, with
/// the highest, makes calls as fast as it can.
#[test]
fn a_recorder_without_processor_time_counts_what_it_misses() {
    need_root!();
    need_program!("taskset", "nice");
    let scratch = Scratch::new();
    let mut running = Record::new(&scratch)
        .by(["taskset", "-c", "0", "nice", "-n", "19"])
        .options(["--ring-mib", "1"])
        // 19 - 39 = -20.
        .command(["nice", "-n", "-39"])
        .command([workload("flood").as_os_str()])
        .command([scratch.work().join("file")])
        .command([CALLS.to_string()])
        .interactive()
        .spawn();
    assert_eq!(running.line(), "ready");
    running.say("\n");
    assert_eq!(running.line(), "done");
    let recording = running.wait().must_exit(0);
    recording.balanced();
    let rows = recording.number("SELECT count(*) FROM syscalls WHERE syscall = 'preadv'");
    let lost = recording
        .number("SELECT coalesce(sum(count), 0)::BIGINT FROM losses WHERE syscall = 'preadv'");
    assert_eq!(rows + lost, CALLS);
}

/// Threads that take turns on one processor with others: whatever a probe was doing
/// when its thread was preempted, the calls are the ones that were made.
#[test]
fn threads_that_are_preempted_in_the_middle_of_calls() {
    need_root!();
    need_program!("taskset");
    let scratch = Scratch::new();
    let _hogs = Hogs::new(2);
    let recording = Record::new(&scratch)
        .command(["taskset", "-c", "0"])
        .command([
            workload("threads").as_os_str(),
            "own".as_ref(),
            scratch.work().as_os_str(),
            "8".as_ref(),
            "500".as_ref(),
        ])
        .run()
        .must_exit(0);
    recording.complete();
    compare(&recording, &logs(&scratch.truth()), Selection::Storage);
}
