//! The pyramids of a session: kept while recording, opened with a session, made
//! anew from its parts.

use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;

use fathom_model::Batch;
use fathom_model::tables::{self, Table};
use fathom_pyramid::file::Appender;
use fathom_pyramid::{Builder, Cover, Pyramid, PyramidError, SOURCES, Segment, Source};
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::SerializedFileReader;

use crate::decode::RowGroupDecoder;
use crate::dir::{Dir, open_regular};
use crate::error::SessionError;
use crate::layout;
use crate::reader::Session;
use crate::shared::{self, Shared};
use crate::storage::Storage;

/// Rows that are decoded at a time.
const DECODED_ROWS: u64 = crate::decode::BATCH_ROWS as u64;

/// Sums up what is recorded. When it fails the recording goes on without: a
/// reader makes do with the rows.
pub(crate) struct LivePyramids(Vec<LivePyramid>);

struct LivePyramid {
    source: &'static Source,
    builder: Builder,
    /// Begun with the first segment: many tables stay empty.
    file: Option<Appender>,
    /// Length from which on the segments of a ring's parts that have gone go, too.
    trim_at: u64,
}

/// Shorter files are not trimmed, bytes.
const LEAST_TRIMMED: u64 = 128 << 10;

impl LivePyramids {
    /// Begins them, if they are `wanted`.
    pub(crate) fn new(wanted: bool) -> Self {
        let live = |source: &&'static Source| {
            Some(LivePyramid {
                source,
                builder: Builder::new(source, 0)?,
                file: None,
                trim_at: LEAST_TRIMMED,
            })
        };
        match wanted {
            true => Self(SOURCES.iter().filter_map(live).collect()),
            false => Self(Vec::new()),
        }
    }

    fn of(&mut self, table: &Table) -> Option<&mut LivePyramid> {
        self.0.iter_mut().find(|p| p.source.table == table.name)
    }

    /// Takes rows on their way into a part.
    pub(crate) fn push(&mut self, batch: &Batch) {
        if let Some(pyramid) = self.of(batch.table) {
            pyramid.builder.push(batch);
        }
    }

    /// Part `number` of `table` is on disk, with all rows that were pushed.
    pub(crate) fn stored(&mut self, shared: &Shared, table: &Table, number: u64, bytes: u64) {
        self.append(shared, table, |builder| builder.part(number, bytes));
    }

    /// Some of the rows that were pushed will not be written; `next` is the
    /// number of the next part.
    pub(crate) fn lost(&mut self, shared: &Shared, table: &Table, next: u64) {
        self.append(shared, table, |builder| builder.discard(next));
    }

    /// The last part was stored.
    pub(crate) fn finish(&mut self, shared: &Shared) {
        for table in tables::TABLES {
            self.append(shared, table, Builder::finish);
        }
    }

    fn append(
        &mut self,
        shared: &Shared,
        table: &Table,
        close: impl FnOnce(&mut Builder) -> Option<Segment>,
    ) {
        let Some(at) = self.0.iter().position(|p| p.source.table == table.name) else {
            return;
        };
        if let Some(segment) = close(&mut self.0[at].builder)
            && let Err(e) = self.0[at].append(shared, &segment)
        {
            shared.note(&e);
            // Without a file none of the segments will ever be written.
            if self.0[at].file.is_none() {
                self.0.remove(at);
            }
        }
    }
}

impl LivePyramid {
    fn append(&mut self, shared: &Shared, segment: &Segment) -> Result<(), SessionError> {
        let path = shared.storage.dir().join(self.source.file);
        let failed = || SessionError::io("write", &path);
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                let (file, _) = shared.storage.create_beside(self.source.file)?;
                self.file.insert(Appender::new(file).map_err(failed())?)
            }
        };
        file.append(segment).map_err(failed())?;
        if shared.keep.is_some() && file.bytes() >= self.trim_at {
            self.trim(shared)?;
        }
        Ok(())
    }

    /// Leaves out the segments of parts that are not kept any more.
    fn trim(&mut self, shared: &Shared) -> Result<(), SessionError> {
        let table = tables::table(self.source.table).and_then(shared::index_of);
        let first = table.and_then(|i| {
            let table = shared.catalog.table(i);
            table.parts.first().map(|part| part.range.first)
        });
        let (to, temporary) = shared.storage.create_beside(layout::PYRAMID_TEMPORARY)?;
        let (dir, name) = (shared.storage.folder(), self.source.file);
        let trimmed = dir
            .open_file(name)
            .and_then(|from| Appender::since(&from, to, first.unwrap_or(0)))
            .and_then(|file| dir.rename(layout::PYRAMID_TEMPORARY, name).map(|()| file));
        match trimmed {
            Ok(file) => {
                // So that most of what is written is written once.
                self.trim_at = LEAST_TRIMMED.max(2 * file.bytes());
                self.file = Some(file);
                Ok(())
            }
            Err(e) => {
                self.trim_at *= 2;
                // Gives the room back; nobody reads it.
                let _ = dir.remove(layout::PYRAMID_TEMPORARY);
                Err(SessionError::io("write", &temporary)(e))
            }
        }
    }
}

impl Session {
    /// The pyramid of a table and what of it holds for the parts that were there
    /// when the session was opened or last refreshed. `None` for a session without
    /// one. What is `known` of it from a moment before is not read again.
    ///
    /// # Errors
    /// When the file cannot be read, is damaged or of a later version: the
    /// parts are all there is then.
    pub fn pyramid(
        &self,
        source: &Source,
        known: Option<&Pyramid>,
    ) -> Result<Option<(Pyramid, Cover)>, PyramidError> {
        let file = match Dir::open(self.dir()).and_then(|dir| dir.open_file(source.file)) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Err(e) if e.kind() == ErrorKind::InvalidInput => {
                return Err(PyramidError::Damaged("it is no regular file"));
            }
            result => result?,
        };
        let pyramid = Pyramid::open(file, known)?;
        Ok(pyramid.map(|pyramid| {
            let parts: Vec<_> = self
                .part_infos(source.table)
                .iter()
                .map(|part| (part.range.first, part.range.last, part.rows))
                .collect();
            let cover = pyramid.cover(&parts);
            (pyramid, cover)
        }))
    }

    /// Makes the pyramids of all tables anew from their parts and replaces the
    /// files. Takes about a second for ten million rows.
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
        let (file, temporary) = storage.create_beside(layout::PYRAMID_TEMPORARY)?;
        let built = self.write_pyramid(source, file, &temporary).and_then(|()| {
            dir.rename(layout::PYRAMID_TEMPORARY, source.file)
                .map_err(SessionError::io("create", &path))
        });
        if built.is_err() {
            // Gives the room back; nobody reads it.
            let _ = dir.remove(layout::PYRAMID_TEMPORARY);
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
            // A merged part has the numbers of all its parts: segments may end at
            // any of them, since only those that end with parts are looked at from
            // outside.
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
