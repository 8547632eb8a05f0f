//! NFS: its requests against the kernel's own counts in `/proc/self/mountstats`.

use std::collections::BTreeMap;
use std::fs;

use fathom_tests::session::meta;
use fathom_tests::{Record, Scratch, need_program, need_root, skip};

use super::nothing_lost;
use crate::layers::adds_up;

/// Serves directory `argv[1]` over NFS 4.1 to this machine, as the programs of nfs-utils would have
/// the kernel do, and mounts it at `argv[2]`.
const SERVE: &str = r#"
import ctypes, os, sys
exported, mounted = sys.argv[1:]
libc = ctypes.CDLL(None, use_errno=True)
def mount(source, target, kind, options=""):
    words = [word.encode() for word in (source, target, kind)]
    if libc.mount(*words, 0, options.encode()):
        raise OSError(ctypes.get_errno(), f"mount {kind}")
def write(path, text):
    with open(path, "wb", buffering=0) as file:
        file.write(text.encode())
if not os.path.exists("/proc/fs/nfsd/threads"):
    mount("nfsd", "/proc/fs/nfsd", "nfsd")
later, flags = 2147483647, 0x2402  # insecure ports, no check of subtrees, a number for the root
write("/proc/net/rpc/auth.unix.ip/channel", f"nfsd 127.0.0.1 {later} localhost\n")
write("/proc/net/rpc/nfsd.export/channel", f"localhost {exported} {later} {flags} 65534 65534 0\n")
write("/proc/net/rpc/nfsd.fh/channel", f"localhost 1 \\x00000000 {later} {exported}\n")
for version in open("/proc/fs/nfsd/versions").read().split():
    if version[1] in "23":
        write("/proc/fs/nfsd/versions", f"-{version[1:]}\n")  # they want programs of their own
# Seconds for which nobody may open a file, as clients of a server before it may come back.
for time in "nfsv4leasetime", "nfsv4gracetime":
    write(f"/proc/fs/nfsd/{time}", "10")
write("/proc/fs/nfsd/portlist", "tcp 2049")
write("/proc/fs/nfsd/threads", "2")
mount("127.0.0.1:/", mounted, "nfs4", "vers=4.1,addr=127.0.0.1,clientaddr=127.0.0.1,sec=sys,timeo=600")
open(mounted + "/ready", "w").close()
"#;

/// Writes, syncs, reads, looks up and removes files below `argv[1]`, and leaves the kernel's counts
/// of the mount before and after that in files `argv[2]` and `argv[3]`.
const USE: &str = r#"
import os, shutil, sys
mounted, before, after = sys.argv[1:]
def counts(path):
    # Its own reading makes no requests.
    shutil.copyfile("/proc/self/mountstats", path)
counts(before)
path = mounted + "/file"
file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
for part in range(64):
    os.pwrite(file, b"fathom" * 8192, part * 49152)
os.fsync(file)
os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
for part in range(64):
    assert len(os.pread(file, 49152, part * 49152)) == 49152
os.close(file)
os.mkdir(mounted + "/directory")
assert not os.path.exists(mounted + "/none")
os.rename(path, mounted + "/directory/file")
assert os.listdir(mounted + "/directory") == ["file"]
os.unlink(mounted + "/directory/file")
os.rmdir(mounted + "/directory")
counts(after)
"#;

/// Of each procedure of the mount: requests, and in milliseconds, times in the backlog, until the
/// answer, and in all.
fn counts(text: &str, mounted: &str) -> BTreeMap<String, [i64; 4]> {
    let of_mount = text
        .split("\ndevice ")
        .find(|of| of.contains(&format!(" mounted on {mounted} ")))
        .unwrap_or_else(|| panic!("no {mounted} in {text}"));
    let procedures = of_mount.split("per-op statistics").nth(1).unwrap().lines();
    let count = |line: &str| {
        let (name, numbers) = line.trim().split_once(": ")?;
        let numbers: Vec<i64> = numbers
            .split_whitespace()
            .map(|n| n.parse().unwrap())
            .collect();
        Some((
            name.to_owned(),
            [numbers[0], numbers[5], numbers[6], numbers[7]],
        ))
    };
    procedures.filter_map(count).collect()
}

