//! `GET /sessions/ID/timeline`: lanes of threads, as single calls or as sums.

use std::collections::HashMap;

use arrow::array::{Array, StringArray};
use axum::extract::{Path, State};
use fathom_query::zoom::{By, Request};
use serde::{Deserialize, Serialize};

use super::Shared;
use crate::columns::{ArrowAnswer, Columns, collect, numbers, texts};
use crate::error::ApiError;
use crate::job::Lane;
use crate::selection::{Params, Selection, SelectionParams, Window};
use crate::view::Reader;

/// Single calls in an answer at most.
const MOST: usize = 20_000;
/// Lanes in an answer at most.
const MOST_LANES: usize = 500;
/// Rows that may be read to have buckets narrower than the pyramid's.
const MAX_ROWS: u64 = 1 << 20;
/// Calls that started this long before the window are searched only among calls that took at least
/// this long, and so on: files contain the longest duration of each part.
pub(super) const LONGER_NS: [i64; 4] = [1_000_000, 100_000_000, 10_000_000_000, 1_000_000_000_000];

/// Parameters besides the window and the filter.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct TimelineParams {
    /// Ids of threads, separated by commas. Without it: all threads, the 500 with the most time if there are more.
    lanes: Option<String>,
}

/// Description of an answer.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct TimelineMeta {
    /// Kinds of rows.
    pub mode: TimelineMode,
    /// The window, or with `density` the buckets that it is in.
    pub from: i64,
    pub to: i64,
    /// With `density` the width of the buckets, else 0.
    pub bucket_ns: i64,
    /// With `density` whether every sum has all calls of its lane.
    pub exact: bool,
}

/// The kind of the rows of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) enum TimelineMode {
    /// Single calls: all that took place in the window, including calls that started before it.
    Events,
    /// Sums of the calls that began in a bucket.
    Density,
}

/// `GET /sessions/ID/timeline`.
pub(crate) async fn timeline(
    State(app): State<Shared>,
    Path(id): Path<String>,
    Params(selection): Params<SelectionParams>,
    Params(params): Params<TimelineParams>,
) -> Result<ArrowAnswer, ApiError> {
    let mut selection = selection.parse()?;
    if let Some(lanes) = params.lanes.as_deref() {
        selection.filter.tid = Some(chosen(lanes, selection.filter.tid.as_deref())?);
    }
    let query = move |reader: &Reader, stop: &crate::job::Stop| {
        let window = selection.window(reader.started_at_ns(), reader.span());
        // In short windows single calls fit, most likely: then sums need not be asked for.
        let likely = expected_calls(reader, window) <= MOST as f64;
        if likely && let Some(answer) = events(reader, &selection, window)? {
            return Ok(answer);
        }
        stop.check()?;
        let density = density(reader, &selection, window)?;
        if !likely
            && density.calls <= MOST as f64
            && let Some(answer) = events(reader, &selection, window)?
        {
            return Ok(answer);
        }
        density.answer(reader)
    };
    app.jobs.query(id, Lane::Quick, query).await
}

/// The requested lanes that match the filter.
pub(super) fn chosen(lanes: &str, filter: Option<&[i32]>) -> Result<Vec<i32>, ApiError> {
    let mut chosen = Vec::new();
    for lane in lanes.split(',').filter(|lane| !lane.is_empty()) {
        let tid: i32 = lane
            .parse()
            .map_err(|_| ApiError::parameter("lanes", "it lists ids of threads"))?;
        if filter.is_none_or(|list| list.contains(&tid)) {
            chosen.push(tid);
        }
    }
    if chosen.len() > MOST_LANES {
        let what = format!("there are more than {MOST_LANES}");
        return Err(ApiError::parameter("lanes", what));
    }
    Ok(chosen)
}

/// Calls in a window if they were spread evenly over the session.
pub(super) fn expected_calls(reader: &Reader, window: Window) -> f64 {
    let (first, last) = reader.span().unwrap_or((0, 0));
    let part = (window.to - window.from) as f64 / (last - first).max(1) as f64;
    reader.session.rows("syscalls") as f64 * part
}

