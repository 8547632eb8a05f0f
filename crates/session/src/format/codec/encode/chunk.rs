//! The bytes of one column chunk: its dictionary page and its data pages.

use std::sync::Arc;

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::page::{CompressedPage, Page, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::Result;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::statistics::Statistics;
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use parquet::schema::types::ColumnDescriptor;

use super::bits::hybrid_run;
use super::zstd::Zstd;

/// A data page before compression.
pub(crate) struct DataPage<'a> {
    /// Repetition and definition levels; empty when the column has none.
    pub(crate) repetition: &'a [u8],
    pub(crate) definition: &'a [u8],
    /// The encoded values that are not null.
    pub(crate) values: &'a [u8],
    pub(crate) encoding: Encoding,
    /// Values including nulls; for a list also one for each empty list.
    pub(crate) count: usize,
    pub(crate) nulls: usize,
    pub(crate) rows: usize,
    /// Whether compression is worth a try.
    pub(crate) compress: bool,
}

/// A dictionary page before compression: PLAIN values.
pub(crate) struct Dictionary<'a> {
    pub(crate) values: &'a [u8],
    pub(crate) count: usize,
}

/// A column chunk, ready for a file.
pub(crate) struct Chunk {
    pub(crate) bytes: Bytes,
    pub(crate) close: ColumnCloseResult,
}

/// A page without values.
struct NullPage {
    definition: Vec<u8>,
    rows: usize,
}

/// Collects the data pages of a column chunk.
///
/// Pages that use the chunk's dictionary come before all others, as in files of other writers. If
/// they follow a page in another encoding, DuckDB 1.5.6 with several threads sometimes reads wrong
/// values, or crashes. Pages without values are written like their neighbors, so that they do not
/// come in between.
#[derive(Default)]
pub(crate) struct ChunkBuilder {
    /// Encoding of the last page with values.
    last: Option<Encoding>,
    /// Pages without values in front of the first with some.
    null_pages: Vec<NullPage>,
    /// Data pages with their headers.
    pages: Vec<u8>,
    uncompressed: usize,
    count: usize,
    rows: usize,
    encodings: Vec<Encoding>,
}

impl ChunkBuilder {
    /// Bytes of the pages so far.
    pub(crate) fn len(&self) -> usize {
        self.pages.len()
    }

    /// Rows of the pages so far.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Whether a page may use the chunk's dictionary.
    pub(crate) fn takes_dictionary(&self) -> bool {
        self.last
            .is_none_or(|last| last == Encoding::RLE_DICTIONARY)
    }

    /// Appends a page of a column without lists.
    pub(crate) fn page(&mut self, page: &DataPage<'_>, zstd: &mut Zstd) -> Result<()> {
        if page.nulls == page.count {
            return self.null_page(page.rows, zstd);
        }
        self.waiting_nulls(page.encoding, zstd)?;
        self.last = Some(page.encoding);
        self.write(page, zstd)
    }

    /// Appends a page of `rows` nulls.
    pub(crate) fn null_page(&mut self, rows: usize, zstd: &mut Zstd) -> Result<()> {
        let mut definition = Vec::new();
        hybrid_run(0, rows, 1, &mut definition);
        let nulls = NullPage { definition, rows };
        match self.last {
            None => {
                self.null_pages.push(nulls);
                Ok(())
            }
            Some(encoding) => self.nulls(&nulls, encoding, zstd),
        }
    }

    /// Writes the pages without values that waited for one with some.
    fn waiting_nulls(&mut self, encoding: Encoding, zstd: &mut Zstd) -> Result<()> {
        for nulls in std::mem::take(&mut self.null_pages) {
            self.nulls(&nulls, encoding, zstd)?;
        }
        Ok(())
    }

    /// Writes a page without values next to pages in `encoding`.
    fn nulls(&mut self, nulls: &NullPage, encoding: Encoding, zstd: &mut Zstd) -> Result<()> {
        // Indices begin with their width, even when there are none.
        let (encoding, values): (_, &[u8]) = match encoding {
            Encoding::RLE_DICTIONARY => (encoding, &[1]),
            _ => (Encoding::PLAIN, &[]),
        };
        let page = DataPage {
            repetition: &[],
            definition: &nulls.definition,
            values,
            encoding,
            count: nulls.rows,
            nulls: nulls.rows,
            rows: nulls.rows,
            compress: false,
        };
        self.write(&page, zstd)
    }

