//! Distinct integers of a column chunk.

use std::hash::{BuildHasher, RandomState};

/// Most entries of a dictionary.
pub(crate) const MAX_ENTRIES: usize = 1 << 16;

const EMPTY: u32 = u32::MAX;

/// Numbers distinct integers from 0 in order of first use: a hash table with
/// open addressing that is never more than a quarter full.
pub(crate) struct IntDict {
    /// Value and number; [`EMPTY`] marks a free slot.
    slots: Vec<(i64, u32)>,
    values: Vec<i64>,
    /// Random, because traced programs choose the values: no program can prepare values that
    /// collide.
    factor: u64,
    shift: u32,
}

impl IntDict {
    pub(crate) fn new() -> Self {
        let factor = RandomState::new().hash_one(0u8) | 1;
        let mut dict = Self {
            slots: Vec::new(),
            values: Vec::new(),
            factor,
            shift: 0,
        };
        dict.rebuild(64);
        dict
    }

    /// The distinct values in order.
    pub(crate) fn values(&self) -> &[i64] {
        &self.values
    }

    /// Forgets all values.
    pub(crate) fn clear(&mut self) {
        self.truncate(0);
    }

    /// Forgets all values but the first `len`.
    pub(crate) fn truncate(&mut self, len: usize) {
        if len < self.values.len() {
            self.values.truncate(len);
            self.rebuild((8 * len).next_power_of_two().max(64));
        }
    }

    /// The number of `value`; `None` when it is new and the dictionary full.
    #[inline]
    pub(crate) fn index(&mut self, value: i64) -> Option<u32> {
        let mask = self.slots.len() - 1;
        let mut at = self.home(value);
        loop {
            let (key, index) = self.slots[at];
            if index == EMPTY {
                return self.insert(value, at);
            }
            if key == value {
                return Some(index);
            }
            at = (at + 1) & mask;
        }
    }

    #[inline]
    fn home(&self, value: i64) -> usize {
        ((value as u64).wrapping_mul(self.factor) >> self.shift) as usize
    }

    #[cold]
    fn insert(&mut self, value: i64, at: usize) -> Option<u32> {
        if self.values.len() >= MAX_ENTRIES {
            return None;
        }
        let index = self.values.len() as u32;
        self.values.push(value);
        if 4 * self.values.len() > self.slots.len() {
            self.rebuild(4 * self.slots.len());
        } else {
            self.slots[at] = (value, index);
        }
        Some(index)
    }

    fn rebuild(&mut self, slots: usize) {
        self.slots.clear();
        self.slots.resize(slots, (0, EMPTY));
        self.shift = 64 - slots.trailing_zeros();
        let mask = slots - 1;
        for index in 0..self.values.len() {
            let value = self.values[index];
            let mut at = self.home(value);
            while self.slots[at].1 != EMPTY {
                at = (at + 1) & mask;
            }
            self.slots[at] = (value, index as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_first_use_and_survive_growth() {
        let mut dict = IntDict::new();
        for round in 0..2 {
            for i in 0..MAX_ENTRIES as i64 {
                assert_eq!(dict.index(i * 4096 - 7), Some(i as u32), "round {round}");
            }
        }
        assert_eq!(dict.index(i64::MAX), None);
        dict.truncate(10);
        assert_eq!(dict.index(3 * 4096 - 7), Some(3));
        assert_eq!(dict.index(i64::MAX), Some(10));
        assert_eq!(dict.values().len(), 11);
    }
}
