//! Walks over rows made by hand.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use proptest::prelude::*;

use super::*;
use crate::rows::Life;

const ALL: (i64, i64) = (i64::MIN, i64::MAX);

fn name(text: &str) -> Option<Name> {
    Some(Name::from(text))
}

/// A wait from, until, woken at, for a reason.
fn wait(from_ns: i64, until_ns: i64, woken_ns: i64, reason: &str) -> Wait {
    Wait {
        from_ns,
        until_ns: Some(until_ns),
        woken_ns: Some(woken_ns),
        reason: name(reason),
        ..Wait::default()
    }
}

fn by_thread(wait: Wait, tid: i64) -> Wait {
    Wait {
        cause: name("thread"),
        cause_id: Some(tid),
        waker_tid: Some(tid),
        waker: name(&format!("t{tid}")),
        ..wait
    }
}

fn by(wait: Wait, cause: &str, id: Option<i64>, waker: &str) -> Wait {
    Wait {
        cause: name(cause),
        cause_id: id,
        waker: name(waker),
        ..wait
    }
}

fn thread(waits: Vec<Wait>) -> Thread {
    let mut thread = Thread::recorded();
    thread.add(waits, &[ALL]);
    thread
}

fn rows(threads: Vec<(i64, Vec<Wait>)>) -> Rows {
    let threads = threads.into_iter();
    Rows {
        threads: threads.map(|(tid, waits)| (tid, thread(waits))).collect(),
        ..Rows::default()
    }
}

/// The path as text: begin, end, thread, state, reason and culprit.
fn path(rows: &Rows, tid: i64, from_ns: i64, until_ns: i64) -> Vec<String> {
    let walk = walk(rows, tid, from_ns, until_ns);
    assert!(
        walk.missing.is_empty() && walk.missing_blocks.is_empty(),
        "{walk:?}"
    );
    adds_up(&walk.segments, from_ns, until_ns);
    let texts = walk.segments.iter().map(|segment| {
        let part = segment.block.as_ref().and_then(|block| block.part);
        let culprit = segment.culprit.as_ref().map(|culprit| {
            let name = culprit.name.as_ref().map_or("?", Name::as_str);
            format!(" {:?} {name}", culprit.kind)
        });
        format!(
            "{}-{} t{} {}{}{}{}",
            segment.ts_ns,
            segment.until_ns(),
            segment.tid,
            segment.state.name(),
            segment
                .reason
                .as_ref()
                .map(|r| format!(" {r}"))
                .unwrap_or_default(),
            culprit.unwrap_or_default(),
            part.map(|part| format!(" {part:?}")).unwrap_or_default(),
        )
    });
    texts.collect()
}

fn adds_up(segments: &[Segment], from_ns: i64, until_ns: i64) {
    let mut at_ns = from_ns;
    for segment in segments {
        assert_eq!(segment.ts_ns, at_ns, "{segment:?}");
        assert!(segment.dur_ns > 0, "{segment:?}");
        at_ns = segment.until_ns();
    }
    assert_eq!(at_ns, until_ns.max(from_ns));
    let totals: i64 = crate::totals(segments)
        .iter()
        .map(|total| total.dur_ns)
        .sum();
    assert_eq!(totals, (until_ns - from_ns).max(0));
}

#[test]
fn a_condition_variable_leads_to_the_thread_that_signals() {
    // 1 waits from 10 to 50; 2 computes, waits for the disk, computes, and signals at 45.
    let rows = rows(vec![
        (1, vec![by_thread(wait(10, 50, 45, "futex"), 2)]),
        (
            2,
            vec![by(
                wait(20, 32, 30, "disk"),
                "interrupt",
                None,
                "softirq:BLOCK",
            )],
        ),
    ]);
    assert_eq!(
        path(&rows, 1, 0, 60),
        [
            "0-10 t1 running",
            "10-20 t2 running",
            "20-30 t2 blocked disk Interrupt softirq:BLOCK",
            "30-32 t2 runnable cpu",
            "32-45 t2 running",
            "45-50 t1 runnable cpu",
            "50-60 t1 running",
        ]
    );
    let because = walk(&rows, 1, 0, 60).segments[1].because.clone().unwrap();
    assert_eq!((because.tid, because.reason), (1, name("futex")));
    let depths: Vec<usize> = walk(&rows, 1, 0, 60)
        .segments
        .iter()
        .map(|s| s.depth)
        .collect();
    assert_eq!(depths, [0, 1, 1, 1, 1, 0, 0]);
}

