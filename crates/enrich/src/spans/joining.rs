//! The place of a request in a trace: which other request caused it.
//!
//! A client's request belongs to the request that its thread is answering. If those are several, as in
//! a web server, the address that the request names as its client decides. A server's request belongs
//! to the client's at the other end of the connection, which has the same place in the stream. The call
//! by which a client sent it may return, and so come, after the calls of the server.

use std::net::IpAddr;

use fathom_model::ids::spread;

use super::exchange::{Exchange, Moment, Origin, Request};
use super::flow::Flow;
use super::{Connection, Spans};

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StreamEnd {
    pub file_id: i64,
    /// File of the other end, if a recorded thread has it.
    pub peer: Option<i64>,
    /// Address and port of the other end.
    pub remote: Option<(IpAddr, u16)>,
}

/// The ends of connections, by their handles.
pub(crate) type Ends<'a> = &'a dyn Fn(u32) -> Option<StreamEnd>;

/// Answered requests whose clients' calls may still come; beyond that all are forgotten.
const MAX_ANSWERED: usize = 4096;

/// A request that a thread has received and not answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Serving {
    pub span: u64,
    trace: u128,
    /// The connection by which it came.
    connection: Connection,
    /// It has caused other requests.
    pub leads: bool,
}

/// An answered request of which no parent is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answered {
    number: u64,
    trace: u128,
    /// Its row, until the rows are taken.
    row: usize,
    /// It has caused other requests, which are of its trace.
    leads: bool,
}

/// A request that has no place yet.
struct Begun {
    span: u64,
    tid: u32,
    place: Option<u64>,
    origin: Option<Origin>,
    received_from: Option<(IpAddr, u16)>,
}

/// Trace and span of a request.
pub(super) type Place = (u128, u64);

/// The trace of a span that nothing caused.
pub(super) fn new_trace(span: u64) -> u128 {
    u128::from(spread(!span)) << 64 | u128::from(span)
}

impl Spans {
    /// Gives the new requests of a connection their places.
    pub(super) fn begin(&mut self, connection: Connection) {
        let Some(flow) = self.flows.get_mut(&connection) else {
            return;
        };
        let (serves, end) = (flow.serves(), flow.end);
        let mut begun = Vec::new();
        let fresh = flow.all.open().filter(|e| e.span == 0 && !e.request.marker);
        for exchange in fresh {
            self.made += 1;
            // Sessions of other hosts have other times, and so other ids.
            exchange.span = spread(spread(self.made) ^ exchange.began.at_ns).max(1);
            exchange.number = self.made;
            begun.push(Begun {
                span: exchange.span,
                tid: exchange.began.tid,
                place: exchange.place,
                origin: exchange.request.origin,
                received_from: exchange.request.received_from,
            });
        }
        for request in begun {
            let cause = match serves {
                true => request.origin().or_else(|| self.sent(end, request.place)),
                false => self
                    .usdt
                    .innermost(request.tid)
                    .or_else(|| self.served(request.tid, request.received_from))
                    .or_else(|| request.origin()),
            };
            let (trace, parent) = cause.unwrap_or_else(|| (new_trace(request.span), 0));
            let flow = self.flows.get_mut(&connection);
            let exchange = flow.and_then(|f| f.all.open().find(|e| e.span == request.span));
            if let Some(exchange) = exchange {
                (exchange.trace, exchange.parent) = (trace, parent);
            }
            if serves {
                self.serving.entry(request.tid).or_default().push(Serving {
                    span: request.span,
                    trace,
                    connection,
                    leads: false,
                });
            } else {
                self.adopt(end, request.place, (trace, request.span));
            }
        }
    }

    /// The request that a thread is answering, if it is known which.
    pub(super) fn served(
        &mut self,
        tid: u32,
        received_from: Option<(IpAddr, u16)>,
    ) -> Option<Place> {
        let flows = &self.flows;
        let remote = |connection| flows.get(&connection)?.end?.remote;
        let serving = self.serving.get_mut(&tid)?;
        let one = match serving.as_mut_slice() {
            [one] => one,
            several => {
                let from = received_from?;
                let mut same = several
                    .iter_mut()
                    .filter(|one| remote(one.connection) == Some(from));
                match (same.next(), same.next()) {
                    (Some(one), None) => one,
                    _ => return None,
                }
            }
        };
        one.leads = true;
        Some((one.trace, one.span))
    }

