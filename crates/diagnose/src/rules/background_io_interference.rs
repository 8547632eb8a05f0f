//! `background-io-interference`: the slowest calls of some threads take place while others of the
//! same process move much.

use std::collections::{BTreeMap, HashMap};

use fathom_model::units;

use crate::bounded::Bounded;
use crate::call::Call;
use crate::finding::{Example, Group, Subject};
use crate::kind::{Kind, Kinds};
use crate::names::role;
use crate::rule::{Found, Input, Rule, RuleInfo, Run, evidence, number};
use crate::sql;
use crate::state::Context;
use crate::stats::Durations;
use crate::text::Text;
use crate::text_key::key_of;

/// Time in which threads are looked at, nanoseconds.
const WINDOW_NS: i64 = 100_000_000;
/// Windows that are kept open for calls that return late.
const OPEN_WINDOWS: usize = 32;
/// What a busy background thread moves in a window, bytes: 10 MiB a second.
const BUSY_BYTES: i64 = 1 << 20;
/// Or how long it is in calls that move much: where many share a device none of them gets far.
const BUSY_NS: i64 = WINDOW_NS / 2;
/// A call of the foreground moves less than this, bytes.
const SMALL: i64 = 64 << 10;
/// Calls in busy and in quiet windows from which on they compare: 99 of 100 have a
/// hundredth then.
const MIN_CALLS: u64 = 200;
/// How many times longer the 99th percentile is.
const MIN_RATIO: f64 = 3.0;
/// Numbers of busy threads that are told apart.
const MAX_BUSY: usize = 16;

static INFO: RuleInfo = RuleInfo {
    id: "background-io-interference",
    name: "Tail latency while others work in the background",
    group: Group::Performance,
    needs: &[Input::Calls],
    about_calls: false,
    what: "Threads that answer somebody wait much longer for the same calls while other threads of the process read and write in bulk (compaction, flush, checkpoint, \
           backup): they share the device, its queue, and the locks of the file system.",
    when: "The 99th percentile of the small calls (below 64 KiB) of a process's threads of one name is 3 times higher in tenths of a second in which k or more other \
           threads of the process are busy than in those with fewer, for some k, with 200 or more calls in each. Busy is a thread that moves 1 MiB or more in that time (the bytes of a call are spread over its duration), that spends \
           half of it in calls of 64 KiB or more (several that share a device get less far each), or that \
           is in a sync of a file of which 1 MiB was not durable: what bulk work does and requests do not. Digits at the end of a name do not tell threads apart.",
    cost: "of the calls in busy windows the time beyond as many at the mean of the quiet ones, shared by the threads",
    advice: "Limit the rate of the background (a rate limiter, ionice, io.max or io.latency of its cgroup), let fewer of its threads run at a time, write it back bit by bit \
             (sync_file_range) instead of in one sync, or put its files on another device.",
    not_when: "Not when nobody waits for the foreground's answers.",
    bad: "for (level = 0; level < 7; level++)\n    start_thread(compact, level);     /* all at once */",
    good: "for (level = 0; level < 7; level++)\n    queue(compact, level);            /* two threads, */\nlimit_rate(50 << 20);                 /* \
           50 MiB a second */",
    reference: "DIO, section IV-C: RocksDB's compactions and its clients' 99th percentile; SILK (USENIX ATC 2019)",
};

/// One thread in one window.
#[derive(Debug, Default)]
struct Activity {
    bytes: i64,
    /// In calls that are not small.
    bulk_ns: i64,
    small: Durations,
    slowest: Option<Example>,
}

/// Calls of threads of one name, by how many others were busy.
#[derive(Debug, Default)]
struct Foreground {
    comm: Text,
    threads: std::collections::BTreeSet<i32>,
    by_busy: Vec<Durations>,
    /// The slowest ones with others busy.
    slowest: Vec<Example>,
    /// Names of the busy ones, and in how many windows.
    background: BTreeMap<String, u64>,
}

/// Threads of one name, and names of busy threads, that are told apart.
const MAX_NAMES: usize = 64;
/// Calls that a finding shows.
const EXAMPLES: usize = 3;

type Window = HashMap<(i32, i32), (Text, Activity)>;

/// The rule's state.
#[derive(Debug)]
pub struct BackgroundIoInterference {
    windows: BTreeMap<i64, Window>,
    foreground: Bounded<(i32, u64), Foreground>,
}

impl Default for BackgroundIoInterference {
    fn default() -> Self {
        Self {
            windows: BTreeMap::new(),
            foreground: Bounded::new(|f| f.by_busy.iter().map(|d| d.count).sum()),
        }
    }
}

impl Activity {
    fn is_busy(&self) -> bool {
        self.bytes >= BUSY_BYTES || self.bulk_ns >= BUSY_NS
    }
}

