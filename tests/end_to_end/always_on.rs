//! Recordings that keep what came last, copies of them, and sessions whose
//! recorder was killed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use fathom_tests::environment::{fathom, must_run};
use fathom_tests::session::{meta, query, report, try_query};
use fathom_tests::{Record, Scratch, need_root, rounds, workload};
use rustix::process::Signal;
use serde_json::Value;

/// Sums of a session: everything that was seen is somewhere.
fn balanced(session: &Path) -> Value {
    let meta = meta(session);
    for totals in [&meta["totals"], &meta["totals"]["faults"]] {
        let of = |name: &str| totals[name].as_u64().unwrap_or(0);
        assert_eq!(
            of("seen"),
            of("stored") + of("lost") + of("expired") + of("counted") + of("missing"),
            "{totals}"
        );
    }
    meta
}

fn number(session: &Path, sql: &str) -> i64 {
    query(session, sql)[0].int("n").unwrap()
}

/// Nothing that is left refers to what was dropped.
fn refers_to_what_is_there(session: &Path) {
    for (table, wrong) in [
        ("syscalls", "file_id NOT IN (SELECT file_id FROM files)"),
        ("syscalls", "tid NOT IN (SELECT tid FROM processes)"),
        ("faults", "file_id NOT IN (SELECT file_id FROM files)"),
    ] {
        let sql = format!("SELECT count(*) AS n FROM {table} WHERE {wrong}");
        assert_eq!(number(session, &sql), 0, "{table}: {wrong}");
    }
}

/// A program that calls without end: a file that stays open, others that come and
/// go, and now and then an fsync.
const BUSY: &str = r#"
import os, sys
kept = os.open("kept", os.O_RDWR | os.O_CREAT)
turn = 0
while not os.path.exists(stop):
    fd = os.open(f"file-{turn}", os.O_RDWR | os.O_CREAT)
    for i in range(200):
        os.pwrite(fd, b"x" * 64, i)
        os.pread(kept, 64, 0)
    os.close(fd)
    os.unlink(f"file-{turn}")
    turn += 1
    if turn % 200 == 0:
        os.fsync(kept)
"#;

fn busy(scratch: &Scratch, name: &str, options: &[&str]) -> fathom_tests::Running {
    let work = scratch.work();
    let script = format!("import os\nos.chdir({work:?})\nstop = 'stop-{name}'\n{BUSY}");
    Record::named(scratch, name)
        .options(options)
        .command(["python3", "-c", &script])
        .spawn()
}

fn stop(scratch: &Scratch, name: &str) {
    fs::write(scratch.work().join(format!("stop-{name}")), "").unwrap();
}

fn expired(session: &Path) -> u64 {
    let text = fs::read(session.join("session.json")).unwrap_or_default();
    let meta: Value = serde_json::from_slice(&text).unwrap_or_default();
    meta["totals"]["expired"].as_u64().unwrap_or(0)
}

