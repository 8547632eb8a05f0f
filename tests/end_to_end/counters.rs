//! `fathom record --counters`: what perf's counters say of each call, beside what a thread
//! counts of itself with perf events of its own.

use std::collections::HashMap;

use fathom_tests::session::{Row, meta, query, report};
use fathom_tests::tools::run;
use fathom_tests::{Record, Recording, Scratch, need_root, workload};

use crate::kernel::release;

const SOFTWARE: &str = "task-clock,page-faults,context-switches,cpu-migrations";
/// Page faults that the kernel takes on a buffer of so many pages that nobody has touched.
const PAGES: i64 = 64;

/// What the workload's thread counted around calls of one size.
struct Own {
    page_faults: i64,
    switches: i64,
    moves: i64,
    on_cpu_ns: i64,
}

/// By size; and whether the machine has two processors.
fn own(text: &str) -> (HashMap<i64, Own>, bool) {
    let mut lines: Vec<Vec<i64>> = Vec::new();
    for line in text.lines() {
        let numbers = line.split_whitespace().map(|word| word.parse().unwrap());
        lines.push(numbers.collect());
    }
    let two = lines.pop().unwrap() == [1];
    let own = lines.iter().map(|line| {
        let [size, page_faults, switches, moves, on_cpu_ns] = line[..] else {
            panic!("{line:?}");
        };
        let own = Own {
            page_faults,
            switches,
            moves,
            on_cpu_ns,
        };
        (size, own)
    });
    (own.collect(), two)
}

fn record(scratch: &Scratch, options: &[&str], programs: Option<&str>) -> Recording {
    let file = scratch.work().join("file");
    std::fs::write(&file, vec![1; 1 << 20]).unwrap();
    let mut record = Record::new(scratch)
        .options(["--syscalls", "all"])
        .options(options)
        .command([workload("counters").as_os_str(), file.as_os_str()]);
    if let Some(programs) = programs {
        record = record.env("FATHOM_PROGRAMS", programs);
    }
    record.run().must_exit(0)
}

/// The counters of calls of a size, and their number and time, added up.
fn calls(recording: &Recording, size: i64) -> Row {
    let rows = recording.rows(&format!(
        "SELECT count(*) AS calls, count(p.rid) AS counted, sum(dur_ns)::BIGINT AS dur_ns,
             sum(task_clock_ns)::BIGINT AS on_cpu_ns, sum(page_faults)::BIGINT AS page_faults,
             sum(context_switches)::BIGINT AS switches, sum(cpu_migrations)::BIGINT AS moves,
             count(cycles) AS cycles
         FROM syscalls s LEFT JOIN perf_counters p USING (rid)
         WHERE size = {size} AND syscall IN ('read', 'pread64')"
    ));
    rows.into_iter().next().unwrap()
}

#[test]
fn software_counters_are_those_of_the_call() {
    need_root!();
    counters_agree(None);
}

/// The same with the programs for older kernels.
#[test]
fn software_counters_with_older_programs() {
    need_root!();
    for (programs, since) in [("6.2", (6, 2)), ("5.17", (5, 17)), ("5.8", (5, 8))] {
        let x86_only = programs == "5.8" && !cfg!(target_arch = "x86_64");
        if !x86_only && (since..(7, 0)).contains(&release()) {
            counters_agree(Some(programs));
        }
    }
}

/// Calls that were seen from their beginning to their end and have no counters.
fn without(recording: &Recording) -> Vec<Row> {
    recording.rows(
        "SELECT syscall, count(*) AS n FROM syscalls LEFT JOIN perf_counters p USING (rid)
         WHERE p.rid IS NULL AND ret IS NOT NULL GROUP BY ALL",
    )
}

