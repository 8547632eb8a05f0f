//! What is shown below calls: visits of layers, requests, devices, mapped files.

use super::*;

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
        meanwhile(&recording, &page, rid);
        critical_path(&recording, &page, rid, at);
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
            let rows = answer["neighbors"][side].as_array().unwrap();
            let mut ids: Vec<i64> = rows.iter().map(|r| r["rid"].as_i64().unwrap()).collect();
            ids.sort_unstable();
            ids
        };
        assert_eq!(ids("before"), around("DESC", "<"));
        assert_eq!(ids("after"), around("ASC", ">"));
    }
}

/// The segments that `fathom critical-path` has for the same request; they add up to its duration.
fn critical_path(recording: &Recording, page: &Page, rid: i64, at: i64) {
    let answer = page.json(&format!("/sessions/run.fathom/requests/{rid}/path"));
    assert_eq!(answer["why_not"], Value::Null);
    let path = fathom_tests::session::critical_path(&recording.session, rid);
    let start = at - answer["from"].as_i64().unwrap();
    let tuples = |segments: &Value, time: &str, start: i64| -> Vec<(i64, i64, i64)> {
        let segments = segments.as_array().unwrap().iter();
        segments
            .map(|s| {
                let int = |name: &str| s[name].as_i64().unwrap();
                (int(time) + start, int("dur_ns"), int("tid"))
            })
            .collect()
    };
    let own = tuples(&answer["segments"], "t", start);
    let all = tuples(&path["segments"], "ts_ns", 0);
    assert!(!own.is_empty() && own.iter().all(|segment| all.contains(segment)));
    let sum = |name: &str| -> i64 {
        let all = answer[name].as_array().unwrap().iter();
        all.map(|piece| piece["dur_ns"].as_i64().unwrap()).sum()
    };
    assert_eq!(sum("segments") + sum("rest"), answer["dur_ns"]);
    assert_eq!(answer["dur_ns"], path["dur_ns"]);
    let sql = format!("SELECT dur_ns FROM syscalls WHERE rid = {rid}");
    assert_eq!(answer["dur_ns"], recording.number(&sql));
    assert_eq!(answer["total"].as_u64(), Some(all.len() as u64));
}

/// The requests that its device had while a request was under way, whoever made them.
fn meanwhile(recording: &Recording, page: &Page, rid: i64) {
    let answer = page.json(&format!("/sessions/run.fathom/requests/{rid}/meanwhile"));
    let bucket = answer["bucket_ns"].as_f64().unwrap();
    for device in answer["devices"].as_array().unwrap() {
        let name = device["name"].as_str().unwrap();
        // Time in the queue and in the device, as far as it is within the request.
        let sql = format!(
            "WITH w AS (SELECT ts_ns AS a, ts_ns + dur_ns AS z FROM syscalls WHERE rid = {rid}),
                b AS (SELECT block.*, a, z FROM block, w WHERE device = '{name}'
                AND queued_at_ns < z AND completed_at_ns > a AND issued_at_ns IS NOT NULL)
             SELECT count(*) AS n,
                sum(greatest(0, least(issued_at_ns, z) - greatest(queued_at_ns, a))) AS waiting,
                sum(greatest(0, least(completed_at_ns, z) - greatest(issued_at_ns, a))) AS in_device
             FROM b"
        );
        let rows = recording.rows(&sql);
        let owners = device["owners"].as_array().unwrap();
        let requests: f64 = owners.iter().map(|o| o["requests"].as_f64().unwrap()).sum();
        assert!(requests >= rows[0].int("n").unwrap() as f64, "{device}");
        for member in ["waiting", "in_device"] {
            let values = owners.iter().flat_map(|o| o[member].as_array().unwrap());
            let got: f64 = values.map(|v| v.as_f64().unwrap() * bucket).sum();
            let expected = rows[0].int(member).unwrap_or(0) as f64;
            // Requests of which a time was not seen may come on top.
            assert!(
                got >= expected * 0.999 - 1.0,
                "{member}: {got} of {expected}"
            );
            if requests == rows[0].int("n").unwrap() as f64 {
                assert!((got - expected).abs() <= expected * 1e-6 + 1.0, "{member}");
            }
        }
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
        // Flushes without data of their own are in no device, and some ends are not observed.
        let nowhere = recording.number(&format!(
            "SELECT count(*) FROM block
             WHERE (issued_at_ns IS NULL OR completed_at_ns IS NULL) AND device = '{}'",
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
