//! A session that is read while it is recorded.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::process::Command;
use std::time::Duration;

use fathom_tests::session::{query, try_query};
use fathom_tests::{Record, Scratch, need_root};
use rustix::process::Signal;
use rustix::time::{ClockId, clock_gettime};

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

/// CLOCK_MONOTONIC, nanoseconds.
fn now_ns() -> i64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// How long a call takes from its end to an answer in which it is: each is the last that
/// its program makes for a while, so that none is pushed out by those behind it.
#[test]
fn a_call_is_in_the_answer_soon_after_its_end() {
    need_root!();
    const CALLS: usize = 8;
    let scratch = Scratch::new();
    let mut running = Record::new(&scratch)
        .command([
            "sh",
            "-c",
            "while read n; do : >\"$0/call-$n\"; echo $n; done",
        ])
        .command([scratch.work()])
        .interactive()
        .spawn();
    let session = running.session();
    let count = |session: &std::path::Path| -> Option<[i64; 4]> {
        let rows = try_query(
            session,
            "SELECT count(*) FILTER (path LIKE '%/call-%' AND syscall LIKE 'open%') AS calls,
                    max(ts_ns + dur_ns) FILTER (path LIKE '%/call-%' AND syscall LIKE 'open%')
                        AS ended_at_ns,
                    count(*) AS rows, any_value(seen - lost) AS stored
             FROM syscalls, session",
        );
        let number = |name| rows.as_ref().ok()?.first()?.int(name);
        Some([
            number("calls")?,
            number("ended_at_ns").unwrap_or(0),
            number("rows")?,
            number("stored").unwrap_or(0),
        ])
    };
    running.until("a session", || count(&session).is_some());
    let mut delays = Vec::new();
    for n in 1..=CALLS {
        running.say(&format!("{n}\n"));
        assert_eq!(running.line(), n.to_string());
        let mut found = None;
        let mut asked_ns = now_ns();
        running.until("the call in an answer", || {
            let before_ns = now_ns();
            let Some([calls, ended_at_ns, rows, stored]) = count(&session) else {
                return false;
            };
            assert_eq!(rows, stored, "what was seen and is not lost is there");
            // What was seen once stays, and nothing comes before it happens.
            assert!(calls == n as i64 || calls == n as i64 - 1, "{calls} of {n}");
            if calls == n as i64 {
                found = Some((asked_ns - ended_at_ns, now_ns() - ended_at_ns));
            }
            asked_ns = before_ns;
            found.is_some()
        });
        let (least, most) = found.expect("found");
        delays.push((Duration::from_nanos(least.max(0) as u64), most));
        assert!(
            least < 10_000_000_000,
            "an answer {} ms after the call had ended did not have it",
            least / 1_000_000
        );
    }
    let recording = running.wait().must_exit(0);
    recording.complete();
    for (n, (least, most)) in delays.iter().enumerate() {
        println!(
            "call {}: not in an answer that began {:?} after its end, in one that was there after {} ms",
            n + 1,
            least,
            most / 1_000_000
        );
    }
    let opened = query(
        &recording.session,
        "SELECT count(*) AS n FROM syscalls WHERE path LIKE '%/call-%' AND syscall LIKE 'open%'",
    );
    assert_eq!(opened[0].int("n"), Some(CALLS as i64));
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
