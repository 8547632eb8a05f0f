//! `GET /sessions/ID/difference`: how some calls of a window differ from its other calls.

use axum::extract::{Path, State};
use serde::{Deserialize, Serialize};

use super::{Json, Shared};
use crate::calls::Calls;
use crate::columns::{collect, numbers, texts};
use crate::error::ApiError;
use crate::job::{Lane, Stop};
use crate::selection::{Params, Selection, SelectionParams};
use crate::view::Reader;

/// Values of a dimension in an answer at most.
const MOST: usize = 12;
/// Calls of the box that an answer names, the longest.
const EXAMPLES: usize = 8;
/// Calls in the window up to which the visits of layers are summed up.
const MOST_READ: f64 = 5e6;

/// The box: calls that began from `begin` to before `end` and took from `least` to before `most`
/// nanoseconds.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct BoxParams {
    /// Calls of the box begin here or later, nanoseconds since the start.
    begin: f64,
    /// Calls of the box begin before this time.
    end: f64,
    /// They take this long or longer, nanoseconds.
    least: f64,
    /// They take less than this.
    most: f64,
}

/// How the calls in a box differ from the rest.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct DifferenceAnswer {
    /// Calls in the box, and all others of the window.
    pub inside: BoxSide,
    pub outside: BoxSide,
    /// Dimensions and their values, in each those first whose shares differ most.
    pub dimensions: Vec<BoxDimension>,
    /// The longest calls in the box.
    pub examples: Vec<LongCall>,
}

/// Calls of one side.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct BoxSide {
    pub calls: f64,
    pub time_ns: f64,
    pub bytes: f64,
}

/// Properties that distinguish calls.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct BoxDimension {
    /// syscall, file, thread, size, error or layer.
    pub name: String,
    pub values: Vec<BoxShare>,
}

/// A value, and its share of either side: of the calls, of the time with layers.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct BoxShare {
    /// As filters take it; null for calls without one.
    pub key: Option<String>,
    /// For people; null for calls without one.
    pub label: Option<String>,
    pub inside: f64,
    pub outside: f64,
}

/// A call in the box.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct LongCall {
    pub rid: f64,
    pub t: f64,
    pub dur_ns: f64,
    pub syscall: String,
    pub path: Option<String>,
}

/// `GET /sessions/ID/difference`.
pub(crate) async fn difference(
    State(app): State<Shared>,
    Path(id): Path<String>,
    Params(selection): Params<SelectionParams>,
    Params(part): Params<BoxParams>,
) -> Result<Json<DifferenceAnswer>, ApiError> {
    let selection = selection.parse()?;
    let numbers = [part.begin, part.end, part.least, part.most];
    if numbers.iter().any(|n| !n.is_finite()) || part.begin >= part.end || part.least >= part.most {
        return Err(ApiError::parameter(
            "begin",
            "a box begins before it ends, in time and in duration",
        ));
    }
    let query = move |reader: &Reader, stop: &Stop| answer(reader, stop, &selection, &part);
    app.jobs.query(id, Lane::Slow, query).await.map(Json)
}

fn answer(
    reader: &Reader,
    stop: &Stop,
    selection: &Selection,
    part: &BoxParams,
) -> Result<DifferenceAnswer, ApiError> {
    let start = reader.started_at_ns();
    let window = selection.window(start, reader.span());
    let calls = Calls::of(reader, selection, window)?;
    // A duration fits 63 bits; the casts saturate.
    let inside = format!(
        "(ts_ns >= {} AND ts_ns < {} AND dur_ns >= {} AND dur_ns < {})",
        start.saturating_add(part.begin.floor() as i64),
        start.saturating_add(part.end.ceil() as i64),
        part.least.max(0.0) as i64,
        part.most as i64,
    );
    let with_duration = calls.and("dur_ns IS NOT NULL");
    let rows = collect(reader.db().run(&format!(
        "SELECT CASE WHEN NOT grouping(syscall) THEN 'syscall' \
         WHEN NOT grouping(file_id) THEN 'file' WHEN NOT grouping(tid) THEN 'thread' \
         WHEN NOT grouping(size) THEN 'size' WHEN NOT grouping(errno) THEN 'error' \
         ELSE 'all' END AS name, \
         coalesce(syscall, file_id::VARCHAR, tid::VARCHAR, size::VARCHAR, errno) AS key, inside, \
         count(*)::DOUBLE AS calls, sum(dur_ns)::DOUBLE AS time, \
         coalesce(sum(bytes), 0)::DOUBLE AS bytes \
         FROM (SELECT syscall, file_id, tid, errno, dur_ns, bytes, \
         CASE WHEN bytes > 0 THEN 1::BIGINT << (length(bin(bytes)) - 1) END AS size, \
         {inside} AS inside FROM {with_duration}) \
         GROUP BY GROUPING SETS ((inside), (inside, syscall), (inside, file_id), (inside, tid), \
         (inside, size), (inside, errno))"
    ))?)?;
    let (name, key) = (texts(&rows, "name")?, texts(&rows, "key")?);
    let is_inside = crate::columns::flags(&rows, "inside")?;
    let (count, time) = (numbers(&rows, "calls")?, numbers(&rows, "time")?);
    let bytes = numbers(&rows, "bytes")?;
    let mut sides = [BoxSide::default(); 2];
    let mut tables: Vec<Shares> = ["syscall", "file", "thread", "size", "error"]
        .map(Shares::new)
        .into();
    for i in 0..rows.num_rows() {
        let side = usize::from(!is_inside.value(i));
        if name.value(i) == "all" {
            sides[side] = BoxSide {
                calls: count.value(i),
                time_ns: time.value(i),
                bytes: bytes.value(i),
            };
        } else if let Some(table) = tables.iter_mut().find(|t| t.name == name.value(i)) {
            let key = key.iter().nth(i).flatten();
            table.add(key, side, count.value(i));
        }
    }
    stop.check()?;
    if sides[0].calls + sides[1].calls <= MOST_READ {
        tables.push(layers(reader, &with_duration, &inside, window.from)?);
    }
    let mut dimensions = Vec::new();
    for table in tables {
        stop.check()?;
        dimensions.push(table.dimension(reader)?);
    }
    Ok(DifferenceAnswer {
        inside: sides[0],
        outside: sides[1],
        dimensions,
        examples: examples(reader, &calls.and(&inside), start)?,
    })
}

