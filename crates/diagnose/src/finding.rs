//! Findings of rules.

use std::borrow::Cow;

use fathom_model::units;
use serde::{Deserialize, Serialize};

use crate::call::{Call, FileId};
use crate::scope::Scope;
use crate::site::Site;
use crate::text::Text;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    Low,
    /// Worth fixing.
    Medium,
    /// Data can be lost or wrong, or a tenth of the time or more goes into it.
    High,
}

impl Severity {
    pub fn name(self) -> &'static str {
        match self {
            Severity::Low => "low",
            Severity::Medium => "medium",
            Severity::High => "high",
        }
    }

    /// How bad a loss of time is.
    pub(crate) fn by_share(cost_ns: i64, span_ns: i64) -> Self {
        match cost_ns as f64 / span_ns.max(1) as f64 {
            s if s >= HIGH_SHARE => Severity::High,
            s if s >= MEDIUM_SHARE => Severity::Medium,
            _ => Severity::Low,
        }
    }
}

/// Loss from which on a finding is high, and medium, as shares of the recording.
const HIGH_SHARE: f64 = 0.10;
const MEDIUM_SHARE: f64 = 0.03;

/// Which of the two kinds of rule a finding comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Group {
    /// Data may be lost, wrong or not read.
    Correctness,
    /// It costs time.
    Performance,
}

/// How sure a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// Every call that matters was seen.
    High,
    /// Calls were lost or left out by filters, or a part is inferred: `caveats`
    /// say which.
    Low,
}

impl Confidence {
    /// The severity of two findings together.
    pub(crate) fn lower(self, other: Self) -> Self {
        match (self, other) {
            (Confidence::High, Confidence::High) => Confidence::High,
            _ => Confidence::Low,
        }
    }
}

/// The subject of a finding.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Subject {
    /// Process.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "types", ts(optional))]
    pub pid: Option<i32>,
    /// Thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "types", ts(optional))]
    pub tid: Option<i32>,
    /// Name of the thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "types", ts(optional))]
    pub comm: Option<String>,
    /// `files.file_id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "types", ts(optional))]
    pub file_id: Option<i64>,
    /// Path of a file or directory, as it is: not escaped.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "types", ts(optional))]
    pub path: Option<String>,
}

impl Subject {
    /// The process and thread of a call.
    pub fn task(call: &Call) -> Self {
        Self {
            pid: Some(call.pid),
            tid: Some(call.tid),
            comm: Some(call.comm.to_owned()),
            ..Self::default()
        }
    }

    pub fn process(pid: i32, comm: &str) -> Self {
        Self {
            pid: Some(pid),
            comm: (!comm.is_empty()).then(|| comm.to_owned()),
            ..Self::default()
        }
    }

    pub fn with_file(mut self, file: FileId, path: &str) -> Self {
        self.file_id = Some(file.0);
        self.path = Some(path.to_owned());
        self
    }

    pub fn with_path(mut self, path: &str) -> Self {
        self.path = Some(path.to_owned());
        self
    }

    /// In one line, for people: `redis-server (12) /var/lib/redis/appendonly.aof`.
    pub fn text(&self) -> String {
        let mut parts = Vec::new();
        match (&self.comm, self.pid) {
            (Some(comm), Some(pid)) => parts.push(format!("{comm} ({pid})")),
            (Some(comm), None) => parts.push(comm.clone()),
            (None, Some(pid)) => parts.push(format!("process {pid}")),
            (None, None) => {}
        }
        if let Some(tid) = self.tid.filter(|tid| Some(*tid) != self.pid) {
            parts.push(format!("thread {tid}"));
        }
        parts.extend(self.path.clone());
        parts.join(" ")
    }
}

/// A number that a finding rests on.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Evidence {
    /// The measured quantity, with its unit: `calls`, `median_ns`.
    pub name: Cow<'static, str>,
    /// The number.
    pub value: f64,
}

impl Evidence {
    /// The number as people read it: the end of its name is its unit.
    pub fn number(&self) -> String {
        let name = &*self.name;
        let whole = self.value as i64;
        if name.ends_with("_ns") {
            units::duration(whole)
        } else if name.ends_with("bytes") || name.starts_with("bytes") {
            units::bytes(whole)
        } else if name.starts_with("share") {
            units::percent(self.value)
        } else if self.value.fract() == 0.0 || self.value.abs() >= 100.0 {
            units::count(self.value.round() as i64)
        } else {
            format!("{:.2}", self.value)
        }
    }
}

/// A call that shows what was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Example {
    /// The request.
    pub rid: i64,
    /// When it began, nanoseconds.
    pub ts_ns: i64,
    /// How long it took, nanoseconds.
    pub dur_ns: i64,
    /// Thread.
    pub tid: i32,
    /// Name of the call.
    #[cfg_attr(feature = "types", ts(as = "String"))]
    pub syscall: Text,
    /// Path.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "types", ts(optional, as = "Option<String>"))]
    pub path: Option<Text>,
    /// Byte in the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "types", ts(optional))]
    pub offset: Option<i64>,
    /// The return value.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "types", ts(optional))]
    pub ret: Option<i64>,
}