    /// The connection of the other end.
    fn other_end(&mut self, end: Option<StreamEnd>) -> Option<&mut Flow> {
        let connection = self.files.get(&end?.peer?)?;
        self.flows.get_mut(connection)
    }

    /// The request of the client at the other end of a connection.
    fn sent(&mut self, end: Option<StreamEnd>, place: Option<u64>) -> Option<Place> {
        let flow = self.other_end(end)?;
        if flow.serves() {
            return None;
        }
        let client = flow.all.at(place?)?;
        (client.span != 0).then_some((client.trace, client.span))
    }

    /// Makes a client's request the parent of what the server at the other end has already received.
    fn adopt(&mut self, end: Option<StreamEnd>, place: Option<u64>, parent: Place) {
        let (Some(own), Some(place)) = (end, place) else {
            return;
        };
        let taken = self.taken;
        if let Some(answered) = self.answered.remove(&(own.file_id, place)) {
            // Rows that are taken stay as they are, so that all of a trace have the same.
            if answered.number > taken {
                // Looks at all requests: only where others are of the trace.
                if answered.leads {
                    self.rename(answered.trace, parent.0);
                }
                self.attach(answered.row, parent);
            }
            return;
        }
        let server = self.other_end(end).filter(|flow| flow.serves());
        let request = server.and_then(|flow| flow.all.at(place));
        let Some(&mut Exchange {
            number,
            span,
            trace,
            parent: 0,
            began: Moment { tid, .. },
            request: Request { origin: None, .. },
            ..
        }) = request
        else {
            return;
        };
        let serving = self.serving.get_mut(&tid);
        let serving = serving.and_then(|all| all.iter_mut().find(|one| one.span == span));
        let leads = serving.as_ref().is_none_or(|one| one.leads);
        if span == 0 || leads && number <= taken {
            return;
        }
        if let Some(serving) = serving {
            serving.trace = parent.0;
        }
        if leads {
            self.rename(trace, parent.0);
        }
        let server = self.other_end(end);
        if let Some(exchange) = server.and_then(|flow| flow.all.at(place)) {
            (exchange.trace, exchange.parent) = parent;
        }
    }

    /// Remembers an answered request, whose row was just made and whose client's call may still come.
    /// `leads`: it has caused other requests.
    pub(super) fn answers(
        &mut self,
        exchange: &Exchange,
        serves: bool,
        end: Option<StreamEnd>,
        leads: bool,
    ) {
        let client = end.and_then(|end| end.peer);
        if let (true, Some(client), Some(place)) = (serves, client, exchange.place)
            && exchange.parent == 0
        {
            if self.answered.len() >= MAX_ANSWERED {
                self.answered.clear();
            }
            let Exchange { number, trace, .. } = *exchange;
            let answered = Answered {
                number,
                trace,
                row: self.rows.len().saturating_sub(1),
                leads,
            };
            self.answered.insert((client, place), answered);
        }
    }

    /// All requests of one trace belong to another one.
    fn rename(&mut self, trace: u128, to: u128) {
        let open = self.flows.values_mut().flat_map(|flow| flow.all.open());
        for exchange in open.filter(|e| e.trace == trace) {
            exchange.trace = to;
        }
        let serving = self.serving.values_mut().flatten();
        for one in serving.filter(|one| one.trace == trace) {
            one.trace = to;
        }
        self.usdt.rename(trace, to);
        let old = self.strings.text(format!("{trace:032x}").as_bytes());
        let new = self.strings.text(format!("{to:032x}").as_bytes());
        for id in self.rows.trace_id.iter_mut().filter(|id| **id == old) {
            *id = new;
        }
    }

    /// A row that was made gets its trace and its parent.
    fn attach(&mut self, row: usize, (trace, parent): Place) {
        let trace = self.strings.text(format!("{trace:032x}").as_bytes());
        let parent = self.strings.text(format!("{parent:016x}").as_bytes());
        if let Some(id) = self.rows.trace_id.get_mut(row) {
            *id = trace;
        }
        if let Some(id) = self.rows.parent_span_id.get_mut(row) {
            *id = parent;
        }
    }
}

