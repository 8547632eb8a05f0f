//! `fathom record --library`: calls of functions of libraries, whose numbers the program knows.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use fathom_tests::session::{meta, try_query};
use fathom_tests::{Record, Recording, Scratch, need_program, need_root, skip, workload};
use rustix::process::Signal;

use crate::kernel::release;

/// As in workloads/library.c.
const ITEMS: i64 = 129;
const ITEM: i64 = 100;
const LEAPS: i64 = 3;
const TURNS: i64 = 5;

/// Without cookies there are no programs for library calls (Linux 5.15).
macro_rules! need_cookies {
    () => {
        if release() < (5, 17) {
            skip("this kernel gives programs no cookies");
            return;
        }
    };
}

/// The workload, recorded with its own functions and those of stdio.
fn record(scratch: &Scratch, programs: Option<&str>) -> Recording {
    let program = workload("library");
    let own = |function| format!("{}:{function}", program.display());
    let list = format!("stdio,{},{},{}", own("outer"), own("inner"), own("last"));
    let mut record = Record::new(scratch)
        .options(["--library", &list])
        .command([program.as_os_str(), scratch.work().as_os_str()]);
    if let Some(programs) = programs {
        record = record.env("FATHOM_PROGRAMS", programs);
    }
    record.run().must_exit(0)
}

#[test]
fn calls_are_those_that_the_program_made() {
    need_root!();
    need_cookies!();
    let scratch = Scratch::new();
    let recording = record(&scratch, None);
    calls_agree(&recording);
}

/// The same with the programs for Linux 5.17, and with those for 6.2.
#[test]
fn calls_by_programs_for_older_kernels() {
    need_root!();
    need_cookies!();
    for programs in ["5.17", "6.2"] {
        if programs == "6.2" && release() < (6, 2) {
            continue;
        }
        let scratch = Scratch::new();
        let recording = record(&scratch, Some(programs));
        calls_agree(&recording);
    }
}

fn calls_agree(recording: &Recording) {
    stdio_agrees(recording);
    own_calls_agree(recording);
}

/// The calls of stdio.
pub(crate) fn stdio_agrees(recording: &Recording) {
    let calls = |condition: &str| {
        recording.number(&format!(
            "SELECT count(*) FROM user_calls WHERE {condition}"
        ))
    };
    let number = |sql: &str| recording.number(sql);
    // Buffered I/O: calls, items and bytes.
    assert_eq!(calls("function = 'fwrite'"), ITEMS);
    assert_eq!(calls("function = 'fread'"), ITEMS + 1);
    assert_eq!(calls("function = 'fopen'"), 3);
    assert_eq!(
        calls("function = 'fopen' AND failed AND path_arg LIKE '%/absent'"),
        1
    );
    assert_eq!(calls("function = 'fclose'"), 2);
    for function in ["fread", "fwrite"] {
        let moved = number(&format!(
            "SELECT sum(bytes)::BIGINT FROM user_calls WHERE function = '{function}'"
        ));
        assert_eq!(moved, ITEMS * ITEM, "{function}");
    }
    // The file behind a FILE is that of the descriptor.
    assert_eq!(
        calls(
            "function IN ('fread', 'fwrite', 'fclose') AND file_id <>
             (SELECT file_id FROM files WHERE path LIKE '%/stream')"
        ),
        0
    );
    assert_eq!(
        calls("function IN ('fread', 'fwrite', 'fclose') AND file_id IS NULL"),
        0
    );
    // All I/O of the stream was made by them, and all of its bytes.
    for (syscall, function) in [("write", "('fwrite', 'fclose')"), ("read", "('fread')")] {
        let made = number(&format!(
            "SELECT coalesce(sum(s.bytes), 0)::BIGINT FROM syscalls s JOIN user_calls u USING (user_call)
             WHERE s.syscall = '{syscall}' AND u.function IN {function}"
        ));
        assert_eq!(made, ITEMS * ITEM, "{syscall}");
        let outside = number(&format!(
            "SELECT count(*) FROM syscalls WHERE syscall = '{syscall}' AND user_call IS NULL
             AND file_id = (SELECT file_id FROM files WHERE path LIKE '%/stream')"
        ));
        assert_eq!(outside, 0, "{syscall}");
    }
    assert_eq!(
        number("SELECT syscall_bytes FROM by_user_call WHERE function = 'fread'"),
        ITEMS * ITEM
    );
}

/// The program's own functions.
fn own_calls_agree(recording: &Recording) {
    let calls = |condition: &str| {
        recording.number(&format!(
            "SELECT count(*) FROM user_calls WHERE {condition}"
        ))
    };
    let number = |sql: &str| recording.number(sql);
    // Calls in calls, and calls that never return.
    assert_eq!(calls("function = 'outer' AND ret IS NOT NULL"), TURNS);
    assert_eq!(
        calls("function = 'outer' AND ret IS NULL AND dur_ns IS NULL"),
        LEAPS
    );
    assert_eq!(
        number(
            "SELECT count(*) FROM user_calls i JOIN user_calls o ON i.parent = o.user_call
             WHERE i.function = 'inner' AND o.function = 'outer' AND i.depth = 1 AND o.depth = 0
             AND i.ts_ns >= o.ts_ns AND (i.dur_ns IS NULL) = (o.dur_ns IS NULL)"
        ),
        TURNS + LEAPS
    );
    // Its duration is its time so far.
    assert_eq!(calls("function = 'last' AND ret IS NULL AND dur_ns > 0"), 1);
    // Each system call belongs to the innermost.
    for (file, functions) in [
        ("inner", format!("inner {TURNS}")),
        ("leap", format!("inner {LEAPS}")),
        ("outside", "none 1".to_string()),
        ("child", "none 1".to_string()),
        ("last", "last 1".to_string()),
    ] {
        let found = recording.rows(&format!(
            "SELECT coalesce(u.function, 'none') || ' ' || count(*) AS made
             FROM syscalls s LEFT JOIN user_calls u USING (user_call)
             WHERE s.path_arg LIKE '%/{file}' GROUP BY u.function"
        ));
        let found: Vec<_> = found.iter().map(|row| row.text("made")).collect();
        assert_eq!(found, [Some(functions.as_str())], "{file}");
    }
    all_seen(recording);
}

