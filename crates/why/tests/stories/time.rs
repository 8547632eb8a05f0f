//! The time that shares are of: runs, windows, kept rows, and calls without rows.

use super::*;

/// Without all calls it is not known that they took little time.
#[test]
fn missing_calls_took_an_unknown_time() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = Files::new(dir.path());
    let calls: Vec<Call> = (0..4)
        .map(|i| Call::new("fsync", i * MS, 10).on(1))
        .collect();
    files
        .add(&sample::syscalls(1, &calls))
        .add(&sample::files(&[(1, "/srv/a")]));
    let tell = |meta: &SessionMeta, scope: &Scope| {
        let db = Db::open_parts(meta, |table| files.parts(table), Limits::default()).unwrap();
        text(&why(&db, meta, scope, &[]).unwrap())
    };
    let mut meta = meta();
    let (all, unknown) = (
        Scope::default(),
        "It is not known how much time went to storage",
    );
    meta.rows.insert("syscalls".to_owned(), 4);
    meta.rows.insert("files".to_owned(), 2);
    assert!(tell(&meta, &all).starts_with("Storage did not hold"));
    meta.rows.insert("syscalls".to_owned(), 10);
    let told = tell(&meta, &all);
    assert!(told.starts_with(unknown), "{told}");
    assert!(
        told.ends_with("6 of 10 rows of table syscalls are missing."),
        "{told}"
    );
    // The one that is asked about is there.
    let one = Scope {
        request: Some(2),
        ..Scope::default()
    };
    assert!(tell(&meta, &one).starts_with("This fsync"));
    meta.rows.clear();
    meta.totals.missing = 6;
    let told = tell(&meta, &all);
    assert!(
        told.ends_with("6 of 10 rows of table syscalls are missing."),
        "{told}"
    );
    // Nor which of them went to storage, without the files.
    meta.totals.missing = 0;
    meta.rows.insert("files".to_owned(), 1);
    let db = |table: &str| {
        if table == "files" {
            Vec::new()
        } else {
            files.parts(table)
        }
    };
    let db = Db::open_parts(&meta, db, Limits::default()).unwrap();
    let told = text(&why(&db, &meta, &all, &[]).unwrap());
    assert!(told.ends_with("rows of table files are missing."), "{told}");
}

#[test]
fn windows_clip_time_of_the_clock() {
    let dir = tempfile::tempdir().unwrap();
    let files = starved(dir.path());
    // The second half of the first sync, and the first half of the second.
    let scope = Scope {
        from_ns: Some(START + 100 * MS),
        until_ns: Some(START + 500 * MS),
        ..Scope::default()
    };
    let facts = story_in_portions(&files, &scope).facts;
    assert_eq!(facts.span_ns, 400 * MS);
    assert_eq!(facts.groups[0].wall_ns, Some(200 * MS));
    assert_eq!(facts.groups[0].requests, 2);
    assert_eq!(facts.total_ns, 400 * MS, "whole durations");
}

/// Programs that look files up one after the other, each for 10 ms.
fn programs(n: i32) -> String {
    let dir = tempfile::tempdir().unwrap();
    let mut files = Files::new(dir.path());
    let names: Vec<String> = (0..n).map(|i| format!("prog{i}")).collect();
    let calls: Vec<Call> = (0..n)
        .map(|i| Call::new("newfstatat", i64::from(i) * 20 * MS, 10 * MS).by(100 + i, 100 + i))
        .collect();
    let processes: Vec<_> = (100..)
        .zip(&names)
        .map(|(pid, name)| (pid, pid, name.as_str(), Some(START + 4_000 * MS)))
        .collect();
    files
        .add(&sample::syscalls(1, &calls))
        .add(&sample::processes(&processes));
    told(&files, &meta())
}

/// Programs beyond the first ones have their part of the time, too.
#[test]
fn the_time_of_many_programs_adds_up() {
    let little = programs(12);
    let (share, part) = (
        "under way for 3.0 % at most of the 4.00 s run",
        "spent the largest part of that time looking up",
    );
    assert!(little.contains(share) && little.contains(part), "{little}");
    let much = programs(40);
    assert!(!much.contains("did not hold"), "{much}");
    let one = programs(1);
    assert!(one.contains("spent most of that time looking up"), "{one}");
}

