//! Sums of rows, and rows, by SQL over the parts that a window is in.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{Array, AsArray, BooleanArray, Int32Array, Int64Array, StringArray};
use arrow::datatypes::{Int32Type, Int64Type};
use arrow::record_batch::RecordBatch;
use fathom_model::tables::{SLICES, WAITS};
use fathom_pyramid::{Key, Latency, Sum};
use fathom_session::open_regular;
use parquet::file::metadata::ParquetMetaDataReader;
use parquet::file::statistics::Statistics;

use super::buckets::{Buckets, Numbers, Row};
use super::gather::{Bytes, Faults};
use super::{By, Filter, PAGE_FAULT, Request};
use crate::moved::Moved;
use crate::{Db, QueryError, tables};

/// Rows that lie together in a part, as its footer describes them.
pub(super) struct Group {
    pub(super) first_at_ns: i64,
    pub(super) last_at_ns: i64,
    pub(super) longest_ns: i64,
}

/// The groups of rows of a part.
pub(super) fn groups(path: &Path) -> Result<Vec<Group>, String> {
    let file = open_regular(path).map_err(|e| e.to_string())?;
    let metadata = ParquetMetaDataReader::new()
        .parse_and_finish(&file)
        .map_err(|e| e.to_string())?;
    let groups = metadata.row_groups().iter().map(|group| {
        let bounds = |name: &str| {
            let column = group
                .columns()
                .iter()
                .find(|c| c.column_path().string() == name);
            match column.and_then(|c| c.statistics()) {
                Some(Statistics::Int64(s)) => s.min_opt().copied().zip(s.max_opt().copied()),
                _ => None,
            }
        };
        // Without statistics it may be anything.
        let (first_at_ns, last_at_ns) = bounds("ts_ns").unwrap_or((0, i64::MAX));
        Group {
            first_at_ns,
            last_at_ns,
            longest_ns: bounds("dur_ns").map_or(i64::MAX, |b| b.1),
        }
    });
    Ok(groups.collect())
}

pub(super) fn source(db: &Db, parts: &[PathBuf]) -> Result<String, QueryError> {
    let parts = db.place().literals(parts)?;
    let source = format!("read_parquet([{}])", parts.join(", "));
    Ok(moved(db, source))
}

/// Rows of a source on the clock that is asked for.
fn moved(db: &Db, source: String) -> String {
    match db.moved() {
        Some(moved) => moved.source(&source),
        None => source,
    }
}

/// The condition of a window.
fn within(db: &Db, window: (i64, i64)) -> String {
    let chosen = db.moved().map_or(String::new(), Moved::condition);
    format!("ts_ns >= {} AND ts_ns < {}{chosen}", window.0, window.1)
}

fn conditions(db: &Db, window: (i64, i64), filter: &Filter) -> String {
    let times = within(db, window);
    match filter.sql() {
        Some(more) => format!("{times} AND {more}"),
        None => times,
    }
}

/// The statement for the rows of a window.
pub(super) fn events(
    db: &Db,
    parts: &[PathBuf],
    window: (i64, i64),
    filter: &Filter,
    limit: usize,
) -> Result<String, QueryError> {
    let source = if parts.is_empty() {
        "syscalls".to_string()
    } else {
        source(db, parts)?
    };
    let conditions = conditions(db, window, filter);
    Ok(format!(
        "SELECT * FROM {source} WHERE {conditions} ORDER BY ts_ns, rid LIMIT {limit}"
    ))
}

