//! The kernel side's counters of calls without a record (`--detail counters`, `--rows tail`).
//!
//! They have two sides: calls are counted on one while the other is taken and emptied. So each
//! read returns the calls counted since the last one, however many files there were before.

use std::collections::HashMap;

use fathom_model::abi::{COUNTED_SIDE, MAX_SYSCALLS, ShedKey, ShedValue};
use fathom_model::syscalls::SYSCALLS;
use libbpf_rs::{MapCore, MapFlags, Object};

use crate::error::ProbeError;
use crate::maps::map;

/// Counters that the kernel has room for.
pub(crate) const MAX_COUNTED: usize = 1 << 16;
/// Process of what was counted without one.
pub const NO_PROCESS: u32 = u32::MAX;

/// Takes the counters.
#[derive(Debug, Default)]
pub(crate) struct CallCounters {
    /// Where calls are counted: [`COUNTED_SIDE`] or 0.
    side: u32,
    /// The array for what found no room may have something.
    overflows: bool,
    /// The counters in that array when they were read last, by CPU and call.
    rest: HashMap<(u32, u32), ShedValue>,
}

impl CallCounters {
    /// The calls counted since the last time; counters that the kernel had no room to split have
    /// [`NO_PROCESS`] as their process. `settle` waits until no program counts on the side that
    /// was left; `None` when no program runs any more, so that both sides are taken.
    pub(crate) fn take(
        &mut self,
        object: &Object,
        cpus: usize,
        settle: Option<impl FnOnce() -> Result<(), ProbeError>>,
    ) -> Result<Vec<(ShedKey, ShedValue)>, ProbeError> {
        let left = match settle {
            Some(settle) => {
                let left = self.side;
                self.side ^= COUNTED_SIDE;
                map(object, ".data.counting")?
                    .update(&0u32.to_ne_bytes(), &self.side.to_ne_bytes(), MapFlags::ANY)
                    .map_err(refused)?;
                settle()?;
                Some(left)
            }
            None => None,
        };
        let counted = map(object, "counted")?;
        let keys: Vec<Vec<u8>> = counted.keys().collect();
        // Once full, the map may have been so between two reads, too.
        self.overflows |= keys.len() >= MAX_COUNTED / 2;
        let mut values = Vec::with_capacity(keys.len());
        for bytes in keys {
            let Some(key) = ShedKey::parse(&bytes) else {
                continue;
            };
            if left.is_some_and(|left| key.cpu & COUNTED_SIDE != left) {
                continue;
            }
            let value = counted.lookup(&bytes, MapFlags::ANY).map_err(refused)?;
            counted.delete(&bytes).map_err(refused)?;
            if let Some(value) = value.as_deref().and_then(ShedValue::parse) {
                let cpu = key.cpu & !COUNTED_SIDE;
                values.push((ShedKey { cpu, ..key }, value));
            }
        }
        if self.overflows {
            self.take_rest(object, cpus, &mut values)?;
        }
        Ok(values)
    }

    /// Adds what found no room; those counters only grow.
    fn take_rest(
        &mut self,
        object: &Object,
        cpus: usize,
        values: &mut Vec<(ShedKey, ShedValue)>,
    ) -> Result<(), ProbeError> {
        let rest = map(object, "counted_rest")?;
        for cpu in 0..cpus as u32 {
            for syscall in 0..SYSCALLS.len() as u32 {
                let index = (cpu * MAX_SYSCALLS + syscall).to_ne_bytes();
                let value = rest.lookup(&index, MapFlags::ANY).map_err(refused)?;
                let Some(value) = value.as_deref().and_then(ShedValue::parse) else {
                    continue;
                };
                let key = ShedKey {
                    cpu,
                    syscall,
                    pid: NO_PROCESS,
                    file: 0,
                };
                let before = self.rest.insert((cpu, syscall), value);
                let since = before.map_or(value, |before| since(&value, &before));
                if since.count > 0 {
                    values.push((key, since));
                }
            }
        }
        Ok(())
    }
}

/// The growth of sums; the longest duration is the one of all calls.
fn since(now: &ShedValue, before: &ShedValue) -> ShedValue {
    let mut since = *now;
    since.count = now.count.saturating_sub(before.count);
    since.errors = now.errors.saturating_sub(before.errors);
    since.bytes = now.bytes.saturating_sub(before.bytes);
    since.dur_ns = now.dur_ns.saturating_sub(before.dur_ns);
    for (sum, before) in since.hist.iter_mut().zip(before.hist) {
        *sum = sum.saturating_sub(before);
    }
    since
}

fn refused(source: libbpf_rs::Error) -> ProbeError {
    ProbeError::Refused {
        what: "the counters".into(),
        source,
    }
}
