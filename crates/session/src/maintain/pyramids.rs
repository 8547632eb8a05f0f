//! The pyramids of a session, made again from its parts.

use std::fs::File;
use std::path::Path;

use fathom_model::tables;
use fathom_pyramid::file::Appender;
use fathom_pyramid::{Builder, SOURCES, Source};
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::SerializedFileReader;

use crate::disk::dir::{Dir, open_regular};
use crate::error::SessionError;
use crate::format::codec::decode::{BATCH_ROWS, RowGroupDecoder};
use crate::format::layout::PYRAMID_TEMPORARY;
use crate::read::session::Session;
use crate::write::storage::Storage;

/// Rows that are decoded at a time.
const DECODED_ROWS: u64 = BATCH_ROWS as u64;

impl Session {
    /// Rebuilds the pyramids of all tables from their parts and replaces the files. Takes about a
    /// second per ten million rows.
    ///
    /// # Errors
    /// [`SessionError::Busy`] while the session is recorded, which keeps its
    /// pyramids itself; [`SessionError::Foreign`] when it is another user's;
    /// [`SessionError::Parquet`], [`SessionError::Io`].
    pub fn build_pyramids(&self) -> Result<(), SessionError> {
        if self.is_live() {
            return Err(SessionError::Busy(self.dir().to_owned()));
        }
        SOURCES
            .iter()
            .try_for_each(|source| self.build_pyramid(source))
    }

    fn build_pyramid(&self, source: &'static Source) -> Result<(), SessionError> {
        let path = self.dir().join(source.file);
        let dir = Dir::open_own(self.dir())?;
        if self.part_infos(source.table).is_empty() {
            return dir
                .remove_if_there(source.file)
                .map_err(SessionError::io("remove", &path));
        }
        let storage = Storage::new(dir.clone());
        let (file, temporary) = storage.create_beside(PYRAMID_TEMPORARY)?;
        let built = self.write_pyramid(source, file, &temporary).and_then(|()| {
            dir.rename(PYRAMID_TEMPORARY, source.file)
                .map_err(SessionError::io("create", &path))
        });
        if built.is_err() {
            // Frees the space; the file has no reader.
            let _ = dir.remove(PYRAMID_TEMPORARY);
        }
        built
    }

    fn write_pyramid(
        &self,
        source: &'static Source,
        file: File,
        temporary: &Path,
    ) -> Result<(), SessionError> {
        let written = || SessionError::io("write", temporary);
        let mut file = Appender::new(file).map_err(written())?;
        let first = self.part_infos(source.table).first();
        let first = first.map_or(0, |part| part.range.first);
        let (Some(mut builder), Some(table)) =
            (Builder::new(source, first), tables::table(source.table))
        else {
            return Ok(());
        };
        let columns = builder.columns();
        let mut next = first;
        let parts = self.part_infos(source.table).iter();
        for (part, path) in parts.zip(self.parts(source.table)) {
            let failed = || SessionError::parquet(&path);
            if part.range.first != next
                && let Some(segment) = builder.discard(part.range.first)
            {
                file.append(&segment).map_err(written())?;
            }
            next = part.range.last + 1;
            let parquet = open_regular(&path).map_err(SessionError::io("open", &path))?;
            let reader = SerializedFileReader::new(parquet).map_err(failed())?;
            // A merged part has the numbers of all its parts: segments may end at any of them,
            // because readers use only segments that end with parts.
            let numbers = part.range.last - part.range.first + 1;
            let (mut number, mut rows) = (part.range.first, 0u64);
            for i in 0..reader.num_row_groups() {
                let group = reader.get_row_group(i).map_err(failed())?;
                let mut decoder = RowGroupDecoder::select(table, &*group, |c| columns.contains(&c))
                    .map_err(failed())?;
                while let Some(batch) = decoder.next().map_err(failed())? {
                    builder.push(&batch);
                    rows += DECODED_ROWS.min(part.rows - rows.min(part.rows));
                    let done = rows as f64 / part.rows.max(1) as f64;
                    let reached = part.range.first + (done * numbers as f64) as u64;
                    if reached > number && reached <= part.range.last {
                        let share = (reached - number) as f64 / numbers as f64;
                        let bytes = (part.bytes as f64 * share) as u64;
                        number = reached;
                        if let Some(segment) = builder.part(reached - 1, bytes) {
                            file.append(&segment).map_err(written())?;
                        }
                    }
                }
            }
            let share = (part.range.last + 1 - number) as f64 / numbers as f64;
            let bytes = (part.bytes as f64 * share) as u64;
            if let Some(segment) = builder.part(part.range.last, bytes) {
                file.append(&segment).map_err(written())?;
            }
        }
        if let Some(segment) = builder.finish() {
            file.append(&segment).map_err(written())?;
        }
        Ok(())
    }
}
