//! A small server that answers as S3 does, fails on purpose, and can be stopped and started again.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;

/// Name of its only bucket.
pub const BUCKET: &str = "bucket";
/// Objects in one answer to a request for a list.
const PAGE: usize = 3;

/// The objects and what happened to them.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    /// By key.
    pub objects: BTreeMap<String, Vec<u8>>,
    /// How often an object was written.
    pub writes: u64,
    /// Keys that were written with other contents than before.
    pub changed: Vec<String>,
}

#[derive(Default)]
struct Shared {
    contents: Mutex<Contents>,
    requests: AtomicU64,
    fails: AtomicBool,
    stopped: AtomicBool,
    open: Mutex<Vec<TcpStream>>,
}

/// The server.
pub struct FakeStore {
    shared: Arc<Shared>,
    address: SocketAddr,
    thread: Option<JoinHandle<()>>,
}

impl FakeStore {
    /// Starts it. With `fails` every third request gets status 503; of these every other one has taken
    /// effect before.
    pub fn start(fails: bool) -> Self {
        let shared = Arc::new(Shared::default());
        shared.fails.store(fails, Ordering::Relaxed);
        let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
        let address = listener.local_addr().expect("address");
        let mut store = Self {
            shared,
            address,
            thread: None,
        };
        store.serve(listener);
        store
    }

    fn serve(&mut self, listener: TcpListener) {
        let shared = Arc::clone(&self.shared);
        shared.stopped.store(false, Ordering::SeqCst);
        self.thread = Some(std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if shared.stopped.load(Ordering::SeqCst) {
                    break;
                }
                if let Ok(copy) = stream.try_clone() {
                    shared.open.lock().expect("lock").push(copy);
                }
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || shared.converse(stream));
            }
        }));
    }

    /// Breaks all connections and refuses others.
    pub fn stop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("server");
        }
        for stream in self.shared.open.lock().expect("lock").drain(..) {
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }

    /// Starts again at the same address with the same objects.
    pub fn go_on(&mut self) {
        let listener = TcpListener::bind(self.address).expect("bind again");
        self.serve(listener);
    }

    /// Environment of a client.
    pub fn environment(&self) -> [(&'static str, String); 5] {
        [
            ("AWS_ENDPOINT_URL", format!("http://{}", self.address)),
            ("AWS_ALLOW_HTTP", "true".into()),
            ("AWS_REGION", "us-east-1".into()),
            ("AWS_ACCESS_KEY_ID", "key".into()),
            ("AWS_SECRET_ACCESS_KEY", "secret".into()),
        ]
    }

    /// Requests so far.
    pub fn requests(&self) -> u64 {
        self.shared.requests.load(Ordering::SeqCst)
    }

    /// Its objects.
    pub fn contents(&self) -> MutexGuard<'_, Contents> {
        self.shared.contents.lock().expect("lock")
    }
}

impl Drop for FakeStore {
    fn drop(&mut self) {
        self.stop();
    }
}

struct Request {
    method: String,
    key: String,
    query: BTreeMap<String, String>,
    body: Vec<u8>,
}

impl Shared {
    fn converse(&self, stream: TcpStream) {
        let Ok(mut out) = stream.try_clone() else {
            return;
        };
        let mut reader = BufReader::new(stream);
        while let Ok(Some(request)) = read(&mut reader) {
            if self.stopped.load(Ordering::SeqCst) {
                return;
            }
            let number = self.requests.fetch_add(1, Ordering::SeqCst) + 1;
            let fails = self.fails.load(Ordering::Relaxed) && number.is_multiple_of(3);
            let answer = match fails && number.is_multiple_of(2) {
                true => None,
                false => Some(self.answer(&request)),
            };
            let (status, body) = answer.filter(|_| !fails).unwrap_or_else(|| {
                let body = b"<Error><Code>SlowDown</Code></Error>";
                ("503 Slow Down", body.to_vec())
            });
            let sent = respond(&mut out, status, &body, request.method == "HEAD");
            if sent.is_err() {
                return;
            }
        }
    }