#[test]
fn requests_to_a_server() {
    need_root!();
    need_program!("python3");
    if !fs::exists("/proc/net/rpc/nfsd.export/channel").unwrap() {
        return skip("this kernel serves no NFS");
    }
    let scratch = Scratch::new();
    let path = |name| scratch.root().join(name);
    let (exported, mounted) = (path("exported"), path("mounted"));
    fs::create_dir(&exported).unwrap();
    fs::create_dir(&mounted).unwrap();
    let arguments = |script, paths: &[&std::path::Path]| {
        let mut words = vec!["-c".into(), std::ffi::OsString::from(script)];
        words.extend(paths.iter().map(|path| path.as_os_str().to_owned()));
        words
    };
    fathom_tests::environment::must_run("python3", arguments(SERVE, &[&exported, &mounted]));
    let (before, after) = (path("before"), path("after"));
    let recording = Record::new(&scratch)
        .command(["python3"])
        .command(arguments(USE, &[&mounted, &before, &after]))
        .run()
        .must_exit(0);
    fathom_tests::environment::must_run("umount", [&mounted]);
    nothing_lost(&recording);
    let meta = meta(&recording.session);
    let layers = meta["layers"].as_array().unwrap();
    let nfs = layers.iter().find(|layer| layer["name"] == "nfs").unwrap();
    if nfs["recorded"] != true {
        return skip(nfs["reason"].as_str().unwrap());
    }
    let mounted = mounted.to_str().unwrap();
    let [before, after] =
        [before, after].map(|path| counts(&fs::read_to_string(path).unwrap(), mounted));
    let made: BTreeMap<&str, [i64; 4]> = after
        .iter()
        .map(|(name, after)| {
            let before = before.get(name).copied().unwrap_or_default();
            (name.as_str(), std::array::from_fn(|i| after[i] - before[i]))
        })
        .filter(|(_, made): &(_, [i64; 4])| made[0] > 0)
        .collect();
    let rows = recording.rows(
        "SELECT name, count(*) AS n, sum(dur_ns)::BIGINT AS dur_ns FROM slices
         WHERE layer = 'nfs' GROUP BY name ORDER BY name",
    );
    let seen: BTreeMap<&str, (i64, i64)> = rows
        .iter()
        .map(|row| {
            let numbers = (row.int("n").unwrap(), row.int("dur_ns").unwrap());
            (row.text("name").unwrap(), numbers)
        })
        .collect();
    let total = |of: &dyn Fn(&[i64; 4]) -> i64| made.values().map(of).sum::<i64>();
    // The kernel's workers commit what was written, close files, and renew the lease of the client
    // (SEQUENCE alone) where the machine is so slow that this takes seconds.
    let by_workers = |name: &str| matches!(name, "COMMIT" | "CLOSE" | "SEQUENCE");
    let of_threads: i64 = made
        .iter()
        .filter(|(name, _)| !by_workers(name))
        .map(|(_, made)| made[0])
        .sum();
    let spans = meta["totals"]["layers"]["fs"].as_i64().unwrap();
    assert!(
        (of_threads..=total(&|made| made[0])).contains(&spans),
        "{spans} {made:?}"
    );
    for (name, [requests, _, answered_ms, whole_ms]) in &made {
        let (n, ns) = seen.get(name).copied().unwrap_or_default();
        if by_workers(name) || matches!(*name, "READ" | "WRITE") {
            // Nor does a call wait for all that is read ahead and written.
            assert!(n <= *requests, "{name} {seen:?} {made:?}");
            continue;
        }
        assert_eq!(n, *requests, "{name} {seen:?} {made:?}");
        // The kernel's are whole milliseconds, before and after.
        let (least, most) = ((answered_ms - 1) * 1_000_000, (whole_ms + 1) * 1_000_000);
        assert!((least..=most).contains(&ns), "{name} {seen:?} {made:?}");
    }
    for name in ["OPEN", "READ", "WRITE", "LOOKUP", "RENAME", "REMOVE"] {
        assert!(seen[name].0 > 0, "{name} {seen:?}");
    }
    let within = recording.number(
        "SELECT count(*) FROM slices s JOIN syscalls c USING (rid)
         WHERE layer = 'nfs' AND s.ts_ns >= c.ts_ns AND s.ts_ns + s.dur_ns <= c.ts_ns + c.dur_ns",
    );
    assert_eq!(within, seen.values().map(|(n, _)| n).sum::<i64>());
    adds_up(&recording);
    // Whoever sleeps until the answer comes waits for the server.
    let sleeps = recording.rows(
        "SELECT coalesce(sum(dur_ns), 0)::BIGINT AS asleep_ns, coalesce(sum(self_ns), 0)::BIGINT AS own_ns
         FROM slices SEMI JOIN (SELECT rid FROM syscalls
             WHERE syscall IN ('mkdir', 'rename', 'unlink', 'rmdir', 'getdents64')) USING (rid)
         WHERE layer = 'sched' AND name NOT IN ('preempted', 'run queue')",
    );
    let [asleep, own] = ["asleep_ns", "own_ns"].map(|name| sleeps[0].int(name).unwrap());
    assert!(asleep > 0 && own * 2 < asleep, "{sleeps:?}");
}
