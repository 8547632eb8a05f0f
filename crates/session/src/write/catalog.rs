//! The parts that a recorder has written, shared between its threads.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

use fathom_model::tables::{TABLES, Table};

use crate::format::layout::PartInfo;
use crate::threads::lock;

#[derive(Debug, Default)]
pub(crate) struct TableParts {
    /// In order.
    pub(crate) parts: Vec<PartInfo>,
    /// Rows that could not be written, table `syscalls` aside.
    pub(crate) dropped: u64,
    /// Rows in parts that were dropped again, as only the latest are kept.
    pub(crate) expired: u64,
    /// Of the parts, by their last number. Kept for a ring only.
    pub(crate) times: BTreeMap<u64, PartTimes>,
}

/// When the rows of a part came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PartTimes {
    /// When the first part was written that went into it.
    pub(crate) first: Instant,
    /// When the last one was.
    pub(crate) last: Instant,
    /// End of the latest request that had come before the first row, CLOCK_MONOTONIC
    /// nanoseconds.
    pub(crate) started_at_ns: i64,
    /// End of the latest request that had come by then, CLOCK_MONOTONIC
    /// nanoseconds.
    pub(crate) ended_at_ns: i64,
}

impl TableParts {
    pub(crate) fn next(&self) -> u64 {
        self.parts.last().map_or(0, |p| p.range.last + 1)
    }

    pub(crate) fn rows(&self) -> u64 {
        self.parts.iter().map(|p| p.rows).sum()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.parts.iter().map(|p| p.bytes).sum()
    }

    /// Puts `merged` in the place of the parts that it was merged from.
    pub(crate) fn replace(&mut self, merged: PartInfo) {
        let first = self.parts.iter().find(|p| merged.range.contains(&p.range));
        let first = first.and_then(|p| self.times.get(&p.range.last)).copied();
        if let (Some(first), Some(last)) = (first, self.times.get_mut(&merged.range.last)) {
            last.first = first.first;
            last.started_at_ns = first.started_at_ns;
        }
        let (from, to) = (merged.range.first, merged.range.last);
        self.times.retain(|last, _| !(from..to).contains(last));
        self.parts.retain(|p| !merged.range.contains(&p.range));
        let at = self
            .parts
            .partition_point(|p| p.range.first < merged.range.first);
        self.parts.insert(at, merged);
    }
}

/// The parts of all tables, in the order of [`TABLES`].
#[derive(Debug)]
pub(crate) struct Catalog(Vec<Mutex<TableParts>>);

impl Catalog {
    pub(crate) fn new() -> Self {
        Self(TABLES.iter().map(|_| Mutex::default()).collect())
    }

    /// The parts of table `index`, which must be one of [`TABLES`].
    pub(crate) fn table(&self, index: usize) -> MutexGuard<'_, TableParts> {
        lock(&self.0[index])
    }
}

/// Place of `table` in [`TABLES`].
pub(crate) fn index_of(table: &Table) -> Option<usize> {
    TABLES.iter().position(|t| t.name == table.name)
}
