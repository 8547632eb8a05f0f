//! The recording that rules judge.

use crate::state::State;

/// The recording as a whole.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// Files, descriptors, processes as they are now.
    pub state: &'a State,
    /// How long was recorded, nanoseconds.
    pub span_ns: i64,
    /// Share of that from which on a loss is worth a word.
    pub min_share: f64,
}

/// Below this share of the recorded time a performance finding is not worth a
/// word.
pub const MIN_SHARE: f64 = 0.01;
/// Below this share it is not even a minor note.
pub(crate) const MINOR_SHARE: f64 = 0.001;
/// From this share on losses are added up: a thousandth of what a rule wants of one.
pub(crate) const FAINT_SHARE: f64 = 0.000_01;

impl Run<'_> {
    /// Whether a loss is worth a word: 1 % of the recorded time.
    pub fn matters(&self, cost_ns: i64) -> bool {
        self.matters_from(cost_ns, MIN_SHARE)
    }

    /// The same of a rule whose findings begin at another share of the recorded time.
    pub fn matters_from(&self, cost_ns: i64, share: f64) -> bool {
        let share = share * self.min_share / MIN_SHARE;
        cost_ns > 0 && cost_ns as f64 >= self.span_ns as f64 * share
    }

    /// Whether losses are asked for that are no findings each.
    pub(crate) fn is_faint(&self) -> bool {
        self.min_share < MIN_SHARE
    }

    /// How long a process ran within the recording, nanoseconds.
    pub fn lifetime_ns(&self, pid: i32) -> i64 {
        let now = self.state.now_ns();
        let began = now.saturating_sub(self.state.span_ns());
        let process = self.state.process(pid);
        let start = process.map_or(began, |p| p.started_at_ns.max(began));
        match process.and_then(|p| p.ended_at_ns) {
            Some(end) => end.saturating_sub(start),
            // It may have made no call for long.
            None if start == began => self.span_ns,
            None => now.saturating_sub(start),
        }
    }

    /// Name of a process: its first thread's, which may have made no call. Without it, the name
    /// in its calls.
    pub(crate) fn process_name(&self, pid: i32, of_calls: &str) -> String {
        let name = self.comm(pid);
        if name.is_empty() {
            of_calls.to_owned()
        } else {
            name
        }
    }

    /// Name of a process, for a sentence.
    pub fn comm(&self, pid: i32) -> String {
        let process = self.state.process(pid);
        process.map_or_else(String::new, |p| p.comm.clone())
    }
}
