//! `fathom record --usdt`: spans between static probes, of a program that knows their numbers and of
//! programs that were not written for fathom.

use std::ffi::OsStr;
use std::process::Command;

use fathom_tests::environment::must_run;
use fathom_tests::session::meta;
use fathom_tests::{Record, Recording, Scratch, need_program, need_root, skip, workload};
use serde_json::Value;

use crate::kernel::release;

/// As in workloads/static_probes.c.
const THREADS: i64 = 3;
const JOBS: i64 = 50;
const LEAPS: i64 = 4;
const DEPTH: i64 = 5;
const WRITES: i64 = 3;
const BYTES: i64 = 100;

const OWN: &str = "app:job__start/job__done@1:2,app:step__begin/step__end";

/// Without cookies there are no programs for static probes (Linux 5.15).
macro_rules! need_cookies {
    () => {
        if release() < (5, 17) {
            skip("this kernel gives programs no cookies");
            return;
        }
    };
}

/// Counts in `session.json`, which add up.
fn counts(recording: &Recording) -> Value {
    let meta = meta(&recording.session);
    let counts = &meta["spans"];
    let count = |name: &str| counts[name].as_i64().unwrap();
    let rows = recording.number("SELECT count(*) FROM spans WHERE source = 'usdt'");
    assert_eq!(count("usdt_rows"), rows, "{counts}");
    assert_eq!(
        count("usdt_seen"),
        2 * rows + count("usdt_unpaired"),
        "{counts}"
    );
    assert_eq!(meta["totals"]["layers"]["lost"], 0);
    counts.clone()
}

fn own_spans_agree(programs: Option<&str>) {
    let scratch = Scratch::new();
    let program = workload("static_probes");
    let mut record = Record::new(&scratch)
        .options(["--usdt", OWN])
        .command([program.as_os_str(), scratch.work().as_os_str()]);
    if let Some(programs) = programs {
        record = record.env("FATHOM_PROGRAMS", programs);
    }
    let recording = record.run().must_exit(0);
    let number = |sql: &str| recording.number(sql);
    let spans = |name: &str| {
        number(&format!(
            "SELECT count(*) FROM spans WHERE name = '{name}' AND kind = 'internal'"
        ))
    };
    // As many bytes of the text as its length says.
    assert_eq!(spans("job job"), THREADS * JOBS);
    assert_eq!(spans("step"), 2 * THREADS * JOBS);
    assert_eq!(spans("job nested"), DEPTH);
    assert_eq!(spans("job child"), 1);
    // Each leap but the last one left a job without an end; one end had no job.
    assert_eq!(spans("job leap"), 1);
    let counts = counts(&recording);
    assert_eq!(counts["usdt_unpaired"], LEAPS - 1 + 1, "{counts}");
    // A step is in a job, and a nested job in the one around it.
    let within = |inner: &str, outer: &str| {
        number(&format!(
            "SELECT count(*) FROM spans i JOIN spans o
             ON i.trace_id = o.trace_id AND i.parent_span_id = o.span_id
             WHERE i.name = '{inner}' AND o.name = '{outer}' AND i.tid = o.tid
             AND i.ts_ns >= o.ts_ns AND i.ts_ns + i.dur_ns <= o.ts_ns + o.dur_ns"
        ))
    };
    assert_eq!(within("step", "job job"), 2 * THREADS * JOBS);
    assert_eq!(within("job nested", "job nested"), DEPTH - 1);
    assert_eq!(
        number("SELECT count(*) FROM spans WHERE parent_span_id IS NULL AND name <> 'step'"),
        THREADS * JOBS + 1 + 1 + 1
    );
    // Every write is in its job.
    let sums = |name: &str, column: &str| {
        number(&format!(
            "SELECT {column}::BIGINT FROM by_span_name WHERE name = '{name}'"
        ))
    };
    assert_eq!(sums("job job", "calls"), THREADS * JOBS * WRITES);
    assert_eq!(sums("job job", "bytes"), THREADS * JOBS * WRITES * BYTES);
    assert_eq!(sums("job child", "bytes"), WRITES * BYTES);
}

#[test]
fn spans_are_those_that_the_program_made() {
    need_root!();
    need_cookies!();
    own_spans_agree(None);
}

/// The same with the programs for Linux 5.17, and with those for 6.2.
#[test]
fn spans_by_programs_for_older_kernels() {
    need_root!();
    need_cookies!();
    for programs in ["5.17", "6.2"] {
        if programs == "5.17" || release() >= (6, 2) {
            own_spans_agree(Some(programs));
        }
    }
}

#[test]
fn probes_that_are_not_there() {
    need_root!();
    need_cookies!();
    let scratch = Scratch::new();
    let recording = Record::new(&scratch)
        .options(["--usdt", "hotspot:gc"])
        .command(["true"])
        .run()
        .must_exit(0);
    let warned = "usdt hotspot:gc: spans of these static probes are not recorded (no recorded \
                  program mapped a file with the probes";
    let said = recording.stderr.split_whitespace().collect::<Vec<_>>();
    assert!(said.join(" ").contains(warned), "{}", recording.stderr);
    // Of a list without a single probe one line is enough.
    let recording = Record::named(&scratch, "all")
        .options(["--usdt", "all"])
        .command(["true"])
        .run()
        .must_exit(0);
    assert_eq!(
        recording.stderr.matches("static probes").count(),
        1,
        "{}",
        recording.stderr
    );
    for (list, message) in [
        ("pg", "'pg' is no known provider: use postgresql, php"),
        (
            "python:gcc",
            "python has no spans called 'gcc': use gc, import",
        ),
        ("app:job__start/", "PROVIDER:BEGIN/END"),
    ] {
        let refused = Record::new(&scratch)
            .options(["--usdt", list])
            .command(["true"])
            .run();
        assert_eq!(refused.status.code(), Some(2), "{list}");
        let said = refused.stderr.split_whitespace().collect::<Vec<_>>();
        assert!(said.join(" ").contains(message), "{}", refused.stderr);
    }
}

