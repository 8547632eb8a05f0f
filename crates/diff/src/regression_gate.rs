//! Significant differences of a comparison, and whether they exceed the limit.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use fathom_diagnose::Group;
use fathom_model::failure::{ErrorKind, error_kind};
use fathom_model::kind::Purpose;
use fathom_model::syscalls::SYSCALLS;

use crate::direction;
use crate::result::{Change, Figure, FindingChange, Metric, Row, Status, Tables, Verdict};
use crate::verdict::ALPHA;

/// Part of the whole below which a difference is not too much whatever its factor: of
/// counts and of times.
const MIN_COUNT: f64 = 0.001;
const MIN_TIME: f64 = 0.01;

/// Part of the run up to which a difference in the number or the bytes of calls is petty, whatever
/// its factor: 0.1 ms of ten seconds. Only calls that neither move data nor look at files are petty, such
/// as the ioctl that asks what standard output is.
const PETTY: f64 = 1e-5;

/// Part of the run from which on a difference of time is large, by which factor, and from
/// which part of all time on a tail is.
const LARGE: f64 = 0.05;
const LARGE_FACTOR: f64 = 2.0;
const LARGE_TAIL: f64 = 0.01;

/// Differences beyond noise: data at stake, then differences of parts of the program by their
/// impact on time, then differences of all calls together.
pub(crate) fn changes(
    guard: &Guarding,
    tables: &Tables,
    findings: &[FindingChange],
) -> Vec<Change> {
    let totals = guard.totals;
    let mut changes: Vec<(u8, Change)> = Vec::new();
    for finding in findings.iter().filter(|f| f.verdict.is_change()) {
        let rank = if finding.group == Group::Correctness {
            0
        } else {
            1
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
        let timed = |f: &&Figure| f.metric.is_duration();
        // Of calls that one side does not have the number says it all.
        if row.status == Status::Both
            && row
                .figures
                .iter()
                .filter(timed)
                .any(|f| f.verdict.is_change())
        {
            changes.extend(guard.durations(row, tables).map(|change| (1, change)));
        }
        let counted = row.figures.iter().filter(|f| !timed(f));
        for figure in counted.filter(|f| f.verdict.is_change()) {
            // Its calls on files are more specific; errors have their own rows.
            if !explained.contains(&(row.name.as_str(), figure.metric))
                && figure.metric != Metric::Errors
            {
                changes.push((1, guard.change("syscalls", row, figure)));
            }
        }
    }
    for row in &tables.errors {
        let figures = row.figures.iter().filter(|f| f.verdict.is_change());
        let fault = error_kind(&row.name, row.on.as_deref().unwrap_or_default());
        let rank = if fault == ErrorKind::Fault { 0 } else { 1 };
        changes.extend(figures.map(|figure| (rank, guard.error(row, figure))));
    }
    for figure in totals.iter().filter(|f| f.verdict.is_change()) {
        changes.push((2, guard.total(figure)));
    }
    changes.sort_by(|(r, a), (s, b)| {
        (a.minor, r)
            .cmp(&(b.minor, s))
            .then_with(|| by_impact(a, b))
            .then_with(|| b.fails.cmp(&a.fails))
            .then(b.weight.total_cmp(&a.weight))
    });
    changes.into_iter().map(|(_, change)| change).collect()
}

/// The largest impact first.
fn by_impact(a: &Change, b: &Change) -> Ordering {
    let impact = |c: &Change| c.impact_ns.unwrap_or(0.0).abs();
    impact(b).total_cmp(&impact(a))
}

/// Large differences of time that are within noise.
pub(crate) fn unproven(
    guard: &Guarding,
    tables: &Tables,
    findings: &[FindingChange],
) -> Vec<Change> {
    let calls = tables.syscalls.iter().filter(|row| guard.large(row));
    let mut out: Vec<Change> = calls
        .filter_map(|row| guard.durations(row, tables))
        .collect();
    for row in tables.layers.iter().filter(|row| guard.large(row)) {
        if let Some(time) = row.figure(Metric::Time) {
            let moves = direction::moves(row, guard.unit);
            out.push(Change {
                subject: guard.subject("layers", row),
                moves,
                ..guard.change("layers", row, time)
            });
        }
    }
    let costly = |f: &&FindingChange| {
        let most = f.cost_ns.iter().flatten().fold(0.0, |a: f64, b| a.max(*b));
        f.status != Status::Both && f.verdict == Verdict::WithinNoise && guard.is_large(most)
    };
    out.extend(findings.iter().filter(costly).map(|f| guard.finding(f)));
    for change in &mut out {
        change.verdict = Verdict::WithinNoise;
        change.fails = false;
        change.minor = false;
    }
    out.sort_by(by_impact);
    out
}

/// By what factor the number of most calls changed, if by more than a tenth: the median of the
/// calls' factors, weighted by their number.
fn typical_ratio(calls: &[Row]) -> Option<f64> {
    let one = |row: &Row| {
        let calls = row.figure(Metric::Calls)?;
        let weight = calls.before.unwrap_or(0.0) + calls.after.unwrap_or(0.0);
        Some((direction::ratio(calls, 1.0)?, weight))
    };
    let mut ratios: Vec<(f64, f64)> = calls.iter().filter_map(one).collect();
    ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
    let half = ratios.iter().map(|(_, weight)| weight).sum::<f64>() / 2.0;
    let mut below = 0.0;
    let (ratio, _) = ratios.into_iter().find(|(_, weight)| {
        below += weight;
        below >= half
    })?;
    (!(0.9..=1.1).contains(&ratio)).then_some(ratio)
}

/// Criteria for the weight of a difference, and for the limit.
pub(crate) struct Guarding<'a> {
    /// Errors guard by their names: then all of them together do not.
    errors_named: bool,
    pub totals: &'a [Figure],
    metrics: &'a [Metric],
    limit: f64,
    /// Factor for times after, so that they cover as much work as before.
    unit: f64,
    /// Figures are by second.
    rates: bool,
    /// The longer run, nanoseconds.
    run: f64,
}

