//! `waits-for-anothers-sync`: threads sleep until another thread has made a file durable.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use crate::layers::Wait;
use crate::names::{directory, role};
use crate::prelude::*;

/// Part of its time that a thread waits for syncs of others, from which on it counts.
const MIN_PART: f64 = 0.1;
/// Waits of a thread from which on they are no accident.
const MIN_WAITS: u64 = 10;
/// Part of a wait in which the file is being synced.
const MIN_IN_SYNC: f64 = 0.5;
/// Part of it in which the thread that ends the wait does so itself: leaders take turns, and one
/// may wait for the leader before it.
const MIN_OWN: f64 = 0.1;
/// Shorter waits are not looked at, nanoseconds: no device makes bytes durable in that time.
const MIN_WAIT_NS: i64 = 20_000;
/// Times that the waiting threads wake a syncing one, for each sync that they wait for. Threads
/// that wait for the next item of work do not ask for the sync.
const MIN_ASKED: f64 = 0.5;
/// Threads that wait at the same time, on average, where the waiting threads sync too. Threads of a
/// pool that hand work on to each other wait one at a time.
const MIN_AT_ONCE: f64 = 1.5;
/// Part of the waiting threads that one sync releases, from which on they share their syncs: a
/// group commit that works.
const SHARED: f64 = 0.5;
/// Waits that are remembered until the calls of their time come.
const MAX_WAITING: usize = 1 << 17;
/// Syncs of a file, and of a thread, that are remembered.
const RECENT: usize = 32;
/// Threads that sync a file and are named or counted.
const MAX_SYNCERS: usize = 64;

static INFO: RuleInfo = RuleInfo {
    id: "waits-for-anothers-sync",
    name: "Threads that wait for another thread's sync",
    group: Group::Performance,
    needs: &[Input::Calls, Input::Waits],
    kinds: kinds![Write, Sync, SyncRange],
    about_calls: false,
    what: "Threads sleep until another thread has made a file durable, and one sync serves few of \
           them: they sync one after another under a lock, or a log writer or a group commit takes \
           few records at once. Their own calls look short, and the time is missing between the \
           calls.",
    when: "A thread waits ten or more times (futex, pipe, socket, eventfd, poll, queue or semaphore) \
           until another thread wakes it. During half or more of each such wait one file is being \
           synced: fsync, fdatasync, sync_file_range, msync, or a write with O_SYNC or O_DSYNC. The \
           thread that ends the wait is in such a call itself for a tenth of the wait or more. \
           These waits take a tenth or more of the thread's time, and one sync ends the waits of \
           fewer than half of the waiting threads: a group commit that serves more of them works as \
           it should. Threads that only wait for their next item of work do not count. So threads \
           that never write or sync the file wake the one that syncs at least once for every two \
           syncs, as they ask for the sync; of threads that also write or sync it, 1.5 or more wait \
           at the same time on average, as threads of a pool that hand work on wait one at a time.",
    cost: "the time in which the file was being synced and a thread was waiting for that",
    advice: "Let one sync serve more of the waiting threads: collect the records of all that wait and \
             sync once for them, outside of the lock. Databases have settings for that: commit_delay \
             in PostgreSQL, binlog_commit_wait_count in MariaDB. Acknowledge before the sync where \
             the loss of the latest changes is acceptable (synchronous_commit=off, \
             innodb_flush_log_at_trx_commit=2, WriteOptions.sync=false). Keep the log on a device of \
             its own that flushes fast.",
    not_when: "Not when the waiting threads have nothing else to do.",
    bad: "lock(&log);\nwrite(fd, record, n);\nfdatasync(fd);      /* all others sleep in lock() */\nunlock(&log);",
    good: "append(&batch, record);\nif (leader(&batch)) { write(fd, batch, n); fdatasync(fd); wake(&batch); }\nelse sleep_until_durable(record);",
    reference: "group commit: PostgreSQL's WALWriteLock, InnoDB's log_sys, RocksDB's JoinBatchGroup",
};

/// A wait that a thread ended.
#[derive(Clone, Copy, Debug)]
struct Waited {
    tid: i32,
    from_ns: i64,
    until_ns: i64,
    /// In which the thread that ended it was syncing.
    own_ns: i64,
    /// The part of it that was counted.
    counted_ns: i64,
}

