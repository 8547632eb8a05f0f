//! Stories of sessions with known contents.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

mod causes;
mod time;

use fathom_diagnose::Activity;
use fathom_model::layers::Layer;
use fathom_model::meta::{Keep, RecordedLayer, SessionMeta, State};
use fathom_model::tables::{
    BioRow, BioRows, BlockRow, BlockRows, CounterRow, CounterRows, SliceRow, SliceRows, WaitRow,
    WaitRows,
};
use fathom_model::{Batch, StringTable};
use fathom_query::{Db, Limits};
use fathom_testkit::Random;
use fathom_testkit::sample::{self, Call, Files, Loss, START};
use fathom_why::{Cause, Facts, File, Link, Named, Scope, Story, portions, tell, why};

const MS: i64 = 1_000_000;

/// A block request to vda: its process and thread name, request, begin after START, times in the
/// queue and in the device, and bytes.
type Request = (i32, &'static str, Option<i64>, i64, i64, i64, i64);

fn block(requests: &[Request]) -> [Batch; 2] {
    let (mut strings, mut bio_strings) = (StringTable::new(), StringTable::new());
    let (mut blocks, mut bios) = (BlockRows::default(), BioRows::default());
    for (i, (pid, comm, rid, at, queue, device, bytes)) in requests.iter().enumerate() {
        let (block_id, queued) = (i as i64 + 1, START + at);
        blocks.push(BlockRow {
            block_id,
            ts_ns: queued,
            dur_ns: queue + device,
            device: strings.intern(b"vda"),
            op: strings.intern(b"write"),
            bytes: *bytes,
            queued_at_ns: queued,
            issued_at_ns: queued + queue,
            completed_at_ns: queued + queue + device,
            pid: *pid,
            tid: *pid,
            comm: strings.intern(comm.as_bytes()),
            ..Default::default()
        });
        if let Some(rid) = rid {
            bios.push(BioRow {
                block_id,
                rid: *rid,
                submit_rid: *rid,
                ts_ns: queued,
                bytes: *bytes,
                origin: bio_strings.intern(b"call"),
                cause_pid: *pid,
                ..Default::default()
            });
        }
    }
    [blocks.into_batch(strings), bios.into_batch(bio_strings)]
}

fn waits(rows_in: &[(i64, &str, i64, i64, &str)]) -> Batch {
    let mut strings = StringTable::new();
    let mut rows = WaitRows::default();
    for (rid, reason, dur_ns, run_queue_ns, waker) in rows_in {
        rows.push(WaitRow {
            rid: *rid,
            ts_ns: START,
            dur_ns: *dur_ns,
            pid: 100,
            tid: 100,
            reason: strings.intern(reason.as_bytes()),
            run_queue_ns: *run_queue_ns,
            waker: strings.intern(waker.as_bytes()),
            ..Default::default()
        });
    }
    rows.into_batch(strings)
}

fn meta() -> SessionMeta {
    let layers = Layer::ALL.iter().map(|layer| RecordedLayer {
        name: *layer,
        recorded: true,
        reason: String::new(),
    });
    SessionMeta {
        layers: layers.collect(),
        ..sample::meta()
    }
}

fn story(files: &Files, scope: &Scope) -> Story {
    let meta = meta();
    let db = Db::open_parts(&meta, |table| files.parts(table), Limits::default()).unwrap();
    why(&db, &meta, scope, &[]).unwrap()
}

/// The same, gathered some requests after the others, too: that gives the same facts.
fn story_in_portions(files: &Files, scope: &Scope) -> Story {
    let meta = meta();
    let db = Db::open_parts(&meta, |table| files.parts(table), Limits::default()).unwrap();
    let told = why(&db, &meta, scope, &[]).unwrap();
    // Of requests that took equally long any is the longest.
    let comparable = |facts: &Facts| {
        let mut facts = facts.clone();
        for group in &mut facts.groups {
            group.longest_rid = 0;
        }
        format!("{facts:?}")
    };
    for most in [1, 7] {
        let facts = Facts::gather_in_portions(&db, &meta, scope, most).unwrap();
        assert_eq!(comparable(&facts), comparable(&told.facts), "{most}");
    }
    told
}

/// Calls on several files by several threads, some with visits of layers and waits: the numbers of portions add up to the
/// numbers of all, the longest request included.
#[test]
fn portions_add_up_to_the_whole() {
    let dir = tempfile::tempdir().unwrap();
    let (mut random, mut calls) = (Random::new(3), Vec::new());
    let (mut slices, mut sleeps) = (Vec::new(), Vec::new());
    for i in 0..3000i64 {
        let name = ["pread64", "pwrite64", "fsync", "openat"][random.below(4) as usize];
        // Durations that differ, so that there is one longest request.
        let dur_ns = (random.below(900) as i64 + 100) * 3000 + i;
        let tid = 100 + random.below(5) as i32;
        let call = Call::new(name, i * MS, dur_ns).on(random.below(7) as i64 + 1);
        calls.push(call.by(100 + tid % 2, tid).moves(random.below(5000) as i64));
        if random.below(3) == 0 {
            slices.push((i + 1, "device", "vda", i * MS, dur_ns / 4, 1));
            slices.push((i + 1, "sched", "", i * MS, dur_ns / 3, 1));
            sleeps.push((i + 1, "lock", dur_ns / 3, 10, "kworker"));
        }
    }
    let paths = [
        (1, "/a"),
        (2, "/b"),
        (3, "/a"),
        (4, "/c"),
        (5, "/d"),
        (6, "/d"),
        (7, "/d"),
    ];
    let mut files = Files::new(dir.path());
    files
        .add(&sample::syscalls(1, &calls))
        .add(&sample::files(&paths))
        .add(&sample::processes(&[
            (100, 100, "one", None),
            (101, 101, "two", None),
        ]))
        .add(&sample::slices(&slices))
        .add(&waits(&sleeps));
    let meta = meta();
    let db = Db::open_parts(&meta, |table| files.parts(table), Limits::default()).unwrap();
    let window = Scope {
        from_ns: Some(START + 500 * MS),
        until_ns: Some(START + 2_000 * MS),
        ..Scope::default()
    };
    for scope in [Scope::default(), window] {
        let whole = Facts::gather(&db, &meta, &scope).unwrap();
        let whole = format!("{whole:?}");
        for most in [100, 999] {
            assert!(portions(&db, &scope, most).unwrap().len() > 1);
            let facts = Facts::gather_in_portions(&db, &meta, &scope, most).unwrap();
            assert_eq!(format!("{facts:?}"), whole, "{most}");
        }
    }
    let all = Facts::gather(&db, &meta, &Scope::default()).unwrap();
    assert_eq!((all.requests, all.groups.len()), (3000, 8));
    let total_ns: i64 = calls.iter().map(|call| call.dur_ns).sum();
    assert_eq!(all.total_ns, total_ns);
    let (longest, _) = calls
        .iter()
        .enumerate()
        .max_by_key(|(_, call)| call.dur_ns)
        .unwrap();
    assert!(
        all.groups
            .iter()
            .any(|group| group.longest_rid == longest as i64 + 1)
    );
}

fn text(story: &Story) -> String {
    let sentences = story.sentences.iter().map(|sentence| sentence.text());
    sentences.collect::<Vec<_>>().join("\n")
}

/// Block requests that need more memory than a query has leave the rest of the story, which says so.
#[test]
fn too_many_block_requests_are_said() {
    let dir = tempfile::tempdir().unwrap();
    let scope = Scope::default();
    let told = story(&starved(dir.path()), &scope);
    assert!(text(&told).contains("ahead of each") && !told.facts.too_many_blocks);
    let mut facts = told.facts.clone();
    (facts.blocks, facts.ahead) = (Vec::new(), Vec::new());
    facts.too_many_blocks = true;
    let sentences = tell(&facts, &meta(), &scope, &[]);
    let said: Vec<String> = sentences.iter().map(|s| s.text()).collect();
    let expected = "too many to say which program was ahead of them";
    assert!(said[1].contains(expected), "{said:?}");
    assert!(!said.join(" ").contains("ahead of each"), "{said:?}");
}

/// Requests of the program's own that were ahead are not a neighbor's.
#[test]
fn requests_behind_those_of_the_same_program() {
    let dir = tempfile::tempdir().unwrap();
    let scope = Scope::default();
    let mut facts = story(&starved(dir.path()), &scope).facts;
    facts.ahead.iter_mut().for_each(|ahead| ahead.own = true);
    let sentences = tell(&facts, &meta(), &scope, &[]);
    let said: Vec<String> = sentences.iter().map(|s| s.text()).collect();
    let said = said.join(" ");
    assert!(said.contains("of the same program ahead of each"), "{said}");
}

/// A database that syncs ten times, 200 ms each, with its block request behind 16 of a neighbor.
fn starved(dir: &std::path::Path) -> Files {
    starved_by(dir, "fio")
}

fn starved_by(dir: &std::path::Path, neighbor: &'static str) -> Files {
    starved_by_many(dir, neighbor, 1)
}

/// The same by a neighbor of several processes.
fn starved_by_many(dir: &std::path::Path, neighbor: &'static str, processes: i64) -> Files {
    let syncs: Vec<Call> = (0..10)
        .map(|i| Call::new("fdatasync", i * 400 * MS, 200 * MS).on(1))
        .chain((0..100).map(|i| {
            Call::new("pread64", 3_900 * MS + i * 1000, 700)
                .on(2)
                .moves(512)
        }))
        .collect();
    let mut requests: Vec<Request> = Vec::new();
    let mut slices = Vec::new();
    for i in 0..10 {
        let at = i * 400 * MS;
        for n in 0..16 {
            requests.push((
                900 + (n % processes) as i32,
                neighbor,
                None,
                at - (16 - n) * 1000,
                1000,
                190 * MS,
                1 << 20,
            ));
        }
        requests.push((
            100,
            "redis-server",
            Some(i + 1),
            at + 10,
            190 * MS,
            MS,
            4096,
        ));
        slices.push((i + 1, "block", "vda", at + 10, 190 * MS, 1));
        slices.push((i + 1, "device", "vda", at + 10 + 190 * MS, MS, 1));
    }
    let mut files = Files::new(dir);
    files
        .add(&sample::syscalls(1, &syncs))
        .add(&sample::files(&[(1, "/srv/a.db-wal"), (2, "/srv/a.db")]))
        .add(&sample::processes(&[(100, 100, "redis-server", None)]))
        .add(&sample::slices(&slices));
    for batch in block(&requests) {
        files.add(&batch);
    }
    files
}

/// A neighbor that held up one of many requests is not who to change.
#[test]
fn one_delay_among_many_is_not_the_story() {
    let dir = tempfile::tempdir().unwrap();
    let (mut reads, mut requests, mut slices) = (Vec::new(), Vec::<Request>::new(), Vec::new());
    let mut read = |at: i64, queue_ns: i64| {
        let rid = reads.len() as i64 + 1;
        let call = Call::new("pread64", at, queue_ns + 5 * MS)
            .on(1)
            .moves(4096);
        reads.push(call);
        slices.push((rid, "block", "vda", at + 10, queue_ns, 1));
        slices.push((rid, "device", "vda", at + 10 + queue_ns, 4 * MS, 1));
        (100, "reader", Some(rid), at + 10, queue_ns, 4 * MS, 4096)
    };
    for i in 0..200 {
        requests.push(read(i * 10 * MS, 0));
    }
    let late = 2_000 * MS;
    for n in 0..16 {
        requests.push((
            900,
            "fio",
            None,
            late - (16 - n) * 1000,
            1000,
            45 * MS,
            1 << 20,
        ));
    }
    requests.push(read(late, 45 * MS));
    let mut files = Files::new(dir.path());
    files
        .add(&sample::syscalls(1, &reads))
        .add(&sample::files(&[(1, "/srv/data")]))
        .add(&sample::processes(&[(100, 100, "reader", None)]))
        .add(&sample::slices(&slices));
    for batch in block(&requests) {
        files.add(&batch);
    }
    let all = story(&files, &Scope::default());
    assert_eq!(all.facts.ahead[0].behind, 1);
    assert_eq!(all.facts.ahead[0].behind_ns, 49 * MS);
    let told = text(&all);
    assert!(!told.contains("fio"), "{told}");
    assert!(told.contains("read it ahead"), "{told}");
    // The request itself was.
    let one = Scope {
        request: Some(201),
        ..Scope::default()
    };
    let told = text(&story(&files, &one));
    assert!(told.contains("16 requests (16.0 MiB) of fio"), "{told}");
}

#[test]
fn a_starved_database_is_told_from_whom() {
    let dir = tempfile::tempdir().unwrap();
    let files = starved(dir.path());
    let story = story_in_portions(&files, &Scope::default());
    assert_eq!(
        text(&story),
        "redis-server (PID 100) spent 2.00 s (50 % of the 4.00 s run) making /srv/a.db-wal durable \
         (10 fdatasync calls, the longest 200 ms).\n\
         95 % of that time was spent waiting in the queue of vda, where 10 block requests had \
         16 requests (16.0 MiB) of fio (PID 900) ahead of each on average; vda itself took 10.0 ms for 10 block requests \
         (40.0 KiB).\n\
         Give fio a smaller share of vda (ionice -c 3, or io.weight or io.max of its cgroup), run \
         it at another time, or move it to another device."
    );
    // Every number of the time leads to the request that shows it, every name to what it names.
    let links: Vec<&Link> = story
        .sentences
        .iter()
        .flat_map(|sentence| &sentence.pieces)
        .filter_map(|piece| piece.link.as_ref())
        .collect();
    for link in [
        Link::Process { pid: 100 },
        Link::Device {
            device: "vda".into(),
        },
        Link::File { file_id: 1 },
        Link::Request { rid: 10 },
    ] {
        let is_request = matches!(link, Link::Request { .. });
        let has = |other: &&&Link| match is_request {
            true => matches!(other, Link::Request { .. }),
            false => **other == &link,
        };
        assert!(links.iter().find(has).is_some(), "{link:?}");
    }
    // The shares add up to the time.
    let facts = &story.facts;
    let all: i64 = facts.all.iter().map(|share| share.self_ns).sum();
    assert_eq!(all, facts.total_ns);
    assert_eq!(facts.total_ns, 10 * 200 * MS + 100 * 700);
}

#[test]
fn one_request_is_compared_with_its_like() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = starved(dir.path());
    files.add(&sample::syscalls(
        1000,
        &(0..20)
            .map(|i| Call::new("fdatasync", 3_950 * MS + i * 10_000, 1000).on(1))
            .collect::<Vec<_>>(),
    ));
    let one = Scope {
        request: Some(3),
        ..Scope::default()
    };
    assert_eq!(
        text(&story_in_portions(&files, &one)),
        "This fdatasync on /srv/a.db-wal by redis-server (TID 100) took 200 ms, 200,000 times the \
         median of this process's fdatasync calls (1.00 µs).\n\
         95 % of it was spent waiting in the queue of vda, where 1 block request had 16 requests \
         (16.0 MiB) of fio (PID 900) ahead; vda itself took 1.00 ms for 1 block request \
         (4.00 KiB).\n\
         Give fio a smaller share of vda (ionice -c 3, or io.weight or io.max of its cgroup), run \
         it at another time, or move it to another device."
    );
    let none = Scope {
        request: Some(77_777),
        ..Scope::default()
    };
    assert_eq!(
        text(&story(&files, &none)),
        "There is no request 77777 in this session: it may have been lost or dropped."
    );
}

