//! Input of a report besides the tables.

use fathom_model::meta::SessionMeta;

/// Input of a report besides the tables.
#[derive(Clone, Debug)]
pub struct ReportInput<'a> {
    /// Metadata of the session.
    pub meta: &'a SessionMeta,
    /// Missing or damaged data.
    pub problems: &'a [String],
    /// Directory, as given.
    pub location: String,
    /// Whether it is being recorded.
    pub live: bool,
    /// Size of all parts.
    pub bytes: u64,
    /// Size of the parts of table `syscalls`.
    pub syscall_bytes: u64,
}