#[test]
fn a_ring_keeps_what_came_last() {
    need_root!();
    let scratch = Scratch::new();
    let options = ["--keep", "2s", "--keep", "64MiB", "--save-when"];
    let options = [&options[..], &["syscall = 'fsync'", "--max-saves", "1"]].concat();
    let mut running = busy(&scratch, "session", &options);
    let session = running.session();
    running.until("rows that were dropped", || expired(&session) > 0);
    let snapshot = scratch.root().join("snapshot.fathom");
    must_run(
        fathom(),
        [
            "snapshot".as_ref(),
            session.as_os_str(),
            "-o".as_ref(),
            snapshot.as_os_str(),
        ],
    );
    stop(&scratch, "session");
    let recording = running.wait().must_exit(0);
    for (session, reason) in [(&recording.session, ""), (&snapshot, "signal")] {
        let meta = balanced(session);
        assert!(meta["totals"]["expired"].as_u64().unwrap() > 0, "{meta}");
        assert_eq!(meta["history"]["saved_because"], reason);
        // A copy is a session of its own, of the same recording.
        let (id, from) = (&meta["id"], &meta["history"]["saved_from"]);
        match reason {
            "" => assert_eq!(*from, serde_json::Value::Null),
            _ => assert_eq!(*from, fathom_tests::session::meta(&recording.session)["id"]),
        }
        assert_ne!(id, from);
        refers_to_what_is_there(session);
        let stored = number(session, "SELECT count(*) AS n FROM syscalls");
        assert_eq!(Some(stored), meta["totals"]["stored"].as_i64());
        // Numbers are given without gaps: what is left is all that came last.
        let sql = "SELECT max(rid) - min(rid) + 1 - count(*) AS n FROM (
            SELECT rid FROM syscalls UNION ALL SELECT rid FROM faults
            UNION ALL SELECT rid FROM writeback)";
        if meta["totals"]["faults"]["expired"] == meta["totals"]["faults"]["seen"] {
            assert_eq!(number(session, sql), 0);
        }
    }
    let saves = meta(&recording.session)["history"]["saves"].clone();
    let saved: Vec<&Value> = saves
        .as_array()
        .unwrap()
        .iter()
        .filter(|save| save["because"] == "syscall = 'fsync'")
        .collect();
    assert_eq!(saved.len(), 1, "{saves}");
    let saved = PathBuf::from(saved[0]["path"].as_str().unwrap());
    balanced(&saved);
    refers_to_what_is_there(&saved);
    let found = "SELECT count(*) AS n FROM syscalls WHERE syscall = 'fsync'";
    assert!(number(&saved, found) > 0);
    // Not being recorded any more.
    let output = Command::new(fathom()).arg("snapshot").arg(&saved).output();
    assert_eq!(output.unwrap().status.code(), Some(2));
}

/// The call that is to be saved is the last one before the command ends: its row comes when the
/// recorder has looked at the command for the last time.
#[test]
fn what_happens_at_the_very_end_is_saved() {
    need_root!();
    let scratch = Scratch::new();
    let script = "import os\nfd = os.open('kept', os.O_RDWR | os.O_CREAT)\n\
        os.write(fd, b'x')\nos.fsync(fd)\nos._exit(0)";
    let work = scratch.work();
    let script = format!("import os\nos.chdir({work:?})\n{script}");
    let recording = Record::new(&scratch)
        .options(["--keep", "60s", "--save-when", "syscall = 'fsync'"])
        .command(["python3", "-c", &script])
        .run()
        .must_exit(0);
    let history = meta(&recording.session)["history"].clone();
    let saves = history["saves"].as_array().unwrap();
    let [save] = saves.as_slice() else {
        panic!("{history}: {}", recording.stderr);
    };
    assert_eq!(save["error"], Value::Null, "{save}");
    let saved = PathBuf::from(save["path"].as_str().unwrap());
    assert!(
        recording.stderr.contains(saved.to_str().unwrap()),
        "{}",
        recording.stderr
    );
    balanced(&saved);
    let found = "SELECT count(*) AS n FROM syscalls WHERE syscall = 'fsync'";
    assert_eq!(number(&saved, found), 1);
    assert_eq!(meta(&saved)["state"], "complete");
}

/// A copy is made in the moment in which a program that has just started is done: what it counted has
/// its name and its file there, too.
#[test]
fn calls_that_are_counted_just_before_a_copy_have_names() {
    need_root!();
    let scratch = Scratch::new();
    let script = "dd if=/dev/zero of=bytes bs=1 count=2000 status=none; kill -USR1 $PPID; sleep 1";
    let mut unnamed = Vec::new();
    for turn in 0..4 {
        let recording = Record::named(&scratch, &format!("turn-{turn}"))
            .options(["--keep", "60s", "--rows", "tail"])
            .command(["sh", "-c", &format!("cd {:?}; {script}", scratch.work())])
            .run()
            .must_exit(0);
        let history = meta(&recording.session)["history"].clone();
        let saved = PathBuf::from(history["saves"][0]["path"].as_str().unwrap());
        balanced(&saved);
        let named = "SELECT coalesce(sum(count), 0)::BIGINT AS n FROM counters
            JOIN processes USING (pid) JOIN files USING (file_id)
            WHERE syscall = 'write' AND comm = 'dd' AND path LIKE '%/bytes'";
        let rows = "SELECT count(*) AS n FROM syscalls
            WHERE syscall = 'write' AND path LIKE '%/bytes'";
        unnamed.push(2000 - number(&saved, named) - number(&saved, rows));
    }
    assert_eq!(unnamed, [0; 4]);
}

