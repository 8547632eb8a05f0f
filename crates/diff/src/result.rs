//! The result of a comparison. Field names are the names in the JSON output.

use serde::Serialize;

/// A comparison of two sides.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Diff {
    /// All in all: `worse` when the guard fails.
    pub outcome: Outcome,
    /// The result in a sentence.
    pub headline: Headline,
    /// The sessions before.
    pub before: Side,
    /// The sessions after.
    pub after: Side,
    /// How differences were judged.
    pub method: Method,
    /// Data that cannot be compared, or only with reservations: one sentence each.
    pub notes: Vec<String>,
    /// The decision about the exit status.
    pub guard: Guard,
    /// Differences that are more than noise: data at stake first, then by their impact on
    /// time.
    pub changes: Vec<Change>,
    /// Large differences of time that are not proven, by their impact.
    pub unproven: Vec<Change>,
    /// The whole run: figures of all calls together.
    pub totals: Vec<Figure>,
    /// The same by what the calls were and worked on.
    pub tables: Tables,
    /// Findings of the diagnosis.
    pub findings: Vec<FindingChange>,
}

/// The result in a sentence.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Headline {
    /// Which side was slower, by how much, and where the difference is. Not escaped.
    pub text: String,
    /// Which way the time of the run went: `worse` is longer, `same` that it did not.
    pub direction: Verdict,
    /// Whether the difference of time is more than noise, or follows from the number of calls.
    pub proven: bool,
    /// The call on a file with the largest part of the difference of time.
    pub source: Option<String>,
    /// The layer below that call with the largest part, and what it did there.
    pub layer: Option<[String; 2]>,
    /// Mean time of the runs before and after, nanoseconds: of a command from its first call to the end
    /// of its last process, otherwise of the recording.
    pub duration_ns: [f64; 2],
    /// Difference of the time in calls per unit of work, nanoseconds.
    pub impact_ns: Option<f64>,
}

/// All in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Something got worse beyond the threshold, and it is no noise.
    Worse,
    /// Something changed: for the better, or by less than the threshold.
    Changed,
    /// Nothing but noise.
    WithinNoise,
}

/// One side of a comparison.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Side {
    /// Its sessions.
    pub sessions: Vec<SessionRef>,
}

/// A session of a side.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS, schemars::JsonSchema))]
pub struct SessionRef {
    /// As it was given.
    pub name: String,
    /// Id of the session.
    pub id: String,
    /// The recorded target.
    pub command: Vec<String>,
    /// How long the command ran, nanoseconds: from its first call to the end of its last process.
    /// Without a command, how long was recorded.
    pub duration_ns: i64,
    /// Calls, lost ones included.
    pub calls: i64,
}

/// How differences were judged.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Method {
    /// In words, a sentence each.
    pub text: Vec<String>,
    /// Whether figures are by second of the recording, as no command was recorded
    /// from its beginning to its end.
    pub per_second: bool,
    /// Chance of one false alarm in all tests of the comparison, when nothing changed.
    pub alpha: f64,
    /// Kinds of call on a file that were counted on either side.
    pub counted: usize,
    /// Of which both sides count the same.
    pub equal: usize,
    /// Whether counts of one session per side are compared directly, because nearly all of them are
    /// the same.
    pub repeats: bool,
    /// The minimum factor by which a time must differ to count with one session per side.
    pub run_to_run: f64,
}

/// The measured quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Calls, visits or requests.
    Calls,
    /// Of which failed.
    Errors,
    /// Bytes that were asked for by calls that move them.
    AskedBytes,
    /// Bytes that were moved.
    Bytes,
    /// Time in calls, layers or devices, nanoseconds.
    Time,
    /// Median duration, nanoseconds.
    P50,
    /// 90th percentile of the durations, nanoseconds.
    P90,
    /// 99th percentile of the durations, nanoseconds.
    P99,
    /// 99.9th percentile of the durations, nanoseconds.
    P999,
    /// The longest call, where a side has too few calls for a 99th percentile; never judged. Nanoseconds.
    Longest,
    /// Calls that took longer than a threshold.
    Tail,
    /// From the beginning of the recording to the first call, nanoseconds.
    FirstCall,
    /// To the end of the last call, nanoseconds.
    LastCall,
    /// Findings.
    Findings,
}

impl Metric {
    pub const GUARDS: [Metric; 6] = [
        Metric::Calls,
        Metric::Bytes,
        Metric::Time,
        Metric::P99,
        Metric::Errors,
        Metric::Findings,
    ];

