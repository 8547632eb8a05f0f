//! `GET /sessions/ID/offsets`: where in a file reads, writes and page faults took place.

use std::collections::HashMap;

use arrow::array::AsArray;
use arrow::datatypes::{DataType, Int64Type};
use axum::extract::{Path, State};
use fathom_query::Db;
use serde::{Deserialize, Serialize};

use super::Shared;
use crate::calls::Calls;
use crate::columns::{ArrowAnswer, Columns, collect, column, flags, internal, numbers};
use crate::error::ApiError;
use crate::job::{Lane, Stop};
use crate::selection::{Params, Selection, SelectionParams, Window};
use crate::view::Reader;

/// Single calls and page faults in an answer at most.
const MOST: f64 = 20_000.0;
/// Files in an answer at most.
const MOST_FILES: usize = 1000;
/// Cells of a grid across and down at most.
const MOST_CELLS: u32 = 4096;
/// Offsets up to which a double is exact.
const EXACT: f64 = 9_007_199_254_740_992.0;
/// Intervals of a file that are held before they are put together.
const INTERVALS: usize = 1 << 14;

/// Parameters besides the window and the filter.
#[derive(Debug, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct OffsetsParams {
    /// Ids of files, separated by commas: one file, or several that are shown together.
    file: Option<String>,
    /// Cells of a grid across; 1,000 by default.
    width: Option<u32>,
    /// Cells of a grid down; 400 by default.
    height: Option<u32>,
    /// With 0 the unique bytes, which take longest, are left out.
    #[cfg_attr(test, schemars(extend("enum" = [0, 1])))]
    unique: Option<u8>,
    /// With `high`: leaves out what touches nothing between these offsets.
    low: Option<f64>,
    /// The end of that part of the file.
    high: Option<f64>,
}

/// The requested part of a file, besides the window and the filter.
struct Asked {
    /// Cells of a grid across and down.
    cells: (u32, u32),
    /// Whether unique bytes are counted.
    unique: bool,
    /// The part of the file; without it what was used of it.
    part: Option<(i64, i64)>,
}

/// Description of an answer.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct OffsetsMeta {
    /// Kinds of rows.
    pub mode: OffsetsMode,
    /// The window.
    pub from: i64,
    pub to: i64,
    /// Range of the file that was used in it; with `low` and `high` these.
    pub offset_from: f64,
    pub offset_to: f64,
    /// Cells of a grid across (time) and down (offset).
    pub width: u32,
    pub height: u32,
    /// Reads and writes with an offset.
    pub calls: f64,
    /// Page faults on mappings of the file.
    pub faults: f64,
    pub read_bytes: f64,
    pub written_bytes: f64,
    /// Different bytes among them; null with unique=0.
    pub read_unique_bytes: Option<f64>,
    pub written_unique_bytes: Option<f64>,
    /// Share of the reads that began where the one before of the same thread ended; null with
    /// fewer than two of each thread, and in a grid with unique=0.
    pub read_sequential: Option<f64>,
    /// Share of them that began there or further on.
    pub read_forward: Option<f64>,
    /// Share of them that began before the beginning of the one before.
    pub read_backward: Option<f64>,
    /// Passes that the reads make: each begins with a read that goes back to a lower offset.
    pub read_passes: Option<f64>,
    /// The same of the writes.
    pub written_sequential: Option<f64>,
    pub written_forward: Option<f64>,
    pub written_backward: Option<f64>,
    pub written_passes: Option<f64>,
    /// Share of the page faults that were further on than the one before of the same thread; null
    /// with fewer than two of each thread, and in a grid with unique=0.
    pub fault_forward: Option<f64>,
    /// Share of them that were before the one before.
    pub fault_backward: Option<f64>,
    /// Passes that the page faults make in the direction that most of them take.
    pub fault_passes: Option<f64>,
    /// Threads that read, wrote, or had page faults; null without any, and in a grid with unique=0.
    pub threads: Option<f64>,
}

/// The kind of the rows of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) enum OffsetsMode {
    /// Single calls and page faults.
    #[default]
    Points,
    /// Cells of a grid, those with calls or page faults.
    Grid,
}

/// Reads and writes of a file.
const MOVES: &str = "file_offset IS NOT NULL AND bytes > 0 \
    AND (call_reads(syscall) OR call_writes(syscall))";