#[test]
fn conditions_that_make_no_sense_start_nothing() {
    need_root!();
    let scratch = Scratch::new();
    for (options, reason) in [
        (
            &["--keep", "2s", "--save-when", "duration > 5"][..],
            "no column 'duration'",
        ),
        (
            &["--keep", "2s", "--save-when", "dur_ns >"],
            "expected a column",
        ),
        (&["--save-when", "dur_ns > 5"], "--keep"),
        (&["--keep", "2s", "--keep", "3s"], "two of the same kind"),
        (&["--keep", "5"], "not a time"),
        (
            &["--keep", "2s", "--detail", "counters"],
            "records no single calls",
        ),
        (&["--count-files"], "--detail counters"),
    ] {
        let marker = scratch.work().join("ran");
        let recording = Record::new(&scratch)
            .options(options)
            .command(["touch".as_ref(), marker.as_os_str()])
            .run()
            .must_exit(2);
        assert!(recording.stderr.contains(reason), "{}", recording.stderr);
        assert!(!marker.exists() && !recording.session.exists());
    }
}

/// A short soak: the ring goes round many times; its size on disk and the memory of
/// the recorder do not grow any more once it is full.
#[test]
#[ignore = "long"]
fn disk_and_memory_stay_flat() {
    need_root!();
    let scratch = Scratch::new();
    const KEPT: u64 = 4 << 20;
    let mut running = busy(&scratch, "session", &["--keep", "4MiB", "--ring-mib", "4"]);
    let session = running.session();
    let status = format!("/proc/{}/status", running.pid());
    let resident = || -> u64 {
        let status = fs::read_to_string(&status).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("VmRSS:"))
            .unwrap();
        let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        kib << 10
    };
    let stored = || {
        let text = fs::read(session.join("session.json")).unwrap_or_default();
        let meta: Value = serde_json::from_slice(&text).unwrap_or_default();
        meta["totals"]["stored"].as_u64().unwrap_or(0)
    };
    let rounds = |n: u64| n * stored().max(50_000);
    running.until("one round", || expired(&session) > rounds(1));
    let (memory, disk) = (resident(), bytes_below(&session));
    running.until("four rounds", || expired(&session) > rounds(4));
    let (memory_later, disk_later) = (resident(), bytes_below(&session));
    stop(&scratch, "session");
    let recording = running.wait().must_exit(0);
    balanced(&recording.session);
    refers_to_what_is_there(&recording.session);
    // Buffers of the encoder and of a merge come and go, and on a busy machine up to
    // 32 MiB of records wait in memory to be decoded.
    assert!(
        memory_later < memory + (64 << 20),
        "memory grew from {memory} to {memory_later} bytes"
    );
    // With the reserve, and what comes until the ring is looked at.
    let most = KEPT + (2 << 20) + (24 << 20);
    assert!(
        disk < most && disk_later < most,
        "{disk}, then {disk_later} bytes"
    );
}

fn bytes_below(dir: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(dir) else {
        return 0;
    };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            // Parts come and go meanwhile.
            Err(_) => 0,
            Ok(kind) if kind.is_dir() => bytes_below(&entry.path()),
            Ok(kind) => kind.len(),
        })
        .sum()
}

