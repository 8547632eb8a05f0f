//! Views blame and thread_states over waits with known causes.
#![allow(clippy::unwrap_used)]

use fathom_query::output::{self, Format, Options};
use fathom_query::{Db, Limits};
use fathom_testkit::sample::{self, Files, START};
use fathom_testkit::waits::{Block, Wait, blocks, waits};

fn rows(files: &Files, sql: &str) -> Vec<String> {
    let meta = sample::meta();
    let db = Db::open_parts(&meta, |table| files.parts(table), Limits::default()).unwrap();
    let mut out = Vec::new();
    let rows = db.query(sql).unwrap();
    output::write(rows, Format::Csv, &Options::default(), &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    text.lines().skip(1).map(str::to_string).collect()
}

fn blame(files: &Files, kind: &str) -> Vec<String> {
    rows(
        files,
        &format!(
            "SELECT resource, victim_tid, culprit_tid, time_ns FROM blame WHERE kind = '{kind}' \
             ORDER BY ALL"
        ),
    )
}

const fn block(tid: i32, rid: Option<i64>, queued: i64, issued: i64, completed: i64) -> Block {
    Block {
        tid,
        rid,
        queued_ns: queued,
        issued_ns: issued,
        completed_ns: completed,
    }
}

#[test]
fn time_in_a_queue_is_of_the_request_that_was_completed_next() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = Files::new(dir.path());
    files
        .add(&sample::processes(&[
            (100, 100, "db", None),
            (200, 200, "fio", None),
        ]))
        .add(&blocks(&[
            // The victim waits from 1,000 to 9,000.
            block(100, Some(1), 1_000, 9_000, 9_500),
            // Ahead: completed at 3,000 and 7,000. From 8,900 to 9,000 no request was served.
            block(200, None, 100, 200, 3_000),
            block(300, None, 900, 3_000, 7_000),
            // Queued later, and completed before: it overtook.
            block(400, None, 1_001, 7_000, 8_900),
            // Completed before, and after everything in a queue of its own time.
            block(200, None, 10, 20, 1_000),
            // Its second request waits from 8,000; to 9,000 the time is of the first one. Ahead of
            // it until 9,500: its own first one; then none until 10,000.
            block(100, Some(2), 8_000, 10_000, 11_000),
        ]));
    assert_eq!(
        blame(&files, "device"),
        [
            "vda,100,100,500",
            "vda,100,200,2000",
            "vda,100,300,4000",
            "vda,100,400,1900",
            "vda,100,,600"
        ]
    );
    assert_eq!(
        rows(&files, "SELECT sum(time_ns)::BIGINT, sum(share) FROM blame"),
        ["9000,1.0"]
    );
    assert_eq!(
        rows(
            &files,
            "SELECT victim_comm, victim_pid, victim_process, culprit_comm, culprit_process FROM blame \
             WHERE culprit_tid = 200"
        ),
        ["db,100,db,fio,fio"]
    );
}

/// Waits for a device, for a CPU, and for a thread, each from 1,000 to 9,000.
#[test]
fn only_waiting_in_the_window_counts() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = Files::new(dir.path());
    files
        .add(&blocks(&[
            block(100, Some(1), 1_000, 9_000, 9_500),
            block(200, None, 100, 200, 3_000),
            block(300, None, 900, 3_000, 7_000),
        ]))
        .add(&waits(&[
            Wait::new(200, 500, 600, "pipe").on_cpu(3),
            Wait::new(200, 7_000, 7_100, "pipe").on_cpu(3),
            // 200 runs from 600 to 7,000.
            Wait::new(100, 1_000, 9_000, "cpu").on_cpu(3),
            Wait::new(101, 1_000, 9_500, "futex")
                .woken(9_000)
                .by_thread(102, "owner"),
        ]));
    let between = |from: i64, until: i64| {
        let sql =
            fathom_query::blame_between(&(START + from).to_string(), &(START + until).to_string());
        rows(
            &files,
            &format!(
                "SELECT resource, victim_tid, culprit_tid, time_ns FROM ({sql}) \
                 WHERE victim_tid IN (100, 101) AND resource <> 'pipe' ORDER BY ALL"
            ),
        )
    };
    let all = [
        "cpu,100,200,6000",
        "cpu,100,,2000",
        "cpu,101,,500",
        "futex,101,102,8000",
        "vda,100,200,2000",
        "vda,100,300,4000",
        "vda,100,,2000",
    ];
    assert_eq!(between(0, 20_000), all);
    assert_eq!(
        between(2_000, 4_000),
        [
            "cpu,100,200,2000",
            "futex,101,102,2000",
            "vda,100,200,1000",
            "vda,100,300,1000",
        ]
    );
    assert_eq!(
        between(8_500, 9_200),
        [
            "cpu,100,,500",
            "cpu,101,,200",
            "futex,101,102,500",
            "vda,100,,500",
        ]
    );
    assert!(between(10_000, 20_000).is_empty());
}

