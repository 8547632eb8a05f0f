//! Writing a session: the threads of a recorder and what they hand on.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Instant;

use fathom_model::Batch;
use fathom_model::meta::{Save, SessionMeta, State, Totals};
use fathom_model::tables::{SCHEMA_VERSION, TABLES, Table};

use rustix::thread::Pid;

use crate::disk::owner::Access;
use crate::error::SessionError;
use crate::format::codec::encode;
use crate::format::layout::{PartInfo, PartRange};
use crate::format::lock::RecorderLock;
use crate::format::part;
use crate::format::schema::{self, TableSchema};
use crate::maintain::compactor;
use crate::threads::{lock, spawn, spawn_known};
use crate::write::catalog::PartTimes;
use crate::write::options::WriterOptions;
use crate::write::queue::SaveRequest;
use crate::write::shared::Shared;
use crate::write::storage::Storage;
use crate::write::worker::Worker;
use crate::write::{create, flush};

/// The state on disk of one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableStats {
    /// The table.
    pub table: &'static str,
    /// Rows written.
    pub rows: u64,
    /// Parts that they are in.
    pub parts: usize,
    /// Size of the parts.
    pub bytes: u64,
    /// Rows that could not be written. Rows of table `syscalls` are in table `losses` instead.
    pub dropped: u64,
    /// Rows that were written and dropped again, as only the latest are kept.
    pub expired: u64,
}

/// How a recording is doing.
#[derive(Clone, Debug)]
pub struct Stats {
    /// One entry per table, in the order of [`TABLES`].
    pub tables: Vec<TableStats>,
    /// Size of all parts.
    pub bytes_on_disk: u64,
    /// Memory of the batches that wait for the encoder.
    pub queue_bytes: usize,
    /// Most that it may be.
    pub queue_capacity: usize,
    /// Calls that could not be written and are counted in table `losses`.
    pub lost: u64,
    /// The last error that did not end the recording.
    pub last_error: Option<String>,
}

/// How a recording ended.
#[derive(Clone, Debug)]
pub struct Finished {
    /// Calls stored.
    pub rows: u64,
    /// Size of all parts.
    pub bytes_on_disk: u64,
    /// One entry per table, in the order of [`TABLES`].
    pub tables: Vec<TableStats>,
    /// As in `session.json`.
    pub totals: Totals,
    /// The copies that were made, or could not be, the latest last.
    pub saves: Vec<Save>,
    /// The last error that did not end the recording.
    pub last_error: Option<String>,
}

/// Writes a session: a thread encodes and writes what is appended, another
/// merges small parts.
///
/// Memory is bounded whatever the rate: [`WriterOptions::queue_bytes`] and one
/// batch for what waits, at most 64 MiB and one batch for what is encoded, the
/// same again while it becomes a part, 8 MiB of small parts that wait for room
/// on a full disk, and about 64 MiB for a merge.
///
/// Dropped without [`SessionWriter::finish`], all that was appended is still
/// written, and the session stays in state `recording`.
pub struct SessionWriter {
    shared: Arc<Shared>,
    encoder: Option<JoinHandle<Result<(), SessionError>>>,
    compactor: Option<JoinHandle<()>>,
    durable: Option<JoinHandle<()>>,
    threads: Vec<i32>,
    _lock: RecorderLock,
}

