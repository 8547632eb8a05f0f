//! Traces in the Common Trace Format, version 1.8, with the events of LTTng's kernel tracer:
//! `syscall_entry_NAME` and `syscall_exit_NAME`, `block_rq_insert`, `block_rq_issue`, and
//! `block_rq_complete`.
//!
//! CTF has no null. An event whose value is not known is of an event class without that field, so a
//! name has as many classes as there are sets of known fields. The same holds for the context: a
//! stream class contains the events with the same known context. Only streams of events whose CPU
//! is known have `cpu_id`, which a session has of the end of a call, and not of its start.
//!
//! | Module | Job |
//! |---|---|
//! | `value` | fields and their encoding |
//! | `calls` | a call as events |
//! | `block` | block requests as events |
//! | `stream` | packets |
//! | `metadata` | the text that describes all of it |

mod block;
mod calls;
mod metadata;
mod stream;
mod value;

use std::collections::HashMap;

use fathom_model::meta::SessionMeta;
use fathom_query::Db;

use crate::error::Result;
use crate::source::{Selection, SessionRows, Tables, check_condition, integers};
use crate::{Outcome, counted};

use calls::Calls;
use stream::{Streams, Trace};

/// Receives the files of a trace.
pub trait TraceFiles {
    /// Adds bytes to the end of file `name`, which is made by the first ones. Names consist of
    /// letters, digits, and underscores.
    ///
    /// # Errors
    /// When they cannot be written.
    fn append(&mut self, name: &str, bytes: &[u8]) -> std::io::Result<()>;
}

/// Writes the rows that `selection` selects as a trace into `files`. `progress` works as for
/// [`crate::export`].
///
/// # Errors
/// When the condition is wrong, the session cannot be read, or `files` fails.
pub fn export_ctf(
    db: &Db,
    meta: &SessionMeta,
    selection: &Selection,
    files: &mut dyn TraceFiles,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Outcome> {
    check_condition(db, selection)?;
    let mut streams = Streams::new(Trace::of(meta), files);
    let source = SessionRows::new(db, selection, Tables::Calls)?;
    let total = source.total();
    let mut calls = Calls::default();
    let mut rows = 0;
    source.each(|row| {
        calls.row(row, &mut streams)?;
        rows += 1;
        if rows & 4095 == 0 {
            progress(rows, total);
        }
        Ok(())
    })?;
    calls.end(&mut streams)?;
    let blocks = block::write(db, selection, &mut streams)?;
    streams.finish(&lost_by_cpu(db)?)?;
    progress(rows, total);
    let mut notes = calls.notes();
    let dropped = streams.dropped();
    if dropped > 0 {
        notes.push(format!(
            "{} left out: before the clock's start, or of more kinds than a trace holds",
            counted(dropped, "event", "events")
        ));
    }
    Ok(Outcome {
        rows: rows + blocks,
        notes,
    })
}

/// Lost calls by CPU, -1 where it is not known.
fn lost_by_cpu(db: &Db) -> Result<HashMap<i64, u64>> {
    let mut lost = HashMap::new();
    let sql =
        "SELECT cpu::BIGINT, sum(count)::BIGINT FROM losses WHERE layer = 'syscall' GROUP BY 1";
    integers(db, sql, |row| {
        if let [Some(cpu), Some(count)] = *row {
            lost.insert(cpu, u64::try_from(count).unwrap_or(0));
        }
    })?;
    Ok(lost)
}