/// One sync.
#[derive(Clone, Copy, Debug)]
struct Span {
    tid: i32,
    file: FileId,
    from_ns: i64,
    until_ns: i64,
}

impl Span {
    /// Where it is within a wait.
    fn within(&self, wait: &Waited) -> Option<(i64, i64)> {
        let from = self.from_ns.max(wait.from_ns);
        let until = self.until_ns.min(wait.until_ns);
        (until > from).then_some((from, until))
    }
}

/// A thread that ends waits of others.
#[derive(Debug, Default)]
struct Waker {
    syncs: VecDeque<Span>,
    waits: VecDeque<Waited>,
}

#[derive(Debug, Default)]
struct Thread {
    pid: i32,
    comm: Text,
    first_at_ns: i64,
    last_at_ns: i64,
}

/// A file that is synced.
#[derive(Debug, Default)]
struct Synced {
    recent: VecDeque<Span>,
    /// By thread: process, name and number of its syncs.
    syncers: BTreeMap<i32, (i32, Text, u64)>,
    /// Syncs that a thread waited for.
    awaited: u64,
    awaited_ns: i64,
    counted_until_ns: i64,
    examples: Examples,
}

/// A thread's waits for a file.
#[derive(Clone, Copy, Debug, Default)]
struct Waits {
    count: u64,
    ns: i64,
}

rule! {
    pub struct WaitsForAnothersSync {
        wakers: HashMap<i32, Waker>,
        /// Waits of all wakers.
        waiting: usize,
        threads: Bounded<i32, Thread> = Bounded::new(|t| (t.last_at_ns - t.first_at_ns).unsigned_abs()),
        files: Bounded<FileId, Synced> = Bounded::new(|file| file.awaited_ns.unsigned_abs()),
        waits: Bounded<(i32, FileId), Waits> = Bounded::new(|waits| waits.ns.unsigned_abs()),
        /// How often a thread (the first) was woken by another.
        wakes: Bounded<(i32, i32), u64> = Bounded::new(|count| *count),
        /// Which threads write or sync which files.
        used: Bounded<(i32, FileId), u64> = Bounded::new(|count| *count),
    }
}

/// Whether a thread waits there for what another one does. A thread whose pipe or socket is full is
/// held up by a reader that is slow, whatever for.
fn is_for_another(wait: &Wait) -> bool {
    match wait.reason {
        "futex" | "event" | "poll" | "ipc" => true,
        "pipe" | "socket" => !wait.in_syscall.contains("write") && !wait.in_syscall.contains("send"),
        _ => false,
    }
}

impl WaitsForAnothersSync {
    /// Counts a wait of which a sync of its waker may be a part. Returns the part of the sync in
    /// which it waited, if it counts.
    fn count(&mut self, wait: &mut Waited, span: &Span) -> Option<(i64, i64)> {
        let (from, until) = span.within(wait)?;
        let length = (wait.until_ns - wait.from_ns) as f64;
        wait.own_ns += until - from;
        let file = self.files.get(&span.file).filter(|_| wait.own_ns as f64 >= length * MIN_OWN)?;
        let (mut in_sync, mut reached) = (0, wait.from_ns);
        for sync in file.recent.iter().filter(|sync| sync.tid != wait.tid) {
            if let Some((from, until)) = sync.within(wait) {
                in_sync += (until - from.max(reached)).max(0);
                reached = reached.max(until);
            }
        }
        if (in_sync as f64) < length * MIN_IN_SYNC {
            return None;
        }
        let waits = self.waits.entry((wait.tid, span.file));
        waits.count += u64::from(wait.counted_ns == 0);
        waits.ns += (in_sync - wait.counted_ns).max(0);
        wait.counted_ns = wait.counted_ns.max(in_sync);
        Some((from, until))
    }

    /// Counts the part of a sync that was waited for.
    fn awaited(&mut self, file: FileId, (from, until): (i64, i64)) {
        let file = self.files.entry(file);
        file.awaited += 1;
        file.awaited_ns += (until - from.max(file.counted_until_ns)).max(0);
        file.counted_until_ns = file.counted_until_ns.max(until);
    }

