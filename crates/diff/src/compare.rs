//! Pairs the figures of two sides.

use crate::DiffError;
use crate::comparison_rows::Work;
use crate::direction;
use crate::findings;
use crate::headline;
use crate::profile::Profile;
use crate::regression_gate::{self, Guarding};
use crate::result::{Diff, Figure, Guard, Method, Metric, Outcome, SessionRef, Side};
use crate::stats;
use crate::timed;
use crate::verdict::{self, ALPHA};

#[derive(Clone, Debug)]
pub struct Options {
    /// How many percent worse is too much.
    pub fail_above_percent: f64,
    /// The guarded metrics; `None`: calls, bytes, errors, and findings, and with three or more
    /// sessions on each side also time and p99.
    pub guards: Option<Vec<Metric>>,
}

impl Default for Options {
    /// 10 %.
    fn default() -> Self {
        Self {
            fail_above_percent: 10.0,
            guards: None,
        }
    }
}

/// Number of sessions per side from which on times are guarded by default.
const SESSIONS_FOR_TIMES: usize = 3;

/// Compares two sides.
///
/// # Errors
/// [`DiffError::NoSession`] when a side has none.
pub fn compare(
    before: &[Profile],
    after: &[Profile],
    options: &Options,
) -> Result<Diff, DiffError> {
    for (side, name) in [(before, "before"), (after, "after")] {
        if side.is_empty() {
            return Err(DiffError::NoSession(name));
        }
    }
    let mut work = Work::new([before, after]);
    let asked = options.guards.iter().flatten();
    work.judge.quiet = asked.into_iter().any(|metric| metric.is_time());
    let mut tables = work.tables();
    let mut totals = work.totals();
    {
        let rows = tables.all().into_iter().flatten();
        let figures = rows.flat_map(|row| &mut row.figures);
        verdict::settle(&mut totals.iter_mut().chain(figures).collect::<Vec<_>>());
    }
    let mut tables = tables.finish();
    tables.syscalls.iter_mut().for_each(direction::reconcile);
    for row in &mut tables.operations {
        let calls = tables.syscalls.iter().find(|calls| calls.name == row.name);
        direction::reconcile_part(row, calls);
    }
    let findings = findings::compare(
        [before, after],
        &work.matcher,
        &work.judge,
        &tables,
        work.comparable.findings(),
    );
    let metrics = options.guards.clone().unwrap_or_else(|| {
        let repeated = work.judge.sessions.iter().all(|n| *n >= SESSIONS_FOR_TIMES);
        let times = |metric: &Metric| !metric.is_duration();
        Metric::GUARDS
            .into_iter()
            .filter(|m| repeated || times(m))
            .collect()
    });
    let mut totals: Vec<Figure> = totals.into_iter().map(|d| d.figure).collect();
    let rates = work.judge.rates;
    let fixed = match rates {
        true => None,
        false => timed::note([before, after], &totals),
    };
    let amount = match (rates, &fixed) {
        (true, _) => Some(timed::OPEN_ENDED),
        (false, Some(_)) => Some(timed::AS_LONG),
        (false, None) => None,
    };
    direction::reconcile_counts(&mut totals, amount);
    for row in tables.all_mut().into_iter().flatten() {
        direction::reconcile_counts(&mut row.figures, amount);
    }
    let durations = [before, after].map(|side| {
        let each: Vec<f64> = side.iter().map(|p| p.duration_ns as f64).collect();
        stats::mean(&each)
    });
    let guarding = Guarding::new(&totals, &tables, &metrics, options.fail_above_percent).of_runs(
        durations,
        rates,
        fixed.as_ref().map(|_| tables.syscalls.as_slice()),
    );
    let changes = regression_gate::changes(&guarding, &tables, &findings);
    let unproven = regression_gate::unproven(&guarding, &tables, &findings);
    let headline = headline::headline(&work, &guarding, &tables, [&changes, &unproven], durations);
    let mut notes = work.comparable.notes;
    notes.extend(fixed);
    let failures = changes.iter().filter(|c| c.fails).count();
    let changed = !changes.is_empty() || totals.iter().any(|f| f.verdict.is_change());
    Ok(Diff {
        outcome: match (failures, changed) {
            (1.., _) => Outcome::Worse,
            (0, true) => Outcome::Changed,
            (0, false) => Outcome::WithinNoise,
        },
        headline,
        before: side(before),
        after: side(after),
        method: Method {
            text: work.judge.text(),
            per_second: work.judge.rates,
            alpha: ALPHA,
            counted: work.judge.counted,
            equal: work.judge.equal,
            repeats: work.judge.repeats(),
            run_to_run: work.judge.least_factor(),
        },
        notes,
        guard: Guard {
            metrics,
            fail_above_percent: options.fail_above_percent,
            failed: failures > 0,
            failures,
        },
        changes,
        unproven,
        totals,
        tables,
        findings,
    })
}

fn side(profiles: &[Profile]) -> Side {
    let session = |p: &Profile| SessionRef {
        name: p.name.clone(),
        id: p.id.clone(),
        command: p.command.clone(),
        duration_ns: p.duration_ns,
        calls: p.operations.iter().map(|o| o.calls).sum(),
    };
    Side {
        sessions: profiles.iter().map(session).collect(),
    }
}
