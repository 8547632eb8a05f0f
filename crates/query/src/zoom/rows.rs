//! Sums of rows, and rows, by SQL over the parts that a window is in.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{Array, AsArray, Int64Array, StringArray};
use arrow::datatypes::Int64Type;
use arrow::record_batch::RecordBatch;
use fathom_pyramid::{Key, Latency, Sum};
use parquet::file::metadata::ParquetMetaDataReader;
use parquet::file::statistics::Statistics;

use super::buckets::{Buckets, Numbers, Row};
use super::gather::Bytes;
use super::{By, Filter, Request, gather};
use crate::{Db, QueryError, tables};

/// Rows that lie together in a part, as its footer describes them.
pub(super) struct Group {
    pub(super) first_ns: i64,
    pub(super) last_ns: i64,
    pub(super) longest_ns: i64,
}

/// The groups of rows of a part.
pub(super) fn groups(path: &Path) -> Result<Vec<Group>, String> {
    let file = File::open(path).map_err(|e| e.to_string())?;
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
        let (first_ns, last_ns) = bounds("ts_ns").unwrap_or((0, i64::MAX));
        Group {
            first_ns,
            last_ns,
            longest_ns: bounds("dur_ns").map_or(i64::MAX, |b| b.1),
        }
    });
    Ok(groups.collect())
}

pub(super) fn source(parts: &[PathBuf]) -> Result<String, QueryError> {
    Ok(format!(
        "read_parquet([{}])",
        tables::path_literals(parts)?.join(", ")
    ))
}

fn conditions(window: (i64, i64), filter: &Filter) -> String {
    let times = format!("ts_ns >= {} AND ts_ns < {}", window.0, window.1);
    match filter.sql() {
        Some(more) => format!("{times} AND {more}"),
        None => times,
    }
}

/// The statement for the rows of a window.
pub(super) fn events(
    parts: &[PathBuf],
    window: (i64, i64),
    filter: &Filter,
    limit: usize,
) -> Result<String, QueryError> {
    let source = if parts.is_empty() {
        "syscalls".to_string()
    } else {
        source(parts)?
    };
    let conditions = conditions(window, filter);
    Ok(format!(
        "SELECT * FROM {source} WHERE {conditions} ORDER BY ts_ns, rid LIMIT {limit}"
    ))
}

/// Number of the key of rows that have none.
const NO_KEY: u32 = u32::MAX;

/// Gives `each` the sums of the rows of a window: the beginning of the bucket, the
/// key as the pyramid has it, the sums, and the bytes by direction.
///
/// The rows are added up here: to put them in buckets of time and of duration takes the
/// database three times as long as to read them.
pub(super) fn sums(
    db: &Db,
    parts: &[PathBuf],
    window: (i64, i64),
    shift: u8,
    request: &Request,
    mut each: impl FnMut(i64, &Key, (&Sum, Bytes), &Latency),
) -> Result<(), QueryError> {
    // The key that the pyramid would have had, so that both can be added up.
    let by_call = matches!(
        (request.by, gather::dimension(request)),
        (By::Syscall | By::Class, _) | (By::Nothing, Some(0))
    );
    let key = match (request.by, gather::dimension(request)) {
        (By::Thread | By::Process, _) | (By::Nothing, Some(1)) => "(pid::BIGINT << 32) + tid",
        (By::File, _) | (By::Nothing, Some(2..)) => "file_id",
        _ => "NULL::BIGINT",
    };
    let sql = format!(
        "SELECT ts_ns, coalesce(dur_ns, 0), coalesce(bytes, 0), {key}, syscall, \
         errno IS NOT NULL FROM {} WHERE {}",
        source(parts)?,
        conditions(window, &request.filter),
    );
    let mut buckets = Buckets::new(window.0, shift, request.latency);
    let mut calls = Numbers::<Arc<str>>::default();
    let mut ways = Vec::new();
    let mut others = Numbers::<i64>::default();
    let mut rows = db.run(&sql)?;
    while let Some(batch) = rows.next_batch()? {
        let number = |column| numbers(&batch, column);
        let (time, took, bytes, key) = (number(0)?, number(1)?, number(2)?, number(3)?);
        let names = texts(&batch, 4)?;
        let failed = batch.column(5).as_boolean_opt().ok_or_else(unexpected)?;
        for (row, name) in names.iter().enumerate() {
            let call = match name {
                None => NO_KEY,
                Some(name) => calls.of(name, |name| {
                    let name: Arc<str> = Arc::from(name);
                    ways.push(gather::direction(&Key::Text(Arc::clone(&name)), 1));
                    name
                }),
            };
            let key = match by_call {
                true => call,
                false if key.is_null(row) => NO_KEY,
                false => others.of(&key.value(row), |key| *key),
            };
            buckets.row(&Row {
                time: time.value(row),
                key,
                took_ns: took.value(row),
                failed: failed.value(row),
                bytes: bytes.value(row),
                ways: ways.get(call as usize).copied().unwrap_or_default(),
            });
        }
    }
    for (entry, latency) in buckets.iter() {
        let key = match by_call {
            true => calls.key(entry.key).map(|name| Key::Text(name.clone())),
            false => others.key(entry.key).map(|number| Key::Int(*number)),
        };
        let key = key.unwrap_or(Key::Null);
        each(entry.time, &key, (&entry.sum, entry.bytes), latency);
    }
    Ok(())
}

