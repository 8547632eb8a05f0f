//! Cells of one dimension that still grow.

use hashbrown::HashMap;

use crate::MAX_KEYS;
use crate::sum::Sum;

/// Keys as they are in memory; texts are numbers of an [`crate::builder::Names`].
pub(crate) const NULL: i64 = i64::MIN;
/// All other keys of a bucket.
pub(crate) const REST: i64 = i64::MIN + 1;
/// The same, with keys of which the bucket has a part elsewhere.
pub(crate) const REST_CUT: i64 = i64::MIN + 2;

/// Widening a bucket makes it four times as wide.
const STEP: u8 = 2;
/// Widest buckets: about 36 years.
const MAX_SHIFT: u8 = 60;
/// Buckets that are kept, as long as rows are spread over so many, before keys
/// are given up.
const LEAST_BUCKETS: usize = 64;
/// Keys of a bucket that are kept whatever the budget.
const LEAST_KEYS: usize = 8;
/// Entries of the cache of recent cells.
const CACHE: usize = 1 << 12;

/// Sums of one key in one bucket.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub(crate) bucket: i64,
    pub(crate) key: i64,
    pub(crate) sum: Sum,
}

/// Where a cell that was used lately lies.
#[derive(Clone, Copy)]
struct Recent {
    bucket: i64,
    key: i64,
    at: u32,
}

const NOTHING: Recent = Recent {
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
    recent: Vec<Recent>,
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
            recent: vec![NOTHING; CACHE],
        }
    }

    pub(crate) fn shift(&self) -> u8 {
        self.shift
    }

    pub(crate) fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// Makes buckets at least as wide.
    fn widen_to(&mut self, shift: u8) {
        if shift > self.shift {
            self.widen(shift);
        }
    }

    /// Forgets all cells; buckets of 2^`shift` ns from now on.
    pub(crate) fn clear(&mut self, shift: u8) {
        self.cells.clear();
        self.index.clear();
        self.recent.fill(NOTHING);
        self.shift = shift.min(MAX_SHIFT);
    }

    /// The cell of `key` at `time`.
    pub(crate) fn at(&mut self, time: i64, key: i64) -> &mut Sum {
        let bucket = time >> self.shift;
        let hash = (key ^ bucket.wrapping_mul(0x2545_F491_4F6C_DD1D))
            .wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as i64);
        let slot = (hash as u64 >> 52) as usize % CACHE;
        let recent = self.recent[slot];
        if recent.bucket == bucket && recent.key == key && (recent.at as usize) < self.cells.len()
        {
            return &mut self.cells[recent.at as usize].sum;
        }
        self.find(time, key, slot)
    }

    #[cold]
    fn find(&mut self, time: i64, key: i64, slot: usize) -> &mut Sum {
        if self.cells.len() >= self.limit {
            self.shrink(self.limit * 3 / 4);
        }
        let bucket = time >> self.shift;
        let at = *self.index.entry((bucket, key)).or_insert_with(|| {
            self.cells.push(Cell {
                bucket,
                key,
                sum: Sum::default(),
            });
            self.cells.len() as u32 - 1
        });
        self.recent[slot] = Recent { bucket, key, at };
        &mut self.cells[at as usize].sum
    }

    /// Adds cells with buckets of 2^`shift` ns.
    pub(crate) fn merge(&mut self, shift: u8, cells: &[Cell]) {
        self.widen_to(shift);
        for cell in cells {
            self.at(cell.bucket << shift, cell.key).merge(&cell.sum);
        }
    }

    /// Makes at most `limit` cells of them: with wider buckets, and when these
    /// are few already, with fewer keys.
    fn shrink(&mut self, limit: usize) {
        let limit = limit.max(LEAST_BUCKETS);
        while self.cells.len() > limit {
            let buckets = self.buckets();
            if buckets > LEAST_BUCKETS && self.shift < MAX_SHIFT {
                self.widen(self.shift + STEP);
            } else {
                let keys = (limit / buckets.max(1)).saturating_sub(1).max(1);
                let before = self.cells.len();
                self.give_up(keys, true);
                if self.cells.len() >= before {
                    return;
                }
            }
        }
    }

    fn buckets(&self) -> usize {
        let mut buckets: Vec<i64> = self.cells.iter().map(|c| c.bucket).collect();
        buckets.sort_unstable();
        buckets.dedup();
        buckets.len()
    }

    fn widen(&mut self, shift: u8) {
        let shift = shift.min(MAX_SHIFT);
        let by = shift - self.shift;
        let old = std::mem::take(&mut self.cells);
        self.clear(shift);
        for cell in old {
            let bucket = cell.bucket >> by;
            match self.index.entry((bucket, cell.key)) {
                hashbrown::hash_map::Entry::Occupied(at) => {
                    self.cells[*at.get() as usize].sum.merge(&cell.sum);
                }
                hashbrown::hash_map::Entry::Vacant(free) => {
                    free.insert(self.cells.len() as u32);
                    self.cells.push(Cell { bucket, ..cell });
                }
            }
        }
    }

    /// Leaves a bucket `most` keys, those with the most time, and puts the
    /// others into its rest. With `growing` more rows of these keys may come.
    fn give_up(&mut self, most: usize, growing: bool) {
        let cells = std::mem::take(&mut self.cells);
        let kept = with_rest(cells, most, growing);
        let shift = self.shift;
        self.clear(shift);
        for (i, cell) in kept.iter().enumerate() {
            self.index.insert((cell.bucket, cell.key), i as u32);
        }
        self.cells = kept;
    }
}

