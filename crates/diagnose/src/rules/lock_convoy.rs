//! `lock-convoy`: threads take turns with a lock that each holds while it is in calls to storage.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

use hashbrown::HashMap;

use crate::covered::Covered;
use crate::layers::Wait;
use crate::prelude::*;
use crate::summary::is_storage;

/// Part of its time that a thread waits for the lock, from which on it counts.
const MIN_PART: f64 = 0.1;
/// Waits of a thread from which on they are no accident.
const MIN_WAITS: u64 = 10;
/// Part of the time that a lock is held in which its holder is in calls to storage.
const MIN_IN_CALLS: f64 = 0.5;
/// Shorter waits are not looked at, nanoseconds: most are for a holder that computes.
const MIN_WAIT_NS: i64 = 20_000;
/// Times that a thread that waits ends the waits of others, for each of its own.
const MIN_HANDED_ON: f64 = 0.2;
/// Waits that are remembered until the calls of their time come.
const MAX_WAITING: usize = 1 << 17;
/// Threads of a lock.
const MAX_THREADS: usize = 1024;
/// In place of an address: all locks of a process whose waiters sleep on a futex of their own each.
const OWN: i64 = i64::MIN;
/// The program whose locks are like that.
const JAVA: &str = "java";
/// Threads that take turns with such locks: two may hand a task to and fro.
const MIN_OWN_THREADS: i64 = 3;
/// Requests of a process under way at once, on average, up to which they take turns.
const MAX_DEPTH: f64 = 1.1;
/// Files that are remembered of a lock, and named in the query.
const MAX_FILES: usize = 64;

static INFO: RuleInfo = RuleInfo {
    id: "lock-convoy",
    name: "Threads that take turns with a lock around I/O",
    group: Group::Performance,
    needs: &[Input::Calls, Input::Waits],
    kinds: Kinds::ALL,
    about_calls: false,
    what: "Threads take turns with a lock of the program, and each is in calls to storage while it \
           holds it. So only one request is under way at a time, whatever the device could do at \
           once, and one slow request holds all of them up. Their calls look quick; the time is \
           missing between the calls.",
    when: "Two or more threads of a process wait ten or more times each for one futex (a mutex, a \
           semaphore, a lock for readers and writers), and each wakes others there at least once \
           for every five waits of its own. Each such wait is ended by a thread that has held the \
           lock since it got it itself, or since the wait began, and that is in calls on files, \
           directories or block devices for half or more of that time. These waits take a tenth or \
           more of the thread's time. Waits shorter than 20 µs do not count. Syncs and synchronous \
           writes do not count: rule waits-for-anothers-sync has those. Each thread of a Java machine sleeps \
           on a futex of its own: these waits count as those for one lock, if three or more threads do so and the \
           process has 1.1 requests to storage under way at once on average or fewer. Threads of a pool that hand one task \
           from one to the next look the same, so confidence is low. PostgreSQL's lightweight locks \
           cannot be recognized, nor can any lock if the calls of class wait are recorded (their rows \
           have the address).",
    cost: "the time in which a thread waited and the holder of the lock was in calls to storage",
    advice: "Take the lock for what is in memory only: note under the lock what to read or write, \
             release it, make the call, take it again to publish the result. Where the lock guards \
             the position of a shared descriptor, use pread and pwrite, which have none. Divide one \
             lock into one for each file, shard or page; of SQLite, open a connection for each \
             thread. Let readers share the lock. Where others \
             need the same block, let them wait for that block only (a future or condition for each \
             block in flight).",
    not_when: "Not when the calls must follow one another, as of a log with one writer at a time; then \
               collect the work of the threads that wait into one call.",
    bad: "lock(&cache);\nif (!find(&cache, n)) {\n  pread(fd, page, 16384, n * 16384);  /* all others sleep in lock() */\n  insert(&cache, n, page);\n}\nunlock(&cache);",
    good: "lock(&cache);\nfound = find(&cache, n);\nunlock(&cache);\nif (!found) {\n  pread(fd, page, 16384, n * 16384);\n  lock(&cache); insert(&cache, n, page); unlock(&cache);\n}",
    reference: "M. Blasgen, J. Gray, M. Mitoma, T. Price: The convoy phenomenon, 1979; futex(2)",
};

