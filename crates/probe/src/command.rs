//! The command that is recorded: started so that recording begins with its
//! first instruction, and otherwise left alone.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, ExitStatus};

use crate::error::SpawnError;
use crate::terminal;
use crate::user::User;

/// Libraries that the dynamic linker loads first (ld.so(8)).
const PRELOAD: &str = "LD_PRELOAD";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandExit(ExitStatus);

impl CommandExit {
    /// Exit status as a shell gives it: the code, or 128 and the signal.
    pub fn status(self) -> i32 {
        self.0
            .code()
            .unwrap_or_else(|| 128 + self.0.signal().unwrap_or(0))
    }

    /// The signal that ended it, if one did.
    pub fn signal(self) -> Option<i32> {
        self.0.signal()
    }
}

/// State that the command must find as it would without fathom.
#[derive(Clone, Debug)]
pub struct Conditions {
    /// Run it as another user, in that user's environment.
    pub user: Option<User>,
    /// In fathom's environment all the same.
    pub preserve_environment: bool,
    /// A library to load before all others, except libraries that the environment names.
    pub preload: Option<PathBuf>,
    pub mask: libc::sigset_t,
    /// Its priority.
    pub nice: i32,
    /// How readily the kernel ends it when memory runs out ([`crate::system::oom_score`]).
    pub oom_score: Option<i32>,
}

pub struct Command {
    child: Child,
    pidfd: OwnedFd,
}

impl Command {
    /// Starts `argv`. `prepare` is called with a descriptor of the process
    /// after it exists and before it executes the program.
    pub fn spawn(
        argv: &[OsString],
        conditions: Conditions,
        prepare: impl FnOnce(BorrowedFd<'_>) -> Result<(), crate::ProbeError>,
    ) -> Result<Self, SpawnError> {
        let Some((program, arguments)) = argv.split_first() else {
            return Err(SpawnError::NotFound(String::new()));
        };
        let name = program.to_string_lossy().into_owned();
        let system = |source| SpawnError::System {
            program: name.clone(),
            source,
        };
        let (mut pid_reader, pid_writer) = io::pipe().map_err(system)?;
        let (go_reader, mut go_writer) = io::pipe().map_err(system)?;
        let Conditions {
            user,
            preserve_environment,
            preload,
            mask,
            nice,
            oom_score,
        } = conditions;
        // Made before the fork: nothing is allocated behind it.
        let oom_score = oom_score.map(|score| score.to_string());
        let mut command = std::process::Command::new(program);
        command.args(arguments);
        let filter = terminal::filter();
        if let Some(user) = &user {
            // Said here what it is: behind the fork every error looks like the program's.
            terminal::try_out(&filter).map_err(SpawnError::NoFilter)?;
            if !preserve_environment {
                command
                    .env_clear()
                    .envs(user.environment(std::env::vars_os()));
            }
        }
        if let Some(preload) = preload {
            // Behind the user's own: calls that the user's library makes are recorded, too.
            let given = std::env::var_os(PRELOAD)
                .filter(|given| !given.is_empty() && (user.is_none() || preserve_environment));
            let mut list = given.map_or_else(OsString::new, |mut given| {
                given.push(":");
                given
            });
            list.push(preload);
            command.env(PRELOAD, list);
        }
        // SAFETY: between fork and exec only calls that are safe there: reads
        // and writes on pipes and of a file in /proc, ids, a filter that was made before, signal
        // mask. initgroups is not on POSIX's
        // list, but no other thread of the parent holds its locks: users are
        // looked up before.
        unsafe {
            command.pre_exec(move || {
                let pid = std::process::id().to_ne_bytes();
                (&pid_writer).write_all(&pid)?;
                let mut go = [0];
                (&go_reader).read_exact(&mut go)?;
                check(libc::setpriority(libc::PRIO_PROCESS, 0, nice))?;
                if let Some(score) = &oom_score {
                    set_oom_score(score.as_bytes());
                }
                if let Some(user) = &user {
                    // While it is root: afterwards it could not without losing setuid programs.
                    terminal::install(&filter)?;
                    check(libc::initgroups(user.name.as_ptr(), user.gid))?;
                    check(libc::setgid(user.gid))?;
                    check(libc::setuid(user.uid))?;
                }
                check(libc::sigprocmask(
                    libc::SIG_SETMASK,
                    &mask,
                    std::ptr::null_mut(),
                ))
            });
        }
        // spawn() returns when the program is executed, and the program waits for this thread's
        // work. So spawn() runs in a separate thread.
        let spawning = std::thread::spawn(move || command.spawn());
        let mut pid = [0; 4];
        let prepared = match pid_reader.read_exact(&mut pid) {
            Ok(()) => open_pidfd(u32::from_ne_bytes(pid))
                .map_err(system)
                .and_then(|pidfd| Ok(prepare(pidfd.as_fd()).map(|()| pidfd)?)),
            Err(source) => Err(system(source)),
        };
        if prepared.is_ok() {
            go_writer.write_all(&[1]).ok();
        }
        // Without a word the child gives up.
        drop(go_writer);
        let spawned = spawning
            .join()
            .unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
        let pidfd = prepared?;
        match spawned {
            Ok(child) => Ok(Self { child, pidfd }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(SpawnError::NotFound(name))
            }
            Err(source) if source.raw_os_error().is_some() => Err(SpawnError::NotExecutable {
                program: name,
                source,
            }),
            Err(source) => Err(SpawnError::System {
                program: name,
                source,
            }),
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A descriptor that becomes readable when the command has ended.
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// How it ended; `None` while it runs.
    pub fn try_wait(&mut self) -> io::Result<Option<CommandExit>> {
        Ok(self.child.try_wait()?.map(CommandExit))
    }

    /// Waits until it has ended.
    pub fn wait(&mut self) -> io::Result<CommandExit> {
        Ok(CommandExit(self.child.wait()?))
    }

    pub fn signal(&self, signal: i32) {
        // SAFETY: the process is ours and not yet waited for, so the id is its
        // own; a failure means that it has ended.
        unsafe { libc::kill(self.child.id() as i32, signal) };
    }
}

/// Writes this process's `oom_score_adj`, as it was before fathom changed it. Where /proc is not
/// there it has not been changed either.
fn set_oom_score(score: &[u8]) {
    // SAFETY: open gets a terminated string, write a slice with its length, and the descriptor
    // that is closed is the one that was opened here.
    unsafe {
        let path = c"/proc/self/oom_score_adj".as_ptr();
        let file = libc::open(path, libc::O_WRONLY | libc::O_CLOEXEC);
        if file >= 0 {
            libc::write(file, score.as_ptr().cast(), score.len());
            libc::close(file);
        }
    }
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

fn open_pidfd(pid: u32) -> io::Result<OwnedFd> {
    // SAFETY: pidfd_open takes two numbers and returns a new descriptor or -1.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a new descriptor without another owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}
