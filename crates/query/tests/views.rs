//! Tables and views over a session with known contents.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::Int64Type;
use fathom_model::StringTable;
use fathom_model::batch::{NULL_I32, NULL_I64};
use fathom_model::tables::{BioRow, BioRows, BlockRow, BlockRows, SyscallRow, SyscallRows};
use fathom_query::output::{self, Format, Options};
use fathom_query::{Db, Limits};
use fathom_testkit::sample::{self, Call, Files, HOSTILE, START};

fn open(files: &Files) -> Db {
    Db::open_parts(
        &sample::meta(),
        |table| files.parts(table),
        Limits::default(),
    )
    .unwrap()
}

fn fixed() -> (tempfile::TempDir, Db) {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&sample::fixed(dir.path()));
    (dir, db)
}

fn csv(db: &Db, sql: &str) -> String {
    let mut out = Vec::new();
    output::write(
        db.query(sql).unwrap(),
        Format::Csv,
        &Options::default(),
        &mut out,
    )
    .unwrap();
    String::from_utf8(out).unwrap()
}

/// The rows without the header.
fn rows(db: &Db, sql: &str) -> Vec<String> {
    csv(db, sql).lines().skip(1).map(str::to_string).collect()
}

fn one(db: &Db, sql: &str) -> i64 {
    let batches: Vec<RecordBatch> = db.query(sql).unwrap().map(Result::unwrap).collect();
    let column = batches[0].column(0).as_primitive::<Int64Type>();
    assert!(!column.is_null(0), "{sql}");
    column.value(0)
}

#[test]
fn views_stay_exact_with_losses() {
    let (_dir, db) = fixed();
    let stored = one(&db, "SELECT count(*) FROM syscalls");
    let lost = one(&db, "SELECT sum(count)::BIGINT FROM losses");
    assert_eq!((stored, lost), (1015, 12));
    let bytes = 500 * 4096 + 500 * 512 + 32768;
    let time = one(&db, "SELECT sum(dur_ns)::BIGINT FROM syscalls") + 8 * 70_000 + 4 * 5_000_000;
    for view in ["by_syscall", "by_class", "by_file", "by_process"] {
        let sum = |column: &str| one(&db, &format!("SELECT sum({column})::BIGINT FROM {view}"));
        assert_eq!(sum("calls"), stored + lost, "{view}");
        assert_eq!(sum("lost"), lost, "{view}");
        assert_eq!(sum("errors"), 7 + 4 + 1, "{view}");
        assert_eq!(sum("bytes"), bytes, "{view}");
        assert_eq!(sum("total_ns"), time, "{view}");
        assert_eq!(
            one(&db, &format!("SELECT max(max_ns) FROM {view}")),
            90_000_000,
            "{view}"
        );
    }
    assert_eq!(
        one(&db, "SELECT sum(calls)::BIGINT FROM latency_histogram"),
        stored + lost
    );
    assert_eq!(
        one(&db, "SELECT sum(lost)::BIGINT FROM latency_histogram"),
        lost
    );
    for view in ["by_thread", "by_second", "events"] {
        let column = if view == "events" { "1" } else { "calls" };
        assert_eq!(
            one(&db, &format!("SELECT sum({column})::BIGINT FROM {view}")),
            stored,
            "{view}"
        );
    }
    assert_eq!(one(&db, "SELECT sum(calls)::BIGINT FROM by_error"), 11);
}

#[test]
fn by_syscall_holds_the_known_numbers() {
    let (_dir, db) = fixed();
    assert_eq!(
        rows(
            &db,
            "SELECT syscall, class, calls, pending, lost, errors, bytes, p50_ns, p99_ns, max_ns \
             FROM by_syscall ORDER BY syscall"
        ),
        [
            "fdatasync,data,1,0,0,0,0,8300000,8300000,8300000",
            "fsync,data,4,0,4,1,0,,,5000000",
            "openat,metadata,9,0,0,7,0,2000,12000,12000",
            "pread64,data,500,0,0,0,256000,700,700,700",
            "read,data,1,1,0,0,0,90000000,90000000,90000000",
            "unlinkat,metadata,4,0,0,4,0,3000,3000,3000",
            "write,data,508,0,8,0,2080768,3490,5940,70000",
        ]
    );
}

