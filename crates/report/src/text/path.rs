//! The critical path of a thread.

use std::collections::BTreeSet;

use fathom_model::units::{count, duration, percent};
use fathom_path::{BlockPart, CriticalPath, Segment, State};
use fathom_query::escape;

use super::style::Style;
use super::table::{Column, render};
use super::{MAX_WIDTH, MIN_WIDTH};

/// Segments that have rows of their own: the longest ones.
const MAX_SEGMENTS: usize = 60;
/// Sums that are listed.
const MAX_TOTALS: usize = 20;

/// A critical path as text, at most `width` characters wide (80 at least), with colors when `color`
/// is set. Nothing that the recorded program controls reaches the terminal unescaped.
pub fn path_to_text(path: &CriticalPath, width: usize, color: bool) -> String {
    let (width, style) = (width.clamp(MIN_WIDTH, MAX_WIDTH), Style { color });
    let mut out = String::new();
    for text in std::iter::once(&path.headline).chain(&path.notes) {
        for line in escape::wrap(&escape::text(text), width) {
            out.push_str(&line);
            out.push('\n');
        }
    }
    if path.segments.is_empty() {
        return out;
    }
    out.push('\n');
    segments(&mut out, style, width, path);
    out.push('\n');
    totals(&mut out, style, width, path);
    out
}

fn segments(out: &mut String, style: Style, width: usize, path: &CriticalPath) {
    let columns = [
        Column::number("after", 1),
        Column::number("duration", 0),
        Column::number("share", 0),
        Column::name("thread"),
        Column::name("state"),
        Column::name("call"),
        Column::number("rid", 2),
        Column::name("waits for"),
        Column::flexible("file"),
    ];
    let mut longest: Vec<usize> = (0..path.segments.len()).collect();
    longest.sort_by_key(|at| path.segments.get(*at).map(|s| std::cmp::Reverse(s.dur_ns)));
    let shown: BTreeSet<usize> = longest.into_iter().take(MAX_SEGMENTS).collect();
    let mut rows = Vec::new();
    let mut rest: Vec<&Segment> = Vec::new();
    for (at, segment) in path.segments.iter().enumerate() {
        match shown.contains(&at) {
            true => {
                rows.extend(folded(path, &rest));
                rest.clear();
                rows.push(row(path, segment));
            }
            false => rest.push(segment),
        }
    }
    rows.extend(folded(path, &rest));
    render(out, style, width, &columns, &rows);
}

/// Short segments between two long ones, in a row.
fn folded(path: &CriticalPath, rest: &[&Segment]) -> Option<Vec<String>> {
    let only = match rest {
        [] => return None,
        [only] => return Some(row(path, only)),
        [first, ..] => first,
    };
    let dur_ns: i64 = rest.iter().map(|segment| segment.dur_ns).sum();
    let mut cells = vec![
        duration(only.ts_ns.saturating_sub(path.from_ns)),
        duration(dur_ns),
        percent(dur_ns as f64 / path.dur_ns.max(1) as f64),
        format!(
            "{} shorter",
            count(i64::try_from(rest.len()).unwrap_or(i64::MAX))
        ),
    ];
    cells.resize(9, String::new());
    Some(cells)
}

fn row(path: &CriticalPath, segment: &Segment) -> Vec<String> {
    let comm = segment.comm.as_ref().map_or("?", |comm| comm.as_str());
    let host = segment.host.as_ref().map(|host| format!("{host}: "));
    let host = host.unwrap_or_default();
    let culprit = segment
        .culprit
        .as_ref()
        .map(|culprit| match (&culprit.name, culprit.tid) {
            (Some(name), Some(tid)) => format!("{name} {tid}"),
            _ => culprit.describe(),
        });
    let file = segment.block.as_ref().and_then(|block| block.path.as_ref());
    vec![
        duration(segment.ts_ns.saturating_sub(path.from_ns)),
        duration(segment.dur_ns),
        percent(segment.share),
        format!("{}{host}{comm} {}", "> ".repeat(segment.depth), segment.tid),
        state(
            segment.state,
            segment.reason.as_ref().map(|reason| reason.as_str()),
        ),
        segment
            .syscall
            .as_ref()
            .map(|call| call.to_string())
            .unwrap_or_default(),
        segment.rid.map(|rid| rid.to_string()).unwrap_or_default(),
        match segment.block.as_ref().and_then(|block| block.part) {
            Some(part) => format!("{} {}", culprit.unwrap_or_default(), part_name(part)),
            None => culprit.unwrap_or_default(),
        },
        file.or(segment.path.as_ref())
            .map(|path| path.to_string())
            .unwrap_or_default(),
    ]
}

fn state(state: State, reason: Option<&str>) -> String {
    match (state, reason) {
        (State::Runnable, _) | (_, None) => state.name().to_owned(),
        (State::Blocked, Some(reason)) => format!("blocked: {}", reason.replace('_', " ")),
        (_, Some(reason)) => format!("{}: {}", state.name(), reason.replace('_', " ")),
    }
}

fn part_name(part: BlockPart) -> &'static str {
    match part {
        BlockPart::Queue => "queue",
        BlockPart::Device => "device",
        BlockPart::Completion => "completion",
    }
}

fn totals(out: &mut String, style: Style, width: usize, path: &CriticalPath) {
    let columns = [
        Column::number("total", 0),
        Column::number("share", 0),
        Column::number("segments", 2),
        Column::name("state"),
        Column::flexible("because of"),
    ];
    let row = |time: i64, segments: usize, state: String, culprit: String| {
        vec![
            duration(time),
            percent(time as f64 / path.dur_ns.max(1) as f64),
            count(i64::try_from(segments).unwrap_or(i64::MAX)),
            state,
            culprit,
        ]
    };
    let mut rows = Vec::new();
    for total in path.totals.iter().take(MAX_TOTALS) {
        let culprit = total.culprit.as_ref().map(|culprit| culprit.describe());
        let culprit = match total.part {
            Some(part) => format!("{} {}", culprit.unwrap_or_default(), part_name(part)),
            None => culprit.unwrap_or_default(),
        };
        let reason = total.reason.as_ref().map(|reason| reason.as_str());
        rows.push(row(
            total.dur_ns,
            total.segments,
            state(total.state, reason),
            culprit,
        ));
    }
    let rest = path.totals.get(MAX_TOTALS..).unwrap_or_default();
    if !rest.is_empty() {
        let dur_ns = rest.iter().map(|total| total.dur_ns).sum();
        let segments = rest.iter().map(|total| total.segments).sum();
        rows.push(row(dur_ns, segments, "others".into(), String::new()));
    }
    rows.push(row(
        path.dur_ns,
        path.segments.len(),
        "all".into(),
        String::new(),
    ));
    render(out, style, width, &columns, &rows);
}
