//! Where the time of one request went.
//!
//! Everything that was seen below a request is an interval. Where several hold at a
//! time, the innermost takes it: an interrupt before what it interrupted, the device or
//! the server before the wait for it, a wait before the part of the file system that waits.
//! So every nanosecond of the request belongs to one interval, and the sum is the whole.

use fathom_model::layers::Layer;
use std::sync::Arc;

use fathom_model::abi::{
    IrqRecord, SPAN_NFS_ASYNC, SpanRecord, WAIT_PREEMPTED, WAIT_UNSEEN, WAIT_WOKEN, WaitRecord,
};

use super::names;
use super::requests::Kind;
use super::waits::Wait;

/// Records for which emptied parts have room at most.
const MAX_KEPT: usize = 256;

/// Data gathered for a request until its end.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    pub(crate) waits: Vec<(u32, WaitRecord)>,
    pub(crate) irqs: Vec<(u32, IrqRecord)>,
    pub(crate) spans: Vec<SpanRecord>,
    pub(crate) blocks: Vec<Block>,
    /// By a thread in the course of a call or fault, not of an operation.
    pub(crate) in_call: bool,
}

impl Parts {
    /// Empties it; false when its memory is too large to be kept.
    pub(crate) fn clear(&mut self) -> bool {
        self.waits.clear();
        self.irqs.clear();
        self.spans.clear();
        self.blocks.clear();
        self.in_call = false;
        let Self {
            waits,
            irqs,
            spans,
            blocks,
            ..
        } = self;
        waits.capacity() + irqs.capacity() + spans.capacity() + blocks.capacity() <= MAX_KEPT
    }

    /// Whether time was seen to pass below the request.
    pub(crate) fn has_times(&self) -> bool {
        !(self.waits.is_empty()
            && self.irqs.is_empty()
            && self.spans.is_empty()
            && self.blocks.is_empty())
    }
}

/// A request to a device; times that are not known are 0.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    /// Beginning of its row.
    pub(crate) ts_ns: u64,
    pub(crate) device: u16,
    pub(crate) queued_at_ns: u64,
    pub(crate) issued_at_ns: u64,
    pub(crate) completed_at_ns: u64,
}

/// The request itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Whole {
    pub(crate) kind: Kind,
    pub(crate) layer: Layer,
    pub(crate) name: &'static str,
    pub(crate) begin: u64,
    pub(crate) end: u64,
}

/// Where the name of a visit comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Label {
    Word(&'static str),
    /// The number of a device.
    Device(u16),
    /// The place of an interrupt in [`Parts::irqs`].
    Irq(usize),
    /// The place of a function among the functions that the recording names.
    Function(usize),
}

/// A function of the kernel that the recording names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Function {
    /// Kind of its visits.
    pub(crate) span: u8,
    pub(crate) layer: Layer,
    pub(crate) name: Box<str>,
}

/// One visit of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slice {
    pub(crate) layer: Layer,
    pub(crate) label: Label,
    pub(crate) begin: u64,
    pub(crate) end: u64,
    pub(crate) own_ns: u64,
    pub(crate) depth: i32,
    /// Which takes the time where several hold.
    rank: u8,
    /// Takes none while the request does not wait for something that is not its own doing.
    aside: bool,
}

impl Slice {
    /// Whether it is a request to a server, of which the thread mostly waits for the answer.
    fn is_at_server(&self) -> bool {
        matches!(self.layer, Layer::Fuse | Layer::Nfs)
    }
}

const WHOLE: u8 = 0;
const SPAN: u8 = 1;
const WAIT: u8 = 2;
const RUN_QUEUE: u8 = 3;
const QUEUE: u8 = 3;
const DEVICE: u8 = 4;
const SERVER: u8 = 4;
const IRQ: u8 = 5;

type Interval = (u64, u64);

/// Visits and intervals for which an idle slicer has room at most.
const MAX_ROOM: usize = 4096;

/// Divides the time of requests, one after the other.
#[derive(Debug, Default)]
pub(crate) struct Slicer {
    visits: Visits,
    /// When the request waits for something that is not its own doing.
    blocked: Vec<Interval>,
    devices: Vec<u16>,
    times: Vec<Interval>,
}

