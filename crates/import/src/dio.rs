//! DIO's JSON: events of calls, and documents that give paths to file tags. Its
//! tracer writes one array, its back end exports a document a line, perhaps in
//! `_source`; both are read document by document.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use fathom_model::bytes::of_text;
use fathom_model::errno;
use fathom_model::meta::{Content, SessionMeta};
use fathom_model::syscalls::{Api, Arg, Returns, SYSCALLS, Syscall};
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, SeqAccess, Visitor};

use crate::builder::{Builder, Call, FileInfo, ThreadInfo};
use crate::error::ImportError;
use crate::text::{absolute, shown};
use crate::{MAX_LINE, next_line};

/// Bad documents that are kept as examples.
const EXAMPLES: usize = 3;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Document {
    doc_type: Option<String>,
    file_path: Option<String>,
    file_type: Option<String>,
    file_tag: Option<String>,
    system_call_name: Option<String>,
    call_timestamp: Option<i64>,
    return_timestamp: Option<i64>,
    execution_time: Option<i64>,
    pid: Option<i32>,
    tid: Option<i32>,
    ppid: Option<i32>,
    return_value: Option<i64>,
    error_message: Option<String>,
    hostname: Option<String>,
    comm: Option<String>,
    cpu: Option<i32>,
    args: Args,
    fdata: FileData,
    /// Of Elasticsearch, around a document.
    _source: Option<Box<Document>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Args {
    file_descriptor: Option<i64>,
    flags: Option<String>,
    mode: Option<String>,
    name: Option<String>,
    length: Option<serde_json::Number>,
    offset: Option<i64>,
    newname: Option<String>,
    count: Option<u64>,
    whence: Option<String>,
    bytes_requested: Option<u64>,
    signature: Option<String>,
    captured_buffer: Option<String>,
    captured_size: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct FileData {
    file_path: Option<String>,
    file_type: Option<String>,
}

/// Whether the beginning of a file looks like DIO's.
pub(crate) fn looks_like(head: &str) -> bool {
    let start = head.trim_start_matches(|c: char| c.is_whitespace() || c == '[');
    start.starts_with('{')
        && ["system_call_name", "\"EventPath\""]
            .iter()
            .any(|word| head.contains(word))
}

/// Reads the logs into `builder`; returns the first documents that were not
/// understood, fit for a terminal.
pub(crate) fn read(
    files: &[PathBuf],
    builder: &mut Builder,
    meta: &mut SessionMeta,
    progress: &mut dyn FnMut(u64),
) -> Result<Vec<String>, ImportError> {
    let mut paths = HashMap::new();
    for file in files {
        // A path may come behind the first event of its file.
        each(file, &mut |document| {
            if let Ok(Document {
                doc_type: Some(kind),
                file_tag: Some(tag),
                file_path: Some(path),
                file_type,
                ..
            }) = document
                && kind == "EventPath"
            {
                paths.insert(tag, (path, kind_of(file_type.as_deref())));
            }
            Ok(())
        })?;
    }
    let mut reader = Reader {
        builder,
        paths,
        tags: HashMap::new(),
        threads: HashMap::new(),
        host: None,
        documents: 0,
        bad: 0,
        other: 0,
        examples: Vec::new(),
        unpathed: false,
        content: Kept::default(),
    };
    for file in files {
        each(file, &mut |document| reader.document(document))?;
    }
    let total = files
        .iter()
        .filter_map(|f| std::fs::metadata(f).ok())
        .map(|m| m.len())
        .sum();
    progress(total);
    meta.content = reader.content.described();
    let not_kept = reader.content.not_kept();
    let mut threads: Vec<ThreadInfo> = reader.threads.into_values().collect();
    threads.sort_by_key(|t| (t.started_at_ns, t.tid));
    reader.builder.threads(&threads)?;
    meta.host.name = reader.host.unwrap_or_default();
    if let Some(source) = &mut meta.source {
        source.lines = reader.documents;
        source.bad_lines = reader.bad;
        source.other_calls = reader.other;
        source.not_observable = vec![
            "command lines, ends of threads, page faults, operations of io_uring and AIO, calls \
             that DIO does not trace or lost, directories of relative paths"
                .into(),
        ];
        if reader.unpathed {
            source
                .not_observable
                .push("paths of files without a path document for their tag".into());
        }
        source.not_observable.extend(not_kept);
    }
    Ok(reader.examples)
}

/// A document, or the text that is none.
type Parsed = Result<Document, Vec<u8>>;

/// Gives every document of a file to `take`.
fn each(
    path: &Path,
    take: &mut dyn FnMut(Parsed) -> Result<(), ImportError>,
) -> Result<(), ImportError> {
    let open = || File::open(path).map_err(ImportError::io("open", path));
    let mut reader = BufReader::with_capacity(1 << 20, open()?);
    let (mut line, mut bytes) = (Vec::new(), 0);
    let mut first = true;
    loop {
        let more = next_line(&mut reader, &mut line, &mut bytes);
        if !more.map_err(ImportError::io("read", path))? {
            return Ok(());
        }
        let text = line.trim_ascii();
        if first && text.starts_with(b"[") {
            return array(path, BufReader::with_capacity(1 << 20, open()?), take);
        }
        if text.is_empty() {
            continue;
        }
        first = false;
        let text = text.strip_suffix(b",").unwrap_or(text);
        take(parse(text))?;
    }
}

fn parse(text: &[u8]) -> Parsed {
    match serde_json::from_slice::<Document>(text) {
        Ok(Document {
            _source: Some(inner),
            ..
        }) => Ok(*inner),
        Ok(document) => Ok(document),
        Err(_) => Err(text
            .get(..text.len().min(MAX_LINE))
            .unwrap_or_default()
            .to_vec()),
    }
}

/// An array, element by element. Where it is damaged it ends.
fn array(
    path: &Path,
    reader: BufReader<File>,
    take: &mut dyn FnMut(Parsed) -> Result<(), ImportError>,
) -> Result<(), ImportError> {
    struct Elements<'a>(
        &'a mut dyn FnMut(Parsed) -> Result<(), ImportError>,
        &'a mut Option<ImportError>,
    );
    impl<'de> Visitor<'de> for Elements<'_> {
        type Value = ();
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an array of documents")
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<(), A::Error> {
            while let Some(value) = sequence.next_element::<serde_json::Value>()? {
                let text = value.to_string();
                if let Err(e) = (self.0)(parse(text.as_bytes())) {
                    *self.1 = Some(e);
                    while sequence.next_element::<IgnoredAny>()?.is_some() {}
                    break;
                }
            }
            Ok(())
        }
    }
    impl<'de> DeserializeSeed<'de> for Elements<'_> {
        type Value = ();
        fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<(), D::Error> {
            d.deserialize_seq(self)
        }
    }
    let mut failed = None;
    let mut json = serde_json::Deserializer::from_reader(reader);
    let result = Elements(take, &mut failed).deserialize(&mut json);
    if let Some(e) = failed {
        return Err(e);
    }
    match result {
        Ok(()) => Ok(()),
        Err(e) if e.is_io() => Err(ImportError::io("read", path)(e.into())),
        // A tracer that was killed writes no end.
        Err(e) => take(Err(
            format!("the array is cut off or damaged: {e}").into_bytes()
        )),
    }
}

