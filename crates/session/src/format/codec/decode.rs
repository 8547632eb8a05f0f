//! Parts back to batches: for merging parts, and for counting the rows of one
//! that could not be written.

use std::collections::HashMap;

use bytes::Bytes;
use fathom_model::batch::{NULL_I32, NULL_I64};
use fathom_model::tables::{ColumnType, Table};
use fathom_model::{Batch, ColumnData, StrId, StringTable};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::RowGroupReader;

use super::less::{self, Less};

pub(crate) const BATCH_ROWS: usize = 1 << 16;

/// Entries of a dictionary that are recognized without a hash; a power of two.
const RECENT: usize = 256;
/// Spreads addresses that differ in their low bits.
const SPREAD: usize = 0x9E37_79B9_7F4A_7C15_u64 as usize;

/// Reads a row group that holds the columns of `table`, in batches of bounded
/// size.
pub(crate) struct RowGroupDecoder {
    table: &'static Table,
    /// `None` for a column that is left out.
    columns: Vec<Option<ColumnReader>>,
    /// The columns that are stored as differences.
    less: Vec<Less>,
    rows_left: usize,
    /// Rows of a batch at most.
    batch_rows: usize,
}

impl RowGroupDecoder {
    pub(crate) fn new(table: &'static Table, group: &dyn RowGroupReader) -> Result<Self> {
        Self::select(table, group, |_| true)
    }

    /// The same, with only the columns that `wanted` names by their numbers, and the columns that
    /// these are stored as differences from: the others stay empty in the batches.
    pub(crate) fn select(
        table: &'static Table,
        group: &dyn RowGroupReader,
        wanted: impl Fn(usize) -> bool,
    ) -> Result<Self> {
        let metadata = group.metadata();
        if metadata.num_columns() != table.columns.len() {
            return Err(general(format!("{} columns", metadata.num_columns())));
        }
        let mut less = less::columns(table);
        less.retain(|less| wanted(less.column));
        let of_sum = |i: usize| less.iter().any(|less| less.of().any(|of| of == i));
        let columns: Result<_> = (0..metadata.num_columns())
            .map(|i| {
                let read = wanted(i) || of_sum(i);
                read.then(|| group.get_column_reader(i)).transpose()
            })
            .collect();
        let rows_left = usize::try_from(metadata.num_rows())
            .map_err(|_| general(format!("{} rows", metadata.num_rows())))?;
        Ok(Self {
            table,
            columns: columns?,
            less,
            rows_left,
            batch_rows: BATCH_ROWS,
        })
    }

    /// With all rows in one batch if they are no more than `most`; whether that is so.
    pub(crate) fn all_at_once(&mut self, most: usize) -> bool {
        let fits = self.rows_left <= most;
        if fits {
            self.batch_rows = self.batch_rows.max(self.rows_left);
        }
        fits
    }

    /// The next rows; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Batch>> {
        if self.rows_left == 0 {
            return Ok(None);
        }
        let rows = self.rows_left.min(self.batch_rows);
        let mut strings = StringTable::new();
        let mut columns = Vec::with_capacity(self.columns.len());
        for (column, reader) in self.table.columns.iter().zip(&mut self.columns) {
            let Some(reader) = reader else {
                columns.push(ColumnData::empty(column.ty));
                continue;
            };
            let data = read_column(column.ty, reader, rows, &mut strings)?;
            if data.len() != rows {
                let (name, found) = (column.name, data.len());
                return Err(general(format!("column {name} has {found} rows of {rows}")));
            }
            columns.push(data);
        }
        self.rows_left -= rows;
        let mut batch = Batch {
            table: self.table,
            columns,
            strings,
        };
        for less in &self.less {
            less.restore(&mut batch);
        }
        Ok(Some(batch))
    }
}

fn general(message: String) -> ParquetError {
    ParquetError::General(message)
}

