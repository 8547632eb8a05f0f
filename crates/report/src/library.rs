//! Calls of libraries, by function.

use fathom_model::units::{bytes, count, duration};
use fathom_query::Db;
use fathom_query::fetch::rows;
use fathom_query::read_row;
use serde::Serialize;

use crate::error::ReportError;
use crate::section::Layout::{Left, Right};
use crate::section::{Section, TOP};

/// The calls of a function. Sums of bytes are null if the function reports none. Of a function with
/// counted calls everything but their number is null.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "types", derive(schemars::JsonSchema))]
pub struct LibraryFunction {
    /// As `--library` takes it.
    pub class: String,
    /// Its name.
    pub function: String,
    /// Path of the library.
    pub library: String,
    /// Its calls, with a row or counted.
    pub calls: i64,
    /// Of which have no row, because the function was called more often than `--library-budget`
    /// allows.
    pub counted: i64,
    /// Of which failed.
    pub failed: Option<i64>,
    /// Sum of the durations.
    pub total_ns: Option<i64>,
    /// 99th percentile of the durations; null if no call returned.
    pub p99_ns: Option<i64>,
    /// Bytes moved.
    pub bytes: Option<i64>,
    /// Calls that made system calls themselves.
    pub reached: Option<i64>,
    /// These system calls.
    pub syscalls: Option<i64>,
    /// Sum of their durations.
    pub syscall_ns: Option<i64>,
    /// Bytes that they moved.
    pub syscall_bytes: Option<i64>,
}

/// The functions with the most time.
pub(crate) fn functions(db: &Db) -> Result<Vec<LibraryFunction>, ReportError> {
    Ok(rows(
        db,
        &format!("FROM by_user_call LIMIT {TOP}"),
        |row| {
            read_row!(row => LibraryFunction {
                class function library calls counted failed total_ns p99_ns bytes reached syscalls
                syscall_ns syscall_bytes
            })
        },
    )?)
}

/// The table of the report; without rows when no calls were recorded.
pub(crate) fn section(functions: &[LibraryFunction]) -> Section {
    let known = |value: Option<i64>, format: fn(i64) -> String| value.map_or("-".into(), format);
    let row = |f: &LibraryFunction| {
        vec![
            f.function.clone(),
            f.class.clone(),
            count(f.calls),
            known(f.total_ns, duration),
            known(f.p99_ns, duration),
            known(f.bytes, bytes),
            known(f.syscalls, count),
            known(f.syscall_ns, duration),
            known(f.syscall_bytes, bytes),
        ]
    };
    let note = match functions.iter().any(|f| f.counted > 0) {
        true => "with the system calls that they made; -: unknown, as calls were counted",
        false => "with the system calls that they made",
    };
    Section {
        title: "Library calls",
        note: note.into(),
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
