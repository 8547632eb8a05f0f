//! The time of threads: between their waits they run, and what they wait for is known. Compared
//! with what the kernel counts of each thread.

use fathom_tests::session::Row;
use fathom_tests::{Record, Recording, Scratch, need_root, workload};

/// What `states` prints of a thread.
struct Told {
    role: String,
    tid: i64,
    now_ns: i64,
    run_ns: i64,
    queue_ns: i64,
    voluntary: i64,
    involuntary: i64,
}

impl Told {
    fn parse(line: &str) -> Self {
        let mut words = line.split(' ');
        let role = words.next().unwrap().to_owned();
        let numbers: Vec<i64> = words.map(|word| word.parse().unwrap()).collect();
        let [tid, now_ns, run_ns, queue_ns, voluntary, involuntary] = numbers[..] else {
            panic!("{line:?}");
        };
        Self {
            role,
            tid,
            now_ns,
            run_ns,
            queue_ns,
            voluntary,
            involuntary,
        }
    }
}

/// A recording of the program, the id of its first thread, and what the others told. The session
/// is there as long as the first value.
fn record(options: &[&str]) -> (Scratch, Recording, i64, Vec<Told>) {
    let scratch = Scratch::new();
    let mut running = Record::new(&scratch)
        .options(options)
        .command([workload("states").as_os_str(), scratch.work().as_os_str()])
        .interactive()
        .spawn();
    let main = running.line();
    let main = main.strip_prefix("main ").unwrap().parse().unwrap();
    let told = (0..10).map(|_| Told::parse(&running.line())).collect();
    let recording = running.wait().must_exit(0);
    (scratch, recording, main, told)
}

/// The waits of a thread that began before `now_ns`, with the part before it.
fn waits(recording: &Recording, told: &Told) -> Vec<Row> {
    let Told { tid, now_ns, .. } = told;
    recording.rows(&format!(
        "SELECT reason, state, cause, cause_id, in_syscall,
             CASE WHEN dur_ns IS NOT NULL THEN least(dur_ns, {now_ns} - ts_ns) END AS dur_ns, coalesce(run_queue_ns, 0) AS queue_ns
         FROM waits WHERE tid = {tid} AND ts_ns < {now_ns} ORDER BY ts_ns"
    ))
}

fn sum(rows: &[Row], column: &str, of: impl Fn(&Row) -> bool) -> i64 {
    let numbers = rows.iter().filter(|row| of(row));
    numbers.map(|row| row.int(column).unwrap()).sum()
}

/// As close as two clocks of the kernel are, each of which is read at every switch.
fn close(ours: i64, kernels: i64, switches: usize) -> bool {
    (ours - kernels).abs() <= 500_000 + 20_000 * switches as i64 + kernels / 50
}

/// Recordings until each role agrees once: kernels may run no programs on top of some tasks, so
/// that the end of a wait is not seen. Threads with such waits are passed over. A figure that does
/// not agree is looked at in up to three recordings: the kernel leaves the time of interrupts, and
/// the time when a virtual machine stood still, out of what it counts for a thread.
fn of_each_role(look: impl Fn(&Recording, i64, &Told, &[Row]) -> Result<(), String>) {
    let mut left: Vec<String> = Vec::new();
    let mut differed: Vec<String> = Vec::new();
    for turn in 0..10 {
        let (_scratch, recording, main, threads) = record(&[]);
        recording.complete();
        if turn == 0 {
            left.extend(threads.iter().map(|told| told.role.clone()));
        }
        for told in &threads {
            let waits = waits(&recording, told);
            let seen = waits.iter().all(|row| row.int("dur_ns").is_some());
            if !seen || !left.contains(&told.role) {
                continue;
            }
            match look(&recording, main, told, &waits) {
                Ok(()) => left.retain(|role| *role != told.role),
                Err(why) => differed.push(format!("{}: {why}", told.role)),
            }
        }
        for role in &left {
            let of_role = |why: &&String| why.starts_with(&format!("{role}: "));
            let times = differed.iter().filter(of_role).count();
            assert!(times < 3, "{}", differed.join("\n"));
        }
        if left.is_empty() {
            return;
        }
    }
    panic!("never recorded whole: {left:?}\n{}", differed.join("\n"));
}

