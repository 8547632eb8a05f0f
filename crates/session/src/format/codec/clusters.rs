//! Rows that lie together in a row group.
//!
//! Calls arrive in the order in which they ended, with all threads interleaved. In each row group
//! fathom groups the calls of a thread, and within it the calls of a kind: adjacent rows are then
//! similar and take 17 % less space. Within a thread and kind the order stays; [`by_end`] restores
//! the order of all.

use std::collections::HashMap;

use fathom_model::batch::{NULL_I64, Null};
use fathom_model::tables::{SYSCALLS, Table};
use fathom_model::{Batch, ColumnData, StrId, StringTable};

/// Most rows of a row group whose order is brought back, which takes all of it in memory: more
/// than merging makes.
pub(crate) const MAX_ROWS: usize = 1 << 18;

/// The columns by which rows are grouped: one of 32-bit numbers and one of texts.
const THREAD: &str = "tid";
const KIND: &str = "syscall";
/// The 64-bit columns whose sum is the end of a row.
const BEGIN: &str = "ts_ns";
const DURATION: &str = "dur_ns";

fn column<'a>(batch: &'a Batch, name: &str) -> Option<&'a ColumnData> {
    let place = batch.table.columns.iter().position(|c| c.name == name)?;
    batch.columns.get(place)
}

/// Whether the rows of a table lie together in large row groups.
pub(crate) fn has(table: &Table) -> bool {
    table.name == SYSCALLS.name
}

/// Rows of a row group that is to be.
pub(crate) struct Clusters {
    rows: Batch,
    /// Memory that they take, about.
    bytes: usize,
}

impl Clusters {
    /// `None` for a table whose rows stay as they come.
    pub(crate) fn new(table: &'static Table) -> Option<Self> {
        has(table).then(|| Self {
            rows: empty(table),
            bytes: 0,
        })
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows.len()
    }

    /// Memory that they take, about.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes + self.rows.strings.bytes()
    }

    /// Adds the rows of a batch with all columns of the table.
    pub(crate) fn push(&mut self, batch: &Batch) {
        let before = self.rows.len();
        // Ids of the batch's texts here, as they come up.
        let mut ids = vec![None; batch.strings.len() + 1];
        let strings = &mut self.rows.strings;
        let mut id_here = |id: &StrId| match ids.get_mut(id.0 as usize) {
            Some(known) if *id != StrId::NULL => {
                *known.get_or_insert_with(|| strings.intern(batch.strings.get(*id)))
            }
            _ => StrId::NULL,
        };
        for (mine, more) in self.rows.columns.iter_mut().zip(&batch.columns) {
            self.bytes += match (mine, more) {
                (ColumnData::I64(mine), ColumnData::I64(more)) => {
                    extend(mine, more.iter().copied(), before, batch.len())
                }
                (ColumnData::I32(mine), ColumnData::I32(more)) => {
                    extend(mine, more.iter().copied(), before, batch.len())
                }
                (ColumnData::Bool(mine), ColumnData::Bool(more)) => {
                    mine.extend_from_slice(more);
                    size_of_val(more.as_slice())
                }
                (ColumnData::Str(mine), ColumnData::Str(more))
                | (ColumnData::Blob(mine), ColumnData::Blob(more)) => {
                    extend(mine, more.iter().map(&mut id_here), before, batch.len())
                }
                (ColumnData::ListI64(mine), ColumnData::ListI64(more)) => {
                    mine.extend_from_slice(more);
                    more.iter().map(|list| size_of_val(list.as_slice())).sum()
                }
                _ => 0,
            };
        }
    }

    /// All rows, grouped by thread and then by kind; none are left.
    pub(crate) fn take(&mut self) -> Batch {
        self.bytes = 0;
        let next = empty(self.rows.table);
        let mut rows = std::mem::replace(&mut self.rows, next);
        group(&mut rows);
        rows
    }
}

/// Adds `more` to a column of which `before` rows are there; the next has `rows`. A column stays
/// empty as long as all its rows are null. The bytes that were added.
fn extend<T: Null + Clone>(
    column: &mut Vec<T>,
    more: impl ExactSizeIterator<Item = T>,
    before: usize,
    rows: usize,
) -> usize {
    let len = column.len();
    if more.len() == 0 {
        if len > 0 {
            column.resize(before + rows, T::NULL);
        }
    } else {
        column.resize(before, T::NULL);
        column.extend(more);
    }
    (column.len() - len) * size_of::<T>()
}

