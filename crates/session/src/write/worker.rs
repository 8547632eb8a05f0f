//! The thread that encodes batches and writes parts.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use bytes::Bytes;
use fathom_model::batch::NULL_I64;
use fathom_model::tables::{LOSSES, TABLES};
use fathom_model::{Batch, ColumnData};

use crate::error::SessionError;
use crate::format::codec::GROUP_BYTES;
use crate::format::codec::decode;
use crate::format::layout::PartInfo;
use crate::format::layout::PartRange;
use crate::format::part;
use crate::threads::lock;
use crate::write::catalog::PartTimes;
use crate::write::catalog::index_of;
use crate::write::flush;
use crate::write::gathered::Gathered;
use crate::write::losses::{self, RowCounts, WriteLosses};
use crate::write::options::WriterOptions;
use crate::write::pyramids::LivePyramids;
use crate::write::queue::NextItem;
use crate::write::shared::{PendingSave, Shared};
use crate::write::storage::META_RESERVE;

/// How often `session.json` is written.
const META_INTERVAL: Duration = Duration::from_secs(1);
/// How often losses of this stage are stored while recording goes on.
const LOSS_INTERVAL: Duration = Duration::from_secs(5);
/// How often the reserve is filled up again.
const RESERVE_INTERVAL: Duration = Duration::from_secs(10);
/// Rows that arrive after a pause are written after this fraction of the interval, because rows
/// that follow at once belong in the same part; not later, so that a live view need not wait.
const GATHER: u32 = 10;
/// Most bytes of parts that wait for room on disk.
const MAX_HELD_BYTES: usize = 8 << 20;

/// A part of a small table that could not be written yet.
struct PendingPart {
    bytes: Vec<u8>,
    rows: u64,
}

/// Encodes, writes, and keeps count of what cannot be written.
pub(crate) struct Worker {
    shared: Arc<Shared>,
    interval: Duration,
    part_rows: usize,
    /// The following in the order of [`TABLES`].
    gathered: Vec<Gathered>,
    held: Vec<VecDeque<PendingPart>>,
    held_bytes: usize,
    losses: WriteLosses,
    pyramids: LivePyramids,
    /// When the oldest row that is not written yet came.
    opened: Option<Instant>,
    /// When parts were written last.
    closed: Instant,
    meta_due: Instant,
    losses_due: Instant,
    reserve_due: Instant,
    /// The last part of a table of requests could not be written.
    failing: bool,
    /// End of the latest request that came, CLOCK_MONOTONIC nanoseconds; of a
    /// ring only.
    ended_at_ns: i64,
    /// The same at the time of a table's first row that is not written yet.
    started_at_ns: Vec<i64>,
    /// Takes parts that are to be made durable.
    durable: Option<Sender<flush::Part>>,
}

impl Worker {
    pub(crate) fn new(
        shared: Arc<Shared>,
        options: &WriterOptions,
        durable: Option<Sender<flush::Part>>,
    ) -> Result<Self, SessionError> {
        let gathered = |schema: &crate::format::schema::TableSchema| {
            let dir = shared.storage.table_dir(schema.table.name);
            Gathered::new(schema).map_err(SessionError::parquet(&dir))
        };
        let gathered: Result<Vec<_>, _> = shared.schemas.iter().map(gathered).collect();
        Ok(Self {
            interval: options.part_interval,
            part_rows: options.part_rows.max(1),
            gathered: gathered?,
            held: TABLES.iter().map(|_| VecDeque::new()).collect(),
            held_bytes: 0,
            losses: WriteLosses::default(),
            pyramids: LivePyramids::new(options.pyramid),
            opened: None,
            closed: Instant::now(),
            meta_due: Instant::now(),
            losses_due: Instant::now(),
            reserve_due: Instant::now() + RESERVE_INTERVAL,
            failing: false,
            ended_at_ns: 0,
            started_at_ns: vec![0; TABLES.len()],
            durable,
            shared,
        })
    }

    /// Works until the queue is closed and empty, then writes all that is
    /// left.
    pub(crate) fn run(mut self) -> Result<(), SessionError> {
        let guard = Guard(self.shared.clone());
        let result = self.work();
        if let Err(e) = &result {
            self.shared.note(e);
            self.shared.queue.die(e.to_string());
        }
        drop(guard);
        result
    }

