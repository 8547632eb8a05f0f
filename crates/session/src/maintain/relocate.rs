//! Moving a session to another name or file system.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use rustix::fs::{CWD, FileType, RenameFlags, renameat_with};
use rustix::io::Errno;

use crate::disk::dir::Dir;
use crate::error::SessionError;
use crate::write::create;

/// Moves a session without a writer, also to another file system. `to` must not exist.
///
/// # Errors
/// [`SessionError::Exists`], [`SessionError::Foreign`] when the session is another user's,
/// [`SessionError::Io`].
pub fn move_session(from: &Path, to: &Path) -> Result<(), SessionError> {
    let source = Dir::open_own(from)?;
    let moved = match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Not every file system knows of it: what is there then must be an empty directory.
        Err(Errno::INVAL) => rustix::fs::rename(from, to),
        moved => moved,
    };
    match moved {
        Ok(()) => return Ok(()),
        Err(Errno::EXIST | Errno::NOTEMPTY) => return Err(SessionError::Exists(to.to_owned())),
        Err(Errno::XDEV) => {}
        Err(e) => return Err(SessionError::io("create", to)(e.into())),
    }
    let (target, made) = Dir::create(to, source.access())?;
    if !made {
        return Err(SessionError::Exists(to.to_owned()));
    }
    target
        .claim()
        .map_err(SessionError::io("set the owner of", to))?;
    copy(&source, &target)?;
    create::discard(from)
}

/// Copies regular files and the folders in which they are; nothing else is in a session.
fn copy(from: &Dir, to: &Dir) -> Result<(), SessionError> {
    for name in from
        .names()
        .map_err(SessionError::io("read", from.path()))?
    {
        let path = from.path().join(&name);
        match from.kind(&name).map_err(SessionError::io("read", &path))? {
            Some(FileType::RegularFile) => {
                copy_file(from, to, &name).map_err(SessionError::io("copy", &path))?;
            }
            Some(FileType::Directory) => {
                let inner = from.dir(&name).map_err(SessionError::io("read", &path))?;
                copy(&inner, &to.make_dir(&name)?)?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn copy_file(from: &Dir, to: &Dir, name: &OsStr) -> io::Result<()> {
    io::copy(&mut from.open_file(name)?, &mut to.create_file(name)?).map(drop)
}
