//! `fathom record --otel-context`: calls by the span that was active when they were made, of a program
//! that knows it, with every way in which code reaches the variable, and of a tracer that was not
//! written for fathom.

use std::fs;
use std::path::{Path, PathBuf};

use fathom_tests::environment::{fathom, must_run};
use fathom_tests::session::{meta, query, try_query};
use fathom_tests::workload::workload_with_context;
use fathom_tests::{
    Record, Recording, Running, Scratch, need_program, need_python, need_root, skip,
};

use crate::kernel::release;

/// As in workloads/contexts/program.c.
const THREADS: i64 = 3;
const JOBS: i64 = 40;
const TASKS: i64 = 5;
const ROUNDS: i64 = 30;

/// Without task storage there are no contexts (Linux 5.11), and these programs are for 5.17.
macro_rules! need_contexts {
    () => {
        if release() < (5, 17) {
            skip("span contexts need Linux 5.17");
            return;
        }
    };
}

/// Calls on the files of spans by what their file says and what was found.
const PLACED: &str = "SELECT regexp_extract(path, 'in-(.*)$', 1) AS said, \
     coalesce(span_id, 'none') AS found, coalesce(attribution, 'unreadable') AS by, \
     count(*) AS calls FROM span_calls WHERE path LIKE '%/in-%' GROUP BY ALL ORDER BY ALL";

/// Runs the program of `workloads/contexts` through both phases. What it does between them is exact only
/// when fathom has found the variable: it waits in a span of its own until that is stored.
fn recorded(scratch: &Scratch, programs: Option<&str>, argv: &[&Path]) -> Recording {
    let mut command: Vec<PathBuf> = vec![argv[0].into(), scratch.work(), "first".into()];
    command.extend(argv[1..].iter().map(|more| more.into()));
    let mut record = Record::new(scratch)
        .options(["--otel-context"])
        .interactive()
        .command(command);
    if let Some(programs) = programs {
        record = record.env("FATHOM_PROGRAMS", programs);
    }
    let mut running = record.spawn();
    for phase in ["first", "second"] {
        assert_eq!(running.line(), phase);
        wait_for_context(&mut running, if phase == "first" { 1 } else { 2 });
        running.say("\n");
    }
    running.wait().must_exit(0)
}

/// Waits until `times` changes to the span of the waiting program are stored.
fn wait_for_context(running: &mut Running, times: i64) {
    let session = running.session();
    let sql = "SELECT count(*) AS n FROM span_contexts WHERE span_id = '000000000000aaaa'";
    running.until("its contexts", || {
        // There may be no session yet.
        let rows = try_query(&session, sql).unwrap_or_default();
        rows.first().and_then(|row| row.int("n")) >= Some(times)
    });
}

