//! The pyramid of table `syscalls`: kept while recording, opened with a
//! session, made anew from its parts.

use std::fs::{self, File};
use std::path::Path;

use fathom_model::Batch;
use fathom_model::tables::Table;
use fathom_pyramid::file::Appender;
use fathom_pyramid::{Builder, Cover, Pyramid, PyramidError, SYSCALLS, Segment};
use parquet::file::reader::FileReader;
use parquet::file::serialized_reader::SerializedFileReader;

use crate::decode::RowGroupDecoder;
use crate::error::SessionError;
use crate::layout::{PYRAMID_FILE, PYRAMID_TEMPORARY};
use crate::reader::Session;
use crate::shared::Shared;
use crate::storage::Storage;

/// Rows that are decoded at a time.
const DECODED_ROWS: u64 = crate::decode::BATCH_ROWS as u64;

/// Sums up what is recorded. When it fails the recording goes on without: a
/// reader makes do with the rows.
pub(crate) struct LivePyramid(Option<(Builder, Appender)>);

impl LivePyramid {
    /// Begins the file, if it is `wanted`.
    pub(crate) fn create(shared: &Shared, wanted: bool) -> Self {
        if !wanted {
            return Self(None);
        }
        let create = || {
            let (file, path) = shared.storage.create_beside(PYRAMID_FILE)?;
            Appender::new(file).map_err(SessionError::io("write", &path))
        };
        match create() {
            Ok(file) => Self(Builder::new(&SYSCALLS, 0).map(|builder| (builder, file))),
            Err(e) => {
                shared.note(&e);
                Self(None)
            }
        }
    }

    /// Takes rows on their way into a part.
    pub(crate) fn push(&mut self, batch: &Batch) {
        if let Some((builder, _)) = &mut self.0 {
            builder.push(batch);
        }
    }

    /// Part `number` of `table` is on disk, with all rows that were pushed.
    pub(crate) fn stored(&mut self, shared: &Shared, table: &Table, number: u64, bytes: u64) {
        if table.name == SYSCALLS.table {
            self.append(shared, |builder| builder.part(number, bytes));
        }
    }

    /// Some of the rows that were pushed could not be written; `next` is the
    /// number of the next part.
    pub(crate) fn lost(&mut self, shared: &Shared, table: &Table, next: u64) {
        if table.name == SYSCALLS.table {
            self.append(shared, |builder| builder.discard(next));
        }
    }

    /// The last part was stored.
    pub(crate) fn finish(&mut self, shared: &Shared) {
        self.append(shared, Builder::finish);
    }

    fn append(&mut self, shared: &Shared, close: impl FnOnce(&mut Builder) -> Option<Segment>) {
        if let Some((builder, file)) = &mut self.0
            && let Some(segment) = close(builder)
            && let Err(e) = file.append(&segment)
        {
            let path = shared.storage.dir().join(PYRAMID_FILE);
            shared.note(&SessionError::io("write", &path)(e));
        }
    }
}

impl Session {
    /// The pyramid of table `syscalls` and what of it holds for the parts that
    /// were there when the session was opened or last refreshed. `None` for a
    /// session without one.
    ///
    /// # Errors
    /// When the file cannot be read, is damaged or of a later version: the
    /// parts are all there is then.
    pub fn pyramid(&self) -> Result<Option<(Pyramid, Cover)>, PyramidError> {
        let pyramid = Pyramid::open(&self.dir().join(PYRAMID_FILE))?;
        Ok(pyramid.map(|pyramid| {
            let cover = self.cover(&pyramid);
            (pyramid, cover)
        }))
    }

    /// What of a pyramid holds for the parts of table `syscalls`.
    pub fn cover(&self, pyramid: &Pyramid) -> Cover {
        let parts: Vec<_> = self
            .part_infos(SYSCALLS.table)
            .iter()
            .map(|part| (part.range.first, part.range.last, part.rows))
            .collect();
        pyramid.cover(&parts)
    }

    /// Makes the pyramid of table `syscalls` anew from its parts and replaces
    /// the file. Takes about a second for ten million rows.
    ///
    /// # Errors
    /// [`SessionError::Busy`] while the session is recorded, which keeps its
    /// pyramid itself; [`SessionError::Parquet`], [`SessionError::Io`].
    pub fn build_pyramid(&self) -> Result<(), SessionError> {
        if self.is_live() {
            return Err(SessionError::Busy(self.dir().to_owned()));
        }
        let storage = Storage::new(self.dir());
        let (file, temporary) = storage.create_beside(PYRAMID_TEMPORARY)?;
        let built = self.write_pyramid(file, &temporary).and_then(|()| {
            let path = self.dir().join(PYRAMID_FILE);
            fs::rename(&temporary, &path).map_err(SessionError::io("create", &path))
        });
        if built.is_err() {
            // Gives the room back; nobody reads it.
            let _ = fs::remove_file(&temporary);
        }
        built
    }

    fn write_pyramid(&self, file: File, temporary: &Path) -> Result<(), SessionError> {
        let written = || SessionError::io("write", temporary);
        let mut file = Appender::new(file).map_err(written())?;
        let first = self.part_infos(SYSCALLS.table).first();
        let first = first.map_or(0, |part| part.range.first);
        let Some(mut builder) = Builder::new(&SYSCALLS, first) else {
            return Ok(());
        };
        let columns = builder.columns();
        let table = &fathom_model::tables::SYSCALLS;
        let mut next = first;
        let parts = self.part_infos(SYSCALLS.table).iter();
        for (part, path) in parts.zip(self.parts(SYSCALLS.table)) {
            let failed = || SessionError::parquet(&path);
            if part.range.first != next
                && let Some(segment) = builder.discard(part.range.first)
            {
                file.append(&segment).map_err(written())?;
            }
            next = part.range.last + 1;
            let source = File::open(&path).map_err(SessionError::io("open", &path))?;
            let reader = SerializedFileReader::new(source).map_err(failed())?;
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
