//! `background-io-interference`: the slowest calls of some threads take place while others of the
//! same process move much.

use std::collections::BTreeMap;

use hashbrown::HashMap;

use crate::names::role;
use crate::prelude::*;
use crate::under_way::UnderWay;

/// Time in which threads are looked at, nanoseconds.
const WINDOW_NS: i64 = 100_000_000;
/// Windows that are kept open for calls that return late.
const OPEN_WINDOWS: usize = 32;
/// The bytes that a busy background thread moves in a window: 10 MiB per second.
const BUSY_BYTES: i64 = 1 << 20;
/// Or how long it is in calls that move much: where many share a device none of them gets far.
const BUSY_NS: i64 = WINDOW_NS / 2;
/// A call of the foreground moves less than this, bytes.
const SMALL: i64 = 64 << 10;
/// Calls in busy and in quiet windows from which on they compare. Slow ones are few.
const MIN_CALLS: u64 = 32;
/// How many times longer the 99th percentile is.
const MIN_RATIO: f64 = 3.0;
/// How many times longer the mean is: a few that are slow by chance do not change it.
const MIN_MEAN: f64 = 2.0;
/// Numbers of busy threads that are distinguished.
const MAX_BUSY: usize = 16;

static INFO: RuleInfo = RuleInfo {
    id: "background-io-interference",
    name: "Tail latency during background I/O",
    group: Group::Performance,
    needs: &[Input::Calls],
    kinds: kinds![Read, Write, Transfer, Sync, SyncRange],
    about_calls: false,
    what: "Threads that answer requests wait much longer for the same calls while other threads of \
           the process read and write in bulk (compaction, flush, checkpoint, backup). Both groups \
           share the device, its queue, and the locks of the file system.",
    when: "The rule looks at the small calls of threads with one name: calls below 64 KiB, and \
           syncs with as little to write. It compares tenths of a second in which at least k other \
           threads of the process are busy with those in which fewer are. It fires if, for some k \
           and with 32 or more calls in each group, the 99th percentile is 3 times and the mean \
           twice as high in the busy windows. Only similar calls are compared: same kind, about the \
           same size, and both from memory or both from the device. A thread is busy if it moves 1 \
           MiB or more in the window, if it spends half of the window in calls of 64 KiB or more, \
           or if it is in a sync of a file with 1 MiB that was not durable. The bytes of a call are \
           spread over its duration; small calls count where each continues where the previous one \
           ended and none is made durable by itself. Half of the window suffices for large calls \
           because several threads that share a device move fewer bytes each. These are the \
           properties of bulk work, not of requests. Digits at the end of a name are ignored.",
    cost: "total time of the calls in busy windows, minus what the same number would take at the \
           mean of the quiet windows, divided by the number of calls in progress at a time",
    advice: "Limit the rate of the background work (a rate limiter, ionice, io.max or io.latency of \
           its cgroup), let fewer of its threads run at a time, write its data back in small \
           steps (sync_file_range) instead of in one sync, or put its files on another device.",
    not_when: "Not when no user waits for the answers of the foreground threads.",
    bad: "for (level = 0; level < 7; level++)\n    start_thread(compact, level);     /* all at once */",
    good: "for (level = 0; level < 7; level++)\n    queue(compact, level);            /* two threads, */\nlimit_rate(50 << 20);                 /* \
           50 MiB per second */",
    reference: "DIO, section IV-C: RocksDB's compactions and its clients' 99th percentile; SILK (USENIX ATC 2019)",
};

/// One thread in one window.
#[derive(Debug, Default)]
struct Activity {
    bytes: i64,
    /// In small calls that go on where the one before ended, and whether syncs of little were among them.
    small_bytes: i64,
    commits: bool,
    /// In calls that are not small.
    bulk_ns: i64,
    small: Vec<SmallCalls>,
}

/// Small calls that are alike.
#[derive(Debug, Default)]
struct SmallCalls {
    alike: u64,
    durations: Durations,
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

/// Threads of one name, and names of busy threads, that are distinguished.
const MAX_NAMES: usize = 64;

type Window = HashMap<(i32, i32), (Text, Activity)>;

rule! {
    pub struct BackgroundIoInterference {
        windows: BTreeMap<i64, Window>,
        foreground: Bounded<Who, Foreground>
            = Bounded::new(|f| f.by_busy.iter().map(|d| d.count).sum()),
        /// How long small calls of threads of one name were under way: each, and together.
        under_way: Bounded<(i32, u64), (i64, UnderWay)>
            = Bounded::new(|(sum_ns, _)| sum_ns.unsigned_abs()),
    }
}

/// A process, the name of its threads, and what calls.
type Who = (i32, u64, u64);

impl Activity {
    fn is_busy(&self) -> bool {
        // Many commits move much as well, and are what clients wait for.
        let small = if self.commits { 0 } else { self.small_bytes };
        self.bytes + small >= BUSY_BYTES || self.bulk_ns >= BUSY_NS
    }