    fn answer(&self, request: &Request) -> (&'static str, Vec<u8>) {
        let mut contents = self.contents.lock().expect("lock");
        let has = |name: &str| request.query.contains_key(name);
        match (request.method.as_str(), request.key.as_str()) {
            ("GET", "") => ("200 OK", list(&contents, &request.query)),
            ("POST", "") if has("delete") => {
                let body = String::from_utf8_lossy(&request.body).into_owned();
                let keys = body
                    .split("<Key>")
                    .skip(1)
                    .filter_map(|rest| rest.split("</Key>").next());
                let mut said = String::from("<DeleteResult>");
                for key in keys {
                    contents.objects.remove(key);
                    said.push_str(&format!("<Deleted><Key>{key}</Key></Deleted>"));
                }
                ("200 OK", (said + "</DeleteResult>").into_bytes())
            }
            ("PUT", key) => {
                let before = contents
                    .objects
                    .insert(key.to_owned(), request.body.clone());
                if before.is_some_and(|before| before != request.body) {
                    contents.changed.push(key.to_owned());
                }
                contents.writes += 1;
                ("200 OK", Vec::new())
            }
            ("DELETE", key) => {
                contents.objects.remove(key);
                ("204 No Content", Vec::new())
            }
            ("GET" | "HEAD", key) => match contents.objects.get(key) {
                Some(object) => ("200 OK", object.clone()),
                None => (
                    "404 Not Found",
                    b"<Error><Code>NoSuchKey</Code></Error>".to_vec(),
                ),
            },
            _ => ("501 Not Implemented", Vec::new()),
        }
    }
}

fn read(from: &mut impl BufRead) -> io::Result<Option<Request>> {
    let mut line = String::new();
    if from.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split(' ');
    let method = words.next().unwrap_or_default().to_owned();
    let target = words.next().unwrap_or_default().to_owned();
    let mut length = 0;
    loop {
        let mut line = String::new();
        from.read_line(&mut line)?;
        let Some((name, value)) = line.split_once(':') else {
            break;
        };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body)?;
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let path = path.trim_start_matches('/');
    let key = path
        .strip_prefix(BUCKET)
        .unwrap_or(path)
        .trim_start_matches('/');
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let query = pairs.map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        (decoded(name), decoded(value))
    });
    Ok(Some(Request {
        method,
        key: decoded(key),
        query: query.collect(),
        body,
    }))
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let digits: Option<(u8, u8)> = (byte == b'%')
            .then(|| rest.next().zip(rest.next()))
            .flatten();
        match digits {
            Some((high, low)) => {
                let digits = [high, low];
                let digits = std::str::from_utf8(&digits).expect("digits");
                bytes.push(u8::from_str_radix(digits, 16).expect("digits"));
            }
            None => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).expect("UTF-8")
}

fn list(contents: &Contents, query: &BTreeMap<String, String>) -> Vec<u8> {
    let text = |name: &str| query.get(name).map_or("", String::as_str);
    let (prefix, after) = (text("prefix"), text("continuation-token"));
    let found = contents.objects.iter();
    let found = found.filter(|(key, _)| key.starts_with(prefix) && key.as_str() > after);
    let found: Vec<_> = found.take(PAGE + 1).collect();
    let mut said = String::from("<ListBucketResult>");
    for (key, object) in found.iter().take(PAGE) {
        said.push_str(&format!(
            "<Contents><Key>{key}</Key><Size>{}</Size>\
             <LastModified>2024-01-01T00:00:00.000Z</LastModified></Contents>",
            object.len()
        ));
    }
    if let (true, Some((last, _))) = (found.len() > PAGE, found.get(PAGE - 1)) {
        said.push_str(&format!(
            "<IsTruncated>true</IsTruncated><NextContinuationToken>{last}</NextContinuationToken>"
        ));
    }
    (said + "</ListBucketResult>").into_bytes()
}

fn respond(to: &mut impl Write, status: &str, body: &[u8], head: bool) -> io::Result<()> {
    write!(
        to,
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nETag: \"e\"\r\n\
         Last-Modified: Mon, 01 Jan 2024 00:00:00 GMT\r\n\r\n",
        body.len()
    )?;
    if !head {
        to.write_all(body)?;
    }
    to.flush()
}
