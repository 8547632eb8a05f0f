//! What threads did and how the machine was over time, in windows of any place and width.

use fathom_testkit::Random;

use super::*;

/// Threads that compute, wait for a lock, for a device, for a time, and for their end; and with
/// `MANY` so many waits that they are summed up.
const THREADS: &str = "
import hashlib, os, sys, threading, time
folder, many = sys.argv[1], int(sys.argv[2])
lock = threading.Condition()
turn = [0]
def in_turns(own):
    for _ in range(many):
        with lock:
            while turn[0] != own: lock.wait()
            turn[0] = 1 - own
            lock.notify()
def write(name):
    with open(os.path.join(folder, name), 'wb') as file:
        for _ in range(20):
            file.write(os.urandom(1 << 16)); file.flush(); os.fsync(file.fileno())
def compute():
    until = time.monotonic() + 2
    while time.monotonic() < until: hashlib.sha256(b'x' * 1000000).digest()
work = [(in_turns, 0), (in_turns, 1), (write, 'a'), (write, 'b'), (compute,), (compute,), (time.sleep, 1)]
threads = [threading.Thread(target=of[0], args=of[1:]) for of in work]
for thread in threads: thread.start()
for thread in threads: thread.join()
short = threading.Thread(target=write, args='c')
short.start(); short.join(); time.sleep(1.2)
";

fn record(scratch: &Scratch, many: u32) -> (Recording, Page) {
    let recording = Record::named(scratch, "run")
        .command(["python3", "-c", THREADS])
        .command([scratch.work()])
        .command([many.to_string()])
        .run()
        .must_exit(0);
    recording.complete();
    let page = Page::serve(&recording.session);
    (recording, page)
}

/// Windows since the start of a recording: all of it, and others of any place and width.
fn windows(recording: &Recording, count: usize) -> (i64, Vec<(i64, i64)>) {
    let session = &recording.rows("SELECT started_at_ns, ended_at_ns FROM session")[0];
    let start = session.int("started_at_ns").unwrap();
    let whole = session.int("ended_at_ns").unwrap() - start;
    let mut random = Random::new(whole as u64);
    let mut windows = vec![(0, whole)];
    while windows.len() < count {
        // From the whole recording down to a microsecond, and mostly short.
        let width = (whole >> random.below(20)).max(1000);
        let from = random.below((whole - width) as u64 + 1) as i64;
        windows.push((from, from + width));
    }
    (start, windows)
}

/// View `thread_states` of a part of the recording: the lives of threads are cut to it.
fn view_of_window(from: i64, to: i64) -> String {
    let mut view = include_str!("../../../../crates/query/sql/thread_states.sql").to_owned();
    for (whole, part) in [
        (
            "greatest(started_at_ns, begin_ns)::HUGEINT",
            format!("greatest(started_at_ns, begin_ns, {from})::HUGEINT"),
        ),
        (
            "least(coalesce(ended_at_ns, end_ns), end_ns)::HUGEINT",
            format!("least(coalesce(ended_at_ns, end_ns), end_ns, {to})::HUGEINT"),
        ),
    ] {
        assert_eq!(view.matches(whole).count(), 1, "{whole}");
        view = view.replace(whole, &part);
    }
    view
}

/// Nanoseconds by thread, state, and reason.
type Times = BTreeMap<(i64, String, String), i64>;

/// What SQL says of a window, and of the waits in it alone: of each thread and reason, whose ends
/// are known.
fn by_sql(recording: &Recording, from: i64, to: i64) -> (Times, Times) {
    let times = |sql: &str| -> Times {
        let rows = recording.rows(sql);
        let key = |row: &Row, name| row.text(name).unwrap_or_default().to_owned();
        rows.iter()
            .map(|row| {
                let key = (
                    row.int("tid").unwrap(),
                    key(row, "state"),
                    key(row, "reason"),
                );
                (key, row.int("time_ns").unwrap())
            })
            .collect()
    };
    let view = view_of_window(from, to);
    let states = format!(
        "SELECT tid, state, reason, sum(time_ns)::BIGINT AS time_ns FROM ({view}) GROUP BY ALL"
    );
    let waits = format!(
        "SELECT tid, 'blocked' AS state, reason,
             sum(least(ts_ns + dur_ns - coalesce(run_queue_ns, 0), {to})
                 - greatest(ts_ns, {from}))::BIGINT AS time_ns
         FROM waits WHERE reason <> 'cpu' AND ts_ns < {to}
             AND ts_ns + dur_ns - coalesce(run_queue_ns, 0) > greatest(ts_ns, {from})
         GROUP BY ALL"
    );
    (times(&states), times(&waits))
}

