//! `fathom record --library-by preload`: the same calls as uprobes see, and programs that do what they
//! do without.

use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use fathom_tests::session::{Row, meta};
use fathom_tests::workload::{workload_library, workload_with_library};
use fathom_tests::{Record, Recording, Scratch, need_program, need_root, skip, workload};

use crate::kernel::release;
use crate::library::{all_seen, stdio_agrees};

/// As in workloads/with_library/walking.c.
const TURNS: i64 = 5;
const LEAPS: i64 = 3;
const THROWN: i64 = 4;
const THREADS: i64 = 40;
const SWITCHES: i64 = 6;
const SIGNALS: i64 = 7;
const CHILDREN: i64 = 2;

/// For tests of the library: uprobes belong to its file, so that they end a program whose exceptions pass its
/// functions, whoever records it.
static LIBRARY: Mutex<()> = Mutex::new(());

/// The object is for one processor.
macro_rules! need_object {
    () => {
        if !cfg!(target_arch = "x86_64") {
            skip("there is no object to preload for this processor");
            return;
        }
    };
}

/// Rows without what differs from recording to recording.
const CALLS: &str =
    "SELECT u.function, u.depth, p.function AS parent, u.ret, u.dur_ns IS NULL AS endless,
     u.bytes, u.size, u.items, u.failed, u.path_arg, count(*) AS calls
     FROM user_calls u LEFT JOIN user_calls p ON u.parent = p.user_call GROUP BY ALL ORDER BY ALL";
/// The system calls of each function on files that the workload names.
const MADE: &str = "SELECT regexp_extract(s.path_arg, '[^/]*$') AS file, u.function, u.depth, count(*) AS calls
     FROM syscalls s LEFT JOIN user_calls u USING (user_call) WHERE s.syscall IN ('access', 'faccessat')
     AND s.path_arg LIKE '%/work/%' GROUP BY ALL ORDER BY ALL";

/// What the query gives, as text.
fn text(recording: &Recording, sql: &str) -> Vec<String> {
    let rows = recording.rows(&format!(
        "SELECT line::VARCHAR AS line FROM ({sql}) AS line"
    ));
    rows.iter()
        .map(|row| row.text("line").unwrap().to_owned())
        .collect()
}

fn record(scratch: &Scratch, way: &str, list: &str, command: &[&Path]) -> Recording {
    let options = ["--library", list, "--library-by", way];
    Record::new(scratch)
        .options(options)
        .command(command)
        .run()
        .must_exit(0)
}

#[test]
fn stdio_by_preload() {
    need_root!();
    need_object!();
    let scratch = Scratch::new();
    let program = workload("library");
    let recording = record(&scratch, "preload", "stdio", &[&program, &scratch.work()]);
    stdio_agrees(&recording);
    all_seen(&recording);
    // Beside its own, the program makes the calls that load the library and map the memory.
    let own = recording.number(
        "SELECT count(*) FROM syscalls WHERE path LIKE '%/fathom-________________/pool'
         AND syscall NOT IN ('openat', 'mmap', 'close')",
    );
    assert_eq!(own, 0);
}

/// The first threads of a forked process that call wait until it has its region.
#[test]
fn threads_of_forked_processes() {
    /// As in workloads/children.c.
    const CALLS: i64 = 100 * 4;
    need_root!();
    need_object!();
    let scratch = Scratch::new();
    let program = workload("children");
    let recording = record(&scratch, "preload", "stdio", &[&program]);
    all_seen(&recording);
    for function in ["fopen", "fclose"] {
        let calls = format!("SELECT count(*) FROM user_calls WHERE function = '{function}'");
        assert_eq!(recording.number(&calls), CALLS, "{function}");
    }
}

