//! Sums of rows, and rows, by SQL over the parts that a window is in.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::AsArray;
use arrow::datatypes::{Int32Type, Int64Type};
use fathom_pyramid::{Key, LATENCY_BUCKETS, Latency, Sum};
use parquet::file::metadata::ParquetMetaDataReader;
use parquet::file::statistics::Statistics;

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

/// Gives `each` the sums of the rows of a window: the beginning of the bucket, the
/// key as the pyramid has it, the sums, and the bytes by direction.
pub(super) fn sums(
    db: &Db,
    parts: &[PathBuf],
    window: (i64, i64),
    shift: u8,
    request: &Request,
    each: impl FnMut(i64, &Key, (&Sum, Bytes), &Latency),
) -> Result<(), QueryError> {
    // The key that the pyramid would have had, so that both can be added up.
    let text = match (request.by, gather::dimension(request)) {
        (By::Syscall | By::Class, _) | (By::Nothing, Some(0)) => true,
        (By::Thread | By::Process | By::File | By::Layer, _) | (By::Nothing, _) => false,
    };
    let key = match (request.by, gather::dimension(request)) {
        (By::Syscall | By::Class, _) | (By::Nothing, Some(0)) => "syscall",
        (By::Thread | By::Process, _) | (By::Nothing, Some(1)) => "(pid::BIGINT << 32) + tid",
        (By::File, _) | (By::Nothing, Some(_)) => "file_id",
        (By::Nothing | By::Layer, None | Some(_)) => "NULL::BIGINT",
    };
    let latency = if request.latency {
        "coalesce(duration_bucket(dur_ns), 0)"
    } else {
        "-1"
    };
    let source = source(parts)?;
    let conditions = conditions(window, &request.filter);
    // Which way bytes go is told for each name of a call, not for each row.
    let sql = format!(
        "SELECT bucket, key, level, sum(n)::BIGINT, sum(errors)::BIGINT, sum(bytes)::BIGINT, \
         sum(time)::BIGINT, max(longest), \
         coalesce(sum(bytes) FILTER (call_reads(syscall)), 0)::BIGINT, \
         coalesce(sum(bytes) FILTER (call_writes(syscall)), 0)::BIGINT FROM ( \
         SELECT (ts_ns - {from}) >> {shift} AS bucket, {key} AS key, {latency}::INTEGER AS level, \
         syscall, count(*) AS n, count(errno) AS errors, coalesce(sum(bytes), 0) AS bytes, \
         coalesce(sum(dur_ns), 0) AS time, coalesce(max(dur_ns), 0) AS longest \
         FROM {source} WHERE {conditions} GROUP BY 1, 2, 3, 4) GROUP BY 1, 2, 3",
        from = window.0,
    );
    each_sum(db, &sql, window.0, shift, text, each)
}

/// Gives `each` the sums of the visits of a window, by layer: of what they took themselves, or,
/// of those that stand for a `whole` request, of all that it took. With `calls`, parts and a
/// condition, only visits of these calls.
pub(super) fn visits(
    db: &Db,
    parts: &[PathBuf],
    window: (i64, i64),
    shift: u8,
    whole: bool,
    calls: Option<(Vec<PathBuf>, String)>,
    each: impl FnMut(i64, &Key, (&Sum, Bytes), &Latency),
) -> Result<(), QueryError> {
    let source = source(parts)?;
    let mut conditions = format!("ts_ns >= {} AND ts_ns < {}", window.0, window.1);
    if whole {
        conditions.push_str(" AND depth = 0");
    }
    match calls {
        None => {}
        Some((calls, _)) if calls.is_empty() => conditions.push_str(" AND false"),
        Some((calls, filter)) => {
            let calls = self::source(&calls)?;
            conditions.push_str(&format!(
                " AND rid IN (SELECT rid FROM {calls} WHERE {filter})"
            ));
        }
    }
    let sql = format!(
        "SELECT (ts_ns - {from}) >> {shift} AS bucket, layer AS key, \
         coalesce(duration_bucket({took}), 0)::INTEGER AS level, count(*)::BIGINT, \
         0::BIGINT, 0::BIGINT, coalesce(sum({took}), 0)::BIGINT, coalesce(max({took}), 0), \
         0::BIGINT, 0::BIGINT FROM {source} WHERE {conditions} GROUP BY 1, 2, 3",
        from = window.0,
        took = if whole { "dur_ns" } else { "self_ns" },
    );
    each_sum(db, &sql, window.0, shift, true, each)
}

/// Gives `each` what a statement says: bucket, key (a name when it is `text`, else a number),
/// entry of the histogram, rows, errors, bytes, time, longest, bytes read, bytes written.
fn each_sum(
    db: &Db,
    sql: &str,
    from: i64,
    shift: u8,
    text: bool,
    mut each: impl FnMut(i64, &Key, (&Sum, Bytes), &Latency),
) -> Result<(), QueryError> {
    let mut rows = db.run(sql)?;
    while let Some(batch) = rows.next_batch()? {
        let unexpected = || QueryError::Sql("the sums have another type than expected".into());
        let number = |i: usize| batch.column(i).as_primitive_opt::<Int64Type>();
        let (Some(bucket), Some(level)) =
            (number(0), batch.column(2).as_primitive_opt::<Int32Type>())
        else {
            return Err(unexpected());
        };
        let keys: Vec<Key> = if text {
            let names = batch
                .column(1)
                .as_string_opt::<i32>()
                .ok_or_else(unexpected)?;
            names
                .iter()
                .map(|n| n.map_or(Key::Null, |n| Key::Text(Arc::from(n))))
                .collect()
        } else {
            let numbers = number(1).ok_or_else(unexpected)?;
            numbers
                .iter()
                .map(|n| n.map_or(Key::Null, Key::Int))
                .collect()
        };
        let sums: Option<Vec<_>> = (3..10).map(number).collect();
        let sums = sums.ok_or_else(unexpected)?;
        for (row, key) in keys.iter().enumerate().take(batch.num_rows()) {
            let value = |i: usize| u64::try_from(sums[i].value(row)).unwrap_or(0);
            let sum = Sum {
                count: value(0),
                errors: value(1),
                bytes: value(2),
                time_ns: value(3),
                max_ns: value(4),
            };
            let mut latency = [0; LATENCY_BUCKETS];
            let level = usize::try_from(level.value(row)).ok();
            if let Some(entry) = level.and_then(|l| latency.get_mut(l)) {
                *entry = u32::try_from(sum.count).unwrap_or(u32::MAX);
            }
            let bytes = Bytes {
                read: value(5),
                written: value(6),
            };
            let time = from + (bucket.value(row) << shift);
            each(time, key, (&sum, bytes), &latency);
        }
    }
    Ok(())
}
