//! The causes that stories name.

use super::*;

/// Without the rows that say where the time went there is no cause, instead of a wrong one.
#[test]
fn damaged_layers_have_no_cause() {
    let dir = tempfile::tempdir().unwrap();
    let files = starved(dir.path());
    let mut meta = meta();
    meta.state = State::Complete;
    let tell = |meta: &SessionMeta| {
        let db = Db::open_parts(meta, |table| files.parts(table), Limits::default()).unwrap();
        why(&db, meta, &Scope::default(), &[]).unwrap()
    };
    let stored = tell(&meta).facts.blocks[0].requests as u64;
    meta.rows.insert("block".to_owned(), stored);
    assert!(text(&tell(&meta)).contains("waiting in the queue of vda"));
    meta.rows.insert("block".to_owned(), 1000);
    let damaged = tell(&meta);
    let end = "waited for: 830 of 1,000 rows of table block are missing.";
    assert!(text(&damaged).ends_with(end), "{}", text(&damaged));
    assert_eq!(damaged.facts.causes.len() + damaged.facts.all.len(), 0);
    // A repair counts what is left.
    meta.rows.clear();
    let lost = "table waits has 3 rows, 5 were stored".to_owned();
    meta.history.repairs.push(lost);
    let repaired = text(&tell(&meta));
    let end = "waited for: rows of table waits are missing.";
    assert!(repaired.ends_with(end), "{repaired}");
}

#[test]
fn waiting_for_a_cpu_is_no_slow_disk() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = Files::new(dir.path());
    files
        .add(&sample::syscalls(
            1,
            &[Call::new("fsync", 0, 1000 * MS).on(1)],
        ))
        .add(&sample::files(&[(1, "/srv/log")]))
        .add(&sample::slices(&[(1, "sched", "io", 10, 900 * MS, 1)]))
        .add(&waits(&[(1, "disk", 900 * MS, 880 * MS, "softirq:BLOCK")]));
    let story = story(&files, &Scope::default());
    assert_eq!(
        story
            .facts
            .causes
            .iter()
            .map(|share| (share.cause.clone(), share.self_ns))
            .collect::<Vec<_>>(),
        [
            (Cause::Cpu, 880 * MS),
            (
                Cause::Kernel {
                    layer: "syscall".into(),
                    asleep_too: false
                },
                100 * MS
            ),
            (
                Cause::Sleep {
                    reason: Some("disk".into()),
                    waker: None
                },
                20 * MS
            ),
        ]
    );
    let text = text(&story);
    assert!(
        text.contains("88 % of that time passed while the thread was ready to run"),
        "{text}"
    );
    assert!(text.contains("Give the program more CPU time"), "{text}");
}

/// No thread is in an operation of io_uring: what was not seen of it is no work of a processor.
#[test]
fn operations_are_not_on_the_cpu() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = Files::new(dir.path());
    let write = Call::new("IORING_OP_WRITE", 0, 1000 * MS);
    files
        .add(&sample::syscalls(1, &[write.on(1).moves(4096)]))
        .add(&sample::files(&[(1, "/srv/log")]))
        .add(&sample::slices(&[(1, "device", "vda", 10, 100 * MS, 1)]));
    let story = story_in_portions(&files, &Scope::default());
    let causes = story.facts.causes.iter();
    let causes: Vec<_> = causes
        .map(|share| (share.cause.clone(), share.self_ns))
        .collect();
    let device = "vda".to_owned();
    assert_eq!(
        causes,
        [
            (Cause::Unseen, 900 * MS),
            (Cause::Device { device }, 100 * MS)
        ]
    );
    let text = text(&story);
    assert!(text.contains("between submission and completion"), "{text}");
    assert!(!text.contains("fewer and larger calls"), "{text}");
}

