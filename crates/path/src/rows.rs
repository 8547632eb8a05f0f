//! The rows that a walk reads. Times are CLOCK_MONOTONIC nanoseconds.

use std::collections::BTreeMap;

use crate::Name;

/// A time in which a thread was off the CPU.
#[derive(Clone, Debug, Default)]
pub struct Wait {
    /// When it left the CPU.
    pub from_ns: i64,
    /// When it ran again; `None` if that was not seen.
    pub until_ns: Option<i64>,
    /// When it was woken; `None` if that was not seen, or if it wanted the CPU all the time.
    pub woken_ns: Option<i64>,
    /// Column `reason`.
    pub reason: Option<Name>,
    /// The request in which it waited.
    pub rid: Option<i64>,
    /// The system call in which it waited.
    pub syscall: Option<Name>,
    /// Name of the thread or interrupt that woke it.
    pub waker: Option<Name>,
    /// Thread that woke it.
    pub waker_tid: Option<i64>,
    /// Column `cause`.
    pub cause: Option<Name>,
    /// Column `cause_id`.
    pub cause_id: Option<i64>,
    /// When the cause was done, if it is a send on another host: what follows is the time on the
    /// network. `None` if the cause itself woke the thread.
    pub caused_ns: Option<i64>,
}

impl Wait {
    /// Whether the thread wanted the CPU all the time.
    pub(crate) fn is_for_cpu(&self) -> bool {
        matches!(
            self.reason.as_ref().map(Name::as_str),
            Some("cpu" | "preempted")
        )
    }
}

/// A thread between its start and its end: an id may be used again.
#[derive(Clone, Debug, Default)]
pub struct Life {
    /// Process.
    pub pid: Option<i64>,
    /// Name of the thread.
    pub comm: Option<Name>,
    /// Name of the process.
    pub process: Option<Name>,
    /// When it started.
    pub started_ns: i64,
    /// When it ended; `None` if it had not ended.
    pub ended_ns: Option<i64>,
}

/// The known facts about the threads with one id.
#[derive(Clone, Debug, Default)]
pub struct Thread {
    /// Whether its waits are recorded: without them, what it did is not known.
    pub recorded: bool,
    /// Before this time, what it did was not seen; `None` if all was.
    pub seen_from_ns: Option<i64>,
    /// After this time, what it did was not seen; `None` if all was.
    pub seen_until_ns: Option<i64>,
    /// In order of time.
    lives: Vec<Life>,
    /// In order of time, without overlaps, as far as they touch `covered`.
    waits: Vec<Wait>,
    /// Times of which all waits are in `waits`: in order, apart from each other.
    covered: Vec<(i64, i64)>,
}

impl Thread {
    /// A thread whose waits are recorded.
    pub fn recorded() -> Self {
        Self {
            recorded: true,
            ..Self::default()
        }
    }

    /// Sets the lives of the threads with this id.
    pub fn set_lives(&mut self, mut lives: Vec<Life>) {
        lives.sort_by_key(|life| life.started_ns);
        self.lives = lives;
    }

    /// Adds all waits that touch the times `covered`.
    pub fn add(&mut self, waits: impl IntoIterator<Item = Wait>, covered: &[(i64, i64)]) {
        self.waits.extend(waits);
        // Of two rows with one beginning, the longer one counts, if its end is known.
        self.waits
            .sort_by_key(|wait| (wait.from_ns, std::cmp::Reverse(wait.until_ns)));
        self.waits.dedup_by_key(|wait| wait.from_ns);
        // A thread cannot leave the CPU twice without running: where rows say so, the end of
        // the earlier one is wrong, and so is what ended it.
        for i in 1..self.waits.len() {
            let next_ns = self.waits.get(i).map_or(i64::MAX, |wait| wait.from_ns);
            if let Some(wait) = self.waits.get_mut(i - 1)
                && wait.until_ns.is_some_and(|until| until > next_ns)
            {
                wait.until_ns = None;
            }
        }
        self.covered
            .extend(covered.iter().filter(|(from, until)| from < until));
        self.covered.sort_unstable();
        let mut merged: Vec<(i64, i64)> = Vec::with_capacity(self.covered.len());
        for (from, until) in self.covered.drain(..) {
            match merged.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(until),
                _ => merged.push((from, until)),
            }
        }
        self.covered = merged;
    }

    /// Whether all waits of this time are known.
    pub fn covers(&self, from_ns: i64, until_ns: i64) -> bool {
        let at = self.covered.partition_point(|(from, _)| *from <= from_ns);
        let covering = at.checked_sub(1).and_then(|at| self.covered.get(at));
        from_ns >= until_ns || covering.is_some_and(|(_, until)| *until >= until_ns)
    }

    /// The last wait that began before `ns`, and the beginning of the one after it.
    pub(crate) fn wait_before(&self, ns: i64) -> Option<(&Wait, Option<i64>)> {
        let at = self.waits.partition_point(|wait| wait.from_ns < ns);
        let wait = at.checked_sub(1).and_then(|at| self.waits.get(at))?;
        Some((wait, self.waits.get(at).map(|next| next.from_ns)))
    }

    /// The thread with this id that lived just before `ns`, or else the next one.
    pub fn life_at(&self, ns: i64) -> Option<&Life> {
        let at = self.lives.partition_point(|life| life.started_ns < ns);
        self.lives.get(at.saturating_sub(1))
    }

    /// The lives, in order of time.
    pub fn lives(&self) -> &[Life] {
        &self.lives
    }
}

/// A block request.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// Name of the device.
    pub device: Option<Name>,
    /// read, write, flush, ...
    pub op: Option<Name>,
    /// Bytes moved.
    pub bytes: i64,
    /// Its file.
    pub path: Option<Name>,
    /// When it was queued; `None` if that was not seen.
    pub queued_ns: Option<i64>,
    /// When the device got it; `None` if that was not seen.
    pub issued_ns: Option<i64>,
    /// When the device had completed it; `None` if that was not seen.
    pub completed_ns: Option<i64>,
}

/// A call, or a page fault.
#[derive(Clone, Debug, Default)]
pub struct Call {
    /// The request.
    pub rid: i64,
    /// When it began.
    pub from_ns: i64,
    /// When it ended, as far as known.
    pub until_ns: i64,
    /// Name of the call.
    pub syscall: Option<Name>,
    /// Its file.
    pub path: Option<Name>,
}

/// All rows in memory.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// By tid.
    pub threads: BTreeMap<i64, Thread>,
    /// By `ts_ns`: requests to several devices may begin at the same time.
    pub blocks: BTreeMap<i64, Vec<Block>>,
}
