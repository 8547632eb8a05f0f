use super::*;

fn record(event: u32, pid: u32, tid: u32, started_at_ns: u64, comm: &str) -> TaskRecord {
    let mut record = TaskRecord::parse(&[0; TaskRecord::SIZE]).unwrap();
    record.event = event as u8;
    (record.pid, record.tid, record.started_at_ns) = (pid, tid, started_at_ns);
    record.ts_ns = started_at_ns;
    record.comm[..comm.len()].copy_from_slice(comm.as_bytes());
    record
}

fn text_of(strings: &StringTable, id: StrId) -> String {
    String::from_utf8(strings.get(id).to_vec()).unwrap()
}

#[test]
fn a_life() {
    let mut tasks = Tasks::new(100);
    tasks.event(
        &record(TASK_SEEN, 10, 10, 1, "bash"),
        b"bash\0",
        b"bash/bin/",
        b"docker/",
    );
    let mut fork = record(TASK_FORK, 20, 20, 2, "bash");
    fork.ppid = 10;
    tasks.event(&fork, b"", b"", b"");
    assert_eq!(tasks.used(20, 0), Some("bash"));
    let (rows, strings) = tasks.take();
    assert_eq!(rows.tid, [10, 20]);
    assert_eq!(text_of(&strings, rows.exe[1]), "/bin/bash");
    assert_eq!(text_of(&strings, rows.cgroup[1]), "/docker");
    assert_eq!(rows.container_id[1], StrId::NULL);
    assert_eq!(rows.ppid[1], 10);

    tasks.event(
        &record(TASK_EXEC, 20, 20, 2, "ls"),
        b"ls\0a b\0",
        b"ls/bin/",
        b"",
    );
    let mut exit = record(TASK_EXIT, 20, 20, 2, "ls");
    (exit.ts_ns, exit.exit_code) = (9, 3 << 8);
    tasks.event(&exit, b"", b"", b"");
    assert_eq!(
        tasks.used(20, 0),
        Some("ls"),
        "its last calls may still come"
    );
    let (rows, strings) = tasks.take();
    assert_eq!(
        (
            rows.tid.as_slice(),
            rows.ended_at_ns[0],
            rows.exit_status[0]
        ),
        (&[20][..], 9, 3)
    );
    assert_eq!(text_of(&strings, rows.cmdline[0]), "ls 'a b'");
    assert_eq!(tasks.take().0.tid.len(), 0, "nothing changed");
    assert_eq!(tasks.used(20, 0), None);
    assert_eq!(tasks.used(10, 0), Some("bash"));
}

#[test]
fn threads_inherit_from_the_first_one() {
    let mut tasks = Tasks::new(100);
    tasks.event(&record(TASK_SEEN, 10, 10, 1, "srv"), b"srv\0", b"srv/", b"");
    let mut thread = record(TASK_FORK, 10, 11, 2, "srv");
    thread.ppid = 1;
    tasks.event(&thread, b"", b"", b"");
    tasks.event(&record(TASK_COMM, 10, 11, 2, "io"), b"", b"", b"");
    assert_eq!(tasks.used(11, 0), Some("io"));
    let (rows, strings) = tasks.take();
    assert_eq!(text_of(&strings, rows.exe[1]), "/srv");
    assert_eq!(rows.tid.len(), 2, "one row a thread");
}

#[test]
fn an_id_used_again_is_another_thread() {
    let mut tasks = Tasks::new(100);
    tasks.event(&record(TASK_SEEN, 10, 10, 1, "old"), b"old\0", b"old/", b"");
    tasks.event(&record(TASK_FORK, 10, 10, 5, "new"), b"", b"", b"");
    let (rows, _) = tasks.take();
    assert_eq!(rows.started_at_ns, [1, 5]);
    assert_eq!(rows.exe[1], StrId::NULL);
}

#[test]
fn exec_by_another_thread_than_the_first() {
    let mut tasks = Tasks::new(100);
    tasks.event(&record(TASK_SEEN, 10, 10, 1, "a"), b"a\0", b"a/", b"");
    tasks.event(&record(TASK_FORK, 10, 11, 2, "a"), b"", b"", b"");
    tasks.event(&record(TASK_EXIT, 10, 10, 1, "a"), b"", b"", b"");
    let mut exec = record(TASK_EXEC, 10, 10, 1, "b");
    exec.ts_ns = 7;
    tasks.event(&exec, b"b\0", b"b/", b"");
    let (rows, _) = tasks.take();
    assert_eq!(rows.tid, [10, 11]);
    assert_eq!(rows.ended_at_ns, [NULL_I64, 7]);
    tasks.take();
    assert_eq!(tasks.used(10, 0), Some("b"), "it lives on");
}

#[test]
fn statuses() {
    assert_eq!(exit_status(0), 0);
    assert_eq!(exit_status(0x100), 1);
    assert_eq!(exit_status(9), 137);
    assert_eq!(exit_status(0x8b), 139);
}

#[test]
fn memory_is_bounded() {
    let mut tasks = Tasks::new(50);
    for tid in 1..5000 {
        tasks.event(
            &record(TASK_SEEN, tid, tid, u64::from(tid), "x"),
            b"",
            b"",
            b"",
        );
    }
    assert_eq!(tasks.threads.len(), 50);
    assert!(tasks.used(4999, 0).is_some() && tasks.used(1, 0).is_none());
    tasks.take();
    assert!(tasks.order.len() <= 2 * 50 + 1024);
}

#[test]
fn hostile_records() {
    for seed in 0..2000 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut tasks = Tasks::new(8);
        for _ in 0..30 {
            let mut bytes: Vec<u8> = (0..TaskRecord::SIZE).map(|_| rng.u8(..)).collect();
            bytes[1] = rng.u8(0..8);
            let record = TaskRecord::parse(&bytes).unwrap();
            tasks.event(&record, &bytes[..20], &bytes[..9], &bytes[40..]);
        }
        let (rows, strings) = tasks.take();
        rows.into_batch(strings);
    }
}

#[test]
fn proc_describes_the_threads_of_a_process() {
    let mut tasks = Tasks::new(100);
    for tid in [10, 11] {
        tasks.event(&record(TASK_SEEN, 10, tid, 5, "srv"), b"", b"", b"");
    }
    let described = record(TASK_DESCRIBED, 10, 10, 0, "");
    tasks.event(&described, b"srv\0-x\0", b"srv/bin/", b"");
    // This one has not been seen.
    tasks.event(&record(TASK_DESCRIBED, 20, 20, 0, ""), b"x\0", b"", b"");
    let (rows, strings) = tasks.take();
    let mut found: Vec<_> = (0..rows.tid.len())
        .map(|i| (rows.tid[i], text_of(&strings, rows.cmdline[i])))
        .collect();
    found.sort();
    assert_eq!(
        found,
        [(10, "srv -x".to_owned()), (11, "srv -x".to_owned())]
    );
    assert_eq!(rows.started_at_ns, [5, 5]);
}

#[test]
fn rows_that_are_referred_to_are_written_again() {
    let mut tasks = Tasks::new(100).refreshed_after(Some(1000));
    tasks.event(&record(TASK_FORK, 10, 10, 5000, "a"), b"", b"", b"");
    assert_eq!(tasks.take().0.tid, [10]);
    tasks.used(10, 6000);
    assert!(tasks.take().0.tid.is_empty());
    tasks.used(10, 6001);
    tasks.used(10, 6002);
    assert_eq!(tasks.take().0.tid, [10]);
}
