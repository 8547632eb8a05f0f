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
    lseek_before_io::LseekBeforeIo,
    repeated_open::RepeatedOpen,
    redundant_stat::RedundantStat,
    lookup_storm::LookupStorm,
    sync_storm::SyncStorm,
    sync_all::SyncAll,
    redundant_write::RedundantWrite,
    redundant_read::RedundantRead,
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
}

/// Former ids, and those by which their rules go now.
const RENAMED: [(&str, &str); 16] = [
    ("background-tail", "background-io-interference"),
    ("copy-loop", "userspace-copy"),
    ("dir-unsynced", "missing-dir-fsync"),
    ("direct-misaligned", "unaligned-direct-io"),
    ("extend-without-allocate", "missing-fallocate"),
    ("overwrite", "redundant-write"),
    ("queue-hog", "noisy-neighbor"),
    ("read-own-write", "read-after-write-miss"),
    ("rename-unsynced", "rename-without-fsync"),
    ("reopen", "repeated-open"),
    ("reread", "redundant-read"),
    ("retry-spin", "busy-retry"),
    ("seek-then-io", "lseek-before-io"),
    ("stale-inode-reader", "reading-replaced-file"),
    ("truncate-rewrite", "non-atomic-rewrite"),
    ("unfair-interrupts", "irq-imbalance"),
];

/// Former ids of a rule.
pub fn aliases(id: &str) -> Vec<&'static str> {
    let of_rule = RENAMED.iter().filter(|(_, now)| *now == id);
    of_rule.map(|(former, _)| *former).collect()
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

#[cfg(test)]
mod tests {
    use super::{RENAMED, aliases, catalogue};

    #[test]
    fn a_former_id_leads_to_one_rule_and_is_no_id() {
        let ids: Vec<&str> = catalogue().iter().map(|info| info.id).collect();
        for (former, now) in RENAMED {
            assert!(ids.contains(&now) && !ids.contains(&former), "{former}");
            assert_eq!(aliases(now), [former]);
        }
        assert!(aliases("sync-storm").is_empty());
    }
}