/// Every call on a file that is named by a span was made in this span, and nothing is missing.
fn agrees(recording: &Recording) {
    recording.complete();
    let rows = recording.rows(PLACED);
    let mut spans = 0;
    for row in &rows {
        let (said, found) = (row.text("said").unwrap(), row.text("found").unwrap());
        let by = row.text("by").unwrap();
        match said {
            "unreadable" => assert_eq!((found, by), ("none", "unreadable"), "{row:?}"),
            _ => assert_eq!((found, by), (said, "context"), "{row:?}"),
        }
        spans += i64::from(!["none", "unreadable"].contains(&said));
    }
    // Of the threads, the tasks, the one that changes its record, hostile records, parent and child, and
    // the program after it.
    assert_eq!(
        spans,
        THREADS * JOBS + TASKS + ROUNDS + 2 + 2 + 1,
        "{rows:?}"
    );
    let calls = |said: &str| -> i64 {
        let rows = rows.iter().filter(|row| row.text("said") == Some(said));
        rows.filter_map(|row| row.int("calls")).sum()
    };
    // open, write, close.
    assert_eq!(calls("0000000100000001"), 3);
    assert_eq!(calls("0000010000000003"), 3 * ROUNDS);
    assert_eq!(calls("0000040000000000"), 2 * 3);
    assert_eq!(calls("unreadable"), 4 * 3);
    let counts = &meta(&recording.session)["spans"];
    assert_eq!(counts["contexts_unreadable"], 4 * 3, "{counts}");
    let changes = recording.number("SELECT count(*) FROM span_contexts WHERE state <> 'unknown'");
    assert!(counts["contexts"].as_i64() >= Some(changes), "{counts}");
    // A row for each span, also for the one of the waiting program.
    let known = recording.number("SELECT count(*) FROM spans WHERE source = 'context'");
    assert_eq!(
        (known, counts["context_spans"].as_i64()),
        (spans + 1, Some(known))
    );
    let described = "SELECT count(*) FROM spans WHERE name = 'GET /task' AND dur_ns IS NULL
        AND attributes = '{\"http_method\":\"GET\",\"http_route\":\"/task\"}' AND tid IS NULL
        AND trace_id LIKE '0000000000001234%'";
    // All but the two whose attributes are not to be read.
    assert_eq!(recording.number(described), spans + 1 - 2);
    let services = "SELECT count(*) FROM spans WHERE service NOT IN ('first', 'second')";
    assert_eq!(recording.number(services), 0);
    // Of the first call in it.
    let first = "SELECT count(*) FROM spans s JOIN (
            SELECT span_id, min(ts_ns) AS ts_ns FROM span_calls WHERE attribution = 'context' GROUP BY ALL
        ) c USING (span_id) WHERE s.ts_ns <> c.ts_ns";
    assert_eq!(recording.number(first), 0);
    // The sums count every call once.
    let sums =
        "SELECT sum(calls)::BIGINT - (SELECT count(*) FROM span_calls WHERE span_id IS NOT NULL)
        FROM by_span_name";
    assert_eq!(recording.number(sums), 0);
}

/// Code in the program itself: local-exec.
fn program() -> PathBuf {
    workload_with_context(
        "cc",
        "program",
        &[
            "-DIN_PROGRAM",
            "-Wl,--export-dynamic-symbol=otel_thread_ctx_v1",
        ],
    )
}

fn library(flags: &[&str]) -> PathBuf {
    library_by("cc", flags)
}

fn library_by(compiler: &str, flags: &[&str]) -> PathBuf {
    workload_with_context(
        compiler,
        "variable",
        &[&["-shared", "-fPIC"], flags].concat(),
    )
}

const X86: bool = cfg!(target_arch = "x86_64");
const DESCRIPTORS: &str = if X86 {
    "-mtls-dialect=gnu2"
} else {
    "-mtls-dialect=desc"
};
const LEGACY: &str = if X86 {
    "-mtls-dialect=gnu"
} else {
    "-mtls-dialect=trad"
};
const LARGE: &str = "-DBEFORE=100000";

#[test]
fn a_variable_of_the_program() {
    need_root!();
    need_contexts!();
    let scratch = Scratch::new();
    agrees(&recorded(&scratch, None, &[&program()]));
}

/// The same with the programs for Linux 5.17, and with those for 6.2.
#[test]
fn contexts_by_programs_for_older_kernels() {
    need_root!();
    need_contexts!();
    for programs in ["5.17", "6.2"] {
        if programs == "5.17" || release() >= (6, 2) {
            let scratch = Scratch::new();
            agrees(&recorded(&scratch, Some(programs), &[&program()]));
        }
    }
}

#[test]
fn a_variable_of_a_library_that_the_program_is_linked_with() {
    need_root!();
    need_contexts!();
    for flags in [
        &["-ftls-model=initial-exec"][..],
        &[DESCRIPTORS],
        &[LEGACY],
        &[LEGACY, "-Wl,-Bsymbolic"],
    ] {
        let library = library(flags);
        let linked = format!("-Wl,--no-as-needed,{}", library.display());
        let program = workload_with_context("cc", "program", &[&linked]);
        let scratch = Scratch::new();
        agrees(&recorded(&scratch, None, &[&program]));
    }
}

