//! Exports, each read by the tool that it is for, or by a reader of its format
//! that fathom has no part in.

#[path = "exports_strace.rs"]
mod lines;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use fathom_tests::environment::{fathom, must_run};
use fathom_tests::session::{Row, query};
use fathom_tests::tools::{self, export};
use fathom_tests::{
    Record, Recording, Scratch, need_program, need_python, need_root, strace, workload,
};
use serde_json::Value;

use self::lines::without_time;

fn recorded(scratch: &Scratch, options: &[&str], program: &[&str]) -> Recording {
    let mut command = vec![workload(program[0]).into_os_string()];
    for word in &program[1..] {
        command.push(match *word {
            "WORK" => scratch.work().into_os_string(),
            word => word.into(),
        });
    }
    let recording = Record::new(scratch)
        .options(options)
        .command(command)
        .run()
        .must_exit(0);
    recording.complete();
    recording
}

fn lines_of_json(text: &[u8]) -> Vec<Value> {
    std::str::from_utf8(text)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
        .collect()
}

/// The same rows in all forms of a table, and only those that are asked for.
#[test]
fn tables_with_windows_and_conditions() {
    need_root!();
    let scratch = Scratch::new();
    let recording = recorded(&scratch, &[], &["calls", "WORK"]);
    let session = &recording.session;
    let all = lines_of_json(&export(session, "ndjson", &[]).0);
    assert_eq!(
        all.len() as i64,
        recording.number("SELECT count(*) FROM syscalls")
    );
    let array: Vec<Value> = serde_json::from_slice(&export(session, "json", &[]).0).unwrap();
    assert_eq!(array, all);
    // Python's csv module splits the lines.
    let csv = scratch.root().join("calls.csv");
    fs::write(&csv, export(session, "csv", &["--exact"]).0).unwrap();
    let script = "import csv, sys, json; r = csv.DictReader(open(sys.argv[1], newline=''));\
                  print(json.dumps([[d['rid'], d['path_arg']] for d in r]))";
    let rows = must_run(
        "/usr/bin/python3",
        ["-c".as_ref(), script.as_ref(), csv.as_os_str()],
    );
    let rows: Vec<(String, String)> = serde_json::from_slice(&rows).unwrap();
    let same: Vec<(String, String)> = all
        .iter()
        .map(|v| {
            (
                v["rid"].to_string(),
                v["path_arg"].as_str().unwrap_or("").to_string(),
            )
        })
        .collect();
    assert_eq!(rows, same);

    let middle = query(
        session,
        "SELECT quantile_disc(ts_ns, 0.25) AS a, quantile_disc(ts_ns, 0.75) AS b FROM syscalls",
    );
    let (a, b) = (middle[0].int("a").unwrap(), middle[0].int("b").unwrap());
    let (from, until) = (format!("@{a}"), format!("@{b}"));
    let condition = "class = 'metadata' -- and nothing else";
    let options = ["--from", &from, "--until", &until, "--where", condition];
    let some = lines_of_json(&export(session, "ndjson", &options).0);
    let want = recording.number(&format!(
        "SELECT count(*) FROM syscalls WHERE ts_ns >= {a} AND ts_ns < {b} AND class = 'metadata'"
    ));
    assert!(want > 0 && want < all.len() as i64);
    assert_eq!(some.len() as i64, want);

    for (options, words) in [
        (["--where", "nonsense = 1"], "nonsense"),
        (["--where", "1) UNION SELECT (1"], "condition"),
        (["--from", "yesterday"], "is not a time"),
        (["--format", "vhs"], "there is no format"),
    ] {
        let mut args = vec!["export".into(), session.clone().into_os_string()];
        if options[0] != "--format" {
            args.extend(["--format".into(), "csv".into()]);
        }
        args.extend(options.iter().map(|o| o.into()));
        let output = tools::run(args);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{options:?}: {text}");
        assert!(text.contains(words), "{options:?}: {text}");
    }
}

/// A reader that goes away ends the export, and nobody hears of it.
#[test]
fn a_closed_pipe_is_quiet() {
    need_root!();
    let scratch = Scratch::new();
    let recording = recorded(&scratch, &[], &["threads", "own", "WORK", "2", "400"]);
    for format in [
        "perfetto",
        "chrome",
        "strace",
        "dio",
        "dio-bulk",
        "opensearch",
        "iolog",
        "folded",
        "pprof",
        "speedscope",
        "csv",
        "json",
        "ndjson",
    ] {
        let mut child = Command::new(fathom())
            .arg("export")
            .arg(&recording.session)
            .args(["--format", format])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{format}: {text}");
        assert_eq!(text, "", "{format}");
    }
}

