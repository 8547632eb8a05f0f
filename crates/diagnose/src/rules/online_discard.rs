//! `online-discard`: calls that remove files wait for the device to discard their blocks.

use crate::prelude::*;

const MIN_CALLS: u64 = 100;
/// Their share of the process's time.
const MIN_PART: f64 = 0.1;

static INFO: RuleInfo = RuleInfo {
    id: "online-discard",
    name: "Waiting for discards of removed files",
    group: Group::Performance,
    needs: &[Input::Calls, Input::Block],
    kinds: kinds![Unlink, Rename, Truncate, Open, Close],
    about_calls: false,
    what: "A process removes or empties many files on a file system mounted with the option \
           `discard`. For each file the file system informs the device of the freed blocks, and the \
           call waits for the device's answer. On many devices this takes longer than a write.",
    when: "100 or more calls of one process that removed, replaced, or truncated files or closed \
           removed ones (unlink, rename, truncate, open with O_TRUNC, close) submitted discards and \
           read nothing from the device, and the device took 10 % or more of its time for them. If the file system \
           discards later, in the thread of its journal, no call waits. Explicit discards (fstrim, \
           blkdiscard) do not count.",
    cost: "the time that the device took for the discards, at most the time that the call waited for \
           I/O. Time in the device's queue is not the discards' fault",
    advice: "Mount the file system without `discard` and let `fstrim.timer` discard once a week; on \
           btrfs use `discard=async`.",
    not_when: "Not when the device is thinly provisioned and must get space back at once.",
    bad: "/dev/vda1 /data ext4 discard 0 2          # /etc/fstab",
    good: "/dev/vda1 /data ext4 defaults 0 2\nsystemctl enable --now fstrim.timer",
    reference: "ext4(5), discard; fstrim(8)",
};

#[derive(Debug, Default)]
struct Process {
    comm: Text,
    calls: Durations,
    discards: i64,
    examples: Examples,
}

/// The discards of a call.
#[derive(Debug, Default)]
struct Discards {
    count: i64,
    /// Time in the device.
    device_ns: i64,
}

rule! {
    pub struct OnlineDiscard {
        /// Discards by the call that submitted them, which has not ended yet.
        submitted: Bounded<i64, Discards>,
        processes: Bounded<i32, Process> = Bounded::new(|process| process.calls.count),
    }
}

impl Rule for OnlineDiscard {
    fn layers(&self) -> &'static [Layer] {
        &[Layer::Device]
    }

    fn row(&mut self, row: &Row, _: &State) {
        let Row::Device(request) = row else { return };
        if request.op == "discard" {
            let issued = request.issued_at_ns.or(request.queued_at_ns);
            let device_ns = request.completed_at_ns - issued.unwrap_or(request.completed_at_ns);
            for rid in request.bios.iter().filter_map(|bio| bio.submit_rid) {
                let own = self.submitted.entry(rid);
                own.count += 1;
                own.device_ns = own.device_ns.saturating_add(device_ns.max(0));
            }
        }
    }

    fn call(&mut self, call: &Call, context: &Context) {
        if self.submitted.is_empty() {
            return;
        }
        let Some(discards) = self.submitted.remove(&call.rid) else { return };
        if !call.succeeded() || call.operation || context.below.missed() {
            return;
        }
        let process = self.processes.entry(call.pid);
        call.name_process(&mut process.comm);
        let waited = match context.below.io_wait_ns {
            0 => call.dur_ns,
            waited => waited,
        };
        process.calls.add(waited.min(discards.device_ns));
        process.discards += discards.count;
        process.examples.add(call);
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        for (pid, process) in self.processes.iter() {
            let comm = run.process_name(*pid, &process.comm);
            let cost = process.calls.sum_ns;
            let part = cost as f64 / run.lifetime_ns(*pid).max(1) as f64;
            if process.calls.count < MIN_CALLS || part < MIN_PART || !run.matters(cost) {
                continue;
            }
            let calls = i64::try_from(process.calls.count).unwrap_or(i64::MAX);
            out.push(Found {
                cost_ns: Some(cost),
                costs: Costs::default().of_all_files(),
                title: format!(
                    "{} waits for the device to discard the blocks of files in {} calls: {} of its time",
                    comm,
                    units::count(calls),
                    units::percent(part.min(1.0)),
                ),
                subject: Subject::process(*pid, &comm),
                evidence: vec![
                    number("calls_with_discards", calls),
                    number("discards", process.discards),
                    number("median_ns", process.calls.median_ns()),
                    evidence("share_of_time", part.min(1.0)),
                ],
                examples: process.examples.list(),
                query: calls!("pid = {pid} AND rid IN (SELECT submit_rid FROM bios JOIN block USING (block_id) WHERE op = 'discard')"),
                ..Found::default()
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, fires, silent};

    fn removes(files: i64, discard_ns: i64, between_us: i64) -> Scenario {
        let mut s = Scenario::new();
        for i in 0..files {
            if discard_ns > 0 {
                s.discards(discard_ns);
            }
            s.unlink(&format!("/data/{i}"));
            s.wait_us(between_us);
        }
        s
    }

    #[test]
    fn fires_on_removals_that_wait() {
        let found = fires("online-discard", removes(200, 500_000, 10));
        assert_eq!(found[0].evidence[0].value, 200.0);
    }

    #[test]
    fn silent_on_few_on_rare_ones_and_without_discards() {
        silent("online-discard", removes(50, 500_000, 10));
        silent("online-discard", removes(200, 500_000, 20_000));
        silent("online-discard", removes(200, 0, 10));
    }

    #[test]
    fn silent_when_the_discards_wait_in_the_queue() {
        let mut s = Scenario::new();
        s.served_within(20_000);
        for i in 0..200 {
            s.discards(500_000);
            s.unlink(&format!("/data/{i}"));
        }
        silent("online-discard", s);
    }

    #[test]
    fn silent_on_removals_that_read() {
        let mut s = Scenario::new();
        for i in 0..200 {
            s.missed(4096, 500_000);
            s.discards(100_000);
            s.unlink(&format!("/data/{i}"));
        }
        silent("online-discard", s);
    }
}
