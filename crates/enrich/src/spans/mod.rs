//! Requests of applications: rows of table `spans` from the bytes that calls moved on stream sockets
//! (`record --spans`).
//!
//! Each end of a connection is a [`flow::Flow`]: a parser of its protocol finds requests and responses
//! in the two directions, of which the first bytes of each call are known. All bytes are hostile:
//! parsers never panic, memory is bounded per connection and in total, and bytes that make no sense
//! give no span. Where bytes are missing, a connection goes on with the next request that follows a
//! response.

mod bson;
mod contexts;
mod exchange;
mod fastcgi;
mod flow;
mod http;
mod joining;
mod mongodb;
mod mysql;
mod postgresql;
mod redis;
mod step;
#[cfg(test)]
mod tests;
mod tls;
mod usdt;

use fathom_model::abi::DataCallRecord;
use fathom_model::batch::{Batch, NULL_I32};
use fathom_model::protocols::Protocols;
use fathom_model::tables::{SpanRow, SpanRows};
use fathom_model::{StrId, StringTable};
use hashbrown::HashMap;

use crate::strings::{Known, Strings};
use crate::{id, signed};
use contexts::Contexts;
use exchange::{Exchange, Moment, Value};
use flow::{Flow, Moved};
use joining::{Answered, Serving};
pub(crate) use joining::{Ends, StreamEnd};
use tls::Tls;
use usdt::StaticProbes;

/// Connections that are remembered. Beyond that the half is forgotten that was not used for longest.
const MAX_FLOWS: usize = 1 << 15;
/// Memory of what is remembered of all connections; one that goes beyond is given up.
const MAX_BYTES: usize = 128 << 20;
/// Threads whose latest call is remembered.
const MAX_THREADS: usize = 1 << 14;

/// A connection.
pub(crate) type Connection = u64;

/// Column `source`.
const SOURCE: &str = "recorded";

/// Requests that were found, and what prevented others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpanCounts {
    /// Rows.
    pub recorded: u64,
    /// Requests without a response.
    pub unfinished: u64,
    /// Of `recorded`, requests whose command could not be read.
    pub unread: u64,
    /// Connections of no protocol that is looked for.
    pub unrecognized: u64,
    /// Connections that are encrypted, and of which no library gave the bytes.
    pub encrypted: u64,
    /// Calls of TLS libraries that moved bytes.
    pub tls: u64,
    /// Times at which bytes of a connection were missing or made no sense.
    pub gaps: u64,
    /// Times that threads came by static probes.
    pub usdt: u64,
    /// Of `recorded`, rows between static probes.
    pub usdt_rows: u64,
    /// Times that threads came by a static probe that began a span without an end, or ended none.
    pub usdt_unpaired: u64,
    /// Changes of the span that is active in a thread, or of its attributes.
    pub contexts: u64,
    /// Spans that were active in threads.
    pub context_spans: u64,
}

/// The connections, and rows that were not taken yet.
#[derive(Debug)]
pub(crate) struct Spans {
    protocols: Protocols,
    plain: bool,
    /// By the handles of their sockets; behind them the connections of TLS libraries.
    flows: HashMap<Connection, Flow>,
    tls: Tls,
    /// Inodes of sockets by their handles.
    sockets: HashMap<u32, u64>,
    /// Memory of the flows.
    bytes: usize,
    /// By thread: the call whose first bytes came.
    seen: HashMap<u32, u64>,
    /// By thread: the requests that it has received and not answered.
    serving: HashMap<u32, Vec<Serving>>,
    /// By file: its connection.
    files: HashMap<i64, Connection>,
    /// Requests whose clients' calls may still come, by the client's file and the place in the stream.
    answered: HashMap<(i64, u64), Answered>,
    usdt: StaticProbes,
    contexts: Contexts,
    /// Of the latest request that began before rows were taken.
    taken: u64,
    rows: SpanRows,
    strings: Strings,
    counts: SpanCounts,
    made: u64,
}

