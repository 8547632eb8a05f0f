//! Spans of OpenTelemetry, as its SDKs write them, into sessions.
//!
//! `otlp/python.pb` is of the Python SDK 1.45.1: two threads with spans of the program and of the
//! instrumentation of sqlite3; attribute thread.id has the kernel's id. `otlp/javascript.jsonl` is of the
//! JavaScript SDK (otlp-transformer 0.223.1), one request on each line.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fathom_import::{ImportError, SpanCounts, SpanOutcome, import_spans};
use fathom_model::meta::{Clock, SessionMeta};
use fathom_model::tables::{SPANS, SpanRow, SpanRows};
use fathom_session::{Session, SessionWriter, WriterOptions};
use fathom_testkit::sample::{self, START};

/// Just before the first span of the file.
const PYTHON_AT: i64 = 1_795_648_145_635_000_000;
const JAVASCRIPT_AT: i64 = 1_795_648_017_441_000_000;
const SECOND: i64 = 1_000_000_000;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/otlp")
        .join(name)
}

/// A session that was recorded for a second from `at`, a time of the wall clock, with these processes
/// and threads.
fn session(dir: &Path, at: i64, threads: &[(i32, i32)]) -> PathBuf {
    let path = dir.join("s.fathom");
    let clock = Clock {
        start_monotonic_ns: START,
        start_realtime_ns: at,
        end_monotonic_ns: Some(START + SECOND),
        end_realtime_ns: Some(at + SECOND),
        wall_error_ns: None,
    };
    let meta = SessionMeta {
        clock,
        ..fathom_testkit::meta()
    };
    let writer = SessionWriter::create(&path, meta.clone(), WriterOptions::default()).unwrap();
    let lives: Vec<_> = threads
        .iter()
        .map(|(pid, tid)| (*pid, *tid, "t", START - 5, None))
        .collect();
    writer.append(sample::lives(&lives)).unwrap();
    writer.finish(meta).unwrap();
    path
}

fn import(files: &[PathBuf], session: &Path) -> Result<SpanOutcome, ImportError> {
    import_spans(files, session, &mut |_, _| {})
}

/// A row with its texts.
#[derive(Debug)]
struct Row {
    row: SpanRow,
    texts: BTreeMap<&'static str, String>,
}

/// The rows by the id of the span.
fn rows(session: &Path) -> BTreeMap<String, Row> {
    let session = Session::open(session).unwrap();
    assert!(session.problems().is_empty(), "{:?}", session.problems());
    let mut found = BTreeMap::new();
    for batch in session.batches(&SPANS, None) {
        let (rows, strings) = SpanRows::from_batch(batch.unwrap()).unwrap();
        for i in 0..rows.len() {
            let text = |id| String::from_utf8(strings.get(id).to_vec()).unwrap();
            let texts = BTreeMap::from([
                ("trace", text(rows.trace_id[i])),
                ("parent", text(rows.parent_span_id[i])),
                ("service", text(rows.service[i])),
                ("name", text(rows.name[i])),
                ("kind", text(rows.kind[i])),
                ("status", text(rows.status[i])),
                ("message", text(rows.status_message[i])),
                ("attributes", text(rows.attributes[i])),
                ("source", text(rows.source[i])),
            ]);
            let row = SpanRow {
                ts_ns: rows.ts_ns[i],
                dur_ns: rows.dur_ns[i],
                pid: rows.pid[i],
                tid: rows.tid[i],
                ..SpanRow::default()
            };
            let id = text(rows.span_id[i]);
            assert!(found.insert(id, Row { row, texts }).is_none(), "twice");
        }
    }
    found
}

fn texts(row: &Row, names: &[&str]) -> Vec<String> {
    names.iter().map(|name| row.texts[name].clone()).collect()
}

