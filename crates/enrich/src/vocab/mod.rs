//! Arguments in strace's vocabulary (of its version 6.1, and what kernels have
//! added since).

mod fcntl;
mod ioctl;
mod network;
mod system;
mod tables;
mod words;

use std::fmt::Write as _;

use tables::Names;

pub(crate) use network::{futex_waits, write_of, write_poll_events};

pub(crate) use words::{number, words};

pub(crate) use fcntl::{
    result as fcntl_result, signal as write_signal, write_argument as write_fcntl_argument,
    write_lock_type,
};

/// How a number is written: the kinds of `bpf/syscalls.def`, some of which
/// depend on the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Open,
    /// Flags of open with an access mode, in 32 bits.
    OpenMode,
    /// Flags of open without an access mode: dup3.
    OpenFlags,
    At,
    /// AT_ flags of statx, which say how to synchronize as well.
    AtStatx,
    /// AT_ flags of faccessat2, one of which means something else there.
    AtAccess,
    Rwf,
    SyncFileRange,
    Splice,
    Fallocate,
    Fadvise,
    CloseRange,
    Seek,
    Rename,
    Statx,
    Access,
    Fcntl,
    /// The third argument of fcntl, which depends on the second.
    FcntlArg,
    Lock,
    Ioctl,
    Xattr,
    Prot,
    Map,
    Msync,
    Madvise,
    IoringEnter,
    IoringFsync,
    /// Flags of send and recv.
    Message,
    /// Flags of accept4.
    Socket,
    IoringRegister,
    Resolve,
    /// Permission bits.
    Mode,
    /// Type and permission bits: mknod.
    NodeMode,
    /// Device number: mknod.
    Device,
    /// User or group.
    Owner,
    Address,
    Hex,
    /// Hexadecimal, of 32 bits.
    Hex32,
    Int,
    Uint,
    Long,
    Ulong,
    /// Permission bits of openat2, which may have more than there are.
    LongMode,
    /// st_rdev.
    StatDevice,
    StatxAttributes,
    StatfsFlags,
    FsMagic,
    OwnerType,
    WriteLife,
    Mount,
    /// Attributes of a mount in 32 bits.
    FsmountAttr,
    MountAttr,
    Fsconfig,
    Quota,
    Swap,
    Fanotify,
    FanotifyEvents,
    Memfd,
    Umount,
    OpenTree,
    MoveMount,
    Fsopen,
    Fsmount,
    Fspick,
    Listmount,
    AtHandle,
    Mremap,
    Mlock,
    Mlockall,
    Inotify,
    InotifyEvents,
    FanotifyMark,
    Userfaultfd,
    /// Domain of a socket.
    Domain,
    SocketType,
    /// Protocol of a socket, which depends on the domain.
    Protocol,
    /// Level of an option of a socket.
    Level,
    /// Option of a socket, which depends on the level.
    SocketOption,
    Shutdown,
    FutexOperation,
    Futex2,
    EpollCreate,
    EpollControl,
    EpollEvents,
    Eventfd,
    Timerfd,
    TimerfdSet,
    Signalfd,
    Clock,
    Timer,
    Wait,
    IdType,
}

