//! A session that is read while it is recorded.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::process::Command;

use fathom_tests::session::try_query;
use fathom_tests::{Record, Scratch, need_root};
use rustix::process::Signal;

/// Writes as long as a file is there, which goes with the test's directory.
const SCRIPT: &str = "while [ -e \"$0\" ]; do
    dd if=/dev/zero of=\"$1\" bs=512 count=5000 2>/dev/null
    sleep 0.1
done";

/// Counts of one moment: seen, stored, lost, rows, distinct ids.
fn snapshot(session: &std::path::Path) -> Option<[i64; 5]> {
    let rows = try_query(
        session,
        "SELECT seen, stored, lost, (SELECT count(*) FROM syscalls) AS rows,
                (SELECT count(DISTINCT rid) FROM syscalls) AS ids
         FROM session",
    )
    .ok()?;
    let row = rows.first()?;
    let number = |name| row.int(name).unwrap_or(-1);
    Some(["seen", "stored", "lost", "rows", "ids"].map(number))
}

#[test]
fn snapshots_are_consistent_and_only_grow() {
    need_root!();
    let scratch = Scratch::new();
    // Enough parts that some are merged while this looks on.
    let go = scratch.root().join("go");
    File::create(&go).expect("go");
    let file = scratch.work().join("written");
    let mut running = Record::new(&scratch)
        .command([
            "sh".as_ref(),
            "-c".as_ref(),
            SCRIPT.as_ref(),
            go.as_os_str(),
            file.as_os_str(),
        ])
        .spawn();
    let session = running.session();
    running.until("a first row", || {
        snapshot(&session).is_some_and(|s| s[3] > 0)
    });
    let mut last = 0;
    let mut first_rids: Option<BTreeSet<i64>> = None;
    for _ in 0..10 {
        let Some([seen, stored, lost, rows, ids]) = snapshot(&session) else {
            panic!("the session cannot be read");
        };
        assert_eq!(seen, stored + lost);
        assert_eq!((stored, ids), (rows, rows));
        assert!(rows >= last, "{rows} rows after {last}");
        last = rows;
        // What was seen once stays.
        let rids: BTreeSet<i64> = try_query(
            &session,
            "SELECT rid FROM syscalls ORDER BY ts_ns, rid LIMIT 1000",
        )
        .expect("rows")
        .iter()
        .filter_map(|row| row.int("rid"))
        .collect();
        match &first_rids {
            Some(first) => assert!(first.is_subset(&rids)),
            None => first_rids = Some(rids),
        }
    }
    // A call is there while its program still runs.
    let sql = format!(
        "SELECT 1 AS one FROM syscalls WHERE path = '{}' LIMIT 1",
        file.display()
    );
    assert!(try_query(&session, &sql).is_ok_and(|rows| !rows.is_empty()));
    fs::remove_file(&go).expect("stop");
    let recording = running.wait().must_exit(0);
    recording.complete();
    assert!(recording.number("SELECT count(*) FROM syscalls") >= last);
}

#[test]
fn a_window_of_a_session_that_is_recorded() {
    need_root!();
    let scratch = Scratch::new();
    let go = scratch.root().join("go");
    File::create(&go).expect("go");
    let file = scratch.work().join("written");
    let mut running = Record::new(&scratch)
        .command([
            "sh".as_ref(),
            "-c".as_ref(),
            SCRIPT.as_ref(),
            go.as_os_str(),
            file.as_os_str(),
        ])
        .interactive()
        .spawn();
    let session = running.session();
    running.until("rows", || snapshot(&session).is_some_and(|s| s[3] > 10_000));
    let mut last = 0;
    for _ in 0..5 {
        let calls = zoomed(&session);
        assert!(calls >= last);
        last = calls;
    }
    // A recorder that is killed leaves a pyramid that agrees with the rows.
    running.signal(Signal::KILL);
    drop(running.end_after_kill());
    fs::remove_file(&go).expect("stop");
    let rows = try_query(&session, "SELECT count(*) AS n FROM syscalls").expect("rows");
    assert_eq!(Some(zoomed(&session)), rows[0].int("n"));
}

/// Calls in all buckets of a window that is the whole session.
fn zoomed(session: &std::path::Path) -> i64 {
    let output = Command::new(fathom_tests::environment::fathom())
        .arg("zoom")
        .arg(session)
        .args([
            "--by", "syscall", "--pixels", "7", "--top", "2", "--format", "csv",
        ])
        .output()
        .expect("fathom zoom");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    let column = |line: &str, i: usize| line.split(',').nth(i).map(str::to_owned);
    assert_eq!(
        text.lines().next().and_then(|l| column(l, 3)),
        Some("calls".into())
    );
    text.lines()
        .skip(1)
        .map(|line| {
            column(line, 3)
                .and_then(|n| n.parse::<i64>().ok())
                .expect("a count")
        })
        .sum()
}
