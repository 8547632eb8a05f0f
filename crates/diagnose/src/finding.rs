//! What a rule has found.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::call::{Call, FileId};
use crate::code::Site;
use crate::text::Text;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing.
    Low,
    /// Worth mending.
    Medium,
    /// Data can be lost or wrong, or a tenth of the time or more goes into it.
    High,
}

impl Severity {
    /// Name in column severity.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Low => "low",
            Severity::Medium => "medium",
            Severity::High => "high",
        }
    }
}

/// Which of the two kinds of rule a finding comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum Group {
    /// Data may be lost, wrong or not read.
    Correctness,
    /// Time is lost.
    Performance,
}

/// How sure a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// Every call that matters was seen.
    High,
    /// Calls were lost or left out by filters, or a part is inferred: `caveats`
    /// say which.
    Low,
}

impl Confidence {
    /// That of two findings together.
    pub(crate) fn lower(self, other: Self) -> Self {
        match (self, other) {
            (Confidence::High, Confidence::High) => Confidence::High,
            _ => Confidence::Low,
        }
    }
}

/// What a finding is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
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

    /// A process.
    pub fn process(pid: i32, comm: &str) -> Self {
        Self {
            pid: Some(pid),
            comm: (!comm.is_empty()).then(|| comm.to_owned()),
            ..Self::default()
        }
    }

    /// The same with a file.
    pub fn with_file(mut self, file: FileId, path: &str) -> Self {
        self.file_id = Some(file.0);
        self.path = Some(path.to_owned());
        self
    }

    /// The same with a path.
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
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
pub struct Evidence {
    /// What was measured, with its unit: `calls`, `median_ns`.
    pub name: Cow<'static, str>,
    /// The number.
    pub value: f64,
}

/// A call that shows what was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
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
    /// What it returned.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "types", ts(optional))]
    pub ret: Option<i64>,
}

impl Example {
    /// A call as an example.
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

/// The first calls that show something: a finding can be followed from its beginning.
#[derive(Clone, Debug, Default)]
pub struct Examples(Vec<Example>);

impl Examples {
    /// Adds a call while there is room.
    pub fn add(&mut self, call: &Call) {
        if self.0.len() < EXAMPLES {
            self.0.push(Example::of(call));
        }
    }

    /// Adds a call if it took longer than one of those that were kept: for findings whose first
    /// calls are not what costs. The longest comes first.
    pub fn add_costly(&mut self, call: &Call) {
        let place = self.0.iter().position(|kept| kept.dur_ns < call.dur_ns);
        let place = place.unwrap_or(self.0.len());
        if place < EXAMPLES {
            self.0.insert(place, Example::of(call));
            self.0.truncate(EXAMPLES);
        }
    }

    /// Adds a call that was looked at before, while there is room.
    pub fn keep(&mut self, example: Example) {
        if self.0.len() < EXAMPLES {
            self.0.push(example);
        }
    }

    /// Those that were kept.
    pub fn list(&self) -> Vec<Example> {
        self.0.clone()
    }
}

/// One finding: a rule about a subject.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
pub struct Finding {
    /// Id of the rule.
    pub rule: &'static str,
    /// Correctness or performance.
    pub group: Group,
    /// How bad.
    pub severity: Severity,
    /// How sure.
    pub confidence: Confidence,
    /// What the run would have saved without it, nanoseconds; `None` where time is
    /// not the matter.
    pub lost_ns: Option<i64>,
    /// How `lost_ns` was estimated.
    pub lost_how: String,
    /// What happens, in one sentence with the numbers. Holds paths and names as
    /// they are: not escaped.
    pub title: String,
    /// What it is about.
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
    /// What to do instead, and when not to.
    pub advice: String,
    /// Page of the rule, relative to the documentation.
    pub page: String,
    /// What weakens the finding.
    pub caveats: Vec<String>,
}

/// A rule that could not look, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
pub struct NotObservable {
    /// Id of the rule.
    pub rule: &'static str,
    /// What it lacks.
    pub reason: String,
}
