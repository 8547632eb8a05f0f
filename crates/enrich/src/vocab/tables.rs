//! Names of bits and of values, in the order in which strace prints them.

/// A value and its name.
pub(super) type Names = &'static [(u64, &'static str)];

// The four that differ between the architectures.
#[cfg(target_arch = "aarch64")]
mod open {
    pub(super) const DIRECT: u64 = 0o200000;
    pub(super) const LARGEFILE: u64 = 0o400000;
    pub(super) const DIRECTORY: u64 = 0o40000;
    pub(super) const NOFOLLOW: u64 = 0o100000;
}
#[cfg(not(target_arch = "aarch64"))]
mod open {
    pub(super) const DIRECT: u64 = 0o40000;
    pub(super) const LARGEFILE: u64 = 0o100000;
    pub(super) const DIRECTORY: u64 = 0o200000;
    pub(super) const NOFOLLOW: u64 = 0o400000;
}

pub(super) const O_CREAT: u64 = 0o100;
/// The bit of its own that O_TMPFILE has.
pub(super) const O_TMPFILE_BIT: u64 = 0o20000000;

pub(super) static OPEN: Names = &[
    (O_CREAT, "O_CREAT"),
    (0o200, "O_EXCL"),
    (0o400, "O_NOCTTY"),
    (0o1000, "O_TRUNC"),
    (0o2000, "O_APPEND"),
    (0o4000, "O_NONBLOCK"),
    (0o4010000, "O_SYNC"),
    (0o10000, "O_DSYNC"),
    (0o4000000, "__O_SYNC"),
    (open::DIRECT, "O_DIRECT"),
    (open::LARGEFILE, "O_LARGEFILE"),
    (open::NOFOLLOW, "O_NOFOLLOW"),
    (0o1000000, "O_NOATIME"),
    (0o2000000, "O_CLOEXEC"),
    (0o10000000, "O_PATH"),
    (O_TMPFILE_BIT | open::DIRECTORY, "O_TMPFILE"),
    (O_TMPFILE_BIT, "__O_TMPFILE"),
    (open::DIRECTORY, "O_DIRECTORY"),
    (0o20000, "FASYNC"),
];

pub(super) static AT: Names = &[
    (0x100, "AT_SYMLINK_NOFOLLOW"),
    (0x200, "AT_REMOVEDIR"),
    (0x400, "AT_SYMLINK_FOLLOW"),
    (0x800, "AT_NO_AUTOMOUNT"),
    (0x1000, "AT_EMPTY_PATH"),
    (0x8000, "AT_RECURSIVE"),
];

pub(super) static AT_ACCESS: Names = &[
    (0x100, "AT_SYMLINK_NOFOLLOW"),
    (0x200, "AT_EACCESS"),
    (0x1000, "AT_EMPTY_PATH"),
];

pub(super) static RWF: Names = &[
    (1, "RWF_HIPRI"),
    (2, "RWF_DSYNC"),
    (4, "RWF_SYNC"),
    (8, "RWF_NOWAIT"),
    (0x10, "RWF_APPEND"),
    (0x20, "RWF_NOAPPEND"),
    (0x40, "RWF_ATOMIC"),
    (0x80, "RWF_DONTCACHE"),
];

pub(super) static SYNC_FILE_RANGE: Names = &[
    (1, "SYNC_FILE_RANGE_WAIT_BEFORE"),
    (2, "SYNC_FILE_RANGE_WRITE"),
    (4, "SYNC_FILE_RANGE_WAIT_AFTER"),
];

pub(super) static SPLICE: Names = &[
    (1, "SPLICE_F_MOVE"),
    (2, "SPLICE_F_NONBLOCK"),
    (4, "SPLICE_F_MORE"),
    (8, "SPLICE_F_GIFT"),
];

pub(super) static FALLOCATE: Names = &[
    (1, "FALLOC_FL_KEEP_SIZE"),
    (2, "FALLOC_FL_PUNCH_HOLE"),
    (4, "FALLOC_FL_NO_HIDE_STALE"),
    (8, "FALLOC_FL_COLLAPSE_RANGE"),
    (0x10, "FALLOC_FL_ZERO_RANGE"),
    (0x20, "FALLOC_FL_INSERT_RANGE"),
    (0x40, "FALLOC_FL_UNSHARE_RANGE"),
];

pub(super) static FADVISE: Names = &[
    (0, "POSIX_FADV_NORMAL"),
    (1, "POSIX_FADV_RANDOM"),
    (2, "POSIX_FADV_SEQUENTIAL"),
    (3, "POSIX_FADV_WILLNEED"),
    (4, "POSIX_FADV_DONTNEED"),
    (5, "POSIX_FADV_NOREUSE"),
];

pub(super) static CLOSE_RANGE: Names = &[(2, "CLOSE_RANGE_UNSHARE"), (4, "CLOSE_RANGE_CLOEXEC")];

