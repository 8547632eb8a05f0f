//! A map that does not grow without end.

use hashbrown::HashMap;
use std::hash::Hash;

/// Keys that a rule follows at the same time.
const CAPACITY: usize = 1 << 16;

/// A map of what a rule follows (files, threads, paths). When it is full, the half
/// that weighs less is forgotten.
#[derive(Debug)]
pub struct Bounded<K, V> {
    map: HashMap<K, V>,
    weight: fn(&V) -> u64,
    capacity: usize,
}

impl<K: Hash + Eq + Copy, V: Default> Default for Bounded<K, V> {
    /// A map whose values weigh the same.
    fn default() -> Self {
        Self::new(|_| 0)
    }
}

impl<K: Hash + Eq + Copy, V: Default> Bounded<K, V> {
    /// An empty map; `weight` is the importance of a value.
    pub fn new(weight: fn(&V) -> u64) -> Self {
        Self {
            map: HashMap::new(),
            weight,
            capacity: CAPACITY,
        }
    }

    /// The value of a key, a new one when it has none.
    pub fn entry(&mut self, key: K) -> &mut V {
        if self.map.len() >= self.capacity && !self.map.contains_key(&key) {
            self.make_room();
        }
        self.map.entry(key).or_default()
    }

    fn make_room(&mut self) {
        let mut weights: Vec<u64> = self.map.values().map(self.weight).collect();
        let middle = weights.len() / 2;
        let (_, median, _) = weights.select_nth_unstable(middle);
        let (median, weight) = (*median, self.weight);
        let mut spare = self.capacity / 4;
        // Of many that weigh the same, a part stays.
        self.map.retain(|_, value| {
            let own = weight(value);
            own > median
                || own == median && {
                    spare = spare.saturating_sub(1);
                    spare > 0
                }
        });
    }

    /// The value of a key, if it has one.
    pub fn get(&self, key: &K) -> Option<&V> {
        self.map.get(key)
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.map.get_mut(key)
    }

    /// Forgets a key; returns its value.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        self.map.remove(key)
    }

    /// Whether it has no keys.
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// Keys and values.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.map.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_weighs_most_stays() {
        let mut map: Bounded<u64, u64> = Bounded::new(|v| *v);
        map.capacity = 100;
        for key in 0..10_000 {
            *map.entry(key) = if key % 1000 == 7 { 1000 + key } else { 1 };
        }
        assert!(map.map.len() <= 100);
        for key in (7..10_000).step_by(1000) {
            assert!(map.get_mut(&key).is_some(), "{key}");
        }
    }
}
