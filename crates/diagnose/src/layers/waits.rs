//! Rows of table `waits`.

use super::{Layers, Row};
use crate::call::LARGEST;
use crate::columns::Columns;

/// The columns to read, by their numbers below.
pub(super) const COLUMNS: &[&str] = &[
    "rid",
    "ts_ns",
    "dur_ns",
    "state",
    "waker_tid",
    "pid",
    "tid",
    "comm",
    "cpu",
    "reason",
    "in_syscall",
    "woken_at_ns",
    "run_queue_ns",
    "cause",
    "cause_id",
    "address",
];

/// A period in which a thread was off the CPU.
#[derive(Clone, Copy, Debug)]
pub struct Wait<'a> {
    pub ts_ns: i64,
    /// Until it ran again.
    pub dur_ns: i64,
    pub pid: i32,
    pub tid: i32,
    pub comm: &'a str,
    /// The request in whose course it waited.
    pub rid: Option<i64>,
    /// CPU on which it continued.
    pub cpu: Option<i32>,
    /// As in table `waits`.
    pub reason: &'a str,
    /// Call in which it waited; empty in none.
    pub in_syscall: &'a str,
    /// When it was woken; `None` if it was preempted, or that was not seen.
    pub woken_at_ns: Option<i64>,
    /// The end of it, in which it could have run, nanoseconds.
    pub run_queue_ns: i64,
    /// The thread that ended it, if one did: also by data that it sent over a socket of this host.
    pub ended_by: Option<i32>,
    /// Address of the futex; `None` for other waits and in requests.
    pub address: Option<i64>,
}

impl Wait<'_> {
    pub fn ended_at_ns(&self) -> i64 {
        self.ts_ns.saturating_add(self.dur_ns)
    }
}

impl Layers {
    pub(super) fn waits(&mut self, columns: &Columns, mut row: impl FnMut(&Row)) {
        for i in 0..columns.rows() {
            let Some(dur) = columns.i64(2, i).map(|ns| ns.clamp(0, LARGEST)) else {
                continue;
            };
            let reason = columns.text(9, i).unwrap_or("");
            // A thread that was preempted could have run all the time.
            let run_queue_ns = match reason {
                "cpu" => dur,
                _ => columns.i64(12, i).unwrap_or(0).clamp(0, dur),
            };
            let waker = columns.i32(4, i);
            let rid = columns.i64(0, i);
            if let Some(rid) = rid {
                let below = self.below(rid);
                below.off_cpu_ns += dur;
                below.run_queue_ns += run_queue_ns;
                // From the wake-up on it waited for a CPU.
                let waited = dur - run_queue_ns;
                match (columns.text(3, i), waker) {
                    (Some("io"), _) => below.io_wait_ns += waited,
                    (Some("uninterruptible"), Some(waker)) => {
                        below.lock_wait_ns += waited;
                        if waited > below.longest_lock_ns {
                            below.longest_lock_ns = waited;
                            below.waker_tid = waker;
                        }
                    }
                    _ => {}
                }
            }
            let (Some(ts_ns), Some(tid)) = (columns.i64(1, i), columns.i32(6, i)) else {
                continue;
            };
            let ended_by = match columns.text(13, i) {
                Some("thread" | "network") => columns.i32(14, i).or(waker),
                _ => None,
            };
            row(&Row::Wait(Wait {
                ts_ns,
                dur_ns: dur,
                pid: columns.i32(5, i).unwrap_or(0),
                tid,
                comm: columns.text(7, i).unwrap_or(""),
                rid,
                cpu: columns.i32(8, i),
                reason,
                in_syscall: columns.text(10, i).unwrap_or(""),
                woken_at_ns: columns.i64(11, i),
                run_queue_ns,
                ended_by,
                address: columns.i64(15, i),
            }));
        }
    }
}