#[test]
fn a_file_that_is_made_again_and_again_is_one() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = Files::new(dir.path());
    let syncs: Vec<Call> = (0..6)
        .map(|i| Call::new("fdatasync", i * 200 * MS, 100 * MS).on(if i == 0 { 1 } else { 1 + i }))
        .collect();
    let journals = (2..7).map(|id| (id, "/srv/a.db-journal"));
    let paths: Vec<_> = [(1, "/srv/a.db")].into_iter().chain(journals).collect();
    files
        .add(&sample::syscalls(1, &syncs))
        .add(&sample::files(&paths));
    let story = story(&files, &Scope::default());
    let group = &story.facts.groups[0];
    assert_eq!((group.files, group.requests), (2, 6));
    assert_eq!(group.path.as_deref(), Some("/srv/a.db-journal"));
    assert_eq!((group.file_ns, group.total_ns), (500 * MS, 600 * MS));
}

#[test]
fn opens_that_make_files_are_told_from_others() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = Files::new(dir.path());
    let opens = [
        ("openat", "O_WRONLY|O_CREAT|O_TRUNC|O_CLOEXEC"),
        ("openat", "O_RDWR|O_CREAT|O_EXCL"),
        ("openat", "O_RDWR|O_CREAT"),
        ("openat", "O_RDONLY"),
        ("openat", "O_RDWR|O_EXCL"),
        ("creat", "O_WRONLY|O_CREAT|O_TRUNC"),
        ("IORING_OP_OPENAT", "O_WRONLY|O_CREAT|O_EXCL"),
        ("newfstatat", "AT_SYMLINK_NOFOLLOW"),
    ];
    let calls = (0..).zip(opens);
    let calls: Vec<Call> = calls
        .map(|(i, (name, flags))| Call::new(name, i * MS, 10_000 + i).with(flags))
        .collect();
    files.add(&sample::syscalls(1, &calls));
    let story = story_in_portions(&files, &Scope::default());
    let calls = |of| -> i64 {
        let groups = story.facts.groups.iter();
        let of_kind = groups.filter(|group| group.activity == of);
        of_kind.map(|group| group.requests).sum()
    };
    // The operation of io_uring is a group of its own.
    assert_eq!(calls(Activity::Change), 4);
    assert_eq!(calls(Activity::Find), 4);
}

