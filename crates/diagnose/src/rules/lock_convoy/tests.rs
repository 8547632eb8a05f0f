use crate::scenario::{Scenario, fires, silent};

const LOCK: i64 = 0x7f00_1000;

/// Threads that take turns with a lock, in the order in which they wait for it. `waiting` wait at the
/// same time; each computes for a while before the read that it makes under the lock.
fn turns(waiting: usize, compute_us: i64, address: impl Fn(i32) -> i64) -> Scenario {
    let mut s = Scenario::new();
    let fd = s.open("/data/table", "O_RDONLY");
    let mut began = vec![];
    for i in 0..400 {
        let (tid, before) = (101 + i % 4, 101 + (i + 3) % 4);
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
