//! Sums by one key, in bounded memory.

use std::hash::Hash;

use fathom_pyramid::{LATENCY_BUCKETS, Latency, latency_bucket};
use hashbrown::HashMap;

use crate::frame::{Line, Numbers};
use crate::latency::percentile;

/// Keys that are kept; with more, the ones that were idle for longest are forgotten.
/// A key takes about 600 bytes.
pub const MAX_KEYS: usize = 1 << 14;

#[derive(Clone, Copy, Debug, Default)]
pub struct Row {
    /// Whether it failed.
    pub failed: bool,
    pub read: u64,
    pub written: u64,
    /// Duration; `None` when it is not known.
    pub dur_ns: Option<i64>,
    /// How long an interval is, about: it is busy for so long at most.
    pub interval_ns: u64,
}

#[derive(Clone, Debug)]
pub struct Sums {
    numbers: Numbers,
    latency: Latency,
}

impl Default for Sums {
    fn default() -> Self {
        Self {
            numbers: Numbers::default(),
            latency: [0; LATENCY_BUCKETS],
        }
    }
}

impl Sums {
    pub fn add(&mut self, row: &Row) {
        let n = &mut self.numbers;
        n.calls += 1;
        n.errors += u64::from(row.failed);
        n.read_bytes += row.read;
        n.written_bytes += row.written;
        if let Some(dur) = row.dur_ns {
            let ns = u64::try_from(dur).unwrap_or(0);
            n.time_ns += ns;
            n.busy_ns += ns.min(row.interval_ns);
            n.max_ns = n.max_ns.max(ns);
            if let Some(count) = self.latency.get_mut(latency_bucket(dur)) {
                *count = count.saturating_add(1);
            }
        }
    }

    pub fn merge(&mut self, other: &Sums) {
        let (n, o) = (&mut self.numbers, &other.numbers);
        n.calls += o.calls;
        n.errors += o.errors;
        n.read_bytes += o.read_bytes;
        n.written_bytes += o.written_bytes;
        n.time_ns += o.time_ns;
        n.busy_ns += o.busy_ns;
        n.max_ns = n.max_ns.max(o.max_ns);
        for (a, b) in self.latency.iter_mut().zip(other.latency) {
            *a = a.saturating_add(b);
        }
    }

    /// The sums with their percentiles.
    pub fn numbers(&self) -> Numbers {
        let max = self.numbers.max_ns;
        Numbers {
            p50_ns: percentile(&self.latency, 0.5, max),
            p99_ns: percentile(&self.latency, 0.99, max),
            ..self.numbers
        }
    }
}

struct Entry {
    name: String,
    id: Option<i64>,
    now: Sums,
    /// Until the interval began.
    before: Sums,
    /// Number of the interval in which a row came last.
    used: u64,
}

/// Sums by a key.
pub struct Group<K> {
    entries: HashMap<K, Entry>,
    interval: u64,
    forgotten: u64,
}

impl<K> Default for Group<K> {
    fn default() -> Self {
        Self {
            entries: HashMap::new(),
            interval: 0,
            forgotten: 0,
        }
    }
}

impl<K: Eq + Hash + Copy> Group<K> {
    /// Adds a row; `tell` gives name and number of a key that is new.
    pub fn add(&mut self, key: K, row: &Row, tell: impl FnOnce() -> (String, Option<i64>)) {
        let interval = self.interval;
        let entry = self.entries.entry(key).or_insert_with(|| {
            let (name, id) = tell();
            Entry {
                name,
                id,
                now: Sums::default(),
                before: Sums::default(),
                used: interval,
            }
        });
        entry.used = interval;
        entry.now.add(row);
    }

