//! The session's tables as views over their Parquet parts.

use std::path::PathBuf;

use fathom_model::set::{ClockMap, Segment};
use fathom_model::tables::{BIOS, BLOCK, Column, ColumnType, Stored, Table};

use crate::QueryError;
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

/// A time on the clock that `clock` leads to, as [`ClockMap::apply`] computes it.
pub(crate) fn on_clock(clock: &ClockMap, time: &str) -> String {
    let line = |s: &Segment| {
        // Of more bits than the column: a time that cannot be must not fail the query.
        let since = format!("({time}::HUGEINT - {})", s.from_ns);
        format!(
            "bounded({} + {since} + round({since} * {:e})::HUGEINT)",
            s.to_ns, s.rate
        )
    };
    let Some((last, before)) = clock.segments.split_last() else {
        return time.to_string();
    };
    let branches = before.iter().zip(clock.segments.iter().skip(1));
    let branches =
        branches.map(|(s, next)| format!("WHEN {time} < {} THEN {} ", next.from_ns, line(s)));
    match branches.collect::<String>() {
        none if none.is_empty() => line(last),
        branches => format!("CASE {branches}ELSE {} END", line(last)),
    }
}

/// The value of a column as SQL shows it, with times on the clock that `clock` leads to; `start` is the
/// column with the start of a row, if it has one.
fn value(column: &Column, start: Option<&Column>, clock: &ClockMap) -> String {
    let shown = own_value(column);
    let name = sql_name(column.name);
    let bare = |column: &Column| {
        let shown = own_value(column);
        let name = format!(" AS {}", sql_name(column.name));
        shown.strip_suffix(&name).unwrap_or(&shown).to_owned()
    };
    let moved = match column.name {
        _ if clock.segments.is_empty() => return shown,
        _ if is_time(column) => None,
        // From the start to the end, each on that clock.
        "dur_ns" => {
            let Some(start) = start.map(bare) else {
                return shown;
            };
            let end = format!("({start}::HUGEINT + {})", bare(column));
            let [start, end] = [start, end].map(|time| on_clock(clock, &format!("({time})")));
            return format!("({end} - {start}) AS {name}");
        }
        // It names a row of table block by its ts_ns.
        "cause_id" => Some("cause = 'block_request'"),
        _ => return shown,
    };
    let own = bare(column);
    let there = on_clock(clock, &format!("({own})"));
    match moved {
        None => format!("{there} AS {name}"),
        Some(condition) => format!("CASE WHEN {condition} THEN {there} ELSE {own} END AS {name}"),
    }
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

/// A SELECT of columns from parts in `place`.
fn select<'a>(
    columns: impl Iterator<Item = &'a Column> + Clone,
    place: &Place,
    clock: &ClockMap,
    parts: &[PathBuf],
) -> Result<String, QueryError> {
    let start = columns.clone().find(|column| column.name == "ts_ns");
    let columns: Vec<String> = columns.map(|column| value(column, start, clock)).collect();
    Ok(format!(
        "SELECT {} FROM read_parquet([{}])",
        columns.join(", "),
        place.literals(parts)?.join(", ")
    ))
}

/// A SELECT of the rows that parts of `table` in `place` contain, as SQL shows them.
pub(crate) fn rows(table: &Table, place: &Place, parts: &[PathBuf]) -> Result<String, QueryError> {
    moved_rows(table, place, &ClockMap::default(), parts)
}

/// The same with times on the clock that `clock` leads to.
fn moved_rows(
    table: &Table,
    place: &Place,
    clock: &ClockMap,
    parts: &[PathBuf],
) -> Result<String, QueryError> {
    let rows = select(table.shown(), place, clock, parts)?;
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
        selects.push(moved_rows(table, place, clock, &own)?);
    }
    if table.name == BIOS.name && !blocks.is_empty() {
        let all = select(BLOCK.columns.iter(), place, clock, &blocks)?;
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
    let mut sql = format!("{create} {name} AS {}", selects.join(" UNION ALL "));
    if own.is_empty() {
        return Ok(sql);
    }
    if !table.key.is_empty() {
        let key: Vec<String> = table.key.iter().map(|k| sql_name(k)).collect();
        sql.push_str(&format!(
            " QUALIFY row_number() OVER (PARTITION BY {} \
             ORDER BY file_index DESC, file_row_number DESC) = 1",
            key.join(", ")
        ));
    }
    Ok(sql)
}
