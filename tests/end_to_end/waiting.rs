//! Calls that wait: killed, interrupted, begun before the recording or unfinished
//! when it ends.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use fathom_tests::session::try_query;
use fathom_tests::truth::{Selection, compare, known, logs, rows_of};
use fathom_tests::{Record, Running, Scratch, need_root, workload};
use rustix::process::{Pid, Signal, kill_process};

use crate::kernel::release;

fn start_waiting(scratch: &Scratch, mode: &str, options: &[&str]) -> (Running, i32) {
    let mut running = Record::new(scratch)
        .options(options)
        .command([
            workload("waits").as_os_str(),
            mode.as_ref(),
            scratch.work().as_os_str(),
        ])
        .interactive()
        .spawn();
    let line = running.line();
    let pid = line.strip_prefix("ready ").and_then(|pid| pid.parse().ok());
    (running, pid.unwrap_or_else(|| panic!("{line:?}")))
}

fn kill(pid: i32) {
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
}

/// Until the thread sleeps in a call: the wait has begun.
fn until_blocked_in(running: &mut Running, pid: i32, call: &str) {
    let number = known(call).number().unwrap().to_string();
    running.until("the call that waits", || {
        let state = std::fs::read_to_string(format!("/proc/{pid}/syscall")).unwrap_or_default();
        state.split(' ').next() == Some(number.as_str())
    });
}

/// A killed call either never returned, or left the kernel with the code of a
/// restart that did not come.
fn killed(ret: Option<i64>) -> bool {
    matches!(ret, None | Some(-512))
}

#[test]
fn killed_in_a_read() {
    need_root!();
    let scratch = Scratch::new();
    let (mut running, pid) = start_waiting(&scratch, "fifo", &["--syscalls", "all"]);
    until_blocked_in(&mut running, pid, "read");
    kill(pid);
    let recording = running.wait().must_exit(128 + 9);
    recording.complete();
    let rows = recording.rows(&format!(
        "SELECT ret, dur_ns FROM syscalls WHERE pid = {pid} AND size = 33"
    ));
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert!(killed(rows[0].int("ret")), "{rows:?}");
    assert!(rows[0].int("dur_ns") > Some(0), "{rows:?}");
    let status = recording.number(&format!(
        "SELECT exit_status FROM processes WHERE pid = {pid}"
    ));
    assert_eq!(status, 128 + 9);
}

#[test]
fn killed_in_a_flock() {
    need_root!();
    let scratch = Scratch::new();
    let (mut running, pid) = start_waiting(&scratch, "flock", &[]);
    until_blocked_in(&mut running, pid, "flock");
    kill(pid);
    let recording = running.wait().must_exit(128 + 9);
    recording.complete();
    let rows =
        recording.rows("SELECT ret, path FROM syscalls WHERE syscall = 'flock' ORDER BY ts_ns");
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert_eq!(rows[0].int("ret"), Some(0));
    assert!(killed(rows[1].int("ret")), "{rows:?}");
    let path = scratch.work().join("locked").display().to_string();
    assert_eq!(rows[1].text("path"), Some(path.as_str()));
}

/// The recording ends before the command does, whose call is still waiting.
#[test]
fn unfinished_when_the_recording_ends() {
    need_root!();
    let scratch = Scratch::new();
    let (mut running, pid) =
        start_waiting(&scratch, "flock", &["--syscalls", "all", "--duration", "1"]);
    let session = running.session();
    running.until("the end of the recording", || {
        std::fs::read_to_string(session.join("session.json"))
            .is_ok_and(|text| text.contains("\"complete\""))
    });
    // The recorder may stay to give the command's exit status.
    kill(pid);
    let recording = running.wait().must_exit(128 + 9);
    recording.complete();
    let rows = recording.rows(
        "SELECT pid, ret, errno, dur_ns, path FROM syscalls WHERE syscall = 'flock' AND ret IS NULL",
    );
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!(rows[0].int("pid"), Some(i64::from(pid)));
    assert_eq!(rows[0].text("errno"), None);
    assert!(rows[0].int("dur_ns") > Some(0));
    let path = scratch.work().join("locked").display().to_string();
    assert_eq!(rows[0].text("path"), Some(path.as_str()));
}

/// A process that is ended with the test.
struct Target(Child);

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Threads that waited in calls before the recording began: these calls have a row
/// each, whether they return or not.
#[test]
fn begun_before_the_recording() {
    need_root!();
    begun_before(None);
    if ((5, 17)..(7, 0)).contains(&release()) {
        begun_before(Some("5.17"));
    }
}

