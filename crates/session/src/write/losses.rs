//! Rows that could not be written: counted, so that nothing goes silently.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use fathom_model::abi::HIST_BUCKETS;
use fathom_model::batch::NULL_I64;
use fathom_model::layers::{Layer, Records, records};
use fathom_model::tables::{FAULTS, LossRows, SLICES, SYSCALLS, Table, WRITEBACK};
use fathom_model::{Batch, ColumnData, StrId, StringTable};

/// Pairs of process and file that are counted separately per call; the rest is counted under -1, so
/// that memory is bounded.
const MAX_SPLITS: usize = 1 << 16;

struct Loss {
    count: i64,
    errors: i64,
    bytes: i64,
    dur_ns: i64,
    max_dur_ns: i64,
    first_at_ns: i64,
    last_at_ns: i64,
    hist: Vec<i64>,
}

/// Counts rows of the tables of requests by call, process and file.
#[derive(Default)]
pub(crate) struct WriteLosses {
    /// Names of calls: there are few.
    names: StringTable,
    losses: HashMap<(StrId, i32, i64), Loss>,
    counts: RowCounts,
    changed: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowCounts {
    pub(crate) syscalls: u64,
    pub(crate) faults: u64,
    pub(crate) writeback: u64,
    /// Of the layers below the calls.
    pub(crate) layers: u64,
}

/// Rows of table `slices`, which are of every layer.
const SLICE: (&str, &str) = ("slice", "slices");

/// Name and layer for rows of a table without a column for it.
fn named(table: &Table) -> Option<(&'static str, &'static str)> {
    if table.name == SLICES.name {
        return Some(SLICE);
    }
    let of_table = |records: &Records| records.table.is_some_and(|other| other.name == table.name);
    let (layer, records) = records().find(|(_, records)| of_table(records))?;
    Some((records.name, layer.name()))
}

/// The layer of rows of that name; others are calls.
fn layer_of(name: &[u8]) -> &'static str {
    if name == SLICE.0.as_bytes() {
        return SLICE.1;
    }
    let named = records().find(|(_, records)| records.name.as_bytes() == name);
    named.map_or(Layer::Syscall, |(layer, _)| layer).name()
}

/// Whether the rows of a table are counted when they can't be written.
pub(crate) fn counts(table: &Table) -> bool {
    table.name == SYSCALLS.name || named(table).is_some()
}

impl WriteLosses {
    pub(crate) fn counts(&self) -> RowCounts {
        self.counts
    }

    /// Whether rows were counted since the last [`WriteLosses::snapshot`].
    pub(crate) fn changed(&self) -> bool {
        self.changed
    }

    /// Counts the rows of a batch of a table of requests.
    pub(crate) fn add(&mut self, batch: &Batch) {
        let view = RowView::new(batch);
        let rows = batch.len() as u64;
        let table = batch.table.name;
        let named = named(batch.table);
        let name_of_all = named.map(|(name, _)| self.names.intern(name.as_bytes()));
        *match (table, named) {
            (_, None) => &mut self.counts.syscalls,
            (name, _) if name == FAULTS.name => &mut self.counts.faults,
            (name, _) if name == WRITEBACK.name => &mut self.counts.writeback,
            _ => &mut self.counts.layers,
        } += rows;
        let mut names: Vec<Option<StrId>> = vec![None; batch.strings.len() + 1];
        for row in 0..batch.len() {
            let id = strings(view.syscall, row);
            let known = names.get(id.0 as usize).copied().flatten();
            let name = name_of_all
                .or(known)
                .unwrap_or_else(|| self.names.intern(batch.strings.get(id)));
            if let Some(slot) = names.get_mut(id.0 as usize) {
                *slot = Some(name);
            }
            let pid = match view.pid {
                Some(ColumnData::I32(v)) => v.get(row).copied().unwrap_or(-1),
                _ => -1,
            };
            let file = non_null(integer(view.file_id, row)).unwrap_or(-1);
            self.add_row(name, pid, file, &view, row);
        }
        self.changed |= !batch.is_empty();
    }

