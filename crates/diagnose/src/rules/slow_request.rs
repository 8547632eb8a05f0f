//! `slow-request`: requests of an application that take much longer than others of the same name.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::layers::Wait;
use crate::prelude::*;
use crate::timelines::{Part, Parts, SpanTime, Timelines};

/// Requests of a name from which on the usual ones are known.
const MIN_SPANS: usize = 50;
/// Slow ones from which on they are no accident.
const MIN_SLOW: usize = 10;
/// The same if they cost this part of the recorded time.
const FEW: usize = 3;
const OF_RECORDING: f64 = 0.1;
/// How many times the median a slow one takes, and how much longer, nanoseconds.
const SLOW_TIMES: i64 = 3;
const SLOW_NS: i64 = 1_000_000;
/// Part of the difference that one layer must have.
const MIN_PART: f64 = 0.5;
/// Part of the time of all requests of the name from which on the slow ones matter, however little of the
/// recording that is.
const OF_REQUESTS: f64 = 0.1;
/// Part of the difference in the queue from which on the process that fills it is named.
const MIN_QUEUE: f64 = 0.3;
/// Names that are followed.
const MAX_NAMES: usize = 256;
/// Requests of a name that are kept; beyond that every second one is dropped, and so on.
const MAX_KEPT: usize = 2048;

static INFO: RuleInfo = RuleInfo {
    id: "slow-request",
    name: "Requests that take much longer than others of the same name",
    group: Group::Performance,
    needs: &[Input::Calls, Input::Spans, Input::Slices, Input::Block, Input::Waits],
    kinds: Kinds::ALL,
    about_calls: false,
    what: "Some requests that an application answers (an HTTP request, a query) take several times as long as \
           the usual ones of the same name. The time of each is divided by layer: the program itself, the calls, \
           the page cache, the file system, the queue of the device, the device, locks, sockets, waiting for a \
           CPU. The layer in which the slow ones spend more time is the reason.",
    when: "50 or more spans of one service and name have a thread of their own that did nothing else meanwhile, and \
           10 or more of them (or 3 or more that cost 10 % of the recorded time) take three times the median, and 1 ms longer. The faster half is the usual time. One \
           layer has at least half of the difference. Slow requests that cost 10 % of the time of all of the name \
           are reported even if that is little of the recorded time. The time itself is claimed by findings about its cause, so the \
           severity is by the time of the slow requests beyond the usual time. Where a request waits for another program whose \
           request is a span of the same trace, the layers of that one count, and only the request at the top is \
           reported. Spans that overlap others of their thread and are neither \
           their parent nor their child are left out, as are spans of which earlier calls were forgotten.",
    cost: "",
    advice: "Open the slowest of these requests in view Spans of the page: it shows its calls and the layers below them.",
    not_when: "Not when requests of the same name do different amounts of work, such as a search: then their times say \
               nothing about a problem.",
    bad: "tar cf /backup/all.tar /srv &       # fills the queue of the disk that requests read from",
    good: "ionice -c 3 tar cf /backup/all.tar /srv &",
    reference: "Multilevel trace analysis, sections 3.4 and 4: layers of a request, and slow requests against usual ones",
};

/// The time of a request.
#[derive(Clone, Debug)]
struct Taken {
    dur_ns: i64,
    parts: Parts,
    /// Of which in requests that it caused in other programs, and the one with most of that.
    elsewhere: Parts,
    within: Option<Arc<str>>,
    /// The process with the most requests ahead of its own in the queue, and how many.
    ahead: Option<((i32, u64), u32)>,
}

/// Requests of one name.
#[derive(Clone, Debug, Default)]
struct Name {
    service: String,
    name: String,
    pid: i32,
    several: bool,
    seen: u64,
    /// One in so many is kept.
    stride: u64,
    kept: Vec<Taken>,
    /// The longest ones, of which none is dropped, the shortest of them first.
    longest: Vec<Taken>,
    examples: Examples,
    /// Names of requests that these have caused.
    causes: HashSet<u64>,
}