impl Kind {
    /// The kind that `bpf/syscalls.def` calls `kind`, of argument `name` of
    /// `call`; `None` when there is none of that name.
    pub(crate) fn of(call: &str, name: &str, kind: &str) -> Option<Kind> {
        Some(match (kind, call, name) {
            ("O", "dup3" | "pipe2", _) => Kind::OpenFlags,
            ("O", "fanotify_init", _) => Kind::OpenMode,
            ("O", ..) => Kind::Open,
            ("AT", "statx" | "IORING_OP_STATX", _) => Kind::AtStatx,
            ("AT", "faccessat2", _) => Kind::AtAccess,
            ("AT", ..) => Kind::At,
            ("RWF", ..) => Kind::Rwf,
            ("SYNC_FILE_RANGE", ..) => Kind::SyncFileRange,
            ("SPLICE_F", ..) => Kind::Splice,
            ("FALLOC_FL", ..) => Kind::Fallocate,
            ("POSIX_FADV", ..) => Kind::Fadvise,
            ("CLOSE_RANGE", ..) => Kind::CloseRange,
            ("SEEK", ..) => Kind::Seek,
            ("RENAME", ..) => Kind::Rename,
            ("STATX", ..) => Kind::Statx,
            ("ACCESS", ..) => Kind::Access,
            ("F", ..) => Kind::Fcntl,
            ("LOCK", ..) => Kind::Lock,
            ("IOCTL", ..) => Kind::Ioctl,
            ("XATTR", ..) => Kind::Xattr,
            ("PROT", ..) => Kind::Prot,
            ("MAP", ..) => Kind::Map,
            ("MS", ..) => Kind::Msync,
            ("MADV", ..) => Kind::Madvise,
            ("IORING_ENTER", ..) => Kind::IoringEnter,
            ("IORING_FSYNC", ..) => Kind::IoringFsync,
            ("MSG", ..) => Kind::Message,
            ("SOCK", ..) => Kind::Socket,
            ("IORING_REGISTER", ..) => Kind::IoringRegister,
            ("octal", "mknod" | "mknodat", _) => Kind::NodeMode,
            ("octal", ..) => Kind::Mode,
            ("hex", "mknod" | "mknodat", "dev") => Kind::Device,
            ("lock", ..) => Kind::FcntlArg,
            ("hex", _, "addr" | "ctx" | "new_addr" | "uaddr") | ("map", ..) => Kind::Address,
            ("hex", ..) => Kind::Hex,
            ("hex32", ..) => Kind::Hex32,
            ("long", ..) => Kind::Long,
            ("ulong", ..) => Kind::Ulong,
            ("MOUNT", ..) => Kind::Mount,
            ("MOUNT_ATTR", "fsmount", _) => Kind::FsmountAttr,
            ("MOUNT_ATTR", ..) => Kind::MountAttr,
            ("FSCONFIG", ..) => Kind::Fsconfig,
            ("QUOTA", ..) => Kind::Quota,
            ("SWAP", ..) => Kind::Swap,
            ("FAN", ..) => Kind::Fanotify,
            ("FAN_EVENT", ..) => Kind::FanotifyEvents,
            ("dev", ..) => Kind::StatDevice,
            ("OPEN_FD", ..) => Kind::OpenFlags,
            ("MFD", ..) => Kind::Memfd,
            ("UMOUNT", ..) => Kind::Umount,
            ("OPEN_TREE", ..) => Kind::OpenTree,
            ("MOVE_MOUNT", ..) => Kind::MoveMount,
            ("FSOPEN", ..) => Kind::Fsopen,
            ("FSMOUNT", ..) => Kind::Fsmount,
            ("FSPICK", ..) => Kind::Fspick,
            ("LISTMOUNT", ..) => Kind::Listmount,
            ("AT_HANDLE", ..) => Kind::AtHandle,
            ("MREMAP", ..) => Kind::Mremap,
            ("MLOCK", ..) => Kind::Mlock,
            ("MCL", ..) => Kind::Mlockall,
            ("IN", ..) => Kind::Inotify,
            ("IN_EVENT", ..) => Kind::InotifyEvents,
            ("FAN_MARK", ..) => Kind::FanotifyMark,
            ("UFFD", ..) => Kind::Userfaultfd,
            ("AF", ..) => Kind::Domain,
            ("SOCK_TYPE", ..) => Kind::SocketType,
            ("IPPROTO", "socketpair", _) => Kind::Int,
            ("IPPROTO", ..) => Kind::Protocol,
            ("SOL", ..) => Kind::Level,
            ("SOCKOPT", ..) => Kind::SocketOption,
            ("SHUT", ..) => Kind::Shutdown,
            ("FUTEX", ..) => Kind::FutexOperation,
            ("FUTEX2", ..) => Kind::Futex2,
            ("EPOLL", ..) => Kind::EpollCreate,
            ("EPOLL_CTL", ..) => Kind::EpollControl,
            ("EFD", ..) => Kind::Eventfd,
            ("TFD", ..) => Kind::Timerfd,
            ("TFD_TIMER", ..) => Kind::TimerfdSet,
            ("SFD", ..) => Kind::Signalfd,
            ("CLOCK", ..) => Kind::Clock,
            ("TIMER", ..) => Kind::Timer,
            ("WAIT", ..) => Kind::Wait,
            ("P", ..) => Kind::IdType,
            ("int", _, "uid" | "gid") => Kind::Owner,
            ("int", ..) => Kind::Int,
            ("uint", ..) => Kind::Uint,
            _ => return None,
        })
    }
}