impl Slicer {
    /// The visits of a request, itself first. `devices` are the names of all devices.
    pub(crate) fn slices(
        &mut self,
        whole: &Whole,
        parts: &Parts,
        devices: &[Arc<str>],
        functions: &[Function],
    ) -> &[Slice] {
        if self.visits.slices.capacity() > MAX_ROOM || self.times.capacity() > MAX_ROOM {
            *self = Self::default();
        }
        let visits = &mut self.visits;
        visits.begin(whole.begin, whole.end);
        let name = Label::Word(whole.name);
        visits.add((whole.begin, whole.end), whole.layer, name, WHOLE);
        for span in &parts.spans {
            visits.add_span(span, whole.kind, functions);
        }
        self.blocked.clear();
        for (_, wait) in &parts.waits {
            let flags = u32::from(wait.flags);
            let end = match flags & (WAIT_UNSEEN | WAIT_WOKEN) {
                WAIT_UNSEEN => continue,
                // Its end was not seen: it waited at least until it was woken.
                both if both & WAIT_UNSEEN != 0 => wait.wake_ns.max(wait.ts_ns),
                _ => wait.ts_ns.saturating_add(wait.dur_ns),
            };
            let state = Label::Word(Wait::new(wait).state());
            visits.add((wait.ts_ns, end), Layer::Sched, state, WAIT);
            if flags & WAIT_PREEMPTED != 0 {
                continue;
            }
            let woken = if flags & WAIT_WOKEN != 0 {
                wait.wake_ns.clamp(wait.ts_ns, end)
            } else {
                end
            };
            self.blocked.push((wait.ts_ns, woken));
            let run_queue = Label::Word("run queue");
            visits.add((woken, end), Layer::Sched, run_queue, RUN_QUEUE);
        }
        if whole.kind == Kind::Operation {
            self.blocked.clear();
            self.blocked.push((whole.begin, whole.end));
        }
        self.blocked.sort_unstable();
        self.add_devices(&parts.blocks, devices);
        for (i, (_, irq)) in parts.irqs.iter().enumerate() {
            let at = (irq.ts_ns, irq.ts_ns.saturating_add(irq.dur_ns));
            self.visits.add(at, Layer::Irq, Label::Irq(i), IRQ);
        }
        self.visits.share_out(&self.blocked);
        &self.visits.slices
    }

    /// Adds the time in queues and in devices, as far as the request waits for it. What
    /// overlaps on one device is one visit.
    fn add_devices(&mut self, blocks: &[Block], names: &[Arc<str>]) {
        let Self {
            visits,
            blocked,
            devices,
            times,
        } = self;
        devices.clear();
        for block in blocks {
            if !devices.contains(&block.device) {
                devices.push(block.device);
            }
        }
        devices.sort_by_key(|device| names.get(usize::from(*device)));
        for device in devices.iter() {
            let of_device = || blocks.iter().filter(|block| block.device == *device);
            let name = Label::Device(*device);
            times.clear();
            times.extend(
                of_device()
                    .filter(|b| b.queued_at_ns > 0 && b.issued_at_ns >= b.queued_at_ns)
                    .map(|b| (b.queued_at_ns, b.issued_at_ns)),
            );
            union(times);
            common(times, blocked, |at| {
                visits.add(at, Layer::Block, name, QUEUE)
            });
            times.clear();
            times.extend(
                of_device()
                    .filter(|b| b.issued_at_ns > 0)
                    .map(|b| (b.issued_at_ns, b.completed_at_ns)),
            );
            union(times);
            common(times, blocked, |at| {
                visits.add(at, Layer::Device, name, DEVICE)
            });
        }
    }
}

/// The same time without overlaps, in order.
fn union(intervals: &mut Vec<Interval>) {
    intervals.sort_unstable();
    intervals.dedup_by(|next, last| {
        let joins = next.0 <= last.1;
        if joins {
            last.1 = last.1.max(next.1);
        }
        joins
    });
}

/// Gives `each` the time in both, each in order and without overlaps.
fn common(a: &[Interval], b: &[Interval], mut each: impl FnMut(Interval)) {
    let (mut i, mut j) = (0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        let (begin, end) = (x.0.max(y.0), x.1.min(y.1));
        if begin < end {
            each((begin, end));
        }
        if x.1 < y.1 {
            i += 1;
        } else {
            j += 1;
        }
    }
}

#[derive(Debug, Default)]
struct Visits {
    begin: u64,
    end: u64,
    slices: Vec<Slice>,
    edges: Vec<u64>,
    /// Places of the visits that hold.
    active: Vec<usize>,
}

impl Visits {
    fn begin(&mut self, begin: u64, end: u64) {
        (self.begin, self.end) = (begin, end);
        self.slices.clear();
    }

