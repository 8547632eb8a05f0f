//! Reports on a session with known contents.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;

use fathom_model::meta::{self, SessionMeta};
use fathom_query::output::{self, Format, Options};
use fathom_query::{Db, Limits};
use fathom_report::{Report, ReportInput, State, to_html, to_screen, to_text};
use fathom_session::{Session, SessionWriter, WriterOptions};
use fathom_testkit::expect_file;
use fathom_testkit::sample::{self, Call, Files, HOSTILE, Loss};

fn source<'a>(meta: &'a SessionMeta, problems: &'a [String]) -> ReportInput<'a> {
    ReportInput {
        meta,
        problems,
        location: "runs/it's redis.fathom".into(),
        live: false,
        bytes: 48_000,
        syscall_bytes: 10_150,
    }
}

fn db(meta: &SessionMeta, files: &Files) -> Db {
    Db::open_parts(meta, |table| files.parts(table), Limits::default()).unwrap()
}

fn build(meta: &SessionMeta, fill: impl Fn(&Path) -> Files) -> Report {
    let dir = tempfile::tempdir().unwrap();
    let files = fill(dir.path());
    Report::build_from(&db(meta, &files), &source(meta, &[])).unwrap()
}

fn fixed() -> Report {
    build(&sample::meta(), sample::fixed)
}

/// Compares with a stored text.
fn expect(name: &str, text: &str) {
    expect_file(Path::new("crates/report/tests/expected").join(name), text);
}

#[test]
fn text_at_two_widths() {
    let report = fixed();
    expect("report-100.txt", &to_text(&report, 100, false));
    expect("report-80.txt", &to_text(&report, 80, false));
    expect("screen-100.txt", &to_screen(&report, 100, None, false));
    expect("screen-80.txt", &to_screen(&report, 80, Some(23), false));
}

#[test]
fn a_session_on_disk_has_a_report() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("it's.fathom");
    let mut meta = sample::meta();
    let writer = SessionWriter::create(&path, meta.clone(), WriterOptions::default()).unwrap();
    let calls: Vec<_> = (0..1000)
        .map(|i| sample::Call::new("read", i, 50).on(1).moves(10))
        .collect();
    writer.append(sample::syscalls(1, &calls)).unwrap();
    writer.append(sample::files(&[(1, "/old")])).unwrap();
    writer.append(sample::files(&[(1, "/new")])).unwrap();
    meta.totals = meta::Totals {
        seen: 1000,
        stored: 1000,
        lost: 0,
        compat: 0,
        ..meta::Totals::default()
    };
    writer.finish(meta).unwrap();
    let session = Session::open(&path).unwrap();
    let db = Db::open(&session, Limits::default()).unwrap();
    let report = Report::build(&db, &session).unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    assert!(report.loss.balanced);
    assert_eq!(report.totals.bytes, 10_000);
    assert_eq!(report.files.by_time[0].path.as_deref(), Some("/new"));
    assert!(report.storage.bytes > 0 && report.storage.bytes_per_row.unwrap() > 0.0);
    assert_eq!(report.storage.location, path.display().to_string());
}

/// As a damaged capture has them: each can be, their sums exceed 64 bits.
#[test]
fn sums_that_exceed_their_type_fail_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.fathom");
    let writer = SessionWriter::create(&path, sample::meta(), WriterOptions::default()).unwrap();
    let calls: Vec<_> = (0..100)
        .map(|i| {
            let name = ["read", "write"][i as usize % 2];
            sample::Call::new(name, i, 1 << 59).on(1).moves(i64::MAX)
        })
        .collect();
    writer.append(sample::syscalls(1, &calls)).unwrap();
    writer.append(sample::files(&[(1, "/a")])).unwrap();
    let faults = [(1, "major", "read", Some(1 << 59)); 100];
    writer.append(sample::faults(&faults)).unwrap();
    writer.finish(sample::meta()).unwrap();
    let session = Session::open(&path).unwrap();
    let db = Db::open(&session, Limits::default()).unwrap();
    let report = Report::build(&db, &session).unwrap();
    assert_eq!(report.totals.calls, 100);
    assert_eq!(report.totals.bytes, i64::MAX);
    assert_eq!(report.totals.total_ns, i64::MAX);
    let mut looked = 0;
    for view in fathom_query::view_names() {
        for batch in db.query(&format!("SELECT * FROM {view}")).unwrap() {
            batch.unwrap_or_else(|e| panic!("{view}: {e}"));
        }
        looked += 1;
    }
    assert!(looked > 20, "{looked}");
}