/// Names that would end a string, a line or a terminal's patience.
#[test]
fn hostile_names_in_every_format() {
    need_root!();
    let scratch = Scratch::new();
    let names: [&[u8]; 5] = [
        b"a\n123 1700000000.1 openat(AT_FDCWD, \"b\") = 3",
        b"\x1b[2J\"}],\\",
        b"\xff\xfe<\x80>",
        "\u{202e}txt\u{9b}31m".as_bytes(),
        b"=cmd|' C calc'!A0,\"x\"",
    ];
    use std::os::unix::ffi::OsStrExt;
    let mut files = Vec::new();
    for name in names {
        let path = scratch.work().join(std::ffi::OsStr::from_bytes(name));
        fs::write(&path, "x").unwrap();
        files.push(path.into_os_string());
    }
    let recording = Record::new(&scratch)
        .command(["cat".into()].into_iter().chain(files))
        .run()
        .must_exit(0);
    for format in [
        "chrome",
        "csv",
        "dio",
        "dio-bulk",
        "folded",
        "json",
        "ndjson",
        "opensearch",
        "speedscope",
        "strace",
    ] {
        let (text, _) = export(&recording.session, format, &[]);
        let text = String::from_utf8(text).unwrap();
        let bad = text
            .chars()
            .find(|c| c.is_control() && *c != '\n' || ('\u{202a}'..='\u{202e}').contains(c));
        assert_eq!(bad, None, "{format}");
        match format {
            "strace" => {
                let plain: Vec<String> = text.lines().map(without_time).collect();
                let calls = strace::parse(&(plain.join("\n") + "\n")).unwrap();
                let opened: BTreeSet<Vec<u8>> = calls
                    .iter()
                    .filter(|c| c.name == "openat")
                    .filter_map(|c| strace::unquote(&c.args[1]))
                    .collect();
                for name in names {
                    let path = scratch.work().join(std::ffi::OsStr::from_bytes(name));
                    assert!(opened.contains(path.as_os_str().as_bytes()), "{name:?}");
                }
            }
            "dio" | "dio-bulk" | "ndjson" | "opensearch" => drop(lines_of_json(text.as_bytes())),
            "csv" | "folded" => {}
            _ => drop(serde_json::from_str::<Value>(&text).unwrap()),
        }
    }
}

/// fio's log and CSV as it was recorded have the bytes of names, though not for a terminal.
#[test]
fn no_export_writes_control_characters_to_a_terminal() {
    need_root!();
    need_program!("script");
    let scratch = Scratch::new();
    let path = scratch.work().join("a\u{1b}]0;owned\u{7}\u{9b}31m");
    fs::write(&path, "x").unwrap();
    let recording = Record::new(&scratch)
        .command(["head".as_ref(), "-c1".as_ref(), path.as_os_str()])
        .run()
        .must_exit(0);
    let is_control = |c: &char| c.is_control() && !['\r', '\n'].contains(c);
    for (format, option) in [
        ("iolog", ""),
        ("iolog3", ""),
        ("csv", ""),
        ("csv", "--exact"),
    ] {
        let options: Vec<&str> = option.split_terminator(' ').collect();
        let (bytes, _) = export(&recording.session, format, &options);
        let text = String::from_utf8(bytes).unwrap();
        let exact = format != "csv" || !option.is_empty();
        assert_eq!(text.contains('\u{1b}'), exact, "{format} {option}");
        let line = format!(
            "exec '{}' export '{}' --format {format} {option}",
            fathom().display(),
            recording.session.display()
        );
        let output = Command::new("script")
            .args(["-qec", &line, "/dev/null"])
            .env("SHELL", "/bin/sh")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(
            text.chars().find(is_control),
            None,
            "{format} {option}: {text:?}"
        );
        assert!(
            text.contains("a\\x1b]0;owned\\x07\\u{9b}31m"),
            "{format} {option}: {text}"
        );
    }
}

