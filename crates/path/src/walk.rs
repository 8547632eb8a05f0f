//! The walk: backwards from the end of the interval, from each wait to the thread or the device that
//! ended it.
//!
//! A wait that a recorded thread ended goes on with that thread, from the wake-up backwards, but not
//! beyond the beginning of the wait: there the path is back on the thread that waited. No thread is
//! followed while it is already being followed, and each step covers less time, so a walk ends.

use std::collections::BTreeSet;

use crate::Name;
use crate::rows::{Block, Rows, Thread, Wait};
use crate::segment::{Because, BlockPart, Culprit, CulpritKind, Request, Segment, State};

/// Threads that wait for each other, one after the other, that are followed.
pub const MAX_DEPTH: usize = 16;

/// A path over rows, and the rows that it lacks.
#[derive(Clone, Debug, Default)]
pub struct Walk {
    /// In order of time: contiguous, from the beginning of the interval to its end.
    pub segments: Vec<Segment>,
    /// Threads and times whose waits are not in memory: their segments are unknown, or blocked.
    pub missing: BTreeSet<(i64, i64, i64)>,
    /// `ts_ns` of block requests that are not in memory.
    pub missing_blocks: BTreeSet<i64>,
}

/// The path of thread `tid` from `from_ns` to `until_ns`.
pub fn walk(rows: &Rows, tid: i64, from_ns: i64, until_ns: i64) -> Walk {
    let mut walker = Walker {
        rows,
        interval_ns: until_ns.saturating_sub(from_ns).max(1),
        walk: Walk::default(),
        on_path: Vec::new(),
    };
    walker.thread(tid, from_ns, until_ns, None);
    let mut walk = walker.walk;
    walk.segments.reverse();
    walk
}

struct Walker<'a> {
    rows: &'a Rows,
    interval_ns: i64,
    /// Its segments in the order in which they are found: the last one first.
    walk: Walk,
    on_path: Vec<i64>,
}

/// A time of one thread.
#[derive(Clone, Copy)]
struct Here<'a> {
    tid: i64,
    thread: Option<&'a Thread>,
    because: Option<&'a Because>,
}

/// The facts of a segment.
#[derive(Default)]
struct What<'a> {
    wait: Option<&'a Wait>,
    reason: Option<Name>,
    culprit: Option<Culprit>,
    block: Option<Request>,
}

impl<'a> What<'a> {
    fn of(wait: &'a Wait) -> Self {
        Self {
            wait: Some(wait),
            reason: wait.reason.clone(),
            ..Self::default()
        }
    }

    fn unknown(reason: &str) -> Self {
        Self {
            reason: Some(Name::from(reason)),
            ..Self::default()
        }
    }
}

impl<'a> Walker<'a> {
    /// Thread `tid` in this time, which another thread's wait makes matter.
    fn thread(&mut self, tid: i64, from_ns: i64, until_ns: i64, because: Option<&Because>) {
        if from_ns >= until_ns {
            return;
        }
        let here = Here {
            tid,
            thread: self.rows.threads.get(&tid),
            because,
        };
        let recorded = here.thread.filter(|thread| thread.recorded);
        let Some(thread) = recorded.filter(|thread| thread.covers(from_ns, until_ns)) else {
            // Of others there is nothing to read.
            if recorded.is_some() || here.thread.is_none() {
                self.walk.missing.insert((tid, from_ns, until_ns));
            }
            let what = What::unknown("not_recorded");
            self.push(here, from_ns, until_ns, State::Unknown, what);
            return;
        };
        let mut until_ns = until_ns;
        let life = thread.life_at(until_ns);
        if let Some(ended_ns) = life.and_then(|life| life.ended_ns)
            && ended_ns < until_ns
        {
            let ended_ns = ended_ns.max(from_ns);
            self.push(
                here,
                ended_ns,
                until_ns,
                State::Absent,
                What::unknown("after_end"),
            );
            until_ns = ended_ns;
        }
        let started_ns = life.map_or(from_ns, |life| life.started_ns.clamp(from_ns, until_ns));
        self.on_path.push(tid);
        self.seen(here, thread, started_ns, until_ns);
        self.on_path.pop();
        self.push(
            here,
            from_ns,
            started_ns,
            State::Absent,
            What::unknown("before_start"),
        );
    }

    /// A time in which the thread existed.
    fn seen(&mut self, here: Here<'_>, thread: &Thread, from_ns: i64, until_ns: i64) {
        let seen_until_ns = thread
            .seen_until_ns
            .unwrap_or(i64::MAX)
            .clamp(from_ns, until_ns);
        let seen_from_ns = thread
            .seen_from_ns
            .unwrap_or(i64::MIN)
            .clamp(from_ns, seen_until_ns);
        let after = What::unknown("unseen_end");
        self.push(here, seen_until_ns, until_ns, State::Unknown, after);
        self.lived(here, thread, seen_from_ns, seen_until_ns);
        let before = What::unknown("unseen_start");
        self.push(here, from_ns, seen_from_ns, State::Unknown, before);
    }

