//! Performance counters of the calls.

use fathom_model::units::{count, duration};
use fathom_query::Db;
use fathom_query::fetch::rows;
use fathom_query::read_row;
use serde::Serialize;

use crate::error::ReportError;
use crate::queues::thousandths;
use crate::section::Layout::{Left, Right};
use crate::section::{Section, TOP};

/// Counters of the calls of one name: means a call, null when they are known of none. Those
/// that end in `_milli` are thousandths.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "types", derive(schemars::JsonSchema))]
pub struct CallCounters {
    /// Name of the call; `page_fault`.
    pub syscall: String,
    /// Calls with counters.
    pub requests: i64,
    /// Time on a CPU.
    pub task_clock_ns: Option<i64>,
    /// Cycles.
    pub cycles: Option<i64>,
    /// Instructions.
    pub instructions: Option<i64>,
    /// Cycles an instruction.
    pub cpi_milli: Option<i64>,
    /// Accesses to the cache.
    pub cache_references: Option<i64>,
    /// Of which found nothing there.
    pub cache_misses_milli: Option<i64>,
    /// The same a KiB that was moved.
    pub cache_misses_per_kib_milli: Option<i64>,
    /// Branches predicted wrong.
    pub branch_misses_milli: Option<i64>,
    /// Page faults.
    pub page_faults_milli: Option<i64>,
    /// Times off the CPU.
    pub context_switches_milli: Option<i64>,
    /// Times that it came back to another CPU.
    pub cpu_migrations_milli: Option<i64>,
}

/// Counters by call, by total time.
pub(crate) fn by_call(db: &Db) -> Result<Vec<CallCounters>, ReportError> {
    Ok(rows(
        db,
        &format!(
            "SELECT syscall, requests,
                 mean_task_clock_ns::BIGINT AS task_clock_ns, mean_cycles::BIGINT AS cycles,
                 mean_instructions::BIGINT AS instructions, (1000 * cpi)::BIGINT AS cpi,
                 mean_cache_references::BIGINT AS cache_references,
                 (1000 * mean_cache_misses)::BIGINT AS cache_misses,
                 (1000 * cache_misses_per_kib)::BIGINT AS cache_misses_per_kib,
                 (1000 * mean_branch_misses)::BIGINT AS branch_misses,
                 (1000 * mean_page_faults)::BIGINT AS page_faults,
                 (1000 * mean_context_switches)::BIGINT AS context_switches,
                 (1000 * mean_cpu_migrations)::BIGINT AS cpu_migrations
             FROM by_perf_counters LIMIT {TOP}"
        ),
        |row| {
            read_row!(row => CallCounters {
                syscall requests task_clock_ns cycles instructions cpi_milli = "cpi"
                cache_references cache_misses_milli = "cache_misses"
                cache_misses_per_kib_milli = "cache_misses_per_kib"
                branch_misses_milli = "branch_misses" page_faults_milli = "page_faults"
                context_switches_milli = "context_switches" cpu_migrations_milli = "cpu_migrations"
            })
        },
    )?)
}

/// A column of the table: its title, its value of a row, and how that is written.
type Of = (
    &'static str,
    fn(&CallCounters) -> Option<i64>,
    fn(i64) -> String,
);

const COLUMNS: [Of; 11] = [
    ("on CPU", |c| c.task_clock_ns, duration),
    ("cycles", |c| c.cycles, count),
    ("instructions", |c| c.instructions, count),
    ("CPI", |c| c.cpi_milli, thousandths),
    ("cache refs", |c| c.cache_references, count),
    ("cache misses", |c| c.cache_misses_milli, thousandths),
    ("a KiB", |c| c.cache_misses_per_kib_milli, thousandths),
    ("branch misses", |c| c.branch_misses_milli, thousandths),
    ("page faults", |c| c.page_faults_milli, thousandths),
    ("switches", |c| c.context_switches_milli, thousandths),
    ("migrations", |c| c.cpu_migrations_milli, thousandths),
];

/// The table of the report, with the counters that were recorded; without rows when none was.
pub(crate) fn section(counters: &[CallCounters]) -> Section {
    let known = COLUMNS
        .into_iter()
        .filter(|(_, value, _)| counters.iter().any(|c| value(c).is_some()));
    let known: Vec<Of> = known.collect();
    let row = |c: &CallCounters| {
        let values = known.iter().map(|(_, value, write)| match value(c) {
            Some(value) => write(value),
            None => "-".into(),
        });
        [c.syscall.clone(), count(c.requests)]
            .into_iter()
            .chain(values)
            .collect()
    };
    let titles = known.iter().map(|(title, ..)| (*title, Right));
    Section {
        title: "Counters by call",
        note: "means a call".into(),
        columns: [("call", Left), ("calls", Right)]
            .into_iter()
            .chain(titles)
            .collect(),
        rows: counters.iter().map(row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_those_that_are_known() {
        let none = CallCounters {
            syscall: "read".into(),
            requests: 2,
            task_clock_ns: Some(1500),
            cycles: None,
            instructions: None,
            cpi_milli: None,
            cache_references: None,
            cache_misses_milli: None,
            cache_misses_per_kib_milli: None,
            branch_misses_milli: None,
            page_faults_milli: None,
            context_switches_milli: None,
            cpu_migrations_milli: None,
        };
        let faults = CallCounters {
            syscall: "pread64".into(),
            page_faults_milli: Some(2250),
            ..none.clone()
        };
        let section = section(&[none, faults]);
        let titles: Vec<_> = section.columns.iter().map(|(title, _)| *title).collect();
        assert_eq!(titles, ["call", "calls", "on CPU", "page faults"]);
        assert_eq!(section.rows[0][2..], [duration(1500), "-".into()]);
        assert_eq!(section.rows[1][3], "2.25");
    }
}
