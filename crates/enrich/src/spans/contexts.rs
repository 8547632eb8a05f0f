//! Span contexts that threads have published (`record --otel-context`): rows of table `span_contexts`
//! for their changes, and a row of table `spans` for each span that was active in one of them. If the
//! program exports the span as well, importing it replaces that row.
//!
//! Ids, attributes, and what the process says of itself are the program's: any of it may be anything.

use std::collections::VecDeque;
use std::sync::Arc;

use fathom_model::abi::{
    CONTEXT_NONE, CONTEXT_SPAN, CONTEXT_UNREADABLE, ContextProcessRecord, ContextRecord, TASK_EXEC,
    TASK_EXIT, TASK_FORK, TaskRecord,
};
use fathom_model::batch::{Batch, NULL_I32, NULL_I64};
use fathom_model::bytes::printable;
use fathom_model::tables::{SpanContextRow, SpanContextRows, SpanRow};
use fathom_model::{StrId, StringTable};
use hashbrown::{HashMap, HashSet};

use super::{Spans, put};
use crate::strings::{Known, Strings};
use crate::{id, signed};

/// Column `source`.
const SOURCE: &str = "context";
/// Threads whose latest context is remembered.
const MAX_THREADS: usize = 1 << 16;
/// Processes of which it is remembered what they say, and bytes of that.
const MAX_PROCESSES: usize = 1 << 14;
const MAX_PROCESS_BYTES: usize = 16 << 20;
/// Half of the spans that are remembered. A span is forgotten when as many others were used after it.
const MAX_SPANS: usize = 1 << 17;
/// Bytes of the attributes of half of the spans.
const MAX_ATTRIBUTES: usize = 16 << 20;
/// Spans that wait for what their process says.
const MAX_WAITING: usize = 1 << 14;
/// How long they wait: the recorder looks for it from the first context on.
const WAIT_NS: u64 = 2_000_000_000;
/// Attributes that name a span: the route of a request, and in front of it its method.
const ROUTES: [&str; 2] = ["http.route", "http_route"];
const METHODS: [&str; 4] = [
    "http.request.method",
    "http_request_method",
    "http.method",
    "http_method",
];

/// Trace and span.
type Ids = ([u8; 16], [u8; 8]);

/// A span that has been seen.
#[derive(Clone, Debug)]
struct Seen {
    first_ns: u64,
    /// The process in which it was seen first.
    pid: u32,
    attributes: Box<[u8]>,
}

/// A row that waits.
#[derive(Clone, Debug)]
struct Waiting {
    ids: Ids,
    pid: u32,
    at_ns: u64,
    seen: Seen,
}

/// The service of a process, and the names of its attributes.
#[derive(Debug, Default)]
struct Process {
    service: String,
    /// Names of attributes.
    keys: Vec<String>,
}

#[derive(Debug, Default)]
pub(super) struct Contexts {
    /// The latest context of a thread, if it is known: [`CONTEXT_NONE`] or [`CONTEXT_SPAN`].
    threads: HashMap<u32, (u32, Ids)>,
    processes: HashMap<u32, Arc<Process>>,
    process_bytes: usize,
    /// Spans that were used lately, and those before them.
    young: HashMap<Ids, Seen>,
    /// Bytes of the attributes of `young`.
    young_bytes: usize,
    old: HashMap<Ids, Seen>,
    waiting: VecDeque<Waiting>,
    rows: SpanContextRows,
    strings: Strings,
}

impl Contexts {
    pub(super) fn pending_rows(&self) -> usize {
        self.rows.len()
    }

    pub(super) fn pending_bytes(&self) -> usize {
        self.strings.table.bytes()
    }

    pub(super) fn take(&mut self) -> Batch {
        let rows = std::mem::take(&mut self.rows);
        rows.into_batch(self.strings.take(StringTable::new()))
    }