/// A wait for a lock, known by the thread that ended it: the holder.
#[derive(Clone, Copy, Debug)]
struct Held {
    lock: (i32, i64),
    waiter: i32,
    wait_ns: i64,
    /// From when on the holder had the lock and the other waited.
    from_ns: i64,
    until_ns: i64,
    in_calls_ns: i64,
    counted: bool,
}

/// A thread that waits for a lock or holds it.
#[derive(Debug, Default)]
struct Member {
    comm: Text,
    /// When its last wait ended: it has the lock from then on.
    got_at_ns: i64,
    /// Waits in which the holder was in calls.
    waits: u64,
    waited_ns: i64,
    /// Such waits of others that it ended.
    ended: u64,
}

/// A futex.
#[derive(Debug, Default)]
struct Lock {
    members: BTreeMap<i32, Member>,
    waited_ns: i64,
    in_calls_ns: i64,
    counted_until_ns: i64,
    files: BTreeMap<FileId, i64>,
    examples: Examples,
}

/// The threads that wait on a futex.
#[derive(Clone, Copy, Debug, Default)]
struct Sleepers {
    first: Option<i32>,
    several: bool,
}

/// The calls to storage of a process.
#[derive(Debug, Default)]
struct Depth {
    sum_ns: i64,
    covered: Covered,
}

#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    pid: i32,
    first_at_ns: i64,
    last_at_ns: i64,
}

rule! {
    pub struct LockConvoy {
        /// By holder.
        held: HashMap<i32, VecDeque<Held>>,
        /// Waits of all holders.
        waiting: usize,
        threads: Bounded<i32, Seen> = Bounded::new(|seen| (seen.last_at_ns - seen.first_at_ns).unsigned_abs()),
        /// By process and address.
        locks: Bounded<(i32, i64), Lock> = Bounded::new(|lock| lock.waited_ns.unsigned_abs()),
        /// By process and address.
        sleepers: Bounded<(i32, i64), Sleepers> = Bounded::new(|sleepers| u64::from(sleepers.several)),
        /// Of processes with locks whose waiters sleep on futexes of their own.
        depths: HashMap<i32, Depth>,
    }
}

impl LockConvoy {
    fn waited(&mut self, wait: &Wait, address: i64, holder: i32, until_ns: i64, state: &State) {
        self.waited_for((wait.pid, address), wait, holder, until_ns);
        let process = state.process(wait.pid);
        if !process.is_some_and(|process| process.program == JAVA || process.comm == JAVA) {
            return;
        }
        let sleepers = self.sleepers.entry((wait.pid, address));
        sleepers.several |= *sleepers.first.get_or_insert(wait.tid) != wait.tid;
        if !sleepers.several {
            if self.depths.len() < MAX_THREADS {
                self.depths.entry(wait.pid).or_default();
            }
            self.waited_for((wait.pid, OWN), wait, holder, until_ns);
        }
    }

    fn waited_for(&mut self, key: (i32, i64), wait: &Wait, holder: i32, until_ns: i64) {
        let lock = self.locks.entry(key);
        let full = lock.members.len() >= MAX_THREADS;
        if full && !lock.members.contains_key(&wait.tid) {
            return;
        }
        let before = lock.members.get(&holder).map_or(0, |member| member.got_at_ns);
        let own = lock.members.entry(wait.tid).or_default();
        own.got_at_ns = own.got_at_ns.max(until_ns);
        if &*own.comm != wait.comm {
            own.comm = wait.comm.into();
        }
        let wait_ns = until_ns - wait.ts_ns;
        if wait_ns < MIN_WAIT_NS {
            return;
        }
        lock.waited_ns = lock.waited_ns.saturating_add(wait_ns);
        if self.waiting >= MAX_WAITING {
            self.held.clear();
            self.waiting = 0;
        }
        // The holder may have waited again by now, which says nothing of when it got the lock.
        let from_ns = if before <= until_ns { wait.ts_ns.max(before) } else { wait.ts_ns };
        self.held.entry(holder).or_default().push_back(Held {
            lock: key,
            waiter: wait.tid,
            wait_ns,
            from_ns,
            until_ns,
            in_calls_ns: 0,
            counted: false,
        });
        self.waiting += 1;
    }
}

