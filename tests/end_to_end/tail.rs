//! `fathom record --rows tail` and `--budget`: every call is stored or counted, and those that
//! matter are stored.

use std::path::Path;

use fathom_tests::session::{meta, report};
use fathom_tests::{Record, Recording, Scratch, need_root, workload};
use serde_json::Value;

/// What workload `tail` does.
const SMALL: i64 = 20_000;
const LARGE: i64 = 20;
const LARGE_BYTES: i64 = 8 << 20;
const BAD: i64 = 5;
const MISSING: i64 = 7;
const LOCKS: i64 = 3;

fn record(scratch: &Scratch, options: &[&str], seconds: Option<&str>) -> Recording {
    let dir = scratch.work();
    Record::new(scratch)
        .options(options)
        .command([workload("tail").as_os_str(), dir.as_os_str()])
        .command(seconds)
        .run()
        .must_exit(0)
}

/// What the kernel saw is stored, counted or lost; nothing is lost here.
fn balanced(session: &Path) -> Value {
    let meta = meta(session);
    let total = |name: &str| meta["totals"][name].as_i64().unwrap();
    assert_eq!(
        total("seen"),
        total("stored") + total("counted"),
        "{}",
        meta["totals"]
    );
    assert_eq!(total("lost"), 0);
    meta
}

fn tail_is_exact(options: &[&str]) -> (Scratch, Recording) {
    let scratch = Scratch::new();
    let recording = record(&scratch, options, None);
    let meta = balanced(&recording.session);
    let counted = recording.number("SELECT sum(count)::BIGINT FROM counters");
    assert_eq!(meta["totals"]["counted"], counted);
    assert_eq!(
        meta["totals"]["stored"],
        recording.number("SELECT count(*) FROM syscalls")
    );
    // Sums are of all calls, wherever they are.
    let reads = recording.rows("SELECT * FROM by_syscall WHERE syscall = 'pread64'");
    let of = |name: &str| reads[0].int(name);
    // The loader reads programs, too.
    let more = of("calls").unwrap() - (SMALL + LARGE + BAD);
    assert!((0..16).contains(&more), "{reads:?}");
    assert_eq!(of("errors"), Some(BAD));
    let bytes = SMALL * 4096 + LARGE * LARGE_BYTES;
    assert!((bytes..bytes + 16 * 4096).contains(&of("bytes").unwrap()));
    let file = scratch.work().canonicalize().unwrap().join("read");
    let by_file = recording.rows(&format!(
        "SELECT calls, read_bytes, written_bytes FROM by_file WHERE path = '{}'",
        file.display()
    ));
    assert_eq!(by_file[0].int("read_bytes"), Some(bytes));
    assert_eq!(by_file[0].int("written_bytes"), Some(LARGE_BYTES));
    // The open, the write, the reads and the close at the end, which is no call.
    assert_eq!(by_file[0].int("calls"), Some(SMALL + LARGE + 2));
    let by_process = recording.number("SELECT sum(calls)::BIGINT FROM by_process");
    assert_eq!(meta["totals"]["seen"], by_process);
    let latencies = recording
        .number("SELECT sum(calls)::BIGINT FROM latency_histogram WHERE syscall = 'pread64'");
    assert_eq!(Some(latencies), of("calls"));

    // What failed is there.
    let failed = |name: &str, errno: &str| {
        recording.number(&format!(
            "SELECT count(*) FROM syscalls WHERE syscall = '{name}' AND errno = '{errno}'
                 AND (path IS NULL OR path NOT LIKE '/%/ld.so%')"
        ))
    };
    assert_eq!(failed("pread64", "EBADF"), BAD);
    let missing = recording
        .number("SELECT count(*) FROM syscalls WHERE errno = 'ENOENT' AND path LIKE '%/missing'");
    assert_eq!(missing, MISSING);
    let unstored_errors = recording.number("SELECT coalesce(sum(errors), 0)::BIGINT FROM counters");
    assert_eq!(unstored_errors, 0);
    // So is what waited, with the wait.
    let waited =
        recording.number("SELECT count(*) FROM syscalls WHERE syscall = 'flock' AND dur_ns > 20e6");
    assert_eq!(waited, LOCKS);
    let waits = recording.number(
        "SELECT count(DISTINCT rid) FROM waits JOIN syscalls USING (rid)
         WHERE syscall = 'flock' AND waits.dur_ns > 20e6",
    );
    assert_eq!(waits, LOCKS);
    let dangling = recording.number(
        "SELECT count(*) FROM waits WHERE rid NOT IN (SELECT rid FROM syscalls
         UNION ALL SELECT rid FROM faults)",
    );
    assert_eq!(dangling, 0);
    let report = report(&recording.session);
    assert!(
        report["problems"].to_string().contains("were counted"),
        "{report}"
    );
    (scratch, recording)
}

fn stored_reads(recording: &Recording, bytes: i64) -> i64 {
    recording.number(&format!(
        "SELECT count(*) FROM syscalls WHERE syscall = 'pread64' AND size = {bytes} AND ret >= 0"
    ))
}

#[test]
fn calls_beyond_a_given_time_have_rows() {
    need_root!();
    let (_scratch, recording) =
        tail_is_exact(&["--rows", "tail", "--slower-than", "20ms", "--sample", "0"]);
    // Interrupts make some of them more than a read.
    let plain = recording.number(
        "SELECT count(*) FROM syscalls WHERE syscall = 'pread64' AND errno IS NULL
             AND dur_ns < 20e6 AND rid NOT IN (SELECT rid FROM slices)
             AND rid NOT IN (SELECT rid FROM bios)",
    );
    assert_eq!(plain, 0);
}

