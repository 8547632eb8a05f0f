//! The limits of a report, in sentences: data that is missing or damaged, and data that the kernel or
//! the log did not show.

use fathom_model::{meta, units};

use crate::input::ReportInput;
use crate::report::{Loss, SessionSummary, State, Totals};

fn count(n: u64) -> String {
    units::count(i64::try_from(n).unwrap_or(i64::MAX))
}

/// Questions that a recording with rows of some calls only cannot answer.
fn tail_problem(tail: &meta::Tail, loss: &Loss) -> Option<String> {
    if loss.counted == 0 {
        return None;
    }
    let slow = match tail.slow_ns {
        Some(ns) => format!("take {} or more", units::duration(i64::try_from(ns).ok()?)),
        None => "take longer than usual".to_string(),
    };
    let sample = match (tail.budget, tail.sample) {
        (Some(_), _) => "a sample of the others, as --budget allowed".to_string(),
        (None, 0) => "none of the others".to_string(),
        (None, sample) => format!("1 in {sample} of the others"),
    };
    Some(format!(
        "{} of {} calls have no row, they were counted: rows are there of calls that {slow}, fail or \
         wait, and of {sample}; counts, errors, bytes, total and longest times and the histograms \
         include all calls, percentiles, threads, times and findings do not",
        count(loss.counted),
        count(loss.seen),
    ))
}

/// Functions of libraries with calls that have no row.
fn counted_functions(budget: &meta::LibraryBudget) -> Option<String> {
    const NAMED: usize = 4;
    if budget.counted.is_empty() {
        return None;
    }
    let counted = budget.counted.iter();
    let mut names: Vec<&str> = counted.map(|f| f.function.as_str()).take(NAMED).collect();
    let more = format!("{} others", budget.counted.len().saturating_sub(NAMED));
    if budget.counted.len() > NAMED {
        names.push(&more);
    }
    Some(format!(
        "calls of {} were counted once they were more than {} in a second: they have no row, so their \
         times, bytes and system calls are unknown, and findings about library calls rest on the \
         calls before",
        names.join(", "),
        count(budget.calls_per_second),
    ))
}

pub(crate) fn problems(
    source: &ReportInput<'_>,
    session: &SessionSummary,
    loss: &Loss,
    totals: &Totals,
) -> Vec<String> {
    let mut problems = source.problems.to_vec();
    if session.state == State::Killed && problems.is_empty() {
        problems.push(
            "the recorder ended without closing the session: about the last second is missing"
                .into(),
        );
    }
    if let Some(tail) = &source.meta.options.tail {
        problems.extend(tail_problem(tail, loss));
    } else if loss.counted > 0 {
        problems.push(
            "recorded with --detail counters: there are no single calls, so no percentiles, \
             errors by name, threads or times; counts, bytes, longest times and the histograms \
             are exact"
                .into(),
        );
    }
    problems.extend(
        source
            .meta
            .library_budget
            .as_ref()
            .and_then(counted_functions),
    );
    if let Some(keep) = &source.meta.history.keep {
        let since = keep.complete_from_ns.map(|from| {
            let at = from.saturating_sub(source.meta.clock.start_monotonic_ns);
            format!("what ended in the first {} is gone", units::duration(at))
        });
        problems.push(format!(
            "only the latest calls were kept: {}; losses are of the whole recording",
            since.unwrap_or_else(|| "none has been dropped yet".into())
        ));
    }
    if loss.missing > 0 {
        problems.push(format!(
            "{} calls are in no table: the recorder was killed before it could store them",
            count(loss.missing)
        ));
    }
    if loss.lost > 0 {
        problems.push(format!(
            "{} of {} calls are not stored: counts, errors, bytes, total and longest times \
             include them, percentiles and rows do not",
            count(loss.lost),
            units::count(totals.calls)
        ));
    }
    if session.state == State::Complete && !loss.balanced {
        problems.push(format!(
            "the counts do not add up: seen {}, {}",
            loss.seen,
            loss.parts()
                .map(|(what, n)| format!("{what} {n}"))
                .collect::<Vec<_>>()
                .join(", ")
        ));
    }
    for (what, counts) in [
        ("page faults on mapped files", &source.meta.totals.faults),
        ("write-back requests", &source.meta.totals.writeback),
    ] {
        if counts.lost > 0 {
            problems.push(format!(
                "{} of {} {what} are not stored",
                count(counts.lost),
                count(counts.seen)
            ));
        }
    }
    for counter in source.meta.perf_counters.iter().filter(|c| !c.counted) {
        problems.push(format!(
            "counter {} is not recorded: {}",
            counter.name, counter.note
        ));
    }
    let layers = &source.meta.totals.layers;
    if layers.lost > 0 {
        problems.push(format!(
            "{} records of the layers below the calls are not stored: table losses says which",
            count(layers.lost)
        ));
    }
    if layers.user_calls_unseen > 0 {
        problems.push(format!(
            "{} library calls have no row: they were too deep in others, or there was no room for them",
            count(layers.user_calls_unseen)
        ));
    }
    if let Some(spans) = source.meta.spans.as_ref().filter(|spans| spans.gaps > 0) {
        problems.push(format!(
            "requests are missing: bytes of connections were not read, or made no sense, {} times; {} \
             requests have no row",
            count(spans.gaps),
            count(spans.unfinished)
        ));
    }
    let unknown = source.meta.totals.offsets_unknown;
    if unknown > 0 {
        problems.push(format!(
            "{} calls have no offset: another thread or process moved the position of their \
             descriptor, or appended to their file, at the same time",
            count(unknown)
        ));
    }
    if source.meta.totals.faults_unknown > 0 {
        problems.push(format!(
            "{} page faults are not recorded: their mappings could not be looked up",
            count(source.meta.totals.faults_unknown)
        ));
    }
    if loss.compat > 0 {
        problems.push(format!(
            "{} calls by 32-bit programs were not recorded: on this architecture fathom records 64-bit programs only",
            count(loss.compat)
        ));
    }
    if let Some(log) = &source.meta.source {
        problems.extend(imported(log));
    }
    for hook in source.meta.hooks.iter().filter(|h| h.skipped > 0) {
        problems.push(format!(
            "the kernel left hook {} out {} times: what it would have recorded is missing",
            hook.name,
            count(hook.skipped)
        ));
    }
    problems
}

/// Data that this kernel or log could not show, a sentence each: nothing went wrong.
pub(crate) fn limits(source: &ReportInput<'_>) -> Vec<String> {
    let mut limits = Vec::new();
    if !source.meta.history.redacted.is_empty() {
        limits.push(
            "this is a redacted copy: hashes (x and 14 letters) stand for paths and names, and \
             contents are gone; history.redacted in session.json has the rules"
                .to_owned(),
        );
    }
    for hook in source.meta.hooks.iter().filter(|h| !h.attached) {
        let note = if hook.note.is_empty() { "" } else { ": " };
        limits.push(format!(
            "hook {} was not available{note}{}",
            hook.name, hook.note
        ));
    }
    if let Some(log) = &source.meta.source {
        for missing in &log.not_observable {
            limits.push(format!(
                "not observable in a log of {}: {missing}",
                log.format
            ));
        }
    }
    limits
}

/// Data that a session lacks because it was made of a log.
fn imported(log: &meta::ImportSource) -> Vec<String> {
    let mut problems = Vec::new();
    if log.bad_lines > 0 {
        problems.push(format!(
            "{} of {} lines of the log were not understood: their calls are missing",
            count(log.bad_lines),
            count(log.lines)
        ));
    }
    problems
}
