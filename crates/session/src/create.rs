//! Making the directory of a new session, or clearing that of an old one.

use std::fs::{self, DirEntry};
use std::io::ErrorKind;
use std::path::Path;

use fathom_model::tables;

use crate::error::SessionError;
use crate::layout::{LOCK_FILE, META_FILE, TOP_FILES, is_part_file};
use crate::lock::RecorderLock;

/// Prepares `dir` and takes its lock. What is in it is refused, or with
/// `force` removed if fathom wrote it.
pub(crate) fn prepare(dir: &Path, force: bool) -> Result<RecorderLock, SessionError> {
    match fs::create_dir(dir) {
        Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
        result => {
            result.map_err(SessionError::io("create", dir))?;
            return RecorderLock::acquire(dir);
        }
    }
    let entries = list(dir)?;
    if entries.is_empty() {
        return RecorderLock::acquire(dir);
    }
    if !force {
        return Err(SessionError::Exists(dir.to_owned()));
    }
    check(dir, &entries)?;
    let lock = RecorderLock::acquire(dir)?;
    clear(&entries)?;
    Ok(lock)
}

fn list(dir: &Path) -> Result<Vec<DirEntry>, SessionError> {
    let entries = fs::read_dir(dir).map_err(SessionError::io("read", dir))?;
    entries
        .collect::<Result<_, _>>()
        .map_err(SessionError::io("read", dir))
}

/// Whether the directory is a session, and nothing in it leads elsewhere.
fn check(dir: &Path, entries: &[DirEntry]) -> Result<(), SessionError> {
    let not = |path: &Path, reason| {
        Err(SessionError::NotReplaceable {
            path: path.to_owned(),
            reason,
        })
    };
    let mut has_meta = false;
    let mut only_ours = true;
    for entry in entries {
        let path = entry.path();
        // Of the entry itself, not of what a symbolic link leads to.
        let kind = entry.file_type().map_err(SessionError::io("read", &path))?;
        if is_top_file(entry) {
            if !kind.is_file() {
                return not(&path, "it is no regular file");
            }
            has_meta |= entry.file_name() == META_FILE;
        } else if is_table(entry) {
            if !kind.is_dir() {
                return not(&path, "it is no directory");
            }
        } else {
            only_ours = false;
        }
    }
    // A recorder that is killed at once leaves its lock and nothing else.
    if has_meta || only_ours {
        Ok(())
    } else {
        not(dir, "it holds no session.json")
    }
}

fn clear(entries: &[DirEntry]) -> Result<(), SessionError> {
    for entry in entries {
        let path = entry.path();
        if is_table(entry) {
            for file in list(&path)? {
                if file.file_name().to_str().is_some_and(is_part_file) {
                    fs::remove_file(file.path())
                        .map_err(SessionError::io("remove", &file.path()))?;
                }
            }
        } else if is_top_file(entry) && entry.file_name() != LOCK_FILE {
            fs::remove_file(&path).map_err(SessionError::io("remove", &path))?;
        }
    }
    Ok(())
}

fn is_top_file(entry: &DirEntry) -> bool {
    entry
        .file_name()
        .to_str()
        .is_some_and(|name| TOP_FILES.contains(&name))
}

fn is_table(entry: &DirEntry) -> bool {
    entry
        .file_name()
        .to_str()
        .is_some_and(|name| tables::table(name).is_some())
}