    /// Forgets waits whose wakers have not synced, or all.
    fn make_room(&mut self) {
        self.wakers.retain(|_, waker| !waker.syncs.is_empty());
        let left: usize = self.wakers.values().map(|waker| waker.waits.len()).sum();
        if left > MAX_WAITING / 2 || self.wakers.len() > MAX_WAITING / 2 {
            self.wakers.clear();
        }
        self.waiting = self.wakers.values().map(|waker| waker.waits.len()).sum();
    }

    fn seen(&mut self, (pid, tid): (i32, i32), comm: &str, (from, until): (i64, i64)) {
        let thread = self.threads.entry(tid);
        if thread.first_at_ns == 0 {
            *thread = Thread { pid, comm: comm.into(), first_at_ns: from, last_at_ns: until };
        }
        if &*thread.comm != comm {
            thread.comm = comm.into();
        }
        thread.first_at_ns = thread.first_at_ns.min(from);
        thread.last_at_ns = thread.last_at_ns.max(until);
    }
}

impl Rule for WaitsForAnothersSync {
    fn layers(&self) -> &'static [Layer] {
        &[Layer::Wait]
    }

    fn row(&mut self, row: &Row, _: &State) {
        let Row::Wait(wait) = row else { return };
        self.seen((wait.pid, wait.tid), wait.comm, (wait.ts_ns, wait.ended_at_ns()));
        let (Some(waker), Some(until_ns)) = (wait.ended_by.filter(|tid| *tid != wait.tid), wait.woken_at_ns) else {
            return;
        };
        if !is_for_another(wait) {
            return;
        }
        *self.wakes.entry((wait.tid, waker)) += 1;
        if until_ns - wait.ts_ns < MIN_WAIT_NS {
            return;
        }
        let mut waited = Waited { tid: wait.tid, from_ns: wait.ts_ns, until_ns, own_ns: 0, counted_ns: 0 };
        // The calls of a time come after its waits, but while a recording goes on a wait may be
        // known later than the sync.
        let late: Vec<Span> = self.wakers.get(&waker).into_iter().flat_map(|w| &w.syncs).copied().collect();
        for span in late {
            if let Some(part) = self.count(&mut waited, &span) {
                self.awaited(span.file, part);
            }
        }
        if self.waiting >= MAX_WAITING {
            self.make_room();
        }
        self.wakers.entry(waker).or_default().waits.push_back(waited);
        self.waiting += 1;
    }

    fn call(&mut self, call: &Call, context: &Context) {
        let Some(file) = call.file.filter(|_| call.succeeded() && !call.asynchronous) else { return };
        let syncs = match call.kind {
            Kind::Write => {
                let of_call = ["RWF_DSYNC", "RWF_SYNC"].iter().any(|flag| call.has_flag(flag));
                of_call || context.open().is_some_and(|open| open.is_synchronous())
            }
            _ => true,
        };
        let regular = context.file(call).is_some_and(|f| f.is_regular());
        if !syncs && !regular {
            return;
        }
        *self.used.entry((call.tid, file)) += 1;
        if !syncs {
            return;
        }
        self.seen((call.pid, call.tid), call.comm, (call.ts_ns, call.ended_at_ns()));
        let span = Span { tid: call.tid, file, from_ns: call.ts_ns, until_ns: call.ended_at_ns() };
        let synced = self.files.entry(file);
        if synced.recent.len() >= RECENT {
            synced.recent.pop_front();
        }
        synced.recent.push_back(span);
        if synced.syncers.len() < MAX_SYNCERS || synced.syncers.contains_key(&call.tid) {
            let syncer = synced.syncers.entry(call.tid);
            syncer.or_insert_with(|| (call.pid, call.comm_text(), 0)).2 += 1;
        }
        let waker = self.wakers.entry(call.tid).or_default();
        if waker.syncs.len() >= RECENT {
            waker.syncs.pop_front();
        }
        waker.syncs.push_back(span);
        let mut waits = std::mem::take(&mut waker.waits);
        let all = waits.len();
        // Waits that ended before a call of the waker began are settled.
        while waits.front().is_some_and(|wait| wait.until_ns <= span.from_ns) {
            waits.pop_front();
        }
        self.waiting = self.waiting.saturating_sub(all - waits.len());
        let mut awaited: Option<(i64, i64)> = None;
        for wait in waits.iter_mut().take_while(|wait| wait.from_ns < span.until_ns) {
            if let Some((from, until)) = self.count(wait, &span) {
                let before = awaited.unwrap_or((from, until));
                awaited = Some((before.0.min(from), before.1.max(until)));
            }
        }
        if let Some(waker) = self.wakers.get_mut(&call.tid) {
            waker.waits = waits;
        }
        if let Some(part) = awaited {
            self.awaited(file, part);
            self.files.entry(file).examples.add(call);
        }
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        let path = |file: FileId| run.state.files.get(file).map_or("", |f| f.name());
        // Logs go on in one file after the other.
        let mut places: BTreeMap<(&str, &str), Vec<(FileId, &Synced)>> = BTreeMap::new();
        for (id, file) in self.files.iter().filter(|(_, file)| file.awaited > 0) {
            let most = file.syncers.values().max_by_key(|(_, _, syncs)| *syncs);
            let comm = most.map_or("", |(_, comm, _)| role(comm));
            places.entry((directory(path(*id)), comm)).or_default().push((*id, file));
        }
        for files in places.into_values() {
            if let Some(found) = self.found(files, run) {
                out.push(found);
            }
        }
    }
}