/// A thread sleeps while a server of FUSE has its request: the time is the server's, not a lock's.
/// Sleep outside of the request, and the wait for a processor after the answer, are not.
#[test]
fn sleep_in_a_request_to_a_fuse_server_is_the_servers() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = Files::new(dir.path());
    let mut strings = StringTable::new();
    let mut slices = SliceRows::default();
    for (layer, name, at_ns, dur_ns, self_ns, depth) in [
        ("fuse", "FUSE_READ", 100 * MS, 710 * MS, 710 * MS, 1),
        ("sched", "interruptible", 110 * MS, 700 * MS, 0, 2),
        ("sched", "run queue", 810 * MS, 70 * MS, 70 * MS, 2),
        ("sched", "interruptible", 910 * MS, 50 * MS, 50 * MS, 1),
    ] {
        slices.push(SliceRow {
            rid: 1,
            layer: strings.intern(layer.as_bytes()),
            name: strings.intern(name.as_bytes()),
            ts_ns: START + at_ns,
            dur_ns,
            self_ns,
            depth,
        });
    }
    let mut of_threads = WaitRows::default();
    let mut wakers = StringTable::new();
    for (at_ns, dur_ns, run_queue_ns, waker) in [
        (110 * MS, 770 * MS, 70 * MS, "sshfs"),
        (910 * MS, 50 * MS, 0, "neighbour"),
    ] {
        of_threads.push(WaitRow {
            rid: 1,
            ts_ns: START + at_ns,
            dur_ns,
            pid: 100,
            tid: 100,
            reason: wakers.intern(b"file_system"),
            run_queue_ns,
            waker: wakers.intern(waker.as_bytes()),
            ..Default::default()
        });
    }
    files
        .add(&sample::syscalls(
            1,
            &[Call::new("read", 0, 1000 * MS).on(1).moves(4096)],
        ))
        .add(&sample::files(&[(1, "/srv/log")]))
        .add(&slices.into_batch(strings))
        .add(&of_threads.into_batch(wakers));
    let story = story_in_portions(&files, &Scope::default());
    let causes = story.facts.causes.iter();
    let causes: Vec<_> = causes
        .map(|share| (share.cause.clone(), share.self_ns))
        .collect();
    let (layer, server) = ("syscall".to_owned(), "fuse".to_owned());
    let (reason, waker) = (Some("file_system".to_owned()), Some("neighbour".to_owned()));
    let kernel = Cause::Kernel {
        layer,
        asleep_too: false,
    };
    assert_eq!(
        causes,
        [
            (Cause::Server { layer: server }, 710 * MS),
            (kernel, 170 * MS),
            (Cause::Cpu, 70 * MS),
            (Cause::Sleep { reason, waker }, 50 * MS),
        ]
    );
    let text = text(&story);
    assert!(
        text.contains("71 % of that time passed in the server of a FUSE"),
        "{text}"
    );
}

/// The interrupt that ends a wait for a socket is not what it waits for. Waits for the device are in
/// the time of the device.
#[test]
fn sleep_says_what_it_waits_for() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = Files::new(dir.path());
    let slices = [
        (1, "sched", "interruptible", 100 * MS, 300 * MS, 1),
        (1, "device", "vda", 450 * MS, 300 * MS, 1),
        (1, "sched", "interruptible", 870 * MS, 100 * MS, 1),
    ];
    let mut of_threads = WaitRows::default();
    let mut strings = StringTable::new();
    for (at_ns, dur_ns, reason, cause) in [
        (100 * MS, 300 * MS, "socket", "network"),
        (450 * MS, 300 * MS, "disk", "block_request"),
        (870 * MS, 100 * MS, "futex", "thread"),
    ] {
        of_threads.push(WaitRow {
            rid: 1,
            ts_ns: START + at_ns,
            dur_ns,
            pid: 100,
            tid: 100,
            reason: strings.intern(reason.as_bytes()),
            cause: strings.intern(cause.as_bytes()),
            waker: strings.intern(b"softirq:NET_RX"),
            ..Default::default()
        });
    }
    files
        .add(&sample::syscalls(
            1,
            &[Call::new("recvfrom", 0, 1000 * MS).on(1).moves(4)],
        ))
        .add(&sample::files(&[(1, "socket:[1]")]))
        .add(&sample::slices(&slices))
        .add(&of_threads.into_batch(strings));
    let story = story(
        &files,
        &Scope {
            request: Some(1),
            ..Scope::default()
        },
    );
    let sleep = (story.facts.causes.iter())
        .find(|share| matches!(share.cause, Cause::Sleep { .. }))
        .unwrap();
    assert_eq!(sleep.self_ns, 400 * MS);
    assert_eq!(
        sleep.cause.to_string(),
        "waiting for the other end of a socket"
    );
    // The other program says why.
    let text = text(&story);
    let next = "`fathom critical-path SESSION --request 1`";
    assert!(text.contains(next), "{text}");
}

