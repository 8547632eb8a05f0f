//! The interface of a rule.

use crate::aliases::aliases;
use crate::call::{Call, FileId};
use crate::finding::{Confidence, Evidence, Example, Finding, Group, Severity, Subject};
use crate::kind::{Kind, Kinds};
use crate::known::known;
use crate::layers::{Layer, Row};
pub use crate::run::{MIN_SHARE, Run};
use crate::scope::{Files, Scope};
use crate::state::{Context, State};
use crate::text_key::key_of;

/// A table that a rule cannot do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Input {
    /// Single calls: not with counters only.
    Calls,
    /// Hashes of what calls moved.
    Content,
    /// Lookups in the page cache.
    Cache,
    Faults,
    /// Requests to devices.
    Block,
    /// Times off the CPU.
    Waits,
    Interrupts,
    /// Requests of applications.
    Spans,
    /// Calls of the C library's streams.
    Stdio,
    /// Calls of MPI-IO.
    MpiIo,
    /// Visits of requests to layers.
    Slices,
}

/// The texts of a rule, from which its page is generated.
#[derive(Debug)]
pub struct RuleInfo {
    pub id: &'static str,
    /// Its subject, in a few words.
    pub name: &'static str,
    /// Correctness or performance.
    pub group: Group,
    /// The data that it requires.
    pub needs: &'static [Input],
    /// Kinds of calls that it looks at.
    pub kinds: Kinds,
    /// Whether it looks at which calls are made, on what and in which order, so that it depends on
    /// times only by what these calls cost together.
    pub about_calls: bool,
    /// The problem, and why it matters.
    pub what: &'static str,
    /// When it fires: thresholds with their reasons.
    pub when: &'static str,
    /// How the cost is estimated; empty where time is not the matter.
    pub cost: &'static str,
    /// The fix.
    pub advice: &'static str,
    /// When not to follow the advice.
    pub not_when: &'static str,
    /// Code that has the problem.
    pub bad: &'static str,
    /// The same without.
    pub good: &'static str,
    /// Where it was described.
    pub reference: &'static str,
}

impl RuleInfo {
    /// Its page, relative to the documentation.
    pub(crate) fn page(&self) -> String {
        format!("rules/{}.md", self.id)
    }
}

