//! `random-access`: reads that jump about in a file, and wait for the device each time.

use crate::order::{Head, Step};
use crate::prelude::*;
use crate::readers::Readers;
use crate::under_way::UnderWay;

/// Reads that jump and wait for the device, from which on they count.
const MIN_READS: u64 = 64;
/// Share of reads that jump.
const MIN_JUMPS: f64 = 0.5;
/// Fraction of the jumping reads' time that waiting reads must take: a few waiting reads cost more
/// than many that find their page.
const MIN_MISSED: f64 = 0.5;
/// Reads under way at a time, on average, from which on there is concurrency.
const MAX_DEPTH: f64 = 2.0;
/// Requests that could be on their way at a time.
const AT_ONCE: i64 = 8;
/// With this share of the file read, each byte once, it is a scan.
const SCAN: f64 = 0.8;

static INFO: RuleInfo = RuleInfo {
    id: "random-access",
    name: "Random reads from the device, one at a time",
    group: Group::Performance,
    needs: &[Input::Calls, Input::Block],
    kinds: kinds![Read],
    about_calls: true,
    what: "A process reads a file that is not in memory in random order. Readahead cannot predict \
           the next read, so each read waits for the device, which serves one request at a time \
           although it could serve many.",
    when: "More than half of a process's reads of a file start more than 128 KiB (the kernel's \
           default readahead) from the end of the same thread's previous read, 64 or more of these \
           jumps had to be read from the device, and they took half or more of the time of all \
           jumps. A jump within the readahead, or to a page in memory, costs nothing. Silent if \
           threads have two or more of these reads in progress at a time on average. Reads through \
           io_uring and AIO count if one at a time is in flight and its thread waits for it. \
           Programs that read most of the file, each byte about once, belong to scan-out-of-order.",
    cost: "the time in which jumping reads that waited for the device were in progress, minus an \
           eighth of their total time, as if eight requests were in flight at a time, which devices \
           serve without slowing each other",
    advice: "Request the next reads ahead: posix_fadvise(POSIX_FADV_WILLNEED) for a batch of \
           ranges, or io_uring with eight or more reads in flight. Sort a batch by offset. Store \
           data that is used together side by side.",
    not_when: "Not when each address is only known from the bytes read before, as in a tree: then \
           keep its upper levels in memory.",
    bad: "for (i = 0; i < n; i++)\n    pread(fd, row, 4096, offset[i]);",
    good: "for (i = 0; i < n; i++) {\n    if (i % 32 == 0)\n        for (j = i; j < i + 32 && j < n; j++)\n            \
           posix_fadvise(fd, offset[j], 4096, POSIX_FADV_WILLNEED);\n    pread(fd, row, 4096, offset[i]);\n}",
    reference: "Drishti's and Darshan's random-access triggers; posix_fadvise(2)",
};

/// Threads of one process on one file that are distinguished.
const MAX_THREADS: usize = 32;

/// One process on one file.
#[derive(Debug, Default)]
struct Access {
    readers: Readers,
    heads: Vec<(i32, Head)>,
    reads: u64,
    jumps: u64,
    bytes: i64,
    seen: Intervals,
    /// Time of all that jump, nanoseconds.
    jump_ns: i64,
    missed: Durations,
    under_way: UnderWay,
    examples: Examples,
}

impl Access {
    fn step(&mut self, tid: i32, start: i64, end: i64) -> Step {
        let known = self.heads.iter().position(|(t, _)| *t == tid);
        let at = match known {
            Some(at) => at,
            None if self.heads.len() < MAX_THREADS => {
                self.heads.push((tid, Head::default()));
                self.heads.len() - 1
            }
            None => 0,
        };
        self.heads
            .get_mut(at)
            .map_or(Step::First, |(_, head)| head.step(start, end))
    }
}

rule! {
    pub struct RandomAccess {
        accesses: Bounded<(i32, FileId), Access>
            = Bounded::new(|access| access.missed.count * 1000 + access.reads),
    }
}

