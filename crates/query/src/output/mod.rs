//! Writing results.

mod csv;
mod json;
pub mod plain;
mod table;

use std::io::{self, Write};
use std::str::FromStr;

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::{DataType, SchemaRef};
use arrow::ipc::writer::StreamWriter;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use fathom_model::choice::format_named;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use serde::{Deserialize, Serialize};

use crate::{Batches, QueryError, escape};

/// How a result is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Format {
    /// Aligned columns for people.
    Table,
    /// RFC 4180, with a header.
    Csv,
    /// An array of objects, one a line.
    Json,
    /// An object a line.
    Ndjson,
    /// An Arrow IPC stream.
    Arrow,
    Parquet,
}

impl Format {
    pub const ALL: [Format; 6] = [
        Format::Table,
        Format::Csv,
        Format::Json,
        Format::Ndjson,
        Format::Arrow,
        Format::Parquet,
    ];

    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Format::Table => "table",
            Format::Csv => "csv",
            Format::Json => "json",
            Format::Ndjson => "ndjson",
            Format::Arrow => "arrow",
            Format::Parquet => "parquet",
        }
    }

    /// Whether the output is no text: nothing for a terminal.
    pub fn is_binary(self) -> bool {
        matches!(self, Format::Arrow | Format::Parquet)
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        format_named(&Format::ALL, Format::name, name)
    }
}

/// Where the output goes to.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Columns of characters that fit: wider tables are cut. `None`: no limit.
    pub width: Option<usize>,
    /// Whether to use colors.
    pub color: bool,
    /// Whether a terminal shows it: control characters are then escaped in CSV whatever
    /// `exact` says. A table always has them escaped, JSON needs no option for it.
    pub terminal: bool,
    /// CSV: text as it is, so that a reader gets the bytes that were recorded. Otherwise it is
    /// made harmless for terminals and spreadsheets (module `csv` has the rule).
    pub exact: bool,
}

/// Writes all rows to `out` as they come, and returns their number. A reader
/// that closes its end early is no error: the rows until then are counted.
///
/// # Errors
///
/// When the query fails, the format cannot hold a column's type, or writing
/// fails.
pub fn write<W: Write + Send>(
    rows: impl Batches,
    format: Format,
    options: &Options,
    out: W,
) -> Result<u64, QueryError> {
    match write_observed(rows, format, options, out, &mut |_| {}) {
        Err((QueryError::Output(e), count)) if e.kind() == io::ErrorKind::BrokenPipe => Ok(count),
        result => result.map_err(|(e, _)| e),
    }
}

/// The same for a caller that shows progress: `observe` receives the number of rows after each
/// batch.
///
/// # Errors
///
/// The errors of [`write`], with the rows until then; a closed output is also an error.
pub fn write_observed<W: Write + Send>(
    rows: impl Batches,
    format: Format,
    options: &Options,
    mut out: W,
    observe: &mut dyn FnMut(u64),
) -> Result<u64, (QueryError, u64)> {
    let mut count = 0;
    let mut rows = Observed {
        rows,
        count: 0,
        observe,
    };
    let result = match format {
        Format::Table => table::write(&mut rows, options, &mut out, &mut count),
        Format::Csv => csv::write(&mut rows, options, &mut out, &mut count),
        Format::Json => json::write(&mut rows, &mut out, &mut count),
        Format::Ndjson => json::write_lines(&mut rows, &mut out, &mut count),
        Format::Arrow => arrow_stream(&mut rows, &mut out, &mut count),
        Format::Parquet => parquet_file(&mut rows, &mut out, &mut count),
    }
    .and_then(|()| Ok(out.flush()?));
    match result {
        Ok(()) => Ok(count),
        Err(e) => Err((e, count)),
    }
}

/// Rows with an observer that receives the number of rows read.
struct Observed<'a, B> {
    rows: B,
    count: u64,
    observe: &'a mut dyn FnMut(u64),
}

