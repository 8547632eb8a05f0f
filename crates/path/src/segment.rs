//! Segments of a path, and their sums.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::Name;

/// The state of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "types", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It ran on a CPU.
    Running,
    /// It could have run, and waited for a CPU.
    Runnable,
    /// It waited for something else.
    Blocked,
    /// It had not started, or had ended.
    Absent,
    /// The rows do not say.
    Unknown,
}

impl State {
    /// Its name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            State::Running => "running",
            State::Runnable => "runnable",
            State::Blocked => "blocked",
            State::Absent => "absent",
            State::Unknown => "unknown",
        }
    }
}

/// Kinds of things that end waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "types", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CulpritKind {
    /// A thread that the path does not follow: not recorded, on the path already, or too far.
    Thread,
    /// A device, by a block request.
    BlockRequest,
    /// A timer: the time that the program, or the kernel, had set.
    Timer,
    /// Data from the network.
    Network,
    /// A signal.
    Signal,
    /// Another interrupt.
    Interrupt,
    /// Not recorded.
    Unknown,
}

impl CulpritKind {
    /// Its name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            CulpritKind::Thread => "thread",
            CulpritKind::BlockRequest => "block_request",
            CulpritKind::Timer => "timer",
            CulpritKind::Network => "network",
            CulpritKind::Signal => "signal",
            CulpritKind::Interrupt => "interrupt",
            CulpritKind::Unknown => "unknown",
        }
    }
}

/// The cause of a wait.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "types", derive(schemars::JsonSchema))]
pub struct Culprit {
    /// Its kind.
    pub kind: CulpritKind,
    /// Name of the thread, device, or interrupt; null if not known.
    pub name: Option<Name>,
    /// Thread; null for others.
    pub tid: Option<i64>,
}

/// Where a block request was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "types", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum BlockPart {
    /// Submitted, but not issued to the device.
    Queue,
    /// In the device.
    Device,
    /// Completed: until the waiting thread was woken.
    Completion,
}

impl BlockPart {
    /// Its name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            BlockPart::Queue => "queue",
            BlockPart::Device => "device",
            BlockPart::Completion => "completion",
        }
    }
}

/// The block request that ended a wait.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "types", derive(schemars::JsonSchema))]
pub struct Request {
    /// `ts_ns` of its row in table block.
    pub ts_ns: i64,
    /// Name of the device; null if its row was lost.
    pub device: Option<Name>,
    /// read, write, flush, ...
    pub op: Option<Name>,
    /// Bytes moved.
    pub bytes: i64,
    /// Its file.
    pub path: Option<Name>,
    /// Where it was during the segment; null if its times were not seen.
    pub part: Option<BlockPart>,
}

/// The wait that made the path go on with another thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "types", derive(schemars::JsonSchema))]
pub struct Because {
    /// The thread that waited.
    pub tid: i64,
    /// Column `reason` of the wait.
    pub reason: Option<Name>,
    /// The call in which it waited.
    pub syscall: Option<Name>,
    /// The request in which it waited.
    pub rid: Option<i64>,
}

/// A piece of the path.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "types", derive(schemars::JsonSchema))]
pub struct Segment {
    /// When it begins, CLOCK_MONOTONIC nanoseconds.
    pub ts_ns: i64,
    /// Its duration, nanoseconds.
    pub dur_ns: i64,
    /// Its share of the interval, 0 to 1.
    pub share: f64,
    /// 0: the thread of the path itself; otherwise the number of waits that lead to this thread.
    pub depth: usize,
    /// The session of a set that the thread is in; absent outside of a set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<Name>,
    /// The thread.
    pub tid: i64,
    /// Its name; null if not known.
    pub comm: Option<Name>,
    /// Its process; null if not known.
    pub pid: Option<i64>,
    /// Name of its process; null if not known.
    pub process: Option<Name>,
    /// Its state.
    pub state: State,
    /// Why it was off the CPU, as in table waits; null while it runs. Of an unknown or absent state
    /// the reason for that: unseen_return, before_request, unseen_start, unseen_end,
    /// outside_calls, not_recorded, before_start, or after_end.
    pub reason: Option<Name>,
    /// The system call that it was in; null outside of calls that are recorded or waited in.
    pub syscall: Option<Name>,
    /// The request that it was in; null outside of recorded requests.
    pub rid: Option<i64>,
    /// File of the request.
    pub path: Option<Name>,
    /// The cause of its wait; null unless it was blocked.
    pub culprit: Option<Culprit>,
    /// The block request that it waited for; null if it waited for none.
    pub block: Option<Request>,
    /// The wait of another thread in whose course this segment matters; null at depth 0.
    pub because: Option<Because>,
}

impl Segment {
    /// When it ends.
    pub fn until_ns(&self) -> i64 {
        self.ts_ns.saturating_add(self.dur_ns)
    }

    /// The cause for which the thread of the path was held up: the cause of this wait, or this
    /// thread if it is another one.
    pub fn held_up_by(&self) -> Option<Culprit> {
        match &self.culprit {
            Some(culprit) if culprit.kind != CulpritKind::Unknown => Some(culprit.clone()),
            _ if self.depth > 0 => Some(Culprit {
                kind: CulpritKind::Thread,
                name: match (&self.host, &self.comm) {
                    (Some(host), Some(comm)) => Some(Name::from(&*format!("{host}: {comm}"))),
                    (_, comm) => comm.clone(),
                },
                tid: Some(self.tid),
            }),
            culprit => culprit.clone(),
        }
    }
}

/// The time of a state, reason and culprit on a path.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "types", derive(schemars::JsonSchema))]
pub struct Total {
    /// As in the segments.
    pub state: State,
    /// As in the segments.
    pub reason: Option<Name>,
    /// As in the segments; of a thread that the path leads to, this thread.
    pub culprit: Option<Culprit>,
    /// Where the block request was; null without one.
    pub part: Option<BlockPart>,
    /// Number of segments.
    pub segments: usize,
    /// Their time, nanoseconds.
    pub dur_ns: i64,
    /// Their share of the interval, 0 to 1.
    pub share: f64,
}

/// The sums of `segments`, most time first. They add up to the interval.
pub fn totals(segments: &[Segment]) -> Vec<Total> {
    type Key = (State, Option<Name>, Option<Culprit>, Option<BlockPart>);
    let mut sums: BTreeMap<Key, (usize, i64)> = BTreeMap::new();
    let mut all_ns = 0i64;
    for segment in segments {
        let part = segment.block.as_ref().and_then(|block| block.part);
        let key = (
            segment.state,
            segment.reason.clone(),
            segment.held_up_by(),
            part,
        );
        let sum = sums.entry(key).or_default();
        *sum = (sum.0 + 1, sum.1.saturating_add(segment.dur_ns));
        all_ns = all_ns.saturating_add(segment.dur_ns);
    }
    let mut totals: Vec<Total> = sums
        .into_iter()
        .map(
            |((state, reason, culprit, part), (segments, dur_ns))| Total {
                state,
                reason,
                culprit,
                part,
                segments,
                dur_ns,
                share: dur_ns as f64 / all_ns.max(1) as f64,
            },
        )
        .collect();
    totals.sort_by_key(|total| std::cmp::Reverse(total.dur_ns));
    totals
}
