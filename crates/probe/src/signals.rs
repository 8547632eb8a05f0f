//! Signals as events: blocked in every thread and read from a descriptor.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    pub number: i32,
    /// Sent by the kernel (a key on the terminal), so that the whole process
    /// group has it.
    pub from_terminal: bool,
}

impl Arrived {
    /// Whether it asks to save what was recorded so far: SIGUSR1.
    pub fn asks_to_save(&self) -> bool {
        self.number == libc::SIGUSR1
    }
}

/// Signals that would end fathom; the last asks it to save.
const HANDLED: [i32; 5] = [
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGUSR1,
];

pub struct Signals {
    fd: OwnedFd,
    original: libc::sigset_t,
}

impl Signals {
    /// Blocks the signals in this thread and the threads that it starts.
    pub fn block() -> io::Result<Self> {
        // SAFETY: the sets are initialized by sigemptyset and sigprocmask
        // before they are read; signalfd returns a new descriptor or -1.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            let mut original: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut set);
            for signal in HANDLED {
                libc::sigaddset(&mut set, signal);
            }
            if libc::pthread_sigmask(libc::SIG_BLOCK, &set, &mut original) != 0 {
                return Err(io::Error::last_os_error());
            }
            let fd = libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(Self {
                fd: OwnedFd::from_raw_fd(fd),
                original,
            })
        }
    }

    /// The mask before: the command's.
    pub fn original(&self) -> libc::sigset_t {
        self.original
    }

    pub fn take(&mut self) -> io::Result<Vec<Arrived>> {
        let mut arrived = Vec::new();
        loop {
            // SAFETY: all-zero is a valid value of this plain structure.
            let mut info: libc::signalfd_siginfo = unsafe { std::mem::zeroed() };
            let size = size_of::<libc::signalfd_siginfo>();
            // SAFETY: the descriptor is a signalfd, which fills whole
            // structures of this size.
            let n = unsafe { libc::read(self.fd.as_raw_fd(), (&raw mut info).cast(), size) };
            if n != size as isize {
                let error = io::Error::last_os_error();
                return match error.kind() {
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(arrived),
                    _ if n >= 0 => Ok(arrived),
                    _ => Err(error),
                };
            }
            arrived.push(Arrived {
                number: info.ssi_signo as i32,
                from_terminal: info.ssi_code == libc::SI_KERNEL,
            });
        }
    }

    /// Waits until a signal arrives, `also` becomes readable or time is over.
    pub fn wait(&self, time: Duration, also: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let poll = |fd: i32| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        };
        // poll(2) passes over negative descriptors.
        let mut fds = [
            poll(self.fd.as_raw_fd()),
            poll(also.map_or(-1, |fd| fd.as_raw_fd())),
        ];
        let time = libc::timespec {
            tv_sec: time.as_secs() as libc::time_t,
            tv_nsec: time.subsec_nanos().into(),
        };
        // SAFETY: both structures outlive the call; no signal mask is given.
        let n = unsafe { libc::ppoll(fds.as_mut_ptr(), 2, &time, std::ptr::null()) };
        if n < 0 {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
        Ok(())
    }
}
