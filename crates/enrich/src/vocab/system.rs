//! Names of bits and of values of calls on mounts, mappings and watches, and of what
//! stat(2) and statfs(2) say, in the order in which strace prints them.

use super::tables::Names;

/// O_CLOEXEC.
const OPEN_CLOEXEC: u64 = 0o2000000;

pub(super) static MEMFD: Names = &[
    (1, "MFD_CLOEXEC"),
    (2, "MFD_ALLOW_SEALING"),
    (4, "MFD_HUGETLB"),
    (8, "MFD_NOEXEC_SEAL"),
    (0x10, "MFD_EXEC"),
];

pub(super) static UMOUNT: Names = &[
    (1, "MNT_FORCE"),
    (2, "MNT_DETACH"),
    (4, "MNT_EXPIRE"),
    (8, "UMOUNT_NOFOLLOW"),
];

pub(super) static MOUNT: Names = &[
    (1, "MS_RDONLY"),
    (2, "MS_NOSUID"),
    (4, "MS_NODEV"),
    (8, "MS_NOEXEC"),
    (0x10, "MS_SYNCHRONOUS"),
    (0x20, "MS_REMOUNT"),
    (0x40, "MS_MANDLOCK"),
    (0x80, "MS_DIRSYNC"),
    (0x100, "MS_NOSYMFOLLOW"),
    (0x400, "MS_NOATIME"),
    (0x800, "MS_NODIRATIME"),
    (0x1000, "MS_BIND"),
    (0x2000, "MS_MOVE"),
    (0x4000, "MS_REC"),
    (0x8000, "MS_SILENT"),
    (0x10000, "MS_POSIXACL"),
    (0x20000, "MS_UNBINDABLE"),
    (0x40000, "MS_PRIVATE"),
    (0x80000, "MS_SLAVE"),
    (0x100000, "MS_SHARED"),
    (0x200000, "MS_RELATIME"),
    (0x400000, "MS_KERNMOUNT"),
    (0x800000, "MS_I_VERSION"),
    (0x1000000, "MS_STRICTATIME"),
    (0x2000000, "MS_LAZYTIME"),
    (0x4000000, "MS_SUBMOUNT"),
    (0x8000000, "MS_NOREMOTELOCK"),
    (0x10000000, "MS_NOSEC"),
    (0x20000000, "MS_BORN"),
    (0x40000000, "MS_ACTIVE"),
    (0x80000000, "MS_NOUSER"),
];

pub(super) static MOUNT_ATTR: Names = &[
    (1, "MOUNT_ATTR_RDONLY"),
    (2, "MOUNT_ATTR_NOSUID"),
    (4, "MOUNT_ATTR_NODEV"),
    (8, "MOUNT_ATTR_NOEXEC"),
    (0x80, "MOUNT_ATTR_NODIRATIME"),
    (0x100000, "MOUNT_ATTR_IDMAP"),
    (0x200000, "MOUNT_ATTR_NOSYMFOLLOW"),
];

pub(super) static OPEN_TREE: Names = &[
    (1, "OPEN_TREE_CLONE"),
    (OPEN_CLOEXEC, "OPEN_TREE_CLOEXEC"),
    (0x100, "AT_SYMLINK_NOFOLLOW"),
    (0x200, "AT_REMOVEDIR"),
    (0x400, "AT_SYMLINK_FOLLOW"),
    (0x800, "AT_NO_AUTOMOUNT"),
    (0x1000, "AT_EMPTY_PATH"),
    (0x8000, "AT_RECURSIVE"),
];

pub(super) static MOVE_MOUNT: Names = &[
    (1, "MOVE_MOUNT_F_SYMLINKS"),
    (2, "MOVE_MOUNT_F_AUTOMOUNTS"),
    (4, "MOVE_MOUNT_F_EMPTY_PATH"),
    (0x10, "MOVE_MOUNT_T_SYMLINKS"),
    (0x20, "MOVE_MOUNT_T_AUTOMOUNTS"),
    (0x40, "MOVE_MOUNT_T_EMPTY_PATH"),
    (0x100, "MOVE_MOUNT_SET_GROUP"),
    (0x200, "MOVE_MOUNT_BENEATH"),
];

