//! The session's tables as views over their Parquet parts.

use std::path::PathBuf;

use fathom_model::tables::{ColumnType, Table};

use crate::QueryError;
use crate::escape::sql_name;
use crate::place::Place;

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

/// The statement that makes `table` a view of its parts in `place`, in order of writing; `create`
/// is its beginning.
pub(crate) fn create_view(
    table: &Table,
    place: &Place,
    parts: &[PathBuf],
    create: &str,
) -> Result<String, QueryError> {
    let name = sql_name(table.name);
    if parts.is_empty() {
        let columns: Vec<String> = table
            .columns
            .iter()
            .map(|c| format!("NULL::{} AS {}", sql_type(c.ty), sql_name(c.name)))
            .collect();
        return Ok(format!(
            "{create} {name} AS SELECT {} WHERE false",
            columns.join(", ")
        ));
    }
    // A cast to the type that a column has costs nothing; one that a foreign
    // file has otherwise becomes what the schema promises.
    let columns: Vec<String> = table
        .columns
        .iter()
        .map(|c| format!("{0}::{1} AS {0}", sql_name(c.name), sql_type(c.ty)))
        .collect();
    let mut sql = format!(
        "{create} {name} AS SELECT {} FROM read_parquet([{}])",
        columns.join(", "),
        place.literals(parts)?.join(", ")
    );
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
