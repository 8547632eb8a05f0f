//! Parts that are to survive the death of the machine: flushed to the device by
//! a thread of its own, as soon as they are written.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use crate::error::SessionError;
use crate::format::layout::PartRange;
use crate::write::shared::Shared;

/// A part by its table and place.
pub(crate) type Part = (&'static str, PartRange);

/// Flushes incoming parts until all senders are gone.
pub(crate) fn run(shared: &Arc<Shared>, parts: &Receiver<Part>) {
    let mut failed = false;
    while let Ok(part) = parts.recv() {
        let mut tables = BTreeSet::new();
        // Parts that arrived meanwhile share the flush of their folder.
        for (table, range) in std::iter::once(part).chain(parts.try_iter()) {
            tables.insert(table);
            match sync(shared, table, range) {
                // Merged into another one, which is flushed before it is used.
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                result => {
                    let path = shared.storage.part(table, range);
                    note(shared, &mut failed, &path, result);
                }
            }
        }
        for table in tables {
            let synced = shared.storage.table(table).map_err(io::Error::other);
            let path = shared.storage.table_dir(table);
            note(
                shared,
                &mut failed,
                &path,
                synced.and_then(|dir| dir.sync()),
            );
        }
    }
}

fn sync(shared: &Shared, table: &str, range: PartRange) -> io::Result<()> {
    let dir = shared.storage.table(table).map_err(io::Error::other)?;
    dir.open_file(range.to_string())?.sync_all()
}

fn note(shared: &Shared, failed: &mut bool, path: &Path, result: io::Result<()>) {
    if let Err(e) = result
        && !*failed
    {
        // Once: it says that what is promised does not hold.
        *failed = true;
        shared.note(&SessionError::io("flush", path)(e));
    }
}