#[test]
fn files_show_their_last_version_and_directions() {
    let (_dir, db) = fixed();
    assert_eq!(
        rows(
            &db,
            "SELECT file_id, path FROM files WHERE file_id < 3 ORDER BY file_id"
        ),
        [
            "1,/var/lib/redis/appendonlydir/appendonly.aof.1.incr.aof",
            "2,/var/lib/redis/dump.rdb"
        ]
    );
    assert_eq!(
        rows(
            &db,
            "SELECT file_id, calls, bytes, read_bytes, written_bytes FROM by_file ORDER BY file_id"
        ),
        [
            "1,510,2080768,0,2080768",
            "2,500,256000,256000,0",
            "3,5,0,0,0",
            "4,1,0,0,0",
            ",11,0,0,0"
        ]
    );
    assert_eq!(
        rows(&db, "SELECT ended_at_ns FROM processes WHERE tid = 100"),
        [format!("{}", START + 3)]
    );
    assert_eq!(
        rows(
            &db,
            "SELECT pid, comm, threads, calls FROM by_process ORDER BY pid"
        ),
        ["100,redis-server,2,1019", "200,cleaner,1,4", ",,0,4"]
    );
}

#[test]
fn time_is_told_from_the_start() {
    let (_dir, db) = fixed();
    assert_eq!(
        rows(&db, "SELECT second, ts_ns, calls FROM by_second"),
        [
            format!("0,{START},252"),
            format!("1,{},251", START + 1_000_000_000),
            format!("2,{},261", START + 2_000_000_000),
            format!("3,{},251", START + 3_000_000_000)
        ]
    );
    assert_eq!(
        rows(&db, "SELECT wall_time(ts_ns) FROM syscalls WHERE rid = 1"),
        ["2025-03-01T12:00:00"]
    );
    assert_eq!(
        rows(
            &db,
            "SELECT command, start_time, duration_ns, seen - stored - lost FROM session"
        ),
        [r"redis-server --appendonly yes 'it'\''s',2025-03-01T12:00:00,4000000000,0"]
    );
}

#[test]
fn latency_buckets_are_powers_of_two() {
    let (_dir, db) = fixed();
    assert_eq!(
        rows(
            &db,
            "SELECT * FROM latency_histogram WHERE syscall = 'write'"
        ),
        [
            // 1000 to 1020 ns; 1030 to 2040; 2050 to 4090; 4100 to 5990; lost.
            "write,9,512,1024,3,0",
            "write,10,1024,2048,102,0",
            "write,11,2048,4096,205,0",
            "write,12,4096,8192,190,0",
            "write,16,65536,131072,8,8"
        ]
    );
}

#[test]
fn a_session_without_rows_has_every_view() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&Files::new(dir.path()));
    for view in [
        "syscalls",
        "files",
        "losses",
        "by_syscall",
        "by_file",
        "by_second",
        "events",
    ] {
        assert!(
            rows(&db, &format!("SELECT * FROM {view}")).is_empty(),
            "{view}"
        );
    }
    assert_eq!(rows(&db, "SELECT id FROM session").len(), 1);
}

#[test]
fn paths_of_parts_may_hold_quotes_and_newlines() {
    let dir = tempfile::tempdir().unwrap();
    let nasty = dir.path().join("a'b\"c\n{y}; DROP");
    std::fs::create_dir(&nasty).unwrap();
    let db = open(&sample::fixed(&nasty));
    assert_eq!(one(&db, "SELECT count(*) FROM syscalls"), 1015);
    assert_eq!(one(&db, "SELECT count(*) FROM files"), 4);
}

#[test]
fn hostile_metadata_is_data() {
    let dir = tempfile::tempdir().unwrap();
    let mut meta = sample::meta();
    meta.host.name = "'); DROP VIEW syscalls; --".into();
    meta.command = vec![HOSTILE.into()];
    let files = sample::fixed(dir.path());
    let db = Db::open_parts(&meta, |t| files.parts(t), Limits::default()).unwrap();
    assert_eq!(
        rows(&db, "SELECT host FROM session"),
        ["'); DROP VIEW syscalls; --"]
    );
    assert_eq!(one(&db, "SELECT count(*) FROM syscalls"), 1015);
}

#[test]
fn damaged_parts_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = sample::fixed(dir.path());
    // A table's folder with another table's file in it.
    let wrong = dir.path().join("wrong.parquet");
    sample::write_parquet(&sample::files(&[(1, "/x")]), &wrong);
    let refused = |path: std::path::PathBuf| {
        Db::open_parts(&sample::meta(), |_| vec![path.clone()], Limits::default())
            .err()
            .unwrap()
            .to_string()
    };
    let text = refused(wrong);
    assert!(text.starts_with("table syscalls cannot be read"), "{text}");
    let cut = dir.path().join("cut.parquet");
    std::fs::write(&cut, b"PAR1 not really").unwrap();
    let text = refused(cut);
    assert!(text.starts_with("table syscalls cannot be read"), "{text}");
    files.add(&sample::syscalls(5000, &[Call::new("read", 0, 1)]));
    assert_eq!(one(&open(&files), "SELECT count(*) FROM syscalls"), 1016);
}