    fn row(&mut self, ts_ns: u64, (pid, tid): (u32, u32), state: &'static str, ids: Option<Ids>) {
        let strings = &mut self.strings;
        let (trace_id, span_id) = match ids {
            Some((trace, span)) => (
                strings.text(hex(&trace).as_bytes()),
                strings.text(hex(&span).as_bytes()),
            ),
            None => (StrId::NULL, StrId::NULL),
        };
        self.rows.push(SpanContextRow {
            ts_ns: signed(ts_ns),
            pid: id(pid),
            tid: id(tid),
            state: strings.word(state),
            trace_id,
            span_id,
        });
    }

    /// The span, if it is remembered.
    fn seen(&mut self, ids: &Ids) -> Option<&mut Seen> {
        if !self.young.contains_key(ids) {
            let seen = self.old.remove(ids)?;
            self.remember(*ids, seen);
        }
        self.young.get_mut(ids)
    }

    fn remember(&mut self, ids: Ids, seen: Seen) {
        if self.young.len() >= MAX_SPANS || self.young_bytes >= MAX_ATTRIBUTES {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
        self.young_bytes += seen.attributes.len();
        self.young.insert(ids, seen);
    }
}

impl Spans {
    /// The context of a thread has changed.
    pub(crate) fn context(&mut self, record: &ContextRecord, attributes: &[u8], known: &mut Known) {
        self.counts.contexts += 1;
        let ids = ids(record);
        let kind = u32::from(record.context);
        let contexts = &mut self.contexts;
        let thread = (record.pid, record.tid);
        let (state, ids) = match kind {
            CONTEXT_SPAN => ("span", Some(ids)),
            CONTEXT_NONE => ("none", None),
            CONTEXT_UNREADABLE => ("unreadable", None),
            _ => ("unknown", None),
        };
        // Its attributes may have changed, and not the span.
        let now = (kind, ids.unwrap_or_default());
        let before = match kind {
            CONTEXT_SPAN | CONTEXT_NONE => {
                if contexts.threads.len() >= MAX_THREADS {
                    contexts.threads.clear();
                }
                contexts.threads.insert(record.tid, now)
            }
            _ => contexts.threads.remove(&record.tid),
        };
        if before != Some(now) {
            contexts.row(record.ts_ns, thread, state, ids);
        }
        if let Some(ids) = ids {
            self.active(ids, record, attributes);
        }
        self.settle(record.ts_ns.saturating_add(record.dur_ns), known);
    }

    /// A thread was in this span.
    fn active(&mut self, ids: Ids, record: &ContextRecord, attributes: &[u8]) {
        let contexts = &mut self.contexts;
        let at_ns = record.ts_ns;
        let seen = match contexts.seen(&ids) {
            Some(seen) => {
                // Calls of several threads do not come in the order in which they began.
                let earlier = at_ns < seen.first_ns;
                let more = !attributes.is_empty() && *seen.attributes != *attributes;
                if !earlier && !more {
                    return;
                }
                if earlier {
                    (seen.first_ns, seen.pid) = (at_ns, record.pid);
                }
                if more {
                    seen.attributes = attributes.into();
                }
                let seen = seen.clone();
                contexts.young_bytes += attributes.len();
                seen
            }
            None => {
                let seen = Seen {
                    first_ns: at_ns,
                    pid: record.pid,
                    attributes: attributes.into(),
                };
                contexts.remember(ids, seen.clone());
                self.counts.context_spans += 1;
                seen
            }
        };
        contexts.waiting.push_back(Waiting {
            ids,
            pid: record.pid,
            at_ns: record.ts_ns.saturating_add(record.dur_ns),
            seen,
        });
    }

