//! Expectations come from `strace` 6.1 run over a program that makes these
//! calls.

use super::*;

fn text(kind: Kind, value: u64) -> String {
    let mut out = String::new();
    write(kind, value, &mut out);
    out
}

#[track_caller]
fn check(kind: Kind, cases: &[(u64, &str)]) {
    for (value, expected) in cases {
        assert_eq!(text(kind, *value), *expected, "{kind:?} {value:#x}");
    }
}

#[test]
fn every_kind_of_the_call_table_is_known() {
    for call in &fathom_model::syscalls::SYSCALLS {
        for value in call.values() {
            let kind = Kind::of(call.name, value.name, value.kind);
            assert!(
                kind.is_some(),
                "{}: {}:{}",
                call.name,
                value.name,
                value.kind
            );
        }
    }
    assert_eq!(Kind::of("read", "flags", "NO_SUCH"), None);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn open_flags() {
    check(
        Kind::Open,
        &[
            (0, "O_RDONLY"),
            (1, "O_WRONLY"),
            (2, "O_RDWR"),
            (
                0xffff_ffff,
                "O_ACCMODE|O_CREAT|O_EXCL|O_NOCTTY|O_TRUNC|O_APPEND|O_NONBLOCK|O_SYNC|O_DIRECT|O_LARGEFILE|O_NOFOLLOW|O_NOATIME|O_CLOEXEC|O_PATH|O_TMPFILE|FASYNC|0xff80003c",
            ),
            (
                u64::MAX,
                "O_ACCMODE|O_CREAT|O_EXCL|O_NOCTTY|O_TRUNC|O_APPEND|O_NONBLOCK|O_SYNC|O_DIRECT|O_LARGEFILE|O_NOFOLLOW|O_NOATIME|O_CLOEXEC|O_PATH|O_TMPFILE|FASYNC|0xffffffffff80003c",
            ),
            (0o100 | 1 << 32, "O_RDONLY|O_CREAT|0x100000000"),
            (0x410002, "O_RDWR|O_TMPFILE"),
            (0x181241, "O_WRONLY|O_CREAT|O_TRUNC|O_SYNC|O_CLOEXEC"),
            (0x80000002, "O_RDWR|0x80000000"),
            (0xc0, "O_RDONLY|O_CREAT|O_EXCL"),
            (0x4, "O_RDONLY|0x4"),
            (0x1000, "O_RDONLY|O_DSYNC"),
            (0x2000, "O_RDONLY|FASYNC"),
            (0x100000, "O_RDONLY|__O_SYNC"),
            (0x400000, "O_RDONLY|__O_TMPFILE"),
            (0x12000, "O_RDONLY|O_DIRECTORY|FASYNC"),
            (0x402000, "O_RDONLY|__O_TMPFILE|FASYNC"),
            (0x202000, "O_RDONLY|O_PATH|FASYNC"),
            (
                0x2d8000,
                "O_RDONLY|O_LARGEFILE|O_NOATIME|O_CLOEXEC|O_PATH|O_DIRECTORY",
            ),
            (0x105800, "O_RDONLY|O_NONBLOCK|O_SYNC|O_DIRECT"),
            (0x26000, "O_RDONLY|O_DIRECT|O_NOFOLLOW|FASYNC"),
        ],
    );
    check(
        Kind::OpenFlags,
        &[
            (0x80000, "O_CLOEXEC"),
            (0, "0"),
            (3, "0x3 /* O_??? */"),
            (
                0xffff_ffff,
                "O_CREAT|O_EXCL|O_NOCTTY|O_TRUNC|O_APPEND|O_NONBLOCK|O_SYNC|O_DIRECT|O_LARGEFILE|O_NOFOLLOW|O_NOATIME|O_CLOEXEC|O_PATH|O_TMPFILE|FASYNC|0xff80003f",
            ),
        ],
    );
}

#[test]
fn at_flags() {
    check(
        Kind::At,
        &[
            (0x200, "AT_REMOVEDIR"),
            (0, "0"),
            (8, "0x8 /* AT_??? */"),
            (0x1100, "AT_SYMLINK_NOFOLLOW|AT_EMPTY_PATH"),
            (0x1400, "AT_SYMLINK_FOLLOW|AT_EMPTY_PATH"),
            (
                u64::MAX,
                "AT_SYMLINK_NOFOLLOW|AT_REMOVEDIR|AT_SYMLINK_FOLLOW|AT_NO_AUTOMOUNT|AT_EMPTY_PATH|AT_RECURSIVE|0xffff60ff",
            ),
        ],
    );
    check(
        Kind::AtStatx,
        &[
            (0x100, "AT_STATX_SYNC_AS_STAT|AT_SYMLINK_NOFOLLOW"),
            (0x2000, "AT_STATX_FORCE_SYNC"),
            (0x4800, "AT_STATX_DONT_SYNC|AT_NO_AUTOMOUNT"),
            (
                0x6100,
                "AT_STATX_FORCE_SYNC|AT_STATX_DONT_SYNC|AT_SYMLINK_NOFOLLOW",
            ),
            (1, "AT_STATX_SYNC_AS_STAT|0x1"),
            (
                u64::MAX,
                "AT_STATX_FORCE_SYNC|AT_STATX_DONT_SYNC|AT_SYMLINK_NOFOLLOW|AT_REMOVEDIR|AT_SYMLINK_FOLLOW|AT_NO_AUTOMOUNT|AT_EMPTY_PATH|AT_RECURSIVE|0xffff00ff",
            ),
        ],
    );
    check(
        Kind::AtAccess,
        &[
            (0x1300, "AT_SYMLINK_NOFOLLOW|AT_EACCESS|AT_EMPTY_PATH"),
            (
                0xffff_ffff,
                "AT_SYMLINK_NOFOLLOW|AT_EACCESS|AT_EMPTY_PATH|0xffffecff",
            ),
            (1, "0x1 /* AT_??? */"),
        ],
    );
}

#[test]
fn sets_of_flags() {
    check(
        Kind::Statx,
        &[
            (0x7ff, "STATX_BASIC_STATS"),
            (0xfff, "STATX_ALL"),
            (0x1201, "STATX_TYPE|STATX_SIZE|STATX_MNT_ID"),
            (0x17ff, "STATX_BASIC_STATS|STATX_MNT_ID"),
            (
                0xffe,
                "STATX_MODE|STATX_NLINK|STATX_UID|STATX_GID|STATX_ATIME|STATX_MTIME|STATX_CTIME|STATX_INO|STATX_SIZE|STATX_BLOCKS|STATX_BTIME",
            ),
            (0, "0"),
            (0x80000000, "0x80000000 /* STATX_??? */"),
        ],
    );
    check(
        Kind::Access,
        &[
            (7, "R_OK|W_OK|X_OK"),
            (0, "F_OK"),
            (4, "R_OK"),
            (0xff, "R_OK|W_OK|X_OK|0xf8"),
            (8, "0x8 /* ?_OK */"),
        ],
    );
    check(
        Kind::Rwf,
        &[
            (9, "RWF_HIPRI|RWF_NOWAIT"),
            (0x1f, "RWF_HIPRI|RWF_DSYNC|RWF_SYNC|RWF_NOWAIT|RWF_APPEND"),
            (0, "0"),
            (0x100, "0x100 /* RWF_??? */"),
        ],
    );
    check(
        Kind::SyncFileRange,
        &[
            (
                7,
                "SYNC_FILE_RANGE_WAIT_BEFORE|SYNC_FILE_RANGE_WRITE|SYNC_FILE_RANGE_WAIT_AFTER",
            ),
            (8, "0x8 /* SYNC_FILE_RANGE_??? */"),
        ],
    );
    check(
        Kind::Splice,
        &[
            (5, "SPLICE_F_MOVE|SPLICE_F_MORE"),
            (
                0xffff_ffff,
                "SPLICE_F_MOVE|SPLICE_F_NONBLOCK|SPLICE_F_MORE|SPLICE_F_GIFT|0xfffffff0",
            ),
            (0x100, "0x100 /* SPLICE_F_??? */"),
        ],
    );
    check(
        Kind::Fallocate,
        &[
            (3, "FALLOC_FL_KEEP_SIZE|FALLOC_FL_PUNCH_HOLE"),
            (0x10, "FALLOC_FL_ZERO_RANGE"),
            (0, "0"),
            (
                0xffff_ffff,
                "FALLOC_FL_KEEP_SIZE|FALLOC_FL_PUNCH_HOLE|FALLOC_FL_NO_HIDE_STALE|FALLOC_FL_COLLAPSE_RANGE|FALLOC_FL_ZERO_RANGE|FALLOC_FL_INSERT_RANGE|FALLOC_FL_UNSHARE_RANGE|0xffffff80",
            ),
        ],
    );
    check(
        Kind::CloseRange,
        &[
            (6, "CLOSE_RANGE_UNSHARE|CLOSE_RANGE_CLOEXEC"),
            (0, "0"),
            (8, "0x8 /* CLOSE_RANGE_??? */"),
        ],
    );
    check(
        Kind::Rename,
        &[
            (1, "RENAME_NOREPLACE"),
            (6, "RENAME_EXCHANGE|RENAME_WHITEOUT"),
            (0x10, "0x10 /* RENAME_?? */"),
        ],
    );
    check(
        Kind::Lock,
        &[
            (6, "LOCK_EX|LOCK_NB"),
            (1, "LOCK_SH"),
            (8, "LOCK_UN"),
            (0, "0"),
            (0xe0, "LOCK_MAND|LOCK_RW"),
            (
                0xffff_ffff,
                "LOCK_SH|LOCK_EX|LOCK_NB|LOCK_UN|LOCK_MAND|LOCK_RW|0xffffff10",
            ),
        ],
    );
    check(
        Kind::Xattr,
        &[
            (0, "0"),
            (1, "XATTR_CREATE"),
            (3, "XATTR_CREATE|XATTR_REPLACE"),
            (8, "0x8 /* XATTR_??? */"),
        ],
    );
    check(
        Kind::Prot,
        &[
            (0, "PROT_NONE"),
            (7, "PROT_READ|PROT_WRITE|PROT_EXEC"),
            (
                0xffff_ffff,
                "PROT_READ|PROT_WRITE|PROT_EXEC|PROT_SEM|PROT_GROWSDOWN|PROT_GROWSUP|0xfcfffff0",
            ),
            (0x3000018, "PROT_SEM|PROT_GROWSDOWN|PROT_GROWSUP|0x10"),
            (0x40, "0x40 /* PROT_??? */"),
        ],
    );
    check(
        Kind::Msync,
        &[
            (7, "MS_SYNC|MS_ASYNC|MS_INVALIDATE"),
            (0, "0"),
            (8, "0x8 /* MS_??? */"),
        ],
    );
    check(
        Kind::IoringEnter,
        &[
            (3, "IORING_ENTER_GETEVENTS|IORING_ENTER_SQ_WAKEUP"),
            (0, "0"),
            (
                0xffff_ffff,
                "IORING_ENTER_GETEVENTS|IORING_ENTER_SQ_WAKEUP|IORING_ENTER_SQ_WAIT|IORING_ENTER_EXT_ARG|IORING_ENTER_REGISTERED_RING|0xffffffe0",
            ),
        ],
    );
    check(
        Kind::Resolve,
        &[
            (0xc, "RESOLVE_NO_SYMLINKS|RESOLVE_BENEATH"),
            (0, "0"),
            (
                u64::MAX,
                "RESOLVE_NO_XDEV|RESOLVE_NO_MAGICLINKS|RESOLVE_NO_SYMLINKS|RESOLVE_BENEATH|RESOLVE_IN_ROOT|RESOLVE_CACHED|0xffffffffffffffc0",
            ),
        ],
    );
}

#[cfg(target_arch = "x86_64")]
#[test]
fn map_flags() {
    check(
        Kind::Map,
        &[
            (0x22, "MAP_PRIVATE|MAP_ANONYMOUS"),
            (
                0xffff_ffff,
                "0xf /* MAP_??? */|MAP_FIXED|MAP_ANONYMOUS|MAP_32BIT|MAP_NORESERVE|MAP_POPULATE|MAP_NONBLOCK|MAP_GROWSDOWN|MAP_DENYWRITE|MAP_EXECUTABLE|MAP_LOCKED|MAP_STACK|MAP_HUGETLB|MAP_SYNC|MAP_FIXED_NOREPLACE|0x3e00680|63<<MAP_HUGE_SHIFT",
            ),
            (
                0x8c013,
                "MAP_SHARED_VALIDATE|MAP_FIXED|MAP_NORESERVE|MAP_POPULATE|MAP_SYNC",
            ),
            (
                0x40022 | 21 << 26,
                "MAP_PRIVATE|MAP_ANONYMOUS|MAP_HUGETLB|21<<MAP_HUGE_SHIFT",
            ),
            (0, "MAP_FILE"),
            (1, "MAP_SHARED"),
            (6, "0x6 /* MAP_??? */"),
            (0x80, "MAP_FILE|0x80"),
            (0x11, "MAP_SHARED|MAP_FIXED"),
        ],
    );
}

#[test]
fn single_values() {
    check(
        Kind::Fadvise,
        &[
            (0, "POSIX_FADV_NORMAL"),
            (4, "POSIX_FADV_DONTNEED"),
            (6, "0x6 /* POSIX_FADV_??? */"),
            (u64::MAX, "0xffffffff /* POSIX_FADV_??? */"),
        ],
    );
    check(
        Kind::Seek,
        &[
            (0, "SEEK_SET"),
            (2, "SEEK_END"),
            (4, "SEEK_HOLE"),
            (5, "0x5 /* SEEK_??? */"),
            (0xffff_ffff, "0xffffffff /* SEEK_??? */"),
        ],
    );
    check(
        Kind::Madvise,
        &[
            (0, "MADV_NORMAL"),
            (8, "MADV_FREE"),
            (25, "MADV_COLLAPSE"),
            (100, "MADV_HWPOISON"),
            (5, "0x5 /* MADV_??? */"),
        ],
    );
    check(
        Kind::Fcntl,
        &[
            (0, "F_DUPFD"),
            (17, "F_GETOWNER_UIDS"),
            (38, "F_OFD_SETLKW"),
            (1026, "F_NOTIFY"),
            (1029, "F_CANCELLK"),
            (1030, "F_DUPFD_CLOEXEC"),
            (1034, "F_GET_SEALS"),
            (0x63, "0x63 /* F_??? */"),
        ],
    );
}

#[test]
fn ioctl_requests() {
    check(
        Kind::Ioctl,
        &[
            (0x80086601, "FS_IOC_GETFLAGS"),
            (0xc020660b, "FS_IOC_FIEMAP"),
            (0x5401, "TCGETS"),
            (0x5413, "TIOCGWINSZ"),
            (0x541b, "FIONREAD"),
            (0x80081272, "BLKGETSIZE64"),
            (0x1, "FIBMAP"),
            (0x40086607, "_IOC(_IOC_WRITE, 0x66, 0x7, 0x8)"),
            (0x6611, "_IOC(_IOC_NONE, 0x66, 0x11, 0)"),
            (0xc004f563, "_IOC(_IOC_READ|_IOC_WRITE, 0xf5, 0x63, 0x4)"),
            (0x80647a4d, "_IOC(_IOC_READ, 0x7a, 0x4d, 0x64)"),
            (0, "_IOC(_IOC_NONE, 0, 0, 0)"),
            (
                0xffff_ffff,
                "_IOC(_IOC_READ|_IOC_WRITE, 0xff, 0xff, 0x3fff)",
            ),
            // strace: "BTRFS_IOC_CLONE or FICLONE"
            (0x40049409, "FICLONE"),
        ],
    );
}

#[test]
fn numbers() {
    check(
        Kind::Mode,
        &[
            (0o644, "0644"),
            (0, "000"),
            (0o7, "007"),
            (0o4755, "04755"),
            (u64::MAX, "0177777"),
            (0o100644, "0100644"),
        ],
    );
    check(
        Kind::NodeMode,
        &[
            (0o100644, "S_IFREG|0644"),
            (0o020600, "S_IFCHR|0600"),
            (0o010755, "S_IFIFO|0755"),
            (0o140755, "S_IFSOCK|0755"),
            (0o644, "0644"),
            (0o170644, "0170644"),
        ],
    );
    check(
        Kind::Device,
        &[
            (0x103, "makedev(0x1, 0x3)"),
            (0x12345, "makedev(0x123, 0x45)"),
        ],
    );
    check(
        Kind::Owner,
        &[
            (u64::MAX, "-1"),
            (1000, "1000"),
            (0x80000000, "2147483648"),
            (0xfffffffe, "4294967294"),
        ],
    );
    check(Kind::Int, &[(0xfffffffb, "-5"), (5, "5")]);
    check(
        Kind::Uint,
        &[(0xffff_ffff, "4294967295"), (u64::MAX, "4294967295")],
    );
    check(Kind::Address, &[(0, "NULL"), (0x1000, "0x1000")]);
    check(
        Kind::Hex,
        &[(0, "0"), (3, "0x3"), (0x123456789, "0x123456789")],
    );
}

#[test]
fn fcntl_arguments() {
    let arg = |command: u64, value: u64| {
        let mut out = String::new();
        write_fcntl_argument(command, value, &mut out).then_some(out)
    };
    for (command, value, expected) in [
        (0, 5, "5"),
        (2, 1, "FD_CLOEXEC"),
        (2, 3, "FD_CLOEXEC|0x2"),
        (2, 5, "FD_CLOEXEC|0x4"),
        (2, 0, "0"),
        (2, 8, "0x8 /* FD_??? */"),
        (4, 5, "O_WRONLY|0x4"),
        (4, 0xc02, "O_RDWR|O_APPEND|O_NONBLOCK"),
        (4, 0, "O_RDONLY"),
        (5, 5, "0x5"),
        (6, 0, "NULL"),
        (8, -7i64 as u64, "-7"),
        (10, 5, "SIGTRAP"),
        (10, 0, "0"),
        (10, 99, "99"),
        (1024, 0, "F_RDLCK"),
        (1024, 3, "0x3 /* F_??? */"),
        (1024, 4, "F_EXLCK"),
        (1026, 5, "DN_ACCESS|DN_CREATE"),
        (1026, 0x100, "0x100 /* DN_??? */"),
        (1031, 4096, "4096"),
        (1033, 5, "F_SEAL_SEAL|F_SEAL_GROW"),
        (0x63, 0x123456789, "0x123456789"),
    ] {
        assert_eq!(
            arg(command, value).as_deref(),
            Some(expected),
            "{command} {value}"
        );
    }
    for command in [1, 3, 9, 11, 1025, 1032, 1034] {
        assert_eq!(arg(command, 5), None);
    }
}