#[test]
fn calls_slower_than_usual_have_rows() {
    need_root!();
    let (_scratch, recording) = tail_is_exact(&["--rows", "tail"]);
    assert_eq!(stored_reads(&recording, LARGE_BYTES), LARGE);
    let small = stored_reads(&recording, 4096);
    assert!((1..SMALL / 3).contains(&small), "{small}");
}

#[test]
fn a_sample_has_rows() {
    need_root!();
    let options = ["--rows", "tail", "--slower-than", "10s", "--sample", "4"];
    let (_scratch, recording) = tail_is_exact(&options);
    let small = stored_reads(&recording, 4096);
    // Five standard deviations below, and what interrupts add.
    assert!((SMALL / 4 - 310..SMALL / 2).contains(&small), "{small}");
}

#[test]
fn a_budget_is_kept() {
    need_root!();
    let scratch = Scratch::new();
    // All of it: nothing changes.
    let recording = record(&scratch, &["--budget", "100%"], Some("1"));
    let meta = balanced(&recording.session);
    let calls = recording.text().trim().parse::<i64>().unwrap();
    assert!(recording.number("SELECT count(*) FROM syscalls") >= calls);
    let steps = meta["options"]["tail"]["steps"].as_array().unwrap().clone();
    assert_eq!(steps.len(), 1, "{steps:?}");
    assert_eq!(
        (&steps[0]["rows"], &steps[0]["cost"]),
        (&"all".into(), &Value::Null)
    );
    // Next to nothing: soon calls are only counted.
    let scratch = Scratch::new();
    let recording = record(&scratch, &["--budget", "0.01%"], Some("12"));
    let meta = balanced(&recording.session);
    let calls = recording.text().trim().parse::<i64>().unwrap();
    let seen =
        recording.number("SELECT sum(calls)::BIGINT FROM by_syscall WHERE syscall = 'pread64'");
    assert!((calls..calls + 16).contains(&seen), "{seen} of {calls}");
    let steps = meta["options"]["tail"]["steps"].as_array().unwrap().clone();
    assert_eq!(steps.last().unwrap()["rows"], "none", "{steps:?}");
    let times: Vec<i64> = steps.iter().map(|s| s["at_ns"].as_i64().unwrap()).collect();
    assert!(times.is_sorted());
    let last = times.last().unwrap();
    let later = recording.number(&format!(
        "SELECT count(*) FROM syscalls WHERE ts_ns > {last} AND syscall = 'pread64'"
    ));
    assert_eq!(later, 0);
    assert!(
        recording.stderr.contains("cannot be kept") || steps.len() > 2,
        "{}",
        recording.stderr
    );
}

#[test]
fn options_that_contradict_each_other() {
    need_root!();
    let scratch = Scratch::new();
    for (options, reason) in [
        (&["--sample", "5"] as &[&str], "--rows tail"),
        (&["--slower-than", "5ms"], "--rows tail"),
        (
            &["--rows", "tail", "--detail", "counters"],
            "--rows and --budget",
        ),
        (&["--rows", "tail", "--raw", "/dev/null"], "--raw"),
        (&["--budget", "0"], "percent"),
    ] {
        let recording = Record::new(&scratch)
            .options(options)
            .command(["true"])
            .run();
        let recording = recording.must_exit(2);
        assert!(recording.stderr.contains(reason), "{}", recording.stderr);
    }
}

/// More files than the kernel has room for counters, as long as not all are used in the same second.
#[test]
fn files_that_come_and_go_are_counted_one_by_one() {
    need_root!();
    const FILES: i64 = 24_000;
    const CHURN: &str = "
import os, sys, time
os.chdir(sys.argv[1])
for n in range(24000):
    fd = os.open(f'churn-{n}', os.O_WRONLY | os.O_CREAT, 0o600)
    for _ in range(3):
        os.write(fd, b'x' * 100)
    os.close(fd)
    os.unlink(f'churn-{n}')
    if n % 6000 == 5999:
        time.sleep(1.5)
";
    let scratch = Scratch::new();
    let dir = scratch.work();
    let recording = Record::new(&scratch)
        .options(["--rows", "tail"])
        .command([
            "/usr/bin/python3".as_ref(),
            "-c".as_ref(),
            CHURN.as_ref(),
            dir.as_os_str(),
        ])
        .run()
        .must_exit(0);
    let meta = balanced(&recording.session);
    let counted = recording.number("SELECT sum(count)::BIGINT FROM counters");
    assert_eq!(meta["totals"]["counted"], counted);
    let writes = recording.number(
        "SELECT count(*) FROM (
            SELECT path, sum(n) AS n, sum(bytes) AS bytes FROM (
                SELECT file_id, count AS n, bytes FROM counters WHERE syscall = 'write'
                UNION ALL SELECT file_id, 1, bytes FROM syscalls WHERE syscall = 'write')
            JOIN files USING (file_id) WHERE path LIKE '%/churn-%' GROUP BY path)
         WHERE n = 3 AND bytes = 300",
    );
    assert_eq!(writes, FILES);
    let nobody = recording.number("SELECT count(*) FROM counters WHERE pid < 0");
    assert_eq!(nobody, 0);
}
