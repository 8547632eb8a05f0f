//! Rows of a recording to sums by everything at once.

use std::collections::VecDeque;

use fathom_model::batch::{Batch, NULL_I32, NULL_I64};
use fathom_model::escape;
use fathom_model::strings::{StrId, StringTable};
use fathom_model::syscalls::{Class, Returns, SYSCALLS};
use fathom_model::tables::{BlockRows, FaultRows, FileRows, ProcessRows, SliceRows, SyscallRows};
use hashbrown::{HashMap, HashSet};

use crate::frame::{Frame, Health};
use crate::group::{Group, Row, Sums};
use crate::names::Names;
use crate::queues::{Holdup, Queues, Request};

/// Intervals in the history.
const HISTORY: usize = 240;
/// Names of processes that are remembered before they have made a call.
const MAX_PROCESSES: usize = 1 << 14;

/// Sums over the rows of a recording.
pub struct Tally {
    files: Group<i64>,
    processes: Group<i32>,
    threads: Group<i32>,
    calls: Group<u32>,
    layers: Group<(u32, u32)>,
    devices: Group<u32>,
    now: Sums,
    before: Sums,
    shown: u64,
    names: Names,
    /// Names of processes, which their threads may not have.
    processes_called: HashMap<i32, String>,
    /// Calls that move bytes, and whether into a file.
    moving: HashMap<&'static [u8], bool>,
    /// Requests of the batches at hand that have slices.
    sliced: HashSet<i64>,
    queues: Queues,
    /// Calls a second, and their 99th percentile.
    history: VecDeque<(u64, u64)>,
    started_at_ns: u64,
    cut_ns: u64,
    /// How long an interval shall be, and how long this one may be.
    asked_ns: u64,
    interval_ns: u64,
}

impl Tally {
    /// Nothing yet; the first interval begins at `now_ns` and lasts `first_ns`, the others are to last `asked_ns`.
    pub fn new(now_ns: u64, first_ns: u64, asked_ns: u64) -> Self {
        let moving = SYSCALLS
            .iter()
            .filter(|call| call.class == Class::Data && call.returns == Returns::Bytes)
            .map(|call| (call.name.as_bytes(), call.writes()))
            .collect();
        Self {
            files: Group::default(),
            processes: Group::default(),
            threads: Group::default(),
            calls: Group::default(),
            layers: Group::default(),
            devices: Group::default(),
            now: Sums::default(),
            before: Sums::default(),
            shown: 0,
            names: Names::default(),
            processes_called: HashMap::new(),
            moving,
            sliced: HashSet::new(),
            queues: Queues::default(),
            history: VecDeque::new(),
            started_at_ns: now_ns,
            cut_ns: now_ns,
            asked_ns,
            interval_ns: first_ns,
        }
    }

    /// A row that lasted so long; `NULL_I64`: that is not known.
    fn lasting(&self, dur_ns: i64) -> Row {
        Row {
            dur_ns: (dur_ns != NULL_I64).then_some(dur_ns),
            interval_ns: self.interval_ns,
            ..Row::default()
        }
    }

