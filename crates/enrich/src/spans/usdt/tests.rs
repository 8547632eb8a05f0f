//! Threads that come by static probes.

use fathom_model::StrId;
use fathom_model::protocols::Protocols;

use super::*;
use crate::files::{Files, Limit};
use crate::tasks::Tasks;

const QUERY: [u16; 2] = [0, 1];
const PHASE: [u16; 2] = [2, 3];
const SQL: [u16; 2] = [4, 5];

/// Threads of a program with the probes above: places of the begin and of the end.
struct Program {
    spans: Spans,
    known: Known,
    at_ns: u64,
    passed: u64,
}

impl Program {
    fn new(plain: bool) -> Self {
        let limit = Limit {
            files: 10,
            bytes: 1 << 20,
        };
        let mut spans = Spans::new(Protocols::default(), plain);
        let places = [
            (QUERY, "query", ""),
            (PHASE, "phase", "text"),
            (SQL, "sql", "sql"),
        ];
        for (span, (at, name, text)) in places.into_iter().enumerate() {
            for (ends, place) in at.into_iter().enumerate() {
                let record = UsdtPlaceRecord {
                    kind: 0,
                    ends: ends as u8,
                    place,
                    span: span as u16,
                    reserved: 0,
                    ts_ns: 0,
                    provider_len: 0,
                    name_len: 0,
                    text_len: 0,
                    reserved2: 0,
                };
                spans.usdt_place(&record, [b"app", name.as_bytes(), text.as_bytes()]);
            }
        }
        Self {
            spans,
            known: Known {
                files: Files::new(limit),
                tasks: Tasks::new(10),
            },
            at_ns: 0,
            passed: 0,
        }
    }

    /// `depth`: of the stack, whose pointer is the lower the deeper.
    fn passes(&mut self, tid: u32, place: u16, depth: u64, text: &str) -> &mut Self {
        self.at_ns += 10;
        self.passed += 1;
        let record = UsdtRecord {
            kind: 0,
            cut: 0,
            place,
            tid,
            ts_ns: self.at_ns,
            sp: (1 << 40) - depth,
            pid: 1,
            text_len: text.len() as u32,
        };
        self.spans.usdt(&record, text.as_bytes(), &mut self.known);
        self
    }

    fn begins(&mut self, tid: u32, [begin, _]: [u16; 2], depth: u64) -> &mut Self {
        self.passes(tid, begin, depth, "")
    }

    fn ends(&mut self, tid: u32, [_, end]: [u16; 2], depth: u64) -> &mut Self {
        self.passes(tid, end, depth, "")
    }

    fn text(&self, id: StrId) -> String {
        String::from_utf8(self.spans.strings.table.get(id).to_vec()).unwrap()
    }

    /// Thread, name, begin, and end of each span, and the name of its parent. Each record has begun a
    /// span, ended one, or is counted.
    fn rows(&mut self) -> Vec<String> {
        self.spans.usdt_lost();
        let counts = self.spans.counts;
        assert_eq!(counts.usdt, self.passed);
        assert_eq!(counts.usdt, 2 * counts.usdt_rows + counts.usdt_unpaired);
        let rows = &self.spans.rows;
        let row = |at: usize| {
            let parent = rows.parent_span_id[at];
            let above = (0..rows.len()).find(|other| rows.span_id[*other] == parent);
            let above = above.map_or(String::new(), |above| {
                assert_eq!(rows.trace_id[above], rows.trace_id[at]);
                format!(" in {}", self.text(rows.name[above]))
            });
            let (began, taken) = (rows.ts_ns[at], rows.dur_ns[at]);
            let name = self.text(rows.name[at]);
            format!(
                "{} {name} {began} to {}{above}",
                rows.tid[at],
                began + taken
            )
        };
        (0..rows.len()).map(row).collect()
    }

    fn unpaired(&self) -> u64 {
        self.spans.counts.usdt_unpaired
    }
}