impl Rule for RandomAccess {
    fn call(&mut self, call: &Call, context: &Context) {
        let (Some(id), Some((start, end))) = (call.file, call.range()) else { return };
        if call.asynchronous || !context.file(call).is_some_and(|f| f.is_regular()) {
            return;
        }
        let access = self.accesses.entry((call.pid, id));
        access.readers.add(call);
        access.reads += 1;
        access.bytes += end - start;
        access.seen.insert(start, end);
        if access.step(call.tid, start, end) == Step::Jump {
            access.jumps += 1;
            access.jump_ns += call.dur_ns;
            if context.below.missed() {
                access.missed.add(call.dur_ns);
                access.under_way.add(call.ts_ns, call.ended_at_ns());
                access.examples.add(call);
            }
        }
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        for ((pid, id), access) in self.accesses.iter() {
            let (missed, threads) = (&access.missed, access.heads.len().max(1) as i64);
            let jumps = access.jumps as f64 / access.reads as f64;
            let busy = access.under_way.ns();
            let depth = missed.sum_ns as f64 / busy.max(1) as f64;
            let cost = busy - missed.sum_ns / AT_ONCE;
            let many = missed.count >= MIN_READS
                && missed.sum_ns as f64 >= access.jump_ns as f64 * MIN_MISSED;
            if !many || depth >= MAX_DEPTH || jumps <= MIN_JUMPS || !run.matters(cost) {
                continue;
            }
            let Some(file) = run.state.files.get(*id) else { continue };
            let unique = access.seen.len();
            let covered = unique as f64 / file.size.unwrap_or(i64::MAX).max(1) as f64;
            if covered >= SCAN && access.bytes < unique + unique / 4 {
                continue;
            }
            let path = file.name();
            let comm = access.readers.most().cloned().unwrap_or_default();
            out.push(Found {
                cost_ns: Some(cost),
                title: format!(
                    "{} reads {path} in random order: {} of its {} reads start far from the previous one, and {} of them waited for the device{}",
                    comm,
                    units::percent(jumps),
                    units::count(access.reads as i64),
                    units::count(missed.count as i64),
                    access.readers.list(),
                ),
                subject: Subject::process(*pid, &comm).with_file(*id, path),
                evidence: vec![
                    number("reads", access.reads as i64),
                    number("waiting_reads", missed.count as i64),
                    evidence("share_of_jumps", jumps),
                    number("median_ns", missed.median_ns()),
                    number("threads", threads),
                    evidence("mean_depth", depth),
                ],
                examples: access.examples.list(),
                query: calls!("pid = {pid} AND file_id = {id} AND call_reads(syscall) AND rid IN (SELECT submit_rid FROM bios)"),
                ..Found::default()
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, fires, silent};

    #[test]
    fn fires_on_rows_from_a_cold_table() {
        let mut s = Scenario::new();
        let fd = s.open_existing("/data/table", "O_RDONLY", 1 << 30);
        for i in 0..300 {
            s.missed(4096, 200_000);
            s.pread(fd, 4096, i * 389 % 1000 * 1_000_448);
        }
        let found = fires("random-access", s);
        assert_eq!(found[0].evidence[1].value, 299.0);
    }

    #[test]
    fn fires_on_a_ring_with_one_read_at_a_time() {
        let random = |s: &mut Scenario, fd: i32, i: i64| {
            s.missed(4096, 200_000);
            s.pread(fd, 4096, i * 389 % 1000 * 1_000_448);
        };
        let mut s = Scenario::new();
        let fd = s.open_existing("/data/table", "O_RDONLY", 1 << 30);
        for i in 0..300 {
            s.ring(1, |s, _| random(s, fd, i));
        }
        let found = fires("random-access", s);
        assert_eq!(found[0].evidence[1].value, 299.0);

        let mut s = Scenario::new();
        let fd = s.open_existing("/data/table", "O_RDONLY", 1 << 30);
        for i in 0..100 {
            s.ring(8, |s, part| random(s, fd, i * 8 + part));
        }
        silent("random-access", s);
    }

    #[test]
    fn silent_when_threads_read_at_the_same_time() {
        let at_once = |threads: i64| {
            let mut s = Scenario::new();
            let fd = s.open_existing("/data/table", "O_RDONLY", 1 << 30);
            for i in 0..100 {
                let began = s.now();
                s.wait_us(200);
                for thread in 0..threads {
                    s.thread(101 + thread as i32, "worker");
                    let at = (i * threads + thread) * 389 % 1000 * 1_000_448;
                    s.missed_pread_since(fd, 4096, at, began);
                }
            }
            s
        };
        silent("random-access", at_once(4));
        fires("random-access", at_once(1));
    }

    #[test]
    fn silent_in_memory_and_in_order_and_without_layers() {
        let mut s = Scenario::new();
        let fd = s.open_existing("/data/hot", "O_RDONLY", 1 << 30);
        for i in 0..300 {
            s.pread(fd, 4096, i * 389 % 1000 * 1_000_448);
        }
        let fd = s.open_existing("/data/cold", "O_RDONLY", 1 << 30);
        for i in 0..300 {
            s.missed(4096, 200_000);
            s.pread(fd, 4096, i * 65536);
        }
        silent("random-access", s);
        let mut s = Scenario::new();
        s.no_layers();
        let fd = s.open_existing("/data/table", "O_RDONLY", 1 << 30);
        for i in 0..300 {
            s.pread(fd, 4096, i * 389 % 1000 * 1_000_448);
        }
        let diagnosis = s.diagnose();
        assert!(diagnosis.not_observable.iter().any(|n| n.rule == "random-access"));
    }

    #[test]
    fn names_all_threads_that_read() {
        let mut s = Scenario::new();
        let fd = s.open_existing("/data/table", "O_RDONLY", 1 << 30);
        for i in 0..600 {
            match i % 3 {
                0 => s.thread(101, "checker"),
                n => s.thread(200 + n as i32, "client"),
            }
            s.missed(4096, 200_000);
            s.pread(fd, 4096, i * 389 % 1000 * 1_000_448);
        }
        let found = fires("random-access", s);
        let names = "; reads by thread: client (2 threads) 400, checker 200";
        assert!(found[0].title.starts_with("client ") && found[0].title.ends_with(names), "{}", found[0].title);
    }

    #[test]
    fn a_few_that_wait_outweigh_many_that_do_not() {
        let mut s = Scenario::new();
        let fd = s.open_existing("/data/table", "O_RDONLY", 1 << 30);
        for i in 0..1000 {
            if i % 8 == 0 {
                s.missed(4096, 200_000);
            }
            s.pread(fd, 4096, i * 389 % 1000 * 1_000_448);
        }
        let found = fires("random-access", s);
        assert_eq!(found[0].evidence[1].value, 124.0);
    }
}