struct Reader<'a> {
    builder: &'a mut Builder,
    paths: HashMap<String, (String, &'static str)>,
    tags: HashMap<String, i64>,
    threads: HashMap<(Option<i32>, i32), ThreadInfo>,
    host: Option<String>,
    documents: u64,
    bad: u64,
    other: u64,
    examples: Vec<String>,
    unpathed: bool,
    content: Kept,
}

/// Content in the documents: bytes that calls moved.
#[derive(Debug, Default)]
struct Kept {
    hashes: u64,
    buffers: u64,
    calls: u64,
    /// Signatures that are no number of 64 bits.
    odd_signatures: u64,
    /// Buffers whose text is not the bytes that were captured.
    altered_buffers: u64,
    /// Most bytes of a call.
    max_bytes: u64,
}

impl Kept {
    /// Takes hash, bytes, and how many bytes these are of.
    fn take(&mut self, args: &Args, call: &mut Call) {
        if let Some(signature) = args.signature.as_deref().filter(|s| !s.is_empty()) {
            let digits = signature.strip_prefix("0x").unwrap_or(signature);
            let is_hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
            match u64::from_str_radix(digits, 16) {
                Ok(hash) if is_hex => {
                    call.hash = Some(hash as i64);
                    self.hashes += 1;
                }
                _ => self.odd_signatures += 1,
            }
        }
        if let Some(text) = args.captured_buffer.as_deref() {
            call.content = captured(text, args.captured_size);
            match call.content {
                Some(_) => self.buffers += 1,
                None => self.altered_buffers += 1,
            }
        }
        if call.hash.is_some() || call.content.is_some() {
            let len = call.content.as_ref().map(|c| c.len() as u64);
            let bytes = args.captured_size.or(len);
            call.content_bytes = bytes.and_then(|n| i64::try_from(n).ok());
            self.calls += 1;
            self.max_bytes = self.max_bytes.max(bytes.unwrap_or(0));
        }
    }

