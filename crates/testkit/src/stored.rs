//! Rows in the form in which Parquet files contain them.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use fathom_model::batch::NULL_I64;
use fathom_model::tables::{Stored, Table};
use fathom_model::{Batch, ColumnData};

/// The rows of `batch` with differences where a file contains them.
pub(crate) fn differences(batch: &Batch) -> Batch {
    let mut rows = batch.clone();
    for (i, column) in batch.table.columns.iter().enumerate() {
        let (Stored::Less { terms, .. }, ColumnData::I64(values)) =
            (column.stored, &mut rows.columns[i])
        else {
            continue;
        };
        let set = values.iter_mut().enumerate();
        for (row, value) in set.filter(|(_, value)| **value != NULL_I64) {
            for term in terms {
                let mut columns = batch.table.columns.iter();
                let of = columns.position(|c| c.name == term.column);
                let of = match of.map(|of| &batch.columns[of]) {
                    Some(ColumnData::I64(of)) if of[row] != NULL_I64 => of[row] / term.divisor,
                    _ => 0,
                };
                *value -= if term.minus { -of } else { of };
            }
        }
    }
    rows
}

/// The same rows with the names that columns of `table` have in a file.
pub(crate) fn named(table: &Table, rows: &RecordBatch) -> RecordBatch {
    let fields = rows.schema();
    let columns = table.columns.iter().zip(fields.fields());
    let named = columns.map(|(column, field)| {
        let field = field.as_ref().clone();
        field.with_name(column.stored_name())
    });
    let schema = Schema::new(named.collect::<Vec<_>>());
    RecordBatch::try_new(Arc::new(schema), rows.columns().to_vec()).unwrap()
}
