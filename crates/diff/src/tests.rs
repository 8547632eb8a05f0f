//! Comparisons of made-up sessions.

mod times;

use fathom_diagnose::{Group, Severity};
use fathom_model::layers::{Layer, LayerSet};

use crate::profile::*;
use crate::result::{Diff, Metric, Outcome, Status, Verdict};
use crate::{DiffError, Options, Profile, compare};

/// Calls on files: name, path, number, bytes per call, nanoseconds per call.
type Calls<'a> = &'a [(&'a str, &'a str, i64, i64, i64)];

fn session(calls: Calls) -> Profile {
    let operation = |(syscall, path, n, bytes, ns): &(&str, &str, i64, i64, i64)| Operation {
        syscall: (*syscall).to_owned(),
        class: "data".to_owned(),
        path: Some((*path).to_owned()),
        calls: *n,
        bytes: n * bytes,
        asked: n * bytes,
        time_ns: n * ns,
        ..Operation::default()
    };
    let mut profile = Profile {
        command: vec!["program".to_owned()],
        duration_ns: 1_000_000_000,
        operations: calls.iter().map(operation).collect(),
        findings: Some(Vec::new()),
        ..Profile::default()
    };
    profile.gaps.layers = LayerSet::chosen();
    for (syscall, _, n, _, ns) in calls {
        let bucket = ((*ns as f64).log2() * f64::from(STEPS)) as i32;
        let each = (*n as u64).div_ceil(BLOCKS as u64);
        let block = Block {
            calls: each,
            sum_ns: each as f64 * *ns as f64,
            hist: vec![(bucket, each)],
        };
        profile.latencies.insert(
            (*syscall).to_owned(),
            Latency {
                p50_ns: Some(*ns),
                p90_ns: Some(*ns),
                p99_ns: Some(*ns),
                max_ns: Some(*ns),
                blocks: vec![block; BLOCKS],
            },
        );
    }
    profile
}

const BASE: Calls<'static> = &[
    ("read", "/data/in", 1000, 4096, 2_000),
    ("write", "/data/out", 500, 4096, 5_000),
    ("openat", "/data/in", 1, 0, 9_000),
    ("openat", "/data/out", 1, 0, 9_000),
    ("close", "/data/in", 1, 0, 500),
    ("close", "/data/out", 1, 0, 500),
];

fn with(more: Calls) -> Profile {
    session(&[BASE, more].concat())
}

fn diff(before: &[Profile], after: &[Profile]) -> Diff {
    compare(before, after, &Options::default()).unwrap()
}

fn total(diff: &Diff, metric: Metric) -> Verdict {
    diff.totals
        .iter()
        .find(|f| f.metric == metric)
        .unwrap()
        .verdict
}

#[test]
fn equal_sessions_do_not_differ() {
    let diff = diff(&[session(BASE)], &[session(BASE)]);
    assert_eq!(diff.outcome, Outcome::WithinNoise);
    assert!(!diff.guard.failed && diff.changes.is_empty() && diff.notes.is_empty());
    assert!(diff.method.repeats && diff.method.equal == 6);
    assert_eq!(diff.tables.operations.len(), 6);
    assert!(matches!(
        compare(&[], &[session(BASE)], &Options::default()),
        Err(DiffError::NoSession("before"))
    ));
}

#[test]
fn what_is_worse_comes_first_and_fails() {
    let diff = diff(
        &[session(BASE)],
        &[with(&[("fsync", "/data/out", 500, 0, 1_000_000)])],
    );
    assert_eq!(diff.outcome, Outcome::Worse);
    let first = &diff.changes[0];
    assert_eq!(first.subject, "fsync on /data/out");
    assert!(first.fails && first.metric == Metric::Calls && first.change.is_none());
    let row = diff
        .tables
        .syscalls
        .iter()
        .find(|r| r.name == "fsync")
        .unwrap();
    assert_eq!(row.status, Status::New);
    assert_eq!(row.figure(Metric::Time).unwrap().verdict, Verdict::Worse);
    assert_eq!(
        diff.headline.text,
        "After spent 500 ms more in I/O calls, in about the same run time; fsync on /data/out took 500 ms more."
    );
    // The table of calls is ordered by weight.
    assert_eq!(diff.tables.syscalls[0].name, "fsync");
}

