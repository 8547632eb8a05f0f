//! Results for the page: bounded, in one batch, in types that JavaScript holds.

use std::io::Write;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::{DataType, Field, Float64Type, Int64Type, Schema};
use arrow::error::ArrowError;
use arrow::ipc::writer::StreamWriter;

use super::from_arrow;
use crate::{QueryError, Rows, escape};

/// Whole numbers up to here are exact in JavaScript.
const EXACT: f64 = 9_007_199_254_740_992.0;
/// Bytes of an answer, about.
pub const MOST_BYTES: usize = 64 << 20;

/// Rows of a result up to `most` and about [`MOST_BYTES`], as [`plain`] makes them, and whether
/// there are more.
///
/// # Errors
/// When the query fails, and when a value cannot be shown.
pub fn collect(mut rows: Rows<'_>, most: usize) -> Result<(RecordBatch, bool), QueryError> {
    let wrong = |e: ArrowError| QueryError::Sql(escape::lines(&e.to_string()));
    let schema = rows.schema();
    let mut batches = Vec::new();
    let (mut count, mut bytes) = (0, 0);
    let mut cut = false;
    while let Some(batch) = rows.next_batch()? {
        let size = batch.get_array_memory_size();
        let room = most - count;
        // Of rows of one size as many as fit; at least one, so that something is there.
        let fitting = match bytes + size > MOST_BYTES {
            true => {
                let share = (MOST_BYTES - bytes) as f64 / size as f64;
                ((batch.num_rows() as f64 * share) as usize).max(1)
            }
            false => batch.num_rows(),
        };
        let room = room.min(fitting);
        if batch.num_rows() > room {
            batches.push(batch.slice(0, room));
            cut = true;
            break;
        }
        bytes += size.min(MOST_BYTES - bytes);
        count += batch.num_rows();
        batches.push(batch);
    }
    let whole = concat_batches(&schema, &batches).map_err(wrong)?;
    drop(batches);
    Ok((plain(&whole).map_err(wrong)?, cut))
}

/// Writes a batch as an Arrow IPC stream.
///
/// # Errors
/// When writing fails.
pub fn write(batch: &RecordBatch, out: &mut dyn Write) -> Result<(), QueryError> {
    let failed = |e| from_arrow("arrow", e);
    let mut writer = StreamWriter::try_new(out, &batch.schema()).map_err(failed)?;
    writer.write(batch).map_err(failed)?;
    writer.finish().map_err(failed)
}

/// The same rows in types that the page knows: numbers that a double holds exactly as
/// doubles, truth values, lists; everything else as texts.
fn plain(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let mut fields = Vec::new();
    let mut columns: Vec<ArrayRef> = Vec::new();
    for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
        let column = plain_column(column)?;
        fields.push(Field::new(field.name(), column.data_type().clone(), true));
        columns.push(column);
    }
    let options =
        arrow::record_batch::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)
}

fn plain_column(column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let to = |ty: &DataType| cast(column, ty);
    match column.data_type() {
        DataType::Boolean | DataType::Float64 | DataType::Utf8 => Ok(column.clone()),
        DataType::Decimal128(_, 0) => {
            // Sums of whole numbers.
            let texts = to(&DataType::Utf8)?;
            let doubles = to(&DataType::Float64)?;
            Ok(if is_exact(&doubles) { doubles } else { texts })
        }
        DataType::Int64 => {
            let whole = column.as_primitive_opt::<Int64Type>();
            let exact =
                whole.is_some_and(|w| w.iter().flatten().all(|n| n.unsigned_abs() <= EXACT as u64));
            to(if exact {
                &DataType::Float64
            } else {
                &DataType::Utf8
            })
        }
        DataType::UInt64 => {
            let doubles = to(&DataType::Float64)?;
            match is_exact(&doubles) {
                true => Ok(doubles),
                false => to(&DataType::Utf8),
            }
        }
        t if t.is_numeric() => to(&DataType::Float64),
        DataType::List(item) if item.data_type().is_numeric() => {
            let item = Field::new("item", DataType::Float64, true);
            to(&DataType::List(Arc::new(item)))
        }
        _ => match to(&DataType::Utf8) {
            Ok(texts) => Ok(texts),
            // Structures and the like, as the database writes them.
            Err(_) => texts_of(column),
        },
    }
}

fn is_exact(doubles: &ArrayRef) -> bool {
    let doubles = doubles.as_primitive_opt::<Float64Type>();
    doubles.is_some_and(|d| d.iter().flatten().all(|n| n.abs() < EXACT))
}

fn texts_of(column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let options = arrow::util::display::FormatOptions::default();
    let format = arrow::util::display::ArrayFormatter::try_new(column.as_ref(), &options)?;
    let text = |i| column.is_valid(i).then(|| format.value(i).to_string());
    let texts: arrow::array::StringArray = (0..column.len()).map(text).collect();
    Ok(Arc::new(texts))
}
