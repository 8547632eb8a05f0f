//! How long the requests of each thread took, by file and kind: the time that findings claim.

use hashbrown::HashMap;

use crate::bounded::Bounded;
use crate::call::{Call, FileId};
use crate::kind::{Kind, Kinds};
use crate::layers::{Below, Fault};
use crate::names::directory;
use crate::state::State;
use crate::text::Text;
use crate::text_key::key_of;

/// Sums that are kept at the same time.
const CAPACITY: usize = 1 << 16;
/// The index after the kinds of calls: page faults.
pub(crate) const FAULTS: usize = Kind::COUNT;

/// The key of sums of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) tid: i32,
    /// File; `None` when the request has none, or its file had no room.
    pub(crate) file: Option<FileId>,
    kind: usize,
}

impl Key {
    /// Whether it belongs to one of these kinds; page faults belong if all kinds are given.
    pub(crate) fn is_of(&self, kinds: Kinds) -> bool {
        kinds.has_index(self.kind) || kinds == Kinds::ALL
    }

    /// The index of its kind, or [`FAULTS`].
    pub(crate) fn index(&self) -> usize {
        self.kind
    }
}

#[derive(Clone, Debug, Default)]
struct Sum {
    pid: i32,
    ns: i64,
    spent: Spent,
    /// The file's path in the first of the calls.
    path: Text,
}

/// The time of a thread itself: without asynchronous operations.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spent {
    pub(crate) ns: i64,
    /// Of which it waited for I/O, and in syncs for the file system too.
    pub(crate) waited_ns: i64,
    /// Of which it could have run, but other threads had the CPU.
    queued_ns: i64,
    pub(crate) calls: i64,
    pub(crate) bytes: i64,
}

impl Spent {
    /// Of a call with what was seen below it.
    pub(crate) fn of(call: &Call, below: &Below) -> Self {
        if call.asynchronous {
            return Self::default();
        }
        Self {
            ns: call.dur_ns.max(0),
            // A sync waits for the journal as for a lock.
            waited_ns: match call.kind {
                Kind::Sync | Kind::SyncAll | Kind::SyncRange | Kind::Msync => {
                    below.io_wait_ns.saturating_add(below.lock_wait_ns)
                }
                _ => below.io_wait_ns,
            },
            queued_ns: below.run_queue_ns.clamp(0, call.dur_ns.max(0)),
            calls: 1,
            bytes: call.moved(),
        }
    }

    pub(crate) fn of_fault(fault: &Fault) -> Self {
        Self {
            ns: fault.dur_ns.max(0),
            calls: 1,
            ..Self::default()
        }
    }

