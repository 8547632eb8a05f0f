//! `contention`: threads wait for each other on one file.

use std::collections::BTreeMap;

use crate::prelude::*;

/// Share of a thread's time that goes into waiting for locks.
const MIN_PART: f64 = 0.1;
/// Waits from which on they count.
const MIN_WAITS: u64 = 5;
/// A lock that takes longer than this was waited for, nanoseconds: without a
/// holder a call takes some microseconds.
const WAITED_NS: i64 = 50_000;
/// Writes at a time of one thread and of several from which on medians compare.
const MIN_WRITES: u64 = 100;
/// How many times longer a write takes when another one is under way.
const MIN_SLOWDOWN: f64 = 2.0;

static INFO: RuleInfo = RuleInfo {
    id: "contention",
    name: "Waiting for each other on one file",
    group: Group::Performance,
    needs: &[Input::Calls],
    kinds: kinds![Flock, Fcntl, Write],
    about_calls: false,
    what: "Threads or processes wait for a lock on one file: either a lock that they take \
           themselves (flock, fcntl), or the kernel's lock that allows one write at a time.",
    when: "Locks: one thread calls flock, F_SETLKW, or F_OFD_SETLKW on one file five or more times \
           with waits above 50 microseconds (a free lock takes less), and these waits add up to a \
           tenth of the process's time or more; or several threads do so together that each wait \
           less often, such as the processes of a script. Writes: two or more threads write to one \
           file, and the median of writes that started while another thread's write was in progress \
           is at least twice the median of the other writes, with 100 or more of each. Only writes \
           of like size (to a power of two) are compared, and durable ones with durable ones.",
    cost: "the time of the waits; for writes, the time of overlapping writes beyond what the same \
           number takes alone",
    advice: "Hold the lock for less time (no fsync, no computation under it), or split it by range \
           or over several files. Write through one thread, use one file per thread, or write \
           with O_DIRECT at explicit offsets (pwrite) on xfs, which allows such writes in \
           parallel.",
    not_when: "Not when the lock is how one process waits for another to finish its work.",
    bad: "flock(fd, LOCK_EX);\nwrite(fd, line, n);\nfsync(fd);\nflock(fd, LOCK_UN);",
    good: "prepare();\nflock(fd, LOCK_EX);\nwrite(fd, line, n);\nflock(fd, LOCK_UN);\nfdatasync(fd);     /* once for many */",
    reference: "EZIOTracer, section 4.3; the inode's i_rwsem",
};

/// One thread on one file: its locks.
#[derive(Debug, Default)]
struct Locks {
    pid: i32,
    comm: Text,
    waits: u64,
    waited_ns: i64,
    first_at_ns: i64,
    last_at_ns: i64,
    examples: Examples,
}

/// The last writes to a file, of whatever size: thread, begin and end.
#[derive(Debug, Default)]
struct Recent {
    writes: [(i32, i64, i64); 4],
    next: usize,
}

impl Recent {
    /// The other thread whose write was under way when this one began. Rows come in the order of returning: one that
    /// began before this one and returned before is known, one that returns later is not.
    fn busy(&self, call: &Call) -> Option<i32> {
        let busy = |w: &&(i32, i64, i64)| w.0 != call.tid && w.1 <= call.ts_ns && call.ts_ns < w.2;
        self.writes.iter().find(busy).map(|w| w.0)
    }

    fn add(&mut self, call: &Call) {
        let next = self.next % self.writes.len();
        if let Some(slot) = self.writes.get_mut(next) {
            *slot = (call.tid, call.ts_ns, call.ended_at_ns());
        }
        self.next += 1;
    }
}

/// One file: its writes.
#[derive(Debug, Default)]
struct Writes {
    pid: i32,
    comm: Text,
    alone: Durations,
    together: Durations,
    threads: std::collections::BTreeSet<i32>,
    examples: Examples,
}

rule! {
    pub struct Contention {
        locks: Bounded<(i32, FileId), Locks> = Bounded::new(|locks| locks.waited_ns.unsigned_abs()),
        recent: Bounded<FileId, Recent>,
        /// By file, size class, and whether they are durable.
        writes: Bounded<(FileId, u32, bool), Writes> = Bounded::new(|writes| writes.together.count),
    }
}

/// Threads of a file that are distinguished.
const MAX_THREADS: usize = 64;