#[test]
fn requests_over_many_buckets_are_ahead_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = Files::new(dir.path());
    let ms = 1_000_000;
    files.add(&blocks(&[
        block(200, None, 0, 1, 50 * ms),
        block(100, Some(1), 20 * ms, 60 * ms, 61 * ms),
    ]));
    let expected = [
        format!("vda,100,200,{}", 30 * ms),
        format!("vda,100,,{}", 10 * ms),
    ];
    assert_eq!(blame(&files, "device"), expected);
}

#[test]
fn time_for_a_cpu_is_of_the_thread_that_ran_on_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = Files::new(dir.path());
    files.add(&waits(&[
        // 200 runs on CPU 3 from 1,000 to 5,000,000, and from 7,000,000 to 8,000,000.
        Wait::new(200, 500, 1_000, "pipe").on_cpu(3),
        Wait::new(200, 5_000_000, 7_000_000, "pipe").on_cpu(3),
        Wait::new(200, 8_000_000, 9_000_000, "pipe").on_cpu(3),
        // 300 runs on another CPU all the time.
        Wait::new(300, 0, 10, "pipe").on_cpu(2),
        Wait::new(300, 9_000_000, 9_000_001, "pipe").on_cpu(2),
        // 100 is preempted from 500,000 to 6,000,000 on CPU 3: 4,500,000 by 200.
        Wait::new(100, 500_000, 6_000_000, "cpu").on_cpu(3),
        // It is woken at 7,200,000 and runs at 7,900,000: by 200.
        Wait::new(100, 6_500_000, 7_900_000, "pipe")
            .woken(7_200_000)
            .on_cpu(3),
    ]));
    assert_eq!(
        blame(&files, "cpu"),
        ["cpu,100,200,5200000", "cpu,100,,1000000"]
    );
}

#[test]
fn waits_for_threads_are_of_the_thread_that_ended_them() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = Files::new(dir.path());
    files
        .add(&sample::processes(&[(100, 101, "owner", None)]))
        .add(&waits(&[
            // Blocked for 900 of 1,000.
            Wait::new(100, 0, 1_000, "futex")
                .woken(900)
                .by_thread(101, "owner"),
            Wait::new(100, 2_000, 2_500, "futex").by_thread(101, "owner"),
            Wait::new(100, 3_000, 3_100, "futex").by("timer", "timer"),
            Wait::new(100, 4_000, 4_050, "pipe").by_thread(555, "stranger"),
            Wait::new(100, 5_000, 6_000, "disk").by_block(5_000),
            Wait::new(100, 7_000, 8_000, "timer").by("timer", "timer"),
            Wait::new(100, 9_000, 0, "futex")
                .by_thread(101, "owner")
                .open(),
        ]));
    assert_eq!(
        blame(&files, "wake_up"),
        [
            "disk,100,,1000",
            "futex,100,101,1400",
            "futex,100,,100",
            "pipe,100,555,50",
            "timer,100,,1000",
        ]
    );
    assert_eq!(
        rows(
            &files,
            "SELECT culprit_comm, culprit_pid FROM blame WHERE culprit_tid > 0 ORDER BY ALL"
        ),
        ["owner,100", "stranger,"]
    );
}

