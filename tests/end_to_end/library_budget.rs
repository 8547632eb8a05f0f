//! `fathom record --library-budget`: calls of a function that is called often are counted, and every
//! call has a row or is counted.

use fathom_tests::session::{meta, query, report};
use fathom_tests::tools::run;
use fathom_tests::{Record, Recording, Scratch, need_root, skip, workload};

use crate::kernel::release;

/// As in workloads/budget.c.
const PROCESSES: i64 = 2;
const THREADS: i64 = 3;
const ROUNDS: i64 = 100;
const BATCH: i64 = 40;
const READS: i64 = PROCESSES * THREADS * ROUNDS * BATCH;
/// More than the calls of every other function.
const BUDGET: i64 = 1000;

/// Rows, and counted calls, of each process and function.
const CALLS: &str =
    "SELECT function, pid, sum(stored)::BIGINT AS stored, sum(counted)::BIGINT AS counted FROM (
    SELECT function, pid, 1 AS stored, 0 AS counted FROM user_calls
    UNION ALL SELECT function, pid, 0, count FROM user_call_counters) GROUP BY ALL ORDER BY ALL";

fn record(scratch: &Scratch, way: &str, budget: &str, more: &[&str]) -> Recording {
    let program = workload("budget");
    let options = [
        "--library",
        "stdio",
        "--library-by",
        way,
        "--library-budget",
        budget,
    ];
    Record::new(scratch)
        .options(options)
        .options(more)
        .command([program.as_os_str(), scratch.work().as_os_str()])
        .run()
        .must_exit(0)
}

fn calls_are_counted(recording: &Recording) {
    let rows = recording.rows(CALLS);
    let int = |row: &fathom_tests::session::Row, column| row.int(column).unwrap();
    // Each process made as many calls as the program says.
    let reads: Vec<_> = rows
        .iter()
        .filter(|row| row.text("function") == Some("fread"))
        .collect();
    assert_eq!(reads.len() as i64, PROCESSES, "{rows:?}");
    for row in &reads {
        assert_eq!(
            int(row, "stored") + int(row, "counted"),
            READS / PROCESSES,
            "{row:?}"
        );
    }
    let counted: i64 = reads.iter().map(|row| int(row, "counted")).sum();
    let stored = READS - counted;
    assert!(counted > 0 && stored > BUDGET, "{reads:?}");
    let meta = meta(&recording.session);
    let layers = &meta["totals"]["layers"];
    assert_eq!(
        (&layers["user_calls_unseen"], &layers["lost"]),
        (&0.into(), &0.into())
    );
    // The others have all of their rows.
    for (function, calls) in [
        ("fseek", PROCESSES * THREADS * ROUNDS),
        ("fopen", PROCESSES * THREADS + 1),
        ("fclose", PROCESSES * THREADS + 1),
        ("fwrite", 1),
    ] {
        let of_function = rows
            .iter()
            .filter(|row| row.text("function") == Some(function));
        let sums = of_function.fold((0, 0), |(stored, counted), row| {
            (stored + int(row, "stored"), counted + int(row, "counted"))
        });
        assert_eq!(sums, (calls, 0), "{function}: {rows:?}");
    }
    // A system call in a counted call names no library call.
    let alone = recording.number(
        "SELECT count(*) FROM syscalls WHERE syscall = 'read' AND user_call IS NULL
         AND path LIKE '%/work/bytes'",
    );
    assert_eq!(alone, counted);
    // The switch and the identity are in session.json.
    let budget = &meta["library_budget"];
    assert_eq!(budget["calls_per_second"], BUDGET);
    let [switch] = &budget["counted"].as_array().unwrap()[..] else {
        panic!("{budget}");
    };
    assert_eq!(
        (&switch["function"], &switch["class"]),
        (&"fread".into(), &"stdio".into())
    );
    assert!(switch["calls"].as_i64().unwrap() > BUDGET, "{switch}");
    assert_eq!(layers["user_calls_counted"], counted);
    assert_eq!(
        layers["user_calls"],
        recording.number("SELECT count(*) FROM user_calls")
    );
    // So it is said, and no view shows a part as the whole.
    assert!(
        recording
            .stderr
            .contains("library calls have no row, they were counted: fread"),
        "{}",
        recording.stderr
    );
    assert!(
        report(&recording.session)
            .to_string()
            .contains("calls of fread were counted")
    );
    let view = &recording.rows(
        "SELECT calls, counted, total_ns, bytes, syscalls, p50_ns FROM by_user_call WHERE function = 'fread'",
    )[0];
    assert_eq!(
        (view.int("calls"), view.int("counted")),
        (Some(READS), Some(counted))
    );
    for column in ["total_ns", "bytes", "syscalls", "p50_ns"] {
        assert_eq!(view.int(column), None, "{column}");
    }
    let whole = &recording
        .rows("SELECT counted, total_ns, syscalls FROM by_user_call WHERE function = 'fopen'")[0];
    assert_eq!(whole.int("counted"), Some(0));
    assert!(whole.int("total_ns") > Some(0) && whole.int("syscalls") > Some(0));
}

#[test]
fn by_preload() {
    need_root!();
    if !cfg!(target_arch = "x86_64") {
        skip("there is no object to preload for this processor");
        return;
    }
    let scratch = Scratch::new();
    calls_are_counted(&record(&scratch, "preload", &BUDGET.to_string(), &[]));
}

#[test]
fn by_uprobes_and_replayed() {
    need_root!();
    if release() < (5, 17) {
        skip("this kernel gives programs no cookies");
        return;
    }
    let scratch = Scratch::new();
    let raw = scratch.root().join("capture");
    let more = ["--raw", raw.to_str().unwrap()];
    let recording = record(&scratch, "uprobe", &BUDGET.to_string(), &more);
    calls_are_counted(&recording);
    let replayed = scratch.session("replayed");
    let output = run([
        "replay".as_ref(),
        raw.as_os_str(),
        "-o".as_ref(),
        replayed.as_os_str(),
    ]);
    assert!(output.status.success());
    let there = query(&replayed, CALLS);
    assert_eq!(format!("{:?}", recording.rows(CALLS)), format!("{there:?}"));
    let [here, there] = [&recording.session, &replayed].map(|session| meta(session));
    assert_eq!(here["library_budget"], there["library_budget"]);
}

#[test]
fn without_a_budget_each_call_has_a_row() {
    need_root!();
    if release() < (5, 17) {
        skip("this kernel gives programs no cookies");
        return;
    }
    let scratch = Scratch::new();
    let recording = record(&scratch, "uprobe", "off", &[]);
    let reads = "SELECT count(*) FROM user_calls WHERE function = 'fread'";
    assert_eq!(recording.number(reads), READS);
    assert_eq!(
        recording.number("SELECT count(*) FROM user_call_counters"),
        0
    );
    assert!(meta(&recording.session)["library_budget"].is_null());
}
