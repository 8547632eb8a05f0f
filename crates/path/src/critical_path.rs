//! A path and the question that it answers.

use fathom_model::meta::SessionMeta;
use fathom_model::set::MemberClock;
use fathom_model::units;
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
    /// The clocks of the hosts on it that are not the first one of their set; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub clocks: Vec<HostClock>,
    /// Sentences about time that the path cannot show. Names are not escaped.
    pub notes: Vec<String>,
}

/// How exact the times of a host on a path are.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "types", derive(schemars::JsonSchema))]
pub struct HostClock {
    /// The session of the set.
    pub host: Name,
    /// Largest error of its times in the interval of the path, nanoseconds; null if no bound is known.
    pub error_ns: Option<i64>,
}

impl CriticalPath {
    /// Says how exact the clocks of the hosts on a path of a set are, the first of which has the clock
    /// that times are shown on.
    pub(crate) fn name_clocks(
        &mut self,
        hosts: &[String],
        members: &[(&SessionMeta, &MemberClock)],
    ) {
        let Some(reference) = hosts.first() else {
            return;
        };
        let on_path: Vec<&Name> = (self.segments.iter())
            .filter_map(|segment| segment.host.as_ref())
            .collect();
        if !on_path
            .iter()
            .any(|host| Some(*host) != on_path.first().copied())
        {
            // Times of one host are exact against each other.
            return;
        }
        let mut clocks = Vec::new();
        for (host, (_, clock)) in hosts.iter().zip(members).skip(1) {
            let Some(name) = on_path.iter().find(|name| name.as_str() == host) else {
                continue;
            };
            let error_ns = clock.error_between(self.from_ns, self.until_ns);
            self.notes.push(match error_ns {
                Some(0) => continue,
                Some(error) => format!(
                    "Times of {host} are shown on the clock of {reference}, off by at most {}; the time that \
                     a message is on its way is off by as much.",
                    units::duration(error)
                ),
                None => format!(
                    "Times of {host} are shown on the clock of {reference} by their wall clocks: how far off \
                     they are is unknown."
                ),
            });
            clocks.push(HostClock {
                host: (*name).clone(),
                error_ns,
            });
        }
        self.clocks = clocks;
    }
}
