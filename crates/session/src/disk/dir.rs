//! Directories by descriptor.
//!
//! Another user may own the directory above a session, or have created the entry with its name, so
//! the target of a path can change between two checks. Therefore a session that is written is
//! opened once and checked through its descriptor, and everything in it is reached from there
//! without following symbolic links. Files are created for their owner alone (mode 0600) and never
//! exist with wider permissions; only regular files are opened, so no open waits for a pipe.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, Stat, fstat, linkat, mkdirat, openat, renameat, statat,
    unlinkat,
};
use rustix::io::Errno;

use crate::disk::owner::{Access, Share, is_ours};
use crate::error::SessionError;

/// For every open: nothing is inherited, no terminal is taken, no pipe is waited for.
const SAFE: OFlags = OFlags::CLOEXEC
    .union(OFlags::NOCTTY)
    .union(OFlags::NONBLOCK);

/// An open directory: a session's, or one inside it.
#[derive(Clone, Debug)]
pub(crate) struct Dir {
    fd: Arc<OwnedFd>,
    /// Where it was opened, for messages.
    path: PathBuf,
    access: Access,
}

impl Dir {
    /// Opens a directory for reading, with any owner.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Self::at(CWD, path, path, OFlags::empty())
    }

    /// Opens a directory to write in it: one that is ours, and that no other user can write.
    ///
    /// # Errors
    /// [`SessionError::Foreign`] when it is not, or a symbolic link leads to it;
    /// [`SessionError::Io`].
    pub(crate) fn open_own(path: &Path) -> Result<Self, SessionError> {
        // A slash at the end would have a link followed.
        let plain: PathBuf = path.components().collect();
        let dir = Self::at(CWD, &plain, path, OFlags::NOFOLLOW).map_err(refused(path))?;
        dir.check_own()?;
        Ok(dir)
    }

    /// The directory `path`, created if it does not exist, and whether it was created. New entries
    /// in it belong to the users of `access`.
    pub(crate) fn create(path: &Path, access: Access) -> Result<(Self, bool), SessionError> {
        let plain: PathBuf = path.components().collect();
        let made = match mkdirat(CWD, &plain, Mode::RWXU) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(e) => return Err(SessionError::io("create", path)(e.into())),
        };
        Ok((Self::open_own(path)?.with_access(access), made))
    }

    /// The same directory; what is made in it is for others than the directory itself is.
    pub(crate) fn with_access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    fn at(parent: impl AsFd, name: &Path, path: &Path, more: OFlags) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | SAFE | more;
        let fd = openat(parent, name, flags, Mode::empty())?;
        let access = Access::of(&fstat(&fd)?);
        Ok(Self {
            fd: Arc::new(fd),
            path: path.to_owned(),
            access,
        })
    }

    fn check_own(&self) -> Result<(), SessionError> {
        let stat = self
            .stat_self()
            .map_err(SessionError::io("read", &self.path))?;
        if !is_ours(stat.st_uid) {
            return Err(SessionError::belongs_to(&self.path, stat.st_uid));
        }
        if stat.st_mode & 0o022 != 0 {
            return Err(SessionError::Foreign {
                path: self.path.clone(),
                reason:
                    "other users can write in it; take that right away from them with `chmod -R \
                         go-w`, or choose another directory"
                        .to_owned(),
            });
        }
        Ok(())
    }

    /// Gives the directory itself the owner and mode that what is made in it has.
    pub(crate) fn claim(&self) -> io::Result<()> {
        self.access.give_existing(&*self.fd)
    }

    /// Owner and mode of what is made in it.
    pub(crate) fn access(&self) -> Access {
        self.access
    }

    /// Where it was opened.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn stat_self(&self) -> io::Result<Stat> {
        Ok(fstat(&*self.fd)?)
    }

    /// The type of `name` itself, without following links; `None` if it does not exist.
    pub(crate) fn kind(&self, name: impl AsRef<OsStr>) -> io::Result<Option<FileType>> {
        Ok(self
            .stat(name)?
            .map(|stat| FileType::from_raw_mode(stat.st_mode)))
    }

    /// The same with all else that is known of it.
    pub(crate) fn stat(&self, name: impl AsRef<OsStr>) -> io::Result<Option<Stat>> {
        match statat(&*self.fd, name.as_ref(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    pub(crate) fn names(&self) -> io::Result<Vec<OsString>> {
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&*self.fd)? {
            let name = entry?.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                names.push(OsString::from_vec(name));
            }
        }
        Ok(names)
    }

    /// A directory in it, to be read.
    pub(crate) fn dir(&self, name: impl AsRef<OsStr>) -> io::Result<Self> {
        let name = Path::new(name.as_ref());
        Self::at(&*self.fd, name, &self.path.join(name), OFlags::NOFOLLOW)
    }

    /// A directory in it, to be written in.
    pub(crate) fn own_dir(&self, name: impl AsRef<OsStr>) -> Result<Self, SessionError> {
        let name = Path::new(name.as_ref());
        let path = self.path.join(name);
        let dir = Self::at(&*self.fd, name, &path, OFlags::NOFOLLOW);
        let dir = dir.map_err(refused(&path))?;
        dir.check_own()?;
        Ok(dir.with_access(self.access))
    }

    /// A directory in it, to be written in; made if it is not there.
    pub(crate) fn make_dir(&self, name: impl AsRef<OsStr>) -> Result<Self, SessionError> {
        let name = name.as_ref();
        let path = self.path.join(name);
        match mkdirat(&*self.fd, name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(e) => return Err(SessionError::io("create", &path)(e.into())),
        }
        let dir = self.own_dir(name)?;
        dir.claim().map_err(SessionError::io("create", &path))?;
        Ok(dir)
    }

    /// A regular file in it, to be read.
    pub(crate) fn open_file(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        regular(&*self.fd, name.as_ref().as_ref(), OFlags::RDONLY)
    }

    /// A regular file in it, to be written.
    pub(crate) fn open_to_write(&self, name: &str) -> io::Result<File> {
        regular(&*self.fd, name.as_ref(), OFlags::RDWR)
    }

    /// A new file; there must be none under the name.
    pub(crate) fn create_file(&self, name: impl AsRef<OsStr>) -> io::Result<File> {
        new_file(&*self.fd, name.as_ref().as_ref(), &self.access)
    }

    /// A new file in the place of what a recorder that was killed left there.
    pub(crate) fn create_anew(&self, name: &str) -> io::Result<File> {
        match self.create_file(name) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {
                self.remove(name)?;
                self.create_file(name)
            }
            result => result,
        }
    }

    /// Gives the file `from` the name `to`, in place of what had it.
    pub(crate) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.rename_into(from, self, to)
    }

    /// The same into another directory.
    pub(crate) fn rename_into(
        &self,
        from: impl AsRef<OsStr>,
        other: &Dir,
        to: impl AsRef<OsStr>,
    ) -> io::Result<()> {
        Ok(renameat(&*self.fd, from.as_ref(), &*other.fd, to.as_ref())?)
    }

    /// Gives the file `name` the same name in `other`, too.
    pub(crate) fn link_into(&self, name: &str, other: &Dir) -> io::Result<()> {
        Ok(linkat(&*self.fd, name, &*other.fd, name, AtFlags::empty())?)
    }

    /// Removes a file.
    pub(crate) fn remove(&self, name: impl AsRef<OsStr>) -> io::Result<()> {
        Ok(unlinkat(&*self.fd, name.as_ref(), AtFlags::empty())?)
    }

    /// Removes a file if it is there.
    pub(crate) fn remove_if_there(&self, name: &str) -> io::Result<()> {
        match self.remove(name) {
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
            result => result,
        }
    }

    /// Removes a directory if it is empty.
    pub(crate) fn remove_dir(&self, name: &str) -> io::Result<()> {
        Ok(unlinkat(&*self.fd, name, AtFlags::REMOVEDIR)?)
    }

    /// Makes the names in it safe from a power failure.
    pub(crate) fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(&*self.fd)?)
    }
}

