//! Whose time it is: each nanosecond of a thread is claimed by one finding at most.
//!
//! Findings take their time from sums by thread, file and kind of request ([`crate::ledger`]),
//! the most expensive finding first. Which requests of such a sum two findings mean is not known:
//! they are taken for different ones as long as there is time left in it.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::call::FileId;
use crate::finding::{Also, Finding, Group, Severity};
use crate::ledger::Times;
use crate::rule::number;
use crate::scope::{Files, Scope};

/// Rules that name a cause of other findings. Their findings claim time before findings that cost
/// up to so many times as much: syncs are the reason why a device writes more than the program, and
/// requests that wait for another process are slow whatever their pattern is.
const CAUSES: [(&str, i64); 5] = [
    ("sync-storm", 4),
    ("unbuffered-stdio", 4),
    ("stdio-read-amplification", 4),
    ("small-collective-io", 4),
    ("noisy-neighbor", 2),
];

/// The factor of a rule; 1 if it names no cause.
fn factor(rule: &str) -> i64 {
    let mut causes = CAUSES.iter();
    let cause = causes.find(|(cause, _)| *cause == rule);
    cause.map_or(1, |(_, factor)| *factor)
}

/// The rule whose time other findings contain, too: a thread that sleeps in fewer calls waits
/// less often for a processor when it wakes. So it has what the others leave.
pub(crate) const QUEUES: &str = "cpu-starvation";

/// A finding's evidence has how long its requests waited for a processor if that is this share of its time.
const QUEUED: f64 = 0.3;

/// A finding of whose requests' time such a cause has claimed this share says the same as it: what
/// the cause has left of them is what the slowest took beyond the rest.
const CAUSED: f64 = 0.3;

/// A finding of whose time others have claimed this share says the same as they.
const MOST: f64 = 0.6;
/// So does one about a file, when others have claimed this share of all that its requests took: it
/// cannot mean other ones.
const HALF: f64 = 0.5;

/// A finding's part of a sum or of a thread.
#[derive(Clone, Copy)]
struct ClaimedPart {
    by: usize,
    ns: i64,
}

/// Time with what has been claimed of it.
struct Book {
    times: Times,
    /// Of each sum, and of each thread.
    of_sums: Vec<Vec<ClaimedPart>>,
    of_threads: Vec<Vec<ClaimedPart>>,
    /// Indexes of the sums of a file, and of a process.
    by_file: BTreeMap<FileId, Vec<usize>>,
    by_pid: BTreeMap<i32, Vec<usize>>,
}

/// The time that a finding can claim.
#[derive(Default)]
struct Claim {
    /// Of sums with their threads, and of threads beyond that, nanoseconds.
    sums: Vec<(usize, usize, i64)>,
    threads: Vec<(usize, i64)>,
    /// The finding that has claimed most of the same requests; without one, most of the same
    /// threads.
    owner: Option<usize>,
    /// The fraction of these requests' time that others have claimed.
    taken: f64,
}

impl Claim {
    fn ns(&self) -> i64 {
        let sums: i64 = self.sums.iter().map(|(_, _, ns)| ns).sum();
        sums + self.threads.iter().map(|(_, ns)| ns).sum::<i64>()
    }
}

impl Book {
    fn new(times: Times) -> Self {
        let (mut by_file, mut by_pid) = (BTreeMap::new(), BTreeMap::new());
        for (i, sum) in times.sums.iter().enumerate() {
            if let Some(file) = sum.key.file {
                by_file.entry(file).or_insert_with(Vec::new).push(i);
            }
            by_pid.entry(sum.pid).or_insert_with(Vec::new).push(i);
        }
        Self {
            of_sums: vec![Vec::new(); times.sums.len()],
            of_threads: vec![Vec::new(); times.threads.len()],
            by_file,
            by_pid,
            times,
        }
    }