impl SessionWriter {
    /// Begins a session in `dir`, which is created; its parent must exist. Under sudo the session
    /// belongs to the user who called that.
    ///
    /// # Errors
    /// [`SessionError::Exists`] when something is in `dir` and
    /// `options.force` is not set, [`SessionError::NotReplaceable`] when it is
    /// set but that is no session, [`SessionError::Busy`] when another recorder
    /// writes there, [`SessionError::Foreign`] when it is there and another user could change it,
    /// [`SessionError::Io`].
    pub fn create(
        dir: &Path,
        mut meta: SessionMeta,
        options: WriterOptions,
    ) -> Result<Self, SessionError> {
        meta.state = State::Recording;
        // A capture that is replayed may be older than its session.
        meta.schema_version = SCHEMA_VERSION;
        let schemas = schema::all(dir, &meta)?;
        let access = Access::new(options.share);
        let (folder, recorder) = create::prepare(dir, options.force, access)?;
        let storage = Storage::new(folder);
        storage.write_meta(&meta, false)?;
        let shared = Arc::new(Shared::new(storage, schemas, meta, options.queue_bytes));
        for (i, schema) in shared.schemas.iter().enumerate() {
            first_part(&shared, i, schema)?;
        }
        if let Err(e) = shared.storage.fill_reserve() {
            shared.note(&e);
        }
        let (durable, parts) = if options.durable {
            let (to, parts) = mpsc::channel();
            let shared = shared.clone();
            let thread = spawn("fathom-flush", dir, move || flush::run(&shared, &parts))?;
            (Some(thread), Some(to))
        } else {
            (None, None)
        };
        let worker = Worker::new(shared.clone(), &options, parts)?;
        let (encoder, encodes) = spawn_known("fathom-encode", dir, move || worker.run())?;
        let (compactor, compacts) = {
            let shared = shared.clone();
            spawn_known("fathom-compact", dir, move || {
                compactor::run(&shared, options.compact, options.compact_interval)
            })?
        };
        *lock(&shared.compactor) = Some(compactor.thread().clone());
        Ok(Self {
            shared,
            encoder: Some(encoder),
            compactor: Some(compactor),
            durable,
            threads: [encodes, compacts]
                .into_iter()
                .flatten()
                .map(Pid::as_raw_pid)
                .collect(),
            _lock: recorder,
        })
    }

    /// Hands over rows to be written; waits while the queue is full.
    ///
    /// # Errors
    /// [`SessionError::BadBatch`]; [`SessionError::Stopped`] if the encoder has ended. A full disk
    /// is not an error: the rows are counted as lost, see [`SessionWriter::stats`].
    pub fn append(&self, batch: Batch) -> Result<(), SessionError> {
        check(&batch)?;
        let pushed = self.shared.queue.push(batch);
        pushed.map_err(|reason| self.stopped(reason))
    }

    fn stopped(&self, reason: String) -> SessionError {
        SessionError::Stopped {
            path: self.shared.storage.dir().to_owned(),
            reason,
        }
    }

    /// The kernel's ids of the threads that encode and merge.
    pub fn threads(&self) -> &[i32] {
        &self.threads
    }

    /// Requests a snapshot of everything appended so far; [`SessionWriter::saves`] has the result.
    pub fn save(&self, request: SaveRequest) {
        self.shared.queue.push_save(request);
    }

    /// The copies that were made, or could not be, the latest last.
    pub fn saves(&self) -> Vec<Save> {
        self.shared.meta().history.saves
    }

    /// How the recording is doing.
    pub fn stats(&self) -> Stats {
        let tables = self.tables();
        Stats {
            bytes_on_disk: tables.iter().map(|t| t.bytes).sum(),
            tables,
            queue_bytes: self.shared.queue.bytes(),
            queue_capacity: self.shared.queue.capacity(),
            lost: self.shared.lost.load(Ordering::Relaxed),
            last_error: self.shared.last_error(),
        }
    }

    fn tables(&self) -> Vec<TableStats> {
        let stats = |(i, table): (usize, &&'static Table)| {
            let parts = self.shared.catalog.table(i);
            TableStats {
                table: table.name,
                rows: parts.rows(),
                parts: parts.parts.len(),
                bytes: parts.bytes(),
                dropped: parts.dropped,
                expired: parts.expired,
            }
        };
        TABLES.iter().enumerate().map(stats).collect()
    }

    /// Sets the counts so far; they get into `session.json` within about a second. `stored` is
    /// filled in, and calls that could not be written are added to `lost`.
    pub fn update_totals(&self, totals: Totals) {
        self.shared.set_totals(totals);
    }

    /// Writes what is left, merges small parts, and closes the session with
    /// `meta`, whose totals are completed as by
    /// [`SessionWriter::update_totals`].
    ///
    /// # Errors
    /// [`SessionError::Stopped`] if the encoder ended early; [`SessionError::Io`] if `session.json`
    /// could not be written. Everything written before stays readable.
    pub fn finish(self, meta: SessionMeta) -> Result<Finished, SessionError> {
        self.finish_with(meta, |_| {})
    }