#[test]
fn what_begins_within_a_span_is_its_child() {
    let mut program = Program::new(false);
    program.begins(1, QUERY, 0).begins(1, PHASE, 10);
    program.ends(1, PHASE, 10).ends(1, QUERY, 0);
    assert_eq!(
        program.rows(),
        ["1 phase 20 to 30 in query", "1 query 10 to 40"]
    );
    assert_eq!(program.unpaired(), 0);
}

#[test]
fn threads_have_spans_of_their_own() {
    let mut program = Program::new(false);
    program.begins(1, QUERY, 0).begins(2, QUERY, 0);
    program.ends(1, QUERY, 0).ends(2, QUERY, 0);
    assert_eq!(program.rows(), ["1 query 10 to 30", "2 query 20 to 40"]);
}

/// A function that calls itself: the end belongs to the latest begin.
#[test]
fn spans_of_one_kind_nest() {
    let mut program = Program::new(false);
    program.begins(1, QUERY, 0).begins(1, QUERY, 10);
    program.ends(1, QUERY, 10).ends(1, QUERY, 0);
    assert_eq!(
        program.rows(),
        ["1 query 20 to 30 in query", "1 query 10 to 40"]
    );
}

/// The frame of a span that begins again from the same depth is gone, and what began in it.
#[test]
fn spans_that_longjmp_left_are_counted() {
    let mut program = Program::new(false);
    program.begins(1, QUERY, 10).begins(1, PHASE, 20);
    program.begins(1, QUERY, 10).ends(1, QUERY, 10);
    assert_eq!(program.rows(), ["1 query 30 to 40"]);
    assert_eq!(program.unpaired(), 2);
}

#[test]
fn ends_without_a_begin_are_counted() {
    let mut program = Program::new(false);
    program.ends(1, QUERY, 0).begins(1, PHASE, 0);
    program.ends(1, QUERY, 0).ends(1, PHASE, 0);
    assert_eq!(program.rows(), ["1 phase 20 to 40"]);
    assert_eq!(program.unpaired(), 2);
}

#[test]
fn places_that_are_not_known_are_counted() {
    let mut program = Program::new(false);
    program.passes(1, 9, 0, "").passes(1, u16::MAX, 0, "");
    assert_eq!(program.rows(), [""; 0]);
    assert_eq!(program.unpaired(), 2);
}

#[test]
fn a_thread_that_ends_leaves_its_spans() {
    let mut program = Program::new(false);
    program.begins(1, QUERY, 0).begins(2, QUERY, 0);
    program.spans.thread_ended(1);
    program.ends(1, QUERY, 0).ends(2, QUERY, 0);
    assert_eq!(program.rows(), ["2 query 20 to 40"]);
    assert_eq!(program.unpaired(), 2);
}

/// A thread that never ends a span, ever deeper.
#[test]
fn open_spans_of_a_thread_are_bounded() {
    let mut program = Program::new(false);
    for depth in 0..MAX_OF_THREAD as u64 + 5 {
        program.begins(1, QUERY, depth);
    }
    assert_eq!(program.unpaired(), 5);
    assert_eq!(program.spans.usdt.count, MAX_OF_THREAD);
}

#[test]
fn texts_name_spans_and_statements_are_digests() {
    let of = |plain| {
        let mut program = Program::new(plain);
        program.passes(1, PHASE[0], 0, "sort").ends(1, PHASE, 0);
        program
            .passes(1, SQL[0], 0, "select 'secret'")
            .ends(1, SQL, 0);
        let rows = program.rows();
        let attributes: Vec<String> = (program.spans.rows.attributes.iter())
            .map(|id| program.text(*id))
            .collect();
        (rows, attributes)
    };
    let phase = r#"{"usdt.provider":"app","usdt.span":"phase"}"#;
    let sql = r#"{"usdt.provider":"app","usdt.span":"sql"}"#;
    let with = r#"{"usdt.provider":"app","usdt.span":"sql","db.query.text":"select 'secret'"}"#;
    let (rows, attributes) = of(false);
    assert_eq!(rows[0], "1 phase sort 10 to 20");
    assert!(!rows[1].contains("secret"), "{rows:?}");
    assert_eq!(attributes, [phase, sql]);
    assert_eq!(of(true).1, [phase, with]);
}
