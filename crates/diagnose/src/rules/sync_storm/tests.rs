//! Too many syncs, and similar cases that are fine.

use crate::scenario::{Scenario, fires, silent};

#[test]
fn fires_on_a_sync_a_row() {
    let mut s = Scenario::new();
    let fd = s.open("/data/wal", "O_WRONLY|O_CREAT");
    for _ in 0..100 {
        s.write(fd, 200);
        s.fsync(fd);
    }
    let found = fires("sync-storm", s);
    assert!((found[0].evidence[1].value - 200.0).abs() < 30.0);
}

#[test]
fn names_the_process_rather_than_its_thread() {
    let syncs = |named: bool, one: bool| {
        let mut s = Scenario::new();
        s.thread(101, "2_scheduler");
        let fd = s.open("/data/wal", "O_WRONLY|O_CREAT");
        for i in 0..100 {
            s.thread(if one || i % 2 == 0 { 101 } else { 102 }, "3_scheduler");
            s.write(fd, 200);
            s.fsync(fd);
        }
        if named {
            s.thread_ends("beam.smp");
        }
        s
    };
    let found = fires("sync-storm", syncs(true, true));
    let start = "3_scheduler of beam.smp makes ";
    assert!(found[0].title.starts_with(start), "{}", found[0].title);
    assert_eq!(found[0].subject.comm.as_deref(), Some("3_scheduler"));
    let found = fires("sync-storm", syncs(true, false));
    assert!(found[0].title.starts_with("beam.smp makes "), "{}", found[0].title);
    assert_eq!(found[0].subject.comm.as_deref(), Some("beam.smp"));
    // The name of the process is not known.
    let found = fires("sync-storm", syncs(false, true));
    assert_eq!(found[0].subject.comm.as_deref(), Some("3_scheduler"));
    // Calls before another program was executed.
    let mut s = Scenario::new();
    let fd = s.open("/data/wal", "O_WRONLY|O_CREAT");
    for _ in 0..100 {
        s.write(fd, 200);
        s.fsync(fd);
    }
    s.child_ends(0, 1, "cat");
    let found = fires("sync-storm", s);
    assert_eq!(found[0].subject.comm.as_deref(), Some("program"));
}

/// Commits of 64 KiB each in two places of a file, which has so many bytes.
fn commits(length: i64) -> Scenario {
    let mut s = Scenario::new();
    let fd = s.open_existing("/data/index", "O_RDWR", length);
    for i in 0..100 {
        s.pwrite(fd, 65536, i * 7 * 65536 % length);
        s.pwrite(fd, 512, 0);
        s.fsync(fd);
        s.wait_us(20);
    }
    s
}

#[test]
fn fires_on_commits_that_write_the_same_pages_again() {
    let found = fires("sync-storm", commits(128 << 10));
    let end = "MiB in all, for 128 KiB of data)";
    assert!(found[0].title.contains(end), "{}", found[0].title);
    silent("sync-storm", commits(1 << 20));
    // A log that goes around.
    let mut s = Scenario::new();
    let fd = s.open_existing("/data/index-wal", "O_RDWR", 4 << 20);
    for i in 0..10_000 {
        s.pwrite(fd, 65536, i * 65536 % (4 << 20));
        s.fsync(fd);
    }
    silent("sync-storm", s);
}

#[test]
fn files_of_one_name_are_counted_by_their_number() {
    let rotated = |syncs: i64| {
        let mut s = Scenario::new();
        for i in 0..200 / syncs {
            s.new_file("/data/current");
            let fd = s.open("/data/current", "O_WRONLY|O_CREAT|O_APPEND");
            for _ in 0..syncs {
                s.write(fd, 200);
                s.fsync(fd);
            }
            s.close(fd);
            s.rename("/data/current", &format!("/data/{i}"));
        }
        s
    };
    let found = fires("sync-storm", rotated(1));
    assert!(found[0].title.contains("makes 200 files durable that are /data/current one after the other"), "{}", found[0].title);
    let found = fires("sync-storm", rotated(100));
    assert!(found.iter().all(|f| !f.title.contains("one after the other")), "{found:#?}");
}

#[test]
fn fires_on_clean_files() {
    let mut s = Scenario::new();
    let fd = s.open("/data/state", "O_WRONLY|O_CREAT");
    s.write(fd, 1 << 20);
    for _ in 0..50 {
        s.fsync(fd);
    }
    let found = fires("sync-storm", s);
    assert_eq!(found[0].evidence[0].value, 49.0);
}

