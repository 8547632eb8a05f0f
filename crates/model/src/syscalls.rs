//! The calls and operations that are recorded: generated from
//! `bpf/syscalls.def` and `bpf/operations.def`, and how each is laid out in a
//! record.

mod unrecorded;

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::abi::{
    AIO_OPERATIONS, CallDesc, DESC_CHDIR, DESC_POSITION, DESC_RENAMES, DESC_RET_ADDR,
    DESC_RET_BYTES, DESC_RET_FD, DESC_WIDE, DESC_WRITES, FLOW_FD, FLOW_PAIR, FLOW_RESULT,
    MAX_EXTRA, NO_ARG, PLAIN_FD, PLAIN_OFFSET, PLAIN_SIZE, RESULT_ARG, SIGNED_ARG, STREAM_IN,
    STREAM_OUT, WATCH_CALL,
};
use crate::kind::Kind;
pub use unrecorded::{UNRECORDED, Unrecorded};

/// The kind of work that a call requests (as in DIO's paper, table 1, except for `memory` and
/// `async`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Moves or persists the bytes of files.
    Data,
    /// Opens, closes, names, describes files.
    Metadata,
    /// Makes, removes, lists, enters directories.
    Directory,
    /// Extended attributes.
    Xattr,
    /// Mapped memory.
    Memory,
    /// Linux AIO and io_uring.
    Async,
    /// Makes, connects and uses sockets and pipes.
    Socket,
    /// Waits for descriptors, memory, time, or children.
    Wait,
}

impl Class {
    /// Every class.
    pub const ALL: [Class; 8] = [
        Class::Data,
        Class::Metadata,
        Class::Directory,
        Class::Xattr,
        Class::Memory,
        Class::Async,
        Class::Socket,
        Class::Wait,
    ];

    /// Name in table `syscalls` and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Class::Data => "data",
            Class::Metadata => "metadata",
            Class::Directory => "directory",
            Class::Xattr => "xattr",
            Class::Memory => "memory",
            Class::Async => "async",
            Class::Socket => "socket",
            Class::Wait => "wait",
        }
    }
}

/// The meaning of a return value that is not an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returns {
    /// Nothing: 0.
    Zero,
    /// Bytes moved.
    Bytes,
    /// A new descriptor.
    Fd,
    /// A position in the file.
    Offset,
    /// A number.
    Count,
    /// An address: only -4095 to -1 are errors.
    Addr,
    /// Permissions.
    Mode,
}

/// By which interface a request reached the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Api {
    /// A system call.
    Syscall,
    /// An entry in the submission queue of an io_uring.
    IoUring,
    /// An iocb of Linux AIO.
    Aio,
}

impl Api {
    /// Name in table `syscalls`.
    pub fn name(self) -> &'static str {
        match self {
            Api::Syscall => "syscall",
            Api::IoUring => "io_uring",
            Api::Aio => "aio",
        }
    }
}

/// How the kernel takes a number that a register holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// 32 bits with a sign.
    Int,
    /// 32 bits.
    Uint,
    /// 64 bits with a sign.
    Signed,
    /// 64 bits.
    Unsigned,
}

impl Number {
    /// The number that `register` holds, `None` when 64 bits with a sign do not
    /// hold it.
    pub fn of(self, register: u64) -> Option<i64> {
        match self {
            Number::Int => Some(i64::from(register as u32 as i32)),
            Number::Uint => Some(i64::from(register as u32)),
            Number::Signed => Some(register as i64),
            Number::Unsigned => i64::try_from(register).ok(),
        }
    }

    fn is_signed(self) -> bool {
        matches!(self, Number::Int | Number::Signed)
    }
}

/// Whether numbers of this kind have 64 bits; others have 32.
fn is_64_bit(kind: &str) -> bool {
    ["hex", "long", "ulong", "lock", "map", "MOUNT", "FAN_EVENT"].contains(&kind)
}