    /// Makes the rows of spans that have waited long enough, or whose process has said what it is.
    pub(crate) fn settle(&mut self, now_ns: u64, known: &mut Known) {
        while let Some(first) = self.contexts.waiting.front() {
            let said = self.contexts.processes.contains_key(&first.pid);
            let waited = now_ns >= first.at_ns.saturating_add(WAIT_NS);
            if !said && !waited && self.contexts.waiting.len() <= MAX_WAITING {
                return;
            }
            if let Some(waiting) = self.contexts.waiting.pop_front() {
                self.context_row(&waiting, known);
            }
        }
    }

    fn context_row(&mut self, waiting: &Waiting, known: &mut Known) {
        let Waiting {
            ids: (trace, span),
            pid,
            seen,
            ..
        } = waiting;
        // The attributes are of the process that published them, which may be another one.
        let process = self.contexts.processes.get(&seen.pid).cloned();
        let publisher = self.contexts.processes.get(pid).cloned();
        let keys = publisher.as_ref().map_or(&[][..], |process| &process.keys);
        let attributes = parse(&seen.attributes, keys);
        let find = |names: &[&str]| {
            let named = |name: &&str| attributes.iter().find(|(key, _)| key == name);
            names.iter().find_map(named).map(|(_, value)| value)
        };
        let name = match (find(&METHODS), find(&ROUTES)) {
            (Some(method), Some(route)) => format!("{method} {route}"),
            (None, Some(route)) => route.clone(),
            (_, None) => String::new(),
        };
        let mut json = String::from("{");
        for (key, value) in &attributes {
            put(&mut json, key, value);
        }
        json.push('}');
        let service = match process.filter(|process| !process.service.is_empty()) {
            Some(process) => self.strings.text(process.service.as_bytes()),
            None => self.strings.comm(seen.pid, seen.first_ns, known),
        };
        let strings = &mut self.strings;
        let row = SpanRow {
            trace_id: strings.text(hex(trace).as_bytes()),
            span_id: strings.text(hex(span).as_bytes()),
            parent_span_id: StrId::NULL,
            ts_ns: signed(seen.first_ns),
            dur_ns: NULL_I64,
            pid: id(seen.pid),
            tid: NULL_I32,
            service,
            name: match name.as_str() {
                "" => StrId::NULL,
                name => strings.text(name.as_bytes()),
            },
            kind: strings.word("unspecified"),
            status: strings.word("unset"),
            status_message: StrId::NULL,
            attributes: match attributes.is_empty() {
                true => StrId::NULL,
                false => strings.text(json.as_bytes()),
            },
            source: strings.word(SOURCE),
        };
        self.rows.push(row);
    }

    /// A process says what it is.
    pub(crate) fn context_process(
        &mut self,
        record: &ContextProcessRecord,
        service: &[u8],
        keys: &[u8],
    ) {
        let mut keys: Vec<String> = keys.split(|byte| *byte == 0).map(printable).collect();
        // Each is followed by NUL.
        keys.pop();
        let contexts = &mut self.contexts;
        if contexts.processes.len() >= MAX_PROCESSES || contexts.process_bytes > MAX_PROCESS_BYTES {
            contexts.processes.clear();
            contexts.process_bytes = 0;
        }
        contexts.process_bytes += keys.iter().map(|key| key.len() + 32).sum::<usize>();
        let service = printable(service);
        contexts
            .processes
            .insert(record.pid, Arc::new(Process { service, keys }));
    }

