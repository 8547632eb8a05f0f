//! Connections as scripts of calls.

use fathom_model::protocols::Protocols;

use super::exchange::{Exchange, Moment, Value};
use super::flow::{Flow, Moved};

/// A connection of a server, whose calls return at 10, 20, 30, and so on.
pub(super) struct Script {
    flow: Flow,
    at_ns: u64,
    most: usize,
    places: Option<[u64; 2]>,
    pub(super) done: Vec<Exchange>,
}

impl Script {
    pub(super) fn new() -> Self {
        Self {
            flow: Flow::new(1, false),
            at_ns: 0,
            most: 1024,
            places: None,
            done: Vec::new(),
        }
    }

    fn moved(&mut self, is_in: bool, bytes: &[u8], seen: usize) -> &mut Self {
        self.at_ns += 10;
        let now = Moment {
            at_ns: self.at_ns,
            pid: 7,
            tid: 8,
        };
        let moved = Moved {
            is_in,
            seen: &bytes[..bytes.len().min(seen)],
            total: bytes.len() as u64,
            offset: self.places.map(|places| places[usize::from(is_in)]),
        };
        if let Some(places) = &mut self.places {
            places[usize::from(is_in)] += bytes.len() as u64;
        }
        self.flow.moved(&moved, now, Protocols::all());
        self.done.append(&mut self.flow.all.done);
        self
    }

    pub(super) fn receive(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        self.moved(true, bytes.as_ref(), self.most)
    }

    pub(super) fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        self.moved(false, bytes.as_ref(), self.most)
    }

    /// A call whose bytes were not read.
    fn receive_unseen(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        self.moved(true, bytes.as_ref(), 0)
    }

    fn send_unseen(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        self.moved(false, bytes.as_ref(), 0)
    }

    /// Names, begins, ends, and errors.
    pub(super) fn spans(&mut self) -> Vec<(String, u64, u64, String)> {
        self.flow.ends();
        self.done.append(&mut self.flow.all.done);
        let spans = self.done.iter().map(|e| {
            let error = e
                .error
                .as_ref()
                .map_or(String::new(), |(code, _)| code.clone());
            (
                e.request.name.clone(),
                e.began.at_ns,
                e.responded.unwrap().at_ns,
                error,
            )
        });
        spans.collect()
    }

    pub(super) fn gaps(&self) -> u64 {
        self.flow.gaps
    }

    pub(super) fn names(&mut self) -> Vec<String> {
        self.spans().into_iter().map(|span| span.0).collect()
    }
}

pub(super) fn span(name: &str, began: u64, ended: u64) -> (String, u64, u64, String) {
    (name.into(), began, ended, String::new())
}

pub(super) fn failed(
    name: &str,
    began: u64,
    ended: u64,
    error: &str,
) -> (String, u64, u64, String) {
    (name.into(), began, ended, error.into())
}

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";

