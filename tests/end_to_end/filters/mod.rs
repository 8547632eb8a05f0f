//! Filters: exactly what was asked for is recorded, and nothing else crosses
//! from the kernel.

mod cgroups;
mod files;
mod operations;
mod outcomes;
mod tasks;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use fathom_tests::session::meta;
use fathom_tests::{Record, Recording, Scratch, need_root, workload};

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
        (&["--syscalls=fsync,!fsync"], "exclude every call"),
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
