use super::history::{Life, Period, Scope, Sums, Wait, walk};

const DISK: u32 = 7;

fn life(tid: i32, from: i64, until: i64) -> Life {
    Life {
        tid,
        from,
        until,
        known_from: from,
        has_waits: true,
        goes_on: true,
    }
}

fn wait(tid: i32, begin: i64, dur: i64, queue: i64) -> Wait {
    Wait {
        tid,
        begin,
        dur: (dur >= 0).then_some(dur),
        queue,
        reason: DISK,
    }
}

fn scope(from: i64, to: i64) -> Scope {
    Scope {
        from,
        to,
        all_periods: true,
        complete_from: 0,
    }
}

fn told(
    lives: &[Life],
    waits: &[Wait],
    scope: Scope,
) -> Vec<(i64, i64, &'static str, Option<u32>)> {
    let mut found: Vec<Period> = Vec::new();
    walk(lives, waits, scope, |period| found.push(period));
    let short = |p: &Period| (p.from, p.until, p.state, p.reason);
    found.iter().map(short).collect()
}

#[test]
fn a_life_has_no_gaps() {
    let waits = [
        wait(1, 20, 30, 5),
        wait(1, 60, 10, 0),
        wait(1, 80, -1, 0),
        wait(1, 90, 5, 0),
    ];
    let mut own = life(1, 10, 100);
    own.known_from = 15;
    let all = [
        (10, 15, "unknown", Some(1)),
        (15, 20, "running", None),
        (20, 45, "blocked", Some(DISK)),
        (45, 50, "runnable", Some(0)),
        (50, 60, "running", None),
        (60, 70, "blocked", Some(DISK)),
        (70, 80, "running", None),
        (80, 90, "unknown", Some(2)),
        (90, 95, "blocked", Some(DISK)),
        (95, 100, "running", None),
    ];
    assert_eq!(told(&[own], &waits, scope(0, 200)), all);
    // Any window has what is in it of the same periods.
    for from in 0..110 {
        for to in from + 1..111 {
            let clipped: Vec<_> = all
                .iter()
                .map(|p| (p.0.max(from), p.1.min(to), p.2, p.3))
                .filter(|p| p.0 < p.1)
                .collect();
            assert_eq!(
                told(&[own], &waits, scope(from, to)),
                clipped,
                "{from} {to}"
            );
        }
    }
}

#[test]
fn what_is_not_known_is_said() {
    let waits = [wait(1, 20, 10, 0)];
    let mut silent = life(1, 0, 100);
    silent.has_waits = false;
    assert_eq!(
        told(&[silent], &[], scope(0, 50)),
        [(0, 50, "unknown", Some(3))]
    );
    let mut requests_only = scope(0, 50);
    requests_only.all_periods = false;
    let unknown = |from, until, why| (from, until, "unknown", Some(why));
    let blocked = (20, 30, "blocked", Some(DISK));
    let own = life(1, 0, 100);
    assert_eq!(
        told(&[own], &waits, requests_only),
        [unknown(0, 20, 4), blocked, unknown(30, 50, 4)]
    );
    let mut newest = own;
    newest.goes_on = false;
    assert_eq!(
        told(&[newest], &waits, scope(10, 50)),
        [(10, 20, "running", None), blocked, unknown(30, 50, 5)]
    );
    let mut dropped = scope(0, 50);
    dropped.complete_from = 25;
    assert_eq!(
        told(&[own], &waits, dropped),
        [
            unknown(0, 25, 6),
            (25, 30, "blocked", Some(DISK)),
            (30, 50, "running", None)
        ]
    );
}

#[test]
fn waits_that_overlap_count_once() {
    let waits = [wait(1, 10, 30, 0), wait(1, 20, 10, 0), wait(1, 35, 15, 20)];
    let own = [life(1, 0, 60)];
    let told = told(&own, &waits, scope(0, 60));
    assert_eq!(told.iter().map(|p| p.1 - p.0).sum::<i64>(), 60);
    assert!(
        told.windows(2).all(|pair| pair[0].1 == pair[1].0),
        "{told:?}"
    );
}

#[test]
fn sums_have_each_bucket_full() {
    let waits = [wait(1, 20, 30, 5), wait(1, 60, 10, 0), wait(2, 3, 90, 1)];
    let lives = [life(1, 0, 100), life(2, 0, 40)];
    let mut sums = Sums::new(0, 16);
    walk(&lives, &waits, scope(0, 100), |period| sums.add(&period));
    let rows = sums.rows();
    for (tid, end) in [(1, 100), (2, 40)] {
        for bucket in 0..7 {
            let own = rows.iter().filter(|r| r.0 == tid && r.1 == bucket);
            let length = (end - bucket * 16).clamp(0, 16);
            assert_eq!(own.map(|r| r.4).sum::<i64>(), length, "{tid} {bucket}");
        }
    }
}
