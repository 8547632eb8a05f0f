//! `direct-shallow`: direct I/O in small pieces, in order, one at a time.

use crate::prelude::*;

/// Calls from which on they count.
const MIN_CALLS: u64 = 128;
/// Their share of the process's time.
const MIN_PART: f64 = 0.1;
/// Bytes from which on a piece is large: what a device reads in about the time that a request takes by itself.
const LARGE: i64 = 64 << 10;
/// Share of the calls that continue where the previous one ended, and that ran alone.
const MIN_SHARE: f64 = 0.9;
/// Writes to a sync, from which on it is not a log whose records are made durable.
const WRITES_A_SYNC: u64 = 16;

static INFO: RuleInfo = RuleInfo {
    id: "direct-shallow",
    name: "Direct I/O in small pieces, one at a time",
    group: Group::Performance,
    needs: &[Input::Calls],
    kinds: kinds![Read, Write, Sync],
    about_calls: false,
    what: "A process reads or writes a file with O_DIRECT from one end to the other in small \
           pieces, and waits for each piece. With O_DIRECT the kernel neither reads ahead nor \
           collects writes: each piece costs the full latency of a request, and the device has one \
           request at a time.",
    when: "One process makes 128 or more calls of less than 64 KiB each on one file opened with \
           O_DIRECT. 90 % of them start where the previous one ended, 90 % run while no other \
           thread of the process is in such a call, and they take 10 % or more of its time. \
           Operations of io_uring and AIO do not count (see shallow-async), nor do O_SYNC and \
           O_DSYNC, nor a file that is synced every 16 writes or more often: a log that makes each \
           record durable has to wait for each.",
    cost: "half of the time of these calls",
    advice: "Move 1 MiB per call, or keep eight or more calls in flight with io_uring or threads; \
           or open the file without O_DIRECT, so that the kernel reads ahead.",
    not_when: "Not when each piece decides what to do next.",
    bad: "fd = open(path, O_RDONLY | O_DIRECT);\nwhile (read(fd, buffer, 4096) > 0)\n    work(buffer);",
    good: "fd = open(path, O_RDONLY | O_DIRECT);\nwhile ((n = read(fd, buffer, 1 << 20)) > 0)\n    work_on_all(buffer, n);",
    reference: "open(2), O_DIRECT",
};

/// Calls of a process on a file.
#[derive(Debug, Default)]
struct Stream {
    comm: Text,
    calls: Durations,
    bytes: i64,
    in_order: u64,
    beside: u64,
    syncs: u64,
    examples: Examples,
}

rule! {
    pub struct DirectShallow {
        streams: Bounded<(i32, FileId, bool), Stream> = Bounded::new(|stream| stream.calls.count),
        /// By process: the thread whose call ended last, and when.
        last: Bounded<i32, (i32, i64)> = Bounded::new(|(_, at_ns)| at_ns.unsigned_abs()),
    }
}

