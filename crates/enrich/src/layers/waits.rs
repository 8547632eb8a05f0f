//! The reason and the cause of a wait: why a thread left the CPU, and what woke it.

use fathom_model::StrId;
use fathom_model::abi::{
    IRQ_HARD, IRQ_SOFT, IRQ_TIMER, WAIT_BY_INTERRUPT, WAIT_CALL_MASK, WAIT_INTERRUPTIBLE, WAIT_IO,
    WAIT_LOCK, WAIT_NO_CALL, WAIT_OTHER_CALL, WAIT_PENDING, WAIT_PREEMPTED, WAIT_SIGNAL,
    WAIT_STATE_SHIFT, WAIT_STOPPED, WAIT_TYPE_ADDRESS, WAIT_TYPE_SHIFT, WAIT_UNINTERRUPTIBLE,
    WAIT_UNRECORDED, WAIT_UNSEEN, WAIT_WOKEN, WaitRecord,
};
use fathom_model::batch::{NULL_I64, Null};
use fathom_model::kind::Kind;
use fathom_model::syscalls::{SYSCALLS, Syscall, UNRECORDED};
use fathom_model::tables::{WaitRow, WaitRows};

use super::names::{HRTIMER, NET_RX, NET_TX, TIMER, waker};
use super::slices::Block;
use crate::strings::{Strings, ThreadNames};
use crate::{id, signed};

/// Types of files, S_IFMT shifted by 12.
pub(super) const FIFO: u32 = 0o1;
pub(super) const CHARACTERS: u32 = 0o2;
const DIRECTORY: u32 = 0o4;
const BLOCKS: u32 = 0o6;
pub(super) const REGULAR: u32 = 0o10;
pub(super) const SOCKET: u32 = 0o14;

/// None of the kernel's: another tracer recorded the call, and not its file.
pub(super) const UNKNOWN_TYPE: u32 = 0o3;

/// The call that a thread was in.
#[derive(Clone, Copy)]
enum In {
    Call(&'static Syscall),
    /// One that is never recorded; without a name if it is not known.
    OtherCall(Option<&'static str>),
    /// A page fault, for instance.
    None,
}

/// The request in which a thread waited.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum During {
    /// Its id, null for none.
    Request(i64),
    /// It has no row: filters left it out, or the recording ended first.
    LeftOut,
    /// A fault on memory without a file, which has no row.
    AnonymousFault,
}

/// A wait, taken apart.
#[derive(Clone, Copy)]
pub(crate) struct Wait<'a> {
    record: &'a WaitRecord,
    flags: u32,
}

impl<'a> Wait<'a> {
    pub(crate) fn new(record: &'a WaitRecord) -> Self {
        let flags = u32::from(record.flags);
        Self { record, flags }
    }

    fn has(self, flag: u32) -> bool {
        self.flags & flag != 0
    }

    /// Its request, 0 when it was in none.
    pub(crate) fn request_ns(self) -> u64 {
        if self.file_type() == WAIT_TYPE_ADDRESS {
            0
        } else {
            self.record.request_ns
        }
    }

    fn file_type(self) -> u32 {
        u32::from(self.record.place) >> WAIT_TYPE_SHIFT
    }

    /// Whether it had not ended when the recording did.
    pub(crate) fn goes_on(self) -> bool {
        self.has(WAIT_PENDING)
    }

    fn is_in(self) -> In {
        match u32::from(self.record.place) & WAIT_CALL_MASK {
            WAIT_NO_CALL => In::None,
            WAIT_OTHER_CALL => In::OtherCall(None),
            index if index >= WAIT_UNRECORDED => {
                let call = UNRECORDED.get((index - WAIT_UNRECORDED) as usize);
                In::OtherCall(call.map(|call| call.name))
            }
            index => SYSCALLS
                .get(index as usize)
                .map_or(In::OtherCall(None), In::Call),
        }
    }

