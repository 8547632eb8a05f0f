//! Calls that hang because a device of the device mapper is suspended.

use std::fs;

use fathom_tests::environment::must_run;
use fathom_tests::{Record, Recording, Scratch, need_program, need_root, skip};

use super::{Loop, Mapped, has_device_mapper, moved, nothing_lost, recorded, stat};
use crate::stalls::saved_while_it_hung;

const SECTORS: u64 = 64 << 11;

/// Records a command of which `call` hangs, until the recorder has saved a copy because of that.
/// The device goes on then.
fn record_until_saved(
    scratch: &Scratch,
    mapped: &Mapped,
    call: &str,
    command: &[&str],
) -> Recording {
    let suspended = mapped.suspend();
    let mut running = Record::new(scratch)
        .options(["--keep", "1h", "--save-when", "in_flight > 1s"])
        .options(["--save-pause", "1ms"])
        .command(command)
        .spawn();
    let err = scratch.root().join("session.stderr");
    running.until("a copy", || {
        let said = fs::read_to_string(&err).unwrap();
        let mut lines = said.lines();
        lines.any(|line| line.contains("saved ") && line.contains(call))
    });
    drop(suspended);
    let recording = running.wait().must_exit(0);
    nothing_lost(&recording);
    recording
}

/// How the recorder names a call of dd.
fn call(syscall: &str, path: &str) -> String {
    format!("{syscall} on {path} by dd ")
}

/// The call on `path` was reported and saved while it hung, with the function of the kernel that
/// waited.
fn reported(recording: &Recording, syscall: &str, path: &str, function: &str) {
    let call = call(syscall, path);
    let mut told = recording.stderr.lines();
    let hung = told
        .find(|line| line.contains("in flight: ") && line.contains(&call))
        .unwrap_or_else(|| panic!("{}", recording.stderr));
    let (_, stack) = hung.split_once("; in the kernel: ").expect(hung);
    assert!(stack.contains(function), "{hung}");
    let rows = recording.rows(&format!(
        "SELECT ts_ns, ts_ns + dur_ns AS end_ns FROM syscalls
         WHERE path = '{path}' AND syscall = '{syscall}' AND dur_ns > 1000000000"
    ));
    let [row] = &rows[..] else {
        panic!("{rows:?}");
    };
    saved_while_it_hung(recording, &call, row);
}

#[test]
fn a_write_to_a_suspended_device() {
    need_root!();
    need_program!("dmsetup", "losetup");
    if !has_device_mapper() {
        return skip("this kernel has no device mapper");
    }
    let scratch = Scratch::new();
    let below = Loop::make(&scratch.root().join("image"), SECTORS * 512);
    let mapped = Mapped::linear(&below.path, SECTORS);
    let path = mapped.path().display().to_string();
    let before = stat(&below.name());
    let write = [
        "dd",
        "if=/dev/zero",
        &format!("of={path}"),
        "bs=4k",
        "count=3",
        "oflag=direct",
    ];
    let recording = record_until_saved(&scratch, &mapped, &call("write", &path), &write);
    reported(&recording, "write", &path, "blkdev_");
    let writes = recording.number(&format!(
        "SELECT count(*) FROM syscalls WHERE path = '{path}' AND syscall = 'write' AND ret = 4096"
    ));
    assert_eq!(writes, 3);
    // The device has no requests of its own, the one below has all of them.
    let counted = moved(&below.name(), &before);
    assert_eq!(counted, [0, 0, 3, 24]);
    let recorded = recorded(&recording);
    assert_eq!(recorded[&below.name()], counted);
    let mut devices = recorded.keys();
    assert!(!devices.any(|name| name.starts_with("dm-")), "{recorded:?}");
}

/// A file is written, its write-back waits.
#[test]
fn an_fsync_on_a_suspended_device() {
    need_root!();
    need_program!("dmsetup", "losetup", "mkfs.ext4", "mount");
    if !has_device_mapper() {
        return skip("this kernel has no device mapper");
    }
    let scratch = Scratch::new();
    let below = Loop::make(&scratch.root().join("image"), SECTORS * 512);
    let mapped = Mapped::linear(&below.path, SECTORS);
    // A commit of its journal in the meantime would hold the write up.
    let file_system = mapped.path().display().to_string();
    must_run("mkfs.ext4", ["-q", "-O", "^has_journal", &file_system]);
    let mounted = Mounted::make(&scratch, &mapped);
    let path = mounted.0.join("file").display().to_string();
    // The write that is recorded finds all that it needs in memory.
    must_run(
        "dd",
        ["if=/dev/zero", &format!("of={path}"), "bs=4k", "count=64"],
    );
    must_run("sync", ["-f", &path]);
    let before = stat(&below.name());
    let write = [
        "dd",
        "if=/dev/zero",
        &format!("of={path}"),
        "bs=4k",
        "count=64",
        "conv=notrunc,fsync",
    ];
    let recording = record_until_saved(&scratch, &mapped, &call("fsync", &path), &write);
    // Its thread waits for pages that are written back.
    reported(&recording, "fsync", &path, "fdatawait");
    let rows = &recording.rows(&format!(
        "SELECT count(*) FILTER (syscall = 'write' AND ret = 4096) AS writes,
             count(*) FILTER (syscall = 'fsync' AND ret = 0) AS syncs
         FROM syscalls WHERE path = '{path}'"
    ))[0];
    assert_eq!((rows.int("writes"), rows.int("syncs")), (Some(64), Some(1)));
    // The file system may write more afterwards.
    let [_, _, _, written] = recorded(&recording)[&below.name()];
    let [_, _, _, counted] = moved(&below.name(), &before);
    assert!((512..=counted).contains(&written), "{written} {counted}");
}

/// A mounted file system, unmounted when dropped.
struct Mounted(std::path::PathBuf);

impl Mounted {
    fn make(scratch: &Scratch, mapped: &Mapped) -> Mounted {
        let at = scratch.root().join("mounted");
        fs::create_dir(&at).unwrap();
        must_run("mount", [mapped.path().as_os_str(), at.as_os_str()]);
        Mounted(at)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount")
            .arg("-l")
            .arg(&self.0)
            .output();
    }
}
