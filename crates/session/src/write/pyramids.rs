//! The pyramids that a recorder keeps.

use fathom_model::Batch;
use fathom_model::tables::{self, Table};
use fathom_pyramid::file::Appender;
use fathom_pyramid::{Builder, SOURCES, Segment, Source};

use crate::error::SessionError;
use crate::format::layout;
use crate::write::catalog::index_of;
use crate::write::shared::Shared;

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
        let table = tables::table(self.source.table).and_then(index_of);
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
                // Frees the space; the file has no reader.
                let _ = dir.remove(layout::PYRAMID_TEMPORARY);
                Err(SessionError::io("write", &temporary)(e))
            }
        }
    }
}
