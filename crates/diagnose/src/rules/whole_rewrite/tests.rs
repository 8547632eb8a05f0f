//! Files that are written whole for each change, and similar cases that are fine.

use crate::scenario::{Scenario, fires, silent};

/// Saves of a state that grows, each in so many writes.
fn in_place(saves: i64, grows: i64) -> Scenario {
    let mut s = Scenario::new();
    for i in 0..saves {
        let fd = s.open("/data/state", "O_WRONLY|O_CREAT|O_TRUNC");
        for _ in 0..4 {
            s.write(fd, 4096 + i * grows);
        }
        s.close(fd);
        s.wait_us(100);
    }
    s
}

fn replaced(saves: i64, mut each: impl FnMut(&mut Scenario, i64)) -> Scenario {
    let mut s = Scenario::new();
    for i in 0..saves {
        each(&mut s, i);
        s.new_file("/data/state.tmp");
        let fd = s.open("/data/state.tmp", "O_WRONLY|O_CREAT|O_TRUNC");
        s.write(fd, 20_000 + i * 100);
        s.close(fd);
        s.rename("/data/state.tmp", "/data/state");
    }
    s
}

#[test]
fn fires_on_a_state_saved_in_place() {
    let found = fires("whole-rewrite", in_place(200, 10));
    // The first one made the file, and the last one may go on.
    assert_eq!(found[0].evidence[0].value, 198.0);
    assert_eq!(found[0].caveats.len(), 1);
    let found = fires("whole-rewrite", in_place(200, 0));
    assert_eq!(found[0].caveats.len(), 1);
    silent("whole-rewrite", in_place(60, 10));
}

/// A database is written into a new file: a place for the header, the data, and then the header.
#[test]
fn a_header_that_is_written_last_belongs_to_its_version() {
    let mut s = Scenario::new();
    for i in 0..200 {
        s.new_file("/data/state.tmp");
        let fd = s.open("/data/state.tmp", "O_RDWR|O_CREAT|O_TRUNC");
        s.pwrite(fd, 4096, 0);
        s.pwrite(fd, 100_000 + i * 100, 4096);
        s.pwrite(fd, 2048, 0);
        s.close(fd);
        s.rename("/data/state.tmp", "/data/state");
    }
    let found = fires("whole-rewrite", s);
    assert_eq!(found[0].evidence[0].value, 199.0);
    assert_eq!(found[0].evidence[4].value, 124_096.0 - 100.0);
}

/// The syncs before the renames are most of what the versions cost.
#[test]
fn syncs_of_versions_that_are_renamed_count() {
    let saves = |renamed: bool| {
        let mut s = Scenario::new();
        for i in 0..200 {
            let path = if renamed { "/data/state.tmp" } else { "/data/state" };
            if renamed {
                s.new_file(path);
            }
            let fd = s.open(path, "O_WRONLY|O_CREAT|O_TRUNC");
            s.write(fd, 300 + i / 100);
            s.slow(1_000_000);
            s.fsync(fd);
            s.slow(0);
            s.close(fd);
            if renamed {
                s.rename(path, "/data/state");
            }
            s.wait_ms(3);
        }
        s
    };
    fires("whole-rewrite", saves(true));
    silent("whole-rewrite", saves(false));
}

/// Each run of a program appends to a list, and sorts all of it in place.
#[test]
fn fires_on_a_list_that_is_appended_to_between_two_versions() {
    let mut s = Scenario::new();
    for i in 0..200 {
        let fd = s.open("/src/tags", "O_RDWR|O_CREAT|O_APPEND");
        s.write(fd, 80);
        s.close(fd);
        let fd = s.open("/src/tags", "O_WRONLY|O_CREAT");
        s.truncate(fd, 0);
        s.pwrite(fd, 20_000, 0);
        s.pwrite(fd, 80 * (i + 1), 20_000);
        s.close(fd);
    }
    let found = fires("whole-rewrite", s);
    assert_eq!(found.len(), 1);
}

/// Written over, and then cut to its new length.
#[test]
fn fires_on_a_state_that_is_cut_at_the_end() {
    let mut s = Scenario::new();
    let fd = s.open_existing("/data/state", "O_RDWR", 20_000);
    for i in 0..200 {
        let length = 20_000 - i % 2 * 10;
        s.pwrite(fd, length, 0);
        s.truncate(fd, length);
    }
    let found = fires("whole-rewrite", s);
    assert!(found[0].evidence[0].value >= 190.0, "{found:?}");
}

/// Written over from the beginning on.
fn written_over(grows: i64) -> Scenario {
    let mut s = Scenario::new();
    let fd = s.open("/data/state", "O_RDWR|O_CREAT");
    for i in 0..200 {
        s.pwrite(fd, 8192, 0);
        s.pwrite(fd, 8192 + i * grows, 8192);
    }
    s
}

#[test]
fn a_log_that_starts_over_at_its_beginning_is_not_a_state() {
    let found = fires("whole-rewrite", written_over(10));
    assert_eq!(found[0].evidence[0].value, 198.0);
    silent("whole-rewrite", written_over(0));
}

#[test]
fn fires_on_a_state_that_is_replaced() {
    let found = fires("whole-rewrite", replaced(200, |_, _| {}));
    assert_eq!(found[0].evidence[0].value, 199.0);
    assert_eq!(found[0].evidence[1].value, 199.0);
    let end = "and it is never longer than 39.0 KiB";
    assert!(found[0].title.ends_with(end), "{}", found[0].title);
}