fn check_perfetto(python: &Path, scratch: &Scratch, session: &Path, options: &[&str]) -> Value {
    let trace = scratch.root().join("run.pftrace");
    fs::write(&trace, export(session, "perfetto", options).0).unwrap();
    let script = tools::project().join("tests/python/perfetto_check.py");
    let text = must_run(python, [script.as_os_str(), trace.as_os_str()]);
    serde_json::from_slice(&text).unwrap()
}

/// Perfetto's own schema reads the trace, and its slices are the session's rows.
#[test]
fn perfetto_has_every_call_as_a_slice() {
    need_root!();
    let python = need_python!();
    let scratch = Scratch::new();
    let recording = recorded(&scratch, &[], &["threads", "own", "WORK", "3", "100"]);
    let trace = check_perfetto(&python, &scratch, &recording.session, &[]);
    let slices = trace["slices"].as_array().unwrap();
    let mut found: BTreeMap<i64, &Value> = BTreeMap::new();
    let mut parts = Vec::new();
    for slice in slices {
        if part_of_request(slice) {
            parts.push(slice);
        } else if !on_device(slice) {
            let rid = slice["args"]["rid"].as_i64().unwrap();
            assert!(found.insert(rid, slice).is_none(), "rid {rid} twice");
        }
    }
    let rows = recording.rows(
        "SELECT rid, ts_ns, dur_ns, tid, comm, syscall, path, file_offset, bytes, ret FROM syscalls",
    );
    for row in &rows {
        let slice = found[&row.int("rid").unwrap()];
        assert_eq!(slice["ts"].as_i64(), row.int("ts_ns"));
        assert_eq!(slice["dur"].as_i64(), row.int("dur_ns"));
        assert_eq!(slice["name"].as_str(), row.text("syscall"));
        assert_eq!(slice["depth"], 0, "{row:?}");
        assert_eq!(slice["args"]["path"].as_str(), row.text("path"));
        assert_eq!(
            slice["args"]["file_offset"].as_i64(),
            row.int("file_offset")
        );
        assert_eq!(slice["args"]["ret"].as_i64(), row.int("ret"));
        let track = slice["track"].as_str().unwrap();
        let thread = format!("thread {} ", row.int("tid").unwrap());
        assert!(track.starts_with(&thread), "{track} {row:?}");
    }
    let faults = recording.number("SELECT count(*) FROM faults");
    assert_eq!(found.len() as i64, rows.len() as i64 + faults);
    // What a request spent in its layers lies within it.
    let layers =
        recording.rows("SELECT rid, layer, name, ts_ns, dur_ns FROM slices WHERE depth > 0");
    let mut want: Vec<_> = layers
        .iter()
        .map(|r| {
            (
                r.int("rid"),
                r.text("layer"),
                r.text("name"),
                r.int("ts_ns"),
                r.int("dur_ns"),
            )
        })
        .collect();
    let mut got: Vec<_> = parts
        .iter()
        .map(|s| {
            (
                s["args"]["rid"].as_i64(),
                s["categories"][0].as_str(),
                s["name"].as_str(),
                s["ts"].as_i64(),
                s["dur"].as_i64(),
            )
        })
        .collect();
    want.sort_unstable();
    got.sort_unstable();
    assert_eq!(got, want);
    // Bytes a second times seconds are the bytes.
    let written: f64 = sum_of_rate(&trace["counters"]["bytes written per second"]);
    let want = recording.number(
        "SELECT coalesce(sum(bytes), 0)::BIGINT FROM syscalls
         WHERE class = 'data' AND call_writes(syscall)",
    );
    assert!((written - want as f64).abs() < 1.0, "{written} {want}");
}

/// Whether a slice is what a request spent in one of its layers.
fn part_of_request(slice: &Value) -> bool {
    // Requests tell their processor.
    slice["args"]["cpu"].is_null() && !on_device(slice)
}

/// Whether a slice is a request to a device.
fn on_device(slice: &Value) -> bool {
    slice["track"].as_str().unwrap().starts_with("device ")
}

/// Each value holds until the next one.
fn sum_of_rate(counter: &Value) -> f64 {
    let points = counter.as_array().unwrap();
    points
        .windows(2)
        .map(|w| {
            let seconds = (w[1][0].as_i64().unwrap() - w[0][0].as_i64().unwrap()) as f64 / 1e9;
            w[0][1].as_f64().unwrap() * seconds
        })
        .sum()
}