#[test]
fn protobuf_of_the_python_sdk() {
    let dir = tempfile::tempdir().unwrap();
    let path = session(dir.path(), PYTHON_AT, &[(18917, 18921), (18917, 18922)]);
    let outcome = import(&[file("python.pb")], &path).unwrap();
    let all = SpanCounts {
        read: 14,
        stored: 14,
        ..SpanCounts::default()
    };
    assert_eq!((outcome.counts, outcome.rows), (all, 14));
    let rows = rows(&path);
    let order = &rows["9d01a937671021d3"];
    assert_eq!(
        order.row.ts_ns,
        START + 1_795_648_145_662_236_637 - PYTHON_AT
    );
    assert_eq!(order.row.dur_ns, 8_323_605);
    assert_eq!((order.row.pid, order.row.tid), (18917, 18922));
    assert_eq!(
        texts(
            order,
            &[
                "service", "name", "kind", "status", "message", "parent", "source"
            ]
        ),
        [
            "shop",
            "order",
            "server",
            "error",
            "out of stock",
            "",
            "otlp"
        ]
    );
    let insert = &rows["0307a4911a9f6fdb"];
    assert_eq!(
        texts(insert, &["name", "kind", "status", "parent"]),
        ["INSERT", "client", "unset", "9d01a937671021d3"]
    );
    assert_eq!(insert.texts["trace"], order.texts["trace"]);
    assert_eq!(insert.texts["trace"].len(), 32);
    let attributes: serde_json::Value = serde_json::from_str(&insert.texts["attributes"]).unwrap();
    assert_eq!(attributes["db.statement"], "INSERT INTO item VALUES (?)");
    assert_eq!(attributes["thread.id"], 18922);
}

#[test]
fn json_lines_of_the_javascript_sdk() {
    let dir = tempfile::tempdir().unwrap();
    let path = session(dir.path(), JAVASCRIPT_AT, &[(15251, 15251)]);
    let outcome = import(&[file("javascript.jsonl")], &path).unwrap();
    assert_eq!((outcome.counts.stored, outcome.bad_lines), (6, 0));
    let rows = rows(&path);
    let save = &rows["fb6cd1bfcec79501"];
    assert_eq!(save.row.ts_ns, START + 21_000_000);
    assert_eq!(save.row.dur_ns, 812_680);
    assert_eq!((save.row.pid, save.row.tid), (15251, 15251));
    assert_eq!(
        texts(save, &["service", "name", "kind", "status", "message"]),
        ["notes", "save", "server", "error", "disk full"]
    );
    let attributes: serde_json::Value = serde_json::from_str(&save.texts["attributes"]).unwrap();
    assert_eq!(
        attributes,
        serde_json::json!({"thread.id": 15251, "note": 2, "share": 0.5, "tags": ["a", "b"]})
    );
    assert_eq!(rows["ef9f29de4bd52210"].texts["parent"], "fb6cd1bfcec79501");
}

/// The same spans in each form that a file may have.
#[test]
fn all_forms_of_files() {
    let dir = tempfile::tempdir().unwrap();
    let path = session(dir.path(), JAVASCRIPT_AT, &[]);
    let lines = std::fs::read_to_string(file("javascript.jsonl")).unwrap();
    let values: Vec<serde_json::Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let mut one = values[0].clone();
    for value in &values[1..] {
        let more = value["resourceSpans"][0].clone();
        one["resourceSpans"].as_array_mut().unwrap().push(more);
    }
    // As the Collector writes numbers of 64 bits.
    let quoted = lines.replace("\"intValue\":15251", "\"intValue\":\"15251\"");
    assert_ne!(quoted, lines);
    let protobuf = std::fs::read(file("python.pb")).unwrap();
    let mut framed = Vec::new();
    for _ in 0..2 {
        framed.extend_from_slice(&u32::try_from(protobuf.len()).unwrap().to_be_bytes());
        framed.extend_from_slice(&protobuf);
    }
    let forms: [(Vec<u8>, u64); 5] = [
        (one.to_string().into_bytes(), 6),
        (serde_json::to_vec_pretty(&one).unwrap(), 6),
        (format!("\n\n{quoted}\n").into_bytes(), 6),
        (lines.replace('\n', "\r\n\r\n").into_bytes(), 6),
        (framed, 28),
    ];
    for (i, (bytes, read)) in forms.iter().enumerate() {
        let file = dir.path().join(format!("form-{i}"));
        std::fs::write(&file, bytes).unwrap();
        match import(&[file], &path) {
            Ok(outcome) => {
                assert_eq!((outcome.counts.read, outcome.counts.stored), (*read, 6));
                assert_eq!(outcome.rows, 6, "the same spans are replaced");
            }
            // The spans of the other file are of another time.
            Err(ImportError::NoSpans(counts)) => {
                assert_eq!((counts.read, counts.outside), (*read, *read));
                assert_eq!(i, 4);
            }
            Err(error) => panic!("form {i}: {error}"),
        }
    }
    assert_eq!(rows(&path).len(), 6);
}

