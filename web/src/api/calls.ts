// Generated from the Rust types of fathom: FATHOM_BLESS=1 ./do test regenerates it.

/** What a call does to stored data. */
export type Purpose = "read" | "write" | "sync" | "metadata" | "other";

/** The calls of each purpose, separated by spaces; all others are "other". */
export const CALLS: Readonly<Record<Exclude<Purpose, "other">, string>> = {
	read: "read readv pread64 preadv preadv2 IORING_OP_READV IORING_OP_READ_FIXED IORING_OP_READ IORING_OP_READ_MULTISHOT IORING_OP_READV_FIXED IOCB_CMD_PREAD IOCB_CMD_PREADV",
	write: "write writev pwrite64 pwritev pwritev2 copy_file_range sendfile splice IORING_OP_WRITEV IORING_OP_WRITE_FIXED IORING_OP_WRITE IORING_OP_SPLICE IORING_OP_WRITEV_FIXED IOCB_CMD_PWRITE IOCB_CMD_PWRITEV",
	sync: "fsync fdatasync sync syncfs sync_file_range msync IORING_OP_FSYNC IORING_OP_SYNC_FILE_RANGE IOCB_CMD_FSYNC IOCB_CMD_FDSYNC",
	metadata: "fallocate creat open openat openat2 close close_range lseek truncate ftruncate rename renameat renameat2 unlink unlinkat readlink readlinkat stat lstat fstat newfstatat statx statfs fstatfs access faccessat faccessat2 chmod fchmod fchmodat fchmodat2 chown lchown fchown fchownat utime utimes futimesat utimensat link linkat symlink symlinkat mkdir mkdirat rmdir mknod mknodat getdents getdents64 chdir fchdir getxattr lgetxattr fgetxattr setxattr lsetxattr fsetxattr listxattr llistxattr flistxattr removexattr lremovexattr fremovexattr IORING_OP_FALLOCATE IORING_OP_OPENAT IORING_OP_CLOSE IORING_OP_STATX IORING_OP_OPENAT2 IORING_OP_RENAMEAT IORING_OP_UNLINKAT IORING_OP_MKDIRAT IORING_OP_SYMLINKAT IORING_OP_LINKAT IORING_OP_FSETXATTR IORING_OP_SETXATTR IORING_OP_FGETXATTR IORING_OP_GETXATTR IORING_OP_FTRUNCATE",
};
