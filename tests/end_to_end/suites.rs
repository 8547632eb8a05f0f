//! Programs that were not written for these tests: their results are the same
//! with fathom, and nothing is lost.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fathom_tests::{Record, Recording, Scratch, need_program, need_root, skip};

use crate::strace_compared::{compare_all, however_it_ends};

/// The distribution's Python, which has the test suite.
const PYTHON: &str = "/usr/bin/python3";
/// Modules of Python's own test suite that work on files.
const MODULES: [&str; 7] = [
    "test_fileio",
    "test_pathlib",
    "test_glob",
    "test_zipfile",
    "test_tarfile",
    "test_mailbox",
    "test_shelve",
];
/// Others, which are compared with strace, which makes them slow.
const SAMPLED: [&str; 7] = [
    "test_os",
    "test_posix",
    "test_fcntl",
    "test_tempfile",
    "test_shutil",
    "test_mmap",
    "test_dbm_dumb",
];

/// How many tests each module ran, and how they ended, without times.
fn outcomes(output: &str) -> Vec<String> {
    output
        .lines()
        .filter_map(|line| {
            if let Some(ran) = line.strip_prefix("Ran ") {
                return ran.split(" in ").next().map(str::to_owned);
            }
            (line.starts_with("OK") || line.starts_with("FAILED")).then(|| line.to_owned())
        })
        .collect()
}

fn python_tests(dir: &Path, modules: &[&str]) -> Vec<String> {
    let mut line = vec![PYTHON.to_owned(), "-m".into(), "test".into(), "-v".into()];
    // Its own directory for temporary files: the suites must not meet.
    line.push(format!("--tempdir={}", dir.display()));
    line.extend(modules.iter().map(|name| (*name).to_owned()));
    line
}

/// Whether the distribution's Python has its test suite; says so when not.
fn python_has_tests() -> bool {
    let installed = Command::new(PYTHON)
        .args(["-c", "import test.test_os"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status();
    let has = installed.is_ok_and(|status| status.success());
    if !has {
        skip("the test suite of Python is not installed");
    }
    has
}

#[test]
#[ignore = "long"]
fn the_tests_of_python_end_as_they_do_alone() {
    need_root!();
    if !python_has_tests() {
        return;
    }
    let (alone, traced) = (Scratch::new(), Scratch::new());
    let line = python_tests(&alone.work(), &MODULES);
    let output = Command::new(&line[0])
        .args(&line[1..])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let both = [output.stdout, output.stderr].concat();
    let expected = outcomes(&String::from_utf8_lossy(&both));
    assert_eq!(expected.len(), 2 * MODULES.len(), "{expected:?}");

    let recording = Record::new(&traced)
        .command(python_tests(&traced.work(), &MODULES))
        .run();
    assert_eq!(recording.status.code(), output.status.code());
    let text = format!("{}{}", recording.text(), recording.stderr);
    assert_eq!(outcomes(&text), expected);
    recording.complete();
    identities_hold(&recording);
}

/// Call by call, with every argument that strace writes.
#[test]
#[ignore = "long"]
fn tests_of_python_at_once_with_strace() {
    need_root!();
    need_program!("strace");
    if !python_has_tests() {
        return;
    }
    let scratch = Scratch::new();
    let command: Vec<PathBuf> = python_tests(&scratch.work(), &SAMPLED)
        .iter()
        .map(PathBuf::from)
        .collect();
    // strace may slow a test down until it takes too long for itself.
    let (recording, text) = however_it_ends(&scratch, &[], &command);
    assert!(compare_all(&recording, &text, false) > 50_000);
}

/// Every stressor of files that there is, all at once on few processors: threads
/// that race on descriptors, closes, renames, signals, locks, full queues.
#[test]
fn all_stressors_of_file_systems_at_once() {
    need_root!();
    need_program!("stress-ng");
    let scratch = Scratch::new();
    let recording = Record::new(&scratch)
        .command([
            "stress-ng".as_ref(),
            "--class".as_ref(),
            "filesystem".as_ref(),
            "--all".as_ref(),
            "1".as_ref(),
            "--timeout".as_ref(),
            "4".as_ref(),
            // Changes the machine as a whole.
            "--exclude".as_ref(),
            "binderfs,ramfs,procfs,sysfs,handle".as_ref(),
            "--temp-path".as_ref(),
            scratch.work().as_os_str(),
        ])
        .run();
    // 3: a stressor that this kernel has no use for.
    let status = recording.status.code();
    assert!(
        matches!(status, Some(0 | 3)),
        "{status:?}: {}",
        recording.stderr
    );
    let totals = recording.balanced();
    assert!(totals.seen > 10_000, "{totals:?}");
    identities_hold(&recording);
}

/// What is true of every recording, whatever was recorded.
pub(crate) fn identities_hold(recording: &Recording) {
    for (what, sql) in [
        (
            "requests with one number",
            "SELECT count(*) - count(DISTINCT rid) FROM syscalls",
        ),
        (
            // A full ring takes no records of threads either.
            "calls of threads that are not known",
            "SELECT count(*) FROM syscalls WHERE tid NOT IN (SELECT tid FROM processes)
             AND NOT EXISTS (FROM losses WHERE stage = 'ring')",
        ),
        (
            "calls on files that are not known",
            "SELECT count(*) FROM syscalls
             WHERE file_id IS NOT NULL AND file_id NOT IN (SELECT file_id FROM files)",
        ),
        (
            "calls that moved more than they were asked to",
            "SELECT count(*) FROM syscalls WHERE bytes > size",
        ),
        (
            "calls before the start of their thread",
            "SELECT count(*) FROM syscalls s
             WHERE tid IN (SELECT tid FROM processes) AND NOT EXISTS
               (FROM processes p WHERE p.tid = s.tid AND s.ts_ns >= p.started_at_ns)",
        ),
        (
            "two calls of one thread at one time",
            "SELECT count(*) FROM (SELECT ts_ns, lag(ts_ns + dur_ns) OVER
               (PARTITION BY tid ORDER BY ts_ns, rid) AS ended FROM syscalls)
             WHERE ts_ns < ended",
        ),
        (
            // A full ring takes the record of a file later, after calls on the file.
            "files with one identity",
            "SELECT count(*) - count(DISTINCT (dev, ino, generation)) FROM files
             WHERE generation IS NOT NULL AND NOT EXISTS (FROM losses WHERE stage = 'ring')",
        ),
    ] {
        assert_eq!(recording.number(sql), 0, "{what}: {sql}");
    }
}