impl<B: Batches> Batches for Observed<'_, B> {
    fn schema(&self) -> SchemaRef {
        self.rows.schema()
    }

    fn next_batch(&mut self) -> Result<Option<RecordBatch>, QueryError> {
        let batch = self.rows.next_batch()?;
        if let Some(batch) = &batch {
            self.count += batch.num_rows() as u64;
            (self.observe)(self.count);
        }
        Ok(batch)
    }
}

fn arrow_stream(
    rows: &mut dyn Batches,
    out: &mut dyn Write,
    count: &mut u64,
) -> Result<(), QueryError> {
    let failed = |e| from_arrow("arrow", e);
    let mut writer = StreamWriter::try_new(out, &rows.schema()).map_err(failed)?;
    while let Some(batch) = rows.next_batch()? {
        writer.write(&batch).map_err(failed)?;
        *count += batch.num_rows() as u64;
    }
    writer.finish().map_err(failed)
}

fn parquet_file<W: Write + Send>(
    rows: &mut dyn Batches,
    out: &mut W,
    count: &mut u64,
) -> Result<(), QueryError> {
    let failed = |e: parquet::errors::ParquetError| match e {
        parquet::errors::ParquetError::External(e) => match e.downcast::<io::Error>() {
            Ok(e) => QueryError::Output(*e),
            Err(e) => format_error("parquet", &e.to_string()),
        },
        e => format_error("parquet", &e.to_string()),
    };
    // The library would panic.
    let schema = rows.schema();
    if let Some(field) = schema.fields().iter().find(|f| holds_union(f.data_type())) {
        let detail = format!("column {} holds a union; cast it to VARCHAR", field.name());
        return Err(format_error("parquet", &detail));
    }
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .build();
    let mut writer = ArrowWriter::try_new(out, rows.schema(), Some(properties)).map_err(failed)?;
    while let Some(batch) = rows.next_batch()? {
        writer.write(&batch).map_err(failed)?;
        *count += batch.num_rows() as u64;
    }
    writer.close().map_err(failed)?;
    Ok(())
}

fn holds_union(ty: &DataType) -> bool {
    match ty {
        DataType::Union(..) | DataType::RunEndEncoded(..) => true,
        DataType::List(f)
        | DataType::LargeList(f)
        | DataType::FixedSizeList(f, _)
        | DataType::Map(f, _) => holds_union(f.data_type()),
        DataType::Struct(fields) => fields.iter().any(|f| holds_union(f.data_type())),
        _ => false,
    }
}

fn format_error(format: &'static str, detail: &str) -> QueryError {
    QueryError::Format {
        format,
        detail: escape::text(detail).into_owned(),
    }
}

fn from_arrow(format: &'static str, error: arrow::error::ArrowError) -> QueryError {
    match error {
        arrow::error::ArrowError::IoError(_, e) => QueryError::Output(e),
        e => format_error(format, &e.to_string()),
    }
}

/// Formatters of a batch's columns; null becomes an empty string, bytes
/// hexadecimal digits, times ISO 8601.
fn formatters<'a>(
    batch: &'a RecordBatch,
    options: &'a FormatOptions<'a>,
    format: &'static str,
) -> Result<Vec<ArrayFormatter<'a>>, QueryError> {
    batch
        .columns()
        .iter()
        .map(|column| {
            ArrayFormatter::try_new(column.as_ref(), options).map_err(|e| from_arrow(format, e))
        })
        .collect()
}

fn cell(formatter: &ArrayFormatter<'_>, row: usize, into: &mut String) -> Result<(), QueryError> {
    into.clear();
    formatter
        .value(row)
        .write(into)
        .map_err(|e| QueryError::Sql(format!("a value cannot be shown: {e}")))
}

/// Whether values of the type line up on the right.
fn is_number(ty: &DataType) -> bool {
    ty.is_numeric()
}

fn is_null(batch: &RecordBatch, column: usize, row: usize) -> bool {
    batch.columns().get(column).is_none_or(|c| c.is_null(row))
}