#[test]
#[ignore = "long"]
fn recorders_killed_at_any_moment_leave_whole_sessions() {
    need_root!();
    let scratch = Scratch::new();
    for turn in 0..u64::from(rounds(4)) {
        let name = format!("killed-{turn}");
        let options: &[&str] = if turn % 2 == 0 {
            &[]
        } else {
            &["--keep", "1s"]
        };
        let mut running = busy(&scratch, &name, options);
        let session = running.session();
        let count = || {
            try_query(&session, "SELECT count(*) AS n FROM syscalls")
                .ok()
                .and_then(|rows| rows[0].int("n"))
                .unwrap_or(0)
        };
        running.until("rows", || count() > 0);
        std::thread::sleep(std::time::Duration::from_millis(turn * 7919 % 900));
        let before = clock_ns();
        running.signal(Signal::KILL);
        running.killed();
        stop(&scratch, &name);
        let session_after = |what: &str| {
            let sql = "SELECT max(ts_ns + dur_ns) AS n FROM syscalls";
            let last = number(&session, sql);
            // Parts come every half a second; the rest is for a machine that does
            // something else.
            assert!(
                before - last < 5_000_000_000,
                "{what}: {} ns before the kill nothing is left",
                before - last
            );
        };
        session_after("as it was left");
        let repaired = must_run(fathom(), ["repair".as_ref(), session.as_os_str()]);
        let repaired = String::from_utf8_lossy(&repaired).into_owned();
        assert!(repaired.ends_with("repaired\n"), "{repaired}");
        let again = must_run(fathom(), ["repair".as_ref(), session.as_os_str()]);
        assert_eq!(again, b"nothing to repair\n");
        session_after("repaired");
        let meta = balanced(&session);
        assert_eq!(meta["state"], "complete");
        let stored = number(&session, "SELECT count(*) AS n FROM syscalls");
        assert_eq!(meta["totals"]["stored"].as_i64(), Some(stored));
        refers_to_what_is_there(&session);
        must_run(fathom(), ["report".as_ref(), session.as_os_str()]);
        fs::remove_dir_all(&session).unwrap();
    }
}

fn clock_ns() -> i64 {
    // As CLOCK_MONOTONIC, on a machine that has not slept.
    let uptime = fs::read_to_string("/proc/uptime").unwrap();
    let seconds: f64 = uptime.split_whitespace().next().unwrap().parse().unwrap();
    (seconds * 1e9) as i64
}

#[test]
fn counters_are_exact() {
    need_root!();
    const CALLS: i64 = 70_000;
    let scratch = Scratch::new();
    let file = scratch.work().join("file");
    for by_file in [false, true] {
        let name = format!("counters-{by_file}");
        let files: &[&str] = if by_file { &["--count-files"] } else { &[] };
        let mut running = Record::named(&scratch, &name)
            .options(["--detail", "counters"])
            .options(files)
            .command([workload("flood").as_os_str(), file.as_os_str()])
            .command([CALLS.to_string()])
            .interactive()
            .spawn();
        assert_eq!(running.line(), "ready");
        running.say("\n");
        assert_eq!(running.line(), "done");
        let recording = running.wait().must_exit(0);
        let session = &recording.session;
        let meta = balanced(session);
        assert_eq!(meta["totals"]["stored"], 0);
        let rows = query(session, "SELECT * FROM by_syscall WHERE syscall = 'preadv'");
        assert_eq!(rows.len(), 1);
        let of = |column: &str| rows[0].int(column);
        assert_eq!(of("calls"), Some(CALLS));
        assert_eq!(of("bytes"), Some(16 * CALLS));
        assert_eq!((of("errors"), of("lost")), (Some(0), Some(0)));
        let histogram =
            "SELECT sum(calls)::BIGINT AS n FROM latency_histogram WHERE syscall = 'preadv'";
        assert_eq!(number(session, histogram), CALLS);
        let path = fs::canonicalize(&file).unwrap();
        let sql = format!(
            "SELECT coalesce(sum(calls), 0)::BIGINT AS n FROM by_file WHERE path = '{}'",
            path.display()
        );
        let expected = if by_file { CALLS } else { 0 };
        assert!(number(session, &sql) >= expected, "{sql}");
        let report = report(session)["problems"].to_string();
        assert!(report.contains("no single calls"), "{report}");
    }
}