    /// Adds the rows that have come since the last time: all batches of one time
    /// together, since they hold requests with their slices.
    pub fn add(&mut self, mut batches: Vec<Batch>) {
        self.sliced.clear();
        // Requests without slices are known when all slices are; names come first.
        batches.sort_by_key(|batch| match batch.table.name {
            "processes" | "slices" => 0,
            "files" => 2,
            _ => 1,
        });
        for batch in batches {
            match batch.table.name {
                "slices" => {
                    if let Some((rows, strings)) = SliceRows::from_batch(batch) {
                        self.slices(&rows, &strings);
                    }
                }
                "syscalls" => {
                    if let Some((rows, strings)) = SyscallRows::from_batch(batch) {
                        self.syscalls(&rows, &strings);
                    }
                }
                "faults" => {
                    if let Some((rows, _)) = FaultRows::from_batch(batch) {
                        self.faults(&rows);
                    }
                }
                "block" => {
                    if let Some((rows, strings)) = BlockRows::from_batch(batch) {
                        self.block(&rows, &strings);
                    }
                }
                "processes" => {
                    if let Some((rows, strings)) = ProcessRows::from_batch(batch) {
                        self.tasks(&rows, &strings);
                    }
                }
                "files" => {
                    if let Some((rows, strings)) = FileRows::from_batch(batch) {
                        for (file, path) in rows.file_id.iter().zip(&rows.path) {
                            if *path != StrId::NULL {
                                let path = || escape::bytes(strings.get(*path));
                                self.files.rename(*file, path);
                            }
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn tasks(&mut self, rows: &ProcessRows, strings: &StringTable) {
        if self.processes_called.len() > MAX_PROCESSES {
            self.processes_called.clear();
        }
        for ((pid, tid), comm) in rows.pid.iter().zip(&rows.tid).zip(&rows.comm) {
            if *comm == StrId::NULL {
                continue;
            }
            let name = || escape::bytes(strings.get(*comm));
            self.threads.rename(*tid, name);
            if pid == tid {
                self.processes.rename(*pid, name);
                self.processes_called.insert(*pid, name());
            }
        }
    }

    fn syscalls(&mut self, rows: &SyscallRows, strings: &StringTable) {
        self.names.next_batch();
        let layer = self.names.fixed(b"syscall");
        let columns = rows.rid.iter().zip(&rows.pid).zip(&rows.tid);
        let columns = columns.zip(&rows.comm).zip(&rows.syscall).zip(&rows.errno);
        let columns = columns.zip(&rows.file_id).zip(&rows.path);
        let columns = columns.zip(&rows.bytes).zip(&rows.dur_ns);
        for (((((((((rid, pid), tid), comm), call), errno), file), path), bytes), dur) in columns {
            let moved = u64::try_from(*bytes).unwrap_or(0);
            let name = strings.get(*call);
            let (read, written) = match self.moving.get(name) {
                Some(true) => (0, moved),
                Some(false) => (moved, 0),
                None => (0, 0),
            };
            let row = Row {
                failed: *errno != StrId::NULL,
                read,
                written,
                ..self.lasting(*dur)
            };
            self.shown += 1;
            self.now.add(&row);
            if *file != NULL_I64 {
                self.files.add(*file, &row, || {
                    (escape::bytes(strings.get(*path)), Some(*file))
                });
            }
            let comm = || escape::bytes(strings.get(*comm));
            if *pid != NULL_I32 {
                let called = &self.processes_called;
                self.processes.add(*pid, &row, || {
                    let name = called.get(pid).cloned().unwrap_or_else(comm);
                    (name, Some((*pid).into()))
                });
            }
            self.threads
                .add(*tid, &row, || (comm(), Some((*tid).into())));
            let call = self.names.id(strings, *call);
            let names = &self.names;
            self.calls.add(call, &row, || (names.name(call), None));
            if !self.sliced.contains(rid) {
                let row = self.lasting(*dur);
                self.layers.add((layer, call), &row, || {
                    (format!("syscall {}", names.name(call)), None)
                });
            }
        }
    }

    fn slices(&mut self, rows: &SliceRows, strings: &StringTable) {
        self.names.next_batch();
        let columns = rows.rid.iter().zip(&rows.layer).zip(&rows.name);
        for (((rid, layer), name), own) in columns.zip(&rows.self_ns) {
            self.sliced.insert(*rid);
            let row = self.lasting(*own);
            let key = (
                self.names.id(strings, *layer),
                self.names.id(strings, *name),
            );
            let names = &self.names;
            self.layers.add(key, &row, || {
                (format!("{} {}", names.name(key.0), names.name(key.1)), None)
            });
        }
    }

    fn faults(&mut self, rows: &FaultRows) {
        let key = (
            self.names.fixed(b"pagecache"),
            self.names.fixed(b"page_fault"),
        );
        for (rid, dur) in rows.rid.iter().zip(&rows.dur_ns) {
            if *dur != NULL_I64 && !self.sliced.contains(rid) {
                let row = self.lasting(*dur);
                self.layers
                    .add(key, &row, || ("pagecache page_fault".into(), None));
            }
        }
    }

    fn block(&mut self, rows: &BlockRows, strings: &StringTable) {
        self.names.next_batch();
        let columns = rows.device.iter().zip(&rows.op).zip(&rows.bytes);
        let columns = columns.zip(&rows.dur_ns).zip(&rows.error).zip(&rows.comm);
        let columns = columns.zip(&rows.queued_at_ns).zip(&rows.issued_at_ns);
        let columns = columns.zip(&rows.completed_at_ns);
        for ((((((((device, op), bytes), dur), error), comm), queued), issued), completed) in
            columns
        {
            let moved = u64::try_from(*bytes).unwrap_or(0);
            let op = strings.get(*op);
            // Without a seen end, error and duration are null.
            let row = Row {
                failed: ![0, NULL_I32].contains(error),
                read: if op == b"read" { moved } else { 0 },
                written: if op == b"write" { moved } else { 0 },
                ..self.lasting(*dur)
            };
            let device = self.names.id(strings, *device);
            if ![*queued, *issued, *completed].contains(&NULL_I64) && *comm != StrId::NULL {
                // Workers of the kernel have a number in their name.
                let owner = match strings.get(*comm) {
                    worker if worker.starts_with(b"kworker/") => self.names.fixed(b"kworker"),
                    _ => self.names.id(strings, *comm),
                };
                self.queues.add(Request {
                    device,
                    owner,
                    queued_at_ns: *queued,
                    issued_at_ns: *issued,
                    completed_at_ns: *completed,
                });
            }
            let names = &self.names;
            self.devices
                .add(device, &row, || (names.name(device), None));
        }
    }

    /// Ends an interval at `now_ns` and begins the next. `seen` and `lost` are the
    /// calls that the kernel side has counted so far.
    pub fn cut(&mut self, now_ns: u64, seen: u64, lost: u64) -> Frame {
        let interval_ns = now_ns.saturating_sub(self.cut_ns).max(1);
        self.cut_ns = now_ns;
        // On a busy machine all take longer.
        self.interval_ns = interval_ns.max(self.asked_ns);
        let now = std::mem::take(&mut self.now);
        self.before.merge(&now);
        let numbers = now.numbers();
        if self.history.len() == HISTORY {
            self.history.pop_front();
        }
        let per_second = numbers.calls as f64 * 1e9 / interval_ns as f64;
        let p99_ns = numbers.p99_ns.unwrap_or(0);
        self.history.push_back((per_second.round() as u64, p99_ns));
        let holdups = self.queues.cut().into_iter();
        let holdups = holdups.map(|(device, waiting, behind, ns)| Holdup {
            device: self.names.name(device),
            waiting: self.names.name(waiting),
            behind: self.names.name(behind),
            share: (ns as f64 / interval_ns as f64).min(1.0),
        });
        let holdups = holdups.collect();
        let groups = [
            self.files.cut_by_name(),
            self.processes.cut(),
            self.threads.cut(),
            self.calls.cut(),
            self.layers.cut(),
            self.devices.cut(),
        ];
        let forgotten = std::array::from_fn(|i| groups.get(i).map_or(0, |g| g.1));
        Frame {
            elapsed_ns: now_ns.saturating_sub(self.started_at_ns),
            interval_ns,
            health: Health {
                seen,
                shown: self.shown,
                lost,
            },
            now: numbers,
            total: self.before.numbers(),
            history: self.history.iter().map(|(calls, _)| *calls).collect(),
            p99_history: self.history.iter().map(|(_, p99_ns)| *p99_ns).collect(),
            stalled: None,
            holdups,
            lines: groups.map(|group| group.0),
            forgotten,
        }
    }
}

#[cfg(test)]
mod tests {
    use fathom_model::tables::BlockRow;

    use super::*;
    use crate::frame::Dimension;

    struct Call(i64, i32, &'static str, i64, i64);

    fn calls(all: &[Call]) -> Batch {
        let mut strings = StringTable::new();
        let mut rows = SyscallRows::default();
        for Call(rid, tid, name, bytes, dur) in all {
            rows.rid.push(*rid);
            rows.ts_ns.push(0);
            rows.dur_ns.push(*dur);
            rows.pid.push(7);
            rows.tid.push(*tid);
            rows.comm.push(strings.intern(b"worker"));
            rows.syscall.push(strings.intern(name.as_bytes()));
            rows.errno.push(StrId::NULL);
            rows.file_id.push(3);
            rows.path.push(strings.intern(b"/a\x1b[2Jb"));
            rows.bytes.push(*bytes);
        }
        rows.into_batch(strings)
    }

    fn slices(all: &[(i64, &str, &str, i64)]) -> Batch {
        let mut strings = StringTable::new();
        let mut rows = SliceRows::default();
        for (rid, layer, name, own) in all {
            rows.rid.push(*rid);
            rows.layer.push(strings.intern(layer.as_bytes()));
            rows.name.push(strings.intern(name.as_bytes()));
            rows.self_ns.push(*own);
        }
        rows.into_batch(strings)
    }

    #[test]
    fn every_dimension_adds_up() {
        let mut tally = Tally::new(1_000, 1_000, 1_000);
        tally.add(vec![
            calls(&[
                Call(1, 7, "read", 10, 100),
                Call(2, 8, "pwrite64", 20, 300),
                Call(3, 7, "fsync", NULL_I64, NULL_I64),
            ]),
            slices(&[(2, "syscall", "pwrite64", 60), (2, "sched", "io", 240)]),
        ]);
        let frame = tally.cut(2_000, 4, 1);
        assert_eq!(frame.health.shown + frame.health.lost, frame.health.seen);
        assert_eq!((frame.elapsed_ns, frame.interval_ns), (1_000, 1_000));
        assert_eq!(frame.history, [3_000_000]);
        for dimension in [
            Dimension::Files,
            Dimension::Processes,
            Dimension::Threads,
            Dimension::Calls,
        ] {
            let lines = &frame.lines[dimension.index()];
            let sum = |of: fn(&crate::Numbers) -> u64| -> u64 {
                lines.iter().map(|line| of(&line.now)).sum()
            };
            assert_eq!(sum(|n| n.calls), 3, "{dimension:?}");
            assert_eq!(sum(|n| n.read_bytes), 10);
            assert_eq!(sum(|n| n.written_bytes), 20);
            assert_eq!(sum(|n| n.time_ns), 400);
        }
        assert_eq!(frame.lines[Dimension::Files.index()][0].name, "/a\\x1b[2Jb");
        let layers = &frame.lines[Dimension::Layers.index()];
        let time: u64 = layers.iter().map(|line| line.now.time_ns).sum();
        assert_eq!(time, 400);
        let of = |name: &str| {
            layers
                .iter()
                .find(|l| l.name == name)
                .map(|l| l.now.time_ns)
        };
        assert_eq!(of("syscall pwrite64"), Some(60));
        assert_eq!(of("sched io"), Some(240));
        assert_eq!(of("syscall read"), Some(100));
    }

    /// A call that lasted for several intervals keeps its thread busy in each of them, no more.
    #[test]
    fn a_long_call_is_busy_for_one_interval() {
        const SECOND: u64 = 1_000_000_000;
        let mut tally = Tally::new(0, SECOND / 4, SECOND);
        let mut busy_at = |now_ns| {
            tally.add(vec![calls(&[
                Call(1, 7, "fsync", NULL_I64, 3_900_000_000),
                Call(2, 8, "fsync", NULL_I64, 200_000_000),
            ])]);
            let now = tally.cut(now_ns, 2, 0).now;
            assert_eq!(now.time_ns, 4_100_000_000);
            now.busy_ns
        };
        // The first one is short, the third came late.
        assert_eq!(busy_at(SECOND / 4), 450_000_000);
        assert_eq!(busy_at(SECOND * 5 / 4), 1_200_000_000);
        assert_eq!(busy_at(SECOND * 17 / 4), 1_200_000_000);
        assert_eq!(busy_at(SECOND * 21 / 4), 3_200_000_000);
    }

    #[test]
    fn a_request_without_a_seen_end_has_no_error_and_no_duration() {
        let mut strings = StringTable::new();
        let mut rows = BlockRows::default();
        let unseen = (NULL_I32, NULL_I64);
        for (error, dur_ns) in [(0, 4_000), (10, 6_000), unseen, unseen, unseen] {
            rows.push(BlockRow {
                device: strings.intern(b"vda"),
                op: strings.intern(b"write"),
                bytes: 4096,
                error,
                dur_ns,
                ..BlockRow::default()
            });
        }
        let mut tally = Tally::new(0, 1_000, 1_000);
        tally.add(vec![rows.into_batch(strings)]);
        let frame = tally.cut(1_000, 0, 0);
        let now = frame.lines[Dimension::Devices.index()][0].now;
        assert_eq!((now.calls, now.errors, now.time_ns), (5, 1, 10_000));
        // 4,000 to the power of two above.
        assert_eq!(now.p50_ns, Some(4_095));
    }
}
