//! Sets of byte ranges of a file.

use std::collections::BTreeMap;

use hashbrown::HashMap;

/// Ranges that are kept exactly; a set with more of them goes over to pages.
const MAX_RANGES: usize = 4096;
/// Ranges that are kept in a row; more of them in a tree.
const FEW: usize = 16;
/// The unit of a set in pages, bytes.
const PAGE: i64 = 4096;

/// Which bytes of a file something happened to. A set of many scattered ranges is
/// kept by pages of 4 KiB from then on: a page counts when its middle is in a
/// range, which is exact for I/O in whole pages.
#[derive(Clone, Debug)]
pub struct Intervals {
    form: Form,
    len: i64,
}

#[derive(Clone, Debug)]
enum Form {
    /// Start and end in order, apart from each other: most files are gone through in one or a few
    /// pieces.
    Few(Vec<(i64, i64)>),
    /// Start to end, apart from each other.
    Ranges(BTreeMap<i64, i64>),
    /// One bit per page, 64 pages per word.
    Pages(HashMap<i64, u64>),
}

impl Default for Intervals {
    fn default() -> Self {
        Self {
            form: Form::Few(Vec::new()),
            len: 0,
        }
    }
}

impl Intervals {
    /// Bytes in the set.
    pub fn len(&self) -> i64 {
        self.len
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether the set is kept by pages, so that its size is not exact.
    pub fn is_coarse(&self) -> bool {
        matches!(self.form, Form::Pages(_))
    }

    /// Empties the set.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Adds a range; returns how many of its bytes were in the set before, of a set
    /// that is kept by pages those in whole pages only.
    pub fn insert(&mut self, start: i64, end: i64) -> i64 {
        if start >= end {
            return 0;
        }
        let before = self.len;
        match &mut self.form {
            Form::Few(ranges) => {
                let (mut from, mut to) = (start, end);
                // Most begin where the last one ends, or behind it.
                let first = match ranges.last() {
                    Some((_, last)) if *last < start => ranges.len(),
                    _ => ranges.iter().take_while(|(_, e)| *e < start).count(),
                };
                let mut covered = 0;
                let mut next = first;
                while let Some(&(s, e)) = ranges.get(next).filter(|(s, _)| *s <= to) {
                    covered += e - s;
                    from = from.min(s);
                    to = to.max(e);
                    next += 1;
                }
                match ranges.get_mut(first).filter(|_| next > first) {
                    Some(range) => {
                        *range = (from, to);
                        ranges.drain(first + 1..next);
                    }
                    None => ranges.insert(first, (from, to)),
                }
                let added = to - from - covered;
                self.len += added;
                if ranges.len() > FEW {
                    self.form = Form::Ranges(ranges.drain(..).collect());
                }
                (end - start) - added.clamp(0, end - start)
            }
            Form::Ranges(ranges) => {
                let (mut from, mut to) = (start, end);
                let mut covered = 0;
                // Among intervals that start before `end`, from the last one backwards.
                while let Some((&s, &e)) = ranges.range(..=to).next_back() {
                    if e < from {
                        break;
                    }
                    ranges.remove(&s);
                    covered += e - s;
                    from = from.min(s);
                    to = to.max(e);
                }
                ranges.insert(from, to);
                self.len += to - from - covered;
                let added = self.len - before;
                if ranges.len() > MAX_RANGES {
                    self.go_coarse();
                }
                (end - start) - added.clamp(0, end - start)
            }
            Form::Pages(pages) => {
                let mut again = 0;
                for page in pages_of(start, end) {
                    let word = pages.entry(page >> 6).or_default();
                    let bit = 1 << (page & 63);
                    if *word & bit == 0 {
                        *word |= bit;
                        self.len += PAGE;
                    } else if page * PAGE >= start && (page + 1) * PAGE <= end {
                        again += PAGE;
                    }
                }
                // For parts of pages it is unknown.
                again
            }
        }
    }

    /// How many bytes of a range are in the set.
    pub fn overlap(&self, start: i64, end: i64) -> i64 {
        if start >= end {
            return 0;
        }
        match &self.form {
            Form::Few(ranges) => ranges
                .iter()
                .map(|&(s, e)| (e.min(end) - s.max(start)).max(0))
                .sum(),
            Form::Ranges(ranges) => {
                let reaching = ranges.range(..start).next_back();
                reaching
                    .into_iter()
                    .chain(ranges.range(start..end))
                    .map(|(&s, &e)| (e.min(end) - s.max(start)).max(0))
                    .sum()
            }
            Form::Pages(pages) => {
                let set = |page: &i64| {
                    let word = pages.get(&(page >> 6)).copied().unwrap_or(0);
                    word >> (page & 63) & 1 == 1
                };
                let whole = pages_of(start, end).filter(set).count();
                (i64::try_from(whole).unwrap_or(i64::MAX))
                    .saturating_mul(PAGE)
                    .min(end - start)
            }
        }
    }

    /// Removes a range; of a set that is kept by pages those whose middle is in it.
    pub fn remove(&mut self, start: i64, end: i64) {
        if start >= end || self.is_empty() {
            return;
        }
        match &mut self.form {
            Form::Few(ranges) => {
                let cut = ranges
                    .iter()
                    .flat_map(|&(s, e)| [(s, e.min(start)), (s.max(end), e)]);
                let cut: Vec<(i64, i64)> = cut.filter(|(s, e)| s < e).collect();
                self.len = cut.iter().map(|(s, e)| e - s).sum();
                *ranges = cut;
            }
            Form::Ranges(ranges) => {
                // Among intervals that start before `end`, from the last one backwards.
                while let Some((&s, &e)) = ranges.range(..end).next_back() {
                    if e <= start {
                        break;
                    }
                    ranges.remove(&s);
                    self.len -= e.min(end) - s.max(start);
                    if e > end {
                        ranges.insert(end, e);
                    }
                    if s < start {
                        ranges.insert(s, start);
                    }
                }
            }
            Form::Pages(pages) => {
                for page in pages_of(start, end) {
                    let bit = 1 << (page & 63);
                    if let Some(word) = pages.get_mut(&(page >> 6)).filter(|word| **word & bit != 0)
                    {
                        *word &= !bit;
                        self.len -= PAGE;
                    }
                }
            }
        }
    }

    /// Removes the bytes at `length` and beyond: the file was truncated.
    pub fn truncate(&mut self, length: i64) {
        match &mut self.form {
            Form::Few(ranges) => {
                ranges.retain_mut(|(start, end)| {
                    *end = (*end).min(length);
                    *start < *end
                });
                self.len = ranges.iter().map(|(start, end)| end - start).sum();
            }
            Form::Ranges(ranges) => {
                let beyond = ranges.split_off(&length);
                self.len -= beyond.iter().map(|(s, e)| e - s).sum::<i64>();
                if let Some(mut last) = ranges.last_entry() {
                    let cut = (*last.get() - length).max(0);
                    *last.get_mut() -= cut;
                    self.len -= cut;
                }
            }
            Form::Pages(pages) => {
                let first = (length + PAGE - 1) / PAGE;
                let mut gone = 0;
                pages.retain(|word, bits| {
                    let keep = match first - (word << 6) {
                        n if n <= 0 => 0,
                        n if n >= 64 => u64::MAX,
                        n => (1 << n) - 1,
                    };
                    gone += i64::from((*bits & !keep).count_ones());
                    *bits &= keep;
                    *bits != 0
                });
                self.len -= gone * PAGE;
            }
        }
    }

    fn go_coarse(&mut self) {
        let Form::Ranges(ranges) = &self.form else {
            return;
        };
        let mut pages: HashMap<i64, u64> = HashMap::new();
        for (&start, &end) in ranges {
            for page in pages_of(start, end) {
                *pages.entry(page >> 6).or_default() |= 1 << (page & 63);
            }
        }
        let count: i64 = pages
            .values()
            .map(|word| i64::from(word.count_ones()))
            .sum();
        self.len = count * PAGE;
        self.form = Form::Pages(pages);
    }
}

/// Pages whose middle is in a range.
fn pages_of(start: i64, end: i64) -> std::ops::Range<i64> {
    let middle = PAGE / 2;
    let first = (start.max(0) + PAGE - 1 - middle) / PAGE;
    let last = (end.max(0) + PAGE - 1 - middle) / PAGE;
    first..last.max(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same, byte by byte.
    fn check(set: &Intervals, bytes: &[bool]) {
        let len = bytes.iter().filter(|b| **b).count();
        assert_eq!(set.len(), len as i64);
        for start in (0..bytes.len()).step_by(7) {
            for end in (start..bytes.len()).step_by(11) {
                let overlap = bytes[start..end].iter().filter(|b| **b).count();
                assert_eq!(set.overlap(start as i64, end as i64), overlap as i64);
            }
        }
    }

    #[test]
    fn a_set_is_its_bytes() {
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..50 {
            let (mut set, mut bytes) = (Intervals::default(), vec![false; 300]);
            for _ in 0..60 {
                let start = random.usize(0..300);
                let end = (start + random.usize(0..20)).min(300);
                if random.u8(0..10) == 0 {
                    set.truncate(start as i64);
                    bytes[start..].fill(false);
                } else if random.u8(0..5) == 0 {
                    set.remove(start as i64, end as i64);
                    bytes[start..end].fill(false);
                } else {
                    let known = bytes[start..end].iter().filter(|b| **b).count();
                    assert_eq!(set.insert(start as i64, end as i64), known as i64);
                    bytes[start..end].fill(true);
                }
            }
            check(&set, &bytes);
        }
    }

    #[test]
    fn parts_of_pages_are_not_taken_for_the_same() {
        let mut set = Intervals::default();
        for record in 0..20_000i64 {
            assert_eq!(set.insert(record * 1000, record * 1000 + 60), 0, "{record}");
        }
        assert!(set.is_coarse());
    }

    #[test]
    fn many_scattered_pages_stay_exact() {
        let mut set = Intervals::default();
        for page in 0..10_000i64 {
            assert_eq!(set.insert(page * 8192, page * 8192 + 4096), 0);
        }
        assert!(set.is_coarse());
        assert_eq!(set.len(), 10_000 * 4096);
        assert_eq!(set.insert(8192, 8192 + 4096), 4096);
        assert_eq!(set.overlap(0, 16384), 8192);
        set.remove(8192, 16384);
        assert_eq!((set.len(), set.overlap(0, 16384)), (9_999 * 4096, 4096));
        set.insert(8192, 12288);
        set.truncate(8192 * 5_000);
        assert_eq!(set.len(), 5_000 * 4096);
        set.clear();
        assert!(set.is_empty());
    }
}
