//! Perf counters that can be read per request: their names in perf, and their bits in records.

use crate::abi::{
    COUNTER_BRANCH_MISSES, COUNTER_CACHE_MISSES, COUNTER_CACHE_REFERENCES,
    COUNTER_CONTEXT_SWITCHES, COUNTER_CPU_MIGRATIONS, COUNTER_CYCLES, COUNTER_INSTRUCTIONS,
    COUNTER_PAGE_FAULTS, COUNTER_TASK_CLOCK,
};

/// A counter.
#[derive(Debug, PartialEq, Eq)]
pub struct PerfCounter {
    /// Its number: bit `1 << number` in records.
    pub number: u32,
    /// As perf calls it.
    pub name: &'static str,
    /// The other name that perf knows; empty when there is none.
    pub alias: &'static str,
    /// Column of table `perf_counters`.
    pub column: &'static str,
    /// Whether the processor counts it; the kernel does otherwise.
    pub hardware: bool,
}

macro_rules! counters {
    ($($number:ident $name:literal $alias:literal $column:literal $hardware:literal,)*) => {
        /// All of them, in the order in which records have their values.
        pub static PERF_COUNTERS: [PerfCounter; 9] = [$(PerfCounter {
            number: $number,
            name: $name,
            alias: $alias,
            column: $column,
            hardware: $hardware,
        }),*];
    };
}

counters! {
    COUNTER_CYCLES "cycles" "cpu-cycles" "cycles" true,
    COUNTER_INSTRUCTIONS "instructions" "" "instructions" true,
    COUNTER_CACHE_REFERENCES "cache-references" "" "cache_references" true,
    COUNTER_CACHE_MISSES "cache-misses" "" "cache_misses" true,
    COUNTER_BRANCH_MISSES "branch-misses" "" "branch_misses" true,
    COUNTER_TASK_CLOCK "task-clock" "" "task_clock_ns" false,
    COUNTER_PAGE_FAULTS "page-faults" "faults" "page_faults" false,
    COUNTER_CONTEXT_SWITCHES "context-switches" "cs" "context_switches" false,
    COUNTER_CPU_MIGRATIONS "cpu-migrations" "migrations" "cpu_migrations" false,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::{CountersRecord, SLOT_BYTES};
    use crate::tables::PERF_COUNTERS as TABLE;

    #[test]
    fn a_slot_holds_the_values() {
        assert_eq!(CountersRecord::SIZE, SLOT_BYTES as usize);
    }

    #[test]
    fn each_has_a_place_and_a_column() {
        for (place, counter) in (0..).zip(&PERF_COUNTERS) {
            assert_eq!(counter.number, place, "{}", counter.name);
            let column = TABLE.columns.iter().find(|c| c.name == counter.column);
            assert!(column.is_some_and(|c| c.nullable), "{}", counter.column);
        }
    }
}