/// The role of an argument; the words of `bpf/syscalls.def`, which explains
/// them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Arg {
    Ignored,
    Fd,
    Fd2,
    Dirfd,
    Dirfd2,
    Path,
    Path2,
    Target,
    Name,
    Size,
    Iov,
    Iovcnt,
    Offset,
    Offset2,
    OffsetPtr,
    OffsetPtr2,
    How,
    Seek,
    Length,
    Stat,
    Statx,
    Ring,
    OffsetHi,
    SizeHi,
    Pages,
    Stat64,
    Buf,
    Utimbuf,
    Timevals,
    Timespecs,
    /// The value of an extended attribute.
    AttrValue,
    /// A struct msghdr, and an array of struct mmsghdr.
    Message,
    Messages,
    /// A text that is no path.
    Text(&'static str),
    /// A struct that is kept, or its beginning.
    Struct {
        name: &'static str,
        kind: &'static str,
    },
    /// A struct that the call may overwrite, as it was at the entry.
    Early {
        name: &'static str,
        kind: &'static str,
    },
    /// A number: `flags` goes to column flags, others to args.
    Value {
        name: &'static str,
        kind: &'static str,
    },
}

/// A recorded call or operation.
#[derive(Debug)]
pub struct Syscall {
    /// Name, as in strace; of an operation as in the kernel's headers.
    pub name: &'static str,
    /// By which interface it is made.
    pub api: Api,
    /// Number on x86-64; of an operation its opcode, as on all architectures.
    pub x86_64: Option<u16>,
    /// Number on arm64.
    pub arm64: Option<u16>,
    /// Recorded only with all file types, although the call has no descriptor, or if it is named.
    pub all_types: bool,
    /// Kind of work.
    pub class: Class,
    /// Its purpose.
    pub kind: Kind,
    /// Meaning of the return value.
    pub returns: Returns,
    /// Roles of the arguments, in order.
    pub args: &'static [Arg],
    /// Whether a null path means the file behind the descriptor.
    pub null_path: bool,
    /// How the size is taken, [`Arg::Size`] or [`Arg::Length`].
    pub size: Number,
    /// How the position is taken, [`Arg::Offset`].
    pub offset: Number,
}

/// A call of 32-bit x86 programs: a row of `bpf/i386.def`.
#[derive(Debug)]
pub struct I386Call {
    /// Number on i386.
    pub number: u16,
    /// Name of the call as which it is recorded.
    pub name: &'static str,
    /// Roles of its arguments, where they are others than that call's.
    pub args: Option<&'static [Arg]>,
}

impl I386Call {
    /// The call as which it is recorded, an index into [`SYSCALLS`], and the descriptor with the
    /// kernel side's instructions, as selected.
    pub fn desc(&self) -> Option<(usize, CallDesc)> {
        let index = SYSCALLS.iter().position(|call| call.name == self.name)?;
        let call = SYSCALLS.get(index)?;
        let own = Syscall {
            args: self.args.unwrap_or(call.args),
            ..*call
        };
        let mut desc = own.desc(index);
        // Laid out as the call itself, whatever its arguments lack.
        desc.flags = call.desc(index).flags;
        // Its arguments are in other registers.
        desc.plain = 0;
        desc.moves = moves(&desc).into();
        if u32::from(desc.size_hi) == NO_ARG && call.size.is_signed() {
            desc.size_hi = SIGNED_ARG as u8;
        }
        Some((index, desc))
    }
}

include!(concat!(env!("OUT_DIR"), "/syscalls.rs"));
include!(concat!(env!("OUT_DIR"), "/i386.rs"));

/// Bytes of struct sockaddr_storage, of which more than any address has.
const SOCKADDR_BYTES: u8 = 128;
/// Bytes of the longest value of an option of a socket that is kept.
const SOCKOPT_BYTES: u8 = 16;
/// Descriptors that poll waits for which are kept.
const MAX_POLLFDS: u8 = 16;
/// struct epoll_event is packed on x86 only.
const EPOLL_EVENT_BYTES: u8 = if cfg!(target_arch = "x86_64") { 12 } else { 16 };

