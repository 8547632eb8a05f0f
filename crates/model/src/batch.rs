//! Rows on their way from enrichment to the session: one vector a column.

use crate::strings::{StrId, StringTable};
use crate::table::{ColumnType, Table};

/// Null in a column of 64-bit integers.
pub const NULL_I64: i64 = i64::MIN;
/// Null in a column of 32-bit integers.
pub const NULL_I32: i32 = i32::MIN;

/// A value that can be null in a row.
pub trait Null: Sized {
    /// The representation of null.
    const NULL: Self;

    /// The value when it is known, else null.
    #[inline]
    fn when(self, known: bool) -> Self {
        if known { self } else { Self::NULL }
    }
}

impl Null for i64 {
    const NULL: Self = NULL_I64;
}

impl Null for i32 {
    const NULL: Self = NULL_I32;
}

impl Null for StrId {
    const NULL: Self = StrId::NULL;
}

/// The values of one column.
#[derive(Clone, Debug)]
pub enum ColumnData {
    /// 64-bit integers, [`NULL_I64`] for null.
    I64(Vec<i64>),
    /// 32-bit integers, [`NULL_I32`] for null.
    I32(Vec<i32>),
    /// Truth values.
    Bool(Vec<bool>),
    /// UTF-8 strings of the batch's table, [`StrId::NULL`] for null.
    Str(Vec<StrId>),
    /// Byte strings of the batch's table, [`StrId::NULL`] for null.
    Blob(Vec<StrId>),
    /// Lists of 64-bit integers.
    ListI64(Vec<Vec<i64>>),
}

impl ColumnData {
    /// A column without rows.
    pub fn empty(ty: ColumnType) -> Self {
        match ty {
            ColumnType::I64 => ColumnData::I64(Vec::new()),
            ColumnType::I32 => ColumnData::I32(Vec::new()),
            ColumnType::Bool => ColumnData::Bool(Vec::new()),
            ColumnType::Str => ColumnData::Str(Vec::new()),
            ColumnType::Blob => ColumnData::Blob(Vec::new()),
            ColumnType::ListI64 => ColumnData::ListI64(Vec::new()),
        }
    }

    /// Rows in the column.
    pub fn len(&self) -> usize {
        match self {
            ColumnData::I64(v) => v.len(),
            ColumnData::I32(v) => v.len(),
            ColumnData::Bool(v) => v.len(),
            ColumnData::Str(v) | ColumnData::Blob(v) => v.len(),
            ColumnData::ListI64(v) => v.len(),
        }
    }

    /// Whether the column has no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Rows of one table. `columns` are in the order of `table.columns` and of
/// equal length. A column is empty that is null in every row, or was not read.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The table that the rows belong to.
    pub table: &'static Table,
    /// One entry per column of the table.
    pub columns: Vec<ColumnData>,
    /// The strings of the string columns.
    pub strings: StringTable,
}

impl Batch {
    /// Rows in the batch.
    pub fn len(&self) -> usize {
        self.columns.iter().map(ColumnData::len).max().unwrap_or(0)
    }

    /// Whether the batch has no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
