//! The priority of the threads that decode and encode: where the program keeps all processors busy, its
//! threads go before them, and drained records wait.
//!
//! Only draining has to keep up with the program. The threads behind it run at the kernel's lowest
//! priority, `SCHED_IDLE`: on idle processors they are as fast as ever, and on busy ones they take next
//! to nothing from the program. They are as urgent as draining is
//! - when too many records wait,
//! - when draining itself is held up: it may wait for memory, or for a lock, of a thread that gets no
//!   processor,
//! - when a reader waits for rows: while a copy is made, and at the end.
//!
//! A thread of its own decides, which waits for none of the others.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use fathom_probe::{monotonic_ns, system};

use crate::backlog::Depth;

/// How often it decides.
const LOOK: Duration = Duration::from_millis(10);
/// Time after which draining is held up. Usually it takes less than a millisecond.
const HELD_UP_NS: u64 = 15_000_000;
/// How long the threads are urgent at least: shorter turns would not get much done.
const URGENT: Duration = Duration::from_millis(500);
/// Bytes of drained records that may wait in files, compressed. They are decoded within seconds when the
/// program has ended, which its user waits for.
const FILED_BYTES: u64 = 96 << 20;

/// News from the draining thread.
#[derive(Debug, Default)]
struct Said {
    /// When the work under way began; 0: none is.
    working_since_ns: AtomicU64,
    /// A reader waits for rows.
    hurry: AtomicBool,
    over: AtomicBool,
}

/// The threads of a recording and their priority. Dropped, they are urgent.
#[derive(Debug)]
pub(crate) struct Pace {
    said: Arc<Said>,
    thread: Option<JoinHandle<()>>,
}

impl Pace {
    /// Begins to decide for threads by their ids, by how much waits.
    pub(crate) fn start(threads: Vec<i32>, depth: Arc<Depth>) -> io::Result<Self> {
        let said = Arc::<Said>::default();
        let decides = Decides {
            threads,
            depth,
            said: Arc::clone(&said),
        };
        let thread = std::thread::Builder::new()
            .name("fathom-pace".into())
            .spawn(move || decides.run())?;
        Ok(Self {
            said,
            thread: Some(thread),
        })
    }

    /// The draining thread is at work until this is dropped.
    pub(crate) fn turn(&self) -> Turn {
        let now = monotonic_ns().max(1);
        self.said.working_since_ns.store(now, Ordering::Relaxed);
        Turn(Arc::clone(&self.said))
    }

    /// Whether a reader waits for rows.
    pub(crate) fn hurry(&self, hurry: bool) {
        self.said.hurry.store(hurry, Ordering::Relaxed);
    }
}

impl Drop for Pace {
    fn drop(&mut self) {
        self.said.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It has nothing to tell.
            let _ = thread.join();
        }
    }
}

/// A stretch of the draining thread's work.
#[derive(Debug)]
pub(crate) struct Turn(Arc<Said>);

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.working_since_ns.store(0, Ordering::Relaxed);
    }
}

/// The work of the thread.
struct Decides {
    threads: Vec<i32>,
    depth: Arc<Depth>,
    said: Arc<Said>,
}

impl Decides {
    fn run(self) {
        let mut urgent_since = None;
        self.yield_to_others(true);
        while !self.said.over.load(Ordering::Relaxed) {
            let wanted = self.is_urgent(urgent_since.is_some());
            match urgent_since {
                None if wanted => {
                    self.yield_to_others(false);
                    urgent_since = Some(Instant::now());
                }
                Some(since) if !wanted && since.elapsed() >= URGENT => {
                    self.yield_to_others(true);
                    urgent_since = None;
                }
                _ => {}
            }
            std::thread::park_timeout(LOOK);
        }
        self.yield_to_others(false);
    }

    /// Whether the threads are to be urgent. Urgent threads stay so until an eighth is left to store.
    fn is_urgent(&self, are: bool) -> bool {
        let said = &self.said;
        let since_ns = said.working_since_ns.load(Ordering::Relaxed);
        let held_up = since_ns != 0 && monotonic_ns().saturating_sub(since_ns) >= HELD_UP_NS;
        let limit = if are { FILED_BYTES / 8 } else { FILED_BYTES };
        held_up || said.hurry.load(Ordering::Relaxed) || self.depth.in_files() > limit
    }

    fn yield_to_others(&self, yields: bool) {
        for thread in &self.threads {
            // One that has ended has no priority.
            system::set_idle(*thread, yields);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::mpsc;

    use super::*;

    /// SCHED_OTHER and SCHED_IDLE.
    const USUAL: &str = "0";
    const IDLE: &str = "5";

    /// The kernel's number for a thread's policy (proc(5), field 41 of stat).
    fn policy(thread: i32) -> String {
        let stat = fs::read_to_string(format!("/proc/self/task/{thread}/stat")).unwrap();
        let (_, fields) = stat.rsplit_once(')').unwrap();
        fields.split_whitespace().nth(38).unwrap().to_owned()
    }

    /// Waits for as long as it takes.
    fn becomes(thread: i32, wanted: &str) {
        while policy(thread) != wanted {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn the_threads_yield_until_draining_or_a_reader_waits_for_them() {
        let (id, ids) = mpsc::channel();
        let (done, over) = mpsc::channel::<()>();
        let worker = std::thread::spawn(move || {
            id.send(system::thread_id()).unwrap();
            over.recv().unwrap_err();
        });
        let thread = ids.recv().unwrap();
        assert_eq!(policy(thread), USUAL);
        let depth = Arc::<Depth>::default();
        let pace = Pace::start(vec![thread], Arc::clone(&depth)).unwrap();
        becomes(thread, IDLE);
        let turn = pace.turn();
        becomes(thread, USUAL);
        drop(turn);
        becomes(thread, IDLE);
        pace.hurry(true);
        becomes(thread, USUAL);
        pace.hurry(false);
        becomes(thread, IDLE);
        depth.add(FILED_BYTES + 1);
        becomes(thread, USUAL);
        depth.sub(FILED_BYTES + 1);
        becomes(thread, IDLE);
        drop(pace);
        assert_eq!(policy(thread), USUAL);
        drop(done);
        worker.join().unwrap();
    }

    #[test]
    fn what_waits_is_stored_to_an_eighth_before_the_threads_yield_again() {
        let depth = Arc::<Depth>::default();
        let decides = Decides {
            threads: Vec::new(),
            depth: Arc::clone(&depth),
            said: Arc::default(),
        };
        depth.add(FILED_BYTES);
        assert_eq!(
            [false, true].map(|are| decides.is_urgent(are)),
            [false, true]
        );
        depth.sub(FILED_BYTES / 8 * 7);
        assert_eq!(
            [false, true].map(|are| decides.is_urgent(are)),
            [false, false]
        );
    }
}
