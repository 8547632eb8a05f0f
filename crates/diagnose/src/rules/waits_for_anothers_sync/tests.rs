use crate::scenario::{Scenario, fires, silent};

/// Four threads that sync in turn, each after it waited for the syncs of the others, which are a part
/// of the wait only if there is a pause. `waiting` of them wait at the same time.
fn one_after_another(waiting: usize, pause_us: i64) -> Scenario {
    let mut s = Scenario::new();
    let fd = s.open("/data/wal/000001", "O_RDWR|O_CREAT");
    let mut began = vec![];
    for i in 0..400 {
        let (tid, before) = (101 + i % 4, 101 + (i + 3) % 4);
        if let Some(from) = began.len().checked_sub(waiting).and_then(|at| began.get(at)) {
            s.sleeps((tid, "backend"), (*from, s.now()), "futex", before);
        }
        began.push(s.now());
        s.wait_us(pause_us);
        s.thread(tid, "backend");
        s.pwrite(fd, 8192, i64::from(i) * 8192);
        s.fdatasync(fd);
    }
    s
}

#[test]
fn fires_on_threads_that_sync_one_after_another() {
    let found = fires("waits-for-anothers-sync", one_after_another(3, 10));
    assert_eq!(found.len(), 1);
    let title = "4 threads of backend wait 397 times until one of 4 threads (backend) has made";
    assert!(found[0].title.starts_with(title), "{found:?}");
    // As long as the syncs that were waited for, although several waited for each.
    assert_eq!(found[0].cost_ns, Some(397_000_000));
}

#[test]
fn silent_on_a_pool_that_hands_work_on() {
    silent("waits-for-anothers-sync", one_after_another(1, 10));
}

#[test]
fn silent_when_the_sync_is_a_small_part_of_the_wait() {
    silent("waits-for-anothers-sync", one_after_another(3, 5_000));
}

#[test]
fn silent_on_a_group_commit() {
    let mut s = Scenario::new();
    let fd = s.open("/data/wal/000001", "O_RDWR|O_CREAT");
    for i in 0..200 {
        let (leader, from) = (101 + i % 4, s.now());
        s.thread(leader, "backend");
        s.pwrite(fd, 8192, i64::from(i) * 8192);
        s.fdatasync(fd);
        for tid in (101..105).filter(|tid| *tid != leader) {
            s.sleeps((tid, "backend"), (from, s.now()), "futex", leader);
        }
    }
    silent("waits-for-anothers-sync", s);
}

/// A thread that syncs for four others, one at a time, which ask for it or just get work from it.
fn log_thread(ask: bool, pause_ms: i64) -> Scenario {
    let mut s = Scenario::new();
    let fd = s.open("/data/log", "O_RDWR|O_CREAT");
    for i in 0..100 {
        s.wait_ms(pause_ms);
        let (client, from) = (101 + i % 4, s.now());
        s.wait_us(50);
        if ask {
            s.sleeps((110, "log"), (from, s.now()), "futex", client);
        }
        s.thread(110, "log");
        s.pwrite(fd, 65536, i64::from(i) * 65536);
        s.fdatasync(fd);
        s.sleeps((client, "client"), (from, s.now()), "futex", 110);
    }
    s
}

#[test]
fn fires_on_threads_that_ask_for_the_sync() {
    let found = fires("waits-for-anothers-sync", log_thread(true, 0));
    assert!(found[0].title.contains("of client"), "{found:?}");
    assert!(found[0].title.contains("thread 110 (log)"), "{found:?}");
}

#[test]
fn silent_on_threads_that_wait_for_work() {
    silent("waits-for-anothers-sync", log_thread(false, 0));
}

#[test]
fn silent_when_the_waits_are_a_small_part_of_the_time() {
    silent("waits-for-anothers-sync", log_thread(true, 15));
}

#[test]
fn silent_on_readers_that_hold_a_writer_up() {
    let mut s = log_thread(true, 0);
    s.in_writes();
    silent("waits-for-anothers-sync", s);
}
