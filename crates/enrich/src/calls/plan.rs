//! The steps for each call, computed once from the call table.

use std::sync::LazyLock;

use fathom_model::syscalls::{Api, Arg, Class, Number, Place, Returns, SYSCALLS, Syscall};

use fathom_model::kind::Kind as Purpose;

use crate::vocab::Kind;

/// Role of the first string of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum String1 {
    None,
    Path,
    /// Text of a symbolic link: never resolved.
    Target,
}

/// Role of the second string of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum String2 {
    None,
    Path,
    /// A text, such as the name of an extended attribute.
    Text,
}

/// A numeric argument.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Value {
    pub name: &'static str,
    pub kind: Kind,
    pub place: Place,
}

/// Unit of the second half of a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeUnit {
    /// There is none: struct utimbuf.
    Seconds,
    /// struct timeval.
    Microseconds,
    /// struct timespec.
    Nanoseconds,
}

/// An argument that goes into column args.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ArgText {
    Dirfd,
    Dirfd2,
    Fd2,
    Offset2,
    Seek,
    Length,
    /// The second text of a record, and the third, by name.
    Text(&'static str),
    Text3(&'static str),
    /// The value of an extended attribute.
    AttrValue,
    How,
    /// Two times, with the digits of the second half's unit.
    Times(TimeUnit),
    /// Another struct, by name.
    Struct(&'static str, Struct),
    /// A struct as it was at the entry of the call.
    Early(&'static str, Early),
    Value(Value),
}

/// A struct that is read at the entry of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Early {
    Timespec,
    Timeval,
    Itimerspec,
}

impl Early {
    fn of(kind: &str) -> Option<Early> {
        Some(match kind {
            "timespec" => Early::Timespec,
            "timeval" => Early::Timeval,
            "itimerspec" => Early::Itimerspec,
            _ => return None,
        })
    }
}

/// A struct of which a record has the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Struct {
    Stat,
    Statx,
    Statfs,
    Timespec,
    XattrArgs,
    MountAttr,
    FileAttr,
    CachestatRange,
    FileHandle,
    Sockaddr,
    Sockopt,
    Pollfds,
    Fds,
    Wstatus,
    EpollEvent,
}

impl Struct {
    fn of(kind: &str) -> Option<Struct> {
        Some(match kind {
            "statfs" => Struct::Statfs,
            "timespec" => Struct::Timespec,
            "xattr_args" => Struct::XattrArgs,
            "mount_attr" => Struct::MountAttr,
            "file_attr" => Struct::FileAttr,
            "cachestat_range" => Struct::CachestatRange,
            "file_handle" => Struct::FileHandle,
            "sockaddr" | "taken_sockaddr" => Struct::Sockaddr,
            "sockopt" | "taken_sockopt" => Struct::Sockopt,
            "pollfds" => Struct::Pollfds,
            "fds" => Struct::Fds,
            "wstatus" => Struct::Wstatus,
            "epoll_event" => Struct::EpollEvent,
            _ => return None,
        })
    }
}

/// One call.
#[derive(Debug)]
pub(crate) struct Plan {
    pub name: &'static str,
    pub api: Api,
    pub class: Class,
    pub returns: Returns,
    /// Column fd is the record's fd.
    pub has_fd: bool,
    /// That is the descriptor of a ring, which is not the file of the call.
    pub has_ring: bool,
    pub string1: String1,
    pub string2: String2,
    pub flags: Option<Value>,
    /// In order of the arguments.
    pub args: Vec<ArgText>,
    /// Column args follows from the call and aux alone.
    pub args_from_aux: bool,
    /// Column size is the record's size.
    pub has_size: bool,
    /// How the size is taken.
    pub size: Number,
    /// The size is an argument: every number stands for itself.
    pub size_is_passed: bool,
    /// Positions are passed by pointer.
    pub has_offset_pointers: bool,
    /// Column offset is the record's offset.
    pub has_offset: bool,
    /// How the offset is taken.
    pub offset: Number,
    /// The offset is an argument, not a position.
    pub offset_is_passed: bool,
    /// The size adds up segments.
    pub has_segments: bool,
    /// The struct that a record has.
    pub structure: Option<Struct>,
    /// Bytes of a struct that is read at the entry.
    pub early_bytes: usize,
    /// Moves messages: the result is their number, and the record has their bytes.
    pub has_messages: bool,
    /// Its purpose.
    pub purpose: Purpose,
    /// struct open_how takes the place of flags.
    pub has_how: bool,
    /// lseek: the record's offset is the one passed, its size the description.
    pub seeks: bool,
}

impl Plan {
    /// The numeric argument `name`.
    pub(crate) fn value(&self, name: &str) -> Option<&Value> {
        let others = self.args.iter().filter_map(|arg| match arg {
            ArgText::Value(value) => Some(value),
            _ => None,
        });
        self.flags
            .iter()
            .filter(|_| name == "flags")
            .chain(others)
            .find(|value| value.name == name)
    }
}

/// The plans of all calls, in the order of the call table.
pub(crate) static PLANS: LazyLock<Vec<Plan>> =
    LazyLock::new(|| SYSCALLS.iter().map(plan).collect());

/// The text that a record has as its second string.
fn first_text(call: &Syscall) -> Option<Arg> {
    let is_text = |a: &&Arg| matches!(a, Arg::Name | Arg::Text(_));
    call.args.iter().find(is_text).copied()
}

fn plan(call: &'static Syscall) -> Plan {
    let has = |role| call.position(role).is_some();
    let values = call.values();
    let value = |name: &str| {
        let v = values.iter().find(|v| v.name == name)?;
        // A kind that is not known here is written as a number.
        let kind = Kind::of(call.name, v.name, v.kind).unwrap_or(Kind::Hex);
        Some(Value {
            name: v.name,
            kind,
            place: v.place,
        })
    };
    let args: Vec<ArgText> = call
        .args
        .iter()
        .filter_map(|arg| match *arg {
            Arg::Dirfd => Some(ArgText::Dirfd),
            Arg::Dirfd2 => Some(ArgText::Dirfd2),
            Arg::Fd2 => Some(ArgText::Fd2),
            Arg::OffsetPtr2 | Arg::Offset2 => Some(ArgText::Offset2),
            Arg::Seek => Some(ArgText::Seek),
            Arg::Length => Some(ArgText::Length),
            Arg::Name => Some(ArgText::Text("name")),
            Arg::Text(name) if first_text(call) == Some(*arg) => Some(ArgText::Text(name)),
            Arg::Text(name) => Some(ArgText::Text3(name)),
            Arg::AttrValue => Some(ArgText::AttrValue),
            Arg::Stat => Some(ArgText::Struct("stat", Struct::Stat)),
            Arg::Statx => Some(ArgText::Struct("statx", Struct::Statx)),
            Arg::Struct { name, kind } => Struct::of(kind).map(|s| ArgText::Struct(name, s)),
            Arg::Early { name, kind } => Early::of(kind).map(|e| ArgText::Early(name, e)),
            Arg::How => Some(ArgText::How),
            Arg::Utimbuf => Some(ArgText::Times(TimeUnit::Seconds)),
            Arg::Timevals => Some(ArgText::Times(TimeUnit::Microseconds)),
            Arg::Timespecs => Some(ArgText::Times(TimeUnit::Nanoseconds)),
            Arg::Value { name: "flags", .. } => None,
            Arg::Value { name, .. } => value(name).map(ArgText::Value),
            _ => None,
        })
        .collect();
    let from_aux = |a: &ArgText| matches!(a, ArgText::Value(v) if v.place == Place::Aux);
    Plan {
        name: call.name,
        api: call.api,
        class: call.class,
        returns: call.returns,
        has_fd: has(Arg::Fd) || has(Arg::Ring),
        has_ring: has(Arg::Ring) && !has(Arg::Path) && call.returns != Returns::Fd,
        string1: match (has(Arg::Path), has(Arg::Target)) {
            (true, _) => String1::Path,
            (false, true) => String1::Target,
            (false, false) => String1::None,
        },
        string2: match (has(Arg::Path2), first_text(call).is_some()) {
            (true, _) => String2::Path,
            (false, true) => String2::Text,
            (false, false) => String2::None,
        },
        flags: value("flags"),
        args_from_aux: args.iter().all(from_aux),
        structure: args.iter().find_map(|a| match a {
            ArgText::Struct(_, s) => Some(*s),
            _ => None,
        }),
        args,
        has_size: !has(Arg::Length) && !has(Arg::How) && !has(Arg::Seek),
        size: call.size,
        size_is_passed: has(Arg::Size),
        has_offset_pointers: has(Arg::OffsetPtr),
        has_offset: !has(Arg::Seek),
        offset: call.offset,
        offset_is_passed: call.api == Api::Syscall && has(Arg::Offset) && !has(Arg::Iov),
        has_segments: call.api == Api::Syscall && has(Arg::Iov),
        early_bytes: call.early().map_or(0, |(_, bytes)| bytes.into()),
        has_messages: has(Arg::Messages),
        purpose: call.kind,
        has_how: has(Arg::How),
        seeks: has(Arg::Seek),
    }
}