#[test]
fn a_busy_machine_is_not_the_cause_of_everything() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = Files::new(dir.path());
    files
        .add(&sample::syscalls(
            1,
            &[Call::new("fsync", 0, 1000 * MS).on(1)],
        ))
        .add(&sample::files(&[(1, "/srv/log")]))
        .add(&sample::slices(&[
            (1, "sched", "io", 10, 400 * MS, 1),
            (1, "device", "vda", 400 * MS, 350 * MS, 1),
        ]))
        .add(&waits(&[(1, "disk", 400 * MS, 400 * MS, "softirq:BLOCK")]));
    let text = text(&story(&files, &Scope::default()));
    assert!(text.contains("40 % of that time passed while"), "{text}");
    assert!(text.contains("35 % passed while vda served"), "{text}");
    assert!(text.contains("Sync less often"), "{text}");
    assert!(!text.contains("The storage is not the cause"), "{text}");
}

#[test]
fn write_back_gets_no_smaller_share() {
    let dir = tempfile::tempdir().unwrap();
    let files = starved_by(dir.path(), "kworker/u8:1");
    let text = text(&story(&files, &Scope::default()));
    assert!(
        text.contains("kworker/u8:1 (PID 900), a kernel thread that writes back data, ahead"),
        "{text}"
    );
    assert!(text.contains("vm.dirty_background_bytes"), "{text}");
    assert!(!text.contains("ionice"), "{text}");
}

#[test]
fn without_layers_below_the_cause_is_not_known() {
    let dir = tempfile::tempdir().unwrap();
    let files = starved(dir.path());
    let meta = SessionMeta {
        layers: Vec::new(),
        ..meta()
    };
    let db = Db::open_parts(&meta, |table| files.parts(table), Limits::default()).unwrap();
    let story = why(&db, &meta, &Scope::default(), &[]).unwrap();
    let last = story.sentences.last().unwrap().text();
    assert!(last.contains("were not recorded"), "{last}");
    assert_eq!(story.sentences.len(), 2);
}

/// Without layer sched, time asleep is no work of a processor.
#[test]
fn without_sched_time_in_calls_is_not_on_the_cpu() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = Files::new(dir.path());
    files
        .add(&sample::syscalls(
            1,
            &[Call::new("fsync", 0, 1_000 * MS).on(1)],
        ))
        .add(&sample::files(&[(1, "/srv/log")]));
    let mut meta = meta();
    assert!(told(&files, &meta).contains("on the CPU.\nSync less often"));
    for layer in &mut meta.layers {
        layer.recorded = layer.name != Layer::Sched;
    }
    let text = told(&files, &meta);
    let end = "100 % of that time passed in the calls. Whether calls were on the CPU or asleep was \
               not recorded.";
    assert!(text.ends_with(end), "{text}");
}

/// The wake-up says that a wait was for a device, where the call does not.
#[test]
fn a_wait_that_a_block_request_ended_was_for_a_device() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = Files::new(dir.path());
    let (mut strings, mut rows) = (StringTable::new(), WaitRows::default());
    rows.push(WaitRow {
        rid: 1,
        ts_ns: START + 10,
        dur_ns: 900 * MS,
        pid: 100,
        tid: 100,
        reason: strings.intern(b"other"),
        cause: strings.intern(b"block_request"),
        run_queue_ns: 0,
        waker: strings.intern(b"softirq:BLOCK"),
        ..Default::default()
    });
    files
        .add(&sample::syscalls(
            1,
            &[Call::new("openat", 0, 1_000 * MS).on(1)],
        ))
        .add(&sample::files(&[(1, "/srv/a")]))
        .add(&sample::slices(&[(
            1,
            "sched",
            "uninterruptible",
            10,
            900 * MS,
            1,
        )]))
        .add(&rows.into_batch(strings));
    let text = text(&story(&files, &Scope::default()));
    let said = "90 % of that time was spent asleep, waiting for a device";
    assert!(text.contains(said), "{text}");
}