    /// Something happened to a thread.
    pub(crate) fn context_task(&mut self, record: &TaskRecord) {
        let contexts = &mut self.contexts;
        let event = u32::from(record.event);
        // Another thread may get its id, and this one may have had the id of another.
        if [TASK_FORK, TASK_EXIT].contains(&event) && contexts.threads.remove(&record.tid).is_some()
        {
            contexts.row(record.ts_ns, (record.pid, record.tid), "unknown", None);
        }
        if event == TASK_FORK && record.pid == record.tid {
            // A child is as its parent until it says something else.
            match contexts.processes.get(&record.ppid).cloned() {
                Some(process) if contexts.processes.len() < MAX_PROCESSES => {
                    contexts.processes.insert(record.pid, process)
                }
                Some(_) => None,
                None => contexts.processes.remove(&record.pid),
            };
        }
        if event == TASK_EXEC {
            contexts.processes.remove(&record.pid);
        }
    }
}

fn ids(record: &ContextRecord) -> Ids {
    let mut trace = [0; 16];
    for (to, from) in trace.chunks_exact_mut(8).zip(record.trace) {
        to.copy_from_slice(&from.to_ne_bytes());
    }
    (trace, record.span.to_ne_bytes())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Names and values: a byte with the number of the name, a byte with the length of the value, and the
/// value each. Of two with one name the last one counts.
fn parse(mut rest: &[u8], keys: &[String]) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut named = HashSet::new();
    let mut all = Vec::new();
    while let Some(([key, length], behind)) = rest.split_first_chunk::<2>() {
        let Some((value, behind)) = behind.split_at_checked(usize::from(*length)) else {
            break;
        };
        rest = behind;
        all.push((usize::from(*key), value));
    }
    for (key, value) in all.into_iter().rev() {
        // A number without a name in the process is not known.
        let Some(name) = keys.get(key).filter(|name| !name.is_empty()) else {
            continue;
        };
        if named.insert(key) {
            found.push((name.clone(), printable(value)));
        }
    }
    found.reverse();
    found
}

#[cfg(test)]
mod tests {
    use fathom_model::abi::CONTEXT_UNKNOWN;
    use fathom_model::protocols::Protocols;

    use super::*;
    use crate::files::{Files, Limit};
    use crate::tasks::Tasks;

    struct Program {
        spans: Spans,
        known: Known,
    }

    impl Program {
        fn new() -> Self {
            let limit = Limit {
                files: 10,
                bytes: 1 << 20,
            };
            Self {
                spans: Spans::new(Protocols::default(), false),
                known: Known {
                    files: Files::new(limit),
                    tasks: Tasks::new(10),
                },
            }
        }

        fn call(&mut self, (tid, ts_ns): (u32, u64), kind: u32, span: u64, attributes: &[u8]) {
            let record = ContextRecord {
                kind: 0,
                context: kind as u8,
                attributes_len: attributes.len() as u16,
                tid,
                ts_ns,
                dur_ns: 5,
                trace: [7u64.to_be(), 0],
                span: span.to_be(),
                pid: 100,
                reserved: 0,
            };
            self.spans.context(&record, attributes, &mut self.known);
        }

        fn ends(&mut self, tid: u32, ts_ns: u64) {
            let mut record = TaskRecord::parse(&[0; TaskRecord::SIZE]).unwrap();
            (record.event, record.pid, record.tid) = (TASK_EXIT as u8, 100, tid);
            record.ts_ns = ts_ns;
            self.spans.context_task(&record);
        }

        fn says(&mut self, pid: u32, service: &str, keys: &str) {
            let mut record = ContextProcessRecord::parse(&[0; ContextProcessRecord::SIZE]).unwrap();
            record.pid = pid;
            self.spans
                .context_process(&record, service.as_bytes(), keys.as_bytes());
        }

        /// Time, thread, state, and the last digit of the span of each change.
        fn changes(&self) -> Vec<(i64, i32, String)> {
            let contexts = &self.spans.contexts;
            let text = |text| match text {
                StrId::NULL => &b""[..],
                text => contexts.strings.table.get(text),
            };
            let rows = &contexts.rows;
            (0..rows.len())
                .map(|i| {
                    let state = String::from_utf8_lossy(text(rows.state[i])).into_owned();
                    let span = text(rows.span_id[i]).last().copied();
                    let span = span.map(char::from).map(String::from).unwrap_or_default();
                    (rows.ts_ns[i], rows.tid[i], state + &span)
                })
                .collect()
        }

