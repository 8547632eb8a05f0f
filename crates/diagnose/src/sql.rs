//! Pieces of the SQL with which a finding lists its calls.

pub(crate) fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// All columns that matter of the calls that meet a condition, in order of time.
pub(crate) fn select(condition: &str) -> String {
    format!(
        "SELECT rid, ts_ns, dur_ns, tid, comm, syscall, ret, errno, file_offset, size, bytes, path \
         FROM syscalls WHERE {condition} ORDER BY ts_ns"
    )
}

/// The same for a condition with arguments, as `format!` has them.
macro_rules! calls {
    ($($condition:tt)*) => { $crate::sql::select(&format!($($condition)*)) };
}
pub(crate) use calls;