fn read_column(
    ty: ColumnType,
    reader: &mut ColumnReader,
    rows: usize,
    strings: &mut StringTable,
) -> Result<ColumnData> {
    match (ty, reader) {
        (ColumnType::I64, ColumnReader::Int64ColumnReader(reader)) => {
            let (values, levels) = read_flat(reader, rows)?;
            Ok(ColumnData::I64(spread(values, &levels, NULL_I64)))
        }
        (ColumnType::I32, ColumnReader::Int32ColumnReader(reader)) => {
            let (values, levels) = read_flat(reader, rows)?;
            Ok(ColumnData::I32(spread(values, &levels, NULL_I32)))
        }
        (ColumnType::Bool, ColumnReader::BoolColumnReader(reader)) => {
            let (values, levels) = read_flat(reader, rows)?;
            Ok(ColumnData::Bool(spread(values, &levels, false)))
        }
        (ColumnType::Str, ColumnReader::ByteArrayColumnReader(reader)) => {
            Ok(ColumnData::Str(read_strings(reader, rows, strings)?))
        }
        (ColumnType::Blob, ColumnReader::ByteArrayColumnReader(reader)) => {
            Ok(ColumnData::Blob(read_strings(reader, rows, strings)?))
        }
        (ColumnType::ListI64, ColumnReader::Int64ColumnReader(reader)) => {
            Ok(ColumnData::ListI64(read_lists(reader, rows)?))
        }
        (ty, _) => Err(general(format!("a column is not of type {ty:?}"))),
    }
}

/// The values that are there, and the definition levels (none when the column
/// cannot be null).
fn read_flat<T: DataType>(
    reader: &mut ColumnReaderImpl<T>,
    rows: usize,
) -> Result<(Vec<T::T>, Vec<i16>)> {
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    reader.read_records(rows, Some(&mut levels), None, &mut values)?;
    Ok((values, levels))
}

/// Puts `null` where the level is 0.
fn spread<T: Copy>(values: Vec<T>, levels: &[i16], null: T) -> Vec<T> {
    if values.len() >= levels.len() {
        return values;
    }
    let mut values = values.into_iter();
    let next = |level: &i16| {
        if *level > 0 {
            values.next()
        } else {
            Some(null)
        }
    };
    levels.iter().map_while(next).collect()
}

fn read_strings<T: DataType<T = ByteArray>>(
    reader: &mut ColumnReaderImpl<T>,
    rows: usize,
    strings: &mut StringTable,
) -> Result<Vec<StrId>> {
    let (values, levels) = read_flat(reader, rows)?;
    // Values of a dictionary page share their bytes: the address identifies the entry without
    // hashing the string.
    let mut known: HashMap<(usize, usize), StrId> = HashMap::new();
    // Recently seen entries, each in its place: most values are one of a few.
    let mut recent = [((0, 0), StrId::NULL); RECENT];
    let ids = values.iter().map(|value| {
        let bytes = value.data();
        let address = (bytes.as_ptr() as usize, bytes.len());
        let place = address.0.wrapping_mul(SPREAD) >> (usize::BITS - RECENT.ilog2());
        let Some(slot) = recent.get_mut(place) else {
            return strings.intern(bytes);
        };
        if slot.0 != address {
            let id = *known
                .entry(address)
                .or_insert_with(|| strings.intern(bytes));
            *slot = (address, id);
        }
        slot.1
    });
    Ok(spread(ids.collect(), &levels, StrId::NULL))
}

fn read_lists<T: DataType<T = i64>>(
    reader: &mut ColumnReaderImpl<T>,
    rows: usize,
) -> Result<Vec<Vec<i64>>> {
    let (mut values, mut definition, mut repetition) = (Vec::new(), Vec::new(), Vec::new());
    reader.read_records(
        rows,
        Some(&mut definition),
        Some(&mut repetition),
        &mut values,
    )?;
    let present = definition.iter().copied().max().unwrap_or(0);
    let mut values = values.into_iter();
    let mut lists: Vec<Vec<i64>> = Vec::with_capacity(rows);
    for (repetition, definition) in repetition.iter().zip(&definition) {
        if *repetition == 0 {
            lists.push(Vec::new());
        }
        if *definition == present
            && let (Some(list), Some(value)) = (lists.last_mut(), values.next())
        {
            list.push(value);
        }
    }
    Ok(lists)
}

/// Every row of a part in memory, a batch at a time.
pub(crate) fn for_each_batch(
    table: &'static Table,
    part: Bytes,
    mut each: impl FnMut(&Batch),
) -> Result<()> {
    use parquet::file::reader::FileReader;
    let reader = parquet::file::serialized_reader::SerializedFileReader::new(part)?;
    for i in 0..reader.num_row_groups() {
        let mut decoder = RowGroupDecoder::new(table, &*reader.get_row_group(i)?)?;
        while let Some(batch) = decoder.next()? {
            each(&batch);
        }
    }
    Ok(())
}