    fn add(&mut self, call: &Call, alike: u64) {
        let known = self.small.iter().position(|small| small.alike == alike);
        let at = known.unwrap_or_else(|| {
            self.small.push(SmallCalls { alike, ..SmallCalls::default() });
            self.small.len() - 1
        });
        let Some(small) = self.small.get_mut(at) else { return };
        small.durations.add(call.dur_ns);
        if small.slowest.as_ref().is_none_or(|e| e.dur_ns < call.dur_ns) {
            small.slowest = Some(Example::of(call));
        }
    }
}

/// Adds what a window holds to the foregrounds.
fn settle(
    window: &Window,
    foreground: &mut Bounded<Who, Foreground>,
) {
    // Busy threads of each process.
    let mut busy: HashMap<i32, Vec<&str>> = HashMap::new();
    for ((pid, _), (comm, activity)) in window {
        if activity.is_busy() {
            busy.entry(*pid).or_default().push(role(comm));
        }
    }
    for ((pid, tid), (comm, activity)) in window {
        if activity.is_busy() {
            continue;
        }
        let others = busy.get(pid).map_or(&[][..], Vec::as_slice);
        for small in &activity.small {
            let own = foreground.entry((*pid, key_of(role(comm)), small.alike));
            own.add(*tid, comm, small, others);
        }
    }
}

impl Foreground {
    fn add(&mut self, tid: i32, comm: &Text, small: &SmallCalls, others: &[&str]) {
        self.comm.clone_from(comm);
        if self.threads.len() < MAX_NAMES {
            self.threads.insert(tid);
        }
        let k = others.len().min(MAX_BUSY);
        if self.by_busy.len() <= k {
            self.by_busy.resize_with(k + 1, Durations::default);
        }
        if let Some(durations) = self.by_busy.get_mut(k) {
            durations.merge(&small.durations);
        }
        for name in others {
            if self.background.len() < MAX_NAMES || self.background.contains_key(*name) {
                *self.background.entry((*name).to_owned()).or_insert(0) += 1;
            }
        }
        if let Some(example) = small.slowest.clone().filter(|_| k > 0) {
            self.slowest.push(example);
            self.slowest.sort_by_key(|e| std::cmp::Reverse(e.dur_ns));
            self.slowest.truncate(EXAMPLES);
        }
    }
}

/// The number of a kind of call that moves about as much, in memory or from the device.
fn alike(call: &Call, amount: i64, missed: bool) -> u64 {
    let size = u64::from(amount.max(1).ilog2());
    (call.kind as u64) << 16 | size << 1 | u64::from(missed)
}

impl Rule for BackgroundIoInterference {
    fn call(&mut self, call: &Call, context: &Context) {
        let stored = context.file(call).is_some_and(|f| f.is_regular() && !f.is_volatile());
        if !call.succeeded() || call.asynchronous || !stored {
            return;
        }
        let sync = !call.kind.is_data();
        let dirty = context.file(call).map_or(0, |f| f.dirty.len());
        let bulk = sync && dirty >= BUSY_BYTES;
        let amount = if sync { dirty } else { call.moved() };
        let small = amount < SMALL;
        let before = context.open().and_then(|open| open.end);
        let goes_on = before.is_some() && before == call.offset;
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
            let moved = match first == last {
                true => call.moved(),
                false => (call.moved() as f64 * share) as i64,
            };
            match small {
                false => activity.bytes += moved,
                true if goes_on => activity.small_bytes += moved,
                true => {}
            }
            activity.commits |= small && sync && dirty > 0;
            if at == last && small {
                activity.add(call, alike(call, amount, context.below.missed()));
            }
        }
        if small {
            let (sum_ns, under_way) = self.under_way.entry((call.pid, call.role_key()));
            *sum_ns = sum_ns.saturating_add(call.dur_ns);
            under_way.add(start, end);
        }
        while self.windows.len() > OPEN_WINDOWS {
            if let Some((_, window)) = self.windows.pop_first() {
                settle(&window, &mut self.foreground);
            }
        }
    }