#[test]
fn shares_are_of_the_waits_that_an_interrupt_ended_too() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = Files::new(dir.path());
    files.add(&waits(&[
        Wait::new(100, 1_000, 1_300, "disk").by_block(1_000),
        Wait::new(100, 2_000, 2_100, "disk").by_thread(555, "kworker"),
    ]));
    assert_eq!(
        rows(
            &files,
            "SELECT culprit_tid, culprit_comm, time_ns, share FROM blame ORDER BY time_ns"
        ),
        ["555,kworker,100,0.25", ",,300,0.75"]
    );
}

#[test]
fn states_add_up_to_the_wall_time() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = Files::new(dir.path());
    let s = 1_000_000_000;
    files
        .add(&sample::lives(&[
            // Lives through the recording, which is 4 s long.
            (100, 100, "old", START - 5, None),
            (100, 101, "worker", START + s, Some(START + 3 * s)),
            (100, 102, "without rows", START + s, None),
            // The id is used again, by another process.
            (300, 103, "first", START, Some(START + s)),
            (400, 103, "second", START + 2 * s, Some(START + 3 * s)),
        ]))
        .add(&waits(&[
            Wait::new(100, s, 2 * s, "pipe").woken(2 * s - 300),
            Wait::new(100, 2 * s + 500, 2 * s + 700, "cpu"),
            // The return at the end of the recording was not seen; of another one before neither,
            // but it left the CPU again.
            Wait::new(100, 3 * s, 0, "disk").open(),
            Wait::new(100, 3 * s + 100, 3 * s + 101, "disk"),
            Wait::new(100, 4 * s - 50, 0, "disk").open(),
            Wait::new(101, s + 10, s + 30, "futex"),
            // It began before the end of the thread, and ends after it in the row.
            Wait::new(101, 3 * s - 10, 3 * s + 10, "futex"),
            Wait::new(103, 10, 20, "timer"),
            Wait::new(103, 2 * s + 10, 2 * s + 50, "timer"),
        ]));
    let states = |tid: i32| {
        let sql = "SELECT pid, state, reason, time_ns FROM thread_states WHERE tid";
        rows(&files, &format!("{sql} = {tid} ORDER BY ALL"))
    };
    assert_eq!(
        states(100),
        [
            "100,blocked,disk,1".to_string(),
            format!("100,blocked,pipe,{}", s - 300),
            "100,runnable,cpu,500".to_string(),
            format!("100,running,,{}", 2 * s - 200 - 100 - 1 - 50),
            "100,unknown,unseen_return,150".to_string(),
            format!("100,unknown,unseen_start,{s}"),
        ]
    );
    assert_eq!(
        states(101),
        [
            "100,blocked,futex,30".to_string(),
            format!("100,running,,{}", 2 * s - 30)
        ]
    );
    assert_eq!(states(102), [""; 0]);
    assert_eq!(
        states(103),
        [
            "300,blocked,timer,10".to_string(),
            format!("300,running,,{}", s - 20),
            "300,unknown,unseen_start,10".to_string(),
            "400,blocked,timer,40".to_string(),
            format!("400,running,,{}", s - 40),
        ]
    );
    let sums = "SELECT tid, pid, sum(time_ns)::BIGINT, sum(share) FROM thread_states GROUP BY ALL ORDER BY ALL";
    assert_eq!(
        rows(&files, sums),
        [
            format!("100,100,{},1.0", 4 * s),
            format!("101,100,{},1.0", 2 * s),
            format!("103,300,{s},1.0"),
            format!("103,400,{s},1.0"),
        ]
    );
}

/// A damaged capture has such times: the report reads this view.
#[test]
fn times_that_cannot_be_do_not_fail() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = Files::new(dir.path());
    let never = i64::MAX - START;
    files
        .add(&sample::lives(&[
            (100, 100, "a", i64::MIN + 1, Some(i64::MAX)),
            (100, 101, "b", START, Some(i64::MIN + 1)),
        ]))
        .add(&waits(&[
            Wait::new(100, 10, 10 + i64::MAX / 2, "futex"),
            Wait::new(100, never - 1, never, "futex"),
            Wait::new(101, 20, 30, "futex"),
        ]));
    let sum = "SELECT tid, sum(time_ns)::BIGINT FROM thread_states GROUP BY tid";
    assert_eq!(rows(&files, sum), ["100,4000000000"]);
}
