//! Which library call made a system call.
//!
//! The row of a library call is made when it returns, after the rows of its system calls. Rows are read
//! in batches, so either may come first: each waits for the other.

use hashbrown::HashMap;

use crate::call::{Call, FileId};
use crate::kind::Kind;

/// Library calls that are remembered, twice.
const MAX_KNOWN: usize = 1 << 16;
/// Library calls of which system calls are remembered.
const MAX_WAITING: usize = 1 << 14;
/// System calls of one of them.
const MAX_MADE: usize = 256;

/// A system call that a library call made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Made {
    pub(crate) pid: i32,
    pub(crate) kind: Kind,
    pub(crate) file: Option<FileId>,
    pub(crate) offset: Option<i64>,
    pub(crate) bytes: i64,
    pub(crate) dur_ns: i64,
}

impl Made {
    fn of(call: &Call) -> Self {
        Self {
            pid: call.pid,
            kind: call.kind,
            file: call.file,
            offset: call.offset,
            bytes: call.moved(),
            dur_ns: call.dur_ns,
        }
    }
}

/// Library calls with what a rule keeps of each.
#[derive(Debug)]
pub(crate) struct Makers<T> {
    young: HashMap<i64, T>,
    old: HashMap<i64, T>,
    waiting: HashMap<i64, Vec<Made>>,
}

impl<T> Default for Makers<T> {
    fn default() -> Self {
        Self {
            young: HashMap::new(),
            old: HashMap::new(),
            waiting: HashMap::new(),
        }
    }
}

impl<T: Copy> Makers<T> {
    /// A system call and its library call, if that is known; otherwise it waits for that.
    pub(crate) fn call(&mut self, call: &Call) -> Option<(T, Made)> {
        let id = call.user_call?;
        let made = Made::of(call);
        if let Some(maker) = self.young.get(&id).or_else(|| self.old.get(&id)) {
            return Some((*maker, made));
        }
        if self.waiting.len() >= MAX_WAITING && !self.waiting.contains_key(&id) {
            self.waiting.clear();
        }
        let waiting = self.waiting.entry(id).or_default();
        if waiting.len() < MAX_MADE {
            waiting.push(made);
        }
        None
    }

    /// A library call of interest; its system calls so far.
    pub(crate) fn maker(&mut self, id: i64, maker: T) -> Vec<Made> {
        if self.young.len() >= MAX_KNOWN {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(id, maker);
        self.waiting.remove(&id).unwrap_or_default()
    }

    /// A library call of no interest.
    pub(crate) fn other(&mut self, id: i64) {
        self.waiting.remove(&id);
    }
}
