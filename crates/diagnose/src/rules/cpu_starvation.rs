//! `cpu-starvation`: calls look slow because their thread waits for a processor.

use crate::prelude::*;
use crate::summary::is_storage;

/// Part of the time in a process's calls to storage, from which on the wait for a processor is what makes them
/// slow.
const MIN_PART: f64 = 0.3;
/// Calls that waited for a processor, from which on that is no accident.
const MIN_CALLS: u64 = 8;
/// With this many times less wait for I/O it is not the storage that holds the calls up.
const NOT_FOR_IO: i64 = 10;
/// Shorter waits are the switch itself, nanoseconds.
const MIN_WAIT_NS: i64 = 100_000;

static INFO: RuleInfo = RuleInfo {
    id: "cpu-starvation",
    name: "Slow calls that wait for a processor",
    group: Group::Performance,
    needs: &[Input::Calls, Input::Waits],
    kinds: Kinds::ALL,
    about_calls: false,
    what: "Threads that are in a call could run, because what they waited for has come or because \
           they were preempted, but other threads have the processor. The calls look as if the \
           storage was slow: a sync that the device completes in half a millisecond returns after \
           ten.",
    when: "8 or more calls of a process waited for a processor for 0.1 ms or longer, and these waits \
           are 30 % or more of the time in all of its calls on files, directories and block devices, and \
           more than these calls, and page faults that read, wait for I/O. \
           Operations of io_uring and AIO do not count, as no thread is in them.",
    cost: "the time in which the threads could run in these calls and did not",
    advice: "Give the program processor time: stop or move what else runs there, raise its weight \
             (CPUWeight= of its unit; `nice` works only within its session while \
             kernel.sched_autogroup_enabled is 1), or give it more processors. If the processors had idle time meanwhile (column idle_ns of table machine), \
             a quota or a set of processors holds the program back: look at cpu.max and cpu.stat of \
             its cgroup and at its affinity. If steal_ns is large, the hypervisor holds the whole \
             machine back. If the program's own threads wait for each other, it has more of them \
             than processors.",
    not_when: "Not when the program is a batch job that shall use what others leave.",
    bad: "stress -c 16 &\nredis-server --appendfsync always",
    good: "systemd-run --scope -p CPUWeight=20 stress -c 16 &\nredis-server --appendfsync always",
    reference: "sched(7); cgroup v2, cpu.weight and cpu.max",
};

#[derive(Debug, Default)]
struct Process {
    comm: Text,
    calls: u64,
    in_calls_ns: i64,
    /// Calls that waited, and the time in them.
    waited: Durations,
    slow_ns: i64,
    queued_ns: i64,
    io_wait_ns: i64,
    /// Page faults that had to read, outside of calls.
    fault_wait_ns: i64,
    examples: Examples,
}

rule! {
    pub struct CpuStarvation {
        processes: Bounded<i32, Process> = Bounded::new(|process| process.queued_ns.unsigned_abs()),
    }
}

