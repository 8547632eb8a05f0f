//! Exact sums over all rows of the recordings: calls by label, requests by device.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fathom_model::Batch;
use fathom_model::batch::{NULL_I32, NULL_I64};
use fathom_model::kind::{Kind, Purpose};
use fathom_model::strings::StrId;
use fathom_model::syscalls::{Returns, SYSCALLS, Syscall};
use fathom_model::tables::{BLOCK, CONTAINERS, COUNTERS, FILES, PROCESSES, SYSCALLS as CALLS};
use fathom_probe::realtime_ns;
use fathom_recorder::RowSink;
use hashbrown::HashMap;

use crate::config::Metrics;
use crate::labels::{Columns, LabelSet, Labels, is_of};

/// Labels without a call for this long give their place to others that need one. Much longer than
/// the time between two readings, so that each reader has had the last sums.
const IDLE: Duration = Duration::from_secs(3600);
/// Powers of 2 of nanoseconds.
const BUCKETS: usize = 64;

/// Durations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Durations {
    /// How many.
    pub count: u64,
    /// Together, nanoseconds.
    pub sum_ns: u128,
    /// Entry b counts those from 2^b to below 2^(b+1) nanoseconds; 0 ns is in the first.
    pub buckets: [u64; BUCKETS],
}

impl Default for Durations {
    fn default() -> Self {
        Self {
            count: 0,
            sum_ns: 0,
            buckets: [0; BUCKETS],
        }
    }
}

impl Durations {
    fn add(&mut self, ns: i64) {
        let ns = u64::try_from(ns).unwrap_or(0);
        self.count += 1;
        self.sum_ns += u128::from(ns);
        self.buckets[ns.max(1).ilog2() as usize] += 1;
    }
}

/// Sums of calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallSums {
    /// Of all that returned.
    pub durations: Durations,
    /// Bytes moved.
    pub bytes: u64,
    /// Calls that failed.
    pub errors: u64,
    /// When they began at 0, nanoseconds since 1970, if their labels took the place of others.
    pub since_ns: Option<u64>,
}

/// Sums of requests to a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceSums {
    /// From the first of a request's times to its completion.
    pub durations: Durations,
    /// From queued to issued, nanoseconds.
    pub wait_ns: u128,
    /// Bytes moved.
    pub bytes: u64,
    /// Requests that failed.
    pub errors: u64,
}

/// Sums of calls with equal labels.
struct LabeledSums {
    by_purpose: [CallSums; Purpose::ALL.len()],
    /// When the last call was added.
    used: Instant,
}

/// Sums since the agent started.
pub struct Sums {
    labels: Labels,
    limit: usize,
    calls: BTreeMap<LabelSet, LabeledSums>,
    /// The time of the rows that are added.
    now: Instant,
    /// Until then no labels give up their place.
    full_until: Option<Instant>,
    /// Labels have given up their place.
    replaced: bool,
    devices: BTreeMap<(String, String), DeviceSums>,
    overflowed: u64,
    /// Rules that found a problem: name, severity.
    pub findings: BTreeMap<(String, &'static str), u64>,
    purposes: HashMap<&'static str, Purpose>,
}

/// The purpose of a call that moves bytes is where they go: what is sent through a socket is
/// written.
fn purpose(call: &Syscall) -> Purpose {
    match (call.kind.purpose(), call.returns, call.kind) {
        (Purpose::Other, Returns::Bytes, kind) if kind != Kind::GetXattr => match call.writes() {
            true => Purpose::Write,
            false => Purpose::Read,
        },
        (purpose, ..) => purpose,
    }
}

impl Sums {
    /// Nothing yet.
    pub fn new(metrics: &Metrics) -> Self {
        Self {
            labels: Labels::new(&metrics.by),
            limit: metrics.label_sets,
            calls: BTreeMap::new(),
            now: Instant::now(),
            full_until: None,
            replaced: false,
            devices: BTreeMap::new(),
            overflowed: 0,
            findings: BTreeMap::new(),
            purposes: SYSCALLS
                .iter()
                .map(|call| (call.name, purpose(call)))
                .collect(),
        }
    }