#[test]
fn what_loads_the_state_before_each_change_counts() {
    let loads = |s: &mut Scenario, i: i64| {
        if i > 0 {
            let fd = s.open("/data/state", "O_RDONLY");
            s.read(fd, 20_000 + (i - 1) * 100);
            s.close(fd);
        }
    };
    let found = fires("whole-rewrite", replaced(200, loads));
    assert_eq!(found[0].evidence[3].value, (1..200).map(|i| 20_000.0 + f64::from(i - 1) * 100.0).sum::<f64>());
    assert!(found[0].caveats.is_empty());
    let alone = fires("whole-rewrite", replaced(200, |_, _| {}));
    assert!(found[0].cost_ns > alone[0].cost_ns);
}

#[test]
fn many_versions_count_if_they_cost_little() {
    let rarely = |versions: i64| {
        replaced(versions, |s, _| s.wait_us(300))
    };
    assert_eq!(fires("whole-rewrite", rarely(200)).len(), 1);
    silent("whole-rewrite", rarely(95));
}

#[test]
fn short_versions_count_if_they_cost_much() {
    let short = |pause_us: i64| {
        let mut s = Scenario::new();
        for _ in 0..300 {
            s.new_file("/data/.zarray.part");
            let fd = s.open("/data/.zarray.part", "O_WRONLY|O_CREAT|O_TRUNC");
            s.write(fd, 340);
            s.close(fd);
            s.rename("/data/.zarray.part", "/data/.zarray");
            s.wait_us(pause_us);
        }
        s
    };
    fires("whole-rewrite", short(5));
    silent("whole-rewrite", short(500));
}

#[test]
fn processes_that_each_write_it_count_together() {
    let each = |s: &mut Scenario, i: i64| s.process(200 + i as i32);
    let found = fires("whole-rewrite", replaced(160, each));
    assert_eq!(found[0].evidence[5].value, 160.0);
    assert!(found[0].title.starts_with("program and 159 other processes write /data/state whole 159 times"), "{}", found[0].title);
}

/// `make >tmp && mv tmp state`.
#[test]
fn a_version_that_another_process_renames_counts() {
    let mut s = Scenario::new();
    for i in 0..200 {
        s.process(200 + i);
        s.new_file("/data/tmp");
        let fd = s.open("/data/tmp", "O_WRONLY|O_CREAT|O_TRUNC");
        s.write(fd, 20_000);
        s.close(fd);
        s.process(1000 + i);
        s.rename("/data/tmp", "/data/state");
    }
    let found = fires("whole-rewrite", s);
    assert_eq!(found[0].evidence[0].value, 199.0);
    assert!(found[0].title.starts_with("program and 255 or more other processes write"), "{}", found[0].title);
    assert!(!found[0].query.contains("pid IN"), "{}", found[0].query);
}

#[test]
fn silent_on_other_contents_each_time() {
    // Lengths as of pictures.
    silent("whole-rewrite", in_place(1, 0));
    let mut s = Scenario::new();
    for i in 0..200 {
        let fd = s.open("/data/out.png", "O_WRONLY|O_CREAT|O_TRUNC");
        s.write(fd, 10_000 + i * 7919 % 40_000);
        s.close(fd);
    }
    silent("whole-rewrite", s);
}

/// Opened to append to it, loaded or not, emptied and written.
fn appended(loads: bool) -> Scenario {
    let mut s = Scenario::new();
    for i in 0..200 {
        if loads && i > 0 {
            let fd = s.open("/data/store", "O_RDONLY");
            s.read(fd, 20_000 + i * 100);
            s.close(fd);
        }
        let fd = s.open("/data/store", "O_WRONLY|O_CREAT|O_APPEND");
        s.truncate(fd, 0);
        s.pwrite(fd, 20_000 + i * 100, 0);
        s.close(fd);
    }
    s
}

#[test]
fn a_file_that_is_appended_to_is_a_log_unless_it_is_loaded() {
    let found = fires("whole-rewrite", appended(true));
    assert_eq!(found[0].evidence[0].value, 198.0);
    silent("whole-rewrite", appended(false));
}

#[test]
fn silent_on_logs_that_are_rotated_and_on_results_that_are_moved_away() {
    let mut s = Scenario::new();
    for i in 0..200 {
        s.new_file("/data/current");
        let fd = s.open("/data/current", "O_WRONLY|O_CREAT|O_APPEND");
        for _ in 0..10 {
            s.write(fd, 1600);
        }
        s.close(fd);
        s.rename("/data/current", "/data/previous");
        if i % 2 == 0 {
            s.new_file("/data/part");
            let fd = s.open("/data/part", "O_WRONLY|O_CREAT|O_EXCL");
            s.write(fd, 16_000);
            s.close(fd);
            s.rename("/data/part", &format!("/data/{i}"));
        }
    }
    silent("whole-rewrite", s);
}

#[test]
fn silent_on_small_files_on_pages_in_the_middle_and_on_journals() {
    let mut s = Scenario::new();
    for i in 0..200 {
        let fd = s.open("/data/settings", "O_WRONLY|O_CREAT|O_TRUNC");
        s.write(fd, 700 + i);
        s.close(fd);
        s.wait_us(200);
    }
    let fd = s.open_existing("/data/table", "O_RDWR", 1 << 20);
    for i in 0..200 {
        s.pwrite(fd, 4096, 0);
        s.pwrite(fd, 4096, i * 4096);
    }
    let fd = s.open("/data/table-journal", "O_RDWR|O_CREAT");
    for _ in 0..200 {
        s.pwrite(fd, 8192, 0);
        s.truncate(fd, 0);
    }
    silent("whole-rewrite", s);
}
