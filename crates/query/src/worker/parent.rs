//! The parent's end of a worker.

use std::ffi::OsString;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::frames::{self, ASK, BYTES, DONE, FAILED, READY};
use super::{Ask, Failure, Outcome, Statement};
use crate::{Limits, QueryError, UserView};

/// How long after its time limit a query may take to give up by itself: then the worker is
/// killed.
const GRACE: Duration = Duration::from_millis(250);

/// The program whose worker is started.
#[derive(Clone, Debug)]
pub struct Program {
    path: PathBuf,
    arguments: Vec<OsString>,
}

impl Program {
    /// This program itself, which must become a worker with [`super::ARGUMENT`].
    pub fn itself() -> Self {
        Self::at("/proc/self/exe".into())
    }

    /// Another program, for which the same holds.
    pub fn at(path: PathBuf) -> Self {
        Self {
            path,
            arguments: vec![super::ARGUMENT.into()],
        }
    }
}

/// A process that runs SQL over one session, one statement after the other. It is killed when it
/// is dropped.
pub struct Worker {
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
    killer: Killer,
    limits: Limits,
    payload: Vec<u8>,
    /// Whether it can take another statement.
    usable: bool,
    /// Whether it runs one.
    busy: bool,
}

/// Kills a worker from another thread.
#[derive(Clone)]
pub struct Killer(Arc<Handle>);

struct Handle {
    process: OwnedFd,
    asked: AtomicBool,
}

impl Killer {
    /// Ends the worker at once: what it does fails with [`QueryError::Interrupted`].
    pub fn kill(&self) {
        self.0.asked.store(true, Ordering::Relaxed);
        // It fails where the worker has ended already.
        pidfd_send_signal(&self.0.process, Signal::KILL).ok();
    }
}

