//! The result of a query.

use std::cell::Cell;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use duckdb::Statement;

use crate::watchdog::Watchdog;
use crate::{Limits, QueryError};

/// Rows of a result, in batches that are computed as they are asked for.
pub struct Rows<'db> {
    statement: Statement<'db>,
    schema: SchemaRef,
    limits: Limits,
    watchdog: Watchdog,
    done: bool,
    _busy: Busy<'db>,
}

/// Rows in batches: of a query, or an existing batch.
pub trait Batches {
    /// Names and types of the columns.
    fn schema(&self) -> SchemaRef;

    /// The next rows, `None` after the last.
    ///
    /// # Errors
    ///
    /// When the query fails while it runs, or exceeds a limit.
    fn next_batch(&mut self) -> Result<Option<RecordBatch>, QueryError>;
}

impl Batches for Rows<'_> {
    fn schema(&self) -> SchemaRef {
        Rows::schema(self)
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>, QueryError> {
        Rows::next_batch(self)
    }
}

impl Batches for std::iter::Once<RecordBatch> {
    fn schema(&self) -> SchemaRef {
        let first = self.clone().next();
        first.map_or_else(
            || Arc::new(arrow::datatypes::Schema::empty()),
            |b| b.schema(),
        )
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>, QueryError> {
        Ok(self.next())
    }
}

/// Marks a database as busy for as long as it lives: a second query would
/// silently end the first.
struct Busy<'db>(&'db Cell<bool>);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

impl<'db> Rows<'db> {
    pub(crate) fn new(
        mut statement: Statement<'db>,
        limits: &Limits,
        watchdog: Watchdog,
        busy: &'db Cell<bool>,
    ) -> Result<Self, QueryError> {
        let started = statement.stream_arrow([]).map(|stream| stream.get_schema());
        let schema = started.map_err(|e| QueryError::from_db(&e, limits, watchdog.fired()))?;
        busy.set(true);
        let busy = Busy(busy);
        Ok(Self {
            statement,
            schema,
            limits: limits.clone(),
            watchdog,
            done: false,
            _busy: busy,
        })
    }

    /// Names and types of the columns.
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// The next rows, `None` after the last.
    ///
    /// # Errors
    ///
    /// When the query fails while it runs, or exceeds a limit.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>, QueryError> {
        if self.done {
            return Ok(None);
        }
        // The statement's own iterator would panic on an error.
        match self.statement.step() {
            Ok(Some(array)) => {
                let (_, columns, _) = array.into_parts();
                RecordBatch::try_new(self.schema(), columns)
                    .map(Some)
                    .map_err(|e| QueryError::Sql(crate::escape::lines(&e.to_string())))
            }
            Ok(None) => {
                self.done = true;
                Ok(None)
            }
            Err(e) => {
                self.done = true;
                Err(QueryError::from_db(&e, &self.limits, self.watchdog.fired()))
            }
        }
    }
}

impl Iterator for Rows<'_> {
    type Item = Result<RecordBatch, QueryError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().transpose()
    }
}