    /// Its note in the session.
    fn described(&self) -> Option<Content> {
        let mode = match (self.buffers, self.hashes) {
            (0, 0) => return None,
            (0, _) => "hash",
            _ => "plain",
        };
        Some(Content {
            mode: mode.into(),
            max_bytes: u32::try_from(self.max_bytes).unwrap_or(u32::MAX),
            calls: self.calls,
            ..Content::default()
        })
    }

    /// Data that the session lacks.
    fn not_kept(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.hashes > 0 {
            lines.push(
                "the function that made the signatures: column hash has them as DIO wrote them"
                    .to_string(),
            );
        }
        if self.odd_signatures > 0 {
            let n = self.odd_signatures;
            lines.push(format!(
                "{n} signatures that are not 64-bit hexadecimal numbers"
            ));
        }
        if self.altered_buffers > 0 {
            lines.push(format!(
                "{} captured buffers whose text has another length than the captured bytes: bytes that are \
                 not UTF-8 were replaced",
                self.altered_buffers
            ));
        }
        lines
    }
}

/// The bytes behind the text of a buffer of `size` bytes: the text itself, or with `\xHH` for
/// what is not UTF-8, as fathom exports it. `None` when neither has as many bytes.
fn captured(text: &str, size: Option<u64>) -> Option<Vec<u8>> {
    let fits = |bytes: &[u8]| size.is_none_or(|size| size == bytes.len() as u64);
    if fits(text.as_bytes()) {
        return Some(text.as_bytes().to_vec());
    }
    let bytes = of_text(text);
    fits(&bytes).then(|| bytes.into_owned())
}

