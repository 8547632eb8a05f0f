//! Findings that came, went, grew or shrank.

use std::collections::BTreeMap;

use fathom_diagnose::{Group, Severity};

use crate::matching::Matcher;
use crate::profile::{FoundIn, Profile};
use crate::result::{FindingChange, Row, Status, Tables, Verdict};
use crate::stats;
use crate::verdict::{ALPHA, Judge};

/// Factor from which on the time that a finding costs has changed, with one session a
/// side: it is an estimate from times that differ from run to run.
const FACTOR: f64 = 2.0;

/// Fraction of the recording that a finding about calls must cost for its appearance or
/// disappearance to count with one session per side: ten times the threshold of a finding. Times of
/// runs with equal calls differ by as much.
const CLEAR: f64 = 0.1;

/// All findings of one rule about one subject.
#[derive(Default)]
struct Both<'a> {
    /// Before and after, by session: cost, and one of the findings.
    sides: [BTreeMap<usize, (Option<i64>, &'a FoundIn)>; 2],
}

/// Compares the findings of two sides. `lacking`: why they are not comparable.
pub(crate) fn compare(
    sides: [&[Profile]; 2],
    matcher: &Matcher,
    judge: &Judge,
    tables: &Tables,
    lacking: Option<&str>,
) -> Vec<FindingChange> {
    let mut subjects: BTreeMap<(&str, String, String), Both> = BTreeMap::new();
    for (s, side) in sides.iter().enumerate() {
        for (i, profile) in side.iter().enumerate() {
            for finding in profile.findings.iter().flatten() {
                let comm = finding
                    .comm
                    .as_deref()
                    .map_or(String::new(), |c| matcher.process(c));
                let file = finding
                    .path
                    .as_deref()
                    .map_or(String::new(), |p| matcher.file(Some(p)));
                let both = subjects.entry((finding.rule, comm, file)).or_default();
                if let Some(side) = both.sides.get_mut(s) {
                    let (cost, worst) = side.entry(i).or_insert((None, finding));
                    *cost = match (*cost, finding.cost_ns) {
                        (Some(a), Some(b)) => Some(a.saturating_add(b)),
                        (a, b) => a.or(b),
                    };
                    if finding.severity > worst.severity {
                        *worst = finding;
                    }
                }
            }
        }
    }
    let rules = fathom_diagnose::catalog();
    let about_calls = |id: &str| rules.iter().any(|rule| rule.id == id && rule.about_calls);
    let mut out: Vec<FindingChange> = subjects
        .into_iter()
        .map(|((rule, comm, file), both)| {
            let evidence = Evidence {
                moved: changed(tables, &comm, &file),
                clear: about_calls(rule) && both.cost(sides) >= CLEAR && as_long(sides),
            };
            let change = both.change(rule, &comm, &file, judge, evidence);
            match lacking {
                None => change,
                Some(why) => FindingChange {
                    verdict: Verdict::NotComparable,
                    why: why.to_owned(),
                    ..change
                },
            }
        })
        .collect();
    out.sort_by(|a, b| {
        let cost = |f: &FindingChange| {
            f.cost_ns
                .iter()
                .flatten()
                .fold(0.0, |m: f64, ns| m.max(*ns))
        };
        (!a.verdict.is_change(), a.group)
            .cmp(&(!b.verdict.is_change(), b.group))
            .then(cost(b).total_cmp(&cost(a)))
            .then_with(|| (&a.rule, &a.subject).cmp(&(&b.rule, &b.subject)))
    });
    out
}

/// Whether the runs of both sides took about as long. A rule that judges shares of the time may be
/// silent about the same calls in a run that something else made longer.
fn as_long(sides: [&[Profile]; 2]) -> bool {
    let [before, after] = sides.map(|side| {
        let each: Vec<f64> = side.iter().map(|p| p.duration_ns as f64).collect();
        stats::mean(&each).max(1.0)
    });
    (1.0 / FACTOR..FACTOR).contains(&(after / before))
}

/// Whether what the program does with the subject of a finding has changed: then a finding
/// that comes or goes is no matter of chance.
fn changed(tables: &Tables, comm: &str, file: &str) -> bool {
    let counts = |row: &Row| {
        let counted = row.figures.iter().filter(|f| !f.metric.is_time());
        counted.into_iter().any(|f| f.verdict.is_change())
    };
    let operations = tables
        .operations
        .iter()
        .filter(|row| row.on.as_deref() == Some(file));
    let files = tables.files.iter().filter(|row| row.name == file);
    if !file.is_empty() && operations.chain(files).any(counts) {
        return true;
    }
    // A subject without a file, or with a directory on which no calls are made itself.
    let inside = |row: &&Row| {
        let below = row.on.as_deref().and_then(|on| on.strip_prefix(file));
        file.is_empty() || below.is_some_and(|rest| rest.starts_with('/'))
    };
    let processes = tables.processes.iter().filter(|row| row.name == comm);
    match file.is_empty() && !comm.is_empty() {
        true => processes.into_iter().any(counts),
        false => tables.operations.iter().filter(inside).any(counts),
    }
}

/// The evidence that a difference is not due to chance.
#[derive(Clone, Copy)]
struct Evidence {
    /// The program's activity on the subject has changed in number or size.
    moved: bool,
    /// It is about which calls are made, and far above what makes it worth a word.
    clear: bool,
}

impl Both<'_> {
    /// The largest share of a recording that it costs.
    fn cost(&self, sides: [&[Profile]; 2]) -> f64 {
        let of = |(found, side): (&BTreeMap<usize, _>, &[Profile])| {
            let share = |(i, (cost, _)): (&usize, &(Option<i64>, &FoundIn))| {
                let span = side.get(*i).map_or(0, |p| p.duration_ns).max(1);
                cost.unwrap_or(0) as f64 / span as f64
            };
            found.iter().map(share).fold(0.0, f64::max)
        };
        self.sides.iter().zip(sides).map(of).fold(0.0, f64::max)
    }

    fn change(
        self,
        rule: &str,
        comm: &str,
        file: &str,
        judge: &Judge,
        evidence: Evidence,
    ) -> FindingChange {
        let [before, after] = &self.sides;
        let found = [before.len(), after.len()];
        let severity = |side: &BTreeMap<usize, (Option<i64>, &FoundIn)>| -> Option<Severity> {
            side.values().map(|(_, f)| f.severity).max()
        };
        let cost = |side: &BTreeMap<usize, (Option<i64>, &FoundIn)>| -> Vec<f64> {
            side.values()
                .filter_map(|(cost, _)| cost.map(|ns| ns as f64))
                .collect()
        };
        let samples = [cost(before), cost(after)];
        let mean = |sample: &Vec<f64>| (!sample.is_empty()).then(|| stats::mean(sample));
        let any = after.values().chain(before.values()).next();
        let group = any.map_or(Group::Performance, |(_, f)| f.group);
        let status = match found {
            [0, _] => Status::New,
            [_, 0] => Status::Gone,
            _ => Status::Both,
        };
        let (verdict, why) = judged(judge, group, status, found, &samples, evidence);
        let subject: Vec<&str> = [comm, file].into_iter().filter(|s| !s.is_empty()).collect();
        FindingChange {
            rule: rule.to_owned(),
            subject: subject.join(" "),
            group,
            status,
            severity: [severity(before), severity(after)],
            cost_ns: [mean(&samples[0]), mean(&samples[1])],
            sessions: found,
            title: any.map_or(String::new(), |(_, f)| f.title.clone()),
            verdict,
            why,
        }
    }
}

