//! Names of the numbers in layers below the calls.

use fathom_model::abi::{
    BIO_CACHE_READ, BIO_CALL, BIO_JOURNAL, BIO_READAHEAD, BIO_WRITEBACK, BLOCK_BACKGROUND,
    BLOCK_FUA, BLOCK_IDLE, BLOCK_META, BLOCK_NOWAIT, BLOCK_PREFLUSH, BLOCK_PRIO, BLOCK_RAHEAD,
    BLOCK_SYNC, IRQ_CALL, IRQ_HARD, IRQ_SOFT, IRQ_TIMER, IrqRecord, SPAN_BTRFS_FSYNC,
    SPAN_BTRFS_READ, SPAN_BTRFS_WRITE, SPAN_CACHE_FAULT, SPAN_CACHE_READ, SPAN_CACHE_WRITE,
    SPAN_DIRECT, SPAN_EXT4_READ, SPAN_EXT4_SYNC, SPAN_EXT4_WRITE, SPAN_FILE_OPEN, SPAN_FUSE,
    SPAN_IOMAP_WRITE, SPAN_NFS, SPAN_NFS_ASYNC, SPAN_OPEN, SPAN_SUBMIT, SPAN_VFS_FSYNC,
    SPAN_VFS_READ, SPAN_VFS_WRITE, SPAN_XFS_FSYNC, SPAN_XFS_READ, SPAN_XFS_WRITE, SpanRecord,
    WAIT_BY_INTERRUPT, WAIT_WOKEN, WaitRecord,
};
use fathom_model::layers::Layer;

use fathom_model::StrId;
use fathom_model::batch::NULL_I32;
use fathom_model::bytes::escape_invalid_utf8;

use crate::strings::{Name, Strings};
use crate::{id, text};

/// include/linux/interrupt.h
const SOFTIRQS: [&str; 10] = [
    "HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU",
];

/// Numbers of some of them.
pub(crate) const TIMER: u16 = 1;
pub(crate) const NET_TX: u16 = 2;
pub(crate) const NET_RX: u16 = 3;
pub(crate) const HRTIMER: u16 = 8;

const FLAGS: [(u32, &str); 9] = [
    (BLOCK_SYNC, "SYNC"),
    (BLOCK_META, "META"),
    (BLOCK_PRIO, "PRIO"),
    (BLOCK_FUA, "FUA"),
    (BLOCK_PREFLUSH, "PREFLUSH"),
    (BLOCK_RAHEAD, "RAHEAD"),
    (BLOCK_BACKGROUND, "BACKGROUND"),
    (BLOCK_NOWAIT, "NOWAIT"),
    (BLOCK_IDLE, "IDLE"),
];

/// An operation of the block layer: include/linux/blk_types.h.
pub(crate) fn operation(op: u16) -> String {
    match op {
        0 => "read",
        1 => "write",
        2 => "flush",
        3 => "discard",
        5 => "secure_erase",
        7 => "zone_append",
        9 => "write_zeroes",
        10 => "zone_open",
        11 => "zone_close",
        12 => "zone_finish",
        13 => "zone_reset",
        34 => "driver_in",
        35 => "driver_out",
        other => return other.to_string(),
    }
    .into()
}

/// The flags that have names.
pub(crate) fn known_flags(flags: u16) -> u16 {
    let known = FLAGS.iter().fold(0, |all, (bit, _)| all | bit);
    (u32::from(flags) & known) as u16
}

pub(crate) fn block_flags(flags: u16) -> String {
    let set = FLAGS.iter().filter(|(bit, _)| u32::from(flags) & bit != 0);
    set.map(|(_, name)| *name).collect::<Vec<_>>().join("|")
}

pub(crate) fn origin(origin: u32) -> &'static str {
    match origin {
        BIO_CALL => "call",
        BIO_CACHE_READ => "read",
        BIO_READAHEAD => "readahead",
        BIO_WRITEBACK => "writeback",
        BIO_JOURNAL => "journal",
        _ => "other",
    }
}

/// Kinds of wakers: a thread, an interrupt.
const THREAD: u64 = 0;
const INTERRUPT: u64 = 1 << 32;

/// The source of a wake-up, and its thread; null if it is not known.
pub(crate) fn waker(wait: &WaitRecord, strings: &mut Strings) -> (StrId, i32) {
    let flags = u32::from(wait.flags);
    if flags & WAIT_WOKEN == 0 {
        return (StrId::NULL, NULL_I32);
    }
    if flags & WAIT_BY_INTERRUPT != 0 {
        // Other interrupts have no device.
        let device = match wait.waker >> 16 {
            IRQ_HARD => wait.comm,
            _ => [0; 16],
        };
        let name = Name::new(INTERRUPT | u64::from(wait.waker), &device);
        let text = || interrupt_name(wait.waker >> 16, wait.waker as u16, &wait.comm);
        return (strings.name(name, text), NULL_I32);
    }
    let text = || escape_invalid_utf8(text::until_nul(&wait.comm));
    (
        strings.name(Name::new(THREAD, &wait.comm), text),
        id(wait.waker),
    )
}