#[test]
fn too_little_is_not_too_much() {
    let more = with(&[("read", "/data/in2", 5, 10, 200_000)]);
    let fails = |percent: f64, after: &Profile| {
        let options = Options {
            fail_above_percent: percent,
            guards: Some(vec![Metric::Calls]),
        };
        compare(&[session(BASE)], std::slice::from_ref(after), &options)
            .unwrap()
            .guard
            .failed
    };
    // A new item is beyond any percentage.
    assert!(fails(1000.0, &more));
    // One call more of 1500 is less than a thousandth.
    assert!(!fails(0.0, &with(&[("read", "/data/in2", 1, 10, 200_000)])));
    // Some microseconds of a second are petty for calls that only ask; others count however fast they are.
    assert!(!fails(0.0, &with(&[("ioctl", "/data/in2", 5, 0, 200)])));
    assert!(fails(1000.0, &with(&[("fsync", "/data/in2", 5, 0, 2_000)])));
    let mut calls = BASE.to_vec();
    calls[0].2 = 1200;
    assert!(fails(10.0, &session(&calls)));
    assert!(!fails(30.0, &session(&calls)));
}

#[test]
fn times_need_several_sessions() {
    let mut slow = BASE.to_vec();
    slow[1].4 = 50_000;
    let slow = |extra: i64| {
        let mut calls = slow.clone();
        calls[1].4 += extra;
        session(&calls)
    };
    let fast = |extra: i64| {
        let mut calls = BASE.to_vec();
        calls[1].4 += extra;
        session(&calls)
    };
    let one = diff(&[fast(0)], &[slow(0)]);
    assert_eq!(total(&one, Metric::Time), Verdict::WithinNoise);
    let figure = one
        .totals
        .iter()
        .find(|f| f.metric == Metric::Time)
        .unwrap();
    assert!(figure.why.starts_with("not judged"), "{}", figure.why);
    assert!(!figure.is_judged());
    let row = one.tables.syscalls.iter().find(|row| row.name == "write");
    assert!(row.unwrap().is_open());
    // A user who selects times knows that the machine is quiet.
    let options = Options {
        guards: Some(vec![Metric::Time]),
        ..Options::default()
    };
    let asked = compare(&[fast(0)], &[slow(0)], &options).unwrap();
    assert_eq!(
        (total(&asked, Metric::Time), asked.guard.failed),
        (Verdict::Worse, true)
    );
    let several = diff(
        &[fast(0), fast(300), fast(-200)],
        &[slow(0), slow(3_000), slow(-2_000)],
    );
    assert!(several.guard.metrics.contains(&Metric::P99));
    assert_eq!(several.outcome, Outcome::Worse);
    let change = several
        .changes
        .iter()
        .find(|c| c.metric.is_duration())
        .unwrap();
    assert!(change.fails && change.subject == "write", "{change:?}");
    assert_eq!(
        change.moves,
        [
            "total 10 times as long",
            "median 10 times as long",
            "p99 10 times as long"
        ]
    );
    assert!(several.headline.proven, "{:?}", several.headline);
    assert_eq!(
        several.headline.source.as_deref(),
        Some("write on /data/out")
    );
    assert_eq!(several.totals[0].effect, Some(0.0));
    let noisy = diff(
        &[fast(0), fast(3_000), fast(-2_000)],
        &[fast(500), fast(-1_500), fast(2_500)],
    );
    assert_eq!(noisy.outcome, Outcome::WithinNoise);
}

/// A percentile is not the longest of a few calls.
#[test]
fn percentiles_need_calls_beyond_them() {
    let removed = |ns| with(&[("unlink", "/data/out", 3, 0, ns)]);
    let both = diff(&[removed(4_000_000)], &[removed(400_000_000)]);
    let row = |name: &str| {
        let mut rows = both.tables.syscalls.iter();
        rows.find(|row| row.name == name).unwrap()
    };
    let (few, many) = (row("unlink"), row("read"));
    let p99 = few.figure(Metric::P99).unwrap();
    assert_eq!((p99.before, p99.after), (None, None));
    assert!(few.figure(Metric::P50).unwrap().after.is_some());
    let longest = few.figure(Metric::Longest).unwrap();
    assert_eq!(
        (longest.before, longest.after, longest.verdict),
        (
            Some(4_000_000.0),
            Some(400_000_000.0),
            Verdict::NotComparable
        )
    );
    assert!(many.figure(Metric::Longest).is_none());
    assert!(many.figure(Metric::P99).unwrap().after.is_some());
}