struct Density {
    answer: fathom_query::zoom::Answer,
    calls: f64,
}

fn density(reader: &Reader, selection: &Selection, window: Window) -> Result<Density, ApiError> {
    let request = Request {
        from_ns: Some(window.from),
        to_ns: Some(window.to),
        pixels: selection.pixels,
        by: By::Thread,
        filter: selection.filter.for_calls(reader.db(), window.from)?,
        top: Some(MOST_LANES),
        latency: false,
        busy: false,
        faults: false,
        max_rows: Some(MAX_ROWS),
    };
    let answer = reader.zoom.query(&request)?;
    let calls = numbers(&answer.rows, "calls")?.iter().flatten().sum();
    Ok(Density { answer, calls })
}

impl Density {
    fn answer(&self, reader: &Reader) -> Result<ArrowAnswer, ApiError> {
        let rows = &self.answer.rows;
        let start = reader.started_at_ns();
        let meta = super::tiles::meta(reader, &self.answer)?;
        let mut columns = Columns::default();
        columns.optional_numbers("lane", numbers(rows, "tid")?.iter());
        let t = numbers(rows, "ts_ns")?;
        columns.numbers("t", t.iter().flatten().map(|t| t - start as f64));
        for (name, column) in [
            ("calls", "calls"),
            ("errors", "errors"),
            ("time_ns", "total_ns"),
            ("max_ns", "max_ns"),
            ("bytes", "bytes"),
        ] {
            columns.optional_numbers(name, numbers(rows, column)?.iter());
        }
        columns.answer(&TimelineMeta {
            mode: TimelineMode::Density,
            from: meta.from,
            to: meta.to,
            bucket_ns: meta.bucket_ns,
            exact: meta.exact,
        })
    }
}

/// The calls that took place in the window; `None` when there are too many.
fn events(
    reader: &Reader,
    selection: &Selection,
    window: Window,
) -> Result<Option<ArrowAnswer>, ApiError> {
    let start = reader.started_at_ns();
    let select = format!(
        "SELECT tid, ts_ns - {start} AS t, dur_ns AS dur, rid, syscall, class, errno, bytes, \
         file_id, coalesce(path, path_arg, args) AS label FROM"
    );
    let mut selects = vec![begun_in(reader, selection, window, &select)?];
    selects.extend(begun_before(reader, selection, window, &select)?);
    let rows = collect(reader.db().run(&format!(
        "SELECT * FROM ({}) LIMIT {}",
        selects.join(" UNION ALL "),
        MOST + 1
    ))?)?;
    if rows.num_rows() > MOST {
        return Ok(None);
    }
    let (lane, t) = (numbers(&rows, "tid")?, numbers(&rows, "t")?);
    let dur = numbers(&rows, "dur")?;
    let mut order: Vec<usize> = (0..rows.num_rows()).collect();
    order.sort_by(|a, b| {
        let key = |i: usize| (lane.value(i), t.value(i));
        let longest_first = || dur.value(*b).total_cmp(&dur.value(*a));
        key(*a)
            .partial_cmp(&key(*b))
            .unwrap_or(std::cmp::Ordering::Equal)
            .then_with(longest_first)
    });
    let calls = order
        .iter()
        .map(|i| (lane.value(*i) as i64, t.value(*i), dur.value(*i)));
    let depths = depths(calls);
    let mut columns = Columns::default();
    for (name, column) in [("lane", "tid"), ("t", "t"), ("dur", "dur"), ("rid", "rid")] {
        let values = numbers(&rows, column)?;
        let value = |i: &usize| values.is_valid(*i).then(|| values.value(*i));
        columns.optional_numbers(name, order.iter().map(value));
    }
    let text =
        |values: &StringArray, i: usize| values.is_valid(i).then(|| values.value(i).to_string());
    for name in ["syscall", "class", "errno"] {
        let values = texts(&rows, name)?;
        let words: Vec<Option<String>> = order.iter().map(|i| text(&values, *i)).collect();
        columns.words(name, words.iter().map(Option::as_deref));
    }
    for (name, column) in [("bytes", "bytes"), ("file", "file_id")] {
        let values = numbers(&rows, column)?;
        let value = |i: &usize| values.is_valid(*i).then(|| values.value(*i));
        columns.optional_numbers(name, order.iter().map(value));
    }
    let labels = texts(&rows, "label")?;
    columns.texts("label", order.iter().map(|i| text(&labels, *i)));
    columns.numbers("depth", depths.into_iter().map(f64::from));
    let meta = TimelineMeta {
        mode: TimelineMode::Events,
        from: window.from - start,
        to: window.to - start,
        bucket_ns: 0,
        exact: true,
    };
    columns.answer(&meta).map(Some)
}

