//! One pass over the rows of a session, or over the rows of a recording as they arrive.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use fathom_model::batch::{NULL_I32, NULL_I64};
use fathom_model::tables::{FILES, FileRows, PROCESSES, ProcessRows, SYSCALLS, Table};
use fathom_model::{Batch, StrId, StringTable};
use serde::Serialize;

use crate::call::{Call, Calls, FileId};
use crate::claims;
use crate::depth::Depth;
use crate::finding::{Finding, Group, NotObservable, Subject};
use crate::kind::Kind;
use crate::layers::{self, Below, Layer, Layers, Row};
use crate::ledger::{Ledger, Spent, Times};
use crate::merge_findings;
use crate::names::file_name;
use crate::rule::{Found, Input, MIN_SHARE, Rule, Run};
use crate::rules;
use crate::run::{FAINT_SHARE, MINOR_SHARE};
use crate::state::{Context, Process, State};
use crate::summary::{self, Clock, Recorded, Summary};

/// Findings of one rule that are shown; the rest is counted.
pub(crate) const MAX_PER_RULE: usize = 20;

/// Minor notes that are shown.
const MAX_MINOR: usize = 50;

/// Share of the recorded time from which on minor notes that are alike are a finding together: more than any
/// rule wants of one.
const TOGETHER_SHARE: f64 = 0.03;

/// Time below which a loss is a minor note, whatever its share of the recording, nanoseconds: no
/// user notices it, and in a run that short the start of the program is most of what is seen.
const MIN_COST_NS: i64 = 1_000_000;

/// Everything that the rules say.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS, schemars::JsonSchema))]
pub struct Diagnosis {
    /// Where the time went.
    pub summary: Summary,
    /// Findings, the worst first: by severity, of equal ones correctness before
    /// performance, then by cost.
    pub findings: Vec<Finding>,
    /// Patterns that cost less than a finding does, the most expensive first.
    pub minor: Vec<Finding>,
    /// Rules that could not look.
    pub not_observable: Vec<NotObservable>,
    /// Rules that could look at a part of what they are about, and what was missing.
    pub partly_observable: Vec<NotObservable>,
    /// Further findings of rules that have very many.
    pub more: Vec<More>,
    /// Rules that looked.
    pub rules: usize,
    /// Calls that they looked at.
    pub calls: u64,
    /// How long was recorded, nanoseconds.
    pub span_ns: i64,
}

/// Findings that are not shown one by one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS, schemars::JsonSchema))]
pub struct More {
    /// Id of the rule.
    pub rule: &'static str,
    /// How many more there are.
    pub findings: usize,
}

/// Rules at work.
pub struct Engine {
    state: State,
    rules: Vec<Box<dyn Rule>>,
    /// By kind: indexes of the rules that look at it.
    of_kind: Vec<Vec<usize>>,
    /// Rules that look at rows of a layer, by their indexes.
    of_layer: Vec<(Layer, usize)>,
    layers: Layers,
    depth: Depth,
    /// Time that findings claim; `None` where another engine adds it up.
    ledger: Option<(Ledger, Clock)>,
    /// How long was recorded what ran before and goes on; `None`: a command.
    recorded_ns: Option<i64>,
    /// Whether losses are looked for that are too small for a finding each.
    minor: bool,
    /// Time below which a loss is one of those.
    min_cost_ns: i64,
    missing: Vec<(Input, String)>,
    partly_observable: Vec<NotObservable>,
    calls: u64,
}

/// The results of an engine's rules, each by itself.
pub(crate) struct EngineResult {
    pub(crate) diagnosis: Diagnosis,
    times: Option<Times>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ids: Vec<_> = self.rules.iter().map(|rule| rule.info().id).collect();
        f.debug_struct("Engine")
            .field("rules", &ids)
            .field("calls", &self.calls)
            .finish()
    }
}

impl Default for Engine {
    fn default() -> Self {
        Self::new(rules::all())
    }
}

