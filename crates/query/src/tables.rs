//! The session's tables as views over their Parquet parts.

use std::path::PathBuf;

use fathom_model::set::ClockMap;
use fathom_model::tables::{BIOS, BLOCK, Column, ColumnType, Stored, Table};

use crate::QueryError;
use crate::clocks::on_clock;
use crate::escape::sql_name;
use crate::place::Place;
use crate::source::Source;

pub(crate) fn sql_type(ty: ColumnType) -> &'static str {
    match ty {
        ColumnType::I64 => "BIGINT",
        ColumnType::I32 => "INTEGER",
        ColumnType::Bool => "BOOLEAN",
        ColumnType::Str => "VARCHAR",
        ColumnType::Blob => "BLOB",
        ColumnType::ListI64 => "BIGINT[]",
    }
}

/// The tables whose parts hold the rows of `table`.
pub(crate) fn sources(table: &Table) -> &'static [&'static str] {
    match table.name {
        name if name == BIOS.name => &["bios", "block"],
        _ => &[],
    }
}

/// Bios that are alone in their request, from the parts of table `block`.
const ONLY_BIOS: &str = "SELECT block_id, rid, \
     CASE WHEN bio_submit_rid IS NULL THEN rid ELSE nullif(bio_submit_rid, 0) END AS submit_rid, \
     queued_at_ns AS ts_ns, sector, bytes, bio_origin AS origin, pid, tid, comm, \
     CASE WHEN bio_cause_pid IS NULL THEN pid ELSE nullif(bio_cause_pid, 0) END AS cause_pid, \
     CASE WHEN bio_cause_tid IS NULL THEN tid ELSE nullif(bio_cause_tid, 0) END AS cause_tid, \
     file_id, path, file_offset";

/// Whether a column contains points in time.
fn is_time(column: &Column) -> bool {
    column.name == "ts_ns" || column.name.ends_with("_at_ns")
}

/// The value of a column of rows on the clock of their host as SQL shows it on the clock that `clock` leads
/// to; `None` if it is the same. `has_start`: the rows have a column `ts_ns`.
fn moved(column: &Column, has_start: bool, clock: &ClockMap) -> Option<String> {
    let name = sql_name(column.name);
    let there = || on_clock(clock, &name);
    let value = match column.name {
        _ if is_time(column) => there(),
        // From the start to the end, each on that clock.
        "dur_ns" if has_start => format!(
            "bounded({}::HUGEINT - {})",
            on_clock(clock, "bounded(ts_ns::HUGEINT + dur_ns)"),
            on_clock(clock, "ts_ns")
        ),
        // It names a row of table block by its ts_ns.
        "cause_id" => format!(
            "CASE WHEN cause = 'block_request' THEN {} ELSE {name} END",
            there()
        ),
        _ => return None,
    };
    Some(format!("{value} AS {name}"))
}

/// The value of a column on the clock of its host.
fn own_value(column: &Column) -> String {
    // A cast to the type that a column has costs nothing; one that a foreign
    // file has otherwise becomes what the schema promises.
    let (name, ty) = (sql_name(column.name), sql_type(column.ty));
    let Stored::Less {
        name: stored,
        terms,
    } = column.stored
    else {
        return format!("{name}::{ty} AS {name}");
    };
    let mut sql = format!("({}", sql_name(stored));
    for term in terms {
        let sign = if term.minus { '-' } else { '+' };
        let of = sql_name(term.column);
        sql.push_str(&match term.divisor {
            1 => format!(" {sign} coalesce({of}, 0)"),
            by => format!(" {sign} coalesce({of}, 0) // {by}"),
        });
    }
    format!("{sql})::{ty} AS {name}")
}

/// A SELECT of columns from parts in `place`, of the rows that `newest` leaves (a clause).
fn select<'a>(
    columns: impl Iterator<Item = &'a Column> + Clone,
    place: &Place,
    clock: &ClockMap,
    parts: &[PathBuf],
    newest: &str,
) -> Result<String, QueryError> {
    let own: Vec<String> = columns.clone().map(own_value).collect();
    let own = format!(
        "SELECT {} FROM read_parquet([{}]){newest}",
        own.join(", "),
        place.literals(parts)?.join(", ")
    );
    if clock.segments.is_empty() {
        return Ok(own);
    }
    let has_start = columns.clone().any(|column| column.name == "ts_ns");
    let moved: Vec<String> = columns
        .filter_map(|column| moved(column, has_start, clock))
        .collect();
    Ok(match moved.is_empty() {
        true => own,
        false => format!("SELECT * REPLACE ({}) FROM ({own})", moved.join(", ")),
    })
}

/// A SELECT of the rows that parts of `table` in `place` contain, as SQL shows them.
pub(crate) fn rows(table: &Table, place: &Place, parts: &[PathBuf]) -> Result<String, QueryError> {
    moved_rows(table, place, &ClockMap::default(), parts, "")
}

/// The same with times on the clock that `clock` leads to, of the rows that `newest` leaves (a clause).
fn moved_rows(
    table: &Table,
    place: &Place,
    clock: &ClockMap,
    parts: &[PathBuf],
    newest: &str,
) -> Result<String, QueryError> {
    let rows = select(table.shown(), place, clock, parts, newest)?;
    if table.differences().is_empty() {
        return Ok(rows);
    }
    let differences = table.differences().iter().map(|d| {
        let [name, minuend, subtrahend] = [d.name, d.minuend, d.subtrahend].map(sql_name);
        format!(", {minuend} - {subtrahend} AS {name}")
    });
    let differences: String = differences.collect();
    Ok(format!("SELECT *{differences} FROM ({rows})"))
}

/// The clause that leaves the newest row of each key of `table`, if it has keys.
fn newest(table: &Table) -> String {
    if table.key.is_empty() {
        return String::new();
    }
    let key: Vec<String> = table.key.iter().map(|k| sql_name(k)).collect();
    format!(
        " QUALIFY row_number() OVER (PARTITION BY {} ORDER BY file_index DESC, file_row_number DESC) = 1",
        key.join(", ")
    )
}

/// The statement that makes `table` a view of its parts in `source`, in order of writing; `create`
/// is its beginning.
pub(crate) fn create_view(
    table: &Table,
    source: &Source<'_>,
    create: &str,
) -> Result<String, QueryError> {
    let name = sql_name(table.name);
    let (place, clock) = (source.place, source.clock);
    let (own, blocks) = ((source.parts)(table.name), (source.parts)(BLOCK.name));
    let mut selects = Vec::new();
    if !own.is_empty() {
        selects.push(moved_rows(table, place, clock, &own, &newest(table))?);
    }
    if table.name == BIOS.name && !blocks.is_empty() {
        let all = select(BLOCK.columns.iter(), place, clock, &blocks, "")?;
        selects.push(format!(
            "{ONLY_BIOS} FROM ({all}) WHERE bio_origin IS NOT NULL"
        ));
    }
    if selects.is_empty() {
        let null = |c: &Column| format!("NULL::{} AS {}", sql_type(c.ty), sql_name(c.name));
        let differences = table.differences().iter();
        let differences = differences.map(|d| format!("NULL::BIGINT AS {}", sql_name(d.name)));
        let columns: Vec<String> = table.shown().map(null).chain(differences).collect();
        selects.push(format!("SELECT {} WHERE false", columns.join(", ")));
    }
    Ok(format!(
        "{create} {name} AS {}",
        selects.join(" UNION ALL ")
    ))
}