    /// A time of which the waits are known.
    fn lived(&mut self, here: Here<'_>, thread: &Thread, from_ns: i64, until_ns: i64) {
        let mut end_ns = until_ns;
        while end_ns > from_ns {
            let Some((wait, next_ns)) = thread.wait_before(end_ns) else {
                break;
            };
            let begin_ns = wait.from_ns.max(from_ns);
            let Some(ran_ns) = wait.until_ns else {
                // It ran again at some time before it left the CPU the next time.
                let until_ns = next_ns.map_or(end_ns, |next| next.min(end_ns));
                self.push(here, until_ns, end_ns, State::Running, What::default());
                let what = What {
                    reason: Some(Name::from("unseen_return")),
                    ..What::of(wait)
                };
                self.push(here, begin_ns, until_ns, State::Unknown, what);
                end_ns = begin_ns;
                continue;
            };
            if ran_ns <= from_ns {
                break;
            }
            let ran_ns = ran_ns.min(end_ns).max(begin_ns);
            self.push(here, ran_ns, end_ns, State::Running, What::default());
            self.wait(here, wait, begin_ns, ran_ns);
            end_ns = begin_ns;
        }
        self.push(here, from_ns, end_ns, State::Running, What::default());
    }

    /// The part of a wait between two times.
    fn wait(&mut self, here: Here<'_>, wait: &Wait, from_ns: i64, until_ns: i64) {
        if wait.is_for_cpu() {
            self.push(here, from_ns, until_ns, State::Runnable, What::of(wait));
            return;
        }
        let woken_ns = wait.woken_ns.unwrap_or(i64::MAX).clamp(from_ns, until_ns);
        let what = What {
            reason: Some(Name::from("cpu")),
            ..What::of(wait)
        };
        self.push(here, woken_ns, until_ns, State::Runnable, what);
        if from_ns >= woken_ns {
            return;
        }
        let waker_tid = match wait.cause.as_ref().map(Name::as_str) {
            Some("thread") => wait.cause_id.or(wait.waker_tid),
            // The sender, if it is known.
            Some("network" | "signal") => wait.cause_id,
            Some(_) => None,
            None => wait.waker_tid,
        };
        match (waker_tid, wait.cause.as_ref().map(Name::as_str)) {
            (Some(tid), _) => {
                let caused_ns = wait.caused_ns.unwrap_or(woken_ns).clamp(from_ns, woken_ns);
                let what = What {
                    culprit: Some(Culprit {
                        kind: CulpritKind::Network,
                        name: None,
                        tid: None,
                    }),
                    ..What::of(wait)
                };
                self.push(here, caused_ns, woken_ns, State::Blocked, what);
                self.follow(here, wait, tid, from_ns, caused_ns);
            }
            (None, Some("block_request")) => {
                self.block_request(here, wait, from_ns, woken_ns);
            }
            (None, cause) => {
                let kind = match (cause, wait.waker.as_ref().map(Name::as_str)) {
                    (Some("thread"), _) => CulpritKind::Thread,
                    (Some("timer"), _) | (None, Some("timer")) => CulpritKind::Timer,
                    (Some("network"), _) => CulpritKind::Network,
                    (Some("signal"), _) => CulpritKind::Signal,
                    (Some("interrupt"), _) => CulpritKind::Interrupt,
                    (None, Some(name)) if name.starts_with("irq:") => CulpritKind::Interrupt,
                    (None, Some(name)) if name.starts_with("softirq:") => CulpritKind::Interrupt,
                    _ => CulpritKind::Unknown,
                };
                let what = What {
                    culprit: Some(Culprit {
                        kind,
                        name: wait.waker.clone(),
                        tid: None,
                    }),
                    ..What::of(wait)
                };
                self.push(here, from_ns, woken_ns, State::Blocked, what);
            }
        }
    }

    /// A wait that thread `tid` ended.
    fn follow(&mut self, here: Here<'_>, wait: &Wait, tid: i64, from_ns: i64, until_ns: i64) {
        let known = self.rows.threads.get(&tid);
        let far = self.on_path.len() >= MAX_DEPTH;
        let again = self.on_path.contains(&tid);
        if known.is_none() && !far && !again {
            self.walk.missing.insert((tid, from_ns, until_ns));
        }
        if far || again || !known.is_some_and(|thread| thread.recorded) {
            let what = What {
                culprit: Some(self.named(CulpritKind::Thread, Some(tid), wait.waker.as_ref())),
                ..What::of(wait)
            };
            self.push(here, from_ns, until_ns, State::Blocked, what);
            return;
        }
        let because = Because {
            tid: here.tid,
            reason: wait.reason.clone(),
            syscall: wait.syscall.clone(),
            rid: wait.rid,
        };
        let life = known.and_then(|thread| thread.life_at(until_ns));
        let started_ns = life.map_or(from_ns, |life| life.started_ns.clamp(from_ns, until_ns));
        self.thread(tid, started_ns, until_ns, Some(&because));
        // Before the other thread existed, the path is back on the thread that waited.
        let what = What {
            culprit: Some(self.named(CulpritKind::Thread, Some(tid), wait.waker.as_ref())),
            ..What::of(wait)
        };
        self.push(here, from_ns, started_ns, State::Blocked, what);
    }

