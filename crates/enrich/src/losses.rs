//! Rows of table `losses` from the kernel's counters.

use std::collections::{BTreeMap, BTreeSet};

use fathom_model::StringTable;
use fathom_model::abi::{HIST_BUCKETS, ShedKey, ShedValue};
use fathom_model::batch::Batch;
use fathom_model::layers::{Layer, records};
use fathom_model::syscalls::SYSCALLS;
use fathom_model::tables::{LossRow, LossRows};

use crate::signed;

/// A row: CPU, call, process, file; -1 for a process or file that is not known.
type Key = (u32, u32, i32, i64);

/// Remembers the rows that were written, since a row that is no longer right
/// has to be written again.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    written: BTreeSet<Key>,
}

impl Losses {
    /// Rows that add up to `per_cpu`, which is exact. `split` says which
    /// processes and files they were; what it does not account for goes into
    /// rows without. `file` gives the file of a handle.
    pub(crate) fn rows(
        &mut self,
        per_cpu: &[(u32, u32, ShedValue)],
        split: &[(ShedKey, ShedValue)],
        mut file: impl FnMut(&ShedKey) -> i64,
    ) -> Batch {
        let mut left: BTreeMap<(u32, u32), ShedValue> = BTreeMap::new();
        for (cpu, call, value) in per_cpu.iter().filter(|(_, _, v)| v.count > 0) {
            let sum = left.entry((*cpu, *call)).or_insert(ShedValue::NOTHING);
            sum.add(value);
        }
        let totals = left.clone();
        let mut rows: BTreeMap<Key, ShedValue> = BTreeMap::new();
        for (key, value) in split {
            let Some(left) = left.get_mut(&(key.cpu, key.syscall)) else {
                continue;
            };
            // The counters are read while they count: never more than the total.
            let value = capped(value, left);
            if value.count == 0 {
                continue;
            }
            subtract(left, &value);
            let id = if key.file == 0 { -1 } else { file(key) };
            let row = (key.cpu, key.syscall, crate::id(key.pid), id);
            rows.entry(row).or_insert(ShedValue::NOTHING).add(&value);
        }
        for ((cpu, call), mut rest) in left {
            if rest.count == 0 {
                continue;
            }
            // Of the rest only the histogram is known: its highest bucket limits
            // the longest duration.
            let total = totals.get(&(cpu, call)).unwrap_or(&ShedValue::NOTHING);
            let highest = rest.hist.iter().rposition(|n| *n > 0).unwrap_or_default() as u32;
            let limit = match highest + 1 {
                HIST_BUCKETS.. => u64::MAX,
                next => (1 << next) - 1,
            };
            rest.max_dur_ns = total.max_dur_ns.min(limit);
            (rest.first_at_ns, rest.last_at_ns) = (total.first_at_ns, total.last_at_ns);
            let row = rows.entry((cpu, call, -1, -1));
            row.or_insert(ShedValue::NOTHING).add(&rest);
        }
        for key in &self.written {
            rows.entry(*key).or_insert(ShedValue::NOTHING);
        }
        let mut out = LossRows::default();
        let mut strings = StringTable::new();
        for (key, value) in &rows {
            self.written.insert(*key);
            push(&mut out, &mut strings, "ring", key, value);
        }
        out.into_batch(strings)
    }
}

/// A row for records that reached user space damaged: nothing is known of them
/// but their number, and that they came between two times.
pub(crate) fn damaged(count: u64, first_at_ns: u64, last_at_ns: u64) -> Batch {
    let mut out = LossRows::default();
    let mut strings = StringTable::new();
    let value = ShedValue {
        count,
        first_at_ns,
        last_at_ns,
        ..ShedValue::NOTHING
    };
    push(
        &mut out,
        &mut strings,
        "decode",
        &(u32::MAX, u32::MAX, -1, -1),
        &value,
    );
    out.into_batch(strings)
}

fn push(out: &mut LossRows, strings: &mut StringTable, stage: &str, key: &Key, v: &ShedValue) {
    let (cpu, call, pid, file_id) = *key;
    let (name, layer) = match records().find(|(_, records)| records.lost == Some(call)) {
        Some((layer, records)) => (records.name, layer),
        None => {
            let call = SYSCALLS.get(call as usize);
            (call.map_or("unknown", |s| s.name), Layer::Syscall)
        }
    };
    out.push(LossRow {
        stage: strings.intern(stage.as_bytes()),
        cpu: i32::try_from(cpu).unwrap_or(-1),
        syscall: strings.intern(name.as_bytes()),
        layer: strings.intern(layer.name().as_bytes()),
        count: signed(v.count),
        bytes: signed(v.bytes),
        first_at_ns: signed(v.first_at_ns),
        last_at_ns: signed(v.last_at_ns),
        pid,
        file_id,
        errors: signed(v.errors),
        dur_ns: signed(v.dur_ns),
        max_dur_ns: signed(v.max_dur_ns),
        hist: v.hist.iter().map(|n| signed(*n)).collect(),
    });
}