impl Engine {
    pub fn new(rules: Vec<Box<dyn Rule>>) -> Self {
        let mut of_kind = vec![Vec::new(); Kind::COUNT];
        for (i, rule) in rules.iter().enumerate() {
            let kinds = rule.info().kinds;
            for (kind, list) in of_kind.iter_mut().enumerate() {
                if kinds.has_index(kind) {
                    list.push(i);
                }
            }
        }
        let of_layer = rules.iter().enumerate().flat_map(|(i, rule)| {
            let layers = rule.layers().iter();
            layers.map(move |layer| (*layer, i))
        });
        Self {
            state: State::default(),
            of_layer: of_layer.collect(),
            rules,
            of_kind,
            layers: Layers::default(),
            depth: Depth::default(),
            ledger: Some((Ledger::default(), Clock::default())),
            recorded_ns: None,
            minor: true,
            min_cost_ns: MIN_COST_NS,
            missing: Vec::new(),
            partly_observable: Vec::new(),
            calls: 0,
        }
    }

    /// Says that a rule can look at a part of its calls only, and why.
    pub fn lacks_a_part(&mut self, rule: &'static str, reason: &str) {
        if self.rules.iter().any(|own| own.info().id == rule) {
            self.partly_observable.push(NotObservable {
                rule,
                reason: reason.to_owned(),
            });
        }
    }

    /// Says that a table is missing, and why; rules that need it stay silent and see no more
    /// rows.
    pub fn lacks(&mut self, input: Input, reason: &str) {
        self.missing.push((input, reason.to_owned()));
        let Self {
            rules,
            of_kind,
            of_layer,
            ..
        } = self;
        let needs = |i: usize| {
            let rule = rules.get(i);
            rule.is_some_and(|rule| rule.info().needs.contains(&input))
        };
        for list in of_kind {
            list.retain(|i| !needs(*i));
        }
        of_layer.retain(|(_, i)| !needs(*i));
    }

    /// Whether losses are wanted that are too small for a finding each: as notes, and as the
    /// findings that many of them are together.
    pub(crate) fn set_minor(&mut self, wanted: bool) {
        self.minor = wanted;
    }

    /// Losses are findings however short they are.
    #[cfg(test)]
    pub(crate) fn with_short_losses(&mut self) {
        self.min_cost_ns = 0;
    }

    /// Says how long was recorded what ran before and goes on.
    pub(crate) fn recorded(&mut self, ns: i64) {
        self.recorded_ns = Some(ns);
    }

    /// Another engine adds up the time of the same requests.
    pub(crate) fn without_times(&mut self) {
        self.ledger = None;
    }

    /// Says that calls were lost or left out.
    pub fn has_gaps(&mut self) {
        self.state.set_gaps(true);
    }

