//! A path and the question that it answers.

use serde::Serialize;

use crate::Name;
use crate::segment::{Segment, Total};

/// The time that a path is of.
#[derive(Clone, Copy, Debug)]
pub enum Scope {
    /// This request, in its thread.
    Request(i64),
    /// This thread.
    Thread {
        /// Its id.
        tid: i64,
        /// Begin of the window, CLOCK_MONOTONIC nanoseconds; `None`: of the thread's recorded time.
        from_ns: Option<i64>,
        /// End of the window; `None`: of the thread's recorded time.
        until_ns: Option<i64>,
    },
}

/// The chain of segments that a time of a thread consists of.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "types", derive(schemars::JsonSchema))]
pub struct CriticalPath {
    /// The largest sum, as a sentence. Names are not escaped.
    pub headline: String,
    /// The session of a set that the thread is in; absent outside of a set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<Name>,
    /// The thread.
    pub tid: i64,
    /// Its name; null if not known.
    pub comm: Option<Name>,
    /// Its process; null if not known.
    pub pid: Option<i64>,
    /// The request; null if the path is of a window.
    pub rid: Option<i64>,
    /// Begin of the interval, CLOCK_MONOTONIC nanoseconds.
    pub from_ns: i64,
    /// End of the interval.
    pub until_ns: i64,
    /// From `from_ns` to `until_ns`.
    pub dur_ns: i64,
    /// In order of time, contiguous; their times add up to `dur_ns`.
    pub segments: Vec<Segment>,
    /// Their sums by state, reason and culprit, most time first; they add up to `dur_ns`.
    pub totals: Vec<Total>,
    /// Sentences about time that the path cannot show.
    pub notes: Vec<String>,
}
