//! The lock that a recorder holds on its session.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::Path;
use std::time::Duration;

use crate::error::SessionError;
use crate::layout::LOCK_FILE;

/// How often, and how long, a recorder tries: readers hold the lock for an
/// instant when they look whether a session is live.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(10);

/// Held by a recorder; the kernel releases it when the recorder ends, however
/// it ends.
#[derive(Debug)]
pub(crate) struct RecorderLock {
    _file: File,
}

impl RecorderLock {
    /// Takes the lock of the session in `dir`.
    pub(crate) fn acquire(dir: &Path) -> Result<Self, SessionError> {
        let path = dir.join(LOCK_FILE);
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(SessionError::io("create", &path))?;
        for _ in 0..TRIES {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
                Err(TryLockError::Error(e)) => return Err(SessionError::io("lock", &path)(e)),
            }
        }
        Err(SessionError::Busy(dir.to_owned()))
    }
}

/// Whether a recorder holds the lock of the session in `dir` now.
pub(crate) fn is_held(dir: &Path) -> bool {
    let Ok(file) = File::open(dir.join(LOCK_FILE)) else {
        return false;
    };
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}