/// All that the names of an interrupt are made of.
pub(crate) fn of_interrupt(irq: &IrqRecord) -> Name {
    let kind = (u64::from(irq.source) << 16) | u64::from(irq.number);
    Name::new(kind, &irq.name)
}

pub(crate) fn interrupt_kind(irq: &IrqRecord) -> &'static str {
    match u32::from(irq.source) {
        IRQ_HARD => "irq",
        IRQ_SOFT => "softirq",
        IRQ_TIMER => "timer",
        _ => "call",
    }
}

/// The device or the softirq.
pub(crate) fn interrupt_source(irq: &IrqRecord) -> String {
    match u32::from(irq.source) {
        IRQ_HARD => escape_invalid_utf8(text::until_nul(&irq.name)).into_owned(),
        IRQ_SOFT => softirq(irq.number),
        _ => interrupt_kind(irq).into(),
    }
}

pub(crate) fn interrupt(irq: &IrqRecord) -> String {
    interrupt_name(u32::from(irq.source), irq.number, &irq.name)
}

fn interrupt_name(kind: u32, number: u16, name: &[u8]) -> String {
    match kind {
        IRQ_HARD => format!("irq:{}", escape_invalid_utf8(text::until_nul(name))),
        IRQ_SOFT => format!("softirq:{}", softirq(number)),
        IRQ_TIMER => "timer".into(),
        IRQ_CALL => "call".into(),
        other => other.to_string(),
    }
}

fn softirq(number: u16) -> String {
    SOFTIRQS
        .get(usize::from(number))
        .map_or_else(|| number.to_string(), |name| name.to_string())
}

/// A part of a request that the kernel spends in one function, and its layer.
pub(crate) fn span(span: &SpanRecord) -> (Layer, &'static str) {
    match u32::from(span.span) {
        SPAN_EXT4_SYNC => (Layer::Fs, "ext4_sync_file"),
        SPAN_DIRECT => (Layer::Fs, "iomap_dio_rw"),
        SPAN_OPEN => (Layer::Vfs, "do_filp_open"),
        SPAN_FILE_OPEN => (Layer::Vfs, "do_file_open"),
        SPAN_VFS_READ => (Layer::Vfs, "vfs_read"),
        SPAN_VFS_WRITE => (Layer::Vfs, "vfs_write"),
        SPAN_VFS_FSYNC => (Layer::Vfs, "vfs_fsync_range"),
        SPAN_EXT4_READ => (Layer::Fs, "ext4_file_read_iter"),
        SPAN_EXT4_WRITE => (Layer::Fs, "ext4_file_write_iter"),
        SPAN_XFS_READ => (Layer::Fs, "xfs_file_read_iter"),
        SPAN_XFS_WRITE => (Layer::Fs, "xfs_file_write_iter"),
        SPAN_XFS_FSYNC => (Layer::Fs, "xfs_file_fsync"),
        SPAN_BTRFS_READ => (Layer::Fs, "btrfs_file_read_iter"),
        SPAN_BTRFS_WRITE => (Layer::Fs, "btrfs_file_write_iter"),
        SPAN_BTRFS_FSYNC => (Layer::Fs, "btrfs_sync_file"),
        SPAN_CACHE_READ => (Layer::PageCache, "filemap_read"),
        SPAN_CACHE_WRITE => (Layer::PageCache, "generic_perform_write"),
        SPAN_IOMAP_WRITE => (Layer::PageCache, "iomap_file_buffered_write"),
        SPAN_CACHE_FAULT => (Layer::PageCache, "filemap_fault"),
        SPAN_SUBMIT => (Layer::Block, "submit_bio"),
        SPAN_FUSE => (Layer::Fuse, fuse_operation(span.operation)),
        SPAN_NFS | SPAN_NFS_ASYNC => (Layer::Nfs, nfs_operation(&span.name)),
        _ => (Layer::Fs, "other"),
    }
}