    /// Another recording starts, whose ids of files are others.
    pub fn next_recording(&mut self) {
        self.labels.forget();
    }

    /// Adds rows that arrive `now`.
    pub fn add(&mut self, batches: &[Batch], now: Instant) {
        self.now = now;
        self.labels.make_room(self.calls.keys().copied());
        // Names come first.
        for batch in batches {
            if is_of(batch, &CONTAINERS) {
                self.labels.containers(batch);
            } else if is_of(batch, &PROCESSES) {
                self.labels.processes(batch);
            } else if is_of(batch, &FILES) {
                self.labels.files(batch);
            }
        }
        for batch in batches {
            if is_of(batch, &CALLS) {
                self.rows(batch);
            } else if is_of(batch, &COUNTERS) {
                self.counters(batch);
            } else if is_of(batch, &BLOCK) {
                self.block(batch);
            }
        }
    }

    /// The sums of a call.
    fn of(&mut self, pid: i32, file: i64, calls: u64, call: &[u8]) -> &mut CallSums {
        let mut set = self.labels.of_call(pid, file);
        if set.is_overflow() || !(self.calls.contains_key(&set) || self.has_place()) {
            self.overflowed += calls;
            set = LabelSet::OTHER;
        }
        let name = std::str::from_utf8(call).unwrap_or_default();
        let purpose = self.purposes.get(name).copied().unwrap_or(Purpose::Other);
        let place = Purpose::ALL.iter().position(|p| *p == purpose).unwrap_or(0);
        let now = self.now;
        let since_ns = || self.replaced.then(realtime_ns);
        let sums = self.calls.entry(set).or_insert_with(|| {
            let since_ns = since_ns();
            LabeledSums {
                by_purpose: std::array::from_fn(|_| CallSums {
                    since_ns,
                    ..CallSums::default()
                }),
                used: now,
            }
        });
        sums.used = now;
        &mut sums.by_purpose[place]
    }

    /// Whether other labels have a place. If none is free, the labels that had no call for longest give up theirs.
    fn has_place(&mut self) -> bool {
        let named = || self.calls.iter().filter(|(set, _)| !set.is_overflow());
        let full = |until| self.now < until;
        if self.full_until.is_some_and(full) {
            return false;
        }
        if named().count() < self.limit {
            return true;
        }
        let Some((oldest, used)) = named()
            .map(|(set, sums)| (*set, sums.used))
            .min_by_key(|(_, used)| *used)
        else {
            return false;
        };
        let idle = used + IDLE <= self.now;
        self.full_until = (!idle).then(|| used + IDLE);
        if idle {
            self.calls.remove(&oldest);
            self.replaced = true;
        }
        idle
    }

    /// Calls with rows of their own. Calls that had not returned do not count.
    fn rows(&mut self, batch: &Batch) {
        let of = Columns(batch);
        let rows = of.i32s("pid").zip(of.i64s("file_id"));
        let rows = rows.zip(of.strings("syscall")).zip(of.i64s("ret"));
        let rows = rows.zip(of.strings("errno")).zip(of.i64s("bytes"));
        for ((((((pid, file), call), ret), errno), bytes), dur) in rows.zip(of.i64s("dur_ns")) {
            if ret == NULL_I64 {
                continue;
            }
            let sums = self.of(pid, file, 1, batch.strings.get(call));
            sums.durations.add(dur);
            sums.bytes += u64::try_from(bytes).unwrap_or(0);
            sums.errors += u64::from(errno != StrId::NULL);
        }
    }

    /// Calls that were counted.
    fn counters(&mut self, batch: &Batch) {
        let of = Columns(batch);
        let rows = of.i32s("pid").zip(of.i64s("file_id"));
        let rows = rows.zip(of.strings("syscall")).zip(of.i64s("count"));
        let rows = rows.zip(of.i64s("errors")).zip(of.i64s("bytes"));
        let rows = rows.zip(of.i64s("dur_ns")).zip(of.lists("hist"));
        for (((((((pid, file), call), count), errors), bytes), dur), hist) in rows {
            let unsigned = |n: i64| u64::try_from(n).unwrap_or(0);
            let count = unsigned(count);
            let sums = self.of(pid, file, count, batch.strings.get(call));
            sums.durations.count += count;
            sums.durations.sum_ns += u128::from(unsigned(dur));
            for (sum, n) in sums.durations.buckets.iter_mut().zip(hist) {
                *sum += unsigned(*n);
            }
            sums.bytes += unsigned(bytes);
            sums.errors += unsigned(errors);
        }
    }

