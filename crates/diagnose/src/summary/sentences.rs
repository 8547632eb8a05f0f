//! A summary in words.

use std::collections::BTreeSet;

use fathom_model::units::{bytes, duration, percent};

use super::{Activity, Files, Part, Recorded, Summary};
use crate::names::directory;
use crate::state::State;
use crate::state::files::FileState;
use crate::text::{counted, list};

/// Below this share of the run storage does not hold a program up.
const LITTLE: f64 = 0.05;
/// A second program or activity is named from this share of the run on.
const SECOND: f64 = 0.10;
/// A file with this share of the time is the one that the time is about.
const ONE_FILE: f64 = 0.99;
/// With this share it is the one that most of the time is about.
const MOST: f64 = 0.6;
/// Files up to which each is named.
const NAMED: usize = 3;
/// Files with this share of the time say where they all are.
const NEARLY_ALL: f64 = 0.9;
/// A thread that waited for this share of the time of its calls is said to have waited.
const WAITED: f64 = 0.9;
/// From here on most of the time was waiting.
const WAITED_MOSTLY: f64 = 0.5;

pub(super) fn sentences(
    summary: &Summary,
    parts: &[(Part, Files)],
    unknown_ns: i64,
    state: &State,
    recorded: Recorded,
) -> Vec<String> {
    let took = summary.took_ns;
    let run = match recorded.command {
        true => "This run",
        false => "The recording",
    };
    let missing = match (recorded.calls, state.has_gaps()) {
        (false, _) => Some("Single calls were not recorded: what the time went into is not known."),
        (true, true) => Some(
            "Some calls were lost or left out by filters, or their rows cannot be read: their time \
             is not in these numbers.",
        ),
        (true, false) => None,
    };
    if took <= 0 || !recorded.calls {
        let none = match recorded.calls {
            true => "No calls were recorded.",
            false => "",
        };
        let all = [Some(none).filter(|none| !none.is_empty()), missing];
        return all.into_iter().flatten().map(str::to_owned).collect();
    }
    let of_run = |ns: i64| percent(ns as f64 / took as f64);
    let much = |ns: i64, share: f64| ns as f64 >= took as f64 * share;
    let mut out = Vec::new();
    let took_text = duration(took);
    let waiting = much(summary.in_calls_ns, LITTLE);
    let first = parts.first().filter(|_| waiting);
    if let Some((part, files)) = first {
        let what = phrase(part, files, state);
        let wall = part.wall_ns;
        let mut text = format!(
            "{run} took {took_text}; for {} ({}) {} {what}",
            duration(wall),
            of_run(wall),
            part.comm
        );
        // Threads at once.
        if part.thread_ns as f64 > wall as f64 * 1.5 {
            text.push_str(&format!(
                "; its threads spent {} in total on that",
                duration(part.thread_ns)
            ));
        }
        text.push('.');
        out.push(text);
        let second = parts.get(1).filter(|(part, _)| much(part.wall_ns, SECOND));
        if let Some((second, files)) = second {
            let who = match second.comm == part.comm {
                true => "it",
                false => &second.comm,
            };
            out.push(format!(
                "For {} ({}) {who} {}.",
                duration(second.wall_ns),
                of_run(second.wall_ns),
                phrase(second, files, state)
            ));
        }
        let named = part.wall_ns + second.map_or(0, |(part, _)| part.wall_ns);
        if named as f64 * 1.25 < summary.in_calls_ns as f64 {
            out.push(format!(
                "Storage calls of all kinds took {} ({}).",
                duration(summary.in_calls_ns),
                of_run(summary.in_calls_ns)
            ));
        }
    }
    if much(summary.asynchronous_ns, LITTLE) {
        let text = format!(
            "synchronous calls aside, asynchronous requests to storage were under way for {} ({})",
            duration(summary.asynchronous_ns),
            of_run(summary.asynchronous_ns)
        );
        let text = match out.is_empty() {
            true => format!(
                "{run} took {took_text}, {} of it ({}) in storage calls; {}.",
                of_run(summary.in_calls_ns),
                duration(summary.in_calls_ns),
                text.trim_start_matches("synchronous calls aside, ")
            ),
            false => format!("S{}.", text.trim_start_matches('s')),
        };
        out.push(text);
    }
    let unknown = much(unknown_ns, LITTLE);
    if out.is_empty() {
        let sure = missing.is_none() && !unknown;
        let why = match (sure, recorded.faults) {
            (false, _) => "",
            (true, true) => ": storage does not hold it up",
            (true, false) => ": calls to storage do not hold it up",
        };
        let faults = if recorded.faults {
            " and page faults"
        } else {
            ""
        };
        out.push(format!(
            "{run} took {took_text}, {} of it ({}) in storage calls{faults}{why}.",
            of_run(summary.in_calls_ns),
            duration(summary.in_calls_ns)
        ));
    }
    let unknown = unknown.then(|| {
        format!(
            "Reads and writes of {} are left out: what they were made on was not recorded.",
            duration(unknown_ns)
        )
    });
    let last = missing.map(str::to_owned).or(unknown);
    out.truncate(if last.is_some() { 2 } else { 3 });
    out.extend(last);
    out
}