    /// Name on the command line and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Metric::Calls => "calls",
            Metric::Errors => "errors",
            Metric::AskedBytes => "asked_bytes",
            Metric::Bytes => "bytes",
            Metric::Time => "time",
            Metric::P50 => "p50",
            Metric::P90 => "p90",
            Metric::P99 => "p99",
            Metric::P999 => "p999",
            Metric::Longest => "longest",
            Metric::Tail => "tail",
            Metric::FirstCall => "first_call",
            Metric::LastCall => "last_call",
            Metric::Findings => "findings",
        }
    }

    /// Name in a sentence.
    pub fn words(self) -> &'static str {
        match self {
            Metric::AskedBytes => "bytes asked for",
            Metric::P999 => "p99.9",
            Metric::Tail => "long calls",
            Metric::FirstCall => "to first call",
            Metric::LastCall => "to end of last",
            metric => metric.name(),
        }
    }

    /// Whether its figures are nanoseconds.
    pub fn is_time(self) -> bool {
        self.is_duration() && self != Metric::Tail
            || matches!(self, Metric::FirstCall | Metric::LastCall)
    }

    /// Whether it is about how long calls took.
    pub fn is_duration(self) -> bool {
        use Metric::{Longest, P50, P90, P99, P999, Tail, Time};
        matches!(self, Time | P50 | P90 | P99 | P999 | Longest | Tail)
    }

    /// The metric under which it guards: `p99` stands for the tail.
    pub(crate) fn guard(self) -> Self {
        match self {
            Metric::AskedBytes => Metric::Bytes,
            Metric::P90 | Metric::P999 | Metric::Longest | Metric::Tail => Metric::P99,
            metric => metric,
        }
    }

    /// Whether it is a number of bytes.
    pub fn is_bytes(self) -> bool {
        matches!(self, Metric::Bytes | Metric::AskedBytes)
    }
}

/// The kind of a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// There is none.
    Same,
    /// It may come from chance.
    WithinNoise,
    /// More of it than before: beyond noise.
    Worse,
    /// Less of it: beyond noise.
    Better,
    /// Beyond noise, but the total or the tail of the same calls went the other way.
    Mixed,
    /// A count that differs beyond noise, where it is not known that less of it is better: the
    /// same calls took longer, or the sessions did not have the same amount of work to do.
    Differs,
    /// A side does not have what it takes.
    NotComparable,
}

impl Verdict {
    /// Whether it is a difference beyond noise.
    pub fn is_change(self) -> bool {
        matches!(
            self,
            Verdict::Worse | Verdict::Better | Verdict::Mixed | Verdict::Differs
        )
    }
}

/// One number on both sides.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Figure {
    /// The measured quantity.
    pub metric: Metric,
    /// Mean of the sessions before; null when it was not measured.
    pub before: Option<f64>,
    /// Mean of the sessions after.
    pub after: Option<f64>,
    /// By how much it changed, as a share of what was before; null when that was 0.
    pub change: Option<f64>,
    /// The kind of the difference.
    pub verdict: Verdict,
    /// Why.
    pub why: String,
    /// How likely a difference of this size is when nothing changed, corrected for the
    /// number of tests; null when it was not tested.
    pub p: Option<f64>,
    /// Factors that enclose the true change with 95 % confidence; null if it was not tested or is
    /// unknown.
    pub interval: Option<[f64; 2]>,
    /// Effect size (Cliff's delta): from -1 (all sessions after have less than all before) to 1
    /// (all have more); null with one session per side.
    pub effect: Option<f64>,
    /// Of metric `tail` the threshold, nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "types", ts(optional))]
    pub threshold_ns: Option<f64>,
    /// The sessions' figures.
    pub samples: [Vec<f64>; 2],
}

impl Figure {
    /// Whether it is known if the difference is more than noise.
    pub fn is_judged(&self) -> bool {
        is_judged(self.verdict, &self.why)
    }
}

/// Whether it is known if a difference with this verdict is more than noise.
fn is_judged(verdict: Verdict, why: &str) -> bool {
    verdict != Verdict::WithinNoise || !why.starts_with(NOT_JUDGED)
}

/// Beginning of the reasons why it is not known whether a difference is more than noise.
const NOT_JUDGED: &str = "not judged";

/// Where a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// On both sides.
    Both,
    /// After only.
    New,
    /// Before only.
    Gone,
}