    fn work(&mut self) -> Result<(), SessionError> {
        loop {
            let part_due = self.part_due();
            let deadline = part_due.map_or(self.meta_due, |due| due.min(self.meta_due));
            match self.shared.queue.pop(deadline) {
                NextItem::Batch(batch) => self.push(batch)?,
                NextItem::Save(request) => {
                    self.close_parts()?;
                    // Parts that come later are not of the copy.
                    let tables = 0..TABLES.len();
                    let next = tables.map(|i| self.shared.catalog.table(i).next());
                    let pending = PendingSave {
                        request,
                        next: next.collect(),
                    };
                    lock(&self.shared.saves).push(pending);
                    if let Some(compactor) = &*lock(&self.shared.compactor) {
                        compactor.unpark();
                    }
                }
                NextItem::Nothing => {}
                NextItem::End => break,
            }
            let now = Instant::now();
            if part_due.is_some_and(|due| due <= now) {
                self.close_parts()?;
            }
            if self.meta_due <= now {
                self.every_second(now)?;
            }
        }
        self.end()
    }

    /// When parts are to be written: an interval after the last ones, and a moment after the
    /// first row.
    fn part_due(&self) -> Option<Instant> {
        let opened = self.opened?;
        Some((opened + self.interval / GATHER).max(self.closed + self.interval))
    }

    fn every_second(&mut self, now: Instant) -> Result<(), SessionError> {
        self.meta_due = now + META_INTERVAL;
        self.retry_held(false);
        if self.losses.changed() && self.losses_due <= now {
            self.losses_due = now + LOSS_INTERVAL;
            // With one waiting for room already, the next says it all.
            if index_of(&LOSSES).is_some_and(|i| self.held[i].is_empty()) {
                let batch = self.losses.snapshot();
                self.push(batch)?;
            }
        }
        if self.reserve_due <= now {
            self.reserve_due = now + RESERVE_INTERVAL;
            let shared = &self.shared;
            if !self.failing && !shared.storage.reserve_is_full() {
                // On a disk that is still full this fails, and does not matter.
                let _ = shared.in_turn(|| shared.storage.fill_reserve());
            }
        }
        if self.shared.keep.is_some() {
            self.follow_last_parts()?;
        }
        self.shared.write_meta_if_changed();
        Ok(())
    }

    /// The latest part of a table always stays, so that readers find the columns. So
    /// that its rows can go all the same when no others come, an empty one follows.
    fn follow_last_parts(&mut self) -> Result<(), SessionError> {
        for i in (0..TABLES.len()).filter(|i| losses::counts(TABLES[*i])) {
            let alone = {
                let table = self.shared.catalog.table(i);
                matches!(table.parts.as_slice(), [part] if part.rows > 0)
            };
            if !alone || self.gathered[i].rows() > 0 {
                continue;
            }
            self.started_at_ns[i] = self.ended_at_ns;
            let schema = &self.shared.schemas[i];
            let dir = self.shared.storage.table_dir(schema.table.name);
            let bytes = part::empty(schema).map_err(SessionError::parquet(&dir))?;
            if let Err(e) = self.write(i, &PendingPart { bytes, rows: 0 }) {
                self.shared.note(&e);
            }
        }
        Ok(())
    }

    fn push(&mut self, batch: Batch) -> Result<(), SessionError> {
        let Some(i) = index_of(batch.table).filter(|_| !batch.is_empty()) else {
            return Ok(());
        };
        if self.gathered[i].rows() == 0 {
            self.started_at_ns[i] = self.ended_at_ns;
        }
        if self.shared.keep.is_some() && losses::counts(batch.table) {
            self.ended_at_ns = self.ended_at_ns.max(latest_end(&batch));
        }
        let dir = self.shared.storage.table_dir(batch.table.name);
        self.pyramids.push(&batch);
        self.gathered[i]
            .push(batch)
            .map_err(SessionError::parquet(&dir))?;
        self.opened.get_or_insert_with(Instant::now);
        if self.gathered[i].rows() >= self.part_rows || self.gathered[i].bytes() >= GROUP_BYTES {
            self.close_parts()?;
        }
        Ok(())
    }

    /// Writes all rows that were encoded. The tables that others refer to come
    /// first, so that a reader that sees a call also sees its file; in
    /// [`TABLES`] they come last.
    fn close_parts(&mut self) -> Result<(), SessionError> {
        self.opened = None;
        self.closed = Instant::now();
        for i in (0..TABLES.len()).rev() {
            if self.gathered[i].rows() == 0 {
                continue;
            }
            let shared = self.shared.clone();
            let failed = || SessionError::parquet(&shared.storage.table_dir(TABLES[i].name));
            let rows = self.gathered[i].rows() as u64;
            let groups = self.gathered[i].finish().map_err(failed())?;
            let bytes = part::to_bytes(&shared.schemas[i], groups).map_err(failed())?;
            self.store(i, PendingPart { bytes, rows })?;
        }
        Ok(())
    }

