//! Columns of a batch by their numbers in a list of names.

use fathom_model::batch::{NULL_I32, NULL_I64};
use fathom_model::{Batch, ColumnData, StrId, StringTable};

/// Some columns of a batch. Missing columns are null.
pub(crate) struct Columns<'a> {
    columns: Vec<Option<&'a ColumnData>>,
    strings: &'a StringTable,
    /// The strings by their ids: most stand in many rows.
    texts: Vec<&'a str>,
    rows: usize,
}

impl<'a> Columns<'a> {
    /// The columns with these names, in their order.
    pub(crate) fn new(batch: &'a Batch, names: &[&str]) -> Self {
        let column = |name: &&str| {
            let index = batch.table.columns.iter().position(|c| c.name == *name)?;
            batch.columns.get(index).filter(|data| !data.is_empty())
        };
        Self {
            columns: names.iter().map(column).collect(),
            strings: &batch.strings,
            // Text columns hold UTF-8; damaged ones are no reason to fail.
            texts: (0..=batch.strings.len())
                .map(|id| {
                    batch
                        .strings
                        .get(StrId(u32::try_from(id).unwrap_or(u32::MAX)))
                })
                .map(|bytes| std::str::from_utf8(bytes).unwrap_or(""))
                .collect(),
            rows: batch.len(),
        }
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// A column of 64-bit integers as it is, nulls too; empty when there is none.
    pub(crate) fn i64s(&self, column: usize) -> &'a [i64] {
        match self.columns.get(column).copied().flatten() {
            Some(ColumnData::I64(values)) => values,
            _ => &[],
        }
    }

    /// The same of 32-bit integers.
    pub(crate) fn i32s(&self, column: usize) -> &'a [i32] {
        match self.columns.get(column).copied().flatten() {
            Some(ColumnData::I32(values)) => values,
            _ => &[],
        }
    }

    pub(crate) fn ids(&self, column: usize) -> &'a [StrId] {
        match self.columns.get(column).copied().flatten() {
            Some(ColumnData::Str(values)) => values,
            _ => &[],
        }
    }

    /// The text with an id; empty for null.
    pub(crate) fn text_of(&self, id: StrId) -> &'a str {
        self.texts.get(id.0 as usize).copied().unwrap_or("")
    }

    pub(crate) fn strings(&self) -> &'a StringTable {
        self.strings
    }

    pub(crate) fn i64(&self, column: usize, row: usize) -> Option<i64> {
        match self.columns.get(column).copied().flatten()? {
            ColumnData::I64(v) => v.get(row).copied().filter(|n| *n != NULL_I64),
            ColumnData::I32(v) => v
                .get(row)
                .copied()
                .filter(|n| *n != NULL_I32)
                .map(i64::from),
            _ => None,
        }
    }

    pub(crate) fn i32(&self, column: usize, row: usize) -> Option<i32> {
        self.i64(column, row).and_then(|n| i32::try_from(n).ok())
    }

    pub(crate) fn id(&self, column: usize, row: usize) -> StrId {
        match self.columns.get(column).copied().flatten() {
            Some(ColumnData::Str(v)) => v.get(row).copied().unwrap_or(StrId::NULL),
            _ => StrId::NULL,
        }
    }

    pub(crate) fn text(&self, column: usize, row: usize) -> Option<&'a str> {
        let id = self.id(column, row);
        let text = self.texts.get(id.0 as usize);
        (id != StrId::NULL).then(|| text.copied().unwrap_or(""))
    }
}