#[test]
fn the_same_spans_twice_are_rows_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = session(dir.path(), PYTHON_AT, &[(18917, 18922)]);
    let python = file("python.pb");
    let outcome = import(&[python.clone(), python.clone()], &path).unwrap();
    assert_eq!((outcome.counts.stored, outcome.rows), (28, 14));
    let outcome = import(&[python], &path).unwrap();
    assert_eq!((outcome.counts.stored, outcome.rows), (14, 14));
    assert_eq!(rows(&path).len(), 14);
    let session = Session::open(&path).unwrap();
    assert_eq!(session.meta().rows["spans"], 14);
    assert_eq!(session.part_infos("spans").len(), 1);
}

/// Only threads that the recording knows are believed.
#[test]
fn threads_that_the_process_did_not_have() {
    let dir = tempfile::tempdir().unwrap();
    let path = session(dir.path(), PYTHON_AT, &[(18917, 18922), (7, 18921)]);
    let outcome = import(&[file("python.pb")], &path).unwrap();
    assert_eq!(outcome.counts.other_threads, 7);
    let rows = rows(&path);
    let order = |id: &str| (rows[id].row.pid, rows[id].row.tid);
    assert_eq!(order("9d01a937671021d3"), (18917, 18922));
    assert_eq!(order("446e757785b08ebd"), (18917, i32::MIN));
}

#[test]
fn spans_outside_of_the_recording() {
    let dir = tempfile::tempdir().unwrap();
    // The recording begins after the first order and before the second one of each thread.
    let path = session(dir.path(), PYTHON_AT + 20_000_000, &[]);
    let outcome = import(&[file("python.pb")], &path).unwrap();
    assert_eq!((outcome.counts.outside, outcome.counts.stored), (8, 6));
    let before = std::fs::read(path.join("session.json")).unwrap();
    let error = import(&[file("javascript.jsonl")], &path).unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("no span is added: 6 of 6 are outside"),
        "{text}"
    );
    assert_eq!(std::fs::read(path.join("session.json")).unwrap(), before);
    assert_eq!(rows(&path).len(), 6);
}

/// The wall clock of a recording of 1,000 s that went 50 ms fast.
#[test]
fn drift_of_the_wall_clock_is_spread() {
    let clock = Clock {
        start_monotonic_ns: START,
        start_realtime_ns: PYTHON_AT,
        end_monotonic_ns: Some(START + 1000 * SECOND),
        end_realtime_ns: Some(PYTHON_AT + 1000 * SECOND + 50_000_000),
        wall_error_ns: None,
    };
    assert_eq!(clock.set_ns(), 50_000_000);
    assert_eq!(clock.monotonic_of(PYTHON_AT), START);
    for at in (-5..1005).map(|second| START + second * SECOND) {
        let back = clock.monotonic_of(clock.realtime_of(at));
        assert!((back - at).abs() <= 1, "{at} {back}");
    }
    assert_eq!(clock.monotonic_of(PYTHON_AT - 10), START - 10);
    let middle = PYTHON_AT + 500 * SECOND + 25_000_000;
    assert_eq!(clock.monotonic_of(middle), START + 500 * SECOND);
    let end = PYTHON_AT + 1000 * SECOND + 50_000_000;
    assert_eq!(clock.monotonic_of(end), START + 1000 * SECOND);
    assert_eq!(clock.monotonic_of(end + 10), START + 1000 * SECOND + 10);
    assert_eq!(Clock::default().monotonic_of(i64::MAX), i64::MAX);
}

