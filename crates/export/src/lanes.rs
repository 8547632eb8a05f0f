//! Where slices go that overlap, and when they end.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::hash::Hash;

/// Groups beyond which those without a running slice are forgotten.
const MAX_GROUPS: usize = 1 << 16;

/// Lanes of groups (a thread, the operations of a process). Within a lane slices
/// either lie in one another or one behind the other; one that would overlap
/// gets the next lane.
pub(crate) struct Lanes<K> {
    groups: HashMap<K, Vec<Vec<i64>>>,
    limit: usize,
}

impl<K: Hash + Eq> Default for Lanes<K> {
    fn default() -> Self {
        Lanes {
            groups: HashMap::new(),
            limit: MAX_GROUPS,
        }
    }
}

impl<K: Hash + Eq> Lanes<K> {
    /// The lane, from 0, of a slice of `group`. Slices must come in order of
    /// their starts, of equal ones the longest first. With `nest` a slice may
    /// lie within another.
    pub fn place(&mut self, group: K, start: i64, end: i64, nest: bool) -> usize {
        if self.groups.len() >= self.limit {
            self.groups.retain(|_, lanes| {
                lanes
                    .iter()
                    .any(|stack| stack.iter().any(|end| *end > start))
            });
            self.limit = MAX_GROUPS.max(self.groups.len() * 2);
        }
        let lanes = self.groups.entry(group).or_default();
        for (index, stack) in lanes.iter_mut().enumerate() {
            while stack.last().is_some_and(|top| *top <= start) {
                stack.pop();
            }
            let fits = match stack.last() {
                None => true,
                Some(top) => nest && *top >= end,
            };
            if fits {
                stack.push(end);
                return index;
            }
        }
        lanes.push(vec![end]);
        lanes.len() - 1
    }
}

/// Running slices by end time. If ends are equal, the slice that started last comes first, so that
/// a nested slice ends before the slice that contains it.
pub(crate) struct Ends<T> {
    heap: BinaryHeap<Reverse<Entry<T>>>,
    began: u64,
}

struct Entry<T> {
    end: i64,
    order: Reverse<u64>,
    what: T,
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T> Eq for Entry<T> {}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.end, self.order).cmp(&(other.end, other.order))
    }
}

impl<T> Default for Ends<T> {
    fn default() -> Self {
        Ends {
            heap: BinaryHeap::new(),
            began: 0,
        }
    }
}

impl<T> Ends<T> {
    /// Something that began now ends at `end`.
    pub fn push(&mut self, end: i64, what: T) {
        self.began += 1;
        self.heap.push(Reverse(Entry {
            end,
            order: Reverse(self.began),
            what,
        }));
    }

    /// The next that ends at `time` or before.
    pub fn pop_until(&mut self, time: i64) -> Option<(i64, T)> {
        if self.heap.peek()?.0.end > time {
            return None;
        }
        self.heap
            .pop()
            .map(|Reverse(entry)| (entry.end, entry.what))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_nest_or_get_another_lane() {
        let mut lanes = Lanes::default();
        let mut place = |start, end, nest| lanes.place((), start, end, nest);
        assert_eq!(place(0, 10, true), 0);
        assert_eq!(place(0, 4, true), 0);
        assert_eq!(place(2, 4, true), 0);
        // Ends behind what it began in.
        assert_eq!(place(5, 12, true), 1);
        assert_eq!(place(10, 11, true), 0);
        assert_eq!(place(11, 20, false), 0);
        assert_eq!(place(12, 13, false), 1);
        assert_eq!(place(12, 13, false), 2);
    }

    #[test]
    fn groups_that_have_ended_are_forgotten() {
        let mut lanes = Lanes::default();
        for group in 0..3 * MAX_GROUPS as i64 {
            assert_eq!(lanes.place(group, group, group + 1, true), 0);
        }
        assert!(lanes.groups.len() <= 2 * MAX_GROUPS);
    }

    #[test]
    fn inner_ones_end_first() {
        let mut ends = Ends::default();
        ends.push(10, "outer");
        ends.push(10, "inner");
        ends.push(5, "early");
        assert_eq!(ends.pop_until(4), None);
        let order: Vec<_> = std::iter::from_fn(|| ends.pop_until(10)).collect();
        assert_eq!(order, [(5, "early"), (10, "inner"), (10, "outer")]);
    }
}
