//! Sets of pages of a file.

use std::ops::Range;

use hashbrown::HashMap;

/// Pages in a word.
const BITS: i64 = 64;
/// Words at the beginning of a file that are kept in a row: 1 GiB of it. Of further ones only those are kept that
/// have pages: accesses may be anywhere in a large file.
const NEAR: usize = 4096;

/// Numbers of pages: one bit per page, 64 pages per word.
#[derive(Clone, Debug, Default)]
pub(super) struct Pages {
    /// The first words, as far as there were pages.
    near: Vec<u64>,
    /// Further words by their number.
    far: HashMap<i64, u64>,
}

fn place(word: i64) -> Option<usize> {
    usize::try_from(word).ok().filter(|at| *at < NEAR)
}

fn ones(bits: u64) -> i64 {
    i64::from(bits.count_ones())
}

impl Pages {
    fn bits(&self, word: i64) -> u64 {
        let bits = match place(word) {
            Some(at) => self.near.get(at),
            None => self.far.get(&word),
        };
        bits.copied().unwrap_or(0)
    }

    fn bits_mut(&mut self, word: i64) -> Option<&mut u64> {
        match place(word) {
            Some(at) => self.near.get_mut(at),
            None => self.far.get_mut(&word),
        }
    }

    /// The words that were made, with their numbers.
    fn words(&self) -> impl Iterator<Item = (i64, u64)> {
        let near = (0..).zip(self.near.iter().copied());
        near.chain(self.far.iter().map(|(word, bits)| (*word, *bits)))
    }

    fn words_mut(&mut self) -> impl Iterator<Item = (i64, &mut u64)> {
        let near = (0..).zip(self.near.iter_mut());
        near.chain(self.far.iter_mut().map(|(word, bits)| (*word, bits)))
    }

    /// Adds pages; returns how many of them are new.
    pub(super) fn insert(&mut self, pages: Range<i64>) -> i64 {
        let mut added = 0;
        for (word, mask) in words_of(pages) {
            let bits = match place(word) {
                Some(at) => {
                    if self.near.len() <= at {
                        self.near.resize(at + 1, 0);
                    }
                    self.near.get_mut(at)
                }
                None => Some(self.far.entry(word).or_default()),
            };
            if let Some(bits) = bits {
                added += ones(mask & !*bits);
                *bits |= mask;
            }
        }
        added
    }

    /// Removes pages; returns how many there were.
    pub(super) fn remove(&mut self, pages: Range<i64>) -> i64 {
        let mut removed = 0;
        let mut clear = |bits: &mut u64, mask: u64| {
            removed += ones(mask & *bits);
            *bits &= !mask;
        };
        if self.is_fewer_than(&pages) {
            for (word, bits) in self.words_mut() {
                clear(bits, mask(word, &pages));
            }
        } else {
            for (word, mask) in words_of(pages) {
                if let Some(bits) = self.bits_mut(word) {
                    clear(bits, mask);
                }
            }
        }
        removed
    }

    /// Words that it has in memory.
    pub(super) fn words_kept(&self) -> usize {
        self.near.len() + self.far.len()
    }

    /// Whether there are fewer words than these pages have: holes of a sparse file can be of any length.
    fn is_fewer_than(&self, pages: &Range<i64>) -> bool {
        let words = usize::try_from((pages.end - pages.start) / BITS);
        words.is_ok_and(|words| words > self.words_kept())
    }

    /// Removes the page with this number and those after it; returns how many there were.
    pub(super) fn truncate(&mut self, first: i64) -> i64 {
        let mut removed = 0;
        for (word, bits) in self.words_mut() {
            let keep = below(first - word * BITS);
            removed += ones(*bits & !keep);
            *bits &= keep;
        }
        self.far.retain(|_, bits| *bits != 0);
        let near = usize::try_from(first.max(0) / BITS + 1).unwrap_or(NEAR);
        self.near.truncate(near);
        removed
    }

    /// How many of these pages there are.
    pub(super) fn count(&self, pages: Range<i64>) -> i64 {
        if self.is_fewer_than(&pages) {
            let of = |(word, bits)| ones(bits & mask(word, &pages));
            return self.words().map(of).sum();
        }
        let of = |(word, mask)| ones(mask & self.bits(word));
        words_of(pages).map(of).sum()
    }

    /// How many there are.
    pub(super) fn len(&self) -> i64 {
        self.words().map(|(_, bits)| ones(bits)).sum()
    }

    /// The first page and the one behind the last of each row of pages, in order, apart from each other.
    pub(super) fn rows(&self) -> Vec<(i64, i64)> {
        let mut words: Vec<(i64, u64)> = self.words().filter(|(_, bits)| *bits != 0).collect();
        words.sort_unstable();
        let mut rows: Vec<(i64, i64)> = Vec::new();
        for (word, bits) in words {
            for page in (0..BITS).filter(|bit| bits >> bit & 1 == 1) {
                let page = word * BITS + page;
                match rows.last_mut().filter(|(_, end)| *end == page) {
                    Some((_, end)) => *end += 1,
                    None => rows.push((page, page + 1)),
                }
            }
        }
        rows
    }
}

/// The words that have pages, with the bits of the pages.
fn words_of(pages: Range<i64>) -> impl Iterator<Item = (i64, u64)> {
    let words = match pages.is_empty() {
        true => 0..0,
        false => pages.start.div_euclid(BITS)..(pages.end - 1).div_euclid(BITS) + 1,
    };
    words.map(move |word| (word, mask(word, &pages)))
}

/// The bits of pages in a word.
fn mask(word: i64, pages: &Range<i64>) -> u64 {
    let first = word * BITS;
    below(pages.end - first) & !below(pages.start - first)
}

/// The bits of a word below the one with this number, which may be outside of it.
fn below(bit: i64) -> u64 {
    match bit {
        ..=0 => 0,
        BITS.. => u64::MAX,
        _ => (1 << bit) - 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Pages around the end of the words in a row.
    #[test]
    fn a_set_near_and_far_is_its_pages() {
        let mut random = fastrand::Rng::with_seed(3);
        let border = NEAR as i64 * BITS;
        for _ in 0..20 {
            let (mut set, mut pages) = (Pages::default(), BTreeSet::new());
            for _ in 0..200 {
                let start = match random.u8(0..3) {
                    0 => random.i64(0..500),
                    1 => border - 200 + random.i64(0..400),
                    _ => border * 1000 + random.i64(0..500),
                };
                let range = start..start + random.i64(0..200);
                let known = pages.range(range.clone()).count() as i64;
                assert_eq!(set.count(range.clone()), known);
                match random.u8(0..20) {
                    0 => {
                        let kept = pages.len();
                        pages.retain(|page| *page < start);
                        assert_eq!(set.truncate(start), (kept - pages.len()) as i64);
                    }
                    1..5 => {
                        assert_eq!(set.remove(range.clone()), known);
                        pages.retain(|page| !range.contains(page));
                    }
                    _ => {
                        assert_eq!(set.insert(range.clone()), range.end - range.start - known);
                        pages.extend(range);
                    }
                }
                assert_eq!(set.len(), pages.len() as i64);
            }
            let all = set.rows().into_iter().flat_map(|(first, end)| first..end);
            assert!(all.eq(pages.iter().copied()));
            assert_eq!(set.count(0..i64::MAX / 8), pages.len() as i64);
            assert_eq!(set.remove(0..i64::MAX / 8), pages.len() as i64);
        }
    }
}
