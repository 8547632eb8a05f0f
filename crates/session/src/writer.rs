//! Writing a session.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use fathom_model::Batch;
use fathom_model::meta::{Save, SessionMeta, State, Totals};
use fathom_model::tables::{SCHEMA_VERSION, TABLES};

use crate::catalog::{PartInfo, PartTimes, lock};
use crate::compact;
use crate::create;
use crate::durable;
use crate::encode;
use crate::error::SessionError;
use crate::layout::PartRange;
use crate::lock::RecorderLock;
use crate::owner::{Access, Share};
use crate::part;
use crate::queue::Refused;
use crate::rebuild;
use crate::ring;
use crate::save::{self, SaveRequest};
use crate::schema::TableSchema;
use crate::shared::Shared;
use crate::storage::Storage;
use crate::worker::Worker;

/// How a session is written.
#[derive(Clone, Debug)]
pub struct WriterOptions {
    /// Replace a session that is in the directory already.
    pub force: bool,
    /// Memory of the batches that wait for the encoder, in bytes. When they
    /// take more, [`SessionWriter::append`] waits.
    pub queue_bytes: usize,
    /// Time after which rows are written.
    pub part_interval: Duration,
    /// Rows after which they are written.
    pub part_rows: usize,
    /// Merge parts while recording goes on.
    pub compact: bool,
    /// Keep pyramids.
    pub pyramid: bool,
    /// How often the thread that merges parts, and drops those that are not to be
    /// kept, looks for work.
    pub compact_interval: Duration,
    /// Flush each part to the device once it is written: then a machine that
    /// dies loses what came after the last part, too, and no more.
    pub durable: bool,
    /// Who may read the session besides its owner.
    pub share: Share,
}

impl Default for WriterOptions {
    fn default() -> Self {
        Self {
            force: false,
            queue_bytes: 64 << 20,
            part_interval: Duration::from_millis(500),
            part_rows: compact::GROUP_ROWS,
            compact: true,
            pyramid: true,
            compact_interval: Duration::from_secs(2),
            durable: false,
            share: Share::Private,
        }
    }
}

/// What is on disk of one table.
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
    /// Rows that could not be written. Those of table `syscalls` are not
    /// here but in table `losses`.
    pub dropped: u64,
    /// Rows that were written and dropped again, as only the latest are kept.
    pub expired: u64,
}