impl Name {
    fn add(&mut self, time: &SpanTime) {
        self.several |= self.seen > 0 && self.pid != time.pid;
        self.pid = time.pid;
        self.stride = self.stride.max(1);
        let taken = self.seen.is_multiple_of(self.stride);
        self.seen += 1;
        if let Some(example) = &time.longest {
            self.examples.add_with(example.dur_ns, || example.clone());
        }
        if self.causes.len() < MAX_NAMES {
            self.causes.extend(&time.causes);
        }
        let is_long = self.longest.len() < MIN_SLOW || self.longest.first().is_some_and(|least| least.dur_ns < time.dur_ns);
        if !taken && !is_long {
            return;
        }
        let of = Taken {
            dur_ns: time.dur_ns,
            parts: time.parts,
            elsewhere: time.elsewhere,
            within: time.within.as_ref().map(|(_, name)| Arc::clone(name)),
            ahead: time.ahead,
        };
        if is_long {
            let at = self.longest.partition_point(|other| other.dur_ns < of.dur_ns);
            self.longest.insert(at, of.clone());
            if self.longest.len() > MIN_SLOW {
                self.longest.remove(0);
            }
        }
        if !taken {
            return;
        }
        if self.kept.len() >= MAX_KEPT {
            let mut keep = false;
            self.kept.retain(|_| {
                keep = !keep;
                keep
            });
            self.stride *= 2;
        }
        self.kept.push(of);
    }

    /// The usual requests, the slow ones, and how many slow ones there are, about; `None` if there are too few.
    fn divided(&self) -> Option<(Vec<&Taken>, Vec<&Taken>, i64)> {
        let mut all: Vec<&Taken> = self.kept.iter().collect();
        all.sort_by_key(|taken| taken.dur_ns);
        let median = all.get(all.len() / 2)?.dur_ns;
        let limit = median.saturating_mul(SLOW_TIMES).max(median.saturating_add(SLOW_NS));
        let is_slow = |taken: &&Taken| taken.dur_ns >= limit;
        let stride = i64::try_from(self.stride.max(1)).unwrap_or(i64::MAX);
        let longest: Vec<&Taken> = self.longest.iter().filter(is_slow).collect();
        let kept: Vec<&Taken> = all.iter().copied().filter(is_slow).collect();
        // Up to MIN_SLOW are counted exactly.
        let count = match longest.len() < MIN_SLOW {
            true => longest.len() as i64,
            false => (kept.len() as i64).saturating_mul(stride).max(MIN_SLOW as i64),
        };
        let slow = if kept.len() > longest.len() { kept } else { longest };
        if all.len() < MIN_SPANS || slow.len() < FEW {
            return None;
        }
        all.truncate(all.len() / 2);
        Some((all, slow, count))
    }
}

fn mean(all: &[&Taken], of: impl Fn(&Taken) -> i64) -> i64 {
    let sum = all.iter().fold(0i64, |sum, taken| sum.saturating_add(of(taken)));
    sum / i64::try_from(all.len().max(1)).unwrap_or(i64::MAX)
}

rule! {
    pub struct SlowRequest {
        timelines: Timelines,
        names: HashMap<u64, Name>,
    }
}

fn count(names: &mut HashMap<u64, Name>, time: &SpanTime) {
    let key = time.key();
    if names.len() >= MAX_NAMES && !names.contains_key(&key) {
        return;
    }
    let name = names.entry(key).or_insert_with(|| Name {
        service: time.service.clone(),
        name: time.name.clone(),
        ..Name::default()
    });
    name.add(time);
}

