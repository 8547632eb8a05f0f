//! The sessions of a set: sums of all of them, and their rows as one batch.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, StringArray};
use arrow::compute::{concat_batches, filter_record_batch, sort_to_indices, take_record_batch};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use fathom_model::set::ClockMap;

use super::answer::{self, Named};
use super::gather::Gather;
use super::{Answer, By, Filter, Gathered, Request, Zoom, align, buckets_of};
use crate::QueryError;

/// A host, how its clock leads to the one of the reference, and its rows.
type OfHost<'a> = (&'a str, &'a ClockMap, Vec<RecordBatch>);

/// Calls of a window of the sessions of a set, at most `limit`, in order of time, with a first column `host`. The window
/// and times are on the clock of the reference.
///
/// # Errors
/// The errors of [`Zoom::query`].
pub fn events_of_hosts(
    hosts: &[HostZoom<'_>],
    (from, to): (Option<i64>, Option<i64>),
    limit: usize,
) -> Result<RecordBatch, QueryError> {
    let mut rows = Vec::new();
    for of in hosts {
        let back = of.clock.inverse();
        // A nanosecond more on both sides, as times are rounded.
        let from = from.map_or(0, |from| back.apply(from).saturating_sub(1));
        let to = to.map_or(i64::MAX, |to| back.apply(to).saturating_add(1));
        let found = of.zoom.events(from..to, &of.filter, limit)?;
        rows.push((of.host, of.clock, found.collect::<Result<Vec<_>, _>>()?));
    }
    let sorted = || {
        let all = of_hosts(&rows)?;
        let Some(times) = all.column_by_name("ts_ns") else {
            return Ok(all);
        };
        let at = times.as_primitive::<Int64Type>();
        let within = |at: i64| from.is_none_or(|from| at >= from) && to.is_none_or(|to| at < to);
        let kept: BooleanArray = at.values().iter().map(|at| Some(within(*at))).collect();
        let all = filter_record_batch(&all, &kept)?;
        let times = all.column_by_name("ts_ns").unwrap_or(times);
        let order = sort_to_indices(times, None, Some(limit))?;
        take_record_batch(&all, &order)
    };
    sorted().map_err(|e: ArrowError| QueryError::Sql(crate::escape::lines(&e.to_string())))
}

/// The rows of all hosts, with a first column `host`. Times (`ts_ns`, and columns whose names end in
/// `_at_ns`) are on the clock of the reference.
fn of_hosts(hosts: &[OfHost<'_>]) -> Result<RecordBatch, ArrowError> {
    let mut all = Vec::new();
    for (host, clock, batches) in hosts {
        for batch in batches {
            all.push(of_host(host, clock, batch)?);
        }
    }
    let Some(schema) = all.first().map(RecordBatch::schema) else {
        return Ok(RecordBatch::new_empty(Arc::new(Schema::empty())));
    };
    // concat_batches() itself would panic.
    if all.iter().any(|batch| batch.schema() != schema) {
        let differ = "the rows of the hosts have different columns".to_owned();
        return Err(ArrowError::SchemaError(differ));
    }
    concat_batches(&schema, &all)
}

fn of_host(host: &str, clock: &ClockMap, batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let schema = batch.schema();
    let mut fields = vec![Arc::new(Field::new("host", DataType::Utf8, false))];
    let names = StringArray::from_iter_values((0..batch.num_rows()).map(|_| host));
    let mut columns: Vec<ArrayRef> = vec![Arc::new(names)];
    for (field, column) in schema.fields().iter().zip(batch.columns()) {
        let is_time = field.name() == "ts_ns" || field.name().ends_with("_at_ns");
        let times = column.as_any().downcast_ref::<Int64Array>();
        columns.push(match times.filter(|_| is_time) {
            Some(times) => Arc::new(times.unary::<_, Int64Type>(|at_ns| clock.apply(at_ns))),
            None => column.clone(),
        });
        fields.push(field.clone());
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}

/// A session of a set that is opened for zooming.
pub struct HostZoom<'a> {
    /// Name of the session in the set.
    pub host: &'a str,
    /// How its clock leads to the one of the reference.
    pub clock: &'a ClockMap,
    pub zoom: Zoom,
    /// Which of its calls are meant, with times on its own clock.
    pub filter: Filter,
}

/// Cells of a pyramid in a bucket, as a power of two: the more there are, the fewer rows belong to cells
/// at the borders of buckets.
const FINER: u8 = 6;
/// Cells of an answer, as a power of two, beyond which there are fewer in a bucket.
const MOST_CELLS: u8 = 16;
/// The same where the pyramid has no narrower cells.
const LEAST_FINER: u8 = 3;

/// Sums over a window of all sessions of a set, whose times are on the clock of the reference. The pyramids
/// answer as for each session. The borders of their cells are other moments than the borders of buckets,
/// because clocks differ: rows decide for the cells that are in two buckets.
///
/// Threads, processes, and files are the ones of a host: rows by them have a first column `host`. Other rows are of all
/// hosts together, or, with `per_host`, of each. Durations are as each host measured them. The filter of the request is not used, and `busy` is not supported.
///
/// # Errors
/// The errors of [`Zoom::query`].
pub fn query_hosts(
    hosts: &[HostZoom<'_>],
    request: &Request,
    per_host: bool,
) -> Result<Answer, QueryError> {
    let with = |filter: Filter| Request {
        filter,
        busy: false,
        ..request.clone()
    };
    // On the clock of each session, and on the one of the set.
    let requests: Vec<[Request; 2]> = hosts
        .iter()
        .map(|of| [of.filter.clone(), of.filter.moved(of.clock)].map(with))
        .collect();
    let hosts_differ = per_host || matches!(request.by, By::Thread | By::Process | By::File);
    let spans = hosts.iter().filter_map(|of| {
        let (first, last) = of.zoom.span()?;
        Some((of.clock.apply(first), of.clock.apply(last)))
    });
    let span = spans.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
    let (window, asked) = buckets_of(span, request);
    let mut shift = asked;
    let found = 'shift: loop {
        let mut found = Vec::new();
        for (of, requests) in hosts.iter().zip(&requests) {
            let grid = (align(window, shift), shift);
            match sums_of(of, requests, grid)? {
                Found::Sums(sums) => found.push(sums),
                Found::Wider(wider) => {
                    shift = wider;
                    continue 'shift;
                }
            }
        }
        break found;
    };
    let (from, to) = align(window, shift);
    // Keys are chosen by the time of all hosts.
    let whole = with(Filter::default());
    let mut gather = Gather::new(&whole);
    gather.start(from, shift);
    let (mut blocks, mut parts, mut fault_parts) = (0, 0, 0);
    for (n, (of, sums)) in hosts.iter().zip(found).enumerate() {
        let number = match hosts_differ {
            true => n as u32 + 1,
            false => 0,
        };
        for Part { sums, of_cells } in sums {
            blocks += sums.0.blocks;
            parts += sums.0.parts;
            fault_parts += sums.1;
            let cell = sums.0.shift;
            gather.take(sums.0.gather, number, |time| match of_cells {
                true => bucket_of(of.clock, (time, cell), ((from, to), shift)),
                false => Some(time),
            });
        }
    }
    let sessions: Vec<Named<'_>> = hosts.iter().map(|of| Named::of(&of.zoom)).collect();
    let names: Vec<&str> = hosts.iter().map(|of| of.host).collect();
    Ok(Answer {
        bucket_ns: 1 << shift,
        window_ns: from..to,
        coarser: shift > asked,
        blocks,
        parts,
        fault_parts,
        exact: !gather.has_rests(),
        rows: answer::batch(
            &sessions,
            hosts_differ.then_some(&names),
            &whole,
            gather,
            shift,
            from,
        )?,
    })
}

/// Sums of a session of a set.
enum Found<'a> {
    Sums(Vec<Part<'a>>),
    /// The pyramid has no cells that are narrow enough: buckets must have this shift at least.
    Wider(u8),
}

/// Some of the sums of a session.
struct Part<'a> {
    /// With the number of parts of page faults that were read.
    sums: (Gathered<'a>, usize),
    /// Whether they are in cells on the session's own clock, of which the ones in two buckets do not count.
    of_cells: bool,
}

/// A window of whole buckets on the clock of the set, and the shift of the buckets.
type Grid = ((i64, i64), u8);

/// The sums of a session in the buckets of a set.
fn sums_of<'a>(
    of: &HostZoom<'_>,
    [request, on_clock]: &'a [Request; 2],
    grid: Grid,
) -> Result<Found<'a>, QueryError> {
    let (window, shift) = grid;
    let by_rows = |cells| {
        let moved = of.zoom.moved(of.clock, cells)?;
        let sums = moved.gather_all(on_clock, window, shift)?;
        Ok::<_, QueryError>(Part {
            sums,
            of_cells: false,
        })
    };
    if !of.zoom.has_pyramid_for(request) {
        return Ok(Found::Sums(vec![by_rows(None)?]));
    }
    let back = of.clock.inverse();
    // A nanosecond more on both sides, as times are rounded on their way to the reference and back.
    let own = (back.apply(window.0) - 1, back.apply(window.1) + 1);
    let own = (own.0.max(0), own.1.max(1));
    let buckets = ((window.1 - window.0) >> shift).max(1).ilog2() as u8;
    let finer = MOST_CELLS.saturating_sub(buckets).clamp(LEAST_FINER, FINER);
    let sums = of
        .zoom
        .gather_all(request, own, shift.saturating_sub(finer))?;
    let cell = sums.0.shift;
    if sums.0.blocks == 0 {
        // Rows answer: then each may be put into its bucket.
        return Ok(Found::Sums(vec![by_rows(None)?]));
    }
    if cell + LEAST_FINER > shift {
        return Ok(Found::Wider(cell + LEAST_FINER));
    }
    let at_borders: BTreeSet<i64> = sums
        .0
        .gather
        .times()
        .into_iter()
        .filter(|time| is_at_border(of.clock, (*time, cell), grid))
        .map(|time| time >> cell)
        .collect();
    let mut parts = vec![Part {
        sums,
        of_cells: true,
    }];
    if !at_borders.is_empty() {
        parts.push(by_rows(Some((cell, at_borders)))?);
    }
    Ok(Found::Sums(parts))
}

