//! `GET /sessions/ID/machine` and `/machine/devices`: the machine as a whole over time.

use arrow::array::Array;
use axum::extract::{Path, State};
use serde::Serialize;

use super::Shared;
use crate::columns::{ArrowAnswer, Columns, collect, numbers, texts};
use crate::error::ApiError;
use crate::job::{Lane, Stop};
use crate::selection::{Params, Selection, SelectionParams};
use crate::view::Reader;

/// Requests to devices that are read at most for the time in which a device was busy.
const MOST_READ: f64 = 2e6;

/// Columns that are added up, and columns of which rows that are shown as one have the mean.
const TIMES: [&str; 9] = [
    "user_ns",
    "system_ns",
    "interrupt_ns",
    "iowait_ns",
    "idle_ns",
    "steal_ns",
    "cpu_stalled_ns",
    "memory_stalled_ns",
    "io_stalled_ns",
];
const LEVELS: [&str; 7] = [
    "running_threads",
    "blocked_threads",
    "available_bytes",
    "cached_bytes",
    "dirty_bytes",
    "writeback_bytes",
    "swapped_bytes",
];

/// Description of an answer.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct MachineMeta {
    /// Width of the buckets; 0 when each row is one of the table.
    pub bucket_ns: i64,
    pub from: i64,
    pub to: i64,
    /// There are too many rows to read all: no rows.
    pub many: bool,
}

/// `GET /sessions/ID/machine`.
pub(crate) async fn machine(
    State(app): State<Shared>,
    Path(id): Path<String>,
    Params(selection): Params<SelectionParams>,
) -> Result<ArrowAnswer, ApiError> {
    let selection = selection.parse()?;
    let query = move |reader: &Reader, _: &Stop| over_time(reader, &selection);
    app.jobs.query(id, Lane::Quick, query).await
}

fn over_time(reader: &Reader, selection: &Selection) -> Result<ArrowAnswer, ApiError> {
    let start = reader.started_at_ns();
    let window = selection.window(start, reader.span());
    let (from, to) = (window.from, window.to);
    // A row is a second.
    let width = window.bucket_ns(selection.pixels);
    let width = if width > 1_000_000_000 { width } else { 0 };
    let key = match width {
        0 => "ts_ns".to_string(),
        _ => format!("ts_ns // {width}"),
    };
    let sums = TIMES.map(|name| format!("sum({name})::DOUBLE AS {name}"));
    let means = LEVELS.map(|name| format!("avg({name})::DOUBLE AS {name}"));
    let rows = collect(reader.db().run(&format!(
        "SELECT (min(ts_ns) - {start})::DOUBLE AS t, \
         (max(ended_at_ns) - min(ts_ns))::DOUBLE AS dur, {}, {} FROM machine \
         WHERE ended_at_ns > {from} AND ts_ns < {to} GROUP BY {key} ORDER BY t",
        sums.join(", "),
        means.join(", "),
    ))?)?;
    let mut columns = Columns::default();
    for name in ["t", "dur"].into_iter().chain(TIMES).chain(LEVELS) {
        columns.optional_numbers(name, numbers(&rows, name)?.iter());
    }
    columns.answer(&MachineMeta {
        bucket_ns: width,
        from: from - start,
        to: to - start,
        many: false,
    })
}

/// `GET /sessions/ID/machine/devices`.
pub(crate) async fn devices(
    State(app): State<Shared>,
    Path(id): Path<String>,
    Params(selection): Params<SelectionParams>,
) -> Result<ArrowAnswer, ApiError> {
    let selection = selection.parse()?;
    let query = move |reader: &Reader, stop: &Stop| busy(reader, &selection, stop);
    app.jobs.query(id, Lane::Quick, query).await
}

/// The share of each bucket in which a device had a request.
fn busy(reader: &Reader, selection: &Selection, stop: &Stop) -> Result<ArrowAnswer, ApiError> {
    let start = reader.started_at_ns();
    let window = selection.window(start, reader.span());
    let (from, to) = (window.from, window.to);
    let width = window.bucket_ns(selection.pixels);
    let overlap = format!("FROM block WHERE completed_at_ns > {from} AND issued_at_ns < {to}");
    let count = collect(
        reader
            .db()
            .run(&format!("SELECT count(*) AS n {overlap}"))?,
    )?;
    let many = numbers(&count, "n")?.iter().flatten().sum::<f64>() > MOST_READ;
    stop.check()?;
    let mut union = Busy::new(from, width);
    if !many {
        let mut rows = reader.db().run(&format!(
            "SELECT device, (greatest(issued_at_ns, {from}) - {start})::DOUBLE AS a, \
             (least(completed_at_ns, {to}) - {start})::DOUBLE AS z {overlap} ORDER BY device, a"
        ))?;
        while let Some(batch) = rows.next_batch()? {
            let (a, z) = (numbers(&batch, "a")?, numbers(&batch, "z")?);
            let device = texts(&batch, "device")?;
            for i in (0..batch.num_rows()).filter(|i| device.is_valid(*i)) {
                let at = |ns: f64| start.saturating_add(ns as i64);
                union.add(device.value(i), at(a.value(i)), at(z.value(i)));
            }
        }
    }
    let rows = union.rows;
    let mut columns = Columns::default();
    let time_of = |bucket: i64| (from - start + bucket * width) as f64;
    columns.numbers("t", rows.iter().map(|row| time_of(row.1)));
    columns.texts("key", rows.iter().map(|row| Some(row.0.as_str())));
    // The last bucket may reach beyond the window.
    let length = |bucket: i64| (to - from - bucket * width).min(width).max(1) as f64;
    columns.numbers("busy", rows.iter().map(|row| row.2 as f64 / length(row.1)));
    columns.answer(&MachineMeta {
        bucket_ns: width,
        from: from - start,
        to: to - start,
        many,
    })
}

/// Time in which at least one request was in a device, by bucket.
struct Busy {
    from: i64,
    width: i64,
    /// The end of the time that is counted of the device so far.
    reached: i64,
    /// Device, bucket, and nanoseconds.
    rows: Vec<(String, i64, i64)>,
}

impl Busy {
    fn new(from: i64, width: i64) -> Self {
        Self {
            from,
            width: width.max(1),
            reached: i64::MIN,
            rows: Vec::new(),
        }
    }

    /// A request; the requests of a device come together, in the order of their beginnings.
    fn add(&mut self, device: &str, begin: i64, end: i64) {
        if self.rows.last().is_none_or(|row| row.0 != device) {
            self.reached = i64::MIN;
        }
        let mut at = begin.max(self.reached);
        self.reached = self.reached.max(end);
        while at < end {
            let bucket = (at - self.from).div_euclid(self.width);
            let until = end.min(self.from + (bucket + 1) * self.width);
            match self.rows.last_mut() {
                Some(row) if row.0 == device && row.1 == bucket => row.2 += until - at,
                _ => self.rows.push((device.to_owned(), bucket, until - at)),
            }
            at = until;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_at_once_count_once() {
        let mut busy = Busy::new(100, 10);
        busy.add("vda", 101, 105);
        busy.add("vda", 103, 104);
        busy.add("vda", 104, 112);
        busy.add("vda", 125, 126);
        busy.add("vdb", 100, 130);
        let row = |device: &str, bucket, ns| (device.to_owned(), bucket, ns);
        let expected = [
            row("vda", 0, 9),
            row("vda", 1, 2),
            row("vda", 2, 1),
            row("vdb", 0, 10),
            row("vdb", 1, 10),
            row("vdb", 2, 10),
        ];
        assert_eq!(busy.rows, expected);
    }
}