impl Rule for SlowRequest {
    fn layers(&self) -> &'static [Layer] {
        &[Layer::Span, Layer::Slice, Layer::Wait, Layer::Fault, Layer::Device]
    }

    fn row(&mut self, row: &Row, _: &State) {
        match row {
            Row::Span(span) => self.timelines.span(span),
            Row::Slice(slice) => self.timelines.slice(slice),
            Row::Wait(wait) => {
                let Wait { tid, ts_ns, dur_ns, .. } = *wait;
                match wait.rid {
                    Some(rid) => self.timelines.wait_of(rid, dur_ns - wait.run_queue_ns, wait.reason),
                    None => {
                        let queued_ns = wait.run_queue_ns;
                        self.timelines.wait(tid, ts_ns, dur_ns, queued_ns, wait.reason);
                    }
                }
            }
            Row::Fault(fault) => self.timelines.fault(fault),
            Row::Device(request) => self.timelines.device(request),
            _ => {}
        }
    }

    fn call(&mut self, call: &Call, _: &Context) {
        let names = &mut self.names;
        // Calls come in the order in which they return: spans that ended before this one are complete.
        self.timelines.ended_before(call.ended_at_ns(), &mut |time| count(names, time));
        if !call.operation {
            self.timelines.call(call);
        }
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        let mut names = None;
        self.timelines.rest(&mut |time| {
            count(names.get_or_insert_with(|| self.names.clone()), time);
        });
        let names = names.as_ref().unwrap_or(&self.names);
        let found = names.iter().filter_map(|(key, name)| Some((key, name, self.found(name, run)?)));
        let found: Vec<_> = found.collect();
        // The requests that slow ones wait for are the same problem.
        let caused: HashSet<u64> = found
            .iter()
            .filter(|(_, _, (_, is_elsewhere))| *is_elsewhere)
            .flat_map(|(key, name, _)| name.causes.iter().filter(move |cause| cause != key))
            .copied()
            .collect();
        for (key, _, (found, _)) in found {
            if !caused.contains(key) {
                out.push(found);
            }
        }
    }
}

