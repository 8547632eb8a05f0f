//! Calls in spans of applications.
#![allow(clippy::unwrap_used)]

use fathom_model::batch::NULL_I32;
use fathom_model::tables::{SpanContextRow, SpanContextRows, SpanRow, SpanRows};
use fathom_model::{Batch, StrId, StringTable};
use fathom_query::output::{self, Format, Options};
use fathom_query::{Db, Limits};
use fathom_testkit::sample::{self, Call, Files, START};

/// A span; times are after START.
struct Span {
    id: &'static str,
    parent: &'static str,
    tid: i32,
    from_ns: i64,
    until_ns: i64,
    status: &'static str,
    kind: &'static str,
}

impl Span {
    /// A span of thread 101 of process 100.
    fn new(id: &'static str, from_ns: i64, until_ns: i64) -> Self {
        Self {
            id,
            parent: "",
            tid: 101,
            from_ns,
            until_ns,
            status: "unset",
            kind: "internal",
        }
    }

    fn under(mut self, parent: &'static str) -> Self {
        self.parent = parent;
        self
    }

    fn of(mut self, tid: i32) -> Self {
        self.tid = tid;
        self
    }

    fn kind(mut self, kind: &'static str) -> Self {
        self.kind = kind;
        self
    }

    fn failed(mut self) -> Self {
        self.status = "error";
        self
    }
}

/// Rows of table spans: the name of a span is its id without digits.
fn spans(all: &[Span]) -> Batch {
    let mut strings = StringTable::new();
    let mut rows = SpanRows::default();
    for span in all {
        let name = span.id.trim_end_matches(|c: char| c.is_ascii_digit());
        rows.push(SpanRow {
            trace_id: strings.intern(b"t"),
            span_id: strings.intern(span.id.as_bytes()),
            parent_span_id: match span.parent {
                "" => StrId::NULL,
                parent => strings.intern(parent.as_bytes()),
            },
            ts_ns: START + span.from_ns,
            dur_ns: span.until_ns - span.from_ns,
            pid: 100,
            tid: span.tid,
            service: strings.intern(b"shop"),
            name: strings.intern(name.as_bytes()),
            kind: strings.intern(span.kind.as_bytes()),
            status: strings.intern(span.status.as_bytes()),
            source: strings.intern(b"otlp"),
            ..SpanRow::default()
        });
    }
    rows.into_batch(strings)
}

fn rows(files: &Files, sql: &str) -> Vec<String> {
    let open = |table: &str| files.parts(table);
    let db = Db::open_parts(&sample::meta(), open, Limits::default()).unwrap();
    let mut out = Vec::new();
    let answer = db.query(sql).unwrap();
    output::write(answer, Format::Csv, &Options::default(), &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    text.lines().skip(1).map(str::to_string).collect()
}

/// The span of a call at each of the times, in thread 101 unless a thread is given.
fn of_calls(all: &[Span], calls: &[(i32, i64)]) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    let mut files = Files::new(dir.path());
    let call = |(tid, at_ns): &(i32, i64)| Call::new("read", *at_ns, 1).by(100, *tid);
    let calls: Vec<Call> = calls.iter().map(call).collect();
    files.add(&sample::syscalls(1, &calls)).add(&spans(all));
    rows(
        &files,
        "SELECT coalesce(span_id, '.') AS span FROM span_calls ORDER BY rid",
    )
}

const T: i32 = 101;

#[test]
fn the_innermost_span_of_the_thread() {
    let all = [
        Span::new("a", 100, 900),
        Span::new("b", 200, 500).under("a"),
        Span::new("c", 300, 400).under("b"),
        Span::new("d", 500, 600).under("a"),
        Span::new("other", 0, 1000).of(102),
    ];
    let times = [
        99, 100, 199, 200, 299, 300, 399, 400, 499, 500, 599, 600, 899, 900,
    ];
    let calls: Vec<_> = times.iter().map(|at| (T, *at)).collect();
    let found = of_calls(&all, &calls);
    let expected = ". a a b b c c b b d d a a .";
    assert_eq!(found.join(" "), expected);
    assert_eq!(of_calls(&all, &[(102, 350), (103, 350)]), ["other", "."]);
}

