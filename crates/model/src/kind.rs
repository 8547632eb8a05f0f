//! The purpose of a call, independent of interface and variant: column kind of `bpf/syscalls.def`
//! and `bpf/operations.def`.

macro_rules! kinds {
    ($($(#[doc = $doc:literal])* $kind:ident,)*) => {
        /// The purpose of a call.
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
    };
}

kinds! {
    /// Moves bytes out of a file into memory.
    Read,
    /// Moves bytes out of memory into a file.
    Write,
    /// Moves bytes from descriptor to descriptor.
    Transfer,
    /// Makes one file durable.
    Sync,
    /// Makes everything, or everything of a file system, durable.
    SyncAll,
    /// Starts or awaits the write-back of a range.
    SyncRange,
    /// Reserves or frees room.
    Allocate,
    /// Announces a read to the kernel.
    Advise,
    /// Opens or creates.
    Open,
    /// Closes one descriptor.
    Close,
    /// Closes a range of descriptors.
    CloseRange,
    /// Moves or asks for the position.
    Seek,
    /// Sets the length.
    Truncate,
    /// Gives a file another name.
    Rename,
    /// Removes a name.
    Unlink,
    /// Reads what an inode says, by path or descriptor.
    Stat,
    /// Asks whether a path may be used.
    Access,
    /// Reads a symbolic link.
    Readlink,
    /// Asks about a file system.
    Statfs,
    /// Changes owner, mode or times.
    SetAttr,
    /// Gives a file one more name.
    Link,
    /// Makes a symbolic link.
    Symlink,
    /// Copies a descriptor.
    Dup,
    /// Several things to a descriptor, locks and copies among them.
    Fcntl,
    /// Locks a file.
    Flock,
    /// Asks a driver or a file system.
    Ioctl,
    /// Makes a directory.
    Mkdir,
    /// Removes a directory.
    Rmdir,
    /// Makes a special file.
    Mknod,
    /// Reads entries of a directory.
    ReadDir,
    /// Enters a directory.
    Chdir,
    /// Reads extended attributes.
    GetXattr,
    /// Changes extended attributes.
    SetXattr,
    /// Maps memory.
    Mmap,
    /// Unmaps memory.
    Munmap,
    /// Writes mapped pages back.
    Msync,
    /// Announces the use of mapped memory to the kernel.
    Madvise,
    /// Connects a socket.
    Connect,
    /// Takes a connection in.
    Accept,
    /// Moves bytes into a socket, by a call of sockets.
    Send,
    /// Moves bytes out of a socket, by a call of sockets.
    Receive,
    /// Waits until descriptors are ready.
    Poll,
    /// Waits for memory to change, or wakes threads that do.
    Futex,
    /// Waits for a time, or a signal.
    Sleep,
    /// Waits for a child process.
    WaitChild,
}

impl Kind {
    /// The kind with an index.
    pub fn at(index: usize) -> Option<Self> {
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
}

/// The effect of a call on stored data. Latencies of different purposes are not comparable: a read
/// of cached bytes takes a microsecond, a sync as long as the device does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// Moves bytes out of a file.
    Read,
    /// Moves bytes into a file.
    Write,
    /// Makes data durable.
    Sync,
    /// Finds, opens, describes or changes files without moving their bytes.
    Metadata,
    /// Anything else, such as mapping memory, locking, or waiting for operations.
    Other,
}

impl Purpose {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Read,
        Self::Write,
        Self::Sync,
        Self::Metadata,
        Self::Other,
    ];

    /// Name in addresses and answers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Sync => "sync",
            Self::Metadata => "metadata",
            Self::Other => "other",
        }
    }
}

impl Kind {
    /// The effect of calls of this kind on stored data.
    pub fn purpose(self) -> Purpose {
        match self {
            Kind::Read => Purpose::Read,
            Kind::Write | Kind::Transfer => Purpose::Write,
            Kind::Sync | Kind::SyncAll | Kind::SyncRange | Kind::Msync => Purpose::Sync,
            kind if kind.is_metadata() => Purpose::Metadata,
            Kind::Allocate => Purpose::Metadata,
            _ => Purpose::Other,
        }
    }
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
    pub fn has_index(self, index: usize) -> bool {
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
    fn sets() {
        const { assert!(Kind::COUNT <= 64, "kinds fit a set") };
        const SET: Kinds = Kinds::of(&[Kind::Read, Kind::Other]);
        assert!(SET.has(Kind::Read) && SET.has(Kind::Other) && !SET.has(Kind::Write));
    }
}
