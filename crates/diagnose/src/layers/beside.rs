//! Rows that say what a request is part of or made of: spans, library calls, and slices.

use super::Row;
use crate::call::{FileId, LARGEST};
use crate::columns::Columns;

/// Columns of table `spans`, by their numbers below.
pub(super) const SPAN_COLUMNS: &[&str] = &[
    "trace_id",
    "span_id",
    "parent_span_id",
    "ts_ns",
    "dur_ns",
    "pid",
    "tid",
    "service",
    "name",
    "kind",
    "attributes",
];

/// Columns of table `user_calls`.
pub(super) const LIBRARY_COLUMNS: &[&str] = &[
    "user_call",
    "ts_ns",
    "dur_ns",
    "pid",
    "tid",
    "comm",
    "class",
    "function",
    "fd",
    "file_id",
    "size",
    "items",
    "bytes",
];

/// Columns of table `slices`.
pub(super) const SLICE_COLUMNS: &[&str] = &["rid", "layer", "name", "ts_ns", "self_ns"];

/// An operation of an application.
#[derive(Clone, Copy, Debug)]
pub struct Span<'a> {
    pub trace: &'a str,
    pub id: &'a str,
    /// The span that caused it, in the same trace.
    pub parent: Option<&'a str>,
    pub ts_ns: i64,
    pub dur_ns: i64,
    pub pid: Option<i32>,
    pub tid: Option<i32>,
    pub service: &'a str,
    pub name: &'a str,
    /// `server`, `client` and so on.
    pub kind: &'a str,
    /// A JSON object, or empty.
    pub attributes: &'a str,
}

impl Span<'_> {
    pub fn ended_at_ns(&self) -> i64 {
        self.ts_ns.saturating_add(self.dur_ns)
    }
}

/// A call of a library's function.
#[derive(Clone, Copy, Debug)]
pub struct LibraryCall<'a> {
    /// `user_calls.user_call`, which `syscalls.user_call` names.
    pub id: i64,
    pub ts_ns: i64,
    /// Until it returned; 0 if it did not.
    pub dur_ns: i64,
    pub pid: i32,
    pub tid: i32,
    pub comm: &'a str,
    pub class: &'a str,
    pub function: &'a str,
    pub fd: Option<i32>,
    pub file: Option<FileId>,
    /// Bytes asked for.
    pub size: Option<i64>,
    /// Items asked for.
    pub items: Option<i64>,
    /// Bytes moved.
    pub bytes: Option<i64>,
}

impl LibraryCall<'_> {
    /// Bytes that it moved, or was to move where its result does not say.
    pub fn moved(&self) -> i64 {
        self.bytes.or(self.size).unwrap_or(0).clamp(0, LARGEST)
    }
}

/// A visit of a request to a layer.
#[derive(Clone, Copy, Debug)]
pub struct Slice<'a> {
    pub rid: i64,
    /// As in table `slices`.
    pub layer: &'a str,
    pub name: &'a str,
    /// Time there and not in a deeper layer, nanoseconds.
    pub self_ns: i64,
}

pub(super) fn spans(columns: &Columns, mut row: impl FnMut(&Row)) {
    for i in 0..columns.rows() {
        let (Some(ts_ns), Some(dur)) = (columns.i64(3, i), columns.i64(4, i)) else {
            continue;
        };
        row(&Row::Span(Span {
            trace: columns.text(0, i).unwrap_or(""),
            id: columns.text(1, i).unwrap_or(""),
            parent: columns.text(2, i),
            ts_ns,
            dur_ns: dur.clamp(0, LARGEST),
            pid: columns.i32(5, i),
            tid: columns.i32(6, i),
            service: columns.text(7, i).unwrap_or(""),
            name: columns.text(8, i).unwrap_or(""),
            kind: columns.text(9, i).unwrap_or(""),
            attributes: columns.text(10, i).unwrap_or(""),
        }));
    }
}

pub(super) fn library_calls(columns: &Columns, mut row: impl FnMut(&Row)) {
    for i in 0..columns.rows() {
        let (Some(id), Some(ts_ns)) = (columns.i64(0, i), columns.i64(1, i)) else {
            continue;
        };
        row(&Row::Library(LibraryCall {
            id,
            ts_ns,
            dur_ns: columns.i64(2, i).unwrap_or(0).clamp(0, LARGEST),
            pid: columns.i32(3, i).unwrap_or(0),
            tid: columns.i32(4, i).unwrap_or(0),
            comm: columns.text(5, i).unwrap_or(""),
            class: columns.text(6, i).unwrap_or(""),
            function: columns.text(7, i).unwrap_or(""),
            fd: columns.i32(8, i),
            file: columns.i64(9, i).map(FileId),
            size: columns.i64(10, i),
            items: columns.i64(11, i),
            bytes: columns.i64(12, i),
        }));
    }
}

pub(super) fn slices(columns: &Columns, mut row: impl FnMut(&Row)) {
    for i in 0..columns.rows() {
        let (Some(rid), Some(self_ns)) = (columns.i64(0, i), columns.i64(4, i)) else {
            continue;
        };
        row(&Row::Slice(Slice {
            rid,
            layer: columns.text(1, i).unwrap_or(""),
            name: columns.text(2, i).unwrap_or(""),
            self_ns: self_ns.clamp(0, LARGEST),
        }));
    }
}