/// Appends `value` as `kind`. Values of 32 bits are taken from the low half:
/// a register's high half means nothing to the kernel then.
pub(crate) fn write(kind: Kind, value: u64, out: &mut String) {
    let low = value & 0xffff_ffff;
    match kind {
        // open_how's flags have 64 bits; the flags of other calls come from aux.
        Kind::Open => open(value, out),
        Kind::OpenMode => open(low, out),
        Kind::OpenFlags => bits(tables::OPEN, low, "0", "O_???", out),
        Kind::At => bits(tables::AT, low, "0", "AT_???", out),
        Kind::AtStatx => at_statx(low, out),
        Kind::AtAccess => bits(tables::AT_ACCESS, low, "0", "AT_???", out),
        Kind::Rwf => bits(tables::RWF, low, "0", "RWF_???", out),
        Kind::SyncFileRange => {
            bits(
                tables::SYNC_FILE_RANGE,
                low,
                "0",
                "SYNC_FILE_RANGE_???",
                out,
            );
        }
        Kind::Splice => bits(tables::SPLICE, low, "0", "SPLICE_F_???", out),
        Kind::Fallocate => bits(tables::FALLOCATE, low, "0", "FALLOC_FL_???", out),
        Kind::Fadvise => one(tables::FADVISE, low, "POSIX_FADV_???", out),
        Kind::CloseRange => bits(tables::CLOSE_RANGE, low, "0", "CLOSE_RANGE_???", out),
        Kind::Seek => one(tables::SEEK, low, "SEEK_???", out),
        Kind::Rename => bits(tables::RENAME, low, "0", "RENAME_??", out),
        Kind::Statx => bits(tables::STATX, low, "0", "STATX_???", out),
        Kind::Access => bits(tables::ACCESS, low, "F_OK", "?_OK", out),
        Kind::Fcntl => one(tables::FCNTL, low, "F_???", out),
        Kind::Lock => bits(tables::LOCK, low, "0", "LOCK_???", out),
        Kind::Ioctl => ioctl::write(value as u32, out),
        Kind::Xattr => bits(tables::XATTR, low, "0", "XATTR_???", out),
        Kind::Prot => bits(tables::PROT, value, "PROT_NONE", "PROT_???", out),
        Kind::Map => map(low, out),
        Kind::Msync => bits(tables::MSYNC, low, "0", "MS_???", out),
        Kind::Madvise => one(tables::MADVISE, low, "MADV_???", out),
        Kind::IoringEnter => bits(tables::IORING_ENTER, low, "0", "IORING_ENTER_???", out),
        Kind::IoringFsync => bits(tables::IORING_FSYNC, low, "0", "IORING_FSYNC_???", out),
        Kind::Message => bits(tables::MESSAGE, low, "0", "MSG_???", out),
        Kind::Socket => bits(tables::SOCKET, low, "0", "SOCK_???", out),
        Kind::IoringRegister => {
            one(tables::IORING_REGISTER, low, "IORING_REGISTER_???", out);
        }
        Kind::Resolve => bits(tables::RESOLVE, value, "0", "RESOLVE_???", out),
        Kind::Mode => mode(value, out),
        Kind::NodeMode => node_mode(value, out),
        Kind::Device => device(low, out),
        Kind::Owner if low == 0xffff_ffff => out.push_str("-1"),
        Kind::Owner | Kind::Uint => append(out, format_args!("{low}")),
        Kind::Int => append(out, format_args!("{}", value as u32 as i32)),
        Kind::Memfd => memfd(low, out),
        Kind::Umount => bits(system::UMOUNT, low, "0", "MNT_???", out),
        Kind::OpenTree => bits(system::OPEN_TREE, low, "0", "OPEN_TREE_???", out),
        Kind::MoveMount => bits(system::MOVE_MOUNT, low, "0", "MOVE_MOUNT_???", out),
        Kind::Fsopen => bits(system::FSOPEN, low, "0", "FSOPEN_???", out),
        Kind::Fsmount => bits(system::FSMOUNT, low, "0", "FSMOUNT_???", out),
        Kind::Fspick => bits(system::FSPICK, low, "0", "FSPICK_???", out),
        Kind::Listmount => bits(system::LISTMOUNT, low, "0", "LISTMOUNT_???", out),
        Kind::AtHandle => bits(system::AT_HANDLE, low, "0", "AT_???", out),
        Kind::Mremap => bits(system::MREMAP, low, "0", "MREMAP_???", out),
        Kind::Mlock => bits(system::MLOCK, low, "0", "MLOCK_???", out),
        Kind::Mlockall => bits(system::MLOCKALL, low, "0", "MCL_???", out),
        Kind::Inotify => bits(system::INOTIFY, low, "0", "IN_???", out),
        Kind::InotifyEvents => bits(system::INOTIFY_EVENTS, low, "0", "IN_???", out),
        Kind::FanotifyMark => bits(system::FANOTIFY_MARK, low, "0", "FAN_MARK_???", out),
        Kind::Userfaultfd => bits(system::USERFAULTFD, low, "0", "UFFD_???", out),
        Kind::Hex32 => hex(low, out),
        Kind::Long => append(out, format_args!("{}", value as i64)),
        Kind::Ulong => append(out, format_args!("{value}")),
        Kind::LongMode => octal(value, out),
        Kind::StatDevice => device(value, out),
        Kind::StatxAttributes => bits(system::STATX_ATTRIBUTES, value, "0", "STATX_ATTR_???", out),
        Kind::StatfsFlags => bits(system::STATFS_FLAGS, value, "0", "ST_???", out),
        Kind::FsMagic => match system::FS_MAGIC.iter().find(|(v, _)| *v == value) {
            Some((_, name)) => out.push_str(name),
            None => hex(value, out),
        },
        Kind::OwnerType => one(system::OWNER_TYPE, low, "F_OWNER_???", out),
        Kind::WriteLife => one(system::WRITE_LIFE, value, "RWH_WRITE_LIFE_???", out),
        Kind::Mount => mount(value, out),
        Kind::MountAttr => mount_attr(value, out),
        Kind::FsmountAttr => mount_attr(low, out),
        Kind::Fsconfig => one(system::FSCONFIG, low, "FSCONFIG_???", out),
        Kind::Quota => quota(low, out),
        Kind::Swap => swap(low, out),
        Kind::Fanotify => fanotify(low, out),
        Kind::FanotifyEvents => bits(system::FANOTIFY_EVENTS, value, "0", "FAN_???", out),
        Kind::Domain
        | Kind::SocketType
        | Kind::Protocol
        | Kind::Level
        | Kind::SocketOption
        | Kind::Shutdown
        | Kind::FutexOperation
        | Kind::Futex2
        | Kind::EpollCreate
        | Kind::EpollControl
        | Kind::EpollEvents
        | Kind::Eventfd
        | Kind::Timerfd
        | Kind::TimerfdSet
        | Kind::Signalfd
        | Kind::Clock
        | Kind::Timer
        | Kind::Wait
        | Kind::IdType => network::write(kind, low, out),
        Kind::Address | Kind::FcntlArg if value == 0 => out.push_str("NULL"),
        Kind::Address | Kind::FcntlArg | Kind::Hex => hex(value, out),
    }
}