#[test]
fn begins_and_ends_at_one_time() {
    let all = [
        Span::new("b", 100, 200).under("a"),
        Span::new("a", 100, 300),
        Span::new("c", 200, 300).under("a"),
        Span::new("d", 300, 400),
        Span::new("empty", 350, 350).under("d"),
    ];
    let calls = [(T, 100), (T, 199), (T, 200), (T, 299), (T, 300), (T, 350)];
    assert_eq!(of_calls(&all, &calls), ["b", "b", "c", "c", "d", "d"]);
}

/// Tasks that take turns on one thread: which of them makes a call is not known.
#[test]
fn spans_of_one_thread_that_are_not_nested() {
    let overlapping = [Span::new("a", 100, 300), Span::new("b", 200, 400)];
    let calls = [(T, 150), (T, 250), (T, 350), (T, 450)];
    assert_eq!(of_calls(&overlapping, &calls), ["a", ".", "b", "."]);
    let inside = [
        Span::new("a", 100, 500),
        Span::new("b", 200, 400),
        Span::new("c", 250, 300).under("b"),
    ];
    let calls = [(T, 150), (T, 210), (T, 260), (T, 350), (T, 450)];
    assert_eq!(of_calls(&inside, &calls), ["a", ".", ".", ".", "a"]);
    let outlives = [
        Span::new("a", 100, 300),
        Span::new("b", 200, 400).under("a"),
    ];
    let calls = [(T, 150), (T, 250), (T, 350), (T, 450)];
    assert_eq!(of_calls(&outlives, &calls), ["a", "b", "b", "."]);
    // A span that overlaps the one before it has its own children all the same, but none that began
    // before it was alone.
    let children = [
        Span::new("a", 100, 300),
        Span::new("b", 200, 900),
        Span::new("early", 250, 400).under("b"),
        Span::new("late", 500, 800).under("b"),
        Span::new("inner", 600, 700).under("late"),
    ];
    let times = [250, 350, 450, 500, 650, 750, 850];
    let calls: Vec<_> = times.iter().map(|at| (T, *at)).collect();
    let found = of_calls(&children, &calls);
    assert_eq!(found, [".", ".", "b", "late", "inner", "late", "b"]);
    // Siblings that overlap in their parent.
    let siblings = [
        Span::new("p", 100, 900),
        Span::new("a", 200, 400).under("p"),
        Span::new("b", 300, 500).under("p"),
        Span::new("c", 600, 700).under("p"),
    ];
    let times = [150, 250, 350, 450, 550, 650];
    let calls: Vec<_> = times.iter().map(|at| (T, *at)).collect();
    let found = of_calls(&siblings, &calls);
    assert_eq!(found, ["p", "a", ".", ".", "p", "c"]);
}

#[test]
fn spans_without_a_thread() {
    let alone = [
        Span::new("a", 100, 300).of(NULL_I32),
        Span::new("b", 400, 500).of(NULL_I32),
    ];
    let calls = [(T, 99), (T, 100), (102, 299), (T, 300), (T, 450), (T, 500)];
    assert_eq!(of_calls(&alone, &calls), [".", "a", "a", ".", "b", "."]);
    // While a second one is open, also one that contains it, a call may belong to either.
    let two = [
        Span::new("a", 100, 900).of(NULL_I32),
        Span::new("b", 200, 300).under("a").of(NULL_I32),
        Span::new("c", 400, 500).of(102),
    ];
    let calls = [(T, 150), (T, 250), (T, 350), (T, 450), (102, 450), (T, 600)];
    assert_eq!(of_calls(&two, &calls), ["a", ".", "a", ".", "c", "a"]);
    // Another process has none of them.
    let dir = tempfile::tempdir().unwrap();
    let mut files = Files::new(dir.path());
    files
        .add(&sample::syscalls(1, &[Call::new("read", 150, 1).by(7, 7)]))
        .add(&spans(&alone));
    assert_eq!(rows(&files, "SELECT count(span_id) FROM span_calls"), ["0"]);
}

/// The contexts that threads of process 100 have published, from a time on.
fn contexts(all: &[(i32, i64, &str, &str)]) -> Batch {
    let mut strings = StringTable::new();
    let mut rows = SpanContextRows::default();
    for (tid, at_ns, state, span) in all {
        let id = |strings: &mut StringTable, text: &str| match *span {
            "" => StrId::NULL,
            _ => strings.intern(text.as_bytes()),
        };
        rows.push(SpanContextRow {
            ts_ns: START + at_ns,
            pid: 100,
            tid: *tid,
            state: strings.intern(state.as_bytes()),
            trace_id: id(&mut strings, "t"),
            span_id: id(&mut strings, span),
        });
    }
    rows.into_batch(strings)
}

