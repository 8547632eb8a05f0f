//! `GET /sessions/ID/devices`, `/devices/NAME` and `/devices/NAME/at_once`: requests to devices.

use arrow::array::Array;
use axum::extract::{Path, State};
use fathom_query::escape::sql_string;
use serde::{Deserialize, Serialize};

use super::{Json, Shared};
use crate::calls::caused_by;
use crate::columns::{ArrowAnswer, Columns, collect, numbers, texts};
use crate::error::ApiError;
use crate::job::{Lane, Stop};
use crate::selection::{Params, Selection, SelectionParams};
use crate::view::Reader;

/// Powers of two in a histogram.
const BUCKETS: usize = 40;
/// The processes to list.
const WHO: usize = 10;

/// A device.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct Device {
    pub name: String,
    /// Requests completed in the window, of all programs on the machine; with a filter, requests
    /// caused by matching calls.
    pub requests: f64,
    /// Of which a recorded request caused.
    pub recorded: f64,
    /// Of which failed.
    pub errors: f64,
    pub bytes_read: f64,
    pub bytes_written: f64,
    /// From submission to the device's driver; null when that was not seen.
    pub queue_p50_ns: Option<f64>,
    pub queue_p99_ns: Option<f64>,
    /// From the driver to completion.
    pub device_p50_ns: Option<f64>,
    pub device_p99_ns: Option<f64>,
    pub device_max_ns: Option<f64>,
    /// Requests that the device had when it got one, which counts.
    pub mean_depth: Option<f64>,
    pub max_depth: Option<f64>,
    /// Submitting threads, by time in the device.
    pub who: Vec<DeviceUser>,
}

/// Threads of one name that submitted requests to a device.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct DeviceUser {
    pub comm: Option<String>,
    pub requests: f64,
    pub bytes: f64,
    /// Sum of the times in the device; requests overlap.
    pub device_ns: f64,
}

/// Description of a device over time.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct DeviceMeta {
    pub bucket_ns: i64,
    pub from: i64,
    pub to: i64,
}

/// Parameters besides the window and the filter.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct DeviceParams {
    /// With `comm`, rows per name of the thread that submitted.
    #[cfg_attr(test, schemars(extend("enum" = ["none", "comm"])))]
    by: Option<String>,
}

/// The requests to devices that are asked about: the condition behind WHERE.
fn chosen(reader: &Reader, selection: &Selection) -> Result<String, ApiError> {
    let window = selection.window(reader.started_at_ns(), reader.span());
    let causes = caused_by(reader, selection, "rid", None, window.to)?;
    Ok(format!("{}{causes}", window.sql("ts_ns")))
}

/// `GET /sessions/ID/devices`.
pub(crate) async fn devices(
    State(app): State<Shared>,
    Path(id): Path<String>,
    Params(selection): Params<SelectionParams>,
) -> Result<Json<Vec<Device>>, ApiError> {
    let selection = selection.parse()?;
    let query = move |reader: &Reader, _: &Stop| list(reader, &selection);
    app.jobs.query(id, Lane::Quick, query).await.map(Json)
}