    fn findings(&self, run: &Run, out: &mut Vec<Found>) {
        // The open windows are added to a copy.
        let mut all: Bounded<Who, Foreground> = Bounded::new(|_| 0);
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
        // Among the calls of one name, the calls that lose most are shown.
        let mut losses: BTreeMap<(i32, u64), Vec<(&Foreground, Loss)>> = BTreeMap::new();
        for ((pid, name, _), own) in all.iter() {
            if let Some(loss) = loss(own) {
                losses.entry((*pid, *name)).or_default().push((own, loss));
            }
        }
        for (who, mut losses) in losses {
            losses.sort_by_key(|(_, loss)| std::cmp::Reverse(loss.ns));
            let sum: i64 = losses.iter().map(|(_, loss)| loss.ns).sum();
            // Calls of several threads lose it at the same time.
            let depth = self.under_way.get(&who).map_or(1.0, |(sum_ns, under_way)| {
                *sum_ns as f64 / under_way.ns().max(1) as f64
            });
            let cost = (sum as f64 / depth.max(1.0)) as i64;
            if let Some((own, loss)) = losses.first().filter(|_| run.matters(cost)) {
                out.push(finding(who.0, own, loss, cost));
            }
        }
    }
}

/// The loss of similar calls while other threads are busy.
struct Loss {
    /// Busy threads.
    k: usize,
    quiet: Durations,
    busy: Durations,
    ratio: f64,
    ns: i64,
}

fn loss(own: &Foreground) -> Option<Loss> {
    let sum = |part: &[Durations]| {
        let mut sum = Durations::default();
        part.iter().for_each(|d| sum.merge(d));
        sum
    };
    let mut best: Option<Loss> = None;
    for k in 1..own.by_busy.len() {
        let (quiet, busy) = own.by_busy.split_at(k);
        let (quiet, busy) = (sum(quiet), sum(busy));
        if quiet.count < MIN_CALLS || busy.count < MIN_CALLS {
            continue;
        }
        let ratio = busy.quantile_ns(0.99) as f64 / quiet.quantile_ns(0.99).max(1) as f64;
        let (mean, quiet_mean) = (busy.mean_ns(), quiet.mean_ns().max(1));
        if ratio < MIN_RATIO || (mean as f64) < quiet_mean as f64 * MIN_MEAN {
            continue;
        }
        let count = i64::try_from(busy.count).unwrap_or(i64::MAX);
        let ns = busy.sum_ns.saturating_sub(count.saturating_mul(quiet_mean));
        if best.as_ref().is_none_or(|best| best.ns < ns) {
            best = Some(Loss { k, quiet, busy, ratio, ns });
        }
    }
    best
}

fn finding(pid: i32, own: &Foreground, loss: &Loss, cost: i64) -> Found {
    let Loss { k, quiet, busy, ratio, .. } = loss;
    let count = i64::try_from(busy.count).unwrap_or(i64::MAX);
    let threads = own.threads.len().max(1) as i64;
    let mut names: Vec<_> = own.background.iter().collect();
    names.sort_by_key(|(_, windows)| std::cmp::Reverse(**windows));
    let names: Vec<&str> = names.iter().take(3).map(|(name, _)| name.as_str()).collect();
    let fewer = match k {
        1 => "none is".to_owned(),
        k => format!("fewer than {k} do"),
    };
    Found {
        cost_ns: Some(cost),
        title: format!(
            "the p99 of {}'s calls is {} while {k} or more other threads ({}) read and write in bulk, and {} while {fewer}",
            own.comm,
            units::duration(busy.quantile_ns(0.99)),
            names.join(", "),
            units::duration(quiet.quantile_ns(0.99)),
        ),
        subject: Subject::process(pid, &own.comm),
        evidence: vec![
            evidence("ratio", *ratio),
            number("busy_p99_ns", busy.quantile_ns(0.99)),
            number("quiet_p99_ns", quiet.quantile_ns(0.99)),
            number("calls_while_busy", count),
            number("calls_while_quiet", i64::try_from(quiet.count).unwrap_or(i64::MAX)),
            number("busy_threads", *k as i64),
            number("threads", threads),
        ],
        examples: own.slowest.clone(),
        query: calls!("pid = {pid} AND starts_with(comm, {}) AND bytes < {SMALL} AND dur_ns > {}", sql::quote(role(&own.comm)), quiet.quantile_ns(0.99)),
        ..Found::default()
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{Scenario, fires, silent};

    #[test]
    fn fires_on_few_slow_commits_of_a_thread_that_moves_much() {
        let log = |bulk: bool| {
            let mut s = Scenario::new();
            let wal = s.open("/data/wal", "O_WRONLY|O_CREAT");
            let table = s.open("/data/table", "O_WRONLY|O_CREAT");
            for i in 0..2060 {
                if bulk && i >= 2000 {
                    s.thread(101, "log");
                    s.slow(0);
                    s.write(table, 2 << 20);
                    s.slow(20_000_000);
                }
                s.thread(102, "log");
                s.write(wal, 16 << 10);
                s.fdatasync(wal);
            }
            s
        };
        fires("background-io-interference", log(true));
        silent("background-io-interference", log(false));
    }

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
