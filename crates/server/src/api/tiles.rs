//! `GET /sessions/ID/tiles`: sums over time.

use arrow::array::{Array, AsArray};
use arrow::record_batch::RecordBatch;
use axum::extract::{Path, State};
use fathom_query::zoom::{Answer, By, Request};
use serde::{Deserialize, Serialize};

use super::Shared;
use crate::columns::{ArrowAnswer, Columns, column, flags, numbers, texts};
use crate::error::ApiError;
use crate::job::Lane;
use crate::selection::{Params, Selection, SelectionParams};
use crate::view::Reader;

/// Most keys that an answer has.
const MAX_KEYS: usize = 1000;
/// Rows that may be read to have buckets narrower than the pyramid's.
const MAX_ROWS: u64 = 1 << 20;

/// Parameters besides the window and the filter.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct TilesParams {
    /// The key of the rows; `none` by default. `purpose` is the effect of a call on stored data: read, write, sync, metadata, or other.
    /// With `layer`, `calls` counts visits and `time_ns` is their own time.
    #[cfg_attr(test, schemars(extend("enum" = ["none", "syscall", "class", "purpose", "thread", "process", "file", "layer", "reason"])))]
    by: Option<String>,
    /// Keys with rows of their own, those with the most time; 12 by default, at most 1,000. All others are one row, with `rest`.
    top: Option<usize>,
    /// With 1: histograms of durations.
    #[cfg_attr(test, schemars(extend("enum" = [0, 1])))]
    latency: Option<u8>,
    /// With 1: `busy_ns`, the time of calls (of visits, by layer) within the bucket, including calls that started before it. Buckets in which no call starts
    /// have rows, too. With more than a million calls in the window, calls shorter than a quarter of a bucket count where they begin:
    /// a thread that makes one call at a time may then have up to 1.25 in progress in a bucket.
    #[cfg_attr(test, schemars(extend("enum" = [0, 1])))]
    busy: Option<u8>,
    /// With 1: the page faults on mapped files besides, which are no calls: `faults` (their number) and `fault_ns` (the time that they took); `busy_ns`
    /// includes their time. By call, class, and purpose they have the key `page fault`. By layer this changes nothing: page faults
    /// have visits of layers.
    #[cfg_attr(test, schemars(extend("enum" = [0, 1])))]
    faults: Option<u8>,
}

/// Columns besides the sums.
#[derive(Clone, Copy, Default)]
pub(crate) struct Extras {
    pub latency: bool,
    pub busy: bool,
    pub faults: bool,
}

/// Description of an answer.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct TilesMeta {
    /// Width of the buckets.
    pub bucket_ns: i64,
    /// Beginning of the first bucket.
    pub from: i64,
    /// End of the last one.
    pub to: i64,
    /// Whether each key's rows have all its calls: otherwise some are in the rest, of keys
    /// whose row is `at_least` and of such as have no row in that bucket.
    pub exact: bool,
    /// The source of the answer.
    pub source: TilesSource,
    /// Whether the buckets are wider than asked for, as narrower ones would need too
    /// many rows.
    pub coarser: bool,
}

/// The sources of the sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) enum TilesSource {
    /// The pyramid alone.
    Pyramid,
    /// The rows alone.
    Rows,
    /// The pyramid, and rows that are not in it yet.
    Both,
}

/// By what to split.
pub(crate) fn by(name: Option<&str>) -> Result<By, ApiError> {
    Ok(match name.unwrap_or("none") {
        "none" => By::Nothing,
        "syscall" => By::Syscall,
        "class" => By::Class,
        "purpose" => By::Purpose,
        "thread" => By::Thread,
        "process" => By::Process,
        "file" => By::File,
        "layer" => By::Layer,
        "reason" => By::Reason,
        _ => {
            let takes =
                "it is one of none, syscall, class, purpose, thread, process, file, layer, reason";
            return Err(ApiError::parameter("by", takes));
        }
    })
}

/// `GET /sessions/ID/tiles`.
pub(crate) async fn tiles(
    State(app): State<Shared>,
    Path(id): Path<String>,
    Params(selection): Params<SelectionParams>,
    Params(params): Params<TilesParams>,
) -> Result<ArrowAnswer, ApiError> {
    let selection = selection.parse()?;
    let by = by(params.by.as_deref())?;
    let top = params.top.unwrap_or(12).min(MAX_KEYS);
    let given = |param: Option<u8>| param.unwrap_or(0) != 0;
    let extras = Extras {
        latency: given(params.latency),
        busy: given(params.busy),
        faults: given(params.faults),
    };
    let query = move |reader: &Reader, _: &crate::job::Stop| {
        let answer = sums(reader, &selection, by, top, extras)?;
        answer_of(reader, &answer, by, extras)
    };
    app.jobs.query(id, Lane::Quick, query).await
}