/// Calls without rows took time, too.
#[test]
fn calls_without_rows_are_not_forgotten() {
    let dirs = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [mut counted, mut lost] = dirs.each_ref().map(|dir| Files::new(dir.path()));
    let read = |at| Call::new("pread64", at, 10 * MS).on(1);
    for files in [&mut counted, &mut lost] {
        files
            .add(&sample::syscalls(1, &[read(0), read(3_000 * MS)]))
            .add(&sample::files(&[(1, "/srv/a")]));
    }
    let (mut strings, mut rows) = (StringTable::new(), CounterRows::default());
    rows.push(CounterRow {
        ts_ns: START,
        ended_at_ns: START + 1_000 * MS,
        syscall: strings.intern(b"pread64"),
        pid: 100,
        file_id: 1,
        count: 100,
        dur_ns: 1_000 * MS,
        ..Default::default()
    });
    counted.add(&rows.into_batch(strings));
    let text = told(&counted, &meta());
    let start = "Only 2 of 102 calls have rows; the others took 1.00 s on storage at most. The times \
                 below are of calls with rows alone. redis-server spent 20.0 ms";
    assert!(text.replace(" (PID 100)", "").starts_with(start), "{text}");
    assert!(!text.contains("did not hold"), "{text}");
    lost.add(&sample::losses(&[Loss {
        syscall: "pread64",
        pid: 100,
        file_id: 1,
        count: 8,
        errors: 0,
        bytes: 0,
        each_ns: MS,
    }]));
    let text = told(&lost, &meta());
    let start = "Only 2 of 10 calls have rows; the others took 8.00 ms on storage at most. The share \
                 below includes these. Storage did not hold this program up: requests were under way \
                 for 0.9 % at most of the 3.01 s run; ";
    assert!(text.starts_with(start), "{text}");
}

/// The time before the rows that were kept is not part of the story.
#[test]
fn kept_rows_are_of_the_last_time() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = Files::new(dir.path());
    let read = |at| Call::new("pread64", at, 500 * MS).on(1);
    files
        .add(&sample::syscalls(1, &[read(1_000 * MS), read(3_200 * MS)]))
        .add(&sample::files(&[(1, "/srv/a")]));
    let mut meta = meta();
    meta.history.keep = Some(Keep {
        complete_from_ns: Some(START + 3_000 * MS),
        ..Keep::default()
    });
    let text = told(&files, &meta);
    let said = "spent 500 ms (50 % of the last 1.00 s that were kept) reading /srv/a (1 pread64 call, \
                the longest 500 ms)";
    assert!(text.contains(said), "{text}");
}

/// A command that outlives its recording ran until the end of that.
#[test]
fn a_command_that_goes_on_ran_to_the_end_of_the_recording() {
    for (end, said) in [
        (Some(START + 2_000 * MS), "(50 % of the 2.00 s run)"),
        (None, "(25 % of the 4.00 s run)"),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let mut files = Files::new(dir.path());
        files
            .add(&sample::syscalls(
                1,
                &[Call::new("pread64", 0, 1_000 * MS).on(1)],
            ))
            .add(&sample::files(&[(1, "/srv/a")]))
            .add(&sample::processes(&[(100, 100, "redis-server", end)]));
        let text = told(&files, &meta());
        assert!(text.contains(said), "{text}");
    }
}

/// Time outside of a window is not of it.
#[test]
fn sums_are_cut_to_the_window() {
    let window = Scope {
        from_ns: Some(START + 400 * MS),
        until_ns: Some(START + 500 * MS),
        ..Scope::default()
    };
    let first = |calls: &[Call]| {
        let dir = tempfile::tempdir().unwrap();
        let mut files = Files::new(dir.path());
        files
            .add(&sample::syscalls(1, calls))
            .add(&sample::files(&[(1, "/srv/a")]))
            .add(&sample::processes(&[(100, 100, "redis-server", None)]));
        story(&files, &window).sentences[0].text()
    };
    let one = first(&[Call::new("flock", 0, 900 * MS).on(1)]);
    let end = "spent 100 ms (100 % of this window of 100 ms) locking /srv/a (1 flock call, the longest \
               900 ms).";
    assert!(one.ends_with(end), "{one}");
    let read = |tid| Call::new("pread64", 0, 900 * MS).on(1).by(100, tid);
    let two = first(&[read(100), read(101)]);
    let end = ", 200 ms in total over 2 threads.";
    assert!(two.ends_with(end), "{two}");
}