    /// Batches of several tables that were made in the same time.
    pub fn feed_together<'a>(&mut self, batches: impl IntoIterator<Item = &'a Batch>) {
        let place = |batch: &&Batch| {
            let layer = |(table, _, _): &(&Table, _, _)| std::ptr::eq(*table, batch.table);
            match layers::TABLES.iter().position(layer) {
                Some(place) => place + 1,
                None if std::ptr::eq(batch.table, &SYSCALLS) => layers::TABLES.len() + 1,
                None => 0,
            }
        };
        let mut batches: Vec<&Batch> = batches.into_iter().collect();
        batches.sort_by_key(place);
        batches.into_iter().for_each(|batch| self.feed(batch));
    }

    /// Rows of a table; tables that no rule uses are ignored. Rows of `syscalls` must come in the
    /// order in which the calls returned, rows of other tables before the calls that they belong to
    /// if possible: rows of layers that come later are not joined to their call. `bios` come before
    /// `block`.
    pub fn feed(&mut self, batch: &Batch) {
        if std::ptr::eq(batch.table, &SYSCALLS) {
            let mut calls = Calls::new(batch);
            calls.measure(&mut self.depth);
            for (rid, row) in calls.waiting() {
                self.layers.cached(rid, calls.cached(row));
            }
            for row in 0..calls.rows() {
                let mut call = calls.call(row);
                // truncate(2) names its file by a path only.
                if call.kind == Kind::Truncate && call.file.is_none() {
                    call.file = call
                        .path_key()
                        .and_then(|path| self.state.files.at_key(path));
                }
                self.call(&calls, row, &call);
            }
        } else if std::ptr::eq(batch.table, &FILES) {
            if let Some((rows, strings)) = FileRows::from_batch(batch.clone()) {
                self.files(&rows, &strings);
            }
        } else if std::ptr::eq(batch.table, &PROCESSES)
            && let Some((rows, strings)) = ProcessRows::from_batch(batch.clone())
        {
            self.processes(&rows, &strings);
        } else if Layer::only_of(batch.table)
            .is_none_or(|layer| self.of_layer.iter().any(|(of, _)| *of == layer))
        {
            let Self {
                layers,
                of_layer,
                rules,
                state,
                ledger,
                ..
            } = self;
            layers.feed(batch, |row| {
                if let (Row::Fault(fault), Some((ledger, clock))) = (row, ledger.as_mut()) {
                    ledger.fault(fault);
                    clock.fault(fault, state);
                }
                for (_, i) in of_layer.iter().filter(|(layer, _)| *layer == row.layer()) {
                    if let Some(rule) = rules.get_mut(*i) {
                        rule.row(row, state);
                    }
                }
            });
        }
    }

    fn files(&mut self, rows: &FileRows, strings: &StringTable) {
        let text = |id: Option<&StrId>| {
            let id = id.copied().filter(|id| *id != StrId::NULL)?;
            std::str::from_utf8(strings.get(id)).ok()
        };
        for (i, id) in rows.file_id.iter().enumerate() {
            let size = rows.size.get(i).copied().filter(|n| *n != NULL_I64);
            self.state.files.describe(
                FileId(*id),
                text(rows.path.get(i)),
                text(rows.file_type.get(i)).unwrap_or(""),
                text(rows.fs_type.get(i)).unwrap_or(""),
                size,
            );
        }
    }

    fn processes(&mut self, rows: &ProcessRows, strings: &StringTable) {
        for (i, (pid, tid)) in rows.pid.iter().zip(&rows.tid).enumerate() {
            let text = |id: Option<&StrId>| {
                let bytes = id.map_or(&[][..], |id| strings.get(*id));
                String::from_utf8_lossy(bytes).into_owned()
            };
            if pid != tid {
                self.state.add_thread(*pid, &text(rows.comm.get(i)));
                continue;
            }
            let exe = text(rows.exe.get(i));
            let cmdline = text(rows.cmdline.get(i));
            let mut command = DefaultHasher::new();
            (&exe, &cmdline).hash(&mut command);
            let is_known = !exe.is_empty() || !cmdline.is_empty();
            let process = Process {
                ppid: rows.ppid.get(i).copied().filter(|pid| *pid > 0),
                comm: text(rows.comm.get(i)),
                program: file_name(&exe).to_owned(),
                command: is_known.then(|| command.finish()),
                started_at_ns: rows.started_at_ns.get(i).copied().unwrap_or(0),
                ended_at_ns: rows.ended_at_ns.get(i).copied().filter(|n| *n != NULL_I64),
                exit_status: rows.exit_status.get(i).copied().filter(|n| *n != NULL_I32),
            };
            self.state.add_process(*pid, process);
        }
    }

    fn call(&mut self, calls: &Calls, row: usize, call: &Call) {
        self.calls += 1;
        let description = self.state.arrive(call);
        // Calls that wait stay known for their operations, which may end later.
        let below = match calls.waits(row) {
            true => self.layers.of(call.rid),
            false => {
                let mut below = self.layers.take(call.rid);
                below.cache(calls.cached(row));
                below
            }
        };
        // Of direct I/O it is below the operation, of the page cache below the call.
        let below = match calls.submitted_by(row) {
            Some(rid) if below == Below::default() => self.layers.of(rid),
            _ => below,
        };
        let context = Context::new(&self.state, call, description, below);
        if let Some((ledger, clock)) = &mut self.ledger {
            // A removal names its file by a path only.
            let file = match call.kind {
                Kind::Unlink if call.file.is_none() => {
                    let path = call.path_key();
                    path.and_then(|path| self.state.files.at_key(path))
                }
                _ => call.file,
            };
            let spent = Spent::of(call, &below);
            ledger.call(call, file, spent);
            clock.call(call, context.file(call), spent, &self.state);
        }
        hand(&self.of_kind, &mut self.rules, call, &context);
        self.state.apply(call, description);
        if call.kind == Kind::Transfer && call.moved() > 0 {
            self.copied(call);
        }
    }

    /// Hands the write of a copy by the kernel to the rules about writes.
    fn copied(&mut self, call: &Call) {
        let descriptors = &self.state.descriptors;
        let Some(fd) = call.arg("fd_out").and_then(|fd| fd.parse().ok()) else {
            return;
        };
        let description = descriptors.find(call.pid, fd);
        let to = description.and_then(|id| descriptors.get(id)?.file);
        let known = |id: &FileId| self.state.files.get(*id).is_some_and(|f| f.is_regular());
        let Some(to) = to.filter(known) else { return };
        let write = call.write_of_copy(fd, to);
        let context = Context::new(&self.state, &write, description, Below::default());
        hand(&self.of_kind, &mut self.rules, &write, &context);
        self.state.apply(&write, description);
    }

    /// The findings so far.
    pub fn diagnosis(&self) -> Diagnosis {
        EngineResult::together([self.result()])
    }

    /// How long was recorded so far, nanoseconds: what ran before and goes on may make calls in a part of it, and a
    /// program may compute after its last call.
    fn took_ns(&self) -> i64 {
        self.state.run_ns().max(self.recorded_ns.unwrap_or(0))
    }

    /// The findings of each rule so far.
    pub(crate) fn result(&self) -> EngineResult {
        let run = Run {
            state: &self.state,
            span_ns: self.took_ns(),
            min_share: MIN_SHARE,
        };
        let (mut findings, mut not_observable, mut more) = (Vec::new(), Vec::new(), Vec::new());
        let mut minor = Vec::new();
        for rule in &self.rules {
            let info = rule.info();
            let lacking = |(input, _): &&(Input, String)| info.needs.contains(input);
            if let Some((_, reason)) = self.missing.iter().find(lacking) {
                not_observable.push(NotObservable {
                    rule: info.id,
                    reason: reason.clone(),
                });
                continue;
            }
            let mut found = Vec::new();
            rule.findings(&run, &mut found);
            found.iter_mut().for_each(|found| found.name_process(&run));
            let kinds = rule.info().kinds;
            let told: HashSet<(String, Subject)> = found.iter().map(key_of_found).collect();
            // A statement about all files of a process is not repeated for single ones.
            let whole = found.iter().filter(|f| f.subject.file_id.is_none());
            let whole: HashSet<_> = whole.map(whole_of_found).collect();
            let finish = |found: Vec<Found>, run: &Run| {
                let own = found.into_iter().map(|f| f.finish(info, kinds, run));
                let mut own: Vec<_> = own.collect();
                own.sort_by(rank);
                let mut own = merge_findings::together(own, run);
                own.sort_by(rank);
                own
            };
            let mut own = finish(found, &run);
            if info.group == Group::Performance {
                let least = self.min_cost_ns;
                let short = |f: &Finding| f.cost_ns.is_some_and(|cost| cost < least);
                let (notes, findings) = own.into_iter().partition(short);
                own = findings;
                if self.minor {
                    minor.extend::<Vec<_>>(notes);
                }
            }
            if self.minor && info.group == Group::Performance {
                let faint = Run {
                    min_share: FAINT_SHARE,
                    ..run
                };
                let mut found = Vec::new();
                rule.findings(&faint, &mut found);
                found.iter_mut().for_each(|found| found.name_process(&run));
                found.retain(|found| {
                    let known = told.contains(&key_of_found(found))
                        || whole.contains(&whole_of_found(found));
                    found.cost_ns.is_some() && !known
                });
                let enough = (run.span_ns as f64 * TOGETHER_SHARE) as i64;
                let enough = enough.max(self.min_cost_ns);
                let large = |f: &Finding| f.cost_ns.is_some_and(|cost| cost >= enough);
                let found = finish(found, &faint).into_iter();
                let (large, mut notes): (Vec<_>, Vec<_>) = found.partition(large);
                let noted = (run.span_ns as f64 * MINOR_SHARE) as i64;
                notes.retain(|f| f.cost_ns.is_some_and(|cost| cost >= noted));
                minor.extend(notes.into_iter().take(MAX_PER_RULE));
                own.extend(large);
                own.sort_by(rank);
            }
            if own.len() > MAX_PER_RULE {
                more.push(More {
                    rule: info.id,
                    findings: own.len() - MAX_PER_RULE,
                });
                own.truncate(MAX_PER_RULE);
            }
            findings.append(&mut own);
        }
        findings.sort_by(rank);
        let mut partly_observable = self.partly_observable.clone();
        partly_observable.retain(|of| not_observable.iter().all(|none| none.rule != of.rule));
        let times = self.ledger.as_ref();
        let times = times.map(|(ledger, clock)| (ledger.times(&self.state), clock));
        let measured = |input| !self.missing.iter().any(|(lacking, _)| *lacking == input);
        let recorded = Recorded {
            command: self.recorded_ns.is_none(),
            took_ns: run.span_ns,
            calls: measured(Input::Calls),
            waits: measured(Input::Waits),
            faults: measured(Input::Faults),
        };
        let summary = times
            .as_ref()
            .map(|(times, clock)| summary::summary(times, clock, &self.state, recorded));
        let diagnosis = Diagnosis {
            summary: summary.unwrap_or_default(),
            rules: self.rules.len() - not_observable.len(),
            findings,
            minor,
            not_observable,
            partly_observable,
            more,
            calls: self.calls,
            span_ns: run.span_ns,
        };
        EngineResult {
            diagnosis,
            times: times.map(|(times, _)| times),
        }
    }
}

