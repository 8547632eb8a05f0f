//! Turns parts into a closed session: each key once, and totals that agree with the tables.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::AtomicBool;

use fathom_model::meta::{Counts, SessionMeta};
use fathom_model::tables::{COUNTERS, FAULTS, LOSSES, SYSCALLS, TABLES, Table, WRITEBACK};
use fathom_model::{Batch, ColumnData};
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::SerializedFileReader;

use crate::error::SessionError;
use crate::format::codec::decode::RowGroupDecoder;
use crate::format::layout::PartInfo;
use crate::format::schema::TableSchema;
use crate::maintain::compact;
use crate::write::catalog::index_of;
use crate::write::storage::Storage;

/// Merges small parts of a session without a writer, and updates the totals of `meta` from the
/// tables. `parts` and `schemas` are in the order of [`TABLES`].
pub(crate) fn finalize(
    storage: &Storage,
    schemas: &[TableSchema],
    parts: &mut [Vec<PartInfo>],
    meta: &mut SessionMeta,
    durable: bool,
) -> Result<(), SessionError> {
    let go_on = AtomicBool::new(false);
    for ((table, schema), parts) in TABLES.iter().zip(schemas).zip(parts.iter_mut()) {
        let mut from = 0;
        while let Some(run) = compact::plan_final(table, parts, from) {
            from = run.start + 1;
            let merged = compact::merge(storage, schema, &parts[run.clone()], &go_on, durable)?;
            if let Some(merged) = merged {
                parts.splice(run, [merged]);
            }
        }
    }
    let rows = |table| -> u64 {
        let parts = index_of(table).and_then(|i| parts.get(i));
        parts.map_or(0, |parts| parts.iter().map(|p| p.rows).sum())
    };
    let of = |table: &'static Table| {
        let parts = index_of(table).and_then(|i| parts.get(i));
        sums(storage, table, parts.map_or(&[], Vec::as_slice))
    };
    let lost = of(&LOSSES)?;
    let lost = |name: &str| lost.get(name).copied().unwrap_or(0);
    let totals = &mut meta.totals;
    totals.counted = of(&COUNTERS)?.values().sum();
    let calls = balance(
        &Counts {
            seen: totals.seen.saturating_sub(totals.counted),
            expired: totals.expired,
            ..Counts::default()
        },
        rows(&SYSCALLS),
        lost(CALLS),
    );
    totals.seen = calls.seen + totals.counted;
    (totals.stored, totals.lost) = (calls.stored, calls.lost);
    (totals.expired, totals.missing) = (calls.expired, calls.missing);
    totals.faults = balance(&totals.faults, rows(&FAULTS), lost("page_fault"));
    totals.writeback = balance(&totals.writeback, rows(&WRITEBACK), lost("writeback"));
    meta.rows = rows_of(parts);
    Ok(())
}

/// Rows of each table; `parts` are in the order of [`TABLES`].
pub(crate) fn rows_of(parts: &[Vec<PartInfo>]) -> BTreeMap<String, u64> {
    let rows = |parts: &Vec<PartInfo>| parts.iter().map(|part| part.rows).sum();
    let tables = TABLES.iter().zip(parts);
    tables
        .map(|(table, parts)| (table.name.to_owned(), rows(parts)))
        .collect()
}

/// The counts of a table, made consistent: events that were seen but are in no table are missing.
/// `seen` may be slightly out of date.
fn balance(said: &Counts, stored: u64, lost: u64) -> Counts {
    let known = stored + lost + said.expired;
    Counts {
        seen: said.seen.max(known),
        stored,
        lost,
        expired: said.expired,
        missing: said.seen.saturating_sub(known),
    }
}

/// The rows that [`sums`] counts as calls, and rows that are neither calls, page faults, nor
/// write-back.
const CALLS: &str = "";
const OTHERS: &str = "other";

/// Sums of column `count`: of calls, page faults, write-back and all else apart. Of rows with
/// one key the last one counts.
fn sums(
    storage: &Storage,
    table: &'static Table,
    parts: &[PartInfo],
) -> Result<HashMap<&'static str, u64>, SessionError> {
    let mut latest: HashMap<Vec<u8>, (&'static str, u64)> = HashMap::new();
    let mut sums: HashMap<&'static str, u64> = HashMap::new();
    let key = compact::key_columns(table);
    for part in parts.iter().filter(|part| part.rows > 0) {
        let path = storage.part(table.name, part.range);
        let failed = || SessionError::parquet(&path);
        let file = storage.open_part(table.name, part.range)?;
        let reader = SerializedFileReader::new(file).map_err(failed())?;
        for group in 0..reader.num_row_groups() {
            let group = reader.get_row_group(group).map_err(failed())?;
            let mut decoder = RowGroupDecoder::new(table, &*group).map_err(failed())?;
            while let Some(batch) = decoder.next().map_err(failed())? {
                for row in 0..batch.len() {
                    let (name, count) = count(&batch, row);
                    if key.is_empty() {
                        *sums.entry(name).or_default() += count;
                    } else {
                        latest.insert(compact::key(&batch, &key, row), (name, count));
                    }
                }
            }
        }
    }
    for (name, count) in latest.into_values() {
        *sums.entry(name).or_default() += count;
    }
    Ok(sums)
}

fn count(batch: &Batch, row: usize) -> (&'static str, u64) {
    let column = |name: &str| {
        let at = batch.table.columns.iter().position(|c| c.name == name)?;
        batch.columns.get(at)
    };
    let count = match column("count") {
        Some(ColumnData::I64(v)) => v.get(row).copied().unwrap_or(0),
        _ => 0,
    };
    let text = |name: &str| match column(name) {
        Some(ColumnData::Str(v)) => v.get(row).map(|id| batch.strings.get(*id)),
        _ => None,
    };
    let name = match (text("syscall"), text("layer")) {
        (Some(b"page_fault"), _) => "page_fault",
        (Some(b"writeback"), _) => "writeback",
        // Table counters has calls only, and no layers.
        (_, None | Some(b"syscall")) => CALLS,
        _ => OTHERS,
    };
    (name, u64::try_from(count).unwrap_or(0))
}
