//! Paths over sessions with known contents.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use fathom_model::layers::Layer;
use fathom_model::meta::{RecordedLayer, SessionMeta};
use fathom_path::{CriticalPath, PathError, Scope, Segment};
use fathom_query::{Db, Limits, PathCall, QueryError};
use fathom_testkit::sample::{self, Call, Files, START};
use fathom_testkit::waits::{self, Block, Wait};

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

fn gather(files: &Files, scope: Scope) -> Result<CriticalPath, PathError> {
    let meta = meta();
    let db = Db::open_parts(&meta, |table| files.parts(table), Limits::default()).unwrap();
    CriticalPath::gather(&db, &meta, scope)
}

fn window(tid: i64, from: i64, until: i64) -> Scope {
    Scope::Thread {
        tid,
        from_ns: Some(START + from),
        until_ns: Some(START + until),
    }
}

fn text(segment: &Segment) -> String {
    let show = |name: &Option<fathom_path::Name>| {
        name.as_ref()
            .map(|name| format!(" {name}"))
            .unwrap_or_default()
    };
    let block = segment.block.as_ref();
    format!(
        "{}+{} t{} {}{}{}{}{}{}",
        segment.ts_ns - START,
        segment.dur_ns,
        segment.tid,
        segment.state.name(),
        show(&segment.reason),
        show(&segment.syscall),
        segment
            .rid
            .map(|rid| format!(" rid {rid}"))
            .unwrap_or_default(),
        segment
            .culprit
            .as_ref()
            .map(|c| format!(" <- {}", c.describe()))
            .unwrap_or_default(),
        block
            .and_then(|block| block.part)
            .map(|part| format!(" {part:?}"))
            .unwrap_or_default(),
    )
}

fn texts(path: &CriticalPath) -> Vec<String> {
    let mut at = path.from_ns;
    for segment in &path.segments {
        assert_eq!(segment.ts_ns, at);
        at = segment.until_ns();
    }
    assert_eq!(at, path.until_ns);
    let sum: i64 = path.totals.iter().map(|total| total.dur_ns).sum();
    assert_eq!(sum, path.dur_ns);
    path.segments.iter().map(text).collect()
}

/// A server (thread 100) waits for its helper (101), which syncs; a third thread (102) delays the
/// helper at a lock; a waker (555) is not recorded.
fn server(dir: &std::path::Path) -> Files {
    let mut files = Files::new(dir);
    files
        .add(&sample::lives(&[
            (100, 100, "server", START, None),
            (100, 101, "helper", START + 1, None),
            (100, 102, "third", START, Some(START + 900_000)),
            (555, 555, "stranger", START, None),
        ]))
        .add(&sample::files(&[(1, "/srv/log")]))
        .add(&sample::syscalls(
            1,
            &[
                Call::new("fdatasync", 20_000, 60_000).on(1).by(100, 101),
                Call::new("read", 200_000, 10_000).by(100, 100),
                Call::new("write", 12_000, 2_000).by(100, 102),
                Call::new("IORING_OP_FSYNC", 12_000, 2_000).by(100, 102),
            ],
        ))
        .add(&waits::waits(&[
            Wait::new(100, 0, 1, "timer").by("timer", "timer"),
            Wait::new(100, 5_000, 100_000, "futex")
                .woken(95_000)
                .by_thread(101, "helper"),
            Wait::new(101, 10_000, 19_000, "lock")
                .woken(18_000)
                .by_thread(102, "third"),
            Wait::new(101, 21_000, 79_000, "disk")
                .woken(78_000)
                .by_block(22_000)
                .within(1, "fdatasync"),
            Wait::new(102, 0, 11_000, "cpu"),
            Wait::new(100, 201_000, 209_000, "pipe")
                .by_thread(555, "stranger")
                .within(2, "read"),
        ]))
        .add(&waits::blocks(&[
            Block {
                tid: 101,
                rid: Some(1),
                queued_ns: 22_000,
                issued_ns: 60_000,
                completed_ns: 77_500,
            },
            Block {
                tid: 9,
                rid: None,
                queued_ns: 22_000,
                issued_ns: 90_000,
                completed_ns: 99_000,
            },
        ]));
    files
}

