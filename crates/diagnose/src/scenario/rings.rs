//! Operations of io_uring of a made-up recording.

use super::{CALL_NS, Row, Scenario};

impl Scenario {
    /// Operations that are submitted together, each made by one call of `each`, and then waited for.
    pub(crate) fn ring(&mut self, count: i64, mut each: impl FnMut(&mut Self, i64)) {
        let began = self.now;
        self.api = "io_uring";
        // What is below them is below the call, which ends last.
        let first = self.rows.rid.len();
        for i in 0..count {
            self.now = began + 100;
            each(self, i);
        }
        self.api = "syscall";
        let ended = self.now;
        let call = self.rows.rid.len() as i64 + 1;
        self.layers.move_to(first as i64 + 1..call, call);
        self.now = began;
        self.call(Row {
            syscall: "io_uring_enter",
            dur_ns: (ended - began).max(CALL_NS),
            ret: count,
            ..Row::default()
        });
    }
}
