//! Waits, interrupts, and slices of requests that another tracer recorded. They are put into the
//! records of fathom's own tracer, so that the same code finds their reasons and divides their time.

use fathom_model::StrId;
use fathom_model::abi::{
    IRQ_HARD, IRQ_SOFT, IRQ_TIMER, IrqRecord, RECORD_IRQ, RECORD_WAIT, WAIT_BY_INTERRUPT,
    WAIT_INTERRUPTIBLE, WAIT_IO, WAIT_NO_CALL, WAIT_OTHER_CALL, WAIT_OTHER_STATE, WAIT_PENDING,
    WAIT_PREEMPTED, WAIT_RUNNABLE, WAIT_STATE_SHIFT, WAIT_STOPPED, WAIT_TYPE_SHIFT,
    WAIT_UNINTERRUPTIBLE, WAIT_UNRECORDED, WAIT_WOKEN, WaitRecord,
};
use fathom_model::batch::{Batch, NULL_I64};
use fathom_model::syscalls::{Syscall, UNRECORDED};

use super::requests::{Key, Kind};
use super::slices::{Block, Parts};
use super::waits::{CHARACTERS, During, FIFO, REGULAR, SOCKET, UNKNOWN_TYPE, Wait};
use super::{Ended, Layers};
use crate::strings::{Strings, ThreadNames};

/// State in which a thread left the processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadState {
    /// It could have run.
    Preempted,
    /// It slept, and signals wake it.
    Interruptible,
    /// It slept, and signals do not wake it.
    Uninterruptible,
    /// By a signal or a debugger.
    Stopped,
    /// Another state of the kernel.
    Other,
}

/// Type of the file that a call was about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileType {
    /// A socket.
    Socket,
    /// A pipe.
    Pipe,
    /// A terminal.
    Terminal,
    /// A file of a file system.
    Storage,
    /// A file of the kernel without a type, such as an eventfd.
    Anonymous,
    /// The trace does not tell.
    Unknown,
}

/// Where a thread was when it left the processor.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    /// In no call.
    Program,
    /// In a call that has a row.
    Call(&'static Syscall, FileType),
    /// In another call, by its name.
    OtherCall(&'static str),
    /// In another call, whose name fathom does not know.
    UnknownCall,
}

/// Kind of an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterruptKind {
    /// Of a device.
    Hard,
    /// A softirq, by its number.
    Soft(u16),
    /// A timer of high resolution.
    Timer,
}

impl InterruptKind {
    fn source(self) -> u32 {
        match self {
            InterruptKind::Hard => IRQ_HARD,
            InterruptKind::Soft(_) => IRQ_SOFT,
            InterruptKind::Timer => IRQ_TIMER,
        }
    }

    fn number(self) -> u16 {
        match self {
            InterruptKind::Soft(number) => number,
            InterruptKind::Hard | InterruptKind::Timer => 0,
        }
    }
}

/// An interrupt.
#[derive(Clone, Copy, Debug)]
pub struct Interrupt {
    /// Its kind.
    pub kind: InterruptKind,
    /// Name of the device, padded with NUL.
    pub name: [u8; 16],
}

/// The source of a wake-up.
#[derive(Clone, Copy, Debug)]
pub enum Waker {
    /// A thread, and its name, padded with NUL.
    Thread(u32, [u8; 16]),
    /// An interrupt.
    Interrupt(Interrupt),
}

/// A period in which a thread was off the processor. Times are in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub struct TracedWait {
    /// When it left the processor.
    pub begin_ns: u64,
    /// When it was back, or the trace ended.
    pub end_ns: u64,
    /// Whether the trace ended first.
    pub goes_on: bool,
    /// Its state.
    pub state: ThreadState,
    /// Where it was.
    pub place: Place,
    /// When it was woken, and by whom.
    pub woken: Option<(u64, Waker)>,
    /// The interrupt that woke it had completed a request to a device before.
    pub by_completion: bool,
    /// Its process.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// Where it was back.
    pub cpu: u32,
}

impl TracedWait {
    fn record(&self) -> WaitRecord {
        let (state, preempted) = match self.state {
            ThreadState::Preempted => (WAIT_RUNNABLE, WAIT_PREEMPTED),
            ThreadState::Interruptible => (WAIT_INTERRUPTIBLE, 0),
            ThreadState::Uninterruptible => (WAIT_UNINTERRUPTIBLE, 0),
            ThreadState::Stopped => (WAIT_STOPPED, 0),
            ThreadState::Other => (WAIT_OTHER_STATE, 0),
        };
        let (call, file_type) = match self.place {
            Place::Program => (WAIT_NO_CALL, 0),
            Place::UnknownCall => (WAIT_OTHER_CALL, 0),
            Place::OtherCall(name) => {
                let row = UNRECORDED.iter().position(|call| call.name == name);
                (
                    row.map_or(WAIT_OTHER_CALL, |row| WAIT_UNRECORDED + row as u32),
                    0,
                )
            }
            Place::Call(call, file_type) => {
                let row = Syscall::index_of(call.name);
                let row = row.map_or(WAIT_OTHER_CALL, |row| row as u32);
                (row, number_of(file_type))
            }
        };
        // Threads that sleep so until a device is ready sleep in io_schedule(); the kernel's own flag is
        // not in the trace. Outside of calls it may be a page of a file or of swap.
        let io = self.by_completion
            && self.state == ThreadState::Uninterruptible
            && !matches!(self.place, Place::Program);
        let mut flags = preempted;
        for (set, flag) in [(io, WAIT_IO), (self.goes_on, WAIT_PENDING)] {
            flags |= if set { flag } else { 0 };
        }
        let (mut wake_ns, mut waker, mut comm) = (0, 0, [0; 16]);
        match self.woken {
            None => {}
            Some((ns, Waker::Thread(tid, name))) => {
                flags |= WAIT_WOKEN;
                (wake_ns, waker, comm) = (ns, tid, name);
            }
            Some((ns, Waker::Interrupt(by))) => {
                flags |= WAIT_WOKEN | WAIT_BY_INTERRUPT;
                (wake_ns, waker) = (ns, by.kind.source() << 16 | u32::from(by.kind.number()));
                // Of a softirq of the network the sender would be here, whom the trace does not name.
                if by.kind == InterruptKind::Hard {
                    comm = by.name;
                }
            }
        }
        WaitRecord {
            kind: RECORD_WAIT as u8,
            flags: flags as u8,
            place: (call | state << WAIT_STATE_SHIFT | file_type << WAIT_TYPE_SHIFT) as u16,
            waker,
            ts_ns: self.begin_ns,
            dur_ns: self.end_ns.saturating_sub(self.begin_ns),
            pid: self.pid,
            tid: self.tid,
            request_ns: 0,
            wake_ns: wake_ns.clamp(self.begin_ns, self.end_ns.max(self.begin_ns)),
            comm,
        }
    }
}

