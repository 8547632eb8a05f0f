//! Processor time for the threads behind the rings.
//!
//! Only draining has to keep up with the program. The threads that make rows, encode, and merge run when
//! nothing else wants a CPU, so a program that keeps all CPUs busy keeps its speed, while records wait in
//! the backlog. On a machine with an idle CPU nothing waits.
//!
//! They run at the recorder's own priority instead while rows are awaited (a page, a trigger, findings
//! during the recording, `--keep`, a snapshot), when the backlog fills up, when one of them holds a lock
//! that draining needs, and when the recording is over.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use fathom_probe::system;

/// Share of the backlog's room that is in use when the threads stop waiting for a CPU, and the share
/// below which they wait again.
const FULL: (u64, u64) = (2, 4);

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
        let background = Self {
            threads,
            awaited: AtomicBool::new(awaited),
            idle: AtomicBool::new(false),
        };
        background.set_idle(!awaited);
        background
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

    /// Decides whether the threads may wait for a CPU: `waiting` of `room` bytes of the backlog's files
    /// are in use. `saving`: a snapshot is awaited.
    pub(crate) fn look(&self, waiting: u64, room: u64, saving: bool) {
        let idle = self.idle.load(Ordering::Relaxed);
        let (full, few) = FULL;
        let fits = match idle {
            true => waiting <= room / full,
            false => waiting < room / few,
        };
        self.set_idle(fits && !saving && !self.awaited.load(Ordering::Relaxed));
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

    #[test]
    fn threads_wait_for_a_cpu_until_the_backlog_is_half_full() {
        with_thread(false, |background, idle| {
            assert!(idle());
            background.look(50, 100, false);
            assert!(idle());
            background.look(51, 100, false);
            assert!(!idle());
            background.look(25, 100, false);
            assert!(!idle());
            background.look(24, 100, false);
            assert!(idle());
            // Without files nothing may wait.
            background.look(0, 0, false);
            assert!(idle());
            background.hurry();
            background.look(0, 0, false);
            assert!(!idle());
        });
    }

    #[test]
    fn threads_hurry_for_whoever_awaits_rows() {
        with_thread(false, |background, idle| {
            background.look(0, 100, true);
            assert!(!idle());
            background.look(0, 100, false);
            assert!(idle());
            background.await_rows();
            background.look(0, 100, false);
            assert!(!idle());
        });
        with_thread(true, |background, idle| {
            background.look(0, 100, false);
            assert!(!idle());
        });
    }

    #[test]
    fn who_holds_a_lock_is_hurried() {
        with_thread(false, |background, idle| {
            let mutex = Mutex::new(1);
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