impl Worker {
    /// Starts a worker. Its queries may use `limits`.
    ///
    /// # Errors
    /// [`QueryError::Worker`] when the process cannot be started.
    pub fn start(program: &Program, limits: Limits) -> Result<Self, QueryError> {
        let failed = |e: std::io::Error| QueryError::Worker(format!("it cannot be started: {e}"));
        let mut child = Command::new(&program.path)
            .args(&program.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Last messages of failing libraries are not for users.
            .stderr(Stdio::null())
            // Signals of the terminal are for the parent, which decides what becomes of the query.
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let process = pidfd_open(Pid::from_child(&child), PidfdFlags::empty());
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (Ok(process), Some(input), Some(output)) = (process, input, output) else {
            child.kill().ok();
            child.wait().ok();
            return Err(QueryError::Worker(
                "it cannot be supervised: the kernel returned no descriptor for it".into(),
            ));
        };
        Ok(Self {
            child,
            input,
            output,
            killer: Killer(Arc::new(Handle {
                process,
                asked: AtomicBool::new(false),
            })),
            limits,
            payload: Vec::new(),
            usable: false,
            busy: false,
        })
    }

    /// A handle that kills it.
    pub fn killer(&self) -> Killer {
        self.killer.clone()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it can take another statement: not after one that it was killed for, or that
    /// used up its memory, and not when something else has ended it.
    pub fn is_usable(&mut self) -> bool {
        self.usable && self.child.try_wait().is_ok_and(|ended| ended.is_none())
    }

    /// Opens the session or the set of sessions at `path`, the only one that it will ever see, and
    /// adds the user's `views`.
    ///
    /// # Errors
    /// The errors of [`crate::Db::open`]; [`QueryError::View`] if a view is refused or wrong;
    /// [`QueryError::Worker`] if the session cannot be opened at all, or the process ends.
    pub fn open(&mut self, path: &Path, views: &[UserView]) -> Result<(), QueryError> {
        let bytes = |path: &Path| path.as_os_str().as_bytes().to_vec();
        let dirs = fathom_session::dirs_of(path);
        let dirs = dirs.map_err(|e| QueryError::Worker(e.to_string()))?;
        let ask = Ask::Open {
            path: bytes(path),
            dirs: dirs.iter().map(|dir| bytes(dir)).collect(),
            memory_bytes: self.limits.memory_bytes,
            threads: self.limits.threads,
            time: self.limits.time,
            views: views.to_vec(),
        };
        self.ask(&ask)?;
        match self.answer(None)? {
            READY => {
                self.usable = true;
                Ok(())
            }
            FAILED => Err(self.failure()),
            _ => Err(self.nonsense()),
        }
    }

    /// Runs a statement, and gives `out` the bytes of its result as they come.
    ///
    /// # Errors
    /// The errors of [`crate::Db::query`] and [`crate::output::write`], [`QueryError::Interrupted`]
    /// after [`Killer::kill`], [`QueryError::Died`] if the process ended for another reason, and
    /// [`QueryError::Output`] with the error of `out`.
    pub fn query(
        &mut self,
        statement: Statement,
        mut out: impl FnMut(&[u8]) -> std::io::Result<()>,
    ) -> Result<Outcome, QueryError> {
        self.usable = false;
        self.busy = true;
        let deadline = self.limits.time.map(|time| Instant::now() + time + GRACE);
        self.ask(&Ask::Query(statement))?;
        loop {
            match self.answer(deadline)? {
                BYTES => {
                    if let Err(error) = out(&self.payload) {
                        self.end();
                        return Err(error.into());
                    }
                }
                DONE => {
                    let outcome = serde_json::from_slice(&self.payload);
                    self.usable = outcome.is_ok();
                    return outcome.map_err(|_| self.nonsense());
                }
                FAILED => {
                    let error = self.failure();
                    // A query that ran out of memory may have left little of it.
                    self.usable = !matches!(error, QueryError::Memory { .. });
                    return Err(error);
                }
                _ => return Err(self.nonsense()),
            }
        }
    }

    fn ask(&mut self, ask: &Ask) -> Result<(), QueryError> {
        let json = serde_json::to_vec(ask).map_err(|e| QueryError::Worker(e.to_string()))?;
        let sent = frames::write(&mut self.input, ASK, &json).and_then(|()| self.input.flush());
        sent.map_err(|_| self.died())
    }

    /// The next frame of the worker; its payload is in `self.payload`.
    fn answer(&mut self, deadline: Option<Instant>) -> Result<u8, QueryError> {
        loop {
            let left = match deadline.map(|d| d.saturating_duration_since(Instant::now())) {
                Some(Duration::ZERO) => {
                    self.end();
                    return Err(QueryError::TimeLimit(self.limits.time.unwrap_or_default()));
                }
                left => left.and_then(|left| Timespec::try_from(left).ok()),
            };
            let mut fds = [PollFd::new(&self.output, PollFlags::IN)];
            match poll(&mut fds, left.as_ref()) {
                Ok(0) | Err(Errno::INTR) => continue,
                Ok(_) => break,
                Err(error) => {
                    self.end();
                    return Err(QueryError::Worker(format!(
                        "it cannot be waited for: {error}"
                    )));
                }
            }
        }
        // The rest of a frame follows at once: the child writes it whole.
        match frames::read(&mut self.output, frames::MOST, &mut self.payload) {
            Ok(Some(tag)) => Ok(tag),
            Ok(None) | Err(_) => Err(self.died()),
        }
    }

    fn failure(&self) -> QueryError {
        match serde_json::from_slice::<Failure>(&self.payload) {
            Ok(failure) => failure.into_error(&self.limits),
            Err(_) => QueryError::Worker("its answer is invalid".into()),
        }
    }

    fn nonsense(&mut self) -> QueryError {
        self.end();
        QueryError::Worker("its answer is invalid".into())
    }

    /// Why there is no more to read from it.
    fn died(&mut self) -> QueryError {
        let status = self.end();
        if self.killer.0.asked.load(Ordering::Relaxed) {
            return QueryError::Interrupted;
        }
        let signal = status.and_then(|status| status.signal());
        match signal {
            // It used up its CPU time before it received the request to stop.
            Some(signal) if signal == Signal::XCPU.as_raw() => {
                QueryError::TimeLimit(self.limits.time.unwrap_or_default())
            }
            Some(signal) if self.busy => QueryError::Died {
                signal,
                limit_mib: self.limits.memory_bytes >> 20,
            },
            Some(signal) => QueryError::Worker(format!("it was ended by signal {signal}")),
            None => QueryError::Worker("it exited".into()),
        }
    }

    /// Kills the worker and waits for its end.
    fn end(&mut self) -> Option<std::process::ExitStatus> {
        self.usable = false;
        if let Ok(Some(status)) = self.child.try_wait() {
            return Some(status);
        }
        // A worker that has closed its end is about to exit, with a status that gives the reason.
        let closed = {
            let mut fds = [PollFd::new(&self.output, PollFlags::empty())];
            let now = Timespec::default();
            poll(&mut fds, Some(&now)).is_ok_and(|n| n > 0)
        };
        if !closed {
            self.child.kill().ok();
        }
        self.child.wait().ok()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.child.kill().ok();
        // Without that it would stay as a zombie.
        self.child.wait().ok();
    }
}
