//! Rules that have had another name.

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

#[cfg(test)]
mod tests {
    use super::{RENAMED, aliases};
    use crate::rules::catalog;

    #[test]
    fn a_former_id_leads_to_one_rule_and_is_no_id() {
        let ids: Vec<&str> = catalog().iter().map(|info| info.id).collect();
        for (former, now) in RENAMED {
            assert!(ids.contains(&now) && !ids.contains(&former), "{former}");
            assert_eq!(aliases(now), [former]);
        }
        assert!(aliases("sync-storm").is_empty());
    }
}