/// Gives `each` the sums of the rows of a window: the beginning of the bucket, the
/// key as the pyramid has it, the sums, and the bytes by direction.
///
/// The rows are added up here: to put them in buckets of time and of duration takes the
/// database three times as long as to read them. So that it has nothing to work out for each
/// row, nulls and pairs are dealt with here, too.
pub(super) fn sums(
    db: &Db,
    parts: &[PathBuf],
    window: (i64, i64),
    shift: u8,
    request: &Request,
    mut each: impl FnMut(i64, &Key, (&Sum, Bytes), &Latency),
) -> Result<(), QueryError> {
    let keys = key_columns(request.by);
    // The direction of bytes is looked up per call name, not per row.
    let sql = format!(
        "SELECT ts_ns, dur_ns, bytes, errno IS NOT NULL, call_reads(syscall), \
         call_writes(syscall){keys} FROM {} WHERE {}",
        source(db, parts)?,
        conditions(db, window, &request.filter),
    );
    let mut buckets = Buckets::new(window.0, shift, request.latency);
    let mut known = Known::default();
    let mut rows = db.run(&sql)?;
    while let Some(batch) = rows.next_batch()? {
        let (time, took, bytes) = (wide(&batch, 0)?, wide(&batch, 1)?, wide(&batch, 2)?);
        let (failed, reads, writes) = (truth(&batch, 3)?, truth(&batch, 4)?, truth(&batch, 5)?);
        let keys = Keys::new(request.by, &batch, 6)?;
        for row in 0..batch.num_rows() {
            buckets.row(&Row {
                time: time.value(row),
                key: keys.of(row, &mut known),
                took_ns: value(took, row),
                failed: is_true(failed, row),
                bytes: value(bytes, row),
                ways: Bytes {
                    read: u64::from(is_true(reads, row)),
                    written: u64::from(is_true(writes, row)),
                },
            });
        }
    }
    for (entry, latency) in buckets.iter() {
        let key = known.key(entry.key);
        each(entry.time, &key, (&entry.sum, entry.bytes), latency);
    }
    Ok(())
}

/// Gives `each` the calls of `source` that a condition holds for: beginning, duration, key.
pub(super) fn long_calls(
    db: &Db,
    source: &str,
    by: By,
    condition: &str,
    mut each: impl FnMut(i64, i64, &Key),
) -> Result<(), QueryError> {
    // The keys are in the same columns as in `sums`.
    let sql = format!(
        "SELECT ts_ns, dur_ns, NULL, NULL, NULL, NULL{} FROM {source} WHERE {condition}",
        key_columns(by)
    );
    let mut known = Known::default();
    let mut rows = db.run(&sql)?;
    while let Some(batch) = rows.next_batch()? {
        let (time, took) = (wide(&batch, 0)?, wide(&batch, 1)?);
        let keys = Keys::new(by, &batch, 6)?;
        for row in 0..batch.num_rows() {
            let key = keys.of(row, &mut known);
            each(time.value(row), value(took, row), &known.key(key));
        }
    }
    Ok(())
}

/// A visit of a layer that is spread over buckets.
#[derive(Debug)]
pub(super) struct LongVisit {
    pub(super) rid: i64,
    pub(super) begin: i64,
    pub(super) dur_ns: i64,
    pub(super) self_ns: i64,
    pub(super) depth: i32,
    pub(super) layer: Key,
}

/// The visits in `parts`.
pub(super) fn visits_in(db: &Db, parts: &[PathBuf]) -> Result<String, QueryError> {
    let rows = tables::rows(&SLICES, db.place(), parts)?;
    Ok(moved(db, format!("({rows})")))
}

/// Adds the visits in `parts` that a condition holds for.
pub(super) fn long_visits(
    db: &Db,
    parts: &[PathBuf],
    condition: &str,
    out: &mut Vec<LongVisit>,
) -> Result<(), QueryError> {
    let sql = format!(
        "SELECT rid, ts_ns, dur_ns, self_ns, depth, layer FROM {} WHERE {condition}",
        visits_in(db, parts)?
    );
    let mut layers = Numbers::<Arc<str>>::default();
    let mut rows = db.run(&sql)?;
    while let Some(batch) = rows.next_batch()? {
        let (rid, begin, took) = (wide(&batch, 0)?, wide(&batch, 1)?, wide(&batch, 2)?);
        let (own, depth) = (wide(&batch, 3)?, narrow(&batch, 4)?);
        for (row, layer) in texts(&batch, 5)?.iter().enumerate() {
            let number = layers.of(layer.unwrap_or_default(), |name| Arc::from(name));
            out.push(LongVisit {
                rid: value(rid, row),
                begin: begin.value(row),
                dur_ns: value(took, row),
                self_ns: value(own, row),
                depth: depth.value(row),
                layer: layers
                    .key(number)
                    .map_or(Key::Null, |name| Key::Text(name.clone())),
            });
        }
    }
    Ok(())
}