#[test]
fn http_requests_in_one_connection() {
    let mut script = Script::new();
    script
        .receive("GET /a?x=1 HTTP/1.1\r\nHost: h\r\n\r\n")
        .send(OK)
        .receive("POST /b HTTP/1.1\r\nContent-Length: 6\r\n\r\nab")
        .receive("cdef")
        .send("HTTP/1.1 100 Continue\r\n\r\n")
        .send("HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
        .send("2;x=y\r\nde\r\n0\r\n")
        .send("X: y\r\n\r\n")
        .receive("HEAD /c HTTP/1.1\r\n\r\n")
        .send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n")
        .receive("GET http://h/d HTTP/1.0\r\n\r\n")
        .send("HTTP/1.0 500 No\r\n\r\nto the")
        .send("end");
    let expected = [
        span("GET /a", 10, 20),
        failed("POST /b", 30, 80, "HTTP 404"),
        span("HEAD /c", 90, 100),
        failed("GET /d", 110, 130, "HTTP 500"),
    ];
    assert_eq!(script.spans(), expected);
    assert_eq!(script.flow.gaps, 0);
}

#[test]
fn http_requests_that_do_not_wait() {
    let mut script = Script::new();
    script
        .receive("GET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\nGET")
        .receive(" /c HTTP/1.1\r\n\r\n")
        .send(OK.repeat(2))
        .send(OK);
    let expected = [
        span("GET /a", 10, 30),
        span("GET /b", 10, 30),
        span("GET /c", 10, 40),
    ];
    assert_eq!(script.spans(), expected);
}

#[test]
fn http_bodies_beyond_the_bytes_that_are_read() {
    let body = "x".repeat(5000);
    let mut script = Script::new();
    script
        .receive(format!(
            "PUT /a HTTP/1.1\r\nContent-Length: 5000\r\n\r\n{body}"
        ))
        .send("HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n")
        .send_unseen(&body)
        .receive(format!("GET /b HTTP/1.1\r\nCookie: {body}\r\n\r\n"))
        .send(OK)
        .receive("GET /c HTTP/1.1\r\n\r\n")
        .send(format!(
            "HTTP/1.1 200 OK\r\nX: {body}\r\nContent-Length: 2\r\n\r\n"
        ))
        .send("ab")
        .receive("GET /d HTTP/1.1\r\n\r\n")
        .send(OK);
    let expected = [
        span("PUT /a", 10, 30),
        span("GET /b", 40, 50),
        span("GET /c", 60, 80),
        span("GET /d", 90, 100),
    ];
    assert_eq!(script.spans(), expected);
}

#[test]
fn http_origin_and_attributes() {
    let mut script = Script::new();
    script
        .receive(
            "GET /a HTTP/1.1\r\nTraceParent: 00-25bb110cdde4f01f02eb51f567907571-d436a762ad96283c-01\r\n\r\n",
        )
        .send(OK);
    let request = &script.done[0].request;
    let origin = request.origin.unwrap();
    assert_eq!(origin.trace, 0x25bb_110c_dde4_f01f_02eb_51f5_6790_7571);
    assert_eq!(origin.span, 0xd436_a762_ad96_283c);
    assert!(
        request
            .attributes
            .contains(&("http.response.status_code", Value::Number(200)))
    );
}

fn message(kind: u8, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let mut bytes = vec![kind];
    bytes.extend((body.len() as u32 + 4).to_be_bytes());
    bytes.extend(body);
    bytes
}

fn start() -> Vec<u8> {
    let mut bytes = message(0, b"\0\x03\0\0user\0x\0\0");
    bytes.remove(0);
    bytes
}

fn ready() -> Vec<u8> {
    message(b'Z', "I")
}

fn complete() -> Vec<u8> {
    message(b'C', "SELECT 1\0")
}

/// Bind and Execute of the statement `name`.
fn execute(name: &str) -> Vec<u8> {
    [
        message(b'B', format!("\0{name}\0\0\0\0\0\0\0")),
        message(b'D', "P\0"),
        message(b'E', "\0\0\0\0\0"),
    ]
    .concat()
}

fn sync() -> Vec<u8> {
    message(b'S', "")
}

#[test]
fn postgresql_simple_queries() {
    let mut script = Script::new();
    script
        .receive(b"\0\0\0\x08\x04\xd2\x16\x2f")
        .send("N")
        .receive(start())
        .send(message(b'R', [0, 0, 0, 5, 1, 2, 3, 4]))
        .receive(message(b'p', "md5\0"))
        .send([message(b'R', [0; 4]), message(b'S', "a\0b\0"), ready()].concat())
        .receive(message(b'Q', "SELECT 1 + 2\0"))
        .send(message(b'T', "..."))
        .send([complete(), complete(), ready()].concat())
        .receive(message(b'Q', "SELEC 'x'\0"))
        .send([message(b'E', "SERROR\0C42601\0Msyntax\0\0"), ready()].concat())
        .receive(message(b'X', ""));
    let expected = [
        span("SELECT ? + ?", 70, 90),
        failed("SELEC ?", 100, 110, "42601"),
    ];
    assert_eq!(script.spans(), expected);
    assert_eq!(script.flow.gaps, 0);
}

#[test]
fn postgresql_extended_queries() {
    let parse = message(b'P', "s1\0SELECT a FROM t WHERE id = $1\0\0\0");
    let failing = message(b'E', "SERROR\0C22012\0\0");
    let mut script = Script::new();
    script
        .receive(start())
        .send(ready())
        .receive([parse, sync()].concat())
        .send([message(b'1', ""), ready()].concat())
        .receive([execute("s1"), sync()].concat())
        .send([message(b'2', ""), message(b'D', "xx"), complete(), ready()].concat())
        // Two before one Sync, of which the first fails: the second is ignored.
        .receive([execute("s1"), execute("s1"), sync(), execute("s1"), sync()].concat())
        .send([message(b'2', ""), failing, ready()].concat())
        .send([message(b'2', ""), complete(), ready()].concat())
        // Sync comes after the error.
        .receive(execute("s1"))
        .send(message(b'E', "C22012\0\0"))
        .receive([execute("s1"), sync()].concat())
        .send(ready())
        .receive([execute("s1"), sync()].concat())
        .send([complete(), ready()].concat());
    let name = "SELECT a FROM t WHERE id = ?";
    let expected = [
        span(name, 50, 60),
        failed(name, 70, 80, "22012"),
        span(name, 70, 90),
        failed(name, 100, 110, "22012"),
        span(name, 140, 150),
    ];
    assert_eq!(script.spans(), expected);
    assert_eq!(script.flow.gaps, 0);
}

#[test]
fn postgresql_connections_that_were_there_before() {
    let mut script = Script::new();
    script
        .send([message(b'D', "half of a response"), ready()].concat())
        .receive([execute("old"), sync()].concat())
        .send([message(b'2', ""), complete(), ready()].concat());
    assert_eq!(script.spans(), [span("EXECUTE old", 20, 30)]);
}

fn command(words: &[&str]) -> String {
    let words = words
        .iter()
        .map(|word| format!("${}\r\n{word}\r\n", word.len()));
    format!("*{}\r\n{}", words.len(), words.collect::<String>())
}

#[test]
fn redis_commands() {
    let mut script = Script::new();
    let long = "v".repeat(3000);
    script
        .receive("PING\r\n")
        .send("+PONG\r\n")
        .receive(command(&["set", "k", &long]))
        .send("+OK\r\n")
        .receive([command(&["GET", "k"]), command(&["LRANGE", "l", "0", "9"])].concat())
        .send(format!("$3000\r\n{long}\r\n"))
        .send("*3\r\n$1\r\na\r\n*1\r\n:1\r\n*-1\r\n")
        .receive(command(&["INCR", "k"]))
        .send("-WRONGTYPE no number\r\n")
        .receive(command(&["HGETALL", "h"]))
        .send("|1\r\n+a\r\n+b\r\n%1\r\n$1\r\na\r\n$-1\r\n")
        .receive(command(&["GET", "k"]))
        .send(">2\r\n+invalidate\r\n*1\r\n+k\r\n")
        .send("_\r\n");
    let expected = [
        span("PING", 10, 20),
        span("SET", 30, 40),
        span("GET", 50, 60),
        span("LRANGE", 50, 70),
        failed("INCR", 80, 90, "WRONGTYPE"),
        span("HGETALL", 100, 110),
        span("GET", 120, 140),
    ];
    assert_eq!(script.spans(), expected);
    assert_eq!(script.flow.gaps, 0);
}

#[test]
fn redis_subscribers_are_left_alone() {
    let mut script = Script::new();
    script
        .receive(command(&["GET", "k"]))
        .send("$1\r\na\r\n")
        .receive(command(&["SUBSCRIBE", "a", "b"]))
        .send("*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n")
        .receive(command(&["GET", "k"]))
        .send("$1\r\na\r\n");
    assert_eq!(script.names(), ["GET"]);
    assert_eq!(script.flow.unrecognized, 1);
}

fn packet(number: u8, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let mut bytes = (body.len() as u32).to_le_bytes().to_vec();
    bytes[3] = number;
    bytes.extend(body);
    bytes
}

#[test]
fn mysql_commands() {
    let greeting = [b"\x0a5.5.5-10.11\0".as_slice(), &[1; 60]].concat();
    let login = [&[0, 0, 0, 1][..], &[0; 60]].concat();
    let mut script = Script::new();
    script
        .send(packet(0, greeting))
        .receive(packet(1, login))
        .send(packet(2, [0; 7]))
        .receive(packet(0, b"\x03SELECT \"a\", 2"))
        .send(packet(1, [2]))
        .send([packet(2, [1; 30]), packet(3, "\x01a")].concat())
        .receive(&packet(0, b"\x03SELEC")[..4])
        .receive(&packet(0, b"\x03SELEC")[4..])
        .send(packet(1, b"\xff\x28\x04#42000wrong"))
        .receive(packet(0, b"\x16SELECT a FROM t WHERE id = ?"))
        .send(packet(1, [0, 5, 0, 0, 0, 1, 0]))
        .receive(packet(0, [0x17, 5, 0, 0, 0, 0]))
        .send(packet(1, [1; 9000]))
        .receive(packet(0, [0x19, 5, 0, 0, 0]))
        .receive(packet(0, [14]))
        .send(packet(1, [0; 7]))
        .receive(packet(0, [1]));
    let expected = [
        span("SELECT ?, ...", 40, 60),
        failed("SELEC", 70, 90, "1064"),
        span("PREPARE SELECT a FROM t WHERE id = ?", 100, 110),
        span("SELECT a FROM t WHERE id = ?", 120, 130),
        span("PING", 150, 160),
    ];
    assert_eq!(script.spans(), expected);
}

#[test]
fn other_bytes_are_none() {
    let mut tls = b"\x16\x03\x01\x02\0\x01\0".to_vec();
    tls.resize(600, 9);
    let mut script = Script::new();
    script
        .receive(tls)
        .send([9; 3000])
        .receive("\x17\x03\x03GET / HTTP/1.1\r\n\r\n");
    assert!(script.names().is_empty());
    assert_eq!((script.flow.unrecognized, script.flow.encrypted), (0, 1));
    for bytes in [
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "220 mail ready\r\n",
        "GET lost\r\n",
        "",
    ] {
        let mut script = Script::new();
        script.receive(bytes).send(OK).receive(bytes).send(OK);
        assert!(script.names().is_empty(), "{bytes}");
    }
}

/// Rows whose beginnings are among bytes that were not read: the response ends with the last bytes
/// before the next request, unless several wait for theirs.
#[test]
fn rows_that_are_not_read() {
    let rows = message(b'D', "x".repeat(100)).repeat(40);
    let end = [complete(), ready()].concat();
    let ask = [message(b'P', "s\0SELECT 2\0\0\0"), execute("s")].concat();
    let mut script = Script::new();
    script
        .receive(start())
        .send(ready())
        .receive(message(b'Q', "SELECT 1\0"))
        .send(&rows)
        .send(&end)
        .receive([ask.clone(), sync()].concat())
        .send(&rows)
        .send(&end)
        .receive([ask.clone(), ask, sync()].concat())
        .send(&rows)
        .send(&end)
        .receive(message(b'Q', "SELECT 3\0"))
        .send(&rows);
    let expected = [
        span("SELECT ?", 30, 50),
        span("SELECT ?", 60, 80),
        span("SELECT ?", 120, 130),
    ];
    assert_eq!(script.spans(), expected);
    assert_eq!(script.flow.gaps, 1);
}

/// The sizes of chunks are among bytes that were not read: the body ends with the last bytes before the
/// other side sends some.
#[test]
fn chunks_that_are_not_read() {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let chunks = |n: usize| format!("64\r\n{}\r\n", "x".repeat(100)).repeat(n);
    let mut script = Script::new();
    script
        .receive("GET /long HTTP/1.1\r\n\r\n")
        .send(format!("{head}{}", chunks(40)))
        .send(format!("{}0\r\n\r\n", chunks(20)))
        .receive("POST /up HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")
        .receive(chunks(40))
        .receive("0\r\n\r\n")
        .send(OK)
        .receive("GET /short HTTP/1.1\r\n\r\n")
        .send(format!("{head}{}0\r\n\r\n", chunks(2)))
        .receive("GET /last HTTP/1.1\r\n\r\n")
        .send(format!("{head}{}0\r\n\r\n", chunks(40)));
    let expected = [
        span("GET /long", 10, 30),
        span("POST /up", 40, 70),
        span("GET /short", 80, 90),
        span("GET /last", 100, 110),
    ];
    assert_eq!(script.spans(), expected);
    assert_eq!(script.flow.gaps, 0);
}

/// Bytes that were not recorded cost the requests that they belong to, and no others.
#[test]
fn missing_bytes_cost_their_requests_only() {
    let get = |path: &str| format!("GET /{path} HTTP/1.1\r\n\r\n");
    let mut script = Script::new();
    script
        .receive(get("a"))
        .send(OK)
        .receive_unseen(get("b"))
        .send(OK)
        .receive(get("c"))
        .send(OK)
        .receive(get("d"))
        .send_unseen(OK)
        .receive(get("e"))
        .send(OK);
    assert_eq!(script.names(), ["GET /a", "GET /c", "GET /e"]);
    assert_eq!(script.flow.gaps, 2);
    // The records of the calls are missing, too.
    let mut script = Script::new();
    script.places = Some([0, 0]);
    script.receive(get("a")).send(OK);
    script.places = Some([OK.len() as u64, 2 * get("a").len() as u64]);
    script.send(OK).receive(get("c")).send(OK);
    script.places = script.places.map(|[sent, received]| [sent, received + 18]);
    script.receive(get("e")).send(OK).receive(get("f")).send(OK);
    assert_eq!(script.names(), ["GET /a", "GET /f"]);
}

/// Whatever comes: no panic, bounded memory, and only names that are bytes of requests.
#[test]
fn any_bytes_are_taken() {
    let mut rng = fastrand::Rng::with_seed(11);
    let good: Vec<Vec<u8>> = vec![
        b"GET /a HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc".to_vec(),
        OK.into(),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n".to_vec(),
        command(&["SET", "k", "v"]).into(),
        b"*2\r\n$1\r\na\r\n:1\r\n".to_vec(),
        b"+OK\r\n".to_vec(),
        start(),
        [message(b'P', "s\0SELECT 1\0\0\0"), execute("s"), sync()].concat(),
        [complete(), ready()].concat(),
        message(b'Q', "SELECT 1\0"),
        message(b'E', "C42601\0\0"),
        packet(0, [b"\x0a5.5.5-10.11\0".as_slice(), &[1; 60]].concat()),
        packet(1, [0; 60]),
        packet(0, b"\x03SELECT 1"),
        packet(1, b"\xff\x28\x04#42000wrong"),
        packet(0, [0x17, 5, 0, 0, 0, 0]),
        super::fastcgi::tests::request(&[("REQUEST_METHOD", "GET"), ("REQUEST_URI", "/")]),
        super::fastcgi::tests::response("Status: 404\r\n\r\nnone", 0),
        super::mongodb::tests::find(1),
        super::mongodb::tests::answer(1, &[("ok", super::bson::tests::Given::Int(0))]),
        b"\xff\xff\xff\xff\xff\xff\xff\xff".to_vec(),
        b"*99999999999999999999\r\n".to_vec(),
        b"$9223372036854775807\r\n".to_vec(),
        b"ffffffffffffffff\r\n".to_vec(),
    ];
    for turn in 0..20_000 {
        let mut script = Script::new();
        if rng.bool() {
            script.places = Some([0, 0]);
        }
        for _ in 0..rng.usize(1..16) {
            let mut bytes = good[rng.usize(..good.len())].clone();
            for _ in 0..rng.usize(..3) {
                let at = rng.usize(..bytes.len());
                match rng.u8(..4) {
                    0 => bytes[at] = rng.u8(..),
                    1 => bytes.truncate(at + 1),
                    2 => bytes.extend(good[rng.usize(..good.len())].clone()),
                    _ => bytes[at] ^= 1 << rng.u8(..8),
                }
            }
            script.most = *[0, 5, 64, 1024].get(rng.usize(..4)).unwrap();
            match rng.bool() {
                true => script.receive(&bytes),
                false => script.send(&bytes),
            };
            assert!(script.flow.bytes() < 64 << 10, "{turn}");
        }
        for (name, began, ended, _) in script.spans() {
            assert!(name.len() < 300 && began <= ended, "{turn}");
        }
        assert_eq!(script.flow.all.waiting(), 0);
    }
}

#[test]
fn requests_without_responses_are_bounded() {
    let mut script = Script::new();
    for _ in 0..5_000 {
        script.receive(command(&["GET", "k"]));
    }
    assert!(script.flow.all.waiting() <= 1024 && script.flow.gaps > 0);
    let mut script = Script::new();
    script.receive(start()).send(ready());
    for n in 0..20_000 {
        script.receive(message(b'P', format!("s{n}\0SELECT a{n}\0\0\0")));
    }
    assert!(script.flow.bytes() < 2 << 20);
}

#[test]
fn no_part_of_a_query_is_a_path() {
    let path = |target: &'static str| super::http::path_of(target.as_bytes());
    let of = |path: &'static str, query: Option<&'static str>| {
        (path.as_bytes(), query.map(str::as_bytes))
    };
    assert_eq!(path("/a?b=/c"), of("/a", Some("b=/c")));
    assert_eq!(path("http://host/a"), of("/a", None));
    assert_eq!(path("https://host"), of("/", None));
    assert_eq!(path("http://host?x=/secret"), of("/", Some("x=/secret")));
}
