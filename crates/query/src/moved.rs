//! Rows on the clock of a set.

use std::collections::BTreeSet;

use fathom_model::set::ClockMap;

use crate::clocks::on_clock;

/// Cells from which on the database compares their numbers instead of their ends.
const MANY_CELLS: usize = 64;

/// How rows are shown on another clock, and which of them are read.
#[derive(Clone, Debug)]
pub(crate) struct Moved {
    pub(crate) clock: ClockMap,
    /// Width of cells on the clock of the rows, as a power of two of nanoseconds, and the numbers of the cells whose
    /// rows are read; `None` for all rows.
    pub(crate) cells: Option<(u8, BTreeSet<i64>)>,
}

impl Moved {
    /// Rows of `source` with their times on the other clock.
    pub(crate) fn source(&self, source: &str) -> String {
        let moved = on_clock(&self.clock, "ts_ns");
        format!("(SELECT * REPLACE ({moved} AS ts_ns), ts_ns AS own_ts_ns FROM {source})")
    }

    /// The condition that chooses the rows, to be appended to others.
    pub(crate) fn condition(&self) -> String {
        let Some((shift, cells)) = &self.cells else {
            return String::new();
        };
        let ends = |n: &i64| (n << shift, (n + 1) << shift);
        let list: Vec<String> = match cells.len() {
            0..=MANY_CELLS => cells
                .iter()
                .map(ends)
                .map(|(a, b)| format!("(own_ts_ns >= {a} AND own_ts_ns < {b})"))
                .collect(),
            _ => {
                let cells: Vec<String> = cells.iter().map(i64::to_string).collect();
                vec![format!("(own_ts_ns >> {shift}) IN ({})", cells.join(", "))]
            }
        };
        match list.is_empty() {
            true => " AND false".to_owned(),
            false => format!(" AND ({})", list.join(" OR ")),
        }
    }
}