    fn add_row(&mut self, name: StrId, pid: i32, file: i64, view: &RowView<'_>, row: usize) {
        let dur_ns = non_null(integer(view.dur_ns, row)).unwrap_or(0).max(0);
        let ended_at_ns = non_null(integer(view.ts_ns, row))
            .unwrap_or(0)
            .saturating_add(dur_ns);
        let bytes = non_null(integer(view.bytes, row)).unwrap_or(0);
        let failed = view.failed.map_or_else(
            || strings(view.errno, row) != StrId::NULL,
            |failed| strings(view.kind, row) == failed,
        );
        let full = self.losses.len() >= MAX_SPLITS;
        let new = || Loss {
            count: 0,
            errors: 0,
            bytes: 0,
            dur_ns: 0,
            max_dur_ns: 0,
            first_at_ns: ended_at_ns,
            last_at_ns: ended_at_ns,
            hist: vec![0; HIST_BUCKETS as usize],
        };
        let loss = match self.losses.entry((name, pid, file)) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) if !full => entry.insert(new()),
            Entry::Vacant(_) => self.losses.entry((name, -1, -1)).or_insert_with(new),
        };
        loss.count += 1;
        loss.errors += i64::from(failed);
        loss.bytes = loss.bytes.saturating_add(bytes);
        loss.dur_ns = loss.dur_ns.saturating_add(dur_ns);
        loss.max_dur_ns = loss.max_dur_ns.max(dur_ns);
        loss.first_at_ns = loss.first_at_ns.min(ended_at_ns);
        loss.last_at_ns = loss.last_at_ns.max(ended_at_ns);
        let bucket = dur_ns.max(1).ilog2().min(HIST_BUCKETS - 1) as usize;
        if let Some(count) = loss.hist.get_mut(bucket) {
            *count += 1;
        }
    }

    /// All counts as rows of table `losses`; they replace rows of earlier calls with equal keys.
    pub(crate) fn snapshot(&mut self) -> Batch {
        self.changed = false;
        let mut table = StringTable::new();
        let stage = table.intern(b"write");
        let mut rows = LossRows::default();
        for ((name, pid, file), loss) in &self.losses {
            rows.stage.push(stage);
            rows.cpu.push(-1);
            let name = self.names.get(*name);
            rows.syscall.push(table.intern(name));
            rows.layer.push(table.intern(layer_of(name).as_bytes()));
            rows.count.push(loss.count);
            rows.bytes.push(loss.bytes);
            rows.first_at_ns.push(loss.first_at_ns);
            rows.last_at_ns.push(loss.last_at_ns);
            rows.pid.push(*pid);
            rows.file_id.push(*file);
            rows.errors.push(loss.errors);
            rows.dur_ns.push(loss.dur_ns);
            rows.max_dur_ns.push(loss.max_dur_ns);
            rows.hist.push(loss.hist.clone());
        }
        rows.into_batch(table)
    }
}

/// The columns that matter here.
struct RowView<'a> {
    syscall: Option<&'a ColumnData>,
    errno: Option<&'a ColumnData>,
    /// For faults, the kind of the ones that failed.
    kind: Option<&'a ColumnData>,
    failed: Option<StrId>,
    pid: Option<&'a ColumnData>,
    file_id: Option<&'a ColumnData>,
    ts_ns: Option<&'a ColumnData>,
    dur_ns: Option<&'a ColumnData>,
    bytes: Option<&'a ColumnData>,
}

impl<'a> RowView<'a> {
    fn new(batch: &'a Batch) -> Self {
        let column = |name: &str| {
            let at = batch.table.columns.iter().position(|c| c.name == name)?;
            batch.columns.get(at)
        };
        Self {
            syscall: column("syscall"),
            errno: column("errno"),
            kind: column("kind"),
            failed: column("kind").map(|_| {
                (1..=batch.strings.len() as u32)
                    .map(StrId)
                    .find(|id| batch.strings.get(*id) == b"failed")
                    .unwrap_or(StrId(u32::MAX))
            }),
            pid: column("pid"),
            file_id: column("file_id"),
            ts_ns: column("ts_ns"),
            dur_ns: column("dur_ns"),
            bytes: column("bytes"),
        }
    }
}

fn integer(column: Option<&ColumnData>, row: usize) -> i64 {
    match column {
        Some(ColumnData::I64(v)) => v.get(row).copied().unwrap_or(NULL_I64),
        _ => NULL_I64,
    }
}

fn strings(column: Option<&ColumnData>, row: usize) -> StrId {
    match column {
        Some(ColumnData::Str(v)) => v.get(row).copied().unwrap_or(StrId::NULL),
        _ => StrId::NULL,
    }
}

fn non_null(value: i64) -> Option<i64> {
    (value != NULL_I64).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_model::tables::FaultRows;

    #[test]
    fn faults_that_were_not_written() {
        let mut strings = StringTable::new();
        let mut rows = FaultRows::default();
        for (i, kind) in ["minor", "failed", "minor"].into_iter().enumerate() {
            let word = strings.intern(kind.as_bytes());
            rows.rid.push(i as i64);
            rows.ts_ns.push(10);
            rows.dur_ns.push(if i == 2 { NULL_I64 } else { 4 });
            for column in [&mut rows.pid, &mut rows.tid, &mut rows.cpu] {
                column.push(7);
            }
            for column in [
                &mut rows.comm,
                &mut rows.access,
                &mut rows.kind,
                &mut rows.cause,
                &mut rows.origin,
                &mut rows.mapping,
                &mut rows.path,
            ] {
                column.push(word);
            }
            for column in [
                &mut rows.address,
                &mut rows.file_id,
                &mut rows.file_offset,
                &mut rows.around_offset,
                &mut rows.around_bytes,
            ] {
                column.push(5);
            }
        }
        let mut losses = WriteLosses::default();
        losses.add(&rows.into_batch(strings));
        let counts = RowCounts {
            faults: 3,
            ..RowCounts::default()
        };
        assert_eq!(losses.counts(), counts);
        let (rows, strings) = LossRows::from_batch(losses.snapshot()).unwrap();
        assert_eq!(strings.get(rows.syscall[0]), b"page_fault");
        assert_eq!(strings.get(rows.layer[0]), b"pagecache");
        let numbers = (
            rows.count[0],
            rows.errors[0],
            rows.dur_ns[0],
            rows.file_id[0],
        );
        assert_eq!((rows.count.len(), numbers), (1, (3, 1, 8, 5)));
    }
}