impl Rule for LockConvoy {
    fn layers(&self) -> &'static [Layer] {
        &[Layer::Wait]
    }

    fn row(&mut self, row: &Row, state: &State) {
        let Row::Wait(wait) = row else { return };
        let seen = self.threads.entry(wait.tid);
        if seen.last_at_ns == 0 || seen.pid != wait.pid {
            *seen = Seen { pid: wait.pid, first_at_ns: wait.ts_ns, last_at_ns: wait.ended_at_ns() };
        }
        seen.first_at_ns = seen.first_at_ns.min(wait.ts_ns);
        seen.last_at_ns = seen.last_at_ns.max(wait.ended_at_ns());
        let holder = wait.ended_by.filter(|tid| *tid != wait.tid);
        if let (Some(address), Some(holder), Some(until_ns)) = (wait.address, holder, wait.woken_at_ns) {
            self.waited(wait, address, holder, until_ns, state);
        }
    }

    fn call(&mut self, call: &Call, context: &Context) {
        if call.operation || call.asynchronous {
            return;
        }
        if !self.depths.is_empty()
            && let Some(depth) = self.depths.get_mut(&call.pid)
            && is_storage(call.kind, context.file(call))
        {
            depth.sum_ns = depth.sum_ns.saturating_add(call.dur_ns);
            depth.covered.add(call.ts_ns, call.ended_at_ns());
        }
        let Some(held) = self.held.get_mut(&call.tid) else { return };
        // Waits that ended before a call of the holder began are settled.
        while held.front().is_some_and(|held| held.until_ns <= call.ts_ns) {
            held.pop_front();
            self.waiting = self.waiting.saturating_sub(1);
        }
        if held.is_empty() {
            self.held.remove(&call.tid);
            return;
        }
        let is_sync = matches!(call.kind, Kind::Sync | Kind::SyncAll | Kind::SyncRange)
            || call.kind == Kind::Write
                && (["RWF_DSYNC", "RWF_SYNC"].iter().any(|flag| call.has_flag(flag))
                    || context.open().is_some_and(|open| open.is_synchronous()));
        if is_sync || !is_storage(call.kind, context.file(call)) {
            return;
        }
        for held in held.iter_mut() {
            let (from, until) = (held.from_ns.max(call.ts_ns), held.until_ns.min(call.ended_at_ns()));
            if until <= from {
                continue;
            }
            held.in_calls_ns += until - from;
            let Some(lock) = self.locks.get_mut(&held.lock) else { continue };
            let new_ns = (until - from.max(lock.counted_until_ns)).max(0);
            lock.in_calls_ns += new_ns;
            lock.counted_until_ns = lock.counted_until_ns.max(until);
            if let Some(file) = call.file.filter(|file| lock.files.len() < MAX_FILES || lock.files.contains_key(file)) {
                *lock.files.entry(file).or_default() += new_ns;
            }
            let length = (held.until_ns - held.from_ns) as f64;
            if held.counted || (held.in_calls_ns as f64) < length * MIN_IN_CALLS {
                continue;
            }
            held.counted = true;
            lock.examples.add(call);
            if let Some(waiter) = lock.members.get_mut(&held.waiter) {
                waiter.waits += 1;
                waiter.waited_ns = waiter.waited_ns.saturating_add(held.wait_ns);
            }
            if let Some(holder) = lock.members.get_mut(&call.tid) {
                holder.ended += 1;
            }
        }
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        for ((pid, address), lock) in self.locks.iter() {
            if *address == OWN && !self.takes_turns(*pid) {
                continue;
            }
            if let Some(found) = self.found(*pid, *address, lock, run) {
                out.push(found);
            }
        }
    }
}

impl LockConvoy {
    /// Whether a process makes one request at a time.
    fn takes_turns(&self, pid: i32) -> bool {
        let depth = self.depths.get(&pid);
        depth.is_some_and(|depth| depth.sum_ns as f64 <= depth.covered.ns() as f64 * MAX_DEPTH)
    }

