//! `shallow-async`: an interface for many operations at once is used for one at a time.

use crate::prelude::*;

/// Operations that waited for the device one at a time, from which on they count.
const MIN_OPERATIONS: u64 = 128;
/// Their share of the process's reads and writes by these interfaces that were not alone, too.
const MIN_ALONE: f64 = 0.9;
/// Share of the process's time that goes into them.
const MIN_PART: f64 = 0.2;
/// Operations that could be on their way at a time.
const AT_ONCE: i64 = 8;

static INFO: RuleInfo = RuleInfo {
    id: "shallow-async",
    name: "Asynchronous I/O, one at a time",
    group: Group::Performance,
    needs: &[Input::Calls, Input::Block],
    kinds: kinds![Read, Write],
    about_calls: false,
    what: "A process reads or writes through io_uring or AIO, but submits one operation, waits \
           until it has completed, and then submits the next. The device never has more than one to \
           work on, as with pread and pwrite, and each operation costs more than these calls.",
    when: "One process makes 128 or more reads and writes of files through io_uring or AIO that \
           reach the device, each of them the only one of the process in flight, with its thread \
           waiting for it at its end. These are 90 % or more of all such operations and take 20 % \
           or more of the process's time. Writes that are made durable one by one do not count.",
    cost: "seven eighths of their time, as if eight were in flight",
    advice: "Submit eight or more operations before waiting for the first, and one more as each \
           completes. If each depends on the previous one, pread and pwrite do the same with \
           fewer calls.",
    not_when: "Not when the next operation is known only once this one has completed.",
    bad: "for (i = 0; i < n; i++) {\n    io_uring_prep_read(io_uring_get_sqe(&ring), fd, buf, size, at[i]);\n    io_uring_submit_and_wait(&ring, 1);\n    reap(&ring);\n}",
    good: "for (i = 0; i < n; i++) {\n    io_uring_prep_read(io_uring_get_sqe(&ring), fd, buf[i % 32], size, at[i]);\n    if (i % 8 == 7) {\n        \
           io_uring_submit_and_wait(&ring, 8);\n        reap(&ring);\n    }\n}",
    reference: "io_uring(7); Haas, Leis: What Modern NVMe Storage Can Do, and How to Exploit It (VLDB 2023)",
};

#[derive(Debug, Default)]
struct Process {
    comm: Text,
    operations: u64,
    /// Operations that were alone, and how many of these reached the device.
    alone: u64,
    waited: Durations,
    examples: Examples,
}

rule! {
    pub struct ShallowAsync {
        processes: Bounded<i32, Process> = Bounded::new(|process| process.operations),
    }
}

impl Rule for ShallowAsync {
    fn call(&mut self, call: &Call, context: &Context) {
        if !call.operation || call.range().is_none() || context.synced.is_some() {
            return;
        }
        if !context.file(call).is_some_and(|file| file.is_regular()) {
            return;
        }
        let process = self.processes.entry(call.pid);
        call.name_process(&mut process.comm);
        process.operations += 1;
        if call.asynchronous {
            return;
        }
        process.alone += 1;
        if context.below.missed() || context.below.written_bytes > 0 {
            process.waited.add(call.dur_ns);
            process.examples.add(call);
        }
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        for (pid, process) in self.processes.iter() {
            let comm = run.process_name(*pid, &process.comm);
            let waited = &process.waited;
            let alone = process.alone as f64 / process.operations.max(1) as f64;
            let part = waited.sum_ns as f64 / run.lifetime_ns(*pid).max(1) as f64;
            let cost = waited.sum_ns / AT_ONCE * (AT_ONCE - 1);
            if waited.count < MIN_OPERATIONS || alone < MIN_ALONE || part < MIN_PART || !run.matters(cost) {
                continue;
            }
            let count = i64::try_from(waited.count).unwrap_or(i64::MAX);
            out.push(Found {
                cost_ns: Some(cost),
                title: format!(
                    "{} waits for {} operations of io_uring or AIO one at a time: {} of its time",
                    comm,
                    units::count(count),
                    units::percent(part.min(1.0)),
                ),
                subject: Subject::process(*pid, &comm),
                evidence: vec![
                    number("operations_that_waited", count),
                    number("operations", i64::try_from(process.operations).unwrap_or(i64::MAX)),
                    evidence("share_alone", alone),
                    number("median_ns", waited.median_ns()),
                ],
                examples: process.examples.list(),
                query: calls!("pid = {pid} AND api IN ('io_uring', 'aio') AND (call_reads(syscall) OR call_writes(syscall))"),
                ..Found::default()
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, fires, silent};

    fn reads(at_once: i64) -> Scenario {
        let mut s = Scenario::new();
        let fd = s.open_existing("/data/table", "O_RDONLY|O_DIRECT", 1 << 30);
        for i in 0..400 / at_once {
            s.direct_ring(at_once, |s, part| {
                s.missed(65536, 200_000);
                s.pread(fd, 65536, (i * at_once + part) * 65536);
            });
        }
        s
    }

    #[test]
    fn fires_on_one_at_a_time() {
        let found = fires("shallow-async", reads(1));
        assert_eq!(found[0].evidence[0].value, 400.0);
    }

    #[test]
    fn silent_on_several_at_once_and_in_memory() {
        silent("shallow-async", reads(8));
        let mut s = Scenario::new();
        let fd = s.open_existing("/data/hot", "O_RDONLY", 1 << 30);
        for i in 0..400 {
            s.ring(1, |s, _| s.pread(fd, 65536, i * 65536));
        }
        silent("shallow-async", s);
    }
}
