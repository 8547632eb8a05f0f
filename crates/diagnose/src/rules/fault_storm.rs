//! `fault-storm`: a mapped file comes from the device page by page.

use crate::covered::Covered;
use crate::layers::Fault;
use crate::order::{Head, Step};
use crate::prelude::*;

/// Time in which faults are counted, nanoseconds.
const WINDOW_NS: i64 = 100_000_000;
/// Faults in that time that make a storm: 1,000 a second.
const MIN_RATE: u64 = 100;
/// Fewer do when they take this part of it, as slow devices answer.
const MIN_TIME_NS: i64 = WINDOW_NS / 2;
/// Faults in storms from which on they count.
const MIN_FAULTS: u64 = 128;
/// Share of the process's time that makes them count however few there are in a second.
const MIN_PART: f64 = 0.1;
/// Faults from which on they count by their time.
const MIN_LONG: u64 = 16;
/// How long these take at least, on average, nanoseconds: as where each reads far ahead.
const MIN_MEAN_NS: i64 = 1_000_000;
/// Bytes read for each byte of pages that were touched, from which on that is worth a word.
const MIN_SPARE: i64 = 4;
/// Requests that could be on their way at a time.
const AT_ONCE: i64 = 8;

static INFO: RuleInfo = RuleInfo {
    id: "fault-storm",
    name: "Mapped file read page by page",
    group: Group::Performance,
    needs: &[Input::Faults],
    kinds: Kinds::NONE,
    about_calls: false,
    what: "A process touches pages of a mapped file that are not in memory. Each touch stops the \
           thread until the device has answered, without a visible call, and the kernel reads few \
           pages around it, or pages that are not needed.",
    when: "One process has 128 or more major faults (faults that wait for the device) on one file, \
           in tenths of a second that had 100 or more of them (1,000 per second) or that were half \
           taken by them. Or it has 16 or more on a file without code, of 1 ms or more on average, \
           that take 10 % or more of the process's time; each of these reads far \
           ahead. If the pages are far apart, the finding says how much the device read per touched \
           page. Loading code (exec) does not count.",
    cost: "seven eighths of the time of these faults, as if each brought eight pages, divided by \
           the number of threads that wait at the same time on average; of faults that count by \
           their time, half of it",
    advice: "Call madvise(MADV_WILLNEED) on the range that will be touched next, use MAP_POPULATE \
           for the whole mapping, or MADV_SEQUENTIAL for a pass from front to back. Alternatively \
           read with pread in pieces of 128 KiB, or with io_uring.",
    not_when: "Not when only a few bytes of a large file are needed.",
    bad: "for (i = 0; i < pages; i++)\n    sum += map[order[i] * 4096];",
    good: "for (i = 0; i < pages; i++) {\n    if (i % 64 == 0)\n        for (j = i; j < i + 64; j++)\n            \
           madvise(map + order[j] * 4096, 4096, MADV_WILLNEED);\n    sum += map[order[i] * 4096];\n}",
    reference: "madvise(2); Crotty, Leis, Pavlo: Are You Sure You Want to Use MMAP in Your DBMS? (CIDR 2022)",
};

/// One process on one mapped file.
#[derive(Debug, Default)]
struct Mapping {
    comm: Text,
    threads: Vec<(i32, Head)>,
    window: i64,
    /// Of the window that goes on.
    faults: u64,
    time_ns: i64,
    pending: Durations,
    /// Of windows that were storms.
    storm: Durations,
    all: Durations,
    /// Time in which a thread waited, or several did.
    covered: Covered,
    /// Pages touched, by faults of both kinds, and bytes that were read in the course of them.
    touched: Intervals,
    read_bytes: i64,
    minor: bool,
    /// How far from the page before: next, near, elsewhere.
    next: u64,
    near: u64,
    jumps: u64,
    examples: Examples,
}

/// Threads of one process that are distinguished.
const MAX_THREADS: usize = 32;

impl Mapping {
    fn is_storm(&self) -> bool {
        self.faults >= MIN_RATE || self.time_ns >= MIN_TIME_NS && self.faults >= 8
    }

    /// The window is over.
    fn settle(&mut self) {
        if self.is_storm() {
            self.storm.merge(&self.pending);
        }
        self.pending = Durations::default();
        (self.faults, self.time_ns) = (0, 0);
    }

