//! Which thread each processor runs, which interrupt it handles, and why threads do not run: the
//! events of the scheduler and of interrupts.

use std::collections::HashMap;

use fathom_enrich::{Interrupt, InterruptKind, Place, ThreadState, TracedWait, Waker};

/// Interrupts that lie in one another at most: more are an error of the trace.
const MAX_NESTED: usize = 16;

/// A thread that is off the processor.
#[derive(Clone, Copy, Debug)]
struct Off {
    begin_ns: i64,
    state: ThreadState,
    place: Place,
    woken: Option<(i64, Waker)>,
    by_completion: bool,
}

/// An interrupt whose handler runs.
#[derive(Clone, Copy, Debug)]
struct Handler {
    interrupt: Interrupt,
    begin_ns: i64,
    /// It has completed a request to a device.
    completed: bool,
}

#[derive(Debug, Default)]
struct Processor {
    /// The thread that it runs; 0: none.
    running: Option<i32>,
    handlers: Vec<Handler>,
}

/// The state of threads and processors, from the events of the scheduler.
#[derive(Debug, Default)]
pub(super) struct Scheduler {
    processors: HashMap<i32, Processor>,
    off: HashMap<i32, Off>,
}

/// An interrupt has ended that took its time from a thread.
pub(super) struct Interrupted {
    pub tid: i32,
    pub interrupt: Interrupt,
    pub begin_ns: i64,
}

impl Scheduler {
    /// The thread that a processor runs.
    pub fn running(&self, cpu: i32) -> Option<i32> {
        self.processors.get(&cpu)?.running
    }

    /// Events are missing: what was open is not known any more.
    pub fn lost(&mut self) {
        self.processors.clear();
        self.off.clear();
    }

    /// A processor goes on with another thread.
    pub fn runs(&mut self, cpu: i32, tid: i32) {
        let processor = self.processors.entry(cpu).or_default();
        // No handler goes on while threads change: the end of one that is left is missing.
        processor.handlers.clear();
        processor.running = Some(tid);
    }

    /// A thread leaves its processor. `state`: `prev_state` of the event.
    pub fn leaves(&mut self, tid: i32, ns: i64, state: i64, place: Place) {
        // The idle threads of all processors have number 0.
        let state = (tid != 0).then(|| thread_state(state)).flatten();
        match state {
            Some(state) => {
                let off = Off {
                    begin_ns: ns,
                    state,
                    place,
                    woken: None,
                    by_completion: false,
                };
                self.off.insert(tid, off);
            }
            None => {
                self.off.remove(&tid);
            }
        }
    }

    /// A thread was made, and waits for a processor.
    pub fn made(&mut self, tid: i32, ns: i64) {
        self.leaves(tid, ns, 0, Place::Program);
    }

    /// A thread is woken by what runs on `cpu`. `name`: of a thread.
    pub fn wakes(&mut self, cpu: i32, tid: i32, ns: i64, name: impl Fn(i32) -> [u8; 16]) {
        let Some(off) = self.off.get_mut(&tid) else {
            return;
        };
        // The event comes twice: when it is woken, and when it is in the queue of a processor.
        if off.woken.is_some() || off.state == ThreadState::Preempted {
            return;
        }
        let Some(processor) = self.processors.get(&cpu) else {
            return;
        };
        off.woken = match (processor.handlers.last(), processor.running) {
            (Some(handler), _) => {
                off.by_completion = processor.handlers.iter().any(|handler| handler.completed);
                Some((ns, Waker::Interrupt(handler.interrupt)))
            }
            // An idle processor wakes no thread outside of interrupts that the trace has.
            (None, None | Some(0)) => return,
            (None, Some(waker)) => {
                let thread = u32::try_from(waker).unwrap_or(0);
                Some((ns, Waker::Thread(thread, name(waker))))
            }
        };
    }

    /// A thread is back on a processor. `None`: when it left is not known.
    pub fn is_back(&mut self, tid: i32, ns: i64, cpu: i32, pid: i32) -> Option<TracedWait> {
        let off = self.off.remove(&tid)?;
        Some(wait(&off, ns, tid, Some(cpu), pid))
    }

    /// The threads that are off the processor when the trace ends.
    pub fn left(&mut self) -> Vec<i32> {
        let mut left: Vec<i32> = self.off.keys().copied().collect();
        left.sort_unstable();
        left
    }

    /// The wait of a thread that goes on when the trace ends.
    pub fn goes_on(&mut self, tid: i32, ns: i64, pid: i32) -> Option<TracedWait> {
        let off = self.off.remove(&tid)?;
        Some(wait(&off, ns, tid, None, pid))
    }

    /// A handler of an interrupt begins.
    pub fn interrupts(&mut self, cpu: i32, interrupt: Interrupt, ns: i64) {
        let handlers = &mut self.processors.entry(cpu).or_default().handlers;
        if handlers.len() < MAX_NESTED {
            handlers.push(Handler {
                interrupt,
                begin_ns: ns,
                completed: false,
            });
        }
    }

    /// The handler ends. `None`: its beginning was not seen, or it interrupted no thread.
    pub fn ends(&mut self, cpu: i32, kind: InterruptKind) -> Option<Interrupted> {
        let processor = self.processors.get_mut(&cpu)?;
        let at = processor
            .handlers
            .iter()
            .rposition(|handler| handler.interrupt.kind == kind)?;
        let handler = processor.handlers.drain(at..).next()?;
        let tid = processor.running.filter(|tid| *tid != 0)?;
        Some(Interrupted {
            tid,
            interrupt: handler.interrupt,
            begin_ns: handler.begin_ns,
        })
    }