    /// Requests to devices that were completed.
    fn block(&mut self, batch: &Batch) {
        let of = Columns(batch);
        let rows = of.strings("device").zip(of.strings("op"));
        let rows = rows.zip(of.i64s("dur_ns")).zip(of.i64s("bytes"));
        let rows = rows.zip(of.i32s("error")).zip(of.i64s("queued_at_ns"));
        for ((((((device, op), dur), bytes), error), queued), issued) in
            rows.zip(of.i64s("issued_at_ns"))
        {
            if dur == NULL_I64 {
                continue;
            }
            let text = |id: StrId| String::from_utf8_lossy(batch.strings.get(id)).into_owned();
            let sums = self.devices.entry((text(device), text(op))).or_default();
            sums.durations.add(dur);
            if queued != NULL_I64 && issued != NULL_I64 {
                let wait = issued.saturating_sub(queued);
                sums.wait_ns += u128::try_from(wait).unwrap_or(0);
            }
            sums.bytes += u64::try_from(bytes).unwrap_or(0);
            sums.errors += u64::from(error != 0 && error != NULL_I32);
        }
    }

    /// Sums of calls by labels and purpose, without sums of no call.
    pub fn calls(&self) -> impl Iterator<Item = (Vec<(&'static str, &str)>, Purpose, &CallSums)> {
        self.calls.iter().flat_map(|(set, sums)| {
            let by_purpose = Purpose::ALL.iter().zip(&sums.by_purpose);
            let some = by_purpose.filter(|(_, sums)| sums.durations.count > 0);
            some.map(|(purpose, sums)| (self.labels.get(*set).collect(), *purpose, sums))
        })
    }

    /// Sums of requests by device and operation.
    pub fn devices(&self) -> impl Iterator<Item = (&str, &str, &DeviceSums)> {
        let all = self.devices.iter();
        all.map(|((device, op), sums)| (device.as_str(), op.as_str(), sums))
    }

    /// Calls beyond the limit of label sets.
    pub fn overflowed(&self) -> u64 {
        self.overflowed
    }
}

/// Sums that the recorder adds to and that clients read.
#[derive(Clone)]
pub struct SharedSums(Arc<Mutex<Sums>>);

impl SharedSums {
    /// Nothing yet.
    pub fn new(metrics: &Metrics) -> Self {
        Self(Arc::new(Mutex::new(Sums::new(metrics))))
    }