#[test]
fn a_pipe_and_a_unix_socket_are_followed_over_three_threads() {
    // 1 reads a pipe that 2 fills; 2 receives from a socket what 3 sends.
    let rows = rows(vec![
        (1, vec![by_thread(wait(0, 100, 90, "pipe"), 2)]),
        (2, vec![by_thread(wait(5, 80, 80, "socket"), 3)]),
        (3, vec![]),
    ]);
    assert_eq!(
        path(&rows, 1, 0, 100),
        [
            "0-5 t2 running",
            "5-80 t3 running",
            "80-90 t2 running",
            "90-100 t1 runnable cpu",
        ]
    );
}

/// 1 waits for a message that 2, on another host, had sent at 40 and that came at 70.
#[test]
fn the_time_on_the_network_is_before_the_wake_up() {
    let mut received = by(
        wait(0, 80, 70, "socket"),
        "network",
        Some(2),
        "softirq:NET_RX",
    );
    received.caused_ns = Some(40);
    let mut rows = rows(vec![
        (1, vec![received]),
        (2, vec![wait(50, 60, 55, "disk")]),
    ]);
    let expected = [
        "0-40 t2 running",
        "40-70 t1 blocked socket Network ?",
        "70-80 t1 runnable cpu",
        "80-90 t1 running",
    ];
    assert_eq!(path(&rows, 1, 0, 90), expected);

    // A send that ended after the wake-up, as it does on one machine, or before the wait.
    for (caused_ns, from_ns, expected) in [
        (90, 0, "0-70 t2 running"),
        (-10, 5, "0-70 t1 blocked socket Network ?"),
    ] {
        let mut received = by(
            wait(0, 80, 70, "socket"),
            "network",
            Some(2),
            "softirq:NET_RX",
        );
        received.caused_ns = Some(caused_ns);
        rows.threads.insert(1, thread(vec![received]));
        rows.threads.insert(2, thread(vec![]));
        let first = path(&rows, 1, from_ns, 90).remove(0);
        assert_eq!(first, expected.replace("0-70", &format!("{from_ns}-70")));
    }
}

#[test]
fn a_helper_that_syncs_leads_to_the_device_and_its_queue() {
    let mut rows = rows(vec![
        (1, vec![by_thread(wait(0, 1000, 990, "futex"), 2)]),
        (
            2,
            vec![by(
                wait(100, 960, 950, "disk"),
                "block_request",
                Some(80),
                "softirq:BLOCK",
            )],
        ),
    ]);
    rows.blocks.insert(80, vec![block(80, 500, 940)]);
    assert_eq!(
        path(&rows, 1, 0, 1000),
        [
            "0-100 t2 running",
            "100-500 t2 blocked disk BlockRequest vda Queue",
            "500-940 t2 blocked disk BlockRequest vda Device",
            "940-950 t2 blocked disk BlockRequest vda Completion",
            "950-960 t2 runnable cpu",
            "960-990 t2 running",
            "990-1000 t1 runnable cpu",
        ]
    );
}

fn block(queued_ns: i64, issued_ns: i64, completed_ns: i64) -> Block {
    Block {
        device: name("vda"),
        queued_ns: Some(queued_ns),
        issued_ns: Some(issued_ns),
        completed_ns: Some(completed_ns),
        ..Block::default()
    }
}

