//! Rows that are added to a closed session, as an import does.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use fathom_model::Batch;
use fathom_model::meta::{SessionMeta, State};
use fathom_model::tables::Table;

use crate::disk::dir::Dir;
use crate::error::SessionError;
use crate::format::codec::encode::Encoder;
use crate::format::codec::{GROUP_BYTES, GROUP_ROWS};
use crate::format::layout::{PartInfo, PartRange};
use crate::format::lock::RecorderLock;
use crate::format::part::{self, PartWriter};
use crate::format::schema::{self, TableSchema};
use crate::maintain::compact;
use crate::read::session::Session;
use crate::write::storage::Storage;

/// Adds rows to a table with a key of a closed session: of rows with one key the last one counts.
/// Readers see all of them or none. Without [`Addition::finish`] the session stays as it was.
pub struct Addition {
    storage: Storage,
    meta: SessionMeta,
    schema: TableSchema,
    parts: Vec<PartInfo>,
    range: PartRange,
    temporary: PathBuf,
    encoder: Encoder,
    writer: Option<PartWriter<BufWriter<File>>>,
    published: bool,
    _lock: RecorderLock,
}

impl Addition {
    /// Begins to add rows to `table` of the session in `dir`, which nothing else may change
    /// meanwhile.
    ///
    /// # Errors
    /// The errors of [`Session::open`]; [`SessionError::Unfit`] for a session that is not closed or
    /// is damaged, and for a table without a key; [`SessionError::Busy`], [`SessionError::Foreign`],
    /// [`SessionError::Io`].
    pub fn begin(dir: &Path, table: &'static Table) -> Result<Self, SessionError> {
        let folder = Dir::open_own(dir)?;
        let lock = RecorderLock::acquire(&folder)?;
        let session = Session::glance(dir)?;
        let unfit = |reason| SessionError::Unfit {
            path: dir.to_owned(),
            reason,
        };
        let meta = session.meta().clone();
        if meta.state != State::Complete {
            return Err(unfit("its recorder has not closed it"));
        }
        if session.is_damaged() || session.was_rebuilt() {
            return Err(unfit("it is damaged"));
        }
        let mut schemas = schema::all(dir, &meta)?.into_iter();
        let schema = schemas.find(|schema| schema.table.name == table.name);
        let schema = schema.ok_or_else(|| unfit("it has no such table"))?;
        if table.key.is_empty() {
            return Err(unfit("rows of this table cannot be replaced"));
        }
        let mut parts = session.part_infos(table.name).to_vec();
        let storage = Storage::new(folder);
        storage.make_table(table.name)?;
        if parts.is_empty() {
            // A session that is older than the table. New rows are merged with a part before them.
            parts.push(empty_part(&storage, &schema)?);
        }
        let last = parts.last().map_or(0, |part| part.range.last);
        let range = PartRange::single(last.saturating_add(1));
        let (file, temporary) = storage.create_part(table.name, range)?;
        let failed = || SessionError::parquet(&temporary);
        let writer = PartWriter::new(BufWriter::new(file), &schema, &schema.documented);
        let encoder = Encoder::new(table, schema.descr.clone());
        let made = writer
            .and_then(|writer| Ok((writer, encoder?)))
            .map_err(failed());
        let (writer, encoder) = made.inspect_err(|_| storage.give_up(table.name, range))?;
        Ok(Self {
            storage,
            meta,
            schema,
            parts,
            range,
            temporary,
            encoder,
            writer: Some(writer),
            published: false,
            _lock: lock,
        })
    }

    /// The metadata of the session.
    pub fn meta(&self) -> &SessionMeta {
        &self.meta
    }

    /// Adds rows.
    ///
    /// # Errors
    /// [`SessionError::BadBatch`] for a batch of another table, [`SessionError::Parquet`] when they
    /// cannot be written.
    pub fn push(&mut self, batch: &Batch) -> Result<(), SessionError> {
        if batch.table.name != self.schema.table.name {
            return Err(SessionError::BadBatch {
                table: self.schema.table.name,
                reason: format!("it is of table {}", batch.table.name),
            });
        }
        let failed = || SessionError::parquet(&self.temporary);
        self.encoder.push(batch).map_err(failed())?;
        if self.encoder.rows() >= GROUP_ROWS || self.encoder.bytes() >= GROUP_BYTES {
            self.end_group()?;
        }
        Ok(())
    }

    fn end_group(&mut self) -> Result<(), SessionError> {
        let failed = || SessionError::parquet(&self.temporary);
        let group = self.encoder.finish().map_err(failed())?;
        match &mut self.writer {
            Some(writer) => writer.append(group).map_err(failed()),
            None => Ok(()),
        }
    }

    /// Publishes the rows. Returns the number of rows that the table has now.
    ///
    /// # Errors
    /// [`SessionError::Io`] and [`SessionError::Parquet`]. If the rows have become a part before,
    /// readers see them, and `fathom repair` completes the work.
    pub fn finish(mut self) -> Result<u64, SessionError> {
        if self.encoder.rows() > 0 {
            self.end_group()?;
        }
        let Some(writer) = self.writer.take() else {
            return Ok(0);
        };
        let file = writer
            .finish()
            .map_err(SessionError::parquet(&self.temporary))?;
        let failed = SessionError::io("write", &self.temporary);
        let file = file
            .into_inner()
            .map_err(|e| std::io::Error::from(e.error().kind()))
            .and_then(|file| file.sync_all().map(|()| file));
        let bytes = file
            .and_then(|file| Ok(file.metadata()?.len()))
            .map_err(failed)?;
        let name = self.schema.table.name;
        self.storage.publish(name, self.range)?;
        self.published = true;
        self.storage.sync_table(name)?;
        let range = self.range;
        self.parts.push(PartInfo {
            range,
            // Counted by the merge, which every table with a key has.
            rows: 0,
            bytes,
        });
        let go_on = AtomicBool::new(false);
        let merged = compact::merge(&self.storage, &self.schema, &self.parts, &go_on, true)?;
        let rows = merged.map_or(0, |part| part.rows);
        self.meta.rows.insert(name.to_owned(), rows);
        self.storage.write_meta(&self.meta, true)?;
        Ok(rows)
    }
}

fn empty_part(storage: &Storage, schema: &TableSchema) -> Result<PartInfo, SessionError> {
    let (name, range) = (schema.table.name, PartRange::single(0));
    let bytes = part::empty(schema).map_err(SessionError::parquet(&storage.part(name, range)))?;
    storage.write_part(name, range, &bytes)?;
    Ok(PartInfo {
        range,
        rows: 0,
        bytes: bytes.len() as u64,
    })
}

impl Drop for Addition {
    fn drop(&mut self) {
        if !self.published {
            self.storage.give_up(self.schema.table.name, self.range);
        }
    }
}
