//! Copies of a session that is being recorded.
//!
//! The parts are linked instead of copied if the file system supports it: a snapshot then takes
//! almost no time and space, and it stays when the recording drops its parts. The rest of a closed
//! session (each key once, totals) is made afterwards from the copy, in a separate thread.

use std::io;

use fathom_model::ids::spread;
use fathom_model::meta::{Save, SessionMeta, State};
use fathom_model::tables::TABLES;

use crate::disk::dir::Dir;
use crate::error::SessionError;
use crate::format::layout::PartInfo;
use crate::format::lock::RecorderLock;
use crate::format::schema::TableSchema;
use crate::maintain::finalize;
use crate::write::create;
use crate::write::queue::SaveRequest;
use crate::write::shared::{PendingSave, Shared};
use crate::write::storage::Storage;

/// A copy whose parts are there and that is to be settled.
pub(crate) struct Copy {
    storage: Storage,
    meta: SessionMeta,
    parts: Vec<Vec<PartInfo>>,
    request: SaveRequest,
    _lock: RecorderLock,
}

/// The id of a copy that was saved at a time: copies of one recording have different rows.
fn id_of_copy(id: &str, at_ns: i64) -> String {
    let half = |bytes: Option<&str>, salt: u64| {
        let own = bytes.and_then(|hex| u64::from_str_radix(hex, 16).ok());
        spread(own.unwrap_or(salt) ^ spread(at_ns as u64 ^ salt))
    };
    format!(
        "{:016x}{:016x}",
        half(id.get(..16), 1),
        half(id.get(16..), 2)
    )
}

/// Links the parts of a copy into a new session. On the thread that merges
/// and drops parts, so that none goes meanwhile.
pub(crate) fn link(shared: &Shared, pending: &PendingSave) -> Result<Copy, SessionError> {
    let request = &pending.request;
    // For those who may read the recording.
    let access = shared.storage.folder().access();
    let (folder, lock) = create::prepare(&request.to, false, access)?;
    let storage = Storage::new(folder);
    let mut meta = shared.meta();
    meta.state = State::Recording;
    meta.clock.end(request.at);
    meta.history.saves.clear();
    meta.history.saved_from = meta.recording().to_owned();
    meta.id = id_of_copy(&meta.id, request.at.monotonic_ns);
    meta.history.saved_because = request.because.clone();
    // Calls after the last row do not belong to this snapshot.
    meta.totals.seen = 0;
    meta.totals.faults.seen = 0;
    meta.totals.writeback.seen = 0;
    storage.write_meta(&meta, false)?;
    // The tables of requests come first, the tables that they refer to last: a row that a request
    // refers to was written before the request.
    let mut parts = Vec::with_capacity(TABLES.len());
    for (i, (table, next)) in TABLES.iter().zip(&pending.next).enumerate() {
        let (from, to) = (
            shared.storage.table(table.name)?,
            storage.make_table(table.name)?,
        );
        let mut linked = shared.catalog.table(i).parts.clone();
        linked.retain(|part| part.range.last < *next);
        for part in &linked {
            link_or_copy(&from, &part.range.to_string(), &to).map_err(SessionError::io(
                "write",
                &storage.part(table.name, part.range),
            ))?;
        }
        parts.push(linked);
    }
    Ok(Copy {
        storage,
        meta,
        parts,
        request: request.clone(),
        _lock: lock,
    })
}

fn link_or_copy(from: &Dir, name: &str, to: &Dir) -> io::Result<()> {
    match from.link_into(name, to) {
        Ok(()) => Ok(()),
        // Another file system, or one without hard links.
        Err(_) => io::copy(&mut from.open_file(name)?, &mut to.create_file(name)?).map(drop),
    }
}

impl Copy {
    /// Makes a closed session of the copy.
    pub(crate) fn close(mut self, schemas: &[TableSchema]) -> Save {
        let request = self.request.clone();
        let done = finalize::finalize(
            &self.storage,
            schemas,
            &mut self.parts,
            &mut self.meta,
            false,
        );
        let done = done.and_then(|()| {
            self.meta.state = State::Complete;
            self.storage.write_meta(&self.meta, false)
        });
        outcome(&request, done)
    }
}

/// The metadata of a snapshot.
pub(crate) fn outcome(request: &SaveRequest, result: Result<(), SessionError>) -> Save {
    Save {
        path: request.to.to_string_lossy().into_owned(),
        because: request.because.clone(),
        at_ns: request.at.monotonic_ns,
        error: result.err().map(|e| e.to_string()),
    }
}
