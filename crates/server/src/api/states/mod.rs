//! `GET /sessions/ID/states`: the states of threads, as single periods or as sums by bucket.

mod history;
mod lives;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use arrow::array::Array;
use axum::extract::{Path, State};
use serde::{Deserialize, Serialize};

use self::history::{Life, Period, REASONS, Scope, Sums, Wait};
use super::Shared;
use super::timeline::{LONGER_NS, chosen};
use crate::columns::{ArrowAnswer, Columns, collect, numbers, texts};
use crate::error::ApiError;
use crate::job::{Lane, Stop};
use crate::selection::{Params, SelectionParams, Window};
use crate::view::Reader;

/// Waits whose periods are in an answer one by one, at most.
const MOST: f64 = 6_000.0;
/// Waits that are summed up at most: all are read for it.
const MOST_READ: f64 = 2e6;
/// Lanes times buckets, at most.
const MOST_CELLS: u32 = 40_000;

/// Parameters besides the window.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct StatesParams {
    /// Ids of threads, separated by commas.
    lanes: Option<String>,
}

/// Description of an answer.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct StatesMeta {
    /// Kinds of rows.
    pub mode: StatesMode,
    /// The window.
    pub from: i64,
    pub to: i64,
    /// With `sums` the width of the buckets, else 0.
    pub bucket_ns: i64,
    /// Waits of these threads that began in the window, or before it and reach into it.
    pub waits: f64,
    /// Rows of layer sched that were lost in the session: time that is said to be running may be
    /// waits.
    pub lost: f64,
}

/// The kind of the rows of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) enum StatesMode {
    /// Single periods: all of the lives of the threads in the window.
    Periods,
    /// Time by state and bucket.
    Sums,
    /// There are too many waits to read all: no rows.
    Many,
    /// The session has no waits: no rows.
    None,
}

/// `GET /sessions/ID/states`.
pub(crate) async fn states(
    State(app): State<Shared>,
    Path(id): Path<String>,
    Params(selection): Params<SelectionParams>,
    Params(params): Params<StatesParams>,
) -> Result<ArrowAnswer, ApiError> {
    let selection = selection.parse()?;
    let mut lanes = chosen(params.lanes.as_deref().unwrap_or_default(), None)?;
    lanes.sort_unstable();
    lanes.dedup();
    let query = move |reader: &Reader, stop: &Stop| {
        let window = selection.window(reader.started_at_ns(), reader.span());
        if reader.session.rows("waits") == 0 && !reader.session.is_live() {
            return empty(reader, window, StatesMode::None, 0.0);
        }
        let waits = Source::of(reader, window, &lanes)?;
        let count = waits.count(reader)?;
        if count > MOST_READ {
            return empty(reader, window, StatesMode::Many, count);
        }
        stop.check()?;
        let (lives, scope) = lives::of(reader, window, &lanes)?;
        stop.check()?;
        if count <= MOST {
            return periods(reader, &waits, &lives, scope);
        }
        let least = MOST_CELLS / u32::try_from(lanes.len().max(1)).unwrap_or(MOST_CELLS);
        let width = window.bucket_ns(selection.pixels.min(least).max(1));
        sums(reader, &waits, &lives, scope, width)
    };
    app.jobs.query(id, Lane::Quick, query).await
}

/// The waits of some threads that concern a window, in SQL.
struct Source {
    selects: Vec<String>,
}

