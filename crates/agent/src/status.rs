//! How the agent is doing.

use std::time::{Duration, Instant};

use fathom_recorder::Progress;

/// A recording reports ten times per second. One that is silent for this long hangs.
const SILENCE: Duration = Duration::from_secs(10);

/// Messages that wait at most.
const MESSAGES: usize = 20;

/// Numbers since the agent started, and of the recording that goes on.
#[derive(Debug, Default)]
pub struct Status {
    /// Calls seen.
    pub seen: u64,
    /// Calls lost.
    pub lost: u64,
    /// Recordings started.
    pub recordings: u64,
    /// Time between two recordings, nanoseconds.
    pub unrecorded_ns: u128,
    /// Sessions saved.
    pub saves: u64,
    /// Sessions that could not be saved.
    pub failed_saves: u64,
    /// Times at which metrics could not be sent.
    pub failed_pushes: u64,
    /// Sessions shipped.
    pub ships: u64,
    /// Times at which a session could not be shipped.
    pub failed_ships: u64,
    /// Closed sessions that are not shipped yet.
    pub waiting_ships: u64,
    /// Closed sessions that were removed before they were shipped.
    pub missed_ships: u64,
    /// Logs that the collector took.
    pub sent_logs: u64,
    /// Times at which logs could not be sent.
    pub failed_logs: u64,
    /// Logs that wait to be sent.
    pub waiting_logs: u64,
    /// Logs that found no room, or that the collector refused.
    pub dropped_logs: u64,
    /// Saved sessions whose slow requests could not be read.
    pub failed_slow_requests: u64,
    /// Bytes of the session that is being recorded.
    pub bytes: u64,
    /// Bytes of records that wait to be decoded.
    pub waiting: u64,
    /// Highest share of a ring that was in use.
    pub ring_peak: f64,
    /// Messages of other threads to the user.
    messages: Vec<String>,
    /// Calls seen and lost by the recordings before.
    before: (u64, u64),
    /// When the recording before ended, CLOCK_MONOTONIC nanoseconds.
    ended_at_ns: Option<i64>,
    /// When the recording last reported.
    reported: Option<Instant>,
}

impl Status {
    /// A recording has started; `at_ns` is the time of CLOCK_MONOTONIC.
    pub fn next_recording(&mut self, now: Instant, at_ns: i64) {
        self.before = (self.seen, self.lost);
        self.recordings += 1;
        if let Some(ended) = self.ended_at_ns.take() {
            let between = at_ns.saturating_sub(ended);
            self.unrecorded_ns += u128::try_from(between).unwrap_or(0);
        }
        self.reported = Some(now);
    }

    /// The recording reports.
    pub fn progress(&mut self, progress: &Progress, now: Instant) {
        self.counts(progress.seen, progress.lost);
        self.bytes = progress.bytes;
        self.waiting = progress.waiting;
        self.ring_peak = progress.ring_peak;
        self.reported = Some(now);
    }

    /// Calls that the recording has seen and lost.
    pub fn counts(&mut self, seen: u64, lost: u64) {
        self.seen = self.before.0 + seen;
        self.lost = self.before.1 + lost;
    }

    /// Something that the user must know, from any thread.
    pub fn say(&mut self, text: String) {
        if self.messages.len() < MESSAGES {
            self.messages.push(text);
        }
    }

    /// Messages since the last time.
    pub fn take_messages(&mut self) -> Vec<String> {
        std::mem::take(&mut self.messages)
    }

    /// No recording goes on.
    pub fn stopped(&mut self) {
        self.reported = None;
    }

    /// The recording ended at this time of CLOCK_MONOTONIC.
    pub fn ended(&mut self, at_ns: Option<i64>) {
        self.ended_at_ns = at_ns;
    }

    /// Whether a recording goes on.
    pub fn is_healthy(&self, now: Instant) -> bool {
        self.reported
            .is_some_and(|at| now.saturating_duration_since(at) < SILENCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_go_on_over_recordings() {
        let mut status = Status::default();
        let now = Instant::now();
        assert!(!status.is_healthy(now));
        status.next_recording(now, 1000);
        status.counts(5, 1);
        status.ended(Some(5000));
        status.next_recording(now, 5700);
        assert_eq!(status.unrecorded_ns, 700);
        status.counts(2, 0);
        assert_eq!((status.seen, status.lost, status.recordings), (7, 1, 2));
        assert!(status.is_healthy(now) && !status.is_healthy(now + SILENCE));
        status.stopped();
        assert!(!status.is_healthy(now));
    }
}
