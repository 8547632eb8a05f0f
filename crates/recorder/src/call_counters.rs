//! `--detail counters`: the kernel's counters, read while they count.

use std::collections::BTreeMap;
use std::path::Path;

use fathom_model::abi::{ShedKey, ShedValue};
use fathom_probe::{NO_PROCESS, ProbeError};

use crate::source::RecordSource;

/// Counters are forgotten when there are more, of processes that have ended.
const MANY: usize = 4096;

/// The counts so far.
#[derive(Default)]
pub(crate) struct CallCounters {
    /// Now in the kernel.
    there: u64,
    /// In counters that were forgotten.
    forgotten: u64,
}

impl CallCounters {
    /// Calls counted until the last time.
    pub(crate) fn total(&self) -> u64 {
        self.there + self.forgotten
    }

    /// All counters. If there are many, counters of ended processes make room for others: this
    /// returns them for the last time.
    pub(crate) fn read(
        &mut self,
        source: &mut impl RecordSource,
    ) -> Result<Vec<(ShedKey, ShedValue)>, ProbeError> {
        // A process that has ended before the counters are read counts nothing any more.
        let mut ended = BTreeMap::new();
        let before = source.counted()?;
        if before.len() < MANY {
            self.there = before.iter().map(|(_, value)| value.count).sum();
            return Ok(before);
        }
        for (key, _) in before.iter().filter(|(key, _)| key.pid != NO_PROCESS) {
            ended
                .entry(key.pid)
                .or_insert_with(|| !Path::new(&format!("/proc/{}", key.pid)).exists());
        }
        let values = source.counted()?;
        let gone = |key: &ShedKey| ended.get(&key.pid).copied().unwrap_or(false);
        let keys: Vec<ShedKey> = values
            .iter()
            .filter(|(key, _)| gone(key))
            .map(|(key, _)| *key)
            .collect();
        let sum = |of: bool| -> u64 {
            let counts = values.iter().filter(|(key, _)| gone(key) == of);
            counts.map(|(_, value)| value.count).sum()
        };
        source.forget_counted(&keys)?;
        self.forgotten += sum(true);
        self.there = sum(false);
        Ok(values)
    }
}
