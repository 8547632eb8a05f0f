//! Cells of one dimension that still grow.

use std::sync::Arc;

use hashbrown::HashMap;

use crate::sum::{LATENCY_BUCKETS, Latency, Sum};
use crate::{Key, MAX_KEYS};

/// Keys as they are in memory; texts are numbers of a `Names`.
pub(crate) const NULL: i64 = i64::MIN;
/// All other keys of a bucket.
pub(crate) const REST: i64 = i64::MIN + 1;
/// The same, with keys of which the bucket has a part elsewhere.
pub(crate) const REST_CUT: i64 = i64::MIN + 2;

/// Widening a bucket of cells that grow makes it four times as wide.
const STEP: u8 = 2;
/// Widest buckets: about 36 years.
const MAX_SHIFT: u8 = 60;
/// Buckets that are kept, as long as rows are spread over so many, before keys
/// are given up.
const LEAST_BUCKETS: usize = 64;
/// Keys of a bucket that are kept whatever the budget.
const LEAST_KEYS: usize = 8;
/// Entries of the cache of recent cells.
const CACHE: usize = 1 << 10;

/// Texts and their numbers.
#[derive(Default)]
pub(crate) struct Names {
    numbers: HashMap<Arc<str>, i64>,
    names: Vec<Arc<str>>,
}

impl Names {
    /// Of a text, a new one if it has none.
    pub(crate) fn number(&mut self, name: &[u8]) -> i64 {
        let name = String::from_utf8_lossy(name);
        if let Some(number) = self.numbers.get(name.as_ref()) {
            return *number;
        }
        let name: Arc<str> = name.into();
        let number = self.names.len() as i64;
        self.names.push(name.clone());
        self.numbers.insert(name, number);
        number
    }

    /// The meaning of a number.
    pub(crate) fn key(&self, number: i64) -> Key {
        let name = usize::try_from(number).ok().and_then(|n| self.names.get(n));
        name.map_or(Key::Null, |name| Key::Text(name.clone()))
    }
}

/// Sums of one key in one bucket.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub(crate) bucket: i64,
    pub(crate) key: i64,
    pub(crate) sum: Sum,
    pub(crate) latency: Latency,
}

/// The numbers of a row that go into its cells.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fact {
    /// When the row began.
    pub(crate) at_ns: i64,
    /// Duration, 0 if it is null. A row of a damaged capture has any.
    pub(crate) ns: u64,
    /// Bytes moved, 0 if they are null.
    pub(crate) bytes: u64,
    /// Place of the duration in a [`Latency`].
    pub(crate) latency: u8,
    pub(crate) failed: bool,
}

impl Cell {
    #[inline]
    pub(crate) fn add(&mut self, fact: &Fact) {
        let sum = &mut self.sum;
        sum.count += 1;
        sum.errors += u64::from(fact.failed);
        sum.bytes = sum.bytes.saturating_add(fact.bytes);
        sum.time_ns = sum.time_ns.saturating_add(fact.ns);
        sum.max_ns = sum.max_ns.max(fact.ns);
        if let Some(n) = self.latency.get_mut(usize::from(fact.latency)) {
            *n = n.saturating_add(1);
        }
    }

    fn merge(&mut self, other: &Cell) {
        self.sum.merge(&other.sum);
        for (mine, theirs) in self.latency.iter_mut().zip(&other.latency) {
            *mine = mine.saturating_add(*theirs);
        }
    }
}

/// Place of a recently used cell.
#[derive(Clone, Copy)]
struct RecentCell {
    bucket: i64,
    key: i64,
    at: u32,
}

const NOTHING: RecentCell = RecentCell {
    bucket: i64::MIN,
    key: i64::MIN,
    at: u32::MAX,
};

/// Cells, whose buckets widen when there are too many.
pub(crate) struct Cells {
    shift: u8,
    limit: usize,
    cells: Vec<Cell>,
    index: HashMap<(i64, i64), u32>,
    /// By a hash of bucket and key.
    recent: Box<[RecentCell; CACHE]>,
}

impl Cells {
    /// No cells, with buckets of 2^`shift` ns; more than `limit` cells make
    /// them wider.
    pub(crate) fn new(shift: u8, limit: usize) -> Self {
        Self {
            shift,
            limit: limit.max(2 * LEAST_BUCKETS),
            cells: Vec::new(),
            index: HashMap::new(),
            recent: Box::new([NOTHING; CACHE]),
        }
    }

    /// Takes all cells out, with their shift. Buckets go on as narrow, or narrower
    /// if there was room.
    pub(crate) fn take(&mut self) -> (u8, Vec<Cell>) {
        let (shift, cells) = (self.shift, std::mem::take(&mut self.cells));
        let room = cells.len() * 4 < self.limit;
        self.clear(if room {
            shift.saturating_sub(STEP)
        } else {
            shift
        });
        (shift, cells)
    }

    /// Forgets all cells; buckets of 2^`shift` ns from now on.
    fn clear(&mut self, shift: u8) {
        self.cells.clear();
        self.index.clear();
        self.recent.fill(NOTHING);
        self.shift = shift.min(MAX_SHIFT);
    }

