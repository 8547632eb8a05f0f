//! Loads that run for a time instead of for an amount of work.

use fathom_model::units::duration;

use crate::profile::Profile;
use crate::result::{Figure, Metric};

/// Loads are not limited to less time than this.
const LEAST_NS: f64 = 1e9;
/// Durations are alike up to this part.
const ALIKE: f64 = 0.1;

/// Why a count says nothing about better or worse.
pub(crate) const AS_LONG: &str =
    "the sessions ran for the same time, so the count may only say how much work was done";
pub(crate) const OPEN_ENDED: &str =
    "the recordings were stopped at any time, so the rate may only say how much work was done";

/// The assumption if both sides ran for the same time and made more or fewer calls: that their work
/// was the same. Under a load of fixed duration more calls are more work done.
pub(crate) fn note(sides: [&[Profile]; 2], totals: &[Figure]) -> Option<String> {
    let all: Vec<f64> = sides
        .into_iter()
        .flatten()
        .map(|p| p.duration_ns as f64)
        .collect();
    let shortest = all.iter().copied().fold(f64::INFINITY, f64::min);
    let longest = all.iter().copied().fold(0.0, f64::max);
    let alike = shortest >= LEAST_NS && longest - shortest <= longest * ALIKE;
    let counted = |f: &&Figure| matches!(f.metric, Metric::Calls | Metric::Bytes);
    let differ = totals.iter().filter(counted).any(|f| f.verdict.is_change());
    (alike && differ).then(|| {
        format!(
            "all sessions took about {}, and counts differ: they are compared as if the work had been the same. If the \
             load ran for a fixed time, more calls and bytes are more work done, and nothing got worse by that",
            duration(longest as i64)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::note;
    use crate::profile::{Operation, Profile};
    use crate::{Options, compare};

    fn run(seconds: i64, calls: i64) -> Vec<Profile> {
        let operation = |syscall: &str, calls: i64| Operation {
            syscall: syscall.to_owned(),
            calls,
            ..Operation::default()
        };
        let operations = vec![
            operation("openat", 10),
            operation("fstat", 10),
            operation("close", 10),
            operation("read", calls),
        ];
        vec![Profile {
            duration_ns: seconds * 1_000_000_000,
            operations,
            ..Profile::default()
        }]
    }

    #[test]
    fn said_where_durations_are_alike_and_counts_are_not() {
        for (after, said) in [
            (run(20, 50_000), true),
            (run(20, 1_000), false),
            (run(60, 50_000), false),
        ] {
            let before = run(20, 1_000);
            let diff = compare(&before, &after, &Options::default()).unwrap();
            assert_eq!(note([&before, &after], &diff.totals).is_some(), said);
            let fixed = diff.notes.iter().any(|n| n.contains("fixed time"));
            assert_eq!(fixed, said, "{:?}", diff.notes);
        }
    }
}