pub(super) static FSOPEN: Names = &[(1, "FSOPEN_CLOEXEC")];

pub(super) static FSMOUNT: Names = &[(1, "FSMOUNT_CLOEXEC")];

pub(super) static FSPICK: Names = &[
    (1, "FSPICK_CLOEXEC"),
    (2, "FSPICK_SYMLINK_NOFOLLOW"),
    (4, "FSPICK_NO_AUTOMOUNT"),
    (8, "FSPICK_EMPTY_PATH"),
];

pub(super) static FSCONFIG: Names = &[
    (0, "FSCONFIG_SET_FLAG"),
    (1, "FSCONFIG_SET_STRING"),
    (2, "FSCONFIG_SET_BINARY"),
    (3, "FSCONFIG_SET_PATH"),
    (4, "FSCONFIG_SET_PATH_EMPTY"),
    (5, "FSCONFIG_SET_FD"),
    (6, "FSCONFIG_CMD_CREATE"),
    (7, "FSCONFIG_CMD_RECONFIGURE"),
    (8, "FSCONFIG_CMD_CREATE_EXCL"),
];

pub(super) static LISTMOUNT: Names = &[(1, "LISTMOUNT_REVERSE")];

pub(super) static AT_HANDLE: Names = &[
    (1, "AT_HANDLE_MNT_ID_UNIQUE"),
    (2, "AT_HANDLE_CONNECTABLE"),
    (0x200, "AT_HANDLE_FID"),
    (0x400, "AT_SYMLINK_FOLLOW"),
    (0x1000, "AT_EMPTY_PATH"),
];

pub(super) static MREMAP: Names = &[
    (1, "MREMAP_MAYMOVE"),
    (2, "MREMAP_FIXED"),
    (4, "MREMAP_DONTUNMAP"),
];

pub(super) static MLOCK: Names = &[(1, "MLOCK_ONFAULT")];

pub(super) static MLOCKALL: Names = &[(1, "MCL_CURRENT"), (2, "MCL_FUTURE"), (4, "MCL_ONFAULT")];

pub(super) static INOTIFY: Names = &[(0o4000, "IN_NONBLOCK"), (0o2000000, "IN_CLOEXEC")];

pub(super) static INOTIFY_EVENTS: Names = &[
    (1, "IN_ACCESS"),
    (2, "IN_MODIFY"),
    (4, "IN_ATTRIB"),
    (8, "IN_CLOSE_WRITE"),
    (0x10, "IN_CLOSE_NOWRITE"),
    (0x20, "IN_OPEN"),
    (0x40, "IN_MOVED_FROM"),
    (0x80, "IN_MOVED_TO"),
    (0x100, "IN_CREATE"),
    (0x200, "IN_DELETE"),
    (0x400, "IN_DELETE_SELF"),
    (0x800, "IN_MOVE_SELF"),
    (0x2000, "IN_UNMOUNT"),
    (0x4000, "IN_Q_OVERFLOW"),
    (0x8000, "IN_IGNORED"),
    (0x1000000, "IN_ONLYDIR"),
    (0x2000000, "IN_DONT_FOLLOW"),
    (0x4000000, "IN_EXCL_UNLINK"),
    (0x10000000, "IN_MASK_CREATE"),
    (0x20000000, "IN_MASK_ADD"),
    (0x40000000, "IN_ISDIR"),
    (0x80000000, "IN_ONESHOT"),
];

pub(super) static FANOTIFY: Names = &[
    (1, "FAN_CLOEXEC"),
    (2, "FAN_NONBLOCK"),
    (0x10, "FAN_UNLIMITED_QUEUE"),
    (0x20, "FAN_UNLIMITED_MARKS"),
    (0x40, "FAN_ENABLE_AUDIT"),
    (0x80, "FAN_REPORT_PIDFD"),
    (0x100, "FAN_REPORT_TID"),
    (0x200, "FAN_REPORT_FID"),
    (0x400, "FAN_REPORT_DIR_FID"),
    (0x800, "FAN_REPORT_NAME"),
    (0x1000, "FAN_REPORT_TARGET_FID"),
    (0x2000, "FAN_REPORT_FD_ERROR"),
    (0x4000, "FAN_REPORT_MNT"),
];