/// The threads that wait for the files of one place.
#[derive(Default)]
struct Victims {
    tids: Vec<i32>,
    names: BTreeSet<String>,
    pids: BTreeSet<i32>,
    count: u64,
    waited_ns: i64,
    time_ns: i64,
}

impl WaitsForAnothersSync {
    /// How long a thread was seen, nanoseconds.
    fn time_of(&self, tid: i32, thread: &Thread, run: &Run) -> i64 {
        let seen = thread.last_at_ns - thread.first_at_ns;
        let of_process = if tid == thread.pid { run.lifetime_ns(tid) } else { 0 };
        seen.max(of_process).max(1)
    }

    fn victims(&self, files: &[(FileId, &Synced)], run: &Run) -> Victims {
        let mut sums: BTreeMap<i32, Waits> = BTreeMap::new();
        for ((tid, file), waits) in self.waits.iter() {
            if files.iter().any(|(id, _)| id == file) {
                let sum = sums.entry(*tid).or_default();
                sum.count += waits.count;
                sum.ns += waits.ns;
            }
        }
        let awaited: u64 = files.iter().map(|(_, file)| file.awaited).sum();
        let syncers: BTreeSet<i32> = files.iter().flat_map(|(_, file)| file.syncers.keys().copied()).collect();
        let asked: u64 = sums
            .keys()
            .flat_map(|tid| syncers.iter().map(move |syncer| (*syncer, *tid)))
            .filter_map(|pair| self.wakes.get(&pair))
            .sum();
        let all_ask = asked as f64 >= awaited as f64 * MIN_ASKED;
        let all_ask = all_ask && syncers.len() == 1;
        let (count, ns) = sums
            .values()
            .fold((0, 0), |(count, ns), waits| (count + waits.count, ns + waits.ns));
        let awaited_ns: i64 = files.iter().map(|(_, file)| file.awaited_ns).sum();
        let at_once = ns as f64 >= awaited_ns as f64 * MIN_AT_ONCE;
        let mut victims = Victims::default();
        for (tid, waits) in sums {
            let Some(thread) = self.threads.get(&tid) else { continue };
            let time = self.time_of(tid, thread, run);
            let uses = files.iter().any(|(id, _)| self.used.get(&(tid, *id)).is_some());
            let much = waits.ns as f64 >= time as f64 * MIN_PART;
            let depends = if uses { at_once } else { all_ask };
            if waits.count < MIN_WAITS || !much || !depends {
                continue;
            }
            victims.tids.push(tid);
            victims.names.insert(thread.comm.to_string());
            victims.pids.insert(thread.pid);
            victims.count += waits.count;
            victims.waited_ns += waits.ns;
            victims.time_ns += time;
        }
        if count as f64 >= awaited as f64 * victims.tids.len() as f64 * SHARED {
            return Victims::default();
        }
        victims
    }