/// Whether flags of open make the file, so that its mode counts.
pub(crate) fn creates(open_flags: u64) -> bool {
    open_flags & (tables::O_CREAT | tables::O_TMPFILE_BIT) != 0
}

/// Whether a mode of mknod takes a device number.
pub(crate) fn is_device(mode: u64) -> bool {
    matches!(mode & 0o170000, 0o020000 | 0o060000)
}

fn append(out: &mut String, text: std::fmt::Arguments<'_>) {
    // A String takes everything.
    let _ = out.write_fmt(text);
}

fn hex(value: u64, out: &mut String) {
    if value == 0 {
        out.push('0');
    } else {
        append(out, format_args!("{value:#x}"));
    }
}

fn separate(start: usize, out: &mut String) {
    if out.len() > start {
        out.push('|');
    }
}

/// Names of the bits of `value`; `zero` when there are none, bits without a
/// name as a number, with `unknown` as the comment when there is nothing else.
fn bits(names: Names, value: u64, zero: &str, unknown: &str, out: &mut String) {
    if value == 0 {
        out.push_str(zero);
        return;
    }
    let start = out.len();
    let rest = known_bits(names, value, start, out);
    if rest == value {
        append(out, format_args!("{rest:#x} /* {unknown} */"));
    } else if rest != 0 {
        append(out, format_args!("|{rest:#x}"));
    }
}