/// The columns of a key, to be appended to others.
fn key_columns(by: By) -> &'static str {
    match by {
        By::Syscall | By::Class | By::Purpose => ", syscall",
        By::Thread | By::Process => ", pid, tid",
        By::File => ", file_id",
        By::Nothing | By::Layer | By::Reason => "",
    }
}

/// The same of table `faults`, whose rows have no call.
fn fault_key_columns(by: By) -> &'static str {
    match by {
        By::Syscall | By::Class | By::Purpose => "",
        _ => key_columns(by),
    }
}

/// The key of a page fault of which these are the columns from `first` on.
struct FaultKeys<'a> {
    keys: Keys<'a>,
    all: Key,
}

impl<'a> FaultKeys<'a> {
    fn new(by: By, batch: &'a RecordBatch, first: usize) -> Result<Self, QueryError> {
        let named = matches!(by, By::Syscall | By::Class | By::Purpose);
        Ok(Self {
            keys: match named {
                true => Keys::None,
                false => Keys::new(by, batch, first)?,
            },
            all: match named {
                true => Key::Text(Arc::from(PAGE_FAULT)),
                false => Key::Null,
            },
        })
    }

    fn of(&self, row: usize) -> Key {
        self.keys
            .number(row)
            .map_or_else(|| self.all.clone(), Key::Int)
    }
}

/// Gives `each` the page faults of a window that pass the filter: the beginning of the bucket,
/// the key, and their sums.
pub(super) fn faults(
    db: &Db,
    parts: &[PathBuf],
    window: (i64, i64),
    (by, shift): (By, u8),
    condition: &str,
    each: &mut dyn FnMut(i64, &Key, Faults),
) -> Result<(), QueryError> {
    let sql = format!(
        "SELECT (ts_ns >> {shift}) << {shift}, count(*), coalesce(sum(dur_ns), 0)::BIGINT{} \
         FROM {} WHERE {} AND {condition} GROUP BY ALL",
        fault_key_columns(by),
        faults_in(db, parts)?,
        within(db, window),
    );
    let mut rows = db.run(&sql)?;
    while let Some(batch) = rows.next_batch()? {
        let (time, count, took) = (wide(&batch, 0)?, wide(&batch, 1)?, wide(&batch, 2)?);
        let keys = FaultKeys::new(by, &batch, 3)?;
        for row in 0..batch.num_rows() {
            let sums = Faults {
                count: value(count, row).max(0) as u64,
                time_ns: value(took, row).max(0) as u64,
            };
            each(time.value(row), &keys.of(row), sums);
        }
    }
    Ok(())
}

/// Table `faults` of `parts`, as conditions on page faults take it.
fn faults_in(db: &Db, parts: &[PathBuf]) -> Result<String, QueryError> {
    let source = source(db, parts)?;
    Ok(format!("(SELECT *, NULL::VARCHAR AS path2 FROM {source})"))
}

/// Gives `each` the page faults in `parts` that a condition holds for: beginning, duration, key.
pub(super) fn long_faults(
    db: &Db,
    parts: &[PathBuf],
    by: By,
    condition: &str,
    mut each: impl FnMut(i64, i64, &Key),
) -> Result<(), QueryError> {
    let sql = format!(
        "SELECT ts_ns, dur_ns{} FROM {} WHERE {condition}",
        fault_key_columns(by),
        faults_in(db, parts)?,
    );
    let mut rows = db.run(&sql)?;
    while let Some(batch) = rows.next_batch()? {
        let (time, took) = (wide(&batch, 0)?, wide(&batch, 1)?);
        let keys = FaultKeys::new(by, &batch, 2)?;
        for row in 0..batch.num_rows() {
            each(time.value(row), value(took, row), &keys.of(row));
        }
    }
    Ok(())
}

