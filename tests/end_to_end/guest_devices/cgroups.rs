//! Limits of cgroups on an NVMe disk, and memory that is pushed out to it.

use std::fs;
use std::path::{Path, PathBuf};

use fathom_tests::environment::must_run;
use fathom_tests::{Record, Scratch, need_program, need_root, skip};

use super::{moved, nothing_lost, nvme, recorded, stat};

/// A cgroup of version 2, taken away when dropped.
struct Cgroup(PathBuf);

impl Cgroup {
    /// None where a controller is missing.
    fn make(name: &str, controller: &str) -> Option<Cgroup> {
        let root = Path::new("/sys/fs/cgroup");
        let controllers = fs::read_to_string(root.join("cgroup.controllers")).ok()?;
        if !controllers
            .split_whitespace()
            .any(|word| word == controller)
        {
            return None;
        }
        let own = format!("+{controller}");
        fs::write(root.join("cgroup.subtree_control"), own).unwrap();
        let group = root.join(name);
        fs::create_dir(&group).unwrap();
        Some(Cgroup(group))
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// Reads and writes device $2 in cgroup $1.
const LIMITED: &str = r#"set -e
echo $$ > "$1/cgroup.procs"
dd if="$2" of=/dev/null bs=64k count=8 iflag=direct
dd if=/dev/zero of="$2" bs=64k count=8 oflag=direct
"#;

/// Bytes that each of the two moves, and that the limit allows in a second.
const BYTES: i64 = 8 << 16;
const RATE: i64 = 1 << 18;

/// What is held back by `io.max` waits for its device.
#[test]
fn a_limit_of_bytes() {
    need_root!();
    let Some((disk, _alone)) = nvme::disk() else {
        return skip("no NVMe disk here is there for tests");
    };
    let Some(group) = Cgroup::make("fathom-io", "io") else {
        return skip("there is no controller of I/O for cgroups of version 2");
    };
    let device = fs::read_to_string(format!("/sys/block/{disk}/dev")).unwrap();
    let device = device.trim();
    let limit = format!("{device} rbps={RATE} wbps={RATE}");
    fs::write(group.file("io.max"), limit).unwrap();
    let scratch = Scratch::new();
    let before = stat(&disk);
    let recording = Record::new(&scratch)
        .command(["sh", "-c", LIMITED, "script"])
        .command([&group.0, &Path::new("/dev").join(&disk)])
        .run()
        .must_exit(0);
    nothing_lost(&recording);
    let counted = moved(&disk, &before);
    assert_eq!(recorded(&recording)[&disk], counted);
    // The cgroup's own counters: `259:0 rbytes=... wbytes=... rios=... wios=...`.
    let counters = fs::read_to_string(group.file("io.stat")).unwrap();
    let line = counters
        .lines()
        .find(|line| line.starts_with(device))
        .unwrap();
    let counter = |name: &str| -> i64 {
        let mut words = line.split(' ').filter_map(|word| word.split_once('='));
        words
            .find(|(key, _)| *key == name)
            .unwrap()
            .1
            .parse()
            .unwrap()
    };
    // A thread of the kernel submits what was held back, so not all of it has its call.
    let rows = recording.rows(&format!(
        "SELECT op, sum(bytes)::BIGINT AS bytes, count(*) AS n FROM block
         WHERE device = '{disk}' GROUP BY ALL ORDER BY op"
    ));
    let [reads, writes] = &rows[..] else {
        panic!("{rows:?}");
    };
    for (row, bytes, requests) in [(reads, "rbytes", "rios"), (writes, "wbytes", "wios")] {
        assert_eq!(row.int("bytes"), Some(BYTES), "{row:?}");
        assert_eq!(row.int("bytes"), Some(counter(bytes)), "{line}");
        assert_eq!(row.int("n"), Some(counter(requests)), "{line}");
    }
    // What the rate asks for, less what the kernel allows at once and what the programs take.
    let least = 2 * BYTES / 2 * 1_000_000_000 / RATE;
    let waited = recording.number(&format!(
        "SELECT sum(w.dur_ns)::BIGINT FROM waits w JOIN syscalls s USING (rid)
         WHERE s.path = '/dev/{disk}' AND s.syscall IN ('read', 'write') AND w.reason = 'disk'"
    ));
    assert!(waited >= least, "{waited} ns, not {least} ns");
}

/// Fills memory, has all of it pushed out by cgroup `argv[1]`, and touches it again. Says how
/// many major faults it had meanwhile.
const TOUCHES: &str = r#"
import mmap, os, sys
group = sys.argv[1]
with open(group + "/cgroup.procs", "w") as file:
    file.write(str(os.getpid()))
size = 32 << 20
memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
memory.madvise(mmap.MADV_NOHUGEPAGE)
memory.madvise(mmap.MADV_RANDOM)
def touch():
    for at in range(0, size, 4096):
        memory[at] = memory[at] + 1
def major_faults():
    with open("/proc/self/stat") as file:
        return int(file.read().rsplit(")", 1)[1].split()[9])
touch()
try:
    with open(group + "/memory.reclaim", "w") as file:
        file.write(str(size))
except OSError:
    # Not all that was asked for.
    pass
before = major_faults()
touch()
print(major_faults() - before)
"#;

/// Pages that the kernel read from and wrote to swap space since it runs.
fn swapped() -> [i64; 2] {
    let text = fs::read_to_string("/proc/vmstat").unwrap();
    ["pswpin ", "pswpout "].map(|name| {
        let mut lines = text.lines();
        let value = lines.find_map(|line| line.strip_prefix(name)).unwrap();
        value.parse().unwrap()
    })
}

/// Swap space on a disk, taken away when dropped.
struct Swap(PathBuf);

impl Drop for Swap {
    fn drop(&mut self) {
        let _ = std::process::Command::new("swapoff").arg(&self.0).output();
    }
}

#[test]
fn memory_that_was_pushed_out() {
    need_root!();
    need_program!("python3", "mkswap", "swapon", "swapoff");
    let Some((disk, _alone)) = nvme::disk() else {
        return skip("no NVMe disk here is there for tests");
    };
    let Some(group) = Cgroup::make("fathom-memory", "memory") else {
        return skip("there is no controller of memory for cgroups of version 2");
    };
    if !group.file("memory.reclaim").exists() {
        return skip("this kernel pushes no memory out when it is asked to");
    }
    let path = Path::new("/dev").join(&disk);
    must_run("mkswap", [&path]);
    must_run("swapon", [&path]);
    let swap = Swap(path);
    let scratch = Scratch::new();
    let (before, pages) = (stat(&disk), swapped());
    let recording = Record::new(&scratch)
        .command(["python3", "-c", TOUCHES])
        .command([&group.0])
        .run()
        .must_exit(0);
    nothing_lost(&recording);
    let faults: i64 = recording.text().trim().parse().unwrap();
    let counted = moved(&disk, &before);
    let moved = swapped();
    let sectors = [0, 1].map(|at| (moved[at] - pages[at]) * 8);
    drop(swap);
    assert_eq!(recorded(&recording)[&disk], counted);
    // All that the disk did was for swap space.
    assert_eq!([counted[1], counted[3]], sectors);
    let waits = &recording.rows(
        "SELECT count(*) FILTER (reason = 'swap') AS swap, count(*) FILTER (reason = 'swap' AND (
                 rid IS NOT NULL OR in_syscall IS NOT NULL OR state <> 'io'
             )) AS wrong,
             count(*) FILTER (reason = 'page_fault' AND rid IS NULL AND dur_ns IS NOT NULL) AS lost
         FROM waits WHERE comm = 'python3'",
    )[0];
    assert!(faults > 0);
    assert!(waits.int("swap").unwrap() > 0, "{waits:?}, {faults} faults");
    assert_eq!(waits.int("wrong"), Some(0), "{waits:?}");
    assert_eq!(waits.int("lost"), Some(0), "{waits:?}");
}