/// Asks the pyramid, or the rows.
pub(crate) fn sums(
    reader: &Reader,
    selection: &Selection,
    by: By,
    top: usize,
    extras: Extras,
) -> Result<Answer, ApiError> {
    let window = selection.window(reader.started_at_ns(), reader.span());
    // Visits of layers may belong to calls that started before the window.
    let calls_from = match by {
        By::Layer | By::Reason => 0,
        _ => window.from,
    };
    let request = Request {
        from_ns: Some(window.from),
        to_ns: Some(window.to),
        pixels: selection.pixels,
        by,
        filter: selection.filter.for_calls(reader.db(), calls_from)?,
        top: Some(top),
        latency: extras.latency,
        busy: extras.busy,
        faults: extras.faults,
        max_rows: Some(MAX_ROWS),
    };
    Ok(reader.zoom.query(&request)?)
}

/// Description of sums.
pub(crate) fn meta(reader: &Reader, answer: &Answer) -> Result<TilesMeta, ApiError> {
    let start = reader.started_at_ns();
    Ok(TilesMeta {
        bucket_ns: answer.bucket_ns,
        from: answer.window_ns.start - start,
        to: answer.window_ns.end - start,
        exact: answer.exact,
        source: match (answer.blocks, answer.parts) {
            (_, 0) => TilesSource::Pyramid,
            (0, _) => TilesSource::Rows,
            _ => TilesSource::Both,
        },
        coarser: answer.coarser,
    })
}

/// The key column, and the column with names of keys.
pub(crate) fn key_columns(by: By) -> Option<(&'static str, &'static str)> {
    match by {
        By::Nothing => None,
        By::Syscall => Some(("syscall", "syscall")),
        By::Class => Some(("class", "class")),
        By::Purpose => Some(("purpose", "purpose")),
        By::Thread => Some(("tid", "comm")),
        By::Process => Some(("pid", "comm")),
        By::File => Some(("file_id", "path")),
        By::Layer => Some(("layer", "layer")),
        By::Reason => Some(("reason", "reason")),
    }
}

fn answer_of(
    reader: &Reader,
    answer: &Answer,
    by: By,
    extras: Extras,
) -> Result<ArrowAnswer, ApiError> {
    let rows = &answer.rows;
    let start = reader.started_at_ns();
    let mut columns = Columns::default();
    let time = column(rows, "ts_ns")?.as_primitive_opt::<arrow::datatypes::Int64Type>();
    let time = time.ok_or_else(|| ApiError::internal("times are of another type"))?;
    columns.numbers("t", time.values().iter().map(|t| (t - start) as f64));
    match key_columns(by) {
        None => {
            let none = || (0..rows.num_rows()).map(|_| None::<&str>);
            columns.texts("key", none());
            columns.texts("label", none());
            columns.flags("rest", (0..rows.num_rows()).map(|_| false));
        }
        Some((key, label)) => {
            columns.texts("key", texts(rows, key)?.iter());
            columns.texts("label", texts(rows, label)?.iter());
            columns.flags("rest", flags(rows, "rest")?.iter().flatten());
        }
    }
    add_sums(&mut columns, rows)?;
    if rows.column_by_name("faults").is_some() {
        for name in ["faults", "fault_ns"] {
            columns.optional_numbers(name, numbers(rows, name)?.iter());
        }
    }
    if extras.busy {
        columns.optional_numbers("busy_ns", numbers(rows, "busy_ns")?.iter());
    }
    if extras.latency {
        let lists = latencies(rows)?;
        // Without the zeros at the end: most calls are short, and thousands of lists are sent.
        let shown = |list: &'_ Vec<f64>| list.iter().rposition(|n| *n > 0.0).map_or(0, |i| i + 1);
        let lists = lists.iter().map(|list| &list[..shown(list)]);
        columns.lists("latency", lists);
    }
    columns.answer(&meta(reader, answer)?)
}

/// The sums of an answer.
pub(crate) fn add_sums(columns: &mut Columns, rows: &RecordBatch) -> Result<(), ApiError> {
    for (name, column) in [
        ("calls", "calls"),
        ("errors", "errors"),
        ("bytes", "bytes"),
        ("bytes_read", "bytes_read"),
        ("bytes_written", "bytes_written"),
        ("time_ns", "total_ns"),
        ("max_ns", "max_ns"),
    ] {
        columns.optional_numbers(name, numbers(rows, column)?.iter());
    }
    columns.flags("at_least", flags(rows, "at_least")?.iter().flatten());
    Ok(())
}

/// The histograms of an answer.
pub(crate) fn latencies(rows: &RecordBatch) -> Result<Vec<Vec<f64>>, ApiError> {
    let unexpected = || ApiError::internal("histograms are of another type");
    let lists = column(rows, "latency")?.as_list_opt::<i32>();
    let lists = lists.ok_or_else(unexpected)?;
    let list = |i| {
        let values = lists.value(i);
        let values = values.as_primitive_opt::<arrow::datatypes::Int64Type>()?;
        Some(values.values().iter().map(|n| *n as f64).collect())
    };
    (0..lists.len())
        .map(|i| list(i).ok_or_else(unexpected))
        .collect()
}