impl AsFd for Dir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Opens a regular file to read it. Nothing else is opened: a symbolic link is not followed, a
/// pipe not waited for.
///
/// # Errors
/// The errors of open(2); [`ErrorKind::InvalidInput`] if it is not a regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    regular(CWD, path, OFlags::RDONLY)
}

/// Makes a file that is only for its owner from the first moment, or for those whom `share`
/// names, too. Under sudo it belongs to the user who called that.
///
/// # Errors
/// The errors of open(2), including [`ErrorKind::AlreadyExists`], and of chown(2).
pub fn create_private(path: &Path, share: Share) -> io::Result<File> {
    new_file(CWD, path, &Access::new(share))
}

fn new_file(parent: impl AsFd, name: &Path, access: &Access) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | SAFE;
    let fd = openat(parent, name, flags, Mode::RUSR | Mode::WUSR)?;
    access.give(&fd, false)?;
    Ok(fd.into())
}

fn regular(parent: impl AsFd, name: &Path, flags: OFlags) -> io::Result<File> {
    let wrong = || io::Error::new(ErrorKind::InvalidInput, "it is no regular file");
    let fd = match openat(parent, name, flags | OFlags::NOFOLLOW | SAFE, Mode::empty()) {
        Ok(fd) => fd,
        // A symbolic link; a socket, or a pipe without a reader.
        Err(Errno::LOOP | Errno::NXIO | Errno::ISDIR) => return Err(wrong()),
        Err(e) => return Err(e.into()),
    };
    match FileType::from_raw_mode(fstat(&fd)?.st_mode) {
        FileType::RegularFile => Ok(fd.into()),
        _ => Err(wrong()),
    }
}

