//! Parts that are to survive the death of the machine: flushed to the device by
//! a thread of its own, as soon as they are written.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use crate::error::SessionError;
use crate::shared::Shared;

/// Flushes the parts that come, until nobody can send any more.
pub(crate) fn run(shared: &Arc<Shared>, parts: &Receiver<PathBuf>) {
    let mut failed = false;
    while let Ok(part) = parts.recv() {
        let mut dirs = BTreeSet::new();
        // Those that came meanwhile share the flush of their folder.
        for part in std::iter::once(part).chain(parts.try_iter()) {
            dirs.extend(part.parent().map(Path::to_owned));
            match sync(&part) {
                // Merged into another one, which is flushed before it is used.
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                result => note(shared, &mut failed, &part, result),
            }
        }
        for dir in dirs {
            note(shared, &mut failed, &dir, sync(&dir));
        }
    }
}

fn sync(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
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
