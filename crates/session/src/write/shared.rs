//! State shared by the threads of a recorder.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::Thread;

use fathom_model::meta::{Counts, Keep, Save, SessionMeta, Totals};
use fathom_model::tables::{FAULTS, SYSCALLS, WRITEBACK};

use crate::error::SessionError;
use crate::format::schema::TableSchema;
use crate::threads::lock;
use crate::write::catalog::{Catalog, index_of};
use crate::write::queue::{Queue, SaveRequest};
use crate::write::storage::Storage;

/// A copy that the compactor is to make.
pub(crate) struct PendingSave {
    pub(crate) request: SaveRequest,
    /// Number of the first part of each table that is not of the copy.
    pub(crate) next: Vec<u64>,
}

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
    /// How much is kept; `None` for all.
    pub(crate) keep: Option<Keep>,
    /// Snapshots to make; the compactor makes them because only it removes parts.
    pub(crate) saves: Mutex<Vec<PendingSave>>,
    pub(crate) compactor: Mutex<Option<Thread>>,
    meta: Mutex<Meta>,
    /// Held from the look at what `session.json` is to say until it says that, so that an older
    /// state never replaces a newer one; and while the reserve lends room.
    turn: Mutex<()>,
    last_error: Mutex<Option<String>>,
}

#[derive(Clone)]
struct Meta {
    /// As the recorder knows it.
    meta: SessionMeta,
    /// Totals that `session.json` has.
    written: Option<Totals>,
    /// Something else than the totals has changed.
    changed: bool,
}

/// Copies that `session.json` lists at most.
const MAX_SAVES: usize = 100;

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
            keep: meta.history.keep.clone(),
            saves: Mutex::default(),
            compactor: Mutex::default(),
            meta: Mutex::new(Meta {
                meta,
                written: None,
                changed: false,
            }),
            turn: Mutex::default(),
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

    /// The metadata of the session, with the current counts.
    pub(crate) fn meta(&self) -> SessionMeta {
        let mut meta = lock(&self.meta).meta.clone();
        meta.totals = self.complete_totals(&meta.totals);
        meta
    }

    /// Everything that ended by `ended_at_ns` may have been dropped.
    pub(crate) fn set_complete_from(&self, ended_at_ns: i64) {
        let mut meta = lock(&self.meta);
        if let Some(keep) = &mut meta.meta.history.keep {
            keep.complete_from_ns = keep.complete_from_ns.max(Some(ended_at_ns));
        }
        meta.changed = true;
    }

    /// A copy was made, or could not be.
    pub(crate) fn add_save(&self, save: Save) {
        let mut meta = lock(&self.meta);
        let saves = &mut meta.meta.history.saves;
        if saves.len() >= MAX_SAVES {
            saves.remove(0);
        }
        saves.push(save);
        meta.changed = true;
    }

    pub(crate) fn set_totals(&self, totals: Totals) {
        lock(&self.meta).meta.totals = totals;
    }

    /// The counts of the recorder plus the counts of the writer.
    pub(crate) fn complete_totals(&self, totals: &Totals) -> Totals {
        let rows = |table| {
            index_of(table).map_or((0, 0), |i| {
                let parts = self.catalog.table(i);
                (parts.rows(), parts.expired)
            })
        };
        let counts = |counts: &Counts, table, lost: &AtomicU64| {
            let (stored, expired) = rows(table);
            Counts {
                seen: counts.seen,
                stored,
                lost: counts.lost + lost.load(Ordering::Relaxed),
                expired,
                missing: 0,
            }
        };
        let (stored, expired) = rows(&SYSCALLS);
        Totals {
            stored,
            expired,
            lost: totals.lost + self.lost.load(Ordering::Relaxed),
            faults: counts(&totals.faults, &FAULTS, &self.lost_faults),
            writeback: counts(&totals.writeback, &WRITEBACK, &self.lost_writeback),
            ..totals.clone()
        }
    }

    /// Does what `session.json` or the reserve is written in, one thread after the other.
    pub(crate) fn in_turn<T>(&self, work: impl FnOnce() -> T) -> T {
        let _turn = lock(&self.turn);
        work()
    }

    /// Writes `session.json` if what it says has changed. The reserve lends the room on a
    /// full disk: it comes back when the old file is replaced.
    pub(crate) fn write_meta_if_changed(&self) {
        self.in_turn(|| {
            let mut meta = {
                let mut shared = lock(&self.meta);
                let meta = shared.clone();
                shared.changed = false;
                meta
            };
            meta.meta.totals = self.complete_totals(&meta.meta.totals);
            if meta.written.as_ref() == Some(&meta.meta.totals) && !meta.changed {
                return;
            }
            match self
                .storage
                .with_reserve(0, || self.storage.write_meta(&meta.meta, false))
            {
                Ok(()) => lock(&self.meta).written = Some(meta.meta.totals),
                Err(e) => {
                    lock(&self.meta).changed |= meta.changed;
                    self.note(&e);
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;
    use std::{fs, thread};

    use super::*;
    use crate::disk::dir::Dir;
    use crate::format::meta;

    fn shared(dir: &std::path::Path) -> Shared {
        let storage = Storage::new(Dir::open(dir).unwrap());
        Shared::new(storage, Vec::new(), fathom_testkit::meta(), 1 << 10)
    }

    fn seen(seen: u64) -> Totals {
        let totals = Totals::default();
        Totals { seen, ..totals }
    }

    fn said(dir: &std::path::Path) -> u64 {
        let meta = meta::read(&Dir::open(dir).unwrap()).unwrap();
        meta.totals.seen
    }

    #[test]
    fn an_older_state_never_replaces_a_newer_one() {
        let dir = tempfile::tempdir().unwrap();
        let shared = shared(dir.path());
        let (looking, is_looking) = mpsc::channel();
        let (done, is_done) = mpsc::channel();
        thread::scope(|scope| {
            let shared = &shared;
            scope.spawn(move || {
                shared.in_turn(|| {
                    let old = shared.meta();
                    looking.send(()).unwrap();
                    // Long enough for the other thread to write, if it could.
                    let _ = is_done.recv_timeout(Duration::from_millis(300));
                    shared.storage.write_meta(&old, false).unwrap();
                });
            });
            is_looking.recv().unwrap();
            shared.set_totals(seen(2));
            shared.write_meta_if_changed();
            let _ = done.send(());
        });
        assert_eq!(said(dir.path()), 2);
        assert_eq!(shared.last_error(), None);
    }

    #[test]
    fn threads_that_write_at_once_do_not_meet() {
        let dir = tempfile::tempdir().unwrap();
        let shared = shared(dir.path());
        let counter = AtomicU64::new(0);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..300 {
                        shared.set_totals(seen(counter.fetch_add(1, Ordering::Relaxed)));
                        shared.write_meta_if_changed();
                    }
                });
            }
        });
        assert_eq!(shared.last_error(), None);
        assert_eq!(said(dir.path()), shared.meta().totals.seen);
        let left: Vec<_> = fs::read_dir(dir.path()).unwrap().collect();
        assert_eq!(left.len(), 1, "{left:?}");
    }
}
