//! Calls of a made-up recording that list and look, that make everything durable, and that move
//! bytes without memory of the program.

use super::{CALL_NS, GAP_NS, Row, SYNC_NS, Scenario};

impl Scenario {
    /// Asks for the attributes of the name itself, whatever it leads to.
    pub(crate) fn lstat(&mut self, path: &str) {
        let file = self.file(path, "regular", 4096);
        self.call(Row {
            syscall: "newfstatat",
            file: Some(file),
            flags: Some("AT_SYMLINK_NOFOLLOW"),
            by_path: true,
            path: Some(path),
            ..Row::default()
        });
    }

    /// Reads entries of a directory.
    pub(crate) fn list(&mut self, fd: i32) {
        self.on("getdents64", fd, 0);
    }

    /// Makes everything durable.
    pub(crate) fn sync(&mut self) {
        self.call(Row {
            syscall: "sync",
            dur_ns: SYNC_NS,
            ..Row::default()
        });
    }

    /// Sends bytes of a file.
    pub(crate) fn sendfile(&mut self, fd: i32, bytes: i64) {
        self.data("sendfile", fd, bytes, None);
    }

    /// Copies bytes from one file to another.
    pub(crate) fn copy_range(&mut self, from: i32, to: i32, bytes: i64) {
        let Some(open) = self.fds.get(&(self.pid, from)).cloned() else {
            return;
        };
        let Some(target) = self.fds.get_mut(&(self.pid, to)) else {
            return;
        };
        let at = target.position;
        target.position += bytes;
        self.call(Row {
            syscall: "copy_file_range",
            ret: bytes,
            fd: Some(from),
            file: Some(open.file),
            bytes: Some(bytes),
            path: Some(&open.path),
            args: Some(format!("fd_out={to}, off_out={at}")),
            ..Row::default()
        });
    }

    /// Maps a file shared, for reading or for writing, too.
    pub(crate) fn map_shared(&mut self, fd: i32, prot: &str) {
        let Some(open) = self.fds.get(&(self.pid, fd)).cloned() else {
            return;
        };
        self.call(Row {
            syscall: "mmap",
            fd: Some(fd),
            file: Some(open.file),
            path: Some(&open.path),
            flags: Some("MAP_SHARED"),
            args: Some(format!("prot={prot}")),
            ..Row::default()
        });
    }

    /// Maps a file.
    pub(crate) fn mmap(&mut self, fd: i32) {
        self.on("mmap", fd, 0);
    }

    /// A `pread` that began at a time, waits for the device and returns now.
    pub(crate) fn missed_pread_since(&mut self, fd: i32, bytes: i64, at: i64, began: i64) {
        let after = self.now;
        self.now = began;
        let own = CALL_NS + bytes / 10 + GAP_NS;
        self.missed(bytes, (after - began - own).max(0));
        self.pread(fd, bytes, at);
        self.now = after;
    }
}
