//! Reading a table a batch of rows at a time, at the reader's own pace.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use fathom_model::Batch;
use fathom_model::tables::Table;
use parquet::errors::ParquetError;
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::SerializedFileReader;

use crate::disk::dir::open_regular;
use crate::error::SessionError;
use crate::format::codec::clusters;
use crate::format::codec::decode::RowGroupDecoder;
use crate::read::session::Session;

/// The rows of a table, a batch at a time, in the order of [`Session::batches`].
pub struct Batches<'a> {
    table: &'static Table,
    columns: Option<&'a [&'a str]>,
    parts: std::vec::IntoIter<PathBuf>,
    part: Option<Part>,
}

/// A part that is being read.
struct Part {
    path: PathBuf,
    reader: SerializedFileReader<File>,
    group: usize,
    decoder: Option<RowGroupDecoder>,
    /// Whether batches are whole row groups, whose rows lie together by something.
    clustered: bool,
}

impl std::fmt::Debug for Batches<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batches")
            .field("table", &self.table.name)
            .field("part", &self.part.as_ref().map(|part| &part.path))
            .finish()
    }
}

impl Session {
    /// All rows of a table, in the order in which they were written, in batches of bounded size;
    /// calls in the order in which they ended, if the columns `ts_ns` and `dur_ns` are read. With
    /// `columns`, only these are read and the others are empty. For tables with a key, all versions
    /// of a row are returned, the valid one last.
    ///
    /// An item is [`SessionError::Io`] or [`SessionError::Parquet`] when a part cannot
    /// be read to its end; nothing comes behind it.
    pub fn batches<'a>(
        &self,
        table: &'static Table,
        columns: Option<&'a [&'a str]>,
    ) -> Batches<'a> {
        Batches {
            table,
            columns,
            parts: self.parts(table.name).into_iter(),
            part: None,
        }
    }
}

impl Batches<'_> {
    fn advance(&mut self) -> Result<Option<Batch>, SessionError> {
        loop {
            let Some(part) = &mut self.part else {
                let Some(path) = self.parts.next() else {
                    return Ok(None);
                };
                let file = open_regular(&path).map_err(SessionError::io("open", &path))?;
                let reader = guarded(|| SerializedFileReader::new(file))
                    .map_err(SessionError::parquet(&path))?;
                self.part = Some(Part {
                    path,
                    reader,
                    group: 0,
                    decoder: None,
                    clustered: false,
                });
                continue;
            };
            if let Some(decoder) = &mut part.decoder {
                let next = guarded(|| decoder.next()).map_err(SessionError::parquet(&part.path))?;
                if let Some(mut batch) = next {
                    if part.clustered {
                        clusters::by_end(&mut batch);
                    }
                    return Ok(Some(batch));
                }
                part.decoder = None;
            }
            if part.group >= part.reader.num_row_groups() {
                self.part = None;
                continue;
            }
            let (table, columns) = (self.table, self.columns);
            let wanted = |i: usize| {
                let name = table.columns.get(i).map(|column| column.name);
                columns.is_none_or(|columns| name.is_some_and(|name| columns.contains(&name)))
            };
            let group = part.group;
            part.group += 1;
            let reader = &part.reader;
            let decoder =
                guarded(|| RowGroupDecoder::select(table, &*reader.get_row_group(group)?, wanted));
            let mut decoder = decoder.map_err(SessionError::parquet(&part.path))?;
            part.clustered = clusters::has(table) && decoder.all_at_once(clusters::MAX_ROWS);
            part.decoder = Some(decoder);
        }
    }
}

impl Iterator for Batches<'_> {
    type Item = Result<Batch, SessionError>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.advance();
        if next.is_err() {
            self.part = None;
            self.parts = Vec::new().into_iter();
        }
        next.transpose()
    }
}

/// Pages may hold anything: a panic in their decoder is an error of the part.
fn guarded<T>(read: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    catch_unwind(AssertUnwindSafe(read))
        .unwrap_or_else(|_| Err(ParquetError::General("its pages are damaged".to_owned())))
}
