//! Columns that are stored as differences from other columns of their rows.

use fathom_model::batch::NULL_I64;
use fathom_model::tables::{Stored, Table, Term};
use fathom_model::{Batch, ColumnData};

/// A column that is stored as differences.
#[derive(Clone, Debug)]
pub(crate) struct Less {
    /// Its place in the table.
    pub(crate) column: usize,
    /// Places and terms of the sum.
    terms: Vec<(usize, Term)>,
}

/// The columns of a table that are stored as differences.
pub(crate) fn columns(table: &Table) -> Vec<Less> {
    let place = |name: &str| table.columns.iter().position(|c| c.name == name);
    let less = |(column, stored)| match stored {
        Stored::Less { terms, .. } => Some(Less {
            column,
            terms: terms
                .iter()
                .filter_map(|term| Some((place(term.column)?, *term)))
                .collect(),
        }),
        Stored::AsIs | Stored::Hidden => None,
    };
    let stored = table.columns.iter().map(|column| column.stored);
    stored.enumerate().filter_map(less).collect()
}

impl Less {
    /// Places of the columns that the sum is of.
    pub(crate) fn of(&self) -> impl Iterator<Item = usize> {
        self.terms.iter().map(|(place, _)| *place)
    }

    /// Leaves the differences of rows `from..to` of `data`, the column, in `differences`; false
    /// when they are null.
    pub(crate) fn differences(
        &self,
        data: &ColumnData,
        batch: &Batch,
        (from, to): (usize, usize),
        differences: &mut Vec<i64>,
    ) -> bool {
        let ColumnData::I64(values) = data else {
            return false;
        };
        let Some(values) = values.get(from..to) else {
            return false;
        };
        differences.clear();
        differences.extend_from_slice(values);
        self.subtract(differences, batch, from);
        true
    }

    /// Replaces `values`, rows `from..` of the column, by the differences.
    fn subtract(&self, values: &mut [i64], batch: &Batch, from: usize) {
        let sums = self.sums(values.len(), batch, from);
        for (value, sum) in values.iter_mut().zip(sums) {
            if *value != NULL_I64 {
                // The number that stands for null changes places with a difference that no value
                // has, as it would be of null itself.
                *value = match value.wrapping_sub(sum) {
                    NULL_I64 => NULL_I64.wrapping_sub(sum),
                    difference => difference,
                };
            }
        }
    }

    /// Replaces the differences in a batch by the values. Leaves a column alone that was not read.
    pub(crate) fn restore(&self, batch: &mut Batch) {
        let Some(ColumnData::I64(values)) = batch.columns.get_mut(self.column) else {
            return;
        };
        let mut values = std::mem::take(values);
        let sums = self.sums(values.len(), batch, 0);
        for (value, sum) in values.iter_mut().zip(sums) {
            if *value != NULL_I64 {
                *value = match value.wrapping_add(sum) {
                    NULL_I64 => NULL_I64.wrapping_add(sum),
                    value => value,
                };
            }
        }
        if let Some(ColumnData::I64(place)) = batch.columns.get_mut(self.column) {
            *place = values;
        }
    }

    /// The sums of `len` rows of a batch. Null counts as 0.
    fn sums(&self, len: usize, batch: &Batch, from: usize) -> Vec<i64> {
        let mut sums = vec![0i64; len];
        for (place, term) in &self.terms {
            let Some(ColumnData::I64(of)) = batch.columns.get(*place) else {
                continue;
            };
            let rows = sums.iter_mut().zip(of.get(from..).unwrap_or_default());
            for (sum, of) in rows.filter(|(_, of)| **of != NULL_I64) {
                let part = match term.divisor {
                    1 => *of,
                    by => of.checked_div(by).unwrap_or_default(),
                };
                *sum = match term.minus {
                    true => sum.wrapping_sub(part),
                    false => sum.wrapping_add(part),
                };
            }
        }
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_model::StringTable;
    use fathom_model::tables::{BLOCK, BlockRow, BlockRows, WAITS, WaitRow, WaitRows};

    fn values(batch: &Batch, name: &str) -> Vec<i64> {
        let place = batch.table.columns.iter().position(|c| c.name == name);
        match batch.columns.get(place.unwrap()) {
            Some(ColumnData::I64(values)) => values.clone(),
            _ => panic!("{name}"),
        }
    }

    fn stored(batch: &Batch) -> Batch {
        let mut stored = batch.clone();
        for less in columns(batch.table) {
            let Some(ColumnData::I64(values)) = stored.columns.get_mut(less.column) else {
                panic!("not a number");
            };
            less.subtract(values, batch, 0);
        }
        stored
    }

    fn restored(mut batch: Batch) -> Batch {
        for less in columns(batch.table) {
            less.restore(&mut batch);
        }
        batch
    }

    #[test]
    fn differences_are_small_and_come_back() {
        let mut rows = BlockRows::default();
        rows.push(BlockRow {
            ts_ns: 1_000,
            dur_ns: 500,
            queued_at_ns: 1_000,
            issued_at_ns: 1_200,
            completed_at_ns: 1_500,
            sector: 88,
            file_offset: 4096,
            ..BlockRow::default()
        });
        // Without an offset and an end.
        rows.push(BlockRow {
            ts_ns: 7,
            sector: 88,
            started_at_ns: 7,
            ..BlockRow::default()
        });
        let batch = rows.into_batch(StringTable::new());
        let stored = stored(&batch);
        assert_eq!(values(&stored, "queued_at_ns"), [0, NULL_I64]);
        assert_eq!(values(&stored, "started_at_ns"), [NULL_I64, 0]);
        assert_eq!(values(&stored, "issued_at_ns"), [200, NULL_I64]);
        assert_eq!(values(&stored, "completed_at_ns"), [0, NULL_I64]);
        assert_eq!(values(&stored, "sector"), [80, 88]);
        let back = restored(stored);
        for less in columns(&BLOCK) {
            let name = BLOCK.columns[less.column].name;
            assert_eq!(values(&back, name), values(&batch, name), "{name}");
        }
    }

    #[test]
    fn any_numbers_come_back() {
        let numbers = [i64::MAX, NULL_I64 + 1, NULL_I64, 0, -1, 1];
        let mut rows = WaitRows::default();
        for ts_ns in numbers.into_iter().filter(|ts| *ts != NULL_I64) {
            for (woken_at_ns, dur_ns) in numbers.into_iter().flat_map(|a| numbers.map(|b| (a, b))) {
                rows.push(WaitRow {
                    ts_ns,
                    dur_ns,
                    woken_at_ns,
                    ..WaitRow::default()
                });
            }
        }
        let batch = rows.into_batch(StringTable::new());
        let back = restored(stored(&batch));
        assert_eq!(values(&back, "woken_at_ns"), values(&batch, "woken_at_ns"));
    }

    #[test]
    fn a_wait_that_was_woken_late() {
        let mut rows = WaitRows::default();
        for (dur_ns, woken_at_ns, run_queue_ns) in [(50, 130, 20), (NULL_I64, 130, NULL_I64)] {
            rows.push(WaitRow {
                ts_ns: 100,
                dur_ns,
                woken_at_ns,
                run_queue_ns,
                ..WaitRow::default()
            });
        }
        let batch = rows.into_batch(StringTable::new());
        let stored = stored(&batch);
        assert_eq!(values(&stored, "woken_at_ns"), [0, 30]);
        assert_eq!(values(&restored(stored), "woken_at_ns"), [130, 130]);
        assert_eq!(columns(&WAITS).len(), 1);
    }
}
