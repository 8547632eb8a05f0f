//! Counters of perf that are read of each request (`--counters`): which are asked for,
//! which the machine has, and their events on every processor.

use std::io;

use fathom_model::abi::MAX_COUNTERS;
use fathom_model::meta;
use fathom_model::perf_counters::{PERF_COUNTERS, PerfCounter};
use libbpf_rs::{MapCore, MapFlags, Object};
use std::os::fd::{AsRawFd, OwnedFd};

use crate::error::ProbeError;
use crate::hooks::open_event;
use crate::maps::map;

/// Counters that are asked for, in the order of [`PERF_COUNTERS`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PerfCounters(Vec<&'static PerfCounter>);

/// A list that is none of counters.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum PerfCountersError {
    /// A word that names no counter.
    #[error("no counter named {0:?}: use {names}", names = names())]
    Unknown(String),
    /// More than a record can hold.
    #[error("cannot read {0} counters at once, at most {MAX_COUNTERS}; record twice")]
    TooMany(usize),
}

fn names() -> String {
    PERF_COUNTERS
        .each_ref()
        .map(|counter| counter.name)
        .join(", ")
}

impl PerfCounters {
    /// The counters that `words` name, each a list separated by commas, by the names that
    /// `perf list` shows.
    ///
    /// # Errors
    /// When a word names no counter, or there are too many.
    pub fn parse(words: &[String]) -> Result<Self, PerfCountersError> {
        let mut asked = Vec::new();
        for word in words.iter().flat_map(|words| words.split(',')) {
            let word = word.trim();
            let named = |c: &&PerfCounter| !word.is_empty() && (c.name == word || c.alias == word);
            let counter = PERF_COUNTERS.iter().find(named);
            asked.push(counter.ok_or_else(|| PerfCountersError::Unknown(word.to_string()))?);
        }
        asked.sort_by_key(|counter| counter.number);
        asked.dedup();
        if asked.len() > MAX_COUNTERS as usize {
            return Err(PerfCountersError::TooMany(asked.len()));
        }
        Ok(Self(asked))
    }

    /// Whether none is asked for.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Their names, separated by commas.
    pub fn names(&self) -> String {
        let names: Vec<_> = self.0.iter().map(|counter| counter.name).collect();
        names.join(",")
    }

    /// The bits of `counters` in records: one per counter.
    pub(crate) fn bits(&self) -> u32 {
        self.0.iter().map(|counter| 1 << counter.number).sum()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The counters that all of `cpus` CPUs have, and the state of each.
    pub(crate) fn there(&self, cpus: usize) -> (Self, Vec<meta::PerfCounter>) {
        let mut there = Vec::new();
        let mut list = Vec::new();
        for counter in &self.0 {
            let tried = on_each_cpu(counter, cpus, |_, _| Ok(()));
            list.push(meta::PerfCounter {
                name: counter.name.to_string(),
                counted: tried.is_ok(),
                note: tried.as_ref().err().map_or_else(String::new, why),
            });
            if tried.is_ok() {
                there.push(*counter);
            }
        }
        (Self(there), list)
    }

    /// Opens the events and hands them to the programs, which find nothing to read before. They
    /// last as long as `object`.
    pub(crate) fn open(&self, object: &Object, cpus: usize) -> Result<(), ProbeError> {
        let events = map(object, "perf_events")?;
        for (place, counter) in self.0.iter().enumerate() {
            on_each_cpu(counter, cpus, |cpu, event| {
                let key = (place * cpus + cpu) as u32;
                // The map keeps the event: descriptors are few where processors are many.
                events
                    .update(
                        &key.to_ne_bytes(),
                        &event.as_raw_fd().to_ne_bytes(),
                        MapFlags::ANY,
                    )
                    .map_err(io::Error::other)
            })
            .map_err(|source| ProbeError::Refused {
                what: format!("counter {}", counter.name),
                source: source.into(),
            })?;
        }
        Ok(())
    }
}

/// The state of each counter that fathom knows on this machine.
pub fn perf_counters_here() -> Vec<meta::PerfCounter> {
    let cpus = libbpf_rs::num_possible_cpus().unwrap_or(1);
    let all = PerfCounters(PERF_COUNTERS.iter().collect());
    all.there(cpus).1
}

/// Opens the counter on each online CPU, for all tasks that run on it, and gives it to `take`.
fn on_each_cpu(
    counter: &PerfCounter,
    cpus: usize,
    mut take: impl FnMut(usize, OwnedFd) -> io::Result<()>,
) -> io::Result<()> {
    let (kind, config) = event_of(counter);
    let mut found = Err(io::Error::from_raw_os_error(libc::ENODEV));
    for cpu in 0..cpus {
        match open_event(kind, config, cpu as i32, 0) {
            Ok(event) => {
                take(cpu, event)?;
                found = Ok(());
            }
            // Switched off.
            Err(error) if error.raw_os_error() == Some(libc::ENODEV) => {}
            Err(error) => return Err(error),
        }
    }
    found
}

/// Type and number of perf's event.
fn event_of(counter: &PerfCounter) -> (u32, u32) {
    use libbpf_sys as sys;
    let config = match counter.name {
        "cycles" => sys::PERF_COUNT_HW_CPU_CYCLES,
        "instructions" => sys::PERF_COUNT_HW_INSTRUCTIONS,
        "cache-references" => sys::PERF_COUNT_HW_CACHE_REFERENCES,
        "cache-misses" => sys::PERF_COUNT_HW_CACHE_MISSES,
        "branch-misses" => sys::PERF_COUNT_HW_BRANCH_MISSES,
        "page-faults" => sys::PERF_COUNT_SW_PAGE_FAULTS,
        "context-switches" => sys::PERF_COUNT_SW_CONTEXT_SWITCHES,
        "cpu-migrations" => sys::PERF_COUNT_SW_CPU_MIGRATIONS,
        // Of a processor, not of a task: it is the time that passes there.
        _ => sys::PERF_COUNT_SW_TASK_CLOCK,
    };
    let kind = if counter.hardware {
        sys::PERF_TYPE_HARDWARE
    } else {
        sys::PERF_TYPE_SOFTWARE
    };
    (kind, config)
}

/// Why perf refuses an event, and what to do.
fn why(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV) => {
            "the processor does not have it, or the hypervisor does not expose it".into()
        }
        Some(libc::EACCES | libc::EPERM) => {
            "no permission to count for all tasks: CAP_PERFMON is missing".into()
        }
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<PerfCounters, PerfCountersError> {
        let words: Vec<_> = words.iter().map(|w| w.to_string()).collect();
        PerfCounters::parse(&words)
    }

    #[test]
    fn lists() {
        let two = parse(&["task-clock, cycles", "cpu-cycles"]).unwrap();
        assert_eq!((two.names().as_str(), two.len()), ("cycles,task-clock", 2));
        assert_eq!(two.bits(), 0b10_0001);
        assert_eq!(parse(&["faults,cs"]).unwrap().bits(), 0b1100_0000);
        assert!(parse(&[]).unwrap().is_empty());
        for word in ["cycle", "", "cycles,,cs"] {
            let error = parse(&[word]).unwrap_err().to_string();
            assert!(error.contains("use cycles, instructions,"), "{error}");
        }
        let all = names();
        assert_eq!(parse(&[&all]), Err(PerfCountersError::TooMany(9)));
    }

    #[test]
    fn each_has_an_event_of_its_own() {
        let mut events = PERF_COUNTERS.each_ref().map(event_of).to_vec();
        events.sort_unstable();
        events.dedup();
        assert_eq!(events.len(), PERF_COUNTERS.len());
    }
}
