//! What counters of perf say of requests: table `perf_counters`.

use fathom_model::StringTable;
use fathom_model::abi::CountersRecord;
use fathom_model::batch::{Batch, NULL_I64};
use fathom_model::perf_counters::PERF_COUNTERS;
use fathom_model::tables::PerfCounterRows;

use crate::{id, signed};

/// Rows that were not taken yet.
#[derive(Debug, Default)]
pub(crate) struct PerfCounters(PerfCounterRows);

impl PerfCounters {
    pub(crate) fn pending_rows(&self) -> usize {
        self.0.rid.len()
    }

    /// The counters of a request, which has ended as `rid`.
    pub(crate) fn request(&mut self, rid: Option<i64>, record: &CountersRecord) {
        let rows = &mut self.0;
        rows.rid.push(rid.unwrap_or(NULL_I64));
        rows.ts_ns.push(signed(record.request_ns));
        rows.tid.push(id(record.tid));
        let columns = [
            &mut rows.cycles,
            &mut rows.instructions,
            &mut rows.cache_references,
            &mut rows.cache_misses,
            &mut rows.branch_misses,
            &mut rows.task_clock_ns,
            &mut rows.page_faults,
            &mut rows.context_switches,
            &mut rows.cpu_migrations,
        ];
        let mut values = record.values.iter().enumerate();
        for (counter, column) in PERF_COUNTERS.iter().zip(columns) {
            let counted = u32::from(record.counters) >> counter.number & 1 != 0;
            let value = if counted { values.next() } else { None };
            column.push(match value {
                Some((at, value)) if record.unknown >> at & 1 == 0 => signed(*value),
                _ => NULL_I64,
            });
        }
    }

    /// The rows since the last time.
    pub(crate) fn take(&mut self) -> Batch {
        std::mem::take(&mut self.0).into_batch(StringTable::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_model::abi::{COUNTER_INSTRUCTIONS, COUNTER_PAGE_FAULTS, COUNTER_TASK_CLOCK};

    #[test]
    fn values_go_to_their_columns() {
        let bits = 1 << COUNTER_INSTRUCTIONS | 1 << COUNTER_TASK_CLOCK | 1 << COUNTER_PAGE_FAULTS;
        let record = CountersRecord {
            kind: 0,
            unknown: 0b10,
            counters: bits as u16,
            tid: 7,
            request_ns: 100,
            dur_ns: 11,
            values: [70, 80, 90, 0, 0],
        };
        let mut counters = PerfCounters::default();
        counters.request(Some(3), &record);
        counters.request(None, &record);
        assert_eq!(counters.pending_rows(), 2);
        let (rows, _) = PerfCounterRows::from_batch(counters.take()).unwrap();
        assert_eq!((&rows.rid[..], rows.ts_ns[0]), (&[3, NULL_I64][..], 100));
        assert_eq!((rows.instructions[0], rows.page_faults[0]), (70, 90));
        for column in [rows.task_clock_ns, rows.cycles, rows.cpu_migrations] {
            assert_eq!(column, [NULL_I64, NULL_I64]);
        }
        assert_eq!(counters.pending_rows(), 0);
    }
}
