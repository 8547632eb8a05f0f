//! The tables, views, and functions of one session, in the current schema of a database.

use std::collections::BTreeMap;

use duckdb::Connection;
use fathom_model::failure::{ErrorKind, error_kind};
use fathom_model::syscalls::{Class, Returns, SYSCALLS, Syscall};
use fathom_model::tables::TABLES;

use crate::error::message;
use crate::escape::sql_string;
use crate::source::Source;
use crate::{QueryError, findings, percentiles, session_row, tables};

/// Name of a view that others use: calls that have no rows in table `syscalls`, lost ones and counted ones. The views
/// add them to the calls in the table.
pub(crate) const UNSTORED: &str = "unstored";
/// The tables that it reads.
pub(crate) const UNSTORED_OF: [&str; 2] = ["losses", "counters"];
const CREATE_UNSTORED: &str = "CREATE VIEW IF NOT EXISTS unstored AS
    SELECT syscall, pid, nullif(file_id, -1) AS file_id, count, count AS lost, bytes, errors,
        dur_ns, max_dur_ns, hist
    FROM losses
    WHERE layer = 'syscall'
    UNION ALL
    SELECT syscall, pid, file_id, count, 0, bytes, errors, dur_ns, max_dur_ns, hist
    FROM counters";

/// Creates the tables of a session that have no parts, and the functions that read the others.
pub(crate) fn create(connection: &Connection, source: &Source<'_>) -> Result<(), QueryError> {
    let db = |e: duckdb::Error| QueryError::Sql(message(&e));
    let functions = [macros(source.wall_ns), percentiles::functions()];
    connection.execute_batch(&functions.concat()).map_err(db)?;
    let mut meta = source.meta.clone();
    let clock = &mut meta.clock;
    clock.start_monotonic_ns = source.clock.apply(clock.start_monotonic_ns);
    clock.end_monotonic_ns = clock.end_monotonic_ns.map(|end| source.clock.apply(end));
    session_row::create(connection, &meta).map_err(db)?;
    findings::create(connection).map_err(db)
}

/// The statements that create the tables of `sources` with parts, by the table's name, one for each source.
pub(crate) fn tables(
    sources: &[Source<'_>],
) -> Result<BTreeMap<&'static str, Vec<String>>, QueryError> {
    let mut all = BTreeMap::new();
    for table in TABLES {
        // It may be there if an earlier statement was interrupted.
        let create = |source| tables::create_view(table, source, "CREATE VIEW IF NOT EXISTS");
        let each = sources.iter().map(create);
        all.insert(table.name, each.collect::<Result<Vec<_>, _>>()?);
    }
    let unstored = vec![CREATE_UNSTORED.to_owned(); sources.len()];
    all.insert(UNSTORED, unstored);
    Ok(all)
}

/// Number of stored calls.
pub(crate) fn count(connection: &Connection) -> Result<u64, QueryError> {
    let count = "SELECT count(*) FROM syscalls";
    let stored: i64 = connection
        .query_row(count, [], |row| row.get(0))
        .map_err(|e| QueryError::Table {
            table: "syscalls",
            detail: message(&e),
        })?;
    Ok(u64::try_from(stored).unwrap_or(0))
}

/// Creates what the views over the tables use. `exact` is whether percentiles are.
pub(crate) fn create_percentiles(connection: &Connection, exact: bool) -> Result<(), QueryError> {
    let durations = percentiles::of_durations("CREATE MACRO", exact);
    let created = connection.execute_batch(&durations);
    created.map_err(|e| QueryError::Sql(message(&e)))
}

/// The functions that the views share.
pub(crate) fn macros(offset: i64) -> String {
    let moves = |s: &Syscall| s.class == Class::Data && s.returns == Returns::Bytes;
    let names = |keep: &dyn Fn(&Syscall) -> bool| {
        let names: Vec<&str> = SYSCALLS
            .iter()
            .filter(|s| keep(s))
            .map(|s| s.name)
            .collect();
        sql_string(&names.join("|"))
    };
    let classes = Class::ALL.iter().map(|class| {
        let of_class = names(&|s| s.class == *class);
        format!(
            "WHEN regexp_full_match(name, {of_class}) THEN '{}' ",
            class.name()
        )
    });
    let classes: String = classes.collect();
    let answers = answers();
    format!(
        // Sums are of more bits than their columns: of numbers that cannot be, as a damaged
        // capture has them, the largest is shown, instead of failing.
        //
        // A function of one column runs once for each entry of the column's dictionary,
        // where IN compares every row with every name: the sums of reads and writes by
        // file took three times as long. The digits of a number in base 2 tell its power
        // exactly, and in half the time of a logarithm.
        "CREATE MACRO wall_time(ts_ns) AS make_timestamp_ns(ts_ns::BIGINT + {offset});\n\
         CREATE MACRO time_ns(wall) AS (epoch_ns(wall::TIMESTAMP_NS) - ({offset}))::BIGINT;\n\
         CREATE MACRO bounded(n) AS coalesce(try_cast(n AS BIGINT), \
             CASE WHEN n > 0 THEN 9223372036854775807 \
             WHEN n < 0 THEN -9223372036854775807 END);\n\
         CREATE MACRO hash_hex(hash) AS lpad(lower(hex(hash::BIGINT)), 16, '0');\n\
         CREATE MACRO duration_bucket(ns) AS \
             CASE WHEN ns IS NULL THEN NULL \
             ELSE least(39, length(bin(greatest(ns, 1)::BIGINT)) - 1)::INTEGER END;
\
         CREATE MACRO call_reads(name) AS regexp_full_match(name, {});
\
         CREATE MACRO call_writes(name) AS regexp_full_match(name, {});
\
         CREATE MACRO call_failed(name, errno) AS \
             (errno IS NOT NULL AND NOT (CASE errno {answers} ELSE false END));
\
         CREATE MACRO call_class(name) AS CASE {classes} END;",
        names(&|s| moves(s) && !s.writes()),
        names(&|s| moves(s) && s.writes()),
    )
}

/// The errors that are answers rather than failures, as the branches of a CASE: the names of
/// the calls of which each is one.
fn answers() -> String {
    let is_answer = |call: &str, errno: &str| error_kind(call, errno) == ErrorKind::Answer;
    let branch = |errno: &str| {
        let calls: Vec<&str> = SYSCALLS
            .iter()
            .map(|s| s.name)
            .filter(|name| is_answer(name, errno))
            .collect();
        let condition = match calls.len() {
            0 => return None,
            n if n == SYSCALLS.len() => "true".to_string(),
            _ => format!("regexp_full_match(name, {})", sql_string(&calls.join("|"))),
        };
        Some(format!("WHEN {} THEN {condition} ", sql_string(errno)))
    };
    let errors = (1..4096).filter_map(fathom_model::errno::name);
    errors.filter_map(branch).collect()
}