#[test]
fn stores_into_a_mapping_are_no_clean_file() {
    let mut s = Scenario::new();
    let fd = s.open("/data/journal", "O_RDWR|O_CREAT");
    s.truncate(fd, 1 << 20);
    s.fsync(fd);
    s.map_shared(fd, "PROT_READ|PROT_WRITE");
    (0..60).for_each(|_| s.fsync(fd));
    silent("sync-storm", s);
}

#[test]
fn fires_on_synchronous_writes_and_mappings() {
    let mut s = Scenario::new();
    let fd = s.open("/data/log", "O_WRONLY|O_CREAT|O_DSYNC");
    s.slow(1_000_000);
    for _ in 0..100 {
        s.write(fd, 200);
    }
    assert_eq!(fires("sync-storm", s)[0].evidence[0].value, 100.0);

    let mut s = Scenario::new();
    let fd = s.open("/data/map", "O_RDWR|O_CREAT");
    for _ in 0..100 {
        s.msync(fd, 4096, "MS_SYNC");
    }
    assert_eq!(fires("sync-storm", s)[0].evidence[0].value, 100.0);

    let mut s = Scenario::new();
    let fd = s.open("/data/log", "O_WRONLY|O_CREAT");
    for _ in 0..100 {
        s.write(fd, 200);
        s.sync_range(fd, "SYNC_FILE_RANGE_WRITE|SYNC_FILE_RANGE_WAIT_AFTER");
    }
    let found = fires("sync-storm", s);
    assert!((found[0].evidence[1].value - 200.0).abs() < 30.0, "{found:?}");
    // Waits for data, not for what makes them durable.
    assert!(
        found[0].title.contains("waits for the write-back of /data/log 100 times"),
        "{found:?}"
    );
}

#[test]
fn an_msync_writes_no_more_than_the_device_gets() {
    let mut s = Scenario::new();
    let fd = s.open("/data/map", "O_RDWR|O_CREAT");
    for _ in 0..100 {
        s.writes_back("/data/map", 4096, 0);
        s.msync(fd, 1 << 30, "MS_SYNC");
    }
    fires("sync-storm", s);
    let mut s = Scenario::new();
    let fd = s.open("/data/map", "O_RDWR|O_CREAT");
    for _ in 0..100 {
        s.msync(fd, 1 << 30, "MS_SYNC");
        s.msync(fd, 4096, "MS_ASYNC");
    }
    silent("sync-storm", s);
}

#[test]
fn silent_on_large_synchronous_writes_and_ranges_that_do_not_wait() {
    let mut s = Scenario::new();
    let fd = s.open("/data/log", "O_WRONLY|O_CREAT|O_SYNC");
    s.slow(1_000_000);
    for _ in 0..100 {
        s.write(fd, 65536);
    }
    let fd = s.open("/data/run", "O_WRONLY|O_CREAT");
    for _ in 0..100 {
        s.write(fd, 200);
        s.sync_range(fd, "SYNC_FILE_RANGE_WRITE");
    }
    silent("sync-storm", s);
}

#[test]
fn fires_on_a_ring_that_is_waited_for_each_time() {
    let mut s = Scenario::new();
    let fd = s.open("/data/wal", "O_WRONLY|O_CREAT");
    for _ in 0..100 {
        s.ring(1, |s, _| s.write(fd, 100));
        s.ring(1, |s, _| s.fdatasync(fd));
    }
    fires("sync-storm", s);
}

#[test]
fn fires_on_threads_that_take_turns() {
    let mut s = Scenario::new();
    let fd = s.open("/data/wal", "O_WRONLY|O_CREAT");
    for i in 0..60 {
        s.thread(100 + i % 6, "etcd");
        s.write(fd, 200);
        s.fdatasync(fd);
    }
    let found = fires("sync-storm", s);
    assert_eq!(found[0].evidence[0].value, 60.0);
    assert!(found[0].title.contains("of the time from the first to the last"), "{}", found[0].title);
    assert_eq!(found[0].subject.tid, None);
}

#[test]
fn fires_once_on_files_that_are_synced_in_turn() {
    let mut s = Scenario::new();
    let db = s.open("/data/db", "O_RDWR|O_CREAT");
    for i in 0..40 {
        s.new_file("/data/db-journal");
        let journal = s.open("/data/db-journal", "O_RDWR|O_CREAT");
        s.write(journal, 512);
        s.fdatasync(journal);
        s.pwrite(db, 4096, i * 4096);
        s.fdatasync(db);
        s.close(journal);
        s.unlink("/data/db-journal");
        s.slow(2_000_000);
        s.stat("/data/db");
        s.slow(0);
    }
    let found = fires("sync-storm", s);
    assert_eq!(found.len(), 1, "{found:#?}");
    let title = &found[0].title;
    assert!(title.contains("2 files durable in turn, 80 times together"), "{title}");
    assert!(title.contains("/data/db (") && title.contains("/data/db-journal ("), "{title}");
}

