//! CSV and JSON: the columns of table `syscalls` as they are.

use std::io::Write;

use fathom_query::output::{self, Options};
use fathom_query::{Db, QueryError};

use crate::error::{ExportError, Result};
use crate::source::check_condition;
use crate::{Format, Outcome, Selection};

pub(crate) fn write(
    db: &Db,
    format: Format,
    selection: &Selection,
    terminal: bool,
    out: &mut (dyn Write + Send),
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Outcome> {
    check_condition(db, selection)?;
    let condition = selection.sql();
    let total = count(
        db,
        &format!("SELECT count(*) FROM syscalls WHERE {condition}"),
    )?;
    let rows = db.query(&format!("SELECT * FROM syscalls WHERE {condition}"))?;
    let format = match format {
        Format::Csv => output::Format::Csv,
        Format::Ndjson => output::Format::Ndjson,
        _ => output::Format::Json,
    };
    let options = Options {
        terminal,
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

fn count(db: &Db, sql: &str) -> Result<u64> {
    use arrow::array::AsArray;
    use arrow::datatypes::Int64Type;
    let mut total = 0;
    for batch in db.query(sql)? {
        let batch = batch?;
        let column = batch
            .columns()
            .first()
            .and_then(|c| c.as_primitive_opt::<Int64Type>())
            .ok_or(ExportError::Column("count"))?;
        total = column.values().first().copied().unwrap_or(0);
    }
    Ok(u64::try_from(total).unwrap_or(0))
}