/// Appends the names of known bits, with a separator if there is text since `start`; returns the
/// other bits.
fn known_bits(names: Names, value: u64, start: usize, out: &mut String) -> u64 {
    let mut rest = value;
    for (bit, name) in names {
        if rest & bit == *bit {
            separate(start, out);
            out.push_str(name);
            rest &= !bit;
        }
    }
    rest
}

fn one(names: Names, value: u64, unknown: &str, out: &mut String) {
    match names.iter().find(|(v, _)| *v == value) {
        Some((_, name)) => out.push_str(name),
        None => append(out, format_args!("{value:#x} /* {unknown} */")),
    }
}

fn open(value: u64, out: &mut String) {
    let start = out.len();
    out.push_str(match value & 3 {
        0 => "O_RDONLY",
        1 => "O_WRONLY",
        2 => "O_RDWR",
        _ => "O_ACCMODE",
    });
    let rest = known_bits(tables::OPEN, value & !3, start, out);
    if rest != 0 {
        append(out, format_args!("|{rest:#x}"));
    }
}

fn at_statx(value: u64, out: &mut String) {
    let start = out.len();
    out.push_str(match value & 0x6000 {
        0 => "AT_STATX_SYNC_AS_STAT",
        0x2000 => "AT_STATX_FORCE_SYNC",
        0x4000 => "AT_STATX_DONT_SYNC",
        _ => "AT_STATX_FORCE_SYNC|AT_STATX_DONT_SYNC",
    });
    let rest = known_bits(tables::AT, value & !0x6000, start, out);
    if rest != 0 {
        append(out, format_args!("|{rest:#x}"));
    }
}

fn map(value: u64, out: &mut String) {
    const HUGE_SHIFT: u32 = 26;
    let start = out.len();
    one(tables::MAP_TYPE, value & 0xf, "MAP_???", out);
    let huge = value >> HUGE_SHIFT;
    let rest = known_bits(tables::MAP, value & 0x03ff_fff0, start, out);
    if rest != 0 {
        append(out, format_args!("|{rest:#x}"));
    }
    if huge != 0 {
        append(out, format_args!("|{huge}<<MAP_HUGE_SHIFT"));
    }
}

fn memfd(value: u64, out: &mut String) {
    const HUGE_SHIFT: u32 = 26;
    let huge = value >> HUGE_SHIFT;
    let rest = value & 0x03ff_ffff;
    let start = out.len();
    if rest != 0 || huge == 0 {
        bits(system::MEMFD, rest, "0", "MFD_???", out);
    }
    if huge != 0 {
        separate(start, out);
        append(out, format_args!("{huge}<<MFD_HUGE_SHIFT"));
    }
}

fn mount(value: u64, out: &mut String) {
    const MAGIC: u64 = 0xc0ed_0000;
    let start = out.len();
    let mut rest = value;
    // Once the sign that there are flags, and ignored since.
    if rest & 0xffff_0000 == MAGIC {
        out.push_str("MS_MGC_VAL");
        rest &= !0xffff_0000;
        if rest == 0 {
            return;
        }
    }
    let named = out.len();
    rest = known_bits(system::MOUNT, rest, start, out);
    if out.len() == named && rest == value {
        bits(system::MOUNT, value, "0", "MS_???", out);
    } else if rest != 0 {
        append(out, format_args!("|{rest:#x}"));
    }
}