#[test]
fn json_has_the_numbers() {
    let json = serde_json::to_value(fixed()).unwrap();
    assert_eq!(json["totals"]["calls"], 1027);
    assert_eq!(json["totals"]["errors"], 12);
    assert_eq!(json["totals"]["pending"], 1);
    assert_eq!(json["totals"]["bytes"], 500 * 4096 + 500 * 512 + 32768);
    assert_eq!(json["loss"]["seen"], 1027);
    assert_eq!(json["loss"]["stored"], 1015);
    assert_eq!(json["loss"]["lost"], 12);
    assert_eq!(json["loss"]["balanced"], true);
    assert_eq!(json["loss"]["places"][0]["syscall"], "write");
    assert_eq!(json["session"]["start_time"], "2025-03-01T12:00:00Z");
    assert_eq!(json["session"]["state"], "complete");
    assert_eq!(json["storage"]["bytes_per_row"], 10.0);
    // A file that may not be removed is a failure, one that a look-up does not find an answer.
    assert_eq!(json["totals"]["failures"], 4);
    assert_eq!(json["totals"]["answers"], 7);
    assert_eq!(json["errors"][0]["errno"], "EACCES");
    assert_eq!(json["errors"][0]["failed"], true);
    assert_eq!(json["errors"][1]["errno"], "ENOENT");
    assert_eq!(json["errors"][1]["failed"], false);
    assert_eq!(json["errors"][0]["example_path"], HOSTILE);
    let write = json["syscalls"]
        .as_array()
        .unwrap()
        .iter()
        .find(|c| c["name"] == "write")
        .unwrap();
    assert_eq!((&write["calls"], &write["lost"]), (&508.into(), &8.into()));
    assert_eq!(write["p50_ns"], 3490);
    assert_eq!(write["max_ns"], 70_000);
}

#[test]
fn parts_add_up_to_the_whole() {
    let report = fixed();
    let by = |calls: &[fathom_report::Calls]| {
        calls.iter().fold((0, 0, 0, 0, 0), |sum, c| {
            (
                sum.0 + c.calls,
                sum.1 + c.errors,
                sum.2 + c.bytes,
                sum.3 + c.total_ns,
                sum.4 + c.lost,
            )
        })
    };
    let totals = &report.totals;
    let whole = (
        totals.calls,
        totals.errors,
        totals.bytes,
        totals.total_ns,
        12,
    );
    assert_eq!(by(&report.syscalls), whole);
    assert_eq!(by(&report.classes), whole);
    let slices: i64 = report.timeline.slices.iter().map(|s| s.calls).sum();
    assert_eq!(slices, 1015);
    let covered = report.timeline.slice_ns * report.timeline.slices.len() as i64;
    assert!(covered >= report.session.duration_ns);
    let latencies: i64 = report
        .latency
        .iter()
        .flat_map(|l| &l.buckets)
        .map(|b| b.calls)
        .sum();
    assert_eq!(latencies, totals.calls);
}

