//! The third argument of fcntl, which depends on the command.

use super::{Kind, bits, hex, one, tables};

const F_SETSIG: u64 = 10;
/// Signals without names of their own.
const FIRST_RT: u64 = 32;
const LAST_RT: u64 = 64;

/// Appends the argument of `command`; false when the command takes none.
pub(crate) fn write_argument(command: u64, value: u64, out: &mut String) -> bool {
    let low = value & 0xffff_ffff;
    match command & 0xffff_ffff {
        // F_GETFD, F_GETFL, F_GETOWN, F_GETSIG, F_GETLEASE, F_GETPIPE_SZ,
        // F_GET_SEALS
        1 | 3 | 9 | 11 | 1025 | 1032 | 1034 => return false,
        // F_DUPFD, F_SETOWN, F_DUPFD_QUERY, F_DUPFD_CLOEXEC, F_SETPIPE_SZ
        0 | 8 | 1027 | 1030 | 1031 => super::write(Kind::Int, value, out),
        // F_SETFD
        2 => bits(tables::FD_FLAGS, low, "0", "FD_???", out),
        // F_SETFL
        4 => super::write(Kind::Open, low, out),
        F_SETSIG => match SIGNALS.get(low as usize) {
            Some(name) => out.push_str(name),
            None if (FIRST_RT..=LAST_RT).contains(&low) => {
                super::append(out, format_args!("SIGRT_{}", low - FIRST_RT));
            }
            None => super::write(Kind::Int, value, out),
        },
        // F_SETLEASE
        1024 => one(tables::LEASE, low, "F_???", out),
        // F_NOTIFY
        1026 => notify(low, out),
        // F_ADD_SEALS
        1033 => bits(tables::SEALS, low, "0", "F_SEAL_???", out),
        // Commands with a pointer.
        5..=7 | 15 | 16 | 36..=38 | 1035..=1038 if value == 0 => out.push_str("NULL"),
        _ => hex(value, out),
    }
    true
}

/// Appends l_type of struct flock.
pub(crate) fn write_lock_type(value: u64, out: &mut String) {
    one(tables::LEASE, value, "F_???", out);
}

fn notify(value: u64, out: &mut String) {
    bits(tables::NOTIFY, value, "0", "DN_???", out);
}

static SIGNALS: &[&str] = &[
    "0",
    "SIGHUP",
    "SIGINT",
    "SIGQUIT",
    "SIGILL",
    "SIGTRAP",
    "SIGABRT",
    "SIGBUS",
    "SIGFPE",
    "SIGKILL",
    "SIGUSR1",
    "SIGSEGV",
    "SIGUSR2",
    "SIGPIPE",
    "SIGALRM",
    "SIGTERM",
    "SIGSTKFLT",
    "SIGCHLD",
    "SIGCONT",
    "SIGSTOP",
    "SIGTSTP",
    "SIGTTIN",
    "SIGTTOU",
    "SIGURG",
    "SIGXCPU",
    "SIGXFSZ",
    "SIGVTALRM",
    "SIGPROF",
    "SIGWINCH",
    "SIGIO",
    "SIGPWR",
    "SIGSYS",
];