pub(super) static FANOTIFY_MARK: Names = &[
    (1, "FAN_MARK_ADD"),
    (2, "FAN_MARK_REMOVE"),
    (4, "FAN_MARK_DONT_FOLLOW"),
    (8, "FAN_MARK_ONLYDIR"),
    (0x10, "FAN_MARK_MOUNT"),
    (0x20, "FAN_MARK_IGNORED_MASK"),
    (0x40, "FAN_MARK_IGNORED_SURV_MODIFY"),
    (0x80, "FAN_MARK_FLUSH"),
    (0x100, "FAN_MARK_FILESYSTEM"),
    (0x200, "FAN_MARK_EVICTABLE"),
    (0x400, "FAN_MARK_IGNORE"),
];

pub(super) static FANOTIFY_EVENTS: Names = &[
    (1, "FAN_ACCESS"),
    (2, "FAN_MODIFY"),
    (4, "FAN_ATTRIB"),
    (8, "FAN_CLOSE_WRITE"),
    (0x10, "FAN_CLOSE_NOWRITE"),
    (0x20, "FAN_OPEN"),
    (0x40, "FAN_MOVED_FROM"),
    (0x80, "FAN_MOVED_TO"),
    (0x100, "FAN_CREATE"),
    (0x200, "FAN_DELETE"),
    (0x400, "FAN_DELETE_SELF"),
    (0x800, "FAN_MOVE_SELF"),
    (0x1000, "FAN_OPEN_EXEC"),
    (0x4000, "FAN_Q_OVERFLOW"),
    (0x8000, "FAN_FS_ERROR"),
    (0x10000, "FAN_OPEN_PERM"),
    (0x20000, "FAN_ACCESS_PERM"),
    (0x40000, "FAN_OPEN_EXEC_PERM"),
    (0x100000, "FAN_PRE_ACCESS"),
    (0x1000000, "FAN_MNT_ATTACH"),
    (0x2000000, "FAN_MNT_DETACH"),
    (0x8000000, "FAN_EVENT_ON_CHILD"),
    (0x10000000, "FAN_RENAME"),
    (0x40000000, "FAN_ONDIR"),
];

pub(super) static USERFAULTFD: Names = &[
    (1, "UFFD_USER_MODE_ONLY"),
    (0o4000, "O_NONBLOCK"),
    (0o2000000, "O_CLOEXEC"),
];

pub(super) static QUOTA: Names = &[
    (0x800001, "Q_SYNC"),
    (0x800002, "Q_QUOTAON"),
    (0x800003, "Q_QUOTAOFF"),
    (0x800004, "Q_GETFMT"),
    (0x800005, "Q_GETINFO"),
    (0x800006, "Q_SETINFO"),
    (0x800007, "Q_GETQUOTA"),
    (0x800008, "Q_SETQUOTA"),
    (0x800009, "Q_GETNEXTQUOTA"),
    (0x5801, "Q_XQUOTAON"),
    (0x5802, "Q_XQUOTAOFF"),
    (0x5803, "Q_XGETQUOTA"),
    (0x5804, "Q_XSETQLIM"),
    (0x5805, "Q_XGETQSTAT"),
    (0x5806, "Q_XQUOTARM"),
    (0x5807, "Q_XQUOTASYNC"),
    (0x5808, "Q_XGETQSTATV"),
    (0x5809, "Q_XGETNEXTQUOTA"),
];

pub(super) static QUOTA_TYPE: Names = &[(0, "USRQUOTA"), (1, "GRPQUOTA"), (2, "PRJQUOTA")];

