//! What the threads of a recorder share.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use fathom_model::meta::{Counts, SessionMeta, Totals};
use fathom_model::tables::{FAULTS, SYSCALLS, TABLES, Table, WRITEBACK};

use crate::catalog::{Catalog, lock};
use crate::error::SessionError;
use crate::queue::Queue;
use crate::schema::TableSchema;
use crate::storage::Storage;

/// State of one recording.
pub(crate) struct Shared {
    pub(crate) storage: Storage,
    /// In the order of [`TABLES`].
    pub(crate) schemas: Vec<TableSchema>,
    pub(crate) catalog: Catalog,
    pub(crate) queue: Queue,
    /// Rows of table `syscalls` that could not be written.
    pub(crate) lost: AtomicU64,
    /// The same for tables `faults` and `writeback`.
    pub(crate) lost_faults: AtomicU64,
    pub(crate) lost_writeback: AtomicU64,
    /// Ends the compactor.
    pub(crate) stop: AtomicBool,
    meta: Mutex<Meta>,
    last_error: Mutex<Option<String>>,
}

#[derive(Clone)]
struct Meta {
    /// As the recorder knows it.
    meta: SessionMeta,
    /// Totals that `session.json` has.
    written: Option<Totals>,
}

impl Shared {
    pub(crate) fn new(
        storage: Storage,
        schemas: Vec<TableSchema>,
        meta: SessionMeta,
        queue_bytes: usize,
    ) -> Self {
        Self {
            storage,
            schemas,
            catalog: Catalog::new(),
            queue: Queue::new(queue_bytes),
            lost: AtomicU64::new(0),
            lost_faults: AtomicU64::new(0),
            lost_writeback: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            meta: Mutex::new(Meta {
                meta,
                written: None,
            }),
            last_error: Mutex::default(),
        }
    }

    /// Keeps an error for the status line and the end.
    pub(crate) fn note(&self, error: &SessionError) {
        *lock(&self.last_error) = Some(error.to_string());
    }

    pub(crate) fn last_error(&self) -> Option<String> {
        lock(&self.last_error).clone()
    }

    pub(crate) fn set_totals(&self, totals: Totals) {
        lock(&self.meta).meta.totals = totals;
    }

    /// Counts of the recorder with those of the writer.
    pub(crate) fn complete_totals(&self, totals: &Totals) -> Totals {
        let stored = |table| index_of(table).map_or(0, |i| self.catalog.table(i).rows());
        let counts = |counts: &Counts, table, lost: &AtomicU64| Counts {
            seen: counts.seen,
            stored: stored(table),
            lost: counts.lost + lost.load(Ordering::Relaxed),
        };
        Totals {
            stored: stored(&SYSCALLS),
            lost: totals.lost + self.lost.load(Ordering::Relaxed),
            faults: counts(&totals.faults, &FAULTS, &self.lost_faults),
            writeback: counts(&totals.writeback, &WRITEBACK, &self.lost_writeback),
            ..totals.clone()
        }
    }

    /// Writes `session.json` if the totals have changed. The reserve pays on a
    /// full disk: what it gives comes back when the old file is replaced.
    pub(crate) fn write_meta_if_changed(&self) {
        let mut meta = lock(&self.meta).clone();
        meta.meta.totals = self.complete_totals(&meta.meta.totals);
        if meta.written.as_ref() == Some(&meta.meta.totals) {
            return;
        }
        match self
            .storage
            .with_reserve(|| self.storage.write_meta(&meta.meta, false))
        {
            Ok(()) => lock(&self.meta).written = Some(meta.meta.totals),
            Err(e) => self.note(&e),
        }
    }
}

/// Place of `table` in [`TABLES`].
pub(crate) fn index_of(table: &Table) -> Option<usize> {
    TABLES.iter().position(|t| t.name == table.name)
}
