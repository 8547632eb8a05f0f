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
        F_SETSIG => signal(low, out),
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

/// The return value of `command`, with strace's comment; `None` if it is only a number.
pub(crate) fn result(command: &str, value: u64) -> Option<String> {
    let mut out = String::new();
    if command != "F_GETSIG" {
        hex(value, &mut out);
    }
    match command {
        "F_GETFL" => {
            out.push_str(" (flags ");
            super::write(Kind::Open, value, &mut out);
        }
        "F_GETLEASE" => {
            out.push_str(" (");
            one(tables::LEASE, value, "F_???", &mut out);
        }
        _ if value == 0 => return None,
        "F_GETFD" => {
            out.push_str(" (flags ");
            bits(tables::FD_FLAGS, value, "0", "FD_???", &mut out);
        }
        "F_GET_SEALS" => {
            out.push_str(" (seals ");
            bits(tables::SEALS, value, "0", "F_SEAL_???", &mut out);
        }
        "F_GETSIG" => {
            super::append(&mut out, format_args!("{value} ("));
            signal(value, &mut out);
        }
        _ => return None,
    }
    out.push(')');
    Some(out)
}

/// Appends the name of a signal.
pub(crate) fn signal(number: u64, out: &mut String) {
    match tables::SIGNALS.iter().find(|(n, _)| *n == number) {
        Some((_, name)) => out.push_str(name),
        None if (FIRST_RT..=LAST_RT).contains(&number) => {
            super::append(out, format_args!("SIGRT_{}", number - FIRST_RT));
        }
        None => super::write(Kind::Int, number, out),
    }
}

/// Appends l_type of struct flock.
pub(crate) fn write_lock_type(value: u64, out: &mut String) {
    one(tables::LEASE, value, "F_???", out);
}

fn notify(value: u64, out: &mut String) {
    bits(tables::NOTIFY, value, "0", "DN_???", out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_with_comments() {
        let text = |command, value| result(command, value).unwrap_or_default();
        assert_eq!(text("F_GETFL", 0x8002), "0x8002 (flags O_RDWR|O_LARGEFILE)");
        assert_eq!(text("F_GETFL", 0), "0 (flags O_RDONLY)");
        assert_eq!(text("F_GETFD", 1), "0x1 (flags FD_CLOEXEC)");
        assert_eq!(text("F_GETFD", 0), "");
        assert_eq!(text("F_GETLEASE", 0), "0 (F_RDLCK)");
        assert_eq!(
            text("F_GET_SEALS", 3),
            "0x3 (seals F_SEAL_SEAL|F_SEAL_SHRINK)"
        );
        assert_eq!(text("F_GETSIG", 10), "10 (SIGUSR1)");
        assert_eq!(text("F_GETSIG", 34), "34 (SIGRT_2)");
        assert_eq!(text("F_GETPIPE_SZ", 65536), "");
    }
}
