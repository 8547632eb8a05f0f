//! Sets of sessions: the contents of `set.json`, and clocks of several hosts as one.
//!
//! A set names sessions and copies nothing. Its first member is the reference: times of the others
//! are shown on its CLOCK_MONOTONIC.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Version of the layout of `set.json`.
pub const SET_VERSION: u32 = 1;

/// The contents of `set.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SetMeta {
    /// [`SET_VERSION`].
    pub set_version: u32,
    /// Version of the fathom that wrote it.
    pub fathom_version: String,
    /// The sessions. The first is the reference.
    pub members: Vec<Member>,
}

/// A session of a set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Member {
    /// Its name in the set, unique there: the value of column `host`.
    pub host: String,
    /// Directory of the session; if relative, to the directory of the set.
    pub path: PathBuf,
    /// Id of the session that must be there.
    pub session: String,
    /// How its times are shown on the clock of the reference.
    pub clock: MemberClock,
}

/// The source of a relation between two clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS, schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// The session is the reference.
    Reference,
    /// Both sessions are of one start of one kernel and have the same clock.
    SameBoot,
    /// Messages that were sent in both directions.
    Messages,
    /// The wall clocks of both hosts.
    WallClock,
}

impl Method {
    /// The method in a sentence.
    pub fn words(self) -> &'static str {
        match self {
            Method::Reference => "the reference",
            Method::SameBoot => "the same clock",
            Method::Messages => "messages in both directions",
            Method::WallClock => "the wall clocks",
        }
    }
}

/// How times of a member are shown on the clock of the reference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemberClock {
    /// Where the relation comes from; of several links the weakest one.
    pub method: Method,
    /// The member through whose clock it leads; null if it is the reference's own.
    pub via: Option<String>,
    /// Messages that it rests on.
    pub messages: u64,
    /// Largest error of a time while any session of the set lasts, nanoseconds; null if no bound is
    /// known.
    pub error_ns: Option<i64>,
    /// The same between the first and the last message; null if the relation does not rest on
    /// messages alone.
    #[serde(default)]
    pub error_in_messages_ns: Option<i64>,
    /// Its error in parts of that time, on the clock of the reference; empty if it is the same at all
    /// times.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<ErrorStep>,
    /// Why it is no better; empty if nothing is to be said.
    #[serde(default)]
    pub note: String,
    /// The relation.
    pub map: ClockMap,
}

impl MemberClock {
    /// The clock of the reference.
    pub fn reference() -> Self {
        Self {
            method: Method::Reference,
            via: None,
            messages: 0,
            error_ns: Some(0),
            error_in_messages_ns: Some(0),
            errors: Vec::new(),
            note: String::new(),
            map: ClockMap::default(),
        }
    }

    /// Largest error of times between two times of the reference, nanoseconds; `None` if no bound is
    /// known.
    pub fn error_between(&self, from_ns: i64, until_ns: i64) -> Option<i64> {
        let first = self.errors.partition_point(|step| step.from_ns <= from_ns);
        let end = self.errors.partition_point(|step| step.from_ns <= until_ns);
        let begin = first.checked_sub(1);
        let steps = begin.and_then(|begin| self.errors.get(begin..end.max(first)));
        let most = steps.and_then(|steps| steps.iter().map(|step| step.error_ns).max());
        most.or(self.error_ns)
    }
}

/// The error of a relation from one time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorStep {
    /// Its start on the clock of the reference, nanoseconds.
    pub from_ns: i64,
    /// Largest error from then to the start of the next step, nanoseconds.
    pub error_ns: i64,
}

/// How many times as fast as another one a clock of a map can go. A relation by messages allows 1.25
/// times, or a third slower on the way back, and a map leads through several of them.
const MOST_SPEED: f64 = 16.0;

/// A relation between two clocks: a straight line for each segment of time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClockMap {
    /// In order of time; the first also holds before its start. None: both clocks are equal.
    pub segments: Vec<Segment>,
}

/// The part of a relation that holds from one time on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Segment {
    /// Its start on the clock of the member, nanoseconds.
    pub from_ns: i64,
    /// The same moment on the other clock, nanoseconds.
    pub to_ns: i64,
    /// By how much the other clock goes faster: nanoseconds in a nanosecond.
    pub rate: f64,
}

impl Segment {
    fn apply(self, at_ns: i64) -> i64 {
        let since = at_ns.saturating_sub(self.from_ns);
        // Less than 2^53 nanoseconds are 104 days: beyond, the product is off by some nanoseconds.
        let gained = (since as f64 * self.rate).round() as i64;
        self.to_ns.saturating_add(since).saturating_add(gained)
    }
}

impl ClockMap {
    /// One line through a moment on both clocks.
    pub fn line(from_ns: i64, to_ns: i64, rate: f64) -> Self {
        let segment = Segment {
            from_ns,
            to_ns,
            rate,
        };
        Self {
            segments: vec![segment],
        }
    }

    /// Whether segments are in order on both clocks, and rates are of clocks. The inverse of a sound map is
    /// sound.
    pub fn is_sound(&self) -> bool {
        let rates = (self.segments.iter())
            .all(|s| (1.0 / MOST_SPEED..=MOST_SPEED).contains(&(1.0 + s.rate)));
        let later = |a: &Segment, b: &Segment| a.from_ns < b.from_ns && a.to_ns < b.to_ns;
        rates && self.segments.is_sorted_by(later)
    }

