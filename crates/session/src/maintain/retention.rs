//! Recordings that keep their latest rows only.
//!
//! Whole parts go, the oldest first. A part of requests goes when all its rows
//! came longer ago than is to be kept, or when the session has grown too large;
//! the latest part of a table stays until another one follows.
//! The tables that requests refer to follow: the stages before write a row of
//! files and processes again when it was last written [`REFRESH`] ago and a
//! request refers to it, so what is older than that is referred to by nothing
//! that is left. Tables `losses` and `volume_claims` stay whole: they are small, and a claim is written
//! once.

use std::ops::Range;
use std::time::{Duration, Instant};

use fathom_model::meta::Keep;
use fathom_model::tables::{COUNTERS, LOSSES, TABLES, Table, USER_CALL_COUNTERS, VOLUME_CLAIMS};

use crate::error::SessionError;
use crate::format::layout::PartInfo;
use crate::format::layout::PartRange;
use crate::maintain::compact;
use crate::write::catalog::TableParts;
use crate::write::losses;
use crate::write::shared::Shared;

/// A row of files and processes that requests refer to is written again at
/// least so often, in the time of the requests.
pub const REFRESH: Duration = Duration::from_secs(10);
/// How much later than it should a row may come.
const SLACK: Duration = Duration::from_secs(5);
/// A merged part holds at most this share of what is kept, as parts go whole.
const SHARE: u32 = 8;
/// And no more than of so much time when only bytes matter.
const SPAN: Duration = Duration::from_secs(60);

fn expires(table: &Table) -> bool {
    let stay = [&LOSSES, &COUNTERS, &USER_CALL_COUNTERS, &VOLUME_CLAIMS];
    !stay.iter().any(|other| other.name == table.name)
}

/// Parts that are worth merging in a ring: as while recording, but so few that
/// dropping one drops a small share of what is kept. `None`: nothing to do.
pub(crate) fn plan(table: &Table, parts: &TableParts, keep: &Keep) -> Option<Range<usize>> {
    if !expires(table) {
        return compact::plan_background(&parts.parts);
    }
    let time = |part: &PartInfo| parts.times.get(&part.range.last);
    let span = keep.time_ns.map(|ns| Duration::from_nanos(ns) / SHARE);
    let span = span.unwrap_or(SPAN);
    let bytes = keep.bytes.map_or(u64::MAX, |n| n / u64::from(SHARE));
    let mut from = 0;
    while let Some(first) = parts.parts.get(from) {
        let mut sum = 0;
        let fits = |part: &&PartInfo| {
            sum += part.bytes;
            let near = match (time(first), time(part)) {
                (Some(first), Some(last)) => {
                    last.last.saturating_duration_since(first.first) <= span
                }
                _ => true,
            };
            sum <= bytes && near && compact::tier(part) == compact::tier(first)
        };
        let run = parts.parts.iter().skip(from).take(compact::FAN_IN);
        let length = run.take_while(fits).count();
        // The next parts would not fit: the run cannot grow any more.
        let closed = from + length < parts.parts.len();
        if length > 1 && closed {
            return Some(from..from + length);
        }
        from += length.max(1);
    }
    None
}

/// Drops what is not to be kept any longer.
pub(crate) fn expire(shared: &Shared, keep: &Keep) -> Result<(), SessionError> {
    let mut dropped = Dropped::default();
    if let Some(time) = keep.time_ns.map(Duration::from_nanos) {
        for (i, table) in TABLES.iter().enumerate() {
            while losses::counts(table) && oldest(shared, i).is_some_and(|at| at.elapsed() > time) {
                dropped.first_of(shared, i);
            }
        }
    }
    if let Some(limit) = keep.bytes {
        let bytes = || -> u64 {
            let sizes = (0..TABLES.len()).map(|i| shared.catalog.table(i).bytes());
            sizes.sum()
        };
        while bytes() > limit {
            let requests = (0..TABLES.len()).filter(|i| losses::counts(TABLES[*i]));
            let oldest = requests.filter_map(|i| Some((oldest(shared, i)?, i))).min();
            let Some((_, i)) = oldest else { break };
            dropped.first_of(shared, i);
        }
    }
    // Of the oldest request that is left.
    let starts = (0..TABLES.len()).filter(|i| losses::counts(TABLES[*i]));
    let start = |i| {
        let table = shared.catalog.table(i);
        let first = table.parts.iter().find(|part| part.rows > 0)?;
        table
            .times
            .get(&first.range.last)
            .map(|times| times.started_at_ns)
    };
    if let Some(cut) = starts.filter_map(start).min() {
        let back = (REFRESH + SLACK).as_nanos() as i64;
        for (i, table) in TABLES.iter().enumerate() {
            let old = |parts: &TableParts| match parts.parts.as_slice() {
                [first, _, ..] => {
                    let times = parts.times.get(&first.range.last);
                    times.is_none_or(|t| t.ended_at_ns < cut.saturating_sub(back))
                }
                _ => false,
            };
            while expires(table) && !losses::counts(table) && old(&shared.catalog.table(i)) {
                dropped.first_of(shared, i);
            }
        }
    }
    if dropped.parts.is_empty() {
        return Ok(());
    }
    if let Some(ended_at_ns) = dropped.ended_at_ns {
        shared.set_complete_from(ended_at_ns);
    }
    // Record the expiry first: after a kill in between, expired rows do not look lost.
    shared.write_meta_if_changed();
    for (i, range) in dropped.parts {
        shared.storage.remove_part(TABLES[i].name, range)?;
    }
    Ok(())
}

/// Parts that the catalog does not have any more, but the disk.
#[derive(Default)]
struct Dropped {
    /// Place of the table in [`TABLES`], and the part.
    parts: Vec<(usize, PartRange)>,
    /// When the latest request in them ended.
    ended_at_ns: Option<i64>,
}

impl Dropped {
    /// Drops the first part of a table, which has one.
    fn first_of(&mut self, shared: &Shared, i: usize) {
        let mut table = shared.catalog.table(i);
        let part = table.parts.remove(0);
        table.expired += part.rows;
        let times = table.times.remove(&part.range.last);
        if losses::counts(TABLES[i]) && part.rows > 0 {
            self.ended_at_ns = self.ended_at_ns.max(times.map(|t| t.ended_at_ns));
        }
        self.parts.push((i, part.range));
    }
}

/// When the oldest part of a table was written last; `None` for the only part,
/// which stays.
fn oldest(shared: &Shared, i: usize) -> Option<Instant> {
    let table = shared.catalog.table(i);
    let [first, _, ..] = table.parts.as_slice() else {
        return None;
    };
    table.times.get(&first.range.last).map(|t| t.last)
}