/// Declares a rule's state, with the default of each field where `Default` is not it, and ties the
/// rule to the `INFO` of its file.
macro_rules! rule {
    (@default) => { Default::default() };
    (@default $value:expr) => { $value };
    (
        $(#[$attribute:meta])*
        pub struct $rule:ident {
            $($(#[$doc:meta])* $field:ident: $type:ty $(= $value:expr)?,)*
        }
    ) => {
        $(#[$attribute])*
        #[derive(Debug)]
        pub struct $rule {
            $($(#[$doc])* $field: $type,)*
        }

        impl Default for $rule {
            fn default() -> Self {
                Self { $($field: rule!(@default $($value)?),)* }
            }
        }

        impl Described for $rule {
            fn info(&self) -> &'static RuleInfo {
                &INFO
            }
        }
    };
}
pub(crate) use rule;

/// A set of kinds by their names.
macro_rules! kinds {
    ($($kind:ident),* $(,)?) => { Kinds::of(&[$(Kind::$kind),*]) };
}
pub(crate) use kinds;

pub trait Described {
    fn info(&self) -> &'static RuleInfo;
}

/// A rule: it sees every call of the kinds that it asks for, in the order in which
/// they returned, before the call has its effect on the state.
pub trait Rule: Described + Send {
    fn call(&mut self, call: &Call, context: &Context);

    /// Rows below the calls that it looks at one by one.
    fn layers(&self) -> &'static [Layer] {
        &[]
    }

    /// Examines such a row. Rows of a time come before the calls of that time, but not in order
    /// with them, and possibly somewhat earlier.
    fn row(&mut self, _: &Row, _: &State) {}

    /// The findings so far.
    fn findings(&self, run: &Run, out: &mut Vec<Found>);
}

/// Which requests have the time that a finding says it costs.
#[derive(Clone, Debug, Default)]
pub struct Costs {
    kinds: Kinds,
    files: CostFiles,
    /// Processes, if they are others than the subject's.
    pids: Vec<i32>,
    /// Processes whose renames, which are of paths and of no file, have some of it.
    renames: Vec<i32>,
}

#[derive(Clone, Debug, Default)]
enum CostFiles {
    /// The subject's file; of a subject with a path only, those in that directory; else all.
    #[default]
    Subject,
    All,
    These(Vec<FileId>),
}

impl Costs {
    /// Requests of these kinds, if the rule examines others, too.
    pub fn of(kinds: &[Kind]) -> Self {
        Self {
            kinds: Kinds::of(kinds),
            ..Self::default()
        }
    }

    /// On whatever file, where the subject is one of several.
    pub fn of_all_files(mut self) -> Self {
        self.files = CostFiles::All;
        self
    }

    pub fn of_files(mut self, files: Vec<FileId>) -> Self {
        self.files = CostFiles::These(files);
        self
    }

    /// Of these processes, where the subject is one of several.
    pub fn of_processes(mut self, pids: Vec<i32>) -> Self {
        self.pids = pids;
        self
    }

    /// And renames by these processes.
    pub fn and_renames_by(mut self, pids: Vec<i32>) -> Self {
        self.renames = pids;
        self
    }

    fn scopes(self, subject: &Subject, of_rule: Kinds) -> Vec<Scope> {
        let kinds = [self.kinds, of_rule]
            .into_iter()
            .find(|kinds| *kinds != Kinds::NONE);
        let files = match (self.files, subject.file_id, &subject.path) {
            (CostFiles::These(files), ..) => files.into_iter().map(Files::One).collect(),
            (CostFiles::Subject, Some(id), _) => vec![Files::One(FileId(id))],
            (CostFiles::Subject, None, Some(path)) => vec![Files::In(key_of(path))],
            _ => vec![Files::All],
        };
        let whose = match self.pids.as_slice() {
            [] => vec![(subject.pid, subject.tid)],
            pids => pids.iter().map(|pid| (Some(*pid), None)).collect(),
        };
        let of = |(pid, tid)| {
            files.iter().map(move |files| Scope {
                pid,
                tid,
                files: *files,
                kinds: kinds.unwrap_or(Kinds::ALL),
            })
        };
        let renames = self.renames.into_iter().map(|pid| Scope {
            pid: Some(pid),
            tid: None,
            files: Files::Without,
            kinds: Kinds::of(&[Kind::Rename]),
        });
        whose.into_iter().flat_map(of).chain(renames).collect()
    }
}

/// The finding of a rule about one subject; the engine adds the common fields.
#[derive(Debug, Default)]
pub struct Found {
    /// Severity of a finding about correctness; the severity of others follows from the cost.
    pub severity: Option<Severity>,
    /// Estimated savings, nanoseconds.
    pub cost_ns: Option<i64>,
    /// Whose time that is, where the subject and the rule's kinds do not say.
    pub costs: Costs,
    /// The finding in one sentence with its numbers.
    pub title: String,
    /// Its subject.
    pub subject: Subject,
    /// The numbers.
    pub evidence: Vec<Evidence>,
    /// Calls that show it.
    pub examples: Vec<Example>,
    /// SQL that lists all such calls.
    pub query: String,
    /// Specific advice, if the rule's own is not sufficient.
    pub advice: Option<String>,
    /// Whether it is another case than the rule's usual one, which advice for known programs is about.
    pub other_case: bool,
    /// Reasons for low confidence.
    pub caveats: Vec<String>,
    /// Whether it rests on a call that was not seen: then calls that were lost or
    /// left out make it unsure.
    pub rests_on_absence: bool,
}

impl Found {
    /// Gives a statement about a process the name of the process, where the rule has the name of
    /// one of its threads from a call. A statement about a thread names both.
    pub(crate) fn name_process(&mut self, run: &Run) {
        let (Some(pid), Some(comm)) = (self.subject.pid, &self.subject.comm) else {
            return;
        };
        let name = run.comm(pid);
        if name.is_empty() || name == *comm || !run.state.has_thread_named(pid, comm) {
            return;
        }
        let of_thread = self.subject.tid.is_some_and(|tid| tid != pid);
        if let Some(rest) = self.title.strip_prefix(comm.as_str()) {
            self.title = match of_thread {
                true => format!("{comm} of {name}{rest}"),
                false => format!("{name}{rest}"),
            };
        }
        if !of_thread {
            self.subject.comm = Some(name);
        }
    }

    pub(crate) fn finish(self, info: &'static RuleInfo, kinds: Kinds, run: &Run) -> Finding {
        let by_time = Severity::by_share(self.cost_ns.unwrap_or(0), run.span_ns);
        let scopes = self.costs.scopes(&self.subject, kinds);
        let mut caveats = self.caveats;
        if self.rests_on_absence && run.state.has_gaps() {
            caveats.push(
                "calls were lost or left out by filters: one of them may have done what is \
                 said to be missing"
                    .to_owned(),
            );
        }
        let known = known(info.id, &self.subject, &self.examples, run);
        let known = known.filter(|_| !self.other_case);
        let mut advice = match known {
            Some(known) => format!("{}: {}", known.name, known.text),
            None => String::new(),
        };
        if !known.is_some_and(|known| known.alone) {
            let own = self.advice.unwrap_or_else(|| info.advice.to_owned());
            let in_general = known.map(|_| "In general:".to_owned());
            let parts = [
                Some(advice),
                in_general,
                Some(own),
                Some(info.not_when.to_owned()),
            ];
            let parts = parts.into_iter().flatten().filter(|part| !part.is_empty());
            advice = parts.collect::<Vec<_>>().join(" ");
        }
        Finding {
            rule: info.id,
            aliases: aliases(info.id),
            group: info.group,
            severity: self.severity.unwrap_or(by_time),
            confidence: if caveats.is_empty() {
                Confidence::High
            } else {
                Confidence::Low
            },
            cost_ns: self.cost_ns,
            cost_how: info.cost.to_owned(),
            title: self.title,
            subject: self.subject,
            evidence: self.evidence,
            examples: self.examples,
            code: Vec::new(),
            query: self.query,
            advice,
            page: info.page(),
            caveats,
            also: Vec::new(),
            scopes,
        }
    }
}

pub fn evidence(name: &'static str, value: impl Into<f64>) -> Evidence {
    Evidence {
        name: name.into(),
        value: value.into(),
    }
}

pub fn number(name: &'static str, value: i64) -> Evidence {
    Evidence {
        name: name.into(),
        value: value as f64,
    }
}