/// Adds what a window holds to the foregrounds.
fn settle(
    window: &Window,
    foreground: &mut Bounded<(i32, u64), Foreground>,
) {
    // Busy threads of each process.
    let mut busy: HashMap<i32, Vec<&str>> = HashMap::new();
    for ((pid, _), (comm, activity)) in window {
        if activity.is_busy() {
            busy.entry(*pid).or_default().push(role(comm));
        }
    }
    for ((pid, tid), (comm, activity)) in window {
        if activity.is_busy() || activity.small.count == 0 {
            continue;
        }
        let others = busy.get(pid).map_or(&[][..], Vec::as_slice);
        let own = foreground.entry((*pid, key_of(role(comm))));
        own.comm.clone_from(comm);
        if own.threads.len() < MAX_NAMES {
            own.threads.insert(*tid);
        }
        let k = others.len().min(MAX_BUSY);
        if own.by_busy.len() <= k {
            own.by_busy.resize_with(k + 1, Durations::default);
        }
        if let Some(durations) = own.by_busy.get_mut(k) {
            durations.merge(&activity.small);
        }
        for name in others {
            if own.background.len() < MAX_NAMES || own.background.contains_key(*name) {
                *own.background.entry((*name).to_owned()).or_insert(0) += 1;
            }
        }
        if let Some(example) = activity.slowest.clone().filter(|_| k > 0) {
            own.slowest.push(example);
            own.slowest.sort_by_key(|e| std::cmp::Reverse(e.dur_ns));
            own.slowest.truncate(EXAMPLES);
        }
    }
}

impl Rule for BackgroundIoInterference {
    fn info(&self) -> &'static RuleInfo {
        &INFO
    }

    fn kinds(&self) -> Kinds {
        Kinds::of(&[Kind::Read, Kind::Write, Kind::Transfer, Kind::Sync, Kind::SyncRange])
    }

    fn call(&mut self, call: &Call, context: &Context) {
        let stored = context.file(call).is_some_and(|f| f.is_regular() && !f.is_volatile());
        if !call.succeeded() || call.asynchronous || !stored {
            return;
        }
        let sync = !call.kind.is_data();
        let bulk = sync && context.file(call).is_some_and(|f| f.dirty.len() >= BUSY_BYTES);
        let small = call.moved() < SMALL;
        let (start, end) = (call.ts_ns, call.ended_at_ns());
        let last = end.div_euclid(WINDOW_NS);
        // Bulk work is work in all windows that it goes through; others count where they end.
        let first = match bulk || !small {
            true => start.div_euclid(WINDOW_NS).max(last - OPEN_WINDOWS as i64),
            false => last,
        };
        for at in first..=last {
            if !self.windows.contains_key(&at) && self.windows.keys().next().is_some_and(|f| at < *f) {
                continue;
            }
            let window = self.windows.entry(at).or_default();
            let (comm, activity) = window.entry((call.pid, call.tid)).or_default();
            if comm.is_empty() {
                *comm = call.comm_text();
            }
            if bulk {
                activity.bytes += BUSY_BYTES;
            }
            // Each window has the bytes of the time that the call was in it.
            let within = (end.min((at + 1) * WINDOW_NS) - start.max(at * WINDOW_NS)).max(0);
            if !small && !sync {
                activity.bulk_ns += within;
            }
            let share = within as f64 / call.dur_ns.max(1) as f64;
            activity.bytes += match first == last {
                true => call.moved(),
                false => (call.moved() as f64 * share) as i64,
            };
            if at == last && small {
                activity.small.add(call.dur_ns);
                if activity.slowest.as_ref().is_none_or(|e| e.dur_ns < call.dur_ns) {
                    activity.slowest = Some(Example::of(call));
                }
            }
        }
        while self.windows.len() > OPEN_WINDOWS {
            if let Some((_, window)) = self.windows.pop_first() {
                settle(&window, &mut self.foreground);
            }
        }
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        // What the open windows hold is added to a copy.
        let mut all: Bounded<(i32, u64), Foreground> = Bounded::new(|_| 0);
        for (key, own) in self.foreground.iter() {
            let copy = all.entry(*key);
            copy.comm.clone_from(&own.comm);
            copy.threads.clone_from(&own.threads);
            copy.by_busy.clone_from(&own.by_busy);
            copy.slowest.clone_from(&own.slowest);
            copy.background.clone_from(&own.background);
        }
        for window in self.windows.values() {
            settle(window, &mut all);
        }
        for ((pid, _), own) in all.iter() {
            if let Some(found) = finding(*pid, own, run) {
                out.push(found);
            }
        }
    }
}

