//! Rows of tables as the page gets them: times since the start, numbers that JavaScript
//! holds, 64-bit hashes as texts.

use arrow::array::Array;
use arrow::datatypes::DataType;
use arrow::record_batch::RecordBatch;
use fathom_model::tables::{Column, ColumnType, Holds, Table};
use fathom_query::escape::sql_name;
use serde_json::{Map, Number, Value};

use crate::access::Role;
use crate::columns::{column, flags, numbers, texts};
use crate::error::ApiError;

/// Columns with times; other columns in nanoseconds are durations.
const TIMES: [&str; 10] = [
    "ts_ns",
    "queued_at_ns",
    "started_at_ns",
    "inserted_at_ns",
    "issued_at_ns",
    "completed_at_ns",
    "woken_at_ns",
    "started_at_ns",
    "ended_at_ns",
    "first_seen_at_ns",
];

/// Whether a client may see a column: what programs moved, and hashes of it, take role `query`.
pub(crate) fn may_see(role: Role, column: &Column) -> bool {
    role >= Role::Query || column.holds != Some(Holds::Content)
}

/// A column in a SELECT; `None` for bytes, which are not sent, and for what the client may not see.
pub(crate) fn column_sql(
    table: &Table,
    name: &str,
    started_at_ns: i64,
    role: Role,
) -> Option<String> {
    let column = table.columns.iter().find(|c| c.name == name)?;
    if !may_see(role, column) {
        return None;
    }
    let quoted = sql_name(name);
    Some(match column.ty {
        ColumnType::Blob => return None,
        _ if TIMES.contains(&name) => format!("({quoted} - {started_at_ns})::DOUBLE AS {quoted}"),
        _ if name == "hash" => format!("hash_hex({quoted}) AS {quoted}"),
        _ if name == "user_data" => format!("{quoted}::VARCHAR AS {quoted}"),
        ColumnType::I64 | ColumnType::I32 => format!("{quoted}::DOUBLE AS {quoted}"),
        ColumnType::Bool | ColumnType::Str | ColumnType::ListI64 => quoted,
    })
}

/// All columns that can be sent to a client.
pub(crate) fn columns_sql(table: &Table, started_at_ns: i64, role: Role) -> String {
    let columns: Vec<String> = table
        .shown()
        .filter_map(|c| column_sql(table, c.name, started_at_ns, role))
        .collect();
    columns.join(", ")
}

pub(crate) type Row = Map<String, Value>;

/// The rows of a batch as JSON.
pub(crate) fn rows(batch: &RecordBatch) -> Result<Vec<Row>, ApiError> {
    let mut rows = vec![Row::new(); batch.num_rows()];
    for field in batch.schema().fields() {
        let name = field.name();
        let values: Vec<Value> = match column(batch, name)?.data_type() {
            DataType::Boolean => {
                let values = flags(batch, name)?;
                values
                    .iter()
                    .map(|v| v.map_or(Value::Null, Value::Bool))
                    .collect()
            }
            t if t.is_numeric() => {
                let values = numbers(batch, name)?;
                values
                    .iter()
                    .map(|v| v.map_or(Value::Null, number))
                    .collect()
            }
            _ => {
                let values = texts(batch, name)?;
                let text = |v: Option<&str>| v.map_or(Value::Null, |v| Value::String(v.into()));
                values.iter().map(text).collect()
            }
        };
        for (row, value) in rows.iter_mut().zip(values) {
            row.insert(name.clone(), value);
        }
    }
    Ok(rows)
}

/// A number in JSON; whole ones without a point.
fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 9e15 {
        return Value::Number(Number::from(value as i64));
    }
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}