#[test]
#[ignore = "long"]
fn a_variable_of_a_library_that_the_program_opens() {
    need_root!();
    need_contexts!();
    let program = workload_with_context("cc", "program", &["-DOPENS"]);
    for flags in [
        &["-ftls-model=initial-exec"][..],
        &[DESCRIPTORS],
        &[DESCRIPTORS, LARGE],
        &[LEGACY, LARGE],
    ] {
        let scratch = Scratch::new();
        agrees(&recorded(&scratch, None, &[&program, &library(flags)]));
    }
}

/// musl has another table of the blocks of modules than glibc.
#[test]
fn variables_of_programs_with_musl() {
    need_root!();
    need_contexts!();
    need_program!("musl-gcc");
    let library = library_by("musl-gcc", &[LEGACY]);
    let linked = format!("-Wl,--no-as-needed,{}", library.display());
    let scratch = Scratch::new();
    let program = workload_with_context("musl-gcc", "program", &[&linked]);
    agrees(&recorded(&scratch, None, &[&program]));
    let scratch = Scratch::new();
    let program = workload_with_context("musl-gcc", "program", &["-DOPENS"]);
    let library = library_by("musl-gcc", &[DESCRIPTORS]);
    agrees(&recorded(&scratch, None, &[&program, &library]));
}

/// An exported span takes the place of what its context said of it, and keeps the calls of its id.
#[test]
fn exported_spans_are_those_of_the_contexts() {
    need_root!();
    need_contexts!();
    let scratch = Scratch::new();
    let recording = recorded(&scratch, None, &[&program()]);
    let of_calls =
        "SELECT string_agg(concat(rid, ' ', trace_id, ' ', span_id), ',' ORDER BY rid) AS all
        FROM span_calls WHERE span_id IS NOT NULL";
    let text = || {
        let rows = recording.rows(of_calls);
        rows[0].text("all").unwrap().to_owned()
    };
    let before = text();
    let spans = recording.number("SELECT count(*) FROM spans");
    let log = scratch.work().join("spans.jsonl");
    let import = [
        "import".as_ref(),
        "--into".as_ref(),
        recording.session.as_os_str(),
        log.as_os_str(),
    ];
    must_run(fathom(), import);
    assert_eq!(text(), before);
    assert_eq!(
        recording.number("SELECT count(*) FROM spans WHERE source = 'context'"),
        0
    );
    // The program has also made some in which it made no call.
    assert!(recording.number("SELECT count(*) FROM spans WHERE dur_ns IS NOT NULL") >= spans);
    let named = "SELECT count(*) FROM span_calls WHERE span_id IS NOT NULL
        AND span_name IS DISTINCT FROM 'exported ' || ltrim(span_id, '0')";
    assert_eq!(recording.number(named), 0);
    let times = "SELECT count(*) FROM by_span_name WHERE calls > 0 AND total_ns > 0";
    assert_eq!(recording.number(times), spans);
    assert!(fs::metadata(&log).unwrap().len() > 0);
}

/// A process that runs already is known before its first call.
#[test]
fn a_process_that_is_running() {
    need_root!();
    need_contexts!();
    let scratch = Scratch::new();
    let mut child = std::process::Command::new(program())
        .args([scratch.work().as_os_str(), "first".as_ref()])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut stdout = std::io::BufReader::new(child.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut stdout, &mut line).unwrap();
    let mut running = Record::new(&scratch)
        .options([
            "--otel-context",
            "--pid",
            &child.id().to_string(),
            "--children",
        ])
        .spawn();
    wait_for_context(&mut running, 1);
    let mut stdin = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, b"\n").unwrap();
    line.clear();
    std::io::BufRead::read_line(&mut stdout, &mut line).unwrap();
    wait_for_context(&mut running, 2);
    std::io::Write::write_all(&mut stdin, b"\n").unwrap();
    assert!(child.wait().unwrap().success());
    let recording = running.wait().must_exit(0);
    agrees(&recording);
    // Not even its first recorded call was made before its context was known.
    assert_eq!(
        recording.number(
            "SELECT count(*) FROM span_calls WHERE attribution IS NULL AND path NOT LIKE '%/in-unreadable'
             AND ts_ns < (SELECT min(ts_ns) FROM span_contexts)"
        ),
        0
    );
}