#[test]
fn both_ways_see_the_same() {
    need_root!();
    need_object!();
    need_program!("c++");
    let _alone = LIBRARY.lock().unwrap_or_else(PoisonError::into_inner);
    let library = workload_library("walking_library");
    let program = workload_with_library("walking", &library);
    let list = ["walk", "walk_far"].map(|f| format!("{}:{f}", library.display()));
    let scratch = Scratch::new();
    let command = [program.as_path(), &scratch.work()];
    let recording = record(&scratch, "preload", &list.join(","), &command);
    recording.complete();
    assert_eq!(recording.text(), said(&program, &scratch, &[]));
    let calls = |condition: &str| {
        recording.number(&format!(
            "SELECT count(*) FROM user_calls WHERE {condition}"
        ))
    };
    assert_eq!(calls("function = 'walk_far' AND ret = 107"), TURNS);
    let walked = TURNS * 3 + LEAPS + THREADS + THREADS / 2 + SIGNALS * 2 + CHILDREN * 2;
    assert_eq!(calls("function = 'walk'"), walked);
    // Left by longjmp(), and with their threads.
    assert_eq!(calls("dur_ns IS NULL AND ret IS NULL"), LEAPS + THREADS / 2);
    assert_eq!(
        calls("parent IS NOT NULL AND depth = 1"),
        TURNS * 2 + SIGNALS
    );
    assert_eq!(made(&recording), in_calls(&[("outside none", 1)]));
    if release() < (5, 17) {
        return;
    }
    let other = Scratch::new();
    let command = [program.as_path(), &other.work()];
    let probed = record(&other, "uprobe", &list.join(","), &command);
    probed.complete();
    assert_eq!(made(&probed), made(&recording));
    assert_eq!(text(&probed, CALLS), text(&recording, CALLS));
}

/// Exceptions, and calls that are left for another stack and come back: the program ends as it does
/// without fathom.
#[test]
fn exceptions_and_other_stacks() {
    need_root!();
    need_object!();
    need_program!("c++");
    let _alone = LIBRARY.lock().unwrap_or_else(PoisonError::into_inner);
    let library = workload_library("walking_library");
    let program = workload_with_library("walking", &library);
    let name = library.file_name().unwrap().to_str().unwrap();
    let scratch = Scratch::new();
    let list = format!("{name}:walk,{name}:walk_far");
    let recording = Record::new(&scratch)
        .options(["--library", &list, "--library-by", "preload"])
        .env("BY_PRELOAD", "1")
        .command([program.as_os_str(), scratch.work().as_os_str()])
        .run()
        .must_exit(0);
    recording.complete();
    let said = said(&program, &scratch, &[("BY_PRELOAD", "1")]);
    assert_eq!(recording.text(), said);
    assert!(said.contains(&format!(
        " {THROWN} caught, {LEAPS} leaps, {} resumed",
        2 * SWITCHES
    )));
    let thrown = recording.number(
        "SELECT count(*) FROM user_calls WHERE dur_ns IS NULL AND function = 'walk_far' AND depth = 0",
    );
    // Those on another stack count as left when the thread calls from its own one.
    assert_eq!(thrown, THROWN / 2 + SWITCHES);
    let others = [("between walk", SWITCHES * 3), ("outside none", 2)];
    assert_eq!(made(&recording), in_calls(&others));
}

/// Output of the program without fathom.
fn said(program: &Path, scratch: &Scratch, environment: &[(&str, &str)]) -> String {
    let run = Command::new(program)
        .arg(scratch.work())
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    assert!(run.status.success());
    String::from_utf8(run.stdout).unwrap()
}

/// The system calls on the workload's files, by file and function.
fn made(recording: &Recording) -> Vec<(String, i64)> {
    let rows = recording.rows(MADE);
    let of = |row: &Row| {
        let function = row.text("function").unwrap_or("none");
        let file = row.text("file").unwrap();
        (format!("{file} {function}"), row.int("calls").unwrap())
    };
    rows.iter().map(of).collect()
}

/// Those that the workload makes in any case, and `others`.
fn in_calls(others: &[(&str, i64)]) -> Vec<(String, i64)> {
    let mut expected = vec![
        ("again walk", TURNS * 2),
        ("child walk", CHILDREN),
        ("executed walk", CHILDREN * 3),
        ("far walk_far", TURNS * 2),
        ("handler walk", SIGNALS * 2),
        ("thread walk", THREADS),
    ];
    expected.extend_from_slice(others);
    expected.sort();
    let owned = expected
        .into_iter()
        .map(|(of, calls)| (of.to_owned(), calls));
    owned.collect()
}

