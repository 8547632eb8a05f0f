//! SQL that a user has written: whatever it calls, it has limits of memory and time, and no way out
//! of its process.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fathom_tests::environment::{fathom, is_root};
use fathom_tests::process::{children, peak_bytes, status};
use fathom_tests::tools::import;
use fathom_tests::{Record, Scratch, need_root};
use rustix::process::{Pid, Signal, kill_process};

/// What the program needs for itself besides a query's limit.
const ALLOWANCE: u64 = 96 << 20;

const LOG: &str = "10 1700000000.000001 openat(AT_FDCWD, \"/none\", O_RDONLY) = 3 <0.000010>\n\
                   10 1700000000.000100 close(3) = 0 <0.000003>\n";

fn session(scratch: &Scratch) -> PathBuf {
    let log = scratch.root().join("log");
    fs::write(&log, LOG).unwrap();
    let session = scratch.root().join("a.fathom");
    import(&[&log], &session);
    session
}

fn query(session: &Path, options: &[&str], sql: &str) -> Child {
    Command::new(fathom())
        .arg("query")
        .args(options)
        .arg(session)
        .arg(sql)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits for the end of `child`: its exit status, what it said, and the most memory that it or a
/// process of its had.
fn watch(mut child: Child) -> (Option<i32>, String, u64) {
    let mut peak = 0;
    loop {
        let all = children(child.id()).into_iter().chain([child.id()]);
        peak = all.filter_map(peak_bytes).fold(peak, u64::max);
        if child.try_wait().unwrap().is_some() {
            break;
        }
        std::thread::sleep(Duration::from_millis(3));
    }
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    (output.status.code(), errors, peak)
}

#[test]
#[ignore = "long"]
fn memory_is_bounded_whatever_is_called() {
    let scratch = Scratch::new();
    let session = session(&scratch);
    let ored = format!("SELECT {}", vec!["1=2"; 15_000].join(" OR "));
    let mut peaks = Vec::new();
    for (sql, must_fail) in [
        ("SELECT length(repeat('x', 4000000000))", true),
        ("SELECT range(1000000000)", true),
        ("SELECT length(lpad('', 1500000000, 'x'))", true),
        ("SELECT length(rpad('', 1500000000, 'x'))", true),
        ("SELECT length(format('{:>1500000000}', 'x'))", false),
        ("SELECT length(printf('%1500000000d', 1))", false),
        ("SELECT length(bar(1, 0, 1, 900000000))", false),
        ("SELECT unnest(range(1000000000))", true),
        ("SELECT list(i) FROM range(1000000000) t(i)", true),
        (
            "SELECT string_agg(i::VARCHAR) FROM range(1000000000) t(i)",
            true,
        ),
        (
            "SELECT regexp_replace(repeat('a', 300000), '(a?){1000}a{1000}', '', 'g')",
            false,
        ),
        (
            "SELECT levenshtein(repeat('a', 60000), repeat('b', 60000))",
            false,
        ),
        ("SELECT pg_sleep(20)", false),
        (
            "WITH RECURSIVE t(s) AS (SELECT 'x' UNION ALL SELECT s || s FROM t) \
             SELECT max(length(s)) FROM t",
            true,
        ),
        (ored.as_str(), false),
    ] {
        let started = Instant::now();
        let child = query(&session, &["--timeout", "3", "--memory-mib", "128"], sql);
        let (code, errors, peak) = watch(child);
        let shown: String = sql.chars().take(60).collect();
        println!(
            "{shown}: {code:?}, {} MiB, {:?}: {errors}",
            peak >> 20,
            started.elapsed()
        );
        let bounded = errors.contains("its time limit")
            || errors.contains("more memory than its limit of 128 MiB")
            || errors.contains("ended the process that ran it");
        match code {
            Some(0) => assert!(!must_fail, "{shown}"),
            Some(2) => assert!(bounded || !must_fail, "{shown}: {errors}"),
            other => panic!("{shown}: {other:?} {errors}"),
        }
        assert!(
            peak < (128 << 20) + ALLOWANCE,
            "{shown}: {} MiB",
            peak >> 20
        );
        peaks.push(peak);
    }
    assert!(
        peaks.iter().any(|peak| *peak > 100 << 20),
        "nothing came near the limit"
    );
}

/// The worker of a running query.
fn worker(child: &Child) -> u32 {
    let started = Instant::now();
    loop {
        // When it has confined itself, which is before it opens anything.
        let found = children(child.id()).into_iter().next();
        if let Some(pid) = found.filter(|pid| status(*pid, "Seccomp").as_deref() == Some("2")) {
            return pid;
        }
        assert!(started.elapsed() < Duration::from_secs(60), "no worker");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_query_runs_confined_and_ends_with_fathom() {
    let scratch = Scratch::new();
    let session = session(&scratch);
    let mut child = query(&session, &[], "SELECT pg_sleep(600)");
    let pid = worker(&child);
    for (name, value) in [
        ("NoNewPrivs", "1"),
        ("CapEff", "0000000000000000"),
        ("CapPrm", "0000000000000000"),
        ("CapInh", "0000000000000000"),
        ("CapAmb", "0000000000000000"),
    ] {
        assert_eq!(status(pid, name).as_deref(), Some(value), "{name}");
    }
    if is_root() {
        assert_eq!(status(pid, "CapBnd").as_deref(), Some("0000000000000000"));
    }
    let score = fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).unwrap();
    assert_eq!(score.trim(), "1000");
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap();
    for name in ["Max core file size", "Max file size"] {
        let line = limits.lines().find_map(|l| l.strip_prefix(name)).unwrap();
        let values: Vec<&str> = line.split_whitespace().take(2).collect();
        assert_eq!(values, ["0", "0"], "{name}");
    }
    kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
    child.wait().unwrap();
    let started = Instant::now();
    while status(pid, "State").is_some_and(|state| !state.starts_with('Z')) {
        assert!(
            started.elapsed() < Duration::from_secs(30),
            "the worker lives on"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn root_queries_sessions_of_others() {
    need_root!();
    let scratch = Scratch::new();
    let session = session(&scratch);
    // Nobody's, and nobody else's to look at.
    let mut all = vec![session.clone()];
    while let Some(path) = all.pop() {
        let folder = path.is_dir();
        if folder {
            all.extend(fs::read_dir(&path).unwrap().map(|e| e.unwrap().path()));
        }
        let mode = if folder { 0o700 } else { 0o600 };
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        chown(&path, Some(65534), Some(65534)).unwrap();
    }
    let (code, errors, _) = watch(query(&session, &[], "SELECT count(*) FROM syscalls"));
    assert_eq!(code, Some(0), "{errors}");
}

#[test]
fn the_recorder_goes_last_and_its_command_as_before() {
    need_root!();
    let scratch = Scratch::new();
    let recording = Record::new(&scratch)
        .command([
            "sh",
            "-c",
            "cat /proc/$PPID/oom_score_adj /proc/self/oom_score_adj",
        ])
        .run()
        .must_exit(0);
    let scores: Vec<i32> = recording
        .text()
        .lines()
        .map(|line| line.parse().unwrap())
        .collect();
    let own = fs::read_to_string("/proc/self/oom_score_adj").unwrap();
    let own: i32 = own.trim().parse().unwrap();
    // Lowering it takes CAP_SYS_RESOURCE, which root in a container may lack.
    let capabilities = status(std::process::id(), "CapEff").unwrap();
    let may_lower = u64::from_str_radix(&capabilities, 16).unwrap() & 1 << 24 != 0;
    let recorder = if may_lower { own.min(-900) } else { own };
    assert_eq!(scores, [recorder, own]);
}
