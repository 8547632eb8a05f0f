//! Calls of a made-up recording that change the length, the room and the names of a file.

use super::{Row, Scenario};

impl Scenario {
    /// Sets the length.
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

    /// Reserves room.
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
}
