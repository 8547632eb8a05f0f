//! The critical path of a request, compared with times that the program itself measured.

use std::process::Command;

use fathom_tests::environment::fathom;
use fathom_tests::{Record, Recording, Scratch, need_program, need_root, session};
use serde_json::Value;

/// One thread holds a lock while it syncs; the other one waits for the lock. The first begins to
/// sync when the kernel says that the other one waits.
const LOCKED: &str = "
import fcntl, os, threading, time
def own():
    fd = os.open('lock', os.O_CREAT | os.O_RDWR)
    fcntl.flock(fd, fcntl.LOCK_EX)
    locked.set()
    inode = f':{os.fstat(fd).st_ino} '
    while not any('->' in line and inode in line for line in open('/proc/locks')):
        time.sleep(0.001)
    data = os.open('data', os.O_CREAT | os.O_RDWR)
    for i in range(30):
        os.pwrite(data, b'x' * 65536, i * 65536)
        os.fdatasync(data)
    print('owner', threading.get_native_id())
    fcntl.flock(fd, fcntl.LOCK_UN)
locked = threading.Event()
thread = threading.Thread(target=own)
thread.start()
locked.wait()
fd = os.open('lock', os.O_RDWR)
begin = time.monotonic_ns()
fcntl.flock(fd, fcntl.LOCK_EX)
print('waited', time.monotonic_ns() - begin)
thread.join()
";

#[test]
fn a_wait_for_a_lock_leads_to_its_owner() {
    need_root!();
    need_program!("python3");
    let scratch = Scratch::new();
    let script = format!("import os\nos.chdir({:?})\n{LOCKED}", scratch.work());
    let recording = Record::new(&scratch)
        .command(["python3", "-c", &script])
        .run()
        .must_exit(0);
    recording.complete();
    let said = recording.text();
    let number = |name: &str| -> i64 {
        let line = said.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|n| n.trim().parse().ok())
            .unwrap_or_else(|| panic!("{name}: {said}"))
    };
    let (owner, waited_ns) = (number("owner"), number("waited"));
    let rid = recording
        .number("SELECT rid FROM syscalls WHERE syscall = 'flock' ORDER BY dur_ns DESC LIMIT 1");
    let path = session::critical_path(&recording.session, rid);
    let dur_ns = path["dur_ns"].as_i64().unwrap();
    // The program's clock includes the interpreter around the call.
    assert!(dur_ns <= waited_ns, "{dur_ns} of {waited_ns}");
    assert!(dur_ns * 10 > waited_ns * 9, "{dur_ns} of {waited_ns}");
    let segments = path["segments"].as_array().unwrap();
    let mut at_ns = path["from_ns"].as_i64().unwrap();
    let mut of_owner_ns = 0;
    for segment in segments {
        assert_eq!(segment["ts_ns"].as_i64(), Some(at_ns), "{segment}");
        let dur_ns = segment["dur_ns"].as_i64().unwrap();
        at_ns += dur_ns;
        if segment["tid"].as_i64() == Some(owner) {
            assert_eq!(segment["depth"], 1, "{segment}");
            assert_eq!(segment["because"]["rid"].as_i64(), Some(rid), "{segment}");
            of_owner_ns += dur_ns;
        }
    }
    assert_eq!(at_ns, path["until_ns"].as_i64().unwrap());
    assert!(of_owner_ns * 10 > dur_ns * 9, "{of_owner_ns} of {dur_ns}");
    let syncs = |segment: &&Value| segment["syscall"] == "fdatasync";
    assert!(segments.iter().filter(syncs).count() >= 30);
    in_sql(&recording, &path);
}

/// The rows of table function `critical_path` are the segments of `path`, which is of a request.
fn in_sql(recording: &Recording, path: &Value) {
    let (rid, tid) = (&path["rid"], &path["tid"]);
    let (from_ns, until_ns) = (&path["from_ns"], &path["until_ns"]);
    let members = [
        ("culprit_kind", "/culprit/kind"),
        ("culprit", "/culprit/name"),
        ("culprit_tid", "/culprit/tid"),
        ("block_ts_ns", "/block/ts_ns"),
        ("block_device", "/block/device"),
        ("block_op", "/block/op"),
        ("block_bytes", "/block/bytes"),
        ("block_path", "/block/path"),
        ("block_part", "/block/part"),
        ("because_tid", "/because/tid"),
        ("because_reason", "/because/reason"),
        ("because_syscall", "/because/syscall"),
        ("because_rid", "/because/rid"),
    ];
    let own = [
        "ts_ns", "dur_ns", "depth", "tid", "comm", "pid", "process", "state", "reason", "syscall",
        "rid", "path",
    ];
    let own = own.map(|name| (name, format!("/{name}")));
    let members = members.map(|(name, at)| (name, at.to_owned()));
    let segments = path["segments"].as_array().unwrap();
    let of_thread = format!("critical_path({tid}, {from_ns}, {until_ns})");
    for call in [format!("critical_path({rid})"), of_thread.clone()] {
        let rows = recording.rows(&format!("FROM {call} ORDER BY ts_ns"));
        assert_eq!(rows.len(), segments.len(), "{call}");
        for (row, segment) in rows.iter().zip(segments) {
            for (column, at) in own.iter().chain(&members) {
                let expected = segment.pointer(at).unwrap_or(&Value::Null);
                assert_eq!(row.value(column), expected, "{call}: {column} of {segment}");
            }
        }
    }
    let dur_ns = format!("(SELECT dur_ns FROM syscalls WHERE rid = {rid})");
    let sum = format!("SELECT sum(dur_ns) - {dur_ns} FROM critical_path({rid})");
    assert_eq!(recording.number(&sum), 0);
    // Several calls in one statement, and null for the thread's whole time.
    let several = format!(
        "SELECT count(*) FROM critical_path({tid}, NULL, NULL) a, critical_path({rid}) b, \
         {of_thread} c WHERE a.depth = 0 AND a.ts_ns < b.ts_ns AND b.ts_ns = c.ts_ns"
    );
    assert!(recording.number(&several) > 0);
    let refused = |sql: &str| session::try_query(&recording.session, sql).err().unwrap();
    let unknown = refused("FROM critical_path(999999999)");
    assert!(
        unknown.contains("no request 999999999 in this session"),
        "{unknown}"
    );
    let why = Command::new(fathom())
        .args(["why", "--request", "999999999"])
        .arg(&recording.session)
        .output()
        .unwrap();
    assert_eq!(why.status.code(), Some(2), "{why:?}");
    let lateral = refused("SELECT count(*) FROM syscalls s, critical_path(s.rid) p");
    assert!(lateral.contains("is not a whole number"), "{lateral}");
}
