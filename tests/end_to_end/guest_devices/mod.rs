//! Devices and file systems that an emulated machine has (`scripts/kernels.sh`): an NVMe disk, SCSI
//! disks that fail or do not answer when they are told to, devices of the device mapper, and NFS.

mod cgroups;
mod errors;
mod hangs;
mod nfs;
mod nvme;

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use fathom_tests::Recording;
use fathom_tests::environment::must_run;
use fathom_tests::session::{Row, meta};

/// Standard output of a command, without the end of its line.
fn output<S: AsRef<std::ffi::OsStr>>(program: &str, args: impl IntoIterator<Item = S>) -> String {
    let text = String::from_utf8(must_run(program, args)).unwrap();
    text.trim_end().to_owned()
}

/// Locks what only one test may use at a time. One that failed before leaves nothing behind.
fn lock(what: &'static Mutex<()>) -> MutexGuard<'static, ()> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A loop device over a sparse file; taken away when dropped.
struct Loop {
    path: PathBuf,
}

impl Loop {
    fn make(image: &Path, bytes: u64) -> Loop {
        fs::File::create(image).unwrap().set_len(bytes).unwrap();
        let path = output(
            "losetup",
            ["-f".as_ref(), "--show".as_ref(), image.as_os_str()],
        );
        Loop { path: path.into() }
    }

    fn name(&self) -> String {
        self.path
            .file_name()
            .unwrap()
            .to_string_lossy()
            .into_owned()
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = std::process::Command::new("losetup")
            .arg("-d")
            .arg(&self.path)
            .output();
    }
}

/// Whether this kernel has the device mapper.
fn has_device_mapper() -> bool {
    Path::new("/sys/class/misc/device-mapper").exists()
}

/// A device of the device mapper, taken away when dropped.
struct Mapped {
    name: String,
}

impl Mapped {
    /// One of the lines of a table.
    fn make(table: &str) -> Mapped {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("fathom-{}-{number}", std::process::id());
        let mapped = Mapped { name };
        mapped.dmsetup("create", &["--table", table]);
        mapped
    }

    /// One that passes everything on to `below`, and the size of both in sectors.
    fn linear(below: &Path, sectors: u64) -> Mapped {
        Mapped::make(&format!("0 {sectors} linear {} 0", below.display()))
    }

    fn path(&self) -> PathBuf {
        Path::new("/dev/mapper").join(&self.name)
    }

    fn dmsetup(&self, command: &str, options: &[&str]) {
        let args = [command, &self.name]
            .into_iter()
            .chain(options.iter().copied());
        // No daemon makes the files of devices there.
        must_run(
            "env",
            ["DM_DISABLE_UDEV=1", "dmsetup"].into_iter().chain(args),
        );
    }

    /// What is asked of it waits, until the result is dropped.
    fn suspend(&self) -> Suspended<'_> {
        // Not a file system on it, which would wait above it.
        self.dmsetup("suspend", &["--nolockfs", "--noflush"]);
        Suspended(self)
    }
}

struct Suspended<'a>(&'a Mapped);

impl Drop for Suspended<'_> {
    fn drop(&mut self) {
        self.0.dmsetup("resume", &[]);
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        let _ = std::process::Command::new("dmsetup")
            .args(["remove", &self.name])
            .env("DM_DISABLE_UDEV", "1")
            .output();
    }
}

/// The counters of a device (Documentation/block/stat.rst).
fn stat(device: &str) -> Vec<i64> {
    let path = Path::new("/sys/block").join(device).join("stat");
    let text = fs::read_to_string(path).unwrap();
    text.split_whitespace()
        .map(|n| n.parse().unwrap())
        .collect()
}

/// Reads, sectors read, writes and sectors written of a device since `before`.
fn moved(device: &str, before: &[i64]) -> [i64; 4] {
    let now = stat(device);
    [0, 2, 4, 6].map(|field| now[field] - before[field])
}

/// The same of each device in table `block`.
fn recorded(recording: &Recording) -> HashMap<String, [i64; 4]> {
    let rows = recording.rows(
        "SELECT device, count(*) FILTER (op = 'read') AS reads,
             coalesce(sum(bytes) FILTER (op = 'read'), 0) // 512 AS read_sectors,
             count(*) FILTER (op = 'write') AS writes,
             coalesce(sum(bytes) FILTER (op = 'write'), 0) // 512 AS written_sectors
         FROM block GROUP BY device",
    );
    let of_row = |row: &Row| {
        let names = ["reads", "read_sectors", "writes", "written_sectors"];
        let device = row.text("device").unwrap().to_owned();
        (device, names.map(|name| row.int(name).unwrap()))
    };
    rows.iter().map(of_row).collect()
}

/// Nothing was lost, as the session itself says: queries take long in an emulated machine.
fn nothing_lost(recording: &Recording) {
    let meta = meta(&recording.session);
    assert_eq!(meta["state"], "complete", "{}", recording.stderr);
    let totals = &meta["totals"];
    for lost in [&totals["lost"], &totals["layers"]["lost"]] {
        assert_eq!(lost.as_i64(), Some(0), "{totals}");
    }
}