/// The name alone would mean the program that waits, too.
#[test]
fn a_neighbor_of_the_same_name_is_named_by_its_process() {
    let dir = tempfile::tempdir().unwrap();
    let files = starved_by(dir.path(), "redis-server");
    let told = text(&story(&files, &Scope::default()));
    let advice = "Give redis-server (PID 900) a smaller share of vda";
    assert!(told.contains(advice), "{told}");
}

/// Numbers of several files and calls are not said of one.
#[test]
fn numbers_of_a_group_are_not_those_of_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = Files::new(dir.path());
    files
        .add(&sample::syscalls(
            1,
            &[
                Call::new("fdatasync", 0, 1000 * MS).on(1),
                Call::new("fsync", 1000 * MS, MS).on(2),
                Call::new("fsync", 1002 * MS, MS).on(1),
            ],
        ))
        .add(&sample::files(&[(1, "/srv/a.db"), (2, "/srv/b.db")]));
    let scope = Scope {
        calls: Some("syscall IN ('fsync', 'fdatasync')".to_owned()),
        ..Scope::default()
    };
    let told = text(&story(&files, &scope));
    let said = "making 2 files, mostly /srv/a.db, durable (3 calls on all of them, the longest 1.00 s \
                in fdatasync)";
    assert!(told.contains(said), "{told}");
}

