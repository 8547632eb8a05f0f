//! Queries that a signal stops, and DuckDB's library, which only queries need.

use std::process::{Command, Stdio};
use std::time::Duration;

use fathom_tests::environment::fathom;
use fathom_tests::{Record, Scratch, need_root};
use rustix::process::{Pid, Signal, kill_process};

#[test]
fn a_signal_stops_a_query_and_gives_its_status() {
    need_root!();
    let scratch = Scratch::new();
    let recording = Record::new(&scratch)
        .command(["ls", "-lR", "/etc"])
        .run()
        .must_exit(0);
    // Nobody lives to see the end of it.
    let sql = "SELECT count(*) FROM syscalls a, syscalls b, syscalls c, syscalls d, syscalls e \
               WHERE a.dur_ns + b.dur_ns + c.dur_ns + d.dur_ns + e.dur_ns = 1";
    for (signal, status) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let child = Command::new(fathom())
            .arg("query")
            .arg(&recording.session)
            .arg(sql)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Before the signals are held back it would die of the signal itself, which
        // is no exit status.
        let blocked = format!("/proc/{}/status", child.id());
        loop {
            let text = std::fs::read_to_string(&blocked).unwrap();
            let mask = text.lines().find_map(|l| l.strip_prefix("SigBlk:"));
            let mask = u64::from_str_radix(mask.unwrap().trim(), 16).unwrap();
            if mask & 1 << (signal.as_raw() - 1) != 0 {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        kill_process(Pid::from_child(&child), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{errors}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn only_sql_needs_the_library() {
    need_root!();
    let scratch = Scratch::new();
    let alone = scratch.root().join("fathom");
    std::fs::copy(fathom(), &alone).unwrap();
    let run = |args: &[&str], library: Option<&str>| {
        let mut command = Command::new(&alone);
        command.args(args).stdin(Stdio::null());
        match library {
            Some(directory) => command.env("LD_LIBRARY_PATH", directory),
            None => command.env_remove("LD_LIBRARY_PATH"),
        };
        let output = command.output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (
            output.status.code(),
            text(output.stdout),
            text(output.stderr),
        )
    };
    let session = scratch.session("s");
    let session = session.to_str().unwrap();
    let record = ["record", "-q", "-o", session, "--", "true"];
    assert_eq!(run(&record, None).0, Some(0));
    assert_eq!(run(&["diagnose", session], None).0, Some(0));
    let query = ["query", "--format", "csv", session, "SELECT 1 AS one"];
    let (status, _, errors) = run(&query, None);
    assert_eq!(status, Some(2), "{errors}");
    assert!(errors.contains("libduckdb.so: cannot open"), "{errors}");
    // The page would have nothing to show.
    let (status, _, errors) = run(&["ui", "--no-open", session], None);
    assert_eq!(status, Some(2), "{errors}");
    // One that is no such library.
    let other = scratch.root().join("libduckdb.so");
    let libc = std::fs::read_to_string("/proc/self/maps").unwrap();
    let mut mapped = libc.lines().filter_map(|l| l.split_whitespace().nth(5));
    let libc = mapped.find(|path| path.contains("/libc.so")).unwrap();
    std::os::unix::fs::symlink(libc, &other).unwrap();
    let (status, _, errors) = run(&query, None);
    assert_eq!(status, Some(2), "{errors}");
    assert!(
        errors.contains("is another version: it lacks duckdb_"),
        "{errors}"
    );
    std::fs::remove_file(&other).unwrap();
    let beside = fathom();
    let beside = beside.parent().unwrap();
    let places = [".", "../lib", "../../.deps/duckdb"].map(|at| beside.join(at));
    let place = places
        .iter()
        .find(|place| place.join("libduckdb.so").exists());
    let (status, rows, errors) = run(&query, place.unwrap().to_str());
    assert_eq!((status, rows.as_str()), (Some(0), "one\n1\n"), "{errors}");
}
