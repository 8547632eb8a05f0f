//! Rows of table `counters` from the kernel's counters of calls.

use std::collections::HashMap;

use fathom_model::StringTable;
use fathom_model::abi::{ShedKey, ShedValue};
use fathom_model::batch::{Batch, NULL_I64};
use fathom_model::syscalls::SYSCALLS;
use fathom_model::tables::{CounterRow, CounterRows};

use crate::signed;

/// Call, process and handle of the file.
type Key = (u32, u32, u32);

/// Remembers when the counters were read last.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    read_ns: u64,
}

impl Counters {
    /// Rows for what was counted since the last time. `read` has the counters of
    /// each processor; they were read at `now_ns`, the first ones count from
    /// `started_at_ns`. `file` gives the file of a handle.
    pub(crate) fn rows(
        &mut self,
        started_at_ns: u64,
        now_ns: u64,
        read: &[(ShedKey, ShedValue)],
        mut file: impl FnMut(u32) -> i64,
    ) -> Batch {
        let from = if self.read_ns == 0 {
            started_at_ns
        } else {
            self.read_ns
        };
        let mut sums: HashMap<Key, ShedValue> = HashMap::with_capacity(read.len());
        for (key, value) in read.iter().filter(|(_, value)| value.count > 0) {
            let key = (key.syscall, key.pid, key.file);
            sums.entry(key).or_insert(ShedValue::NOTHING).add(value);
        }
        let mut strings = StringTable::new();
        let mut rows = CounterRows::default();
        let mut keys: Vec<&Key> = sums.keys().collect();
        keys.sort_unstable();
        for key in keys {
            let (Some(value), (call, pid, handle)) = (sums.get(key), *key) else {
                continue;
            };
            let name = SYSCALLS.get(call as usize).map_or("unknown", |s| s.name);
            rows.push(CounterRow {
                ts_ns: signed(from),
                ended_at_ns: signed(now_ns),
                syscall: strings.intern(name.as_bytes()),
                pid: crate::id(pid),
                file_id: if handle == 0 { NULL_I64 } else { file(handle) },
                count: signed(value.count),
                bytes: signed(value.bytes),
                errors: signed(value.errors),
                dur_ns: signed(value.dur_ns),
                max_dur_ns: signed(value.max_dur_ns),
                hist: value.hist.iter().copied().map(signed).collect(),
            });
        }
        self.read_ns = now_ns;
        rows.into_batch(strings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_model::ColumnData;

    fn value(count: u64) -> ShedValue {
        let mut value = ShedValue {
            count,
            bytes: count * 10,
            dur_ns: count * 4,
            max_dur_ns: 4,
            ..ShedValue::NOTHING
        };
        value.hist[2] = count;
        value
    }

    fn key(cpu: u32, pid: u32) -> ShedKey {
        ShedKey {
            cpu,
            syscall: 0,
            pid,
            file: 0,
        }
    }

    fn column(batch: &Batch, name: &str) -> Vec<i64> {
        let at = batch.table.columns.iter().position(|c| c.name == name);
        match &batch.columns[at.unwrap()] {
            ColumnData::I64(v) => v.clone(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn rows_have_what_came_since() {
        let mut counters = Counters::default();
        let first = [
            (key(0, 1), value(5)),
            (key(1, 1), value(2)),
            (key(0, 2), value(1)),
        ];
        let batch = counters.rows(10, 20, &first, |_| 0);
        assert_eq!(column(&batch, "count"), [7, 1]);
        assert_eq!(column(&batch, "ts_ns"), [10, 10]);
        let second = [(key(1, 1), value(4))];
        let batch = counters.rows(10, 30, &second, |_| 0);
        assert_eq!(column(&batch, "count"), [4]);
        assert_eq!(column(&batch, "ts_ns"), [20]);
        assert!(counters.rows(10, 40, &[], |_| 0).is_empty());
        let batch = counters.rows(10, 50, &second, |_| 0);
        assert_eq!(column(&batch, "ts_ns"), [40]);
    }
}