    fn found(&self, mut files: Vec<(FileId, &Synced)>, run: &Run) -> Option<Found> {
        let path = |file: FileId| run.state.files.get(file).map_or("", |f| f.name());
        files.sort_by_key(|(id, file)| (Reverse(file.awaited_ns), *id));
        let victims = self.victims(&files, run);
        let cost: i64 = files.iter().map(|(_, file)| file.awaited_ns).sum();
        if victims.tids.is_empty() || !run.matters(cost) {
            return None;
        }
        let (id, _) = *files.first()?;
        let mut syncers: BTreeMap<i32, (i32, Text, u64)> = BTreeMap::new();
        let mut examples = Examples::default();
        for (_, file) in &files {
            examples.add_all(&file.examples);
            for (tid, (pid, comm, syncs)) in &file.syncers {
                syncers.entry(*tid).or_insert_with(|| (*pid, comm.clone(), 0)).2 += syncs;
            }
        }
        let (tid, (pid, comm, _)) = syncers.iter().max_by_key(|(tid, (_, _, syncs))| (*syncs, **tid))?;
        let pids: BTreeSet<i32> = syncers.values().map(|(pid, _, _)| *pid).collect();
        let part = victims.waited_ns as f64 / victims.time_ns.max(1) as f64;
        let threads = victims.tids.len() as i64;
        let who = victims.names.iter().take(3).cloned().collect::<Vec<_>>();
        let more = match files.len() {
            1 => String::new(),
            n => format!(" or {} of its directory", counted(n as i64 - 1, "other file", "other files")),
        };
        let syncer = match syncers.len() {
            1 => format!("thread {tid} ({comm})"),
            n => format!("one of {} threads ({comm})", units::count(n as i64)),
        };
        let (waits, whose) = match threads {
            1 => ("waits", "its"),
            _ => ("wait", "their"),
        };
        let ids: Vec<String> = files.iter().take(MAX_SYNCERS).map(|(id, _)| id.to_string()).collect();
        let tids: Vec<String> = victims.tids.iter().take(MAX_SYNCERS).map(i32::to_string).collect();
        Some(Found {
            cost_ns: Some(cost),
            costs: Costs::of(&[Kind::Sync, Kind::SyncRange, Kind::Write])
                .of_files(files.iter().map(|(id, _)| *id).collect()),
            title: format!(
                "{} of {} {waits} {} until {syncer} has made {}{more} durable: {} of {whose} time",
                counted(threads, "thread", "threads"),
                list(&who),
                times(victims.count as i64),
                path(id),
                units::percent(part),
            ),
            subject: Subject {
                pid: (pids.len() == 1).then_some(*pid),
                comm: Some(comm.to_string()).filter(|comm| !comm.is_empty()),
                ..Subject::default()
            }
            .with_file(id, path(id)),
            evidence: vec![
                number("waits", victims.count as i64),
                number("waiting_threads", threads),
                number("waiting_processes", victims.pids.len() as i64),
                number("waited_ns", victims.waited_ns),
                evidence("share_of_threads", part),
                number("syncing_threads", syncers.len() as i64),
                number("syncs", files.iter().map(|(_, file)| file.awaited as i64).sum()),
            ],
            examples: examples.list(),
            query: format!(
                "SELECT waits.ts_ns, waits.dur_ns, waits.pid, waits.tid, waits.comm, reason, waker, rid_of_sync, syscall, sync_ns, path \
                 FROM waits JOIN (SELECT rid AS rid_of_sync, tid AS syncer, ts_ns AS from_ns, dur_ns AS sync_ns, syscall, path \
                 FROM syscalls WHERE file_id IN ({}) AND (syscall LIKE '%sync%' OR call_writes(syscall))) AS syncs \
                 ON syncer = coalesce(waker_tid, cause_id) AND from_ns < woken_at_ns AND from_ns + sync_ns > waits.ts_ns \
                 WHERE waits.tid IN ({}) ORDER BY waits.ts_ns",
                ids.join(", "),
                tids.join(", "),
            ),
            ..Found::default()
        })
    }
}

#[cfg(test)]
mod tests;
