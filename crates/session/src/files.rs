//! Files and sessions under names that the user chose: put there when they are whole, and never
//! in place of what a link leads to.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, ErrorKind};
use std::path::Path;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use crate::create;
use crate::dir::Dir;
use crate::error::SessionError;
use crate::owner::{Access, Share};

/// How many names are tried.
const TRIES: u32 = 100;

/// A file that takes its name when it is whole: until then there is what was there before. It is
/// for its owner alone; under sudo it belongs to the user who called that.
#[derive(Debug)]
pub struct NewFile {
    dir: Dir,
    temporary: OsString,
    name: OsString,
    named: bool,
}

impl NewFile {
    /// Begins the file that is to be `path`. Returns it and where to write.
    ///
    /// # Errors
    /// Those of open(2) and chown(2).
    pub fn begin(path: &Path) -> io::Result<(Self, File)> {
        let name = path.file_name().ok_or(ErrorKind::IsADirectory)?;
        let parent = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let dir = Dir::open(parent)?.with_access(Access::new(Share::Private));
        for _ in 0..TRIES {
            let mut temporary = OsString::from(".");
            temporary.push(name);
            temporary.push(format!(
                ".{:016x}.tmp",
                RandomState::new().build_hasher().finish()
            ));
            match dir.create_file(&temporary) {
                Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
                result => {
                    let file = result?;
                    let new = Self {
                        dir,
                        temporary,
                        name: name.to_owned(),
                        named: false,
                    };
                    return Ok((new, file));
                }
            }
        }
        Err(ErrorKind::AlreadyExists.into())
    }

    /// Gives the file its name; a link of that name is replaced and not followed.
    ///
    /// # Errors
    /// Those of rename(2).
    pub fn finish(mut self) -> io::Result<()> {
        self.dir
            .rename_into(&self.temporary, &self.dir, &self.name)?;
        self.named = true;
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.named {
            // The error that is told is the one that made it stay unfinished.
            let _ = self.dir.remove(&self.temporary);
        }
    }
}

/// Moves a session that nobody writes, to another file system too. `to` must not exist.
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
    use rustix::fs::FileType;

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

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_file_takes_its_name_at_the_end_and_follows_no_link() {
        let root = tempfile::tempdir().unwrap();
        let victim = root.path().join("victim");
        std::fs::write(&victim, "kept").unwrap();
        let path = root.path().join("out");
        symlink(&victim, &path).unwrap();
        let (unfinished, mut file) = NewFile::begin(&path).unwrap();
        file.write_all(b"half").unwrap();
        drop(unfinished);
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 2);
        let (new, mut file) = NewFile::begin(&path).unwrap();
        file.write_all(b"whole").unwrap();
        new.finish().unwrap();
        assert_eq!(std::fs::read(&victim).unwrap(), b"kept");
        assert_eq!(std::fs::read(&path).unwrap(), b"whole");
        let mode = path.symlink_metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o600);
        assert!(NewFile::begin(Path::new("/")).is_err());
    }
}
