//! Spans of a program, imported into its recording: the calls in each span, compared with what the
//! program did in it.

use std::fs;
use std::path::Path;
use std::process::Command;

use fathom_tests::environment::{fathom, must_run};
use fathom_tests::session::{meta, query};
use fathom_tests::{Record, Scratch, need_program, need_root};

/// Two threads with nested spans, which write files that have the id of the innermost span in their
/// names, and the spans as lines of OTLP. With argument `none` no span has a thread.
const TRACED: &str = r#"
import json, os, sys, threading, time
out, threads = sys.argv[1], sys.argv[2] == 'threads'
lines = open(out, 'w')
lock = threading.Lock()
def span(thread, id, parent, name, work, failed=False):
    start = time.time_ns()
    work()
    end = time.time_ns()
    attributes = [{'key': 'thread.id', 'value': {'intValue': str(threading.get_native_id())}}] if threads else []
    made = {'traceId': '%032x' % (thread + 1), 'spanId': id, 'parentSpanId': parent, 'name': name, 'kind': 2,
            'startTimeUnixNano': str(start), 'endTimeUnixNano': str(end), 'attributes': attributes,
            'status': {'code': 2} if failed else {}}
    resource = {'attributes': [{'key': 'service.name', 'value': {'stringValue': 'test'}},
                               {'key': 'process.pid', 'value': {'intValue': str(os.getpid())}}]}
    with lock:
        lines.write(json.dumps({'resourceSpans': [{'resource': resource, 'scopeSpans': [{'spans': [made]}]}]}) + '\n')
