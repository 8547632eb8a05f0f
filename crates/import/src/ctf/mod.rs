//! Traces of LTTng's kernel tracer in the Common Trace Format, version 1.8.
//!
//! A trace is a directory with a description (`metadata`, in the language TSDL) and a file per stream.
//! Nothing in it is trusted: a value that contradicts its description ends the reading of its
//! stream, which is named.
//!
//! | Module | Job |
//! |---|---|
//! | `lexer`, `metadata`, `types` | the description |
//! | `bits`, `decode` | values from bits |
//! | `stream` | packets and events of a file |
//! | `files` | the traces below a directory |
//! | `events` | events as rows of calls, block requests, waits, and interrupts |
//! | `arguments` | fields of a call as columns |

mod arguments;
mod bits;
mod decode;
mod events;
mod files;
mod lexer;
mod metadata;
mod stream;
mod types;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::PathBuf;

use fathom_model::meta::SessionMeta;

use crate::builder::Builder;
use crate::error::ImportError;
use crate::text::shown;

use events::Events;
pub(crate) use files::{Trace, size};
use stream::{Read, StreamFile};

/// Defects that are kept as examples.
const EXAMPLES: usize = 3;

/// Finds the traces and reads their descriptions.
pub(crate) fn survey(paths: &[PathBuf]) -> Result<Vec<Trace>, ImportError> {
    let mut traces = Vec::new();
    for path in paths {
        traces.extend(files::find(path)?);
    }
    Ok(traces)
}

/// An event that waits for its turn, and the stream that it is from.
struct Next {
    ns: i64,
    stream: usize,
    read: Read,
}

impl PartialEq for Next {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Next {}

impl PartialOrd for Next {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Next {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.ns, self.stream).cmp(&(other.ns, other.stream))
    }
}

/// Reads all streams in order of time.
pub(crate) fn read(
    traces: Vec<Trace>,
    builder: &mut Builder,
    meta: &mut SessionMeta,
    progress: &mut dyn FnMut(u64),
) -> Result<Vec<String>, ImportError> {
    let mut events = Events::default();
    let mut streams: Vec<StreamFile> = Vec::new();
    for trace in traces {
        events.environment(&trace.metadata.environment);
        streams.extend(trace.streams);
    }
    let mut heap = BinaryHeap::new();
    for (stream, file) in streams.iter_mut().enumerate() {
        heap.extend(advance(file, stream)?);
    }
    let mut count: u64 = 0;
    while let Some(Reverse(next)) = heap.pop() {
        events.event(&next.read, builder)?;
        if let Some(file) = streams.get_mut(next.stream) {
            heap.extend(advance(file, next.stream)?);
            for lost in file.losses.drain(..) {
                builder.lost(lost.count, lost.cpu, lost.first_at_ns, lost.last_at_ns);
                events.lost();
            }
        }
        count += 1;
        if count & 4095 == 0 {
            progress(streams.iter().map(StreamFile::done).sum());
        }
    }
    events.finish(builder, meta)?;
    let mut defects = Vec::new();
    for file in &mut streams {
        for left in file.losses.drain(..) {
            builder.lost(left.count, left.cpu, left.first_at_ns, left.last_at_ns);
        }
        if let Some(defect) = file.defect {
            let name = shown(file.path.as_os_str().as_encoded_bytes());
            defects.push(format!(
                "{name}: {defect}: the rest of this stream was not read"
            ));
        }
    }
    progress(streams.iter().map(StreamFile::done).sum());
    if let Some(source) = &mut meta.source {
        source.lines = count;
        source.bad_lines = source.bad_lines.saturating_add(defects.len() as u64);
        source.not_observable.splice(0..0, events.not_observable());
    }
    defects.truncate(EXAMPLES);
    Ok(defects)
}

fn advance(file: &mut StreamFile, stream: usize) -> Result<Option<Reverse<Next>>, ImportError> {
    let read = file.next().map_err(ImportError::io("read", &file.path))?;
    Ok(read.map(|read| {
        let ns = read.ns;
        Reverse(Next { ns, stream, read })
    }))
}