/// A span as JSON with some members replaced.
fn span(replaced: serde_json::Value) -> String {
    let mut span = serde_json::json!({
        "traceId": "25bb110cdde4f01f02eb51f567907571", "spanId": "d436a762ad96283c", "name": "n",
        "startTimeUnixNano": (PYTHON_AT + 1000).to_string(),
        "endTimeUnixNano": (PYTHON_AT + 2000).to_string(),
    });
    for (key, value) in replaced.as_object().unwrap() {
        span[key] = value.clone();
    }
    serde_json::json!({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).to_string()
}

#[test]
fn spans_with_invalid_data_are_counted() {
    let dir = tempfile::tempdir().unwrap();
    let path = session(dir.path(), PYTHON_AT, &[]);
    let log = dir.path().join("spans.jsonl");
    let invalid = [
        serde_json::json!({"traceId": "00000000000000000000000000000000"}),
        serde_json::json!({"traceId": "25bb"}),
        serde_json::json!({"spanId": ""}),
        serde_json::json!({"spanId": null}),
        serde_json::json!({"startTimeUnixNano": "0"}),
        serde_json::json!({"startTimeUnixNano": u64::MAX.to_string()}),
        serde_json::json!({"endTimeUnixNano": (PYTHON_AT + 999).to_string()}),
    ];
    let bad = [
        "{".to_owned(),
        "[]".to_owned(),
        span(serde_json::json!({"spanId": "no hexadecimal"})),
        span(serde_json::json!({"startTimeUnixNano": "-1"})),
        span(serde_json::json!({"attributes": [{"key": "k", "value": {"otherValue": 1}}]})),
        span(serde_json::json!({"name": "\u{1b}[2J"})) + "\u{1b}[2J",
    ];
    let invalid_lines: Vec<String> = invalid.into_iter().map(span).collect();
    let good = span(serde_json::json!({"status": {}, "attributes": [
        {"key": "none", "value": {}},
        {"key": "wide", "value": {"intValue": "9007199254740993"}},
        {"key": "thread.id", "value": {"stringValue": "worker-1"}},
    ]}));
    let lines = [&[good][..], &invalid_lines, &bad].concat().join("\n");
    std::fs::write(&log, lines).unwrap();
    let outcome = import(&[log], &path).unwrap();
    assert_eq!(
        (
            outcome.counts.stored,
            outcome.counts.invalid,
            outcome.bad_lines
        ),
        (1, 7, 6)
    );
    assert_eq!(outcome.counts.other_threads, 1);
    assert_eq!(outcome.bad_examples.len(), 5);
    let shown = outcome.bad_examples.concat();
    assert!(!shown.contains('\u{1b}'), "{shown}");
    let rows = rows(&path);
    assert_eq!(
        rows["d436a762ad96283c"].texts["attributes"],
        r#"{"none":null,"thread.id":"worker-1","wide":9007199254740993}"#
    );
}

#[test]
fn large_texts_are_cut() {
    let dir = tempfile::tempdir().unwrap();
    let path = session(dir.path(), PYTHON_AT, &[]);
    let log = dir.path().join("spans.json");
    let value = |text: String| serde_json::json!({"stringValue": text});
    let large = span(serde_json::json!({
        "name": "é".repeat(5000),
        "attributes": [
            {"key": "small", "value": value("x".into())},
            {"key": "large", "value": value("x".repeat(70_000))},
        ],
    }));
    std::fs::write(&log, large).unwrap();
    let outcome = import(&[log], &path).unwrap();
    assert_eq!(outcome.counts.cut, 1);
    let rows = rows(&path);
    let row = &rows["d436a762ad96283c"];
    assert_eq!(row.texts["name"], "é".repeat(2048));
    assert_eq!(row.texts["attributes"], r#"{"small":"x"}"#);
}

/// Files that are no spans leave the session as it was.
#[test]
fn files_that_are_no_spans() {
    let dir = tempfile::tempdir().unwrap();
    let path = session(dir.path(), PYTHON_AT, &[]);
    let before = listing(&path);
    let deep = format!(
        r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{{"attributes":[{{"key":"k","value":{}}}]}}]}}]}}]}}"#,
        r#"{"arrayValue":{"values":["#.repeat(10_000)
    );
    let protobuf = std::fs::read(file("python.pb")).unwrap();
    let mut cut = vec![0, 0, 16, 0];
    cut.extend_from_slice(&protobuf);
    let large = [3u8, 255, 255, 255];
    let too_large = [4u8, 0, 0, 1];
    let cases: [(&[u8], &str); 11] = [
        (b"", "it is empty"),
        (b"\n \n", "buffer underflow"),
        (b"GET / HTTP/1.1", "neither JSON nor protobuf"),
        (b"{\"resourceSpans\": [", "line 1"),
        (b"{\n  \"resourceSpans\": [7]\n}", "line 1: invalid type"),
        (b"{\"resourceLogs\":[]}", "the files contain none"),
        (deep.as_bytes(), "recursion limit"),
        (&protobuf[..1000], "buffer underflow"),
        (&cut, "its last request is cut"),
        (&large, "its last request is cut"),
        (&too_large, "more than 64 MiB"),
    ];
    for (bytes, expected) in cases {
        let file = dir.path().join("file");
        std::fs::write(&file, bytes).unwrap();
        let error = import(&[file], &path).unwrap_err().to_string();
        let shown = String::from_utf8_lossy(bytes.get(..30).unwrap_or(bytes));
        assert!(error.contains(expected), "{shown:?}: {error}");
        assert_eq!(listing(&path), before, "{shown:?}");
    }
    let missing = import(&[dir.path().join("none")], &path).unwrap_err();
    assert!(missing.to_string().starts_with("cannot read"), "{missing}");
    // After a good file, too.
    let file = dir.path().join("file");
    let error = import(&[self::file("python.pb"), file], &path).unwrap_err();
    assert!(error.to_string().contains("64 MiB"), "{error}");
    assert_eq!(listing(&path), before);
}