def write(id, size):
    fd = os.open('in-' + id, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    os.write(fd, b'x' * size)
    os.fsync(fd)
    os.close(fd)
def requests(thread):
    for n in range(10):
        outer, inner = '%08x%08x' % (thread + 1, 2 * n + 1), '%08x%08x' % (thread + 1, 2 * n + 2)
        def handle():
            write(outer, 100)
            span(thread, inner, outer, 'store', lambda: write(inner, 5000))
            write(outer, 200)
        span(thread, outer, '', 'request', handle, n == 9)
        write('none', 1)
if threads:
    all = [threading.Thread(target=requests, args=[i]) for i in range(2)]
    for thread in all: thread.start()
    for thread in all: thread.join()
else:
    requests(0)
lines.close()
"#;

/// Records the program and imports its spans; returns the session.
fn traced(scratch: &Scratch, mode: &str) -> std::path::PathBuf {
    let log = scratch.root().join("spans.jsonl");
    let script = format!("import os\nos.chdir({:?})\n{TRACED}", scratch.work());
    let recording = Record::new(scratch)
        .command(["python3", "-c", &script])
        .command([log.as_os_str(), mode.as_ref()])
        .run()
        .must_exit(0);
    recording.complete();
    for _ in 0..2 {
        import(&log, &recording.session);
    }
    recording.session
}

fn import(log: &Path, session: &Path) {
    let args = [
        "import".as_ref(),
        "--into".as_ref(),
        session.as_os_str(),
        log.as_os_str(),
    ];
    must_run(fathom(), args);
}

/// Calls on the files of spans by the span that their file names and the span that they are in.
const PLACED: &str = "SELECT regexp_extract(path, 'in-(.*)$', 1) AS said, \
     coalesce(span_id, 'none') AS found, count(*) AS calls FROM span_calls \
     WHERE path LIKE '%/in-%' GROUP BY ALL";

#[test]
fn calls_are_in_the_spans_that_made_them() {
    need_root!();
    need_program!("python3");
    let scratch = Scratch::new();
    let session = traced(&scratch, "threads");
    let rows = query(&session, PLACED);
    // Two threads with ten requests and stores, and the calls outside.
    assert_eq!(rows.len(), 41);
    for row in &rows {
        assert_eq!(row.text("said"), row.text("found"), "{row:?}");
    }
    let sums = query(&session, "FROM by_span_name");
    let [request, store] = &sums[..] else {
        panic!("{sums:?}");
    };
    assert_eq!(
        (request.text("name"), store.text("name")),
        (Some("request"), Some("store"))
    );
    assert_eq!(request.text("service"), Some("test"));
    assert_eq!(request.text("kind"), Some("server"));
    assert_eq!(
        (request.int("spans"), request.int("errors")),
        (Some(20), Some(2))
    );
    assert_eq!(
        (store.int("spans"), store.int("errors")),
        (Some(20), Some(0))
    );
    // open, write, fsync, close; and what the interpreter does.
    assert!(store.int("calls") >= Some(80), "{store:?}");
    assert_eq!(store.int("bytes"), Some(20 * 5000));
    assert!(store.int("calls_ns") < store.int("total_ns"), "{store:?}");
    assert!(
        store.int("device_bytes") > Some(0) || on_memory(&session),
        "{store:?}"
    );
    let layers = query(
        &session,
        "SELECT sum(self_ns)::BIGINT AS ns, sum(share) AS share FROM by_span_layer WHERE name = 'store'",
    );
    let time = query(
        &session,
        "SELECT sum(dur_ns)::BIGINT AS ns FROM span_calls WHERE span_name = 'store'",
    );
    assert_eq!(layers[0].int("ns"), time[0].int("ns"));
    assert_eq!(meta(&session)["rows"]["spans"], 40);
    must_run(fathom(), ["report".as_ref(), session.as_os_str()]);
    let repaired = must_run(fathom(), ["repair".as_ref(), session.as_os_str()]);
    let repaired = String::from_utf8_lossy(&repaired);
    assert!(
        repaired.is_empty() || repaired.contains("nothing to repair"),
        "{repaired}"
    );
}

/// Whether no block device took the program's writes.
fn on_memory(session: &Path) -> bool {
    let sql =
        "SELECT 1 AS one FROM files WHERE path LIKE '%/in-%' AND fs_type IN ('tmpfs', 'overlay')";
    !query(session, sql).is_empty()
}

/// Without threads, calls are in a span while it is the only one.
#[test]
fn spans_without_threads_have_only_calls_that_are_certain() {
    need_root!();
    need_program!("python3");
    let scratch = Scratch::new();
    let session = traced(&scratch, "none");
    let rows = query(&session, PLACED);
    let calls = |said_in_span: bool, found: bool| -> i64 {
        let is = |row: &&fathom_tests::session::Row| {
            (row.text("said") != Some("none")) == said_in_span
                && (row.text("found") != Some("none")) == found
        };
        rows.iter()
            .filter(is)
            .filter_map(|row| row.int("calls"))
            .sum()
    };
    for row in &rows {
        let found = row.text("found");
        assert!(
            found == Some("none") || found == row.text("said"),
            "{row:?}"
        );
    }
    // Four calls each: on the files of the outer spans twice, of the inner ones none is certain.
    assert_eq!(calls(true, true), 10 * 8);
    assert_eq!(calls(true, false), 10 * 4);
    assert_eq!((calls(false, false), calls(false, true)), (10 * 4, 0));
    let tids = query(
        &session,
        "SELECT count(tid) AS n, count(pid) AS pids FROM spans",
    );
    assert_eq!((tids[0].int("n"), tids[0].int("pids")), (Some(0), Some(20)));
}

#[test]
fn an_import_that_fails_says_why() {
    need_root!();
    let scratch = Scratch::new();
    let recording = Record::new(&scratch).command(["true"]).run().must_exit(0);
    let log = scratch.root().join("spans.json");
    let old = r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"25bb110cdde4f01f02eb51f567907571",
        "spanId":"d436a762ad96283c","startTimeUnixNano":"1000","endTimeUnixNano":"2000"}]}]}]}"#;
    for (text, expected) in [
        ("no spans", "is no file of OTLP spans"),
        (old, "outside of the time of the recording"),
    ] {
        fs::write(&log, text).unwrap();
        let output = Command::new(fathom())
            .args(["import".as_ref(), log.as_os_str(), "--into".as_ref()])
            .arg(&recording.session)
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains(expected), "{errors}");
    }
    // Without a session there is a hint.
    let output = Command::new(fathom())
        .arg("import")
        .arg(&log)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("--into"), "{errors}");
    assert!(query(&recording.session, "SELECT 1 AS one FROM spans").is_empty());
}