/// SQLite in a library that Python loads when it needs it, and that only one of its modules sees.
#[test]
fn a_library_that_is_loaded_later() {
    need_root!();
    need_object!();
    need_program!("/usr/bin/python3");
    let code = "import sqlite3
db = sqlite3.connect(':memory:')
db.execute('CREATE TABLE t(n)')
for n in range(50):
    db.execute('INSERT INTO t VALUES (?)', (n,))
print(db.execute('SELECT sum(n) FROM t').fetchone()[0])";
    let python = Path::new("/usr/bin/python3");
    let scratch = Scratch::new();
    let recording = record(
        &scratch,
        "preload",
        "sqlite",
        &[python, Path::new("-c"), Path::new(code)],
    );
    assert_eq!(recording.text(), "1225\n");
    all_libraries(&recording, "libsqlite3");
    if release() >= (5, 17) {
        let scratch = Scratch::new();
        let probed = record(
            &scratch,
            "uprobe",
            "sqlite",
            &[python, Path::new("-c"), Path::new(code)],
        );
        // What the library calls itself passes no dynamic linker.
        let outermost = CALLS.replace("GROUP BY", "WHERE u.parent IS NULL GROUP BY");
        let outermost = outermost.replace("u.ret,", "");
        assert_eq!(text(&probed, &outermost), text(&recording, &outermost));
    }
}

fn all_libraries(recording: &Recording, library: &str) {
    let others = recording.number(&format!(
        "SELECT count(*) FROM user_calls WHERE library NOT LIKE '%/{library}%'"
    ));
    assert_eq!(others, 0);
    assert!(recording.number("SELECT count(*) FROM user_calls") > 100);
}

#[test]
fn ranks_of_mpi_by_preload() {
    need_root!();
    need_object!();
    need_program!("mpicc", "mpirun");
    crate::mpi::calls_agree(&["--library-by", "preload"]);
}

#[test]
fn what_cannot_be_preloaded() {
    need_root!();
    need_object!();
    let scratch = Scratch::new();
    let program = workload("library");
    let own = format!("{}:outer", program.display());
    for (options, words) in [
        (&["--library", "stdio", "-p", "1"][..], "name a command"),
        (&["--library", "libc.so.6:vfork"], "cannot record vfork"),
        (&["--library", &own], "is no library that exports outer"),
        (&["--library", "stdoi"], "is no class of functions"),
    ] {
        let mut record = Record::new(&scratch)
            .options(options)
            .options(["--library-by", "preload"]);
        if !options.contains(&"-p") {
            record = record.command(["true"]);
        }
        let recording = record.run().must_exit(2);
        assert!(
            recording.stderr.contains(words),
            "{options:?}: {}",
            recording.stderr
        );
    }
    // A program that loads no library says so; the others of the recording have their calls.
    need_program!("/sbin/ldconfig");
    let recording = Record::new(&scratch)
        .options(["--library", "stdio", "--library-by", "preload"])
        .command([
            "sh",
            "-c",
            "/sbin/ldconfig -p > /dev/null; ls / > /dev/null; true",
        ])
        .run()
        .must_exit(0);
    assert!(
        recording.stderr.contains("ldconfig"),
        "{}",
        recording.stderr
    );
    let hooks = meta(&recording.session)["hooks"].clone();
    let unloaded = hooks.as_array().unwrap().iter().find(|hook| {
        let name = hook["name"].as_str().unwrap();
        name.starts_with("library ") && name.contains("ldconfig")
    });
    let unloaded = unloaded.unwrap();
    assert_eq!(unloaded["attached"], false);
    assert!(
        unloaded["note"]
            .as_str()
            .unwrap()
            .contains("statically linked")
    );
    assert!(recording.number("SELECT count(*) FROM user_calls WHERE comm = 'ls'") > 0);
}
