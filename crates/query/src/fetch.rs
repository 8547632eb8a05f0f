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
    /// The value in column `name`.
    ///
    /// # Errors
    /// [`QueryError::Column`] when there is none of that type.
    pub fn get<T: Value>(&self, name: &'static str) -> Result<T, QueryError> {
        T::of(self, name)
    }

    /// The integer in column `name`; 0 for null.
    ///
    /// # Errors
    /// The errors of [`Row::get`].
    pub fn int(&self, name: &'static str) -> Result<i64, QueryError> {
        self.get(name)
    }

    /// The text in column `name`; empty for null.
    ///
    /// # Errors
    /// The errors of [`Row::get`].
    pub fn text(&self, name: &'static str) -> Result<String, QueryError> {
        self.get(name)
    }

    fn column(&self, name: &'static str) -> Result<&dyn Array, QueryError> {
        let column = self
            .batch
            .column_by_name(name)
            .ok_or(QueryError::Column(name))?;
        Ok(column.as_ref())
    }
}

/// Types of columns. Null is `None`, or otherwise 0 or an empty text.
pub trait Value: Sized {
    /// The value in column `name` of `row`.
    ///
    /// # Errors
    /// [`QueryError::Column`] when there is none of that type.
    fn of(row: &Row<'_>, name: &'static str) -> Result<Self, QueryError>;
}

impl Value for Option<i64> {
    fn of(row: &Row<'_>, name: &'static str) -> Result<Self, QueryError> {
        let column = row.column(name)?;
        if column.is_null(row.index) {
            return Ok(None);
        }
        match column.data_type() {
            DataType::Int64 => Ok(Some(column.as_primitive::<Int64Type>().value(row.index))),
            DataType::Int32 => Ok(Some(i64::from(
                column.as_primitive::<Int32Type>().value(row.index),
            ))),
            _ => Err(QueryError::Column(name)),
        }
    }
}

impl Value for i64 {
    fn of(row: &Row<'_>, name: &'static str) -> Result<Self, QueryError> {
        Ok(row.get::<Option<_>>(name)?.unwrap_or_default())
    }
}

impl Value for Option<String> {
    fn of(row: &Row<'_>, name: &'static str) -> Result<Self, QueryError> {
        let text = row
            .column(name)?
            .as_string_opt::<i32>()
            .ok_or(QueryError::Column(name))?;
        Ok((!text.is_null(row.index)).then(|| text.value(row.index).to_string()))
    }
}

impl Value for String {
    fn of(row: &Row<'_>, name: &'static str) -> Result<Self, QueryError> {
        Ok(row.get::<Option<_>>(name)?.unwrap_or_default())
    }
}

/// `read_row!(row => Struct { field other = "column" })`: a struct whose fields are columns of the
/// same name, or of the given one; the error is the error of [`Row::get`].
#[macro_export]
macro_rules! read_row {
    ($row:ident => $type:ident { $($field:ident $(= $column:literal)?)* }) => {
        Ok::<_, $crate::QueryError>($type { $($field: $row.get($crate::read_row!(@ $field $($column)?))?),* })
    };
    (@ $field:ident) => {
        stringify!($field)
    };
    (@ $field:ident $column:literal) => {
        $column
    };
}

/// Calls `take` with each row of `sql`, as they come.
///
/// # Errors
/// If the query fails, and the errors of `take`.
pub fn each<E: From<QueryError>>(
    db: &Db,
    sql: &str,
    mut take: impl FnMut(Row<'_>) -> Result<(), E>,
) -> Result<(), E> {
    for batch in db.query(sql)? {
        let batch = batch?;
        for index in 0..batch.num_rows() {
            take(Row {
                batch: &batch,
                index,
            })?;
        }
    }
    Ok(())
}

/// Each row of `sql`, made into a `T`.
///
/// # Errors
/// If the query fails, and the errors of `make`.
pub fn rows<T>(
    db: &Db,
    sql: &str,
    mut make: impl FnMut(Row<'_>) -> Result<T, QueryError>,
) -> Result<Vec<T>, QueryError> {
    let mut out = Vec::new();
    each(db, sql, |row| {
        out.push(make(row)?);
        Ok::<_, QueryError>(())
    })?;
    Ok(out)
}
