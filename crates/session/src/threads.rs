//! Threads of a recorder, and their locks.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, JoinHandle};

use rustix::thread::{Pid, gettid};

use crate::error::SessionError;

/// Locks even when a thread panicked with the lock held: what the locks of
/// this crate protect is whole at every step.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a thread for the session in `dir`.
pub(crate) fn spawn<T: Send + 'static>(
    name: &str,
    dir: &Path,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, SessionError> {
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .map_err(SessionError::io("start a thread for", dir))
}

/// The same, with the kernel's id of the thread.
pub(crate) fn spawn_known<T: Send + 'static>(
    name: &str,
    dir: &Path,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<(JoinHandle<T>, Option<Pid>), SessionError> {
    let (to, id) = mpsc::sync_channel(1);
    let thread = spawn(name, dir, move || {
        let _ = to.send(gettid());
        work()
    })?;
    Ok((thread, id.recv().ok()))
}
