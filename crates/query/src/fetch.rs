//! Rows of a query as values.

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Int32Type, Int64Type};

use crate::{Db, QueryError};

/// One row of a result.
#[derive(Debug)]
pub struct Row<'a> {
    batch: &'a RecordBatch,
    index: usize,
}

impl Row<'_> {
    /// The integer in column `name`; `None` for null.
    ///
    /// # Errors
    /// [`QueryError::Column`] when there is none.
    pub fn maybe_int(&self, name: &'static str) -> Result<Option<i64>, QueryError> {
        let column = self.column(name)?;
        if column.is_null(self.index) {
            return Ok(None);
        }
        match column.data_type() {
            DataType::Int64 => Ok(Some(column.as_primitive::<Int64Type>().value(self.index))),
            DataType::Int32 => Ok(Some(i64::from(
                column.as_primitive::<Int32Type>().value(self.index),
            ))),
            _ => Err(QueryError::Column(name)),
        }
    }

    /// The integer in column `name`; 0 for null.
    ///
    /// # Errors
    /// [`QueryError::Column`] when there is none.
    pub fn int(&self, name: &'static str) -> Result<i64, QueryError> {
        Ok(self.maybe_int(name)?.unwrap_or(0))
    }

    /// The text in column `name`; `None` for null.
    ///
    /// # Errors
    /// [`QueryError::Column`] when there is none.
    pub fn maybe_text(&self, name: &'static str) -> Result<Option<String>, QueryError> {
        let column = self.column(name)?;
        let text = column
            .as_string_opt::<i32>()
            .ok_or(QueryError::Column(name))?;
        Ok((!text.is_null(self.index)).then(|| text.value(self.index).to_string()))
    }

    /// The text in column `name`; empty for null.
    ///
    /// # Errors
    /// [`QueryError::Column`] when there is none.
    pub fn text(&self, name: &'static str) -> Result<String, QueryError> {
        Ok(self.maybe_text(name)?.unwrap_or_default())
    }

    fn column(&self, name: &'static str) -> Result<&dyn Array, QueryError> {
        let column = self
            .batch
            .column_by_name(name)
            .ok_or(QueryError::Column(name))?;
        Ok(column.as_ref())
    }
}

/// Each row of `sql`, made into a `T`.
///
/// # Errors
/// When the query fails, and those of `make`.
pub fn rows<T>(
    db: &Db,
    sql: &str,
    mut make: impl FnMut(Row<'_>) -> Result<T, QueryError>,
) -> Result<Vec<T>, QueryError> {
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
