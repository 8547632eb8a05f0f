//! What stands out of a comparison, and whether it is too much.

use std::collections::BTreeSet;

use crate::errors::{self, ErrorKind};
use crate::result::{Change, Figure, FindingChange, Metric, Row, Status, Tables, Verdict};

/// Part of the whole below which a difference is not too much whatever its factor: of
/// counts and of times.
const MIN_COUNT: f64 = 0.001;
const MIN_TIME: f64 = 0.01;

/// Differences beyond noise, the weightiest first.
pub(crate) fn changes(
    totals: &[Figure],
    tables: &Tables,
    findings: &[FindingChange],
    metrics: &[Metric],
    fail_above_percent: f64,
) -> Vec<Change> {
    let named = |row: &Row| {
        let all = |f: &Figure| f.verdict != Verdict::NotComparable;
        row.figures.iter().all(all)
    };
    let guard = Guarding {
        errors_named: !tables.errors.is_empty() && tables.errors.iter().all(named),
        totals,
        metrics,
        limit: fail_above_percent / 100.0,
    };
    let mut changes: Vec<(u8, Change)> = Vec::new();
    for finding in findings.iter().filter(|f| f.verdict.is_change()) {
        let change = guard.finding(finding);
        // What is said of the program as a whole comes before what that follows from.
        let rank = match (change.fails, finding.status) {
            (true, _) => 0,
            (false, Status::New | Status::Gone) => 1,
            (false, Status::Both) => 5,
        };
        changes.push((rank, change));
    }
    let mut explained = BTreeSet::new();
    for row in &tables.operations {
        for figure in row.figures.iter().filter(|f| f.metric != Metric::Time) {
            if figure.verdict.is_change() {
                explained.insert((row.name.as_str(), figure.metric));
                changes.push((3, guard.change("operations", row, figure)));
            }
        }
    }
    for row in &tables.syscalls {
        for figure in row.figures.iter().filter(|f| f.verdict.is_change()) {
            // Its calls on files say more; errors are told by their names.
            if !explained.contains(&(row.name.as_str(), figure.metric))
                && figure.metric != Metric::Errors
            {
                changes.push((3, guard.change("syscalls", row, figure)));
            }
        }
    }
    for row in &tables.errors {
        let figures = row.figures.iter().filter(|f| f.verdict.is_change());
        changes.extend(figures.map(|figure| (3, guard.error(row, figure))));
    }
    for figure in totals.iter().filter(|f| f.verdict.is_change()) {
        changes.push((4, guard.total(figure)));
    }
    // Findings, then what fails, then the rest.
    let rank = |rank: u8, change: &Change| match (rank, change.fails) {
        (0 | 1, _) => rank,
        (_, true) => 2,
        (rank, false) => rank,
    };
    changes.sort_by(|(r, a), (s, b)| {
        let worse = |c: &Change| c.verdict == Verdict::Worse;
        (rank(*r, a), *r, !worse(a))
            .cmp(&(rank(*s, b), *s, !worse(b)))
            .then(b.weight.total_cmp(&a.weight))
    });
    changes.into_iter().map(|(_, change)| change).collect()
}

struct Guarding<'a> {
    /// Errors guard by their names: then all of them together do not.
    errors_named: bool,
    totals: &'a [Figure],
    metrics: &'a [Metric],
    limit: f64,
}