pub(super) static SWAP: Names = &[
    (0x8000, "SWAP_FLAG_PREFER"),
    (0x10000, "SWAP_FLAG_DISCARD"),
    (0x20000, "SWAP_FLAG_DISCARD_ONCE"),
    (0x40000, "SWAP_FLAG_DISCARD_PAGES"),
];

pub(super) static STATX_ATTRIBUTES: Names = &[
    (4, "STATX_ATTR_COMPRESSED"),
    (0x10, "STATX_ATTR_IMMUTABLE"),
    (0x20, "STATX_ATTR_APPEND"),
    (0x40, "STATX_ATTR_NODUMP"),
    (0x800, "STATX_ATTR_ENCRYPTED"),
    (0x1000, "STATX_ATTR_AUTOMOUNT"),
    (0x2000, "STATX_ATTR_MOUNT_ROOT"),
    (0x100000, "STATX_ATTR_VERITY"),
    (0x200000, "STATX_ATTR_DAX"),
    (0x400000, "STATX_ATTR_WRITE_ATOMIC"),
];

pub(super) static STATFS_FLAGS: Names = &[
    (0x20, "ST_VALID"),
    (1, "ST_RDONLY"),
    (2, "ST_NOSUID"),
    (4, "ST_NODEV"),
    (8, "ST_NOEXEC"),
    (0x10, "ST_SYNCHRONOUS"),
    (0x40, "ST_MANDLOCK"),
    (0x400, "ST_NOATIME"),
    (0x800, "ST_NODIRATIME"),
    (0x1000, "ST_RELATIME"),
    (0x2000, "ST_NOSYMFOLLOW"),
];

pub(super) static FS_MAGIC: Names = &[
    (0xef53, "EXT2_SUPER_MAGIC"),
    (0x1021994, "TMPFS_MAGIC"),
    (0x58465342, "XFS_SUPER_MAGIC"),
    (0x9123683e, "BTRFS_SUPER_MAGIC"),
    (0x794c7630, "OVERLAYFS_SUPER_MAGIC"),
    (0x9fa0, "PROC_SUPER_MAGIC"),
    (0x62656572, "SYSFS_MAGIC"),
    (0x6969, "NFS_SUPER_MAGIC"),
    (0x65735546, "FUSE_SUPER_MAGIC"),
    (0x858458f6, "RAMFS_MAGIC"),
    (0x1cd1, "DEVPTS_SUPER_MAGIC"),
    (0x27e0eb, "CGROUP_SUPER_MAGIC"),
    (0x63677270, "CGROUP2_SUPER_MAGIC"),
    (0x50495045, "PIPEFS_MAGIC"),
    (0x534f434b, "SOCKFS_MAGIC"),
    (0x9041934, "ANON_INODE_FS_MAGIC"),
    (0x6e736673, "NSFS_MAGIC"),
    (0xf2f52010, "F2FS_SUPER_MAGIC"),
    (0x4d44, "MSDOS_SUPER_MAGIC"),
    (0x9660, "ISOFS_SUPER_MAGIC"),
    (0x73717368, "SQUASHFS_MAGIC"),
    (0x1021997, "V9FS_MAGIC"),
    (0x64626720, "DEBUGFS_MAGIC"),
    (0x74726163, "TRACEFS_MAGIC"),
    (0xcafe4a11, "BPF_FS_MAGIC"),
    (0x19800202, "MQUEUE_MAGIC"),
    (0x958458f6, "HUGETLBFS_MAGIC"),
];

pub(super) static OWNER_TYPE: Names =
    &[(0, "F_OWNER_TID"), (1, "F_OWNER_PID"), (2, "F_OWNER_PGRP")];

pub(super) static WRITE_LIFE: Names = &[
    (0, "RWH_WRITE_LIFE_NOT_SET"),
    (1, "RWH_WRITE_LIFE_NONE"),
    (2, "RWH_WRITE_LIFE_SHORT"),
    (3, "RWH_WRITE_LIFE_MEDIUM"),
    (4, "RWH_WRITE_LIFE_LONG"),
    (5, "RWH_WRITE_LIFE_EXTREME"),
];
