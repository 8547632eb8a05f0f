//! Answers as Arrow columns.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray, BooleanArray, Int32Array, Int64Array, ListBuilder, PrimitiveBuilder,
    StringArray,
};
use arrow::datatypes::{DataType, Field, Int64Type, Schema};
use arrow::record_batch::RecordBatch;
use fathom_pyramid::Key;

use super::gather::{Gather, HostKey, Total};
use super::{By, Request, Zoom};
use crate::{Db, QueryError};

/// Names that were looked up: statement, id, name if there is one.
pub(super) type Names = RefCell<HashMap<(&'static str, i64), Option<String>>>;

/// A session whose threads, processes, and files are named.
pub(super) struct Named<'a> {
    db: &'a Db,
    known: &'a Names,
}

impl<'a> Named<'a> {
    pub(super) fn of(zoom: &'a Zoom) -> Self {
        Self {
            db: &zoom.db,
            known: &zoom.names,
        }
    }
}

/// The rows of an answer about a session, or about `sessions` of a set with a column of their `hosts`.
pub(super) fn batch(
    sessions: &[Named<'_>],
    hosts: Option<&[&str]>,
    request: &Request,
    gather: Gather<'_>,
    shift: u8,
    from: i64,
) -> Result<RecordBatch, QueryError> {
    /// A row: host and key, beginning of its bucket, sums, whether there may be more of it.
    type Row<'a> = (Option<&'a HostKey>, i64, &'a Total, bool);
    let directions = gather.has_directions();
    let lines = gather.finish();
    let rows: Vec<Row<'_>> = lines
        .iter()
        .flat_map(|(key, cells)| {
            cells.iter().map(move |(bucket, sum, at_least)| {
                let time = from + (i64::from(*bucket) << shift);
                (key.as_ref(), time, sum, *at_least)
            })
        })
        .collect();
    let mut fields: Vec<Field> = Vec::new();
    let mut columns: Vec<ArrayRef> = Vec::new();
    let mut add = |name: &str, null: bool, column: ArrayRef| {
        fields.push(Field::new(name, column.data_type().clone(), null));
        columns.push(column);
    };
    let numbers = |value: &dyn Fn(&Row<'_>) -> u64| -> ArrayRef {
        let values = rows
            .iter()
            .map(|r| i64::try_from(value(r)).unwrap_or(i64::MAX));
        Arc::new(Int64Array::from_iter_values(values))
    };
    if let Some(hosts) = hosts {
        // Keys of all hosts together have none, and sums of several keys.
        let name = |host: u32| hosts.get((host as usize).checked_sub(1)?).copied();
        let names = rows.iter().map(|r| name(r.0?.0));
        add("host", true, Arc::new(StringArray::from_iter(names)));
    }
    add("ts_ns", false, numbers(&|r| r.1 as u64));
    let whole = |key: &Option<&HostKey>| match key {
        Some((_, Key::Int(n))) => Some(*n),
        _ => None,
    };
    // The names of the keys of each session: `id` turns a key into the id of its name.
    let named = |sql: &'static str, id: &dyn Fn(i64) -> i64| {
        let mut found = HashMap::new();
        for (session, named) in sessions.iter().enumerate() {
            let of = |key: &HostKey| (key.0 as usize).saturating_sub(1) == session;
            let keys = lines
                .iter()
                .filter_map(|line| line.0.as_ref())
                .filter(|key| of(key));
            let ids = keys.filter_map(|key| whole(&Some(key)).map(id));
            for (id, name) in names(named.db, named.known, sql, ids)? {
                found.insert((session, id), name);
            }
        }
        Ok::<_, QueryError>(found)
    };
    let session = |key: &Option<&HostKey>| key.map_or(0, |key| (key.0 as usize).saturating_sub(1));
    match request.by {
        By::Nothing => {}
        By::Syscall | By::Class | By::Purpose | By::Layer | By::Reason => {
            let name = match request.by {
                By::Class => "class",
                By::Purpose => "purpose",
                By::Layer => "layer",
                By::Reason => "reason",
                _ => "syscall",
            };
            let names = rows.iter().map(|r| match r.0 {
                Some((_, Key::Text(name))) => Some(&**name),
                _ => None,
            });
            add(name, true, Arc::new(StringArray::from_iter(names)));
        }
        By::Thread => {
            let pair = |n: i64| ((n >> 32) as i32, n as i32);
            let (pids, tids): (Vec<_>, Vec<_>) =
                rows.iter().map(|r| whole(&r.0).map(pair).unzip()).unzip();
            let sql = "SELECT tid::BIGINT, comm FROM processes WHERE tid IN";
            let names = named(sql, &|n| i64::from(n as i32))?;
            let comm = rows.iter().zip(&tids);
            let comm = comm.map(|(r, t)| names.get(&(session(&r.0), i64::from((*t)?))));
            let comm: StringArray = comm.collect();
            add("pid", true, Arc::new(Int32Array::from(pids)));
            add("tid", true, Arc::new(Int32Array::from(tids)));
            add("comm", true, Arc::new(comm));
        }
        By::Process | By::File => {
            let keys: Vec<Option<i64>> = rows.iter().map(|r| whole(&r.0)).collect();
            let (label, names) = if request.by == By::File {
                let sql = "SELECT file_id, path FROM files WHERE file_id IN";
                add("file_id", true, Arc::new(Int64Array::from(keys.clone())));
                ("path", named(sql, &|n| n)?)
            } else {
                let sql = "SELECT pid::BIGINT, comm FROM processes WHERE pid = tid AND pid IN";
                let pids = keys.iter().map(|k| k.map(|n| n as i32));
                add("pid", true, Arc::new(Int32Array::from_iter(pids)));
                ("comm", named(sql, &|n| n)?)
            };
            let found = rows.iter().zip(&keys);
            let found = found.map(|(r, k)| names.get(&(session(&r.0), (*k)?)));
            let found: StringArray = found.collect();
            add(label, true, Arc::new(found));
        }
    }
    if request.by != By::Nothing {
        let rest = rows.iter().map(|r| Some(r.0.is_none()));
        add("rest", false, Arc::new(BooleanArray::from_iter(rest)));
    }
    add("calls", false, numbers(&|r| r.2.sum.count));
    add("errors", false, numbers(&|r| r.2.sum.errors));
    add("bytes", false, numbers(&|r| r.2.sum.bytes));
    for (name, value) in [
        ("bytes_read", (|r| r.2.bytes.read) as fn(&Row<'_>) -> u64),
        ("bytes_written", |r| r.2.bytes.written),
    ] {
        let values = rows.iter().map(|r| {
            let value = directions.then(|| value(r));
            value.map(|v| i64::try_from(v).unwrap_or(i64::MAX))
        });
        add(name, true, Arc::new(Int64Array::from_iter(values)));
    }
    add("total_ns", false, numbers(&|r| r.2.sum.time_ns));
    add("max_ns", false, numbers(&|r| r.2.sum.max_ns));
    if super::has_faults(request) {
        add("faults", false, numbers(&|r| r.2.faults.count));
        add("fault_ns", false, numbers(&|r| r.2.faults.time_ns));
    }
    let at_least = rows.iter().map(|r| Some(r.3));
    add(
        "at_least",
        false,
        Arc::new(BooleanArray::from_iter(at_least)),
    );
    if request.busy {
        add("busy_ns", false, numbers(&|r| r.2.busy_ns));
    }
    if request.latency {
        let item = Field::new("item", DataType::Int64, false);
        let mut lists =
            ListBuilder::new(PrimitiveBuilder::<Int64Type>::new()).with_field(Arc::new(item));
        for row in &rows {
            for count in &row.2.latency {
                lists
                    .values()
                    .append_value(i64::try_from(*count).unwrap_or(i64::MAX));
            }
            lists.append(true);
        }
        add("latency", false, Arc::new(lists.finish()));
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
        .map_err(|e| QueryError::Sql(crate::escape::lines(&e.to_string())))
}

/// Names of `ids`: `sql` selects id and name and ends before the list.
fn names(
    db: &Db,
    known: &Names,
    sql: &'static str,
    ids: impl Iterator<Item = i64>,
) -> Result<HashMap<i64, String>, QueryError> {
    let ids: Vec<i64> = ids.collect();
    let mut known = known.borrow_mut();
    let unknown: Vec<String> = ids
        .iter()
        .filter(|id| !known.contains_key(&(sql, **id)))
        .map(i64::to_string)
        .collect();
    if !unknown.is_empty() {
        for id in &ids {
            known.entry((sql, *id)).or_default();
        }
        let mut rows = db.run(&format!("{sql} ({})", unknown.join(", ")))?;
        while let Some(batch) = rows.next_batch()? {
            let id = batch.column(0).as_primitive_opt::<Int64Type>();
            let name = batch.column(1).as_string_opt::<i32>();
            if let (Some(id), Some(name)) = (id, name) {
                for (id, name) in id.iter().zip(name) {
                    if let (Some(id), Some(name)) = (id, name) {
                        known.insert((sql, id), Some(name.to_string()));
                    }
                }
            }
        }
    }
    let name = |id: &i64| Some((*id, known.get(&(sql, *id))?.clone()?));
    Ok(ids.iter().filter_map(name).collect())
}
