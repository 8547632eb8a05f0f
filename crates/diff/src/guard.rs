//! What stands out of a comparison, and whether it is too much.

use std::collections::BTreeSet;

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
    let guard = Guarding {
        totals,
        metrics,
        limit: fail_above_percent / 100.0,
    };
    let mut changes: Vec<(u8, Change)> = Vec::new();
    for finding in findings.iter().filter(|f| f.verdict.is_change()) {
        let rank = match finding.group {
            fathom_diagnose::Group::Correctness => 0,
            // They follow from the calls that changed.
            fathom_diagnose::Group::Performance => 2,
        };
        changes.push((rank, guard.finding(finding)));
    }
    let mut explained = BTreeSet::new();
    for row in &tables.operations {
        for figure in row.figures.iter().filter(|f| f.metric != Metric::Time) {
            if figure.verdict.is_change() {
                explained.insert((row.name.as_str(), figure.metric));
                changes.push((1, guard.change("operations", row, figure)));
            }
        }
    }
    for row in &tables.syscalls {
        for figure in row.figures.iter().filter(|f| f.verdict.is_change()) {
            // Its calls on files say more; errors are told by their names.
            if !explained.contains(&(row.name.as_str(), figure.metric))
                && figure.metric != Metric::Errors
            {
                changes.push((1, guard.change("syscalls", row, figure)));
            }
        }
    }
    for row in &tables.errors {
        let figures = row.figures.iter().filter(|f| f.verdict.is_change());
        changes.extend(figures.map(|figure| (1, guard.change("errors", row, figure))));
    }
    for figure in totals.iter().filter(|f| f.verdict.is_change()) {
        changes.push((3, guard.total(figure)));
    }
    changes.sort_by(|(r, a), (s, b)| {
        let worse = |c: &Change| c.verdict == Verdict::Worse;
        (!a.fails, *r, !worse(a))
            .cmp(&(!b.fails, *s, !worse(b)))
            .then(b.weight.total_cmp(&a.weight))
    });
    changes.into_iter().map(|(_, change)| change).collect()
}

struct Guarding<'a> {
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
        Change {
            fails: self.fails(figure, weight),
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