/// A struct that a call keeps.
struct Structure {
    /// Position of the argument that points to it.
    at: u8,
    /// Bytes that are kept at most.
    bytes: u8,
    /// 1: by a call that succeeds, 2: by one that returns more than 0; 0: by the program.
    filled: u8,
    length: Length,
    /// 32-bit programs have the same.
    any_abi: bool,
}

/// The limit of a struct.
enum Length {
    Fixed,
    /// The next argument, in units of so many bytes.
    Units(u8),
    /// The number that the next argument points to.
    Room,
}

/// Where a record keeps a numeric argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// `CallRecord::aux`, 32 bits.
    Aux,
    /// `WideCallRecord::extra[i]`.
    Extra(usize),
}

/// A numeric argument ([`Arg::Value`]) and where a record keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value {
    /// Position in the call, from 0.
    pub arg: usize,
    /// Name in column args.
    pub name: &'static str,
    /// How it is decoded.
    pub kind: &'static str,
    /// Where a record keeps it.
    pub place: Place,
}

impl Syscall {
    /// Index of the call in [`SYSCALLS`] by its name; `fstatat`, as some know
    /// it, is `newfstatat`.
    pub fn index_of(name: &str) -> Option<usize> {
        let name = if name == "fstatat" {
            "newfstatat"
        } else {
            name
        };
        SYSCALLS.iter().position(|s| s.name == name)
    }

