//! `noisy-neighbor`: requests wait behind requests of another process.

use std::collections::{HashMap, VecDeque};

use crate::layers::{Origin, Request};
use crate::prelude::*;

/// Requests of another process that complete while one waits, from which on it is
/// behind them.
const AHEAD: usize = 4;
/// Requests that waited behind others, and such that did not, from which on they compare.
const MIN_REQUESTS: u64 = 64;
/// How many times longer the ones behind others take.
const MIN_RATIO: f64 = 3.0;
/// Completions of a device that are remembered.
const RECENT: usize = 512;

static INFO: RuleInfo = RuleInfo {
    id: "noisy-neighbor",
    name: "Waiting behind another process's requests",
    group: Group::Performance,
    needs: &[Input::Calls, Input::Block],
    kinds: Kinds::NONE,
    about_calls: false,
    what: "Requests that a program waits for (reads that miss the page cache, syncs) wait in the \
           queue of the device behind requests of another process, such as a backup or a copy, and \
           take several times as long.",
    when: "For 64 or more requests that a process's calls waited for, the device completed four or \
           more requests of one other process first. Their median latency is at least 3 times the \
           median of 64 or more requests that were not delayed in this way. Fewer than four may be chance. \
           Write-back by the kernel on behalf of the process itself is not another process's. If no \
           request was undisturbed, there is nothing to compare with and the rule is silent.",
    cost: "total time of the delayed requests, minus what the same number would take at the median \
           latency of undelayed requests",
    advice: "Give the other process a lower weight (ionice -c 3, io.weight or io.max of its cgroup; \
           systemd-run -p IOWeight=), let it write with O_DIRECT or sync_file_range in small \
           steps so that it does not fill the queue at once, run it at another time, or use \
           another device. A scheduler that shares (bfq) or protects reads (mq-deadline, kyber) \
           helps if the device has none.",
    not_when: "Not when the other process is the important one.",
    bad: "tar cf /backup/all.tar /srv &",
    good: "systemd-run --scope -p IOWeight=10 ionice -c 3 tar cf /backup/all.tar /srv &",
    reference: "Multilevel trace analysis, section 4.2: a web server's requests behind backup.sh",
};

/// A completion.
#[derive(Clone, Copy, Debug)]
struct Done {
    ns: i64,
    pid: i32,
    comm: u64,
}

/// One process on one device.
#[derive(Debug, Default)]
struct Waiter {
    quiet: Durations,
    behind: Durations,
    /// Whom they were behind, and how often.
    hogs: HashMap<(i32, u64), u64>,
    examples: Examples,
}

/// Processes that one waits behind, which are distinguished.
const MAX_HOGS: usize = 64;
const MAX_NAMES: usize = 4096;

rule! {
    pub struct NoisyNeighbor {
        devices: HashMap<u64, (String, VecDeque<Done>)>,
        waiters: Bounded<(i32, u64), Waiter> = Bounded::new(|waiter| waiter.behind.count),
        names: HashMap<u64, String>,
    }
}

impl NoisyNeighbor {
    fn name(&mut self, comm: &str) -> u64 {
        let key = key_of(comm);
        if self.names.len() < MAX_NAMES || self.names.contains_key(&key) {
            self.names.entry(key).or_insert_with(|| comm.to_owned());
        }
        key
    }
}

/// The beneficiary of a request: the recorded process that caused it, otherwise its submitter.
fn owner(request: &Request) -> Option<i32> {
    let cause = request.bios.first().and_then(|bio| bio.cause_pid);
    cause.or(request.pid)
}

/// Whether a call of the process waits for it.
fn awaited(request: &Request) -> Option<(i32, i64)> {
    let bio = request.bios.first()?;
    let (pid, rid) = (bio.cause_pid?, bio.submit_rid?);
    let waits = match request.op {
        "read" => bio.origin != Origin::Readahead,
        "write" => true,
        _ => false,
    };
    waits.then_some((pid, rid))
}

impl Rule for NoisyNeighbor {
    fn call(&mut self, _: &Call, _: &Context) {}

