//! Batches to Parquet column chunks.
//!
//! The encoders are fathom's own and not the parquet crate's, because they must keep up with
//! millions of rows per second on one core: strings arrive as ids of a table and are mapped, never
//! hashed per row, and columns that are constant or null cost next to nothing.

mod bits;
mod chunk;
mod delta;
mod int_dict;
mod ints;
mod levels;
mod small;
mod strings;
mod zstd;

use std::sync::Arc;

use fathom_model::tables::{ColumnType, Table};
use fathom_model::{Batch, ColumnData, StringTable};
use parquet::errors::Result;
use parquet::schema::types::{ColumnDescriptor, SchemaDescPtr};

use crate::format::codec::less::{self, Less};
pub(crate) use chunk::Chunk;
use ints::IntColumn;
use small::{BoolColumn, ListColumn};
use strings::StrColumn;

const PAGE_ROWS: usize = 1 << 15;
/// Fewer are in a page whose texts are long: it is in memory several times while it is made.
const PAGE_TEXT_BYTES: usize = 4 << 20;

/// Rows of a page in a batch whose texts are as long as these on average.
fn page_rows(strings: &StringTable) -> usize {
    let average = strings.bytes() / strings.len().max(1);
    (PAGE_TEXT_BYTES / average.max(1)).clamp(256, PAGE_ROWS)
}

/// A row group that was encoded.
pub(crate) struct RowGroup {
    pub(crate) rows: usize,
    /// One a column.
    pub(crate) chunks: Vec<Chunk>,
}

enum ColumnEncoder {
    Int(IntColumn),
    Str(StrColumn),
    Bool(BoolColumn),
    List(ListColumn),
}

impl ColumnEncoder {
    fn start_batch(&mut self, strings: &StringTable) {
        if let ColumnEncoder::Str(column) = self {
            column.start_batch(strings);
        }
    }

    /// Appends rows `from..to`. [`check`] has seen that the types agree, and that a column
    /// without rows can be null.
    fn push(&mut self, data: &ColumnData, from: usize, to: usize, strings: &StringTable) {
        if data.is_empty() {
            match self {
                ColumnEncoder::Int(column) => column.push_nulls(to - from),
                ColumnEncoder::Str(column) => column.push_nulls(to - from),
                ColumnEncoder::Bool(_) | ColumnEncoder::List(_) => {}
            }
            return;
        }
        match (self, data) {
            (ColumnEncoder::Int(column), ColumnData::I64(v)) => column.push_i64(&v[from..to]),
            (ColumnEncoder::Int(column), ColumnData::I32(v)) => column.push_i32(&v[from..to]),
            (ColumnEncoder::Str(column), ColumnData::Str(v) | ColumnData::Blob(v)) => {
                column.push(&v[from..to], strings);
            }
            (ColumnEncoder::Bool(column), ColumnData::Bool(v)) => column.push(&v[from..to]),
            (ColumnEncoder::List(column), ColumnData::ListI64(v)) => column.push(&v[from..to]),
            _ => {}
        }
    }

    /// Appends rows `from..to` as a page of their own; no rows wait for theirs.
    fn page(
        &mut self,
        data: &ColumnData,
        (from, to): (usize, usize),
        strings: &StringTable,
        descr: &ColumnDescriptor,
        zstd: &mut zstd::Zstd,
    ) -> Result<()> {
        // Where no copy is needed none is made: the rows of a page are more than the processor's
        // cache holds.
        if let (ColumnEncoder::Int(column), ColumnData::I64(v)) = (&mut *self, data)
            && let Some(rows) = v.get(from..to)
        {
            return column.page(rows, zstd);
        }
        self.push(data, from, to, strings);
        self.flush(descr, zstd)
    }

    fn flush(&mut self, descr: &ColumnDescriptor, zstd: &mut zstd::Zstd) -> Result<()> {
        match self {
            ColumnEncoder::Int(column) => column.flush(zstd),
            ColumnEncoder::Str(column) => column.flush(zstd),
            ColumnEncoder::Bool(column) => column.flush(zstd),
            ColumnEncoder::List(column) => column.flush_page(descr, zstd),
        }
    }

    fn finish(&mut self, descr: Arc<ColumnDescriptor>, zstd: &mut zstd::Zstd) -> Result<Chunk> {
        match self {
            ColumnEncoder::Int(column) => column.finish(descr, zstd),
            ColumnEncoder::Str(column) => column.finish(descr, zstd),
            ColumnEncoder::Bool(column) => column.finish(descr, zstd),
            ColumnEncoder::List(column) => column.finish(descr, zstd),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            ColumnEncoder::Int(column) => column.bytes(),
            ColumnEncoder::Str(column) => column.bytes(),
            ColumnEncoder::Bool(column) => column.bytes(),
            ColumnEncoder::List(column) => column.bytes(),
        }
    }
}

/// Encodes the rows of one table into row groups.
pub(crate) struct Encoder {
    schema: SchemaDescPtr,
    columns: Vec<ColumnEncoder>,
    /// The columns that are stored as differences, by their places.
    less: Vec<Option<Less>>,
    differences: Vec<i64>,
    zstd: zstd::Zstd,
    rows: usize,
    page_rows: usize,
}