    fn touch(&mut self, fault: &Fault) {
        let page = fault.offset & !4095;
        self.touched.insert(page, page.saturating_add(4096));
        self.read_bytes = self.read_bytes.saturating_add(fault.read_bytes);
        self.minor |= !fault.major;
    }

    fn add(&mut self, fault: &Fault) {
        let window = fault.ts_ns / WINDOW_NS;
        if window != self.window {
            self.settle();
            self.window = window;
        }
        self.faults += 1;
        self.time_ns += fault.dur_ns;
        self.pending.add(fault.dur_ns);
        self.all.add(fault.dur_ns);
        self.covered.add(fault.ts_ns, fault.ts_ns.saturating_add(fault.dur_ns));
        let at = self.threads.iter().position(|(tid, _)| *tid == fault.tid);
        if at.is_none() && self.threads.len() < MAX_THREADS {
            self.threads.push((fault.tid, Head::default()));
        }
        let at = at.unwrap_or(self.threads.len() - 1);
        let page = fault.offset & !4095;
        let step = self.threads.get_mut(at).map(|(_, head)| head.step(page, page + 4096));
        match step {
            Some(Step::Next | Step::First) | None => self.next += 1,
            Some(Step::Skip | Step::Back) => self.near += 1,
            Some(Step::Jump) => self.jumps += 1,
        }
    }
}

rule! {
    pub struct FaultStorm {
        mappings: Bounded<(i32, FileId), Mapping>
            = Bounded::new(|mapping| mapping.storm.count + mapping.faults),
        /// Files that code was fetched from.
        code: Bounded<FileId, bool>,
    }
}

impl Rule for FaultStorm {
    fn call(&mut self, _: &Call, _: &Context) {}

