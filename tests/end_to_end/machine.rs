//! The machine as a whole, against what the kernel says of it.

use std::fs;

use fathom_tests::{Record, Scratch, need_root};

/// Says what the kernel says before and after a second of work, for which it keeps 64 MiB of data
/// unwritten.
const WORK: &str = r#"
    cat /proc/stat > before
    dd if=/dev/zero of=data bs=1M count=64 status=none
    grep ^Dirty: /proc/meminfo > dirty
    end=$(($(date +%s) + 3))
    while [ "$(date +%s)" -lt "$end" ]; do :; done
    cat /proc/stat > after
"#;

/// A tick of /proc/stat.
const TICK_NS: i64 = 10_000_000;

/// Ticks of user, nice, system, idle, iowait, irq, softirq, and steal.
fn ticks(stat: &str) -> Vec<i64> {
    let words = stat.lines().next().unwrap().split_whitespace();
    words
        .skip(1)
        .take(8)
        .map(|word| word.parse().unwrap())
        .collect()
}

#[test]
fn processors_and_memory_are_as_the_kernel_says() {
    need_root!();
    let scratch = Scratch::new();
    let proc_stat = || ticks(&fs::read_to_string("/proc/stat").unwrap());
    let outer = proc_stat();
    let recording = Record::new(&scratch)
        .command(["sh", "-c"])
        .command([format!("cd {}; {WORK}", scratch.work().display())])
        .run()
        .must_exit(0);
    let outer_end = proc_stat();
    recording.complete();
    let file = |name: &str| fs::read_to_string(scratch.work().join(name)).unwrap();
    let (inner, inner_end) = (ticks(&file("before")), ticks(&file("after")));
    let sums = &recording.rows(
        "SELECT sum(user_ns) AS user, sum(system_ns) AS system, sum(idle_ns) AS idle,
             sum(iowait_ns) AS iowait, sum(interrupt_ns) AS interrupt, sum(steal_ns) AS steal
         FROM machine",
    )[0];
    for (names, fields) in [
        (&["user"][..], &[0, 1][..]),
        (&["system"], &[2]),
        // The kernel moves time from one of these to the other afterwards.
        (&["idle", "iowait"], &[3, 4]),
        (&["interrupt"], &[5, 6]),
        (&["steal"], &[7]),
    ] {
        let ns = |from: &[i64], until: &[i64]| -> i64 {
            fields.iter().map(|at| until[*at] - from[*at]).sum::<i64>() * TICK_NS
        };
        let sum: i64 = names.iter().map(|name| sums.int(name).unwrap()).sum();
        // Each figure is cut to whole ticks; one that takes some from another may lose one.
        let cut = (names.len() as i64 - 1) * 2 * TICK_NS;
        let (least, most) = (ns(&inner, &inner_end), ns(&outer, &outer_end));
        assert!(
            (least - cut..=most + cut).contains(&sum),
            "{names:?}: {least} {sum} {most}"
        );
    }
    // A row per second, one after the other, from before the command until after it.
    let rows = recording.rows(
        "SELECT ts_ns, ended_at_ns, running_threads, dirty_bytes, available_bytes FROM machine
         ORDER BY ts_ns",
    );
    assert!((3..=60).contains(&rows.len()), "{rows:?}");
    for pair in rows.windows(2) {
        assert_eq!(pair[0].int("ended_at_ns"), pair[1].int("ts_ns"));
    }
    let calls = &recording.rows("SELECT min(ts_ns) AS first, max(ts_ns) AS last FROM syscalls")[0];
    assert!(
        rows[0].int("ts_ns") <= calls.int("first"),
        "{rows:?} {calls:?}"
    );
    assert!(rows[rows.len() - 1].int("ended_at_ns") >= calls.int("last"));
    let [most, least] = ["running_threads", "available_bytes"].map(|column| {
        let values = rows.iter().map(|row| row.int(column).unwrap());
        (values.clone().max().unwrap(), values.min().unwrap())
    });
    assert!(most.0 >= 1 && least.1 > 0, "{rows:?}");
    // The kernel may write meanwhile: the highest value is at least a part of what was there.
    let dirty: i64 = file("dirty")
        .split_whitespace()
        .nth(1)
        .unwrap()
        .parse()
        .unwrap();
    let seen = rows
        .iter()
        .filter_map(|row| row.int("dirty_bytes"))
        .max()
        .unwrap();
    assert!(dirty == 0 || seen > 0, "{dirty} KiB, {rows:?}");
    // Off with the layer of thread states.
    let without = Record::named(&scratch, "without")
        .options(["--layers", "syscall"])
        .command(["true"])
        .run()
        .must_exit(0);
    assert!(without.rows("SELECT * FROM machine").is_empty());
}