#[test]
fn block_requests_are_clipped_to_the_wait() {
    let waits = vec![by(
        wait(100, 200, 200, "disk"),
        "block_request",
        Some(50),
        "softirq:BLOCK",
    )];
    let mut rows = rows(vec![(1, waits)]);
    // Issued before the wait began; completed after the wake-up by a skew of clocks.
    rows.blocks.insert(50, vec![block(50, 60, 205)]);
    let device = "100-200 t1 blocked disk BlockRequest vda Device";
    assert_eq!(path(&rows, 1, 100, 200), [device]);
    // The window cuts it.
    let device = "120-150 t1 blocked disk BlockRequest vda Device";
    assert_eq!(path(&rows, 1, 120, 150), [device]);
    // Queued in the course of the wait: the wait for what was before was not seen.
    rows.blocks.insert(50, vec![block(130, 140, 190)]);
    assert_eq!(
        path(&rows, 1, 100, 200),
        [
            "100-130 t1 unknown before_request",
            "130-140 t1 blocked disk BlockRequest vda Queue",
            "140-190 t1 blocked disk BlockRequest vda Device",
            "190-200 t1 blocked disk BlockRequest vda Completion",
        ]
    );
    // Its row was lost, or its times were.
    rows.blocks.insert(50, vec![]);
    let lost = "100-200 t1 blocked disk BlockRequest ?";
    assert_eq!(path(&rows, 1, 100, 200), [lost]);
}

#[test]
fn of_requests_that_began_together_the_one_that_ended_before_the_wake_up_counts() {
    let waits = vec![by(
        wait(100, 200, 200, "disk"),
        "block_request",
        Some(50),
        "softirq:BLOCK",
    )];
    let mut rows = rows(vec![(1, waits)]);
    rows.blocks
        .insert(50, vec![block(50, 60, 900), block(50, 110, 180)]);
    assert_eq!(
        path(&rows, 1, 100, 200),
        [
            "100-110 t1 blocked disk BlockRequest vda Queue",
            "110-180 t1 blocked disk BlockRequest vda Device",
            "180-200 t1 blocked disk BlockRequest vda Completion",
        ]
    );
}

#[test]
fn a_convoy_at_a_lock_is_walked_from_owner_to_owner() {
    // 1 waits for 2, which waited for 3, which had the lock first.
    let rows = rows(vec![
        (1, vec![by_thread(wait(10, 100, 95, "lock"), 2)]),
        (2, vec![by_thread(wait(5, 60, 55, "lock"), 3)]),
        (3, vec![]),
    ]);
    assert_eq!(
        path(&rows, 1, 0, 100),
        [
            "0-10 t1 running",
            "10-55 t3 running",
            "55-60 t2 runnable cpu",
            "60-95 t2 running",
            "95-100 t1 runnable cpu",
        ]
    );
}

#[test]
fn a_preempted_thread_is_runnable_all_the_time() {
    let mut preempted = wait(20, 70, 0, "cpu");
    preempted.woken_ns = None;
    let rows = rows(vec![(1, vec![preempted])]);
    assert_eq!(
        path(&rows, 1, 10, 80),
        [
            "10-20 t1 running",
            "20-70 t1 runnable cpu",
            "70-80 t1 running"
        ]
    );
}

#[test]
fn a_thread_is_absent_before_its_start_and_after_its_end() {
    let mut rows = rows(vec![(1, vec![wait(20, 30, 30, "timer")])]);
    rows.threads.get_mut(&1).unwrap().set_lives(vec![Life {
        started_ns: 10,
        ended_ns: Some(40),
        ..Life::default()
    }]);
    assert_eq!(
        path(&rows, 1, 0, 50),
        [
            "0-10 t1 absent before_start",
            "10-20 t1 running",
            "20-30 t1 blocked timer Unknown ?",
            "30-40 t1 running",
            "40-50 t1 absent after_end",
        ]
    );
}