/// Each call has a row, and those of the C library have a hook.
pub(crate) fn all_seen(recording: &Recording) {
    let meta = meta(&recording.session);
    let counts = &meta["totals"]["layers"];
    let rows = recording.number("SELECT count(*) FROM user_calls");
    assert_eq!(counts["user_calls"], rows);
    assert_eq!(counts["user_calls_unseen"], 0);
    assert_eq!(counts["lost"], 0);
    let stdio = meta["hooks"].as_array().unwrap().iter().find(|hook| {
        let name = hook["name"].as_str().unwrap();
        name.starts_with("library ") && name.contains("libc.so")
    });
    assert_eq!(stdio.unwrap()["attached"], true);
}

/// A library that a running program has mapped: SQLite's shell, by whose commits the system calls
/// of its library calls are known.
#[test]
fn of_a_running_process() {
    const ROWS: i64 = 50;
    need_root!();
    need_cookies!();
    need_program!("sqlite3");
    let scratch = Scratch::new();
    let mut shell = Command::new("sqlite3")
        .arg(scratch.work().join("db"))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = shell.stdin.take().unwrap();
    let mut running = Record::new(&scratch)
        .options(["-p", &shell.id().to_string(), "--library", "sqlite"])
        .spawn();
    let session = running.session();
    running.until("a library call in the session", || {
        writeln!(input, "SELECT 1;").unwrap();
        std::thread::sleep(Duration::from_millis(50));
        session.join("session.json").exists()
            && try_query(&session, "FROM user_calls LIMIT 1").is_ok_and(|rows| !rows.is_empty())
    });
    writeln!(input, "CREATE TABLE t(n);").unwrap();
    for n in 1..ROWS {
        writeln!(input, "INSERT INTO t VALUES({n});").unwrap();
    }
    drop(input);
    assert!(shell.wait().unwrap().success());
    let _ = running.try_signal(Signal::TERM);
    let recording = running.wait().must_exit(0);
    recording.complete();
    let syncs = "syscall IN ('fsync', 'fdatasync')";
    assert_eq!(
        recording.number(&format!(
            "SELECT count(DISTINCT user_call) FROM syscalls JOIN user_calls USING (user_call)
             WHERE {syncs} AND function = 'sqlite3_step'"
        )),
        ROWS
    );
    assert_eq!(
        recording.number(&format!(
            "SELECT count(*) FROM syscalls WHERE {syncs} AND user_call IS NULL"
        )),
        0
    );
}

#[test]
fn functions_that_are_not_there() {
    need_root!();
    if release() < (5, 17) {
        skip("this kernel gives programs no cookies");
        return;
    }
    let scratch = Scratch::new();
    let program = workload("library");
    for (list, words) in [
        ("stdoi".to_string(), "is no class of functions"),
        (
            format!("{}:nothing", program.display()),
            "has no function nothing",
        ),
        ("/no/such/library.so:f".to_string(), "cannot be read"),
    ] {
        let recording = Record::new(&scratch)
            .options(["--library", &list])
            .command(["true"])
            .run()
            .must_exit(2);
        assert!(
            recording.stderr.contains(words),
            "{list}: {}",
            recording.stderr
        );
    }
    // A library may be mapped at any time: that none was is known at the end.
    let recording = Record::new(&scratch)
        .options(["--library", "libnothing.so:f"])
        .command(["true"])
        .run()
        .must_exit(0);
    let words = "library libnothing.so:f: calls of this library are not recorded";
    assert!(recording.stderr.contains(words), "{}", recording.stderr);
    let hooks = meta(&recording.session)["hooks"].clone();
    let missing = hooks
        .as_array()
        .unwrap()
        .iter()
        .find(|hook| hook["name"] == "library libnothing.so:f");
    assert_eq!(missing.unwrap()["attached"], false);
}

/// An option is refused whose rows cannot come.
#[test]
fn programs_for_the_oldest_kernels_refuse_what_they_cannot_attach_to() {
    need_root!();
    if !cfg!(target_arch = "x86_64") {
        skip("there are no programs for such kernels on this processor");
        return;
    }
    let scratch = Scratch::new();
    for options in [["--library", "stdio"], ["--usdt", "python"]] {
        let recording = Record::named(&scratch, options[0].trim_start_matches('-'))
            .options(options)
            .env("FATHOM_PROGRAMS", "5.8")
            .command(["true"])
            .run()
            .must_exit(125);
        let words = format!("{} needs Linux 5.17 or newer", options[0]);
        assert!(recording.stderr.contains(&words), "{}", recording.stderr);
    }
}