    pub(crate) fn add(&mut self, other: Spent) {
        self.ns = self.ns.saturating_add(other.ns);
        self.waited_ns = self.waited_ns.saturating_add(other.waited_ns);
        self.queued_ns = self.queued_ns.saturating_add(other.queued_ns);
        self.calls += other.calls;
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// A thread's first and last moment in the recording.
#[derive(Clone, Copy, Debug, Default)]
struct Life {
    pid: i32,
    first_at_ns: i64,
    last_at_ns: i64,
}

/// Time of all requests. In place of the requests, which may be 100 million, it has sums; when
/// these are too many, the smaller half loses its files.
#[derive(Debug)]
pub(crate) struct Ledger {
    sums: HashMap<Key, Sum>,
    lives: Bounded<i32, Life>,
    capacity: usize,
    /// Whether some have lost their files.
    coarse: bool,
}

impl Default for Ledger {
    fn default() -> Self {
        Self {
            sums: HashMap::new(),
            lives: Bounded::new(|life| life.last_at_ns.abs_diff(life.first_at_ns)),
            capacity: CAPACITY,
            coarse: false,
        }
    }
}

impl Ledger {
    /// Adds a call on `file`.
    pub(crate) fn call(&mut self, call: &Call, file: Option<FileId>, spent: Spent) {
        let key = Key {
            tid: call.tid,
            file,
            kind: call.kind as usize,
        };
        let sum = self.add(key, call.pid, (call.ts_ns, call.dur_ns), spent);
        if sum.spent.calls <= 1 && sum.path.is_empty() {
            sum.path = call.path_text();
        }
    }

    /// Adds a page fault.
    pub(crate) fn fault(&mut self, fault: &Fault) {
        let key = Key {
            tid: fault.tid,
            file: fault.file,
            kind: FAULTS,
        };
        let spent = Spent::of_fault(fault);
        self.add(key, fault.pid, (fault.ts_ns, fault.dur_ns), spent);
    }

    fn add(&mut self, key: Key, pid: i32, (ts_ns, dur_ns): (i64, i64), spent: Spent) -> &mut Sum {
        let dur_ns = dur_ns.max(0);
        let ended_at_ns = ts_ns.saturating_add(dur_ns);
        let life = self.lives.entry(key.tid);
        if life.last_at_ns == 0 {
            (life.first_at_ns, life.last_at_ns) = (ts_ns, ended_at_ns);
        }
        life.pid = pid;
        life.first_at_ns = life.first_at_ns.min(ts_ns);
        life.last_at_ns = life.last_at_ns.max(ended_at_ns);
        if self.sums.len() >= self.capacity && !self.sums.contains_key(&key) {
            self.make_room();
        }
        let sum = self.sums.entry(key).or_default();
        sum.pid = pid;
        sum.ns = sum.ns.saturating_add(dur_ns);
        sum.spent.add(spent);
        sum
    }

    fn make_room(&mut self) {
        self.coarse = true;
        let mut all: Vec<i64> = self.sums.values().map(|sum| sum.ns).collect();
        let middle = all.len() / 2;
        let (_, median, _) = all.select_nth_unstable(middle);
        let median = *median;
        let mut small = Vec::new();
        self.sums.retain(|key, sum| {
            let large = sum.ns > median;
            if !large {
                small.push((*key, sum.clone()));
            }
            large
        });
        for (key, sum) in small {
            let rest = self.sums.entry(Key { file: None, ..key }).or_default();
            rest.pid = sum.pid;
            rest.ns = rest.ns.saturating_add(sum.ns);
            rest.spent.add(sum.spent);
        }
        // Very many threads: how long each lived is known all the same.
        if self.sums.len() > self.capacity / 4 * 3 {
            self.sums.retain(|_, sum| sum.ns > median);
        }
        if self.sums.len() > self.capacity / 4 * 3 {
            self.sums.retain(|key, _| key.file.is_some());
        }
    }

    /// The claimable time.
    pub(crate) fn times(&self, state: &State) -> Times {
        let mut sums: Vec<Claimable> = self
            .sums
            .iter()
            .filter(|(_, sum)| sum.ns > 0)
            .map(|(key, sum)| Claimable {
                key: *key,
                pid: sum.pid,
                ns: sum.ns,
                left_ns: sum.ns,
                own_ns: sum.spent.ns,
                waited_ns: sum.spent.waited_ns,
                queued_ns: sum.spent.queued_ns,
                calls: sum.spent.calls,
                bytes: sum.spent.bytes,
                path: sum.path.clone(),
                directory: key
                    .file
                    .and_then(|id| state.files.get(id))
                    .map(|file| key_of(directory(file.name()))),
            })
            .collect();
        // In the same order whenever a session is looked at.
        sums.sort_unstable_by_key(|sum| sum.key);
        let lives = self.lives.iter();
        let mut threads: Vec<Thread> = lives
            .map(|(tid, life)| Thread {
                tid: *tid,
                pid: life.pid,
                left_ns: life.last_at_ns.saturating_sub(life.first_at_ns),
            })
            .collect();
        threads.sort_unstable_by_key(|thread| thread.tid);
        Times {
            sums,
            threads,
            coarse: self.coarse,
        }
    }
}

/// Requests of one thread, file and kind.
#[derive(Clone, Debug)]
pub(crate) struct Claimable {
    pub(crate) key: Key,
    pub(crate) pid: i32,
    /// Their time, nanoseconds.
    pub(crate) ns: i64,
    /// Of which no finding has claimed.
    pub(crate) left_ns: i64,
    /// The time that the thread spent in them: without asynchronous ones, nanoseconds.
    pub(crate) own_ns: i64,
    /// Of which it waited for I/O, and in syncs for the file system too.
    pub(crate) waited_ns: i64,
    /// Of which it could have run, but other threads had the CPU.
    pub(crate) queued_ns: i64,
    /// How many these are.
    pub(crate) calls: i64,
    pub(crate) bytes: i64,
    /// The file's path in the first of them; empty when it had none.
    pub(crate) path: Text,
    /// Number of the directory that the file is in.
    pub(crate) directory: Option<u64>,
}

#[derive(Clone, Debug)]
pub(crate) struct Thread {
    /// Its number.
    pub(crate) tid: i32,
    pub(crate) pid: i32,
    /// Its time in the recording that no finding has claimed, nanoseconds.
    pub(crate) left_ns: i64,
}

/// All time that findings may claim.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times {
    /// Requests, by thread, file and kind.
    pub(crate) sums: Vec<Claimable>,
    pub(crate) threads: Vec<Thread>,
    /// Whether some sums have lost their files.
    pub(crate) coarse: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_stay_few_and_keep_their_time() {
        let mut ledger = Ledger {
            capacity: 1000,
            ..Ledger::default()
        };
        for i in 0..100_000i64 {
            let key = Key {
                tid: 7,
                file: Some(FileId(i)),
                kind: 0,
            };
            let ns = if i % 10_000 == 0 { 1_000_000 } else { 10 };
            ledger.add(key, 7, (i * 1_000_000, ns), Spent::default());
        }
        assert!(ledger.sums.len() <= 1000, "{}", ledger.sums.len());
        let times = ledger.times(&State::default());
        let all: i64 = times.sums.iter().map(|sum| sum.left_ns).sum();
        assert_eq!(all, 10 * 1_000_000 + 99_990 * 10);
        let large = times.sums.iter().filter(|sum| sum.left_ns == 1_000_000);
        assert_eq!(large.count(), 10);
    }

    #[test]
    fn very_many_threads_stay_few() {
        let mut ledger = Ledger {
            capacity: 1000,
            ..Ledger::default()
        };
        for tid in 0..20_000 {
            let key = Key {
                tid,
                file: Some(FileId(1)),
                kind: 0,
            };
            ledger.add(key, tid, (i64::from(tid) * 1000, 10), Spent::default());
        }
        assert!(ledger.sums.len() <= 1000, "{}", ledger.sums.len());
    }
}