    /// Adds the part of a visit inside the request; empty visits only for the request itself.
    fn add(&mut self, at: Interval, layer: Layer, label: Label, rank: u8) {
        let (begin, end) = (at.0.max(self.begin), at.1.min(self.end));
        if begin < end || rank == WHOLE {
            self.slices.push(Slice {
                layer,
                label,
                begin,
                end: end.max(begin),
                own_ns: 0,
                depth: 0,
                rank,
                aside: false,
            });
        }
    }

    /// Adds a part of a file system, or a request to a server.
    fn add_span(&mut self, span: &SpanRecord, of: Kind, functions: &[Function]) {
        let (begin, end) = (span.ts_ns, span.ts_ns.saturating_add(span.dur_ns));
        if let Some(at) = functions.iter().position(|f| f.span == span.span)
            && let Some(function) = functions.get(at)
        {
            return self.add((begin, end), function.layer, Label::Function(at), SPAN);
        }
        let (layer, name) = names::span(span);
        let added = self.slices.len();
        match layer {
            Layer::Fuse => self.add((begin, end), layer, Label::Word(name), SERVER),
            Layer::Nfs => {
                let sent = span.sent_ns.clamp(begin, end);
                self.add((begin, sent), layer, Label::Word("backlog"), QUEUE);
                self.add((sent, end), layer, Label::Word(name), SERVER);
            }
            _ => self.add((begin, end), layer, Label::Word(name), SPAN),
        }
        let aside = u32::from(span.span) == SPAN_NFS_ASYNC && of != Kind::Operation;
        for slice in self.slices.iter_mut().skip(added) {
            slice.aside = aside;
        }
    }