    /// The time on the other clock.
    pub fn apply(&self, at_ns: i64) -> i64 {
        let later = self.segments.partition_point(|s| s.from_ns <= at_ns);
        match self.segments.get(later.saturating_sub(1)) {
            Some(segment) => segment.apply(at_ns),
            None => at_ns,
        }
    }

    /// The relation that leads back.
    pub fn inverse(&self) -> Self {
        let back = |s: &Segment| Segment {
            from_ns: s.to_ns,
            to_ns: s.from_ns,
            rate: 1.0 / (1.0 + s.rate) - 1.0,
        };
        Self {
            segments: self.segments.iter().map(back).collect(),
        }
    }

    /// First this relation, then `next`.
    pub fn then(&self, next: &Self) -> Self {
        if self.segments.is_empty() {
            return next.clone();
        }
        if next.segments.is_empty() {
            return self.clone();
        }
        // Segments of `next` begin at times of its own clock.
        let back = self.inverse();
        let mut starts: Vec<i64> = self.segments.iter().map(|s| s.from_ns).collect();
        let inner = next.segments.iter().skip(1);
        starts.extend(inner.map(|s| back.apply(s.from_ns)));
        starts.sort_unstable();
        starts.dedup();
        let segment = |from_ns: i64| {
            let (first, middle) = (self.at(from_ns), self.apply(from_ns));
            let second = next.at(middle);
            Segment {
                from_ns,
                to_ns: next.apply(middle),
                rate: (1.0 + first) * (1.0 + second) - 1.0,
            }
        };
        let mut segments: Vec<Segment> = starts.into_iter().map(segment).collect();
        // Times are rounded: two starts a nanosecond apart may be one moment on the other clock.
        // From there on the later one holds.
        segments.dedup_by(|later, earlier| {
            let same = later.to_ns <= earlier.to_ns;
            if same {
                earlier.rate = later.rate;
            }
            same
        });
        Self { segments }
    }

    /// The rate that holds at a time.
    fn at(&self, at_ns: i64) -> f64 {
        let later = self.segments.partition_point(|s| s.from_ns <= at_ns);
        let segment = self.segments.get(later.saturating_sub(1));
        segment.map_or(0.0, |segment| segment.rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bent() -> ClockMap {
        ClockMap {
            segments: vec![
                Segment {
                    from_ns: 1_000,
                    to_ns: 5_000_000,
                    rate: 1e-3,
                },
                Segment {
                    from_ns: 1_001_000,
                    to_ns: 6_001_000,
                    rate: -2e-3,
                },
            ],
        }
    }

    #[test]
    fn segments_hold_from_their_start_on() {
        let map = bent();
        assert_eq!(map.apply(1_000), 5_000_000);
        assert_eq!(map.apply(0), 4_998_999);
        assert_eq!(map.apply(501_000), 5_500_500);
        assert_eq!(map.apply(2_001_000), 6_999_000);
        assert_eq!(ClockMap::default().apply(77), 77);
        assert_eq!(ClockMap::line(0, -7, 0.0).apply(77), 70);
    }

    #[test]
    fn maps_that_cannot_be_of_clocks() {
        assert!(bent().is_sound() && ClockMap::default().is_sound());
        for rate in [16.0, -0.95, -1.0, f64::NAN, f64::INFINITY] {
            assert!(!ClockMap::line(0, 0, rate).is_sound(), "{rate}");
        }
        // The slowest relation, both ways, through one more clock.
        let slow = ClockMap::line(0, 0, -0.25);
        assert!(slow.is_sound() && slow.inverse().is_sound());
        assert!(slow.inverse().then(&slow.inverse()).is_sound());
        let mut map = bent();
        map.segments.reverse();
        assert!(!map.is_sound());
    }

    /// A bend a nanosecond after the start, at which a slow clock shows the same moment as at the start.
    #[test]
    fn of_starts_that_are_one_moment_the_later_one_holds() {
        let segment = |at_ns, rate| Segment {
            from_ns: at_ns,
            to_ns: at_ns,
            rate,
        };
        let bend = ClockMap {
            segments: vec![segment(0, 0.0), segment(1, 0.5)],
        };
        let slow = ClockMap::line(0, 0, -0.6);
        let both = bend.then(&slow);
        assert!(both.is_sound(), "{both:?}");
        for at in [1, 1_000, 1_000_000] {
            let (once, twice) = (both.apply(at), slow.apply(bend.apply(at)));
            assert!((once - twice).abs() <= 2, "{at}: {once} {twice}");
        }
    }

    #[test]
    fn maps_lead_back_and_on() {
        let (map, other) = (bent(), ClockMap::line(0, -4_000_000, 0.0).then(&bent()));
        let both = map.then(&other);
        for at in (0..3_000_000).step_by(997) {
            let back = map.inverse().apply(map.apply(at));
            assert!((back - at).abs() <= 1, "{at} {back}");
            let (once, twice) = (both.apply(at), other.apply(map.apply(at)));
            assert!((once - twice).abs() <= 2, "{at}: {once} {twice}");
        }
    }
}