/// A published context counts, whatever spans were open. Before that is known, and of other
/// threads, times tell.
#[test]
fn the_span_that_a_thread_has_published() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = Files::new(dir.path());
    let calls = [
        (T, 150),
        (T, 200),
        (T, 249),
        (T, 250),
        (T, 300),
        (T, 350),
        (T, 400),
        (102, 260),
        (102, 500),
    ];
    let call = |(tid, at_ns): &(i32, i64)| Call::new("read", *at_ns, 1).by(100, *tid);
    let calls: Vec<Call> = calls.iter().map(call).collect();
    files
        .add(&sample::syscalls(1, &calls))
        .add(&spans(&[
            Span::new("around", 100, 900),
            Span::new("b", 900, 950),
            Span::new("c", 200, 300).of(102),
        ]))
        .add(&contexts(&[
            (T, 200, "span", "b"),
            (T, 250, "span", "unseen"),
            (T, 300, "none", ""),
            (T, 350, "unreadable", ""),
            (T, 400, "unknown", ""),
        ]));
    assert_eq!(
        rows(
            &files,
            "SELECT coalesce(span_id, '.'), coalesce(span_name, '.'), coalesce(attribution, '.')
             FROM span_calls ORDER BY rid"
        ),
        [
            "around,around,time",
            "b,b,context",
            "b,b,context",
            "unseen,.,context",
            ".,.,context",
            "around,around,time",
            "around,around,time",
            "c,c,time",
            ".,.,.",
        ]
    );
    assert_eq!(
        rows(&files, "SELECT name, calls FROM by_span_name ORDER BY name"),
        ["around,3", "b,2", "c,1"]
    );
}

/// Spans without a duration, as a context alone makes them, contain nothing by time.
#[test]
fn spans_whose_durations_are_not_known() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = Files::new(dir.path());
    let mut strings = StringTable::new();
    let mut only = SpanRows::default();
    only.push(SpanRow {
        trace_id: strings.intern(b"t"),
        span_id: strings.intern(b"a"),
        ts_ns: START + 100,
        pid: 100,
        kind: strings.intern(b"unspecified"),
        status: strings.intern(b"unset"),
        source: strings.intern(b"context"),
        ..SpanRow::default()
    });
    let calls = [
        Call::new("read", 100, 5).by(100, T),
        Call::new("read", 150, 5).by(100, 102),
    ];
    files
        .add(&sample::syscalls(1, &calls))
        .add(&only.into_batch(strings))
        .add(&contexts(&[(T, 100, "span", "a")]));
    assert_eq!(
        rows(
            &files,
            "SELECT coalesce(span_id, '.') FROM span_calls ORDER BY rid"
        ),
        ["a", "."]
    );
    assert_eq!(
        rows(
            &files,
            "SELECT spans, total_ns, p50_ns, max_ns, calls, calls_ns FROM by_span_name"
        ),
        ["1,,,,1,5"]
    );
    assert_eq!(rows(&files, "SELECT count(*) FROM slow_spans"), ["0"]);
}

/// Each call has one row, with and without spans.
#[test]
fn every_call_has_one_row() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = sample::fixed(dir.path());
    let counts = "SELECT count(*), count(DISTINCT rid), count(span_id) FROM span_calls";
    assert_eq!(rows(&files, counts), ["1015,1015,0"]);
    let all: Vec<Span> = (0..50)
        .map(|i| Span::new("a", i * 1_000_000, i * 1_000_000 + 900_000).of(NULL_I32))
        .collect();
    files.add(&spans(&all));
    assert_eq!(rows(&files, "SELECT count(*) FROM span_calls"), ["1015"]);
}