/// Table machine and the time in which devices were busy are counters, whichever calls are exported.
#[test]
fn perfetto_has_the_machine_as_counters() {
    need_root!();
    let python = need_python!();
    let scratch = Scratch::new();
    let script = "dd if=/dev/zero of=$0/a bs=64k count=100 conv=fsync 2>/dev/null; sleep 2.2";
    let recording = Record::new(&scratch)
        .command(["sh", "-c", script])
        .command([scratch.work()])
        .run()
        .must_exit(0);
    let none = ["--where", "false"];
    let trace = check_perfetto(&python, &scratch, &recording.session, &none);
    let points = |name: &str| -> Vec<(i64, f64)> {
        let counter = &trace["counters"][format!("machine: {name}")];
        let points = counter.as_array().map(Vec::as_slice).unwrap_or_default();
        let point = |p: &Value| (p[0].as_i64().unwrap(), p[1].as_f64().unwrap());
        points.iter().map(point).collect()
    };
    let all = "(user_ns + system_ns + interrupt_ns + iowait_ns + idle_ns + steal_ns)";
    let passed = "(ended_at_ns - ts_ns)";
    for (name, at, value) in [
        (
            "processors in programs",
            "ts_ns",
            format!("user_ns / {all} * 100"),
        ),
        (
            "processors in the kernel",
            "ts_ns",
            format!("system_ns / {all} * 100"),
        ),
        (
            "processors idle with I/O pending",
            "ts_ns",
            format!("iowait_ns / {all} * 100"),
        ),
        (
            "stalled for I/O",
            "ts_ns",
            format!("io_stalled_ns / {passed} * 100"),
        ),
        (
            "threads that run or want a processor",
            "ended_at_ns",
            "running_threads".into(),
        ),
        ("available memory", "ended_at_ns", "available_bytes".into()),
        ("dirty page cache", "ended_at_ns", "dirty_bytes".into()),
    ] {
        let rows = recording.rows(&format!(
            "SELECT {at} AS since, ({value})::DOUBLE AS value FROM machine
             WHERE value IS NOT NULL ORDER BY since"
        ));
        let value = |row: &Row| {
            (
                row.int("since").unwrap(),
                row.value("value").as_f64().unwrap(),
            )
        };
        assert_eq!(
            points(name),
            rows.iter().map(value).collect::<Vec<_>>(),
            "{name}"
        );
    }
    assert!(points("available memory").len() >= 3);
    // Shares times time are the time with a request in the device.
    let devices = recording.rows(
        "SELECT device, max(z - a)::BIGINT AS longest, sum(z - a)::BIGINT AS all_ns
         FROM (SELECT device, issued_at_ns AS a, completed_at_ns AS z FROM block)
         WHERE a < z GROUP BY device",
    );
    for row in &devices {
        let points = points(&format!("busy share of {}", row.text("device").unwrap()));
        let busy: f64 = points
            .windows(2)
            .map(|w| w[0].1 / 100.0 * (w[1].0 - w[0].0) as f64)
            .sum();
        let (longest, all) = (row.int("longest").unwrap(), row.int("all_ns").unwrap());
        assert!(
            points
                .iter()
                .all(|(_, share)| (0.0..=100.0).contains(share))
        );
        assert!(
            busy >= longest as f64 - 1.0 && busy <= all as f64 + 1.0,
            "{row:?} {busy}"
        );
    }
}

