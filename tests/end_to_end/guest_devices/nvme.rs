//! An NVMe disk: its requests, and those of devices over it.

use std::fs;
use std::path::Path;
use std::sync::{Mutex, MutexGuard};

use fathom_tests::{Record, Scratch, need_program, need_root, skip};

use super::{Mapped, has_device_mapper, lock, moved, nothing_lost, recorded, stat};
use crate::devices::measure;

/// Its counters are those of one test.
static DISK: Mutex<()> = Mutex::new(());

/// The disk of the emulated machine that is there for tests, for one test. None on a machine
/// without it.
pub(super) fn disk() -> Option<(String, MutexGuard<'static, ()>)> {
    let alone = lock(&DISK);
    let disks = fs::read_dir("/sys/block").ok()?;
    let mut names = disks.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let name = names.find(|name| {
        let serial = fs::read_to_string(format!("/sys/block/{name}/device/serial"));
        serial.is_ok_and(|serial| serial.trim() == "fathom-nvme")
    })?;
    Some((name, alone))
}

#[test]
fn requests_of_threads() {
    need_root!();
    need_program!("fio");
    let Some((disk, _alone)) = disk() else {
        return skip("no NVMe disk here is there for tests");
    };
    for threads in [1, 4] {
        let scratch = Scratch::new();
        let measured = measure(&scratch, &disk, threads);
        let rows = measured.recording.rows(&format!(
            "SELECT count(*) AS n, count(wait_ns) AS waits, count(device_ns) AS times,
                 count(*) FILTER (wait_ns + device_ns = dur_ns) AS sums,
                 count(*) FILTER (error = 0) AS good, max(queue_depth) AS depth
             FROM block WHERE device = '{disk}' AND rid IS NOT NULL"
        ));
        let row = &rows[0];
        for name in ["waits", "times", "sums", "good"] {
            assert_eq!(row.int(name), row.int("n"), "{name}: {row:?}");
        }
        assert!(row.int("depth").unwrap() <= threads, "{row:?}");
    }
}

/// Reads and writes past the page cache, of pieces that two devices share.
const ACROSS: &str = r#"set -e
dd if=/dev/zero of="$1" bs=96k count=20 oflag=direct
dd if="$1" of=/dev/null bs=96k count=20 iflag=direct
"#;

/// A device of the device mapper has no requests: those of the devices below are all there are.
#[test]
fn requests_below_the_device_mapper() {
    need_root!();
    need_program!("dmsetup", "losetup");
    let Some((disk, _alone)) = disk() else {
        return skip("no NVMe disk here is there for tests");
    };
    if !has_device_mapper() {
        return skip("this kernel has no device mapper");
    }
    let scratch = Scratch::new();
    let other = super::Loop::make(&scratch.root().join("image"), 64 << 20);
    let path = Path::new("/dev").join(&disk);
    // Pieces of 64 KiB in turns.
    let sectors = 64 << 11;
    let (first, second) = (path.display(), other.path.display());
    let striped = Mapped::make(&format!("0 {sectors} striped 2 128 {first} 0 {second} 0"));
    let below = [disk, other.name()];
    let before: Vec<_> = below.iter().map(|name| stat(name)).collect();
    let recording = Record::new(&scratch)
        .command(["sh", "-c", ACROSS, "script"])
        .command([striped.path()])
        .run()
        .must_exit(0);
    nothing_lost(&recording);
    let recorded = recorded(&recording);
    let mut sectors = [0, 0];
    for (name, before) in below.iter().zip(&before) {
        let moved = moved(name, before);
        assert_eq!(recorded[name], moved, "{name}");
        assert!(moved.iter().all(|n| *n > 0), "{name}: {moved:?}");
        sectors[0] += moved[1];
        sectors[1] += moved[3];
    }
    assert_eq!(sectors, [20 * 192; 2]);
    let mut devices = recorded.keys();
    assert!(!devices.any(|name| name.starts_with("dm-")), "{recorded:?}");
    // Each request is of the call that asked the upper device.
    let caused = recording.number(&format!(
        "SELECT sum(b.bytes)::BIGINT FROM block b JOIN syscalls s USING (rid)
         WHERE s.path = '{}' AND s.syscall IN ('read', 'write')",
        striped.path().display()
    ));
    assert_eq!(caused, 2 * 20 * (96 << 10));
}