impl SlowRequest {
    /// The finding about a name, and whether the reason is in requests that these have caused.
    fn found(&self, name: &Name, run: &Run) -> Option<(Found, bool)> {
        let (usual, slow, slow_count) = name.divided()?;
        let (usual_ns, slow_ns) = (mean(&usual, |t| t.dur_ns), mean(&slow, |t| t.dur_ns));
        let stride = i64::try_from(name.stride.max(1)).unwrap_or(i64::MAX);
        let cost = slow_count.saturating_mul(slow_ns - usual_ns);
        let more = |part: Part| mean(&slow, |t| t.parts.of(part)) - mean(&usual, |t| t.parts.of(part));
        let reason = Part::ALL.into_iter().max_by_key(|part| more(*part))?;
        let difference = (slow_ns - usual_ns).max(1) as f64;
        let share = more(reason) as f64 / difference;
        let all_ns = name.kept.iter().fold(0i64, |sum, taken| sum.saturating_add(taken.dur_ns));
        let of_requests = cost as f64 / all_ns.saturating_mul(stride).max(1) as f64;
        let few = slow_count < MIN_SLOW as i64;
        let is_accident = few && (run.is_faint() || !run.matters_from(cost, OF_RECORDING));
        if is_accident || share < MIN_PART || !run.matters(cost) && of_requests < OF_REQUESTS {
            return None;
        }
        let mut evidence = vec![
            number("requests", i64::try_from(name.seen).unwrap_or(i64::MAX)),
            number("slow_requests", slow_count),
            number("usual_ns", usual_ns),
            number("slow_ns", slow_ns),
            number("all_slow_beyond_usual_ns", cost),
        ];
        for part in Part::ALL {
            let (usual_ns, slow_ns) = (mean(&usual, |t| t.parts.of(part)), mean(&slow, |t| t.parts.of(part)));
            if usual_ns > 0 || slow_ns > 0 {
                let (usual_name, slow_name) = part.evidence();
                evidence.push(number(usual_name, usual_ns));
                evidence.push(number(slow_name, slow_ns));
            }
        }
        let there = mean(&slow, |t| t.elsewhere.of(reason)) - mean(&usual, |t| t.elsewhere.of(reason));
        let is_elsewhere = there as f64 >= more(reason) as f64 * MIN_PART;
        let within = if is_elsewhere { within(&slow) } else { None };
        let within = within.map_or(String::new(), |name| format!(", in {name}"));
        // The device also works on requests of others before it completes one.
        let in_device = (more(Part::Queue) + more(Part::Device)) as f64 / difference;
        let hog = if in_device >= MIN_QUEUE { hog(&slow) } else { None };
        let behind = hog.map(|(comm, requests)| {
            let comm = self.timelines.comm(comm);
            (comm.to_owned(), format!(", behind {} of {comm}", counted(requests, "request", "requests")))
        });
        let (advice, behind) = match (behind, reason) {
            (Some((comm, behind)), Part::Queue | Part::Device) => (
                Some(format!(
                    "Give {comm} a smaller share of the device (ionice -c 3, or io.weight or io.max of its \
                     cgroup), run it at another time, or move it to another device."
                )),
                behind,
            ),
            _ => (Some(reason.advice().to_owned()), String::new()),
        };
        let general = advice.map(|own| format!("{own} {}", INFO.advice));
        let found = Found {
            // The time itself is of the findings about its cause.
            severity: Some(Severity::by_share(cost, run.span_ns)),
            title: format!(
                "{} of {} of {} take {} instead of {} on average; {} of the difference is {}{within}{behind}",
                units::count(slow_count),
                counted(i64::try_from(name.seen).unwrap_or(i64::MAX), "request", "requests"),
                named(name),
                units::duration(slow_ns),
                units::duration(usual_ns),
                units::percent(share.min(1.0)),
                reason.words(),
            ),
            subject: match name.several {
                false => Subject::process(name.pid, &name.service),
                true => Subject { comm: Some(name.service.clone()), ..Subject::default() },
            },
            evidence,
            examples: name.examples.list(),
            query: format!(
                "SELECT ts_ns, dur_ns, pid, tid, name, status, trace_id, span_id FROM spans WHERE service = {} \
                 AND name = {} ORDER BY dur_ns DESC",
                sql::quote(&name.service),
                sql::quote(&name.name),
            ),
            advice: general,
            ..Found::default()
        };
        Some((found, is_elsewhere))
    }
}

fn named(name: &Name) -> String {
    match name.service.is_empty() {
        true => name.name.clone(),
        false => format!("{} by {}", name.name, name.service),
    }
}

/// The request in another program in which most of the slow ones spend their time.
fn within(slow: &[&Taken]) -> Option<Arc<str>> {
    let mut by: HashMap<&Arc<str>, usize> = HashMap::new();
    for name in slow.iter().filter_map(|taken| taken.within.as_ref()) {
        *by.entry(name).or_default() += 1;
    }
    let (name, count) = by.into_iter().max_by_key(|(name, count)| (*count, *name))?;
    (count * 2 >= slow.len()).then(|| Arc::clone(name))
}

/// The process of whose requests most were ahead of the slow requests, and how many of each on
/// average; `None` if it is in the way of less than half of them.
fn hog(slow: &[&Taken]) -> Option<(u64, i64)> {
    let mut by: HashMap<u64, (usize, i64)> = HashMap::new();
    for ((_, comm), requests) in slow.iter().filter_map(|taken| taken.ahead) {
        let of = by.entry(comm).or_default();
        of.0 += 1;
        of.1 += i64::from(requests);
    }
    let (comm, (count, requests)) = by.into_iter().max_by_key(|(comm, of)| (*of, *comm))?;
    (count * 2 >= slow.len()).then(|| (comm, requests / i64::try_from(count).unwrap_or(1)))
}

#[cfg(test)]
mod tests {
    use crate::finding::Finding;
    use crate::scenario::{Scenario, SpanOf, fires, silent};

