//! Rows to segments.

use fathom_model::batch::{NULL_I32, NULL_I64};
use fathom_model::tables::{self, Table};
use fathom_model::{Batch, ColumnData, StrId};

use crate::block::{self, Block, Extent};
use crate::cells::{Cell, Cells, Fact, NULL, Names, fit};
use crate::source::{Keys, Source};
use crate::sum::latency_bucket;

/// Parts after which it is: fewer than the parts that are merged at a time.
const SEGMENT_PARTS: u64 = 32;
/// Segments of a tier that make one of the next.
const FAN_OUT: u32 = 8;
/// Cells of a dimension while a segment of tier 0 grows.
const OPEN_CELLS: usize = 6 << 10;
/// The same of a higher tier.
const OPEN_CELLS_ABOVE: usize = 8 << 10;
/// Most cells of a stored block.
const BLOCK_CELLS: usize = 4 << 10;
/// Fewest that a budget asks for.
const LEAST_CELLS: usize = 64;
/// Bytes of a segment of tier 0 for each thousand of its parts. Higher tiers
/// come to about a seventh of that.
const BUDGET_PER_MILLE: u64 = 75;
/// Bytes of a cell, until the first were written.
const CELL_BYTES: f64 = 6.0;
/// Buckets of the first segment: 2^16 ns.
const FIRST_SHIFT: u8 = 16;

/// A segment that was closed.
#[derive(Clone, Debug)]
pub struct Segment {
    /// Blocks, ready to be appended to the file.
    pub bytes: Vec<u8>,
}

/// Sums up rows as they are recorded.
pub struct Builder {
    source: &'static Source,
    columns: Columns,
    names: Names,
    tiers: Vec<Tier>,
    /// Parts of the open segment, and of the session.
    first_part: u64,
    next_part: u64,
    part_bytes: u64,
    cell_bytes: f64,
    /// Rows of batches that belong to no part yet are in the cells too.
    facts: Vec<Fact>,
    keys: Vec<i64>,
}

/// Where the columns stand in a batch.
struct Columns {
    time: usize,
    bytes: Option<usize>,
    error: Option<usize>,
    /// Of each dimension the key and the duration.
    dimensions: Vec<(KeyColumns, usize)>,
}

#[derive(Clone, Copy)]
enum KeyColumns {
    Text(usize),
    TextAtZero(usize, usize),
    Int(usize),
    Pair(usize, usize),
}

/// Cells of segments of one tier that are not closed.
struct Tier {
    /// One a dimension.
    cells: Vec<Cells>,
    /// Cells of the segments that went in, a dimension.
    fed: Vec<usize>,
    segments: u32,
    extent: Extent,
}

impl Tier {
    fn new(source: &Source, number: usize) -> Self {
        let limit = if number == 0 {
            OPEN_CELLS
        } else {
            OPEN_CELLS_ABOVE
        };
        Self {
            cells: source
                .dimensions
                .iter()
                .map(|_| Cells::new(FIRST_SHIFT, limit))
                .collect(),
            fed: vec![0; source.dimensions.len()],
            segments: 0,
            extent: Extent::NONE,
        }
    }
}

impl Builder {
    /// For the rows of `source`, from part `first_part` on. `None` when the
    /// table or a column does not exist.
    pub fn new(source: &'static Source, first_part: u64) -> Option<Self> {
        let table = tables::table(source.table)?;
        let keys = |keys: &Keys| {
            Some(match *keys {
                Keys::Text(name) => KeyColumns::Text(column(table, name)?),
                Keys::TextAtZero(name, zero) => {
                    KeyColumns::TextAtZero(column(table, name)?, column(table, zero)?)
                }
                Keys::Int(name) => KeyColumns::Int(column(table, name)?),
                Keys::Pair(a, b) => KeyColumns::Pair(column(table, a)?, column(table, b)?),
            })
        };
        let dimensions = source
            .dimensions
            .iter()
            .map(|d| Some((keys(&d.keys)?, column(table, d.duration)?)));
        // A column that is named must be there.
        let optional = |name: Option<&str>| match name {
            Some(name) => column(table, name).map(Some),
            None => Some(None),
        };
        Some(Self {
            source,
            columns: Columns {
                time: column(table, source.time)?,
                bytes: optional(source.bytes)?,
                error: optional(source.error)?,
                dimensions: dimensions.collect::<Option<_>>()?,
            },
            names: Names::default(),
            tiers: vec![Tier::new(source, 0)],
            first_part,
            next_part: first_part,
            part_bytes: 0,
            cell_bytes: CELL_BYTES,
            facts: Vec::new(),
            keys: Vec::new(),
        })
    }