/// A call, a file, a process, ... and its figures.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Row {
    /// Its name; of what is numbered the pattern. Not escaped.
    pub name: String,
    /// Further detail: the file of an operation, the class of a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "types", ts(optional))]
    pub on: Option<String>,
    /// Names that the pattern stands for, before and after; null for a single name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "types", ts(optional))]
    pub names: Option<[usize; 2]>,
    /// On which sides it is.
    pub status: Status,
    /// Its figures.
    pub figures: Vec<Figure>,
}

impl Row {
    pub fn figure(&self, metric: Metric) -> Option<&Figure> {
        self.figures.iter().find(|f| f.metric == metric)
    }

    /// Whether something about it differs by more than noise.
    pub fn changed(&self) -> bool {
        self.figures.iter().any(|f| f.verdict.is_change())
    }

    /// Whether it has no such difference as far as is known.
    pub fn is_open(&self) -> bool {
        !self.changed() && self.figures.iter().any(|f| !f.is_judged())
    }
}

/// The same by what the calls were and worked on; rows by time, or calls.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Tables {
    /// By name of the call.
    pub syscalls: Vec<Row>,
    /// By class of calls.
    pub classes: Vec<Row>,
    /// By file, as far as files are known.
    pub files: Vec<Row>,
    /// By call on a file: `name` is the call, `on` the file.
    pub operations: Vec<Row>,
    /// By name of the process.
    pub processes: Vec<Row>,
    /// By layer (`on`) and what it did there.
    pub layers: Vec<Row>,
    /// By device (`on`) and kind of request.
    pub devices: Vec<Row>,
    /// By call and error (`on`).
    pub errors: Vec<Row>,
}

impl Tables {
    pub(crate) fn all_mut(&mut self) -> [&mut Vec<Row>; 8] {
        [
            &mut self.syscalls,
            &mut self.classes,
            &mut self.files,
            &mut self.operations,
            &mut self.processes,
            &mut self.layers,
            &mut self.devices,
            &mut self.errors,
        ]
    }
}

/// A difference beyond noise.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Change {
    /// Better or worse.
    pub verdict: Verdict,
    /// The measured quantity.
    pub metric: Metric,
    /// The subject: `fsync on /data/log`. Not escaped.
    pub subject: String,
    /// Table and row: `operations`, `fsync`, `/data/log`.
    pub table: &'static str,
    /// Before.
    pub before: Option<f64>,
    /// After.
    pub after: Option<f64>,
    /// By how much, as a share of what was before; null when that was 0.
    pub change: Option<f64>,
    /// Part of the whole (all calls, all bytes, all time) that the difference is.
    pub weight: f64,
    /// Why it is more than noise.
    pub why: String,
    /// Whether it is beyond the threshold of the guard.
    pub fails: bool,
    /// Difference of the time of its calls per unit of work (a run, a second of recording,
    /// or where the load ran for a fixed time as many calls as before), nanoseconds; null
    /// when times were not measured.
    pub impact_ns: Option<f64>,
    /// Which way the durations of its calls moved: `median 12 % shorter, p99 29 times as long`.
    pub moves: Vec<String>,
    /// The file on which most of the difference is, of a change of durations. Not escaped.
    pub mostly_on: Option<String>,
    /// Too small a part of the whole to matter.
    pub minor: bool,
}

/// A finding on both sides.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS, schemars::JsonSchema))]
pub struct FindingChange {
    /// Id of the rule.
    pub rule: String,
    /// The subject, without process numbers. Not escaped.
    pub subject: String,
    /// correctness or performance.
    pub group: fathom_diagnose::Group,
    /// On which sides it is.
    pub status: Status,
    /// Severity, before and after.
    pub severity: [Option<fathom_diagnose::Severity>; 2],
    /// Cost in time, nanoseconds: mean of the sessions that have it.
    pub cost_ns: [Option<f64>; 2],
    /// Sessions that have it, before and after.
    pub sessions: [usize; 2],
    /// The sentence of one of them, of after where there is one. Not escaped.
    pub title: String,
    /// The kind of the difference.
    pub verdict: Verdict,
    /// Why.
    pub why: String,
}

impl FindingChange {
    /// Whether it is known if the difference is more than noise.
    pub fn is_judged(&self) -> bool {
        is_judged(self.verdict, &self.why)
    }
}

/// The decision about the exit status.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Guard {
    /// The guarded metrics.
    pub metrics: Vec<Metric>,
    /// How many percent worse is too much.
    pub fail_above_percent: f64,
    /// Whether it was too much.
    pub failed: bool,
    /// How many differences were too much; `changes` has them.
    pub failures: usize,
}
