//! Counters next to the slices: rates and depths over time.

use std::collections::BTreeMap;

use fathom_model::meta::SessionMeta;
use fathom_model::syscalls::{SYSCALLS, Syscall};

use super::proto::{UNIT_BYTES, UNIT_COUNT};

/// Slices of time of a session, about.
const SLICES: i64 = 5000;
const MIN_SLICE_NS: i64 = 1_000_000;
/// When the end of the recording is not known.
const DEFAULT_SLICE_NS: i64 = 10_000_000;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Counter {
    /// Bytes that calls read, a second.
    Read,
    /// Bytes that they write, a second.
    Written,
    /// Calls and operations that run: the most in a slice of time.
    InFlight,
    /// Requests in the queue of a device: the most in a slice of time.
    Queue(String),
}

impl Counter {
    /// Name and unit of its track.
    pub fn name(&self) -> (String, i32) {
        match self {
            Counter::Read => ("bytes read per second".into(), UNIT_BYTES),
            Counter::Written => ("bytes written per second".into(), UNIT_BYTES),
            Counter::InFlight => ("requests in flight".into(), UNIT_COUNT),
            Counter::Queue(device) => (format!("queue depth of {device}"), UNIT_COUNT),
        }
    }

    fn is_rate(&self) -> bool {
        matches!(self, Counter::Read | Counter::Written)
    }
}

#[derive(Default)]
struct State {
    /// Number of the slice of time.
    slice: i64,
    /// Of a rate what was moved in it; of a depth how many there are.
    now: i64,
    most: i64,
    written: f64,
}

pub(super) struct Counters {
    slice_ns: i64,
    states: BTreeMap<Counter, State>,
}

impl Counters {
    pub fn new(meta: &SessionMeta) -> Self {
        let clock = &meta.clock;
        let slice_ns = match clock.end_monotonic_ns {
            Some(end) => (end.saturating_sub(clock.start_monotonic_ns) / SLICES).max(MIN_SLICE_NS),
            None => DEFAULT_SLICE_NS,
        };
        Counters {
            slice_ns,
            states: BTreeMap::new(),
        }
    }

    /// Length of a slice of time.
    pub fn slice_ns(&self) -> i64 {
        self.slice_ns
    }

    /// Changes a counter at `ns`; returns the values of the slices of time that
    /// are over, with their beginnings.
    pub fn change(&mut self, ns: i64, counter: &Counter, change: i64) -> Vec<(i64, f64)> {
        let slice = ns.div_euclid(self.slice_ns);
        if !self.states.contains_key(counter) {
            let state = State {
                slice,
                ..State::default()
            };
            self.states.insert(counter.clone(), state);
        }
        let Some(state) = self.states.get_mut(counter) else {
            return Vec::new();
        };
        let mut out = Vec::new();
        if slice > state.slice {
            state.close(counter.is_rate(), self.slice_ns, slice, &mut out);
        }
        state.now += change;
        state.most = state.most.max(state.now);
        out
    }

    /// The values of what is not over.
    pub fn finish(&mut self) -> Vec<(Counter, i64, f64)> {
        let mut all = Vec::new();
        for (counter, state) in &mut self.states {
            let mut out = Vec::new();
            let next = state.slice + 1;
            state.close(counter.is_rate(), self.slice_ns, next, &mut out);
            out.push((next * self.slice_ns, 0.0));
            all.extend(
                out.into_iter()
                    .map(|(at, value)| (counter.clone(), at, value)),
            );
        }
        all
    }
}

impl State {
    /// Ends the slice of time; the next event is in slice `next`.
    fn close(&mut self, rate: bool, slice_ns: i64, next: i64, out: &mut Vec<(i64, f64)>) {
        let mut tell = |slice: i64, value: f64| {
            if value != self.written {
                out.push((slice * slice_ns, value));
                self.written = value;
            }
        };
        if rate {
            tell(self.slice, self.now as f64 * 1e9 / slice_ns as f64);
            if next > self.slice + 1 {
                tell(self.slice + 1, 0.0);
            }
            self.now = 0;
        } else {
            tell(self.slice, self.most as f64);
            if next > self.slice + 1 {
                tell(self.slice + 1, self.now as f64);
            }
        }
        self.most = self.now;
        self.slice = next;
    }
}

/// Whether a call moves data into the file.
pub(super) fn writes(name: &str) -> bool {
    Syscall::index_of(name)
        .and_then(|index| SYSCALLS.get(index))
        .is_some_and(Syscall::writes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters() -> Counters {
        Counters {
            slice_ns: 1_000_000_000,
            states: BTreeMap::new(),
        }
    }

    #[test]
    fn rates_are_bytes_over_the_slice() {
        let mut c = counters();
        assert!(c.change(100, &Counter::Read, 10).is_empty());
        assert!(c.change(200, &Counter::Read, 5).is_empty());
        assert_eq!(
            c.change(3_000_000_000, &Counter::Read, 1),
            [(0, 15.0), (1_000_000_000, 0.0)]
        );
        assert_eq!(
            c.finish(),
            [
                (Counter::Read, 3_000_000_000, 1.0),
                (Counter::Read, 4_000_000_000, 0.0)
            ]
        );
    }

    #[test]
    fn depths_are_the_most_at_once() {
        let mut c = counters();
        c.change(1, &Counter::InFlight, 1);
        c.change(2, &Counter::InFlight, 1);
        c.change(3, &Counter::InFlight, -1);
        assert_eq!(
            c.change(5_000_000_000, &Counter::InFlight, -1),
            [(0, 2.0), (1_000_000_000, 1.0)]
        );
    }
}
