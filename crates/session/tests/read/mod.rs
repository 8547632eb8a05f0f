//! Sessions read back with the Arrow reader, which shares nothing with
//! fathom's encoders.
#![allow(dead_code, missing_docs)]

use std::fs::File;
use std::path::Path;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Int32Type, Int64Type};
use fathom_model::batch::{NULL_I32, NULL_I64};
use fathom_model::tables::{self, Stored, Table};
use fathom_model::{Batch, ColumnData, StrId};
use fathom_session::Session;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

/// One value, whatever its type.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Int(i64),
    Bool(bool),
    Text(String),
    Bytes(Vec<u8>),
    List(Vec<i64>),
}

pub type Row = Vec<Value>;

/// The rows of a batch as they should be read back.
pub fn expected(batch: &Batch) -> Vec<Row> {
    let text = |id: &StrId| String::from_utf8(batch.strings.get(*id).to_vec()).unwrap();
    let value = |column: &ColumnData, row: usize| match column {
        ColumnData::I64(v) if v[row] == NULL_I64 => Value::Null,
        ColumnData::I64(v) => Value::Int(v[row]),
        ColumnData::I32(v) if v[row] == NULL_I32 => Value::Null,
        ColumnData::I32(v) => Value::Int(v[row].into()),
        ColumnData::Bool(v) => Value::Bool(v[row]),
        ColumnData::Str(v) | ColumnData::Blob(v) if v[row] == StrId::NULL => Value::Null,
        ColumnData::Str(v) => Value::Text(text(&v[row])),
        ColumnData::Blob(v) => Value::Bytes(batch.strings.get(v[row]).to_vec()),
        ColumnData::ListI64(v) => Value::List(v[row].clone()),
    };
    (0..batch.len())
        .map(|row| batch.columns.iter().map(|c| value(c, row)).collect())
        .collect()
}

/// Every row of a table, in the order in which it is stored.
pub fn stored(session: &Session, name: &str) -> Vec<Row> {
    let parts = session.parts(name);
    let mut rows: Vec<Row> = parts.iter().flat_map(|part| file(part)).collect();
    if let Some(table) = tables::table(name) {
        rows.iter_mut().for_each(|row| add_sums(table, row));
    }
    rows
}

/// Puts the values in place of the differences, as docs/schema.md describes them.
fn add_sums(table: &Table, row: &mut Row) {
    for (i, column) in table.columns.iter().enumerate() {
        let (Stored::Less { terms, .. }, Value::Int(stored)) = (column.stored, &row[i]) else {
            continue;
        };
        let mut sum = 0i64;
        for term in terms {
            let mut columns = table.columns.iter();
            let of = columns.position(|c| c.name == term.column).unwrap();
            if let Value::Int(of) = row[of] {
                let part = of / term.divisor;
                sum = sum.wrapping_add(if term.minus {
                    part.wrapping_neg()
                } else {
                    part
                });
            }
        }
        // Only of numbers that are no times.
        row[i] = Value::Int(match stored.wrapping_add(sum) {
            NULL_I64 => NULL_I64.wrapping_add(sum),
            value => value,
        });
    }
}

/// Every row of a table, in the order of writing; calls, which merging rearranges, in the order of
/// their numbers.
pub fn table(session: &Session, name: &str) -> Vec<Row> {
    let mut rows = stored(session, name);
    if name == "syscalls" {
        rows.sort_by_key(|row| match row.first() {
            Some(Value::Int(rid)) => *rid,
            _ => panic!("a call without a number"),
        });
    }
    rows
}

/// Every row of a part, in order.
pub fn file(path: &Path) -> Vec<Row> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    builder
        .build()
        .unwrap()
        .flat_map(|batch| rows(&batch.unwrap()))
        .collect()
}

fn rows(batch: &RecordBatch) -> Vec<Row> {
    let value = |array: &dyn Array, row: usize| {
        if array.is_null(row) {
            return Value::Null;
        }
        match array.data_type() {
            DataType::Int64 => Value::Int(array.as_primitive::<Int64Type>().value(row)),
            DataType::Int32 => Value::Int(array.as_primitive::<Int32Type>().value(row).into()),
            DataType::Boolean => Value::Bool(array.as_boolean().value(row)),
            DataType::Utf8 => Value::Text(array.as_string::<i32>().value(row).to_owned()),
            DataType::Binary => Value::Bytes(array.as_binary::<i32>().value(row).to_vec()),
            DataType::List(_) => {
                let list = array.as_list::<i32>().value(row);
                Value::List(list.as_primitive::<Int64Type>().values().to_vec())
            }
            other => panic!("{other}"),
        }
    };
    let row = |row| batch.columns().iter().map(|c| value(c, row)).collect();
    (0..batch.num_rows()).map(row).collect()
}
