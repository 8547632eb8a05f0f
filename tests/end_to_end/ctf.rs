//! Traces in CTF: exports as babeltrace2 reads them, imports of what babeltrace2 wrote, and both ways.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use fathom_tests::environment::must_run;
use fathom_tests::session::{Row, meta, query};
use fathom_tests::tools::{self, import};
use fathom_tests::{Record, Recording, Scratch, need_program, need_root, workload};
use serde_json::Value;

/// Returns from a test when babeltrace2 or its library for Python is not there.
macro_rules! need_babeltrace {
    () => {
        need_program!("babeltrace2");
        let found = Command::new("/usr/bin/python3")
            .args(["-c", "import bt2"])
            .output();
        if !found.is_ok_and(|output| output.status.success()) {
            fathom_tests::skip("python3-bt2 is not installed");
            return;
        }
    };
}

/// Lines of JSON that a script of `tests/ctf` prints.
fn script(name: &str, trace: &Path) -> Vec<Value> {
    script_with(name, trace, &[])
}

fn script_with(name: &str, trace: &Path, options: &[&str]) -> Vec<Value> {
    let script = tools::project().join("tests/ctf").join(name);
    let options = options.iter().map(OsStr::new);
    let args = [script.as_os_str(), trace.as_os_str()];
    let lines = must_run("/usr/bin/python3", args.into_iter().chain(options));
    String::from_utf8(lines)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn export(session: &Path, options: &[&str], trace: &Path) -> String {
    let mut args = vec![
        "export".into(),
        session.as_os_str().to_owned(),
        "--format".into(),
        "ctf".into(),
        "-o".into(),
        trace.as_os_str().to_owned(),
    ];
    args.extend(options.iter().map(Into::into));
    let output = tools::run(args);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    errors
}

/// Every event is a fact of the session, and every call is an entry and an exit.
fn compare(recording: &Recording, trace: &Path) {
    let session = &recording.session;
    let wall = &meta(session)["clock"];
    let wall =
        wall["start_realtime_ns"].as_i64().unwrap() - wall["start_monotonic_ns"].as_i64().unwrap();
    let calls: BTreeMap<i64, Row> = query(
        session,
        "SELECT rid, ts_ns, dur_ns, syscall, ret, pid, tid, comm, cpu, fd, size, path, path_arg,
                file_offset, op_flags
         FROM syscalls WHERE api = 'syscall'",
    )
    .into_iter()
    .map(|row| (row.int("rid").unwrap(), row))
    .collect();
    let mut events = script("events.py", trace);
    assert_eq!(events.pop().unwrap()["discarded"], 0);
    let (mut entries, mut exits) = (0, 0);
    let mut blocks: BTreeMap<String, i64> = BTreeMap::new();
    let mut entered: BTreeMap<i64, Value> = BTreeMap::new();
    for event in &events {
        let name = event["name"].as_str().unwrap();
        let fields = &event["fields"];
        let Some((kind, call)) = ["syscall_entry_", "syscall_exit_"]
            .iter()
            .find_map(|kind| Some((*kind, name.strip_prefix(kind)?)))
        else {
            *blocks.entry(name.to_owned()).or_default() += 1;
            continue;
        };
        let number = |name: &str| fields[name].as_i64();
        if kind == "syscall_entry_" {
            entries += 1;
            let tid = event["context"]["tid"].as_i64().unwrap();
            assert_eq!(event["cpu"], Value::Null);
            assert!(entered.insert(tid, event.clone()).is_none(), "{event}");
            continue;
        }
        exits += 1;
        let row = &calls[&number("fathom_rid").unwrap()];
        let own = match call {
            "newstat" | "newfstat" | "newlstat" => &call["new".len()..],
            "sendfile64" => "sendfile",
            "umount" => "umount2",
            call => call,
        };
        assert_eq!(row.text("syscall"), Some(own));
        assert_eq!(number("ret"), row.int("ret"), "{event}");
        assert_eq!(event["cpu"].as_i64(), row.int("cpu"));
        let (start, dur) = (row.int("ts_ns").unwrap(), row.int("dur_ns").unwrap());
        assert_eq!(event["ns"].as_i64(), Some(start + dur + wall));
        for (name, column) in [("pid", "pid"), ("tid", "tid")] {
            assert_eq!(event["context"][name].as_i64(), row.int(column));
        }
        assert_eq!(event["context"]["procname"].as_str(), row.text("comm"));
        assert_eq!(number("fathom_offset"), row.int("file_offset"));
        let begun = row
            .text("op_flags")
            .is_some_and(|flags| flags.contains("STARTED_BEFORE_TRACE"));
        let Some(entry) = entered.remove(&row.int("tid").unwrap()) else {
            assert!(begun, "no entry: {event}");
            continue;
        };
        assert_eq!(entry["name"], format!("syscall_entry_{call}"));
        assert_eq!(entry["ns"].as_i64(), Some(start + wall), "{entry}");
        let fields = &entry["fields"];
        if !matches!(
            own,
            "copy_file_range" | "splice" | "tee" | "sendfile" | "dup" | "epoll_ctl"
        ) {
            let fd = ["fd", "oldfd", "epfd", "ufd", "fildes"]
                .iter()
                .find_map(|f| fields[f].as_i64());
            assert!(row.int("fd").is_none() || fd == row.int("fd"), "{entry}");
        }
        if let (Some(count), Some(size)) = (fields["count"].as_i64(), row.int("size")) {
            assert_eq!(count, size, "{entry}");
        }
        let told = ["filename", "pathname", "oldname"]
            .iter()
            .find_map(|f| fields[f].as_str());
        // babeltrace2 2.0.4 shows the text of an earlier event in place of an empty one. The way back
        // has these.
        if let (Some(told), Some(path)) = (told, row.text("path_arg"))
            && !path.is_empty()
        {
            assert_eq!(told, path);
        }
    }
    let count = |condition: &str| {
        recording.number(&format!(
            "SELECT count(*) FROM syscalls WHERE api = 'syscall' AND {condition}"
        ))
    };
    let began = "(op_flags IS NULL OR op_flags NOT LIKE '%STARTED_BEFORE_TRACE%')";
    assert_eq!(entries, count(began));
    assert_eq!(exits, count("ret IS NOT NULL"));
    // Calls that never returned.
    assert_eq!(
        entered.len() as i64,
        count(&format!("ret IS NULL AND {began}"))
    );
    for (event, time) in [
        ("block_rq_insert", "inserted_at_ns"),
        ("block_rq_issue", "issued_at_ns"),
        ("block_rq_complete", "completed_at_ns"),
    ] {
        let want = recording.number(&format!("SELECT count({time}) FROM block"));
        assert_eq!(blocks.get(event).copied().unwrap_or(0), want, "{event}");
    }
}

#[test]
fn exports_are_what_babeltrace_reads() {
    need_root!();
    need_babeltrace!();
    let scratch = Scratch::new();
    let recording = Record::new(&scratch)
        .options(["--syscalls", "all", "--layers", "all"])
        .command([workload("calls").as_os_str(), scratch.work().as_os_str()])
        .run()
        .must_exit(0);
    recording.complete();
    let trace = scratch.root().join("trace");
    export(&recording.session, &[], &trace);
    compare(&recording, &trace);
    for entry in fs::read_dir(&trace).unwrap() {
        let mode = entry.unwrap().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    // What is there is not replaced, and a failure leaves nothing.
    let before = fs::read_dir(scratch.root()).unwrap().count();
    let (session, taken) = (recording.session.as_os_str(), trace.as_os_str());
    let other = scratch.root().join("other");
    for (options, words) in [
        (vec!["-o".as_ref(), taken], "it exists"),
        (vec![], "name the directory"),
        (
            vec![
                "-o".as_ref(),
                other.as_os_str(),
                "--where".as_ref(),
                "nonsense".as_ref(),
            ],
            "condition",
        ),
    ] {
        let mut args = vec![
            "export".as_ref(),
            session,
            "--format".as_ref(),
            "ctf".as_ref(),
        ];
        args.extend(options);
        let output = tools::run(args);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(errors.contains(words), "{errors}");
    }
    assert_eq!(fs::read_dir(scratch.root()).unwrap().count(), before);
}

#[test]
fn calls_that_never_returned_have_no_exit() {
    need_root!();
    need_babeltrace!();
    let scratch = Scratch::new();
    let recording = Record::new(&scratch)
        .options(["--syscalls", "all", "--duration", "1s"])
        .command(["sleep", "5"])
        .run()
        .must_exit(0);
    let pending = recording.number("SELECT count(*) FROM syscalls WHERE ret IS NULL");
    assert_eq!(pending, 1);
    let trace = scratch.root().join("trace");
    export(&recording.session, &[], &trace);
    compare(&recording, &trace);
}

const HOSTILE: &str = r#"
import os, sys
os.chdir(sys.argv[1])
for name in [b'a "b" \'c\'', b'new\nline', b'bad\xff\xfe', b'back\\slash', b'x\\xff', b'\x1b[2J']:
    fd = os.open(name, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o640)
    os.write(fd, b'hi')
    os.lseek(fd, 0, os.SEEK_SET)
    os.read(fd, 10)
    os.close(fd)
    os.rename(name, name + b'2')
for call in [lambda: os.open('/nonexistent/x', 0), lambda: os.read(99, 1)]:
    try:
        call()
    except OSError:
        pass
"#;

/// Columns that come back from an export.
const COLUMNS: &str = "syscall, class, ret, errno, pid, tid, comm, cpu, fd, file_offset, size, bytes, flags, \
                       path_arg, path_arg2, path, path2";

#[test]
fn hostile_names_and_the_way_back() {
    need_root!();
    need_babeltrace!();
    let scratch = Scratch::new();
    let recording = Record::new(&scratch)
        .command(["/usr/bin/python3", "-c", HOSTILE])
        .command([scratch.work()])
        .run()
        .must_exit(0);
    recording.complete();
    let trace = scratch.root().join("trace");
    export(&recording.session, &[], &trace);
    compare(&recording, &trace);
    let text = must_run("babeltrace2", [&trace]);
    for name in [
        b"filename = \"bad\xff\xfe\"".as_slice(),
        b"filename = \"new\\nline\"",
        b"filename = \"back\\\\slash\"",
        b"{ ret = -9, fathom_rid = ",
    ] {
        let found = text.windows(name.len()).any(|part| part == name);
        assert!(found, "{}", String::from_utf8_lossy(name));
    }

    let back = scratch.session("back");
    import(&[&trace], &back);
    let rows = |session: &Path| {
        query(
            session,
            &format!(
                "SELECT ts_ns - min(ts_ns) OVER () AS at, dur_ns, {COLUMNS} FROM syscalls ORDER BY ts_ns"
            ),
        )
    };
    let (recorded, imported) = (rows(&recording.session), rows(&back));
    assert!(recorded.len() > 40);
    assert_eq!(recorded.len(), imported.len());
    for (a, b) in recorded.iter().zip(&imported) {
        for column in ["at", "dur_ns"].into_iter().chain(COLUMNS.split(", ")) {
            assert_eq!(a.value(column), b.value(column), "{column}: {a:?}");
        }
    }
}

/// A trace that babeltrace2 wrote; `events` of `tests/ctf/write.py`.
fn written(scratch: &Scratch, events: &str) -> PathBuf {
    let trace = scratch.root().join("lttng/kernel");
    fs::create_dir_all(trace.parent().unwrap()).unwrap();
    script_with("write.py", &trace, &[events]);
    trace
}

#[test]
fn imports_are_what_babeltrace_reads() {
    need_babeltrace!();
    let scratch = Scratch::new();
    let trace = written(&scratch, "calls");
    let session = scratch.session("imported");
    // The directory that lttng create makes.
    let said = import(&[trace.parent().unwrap()], &session);
    assert!(said.contains("10 calls from 26 lines of ctf"), "{said}");
    assert!(
        said.contains("1 other calls are not storage calls"),
        "{said}"
    );

    let mut want: Vec<Value> = script("calls.py", &trace)
        .into_iter()
        .filter(|call| call[0] != "brk")
        .collect();
    for call in &mut want {
        if call[0] == "newstat" {
            call[0] = "stat".into();
        }
    }
    want.sort_by_key(|call| call[2].as_i64());
    let rows = query(
        &session,
        "SELECT syscall, tid, ts_ns, CASE WHEN ret IS NOT NULL THEN dur_ns END AS dur_ns, ret, cpu, pid, fd,
                size, bytes, file_offset, flags, path_arg, path, args, comm
         FROM syscalls ORDER BY ts_ns",
    );
    let columns = ["syscall", "tid", "ts_ns", "dur_ns", "ret", "cpu"];
    let have: Vec<Value> = rows
        .iter()
        .map(|row| {
            columns
                .iter()
                .map(|column| row.value(column).clone())
                .collect()
        })
        .collect();
    assert_eq!(have, want);

    let made = "/data/a \"b\"\n";
    let paths: Vec<Option<&str>> = rows.iter().map(|row| row.text("path")).collect();
    assert_eq!(
        paths,
        [
            Some(made),
            // Of the state at the start.
            Some("/data/in herited"),
            Some(made),
            // The directory is not known.
            None,
            None,
            // A child has the descriptors of its parent, and its own from then on.
            Some(made),
            Some(made),
            Some(made),
            None,
            Some(made),
        ]
    );
    let open = &rows[0];
    assert_eq!(open.text("flags"), Some("O_WRONLY|O_CREAT|O_APPEND"));
    assert_eq!(open.text("args"), Some("dirfd=AT_FDCWD, mode=0640"));
    assert_eq!(open.text("comm"), Some("worker"));
    let write = &rows[1];
    let numbers = ["pid", "fd", "size", "bytes", "file_offset"].map(|column| write.int(column));
    assert_eq!(numbers, [10, 4, 8192, 8192, 4096].map(Some));
    assert_eq!(rows[7].int("pid"), Some(20));

    let block = query(&session, "SELECT * FROM block");
    assert_eq!(block.len(), 1);
    assert_eq!(block[0].text("device"), Some("sdb"));
    assert_eq!(block[0].text("op"), Some("write"));
    assert_eq!(block[0].text("flags"), Some("SYNC"));
    let numbers = ["sector", "bytes", "error", "cpu", "dur_ns"].map(|column| block[0].int(column));
    assert_eq!(numbers, [2048, 8192, 0, 1, 400].map(Some));

    let totals = &meta(&session)["totals"];
    let counts = ["seen", "stored", "lost"].map(|name| totals[name].as_i64().unwrap());
    assert_eq!(counts, [13, 10, 3]);
    let losses = query(&session, "SELECT stage, cpu, count FROM losses");
    assert_eq!(losses.len(), 1);
    assert_eq!(losses[0].text("stage"), Some("ring"));
    assert_eq!(
        (losses[0].int("cpu"), losses[0].int("count")),
        (Some(1), Some(3))
    );
}

#[test]
fn directories_that_are_no_trace_are_named() {
    let scratch = Scratch::new();
    let output = tools::run(["import".as_ref(), scratch.work().as_os_str()]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("contains no trace in CTF 1.8"), "{errors}");
}

#[test]
fn waits_of_traced_threads_have_reasons() {
    need_babeltrace!();
    let scratch = Scratch::new();
    let trace = written(&scratch, "scheduler");
    let session = scratch.session("imported");
    import(&[&trace], &session);
    let start = 1_700_000_000_001_000_000_i64;

    let lines = |columns: &str, from: &str| {
        let columns: Vec<String> = columns
            .split(", ")
            .map(|column| format!("coalesce(({column})::VARCHAR, '-')"))
            .collect();
        let columns = columns.join(", ");
        let rows = query(
            &session,
            &format!("SELECT concat_ws(' ', {columns}) AS line FROM {from}"),
        );
        let line = |row: &Row| row.text("line").unwrap().to_owned();
        rows.iter().map(line).collect::<Vec<String>>()
    };
    let cause = format!("cause_id - CASE cause WHEN 'block_request' THEN {start} ELSE 0 END");
    let columns = format!(
        "rid IS NOT NULL, ts_ns - {start}, dur_ns, tid, comm, cpu, state, reason, in_syscall, woken_at_ns - {start}, \
         run_queue_ns, waker, waker_tid, cause, {cause}"
    );
    let want = [
        // 13 waits for its read, until the interrupt of the device has completed it.
        "true 6300 700 13 t13 0 io disk pread64 6930 70 irq:virtio0-req.0 - block_request 6200",
        // It waits outside of calls until 14 wakes it, which 13 then keeps from its processor.
        "false 7200 200 13 t13 0 interruptible other - 7300 100 t14 14 thread 14",
        "false 7400 600 14 t14 - preempted cpu - - - - - - -",
        // In a call that has no row.
        "false 7600 200 13 t13 0 interruptible ipc semop 7710 90 timer - timer -",
    ];
    assert_eq!(lines(&columns, "waits ORDER BY ts_ns"), want);

    let want = [
        "device sdb 620 620",
        "irq softirq:TIMER 30 30",
        "sched io 700 10",
        "sched run queue 70 70",
        "syscall pread64 1000 270",
    ];
    let slices = "(SELECT layer, name, sum(dur_ns) AS dur, sum(self_ns) AS own FROM slices GROUP BY ALL ORDER BY ALL)";
    assert_eq!(lines("layer, name, dur, own", slices), want);

    let block = query(&session, "SELECT rid, tid, comm, device_ns FROM block");
    let rid = query(&session, "SELECT rid FROM syscalls")[0].int("rid");
    assert_eq!((block[0].int("rid"), block[0].int("tid")), (rid, Some(13)));
    assert_eq!(
        (block[0].text("comm"), block[0].int("device_ns")),
        (Some("t13"), Some(670))
    );
    let layers = &meta(&session)["layers"];
    let recorded: Vec<&str> = layers
        .as_array()
        .unwrap()
        .iter()
        .filter(|layer| layer["recorded"] == true)
        .map(|layer| layer["name"].as_str().unwrap())
        .collect();
    assert_eq!(recorded, ["syscall", "block", "sched", "irq"]);
}