impl<'a> Guarding<'a> {
    pub(crate) fn new(
        totals: &'a [Figure],
        tables: &Tables,
        metrics: &'a [Metric],
        fail_above_percent: f64,
    ) -> Self {
        let named = |row: &Row| {
            let all = |f: &Figure| f.verdict != Verdict::NotComparable;
            row.figures.iter().all(all)
        };
        Self {
            errors_named: !tables.errors.is_empty() && tables.errors.iter().all(named),
            totals,
            metrics,
            limit: fail_above_percent / 100.0,
            unit: 1.0,
            rates: false,
            run: 0.0,
        }
    }

    /// The unit of a difference in time: runs of `durations`, seconds of them, or, for a load that
    /// ran for a fixed time and has the calls `fixed_time`, an equal number of calls.
    pub(crate) fn of_runs(
        mut self,
        durations: [f64; 2],
        rates: bool,
        fixed_time: Option<&[Row]>,
    ) -> Self {
        if let Some(ratio) = fixed_time.and_then(typical_ratio) {
            self.unit = 1.0 / ratio;
        }
        self.rates = rates;
        self.run = match rates {
            true => 1e9,
            false => durations[0].max(durations[1]),
        };
        self
    }

    /// Whether the time of a run is no measure of its speed.
    pub(crate) fn per_unit(&self) -> bool {
        self.rates || self.unit != 1.0
    }

    /// Whether differences of time are between equal numbers of calls.
    pub(crate) fn counts_equal_calls(&self) -> bool {
        !self.rates && self.unit != 1.0
    }