    /// Numbers of the columns that [`Builder::push`] looks at, in the table's
    /// order; the others may be empty.
    pub fn columns(&self) -> Vec<usize> {
        let c = &self.columns;
        let mut all = vec![c.time];
        all.extend(c.bytes.into_iter().chain(c.error));
        for (keys, duration) in &c.dimensions {
            all.push(*duration);
            match *keys {
                KeyColumns::Text(a) | KeyColumns::Int(a) => all.push(a),
                KeyColumns::Pair(a, b) | KeyColumns::TextAtZero(a, b) => all.extend([a, b]),
            }
        }
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Adds the rows of a batch of the source's table; other batches are left
    /// out. They belong to the part that is closed next.
    pub fn push(&mut self, batch: &Batch) {
        let c = &self.columns;
        let (true, Some(time)) = (
            batch.table.name == self.source.table,
            numbers(batch, c.time),
        ) else {
            return;
        };
        let bytes = c.bytes.and_then(|i| numbers(batch, i));
        let error = c.error.and_then(|i| match batch.columns.get(i) {
            Some(ColumnData::Str(ids)) => Some(ids.as_slice()),
            _ => None,
        });
        if bytes.is_some() != c.bytes.is_some() || error.is_some() != c.error.is_some() {
            return;
        }
        let Some(tier) = self.tiers.first_mut() else {
            return;
        };
        tier.extent.rows += time.len() as u64;
        for t in time {
            tier.extent.first_at_ns = tier.extent.first_at_ns.min(*t);
            tier.extent.last_at_ns = tier.extent.last_at_ns.max(*t);
        }
        let mut summed = None;
        for ((keys, column), cells) in c.dimensions.iter().zip(&mut tier.cells) {
            let Some(duration) = numbers(batch, *column) else {
                continue;
            };
            if summed != Some(*column) {
                summed = Some(*column);
                fill_facts(time, duration, bytes, error, &mut self.facts);
            }
            if !fill_keys(*keys, batch, &mut self.names, &mut self.keys) {
                continue;
            }
            // Of a column that is null in every row.
            self.keys.resize(time.len(), NULL);
            for (fact, key) in self.facts.iter().zip(&self.keys) {
                cells.at(fact.at_ns, *key).add(fact);
            }
        }
    }

    /// Says that part `number`, of `bytes` bytes, has all rows that were pushed
    /// since the part before. Returns a segment when one is full.
    pub fn part(&mut self, number: u64, bytes: u64) -> Option<Segment> {
        self.next_part = number + 1;
        self.part_bytes += bytes;
        let rows = self.tiers.first().map_or(0, |t| t.extent.rows);
        let full =
            rows >= self.source.segment_rows || self.next_part - self.first_part >= SEGMENT_PARTS;
        full.then(|| self.close(false)).flatten()
    }

    /// Forgets the rows that no segment has yet: some of them were not stored.
    /// Returns the segments above, which end here, so that ranges have no holes.
    pub fn discard(&mut self, next_part: u64) -> Option<Segment> {
        if let Some(tier) = self.tiers.first_mut() {
            for cells in &mut tier.cells {
                cells.take();
            }
            tier.extent = Extent::NONE;
        }
        let segment = self.close(true);
        (self.first_part, self.next_part, self.part_bytes) = (next_part, next_part, 0);
        segment
    }

    /// Closes all that is open: nothing more will come.
    pub fn finish(&mut self) -> Option<Segment> {
        self.close(true)
    }

    fn close(&mut self, all: bool) -> Option<Segment> {
        let mut bytes = Vec::new();
        if let Some(tier) = self.tiers.first_mut()
            && tier.extent.rows > 0
            && self.next_part > self.first_part
        {
            tier.extent.first_part = self.first_part;
            tier.extent.last_part = self.next_part - 1;
            tier.segments = FAN_OUT;
        }
        let dimensions = self.source.dimensions.len().max(1);
        let budget = (self.part_bytes * BUDGET_PER_MILLE / 1000) as f64 / self.cell_bytes;
        let budget = (budget as usize / dimensions).clamp(LEAST_CELLS, BLOCK_CELLS);
        let mut number = 0;
        while let Some(tier) = self.tiers.get_mut(number) {
            if tier.segments < FAN_OUT && !(all && tier.segments > 0) {
                if all && number + 1 < self.tiers.len() {
                    number += 1;
                    continue;
                }
                break;
            }
            let extent = std::mem::replace(&mut tier.extent, Extent::NONE);
            let single = number > 0 && tier.segments == 1;
            let fed_by = tier.segments.max(1) as usize;
            tier.segments = 0;
            let mut closed: Vec<(u8, Vec<Cell>)> = Vec::with_capacity(dimensions);
            let mut fed = Vec::with_capacity(dimensions);
            let (start, mut stored) = (bytes.len(), 0);
            for (dimension, cells) in tier.cells.iter_mut().enumerate() {
                let limit = match number {
                    0 => budget,
                    // As many as one of its parts has.
                    _ => (tier.fed[dimension] / fed_by).clamp(LEAST_CELLS, BLOCK_CELLS),
                };
                // All keys go on to the next tier, those with the most time into
                // the block.
                let (shift, all_cells) = cells.take();
                let (kept_shift, kept) = fit(shift, all_cells.clone(), limit);
                let block = Block {
                    tier: number as u8,
                    dimension: dimension as u8,
                    shift: kept_shift,
                    last: dimension + 1 == dimensions,
                    extent,
                };
                let is_text = matches!(
                    self.source.dimensions.get(dimension).map(|d| &d.keys),
                    Some(Keys::Text(_) | Keys::TextAtZero(..))
                );
                stored += kept.len();
                // A segment of one segment would say what that says already.
                if !single {
                    let names = is_text.then_some(&self.names);
                    block::encode(&block, &kept, names, &mut bytes);
                }
                fed.push(kept.len());
                closed.push((shift, all_cells));
                tier.fed[dimension] = 0;
            }
            if number == 0 && stored > 256 {
                let measured = (bytes.len() - start) as f64 / stored as f64;
                self.cell_bytes = (self.cell_bytes + measured) / 2.0;
            }
            number += 1;
            let exists = self.tiers.len() > number;
            // There is nothing above the last tier when all is closed.
            if all && !exists {
                break;
            }
            if !exists {
                self.tiers.push(Tier::new(self.source, number));
            }
            if let Some(next) = self.tiers.get_mut(number) {
                next.extent.add(&extent);
                next.segments += 1;
                for (dimension, (shift, cells)) in closed.iter().enumerate() {
                    next.fed[dimension] += fed.get(dimension).copied().unwrap_or(0);
                    next.cells[dimension].merge(*shift, cells);
                }
            }
        }
        self.first_part = self.next_part;
        self.part_bytes = 0;
        (!bytes.is_empty()).then_some(Segment { bytes })
    }
}

fn column(table: &Table, name: &str) -> Option<usize> {
    table.columns.iter().position(|c| c.name == name)
}

/// A column of 64-bit numbers.
fn numbers(batch: &Batch, column: usize) -> Option<&[i64]> {
    match batch.columns.get(column) {
        Some(ColumnData::I64(values)) => Some(values),
        _ => None,
    }
}

/// The facts of each row. A column that is null in all rows has no values: the facts stay 0.
fn fill_facts(
    time: &[i64],
    duration: &[i64],
    bytes: Option<&[i64]>,
    error: Option<&[StrId]>,
    facts: &mut Vec<Fact>,
) {
    facts.clear();
    facts.extend(time.iter().map(|at_ns| Fact {
        at_ns: *at_ns,
        ..Fact::default()
    }));
    for (fact, duration) in facts.iter_mut().zip(duration) {
        fact.ns = (*duration).max(0) as u64;
        fact.latency = latency_bucket(*duration) as u8;
    }
    for (fact, bytes) in facts.iter_mut().zip(bytes.unwrap_or_default()) {
        fact.bytes = (*bytes).max(0) as u64;
    }
    for (fact, error) in facts.iter_mut().zip(error.unwrap_or_default()) {
        fact.failed = *error != StrId::NULL;
    }
}

/// The keys of all rows, none when they are null in all; false when the columns are of another type.
fn fill_keys(columns: KeyColumns, batch: &Batch, names: &mut Names, keys: &mut Vec<i64>) -> bool {
    keys.clear();
    let get = |i: usize| batch.columns.get(i);
    match columns {
        KeyColumns::Text(a) => {
            let Some(ColumnData::Str(ids)) = get(a) else {
                return false;
            };
            text_keys(batch, ids, names, keys);
        }
        KeyColumns::TextAtZero(a, zero) => {
            let (Some(ColumnData::Str(ids)), Some(ColumnData::I32(zero))) = (get(a), get(zero))
            else {
                return false;
            };
            text_keys(batch, ids, names, keys);
            for (key, zero) in keys.iter_mut().zip(zero) {
                if *zero != 0 {
                    *key = NULL;
                }
            }
        }
        KeyColumns::Int(a) => {
            let Some(ColumnData::I64(values)) = get(a) else {
                return false;
            };
            debug_assert_eq!(NULL, NULL_I64);
            keys.extend_from_slice(values);
        }
        KeyColumns::Pair(a, b) => {
            let (Some(ColumnData::I32(a)), Some(ColumnData::I32(b))) = (get(a), get(b)) else {
                return false;
            };
            keys.extend(a.iter().zip(b).map(|(a, b)| match *a {
                NULL_I32 => NULL,
                a => i64::from(a) << 32 | i64::from(*b as u32),
            }));
        }
    }
    true
}

fn text_keys(batch: &Batch, ids: &[StrId], names: &mut Names, keys: &mut Vec<i64>) {
    let mut numbers = vec![i64::MAX; batch.strings.len() + 1];
    keys.extend(ids.iter().map(|id| {
        let Some(number) = numbers
            .get_mut(id.0 as usize)
            .filter(|_| *id != StrId::NULL)
        else {
            return NULL;
        };
        if *number == i64::MAX {
            *number = names.number(batch.strings.get(*id));
        }
        *number
    }));
}

#[cfg(test)]
mod tests {
    use fathom_model::StringTable;
    use fathom_model::tables::{SyscallRow, SyscallRows};

