//! Files under names that the user chose: put there when they are whole, and never in place of
//! what a link leads to.

use std::ffi::OsString;
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, ErrorKind};
use std::path::Path;

use crate::disk::dir::Dir;
use crate::disk::owner::{Access, Share};

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
    /// The errors of open(2) and chown(2).
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
    /// The errors of rename(2).
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
            // The reported error is the one that left it unfinished.
            let _ = self.dir.remove(&self.temporary);
        }
    }
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