    /// Writes a part of table `i`. If that fails, requests are counted as lost,
    /// and rows of other tables wait.
    fn store(&mut self, i: usize, part: PendingPart) -> Result<(), SessionError> {
        let is_request = losses::counts(TABLES[i]);
        if self.held[i].is_empty() {
            match self.write(i, &part) {
                Ok(()) => {
                    self.failing &= !is_request;
                    return Ok(());
                }
                Err(e) => self.shared.note(&e),
            }
        }
        if is_request {
            self.failing = true;
            return self.lose(i, part);
        }
        if self.held_bytes + part.bytes.len() > MAX_HELD_BYTES {
            let next = {
                let mut table = self.shared.catalog.table(i);
                table.dropped += part.rows;
                table.next()
            };
            self.pyramids.lost(&self.shared, TABLES[i], next);
            return Ok(());
        }
        self.held_bytes += part.bytes.len();
        self.held[i].push_back(part);
        Ok(())
    }

    fn write(&mut self, i: usize, part: &PendingPart) -> Result<(), SessionError> {
        let range = PartRange::single(self.shared.catalog.table(i).next());
        self.shared
            .storage
            .write_part(TABLES[i].name, range, &part.bytes)?;
        if let Some(durable) = &self.durable {
            // When its thread is gone that was said.
            let _ = durable.send((TABLES[i].name, range));
        }
        let bytes = part.bytes.len() as u64;
        let mut table = self.shared.catalog.table(i);
        if self.shared.keep.is_some() {
            let now = Instant::now();
            let times = PartTimes {
                first: now,
                last: now,
                started_at_ns: self.started_at_ns[i],
                ended_at_ns: self.ended_at_ns,
            };
            table.times.insert(range.last, times);
        }
        table.parts.push(PartInfo {
            range,
            rows: part.rows,
            bytes,
        });
        // Which is looked at there, too.
        drop(table);
        self.pyramids
            .stored(&self.shared, TABLES[i], range.last, bytes);
        Ok(())
    }

    /// Counts the requests of a part of table `i` that could not be written.
    fn lose(&mut self, i: usize, part: PendingPart) -> Result<(), SessionError> {
        let next = self.shared.catalog.table(i).next();
        self.pyramids.lost(&self.shared, TABLES[i], next);
        let losses = &mut self.losses;
        decode::for_each_batch(TABLES[i], Bytes::from(part.bytes), |batch| {
            losses.add(batch)
        })
        .map_err(SessionError::parquet(
            &self.shared.storage.table_dir(TABLES[i].name),
        ))?;
        let (shared, counts) = (&self.shared, self.losses.counts());
        shared.lost.store(counts.syscalls, Ordering::Relaxed);
        shared.lost_faults.store(counts.faults, Ordering::Relaxed);
        shared
            .lost_writeback
            .store(counts.writeback, Ordering::Relaxed);
        Ok(())
    }

    /// Tries again to write the parts that wait.
    fn retry_held(&mut self, use_reserve: bool) {
        for i in (0..TABLES.len()).rev() {
            while let Some(part) = self.held[i].pop_front() {
                let written = if use_reserve {
                    let shared = self.shared.clone();
                    let storage = &shared.storage;
                    shared.in_turn(|| storage.with_reserve(META_RESERVE, || self.write(i, &part)))
                } else {
                    self.write(i, &part)
                };
                if let Err(e) = written {
                    self.shared.note(&e);
                    self.held[i].push_front(part);
                    break;
                }
                self.held_bytes -= part.bytes.len();
            }
        }
    }

    fn end(&mut self) -> Result<(), SessionError> {
        self.close_parts()?;
        if self.losses.counts() != RowCounts::default() {
            let batch = self.losses.snapshot();
            self.push(batch)?;
            self.close_parts()?;
        }
        self.retry_held(true);
        self.pyramids.finish(&self.shared);
        for (i, parts) in self.held.iter().enumerate() {
            self.shared.catalog.table(i).dropped += parts.iter().map(|p| p.rows).sum::<u64>();
        }
        Ok(())
    }
}

/// When the last request of a batch ended.
fn latest_end(batch: &Batch) -> i64 {
    let column = |name: &str| {
        let at = batch.table.columns.iter().position(|c| c.name == name)?;
        match batch.columns.get(at)? {
            ColumnData::I64(values) => Some(values),
            _ => None,
        }
    };
    let Some(starts) = column("ts_ns") else {
        return 0;
    };
    let durations = column("dur_ns");
    let ends = starts.iter().enumerate().map(|(row, start)| {
        let duration = durations.and_then(|durations| durations.get(row).copied());
        let duration = duration.filter(|duration| *duration != NULL_I64);
        start.saturating_add(duration.unwrap_or(0))
    });
    ends.max().unwrap_or(0)
}

/// Wakes all threads that wait for the queue, also if the thread panics.
struct Guard(Arc<Shared>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.queue.die("its encoder has ended".to_owned());
    }
}
