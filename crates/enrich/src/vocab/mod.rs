//! Arguments in strace's vocabulary (of its version 6.1, and what kernels have
//! added since).

mod fcntl;
mod ioctl;
mod tables;

use std::fmt::Write as _;

use tables::Names;

pub(crate) use fcntl::write_argument as write_fcntl_argument;

/// How a number is written: the kinds of `bpf/syscalls.def`, some of which
/// depend on the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    Open,
    /// Flags of open without an access mode: dup3.
    OpenFlags,
    At,
    /// AT_ flags of statx, which say how to synchronise as well.
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
    Int,
    Uint,
}

impl Kind {
    /// The kind that `bpf/syscalls.def` calls `kind`, of argument `name` of
    /// `call`; `None` when there is none of that name.
    pub(crate) fn of(call: &str, name: &str, kind: &str) -> Option<Kind> {
        Some(match (kind, call, name) {
            ("O", "dup3", _) => Kind::OpenFlags,
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
            ("octal", "mknod" | "mknodat", _) => Kind::NodeMode,
            ("octal", ..) => Kind::Mode,
            ("hex", "mknod" | "mknodat", "dev") => Kind::Device,
            ("hex", "fcntl", "arg") => Kind::FcntlArg,
            ("hex", _, "addr" | "ctx") => Kind::Address,
            ("hex", ..) => Kind::Hex,
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
        // open_how's flags have 64 bits; those of the other calls come from aux.
        Kind::Open => open(value, out),
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
        Kind::Prot => bits(tables::PROT, low, "PROT_NONE", "PROT_???", out),
        Kind::Map => map(low, out),
        Kind::Msync => bits(tables::MSYNC, low, "0", "MS_???", out),
        Kind::Madvise => one(tables::MADVISE, low, "MADV_???", out),
        Kind::IoringEnter => bits(tables::IORING_ENTER, low, "0", "IORING_ENTER_???", out),
        Kind::IoringFsync => bits(tables::IORING_FSYNC, low, "0", "IORING_FSYNC_???", out),
        Kind::Message => bits(tables::MESSAGE, low, "0", "MSG_???", out),
        Kind::Socket => bits(tables::SOCKET, low, "0", "SOCK_???", out),
        Kind::Resolve => bits(tables::RESOLVE, value, "0", "RESOLVE_???", out),
        Kind::Mode => mode(value, out),
        Kind::NodeMode => node_mode(value, out),
        Kind::Device => device(low, out),
        Kind::Owner if low == 0xffff_ffff => out.push_str("-1"),
        Kind::Owner | Kind::Uint => append(out, format_args!("{low}")),
        Kind::Int => append(out, format_args!("{}", value as u32 as i32)),
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

/// Appends the names of known bits, separated from what stands there since
/// `start`; returns the others.
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

/// The name of `value`.
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

fn mode(value: u64, out: &mut String) {
    // umode_t has 16 bits; three digits at least, a zero before.
    let value = value & 0xffff;
    if value < 0o100 {
        append(out, format_args!("{value:03o}"));
    } else {
        append(out, format_args!("0{value:o}"));
    }
}

fn node_mode(value: u64, out: &mut String) {
    match tables::FILE_TYPE
        .iter()
        .find(|(v, _)| *v == value & 0o170000)
    {
        Some((_, name)) => {
            out.push_str(name);
            out.push('|');
            mode(value & 0o7777, out);
        }
        None => mode(value, out),
    }
}

fn device(value: u64, out: &mut String) {
    // As passed to mknod: the layout of st_dev in 32 bits.
    let major = value >> 8 & 0xfff;
    let minor = value & 0xff | value >> 12 & 0xfff00;
    out.push_str("makedev(");
    hex(major, out);
    out.push_str(", ");
    hex(minor, out);
    out.push(')');
}

#[cfg(test)]
mod tests;
