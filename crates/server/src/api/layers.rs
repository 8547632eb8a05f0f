//! `GET /sessions/ID/layers`: which layers the time went into.

use std::collections::HashMap;

use axum::extract::{Path, State};
use fathom_query::zoom::By;
use serde::{Deserialize, Serialize};

use super::Shared;
use super::tiles::{self, Extras};
use crate::calls::Calls;
use crate::columns::{ArrowAnswer, Columns, collect, numbers, texts};
use crate::error::ApiError;
use crate::job::{Lane, Stop};
use crate::selection::{Params, Selection, SelectionParams};
use crate::view::Reader;

/// Requests of an answer at most.
const MOST: usize = 5000;
/// Layers of an answer at most: more than there are.
const MOST_LAYERS: usize = 100;

/// Parameters besides the window and the filter.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct LayersParams {
    /// `windows`: time of each layer by bucket. `requests`: one row per call and layer.
    #[cfg_attr(test, schemars(extend("enum" = ["windows", "requests"])))]
    mode: Option<String>,
    /// Calls of mode `requests`; 500 by default, at most 5,000.
    limit: Option<usize>,
    /// With `-dur_ns`, mode `requests` has the longest calls, still in order of time.
    #[cfg_attr(test, schemars(extend("enum" = ["ts_ns", "-dur_ns"])))]
    sort: Option<String>,
}

/// Description of an answer.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct LayersMeta {
    /// Kinds of rows.
    pub mode: LayersMode,
    /// The window; with `windows` in whole buckets.
    pub from: i64,
    pub to: i64,
    /// With `windows` the width of the buckets, else 0.
    pub bucket_ns: i64,
    /// With `requests` how many there are in the window.
    pub total: f64,
}

/// The kind of the rows of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) enum LayersMode {
    /// Sums over time.
    Windows,
    /// Single requests.
    Requests,
}

/// `GET /sessions/ID/layers`.
pub(crate) async fn layers(
    State(app): State<Shared>,
    Path(id): Path<String>,
    Params(selection): Params<SelectionParams>,
    Params(params): Params<LayersParams>,
) -> Result<ArrowAnswer, ApiError> {
    let selection = selection.parse()?;
    let limit = params.limit.unwrap_or(500).min(MOST);
    let longest = match params.sort.as_deref() {
        None | Some("ts_ns") => false,
        Some("-dur_ns") => true,
        _ => return Err(ApiError::parameter("sort", "it is one of ts_ns, -dur_ns")),
    };
    let requests = match params.mode.as_deref().unwrap_or("windows") {
        "windows" => false,
        "requests" => true,
        _ => {
            return Err(ApiError::parameter(
                "mode",
                "it is one of windows, requests",
            ));
        }
    };
    let query = move |reader: &Reader, _: &Stop| match requests {
        true => of_requests(reader, &selection, limit, longest),
        false => of_windows(reader, &selection),
    };
    app.jobs.query(id, Lane::Quick, query).await
}

/// Time of layers within each bucket.
fn of_windows(reader: &Reader, selection: &Selection) -> Result<ArrowAnswer, ApiError> {
    let start = reader.started_at_ns();
    let extras = Extras {
        busy: true,
        ..Extras::default()
    };
    let sums = tiles::sums(reader, selection, By::Layer, MOST_LAYERS, extras)?;
    let time = numbers(&sums.rows, "ts_ns")?;
    let layer = texts(&sums.rows, "layer")?;
    let own = numbers(&sums.rows, "busy_ns")?;
    let mut rows: Vec<(i64, &str, f64)> = (0..sums.rows.num_rows())
        .map(|i| (time.value(i) as i64, layer.value(i), own.value(i)))
        .filter(|row| row.2 > 0.0)
        .collect();
    rows.sort_by_key(|row| (row.0, row.1));
    let mut columns = Columns::default();
    columns.numbers("t", rows.iter().map(|row| (row.0 - start) as f64));
    columns.words("layer", rows.iter().map(|row| Some(row.1)));
    columns.numbers("self_ns", rows.iter().map(|row| row.2));
    columns.answer(&LayersMeta {
        mode: LayersMode::Windows,
        from: sums.window_ns.start - start,
        to: sums.window_ns.end - start,
        bucket_ns: sums.bucket_ns,
        total: 0.0,
    })
}

