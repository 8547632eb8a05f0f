//! Calls of a made-up recording that change the length, the room and the names of a file.

use super::{Row, SYNC_NS, Scenario};

impl Scenario {
    pub(crate) fn truncate(&mut self, fd: i32, length: i64) {
        let Some(open) = self.fds.get(&(self.pid, fd)).cloned() else {
            return;
        };
        self.call(Row {
            syscall: "ftruncate",
            fd: Some(fd),
            file: Some(open.file),
            path: Some(&open.path),
            args: Some(format!("length={length}")),
            ..Row::default()
        });
    }

    pub(crate) fn allocate(&mut self, fd: i32, offset: i64, size: i64) {
        let Some(open) = self.fds.get(&(self.pid, fd)).cloned() else {
            return;
        };
        self.call(Row {
            syscall: "fallocate",
            fd: Some(fd),
            file: Some(open.file),
            offset: Some(offset),
            size: Some(size),
            flags: Some("0"),
            path: Some(&open.path),
            ..Row::default()
        });
    }

    /// Writes the first bytes of a file back that were changed through a mapping.
    pub(crate) fn msync(&mut self, fd: i32, size: i64, flags: &str) {
        self.wait_for("msync", fd, Some(size), flags);
    }

    /// Writes a whole file back, as its flags say.
    pub(crate) fn sync_range(&mut self, fd: i32, flags: &str) {
        self.wait_for("sync_file_range", fd, Some(0), flags);
    }

    fn wait_for(&mut self, syscall: &str, fd: i32, size: Option<i64>, flags: &str) {
        let Some(open) = self.fds.get(&(self.pid, fd)).cloned() else {
            return;
        };
        self.call(Row {
            syscall,
            dur_ns: SYNC_NS,
            fd: (syscall != "msync").then_some(fd),
            file: Some(open.file),
            offset: Some(0),
            size,
            flags: Some(flags),
            path: Some(&open.path),
            ..Row::default()
        });
    }

    /// Makes everything durable.
    pub(crate) fn sync_all(&mut self) {
        self.call(Row {
            syscall: "sync",
            dur_ns: SYNC_NS,
            ..Row::default()
        });
    }

    /// Gives a file one more name.
    pub(crate) fn link(&mut self, from: &str, to: &str) {
        self.call(Row {
            syscall: "link",
            by_path: true,
            path: Some(from),
            path2: Some(to),
            ..Row::default()
        });
    }

    /// Opens a file with this mode for a new one.
    pub(crate) fn open_mode(&mut self, path: &str, flags: &str, mode: &str) -> i32 {
        self.mode = Some(format!("mode={mode}"));
        self.open(path, flags)
    }

    /// Fails to open a name.
    pub(crate) fn fail_open(&mut self, path: &str, flags: &str, errno: &str) {
        self.call(Row {
            syscall: "openat",
            ret: -1,
            errno: Some(errno),
            by_path: true,
            path: Some(path),
            flags: Some(flags),
            ..Row::default()
        });
    }

    /// Changes the flags of an open file.
    pub(crate) fn set_flags(&mut self, fd: i32, flags: &str) {
        let (path, file) = self.open_file(fd);
        self.call(Row {
            syscall: "fcntl",
            fd: Some(fd),
            file,
            path: Some(&path),
            args: Some(format!("cmd=F_SETFL, arg={flags}")),
            ..Row::default()
        });
    }

    /// Locks or unlocks a range of a file, or fails to.
    pub(crate) fn lock_range(
        &mut self,
        fd: i32,
        what: &str,
        (start, len): (i64, i64),
        errno: Option<&str>,
    ) {
        let (path, file) = self.open_file(fd);
        self.call(Row {
            syscall: "fcntl",
            ret: if errno.is_some() { -1 } else { 0 },
            errno,
            fd: Some(fd),
            file,
            path: Some(&path),
            args: Some(format!(
                "cmd=F_SETLK, l_type={what}, l_whence=SEEK_SET, l_start={start}, l_len={len}"
            )),
            ..Row::default()
        });
    }

    /// Makes a directory, or fails to.
    pub(crate) fn mkdir(&mut self, path: &str, errno: Option<&str>) {
        self.by_name("mkdir", path, errno);
    }

    pub(crate) fn rmdir(&mut self, path: &str) {
        self.by_name("rmdir", path, None);
    }

    /// `unlinkat` of a directory.
    pub(crate) fn unlink_directory(&mut self, path: &str) {
        self.call(Row {
            syscall: "unlinkat",
            by_path: true,
            path: Some(path),
            flags: Some("AT_REMOVEDIR"),
            ..Row::default()
        });
    }

    fn by_name(&mut self, syscall: &str, path: &str, errno: Option<&str>) {
        self.call(Row {
            syscall,
            ret: if errno.is_some() { -1 } else { 0 },
            errno,
            by_path: true,
            path: Some(path),
            ..Row::default()
        });
    }
}
