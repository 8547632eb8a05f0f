//! The Parquet parts of a session, read without fathom.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Int64Type};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

/// The parts of a table.
pub fn files(session: &Path, table: &str) -> Vec<PathBuf> {
    let dir = session.join(table);
    let mut files: Vec<_> = fs::read_dir(&dir)
        .unwrap_or_else(|e| panic!("{}: {e}", dir.display()))
        .map(|entry| entry.expect("entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "parquet"))
        .collect();
    files.sort();
    files
}

/// Bytes that the parts of a table take.
pub fn bytes(session: &Path, table: &str) -> u64 {
    files(session, table)
        .iter()
        .map(|f| fs::metadata(f).expect("part").len())
        .sum()
}

/// All rows of a table, in the order of the parts.
pub fn read(session: &Path, table: &str) -> Vec<RecordBatch> {
    let mut batches = Vec::new();
    for path in files(session, table) {
        let file = File::open(&path).expect("part");
        let reader = ParquetRecordBatchReaderBuilder::try_new(file)
            .and_then(|builder| builder.build())
            .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        for batch in reader {
            batches.push(batch.unwrap_or_else(|e| panic!("{}: {e}", path.display())));
        }
    }
    batches
}

/// A column of integers.
pub fn ints(batches: &[RecordBatch], column: &str) -> Vec<Option<i64>> {
    cast(batches, column, &DataType::Int64)
        .iter()
        .flat_map(|array| array.as_primitive::<Int64Type>().iter().collect::<Vec<_>>())
        .collect()
}

/// A column of texts.
pub fn texts(batches: &[RecordBatch], column: &str) -> Vec<Option<String>> {
    cast(batches, column, &DataType::Utf8)
        .iter()
        .flat_map(|array| {
            array
                .as_string::<i32>()
                .iter()
                .map(|s| s.map(str::to_owned))
                .collect::<Vec<_>>()
        })
        .collect()
}

fn cast(batches: &[RecordBatch], column: &str, to: &DataType) -> Vec<arrow::array::ArrayRef> {
    batches
        .iter()
        .map(|batch| {
            let array = batch
                .column_by_name(column)
                .unwrap_or_else(|| panic!("no column {column}"));
            let array = arrow::compute::cast(array, to)
                .unwrap_or_else(|e| panic!("{column}: {}: {e}", array.data_type()));
            assert_eq!(array.len(), batch.num_rows());
            array
        })
        .collect()
}
