//! FastCGI, between a web server and PHP or another application.
//!
//! A request has the parameters of CGI: `REQUEST_METHOD` and `REQUEST_URI` name it, and
//! `REMOTE_ADDR` and `REMOTE_PORT` are the connection by which the web server received it.

use std::net::IpAddr;

use fathom_model::bytes::printable;

use super::exchange::{Exchanges, Moment, Request, Value};
use super::http::path_of;
use super::step::{Input, MOST_BYTES, Step};

const HEADER: usize = 8;
/// Bytes of the first output that are searched for the status.
const MOST_HEAD: usize = 1024;

// Types of records.
const BEGIN_REQUEST: u8 = 1;
const END_REQUEST: u8 = 3;
const PARAMS: u8 = 4;
const STDOUT: u8 = 6;
/// The highest type that there is.
const UNKNOWN_TYPE: u8 = 11;

#[derive(Debug, Default)]
pub(super) struct Fastcgi {
    /// The call with the first byte of the request whose parameters come, and its place.
    begun: Option<(Moment, Option<u64>)>,
    params: Vec<u8>,
    /// Parameters that are not among the bytes that were read.
    cut: bool,
    /// The response has begun.
    answers: bool,
    /// Where the next record of the request or of the response begins is not known. The request ends before
    /// its response; the response ends before the next request, or with the connection.
    blind: Blind,
}

#[derive(Debug, Default)]
struct Blind {
    request: bool,
    response: bool,
}

/// The header of a record.
struct Header {
    kind: u8,
    id: u16,
    content: usize,
    /// With header and padding.
    whole: usize,
}

fn header(bytes: &[u8]) -> Option<Header> {
    let &[version, kind, id1, id0, length1, length0, padding, _] = bytes.get(..HEADER)? else {
        return None;
    };
    let content = usize::from(u16::from_be_bytes([length1, length0]));
    let sound = version == 1 && (BEGIN_REQUEST..=UNKNOWN_TYPE).contains(&kind);
    sound.then_some(Header {
        kind,
        id: u16::from_be_bytes([id1, id0]),
        content,
        whole: HEADER + content + usize::from(padding),
    })
}

/// Whether these bytes begin a request; `None` while there are too few of them.
pub(super) fn begins(bytes: &[u8]) -> Option<bool> {
    // Version and type; the id; 8 bytes of content.
    let start = [1, BEGIN_REQUEST];
    let length = [0, 8];
    let same = |at: usize, wanted: &[u8]| {
        let there = bytes.get(at..).unwrap_or_default();
        there.iter().zip(wanted).all(|(a, b)| a == b)
    };
    if !same(0, &start) || !same(4, &length) || bytes.get(2..4) == Some(&[0, 0]) {
        return Some(false);
    }
    match bytes.get(HEADER..HEADER + 8) {
        // A role, the flag that keeps the connection, and zeros.
        Some([0, 1..=3, 0 | 1, 0, 0, 0, 0, 0]) => Some(true),
        Some(_) => Some(false),
        None => None,
    }
}

impl Fastcgi {
    pub(super) fn request(&mut self, input: Input<'_>, all: &mut Exchanges) -> Step {
        if self.blind.request {
            return Step::Rest;
        }
        if input.bytes.len() < HEADER {
            if input.cut && self.begun.is_none() && all.waiting() > 0 {
                self.blind.request = true;
                return Step::Rest;
            }
            return input.wait();
        }
        let Some(header) = header(input.bytes) else {
            return Step::Fail;
        };
        let taken = Step::Take(header.whole as u64);
        match header.kind {
            BEGIN_REQUEST => {
                // Connections for several requests at a time are defined, but no server has them.
                if all.waiting() > 0 || self.begun.is_some() {
                    return Step::Fail;
                }
                self.begun = Some((all.since, all.place));
                (self.params, self.cut) = (Vec::new(), false);
                taken
            }
            PARAMS if self.begun.is_some() && header.content > 0 => {
                let room = MOST_BYTES.saturating_sub(self.params.len());
                let wanted = HEADER + header.content.min(room);
                let Some(bytes) = input.beginning(wanted, wanted) else {
                    return Step::More;
                };
                self.cut |= bytes.len() < HEADER + header.content;
                let bytes = bytes.get(HEADER..).unwrap_or_default();
                self.params.extend_from_slice(bytes);
                if self.cut {
                    // The record that ends them is not among the bytes that were read either.
                    self.blind.request = true;
                    return match self.begin(all) {
                        true => Step::Rest,
                        false => Step::Fail,
                    };
                }
                taken
            }
            PARAMS => {
                if self.begun.is_some() && !self.begin(all) {
                    return Step::Fail;
                }
                taken
            }
            _ => taken,
        }
    }