/// Windows by the mode of their answers.
fn compare_states(many: u32) -> BTreeMap<String, usize> {
    let scratch = Scratch::new();
    let (recording, page) = record(&scratch, many);
    let (start, windows) = windows(&recording, 30);
    let threads = recording.rows("SELECT DISTINCT tid FROM waits ORDER BY tid");
    let tids: Vec<String> = threads
        .iter()
        .map(|row| row.int("tid").unwrap().to_string())
        .collect();
    assert!(tids.len() > 8, "{tids:?}");
    let mut modes = BTreeMap::new();
    let mut compared = 0;
    for (from, to) in windows {
        let path = format!(
            "/sessions/run.fathom/states?lanes={}&from={from}&to={to}&pixels=100",
            tids.join(",")
        );
        let answer = page.table(&path);
        let mode = answer.meta["mode"].as_str().unwrap();
        *modes.entry(mode.to_owned()).or_default() += 1;
        let length = match mode {
            "periods" => "dur",
            _ => "time_ns",
        };
        let mut found = Times::new();
        let lanes = answer.numbers("lane").into_iter().map(|lane| lane as i64);
        let words = answer
            .texts("state")
            .into_iter()
            .zip(answer.texts("reason"));
        for ((tid, (state, reason)), ns) in lanes.zip(words).zip(answer.numbers(length)) {
            let word = |word: Option<&str>| word.unwrap_or_default().to_owned();
            *found.entry((tid, word(state), word(reason))).or_default() += ns as i64;
        }
        let (states, waits) = by_sql(&recording, start + from, start + to);
        // The view leaves threads out whose waits contradict each other.
        found.retain(|(tid, ..), _| states.keys().any(|(known, ..)| known == tid));
        assert_eq!(found, states, "{path}");
        for (key, ns) in &waits {
            assert_eq!(found.get(key).unwrap_or(ns), ns, "{key:?} {path}");
        }
        compared += states.len();
        if mode == "periods" {
            without_gaps(&answer, &path);
        }
    }
    assert!(compared > 100, "{compared}");
    let of_none = page.table("/sessions/run.fathom/states?lanes=&pixels=100");
    assert!(of_none.rows.is_empty());
    modes
}

/// The periods of a thread follow each other; these threads live once.
fn without_gaps(answer: &Table, path: &str) {
    let (lane, t, dur) = (
        answer.numbers("lane"),
        answer.numbers("t"),
        answer.numbers("dur"),
    );
    for i in 1..lane.len() {
        assert!(
            lane[i] != lane[i - 1] || t[i] == t[i - 1] + dur[i - 1],
            "{path}: {i}"
        );
    }
}

#[test]
fn states_of_threads_are_those_of_sql() {
    need_root!();
    need_program!("python3");
    let modes = compare_states(200);
    assert_eq!(modes.keys().collect::<Vec<_>>(), ["periods"], "{modes:?}");
}

#[test]
fn states_that_are_summed_up_are_those_of_sql() {
    need_root!();
    need_program!("python3");
    let modes = compare_states(20_000);
    assert!(modes.contains_key("sums") && modes.len() == 2, "{modes:?}");
}

/// Columns of table machine that are added up, and those of which rows shown as one have the mean.
const TIMES: [&str; 9] = [
    "user_ns",
    "system_ns",
    "interrupt_ns",
    "iowait_ns",
    "idle_ns",
    "steal_ns",
    "cpu_stalled_ns",
    "memory_stalled_ns",
    "io_stalled_ns",
];
const LEVELS: [&str; 7] = [
    "running_threads",
    "blocked_threads",
    "available_bytes",
    "cached_bytes",
    "dirty_bytes",
    "writeback_bytes",
    "swapped_bytes",
];