#[test]
fn rankings_follow_their_measure() {
    let report = fixed();
    let paths = |files: &[fathom_report::FileActivity]| {
        files.iter().map(|f| f.file_id.unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(report.files.count, 4);
    assert_eq!(paths(&report.files.by_time), [4, 1, 2, 3]);
    assert_eq!(paths(&report.files.by_bytes), [1, 2]);
    assert_eq!(paths(&report.files.by_calls), [1, 2, 3, 4]);
    assert_eq!(report.threads.count, 3);
    assert_eq!(report.threads.by_time[0].tid, 100);
}

/// Each of 103 files takes 0.9 % of the time, one takes 5 %.
#[test]
fn many_small_files_count_together() {
    let mut paths: Vec<String> = (0..100).map(|i| format!("/srv/doc/{i}/readme")).collect();
    paths.extend((0..3).map(|i| format!("/usr/lib/{i}.so")));
    let paths = paths.iter().enumerate();
    let mut paths: Vec<(i64, &str)> = paths.map(|(i, path)| (i as i64 + 1, &**path)).collect();
    paths.push((200, "/srv/large"));
    let mut reads: Vec<Call> = (0..103)
        .map(|i| Call::new("read", i * 1000, 900).on(i + 1).moves(10))
        .collect();
    reads.push(Call::new("read", 200_000, 5_000).on(200).moves(4096));
    let report = build(&sample::meta(), |dir| {
        let mut files = Files::new(dir);
        files
            .add(&sample::files(&paths))
            .add(&sample::syscalls(1, &reads));
        files
    });
    let [all, large] = &report.costly[..] else {
        panic!("{:#?}", report.costly);
    };
    assert_eq!(all.name(), "103 paths, all but 3 in /srv/doc");
    assert_eq!((all.paths, all.elsewhere), (103, 3));
    assert_eq!((all.calls, all.bytes, all.total_ns), (103, 1030, 92_700));
    assert_eq!(large.name(), "/srv/large");
    assert_eq!((large.paths, &large.directory), (1, &None));
}

/// A program that reads through a mapping makes few calls.
#[test]
fn time_in_page_faults_is_time() {
    let report = build(&sample::meta(), |dir| {
        let mut files = Files::new(dir);
        files
            .add(&sample::files(&[(1, "/srv/db")]))
            .add(&sample::syscalls(
                1,
                &[
                    Call::new("openat", 0, 1_000).on(1),
                    Call::new("mmap", 10, 500).on(1),
                ],
            ))
            .add(&sample::faults(&[
                (1, "major", "read", Some(90_000)),
                (1, "minor", "read", Some(8_500)),
                (1, "minor", "read", None),
            ]));
        files
    });
    let faults = &report.costly[0];
    assert_eq!(
        (&*faults.syscall, &*faults.name()),
        ("page fault", "/srv/db")
    );
    assert_eq!(
        (faults.calls, faults.total_ns, faults.max_ns),
        (3, 98_500, 90_000)
    );
    assert_eq!(report.mapped.total_ns, 98_500);
    let busy: i64 = report.timeline.slices.iter().map(|s| s.total_ns).sum();
    assert_eq!(busy, 100_000);
    let screen = to_screen(&report, 100, None, false);
    let line = screen.lines().find(|line| line.starts_with("  page fault"));
    assert!(line.unwrap().contains("98.5 µs"), "{screen}");
    assert!(screen.contains("Time in calls and page faults"), "{screen}");
    let text = to_text(&report, 100, false);
    assert!(
        text.contains("page faults on mapped files took another 98.5 µs"),
        "{text}"
    );
}

/// The terminal has no links: the ids of requests lead on.
#[test]
fn requests_of_a_story_have_their_ids() {
    let report = fixed();
    let longest = report.why.facts.groups[0].longest_rid;
    let screen = to_screen(&report, 140, None, false);
    let words: Vec<&str> = screen.split_whitespace().collect();
    let text = words.join(" ");
    assert!(text.contains(&format!("[request {longest}]")), "{screen}");
}

#[test]
fn the_terminal_is_safe_from_names() {
    let mut meta = sample::meta();
    meta.command = vec![HOSTILE.into()];
    meta.host.name = "h\u{1b}]0;x\u{7}".into();
    let dir = tempfile::tempdir().unwrap();
    let files = sample::fixed(dir.path());
    let problems = ["part \u{1b}[2J\n is odd".to_string()];
    let report = Report::build_from(&db(&meta, &files), &source(&meta, &problems)).unwrap();
    let on_screen = |report: &Report, width, color| to_screen(report, width, Some(40), color);
    for lay_out in [
        &to_text as &dyn Fn(&Report, usize, bool) -> String,
        &on_screen,
    ] {
        let text = lay_out(&report, 100, false);
        let bad: Vec<char> = text
            .chars()
            .filter(|c| c.is_control() && *c != '\n')
            .collect();
        assert_eq!(bad, []);
        assert!(text.contains("\\x1b[2J\\n"), "{text}");
        // With colors only the sequences of the report itself remain.
        let mut colored = lay_out(&report, 100, true);
        assert!(colored.contains("\x1b[1m"));
        for own in ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[1;31m", "\x1b[32m"] {
            colored = colored.replace(own, "");
        }
        assert_eq!(colored, text);
    }
}

#[test]
fn the_page_is_safe_from_names() {
    let mut meta = sample::meta();
    meta.command = vec![HOSTILE.into(), "</title><script>1</script>".into()];
    meta.host.name = "\"><img src=x onerror=y>".into();
    let html = to_html(&build(&meta, sample::fixed));
    assert!(!html.contains("<script"));
    assert!(!html.contains("<img"));
    assert!(html.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert!(html.contains("&quot;&gt;&lt;img src=x onerror=y&gt;"));
    assert!(!html.chars().any(|c| c.is_control() && c != '\n'));
    assert!(html.contains("default-src 'none'"));
    for outside in ["http:", "https:", "src=\"", "href=\"", "@import", "url("] {
        assert!(!html.contains(outside), "{outside}");
    }
    // Every element that is opened is closed.
    for tag in [
        "table", "tr", "td", "th", "svg", "section", "ul", "li", "pre", "p", "h2", "h3", "text",
    ] {
        let opened =
            html.matches(&format!("<{tag}>")).count() + html.matches(&format!("<{tag} ")).count();
        assert_eq!(opened, html.matches(&format!("</{tag}>")).count(), "{tag}");
    }
}

#[test]
fn no_line_is_wider_than_asked_for() {
    let report = fixed();
    for width in [80, 90, 100, 120, 140] {
        let text = to_text(&report, width, false);
        let body = text.split("\nNext").next().unwrap();
        for line in body.lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
        let screen = to_screen(&report, width, None, false);
        // The commands to copy are not broken.
        let body = screen.split("\nfathom ").next().unwrap();
        for line in body.lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
        assert!(screen.lines().count() <= 40, "{screen}");
    }
}

#[test]
fn a_report_fits_the_screen_that_it_is_on() {
    let report = fixed();
    let lines = |text: &str| {
        let on_screen = |line: &str| line.chars().count().div_ceil(80).max(1);
        text.lines().map(on_screen).sum::<usize>()
    };
    let whole = to_screen(&report, 80, None, false);
    assert_eq!(to_screen(&report, 80, Some(lines(&whole)), false), whole);
    let mut before = lines(&whole);
    for height in [lines(&whole) - 1, 23] {
        let screen = to_screen(&report, 80, Some(height), true);
        let plain = to_screen(&report, 80, Some(height), false);
        assert!(lines(&plain) <= height, "{height}: {plain}");
        assert!(lines(&plain) < before, "{height}: {plain}");
        assert_eq!(screen.lines().count(), plain.lines().count());
        before = lines(&plain);
        // Parts that no other part may push off.
        for part in [
            "Why",
            "seen 1,027",
            "! 12 of 1,027",
            "Time by cause",
            "fathom why ",
        ] {
            assert!(plain.contains(part), "{part}: {plain}");
        }
    }
}

#[test]
fn loss_is_told_with_what_to_do() {
    let report = fixed();
    assert!(report.problems[0].starts_with("12 of 1,027 calls are not stored"));
    let text = to_text(&report, 100, false);
    assert!(
        text.contains("seen 1,027 = stored 1,015 + lost 12"),
        "{text}"
    );
    assert!(text.contains("lost at ring, CPU 1, write: 8"), "{text}");
    assert!(text.contains("--ring-mib 32 (it was 8)"), "{text}");

    // Counts that do not add up are said, not hidden.
    let mut meta = sample::meta();
    meta.totals.seen = 2000;
    let report = build(&meta, sample::fixed);
    assert!(!report.loss.balanced);
    assert!(
        report
            .problems
            .iter()
            .any(|p| p.starts_with("the counts do not add up"))
    );
    assert!(to_text(&report, 100, false).contains("seen 2,000 ≠ stored 1,015 + lost 12"));
}

#[test]
fn nothing_lost_is_said_too() {
    let mut meta = sample::meta();
    meta.totals = meta::Totals {
        seen: 1,
        stored: 1,
        lost: 0,
        compat: 0,
        ..meta::Totals::default()
    };
    let report = build(&meta, |dir| {
        let mut files = Files::new(dir);
        files.add(&sample::syscalls(
            1,
            &[sample::Call::new("read", 0, 5).moves(1)],
        ));
        files
    });
    assert!(report.problems.is_empty());
    assert!(to_text(&report, 100, false).contains("seen 1 = stored 1 + lost 0"));
}

#[test]
fn what_was_not_measured_is_not_shown() {
    let mut meta = sample::meta();
    meta.cost = meta::Cost::default();
    let report = build(&meta, sample::fixed);
    let text = to_text(&report, 100, false);
    assert!(text.contains("probes    not measured\n"), "{text}");
    assert!(text.contains("recorder  CPU time not measured\n"), "{text}");
    let json = serde_json::to_value(&report).unwrap();
    assert!(json["cost"]["probe_share"].is_null());
    assert!(to_html(&report).contains("<dd>not measured</dd>"));
}

#[test]
fn a_killed_recorder_and_32_bit_programs_are_named() {
    let mut meta = sample::meta();
    meta.state = meta::State::Recording;
    meta.clock.end_monotonic_ns = None;
    meta.clock.end_realtime_ns = None;
    meta.exit_status = None;
    meta.totals.seen = 900;
    meta.totals.compat = 3;
    let report = build(&meta, sample::fixed);
    assert_eq!(report.session.state, State::Killed);
    // Up to the last stored call: 3.992 s + 5.99 µs or 3.994 s + 0.7 µs.
    assert_eq!(report.session.duration_ns, 3_994_000_700);
    assert!(
        report
            .problems
            .iter()
            .any(|p| p.contains("ended without closing"))
    );
    assert!(
        report
            .problems
            .iter()
            .any(|p| p.starts_with("3 calls by 32-bit programs"))
    );
    let text = to_text(&report, 100, false);
    assert!(text.contains("recorder ended early"), "{text}");
    assert!(
        text.contains("seen is the recorder's count a moment before"),
        "{text}"
    );
}

#[test]
fn library_calls_and_requests_that_are_missing_are_named() {
    let mut meta = sample::meta();
    meta.totals.layers.user_calls_unseen = 12;
    let spans = meta.spans.insert(meta::Spans::default());
    (spans.gaps, spans.unfinished) = (3, 1234);
    let report = build(&meta, sample::fixed);
    let named = |words: &str| report.problems.iter().any(|p| p.contains(words));
    assert!(
        named("12 library calls have no row"),
        "{:?}",
        report.problems
    );
    assert!(
        named("3 times; 1,234 requests have no row"),
        "{:?}",
        report.problems
    );
}

#[test]
fn a_session_without_calls_has_a_report() {
    let mut meta = sample::meta();
    meta.totals = meta::Totals::default();
    let report = build(&meta, Files::new);
    assert_eq!(report.totals.calls, 0);
    let text = to_text(&report, 100, false);
    assert!(text.contains("seen 0 = stored 0 + lost 0"), "{text}");
    assert!(to_html(&report).contains("</html>"));
}

#[test]
fn losses_alone_have_a_report() {
    let mut meta = sample::meta();
    meta.totals = meta::Totals {
        seen: 5,
        stored: 0,
        lost: 5,
        compat: 0,
        ..meta::Totals::default()
    };
    let report = build(&meta, |dir| {
        let mut files = Files::new(dir);
        let loss = Loss {
            syscall: "pwrite64",
            pid: 7,
            file_id: 9,
            count: 5,
            errors: 0,
            bytes: 50,
            each_ns: 600,
        };
        files.add(&sample::losses(&[loss]));
        files
    });
    assert_eq!((report.totals.calls, report.totals.bytes), (5, 50));
    assert_eq!(report.syscalls[0].p50_ns, None);
    assert_eq!(report.files.by_time[0].path, None);
    assert!(to_text(&report, 100, false).contains("(file without a known path)"));
}

#[test]
fn the_commands_to_try_run() {
    let dir = tempfile::tempdir().unwrap();
    let files = sample::fixed(dir.path());
    let meta = sample::meta();
    let db = db(&meta, &files);
    let report = Report::build_from(&db, &source(&meta, &[])).unwrap();
    let mut run = 0;
    for next in &report.next {
        assert!(
            next.command.contains(r"'runs/it'\''s redis.fathom'"),
            "{}",
            next.command
        );
        let Some(sql) = &next.sql else { continue };
        assert!(next.command.contains(sql.as_str()));
        let rows = db.query(sql).unwrap();
        let count = output::write(rows, Format::Csv, &Options::default(), Vec::new()).unwrap();
        assert!(count > 0, "{sql}");
        run += 1;
    }
    assert!(run >= 3);
}