impl Guarding<'_> {
    /// The larger side of a metric of all calls together.
    fn whole(&self, metric: Metric) -> f64 {
        let figure = self.totals.iter().find(|f| f.metric == metric);
        figure.map_or(0.0, |f| f.before.unwrap_or(0.0).max(f.after.unwrap_or(0.0)))
    }

    fn guards(&self, metric: Metric) -> bool {
        let metric = if metric == Metric::AskedBytes {
            Metric::Bytes
        } else {
            metric
        };
        self.metrics.contains(&metric)
    }

    /// Part of the whole that a difference is.
    fn weight(&self, row: &[Figure], figure: &Figure) -> f64 {
        let difference = |f: &Figure| (f.after.unwrap_or(0.0) - f.before.unwrap_or(0.0)).abs();
        let part = |value: f64, whole: f64| {
            if whole > 0.0 {
                (value / whole).min(1.0)
            } else {
                0.0
            }
        };
        match figure.metric {
            // Of a percentile there is no whole: that of the time of its calls.
            Metric::P50 | Metric::P99 => {
                let time = row.iter().find(|f| f.metric == Metric::Time);
                let largest =
                    time.map_or(0.0, |f| f.before.unwrap_or(0.0).max(f.after.unwrap_or(0.0)));
                let factor = figure.change.map_or(1.0, |c| c.abs().min(1.0));
                part(largest, self.whole(Metric::Time)) * factor
            }
            metric => part(difference(figure), self.whole(metric)),
        }
    }

    fn fails(&self, figure: &Figure, weight: f64) -> bool {
        let least = if figure.metric.is_time() {
            MIN_TIME
        } else {
            MIN_COUNT
        };
        figure.verdict == Verdict::Worse
            && self.guards(figure.metric)
            && figure.change.is_none_or(|change| change > self.limit)
            && weight >= least
    }

    /// Of errors those guard that are no answers; of faults there are no too few.
    fn error(&self, row: &Row, figure: &Figure) -> Change {
        let change = self.change("errors", row, figure);
        match errors::kind(&row.name, row.on.as_deref().unwrap_or_default()) {
            ErrorKind::Other => change,
            ErrorKind::Fault => Change {
                fails: self.fails(figure, 1.0),
                ..change
            },
            ErrorKind::Answer => Change {
                fails: false,
                why: format!("{}; an answer rather than a fault", change.why),
                ..change
            },
        }
    }

    fn change(&self, table: &'static str, row: &Row, figure: &Figure) -> Change {
        let weight = self.weight(&row.figures, figure);
        let subject = match &row.on {
            Some(on) if table == "errors" => format!("{} failing with {on}", row.name),
            Some(on) => format!("{} on {on}", row.name),
            None => row.name.clone(),
        };
        Change {
            subject,
            table,
            fails: self.fails(figure, weight),
            ..Self::plain(figure, weight)
        }
    }

    fn total(&self, figure: &Figure) -> Change {
        let weight = self.weight(&[], figure);
        let told = figure.metric == Metric::Errors && self.errors_named;
        Change {
            fails: !told && self.fails(figure, weight),
            ..Self::plain(figure, weight)
        }
    }

    fn plain(figure: &Figure, weight: f64) -> Change {
        Change {
            verdict: figure.verdict,
            metric: figure.metric,
            subject: "all calls".to_owned(),
            table: "totals",
            before: figure.before,
            after: figure.after,
            change: figure.change,
            weight,
            why: figure.why.clone(),
            fails: false,
        }
    }

    fn finding(&self, finding: &FindingChange) -> Change {
        let [before, after] = finding.sessions.map(|n| n as f64);
        let [lost_before, lost_after] = finding.lost_ns;
        let change = match (finding.status, lost_before, lost_after) {
            (Status::Both, Some(b), Some(a)) if b > 0.0 => Some(a / b - 1.0),
            _ => None,
        };
        let time = self.whole(Metric::Time);
        let lost = (lost_after.unwrap_or(0.0) - lost_before.unwrap_or(0.0)).abs();
        let guarded = self.metrics.contains(&Metric::Findings);
        let worse = finding.verdict == Verdict::Worse;
        Change {
            verdict: finding.verdict,
            metric: Metric::Findings,
            subject: format!("{}: {}", finding.rule, finding.title),
            table: "findings",
            before: Some(before),
            after: Some(after),
            change,
            weight: if time > 0.0 {
                (lost / time).min(1.0)
            } else {
                0.0
            },
            why: finding.why.clone(),
            fails: guarded && worse && change.is_none_or(|change| change > self.limit),
        }
    }
}