    use super::*;
    use crate::source::SYSCALLS;

    /// Calls on no file that have not returned, as rows with nulls or without.
    fn calls(nulls: bool) -> Batch {
        let mut strings = StringTable::new();
        let mut rows = SyscallRows::default();
        for n in 0..100 {
            let row = SyscallRow {
                rid: n,
                ts_ns: n * 1000,
                pid: 7,
                tid: 7,
                syscall: strings.intern(b"socket"),
                ..SyscallRow::default()
            };
            match nulls {
                true => rows.push(row),
                false => rows.extend_ragged(&[row]),
            }
        }
        if !nulls {
            rows.level();
            assert!(rows.file_id.is_empty() && rows.dur_ns.is_empty() && rows.errno.is_empty());
        }
        rows.into_batch(strings)
    }

    #[test]
    fn rows_count_whose_column_is_null_in_all() {
        let segment = |batch: &Batch| {
            let mut builder = Builder::new(&SYSCALLS, 0)?;
            builder.push(batch);
            builder.part(0, 1000);
            builder.finish().map(|segment| segment.bytes)
        };
        let expected = segment(&calls(true));
        assert!(expected.as_ref().is_some_and(|bytes| bytes.len() > 50));
        assert!(segment(&calls(false)) == expected);
    }
}