impl Reader<'_> {
    fn document(&mut self, parsed: Parsed) -> Result<(), ImportError> {
        self.documents += 1;
        let document = match parsed {
            Ok(document) => document,
            Err(text) => {
                self.bad(&text);
                return Ok(());
            }
        };
        if document.doc_type.is_some() {
            return Ok(());
        }
        let Some(name) = document.system_call_name.as_deref() else {
            // Elasticsearch writes these between documents.
            return Ok(());
        };
        let known = Syscall::index_of(name)
            .and_then(|index| SYSCALLS.get(index))
            .filter(|call| call.api == Api::Syscall);
        let Some(known) = known else {
            self.other += 1;
            return Ok(());
        };
        let row = document
            .call_timestamp
            .zip(document.tid)
            .and_then(|(ts, tid)| self.row(known, &document, ts, tid));
        match row {
            Some(row) => self.builder.call(known, &row),
            None => {
                self.bad(name.as_bytes());
                Ok(())
            }
        }
    }

    fn bad(&mut self, text: &[u8]) {
        self.bad += 1;
        if self.examples.len() < EXAMPLES {
            self.examples.push(shown(text));
        }
    }

    fn row(&mut self, known: &'static Syscall, d: &Document, ts: i64, tid: i32) -> Option<Call> {
        let ret = match (d.return_value, d.error_message.as_deref()) {
            (Some(ret), Some(text)) if ret < 0 && !text.is_empty() => Some(-error(text)?),
            (ret, _) => ret,
        };
        let failed = ret.is_none_or(|r| (-4095..0).contains(&r));
        if self.host.is_none() {
            self.host = d.hostname.clone();
        }
        let comm = d.comm.as_ref().map(|c| c.clone().into_bytes());
        let thread = self
            .threads
            .entry((d.pid, tid))
            .or_insert_with(|| ThreadInfo {
                pid: d.pid,
                tid,
                ppid: d.ppid,
                started_at_ns: ts,
                ..ThreadInfo::default()
            });
        thread.started_at_ns = thread.started_at_ns.min(ts);
        thread.comm = comm.clone();
        let file_id = d.file_tag.as_ref().map(|tag| self.file(tag, d, ts));
        let tagged = d
            .file_tag
            .as_ref()
            .and_then(|tag| self.paths.get(tag))
            .map(|(path, _)| path.clone().into_bytes());
        let given = d.fdata.file_path.clone().map(String::into_bytes);
        let by_path = known.position(Arg::Path).is_some();
        let target = known.position(Arg::Target).is_some();
        let opens = known.returns == Returns::Fd && known.position(Arg::Fd).is_none();
        let path_arg = given.clone().filter(|_| by_path || target);
        let from_arg = path_arg
            .as_deref()
            .filter(|_| by_path)
            .and_then(|arg| absolute(None, arg));
        let path = match by_path {
            true => tagged.filter(|_| opens && !failed).or(from_arg),
            false => tagged.or(given.filter(|p| p.starts_with(b"/"))),
        };
        self.unpathed |= file_id.is_some() && path.is_none();
        let newname = d.args.newname.clone().map(String::into_bytes);
        let fd = d.args.file_descriptor.filter(|_| !opens);
        let size = d.args.bytes_requested.or(d.args.count);
        let mut call = Call {
            ts_ns: ts,
            dur_ns: d
                .execution_time
                .or_else(|| d.return_timestamp?.checked_sub(ts)),
            pid: d.pid,
            tid,
            comm,
            cpu: d.cpu,
            ret,
            fd: fd.and_then(|fd| i32::try_from(fd).ok()),
            file_id,
            offset: d
                .args
                .offset
                .filter(|_| known.position(Arg::Seek).is_none()),
            size: size.and_then(|n| i64::try_from(n).ok()),
            bytes: ret.filter(|_| known.returns == Returns::Bytes && !failed),
            flags: d.args.flags.clone().filter(|f| !f.is_empty()),
            path_arg,
            path2: newname.as_deref().and_then(|p| absolute(None, p)),
            path_arg2: newname,
            path,
            args: arguments(known, &d.args),
            ..Call::default()
        };
        self.content.take(&d.args, &mut call);
        Some(call)
    }

    fn file(&mut self, tag: &str, d: &Document, ts: i64) -> i64 {
        if let Some(id) = self.tags.get(tag) {
            return *id;
        }
        let (path, kind) = match self.paths.get(tag) {
            Some((path, kind)) => (path.clone().into_bytes(), *kind),
            None => (Vec::new(), kind_of(d.fdata.file_type.as_deref())),
        };
        let mut parts = tag.split('|').map(|n| n.parse::<u64>().ok());
        let mut number = || parts.next().flatten().and_then(|n| i64::try_from(n).ok());
        let identity = number().zip(number());
        let id = self.builder.tagged(FileInfo {
            path,
            kind,
            first_at_ns: ts,
            identity: identity.map(|(dev, ino)| (dev, ino, tag.to_string())),
        });
        self.tags.insert(tag.to_string(), id);
        id
    }
}

