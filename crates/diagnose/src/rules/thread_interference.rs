//! `thread-interference`: threads whose requests are slow because of each other's.

use hashbrown::{HashMap, HashSet};

use crate::order::{Head, Step};
use crate::prelude::*;
use crate::under_way::UnderWay;

/// Part of a thread's life that it loses.
const MIN_SCORE: f64 = 0.3;
/// Number of calls of a kind without overlap from which on their median is meaningful.
const MIN_ALONE: u64 = 32;
/// How many times longer a call takes in company.
const MIN_SLOWDOWN: f64 = 2.0;
/// Calls in company from which on they count.
const MIN_TOGETHER: u64 = 8;
/// Calls of other threads of a process that are remembered.
const RECENT: usize = 8;
/// How many times as much a process gets done with several calls under way as with one, from which
/// on its threads help more than they hinder. Calls that a lock lets through one by one still gain
/// a little, by what each does outside of it.
const MIN_GAIN: f64 = 1.25;
static INFO: RuleInfo = RuleInfo {
    id: "thread-interference",
    name: "Threads that slow each other down",
    group: Group::Performance,
    needs: &[Input::Calls, Input::Block, Input::Waits],
    kinds: kinds![Read, Write, Transfer, Sync, SyncRange, Allocate, Open, Truncate, Rename, Unlink, Stat, Link, Symlink, Mkdir, Rmdir, ReadDir],
    about_calls: false,
    what: "A thread spends much of its life in calls that are slow only because other threads of \
           its process make calls at the same time: they compete for a lock of the kernel (of an \
           inode, a directory, the journal) or for the device.",
    when: "The contention score (SCI) of a thread is above 0.3. The score is the fraction of its \
           life that the thread loses in calls that overlap with calls of other threads of its \
           process; eight or more are needed. The loss of a call is the time that it waited until \
           another thread of the process woke it, or its time beyond the median of similar calls \
           (same name, same power of two of bytes, both from memory or both from the device) that \
           ran alone, if there were 32 or more of those and the median of the overlapping ones is \
           at least twice as long. A thread that is slow by itself has no such score, and waits for \
           locks that programs take themselves (flock, fcntl) belong to rule contention. Silent for \
           a process that does at least 25 % more work with several calls in progress than \
           with one: its overlapping calls would have taken 1.25 times as long or more one after \
           another, each at the median of similar calls alone. Jumping reads that wait for the \
           device belong to random-access, which recommends several of them in progress.",
    cost: "the additional time of the thread's calls while calls of other threads were in progress, \
           scaled so that the threads of the process together lose no more than the one that loses \
           most",
    advice: "Give each thread its own file or directory; let one thread make the calls for all, or \
           as many threads as the device serves at a time; share one sync (group commit) instead \
           of one per thread; spread files over several directories.",
    not_when: "Not when the work needs the threads for something other than these calls.",
    bad: "/* in each of 32 threads */\nfd = open(\"shared\", O_WRONLY);\npwrite(fd, block, n, next(&at));",
    good: "/* in each thread */\nfd = open(own_name, O_WRONLY | O_CREAT);\nwrite(fd, block, n);",
    reference: "EZIOTracer, section 4.3.1: slowdown caused by thread interference (SCI)",
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Alike {
    pid: i32,
    kind: Kind,
    /// Power of two of the bytes that it moved.
    size: u32,
    missed: bool,
}

#[derive(Debug, Default)]
struct Times {
    alone: Durations,
    together: Durations,
}

/// One thread's calls of one sort that overlapped with others.
#[derive(Debug, Default)]
struct Overlapped {
    calls: i64,
    sum_ns: i64,
    /// Of which waits that another thread of the process ended.
    woken_at_ns: i64,
}

#[derive(Debug, Default)]
struct Thread {
    pid: i32,
    comm: Text,
    first_at_ns: i64,
    last_at_ns: i64,
    sorts: Vec<(Alike, Overlapped)>,
    examples: Examples,
}

/// Sorts of calls of a thread that are distinguished.
const MAX_SORTS: usize = 64;

/// A thread that loses time to others: how much of it, in how many calls.
struct Loser<'a> {
    tid: i32,
    thread: &'a Thread,
    calls: i64,
    cost: i64,
    score: f64,
}

rule! {
    pub struct ThreadInterference {
        threads: Bounded<i32, Thread>
            = Bounded::new(|t| t.sorts.iter().map(|(_, o)| o.calls.unsigned_abs()).sum()),
        times: Bounded<Alike, Times> = Bounded::new(|times| times.together.count),
        /// Of each process the last calls: thread, begin and end.
        recent: Bounded<i32, RecentCalls> = Bounded::new(|recent| recent.next as u64),
        company: Bounded<i32, UnderWay> = Bounded::new(|company| company.ns().unsigned_abs()),
        /// Where each thread is in each file that it reads.
        heads: Bounded<(i32, FileId), Head>,
    }
}