#[test]
fn every_column_of_a_view_is_documented() {
    let page = fathom_query::schema_markdown().unwrap();
    for line in page.lines().filter(|l| l.starts_with("| `")) {
        let meaning = line.trim_end_matches(" |").rsplit(" | ").next().unwrap();
        assert!(
            meaning.len() > 3 && meaning.ends_with('.'),
            "not documented: {line}"
        );
    }
    fathom_testkit::expect_file("docs/schema.md", &page);
}

#[test]
fn calls_by_a_path_count_to_its_file() {
    let of = |syscall, at_ns, dur_ns, path| Call {
        path: Some(path),
        ..Call::new(syscall, at_ns, dur_ns)
    };
    let dir = tempfile::tempdir().unwrap();
    let mut files = Files::new(dir.path());
    files
        .add(&sample::files(&[(1, "/db"), (2, "/log"), (3, "/log")]))
        .add(&sample::syscalls(
            1,
            &[
                Call::new("write", 0, 10).on(1),
                of("unlink", 20, 400, "/db"),
                of("unlink", 500, 7, "/log"),
                of("stat", 600, 1, "/nothing"),
                Call::new("sync", 700, 2),
            ],
        ));
    let db = open(&files);
    let sql = "SELECT file_id, path, calls, total_ns, max_ns FROM by_file ORDER BY file_id";
    assert_eq!(
        rows(&db, sql),
        ["1,/db,2,410,400", "3,/log,1,7,7", ",,2,3,2"]
    );
}

#[test]
fn page_faults_are_no_calls() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = sample::fixed(dir.path());
    let loss = |syscall, bytes| sample::Loss {
        syscall,
        pid: 100,
        file_id: 1,
        count: 5,
        errors: 2,
        bytes,
        each_ns: 1000,
    };
    files
        .add(&sample::faults(&[
            (1, "major", "read", Some(30)),
            (1, "failed", "write", Some(10)),
            (2, "minor", "write", None),
        ]))
        .add(&sample::losses(&[
            loss("page_fault", 0),
            loss("writeback", 700),
        ]));
    let db = open(&files);
    assert_eq!(
        rows(
            &db,
            "SELECT file_id, faults, lost, major, failed, write_faults, around_bytes, total_ns, \
             max_ns, written_back_bytes FROM by_mapped_file"
        ),
        ["1,7,5,1,3,1,16384,5040,1000,700", "2,1,0,0,0,1,8192,0,,0"]
    );
    for view in [
        "by_syscall",
        "by_class",
        "by_file",
        "by_process",
        "latency_histogram",
    ] {
        let calls = one(&db, &format!("SELECT sum(calls)::BIGINT FROM {view}"));
        assert_eq!(calls, 1015 + 12, "{view}");
    }
    let layers = "SELECT layer, name, count(*) FROM events WHERE layer <> 'syscall' GROUP BY ALL";
    assert_eq!(rows(&db, layers), ["pagecache,page_fault,3"]);
}

/// A damaged capture has such ranges: a list of their pieces would not end.
#[test]
fn read_ahead_beyond_what_a_kernel_reads_is_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = sample::fixed(dir.path());
    let (mut bios, mut strings) = (BioRows::default(), StringTable::default());
    for bytes in [1 << 50, 8192] {
        bios.push(BioRow {
            bytes,
            origin: strings.intern(b"readahead"),
            ts_ns: START,
            file_id: 1,
            file_offset: 0,
            ..Default::default()
        });
    }
    files.add(&bios.into_batch(strings));
    let db = open(&files);
    assert_eq!(rows(&db, "SELECT bytes FROM readahead"), ["8192"]);
}

