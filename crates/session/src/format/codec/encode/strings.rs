//! Columns of strings: a dictionary, and plain text once that grows too large.

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::Arc;

use fathom_model::{StrId, StringTable};
use parquet::basic::Encoding;
use parquet::data_type::ByteArray;
use parquet::errors::Result;
use parquet::file::statistics::Statistics;
use parquet::schema::types::ColumnDescriptor;

use super::bits::{hybrid, hybrid_run, width_of};
use super::chunk::{Chunk, ChunkBuilder, DataPage, Dictionary};
use super::levels;
use super::zstd::Zstd;

/// From here on pages are written without the dictionary.
const MAX_ENTRIES: usize = 1 << 16;
const MAX_BYTES: usize = 4 << 20;

/// Longest string that is kept as least or greatest of a chunk.
const MAX_STATISTIC: usize = 64;

/// A string of the batch that the column has not met yet.
const UNKNOWN: u32 = u32::MAX;

/// Encoder of a column of text or bytes.
pub(crate) struct StrColumn {
    /// Text, not bytes.
    utf8: bool,
    nullable: bool,
    /// Rows of the page being filled: ids in `strings`, 0 for null.
    rows: Vec<u32>,
    /// Rows before them that are null.
    null_rows: usize,
    /// Distinct strings of the chunk; the first `dictionary` of them form the
    /// dictionary page.
    strings: StringTable,
    dictionary: usize,
    /// Ids of the batch being pushed to ids in `strings`.
    ids: Vec<u32>,
    chunk: ChunkBuilder,
    nulls: usize,
    values: Vec<u32>,
    levels: Vec<u8>,
    encoded: Vec<u8>,
}

impl StrColumn {
    pub(crate) fn new(utf8: bool, nullable: bool) -> Self {
        Self {
            utf8,
            nullable,
            rows: Vec::new(),
            null_rows: 0,
            strings: StringTable::new(),
            dictionary: 0,
            ids: Vec::new(),
            chunk: ChunkBuilder::default(),
            nulls: 0,
            values: Vec::new(),
            levels: Vec::new(),
            encoded: Vec::new(),
        }
    }

    /// Forgets what is known of the strings of the last batch.
    pub(crate) fn start_batch(&mut self, strings: &StringTable) {
        self.ids.clear();
        self.ids.resize(strings.len() + 1, UNKNOWN);
    }

    /// Appends rows that are null.
    pub(crate) fn push_nulls(&mut self, rows: usize) {
        if self.rows.is_empty() {
            self.null_rows += rows;
        } else {
            self.rows.resize(self.rows.len() + rows, 0);
        }
    }

    /// Appends rows of the batch that was started.
    pub(crate) fn push(&mut self, rows: &[StrId], strings: &StringTable) {
        let Some(&first) = rows.first() else { return };
        if self.null_rows > 0 {
            self.rows.resize(std::mem::take(&mut self.null_rows), 0);
        }
        if rows.iter().fold(0, |diff, id| diff | (id.0 ^ first.0)) == 0 {
            let id = self.id(first, strings);
            self.rows.resize(self.rows.len() + rows.len(), id);
            return;
        }
        self.rows.reserve(rows.len());
        for &id in rows {
            let id = match self.ids.get(id.0 as usize) {
                Some(&known) if known != UNKNOWN => known,
                _ => self.id(id, strings),
            };
            self.rows.push(id);
        }
    }

    /// The id in `self.strings` of a string of the batch.
    #[cold]
    fn id(&mut self, id: StrId, strings: &StringTable) -> u32 {
        let known = if id == StrId::NULL && self.nullable {
            0
        } else {
            let bytes = strings.get(id);
            let text = if self.utf8 {
                valid_utf8(bytes)
            } else {
                Cow::Borrowed(bytes)
            };
            self.strings.intern(&text).0
        };
        if let Some(slot) = self.ids.get_mut(id.0 as usize) {
            *slot = known;
        }
        known
    }

    /// Memory that the chunk takes so far, about.
    pub(crate) fn bytes(&self) -> usize {
        self.chunk.len() + self.strings.bytes() + self.strings.len() * 16
    }