impl Rule for CpuStarvation {
    fn layers(&self) -> &'static [Layer] {
        &[Layer::Fault]
    }

    fn row(&mut self, row: &Row, _: &State) {
        let Row::Fault(fault) = row else { return };
        if fault.major {
            let process = self.processes.entry(fault.pid);
            process.fault_wait_ns = process.fault_wait_ns.saturating_add(fault.dur_ns.max(0));
        }
    }

    fn call(&mut self, call: &Call, context: &Context) {
        if call.operation || call.asynchronous || !is_storage(call.kind, context.file(call)) {
            return;
        }
        let process = self.processes.entry(call.pid);
        call.name_process(&mut process.comm);
        process.calls += 1;
        process.in_calls_ns = process.in_calls_ns.saturating_add(call.dur_ns.max(0));
        let io_wait = context.below.io_wait_ns.clamp(0, call.dur_ns.max(0));
        process.io_wait_ns = process.io_wait_ns.saturating_add(io_wait);
        let queued = context.below.run_queue_ns.min(call.dur_ns);
        if queued <= 0 {
            return;
        }
        process.queued_ns = process.queued_ns.saturating_add(queued);
        if queued >= MIN_WAIT_NS {
            process.waited.add(queued);
            process.slow_ns = process.slow_ns.saturating_add(call.dur_ns);
            process.examples.add(call);
        }
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        for (pid, process) in self.processes.iter() {
            let comm = run.process_name(*pid, &process.comm);
            let cost = process.queued_ns;
            let part = cost as f64 / process.in_calls_ns.max(1) as f64;
            // Where the storage takes longer, it is what to look at.
            let for_io = process.io_wait_ns.saturating_add(process.fault_wait_ns);
            let more = cost > for_io;
            if process.waited.count < MIN_CALLS || part < MIN_PART || !more || !run.matters(cost) {
                continue;
            }
            let waited = i64::try_from(process.waited.count).unwrap_or(i64::MAX);
            out.push(Found {
                cost_ns: Some(cost),
                costs: Costs::default().of_all_files(),
                title: format!(
                    "{} waits for a processor during {} of the time in its calls{}",
                    comm,
                    units::percent(part.min(1.0)),
                    match cost / NOT_FOR_IO > for_io {
                        true => ", not for the storage".to_owned(),
                        false => format!(", and {} for the storage", units::duration(for_io)),
                    },
                ),
                subject: Subject::process(*pid, &comm),
                evidence: vec![
                    number("calls", i64::try_from(process.calls).unwrap_or(i64::MAX)),
                    number("in_calls_ns", process.in_calls_ns),
                    number("run_queue_ns", process.queued_ns),
                    number("io_wait_ns", process.io_wait_ns),
                    number("fault_wait_ns", process.fault_wait_ns),
                    evidence("share_of_call_time", part.min(1.0)),
                    number("waiting_calls", waited),
                    number("median_wait_ns", process.waited.median_ns()),
                ],
                examples: process.examples.list(),
                query: format!(
                    "SELECT waits.ts_ns, waits.tid, waits.comm, CASE WHEN waits.state = 'preempted' THEN waits.dur_ns ELSE run_queue_ns END AS for_processor_ns, \
                     waits.dur_ns, reason, rid, syscall, path FROM waits JOIN syscalls USING (rid) WHERE waits.pid = {pid} \
                     ORDER BY for_processor_ns DESC NULLS LAST"
                ),
                ..Found::default()
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, fires, silent};

    #[test]
    fn silent_where_page_faults_wait_longer_for_the_device() {
        let with_faults = |ns| {
            let mut s = syncs(200, 700_000);
            for i in 0..100 {
                s.fault("/data/index", i * 4096, ns, true, "read");
            }
            s
        };
        fires("cpu-starvation", with_faults(1_000_000));
        silent("cpu-starvation", with_faults(2_000_000));
    }

    /// Syncs of a log of which each is in the queue of a processor for so long.
    fn syncs(times: i64, queued_ns: i64) -> Scenario {
        let mut s = Scenario::new();
        let fd = s.open("/data/log", "O_RDWR|O_CREAT");
        for i in 0..times {
            s.pwrite(fd, 4096, i * 4096);
            if queued_ns > 0 {
                s.wants_cpu(queued_ns);
            }
            s.fdatasync(fd);
        }
        s
    }

    #[test]
    fn fires_on_syncs_that_wait_for_a_processor() {
        let found = fires("cpu-starvation", syncs(200, 700_000));
        let value = |name: &str| found[0].evidence.iter().find(|e| e.name == name).unwrap().value;
        assert_eq!(value("waiting_calls"), 200.0);
        assert_eq!(value("run_queue_ns"), 140_000_000.0);
        assert_eq!(found[0].cost_ns, Some(140_000_000));
    }

    /// A shell makes calls before it executes the program.
    #[test]
    fn a_process_has_the_name_of_its_program() {
        let mut s = Scenario::new();
        s.thread(100, "bash");
        let fd = s.open("/data/log", "O_RDWR|O_CREAT");
        s.thread(100, "mariadbd");
        s.pwrite(fd, 4096, 0);
        s.thread(107, "connection");
        for _ in 0..200 {
            s.wants_cpu(700_000);
            s.fdatasync(fd);
        }
        let found = fires("cpu-starvation", s);
        assert!(found[0].title.starts_with("mariadbd waits"), "{}", found[0].title);
    }

    /// The first thread of a JVM makes no call.
    #[test]
    fn a_process_has_its_own_name_if_only_other_threads_make_calls() {
        let mut s = Scenario::new();
        s.thread(107, "VM Thread");
        let fd = s.open("/data/log", "O_RDWR|O_CREAT");
        for _ in 0..200 {
            s.wants_cpu(700_000);
            s.fdatasync(fd);
        }
        s.worker_ends(1, "java");
        let found = fires("cpu-starvation", s);
        assert!(found[0].title.starts_with("java waits"), "{}", found[0].title);
    }

    #[test]
    fn silent_on_few_on_short_waits_and_where_the_device_is_slower() {
        silent("cpu-starvation", syncs(7, 700_000));
        silent("cpu-starvation", syncs(200, 50_000));
        silent("cpu-starvation", syncs(200, 200_000));
        silent("cpu-starvation", syncs(200, 0));
    }

    /// A busy machine adds waits for a processor to calls that wait for the device.
    #[test]
    fn silent_where_calls_wait_longer_for_io() {
        let reads = |io_wait_ns: i64| {
            let mut s = Scenario::new();
            let fd = s.open("/data/table", "O_RDONLY");
            for i in 0..200 {
                s.wants_cpu(700_000);
                s.off_cpu(io_wait_ns);
                s.missed(4096, io_wait_ns + 700_000);
                s.pread(fd, 4096, i * 1_000_000);
            }
            s
        };
        silent("cpu-starvation", reads(1_000_000));
        fires("cpu-starvation", reads(500_000));
    }

    /// With fewer syncs there are fewer waits for a processor.
    #[test]
    fn syncs_keep_the_waits_between_them() {
        let storm = |queued_ns| {
            let diagnosis = syncs(400, queued_ns).diagnose();
            let syncs = diagnosis.findings.iter().find(|f| f.rule == "sync-storm").cloned();
            syncs.unwrap_or_else(|| panic!("{:#?}", diagnosis.findings))
        };
        let (alone, starved) = (storm(0), storm(700_000));
        assert_eq!(alone.cost_ns, starved.cost_ns);
        let also = |rule: &str| starved.also.iter().any(|also| also.rule == rule);
        assert!(also("cpu-starvation"), "{starved:#?}");
    }
}