impl Spans {
    /// `plain`: texts of statements are stored as they are.
    pub(crate) fn new(protocols: Protocols, plain: bool) -> Self {
        Self {
            protocols,
            plain,
            flows: HashMap::new(),
            tls: Tls::default(),
            sockets: HashMap::new(),
            bytes: 0,
            seen: HashMap::new(),
            serving: HashMap::new(),
            files: HashMap::new(),
            answered: HashMap::new(),
            usdt: StaticProbes::default(),
            contexts: Contexts::default(),
            taken: 0,
            rows: SpanRows::default(),
            strings: Strings::default(),
            counts: SpanCounts::default(),
            made: 0,
        }
    }

    /// Whether anything is known of connections.
    #[inline]
    pub(crate) fn concern(&self) -> bool {
        !self.flows.is_empty()
    }

    /// The handle `handle` stands for the file with inode `ino`.
    pub(crate) fn file(&mut self, handle: u32, ino: u64, is_socket: bool, known: &mut Known) {
        if self.protocols.is_empty() {
            return;
        }
        let connection = Connection::from(handle);
        if self
            .flows
            .get(&connection)
            .is_some_and(|flow| flow.ino != ino || !is_socket)
        {
            self.close(connection, known);
        }
        if self.sockets.get(&handle) != Some(&ino) {
            self.tls_socket_ends(handle, known);
        }
        if !is_socket {
            self.sockets.remove(&handle);
        } else {
            if self.sockets.len() >= 4 * MAX_FLOWS {
                self.sockets.clear();
            }
            self.sockets.insert(handle, ino);
        }
    }

    /// Takes the first bytes that a call moved.
    pub(crate) fn beginning(
        &mut self,
        record: &DataCallRecord,
        is_in: bool,
        bytes: &[u8],
        streams: Ends<'_>,
        known: &mut Known,
    ) {
        let call = &record.call;
        if self.seen.len() >= MAX_THREADS {
            self.seen.clear();
        }
        self.seen.insert(call.tid, call.ts_ns);
        // The bytes are encrypted, or say that the encryption ends.
        if self.tls.has_socket(call.file) {
            return;
        }
        let moved = Moved {
            is_in,
            seen: bytes,
            total: record.content_bytes.max(bytes.len() as u64),
            offset: u64::try_from(call.offset).ok(),
        };
        let now = Moment {
            at_ns: call.ts_ns.saturating_add(call.dur_ns),
            pid: call.pid,
            tid: call.tid,
        };
        let connection = Connection::from(call.file);
        if !self.flows.contains_key(&connection) {
            let ino = self.sockets.get(&call.file).copied().unwrap_or(0);
            self.open(connection, ino, known);
        }
        self.moved(connection, &moved, now, streams(call.file), known);
    }

    /// Takes a call that moved bytes, whose first bytes may have come before. `offset`: in the
    /// stream, if that is known.
    pub(crate) fn call(
        &mut self,
        (handle, is_in): (u32, bool),
        (began_ns, ended_ns): (u64, u64),
        (pid, tid): (u32, u32),
        (bytes, offset): (i64, i64),
        streams: Ends<'_>,
        known: &mut Known,
    ) {
        if self.seen.get(&tid) == Some(&began_ns) {
            self.seen.remove(&tid);
            return;
        }
        let connection = Connection::from(handle);
        let (Ok(total), true) = (u64::try_from(bytes), self.flows.contains_key(&connection)) else {
            return;
        };
        if total == 0 {
            return;
        }
        let moved = Moved {
            is_in,
            seen: b"",
            total,
            offset: u64::try_from(offset).ok(),
        };
        let at_ns = ended_ns;
        let now = Moment { at_ns, pid, tid };
        self.moved(connection, &moved, now, streams(handle), known);
    }

    /// A connection that was not known.
    fn open(&mut self, connection: Connection, ino: u64, known: &mut Known) {
        if self.flows.len() >= MAX_FLOWS {
            self.forget(known);
        }
        self.flows.insert(connection, Flow::new(ino, self.plain));
    }

    /// A process has closed a descriptor. Another one may have the connection, too.
    pub(crate) fn closed(&mut self, handle: u32, pid: u32, known: &mut Known) {
        self.closed_by(handle.into(), pid, known);
        if let Some(connection) = self.tls.of_socket(handle) {
            self.closed_by(connection, pid, known);
        }
    }

