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
    tiny_access::TinyAccess,
    lseek_before_io::LseekBeforeIo,
    repeated_open::RepeatedOpen,
    redundant_stat::RedundantStat,
    lookup_storm::LookupStorm,
    sync_storm::SyncStorm,
    sync_all::SyncAll,
    waits_for_anothers_sync::WaitsForAnothersSync,
    lock_convoy::LockConvoy,
    cpu_starvation::CpuStarvation,
    redundant_write::RedundantWrite,
    redundant_read::RedundantRead,
    whole_rewrite::WholeRewrite,
    temp_churn::TempChurn,
    userspace_copy::UserspaceCopy,
    rename_without_fsync::RenameWithoutFsync,
    publish_unsynced::PublishUnsynced,
    missing_dir_fsync::MissingDirFsync,
    sync_error_ignored::SyncErrorIgnored,
    write_error_ignored::WriteErrorIgnored,
    lost_update::LostUpdate,
    write_past_truncation::WritePastTruncation,
    write_to_deleted::WriteToDeleted,
    lock_by_polling::LockByPolling,
    range_sync_as_commit::RangeSyncAsCommit,
    temp_leak::TempLeak,
    busy_retry::BusyRetry,
    rotation_offset::RotationOffset,
    reading_replaced_file::ReadingReplacedFile,
    short_io::ShortIo,
    non_atomic_rewrite::NonAtomicRewrite,
    fd_leak::FdLeak,
    duplicate_open::DuplicateOpen,
    unaligned_direct_io::UnalignedDirectIo,
    contention::Contention,
    missing_fallocate::MissingFallocate,
    scan_out_of_order::ScanOutOfOrder,
    content_mismatch::ContentMismatch,
    metadata_storm::MetadataStorm,
    random_access::RandomAccess,
    shallow_async::ShallowAsync,
    write_amplification::WriteAmplification,
    read_after_write_miss::ReadAfterWriteMiss,
    fault_storm::FaultStorm,
    readahead_defeated::ReadaheadDefeated,
    background_io_interference::BackgroundIoInterference,
    thread_interference::ThreadInterference,
    irq_imbalance::IrqImbalance,
    noisy_neighbor::NoisyNeighbor,
    cold_small_files::ColdSmallFiles,
    direct_shallow::DirectShallow,
    hole_reads::HoleReads,
    process_per_item::ProcessPerItem,
    online_discard::OnlineDiscard,
    slow_request::SlowRequest,
    queries_in_a_loop::QueriesInALoop,
    unbuffered_stdio::UnbufferedStdio,
    stdio_read_amplification::StdioReadAmplification,
    small_collective_io::SmallCollectiveIo,
}

/// Of `parts` parts of about the same number of rules the one with that index.
pub fn part(index: usize, parts: usize) -> Vec<Box<dyn Rule>> {
    let all = all().into_iter().skip(index);
    all.step_by(parts.max(1)).collect()
}

/// The texts of every rule.
pub fn catalog() -> Vec<&'static RuleInfo> {
    all().iter().map(|rule| rule.info()).collect()
}
