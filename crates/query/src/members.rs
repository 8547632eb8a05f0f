//! A set of sessions in one database: a schema for each session, and above them tables and views
//! with the rows of all.
//!
//! So a view joins rows of one host only, whose ids, processes, and files mean nothing elsewhere.

use duckdb::Connection;
use fathom_model::tables::TABLES;

use crate::error::message;
use crate::escape::{sql_name, sql_string};
use crate::relations::{self, Source};
use crate::views::view_names;
use crate::{QueryError, percentiles};

/// Name of the schema of a member.
pub(crate) fn schema(member: usize) -> String {
    format!("member_{member}")
}

/// Creates the schemas and what is above them. `exact` is whether the percentiles of so many calls
/// are; the result is whether they are here.
pub(crate) fn create(
    connection: &Connection,
    sources: &[Source<'_>],
    hosts: &[&str],
    exact: impl Fn(u64) -> bool,
) -> Result<bool, QueryError> {
    let run = |sql: &str| {
        let done = connection.execute_batch(sql);
        done.map_err(|e| QueryError::Sql(message(&e)))
    };
    let mut stored = 0;
    for (member, source) in sources.iter().enumerate() {
        let name = schema(member);
        run(&format!("CREATE SCHEMA {name}; USE {name}"))?;
        stored += relations::create_tables(connection, source)?;
    }
    let exact = exact(stored);
    for member in 0..sources.len() {
        run(&format!("USE {}", schema(member)))?;
        relations::create_views(connection, exact)?;
    }
    run("USE main")?;
    let wall_ns = sources.first().map_or(0, |source| source.wall_ns);
    run(&relations::macros(wall_ns))?;
    run(&percentiles::functions())?;
    run(&percentiles::of_durations("CREATE MACRO", exact))?;
    let names = TABLES.iter().map(|table| table.name).chain(view_names());
    for name in names {
        let rows = hosts.iter().enumerate().map(|(member, host)| {
            let host = sql_string(host);
            let columns = match name {
                // It has the name of the machine there, which members may share.
                "session" => format!("{host} AS host, * EXCLUDE (host), host AS machine"),
                _ => format!("{host} AS host, *"),
            };
            format!(
                "SELECT {columns} FROM {}.{}",
                schema(member),
                sql_name(name)
            )
        });
        let rows: Vec<String> = rows.collect();
        let name = sql_name(name);
        run(&format!(
            "CREATE VIEW {name} AS {}",
            rows.join(" UNION ALL ")
        ))?;
    }
    Ok(exact)
}
