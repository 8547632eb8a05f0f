//! Rows of tables waits and block with known causes.

use fathom_model::batch::{Batch, NULL_I32, NULL_I64};
use fathom_model::tables::{BlockRow, BlockRows, WaitRow, WaitRows};
use fathom_model::{StrId, StringTable};

use crate::sample::START;

/// A wait; times are after START.
#[derive(Clone, Debug)]
pub struct Wait {
    pub tid: i32,
    pub pid: i32,
    pub from_ns: i64,
    pub until_ns: Option<i64>,
    pub woken_ns: Option<i64>,
    pub reason: &'static str,
    pub cause: Option<&'static str>,
    pub cause_id: Option<i64>,
    pub waker: Option<&'static str>,
    pub waker_tid: Option<i32>,
    pub cpu: i32,
    pub rid: Option<i64>,
    pub syscall: Option<&'static str>,
}

impl Wait {
    /// A wait of process 100; woken at its end, but for one that wants a CPU.
    pub fn new(tid: i32, from_ns: i64, until_ns: i64, reason: &'static str) -> Self {
        Self {
            tid,
            pid: 100,
            from_ns,
            until_ns: Some(until_ns),
            woken_ns: (reason != "cpu").then_some(until_ns),
            reason,
            cause: None,
            cause_id: None,
            waker: None,
            waker_tid: None,
            cpu: 0,
            rid: None,
            syscall: None,
        }
    }

    pub fn of(mut self, pid: i32) -> Self {
        self.pid = pid;
        self
    }

    pub fn woken(mut self, ns: i64) -> Self {
        self.woken_ns = Some(ns);
        self
    }

    /// Its end was not seen.
    pub fn open(mut self) -> Self {
        (self.until_ns, self.woken_ns) = (None, None);
        self
    }

    pub fn by_thread(mut self, tid: i32, name: &'static str) -> Self {
        self.cause = Some("thread");
        self.cause_id = Some(i64::from(tid));
        (self.waker, self.waker_tid) = (Some(name), Some(tid));
        self
    }

    pub fn by(mut self, cause: &'static str, waker: &'static str) -> Self {
        (self.cause, self.waker) = (Some(cause), Some(waker));
        self
    }

    /// Ended by the block request that began then.
    pub fn by_block(mut self, at_ns: i64) -> Self {
        self.cause_id = Some(START + at_ns);
        self.by("block_request", "softirq:BLOCK")
    }

    pub fn on_cpu(mut self, cpu: i32) -> Self {
        self.cpu = cpu;
        self
    }

    pub fn within(mut self, rid: i64, syscall: &'static str) -> Self {
        (self.rid, self.syscall) = (Some(rid), Some(syscall));
        self
    }
}

/// Rows of table waits.
pub fn waits(rows_in: &[Wait]) -> Batch {
    let mut strings = StringTable::new();
    let mut rows = WaitRows::default();
    for wait in rows_in {
        let mut text = |s: Option<&str>| s.map_or(StrId::NULL, |s| strings.intern(s.as_bytes()));
        let run_queue = wait
            .until_ns
            .zip(wait.woken_ns)
            .map(|(until, woken)| until - woken);
        rows.push(WaitRow {
            rid: wait.rid.unwrap_or(NULL_I64),
            ts_ns: START + wait.from_ns,
            dur_ns: wait.until_ns.map_or(NULL_I64, |until| until - wait.from_ns),
            pid: wait.pid,
            tid: wait.tid,
            comm: text(Some(&format!("t{}", wait.tid))),
            cpu: wait.until_ns.map_or(NULL_I32, |_| wait.cpu),
            reason: text(Some(wait.reason)),
            state: text(Some(match wait.reason {
                "cpu" => "preempted",
                _ => "interruptible",
            })),
            in_syscall: text(wait.syscall),
            woken_at_ns: wait.woken_ns.map_or(NULL_I64, |ns| START + ns),
            run_queue_ns: run_queue.unwrap_or(NULL_I64),
            waker: text(wait.waker),
            waker_tid: wait.waker_tid.unwrap_or(NULL_I32),
            cause: text(wait.cause),
            cause_id: wait.cause_id.unwrap_or(NULL_I64),
            ..Default::default()
        });
    }
    rows.into_batch(strings)
}

/// As the time of a completion: it was not seen.
pub const UNSEEN: i64 = NULL_I64;

/// A request to vda; times are after START.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// Process and thread that submitted it.
    pub tid: i32,
    pub rid: Option<i64>,
    pub queued_ns: i64,
    pub issued_ns: i64,
    pub completed_ns: i64,
}

/// Rows of table block, numbered from 1.
pub fn blocks(rows_in: &[Block]) -> Batch {
    let mut strings = StringTable::new();
    let mut rows = BlockRows::default();
    for (i, block) in rows_in.iter().enumerate() {
        let begin = START + block.queued_ns;
        rows.push(BlockRow {
            block_id: i as i64 + 1,
            rid: block.rid.unwrap_or(NULL_I64),
            ts_ns: begin,
            dur_ns: match block.completed_ns {
                UNSEEN => NULL_I64,
                ns => ns - block.queued_ns,
            },
            device: strings.intern(b"vda"),
            op: strings.intern(b"write"),
            bytes: 4096,
            queued_at_ns: begin,
            issued_at_ns: START + block.issued_ns,
            completed_at_ns: match block.completed_ns {
                UNSEEN => NULL_I64,
                ns => START + ns,
            },
            pid: block.tid,
            tid: block.tid,
            comm: strings.intern(format!("t{}", block.tid).as_bytes()),
            bio_origin: strings.intern(b"call"),
            ..Default::default()
        });
    }
    rows.into_batch(strings)
}
