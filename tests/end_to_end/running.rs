//! Recordings of what runs already: one process, everything.

use std::collections::BTreeMap;
use std::fs::File;
use std::process::{Child, Command, Stdio};

use fathom_tests::session::{meta, try_query};
use fathom_tests::truth::{Selection, compare, logs};
use fathom_tests::{Record, Running, Scratch, need_root, workload};
use rustix::process::Signal;

/// A process that is ended with the test.
struct Target(Child);

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn busy(scratch: &Scratch, mode: &str, threads: &str) -> Target {
    let child = Command::new(workload("threads"))
        .args([
            mode.as_ref(),
            scratch.work().as_os_str(),
            threads.as_ref(),
            "0".as_ref(),
        ])
        .env("FATHOM_STOP", scratch.root().join("stop"))
        .env("FATHOM_LATE", scratch.root().join("late"))
        .stdin(Stdio::null())
        .stdout(File::create(scratch.root().join("counts")).unwrap())
        .spawn()
        .unwrap();
    Target(child)
}

/// Calls that each thread of a busy workload made, by thread id.
fn counts(scratch: &Scratch) -> BTreeMap<i64, i64> {
    let text = std::fs::read_to_string(scratch.root().join("counts")).unwrap();
    text.lines()
        .map(|line| {
            let (tid, count) = line.split_once(' ').unwrap();
            (tid.parse().unwrap(), count.parse().unwrap())
        })
        .collect()
}

fn touch(scratch: &Scratch, name: &str) {
    File::create(scratch.root().join(name)).unwrap();
}

/// Until rows can be read: recording has begun, and a session can be read while
/// it is written.
fn until_rows(running: &mut Running, condition: &str) {
    let session = running.session();
    let sql = format!("SELECT 1 AS one FROM syscalls WHERE {condition} LIMIT 1");
    running.until("rows in the session", || {
        session.join("session.json").exists()
            && try_query(&session, &sql).is_ok_and(|rows| !rows.is_empty())
    });
}

#[test]
fn a_running_process_with_the_threads_it_has_and_will_have() {
    need_root!();
    let scratch = Scratch::new();
    let mut target = busy(&scratch, "late", "2");
    let pid = i64::from(target.0.id());
    let mut running = Record::new(&scratch)
        .options(["-p", &pid.to_string()])
        .spawn();
    until_rows(&mut running, "syscall = 'preadv'");
    touch(&scratch, "late");
    let late = scratch.work().join("busy-3").display().to_string();
    until_rows(
        &mut running,
        &format!("syscall = 'preadv' AND path = '{late}'"),
    );
    touch(&scratch, "stop");
    assert!(target.0.wait().unwrap().success());
    let _ = running.try_signal(Signal::TERM);
    let recording = running.wait().must_exit(0);
    recording.complete();
    let made = counts(&scratch);
    assert_eq!(made.len(), 4);
    let rows = recording.rows(
        "SELECT tid, min(pid) AS pid, count(*) AS calls, min(path) AS path
         FROM syscalls WHERE syscall = 'preadv' GROUP BY tid",
    );
    assert_eq!(rows.len(), 4, "{rows:?}");
    for row in &rows {
        assert_eq!(row.int("pid"), Some(pid));
        let made = made[&row.int("tid").unwrap()];
        let calls = row.int("calls").unwrap();
        let path = row.text("path").unwrap();
        let created_later = path.ends_with("busy-2") || path.ends_with("busy-3");
        assert!(
            if created_later {
                calls == made
            } else {
                calls <= made
            },
            "{made} made: {row:?}"
        );
    }
    assert_eq!(
        recording.number(&format!("SELECT count(*) FROM syscalls WHERE pid <> {pid}")),
        0
    );
    // A row a thread, whether it was there before, came later, or has ended; the
    // main thread makes a fifth.
    let threads = recording.rows(
        "SELECT tid, count(*) AS rows, bool_and(cmdline LIKE '% late %') AS described,
                bool_and(ended_at_ns IS NOT NULL) AS ended
         FROM processes GROUP BY tid",
    );
    assert_eq!(threads.len(), 5, "{threads:?}");
    for thread in &threads {
        assert_eq!(thread.int("rows"), Some(1), "{thread:?}");
        assert_eq!(thread.value("described"), true, "{thread:?}");
        assert_eq!(thread.value("ended"), true, "{thread:?}");
    }
}

#[test]
fn a_recording_ends_after_its_duration_and_leaves_the_target_alone() {
    need_root!();
    let scratch = Scratch::new();
    let mut target = busy(&scratch, "busy", "1");
    let pid = target.0.id().to_string();
    let recording = Record::new(&scratch)
        .options(["-p", &pid, "--duration", "1"])
        .run()
        .must_exit(0);
    assert_eq!(target.0.try_wait().unwrap(), None, "the target ended");
    assert!(recording.complete().stored > 0);
    touch(&scratch, "stop");
    assert!(target.0.wait().unwrap().success());
}

#[test]
fn a_process_that_does_not_exist() {
    need_root!();
    let scratch = Scratch::new();
    let mut gone = Command::new("true").spawn().unwrap();
    gone.wait().unwrap();
    let pid = gone.id().to_string();
    let recording = Record::new(&scratch)
        .options(["-p", &pid])
        .run()
        .must_exit(2);
    assert!(recording.stderr.contains(&pid), "{}", recording.stderr);
    assert!(!recording.session.exists(), "an empty session was left");
}

#[test]
fn all_processes_but_the_recorder() {
    need_root!();
    let scratch = Scratch::new();
    let mut running = Record::new(&scratch).options(["--all"]).spawn();
    let recorder = running.pid();
    // Something to be seen, whatever else the machine does.
    let probe = scratch.work().join("probe");
    let session = running.session();
    running.until("rows in the session", || {
        std::fs::write(&probe, "x").unwrap();
        session.join("session.json").exists()
            && try_query(
                &session,
                &format!(
                    "SELECT 1 AS one FROM syscalls WHERE path = '{}' LIMIT 1",
                    probe.display()
                ),
            )
            .is_ok_and(|rows| !rows.is_empty())
    });
    let work = scratch.work().join("calls");
    std::fs::create_dir(&work).unwrap();
    let status = Command::new(workload("calls"))
        .arg(&work)
        .env("TRUTH_DIR", scratch.truth())
        .status()
        .unwrap();
    assert!(status.success());
    running.signal(Signal::INT);
    let recording = running.wait().must_exit(0);
    recording.balanced();
    compare(&recording, &logs(&scratch.truth()), Selection::Storage);
    assert_eq!(
        recording.number(&format!(
            "SELECT count(*) FROM syscalls WHERE pid = {recorder}"
        )),
        0,
        "the recorder recorded itself"
    );
    assert_eq!(meta(&recording.session)["state"], "complete");
}