    /// A server that reads a page for each request; some of the reads take long in a layer.
    fn server(requests: i64, slow: i64, layer: &str, name: &str) -> Scenario {
        let mut s = Scenario::new();
        let fd = s.open_existing("/srv/table", "O_RDONLY", 1 << 30);
        for i in 0..requests {
            let (is_slow, began) = (i % (requests / slow.max(1)) == 0 && slow > 0, s.now());
            s.wait_us(100);
            s.slow(if is_slow { 20_000_000 } else { 100_000 });
            s.pread(fd, 4096, i * 65536 % (1 << 29));
            if is_slow {
                s.in_layer("syscall", "pread64", 1_000_000);
                s.in_layer(layer, name, 19_001_409);
            }
            s.slow(0);
            s.wait_us(50);
            s.span(&SpanOf { id: &format!("{i:016x}"), name: "GET /", ..SpanOf::since(began) });
            s.wait_us(1);
        }
        s.stat("/data");
        s
    }

    fn value(found: &Finding, name: &str) -> f64 {
        found.evidence.iter().find(|e| e.name == name).unwrap_or_else(|| panic!("{name}: {found:#?}")).value
    }

    #[test]
    fn fires_on_requests_that_wait_in_the_queue() {
        let found = fires("slow-request", server(200, 20, "block", "queue"));
        let found = &found[0];
        assert!(found.title.starts_with("20 of 200 requests of GET / by shop take 20.2 ms"), "{}", found.title);
        assert!(found.title.contains("queue of the device"), "{}", found.title);
        assert!(value(found, "slow_queue_ns") > 18e6);
        // All of the time is in one layer or another.
        let sum = |kind: &str| -> f64 {
            let of = |e: &&crate::finding::Evidence| e.name.starts_with(kind) && *e.name != format!("{kind}ns") && e.name.ends_with("_ns");
            found.evidence.iter().filter(of).map(|e| e.value).sum()
        };
        assert!((sum("slow_") - value(found, "slow_ns")).abs() < 20.0, "{found:#?}");
        assert!((sum("usual_") - value(found, "usual_ns")).abs() < 20.0, "{found:#?}");
    }

    #[test]
    fn names_the_lock_and_the_processor() {
        let lock = fires("slow-request", server(200, 20, "sched", "lock"));
        assert!(lock[0].title.ends_with("waiting for a lock"), "{}", lock[0].title);
        let cpu = fires("slow-request", server(200, 20, "sched", "cpu"));
        assert!(cpu[0].title.ends_with("waiting for a CPU"), "{}", cpu[0].title);
    }

    #[test]
    fn silent_on_few() {
        silent("slow-request", server(45, 15, "block", "queue"));
        silent("slow-request", server(200, 2, "block", "queue"));
        silent("slow-request", server(8000, 8, "block", "queue"));
        // Of so many requests most are dropped, but none of the slow ones.
        fires("slow-request", server(4500, 9, "block", "queue"));
    }

    #[test]
    fn few_that_cost_much_are_no_accident() {
        let found = fires("slow-request", server(200, 8, "block", "queue"));
        assert!(found[0].title.starts_with("8 of 200 requests of GET / by shop take 20.2 ms"), "{}", found[0].title);
    }

    #[test]
    fn silent_when_all_take_as_long() {
        silent("slow-request", server(200, 0, "block", "queue"));
    }

    #[test]
    fn silent_when_it_is_not_known_whose_calls_they_are() {
        let mut s = Scenario::new();
        let fd = s.open_existing("/srv/table", "O_RDONLY", 1 << 30);
        let mut last = s.now();
        for i in 0..200 {
            let began = s.now();
            s.slow(if i % 10 == 0 { 20_000_000 } else { 100_000 });
            s.pread(fd, 4096, i * 65536);
            // Each goes on when the next one has begun.
            s.span(&SpanOf { id: &format!("{i:016x}"), name: "GET /", ..SpanOf::since(last) });
            last = began;
        }
        s.slow(0);
        s.stat("/data");
        silent("slow-request", s);
    }
}