    /// Gives every piece of time to the innermost visit. `blocked`, in order: when the request
    /// waits for something that is not its own doing.
    fn share_out(&mut self, blocked: &[Interval]) {
        let Self {
            slices,
            edges,
            active,
            ..
        } = self;
        slices.sort_by_key(|s| (s.begin, s.rank));
        edges.clear();
        edges.extend(slices.iter().flat_map(|s| [s.begin, s.end]));
        edges.sort_unstable();
        edges.dedup();
        active.clear();
        let mut next = 0;
        let mut blocked = blocked.iter().peekable();
        for (i, edge) in edges.iter().enumerate() {
            active.retain(|at| slices.get(*at).is_some_and(|s| s.end > *edge));
            while let Some(slice) = slices.get(next).filter(|s| s.begin == *edge) {
                let depth = active
                    .iter()
                    .filter_map(|at| slices.get(*at))
                    .filter(|s| {
                        // Those lie in one another.
                        s.rank < slice.rank
                            || matches!(slice.rank, IRQ | SPAN)
                            || s.is_at_server() && !slice.is_at_server()
                    })
                    .map(|s| s.depth + 1)
                    .max();
                let lasts = slice.end > *edge;
                if let Some(slice) = slices.get_mut(next) {
                    slice.depth = depth.unwrap_or(0);
                }
                if lasts {
                    active.push(next);
                }
                next += 1;
            }
            let Some(until) = edges.get(i + 1) else {
                break;
            };
            // Each of them begins and ends at an edge.
            while blocked.next_if(|(_, end)| end <= edge).is_some() {}
            let waits = blocked.peek().is_some_and(|(begin, _)| begin <= edge);
            let innermost = active
                .iter()
                .copied()
                .filter(|at| waits || slices.get(*at).is_some_and(|s| !s.aside))
                .max_by_key(|at| slices.get(*at).map(|s| (s.rank, s.begin)));
            if let Some(slice) = innermost.and_then(|at| slices.get_mut(at)) {
                slice.own_ns += until - edge;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_model::abi::{
        IRQ_SOFT, RECORD_IRQ, RECORD_WAIT, SPAN_DIRECT, SPAN_FUNCTION, SPAN_FUSE, SPAN_NFS, WAIT_IO,
    };

    fn whole(kind: Kind) -> Whole {
        Whole {
            kind,
            layer: Layer::Syscall,
            name: "pread64",
            begin: 1000,
            end: 2000,
        }
    }

    fn wait(out: u64, woken: u64, back: u64) -> WaitRecord {
        let mut record = WaitRecord::parse(&[0; WaitRecord::SIZE]).unwrap();
        record.kind = RECORD_WAIT as u8;
        record.flags = (WAIT_IO | WAIT_WOKEN) as u8;
        (record.ts_ns, record.dur_ns, record.wake_ns) = (out, back - out, woken);
        record
    }

    fn irq(begin: u64, end: u64) -> IrqRecord {
        let mut record = IrqRecord::parse(&[0; IrqRecord::SIZE]).unwrap();
        (record.kind, record.kind) = (RECORD_IRQ as u8, RECORD_IRQ as u8);
        (record.ts_ns, record.dur_ns) = (begin, end - begin);
        (record.number, record.source) = (4, IRQ_SOFT as u8);
        record
    }

    fn span(kind: u32, begin: u64, sent: u64, end: u64) -> SpanRecord {
        let mut record = SpanRecord::parse(&[0; SpanRecord::SIZE]).unwrap();
        record.span = kind as u8;
        (record.ts_ns, record.sent_ns, record.dur_ns) = (begin, sent, end - begin);
        record.operation = 15;
        record.name[..4].copy_from_slice(b"READ");
        record
    }

    fn block(queued: u64, issued: u64, completed: u64) -> Block {
        Block {
            ts_ns: queued,
            device: 0,
            queued_at_ns: queued,
            issued_at_ns: issued,
            completed_at_ns: completed,
        }
    }

    fn slices(whole: &Whole, parts: &Parts) -> Vec<Slice> {
        let devices = [Arc::from("sda")];
        let functions = [Function {
            span: SPAN_FUNCTION as u8 + 2,
            layer: Layer::Block,
            name: "blk_mq_submit_bio".into(),
        }];
        let mut slicer = Slicer::default();
        slicer.slices(whole, parts, &devices, &functions).to_vec()
    }

    fn own(slices: &[Slice]) -> Vec<(&'static str, &'static str, u64, u64, i32)> {
        let mut rows: Vec<_> = slices
            .iter()
            .map(|s| {
                let name = match s.label {
                    Label::Word(word) => word,
                    Label::Device(_) => "sda",
                    Label::Irq(_) => "softirq:BLOCK",
                    Label::Function(0) => "blk_mq_submit_bio",
                    Label::Function(_) => "?",
                };
                (s.layer.name(), name, s.end - s.begin, s.own_ns, s.depth)
            })
            .collect();
        rows.sort_unstable();
        rows
    }

    fn sum(slices: &[Slice]) -> u64 {
        slices.iter().map(|s| s.own_ns).sum()
    }

    #[test]
    fn a_wait_without_an_end_lasts_until_it_was_woken() {
        let unseen = |woken| {
            let mut record = wait(1200, woken, 5000);
            record.flags |= WAIT_UNSEEN as u8;
            if woken == 0 {
                record.flags &= !(WAIT_WOKEN as u8);
            }
            let parts = Parts {
                waits: vec![(0, record)],
                ..Parts::default()
            };
            let slices = slices(&whole(Kind::Call), &parts);
            assert_eq!(sum(&slices), 1000);
            let waits = slices.iter().filter(|slice| slice.layer == Layer::Sched);
            waits.map(|slice| slice.own_ns).sum::<u64>()
        };
        assert_eq!(unseen(1800), 600);
        assert_eq!(unseen(0), 0);
    }

    #[test]
    fn a_function_that_the_recording_names_is_of_its_layer() {
        let parts = Parts {
            spans: vec![
                span(SPAN_DIRECT, 1050, 0, 1800),
                span(SPAN_FUNCTION + 2, 1100, 0, 1400),
                span(SPAN_FUNCTION, 1500, 0, 1600),
            ],
            ..Parts::default()
        };
        let slices = slices(&whole(Kind::Call), &parts);
        assert_eq!(
            own(&slices),
            [
                ("block", "blk_mq_submit_bio", 300, 300, 2),
                ("fs", "iomap_dio_rw", 750, 350, 1),
                ("fs", "other", 100, 100, 2),
                ("syscall", "pread64", 1000, 250, 0),
            ]
        );
    }

    #[test]
    fn a_read_from_a_device() {
        let parts = Parts {
            waits: vec![(0, wait(1200, 1800, 1850))],
            irqs: vec![(0, irq(1100, 1130)), (0, irq(1110, 1120))],
            blocks: vec![block(1050, 1300, 1790)],
            ..Parts::default()
        };
        let slices = slices(&whole(Kind::Call), &parts);
        assert_eq!(sum(&slices), 1000);
        assert_eq!(
            own(&slices),
            [
                ("block", "sda", 100, 100, 2),
                ("device", "sda", 490, 490, 2),
                ("irq", "softirq:BLOCK", 10, 10, 2),
                ("irq", "softirq:BLOCK", 30, 20, 1),
                ("sched", "io", 650, 10, 1),
                ("sched", "run queue", 50, 50, 2),
                ("syscall", "pread64", 1000, 320, 0),
            ]
        );
    }

    #[test]
    fn what_lies_beyond_the_request_is_cut_off() {
        let parts = Parts {
            waits: vec![(0, wait(900, 2100, 2200))],
            blocks: vec![block(10, 20, 5000), block(30, 40, 1500)],
            ..Parts::default()
        };
        let slices = slices(&whole(Kind::Call), &parts);
        assert_eq!(sum(&slices), 1000);
        assert!(slices.iter().all(|s| s.begin >= 1000 && s.end <= 2000));
    }

    #[test]
    fn sleep_until_a_server_answers_is_the_servers() {
        let parts = Parts {
            waits: vec![(0, wait(1200, 1700, 1750))],
            spans: vec![
                span(SPAN_DIRECT, 1050, 0, 1800),
                span(SPAN_FUSE, 1100, 0, 1700),
            ],
            ..Parts::default()
        };
        assert_eq!(
            own(&slices(&whole(Kind::Call), &parts)),
            [
                ("fs", "iomap_dio_rw", 750, 100, 1),
                ("fuse", "FUSE_READ", 600, 600, 2),
                ("sched", "io", 550, 0, 3),
                ("sched", "run queue", 50, 50, 4),
                ("syscall", "pread64", 1000, 250, 0),
            ]
        );
    }

    #[test]
    fn a_request_to_nfs_waits_and_is_on_its_way() {
        let parts = |kind| Parts {
            waits: vec![(0, wait(1200, 1700, 1750))],
            spans: vec![span(kind, 1100, 1300, 1900)],
            ..Parts::default()
        };
        assert_eq!(
            own(&slices(&whole(Kind::Call), &parts(SPAN_NFS))),
            [
                ("nfs", "READ", 600, 600, 3),
                ("nfs", "backlog", 200, 200, 1),
                ("sched", "io", 550, 0, 2),
                ("sched", "run queue", 50, 0, 4),
                ("syscall", "pread64", 1000, 200, 0),
            ]
        );
        // While the call works on, one that is on its way besides takes no time from it.
        assert_eq!(
            own(&slices(&whole(Kind::Call), &parts(SPAN_NFS_ASYNC))),
            [
                ("nfs", "READ", 600, 400, 3),
                ("nfs", "backlog", 200, 100, 1),
                ("sched", "io", 550, 0, 2),
                ("sched", "run queue", 50, 50, 4),
                ("syscall", "pread64", 1000, 450, 0),
            ]
        );
    }

    #[test]
    fn an_operation_needs_no_wait() {
        let parts = Parts {
            blocks: vec![block(1100, 1200, 1700)],
            ..Parts::default()
        };
        let of_operation = slices(&whole(Kind::Operation), &parts);
        assert_eq!(own(&of_operation)[1], ("device", "sda", 500, 500, 1));
        assert_eq!(sum(&of_operation), 1000);
        // A call that did not wait for it was not slowed down by it.
        let of_call = slices(&whole(Kind::Call), &parts);
        assert_eq!(own(&of_call), [("syscall", "pread64", 1000, 1000, 0)]);
        assert!(!Parts::default().has_times());
    }

    #[test]
    fn any_intervals_add_up() {
        let mut seed = 1u64;
        let mut next = |below: u64| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1);
            (seed >> 33) % below
        };
        for _ in 0..500 {
            let mut parts = Parts::default();
            for _ in 0..next(20) {
                let (a, b, c) = (900 + next(1200), next(300), next(300));
                match next(5) {
                    0 => parts.waits.push((0, wait(a, a + b, a + b + c))),
                    1 => parts.irqs.push((0, irq(a, a + b))),
                    2 => parts.spans.push(span(SPAN_FUSE, a, 0, a + b)),
                    3 => (parts.spans).push(span(SPAN_NFS_ASYNC, a, a + b, a + b + c)),
                    _ => parts.blocks.push(block(a, a + b, a + b + c)),
                }
            }
            for kind in [Kind::Call, Kind::Operation, Kind::Fault] {
                let slices = slices(&whole(kind), &parts);
                assert_eq!(sum(&slices), 1000, "{parts:?}");
                assert!(slices.iter().all(|s| s.own_ns <= s.end - s.begin));
            }
        }
    }
}