fn counters_agree(programs: Option<&str>) {
    // The programs for 5.8 count on preemption being off, which it is not here: a call may lack
    // its counters now and then, but not in each of three recordings.
    let tries = if programs == Some("5.8") { 3 } else { 1 };
    let (scratch, recording) = (0..tries)
        .map(|_| {
            let scratch = Scratch::new();
            let recording = record(&scratch, &["--counters", SOFTWARE], programs);
            (scratch, recording)
        })
        .find(|(_, recording)| {
            let without = without(recording);
            without.is_empty() || {
                eprintln!("programs {programs:?}: calls without counters: {without:?}");
                false
            }
        })
        .expect("calls without counters");
    let _scratch = scratch;
    recording.complete();
    let (own, two) = own(&recording.text());
    let get = |row: &Row, name: &str| row.int(name).unwrap_or_else(|| panic!("{name}: {row:?}"));

    // Faults in the call, as many as the buffer has pages; none when it was touched before.
    let faulting = calls(&recording, PAGES * 4096);
    assert_eq!(get(&faulting, "calls"), 1, "{faulting:?}");
    assert_eq!(get(&faulting, "page_faults"), PAGES, "{faulting:?}");
    assert_eq!(own[&(PAGES * 4096)].page_faults, PAGES);
    let touched = calls(&recording, 63 * 4096);
    assert_eq!(get(&touched, "page_faults"), 0, "{touched:?}");

    // A loop of cached reads: time on the CPU is the calls' time, but for what they waited for
    // the CPU (the thread's own count does not have that either). Counting begins a little
    // before a call and ends a little behind it.
    let cached = calls(&recording, 60 * 4096);
    let (number, on_cpu) = (get(&cached, "calls"), get(&cached, "on_cpu_ns"));
    assert_eq!((number, get(&cached, "counted")), (4000, 4000));
    let thread = &own[&(60 * 4096)];
    let tolerance = 5_000 * number;
    assert!(on_cpu <= get(&cached, "dur_ns") + tolerance, "{cached:?}");
    assert!(
        on_cpu <= thread.on_cpu_ns + thread.on_cpu_ns / 50,
        "{on_cpu} of {}",
        thread.on_cpu_ns
    );
    assert!(
        on_cpu * 2 >= thread.on_cpu_ns,
        "{on_cpu} of {}",
        thread.on_cpu_ns
    );
    assert!(get(&cached, "switches") <= thread.switches, "{cached:?}");

    // A call that sleeps while another thread keeps its CPU busy, and faults there.
    let slept = calls(&recording, 21);
    assert_eq!(get(&slept, "calls"), 1, "{slept:?}");
    let dur = get(&slept, "dur_ns");
    assert!(dur > 50_000_000, "it did not sleep: {slept:?}");
    assert_eq!(get(&slept, "page_faults"), 0, "others' faults: {slept:?}");
    assert!(
        get(&slept, "on_cpu_ns") * 20 < dur,
        "others' time: {slept:?}"
    );
    let switches = get(&slept, "switches");
    assert!(
        (1..=own[&21].switches).contains(&switches),
        "{switches} of {}",
        own[&21].switches
    );
    // Nothing moved it; the next one was.
    assert_eq!(get(&slept, "moves"), 0, "{slept:?}");
    let moved = calls(&recording, 22);
    if two {
        assert_eq!(get(&moved, "moves"), 1, "{moved:?}");
        assert_eq!(own[&22].moves, 1);
    }
    assert_eq!(get(&moved, "page_faults"), 0, "{moved:?}");

    // Nothing has a row but calls and faults outside of recorded calls.
    let faults = recording.rows(
        "SELECT count(*) AS n, count(*) FILTER (p.page_faults IS DISTINCT FROM 1) AS wrong
         FROM faults JOIN perf_counters p USING (rid)",
    );
    if recording.number("SELECT count(*) FROM faults WHERE dur_ns IS NOT NULL") > 0 {
        assert!(get(&faults[0], "n") > 0, "{faults:?}");
        assert_eq!(faults[0].int("wrong"), Some(0), "{faults:?}");
    }
    let in_calls = recording.number(
        "SELECT count(*) FROM perf_counters p WHERE rid NOT IN (SELECT rid FROM syscalls
         UNION ALL SELECT rid FROM faults)",
    );
    assert_eq!(in_calls, 0);
    let meta = meta(&recording.session);
    let rows = recording.number("SELECT count(*) FROM perf_counters");
    assert_eq!(meta["totals"]["layers"]["counters"], rows);
    assert_eq!(
        recording.number("SELECT count(cycles) FROM perf_counters"),
        0
    );

    // What the view adds up.
    let sums = recording.rows(
        "SELECT sum(task_clock_ns) - (SELECT sum(task_clock_ns) FROM perf_counters) AS ns,
             sum(page_faults) - (SELECT sum(page_faults) FROM perf_counters) AS faults,
             sum(requests) - (SELECT count(*) FROM perf_counters) AS requests
         FROM by_perf_counters",
    );
    for name in ["ns", "faults", "requests"] {
        assert_eq!(sums[0].int(name), Some(0), "{sums:?}");
    }
    let report = report(&recording.session);
    let by_call = report["layers"]["counters"].as_array().unwrap();
    assert!(
        by_call.iter().any(|c| c["syscall"] == "pread64"),
        "{report}"
    );
}

/// Without the option there is nothing of it; with words that name no counter, or with too
/// many, nothing is recorded.
#[test]
fn counters_are_asked_for() {
    need_root!();
    let scratch = Scratch::new();
    let recording = record(&scratch, &[], None);
    recording.complete();
    assert_eq!(recording.number("SELECT count(*) FROM perf_counters"), 0);
    assert_eq!(recording.number("SELECT count(*) FROM by_perf_counters"), 0);
    for (list, said) in [
        (
            "cycle",
            "no counter named \"cycle\": use cycles, instructions",
        ),
        (
            "cycles,instructions,cache-misses,cache-references,branch-misses,cs",
            "cannot read 6 counters at once",
        ),
    ] {
        let session = scratch.session("refused");
        let output = run([
            "record".as_ref(),
            "--counters".as_ref(),
            list.as_ref(),
            "-o".as_ref(),
            session.as_os_str(),
            "--".as_ref(),
            "true".as_ref(),
        ]);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(said), "{text}");
        assert!(!session.exists());
    }
}