/// The requests of a window one by one: in order of time, or the longest ones.
fn of_requests(
    reader: &Reader,
    selection: &Selection,
    limit: usize,
    longest: bool,
) -> Result<ArrowAnswer, ApiError> {
    let start = reader.started_at_ns();
    let window = selection.window(start, reader.span());
    let calls = Calls::of(reader, selection, window)?;
    let order = if longest {
        "dur_ns DESC, rid"
    } else {
        "ts_ns, rid"
    };
    let rows = collect(reader.db().run(&format!(
        "SELECT rid, (ts_ns - {start})::DOUBLE AS t, dur_ns::DOUBLE AS dur \
         FROM (SELECT rid, ts_ns, dur_ns FROM {} ORDER BY {order} LIMIT {limit})",
        calls.and("dur_ns IS NOT NULL"),
    ))?)?;
    let total = collect(
        reader
            .db()
            .run(&format!("SELECT count(*) AS total FROM {calls}"))?,
    )?;
    let (rid, t) = (numbers(&rows, "rid")?, numbers(&rows, "t")?);
    let dur = numbers(&rows, "dur")?;
    let slices = slices_of(reader, &rid)?;
    let mut order: Vec<usize> = (0..rows.num_rows()).collect();
    order.sort_by(|a, b| t.value(*a).total_cmp(&t.value(*b)));
    let mut columns: [Vec<f64>; 4] = Default::default();
    let mut names: Vec<String> = Vec::new();
    for i in order {
        let mut add = |layer: &str, ns: f64| {
            let values = [rid.value(i), t.value(i), dur.value(i), ns];
            for (column, value) in columns.iter_mut().zip(values) {
                column.push(value);
            }
            names.push(layer.to_string());
        };
        match slices.get(&(rid.value(i) as i64)) {
            Some(layers) => layers.iter().for_each(|(layer, ns)| add(layer, *ns)),
            None => add("syscall", dur.value(i)),
        }
    }
    let [rid, t, dur, own] = columns;
    let mut columns = Columns::default();
    columns.numbers("rid", rid);
    columns.numbers("t", t);
    columns.numbers("dur", dur);
    columns.words("layer", names.iter().map(|name| Some(name.as_str())));
    columns.numbers("self_ns", own);
    columns.answer(&LayersMeta {
        mode: LayersMode::Requests,
        from: window.from - start,
        to: window.to - start,
        bucket_ns: 0,
        total: numbers(&total, "total")?
            .iter()
            .flatten()
            .next()
            .unwrap_or(0.0),
    })
}

/// Layers and their own time, by request.
type Layers = HashMap<i64, Vec<(String, f64)>>;

fn slices_of(reader: &Reader, rids: &arrow::array::Float64Array) -> Result<Layers, ApiError> {
    let mut found = Layers::new();
    if rids.is_empty() {
        return Ok(found);
    }
    let list: Vec<String> = rids
        .iter()
        .flatten()
        .map(|rid| (rid as i64).to_string())
        .collect();
    let rows = collect(reader.db().run(&format!(
        "SELECT rid, layer, sum(self_ns)::DOUBLE AS self_ns FROM slices \
         WHERE rid IN ({}) GROUP BY ALL HAVING sum(self_ns) > 0 ORDER BY rid, layer",
        list.join(", ")
    ))?)?;
    let (rid, layer) = (numbers(&rows, "rid")?, texts(&rows, "layer")?);
    let own = numbers(&rows, "self_ns")?;
    for i in 0..rows.num_rows() {
        let layers = found.entry(rid.value(i) as i64).or_default();
        layers.push((layer.value(i).to_string(), own.value(i)));
    }
    Ok(found)
}