    /// Sums of requests of a finding, each once.
    fn sums_of(&self, scopes: &[Scope]) -> Vec<usize> {
        let mut found = Vec::new();
        for scope in scopes {
            let listed = match (scope.files, scope.pid) {
                (Files::One(file), _) => self.by_file.get(&file),
                (_, Some(pid)) => self.by_pid.get(&pid),
                (_, None) => {
                    let all = self.times.sums.iter().enumerate();
                    found.extend(all.filter(|(_, sum)| scope.has(sum)).map(|(i, _)| i));
                    continue;
                }
            };
            let listed = listed.into_iter().flatten().copied();
            let has = |i: &usize| self.times.sums.get(*i).is_some_and(|sum| scope.has(sum));
            found.extend(listed.filter(has));
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    fn thread(&self, tid: i32) -> Option<usize> {
        let threads = &self.times.threads;
        threads.binary_search_by_key(&tid, |thread| thread.tid).ok()
    }

    /// The claimable time of a finding with this cost; `None` if its threads are unknown.
    fn look(&self, scopes: &[Scope], cost: i64) -> Option<Claim> {
        let sums = self.sums_of(scopes);
        // By thread: sums of it, and how much of them is left.
        let mut of_thread: BTreeMap<usize, Vec<(usize, i64)>> = BTreeMap::new();
        let (mut taken, mut has): (i64, BTreeMap<usize, i64>) = (0, BTreeMap::new());
        for i in sums {
            let Some(sum) = self.times.sums.get(i) else {
                continue;
            };
            for part in self.of_sums.get(i).into_iter().flatten() {
                taken = taken.saturating_add(part.ns);
                *has.entry(part.by).or_default() += part.ns;
            }
            if let Some(thread) = self.thread(sum.key.tid) {
                of_thread.entry(thread).or_default().push((i, sum.left_ns));
            }
        }
        let left = |thread: usize| self.times.threads.get(thread).map_or(0, |t| t.left_ns);
        let free = of_thread.into_iter().map(|(thread, sums)| {
            let all: i64 = sums.iter().map(|(_, ns)| ns).sum();
            (thread, all.min(left(thread)), sums)
        });
        let free: Vec<_> = free.collect();
        let all_free: i64 = free.iter().map(|(_, ns, _)| ns).sum();
        let wanted = cost.min(all_free);
        let mut claim = Claim {
            taken: taken as f64 / taken.saturating_add(all_free).max(1) as f64,
            ..Claim::default()
        };
        // Each thread and each sum gives by its share.
        let mut of_threads: BTreeMap<usize, i64> = BTreeMap::new();
        let mut threads_share = Share::new(wanted, all_free);
        for (thread, free_ns, sums) in free {
            let part = threads_share.next(free_ns);
            let mut sums_share = Share::new(part, sums.iter().map(|(_, ns)| ns).sum());
            for (i, ns) in sums {
                let ns = sums_share.next(ns);
                if ns > 0 {
                    claim.sums.push((i, thread, ns));
                }
            }
            of_threads.insert(thread, part);
        }
        // Time of no request that is known: between calls, or of files that had no room. Requests
        // that others have claimed it is not.
        let beyond = cost - wanted;
        let mut beyond = beyond - beyond.min(taken);
        let threads = self.times.threads.iter().enumerate();
        let own =
            threads.filter(|(_, t)| scopes.iter().any(|scope| scope.has_thread(t.pid, t.tid)));
        let (mut any, mut nearby): (bool, BTreeMap<usize, i64>) = (false, BTreeMap::new());
        for (thread, of) in own {
            any = true;
            for part in self.of_threads.get(thread).into_iter().flatten() {
                *nearby.entry(part.by).or_default() += part.ns;
            }
            let left = of.left_ns - of_threads.get(&thread).copied().unwrap_or(0);
            let ns = left.min(beyond);
            if ns > 0 {
                claim.threads.push((thread, ns));
                beyond -= ns;
            }
        }
        let most = |parts: BTreeMap<usize, i64>| {
            let most = parts.into_iter().max_by_key(|(by, ns)| (*ns, Reverse(*by)));
            most.map(|(by, _)| by)
        };
        claim.owner = most(has).or_else(|| most(nearby));
        any.then_some(claim)
    }

    /// Takes the time that these requests waited for a processor, as far as no finding has it; with the finding
    /// that has most of the same requests.
    fn take_queued(&mut self, by: usize, scopes: &[Scope], cost: i64) -> (i64, Option<usize>) {
        let sums = self.sums_of(scopes);
        let queued = |i: &usize| self.times.sums.get(*i).map_or(0, |sum| sum.queued_ns);
        let all: i64 = sums.iter().map(queued).sum();
        let mut share = Share::new(cost.min(all), all);
        let (mut own, mut has): (i64, BTreeMap<usize, i64>) = (0, BTreeMap::new());
        for i in sums {
            let Some(sum) = self.times.sums.get(i) else {
                continue;
            };
            for part in self.of_sums.get(i).into_iter().flatten() {
                *has.entry(part.by).or_default() += part.ns;
            }
            // The share that others have of these requests they have of each part of their time.
            let left = sum.left_ns as f64 / sum.ns.max(1) as f64;
            let ns = (share.next(sum.queued_ns) as f64 * left.clamp(0.0, 1.0)) as i64;
            let Some(thread) = self.thread(sum.key.tid) else {
                continue;
            };
            let of_thread = self.times.threads.get(thread);
            let ns = ns.min(of_thread.map_or(0, |thread| thread.left_ns.max(0)));
            let claim = Claim {
                sums: vec![(i, thread, ns)],
                ..Claim::default()
            };
            self.take(by, &claim);
            own += ns;
        }
        let most = has.into_iter().max_by_key(|(by, ns)| (*ns, Reverse(*by)));
        (own, most.map(|(by, _)| by))
    }

    /// The time of a claim in which its requests waited for a processor.
    fn queued_of(&self, claim: &Claim) -> i64 {
        let part = |(i, _, ns): &(usize, usize, i64)| {
            let sum = self.times.sums.get(*i);
            sum.map_or(0.0, |sum| {
                *ns as f64 * sum.queued_ns as f64 / sum.ns.max(1) as f64
            })
        };
        claim.sums.iter().map(part).sum::<f64>() as i64
    }

    fn take(&mut self, by: usize, claim: &Claim) {
        for (i, thread, ns) in &claim.sums {
            if let Some(sum) = self.times.sums.get_mut(*i) {
                sum.left_ns -= ns;
            }
            if let Some(parts) = self.of_sums.get_mut(*i) {
                parts.push(ClaimedPart { by, ns: *ns });
            }
            self.take_thread(by, *thread, *ns);
        }
        for (thread, ns) in &claim.threads {
            self.take_thread(by, *thread, *ns);
        }
    }

    fn take_thread(&mut self, by: usize, thread: usize, ns: i64) {
        if let Some(thread) = self.times.threads.get_mut(thread) {
            thread.left_ns -= ns;
        }
        if let Some(parts) = self.of_threads.get_mut(thread) {
            match parts.last_mut().filter(|part| part.by == by) {
                Some(part) => part.ns += ns,
                None => parts.push(ClaimedPart { by, ns }),
            }
        }
    }
}

/// An amount that is shared out, to the last nanosecond.
struct Share {
    amount: i64,
    whole: i64,
    parts: i64,
    given: i64,
}

impl Share {
    fn new(amount: i64, whole: i64) -> Self {
        Self {
            amount,
            whole,
            parts: 0,
            given: 0,
        }
    }

    /// The share of a part in the whole.
    fn next(&mut self, part: i64) -> i64 {
        self.parts = self.parts.saturating_add(part);
        let until =
            i128::from(self.amount) * i128::from(self.parts) / i128::from(self.whole.max(1));
        let until = i64::try_from(until).unwrap_or(i64::MAX);
        let share = until - self.given;
        self.given = until;
        share
    }
}

/// Lets findings, the worst first, claim their time; a finding whose time another one has claimed
/// is shown under that one. Minor notes get the remaining time, or are dropped.
pub(crate) fn settle(
    findings: &mut Vec<Finding>,
    minor: &mut Vec<Finding>,
    times: Times,
    span_ns: i64,
) {
    let cost = |finding: &Finding| finding.cost_ns.unwrap_or(0);
    let mut order: Vec<(usize, i64)> = findings.iter().map(cost).enumerate().collect();
    order.retain(|(_, cost)| *cost > 0);
    order.sort_by_key(|(i, cost)| {
        let rule = findings.get(*i).map_or("", |finding| finding.rule);
        let weight = cost.saturating_mul(factor(rule));
        (rule == QUEUES, Reverse(weight))
    });
    let mut book = Book::new(times);
    let mut under: BTreeMap<usize, usize> = BTreeMap::new();
    let causes: Vec<bool> = findings
        .iter()
        .map(|finding| factor(finding.rule) > 1)
        .collect();
    let starved = findings.iter().any(|finding| finding.rule == QUEUES);
    for (i, cost) in order {
        let Some(finding) = findings.get_mut(i) else {
            continue;
        };
        if finding.rule == QUEUES {
            let (own, owner) = book.take_queued(i, &finding.scopes, cost);
            match owner.filter(|_| (cost - own) as f64 >= cost as f64 * MOST) {
                Some(owner) => {
                    under.insert(i, owner);
                }
                None => {
                    finding.cost_ns = Some(own);
                    let severity = Severity::by_share(own, span_ns);
                    finding.severity = finding.severity.min(severity);
                }
            }
            continue;
        }
        let Some(claim) = book.look(&finding.scopes, cost) else {
            continue;
        };
        let own = claim.ns();
        let of_files = finding
            .scopes
            .iter()
            .all(|scope| matches!(scope.files, Files::One(_) | Files::Without));
        let same = of_files && claim.taken >= HALF && cost > own;
        let caused =
            claim.taken >= CAUSED && claim.owner.and_then(|owner| causes.get(owner)) == Some(&true);
        let claimed = same || caused || (cost - own) as f64 >= cost as f64 * MOST;
        if let Some(owner) = claim
            .owner
            .filter(|_| claimed && finding.group == Group::Performance)
        {
            under.insert(i, owner);
            continue;
        }
        book.take(i, &claim);
        finding.cost_ns = Some(own);
        let queued = book.queued_of(&claim);
        if starved && queued as f64 >= own as f64 * QUEUED {
            finding.evidence.push(number("run_queue_ns", queued));
        }
        if own < cost && finding.group == Group::Performance {
            if claim.taken > 0.0 {
                let others = ", without what other findings have of it";
                finding.cost_how.push_str(others);
            }
            finding.severity = finding.severity.min(Severity::by_share(own, span_ns));
        }
    }
    minor.retain_mut(|note| {
        let Some(claim) = book.look(&note.scopes, cost(note)) else {
            return true;
        };
        let (own, cost) = (claim.ns(), cost(note));
        let tells = (cost - own) as f64 <= cost as f64 * MOST;
        if tells {
            book.take(usize::MAX, &claim);
            note.cost_ns = Some(own);
        }
        tells
    });
    for (i, owner) in &under {
        let also = findings.get(*i).map(|finding| Also {
            rule: finding.rule,
            subject: finding.subject.clone(),
        });
        if let Some((finding, also)) = findings.get_mut(*owner).zip(also) {
            finding.also.push(also);
        }
    }
    let mut place = 0..;
    findings.retain(|_| place.next().is_none_or(|i| !under.contains_key(&i)));
}

#[cfg(test)]
mod tests {
    use crate::engine::Diagnosis;
    use crate::finding::{Finding, Group, Severity};
    use crate::scenario::Scenario;

    fn of<'a>(diagnosis: &'a Diagnosis, rule: &str) -> Vec<&'a Finding> {
        let all = diagnosis.findings.iter();
        all.filter(|finding| finding.rule == rule).collect()
    }