/// The calls that began in a window, in SQL; `select` ends with FROM.
pub(super) fn begun_in(
    reader: &Reader,
    selection: &Selection,
    window: Window,
    select: &str,
) -> Result<String, ApiError> {
    Ok(format!(
        "{select} {} WHERE {}{}",
        reader.zoom.calls_in(window.from..window.to)?,
        window.sql("ts_ns"),
        filter_sql(reader, selection)?,
    ))
}

/// Calls that started before it and were still in progress, as several statements.
pub(super) fn begun_before(
    reader: &Reader,
    selection: &Selection,
    window: Window,
    select: &str,
) -> Result<Vec<String>, ApiError> {
    let filter = filter_sql(reader, selection)?;
    let from = window.from;
    let mut selects = Vec::new();
    let mut least = 0;
    for most in LONGER_NS.into_iter().chain([i64::MAX]) {
        // Calls that started from `most` to `least` before the window.
        let earliest = from.saturating_sub(most);
        let latest = from.saturating_sub(least);
        if let Some(source) = reader.zoom.long_calls_in(earliest..latest, least)? {
            selects.push(format!(
                "{select} {source} WHERE ts_ns >= {earliest} AND ts_ns < {latest} \
                 AND dur_ns > {least} AND dur_ns > {from} - ts_ns{filter}",
            ));
        }
        least = most;
    }
    Ok(selects)
}

fn filter_sql(reader: &Reader, selection: &Selection) -> Result<String, ApiError> {
    let filter = selection.filter.for_calls(reader.db(), 0)?;
    let more = |filter| format!(" AND {filter}");
    Ok(filter.sql().map_or(String::new(), more))
}

/// The depth of each call, so that overlapping calls of a lane are drawn below each other: `calls`
/// are lane, start, and duration, ordered by lane and start.
fn depths(calls: impl Iterator<Item = (i64, f64, f64)>) -> Vec<u32> {
    // Ends of the last calls at each depth of a lane.
    let mut ends: HashMap<i64, Vec<f64>> = HashMap::new();
    calls
        .map(|(lane, begin, dur)| {
            let ends = ends.entry(lane).or_default();
            let free = ends.iter().position(|end| *end <= begin);
            let depth = free.unwrap_or(ends.len());
            if depth == ends.len() {
                ends.push(0.0);
            }
            if let Some(end) = ends.get_mut(depth) {
                *end = begin + dur;
            }
            depth as u32
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_overlaps_stands_below() {
        let calls = [
            (1, 0.0, 10.0),
            (1, 2.0, 3.0),
            (1, 4.0, 3.0),
            (1, 5.0, 1.0),
            (1, 10.0, 1.0),
            (2, 0.0, 5.0),
        ];
        assert_eq!(depths(calls.into_iter()), [0, 1, 2, 1, 0, 0]);
    }

    #[test]
    fn lanes_are_threads_that_the_filter_has() {
        assert_eq!(chosen("1,2,3", Some(&[2, 9])).unwrap(), [2]);
        assert_eq!(chosen("", None).unwrap(), [] as [i32; 0]);
        assert!(chosen("1;DROP", None).is_err());
    }
}
