//! Operations of Linux AIO: a row each, with what the program knows of them.

use fathom_tests::truth::{ALL_BUT_NETWORK, Selection, compare, logs};
use fathom_tests::{Record, Recording, Scratch, need_root, workload};

fn record(options: &[&str]) -> (Scratch, Recording) {
    let scratch = Scratch::new();
    let recording = Record::new(&scratch)
        .options(options)
        .command([workload("aio").as_os_str(), scratch.work().as_os_str()])
        .run()
        .must_exit(0);
    recording.complete();
    (scratch, recording)
}

/// Numbers behind `word` in what the workload printed.
fn printed(recording: &Recording, word: &str) -> Vec<Vec<i64>> {
    let text = recording.text();
    let lines = text.lines().filter_map(|line| line.strip_prefix(word));
    lines
        .map(|line| line.split(' ').map(|n| n.parse().unwrap()).collect())
        .collect()
}

#[test]
fn every_operation() {
    need_root!();
    let (scratch, recording) = record(&["--syscalls", ALL_BUT_NETWORK]);
    compare(&recording, &logs(&scratch.truth()), Selection::All);
    // The program took these out of its memory, without a call.
    let known = printed(&recording, "memory ");
    assert_eq!(known.len(), 200);
    let numbers: Vec<_> = known.iter().map(|k| k[0].to_string()).collect();
    let rows = recording.rows(&format!(
        "SELECT user_data, ret, op_flags FROM syscalls WHERE api = 'aio'
         AND user_data IN ({}) ORDER BY ts_ns",
        numbers.join(", ")
    ));
    let stored: Vec<_> = rows
        .iter()
        .map(|r| vec![r.int("user_data").unwrap(), r.int("ret").unwrap()])
        .collect();
    assert_eq!(stored, known);
    assert!(
        rows.iter()
            .all(|r| r.text("op_flags") == Some("END_APPROXIMATE"))
    );
    // Its context was destroyed under it.
    let unseen = printed(&recording, "unseen ");
    let rows = recording.rows(&format!(
        "SELECT ret, errno, op_flags FROM syscalls WHERE api = 'aio' AND user_data = {}",
        unseen[0][0]
    ));
    assert_eq!(rows.len(), 1);
    assert_eq!(
        (rows[0].int("ret"), rows[0].text("op_flags")),
        (None, Some("COMPLETION_UNSEEN"))
    );
}

#[test]
fn every_storage_operation() {
    need_root!();
    let (scratch, recording) = record(&[]);
    compare(&recording, &logs(&scratch.truth()), Selection::Storage);
}

/// Operations are seen when the calls that make them are not selected.
#[test]
fn operations_without_their_calls() {
    need_root!();
    let (_all_dir, all) = record(&[]);
    let (_some_dir, some) = record(&["--syscalls", "IOCB_CMD_PREAD,IOCB_CMD_PWRITEV"]);
    let count = |recording: &Recording, condition: &str| {
        recording.number(&format!("SELECT count(*) FROM syscalls WHERE {condition}"))
    };
    let wanted = "syscall IN ('IOCB_CMD_PREAD', 'IOCB_CMD_PWRITEV')";
    assert_eq!(count(&some, wanted), count(&all, wanted));
    assert_eq!(count(&some, "true"), count(&all, wanted));
}
