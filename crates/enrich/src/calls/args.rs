//! Column args: arguments without a column of their own, as `name=value`.

use std::fmt::Write as _;

use fathom_model::abi::{
    ARG_EARLY_NULL, ARG_OFFSET_NULL, ARG_OFFSET2_NULL, ARG_STREAM2, ARG_STRING1_NULL,
    ARG_STRING2_NULL, ARG_STRING3_NULL, ARG_STRING3_PARTIAL, ARG_STRUCT_NULL, ARG_VALUE,
    CALL_NO_STRINGS, CALL_STRING1_PARTIAL, CALL_STRING2_PARTIAL, NO_OFFSET,
};
use fathom_model::bytes::{angle_like_strace, quote_like_strace};
use fathom_model::syscalls::Number;

use super::call::Call;
use super::plan::{ArgText, Plan, String1, String2, Value};
use super::{network, structs};
use crate::text::named;
use crate::vocab::{self, Kind};

const AT_FDCWD: i32 = -100;
/// Bytes of struct open_how, as far as it is known.
const HOW_BYTES: u64 = 24;
const E2BIG: i64 = 7;

/// Appends the arguments to `out`, which is empty when there are none. `directories`
/// are the paths of what the descriptors before the paths stand for.
pub(crate) fn write(
    plan: &Plan,
    call: &Call<'_>,
    directories: [Option<&[u8]>; 2],
    out: &mut String,
) {
    let [first, second] = directories;
    for arg in &plan.args {
        match arg {
            ArgText::Dirfd => {
                if let Some(wide) = call.wide {
                    dirfd("dirfd", wide.dirfd1, first, out);
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
                    dirfd(name, wide.dirfd2, second, out);
                }
            }
            ArgText::Fd2 => {
                if let Some(wide) = call.wide {
                    named("fd_out", out);
                    let _ = write!(out, "{}", wide.fd2);
                    // Of sendfile, which passes no position for it.
                    if call.passed(ARG_STREAM2) && plan.name == "sendfile" {
                        named("off_out", out);
                        let _ = write!(out, "{}", wide.offset2);
                    }
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
                let _ = write!(out, "{}", call.record.size as i64);
            }
            ArgText::Text(_) | ArgText::Text3(_) if call.has(CALL_NO_STRINGS) => {}
            ArgText::Text(name) => {
                let partial = call.has(CALL_STRING2_PARTIAL);
                let null = call.passed(ARG_STRING2_NULL);
                text(name, call.string2, partial, null, out);
            }
            // Of some commands the value is no text.
            ArgText::Text3(_)
                if plan.name == "fsconfig"
                    && !has_text(call.record.aux)
                    && !call.passed(ARG_STRING3_NULL) => {}
            ArgText::Text3(name) => {
                let partial = call.passed(ARG_STRING3_PARTIAL);
                let null = call.passed(ARG_STRING3_NULL);
                text(name, call.string3, partial, null, out);
            }
            // Recorded with the content of calls.
            ArgText::AttrValue if !call.passed(ARG_VALUE) => {}
            ArgText::AttrValue => {
                let partial = call.passed(ARG_STRING3_PARTIAL);
                text("value", call.string3, partial, false, out);
            }
            ArgText::How => how(call, out),
            ArgText::Times(_) | ArgText::Struct(..) if call.passed(ARG_STRUCT_NULL) => {
                let name = match arg {
                    ArgText::Struct(name, _) => name,
                    _ => "times",
                };
                named(name, out);
                out.push_str("NULL");
            }
            ArgText::Times(unit) => structs::times(*unit, call.structure, out),
            ArgText::Struct(name, kind) => match network::write(plan, name, *kind, call, out) {
                true => {}
                false => structs::write(name, *kind, call.structure, out),
            },
            ArgText::Early(name, _) if !network::takes_early(plan, name, call) => {}
            ArgText::Early(name, _) if call.passed(ARG_EARLY_NULL) => {
                named(name, out);
                out.push_str("NULL");
            }
            ArgText::Early(name, kind) => network::early(name, *kind, plan, call, out),
            ArgText::Value(value) => numeric(plan, call, value, out),
        }
    }
    unusual(plan, call, out);
    if plan.string1 != String1::None {
        let partial = call.has(CALL_STRING1_PARTIAL) && !call.has(CALL_NO_STRINGS);
        path("path_arg", call.passed(ARG_STRING1_NULL), partial, out);
    }
    if plan.string2 == String2::Path {
        let partial = call.has(CALL_STRING2_PARTIAL) && !call.has(CALL_NO_STRINGS);
        path("path_arg2", call.passed(ARG_STRING2_NULL), partial, out);
    }
}

/// Arguments without a column, and pointers that were null.
fn unusual(plan: &Plan, call: &Call<'_>, out: &mut String) {
    if call.wide_fd(plan) {
        named("fd", out);
        let _ = write!(out, "{}", call.record.fd);
    }
    if let Some(size) = call.wide_size(plan) {
        named("size", out);
        let _ = match plan.size {
            Number::Unsigned => write!(out, "{size}"),
            _ => write!(out, "{}", size as i64),
        };
    }
    if let Some(offset) = call.wide_offset(plan) {
        named("offset", out);
        let _ = match plan.offset {
            Number::Unsigned => write!(out, "{:#x}", offset as u64),
            _ => write!(out, "{offset}"),
        };
    }
    if let Some(segments) = call.segments().filter(|_| plan.has_segments) {
        named("iovcnt", out);
        let _ = write!(out, "{segments}");
    }
    for (flag, name) in [
        (ARG_OFFSET_NULL, "offset_ptr"),
        (ARG_OFFSET2_NULL, "off_out_ptr"),
    ] {
        if plan.has_offset_pointers && call.passed(flag) {
            named(name, out);
            out.push_str("NULL");
        }
    }
}

fn path(name: &str, null: bool, partial: bool, out: &mut String) {
    if null || partial {
        named(name, out);
        out.push_str(if null { "NULL" } else { "partial" });
    }
}

/// A text; one that was cut ends in `...`.
fn text(name: &str, bytes: &[u8], partial: bool, null: bool, out: &mut String) {
    named(name, out);
    if null {
        out.push_str("NULL");
    } else if partial && bytes.is_empty() {
        out.push_str("partial");
    } else {
        quote_like_strace(bytes, out);
        out.push_str(if partial { "..." } else { "" });
    }
}

/// Whether a command of fsconfig takes a text: FSCONFIG_SET_STRING, _SET_PATH and
/// _SET_PATH_EMPTY.
fn has_text(command: u32) -> bool {
    matches!(command, 1 | 3 | 4)
}

fn dirfd(name: &str, fd: i32, path: Option<&[u8]>, out: &mut String) {
    named(name, out);
    if fd == AT_FDCWD {
        out.push_str("AT_FDCWD");
    } else {
        let _ = write!(out, "{fd}");
    }
    if let Some(path) = path {
        angle_like_strace(path, out);
    }
}

fn how(call: &Call<'_>, out: &mut String) {
    if let Some([flags, mode, resolve]) = call.how() {
        if vocab::creates(flags) || mode != 0 {
            named("mode", out);
            vocab::write(Kind::LongMode, mode, out);
        }
        named("resolve", out);
        vocab::write(Kind::Resolve, resolve, out);
        // The kernel refuses one with something in it that it does not know.
        if call.record.size > HOW_BYTES && call.record.ret == -E2BIG {
            named("tail", out);
            out.push('?');
        }
    }
    named("size", out);
    let _ = write!(out, "{}", call.record.size);
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
        // Where the mapping is to be, with MREMAP_FIXED or MREMAP_DONTUNMAP.
        Kind::Address if value.name == "new_addr" => {
            let flags = plan.flags.and_then(|f| call.value(f.place));
            if flags.is_some_and(|flags| flags & 6 == 0) {
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
            if structs::of_command(command.unwrap_or(u64::MAX), call, out) {
                return;
            }
            if !vocab::write_fcntl_argument(command.unwrap_or(u64::MAX), number, out) {
                out.truncate(before);
            }
            return;
        }
        Kind::Protocol | Kind::SocketOption => {
            let first = plan.args.iter().find_map(|a| match a {
                ArgText::Value(v) => call.value(v.place),
                _ => None,
            });
            named(value.name, out);
            vocab::write_of(value.kind, first.unwrap_or(u64::MAX), number, out);
            return;
        }
        _ => {}
    }
    named(value.name, out);
    vocab::write(value.kind, number, out);
}
