//! The rules, a file each.

use crate::rule::{Rule, RuleInfo};

macro_rules! rules {
    ($($module:ident :: $rule:ident),* $(,)?) => {
        $(mod $module;)*

        /// Every rule, in the order of the documentation.
        pub fn all() -> Vec<Box<dyn Rule>> {
            vec![$(Box::new($module::$rule::default())),*]
        }
    };
}

rules! {
    small_sequential::SmallSequential,
    seek_then_io::SeekThenIo,
    reopen::Reopen,
    redundant_stat::RedundantStat,
    lookup_storm::LookupStorm,
    sync_storm::SyncStorm,
    sync_all::SyncAll,
    overwrite::Overwrite,
    reread::Reread,
    temp_churn::TempChurn,
    copy_loop::CopyLoop,
    rename_unsynced::RenameUnsynced,
    publish_unsynced::PublishUnsynced,
    dir_unsynced::DirUnsynced,
    sync_error_ignored::SyncErrorIgnored,
    write_error_ignored::WriteErrorIgnored,
    lost_update::LostUpdate,
    write_past_truncation::WritePastTruncation,
    write_to_deleted::WriteToDeleted,
    lock_by_polling::LockByPolling,
    range_sync_as_commit::RangeSyncAsCommit,
    temp_leak::TempLeak,
    retry_spin::RetrySpin,
    rotation_offset::RotationOffset,
    stale_inode_reader::StaleInodeReader,
    short_io::ShortIo,
    truncate_rewrite::TruncateRewrite,
    fd_leak::FdLeak,
    duplicate_open::DuplicateOpen,
    direct_misaligned::DirectMisaligned,
    contention::Contention,
    extend_without_allocate::ExtendWithoutAllocate,
    scan_out_of_order::ScanOutOfOrder,
    content_mismatch::ContentMismatch,
    metadata_storm::MetadataStorm,
    random_access::RandomAccess,
    shallow_async::ShallowAsync,
    write_amplification::WriteAmplification,
    read_own_write::ReadOwnWrite,
    fault_storm::FaultStorm,
    readahead_defeated::ReadaheadDefeated,
    background_tail::BackgroundTail,
    thread_interference::ThreadInterference,
    unfair_interrupts::UnfairInterrupts,
    queue_hog::QueueHog,
    cold_small_files::ColdSmallFiles,
    direct_shallow::DirectShallow,
    process_per_item::ProcessPerItem,
    online_discard::OnlineDiscard,
}

/// Of `parts` parts of about the same number of rules the one with that index.
pub fn part(index: usize, parts: usize) -> Vec<Box<dyn Rule>> {
    let all = all().into_iter().skip(index);
    all.step_by(parts.max(1)).collect()
}

/// What every rule says of itself.
pub fn catalogue() -> Vec<&'static RuleInfo> {
    all().iter().map(|rule| rule.info()).collect()
}