#[test]
fn numbered_files_are_grouped() {
    let before = with(&[
        ("write", "/tmp/tmp.aB3dEf", 3, 10, 100),
        ("write", "/log/1", 2, 10, 100),
    ]);
    let after = with(&[
        ("write", "/tmp/tmp.Zz9yXx", 3, 10, 100),
        ("write", "/log/2", 1, 10, 100),
        ("write", "/log/3", 1, 10, 100),
    ]);
    let diff = diff(&[before], &[after]);
    assert_eq!(diff.outcome, Outcome::WithinNoise, "{:?}", diff.changes);
    let file = |name: &str| diff.tables.files.iter().find(|r| r.name == name).unwrap();
    assert_eq!(file("/tmp/tmp.*").names, Some([1, 1]));
    assert_eq!(file("/log/#").names, Some([1, 2]));
    assert_eq!(file("/log/#").status, Status::Both);
}

#[test]
fn what_a_side_lacks_is_not_comparable() {
    let visit = LayerVisit {
        call: None,
        layer: "device".to_owned(),
        name: "vda".to_owned(),
        visits: 10,
        self_ns: 1000,
    };
    let mut before = session(BASE);
    before.layers.push(visit);
    let mut after = session(BASE);
    after.gaps.layers = after.gaps.layers.without(Layer::Block);
    after.gaps.no_durations = true;
    let both = diff(&[before.clone()], &[after]);
    let why = "layer block was not recorded after";
    assert!(
        both.notes.iter().any(|n| n.contains(why)),
        "{:?}",
        both.notes
    );
    assert_eq!(
        both.tables.layers[0].figures[0].verdict,
        Verdict::NotComparable
    );
    assert_eq!(both.tables.layers[0].figures[0].why, why);
    assert_eq!(total(&both, Metric::Time), Verdict::NotComparable);
    assert_eq!(total(&both, Metric::Calls), Verdict::Same);
    // Calls that were dropped again: counts say nothing.
    let mut ring = with(&[("fsync", "/data/out", 500, 0, 1)]);
    ring.gaps.gone = 7;
    let both = diff(&[before.clone()], &[ring]);
    assert_eq!(
        (both.outcome, total(&both, Metric::Calls)),
        (Outcome::WithinNoise, Verdict::NotComparable)
    );
    // Other calls were asked for.
    let mut all = with(&[("fsync", "/data/out", 500, 0, 1)]);
    all.gaps.selection = vec!["all".to_owned()];
    let both = diff(&[before.clone()], &[all]);
    let row = both
        .tables
        .syscalls
        .iter()
        .find(|r| r.name == "fsync")
        .unwrap();
    assert_eq!(row.figures[0].verdict, Verdict::NotComparable);
    // Lost calls count, their percentiles are not known.
    let mut lossy = session(BASE);
    lossy.gaps.lost = 3;
    let both = diff(&[before], &[lossy]);
    assert_eq!(total(&both, Metric::Calls), Verdict::Same);
    assert_eq!(
        both.tables.syscalls[0].figure(Metric::P99).unwrap().verdict,
        Verdict::NotComparable
    );
}

/// A recording that counts most of the same calls: without paths, and without the bytes asked for.
#[test]
fn counted_calls_are_compared_by_name() {
    let mut full = session(BASE);
    full.layers.push(LayerVisit {
        call: None,
        layer: "device".to_owned(),
        name: "vda".to_owned(),
        visits: 10,
        self_ns: 1000,
    });
    let mut counted = session(BASE);
    counted.gaps.counted = 1_000;
    for operation in &mut counted.operations {
        operation.path = None;
        operation.asked = 0;
    }
    counted.findings = Some(vec![FoundIn {
        rule: "a-rule",
        group: Group::Correctness,
        severity: Severity::High,
        cost_ns: None,
        comm: Some("program".to_owned()),
        path: Some("/data/out".to_owned()),
        title: "it does".to_owned(),
    }]);
    let both = diff(&[full], &[counted]);
    assert_eq!(both.outcome, Outcome::WithinNoise, "{:?}", both.changes);
    assert_eq!(total(&both, Metric::Calls), Verdict::Same);
    assert_eq!(total(&both, Metric::AskedBytes), Verdict::NotComparable);
    assert_eq!(both.findings[0].verdict, Verdict::NotComparable);
    assert_eq!(
        both.tables.layers[0].figures[0].verdict,
        Verdict::NotComparable
    );
    assert!(both.tables.files.is_empty());
    for said in ["1,000 calls of  (after) were counted", "counted after only"] {
        assert!(
            both.notes.iter().any(|n| n.contains(said)),
            "{:?}",
            both.notes
        );
    }
}

