//! Sums by bucket and key, kept in the order in which these first appear.

use std::hash::Hash;

use fathom_pyramid::{LATENCY_BUCKETS, Latency, Sum, latency_bucket};
use hashbrown::{Equivalent, HashMap};

use super::gather::Bytes;

/// Histogram of nothing.
pub(super) const NO_LATENCY: Latency = [0; LATENCY_BUCKETS];

/// Sums of one key in one bucket.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Entry {
    /// Beginning of the bucket, CLOCK_MONOTONIC nanoseconds.
    pub(super) time: i64,
    /// Number of the key, as the caller gives them.
    pub(super) key: u32,
    pub(super) sum: Sum,
    pub(super) bytes: Bytes,
}

pub(super) struct Row {
    /// Beginning, CLOCK_MONOTONIC nanoseconds.
    pub(super) time: i64,
    pub(super) key: u32,
    /// Duration, nanoseconds; negative values count as 0.
    pub(super) took_ns: i64,
    pub(super) failed: bool,
    /// Less than 0 counts as 0.
    pub(super) bytes: i64,
    /// Whether these were read, and whether they were written: 1 or 0.
    pub(super) ways: Bytes,
}

/// Adds up rows and sums.
pub(super) struct Buckets {
    from: i64,
    shift: u8,
    places: HashMap<(u32, u32), usize>,
    /// The last key looked up.
    last: ((u32, u32), usize),
    entries: Vec<Entry>,
    /// Of each entry, if asked for.
    latencies: Option<Vec<Latency>>,
}

impl Buckets {
    /// Buckets of 2^`shift` ns, the first of which begins at `from`.
    pub(super) fn new(from: i64, shift: u8, latency: bool) -> Self {
        Self {
            from,
            shift,
            places: HashMap::new(),
            last: ((0, 0), usize::MAX),
            entries: Vec::new(),
            latencies: latency.then(Vec::new),
        }
    }

    /// Adds a row, which begins in the window.
    pub(super) fn row(&mut self, row: &Row) {
        let place = self.place(row.time, row.key);
        let ns = row.took_ns.max(0);
        let bytes = row.bytes.max(0) as u64;
        if let Some(entry) = self.entries.get_mut(place) {
            entry.sum.merge(&Sum {
                count: 1,
                errors: u64::from(row.failed),
                bytes,
                time_ns: ns as u64,
                max_ns: ns as u64,
            });
            entry.bytes.read += row.ways.read * bytes;
            entry.bytes.written += row.ways.written * bytes;
        }
        if let Some(histogram) = self.latencies.as_mut().and_then(|l| l.get_mut(place))
            && let Some(n) = histogram.get_mut(latency_bucket(ns))
        {
            *n = n.saturating_add(1);
        }
    }

    /// Adds sums of rows that begin in the window.
    pub(super) fn merge(&mut self, time: i64, key: u32, sum: &Sum, latency: &Latency) {
        let place = self.place(time, key);
        if let Some(entry) = self.entries.get_mut(place) {
            entry.sum.merge(sum);
        }
        if let Some(mine) = self.latencies.as_mut().and_then(|l| l.get_mut(place)) {
            for (mine, more) in mine.iter_mut().zip(latency) {
                *mine = mine.saturating_add(*more);
            }
        }
    }

    /// The sums of a key in the bucket that starts at `time`.
    pub(super) fn get(&self, time: i64, key: u32) -> Option<(&Entry, &Latency)> {
        self.at(*self.places.get(&(self.bucket(time), key))?)
    }

    /// All entries with their histograms.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&Entry, &Latency)> {
        (0..self.entries.len()).filter_map(|place| self.at(place))
    }

    fn at(&self, place: usize) -> Option<(&Entry, &Latency)> {
        let latency = self.latencies.as_ref().and_then(|l| l.get(place));
        Some((self.entries.get(place)?, latency.unwrap_or(&NO_LATENCY)))
    }

    fn bucket(&self, time: i64) -> u32 {
        ((time - self.from) >> self.shift) as u32
    }

    fn place(&mut self, time: i64, key: u32) -> usize {
        let wanted = (self.bucket(time), key);
        let (last, place) = self.last;
        if last == wanted && place != usize::MAX {
            return place;
        }
        let next = self.entries.len();
        let place = *self.places.entry(wanted).or_insert(next);
        if place == next {
            self.entries.push(Entry {
                time: self.from + (i64::from(wanted.0) << self.shift),
                key,
                ..Entry::default()
            });
            if let Some(latencies) = &mut self.latencies {
                latencies.push(NO_LATENCY);
            }
        }
        self.last = (wanted, place);
        place
    }
}

#[derive(Default)]
pub(super) struct Numbers<K> {
    numbers: HashMap<K, u32>,
    keys: Vec<K>,
}

impl<K: Clone + Eq + Hash> Numbers<K> {
    /// The number of a key, which `new` makes when it is met for the first time.
    pub(super) fn of<Q>(&mut self, key: &Q, new: impl FnOnce(&Q) -> K) -> u32
    where
        Q: Hash + Equivalent<K> + ?Sized,
    {
        if let Some(number) = self.numbers.get(key) {
            return *number;
        }
        let number = self.keys.len() as u32;
        let key = new(key);
        self.numbers.insert(key.clone(), number);
        self.keys.push(key);
        number
    }

    pub(super) fn key(&self, number: u32) -> Option<&K> {
        self.keys.get(number as usize)
    }
}