fn number_of(file_type: FileType) -> u32 {
    match file_type {
        FileType::Socket => SOCKET,
        FileType::Pipe => FIFO,
        FileType::Terminal => CHARACTERS,
        FileType::Storage => REGULAR,
        FileType::Anonymous => 0,
        FileType::Unknown => UNKNOWN_TYPE,
    }
}

/// A request to a device that a thread made in the course of its call. Times are in nanoseconds, 0 if
/// they are not known.
#[derive(Clone, Copy, Debug, Default)]
pub struct TracedBlock {
    /// `ts_ns` of its row.
    pub begin_ns: u64,
    /// When the thread submitted it.
    pub queued_at_ns: u64,
    /// When the device's driver got it.
    pub issued_at_ns: u64,
    /// When the device had completed it.
    pub completed_at_ns: u64,
}

/// The events below a call until it ended.
#[derive(Debug, Default)]
pub struct TracedParts(Parts);

impl TracedParts {
    /// The thread was off the processor.
    pub fn wait(&mut self, wait: &TracedWait) {
        self.0.waits.push((wait.cpu, wait.record()));
    }

    /// An interrupt took the processor from `begin_ns` to `end_ns`.
    pub fn interrupt(
        &mut self,
        (pid, tid, cpu): (u32, u32, u32),
        interrupt: &Interrupt,
        (begin_ns, end_ns): (u64, u64),
    ) {
        let record = IrqRecord {
            kind: RECORD_IRQ as u8,
            source: interrupt.kind.source() as u8,
            number: interrupt.kind.number(),
            ts_ns: begin_ns,
            dur_ns: end_ns.saturating_sub(begin_ns),
            pid,
            tid,
            request_ns: 0,
            name: interrupt.name,
            reserved: 0,
            reserved2: 0,
        };
        self.0.irqs.push((cpu, record));
    }

    /// The device had completed a request of the call.
    pub fn block(&mut self, layers: &mut TracedLayers, device: &[u8], block: &TracedBlock) {
        self.0.blocks.push(Block {
            ts_ns: block.begin_ns,
            device: layers.0.blocks.device(device),
            queued_at_ns: block.queued_at_ns,
            issued_at_ns: block.issued_at_ns,
            completed_at_ns: block.completed_at_ns,
        });
    }

    /// Number of records, which take memory until the call ends.
    pub fn len(&self) -> usize {
        self.0.waits.len() + self.0.irqs.len() + self.0.blocks.len()
    }

    /// Whether nothing was seen.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A call that has ended.
#[derive(Clone, Copy, Debug)]
pub struct TracedRequest {
    /// Its id.
    pub rid: i64,
    /// Name of the call.
    pub name: &'static str,
    /// Its thread.
    pub tid: u32,
    /// When it began, nanoseconds.
    pub begin_ns: u64,
    /// Its duration, nanoseconds.
    pub dur_ns: u64,
}

/// Makes the rows of tables `waits`, `irqs`, and `slices`.
#[derive(Debug, Default)]
pub struct TracedLayers(Layers);

impl TracedLayers {
    /// A call has ended. `thread`: the name of its thread.
    pub fn request(&mut self, request: &TracedRequest, parts: &TracedParts, thread: Option<&[u8]>) {
        let ended = Ended {
            key: Key::new(request.tid, request.begin_ns),
            kind: Kind::Call,
            name: request.name,
            dur_ns: request.dur_ns,
            changes: false,
        };
        self.0
            .gathered(Some((request.rid, &ended)), &parts.0, &mut OneName(thread));
    }

    /// A thread was off the processor, and in no call that has a row.
    pub fn wait(&mut self, wait: &TracedWait, thread: Option<&[u8]>) {
        let (rows, strings) = &mut self.0.waits;
        let (during, record) = (During::Request(NULL_I64), wait.record());
        let to = (rows, strings);
        Wait::new(&record).push(to, during, wait.cpu, &[], &mut OneName(thread));
    }

    /// Rows that were not taken yet.
    pub fn pending_rows(&self) -> usize {
        self.0.pending_rows()
    }

    /// The rows since the last time, a batch each table.
    pub fn take(&mut self) -> Vec<Batch> {
        let batches = self.0.take();
        batches
            .into_iter()
            .filter(|batch| !batch.is_empty())
            .collect()
    }
}

/// The name of the thread whose rows are made.
struct OneName<'a>(Option<&'a [u8]>);

impl ThreadNames for OneName<'_> {
    fn thread_name(&mut self, _: u32, _: u64, strings: &mut Strings) -> StrId {
        self.0.map_or(StrId::NULL, |name| strings.text(name))
    }
}
