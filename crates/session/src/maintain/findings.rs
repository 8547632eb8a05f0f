//! The file with findings next to the tables, and the check whether they belong to the session's
//! current state.

use std::hash::Hasher;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use fathom_model::tables::TABLES;
use twox_hash::XxHash64;

use crate::disk::dir::Dir;
use crate::error::SessionError;
use crate::format::layout::{FINDINGS_FILE, FINDINGS_TEMPORARY};
use crate::format::lock;
use crate::read::session::Session;
use crate::write::storage::write_whole;

/// More than findings ever take: there is a limit to how many each rule has.
const MAX_BYTES: u64 = 32 << 20;

/// Writes findings next to the tables of the session in `dir`: the file is either complete or
/// unchanged.
///
/// # Errors
/// [`SessionError::Io`] when it cannot be written, [`SessionError::Foreign`] when the session is
/// another user's.
pub fn write_findings(dir: &Path, json: &[u8]) -> Result<(), SessionError> {
    if json.len() as u64 > MAX_BYTES {
        return Err(SessionError::io("write", &dir.join(FINDINGS_FILE))(
            too_large(),
        ));
    }
    let dir = Dir::open_own(dir)?;
    write_whole(&dir, FINDINGS_TEMPORARY, FINDINGS_FILE, json, false)
}

/// The contents of the file; `None` without one. They may be anything.
///
/// # Errors
/// [`SessionError::Io`] when it is no regular file, too large, or cannot be read.
pub fn read_findings(dir: &Path) -> Result<Option<Vec<u8>>, SessionError> {
    let read = || {
        let mut json = Vec::new();
        let file = Dir::open(dir)?.open_file(FINDINGS_FILE)?;
        file.take(MAX_BYTES + 1).read_to_end(&mut json)?;
        match json.len() as u64 > MAX_BYTES {
            true => Err(too_large()),
            false => Ok(json),
        }
    };
    match read() {
        Ok(json) => Ok(Some(json)),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(SessionError::io("read", &dir.join(FINDINGS_FILE))(e)),
    }
}

/// Removes the file, and what is left of one that was being written.
///
/// # Errors
/// [`SessionError::Io`] when it is there and cannot be removed, [`SessionError::Foreign`] when
/// the session is another user's.
pub fn remove_findings(dir: &Path) -> Result<(), SessionError> {
    let dir = Dir::open_own(dir)?;
    for name in [FINDINGS_TEMPORARY, FINDINGS_FILE] {
        dir.remove_if_there(name)
            .map_err(SessionError::io("remove", &dir.path().join(name)))?;
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
        let folder = Dir::open(self.dir()).ok()?;
        if self.is_live() || lock::is_held_in(&folder) {
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
            let parts = self.part_infos(table.name);
            if parts.is_empty() {
                continue;
            }
            let dir = folder.dir(table.name).ok()?;
            for part in parts {
                let name = part.range.to_string();
                let file = dir.stat(&name).ok()??;
                if u64::try_from(file.st_size) != Ok(part.bytes) {
                    return None;
                }
                add(name.as_bytes());
                add(&part.rows.to_le_bytes());
                add(&part.bytes.to_le_bytes());
                add(&file.st_mtime.to_le_bytes());
                add(&file.st_mtime_nsec.to_le_bytes());
            }
        }
        Some(hash.finish())
    }
}