/// Why a directory that is to be written was not opened.
fn refused(path: &Path) -> impl FnOnce(io::Error) -> SessionError {
    let path = path.to_owned();
    move |e| {
        let is_link = path
            .components()
            .collect::<PathBuf>()
            .symlink_metadata()
            .is_ok_and(|m| m.is_symlink());
        if is_link {
            let reason = "it is a symbolic link, which is not followed; name the directory that \
                          it leads to"
                .to_owned();
            return SessionError::Foreign { path, reason };
        }
        SessionError::io("open", &path)(e)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn private() -> Access {
        Access::new(Share::Private)
    }

    #[test]
    fn links_and_directories_of_others_are_refused() {
        let root = tempfile::tempdir().unwrap();
        let real = root.path().join("real");
        std::fs::create_dir(&real).unwrap();
        let link = root.path().join("link");
        symlink(&real, &link).unwrap();
        for name in ["link", "link/", "link/."] {
            let refused = Dir::open_own(&root.path().join(name));
            assert!(
                matches!(refused, Err(SessionError::Foreign { .. })),
                "{name}: {refused:?}"
            );
            let refused = Dir::create(&root.path().join(name), private());
            assert!(
                matches!(refused, Err(SessionError::Foreign { .. })),
                "{name}: {refused:?}"
            );
        }
        assert!(Dir::open(&link).is_ok());
        let dir = Dir::open_own(&real).unwrap();
        for mode in [0o720, 0o702, 0o1777] {
            std::fs::set_permissions(&real, std::fs::Permissions::from_mode(mode)).unwrap();
            let refused = Dir::open_own(&real);
            assert!(
                matches!(refused, Err(SessionError::Foreign { .. })),
                "{mode:o}"
            );
        }
        symlink("/etc", real.join("inside")).unwrap();
        assert!(dir.dir("inside").is_err());
        assert!(dir.own_dir("inside").is_err());
        assert!(dir.make_dir("inside").is_err());
    }

    #[test]
    fn only_regular_files_are_opened() {
        let root = tempfile::tempdir().unwrap();
        let dir = Dir::open_own(root.path()).unwrap();
        symlink("/etc/passwd", root.path().join("link")).unwrap();
        symlink("/nowhere/at-all", root.path().join("dangling")).unwrap();
        std::fs::create_dir(root.path().join("folder")).unwrap();
        rustix::fs::mknodat(&dir, "pipe", FileType::Fifo, Mode::RWXU, 0).unwrap();
        for name in ["link", "dangling", "folder", "pipe"] {
            let refused = dir.open_file(name).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::InvalidInput, "{name}: {refused}");
            assert!(open_regular(&root.path().join(name)).is_err(), "{name}");
            let exists = dir.create_file(name).unwrap_err();
            assert_eq!(exists.kind(), ErrorKind::AlreadyExists, "{name}: {exists}");
        }
        assert!(dir.open_to_write("pipe").is_err());
        // The entry itself is replaced; the target of a link stays.
        drop(dir.create_anew("link").unwrap());
        assert!(std::fs::read("/etc/passwd").unwrap().len() > 1);
        assert_eq!(dir.kind("link").unwrap(), Some(FileType::RegularFile));
    }

    #[test]
    fn what_is_made_is_for_those_it_is_for() {
        let root = tempfile::tempdir().unwrap();
        let mode = |path: &Path| path.symlink_metadata().unwrap().permissions().mode() & 0o7777;
        for (share, dir_mode, file_mode) in
            [(Share::Private, 0o700, 0o600), (Share::All, 0o755, 0o644)]
        {
            let path = root.path().join(format!("{dir_mode:o}"));
            let (dir, made) = Dir::create(&path, Access::new(share)).unwrap();
            assert!(made);
            dir.claim().unwrap();
            drop(dir.create_file("file").unwrap());
            dir.make_dir("folder").unwrap();
            assert_eq!(mode(&path), dir_mode);
            assert_eq!(mode(&path.join("file")), file_mode);
            assert_eq!(mode(&path.join("folder")), dir_mode);
            // Later opens depend on its type.
            let again = Dir::open_own(&path).unwrap();
            drop(again.create_file("later").unwrap());
            assert_eq!(mode(&path.join("later")), file_mode);
        }
    }
}