impl Begun {
    fn origin(&self) -> Option<Place> {
        self.origin.map(|origin| (origin.trace, origin.span))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use fathom_model::StrId;
    use fathom_model::protocols::Protocols;
    use fathom_model::tables::SpanRows;

    use super::super::flow::Moved;
    use super::*;
    use crate::files::{Files, Limit};
    use crate::strings::Known;
    use crate::tasks::Tasks;

    /// Connections by their handles; 2 n and 2 n + 1 are the ends of one.
    struct Programs {
        spans: Spans,
        known: Known,
        places: HashMap<(u32, bool), u64>,
        at_ns: u64,
    }

    impl Programs {
        fn new() -> Self {
            Self {
                spans: Spans::new(Protocols::all(), false),
                known: Known {
                    files: Files::new(Limit {
                        files: 10,
                        bytes: 1 << 20,
                    }),
                    tasks: Tasks::new(100),
                },
                places: HashMap::new(),
                at_ns: 0,
            }
        }

        /// A thread receives or sends bytes.
        fn moves(&mut self, tid: u32, handle: u32, is_in: bool, bytes: &[u8]) -> &mut Self {
            self.at_ns += 10;
            let flows = &mut self.spans.flows;
            let connection = Connection::from(handle);
            let flow = flows
                .entry(connection)
                .or_insert_with(|| Flow::new(1, false));
            flow.end = Some(StreamEnd {
                file_id: handle.into(),
                peer: Some(i64::from(handle ^ 1)),
                remote: Some(("127.0.0.1".parse().unwrap(), 1000 + handle as u16)),
            });
            self.spans.files.insert(handle.into(), connection);
            let place = self.places.entry((handle, is_in)).or_default();
            let moved = Moved {
                is_in,
                seen: bytes,
                total: bytes.len() as u64,
                offset: Some(*place),
            };
            *place += bytes.len() as u64;
            let at_ns = self.at_ns;
            let now = Moment {
                at_ns,
                pid: tid,
                tid,
            };
            self.spans
                .moved(connection, &moved, now, None, &mut self.known);
            self
        }

        fn receives(&mut self, tid: u32, handle: u32, bytes: impl AsRef<[u8]>) -> &mut Self {
            self.moves(tid, handle, true, bytes.as_ref())
        }

        fn sends(&mut self, tid: u32, handle: u32, bytes: impl AsRef<[u8]>) -> &mut Self {
            self.moves(tid, handle, false, bytes.as_ref())
        }

        /// Thread and name of each request, and of the one that caused it; all of a trace have its id.
        fn trees(&mut self) -> Vec<String> {
            self.spans.finish(&mut self.known);
            let rows: &SpanRows = &self.spans.rows;
            let text = |id: StrId| self.spans.strings.table.get(id).to_vec();
            let row = |at: usize| {
                let name = String::from_utf8(text(rows.name[at])).unwrap();
                format!("{} {name}", rows.tid[at])
            };
            let found = (0..rows.len()).map(|at| {
                let parent = rows.parent_span_id[at];
                let above = (0..rows.len()).find(|other| rows.span_id[*other] == parent);
                if let Some(above) = above {
                    assert_eq!(rows.trace_id[above], rows.trace_id[at]);
                }
                match (above, parent == StrId::NULL) {
                    (Some(above), _) => format!("{} < {}", row(at), row(above)),
                    (None, true) => row(at),
                    (None, false) => format!("{} < ?", row(at)),
                }
            });
            let mut found: Vec<String> = found.collect();
            found.sort_unstable();
            found
        }
    }

    const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

    fn get(path: &str) -> String {
        format!("GET {path} HTTP/1.1\r\n\r\n")
    }

    fn asks_for(handle: u16, path: &str) -> Vec<u8> {
        let port = (1000 + handle).to_string();
        super::super::fastcgi::tests::request(&[
            ("REMOTE_ADDR", "127.0.0.1"),
            ("REMOTE_PORT", &port),
            ("REQUEST_METHOD", "GET"),
            ("REQUEST_URI", path),
        ])
    }

    fn answer() -> Vec<u8> {
        super::super::fastcgi::tests::response("\r\n", 0)
    }

    #[test]
    fn a_request_leads_to_the_server_at_the_other_end() {
        let mut programs = Programs::new();
        programs
            .receives(1, 2, get("/a"))
            .sends(1, 4, get("/b"))
            .receives(2, 5, get("/b"));
        programs.sends(2, 5, OK).receives(1, 4, OK).sends(1, 2, OK);
        assert_eq!(
            programs.trees(),
            ["1 GET /a", "1 GET /b < 1 GET /a", "2 GET /b < 1 GET /b"]
        );
    }

    /// A thread that answers several requests at a time, as a web server does.
    #[test]
    fn the_client_address_decides_between_several() {
        let mut programs = Programs::new();
        programs.receives(1, 2, get("/a")).receives(1, 6, get("/b"));
        programs
            .sends(1, 4, asks_for(6, "/b"))
            .sends(1, 8, asks_for(2, "/a"));
        programs.sends(1, 10, get("/c"));
        programs
            .receives(2, 5, asks_for(6, "/b"))
            .receives(3, 9, asks_for(2, "/a"));
        programs.sends(2, 5, answer()).sends(3, 9, answer());
        programs
            .receives(1, 4, answer())
            .receives(1, 8, answer())
            .receives(1, 10, OK);
        programs.sends(1, 2, OK).sends(1, 6, OK);
        let expected = [
            "1 GET /a",
            "1 GET /a < 1 GET /a",
            "1 GET /b",
            "1 GET /b < 1 GET /b",
            "1 GET /c",
            "2 GET /b < 1 GET /b",
            "3 GET /a < 1 GET /a",
        ];
        assert_eq!(programs.trees(), expected);
    }

    /// The call that sent the request returns when the server has already done something for it.
    #[test]
    fn calls_of_clients_may_come_late() {
        let mut programs = Programs::new();
        programs.receives(1, 2, get("/a"));
        programs.receives(2, 5, get("/b")).sends(2, 6, get("/c"));
        programs.sends(1, 4, get("/b"));
        programs
            .receives(3, 7, get("/c"))
            .sends(3, 7, OK)
            .receives(2, 6, OK);
        programs.sends(2, 5, OK).receives(1, 4, OK);
        // And when it has already answered.
        programs.receives(2, 5, get("/d")).sends(2, 5, OK);
        programs
            .sends(1, 4, get("/d"))
            .receives(1, 4, OK)
            .sends(1, 2, OK);
        // And has asked another one for that.
        programs.receives(1, 2, get("/x"));
        programs
            .receives(2, 5, get("/e"))
            .sends(2, 6, get("/f"))
            .receives(2, 6, OK)
            .sends(2, 5, OK);
        programs
            .sends(1, 4, get("/e"))
            .receives(1, 4, OK)
            .sends(1, 2, OK);
        let expected = [
            "1 GET /a",
            "1 GET /b < 1 GET /a",
            "1 GET /d < 1 GET /a",
            "1 GET /e < 1 GET /x",
            "1 GET /x",
            "2 GET /b < 1 GET /b",
            "2 GET /c < 2 GET /b",
            "2 GET /d < 1 GET /d",
            "2 GET /e < 1 GET /e",
            "2 GET /f < 2 GET /e",
            "3 GET /c < 2 GET /c",
        ];
        assert_eq!(programs.trees(), expected);
    }

    /// Rows that were taken cannot change: no row names a request of another trace.
    #[test]
    fn rows_that_were_taken_stay_as_they_are() {
        let mut programs = Programs::new();
        programs.receives(1, 2, get("/a"));
        programs
            .receives(2, 5, get("/b"))
            .sends(2, 6, get("/c"))
            .receives(2, 6, OK);
        let taken = programs.spans.take();
        assert!(!taken.is_empty());
        programs.sends(1, 4, get("/b"));
        programs.sends(2, 5, OK).receives(1, 4, OK).sends(1, 2, OK);
        let expected = ["1 GET /a", "1 GET /b < 1 GET /a", "2 GET /b"];
        assert_eq!(programs.trees(), expected);
    }
}