impl EngineResult {
    /// Combines the results of engines that each ran a part of the rules on the same rows. Each
    /// finding claims its time; a finding whose time another one has claimed is shown under that
    /// one.
    pub(crate) fn together(parts: impl IntoIterator<Item = EngineResult>) -> Diagnosis {
        let mut parts = parts.into_iter();
        let EngineResult {
            diagnosis: mut all,
            mut times,
        } = parts
            .next()
            .unwrap_or_else(|| Engine::new(Vec::new()).result());
        for part in parts {
            let part_times = part.times;
            let part = part.diagnosis;
            if part_times.is_some() {
                (times, all.summary) = (part_times, part.summary);
            }
            all.findings.extend(part.findings);
            all.minor.extend(part.minor);
            all.not_observable.extend(part.not_observable);
            all.partly_observable.extend(part.partly_observable);
            all.more.extend(part.more);
            all.rules += part.rules;
        }
        let order = rules::catalog();
        let place = |id: &str| order.iter().position(|rule| rule.id == id);
        all.findings.sort_by(rank);
        all.minor.sort_by(rank);
        let times = times.unwrap_or_default();
        claims::settle(&mut all.findings, &mut all.minor, times, all.span_ns);
        all.findings.sort_by(rank);
        all.minor.sort_by(rank);
        all.minor.truncate(MAX_MINOR);
        all.not_observable.sort_by_key(|of| place(of.rule));
        all.partly_observable.sort_by_key(|of| place(of.rule));
        all.more.sort_by_key(|of| place(of.rule));
        all
    }
}

