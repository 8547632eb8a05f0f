//! Cells of segments, and of rows, to buckets of an answer.

use std::collections::BTreeSet;

use fathom_model::syscalls::{Class, Returns, SYSCALLS};
use fathom_pyramid::{Cells, Key, LATENCY_BUCKETS, Latency, Sum};
use hashbrown::{HashMap, HashSet};

use super::filter::passes;
use super::{By, Filter, Request, TOP, class_key, purpose_key};

/// Places of the dimensions in the pyramid of table `syscalls`.
const SYSCALL: usize = 0;
const THREAD: usize = 1;
const FILE: usize = 2;

/// The dimension of the pyramid that answers a request; `None` when it takes
/// several at once.
pub(super) fn dimension(request: &Request) -> Option<usize> {
    let Filter {
        syscall,
        class,
        pid,
        tid,
        file_id,
        owners,
        condition,
        fault_condition: _,
    } = &request.filter;
    if condition.is_some() || owners.as_ref().is_some_and(|owners| !owners.is_timeless()) {
        return None;
    }
    let by = match request.by {
        By::Nothing => None,
        By::Syscall | By::Class | By::Purpose => Some(SYSCALL),
        By::Thread | By::Process => Some(THREAD),
        By::File => Some(FILE),
        // Of another table.
        By::Layer | By::Reason => return None,
    };
    let needed = [
        by,
        (syscall.is_some() || class.is_some()).then_some(SYSCALL),
        (pid.is_some() || tid.is_some() || owners.is_some()).then_some(THREAD),
        file_id.is_some().then_some(FILE),
    ];
    let mut needed = needed.into_iter().flatten();
    let first = needed.next().unwrap_or(SYSCALL);
    needed.all(|n| n == first).then_some(first)
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Bytes {
    /// Out of files.
    pub(super) read: u64,
    /// Into files.
    pub(super) written: u64,
}

/// Which way the bytes of a call go.
fn direction(key: &Key, bytes: u64) -> Bytes {
    let call = match key {
        Key::Text(name) => SYSCALLS.iter().find(|s| s.name == &**name),
        _ => None,
    };
    match call {
        Some(s) if s.class == Class::Data && s.returns == Returns::Bytes => match s.writes() {
            true => Bytes {
                written: bytes,
                read: 0,
            },
            false => Bytes {
                read: bytes,
                written: 0,
            },
        },
        _ => Bytes::default(),
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Faults {
    pub(super) count: u64,
    pub(super) time_ns: u64,
}

/// Sums of a bucket of an answer; exact however many rows there are.
#[derive(Clone, Debug, Default)]
pub(super) struct Total {
    pub(super) sum: Sum,
    pub(super) bytes: Bytes,
    pub(super) faults: Faults,
    /// Time within the bucket, nanoseconds.
    pub(super) busy_ns: u64,
    /// Empty unless asked for.
    pub(super) latency: Vec<u64>,
}

/// The gathered sums: line, bucket, sums.
struct Added {
    line: u32,
    bucket: u32,
    sum: Sum,
    bytes: Bytes,
    faults: Faults,
    /// Whether the pyramid has a rest at this time that can hold none of the key's calls.
    beside_rest: bool,
}

/// The line of what is in a rest.
const REST: u32 = u32::MAX;

/// Adds up cells.
pub(super) struct Gather<'a> {
    request: &'a Request,
    from: i64,
    shift: u8,
    numbers: HashMap<HostKey, u32>,
    keys: Vec<HostKey>,
    /// The host whose sums are added.
    host: u32,
    /// Time in the window of each key, nanoseconds.
    times: Vec<u64>,
    added: Vec<Added>,
    /// Of the same, if asked for.
    latencies: Vec<Latency>,
    /// Time that counts in another bucket than the one where its call began: line, bucket,
    /// nanoseconds more, or less.
    moved: Vec<(u32, u32, i64)>,
    /// How many rests a bucket of a host has: the pyramid's buckets may be narrower.
    rests: HashMap<(u32, u32), u32>,
    /// Whether calls that pass the filter may be in a rest.
    missed: bool,
    /// Whether all gathered sums distinguish reads from writes.
    directions: bool,
    /// Lines and buckets whose longest may be longer.
    longer: HashSet<(u32, u32)>,
}

/// The host of a set, 0 for all together, and a key.
pub(super) type HostKey = (u32, Key);

/// A key, `None` for the rest, and its buckets in order: place, sums, whether some of
/// the key's may be in a rest, or its longest longer.
pub(super) type Line = (Option<HostKey>, Vec<(u32, Total, bool)>);

impl<'a> Gather<'a> {
    pub(super) fn new(request: &'a Request) -> Self {
        Self {
            request,
            from: 0,
            shift: 0,
            numbers: HashMap::new(),
            keys: Vec::new(),
            host: 0,
            times: Vec::new(),
            added: Vec::new(),
            latencies: Vec::new(),
            moved: Vec::new(),
            rests: HashMap::new(),
            missed: false,
            directions: true,
            longer: HashSet::new(),
        }
    }

    /// Says where the first bucket begins and how wide buckets are, before
    /// anything is added; the same again is fine.
    pub(super) fn start(&mut self, from: i64, shift: u8) {
        (self.from, self.shift) = (from, shift);
    }

    /// Adds the cells of a block of the pyramid.
    pub(super) fn add_block(&mut self, cells: &Cells, window: (i64, i64)) {
        let lines: Vec<Option<u32>> = cells.keys().iter().map(|key| self.line(key)).collect();
        let by_call = dimension(self.request) == Some(SYSCALL);
        self.directions &= by_call;
        // As parts of what a key has: one or the other is nothing.
        let ways: Vec<Bytes> = match by_call {
            true => cells.keys().iter().map(|key| direction(key, 1)).collect(),
            false => Vec::new(),
        };
        let is_rest: Vec<bool> = cells
            .keys()
            .iter()
            .map(|key| matches!(key, Key::Rest { .. }))
            .collect();
        let filtered = self.request.filter != Filter::default();
        let without_kept = match filtered {
            true => {
                self.missed |= self.may_miss(cells, &lines, &is_rest, window);
                Vec::new()
            }
            false => self.rests_in(cells, &is_rest, window),
        };
        for (time, key, sum, latency) in cells.in_window(window) {
            let bucket = ((time - self.from) >> self.shift) as u32;
            // A rest holds calls of either way.
            self.directions &= filtered || is_rest.get(key) != Some(&true) || sum.bytes == 0;
            if let Some(Some(line)) = lines.get(key) {
                let way = ways.get(key).copied().unwrap_or_default();
                let bytes = Bytes {
                    read: way.read * sum.bytes,
                    written: way.written * sum.bytes,
                };
                self.add_to(*line, bucket, (sum, bytes), latency);
                if let Some(added) = self.added.last_mut() {
                    added.beside_rest = without_kept.binary_search(&time).is_ok();
                }
            }
        }
    }

    /// Counts the rests of a block. Returns, in order, the times of rests without data of keys that
    /// have a cell of their own.
    fn rests_in(&mut self, cells: &Cells, is_rest: &[bool], window: (i64, i64)) -> Vec<i64> {
        let mut without_kept = Vec::new();
        if !is_rest.contains(&true) {
            return without_kept;
        }
        // Otherwise the requested key combines several keys, some of which may be in it.
        let one_key = matches!(self.request.by, By::Syscall | By::Thread | By::File);
        for (time, key, ..) in cells.in_window(window) {
            if is_rest.get(key) == Some(&true) {
                let bucket = ((time - self.from) >> self.shift) as u32;
                *self.rests.entry((self.host, bucket)).or_default() += 1;
                if one_key && cells.keys().get(key) == Some(&Key::Rest { cut: false }) {
                    without_kept.push(time);
                }
            }
        }
        without_kept
    }

    /// Whether a block has rests with calls that match the filter. A rest that is not cut contains
    /// no data of keys with their own cells: if all requested keys have cells, it contains none of
    /// them.
    fn may_miss(
        &self,
        cells: &Cells,
        lines: &[Option<u32>],
        is_rest: &[bool],
        window: (i64, i64),
    ) -> bool {
        if !is_rest.contains(&true) {
            return false;
        }
        // Keys as the pyramid has them; of other filters one key stands for several.
        let filter = &self.request.filter;
        let asked = match (&filter.class, &filter.pid, &filter.tid, &filter.owners) {
            (None, None, None, None) => {
                let names = filter.syscall.as_ref().map(Vec::len);
                names.or(filter.file_id.as_ref().map(Vec::len)).unwrap_or(0)
            }
            _ => 0,
        };
        let mut rests: HashMap<i64, usize> = HashMap::new();
        for (time, key, ..) in cells.in_window(window) {
            match cells.keys().get(key) {
                Some(Key::Rest { cut: false }) if asked > 0 => {
                    rests.insert(time, 0);
                }
                Some(Key::Rest { .. }) => return true,
                _ => {}
            }
        }
        if rests.is_empty() {
            return false;
        }
        for (time, key, ..) in cells.in_window(window) {
            if let (Some(Some(_)), Some(found)) = (lines.get(key), rests.get_mut(&time)) {
                *found += 1;
            }
        }
        rests.values().any(|found| *found < asked)
    }

    /// Adds a sum of what passes the filter, with a key as the pyramid has it.
    pub(super) fn add(&mut self, time: i64, key: &Key, sum: (&Sum, Bytes), latency: &Latency) {
        let bucket = ((time - self.from) >> self.shift) as u32;
        let line = self.line_of(key);
        self.add_to(line, bucket, sum, Some(latency));
    }

    fn add_to(
        &mut self,
        line: u32,
        bucket: u32,
        (sum, bytes): (&Sum, Bytes),
        latency: Option<&Latency>,
    ) {
        if let Some(time) = self.times.get_mut(line as usize) {
            *time += sum.time_ns;
        }
        self.added.push(Added {
            line,
            bucket,
            sum: *sum,
            bytes,
            faults: Faults::default(),
            beside_rest: false,
        });
        if self.request.latency {
            self.latencies
                .push(latency.copied().unwrap_or([0; LATENCY_BUCKETS]));
        }
    }

    /// Counts time of a key in the buckets that `intervals` are in, up to `end`, rather than where
    /// it began: `began` is the beginning of what took the time. Of a `length` of the intervals all
    /// in all, `time` nanoseconds are counted, which is less than 0 to take some away.
    pub(super) fn spread(
        &mut self,
        key: &Key,
        began: i64,
        (length, time): (i64, i64),
        intervals: &[(i64, i64)],
        end: i64,
    ) {
        let line = self.line_of(key);
        let width = 1i64 << self.shift;
        let share =
            |ns: i64| (i128::from(ns) * i128::from(time) / i128::from(length.max(1))) as i64;
        let mut more = 0;
        // How much of the length is before the interval. Each part gets the difference of two
        // shares of the length before its ends, so that rounding loses nothing of the time.
        let mut before = 0;
        for (from, to) in intervals {
            let (mut at, until) = ((*from).max(self.from), (*to).min(end));
            let reached = |at: i64| share(before + (at - from));
            while at < until {
                let bucket = (at - self.from) >> self.shift;
                let next = (self.from + (bucket + 1) * width).min(until);
                let ns = reached(next) - reached(at);
                more += ns;
                self.moved.push((line, bucket as u32, ns));
                at = next;
            }
            before += to - from;
        }
        // Where it began in the window, all of it was added there.
        if began >= self.from {
            let bucket = ((began - self.from) >> self.shift) as u32;
            self.moved.push((line, bucket, -time));
            more -= time;
        }
        if let Some(total) = self.times.get_mut(line as usize) {
            *total = total.saturating_add_signed(more);
        }
    }

    /// Adds page faults that pass the filter.
    pub(super) fn add_faults(&mut self, time: i64, key: &Key, faults: Faults) {
        let bucket = ((time - self.from) >> self.shift) as u32;
        let line = self.line_of(key);
        self.add_to(line, bucket, (&Sum::default(), Bytes::default()), None);
        if let Some(added) = self.added.last_mut() {
            added.faults = faults;
        }
        if let Some(time) = self.times.get_mut(line as usize) {
            *time += faults.time_ns;
        }
    }

    /// The times of the buckets with sums, in order.
    pub(super) fn times(&self) -> BTreeSet<i64> {
        let time = |added: &Added| self.from + (i64::from(added.bucket) << self.shift);
        self.added.iter().map(time).collect()
    }

    /// Adds what was gathered of a host of a set, 0 for one of all hosts together. `place` gives the time, on
    /// the clock of the set, for the time of a bucket; `None` leaves its sums out.
    pub(super) fn take(&mut self, of: Gather<'_>, host: u32, place: impl Fn(i64) -> Option<i64>) {
        let (from, shift) = (self.from, self.shift);
        let bucket = |bucket: u32| {
            let time = place(of.from + (i64::from(bucket) << of.shift))?;
            Some(((time - from) >> shift) as u32)
        };
        let places: HashMap<u32, Option<u32>> = of
            .added
            .iter()
            .map(|added| (added.bucket, bucket(added.bucket)))
            .collect();
        let place = |bucket: &u32| places.get(bucket).copied().flatten();
        let lines: Vec<u32> = of
            .keys
            .into_iter()
            .map(|(_, key)| self.line_of_host((host, key)))
            .collect();
        let line = |line: u32| lines.get(line as usize).copied().unwrap_or(REST);
        for (i, added) in of.added.into_iter().enumerate() {
            let Some(bucket) = place(&added.bucket) else {
                continue;
            };
            let line = line(added.line);
            if let Some(time) = self.times.get_mut(line as usize) {
                *time += added.sum.time_ns + added.faults.time_ns;
            }
            self.added.push(Added {
                line,
                bucket,
                ..added
            });
            if self.request.latency {
                let latency = of.latencies.get(i).copied();
                self.latencies.push(latency.unwrap_or([0; LATENCY_BUCKETS]));
            }
        }
        for ((_, bucket), count) in &of.rests {
            if let Some(bucket) = place(bucket) {
                *self.rests.entry((host, bucket)).or_default() += count;
            }
        }
        let longer = of.longer.iter();
        let longer = longer.filter_map(|(of, bucket)| Some((line(*of), place(bucket)?)));
        self.longer.extend(longer);
        self.directions &= of.directions;
    }

    /// Says that something was added that did not tell which way its bytes went.
    pub(super) fn without_directions(&mut self) {
        self.directions = false;
    }

    /// Says that the longest of a key in a bucket, to which something was added, may be longer.
    pub(super) fn longest_may_be_longer(&mut self, time: i64, key: &Key) {
        let bucket = ((time - self.from) >> self.shift) as u32;
        let line = self.line_of(key);
        self.longer.insert((line, bucket));
    }

    /// Whether [`Total::bytes`] is known.
    pub(super) fn has_directions(&self) -> bool {
        self.directions
    }

    /// Whether some keys' calls are in a rest of the pyramid's, in none of their own rows.
    pub(super) fn has_rests(&self) -> bool {
        !self.rests.is_empty() && self.request.by != By::Nothing
    }

    /// Whether the filter is for keys that may be in a rest.
    pub(super) fn misses_some(&self) -> bool {
        self.missed
    }

    /// The line of a key of the pyramid; `None` when the filter leaves it out.
    fn line(&mut self, key: &Key) -> Option<u32> {
        let filter = &self.request.filter;
        if matches!(key, Key::Rest { .. }) && self.request.by != By::Nothing {
            return (*filter == Filter::default()).then_some(REST);
        }
        let passes = match (key, dimension(self.request)) {
            (Key::Text(name), Some(SYSCALL)) => {
                passes(&filter.syscall, &**name)
                    && filter.class.as_ref().is_none_or(|classes| {
                        let class = class_key(key);
                        classes
                            .iter()
                            .any(|c| class == Key::Text(c.as_str().into()))
                    })
            }
            (Key::Int(pair), Some(THREAD)) => {
                let (pid, tid) = ((pair >> 32) as i32, *pair as i32);
                let owners = filter.owners.as_ref();
                passes(&filter.pid, pid)
                    && passes(&filter.tid, tid)
                    && owners.is_none_or(|owners| owners.pass(pid, tid))
            }
            (Key::Null, Some(THREAD)) if filter.pid.is_none() && filter.tid.is_none() => {
                let owners = filter.owners.as_ref();
                owners.is_none_or(|owners| owners.pass_unknown())
            }
            (Key::Int(file), Some(FILE)) => passes(&filter.file_id, *file),
            _ => *filter == Filter::default(),
        };
        passes.then(|| self.line_of(key))
    }

    /// The line of a key of what passes the filter.
    fn line_of(&mut self, key: &Key) -> u32 {
        let key = match (self.request.by, key) {
            (By::Nothing, _) => Key::Null,
            (_, Key::Rest { .. }) => return REST,
            (By::Class, key) => class_key(key),
            (By::Purpose, key) => purpose_key(key),
            (By::Process, Key::Int(pair)) => Key::Int(pair >> 32),
            (_, key) => key.clone(),
        };
        self.line_of_host((self.host, key))
    }

    fn line_of_host(&mut self, key: HostKey) -> u32 {
        if let Some(line) = self.numbers.get(&key) {
            return *line;
        }
        let line = self.keys.len() as u32;
        self.numbers.insert(key.clone(), line);
        self.keys.push(key);
        self.times.push(0);
        line
    }

    /// The keys with the most time, and the rest as `None`: buckets in order, with
    /// their sums and whether some of the key's may be in a rest.
    pub(super) fn finish(self) -> Vec<Line> {
        let mut order: Vec<usize> = (0..self.keys.len()).collect();
        let time = |i: &usize| std::cmp::Reverse(self.times[*i]);
        order.sort_by(|a, b| (time(a), &self.keys[*a]).cmp(&(time(b), &self.keys[*b])));
        let top = self.request.top.unwrap_or(TOP).min(order.len());
        // Places of the lines in the answer; the rest comes last.
        let mut places = vec![top; self.keys.len()];
        for (place, line) in order[..top].iter().enumerate() {
            places[*line] = place;
        }
        // With how many rests hold nothing of the key.
        let mut lines: Vec<HashMap<u32, (Total, u32)>> = vec![HashMap::new(); top + 1];
        for (i, added) in self.added.iter().enumerate() {
            let place = places.get(added.line as usize).copied().unwrap_or(top);
            let (total, beside) = lines[place].entry(added.bucket).or_default();
            *beside += u32::from(added.beside_rest);
            total.sum.merge(&added.sum);
            total.bytes.read += added.bytes.read;
            total.bytes.written += added.bytes.written;
            total.faults.count += added.faults.count;
            total.faults.time_ns += added.faults.time_ns;
            if let Some(latency) = self.latencies.get(i) {
                total.latency.resize(LATENCY_BUCKETS, 0);
                for (mine, theirs) in total.latency.iter_mut().zip(latency) {
                    *mine += u64::from(*theirs);
                }
            }
        }
        if self.request.busy {
            // The calls that started in a bucket, plus time that reaches into it, minus time that
            // reaches beyond it: signed, because a key's call may have been added to a rest.
            let mut busy: HashMap<(usize, u32), i64> = HashMap::new();
            for (place, line) in lines.iter().enumerate() {
                for (bucket, (total, _)) in line {
                    let faults = match self.request.faults {
                        true => total.faults.time_ns,
                        false => 0,
                    };
                    let ns = total.sum.time_ns.saturating_add(faults);
                    let ns = i64::try_from(ns).unwrap_or(i64::MAX);
                    busy.insert((place, *bucket), ns);
                }
            }
            for (line, bucket, ns) in &self.moved {
                let place = places.get(*line as usize).copied().unwrap_or(top);
                let entry = busy.entry((place, *bucket)).or_default();
                *entry = entry.saturating_add(*ns);
            }
            for ((place, bucket), ns) in busy {
                if let (Ok(ns @ 1..), Some(line)) = (u64::try_from(ns), lines.get_mut(place)) {
                    line.entry(bucket).or_default().0.busy_ns = ns;
                }
            }
        }
        let exact = self.request.by == By::Nothing;
        let mut found = Vec::new();
        for (place, line) in lines.into_iter().enumerate() {
            let number = order[..top].get(place);
            let key = number.map(|line| self.keys[*line].clone());
            let may_have_more = key.is_some() && !exact;
            let host = key.as_ref().map_or(0, |key| key.0);
            let rests = |bucket: &u32| self.rests.get(&(host, *bucket)).copied().unwrap_or(0);
            let longer =
                |bucket| number.is_some_and(|n| self.longer.contains(&(*n as u32, bucket)));
            let mut cells: Vec<(u32, Total, bool)> = line
                .into_iter()
                .map(|(bucket, (total, beside))| {
                    let more = may_have_more && rests(&bucket) > beside || longer(bucket);
                    (bucket, total, more)
                })
                .collect();
            cells.sort_unstable_by_key(|c| c.0);
            if !cells.is_empty() {
                found.push((key, cells));
            }
        }
        found
    }
}