#[derive(Debug, Default)]
struct RecentCalls {
    calls: [(i32, i64, i64); RECENT],
    next: usize,
}

impl ThreadInterference {
    /// Processes that get more done with several calls under way.
    fn gaining(&self) -> HashSet<i32> {
        let mut alone: HashMap<i32, i64> = HashMap::new();
        for (alike, times) in self.times.iter().filter(|(_, t)| t.alone.count >= MIN_ALONE) {
            let calls = i64::try_from(times.together.count).unwrap_or(i64::MAX);
            let ns = alone.entry(alike.pid).or_default();
            *ns = ns.saturating_add(calls.saturating_mul(times.alone.median_ns()));
        }
        let gains = |(pid, alone): &(i32, i64)| {
            let together = self.company.get(pid).map_or(0, UnderWay::ns);
            *alone as f64 >= together as f64 * MIN_GAIN
        };
        alone.into_iter().filter(gains).map(|(pid, _)| pid).collect()
    }

    /// Whether a call reads elsewhere than where the thread's read of that file before ended.
    fn jumps(&mut self, call: &Call) -> bool {
        let (Kind::Read, Some(file), Some((start, end))) = (call.kind, call.file, call.range()) else {
            return false;
        };
        self.heads.entry((call.tid, file)).step(start, end) == Step::Jump
    }
}