/// Hands a call to the rules of its kind.
fn hand(of_kind: &[Vec<usize>], rules: &mut [Box<dyn Rule>], call: &Call, context: &Context) {
    for i in of_kind.get(call.kind as usize).into_iter().flatten() {
        if let Some(rule) = rules.get_mut(*i) {
            rule.call(call, context);
        }
    }
}

/// A key that identifies a finding within its rule.
fn key_of_found(found: &Found) -> (String, Subject) {
    (found.title.clone(), found.subject.clone())
}

/// The process of a finding, and what it counts.
fn whole_of_found(found: &Found) -> (Option<i32>, Option<String>) {
    let counts = found.evidence.first();
    (found.subject.pid, counts.map(|of| of.name.to_string()))
}

/// The worst first. Of equal severity those about correctness: they have no time to compare.
pub(crate) fn rank(a: &Finding, b: &Finding) -> std::cmp::Ordering {
    use std::cmp::Reverse;
    let key = |f: &Finding| {
        let performance = f.group == Group::Performance;
        (Reverse(f.severity), performance, Reverse(f.cost_ns), f.rule)
    };
    // Of findings that are alike the same one comes first whenever a session is looked at.
    let subject = |f: &Finding| (f.subject.pid, f.subject.tid, f.subject.file_id);
    key(a)
        .cmp(&key(b))
        .then_with(|| a.title.cmp(&b.title))
        .then_with(|| subject(a).cmp(&subject(b)))
        .then_with(|| a.query.cmp(&b.query))
}