/// Damaged files: an error or an import, and never a damaged session.
#[test]
fn damaged_files() {
    let dir = tempfile::tempdir().unwrap();
    let path = session(dir.path(), PYTHON_AT, &[(18917, 18922)]);
    let mut random = fathom_testkit::Random::new(17);
    let damaged = dir.path().join("damaged");
    let (mut imported, mut refused) = (0, 0);
    for name in ["python.pb", "javascript.jsonl"] {
        let bytes = std::fs::read(file(name)).unwrap();
        for _ in 0..60 {
            let mut bytes = bytes.clone();
            for _ in 0..random.below(4) + 1 {
                let at = random.below(bytes.len() as u64) as usize;
                match random.below(3) {
                    0 => bytes[at] = random.below(256) as u8,
                    1 => bytes.truncate(at.max(1)),
                    _ => {
                        let more = bytes[at..].to_vec();
                        bytes.extend_from_slice(&more);
                    }
                }
            }
            std::fs::write(&damaged, bytes).unwrap();
            match import(std::slice::from_ref(&damaged), &path) {
                Ok(_) => imported += 1,
                Err(_) => refused += 1,
            }
        }
    }
    assert!(imported > 5 && refused > 5, "{imported} {refused}");
    let session = Session::open(&path).unwrap();
    assert!(session.problems().is_empty(), "{:?}", session.problems());
    assert!(session.rows("spans") >= 10);
}

/// Files of a session with their sizes.
fn listing(dir: &Path) -> Vec<(PathBuf, u64)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
        if entry.path().is_dir() {
            found.extend(listing(&entry.path()));
        } else {
            found.push((entry.path(), entry.metadata().unwrap().len()));
        }
    }
    found.sort();
    found
}

#[test]
fn sessions_that_cannot_take_rows() {
    let dir = tempfile::tempdir().unwrap();
    let spans = [file("python.pb")];
    let meta = fathom_testkit::meta();
    let path = dir.path().join("live.fathom");
    let writer = SessionWriter::create(&path, meta, WriterOptions::default()).unwrap();
    let error = import(&spans, &path).unwrap_err().to_string();
    assert!(
        error.contains("is being recorded by another process"),
        "{error}"
    );
    drop(writer);
    let error = import(&spans, &path).unwrap_err().to_string();
    assert!(error.contains("its recorder has not closed it"), "{error}");
    let error = import(&spans, dir.path()).unwrap_err().to_string();
    assert!(error.contains("is not a session"), "{error}");
}

/// A session that is older than the table has no folder for it.
#[test]
fn sessions_without_the_table() {
    let dir = tempfile::tempdir().unwrap();
    let path = session(dir.path(), PYTHON_AT, &[]);
    std::fs::remove_dir_all(path.join("spans")).unwrap();
    let before = Session::open(&path).unwrap();
    assert!(before.problems().is_empty(), "{:?}", before.problems());
    assert_eq!(import(&[file("python.pb")], &path).unwrap().rows, 14);
    assert_eq!(rows(&path).len(), 14);
}