/// Files that are saved under another name first; `directory`: with a sync of the directory.
fn saves(directory: bool, target: impl Fn(i32) -> String) -> Scenario {
    let mut s = Scenario::new();
    let at = s.open_directory("/data");
    for i in 0..40 {
        let path = format!("/data/{i}.tmp");
        let fd = s.open(&path, "O_WRONLY|O_CREAT|O_EXCL");
        s.write(fd, 2000);
        s.fsync(fd);
        s.close(fd);
        s.rename(&path, &target(i));
        if directory {
            s.fsync(at);
        }
    }
    s
}

#[test]
fn fires_on_new_files_of_which_none_is_promised() {
    let found = fires("sync-storm", saves(false, |i| format!("/data/{i}")));
    assert!(found[0].title.contains("40 new files durable one by one"), "{found:?}");
}

#[test]
fn silent_on_files_that_are_promised_one_by_one_and_on_one_that_is_replaced() {
    silent("sync-storm", saves(true, |i| format!("/data/{i}")));
    silent("sync-storm", saves(false, |_| "/data/state".to_owned()));
}

#[test]
fn silent_on_processes_that_replace_one_file_each_with_a_name_of_its_own() {
    let saves = |replaces: bool| {
        let mut s = Scenario::new();
        for i in 0..120 {
            s.process(200 + i % 3);
            let path = format!("/data/stock.{}", 200 + i % 3);
            s.new_file(&path);
            let fd = s.open(&path, "O_WRONLY|O_CREAT|O_EXCL");
            s.write(fd, 5000);
            s.fsync(fd);
            s.close(fd);
            match replaces {
                true => s.rename(&path, "/data/stock"),
                false => s.unlink(&path),
            }
            let fd = s.open_directory("/data");
            s.fsync(fd);
            s.close(fd);
        }
        s
    };
    fires("sync-storm", saves(false));
    silent("sync-storm", saves(true));
}

#[test]
fn silent_on_a_batch_of_new_files() {
    let mut s = Scenario::new();
    let name = |i| format!("/data/{i}.tmp");
    let fds: Vec<i32> = (0..40).map(|i| {
        let fd = s.open(&name(i), "O_WRONLY|O_CREAT|O_EXCL");
        s.write(fd, 2000);
        fd
    }).collect();
    for fd in fds {
        s.fsync(fd);
    }
    for i in 0..40 {
        s.rename(&name(i), &format!("/data/{i}"));
    }
    silent("sync-storm", s);
}

/// All of them have the time, not only the first one.
#[test]
fn runs_that_sync_two_files_in_turn_have_the_time_of_all_of_them() {
    let storm = |processes: i32| {
        let mut s = Scenario::new();
        for i in 0..60 {
            s.process(201 + i % processes);
            for path in ["/data/db", "/data/journal"] {
                let fd = s.open_existing(path, "O_RDWR", 1 << 20);
                s.pwrite(fd, 200, i64::from(i) * 200);
                s.fdatasync(fd);
                s.close(fd);
            }
        }
        let found = fires("sync-storm", s);
        assert_eq!(found.len(), 1, "{found:#?}");
        assert!(!found[0].cost_how.contains("other findings"), "{}", found[0].cost_how);
        found[0].cost_ns
    };
    assert_eq!(storm(1), storm(6));
}

#[test]
fn fires_once_on_processes_that_sync_the_same_files_in_turn() {
    let mut s = Scenario::new();
    for i in 0..60 {
        s.process(201 + i % 6);
        let fd = s.open_existing("/data/wal", "O_RDWR", 1 << 20);
        s.pwrite(fd, 200, i64::from(i) * 200);
        s.fdatasync(fd);
        s.close(fd);
    }
    let found = fires("sync-storm", s);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!(found[0].evidence[0].value, 60.0);
    assert_eq!(found[0].subject.pid, None);
}

#[test]
fn direct_writes_belong_to_the_sync_behind_them() {
    let log = |flags| {
        let mut s = Scenario::new();
        let fd = s.open("/data/redo", flags);
        for _ in 0..100 {
            s.slow(2_000_000);
            s.write(fd, 512);
            s.slow(0);
            s.fdatasync(fd);
            s.wait_us(12_000);
        }
        s
    };
    fires("sync-storm", log("O_WRONLY|O_CREAT|O_DIRECT"));
    silent("sync-storm", log("O_WRONLY|O_CREAT"));
}