    /// A wait that a block request ended.
    fn block_request(&mut self, here: Here<'_>, wait: &Wait, from_ns: i64, until_ns: i64) {
        let ts_ns = wait.cause_id.unwrap_or_default();
        let found = self.rows.blocks.get(&ts_ns);
        if found.is_none() && wait.cause_id.is_some() {
            self.walk.missing_blocks.insert(ts_ns);
        }
        // Of requests that began at the same time, the one that was completed last before the
        // thread was woken.
        let woken_ns = wait.woken_ns.unwrap_or(i64::MAX);
        let block = found.and_then(|all| {
            let done = |block: &&Block| block.completed_ns.is_some_and(|at| at <= woken_ns);
            let last = all
                .iter()
                .filter(done)
                .max_by_key(|block| block.completed_ns);
            last.or_else(|| all.first().filter(|_| all.len() == 1))
        });
        let request = |part| Request {
            ts_ns,
            device: block.and_then(|block| block.device.clone()),
            op: block.and_then(|block| block.op.clone()),
            bytes: block.map_or(0, |block| block.bytes),
            path: block.and_then(|block| block.path.clone()),
            part,
        };
        let what = |part| What {
            culprit: Some(Culprit {
                kind: CulpritKind::BlockRequest,
                name: block.and_then(|block| block.device.clone()),
                tid: None,
            }),
            block: Some(request(part)),
            ..What::of(wait)
        };
        let times = block.and_then(|b| Some((b.queued_ns?, b.issued_ns?, b.completed_ns?)));
        let Some((queued, issued, completed)) = times else {
            self.push(here, from_ns, until_ns, State::Blocked, what(None));
            return;
        };
        let completed = completed.clamp(from_ns, until_ns);
        let issued = issued.clamp(from_ns, completed);
        let queued = queued.clamp(from_ns, issued);
        let parts = [
            (completed, until_ns, BlockPart::Completion),
            (issued, completed, BlockPart::Device),
            (queued, issued, BlockPart::Queue),
        ];
        for (begin, end, part) in parts {
            self.push(here, begin, end, State::Blocked, what(Some(part)));
        }
        // The request did not exist yet: what the thread waited for then was not seen.
        let before = What {
            reason: Some(Name::from("before_request")),
            ..What::of(wait)
        };
        self.push(here, from_ns, queued, State::Unknown, before);
    }

    /// A culprit by its name: the given one, or else the name of the thread.
    fn named(&self, kind: CulpritKind, tid: Option<i64>, name: Option<&Name>) -> Culprit {
        let known = tid.and_then(|tid| self.rows.threads.get(&tid));
        let comm = || known?.lives().last()?.comm.clone();
        Culprit {
            kind,
            name: name.cloned().or_else(comm),
            tid,
        }
    }

    fn push(&mut self, here: Here<'_>, from_ns: i64, until_ns: i64, state: State, what: What<'_>) {
        // A thread that is not followed has the depth at which it would be.
        let above = self.on_path.iter().position(|tid| *tid == here.tid);
        let depth = above.unwrap_or(self.on_path.len());
        self.push_at(depth, here, from_ns, until_ns, state, what);
    }

    fn push_at(
        &mut self,
        depth: usize,
        here: Here<'_>,
        from_ns: i64,
        until_ns: i64,
        state: State,
        what: What<'_>,
    ) {
        if from_ns >= until_ns {
            return;
        }
        let dur_ns = until_ns.saturating_sub(from_ns);
        let life = here.thread.and_then(|thread| thread.life_at(until_ns));
        self.walk.segments.push(Segment {
            ts_ns: from_ns,
            dur_ns,
            share: dur_ns as f64 / self.interval_ns as f64,
            depth,
            host: None,
            tid: here.tid,
            comm: life.and_then(|life| life.comm.clone()),
            pid: life.and_then(|life| life.pid),
            process: life.and_then(|life| life.process.clone()),
            state,
            reason: what.reason,
            syscall: what.wait.and_then(|wait| wait.syscall.clone()),
            rid: what.wait.and_then(|wait| wait.rid),
            path: None,
            culprit: what.culprit,
            block: what.block,
            because: here.because.cloned(),
        });
    }
}

#[cfg(test)]
mod tests;