    #[inline]
    pub(crate) fn at(&mut self, time: i64, key: i64) -> &mut Cell {
        let bucket = time >> self.shift;
        let hash = (key ^ bucket.wrapping_mul(0x2545_F491_4F6C_DD1D))
            .wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as i64);
        let slot = (hash as u64 >> 32) as usize % CACHE;
        let recent = &self.recent[slot];
        let at = recent.at as usize;
        if recent.bucket == bucket && recent.key == key && at < self.cells.len() {
            return &mut self.cells[at];
        }
        self.find(time, key, slot)
    }

    #[inline(never)]
    fn find(&mut self, time: i64, key: i64, slot: usize) -> &mut Cell {
        if self.cells.len() >= self.limit {
            self.shrink(self.limit * 3 / 4);
        }
        let bucket = time >> self.shift;
        let at = *self.index.entry((bucket, key)).or_insert_with(|| {
            self.cells.push(Cell {
                bucket,
                key,
                sum: Sum::default(),
                latency: [0; LATENCY_BUCKETS],
            });
            self.cells.len() as u32 - 1
        });
        self.recent[slot] = RecentCell { bucket, key, at };
        &mut self.cells[at as usize]
    }

    /// Adds cells with buckets of 2^`shift` ns.
    pub(crate) fn merge(&mut self, shift: u8, cells: &[Cell]) {
        if shift > self.shift {
            self.replace(shift, widened);
        }
        for cell in cells {
            self.at(cell.bucket << shift, cell.key).merge(cell);
        }
    }

    /// Makes at most `limit` cells of them: with wider buckets, and when these
    /// are few already, with fewer keys.
    fn shrink(&mut self, limit: usize) {
        while self.cells.len() > limit {
            let mut buckets: Vec<i64> = self.cells.iter().map(|c| c.bucket).collect();
            buckets.sort_unstable();
            buckets.dedup();
            if buckets.len() > LEAST_BUCKETS && self.shift < MAX_SHIFT {
                self.replace(self.shift + STEP, widened);
            } else {
                let keys = (limit / buckets.len().max(1)).saturating_sub(1).max(1);
                let before = self.cells.len();
                self.replace(self.shift, |cells, _| with_rest(cells, keys, true));
                if self.cells.len() >= before {
                    return;
                }
            }
        }
    }

    /// Puts others in the place of the cells: what `change` makes of them, given by
    /// how many bits buckets widen.
    fn replace(&mut self, shift: u8, change: impl FnOnce(Vec<Cell>, u8) -> Vec<Cell>) {
        let shift = shift.min(MAX_SHIFT);
        let cells = change(std::mem::take(&mut self.cells), shift - self.shift);
        self.clear(shift);
        for (i, cell) in cells.iter().enumerate() {
            self.index.insert((cell.bucket, cell.key), i as u32);
        }
        self.cells = cells;
    }
}

/// Cells with buckets 2^`by` times as wide, sorted by bucket and key.
fn widened(mut cells: Vec<Cell>, by: u8) -> Vec<Cell> {
    for cell in &mut cells {
        cell.bucket >>= by;
    }
    sort(&mut cells);
    cells.dedup_by(|next, kept| {
        let same = (next.bucket, next.key) == (kept.bucket, kept.key);
        if same {
            kept.merge(next);
        }
        same
    });
    cells
}

fn sort(cells: &mut [Cell]) {
    // Mostly they are in order of time already.
    if !cells.is_sorted_by_key(|c| (c.bucket, c.key)) {
        cells.sort_by_cached_key(|c| (c.bucket, c.key));
    }
}

/// At most about `limit` of `cells`, whose buckets are 2^`shift` ns wide, sorted
/// by bucket and key, and their shift: in buckets so wide that they are few
/// enough with [`MAX_KEYS`] keys each.
pub(crate) fn fit(mut shift: u8, mut cells: Vec<Cell>, limit: usize) -> (u8, Vec<Cell>) {
    sort(&mut cells);
    loop {
        let (mut buckets, mut stored, mut most) = (0usize, 0usize, 0usize);
        for bucket in cells.chunk_by(|a, b| a.bucket == b.bucket) {
            buckets += 1;
            most = most.max(bucket.len());
            stored += bucket.len().min(MAX_KEYS + 1);
        }
        let fits = stored <= limit;
        if fits || buckets <= LEAST_BUCKETS || shift >= MAX_SHIFT {
            let keys = if fits {
                MAX_KEYS
            } else {
                (limit / buckets.max(1)).clamp(LEAST_KEYS, MAX_KEYS)
            };
            let kept = if most > keys {
                with_rest(cells, keys, false)
            } else {
                cells
            };
            return (shift, kept);
        }
        // No wider than need be, as cells that still grow are: what a block cannot answer takes
        // eight blocks below it, or all rows.
        cells = widened(cells, 1);
        shift += 1;
    }
}

/// Cells sorted by bucket and key, with at most `most` keys per bucket, those with the most time,
/// and one rest. With `growing`, more rows of these keys may follow.
fn with_rest(mut cells: Vec<Cell>, most: usize, growing: bool) -> Vec<Cell> {
    let is_rest = |c: &Cell| c.key == REST || c.key == REST_CUT;
    cells.sort_unstable_by(|a, b| {
        (a.bucket, !is_rest(a), b.sum.time_ns, a.key).cmp(&(
            b.bucket,
            !is_rest(b),
            a.sum.time_ns,
            b.key,
        ))
    });
    let mut kept: Vec<Cell> = Vec::with_capacity(cells.len());
    let mut rest_at: Option<usize> = None;
    let (mut bucket, mut keys) = (None, 0);
    for cell in cells {
        if bucket != Some(cell.bucket) {
            (bucket, keys, rest_at) = (Some(cell.bucket), 0, None);
        }
        if !is_rest(&cell) && keys < most {
            keys += 1;
            kept.push(cell);
            continue;
        }
        let key = if growing || cell.key == REST_CUT {
            REST_CUT
        } else {
            REST
        };
        match rest_at {
            Some(at) => {
                if key == REST_CUT {
                    kept[at].key = REST_CUT;
                }
                kept[at].merge(&cell);
            }
            None => {
                rest_at = Some(kept.len());
                kept.push(Cell { key, ..cell });
            }
        }
    }
    sort(&mut kept);
    kept
}
