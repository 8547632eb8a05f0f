//! Names of functions and sources as a hostile program has them, in every form of the findings.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use fathom_diagnose::Diagnosis;
use fathom_model::bytes::escape_invalid_utf8;
use fathom_model::tables::{FrameRow, FrameRows, StackRow, StackRows};
use fathom_model::{Batch, StrId, StringTable};
use fathom_query::{Db, Limits};
use fathom_report::{Report, diagnosis_to_text, to_html, to_sarif, to_text};
use fathom_session::{Session, SessionWriter, WriterOptions};
use fathom_testkit::sample::{self, Call, HOSTILE};

/// Calls that are made once every other millisecond.
const CALLS: i64 = 400;

/// As many stacks of one function each.
fn stacks() -> [Batch; 2] {
    let (mut stacks, mut frames, mut strings) = (
        StackRows::default(),
        FrameRows::default(),
        StringTable::new(),
    );
    let broken = escape_invalid_utf8(b"/opt/\xff\xfe\x80app");
    let mut text = |text: &str| strings.intern(text.as_bytes());
    for rid in 1..=CALLS {
        stacks.push(StackRow {
            rid,
            ts_ns: rid,
            pid: 100,
            tid: 100,
            // Of the examples, the second to the fourth, one has a source.
            stack_id: 1 + (rid - 1) % 4,
        });
    }
    for stack in 1..=4 {
        frames.push(FrameRow {
            stack_id: stack,
            object: text(&broken),
            file_offset: 16,
            function: text(&format!("f{stack}{HOSTILE}")),
            source: match stack {
                1 | 2 => text(&format!("src{stack}{HOSTILE}")),
                _ => StrId::NULL,
            },
            line: 7,
            ..Default::default()
        });
    }
    [
        stacks.into_batch(StringTable::new()),
        frames.into_batch(strings),
    ]
}

fn session(dir: &std::path::Path) -> (Session, Diagnosis) {
    let path = dir.join("s.fathom");
    let mut meta = sample::meta();
    let writer = SessionWriter::create(&path, meta.clone(), WriterOptions::default()).unwrap();
    // Syncs of a file that has nothing to be made durable.
    let calls: Vec<Call> = (0..CALLS)
        .map(|i| Call::new("fsync", i * 2_000_000, 1_900_000).on(1))
        .collect();
    writer.append(sample::syscalls(1, &calls)).unwrap();
    writer.append(sample::files(&[(1, "/log")])).unwrap();
    for batch in stacks() {
        writer.append(batch).unwrap();
    }
    meta.totals.seen = CALLS as u64;
    meta.totals.stored = CALLS as u64;
    writer.finish(meta).unwrap();
    let session = Session::open(&path).unwrap();
    let diagnosis = fathom_diagnose::diagnose(&session).unwrap();
    assert!(
        diagnosis.findings.iter().any(|f| !f.code.is_empty()),
        "{diagnosis:#?}"
    );
    (session, diagnosis)
}

/// No character that a terminal acts on but newlines.
fn is_plain(text: &str) -> bool {
    !text
        .chars()
        .any(|c| c != '\n' && fathom_model::escape::is_unsafe(c))
}

#[test]
fn text_is_one_line_a_place() {
    let dir = tempfile::tempdir().unwrap();
    let (session, diagnosis) = session(dir.path());
    for width in [40, 80, 200] {
        let text = diagnosis_to_text(&diagnosis, &["s.fathom"], 0, width, false, true);
        assert!(is_plain(&text), "{text}");
        // The newline within the name begins no line.
        assert!(!text.lines().any(|line| line.starts_with("'\"<script>")));
    }
    let wide = diagnosis_to_text(&diagnosis, &["s.fathom"], 0, 400, false, true);
    assert!(wide.contains("\\x1b[2J\\n'\"<script>"), "{wide}");
    let db = Db::open(&session, Limits::default()).unwrap();
    let report = Report::build(&db, &session).unwrap();
    assert!(
        report
            .findings
            .as_ref()
            .unwrap()
            .top
            .iter()
            .any(|f| !f.code.is_empty())
    );
    let text = to_text(&report, 100, false);
    assert!(is_plain(&text), "{text}");
    assert!(text.contains("in f2/srv/a\\x1b[2J"), "{text}");
    let html = to_html(&report);
    assert!(
        !html.contains("<script>alert") && html.contains("&lt;script&gt;alert"),
        "{html}"
    );
    assert!(
        !html.contains('\u{1b}') && !html.contains('\u{9b}'),
        "{html}"
    );
}

#[test]
fn programs_get_the_names_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let (_, diagnosis) = session(dir.path());
    let json = serde_json::to_string(&diagnosis).unwrap();
    assert!(!json.contains(|c: char| c < ' '), "{json}");
    let read: serde_json::Value = serde_json::from_str(&json).unwrap();
    let code = read["findings"]
        .as_array()
        .unwrap()
        .iter()
        .find_map(|f| f.get("code"));
    let function = code.unwrap()[0]["function"].as_str().unwrap();
    assert!(function.ends_with(HOSTILE), "{function:?}");
    assert_eq!(
        code.unwrap()[0]["object"],
        escape_invalid_utf8(b"/opt/\xff\xfe\x80app").as_ref()
    );

    let sarif = to_sarif(&diagnosis);
    let places: Vec<&serde_json::Value> = sarif["runs"][0]["results"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|result| result["locations"].as_array().into_iter().flatten())
        .collect();
    assert!(!places.is_empty());
    for place in places {
        let uri = &place["physicalLocation"]["artifactLocation"]["uri"];
        let uri = uri.as_str().unwrap();
        let plain = |c: char| c.is_ascii_alphanumeric() || "-._~/%:".contains(c);
        assert!(uri.chars().all(plain), "{uri}");
    }
}

/// Findings that were kept come from a file that any user may have written.
#[test]
fn text_of_findings_that_were_kept_is_no_better() {
    let dir = tempfile::tempdir().unwrap();
    let (_, mut diagnosis) = session(dir.path());
    let hostile = || HOSTILE.to_owned();
    for finding in &mut diagnosis.findings {
        (finding.title, finding.query, finding.advice) = (hostile(), hostile(), hostile());
        finding.caveats = vec![hostile()];
        let rule = finding.rule;
        let mut subject = finding.subject.clone();
        subject.path = Some(hostile());
        finding.also = vec![fathom_diagnose::Also { rule, subject }];
        finding.subject.comm = Some(hostile());
        finding.subject.path = Some(hostile());
        finding
            .evidence
            .iter_mut()
            .for_each(|e| e.name = hostile().into());
        for example in &mut finding.examples {
            (example.syscall, example.path) = (HOSTILE.into(), Some(HOSTILE.into()));
        }
    }
    for rule in &mut diagnosis.not_observable {
        rule.reason = hostile();
    }
    for width in [40, 200] {
        let text = diagnosis_to_text(&diagnosis, &["s.fathom"], 0, width, false, true);
        assert!(is_plain(&text), "{text}");
        assert!(!text.lines().any(|line| line.starts_with("'\"<script>")));
    }
    let sarif = serde_json::to_string(&to_sarif(&diagnosis)).unwrap();
    assert!(!sarif.contains(|c: char| c < ' '), "{sarif}");
}
