//! Filters of calls by what came of them.

use fathom_tests::{Scratch, need_root};

use super::{logged, record, rows, with_tags};

#[test]
fn only_errors() {
    need_root!();
    let scratch = Scratch::new();
    let work = format!("--path={}", scratch.work().display());
    let options = ["--errors-only", work.as_str()];
    let recording = record(&scratch, "errors", &["paths"], &options);
    let log = logged(&recording.text());
    let expected: Vec<String> = with_tags(&log, &["in", "out", "both"])
        .into_iter()
        .filter(|call| call.contains('-'))
        .collect();
    assert!(expected.len() > 8);
    assert_eq!(rows(&recording), expected);
    // Numbers suffice for it.
    let options = ["--errors-only", "--detail=raw"];
    let recording = record(&scratch, "errors-raw", &["paths"], &options);
    assert_eq!(
        recording.number("SELECT count(*) FROM syscalls WHERE errno IS NULL"),
        0
    );
    let all = with_tags(&log, &["in", "out", "both", "none"]);
    let failed = all.iter().filter(|call| call.contains('-')).count() as i64;
    assert!(recording.number("SELECT count(*) FROM syscalls") >= failed);
}

#[test]
fn only_slow_calls() {
    need_root!();
    let scratch = Scratch::new();
    let options = ["--min-duration=250ms"];
    let recording = record(&scratch, "slow", &["slow"], &options);
    let log = logged(&recording.text());
    assert_eq!(with_tags(&log, &["fast"]).len(), 1002);
    assert_eq!(
        recording.number("SELECT count(*) FROM syscalls WHERE syscall = 'flock' AND ret = 0"),
        1
    );
    assert_eq!(
        recording.number("SELECT count(*) FROM syscalls WHERE dur_ns < 250000000"),
        0
    );
}