    /// Encodes the rows that were pushed as a page.
    pub(crate) fn flush(&mut self, zstd: &mut Zstd) -> Result<()> {
        let null_rows = std::mem::take(&mut self.null_rows);
        if null_rows > 0 {
            self.nulls += null_rows;
            return self.chunk.null_page(null_rows, zstd);
        }
        if self.rows.is_empty() {
            return Ok(());
        }
        let mut nulls = 0;
        let all_same = levels::all_same(&self.rows);
        self.levels.clear();
        if self.nullable {
            nulls = levels::nulls(&self.rows, 0, all_same);
            levels::definition(&self.rows, 0, nulls, &mut self.levels);
        }
        self.nulls += nulls;
        self.encoded.clear();
        let encoding = if self.fits_dictionary() {
            self.dictionary = self.strings.len();
            let width = width_of(self.dictionary.saturating_sub(1) as u64).max(1);
            match self.rows.first() {
                _ if nulls == self.rows.len() => Encoding::PLAIN,
                Some(&id) if all_same => {
                    self.encoded.push(width as u8);
                    // Indices count from 0, ids from 1.
                    hybrid_run(id - 1, self.rows.len(), width, &mut self.encoded);
                    Encoding::RLE_DICTIONARY
                }
                _ => {
                    levels::compact(&self.rows, 0, &mut self.values);
                    self.values.iter_mut().for_each(|id| *id -= 1);
                    self.encoded.push(width as u8);
                    hybrid(&self.values, width, &mut self.encoded);
                    Encoding::RLE_DICTIONARY
                }
            }
        } else {
            for &id in self.rows.iter().filter(|id| **id != 0) {
                plain(self.strings.get(StrId(id)), &mut self.encoded);
            }
            Encoding::PLAIN
        };
        let page = DataPage {
            repetition: &[],
            definition: &self.levels,
            values: &self.encoded,
            encoding,
            count: self.rows.len(),
            nulls,
            rows: self.rows.len(),
            compress: true,
        };
        self.chunk.page(&page, zstd)?;
        self.rows.clear();
        Ok(())
    }

    fn fits_dictionary(&self) -> bool {
        self.dictionary == self.strings.len()
            || (self.strings.len() <= MAX_ENTRIES && self.strings.bytes() <= MAX_BYTES)
    }

    /// Closes the chunk.
    pub(crate) fn finish(
        &mut self,
        descr: Arc<ColumnDescriptor>,
        zstd: &mut Zstd,
    ) -> Result<Chunk> {
        self.flush(zstd)?;
        let mut dictionary = Vec::new();
        for id in 1..=self.dictionary as u32 {
            plain(self.strings.get(StrId(id)), &mut dictionary);
        }
        let dictionary = match self.dictionary {
            0 => None,
            count => Some(Dictionary {
                values: &dictionary,
                count,
            }),
        };
        let chunk = self
            .chunk
            .finish(descr, dictionary, Some(self.statistics()), zstd);
        self.strings.clear();
        self.ids.clear();
        (self.dictionary, self.nulls) = (0, 0);
        chunk
    }

    fn statistics(&self) -> Statistics {
        let all = (1..=self.strings.len() as u32).map(|id| self.strings.get(StrId(id)));
        let bound = |bytes: Option<&[u8]>| bytes.map(|b| ByteArray::from(b.to_vec()));
        let (least, greatest) = (all.clone().min(), all.max());
        let nulls = Some(self.nulls as u64);
        if [least, greatest]
            .iter()
            .flatten()
            .any(|b| b.len() > MAX_STATISTIC)
        {
            return Statistics::byte_array(None, None, None, nulls, false);
        }
        Statistics::byte_array(bound(least), bound(greatest), None, nulls, false)
    }
}

fn plain(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// `bytes` as text: bytes that are not UTF-8 become `\xHH`. Readers reject a whole part because of
/// one invalid string.
fn valid_utf8(bytes: &[u8]) -> Cow<'_, [u8]> {
    if std::str::from_utf8(bytes).is_ok() {
        return Cow::Borrowed(bytes);
    }
    let mut text = String::with_capacity(bytes.len() + 8);
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            // Writing to a String cannot fail.
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    Cow::Owned(text.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_text_is_escaped() {
        assert_eq!(&*valid_utf8(b"a\xff\xfeb\xc3"), br"a\xff\xfeb\xc3");
        assert_eq!(&*valid_utf8("gr\u{fc}n".as_bytes()), "gr\u{fc}n".as_bytes());
    }
}
