//! Perf counters of requests: table `perf_counters`.

use fathom_model::StringTable;
use fathom_model::abi::{
    COUNTER_BRANCH_MISSES, COUNTER_CACHE_MISSES, COUNTER_CACHE_REFERENCES,
    COUNTER_CONTEXT_SWITCHES, COUNTER_CPU_MIGRATIONS, COUNTER_CYCLES, COUNTER_INSTRUCTIONS,
    COUNTER_PAGE_FAULTS, COUNTER_TASK_CLOCK, CountersRecord,
};
use fathom_model::batch::{Batch, NULL_I64};
use fathom_model::tables::{PerfCounterRow, PerfCounterRows};

use crate::{id, signed};

/// Rows that were not taken yet.
#[derive(Debug, Default)]
pub(crate) struct PerfCounters(PerfCounterRows);

impl PerfCounters {
    #[inline]
    pub(crate) fn pending_rows(&self) -> usize {
        self.0.len()
    }

    /// The counters of a request, which has ended as `rid`.
    pub(crate) fn request(&mut self, rid: Option<i64>, record: &CountersRecord) {
        let counted = u32::from(record.counters);
        // Values stand one behind the other, for the counters that were asked for.
        let value = |number: u32| {
            let at = (counted & ((1 << number) - 1)).count_ones();
            match record.values.get(at as usize) {
                Some(value) if counted >> number & 1 != 0 && record.unknown >> at & 1 == 0 => {
                    signed(*value)
                }
                _ => NULL_I64,
            }
        };
        self.0.push(PerfCounterRow {
            rid: rid.unwrap_or(NULL_I64),
            ts_ns: signed(record.request_ns),
            tid: id(record.tid),
            cycles: value(COUNTER_CYCLES),
            instructions: value(COUNTER_INSTRUCTIONS),
            cache_references: value(COUNTER_CACHE_REFERENCES),
            cache_misses: value(COUNTER_CACHE_MISSES),
            branch_misses: value(COUNTER_BRANCH_MISSES),
            task_clock_ns: value(COUNTER_TASK_CLOCK),
            page_faults: value(COUNTER_PAGE_FAULTS),
            context_switches: value(COUNTER_CONTEXT_SWITCHES),
            cpu_migrations: value(COUNTER_CPU_MIGRATIONS),
        });
    }

    /// The rows since the last time.
    pub(crate) fn take(&mut self) -> Batch {
        std::mem::take(&mut self.0).into_batch(StringTable::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