#[test]
fn the_machine_over_time_is_that_of_sql() {
    need_root!();
    need_program!("python3");
    let scratch = Scratch::new();
    let (recording, page) = record(&scratch, 200);
    let (start, windows) = windows(&recording, 15);
    let mut buckets = 0;
    for (from, to) in windows {
        for pixels in [1, 1000] {
            let path = format!("/sessions/run.fathom/machine?from={from}&to={to}&pixels={pixels}");
            let answer = page.table(&path);
            let width = answer.meta["bucket_ns"].as_i64().unwrap();
            let key = match width {
                0 => "ts_ns".to_owned(),
                _ => format!("ts_ns // {width}"),
            };
            buckets += usize::from(width > 0);
            let sums = TIMES.map(|name| format!("sum({name})::DOUBLE AS {name}"));
            let means = LEVELS.map(|name| format!("avg({name})::DOUBLE AS {name}"));
            let rows = recording.rows(&format!(
                "SELECT (min(ts_ns) - {start})::DOUBLE AS t,
                     (max(ended_at_ns) - min(ts_ns))::DOUBLE AS dur, {}, {}
                 FROM machine WHERE ended_at_ns > {} AND ts_ns < {} GROUP BY {key} ORDER BY t",
                sums.join(", "),
                means.join(", "),
                start + from,
                start + to,
            ));
            assert_eq!(answer.rows.len(), rows.len(), "{path}");
            for (found, row) in answer.rows.iter().zip(&rows) {
                for name in ["t", "dur"].into_iter().chain(TIMES).chain(LEVELS) {
                    let value = found.get(name).and_then(Value::as_f64);
                    assert_eq!(value, row.value(name).as_f64(), "{name} {path}");
                }
            }
        }
    }
    assert!(buckets > 0, "the recording is shorter than two seconds");
}

/// Nanoseconds in which a device had a request, by device and bucket: overlapping requests are
/// joined first.
fn busy_by_sql(
    recording: &Recording,
    from: i64,
    to: i64,
    width: i64,
) -> BTreeMap<(String, i64), i64> {
    let rows = recording.rows(&format!(
        "WITH cut AS (
             SELECT device, greatest(issued_at_ns, {from}) AS a, least(completed_at_ns, {to}) AS z
             FROM block WHERE device IS NOT NULL AND completed_at_ns > {from} AND issued_at_ns < {to}
         ), begun AS (
             SELECT *, a > coalesce(max(z) OVER (PARTITION BY device ORDER BY a, z
                 ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS first FROM cut
         ), numbered AS (
             SELECT *, sum(first::INTEGER) OVER (PARTITION BY device ORDER BY a, z
                 ROWS UNBOUNDED PRECEDING) AS island FROM begun
         ), islands AS (
             SELECT device, min(a) AS a, max(z) AS z FROM numbered GROUP BY device, island
         ), cells AS (
             SELECT *, unnest(generate_series((a - {from}) // {width}, (z - {from}) // {width})) AS cell
             FROM islands
         )
         SELECT device, cell, sum(least(z, {from} + (cell + 1) * {width})
             - greatest(a, {from} + cell * {width}))::BIGINT AS ns
         FROM cells GROUP BY ALL HAVING ns > 0"
    ));
    rows.iter()
        .map(|row| {
            let key = (
                row.text("device").unwrap().to_owned(),
                row.int("cell").unwrap(),
            );
            (key, row.int("ns").unwrap())
        })
        .collect()
}

#[test]
fn busy_shares_of_devices_are_those_of_sql() {
    need_root!();
    need_program!("python3");
    let scratch = Scratch::new();
    let (recording, page) = record(&scratch, 200);
    let (start, windows) = windows(&recording, 15);
    let mut compared = 0;
    for (from, to) in windows {
        let path = format!("/sessions/run.fathom/machine/devices?from={from}&to={to}&pixels=50");
        let answer = page.table(&path);
        let width = answer.meta["bucket_ns"].as_i64().unwrap();
        let expected = busy_by_sql(&recording, start + from, start + to, width);
        let (times, shares) = (answer.numbers("t"), answer.numbers("busy"));
        let keys = answer.texts("key");
        let found = keys.iter().zip(times).zip(shares).map(|((key, t), busy)| {
            let cell = (t as i64 - from) / width;
            let length = (to - from - cell * width).min(width);
            let ns = (busy * length as f64).round() as i64;
            ((key.unwrap().to_owned(), cell), ns)
        });
        assert_eq!(found.collect::<BTreeMap<_, _>>(), expected, "{path}");
        compared += expected.len();
    }
    if compared == 0 {
        fathom_tests::skip("no device of this file system has requests");
    }
}