    fn also(finding: &Finding) -> Vec<&str> {
        let mut rules: Vec<&str> = finding.also.iter().map(|also| also.rule).collect();
        rules.sort_unstable();
        rules
    }

    fn cost(diagnosis: &Diagnosis) -> i64 {
        diagnosis.findings.iter().filter_map(|f| f.cost_ns).sum()
    }

    /// A log with a sync a record: three rules see the same syncs.
    fn commits(s: &mut Scenario, path: &str, times: usize) {
        let fd = s.open(path, "O_WRONLY|O_CREAT");
        for _ in 0..times {
            s.write(fd, 100);
            s.writes_back(path, 4096, 8192);
            s.fsync(fd);
        }
        s.close(fd);
    }

    #[test]
    fn syncs_that_three_rules_see_are_one_finding() {
        let mut s = Scenario::new();
        commits(&mut s, "/data/aof", 300);
        let diagnosis = s.diagnose();
        let syncs: Vec<_> = diagnosis
            .findings
            .iter()
            .filter(|f| f.cost_ns.is_some())
            .collect();
        assert_eq!(syncs.len(), 1, "{syncs:#?}");
        assert_eq!(syncs[0].rule, "sync-storm");
        assert_eq!(also(syncs[0]), ["missing-fallocate", "write-amplification"]);
        assert!(cost(&diagnosis) <= diagnosis.span_ns);
        assert!(
            syncs[0]
                .also
                .iter()
                .all(|a| a.subject.path.as_deref() == Some("/data/aof"))
        );
    }

