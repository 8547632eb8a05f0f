//! The critical path of a request, compared with times that the program itself measured.

use fathom_tests::{Record, Scratch, need_program, need_root, session};
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
}
