//! Which requests a finding is about.

use crate::call::FileId;
use crate::kind::Kinds;
use crate::ledger::Claimable;

/// Files whose requests have the time of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Files {
    /// All, and requests without a file.
    All,
    /// Requests without a file: of paths.
    Without,
    One(FileId),
    /// Those in the directory with this number.
    In(u64),
}

/// Requests whose time a finding claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scope {
    /// Process; `None`: all.
    pub(crate) pid: Option<i32>,
    /// Thread; `None`: all of the process.
    pub(crate) tid: Option<i32>,
    pub(crate) files: Files,
    pub(crate) kinds: Kinds,
}

impl Scope {
    pub(crate) fn has_thread(&self, pid: i32, tid: i32) -> bool {
        self.pid.is_none_or(|own| own == pid) && self.tid.is_none_or(|own| own == tid)
    }

    pub(crate) fn has(&self, sum: &Claimable) -> bool {
        let files = match self.files {
            Files::All => true,
            Files::Without => sum.key.file.is_none(),
            Files::One(file) => sum.key.file == Some(file),
            Files::In(directory) => sum.directory == Some(directory),
        };
        files && self.has_thread(sum.pid, sum.key.tid) && sum.key.is_of(self.kinds)
    }
}