impl Rule for ThreadInterference {
    fn call(&mut self, call: &Call, context: &Context) {
        if !call.succeeded() || call.asynchronous {
            return;
        }
        // Calls on pipes and sockets wait for their other end.
        if call.kind.is_data() && !context.file(call).is_some_and(|f| f.is_regular()) {
            return;
        }
        let jumps = self.jumps(call);
        let recent = self.recent.entry(call.pid);
        // Rows come in the order of returning: one that began before this one and
        // returns later is not known yet.
        let met = recent.calls.iter().any(|(tid, _, end)| *tid != call.tid && call.ts_ns < *end);
        let next = recent.next % RECENT;
        if let Some(slot) = recent.calls.get_mut(next) {
            *slot = (call.tid, call.ts_ns, call.ended_at_ns());
        }
        recent.next += 1;
        let alike = Alike {
            pid: call.pid,
            kind: call.kind,
            size: call.moved().max(1).ilog2(),
            missed: context.below.missed(),
        };
        let times = self.times.entry(alike);
        if met {
            times.together.add(call.dur_ns);
            self.company.entry(call.pid).add(call.ts_ns, call.ended_at_ns());
        } else {
            times.alone.add(call.dur_ns);
        }
        let thread = self.threads.entry(call.tid);
        if thread.first_at_ns == 0 {
            (thread.pid, thread.first_at_ns) = (call.pid, call.ts_ns);
        }
        call.name_thread(&mut thread.comm);
        thread.last_at_ns = call.ended_at_ns();
        if !met || jumps && alike.missed {
            return;
        }
        let at = thread.sorts.iter().position(|(sort, _)| *sort == alike);
        if at.is_none() && thread.sorts.len() < MAX_SORTS {
            thread.sorts.push((alike, Overlapped::default()));
        }
        let at = at.unwrap_or(thread.sorts.len() - 1);
        let Some((_, own)) = thread.sorts.get_mut(at) else { return };
        own.calls += 1;
        own.sum_ns += call.dur_ns;
        let below = &context.below;
        if below.lock_wait_ns > 0 && self.recent.get(&call.pid).is_some_and(|r| r.calls.iter().any(|c| c.0 == below.waker_tid)) {
            own.woken_at_ns += below.lock_wait_ns;
            thread.examples.add(call);
        } else if below.lock_wait_ns == 0 {
            thread.examples.add(call);
        }
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        let gaining = self.gaining();
        let mut losing: HashMap<i32, Vec<Loser>> = HashMap::new();
        for (tid, thread) in self.threads.iter().filter(|(_, thread)| !gaining.contains(&thread.pid)) {
            let life = (thread.last_at_ns - thread.first_at_ns).max(1);
            let (mut cost, mut calls) = (0i64, 0i64);
            for (alike, own) in &thread.sorts {
                let times = self.times.get(alike);
                let compared = times.filter(|t| t.alone.count >= MIN_ALONE);
                let by_median = compared.map_or(0, |t| {
                    let (alone, together) = (t.alone.median_ns(), t.together.median_ns());
                    if together as f64 >= alone as f64 * MIN_SLOWDOWN {
                        own.sum_ns.saturating_sub(own.calls.saturating_mul(alone))
                    } else {
                        0
                    }
                });
                // Some may pass, and others wait for long.
                let slower = by_median.max(own.woken_at_ns);
                if slower > 0 {
                    cost += slower;
                    calls += own.calls;
                }
            }
            let score = cost as f64 / life as f64;
            if calls >= MIN_TOGETHER as i64 && score > MIN_SCORE {
                let all = losing.entry(thread.pid).or_default();
                all.push(Loser { tid: *tid, thread, calls, cost, score });
            }
        }
        for threads in losing.into_values() {
            // They lose it at the same time: together as much as the one that loses most.
            let count = i64::try_from(threads.len()).unwrap_or(i64::MAX);
            let most = threads.iter().map(|thread| thread.cost).max().unwrap_or(0);
            let all: i64 = threads.iter().map(|thread| thread.cost).sum();
            for Loser { tid, thread, calls, cost, score } in threads {
                let cost = (cost as f64 * most as f64 / all.max(1) as f64) as i64;
                let life = thread.last_at_ns - thread.first_at_ns;
                if !run.matters(cost) {
                    continue;
                }
                out.push(Found {
                    cost_ns: Some(cost),
                    title: format!(
                        "{} loses {} of its life to other threads of its process: {} of its calls took longer because others were in progress",
                        thread.comm,
                        units::percent(score.min(1.0)),
                        units::count(calls),
                    ),
                    subject: Subject {
                        tid: Some(tid),
                        ..Subject::process(thread.pid, &thread.comm)
                    },
                    evidence: vec![
                        evidence("score", score),
                        number("calls", calls),
                        number("life_ns", life),
                        number("threads_that_lose", count),
                    ],
                    examples: thread.examples.list(),
                    query: calls!("tid = {tid} AND errno IS NULL"),
                    ..Found::default()
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, fires, silent};

    #[test]
    fn fires_on_threads_that_are_slower_together() {
        let mut s = Scenario::new();
        let fd = s.open("/data/shared", "O_RDWR|O_CREAT");
        for i in 0..300 {
            s.pwrite(fd, 4096, i * 8192);
            s.pwrite_beside(101, fd, 4096, i * 8192 + 4096, 8);
        }
        fires("thread-interference", s);
    }

    #[test]
    fn silent_when_company_costs_nothing_and_on_one_slow_thread() {
        let mut s = Scenario::new();
        let fd = s.open("/data/shared", "O_RDWR|O_CREAT");
        for i in 0..300 {
            s.pwrite(fd, 4096, i * 8192);
            s.pwrite_beside(101, fd, 4096, i * 8192 + 4096, 1);
        }
        silent("thread-interference", s);
        let mut s = Scenario::new();
        let fd = s.open("/data/slow", "O_RDWR|O_CREAT");
        for i in 0..300 {
            s.slow(i % 2 * 1_000_000);
            s.pwrite(fd, 4096, i * 8192);
        }
        silent("thread-interference", s);
    }

    /// Alone a call takes 1.4 us; eight at once take `us` each.
    fn eight_at_once(us: i64) -> Scenario {
        let mut s = Scenario::new();
        let fd = s.open("/data/shared", "O_RDWR|O_CREAT");
        for i in 0..300 {
            s.pwrite(fd, 4096, i * 8192);
        }
        for _ in 0..100 {
            let began = s.now();
            s.wait_us(us);
            for tid in 101..109 {
                s.thread(tid, "worker");
                s.pwrite_since(fd, 4096, began);
            }
        }
        s
    }

    #[test]
    fn silent_when_threads_get_more_done_together() {
        silent("thread-interference", eight_at_once(4));
        fires("thread-interference", eight_at_once(16));
    }

    #[test]
    fn silent_on_reads_that_wait_for_the_device() {
        let mut s = Scenario::new();
        let fd = s.open_existing("/data/table", "O_RDONLY", 1 << 30);
        let at = |i: i64| i * 389 % 1000 * 1_000_448;
        for i in 0..300 {
            s.missed(4096, 80_000);
            s.pread(fd, 4096, at(i));
        }
        for i in 0..100 {
            let began = s.now();
            s.wait_us(400);
            for tid in 101..105 {
                s.thread(tid, "reader");
                s.missed_pread_since(fd, 4096, at(i * 4 + i64::from(tid)), began);
            }
        }
        let found = s.diagnose().findings;
        let rules: Vec<&str> = found.iter().map(|f| f.rule).collect();
        assert!(!rules.contains(&"thread-interference"), "{rules:?}");
    }
}