    fn closed_by(&mut self, connection: Connection, pid: u32, known: &mut Known) {
        if (self.flows.get(&connection)).is_some_and(|flow| flow.pid == pid) {
            self.close(connection, known);
        }
    }

    /// Records were lost.
    pub(crate) fn lost(&mut self, known: &mut Known) {
        let all: Vec<Connection> = self.flows.keys().copied().collect();
        for connection in all {
            self.with(connection, known, |flow| flow.doubt());
        }
    }

    /// The recording is over.
    pub(crate) fn finish(&mut self, known: &mut Known) {
        let mut all: Vec<Connection> = self.flows.keys().copied().collect();
        all.sort_unstable();
        for connection in all {
            self.close(connection, known);
        }
        self.usdt_lost();
        self.settle(u64::MAX, known);
    }

    pub(crate) fn counts(&self) -> SpanCounts {
        self.counts
    }

    pub(crate) fn pending_rows(&self) -> usize {
        self.rows.len() + self.contexts.pending_rows()
    }

    pub(crate) fn pending_bytes(&self) -> usize {
        self.strings.table.bytes() + self.contexts.pending_bytes()
    }

    /// The rows since the last time.
    pub(crate) fn take(&mut self) -> Batch {
        self.taken = self.made;
        let rows = std::mem::take(&mut self.rows);
        rows.into_batch(self.strings.take(StringTable::new()))
    }

    /// Rows of the contexts of threads since the last time.
    pub(crate) fn take_contexts(&mut self) -> Batch {
        self.contexts.take()
    }

    /// The thread may have another name.
    pub(crate) fn forget_name(&mut self, tid: u32) {
        self.strings.forget_thread(tid);
    }

    fn moved(
        &mut self,
        connection: Connection,
        moved: &Moved<'_>,
        now: Moment,
        end: Option<StreamEnd>,
        known: &mut Known,
    ) {
        let protocols = self.protocols;
        if let Some(flow) = self.flows.get_mut(&connection)
            && let Some(end) = end.filter(|end| Some(*end) != flow.end)
        {
            flow.end = Some(end);
            self.files.insert(end.file_id, connection);
        }
        self.with(connection, known, |flow| flow.moved(moved, now, protocols));
        if self.bytes > MAX_BYTES {
            self.with(connection, known, Flow::ignore);
        }
    }

    /// Forgets the connections that were not used for longest.
    fn forget(&mut self, known: &mut Known) {
        let mut used: Vec<u64> = self.flows.values().map(|flow| flow.last_ns).collect();
        let middle = used.len() / 2;
        let (_, limit, _) = used.select_nth_unstable(middle);
        let limit = *limit;
        let old = self.flows.iter().filter(|(_, flow)| flow.last_ns <= limit);
        let old: Vec<Connection> = old.map(|(connection, _)| *connection).collect();
        for connection in old {
            self.close(connection, known);
        }
    }

    fn close(&mut self, connection: Connection, known: &mut Known) {
        self.with(connection, known, Flow::ends);
        if let Some(flow) = self.flows.remove(&connection) {
            self.bytes = self.bytes.saturating_sub(flow.bytes());
            if let Some(StreamEnd { file_id, .. }) = flow.end
                && self.files.get(&file_id) == Some(&connection)
            {
                self.files.remove(&file_id);
            }
        }
    }

    /// Changes a flow, and takes what comes of it.
    fn with(&mut self, connection: Connection, known: &mut Known, change: impl FnOnce(&mut Flow)) {
        let Some(flow) = self.flows.get_mut(&connection) else {
            return;
        };
        let before = flow.bytes();
        change(flow);
        self.bytes = (self.bytes + flow.bytes()).saturating_sub(before);
        self.counts.unrecognized += std::mem::take(&mut flow.unrecognized);
        self.counts.encrypted += std::mem::take(&mut flow.encrypted);
        self.counts.gaps += std::mem::take(&mut flow.gaps);
        if flow.all.fresh() {
            self.begin(connection);
        }
        let Some(flow) = self.flows.get_mut(&connection) else {
            return;
        };
        let (serves, end) = (flow.serves(), flow.end);
        let (done, dropped) = (
            std::mem::take(&mut flow.all.done),
            std::mem::take(&mut flow.all.dropped),
        );
        for (span, tid) in dropped {
            self.counts.unfinished += 1;
            self.ends(span, tid);
        }
        for exchange in done {
            let leads = self.ends(exchange.span, exchange.began.tid);
            self.row(&exchange, serves, known);
            self.answers(&exchange, serves, end, leads);
        }
    }