/// How a recording is doing.
#[derive(Clone, Debug)]
pub struct Stats {
    /// One entry a table, in the order of [`TABLES`].
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
    /// One entry a table, in the order of [`TABLES`].
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
        let schemas = schemas(dir, &meta)?;
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
            let thread = spawn("fathom-flush", dir, move || durable::run(&shared, &parts))?;
            (Some(thread), Some(to))
        } else {
            (None, None)
        };
        let worker = Worker::new(shared.clone(), &options, parts)?;
        let encoder = spawn("fathom-encode", dir, move || worker.run())?;
        let compactor = {
            let shared = shared.clone();
            spawn("fathom-compact", dir, move || {
                compact_while_recording(&shared, options.compact, options.compact_interval)
            })?
        };
        *lock(&shared.compactor) = Some(compactor.thread().clone());
        Ok(Self {
            shared,
            encoder: Some(encoder),
            compactor: Some(compactor),
            durable,
            _lock: recorder,
        })
    }

    /// Hands over rows to be written; waits while the queue is full.
    ///
    /// # Errors
    /// [`SessionError::BadBatch`]; [`SessionError::Stopped`] when the encoder
    /// has ended. A full disk is no error: the rows are counted as lost, and
    /// [`SessionWriter::stats`] tells.
    pub fn append(&self, batch: Batch) -> Result<(), SessionError> {
        check(&batch)?;
        match self.shared.queue.push(batch, true) {
            Ok(()) | Err(Refused::Full(_)) => Ok(()),
            Err(Refused::Dead(reason)) => Err(self.stopped(reason)),
        }
    }

    /// Like [`SessionWriter::append`], but gives the batch back when the queue
    /// is full.
    ///
    /// # Errors
    /// Those of [`SessionWriter::append`].
    pub fn try_append(&self, batch: Batch) -> Result<Option<Batch>, SessionError> {
        check(&batch)?;
        match self.shared.queue.push(batch, false) {
            Ok(()) => Ok(None),
            Err(Refused::Full(batch)) => Ok(Some(batch)),
            Err(Refused::Dead(reason)) => Err(self.stopped(reason)),
        }
    }

    fn stopped(&self, reason: String) -> SessionError {
        SessionError::Stopped {
            path: self.shared.storage.dir().to_owned(),
            reason,
        }
    }

    /// Asks for a copy of all that was appended so far, as a session of its own;
    /// [`SessionWriter::saves`] tells what became of it.
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
        let stats = |(i, table): (usize, &&'static fathom_model::tables::Table)| {
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

    /// Tells the counts so far; they get into `session.json` within about a
    /// second. `stored` is filled in, and the calls that could not be written
    /// are added to `lost`.
    pub fn update_totals(&self, totals: Totals) {
        self.shared.set_totals(totals);
    }

    /// Writes what is left, merges small parts, and closes the session with
    /// `meta`, whose totals are completed as by
    /// [`SessionWriter::update_totals`].
    ///
    /// # Errors
    /// [`SessionError::Stopped`] when the encoder had ended early;
    /// [`SessionError::Io`] when `session.json` could not be written. What was
    /// written before stays readable.
    pub fn finish(self, meta: SessionMeta) -> Result<Finished, SessionError> {
        self.finish_with(meta, |_| {})
    }

    /// Like [`SessionWriter::finish`]; `measured` puts into the metadata what is known only when
    /// everything else is done.
    ///
    /// # Errors
    /// Those of [`SessionWriter::finish`].
    pub fn finish_with(
        mut self,
        mut meta: SessionMeta,
        measured: impl FnOnce(&mut SessionMeta),
    ) -> Result<Finished, SessionError> {
        self.stop()?;
        // Merged or not, the rows are there: no reason to fail.
        if let Err(e) = compact_all(&self.shared) {
            self.shared.note(&e);
        }
        meta.state = State::Complete;
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
        // Those that were asked for too late for the compactor.
        let copies = link_saves(&self.shared);
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

/// Removes the session in `dir` again, of which nothing was recorded: all that fathom wrote there,
/// and the directory unless something else is in it.
///
/// # Errors
/// [`SessionError::NotReplaceable`], [`SessionError::Busy`], [`SessionError::Foreign`] and
/// [`SessionError::Io`], as when a session is replaced.
pub fn discard(dir: &Path) -> Result<(), SessionError> {
    create::discard(dir)
}

impl Drop for SessionWriter {
    fn drop(&mut self) {
        if self.encoder.is_some() {
            // An error was kept by `note`, and nobody is left to hear it.
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

fn spawn<T: Send + 'static>(
    name: &str,
    dir: &Path,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, SessionError> {
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .map_err(SessionError::io("start a thread for", dir))
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

/// The schemas of all tables, for a session that says `meta` of itself.
pub(crate) fn schemas(dir: &Path, meta: &SessionMeta) -> Result<Vec<TableSchema>, SessionError> {
    let session = rebuild::for_footers(meta);
    let schemas = TABLES.iter().map(|table| TableSchema::new(table, &session));
    schemas
        .collect::<Result<_, _>>()
        .map_err(SessionError::parquet(dir))
}

/// Makes the copies that were asked for, as far as their parts go.
fn link_saves(shared: &Shared) -> Vec<save::Copy> {
    let pending = std::mem::take(&mut *lock(&shared.saves));
    let mut copies = Vec::new();
    for pending in pending {
        match save::link(shared, &pending) {
            Ok(copy) => copies.push(copy),
            Err(e) => shared.add_save(save::outcome(&pending.request, Err(e))),
        }
    }
    copies
}

/// Makes the copies that were asked for, and drops what is not to be kept.
fn save_and_expire(shared: &Arc<Shared>, closing: &mut Vec<JoinHandle<()>>) {
    for copy in link_saves(shared) {
        let owner = shared.clone();
        let close = move || owner.add_save(copy.close(&owner.schemas));
        match spawn("fathom-save", shared.storage.dir(), close) {
            Ok(thread) => closing.push(thread),
            Err(e) => shared.note(&e),
        }
    }
    closing.retain(|thread| !thread.is_finished());
    if let Some(keep) = &shared.keep
        && let Err(e) = ring::expire(shared, keep)
    {
        shared.note(&e);
    }
}

/// Merges parts as they pile up, makes copies that are asked for, and drops what
/// is not to be kept.
fn compact_while_recording(shared: &Arc<Shared>, merges: bool, interval: Duration) {
    let mut failed = vec![!merges; TABLES.len()];
    let mut closing = Vec::new();
    while !shared.stop.load(Ordering::Relaxed) {
        save_and_expire(shared, &mut closing);
        for (i, failed) in failed.iter_mut().enumerate() {
            while !*failed && !shared.stop.load(Ordering::Relaxed) {
                // However many parts there are to merge, these must not wait.
                save_and_expire(shared, &mut closing);
                let parts = {
                    let table = shared.catalog.table(i);
                    let run = match &shared.keep {
                        Some(keep) => ring::plan(TABLES[i], &table, keep),
                        None => compact::plan_background(&table.parts),
                    };
                    run.map(|run| table.parts[run].to_vec())
                };
                let Some(parts) = parts else { break };
                // On the device before the parts go that are.
                if let Err(e) = merge(shared, i, &parts, true) {
                    shared.note(&e);
                    // It would fail again; the end of the recording tries once
                    // more.
                    *failed = !e.is_full();
                    break;
                }
            }
        }
        let due = Instant::now() + interval;
        while !shared.stop.load(Ordering::Relaxed)
            && lock(&shared.saves).is_empty()
            && Instant::now() < due
        {
            thread::park_timeout(due.saturating_duration_since(Instant::now()));
        }
    }
    for thread in closing {
        // What became of a copy it has noted itself.
        let _ = thread.join();
    }
}

/// Merges what is small at the end.
pub(crate) fn compact_all(shared: &Shared) -> Result<(), SessionError> {
    shared.stop.store(false, Ordering::Relaxed);
    let mut failure = None;
    for (i, table) in TABLES.iter().enumerate() {
        let mut from = 0;
        loop {
            let parts = {
                let parts = &shared.catalog.table(i).parts;
                compact::plan_final(table, parts, from).map(|run| (run.start, parts[run].to_vec()))
            };
            let Some((start, parts)) = parts else { break };
            if let Err(e) = merge(shared, i, &parts, true) {
                failure = Some(e);
                break;
            }
            from = start + 1;
        }
    }
    failure.map_or(Ok(()), Err)
}

fn merge(shared: &Shared, i: usize, parts: &[PartInfo], durable: bool) -> Result<(), SessionError> {
    let schema = &shared.schemas[i];
    let merged = compact::merge(&shared.storage, schema, parts, &shared.stop, durable)?;
    if let Some(merged) = merged {
        shared.catalog.table(i).replace(merged);
    }
    Ok(())
}
