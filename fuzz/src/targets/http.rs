//! Requests to the page's server, which runs as the program does.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fastrand::Rng;
use fathom_tests::page::Page;

use super::{Target, peak_mib};
use crate::{corpus, mutate};

/// Memory that the server may take, MiB: what its databases may (`fathom ui --memory`), and itself.
const SERVER_MIB: u64 = 1024;
/// How long an answer to a damaged request is waited for. It may be none: the server waits for
/// the rest of the request, up to its own limit.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long one to a good request is.
const ANSWER: Duration = Duration::from_secs(30);

/// Addresses below /api, with ID for a session's.
const ADDRESSES: [&str; 22] = [
    "/sessions",
    "/sessions/ID",
    "/sessions/ID/tiles?by=file&pixels=64&from=0&to=1000000",
    "/sessions/ID/tiles?by=layer&f=%7B%22pid%22%3A%5B1%5D%7D",
    "/sessions/ID/timeline?lanes=1,2,3&pixels=100",
    "/sessions/ID/visits?lanes=1",
    "/sessions/ID/threads?from=0",
    "/sessions/ID/top?by=file&sort=bytes&limit=20",
    "/sessions/ID/top?by=thread&sort=p99_ns",
    "/sessions/ID/events?sort=-dur_ns&offset=3&limit=10",
    "/sessions/ID/requests/1",
    "/sessions/ID/requests/-9223372036854775808",
    "/sessions/ID/offsets?file=1&width=100&height=50",
    "/sessions/ID/offsets?file=1&low=5&high=2&unique=0",
    "/sessions/ID/layers?mode=windows&pixels=10",
    "/sessions/ID/devices",
    "/sessions/ID/devices/loop0?pixels=7",
    "/sessions/ID/cache",
    "/sessions/ID/findings",
    "/sessions/ID/schema",
    "/compare?before=ID&after=ID",
    "/sessions/ID/sql",
];
const HEADERS: [&str; 10] = [
    "Accept: */*",
    "Accept-Encoding: gzip, br, identity;q=0",
    "Range: bytes=0-18446744073709551615",
    "Expect: 100-continue",
    "Transfer-Encoding: chunked",
    "Content-Length: 99999999999999999999",
    "Connection: keep-alive, upgrade\r\nUpgrade: h2c",
    "If-None-Match: \"x\"",
    "Origin: http://example.org",
    "X-Long: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
];
const BODIES: [&str; 6] = [
    r#"{"sql": "SELECT * FROM by_file", "max_rows": 10}"#,
    r#"{"sql": "SELECT count(*) FROM syscalls", "max_rows": -1}"#,
    r#"{"sql": "", "max_rows": 1e400}"#,
    r#"{"sql": {"a": [[[[]]]]}}"#,
    "[]",
    "\u{0}",
];

/// The server, and the names of its sessions.
pub struct Http {
    page: Page,
    ids: Vec<String>,
    input: Vec<u8>,
    cases: u64,
}

impl Http {
    /// Starts a server over the sessions of a corpus.
    pub fn new(dir: &Path) -> Self {
        let page = Page::serve(&dir.join("sessions"));
        let name = |path: &PathBuf| {
            path.file_name()
                .expect("a name")
                .to_string_lossy()
                .into_owned()
        };
        Self {
            page,
            ids: corpus::files(dir, "sessions").iter().map(name).collect(),
            input: Vec::new(),
            cases: 0,
        }
    }