/// Time in the queue is not time at work, even where the device was at work for others meanwhile.
#[test]
fn the_queue_of_a_device_at_work_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = Files::new(dir.path());
    let requests: Vec<Request> = (0..4)
        .map(|i| (100, "reader", Some(1), 0, i * 10 * MS, 10 * MS, 4096))
        .collect();
    files
        .add(&sample::syscalls(
            1,
            &[Call::new("pread64", 0, 41 * MS).on(1).moves(16384)],
        ))
        .add(&sample::files(&[(1, "/srv/data")]))
        .add(&sample::slices(&[(1, "device", "vda", 0, 40 * MS, 1)]));
    for batch in block(&requests) {
        files.add(&batch);
    }
    let told = text(&story(&files, &Scope::default()));
    let queued = "after 15.0 ms in its queue on average";
    assert!(told.contains(queued), "{told}");
}

#[test]
fn processes_of_one_program_are_one_neighbor() {
    let dir = tempfile::tempdir().unwrap();
    let files = starved_by_many(dir.path(), "dd", 4);
    let story = story(&files, &Scope::default());
    let text = text(&story);
    assert!(
        text.contains("had 16 requests (16.0 MiB) of dd (4 processes) ahead of each on average"),
        "{text}"
    );
    assert!(text.contains("Give dd a smaller share of vda"), "{text}");
    let ahead = &story.facts.ahead[0];
    assert_eq!((ahead.pid, ahead.processes), (None, 4));
}

