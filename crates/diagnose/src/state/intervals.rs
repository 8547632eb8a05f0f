//! Sets of byte ranges of a file.

use std::collections::BTreeMap;
use std::ops::Range;

use super::pages::Pages;

/// Ranges that are kept exactly; a set with more of them goes over to pages.
const MAX_RANGES: usize = 4096;
/// Ranges that are kept in a row; more of them in a tree.
const FEW: usize = 16;
/// The unit of a set in pages, bytes.
const PAGE: i64 = 4096;
/// A longer range is not kept as bits, bytes.
const LONG: i64 = 64 << 20;
/// Of a longer range a set in pages has the beginning only: holes of a sparse file can be of any length.
const LONGEST: i64 = 64 << 30;

/// Which bytes of a file something happened to. Ranges of whole pages of 4 KiB are kept as bits. A set of
/// many other ranges is kept by pages, too, from then on: a page counts when its middle is in a range.
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
    /// All ranges begin and end with a page.
    Whole(Pages),
    /// Parts of pages are taken for all or nothing.
    Coarse(Pages),
}

/// Whether a range is kept as bits, exactly.
fn is_whole(start: i64, end: i64) -> bool {
    start >= 0 && end - start <= LONG && (start | end) & (PAGE - 1) == 0
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
        matches!(self.form, Form::Coarse(_))
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
        self.keep_parts(start, end);
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
                    let ranges = std::mem::take(ranges);
                    self.form = match ranges.iter().all(|(start, end)| is_whole(*start, *end)) {
                        true => Form::Whole(pages_in(&ranges)),
                        false => Form::Ranges(ranges.into_iter().collect()),
                    };
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
            Form::Whole(pages) => {
                let added = pages.insert(beginning(pages_of(start, end))) * PAGE;
                self.len += added;
                (end - start) - added
            }
            Form::Coarse(pages) => {
                // Of parts of pages it is unknown.
                let whole = (start.max(0) + PAGE - 1) / PAGE..end / PAGE;
                let again = pages.count(whole);
                self.len += pages.insert(beginning(pages_of(start, end))) * PAGE;
                again * PAGE
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
            Form::Whole(pages) => overlap(pages, start, end),
            Form::Coarse(pages) => {
                let bytes = pages.count(pages_of(start, end)).saturating_mul(PAGE);
                bytes.min(end - start)
            }
        }
    }

    /// Removes a range; of a set that is kept by pages those whose middle is in it.
    pub fn remove(&mut self, start: i64, end: i64) {
        if start >= end || self.is_empty() {
            return;
        }
        self.keep_parts(start, end);
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
            Form::Whole(pages) | Form::Coarse(pages) => {
                self.len -= pages.remove(pages_of(start, end)) * PAGE;
            }
        }
    }

    /// Removes the bytes at `length` and beyond: the file was truncated.
    pub fn truncate(&mut self, length: i64) {
        self.keep_parts(length, length);
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
            Form::Whole(pages) | Form::Coarse(pages) => {
                self.len -= pages.truncate((length + PAGE - 1) / PAGE) * PAGE;
            }
        }
    }

    /// Gets ready for a range, which begins or ends within a page of a set of whole ones.
    fn keep_parts(&mut self, start: i64, end: i64) {
        let Form::Whole(pages) = &mut self.form else {
            return;
        };
        if is_whole(start, end) {
            return;
        }
        let rows = pages.rows();
        self.form = match rows.len() > MAX_RANGES {
            true => Form::Coarse(std::mem::take(pages)),
            false => Form::Ranges(
                rows.iter()
                    .map(|(first, end)| (first * PAGE, end * PAGE))
                    .collect(),
            ),
        };
    }

    fn go_coarse(&mut self) {
        let Form::Ranges(ranges) = &self.form else {
            return;
        };
        let ranges: Vec<(i64, i64)> = ranges.iter().map(|(start, end)| (*start, *end)).collect();
        let pages = pages_in(&ranges);
        self.len = pages.len() * PAGE;
        self.form = Form::Coarse(pages);
    }
}

/// The pages whose middle is in one of these ranges.
fn pages_in(ranges: &[(i64, i64)]) -> Pages {
    let mut pages = Pages::default();
    for (start, end) in ranges {
        pages.insert(beginning(pages_of(*start, *end)));
    }
    pages
}

/// Of very many pages the first.
fn beginning(pages: Range<i64>) -> Range<i64> {
    pages.start..pages.end.min(pages.start + LONGEST / PAGE)
}

