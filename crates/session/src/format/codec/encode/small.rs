//! Columns that only small tables have: truth values and lists.

use std::sync::Arc;

use parquet::basic::Encoding;
use parquet::errors::Result;
use parquet::file::statistics::Statistics;
use parquet::schema::types::ColumnDescriptor;

use super::bits::{hybrid, hybrid_run, pack_iter, width_of};
use super::chunk::{Chunk, ChunkBuilder, DataPage};
use super::delta;
use super::zstd::Zstd;

/// Encoder of a column of truth values.
#[derive(Default)]
pub(crate) struct BoolColumn {
    nullable: bool,
    rows: Vec<bool>,
    chunk: ChunkBuilder,
    seen: [bool; 2],
}

impl BoolColumn {
    pub(crate) fn new(nullable: bool) -> Self {
        Self {
            nullable,
            ..Self::default()
        }
    }

    pub(crate) fn push(&mut self, rows: &[bool]) {
        self.rows.extend_from_slice(rows);
    }

    pub(crate) fn bytes(&self) -> usize {
        self.chunk.len()
    }

    pub(crate) fn flush(&mut self, zstd: &mut Zstd) -> Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let mut definition = Vec::new();
        if self.nullable {
            hybrid_run(1, self.rows.len(), 1, &mut definition);
        }
        let mut values = Vec::new();
        pack_iter(self.rows.iter().map(|v| u64::from(*v)), 1, &mut values);
        for value in [false, true] {
            self.seen[usize::from(value)] |= self.rows.contains(&value);
        }
        let page = DataPage {
            repetition: &[],
            definition: &definition,
            values: &values,
            encoding: Encoding::PLAIN,
            count: self.rows.len(),
            nulls: 0,
            rows: self.rows.len(),
            compress: true,
        };
        self.chunk.page(&page, zstd)?;
        self.rows.clear();
        Ok(())
    }

    pub(crate) fn finish(
        &mut self,
        descr: Arc<ColumnDescriptor>,
        zstd: &mut Zstd,
    ) -> Result<Chunk> {
        self.flush(zstd)?;
        let [no, yes] = std::mem::take(&mut self.seen);
        let (least, greatest) = ((no || yes).then_some(!no), (no || yes).then_some(yes));
        let statistics = Statistics::boolean(least, greatest, None, Some(0), false);
        self.chunk.finish(descr, None, Some(statistics), zstd)
    }
}

/// Encoder of a column of lists of integers.
#[derive(Default)]
pub(crate) struct ListColumn {
    rows: usize,
    /// Lengths of the lists, and their elements end to end.
    lengths: Vec<usize>,
    elements: Vec<i64>,
    chunk: ChunkBuilder,
}

impl ListColumn {
    pub(crate) fn push(&mut self, rows: &[Vec<i64>]) {
        self.rows += rows.len();
        self.lengths.extend(rows.iter().map(Vec::len));
        self.elements.extend(rows.iter().flatten());
    }

    pub(crate) fn bytes(&self) -> usize {
        self.chunk.len() + self.elements.len() * size_of::<i64>()
    }

    /// `max_definition` is the level of an element that is there.
    fn flush(&mut self, max_definition: u32, zstd: &mut Zstd) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let mut repetition_levels = Vec::new();
        let mut definition_levels = Vec::new();
        for &length in &self.lengths {
            repetition_levels.push(0);
            repetition_levels.extend(std::iter::repeat_n(1, length.saturating_sub(1)));
            if length == 0 {
                definition_levels.push(max_definition - 1);
            }
            definition_levels.extend(std::iter::repeat_n(max_definition, length));
        }
        let (mut repetition, mut definition) = (Vec::new(), Vec::new());
        hybrid(&repetition_levels, 1, &mut repetition);
        hybrid(
            &definition_levels,
            width_of(u64::from(max_definition)),
            &mut definition,
        );
        let mut values = Vec::new();
        if !self.elements.is_empty() {
            delta::encode::<false>(&self.elements, &mut values);
        }
        let page = DataPage {
            repetition: &repetition,
            definition: &definition,
            values: &values,
            encoding: Encoding::DELTA_BINARY_PACKED,
            count: definition_levels.len(),
            nulls: self.lengths.iter().filter(|l| **l == 0).count(),
            rows: self.rows,
            compress: true,
        };
        self.chunk.write(&page, zstd)?;
        self.rows = 0;
        self.lengths.clear();
        self.elements.clear();
        Ok(())
    }

    pub(crate) fn finish(
        &mut self,
        descr: Arc<ColumnDescriptor>,
        zstd: &mut Zstd,
    ) -> Result<Chunk> {
        self.flush(descr.max_def_level().max(1) as u32, zstd)?;
        self.chunk.finish(descr, None, None, zstd)
    }

    /// Encodes the rows that were pushed as a page.
    pub(crate) fn flush_page(&mut self, descr: &ColumnDescriptor, zstd: &mut Zstd) -> Result<()> {
        self.flush(descr.max_def_level().max(1) as u32, zstd)
    }
}