    /// The call that column `syscall` of the tables names.
    pub fn named(name: &[u8]) -> Option<&'static Syscall> {
        static INDEX: LazyLock<HashMap<&[u8], &Syscall>> =
            LazyLock::new(|| SYSCALLS.iter().map(|s| (s.name.as_bytes(), s)).collect());
        INDEX.get(name).copied()
    }

    /// Number on the machine that this is built for.
    pub fn number(&self) -> Option<u16> {
        if cfg!(target_arch = "aarch64") {
            self.arm64
        } else {
            self.x86_64
        }
    }

    /// Place among the descriptors of operations; `None` for a system call.
    pub fn operation(&self) -> Option<u16> {
        let number = self.number()?;
        match self.api {
            Api::Syscall => None,
            Api::IoUring => Some(number),
            Api::Aio => Some(AIO_OPERATIONS as u16 + number),
        }
    }

    /// Position of the argument `role`, from 0.
    pub fn position(&self, role: Arg) -> Option<usize> {
        self.args.iter().position(|a| *a == role)
    }

    /// Whether the call moves data into the file or to a peer.
    pub fn writes(&self) -> bool {
        self.kind == Kind::Write || self.name.contains("_SEND")
    }

    /// Whether the call says itself where in the file it works (`pread64` and its
    /// siblings), rather than at the position of the descriptor.
    pub fn is_positional(&self) -> bool {
        let says = |arg: &Arg| matches!(arg, Arg::Offset | Arg::OffsetPtr);
        self.args.iter().any(says)
    }

    /// Whether the call gives names to files, or mounts to directories.
    fn renames(&self) -> bool {
        matches!(self.kind, Kind::Rename | Kind::Link)
            || ["mount", "umount2", "move_mount", "pivot_root"].contains(&self.name)
            // By an operation.
            || self.name == "io_uring_enter"
    }

    /// Position of the address whose mapping identifies the file of the call, for calls that do not
    /// change the mapping.
    fn mapped_address(&self) -> u8 {
        // For a moved mapping, its current address.
        if self.returns == Returns::Addr && self.position(Arg::Fd).is_none() {
            return RESULT_ARG as u8;
        }
        self.args
            .iter()
            .position(|a| matches!(a, Arg::Value { kind: "map", .. }))
            .map_or(NO_ARG as u8, |i| i as u8)
    }

    /// The struct that the call keeps.
    fn structure(&self) -> Option<Structure> {
        self.args.iter().enumerate().find_map(|(at, arg)| {
            let (bytes, filled, length, any_abi) = match arg {
                Arg::Utimbuf => (16, 0, Length::Fixed, false),
                Arg::Timevals | Arg::Timespecs => (32, 0, Length::Fixed, false),
                // Up to the time of the last change.
                Arg::Stat => (104, 1, Length::Fixed, false),
                // Up to the device.
                Arg::Statx => (144, 1, Length::Fixed, false),
                Arg::Struct { kind, .. } => match *kind {
                    // Up to the flags.
                    "statfs" => (88, 1, Length::Fixed, false),
                    "timespec" | "xattr_args" | "cachestat_range" => (16, 0, Length::Fixed, false),
                    "mount_attr" => (32, 0, Length::Fixed, false),
                    "file_attr" => {
                        let filled = u8::from(self.name == "file_getattr");
                        (24, filled, Length::Fixed, false)
                    }
                    // Its beginning.
                    "file_handle" => (8, 0, Length::Fixed, false),
                    "fds" => (8, 1, Length::Fixed, true),
                    "wstatus" => (4, 2, Length::Fixed, true),
                    "epoll_event" => (EPOLL_EVENT_BYTES, 0, Length::Fixed, true),
                    "sockaddr" => (SOCKADDR_BYTES, 0, Length::Units(1), true),
                    "taken_sockaddr" => (SOCKADDR_BYTES, 1, Length::Room, true),
                    "sockopt" => (SOCKOPT_BYTES, 0, Length::Units(1), true),
                    "taken_sockopt" => (SOCKOPT_BYTES, 1, Length::Room, true),
                    "pollfds" => (MAX_POLLFDS * 8, 0, Length::Units(8), true),
                    _ => return None,
                },
                _ => return None,
            };
            Some(Structure {
                at: at as u8,
                bytes,
                filled,
                length,
                any_abi,
            })
        })
    }

    /// Which socket or pipe the call has to say something of.
    fn flow(&self) -> u32 {
        match self.name {
            "socket" | "accept" | "accept4" => FLOW_RESULT,
            "connect" | "shutdown" => FLOW_FD,
            "socketpair" | "pipe" | "pipe2" => FLOW_PAIR,
            _ => 0,
        }
    }

    /// Which way bytes go between the call and its descriptor, and the second one, if these are
    /// sockets or pipes.
    fn streams(&self) -> (u32, u32) {
        const LOST: u32 = STREAM_IN | STREAM_OUT;
        match (self.api, self.kind) {
            (Api::Syscall, Kind::Read) => (STREAM_IN, 0),
            (Api::Syscall, Kind::Write) => (STREAM_OUT, 0),
            (Api::Syscall, Kind::Receive) if self.returns == Returns::Bytes => (STREAM_IN, 0),
            (Api::Syscall, Kind::Send) if self.returns == Returns::Bytes => (STREAM_OUT, 0),
            (Api::Syscall, Kind::Receive | Kind::Send) => (LOST, 0),
            (Api::Syscall, Kind::Transfer) => (STREAM_IN, STREAM_OUT),
            _ => match self.name {
                "tee" => (LOST, LOST),
                "vmsplice" => (LOST, 0),
                _ => (0, 0),
            },
        }
    }

    /// Whether the call moves bytes of sockets or pipes.
    pub fn moves_streams(&self) -> bool {
        self.streams() != (0, 0)
    }

    /// The struct that is read at the entry of the call: its argument, and its bytes.
    pub fn early(&self) -> Option<(u8, u8)> {
        self.args.iter().enumerate().find_map(|(at, arg)| {
            let bytes = match arg {
                Arg::Early {
                    kind: "itimerspec", ..
                } => 32,
                Arg::Early { .. } => 16,
                _ => return None,
            };
            Some((at as u8, bytes))
        })
    }

    /// Position of the second text (`0`) or of the one after it: where they stand
    /// in a record.
    fn text(&self, which: usize) -> u8 {
        let mut texts = self
            .args
            .iter()
            .enumerate()
            .filter(|(_, a)| matches!(a, Arg::Name | Arg::Text(_)));
        texts.nth(which).map_or(NO_ARG as u8, |(at, _)| at as u8)
    }

    /// Whether the I/O takes place at the position of the descriptor and
    /// moves it.
    pub fn uses_position(&self) -> bool {
        self.api == Api::Syscall
            && matches!(self.kind, Kind::Read | Kind::Write)
            && !self.is_positional()
    }

    /// The numeric arguments and their places: flags in aux if there are any,
    /// else the first 32-bit one; the rest in extra.
    pub fn values(&self) -> Vec<Value> {
        let narrow = |a: &Arg| matches!(a, Arg::Value { kind, .. } if !is_64_bit(kind));
        let in_aux = self
            .args
            .iter()
            .position(|a| matches!(a, Arg::Value { name: "flags", .. }) && narrow(a))
            .or_else(|| self.args.iter().position(narrow));
        let mut extra = 0;
        let mut values = Vec::new();
        for (arg, role) in self.args.iter().enumerate() {
            let Arg::Value { name, kind } = *role else {
                continue;
            };
            let place = if Some(arg) == in_aux {
                Place::Aux
            } else {
                extra += 1;
                Place::Extra(extra - 1)
            };
            values.push(Value {
                arg,
                name,
                kind,
                place,
            });
        }
        values
    }

    /// The descriptor with instructions for the kernel side on how to record the call, as
    /// selected.
    pub fn desc(&self, index: usize) -> CallDesc {
        let at = |role| self.position(role).map_or(NO_ARG as u8, |i| i as u8);
        let either = |a: u8, b: u8| if a == NO_ARG as u8 { b } else { a };
        let mut aux = NO_ARG as u8;
        let mut extra = [NO_ARG as u8; MAX_EXTRA as usize];
        let mut signed_extra = 0;
        for value in self.values() {
            match value.place {
                Place::Aux => aux = value.arg as u8,
                Place::Extra(i) => {
                    if let Some(slot) = extra.get_mut(i) {
                        *slot = value.arg as u8;
                        signed_extra |= u8::from(value.kind == "long") << i;
                    }
                }
            }
        }
        let string1 = either(at(Arg::Path), at(Arg::Target));
        let string2 = either(at(Arg::Path2), self.text(0));
        let none = NO_ARG as u8;
        let structure = self.structure();
        let (early, early_bytes) = self.early().unwrap_or((none, 0));
        let (structure_len, structure_unit, structure_room) = match &structure {
            Some(Structure { at, length, .. }) => match length {
                Length::Fixed => (none, 0, 0),
                Length::Units(bytes) => (at + 1, *bytes, 0),
                Length::Room => (at + 1, 1, 1),
            },
            None => (none, 0, 0),
        };
        let any_abi = structure.as_ref().is_some_and(|s| s.any_abi);
        let (structure, structure_bytes, structure_out) =
            structure.map_or((none, 0, 0), |s| (s.at, s.bytes, s.filled));
        let wide = string1 != none
            || string2 != none
            || structure != none
            || early != none
            || at(Arg::Messages) != none
            || self.flow() != 0
            || at(Arg::Fd2) != none
            || at(Arg::OffsetPtr) != none
            || extra.iter().any(|e| *e != none);
        let mut flags = 0;
        let mut set = |flag: u32, on: bool| flags |= if on { flag as u8 } else { 0 };
        set(DESC_RET_BYTES, self.returns == Returns::Bytes);
        set(DESC_RET_FD, self.returns == Returns::Fd);
        set(DESC_RET_ADDR, self.returns == Returns::Addr);
        set(DESC_POSITION, self.uses_position());
        set(DESC_WIDE, wide);
        set(DESC_RENAMES, self.renames());
        set(DESC_WRITES, self.writes());
        let by_path = self.position(Arg::Path).is_some();
        let chroots = self.name == "chroot";
        set(DESC_CHDIR, chroots || self.kind == Kind::Chdir && by_path);
        let desc = CallDesc {
            selected: WATCH_CALL as u8,
            syscall: index as u16,
            flags,
            fd: at(Arg::Fd),
            fd2: at(Arg::Fd2),
            ring: at(Arg::Ring),
            dirfd1: at(Arg::Dirfd),
            string1,
            dirfd2: at(Arg::Dirfd2),
            string2,
            size: either(either(at(Arg::Size), at(Arg::Length)), none),
            iov: at(Arg::Iov),
            iovcnt: at(Arg::Iovcnt),
            offset: either(either(at(Arg::Offset), at(Arg::Seek)), at(Arg::Pages)),
            offset_ptr: at(Arg::OffsetPtr),
            offset_ptr2: at(Arg::OffsetPtr2),
            aux,
            extra,
            stat: either(at(Arg::Stat), at(Arg::Stat64)),
            statx: at(Arg::Statx),
            how: at(Arg::How),
            path1: by_path.into(),
            path2: u8::from(self.position(Arg::Path2).is_some()),
            releases: u8::from(self.api == Api::Syscall && self.kind == Kind::Close),
            seeks: u8::from(self.position(Arg::Seek).is_some()),
            offset_hi: at(Arg::OffsetHi),
            offset_shift: if at(Arg::Pages) == none { 0 } else { 12 },
            size_hi: at(Arg::SizeHi),
            stat_ino: if at(Arg::Stat64) == none { 8 } else { 88 },
            offset2: at(Arg::Offset2),
            all_types: self.all_types.into(),
            mapped: self.mapped_address(),
            buf: at(Arg::Buf),
            lock: self
                .args
                .iter()
                .position(|a| matches!(a, Arg::Value { kind: "lock", .. }))
                .map_or(none, |i| i as u8),
            structure,
            structure_bytes,
            structure_out,
            credentials: 0,
            string3: self.text(1),
            null_path: self.null_path.into(),
            chroots: chroots.into(),
            signed_extra,
            value: at(Arg::AttrValue),
            plain: 0,
            moves: 0,
            known: 1,
            any_type: matches!(self.class, Class::Socket | Class::Wait).into(),
            early,
            early_bytes,
            structure_len,
            structure_unit,
            structure_room,
            structure_any_abi: any_abi.into(),
            message: at(Arg::Message),
            messages: at(Arg::Messages),
            flow: self.flow() as u8,
            stream: self.streams().0 as u8,
            stream2: self.streams().1 as u8,
            reserved: [0; 3],
        };
        CallDesc {
            plain: is_plain(&desc).into(),
            moves: moves(&desc).into(),
            ..desc
        }
    }
}

