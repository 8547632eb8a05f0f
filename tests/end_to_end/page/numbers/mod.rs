//! Every address's numbers beside those of `fathom query` on the same session.

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
                let times = top.numbers("time_ns");
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
fn visits_below_calls_are_those_of_the_table() {
    need_root!();
    let scratch = Scratch::new();
    let (recording, page) = recorded(&scratch);
    let start = page.json("/sessions/run.fathom")["started_at_ns"]
        .as_i64()
        .unwrap();
    // The call that most was seen below, and all threads.
    let [most] = &recording.rows(
        "SELECT rid, min(tid) AS tid, min(syscalls.ts_ns) AS ts_ns, min(syscalls.dur_ns) AS dur_ns
         FROM syscalls JOIN slices USING (rid) GROUP BY rid ORDER BY count(*) DESC, rid LIMIT 1",
    )[..] else {
        panic!("nothing was seen below any call")
    };
    let [rid, tid, ts, dur] = ["rid", "tid", "ts_ns", "dur_ns"].map(|c| most.int(c).unwrap());
    let threads = recording.rows("SELECT DISTINCT tid FROM syscalls ORDER BY tid");
    let lanes: Vec<String> = threads
        .iter()
        .map(|row| row.int("tid").unwrap().to_string())
        .collect();
    let lanes = lanes.join(",");
    // All of the session, and a window that begins in the middle of that call.
    let middle = ts - start + dur / 2;
    let windows = [
        (String::new(), "true".to_string()),
        (
            format!("&from={middle}&to={}", middle + dur),
            format!(
                "slices.ts_ns < {} AND slices.ts_ns + slices.dur_ns > {}",
                start + middle + dur,
                start + middle
            ),
        ),
    ];
    for (window, inside) in windows {
        for (filter, calls) in [
            ("{}", "true"),
            (r#"{"syscall":["fsync"]}"#, "syscall = 'fsync'"),
        ] {
            let f = encoded(filter);
            let path = format!("/sessions/run.fathom/visits?lanes={lanes}{window}&f={f}");
            let answer = page.table(&path);
            assert_eq!(answer.meta["mode"], "visits", "{path}");
            let rows = recording.rows(&format!(
                "SELECT layer, count(*) AS n, sum(slices.self_ns) AS self_ns
                 FROM slices JOIN syscalls USING (rid)
                 WHERE depth > 0 AND {calls} AND {inside} GROUP BY layer"
            ));
            let expected = by_key(&rows, "layer", "self_ns");
            let mut found = BTreeMap::new();
            for (layer, own) in answer.texts("layer").iter().zip(answer.numbers("self_ns")) {
                *found.entry(layer.map(str::to_owned)).or_default() += own;
            }
            assert_eq!(found, expected, "{path}");
            let counted: i64 = rows.iter().map(|row| row.int("n").unwrap()).sum();
            assert_eq!(answer.rows.len() as i64, counted, "{path}");
            assert!(counted > 0, "{path}");
        }
    }
    // Of one thread only, with the threads that the calls have.
    let one = page.table(&format!("/sessions/run.fathom/visits?lanes={tid}"));
    assert!(one.numbers("lane").iter().all(|lane| *lane == tid as f64));
    assert!(one.numbers("rid").contains(&(rid as f64)));
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

/// Rows of a table that belong to a request.
fn count(session: &Path, table: &str, rid: i64) -> usize {
    let sql = format!("SELECT count(*) AS n FROM {table} WHERE rid = {rid}");
    query(session, &sql)[0].int("n").unwrap() as usize
}

#[test]
fn a_request_has_everything_below_it() {
    need_root!();
    let scratch = Scratch::new();
    let (recording, page) = recorded(&scratch);
    let rows = recording.rows(
        "SELECT rid, ts_ns, tid, dur_ns FROM syscalls WHERE syscall = 'fsync' ORDER BY dur_ns DESC LIMIT 2",
    );
    for row in rows {
        let [rid, at, tid] = ["rid", "ts_ns", "tid"].map(|name| row.int(name).unwrap());
        let answer = page.json(&format!("/sessions/run.fathom/requests/{rid}"));
        assert_eq!(answer["table"], "syscalls");
        assert_eq!(answer["row"]["dur_ns"].as_i64(), row.int("dur_ns"));
        for (member, table) in [
            ("slices", "slices"),
            ("waits", "waits"),
            ("irqs", "irqs"),
            ("counters", "perf_counters"),
        ] {
            let got = answer[member].as_array().unwrap();
            assert_eq!(got.len(), count(&recording.session, table, rid), "{table}");
        }
        let own: i64 = answer["slices"]
            .as_array()
            .unwrap()
            .iter()
            .map(|s| s["self_ns"].as_i64().unwrap())
            .sum();
        assert!(own == 0 || Some(own) == row.int("dur_ns"));
        let requests = recording.number(&format!(
            "SELECT count(DISTINCT block_id) AS n FROM bios WHERE rid = {rid} OR submit_rid = {rid}"
        ));
        assert_eq!(answer["block"].as_array().unwrap().len() as i64, requests);
        for request in answer["block"].as_array().unwrap() {
            let id = &request["row"]["block_id"];
            let ahead = recording.number(&format!(
                "SELECT count(*) AS n FROM block AS o, block AS own WHERE own.block_id = {id}
                 AND o.device = own.device AND o.queued_at_ns < own.queued_at_ns
                 AND o.completed_at_ns > own.queued_at_ns"
            ));
            let got = request["ahead"]["requests"].as_f64();
            assert_eq!(got.unwrap_or(0.0), ahead as f64, "{id}");
            assert!(got.is_some() || requests > 16 || request["row"]["queued_at_ns"].is_null());
        }
        let around = |order: &str, compare: &str| {
            let rows = recording.rows(&format!(
                "SELECT rid FROM syscalls WHERE tid = {tid} AND ts_ns {compare} {at}
                 ORDER BY ts_ns {order}, rid {order} LIMIT 10"
            ));
            let mut ids: Vec<i64> = rows.iter().map(|r| r.int("rid").unwrap()).collect();
            ids.sort_unstable();
            ids
        };
        let ids = |side: &str| {
            let rows = answer["neighbours"][side].as_array().unwrap();
            let mut ids: Vec<i64> = rows.iter().map(|r| r["rid"].as_i64().unwrap()).collect();
            ids.sort_unstable();
            ids
        };
        assert_eq!(ids("before"), around("DESC", "<"));
        assert_eq!(ids("after"), around("ASC", ">"));
    }
}

#[test]
fn offsets_layers_devices_and_cache() {
    need_root!();
    let scratch = Scratch::new();
    let (recording, page) = recorded(&scratch);
    let base = "/sessions/run.fathom";
    let file = recording.number(&format!(
        "SELECT file_id AS n FROM files WHERE path = '{}'",
        scratch.work().join("h1").display()
    ));
    let points = page.table(&format!("{base}/offsets?file={file}"));
    assert_eq!(points.meta["mode"], "points");
    let written = 50.0 * 4096.0;
    assert_eq!(points.meta["written_bytes"].as_f64(), Some(written));
    assert_eq!(points.meta["written_unique_bytes"].as_f64(), Some(written));
    // Read twice, the second time without the first 24 KiB.
    let read = points.meta["read_bytes"].as_f64().unwrap();
    assert_eq!(read, 2.0 * written - 3.0 * 8192.0);
    assert_eq!(points.meta["read_unique_bytes"].as_f64(), Some(written));
    assert_eq!(points.sum("bytes"), written + read);
    let writes = points.rows.iter().filter(|r| r["write"] == true).count();
    assert_eq!(writes, 50);

    // A part of the file: calls that touch it.
    let (low, high) = (10_000_i32, 50_000_i32);
    let part = page.table(&format!("{base}/offsets?file={file}&low={low}&high={high}"));
    let touching = recording.number(&format!(
        "SELECT count(*) AS n FROM syscalls WHERE file_id = {file} AND bytes > 0 \
         AND file_offset < {high} AND file_offset + bytes > {low}"
    ));
    assert!(touching > 20);
    assert_eq!(part.rows.len() as i64, touching);
    assert_eq!(part.meta["offset_from"].as_f64(), Some(f64::from(low)));
    assert_eq!(part.meta["offset_to"].as_f64(), Some(f64::from(high)));

    // In order of time, of each thread and direction.
    let sequential = |direction: &str| {
        let rows = recording.rows(&format!(
            "SELECT avg((here = reached)::INTEGER) AS share FROM (SELECT file_offset AS here,
                lag(file_offset + bytes) OVER (PARTITION BY tid ORDER BY ts_ns) AS reached
                FROM syscalls WHERE file_id = {file} AND bytes > 0
                AND syscall LIKE '%{direction}%') WHERE reached IS NOT NULL"
        ));
        rows[0].value("share").as_f64().unwrap()
    };
    assert_eq!(
        points.meta["written_sequential"].as_f64(),
        Some(sequential("write"))
    );
    let read = points.meta["read_sequential"].as_f64().unwrap();
    assert_eq!(read, sequential("read"));

    let all = page.table(&format!("{base}/layers?mode=windows&pixels=20"));
    let rows = recording.rows(
        "SELECT layer AS key, sum(self_ns)::BIGINT AS ns FROM all_slices
         WHERE rid IN (SELECT rid FROM syscalls) GROUP BY 1 HAVING ns > 0",
    );
    let expected = by_key(&rows, "key", "ns");
    let mut got: BTreeMap<Option<String>, f64> = BTreeMap::new();
    for (layer, ns) in all.texts("layer").iter().zip(all.numbers("self_ns")) {
        *got.entry(layer.map(str::to_owned)).or_default() += ns;
    }
    for (layer, ns) in &expected {
        // Faults are requests, too, and their time is none of a call's.
        if layer.as_deref() == Some("syscall") {
            assert_eq!(got.get(layer), Some(ns), "{got:?}");
        }
    }
    let requests = page.table(&format!("{base}/layers?mode=requests&limit=5000"));
    let total = recording.number("SELECT sum(dur_ns)::BIGINT AS n FROM syscalls");
    assert_eq!(requests.sum("self_ns"), total as f64);

    let devices = page.json(&format!("{base}/devices"));
    let rows = recording.rows(
        "SELECT device, sum(requests)::BIGINT AS requests, max(device_max_ns) AS longest
         FROM by_device GROUP BY 1 ORDER BY 2 DESC, 1",
    );
    let devices = devices.as_array().unwrap();
    let inside = |d: &Value, name: &str| d[name].as_f64().unwrap();
    for (device, row) in devices.iter().zip(&rows) {
        assert_eq!(device["name"].as_str(), row.text("device"));
        assert!(inside(device, "requests") <= row.int("requests").unwrap() as f64);
        let name = encoded(row.text("device").unwrap());
        let over_time = page.table(&format!("{base}/devices/{name}?pixels=10"));
        assert_eq!(over_time.sum("requests"), inside(device, "requests"));
        let counts: f64 = over_time
            .rows
            .iter()
            .flat_map(|row| row["latency"].as_array().unwrap())
            .map(|n| n.as_f64().unwrap())
            .sum();
        // Flushes without data of their own are in no device.
        let nowhere = recording.number(&format!(
            "SELECT count(*) FROM block WHERE issued_at_ns IS NULL AND device = '{}'",
            row.text("device").unwrap()
        ));
        let all = inside(device, "requests");
        assert!(counts <= all && counts >= all - nowhere as f64, "{counts}");
        let by_comm = page.table(&format!("{base}/devices/{name}?by=comm"));
        assert_eq!(by_comm.sum("bytes"), over_time.sum("bytes"));
    }
    let cache = page.table(&format!(
        "{base}/cache?pixels=10&from=-100000000000&to=100000000000"
    ));
    let expected = recording.number("SELECT coalesce(sum(pages), 0)::BIGINT AS n FROM pagecache");
    assert_eq!(cache.sum("pages"), expected as f64);
    assert_eq!(cache.sum("hits") + cache.sum("misses"), cache.sum("pages"));
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
";
    let recording = Record::named(&scratch, "run")
        .command(["python3", "-c", script])
        .command([scratch.work().join("many")])
        .run()
        .must_exit(0);
    let file = recording.number(&format!(
        "SELECT file_id AS n FROM files WHERE path = '{}'",
        scratch.work().join("many").display()
    ));
    let page = Page::serve(&recording.session);
    let offsets = format!("/sessions/run.fathom/offsets?file={file}");
    let quick = page.table(&format!("{offsets}&unique=0"));
    assert_eq!(quick.meta["mode"], "grid");
    assert!(quick.meta["read_sequential"].is_null());
    let whole = page.table(&offsets);
    assert_eq!(whole.meta["calls"].as_f64(), Some(25_001.0));
    assert_eq!(whole.meta["written_sequential"].as_f64(), Some(1.0));
    assert_eq!(whole.meta["read_sequential"].as_f64(), Some(0.0));
    assert_eq!(whole.sum("writes"), 15_000.0);
    assert_eq!(whole.sum("reads"), 10_001.0);
}

/// A file that is touched through mappings alone, but for `mmap` and the calls before.
#[test]
fn mapped_files() {
    need_root!();
    let scratch = Scratch::new();
    let recording = Record::named(&scratch, "run")
        .command([workload("mapped").into_os_string(), "touch".into()])
        .command([scratch.work()])
        .run()
        .must_exit(0);
    let files = recording.rows(
        "SELECT file_id, count(*) AS n, count(*) FILTER (access = 'write') AS writes,
            min(file_offset) AS lo, max(file_offset) + 1 AS hi, sum(dur_ns)::BIGINT AS ns
         FROM faults JOIN files USING (file_id) WHERE files.path LIKE '%/work/%'
         GROUP BY 1 HAVING n > 20",
    );
    assert!(files.len() > 1, "{files:?}");
    let page = Page::serve(&recording.session);
    let base = "/sessions/run.fathom";
    for row in &files {
        let number = |name: &str| row.int(name).unwrap() as f64;
        let file = row.int("file_id").unwrap();
        let points = page.table(&format!("{base}/offsets?file={file}"));
        assert_eq!(points.meta["faults"].as_f64(), Some(number("n")));
        let faults = || points.rows.iter().filter(|r| r["fault"] == true);
        assert_eq!(faults().count() as f64, number("n"));
        let writes = faults().filter(|r| r["write"] == true).count();
        assert_eq!(writes as f64, number("writes"));
        // What of a page a program used is not known.
        assert!(faults().all(|r| r.get("bytes").is_none_or(|b| b.is_null())));
        assert!(points.meta["offset_from"].as_f64().unwrap() <= number("lo"));
        assert!(points.meta["offset_to"].as_f64().unwrap() >= number("hi"));
        // Faults are none of these calls.
        let filter = encoded(r#"{"syscall":["pread64"]}"#);
        let none = page.table(&format!("{base}/offsets?file={file}&f={filter}"));
        assert_eq!(none.meta["faults"].as_f64(), Some(0.0));

        let filter = encoded(&format!("{{\"file\":[{file}]}}"));
        let tiles = page.table(&format!("{base}/tiles?by=file&pixels=8&f={filter}"));
        assert_eq!(tiles.sum("faults"), number("n"));
        assert_eq!(tiles.sum("fault_ns"), number("ns"));
        let top = page.table(&format!("{base}/top?by=file&f={filter}"));
        assert_eq!(top.sum("faults"), number("n"));
    }

    // The same from the command line: all of them, and none counted as a call.
    let output = Command::new(fathom())
        .args([
            "zoom", "--by", "file", "--top", "1000", "--pixels", "1", "--format", "json",
        ])
        .arg(&recording.session)
        .output()
        .unwrap();
    assert!(output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("of table faults"), "{said}");
    let rows: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let sum = |name: &str| rows.iter().map(|r| r[name].as_i64().unwrap()).sum::<i64>();
    assert_eq!(
        sum("faults"),
        recording.number("SELECT count(*) AS n FROM faults")
    );
    assert_eq!(
        sum("calls"),
        recording.number("SELECT count(*) AS n FROM syscalls")
    );
}
