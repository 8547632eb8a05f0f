//! Comparing the rows of a session with their checksums while it is already in use.
//!
//! The footers of a large session are read in a fraction of the time that its rows take. A reader that
//! opens it with [`Session::glance`] may ask its pyramids at once, and waits with [`RowCheck::passed`]
//! before it reads rows.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::available_parallelism;

use fathom_model::tables::{SYSCALLS, TABLES};

use crate::error::SessionError;
use crate::format::checksum::{Checksums, Wrong};
use crate::format::layout::PartRange;
use crate::read::session::Session;
use crate::threads::{lock, spawn};

/// Threads at most.
const MOST_THREADS: usize = 4;
/// A table of at most so many bytes is compared before the larger ones.
const SMALL: u64 = 8 << 20;

/// A comparison of rows that runs in threads of its own.
#[derive(Debug)]
pub struct RowCheck {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    /// Parts to compare, the next one last.
    next: Vec<(&'static str, PartRange)>,
    /// Parts of each table that are not compared yet.
    left: BTreeMap<&'static str, usize>,
    damaged: bool,
}

impl RowCheck {
    /// Begins with the rows of all parts that `session` had when it was opened: tables that take no time first, then
    /// the calls. Each thread calls `first` when it starts.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(session: &Session, first: fn()) -> Result<Arc<Self>, SessionError> {
        let bytes = |table: &str| -> u64 {
            let parts = session.part_infos(table).iter();
            parts.map(|part| part.bytes).sum()
        };
        let mut tables: Vec<&'static str> = TABLES.iter().map(|table| table.name).collect();
        tables.sort_by_key(|table| {
            let bytes = bytes(table);
            (
                bytes > SMALL && *table != SYSCALLS.name,
                bytes > SMALL,
                bytes,
            )
        });
        let parts = |table: &&'static str| {
            let table = *table;
            let parts = session.part_infos(table).iter();
            parts.map(move |part| (table, part.range))
        };
        let mut next: Vec<_> = tables.iter().flat_map(parts).collect();
        next.reverse();
        let mut left = BTreeMap::new();
        for (table, _) in &next {
            *left.entry(*table).or_default() += 1;
        }
        let check = Arc::new(Self {
            state: Mutex::new(State {
                next,
                left,
                damaged: false,
            }),
            changed: Condvar::new(),
        });
        let threads = available_parallelism().map_or(1, |n| n.get().min(MOST_THREADS));
        for thread in 0..threads {
            let (own, of) = (Arc::clone(&check), session.clone());
            let started = spawn("fathom-check", session.dir(), move || {
                first();
                own.work(&of);
            });
            // One is enough.
            if let (Err(error), 0) = (started, thread) {
                return Err(error);
            }
        }
        Ok(check)
    }

    /// Waits until the rows of `tables` are compared; false if a row of any table is known to be
    /// damaged. Then [`Session::open`] leaves out what is.
    pub fn passed(&self, tables: &[&str]) -> bool {
        let mut state = lock(&self.state);
        while !state.damaged && tables.iter().any(|table| state.is_left(table)) {
            let woken = self.changed.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
        !state.damaged
    }

    /// Whether nothing is left to compare.
    pub fn is_over(&self) -> bool {
        let state = lock(&self.state);
        state.damaged || state.left.values().all(|left| *left == 0)
    }

    fn work(&self, session: &Session) {
        loop {
            let next = {
                let mut state = lock(&self.state);
                match state.damaged {
                    true => None,
                    false => state.next.pop(),
                }
            };
            let Some((table, range)) = next else {
                return;
            };
            let whole = is_whole(session, table, range);
            let mut state = lock(&self.state);
            state.damaged |= !whole;
            if let Some(left) = state.left.get_mut(table) {
                *left -= 1;
            }
            drop(state);
            self.changed.notify_all();
        }
    }
}

impl State {
    fn is_left(&self, table: &str) -> bool {
        self.left.get(table).is_some_and(|left| *left > 0)
    }
}

/// Whether a part is as it was written.
fn is_whole(session: &Session, table: &str, range: PartRange) -> bool {
    let check = || -> Result<(), Wrong> {
        let file = session.open_part(table, range);
        let file = file.map_err(|e| Wrong::Unreadable(std::io::Error::other(e)))?;
        let length = file.metadata()?.len();
        Checksums::read(&file, length)?.check_rows(&file)?;
        Ok(())
    };
    check().is_ok()
}
