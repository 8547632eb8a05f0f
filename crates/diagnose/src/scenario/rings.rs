//! Operations of io_uring of a made-up recording.

use super::{CALL_NS, Row, Scenario};

impl Scenario {
    /// Operations that are submitted together, each made by one call of `each`, and then waited
    /// for. Events below them belong to the call that submits them.
    pub(crate) fn ring(&mut self, count: i64, each: impl FnMut(&mut Self, i64)) {
        let first = self.rows.rid.len() as i64 + 1;
        self.direct_ring(count, each);
        let call = self.rows.rid.len() as i64;
        self.layers.move_to(first..call, call);
    }

    /// The same with what is below them below themselves.
    pub(crate) fn direct_ring(&mut self, count: i64, mut each: impl FnMut(&mut Self, i64)) {
        let began = self.now;
        self.api = "io_uring";
        for i in 0..count {
            self.now = began + 100;
            each(self, i);
        }
        self.api = "syscall";
        let ended = self.now;
        self.now = began;
        self.call(Row {
            syscall: "io_uring_enter",
            dur_ns: (ended - began).max(CALL_NS),
            ret: count,
            ..Row::default()
        });
    }
}
