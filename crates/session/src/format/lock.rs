//! The lock that a recorder holds on its session.

use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use crate::disk::dir::Dir;
use crate::disk::owner::{Access, is_ours};
use crate::error::SessionError;
use crate::format::layout::LOCK_FILE;

/// How often, and how long, a recorder tries: readers hold the lock for an
/// instant when they look whether a session is live, and so does a process that this one
/// starts until it runs its program.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(10);

/// Held by a recorder; the kernel releases it when the recorder ends, however
/// it ends.
#[derive(Debug)]
pub(crate) struct RecorderLock {
    file: File,
}

impl RecorderLock {
    /// Takes the lock of the session in `dir`. An entry that another user has put in its place is
    /// refused.
    pub(crate) fn acquire(dir: &Dir) -> Result<Self, SessionError> {
        let path = dir.path().join(LOCK_FILE);
        let file = match dir.create_file(LOCK_FILE) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists => dir.open_to_write(LOCK_FILE),
            result => result,
        };
        let file = file.map_err(SessionError::io("create", &path))?;
        let owner = file.metadata().map_err(SessionError::io("read", &path))?;
        if !is_ours(owner.uid()) {
            return Err(SessionError::belongs_to(&path, owner.uid()));
        }
        for _ in 0..TRIES {
            match file.try_lock() {
                Ok(()) => return Ok(Self { file }),
                Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
                Err(TryLockError::Error(e)) => return Err(SessionError::io("lock", &path)(e)),
            }
        }
        Err(SessionError::Busy(dir.path().to_owned()))
    }
}

impl RecorderLock {
    /// Gives the file the mode and owner that others in the session have: it may be older.
    pub(crate) fn claim(&self, access: Access) -> io::Result<()> {
        // One that has another name elsewhere may be another file, of which this is a link.
        match self.file.metadata()?.nlink() {
            1 => access.give_existing_file(&self.file),
            _ => Ok(()),
        }
    }
}

/// Held by the program that keeps its sessions in a directory: no other one does so meanwhile.
#[derive(Debug)]
pub struct FolderLock {
    _lock: RecorderLock,
}

impl FolderLock {
    /// Takes the lock of the directory.
    ///
    /// # Errors
    /// [`SessionError::Busy`] if another program has it, [`SessionError::Foreign`] if the directory is
    /// another user's, and [`SessionError::Io`].
    pub fn acquire(dir: &Path) -> Result<Self, SessionError> {
        let lock = RecorderLock::acquire(&Dir::open_own(dir)?)?;
        Ok(Self { _lock: lock })
    }
}

/// Whether a recorder holds the lock of the session in `dir` now.
pub(crate) fn is_held(dir: &Path) -> bool {
    Dir::open(dir).is_ok_and(|dir| is_held_in(&dir))
}

/// The same of an open directory.
pub(crate) fn is_held_in(dir: &Dir) -> bool {
    let held = |file: File| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
    dir.open_file(LOCK_FILE).is_ok_and(held)
}
