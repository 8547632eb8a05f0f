//! How much of the clock intervals cover together.

use std::collections::VecDeque;

/// Intervals that are kept apart; of more the older half is summed up.
const CAPACITY: usize = 1024;

/// Intervals that come nearly in the order of their ends. One that reaches back behind what was
/// summed up counts from there on: the sum may be too small then, never too large.
#[derive(Clone, Debug, Default)]
pub(crate) struct Covered {
    /// In order, apart from each other.
    recent: VecDeque<(i64, i64)>,
    /// Of those before.
    summed_ns: i64,
    summed_until: Option<i64>,
}

impl Covered {
    pub(crate) fn add(&mut self, from: i64, to: i64) {
        let mut from = self.summed_until.map_or(from, |until| from.max(until));
        let mut to = to;
        if to <= from {
            return;
        }
        // Most begin in the last one or behind it.
        let has_room = self.recent.len() < CAPACITY;
        match self.recent.back_mut() {
            Some((start, end)) if *start <= from && from <= *end => {
                *end = to.max(*end);
                return;
            }
            Some((_, end)) if *end < from && has_room => {
                self.recent.push_back((from, to));
                return;
            }
            _ => {}
        }
        let first = self.recent.partition_point(|(_, end)| *end < from);
        let behind = self.recent.partition_point(|(start, _)| *start <= to);
        if first < behind {
            if let Some((start, _)) = self.recent.get(first) {
                from = from.min(*start);
            }
            if let Some((_, end)) = self.recent.get(behind - 1) {
                to = to.max(*end);
            }
            self.recent.drain(first..behind);
        }
        self.recent.insert(first, (from, to));
        if self.recent.len() > CAPACITY {
            for (start, end) in self.recent.drain(..CAPACITY / 2) {
                self.summed_ns += end - start;
                self.summed_until = Some(end);
            }
        }
    }

    pub(crate) fn ns(&self) -> i64 {
        let recent: i64 = self.recent.iter().map(|(start, end)| end - start).sum();
        self.summed_ns.saturating_add(recent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_overlaps_counts_once() {
        let mut covered = Covered::default();
        for (from, to) in [(0, 10), (20, 30), (5, 12), (40, 50), (11, 25), (60, 60)] {
            covered.add(from, to);
        }
        assert_eq!(covered.ns(), 30 + 10);
        covered.add(0, 100);
        assert_eq!(covered.ns(), 100);
    }

    #[test]
    fn many_intervals_stay_few_and_keep_their_sum() {
        let mut covered = Covered::default();
        for i in 0..100_000 {
            covered.add(i * 10, i * 10 + 3);
        }
        assert_eq!(covered.ns(), 300_000);
        assert!(covered.recent.len() <= CAPACITY);
        // Another thread was in one call all the time.
        covered.add(0, 1_000_000);
        assert!(covered.ns() > 300_000 && covered.ns() <= 1_000_000);
    }
}