/// A file of 100 bytes, and a read of two pages within four.
#[test]
fn a_page_that_was_read_in_part_was_used() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = Files::new(dir.path());
    let (mut bios, mut strings) = (BioRows::default(), StringTable::default());
    for (file_id, bytes) in [(1, 4096), (2, 16384)] {
        bios.push(BioRow {
            bytes,
            origin: strings.intern(b"readahead"),
            ts_ns: START,
            file_id,
            file_offset: 0,
            ..Default::default()
        });
    }
    let (mut calls, mut words) = (SyscallRows::default(), StringTable::default());
    for (rid, file_id, file_offset, bytes) in [(1, 1, 0, 100), (2, 2, 8000, 200)] {
        calls.push(SyscallRow {
            rid,
            ts_ns: START,
            dur_ns: 10,
            syscall: words.intern(b"read"),
            class: words.intern(b"data"),
            api: words.intern(b"syscall"),
            file_id,
            file_offset,
            bytes,
            ..Default::default()
        });
    }
    files
        .add(&bios.into_batch(strings))
        .add(&calls.into_batch(words));
    let db = open(&files);
    assert_eq!(
        rows(
            &db,
            "SELECT file_id, used_bytes, wasted_bytes FROM readahead ORDER BY file_id"
        ),
        ["1,4096,0", "2,8192,8192"]
    );
}

/// Bios in the rows of their requests are rows of table bios, too.
#[test]
fn bios_that_are_alone_in_their_request() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = Files::new(dir.path());
    let (mut blocks, mut strings) = (BlockRows::default(), StringTable::default());
    let alone = |block_id, bio_submit_rid, bio_cause_tid| BlockRow {
        block_id,
        rid: 5,
        ts_ns: START,
        dur_ns: 10,
        queued_at_ns: START + 1,
        completed_at_ns: START + 10,
        sector: 88,
        file_offset: 4096,
        bytes: 4096,
        pid: 7,
        tid: 8,
        bio_submit_rid,
        bio_cause_tid,
        ..Default::default()
    };
    for (id, submit, tid) in [(1, NULL_I64, NULL_I32), (2, 0, 0), (3, 6, 9)] {
        blocks.push(BlockRow {
            bio_origin: strings.intern(b"read"),
            ..alone(id, submit, tid)
        });
    }
    // Of two bios, which have rows.
    blocks.push(alone(4, NULL_I64, NULL_I32));
    let (mut bios, mut words) = (BioRows::default(), StringTable::default());
    for bytes in [512, 3584] {
        bios.push(BioRow {
            block_id: 4,
            bytes,
            origin: words.intern(b"journal"),
            ..Default::default()
        });
    }
    files.add(&blocks.into_batch(strings));
    let of_requests = "SELECT block_id, rid, submit_rid, cause_pid, cause_tid, ts_ns - 1 - \
                       (SELECT min(ts_ns) FROM block) AS at, sector, file_offset, origin \
                       FROM bios ORDER BY ALL";
    let expected = [
        "1,5,5,7,8,0,88,4096,read",
        "2,5,,7,,0,88,4096,read",
        "3,5,6,7,9,0,88,4096,read",
    ];
    assert_eq!(rows(&open(&files), of_requests), expected);
    files.add(&bios.into_batch(words));
    let db = open(&files);
    let all = "SELECT block_id, bytes, origin FROM bios ORDER BY ALL";
    let expected = [
        "1,4096,read",
        "2,4096,read",
        "3,4096,read",
        "4,512,journal",
        "4,3584,journal",
    ];
    assert_eq!(rows(&db, all), expected);
    let times = "SELECT queued_at_ns - ts_ns, completed_at_ns - ts_ns, sector FROM block";
    assert_eq!(rows(&db, times), ["1,10,88"; 4]);
    let columns = db.columns("block").unwrap();
    assert!(columns.iter().all(|(name, _)| !name.starts_with("bio_")));
}

#[test]
fn causes_of_flushes_are_not_counted() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = Files::new(dir.path());
    let (mut blocks, mut strings) = (BlockRows::default(), StringTable::default());
    for (block_id, op, rid) in [
        (1, "write", 5),
        (2, "write", NULL_I64),
        (3, "flush", NULL_I64),
    ] {
        blocks.push(BlockRow {
            block_id,
            rid,
            ts_ns: START,
            device: strings.intern(b"vda"),
            op: strings.intern(op.as_bytes()),
            ..Default::default()
        });
    }
    files.add(&blocks.into_batch(strings));
    let recorded = "SELECT op, requests, recorded FROM by_device ORDER BY op";
    assert_eq!(rows(&open(&files), recorded), ["flush,1,", "write,2,1"]);
}

