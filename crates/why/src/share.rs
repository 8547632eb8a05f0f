//! The part of the time in which requests to storage were under way.

use fathom_model::units::{count, duration};

use crate::facts::{Facts, Group};
use crate::scope::Scope;
use crate::sentence::Sentence;

/// From this share of the time on, a part is most of it.
pub(crate) const MOST: f64 = 0.5;
/// Below this share of the time storage does not hold a program up.
pub(crate) const LITTLE: f64 = 0.05;

/// How long a request was under way at most, with or without a row.
fn storage_ns(facts: &Facts) -> Option<i64> {
    Some(facts.walls_ns?.saturating_add(facts.without_rows_ns))
}

/// In how much of the span a request was under way at most.
pub(crate) fn storage_share(facts: &Facts) -> Option<f64> {
    let span = facts.span_ns;
    (span > 0).then_some(())?;
    Some(storage_ns(facts)? as f64 / span as f64)
}

/// The part of all time that the first group has, in words.
pub(crate) fn part_of_all(facts: &Facts, group: &Group) -> &'static str {
    let wall_ns = group.wall_ns.unwrap_or(0);
    let all_ns = storage_ns(facts).unwrap_or(i64::MAX);
    if wall_ns as f64 >= all_ns as f64 * MOST {
        "most of that time"
    } else if wall_ns >= facts.without_rows_ns {
        "the largest part of that time"
    } else {
        "the largest part of the time of calls with rows"
    }
}

/// Sentences that come before the times of a session in which some calls have no rows.
pub(crate) fn of_rows(facts: &Facts, scope: &Scope, little: bool, sentence: &mut Sentence) {
    if facts.without_rows == 0 {
        return;
    }
    // Counters do not have all that a question may be about.
    let chosen = scope.file.is_some() || scope.thread.is_some() || scope.calls.is_some();
    sentence.push(format!(
        "Only {} of {} calls{} have rows; the others took {} on storage at most. ",
        count(facts.with_rows),
        count(facts.with_rows.saturating_add(facts.without_rows)),
        if chosen {
            " of all programs and files"
        } else {
            ""
        },
        duration(facts.without_rows_ns)
    ));
    sentence.push(match little {
        true => "The share below includes these. ",
        false => "The times below are of calls with rows alone. ",
    });
}