impl Example {
    pub fn of(call: &Call) -> Self {
        Self {
            rid: call.rid,
            ts_ns: call.ts_ns,
            dur_ns: call.dur_ns,
            tid: call.tid,
            syscall: call.syscall_text(),
            path: call.path.map(|_| call.path_text()),
            offset: call.offset,
            ret: call.ret,
        }
    }
}

/// Examples that a finding shows at most.
pub(crate) const EXAMPLES: usize = 3;

/// Example calls: the most expensive ones, the longest first. Findings about an order of events
/// have the first calls instead, so that a reader can follow the order.
#[derive(Clone, Debug, Default)]
pub struct Examples(Vec<Example>);

impl Examples {
    /// Adds a call if it took longer than one of the kept examples.
    pub fn add(&mut self, call: &Call) {
        if self.has_room_for(call.dur_ns) {
            self.insert(Example::of(call));
        }
    }

    /// The same with what is no call, and took so long.
    pub fn add_with(&mut self, dur_ns: i64, example: impl FnOnce() -> Example) {
        if self.has_room_for(dur_ns) {
            self.insert(example());
        }
    }

    /// Adds all of another one's.
    pub fn add_all(&mut self, others: &Examples) {
        for example in &others.0 {
            self.add_with(example.dur_ns, || example.clone());
        }
    }

    fn has_room_for(&self, dur_ns: i64) -> bool {
        self.0.len() < EXAMPLES || self.0.last().is_some_and(|kept| kept.dur_ns < dur_ns)
    }

    fn insert(&mut self, example: Example) {
        let shorter = |kept: &Example| kept.dur_ns < example.dur_ns;
        let place = self.0.iter().position(shorter).unwrap_or(self.0.len());
        self.0.insert(place, example);
        self.0.truncate(EXAMPLES);
    }

    /// Adds a call after the kept examples, if there is room.
    pub fn add_first(&mut self, call: &Call) {
        if self.0.len() < EXAMPLES {
            self.0.push(Example::of(call));
        }
    }

    /// Adds an earlier call after the kept examples, if there is room.
    pub fn keep(&mut self, example: Example) {
        if self.0.len() < EXAMPLES {
            self.0.push(example);
        }
    }

    /// The kept examples.
    pub fn list(&self) -> Vec<Example> {
        self.0.clone()
    }
}

/// Another finding that is about the same requests, and not shown by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Also {
    /// Id of its rule.
    pub rule: &'static str,
    /// Its subject.
    pub subject: Subject,
}

/// One finding: a rule about a subject.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Finding {
    /// Id of the rule.
    pub rule: &'static str,
    /// Former ids of the rule.
    pub aliases: Vec<&'static str>,
    /// Correctness or performance.
    pub group: Group,
    /// How bad.
    pub severity: Severity,
    /// How sure.
    pub confidence: Confidence,
    /// Estimated time that the run would have saved without it, nanoseconds, minus the time that
    /// other findings claim; `None` for findings that are not about time.
    pub cost_ns: Option<i64>,
    /// How `cost_ns` was estimated.
    pub cost_how: String,
    /// The finding in one sentence with its numbers. Contains paths and names unchanged: not
    /// escaped.
    pub title: String,
    /// Its subject.
    pub subject: Subject,
    /// The numbers.
    pub evidence: Vec<Evidence>,
    /// Calls that show it.
    pub examples: Vec<Example>,
    /// Where in the program the examples were made; empty without `--stacks`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "types", ts(optional, as = "Option<Vec<Site>>"))]
    pub code: Vec<Site>,
    /// SQL that lists all such calls.
    pub query: String,
    /// The fix, and when not to apply it.
    pub advice: String,
    /// Page of the rule, relative to the documentation; of a rule that a user wrote, its file.
    pub page: String,
    /// Reasons for low confidence.
    pub caveats: Vec<String>,
    /// Findings of other rules, or of other subjects, about the same time.
    pub also: Vec<Also>,
    /// Requests whose time it claims.
    #[serde(skip)]
    #[cfg_attr(feature = "types", ts(skip))]
    pub(crate) scopes: Vec<Scope>,
}

/// A rule that could not look, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS, schemars::JsonSchema))]
pub struct NotObservable {
    /// Id of the rule.
    pub rule: &'static str,
    /// The missing data.
    pub reason: String,
}

#[cfg(test)]
mod tests {
    use super::Evidence;

    #[test]
    fn evidence_is_no_more_precise_than_it_says_something() {
        for (name, value, text) in [
            ("ratio", 3549.871, "3,550"),
            ("ratio", 99.876, "99.88"),
            ("reads", 1807.0, "1,807"),
            ("median_ns", 1500.0, "1.50 µs"),
        ] {
            let name = name.into();
            assert_eq!(Evidence { name, value }.number(), text);
        }
    }
}