/// A visit of a layer.
pub(super) struct Visit<'a> {
    /// Beginning, CLOCK_MONOTONIC nanoseconds.
    pub(super) time: i64,
    pub(super) layer: &'a str,
    /// What it took without those in it, nanoseconds.
    pub(super) self_ns: i64,
    /// All that it took, if it stands for the whole of a request, nanoseconds.
    pub(super) whole_ns: Option<i64>,
}

/// Gives `each` the visits that begin in a window. With `calls`, parts and a condition, only
/// visits of these calls.
pub(super) fn visits(
    db: &Db,
    parts: &[PathBuf],
    window: (i64, i64),
    calls: Option<(Vec<PathBuf>, String)>,
    mut each: impl FnMut(&Visit<'_>),
) -> Result<(), QueryError> {
    let mut conditions = format!("ts_ns >= {} AND ts_ns < {}", window.0, window.1);
    match calls {
        None => {}
        Some((calls, _)) if calls.is_empty() => conditions.push_str(" AND false"),
        Some((calls, filter)) => {
            let calls = source(&calls)?;
            conditions.push_str(&format!(
                " AND rid IN (SELECT rid FROM {calls} WHERE {filter})"
            ));
        }
    }
    let sql = format!(
        "SELECT ts_ns, coalesce(self_ns, 0), \
         CASE WHEN depth = 0 THEN coalesce(dur_ns, 0) END, layer FROM {} WHERE {conditions}",
        source(parts)?,
    );
    let mut rows = db.run(&sql)?;
    while let Some(batch) = rows.next_batch()? {
        let number = |column| numbers(&batch, column);
        let (time, own, whole) = (number(0)?, number(1)?, number(2)?);
        for (row, layer) in texts(&batch, 3)?.iter().enumerate() {
            each(&Visit {
                time: time.value(row),
                layer: layer.unwrap_or_default(),
                self_ns: own.value(row),
                whole_ns: whole.is_valid(row).then(|| whole.value(row)),
            });
        }
    }
    Ok(())
}

fn unexpected() -> QueryError {
    QueryError::Sql("the rows have another type than expected".into())
}

fn numbers(batch: &RecordBatch, column: usize) -> Result<&Int64Array, QueryError> {
    let column = batch.columns().get(column);
    column
        .and_then(|c| c.as_primitive_opt::<Int64Type>())
        .ok_or_else(unexpected)
}

fn texts(batch: &RecordBatch, column: usize) -> Result<&StringArray, QueryError> {
    let column = batch.columns().get(column);
    column
        .and_then(|c| c.as_string_opt::<i32>())
        .ok_or_else(unexpected)
}
