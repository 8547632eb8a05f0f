//! Whether a session has changed.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use fathom_model::tables::TABLES;

use crate::folder::files;

/// A fingerprint that changes whenever a file of a session is added or replaced: modification times
/// and sizes of its folders and files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stamp(Vec<Option<(i64, i64, u64)>>);

impl Stamp {
    /// The fingerprint of the session in `dir` now.
    pub fn of(dir: &Path) -> Self {
        let of = |name: &str| {
            let metadata = fs::symlink_metadata(dir.join(name)).ok()?;
            Some((metadata.mtime(), metadata.mtime_nsec(), metadata.size()))
        };
        let names = TABLES.iter().map(|t| t.name).chain(files());
        Self(names.map(of).collect())
    }
}