/// `GET /sessions/ID/offsets`.
pub(crate) async fn offsets(
    State(app): State<Shared>,
    Path(id): Path<String>,
    Params(selection): Params<SelectionParams>,
    Params(params): Params<OffsetsParams>,
) -> Result<ArrowAnswer, ApiError> {
    let mut selection = selection.parse()?;
    let mut files = chosen(params.file.as_deref().unwrap_or_default())?;
    if let Some(list) = selection.filter.file.take() {
        files.retain(|file| list.contains(file));
    }
    selection.filter.file = Some(files);
    let cells = |n: Option<u32>, usual| n.unwrap_or(usual).clamp(1, MOST_CELLS);
    let (width, height) = (cells(params.width, 1000), cells(params.height, 400));
    let asked = Asked {
        cells: (width, height),
        unique: params.unique.unwrap_or(1) != 0,
        part: part(params.low, params.high)?,
    };
    let query = move |reader: &Reader, stop: &Stop| answer(reader, stop, &selection, &asked);
    app.jobs.query(id, Lane::Quick, query).await
}

/// The files that are asked about.
fn chosen(list: &str) -> Result<Vec<i64>, ApiError> {
    let problem =
        || ApiError::parameter("file", format!("1 to {MOST_FILES} ids of files are needed"));
    let files: Result<Vec<i64>, _> = list.split(',').map(str::parse).collect();
    let files = files.map_err(|_| problem())?;
    match files.len() {
        1..=MOST_FILES => Ok(files),
        _ => Err(problem()),
    }
}

/// A part of a file, of both its ends.
fn part(low: Option<f64>, high: Option<f64>) -> Result<Option<(i64, i64)>, ApiError> {
    match (low, high) {
        (None, None) => Ok(None),
        (Some(low), Some(high)) if low >= 0.0 && high >= low + 1.0 && high <= EXACT => {
            Ok(Some((low.floor() as i64, high.ceil() as i64)))
        }
        _ => Err(ApiError::parameter(
            "low",
            "a part of a file has both ends, low and high, and low is the lesser",
        )),
    }
}

fn answer(
    reader: &Reader,
    stop: &Stop,
    selection: &Selection,
    asked: &Asked,
) -> Result<ArrowAnswer, ApiError> {
    let start = reader.started_at_ns();
    let window = selection.window(start, reader.span());
    let mut calls = Calls::of(reader, selection, window)?.and(MOVES);
    if let Some((low, high)) = asked.part {
        // All that overlap it, wherever they start.
        calls.push_str(&format!(
            " AND file_offset < {high} AND file_offset + bytes > {low}"
        ));
    }
    // By call, because the direction of bytes is then looked up per call name and not per row.
    let sums = collect(reader.db().run(&format!(
        "SELECT sum(n)::DOUBLE AS calls, coalesce(min(lo), 0)::DOUBLE AS lo, \
         coalesce(max(hi), 0)::DOUBLE AS hi, \
         coalesce(sum(bytes) FILTER (call_reads(syscall)), 0)::DOUBLE AS read, \
         coalesce(sum(bytes) FILTER (call_writes(syscall)), 0)::DOUBLE AS written FROM ( \
         SELECT syscall, count(*) AS n, min(file_offset) AS lo, max(file_offset + bytes) AS hi, \
         sum(bytes) AS bytes FROM {calls} GROUP BY syscall)"
    ))?)?;
    let sum = |name: &str| {
        let value = numbers(&sums, name)?.iter().flatten().next();
        Ok::<_, ApiError>(value.unwrap_or(0.0))
    };
    let faults = faults(reader, selection, window, asked.part)?;
    let touched = collect(reader.db().run(&format!(
        "SELECT count(*)::DOUBLE AS n, min(file_offset)::DOUBLE AS lo, \
         max(file_offset + 1)::DOUBLE AS hi FROM {faults}"
    ))?)?;
    let touch = |name: &str| Ok::<_, ApiError>(numbers(&touched, name)?.iter().flatten().next());
    let fault_count = touch("n")?.unwrap_or(0.0);
    // Of both; without calls, of the faults only.
    let end = |of_calls: &str, of_faults: Option<f64>, pick: fn(f64, f64) -> f64| {
        let of_calls = sum(of_calls)?;
        Ok::<_, ApiError>(match of_faults {
            Some(value) if sum("calls")? > 0.0 => pick(of_calls, value),
            Some(value) => value,
            None => of_calls,
        })
    };
    let used = (
        end("lo", touch("lo")?, f64::min)?,
        end("hi", touch("hi")?, f64::max)?,
    );
    let mut meta = OffsetsMeta {
        mode: OffsetsMode::Points,
        from: window.from - start,
        to: window.to - start,
        offset_from: asked.part.map_or(used.0, |part| part.0 as f64),
        offset_to: asked.part.map_or(used.1, |part| part.1 as f64),
        width: asked.cells.0,
        height: asked.cells.1,
        calls: sum("calls")?,
        faults: fault_count,
        read_bytes: sum("read")?,
        written_bytes: sum("written")?,
        ..OffsetsMeta::default()
    };
    let single = meta.calls + meta.faults < MOST;
    if asked.unique {
        meta.read_unique_bytes = Some(unique_bytes(reader, stop, &calls, "call_reads")?);
        meta.written_unique_bytes = Some(unique_bytes(reader, stop, &calls, "call_writes")?);
    }
    if asked.unique || single {
        stop.check()?;
        patterns(reader.db(), &calls, &faults, &mut meta)?;
    }
    if single {
        return points(reader, &calls, &faults, &meta);
    }
    meta.mode = OffsetsMode::Grid;
    grid(reader, &calls, &faults, window, &meta)
}