fn finding(pid: i32, own: &Foreground, run: &Run) -> Option<Found> {
    let sum = |part: &[Durations]| {
        let mut sum = Durations::default();
        part.iter().for_each(|d| sum.merge(d));
        sum
    };
    let (mut best, mut best_ratio) = (None, MIN_RATIO);
    for k in 1..own.by_busy.len() {
        let (quiet, busy) = own.by_busy.split_at(k);
        let (quiet, busy) = (sum(quiet), sum(busy));
        if quiet.count < MIN_CALLS || busy.count < MIN_CALLS {
            continue;
        }
        let ratio = busy.quantile_ns(0.99) as f64 / quiet.quantile_ns(0.99).max(1) as f64;
        if ratio >= best_ratio {
            (best, best_ratio) = (Some((k, quiet, busy)), ratio);
        }
    }
    let (k, quiet, busy) = best?;
    let count = i64::try_from(busy.count).unwrap_or(i64::MAX);
    let threads = own.threads.len().max(1) as i64;
    let cost = busy.sum_ns.saturating_sub(count.saturating_mul(quiet.mean_ns())) / threads;
    if !run.matters(cost) {
        return None;
    }
    let mut names: Vec<_> = own.background.iter().collect();
    names.sort_by_key(|(_, windows)| std::cmp::Reverse(**windows));
    let names: Vec<&str> = names.iter().take(3).map(|(name, _)| name.as_str()).collect();
    let fewer = match k {
        1 => "none is".to_owned(),
        k => format!("fewer than {k} are"),
    };
    Some(Found {
        cost_ns: Some(cost),
        title: format!(
            "{} waits {} for the slowest hundredth of its calls while {k} or more other threads ({}) read and write in bulk, and {} while {fewer}",
            own.comm,
            units::duration(busy.quantile_ns(0.99)),
            names.join(", "),
            units::duration(quiet.quantile_ns(0.99)),
        ),
        subject: Subject::process(pid, &own.comm),
        evidence: vec![
            evidence("ratio", best_ratio),
            number("busy_p99_ns", busy.quantile_ns(0.99)),
            number("quiet_p99_ns", quiet.quantile_ns(0.99)),
            number("calls_while_busy", count),
            number("calls_while_quiet", i64::try_from(quiet.count).unwrap_or(i64::MAX)),
            number("busy_threads", k as i64),
            number("threads", threads),
        ],
        examples: own.slowest.clone(),
        query: sql::calls(&format!(
            "pid = {pid} AND starts_with(comm, {}) AND bytes < {SMALL} AND dur_ns > {}",
            sql::quote(role(&own.comm)),
            quiet.quantile_ns(0.99),
        )),
        ..Found::default()
    })
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, fires, silent};

    /// Clients of a store; every other second two threads compact.
    fn store(slow_ns: i64) -> Scenario {
        let mut s = Scenario::new();
        let fd = s.open_existing("/data/sst", "O_RDWR", 1 << 30);
        for second in 0..4 {
            for i in 0..400 {
                if second % 2 == 1 {
                    for tid in [201, 202] {
                        s.thread(tid, "store:low1");
                        s.pwrite(fd, 1 << 20, i << 20);
                    }
                    s.slow(if i % 10 == 0 { slow_ns } else { 0 });
                }
                s.thread(101 + i as i32 % 2, "client");
                s.pread(fd, 4096, i * 4096);
                s.slow(0);
                s.wait_us(2500);
            }
        }
        s
    }

    #[test]
    fn fires_on_clients_that_wait_for_compactions() {
        let found = fires("background-io-interference", store(3_000_000));
        assert!(found[0].title.contains("(store:low)"), "{found:?}");
    }

    #[test]
    fn bytes_count_while_a_call_lasts_and_not_when_it_ends() {
        let mut s = Scenario::new();
        let fd = s.open_existing("/data/sst", "O_RDWR", 1 << 30);
        for second in 0..4 {
            // One write takes 800 ms: clients wait while it lasts.
            let began = s.now();
            for i in 0..400 {
                s.thread(101 + i as i32 % 2, "client");
                s.slow(if second % 2 == 1 && i < 320 && i % 10 == 0 { 3_000_000 } else { 0 });
                s.pread(fd, 4096, i * 4096);
                s.wait_us(2000);
                if second % 2 == 1 && i == 319 {
                    s.thread(201, "store:low1");
                    s.pwrite_since(fd, 32 << 20, began);
                }
            }
            s.slow(0);
        }
        fires("background-io-interference", s);
    }

    #[test]
    fn fires_when_many_share_a_device_and_none_gets_far() {
        let mut s = Scenario::new();
        let fd = s.open_existing("/data/sst", "O_RDWR", 1 << 30);
        for phase in 0..10 {
            let busy = phase % 2 == 1;
            let began = s.now();
            for i in 0..160 {
                s.thread(101 + i as i32 % 2, "client");
                // Not in tenths of a second that are half of this phase, half of the next.
                let slow = busy && (60..110).contains(&i) && i % 5 == 0;
                s.slow(if slow { 3_000_000 } else { 0 });
                s.pread(fd, 4096, i * 4096);
                s.wait_us(2000);
            }
            s.slow(0);
            if busy {
                // 256 KiB take the whole time.
                for tid in [201, 202] {
                    s.thread(tid, "store:low1");
                    s.pwrite_since(fd, 256 << 10, began);
                }
            }
        }
        let found = fires("background-io-interference", s);
        assert!(found[0].title.contains("(store:low)"), "{found:?}");
    }

    #[test]
    fn silent_when_nobody_is_slower() {
        silent("background-io-interference", store(0));
    }
}