/// Number of the key of rows that have none.
const NO_KEY: u32 = u32::MAX;

/// Keys that were met, all of one kind.
#[derive(Default)]
struct Known {
    names: Numbers<Arc<str>>,
    numbers: Numbers<i64>,
}

impl Known {
    fn key(&self, number: u32) -> Key {
        let name = self.names.key(number).map(|name| Key::Text(name.clone()));
        let number = || self.numbers.key(number).map(|number| Key::Int(*number));
        name.or_else(number).unwrap_or(Key::Null)
    }
}

/// Keys of the rows of a batch.
enum Keys<'a> {
    None,
    Names(&'a StringArray),
    Numbers(&'a Int64Array),
    Pairs(&'a Int32Array, &'a Int32Array),
}

impl<'a> Keys<'a> {
    /// Those in the columns from `first` on.
    fn new(by: By, batch: &'a RecordBatch, first: usize) -> Result<Self, QueryError> {
        Ok(match by {
            By::Syscall | By::Class | By::Purpose => Keys::Names(texts(batch, first)?),
            By::Thread | By::Process => {
                Keys::Pairs(narrow(batch, first)?, narrow(batch, first + 1)?)
            }
            By::File => Keys::Numbers(wide(batch, first)?),
            By::Nothing | By::Layer | By::Reason => Keys::None,
        })
    }

    /// The number of a row's key.
    fn of(&self, row: usize, known: &mut Known) -> u32 {
        match self {
            Keys::Names(names) if names.is_valid(row) => {
                known.names.of(names.value(row), |name| Arc::from(name))
            }
            _ => match self.number(row) {
                Some(key) => known.numbers.of(&key, |number| *number),
                None => NO_KEY,
            },
        }
    }

    /// A row's key that is a number or a pair of them.
    fn number(&self, row: usize) -> Option<i64> {
        match self {
            Keys::Numbers(numbers) => numbers.is_valid(row).then(|| numbers.value(row)),
            Keys::Pairs(a, b) => a
                .is_valid(row)
                .then(|| i64::from(a.value(row)) << 32 | i64::from(b.value(row) as u32)),
            Keys::None | Keys::Names(_) => None,
        }
    }
}

/// A visit of a layer.
pub(super) struct Visit<'a> {
    /// Beginning, CLOCK_MONOTONIC nanoseconds.
    pub(super) time: i64,
    pub(super) layer: &'a str,
    /// Duration without nested visits, nanoseconds.
    pub(super) self_ns: i64,
    /// All that it took, if it stands for the whole of a request, nanoseconds.
    pub(super) whole_ns: Option<i64>,
}