pub(super) static SEEK: Names = &[
    (0, "SEEK_SET"),
    (1, "SEEK_CUR"),
    (2, "SEEK_END"),
    (3, "SEEK_DATA"),
    (4, "SEEK_HOLE"),
];

pub(super) static RENAME: Names = &[
    (1, "RENAME_NOREPLACE"),
    (2, "RENAME_EXCHANGE"),
    (4, "RENAME_WHITEOUT"),
];

pub(super) static STATX: Names = &[
    (0xfff, "STATX_ALL"),
    (0x7ff, "STATX_BASIC_STATS"),
    (0x1, "STATX_TYPE"),
    (0x2, "STATX_MODE"),
    (0x4, "STATX_NLINK"),
    (0x8, "STATX_UID"),
    (0x10, "STATX_GID"),
    (0x20, "STATX_ATIME"),
    (0x40, "STATX_MTIME"),
    (0x80, "STATX_CTIME"),
    (0x100, "STATX_INO"),
    (0x200, "STATX_SIZE"),
    (0x400, "STATX_BLOCKS"),
    (0x800, "STATX_BTIME"),
    (0x1000, "STATX_MNT_ID"),
    (0x2000, "STATX_DIOALIGN"),
    (0x4000, "STATX_MNT_ID_UNIQUE"),
    (0x8000, "STATX_SUBVOL"),
    (0x10000, "STATX_WRITE_ATOMIC"),
    (0x20000, "STATX_DIO_READ_ALIGN"),
];

pub(super) static ACCESS: Names = &[(4, "R_OK"), (2, "W_OK"), (1, "X_OK")];

pub(super) static LOCK: Names = &[
    (1, "LOCK_SH"),
    (2, "LOCK_EX"),
    (4, "LOCK_NB"),
    (8, "LOCK_UN"),
    (0x20, "LOCK_MAND"),
    (0xc0, "LOCK_RW"),
    (0x40, "LOCK_READ"),
    (0x80, "LOCK_WRITE"),
];

pub(super) static XATTR: Names = &[(1, "XATTR_CREATE"), (2, "XATTR_REPLACE")];

pub(super) static PROT: Names = &[
    (1, "PROT_READ"),
    (2, "PROT_WRITE"),
    (4, "PROT_EXEC"),
    (8, "PROT_SEM"),
    (0x1000000, "PROT_GROWSDOWN"),
    (0x2000000, "PROT_GROWSUP"),
];

/// The low four bits of the flags of mmap.
pub(super) static MAP_TYPE: Names = &[
    (0, "MAP_FILE"),
    (1, "MAP_SHARED"),
    (2, "MAP_PRIVATE"),
    (3, "MAP_SHARED_VALIDATE"),
];

pub(super) static MAP: Names = &[
    (0x10, "MAP_FIXED"),
    (0x20, "MAP_ANONYMOUS"),
    #[cfg(target_arch = "x86_64")]
    (0x40, "MAP_32BIT"),
    (0x4000, "MAP_NORESERVE"),
    (0x8000, "MAP_POPULATE"),
    (0x10000, "MAP_NONBLOCK"),
    (0x100, "MAP_GROWSDOWN"),
    (0x800, "MAP_DENYWRITE"),
    (0x1000, "MAP_EXECUTABLE"),
    (0x2000, "MAP_LOCKED"),
    (0x20000, "MAP_STACK"),
    (0x40000, "MAP_HUGETLB"),
    (0x80000, "MAP_SYNC"),
    (0x100000, "MAP_FIXED_NOREPLACE"),
];

pub(super) static MSYNC: Names = &[(4, "MS_SYNC"), (1, "MS_ASYNC"), (2, "MS_INVALIDATE")];

pub(super) static MADVISE: Names = &[
    (0, "MADV_NORMAL"),
    (1, "MADV_RANDOM"),
    (2, "MADV_SEQUENTIAL"),
    (3, "MADV_WILLNEED"),
    (4, "MADV_DONTNEED"),
    (8, "MADV_FREE"),
    (9, "MADV_REMOVE"),
    (10, "MADV_DONTFORK"),
    (11, "MADV_DOFORK"),
    (12, "MADV_MERGEABLE"),
    (13, "MADV_UNMERGEABLE"),
    (14, "MADV_HUGEPAGE"),
    (15, "MADV_NOHUGEPAGE"),
    (16, "MADV_DONTDUMP"),
    (17, "MADV_DODUMP"),
    (18, "MADV_WIPEONFORK"),
    (19, "MADV_KEEPONFORK"),
    (20, "MADV_COLD"),
    (21, "MADV_PAGEOUT"),
    (22, "MADV_POPULATE_READ"),
    (23, "MADV_POPULATE_WRITE"),
    (24, "MADV_DONTNEED_LOCKED"),
    (25, "MADV_COLLAPSE"),
    (100, "MADV_HWPOISON"),
    (101, "MADV_SOFT_OFFLINE"),
    (102, "MADV_GUARD_INSTALL"),
    (103, "MADV_GUARD_REMOVE"),
];

