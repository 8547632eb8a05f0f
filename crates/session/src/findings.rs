//! The file with what rules have found, beside the tables; and what tells whether it is
//! about the session as it is now.

use std::fs::{self, File};
use std::hash::Hasher;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use fathom_model::tables::TABLES;
use twox_hash::XxHash64;

use crate::error::SessionError;
use crate::layout::{FINDINGS_FILE, FINDINGS_TEMPORARY};
use crate::lock;
use crate::reader::Session;
use crate::storage::write_whole;

/// More than findings ever take: there is a limit to how many each rule has.
const MAX_BYTES: u64 = 32 << 20;

/// Puts findings beside the tables of the session in `dir`: the file is there as a whole, or
/// as it was before.
///
/// # Errors
/// [`SessionError::Io`] when it cannot be written.
pub fn write_findings(dir: &Path, json: &[u8]) -> Result<(), SessionError> {
    let path = dir.join(FINDINGS_FILE);
    if json.len() as u64 > MAX_BYTES {
        return Err(SessionError::io("write", &path)(too_large()));
    }
    write_whole(&dir.join(FINDINGS_TEMPORARY), &path, json, false)
}

/// What lies there; `None` when nothing does. It may be anything.
///
/// # Errors
/// [`SessionError::Io`] when it is no regular file, too large, or cannot be read.
pub fn read_findings(dir: &Path) -> Result<Option<Vec<u8>>, SessionError> {
    let path = dir.join(FINDINGS_FILE);
    let read = || {
        // Looked at before it is opened: opening a pipe would wait for a writer.
        if !fs::symlink_metadata(&path)?.is_file() {
            let reason = "it is no regular file";
            return Err(io::Error::new(ErrorKind::InvalidInput, reason));
        }
        let mut json = Vec::new();
        let file = File::open(&path)?;
        file.take(MAX_BYTES + 1).read_to_end(&mut json)?;
        match json.len() as u64 > MAX_BYTES {
            true => Err(too_large()),
            false => Ok(json),
        }
    };
    match read() {
        Ok(json) => Ok(Some(json)),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(SessionError::io("read", &path)(e)),
    }
}

/// Removes the file, and what is left of one that was being written.
///
/// # Errors
/// [`SessionError::Io`] when it is there and cannot be removed.
pub fn remove_findings(dir: &Path) -> Result<(), SessionError> {
    for name in [FINDINGS_TEMPORARY, FINDINGS_FILE] {
        let path = dir.join(name);
        match fs::remove_file(&path) {
            Err(e) if e.kind() != ErrorKind::NotFound => {
                return Err(SessionError::io("remove", &path)(e));
            }
            _ => {}
        }
    }
    Ok(())
}

fn too_large() -> io::Error {
    let reason = format!("more than {} MiB are no findings", MAX_BYTES >> 20);
    io::Error::new(ErrorKind::InvalidData, reason)
}

impl Session {
    /// A number that stands for what the session holds: what it says of itself, what is wrong
    /// with it, and of all parts of all tables the place, rows, size and time of change. Another
    /// number: something was added, merged, repaired, damaged or replaced. `None` while a recorder
    /// writes it, and when a part is not as it was when the session was opened.
    pub fn fingerprint(&self) -> Option<u64> {
        if self.is_live() || lock::is_held(self.dir()) {
            return None;
        }
        let mut hash = XxHash64::with_seed(0);
        let mut add = |bytes: &[u8]| {
            hash.write_u64(bytes.len() as u64);
            hash.write(bytes);
        };
        add(&serde_json::to_vec(self.meta()).ok()?);
        for problem in self.problems() {
            add(problem.as_bytes());
        }
        for table in TABLES {
            add(table.name.as_bytes());
            let dir = self.dir().join(table.name);
            for part in self.part_infos(table.name) {
                let name = part.range.to_string();
                let file = fs::symlink_metadata(dir.join(&name)).ok()?;
                if file.len() != part.bytes {
                    return None;
                }
                add(name.as_bytes());
                add(&part.rows.to_le_bytes());
                add(&part.bytes.to_le_bytes());
                add(&file.mtime().to_le_bytes());
                add(&file.mtime_nsec().to_le_bytes());
            }
        }
        Some(hash.finish())
    }
}
