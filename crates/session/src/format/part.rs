//! Whole Parquet files: from row groups, or from the row groups of others.

use parquet::column::writer::ColumnCloseResult;
use parquet::errors::Result;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::properties::WriterPropertiesPtr;
use parquet::file::reader::ChunkReader;
use parquet::file::writer::SerializedFileWriter;

use crate::format::checksum::{Hashed, Sink};
use crate::format::codec::encode::RowGroup;
use crate::format::schema::TableSchema;

pub(crate) struct PartWriter<W: Sink>(SerializedFileWriter<Hashed<W>>);

impl<W: Sink> PartWriter<W> {
    pub(crate) fn new(
        sink: W,
        schema: &TableSchema,
        properties: &WriterPropertiesPtr,
    ) -> Result<Self> {
        SerializedFileWriter::new(Hashed::new(sink), schema.root.clone(), properties.clone())
            .map(Self)
    }

    /// Appends a row group that was encoded.
    pub(crate) fn append(&mut self, group: RowGroup) -> Result<()> {
        if group.rows == 0 {
            return Ok(());
        }
        let mut writer = self.0.next_row_group()?;
        for chunk in group.chunks {
            writer.append_column(&chunk.bytes, chunk.close)?;
        }
        writer.close()?;
        Ok(())
    }

    /// Appends a row group of another part of the same table as it is.
    pub(crate) fn copy<R: ChunkReader>(
        &mut self,
        source: &R,
        group: &RowGroupMetaData,
    ) -> Result<()> {
        let mut writer = self.0.next_row_group()?;
        for metadata in group.columns() {
            let close = ColumnCloseResult {
                bytes_written: metadata.compressed_size() as u64,
                rows_written: group.num_rows() as u64,
                metadata: metadata.clone(),
                bloom_filter: None,
                column_index: None,
                offset_index: None,
            };
            writer.append_column(source, close)?;
        }
        writer.close()?;
        Ok(())
    }

    /// Writes the checksums and the footer; returns what was written to.
    pub(crate) fn finish(mut self) -> Result<W> {
        self.0.flush()?;
        let checksums = self.0.inner_mut().checksums();
        self.0.write_all(&checksums)?;
        Ok(self.0.into_inner()?.finish()?)
    }
}

pub(crate) fn to_bytes(schema: &TableSchema, groups: Vec<RowGroup>) -> Result<Vec<u8>> {
    let mut writer = PartWriter::new(Vec::new(), schema, &schema.plain)?;
    for group in groups {
        writer.append(group)?;
    }
    writer.finish()
}

/// A part without rows.
pub(crate) fn empty(schema: &TableSchema) -> Result<Vec<u8>> {
    PartWriter::new(Vec::new(), schema, &schema.first)?.finish()
}
