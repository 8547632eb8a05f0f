//! Processor time for the threads behind the rings.
//!
//! Only draining has to keep up with the program. While many records come, the threads that make rows,
//! encode, and merge run when nothing else wants a CPU, so a program that keeps all CPUs busy keeps its
//! speed, and records wait in the backlog. On a machine with an idle CPU nothing waits.
//!
//! They run at the recorder's own priority while few records come, whose rows cost little; while rows are
//! awaited (a page, a trigger, findings during the recording, `--keep`, `--durable`, a snapshot); when the
//! backlog fills up; when one of them holds a lock that draining needs; and when the recording is over.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use fathom_probe::system;

/// Records drained between two looks that are few: some 10,000 calls per second, whose rows take about a
/// fiftieth of a CPU.
const FEW_BYTES: usize = 64 << 10;
/// Records that wait and are few.
const FEW_WAITING: usize = 1 << 20;
/// Share of the backlog's room that is in use when the threads stop waiting for a CPU, and the share
/// below which they wait again.
const FULL: (u64, u64) = (2, 4);

/// Work that draining has left to the threads.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Load {
    /// Bytes drained since the last look.
    pub(crate) drained: usize,
    /// Bytes of drained records that wait in memory.
    pub(crate) in_memory: usize,
    /// Bytes of the backlog's files in use.
    pub(crate) in_files: u64,
    /// Bytes that may be in use there.
    pub(crate) room: u64,
    /// A snapshot is awaited.
    pub(crate) saving: bool,
}

/// The threads behind the rings.
pub(crate) struct Background {
    threads: Vec<i32>,
    /// Rows are awaited as long as the recording takes, or the recording is over.
    awaited: AtomicBool,
    /// The threads wait until a CPU is idle.
    idle: AtomicBool,
}

impl Background {
    /// Threads by their ids. `awaited`: they never wait for a CPU, as rows are awaited or the recorder
    /// is not allowed to raise their priority again.
    pub(crate) fn new(threads: Vec<i32>, awaited: bool) -> Self {
        Self {
            threads,
            awaited: AtomicBool::new(awaited),
            idle: AtomicBool::new(false),
        }
    }

    fn set_idle(&self, idle: bool) {
        if self.idle.swap(idle, Ordering::Relaxed) == idle {
            return;
        }
        for thread in &self.threads {
            // A thread that has ended needs no CPU.
            system::set_idle(*thread, idle);
        }
    }

    /// Decides whether the threads wait for an idle CPU until the next look.
    pub(crate) fn look(&self, load: Load) {
        let (full, few) = FULL;
        let fits = match self.idle.load(Ordering::Relaxed) {
            true => load.in_files <= load.room / full,
            false => load.in_files < load.room / few,
        };
        let many = load.drained > FEW_BYTES || load.in_memory > FEW_WAITING || load.in_files > 0;
        let awaited = load.saving || self.awaited.load(Ordering::Relaxed);
        self.set_idle(many && fits && !awaited);
    }

    /// Has the threads work at once, until the next look.
    pub(crate) fn hurry(&self) {
        self.set_idle(false);
    }

    /// Has the threads work at once from now on.
    pub(crate) fn await_rows(&self) {
        self.awaited.store(true, Ordering::Relaxed);
        self.hurry();
    }

    /// Locks what one of the threads may hold: a holder that waits for a CPU must not stop the draining.
    pub(crate) fn lock<'a, T>(&self, mutex: &'a Mutex<T>) -> MutexGuard<'a, T> {
        match mutex.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => {
                self.hurry();
                mutex.lock().unwrap_or_else(PoisonError::into_inner)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    /// Field `policy` of the thread: 5 is SCHED_IDLE.
    fn is_idle(thread: i32) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat")).unwrap();
        // proc(5): the name ends with the last parenthesis, the policy is field 41.
        let after = stat.rsplit_once(") ").unwrap().1;
        after.split(' ').nth(41 - 3).unwrap() == "5"
    }

    /// Runs `test` with the threads of a recorder that may change their priority.
    fn with_thread(awaited: bool, test: impl FnOnce(&Background, &dyn Fn() -> bool)) {
        if !system::set_nice(system::nice() - 1) {
            eprintln!("SKIPPED: background threads: raising a priority is not allowed");
            return;
        }
        let (to, id) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        thread::scope(|scope| {
            scope.spawn(move || {
                to.send(system::thread_id()).unwrap();
                ended.recv().ok();
            });
            let id = id.recv().unwrap();
            test(&Background::new(vec![id], awaited), &|| is_idle(id));
            drop(end);
        });
    }

    /// Much was drained, and so many of 100 bytes in files are in use.
    fn busy(in_files: u64) -> Load {
        Load {
            drained: FEW_BYTES + 1,
            in_files,
            room: 100,
            ..Load::default()
        }
    }

    #[test]
    fn threads_wait_for_a_cpu_until_the_backlog_is_half_full() {
        with_thread(false, |background, idle| {
            assert!(!idle());
            for (in_files, waits) in [(24, true), (50, true), (51, false), (25, false), (24, true)]
            {
                background.look(busy(in_files));
                assert_eq!(idle(), waits, "{in_files}");
            }
            background.hurry();
            assert!(!idle());
            // Without files nothing may wait.
            let room = 0;
            background.look(Load { room, ..busy(0) });
            assert!(!idle());
        });
    }

    #[test]
    fn few_records_do_not_wait() {
        with_thread(false, |background, idle| {
            let few = Load {
                drained: FEW_BYTES,
                in_memory: FEW_WAITING,
                room: 100,
                ..Load::default()
            };
            background.look(few);
            assert!(!idle());
            let in_memory = FEW_WAITING + 1;
            background.look(Load { in_memory, ..few });
            assert!(idle());
            background.look(few);
            assert!(!idle());
            background.look(Load { in_files: 1, ..few });
            assert!(idle());
        });
    }

    #[test]
    fn threads_hurry_for_whoever_awaits_rows() {
        with_thread(false, |background, idle| {
            let saving = true;
            background.look(Load { saving, ..busy(0) });
            assert!(!idle());
            background.look(busy(0));
            assert!(idle());
            background.await_rows();
            background.look(busy(0));
            assert!(!idle());
        });
        with_thread(true, |background, idle| {
            background.look(busy(0));
            assert!(!idle());
        });
    }

    #[test]
    fn who_holds_a_lock_is_hurried() {
        with_thread(false, |background, idle| {
            let mutex = Mutex::new(1);
            background.look(busy(0));
            drop(background.lock(&mutex));
            assert!(idle());
            thread::scope(|scope| {
                let held = mutex.lock().unwrap();
                let other = scope.spawn(|| *background.lock(&mutex));
                while idle() {
                    thread::yield_now();
                }
                drop(held);
                assert_eq!(other.join().unwrap(), 1);
            });
        });
    }
}