/// The source after FROM for page faults on mappings of the file, with the condition.
fn faults(
    reader: &Reader,
    selection: &Selection,
    window: Window,
    part: Option<(i64, i64)>,
) -> Result<String, ApiError> {
    let condition = selection.filter.for_faults(reader.db(), window.from)?;
    let condition = condition.unwrap_or("false".into());
    let within = part.map_or(String::new(), |(low, high)| {
        format!(" AND file_offset >= {low} AND file_offset < {high}")
    });
    Ok(format!(
        "(SELECT *, NULL::VARCHAR AS path2 FROM faults) WHERE {} AND {condition}{within}",
        window.sql("ts_ns")
    ))
}

/// How the reads, the writes, and the page faults follow each other, per file and thread, in order
/// of time.
fn patterns(db: &Db, calls: &str, faults: &str, meta: &mut OffsetsMeta) -> Result<(), ApiError> {
    let rows = collect(db.run(&format!(
        "WITH moves AS (SELECT call_writes(syscall) AS writes, file_id, tid, file_offset AS here, \
         lag(file_offset) OVER before AS began, lag(file_offset + bytes) OVER before AS reached \
         FROM {calls} \
         WINDOW before AS (PARTITION BY file_id, tid, call_writes(syscall) ORDER BY ts_ns, rid)) \
         SELECT writes, avg((here = reached)::INTEGER) AS sequential, \
         avg((here >= reached)::INTEGER) AS forward, avg((here < began)::INTEGER) AS backward, \
         count(DISTINCT (file_id, tid)) + count(*) FILTER (here < began) AS passes, \
         count(reached) AS pairs FROM moves GROUP BY writes"
    ))?)?;
    let (writes, pairs) = (flags(&rows, "writes")?, numbers(&rows, "pairs")?);
    for (wanted, sequential, forward, backward, passes) in [
        (
            false,
            &mut meta.read_sequential,
            &mut meta.read_forward,
            &mut meta.read_backward,
            &mut meta.read_passes,
        ),
        (
            true,
            &mut meta.written_sequential,
            &mut meta.written_forward,
            &mut meta.written_backward,
            &mut meta.written_passes,
        ),
    ] {
        let known = |i: &usize| writes.value(*i) == wanted && pairs.value(*i) > 0.0;
        if let Some(row) = (0..rows.num_rows()).find(known) {
            *sequential = Some(numbers(&rows, "sequential")?.value(row));
            *forward = Some(numbers(&rows, "forward")?.value(row));
            *backward = Some(numbers(&rows, "backward")?.value(row));
            *passes = Some(numbers(&rows, "passes")?.value(row));
        }
    }
    // A fault maps pages around it, too: where it ended is not known, only which way the next one went.
    let rows = collect(db.run(&format!(
        "WITH touches AS (SELECT file_id, tid, file_offset AS here, lag(file_offset) OVER before AS began \
         FROM {faults} AND file_offset IS NOT NULL \
         WINDOW before AS (PARTITION BY file_id, tid ORDER BY ts_ns, rid)) \
         SELECT avg((here > began)::INTEGER) AS forward, avg((here < began)::INTEGER) AS backward, \
         count(DISTINCT (file_id, tid)) + least(count(*) FILTER (here < began), \
         count(*) FILTER (here > began)) AS passes, \
         (SELECT nullif(count(DISTINCT tid), 0) FROM (SELECT tid FROM touches UNION SELECT tid FROM {calls})) \
         AS threads FROM touches"
    ))?)?;
    let first = |name: &str| Ok::<_, ApiError>(numbers(&rows, name)?.iter().flatten().next());
    meta.fault_forward = first("forward")?;
    meta.fault_backward = first("backward")?;
    meta.fault_passes = meta.fault_forward.and(first("passes")?);
    meta.threads = first("threads")?;
    Ok(())
}

