//! HTTP/1.0 and HTTP/1.1.

use fathom_model::bytes::printable;

use super::exchange::{Exchanges, Origin, Request, Value};
use super::step::{Input, MOST_BYTES, Step};

/// Requests whose responses have other ends.
const ASKS: [&str; 3] = ["GET", "HEAD", "CONNECT"];
const HEAD: u8 = 1;
const CONNECT: u8 = 2;

/// Methods by which a connection is recognized.
const METHODS: [&[u8]; 16] = [
    b"GET",
    b"POST",
    b"PUT",
    b"HEAD",
    b"DELETE",
    b"OPTIONS",
    b"PATCH",
    b"TRACE",
    b"CONNECT",
    b"PROPFIND",
    b"PROPPATCH",
    b"MKCOL",
    b"COPY",
    b"MOVE",
    b"LOCK",
    b"UNLOCK",
];

/// The next part of a direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Part {
    #[default]
    Head,
    /// So many bytes of a body.
    Body(u64),
    /// The line before a chunk.
    Chunk,
    /// The line behind a chunk, and the rest of it.
    Trailer,
    /// Bytes up to the next one of the other direction, or the end of the connection.
    UntilTurn,
}

#[derive(Debug, Default)]
pub(super) struct Http {
    request: Part,
    response: Part,
}

/// Whether these bytes begin a request; `None` while there are too few of them.
pub(super) fn begins(bytes: &[u8]) -> Option<bool> {
    let word = bytes.iter().position(|b| *b == b' ');
    let Some(word) = word else {
        let longer = |method: &&[u8]| method.starts_with(bytes);
        return if METHODS.iter().any(longer) {
            None
        } else {
            Some(false)
        };
    };
    if !bytes.get(..word).is_some_and(|m| METHODS.contains(&m)) {
        return Some(false);
    }
    match bytes.iter().position(|b| *b == b'\n') {
        Some(end) => Some(bytes.get(..end).and_then(request_line).is_some()),
        None if bytes.len() < MOST_BYTES => None,
        None => Some(true),
    }
}

impl Http {
    pub(super) fn request(&mut self, input: Input<'_>, all: &mut Exchanges) -> Step {
        match self.request {
            Part::Head => self.request_head(input, all),
            Part::UntilTurn => Step::Rest,
            _ => body(&mut self.request, input).0,
        }
    }

    pub(super) fn response(&mut self, input: Input<'_>, all: &mut Exchanges) -> Step {
        match self.response {
            Part::Head => self.response_head(input, all),
            Part::UntilTurn => Step::Rest,
            _ => {
                let (step, ended) = body(&mut self.response, input);
                if ended {
                    all.end();
                }
                step
            }
        }
    }

    /// The body of a response has moved.
    pub(super) fn response_passed(&mut self, all: &mut Exchanges) {
        if self.response == Part::Head {
            all.end();
        }
    }

    pub(super) fn turns(&mut self, all: &mut Exchanges) -> bool {
        if self.response == Part::UntilTurn {
            if all.waiting() != 1 {
                return false;
            }
            all.end();
            self.response = Part::Head;
        }
        true
    }

    pub(super) fn answers(&mut self) {
        if self.request == Part::UntilTurn {
            self.request = Part::Head;
        }
    }

    pub(super) fn restart(&mut self) {
        *self = Self::default();
    }

    fn request_head(&mut self, input: Input<'_>, all: &mut Exchanges) -> Step {
        // Servers ignore empty lines between requests.
        if input.bytes.starts_with(b"\r\n") {
            return Step::Take(2);
        }
        let Some((head, whole)) = head(input) else {
            return Step::More;
        };
        let mut lines = head.split(|b| *b == b'\n').map(trimmed);
        let Some((method, target)) = lines.next().and_then(request_line) else {
            return Step::Fail;
        };
        let fields = Fields::of(lines);
        let (path, query) = path_of(target);
        let (method, path) = (printable(method), printable(path));
        let mut attributes = vec![
            ("http.request.method", Value::Text(method.clone())),
            ("url.path", Value::Text(path.clone())),
        ];
        if let (true, Some(query)) = (all.plain, query) {
            attributes.push(("url.query", Value::Text(printable(query))));
        }
        let begun = all.begin(Request {
            name: format!("{method} {path}"),
            attributes,
            origin: fields.origin,
            ask: ASKS.iter().position(|ask| *ask == method).unwrap_or(0) as u8,
            ..Request::default()
        });
        if !begun {
            return Step::Fail;
        }
        if !whole {
            self.request = Part::UntilTurn;
            return Step::Rest;
        }
        self.request = match (fields.chunked, fields.length) {
            (true, _) => Part::Chunk,
            (false, Some(length)) if length > 0 => Part::Body(length),
            _ => Part::Head,
        };
        Step::Take(head.len() as u64)
    }