fn list(reader: &Reader, selection: &Selection) -> Result<Vec<Device>, ApiError> {
    let chosen = chosen(reader, selection)?;
    let rows = collect(reader.db().run(&format!(
        "SELECT device, count(*) AS requests, count(rid) AS recorded, \
         count(*) FILTER (error <> 0) AS errors, \
         coalesce(sum(bytes) FILTER (op = 'read'), 0)::DOUBLE AS bytes_read, \
         coalesce(sum(bytes) FILTER (op IN ('write', 'zone_append')), 0)::DOUBLE AS bytes_written, \
         quantile_disc(issued_at_ns - queued_at_ns, [0.5, 0.99]) AS q, \
         q[1] AS queue_p50_ns, q[2] AS queue_p99_ns, \
         quantile_disc(completed_at_ns - issued_at_ns, [0.5, 0.99]) AS d, \
         d[1] AS device_p50_ns, d[2] AS device_p99_ns, \
         max(completed_at_ns - issued_at_ns) AS device_max_ns, \
         avg(queue_depth) AS mean_depth, max(queue_depth) AS max_depth \
         FROM block WHERE {chosen} GROUP BY device ORDER BY requests DESC, device"
    ))?)?;
    let names = texts(&rows, "device")?;
    let mut devices = Vec::new();
    for i in 0..rows.num_rows() {
        let number = |name: &str| {
            let values = numbers(&rows, name)?;
            Ok::<_, ApiError>(values.is_valid(i).then(|| values.value(i)))
        };
        let count = |name: &str| Ok::<_, ApiError>(number(name)?.unwrap_or(0.0));
        devices.push(Device {
            name: names.value(i).to_string(),
            requests: count("requests")?,
            recorded: count("recorded")?,
            errors: count("errors")?,
            bytes_read: count("bytes_read")?,
            bytes_written: count("bytes_written")?,
            queue_p50_ns: number("queue_p50_ns")?,
            queue_p99_ns: number("queue_p99_ns")?,
            device_p50_ns: number("device_p50_ns")?,
            device_p99_ns: number("device_p99_ns")?,
            device_max_ns: number("device_max_ns")?,
            mean_depth: number("mean_depth")?,
            max_depth: number("max_depth")?,
            who: Vec::new(),
        });
    }
    let users = collect(reader.db().run(&format!(
        "SELECT device, comm, count(*) AS requests, sum(bytes)::DOUBLE AS bytes, \
         coalesce(sum(completed_at_ns - issued_at_ns), 0)::DOUBLE AS served_ns \
         FROM block WHERE {chosen} GROUP BY device, comm \
         QUALIFY row_number() OVER (PARTITION BY device ORDER BY served_ns DESC, comm) <= {WHO} \
         ORDER BY served_ns DESC, comm"
    ))?)?;
    let (names, comm) = (texts(&users, "device")?, texts(&users, "comm")?);
    let (requests, bytes) = (numbers(&users, "requests")?, numbers(&users, "bytes")?);
    let time = numbers(&users, "served_ns")?;
    for i in 0..users.num_rows() {
        if let Some(device) = devices.iter_mut().find(|d| d.name == names.value(i)) {
            device.who.push(DeviceUser {
                comm: comm.is_valid(i).then(|| comm.value(i).to_string()),
                requests: requests.value(i),
                bytes: bytes.value(i),
                device_ns: time.value(i),
            });
        }
    }
    Ok(devices)
}

/// `GET /sessions/ID/devices/NAME`.
pub(crate) async fn device(
    State(app): State<Shared>,
    Path((id, name)): Path<(String, String)>,
    Params(selection): Params<SelectionParams>,
    Params(params): Params<DeviceParams>,
) -> Result<ArrowAnswer, ApiError> {
    let selection = selection.parse()?;
    let by_comm = match params.by.as_deref() {
        None | Some("none") => false,
        Some("comm") => true,
        _ => return Err(ApiError::parameter("by", "it is one of none, comm")),
    };
    let query = move |reader: &Reader, _: &Stop| over_time(reader, &selection, &name, by_comm);
    app.jobs.query(id, Lane::Quick, query).await
}

fn over_time(
    reader: &Reader,
    selection: &Selection,
    name: &str,
    by_comm: bool,
) -> Result<ArrowAnswer, ApiError> {
    let start = reader.started_at_ns();
    let window = selection.window(start, reader.span());
    let width = window.bucket_ns(selection.pixels);
    let from = window.from;
    let chosen = chosen(reader, selection)?;
    let key = if by_comm { "comm" } else { "NULL::VARCHAR" };
    // Histograms as a list of pairs: power of two and count.
    let rows = collect(reader.db().run(&format!(
        "SELECT ((ts_ns - {from}) // {width})::DOUBLE AS bucket, {key} AS key, \
         count(*)::DOUBLE AS requests, sum(bytes)::DOUBLE AS bytes, \
         avg(queue_depth)::DOUBLE AS depth_mean, max(queue_depth)::DOUBLE AS depth_max, \
         coalesce(sum(issued_at_ns - queued_at_ns), 0)::DOUBLE AS queue_ns, \
         coalesce(sum(completed_at_ns - issued_at_ns), 0)::DOUBLE AS device_ns, \
         {latency} FROM block WHERE {chosen} AND device = {device} \
         GROUP BY bucket, key ORDER BY key, bucket",
        device = sql_string(name),
        latency = histogram("completed_at_ns - issued_at_ns"),
    ))?)?;
    let mut columns = Columns::default();
    let bucket = numbers(&rows, "bucket")?;
    let time_of = |bucket: f64| (from - start) as f64 + bucket * width as f64;
    columns.numbers("t", bucket.iter().flatten().map(time_of));
    if by_comm {
        columns.texts("key", texts(&rows, "key")?.iter());
    }
    for name in [
        "requests",
        "bytes",
        "depth_mean",
        "depth_max",
        "queue_ns",
        "device_ns",
    ] {
        columns.optional_numbers(name, numbers(&rows, name)?.iter());
    }
    let mut lists: Vec<Vec<f64>> = vec![Vec::with_capacity(BUCKETS); rows.num_rows()];
    for power in 0..BUCKETS {
        let counts = numbers(&rows, &format!("l{power}"))?;
        for (list, count) in lists.iter_mut().zip(counts.iter()) {
            list.push(count.unwrap_or(0.0));
        }
    }
    columns.lists("latency", lists.iter().map(Vec::as_slice));
    columns.answer(&DeviceMeta {
        bucket_ns: width,
        from: window.from - start,
        to: window.to - start,
    })
}