/// Operations that overlap lie on tracks of their own, as many as there were at
/// once.
#[test]
fn perfetto_has_a_track_for_each_slot_in_flight() {
    need_root!();
    need_program!("fio");
    let python = need_python!();
    let scratch = Scratch::new();
    let file = scratch.work().join("data");
    let recording = Record::new(&scratch)
        .command(["fio", "--name=job", "--size=2m", "--bs=4k", "--thread"])
        .command([
            "--rw=randread",
            "--ioengine=libaio",
            "--iodepth=8",
            "--direct=1",
        ])
        .command([format!("--filename={}", file.display())])
        .command([format!("--output={}", scratch.root().join("out").display())])
        .run()
        .must_exit(0);
    recording.complete();
    let operations = recording.number("SELECT count(*) FROM syscalls WHERE api <> 'syscall'");
    if operations == 0 {
        fathom_tests::skip("this kernel does not show operations of AIO");
        return;
    }
    let trace = check_perfetto(&python, &scratch, &recording.session, &[]);
    let mut slots: BTreeMap<&str, Vec<(i64, i64)>> = BTreeMap::new();
    for slice in trace["slices"].as_array().unwrap() {
        let track = slice["track"].as_str().unwrap();
        if track.contains("slot") && !on_device(slice) && !part_of_request(slice) {
            assert_eq!(slice["depth"], 0);
            let begin = slice["ts"].as_i64().unwrap();
            let end = begin + slice["dur"].as_i64().unwrap();
            slots.entry(track).or_default().push((begin, end));
        }
    }
    let all: usize = slots.values().map(Vec::len).sum();
    assert_eq!(all as i64, operations);
    let at_once = recording.number(
        "SELECT max(n)::BIGINT FROM (SELECT sum(d) OVER (ORDER BY t, d ROWS UNBOUNDED PRECEDING) AS n
         FROM (SELECT ts_ns AS t, 1 AS d FROM syscalls WHERE api = 'aio'
               UNION ALL SELECT ts_ns + dur_ns, -1 FROM syscalls WHERE api = 'aio'))",
    );
    assert_eq!(slots.len() as i64, at_once);
    for pieces in slots.values_mut() {
        pieces.sort_unstable();
        assert!(pieces.windows(2).all(|w| w[0].1 <= w[1].0));
    }
}

/// Chrome's format: complete events of a thread lie in one another.
#[test]
fn chrome_has_every_call_as_an_event() {
    need_root!();
    let scratch = Scratch::new();
    let recording = recorded(&scratch, &[], &["threads", "own", "WORK", "3", "50"]);
    let (text, _) = export(&recording.session, "chrome", &[]);
    let trace: Value = serde_json::from_slice(&text).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let complete: Vec<&Value> = events.iter().filter(|e| e["ph"] == "X").collect();
    let want = recording.number(
        "SELECT (SELECT count(*) FROM syscalls WHERE api = 'syscall') + (SELECT count(*) FROM faults)",
    );
    assert_eq!(complete.len() as i64, want);
    let named: BTreeSet<i64> = events
        .iter()
        .filter(|e| e["name"] == "thread_name")
        .filter_map(|e| e["tid"].as_i64())
        .collect();
    assert!(
        complete
            .iter()
            .all(|e| named.contains(&e["tid"].as_i64().unwrap()))
    );
    let row = &recording.rows("SELECT ts_ns, dur_ns, rid FROM syscalls ORDER BY rid LIMIT 1")[0];
    let event = complete
        .iter()
        .find(|e| e["args"]["rid"].as_i64() == row.int("rid"))
        .unwrap();
    let ns = |name: &str| (event[name].as_f64().unwrap() * 1000.0).round() as i64;
    assert_eq!(
        (Some(ns("ts")), Some(ns("dur"))),
        (row.int("ts_ns"), row.int("dur_ns"))
    );
}

/// fio replays the log, and asks for the same pieces of the same file.
#[test]
fn fio_replays_the_same_offsets_and_sizes() {
    need_root!();
    need_program!("fio");
    for format in ["iolog", "iolog3"] {
        let scratch = Scratch::new();
        let file = scratch.work().join("data");
        fs::write(&file, vec![1; 1 << 20]).unwrap();
        let job = |output: &str| {
            vec![
                "fio".to_string(),
                "--name=job".into(),
                "--thread".into(),
                "--ioengine=psync".into(),
                "--invalidate=0".into(),
                format!("--output={}", scratch.root().join(output).display()),
            ]
        };
        let first = Record::new(&scratch)
            .command(job("first"))
            .command([
                "--rw=randrw",
                "--bsrange=512-8k",
                "--size=1m",
                "--io_size=256k",
            ])
            .command(["--fallocate=none", "--fsync=16"])
            .command([format!("--filename={}", file.display())])
            .run()
            .must_exit(0);
        first.complete();
        let path = file.display();
        let log = scratch.root().join("run.iolog");
        let condition = format!("path = '{path}' AND tid <> pid");
        fs::write(
            &log,
            export(&first.session, format, &["--where", &condition]).0,
        )
        .unwrap();
        let again = Scratch::new();
        let second = Record::new(&again)
            .command(job("second"))
            .command([format!("--read_iolog={}", log.display())])
            .run()
            .must_exit(0);
        second.complete();
        let pieces = |recording: &Recording| -> Vec<String> {
            recording
                .rows(&format!(
                    "SELECT syscall, file_offset, bytes FROM syscalls
                     WHERE path = '{path}' AND tid <> pid AND syscall IN ('pread64', 'pwrite64', 'fsync')
                     ORDER BY rid"
                ))
                .iter()
                .map(|r| format!("{r:?}"))
                .collect()
        };
        let (want, got) = (pieces(&first), pieces(&second));
        assert!(want.len() > 50, "{}", want.len());
        assert_eq!(got, want, "{format}");
    }
}