    /// The unit of work behind a difference of time.
    pub(crate) fn unit_words(&self) -> &'static str {
        match (self.rates, self.unit == 1.0) {
            (true, _) => " per second of recording",
            (false, true) => "",
            (false, false) => " for as many calls",
        }
    }

    /// Difference of time per unit of work.
    pub(crate) fn impact(&self, row: &[Figure]) -> Option<f64> {
        let time = row.iter().find(|f| f.metric == Metric::Time)?;
        let comparable = time.verdict != Verdict::NotComparable;
        let difference = time.after.unwrap_or(0.0) * self.unit - time.before.unwrap_or(0.0);
        comparable.then_some(difference)
    }

    /// Whether a difference of time is a large part of the run.
    pub(crate) fn is_large(&self, impact: f64) -> bool {
        impact.abs() >= self.run * LARGE
    }

    /// Whether a difference of time that is within noise would be a large one.
    fn large(&self, row: &Row) -> bool {
        let durations = || row.figures.iter().filter(|f| f.metric.is_duration());
        let Some((time, impact)) = row.figure(Metric::Time).zip(self.impact(&row.figures)) else {
            return false;
        };
        if durations().any(|f| f.verdict.is_change()) {
            return false;
        }
        let far = |ratio: f64| !(1.0 / LARGE_FACTOR..LARGE_FACTOR).contains(&ratio);
        let ratio = direction::ratio(time, self.unit);
        // As many more calls as more time: the number says it.
        let calls = row.figure(Metric::Calls);
        let explained = calls
            .filter(|f| f.verdict.is_change())
            .and_then(|f| Some(!far(ratio? / direction::ratio(f, self.unit)?)))
            .unwrap_or(false);
        // If several sessions of a side overlap with sessions of the other, the difference is
        // noise.
        let apart = |f: &Figure| f.effect.is_none_or(|effect| effect.abs() >= 1.0);
        let total = apart(time) && self.is_large(impact) && ratio.is_none_or(far) && !explained;
        let tail = row.figure(Metric::Tail).is_some_and(|tail| {
            let most = time.before.unwrap_or(0.0).max(time.after.unwrap_or(0.0));
            apart(tail)
                && tail.p.is_some_and(|p| p < ALPHA)
                && most >= self.whole(Metric::Time) * LARGE_TAIL
        });
        total || tail
    }

    /// All that changed about the durations of a call.
    fn durations(&self, row: &Row, tables: &Tables) -> Option<Change> {
        let timed: Vec<&Figure> = row
            .figures
            .iter()
            .filter(|f| f.metric.is_duration())
            .collect();
        let changed: Vec<&Figure> = timed
            .iter()
            .copied()
            .filter(|f| f.verdict.is_change())
            .collect();
        let any = |verdict: Verdict| changed.iter().any(|f| f.verdict == verdict);
        let shorter = row
            .figure(Metric::Time)
            .and_then(|time| direction::ratio(time, self.unit))
            .is_some_and(|ratio| ratio < 1.0);
        let verdict = match (
            any(Verdict::Worse),
            any(Verdict::Better),
            any(Verdict::Mixed),
        ) {
            (true, false, false) => Verdict::Worse,
            (true, _, _) if !shorter => Verdict::Worse,
            (false, true, false) => Verdict::Better,
            (false, false, false) => Verdict::WithinNoise,
            _ => Verdict::Mixed,
        };
        // The total says most, then the tail.
        use Metric::{P50, P90, P99, P999, Tail, Time};
        let order = |f: &Figure| {
            [Time, P99, Tail, P999, P90, P50]
                .iter()
                .position(|m| *m == f.metric)
        };
        let fails = |f: &Figure| self.fails(f, self.weight(&row.figures, f));
        let speaks = match changed.is_empty() {
            true => timed.iter().copied().min_by_key(|f| order(f)),
            false => changed
                .iter()
                .copied()
                .min_by_key(|f| (!fails(f), f.verdict != verdict, order(f))),
        }?;
        let impact = self.impact(&row.figures);
        let parts = tables
            .operations
            .iter()
            .filter(|part| part.name == row.name);
        let parts = parts.filter_map(|part| Some((part.on.clone()?, self.impact(&part.figures)?)));
        let most = parts.max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()));
        let mostly_on = most.zip(impact).and_then(|((on, part), whole)| {
            (part * whole > 0.0 && part.abs() >= whole.abs() / 2.0).then_some(on)
        });
        let change = self.change("syscalls", row, speaks);
        Some(Change {
            verdict,
            fails: changed.iter().any(|f| fails(f)),
            moves: direction::moves(row, self.unit),
            mostly_on,
            // A tail costs more than its part of the time.
            minor: change.minor && verdict == Verdict::Better,
            ..change
        })
    }

    pub(crate) fn subject(&self, table: &str, row: &Row) -> String {
        match &row.on {
            Some(on) if table == "errors" => format!("{} failing with {on}", row.name),
            Some(on) if table == "layers" => format!("layer {on} ({})", row.name),
            Some(on) => format!("{} on {on}", row.name),
            None => row.name.clone(),
        }
    }

    /// The larger side of a metric of all calls together.
    fn whole(&self, metric: Metric) -> f64 {
        let figure = self.totals.iter().find(|f| f.metric == metric);
        figure.map_or(0.0, |f| f.before.unwrap_or(0.0).max(f.after.unwrap_or(0.0)))
    }

    fn guards(&self, metric: Metric) -> bool {
        self.metrics.contains(&metric.guard())
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
            // A percentile has no total: use the time of its calls.
            Metric::P50
            | Metric::P90
            | Metric::P99
            | Metric::P999
            | Metric::Longest
            | Metric::Tail => {
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
        let least = if figure.metric.is_duration() {
            MIN_TIME
        } else {
            MIN_COUNT
        };
        // The limit holds for the count, whatever the reason.
        let more = figure.verdict == Verdict::Worse
            || (figure.verdict == Verdict::Differs && figure.before < figure.after);
        more && self.guards(figure.metric)
            && figure.change.is_none_or(|change| change > self.limit)
            && weight >= least
    }

    /// Of errors those guard that are no answers; of faults there are no too few.
    fn error(&self, row: &Row, figure: &Figure) -> Change {
        let change = Change {
            impact_ns: None,
            ..self.change("errors", row, figure)
        };
        match error_kind(&row.name, row.on.as_deref().unwrap_or_default()) {
            ErrorKind::Other => change,
            ErrorKind::Fault => Change {
                fails: self.fails(figure, 1.0),
                minor: false,
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
        let fails = self.fails(figure, weight);
        let impact = self.impact(&row.figures);
        let whole = self.whole(Metric::Time) * MIN_TIME;
        let trifling = weight < MIN_COUNT && impact.is_none_or(|ns| ns.abs() < whole);
        let petty = self.is_petty(table, row, figure, impact);
        let fails = fails && !petty;
        Change {
            subject: self.subject(table, row),
            table,
            fails,
            impact_ns: impact,
            minor: !fails && (trifling || petty),
            ..Self::plain(figure, weight)
        }
    }

    /// Whether a difference of counts is about calls that take next to no time.
    fn is_petty(&self, table: &str, row: &Row, figure: &Figure, impact: Option<f64>) -> bool {
        let counted = !figure.metric.is_time() && matches!(table, "operations" | "syscalls");
        let call = SYSCALLS.iter().find(|call| call.name == row.name);
        let other = call.is_some_and(|call| call.kind.purpose() == Purpose::Other);
        counted && other && impact.is_some_and(|ns| ns.abs() < self.run * PETTY)
    }

    fn total(&self, figure: &Figure) -> Change {
        let weight = self.weight(&[], figure);
        let told = figure.metric == Metric::Errors && self.errors_named;
        Change {
            fails: !told && self.fails(figure, weight),
            impact_ns: self.impact(self.totals),
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
            impact_ns: None,
            moves: Vec::new(),
            mostly_on: None,
            minor: false,
        }
    }

    fn finding(&self, finding: &FindingChange) -> Change {
        let [before, after] = finding.sessions.map(|n| n as f64);
        let [lost_before, lost_after] = finding.cost_ns;
        let change = match (finding.status, lost_before, lost_after) {
            (Status::Both, Some(b), Some(a)) if b > 0.0 => Some(a / b - 1.0),
            _ => None,
        };
        let time = self.whole(Metric::Time);
        let more = lost_after.unwrap_or(0.0) - lost_before.unwrap_or(0.0);
        let lost = more.abs();
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
            impact_ns: (lost_before.is_some() || lost_after.is_some()).then_some(more),
            moves: Vec::new(),
            mostly_on: None,
            minor: false,
        }
    }
}