#[test]
fn files_are_found_by_the_end_of_their_path() {
    let dir = tempfile::tempdir().unwrap();
    let files = starved(dir.path());
    let db = Db::open_parts(&meta(), |table| files.parts(table), Limits::default()).unwrap();
    let named = |name: &str| File::named(&db, name).unwrap();
    assert!(matches!(named("a.db"), Named::File(file) if file.ids == [2]));
    assert!(matches!(named("/srv/a.db-wal"), Named::File(file) if file.ids == [1]));
    assert!(matches!(named("db"), Named::Nothing));
    assert!(matches!(named("'; DROP TABLE files; --"), Named::Nothing));
}

fn told(files: &Files, meta: &SessionMeta) -> String {
    let db = Db::open_parts(meta, |table| files.parts(table), Limits::default()).unwrap();
    text(&why(&db, meta, &Scope::default(), &[]).unwrap())
}

/// No thread spends the time of operations.
#[test]
fn a_second_group_of_operations_is_under_way() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = Files::new(dir.path());
    files
        .add(&sample::syscalls(
            1,
            &[
                Call::new("pread64", 0, 600 * MS).on(1),
                Call::new("IORING_OP_WRITE", 0, 500 * MS).on(1),
            ],
        ))
        .add(&sample::files(&[(1, "/srv/a")]));
    let text = text(&story_in_portions(&files, &Scope::default()));
    let second = "; it had requests under way for 500 ms writing files (1 IORING_OP_WRITE operation, \
                  the longest 500 ms).";
    assert!(text.contains(second), "{text}");
}