#[test]
fn sums_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = Files::new(dir.path());
    let read = |at_ns, dur_ns| Call::new("read", at_ns, dur_ns).moves(4096).by(100, T);
    let [blocks, bios] = sample::device_requests(&[(Some(2), "vda", 210, 20), (None, "vda", 1, 1)]);
    files
        .add(&sample::syscalls(
            1,
            &[
                read(110, 5),
                read(210, 30),
                read(290, 5),
                read(450, 7),
                read(950, 11),
            ],
        ))
        .add(&sample::slices(&[
            (2, "syscall", "read", 210, 10, 0),
            (2, "block", "vda", 212, 20, 1),
        ]))
        .add(&blocks)
        .add(&bios)
        .add(&spans(&[
            Span::new("http1", 100, 400),
            Span::new("sql1", 200, 250).under("http1"),
            Span::new("http2", 400, 500).failed(),
            Span::new("idle", 600, 700),
        ]));
    let bytes = "SELECT sum(bytes) FROM bios WHERE rid = 2";
    let device_bytes = rows(&files, bytes).concat();
    assert_ne!(device_bytes, "");
    assert_eq!(
        rows(&files, "FROM by_span_name"),
        [
            "shop,http,internal,2,1,400,100,300,300,3,17,0,12288,0".to_owned(),
            "shop,idle,internal,1,0,100,100,100,100,0,0,0,0,0".to_owned(),
            format!("shop,sql,internal,1,0,50,50,50,50,1,30,0,4096,{device_bytes}"),
        ]
    );
    assert_eq!(
        rows(
            &files,
            "SELECT name, layer, calls, self_ns, round(share, 3) FROM by_span_layer"
        ),
        [
            "http,syscall,3,17,1.0",
            "sql,block,1,20,0.667",
            "sql,syscall,1,10,0.333"
        ]
    );
}

/// Of twenty requests two wait for the device: the layer is named, and the rest is as usual.
#[test]
fn slow_spans_differ_in_a_layer() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = Files::new(dir.path());
    let names = [
        "http1", "http2", "http3", "http4", "http5", "http6", "http7", "http8", "http9", "http10",
        "http11", "http12", "http13", "http14", "http15", "http16", "http17", "http18", "http19",
        "http20",
    ];
    let (mut all, mut calls, mut slices) = (Vec::new(), Vec::new(), Vec::new());
    for (i, name) in (0..).zip(names) {
        let (at, slow) = (i * 10_000, i % 10 == 7);
        let waited = if slow { 2_000 } else { 0 };
        all.push(Span::new(name, at, at + 100 + waited));
        calls.push(Call::new("read", at + 10, 40 + waited).by(100, T));
        slices.push((i + 1, "syscall", "read", at + 10, 40, 0));
        if slow {
            slices.push((i + 1, "block", "vda", at + 20, waited, 1));
        }
    }
    // Too few of a name, and one without calls.
    all.push(Span::new("sql1", 900_000, 900_500));
    files
        .add(&sample::syscalls(1, &calls))
        .add(&sample::slices(&slices))
        .add(&spans(&all));
    assert_eq!(
        rows(
            &files,
            "SELECT * REPLACE (round(share, 3) AS share) FROM slow_spans"
        ),
        [
            "shop,http,internal,block,10,2,0,2000,2000,1.0",
            "shop,http,internal,outside,10,2,60,60,0,0.0",
            "shop,http,internal,syscall,10,2,40,40,0,0.0",
        ]
    );
}

/// A program that serves an item and asks another one for it. The client's spans contain the fast calls.
#[test]
fn client_and_server_spans_of_one_name_are_apart() {
    let dir = tempfile::tempdir().unwrap();
    let mut files = Files::new(dir.path());
    let servers = [
        "item1", "item2", "item3", "item4", "item5", "item6", "item7", "item8", "item9", "item10",
    ];
    let clients = [
        "item11", "item12", "item13", "item14", "item15", "item16", "item17", "item18", "item19",
        "item20",
    ];
    let (mut all, mut calls) = (Vec::new(), Vec::new());
    for (i, (server, client)) in (0..).zip(servers.into_iter().zip(clients)) {
        let at = i * 10_000;
        all.push(Span::new(server, at, at + 1_000).kind("server"));
        calls.push(Call::new("read", at + 10, 300).by(100, T));
        all.push(Span::new(client, at + 2_000, at + 2_100).kind("client"));
        calls.push(Call::new("read", at + 2_010, 40).by(100, T));
    }
    files.add(&sample::syscalls(1, &calls)).add(&spans(&all));
    assert_eq!(
        rows(&files, "FROM by_span_layer"),
        [
            "shop,item,client,syscall,10,400,1.0",
            "shop,item,server,syscall,10,3000,1.0",
        ]
    );
    assert_eq!(
        rows(
            &files,
            "SELECT kind, layer, usual_spans, slow_spans, usual_ns, slow_ns, more_ns FROM slow_spans \
             ORDER BY kind, layer"
        ),
        [
            "client,outside,5,1,60,60,0",
            "client,syscall,5,1,40,40,0",
            "server,outside,5,1,700,700,0",
            "server,syscall,5,1,300,300,0",
        ]
    );
}