    /// Like [`SessionWriter::finish`]; `measured` puts into the metadata what is known only when
    /// everything else is done.
    ///
    /// # Errors
    /// The errors of [`SessionWriter::finish`].
    pub fn finish_with(
        mut self,
        mut meta: SessionMeta,
        measured: impl FnOnce(&mut SessionMeta),
    ) -> Result<Finished, SessionError> {
        self.stop()?;
        // Merged or not, the rows are there: no reason to fail.
        if let Err(e) = compactor::merge_all(&self.shared) {
            self.shared.note(&e);
        }
        meta.state = State::Complete;
        // A capture contains the version of the recorder that made it.
        meta.schema_version = SCHEMA_VERSION;
        meta.history = self.shared.meta().history;
        meta.totals = self.shared.complete_totals(&meta.totals);
        meta.rows = self
            .tables()
            .into_iter()
            .map(|table| (table.table.to_owned(), table.rows))
            .collect();
        measured(&mut meta);
        let storage = &self.shared.storage;
        self.shared
            .in_turn(|| storage.with_reserve(0, || storage.write_meta(&meta, true)))?;
        storage.remove_reserve();
        let tables = self.tables();
        Ok(Finished {
            rows: meta.totals.stored,
            bytes_on_disk: tables.iter().map(|t| t.bytes).sum(),
            tables,
            totals: meta.totals,
            saves: meta.history.saves,
            last_error: self.shared.last_error(),
        })
    }

    /// Ends both threads; all that was appended is written then.
    fn stop(&mut self) -> Result<(), SessionError> {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.shared.queue.close();
        let result = self.join();
        // Requests that came too late for the compactor.
        let copies = compactor::link_saves(&self.shared);
        self.shared.stop.store(false, Ordering::Relaxed);
        for copy in copies {
            self.shared.add_save(copy.close(&self.shared.schemas));
        }
        result
    }

    fn join(&mut self) -> Result<(), SessionError> {
        if let Some(compactor) = self.compactor.take() {
            compactor.thread().unpark();
            // It has nothing to tell; a panic leaves parts that are not merged.
            let _ = compactor.join();
        }
        let result = match self.encoder.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            Some(Err(_)) => Err(self.stopped("its encoder has panicked".to_owned())),
            None => Ok(()),
        };
        if let Some(durable) = self.durable.take() {
            // The encoder's end of its queue is gone: it flushes what is left.
            let _ = durable.join();
        }
        result
    }
}

impl Drop for SessionWriter {
    fn drop(&mut self) {
        if self.encoder.is_some() {
            // `note` has kept the error; there is no caller left to return it to.
            //
            let _ = self.stop();
            self.shared.write_meta_if_changed();
            self.shared.storage.remove_reserve();
        }
    }
}

fn check(batch: &Batch) -> Result<(), SessionError> {
    encode::check(batch).map_err(|reason| SessionError::BadBatch {
        table: batch.table.name,
        reason,
    })
}

/// Makes the folder of a table and an empty part in it, so that readers find
/// the columns whether or not there are rows.
fn first_part(shared: &Shared, i: usize, schema: &TableSchema) -> Result<(), SessionError> {
    let dir = shared.storage.table_dir(schema.table.name);
    shared.storage.make_table(schema.table.name)?;
    let bytes = part::empty(schema).map_err(SessionError::parquet(&dir))?;
    let range = PartRange::single(0);
    shared
        .storage
        .write_part(schema.table.name, range, &bytes)?;
    let info = PartInfo {
        range,
        rows: 0,
        bytes: bytes.len() as u64,
    };
    let mut table = shared.catalog.table(i);
    if shared.keep.is_some() {
        let now = Instant::now();
        let times = PartTimes {
            first: now,
            last: now,
            started_at_ns: 0,
            ended_at_ns: 0,
        };
        table.times.insert(range.last, times);
    }
    table.parts.push(info);
    Ok(())
}