pub(super) static IORING_ENTER: Names = &[
    (1, "IORING_ENTER_GETEVENTS"),
    (2, "IORING_ENTER_SQ_WAKEUP"),
    (4, "IORING_ENTER_SQ_WAIT"),
    (8, "IORING_ENTER_EXT_ARG"),
    (0x10, "IORING_ENTER_REGISTERED_RING"),
];

pub(super) static IORING_FSYNC: Names = &[(1, "IORING_FSYNC_DATASYNC")];

pub(super) static MESSAGE: Names = &[
    (1, "MSG_OOB"),
    (2, "MSG_PEEK"),
    (4, "MSG_DONTROUTE"),
    (0x20, "MSG_TRUNC"),
    (0x40, "MSG_DONTWAIT"),
    (0x80, "MSG_EOR"),
    (0x100, "MSG_WAITALL"),
    (0x2000, "MSG_ERRQUEUE"),
    (0x4000, "MSG_NOSIGNAL"),
    (0x8000, "MSG_MORE"),
    (0x0400_0000, "MSG_ZEROCOPY"),
    (0x4000_0000, "MSG_CMSG_CLOEXEC"),
];

/// The numbers are those of O_NONBLOCK and O_CLOEXEC.
pub(super) static SOCKET: Names = &[(0o4000, "SOCK_NONBLOCK"), (0o2000000, "SOCK_CLOEXEC")];

pub(super) static RESOLVE: Names = &[
    (1, "RESOLVE_NO_XDEV"),
    (2, "RESOLVE_NO_MAGICLINKS"),
    (4, "RESOLVE_NO_SYMLINKS"),
    (8, "RESOLVE_BENEATH"),
    (0x10, "RESOLVE_IN_ROOT"),
    (0x20, "RESOLVE_CACHED"),
];

pub(super) static FCNTL: Names = &[
    (0, "F_DUPFD"),
    (1, "F_GETFD"),
    (2, "F_SETFD"),
    (3, "F_GETFL"),
    (4, "F_SETFL"),
    (5, "F_GETLK"),
    (6, "F_SETLK"),
    (7, "F_SETLKW"),
    (8, "F_SETOWN"),
    (9, "F_GETOWN"),
    (10, "F_SETSIG"),
    (11, "F_GETSIG"),
    (12, "F_GETLK64"),
    (13, "F_SETLK64"),
    (14, "F_SETLKW64"),
    (15, "F_SETOWN_EX"),
    (16, "F_GETOWN_EX"),
    (17, "F_GETOWNER_UIDS"),
    (36, "F_OFD_GETLK"),
    (37, "F_OFD_SETLK"),
    (38, "F_OFD_SETLKW"),
    (1024, "F_SETLEASE"),
    (1025, "F_GETLEASE"),
    (1026, "F_NOTIFY"),
    (1027, "F_DUPFD_QUERY"),
    (1028, "F_CREATED_QUERY"),
    (1029, "F_CANCELLK"),
    (1030, "F_DUPFD_CLOEXEC"),
    (1031, "F_SETPIPE_SZ"),
    (1032, "F_GETPIPE_SZ"),
    (1033, "F_ADD_SEALS"),
    (1034, "F_GET_SEALS"),
    (1035, "F_GET_RW_HINT"),
    (1036, "F_SET_RW_HINT"),
    (1037, "F_GET_FILE_RW_HINT"),
    (1038, "F_SET_FILE_RW_HINT"),
];

pub(super) static FD_FLAGS: Names = &[(1, "FD_CLOEXEC")];

pub(super) static LEASE: Names = &[
    (0, "F_RDLCK"),
    (1, "F_WRLCK"),
    (2, "F_UNLCK"),
    (4, "F_EXLCK"),
    (8, "F_SHLCK"),
];

pub(super) static SEALS: Names = &[
    (1, "F_SEAL_SEAL"),
    (2, "F_SEAL_SHRINK"),
    (4, "F_SEAL_GROW"),
    (8, "F_SEAL_WRITE"),
    (0x10, "F_SEAL_FUTURE_WRITE"),
    (0x20, "F_SEAL_EXEC"),
];

pub(super) static NOTIFY: Names = &[
    (1, "DN_ACCESS"),
    (2, "DN_MODIFY"),
    (4, "DN_CREATE"),
    (8, "DN_DELETE"),
    (0x10, "DN_RENAME"),
    (0x20, "DN_ATTRIB"),
    (0x80000000, "DN_MULTISHOT"),
];

/// The type in st_mode.
pub(super) static FILE_TYPE: Names = &[
    (0o140000, "S_IFSOCK"),
    (0o120000, "S_IFLNK"),
    (0o100000, "S_IFREG"),
    (0o060000, "S_IFBLK"),
    (0o040000, "S_IFDIR"),
    (0o020000, "S_IFCHR"),
    (0o010000, "S_IFIFO"),
];
