//! Column args: arguments without a column of their own, as `name=value`.

use std::fmt::Write as _;

use fathom_model::abi::{
    ARG_OFFSET_NULL, ARG_OFFSET2_NULL, ARG_SEGMENTS, ARG_SIZE, ARG_STRING1_NULL, ARG_STRING2_NULL,
    ARG_STRING3_NULL, ARG_STRING3_PARTIAL, ARG_STRUCT_NULL, ARG_VALUE, CALL_HAS_HOW,
    CALL_NO_STRINGS, CALL_POSITION_RACED, CALL_STRING1_PARTIAL, CALL_STRING2_PARTIAL, CallRecord,
    DataCallRecord, NO_OFFSET, NO_SIZE, SEGMENTS_SHIFT, WideCallRecord,
};
use fathom_model::bytes::{angle_like_strace, quote_like_strace};
use fathom_model::syscalls::{Number, Place};

use crate::plan::{ArgText, Plan, String1, String2, Value};
use crate::structs;
use crate::vocab::{self, Kind};

const AT_FDCWD: i32 = -100;
/// Bytes of struct open_how, as far as it is known.
const HOW_BYTES: u64 = 24;
const E2BIG: i64 = 7;

/// A call, whichever ring it came by.
#[derive(Clone, Copy)]
pub(crate) struct Call<'a> {
    pub record: &'a CallRecord,
    pub wide: Option<&'a WideCallRecord>,
    /// With content: the record and the last part of the content.
    pub data: Option<(&'a DataCallRecord, &'a [u8])>,
    pub string1: &'a [u8],
    pub string2: &'a [u8],
    pub string3: &'a [u8],
    /// The struct that an argument points to, or its beginning.
    pub structure: &'a [u8],
    /// Flags and user_data of an operation.
    pub operation: Option<(u32, u64)>,
}

impl Call<'_> {
    pub(crate) fn has(&self, flag: u32) -> bool {
        u32::from(self.record.flags) & flag != 0
    }

    /// Whether the arguments of a wide record have one of the `ARG_` flags.
    pub(crate) fn passed(&self, flag: u32) -> bool {
        self.wide.is_some_and(|w| w.arg_flags & flag != 0)
    }

    /// The size or length that was asked for, as the register had it; `None` when
    /// there is none or it could not be read.
    pub(crate) fn size(&self, plan: &Plan) -> Option<u64> {
        let size = self.record.size;
        if plan.has_segments {
            let known = self.record.size != NO_SIZE;
            return known.then(|| match self.segments_elsewhere() {
                Some(_) => size,
                None => size & ((1 << SEGMENTS_SHIFT) - 1),
            });
        }
        let passed = match self.operation {
            None => plan.size_is_passed,
            Some(_) => self.passed(ARG_SIZE),
        };
        (passed || size != NO_SIZE).then_some(size)
    }

    /// How many segments were passed.
    fn segments(&self) -> Option<u64> {
        let size = self.record.size;
        self.segments_elsewhere()
            .or((size != NO_SIZE).then_some(size >> SEGMENTS_SHIFT))
    }

    fn segments_elsewhere(&self) -> Option<u64> {
        let wide = self.wide.filter(|_| self.passed(ARG_SEGMENTS))?;
        wide.extra.get(1).copied()
    }

    /// A numeric argument, unless the record was too small to hold it.
    pub(crate) fn value(&self, place: Place) -> Option<u64> {
        match place {
            Place::Aux => Some(u64::from(self.record.aux)),
            Place::Extra(i) => self.wide?.extra.get(i).copied(),
        }
    }

    /// The lowest offset possible, when it is not the derived one.
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
            ArgText::Struct(name, kind) => structs::write(name, *kind, call.structure, out),
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

/// What columns do not hold, and pointers that were null.
fn unusual(plan: &Plan, call: &Call<'_>, out: &mut String) {
    if plan.wide_fd(call) {
        named("fd", out);
        let _ = write!(out, "{}", call.record.fd);
    }
    if let Some(size) = plan.wide_size(call) {
        named("size", out);
        let _ = match plan.size {
            Number::Unsigned => write!(out, "{size}"),
            _ => write!(out, "{}", size as i64),
        };
    }
    if let Some(offset) = plan.wide_offset(call) {
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

pub(crate) fn named(name: &str, out: &mut String) {
    if !out.is_empty() {
        out.push_str(", ");
    }
    out.push_str(name);
    out.push('=');
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
        _ => {}
    }
    named(value.name, out);
    vocab::write(value.kind, number, out);
}