    /// The parameters are there; false if too many requests wait.
    fn begin(&mut self, all: &mut Exchanges) -> bool {
        let Some((since, place)) = self.begun.take() else {
            return true;
        };
        let params = std::mem::take(&mut self.params);
        let (mut method, mut uri, mut script) = (&b""[..], None, &b""[..]);
        let (mut address, mut port) = (None, None);
        let text = |value| std::str::from_utf8(value).ok();
        for (name, value) in Params(&params) {
            match name {
                b"REQUEST_METHOD" => method = value,
                b"REQUEST_URI" => uri = Some(value),
                b"SCRIPT_NAME" => script = value,
                b"REMOTE_ADDR" => address = text(value).and_then(|v| v.parse::<IpAddr>().ok()),
                b"REMOTE_PORT" => port = text(value).and_then(|v| v.parse::<u16>().ok()),
                _ => {}
            }
        }
        let (path, query) = path_of(uri.unwrap_or(script));
        let (method, path) = (printable(method), printable(path));
        let name = format!("{method} {path}");
        let mut attributes = vec![("network.protocol.name", Value::Text("fastcgi".into()))];
        if !method.is_empty() {
            attributes.push(("http.request.method", Value::Text(method)));
        }
        if !path.is_empty() {
            attributes.push(("url.path", Value::Text(path)));
        }
        if let (true, Some(query)) = (all.plain, query) {
            attributes.push(("url.query", Value::Text(printable(query))));
        }
        self.answers = false;
        (all.since, all.place) = (since, place);
        all.begin(Request {
            name: name.trim().to_owned(),
            attributes,
            received_from: address.map(|a| a.to_canonical()).zip(port),
            ..Request::default()
        })
    }

    pub(super) fn response(&mut self, input: Input<'_>, all: &mut Exchanges) -> Step {
        if self.blind.response {
            return Step::Rest;
        }
        if input.bytes.len() < HEADER {
            return self.response_cut(input);
        }
        let Some(header) = header(input.bytes) else {
            return Step::Fail;
        };
        let taken = Step::Take(header.whole as u64);
        match header.kind {
            STDOUT if !self.answers && header.content > 0 && header.id != 0 => {
                let wanted = HEADER + header.content.min(MOST_HEAD);
                let Some(bytes) = input.beginning(wanted, wanted) else {
                    return Step::More;
                };
                self.answers = true;
                let code = status(bytes.get(HEADER..).unwrap_or_default());
                if let Some(first) = all.first() {
                    let status = ("http.response.status_code", Value::Number(code.into()));
                    first.request.attributes.push(status);
                    if code >= 400 {
                        first.error = Some((format!("HTTP {code}"), String::new()));
                    }
                }
                taken
            }
            END_REQUEST => {
                if input.bytes.len() < header.whole {
                    return self.response_cut(input);
                }
                all.end();
                self.blind.request = false;
                taken
            }
            _ => taken,
        }
    }

    fn response_cut(&mut self, input: Input<'_>) -> Step {
        self.blind.response = input.cut;
        match input.cut {
            true => Step::Rest,
            false => input.wait(),
        }
    }

    pub(super) fn turns(&mut self, all: &mut Exchanges) -> bool {
        if self.blind.response && all.first().is_some_and(|first| first.responded.is_some()) {
            all.end();
            self.blind = Blind::default();
        }
        true
    }

    pub(super) fn restart(&mut self) {
        *self = Self::default();
    }

    pub(super) fn bytes(&self) -> usize {
        self.params.capacity()
    }
}

/// The status of the first lines of an output; 200 if they say nothing.
fn status(output: &[u8]) -> u16 {
    for line in output.split(|b| *b == b'\n').map(<[u8]>::trim_ascii) {
        if line.is_empty() {
            break;
        }
        let Some((name, value)) = line.split_at_checked(7) else {
            continue;
        };
        if name.eq_ignore_ascii_case(b"status:") {
            let code = value.trim_ascii().get(..3);
            let code = code.and_then(|c| std::str::from_utf8(c).ok()?.parse().ok());
            return code.filter(|c| (100..=999).contains(c)).unwrap_or(200);
        }
    }
    200
}

/// Names and values, each pair behind its two lengths. The last one may be cut.
struct Params<'a>(&'a [u8]);

impl<'a> Params<'a> {
    fn length(&mut self) -> Option<usize> {
        let (first, rest) = self.0.split_first()?;
        if *first < 0x80 {
            self.0 = rest;
            return Some(usize::from(*first));
        }
        let (bytes, rest) = self.0.split_at_checked(4)?;
        self.0 = rest;
        let bytes: [u8; 4] = bytes.try_into().ok()?;
        Some((u32::from_be_bytes(bytes) & 0x7fff_ffff) as usize)
    }
}