/// Whether the call has nothing but a descriptor, a size and an offset at their usual places, and
/// what only a wide record has room for, so that the programs need not look for more.
fn is_plain(desc: &CallDesc) -> bool {
    let absent = |arg: u8| u32::from(arg) == NO_ARG;
    let usual = |arg: u8, place: u32| absent(arg) || u32::from(arg) == place;
    let elsewhere = DESC_RET_FD | DESC_RET_ADDR | DESC_RENAMES | DESC_CHDIR;
    u32::from(desc.fd) == PLAIN_FD
        && usual(desc.size, PLAIN_SIZE)
        && usual(desc.offset, PLAIN_OFFSET)
        && u32::from(desc.flags) & elsewhere == 0
        && [desc.fd2, desc.ring, desc.aux, desc.iov, desc.mapped]
            .into_iter()
            .all(absent)
        && absent(desc.offset_ptr)
        && desc.offset_shift == 0
        && desc.seeks == 0
        && absent(desc.message)
}

/// Whether the position of the descriptor matters.
fn moves(desc: &CallDesc) -> bool {
    u32::from(desc.flags) & (DESC_POSITION | DESC_WRITES) != 0
        || u32::from(desc.iov) != NO_ARG
        || u32::from(desc.offset_ptr) != NO_ARG
        || desc.seeks != 0
        || desc.releases != 0
}

#[cfg(test)]
mod tests;