/// The first and the last moment of a cell on the clock of the set, in buckets since the start of the
/// window.
fn buckets_of_cell(
    clock: &ClockMap,
    (time, cell): (i64, u8),
    ((from, _), shift): Grid,
) -> [i64; 2] {
    let bucket = |own: i64| (clock.apply(own) - from) >> shift;
    [bucket(time), bucket(time + (1 << cell) - 1)]
}

/// The beginning of the bucket that a cell is in; `None` if it is in several, or outside of the window.
fn bucket_of(clock: &ClockMap, cell: (i64, u8), grid: Grid) -> Option<i64> {
    let ((from, to), shift) = grid;
    let [first, last] = buckets_of_cell(clock, cell, grid);
    let time = from + (first << shift);
    (first == last && time >= from && time < to).then_some(time)
}

/// Whether a cell is in several buckets of the window, or partly outside of it.
fn is_at_border(clock: &ClockMap, cell: (i64, u8), grid: Grid) -> bool {
    let ((from, to), shift) = grid;
    let [first, last] = buckets_of_cell(clock, cell, grid);
    first != last && last >= 0 && first < (to - from) >> shift
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(ts_ns: &[i64], calls: &[i64]) -> Vec<RecordBatch> {
        let int = |name: &str| Field::new(name, DataType::Int64, true);
        let schema = Arc::new(Schema::new(vec![int("ts_ns"), int("calls")]));
        let column = |values: &[i64]| Arc::new(Int64Array::from(values.to_vec())) as ArrayRef;
        vec![RecordBatch::try_new(schema, vec![column(ts_ns), column(calls)]).unwrap()]
    }

    #[test]
    fn times_are_on_the_clock_of_the_reference() {
        let same = ClockMap { segments: vec![] };
        let late = ClockMap::line(0, 1_000, 0.5);
        let all = of_hosts(&[
            ("web", &same, rows(&[10, 20], &[1, 2])),
            ("db", &late, rows(&[0, 100], &[3, 4])),
        ])
        .unwrap();
        let column = |name: &str| all.column_by_name(name).unwrap().clone();
        let ints = |name| {
            column(name)
                .as_any()
                .downcast_ref::<Int64Array>()
                .unwrap()
                .values()
                .to_vec()
        };
        assert_eq!(ints("ts_ns"), [10, 20, 1_000, 1_150]);
        assert_eq!(ints("calls"), [1, 2, 3, 4]);
        let hosts = column("host");
        let hosts = hosts.as_any().downcast_ref::<StringArray>().unwrap();
        let hosts: Vec<_> = hosts.iter().flatten().collect();
        assert_eq!(hosts, ["web", "web", "db", "db"]);
    }

    #[test]
    fn other_columns_are_refused_and_no_rows_are_none() {
        let same = ClockMap { segments: vec![] };
        assert_eq!(of_hosts(&[]).unwrap().num_rows(), 0);
        let other = rows(&[1], &[1])[0].project(&[0]).unwrap();
        let both = [("a", &same, rows(&[1], &[1])), ("b", &same, vec![other])];
        assert!(of_hosts(&both).is_err());
    }
}