#[test]
fn slow_syncs_count_for_four_times_the_median() {
    let log = |each| {
        let mut s = Scenario::new();
        let fd = s.open("/data/log", "O_WRONLY|O_CREAT");
        for i in 0..200 {
            s.write(fd, 200);
            s.slow(if i % each == 0 { 20_000_000 } else { 100_000 });
            s.fdatasync(fd);
            s.slow(0);
            s.wait_us(20_000);
        }
        s
    };
    silent("sync-storm", log(10));
    fires("sync-storm", log(1));
}

#[test]
fn silent_on_a_sync_after_a_synchronous_write() {
    let mut s = Scenario::new();
    let fd = s.open("/data/log", "O_WRONLY|O_CREAT|O_DSYNC");
    for _ in 0..100 {
        s.write(fd, 65536);
        s.fsync(fd);
    }
    silent("sync-storm", s);
}

#[test]
fn silent_on_large_amounts() {
    let mut s = Scenario::new();
    let fd = s.open("/data/sst", "O_WRONLY|O_CREAT");
    for _ in 0..100 {
        for _ in 0..16 {
            s.write(fd, 65536);
        }
        s.fsync(fd);
    }
    silent("sync-storm", s);
}

#[test]
fn silent_when_syncs_are_rare() {
    let mut s = Scenario::new();
    let fd = s.open("/data/log", "O_WRONLY|O_CREAT");
    for _ in 0..60 {
        s.write(fd, 200);
        s.fsync(fd);
        s.wait_ms(1000);
    }
    silent("sync-storm", s);
}

#[test]
fn silent_when_length_or_room_changes_between() {
    let mut s = Scenario::new();
    let fd = s.open("/data/journal", "O_RDWR|O_CREAT");
    s.write(fd, 1 << 20);
    s.fsync(fd);
    for _ in 0..50 {
        s.truncate(fd, 0);
        s.fdatasync(fd);
    }
    let fd = s.open("/data/table", "O_RDWR|O_CREAT");
    s.write(fd, 1 << 20);
    s.fsync(fd);
    for i in 0..50 {
        s.allocate(fd, i * 65536, 65536);
        s.fdatasync(fd);
    }
    silent("sync-storm", s);
}

#[test]
fn names_the_call() {
    let mut s = Scenario::new();
    let fd = s.open("/data/state", "O_WRONLY|O_CREAT");
    s.write(fd, 1 << 20);
    for _ in 0..50 {
        s.fdatasync(fd);
    }
    let found = fires("sync-storm", s);
    assert!(found[0].title.contains("calls fdatasync 49 times"), "{}", found[0].title);
}

/// Data are made durable first, then a page that names them.
#[test]
fn silent_when_half_of_the_syncs_are_for_much() {
    let mut s = Scenario::new();
    let fd = s.open("/data/tree", "O_RDWR|O_CREAT");
    for _ in 0..60 {
        s.write(fd, 1 << 20);
        s.fdatasync(fd);
        s.write(fd, 120);
        s.fdatasync(fd);
    }
    silent("sync-storm", s);
}

#[test]
fn a_sync_beside_which_another_thread_writes_leaves_the_file_unsynced() {
    let mut s = Scenario::new();
    let fd = s.open("/data/log", "O_WRONLY|O_CREAT|O_APPEND");
    s.slow(1_000_000);
    for _ in 0..50 {
        s.thread(1001, "first");
        s.write(fd, 100);
        let begin = s.now();
        // The other thread's write ends after the sync began and before it ends.
        s.thread(1002, "second");
        s.slow(100);
        s.write(fd, 100);
        s.back_to(begin);
        s.thread(1001, "first");
        s.slow(5_000_000);
        s.fsync(fd);
        s.thread(1002, "second");
        s.fsync(fd);
    }
    let told = s.findings();
    assert!(!told.iter().any(|f| f.title.contains("has not changed")), "{told:?}");
}

/// A copy-on-write tree: its pages, and then the page that names the root.
#[test]
fn fires_on_commits_of_pages_and_of_a_root() {
    let commits = |pages: i64| {
        let mut s = Scenario::new();
        let fd = s.open("/data/data.mdb", "O_RDWR|O_CREAT");
        for i in 0..200 {
            s.pwrite(fd, pages, 8192 + i % 10 * pages);
            s.fdatasync(fd);
            s.pwrite(fd, 120, i % 2 * 4096);
            s.fdatasync(fd);
        }
        s
    };
    fires("sync-storm", commits(54 << 10));
    silent("sync-storm", commits(1 << 20));
}