/// `GET /sessions/ID/devices/NAME/at_once`.
pub(crate) async fn at_once(
    State(app): State<Shared>,
    Path((id, name)): Path<(String, String)>,
    Params(selection): Params<SelectionParams>,
) -> Result<ArrowAnswer, ApiError> {
    let selection = selection.parse()?;
    let query = move |reader: &Reader, _: &Stop| waiting(reader, &selection, &name);
    app.jobs.query(id, Lane::Quick, query).await
}

/// How many requests of each name were in a device, and waited for it, at once: the time of each
/// is divided among the buckets that it overlaps.
fn waiting(reader: &Reader, selection: &Selection, name: &str) -> Result<ArrowAnswer, ApiError> {
    let start = reader.started_at_ns();
    let window = selection.window(start, reader.span());
    let width = window.bucket_ns(selection.pixels);
    let (from, to) = (window.from, window.to);
    let causes = caused_by(reader, selection, "rid", None, to)?;
    let part = |waits: bool, begin: &str, end: &str| {
        format!(
            "SELECT coalesce(comm, '') AS comm, {waits} AS waits, greatest({begin}, {from}) AS a, \
             least({end}, {to}) AS z FROM block WHERE device = {device} AND {end} > {from} \
             AND {begin} < {to}{causes}",
            device = sql_string(name),
        )
    };
    let rows = collect(reader.db().run(&format!(
        "WITH r AS ({in_device} UNION ALL {in_queue}), \
         o AS (SELECT *, unnest(range((a - {from}) // {width}, (z - {from}) // {width} + 1)) AS b \
         FROM r), \
         n AS (SELECT comm, waits, b, least(z, {from} + (b + 1) * {width}) \
         - greatest(a, {from} + b * {width}) AS ns FROM o) \
         SELECT b::DOUBLE AS bucket, comm AS key, \
         (coalesce(sum(ns) FILTER (NOT waits), 0) / {width})::DOUBLE AS device, \
         (coalesce(sum(ns) FILTER (waits), 0) / {width})::DOUBLE AS queue \
         FROM n GROUP BY ALL ORDER BY ALL",
        in_device = part(false, "issued_at_ns", "completed_at_ns"),
        in_queue = part(true, "queued_at_ns", "issued_at_ns"),
    ))?)?;
    let mut columns = Columns::default();
    let time_of = |bucket: f64| (from - start) as f64 + bucket * width as f64;
    columns.numbers("t", numbers(&rows, "bucket")?.iter().flatten().map(time_of));
    columns.texts("key", texts(&rows, "key")?.iter());
    for name in ["device", "queue"] {
        columns.optional_numbers(name, numbers(&rows, name)?.iter());
    }
    columns.answer(&DeviceMeta {
        bucket_ns: width,
        from: from - start,
        to: to - start,
    })
}

/// A column for each power of two, with the count of durations from it to the next.
fn histogram(duration: &str) -> String {
    let columns: Vec<String> = (0..BUCKETS)
        .map(|power| {
            format!("count(*) FILTER (duration_bucket({duration}) = {power})::DOUBLE AS l{power}")
        })
        .collect();
    columns.join(", ")
}