/// Groups rows by thread and then by kind, both in the order in which they appear.
pub(crate) fn group(batch: &mut Batch) {
    let (Some(ColumnData::I32(threads)), Some(ColumnData::Str(kinds))) =
        (column(batch, THREAD), column(batch, KIND))
    else {
        return;
    };
    let mut clusters = Numbers::default();
    let numbers: Vec<u32> = threads
        .iter()
        .zip(kinds)
        .map(|(thread, kind)| clusters.number(*thread, *kind))
        .collect();
    if numbers.is_sorted() {
        return;
    }
    let mut next = clusters.starts();
    let mut order = vec![0; numbers.len()];
    for (row, number) in numbers.iter().enumerate() {
        if let Some(place) = next.get_mut(*number as usize) {
            if let Some(slot) = order.get_mut(*place as usize) {
                *slot = row as u32;
            }
            *place += 1;
        }
    }
    arrange(batch, &order);
}

/// A thread and a kind of call.
type Key = (i32, StrId);

/// Rows that were counted lately, by their low bits; a power of two.
const RECENT: usize = 64;

/// Numbers clusters in the order in which they appear.
struct Numbers {
    numbers: HashMap<Key, u32>,
    recent: [(Key, u32); RECENT],
    /// Rank of the thread and number of rows of each.
    clusters: Vec<(u32, u32)>,
    ranks: HashMap<i32, u32>,
}

impl Default for Numbers {
    fn default() -> Self {
        Self {
            numbers: HashMap::new(),
            recent: [((0, StrId::NULL), u32::MAX); RECENT],
            clusters: Vec::new(),
            ranks: HashMap::new(),
        }
    }
}

impl Numbers {
    #[inline]
    fn number(&mut self, thread: i32, kind: StrId) -> u32 {
        let key = (thread, kind);
        let place = (thread as u32).wrapping_mul(31).wrapping_add(kind.0) as usize % RECENT;
        let number = match self.recent.get(place) {
            Some((known, number)) if *known == key && *number != u32::MAX => *number,
            _ => self.look_up(key, place),
        };
        if let Some((_, rows)) = self.clusters.get_mut(number as usize) {
            *rows += 1;
        }
        number
    }

    #[inline(never)]
    fn look_up(&mut self, key: Key, place: usize) -> u32 {
        let next = self.clusters.len() as u32;
        let number = *self.numbers.entry(key).or_insert(next);
        if number == next {
            let next = self.ranks.len() as u32;
            let rank = *self.ranks.entry(key.0).or_insert(next);
            self.clusters.push((rank, 0));
        }
        if let Some(slot) = self.recent.get_mut(place) {
            *slot = (key, number);
        }
        number
    }

    /// The place of the first row of each cluster: a thread's before the next thread's.
    fn starts(&self) -> Vec<u32> {
        let mut order: Vec<usize> = (0..self.clusters.len()).collect();
        order.sort_by_key(|number| self.clusters.get(*number).map(|(rank, _)| *rank));
        let mut starts = vec![0; self.clusters.len()];
        let mut next = 0;
        for number in order {
            let rows = self.clusters.get(number).map_or(0, |(_, rows)| *rows);
            if let Some(start) = starts.get_mut(number) {
                *start = next;
            }
            next += rows;
        }
        starts
    }
}

/// Brings the calls of a row group into the order in which they ended. As they are when the
/// columns that tell were not read.
pub(crate) fn by_end(batch: &mut Batch) {
    let (Some(ColumnData::I64(begin)), Some(ColumnData::I64(duration))) =
        (column(batch, BEGIN), column(batch, DURATION))
    else {
        return;
    };
    if begin.len() != batch.len() || duration.len() != batch.len() {
        return;
    }
    let ends = begin
        .iter()
        .zip(duration)
        .map(|(begin, duration)| match *duration {
            // Calls that had not ended came last.
            NULL_I64 => i64::MAX,
            duration => begin.saturating_add(duration),
        });
    let mut order: Vec<(i64, u32)> = ends.zip(0..).collect();
    if order.is_sorted_by_key(|(end, _)| *end) {
        return;
    }
    // Stable, and fast if runs are already in order, as the runs of a thread and kind are.
    order.sort_by_key(|(end, _)| *end);
    let order: Vec<u32> = order.into_iter().map(|(_, row)| row).collect();
    arrange(batch, &order);
}

fn empty(table: &'static Table) -> Batch {
    let columns = table.columns.iter();
    Batch {
        table,
        columns: columns.map(|c| ColumnData::empty(c.ty)).collect(),
        strings: StringTable::new(),
    }
}

