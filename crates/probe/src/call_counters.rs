//! The kernel side's counters of calls without a record (`--detail counters`, `--rows tail`).

use fathom_model::abi::{MAX_SYSCALLS, ShedKey, ShedValue};
use fathom_model::syscalls::SYSCALLS;
use libbpf_rs::{MapCore, MapFlags, Object};

use crate::error::ProbeError;
use crate::maps::map;

/// Counters that the kernel has room for.
pub(crate) const MAX_COUNTED: usize = 1 << 16;
/// Process of what was counted without one.
pub const NO_PROCESS: u32 = u32::MAX;

/// Reads the counters, and makes room for others.
#[derive(Debug, Default)]
pub(crate) struct CallCounters {
    /// The array for what found no room may have something.
    overflows: bool,
}

impl CallCounters {
    /// All counters; counters that the kernel had no room to split have [`NO_PROCESS`] as their
    /// process.
    pub(crate) fn read(
        &mut self,
        object: &Object,
        cpus: usize,
    ) -> Result<Vec<(ShedKey, ShedValue)>, ProbeError> {
        let counted = map(object, "counted")?;
        let mut values = Vec::new();
        for key in counted.keys() {
            let value = counted.lookup(&key, MapFlags::ANY).map_err(refused)?;
            if let (Some(key), Some(value)) = (
                ShedKey::parse(&key),
                value.as_deref().and_then(ShedValue::parse),
            ) {
                values.push((key, value));
            }
        }
        // Once full, the map may have been so between two reads, too.
        self.overflows |= values.len() >= MAX_COUNTED / 2;
        if !self.overflows {
            return Ok(values);
        }
        let rest = map(object, "counted_rest")?;
        for cpu in 0..cpus as u32 {
            for syscall in 0..SYSCALLS.len() as u32 {
                let index = (cpu * MAX_SYSCALLS + syscall).to_ne_bytes();
                let value = rest.lookup(&index, MapFlags::ANY).map_err(refused)?;
                if let Some(value) = value.as_deref().and_then(ShedValue::parse)
                    && value.count > 0
                {
                    let key = ShedKey {
                        cpu,
                        syscall,
                        pid: NO_PROCESS,
                        file: 0,
                    };
                    values.push((key, value));
                }
            }
        }
        Ok(values)
    }

    /// Forgets counters of processes that have ended.
    pub(crate) fn forget(&mut self, object: &Object, keys: &[ShedKey]) -> Result<(), ProbeError> {
        self.overflows |= !keys.is_empty();
        let counted = map(object, "counted")?;
        for key in keys {
            counted.delete(&key.to_bytes()).map_err(refused)?;
        }
        Ok(())
    }
}

fn refused(source: libbpf_rs::Error) -> ProbeError {
    ProbeError::Refused {
        what: "the counters".into(),
        source,
    }
}