    fn layers(&self) -> &'static [Layer] {
        &[Layer::Fault]
    }

    fn row(&mut self, row: &Row, state: &State) {
        let Row::Fault(fault) = row else { return };
        let Some(id) = fault.file else { return };
        if fault.access == "exec" {
            *self.code.entry(id) = true;
            return;
        }
        if !fault.major {
            // Of the many files that are only touched in memory nothing is kept.
            if let Some(mapping) = self.mappings.get_mut(&(fault.pid, id)) {
                mapping.touch(fault);
            }
            return;
        }
        let mapping = self.mappings.entry((fault.pid, id));
        mapping.touch(fault);
        if mapping.comm.is_empty() {
            mapping.comm = fault.comm.into();
        }
        mapping.examples.add_with(fault.dur_ns, || Example {
            rid: fault.rid,
            ts_ns: fault.ts_ns,
            dur_ns: fault.dur_ns,
            tid: fault.tid,
            syscall: "page_fault".into(),
            path: state.files.get(id).map(|f| f.name().into()),
            offset: Some(fault.offset),
            ret: None,
        });
        mapping.add(fault);
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        for ((pid, id), mapping) in self.mappings.iter() {
            let mut storm = mapping.storm.clone();
            if mapping.is_storm() {
                storm.merge(&mapping.pending);
            }
            let threads = mapping.threads.len().max(1) as i64;
            let waiting = mapping.covered.ns().max(1);
            // How many threads waited at the same time, on average.
            let beside = (mapping.all.sum_ns as f64 / waiting as f64).max(1.0);
            let shared = |ns: i64| (ns as f64 / beside) as i64;
            let mut cost = shared(storm.sum_ns / AT_ONCE * (AT_ONCE - 1));
            let part = waiting as f64 / run.lifetime_ns(*pid).max(waiting) as f64;
            if storm.count < MIN_FAULTS {
                let long = mapping.all.count >= MIN_LONG && mapping.all.mean_ns() >= MIN_MEAN_NS;
                if !long || part < MIN_PART || self.code.get(id).is_some() {
                    continue;
                }
                storm = mapping.all.clone();
                cost = shared(storm.sum_ns / 2);
            }
            if !run.matters(cost) {
                continue;
            }
            let path = run.state.files.get(*id).map_or("", |f| f.name());
            let all = (mapping.next + mapping.near + mapping.jumps).max(1) as f64;
            let (next, jumps) = (mapping.next as f64 / all, mapping.jumps as f64 / all);
            let (order, advice) = if next > 0.5 {
                (
                    "one after another",
                    "The program touches the pages in order, but each fault reads little: remove MADV_RANDOM, call madvise(MADV_SEQUENTIAL), use \
                     MAP_POPULATE, or read the file with read(2) in pieces of 128 KiB.",
                )
            } else if jumps > 0.5 {
                (
                    "far apart",
                    "The pages are far apart: call madvise(MADV_WILLNEED) on the pages of a batch before touching the first of them, or read them through io_uring. \
                     MADV_RANDOM keeps the kernel from reading their neighbors, which is not always faster: measure it.",
                )
            } else {
                (
                    "close to each other",
                    "The pages are close to each other: call madvise(MADV_WILLNEED) on the range before touching it, or use MAP_POPULATE.",
                )
            };
            let (read, touched) = (mapping.read_bytes, mapping.touched.len());
            let spare = jumps > 0.5 && mapping.minor && read / MIN_SPARE >= touched;
            let amplified = match spare {
                true => format!(
                    "; the device reads {} for {} of touched pages",
                    units::bytes(read),
                    units::bytes(touched),
                ),
                false => String::new(),
            };
            out.push(Found {
                cost_ns: Some(cost),
                title: format!(
                    "{} waits {} times for a page of its mapping of {path}, {order}: {} of its time{amplified}",
                    mapping.comm,
                    units::count(storm.count as i64),
                    units::percent(part.min(1.0)),
                ),
                subject: Subject::process(*pid, &mapping.comm).with_file(*id, path),
                evidence: vec![
                    number("major_faults", storm.count as i64),
                    number("median_ns", storm.median_ns()),
                    evidence("share_next_page", next),
                    evidence("share_of_jumps", jumps),
                    number("threads", threads),
                    evidence("share_of_time", part.min(1.0)),
                    number("bytes_read", read),
                    number("bytes_of_pages_touched", touched),
                ],
                examples: mapping.examples.list(),
                query: format!(
                    "SELECT rid, ts_ns, dur_ns, tid, comm, access, file_offset, path FROM faults WHERE pid = {pid} AND file_id = {} AND kind = 'major' ORDER BY ts_ns",
                    id.0
                ),
                advice: Some(advice.to_owned()),
                ..Found::default()
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, fires, silent};

    #[test]
    fn fires_on_pages_far_apart() {
        let mut s = Scenario::new();
        for i in 0..400 {
            s.fault("/data/index", i * 389 % 1000 * 1_003_520, 100_000, true, "read");
        }
        let found = fires("fault-storm", s);
        assert!(found[0].title.contains("far apart"), "{found:?}");
    }

    #[test]
    fn fires_on_a_slow_device() {
        let mut s = Scenario::new();
        for i in 0..200 {
            s.fault("/data/index", i * 4096, 8_000_000, true, "read");
        }
        let found = fires("fault-storm", s);
        assert!(found[0].advice.contains("MADV_SEQUENTIAL"), "{found:?}");
    }

    #[test]
    fn fires_on_few_faults_that_take_long() {
        let mut s = Scenario::new();
        for i in 0..100 {
            s.fault_reads(4 << 20);
            s.fault("/data/array", i * 389 % 1000 * 1_003_520, 6_000_000, true, "read");
            s.fault("/data/array", i * 389 % 1000 * 1_003_520 + 8192, 1_000, false, "read");
            s.wait_ms(10);
        }
        s.stat("/data");
        let found = fires("fault-storm", s);
        assert!(found[0].title.contains("the device reads 400 MiB for 800 KiB of touched pages"), "{}", found[0].title);
        assert!(found[0].advice.contains("not always faster"), "{}", found[0].advice);
    }

    #[test]
    fn silent_on_the_data_of_a_library() {
        let mut s = Scenario::new();
        s.fault("/usr/lib/large.so", 4096, 1_000_000, true, "exec");
        for i in 0..40 {
            s.fault("/usr/lib/large.so", i * 65536, 2_000_000, true, "read");
            s.wait_ms(20);
        }
        s.stat("/data");
        silent("fault-storm", s);
    }

    #[test]
    fn silent_on_few_faults_in_a_long_run() {
        let mut s = Scenario::new();
        for i in 0..100 {
            s.fault("/data/array", i * 389 % 1000 * 1_003_520, 6_000_000, true, "read");
            s.wait_ms(100);
        }
        s.stat("/data");
        silent("fault-storm", s);
    }

    #[test]
    fn silent_on_memory_and_on_starts_of_programs() {
        let mut s = Scenario::new();
        for i in 0..1000 {
            s.fault("/data/hot", i * 4096, 1_000, false, "read");
            s.fault("/usr/lib/large.so", i * 65536, 100_000, true, "exec");
        }
        silent("fault-storm", s);
    }
}
