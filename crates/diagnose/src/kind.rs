//! What a call is for, whatever interface and variant it came by.

use std::collections::HashMap;
use std::sync::LazyLock;

use fathom_model::syscalls::{Arg, SYSCALLS};

macro_rules! kinds {
    ($($(#[doc = $doc:literal])* $kind:ident: $($name:literal)*,)*) => {
        /// What a call is for.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Kind {
            $($(#[doc = $doc])* $kind,)*
            /// Anything else.
            Other,
        }

        impl Kind {
            /// How many there are.
            pub const COUNT: usize = Kind::Other as usize + 1;
            const ALL: [Kind; Kind::COUNT] = [$(Kind::$kind,)* Kind::Other];
        }

        const NAMES: &[(&str, Kind)] = &[$($(($name, Kind::$kind),)*)*];
    };
}

kinds! {
    /// Moves bytes out of a file into memory.
    Read: "read" "readv" "pread64" "preadv" "preadv2" "IORING_OP_READ" "IORING_OP_READV"
        "IORING_OP_READ_FIXED" "IORING_OP_READV_FIXED" "IORING_OP_READ_MULTISHOT"
        "IOCB_CMD_PREAD" "IOCB_CMD_PREADV",
    /// Moves bytes out of memory into a file.
    Write: "write" "writev" "pwrite64" "pwritev" "pwritev2" "IORING_OP_WRITE"
        "IORING_OP_WRITEV" "IORING_OP_WRITE_FIXED" "IORING_OP_WRITEV_FIXED"
        "IOCB_CMD_PWRITE" "IOCB_CMD_PWRITEV",
    /// Moves bytes from descriptor to descriptor.
    Transfer: "sendfile" "splice" "copy_file_range" "IORING_OP_SPLICE",
    /// Makes one file durable.
    Sync: "fsync" "fdatasync" "IORING_OP_FSYNC" "IOCB_CMD_FSYNC" "IOCB_CMD_FDSYNC",
    /// Makes everything, or everything of a file system, durable.
    SyncAll: "sync" "syncfs",
    /// Starts or awaits the write-back of a range.
    SyncRange: "sync_file_range" "IORING_OP_SYNC_FILE_RANGE",
    /// Reserves or frees room.
    Allocate: "fallocate" "IORING_OP_FALLOCATE",
    /// Tells the kernel what will be read.
    Advise: "fadvise64" "readahead" "IORING_OP_FADVISE",
    /// Opens or creates.
    Open: "open" "creat" "openat" "openat2" "IORING_OP_OPENAT" "IORING_OP_OPENAT2",
    /// Closes one descriptor.
    Close: "close" "IORING_OP_CLOSE",
    /// Closes a range of descriptors.
    CloseRange: "close_range",
    /// Moves or asks for the position.
    Seek: "lseek",
    /// Sets the length.
    Truncate: "truncate" "ftruncate" "IORING_OP_FTRUNCATE",
    /// Gives a file another name.
    Rename: "rename" "renameat" "renameat2" "IORING_OP_RENAMEAT",
    /// Removes a name.
    Unlink: "unlink" "unlinkat" "IORING_OP_UNLINKAT",
    /// Reads what an inode says, by path or descriptor.
    Stat: "stat" "lstat" "fstat" "newfstatat" "statx" "IORING_OP_STATX",
    /// Asks whether a path may be used.
    Access: "access" "faccessat" "faccessat2",
    /// Reads a symbolic link.
    Readlink: "readlink" "readlinkat",
    /// Asks about a file system.
    Statfs: "statfs" "fstatfs",
    /// Changes owner, mode or times.
    SetAttr: "chmod" "fchmod" "fchmodat" "fchmodat2" "chown" "lchown" "fchown" "fchownat"
        "utime" "utimes" "futimesat" "utimensat",
    /// Gives a file one more name.
    Link: "link" "linkat" "IORING_OP_LINKAT",
    /// Makes a symbolic link.
    Symlink: "symlink" "symlinkat" "IORING_OP_SYMLINKAT",
    /// Copies a descriptor.
    Dup: "dup" "dup2" "dup3",
    /// Several things to a descriptor, locks and copies among them.
    Fcntl: "fcntl",
    /// Locks a file.
    Flock: "flock",
    /// Asks a driver or a file system.
    Ioctl: "ioctl",
    /// Makes a directory.
    Mkdir: "mkdir" "mkdirat" "IORING_OP_MKDIRAT",
    /// Removes a directory.
    Rmdir: "rmdir",
    /// Makes a special file.
    Mknod: "mknod" "mknodat",
    /// Reads entries of a directory.
    ReadDir: "getdents" "getdents64",
    /// Enters a directory.
    Chdir: "chdir" "fchdir",
    /// Reads extended attributes.
    GetXattr: "getxattr" "lgetxattr" "fgetxattr" "listxattr" "llistxattr" "flistxattr"
        "IORING_OP_GETXATTR" "IORING_OP_FGETXATTR",
    /// Changes extended attributes.
    SetXattr: "setxattr" "lsetxattr" "fsetxattr" "removexattr" "lremovexattr" "fremovexattr"
        "IORING_OP_SETXATTR" "IORING_OP_FSETXATTR",
    /// Maps memory.
    Mmap: "mmap",
    /// Unmaps memory.
    Munmap: "munmap",
    /// Writes mapped pages back.
    Msync: "msync",
    /// Tells the kernel how mapped memory will be used.
    Madvise: "madvise" "IORING_OP_MADVISE",
}

impl Kind {
    /// The kind of a call by the name that column `syscall` has.
    pub fn of(name: &[u8]) -> Self {
        static INDEX: LazyLock<HashMap<&[u8], Kind>> =
            LazyLock::new(|| NAMES.iter().map(|(n, k)| (n.as_bytes(), *k)).collect());
        INDEX.get(name).copied().unwrap_or(Kind::Other)
    }

    /// The kind with an index.
    pub(crate) fn at(index: usize) -> Option<Self> {
        Self::ALL.get(index).copied()
    }

    /// Whether the kind moves bytes of files.
    pub fn is_data(self) -> bool {
        matches!(self, Kind::Read | Kind::Write | Kind::Transfer)
    }

    /// Whether the kind finds, opens or describes files without moving their
    /// bytes.
    pub fn is_metadata(self) -> bool {
        use Kind::*;
        matches!(
            self,
            Open | Close
                | CloseRange
                | Seek
                | Truncate
                | Rename
                | Unlink
                | Stat
                | Access
                | Readlink
                | Statfs
                | SetAttr
                | Link
                | Symlink
                | Mkdir
                | Rmdir
                | Mknod
                | ReadDir
                | Chdir
                | GetXattr
                | SetXattr
        )
    }

    /// Whether the kind looks up a path and fails with ENOENT when it is not
    /// there, without meaning to make it.
    pub fn is_lookup(self) -> bool {
        use Kind::*;
        matches!(self, Open | Stat | Access | Readlink | GetXattr | Chdir)
    }
}

/// Whether a call says itself where in the file it works (`pread64` and its
/// kin), rather than at the position of the descriptor.
pub fn is_positional(name: &[u8]) -> bool {
    static POSITIONAL: LazyLock<std::collections::HashSet<&[u8]>> = LazyLock::new(|| {
        let says = |arg: &Arg| matches!(arg, Arg::Offset | Arg::OffsetPtr);
        let calls = SYSCALLS.iter().filter(|call| call.args.iter().any(says));
        calls.map(|call| call.name.as_bytes()).collect()
    });
    POSITIONAL.contains(name)
}

/// A set of kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kinds(u64);

impl Kinds {
    /// None.
    pub const NONE: Kinds = Kinds(0);
    /// Every kind.
    pub const ALL: Kinds = Kinds(u64::MAX);

    /// The kinds of a list.
    pub const fn of(kinds: &[Kind]) -> Self {
        let (mut set, mut i) = (0, 0);
        while i < kinds.len() {
            set |= 1 << kinds[i] as u64;
            i += 1;
        }
        Kinds(set)
    }

    /// Whether the kind with that index is in the set.
    pub(crate) fn has_index(self, index: usize) -> bool {
        index < Kind::COUNT && self.0 >> index & 1 == 1
    }

    /// Whether a kind is in the set.
    pub fn has(self, kind: Kind) -> bool {
        self.0 >> kind as u64 & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_recorded_call_once() {
        let mut seen = std::collections::HashSet::new();
        for (name, _) in NAMES {
            assert!(seen.insert(name), "{name} twice");
            assert!(
                SYSCALLS.iter().any(|call| call.name == *name),
                "{name} is not recorded"
            );
        }
        const { assert!(Kind::COUNT <= 64, "kinds fit a set") };
    }

    #[test]
    fn positions_are_told_by_the_arguments() {
        for name in ["pread64", "pwritev2", "IORING_OP_READ"] {
            assert!(is_positional(name.as_bytes()), "{name}");
        }
        for name in ["read", "writev", "lseek"] {
            assert!(!is_positional(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn sets() {
        const SET: Kinds = Kinds::of(&[Kind::Read, Kind::Other]);
        assert!(SET.has(Kind::Read) && SET.has(Kind::Other) && !SET.has(Kind::Write));
    }
}