/// Bytes of a range that are in one of these pages.
fn overlap(pages: &Pages, start: i64, end: i64) -> i64 {
    let (start, end) = (start.max(0), end.max(0));
    let (first, last) = (start / PAGE, (end - 1) / PAGE);
    let part = |page: i64| {
        let bytes = (page * PAGE + PAGE).min(end) - (page * PAGE).max(start);
        pages.count(page..page + 1) * bytes.max(0)
    };
    match first >= last {
        true => part(first),
        false => part(first) + pages.count(first + 1..last) * PAGE + part(last),
    }
}

/// Pages whose middle is in a range.
fn pages_of(start: i64, end: i64) -> Range<i64> {
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

    /// Of a file of 300 pages, in quarters of pages.
    #[test]
    fn a_set_of_whole_pages_is_its_bytes() {
        const QUARTER: i64 = PAGE / 4;
        let mut random = fastrand::Rng::with_seed(2);
        for parts in [0, 0, 1, 1, 20] {
            let (mut set, mut quarters) = (Intervals::default(), vec![false; 1200]);
            let mut was_whole = false;
            for _ in 0..600 {
                let unit = if random.u16(0..1000) < parts { 1 } else { 4 };
                let start = random.usize(0..1200) / unit * unit;
                let end = (start + random.usize(1..40) * unit).min(1200);
                let (from, to) = (start as i64 * QUARTER, end as i64 * QUARTER);
                match random.u8(0..20) {
                    0 => {
                        set.truncate(from + PAGE * 50);
                        quarters
                            .iter_mut()
                            .skip(start + 200)
                            .for_each(|q| *q = false);
                    }
                    1..8 => {
                        set.remove(from, to);
                        quarters[start..end].fill(false);
                    }
                    _ => {
                        let end = end.min(start + 8);
                        let known = quarters[start..end].iter().filter(|q| **q).count();
                        let known = known as i64 * QUARTER;
                        assert_eq!(set.overlap(from, end as i64 * QUARTER), known);
                        assert_eq!(set.insert(from, end as i64 * QUARTER), known);
                        quarters[start..end].fill(true);
                    }
                }
                let len = quarters.iter().filter(|q| **q).count() as i64;
                assert_eq!(set.len(), len * QUARTER);
                was_whole |= matches!(set.form, Form::Whole(_));
            }
            assert!(was_whole && !set.is_coarse());
            assert!(parts > 0 || matches!(set.form, Form::Whole(_)));
            for at in 0..1200i64 {
                let of = set.overlap(at * QUARTER, at * QUARTER + QUARTER);
                assert_eq!(of > 0, quarters[at as usize], "{at}");
            }
        }
    }

    #[test]
    fn long_holes_take_no_room() {
        let mut set = Intervals::default();
        for i in 0..18 {
            assert_eq!(set.insert(i << 55, (i << 55) + (1 << 54)), 0);
        }
        assert_eq!(set.len(), 18 << 54);
        let mut set = Intervals::default();
        for page in 0..100 {
            set.insert(page * 8192, page * 8192 + 4096);
        }
        set.insert(1 << 40, 1 << 50);
        assert_eq!(set.len(), (100 << 12) + (1 << 50) - (1 << 40));
        for part in 0..10_000 {
            set.insert(part * 100, part * 100 + 1);
        }
        assert!(set.is_coarse());
        let words = |set: &Intervals| match &set.form {
            Form::Coarse(pages) => pages.words_kept(),
            _ => 0,
        };
        assert!((1..1 << 19).contains(&words(&set)));
        // Each at once, although they have 2^44 words.
        let before = set.len();
        assert!(set.overlap(0, 1 << 62) >= before - PAGE);
        assert!(set.insert(0, 1 << 62) > 0);
        assert!(words(&set) < 1 << 20);
        set.remove(0, 1 << 62);
        assert!(set.is_empty());
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
        assert!(!set.is_coarse());
        assert_eq!(set.len(), 10_000 * 4096);
        assert_eq!(set.insert(8192, 8192 + 4096), 4096);
        assert_eq!(set.overlap(0, 16384), 8192);
        set.remove(8192, 16384);
        assert_eq!((set.len(), set.overlap(0, 16384)), (9_999 * 4096, 4096));
        set.insert(8192, 12288);
        set.truncate(8192 * 5_000);
        assert_eq!(set.len(), 5_000 * 4096);
        set.insert(100, 200);
        assert!(set.is_coarse());
        assert_eq!(set.len(), 5_000 * 4096);
        set.clear();
        assert!(set.is_empty());
    }
}