#[test]
fn the_time_before_a_waker_existed_is_of_the_thread_that_waited() {
    // 1 waits for its child 2, which started at 30 and ended at 90.
    let mut rows = rows(vec![
        (1, vec![by_thread(wait(20, 100, 95, "child"), 2)]),
        (2, vec![]),
    ]);
    rows.threads.get_mut(&2).unwrap().set_lives(vec![Life {
        started_ns: 30,
        ended_ns: Some(90),
        ..Life::default()
    }]);
    assert_eq!(
        path(&rows, 1, 20, 100),
        [
            "20-30 t1 blocked child Thread t2",
            "30-90 t2 running",
            "90-95 t2 absent after_end",
            "95-100 t1 runnable cpu",
        ]
    );
}

#[test]
fn a_waker_that_the_waiting_thread_woke_ends_the_chain() {
    // 2 woke 1 at 90, and 1 woke 2 at 60 while it was asleep itself: rows that contradict each
    // other do not make the walk go on for ever.
    let rows = rows(vec![
        (1, vec![by_thread(wait(10, 90, 90, "futex"), 2)]),
        (2, vec![by_thread(wait(20, 60, 60, "futex"), 1)]),
    ]);
    assert_eq!(
        path(&rows, 1, 0, 100),
        [
            "0-10 t1 running",
            "10-20 t2 running",
            "20-60 t2 blocked futex Thread t1",
            "60-90 t2 running",
            "90-100 t1 running",
        ]
    );
    let rows = super::tests::rows(vec![(1, vec![by_thread(wait(0, 9, 9, "futex"), 1)])]);
    assert_eq!(path(&rows, 1, 0, 9), ["0-9 t1 blocked futex Thread t1"]);
}

#[test]
fn chains_are_followed_to_a_limit() {
    let waits = (0..40).map(|tid| (tid, vec![by_thread(wait(tid, 100, 100, "lock"), tid + 1)]));
    let rows = rows(waits.collect());
    let path = path(&rows, 0, 0, 100);
    assert_eq!(path.len(), MAX_DEPTH);
    assert_eq!(path[MAX_DEPTH - 1], "15-100 t15 blocked lock Thread t16");
}

#[test]
fn causes_without_a_recorded_thread_are_named() {
    let unrecorded = by_thread(wait(10, 20, 18, "socket"), 77);
    let mut rows = rows(vec![(
        1,
        vec![
            unrecorded,
            by(wait(30, 40, 40, "timer"), "timer", None, "timer"),
            by(
                wait(50, 60, 60, "socket"),
                "network",
                None,
                "softirq:NET_RX",
            ),
            by(wait(70, 80, 80, "signal"), "signal", None, "timer"),
            wait(90, 100, 100, "other"),
        ],
    )]);
    rows.threads.insert(77, Thread::default());
    let blocked: Vec<String> = path(&rows, 1, 0, 100)
        .into_iter()
        .filter(|text| text.contains("blocked"))
        .collect();
    assert_eq!(
        blocked,
        [
            "10-18 t1 blocked socket Thread t77",
            "30-40 t1 blocked timer Timer timer",
            "50-60 t1 blocked socket Network softirq:NET_RX",
            "70-80 t1 blocked signal Signal timer",
            "90-100 t1 blocked other Unknown ?",
        ]
    );
}

#[test]
fn what_was_not_seen_is_unknown() {
    // It left the CPU at 20; its return was not seen, but it left again at 50.
    let mut open = wait(20, 0, 0, "disk");
    (open.until_ns, open.woken_ns) = (None, None);
    let mut rows = rows(vec![(1, vec![open.clone(), wait(50, 60, 60, "pipe")])]);
    assert_eq!(
        path(&rows, 1, 0, 100)[..3],
        [
            "0-20 t1 running",
            "20-50 t1 unknown unseen_return",
            "50-60 t1 blocked pipe Unknown ?"
        ]
    );
    // Nothing was seen before 15 and after 80.
    let thread = rows.threads.get_mut(&1).unwrap();
    (thread.seen_from_ns, thread.seen_until_ns) = (Some(15), Some(80));
    let path_of = path(&rows, 1, 0, 100);
    assert_eq!(path_of[0], "0-15 t1 unknown unseen_start");
    assert_eq!(path_of[5], "80-100 t1 unknown unseen_end");
    // It is the last row.
    let rows = super::tests::rows(vec![(1, vec![open])]);
    assert_eq!(path(&rows, 1, 30, 70), ["30-70 t1 unknown unseen_return"]);
    // Rows that overlap: the end of the first one is wrong.
    let rows = super::tests::rows(vec![(
        1,
        vec![wait(0, 70, 70, "pipe"), wait(50, 60, 60, "disk")],
    )]);
    assert_eq!(
        path(&rows, 1, 0, 80),
        [
            "0-50 t1 unknown unseen_return",
            "50-60 t1 blocked disk Unknown ?",
            "60-80 t1 running",
        ]
    );
}