/// Name of a FUSE opcode (include/uapi/linux/fuse.h).
fn fuse_operation(opcode: u16) -> &'static str {
    match opcode {
        1 => "FUSE_LOOKUP",
        3 => "FUSE_GETATTR",
        4 => "FUSE_SETATTR",
        5 => "FUSE_READLINK",
        6 => "FUSE_SYMLINK",
        8 => "FUSE_MKNOD",
        9 => "FUSE_MKDIR",
        10 => "FUSE_UNLINK",
        11 => "FUSE_RMDIR",
        12 => "FUSE_RENAME",
        13 => "FUSE_LINK",
        14 => "FUSE_OPEN",
        15 => "FUSE_READ",
        16 => "FUSE_WRITE",
        17 => "FUSE_STATFS",
        18 => "FUSE_RELEASE",
        20 => "FUSE_FSYNC",
        21 => "FUSE_SETXATTR",
        22 => "FUSE_GETXATTR",
        23 => "FUSE_LISTXATTR",
        24 => "FUSE_REMOVEXATTR",
        25 => "FUSE_FLUSH",
        26 => "FUSE_INIT",
        27 => "FUSE_OPENDIR",
        28 => "FUSE_READDIR",
        29 => "FUSE_RELEASEDIR",
        30 => "FUSE_FSYNCDIR",
        31 => "FUSE_GETLK",
        32 => "FUSE_SETLK",
        33 => "FUSE_SETLKW",
        34 => "FUSE_ACCESS",
        35 => "FUSE_CREATE",
        37 => "FUSE_BMAP",
        39 => "FUSE_IOCTL",
        40 => "FUSE_POLL",
        43 => "FUSE_FALLOCATE",
        44 => "FUSE_READDIRPLUS",
        45 => "FUSE_RENAME2",
        46 => "FUSE_LSEEK",
        47 => "FUSE_COPY_FILE_RANGE",
        50 => "FUSE_SYNCFS",
        51 => "FUSE_TMPFILE",
        52 => "FUSE_STATX",
        _ => "other",
    }
}

/// Names of the kernel's procedures of NFS (`nfs_procedures`, `nfs3_procedures` and
/// `nfs4_procedures`), in order.
const NFS: &[&str] = &[
    "ACCESS",
    "ALLOCATE",
    "BIND_CONN_TO_SESSION",
    "CLONE",
    "CLOSE",
    "COMMIT",
    "COPY",
    "COPY_NOTIFY",
    "CREATE",
    "CREATE_SESSION",
    "DEALLOCATE",
    "DELEGRETURN",
    "DESTROY_CLIENTID",
    "DESTROY_SESSION",
    "EXCHANGE_ID",
    "FREE_STATEID",
    "FSID_PRESENT",
    "FSINFO",
    "FSSTAT",
    "FS_LOCATIONS",
    "GETACL",
    "GETATTR",
    "GETDEVICEINFO",
    "GETDEVICELIST",
    "GETXATTR",
    "GET_LEASE_TIME",
    "LAYOUTCOMMIT",
    "LAYOUTERROR",
    "LAYOUTGET",
    "LAYOUTRETURN",
    "LAYOUTSTATS",
    "LINK",
    "LISTXATTRS",
    "LOCK",
    "LOCKT",
    "LOCKU",
    "LOOKUP",
    "LOOKUPP",
    "LOOKUP_ROOT",
    "MKDIR",
    "MKNOD",
    "NULL",
    "OFFLOAD_CANCEL",
    "OFFLOAD_STATUS",
    "OPEN",
    "OPEN_CONFIRM",
    "OPEN_DOWNGRADE",
    "OPEN_NOATTR",
    "PATHCONF",
    "READ",
    "READDIR",
    "READDIRPLUS",
    "READLINK",
    "READ_PLUS",
    "RECLAIM_COMPLETE",
    "RELEASE_LOCKOWNER",
    "REMOVE",
    "REMOVEXATTR",
    "RENAME",
    "RENEW",
    "RMDIR",
    "ROOT",
    "SECINFO",
    "SECINFO_NO_NAME",
    "SEEK",
    "SEQUENCE",
    "SERVER_CAPS",
    "SETACL",
    "SETATTR",
    "SETCLIENTID",
    "SETCLIENTID_CONFIRM",
    "SETXATTR",
    "STATFS",
    "SYMLINK",
    "TEST_STATEID",
    "WRITE",
    "WRITECACHE",
    "WRITESAME",
    "ZERO_RANGE",
];

/// A procedure by its name as the kernel has it, cut to the length of `name` with a NUL.
fn nfs_operation(name: &[u8]) -> &'static str {
    let most = name.len().saturating_sub(1);
    let is = |known: &&str| {
        let known = known.as_bytes();
        let known = known.get(..most).unwrap_or(known);
        name.strip_prefix(known)
            .is_some_and(|rest| rest.first() == Some(&0))
    };
    NFS.iter().copied().find(is).unwrap_or("other")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn procedures_of_nfs() {
        let of = |text: &str| {
            let mut name = [0; 16];
            let bytes = text.as_bytes();
            let length = bytes.len().min(15);
            name[..length].copy_from_slice(&bytes[..length]);
            nfs_operation(&name)
        };
        for name in NFS {
            assert_eq!(of(name), *name);
        }
        assert_eq!(of("READ "), "other");
        assert_eq!(of(""), "other");
        assert_eq!(nfs_operation(b"READDIRPLUSREADD"), "other", "it has no end");
    }
}
