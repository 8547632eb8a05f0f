//! The clocks of a recording.

use serde::{Deserialize, Serialize};

/// Ties CLOCK_MONOTONIC to the wall clock: both read at once.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Clock {
    /// CLOCK_MONOTONIC at the start, nanoseconds.
    pub start_monotonic_ns: i64,
    /// CLOCK_REALTIME at the start, nanoseconds since 1970.
    pub start_realtime_ns: i64,
    /// CLOCK_MONOTONIC at the end, nanoseconds; null while recording.
    pub end_monotonic_ns: Option<i64>,
    /// CLOCK_REALTIME at the end, nanoseconds since 1970.
    pub end_realtime_ns: Option<i64>,
    /// The largest error of CLOCK_REALTIME that the kernel allowed for at the start and at the end,
    /// nanoseconds (adjtimex(2), maxerror); null if no service kept it synchronized.
    #[serde(default)]
    pub wall_error_ns: Option<i64>,
}

/// One moment on two clocks, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// CLOCK_MONOTONIC.
    pub monotonic_ns: i64,
    /// CLOCK_REALTIME, since 1970.
    pub realtime_ns: i64,
}

impl Moment {
    /// Reads both clocks. A thread can lose its processor between two readings, which would move all
    /// wall times of a session by milliseconds, so the closest of several pairs counts.
    pub fn read(monotonic: impl Fn() -> i64, realtime: impl Fn() -> i64) -> Self {
        let pair = || {
            let (before, realtime_ns, after) = (monotonic(), realtime(), monotonic());
            let apart = after.saturating_sub(before);
            let moment = Self {
                monotonic_ns: before + apart / 2,
                realtime_ns,
            };
            (apart, moment)
        };
        let first = pair();
        let others = std::iter::repeat_with(pair).take(15);
        let closest = |a: (i64, Self), b: (i64, Self)| if b.0 < a.0 { b } else { a };
        others.fold(first, closest).1
    }
}

impl Clock {
    /// The recording ended at this moment.
    pub fn end(&mut self, at: Moment) {
        self.end_monotonic_ns = Some(at.monotonic_ns);
        self.end_realtime_ns = Some(at.realtime_ns);
    }

    /// CLOCK_MONOTONIC at a time of the wall clock, nanoseconds since 1970. Where the clocks drifted
    /// apart while the recording ran, the drift is spread over it.
    pub fn monotonic_of(&self, realtime_ns: i64) -> i64 {
        let start = i128::from(self.start_realtime_ns);
        let since = i128::from(realtime_ns) - start;
        let drift = match self.end_realtime_ns {
            Some(end) if i128::from(end) > start => {
                let length = i128::from(end) - start;
                i128::from(self.set_ns()) * since.clamp(0, length) / length
            }
            _ => 0,
        };
        let monotonic = i128::from(self.start_monotonic_ns) + since - drift;
        monotonic.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }

    /// The wall clock, nanoseconds since 1970, at a time of CLOCK_MONOTONIC: what
    /// [`Clock::monotonic_of`] leads back from.
    pub fn realtime_of(&self, monotonic_ns: i64) -> i64 {
        let since = i128::from(monotonic_ns) - i128::from(self.start_monotonic_ns);
        let drift = match self.end_monotonic_ns {
            Some(end) if end > self.start_monotonic_ns => {
                let length = i128::from(end) - i128::from(self.start_monotonic_ns);
                i128::from(self.set_ns()) * since.clamp(0, length) / length
            }
            _ => 0,
        };
        let realtime = i128::from(self.start_realtime_ns) + since + drift;
        realtime.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }

    /// By how much the wall clock went faster than CLOCK_MONOTONIC from the start to the end,
    /// nanoseconds: a large number means that it was set, or that the machine was suspended.
    pub fn set_ns(&self) -> i64 {
        match (self.end_realtime_ns, self.end_monotonic_ns) {
            (Some(realtime), Some(monotonic)) => {
                let realtime = realtime.saturating_sub(self.start_realtime_ns);
                realtime.saturating_sub(monotonic.saturating_sub(self.start_monotonic_ns))
            }
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::Moment;

    /// Clocks that go on by a tick with each reading, and by a thousand more within the first pairs,
    /// as if the thread had lost its processor.
    #[test]
    fn readings_apart_do_not_count() {
        for lost in 0..4 {
            let (time, readings) = (Cell::new(0), Cell::new(0));
            let tick = || {
                let slow = readings.get() == lost || readings.get() == 3 + lost;
                time.set(time.get() + if slow { 1000 } else { 1 });
                readings.set(readings.get() + 1);
                time.get()
            };
            let moment = Moment::read(tick, || tick() + 5_000_000);
            let apart = moment.realtime_ns - moment.monotonic_ns;
            assert!(apart.abs_diff(5_000_000) <= 1, "{lost}: {moment:?}");
        }
    }
}
