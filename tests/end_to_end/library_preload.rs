//! `fathom record --library-by preload`: the same calls as uprobes see, and programs that do what they
//! do without.

use std::path::Path;

use fathom_tests::session::meta;
use fathom_tests::workload::{workload_library, workload_with_library};
use fathom_tests::{Record, Recording, Scratch, need_program, need_root, skip, workload};

use crate::kernel::release;
use crate::library::{all_seen, stdio_agrees};

/// As in workloads/walking.c.
const TURNS: i64 = 5;
const LEAPS: i64 = 3;
const THROWN: i64 = 4;
const THREADS: i64 = 40;
const SWITCHES: i64 = 6;
const SIGNALS: i64 = 7;
const CHILDREN: i64 = 2;

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

#[test]
fn calls_that_do_not_return_as_others_do() {
    need_root!();
    need_object!();
    need_program!("c++");
    let library = workload_library("walking_library");
    let program = workload_with_library("walking", &library);
    let name = library.file_name().unwrap().to_str().unwrap();
    let list = format!("{name}:walk,{name}:walk_far");
    let scratch = Scratch::new();
    let others = if release() >= (5, 17) {
        vec!["uprobe", "preload"]
    } else {
        vec!["preload"]
    };
    let mut recordings = Vec::new();
    for way in others {
        let scratch = Scratch::new();
        let recording = record(&scratch, way, &list, &[&program, &scratch.work()]);
        recording.complete();
        // Nothing else happened than without fathom.
        let visits = TURNS * 4 + THREADS + SIGNALS * 2;
        let destroyed = 3 * THROWN + THREADS;
        let said = format!(
            "{visits} visits, {destroyed} destroyed, {THROWN} caught, {LEAPS} leaps, 0 resumed, {SIGNALS} handled\n"
        );
        assert_eq!(recording.text(), said, "{way}");
        recordings.push((scratch, recording));
    }
    let (_, preloaded) = recordings.last().unwrap();
    let calls = |condition: &str| {
        preloaded.number(&format!(
            "SELECT count(*) FROM user_calls WHERE {condition}"
        ))
    };
    assert_eq!(calls("function = 'walk_far'"), TURNS + THROWN / 2);
    let walked =
        TURNS * 3 + THROWN / 2 + LEAPS + THREADS + THREADS / 2 + SIGNALS * 2 + CHILDREN * 2;
    assert_eq!(calls("function = 'walk'"), walked);
    let endless = "dur_ns IS NULL AND ret IS NULL";
    assert_eq!(
        calls(&format!("{endless} AND function = 'walk_far'")),
        THROWN / 2
    );
    // Those that end their thread have not returned when it ends.
    assert_eq!(calls("ret IS NULL AND dur_ns > 0"), THREADS / 2);
    assert_eq!(calls("parent IS NOT NULL"), TURNS * 2 + SIGNALS);
    let made: Vec<(String, i64)> = preloaded
        .rows(MADE)
        .iter()
        .map(|row| {
            let of = row.text("function").unwrap_or("none");
            (
                format!("{} {of}", row.text("file").unwrap()),
                row.int("calls").unwrap(),
            )
        })
        .collect();
    let expected = [
        ("again walk", TURNS * 2),
        ("child walk", CHILDREN),
        ("executed walk", CHILDREN * 3),
        ("far walk_far", TURNS * 2),
        ("handler walk", SIGNALS * 2),
        ("outside none", 1),
        ("thread walk", THREADS),
    ];
    assert_eq!(made, expected.map(|(of, calls)| (of.to_owned(), calls)));
    if let [(_, probed), _] = &recordings[..] {
        assert_eq!(text(probed, MADE), text(preloaded, MADE));
        assert_eq!(text(probed, CALLS), text(preloaded, CALLS));
    }
    // On other stacks, which uprobes leave to the program: it ends as it does without fathom.
    let recording = Record::new(&scratch)
        .options(["--library", &list, "--library-by", "preload"])
        .env("OTHER_STACKS", "1")
        .command([program.as_os_str(), scratch.work().as_os_str()])
        .run()
        .must_exit(0);
    let resumed = format!(" {} resumed, ", 2 * SWITCHES);
    assert!(recording.text().contains(&resumed), "{}", recording.text());
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