    /// State of the thread.
    pub(crate) fn state(self) -> &'static str {
        if self.has(WAIT_PREEMPTED) {
            "preempted"
        } else if self.has(WAIT_IO) {
            "io"
        } else {
            match u32::from(self.record.place) >> WAIT_STATE_SHIFT & 7 {
                WAIT_UNINTERRUPTIBLE => "uninterruptible",
                WAIT_INTERRUPTIBLE => "interruptible",
                WAIT_STOPPED => "stopped",
                _ => "other",
            }
        }
    }

    fn is_stopped(self) -> bool {
        u32::from(self.record.place) >> WAIT_STATE_SHIFT & 7 == WAIT_STOPPED
    }

    /// Whether an interrupt of one of these kinds woke it.
    fn woken_by(self, is: impl Fn(u32, u16) -> bool) -> bool {
        let (kind, number) = (self.record.waker >> 16, self.record.waker as u16);
        self.has(WAIT_WOKEN) && self.has(WAIT_BY_INTERRUPT) && is(kind, number)
    }

    fn woken_by_timer(self) -> bool {
        self.woken_by(|kind, number| {
            kind == IRQ_TIMER || kind == IRQ_SOFT && matches!(number, TIMER | HRTIMER)
        })
    }

    /// Its reason: a value of column `reason` of table `waits`. `blocks`: the requests to devices of
    /// its request.
    fn reason(self, during: During, blocks: &[Block]) -> &'static str {
        if self.has(WAIT_PREEMPTED) {
            return "cpu";
        }
        if self.is_stopped() {
            return "stopped";
        }
        if self.has(WAIT_LOCK) {
            return "lock";
        }
        let call = match self.is_in() {
            In::Call(call) => call,
            In::OtherCall(name) => {
                let reason = name.and_then(of_unrecorded);
                let io = self.has(WAIT_IO).then_some("disk");
                return reason.or(io).unwrap_or("other");
            }
            // Faults on mapped files are requests.
            In::None if self.request_ns() != 0 && during != During::AnonymousFault => {
                return "page_fault";
            }
            In::None if self.has(WAIT_IO) => return "swap",
            In::None => return "other",
        };
        if let Some(reason) = of_call(call) {
            return reason;
        }
        match self.file_type() {
            SOCKET => "socket",
            FIFO => "pipe",
            CHARACTERS => "terminal",
            _ if self.has(WAIT_IO) => self.of_storage(call, blocks),
            REGULAR | DIRECTORY | BLOCKS => "file_system",
            UNKNOWN_TYPE => "other",
            // A file of no type: an eventfd, a timerfd, an inotify.
            0 if moves_data(call) => "event",
            _ if call.kind != Kind::Other => "file_system",
            _ => "other",
        }
    }

    /// Of a wait that the kernel counts as one for I/O.
    fn of_storage(self, call: &Syscall, blocks: &[Block]) -> &'static str {
        let by_thread = self.has(WAIT_WOKEN) && !self.has(WAIT_BY_INTERRUPT);
        // Writers that are throttled sleep for a time. A page that a thread unlocks was that
        // thread's, or its write-back ended in one: a device's interrupt ends the waits for the
        // device, or a worker that the interrupt left the rest to.
        if self.ended_by_block(blocks).is_some() {
            "disk"
        } else if by_thread && !moves_data(call) {
            "file_system"
        } else if by_thread || self.woken_by_timer() {
            "page_cache"
        } else {
            "disk"
        }
    }

    /// Whether one of the kernel's workers woke it. File systems finish a request in one where that may
    /// sleep: ext4 and XFS convert an extent that was reserved, Btrfs verifies checksums.
    fn woken_by_worker(self) -> bool {
        let thread = self.has(WAIT_WOKEN) && !self.has(WAIT_BY_INTERRUPT);
        thread && self.record.comm.starts_with(b"kworker/")
    }

    /// If a request to a device ended it: `ts_ns` of that one, null if it is not known.
    fn ended_by_block(self, blocks: &[Block]) -> Option<i64> {
        if !self.has(WAIT_IO) {
            return None;
        }
        let ended = blocks.iter().filter(|block| {
            block.completed_at_ns >= self.record.ts_ns
                && block.completed_at_ns <= self.record.wake_ns
        });
        let last = ended.max_by_key(|block| block.completed_at_ns);
        let last = last.map(|block| signed(block.ts_ns));
        if self.woken_by_worker() {
            return last;
        }
        let by_device = self.woken_by(|kind, _| matches!(kind, IRQ_HARD | IRQ_SOFT));
        by_device.then(|| last.unwrap_or(NULL_I64))
    }

    /// Its cause, and the id of the cause.
    fn cause(self, blocks: &[Block]) -> (Option<&'static str>, i64) {
        if !self.has(WAIT_WOKEN) || self.has(WAIT_PREEMPTED) {
            return (None, NULL_I64);
        }
        let by = i64::from(self.record.waker);
        if self.has(WAIT_SIGNAL) {
            return (Some("signal"), by.when(!self.has(WAIT_BY_INTERRUPT)));
        }
        if self.woken_by_worker()
            && let Some(block) = self.ended_by_block(blocks)
        {
            return (Some("block_request"), block);
        }
        if !self.has(WAIT_BY_INTERRUPT) {
            return (Some("thread"), by);
        }
        if self.woken_by_timer() {
            return (Some("timer"), NULL_I64);
        }
        let network = |kind, number| kind == IRQ_SOFT && matches!(number, NET_TX | NET_RX);
        if self.woken_by(network) {
            let [a, b, c, d, ..] = self.record.comm;
            let sender = i64::from(u32::from_ne_bytes([a, b, c, d]));
            return (Some("network"), sender.when(sender != 0));
        }
        match self.ended_by_block(blocks) {
            Some(block) => (Some("block_request"), block),
            None => (Some("interrupt"), NULL_I64),
        }
    }

    /// Adds its row. `blocks`: the requests to devices of its request.
    pub(crate) fn push(
        self,
        to: (&mut WaitRows, &mut Strings),
        during: During,
        cpu: u32,
        blocks: &[Block],
        names: &mut impl ThreadNames,
    ) {
        let (rows, strings) = to;
        let r = self.record;
        let seen = !self.has(WAIT_UNSEEN);
        let ran = seen && !self.goes_on();
        let woken = self.has(WAIT_WOKEN) && !self.has(WAIT_PREEMPTED);
        let end = r.ts_ns.saturating_add(r.dur_ns);
        let (waker, waker_tid) = waker(r, strings);
        let (cause, cause_id) = self.cause(blocks);
        let address = self.file_type() == WAIT_TYPE_ADDRESS;
        let (syscall, futex) = match self.is_in() {
            In::Call(call) if !self.has(WAIT_PREEMPTED) => {
                (strings.word(call.name), call.name.starts_with("futex"))
            }
            In::OtherCall(Some(name)) if !self.has(WAIT_PREEMPTED) => (strings.word(name), false),
            _ => (StrId::NULL, false),
        };
        rows.push(WaitRow {
            rid: match during {
                During::Request(rid) => rid,
                During::LeftOut | During::AnonymousFault => NULL_I64,
            },
            ts_ns: signed(r.ts_ns),
            dur_ns: signed(r.dur_ns).when(seen),
            pid: id(r.pid),
            tid: id(r.tid),
            comm: names.thread_name(r.tid, r.ts_ns, strings),
            cpu: id(cpu).when(ran),
            state: strings.word(self.state()),
            reason: strings.word(self.reason(during, blocks)),
            in_syscall: syscall,
            woken_at_ns: signed(r.wake_ns).when(woken),
            run_queue_ns: signed(end.saturating_sub(r.wake_ns)).when(woken && seen),
            waker,
            waker_tid,
            cause: cause.map_or(StrId::NULL, |cause| strings.word(cause)),
            cause_id,
            address: signed(r.request_ns).when(address && futex),
        });
    }
}

