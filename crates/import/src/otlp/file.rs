//! Files of OTLP: which encoding they have, and their requests one by one.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::path::Path;

use fathom_model::escape;
use prost::Message;
use serde::de::Error;

use super::message::Request;
use crate::error::ImportError;

/// Largest request, which is held in memory as a whole.
pub(super) const MAX_REQUEST: u64 = 64 << 20;
/// Lines whose errors are kept, and characters of each.
const MAX_EXAMPLES: usize = 5;
const MAX_EXAMPLE: usize = 200;

/// Lines that are no requests.
#[derive(Clone, Debug, Default)]
pub(super) struct BadLines {
    pub count: u64,
    /// The errors of the first of them, escaped.
    pub examples: Vec<String>,
}

impl BadLines {
    fn add(&mut self, number: u64, error: &serde_json::Error) {
        self.count += 1;
        if self.examples.len() < MAX_EXAMPLES {
            let text: String = error.to_string().chars().take(MAX_EXAMPLE).collect();
            let text = escape::text(&text).into_owned();
            self.examples.push(format!("line {number}: {text}"));
        }
    }
}

/// Receives requests.
pub(super) type Take<'a> = &'a mut dyn FnMut(Request) -> Result<(), ImportError>;

/// Calls `take` with each request of a file: JSON (one request, or one on each line, as the
/// OpenTelemetry Collector's file exporter writes them), or protobuf (one request, or requests
/// that follow their lengths in 4 bytes, as the file exporter writes them).
///
/// # Errors
/// When the file cannot be read, and when it contains no request; the errors of `take`.
pub(super) fn read(path: &Path, bad: &mut BadLines, take: Take<'_>) -> Result<(), ImportError> {
    let mut reader = open(path)?;
    let head = reader.fill_buf().map_err(ImportError::io("read", path))?;
    match head.first() {
        None => Err(not_otlp(path, "it is empty")),
        // The first byte of a length up to MAX_REQUEST.
        Some(0..=4) => framed(path, &mut reader, take),
        // The first field of a request in protobuf; or a line feed.
        Some(b'\n') => {
            let bytes = whole(path, reader)?;
            match Request::decode(bytes.as_slice()) {
                Ok(request) => take(request),
                Err(_) if bytes.trim_ascii_start().starts_with(b"{") => json(path, bad, take),
                Err(error) => Err(not_otlp(path, &error.to_string())),
            }
        }
        Some(b'{' | b' ' | b'\t' | b'\r') => json(path, bad, take),
        Some(_) => Err(not_otlp(path, "it begins with neither JSON nor protobuf")),
    }
}

/// Another user's pipe of such a name would never end, so only a regular file is opened.
fn open(path: &Path) -> Result<BufReader<File>, ImportError> {
    let file = fathom_session::open_regular(path).map_err(ImportError::io("open", path))?;
    Ok(BufReader::new(file))
}

fn not_otlp(path: &Path, reason: &str) -> ImportError {
    ImportError::NotOtlp {
        path: path.to_owned(),
        reason: escape::text(reason).into_owned(),
    }
}

/// The rest of a file that is one request.
fn whole(path: &Path, reader: impl Read) -> Result<Vec<u8>, ImportError> {
    let mut bytes = Vec::new();
    reader
        .take(MAX_REQUEST + 1)
        .read_to_end(&mut bytes)
        .map_err(ImportError::io("read", path))?;
    match bytes.len() as u64 > MAX_REQUEST {
        true => Err(ImportError::LargeRequest(path.to_owned())),
        false => Ok(bytes),
    }
}

fn framed(path: &Path, reader: &mut impl Read, take: Take<'_>) -> Result<(), ImportError> {
    let mut bytes = Vec::new();
    loop {
        let mut length = [0; 4];
        match reader.read_exact(&mut length) {
            Ok(()) => {}
            Err(e) if e.kind() == ErrorKind::UnexpectedEof => return Ok(()),
            Err(e) => return Err(ImportError::io("read", path)(e)),
        }
        let length = u64::from(u32::from_be_bytes(length));
        if length > MAX_REQUEST {
            return Err(ImportError::LargeRequest(path.to_owned()));
        }
        bytes.clear();
        let read = reader.take(length).read_to_end(&mut bytes);
        read.map_err(ImportError::io("read", path))?;
        if bytes.len() as u64 != length {
            return Err(not_otlp(path, "its last request is cut"));
        }
        match Request::decode(bytes.as_slice()) {
            Ok(request) => take(request)?,
            Err(error) => return Err(not_otlp(path, &error.to_string())),
        }
    }
}

/// One request, which may have line feeds in it, or one on each line.
fn json(path: &Path, bad: &mut BadLines, take: Take<'_>) -> Result<(), ImportError> {
    let mut lines = Lines {
        path,
        reader: open(path)?,
        number: 0,
        line: Vec::new(),
    };
    if !lines.next()? {
        return Err(not_otlp(path, "it is empty"));
    }
    let mut first = parse(&lines.line);
    if first.is_err()
        && let Ok(bytes) = whole(path, open(path)?)
    {
        let all = parse(&bytes);
        if let Ok(request) = all {
            return take(request);
        }
        // A file of one request has its error elsewhere than in its first line.
        if lines.line.trim_ascii() == b"{" {
            first = all;
        }
    }
    let mut requests = 0;
    let before = bad.clone();
    let mut next = Some(first);
    while let Some(request) = next {
        match request {
            Ok(request) => {
                requests += 1;
                take(request)?;
            }
            Err(error) => bad.add(lines.number, &error),
        }
        next = match lines.next()? {
            true => Some(parse(&lines.line)),
            false => None,
        };
    }
    match bad.examples.get(before.examples.len()) {
        Some(example) if requests == 0 => {
            let error = not_otlp(path, example);
            *bad = before;
            Err(error)
        }
        _ => Ok(()),
    }
}

fn parse(json: &[u8]) -> serde_json::Result<Request> {
    // The decoder would take an array for the members in their order.
    match json.trim_ascii_start().first() {
        Some(b'{') => serde_json::from_slice(json),
        _ => Err(serde_json::Error::custom("it is no JSON object")),
    }
}

/// The lines of a file that are not blank.
struct Lines<'a> {
    path: &'a Path,
    reader: BufReader<File>,
    /// Number of the line, from 1.
    number: u64,
    line: Vec<u8>,
}

impl Lines<'_> {
    /// Reads the next line; false at the end of the file.
    fn next(&mut self) -> Result<bool, ImportError> {
        loop {
            self.line.clear();
            let mut limited = (&mut self.reader).take(MAX_REQUEST + 1);
            let read = limited.read_until(b'\n', &mut self.line);
            read.map_err(ImportError::io("read", self.path))?;
            if self.line.len() as u64 > MAX_REQUEST {
                return Err(ImportError::LargeRequest(self.path.to_owned()));
            }
            if self.line.is_empty() {
                return Ok(false);
            }
            self.number += 1;
            if !self.line.trim_ascii().is_empty() {
                return Ok(true);
            }
        }
    }
}
