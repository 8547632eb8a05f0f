//! The calls that are recorded: generated from `bpf/syscalls.def`, and how each
//! is laid out in a record.

use crate::abi::{
    CallDesc, DESC_CHDIR, DESC_POSITION, DESC_RENAMES, DESC_RET_ADDR, DESC_RET_BYTES, DESC_RET_FD,
    DESC_WIDE, DESC_WRITES, MAX_EXTRA, NO_ARG,
};

/// What kind of work a call asks for (papers: DIO, table 1; `memory` and
/// `async` are ours).
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
}

impl Class {
    /// Every class.
    pub const ALL: [Class; 6] = [
        Class::Data,
        Class::Metadata,
        Class::Directory,
        Class::Xattr,
        Class::Memory,
        Class::Async,
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
        }
    }
}

/// What a return value that is no error means.
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
    OffsetPtr,
    OffsetPtr2,
    How,
    Seek,
    Length,
    Stat,
    Statx,
    Ring,
    /// A number: `flags` goes to column flags, others to args.
    Value {
        name: &'static str,
        kind: &'static str,
    },
}

/// A recorded call.
#[derive(Debug)]
pub struct Syscall {
    /// Name, as in strace.
    pub name: &'static str,
    /// Number on x86-64.
    pub x86_64: Option<u16>,
    /// Number on arm64.
    pub arm64: Option<u16>,
    /// Kind of work.
    pub class: Class,
    /// Meaning of the return value.
    pub returns: Returns,
    /// Roles of the arguments, in order.
    pub args: &'static [Arg],
}

include!(concat!(env!("OUT_DIR"), "/syscalls.rs"));

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

    /// Number on the machine that this is built for.
    pub fn number(&self) -> Option<u16> {
        if cfg!(target_arch = "aarch64") {
            self.arm64
        } else {
            self.x86_64
        }
    }

    /// Position of the argument `role`, from 0.
    pub fn position(&self, role: Arg) -> Option<usize> {
        self.args.iter().position(|a| *a == role)
    }

    /// Whether the call moves data into the file: by its name, for O_APPEND.
    pub fn writes(&self) -> bool {
        self.name.contains("write")
    }

    /// Whether the I/O takes place at the position of the descriptor and
    /// moves it.
    pub fn uses_position(&self) -> bool {
        matches!(self.name, "read" | "write" | "readv" | "writev")
    }

    /// The numeric arguments and their places: flags in aux if there are any,
    /// else the first 32-bit one; the rest in extra.
    pub fn values(&self) -> Vec<Value> {
        let is_64_bit = |name: &str, kind: &str| kind == "hex" && name != "flags";
        let in_aux = self
            .args
            .iter()
            .position(|a| matches!(a, Arg::Value { name: "flags", .. }))
            .or_else(|| {
                self.args
                    .iter()
                    .position(|a| matches!(a, Arg::Value { name, kind } if !is_64_bit(name, kind)))
            });
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

    /// The descriptor that tells the kernel side how to record the call, as
    /// selected.
    pub fn desc(&self, index: usize) -> CallDesc {
        let at = |role| self.position(role).map_or(NO_ARG as u8, |i| i as u8);
        let either = |a: u8, b: u8| if a == NO_ARG as u8 { b } else { a };
        let mut aux = NO_ARG as u8;
        let mut extra = [NO_ARG as u8; MAX_EXTRA as usize];
        for value in self.values() {
            match value.place {
                Place::Aux => aux = value.arg as u8,
                Place::Extra(i) => {
                    if let Some(slot) = extra.get_mut(i) {
                        *slot = value.arg as u8;
                    }
                }
            }
        }
        let string1 = either(at(Arg::Path), at(Arg::Target));
        let string2 = either(at(Arg::Path2), at(Arg::Name));
        let none = NO_ARG as u8;
        let wide = string1 != none
            || string2 != none
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
        set(
            DESC_RENAMES,
            self.name.starts_with("rename") || self.name.starts_with("link"),
        );
        set(DESC_WRITES, self.writes());
        set(DESC_CHDIR, self.name == "chdir");
        CallDesc {
            selected: 1,
            syscall: index as u8,
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
            offset: either(at(Arg::Offset), at(Arg::Seek)),
            offset_ptr: at(Arg::OffsetPtr),
            offset_ptr2: at(Arg::OffsetPtr2),
            aux,
            extra,
            stat: at(Arg::Stat),
            statx: at(Arg::Statx),
            how: at(Arg::How),
            path1: u8::from(self.position(Arg::Path).is_some()),
            path2: u8::from(self.position(Arg::Path2).is_some()),
            credentials: 0,
            reserved: [0; 6],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn rows_are_unique_and_fit_a_record() {
        let mut seen = HashSet::new();
        for call in &SYSCALLS {
            assert!(seen.insert(call.name), "{} twice", call.name);
            let numbers = [call.x86_64.map(|n| (0, n)), call.arm64.map(|n| (1, n))];
            for (arch, n) in numbers.into_iter().flatten() {
                assert!(seen.insert(Box::leak(format!("{arch}:{n}").into_boxed_str())));
                assert!(u32::from(n) < crate::abi::MAX_NUMBERS);
            }
            assert!(call.args.len() <= 6, "{}", call.name);
            let extras = call
                .values()
                .iter()
                .filter(|v| matches!(v.place, Place::Extra(_)))
                .count();
            assert!(extras <= MAX_EXTRA as usize, "{}", call.name);
        }
    }

    #[test]
    fn layout_of_some_calls() {
        let desc = |name: &str| {
            let i = Syscall::index_of(name).unwrap();
            SYSCALLS[i].desc(i)
        };
        let read = desc("read");
        assert_eq!((read.fd, read.size, read.offset), (0, 2, NO_ARG as u8));
        assert_eq!(read.flags as u32, DESC_RET_BYTES | DESC_POSITION);
        let openat = desc("openat");
        assert_eq!((openat.dirfd1, openat.string1, openat.aux), (0, 1, 2));
        assert_eq!(openat.extra[0], 3);
        let mmap = desc("mmap");
        assert_eq!((mmap.fd, mmap.size, mmap.offset, mmap.aux), (4, 1, 5, 3));
        assert_eq!(mmap.extra, [0, 2, NO_ARG as u8]);
        let dup2 = desc("dup2");
        assert_eq!(dup2.flags as u32 & DESC_WIDE, 0);
        let sendfile = desc("sendfile");
        assert_eq!((sendfile.fd, sendfile.fd2, sendfile.offset_ptr), (1, 0, 2));
    }
}
