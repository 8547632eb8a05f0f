//! Filters of tasks: names, users, ids, at the time of the call.

use std::collections::BTreeSet;
use std::fs;
use std::process::{Child, Command, Stdio};

use fathom_tests::session::meta;
use fathom_tests::{Record, Recording, Scratch, need_root, workload};
use rustix::process::Signal;

use super::{only_rows_crossed, record, set, written};

#[test]
fn names_of_threads_at_the_time_of_the_call() {
    need_root!();
    let scratch = Scratch::new();
    let work = scratch.work();
    let cases: [(&[&str], &[&str]); 6] = [
        (&["--comm=alpha"], &["alpha"]),
        (&["--comm=alpha*"], &["alpha", "alpha2"]),
        (&["--comm=beta", "--comm=alpha2"], &["beta", "alpha2"]),
        (&["--comm=!alpha"], &["beta", "alpha2", "main"]),
        (&["--comm=alpha*", "--comm=!alpha2"], &["alpha"]),
        (&["--comm=no-such-name"], &[]),
    ];
    for (number, (options, files)) in cases.iter().enumerate() {
        let recording = record(&scratch, &format!("names-{number}"), &["names"], options);
        assert_eq!(written(&recording, &work), set(files), "{options:?}");
        let rows = recording.number("SELECT count(*) FROM syscalls WHERE class <> 'memory'");
        if !options[0].contains('!') && !files.is_empty() {
            // open, write, close; what the end of a thread frees is not counted.
            assert_eq!(rows, 3 * files.len() as i64, "{options:?}");
        }
        let tasks = meta(&recording.session)["totals"]["records"]["tasks"].as_i64();
        if files.is_empty() {
            assert_eq!((rows, tasks), (0, Some(0)));
        }
    }
    // A program is recorded from its first call on under the name that it gets,
    // also one that was there under another name.
    let program = scratch.root().join("renamed-program");
    std::os::unix::fs::symlink(workload("filters"), &program).unwrap();
    let file = work.join("file");
    let script = format!(
        "ls / >/dev/null; {} write {}",
        program.display(),
        file.display()
    );
    let recording = Record::named(&scratch, "exec")
        .options(["--comm=renamed-program"])
        .command(["sh", "-c", &script])
        .run()
        .must_exit(0);
    assert!(only_rows_crossed(&recording) > 10);
    assert_eq!(written(&recording, &work), set(&["file"]));
    let processes = recording.rows("SELECT comm, cmdline FROM processes");
    assert_eq!(processes.len(), 1, "{processes:?}");
    // The kernel cuts it.
    assert_eq!(processes[0].text("comm"), Some("renamed-program"));
    assert!(processes[0].text("cmdline").unwrap().contains("write"));
}