        /// Service, name and beginning of each row of table spans.
        fn rows(&mut self) -> Vec<(String, String, i64)> {
            self.spans.settle(u64::MAX, &mut self.known);
            let text = |text| {
                let bytes = match text {
                    StrId::NULL => b"",
                    text => self.spans.strings.table.get(text),
                };
                String::from_utf8_lossy(bytes).into_owned()
            };
            let rows = &self.spans.rows;
            assert!(rows.dur_ns.iter().all(|dur| *dur == NULL_I64));
            (0..rows.len())
                .map(|i| (text(rows.service[i]), text(rows.name[i]), rows.ts_ns[i]))
                .collect()
        }
    }

    #[test]
    fn changes_of_threads() {
        let mut program = Program::new();
        program.call((1, 10), CONTEXT_SPAN, 1, b"");
        program.call((2, 20), CONTEXT_SPAN, 1, b"");
        // Other attributes are no change.
        program.call((1, 30), CONTEXT_SPAN, 1, b"\x00\x01a");
        program.call((1, 40), CONTEXT_NONE, 0, b"");
        program.call((2, 50), CONTEXT_UNREADABLE, 0, b"");
        program.call((1, 60), CONTEXT_SPAN, 2, b"");
        program.ends(1, 70);
        // Nothing is known of it anyway.
        program.ends(2, 80);
        program.call((3, 90), CONTEXT_UNKNOWN, 0, b"");
        let change = |at, tid, what: &str| (at, tid, what.to_owned());
        assert_eq!(
            program.changes(),
            [
                change(10, 1, "span1"),
                change(20, 2, "span1"),
                change(40, 1, "none"),
                change(50, 2, "unreadable"),
                change(60, 1, "span2"),
                change(70, 1, "unknown"),
                change(90, 3, "unknown"),
            ]
        );
        let counts = program.spans.counts();
        assert_eq!((counts.contexts, counts.context_spans), (7, 2));
    }

    #[test]
    fn rows_of_spans_wait_for_what_their_process_says() {
        let mut program = Program::new();
        program.call((1, 10), CONTEXT_SPAN, 1, b"\x00\x02/a");
        assert_eq!(program.spans.rows.len(), 0);
        program.says(100, "shop", "http_route\0http_method\0");
        program.call((1, 20), CONTEXT_SPAN, 2, b"\x00\x02/b\x01\x03GET");
        let row = |name: &str, at| ("shop".to_owned(), name.to_owned(), at);
        assert_eq!(program.spans.rows.len(), 2);
        // Known before, with the same attributes; earlier; with others.
        program.call((2, 25), CONTEXT_SPAN, 2, b"\x00\x02/b\x01\x03GET");
        program.call((3, 15), CONTEXT_SPAN, 2, b"");
        program.call((3, 30), CONTEXT_SPAN, 1, b"\x00\x02/c");
        assert_eq!(
            program.rows(),
            [
                row("/a", 10),
                row("GET /b", 20),
                row("GET /b", 15),
                row("/c", 10),
            ]
        );
    }

    #[test]
    fn attributes_are_read_as_far_as_they_make_sense() {
        let keys = ["http_route", "user", ""].map(str::to_owned);
        let pairs = |bytes: &[u8]| parse(bytes, &keys);
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let bytes = b"\x00\x02/a\x01\x03tom\x00\x02/b\x07\x01x\x02\x01y";
        let whole = pairs(bytes);
        assert_eq!(whole, [pair("user", "tom"), pair("http_route", "/b")]);
        assert_eq!(pairs(b"\x00\x02/a\x01\x09tom"), [pair("http_route", "/a")]);
        assert_eq!(pairs(b"\x00"), []);
        assert_eq!(pairs(b"\x01\x02a\xff"), [pair("user", "a\u{fffd}")]);
        for length in 0..bytes.len() {
            assert!(pairs(&bytes[..length]).len() <= whole.len());
        }
    }
}