/// Four threads; what each call took, and why, is in the comments. The recording is from 0 to
/// 4,000,000,000 ns after START.
#[test]
fn contention_compares_calls_that_are_alike() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = Files::new(dir.path());
    let write = |at, took, tid| Call::new("write", at, took).moves(4096).by(100, tid);
    let direct = |at, took| Call::new("pread64", at, took).moves(4096).by(100, 102);
    let requests = [
        // Calls 6 and 7 read by one request to the device each, 8 by four.
        (Some(6), "read", 200_010, 1_000),
        (Some(7), "read", 300_010, 8_000),
        (Some(8), "read", 400_010, 900),
        (Some(8), "read", 401_010, 900),
        (Some(8), "read", 402_010, 900),
        (Some(8), "read", 403_010, 900),
        // In the course of no call.
        (None, "write", 400_500, 7_000),
    ];
    let [block, bios] = sample::device_requests(&requests);
    files
        .add(&sample::syscalls(
            1,
            &[
                // Thread 100: 1,000 undisturbed; 51,000 preempted; 3,000 interrupted.
                write(0, 1_000, 100),
                write(10_000, 51_000, 100),
                write(100_000, 3_000, 100),
                // Thread 101, one call, undisturbed; it lived a quarter of a second before.
                write(900_000, 2_000, 101),
                // Of another number of bytes: alike with none.
                write(950_000, 700, 101).moves(100),
                // Thread 102: two with one request each, one with four.
                direct(200_000, 2_000),
                direct(300_000, 9_500),
                direct(400_000, 6_000),
                // 103 passed through other functions than the calls of 100.
                write(500_000, 400, 103),
                // Not compared: failed, and had not ended.
                write(600_000, 1, 103).fails(-28, "ENOSPC", "/x"),
                write(700_000, 1, 103).pending(),
            ],
        ))
        .add(&sample::slices(&[
            (2, "syscall", "write", 10_000, 51_000, 0),
            (2, "sched", "preempted", 10_500, 50_000, 1),
            (3, "syscall", "write", 100_000, 3_000, 0),
            (3, "irq", "timer", 100_500, 2_000, 1),
            (6, "syscall", "pread64", 200_000, 2_000, 0),
            (6, "fs", "iomap_dio_rw", 200_005, 1_900, 1),
            (6, "sched", "io", 200_010, 1_000, 2),
            (6, "device", "sda", 200_010, 1_000, 3),
            // This one waited in the queue, and was woken once in between.
            (7, "syscall", "pread64", 300_000, 9_500, 0),
            (7, "fs", "iomap_dio_rw", 300_005, 9_400, 1),
            (7, "sched", "io", 300_020, 4_000, 2),
            (7, "block", "sda", 300_020, 1_000, 3),
            (7, "device", "sda", 301_020, 3_000, 3),
            (7, "sched", "io", 304_500, 3_000, 2),
            (7, "device", "sda", 304_500, 3_000, 3),
            (8, "syscall", "pread64", 400_000, 6_000, 0),
            (8, "fs", "iomap_dio_rw", 400_005, 5_900, 1),
            (8, "sched", "io", 400_010, 4_000, 2),
            (8, "device", "sda", 400_010, 4_000, 3),
            (9, "syscall", "write", 500_000, 400, 0),
            (9, "fs", "ext4_file_write_iter", 500_100, 200, 1),
        ]))
        .add(&block)
        .add(&bios)
        .add(&sample::lives(&[
            // Before the recording and beyond its end: as long as that.
            (100, 100, "main", START - 9_000_000_000, None),
            // 1,000,000 ns.
            (100, 101, "helper", START, Some(START + 1_000_000)),
            // Twice an id: 250,000 and 500,000 ns.
            (100, 102, "reader", START, Some(START + 250_000)),
            (100, 102, "reader", START + 250_000, Some(START + 750_000)),
            // 103 is not known to table processes.
        ]));
    let db = open(&files);
    // write of 4096 bytes, nothing below: the fastest took 1,000. 50,000 + 2,000 of thread 100,
    // 1,000 of 101. pread64 with one request: 7,500.
    assert_eq!(
        rows(
            &db,
            "SELECT tid, calls, total_ns, slowdown_ns, life_ns, round(score, 9) FROM contention \
             ORDER BY tid"
        ),
        [
            "100,3,55000,52000,4000000000,0.000013",
            "101,2,2700,1000,1000000,0.001",
            "102,3,17500,7500,750000,0.01",
            "103,1,400,0,,",
        ]
    );
    // The greatest score is the application's.
    assert_eq!(
        rows(&db, "SELECT tid FROM contention LIMIT 1"),
        ["102"],
        "the greatest first, what is not known last"
    );
}