/// Puts row `order[i]` in place i. Columns that were not read stay empty.
fn arrange(batch: &mut Batch, order: &[u32]) {
    fn lists<T: Clone>(values: &mut Vec<T>, order: &[u32]) {
        if values.len() == order.len() {
            *values = order
                .iter()
                .filter_map(|row| values.get(*row as usize).cloned())
                .collect();
        }
    }
    fn arranged<T: Copy + PartialEq>(values: &mut Vec<T>, order: &[u32]) {
        let Some(first) = values.first().copied() else {
            return;
        };
        // Most columns of most calls are null.
        let constant = values
            .iter()
            .fold(true, |all, value| all & (*value == first));
        if constant || values.len() != order.len() {
            return;
        }
        let of = |row: &u32| values.get(*row as usize).copied().unwrap_or(first);
        *values = order.iter().map(of).collect();
    }
    for column in &mut batch.columns {
        match column {
            ColumnData::I64(v) => arranged(v, order),
            ColumnData::I32(v) => arranged(v, order),
            ColumnData::Bool(v) => arranged(v, order),
            ColumnData::Str(v) | ColumnData::Blob(v) => arranged(v, order),
            ColumnData::ListI64(v) => lists(v, order),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls of three threads in turn, each with ends in order: begin and duration.
    fn calls(rows: &[(i64, i64, i32, &str)]) -> Batch {
        let mut batch = empty(&SYSCALLS);
        for (begin, duration, tid, call) in rows {
            let call = batch.strings.intern(call.as_bytes());
            for (column, data) in SYSCALLS.columns.iter().zip(&mut batch.columns) {
                match (column.name, data) {
                    ("ts_ns", ColumnData::I64(v)) => v.push(*begin),
                    ("dur_ns", ColumnData::I64(v)) => v.push(*duration),
                    ("tid", ColumnData::I32(v)) => v.push(*tid),
                    ("syscall", ColumnData::Str(v)) => v.push(call),
                    (_, ColumnData::I64(v)) => v.push(*begin),
                    (_, ColumnData::I32(v)) => v.push(*tid),
                    (_, ColumnData::Bool(v)) => v.push(*tid == 1),
                    (_, ColumnData::Str(v) | ColumnData::Blob(v)) => v.push(StrId::NULL),
                    (_, ColumnData::ListI64(v)) => v.push(vec![*begin]),
                }
            }
        }
        batch
    }

    fn told(batch: &Batch) -> Vec<(i64, i32, String)> {
        let (Some(ColumnData::I64(begin)), Some(ColumnData::I32(tid)), Some(ColumnData::Str(call))) = (
            column(batch, "ts_ns"),
            column(batch, "tid"),
            column(batch, "syscall"),
        ) else {
            panic!("columns are missing");
        };
        let text = |id| String::from_utf8_lossy(batch.strings.get(id)).into_owned();
        let rows = begin.iter().zip(tid).zip(call);
        rows.map(|((b, t), c)| (*b, *t, text(*c))).collect()
    }

    const ROWS: [(i64, i64, i32, &str); 6] = [
        (10, 1, 7, "read"),
        (5, 20, 3, "write"),
        (20, 6, 7, "fsync"),
        (30, 1, 7, "read"),
        (26, 9, 3, "write"),
        (40, NULL_I64, 7, "read"),
    ];

    #[test]
    fn threads_and_kinds_lie_together_and_come_back_in_order() {
        let (first, second) = ROWS.split_at(3);
        let mut clusters = Clusters::new(&SYSCALLS).unwrap();
        // Two batches, whose texts have other numbers.
        clusters.push(&calls(first));
        clusters.push(&calls(second));
        assert_eq!(clusters.rows(), 6);
        let mut rows = clusters.take();
        assert_eq!((clusters.rows(), clusters.bytes()), (0, 0));
        let order: Vec<i64> = told(&rows).into_iter().map(|row| row.0).collect();
        assert_eq!(order, [10, 30, 40, 20, 5, 26]);
        for data in &rows.columns {
            assert_eq!(data.len(), 6);
        }
        by_end(&mut rows);
        assert_eq!(told(&rows), told(&calls(&ROWS)));
        let Some(ColumnData::ListI64(lists)) = rows
            .columns
            .iter()
            .find(|data| matches!(data, ColumnData::ListI64(_)))
        else {
            return;
        };
        let begins: Vec<Vec<i64>> = ROWS.iter().map(|row| vec![row.0]).collect();
        assert_eq!(*lists, begins);
    }

    #[test]
    fn what_is_not_told_stays() {
        let mut rows = calls(&[(i64::MAX, i64::MAX, 1, "read"), (1, -5, 1, "read")]);
        by_end(&mut rows);
        assert_eq!(told(&rows).first().map(|row| row.0), Some(1));
        // Without the durations the order is unknown.
        let mut rows = calls(&[(9, 1, 1, "read"), (1, 1, 1, "read")]);
        let place = SYSCALLS.columns.iter().position(|c| c.name == "dur_ns");
        rows.columns[place.unwrap()] = ColumnData::I64(Vec::new());
        by_end(&mut rows);
        assert_eq!(told(&rows).first().map(|row| row.0), Some(9));
        assert!(Clusters::new(&fathom_model::tables::FILES).is_none());
    }
}
