//! `noisy-neighbor`: requests wait behind requests of another process.

use std::collections::{HashMap, VecDeque};

use crate::covered::Covered;
use crate::layers::{Origin, Request};
use crate::prelude::*;

/// Requests of another process that complete while one waits, from which on it is
/// behind them.
const AHEAD: usize = 4;
/// Requests that waited behind others, and such that did not, from which on they compare.
const MIN_REQUESTS: u64 = 64;
/// Requests behind another process from which on their time in the queue speaks for itself, where
/// too few were undisturbed to compare with: a starved program completes few.
const MIN_STARVED: u64 = 16;
/// Requests behind another process that suffice where they cost a large part of the recording: the longer each
/// of them takes, the fewer there are.
const MIN_COSTLY: u64 = 8;
const COSTLY: f64 = 0.1;
/// How many times longer the ones behind others take.
const MIN_RATIO: f64 = 3.0;
/// Completions of a device that are remembered.
const RECENT: usize = 512;

static INFO: RuleInfo = RuleInfo {
    id: "noisy-neighbor",
    name: "Waiting behind another process's requests",
    group: Group::Performance,
    needs: &[Input::Calls, Input::Block],
    kinds: kinds![Read, Transfer],
    about_calls: false,
    what: "Requests that a program waits for (reads that miss the page cache, syncs) wait in the \
           queue of the device behind requests of another process, such as a backup or a copy, and \
           take several times as long.",
    when: "For 64 or more requests that a process's calls waited for, the device completed four or \
           more requests of one other process first. Their median latency is at least 3 times the \
           median of 64 or more requests that were not delayed in this way. Fewer than four may be chance. \
           If the delayed requests cost 10 % of the recording, 8 of them suffice. \
           Write-back by the kernel on behalf of the process itself is not another process's, and a \
           request behind more of the process's own requests does not count. Parent, child, or \
           sibling processes of one program are one workload. If \
           fewer than 64 requests were undisturbed, 16 delayed ones suffice, the other process must \
           be another program or not recorded, and their median time in the queue and in the device is compared \
           with their median time in the device alone.",
    cost: "total time of the delayed requests, minus what the same number would take at the median \
           latency of undelayed requests, where requests that are in progress at once count once; without \
           undelayed ones, the time in which any of them was in the queue",
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
    /// Its name, as requests have it.
    comm: Option<u64>,
    quiet: Durations,
    /// By the name of whom they were behind, and the process if that has the waiter's name: it may be of the
    /// same workload or of another one.
    hogs: HashMap<(u64, Option<i32>), Behind>,
}

/// The requests that waited behind one program.
#[derive(Debug, Default)]
struct Behind {
    /// Its processes, and how many waited behind each.
    pids: HashMap<i32, u64>,
    all: Durations,
    /// Of the same, where it is known: time in the device.
    served: Durations,
    /// Time in which any of them was in progress, and in the queue. Reads are counted when their calls end, others before.
    in_progress: Covered,
    in_queue: Covered,
    examples: Examples,
}

impl Waiter {
    fn delayed(&self) -> u64 {
        self.hogs.values().map(|behind| behind.all.count).sum()
    }
}

/// Programs, and processes of one, that one waits behind, which are distinguished.
const MAX_HOGS: usize = 64;
const MAX_NAMES: usize = 4096;

/// A request that a call may have waited for.
#[derive(Debug)]
struct Waited {
    who: (i32, u64),
    /// Name of the process, if it submitted the request itself.
    comm: Option<u64>,
    queued_at_ns: i64,
    issued_at_ns: Option<i64>,
    completed_at_ns: i64,
    /// The other process with the most completions in the meantime, and how many; and how many the
    /// process itself had.
    ahead: Option<((i32, u64), usize)>,
    own_ahead: usize,
    example: Example,
}

/// Calls whose requests are kept until they end.
const MAX_PENDING: usize = 4096;

