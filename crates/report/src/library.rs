//! Calls of libraries, by function.

use fathom_model::units::{bytes, count, duration};
use fathom_query::Db;
use fathom_query::fetch::rows;
use fathom_query::read_row;
use serde::Serialize;

use crate::error::ReportError;
use crate::section::Layout::{Left, Right};
use crate::section::{Section, TOP};

/// The calls of a function. Sums of bytes are null if the function reports none.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "types", derive(schemars::JsonSchema))]
pub struct LibraryFunction {
    /// As `--library` takes it.
    pub class: String,
    /// Its name.
    pub function: String,
    /// Path of the library.
    pub library: String,
    /// Its calls.
    pub calls: i64,
    /// Of which failed.
    pub failed: i64,
    /// Sum of the durations.
    pub total_ns: i64,
    /// 99th percentile of the durations; null if no call returned.
    pub p99_ns: Option<i64>,
    /// Bytes moved.
    pub bytes: Option<i64>,
    /// Calls that made system calls themselves.
    pub reached: i64,
    /// These system calls.
    pub syscalls: i64,
    /// Sum of their durations.
    pub syscall_ns: i64,
    /// Bytes that they moved.
    pub syscall_bytes: i64,
}

/// The functions with the most time.
pub(crate) fn functions(db: &Db) -> Result<Vec<LibraryFunction>, ReportError> {
    Ok(rows(
        db,
        &format!("FROM by_user_call LIMIT {TOP}"),
        |row| {
            read_row!(row => LibraryFunction {
                class function library calls failed total_ns p99_ns bytes reached syscalls
                syscall_ns syscall_bytes
            })
        },
    )?)
}

/// The table of the report; without rows when no calls were recorded.
pub(crate) fn section(functions: &[LibraryFunction]) -> Section {
    let row = |f: &LibraryFunction| {
        vec![
            f.function.clone(),
            f.class.clone(),
            count(f.calls),
            duration(f.total_ns),
            f.p99_ns.map_or_else(|| "-".into(), duration),
            f.bytes.map_or_else(|| "-".into(), bytes),
            count(f.syscalls),
            duration(f.syscall_ns),
            bytes(f.syscall_bytes),
        ]
    };
    Section {
        title: "Library calls",
        note: "with the system calls that they made".into(),
        columns: vec![
            ("function", Left),
            ("class", Left),
            ("calls", Right),
            ("total", Right),
            ("p99", Right),
            ("moved", Right),
            ("system calls", Right),
            ("their time", Right),
            ("their bytes", Right),
        ],
        rows: functions.iter().map(row).collect(),
    }
}