/// `value`, each part limited to that part of `limit`.
fn capped(value: &ShedValue, limit: &ShedValue) -> ShedValue {
    let mut capped = *value;
    capped.count = capped.count.min(limit.count);
    capped.errors = capped.errors.min(limit.errors);
    capped.bytes = capped.bytes.min(limit.bytes);
    capped.dur_ns = capped.dur_ns.min(limit.dur_ns);
    for (n, limit) in capped.hist.iter_mut().zip(limit.hist) {
        *n = (*n).min(limit);
    }
    capped
}

/// Takes `value`, which is capped, from `from`.
fn subtract(from: &mut ShedValue, value: &ShedValue) {
    from.count -= value.count;
    from.errors -= value.errors;
    from.bytes -= value.bytes;
    from.dur_ns -= value.dur_ns;
    for (from, n) in from.hist.iter_mut().zip(value.hist) {
        *from -= n;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_model::ColumnData;

    fn value(count: u64, max_dur_ns: u64) -> ShedValue {
        let mut value = ShedValue {
            count,
            bytes: count * 100,
            dur_ns: count * max_dur_ns,
            max_dur_ns,
            first_at_ns: 10,
            last_at_ns: 20,
            ..ShedValue::NOTHING
        };
        value.hist[max_dur_ns.ilog2() as usize] = count;
        value
    }

    fn key(pid: u32, file: u32) -> ShedKey {
        ShedKey {
            cpu: 1,
            syscall: 0,
            pid,
            file,
        }
    }

    fn column(batch: &Batch, name: &str) -> Vec<i64> {
        let at = batch
            .table
            .columns
            .iter()
            .position(|c| c.name == name)
            .unwrap();
        match &batch.columns[at] {
            ColumnData::I64(v) => v.clone(),
            ColumnData::I32(v) => v.iter().map(|n| i64::from(*n)).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn rows_add_up_to_the_totals() {
        let mut losses = Losses::default();
        let mut total = value(10, 8);
        total.add(&value(2, 1000));
        let split = [
            (key(5, 7), value(3, 8)),
            (key(5, 8), value(1, 8)),
            (key(6, 0), value(4, 8)),
        ];
        // Handles 7 and 8 are one file.
        let batch = losses.rows(&[(1, 0, total)], &split, |_| 77);
        assert_eq!(column(&batch, "count").iter().sum::<i64>(), 12);
        assert_eq!(column(&batch, "bytes").iter().sum::<i64>(), 1200);
        assert_eq!(column(&batch, "pid"), [-1, 5, 6]);
        assert_eq!(column(&batch, "file_id"), [-1, 77, -1]);
        assert_eq!(column(&batch, "count"), [4, 4, 4]);
        assert_eq!(column(&batch, "max_dur_ns"), [1000, 8, 8]);
        // Later the split is complete: the row without a process becomes empty.
        let mut whole = value(6, 8);
        whole.add(&value(2, 1000));
        let split = [(key(5, 7), value(4, 8)), (key(6, 0), whole)];
        let batch = losses.rows(&[(1, 0, total)], &split, |_| 77);
        assert_eq!(column(&batch, "count"), [0, 4, 8]);
    }

    #[test]
    fn a_split_that_is_ahead_is_capped() {
        let mut losses = Losses::default();
        let split = [(key(5, 7), value(9, 8)), (key(6, 7), value(9, 8))];
        let batch = losses.rows(&[(1, 0, value(10, 8))], &split, |_| 1);
        assert_eq!(column(&batch, "count"), [9, 1]);
        let batch = losses.rows(&[], &split, |_| 1);
        assert_eq!(column(&batch, "count"), [0, 0]);
    }

    #[test]
    fn nothing_lost_is_no_row() {
        let mut losses = Losses::default();
        assert!(
            losses
                .rows(&[(0, 0, ShedValue::NOTHING)], &[], |_| 1)
                .is_empty()
        );
        let batch = losses.rows(&[(0, 9999, value(1, 1))], &[], |_| 1);
        let name = batch
            .table
            .columns
            .iter()
            .position(|c| c.name == "syscall")
            .unwrap();
        let ColumnData::Str(names) = &batch.columns[name] else {
            panic!()
        };
        assert_eq!(batch.strings.get(names[0]), b"unknown");
    }

    #[test]
    fn damaged_records() {
        let batch = damaged(3, 5, 6);
        assert_eq!(
            (column(&batch, "count"), column(&batch, "cpu")),
            (vec![3], vec![-1])
        );
    }
}
