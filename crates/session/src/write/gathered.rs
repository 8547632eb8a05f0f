//! The rows of a table that are not in a part yet.

use fathom_model::Batch;
use parquet::errors::Result;

use crate::format::codec::GROUP_ROWS;
use crate::format::codec::clusters::{self, Clusters};
use crate::format::codec::encode::{Encoder, RowGroup};
use crate::format::schema::TableSchema;

/// Rows that are worth a row group of their own, if they lie together by something.
const LEAST: usize = 1 << 14;
/// Where such a row group ends: until then its rows are in memory as they came.
const MOST: usize = 1 << 15;
/// The same in memory that they take.
const MOST_BYTES: usize = 16 << 20;

/// Rows on their way into the next part of a table.
pub(crate) struct Gathered {
    encoder: Encoder,
    /// Rows that are not encoded yet, of a table whose rows lie together by something.
    clusters: Option<Clusters>,
    groups: Vec<RowGroup>,
    /// Rows and bytes of `groups`.
    encoded: (usize, usize),
}

impl Gathered {
    pub(crate) fn new(schema: &TableSchema) -> Result<Self> {
        Ok(Self {
            encoder: Encoder::new(schema.table, schema.descr.clone())?,
            clusters: Clusters::new(schema.table),
            groups: Vec::new(),
            encoded: (0, 0),
        })
    }

    pub(crate) fn rows(&self) -> usize {
        let waiting = self.clusters.as_ref().map_or(0, Clusters::rows);
        self.encoded.0 + waiting + self.encoder.rows()
    }

    /// Memory that they take, about.
    pub(crate) fn bytes(&self) -> usize {
        let waiting = self.clusters.as_ref().map_or(0, Clusters::bytes);
        self.encoded.1 + waiting + self.encoder.bytes()
    }

    /// Appends the rows of a batch.
    pub(crate) fn push(&mut self, mut batch: Batch) -> Result<()> {
        let Some(clusters) = &mut self.clusters else {
            return self.encoder.push(&batch);
        };
        if batch.len() > GROUP_ROWS {
            // Readers bring the order of smaller ones back, in memory.
            let before = clusters.take();
            self.encode(&before)?;
            return self.encode(&batch);
        }
        if clusters.rows() == 0 && batch.len() >= LEAST {
            clusters::group(&mut batch);
            return self.encode(&batch);
        }
        clusters.push(&batch);
        if clusters.rows() >= MOST || clusters.bytes() >= MOST_BYTES {
            let rows = clusters.take();
            return self.encode(&rows);
        }
        Ok(())
    }

    fn encode(&mut self, rows: &Batch) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let group = self.encoder.group(rows)?;
        let bytes: usize = group.chunks.iter().map(|chunk| chunk.bytes.len()).sum();
        self.encoded.0 += group.rows;
        self.encoded.1 += bytes;
        self.groups.push(group);
        Ok(())
    }

    /// All rows as row groups; none are left.
    pub(crate) fn finish(&mut self) -> Result<Vec<RowGroup>> {
        if let Some(clusters) = self.clusters.as_mut().filter(|c| c.rows() > 0) {
            let rows = clusters.take();
            self.encode(&rows)?;
        }
        if self.encoder.rows() > 0 {
            self.groups.push(self.encoder.finish()?);
        }
        self.encoded = (0, 0);
        Ok(std::mem::take(&mut self.groups))
    }
}