    /// The sums, also after a panic: a number is added in one step.
    pub fn lock(&self) -> MutexGuard<'_, Sums> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RowSink for SharedSums {
    fn rows(&mut self, batches: &[Batch]) {
        self.lock().add(batches, Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use fathom_model::strings::StringTable;
    use fathom_model::tables::{
        BlockRow, BlockRows, CounterRow, CounterRows, FileRow, FileRows, ProcessRow, ProcessRows,
        SyscallRow, SyscallRows,
    };

    use super::*;
    use crate::labels::Label;

    fn metrics(label_sets: usize) -> Metrics {
        Metrics {
            by: vec![Label::FileSystem, Label::Command],
            label_sets,
            ..Metrics::default()
        }
    }

    fn add(sums: &mut Sums, batches: &[Batch]) {
        sums.add(batches, Instant::now());
    }

    fn processes(names: &[(i32, &str)]) -> Batch {
        let mut strings = StringTable::new();
        let mut rows = ProcessRows::default();
        for (pid, name) in names {
            let comm = strings.intern(name.as_bytes());
            rows.push(ProcessRow {
                pid: *pid,
                tid: *pid,
                comm,
                ..ProcessRow::default()
            });
        }
        rows.into_batch(strings)
    }

    fn files(file_id: i64, fs_type: &str) -> Batch {
        let mut strings = StringTable::new();
        let mut rows = FileRows::default();
        let fs_type = strings.intern(fs_type.as_bytes());
        rows.push(FileRow {
            file_id,
            fs_type,
            ..FileRow::default()
        });
        rows.into_batch(strings)
    }

    /// A read of 10 bytes in 1,000 ns, a write that failed, and an fsync that has not returned.
    fn calls(pid: i32, file_id: i64) -> Batch {
        let mut strings = StringTable::new();
        let mut rows = SyscallRows::default();
        let eio = strings.intern(b"EIO");
        for (name, ret, errno, bytes, dur_ns) in [
            ("pread64", 10, StrId::NULL, 10, 1000),
            ("write", -5, eio, i64::MIN, 3),
            ("fsync", NULL_I64, StrId::NULL, NULL_I64, 77),
        ] {
            let syscall = strings.intern(name.as_bytes());
            rows.push(SyscallRow {
                pid,
                file_id,
                syscall,
                ret,
                errno,
                bytes,
                dur_ns,
                ..SyscallRow::default()
            });
        }
        rows.into_batch(strings)
    }

    /// Calls on no file, none of which failed.
    fn plain_calls(pid: i32, count: i64) -> Batch {
        let mut strings = StringTable::new();
        let mut rows = SyscallRows::default();
        for _ in 0..count {
            let syscall = strings.intern(b"read");
            rows.extend_ragged(&[SyscallRow {
                pid,
                syscall,
                ret: 0,
                dur_ns: 500,
                ..SyscallRow::default()
            }]);
        }
        rows.level();
        assert!(rows.file_id.is_empty() && rows.errno.is_empty() && rows.bytes.is_empty());
        rows.into_batch(strings)
    }

    fn counted(pid: i32, count: i64) -> Batch {
        let mut strings = StringTable::new();
        let mut rows = CounterRows::default();
        let mut hist = vec![0; 40];
        hist[9] = count;
        rows.push(CounterRow {
            pid,
            syscall: strings.intern(b"read"),
            count,
            bytes: count * 10,
            errors: 1,
            dur_ns: count * 600,
            hist,
            ..CounterRow::default()
        });
        rows.into_batch(strings)
    }

    fn found(sums: &Sums) -> Vec<(String, &'static str, u64, u64, u64)> {
        let of = |(labels, purpose, sums): (Vec<(&str, &str)>, Purpose, &CallSums)| {
            let labels: Vec<String> = labels.iter().map(|(k, v)| format!("{k}={v}")).collect();
            let labels = labels.join(" ");
            let count = sums.durations.count;
            (labels, purpose.name(), count, sums.bytes, sums.errors)
        };
        sums.calls().map(of).collect()
    }

    #[test]
    fn rows_and_counts_add_up() {
        let mut sums = Sums::new(&metrics(9));
        // Names may come behind the calls.
        add(
            &mut sums,
            &[calls(7, 3), files(3, "ext4"), processes(&[(7, "db")])],
        );
        add(&mut sums, &[counted(7, 5)]);
        add(&mut sums, &[counted(-1, 2)]);
        let of = |labels: &str, purpose, count, bytes, errors| {
            (labels.to_owned(), purpose, count, bytes, errors)
        };
        assert_eq!(
            found(&sums),
            [
                of("file_system= command=", "read", 2, 20, 1),
                of("file_system= command=db", "read", 5, 50, 1),
                of("file_system=ext4 command=db", "read", 1, 10, 0),
                of("file_system=ext4 command=db", "write", 1, 0, 1),
            ]
        );
        let (.., read) = sums.calls().nth(2).unwrap();
        assert_eq!(read.durations.sum_ns, 1000);
        assert_eq!(read.durations.buckets[9], 1);
    }

    #[test]
    fn calls_count_whose_columns_are_null_in_all() {
        let mut sums = Sums::new(&metrics(9));
        add(&mut sums, &[processes(&[(7, "sh")]), plain_calls(7, 4)]);
        let expected = ("file_system= command=sh".to_owned(), "read", 4, 0, 0);
        assert_eq!(found(&sums), [expected]);
    }

    #[test]
    fn nothing_is_lost_where_there_are_too_many() {
        let mut sums = Sums::new(&metrics(2));
        for pid in 0..5 {
            let name = format!("p{pid}");
            add(&mut sums, &[processes(&[(pid, &name)])]);
            add(&mut sums, &[counted(pid, 3)]);
        }
        let all: Vec<u64> = found(&sums).iter().map(|found| found.2).collect();
        assert_eq!((all.len(), all.iter().sum::<u64>()), (3, 15));
        assert_eq!(sums.overflowed(), 9);
        let other = found(&sums).into_iter().find(|f| f.0.contains("other"));
        assert_eq!(other.unwrap().0, "file_system=other command=other");
    }

    /// Processes that make no call take no place.
    #[test]
    fn labels_need_a_place_when_they_have_a_call() {
        let mut sums = Sums::new(&metrics(2));
        for pid in 0..50 {
            add(&mut sums, &[processes(&[(pid, &format!("p{pid}"))])]);
        }
        add(&mut sums, &[counted(47, 3), counted(48, 4), counted(49, 5)]);
        let labels: Vec<_> = found(&sums).into_iter().map(|f| (f.0, f.2)).collect();
        let of = |labels: &str, count| (labels.to_owned(), count);
        let expected = [
            of("file_system=other command=other", 5),
            of("file_system= command=p47", 3),
            of("file_system= command=p48", 4),
        ];
        assert_eq!(labels, expected);
    }

    #[test]
    fn labels_without_calls_give_their_place_to_others() {
        let mut sums = Sums::new(&metrics(2));
        let start = Instant::now();
        let second = Duration::from_secs(1);
        let names: Vec<_> = (0..4).map(|pid| (pid, format!("p{pid}"))).collect();
        let names: Vec<_> = names.iter().map(|(pid, name)| (*pid, &**name)).collect();
        sums.add(&[processes(&names), counted(0, 7), counted(1, 7)], start);
        // Both have had calls of late.
        sums.add(&[counted(2, 7), counted(1, 7)], start + second);
        let at = |sums: &mut Sums, pid, at| {
            sums.add(&[counted(pid, 1)], at);
            let found = found(sums).into_iter().map(|f| (f.0, f.2));
            let named = found.filter(|f| !f.0.contains("other"));
            let named =
                named.map(|f| format!("{} {}", f.0.replace("file_system= command=", ""), f.1));
            named.collect::<Vec<_>>()
        };
        assert_eq!(at(&mut sums, 2, start + IDLE - second), ["p0 7", "p1 14"]);
        assert_eq!(at(&mut sums, 2, start + IDLE), ["p1 14", "p2 1"]);
        assert_eq!(at(&mut sums, 3, start + IDLE), ["p1 14", "p2 1"]);
        assert_eq!(sums.overflowed(), 9);
        // Labels that return begin at 0.
        assert_eq!(at(&mut sums, 0, start + 2 * IDLE), ["p0 1", "p2 1"]);
        let began_again = sums.calls().filter(|(.., sums)| sums.since_ns.is_some());
        assert_eq!(began_again.count(), 2);
    }

    #[test]
    fn requests_that_completed_count() {
        let mut strings = StringTable::new();
        let mut rows = BlockRows::default();
        let (device, op) = (strings.intern(b"sda"), strings.intern(b"write"));
        for (dur_ns, error) in [(50, 0), (70, 10), (NULL_I64, NULL_I32)] {
            rows.push(BlockRow {
                device,
                op,
                dur_ns,
                error,
                bytes: 512,
                queued_at_ns: 100,
                issued_at_ns: 120,
                ..BlockRow::default()
            });
        }
        let mut sums = Sums::new(&metrics(2));
        add(&mut sums, &[rows.into_batch(strings)]);
        let (device, op, found) = sums.devices().next().unwrap();
        assert_eq!((device, op), ("sda", "write"));
        let durations = &found.durations;
        assert_eq!((durations.count, durations.sum_ns), (2, 120));
        assert_eq!((found.wait_ns, found.bytes, found.errors), (40, 1024, 1));
    }
}