    fn response_head(&mut self, input: Input<'_>, all: &mut Exchanges) -> Step {
        let Some((head, whole)) = head(input) else {
            return Step::More;
        };
        let mut lines = head.split(|b| *b == b'\n').map(trimmed);
        let Some((code, reason)) = lines.next().and_then(status_line) else {
            return Step::Fail;
        };
        let fields = Fields::of(lines);
        let taken = Step::Take(head.len() as u64);
        let interim = (100..200).contains(&code) && code != 101;
        if interim {
            return if whole { taken } else { Step::Fail };
        }
        // A server may answer before it was asked, for example that it closes the connection.
        let ask = all.first().map(|first| {
            let status = ("http.response.status_code", Value::Number(code.into()));
            first.request.attributes.push(status);
            if code >= 400 {
                first.error = Some((format!("HTTP {code}"), printable(reason)));
            }
            first.request.ask
        });
        if code == 101 || ask == Some(CONNECT) && (200..300).contains(&code) {
            all.end();
            return Step::Leave;
        }
        let empty = ask == Some(HEAD) || matches!(code, 204 | 304);
        self.response = match (whole, fields.chunked, fields.length) {
            (true, ..) if empty => Part::Head,
            (true, true, _) => Part::Chunk,
            (true, false, Some(0)) => Part::Head,
            (true, false, Some(length)) => Part::Body(length),
            _ => Part::UntilTurn,
        };
        match self.response {
            Part::Head => all.end(),
            Part::UntilTurn => return Step::Rest,
            _ => {}
        }
        taken
    }
}

/// Takes a part of a body; whether it ends.
fn body(part: &mut Part, input: Input<'_>) -> (Step, bool) {
    let bytes = input.bytes;
    match *part {
        Part::Body(length) => {
            *part = Part::Head;
            (Step::Pass(length), false)
        }
        Part::Chunk => {
            let Some(end) = line(bytes, 64) else {
                let far = bytes.len() >= 64;
                let step = if far { Step::Fail } else { unread(part, input) };
                return (step, false);
            };
            match bytes.get(..end).and_then(chunk_size) {
                Some(0) => {
                    *part = Part::Trailer;
                    (Step::Take(end as u64), false)
                }
                // Behind the bytes is the end of a line.
                Some(size) => (Step::Take(size.saturating_add(end as u64 + 2)), false),
                None => (Step::Fail, false),
            }
        }
        _ => match line(bytes, MOST_BYTES) {
            Some(end) => {
                let ends = bytes
                    .get(..end)
                    .is_some_and(|line| trimmed(line).is_empty());
                if ends {
                    *part = Part::Head;
                }
                (Step::Take(end as u64), ends)
            }
            None => (unread(part, input), false),
        },
    }
}

/// A line of a body in chunks is not there: if it is among the bytes that were not read, the other side shows
/// where the body ends.
fn unread(part: &mut Part, input: Input<'_>) -> Step {
    if !input.cut {
        return input.wait();
    }
    *part = Part::UntilTurn;
    Step::Rest
}

/// The head of a message, up to the empty line, or as much of it as there will be; whether it is
/// whole.
fn head<'a>(input: Input<'a>) -> Option<(&'a [u8], bool)> {
    let bytes = input.bytes;
    let whole = |end: &[u8]| {
        bytes
            .windows(end.len())
            .position(|w| w == end)
            .map(|at| at + end.len())
    };
    match whole(b"\r\n\r\n").or_else(|| whole(b"\n\n")) {
        Some(end) => bytes.get(..end).map(|head| (head, true)),
        None if input.cut || bytes.len() >= MOST_BYTES => Some((bytes, false)),
        None => None,
    }
}

