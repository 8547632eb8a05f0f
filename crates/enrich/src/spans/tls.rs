//! Connections that libraries encrypt: their bytes come from calls of the library instead of system calls.
//!
//! A connection is the library's object for it, in one process. The calls of the library tell which socket it
//! uses, if it uses one: programs may also exchange the encrypted bytes with the library through memory.

use fathom_model::abi::{
    DataCallRecord, TLS_EVENT_END, TLS_EVENT_HANDSHAKE, TLS_EVENT_RECEIVED, TLS_EVENT_SENT,
};
use hashbrown::HashMap;

use super::exchange::Moment;
use super::flow::{Counted, Flow, Moved};
use super::{Connection, Ends, MAX_FLOWS, Spans};
use crate::strings::Known;

/// The first connection of a library; those before have handles of sockets.
const FIRST: Connection = 1 << 32;

/// Connections of libraries.
#[derive(Debug, Default)]
pub(super) struct Tls {
    /// By process and address of the object.
    objects: HashMap<(u32, u64), Object>,
    /// By the handle of the socket.
    sockets: HashMap<u32, Connection>,
    made: u64,
}

/// An object of a library.
#[derive(Clone, Copy, Debug)]
struct Object {
    connection: Connection,
    /// Handle of its socket, 0: not known.
    socket: u32,
}

impl Tls {
    /// Whether a library encrypts the bytes of a socket.
    pub(super) fn has_socket(&self, handle: u32) -> bool {
        !self.sockets.is_empty() && self.sockets.contains_key(&handle)
    }

    pub(super) fn of_socket(&self, handle: u32) -> Option<Connection> {
        self.sockets.get(&handle).copied()
    }
}

impl Spans {
    /// Takes a call of a TLS library, with the first bytes that it moved.
    pub(crate) fn tls(
        &mut self,
        record: &DataCallRecord,
        bytes: &[u8],
        streams: Ends<'_>,
        known: &mut Known,
    ) {
        let call = &record.call;
        let id = (call.pid, call.size);
        if call.aux == TLS_EVENT_END {
            self.object_ends(id, known);
            return;
        }
        let is_handshake = call.aux == TLS_EVENT_HANDSHAKE;
        let same = |object: &Object| {
            !is_handshake || call.file == 0 || object.socket == 0 || object.socket == call.file
        };
        if !self.tls.objects.get(&id).is_none_or(same) {
            // The program has been replaced by another one, or the end of the object was not seen.
            self.object_ends(id, known);
        }
        let object = self.object(id, call.file, is_handshake, known);
        let is_in = match call.aux {
            TLS_EVENT_RECEIVED => true,
            TLS_EVENT_SENT => false,
            _ => return,
        };
        self.counts.tls += 1;
        let total = record.content_bytes.max(bytes.len() as u64);
        if total == 0 {
            return;
        }
        let flow = self.flows.get_mut(&object.connection);
        let offset = flow.and_then(|flow| {
            let [received, sent] = flow.plain.as_mut()?;
            let place = if is_in { received } else { sent };
            let offset = *place;
            *place = place.saturating_add(total);
            Some(offset)
        });
        let moved = Moved {
            is_in,
            seen: bytes,
            total,
            offset,
        };
        let now = Moment {
            at_ns: call.ts_ns.saturating_add(call.dur_ns),
            pid: call.pid,
            tid: call.tid,
        };
        let end = match object.socket {
            0 => None,
            socket => streams(socket),
        };
        self.moved(object.connection, &moved, now, end, known);
    }

    /// Records of calls of TLS libraries were lost.
    pub(crate) fn tls_lost(&mut self, known: &mut Known) {
        let all: Vec<Connection> = self.flows.keys().copied().filter(|c| *c >= FIRST).collect();
        for connection in all {
            self.with(connection, known, Flow::missed);
        }
        self.tls.objects.clear();
    }

    /// The handle stands for another file.
    pub(super) fn tls_socket_ends(&mut self, handle: u32, known: &mut Known) {
        if let Some(connection) = self.tls.sockets.remove(&handle) {
            self.close(connection, known);
        }
    }

    /// The object of a call that used `socket`, if it used one, and its connection.
    fn object(
        &mut self,
        id: (u32, u64),
        socket: u32,
        is_handshake: bool,
        known: &mut Known,
    ) -> Object {
        let mut object = match self.tls.objects.get(&id) {
            Some(object) => *object,
            None => {
                // A child has the connections of its parent.
                let shared = self.tls.of_socket(socket).filter(|_| !is_handshake);
                let connection = shared.unwrap_or_else(|| {
                    self.tls.made += 1;
                    FIRST + self.tls.made
                });
                Object {
                    connection,
                    socket: 0,
                }
            }
        };
        let is_new = !self.flows.contains_key(&object.connection);
        if is_new {
            let ino = self.sockets.get(&socket).copied().unwrap_or(0);
            self.open(object.connection, ino, known);
            if let Some(flow) = self.flows.get_mut(&object.connection) {
                flow.pid = id.0;
                flow.plain = is_handshake.then_some([0, 0]);
            }
        }
        if object.socket == 0 && socket != 0 {
            object.socket = socket;
            self.found_socket(object, known);
        }
        if self.tls.objects.len() >= MAX_FLOWS {
            self.tls.objects.clear();
        }
        self.tls.objects.insert(id, object);
        object
    }