#[test]
fn recordings_without_an_end_are_compared_by_second() {
    let open = |seconds: i64, reads: i64| {
        let mut profile = session(&[
            ("read", "/d", reads, 100, 1000),
            ("stat", "/d", seconds * 50, 0, 500),
            ("openat", "/d", seconds * 30, 0, 500),
            ("close", "/d", seconds * 20, 0, 500),
        ]);
        profile.gaps.open_ended = true;
        profile.duration_ns = seconds * 1_000_000_000;
        profile
    };
    let same = diff(&[open(10, 10_000)], &[open(20, 20_300)]);
    assert!(same.method.per_second);
    assert_eq!(same.totals[0].before, Some(1100.0));
    assert_eq!(same.outcome, Outcome::WithinNoise);
    let more = diff(&[open(10, 10_000)], &[open(20, 80_000)]);
    assert_eq!(more.outcome, Outcome::Worse);
}

#[test]
fn findings_that_come_and_go() {
    let found = |group: Group| FoundIn {
        rule: "a-rule",
        group,
        severity: Severity::High,
        cost_ns: (group == Group::Performance).then_some(5_000_000),
        comm: Some("program".to_owned()),
        path: Some("/data/out".to_owned()),
        title: "it does".to_owned(),
    };
    let having = |group: Group, mut profile: Profile| {
        profile.findings = Some(vec![found(group)]);
        profile
    };
    let base = || session(BASE);
    let moved = || with(&[("fsync", "/data/out", 500, 0, 1_000_000)]);
    let verdict = |before: &[Profile], after: &[Profile]| {
        let diff = diff(before, after);
        let finding = &diff.findings[0];
        (finding.status, finding.verdict)
    };
    let (data, time) = (Group::Correctness, Group::Performance);
    // Data at stake counts, time only if the program does something else.
    assert_eq!(
        verdict(&[base()], &[having(data, base())]),
        (Status::New, Verdict::Worse)
    );
    assert_eq!(
        verdict(&[having(data, base())], &[base()]),
        (Status::Gone, Verdict::Better)
    );
    assert_eq!(
        verdict(&[base()], &[having(time, base())]),
        (Status::New, Verdict::WithinNoise)
    );
    assert_eq!(
        verdict(&[base()], &[having(time, moved())]),
        (Status::New, Verdict::Worse)
    );
    assert_eq!(
        verdict(&[having(time, base())], &[having(time, base())]),
        (Status::Both, Verdict::Same)
    );
    // Of several sessions all must have it.
    let some = [base(), having(time, base()), having(time, base())];
    let all = [
        having(time, base()),
        having(time, base()),
        having(time, base()),
    ];
    let none = [base(), base(), base()];
    assert_eq!(verdict(&none, &some), (Status::New, Verdict::WithinNoise));
    assert_eq!(verdict(&none, &all), (Status::New, Verdict::Worse));
    let first = diff(&[base()], &[having(data, moved())]).changes.remove(0);
    assert_eq!((first.metric, first.fails), (Metric::Findings, true));
}