#[test]
fn threads_run_or_wait_as_the_kernel_counts() {
    need_root!();
    of_each_role(|recording, _, told, waits| {
        let started = recording.number(&format!(
            "SELECT started_at_ns FROM processes WHERE tid = {}",
            told.tid
        ));
        let ran = told.now_ns - started - sum(waits, "dur_ns", |_| true);
        if !close(ran, told.run_ns, waits.len()) {
            return Err(format!("ran {ran} ns, by the kernel {}", told.run_ns));
        }
        let is_cpu = |row: &Row| row.text("reason") == Some("cpu");
        let queued = sum(waits, "dur_ns", is_cpu) + sum(waits, "queue_ns", |row| !is_cpu(row));
        if !close(queued, told.queue_ns, waits.len()) {
            return Err(format!(
                "queued {queued} ns, by the kernel {}",
                told.queue_ns
            ));
        }
        let who = format!("{}: {waits:?}", told.role);
        // Before it ran for the first time it was no switch that it waited.
        let (preempted, slept): (Vec<_>, Vec<_>) = waits.iter().partition(|row| is_cpu(row));
        // The files of the kernel are read a moment later.
        let counted = |seen: usize, kernels: i64| (kernels - 2..=kernels).contains(&(seen as i64));
        assert!(
            counted(slept.len(), told.voluntary),
            "{} {who}",
            told.voluntary
        );
        assert!(
            counted(preempted.len() - 1, told.involuntary),
            "{} {who}",
            told.involuntary
        );
        // No two waits overlap, and all are in the thread's life.
        let wrong = recording.number(&format!(
            "SELECT count(*) FROM (
                 SELECT ts_ns + dur_ns > lead(ts_ns) OVER (ORDER BY ts_ns)
                     OR ts_ns < started_at_ns OR ts_ns + dur_ns > ended_at_ns AS wrong
                 FROM waits JOIN processes USING (pid, tid) WHERE tid = {}) WHERE wrong",
            told.tid
        ));
        assert_eq!(wrong, 0, "{who}");
        Ok(())
    });
}

#[test]
fn waits_have_a_reason_and_a_cause() {
    need_root!();
    of_each_role(|recording, main, told, waits| {
        let slept = |row: &Row| row.text("reason") != Some("cpu");
        let all = sum(waits, "dur_ns", slept);
        let other = sum(waits, "dur_ns", |row| row.text("reason") == Some("other"));
        assert!(other * 50 <= all, "{}: {waits:?}", told.role);
        let (reasons, cause): (&[&str], _) = match told.role.as_str() {
            "cpu" => return Ok(()),
            "futex" => (&["futex"], Some(("thread", Some(main)))),
            "pipe" => (&["pipe"], Some(("thread", Some(main)))),
            "socket" => (&["socket"], Some(("thread", Some(main)))),
            "poll" => (&["poll"], Some(("thread", Some(main)))),
            "file_lock" => (&["file_lock"], Some(("thread", Some(main)))),
            "tcp" => (&["socket"], Some(("network", Some(main)))),
            "timer" => (&["timer"], Some(("timer", None))),
            "disk" => (&["disk", "page_cache", "file_system", "lock"], None),
            "child" => (&["child"], None),
            role => panic!("{role}"),
        };
        let has_reason = |row: &Row| reasons.contains(&row.text("reason").unwrap());
        let of_reason = sum(waits, "dur_ns", has_reason);
        assert!(of_reason * 100 >= all * 95, "{}: {waits:?}", told.role);
        if let Some((cause, id)) = cause {
            let caused = |row: &Row| row.text("cause") == Some(cause) && row.int("cause_id") == id;
            let of_cause = sum(waits, "dur_ns", |row| has_reason(row) && caused(row));
            assert!(of_cause * 100 >= of_reason * 90, "{}: {waits:?}", told.role);
        }
        if told.role == "futex" {
            // The futex of one condition has one address, its mutex another.
            let addresses = recording.number(&format!(
                "SELECT count(DISTINCT address) FROM waits
                 WHERE tid = {} AND in_syscall = 'futex' AND address IS NOT NULL",
                told.tid
            ));
            assert!((1..=4).contains(&addresses), "{addresses}");
        }
        Ok(())
    });
}

#[test]
fn only_with_the_layer() {
    need_root!();
    let (_scratch, recording, ..) = record(&["--layers", "syscall"]);
    assert_eq!(recording.number("SELECT count(*) FROM waits"), 0);
    let (_scratch, recording, ..) = record(&["--rows", "tail"]);
    // A fault on memory of no file has no row, and a wait in its course no request.
    let in_fault = "in_syscall IS NULL AND reason IN ('cpu', 'lock', 'page_fault', 'swap')";
    let outside = recording.rows(&format!(
        "SELECT reason, state, in_syscall, cause FROM waits WHERE rid IS NULL AND NOT ({in_fault})"
    ));
    assert!(outside.is_empty(), "{outside:?}");
}
