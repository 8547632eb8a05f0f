//! Tables that a user adds to a session: making their file, and reading it.

use std::fs::File;
use std::os::fd::AsRawFd;

use duckdb::Connection;

use crate::clocks::on_clock;
use crate::engine;
use crate::error::message;
use crate::escape::{sql_name, sql_string};
use crate::source::Source;
use crate::{Limits, QueryError};

/// Rows of a table at most.
pub const MOST_ROWS: u64 = 100_000_000;
/// Columns of a table at most.
const MOST_COLUMNS: usize = 1000;
/// Columns that hold ids: whole numbers, so that they can be joined.
const IDS: [&str; 3] = ["pid", "tid", "rid"];
/// How the comment of such a view begins.
const COMMENT: &str = "own";

/// The format of a file that becomes a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableFormat {
    Csv,
    Parquet,
    Ndjson,
}

impl TableFormat {
    /// The endings of the names of such files.
    pub const ENDINGS: &'static str = ".csv, .tsv, .parquet, .ndjson, .jsonl";

    /// The format that the ending of a file's name stands for.
    pub fn of_ending(ending: &str) -> Option<Self> {
        match ending.to_ascii_lowercase().as_str() {
            "csv" | "tsv" => Some(Self::Csv),
            "parquet" => Some(Self::Parquet),
            "ndjson" | "jsonl" => Some(Self::Ndjson),
            _ => None,
        }
    }

    /// The rows of a file in SQL. Types fit all rows, not only the first ones.
    fn rows(self, file: &str) -> String {
        match self {
            Self::Csv => format!("read_csv({file}, sample_size = -1, header = true)"),
            Self::Parquet => format!("read_parquet({file})"),
            Self::Ndjson => {
                format!("read_json({file}, format = 'newline_delimited', sample_size = -1)")
            }
        }
    }
}

/// A table that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Converted {
    pub rows: u64,
    /// Names and SQL types.
    pub columns: Vec<(String, String)>,
}

/// Writes the rows of a file to another one, as Parquet. Column `ts_ns` and columns whose names end in
/// `_at_ns` are times, `pid`, `tid`, and `rid` ids; all others are kept as they are.
///
/// # Errors
/// [`QueryError::OwnTable`].
pub fn convert(
    format: TableFormat,
    from: &File,
    to: &File,
    limits: &Limits,
) -> Result<Converted, QueryError> {
    let wrong = |reason: String| QueryError::OwnTable(reason);
    let db = |e: duckdb::Error| QueryError::OwnTable(message(&e));
    let connection = engine::open(limits, db)?;
    // Names that consist of digits and slashes: no pattern, and no link.
    let [from, to] = [from, to].map(|file| format!("/proc/self/fd/{}", file.as_raw_fd()));
    let [from, to] = [&from, &to].map(|path| sql_string(path));
    let batch = format!(
        "SET TimeZone = 'UTC'; SET enable_external_file_cache = false; \
         SET allowed_paths = [{from}, {to}]; SET enable_external_access = false; \
         SET lock_configuration = true"
    );
    connection.execute_batch(&batch).map_err(db)?;
    let rows = format.rows(&from);
    let columns = columns(&connection, &format!("SELECT * FROM {rows}")).map_err(db)?;
    // Lines of several lengths look to the database like one column of text.
    if let (TableFormat::Csv, [(name, _)]) = (format, &columns[..])
        && name.contains([',', ';', '\t', '|'])
    {
        return Err(wrong(format!(
            "its lines have different numbers of values, and its first line would be one name: {name:?}; \
             give each line as many values as the first one"
        )));
    }
    if columns.is_empty() || columns.len() > MOST_COLUMNS {
        return Err(wrong(format!(
            "it has {} columns, and between 1 and {MOST_COLUMNS} can be kept",
            columns.len()
        )));
    }
    let mut select = Vec::new();
    for (name, sql_type) in &columns {
        let name_in_sql = sql_name(name);
        if !is_time(name) && !IDS.contains(&name.as_str()) {
            select.push(name_in_sql);
            continue;
        }
        if !is_whole(sql_type) {
            let what = match is_time(name) {
                true => {
                    "nanoseconds of the session's clock (time_ns(wall) makes them of a time of day)"
                }
                false => "a whole number",
            };
            return Err(wrong(format!(
                "column {name} is {sql_type}, and a column of this name must be {what}; give it \
                 another name, or other values"
            )));
        }
        select.push(format!("{name_in_sql}::BIGINT AS {name_in_sql}"));
    }
    let copy = format!(
        "COPY (SELECT {} FROM {rows} LIMIT {}) TO {to} \
         (FORMAT parquet, COMPRESSION zstd, USE_TMP_FILE false)",
        select.join(", "),
        MOST_ROWS + 1
    );
    let rows = connection.execute(&copy, []).map_err(db)? as u64;
    if rows > MOST_ROWS {
        return Err(wrong(format!("it has more than {MOST_ROWS} rows")));
    }
    let columns = columns.into_iter().map(|(name, sql_type)| {
        let whole = is_time(&name) || IDS.contains(&name.as_str());
        (name, if whole { "BIGINT".to_owned() } else { sql_type })
    });
    Ok(Converted {
        rows,
        columns: columns.collect(),
    })
}