impl Encoder {
    pub(crate) fn new(table: &'static Table, schema: SchemaDescPtr) -> Result<Self> {
        let encoder = |column: &fathom_model::tables::Column| match column.ty {
            ColumnType::I64 => ColumnEncoder::Int(IntColumn::new(false, column.nullable)),
            ColumnType::I32 => ColumnEncoder::Int(IntColumn::new(true, column.nullable)),
            ColumnType::Str => ColumnEncoder::Str(StrColumn::new(true, column.nullable)),
            ColumnType::Blob => ColumnEncoder::Str(StrColumn::new(false, column.nullable)),
            ColumnType::Bool => ColumnEncoder::Bool(BoolColumn::new(column.nullable)),
            ColumnType::ListI64 => ColumnEncoder::List(ListColumn::default()),
        };
        let mut less: Vec<Option<Less>> = vec![None; table.columns.len()];
        for column in less::columns(table) {
            if let Some(place) = less.get_mut(column.column) {
                *place = Some(column.clone());
            }
        }
        Ok(Self {
            schema,
            columns: table.columns.iter().map(encoder).collect(),
            less,
            differences: Vec::new(),
            zstd: zstd::Zstd::new()?,
            rows: 0,
            page_rows: 0,
        })
    }

    /// Rows that wait for [`Encoder::finish`].
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Memory that they take, about.
    pub(crate) fn bytes(&self) -> usize {
        self.columns.iter().map(ColumnEncoder::bytes).sum()
    }

    /// Makes the rows of a batch a row group, whose encodings are chosen by all of them. There
    /// are no rows yet.
    pub(crate) fn whole(&mut self, batch: &Batch) -> Result<RowGroup> {
        for (column, data) in self.columns.iter_mut().zip(&batch.columns) {
            if let (ColumnEncoder::Int(column), ColumnData::I64(rows)) = (column, data) {
                column.plan(rows, &mut self.zstd)?;
            }
        }
        self.group(batch)
    }

    /// Makes the rows of a batch a row group. There are no rows yet.
    pub(crate) fn group(&mut self, batch: &Batch) -> Result<RowGroup> {
        self.start_batch(batch);
        let most = page_rows(&batch.strings);
        let mut from = 0;
        while from < batch.len() {
            let to = batch.len().min(from + most);
            self.add(batch, (from, to), true)?;
            from = to;
        }
        self.finish()
    }

    /// Appends the rows of a batch that [`check`] has passed.
    pub(crate) fn push(&mut self, batch: &Batch) -> Result<()> {
        self.start_batch(batch);
        let most = page_rows(&batch.strings);
        let mut from = 0;
        while from < batch.len() {
            let room = most.saturating_sub(self.page_rows).max(1);
            let to = batch.len().min(from + room);
            self.add(batch, (from, to), false)?;
            self.page_rows += to - from;
            from = to;
            if self.page_rows >= most {
                self.flush()?;
            }
        }
        Ok(())
    }

    fn start_batch(&mut self, batch: &Batch) {
        for column in &mut self.columns {
            column.start_batch(&batch.strings);
        }
    }

    /// Adds rows `from..to` of a batch to the page being filled; `whole`: as a page of their own, none
    /// wait for theirs.
    fn add(&mut self, batch: &Batch, (from, to): (usize, usize), whole: bool) -> Result<()> {
        let Self {
            schema,
            columns,
            less,
            differences,
            zstd,
            ..
        } = self;
        let columns = columns.iter_mut().zip(&batch.columns).zip(less.iter());
        for (i, ((column, data), less)) in columns.enumerate() {
            if let Some(less) = less
                && let ColumnEncoder::Int(column) = column
                && less.differences(data, batch, (from, to), differences)
            {
                match whole {
                    true => column.page(differences, zstd)?,
                    false => column.push_i64(differences),
                }
            } else if whole {
                let strings = &batch.strings;
                column.page(data, (from, to), strings, &schema.column(i), zstd)?;
            } else {
                column.push(data, from, to, &batch.strings);
            }
        }
        self.rows += to - from;
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        for (i, column) in self.columns.iter_mut().enumerate() {
            column.flush(&self.schema.column(i), &mut self.zstd)?;
        }
        self.page_rows = 0;
        Ok(())
    }

    /// The rows as a row group; the encoder is empty afterwards.
    pub(crate) fn finish(&mut self) -> Result<RowGroup> {
        let mut chunks = Vec::with_capacity(self.columns.len());
        for (i, column) in self.columns.iter_mut().enumerate() {
            chunks.push(column.finish(self.schema.column(i), &mut self.zstd)?);
        }
        let rows = std::mem::take(&mut self.rows);
        self.page_rows = 0;
        Ok(RowGroup { rows, chunks })
    }
}

/// Whether the batch has the columns of its table, all of one length but for null ones.
pub(crate) fn check(batch: &Batch) -> std::result::Result<(), String> {
    let columns = batch.table.columns;
    if columns.len() != batch.columns.len() {
        return Err(format!(
            "{} columns instead of {}",
            batch.columns.len(),
            columns.len()
        ));
    }
    for (column, data) in columns.iter().zip(&batch.columns) {
        let agrees = matches!(
            (column.ty, data),
            (ColumnType::I64, ColumnData::I64(_))
                | (ColumnType::I32, ColumnData::I32(_))
                | (ColumnType::Bool, ColumnData::Bool(_))
                | (ColumnType::Str, ColumnData::Str(_))
                | (ColumnType::Blob, ColumnData::Blob(_))
                | (ColumnType::ListI64, ColumnData::ListI64(_))
        );
        if !agrees {
            return Err(format!(
                "column {} is not of type {:?}",
                column.name, column.ty
            ));
        }
        let is_null = column.nullable && data.is_empty();
        if data.len() != batch.len() && !is_null {
            let (name, rows) = (column.name, data.len());
            return Err(format!(
                "column {name} has {rows} rows, the first {}",
                batch.len()
            ));
        }
    }
    Ok(())
}