    /// The thread no longer answers a request; whether that has caused others.
    fn ends(&mut self, span: u64, tid: u32) -> bool {
        let Some(serving) = self.serving.get_mut(&tid) else {
            return false;
        };
        let leads = serving.iter().any(|open| open.span == span && open.leads);
        serving.retain(|open| open.span != span);
        if serving.is_empty() {
            self.serving.remove(&tid);
        }
        leads
    }

    fn row(&mut self, exchange: &Exchange, serves: bool, known: &mut Known) {
        let Exchange { request, began, .. } = exchange;
        let ended_ns = exchange
            .responded
            .map_or(began.at_ns, |moment| moment.at_ns);
        self.counts.recorded += 1;
        self.counts.unread += u64::from(request.unread);
        let failed = match &exchange.error {
            // As OpenTelemetry has it: what a client asks for in vain is no error of the server.
            Some((code, _)) => !(serves && code.starts_with("HTTP 4")),
            None => false,
        };
        let attributes = attributes(exchange);
        let service = self.strings.comm(began.pid, ended_ns, known);
        let strings = &mut self.strings;
        let message = match &exchange.error {
            Some((code, text)) if failed && self.plain && !text.is_empty() => {
                strings.text(format!("{code}: {text}").as_bytes())
            }
            Some((code, _)) if failed => strings.text(code.as_bytes()),
            _ => StrId::NULL,
        };
        let row = SpanRow {
            trace_id: strings.text(format!("{:032x}", exchange.trace).as_bytes()),
            span_id: strings.text(format!("{:016x}", exchange.span).as_bytes()),
            parent_span_id: match exchange.parent {
                0 => StrId::NULL,
                parent => strings.text(format!("{parent:016x}").as_bytes()),
            },
            ts_ns: signed(began.at_ns),
            dur_ns: signed(ended_ns.saturating_sub(began.at_ns)),
            pid: id(began.pid),
            tid: match exchange.of_thread {
                true => id(began.tid),
                false => NULL_I32,
            },
            service,
            name: match request.name.as_str() {
                "" => StrId::NULL,
                name => strings.text(name.as_bytes()),
            },
            kind: strings.word(if serves { "server" } else { "client" }),
            status: strings.word(if failed { "error" } else { "unset" }),
            status_message: message,
            attributes: strings.text(attributes.as_bytes()),
            source: strings.word(SOURCE),
        };
        self.rows.push(row);
    }
}

/// Attributes as a JSON object, named as OpenTelemetry names them.
fn attributes(exchange: &Exchange) -> String {
    let mut json = String::from("{");
    for (name, value) in &exchange.request.attributes {
        match value {
            Value::Text(text) => put(&mut json, name, text),
            Value::Number(number) => {
                separate(&mut json);
                json.push_str(&format!("\"{name}\":{number}"));
            }
        }
    }
    if let Some((code, _)) = &exchange.error
        && !code.starts_with("HTTP ")
    {
        put(&mut json, "db.response.status_code", code);
    }
    json.push('}');
    json
}

fn separate(json: &mut String) {
    if json.len() > 1 {
        json.push(',');
    }
}

fn put(json: &mut String, name: &str, text: &str) {
    separate(json);
    quote(json, name);
    json.push(':');
    quote(json, text);
}

fn quote(json: &mut String, text: &str) {
    json.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => json.extend(['\\', c]),
            c if u32::from(c) < 0x20 => json.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => json.push(c),
        }
    }
    json.push('"');
}
