//! Every address's numbers beside those of `fathom query` on the same session.

mod below;
mod history;
mod together;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use fathom_tests::environment::fathom;
use fathom_tests::page::{Page, Table};
use fathom_tests::session::{Row, query};
use fathom_tests::{Record, Recording, Scratch, need_program, need_root, workload};
use serde_json::Value;

/// Writes, reads, misses and fails, in several processes.
const SCRIPT: &str = "cd \"$0\"; for i in 1 2 3; do (
        dd if=/dev/zero of=f$i bs=4k count=50 conv=fsync
        dd if=f$i of=/dev/null bs=1k; dd if=f$i of=g$i bs=8k skip=3 seek=5
        cat nothing$i; mv f$i h$i ) & done 2>/dev/null; wait; sync h1";

fn recorded(scratch: &Scratch) -> (Recording, Page) {
    let recording = Record::named(scratch, "run")
        .options(["--counters", "task-clock,page-faults"])
        .command(["sh", "-c", SCRIPT])
        .command([scratch.work()])
        .run()
        .must_exit(0);
    let page = Page::serve(&recording.session);
    (recording, page)
}

/// Rows of a query as numbers and texts by name of a key.
fn by_key(rows: &[Row], key: &str, column: &str) -> BTreeMap<Option<String>, f64> {
    let name = |row: &Row| match row.value(key) {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    let value = |row: &Row| row.int(column).unwrap_or(0) as f64;
    rows.iter().map(|row| (name(row), value(row))).collect()
}

/// The same of an answer, added up.
fn summed(table: &Table, column: &str) -> BTreeMap<Option<String>, f64> {
    let mut sums = BTreeMap::new();
    for (key, value) in table.texts("key").iter().zip(table.numbers(column)) {
        *sums.entry(key.map(str::to_owned)).or_default() += value;
    }
    sums
}

/// Percent-encoded.
fn encoded(text: &str) -> String {
    text.bytes().map(|b| format!("%{b:02x}")).collect()
}

/// Filters, and the same in SQL.
const FILTERS: [(&str, &str); 14] = [
    ("{}", "true"),
    (
        r#"{"syscall":["read","write"]}"#,
        "syscall IN ('read', 'write')",
    ),
    (r#"{"class":["metadata"]}"#, "class = 'metadata'"),
    (r#"{"not_syscall":["read"]}"#, "syscall <> 'read'"),
    (r#"{"not_class":["data"]}"#, "class <> 'data'"),
    (r#"{"comm":["dd"]}"#, "comm = 'dd'"),
    (
        r#"{"not_comm":["dd","cat"]}"#,
        "comm IS NULL OR comm NOT IN ('dd', 'cat')",
    ),
    (r#"{"error":"any"}"#, "errno IS NOT NULL"),
    (r#"{"error":"none"}"#, "errno IS NULL"),
    (r#"{"error":["ENOENT"]}"#, "errno = 'ENOENT'"),
    (r#"{"dur":[2000,50000]}"#, "dur_ns BETWEEN 2000 AND 50000"),
    (
        r#"{"path":"/h1"}"#,
        "contains(path, '/h1') OR contains(path2, '/h1')",
    ),
    (
        r#"{"layer":["fs"],"comm":["dd"]}"#,
        "comm = 'dd' AND rid IN (SELECT rid FROM slices WHERE layer = 'fs')",
    ),
    (r#"{"syscall":[]}"#, "false"),
];

const SUMS: &str = "count(*) AS calls, count(errno) AS errors, sum(bytes) AS bytes,
    sum(bytes) FILTER (call_reads(syscall)) AS bytes_read,
    sum(bytes) FILTER (call_writes(syscall)) AS bytes_written, sum(dur_ns) AS time_ns";

#[test]
fn sums_are_those_of_sql() {
    need_root!();
    let scratch = Scratch::new();
    let (recording, page) = recorded(&scratch);
    let keys = [
        ("none", "NULL"),
        ("syscall", "syscall"),
        ("class", "class"),
        ("thread", "tid"),
        ("process", "pid"),
        ("file", "file_id"),
    ];
    let mut compared = 0;
    for (filter, sql) in FILTERS {
        let f = encoded(filter);
        for (by, key) in keys {
            let rows = recording.rows(&format!(
                "SELECT {key} AS key, {SUMS} FROM syscalls WHERE {sql} GROUP BY 1"
            ));
            let path = format!("/sessions/run.fathom/tiles?by={by}&top=1000&pixels=50&f={f}");
            let tiles = page.table(&path);
            // With more keys in a bucket than the pyramid keeps some are in the rest.
            let exact = tiles.meta["exact"] == true;
            assert!(exact || by != "none", "{by}");
            for column in ["calls", "errors", "bytes", "time_ns"] {
                let mut expected = by_key(&rows, "key", column);
                expected.retain(|_, _| !tiles.rows.is_empty());
                let mut got = summed(&tiles, column);
                // Files that were only touched through mappings have no calls.
                got.retain(|key, sum| *sum > 0.0 || expected.contains_key(key));
                if exact {
                    assert_eq!(got, expected, "{by} {column} {filter}");
                }
                let all = |sums: &BTreeMap<_, f64>| sums.values().sum::<f64>();
                assert_eq!(all(&got), all(&expected), "{by} {column} {filter}");
                compared += expected.len();
            }
            if by != "none" {
                let path = format!("/sessions/run.fathom/top?by={by}&limit=1000&f={f}");
                let top = page.table(&path);
                for column in [
                    "calls",
                    "errors",
                    "bytes",
                    "bytes_read",
                    "bytes_written",
                    "time_ns",
                ] {
                    let expected = by_key(&rows, "key", column);
                    let mut got = summed(&top, column);
                    got.retain(|key, sum| *sum > 0.0 || expected.contains_key(key));
                    assert_eq!(got, expected, "top {by} {column} {filter}");
                }
                let mut times = top.numbers("time_ns");
                if by == "file" {
                    // Files are in the order of time in calls and page faults.
                    let in_faults = top.numbers("fault_ns");
                    times
                        .iter_mut()
                        .zip(in_faults)
                        .for_each(|(all, of)| *all += of);
                }
                assert!(times.is_sorted_by(|a, b| a >= b), "{times:?}");
            }
        }
        let events = page.table(&format!("/sessions/run.fathom/events?limit=1&f={f}"));
        let total = recording.number(&format!("SELECT count(*) AS n FROM syscalls WHERE {sql}"));
        assert_eq!(
            events.meta["total"].as_f64(),
            Some(total as f64),
            "{filter}"
        );
        let threads = page.json(&format!("/sessions/run.fathom/threads?f={f}"));
        let counted: f64 = threads["threads"]
            .as_array()
            .unwrap()
            .iter()
            .map(|t| t["calls"].as_f64().unwrap())
            .sum();
        assert_eq!(counted, total as f64, "{filter}");
        let timeline = page.table(&format!("/sessions/run.fathom/timeline?f={f}"));
        assert_eq!(timeline.meta["mode"], "events");
        assert_eq!(timeline.rows.len() as i64, total, "{filter}");
    }
    assert!(compared > 200, "{compared}");
}

#[test]
fn windows_and_percentiles() {
    need_root!();
    let scratch = Scratch::new();
    let (recording, page) = recorded(&scratch);
    let description = page.json("/sessions/run.fathom");
    let start = description["started_at_ns"].as_i64().unwrap();
    let [first, end] = ["from", "to"].map(|n| description["span"][n].as_i64().unwrap());
    let [from, to] = [1, 2].map(|i| first + (end - first) * i / 3);
    let inside = format!("ts_ns >= {} AND ts_ns < {}", start + from, start + to);
    let window = format!("from={from}&to={to}");
    let rows = recording.rows(&format!(
        "SELECT syscall AS key, {SUMS}, max(dur_ns) AS max_ns,
             duration_percentiles(dur_ns)[1] AS p50_ns, duration_percentiles(dur_ns)[3] AS p99_ns
         FROM syscalls WHERE {inside} GROUP BY 1"
    ));
    for sort in ["time_ns", "calls", "bytes", "errors", "p99_ns", "max_ns"] {
        let path = format!("/sessions/run.fathom/top?by=syscall&limit=1000&sort={sort}&{window}");
        let top = page.table(&path);
        for column in [
            "calls",
            "time_ns",
            "p50_ns",
            "p99_ns",
            "max_ns",
            "bytes_written",
        ] {
            assert_eq!(
                summed(&top, column),
                by_key(&rows, "key", column),
                "{column}"
            );
        }
        let values = top.numbers(sort);
        assert!(values.is_sorted_by(|a, b| a >= b), "{sort} {values:?}");
    }
    // Calls that began before the window and last into it are in the timeline.
    let longest = &recording.rows(
        "SELECT rid, ts_ns, dur_ns, tid FROM syscalls WHERE syscall = 'fsync'
         ORDER BY dur_ns DESC LIMIT 1",
    )[0];
    let [rid, at, dur, tid] =
        ["rid", "ts_ns", "dur_ns", "tid"].map(|name| longest.int(name).unwrap());
    let middle = at - start + dur / 2;
    let path = format!(
        "/sessions/run.fathom/timeline?lanes={tid}&from={middle}&to={}",
        middle + 10
    );
    let timeline = page.table(&path);
    assert!(timeline.numbers("rid").contains(&(rid as f64)), "{path}");
    assert!(timeline.numbers("lane").iter().all(|l| *l == tid as f64));
    // Buckets are in the window that is told, and hold what they say.
    let tiles = page.table(&format!("/sessions/run.fathom/tiles?pixels=64&{window}"));
    let width = tiles.meta["bucket_ns"].as_i64().unwrap();
    let times = tiles.numbers("t");
    for (t, calls) in times.iter().zip(tiles.numbers("calls")) {
        let at = start + *t as i64;
        let counted = recording.number(&format!(
            "SELECT count(*) AS n FROM syscalls WHERE ts_ns >= {at} AND ts_ns < {}",
            at + width
        ));
        assert_eq!(calls, counted as f64);
    }
    assert!(times.len() > 5);
}

#[test]
fn pages_of_events_are_the_rows_in_order() {
    need_root!();
    let scratch = Scratch::new();
    let (recording, page) = recorded(&scratch);
    let start = page.json("/sessions/run.fathom")["started_at_ns"]
        .as_i64()
        .unwrap();
    let ids = |table: &Table| table.numbers("rid");
    for (sort, order) in [
        ("ts_ns", "ts_ns, rid"),
        ("-ts_ns", "ts_ns DESC, rid DESC"),
        ("-dur_ns", "dur_ns DESC NULLS LAST, rid DESC"),
        ("path", "path NULLS LAST, rid"),
    ] {
        for (filter, sql) in [("{}", "true"), (r#"{"comm":["dd"]}"#, "comm = 'dd'")] {
            for offset in [0, 137, 700] {
                let f = encoded(filter);
                let table = page.table(&format!(
                    "/sessions/run.fathom/events?sort={sort}&offset={offset}&limit=50&f={f}"
                ));
                let expected: Vec<f64> = recording
                    .rows(&format!(
                        "SELECT rid FROM syscalls WHERE {sql} ORDER BY {order} LIMIT 50 OFFSET {offset}"
                    ))
                    .iter()
                    .map(|row| row.int("rid").unwrap() as f64)
                    .collect();
                assert_eq!(ids(&table), expected, "{sort} {offset} {filter}");
            }
        }
    }
    let table = page.table("/sessions/run.fathom/events?limit=3&columns=ts_ns,syscall,flags");
    let rows = recording.rows("SELECT * FROM syscalls ORDER BY ts_ns, rid LIMIT 3");
    for (got, expected) in table.rows.iter().zip(&rows) {
        let at = expected.int("ts_ns").unwrap() - start;
        assert_eq!(got["ts_ns"].as_f64(), Some(at as f64));
        assert_eq!(got["syscall"].as_str(), expected.text("syscall"));
        assert_eq!(got.len(), 2 + usize::from(expected.text("flags").is_some()));
    }
}

#[test]
fn findings_schema_and_description() {
    need_root!();
    let scratch = Scratch::new();
    let (recording, page) = recorded(&scratch);
    let output = std::process::Command::new(fathom_tests::environment::fathom())
        .arg("diagnose")
        .arg(&recording.session)
        .args(["--format", "json"])
        .output()
        .unwrap();
    let expected: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(page.json("/sessions/run.fathom/findings"), expected);
    // As often as it is asked for.
    for _ in 0..2 {
        let answer = page.sql("run.fathom", "SELECT rule FROM findings");
        let told = expected["findings"].as_array().unwrap();
        assert_eq!(answer.table().texts("rule").len(), told.len());
    }
    let schema = page.json("/sessions/run.fathom/schema");
    for relation in schema.as_array().unwrap() {
        let name = relation["name"].as_str().unwrap();
        let rows = query(&recording.session, &format!("DESCRIBE {name}"));
        let names: Vec<_> = rows.iter().filter_map(|r| r.text("column_name")).collect();
        let told = relation["columns"].as_array().unwrap();
        let told: Vec<_> = told.iter().map(|c| c["name"].as_str().unwrap()).collect();
        assert_eq!(told, names, "{name}");
    }
    let description = page.json("/sessions/run.fathom");
    let totals = recording.complete();
    assert_eq!(description["seen"].as_u64(), Some(totals.seen as u64));
    for table in description["tables"].as_array().unwrap() {
        let name = table["name"].as_str().unwrap();
        // The files of table block contain most bios.
        if name == "bios" {
            continue;
        }
        let rows = recording.number(&format!("SELECT count(*) AS n FROM {name}"));
        assert!(table["rows"].as_i64().unwrap() >= rows, "{name}");
    }
    for layer in description["layers"].as_array().unwrap() {
        let has_reason = layer["reason"] != "";
        assert_eq!(layer["recorded"] == false, has_reason, "{layer}");
    }
}

/// What the page compares is what the command line does, but for the names.
#[test]
fn comparison_as_on_the_command_line() {
    need_root!();
    let scratch = Scratch::new();
    let sessions = [("before", "10"), ("after", "20")].map(|(name, count)| {
        let recording = Record::named(&scratch, name)
            .command(["dd", "if=/dev/zero", "bs=4k", "status=none"])
            .command([format!("of={}/f", scratch.work().display())])
            .command([format!("count={count}")])
            .run()
            .must_exit(0);
        recording.complete();
        recording.session
    });
    let output = std::process::Command::new(fathom_tests::environment::fathom())
        .current_dir(scratch.root())
        .args(["diff", "--format", "json"])
        .args(sessions.iter().map(|path| path.file_name().unwrap()))
        .output()
        .unwrap();
    let expected: Value = serde_json::from_slice(&output.stdout).unwrap();
    let page = Page::serve(scratch.root());
    let got = page.json("/compare?before=before.fathom&after=after.fathom");
    alike(&got, &expected, "");
}

/// Equal but for the last digits of numbers, which are added up in any order.
fn alike(a: &Value, b: &Value, place: &str) {
    match (a, b) {
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (i, (a, b)) in a.iter().zip(b).enumerate() {
                alike(a, b, &format!("{place}/{i}"));
            }
        }
        (Value::Object(a), Value::Object(b)) if a.len() == b.len() => {
            for (name, a) in a {
                alike(a, &b[name], &format!("{place}/{name}"));
            }
        }
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            assert!(
                (a - b).abs() <= 1e-9 * a.abs().max(b.abs()),
                "{place}: {a} {b}"
            );
        }
        _ => assert_eq!(a, b, "{place}"),
    }
}

/// More accesses than are sent one by one: written in order, read here and there.
#[test]
fn sequential_of_many_accesses() {
    need_root!();
    need_program!("python3");
    let scratch = Scratch::new();
    let script = "import os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
for i in range(15000): os.write(fd, b'12345678')
for i in range(10001): os.pread(fd, 8, 8 * (i + i % 2 * 4000))
other = os.open(sys.argv[1] + '2', os.O_RDWR | os.O_CREAT)
os.write(other, bytes(20))
os.pread(other, 9, 0)
import threading
thread = threading.Thread(target=lambda: os.pread(other, 9, 0))
thread.start()
thread.join()
";
    let recording = Record::named(&scratch, "run")
        .command(["python3", "-c", script])
        .command([scratch.work().join("many")])
        .run()
        .must_exit(0);
    let file = |name: &str| {
        recording.number(&format!(
            "SELECT file_id AS n FROM files WHERE path = '{}'",
            scratch.work().join(name).display()
        ))
    };
    let page = Page::serve(&recording.session);
    let offsets = format!("/sessions/run.fathom/offsets?file={}", file("many"));
    let quick = page.table(&format!("{offsets}&unique=0"));
    assert_eq!(quick.meta["mode"], "grid");
    assert!(quick.meta["read_sequential"].is_null());
    let whole = page.table(&offsets);
    assert_eq!(whole.meta["calls"].as_f64(), Some(25_001.0));
    assert_eq!(whole.meta["written_sequential"].as_f64(), Some(1.0));
    assert_eq!(whole.meta["read_sequential"].as_f64(), Some(0.0));
    assert_eq!(whole.sum("writes"), 15_000.0);
    assert_eq!(whole.sum("reads"), 10_001.0);
    assert_eq!(whole.meta["threads"].as_f64(), Some(1.0));
    // One access of each kind by a thread has no pattern; two threads read.
    let other = page.table(&format!(
        "/sessions/run.fathom/offsets?file={}",
        file("many2")
    ));
    assert!(other.meta["read_sequential"].is_null());
    assert_eq!(other.meta["threads"].as_f64(), Some(2.0));
}
