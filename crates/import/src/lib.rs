//! Logs of other tracers as sessions of fathom, for people without root or on
//! kernels without eBPF.
//!
//! [`import`] reads a log line by line and writes a session with the same writer as a recording.
//! Values that the log does not contain are null, and are named in `session.json` (`source`) and in
//! the report. A line that cannot be parsed is counted and never ends the import. Memory grows with
//! the number of open threads, descriptors, and files, not with the log.
//!
//! [`import_spans`] is apart from that: it adds the spans of an application to a session that is
//! there.
//!
//! Each format is a row of [`Format::ALL`] and a module.

mod builder;
mod counts;
mod ctf;
mod dio;
mod error;
mod otlp;
mod strace;
mod text;

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use fathom_model::choice::format_named;
use fathom_model::meta::{ImportSource, SessionMeta};
use fathom_session::{SessionWriter, WriterOptions};

pub use counts::SpanCounts;
pub use error::ImportError;
pub use otlp::{SpanOutcome, import_spans};

use builder::Builder;

/// Bytes of a file that tell its format.
const HEAD_BYTES: u64 = 64 << 10;

/// A format that can be imported: a row of [`Format::ALL`], from which `--format`, its help and
/// the detection derive.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    name: &'static str,
    log: &'static str,
    looks_like: fn(&str) -> bool,
    /// Looks through the files before a session is made, so that a log without times makes none.
    survey: fn(&[PathBuf]) -> Result<ReadLogs, ImportError>,
}

impl Format {
    /// Every format, in the order in which they are tried on a log.
    pub const ALL: &[Format] = &[
        Format {
            name: "strace",
            log: "a log of strace",
            looks_like: strace::looks_like,
            survey: |files| {
                let survey = strace::survey(files)?;
                Ok(Box::new(move |files, builder, meta, progress| {
                    strace::read(files, &survey, builder, meta, progress)
                }))
            },
        },
        Format {
            name: "dio",
            log: "JSON of DIO",
            looks_like: dio::looks_like,
            survey: |_| Ok(Box::new(dio::read)),
        },
        Format {
            name: "ctf",
            log: "a directory with a trace of LTTng's kernel tracer",
            looks_like: |_| false,
            survey: |files| {
                let traces = ctf::survey(files)?;
                Ok(Box::new(move |_, builder, meta, progress| {
                    ctf::read(traces, builder, meta, progress)
                }))
            },
        },
    ];

    /// Name on the command line.
    pub fn name(self) -> &'static str {
        self.name
    }

    /// Name of a file of this format in sentences.
    pub fn log(self) -> &'static str {
        self.log
    }
}

impl std::str::FromStr for Format {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        format_named(Format::ALL, Format::name, name)
    }
}

/// Reads files into a builder, records the results in the metadata, and reports the number of bytes
/// read to the last argument. Returns the first lines that could not be parsed, escaped for a
/// terminal.
type ReadLogs = Box<
    dyn FnOnce(
        &[PathBuf],
        &mut Builder,
        &mut SessionMeta,
        &mut dyn FnMut(u64),
    ) -> Result<Vec<String>, ImportError>,
>;

/// The result of an import.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The format that was read.
    pub format: Format,
    pub calls: u64,
    /// The source of the session.
    pub source: ImportSource,
    /// Lines that were not understood, the first of them, escaped.
    pub bad_examples: Vec<String>,
}

