//! SCSI disks of the kernel's own simulation (scsi_debug) that fail or do not answer, as they are
//! told to.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use fathom_tests::{Record, Recording, Scratch, need_program, need_root, skip};

use super::{lock, moved, nothing_lost, recorded, stat};

/// All its disks have the same options.
static OPTIONS: Mutex<()> = Mutex::new(());

/// BLK_STS_MEDIUM of the kernel.
const MEDIUM: i64 = 7;

/// A disk of scsi_debug, taken away when dropped.
struct Disk {
    name: String,
    _alone: MutexGuard<'static, ()>,
}

impl Disk {
    /// None where the kernel has no scsi_debug.
    fn make() -> Option<Disk> {
        let alone = lock(&OPTIONS);
        if !driver().exists() {
            return None;
        }
        set("add_host", "1");
        let begin = Instant::now();
        let name = loop {
            if let Some(name) = simulated() {
                break name;
            }
            assert!(begin.elapsed() < Duration::from_secs(60), "no disk");
            std::thread::sleep(Duration::from_millis(20));
        };
        Some(Disk {
            name,
            _alone: alone,
        })
    }

    fn path(&self) -> String {
        format!("/dev/{}", self.name)
    }

    fn attribute(&self, name: &str) -> PathBuf {
        Path::new("/sys/block")
            .join(&self.name)
            .join("device")
            .join(name)
    }

    /// A counter of commands; none if this kernel does not have it.
    fn counter(&self, name: &str) -> Option<i64> {
        let text = fs::read_to_string(self.attribute(name)).ok()?;
        Some(i64::from_str_radix(text.trim().trim_start_matches("0x"), 16).unwrap())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        for (name, value) in [("every_nth", "0"), ("opts", "0"), ("add_host", "-1")] {
            let _ = fs::write(driver().join(name), value);
        }
    }
}

fn driver() -> PathBuf {
    "/sys/bus/pseudo/drivers/scsi_debug".into()
}

fn set(name: &str, value: &str) {
    fs::write(driver().join(name), value).unwrap();
}

/// The disk, once it can be opened.
fn simulated() -> Option<String> {
    let disks = fs::read_dir("/sys/block").unwrap();
    let mut names = disks.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.find(|name| {
        let model = fs::read_to_string(format!("/sys/block/{name}/device/model"));
        model.is_ok_and(|model| model.trim() == "scsi_debug")
            && fs::File::open(format!("/dev/{name}")).is_ok()
    })
}

/// Reads blocks of 4 KiB of `argv[1]`, once for each further argument: `direct`, past the page
/// cache, or `buffered`, the first block, the one behind the last, and blocks a call. Says for each
/// call what it returned and how many nanoseconds it took.
const READS: &str = r#"
import mmap, os, sys, time
for argument in sys.argv[2:]:
    way, *numbers = argument.split(",")
    begin, end, piece = map(int, numbers)
    fd = os.open(sys.argv[1], os.O_RDONLY | (os.O_DIRECT if way == "direct" else 0))
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_RANDOM)
    memory = mmap.mmap(-1, piece * 4096)
    for block in range(begin, end, piece):
        start = time.monotonic_ns()
        try:
            returned = os.preadv(fd, [memory], block * 4096)
        except OSError as error:
            returned = -error.errno
        print(returned, time.monotonic_ns() - start)
    os.close(fd)
"#;

/// A read as the program saw it.
struct Read {
    returned: i64,
    ns: i64,
}

/// Records reads of a disk. The calls are those that the program made.
fn record(scratch: &Scratch, disk: &Disk, reads: &[&str]) -> (Recording, Vec<Read>) {
    let before = stat(&disk.name);
    let recording = Record::new(scratch)
        .command(["python3", "-c", READS, &disk.path()])
        .command(reads)
        .run()
        .must_exit(0);
    nothing_lost(&recording);
    assert_eq!(recorded(&recording)[&disk.name], moved(&disk.name, &before));
    let text = recording.text();
    let lines = text.lines().map(|line| {
        let (returned, ns) = line.split_once(' ').unwrap();
        Read {
            returned: returned.parse().unwrap(),
            ns: ns.parse().unwrap(),
        }
    });
    let reads: Vec<Read> = lines.collect();
    let rows = recording.rows(&format!(
        "SELECT ret, errno, dur_ns FROM syscalls
         WHERE path = '{}' AND syscall LIKE 'pread%' ORDER BY ts_ns",
        disk.path()
    ));
    assert_eq!(rows.len(), reads.len(), "{text}");
    for (row, read) in rows.iter().zip(&reads) {
        assert_eq!(row.int("ret"), Some(read.returned), "{row:?}");
        assert!(row.int("dur_ns").unwrap() <= read.ns, "{row:?}");
        let errno = match read.returned {
            -5 => Some("EIO"),
            -61 => Some("ENODATA"),
            _ => None,
        };
        assert_eq!(row.text("errno"), errno, "{row:?}");
    }
    (recording, reads)
}