impl Rule for DirectShallow {
    fn call(&mut self, call: &Call, context: &Context) {
        let Some(id) = call.file.filter(|_| call.succeeded() && !call.operation) else { return };
        if call.kind == Kind::Sync {
            if let Some(stream) = self.streams.get_mut(&(call.pid, id, true)) {
                stream.syncs += 1;
            }
            return;
        }
        let Some(open) = context.open().filter(|open| open.is_direct()) else { return };
        let Some((start, end)) = call.range() else { return };
        if context.synced.is_some() || !context.file(call).is_some_and(|file| file.is_regular()) {
            return;
        }
        let (tid, ended) = std::mem::replace(self.last.entry(call.pid), (call.tid, call.ended_at_ns()));
        let beside = tid != call.tid && call.ts_ns < ended;
        if end - start >= LARGE {
            return;
        }
        let stream = self.streams.entry((call.pid, id, call.kind == Kind::Write));
        if stream.calls.count == 0 {
            stream.comm = call.comm_text();
        }
        stream.calls.add(call.dur_ns);
        stream.bytes = stream.bytes.saturating_add(end - start);
        stream.in_order += u64::from(open.end.is_none_or(|before| before == start));
        stream.beside += u64::from(beside);
        stream.examples.add(call);
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        for ((pid, id, writes), stream) in self.streams.iter() {
            let calls = &stream.calls;
            let share = |n: u64| n as f64 / calls.count.max(1) as f64;
            let part = calls.sum_ns as f64 / run.lifetime_ns(*pid).max(1) as f64;
            let cost = calls.sum_ns / 2;
            let alone = share(calls.count - stream.beside);
            let commits = stream.syncs.saturating_mul(WRITES_A_SYNC) > calls.count;
            if calls.count < MIN_CALLS || share(stream.in_order) < MIN_SHARE || alone < MIN_SHARE || commits {
                continue;
            }
            if part < MIN_PART || !run.matters(cost) {
                continue;
            }
            let path = run.state.files.get(*id).map_or("", |file| file.name());
            let count = i64::try_from(calls.count).unwrap_or(i64::MAX);
            let mean = stream.bytes / count.max(1);
            out.push(Found {
                cost_ns: Some(cost),
                costs: Costs::of(&[if *writes { Kind::Write } else { Kind::Read }]),
                title: format!(
                    "{} {} {path} with O_DIRECT in {} pieces of {} on average, one at a time: {} of its time",
                    stream.comm,
                    if *writes { "writes" } else { "reads" },
                    units::count(count),
                    units::bytes(mean),
                    units::percent(part.min(1.0)),
                ),
                subject: Subject::process(*pid, &stream.comm).with_file(*id, path),
                evidence: vec![
                    number("direct_calls", count),
                    number("mean_bytes", mean),
                    number("median_ns", calls.median_ns()),
                    evidence("share_of_time", part.min(1.0)),
                ],
                examples: stream.examples.list(),
                query: calls!("pid = {pid} AND file_id = {id} AND {}(syscall)", if *writes { "call_writes" } else { "call_reads" }),
                ..Found::default()
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, fires, silent};

    fn reads(flags: &str, size: i64, step: i64) -> Scenario {
        let mut s = Scenario::new();
        let fd = s.open_existing("/data/table", flags, 1 << 30);
        s.slow(80_000);
        for i in 0..400 {
            s.pread(fd, size, i * step);
        }
        s
    }

    #[test]
    fn fires_on_pages_in_order() {
        let found = fires("direct-shallow", reads("O_RDONLY|O_DIRECT", 4096, 4096));
        assert_eq!(found[0].evidence[0].value, 400.0);
        assert_eq!(found[0].evidence[1].value, 4096.0);
    }

    /// badblocks(8) opens the device first.
    #[test]
    fn fires_on_a_file_that_is_made_direct_later() {
        let reads = |first, then| {
            let mut s = Scenario::new();
            let fd = s.open_existing("/data/table", first, 1 << 30);
            s.set_flags(fd, then);
            s.slow(80_000);
            for i in 0..400 {
                s.pread(fd, 4096, i * 4096);
            }
            s
        };
        fires("direct-shallow", reads("O_RDONLY", "O_RDONLY|O_DIRECT|O_LARGEFILE"));
        silent("direct-shallow", reads("O_RDONLY|O_DIRECT", "O_RDONLY|O_LARGEFILE"));
    }

    #[test]
    fn silent_on_large_pieces_on_places_all_over_and_through_the_cache() {
        silent("direct-shallow", reads("O_RDONLY|O_DIRECT", 1 << 20, 1 << 20));
        silent("direct-shallow", reads("O_RDONLY|O_DIRECT", 4096, 1 << 20));
        silent("direct-shallow", reads("O_RDONLY", 4096, 4096));
    }

    fn log(flags: &str, syncs_each: i64) -> Scenario {
        let mut s = Scenario::new();
        let fd = s.open("/data/redo", flags);
        s.slow(80_000);
        for i in 0..400 {
            s.write(fd, 4096);
            if i % syncs_each == 0 {
                s.fdatasync(fd);
            }
        }
        s
    }

    #[test]
    fn silent_on_a_log_whose_records_are_made_durable() {
        fires("direct-shallow", log("O_WRONLY|O_CREAT|O_DIRECT", 200));
        silent("direct-shallow", log("O_WRONLY|O_CREAT|O_DIRECT", 4));
        silent("direct-shallow", log("O_WRONLY|O_CREAT|O_DIRECT|O_DSYNC", 200));
    }

    #[test]
    fn silent_on_threads_that_read_beside_each_other() {
        let mut s = Scenario::new();
        let fd = s.open_existing("/data/table", "O_RDONLY|O_DIRECT", 1 << 30);
        for i in 0..400 {
            s.thread(100, "program");
            s.slow(80_000);
            s.pread(fd, 4096, 2 * i * 4096);
            s.thread(101, "program");
            let now = s.now();
            s.back_to(now - 40_000);
            s.pread(fd, 4096, (2 * i + 1) * 4096);
        }
        silent("direct-shallow", s);
    }
}
