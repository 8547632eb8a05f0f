//! The result of a query.

use std::cell::Cell;

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
    count: u64,
    observe: Option<Box<dyn FnMut(u64) + 'db>>,
    _busy: Busy<'db>,
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
            count: 0,
            observe: None,
            _busy: busy,
        })
    }

    /// Names and types of the columns.
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// Has `observe` told after each batch how many rows were read.
    pub(crate) fn observed<'a>(self, observe: impl FnMut(u64) + 'a) -> Rows<'a>
    where
        'db: 'a,
    {
        Rows {
            observe: Some(Box::new(observe)),
            ..self
        }
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
                self.count += columns.first().map_or(0, |c| c.len() as u64);
                if let Some(observe) = &mut self.observe {
                    observe(self.count);
                }
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
