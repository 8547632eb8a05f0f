//! Filters: exactly what was asked for is recorded, and nothing else crosses
//! from the kernel.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use fathom_tests::session::{meta, query};
use fathom_tests::{Record, Recording, Scratch, need_root, skip, workload};
use rustix::process::Signal;

/// A call that the workload logged: its tag, and name and result as in a row.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Logged {
    tag: String,
    call: String,
}

fn logged(text: &str) -> Vec<Logged> {
    text.lines()
        .map(|line| {
            let (tag, call) = line.split_once(' ').unwrap();
            Logged {
                tag: tag.to_owned(),
                call: call.to_owned(),
            }
        })
        .collect()
}

/// Records one mode of the workload in the scratch's `work`.
fn record<S: AsRef<str>>(scratch: &Scratch, name: &str, mode: &[&str], options: &[S]) -> Recording {
    fs::remove_dir_all(scratch.work()).unwrap();
    fs::create_dir(scratch.work()).unwrap();
    let work = scratch.work().display().to_string();
    let command = [
        workload("filters").display().to_string(),
        mode[0].to_owned(),
        work,
    ];
    let recording = Record::named(scratch, name)
        .options(options.iter().map(AsRef::as_ref))
        .command(
            command
                .iter()
                .map(String::as_str)
                .chain(mode[1..].iter().copied()),
        )
        .run()
        .must_exit(0);
    only_rows_crossed(&recording);
    recording
}

/// Every record of a call that crossed is a row, or lost and counted; none was
/// dropped behind the kernel.
fn only_rows_crossed(recording: &Recording) -> i64 {
    let totals = recording.complete_or_empty();
    let crossed = &meta(&recording.session)["totals"]["records"];
    assert_eq!(crossed["calls"].as_i64(), Some(totals), "{crossed}");
    totals
}

trait Totals {
    fn complete_or_empty(&self) -> i64;
}

impl Totals for Recording {
    /// Rows, when nothing was lost; a filter may leave none.
    fn complete_or_empty(&self) -> i64 {
        let totals = self.balanced();
        assert_eq!(totals.lost, 0);
        totals.stored
    }
}

/// Name and result of every row.
fn rows(recording: &Recording) -> Vec<String> {
    recording
        .rows("SELECT syscall || ' ' || ret AS call FROM syscalls ORDER BY ts_ns, rid")
        .iter()
        .map(|row| row.text("call").unwrap().to_owned())
        .collect()
}

fn with_tags(log: &[Logged], tags: &[&str]) -> Vec<String> {
    log.iter()
        .filter(|entry| tags.contains(&entry.tag.as_str()))
        .map(|entry| entry.call.clone())
        .collect()
}