/// Where the first line ends, if that is among the first `most` bytes.
fn line(bytes: &[u8], most: usize) -> Option<usize> {
    let newline = bytes.iter().take(most).position(|b| *b == b'\n')?;
    Some(newline + 1)
}

fn trimmed(line: &[u8]) -> &[u8] {
    line.trim_ascii()
}

fn chunk_size(line: &[u8]) -> Option<u64> {
    let digits = line.split(|b| *b == b';').next()?.trim_ascii();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// Method and target. The line may be cut.
fn request_line(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut words = line.trim_ascii().split(|b| *b == b' ');
    let (method, target) = (words.next()?, words.next()?);
    let name = |b: &u8| b.is_ascii_uppercase() || *b == b'-' || *b == b'_';
    let version = words.next().unwrap_or(b"HTTP/1.1");
    let sound = !method.is_empty()
        && method.len() <= 24
        && method.iter().all(name)
        && !target.is_empty()
        && (version.starts_with(b"HTTP/1.") || b"HTTP/1.".starts_with(version));
    sound.then_some((method, target))
}

fn status_line(line: &[u8]) -> Option<(u16, &[u8])> {
    let rest = line.strip_prefix(b"HTTP/1.")?;
    let (_minor, rest) = rest.split_first()?;
    let rest = rest.strip_prefix(b" ")?;
    let (digits, reason) = rest.split_at_checked(3)?;
    let code = std::str::from_utf8(digits).ok()?.parse().ok()?;
    (100..=999)
        .contains(&code)
        .then_some((code, reason.trim_ascii()))
}

/// The path of a target, and the query behind it.
pub(super) fn path_of(target: &[u8]) -> (&[u8], Option<&[u8]>) {
    let schemes = [&b"http://"[..], b"https://"];
    let absolute = schemes.iter().find_map(|s| target.strip_prefix(*s));
    let target = match absolute {
        Some(rest) => {
            let end = rest.iter().position(|b| matches!(b, b'/' | b'?'));
            let behind = end.and_then(|at| rest.get(at..)).unwrap_or_default();
            match behind.first() {
                Some(b'/') => behind,
                // A query without a path.
                _ => return (b"/", behind.get(1..)),
            }
        }
        None => target,
    };
    match target.iter().position(|b| *b == b'?') {
        Some(at) => {
            let (path, query) = target.split_at(at);
            (path, query.get(1..))
        }
        None => (target, None),
    }
}

/// The fields of a head that matter.
#[derive(Default)]
struct Fields {
    length: Option<u64>,
    chunked: bool,
    origin: Option<Origin>,
}

impl Fields {
    fn of<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut fields = Self::default();
        for line in lines {
            let Some(colon) = line.iter().position(|b| *b == b':') else {
                continue;
            };
            let (name, value) = line.split_at(colon);
            let value = value.get(1..).unwrap_or_default().trim_ascii();
            if name.eq_ignore_ascii_case(b"content-length") {
                fields.length = std::str::from_utf8(value).ok().and_then(|v| v.parse().ok());
            } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
                let last = value.rsplit(|b| *b == b',').next().unwrap_or_default();
                fields.chunked = last.trim_ascii().eq_ignore_ascii_case(b"chunked");
            } else if name.eq_ignore_ascii_case(b"traceparent") {
                fields.origin = origin(value);
            }
        }
        fields
    }
}

/// W3C Trace Context: version, trace, span, flags.
fn origin(value: &[u8]) -> Option<Origin> {
    let text = std::str::from_utf8(value).ok()?;
    let mut parts = text.split('-');
    let (version, trace, span, flags) =
        (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let hex = |part: &str, len: usize| {
        part.len() == len && part.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    };
    if !hex(version, 2) || version == "ff" || !hex(trace, 32) || !hex(span, 16) || !hex(flags, 2) {
        return None;
    }
    let trace = u128::from_str_radix(trace, 16).ok().filter(|id| *id != 0)?;
    let span = u64::from_str_radix(span, 16).ok().filter(|id| *id != 0)?;
    Some(Origin { trace, span })
}