    /// Appends a page as it is.
    pub(crate) fn write(&mut self, page: &DataPage<'_>, zstd: &mut Zstd) -> Result<()> {
        let levels = page.repetition.len() + page.definition.len();
        let mut buf = Vec::with_capacity(levels + page.values.len());
        buf.extend_from_slice(page.repetition);
        buf.extend_from_slice(page.definition);
        let is_compressed = page.compress && zstd.compress(page.values, &mut buf)?;
        if !is_compressed {
            buf.extend_from_slice(page.values);
        }
        let header = Page::DataPageV2 {
            buf: buf.into(),
            num_values: page.count as u32,
            encoding: page.encoding,
            num_nulls: page.nulls as u32,
            num_rows: page.rows as u32,
            def_levels_byte_len: page.definition.len() as u32,
            rep_levels_byte_len: page.repetition.len() as u32,
            is_compressed,
            statistics: None,
        };
        self.uncompressed += append(
            &mut self.pages,
            CompressedPage::new(header, levels + page.values.len()),
        )?;
        self.count += page.count;
        self.rows += page.rows;
        if !self.encodings.contains(&page.encoding) {
            self.encodings.push(page.encoding);
        }
        Ok(())
    }

    /// Closes the chunk, and leaves the builder empty for the next.
    pub(crate) fn finish(
        &mut self,
        descr: Arc<ColumnDescriptor>,
        dictionary: Option<Dictionary<'_>>,
        statistics: Option<Statistics>,
        zstd: &mut Zstd,
    ) -> Result<Chunk> {
        self.waiting_nulls(Encoding::PLAIN, zstd)?;
        let this = std::mem::take(self);
        let mut encodings = this.encodings;
        encodings.push(Encoding::RLE);
        let mut bytes = Vec::new();
        let mut uncompressed = this.uncompressed;
        let mut dictionary_offset = None;
        if let Some(dictionary) = dictionary {
            // Unlike a data page, a dictionary page has no mark for values
            // that are not compressed.
            let mut buf = Vec::new();
            zstd.always(dictionary.values, &mut buf)?;
            let page = Page::DictionaryPage {
                buf: buf.into(),
                num_values: dictionary.count as u32,
                encoding: Encoding::PLAIN,
                is_sorted: false,
            };
            uncompressed += append(
                &mut bytes,
                CompressedPage::new(page, dictionary.values.len()),
            )?;
            dictionary_offset = Some(0);
            encodings.push(Encoding::PLAIN);
        }
        let data_offset = bytes.len();
        bytes.extend_from_slice(&this.pages);
        let mut metadata = ColumnChunkMetaData::builder(descr)
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
            .set_encodings(encodings)
            .set_num_values(this.count as i64)
            .set_total_compressed_size(bytes.len() as i64)
            .set_total_uncompressed_size(uncompressed as i64)
            .set_data_page_offset(data_offset as i64)
            .set_dictionary_page_offset(dictionary_offset);
        if let Some(statistics) = statistics {
            metadata = metadata.set_statistics(statistics);
        }
        let close = ColumnCloseResult {
            bytes_written: bytes.len() as u64,
            rows_written: this.rows as u64,
            metadata: metadata.build()?,
            bloom_filter: None,
            column_index: None,
            offset_index: None,
        };
        Ok(Chunk {
            bytes: bytes.into(),
            close,
        })
    }
}

/// Appends `page` with its header to `bytes`; returns what it would take
/// without compression.
fn append(bytes: &mut Vec<u8>, page: CompressedPage) -> Result<usize> {
    // TrackedWrite buffers small writes and passes large ones through.
    let mut sink = TrackedWrite::new(bytes);
    let mut writer = SerializedPageWriter::new(&mut sink);
    let written = writer.write_page(page)?;
    writer.close()?;
    Ok(written.uncompressed_size)
}