#[test]
fn a_benign_error_more_is_noise() {
    let failing = |failures: &[(&str, &str, i64)]| {
        let mut profile = session(BASE);
        for (syscall, errno, calls) in failures {
            profile.errors.push(Failure {
                syscall: (*syscall).to_owned(),
                errno: (*errno).to_owned(),
                calls: *calls,
            });
            profile.operations[0].errors += calls;
        }
        profile
    };
    let base = || failing(&[("ioctl", "ENOTTY", 8), ("openat", "ENOENT", 900)]);
    let outcome = |after: &[(&str, &str, i64)]| {
        let diff = diff(&[base()], &[failing(after)]);
        let fails = diff.changes.iter().filter(|c| c.fails);
        (diff.outcome, fails.map(|c| c.subject.clone()).collect())
    };
    let nothing = Vec::<String>::new;
    assert_eq!(
        outcome(&[("ioctl", "ENOTTY", 9), ("openat", "ENOENT", 901)]),
        (Outcome::WithinNoise, nothing())
    );
    // Many more lookups are reported, but are not a fault.
    assert_eq!(
        outcome(&[("ioctl", "ENOTTY", 8), ("openat", "ENOENT", 9000)]),
        (Outcome::Changed, nothing())
    );
    // One fault is one too many, even among many other errors.
    let one = [
        ("ioctl", "ENOTTY", 8),
        ("openat", "ENOENT", 9000),
        ("write", "ENOSPC", 1),
    ];
    assert_eq!(
        outcome(&one),
        (Outcome::Worse, vec!["write failing with ENOSPC".to_owned()])
    );
    // Of others some are.
    let other = |n| {
        [
            ("ioctl", "ENOTTY", 8),
            ("openat", "ENOENT", 900),
            ("read", "EBADF", n),
        ]
    };
    assert_eq!(outcome(&other(2)), (Outcome::WithinNoise, nothing()));
    assert_eq!(
        outcome(&other(40)),
        (Outcome::Worse, vec!["read failing with EBADF".to_owned()])
    );
}

/// A scan that went from out of order to in order, with as many calls.
#[test]
fn another_order_of_as_many_calls() {
    let scan = |rule: &'static str, cost_ns: i64| {
        let mut profile = session(BASE);
        profile.findings = Some(vec![FoundIn {
            rule,
            group: Group::Performance,
            severity: Severity::High,
            cost_ns: Some(cost_ns),
            comm: Some("program".to_owned()),
            path: Some("/data/in".to_owned()),
            title: "its reads jump".to_owned(),
        }]);
        profile
    };
    let outcome = |rule, cost_ns| {
        let there = [scan(rule, cost_ns)];
        let none = [session(BASE)];
        [diff(&none, &there), diff(&there, &none)].map(|d| d.outcome)
    };
    assert_eq!(
        outcome("scan-out-of-order", 500_000_000),
        [Outcome::Worse, Outcome::Changed]
    );
    // As little may come from times, as may what is about nothing else.
    let noise = [Outcome::WithinNoise; 2];
    assert_eq!(outcome("scan-out-of-order", 15_000_000), noise);
    assert_eq!(outcome("thread-interference", 500_000_000), noise);
    // Its impact is larger than the impact of the failing ones.
    let mut worse = with(&[("fsync", "/data/out", 500, 0, 1_000_000)]);
    worse.findings = Some(Vec::new());
    let diff = diff(&[scan("scan-out-of-order", 600_000_000)], &[worse]);
    assert_eq!(diff.outcome, Outcome::Worse);
    assert_eq!(
        (diff.changes[0].metric, diff.changes[0].verdict),
        (Metric::Findings, Verdict::Better)
    );
    assert!(diff.changes[1].fails);
}

/// A recreated data directory: equal activity on files with other numbers.
#[test]
fn a_data_directory_made_anew_is_within_noise() {
    let write = |path: &'static str, n: i64| ("pwrite64", path, n, 8192, 2_000);
    let before = with(&[
        write("/srv/db.aB3dEf/postgres/base/5/16396", 700),
        write("/srv/db.aB3dEf/postgres/base/5/16399", 300),
        write(
            "/srv/db.aB3dEf/postgres/pg_wal/000000010000000000000009",
            400,
        ),
        write(
            "/srv/db.aB3dEf/postgres/pg_wal/00000001000000000000000A",
            200,
        ),
    ]);
    let after = with(&[
        write("/srv/db.Zz9yXx/postgres/base/5/16396", 300),
        write("/srv/db.Zz9yXx/postgres/base/5/16404", 700),
        write(
            "/srv/db.Zz9yXx/postgres/pg_wal/00000001000000000000000A",
            350,
        ),
        write(
            "/srv/db.Zz9yXx/postgres/pg_wal/00000001000000000000000B",
            250,
        ),
    ]);
    let diff = diff(&[before], &[after]);
    assert_eq!(diff.outcome, Outcome::WithinNoise, "{:?}", diff.changes);
    let names = diff.tables.files.iter().map(|row| row.name.as_str());
    let data: Vec<&str> = names.filter(|name| name.starts_with("/srv")).collect();
    assert!(
        data.contains(&"/srv/db.*/postgres/base/5/#")
            && data.contains(&"/srv/db.*/postgres/pg_wal/*"),
        "{data:?}"
    );
}