    /// The waits are of both: a processor that others have, and syncs after each of which one is needed again.
    #[test]
    fn syncs_that_wait_for_a_processor_say_so() {
        let syncs = |queued_ns| {
            let mut s = Scenario::new();
            let fd = s.open("/data/aof", "O_WRONLY|O_CREAT");
            for _ in 0..300 {
                s.write(fd, 100);
                s.wants_cpu(queued_ns);
                s.fsync(fd);
            }
            s.diagnose()
        };
        let queued = |diagnosis: &Diagnosis| {
            let syncs = of(diagnosis, "sync-storm");
            let mut numbers = syncs[0].evidence.iter();
            let queued = numbers.find(|number| number.name == "run_queue_ns");
            queued.map(|number| number.value / syncs[0].cost_ns.unwrap() as f64)
        };
        let share = queued(&syncs(900_000)).unwrap();
        assert!((0.8..1.0).contains(&share), "{share}");
        assert_eq!(queued(&syncs(50_000)), None);
    }

    #[test]
    fn other_files_and_other_requests_stay_findings_of_their_own() {
        let mut s = Scenario::new();
        commits(&mut s, "/data/aof", 300);
        let fd = s.open_existing("/data/table", "O_RDONLY", 1 << 30);
        for i in 0..300 {
            s.missed(4096, 2_000_000);
            s.pread(fd, 4096, i * 389 % 1000 * 1_000_448);
        }
        s.process(200);
        commits(&mut s, "/other/log", 300);
        let diagnosis = s.diagnose();
        assert_eq!(of(&diagnosis, "random-access").len(), 1);
        let syncs = diagnosis.findings.iter().filter(|f| {
            f.cost_ns.is_some() && f.rule != "random-access" && f.rule != "cold-small-files"
        });
        let pids: Vec<_> = syncs.map(|f| f.subject.pid).collect();
        assert_eq!(pids.len(), 2, "{:#?}", diagnosis.findings);
        assert!(pids.contains(&Some(100)) && pids.contains(&Some(200)));
        assert!(cost(&diagnosis) <= diagnosis.span_ns);
    }

