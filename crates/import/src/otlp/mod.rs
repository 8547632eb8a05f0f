//! Spans of applications, as OpenTelemetry exports them (OTLP), into a session that was recorded
//! meanwhile.
//!
//! Times of spans are of the wall clock; `session.json` ties it to the session's clock. Of the ids of
//! threads only those count that the recording knows: some SDKs number threads themselves.

mod file;
mod message;
mod rows;
mod threads;

use std::path::{Path, PathBuf};

use fathom_model::tables::SPANS;
use fathom_session::{Addition, Session};

use crate::counts::SpanCounts;
use crate::error::ImportError;
use file::BadLines;
use rows::Rows;
use threads::Threads;

/// Rows that are handed to the session at once, and bytes of their texts with which fewer are.
const BATCH_ROWS: usize = 32 << 10;
const BATCH_BYTES: usize = 32 << 20;
/// Spans of one import: their ids are held in memory.
const MAX_SPANS: u64 = 10_000_000;
/// A wall clock that was off by more at the end of the recording than at its start was set meanwhile.
const MAX_DRIFT_NS: u64 = 10_000_000;

/// The result of an import of spans.
#[derive(Clone, Debug)]
pub struct SpanOutcome {
    /// Counts of the spans.
    pub counts: SpanCounts,
    /// Rows of table `spans` now, of this import and earlier ones.
    pub rows: u64,
    /// Lines that are no requests, and were skipped.
    pub bad_lines: u64,
    /// The errors of the first of them, escaped.
    pub bad_examples: Vec<String>,
    /// By how much the wall clock was set while the recording ran, nanoseconds, if that is more than
    /// clocks drift: spans may be misplaced by so much.
    pub clock_set_ns: Option<u64>,
}

/// Whether the beginning of a file looks like OTLP in JSON.
pub(crate) fn looks_like(head: &str) -> bool {
    head.trim_start().starts_with('{') && head.contains("\"resourceSpans\"")
}

/// Adds the spans of `files` to the session in `dir`. Spans that it has already are replaced.
/// `progress` receives the number of bytes of the files that were read, and of all.
///
/// # Errors
/// When a file cannot be read or contains no spans of OTLP, when no span is in the recording, and
/// the errors of [`Addition`]. The session is then as it was.
pub fn import_spans(
    files: &[PathBuf],
    dir: &Path,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<SpanOutcome, ImportError> {
    if files.is_empty() {
        return Err(ImportError::NoFile);
    }
    let sizes = files.iter().map(|file| {
        let info = std::fs::metadata(file).map_err(ImportError::io("read", file))?;
        Ok(info.len())
    });
    let sizes: Vec<u64> = sizes.collect::<Result<_, ImportError>>()?;
    let threads = Threads::of(&Session::open(dir)?)?;
    let mut addition = Addition::begin(dir, &SPANS)?;
    let clock = addition.meta().clock.clone();
    let set_ns = clock.set_ns().unsigned_abs();
    let mut rows = Rows::new(clock, threads);
    let mut bad = BadLines::default();
    let total = sizes.iter().sum();
    let mut done = 0;
    for (path, size) in files.iter().zip(sizes) {
        file::read(path, &mut bad, &mut |request| {
            rows.add(&request);
            if rows.counts.read > MAX_SPANS {
                return Err(ImportError::ManySpans(MAX_SPANS));
            }
            if rows.len() >= BATCH_ROWS || rows.bytes() >= BATCH_BYTES {
                push(&mut rows, &mut addition)?;
            }
            Ok(())
        })?;
        done += size;
        progress(done, total);
    }
    push(&mut rows, &mut addition)?;
    let counts = rows.counts;
    if counts.stored == 0 {
        return Err(ImportError::NoSpans(counts));
    }
    Ok(SpanOutcome {
        counts,
        rows: addition.finish()?,
        bad_lines: bad.count,
        bad_examples: bad.examples,
        clock_set_ns: (set_ns > MAX_DRIFT_NS).then_some(set_ns),
    })
}

fn push(rows: &mut Rows, addition: &mut Addition) -> Result<(), ImportError> {
    if let Some(batch) = rows.take() {
        addition.push(&batch)?;
    }
    Ok(())
}