    /// A request to a device was completed by what runs on `cpu`.
    pub fn completes(&mut self, cpu: i32) {
        if let Some(processor) = self.processors.get_mut(&cpu)
            && let Some(handler) = processor.handlers.last_mut()
        {
            handler.completed = true;
        }
    }
}

fn wait(off: &Off, end_ns: i64, tid: i32, cpu: Option<i32>, pid: i32) -> TracedWait {
    let unsigned = |ns: i64| u64::try_from(ns).unwrap_or(0);
    let id = |number: i32| u32::try_from(number).unwrap_or(0);
    TracedWait {
        begin_ns: unsigned(off.begin_ns),
        end_ns: unsigned(end_ns),
        goes_on: cpu.is_none(),
        state: off.state,
        place: off.place,
        woken: off.woken.map(|(ns, waker)| (unsigned(ns), waker)),
        by_completion: off.by_completion,
        pid: id(pid),
        tid: id(tid),
        cpu: id(cpu.unwrap_or(0)),
    }
}

/// `prev_state` of `sched_switch`: the bits of include/linux/sched.h. `None`: the thread has ended.
fn thread_state(state: i64) -> Option<ThreadState> {
    const INTERRUPTIBLE: i64 = 1;
    const UNINTERRUPTIBLE: i64 = 2;
    const STOPPED: i64 = 4 | 8;
    const ENDED: i64 = 0x10 | 0x20 | 0x40;
    // Bits above say that it was preempted: 0x100, and before Linux 4.14 one from 0x400 to 0x1000 in
    // addition to its state. From 4.2 on 0x402 was a state, of idle workers.
    let preempted = state >= 0x800 || state >= 0x100 && state & 0xff == 1;
    Some(match state & 0xff {
        _ if preempted => ThreadState::Preempted,
        0 => ThreadState::Preempted,
        state if state & ENDED != 0 => return None,
        state if state & UNINTERRUPTIBLE != 0 => ThreadState::Uninterruptible,
        state if state & INTERRUPTIBLE != 0 => ThreadState::Interruptible,
        state if state & STOPPED != 0 => ThreadState::Stopped,
        _ => ThreadState::Other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_of_all_kernels() {
        use ThreadState::{Interruptible, Other, Preempted, Stopped, Uninterruptible};
        let states = [
            (0, Some(Preempted)),
            (1, Some(Interruptible)),
            (2, Some(Uninterruptible)),
            (4, Some(Stopped)),
            (8, Some(Stopped)),
            (0x10, None),
            (0x20, None),
            // Idle, from Linux 4.14 on.
            (0x80, Some(Other)),
            (0x100, Some(Preempted)),
            // Killable.
            (0x102, Some(Uninterruptible)),
            // Preempted before Linux 4.14, whatever the thread was about to do.
            (0x401, Some(Preempted)),
            (0x1000, Some(Preempted)),
            (0x1002, Some(Preempted)),
            // An idle worker.
            (0x402, Some(Uninterruptible)),
        ];
        for (state, want) in states {
            assert_eq!(thread_state(state), want, "{state:#x}");
        }
    }

    fn hard() -> Interrupt {
        Interrupt {
            kind: InterruptKind::Hard,
            name: [0; 16],
        }
    }

    fn soft() -> Interrupt {
        Interrupt {
            kind: InterruptKind::Soft(4),
            name: [0; 16],
        }
    }

    #[test]
    fn the_innermost_interrupt_wakes() {
        let mut scheduler = Scheduler::default();
        let name = |_| [0; 16];
        scheduler.runs(0, 7);
        scheduler.leaves(8, 10, 2, Place::Program);
        scheduler.interrupts(0, hard(), 20);
        scheduler.interrupts(0, soft(), 21);
        scheduler.completes(0);
        scheduler.wakes(0, 8, 22, name);
        // Only the first wake-up counts.
        scheduler.wakes(0, 8, 23, name);
        let wait = scheduler.is_back(8, 30, 1, 8).unwrap();
        let (at, Waker::Interrupt(by)) = wait.woken.unwrap() else {
            panic!("{wait:?}");
        };
        assert_eq!((at, by.kind), (22, InterruptKind::Soft(4)));
        assert!(wait.by_completion && !wait.goes_on);
        // An interrupt takes those with it whose end is missing.
        let ended = scheduler.ends(0, InterruptKind::Hard).unwrap();
        assert_eq!((ended.tid, ended.begin_ns), (7, 20));
        assert!(scheduler.ends(0, InterruptKind::Soft(4)).is_none());
        assert!(scheduler.is_back(8, 40, 1, 8).is_none());
    }

    #[test]
    fn a_handler_without_an_end_wakes_nothing_later() {
        let mut scheduler = Scheduler::default();
        scheduler.runs(0, 7);
        scheduler.interrupts(0, hard(), 10);
        scheduler.completes(0);
        scheduler.runs(0, 9);
        scheduler.leaves(8, 20, 2, Place::Program);
        scheduler.wakes(0, 8, 30, |_| *b"nine\0\0\0\0\0\0\0\0\0\0\0\0");
        let wait = scheduler.is_back(8, 40, 0, 8).unwrap();
        assert!(matches!(wait.woken, Some((30, Waker::Thread(9, _)))));
        assert!(!wait.by_completion);
    }

    #[test]
    fn nothing_is_known_after_a_loss() {
        let mut scheduler = Scheduler::default();
        scheduler.runs(0, 7);
        scheduler.leaves(8, 10, 1, Place::Program);
        scheduler.lost();
        assert!(scheduler.is_back(8, 20, 0, 8).is_none());
        assert_eq!(scheduler.running(0), None);
        // The idle thread and threads that end have no waits.
        scheduler.leaves(0, 30, 0, Place::Program);
        scheduler.leaves(9, 30, 0x20, Place::Program);
        assert!(scheduler.left().is_empty());
    }
}