/// Makes a session in `output` from `files`: one log, or the files that `strace -ff` writes per
/// thread. `format` is detected if it is not given. `progress` receives from time to time the
/// number of bytes read and their total; `options` configure the session's writer.
///
/// # Errors
/// If a file cannot be read, has no known format, or has no times, and the errors of
/// [`SessionWriter`]. Damaged lines are not errors.
pub fn import(
    files: &[PathBuf],
    format: Option<Format>,
    output: &Path,
    options: WriterOptions,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Outcome, ImportError> {
    let files = expand(files)?;
    let first = files.first().ok_or(ImportError::NoFile)?;
    let format = match format {
        Some(format) => format,
        None => detect(first)?,
    };
    let mut total = 0;
    for file in &files {
        let info = std::fs::metadata(file).map_err(ImportError::io("read", file))?;
        total += match info.is_dir() {
            true => ctf::size(file),
            false => info.len(),
        };
    }
    let read = (format.survey)(&files)?;
    let mut meta = builder::meta(format, &files);
    let writer = SessionWriter::create(output, meta.clone(), options)?;
    let mut builder = Builder::new(writer);
    let mut done = |bytes| progress(bytes, total);
    let bad_examples = read(&files, &mut builder, &mut meta, &mut done)?;
    let source = meta.source.clone().unwrap_or_default();
    let calls = builder.finish(meta)?;
    Ok(Outcome {
        format,
        calls,
        source,
        bad_examples,
    })
}

/// A name that is not a file but the common beginning of the files of `strace -ff` (`NAME.PID`)
/// stands for all of them.
fn expand(files: &[PathBuf]) -> Result<Vec<PathBuf>, ImportError> {
    let mut all = Vec::new();
    for file in files {
        if file.exists() {
            all.push(file.clone());
            continue;
        }
        let dir = match file.parent() {
            Some(dir) if !dir.as_os_str().is_empty() => dir,
            _ => Path::new("."),
        };
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let mut found: Vec<(u32, PathBuf)> = Vec::new();
        for entry in std::fs::read_dir(dir).map_err(ImportError::io("read", dir))? {
            let entry = entry.map_err(ImportError::io("read", dir))?;
            let entry_name = entry.file_name();
            let pid = entry_name
                .to_str()
                .and_then(|n| n.strip_prefix(&*name)?.strip_prefix('.')?.parse().ok());
            // strace wrote files: another user's pipe of such a name would never end.
            if let Some(pid) = pid
                && entry.path().is_file()
            {
                found.push((pid, entry.path()));
            }
        }
        if found.is_empty() {
            let missing = std::io::Error::from(std::io::ErrorKind::NotFound);
            return Err(ImportError::io("open", file)(missing));
        }
        found.sort();
        all.extend(found.into_iter().map(|(_, path)| path));
    }
    Ok(all)
}

fn detect(file: &Path) -> Result<Format, ImportError> {
    if file.is_dir() {
        return "ctf"
            .parse()
            .map_err(|_| ImportError::Unknown(file.to_owned()));
    }
    let open = File::open(file).map_err(ImportError::io("open", file))?;
    let mut head = Vec::new();
    open.take(HEAD_BYTES)
        .read_to_end(&mut head)
        .map_err(ImportError::io("read", file))?;
    let text = String::from_utf8_lossy(&head);
    if otlp::looks_like(&text) {
        return Err(ImportError::Spans(file.to_owned()));
    }
    let found = Format::ALL.iter().find(|f| (f.looks_like)(&text));
    found
        .copied()
        .ok_or_else(|| ImportError::Unknown(file.to_owned()))
}

/// Longest line that is kept; the rest of a longer one is skipped.
const MAX_LINE: usize = 4 << 20;

/// Reads the next line without its end, at most [`MAX_LINE`] bytes of it, into
/// `line`; false at the end of the file. Adds what was read to `bytes`.
fn next_line(
    reader: &mut BufReader<File>,
    line: &mut Vec<u8>,
    bytes: &mut u64,
) -> std::io::Result<bool> {
    line.clear();
    let mut any = false;
    loop {
        let available = reader.fill_buf()?;
        if available.is_empty() {
            return Ok(any);
        }
        any = true;
        let (taken, ended) = match available.iter().position(|b| *b == b'\n') {
            Some(end) => (end + 1, true),
            None => (available.len(), false),
        };
        let room = MAX_LINE.saturating_sub(line.len());
        let text = taken - usize::from(ended);
        line.extend_from_slice(available.get(..text.min(room)).unwrap_or_default());
        reader.consume(taken);
        *bytes += taken as u64;
        if ended {
            return Ok(true);
        }
    }
}