#[test]
fn a_helper_that_syncs() {
    let dir = tempfile::tempdir().unwrap();
    let path = gather(&server(dir.path()), window(100, 1_000, 110_000)).unwrap();
    assert_eq!(
        texts(&path),
        [
            "1000+4000 t100 running",
            "5000+5000 t101 running",
            "10000+1000 t102 runnable cpu",
            "11000+1000 t102 running",
            "12000+2000 t102 running write rid 3",
            "14000+4000 t102 running",
            "18000+1000 t101 runnable cpu",
            "19000+1000 t101 running",
            "20000+1000 t101 running fdatasync rid 1",
            "21000+1000 t101 unknown before_request fdatasync rid 1",
            "22000+38000 t101 blocked disk fdatasync rid 1 <- vda Queue",
            "60000+17500 t101 blocked disk fdatasync rid 1 <- vda Device",
            "77500+500 t101 blocked disk fdatasync rid 1 <- vda Completion",
            "78000+1000 t101 runnable cpu fdatasync rid 1",
            "79000+1000 t101 running fdatasync rid 1",
            "80000+15000 t101 running",
            "95000+5000 t100 runnable cpu",
            "100000+10000 t100 running",
        ]
    );
    assert_eq!(
        path.headline,
        "server (TID 100): 109 µs, 38.0 µs (35 %) of it with block requests in the queue of vda."
    );
    let sync = &path.segments[10];
    assert_eq!(sync.depth, 1);
    assert_eq!(sync.comm.as_ref().unwrap().as_str(), "helper");
    assert_eq!(sync.process.as_ref().unwrap().as_str(), "server");
    let because = sync.because.as_ref().unwrap();
    assert_eq!(
        (because.tid, because.reason.as_ref().unwrap().as_str()),
        (100, "futex")
    );
    assert!(path.notes.is_empty(), "{:?}", path.notes);
}

#[test]
fn requests_and_windows_of_sessions() {
    let dir = tempfile::tempdir().unwrap();
    let files = server(dir.path());
    let path = gather(&files, Scope::Request(2)).unwrap();
    assert_eq!(
        texts(&path),
        [
            "200000+1000 t100 running read rid 2",
            "201000+8000 t100 blocked pipe read rid 2 <- stranger (TID 555)",
            "209000+1000 t100 running read rid 2",
        ]
    );
    assert_eq!(
        path.headline,
        "Request 2 of server (TID 100) took 10.0 µs, 8.00 µs (80 %) of it blocked (pipe) until \
         stranger (TID 555) woke it."
    );
    // The thread ended before the recording did.
    let whole = gather(
        &files,
        Scope::Thread {
            tid: 102,
            from_ns: None,
            until_ns: None,
        },
    )
    .unwrap();
    assert_eq!((whole.from_ns, whole.until_ns), (START, START + 900_000));
    texts(&whole);
    let error = |scope| gather(&files, scope).unwrap_err().to_string();
    assert!(error(Scope::Request(77)).starts_with("no request 77 in this session"));
    assert!(error(window(7, 0, 10)).starts_with("no thread 7 in this session"));
    assert!(error(window(100, -20, -10)).starts_with("the window is outside of the recording"));
    assert!(error(Scope::Request(4)).starts_with("request 4 is an operation of io_uring"));
    let db = Db::open_parts(&meta(), |table| files.parts(table), Limits::default()).unwrap();
    let without = CriticalPath::gather(&db, &sample::meta(), Scope::Request(1));
    assert!(without.unwrap_err().to_string().contains("--layers sched"));
}

