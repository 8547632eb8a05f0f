//! Numbers of arguments by strace's words, and the words of numbers.

use fathom_model::syscalls::Syscall;

use super::tables::{self, Names};
use super::{Kind, network, system, write};

/// The words that a recording has for number `value` of argument `name`; `None` if `kind` is none of
/// `bpf/syscalls.def`.
pub(crate) fn words(call: &Syscall, name: &str, kind: &str, value: u64) -> Option<String> {
    let mut text = String::new();
    write(Kind::of(call.name, name, kind)?, value, &mut text);
    Some(text)
}

/// The number that a recording has as `text`; `None` if the text does not say it exactly.
pub(crate) fn number(call: &Syscall, name: &str, kind: &str, text: &str) -> Option<u64> {
    let kind = Kind::of(call.name, name, kind)?;
    let lists = lists(kind);
    let mut value = 0;
    // `0x9 /* SEEK_??? */`
    let plain = text.split(" /* ").next().unwrap_or(text);
    for word in plain.split('|') {
        let named = || {
            let all = lists.iter().copied().flatten();
            all.chain(MORE).find(|(_, name)| *name == word)
        };
        value |= match plain_number(word) {
            Some(number) => number,
            None => named()?.0,
        };
    }
    let mut again = String::new();
    write(kind, value, &mut again);
    (again == text).then_some(value)
}

/// Words for no bit, and for values that are written by code.
const MORE: &[(u64, &str)] = &[
    (0, "O_RDONLY"),
    (1, "O_WRONLY"),
    (2, "O_RDWR"),
    (3, "O_ACCMODE"),
    (0, "F_OK"),
    (0, "PROT_NONE"),
    (0, "NULL"),
    (0, "AT_STATX_SYNC_AS_STAT"),
    (0x2000, "AT_STATX_FORCE_SYNC"),
    (0x4000, "AT_STATX_DONT_SYNC"),
];

fn plain_number(word: &str) -> Option<u64> {
    if let Some(digits) = word.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).ok();
    }
    if let Some(digits) = word.strip_prefix('-') {
        return digits.parse::<i64>().ok().map(|n| n.wrapping_neg() as u64);
    }
    match word.strip_prefix('0') {
        Some(digits) if !digits.is_empty() => u64::from_str_radix(digits, 8).ok(),
        _ => word.parse().ok(),
    }
}

/// The names from which the words of a kind are made; empty where words are made in another way.
fn lists(kind: Kind) -> [Names; 2] {
    match kind {
        Kind::Open | Kind::OpenMode | Kind::OpenFlags => [tables::OPEN, &[]],
        Kind::At | Kind::AtStatx => [tables::AT, &[]],
        Kind::AtAccess => [tables::AT_ACCESS, &[]],
        Kind::Rwf => [tables::RWF, &[]],
        Kind::SyncFileRange => [tables::SYNC_FILE_RANGE, &[]],
        Kind::Splice => [tables::SPLICE, &[]],
        Kind::Fallocate => [tables::FALLOCATE, &[]],
        Kind::Fadvise => [tables::FADVISE, &[]],
        Kind::CloseRange => [tables::CLOSE_RANGE, &[]],
        Kind::Seek => [tables::SEEK, &[]],
        Kind::Rename => [tables::RENAME, &[]],
        Kind::Statx => [tables::STATX, &[]],
        Kind::Access => [tables::ACCESS, &[]],
        Kind::Fcntl => [tables::FCNTL, &[]],
        Kind::Lock => [tables::LOCK, &[]],
        Kind::Xattr => [tables::XATTR, &[]],
        Kind::Prot => [tables::PROT, &[]],
        Kind::Map => [tables::MAP_TYPE, tables::MAP],
        Kind::Msync => [tables::MSYNC, &[]],
        Kind::Madvise => [tables::MADVISE, &[]],
        Kind::IoringEnter => [tables::IORING_ENTER, &[]],
        Kind::IoringRegister => [tables::IORING_REGISTER, &[]],
        Kind::Message => [tables::MESSAGE, &[]],
        Kind::Socket => [tables::SOCKET, &[]],
        Kind::Resolve => [tables::RESOLVE, &[]],
        Kind::NodeMode => [tables::FILE_TYPE, tables::MODE_BITS],
        Kind::Mount => [system::MOUNT, &[]],
        Kind::Umount => [system::UMOUNT, &[]],
        Kind::Memfd => [system::MEMFD, &[]],
        Kind::Mremap => [system::MREMAP, &[]],
        Kind::Mlock => [system::MLOCK, &[]],
        Kind::Mlockall => [system::MLOCKALL, &[]],
        Kind::Inotify => [system::INOTIFY, &[]],
        Kind::InotifyEvents => [system::INOTIFY_EVENTS, &[]],
        Kind::Domain => [network::DOMAIN, &[]],
        Kind::Shutdown => [network::SHUTDOWN, &[]],
        Kind::EpollCreate => [network::EPOLL_CREATE, &[]],
        Kind::EpollControl => [network::EPOLL_CONTROL, &[]],
        Kind::Eventfd => [network::EVENTFD, &[]],
        Kind::Timerfd => [network::TIMERFD, &[]],
        Kind::TimerfdSet => [network::TIMERFD_SET, &[]],
        Kind::Signalfd => [network::SIGNALFD, &[]],
        Kind::Clock => [network::CLOCK, &[]],
        Kind::Timer => [network::TIMER, &[]],
        Kind::Wait => [network::WAIT, &[]],
        Kind::IdType => [network::ID_TYPE, &[]],
        _ => [&[], &[]],
    }
}

#[cfg(test)]
mod tests {
    use fathom_model::syscalls::SYSCALLS;

    use super::*;

    #[test]
    fn words_and_numbers() {
        let call = |name| &SYSCALLS[Syscall::index_of(name).unwrap()];
        for (name, arg, kind, value, text) in [
            ("openat", "flags", "O", 0o2101, "O_WRONLY|O_CREAT|O_APPEND"),
            ("openat", "flags", "O", 0x8000_0000, "O_RDONLY|0x80000000"),
            ("openat", "mode", "octal", 0o644, "0644"),
            ("openat", "mode", "octal", 7, "007"),
            ("lseek", "whence", "SEEK", 2, "SEEK_END"),
            ("lseek", "whence", "SEEK", 9, "0x9 /* SEEK_??? */"),
            ("mmap", "prot", "PROT", 0, "PROT_NONE"),
            ("mmap", "prot", "PROT", 3, "PROT_READ|PROT_WRITE"),
            ("mmap", "flags", "MAP", 0x22, "MAP_PRIVATE|MAP_ANONYMOUS"),
            ("mknod", "mode", "octal", 0o100644, "S_IFREG|0644"),
            ("chown", "uid", "int", u64::from(u32::MAX), "-1"),
            ("unlinkat", "flags", "AT", 0x200, "AT_REMOVEDIR"),
            ("access", "mode", "ACCESS", 0, "F_OK"),
        ] {
            assert_eq!(words(call(name), arg, kind, value).as_deref(), Some(text));
            let back = number(call(name), arg, kind, text).unwrap();
            // -1 has all bits.
            assert_eq!(back as u32, value as u32, "{name} {text}");
        }
        for text in ["O_RDONLY|O_WHAT", "", "{...}", "O_CREAT|O_RDONLY"] {
            assert_eq!(number(call("openat"), "flags", "O", text), None, "{text}");
        }
    }
}
