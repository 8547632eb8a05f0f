//! CSV and JSON: the columns of table `syscalls`.

use std::io::Write;
use std::ops::Range;

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use fathom_query::output::{self, Format, Options};
use fathom_query::{Batches, Db, QueryError, Rows};

use crate::error::{ExportError, Result};
use crate::source::{SessionRows, Tables};
use crate::{Outcome, Selection, Text};

pub(crate) fn write(
    db: &Db,
    format: Format,
    selection: &Selection,
    text: Text,
    out: &mut (dyn Write + Send),
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Outcome> {
    let source = SessionRows::new(db, selection, Tables::Calls)?;
    let total = source.total();
    let rows = Ordered::new(db, selection, source.windows()?)?;
    let options = Options {
        terminal: text.terminal,
        exact: text.exact,
        ..Options::default()
    };
    let mut observe = |done| progress(done, total);
    let written = output::write_observed(rows, format, &options, out, &mut observe);
    let rows = written.map_err(|(e, _)| match e {
        QueryError::Output(e) => ExportError::Output(e),
        e => ExportError::Query(e),
    })?;
    Ok(Outcome {
        rows,
        notes: Vec::new(),
    })
}

/// Calls in the order in which they began, sorted a window of time after the other.
struct Ordered<'db> {
    db: &'db Db,
    selection: &'db Selection,
    windows: std::vec::IntoIter<Range<i64>>,
    rows: Option<Rows<'db>>,
    schema: SchemaRef,
}

impl<'db> Ordered<'db> {
    fn new(db: &'db Db, selection: &'db Selection, windows: Vec<Range<i64>>) -> Result<Self> {
        let schema = db.query("SELECT * FROM syscalls LIMIT 0")?.schema();
        Ok(Self {
            db,
            selection,
            windows: windows.into_iter(),
            rows: None,
            schema,
        })
    }
}

impl Batches for Ordered<'_> {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn next_batch(&mut self) -> std::result::Result<Option<RecordBatch>, QueryError> {
        loop {
            if let Some(rows) = &mut self.rows
                && let Some(batch) = rows.next_batch()?
            {
                return Ok(Some(batch));
            }
            // A database runs one query at a time.
            self.rows = None;
            let Some(window) = self.windows.next() else {
                return Ok(None);
            };
            self.rows = Some(self.db.query(&format!(
                "SELECT * FROM syscalls WHERE {} AND ts_ns >= {} AND ts_ns < {} \
                 ORDER BY ts_ns, rid",
                self.selection.sql(),
                window.start,
                window.end
            ))?);
        }
    }
}
