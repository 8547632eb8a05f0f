//! Where the bytes of a session go.

use std::borrow::Cow;
use std::fs;

use fathom_model::tables::{Column, TABLES};
use fathom_pyramid::SOURCES;
use parquet::file::metadata::ParquetMetaDataReader;

use crate::disk::dir::open_regular;
use crate::error::SessionError;
use crate::read::session::Session;

/// The disk space of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnSize {
    /// Name of the table, or of the file for data outside of tables.
    pub table: Cow<'static, str>,
    /// Name of the column; empty for what belongs to none: footers, the file
    /// itself.
    pub column: &'static str,
    /// Rows of the table; of one with a key all versions.
    pub rows: u64,
    /// Bytes, compressed.
    pub bytes: u64,
    /// The same before compression, after encoding; 0 where there is none.
    pub encoded_bytes: u64,
}

impl Session {
    /// The disk space of each column, table by table, the largest first. Together with
    /// `session.json` that is the whole session.
    ///
    /// # Errors
    /// [`SessionError::Io`] and [`SessionError::Parquet`] when a part cannot be read.
    pub fn column_sizes(&self) -> Result<Vec<ColumnSize>, SessionError> {
        let mut sizes = Vec::new();
        for table in TABLES {
            let rows = self.rows(table.name);
            let size = |column| ColumnSize {
                table: table.name.into(),
                column,
                rows,
                bytes: 0,
                encoded_bytes: 0,
            };
            let columns = table.columns.iter();
            let mut columns: Vec<_> = columns.map(|c| (c, size(c.name))).collect();
            let mut rest = size("");
            for (info, path) in self
                .part_infos(table.name)
                .iter()
                .zip(self.parts(table.name))
            {
                let file = open_regular(&path).map_err(SessionError::io("open", &path))?;
                let metadata = ParquetMetaDataReader::new()
                    .parse_and_finish(&file)
                    .map_err(SessionError::parquet(&path))?;
                rest.bytes += info.bytes;
                for chunk in metadata.row_groups().iter().flat_map(|g| g.columns()) {
                    let name = chunk.column_path().parts().first();
                    // Columns that are stored as differences have a name of their own, but not in
                    // older sessions.
                    let named = |c: &Column| {
                        name.is_some_and(|name| name == c.stored_name() || name == c.name)
                    };
                    if let Some((_, size)) = columns.iter_mut().find(|(c, _)| named(c)) {
                        let bytes = u64::try_from(chunk.compressed_size()).unwrap_or(0);
                        size.bytes += bytes;
                        size.encoded_bytes += u64::try_from(chunk.uncompressed_size()).unwrap_or(0);
                        rest.bytes = rest.bytes.saturating_sub(bytes);
                    }
                }
            }
            let mut columns: Vec<_> = columns.into_iter().map(|(_, size)| size).collect();
            columns.push(rest);
            columns.sort_by_key(|c| std::cmp::Reverse(c.bytes));
            sizes.extend(columns);
        }
        sizes.extend(SOURCES.iter().map(|source| ColumnSize {
            table: source.file.into(),
            column: "",
            rows: self.rows(source.table),
            bytes: fs::symlink_metadata(self.dir().join(source.file)).map_or(0, |m| m.len()),
            encoded_bytes: 0,
        }));
        sizes.extend(self.own_tables().iter().map(|own| ColumnSize {
            table: own.name.clone().into(),
            column: "",
            rows: own.rows,
            bytes: own.bytes,
            encoded_bytes: 0,
        }));
        Ok(sizes)
    }
}
