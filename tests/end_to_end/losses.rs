//! Events that found no room: counted to the last.

use fathom_tests::session::report;
use fathom_tests::{Record, Recording, Scratch, need_root, workload};
use serde_json::Value;

const CALLS: i64 = 300_000;

/// A recording whose recorder sleeps while the command makes more calls than
/// the smallest ring has room for.
fn flooded(scratch: &Scratch) -> Recording {
    let running = Record::new(scratch)
        .options(["--ring-mib", "1"])
        .command([
            workload("flood").as_os_str(),
            scratch.work().join("file").as_os_str(),
        ])
        .command([CALLS.to_string()])
        .interactive()
        .spawn();
    running.flooded().must_exit(0)
}

/// A number of a call in the report.
fn in_report(report: &Value, syscall: &str, number: &str) -> Option<i64> {
    let calls = report["syscalls"].as_array()?;
    calls.iter().find(|c| c["name"] == syscall)?[number].as_i64()
}

#[test]
fn what_a_full_ring_drops_is_counted_exactly() {
    need_root!();
    let scratch = Scratch::new();
    let recording = flooded(&scratch);
    let totals = recording.balanced();
    assert!(
        totals.lost > 0,
        "the recorder slept, yet nothing was lost: {totals:?}"
    );
    let rows = recording.number("SELECT count(*) FROM syscalls WHERE syscall = 'preadv'");
    let lost = |column: &str| {
        recording.number(&format!(
            "SELECT coalesce(sum({column}), 0)::BIGINT FROM losses WHERE syscall = 'preadv'"
        ))
    };
    let count = lost("count");
    assert_eq!(rows + count, CALLS);
    assert_eq!(lost("bytes"), 16 * count);
    assert_eq!(lost("errors"), 0);
    assert!(lost("dur_ns") > 0);
    // Histograms of durations take every lost call in.
    let shapes = recording.rows(
        "SELECT count(*) AS wrong FROM losses WHERE list_sum(hist) <> count OR len(hist) <> 40
            OR first_at_ns > last_at_ns OR max_dur_ns > dur_ns OR stage <> 'ring'
            OR (layer = 'syscall') = (syscall IN ('page_fault', 'writeback', 'block_request',
                'wait', 'interrupt', 'page_cache', 'fs_span'))",
    );
    assert_eq!(shapes[0].int("wrong"), Some(0));
    // The process and the file are known although the events are not.
    let file = scratch.work().join("file").display().to_string();
    let named = recording.number(&format!(
        "SELECT coalesce(sum(count), 0)::BIGINT FROM losses JOIN files USING (file_id)
         WHERE syscall = 'preadv' AND path = '{file}'"
    ));
    assert_eq!(named, count);
    let report = report(&recording.session);
    assert_eq!(
        in_report(&report, "preadv", "calls"),
        Some(CALLS),
        "{report}"
    );
    assert_eq!(in_report(&report, "preadv", "lost"), Some(count));
    assert_eq!(
        in_report(&report, "preadv", "bytes"),
        Some(16 * CALLS),
        "{report}"
    );
}

/// Rows say nothing of the drop: those that remain are whole and in order.
#[test]
fn what_a_full_ring_keeps_is_right() {
    need_root!();
    let scratch = Scratch::new();
    let recording = flooded(&scratch);
    let wrong = recording.number(
        "SELECT count(*) FROM syscalls WHERE syscall = 'preadv' AND
            (ret IS DISTINCT FROM 16 OR size IS DISTINCT FROM 16 OR file_offset IS DISTINCT FROM 0
             OR bytes IS DISTINCT FROM 16 OR path IS NULL OR dur_ns <= 0)",
    );
    assert_eq!(wrong, 0);
    let disorder = recording.number(
        "SELECT count(*) FROM (SELECT ts_ns + dur_ns AS ended, lead(ts_ns) OVER (ORDER BY ts_ns)
            AS next FROM syscalls WHERE syscall = 'preadv') WHERE next < ended",
    );
    assert_eq!(disorder, 0, "calls of one thread overlap");
}

/// The same of operations of io_uring.
#[test]
fn operations_that_a_full_ring_drops_are_counted_exactly() {
    need_root!();
    let scratch = Scratch::new();
    let file = scratch.work().join("file");
    std::fs::write(&file, vec![1; 1 << 20]).unwrap();
    let running = Record::new(&scratch)
        .options(["--ring-mib", "1"])
        .command([workload("uring_ways").as_os_str(), "flood".as_ref()])
        .command([file.as_os_str(), CALLS.to_string().as_ref()])
        .interactive()
        .spawn();
    let recording = running.flooded().must_exit(0);
    assert!(recording.balanced().lost > 0);
    let number = |sql: &str| recording.number(sql);
    let rows = number("SELECT count(*) FROM syscalls WHERE syscall = 'IORING_OP_READ'");
    let lost = "coalesce(sum(count), 0)::BIGINT FROM losses";
    let dropped = number(&format!("SELECT {lost} WHERE syscall = 'IORING_OP_READ'"));
    assert_eq!(rows + dropped, CALLS);
    let bytes = number(
        "SELECT sum(bytes)::BIGINT FROM by_file JOIN files USING (file_id)
         WHERE files.path LIKE '%/work/file'",
    );
    assert_eq!(bytes, 16 * CALLS);
    let wrong = number(
        "SELECT count(*) FROM syscalls WHERE syscall = 'IORING_OP_READ' AND
            (ret IS DISTINCT FROM 16 OR size IS DISTINCT FROM 16 OR path IS NULL)",
    );
    assert_eq!(wrong, 0);
}
