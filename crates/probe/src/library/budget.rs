//! Functions that are called too often for a record of each call (`--library-budget`).
//!
//! Such a function's further calls are counted, until the recording ends: so its records are complete
//! before one moment, and there are none behind it.

use fathom_model::abi::{LibraryCountRecord, RECORD_LIBRARY_COUNT};

use crate::framing::append_framed;

/// The time in which calls are compared with the budget, and in which counts are read.
pub(super) const SECOND_NS: u64 = 1_000_000_000;

/// Calls of functions in the current second.
#[derive(Debug)]
pub(super) struct Budget {
    calls_per_second: Option<u64>,
    began_ns: u64,
    calls: Vec<u64>,
    counted: Vec<bool>,
}

impl Budget {
    /// Whether no function can exceed it.
    pub(super) fn is_off(&self) -> bool {
        self.calls_per_second.is_none()
    }
}

/// A function that is counted from now on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exceeded {
    pub(super) function: u16,
    /// Its calls with a record since that time.
    pub(super) calls: u64,
    pub(super) since_ns: u64,
}

impl Budget {
    pub(super) fn new(calls_per_second: Option<u64>, now_ns: u64) -> Self {
        Self {
            calls_per_second,
            began_ns: now_ns,
            calls: Vec::new(),
            counted: Vec::new(),
        }
    }

    /// Calls of a function that got a record.
    pub(super) fn add(&mut self, function: u16, calls: u64) {
        let function = usize::from(function);
        if self.calls.len() <= function {
            self.calls.resize(function + 1, 0);
            self.counted.resize(function + 1, false);
        }
        if let Some(sum) = self.calls.get_mut(function) {
            *sum = sum.saturating_add(calls);
        }
    }

    /// Whether the calls of a function are counted.
    pub(super) fn is_counted(&self, function: u16) -> bool {
        self.counted.get(usize::from(function)) == Some(&true)
    }

    /// The functions that have exceeded the budget since the last time. A look that comes late
    /// allows as much more as it is late.
    pub(super) fn look(&mut self, now_ns: u64) -> Vec<Exceeded> {
        let Some(limit) = self.calls_per_second else {
            return Vec::new();
        };
        let elapsed_ns = now_ns.saturating_sub(self.began_ns);
        let allowed = u128::from(limit) * u128::from(elapsed_ns.max(SECOND_NS));
        let mut exceeded = Vec::new();
        let functions = self.calls.iter().zip(&mut self.counted);
        for (function, (calls, counted)) in (0..).zip(functions) {
            if !*counted && u128::from(*calls) * u128::from(SECOND_NS) > allowed {
                *counted = true;
                exceeded.push(Exceeded {
                    function,
                    calls: *calls,
                    since_ns: self.began_ns,
                });
            }
        }
        if elapsed_ns >= SECOND_NS {
            self.began_ns = now_ns;
            self.calls.fill(0);
        }
        exceeded
    }
}

impl Exceeded {
    /// The record that says so. Calls that begin after `now_ns` are counted.
    pub(super) fn write(&self, now_ns: u64, to: &mut Vec<u8>) {
        let mut record = count_of(self.function, 0, (self.since_ns, now_ns), self.calls);
        record.begins = 1;
        append_framed(to, &record.to_bytes());
    }
}

/// Writes the record of calls of a function by process `pid` that began in a time.
pub(super) fn write_count(function: u16, pid: u32, time: (u64, u64), count: u64, to: &mut Vec<u8>) {
    append_framed(to, &count_of(function, pid, time, count).to_bytes());
}

fn count_of(
    function: u16,
    pid: u32,
    (from_ns, to_ns): (u64, u64),
    count: u64,
) -> LibraryCountRecord {
    LibraryCountRecord {
        kind: RECORD_LIBRARY_COUNT as u8,
        begins: 0,
        function,
        pid,
        ts_ns: from_ns,
        dur_ns: to_ns.saturating_sub(from_ns),
        count,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = SECOND_NS;

    #[test]
    fn a_function_is_counted_once_it_exceeds_the_budget() {
        let mut budget = Budget::new(Some(100), 0);
        budget.add(3, 100);
        budget.add(1, 60);
        assert_eq!(budget.look(S / 2), []);
        budget.add(1, 41);
        let exceeded = Exceeded {
            function: 1,
            calls: 101,
            since_ns: 0,
        };
        assert_eq!(budget.look(S / 2 + 1), [exceeded]);
        assert!(budget.is_counted(1) && !budget.is_counted(3) && !budget.is_counted(9));
        // Once, whatever comes.
        budget.add(1, 1000);
        assert_eq!(budget.look(S / 2 + 2), []);
    }

    #[test]
    fn each_second_has_its_own_budget() {
        let mut budget = Budget::new(Some(100), 0);
        budget.add(0, 100);
        assert_eq!(budget.look(S), []);
        budget.add(0, 100);
        assert_eq!(budget.look(S + 1), []);
        assert_eq!(budget.look(2 * S), []);
        // The recorder was held up for three seconds.
        budget.add(0, 300);
        assert_eq!(budget.look(5 * S), []);
        budget.add(0, 301);
        assert_eq!(budget.look(8 * S).len(), 1);
    }

    #[test]
    fn without_a_budget_nothing_is_counted() {
        let mut budget = Budget::new(None, 0);
        budget.add(0, u64::MAX);
        budget.add(0, u64::MAX);
        assert_eq!(budget.look(10 * S), []);
        let mut most = Budget::new(Some(u64::MAX), 0);
        most.add(0, u64::MAX);
        assert_eq!(most.look(u64::MAX), []);
    }
}