impl Rule for Contention {
    fn call(&mut self, call: &Call, context: &Context) {
        let Some(file) = call.file.filter(|_| call.succeeded() && !call.asynchronous) else { return };
        if call.kind == Kind::Write {
            if call.moved() == 0 || !context.file(call).is_some_and(|f| f.is_regular()) {
                return;
            }
            let size_class = call.moved().ilog2();
            let writes = self.writes.entry((file, size_class, context.synced.is_some()));
            if writes.comm.is_empty() {
                writes.pid = call.pid;
                writes.comm = call.comm_text();
            }
            let recent = self.recent.entry(file);
            if let Some(other) = recent.busy(call) {
                writes.together.add(call.dur_ns);
                writes.examples.add(call);
                for tid in [other, call.tid] {
                    if writes.threads.len() < MAX_THREADS {
                        writes.threads.insert(tid);
                    }
                }
            } else {
                writes.alone.add(call.dur_ns);
            }
            recent.add(call);
            return;
        }
        let waits = match call.kind {
            Kind::Flock => call.takes_lock() && !call.has_flag("LOCK_NB"),
            _ => call.arg("cmd").is_some_and(|cmd| matches!(cmd, "F_SETLKW" | "F_OFD_SETLKW")),
        };
        if !waits {
            return;
        }
        let locks = self.locks.entry((call.tid, file));
        if locks.first_at_ns == 0 {
            locks.first_at_ns = call.ts_ns;
            locks.pid = call.pid;
            locks.comm = call.comm_text();
        }
        locks.last_at_ns = call.ended_at_ns();
        if call.dur_ns > WAITED_NS {
            locks.waits += 1;
            locks.waited_ns += call.dur_ns;
            locks.examples.add(call);
        }
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        let path = |file: FileId| run.state.files.get(file).map_or("", |f| f.name());
        let mut seldom: BTreeMap<(FileId, &str), Vec<&Locks>> = BTreeMap::new();
        for ((tid, file), locks) in self.locks.iter() {
            // Of the process, in whose time the thread may have begun late.
            let time = run.lifetime_ns(locks.pid).max(locks.last_at_ns - locks.first_at_ns).max(1);
            let part = locks.waited_ns as f64 / time as f64;
            if locks.waits < MIN_WAITS {
                // One that takes the lock once has no time of its own between two.
                if locks.waited_ns as f64 >= run.lifetime_ns(locks.pid) as f64 * MIN_PART {
                    seldom.entry((*file, &*locks.comm)).or_default().push(locks);
                }
                continue;
            }
            if part < MIN_PART || !run.matters(locks.waited_ns) {
                continue;
            }
            out.push(Found {
                cost_ns: Some(locks.waited_ns),
                costs: Costs::of(&[Kind::Flock, Kind::Fcntl]),
                title: format!(
                    "{} waits {} times for the lock of {}: {} of its time",
                    locks.comm,
                    units::count(locks.waits as i64),
                    path(*file),
                    units::percent(part),
                ),
                subject: Subject {
                    tid: Some(*tid),
                    ..Subject::process(locks.pid, &locks.comm).with_file(*file, path(*file))
                },
                evidence: vec![number("waits", locks.waits as i64), evidence("share_of_thread", part)],
                examples: locks.examples.list(),
                query: calls!("file_id = {file} AND (syscall = 'flock' OR args LIKE 'cmd=F_%SETLK%')"),
                ..Found::default()
            });
        }
        for ((file, comm), all) in seldom {
            let waits: u64 = all.iter().map(|locks| locks.waits).sum();
            let waited: i64 = all.iter().map(|locks| locks.waited_ns).sum();
            if all.len() < 2 || waits < MIN_WAITS || !run.matters(waited) {
                continue;
            }
            let mut examples = Examples::default();
            all.iter().for_each(|locks| examples.add_all(&locks.examples));
            out.push(Found {
                cost_ns: Some(waited),
                costs: Costs::of(&[Kind::Flock, Kind::Fcntl]),
                title: format!(
                    "{} processes {comm} wait {} times for the lock of {}, {} in total",
                    units::count(all.len() as i64),
                    units::count(waits as i64),
                    path(file),
                    units::duration(waited),
                ),
                subject: Subject {
                    comm: (!comm.is_empty()).then(|| comm.to_owned()),
                    ..Subject::default()
                }
                .with_file(file, path(file)),
                evidence: vec![number("waits", waits as i64), number("processes", all.len() as i64)],
                examples: examples.list(),
                query: calls!("file_id = {file} AND (syscall = 'flock' OR args LIKE 'cmd=F_%SETLK%')"),
                ..Found::default()
            });
        }
        for ((file, ..), writes) in self.writes.iter() {
            let (alone, together) = (writes.alone.median_ns(), writes.together.median_ns());
            let slowdown = together as f64 / alone.max(1) as f64;
            let count = i64::try_from(writes.together.count).unwrap_or(i64::MAX);
            let cost = writes.together.sum_ns.saturating_sub(count.saturating_mul(alone));
            let enough = writes.together.count >= MIN_WRITES && writes.alone.count >= MIN_WRITES;
            if !enough || writes.threads.len() < 2 || slowdown < MIN_SLOWDOWN || !run.matters(cost) {
                continue;
            }
            out.push(Found {
                cost_ns: Some(cost),
                costs: Costs::of(&[Kind::Write]),
                title: format!(
                    "{} threads write to {} at once: a write takes {} while another is in progress, {} alone",
                    writes.threads.len(),
                    path(*file),
                    units::duration(together),
                    units::duration(alone),
                ),
                subject: Subject::process(writes.pid, &writes.comm).with_file(*file, path(*file)),
                evidence: vec![
                    number("threads", writes.threads.len() as i64),
                    number("overlapping_writes", count),
                    number("median_overlapping_ns", together),
                    number("median_alone_ns", alone),
                ],
                examples: writes.examples.list(),
                query: calls!("file_id = {file} AND call_writes(syscall)"),
                ..Found::default()
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, fires, silent};

    #[test]
    fn silent_on_writes_of_other_kinds_and_on_a_burst_of_waits() {
        let mut s = Scenario::new();
        let fd = s.open("/data/dump", "O_RDWR|O_CREAT");
        for i in 0..300 {
            s.pwrite(fd, 256, i * 256);
        }
        // Large ones overlap each other, and take longer because they are.
        for i in 0..300 {
            s.pwrite(fd, 1 << 20, i << 21);
            s.pwrite_beside(101, fd, 1 << 20, (i << 21) + (1 << 20), 1);
        }
        silent("contention", s);
        let mut s = Scenario::new();
        let fd = s.open("/data/lock", "O_RDWR|O_CREAT");
        for _ in 0..6 {
            s.flock(fd, 2_000_000);
            s.wait_ms(1);
        }
        s.wait_ms(1000);
        s.stat("/data");
        silent("contention", s);
    }

    #[test]
    fn fires_on_waits_for_a_lock() {
        let mut s = Scenario::new();
        let fd = s.open("/data/lock", "O_RDWR|O_CREAT");
        for _ in 0..20 {
            s.flock(fd, 2_000_000);
            s.wait_ms(3);
        }
        let found = fires("contention", s);
        assert_eq!(found[0].cost_ns, Some(40_000_000));
    }

    #[test]
    fn processes_that_wait_once_each_count_together() {
        let waits = |processes: i32, ns: i64| {
            let mut s = Scenario::new();
            for pid in 200..200 + processes {
                s.process(pid);
                let began = s.now();
                let fd = s.open("/data/lock", "O_RDWR|O_CREAT");
                s.flock(fd, ns);
                s.close(fd);
                s.child_ends(began, 100, "program");
            }
            s
        };
        let found = fires("contention", waits(20, 2_000_000));
        assert_eq!((found.len(), found[0].evidence[0].value), (1, 20.0));
        silent("contention", waits(20, 1_000));
        silent("contention", waits(3, 2_000_000));
    }

    #[test]
    fn silent_on_free_locks() {
        let mut s = Scenario::new();
        let fd = s.open("/data/lock", "O_RDWR|O_CREAT");
        for _ in 0..1000 {
            s.flock(fd, 1_000);
        }
        silent("contention", s);
    }

    #[test]
    fn fires_on_writers_of_one_file() {
        let mut s = Scenario::new();
        let fd = s.open("/data/shared", "O_RDWR|O_CREAT");
        for i in 0..300 {
            s.pwrite(fd, 4096, i * 8192);
            s.pwrite_beside(101, fd, 4096, i * 8192 + 4096, 5);
        }
        fires("contention", s);
    }

    #[test]
    fn fires_on_small_writes_that_wait_for_large_ones() {
        let mut s = Scenario::new();
        let fd = s.open("/data/shared", "O_RDWR|O_CREAT");
        for i in 0..300 {
            s.pwrite(fd, 100, 0);
            s.pwrite(fd, 1 << 20, i << 20);
            s.pwrite_beside(101, fd, 100, 100, 500);
        }
        fires("contention", s);
    }
}