/// The rows of table function `critical_path` are the segments of the path.
#[test]
fn rows_for_sql() {
    let dir = tempfile::tempdir().unwrap();
    let files = server(dir.path());
    let db = Db::open_parts(&meta(), |table| files.parts(table), Limits::default()).unwrap();
    let rows = fathom_path::sql_rows(&db, &meta(), PathCall::Request(2)).unwrap();
    assert_eq!(rows.iter().map(|row| row.dur_ns).sum::<i64>(), 10_000);
    let call = PathCall::Thread {
        tid: 100,
        from_ns: Some(START + 1_000),
        until_ns: Some(START + 110_000),
    };
    let rows = fathom_path::sql_rows(&db, &meta(), call).unwrap();
    assert_eq!(rows.iter().map(|row| row.dur_ns).sum::<i64>(), 109_000);
    let path = gather(&files, window(100, 1_000, 110_000)).unwrap();
    assert_eq!(rows.len(), path.segments.len());
    let device = &rows[11];
    assert_eq!(
        (device.ts_ns, device.depth, device.tid, device.state),
        (START + 60_000, 1, 101, "blocked")
    );
    assert_eq!(device.comm.as_deref(), Some("helper"));
    assert_eq!(device.process.as_deref(), Some("server"));
    assert_eq!(device.reason.as_deref(), Some("disk"));
    assert_eq!(
        (device.syscall.as_deref(), device.rid),
        (Some("fdatasync"), Some(1))
    );
    assert_eq!(
        (
            device.culprit_kind,
            device.culprit.as_deref(),
            device.culprit_tid
        ),
        (Some("block_request"), Some("vda"), None)
    );
    assert_eq!(device.block_ts_ns, Some(START + 22_000));
    assert_eq!(
        (device.block_device.as_deref(), device.block_op.as_deref()),
        (Some("vda"), Some("write"))
    );
    assert_eq!(
        (device.block_bytes, device.block_part),
        (Some(4096), Some("device"))
    );
    assert_eq!(
        (device.because_tid, device.because_reason.as_deref()),
        (Some(100), Some("futex"))
    );
    let error = fathom_path::sql_rows(&db, &meta(), PathCall::Request(77)).unwrap_err();
    assert!(matches!(&error, QueryError::CriticalPath(text) if text.starts_with("no request 77")));
}

/// A thread that was blocked when the recording began, and one whose return was not seen.
#[test]
fn what_was_not_seen_is_not_running() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = Files::new(dir.path());
    files
        .add(&sample::lives(&[
            (100, 100, "old", START - 5, None),
            (101, 101, "new", START + 10, None),
        ]))
        .add(&waits::waits(&[
            Wait::new(100, 500, 600, "pipe"),
            Wait::new(101, 100, 0, "pipe").open(),
            Wait::new(101, 150, 160, "pipe"),
            Wait::new(101, 400, 500, "pipe"),
        ]));
    let path = gather(&files, window(100, 0, 1_000)).unwrap();
    assert_eq!(texts(&path)[0], "0+500 t100 unknown unseen_start");
    assert_eq!(texts(&path)[2], "600+400 t100 running");
    // A call proves that it ran, but for a call that it waited in already.
    files.add(&sample::syscalls(1, &[Call::new("read", 450, 5)]));
    let path = gather(&files, window(100, 0, 1_000)).unwrap();
    assert_eq!(
        texts(&path)[..4],
        [
            "0+450 t100 unknown unseen_start",
            "450+5 t100 running read rid 1",
            "455+45 t100 running",
            "500+100 t100 blocked pipe <- unknown",
        ]
    );
    let path = gather(&files, window(101, 0, 120)).unwrap();
    assert_eq!(
        texts(&path),
        [
            "0+10 t101 absent before_start",
            "10+90 t101 running",
            "100+20 t101 unknown unseen_return"
        ]
    );
    // Its next row proves that it had returned, although the window does not touch that row.
    let path = gather(&files, window(101, 200, 300)).unwrap();
    assert_eq!(texts(&path), ["200+100 t101 running"]);
}
