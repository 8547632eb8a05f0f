//! Rows of a query as values.

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Int32Type, Int64Type};
use fathom_query::Db;

use crate::ReportError;

/// One row of a result.
pub(crate) struct Row<'a> {
    batch: &'a RecordBatch,
    index: usize,
}

impl Row<'_> {
    /// The integer in column `name`; `None` for null.
    pub fn maybe_int(&self, name: &'static str) -> Result<Option<i64>, ReportError> {
        let column = self.column(name)?;
        if column.is_null(self.index) {
            return Ok(None);
        }
        match column.data_type() {
            DataType::Int64 => Ok(Some(column.as_primitive::<Int64Type>().value(self.index))),
            DataType::Int32 => Ok(Some(i64::from(
                column.as_primitive::<Int32Type>().value(self.index),
            ))),
            _ => Err(ReportError::Column(name)),
        }
    }

    /// The integer in column `name`; 0 for null.
    pub fn int(&self, name: &'static str) -> Result<i64, ReportError> {
        Ok(self.maybe_int(name)?.unwrap_or(0))
    }

    /// The text in column `name`; `None` for null.
    pub fn maybe_text(&self, name: &'static str) -> Result<Option<String>, ReportError> {
        let column = self.column(name)?;
        let text = column
            .as_string_opt::<i32>()
            .ok_or(ReportError::Column(name))?;
        Ok((!text.is_null(self.index)).then(|| text.value(self.index).to_string()))
    }

    /// The text in column `name`; empty for null.
    pub fn text(&self, name: &'static str) -> Result<String, ReportError> {
        Ok(self.maybe_text(name)?.unwrap_or_default())
    }

    fn column(&self, name: &'static str) -> Result<&dyn Array, ReportError> {
        let column = self
            .batch
            .column_by_name(name)
            .ok_or(ReportError::Column(name))?;
        Ok(column.as_ref())
    }
}

/// Each row of `sql`, made into a `T`.
pub(crate) fn rows<T>(
    db: &Db,
    sql: &str,
    mut make: impl FnMut(Row<'_>) -> Result<T, ReportError>,
) -> Result<Vec<T>, ReportError> {
    let mut out = Vec::new();
    for batch in db.query(sql)? {
        let batch = batch?;
        for index in 0..batch.num_rows() {
            out.push(make(Row {
                batch: &batch,
                index,
            })?);
        }
    }
    Ok(out)
}
