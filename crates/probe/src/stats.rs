//! The kernel side's counts: calls seen, lost, and excluded.

use fathom_model::abi::{CpuStats, MAX_SYSCALLS, ShedKey, ShedValue};
use fathom_model::layers;
use fathom_model::meta::LayerCounts;
use fathom_model::syscalls::SYSCALLS;
use libbpf_rs::{MapCore, MapFlags, Object};

use crate::error::ProbeError;
use crate::maps::map;

/// Counts of the kernel side, all CPUs together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelStats {
    /// Calls that passed the filters.
    pub seen: u64,
    /// Calls whose record found no room.
    pub lost: u64,
    /// Calls by 32-bit programs, which are not recorded.
    pub compat: u64,
    /// Losses that could not be split by process and file.
    pub shed_overflow: u64,
    /// File records that had to be sent later.
    pub file_retry: u64,
    /// Task records that found no room.
    pub task_lost: u64,
    /// Tasks for which no state could be allocated.
    pub untracked: u64,
    /// Wide records dropped because no scratch memory was free.
    pub scratch_busy: u64,
    /// Page faults on mapped files, and those whose record found no room.
    pub faults: (u64, u64),
    /// Page faults whose mapping could not be looked up.
    pub faults_unknown: u64,
    /// Requests of write-back, and those whose record found no room.
    pub writeback: (u64, u64),
    /// Records of the layers below the calls.
    pub layers: LayerCounts,
    /// Time in the programs of the calls that were timed, nanoseconds.
    pub timed_ns: u64,
    pub timed_calls: u64,
}

impl KernelStats {
    /// The sum over all CPUs.
    pub(crate) fn of(cpus: &[CpuStats]) -> Self {
        let mut total = KernelStats::default();
        for cpu in cpus {
            total.seen += cpu.calls();
            total.faults.0 += cpu.faults + cpu.faults_lost;
            total.faults.1 += cpu.faults_lost;
            total.faults_unknown += cpu.faults_unknown;
            total.writeback.0 += cpu.writebacks + cpu.writebacks_lost;
            total.writeback.1 += cpu.writebacks_lost;
            total.layers.add(cpu);
            total.timed_ns += cpu.cost_ns;
            total.timed_calls += cpu.cost_calls;
            total.lost += cpu.calls_lost();
            total.compat += cpu.compat;
            total.shed_overflow += cpu.shed_overflow;
            total.file_retry += cpu.file_retry;
            total.task_lost += cpu.task_lost;
            total.untracked += cpu.untracked;
            total.scratch_busy += cpu.scratch_busy;
        }
        total
    }

    /// Nanoseconds that the programs took of a recorded call, entry and return
    /// together, without what the kernel needs to call them: the mean of the
    /// calls that were timed. `None` when none was.
    pub fn ns_per_call(&self) -> Option<f64> {
        (self.timed_calls > 0).then(|| self.timed_ns as f64 / self.timed_calls as f64)
    }
}

/// Calls that were seen but found no room in a ring.
#[derive(Clone, Debug, Default)]
pub struct Losses {
    /// CPU, call (index into [`SYSCALLS`]) and what was lost: exact.
    pub by_cpu: Vec<(u32, u32, ShedValue)>,
    /// The same by process and file, as far as there was room to tell.
    pub split: Vec<(ShedKey, ShedValue)>,
    /// All counters of each CPU at the same moment.
    pub counters: Vec<(u32, CpuStats)>,
}

impl Losses {
    /// Reads what the programs could not put into the rings.
    ///
    /// # Errors
    /// When a map can't be read.
    pub(crate) fn read(
        object: &Object,
        cpus: usize,
        counters: Vec<CpuStats>,
    ) -> Result<Self, ProbeError> {
        let read = |what: &str, source| ProbeError::Refused {
            what: what.into(),
            source,
        };
        let lost = map(object, "lost")?;
        let mut losses = Losses {
            counters: (0..).zip(counters).collect(),
            ..Losses::default()
        };
        for cpu in 0..cpus as u32 {
            for call in (0..SYSCALLS.len() as u32).chain(layers::lost_others()) {
                let key = (cpu * MAX_SYSCALLS + call).to_ne_bytes();
                let value = lost
                    .lookup(&key, MapFlags::ANY)
                    .map_err(|e| read("losses", e))?;
                if let Some(value) = value.as_deref().and_then(ShedValue::parse)
                    && value.count > 0
                {
                    losses.by_cpu.push((cpu, call, value));
                }
            }
        }
        if losses.by_cpu.is_empty() {
            return Ok(losses);
        }
        let shed = map(object, "shed")?;
        for key in shed.keys() {
            let value = shed
                .lookup(&key, MapFlags::ANY)
                .map_err(|e| read("losses", e))?;
            if let (Some(key), Some(value)) = (
                ShedKey::parse(&key),
                value.as_deref().and_then(ShedValue::parse),
            ) {
                losses.split.push((key, value));
            }
        }
        Ok(losses)
    }

    /// Calls lost.
    pub fn total(&self) -> u64 {
        self.by_cpu.iter().map(|(_, _, value)| value.count).sum()
    }
}
