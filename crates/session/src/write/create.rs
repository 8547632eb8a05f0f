//! Creates the directory of a new session, or clears an old one.

use std::ffi::OsString;
use std::path::Path;

use fathom_model::tables;
use rustix::fs::FileType;

use crate::disk::dir::Dir;
use crate::disk::owner::{Access, Share};
use crate::error::SessionError;
use crate::format::layout::{
    LOCK_FILE, META_FILE, OWN_FOLDER, is_own_file, is_part_file, is_top_file,
};
use crate::format::lock::RecorderLock;

/// Prepares the directory `path` for the users of `access`, and takes its lock. A directory with
/// contents is refused, or with `force` cleared if fathom wrote it.
pub(crate) fn prepare(
    path: &Path,
    force: bool,
    access: Access,
) -> Result<(Dir, RecorderLock), SessionError> {
    let (dir, made) = Dir::create(path, access)?;
    let prepared = prepare_in(&dir, force);
    if made && prepared.is_err() {
        // Nothing remains; if that fails too, `error` is more informative.
        let _ = dir.remove(LOCK_FILE);
        let _ = std::fs::remove_dir(path);
    }
    Ok((dir, prepared?))
}

fn prepare_in(dir: &Dir, force: bool) -> Result<RecorderLock, SessionError> {
    // Looked at even if it was just made: another one may have taken its name since.
    let names = list(dir)?;
    if !names.is_empty() {
        if !force {
            return Err(SessionError::Exists(dir.path().to_owned()));
        }
        check(dir, &names)?;
    }
    let lock = RecorderLock::acquire(dir)?;
    dir.claim()
        .and_then(|()| lock.claim(dir.access()))
        .map_err(SessionError::io("set the owner of", dir.path()))?;
    if force {
        clear_checked(dir)?;
    }
    Ok(lock)
}

/// Removes the session in `dir` again, of which nothing was recorded: all that fathom wrote there,
/// and the directory unless something else is in it.
///
/// # Errors
/// [`SessionError::NotReplaceable`], [`SessionError::Busy`], [`SessionError::Foreign`] and
/// [`SessionError::Io`], as when a session is replaced.
pub fn discard(path: &Path) -> Result<(), SessionError> {
    let dir = Dir::open_own(path)?;
    let names = list(&dir)?;
    check(&dir, &names)?;
    {
        let _lock = RecorderLock::acquire(&dir)?;
        clear_checked(&dir)?;
        dir.remove_if_there(LOCK_FILE)
            .map_err(SessionError::io("remove", &path.join(LOCK_FILE)))?;
    }
    std::fs::remove_dir(path).map_err(SessionError::io("remove", path))
}

/// Makes the directory `path` for sessions, for its owner alone; one of the same owner may be there.
///
/// # Errors
/// [`SessionError::Foreign`] if another user can write in it, and [`SessionError::Io`].
pub fn create_folder(path: &Path) -> Result<(), SessionError> {
    let (dir, made) = Dir::create(path, Access::new(Share::Private))?;
    match made {
        true => dir
            .claim()
            .map_err(SessionError::io("set the owner of", path)),
        false => Ok(()),
    }
}

/// Clears a directory whose lock is held: what was there before may have been of a recording that
/// has ended since.
fn clear_checked(dir: &Dir) -> Result<(), SessionError> {
    let names = list(dir)?;
    check(dir, &names)?;
    clear(dir, &names)
}

fn list(dir: &Dir) -> Result<Vec<OsString>, SessionError> {
    dir.names().map_err(SessionError::io("read", dir.path()))
}

/// Whether the directory is a session, and nothing in it leads elsewhere.
fn check(dir: &Dir, names: &[OsString]) -> Result<(), SessionError> {
    let not = |path: &Path, reason| {
        Err(SessionError::NotReplaceable {
            path: path.to_owned(),
            reason,
        })
    };
    let mut has_meta = false;
    let mut only_ours = true;
    for name in names {
        let path = dir.path().join(name);
        let Some(name) = name
            .to_str()
            .filter(|name| is_top_file(name) || is_folder(name))
        else {
            only_ours = false;
            continue;
        };
        // A recording replaces files of its own while they are listed.
        let Some(kind) = dir.kind(name).map_err(SessionError::io("read", &path))? else {
            continue;
        };
        if is_top_file(name) {
            if kind != FileType::RegularFile {
                return not(&path, "it is no regular file");
            }
            has_meta |= name == META_FILE;
        } else if kind != FileType::Directory {
            return not(&path, "it is not a directory");
        }
    }
    // A recorder that is killed at once leaves its lock and nothing else.
    if has_meta || only_ours {
        Ok(())
    } else {
        not(dir.path(), "it holds no session.json")
    }
}

fn clear(dir: &Dir, names: &[OsString]) -> Result<(), SessionError> {
    for name in names.iter().filter_map(|name| name.to_str()) {
        if is_folder(name) {
            let table = dir.own_dir(name)?;
            let is_file = match name {
                OWN_FOLDER => is_own_file,
                _ => is_part_file,
            };
            for file in list(&table)? {
                if let Some(file) = file.to_str().filter(|file| is_file(file)) {
                    let path = table.path().join(file);
                    table
                        .remove(file)
                        .map_err(SessionError::io("remove", &path))?;
                }
            }
            // Created again. It stays if it contains files of another program.
            let _ = dir.remove_dir(name);
        } else if is_top_file(name) && name != LOCK_FILE {
            dir.remove(name)
                .map_err(SessionError::io("remove", &dir.path().join(name)))?;
        }
    }
    Ok(())
}

fn is_folder(name: &str) -> bool {
    name == OWN_FOLDER || tables::table(name).is_some()
}
