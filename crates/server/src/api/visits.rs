//! `GET /sessions/ID/visits`: what the calls of some threads did below themselves, layer by
//! layer, as single visits or as sums.

use axum::extract::{Path, State};
use serde::{Deserialize, Serialize};

use super::Shared;
use super::timeline::{begun_before, begun_in, chosen, expected_calls};
use crate::columns::{ArrowAnswer, Columns, collect, numbers, texts};
use crate::error::ApiError;
use crate::job::{Lane, Stop};
use crate::selection::{Params, Selection, SelectionParams, Window};
use crate::view::Reader;

/// Single visits in an answer at most.
const MOST: usize = 20_000;
/// Calls whose visits are summed up at most: all are read for it.
const MOST_READ: f64 = 2e6;

/// Parameters besides the window and the filter.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct VisitsParams {
    /// Ids of threads, separated by commas.
    lanes: Option<String>,
}

/// Description of an answer.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct VisitsMeta {
    /// Kinds of rows.
    pub mode: VisitsMode,
    /// The window.
    pub from: i64,
    pub to: i64,
    /// With `sums` the width of the buckets, else 0.
    pub bucket_ns: i64,
}

/// The kind of the rows of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) enum VisitsMode {
    /// Single visits: all that took place in the window, including visits that started before it.
    Visits,
    /// The layers' own time, by bucket.
    Sums,
    /// There are too many calls to look below each: no rows.
    Many,
}

/// `GET /sessions/ID/visits`.
pub(crate) async fn visits(
    State(app): State<Shared>,
    Path(id): Path<String>,
    Params(selection): Params<SelectionParams>,
    Params(params): Params<VisitsParams>,
) -> Result<ArrowAnswer, ApiError> {
    let mut selection = selection.parse()?;
    let lanes = params.lanes.as_deref().unwrap_or_default();
    selection.filter.tid = Some(chosen(lanes, selection.filter.tid.as_deref())?);
    let query = move |reader: &Reader, stop: &Stop| {
        let window = selection.window(reader.started_at_ns(), reader.span());
        let expected = expected_calls(reader, window);
        if expected > MOST_READ {
            return nothing(reader, window, VisitsMode::Many);
        }
        // As in the timeline: in short windows single ones fit, most likely.
        let likely = expected <= MOST as f64;
        let below = Below::of(reader, &selection, window)?;
        if likely && let Some(answer) = below.single(reader, window)? {
            return Ok(answer);
        }
        stop.check()?;
        let (sums, count) = below.sums(reader, window, selection.pixels)?;
        if !likely
            && count <= MOST as f64
            && let Some(answer) = below.single(reader, window)?
        {
            return Ok(answer);
        }
        Ok(sums)
    };
    app.jobs.query(id, Lane::Quick, query).await
}

/// The visits that are asked about, in SQL: with their thread.
struct Below {
    rows: String,
}

impl Below {
    fn of(reader: &Reader, selection: &Selection, window: Window) -> Result<Self, ApiError> {
        let from = window.from;
        // The request itself, at depth 0, is the row above.
        let visit = "SELECT tid, rid, layer, name, ts_ns, dur_ns, self_ns FROM slices";
        let begun = begun_in(reader, selection, window, "SELECT rid, tid FROM")?;
        let before = begun_before(reader, selection, window, "SELECT rid, tid, ts_ns FROM")?;
        if before.is_empty() {
            let inside = window.sql("slices.ts_ns");
            let rows = format!("{visit} JOIN ({begun}) USING (rid) WHERE {inside} AND depth > 0");
            return Ok(Self { rows });
        }
        let before = before.join(" UNION ALL ");
        let first = collect(reader.db().run(&format!(
            "SELECT coalesce(min(ts_ns), {from})::DOUBLE AS first FROM ({before})"
        ))?)?;
        let first = numbers(&first, "first")?.iter().flatten().next();
        // A double holds times since the boot of a machine to some hundred nanoseconds.
        let first = first.map_or(from, |first| first as i64 - 1024);
        let rows = format!(
            "{visit} JOIN ({begun} UNION ALL SELECT rid, tid FROM ({before})) USING (rid) \
             WHERE slices.ts_ns >= {first} AND slices.ts_ns < {to} \
             AND slices.ts_ns + dur_ns > {from} AND depth > 0",
            to = window.to,
        );
        Ok(Self { rows })
    }

    /// One by one, in order of time; `None` when there are too many.
    fn single(&self, reader: &Reader, window: Window) -> Result<Option<ArrowAnswer>, ApiError> {
        let start = reader.started_at_ns();
        let rows = collect(reader.db().run(&format!(
            "SELECT tid AS lane, layer, name, (ts_ns - {start})::DOUBLE AS t, dur_ns AS dur, \
             self_ns, rid FROM (SELECT * FROM ({}) LIMIT {}) ORDER BY lane, layer, t, dur DESC",
            self.rows,
            MOST + 1
        ))?)?;
        if rows.num_rows() > MOST {
            return Ok(None);
        }
        let mut columns = Columns::default();
        for name in ["lane", "t", "dur", "self_ns", "rid"] {
            columns.optional_numbers(name, numbers(&rows, name)?.iter());
        }
        for name in ["layer", "name"] {
            columns.words(name, texts(&rows, name)?.iter());
        }
        columns
            .answer(&meta(reader, window, VisitsMode::Visits, 0))
            .map(Some)
    }

    /// The own time of each layer by thread and bucket, and the number of visits. A visit that
    /// started before the window counts in the first bucket, with its remaining time.
    fn sums(
        &self,
        reader: &Reader,
        window: Window,
        pixels: u32,
    ) -> Result<(ArrowAnswer, f64), ApiError> {
        let width = window.bucket_ns(pixels);
        let from = window.from;
        let rows = collect(reader.db().run(&format!(
            "SELECT tid AS lane, layer, ((greatest(ts_ns, {from}) - {from}) // {width})::DOUBLE AS bucket, \
             count(*)::DOUBLE AS visits, sum(own)::DOUBLE AS time_ns, max(own)::DOUBLE AS max_ns \
             FROM (SELECT *, CASE WHEN ts_ns < {from} THEN least(self_ns, ts_ns + dur_ns - {from}) \
             ELSE self_ns END AS own FROM ({})) GROUP BY ALL ORDER BY ALL",
            self.rows
        ))?)?;
        let mut columns = Columns::default();
        let time_of = |bucket: f64| (from - reader.started_at_ns()) as f64 + bucket * width as f64;
        columns.numbers("t", numbers(&rows, "bucket")?.iter().flatten().map(time_of));
        for name in ["lane", "visits", "time_ns", "max_ns"] {
            columns.optional_numbers(name, numbers(&rows, name)?.iter());
        }
        columns.words("layer", texts(&rows, "layer")?.iter());
        let count = numbers(&rows, "visits")?.iter().flatten().sum();
        let answer = columns.answer(&meta(reader, window, VisitsMode::Sums, width))?;
        Ok((answer, count))
    }
}

fn nothing(reader: &Reader, window: Window, mode: VisitsMode) -> Result<ArrowAnswer, ApiError> {
    let mut columns = Columns::default();
    columns.numbers("lane", []);
    columns.answer(&meta(reader, window, mode, 0))
}

fn meta(reader: &Reader, window: Window, mode: VisitsMode, bucket_ns: i64) -> VisitsMeta {
    VisitsMeta {
        mode,
        from: window.from - reader.started_at_ns(),
        to: window.to - reader.started_at_ns(),
        bucket_ns,
    }
}