#[test]
fn programs_without_contexts() {
    need_root!();
    need_contexts!();
    let scratch = Scratch::new();
    let recording = Record::new(&scratch)
        .options(["--otel-context"])
        .command(["ls", "/"])
        .run()
        .must_exit(0);
    let said = recording.stderr.split_whitespace().collect::<Vec<_>>();
    let warned = "no recorded program publishes span contexts of its threads";
    assert!(said.join(" ").contains(warned), "{}", recording.stderr);
    assert_eq!(recording.number("SELECT count(*) FROM span_contexts"), 0);
    for detail in ["raw", "counters"] {
        let refused = Record::named(&scratch, detail)
            .options(["--otel-context", "--detail", detail])
            .command(["true"])
            .run();
        assert_eq!(refused.status.code(), Some(2), "{}", refused.stderr);
        assert!(
            refused.stderr.contains("--otel-context"),
            "{}",
            refused.stderr
        );
    }
}

/// Requests of a tracer that publishes contexts, which write files with the ids of their spans: in two
/// threads, and as tasks that take turns in one.
const TRACED: &str = r#"
import asyncio, os, sys, threading
from ddtrace.trace import tracer
os.chdir(sys.argv[1])
def write(name):
    fd = os.open('in-' + name, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    os.write(fd, b'x')
    os.close(fd)
def requests():
    for n in range(20):
        with tracer.trace('outer') as outer:
            write('%016x' % outer.span_id)
            with tracer.trace('inner') as inner:
                write('%016x' % inner.span_id)
            write('%016x' % outer.span_id)
        write('none')
sys.stdout.write('first\n')
sys.stdout.flush()
import select
with tracer.trace('waiting'):
    while not select.select([0], [], [], 0.005)[0]:
        os.access('.', os.F_OK)
sys.stdin.readline()
all = [threading.Thread(target=requests) for _ in range(2)]
for thread in all: thread.start()
for thread in all: thread.join()
"#;

/// Datadog's tracer for Python, which publishes the variable in a library that Python opens.
#[test]
fn spans_of_a_tracer_are_those_of_its_calls() {
    need_root!();
    need_contexts!();
    let python = need_python!();
    let scratch = Scratch::new();
    let mut running = Record::new(&scratch)
        .options(["--otel-context"])
        .interactive()
        .env("DD_TRACE_OTEL_CTX_ENABLED", "true")
        .env("DD_SERVICE", "shop")
        .env("DD_INSTRUMENTATION_TELEMETRY_ENABLED", "false")
        .env("DD_REMOTE_CONFIGURATION_ENABLED", "false")
        .env("DD_TRACE_STARTUP_LOGS", "false")
        .command([
            python.as_os_str(),
            "-c".as_ref(),
            TRACED.as_ref(),
            scratch.work().as_os_str(),
        ])
        .spawn();
    assert_eq!(running.line(), "first");
    let session = running.session();
    running.until("its contexts", || {
        let sql = "SELECT count(*) AS n FROM span_contexts WHERE state = 'span'";
        let rows = try_query(&session, sql).unwrap_or_default();
        rows.first().and_then(|row| row.int("n")) > Some(0)
    });
    running.say("\n");
    let recording = running.wait().must_exit(0);
    recording.complete();
    let rows = query(&recording.session, PLACED);
    for row in &rows {
        assert_eq!(row.text("said"), row.text("found"), "{row:?}");
        assert_eq!(row.text("by"), Some("context"), "{row:?}");
    }
    // Two threads with twenty requests of two spans, and the calls outside.
    assert_eq!(rows.len(), 2 * 20 * 2 + 1, "{rows:?}");
    let service = "SELECT count(*) FROM spans WHERE service = 'shop' AND source = 'context'";
    assert_eq!(recording.number(service), 2 * 20 * 2 + 1);
}
