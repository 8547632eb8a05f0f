//! Calls of a made-up recording that change the length and the room of a file.

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
}
