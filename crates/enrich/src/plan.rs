//! What to do with each call, worked out once from the call table.

use fathom_model::syscalls::{Api, Arg, Class, Place, Returns, SYSCALLS, Syscall};

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
    /// Name of an extended attribute.
    Name,
}

/// A numeric argument.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Value {
    pub name: &'static str,
    pub kind: Kind,
    pub place: Place,
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
    Name,
    How,
    Value(Value),
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
    pub string1: String1,
    pub string2: String2,
    pub flags: Option<Value>,
    /// In order of the arguments.
    pub args: Vec<ArgText>,
    /// Column args follows from the call and aux alone.
    pub args_from_aux: bool,
    /// Column size is the record's size.
    pub has_size: bool,
    /// Column offset is the record's offset.
    pub has_offset: bool,
    /// struct open_how takes the place of flags.
    pub has_how: bool,
}

/// The plans of all calls, in the order of the call table.
pub(crate) fn plans() -> Vec<Plan> {
    SYSCALLS.iter().map(plan).collect()
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
            Arg::Name => Some(ArgText::Name),
            Arg::How => Some(ArgText::How),
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
        string1: match (has(Arg::Path), has(Arg::Target)) {
            (true, _) => String1::Path,
            (false, true) => String1::Target,
            (false, false) => String1::None,
        },
        string2: match (has(Arg::Path2), has(Arg::Name)) {
            (true, _) => String2::Path,
            (false, true) => String2::Name,
            (false, false) => String2::None,
        },
        flags: value("flags"),
        args_from_aux: args.iter().all(from_aux),
        args,
        has_size: !has(Arg::Length) && !has(Arg::How),
        has_offset: !has(Arg::Seek),
        has_how: has(Arg::How),
    }
}
