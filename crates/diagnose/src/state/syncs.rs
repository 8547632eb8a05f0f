//! Which calls wait until bytes are on the device.

use crate::call::Call;
use crate::kind::Kind;
use crate::state::descriptors::Description;

/// The bytes that a call makes durable, for programs that need data to survive a crash. All rules
/// about syncs use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Synced {
    /// A file is durable afterwards: fsync, fdatasync, msync(MS_SYNC).
    File,
    /// Every file of one or of all file systems is: syncfs, sync.
    All,
    /// The bytes that the call writes are: O_SYNC, O_DSYNC, RWF_SYNC, RWF_DSYNC.
    Own,
    /// A range was written, which is not durable by that: sync_file_range does not flush the cache
    /// of the device, nor write metadata.
    Range,
}

impl Synced {
    /// The bytes that a call on a description makes durable; `None` if it failed or does not wait.
    pub(crate) fn of(call: &Call, open: Option<&Description>) -> Option<Self> {
        if !call.succeeded() {
            return None;
        }
        let waits = |flags: [&str; 2]| flags.into_iter().any(|flag| call.has_flag(flag));
        match call.kind {
            Kind::Sync => Some(Self::File),
            Kind::Msync => call.has_flag("MS_SYNC").then_some(Self::File),
            Kind::SyncAll => Some(Self::All),
            Kind::SyncRange => waits(["SYNC_FILE_RANGE_WAIT_BEFORE", "SYNC_FILE_RANGE_WAIT_AFTER"])
                .then_some(Self::Range),
            Kind::Write => (waits(["RWF_SYNC", "RWF_DSYNC"])
                || open.is_some_and(Description::is_synchronous))
            .then_some(Self::Own),
            _ => None,
        }
    }
}