#[test]
fn rows_that_are_not_in_memory_are_named_and_not_guessed() {
    let mut rows = rows(vec![(1, vec![by_thread(wait(10, 90, 80, "futex"), 2)])]);
    let found = walk(&rows, 1, 0, 100);
    assert_eq!(Vec::from_iter(found.missing), [(2, 10, 80)]);
    rows.threads.insert(2, thread(vec![]));
    let part = rows.threads.get_mut(&2).unwrap();
    *part = Thread::recorded();
    part.add([], &[(0, 50)]);
    let found = walk(&rows, 1, 0, 100);
    assert_eq!(Vec::from_iter(found.missing), [(2, 10, 80)]);
    assert!(
        found
            .segments
            .iter()
            .all(|s| s.tid != 2 || s.state == State::Unknown)
    );
    rows.threads.get_mut(&2).unwrap().add([], &[(50, 80)]);
    assert!(walk(&rows, 1, 0, 100).missing.is_empty());
}

fn any_wait() -> impl Strategy<Value = Wait> {
    let times = (
        0i64..1000,
        prop::option::of(0i64..200),
        prop::option::of(-50i64..250),
    );
    let what = (0usize..5, 0i64..7, 0usize..7);
    (times, what).prop_map(|((from_ns, dur, woken), (reason, id, cause))| Wait {
        from_ns,
        until_ns: dur.map(|dur| from_ns + dur),
        woken_ns: woken.map(|woken| from_ns + woken),
        reason: name(["cpu", "disk", "futex", "pipe", "other"][reason]),
        cause: [
            "thread",
            "thread",
            "thread",
            "block_request",
            "timer",
            "signal",
        ]
        .get(cause)
        .and_then(|cause| name(cause)),
        cause_id: Some(id),
        waker_tid: (cause < 3).then_some(id),
        ..Wait::default()
    })
}

fn any_block() -> impl Strategy<Value = Block> {
    let time = || prop::option::of(0i64..1200);
    (time(), time(), time()).prop_map(|(queued_ns, issued_ns, completed_ns)| Block {
        queued_ns,
        issued_ns,
        completed_ns,
        ..Block::default()
    })
}

proptest! {
    /// Whatever the rows say, the segments are contiguous and add up.
    #[test]
    fn segments_add_up(
        threads in prop::collection::vec(prop::collection::vec(any_wait(), 0..30), 1..6),
        blocks in prop::collection::vec(any_block(), 0..6),
        lives in prop::collection::vec((0i64..1000, prop::option::of(0i64..1500)), 0..6),
        from_ns in -50i64..1000,
        dur_ns in 0i64..1300,
    ) {
        let mut all = rows(threads.into_iter().enumerate().map(|(i, w)| (i as i64, w)).collect());
        for (i, (started_ns, ended_ns)) in lives.into_iter().enumerate() {
            if let Some(thread) = all.threads.get_mut(&(i as i64)) {
                thread.set_lives(vec![Life { started_ns, ended_ns, ..Life::default() }]);
            }
        }
        for (i, block) in blocks.into_iter().enumerate() {
            all.blocks.entry(i as i64 / 2).or_default().push(block);
        }
        let found = walk(&all, 0, from_ns, from_ns + dur_ns);
        adds_up(&found.segments, from_ns, from_ns + dur_ns);
    }
}