/// A program's activity, with its name: `waited for the disk to make a durable, 3 calls`.
fn phrase(part: &Part, files: &Files, state: &State) -> String {
    let top = files.top();
    let file = top.and_then(|(_, id, _)| state.files.get(id));
    // Of one file its own numbers.
    let one = top.filter(|(.., sum)| sum.thread_ns as f64 >= part.thread_ns as f64 * ONE_FILE);
    let (calls, moved) = match one {
        Some((.., sum)) => (sum.calls, sum.bytes),
        None => (part.calls, part.bytes),
    };
    let object = match (one, top) {
        (Some((name, ..)), _) => name.to_owned(),
        (None, Some(_)) => many(part, files, state),
        (None, None) => "files".to_owned(),
    };
    let local = file.is_some_and(|file| file.has_disk());
    let disk = if local { "the disk" } else { "storage" };
    let waited = |share: f64| {
        part.waited_ns
            .is_some_and(|ns| ns as f64 >= part.thread_ns as f64 * share)
    };
    let comma = if object.contains(", mostly ") {
        ","
    } else {
        ""
    };
    let mostly = waited(WAITED_MOSTLY) && !waited(WAITED);
    let waited = waited(WAITED);
    let times = counted(calls, "call", "calls");
    let moved = bytes(moved);
    let text = match (part.activity, waited) {
        (Activity::Sync, true) => {
            format!("waited for {disk} to make {object}{comma} durable, in {times}")
        }
        (Activity::Sync, false) => format!("made {object}{comma} durable, in {times}"),
        (Activity::Read, true) => {
            format!("waited for {disk} to read {object} ({moved} in {times})")
        }
        (Activity::Read, false) => format!("read {object} ({moved} in {times})"),
        (Activity::Write, true) => {
            format!("waited for {disk} as it wrote {object} ({moved} in {times})")
        }
        (Activity::Write, false) => format!("wrote {object} ({moved} in {times})"),
        (Activity::Transfer, true) => {
            format!("waited for {disk} as it moved bytes of {object} ({moved} in {times})")
        }
        (Activity::Transfer, false) => format!("moved bytes of {object} ({moved} in {times})"),
        (Activity::Find, true) => {
            format!("waited for {disk} as it looked up, opened and listed files, in {times}")
        }
        (Activity::Find, false) => format!("looked up, opened and listed files, in {times}"),
        (Activity::Remove, true) => format!("waited for {disk} as it removed files, in {times}"),
        (Activity::Remove, false) => format!("removed files, in {times}"),
        (Activity::Change, true) => {
            format!("waited for {disk} as it made, renamed and changed files, in {times}")
        }
        (Activity::Change, false) => format!("made, renamed and changed files, in {times}"),
        (Activity::Lock, _) => format!("was in calls that lock {object}, {times}"),
        (Activity::Fault, _) => format!(
            "was in {} on {object}, which it has mapped",
            counted(calls, "page fault", "page faults")
        ),
        (Activity::Other, _) => format!("was in other calls on {object}, {times}"),
    };
    match mostly {
        true => format!("{text}, most of that time waiting for {disk}"),
        false => text,
    }
}

/// Several files in words.
fn many(part: &Part, files: &Files, state: &State) -> String {
    let mut sums: Vec<_> = files.sums.iter().collect();
    sums.sort_by_key(|(_, (_, sum))| std::cmp::Reverse(sum.thread_ns));
    if sums.len() <= NAMED {
        let names = sums.iter().map(|(name, _)| (**name).to_owned());
        let others = files.others.then(|| "others".to_owned());
        return list(&names.chain(others).collect::<Vec<_>>());
    }
    let at_least = if files.others { "at least " } else { "" };
    let number = format!("{at_least}{}", counted(sums.len() as i64, "file", "files"));
    if let Some((name, (_, top))) = sums.first()
        && top.thread_ns as f64 >= part.thread_ns as f64 * MOST
    {
        return format!("{number}, mostly {name}");
    }
    // Files that have nearly all of the time: each program also reads its libraries.
    let (mut costly, mut ns) = (0, 0);
    for (_, (_, sum)) in &sums {
        if ns as f64 >= part.thread_ns as f64 * NEARLY_ALL {
            break;
        }
        ns += sum.thread_ns;
        costly += 1;
    }
    let directories: Vec<&str> = sums
        .iter()
        .map(|(name, (id, _))| {
            let name: &str = name;
            let is_directory = state.files.get(*id).is_some_and(FileState::is_directory);
            if is_directory { name } else { directory(name) }
        })
        .collect();
    let all: BTreeSet<&str> = directories.iter().copied().collect();
    let costly: BTreeSet<&str> = directories.iter().copied().take(costly).collect();
    let root = common(&costly);
    let mostly = if root == common(&all) { "" } else { ", mostly" };
    match root {
        Some(root) if costly.len() == 1 => format!("{number}{mostly} in {root}"),
        Some(root) => format!("{number}{mostly} below {root}"),
        None => number,
    }
}

/// The deepest directory that contains all of the paths; `None` if that is the root.
fn common<'a>(directories: &BTreeSet<&'a str>) -> Option<&'a str> {
    let (first, last) = (directories.first()?, directories.last()?);
    let mut end = 0;
    for (at, byte) in first.bytes().enumerate() {
        match last.as_bytes().get(at) {
            Some(other) if *other == byte => {}
            _ => break,
        }
        let next = |text: &str| matches!(text.as_bytes().get(at + 1), None | Some(b'/'));
        if next(first) && next(last) {
            end = at + 1;
        }
    }
    first.get(..end).filter(|root| root.len() > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_that_files_share() {
        let of = |all: &[&'static str]| common(&all.iter().copied().collect());
        assert_eq!(of(&["/a/b", "/a/bc", "/a/d"]), Some("/a"));
        assert_eq!(of(&["/a/b", "/a/b/c"]), Some("/a/b"));
        assert_eq!(of(&["/a", "/b"]), None);
    }
}