/// Page faults on mapped files are reads and writes of their pages.
#[test]
fn fio_gets_the_pages_of_mapped_files() {
    need_root!();
    let scratch = Scratch::new();
    let recording = recorded(&scratch, &[], &["mapped", "touch", "WORK"]);
    if recording.number("SELECT count(*) FROM faults") == 0 {
        fathom_tests::skip("the programs for this kernel record no page faults");
        return;
    }
    let (text, said) = export(&recording.session, "iolog", &[]);
    let text = String::from_utf8(text).unwrap();
    for (name, action) in [("random", "read"), ("write", "write")] {
        let path = scratch.work().join(name).display().to_string();
        let want: Vec<String> = recording
            .rows(&format!(
                "SELECT file_offset // 4096 * 4096 AS page FROM faults
                 WHERE path = '{path}' AND kind <> 'failed' ORDER BY ts_ns, rid"
            ))
            .iter()
            .map(|row| format!("{path} {action} {} 4096", row.int("page").unwrap()))
            .collect();
        assert!(want.len() > 30, "{name}: {want:?}");
        let got = text.lines().filter(|line| want.iter().any(|w| w == line));
        // Calls have written each page of the file before it was mapped.
        let by_calls = if action == "write" { want.len() } else { 0 };
        assert_eq!(got.count(), want.len() + by_calls, "{name}");
    }
    assert!(said.contains("on mapped files"), "{said}");
}

/// The examples in Python, with DuckDB and with Polars, read a session without fathom, and draw.
#[test]
fn the_python_examples_run() {
    need_root!();
    let python = need_python!();
    let scratch = Scratch::new();
    let recording = recorded(&scratch, &[], &["threads", "own", "WORK", "2", "50"]);
    let totals = recording.balanced();
    let faults = recording.number("SELECT count(*) FROM faults");
    let moves = recording.number(
        "SELECT count(*) FROM syscalls WHERE class = 'data' AND file_offset IS NOT NULL AND bytes > 0",
    );
    let slowest = recording.rows("SELECT syscall, calls FROM by_syscall LIMIT 1");
    let plot = scratch.root().join("plot.png");
    let mut package = std::ffi::OsString::from("PYTHONPATH=");
    package.push(tools::project().join("python"));
    for script in ["session.py", "session_polars.py"] {
        let script = tools::project().join("examples").join(script);
        let text = must_run(
            "env",
            [
                package.as_os_str(),
                python.as_os_str(),
                script.as_os_str(),
                recording.session.as_os_str(),
                "-o".as_ref(),
                plot.as_os_str(),
            ],
        );
        let text = String::from_utf8(text).unwrap();
        let line = format!(
            "{} calls seen, {} stored, 0 lost",
            totals.seen, totals.stored
        );
        assert!(text.starts_with(&line), "{text}");
        let (name, calls) = (slowest[0].text("syscall"), slowest[0].int("calls"));
        let (name, calls) = (name.unwrap(), calls.unwrap().to_string());
        let first = text
            .lines()
            .find(|l| l.split_whitespace().any(|w| w == name));
        let first = first.unwrap_or_else(|| panic!("{name} is not there: {text}"));
        assert!(first.split_whitespace().any(|w| w == calls), "{first}");
        let line = format!("{moves} reads and writes with an offset");
        assert!(text.contains(&line), "{text}");
        let line = format!("{faults} page faults on mapped files");
        assert!(text.contains(&line) || faults == 0, "{text}");
        assert!(fs::read(&plot).unwrap().starts_with(b"\x89PNG"));
        fs::remove_file(&plot).unwrap();
    }
}