fn points(
    reader: &Reader,
    calls: &str,
    faults: &str,
    meta: &OffsetsMeta,
) -> Result<ArrowAnswer, ApiError> {
    let start = reader.started_at_ns();
    // The number of bytes of a page that a program used is unknown.
    let rows = collect(reader.db().run(&format!(
        "SELECT ts_ns - {start} AS t, dur_ns AS dur, file_offset, bytes, \
         call_writes(syscall) AS write, false AS fault, file_id, tid, rid FROM {calls} \
         UNION ALL SELECT ts_ns - {start}, dur_ns, file_offset, NULL, \
         access IS NOT DISTINCT FROM 'write', true, file_id, tid, rid FROM {faults} \
         ORDER BY t, rid"
    ))?)?;
    let mut columns = Columns::default();
    for name in ["t", "dur", "file_offset", "bytes"] {
        columns.optional_numbers(name, numbers(&rows, name)?.iter());
    }
    for name in ["write", "fault"] {
        columns.flags(name, flags(&rows, name)?.iter().flatten());
    }
    columns.optional_numbers("file", numbers(&rows, "file_id")?.iter());
    for name in ["tid", "rid"] {
        columns.optional_numbers(name, numbers(&rows, name)?.iter());
    }
    columns.answer(meta)
}

fn grid(
    reader: &Reader,
    calls: &str,
    faults: &str,
    window: Window,
    meta: &OffsetsMeta,
) -> Result<ArrowAnswer, ApiError> {
    let across = f64::from(meta.width) / (window.to - window.from) as f64;
    let down = f64::from(meta.height) / (meta.offset_to - meta.offset_from).max(1.0);
    let cell = format!(
        "least({width} - 1, floor((ts_ns - {from})::DOUBLE * {across:e}::DOUBLE))::SMALLINT AS x, \
         least({height} - 1, floor(greatest(0, file_offset - {lo})::DOUBLE * {down:e}::DOUBLE))::SMALLINT AS y, tid",
        width = meta.width,
        height = meta.height,
        from = window.from,
        lo = meta.offset_from as i64,
    );
    // The direction of bytes is looked up per call name, not per row.
    let rows = collect(reader.db().run(&format!(
        "SELECT x::DOUBLE AS x, y::DOUBLE AS y, \
         coalesce(sum(n) FILTER (reads), 0)::DOUBLE AS reads, \
         coalesce(sum(n) FILTER (writes), 0)::DOUBLE AS writes, \
         coalesce(sum(n) FILTER (fault), 0)::DOUBLE AS faults, \
         max(longest)::DOUBLE AS max_ns, arg_max(tid, n)::DOUBLE AS tid FROM ( \
         SELECT x, y, tid, call_reads(syscall) AS reads, call_writes(syscall) AS writes, \
         false AS fault, n, longest FROM ( \
         SELECT {cell}, syscall, count(*) AS n, max(dur_ns) AS longest FROM {calls} GROUP BY ALL) \
         UNION ALL SELECT {cell}, access IS DISTINCT FROM 'write', \
         access IS NOT DISTINCT FROM 'write', true, count(*), max(dur_ns) \
         FROM {faults} GROUP BY ALL) GROUP BY ALL ORDER BY ALL"
    ))?)?;
    let mut columns = Columns::default();
    for name in ["x", "y", "reads", "writes", "faults", "max_ns", "tid"] {
        columns.optional_numbers(name, numbers(&rows, name)?.iter());
    }
    columns.answer(meta)
}

/// Bytes that calls of one direction touched, each once. Files that had one path one after another have different
/// bytes.
fn unique_bytes(
    reader: &Reader,
    stop: &Stop,
    calls: &str,
    direction: &str,
) -> Result<f64, ApiError> {
    let sql = format!(
        "SELECT file_id, file_offset AS first, file_offset + bytes AS beyond FROM {calls} \
         AND {direction}(syscall)"
    );
    let mut rows = reader.db().run(&sql)?;
    let mut covered: HashMap<i64, Covered> = HashMap::new();
    while let Some(batch) = rows.next_batch()? {
        stop.check()?;
        let values = |name: &str| {
            let values = arrow::compute::cast(column(&batch, name)?, &DataType::Int64);
            let values = values.map_err(internal)?;
            let values = values.as_primitive_opt::<Int64Type>().cloned();
            values.ok_or_else(|| ApiError::internal("offsets are no numbers"))
        };
        let (file, first, beyond) = (values("file_id")?, values("first")?, values("beyond")?);
        for i in 0..first.len() {
            let covered = covered.entry(file.value(i)).or_default();
            covered.add(first.value(i), beyond.value(i));
        }
    }
    Ok(covered.into_values().map(Covered::bytes).sum())
}

