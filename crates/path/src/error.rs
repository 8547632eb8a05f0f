//! Errors.

use fathom_query::QueryError;

/// Why there is no path.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// The session cannot be read.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// No request has the id.
    #[error(
        "no request {0} in this session; list requests with: FROM syscalls ORDER BY dur_ns DESC"
    )]
    NoRequest(i64),
    /// The request is an operation, during which its thread does other work.
    #[error(
        "request {0} is an operation of io_uring or AIO: its thread does other work meanwhile; \
         explain it with `fathom why --request {0}`"
    )]
    Asynchronous(i64),
    /// The request has no duration.
    #[error("the duration of request {0} is not known: nothing can be added up to it")]
    NoDuration(i64),
    /// No row names the thread.
    #[error("no thread {0} in this session; list its threads with: FROM by_thread")]
    NoThread(i64),
    /// The session has no waits.
    #[error(
        "the session does not contain waits, so running and waiting cannot be distinguished; \
         record with --layers sched"
    )]
    NoWaits,
    /// The window is outside of the thread's recorded time.
    #[error("the window is outside of the recording; the recording is {0} long")]
    Outside(String),
    /// More rows than memory is meant for.
    #[error(
        "the window contains more than {0} waits on the way; choose a shorter one with --from and \
         --until, in SQL with from_ns and until_ns"
    )]
    TooLong(usize),
}