    fn layers(&self) -> &'static [Layer] {
        &[Layer::Device]
    }

    fn row(&mut self, row: &Row, state: &State) {
        let Row::Device(request) = row else { return };
        let comm = self.name(request.comm);
        let device = key_of(request.device);
        let (_, done) = self
            .devices
            .entry(device)
            .or_insert_with(|| (request.device.to_owned(), VecDeque::new()));
        if let (Some((pid, rid)), Some(queued)) = (awaited(request), request.queued_at_ns) {
            let mut ahead: Vec<((i32, u64), usize)> = Vec::new();
            for other in done.iter().rev().take_while(|other| other.ns > queued) {
                if other.pid == pid {
                    continue;
                }
                match ahead.iter_mut().find(|(who, _)| *who == (other.pid, other.comm)) {
                    Some((_, count)) => *count += 1,
                    None => ahead.push(((other.pid, other.comm), 1)),
                }
            }
            let waiter = self.waiters.entry((pid, device));
            let dur = request.completed_at_ns.saturating_sub(queued);
            match ahead.into_iter().max_by_key(|(_, count)| *count) {
                None => waiter.quiet.add(dur),
                Some((who, count)) if count >= AHEAD => {
                    waiter.behind.add(dur);
                    if waiter.hogs.len() < MAX_HOGS || waiter.hogs.contains_key(&who) {
                        *waiter.hogs.entry(who).or_insert(0) += 1;
                    }
                    waiter.examples.add_with(dur, || {
                        let bio = request.bios.first();
                        let file = bio.and_then(|bio| state.files.get(bio.file?));
                        Example {
                            rid,
                            ts_ns: queued,
                            dur_ns: dur,
                            tid: bio.and_then(|bio| bio.cause_tid).unwrap_or(0),
                            syscall: request.op.into(),
                            path: file.map(|f| f.name().into()),
                            offset: bio.and_then(|bio| bio.offset),
                            ret: None,
                        }
                    });
                }
                Some(_) => {}
            }
        }
        if done.len() >= RECENT {
            done.pop_front();
        }
        done.push_back(Done {
            ns: request.completed_at_ns,
            pid: owner(request).unwrap_or(0),
            comm,
        });
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        for ((pid, device), waiter) in self.waiters.iter() {
            let (quiet, behind) = (waiter.quiet.median_ns(), waiter.behind.median_ns());
            let count = i64::try_from(waiter.behind.count).unwrap_or(i64::MAX);
            let cost = waiter.behind.sum_ns.saturating_sub(count.saturating_mul(quiet));
            let ratio = behind as f64 / quiet.max(1) as f64;
            let enough = waiter.quiet.count >= MIN_REQUESTS && waiter.behind.count >= MIN_REQUESTS;
            if !enough || ratio < MIN_RATIO || !run.matters(cost) {
                continue;
            }
            let device = self.devices.get(device).map_or("", |(name, _)| name.as_str());
            let hog = waiter.hogs.iter().max_by_key(|(who, count)| (**count, **who));
            let Some(((hog_pid, hog), _)) = hog else { continue };
            let hog = self.names.get(hog).map_or("", String::as_str);
            // The kernel's own threads write back for others.
            let comm = run.comm(*pid);
            out.push(Found {
                cost_ns: Some(cost),
                title: format!(
                    "{comm} waits on {device} behind requests of {hog} ({hog_pid}): the median of {} delayed requests is {}, of undelayed ones {}",
                    units::count(count),
                    units::duration(behind),
                    units::duration(quiet),
                ),
                subject: Subject::process(*pid, &comm),
                evidence: vec![
                    number("requests_behind", count),
                    number("median_behind_ns", behind),
                    number("median_undisturbed_ns", quiet),
                    evidence("ratio", ratio),
                ],
                examples: waiter.examples.list(),
                query: format!(
                    "SELECT rid, ts_ns, dur_ns, device, op, bytes, queue_depth, pid, comm, path FROM block WHERE device = {} ORDER BY completed_at_ns",
                    crate::sql::quote(device)
                ),
                ..Found::default()
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, fires, silent};

    fn server(behind: usize) -> Scenario {
        let mut s = Scenario::new();
        let fd = s.open_existing("/srv/table", "O_RDONLY", 1 << 30);
        for i in 0..400 {
            if i >= 200 {
                // A backup's are on their way as the read begins.
                s.others_ahead(behind, 900, "backup", 400_000);
                s.missed(4096, 100_000 + 400_000 * behind as i64);
            } else {
                s.missed(4096, 100_000);
            }
            s.pread(fd, 4096, i * 65536);
            s.wait_ms(2);
        }
        s
    }

    #[test]
    fn fires_on_reads_behind_a_backup() {
        let found = fires("noisy-neighbor", server(6));
        assert!(found[0].title.contains("backup (900)"), "{found:?}");
    }

    #[test]
    fn silent_when_only_one_is_in_the_way() {
        silent("noisy-neighbor", server(1));
    }
}
