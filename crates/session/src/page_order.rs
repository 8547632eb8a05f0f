//! The order of the pages in column chunks: those that use the chunk's dictionary
//! come before all others.
//!
//! Out of a dictionary's page behind one of differences DuckDB with several threads takes
//! wrong values, or crashes. Parts written since say in their footers that they have
//! none; those of earlier versions are looked at, and [`crate::repair()`] writes them anew.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};

use parquet::basic::Encoding;
use parquet::column::page::Page;
use parquet::errors::Result;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::file::reader::{FileReader, RowGroupReader};
use parquet::file::serialized_reader::SerializedFileReader;

use crate::dir::Dir;
use crate::reader;

/// Key of what the footer of a part says of it, and what it says.
pub(crate) const KEY: &str = "fathom.page_order";
pub(crate) const DICTIONARY_FIRST: &str = "dictionary first";

/// Whether a footer says that the pages are in order.
pub(crate) fn is_promised(metadata: &ParquetMetaData) -> bool {
    let entries = metadata.file_metadata().key_value_metadata();
    entries.is_some_and(|entries| {
        let mut entries = entries.iter();
        entries.any(|e| e.key == KEY && e.value.as_deref() == Some(DICTIONARY_FIRST))
    })
}

/// Whether a chunk has pages with indices and pages with differences: only then are its
/// pages read.
fn is_mixed(chunk: &ColumnChunkMetaData) -> bool {
    let has = |encoding| chunk.encodings_mask().is_set(encoding);
    chunk.dictionary_page_offset().is_some()
        && has(Encoding::RLE_DICTIONARY)
        && (has(Encoding::DELTA_BINARY_PACKED)
            || has(Encoding::DELTA_LENGTH_BYTE_ARRAY)
            || has(Encoding::DELTA_BYTE_ARRAY))
}

/// Whether a page of `group` uses the dictionary of its chunk behind one of differences.
pub(crate) fn is_wrong(group: &dyn RowGroupReader) -> Result<bool> {
    for (i, chunk) in group.metadata().columns().iter().enumerate() {
        if !is_mixed(chunk) {
            continue;
        }
        let mut pages = group.get_column_page_reader(i)?;
        let mut others = false;
        while let Some(page) = pages.get_next_page()? {
            match (&page, page.encoding()) {
                (Page::DictionaryPage { .. }, _) => {}
                (_, Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY) if others => {
                    return Ok(true);
                }
                (_, Encoding::RLE_DICTIONARY | Encoding::PLAIN_DICTIONARY | Encoding::PLAIN) => {}
                _ => others = true,
            }
        }
    }
    Ok(false)
}

/// Whether a part, whose footer is `metadata`, has a row group that [`is_wrong`]. Of one
/// that cannot be read others tell.
pub(crate) fn is_wrong_in(metadata: &ParquetMetaData, file: File) -> bool {
    let mut groups = metadata.row_groups().iter();
    if is_promised(metadata) || !groups.any(|group| group.columns().iter().any(is_mixed)) {
        return false;
    }
    let look = || -> Result<bool> {
        let reader = SerializedFileReader::new(file)?;
        for group in 0..reader.num_row_groups() {
            if is_wrong(&*reader.get_row_group(group)?)? {
                return Ok(true);
            }
        }
        Ok(false)
    };
    // The file may be anything: a panic in its reader must not be ours.
    matches!(catch_unwind(AssertUnwindSafe(look)), Ok(Ok(true)))
}

/// [`is_wrong_in`] of part `name` in `dir`, whose footer is not at hand.
pub(crate) fn part_is_wrong(dir: &Dir, name: &str) -> bool {
    reader::footer(dir, name).is_ok_and(|footer| is_wrong_in(&footer.metadata, footer.file))
}

/// What a session says that has `parts` such parts.
pub(crate) fn problem(parts: usize) -> Option<String> {
    let parts = match parts {
        0 => return None,
        1 => "1 part was".to_owned(),
        n => format!("{n} parts were"),
    };
    Some(format!(
        "{parts} written by an older fathom, with pages in an order that DuckDB reads wrong \
         values out of: `fathom repair` writes them anew"
    ))
}