impl<'a> Iterator for Params<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (name, value) = (self.length()?, self.length()?);
        let (name, rest) = self.0.split_at_checked(name)?;
        let (value, rest) = rest.split_at_checked(value)?;
        self.0 = rest;
        Some((name, value))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::exchange::Value;
    use super::super::tests::{Script, failed, span};
    use super::{BEGIN_REQUEST, END_REQUEST, PARAMS, STDOUT};

    const STDIN: u8 = 5;
    const STDERR: u8 = 7;

    fn record(kind: u8, content: impl AsRef<[u8]>) -> Vec<u8> {
        let content = content.as_ref();
        let padding = content.len().wrapping_neg() & 7;
        let [high, low] = (content.len() as u16).to_be_bytes();
        let header = [1, kind, 0, 1, high, low, padding as u8, 0];
        [&header[..], content, &[0; 8][..padding]].concat()
    }

    fn begin() -> Vec<u8> {
        record(BEGIN_REQUEST, [0, 1, 0, 0, 0, 0, 0, 0])
    }

    fn pairs(params: &[(&str, &str)]) -> Vec<u8> {
        let length = |text: &str| match text.len() {
            short @ 0..128 => vec![short as u8],
            long => (long as u32 | 1 << 31).to_be_bytes().to_vec(),
        };
        let pair = |(name, value): &(&str, &str)| {
            [
                length(name),
                length(value),
                name.as_bytes().to_vec(),
                value.as_bytes().to_vec(),
            ]
            .concat()
        };
        params.iter().flat_map(pair).collect()
    }

    /// A request in one piece, as nginx sends it.
    pub(in super::super) fn request(params: &[(&str, &str)]) -> Vec<u8> {
        [
            begin(),
            record(PARAMS, pairs(params)),
            record(PARAMS, ""),
            record(STDIN, ""),
        ]
        .concat()
    }

    /// Its response, with a state of the protocol.
    pub(in super::super) fn response(output: &str, state: u8) -> Vec<u8> {
        [
            record(STDOUT, output),
            record(STDOUT, ""),
            record(END_REQUEST, [0, 0, 0, 0, state, 0, 0, 0]),
        ]
        .concat()
    }

    fn get(uri: &str) -> Vec<u8> {
        request(&[
            ("QUERY_STRING", "x=secret"),
            ("REQUEST_METHOD", "GET"),
            ("REQUEST_URI", uri),
        ])
    }

    #[test]
    fn requests_are_named_by_method_and_path() {
        let mut script = Script::new();
        script
            .receive(get("/post/7?x=secret"))
            .send(response("Content-type: text/html\r\n\r\n<p>", 0))
            .receive(get("/no"))
            .send(record(STDERR, "PHP message"))
            .send(response("status:  404 Not Found\r\n\r\nStatus: 200", 0));
        let spans = script.spans();
        assert_eq!(
            spans,
            [
                span("GET /post/7", 10, 20),
                failed("GET /no", 30, 50, "HTTP 404")
            ]
        );
        let attributes = &script.done[0].request.attributes;
        assert!(attributes.contains(&("http.response.status_code", Value::Number(200))));
        assert!(!format!("{attributes:?}").contains("secret"));
    }

    /// PHP reads a header, then its content; the request begins with the first byte.
    #[test]
    fn requests_come_in_pieces() {
        let mut script = Script::new();
        for piece in get("/a").chunks(8) {
            script.receive(piece);
        }
        let received = (get("/a").len() as u64).div_ceil(8) * 10;
        let output = "X: y\r\n\r\n".to_owned() + &"x".repeat(5000);
        script.send(response(&output, 0));
        assert_eq!(script.spans(), [span("GET /a", 10, received + 10)]);
    }

    /// Only the first bytes of a call are read, and parameters can be longer.
    #[test]
    fn parameters_beyond_the_bytes_that_are_read() {
        let long = "c".repeat(3000);
        let cookie = ("HTTP_COOKIE", long.as_str());
        let mut script = Script::new();
        script
            .receive(request(&[
                ("REQUEST_METHOD", "POST"),
                ("REQUEST_URI", "/b"),
                cookie,
            ]))
            .send(response("\r\nbody", 0))
            .receive(request(&[
                ("REQUEST_METHOD", "GET"),
                ("SCRIPT_NAME", "/c.php"),
            ]))
            .send(response("\r\nbody", 0));
        assert_eq!(script.names(), ["POST /b", "GET /c.php"]);
    }

    /// The beginning of the last record is not among the bytes that were read.
    #[test]
    fn responses_beyond_the_bytes_that_are_read() {
        let output = "X: y\r\n\r\n".to_owned() + &"x".repeat(5000);
        let mut script = Script::new();
        script
            .receive(get("/a"))
            .send([record(STDOUT, &output), record(STDOUT, &output)].concat())
            .send(response(&output, 0))
            .receive(get("/b"))
            .send(response(&output, 0));
        assert_eq!(
            script.spans(),
            [span("GET /a", 10, 30), span("GET /b", 40, 50)]
        );
    }

    #[test]
    fn the_client_that_a_server_asks_for() {
        let mut script = Script::new();
        let address = [
            ("REMOTE_ADDR", "::ffff:127.0.0.1"),
            ("REMOTE_PORT", "4711"),
            ("REQUEST_URI", "/"),
        ];
        script.send(request(&address)).receive(response("\r\n", 0));
        assert_eq!(script.names(), ["/"]);
        let from = script.done[0].request.received_from;
        assert_eq!(from, Some(("127.0.0.1".parse().unwrap(), 4711)));
    }
}
