//! Directories of files under names that the user chose: put there when they are whole.

use std::ffi::OsString;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::path::Path;

use rustix::fs::{Mode, RenameFlags, mkdirat, renameat_with};
use rustix::io::Errno;

use crate::disk::dir::Dir;
use crate::disk::owner::{Access, Share};

/// How many names are tried.
const TRIES: u32 = 100;

/// A directory that takes its name when it is whole. Until then it has a temporary name. It
/// and its files are for their owner alone; under sudo they belong to the user who called that.
#[derive(Debug)]
pub struct NewDir {
    parent: Dir,
    dir: Dir,
    temporary: OsString,
    name: OsString,
    files: Vec<String>,
    named: bool,
}

impl NewDir {
    /// Begins the directory that is to be `path`.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`] if there is something at `path`; the errors of mkdir(2), open(2),
    /// and chown(2).
    pub fn begin(path: &Path) -> io::Result<Self> {
        let name = path.file_name().ok_or(ErrorKind::AlreadyExists)?;
        let above = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let parent = Dir::open(above)?.with_access(Access::new(Share::Private));
        if parent.kind(name)?.is_some() {
            return Err(ErrorKind::AlreadyExists.into());
        }
        for _ in 0..TRIES {
            let mut temporary = OsString::from(".");
            temporary.push(name);
            temporary.push(format!(
                ".{:016x}.tmp",
                RandomState::new().build_hasher().finish()
            ));
            match mkdirat(&parent, &temporary, Mode::RWXU) {
                Err(Errno::EXIST) => continue,
                made => made?,
            }
            // Nothing that another user may have put there since is written to.
            let dir = parent.own_dir(&temporary).map_err(io::Error::other)?;
            dir.claim()?;
            return Ok(Self {
                parent,
                dir,
                temporary,
                name: name.to_owned(),
                files: Vec::new(),
                named: false,
            });
        }
        Err(ErrorKind::AlreadyExists.into())
    }

    /// Adds bytes to the end of file `name`, which is made by the first ones.
    ///
    /// # Errors
    /// The errors of open(2), chown(2), and write(2).
    pub fn append(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut file = match self.files.iter().any(|known| known == name) {
            true => self.dir.open_to_write(name)?,
            false => {
                self.files.push(name.to_owned());
                self.dir.create_file(name)?
            }
        };
        file.seek(SeekFrom::End(0))?;
        file.write_all(bytes)
    }

    /// Gives the directory its name.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`] if something has it by now; the errors of rename(2).
    pub fn finish(mut self) -> io::Result<()> {
        let (from, to) = (&self.temporary, &self.name);
        match renameat_with(&self.parent, from, &self.parent, to, RenameFlags::NOREPLACE) {
            // A file system without this flag: rename replaces at most an empty directory.
            Err(Errno::INVAL) => self.parent.rename_into(from, &self.parent, to)?,
            renamed => renamed?,
        }
        self.named = true;
        Ok(())
    }
}

impl Drop for NewDir {
    fn drop(&mut self) {
        if self.named {
            return;
        }
        // The reported error is the one that left it unfinished.
        for name in &self.files {
            let _ = self.dir.remove(name);
        }
        if let Some(name) = self.temporary.to_str() {
            let _ = self.parent.remove_dir(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_directory_takes_its_name_at_the_end_and_replaces_nothing() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("trace");
        let mut unfinished = NewDir::begin(&path).unwrap();
        unfinished.append("metadata", b"half").unwrap();
        assert!(!path.exists());
        drop(unfinished);
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 0);

        let mut new = NewDir::begin(&path).unwrap();
        let other = NewDir::begin(&path).unwrap();
        new.append("metadata", b"wh").unwrap();
        new.append("stream", b"1").unwrap();
        new.append("metadata", b"ole").unwrap();
        new.finish().unwrap();
        assert_eq!(std::fs::read(path.join("metadata")).unwrap(), b"whole");
        for (path, wanted) in [(path.clone(), 0o700), (path.join("stream"), 0o600)] {
            let mode = path.symlink_metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o7777, wanted);
        }
        let late = other.finish().unwrap_err();
        assert_eq!(late.kind(), ErrorKind::AlreadyExists);

        let link = root.path().join("link");
        symlink(root.path().join("nowhere"), &link).unwrap();
        for taken in [&path, &link, Path::new("/")] {
            let refused = NewDir::begin(taken).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::AlreadyExists, "{taken:?}");
        }
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 2);
    }
}