    #[test]
    fn a_copy_in_small_pieces_is_one_finding() {
        let mut s = Scenario::new();
        let from = s.open_existing("/data/a", "O_RDONLY", 10 << 20);
        let to = s.open("/data/b", "O_WRONLY|O_CREAT");
        for _ in 0..4096 {
            s.read(from, 512);
            s.write(to, 512);
        }
        let diagnosis = s.diagnose();
        let copies = of(&diagnosis, "userspace-copy");
        assert_eq!(copies.len(), 1, "{:#?}", diagnosis.findings);
        assert_eq!(also(copies[0]), ["small-sequential", "small-sequential"]);
        assert!(cost(&diagnosis) <= diagnosis.span_ns);
    }

    #[test]
    fn what_costs_little_is_a_minor_note_and_no_finding() {
        let misses = |wait_ms| {
            let mut s = Scenario::new();
            for i in 0..200 {
                s.stat_missing(&format!("/lib/{i}"));
            }
            s.wait_ms(wait_ms);
            s.stat_missing("/lib/200");
            s.diagnose()
        };
        let notes = |diagnosis: &Diagnosis| {
            let notes = diagnosis.minor.iter();
            notes.filter(|note| note.rule == "lookup-storm").count()
        };
        // 0.2 ms of 40 ms, of 10 ms, and of 1 s.
        let little = misses(40);
        assert_eq!((of(&little, "lookup-storm").len(), notes(&little)), (0, 1));
        let much = misses(10);
        assert_eq!((of(&much, "lookup-storm").len(), notes(&much)), (1, 0));
        let nothing = misses(1000);
        assert_eq!(notes(&nothing), 0);
    }

    #[test]
    fn what_takes_less_than_a_millisecond_is_a_minor_note() {
        let told = |writes| {
            let mut s = Scenario::new();
            let fd = s.open("/data/log", "O_WRONLY|O_CREAT");
            for _ in 0..writes {
                s.write(fd, 100);
            }
            let mut engine = crate::engine::Engine::default();
            for batch in s.batches() {
                engine.feed(&batch);
            }
            let diagnosis = engine.diagnosis();
            let notes = diagnosis
                .minor
                .iter()
                .filter(|n| n.rule == "small-sequential");
            (of(&diagnosis, "small-sequential").len(), notes.count())
        };
        assert_eq!(told(500), (0, 1));
        assert_eq!(told(5000), (1, 0));
    }

    #[test]
    fn severity_comes_first() {
        let mut s = Scenario::new();
        commits(&mut s, "/data/aof", 300);
        // Medium: emptied and written again in place.
        for _ in 0..6 {
            let fd = s.open("/data/settings", "O_WRONLY|O_CREAT|O_TRUNC");
            s.write(fd, 5000);
            s.close(fd);
        }
        let findings = s.diagnose().findings;
        assert_eq!(findings[0].severity, Severity::High, "{findings:#?}");
        let mut severities: Vec<_> = findings.iter().map(|f| f.severity).collect();
        let medium = findings
            .iter()
            .position(|f| f.group == Group::Correctness)
            .unwrap();
        assert!(medium > 0 && findings[medium].severity < Severity::High);
        severities.reverse();
        assert!(severities.is_sorted());
    }
}