    /// The socket of an object is known: the bytes on it are encrypted.
    fn found_socket(&mut self, object: Object, known: &mut Known) {
        if self.tls.sockets.len() >= 4 * MAX_FLOWS {
            self.tls.sockets.clear();
        }
        self.tls.sockets.insert(object.socket, object.connection);
        let socket = Connection::from(object.socket);
        let Some(flow) = self.flows.get_mut(&socket) else {
            return;
        };
        match flow.counted.take() {
            Some(Counted::Encrypted) => {
                self.counts.encrypted = self.counts.encrypted.saturating_sub(1)
            }
            Some(Counted::Unrecognized) => {
                self.counts.unrecognized = self.counts.unrecognized.saturating_sub(1)
            }
            None => {}
        }
        let mut inside = None;
        self.with(socket, known, |flow| inside = flow.give_over());
        self.close(socket, known);
        if let Some(inside) = inside {
            self.with(object.connection, known, |flow| flow.take_over(inside));
        }
    }

    /// An object is freed. A child that frees its copy does not end the connection.
    fn object_ends(&mut self, id: (u32, u64), known: &mut Known) {
        if let Some(object) = self.tls.objects.remove(&id) {
            self.closed_by(object.connection, id.0, known);
        }
    }
}

#[cfg(test)]
mod tests {
    use fathom_model::abi::{CONTENT_BEGINNING, CallRecord};
    use fathom_model::protocols::Protocols;

    use super::super::SpanCounts;
    use super::*;
    use crate::files::{Files, Limit};
    use crate::tasks::Tasks;

    const GET: &[u8] = b"GET /a HTTP/1.1\r\n\r\n";
    const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    const SECRET: &[u8] = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03";
    const OBJECT: u64 = 0x7f00_1234;
    const SOCKET: u32 = 9;

    struct Server {
        spans: Spans,
        known: Known,
        at_ns: u64,
        pid: u32,
    }

    impl Server {
        fn new() -> Self {
            let limit = Limit {
                files: 10,
                bytes: 1 << 20,
            };
            Self {
                spans: Spans::new(Protocols::all(), false),
                known: Known {
                    files: Files::new(limit),
                    tasks: Tasks::new(100),
                },
                at_ns: 0,
                pid: 7,
            }
        }

        fn record(&mut self, object: u64, socket: u32, event: u32, bytes: &[u8]) -> DataCallRecord {
            self.at_ns += 10;
            let mut record = DataCallRecord::parse(&[0; DataCallRecord::SIZE]).unwrap();
            record.call = CallRecord {
                ts_ns: self.at_ns,
                pid: self.pid,
                tid: self.pid,
                file: socket,
                aux: event,
                size: object,
                offset: -1,
                ..record.call
            };
            record.content_bytes = bytes.len() as u64;
            record
        }

        /// A call of the library.
        fn tls(&mut self, object: u64, socket: u32, event: u32, bytes: &[u8]) -> &mut Self {
            let record = self.record(object, socket, event, bytes);
            let seen = bytes.get(..1024).unwrap_or(bytes);
            self.spans.tls(&record, seen, &|_| None, &mut self.known);
            self
        }

        /// A system call.
        fn socket(&mut self, is_in: bool, bytes: &[u8]) -> &mut Self {
            let mut record = self.record(0, SOCKET, 0, bytes);
            record.status = CONTENT_BEGINNING;
            self.spans
                .beginning(&record, is_in, bytes, &|_| None, &mut self.known);
            self
        }

        fn receives(&mut self, bytes: &[u8]) -> &mut Self {
            self.tls(OBJECT, SOCKET, TLS_EVENT_RECEIVED, bytes)
        }

        fn sends(&mut self, bytes: &[u8]) -> &mut Self {
            self.tls(OBJECT, SOCKET, TLS_EVENT_SENT, bytes)
        }

        fn counts(&mut self) -> (u64, SpanCounts) {
            self.spans.finish(&mut self.known);
            let counts = self.spans.counts();
            assert_eq!(counts.recorded, self.spans.rows.len() as u64);
            (counts.recorded, counts)
        }
    }

    #[test]
    fn requests_on_a_socket() {
        let mut server = Server::new();
        // Bytes from before the library was found to use the socket, and from the end.
        server.socket(true, SECRET);
        server
            .tls(OBJECT, SOCKET, TLS_EVENT_HANDSHAKE, b"")
            .receives(GET)
            .sends(OK)
            .tls(OBJECT, 0, TLS_EVENT_RECEIVED, GET)
            .sends(OK)
            .socket(false, b"\x15\x03\x03\x00\x02\x01\x00")
            .tls(OBJECT, 0, TLS_EVENT_END, b"");
        let (rows, counts) = server.counts();
        assert_eq!((rows, counts.tls, counts.gaps), (2, 4, 0));
        assert_eq!(
            (counts.encrypted, counts.unrecognized, counts.unfinished),
            (0, 0, 0)
        );
    }

