//! The footers of parts, which may be anything.

use std::fs::File;
use std::io::ErrorKind;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use fathom_model::tables::{ColumnType, Table};
use parquet::basic::Type as Physical;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};

use crate::disk::dir::Dir;
use crate::format::checksum::{Checksums, Wrong};
use crate::format::schema::physical;

/// Why a part is left out.
pub(crate) enum Unreadable {
    Gone,
    Bad(String),
}

impl From<Wrong> for Unreadable {
    fn from(wrong: Wrong) -> Self {
        Unreadable::Bad(match wrong {
            Wrong::Unreadable(e) => format!("it cannot be read: {e}"),
            Wrong::Changed => "it is damaged: its checksum is another".to_owned(),
        })
    }
}

/// How much of a part is compared with its checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Check {
    Footer,
    Whole,
}

/// Rows and bytes of a part that is as it was written and belongs to `table`: file `name` of
/// `dir`.
pub(crate) fn examine(
    table: &Table,
    dir: &Dir,
    name: &str,
    check: Check,
) -> Result<(u64, u64), Unreadable> {
    let footer = read(dir, name)?;
    let failed = |e: std::io::Error| Unreadable::Bad(format!("it cannot be read: {e}"));
    let data = data_range(&footer.file, footer.bytes).map_err(failed)?;
    let Some(data) = data else {
        return Err(Unreadable::Bad(
            "it is damaged: it does not begin as a part does".to_owned(),
        ));
    };
    let rows = validate(table, &footer.metadata, data).map_err(Unreadable::Bad)?;
    if check == Check::Whole {
        footer.check_rows()?;
    }
    Ok((rows, footer.bytes))
}

/// The footer of a Parquet file, which agrees with its checksum.
pub(crate) struct Footer {
    pub(crate) metadata: ParquetMetaData,
    pub(crate) file: File,
    /// Size of the file.
    bytes: u64,
    checksums: Checksums,
}

impl Footer {
    /// Checks that the rows are as they were written.
    pub(crate) fn check_rows(&self) -> Result<(), Unreadable> {
        Ok(self.checksums.check_rows(&self.file).map(drop)?)
    }
}

/// Reads the footer of file `name` of `dir`, which may be anything.
pub(crate) fn read(dir: &Dir, name: &str) -> Result<Footer, Unreadable> {
    let failed = |e: std::io::Error| match e.kind() {
        ErrorKind::NotFound => Unreadable::Gone,
        ErrorKind::InvalidInput => Unreadable::Bad(e.to_string()),
        _ => Unreadable::Bad(format!("it cannot be read: {e}")),
    };
    let file = dir.open_file(name).map_err(failed)?;
    let bytes = file.metadata().map_err(failed)?.len();
    let checksums = Checksums::read(&file, bytes)?;
    // The footer may be anything: a panic in its reader must not be ours.
    let parse = || ParquetMetaDataReader::new().parse_and_finish(&file);
    let metadata = match catch_unwind(AssertUnwindSafe(parse)) {
        Ok(Ok(metadata)) => metadata,
        Ok(Err(e)) => return Err(Unreadable::Bad(format!("it is damaged: {e}"))),
        Err(_) => return Err(Unreadable::Bad("it is damaged: its footer".to_owned())),
    };
    Ok(Footer {
        metadata,
        file,
        bytes,
        checksums,
    })
}

/// Where column data may lie: between the magic number and the footer. `None`
/// when there is no magic number at the start.
fn data_range(file: &File, bytes: u64) -> std::io::Result<Option<Range<u64>>> {
    const MAGIC: &[u8; 4] = b"PAR1";
    let (mut magic, mut footer) = ([0; 4], [0; 4]);
    file.read_exact_at(&mut magic, 0)?;
    // The footer is followed by its length and the magic number again.
    let tail = bytes.saturating_sub(8);
    file.read_exact_at(&mut footer, tail)?;
    let end = tail.saturating_sub(u64::from(u32::from_le_bytes(footer)));
    Ok((&magic == MAGIC).then_some(MAGIC.len() as u64..end))
}

/// Whether columns and places of the data make sense; returns the rows.
fn validate(table: &Table, metadata: &ParquetMetaData, data: Range<u64>) -> Result<u64, String> {
    let schema = metadata.file_metadata().schema_descr();
    for column in table.columns {
        let leaf = schema.columns().iter().find(|leaf| {
            leaf.path()
                .parts()
                .first()
                .is_some_and(|name| name == column.stored_name())
        });
        let found: Option<Physical> = leaf.map(|leaf| leaf.physical_type());
        let nested = leaf.is_some_and(|leaf| leaf.path().parts().len() > 1);
        if found != Some(physical(column.ty)) || nested != (column.ty == ColumnType::ListI64) {
            return Err(format!(
                "column {} is missing or of another type",
                column.name
            ));
        }
    }
    let mut rows = 0u64;
    for group in metadata.row_groups() {
        rows = u64::try_from(group.num_rows())
            .ok()
            .and_then(|n| rows.checked_add(n))
            .ok_or("its number of rows makes no sense")?;
        for chunk in group.columns() {
            let start = chunk
                .dictionary_page_offset()
                .unwrap_or(chunk.data_page_offset());
            let end = start.checked_add(chunk.compressed_size());
            let (start, end) = (u64::try_from(start), u64::try_from(end.unwrap_or(-1)));
            let inside = matches!((start, end), (Ok(start), Ok(end))
                if data.start <= start && start <= end && end <= data.end);
            if !inside {
                return Err("its data is outside of the file".to_owned());
            }
        }
    }
    Ok(rows)
}