fn mount_attr(value: u64, out: &mut String) {
    // One of three ways in three bits, of which the third occurs only with both others.
    const ATIME: u64 = 0x70;
    let names = match value & ATIME {
        ATIME => [("MOUNT_ATTR__ATIME", ATIME), ("", 0)],
        _ => [
            ("MOUNT_ATTR_NOATIME", 0x10),
            ("MOUNT_ATTR_STRICTATIME", 0x20),
        ],
    };
    let start = out.len();
    let mut rest = known_bits(system::MOUNT_ATTR, value & !ATIME, start, out) | value & ATIME;
    for (name, bits) in names {
        if bits != 0 && rest & bits == bits {
            separate(start, out);
            out.push_str(name);
            rest &= !bits;
        }
    }
    if out.len() == start {
        bits(&[], rest, "0", "MOUNT_ATTR_???", out);
    } else if rest != 0 {
        append(out, format_args!("|{rest:#x}"));
    }
}

fn quota(value: u64, out: &mut String) {
    const TYPE_BITS: u64 = 8;
    out.push_str("QCMD(");
    match value >> TYPE_BITS {
        0 => out.push_str("0 /* Q_??? */"),
        command => one(system::QUOTA, command, "Q_???", out),
    }
    out.push_str(", ");
    one(system::QUOTA_TYPE, value & 0xff, "???QUOTA", out);
    out.push(')');
}

fn swap(value: u64, out: &mut String) {
    const PRIORITY: u64 = 0x7fff;
    // With it the priority counts, 0 as well.
    const PREFER: u64 = 0x8000;
    let start = out.len();
    let rest = known_bits(system::SWAP, value & !PRIORITY, start, out);
    if rest != 0 {
        separate(start, out);
        append(out, format_args!("{rest:#x}"));
    }
    if value & (PRIORITY | PREFER) != 0 || value == 0 {
        separate(start, out);
        append(out, format_args!("{}", value & PRIORITY));
    }
}

fn fanotify(value: u64, out: &mut String) {
    let start = out.len();
    out.push_str(match value & 0xc {
        0 => "FAN_CLASS_NOTIF",
        4 => "FAN_CLASS_CONTENT",
        8 => "FAN_CLASS_PRE_CONTENT",
        _ => "0xc /* FAN_CLASS_??? */",
    });
    let rest = known_bits(system::FANOTIFY, value & !0xc, start, out);
    if rest != 0 {
        append(out, format_args!("|{rest:#x}"));
    }
}

fn mode(value: u64, out: &mut String) {
    // umode_t has 16 bits.
    octal(value & 0xffff, out);
}

/// Three digits at least, a zero before.
fn octal(value: u64, out: &mut String) {
    if value < 0o100 {
        append(out, format_args!("{value:03o}"));
    } else {
        append(out, format_args!("0{value:o}"));
    }
}

fn node_mode(value: u64, out: &mut String) {
    let file_type = value & 0o170000;
    let start = out.len();
    if file_type != 0 {
        match tables::FILE_TYPE.iter().find(|(v, _)| *v == file_type) {
            Some((_, name)) => out.push_str(name),
            None => return mode(value, out),
        }
    }
    let rest = known_bits(tables::MODE_BITS, value & 0o7777, start, out);
    separate(start, out);
    mode(rest, out);
}

fn device(value: u64, out: &mut String) {
    // The layout of st_dev; what is passed to mknod has its 32 lower bits.
    let major = value >> 8 & 0xfff | value >> 32 & 0xffff_f000;
    let minor = value & 0xff | value >> 12 & 0xffff_ff00;
    out.push_str("makedev(");
    hex(major, out);
    out.push_str(", ");
    hex(minor, out);
    out.push(')');
}

#[cfg(test)]
mod tests;