/// Whether the call moves data, and so waits for the file.
fn moves_data(call: &Syscall) -> bool {
    matches!(call.kind, Kind::Read | Kind::Write | Kind::Transfer)
}

/// The reason of waits in a call that is the same for every file.
fn of_call(call: &Syscall) -> Option<&'static str> {
    Some(match (call.kind, call.name) {
        (Kind::Futex, _) => "futex",
        (Kind::Poll, _) => "poll",
        (Kind::WaitChild, _) => "child",
        (_, "pause") => "signal",
        (Kind::Sleep, _) => "timer",
        (Kind::Flock | Kind::Fcntl, _) => "file_lock",
        (Kind::Accept | Kind::Connect | Kind::Send | Kind::Receive, _) => "socket",
        (_, "io_uring_enter" | "io_getevents" | "io_pgetevents") => "async_io",
        _ => return None,
    })
}

/// The same of calls that are never recorded.
fn of_unrecorded(name: &'static str) -> Option<&'static str> {
    Some(match name {
        // vfork: until the child executes a program.
        "clone" | "clone3" | "fork" | "vfork" => "child",
        "rt_sigsuspend" | "rt_sigtimedwait" => "signal",
        "semop" | "semtimedop" | "msgsnd" | "msgrcv" | "mq_timedsend" | "mq_timedreceive" => "ipc",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(name: &str, file_type: u32, state: u32, flags: u32) -> WaitRecord {
        let mut record = WaitRecord::parse(&[0; WaitRecord::SIZE]).unwrap();
        let unrecorded = UNRECORDED.iter().position(|call| call.name == name);
        let unrecorded = unrecorded.map(|index| WAIT_UNRECORDED + index as u32);
        let recorded = Syscall::index_of(name).map(|index| index as u32);
        let call = recorded.or(unrecorded).unwrap_or(WAIT_NO_CALL);
        record.place = (call | state << WAIT_STATE_SHIFT | file_type << WAIT_TYPE_SHIFT) as u16;
        record.flags = flags as u8;
        (record.ts_ns, record.wake_ns, record.dur_ns) = (1_000, 5_000, 4_500);
        record
    }

    fn interrupt(mut record: WaitRecord, kind: u32, number: u16) -> WaitRecord {
        record.waker = kind << 16 | u32::from(number);
        record.flags |= (WAIT_WOKEN | WAIT_BY_INTERRUPT) as u8;
        record
    }

    const SLEEPS: u32 = WAIT_INTERRUPTIBLE;

    #[test]
    fn reasons() {
        let during = |record: &WaitRecord, during| Wait::new(record).reason(during, &[]);
        let reason = |record: &WaitRecord| during(record, During::Request(1));
        let preempted = record("write", REGULAR, 0, WAIT_PREEMPTED | WAIT_IO);
        assert_eq!(reason(&preempted), "cpu");
        let of = |name: &str, file_type| reason(&record(name, file_type, SLEEPS, 0));
        assert_eq!(of("read", SOCKET), "socket");
        assert_eq!(of("read", FIFO), "pipe");
        assert_eq!(of("read", CHARACTERS), "terminal");
        assert_eq!(of("read", 0), "event");
        assert_eq!(of("fcntl", REGULAR), "file_lock");
        assert_eq!(of("io_uring_enter", 0), "async_io");
        assert_eq!(of("no call", 0), "other");
        assert_eq!(of("futex", 0), "futex");
        assert_eq!(of("nanosleep", 0), "timer");
        assert_eq!(of("epoll_wait", 0), "poll");
        assert_eq!(of("recvfrom", SOCKET), "socket");
        assert_eq!(of("vfork", 0), "child");
        assert_eq!(of("semop", 0), "ipc");
        assert_eq!(of("exit", 0), "other");
        let held = record("write", REGULAR, WAIT_UNINTERRUPTIBLE, WAIT_LOCK);
        assert_eq!(reason(&held), "lock");
        let commit = record("fsync", REGULAR, WAIT_UNINTERRUPTIBLE, WAIT_WOKEN);
        assert_eq!(reason(&commit), "file_system");
        let stopped = record("read", FIFO, WAIT_STOPPED, 0);
        assert_eq!(reason(&stopped), "stopped");

        let io = record("pread64", REGULAR, WAIT_UNINTERRUPTIBLE, WAIT_IO);
        assert_eq!(reason(&interrupt(io, IRQ_SOFT, 4)), "disk");
        // Throttled by the limit of dirty pages; behind the thread that has the page.
        assert_eq!(reason(&interrupt(io, IRQ_TIMER, 0)), "page_cache");
        let mut behind = io;
        behind.flags |= WAIT_WOKEN as u8;
        assert_eq!(reason(&behind), "page_cache");
        let mut converted = record("fdatasync", REGULAR, WAIT_UNINTERRUPTIBLE, WAIT_IO);
        converted.flags |= WAIT_WOKEN as u8;
        assert_eq!(reason(&converted), "file_system");
        let mut finished = converted;
        finished.comm[..12].copy_from_slice(b"kworker/u8:1");
        assert_eq!(reason(&finished), "file_system");
        let reason_of = |record| Wait::new(record).reason(During::Request(1), &[block(9, 4_900)]);
        assert_eq!(reason_of(&finished), "disk");
        assert_eq!(reason_of(&converted), "file_system");

        let mut fault = record("no call", 0, WAIT_UNINTERRUPTIBLE, WAIT_IO);
        assert_eq!(reason(&fault), "swap");
        fault.request_ns = 900;
        assert_eq!(reason(&fault), "page_fault");
        assert_eq!(during(&fault, During::LeftOut), "page_fault");
        assert_eq!(during(&fault, During::AnonymousFault), "swap");
        fault.flags = 0;
        assert_eq!(during(&fault, During::AnonymousFault), "other");
    }

    fn block(ts_ns: u64, completed_at_ns: u64) -> Block {
        Block {
            ts_ns,
            device: 0,
            queued_at_ns: 1_100,
            issued_at_ns: 1_200,
            completed_at_ns,
        }
    }

    #[test]
    fn causes() {
        let blocks = [
            block(7, 900),
            block(8, 4_000),
            block(9, 4_900),
            block(10, 5_100),
        ];
        let cause = |record: &WaitRecord| Wait::new(record).cause(&blocks);
        let io = record("pread64", REGULAR, WAIT_UNINTERRUPTIBLE, WAIT_IO);
        assert_eq!(cause(&io), (None, NULL_I64));
        let by_device = interrupt(io, IRQ_SOFT, 4);
        assert_eq!(cause(&by_device), (Some("block_request"), 9));
        assert_eq!(
            Wait::new(&by_device).cause(&[]),
            (Some("block_request"), NULL_I64)
        );
        let mut by_worker = io;
        (by_worker.flags, by_worker.waker) = ((WAIT_IO | WAIT_WOKEN) as u8, 23);
        by_worker.comm[..12].copy_from_slice(b"kworker/u8:1");
        assert_eq!(cause(&by_worker), (Some("block_request"), 9));
        assert_eq!(Wait::new(&by_worker).cause(&[]), (Some("thread"), 23));
        by_worker.comm[..12].copy_from_slice(b"jbd2/vda-8\0\0");
        assert_eq!(cause(&by_worker), (Some("thread"), 23));
        let sleeps = record("read", SOCKET, SLEEPS, 0);
        let mut by_thread = sleeps;
        by_thread.flags |= WAIT_WOKEN as u8;
        by_thread.waker = 4711;
        assert_eq!(cause(&by_thread), (Some("thread"), 4711));
        by_thread.flags |= WAIT_SIGNAL as u8;
        assert_eq!(cause(&by_thread), (Some("signal"), 4711));
        assert_eq!(
            cause(&interrupt(sleeps, IRQ_SOFT, TIMER)),
            (Some("timer"), NULL_I64)
        );
        let mut received = interrupt(sleeps, IRQ_SOFT, NET_RX);
        assert_eq!(cause(&received), (Some("network"), NULL_I64));
        received.comm[..4].copy_from_slice(&4712u32.to_ne_bytes());
        assert_eq!(cause(&received), (Some("network"), 4712));
    }
}