    #[test]
    fn requests_through_memory() {
        let mut server = Server::new();
        for _ in 0..3 {
            // The next object gets the address of an object that was freed.
            server
                .tls(OBJECT, 0, TLS_EVENT_HANDSHAKE, b"")
                .tls(OBJECT, 0, TLS_EVENT_RECEIVED, GET)
                .tls(OBJECT + 8, 0, TLS_EVENT_SENT, GET)
                .tls(OBJECT, 0, TLS_EVENT_SENT, OK)
                .tls(OBJECT, 0, TLS_EVENT_RECEIVED, GET)
                .tls(OBJECT, 0, TLS_EVENT_END, b"")
                .tls(OBJECT + 8, 0, TLS_EVENT_RECEIVED, OK)
                .tls(OBJECT + 8, 0, TLS_EVENT_END, b"");
        }
        server.socket(true, SECRET).socket(false, SECRET);
        let (rows, counts) = server.counts();
        assert_eq!((rows, counts.unfinished, counts.encrypted), (6, 3, 1));
        assert_eq!((counts.unrecognized, counts.gaps), (0, 0));
    }

    /// The protocol is known before the connection is encrypted.
    #[test]
    fn databases_that_change_to_encryption() {
        let mut server = Server::new();
        let start = b"\0\0\0\x10\0\x03\0\0user\0x\0\0";
        let query = b"Q\0\0\0\x0dSELECT 1\0";
        let answer = b"C\0\0\0\x0dSELECT 1\0Z\0\0\0\x05I";
        server
            .socket(true, b"\0\0\0\x08\x04\xd2\x16\x2f")
            .socket(false, b"S")
            .tls(OBJECT, SOCKET, TLS_EVENT_HANDSHAKE, b"")
            .receives(start)
            .sends(b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I")
            .receives(query)
            .sends(answer);
        let (rows, counts) = server.counts();
        assert_eq!((rows, counts.encrypted, counts.unrecognized), (1, 0, 0));

        let packet = |number: u8, body: &[u8]| [&[body.len() as u8, 0, 0, number], body].concat();
        let mut server = Server::new();
        let flags = [0, 8, 0, 0];
        server
            .socket(
                false,
                &packet(0, &[b"\x0a5.5.5-10.11\0", &[1; 60][..]].concat()),
            )
            .socket(true, &packet(1, &[&flags[..], &[0; 28]].concat()))
            .tls(OBJECT, SOCKET, TLS_EVENT_HANDSHAKE, b"")
            .receives(&packet(2, &[&flags[..], &[0; 60]].concat()))
            .sends(&packet(3, &[0; 7]))
            .receives(&packet(0, b"\x03SELECT 1"))
            .sends(&packet(1, &[0; 7]));
        let (rows, counts) = server.counts();
        assert_eq!((rows, counts.encrypted, counts.unrecognized), (1, 0, 0));
    }

    #[test]
    fn a_child_goes_on_with_the_connection() {
        let mut server = Server::new();
        server
            .tls(OBJECT, SOCKET, TLS_EVENT_HANDSHAKE, b"")
            .receives(GET)
            .sends(OK);
        server.pid = 8;
        server.receives(GET).sends(OK);
        server.pid = 7;
        // Its parent frees its own copy.
        server.tls(OBJECT, 0, TLS_EVENT_END, b"");
        server.pid = 8;
        server.receives(GET).sends(OK);
        let (rows, counts) = server.counts();
        assert_eq!((rows, counts.unfinished, counts.unrecognized), (3, 0, 0));
    }

    /// A response must not answer another request.
    #[test]
    fn lost_records_cost_their_requests_only() {
        let mut server = Server::new();
        server
            .tls(OBJECT, SOCKET, TLS_EVENT_HANDSHAKE, b"")
            .receives(GET);
        server.spans.tls_lost(&mut server.known);
        server.sends(OK).receives(GET).sends(OK);
        let (rows, counts) = server.counts();
        assert_eq!((rows, counts.gaps, counts.unfinished), (1, 1, 1));
    }

    #[test]
    fn any_calls_are_taken() {
        let mut rng = fastrand::Rng::with_seed(5);
        for _ in 0..2000 {
            let mut server = Server::new();
            for _ in 0..rng.usize(1..40) {
                server.pid = rng.u32(6..9);
                let bytes = [GET, OK, SECRET, b"", b"\xff\xff"][rng.usize(..5)];
                let (object, socket) = (rng.u64(1..4), rng.u32(0..3) * SOCKET / 2);
                match rng.u8(..10) {
                    0 => server.socket(rng.bool(), bytes),
                    1 => {
                        server.spans.closed(SOCKET, 7, &mut server.known);
                        &mut server
                    }
                    2 => {
                        server
                            .spans
                            .file(SOCKET, rng.u64(..3), rng.bool(), &mut server.known);
                        &mut server
                    }
                    _ => server.tls(object, socket, rng.u32(0..6), bytes),
                };
            }
            let (_, counts) = server.counts();
            assert!(counts.encrypted + counts.unrecognized <= 40);
        }
    }
}
