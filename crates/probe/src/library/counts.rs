//! The calls of functions that the programs for uprobes count (`bpf/library.bpf.h`).

use std::collections::HashMap;
use std::path::Path;

use fathom_model::abi::{FunctionDesc, LibraryCountKey, LibraryTally};
use libbpf_rs::{MapCore, MapFlags, Object};

use super::budget::{Budget, SECOND_NS, write_count};
use crate::call_counters::NO_PROCESS;
use crate::maps::map;
use crate::monotonic_ns;

/// How often calls are compared with the budget.
const LOOK_NS: u64 = 100_000_000;

/// The contents of the maps.
#[derive(Debug)]
pub(super) struct Counts {
    budget: Budget,
    looked_ns: u64,
    read_ns: u64,
    tallies: Vec<LibraryTally>,
    /// Calls by process and function.
    before: HashMap<(u32, u32), u64>,
    /// Some function's calls are counted.
    any: bool,
}

impl Counts {
    pub(super) fn new(calls_per_second: Option<u64>) -> Self {
        let now_ns = monotonic_ns();
        Self {
            budget: Budget::new(calls_per_second, now_ns),
            looked_ns: now_ns,
            read_ns: now_ns,
            tallies: Vec::new(),
            before: HashMap::new(),
            any: false,
        }
    }

    /// Looks whether some of so many functions exceed the budget, and appends the records of what was
    /// counted. `is_over`: no program runs any more.
    pub(super) fn look(
        &mut self,
        object: &Object,
        functions: u16,
        is_over: bool,
        records: &mut Vec<u8>,
    ) -> libbpf_rs::Result<()> {
        if self.budget.is_off() {
            return Ok(());
        }
        let now_ns = monotonic_ns();
        if !is_over && now_ns.saturating_sub(self.looked_ns) < LOOK_NS {
            return Ok(());
        }
        self.looked_ns = now_ns;
        let due = is_over || now_ns.saturating_sub(self.read_ns) >= SECOND_NS;
        let mut unsplit = Vec::new();
        self.tallies.resize(
            usize::from(functions),
            LibraryTally {
                calls: 0,
                unsplit: 0,
            },
        );
        for number in 0..functions {
            let Some(now) = tally(object, number)? else {
                continue;
            };
            let Some(before) = self.tallies.get_mut(usize::from(number)) else {
                continue;
            };
            self.budget
                .add(number, now.calls.saturating_sub(before.calls));
            before.calls = now.calls;
            if due && now.unsplit > before.unsplit {
                unsplit.push((number, now.unsplit - before.unsplit));
                before.unsplit = now.unsplit;
            }
        }
        if !is_over {
            for exceeded in self.budget.look(now_ns) {
                count_only(object, exceeded.function)?;
                exceeded.write(monotonic_ns(), records);
                self.any = true;
            }
        }
        if due {
            let time = (self.read_ns, now_ns);
            self.read_ns = now_ns;
            for (number, count) in unsplit {
                write_count(number, NO_PROCESS, time, count, records);
            }
            if self.any {
                self.read(object, time, records)?;
            }
        }
        Ok(())
    }

    /// The calls of the processes since the last time.
    fn read(
        &mut self,
        object: &Object,
        time: (u64, u64),
        records: &mut Vec<u8>,
    ) -> libbpf_rs::Result<()> {
        let Ok(counts) = map(object, "library_counts") else {
            return Ok(());
        };
        let keys: Vec<Vec<u8>> = counts.keys().collect();
        for bytes in keys {
            let Some(key) = LibraryCountKey::parse(&bytes) else {
                continue;
            };
            // Before the count: a process that is over counts nothing more.
            let is_over = !Path::new(&format!("/proc/{}", key.pid)).exists();
            let value = counts.lookup(&bytes, MapFlags::ANY)?;
            let Some(now) = value.and_then(|v| Some(u64::from_ne_bytes(*v.first_chunk()?))) else {
                continue;
            };
            let place = (key.pid, key.function);
            let before = self.before.insert(place, now).unwrap_or(0);
            if now > before {
                let function = u16::try_from(key.function).unwrap_or(u16::MAX);
                write_count(function, key.pid, time, now - before, records);
            }
            if is_over {
                counts.delete(&bytes)?;
                self.before.remove(&place);
            }
        }
        Ok(())
    }
}

fn tally(object: &Object, number: u16) -> libbpf_rs::Result<Option<LibraryTally>> {
    let Ok(tallies) = map(object, "library_tallies") else {
        return Ok(None);
    };
    let of_cpus = tallies.lookup_percpu(&u32::from(number).to_ne_bytes(), MapFlags::ANY)?;
    let mut sum = LibraryTally {
        calls: 0,
        unsplit: 0,
    };
    for tally in of_cpus
        .iter()
        .flatten()
        .filter_map(|bytes| LibraryTally::parse(bytes))
    {
        sum.calls = sum.calls.saturating_add(tally.calls);
        sum.unsplit = sum.unsplit.saturating_add(tally.unsplit);
    }
    Ok(Some(sum))
}

/// The programs count further calls of a function.
fn count_only(object: &Object, number: u16) -> libbpf_rs::Result<()> {
    let Ok(functions) = map(object, "functions") else {
        return Ok(());
    };
    let key = u32::from(number).to_ne_bytes();
    let value = functions.lookup(&key, MapFlags::ANY)?;
    let Some(desc) = value.as_deref().and_then(FunctionDesc::parse) else {
        return Ok(());
    };
    let desc = FunctionDesc { counted: 1, ..desc };
    functions.update(&key, &desc.to_bytes(), MapFlags::ANY)
}
