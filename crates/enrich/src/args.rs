//! Column args: arguments without a column of their own, as `name=value`.

use std::fmt::Write as _;

use fathom_model::abi::{
    CALL_HAS_HOW, CALL_NO_STRINGS, CALL_POSITION_RACED, CALL_STRING1_PARTIAL, CALL_STRING2_PARTIAL,
    CallRecord, DataCallRecord, NO_OFFSET, WideCallRecord,
};
use fathom_model::bytes::quote_like_strace;
use fathom_model::syscalls::Place;

use crate::plan::{ArgText, Plan, String1, String2, Value};
use crate::structs;
use crate::vocab::{self, Kind};

const AT_FDCWD: i32 = -100;

/// A call, whichever ring it came by.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    pub record: &'a CallRecord,
    pub wide: Option<&'a WideCallRecord>,
    /// With content: the record and the last part of the content.
    pub data: Option<(&'a DataCallRecord, &'a [u8])>,
    pub string1: &'a [u8],
    pub string2: &'a [u8],
    /// Flags and user_data of an operation.
    pub operation: Option<(u32, u64)>,
}

impl Call<'_> {
    pub(crate) fn has(&self, flag: u32) -> bool {
        u32::from(self.record.flags) & flag != 0
    }

    /// A numeric argument, unless the record was too small to hold it.
    pub(crate) fn value(&self, place: Place) -> Option<u64> {
        match place {
            Place::Aux => Some(u64::from(self.record.aux)),
            Place::Extra(i) => self.wide?.extra.get(i).copied(),
        }
    }

    /// Position at entry, when it was moved by something else meanwhile.
    pub(crate) fn entry_position(&self) -> Option<i64> {
        if !self.has(CALL_POSITION_RACED) {
            return None;
        }
        match (self.wide, self.data) {
            (Some(wide), _) => wide.extra.first().map(|entry| *entry as i64),
            (None, Some((data, _))) => Some(data.entry_pos),
            (None, None) => None,
        }
    }

    /// Flags, mode and resolve of openat2.
    pub(crate) fn how(&self) -> Option<[u64; 3]> {
        self.wide
            .filter(|_| self.has(CALL_HAS_HOW))
            .map(|w| w.extra)
    }
}

/// Appends the arguments to `out`, which is empty when there are none.
pub(crate) fn write(plan: &Plan, call: &Call<'_>, out: &mut String) {
    for arg in &plan.args {
        match arg {
            ArgText::Dirfd => {
                if let Some(wide) = call.wide {
                    dirfd("dirfd", wide.dirfd1, out);
                }
            }
            ArgText::Dirfd2 => {
                if let Some(wide) = call.wide {
                    // symlinkat has no other.
                    let name = if plan.string1 == String1::Path {
                        "dirfd2"
                    } else {
                        "dirfd"
                    };
                    dirfd(name, wide.dirfd2, out);
                }
            }
            ArgText::Fd2 => {
                if let Some(wide) = call.wide {
                    named("fd_out", out);
                    let _ = write!(out, "{}", wide.fd2);
                }
            }
            ArgText::Offset2 => {
                if let Some(wide) = call.wide.filter(|w| w.offset2 != NO_OFFSET) {
                    named("off_out", out);
                    let _ = write!(out, "{}", wide.offset2);
                }
            }
            ArgText::Seek => {
                if call.record.offset != NO_OFFSET {
                    named("offset", out);
                    let _ = write!(out, "{}", call.record.offset);
                }
            }
            ArgText::Length => {
                named("length", out);
                let _ = write!(out, "{}", call.record.size);
            }
            ArgText::Name => {
                let partial = call.has(CALL_STRING2_PARTIAL);
                if !(partial && call.string2.is_empty()) {
                    named("name", out);
                    quote_like_strace(call.string2, out);
                    out.push_str(if partial { "..." } else { "" });
                }
            }
            ArgText::How => how(call, out),
            ArgText::Times(unit) => structs::times(*unit, call.string2, out),
            ArgText::Value(value) => numeric(plan, call, value, out),
        }
    }
    if call.has(CALL_NO_STRINGS) {
        return;
    }
    if plan.string1 != String1::None && call.has(CALL_STRING1_PARTIAL) {
        named("path_arg", out);
        out.push_str("partial");
    }
    if call.has(CALL_STRING2_PARTIAL) {
        match plan.string2 {
            String2::Path => {
                named("path_arg2", out);
                out.push_str("partial");
            }
            String2::Name if call.string2.is_empty() => {
                named("name", out);
                out.push_str("partial");
            }
            String2::Name | String2::None => {}
        }
    }
}

pub(crate) fn named(name: &str, out: &mut String) {
    if !out.is_empty() {
        out.push_str(", ");
    }
    out.push_str(name);
    out.push('=');
}

fn dirfd(name: &str, fd: i32, out: &mut String) {
    named(name, out);
    if fd == AT_FDCWD {
        out.push_str("AT_FDCWD");
    } else {
        let _ = write!(out, "{fd}");
    }
}

fn how(call: &Call<'_>, out: &mut String) {
    let Some([flags, mode, resolve]) = call.how() else {
        return;
    };
    if vocab::creates(flags) || mode != 0 {
        named("mode", out);
        vocab::write(Kind::Mode, mode, out);
    }
    named("resolve", out);
    vocab::write(Kind::Resolve, resolve, out);
}

fn numeric(plan: &Plan, call: &Call<'_>, value: &Value, out: &mut String) {
    let Some(number) = call.value(value.place) else {
        return;
    };
    match value.kind {
        // The mode of open counts only when a file is made.
        Kind::Mode if plan.flags.is_some_and(|f| f.kind == Kind::Open) => {
            let flags = plan.flags.and_then(|f| call.value(f.place));
            if !flags.is_some_and(vocab::creates) {
                return;
            }
        }
        Kind::Device => {
            let mode = plan.args.iter().find_map(|a| match a {
                ArgText::Value(v) if v.kind == Kind::NodeMode => call.value(v.place),
                _ => None,
            });
            if !mode.is_some_and(vocab::is_device) {
                return;
            }
        }
        Kind::FcntlArg => {
            let command = plan.args.iter().find_map(|a| match a {
                ArgText::Value(v) if v.kind == Kind::Fcntl => call.value(v.place),
                _ => None,
            });
            let before = out.len();
            named(value.name, out);
            if structs::lock(command.unwrap_or(u64::MAX), call, out) {
                return;
            }
            if !vocab::write_fcntl_argument(command.unwrap_or(u64::MAX), number, out) {
                out.truncate(before);
            }
            return;
        }
        _ => {}
    }
    named(value.name, out);
    vocab::write(value.kind, number, out);
}
