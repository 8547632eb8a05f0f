//! The page's server, asked over HTTP by hand.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Cursor, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use arrow::array::Array;
use arrow::ipc::reader::StreamReader;
use arrow::json::LineDelimitedWriter;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Map, Value};

use crate::environment::fathom;

/// A server that is used by a test.
pub struct Page {
    /// http or https.
    scheme: String,
    /// Where it listens.
    pub address: SocketAddr,
    /// Its secret; empty if an access file has the secrets.
    pub token: String,
    child: Option<Child>,
}

/// What it answered.
pub struct Answer {
    /// Status.
    pub status: u16,
    /// Names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// What follows.
    pub body: Vec<u8>,
}

/// An answer with columns: description and rows.
pub struct Table {
    /// Metadata under key `fathom`.
    pub meta: Value,
    /// A row each.
    pub rows: Vec<Map<String, Value>>,
}

impl Page {
    /// `fathom ui` over `root`.
    pub fn serve(root: &Path) -> Page {
        Page::serve_with(root, &[])
    }

    /// The same with options.
    pub fn serve_with(root: &Path, options: &[&OsStr]) -> Page {
        let mut child = Command::new(fathom())
            .arg("ui")
            .arg(root)
            .args(["--no-open", "--listen", "127.0.0.1:0"])
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("fathom ui");
        let mut line = String::new();
        let out = child.stdout.take().expect("standard output");
        BufReader::new(out).read_line(&mut line).expect("address");
        let mut page = Page::at(line.trim_end());
        page.child = Some(child);
        page
    }

    /// The server whose address was printed as `url`.
    pub fn at(url: &str) -> Page {
        let (base, rest) = url.rsplit_once('/').expect("an address");
        let token = rest.strip_prefix("#token=").unwrap_or_default();
        let (scheme, address) = base.split_once("://").expect("a scheme");
        Page {
            scheme: scheme.to_owned(),
            address: address.parse().expect("an address"),
            token: token.to_owned(),
            child: None,
        }
    }

    /// Sends `head` as it is, without its last line, and reads all that comes back.
    pub fn raw(&self, head: &str, body: &[u8]) -> Answer {
        let mut stream = TcpStream::connect(self.address).expect("connection");
        stream
            .set_read_timeout(Some(Duration::from_secs(120)))
            .expect("time limit");
        stream.write_all(head.as_bytes()).expect("request");
        stream.write_all(body).expect("request");
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).expect("answer");
        Answer::parse(&bytes)
    }

    /// The head of a request as the page sends it.
    pub fn head(&self, method: &str, path: &str, more: &str) -> String {
        format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\
             Connection: close\r\n{more}\r\n",
            self.address, self.token
        )
    }

    /// Asks for an address below `/api`.
    pub fn get(&self, path: &str) -> Answer {
        self.raw(&self.head("GET", &format!("/api{path}"), ""), b"")
    }

    /// A JSON answer, which must be one.
    pub fn json(&self, path: &str) -> Value {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        serde_json::from_slice(&answer.body).unwrap_or_else(|e| panic!("{path}: {e}"))
    }

    /// An answer with columns, which must be one.
    pub fn table(&self, path: &str) -> Table {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.table()
    }

    /// What SQL gives.
    pub fn sql(&self, id: &str, sql: &str) -> Answer {
        let body = serde_json::json!({ "sql": sql }).to_string();
        let more = format!("Content-Length: {}\r\n", body.len());
        let path = format!("/api/sessions/{id}/sql");
        self.raw(&self.head("POST", &path, &more), body.as_bytes())
    }

    /// Its address, without the token.
    pub fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.address)
    }

    /// Process id of a server of the test's own.
    pub fn pid(&self) -> u32 {
        self.child.as_ref().expect("a server of its own").id()
    }

    /// Ends it as Ctrl-C does; returns its exit status.
    pub fn interrupt(mut self) -> Option<i32> {
        let mut child = self.child.take().expect("a server of its own");
        let pid = Pid::from_raw(child.id() as i32).expect("process id");
        kill_process(pid, Signal::INT).expect("signal");
        child.wait().expect("its end").code()
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Answer {
    fn parse(bytes: &[u8]) -> Answer {
        let end = bytes
            .windows(4)
            .position(|w| w == b"\r\n\r\n")
            .unwrap_or_else(|| panic!("no answer: {:?}", String::from_utf8_lossy(bytes)));
        let head = String::from_utf8(bytes[..end].to_vec()).expect("head");
        let mut lines = head.lines();
        let status = lines.next().and_then(|l| l.split(' ').nth(1));
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
            .collect();
        let mut answer = Answer {
            status: status.and_then(|s| s.parse().ok()).expect("status"),
            headers,
            body: bytes[end + 4..].to_vec(),
        };
        if answer.header("transfer-encoding") == Some("chunked") {
            answer.body = unchunked(&answer.body);
        }
        answer
    }

    /// A header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(n, _)| n == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as columns.
    pub fn table(&self) -> Table {
        assert_eq!(
            self.header("content-type"),
            Some("application/vnd.apache.arrow.stream"),
            "{}",
            self.text()
        );
        let reader = StreamReader::try_new(Cursor::new(&self.body), None).expect("Arrow");
        let meta = reader.schema().metadata()["fathom"].clone();
        let mut rows = Vec::new();
        for batch in reader {
            let batch = batch.expect("rows");
            assert!(batch.columns().iter().all(|c| c.len() == batch.num_rows()));
            let mut writer = LineDelimitedWriter::new(Vec::new());
            writer.write(&batch).expect("rows");
            writer.finish().expect("rows");
            for line in String::from_utf8(writer.into_inner())
                .expect("JSON")
                .lines()
            {
                match serde_json::from_str(line).expect("JSON") {
                    Value::Object(row) => rows.push(row),
                    other => panic!("not a row: {other}"),
                }
            }
        }
        Table {
            meta: serde_json::from_str(&meta).expect("JSON"),
            rows,
        }
    }
}

impl Table {
    /// Numbers of a column; those that are null as 0.
    pub fn numbers(&self, column: &str) -> Vec<f64> {
        let value = |row: &Map<String, Value>| row.get(column).and_then(Value::as_f64);
        self.rows.iter().map(|r| value(r).unwrap_or(0.0)).collect()
    }

    /// Their sum.
    pub fn sum(&self, column: &str) -> f64 {
        self.numbers(column).iter().sum()
    }

    /// Texts of a column.
    pub fn texts(&self, column: &str) -> Vec<Option<&str>> {
        let value = |row| Map::get(row, column).and_then(Value::as_str);
        self.rows.iter().map(value).collect()
    }
}

fn unchunked(mut bytes: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    while let Some(end) = bytes.windows(2).position(|w| w == b"\r\n") {
        let size = std::str::from_utf8(&bytes[..end]).expect("size");
        let size = usize::from_str_radix(size, 16).expect("size");
        let chunk = &bytes[end + 2..];
        if size == 0 || chunk.len() < size {
            break;
        }
        whole.extend_from_slice(&chunk[..size]);
        bytes = chunk.get(size + 2..).unwrap_or_default();
    }
    whole
}