/// Parts of a file.
#[derive(Default)]
struct Covered {
    /// In order, apart from each other.
    merged: Vec<(i64, i64)>,
    /// Not yet among them.
    new: Vec<(i64, i64)>,
}

impl Covered {
    fn add(&mut self, first: i64, beyond: i64) {
        // Most files are read in order: one grows.
        if let Some(last) = self.new.last_mut()
            && first <= last.1
            && first >= last.0
        {
            last.1 = last.1.max(beyond);
            return;
        }
        self.new.push((first, beyond));
        if self.new.len() >= INTERVALS.max(self.merged.len()) {
            self.merge();
        }
    }

    fn merge(&mut self) {
        let mut all = std::mem::take(&mut self.merged);
        all.append(&mut self.new);
        all.sort_unstable();
        for (first, beyond) in all {
            match self.merged.last_mut() {
                Some(last) if first <= last.1 => last.1 = last.1.max(beyond),
                _ => self.merged.push((first, beyond)),
            }
        }
    }

    fn bytes(mut self) -> f64 {
        self.merge();
        self.merged.iter().map(|(a, b)| (b - a) as f64).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_has_both_ends() {
        assert_eq!(part(None, None).unwrap(), None);
        assert_eq!(part(Some(4.5), Some(9.5)).unwrap(), Some((4, 10)));
        for (low, high) in [
            (Some(1.0), None),
            (None, Some(1.0)),
            (Some(2.0), Some(2.0)),
            (Some(-1.0), Some(2.0)),
            (Some(f64::NAN), Some(2.0)),
            (Some(0.0), Some(f64::INFINITY)),
        ] {
            assert!(part(low, high).is_err(), "{low:?} {high:?}");
        }
    }

    #[test]
    fn page_faults_have_a_direction() {
        let dir = tempfile::tempdir().unwrap();
        let files = fathom_testkit::sample::Files::new(dir.path());
        let meta = fathom_testkit::sample::meta();
        let limits = fathom_query::Limits::default();
        let db = Db::open_parts(&meta, |table| files.parts(table), limits).unwrap();
        // Thread 1 walks file 7 down from its end; thread 2 has a single fault.
        let rows = "(SELECT 7 AS file_id, 1 AS tid, 4096 * (10 - i) AS file_offset, i AS ts_ns, i AS rid \
                    FROM range(5) AS r(i) UNION ALL SELECT 7, 2, 0, 3, 100) WHERE true";
        let calls = "(SELECT 7 AS file_id, 1 AS tid, 0 AS file_offset, 1 AS bytes, 'read' AS syscall, \
                     0 AS ts_ns, 0 AS rid) WHERE false";
        let mut meta = OffsetsMeta::default();
        patterns(&db, calls, rows, &mut meta).unwrap();
        assert_eq!(
            (meta.fault_forward, meta.fault_backward),
            (Some(0.0), Some(1.0))
        );
        assert_eq!((meta.fault_passes, meta.threads), (Some(2.0), Some(2.0)));
        assert_eq!(meta.read_passes, None);
    }

    #[test]
    fn files_are_ids() {
        assert_eq!(chosen("3,7").unwrap(), [3, 7]);
        for text in ["", "a", "1,", "1;2"] {
            assert!(chosen(text).is_err(), "{text}");
        }
    }

    #[test]
    fn bytes_count_once() {
        let mut covered = Covered::default();
        for (first, beyond) in [(0, 10), (10, 20), (5, 15), (100, 110), (90, 101), (50, 51)] {
            covered.add(first, beyond);
        }
        assert_eq!(covered.bytes(), 20.0 + 20.0 + 1.0);
        assert_eq!(Covered::default().bytes(), 0.0);
    }

    #[test]
    fn as_counting_every_byte_does() {
        let mut random = fathom_testkit::Random::new(7);
        let mut covered = Covered::default();
        let mut bytes = vec![false; 5000];
        for i in 0..2000 {
            let first = random.below(4900) as usize;
            let beyond = first + random.below(30) as usize;
            bytes[first..beyond].fill(true);
            covered.add(first as i64, beyond as i64);
            if i % 300 == 0 {
                covered.merge();
            }
        }
        assert_eq!(covered.bytes(), bytes.iter().filter(|b| **b).count() as f64);
    }
}