/// Passes the visits that start in a window to `each`. With `calls`, parts and a condition, only
/// visits of these calls.
pub(super) fn visits(
    db: &Db,
    parts: &[PathBuf],
    window: (i64, i64),
    calls: Option<(Vec<PathBuf>, String)>,
    mut each: impl FnMut(&Visit<'_>),
) -> Result<(), QueryError> {
    let mut conditions = within(db, window);
    match calls {
        None => {}
        Some((calls, _)) if calls.is_empty() => conditions.push_str(" AND false"),
        Some((calls, filter)) => {
            let calls = source(db, &calls)?;
            conditions.push_str(&format!(
                " AND rid IN (SELECT rid FROM {calls} WHERE {filter})"
            ));
        }
    }
    let sql = format!(
        "SELECT ts_ns, self_ns, dur_ns, depth, layer FROM {} WHERE {conditions}",
        visits_in(db, parts)?,
    );
    let mut rows = db.run(&sql)?;
    while let Some(batch) = rows.next_batch()? {
        let (time, own, took) = (wide(&batch, 0)?, wide(&batch, 1)?, wide(&batch, 2)?);
        let depth = narrow(&batch, 3)?;
        for (row, layer) in texts(&batch, 4)?.iter().enumerate() {
            let is_whole = depth.is_valid(row) && depth.value(row) == 0;
            each(&Visit {
                time: time.value(row),
                layer: layer.unwrap_or_default(),
                self_ns: value(own, row),
                whole_ns: is_whole.then(|| value(took, row)),
            });
        }
    }
    Ok(())
}

/// A time off the CPU.
pub(super) struct Wait<'a> {
    /// Beginning, CLOCK_MONOTONIC nanoseconds.
    pub(super) time: i64,
    pub(super) reason: &'a str,
    /// Until the thread ran again, nanoseconds.
    pub(super) took_ns: i64,
    /// Of which from its wake-up on.
    pub(super) queue_ns: i64,
}

/// Passes the waits that begin in a window to `each`.
pub(super) fn waits(
    db: &Db,
    parts: &[PathBuf],
    window: (i64, i64),
    condition: Option<&str>,
    each: impl FnMut(&Wait<'_>),
) -> Result<(), QueryError> {
    let times = within(db, window);
    let more = condition.map_or(String::new(), |sql| format!(" AND {sql}"));
    waits_where(db, parts, &format!("{times}{more}"), each)
}

/// Passes the waits that a condition holds for to `each`.
pub(super) fn waits_where(
    db: &Db,
    parts: &[PathBuf],
    condition: &str,
    mut each: impl FnMut(&Wait<'_>),
) -> Result<(), QueryError> {
    let source = format!("({})", tables::rows(&WAITS, db.place(), parts)?);
    let sql = format!(
        "SELECT ts_ns, dur_ns, run_queue_ns, reason FROM {} WHERE {condition}",
        moved(db, source)
    );
    let mut rows = db.run(&sql)?;
    while let Some(batch) = rows.next_batch()? {
        let (time, took, queue) = (wide(&batch, 0)?, wide(&batch, 1)?, wide(&batch, 2)?);
        for (row, reason) in texts(&batch, 3)?.iter().enumerate() {
            each(&Wait {
                time: time.value(row),
                reason: reason.unwrap_or_default(),
                took_ns: value(took, row),
                queue_ns: value(queue, row),
            });
        }
    }
    Ok(())
}

fn unexpected() -> QueryError {
    QueryError::Sql("the rows have another type than expected".into())
}

/// A number of a column, 0 for null.
fn value(column: &Int64Array, row: usize) -> i64 {
    match column.is_valid(row) {
        true => column.value(row),
        false => 0,
    }
}

/// A truth of a column, which null is not.
fn is_true(column: &BooleanArray, row: usize) -> bool {
    column.is_valid(row) && column.value(row)
}

fn wide(batch: &RecordBatch, column: usize) -> Result<&Int64Array, QueryError> {
    let column = batch.columns().get(column);
    column
        .and_then(|c| c.as_primitive_opt::<Int64Type>())
        .ok_or_else(unexpected)
}

fn narrow(batch: &RecordBatch, column: usize) -> Result<&Int32Array, QueryError> {
    let column = batch.columns().get(column);
    column
        .and_then(|c| c.as_primitive_opt::<Int32Type>())
        .ok_or_else(unexpected)
}

fn truth(batch: &RecordBatch, column: usize) -> Result<&BooleanArray, QueryError> {
    let column = batch.columns().get(column);
    column
        .and_then(|c| c.as_boolean_opt())
        .ok_or_else(unexpected)
}

fn texts(batch: &RecordBatch, column: usize) -> Result<&StringArray, QueryError> {
    let column = batch.columns().get(column);
    column
        .and_then(|c| c.as_string_opt::<i32>())
        .ok_or_else(unexpected)
}
