//! Comparing the rows of a session with their checksums when they are first asked for.
//!
//! The footers of a large session are read in a fraction of the time that its rows take. A reader that
//! opens it with [`Session::glance`] may ask its pyramids at once, and calls [`RowCheck::passed`] before
//! it reads rows.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, available_parallelism};

use fathom_model::tables::TABLES;

use crate::format::checksum::{Checksums, Wrong};
use crate::format::layout::PartRange;
use crate::read::session::Session;

/// Threads at most.
const MOST_THREADS: usize = 4;

/// The rows of a session, table by table.
#[derive(Debug)]
pub struct RowCheck {
    session: Session,
    /// In the order of [`TABLES`]: whether the rows of a table are as they were written.
    tables: Vec<OnceLock<bool>>,
}

impl RowCheck {
    /// Of the parts that `session` has.
    pub fn new(session: Session) -> Self {
        Self {
            session,
            tables: TABLES.iter().map(|_| OnceLock::new()).collect(),
        }
    }

    /// Compares the rows of `tables`, unless that was done before; false if rows of any table are known to be
    /// damaged. Then [`Session::open`] leaves out what is. Of callers that need the same table, one compares it and
    /// the others wait.
    pub fn passed(&self, tables: &[&str]) -> bool {
        let compare = |(table, whole): (&'static str, &OnceLock<bool>)| {
            *whole.get_or_init(|| self.is_whole(table))
        };
        self.each()
            .filter(|(table, _)| tables.contains(table))
            .all(compare)
            && !self.is_damaged()
    }

    /// Whether all rows were compared, and are as they were written.
    pub fn is_over(&self) -> bool {
        self.tables.iter().all(|whole| whole.get() == Some(&true))
    }

    fn is_damaged(&self) -> bool {
        self.tables.iter().any(|whole| whole.get() == Some(&false))
    }

    fn each(&self) -> impl Iterator<Item = (&'static str, &OnceLock<bool>)> {
        TABLES.iter().map(|table| table.name).zip(&self.tables)
    }

    fn is_whole(&self, table: &str) -> bool {
        let parts = self.session.part_infos(table);
        let next = AtomicUsize::new(0);
        let work = || {
            let mut parts = std::iter::from_fn(|| parts.get(next.fetch_add(1, Ordering::Relaxed)));
            parts.all(|part| part_is_whole(&self.session, table, part.range))
        };
        let threads = available_parallelism().map_or(1, |n| n.get().min(MOST_THREADS));
        thread::scope(|scope| {
            // A thread that cannot be started leaves its parts to the others.
            let others: Vec<_> = (1..threads.min(parts.len()))
                .filter_map(|_| {
                    let builder = thread::Builder::new().name("fathom-check".to_owned());
                    builder.spawn_scoped(scope, work).ok()
                })
                .collect();
            let own = work();
            // All are waited for.
            others
                .into_iter()
                .fold(own, |whole, other| other.join().unwrap_or(false) && whole)
        })
    }
}

/// Whether a part is as it was written.
fn part_is_whole(session: &Session, table: &str, range: PartRange) -> bool {
    let check = || -> Result<(), Wrong> {
        let file = session.open_part(table, range);
        let file = file.map_err(|e| Wrong::Unreadable(std::io::Error::other(e)))?;
        let length = file.metadata()?.len();
        Checksums::read(&file, length)?.check_rows(&file)?;
        Ok(())
    };
    check().is_ok()
}
