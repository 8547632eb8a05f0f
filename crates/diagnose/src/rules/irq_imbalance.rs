//! `irq-imbalance`: one thread pays for the interrupts of all.

use std::collections::HashMap;

use crate::names::role;
use crate::prelude::*;

/// Interrupts of a thread from which on they count.
const MIN_INTERRUPTS: u64 = 100;
/// How many times the share of its peers.
const MIN_RATIO: f64 = 4.0;
/// Time in calls and on the CPU from which on shares compare, nanoseconds.
const MIN_TIME_NS: i64 = 10_000_000;

static INFO: RuleInfo = RuleInfo {
    id: "irq-imbalance",
    name: "One thread serves the interrupts of all",
    group: Group::Performance,
    needs: &[Input::Calls, Input::Waits, Input::Interrupts],
    kinds: kinds![Read, Write, Transfer, Sync, Open, Stat, ReadDir, Unlink, Rename, Truncate, Allocate],
    about_calls: false,
    what: "Among threads that do the same work, one is interrupted much more during its requests \
           than the others, because all interrupts of a device or of timers arrive at the CPU on \
           which it runs. Its requests take longer than its peers', and a thread that waits \
           for all of them waits for this one.",
    when: "Interrupt handlers take 4 times as large a fraction of a thread's time in calls and on \
           the CPU as of the median of its peers, which are the other threads of its process with \
           the same name, and the thread had 100 or more interrupts. Threads with less than 10 \
           milliseconds of such time do not count, because chance dominates there. Digits at the \
           end of a name are ignored.",
    cost: "the time of the thread's interrupts beyond the fraction that its peers spend on theirs",
    advice: "Spread the device's interrupts (irqbalance, /proc/irq/N/smp_affinity_list), or keep \
           the threads off the CPU that receives them (taskset, sched_setaffinity, isolcpus, a \
           cpuset), or make the device interrupt less often (ethtool -C, nvme set-feature for \
           coalescing).",
    not_when: "Not when the thread was placed there on purpose to spare the others.",
    bad: "taskset -c 0 ./reader & taskset -c 1 ./reader &   # all interrupts go to CPU 0",
    good: "echo 2-3 > /proc/irq/24/smp_affinity_list",
    reference: "ReLayTracer, table 1: threads with up to 60 times the interrupts of their peers",
};

#[derive(Debug, Default)]
struct Thread {
    pid: i32,
    comm: Text,
    interrupts: u64,
    interrupt_ns: i64,
    /// In calls, less the waits.
    time_ns: i64,
    names: HashMap<String, i64>,
    examples: Examples,
    slowest_ns: i64,
}

/// Sources of interrupts that are distinguished.
const MAX_NAMES: usize = 32;

rule! {
    pub struct IrqImbalance {
        threads: Bounded<i32, Thread> = Bounded::new(|thread| thread.interrupts),
    }
}

impl Rule for IrqImbalance {
    fn layers(&self) -> &'static [Layer] {
        &[Layer::Interrupt]
    }

    fn row(&mut self, row: &Row, _: &State) {
        let Row::Interrupt(interrupt) = row else { return };
        let thread = self.threads.entry(interrupt.tid);
        thread.pid = interrupt.pid;
        thread.interrupts += 1;
        thread.interrupt_ns += interrupt.dur_ns;
        if let Some(ns) = thread.names.get_mut(interrupt.name) {
            *ns += interrupt.dur_ns;
        } else if thread.names.len() < MAX_NAMES {
            thread.names.insert(interrupt.name.to_owned(), interrupt.dur_ns);
        }
    }

    fn call(&mut self, call: &Call, context: &Context) {
        if call.asynchronous || call.ret.is_none() {
            return;
        }
        let thread = self.threads.entry(call.tid);
        thread.pid = call.pid;
        call.name_thread(&mut thread.comm);
        let own = (call.dur_ns - context.below.off_cpu_ns).max(0);
        thread.time_ns += own;
        if own > thread.slowest_ns {
            thread.slowest_ns = own;
            thread.examples = Examples::default();
            thread.examples.add(call);
        }
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        let part = |t: &Thread| t.interrupt_ns as f64 / t.time_ns.max(1) as f64;
        let mut groups: HashMap<(i32, &str), Vec<(i32, &Thread)>> = HashMap::new();
        for (tid, thread) in self.threads.iter().filter(|(_, t)| t.time_ns >= MIN_TIME_NS) {
            groups
                .entry((thread.pid, role(&thread.comm)))
                .or_default()
                .push((*tid, thread));
        }
        for group in groups.values() {
            for (tid, thread) in group {
                let mut peers: Vec<f64> =
                    group.iter().filter(|(other, _)| other != tid).map(|(_, t)| part(t)).collect();
                peers.sort_by(f64::total_cmp);
                let Some(median) = peers.get(peers.len() / 2).copied() else { continue };
                let own = part(thread);
                let cost = thread.interrupt_ns - (thread.time_ns as f64 * median) as i64;
                if thread.interrupts < MIN_INTERRUPTS || own < median * MIN_RATIO || !run.matters(cost) {
                    continue;
                }
                let most = thread.names.iter().max_by_key(|(name, ns)| (**ns, name.as_str()));
                out.push(Found {
                    cost_ns: Some(cost),
                    title: format!(
                        "{} is interrupted {} times in its calls, mostly by {}: {} of its time in calls, compared with {} for its peers",
                        thread.comm,
                        units::count(thread.interrupts as i64),
                        most.map_or("?", |(name, _)| name.as_str()),
                        units::percent(own),
                        units::percent(median),
                    ),
                    subject: Subject {
                        tid: Some(*tid),
                        ..Subject::process(thread.pid, &thread.comm)
                    },
                    evidence: vec![
                        number("interrupts", thread.interrupts as i64),
                        number("interrupt_ns", thread.interrupt_ns),
                        evidence("share_of_calls", own),
                        evidence("share_of_peers", median),
                        number("peers", peers.len() as i64),
                    ],
                    examples: thread.examples.list(),
                    query: format!(
                        "SELECT rid, ts_ns, dur_ns, tid, comm, cpu, kind, name FROM irqs WHERE pid = {} ORDER BY ts_ns",
                        thread.pid
                    ),
                    ..Found::default()
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, fires, silent};

    fn readers(of_second: i64) -> Scenario {
        let mut s = Scenario::new();
        let fd = s.open_existing("/data/hot", "O_RDONLY", 1 << 30);
        for i in 0..2000 {
            s.thread(101, "reader1");
            s.interrupt("virtio0", 2_000);
            s.pread(fd, 1 << 20, i << 20);
            s.thread(102, "reader2");
            for _ in 0..of_second {
                s.interrupt("virtio0", 2_000);
            }
            s.pread(fd, 1 << 20, i << 20);
        }
        s
    }

    #[test]
    fn fires_on_the_thread_that_gets_them_all() {
        let found = fires("irq-imbalance", readers(8));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].subject.tid, Some(102));
    }

    #[test]
    fn silent_when_they_are_shared() {
        silent("irq-imbalance", readers(1));
    }
}