/// At most about `limit` of `cells`, whose buckets are 2^`shift` ns wide, sorted
/// by bucket and key, and their shift: in buckets so wide that they are few
/// enough with [`MAX_KEYS`] keys each.
pub(crate) fn fit(shift: u8, cells: &[Cell], limit: usize) -> (u8, Vec<Cell>) {
    let mut wide = Cells::new(shift, usize::MAX);
    wide.merge(shift, cells);
    let mut most = MAX_KEYS;
    loop {
        let mut keys: HashMap<i64, usize> = HashMap::new();
        for cell in &wide.cells {
            *keys.entry(cell.bucket).or_default() += 1;
        }
        let stored: usize = keys.values().map(|n| (*n).min(MAX_KEYS + 1)).sum();
        if stored <= limit {
            break;
        }
        if keys.len() <= LEAST_BUCKETS || wide.shift >= MAX_SHIFT {
            most = (limit / keys.len().max(1)).clamp(LEAST_KEYS, MAX_KEYS);
            break;
        }
        wide.widen(wide.shift + STEP);
    }
    (wide.shift, with_rest(wide.cells, most, false))
}

/// Cells sorted by bucket and key, with at most `most` keys a bucket and its
/// rest.
pub(crate) fn with_rest(mut cells: Vec<Cell>, most: usize, growing: bool) -> Vec<Cell> {
    // Rests first, then the keys with the most time.
    cells.sort_unstable_by(|a, b| {
        let rest = |c: &Cell| c.key != REST && c.key != REST_CUT;
        (a.bucket, rest(a), b.sum.time_ns, a.key).cmp(&(b.bucket, rest(b), a.sum.time_ns, b.key))
    });
    let mut kept: Vec<Cell> = Vec::with_capacity(cells.len());
    let mut rest_at: Option<usize> = None;
    let (mut bucket, mut keys) = (None, 0);
    for cell in cells {
        if bucket != Some(cell.bucket) {
            (bucket, keys, rest_at) = (Some(cell.bucket), 0, None);
        }
        let is_rest = cell.key == REST || cell.key == REST_CUT;
        if !is_rest && keys < most {
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
                kept[at].sum.merge(&cell.sum);
            }
            None => {
                rest_at = Some(kept.len());
                kept.push(Cell { key, ..cell });
            }
        }
    }
    kept.sort_unstable_by_key(|c| (c.bucket, c.key));
    kept
}