#[test]
fn users_at_the_time_of_the_call() {
    need_root!();
    let scratch = Scratch::new();
    let work = scratch.work();
    for (name, option, files) in [
        ("nobody", "--uid=nobody", &["65534-65534"][..]),
        ("number", "--uid=65534", &["65534-65534"]),
        ("root", "--uid=0", &["0-0", "0-65534"]),
        ("other", "--uid=!65534", &["0-0", "0-65534"]),
        (
            "both",
            "--uid=root,65534",
            &["0-0", "0-65534", "65534-65534"],
        ),
        ("neither", "--uid=1", &[]),
    ] {
        fs::remove_dir_all(&work).unwrap();
        fs::create_dir(&work).unwrap();
        fs::set_permissions(&work, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
        let recording = Record::named(&scratch, name)
            .options([option])
            .command([
                workload("filters").as_os_str(),
                "users".as_ref(),
                work.as_os_str(),
            ])
            .run()
            .must_exit(0);
        only_rows_crossed(&recording);
        assert_eq!(written(&recording, &work), set(files), "{option}");
    }
}

/// A process that is ended with the test.
struct Target(Child);

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn tasks_of_the_whole_machine_now_and_in_future() {
    need_root!();
    let scratch = Scratch::new();
    // A name that no other test has.
    let name = format!("t-{}", std::process::id());
    let program = scratch.root().join(&name);
    std::os::unix::fs::symlink(workload("filters"), &program).unwrap();
    let work = scratch.work();
    let start = |file: &str, mode: &str| {
        let path = work.join(file);
        let child = Command::new(&program)
            .arg(mode)
            .arg(path)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Target(child)
    };
    fs::create_dir(work.join("running")).unwrap();
    let mut before = start("running", "threads");
    let mut running = Record::named(&scratch, "selected")
        .options(["--comm", &name])
        .spawn();
    let session = running.session();
    running.until("rows", || {
        session.join("session.json").exists()
            && fathom_tests::session::try_query(&session, "SELECT 1 AS one FROM syscalls LIMIT 1")
                .is_ok_and(|rows| !rows.is_empty())
    });
    for i in 0..20 {
        let mut child = start(&format!("file-{i}"), "write");
        assert!(child.0.wait().unwrap().success());
    }
    fs::write(work.join("running/stop"), "").unwrap();
    assert!(before.0.wait().unwrap().success());
    running.signal(Signal::INT);
    let recording = running.wait().must_exit(0);
    only_rows_crossed(&recording);
    assert_eq!(
        recording.number(&format!(
            "SELECT count(*) FROM syscalls WHERE comm <> '{name}'"
        )),
        0
    );
    for i in 0..20 {
        let path = work.join(format!("file-{i}"));
        let rows = recording.rows(&format!(
            "SELECT syscall FROM syscalls WHERE path = '{}' ORDER BY ts_ns",
            path.display()
        ));
        let calls: Vec<_> = rows
            .iter()
            .map(|row| row.text("syscall").unwrap())
            .collect();
        assert_eq!(calls, ["openat", "write", "close"], "{}", path.display());
    }
    // 20 processes, and two threads of the one that was there.
    assert_eq!(recording.number("SELECT count(*) FROM processes"), 22);
    assert_eq!(
        recording.number("SELECT count(*) FROM processes WHERE cmdline IS NULL"),
        0
    );
}

#[test]
fn one_thread_and_all_but_one_process() {
    need_root!();
    let scratch = Scratch::new();
    let work = scratch.work();
    let spawn = |dir: &str| {
        let path = work.join(dir);
        fs::create_dir(&path).unwrap();
        let out = fs::File::create(scratch.root().join(dir)).unwrap();
        let child = Command::new(workload("filters"))
            .arg("threads")
            .arg(&path)
            .stdout(out)
            .spawn()
            .unwrap();
        Target(child)
    };
    let ids = |dir: &str| -> Vec<i64> {
        loop {
            let text = fs::read_to_string(scratch.root().join(dir)).unwrap();
            if text.ends_with('\n') && text.lines().count() == 2 {
                return text.lines().map(|line| line.parse().unwrap()).collect();
            }
            std::thread::yield_now();
        }
    };
    let (mut one, mut other) = (spawn("one"), spawn("other"));
    let (threads, others) = (ids("one"), ids("other"));
    let tid = *threads
        .iter()
        .find(|tid| **tid != i64::from(one.0.id()))
        .unwrap();

    // The thread alone; the recording ends with it.
    let mut by_tid = Record::named(&scratch, "tid")
        .options(["--tid", &tid.to_string()])
        .spawn();
    let mut all = Record::named(&scratch, "all")
        .options(["--all", "--pid", &format!("!{}", one.0.id())])
        .options(["--path", work.to_str().unwrap()])
        .spawn();
    let mut narrowed = Record::named(&scratch, "narrowed")
        .options(["-p", &one.0.id().to_string(), "--tid", &format!("!{tid}")])
        .spawn();
    for (running, writers) in [
        (&mut by_tid, 1),
        (&mut all, others.len()),
        (&mut narrowed, 1),
    ] {
        let session = running.session();
        let sql = format!(
            "SELECT 1 AS one FROM syscalls WHERE syscall = 'write' HAVING count(DISTINCT tid) >= {writers}"
        );
        running.until("rows of each thread", || {
            session.join("session.json").exists()
                && fathom_tests::session::try_query(&session, &sql)
                    .is_ok_and(|rows| !rows.is_empty())
        });
    }
    for dir in ["one", "other"] {
        fs::write(work.join(dir).join("stop"), "").unwrap();
    }
    assert!(one.0.wait().unwrap().success() && other.0.wait().unwrap().success());
    let by_tid = by_tid.wait().must_exit(0);
    all.signal(Signal::INT);
    let all = all.wait().must_exit(0);
    let narrowed = narrowed.wait().must_exit(0);
    let tids = |recording: &Recording| -> BTreeSet<i64> {
        recording
            .rows("SELECT DISTINCT tid FROM syscalls WHERE syscall = 'write'")
            .iter()
            .filter_map(|row| row.int("tid"))
            .collect()
    };
    only_rows_crossed(&by_tid);
    assert_eq!(tids(&by_tid), BTreeSet::from([tid]));
    only_rows_crossed(&all);
    assert_eq!(tids(&all), others.iter().copied().collect());
    only_rows_crossed(&narrowed);
    assert_eq!(tids(&narrowed), BTreeSet::from([i64::from(one.0.id())]));
}
