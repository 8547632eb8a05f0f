//! The numbers of one moment.

use serde::Serialize;

use crate::queues::Holdup;

/// By what is added up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "types", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Dimension {
    /// File, by its identity; shown by the path it was used by last.
    Files,
    /// Process.
    Processes,
    Threads,
    /// System call or operation.
    Calls,
    /// Where the time of requests went.
    Layers,
    /// Device that requests went to.
    Devices,
}

impl Dimension {
    /// In the order in which they are shown.
    pub const ALL: [Dimension; 6] = [
        Dimension::Files,
        Dimension::Processes,
        Dimension::Threads,
        Dimension::Calls,
        Dimension::Layers,
        Dimension::Devices,
    ];

    /// Its name on the screen and as an option.
    pub fn name(self) -> &'static str {
        match self {
            Dimension::Files => "files",
            Dimension::Processes => "processes",
            Dimension::Threads => "threads",
            Dimension::Calls => "calls",
            Dimension::Layers => "layers",
            Dimension::Devices => "devices",
        }
    }

    /// Its place in [`Dimension::ALL`].
    pub(crate) fn index(self) -> usize {
        self as usize
    }
}

/// Numbers of one line: over the interval, or since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "types", derive(schemars::JsonSchema))]
pub struct Numbers {
    /// Calls; visits of a layer; requests to a device.
    pub calls: u64,
    pub errors: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
    /// Sum of the durations, nanoseconds; of a layer without the layers below.
    pub time_ns: u64,
    /// The same, but of each call at most as much as an interval lasts: it spent the rest in earlier ones.
    pub busy_ns: u64,
    /// Median duration to the power of two above, nanoseconds.
    pub p50_ns: Option<u64>,
    /// 99th percentile in the same way.
    pub p99_ns: Option<u64>,
    pub max_ns: u64,
}

/// A line: something, and what it did.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "types", derive(schemars::JsonSchema))]
pub struct Line {
    /// Its name, safe to show.
    pub name: String,
    /// Its number: process, thread or file id.
    pub id: Option<i64>,
    /// Over the interval.
    pub now: Numbers,
    /// Since the start.
    pub total: Numbers,
}

/// Records that were seen, shown and lost, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "types", derive(schemars::JsonSchema))]
pub struct Health {
    /// Calls that the kernel side saw.
    pub seen: u64,
    /// Calls that the numbers are made of.
    pub shown: u64,
    /// Calls that found no room on their way.
    pub lost: u64,
}

/// A call that has not returned for long.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "types", derive(schemars::JsonSchema))]
pub struct Stalled {
    /// The call, its file, its thread, and for how long already; safe to show.
    pub text: String,
    /// Functions of the kernel that its thread is in, innermost first; empty if not known.
    pub stack: Vec<String>,
    /// Name of the call.
    pub call: &'static str,
    /// Its process.
    pub pid: u32,
    /// Its thread.
    pub tid: u32,
    /// For how long already, nanoseconds.
    pub elapsed_ns: u64,
}

/// The numbers of one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "types", derive(schemars::JsonSchema))]
pub struct Frame {
    /// Since the start, nanoseconds.
    pub elapsed_ns: u64,
    /// Length of the interval, nanoseconds.
    pub interval_ns: u64,
    /// Records that were seen, shown and lost.
    pub health: Health,
    /// All calls together, over the interval.
    pub now: Numbers,
    /// All calls together, since the start.
    pub total: Numbers,
    /// Calls a second in each of the latest intervals, oldest first.
    pub history: Vec<u64>,
    /// Their 99th percentile, nanoseconds; 0 where there was no call.
    pub p99_history: Vec<u64>,
    /// Calls that have not returned for long, the longest first; `None` if the kernel does not list
    /// them.
    pub stalled: Option<Vec<Stalled>>,
    /// Programs that waited for a device that served others, the longest first.
    pub holdups: Vec<Holdup>,
    /// Lines of each of [`Dimension::ALL`]; in no order.
    #[serde(serialize_with = "by_name")]
    #[cfg_attr(feature = "types", schemars(with = "LinesSchema"))]
    pub lines: [Vec<Line>; 6],
    /// Which of them left out lines that had been idle for longest, to bound memory.
    pub forgotten: [u64; 6],
}

/// Describes how lines are written: by the names of their dimensions.
#[cfg(feature = "types")]
#[derive(schemars::JsonSchema)]
#[schemars(rename = "Lines")]
#[allow(dead_code, reason = "a description")]
struct LinesSchema {
    files: Vec<Line>,
    processes: Vec<Line>,
    threads: Vec<Line>,
    calls: Vec<Line>,
    layers: Vec<Line>,
    devices: Vec<Line>,
}

fn by_name<S: serde::Serializer>(lines: &[Vec<Line>; 6], to: S) -> Result<S::Ok, S::Error> {
    to.collect_map(Dimension::ALL.iter().map(|d| d.name()).zip(lines))
}