    /// Calls a key by another name from now on.
    pub fn rename(&mut self, key: K, name: impl FnOnce() -> String) {
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.name = name();
        }
    }

    /// The lines of the interval that ends now.
    pub fn cut(&mut self) -> (Vec<Line>, u64) {
        let line = |(entry, now): (&Entry, Sums)| Line {
            name: entry.name.clone(),
            id: entry.id,
            now: now.numbers(),
            total: entry.before.numbers(),
        };
        let lines = self.ended().map(line).collect();
        (lines, self.next_interval())
    }

    /// The same with one line for each name: a journal may be another file for each transaction.
    pub fn cut_by_name(&mut self) -> (Vec<Line>, u64) {
        let mut named: HashMap<String, (Option<i64>, Sums, Sums)> = HashMap::new();
        for (entry, now) in self.ended() {
            let of_name = named.entry_ref(entry.name.as_str());
            let (_, all, before) =
                of_name.or_insert_with(|| (entry.id, Sums::default(), Sums::default()));
            all.merge(&now);
            before.merge(&entry.before);
        }
        let line = |(name, (id, now, total)): (String, (Option<i64>, Sums, Sums))| Line {
            name,
            id,
            now: now.numbers(),
            total: total.numbers(),
        };
        let lines = named.into_iter().map(line).collect();
        (lines, self.next_interval())
    }

    /// The entries, with the sums of the interval that ends now, which are in `before` as well then.
    fn ended(&mut self) -> impl Iterator<Item = (&Entry, Sums)> {
        self.entries.values_mut().map(|entry| {
            let now = std::mem::take(&mut entry.now);
            entry.before.merge(&now);
            (&*entry, now)
        })
    }

    /// Returns how many keys were forgotten so far.
    fn next_interval(&mut self) -> u64 {
        self.interval += 1;
        self.forget();
        self.forgotten
    }

    fn forget(&mut self) {
        let Some(spare) = self.entries.len().checked_sub(MAX_KEYS) else {
            return;
        };
        if spare == 0 {
            return;
        }
        // Half of them, so that not each interval has to look.
        let mut uses: Vec<u64> = self.entries.values().map(|e| e.used).collect();
        let nth = (spare + MAX_KEYS / 2).min(uses.len() - 1);
        let (_, limit, _) = uses.select_nth_unstable(nth);
        let (limit, before) = (*limit, self.entries.len());
        let mut left = nth;
        self.entries.retain(|_, entry| {
            let go = left > 0 && entry.used <= limit;
            left -= usize::from(go);
            !go
        });
        self.forgotten += (before - self.entries.len()) as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(read: u64, dur_ns: i64) -> Row {
        Row {
            read,
            dur_ns: Some(dur_ns),
            ..Row::default()
        }
    }

    #[test]
    fn an_interval_and_all_of_them() {
        let mut group = Group::default();
        let tell = || ("a".to_string(), Some(1));
        group.add(1, &row(10, 100), tell);
        group.add(1, &row(5, 300), tell);
        let (lines, _) = group.cut();
        assert_eq!(lines[0].now, lines[0].total);
        assert_eq!((lines[0].now.calls, lines[0].now.read_bytes), (2, 15));
        assert_eq!((lines[0].now.time_ns, lines[0].now.max_ns), (400, 300));
        group.add(1, &row(1, 50), tell);
        let (lines, _) = group.cut();
        assert_eq!((lines[0].now.calls, lines[0].total.calls), (1, 3));
        assert_eq!((lines[0].now.max_ns, lines[0].total.max_ns), (50, 300));
        assert_eq!(lines[0].now.p99_ns, Some(50));
    }

    #[test]
    fn files_of_one_name_are_one_line() {
        let mut group = Group::default();
        for key in 0..3 {
            group.add(key, &row(10, 100), || ("journal".to_string(), Some(key)));
        }
        group.add(7, &row(1, 5), || ("table".to_string(), Some(7)));
        let (mut lines, _) = group.cut_by_name();
        lines.sort_by(|a, b| a.name.cmp(&b.name));
        let sums: Vec<_> = lines
            .iter()
            .map(|l| (&*l.name, l.now.calls, l.total.read_bytes))
            .collect();
        assert_eq!(sums, [("journal", 3, 30), ("table", 1, 1)]);
        group.add(1, &row(10, 100), || unreachable!());
        let (lines, _) = group.cut_by_name();
        let journal = lines.iter().find(|l| l.name == "journal").unwrap();
        assert_eq!((journal.now.calls, journal.total.calls), (1, 4));
    }

    #[test]
    fn those_idle_for_longest_are_forgotten() {
        let mut group = Group::default();
        for key in 0..MAX_KEYS {
            group.add(key, &row(0, 1), || (String::new(), None));
        }
        assert_eq!(group.cut().1, 0);
        for key in MAX_KEYS..MAX_KEYS + 10 {
            group.add(key, &row(0, 1), || (String::new(), None));
        }
        let (lines, forgotten) = group.cut();
        assert_eq!(lines.len(), MAX_KEYS + 10);
        assert_eq!(forgotten as usize, MAX_KEYS / 2 + 10);
        let (lines, _) = group.cut();
        assert_eq!(lines.len(), MAX_KEYS / 2);
        assert!((MAX_KEYS..MAX_KEYS + 10).all(|key| group.entries.contains_key(&key)));
    }
}