#[test]
fn reads_of_a_bad_medium() {
    need_root!();
    need_program!("python3");
    let Some(disk) = Disk::make() else {
        return skip("this kernel has no scsi_debug");
    };
    // Reads of sectors 4660 to 4669 fail. They are in two blocks of 4 KiB, 582 and 583.
    set("opts", "2");
    let errors = disk.counter("ioerr_cnt").unwrap();
    let scratch = Scratch::new();
    // Of a piece of 16 blocks some are read before the first bad sector.
    let ways = [
        "direct,560,608,1",
        "direct,560,608,16",
        "buffered,560,608,1",
    ];
    let (recording, reads) = record(&scratch, &disk, &ways);
    let failed = |errno: i64| reads.iter().filter(|read| read.returned == -errno).count();
    assert_eq!((failed(61), failed(5)), (2 + 1, 2));
    assert_eq!(reads.iter().filter(|read| read.returned < 0).count(), 5);
    let rows = recording.rows(&format!(
        "SELECT b.error, b.sector, b.bytes // 512 AS sectors, b.requeues, s.ret
         FROM block b LEFT JOIN syscalls s USING (rid) WHERE b.device = '{}'",
        disk.name
    ));
    // What fails is what has a bad sector, and its call fails.
    for row in &rows {
        let (sector, sectors) = (row.int("sector").unwrap(), row.int("sectors").unwrap());
        let bad = sector < 4670 && sector + sectors > 4660;
        let expected = if bad { MEDIUM } else { 0 };
        assert_eq!(row.int("error"), Some(expected), "{row:?}");
        assert_eq!(row.int("ret").unwrap() < 0, bad, "{row:?}");
    }
    let failed = rows.iter().filter(|row| row.int("error") != Some(0));
    let failed = failed.count() as i64;
    let counted = disk.counter("ioerr_cnt").unwrap() - errors;
    assert_eq!(failed, counted, "{rows:?}");
    let told = format!(
        "SELECT errors FROM by_device WHERE device = '{}'",
        disk.name
    );
    assert_eq!(recording.number(&told), failed);
}

#[test]
fn commands_without_an_answer() {
    need_root!();
    need_program!("python3");
    let Some(disk) = Disk::make() else {
        return skip("this kernel has no scsi_debug");
    };
    // After a second it is given up, and asked again.
    fs::write(disk.attribute("timeout"), "1").unwrap();
    set("opts", "4");
    set("every_nth", "8");
    let timeouts = disk.counter("iotmo_cnt");
    let scratch = Scratch::new();
    let (recording, reads) = record(&scratch, &disk, &["direct,0,12,1"]);
    assert!(reads.iter().all(|read| read.returned == 4096));
    let rows = recording.rows(&format!(
        "SELECT s.dur_ns, b.error, b.device_ns, b.requeues,
             (SELECT sum(self_ns)::BIGINT FROM slices
              WHERE rid = s.rid AND layer = 'device' AND name = b.device) AS slices_ns
         FROM block b JOIN syscalls s USING (rid)
         WHERE b.device = '{}' AND b.requeues > 0",
        disk.name
    ));
    let slow = reads.iter().filter(|read| read.ns >= 1_000_000_000).count();
    assert!((1..=slow).contains(&rows.len()), "{slow}: {rows:?}");
    // All that time the device had the request.
    for row in &rows {
        let int = |name| row.int(name).unwrap();
        assert_eq!(int("error"), 0, "{row:?}");
        assert!(int("slices_ns") >= 1_000_000_000, "{row:?}");
        assert!(int("slices_ns") <= int("device_ns"), "{row:?}");
        assert!(int("device_ns") <= int("dur_ns"), "{row:?}");
    }
    let requeues: i64 = rows.iter().map(|row| row.int("requeues").unwrap()).sum();
    if let Some(timeouts) = timeouts {
        assert_eq!(disk.counter("iotmo_cnt").unwrap() - timeouts, requeues);
    }
}