rule! {
    pub struct NoisyNeighbor {
        devices: HashMap<u64, (String, VecDeque<Done>)>,
        waiters: Bounded<(i32, u64), Waiter> = Bounded::new(Waiter::delayed),
        /// By call: its first request that the kernel takes for readahead. The pages that a read
        /// misses are among these requests; only the end of the call shows whether it waited.
        pending: HashMap<i64, Waited>,
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

    /// Counts a request that a call waited for.
    fn count(&mut self, waited: Waited) {
        let waiter = self.waiters.entry(waited.who);
        waiter.comm = waited.comm.or(waiter.comm);
        let queued = waited.queued_at_ns;
        let dur = waited.completed_at_ns.saturating_sub(queued);
        match waited.ahead {
            None => waiter.quiet.add(dur),
            // Behind more of its own requests it fills the queue itself.
            Some((hog, count)) if count >= AHEAD && count >= waited.own_ahead => {
                let (pid, comm) = hog;
                let hog = (comm, (waiter.comm == Some(comm)).then_some(pid));
                if waiter.hogs.len() >= MAX_HOGS && !waiter.hogs.contains_key(&hog) {
                    return;
                }
                let behind = waiter.hogs.entry(hog).or_default();
                if behind.pids.len() < MAX_HOGS || behind.pids.contains_key(&pid) {
                    *behind.pids.entry(pid).or_default() += 1;
                }
                behind.all.add(dur);
                behind.in_progress.add(queued, waited.completed_at_ns);
                if let Some(issued) = waited.issued_at_ns {
                    let served = waited.completed_at_ns.saturating_sub(issued);
                    behind.served.add(served);
                    behind.in_queue.add(queued, issued);
                }
                behind.examples.add_with(dur, || waited.example);
            }
            Some(_) => {}
        }
    }
}

/// The beneficiary of a request: the recorded process that caused it, otherwise its submitter.
fn owner(request: &Request) -> Option<i32> {
    let cause = request.bios.first().and_then(|bio| bio.cause_pid);
    cause.or(request.pid)
}

/// The process and the call that may wait for a request.
fn awaited(request: &Request) -> Option<(i32, i64)> {
    let bio = request.bios.first()?;
    let waits = matches!(request.op, "read" | "write");
    Some((bio.cause_pid?, bio.submit_rid?)).filter(|_| waits)
}

impl Rule for NoisyNeighbor {
    fn call(&mut self, call: &Call, _: &Context) {
        if let Some(waited) = self.pending.remove(&call.rid)
            && waited.completed_at_ns <= call.ended_at_ns()
        {
            self.count(waited);
        }
    }

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
            let mut own_ahead = 0;
            for other in done.iter().rev().take_while(|other| other.ns > queued) {
                if other.pid == pid {
                    own_ahead += 1;
                    continue;
                }
                match ahead
                    .iter_mut()
                    .find(|(who, _)| *who == (other.pid, other.comm))
                {
                    Some((_, count)) => *count += 1,
                    None => ahead.push(((other.pid, other.comm), 1)),
                }
            }
            let bio = request.bios.first();
            let file = bio.and_then(|bio| state.files.get(bio.file?));
            let waited = Waited {
                who: (pid, device),
                comm: (request.pid == Some(pid)).then_some(comm),
                queued_at_ns: queued,
                issued_at_ns: request.issued_at_ns,
                completed_at_ns: request.completed_at_ns,
                ahead: ahead.into_iter().max_by_key(|(_, count)| *count),
                own_ahead,
                example: Example {
                    rid,
                    ts_ns: queued,
                    dur_ns: request.completed_at_ns.saturating_sub(queued),
                    tid: bio.and_then(|bio| bio.cause_tid).unwrap_or(0),
                    syscall: request.op.into(),
                    path: file.map(|f| f.name().into()),
                    offset: bio.and_then(|bio| bio.offset),
                    ret: None,
                },
            };
            let readahead = bio.is_some_and(|bio| bio.origin == Origin::Readahead);
            if !readahead {
                self.count(waited);
            } else if self.pending.len() < MAX_PENDING || self.pending.contains_key(&rid) {
                self.pending.entry(rid).or_insert(waited);
            } else {
                // Requests of calls that no rule receives, such as mapping a program.
                self.pending = HashMap::from([(rid, waited)]);
            }
        }
        let Some((_, done)) = self.devices.get_mut(&device) else {
            return;
        };
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
            let starved = waiter.quiet.count < MIN_REQUESTS;
            // Processes of one program that are busy at once are one workload. A recording of one has no row of
            // another program that happens to have the same name.
            let is_other = |name: u64, hog: Option<i32>| {
                hog.map_or(waiter.comm != Some(name), |hog| {
                    let recorded = run.state.process(hog).is_some();
                    !(starved && recorded || run.state.are_family(*pid, hog))
                })
            };
            let most = waiter.hogs.iter();
            let most = most.filter(|((name, hog), _)| is_other(*name, *hog));
            let most = most.max_by_key(|(who, behind)| (behind.all.count, **who));
            let Some(((hog, _), delayed_by)) = most else {
                continue;
            };
            let most = delayed_by.pids.iter();
            let Some((hog_pid, _)) = most.max_by_key(|(pid, count)| (**count, **pid)) else {
                continue;
            };
            // The kernel's own threads write back for others.
            let comm = run.comm(*pid);
            let (baseline, least) = match starved {
                true => (&delayed_by.served, MIN_STARVED),
                false => (&waiter.quiet, MIN_REQUESTS),
            };
            let (undelayed, behind) = (baseline.median_ns(), delayed_by.all.median_ns());
            let count = i64::try_from(delayed_by.all.count).unwrap_or(i64::MAX);
            let cost = match starved {
                true => delayed_by.in_queue.ns(),
                false => {
                    let usual = count.saturating_mul(undelayed);
                    let all = delayed_by.all.sum_ns;
                    let on_clock = delayed_by.in_progress.ns() as f64 / all.max(1) as f64;
                    (all.saturating_sub(usual) as f64 * on_clock.min(1.0)) as i64
                }
            };
            let ratio = behind as f64 / undelayed.max(1) as f64;
            let costly = cost as f64 >= run.span_ns as f64 * COSTLY;
            let delayed = if costly { MIN_COSTLY } else { least };
            let compared_with = if starved { delayed } else { least };
            let enough = baseline.count >= compared_with && delayed_by.all.count >= delayed;
            if !enough || ratio < MIN_RATIO || !run.matters(cost) {
                continue;
            }
            let device = self
                .devices
                .get(device)
                .map_or("", |(name, _)| name.as_str());
            let same_name = waiter.comm == Some(*hog);
            let hog = self.names.get(hog).map_or("", String::as_str);
            let advice = same_name.then(|| {
                format!(
                    "Give {hog} ({hog_pid}) a lower weight (ionice -c 3 -p {hog_pid}, io.weight or io.max of its \
                     cgroup), run it at another time, or use another device."
                )
            });
            let compared = match starved {
                true => "of which the device took",
                false => "of undelayed ones",
            };
            out.push(Found {
                cost_ns: Some(cost),
                title: format!(
                    "{comm} waits on {device} behind requests of {hog} ({hog_pid}): the median of {} delayed requests is {}, {compared} {}",
                    units::count(count),
                    units::duration(behind),
                    units::duration(undelayed),
                ),
                subject: Subject::process(*pid, &comm),
                evidence: vec![
                    number("requests_behind", count),
                    number("median_behind_ns", behind),
                    match starved {
                        true => number("median_in_device_ns", undelayed),
                        false => number("median_undisturbed_ns", undelayed),
                    },
                    evidence("ratio", ratio),
                ],
                examples: delayed_by.examples.list(),
                query: format!(
                    "SELECT rid, ts_ns, dur_ns, device, op, bytes, queue_depth, pid, comm, path FROM block WHERE device = {} ORDER BY completed_at_ns",
                    crate::sql::quote(device)
                ),
                advice,
                ..Found::default()
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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

    /// A server whose every read waits behind the requests of a process; the device takes 100 µs.
    fn starved(reads: i64, comm: &str) -> Scenario {
        let mut s = Scenario::new();
        let fd = s.open_existing("/srv/table", "O_RDONLY", 1 << 30);
        s.served_within(100_000);
        for i in 0..reads {
            s.others_ahead(6, 900, comm, 400_000);
            s.missed_ahead(4096, 2_500_000);
            s.pread(fd, 4096, i * 65536);
            s.wait_ms(2);
        }
        s
    }

    #[test]
    fn fires_where_nothing_is_undisturbed() {
        let found = fires("noisy-neighbor", starved(40, "backup"));
        assert!(found[0].title.contains("backup (900)"), "{found:?}");
        assert!(
            found[0].title.contains("of which the device took"),
            "{found:?}"
        );
        // All but the time in the device.
        let cost = found[0].cost_ns.unwrap();
        assert!((40 * 2_390_000..=40 * 2_410_000).contains(&cost), "{cost}");
        silent("noisy-neighbor", starved(6, "backup"));
    }

    /// A read that is counted after a later write has its time in the queue, too.
    #[test]
    fn time_in_the_queue_is_counted_in_any_order() {
        let mut rule = NoisyNeighbor::default();
        for queued_at_ns in [1_000, 0, 500] {
            rule.count(Waited {
                who: (100, 1),
                comm: None,
                queued_at_ns,
                issued_at_ns: Some(queued_at_ns + 600),
                completed_at_ns: queued_at_ns + 700,
                ahead: Some(((900, 2), AHEAD)),
                own_ahead: 0,
                example: Example {
                    rid: 1,
                    ts_ns: queued_at_ns,
                    dur_ns: 700,
                    tid: 100,
                    syscall: "read".into(),
                    path: None,
                    offset: None,
                    ret: None,
                },
            });
        }
        let waiter = rule.waiters.get(&(100, 1)).unwrap();
        assert_eq!(waiter.hogs[&(2, None)].in_queue.ns(), 1_600);
    }

    /// A server that reads undisturbed, and then waits 200 ms for each of a few reads.
    fn hung(reads: i64, pause_ms: i64) -> Scenario {
        let mut s = Scenario::new();
        let fd = s.open_existing("/srv/table", "O_RDONLY", 1 << 30);
        for i in 0..200 + reads {
            if i >= 200 {
                s.others_ahead(6, 900, "backup", 200_000_000 / 7);
                s.missed(4096, 200_000_000);
            } else {
                s.missed(4096, 100_000);
            }
            s.pread(fd, 4096, i * 65536);
            s.wait_ms(pause_ms);
        }
        s
    }

    #[test]
    fn fires_on_few_reads_that_wait_for_long() {
        let found = fires("noisy-neighbor", hung(12, 2));
        assert!(found[0].title.contains("12 delayed"), "{found:?}");
        silent("noisy-neighbor", hung(6, 2));
        // The same 12 reads are little of a long recording.
        silent("noisy-neighbor", hung(12, 400));
    }

    #[test]
    fn silent_when_processes_of_one_program_are_busy() {
        let mut s = starved(40, "program");
        s.process(900);
        s.worker_ends(1, "program");
        silent("noisy-neighbor", s);
    }

    /// The name of a process that is not recorded says nothing of whose it is.
    #[test]
    fn fires_on_another_process_of_the_same_name() {
        let found = fires("noisy-neighbor", starved(40, "program"));
        assert!(found[0].title.contains("program (900)"), "{found:?}");
        assert!(
            found[0].advice.contains("Give program (900) a lower"),
            "{found:?}"
        );
    }

    /// Reads at random places that the neighbor slows down are not slow for being random.
    #[test]
    fn leads_over_the_pattern_of_the_delayed_reads() {
        let mut s = Scenario::new();
        let fd = s.open_existing("/srv/table", "O_RDONLY", 1 << 30);
        s.served_within(700_000);
        for i in 0..300 {
            s.others_ahead(6, 900, "backup", 400_000);
            s.missed(4096, 2_500_000);
            s.pread(fd, 4096, i * 389 % 1000 * 1_000_448);
        }
        let findings = s.diagnose().findings;
        let mut found = findings.iter();
        let neighbor = found.find(|f| f.rule == "noisy-neighbor").unwrap();
        let mut also = neighbor.also.iter();
        let pattern = also.any(|also| also.rule == "random-access");
        assert!(pattern, "{findings:#?}");
    }

    #[test]
    fn silent_when_only_one_is_in_the_way() {
        silent("noisy-neighbor", server(1));
    }
}
