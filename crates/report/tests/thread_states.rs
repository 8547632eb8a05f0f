//! The wall time of threads in reports.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use fathom_query::{Db, Limits};
use fathom_report::{Report, ReportInput, to_html, to_screen, to_text};
use fathom_testkit::sample::{self, Call, Files};
use fathom_testkit::waits::{Wait, waits};

#[test]
fn the_wall_time_of_the_busiest_threads_adds_up() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = Files::new(dir.path());
    let s = 1_000_000_000;
    files
        .add(&sample::syscalls(1, &[Call::new("read", 0, 1000)]))
        .add(&sample::processes(&[
            (100, 100, "idle", None),
            (100, 101, "busy\u{1b}[5m<b>", None),
        ]))
        .add(&waits(&[
            Wait::new(100, 0, 39 * s / 10, "timer"),
            Wait::new(101, 0, s, "disk").woken(s / 2),
            Wait::new(101, 2 * s, 3 * s, "futex"),
        ]));
    let meta = sample::meta();
    let db = Db::open_parts(&meta, |table| files.parts(table), Limits::default()).unwrap();
    let input = ReportInput {
        meta: &meta,
        problems: &[],
        location: "run.fathom".into(),
        live: false,
        bytes: 1,
        syscall_bytes: 1,
    };
    let report = Report::build_from(&db, &input).unwrap();
    let threads = &report.layers.threads;
    assert_eq!(
        threads.iter().map(|thread| thread.tid).collect::<Vec<_>>(),
        [101, 100]
    );
    for thread in threads {
        let blocked: i64 = thread.blocked.iter().map(|blocked| blocked.time_ns).sum();
        assert_eq!(thread.wall_ns, 4 * s);
        let states = thread.running_ns + thread.runnable_ns + thread.unknown_ns;
        assert_eq!(states + blocked, thread.wall_ns);
    }
    let busy = &threads[0];
    assert_eq!((busy.running_ns, busy.runnable_ns), (2 * s, s / 2));
    assert_eq!(
        (busy.blocked[0].reason.as_str(), busy.blocked[0].time_ns),
        ("futex", s)
    );
    let title = "Wall time of the busiest threads";
    let text = to_text(&report, 120, false);
    let table = text.split(title).nth(1).unwrap();
    let line = table.lines().find(|line| line.contains("busy")).unwrap();
    assert!(!line.contains('\u{1b}'), "{line:?}");
    let numbers = "101  4.00 s     50 %      12 %     38 %        ·  futex 25 %, disk 12 %";
    assert!(line.ends_with(numbers), "{line:?}");
    let html = to_html(&report);
    assert!(
        html.contains(title)
            && html.contains("futex 25 %, disk 12 %")
            && !html.contains("<b>\u{1b}")
    );
    assert!(!to_screen(&report, 120, None, false).contains(title));
}