/// Time by layer of either side.
fn layers(reader: &Reader, calls: &str, inside: &str, from: i64) -> Result<Shares, ApiError> {
    let rows = collect(reader.db().run(&format!(
        "WITH calls AS (SELECT rid, dur_ns, {inside} AS inside FROM {calls}), \
         visits AS (SELECT layer, inside, sum(self_ns) AS ns FROM slices JOIN calls USING (rid) \
         WHERE slices.ts_ns >= {from} GROUP BY ALL), \
         calls_sum AS (SELECT inside, sum(dur_ns) AS ns FROM calls GROUP BY 1) \
         SELECT layer, inside, ns::DOUBLE AS ns FROM visits UNION ALL \
         SELECT 'syscall', inside, (c.ns - coalesce((SELECT sum(ns) FROM visits AS v \
         WHERE v.inside = c.inside), 0))::DOUBLE FROM calls_sum AS c"
    ))?)?;
    let (layer, ns) = (texts(&rows, "layer")?, numbers(&rows, "ns")?);
    let is_inside = crate::columns::flags(&rows, "inside")?;
    let mut shares = Shares::new("layer");
    for i in 0..rows.num_rows() {
        let side = usize::from(!is_inside.value(i));
        shares.add(Some(layer.value(i)), side, ns.value(i).max(0.0));
    }
    Ok(shares)
}

fn examples(reader: &Reader, calls: &str, start: i64) -> Result<Vec<LongCall>, ApiError> {
    let rows = collect(reader.db().run(&format!(
        "SELECT rid, ts_ns, dur_ns, syscall, path FROM {calls} \
         ORDER BY dur_ns DESC, rid LIMIT {EXAMPLES}"
    ))?)?;
    let (rid, t) = (numbers(&rows, "rid")?, numbers(&rows, "ts_ns")?);
    let (dur, syscall) = (numbers(&rows, "dur_ns")?, texts(&rows, "syscall")?);
    let path = texts(&rows, "path")?;
    let paths = path.iter().map(|p| p.map(str::to_string));
    Ok(paths
        .enumerate()
        .map(|(i, path)| LongCall {
            rid: rid.value(i),
            t: t.value(i) - start as f64,
            dur_ns: dur.value(i),
            syscall: syscall.value(i).to_string(),
            path,
        })
        .collect())
}

/// Sums of the values of a dimension, inside and outside of the box.
struct Shares {
    name: &'static str,
    keys: Vec<Option<String>>,
    sums: Vec<[f64; 2]>,
}

impl Shares {
    fn new(name: &'static str) -> Self {
        Self {
            name,
            keys: Vec::new(),
            sums: Vec::new(),
        }
    }

    fn add(&mut self, key: Option<&str>, side: usize, amount: f64) {
        let known = self.keys.iter().position(|k| k.as_deref() == key);
        let place = known.unwrap_or_else(|| {
            self.keys.push(key.map(str::to_string));
            self.sums.push([0.0; 2]);
            self.keys.len() - 1
        });
        if let Some(sum) = self.sums.get_mut(place).and_then(|sums| sums.get_mut(side)) {
            *sum += amount;
        }
    }

    /// The values whose shares differ most, with names.
    fn dimension(self, reader: &Reader) -> Result<BoxDimension, ApiError> {
        let total = |side: usize| self.sums.iter().map(|s| s[side]).sum::<f64>();
        let totals = [
            total(0).max(f64::MIN_POSITIVE),
            total(1).max(f64::MIN_POSITIVE),
        ];
        let mut values: Vec<(Option<String>, f64, f64)> = self
            .keys
            .into_iter()
            .zip(&self.sums)
            .map(|(key, sums)| (key, sums[0] / totals[0], sums[1] / totals[1]))
            .collect();
        let apart = |v: &(Option<String>, f64, f64)| (v.1 - v.2).abs();
        values.sort_by(|a, b| apart(b).total_cmp(&apart(a)).then_with(|| a.0.cmp(&b.0)));
        values.truncate(MOST);
        let keys: Vec<&str> = values.iter().filter_map(|v| v.0.as_deref()).collect();
        let names = super::top::names_of(reader, self.name, &keys)?;
        let label = |key: &Option<String>| match &names {
            Some(names) => names.get(key.as_ref()?).cloned(),
            None => key.clone(),
        };
        Ok(BoxDimension {
            name: self.name.to_string(),
            values: values
                .into_iter()
                .map(|(key, inside, outside)| BoxShare {
                    label: label(&key),
                    key,
                    inside,
                    outside,
                })
                .collect(),
        })
    }
}
