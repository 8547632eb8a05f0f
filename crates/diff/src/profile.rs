//! The figures of one session.

use fathom_model::layers::LayerSet;
use std::collections::BTreeMap;

use fathom_diagnose::{Group, Severity};

/// Pieces of time into which the calls of a name are cut to see how much their
/// durations differ within the session.
pub(crate) const BLOCKS: usize = 24;
/// Buckets of durations a power of two: one is 9 % wide.
pub(crate) const STEPS: i32 = 8;

/// The figures of one session, as far as comparisons need them.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    pub(crate) name: String,
    pub(crate) id: String,
    pub(crate) command: Vec<String>,
    pub(crate) machine: String,
    /// How long the command ran; without a command, how long was recorded.
    pub(crate) duration_ns: i64,
    pub(crate) gaps: Gaps,
    /// From the beginning of the recording to the first call.
    pub(crate) first_call_ns: Option<i64>,
    /// To the end of the last one.
    pub(crate) last_call_ns: Option<i64>,
    pub(crate) operations: Vec<Operation>,
    pub(crate) latencies: BTreeMap<String, Latency>,
    pub(crate) processes: Vec<Process>,
    pub(crate) errors: Vec<Failure>,
    pub(crate) layers: Vec<LayerVisit>,
    pub(crate) devices: Vec<Device>,
    /// `None` when the session was not diagnosed.
    pub(crate) findings: Option<Vec<FoundIn>>,
}

/// Data that a session lacks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Gaps {
    /// Calls without rows, which counts include.
    pub lost: u64,
    /// Calls in table `counters` only, which counts include.
    pub counted: u64,
    /// Calls that were dropped again, or are in no table.
    pub gone: u64,
    pub layers_lost: u64,
    pub counters_only: bool,
    pub live: bool,
    /// No command was recorded from its beginning to its end.
    pub open_ended: bool,
    /// The log that it was made of has no durations.
    pub no_durations: bool,
    /// Format of the log.
    pub imported: Option<String>,
    pub detail: String,
    /// The recorded data, by option: both sides must agree.
    pub selection: Vec<String>,
    pub filters: Vec<String>,
    /// Layers that were recorded; `None` when that is not known.
    pub layers: LayerSet,
    pub problems: usize,
}

/// Calls of a name on a file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Operation {
    pub syscall: String,
    pub class: String,
    pub path: Option<String>,
    pub calls: i64,
    pub errors: i64,
    pub asked: i64,
    pub bytes: i64,
    pub time_ns: i64,
}

/// Durations of the calls of a name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Latency {
    pub p50_ns: Option<i64>,
    pub p90_ns: Option<i64>,
    pub p99_ns: Option<i64>,
    pub max_ns: Option<i64>,
    pub blocks: Vec<Block>,
}

/// Durations in a piece of time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Block {
    pub calls: u64,
    pub sum_ns: f64,
    /// By [`STEPS`] to the power of two.
    pub hist: Vec<(i32, u64)>,
}

/// Calls of a name by processes of a name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Process {
    pub comm: String,
    /// Without a file.
    pub operation: Operation,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Failure {
    pub syscall: String,
    pub errno: String,
    pub calls: i64,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct LayerVisit {
    /// The call that it belongs to.
    pub call: Option<String>,
    pub layer: String,
    pub name: String,
    pub visits: i64,
    pub self_ns: i64,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Device {
    pub device: String,
    pub op: String,
    pub requests: i64,
    pub errors: i64,
    pub bytes: i64,
    pub time_ns: i64,
}

/// A finding.
#[derive(Clone, Debug)]
pub(crate) struct FoundIn {
    pub rule: &'static str,
    pub group: Group,
    pub severity: Severity,
    pub cost_ns: Option<i64>,
    pub comm: Option<String>,
    pub path: Option<String>,
    pub title: String,
}