impl Source {
    fn of(reader: &Reader, window: Window, lanes: &[i32]) -> Result<Self, ApiError> {
        let of_lanes = lives::in_list(lanes);
        let mut selects = Vec::new();
        if let Some(source) = reader.zoom.waits_in(window.from..window.to, None)? {
            let inside = window.sql("ts_ns");
            selects.push(format!(
                "SELECT * FROM {source} WHERE {inside} AND {of_lanes}"
            ));
        }
        // Waits that began before it and reach into it.
        let from = window.from;
        let mut least = 0;
        for most in LONGER_NS.into_iter().chain([i64::MAX]) {
            let (earliest, latest) = (from.saturating_sub(most), from.saturating_sub(least));
            if let Some(source) = reader.zoom.waits_in(earliest..latest, Some(least))? {
                selects.push(format!(
                    "SELECT * FROM {source} WHERE ts_ns >= {earliest} AND ts_ns < {latest} \
                     AND dur_ns > {least} AND dur_ns > {from} - ts_ns AND {of_lanes}"
                ));
            }
            least = most;
        }
        // Waits without an end reach up to the next one of their thread.
        selects.push(format!(
            "SELECT * FROM (SELECT * FROM waits WHERE dur_ns IS NULL AND ts_ns < {from} \
             AND {of_lanes}) AS open WHERE NOT EXISTS (SELECT 1 FROM waits WHERE \
             waits.tid = open.tid AND waits.ts_ns > open.ts_ns AND waits.ts_ns < {from} \
             AND {of_lanes})"
        ));
        Ok(Self { selects })
    }

    fn sql(&self, columns: &str) -> String {
        let each = |select: &String| select.replacen('*', columns, 1);
        let selects: Vec<String> = self.selects.iter().map(each).collect();
        selects.join(" UNION ALL ")
    }

    fn count(&self, reader: &Reader) -> Result<f64, ApiError> {
        let sql = format!("SELECT count(*) AS n FROM ({})", self.sql("tid"));
        let rows = collect(reader.db().run(&sql)?)?;
        Ok(numbers(&rows, "n")?.iter().flatten().sum())
    }

    /// The waits in order, and the names of their reasons.
    fn read(&self, reader: &Reader) -> Result<(Vec<Wait>, Vec<String>), ApiError> {
        let columns = "tid, ts_ns, dur_ns, coalesce(run_queue_ns, 0) AS queue, reason";
        let start = reader.started_at_ns();
        let mut rows = reader.db().run(&format!(
            "SELECT tid, (ts_ns - {start})::DOUBLE AS t, dur_ns, queue, reason FROM ({}) \
             ORDER BY tid, ts_ns",
            self.sql(columns)
        ))?;
        let mut names: Vec<String> = REASONS.map(str::to_owned).to_vec();
        let mut known: HashMap<String, u32> = HashMap::new();
        known.insert("cpu".into(), 0);
        let mut waits = Vec::new();
        while let Some(batch) = rows.next_batch()? {
            let (tid, t) = (numbers(&batch, "tid")?, numbers(&batch, "t")?);
            let (dur, queue) = (numbers(&batch, "dur_ns")?, numbers(&batch, "queue")?);
            let reasons = texts(&batch, "reason")?;
            for i in 0..batch.num_rows() {
                let name = reasons.value(i);
                let reason = match known.get(name) {
                    Some(place) => *place,
                    None => {
                        let place = names.len() as u32;
                        names.push(name.to_owned());
                        known.insert(name.to_owned(), place);
                        place
                    }
                };
                waits.push(Wait {
                    tid: tid.value(i) as i32,
                    begin: start.saturating_add(t.value(i) as i64),
                    dur: dur.is_valid(i).then(|| dur.value(i) as i64),
                    queue: queue.value(i) as i64,
                    reason,
                });
            }
        }
        Ok((waits, names))
    }
}

fn named(names: &[String], reason: Option<u32>) -> Option<&str> {
    names.get(reason? as usize).map(String::as_str)
}

