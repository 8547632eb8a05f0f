//! Locks of the server.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks even when a thread panicked with the lock held: what these locks protect is
/// whole at every step.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