/// Counters of the processor, where there are some; elsewhere a clear word, and the recording
/// goes on with the others.
#[test]
fn counters_of_the_processor_or_a_word_about_them() {
    need_root!();
    let scratch = Scratch::new();
    let recording = record(
        &scratch,
        &["--counters", "instructions,cycles", "--counters", "cs"],
        None,
    );
    recording.complete();
    let meta = meta(&recording.session);
    let asked = meta["perf_counters"].as_array().unwrap();
    let names: Vec<_> = asked.iter().filter_map(|c| c["name"].as_str()).collect();
    assert_eq!(names, ["cycles", "instructions", "context-switches"]);
    let count =
        |column: &str| recording.number(&format!("SELECT count({column}) FROM perf_counters"));
    let rows = count("*");
    // The kernel leaves out the program that sees a request come back to a CPU while another
    // recorder was preempted in a map there: about one request in 100,000 has no numbers then.
    let unknown = rows - count("context_switches");
    assert!(rows > 0 && unknown <= 1, "{unknown} of {rows}");
    let is_counted = ["cycles", "instructions"].map(|name| {
        let counter = asked.iter().find(|c| c["name"] == name).unwrap();
        if counter["counted"] == true {
            // Those that others use, too, may be there in turns only.
            let known = format!("SELECT count(*) FROM perf_counters WHERE {name} > 0");
            assert!(recording.number(&known) > 0, "{name}");
            return true;
        }
        assert_eq!(count(name), 0);
        let note = counter["note"].as_str().unwrap();
        assert!(!note.is_empty());
        let line = recording
            .stderr
            .lines()
            .find(|line| line.contains("--counters ") && line.contains(name));
        let line = line.unwrap_or_else(|| panic!("{name}: {}", recording.stderr));
        assert!(
            line.ends_with(&format!(": not recorded: {note}")),
            "{line:?}"
        );
        let problems = report(&recording.session)["problems"].to_string();
        let problem = format!("counter {name} is not recorded");
        assert!(problems.contains(&problem), "{problems}");
        false
    });
    let cpi = recording.rows("SELECT cpi FROM by_perf_counters WHERE syscall = 'pread64'");
    let cpi = cpi[0].value("cpi").as_f64();
    eprintln!(
        "counters of the processor (cycles, instructions): {is_counted:?}, {cpi:?} cycles per instruction"
    );
    match is_counted {
        // Of 4,000 copies of 240 KiB: some byte must have been moved by an instruction.
        [true, true] => assert!((0.05..500.0).contains(&cpi.unwrap()), "{cpi:?}"),
        _ => assert_eq!(cpi, None),
    }
}

/// Of each call that is stored the counters are stored, too, or counted as lost; a raw capture
/// has them all.
#[test]
fn counters_that_found_no_room_are_counted() {
    need_root!();
    let scratch = Scratch::new();
    let raw = scratch.work().join("raw");
    let running = Record::new(&scratch)
        .options(["--ring-mib", "1", "--counters", "task-clock,cs"])
        .options(["--raw".as_ref(), raw.as_os_str()])
        .command([
            workload("flood").as_os_str(),
            scratch.work().join("file").as_os_str(),
        ])
        .command(["100000"])
        .interactive()
        .spawn();
    let recording = running.flooded().must_exit(0);
    assert!(recording.balanced().lost > 0);
    let numbers = "SELECT (SELECT count(*) FROM syscalls WHERE syscall = 'preadv') AS calls,
         (SELECT count(*) FROM perf_counters JOIN syscalls USING (rid)
          WHERE syscall = 'preadv') AS counted,
         (SELECT count(*) FROM perf_counters) AS rows,
         (SELECT coalesce(sum(count), 0)::BIGINT FROM losses
          WHERE syscall = 'perf_counters' AND layer = 'cpu') AS lost,
         (SELECT sum(task_clock_ns)::BIGINT FROM perf_counters) AS ns";
    let here = recording.rows(numbers);
    let get = |name: &str| here[0].int(name).unwrap();
    assert!(get("counted") > 0 && get("counted") <= get("calls"));
    // Others than the flood's calls lose theirs at most where it is full as well.
    assert!(get("lost") >= get("calls") - get("counted"), "{here:?}");
    let meta = meta(&recording.session);
    assert_eq!(meta["totals"]["layers"]["counters"], get("rows"));
    let replayed = scratch.session("replayed");
    let output = run([
        "replay".as_ref(),
        raw.as_os_str(),
        "-o".as_ref(),
        replayed.as_os_str(),
    ]);
    assert!(output.status.success());
    let there = query(&replayed, numbers);
    assert_eq!(format!("{here:?}"), format!("{there:?}"));
}