fn periods(
    reader: &Reader,
    source: &Source,
    lives: &[Life],
    scope: Scope,
) -> Result<ArrowAnswer, ApiError> {
    let start = reader.started_at_ns();
    let (waits, names) = source.read(reader)?;
    // In the same order: what is shown of each.
    let more = "tid, ts_ns, rid, in_syscall, waker, waker_tid, woken_at_ns, cause, cause_id";
    let rows = collect(reader.db().run(&format!(
        "SELECT * REPLACE (CASE WHEN cause = 'block_request' THEN cause_id - {start} \
         ELSE cause_id END AS cause_id), (woken_at_ns - {start})::DOUBLE AS woken, \
         (ts_ns - {start})::DOUBLE AS began FROM ({}) ORDER BY tid, ts_ns",
        source.sql(more)
    ))?)?;
    if rows.num_rows() != waits.len() {
        return Err(ApiError::internal("rows have come in between"));
    }
    let mut found: Vec<Period> = Vec::new();
    history::walk(lives, &waits, scope, |period| found.push(period));
    let mut columns = Columns::default();
    columns.numbers("lane", found.iter().map(|p| f64::from(p.tid)));
    columns.numbers("t", found.iter().map(|p| (p.from - start) as f64));
    columns.numbers("dur", found.iter().map(|p| (p.until - p.from) as f64));
    columns.optional_numbers("whole", found.iter().map(|p| p.whole.map(|ns| ns as f64)));
    columns.words("state", found.iter().map(|p| Some(p.state)));
    columns.words("reason", found.iter().map(|p| named(&names, p.reason)));
    for name in ["began", "rid", "waker_tid", "woken", "cause_id"] {
        let values = numbers(&rows, name)?;
        let value = |p: &Period| {
            p.wait
                .filter(|i| values.is_valid(*i))
                .map(|i| values.value(i))
        };
        columns.optional_numbers(name, found.iter().map(value));
    }
    for name in ["in_syscall", "waker", "cause"] {
        let values = texts(&rows, name)?;
        let value = |p: &Period| {
            p.wait
                .filter(|i| values.is_valid(*i))
                .map(|i| values.value(i))
        };
        columns.words(name, found.iter().map(value));
    }
    let window = Window {
        from: scope.from,
        to: scope.to,
    };
    let meta = meta(reader, window, StatesMode::Periods, 0, waits.len() as f64)?;
    columns.answer(&meta)
}

fn sums(
    reader: &Reader,
    source: &Source,
    lives: &[Life],
    scope: Scope,
    width: i64,
) -> Result<ArrowAnswer, ApiError> {
    let (waits, names) = source.read(reader)?;
    let mut sums = Sums::new(scope.from, width);
    history::walk(lives, &waits, scope, |period| sums.add(&period));
    let rows = sums.rows();
    let from = (scope.from - reader.started_at_ns()) as f64;
    let mut columns = Columns::default();
    columns.numbers("lane", rows.iter().map(|r| f64::from(r.0)));
    columns.numbers("t", rows.iter().map(|r| from + (r.1 * width) as f64));
    columns.words("state", rows.iter().map(|r| Some(r.2)));
    columns.words("reason", rows.iter().map(|r| named(&names, r.3)));
    columns.numbers("time_ns", rows.iter().map(|r| r.4 as f64));
    let window = Window {
        from: scope.from,
        to: scope.to,
    };
    let meta = meta(reader, window, StatesMode::Sums, width, waits.len() as f64)?;
    columns.answer(&meta)
}

fn empty(
    reader: &Reader,
    window: Window,
    mode: StatesMode,
    waits: f64,
) -> Result<ArrowAnswer, ApiError> {
    let mut columns = Columns::default();
    columns.numbers("lane", []);
    columns.answer(&meta(reader, window, mode, 0, waits)?)
}

fn meta(
    reader: &Reader,
    window: Window,
    mode: StatesMode,
    bucket_ns: i64,
    waits: f64,
) -> Result<StatesMeta, ApiError> {
    let lost =
        collect(reader.db().run(
            "SELECT coalesce(sum(count), 0)::DOUBLE AS n FROM losses WHERE layer = 'sched'",
        )?)?;
    Ok(StatesMeta {
        mode,
        from: window.from - reader.started_at_ns(),
        to: window.to - reader.started_at_ns(),
        bucket_ns,
        waits,
        lost: numbers(&lost, "n")?.iter().flatten().sum(),
    })
}
