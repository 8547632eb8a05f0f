//! Threads that work behind the server's others.

/// How much nicer they are.
const NICER: i32 = 5;

/// Makes the calling thread yield to the threads that answer requests.
pub(crate) fn be_nicer() {
    // Of this thread alone; without the right to it stays as it is.
    if let Ok(nice) = rustix::process::getpriority_process(None) {
        rustix::process::setpriority_process(None, nice + NICER).ok();
    }
}