fn judged(
    judge: &Judge,
    group: Group,
    status: Status,
    found: [usize; 2],
    samples: &[Vec<f64>; 2],
    evidence: Evidence,
) -> (Verdict, String) {
    let worse = |more: bool| {
        if more {
            Verdict::Worse
        } else {
            Verdict::Better
        }
    };
    let noise = |why: &str| (Verdict::WithinNoise, why.to_owned());
    if status != Status::Both {
        let side = usize::from(status == Status::New);
        let all = found.get(side) == judge.sessions.get(side);
        let (n, of) = (found[side], judge.sessions[side]);
        if judge.repeated() {
            return match all {
                true => (
                    worse(status == Status::New),
                    format!("in all {of} sessions of its side"),
                ),
                false => noise(&format!("in {n} of {of} sessions of its side only")),
            };
        }
        return match (group, evidence.moved) {
            (Group::Correctness, _) => {
                (worse(status == Status::New), "data is at stake".to_owned())
            }
            (Group::Performance, true) => (
                worse(status == Status::New),
                "the calls that it is about have changed, too".to_owned(),
            ),
            (Group::Performance, false) if evidence.clear => (
                worse(status == Status::New),
                "as many calls, made in another way".to_owned(),
            ),
            (Group::Performance, false) => {
                noise("not judged: one session per side; the same calls took another time")
            }
        };
    }
    let [before, after] = samples;
    if before.is_empty() || after.is_empty() || group == Group::Correctness {
        return (Verdict::Same, String::new());
    }
    let factor = stats::mean(after) / stats::mean(before).max(1.0);
    if judge.repeated() {
        let ln = |side: &[f64]| side.iter().map(|ns| ns.max(1.0).ln()).collect::<Vec<_>>();
        return match stats::welch(&ln(before), &ln(after)) {
            Some(test) if test.p < ALPHA => (worse(factor > 1.0), format!("p = {:.3}", test.p)),
            Some(test) => noise(&format!("p = {:.3}", test.p)),
            None => noise("not judged: too few sessions have it"),
        };
    }
    match evidence.moved && !(1.0 / FACTOR..FACTOR).contains(&factor) {
        true => (
            worse(factor > 1.0),
            "the calls that it is about have changed, too".to_owned(),
        ),
        false if factor == 1.0 => (Verdict::Same, String::new()),
        false => noise(
            "not judged: one session per side; the cost is an estimate from times that differ from run to run",
        ),
    }
}