    /// How long a thread was seen, nanoseconds.
    fn time_of(&self, pid: i32, tid: i32, run: &Run) -> i64 {
        let seen = self.threads.get(&tid).filter(|seen| seen.pid == pid);
        let seen = seen.map_or(0, |seen| seen.last_at_ns - seen.first_at_ns);
        let of_process = if tid == pid { run.lifetime_ns(tid) } else { 0 };
        seen.max(of_process).max(1)
    }

    fn found(&self, pid: i32, address: i64, lock: &Lock, run: &Run) -> Option<Found> {
        let (mut threads, mut waits, mut waited_ns, mut time_ns) = (0, 0, 0, 0);
        let mut names: Vec<&str> = vec![];
        for (tid, member) in &lock.members {
            let time = self.time_of(pid, *tid, run);
            let hands_on = member.ended as f64 >= member.waits as f64 * MIN_HANDED_ON;
            let much = member.waited_ns as f64 >= time as f64 * MIN_PART;
            if member.waits < MIN_WAITS || !hands_on || !much {
                continue;
            }
            threads += 1;
            waits += i64::try_from(member.waits).unwrap_or(i64::MAX);
            waited_ns += member.waited_ns;
            time_ns += time;
            if !names.contains(&&*member.comm) {
                names.push(&member.comm);
            }
        }
        let cost = lock.in_calls_ns;
        let least = if address == OWN { MIN_OWN_THREADS } else { 2 };
        if threads < least || !run.matters(cost) {
            return None;
        }
        let mut files: Vec<(FileId, i64)> = lock.files.iter().map(|(id, ns)| (*id, *ns)).collect();
        files.sort_by_key(|(id, ns)| (Reverse(*ns), *id));
        let path = |file: FileId| run.state.files.get(file).map_or("", |f| f.name());
        let place = match files[..] {
            [] => "in calls to storage".to_owned(),
            [(id, _)] => format!("in calls on {}", path(id)),
            [(id, _), ..] => format!(
                "in calls on {} or {}",
                path(id),
                counted(files.len() as i64 - 1, "other file", "other files")
            ),
        };
        let part = waited_ns as f64 / time_ns.max(1) as f64;
        names.truncate(3);
        let who = names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let comm = names.first().copied().unwrap_or("");
        let subject = Subject::process(pid, comm);
        Some(Found {
            cost_ns: Some(cost),
            costs: Costs::default().of_files(files.iter().map(|(id, _)| *id).collect()),
            title: format!(
                "{} of {} wait {} for a lock whose holder is {place}: {} of their time",
                counted(threads, "thread", "threads"),
                list(&who),
                times(waits),
                units::percent(part.min(1.0)),
            ),
            subject: match files.first() {
                Some((id, _)) => subject.with_file(*id, path(*id)),
                None => subject,
            },
            evidence: vec![
                number("waits", waits),
                number("waiting_threads", threads),
                number("waited_ns", waited_ns),
                evidence("share_of_threads", part.min(1.0)),
                number("held_in_calls_ns", cost),
            ],
            examples: lock.examples.list(),
            caveats: match address {
                OWN => vec!["threads of a pool that hand one task from one to the next look the same".to_owned()],
                // A condition variable is a futex, too.
                _ if threads == 2 => vec![
                    "two threads that hand each item to the other look the same: there a queue with room for several \
                     items helps"
                        .to_owned(),
                ],
                _ => vec![],
            },
            query: format!(
                "SELECT waits.ts_ns, waits.dur_ns, waits.tid, waits.comm, waker, cause_id AS holder, rid_of_call, syscall, call_ns, path \
                 FROM waits LEFT JOIN (SELECT rid AS rid_of_call, tid AS caller, ts_ns AS from_ns, dur_ns AS call_ns, syscall, path \
                 FROM syscalls WHERE pid = {pid}) AS calls ON caller = cause_id AND from_ns < woken_at_ns \
                 AND from_ns + call_ns > waits.ts_ns WHERE waits.pid = {pid} AND {lock} AND cause = 'thread' \
                 ORDER BY waits.ts_ns",
                lock = match address {
                    OWN => "reason = 'futex'".to_owned(),
                    address => format!("address = {address}"),
                },
            ),
            ..Found::default()
        })
    }
}

#[cfg(test)]
mod tests;