/// Column `args`, in the order of the call's arguments.
fn arguments(known: &Syscall, args: &Args) -> String {
    let mut parts: Vec<String> = Vec::new();
    for role in known.args {
        match role {
            Arg::Seek => parts.extend(args.offset.map(|n| format!("offset={n}"))),
            Arg::Length => parts.extend(args.length.as_ref().map(|n| format!("length={n}"))),
            Arg::Name => {
                let quoted = args.name.as_deref().map(|n| n.escape_default().to_string());
                parts.extend(quoted.map(|n| format!("name=\"{n}\"")));
            }
            Arg::Value { name: "mode", .. } => {
                parts.extend(args.mode.as_ref().map(|m| format!("mode={m}")));
            }
            Arg::Value { name: "whence", .. } => {
                parts.extend(args.whence.as_ref().map(|w| format!("whence={w}")));
            }
            _ => {}
        }
    }
    parts.join(", ")
}

/// The number behind a message, `ENOENT` or `no such file or directory`.
fn error(text: &str) -> Option<i64> {
    let word = text
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .find(|w| w.len() > 1 && w.starts_with('E') && w.chars().all(|c| !c.is_lowercase()));
    let by_name = word.and_then(|w| (1..600).find(|n| errno::name(*n) == Some(w)));
    by_name.or_else(|| {
        (1..134)
            .find(|n| {
                let message = std::io::Error::from_raw_os_error(*n).to_string();
                let message = message.split(" (os error").next().unwrap_or("");
                message.eq_ignore_ascii_case(text.trim())
            })
            .map(i64::from)
    })
}

/// Our name of DIO's type of file.
fn kind_of(kind: Option<&str>) -> &'static str {
    match kind {
        Some("Regular file") => "regular",
        Some("Directory") => "directory",
        Some("Symbolic link") => "symlink",
        Some("Block device") => "block",
        Some("Char device") => "char",
        Some("Pipe") => "fifo",
        Some("Socket") => "socket",
        _ => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_by_name_and_by_text() {
        assert_eq!(error("ENOENT"), Some(2));
        assert_eq!(error("EEXIST (File exists)"), Some(17));
        assert_eq!(error("no such file or directory"), Some(2));
        assert_eq!(error("what"), None);
    }

    #[test]
    fn buffers_are_the_bytes_that_were_captured() {
        let bytes = |text, size| captured(text, size);
        assert_eq!(bytes("abc", Some(3)).as_deref(), Some(b"abc".as_slice()));
        assert_eq!(bytes("abc", None).as_deref(), Some(b"abc".as_slice()));
        // The four characters, and the byte that they stand for.
        assert_eq!(
            bytes(r"\xff", Some(4)).as_deref(),
            Some(br"\xff".as_slice())
        );
        assert_eq!(bytes(r"\xff", Some(1)).as_deref(), Some([0xff].as_slice()));
        assert_eq!(
            bytes(r"a\\\xff", Some(3)).as_deref(),
            Some([b'a', b'\\', 0xff].as_slice())
        );
        // A replacement character is not the byte that was there.
        assert_eq!(bytes("a\u{fffd}", Some(2)), None);
    }

    #[test]
    fn signatures_are_hexadecimal() {
        let mut kept = Kept::default();
        for (signature, hash) in [
            ("ffffffffffffffff", Some(-1)),
            ("1f", Some(31)),
            ("", None),
            ("+1f", None),
            ("10000000000000000", None),
            ("no hash", None),
        ] {
            let args = Args {
                signature: Some(signature.into()),
                captured_size: Some(7),
                ..Args::default()
            };
            let mut call = Call::default();
            kept.take(&args, &mut call);
            assert_eq!(call.hash, hash, "{signature}");
            assert_eq!(call.content_bytes, hash.map(|_| 7), "{signature}");
        }
        assert_eq!((kept.hashes, kept.odd_signatures, kept.calls), (2, 3, 2));
        let content = kept.described().unwrap();
        assert_eq!((content.mode.as_str(), content.max_bytes), ("hash", 7));
        assert!(kept.not_kept()[1].starts_with("3 signatures"));
    }

    #[test]
    fn beginnings() {
        assert!(looks_like("[{\"system_call_name\":\"read\""));
        assert!(looks_like("{\"doc_type\":\"EventPath\""));
        assert!(!looks_like("{\"a\":1}"));
        assert!(!looks_like("12 read(3, \"system_call_name\")"));
    }
}