fn is_time(name: &str) -> bool {
    name == "ts_ns" || name.ends_with("_at_ns")
}

fn is_whole(sql_type: &str) -> bool {
    let sizes = ["TINYINT", "SMALLINT", "INTEGER", "BIGINT"];
    sizes.contains(&sql_type.strip_prefix('U').unwrap_or(sql_type))
}

/// Names and types of the columns of a SELECT.
fn columns(connection: &Connection, select: &str) -> duckdb::Result<Vec<(String, String)>> {
    let mut statement = connection.prepare(&format!("DESCRIBE {select}"))?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

/// Makes the tables that the user added views of the current schema. One that the database cannot read
/// is left out.
pub(crate) fn create(connection: &Connection, source: &Source<'_>) -> Result<(), QueryError> {
    for (name, file) in &source.own {
        let file = source.place.literals(std::slice::from_ref(file))?.concat();
        let rows = format!("SELECT * FROM read_parquet({file})");
        let Ok(columns) = columns(connection, &rows) else {
            continue;
        };
        let moved = columns.iter().map(|(column, sql_type)| {
            let column_in_sql = sql_name(column);
            match is_time(column) && is_whole(sql_type) && !source.clock.segments.is_empty() {
                true => format!(
                    "{} AS {column_in_sql}",
                    on_clock(
                        source.clock,
                        &format!("try_cast({column_in_sql} AS BIGINT)")
                    )
                ),
                false => column_in_sql,
            }
        });
        let moved: Vec<String> = moved.collect();
        let name = sql_name(name);
        let view = format!(
            "CREATE VIEW {name} AS SELECT {} FROM read_parquet({file}); \
             COMMENT ON VIEW {name} IS '{COMMENT}'",
            moved.join(", ")
        );
        // Another program may have written anything.
        let _ = connection.execute_batch(&view);
    }
    Ok(())
}

/// Makes views with the rows of all sessions of a set, and a first column `host`; `schema` names the
/// schema of a session.
pub(crate) fn join(
    connection: &Connection,
    sources: &[Source<'_>],
    hosts: &[&str],
    schema: fn(usize) -> String,
) -> Result<(), QueryError> {
    let mut names: Vec<&String> = sources
        .iter()
        .flat_map(|s| s.own.iter().map(|(n, _)| n))
        .collect();
    names.sort();
    names.dedup();
    for own in names {
        let name = sql_name(own);
        let rows = sources.iter().zip(hosts).enumerate();
        let rows = rows.filter(|(_, (source, _))| source.own.iter().any(|(n, _)| n == own));
        let rows = rows.map(|(member, (_, host))| {
            let (host, schema) = (sql_string(host), schema(member));
            format!("SELECT {host} AS host, * FROM {schema}.{name}")
        });
        let rows: Vec<String> = rows.collect();
        // Columns of one name may be of other types in another session.
        let _ = connection.execute_batch(&format!(
            "CREATE VIEW {name} AS {}; COMMENT ON VIEW {name} IS '{COMMENT}'",
            rows.join(" UNION ALL BY NAME ")
        ));
    }
    Ok(())
}

/// The tables that the user added and that can be read.
pub(crate) fn names(connection: &Connection) -> duckdb::Result<Vec<String>> {
    let mut statement = connection.prepare(
        "SELECT DISTINCT view_name FROM duckdb_views() \
         WHERE comment = ? AND schema_name = 'main' ORDER BY view_name",
    )?;
    let rows = statement.query_map([COMMENT], |row| row.get(0))?;
    rows.collect()
}

/// Whether a statement can name the table without quotes.
pub fn is_word(name: &str) -> Result<bool, QueryError> {
    let db = |e: duckdb::Error| QueryError::Sql(message(&e));
    let connection = engine::open(&Limits::default(), db)?;
    let made = connection.execute_batch(&format!("CREATE VIEW {name} AS SELECT 1; FROM {name}"));
    Ok(made.is_ok())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn file(text: &str) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file
    }

    fn made(format: TableFormat, text: &str) -> Result<(Converted, File), QueryError> {
        let to = tempfile::tempfile().unwrap();
        let made = convert(format, &file(text), &to, &Limits::default())?;
        Ok((made, to))
    }

    fn kinds(columns: &[(&str, &str)]) -> Vec<(String, String)> {
        let own = |(name, kind): &(&str, &str)| ((*name).to_owned(), (*kind).to_owned());
        columns.iter().map(own).collect()
    }

    #[test]
    fn types_are_of_all_rows_and_ids_are_whole() {
        let mut text = String::from("ts_ns,tid,Order No,price\n");
        for n in 0..30_000 {
            text += &format!("{n},7,{n},1\n");
        }
        text += "30000,8,x9,1.5\n";
        let (table, file) = made(TableFormat::Csv, &text).unwrap();
        let columns = [
            ("ts_ns", "BIGINT"),
            ("tid", "BIGINT"),
            ("Order No", "VARCHAR"),
            ("price", "DOUBLE"),
        ];
        assert_eq!(table.rows, 30_001);
        assert_eq!(table.columns, kinds(&columns));
        // The file is Parquet, and can be imported as such.
        let to = tempfile::tempfile().unwrap();
        let again = convert(TableFormat::Parquet, &file, &to, &Limits::default()).unwrap();
        assert_eq!(again, table);
        let lines = "{\"tid\": 1, \"a\": {\"b\": 2}}\n{\"tid\": 2}\n";
        let (table, _) = made(TableFormat::Ndjson, lines).unwrap();
        assert_eq!(table.rows, 2);
        assert_eq!(
            table.columns,
            kinds(&[("tid", "BIGINT"), ("a", "STRUCT(b BIGINT)")])
        );
    }

    #[test]
    fn what_cannot_be_joined_or_read_is_refused() {
        let refused = |format, text: &str| made(format, text).unwrap_err().to_string();
        let time = refused(TableFormat::Csv, "ts_ns,a\n2026-01-01 10:00:00,1\n");
        assert!(time.contains("column ts_ns is TIMESTAMP"), "{time}");
        let id = refused(TableFormat::Csv, "pid\n1.5\n");
        assert!(id.contains("column pid is DOUBLE"), "{id}");
        let parquet = refused(TableFormat::Parquet, "no Parquet");
        assert!(parquet.contains("Parquet"), "{parquet}");
        assert!(made(TableFormat::Ndjson, "{\"a\": ").is_err());
        let ragged = refused(TableFormat::Csv, "a,b\n1,2\n3\n");
        assert!(ragged.contains("different numbers of values"), "{ragged}");
        let one = made(TableFormat::Csv, "a\n1\n").unwrap().0;
        assert_eq!(one.columns, kinds(&[("a", "BIGINT")]));
    }

    #[test]
    fn words_of_sql_are_no_names() {
        for (name, word) in [("orders", true), ("select", false), ("order", false)] {
            assert_eq!(is_word(name).unwrap(), word, "{name}");
        }
    }
}