/// Collections of garbage in CPython, which counts them itself, and its imports.
#[test]
fn collections_of_python_are_those_that_it_counts() {
    const ASKED: i64 = 7;
    need_root!();
    need_cookies!();
    let python = "/usr/bin/python3";
    let notes = Command::new("readelf").args(["-n", python]).output();
    if !notes.is_ok_and(|notes| String::from_utf8_lossy(&notes.stdout).contains("gc__start")) {
        skip("the distribution's Python has no static probes");
        return;
    }
    let scratch = Scratch::new();
    let counted = scratch.work().join("counted");
    // Without site-packages nothing collects before the first line.
    let script = format!(
        "import gc, base64\n\
         gc.disable()\n\
         before = sum(s['collections'] for s in gc.get_stats())\n\
         for _ in range({ASKED}): gc.collect()\n\
         after = sum(s['collections'] for s in gc.get_stats())\n\
         open({counted:?}, 'w').write(f'{{before}} {{after}}')\n"
    );
    let recording = Record::new(&scratch)
        .options(["--usdt", "python"])
        .command([python, "-S", "-c", &script])
        .run()
        .must_exit(0);
    counts(&recording);
    let text = std::fs::read_to_string(counted).unwrap();
    let (before, after) = text.split_once(' ').unwrap();
    let number = |text: &str| text.parse::<i64>().unwrap();
    assert_eq!(number(after) - number(before), ASKED);
    let collections = recording.number("SELECT count(*) FROM spans WHERE name = 'gc'");
    // Python collects once more as it ends, or a few times.
    assert!(
        (number(after)..number(after) + 8).contains(&collections),
        "{collections}, Python: {text}"
    );
    // A module is read within its import.
    let read = "SELECT count(*) FROM spans s JOIN syscalls c ON c.tid = s.tid
                AND c.ts_ns BETWEEN s.ts_ns AND s.ts_ns + s.dur_ns
                WHERE s.name = 'import base64' AND c.path LIKE '%/base64%' AND c.bytes > 0";
    assert!(recording.number(read) > 0);
}

/// Statements of PostgreSQL are those that pgbench has sent, and their transactions those that the
/// server has counted.
#[test]
fn statements_of_postgresql_are_those_of_pgbench() {
    const TRANSACTIONS: i64 = 40;
    const CLIENTS: i64 = 2;
    need_root!();
    need_cookies!();
    need_program!("postgres", "pgbench");
    let scratch = Scratch::new();
    let work = scratch.work();
    must_run("chmod", [OsStr::new("777"), work.as_os_str()]);
    let script = format!(
        "set -e; cd {work}; B=$(dirname \"$(readlink -f \"$(command -v postgres)\")\")
         as() {{ su nobody -s /bin/sh -c \"$1\"; }}
         as \"$B/initdb -D {work}/data -A trust -U postgres -N\" >log
         as \"$B/pg_ctl -D {work}/data -o '-F -k {work} -c listen_addresses= -c autovacuum=off' -l {work}/server -w start\" >>log
         pgbench -h {work} -U postgres -i -q postgres 2>>log
         pgbench -h {work} -U postgres -n -c {CLIENTS} -t {TRANSACTIONS} postgres >>log 2>&1
         psql -h {work} -U postgres -c 'SELECT 1/0' postgres >>log 2>&1 || true
         as \"$B/pg_ctl -D {work}/data -m fast -w stop\" >>log",
        work = work.display()
    );
    let recording = Record::new(&scratch)
        .options(["--usdt", "postgresql", "--ring-mib", "64"])
        .command(["sh", "-c", &script])
        .run()
        .must_exit(0);
    counts(&recording);
    let spans =
        |name: &str| recording.number(&format!("SELECT count(*) FROM spans WHERE name = '{name}'"));
    for statement in [
        "BEGIN",
        "UPDATE pgbench_accounts SET abalance = abalance + ? WHERE aid = ?",
        "SELECT abalance FROM pgbench_accounts WHERE aid = ?",
        "UPDATE pgbench_tellers SET tbalance = tbalance + ? WHERE tid = ?",
        "UPDATE pgbench_branches SET bbalance = bbalance + ? WHERE bid = ?",
        "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (?, ..., CURRENT_TIMESTAMP)",
        "END",
    ] {
        assert_eq!(spans(statement), TRANSACTIONS * CLIENTS, "{statement}");
    }
    // One that fails has no end.
    assert_eq!(spans("SELECT ?/?"), 0);
    // The log is written before END is answered.
    let logged = recording.number("SELECT sum(calls)::BIGINT FROM by_span_name WHERE name = 'END'");
    assert!(logged >= TRANSACTIONS * CLIENTS / 2, "{logged}");
}