    fn request(&self, rng: &mut Rng) -> Vec<u8> {
        let id = mutate::one(rng, &self.ids);
        let address = mutate::one(rng, &ADDRESSES).replace("ID", id);
        let mut path = format!("/api{address}").into_bytes();
        if rng.bool() {
            mutate::bytes(
                rng,
                &mut path,
                b"&from=-1&to=99999999999999999999&%ff%00/../",
                3,
            );
            // A path with these would be another request.
            path.retain(|b| !matches!(b, b' ' | b'\r' | b'\n'));
        }
        let method = match rng.u8(..8) {
            0 => *mutate::one(rng, &["HEAD", "PUT", "OPTIONS", "TRACE", "G\u{e9}T"]),
            _ if address.ends_with("/sql") => "POST",
            1 => "POST",
            _ => "GET",
        };
        let mut body = Vec::new();
        if method == "POST" {
            body = mutate::one(rng, &BODIES).as_bytes().to_vec();
            if rng.bool() {
                mutate::bytes(rng, &mut body, b"{}[]\",:", 4);
            }
        }
        let mut more = String::new();
        if rng.u8(..3) == 0 {
            more.push_str(HEADERS[rng.usize(..HEADERS.len())]);
            more.push_str("\r\n");
        }
        if !body.is_empty() {
            more.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        let head = self.page.head(method, "PATH", &more).into_bytes();
        let at = head
            .windows(4)
            .position(|w| w == b"PATH")
            .expect("the path");
        let mut request = [&head[..at], &path, &head[at + 4..], &body].concat();
        if rng.u8(..4) == 0 {
            mutate::bytes(rng, &mut request, b"\r\n\r\nGET / HTTP/1.1\r\n", 3);
        }
        request
    }

    /// Status of the answer to `request`, if there is one.
    fn ask(&self, request: &[u8], patience: Duration) -> Result<Option<u16>, String> {
        let mut stream = TcpStream::connect_timeout(&self.page.address, ANSWER)
            .map_err(|e| format!("the server takes no connection: {e}"))?;
        stream.set_read_timeout(Some(patience)).expect("time limit");
        stream
            .set_write_timeout(Some(patience))
            .expect("time limit");
        // It may answer and hang up before it has read everything.
        let _ = stream.write_all(request);
        let mut answer = Vec::new();
        let mut buffer = [0; 4096];
        while let Ok(n) = stream.read(&mut buffer) {
            if n == 0 {
                break;
            }
            answer.extend(&buffer[..n]);
            // 100 Continue: the answer comes when the server has the body.
            if answer.starts_with(b"HTTP/1.1 1") {
                let end = answer.windows(4).position(|four| four == b"\r\n\r\n");
                answer.drain(..end.map_or(0, |end| end + 4));
            }
            // The rest is a body, or the stream of a live session.
            if answer.len() > 64 && !answer.starts_with(b"HTTP/1.1 1") {
                break;
            }
        }
        // The body that it waits for never came.
        if answer.is_empty() || answer.starts_with(b"HTTP/1.1 1") {
            return Ok(None);
        }
        let text = String::from_utf8_lossy(&answer);
        // A request of HTTP 1.0 is answered in kind.
        let status = text
            .strip_prefix("HTTP/1.1 ")
            .or_else(|| text.strip_prefix("HTTP/1.0 "))
            .and_then(|rest| rest.get(..3)?.parse().ok());
        status
            .map(Some)
            .ok_or_else(|| format!("no answer of HTTP: {text}"))
    }

    /// The server lives, answers what is asked for rightly, and is not large.
    fn alive(&self) -> Result<(), String> {
        let request = self.page.head("GET", "/api/sessions", "");
        match self.ask(request.as_bytes(), ANSWER)? {
            Some(200) => {}
            other => return Err(format!("a good request gets {other:?}")),
        }
        match peak_mib(&self.page.pid().to_string()) {
            Some(mib) if mib > SERVER_MIB => Err(format!("the server takes {mib} MiB")),
            Some(_) => Ok(()),
            None => Err("the server has ended".to_string()),
        }
    }
}

impl Target for Http {
    fn case(&mut self, rng: &mut Rng) -> Result<(), String> {
        self.input = self.request(rng);
        self.cases += 1;
        match self.ask(&self.input, PATIENCE)? {
            Some(500) => return Err("status 500".to_string()),
            // Busy or not there: the server says so itself. All else is the request's fault.
            Some(200..500 | 501 | 503..=505) | None => {}
            Some(status) => return Err(format!("status {status}")),
        }
        // One connection more a case would hide what many cases do.
        if self.cases % 16 == 1 {
            self.alive()
        } else {
            Ok(())
        }
    }

    fn keep(&mut self, path: &Path) {
        fs::write(path, &self.input).expect("the input");
    }
}