/// Names of the files in `work` that rows write to.
fn written(recording: &Recording, work: &Path) -> BTreeSet<String> {
    recording
        .rows("SELECT DISTINCT path FROM syscalls WHERE syscall = 'write' AND path IS NOT NULL")
        .iter()
        .filter_map(|row| {
            let path = Path::new(row.text("path").unwrap());
            Some(path.strip_prefix(work).ok()?.display().to_string())
        })
        .collect()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn paths_in_every_way_to_reach_them() {
    need_root!();
    let scratch = Scratch::new();
    let work = scratch.work().display().to_string();
    std::os::unix::fs::symlink(&work, scratch.root().join("alias")).unwrap();
    let alias = scratch.root().join("alias/in").display().to_string();
    let inside = format!("--path={work}/in");
    let not_inside = format!("--path=!{work}/in");
    let all = format!("--path={work}");
    let cases: [(&[&str], &[&str]); 9] = [
        (&[&inside], &["in", "both"]),
        (&[&format!("--path={work}/./out//../in/")], &["in", "both"]),
        (&[&format!("--path={alias}")], &["in", "both"]),
        (&[&all, &not_inside], &["out", "both"]),
        (&[&all], &["in", "out", "both"]),
        (&[&all, &inside], &["in", "out", "both"]),
        (&["--path=/nonexistent"], &[]),
        (
            &["--path=/nonexistent", &inside, "--detail=fds"],
            &["in", "both"],
        ),
        // Every path of a call has to be left out for it to go.
        (
            &[
                "--path=!/usr",
                "--path=!/etc",
                "--path=!/dev",
                "--path=!/proc",
                "--path=!/lib",
                "--path=!/lib64",
                &format!("--path=!{}", scratch.root().display()),
            ],
            &["none"],
        ),
    ];
    for (number, (options, tags)) in cases.iter().enumerate() {
        let recording = record(&scratch, &format!("paths-{number}"), &["paths"], options);
        let log = logged(&recording.text());
        assert!(log.len() > 80, "{} calls", log.len());
        let mut found = rows(&recording);
        if *tags == ["none"] {
            // What libc did without a path before and after.
            found.retain(|call| with_tags(&log, tags).contains(call));
            found.dedup();
        }
        assert_eq!(found, with_tags(&log, tags), "{options:?}");
        let options = &meta(&recording.session)["options"]["filters"];
        assert!(
            options.as_array().is_some_and(|o| !o.is_empty()),
            "{options}"
        );
    }
}

#[test]
fn relative_paths_start_from_the_working_directory() {
    need_root!();
    let scratch = Scratch::new();
    let work = scratch.work();
    let output = Command::new(fathom_tests::environment::fathom())
        .args(["record", "-o"])
        .arg(scratch.session("relative"))
        .args(["--path", "../work/in", "--"])
        .arg(workload("filters"))
        .arg("paths")
        .arg(&work)
        .current_dir(&work)
        .output()
        .unwrap();
    assert!(output.status.success());
    let log = logged(std::str::from_utf8(&output.stdout).unwrap());
    let found = query(
        &scratch.session("relative"),
        "SELECT count(*) AS n FROM syscalls",
    );
    let expected = with_tags(&log, &["in", "both"]).len() as i64;
    assert_eq!(found[0].int("n"), Some(expected));
}

#[test]
fn hundreds_of_paths() {
    need_root!();
    let scratch = Scratch::new();
    let work = scratch.work();
    let options: Vec<String> = (0..600)
        .map(|i| format!("--path={}/many/{}", work.display(), 2 * i))
        .collect();
    let recording = record(&scratch, "many", &["many", "1200"], &options);
    let log = logged(&recording.text());
    assert_eq!(rows(&recording), with_tags(&log, &["even"]));
    let paths = recording.rows("SELECT path FROM syscalls ORDER BY ts_ns");
    for (i, row) in paths.iter().enumerate() {
        let expected = work.join(format!("many/{}/x", 2 * i));
        assert_eq!(row.text("path"), expected.to_str());
    }
}

#[test]
fn types_of_files() {
    need_root!();
    let scratch = Scratch::new();
    let work = scratch.work().display().to_string();
    for kind in ["fifo", "socket", "symlink", "anonymous", "char"] {
        let option = format!("--file-type={kind}");
        let recording = record(&scratch, kind, &["types"], &[option.as_str()]);
        let log = logged(&recording.text());
        let mut found = rows(&recording);
        if kind == "char" {
            found = recording
                .rows(
                    "SELECT syscall || ' ' || ret AS call FROM syscalls
                     WHERE path = '/dev/zero' ORDER BY ts_ns, rid",
                )
                .iter()
                .map(|row| row.text("call").unwrap().to_owned())
                .collect();
        }
        assert_eq!(found, with_tags(&log, &[kind]), "{kind}");
        assert_eq!(
            recording.number(&format!(
                "SELECT count(*) FROM syscalls LEFT JOIN files USING (file_id)
                 WHERE file_type IS NOT NULL AND file_type NOT IN ('{kind}', 'unknown')"
            )),
            0,
            "{kind}"
        );
    }
    let inside = format!("--path={work}");
    for (options, tags) in [
        (["--file-type=regular", &inside], &["regular"][..]),
        (
            ["--file-type=directory,symlink", &inside],
            &["directory", "symlink"],
        ),
    ] {
        let recording = record(&scratch, tags[0], &["types"], &options);
        let log = logged(&recording.text());
        // The workload makes its files before it logs: those calls have no file.
        assert_eq!(rows(&recording), with_tags(&log, tags), "{options:?}");
    }
    let options = ["--file-type=!regular", "--syscalls=all"];
    let recording = record(&scratch, "not-regular", &["types"], &options);
    let types: BTreeSet<String> = recording
        .rows(
            "SELECT DISTINCT file_type FROM syscalls JOIN files USING (file_id)
             WHERE fd IS NOT NULL",
        )
        .iter()
        .map(|row| row.text("file_type").unwrap().to_owned())
        .collect();
    for kind in ["fifo", "socket", "anonymous", "char", "directory"] {
        assert!(types.contains(kind), "{kind}: {types:?}");
    }
    assert!(!types.contains("regular"), "{types:?}");
}

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

/// A cgroup that is removed with the test.
struct Cgroup(PathBuf);

impl Cgroup {
    /// The hierarchy of cgroup v2, and a new cgroup in it.
    fn new(scratch: &Scratch) -> Option<(PathBuf, Cgroup)> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let mount = mounts.lines().find(|line| line.contains(" - cgroup2 "));
        let Some(root) = mount.and_then(|line| line.split(' ').nth(4)) else {
            skip("no cgroup v2 hierarchy is mounted");
            return None;
        };
        let name = scratch.root().file_name().unwrap();
        let path = Path::new(root).join(name);
        if let Err(error) = fs::create_dir(&path) {
            skip(&format!("no cgroup can be made in {root}: {error}"));
            return None;
        }
        Some((root.into(), Cgroup(path)))
    }

    fn add(&self, name: &str) -> String {
        let path = self.0.join(name);
        fs::create_dir(&path).unwrap();
        path.display().to_string()
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        for entry in fs::read_dir(&self.0).into_iter().flatten().flatten() {
            let _ = fs::remove_dir(entry.path());
        }
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn cgroups_and_containers_at_the_time_of_the_call() {
    need_root!();
    let scratch = Scratch::new();
    let Some((root, cgroup)) = Cgroup::new(&scratch) else {
        return;
    };
    let work = scratch.work();
    let digits: String = scratch
        .root()
        .display()
        .to_string()
        .bytes()
        .rev()
        .take(6)
        .map(|b| format!("{b:02x}"))
        .collect();
    let id = format!("{digits:0<64}");
    let container = cgroup.add(&format!("docker-{id}.scope"));
    let monitor = cgroup.add(&format!("libpod-conmon-{id}.scope"));
    let plain = cgroup.add("plain");
    let above = cgroup.0.display().to_string();
    let relative = Path::new("/").join(Path::new(&plain).strip_prefix(&root).unwrap());
    let relative = relative.display().to_string();
    // An engine's program that knows one name.
    let bin = scratch.root().join("bin");
    fs::create_dir(&bin).unwrap();
    let script =
        format!("#!/bin/sh\ncase \"$*\" in *' web-of-test') echo {id};; *) exit 1;; esac\n");
    fs::write(bin.join("docker"), script).unwrap();
    fs::set_permissions(
        bin.join("docker"),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    let path = format!(
        "{}:{}",
        bin.display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let later = cgroup.0.join(format!(
        "cri-containerd-{}.scope",
        id.replacen(&digits[..6], "abcdef", 1)
    ));
    let later = later.display().to_string();
    let start = root.display().to_string();
    let moved: &[&str] = &["moved"];
    let stayed: &[&str] = &["after", "before"];
    let cases: Vec<(&str, Vec<String>, &[&str])> = vec![
        (&plain, vec![format!("--cgroup={plain}")], moved),
        (&plain, vec![format!("--cgroup={relative}")], moved),
        (&plain, vec![format!("--cgroup={above}")], moved),
        (&plain, vec![format!("--cgroup=!{plain}")], stayed),
        (&plain, vec![format!("--cgroup={container}")], &[]),
        (
            &plain,
            vec!["--cgroup=/".into()],
            &["after", "before", "moved"],
        ),
        (&container, vec![format!("--container={id}")], moved),
        (
            &container,
            vec![format!("--container={}", &id[..12])],
            moved,
        ),
        (&container, vec!["--container=web-of-test".into()], moved),
        (&container, vec![format!("--container=!{id}")], stayed),
        (&container, vec!["--container=ffffffff*".into()], &[]),
        (&monitor, vec![format!("--container={id}")], &[]),
        // A container that is made after the recording has begun.
        (&later, vec!["--container=abcdef*".into()], moved),
        // Both have to agree.
        (
            &container,
            vec![format!("--container={id}"), format!("--cgroup={plain}")],
            &[],
        ),
    ];
    for (number, (to, options, files)) in cases.iter().enumerate() {
        let _ = fs::remove_dir(&later);
        fs::remove_dir_all(&work).unwrap();
        fs::create_dir(&work).unwrap();
        let recording = Record::named(&scratch, &format!("cgroups-{number}"))
            .options(options)
            .command([
                workload("filters").as_os_str(),
                "cgroups".as_ref(),
                work.as_os_str(),
                start.as_ref(),
                (*to).as_ref(),
            ]);
        let recording = with_path(recording, &path).run().must_exit(0);
        only_rows_crossed(&recording);
        assert_eq!(written(&recording, &work), set(files), "{options:?}");
        if *files == ["moved"] {
            // The thread that moves, the other one, and a child.
            assert_eq!(
                recording
                    .number("SELECT count(DISTINCT tid) FROM syscalls WHERE path LIKE '%/moved'"),
                3,
                "{options:?}"
            );
        }
    }
}

/// `record` finds the engines' programs on its own path.
fn with_path(record: Record, path: &str) -> Record {
    record.env("PATH", path)
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
    for running in [&mut by_tid, &mut all, &mut narrowed] {
        let session = running.session();
        running.until("rows", || {
            session.join("session.json").exists()
                && fathom_tests::session::try_query(
                    &session,
                    "SELECT 1 AS one FROM syscalls WHERE syscall = 'write' LIMIT 1",
                )
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

#[test]
fn what_makes_no_sense_is_refused_before_anything_is_recorded() {
    need_root!();
    let scratch = Scratch::new();
    let id = "f".repeat(64);
    let long = format!("/{}", "x".repeat(300));
    let cases: &[(&[&str], &str)] = &[
        (&["--uid=no-such-user-here"], "no such user"),
        (&["--cgroup=/no/such/cgroup"], "cgroup"),
        (&["--container=no-such-container"], "container"),
        (&[&format!("--container={id}")], "container"),
        (&["--tid=4194305"], "no such thread"),
        (&["--path", &long], "too long"),
        (&["--path="], "empty"),
        (&["--path=/a", "--path=!/a"], "both"),
        (&["--comm=!"], "empty"),
        (&["--min-duration=10"], "ms"),
        (&["--min-duration=0s"], "positive"),
        (&["--file-type=file"], "regular"),
        (&["--file-type=fifo,!fifo"], "both"),
        (&["--path=/a", "--detail=raw"], "--detail raw"),
        (&["--syscalls=fsync,!fsync"], "no call"),
        (&["--pid=1"], "--pid"),
    ];
    for (number, (options, message)) in cases.iter().enumerate() {
        let marker = scratch.work().join("ran");
        let recording = Record::named(&scratch, &format!("wrong-{number}"))
            .options(*options)
            .command(["touch".as_ref(), marker.as_os_str()])
            .run()
            .must_exit(2);
        assert!(
            recording.stderr.contains(message),
            "{options:?}: {}",
            recording.stderr
        );
        assert!(
            !recording.session.exists(),
            "{options:?}: a session was left"
        );
        assert!(!marker.exists(), "{options:?}: the command ran");
    }
    let recording = Record::named(&scratch, "all-and-pid")
        .options(["--all", "--pid=1"])
        .run()
        .must_exit(2);
    assert!(
        recording.stderr.contains("contradict"),
        "{}",
        recording.stderr
    );
}