fn begun_before(programs: Option<&str>) {
    let scratch = Scratch::new();
    let child = Command::new(workload("waits"))
        .arg("before")
        .arg(scratch.work())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut target = Target(child);
    let mut output = BufReader::new(target.0.stdout.take().unwrap());
    let mut input = target.0.stdin.take().unwrap();
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    let tids: Vec<i64> = line
        .split_whitespace()
        .skip(1)
        .map(|tid| tid.parse().unwrap())
        .collect();
    let [reader, locker, silent] = tids[..] else {
        panic!("{line:?}");
    };
    let mut record = Record::new(&scratch)
        .options(["-p", &target.0.id().to_string()])
        .options(["--syscalls", "all"]);
    if let Some(programs) = programs {
        record = record.env("FATHOM_PROGRAMS", programs);
    }
    let mut running = record.spawn();
    let session = running.session();
    running.until("the threads in the session", || {
        try_query(&session, "SELECT count(*) AS n FROM processes")
            .is_ok_and(|rows| rows[0].int("n") >= Some(4))
    });
    input.write_all(b"\n").unwrap();
    line.clear();
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "released\n");
    running.signal(Signal::TERM);
    let recording = running.wait().must_exit(0);
    recording.complete();
    let released = recording
        .number("SELECT max(ts_ns) FROM syscalls WHERE syscall = 'write' AND path LIKE '%/fifo'");
    let of = |tid: i64| {
        let rows = recording.rows(&format!(
            "SELECT syscall, ret, ts_ns, dur_ns, fd, size, path, op_flags FROM syscalls
             WHERE tid = {tid} AND class <> 'memory' ORDER BY ts_ns"
        ));
        assert_eq!(rows.len(), 1, "{programs:?} {tid}: {rows:?}");
        let row = &rows[0];
        assert_eq!(
            row.text("op_flags"),
            Some("STARTED_BEFORE_TRACE"),
            "{row:?}"
        );
        // It was found before it got what it waited for.
        let (ts, dur) = (row.int("ts_ns").unwrap(), row.int("dur_ns").unwrap());
        assert!(ts < released && ts + dur > released, "{released}: {row:?}");
        let file = row.text("path").map(str::to_owned);
        let name = file.and_then(|path| Some(path.rsplit_once('/')?.1.to_owned()));
        let call = row.text("syscall").unwrap().to_owned();
        (call, row.int("ret"), row.int("size"), name)
    };
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(
        of(reader),
        ("read".into(), Some(10), Some(10), text("fifo"))
    );
    assert_eq!(of(locker), ("flock".into(), Some(0), None, text("locked")));
    assert_eq!(of(silent), ("read".into(), None, Some(11), text("silent")));
    // Nothing else is told to have begun before but the wait for a line.
    let others = recording.rows(&format!(
        "SELECT syscall, fd FROM syscalls WHERE op_flags IS NOT NULL
         AND tid NOT IN ({reader}, {locker}, {silent})"
    ));
    assert_eq!(others.len(), 1, "{others:?}");
    assert_eq!(others[0].int("fd"), Some(0));
    input.write_all(b"\n").unwrap();
}

/// What the program sees as one restarted read is two calls to the kernel.
#[test]
fn interrupted_and_restarted() {
    need_root!();
    let scratch = Scratch::new();
    let recording = Record::new(&scratch)
        .options(["--syscalls", "all"])
        .command([
            workload("waits").as_os_str(),
            "interrupt".as_ref(),
            scratch.work().as_os_str(),
        ])
        .run()
        .must_exit(0);
    recording.complete();
    let logs = logs(&scratch.truth());
    let log = logs.first().expect("log");
    assert_eq!(
        log.calls.iter().map(|c| c.ret).collect::<Vec<_>>(),
        [-4, 10, 0]
    );
    let rows: Vec<_> = rows_of(&recording, log)
        .iter()
        .map(|r| {
            (
                r.text("syscall").unwrap().to_owned(),
                r.int("ret"),
                r.text("errno").map(str::to_owned),
            )
        })
        .collect();
    let interrupted = (
        "read".to_owned(),
        Some(-512),
        Some("ERESTARTSYS".to_owned()),
    );
    assert_eq!(
        rows,
        [
            interrupted.clone(),
            interrupted,
            ("read".to_owned(), Some(10), None),
            ("close".to_owned(), Some(0), None),
        ]
    );
}

/// seccomp answers before the entry of a call can be seen: the call is recorded all
/// the same, with a duration of 0.
#[test]
fn refused_by_seccomp() {
    need_root!();
    let scratch = Scratch::new();
    let recording = Record::new(&scratch)
        .command([workload("refused").as_os_str(), scratch.work().as_os_str()])
        .run()
        .must_exit(0);
    recording.complete();
    compare(&recording, &logs(&scratch.truth()), Selection::Storage);
    let refused = recording.rows(
        "SELECT syscall, errno, count(*) AS calls, max(dur_ns) AS longest FROM syscalls
         WHERE errno IN ('EACCES', 'ENODATA') GROUP BY ALL ORDER BY syscall",
    );
    let found: Vec<String> = refused.iter().map(|row| format!("{row:?}")).collect();
    assert_eq!(
        found,
        [
            r#"{"calls":6,"errno":"ENODATA","longest":0,"syscall":"getxattr"}"#,
            r#"{"calls":3,"errno":"EACCES","longest":0,"syscall":"mkdirat"}"#,
        ]
    );
}

/// Where another thread has closed the descriptor the file is still that of the
/// call; where it gave the descriptor to another file nobody can tell.
#[test]
fn descriptors_taken_from_under_a_read() {
    need_root!();
    let scratch = Scratch::new();
    let recording = Record::new(&scratch)
        .options(["--syscalls", "all"])
        .command([
            workload("waits").as_os_str(),
            "taken".as_ref(),
            scratch.work().as_os_str(),
        ])
        .run()
        .must_exit(0);
    recording.complete();
    let rows = recording.rows(
        "SELECT size, bytes, path FROM syscalls
         WHERE syscall = 'read' AND size IN (10, 11) ORDER BY size",
    );
    assert_eq!(rows.len(), 2, "{rows:?}");
    let fifo = scratch.work().join("fifo").display().to_string();
    assert_eq!(rows[0].text("path"), Some(fifo.as_str()));
    assert_eq!(rows[1].text("path"), None);
    assert_eq!(rows[1].int("bytes"), Some(11));
}
