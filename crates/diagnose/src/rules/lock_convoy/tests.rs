use crate::scenario::{Scenario, fires, silent};

const LOCK: i64 = 0x7f00_1000;

/// Threads that take turns with a lock, in the order in which they wait for it. `waiting` wait at the
/// same time; each computes for a while before the read that it makes under the lock.
fn turns(waiting: usize, compute_us: i64, address: impl Fn(i32) -> i64) -> Scenario {
    turns_of(4, waiting, compute_us, address)
}

fn turns_of(threads: i32, waiting: usize, compute_us: i64, address: impl Fn(i32) -> i64) -> Scenario {
    let mut s = Scenario::new();
    let fd = s.open("/data/table", "O_RDONLY");
    let mut began = vec![];
    for i in 0..400 {
        let (tid, before) = (101 + i % threads, 101 + (i + threads - 1) % threads);
        if let Some(from) = began.len().checked_sub(waiting).and_then(|at| began.get(at)) {
            s.sleeps((tid, "reader"), (*from, s.now()), "futex", before);
            s.on_futex(address(tid));
        }
        began.push(s.now());
        s.wait_us(compute_us);
        s.thread(tid, "reader");
        s.slow(300_000);
        s.pread(fd, 16384, i64::from(i) * 7919 % 1024 * 16384);
    }
    s
}

#[test]
fn fires_on_reads_under_a_lock() {
    for waiting in [1, 3] {
        let found = fires("lock-convoy", turns(waiting, 10, |_| LOCK));
        assert_eq!(found.len(), 1);
        let title = "4 threads of reader wait 39";
        assert!(found[0].title.starts_with(title), "{found:?}");
        assert!(found[0].title.contains("holder is in calls on /data/table"), "{found:?}");
        // The reads that a thread waited for, once each, however many waited.
        let reads = 400 - waiting as i64;
        let cost = found[0].cost_ns.unwrap();
        assert!((reads * 299_000..=reads * 311_000).contains(&cost), "{cost}");
    }
}

#[test]
fn silent_where_the_holder_computes() {
    silent("lock-convoy", turns(3, 400, |_| LOCK));
}

#[test]
fn silent_on_threads_that_sleep_on_futexes_of_their_own() {
    silent("lock-convoy", turns(3, 10, |tid| LOCK + i64::from(tid)));
}

/// Each thread of a Java machine sleeps on a futex of its own.
#[test]
fn fires_on_monitors_of_java() {
    let java = |waiting, compute_us| {
        let mut s = turns(waiting, compute_us, |tid| LOCK + i64::from(tid));
        s.child_ends(1, 1, "java");
        s
    };
    let found = fires("lock-convoy", java(3, 10));
    assert_eq!(found.len(), 1);
    assert!(found[0].title.starts_with("4 threads of reader wait 39"), "{found:?}");
    assert!(found[0].query.contains("reason = 'futex'"), "{found:?}");
    silent("lock-convoy", java(3, 400));
    // Two may hand a task to and fro.
    let mut s = turns_of(2, 1, 10, |tid| LOCK + i64::from(tid));
    s.child_ends(1, 1, "java");
    silent("lock-convoy", s);
    // With a lock that has an address the waits are of that lock.
    let mut s = turns(3, 10, |_| LOCK);
    s.child_ends(1, 1, "java");
    let found = fires("lock-convoy", s);
    assert_eq!(found.len(), 1);
    assert!(found[0].query.contains("address = "), "{found:?}");
}

/// Tasks of a pool that are started by each other run at once: no lock holds them up.
#[test]
fn silent_on_java_threads_that_work_at_once() {
    let mut s = Scenario::new();
    let fd = s.open("/data/table", "O_RDONLY");
    let mut slept = s.now();
    for i in 0..400 {
        let (tid, before) = (101 + i % 4, 101 + (i + 3) % 4);
        let began = s.now();
        s.thread(before, "reader");
        s.slow(300_000);
        s.pread(fd, 16384, i64::from(i) * 16384);
        s.sleeps((tid, "reader"), (slept, s.now()), "futex", before);
        s.on_futex(LOCK + i64::from(tid));
        // Another one was in a call all the time.
        s.thread(105, "reader");
        s.pwrite_since(fd, 16384, began);
        slept = began;
    }
    s.child_ends(1, 1, "java");
    silent("lock-convoy", s);
}

/// One thread reads and the others wait for what it has read.
#[test]
fn silent_on_threads_that_wait_for_the_data_of_one() {
    let mut s = Scenario::new();
    let fd = s.open("/data/table", "O_RDONLY");
    for i in 0..200 {
        let from = s.now();
        s.thread(110, "reader");
        s.slow(300_000);
        s.pread(fd, 16384, i * 16384);
        for tid in 101..104 {
            s.sleeps((tid, "worker"), (from, s.now()), "futex", 110);
            s.on_futex(LOCK);
        }
    }
    silent("lock-convoy", s);
}

/// Syncs under a lock are of another rule.
#[test]
fn silent_on_syncs() {
    let mut s = Scenario::new();
    let fd = s.open("/data/log", "O_RDWR|O_CREAT");
    let mut from = s.now();
    for i in 0..400 {
        let (tid, before) = (101 + i % 4, 101 + (i + 3) % 4);
        s.sleeps((tid, "writer"), (from, s.now()), "futex", before);
        s.on_futex(LOCK);
        from = s.now();
        s.thread(tid, "writer");
        s.pwrite(fd, 8192, i64::from(i) * 8192);
        s.fdatasync(fd);
    }
    silent("lock-convoy", s);
}
