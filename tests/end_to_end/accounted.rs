//! What the kernel accounts of a process, in /proc/PID/io (proc_pid_io(5)) and getrusage,
//! against the tables.

use std::collections::BTreeMap;

use fathom_tests::{Record, Scratch, need_root, workload};

/// From the reading before the window, whose own read counts, to the one behind it.
const WINDOW: &str = "WITH readings AS (
         SELECT row_number() OVER (ORDER BY ts_ns) AS reading, pid, ts_ns
         FROM syscalls WHERE syscall = 'read' AND path LIKE '/proc/%/io'),
     bounds AS (
         SELECT any_value(pid) AS process, min(ts_ns) FILTER (reading = 3) AS since_ns,
             max(ts_ns) FILTER (reading = 4) AS until_ns
         FROM readings)";

#[test]
fn what_the_kernel_accounts_of_a_process() {
    need_root!();
    let scratch = Scratch::new();
    let recording = Record::new(&scratch)
        .command([workload("usage").as_os_str(), scratch.work().as_os_str()])
        .run()
        .must_exit(0);
    recording.complete();
    // Each name comes twice: before the window and behind it.
    let mut grown: BTreeMap<String, i64> = BTreeMap::new();
    for line in recording.text().lines() {
        let (name, value) = line.split_once(": ").unwrap();
        let value: i64 = value.parse().unwrap();
        let before = grown.get(name).copied();
        grown.insert(name.into(), before.map_or(value, |before| value - before));
    }
    let calls = recording.rows(&format!(
        "{WINDOW},
         calls AS (
             SELECT bytes, errno IS NULL AND syscall IN ('read', 'readv', 'pread64', 'preadv') AS reads,
                 errno IS NULL AND syscall IN ('write', 'writev', 'pwrite64', 'pwritev') AS writes,
                 syscall IN ('sendfile', 'copy_file_range') AS both_ways
             FROM syscalls, bounds
             WHERE pid = process AND ts_ns >= since_ns AND ts_ns < until_ns)
         SELECT coalesce(sum(bytes) FILTER (reads OR both_ways), 0)::BIGINT AS rchar,
             coalesce(sum(bytes) FILTER (writes OR both_ways), 0)::BIGINT AS wchar,
             count(*) FILTER (reads OR both_ways) AS syscr,
             count(*) FILTER (writes OR both_ways) AS syscw
         FROM calls"
    ));
    let below = recording.rows(&format!(
        "{WINDOW}
         SELECT (SELECT coalesce(sum(x.bytes), 0)::BIGINT
                 FROM bios x JOIN block b USING (block_id)
                 WHERE x.pid = process AND b.op = 'read'
                     AND x.ts_ns BETWEEN since_ns AND until_ns) AS read_bytes,
             (SELECT count(*) FROM faults f WHERE f.pid = process AND kind = 'minor'
                 AND f.ts_ns BETWEEN since_ns AND until_ns) AS minor_faults,
             (SELECT count(*) FROM faults f WHERE f.pid = process AND kind = 'major'
                 AND f.ts_ns BETWEEN since_ns AND until_ns) AS major_faults
         FROM bounds"
    ));
    for name in ["rchar", "wchar", "syscr", "syscw"] {
        assert_eq!(
            calls[0].int(name),
            grown.get(name).copied(),
            "{name}: {calls:?}"
        );
    }
    for name in ["read_bytes", "minor_faults", "major_faults"] {
        assert_eq!(
            below[0].int(name),
            grown.get(name).copied(),
            "{name}: {below:?}"
        );
    }
    // The window is not empty.
    assert!(
        grown["rchar"] > 100_000 && grown["wchar"] > 50_000,
        "{grown:?}"
    );
    assert!(
        grown["minor_faults"] + grown["major_faults"] >= 48,
        "{grown:?}"
    );
}
