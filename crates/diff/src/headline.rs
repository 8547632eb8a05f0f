//! A comparison in a sentence: which side was slower, by how much, and where the difference is.

use fathom_model::units::{bytes, count, duration};

use crate::comparison_rows::Work;
use crate::direction::longer;
use crate::regression_gate::Guarding;
use crate::result::{Change, Headline, Metric, Row, Status, Tables, Verdict};

/// Factor from which on the time of a run moved.
const MOVED: f64 = 1.1;
/// Part of a difference from which on a file, a layer or a call explains it.
const EXPLAINS: f64 = 0.5;
const NEARLY_ALL: f64 = 0.95;
/// The same below which a call is not worth naming.
const NAMED: f64 = 0.1;

/// Programs of one side that a sentence names.
const NAMED_PROGRAMS: usize = 3;

/// A call on a file, and its part of the difference.
struct Contributor {
    subject: String,
    impact: f64,
    /// All calls of the name, or nearly all of their difference: layers are of those.
    whole_call: bool,
    layer: Option<([String; 2], f64)>,
}

pub(crate) fn headline(
    work: &Work,
    guard: &Guarding,
    tables: &Tables,
    [changes, unproven]: [&[Change]; 2],
    durations: [f64; 2],
) -> Headline {
    let impact = guard.impact(guard.totals);
    let matters = || changes.iter().filter(|c| !c.minor);
    let timed = matters().any(|c| c.metric.is_duration()) || total_proven(guard);
    // More calls that took more time: that follows from their number.
    let counted = matters().any(|c| {
        let both = |impact: f64| impact * (c.after.unwrap_or(0.0) - c.before.unwrap_or(0.0)) > 0.0;
        let part = c.table == "operations" || c.table == "syscalls";
        part && c.impact_ns.is_some_and(|ns| guard.is_large(ns) && both(ns))
    });
    let proven = timed || counted;
    // A load of fixed duration, or a recording of any length, takes as long as it takes.
    let per_unit = guard.per_unit();
    let [before, after] = durations;
    let wall = (!per_unit && before > 0.0).then(|| after / before);
    let ran = wall.filter(|w| !(1.0 / MOVED..=MOVED).contains(w));
    let said = proven || !unproven.is_empty();
    let sign = match (ran, impact) {
        (Some(wall), _) if said => wall - 1.0,
        (None, Some(impact)) if said && guard.is_large(impact) => impact,
        _ => 0.0,
    };
    let source = match said {
        true => impact.and_then(|whole| {
            let sign = if sign == 0.0 { whole } else { sign };
            let longer = ran.map_or(whole, |_| after - before);
            shared(tables)
                .and_then(|both| source(work, guard, &both, longer, sign))
                .filter(|source| source.impact.abs() >= longer.abs() * EXPLAINS / 2.0)
                .or_else(|| source(work, guard, tables, whole, sign))
        }),
        false => None,
    };
    let mut text = match (said, ran, impact) {
        (true, Some(wall), _) => format!(
            "After was {}: it ran {} instead of {} ({})",
            if wall > 1.0 { "slower" } else { "faster" },
            duration(after as i64),
            duration(before as i64),
            longer(wall)
        ),
        // The sum of calls is another one: it contains more calls, or fewer.
        (true, None, Some(impact)) if guard.counts_equal_calls() && guard.is_large(impact) => {
            format!(
                "Call for call, After spent {} {} in I/O calls{}",
                duration(impact.abs() as i64),
                if impact > 0.0 { "more" } else { "less" },
                calls_made(guard),
            )
        }
        (true, None, Some(impact)) if guard.is_large(impact) => format!(
            "After spent {} {} in I/O calls{}{}",
            duration(impact.abs() as i64),
            if impact > 0.0 { "more" } else { "less" },
            guard.unit_words(),
            if per_unit {
                ""
            } else {
                ", in about the same run time"
            },
        ),
        (true, None, _) => {
            let moved = matters().filter(|c| c.metric.is_duration()).chain(unproven);
            let moved = moved.map(|c| format!("{}: {}", c.subject, c.moves.join(", ")));
            let moved: Vec<String> = moved.take(1).collect();
            format!("After took about as long, but {}", moved.join(""))
        }
        _ => nothing(changes, durations, per_unit),
    };
    let explained = source.as_ref().filter(|_| sign != 0.0);
    if let Some(source) = explained {
        let amount = duration(source.impact.abs() as i64);
        let more = if source.impact > 0.0 { "more" } else { "less" };
        text.push_str(&format!(
            "; {} took {amount} {more}{}",
            source.subject,
            match per_unit && ran.is_none() {
                true => "",
                false => guard.unit_words(),
            }
        ));
        if let Some(([layer, name], ns)) = &source.layer {
            let part = match source.whole_call && ns.abs() <= source.impact.abs() {
                true => format!("{} of it", duration(ns.abs() as i64)),
                false => "mostly".to_owned(),
            };
            text.push_str(&format!(", {part} {}", place(layer, name)));
        }
    } else if let (true, Some(_), Some(impact)) = (said, ran, impact) {
        let more = if impact > 0.0 { "more" } else { "less" };
        let ns = duration(impact.abs() as i64);
        text.push_str(&format!("; I/O calls took {ns} {more}"));
    }
    if said {
        text.push_str(&others(guard, tables, unproven));
    }
    if said && !proven {
        text.push_str(match work.judge.repeated() {
            true => ". The sessions differ too much to prove it",
            false => ". One session on each side cannot prove it",
        });
    }
    text.push('.');
    Headline {
        text,
        direction: match (said, sign) {
            (true, sign) if sign > 0.0 => Verdict::Worse,
            (true, sign) if sign < 0.0 => Verdict::Better,
            _ => Verdict::Same,
        },
        proven,
        layer: source.as_ref().and_then(|s| s.layer.clone().map(|l| l.0)),
        source: source.map(|s| s.subject),
        duration_ns: durations,
        impact_ns: impact,
    }
}

/// The calls that both sides made, where one side made others, too: what slowed them down is of more interest than what
/// another program added.
fn shared(tables: &Tables) -> Option<Tables> {
    let both = |rows: &[Row]| -> Vec<Row> {
        let both = |row: &&Row| row.status == Status::Both;
        rows.iter().filter(both).cloned().collect()
    };
    let shared = Tables {
        syscalls: both(&tables.syscalls),
        operations: both(&tables.operations),
        ..Tables::default()
    };
    (shared.syscalls.len() < tables.syscalls.len()).then_some(shared)
}

/// Programs that ran on one side only, and whom the others waited for.
fn others(guard: &Guarding, tables: &Tables, unproven: &[Change]) -> String {
    let mut text = String::new();
    let large = |row: &&Row| {
        guard
            .impact(&row.figures)
            .is_some_and(|ns| guard.is_large(ns))
    };
    let one_side = tables.processes.iter().filter(large);
    for (status, side) in [(Status::New, "After"), (Status::Gone, "before")] {
        let names = one_side.clone().filter(|row| row.status == status);
        let names: Vec<&str> = names
            .map(|row| row.name.as_str())
            .take(NAMED_PROGRAMS)
            .collect();
        if !names.is_empty() {
            text.push_str(&format!("; only {side} ran {}", names.join(", ")));
        }
    }
    let neighbor = unproven.iter().find(|change| {
        change.subject.starts_with("noisy-neighbor: ") && change.before == Some(0.0)
    });
    if let Some(title) = neighbor.and_then(|change| change.subject.split(": ").nth(1)) {
        text.push_str(&format!("; {title}"));
    }
    text
}

/// Where a layer's time passes, in words.
fn place(layer: &str, name: &str) -> String {
    match (layer, name) {
        ("block", device) => format!("in the queue of {device}"),
        ("device", device) => format!("in device {device}"),
        ("sched", "run queue") => "waiting for a CPU".to_owned(),
        ("pagecache", _) => "in the page cache".to_owned(),
        ("fs", part) => format!("in the file system ({part})"),
        _ => format!("in layer {layer} ({name})"),
    }
}

/// How many calls each side made.
fn calls_made(guard: &Guarding) -> String {
    let calls = guard.totals.iter().find(|f| f.metric == Metric::Calls);
    let sides = calls.and_then(|f| f.after.zip(f.before));
    sides.map_or(String::new(), |(after, before)| {
        let [after, before] = [after, before].map(|n| count(n as i64));
        format!("; it made {after} calls instead of {before}")
    })
}

fn total_proven(guard: &Guarding) -> bool {
    let time = guard.totals.iter().find(|f| f.metric == Metric::Time);
    time.is_some_and(|f| f.verdict.is_change())
}

/// No difference of time that is worth a word.
fn nothing(changes: &[Change], [before, after]: [f64; 2], per_unit: bool) -> String {
    let mut matter = changes.iter().filter(|c| !c.minor);
    let mut text = match (matter.next(), changes.is_empty()) {
        (Some(first), _) => {
            let what = what(first);
            match matter.count() {
                0 => format!("One thing changed beyond noise: {what}"),
                more => format!("{} things changed beyond noise, first {what}", more + 1),
            }
        }
        (None, true) => "Nothing changed beyond noise".to_owned(),
        (None, false) => "Nothing changed beyond noise but trifles".to_owned(),
    };
    if !per_unit && before > 0.0 {
        text.push_str(&format!(
            "; after ran {}, before {}",
            duration(after as i64),
            duration(before as i64)
        ));
    }
    text
}

/// A change of a number.
fn what(change: &Change) -> String {
    let [before, after] = [change.before, change.after].map(|n| n.unwrap_or(0.0));
    let number = |n: f64| match change.metric {
        metric if metric.is_bytes() => bytes(n.round() as i64),
        metric if metric.is_time() => duration(n.round() as i64),
        _ => count(n.round() as i64),
    };
    match change.metric {
        Metric::Findings if before == 0.0 => format!("new finding {}", change.subject),
        Metric::Findings if after == 0.0 => format!("finding gone {}", change.subject),
        Metric::Findings => format!("finding {}", change.subject),
        metric => format!(
            "{} of {} went from {} to {}",
            metric.words(),
            change.subject,
            number(before),
            number(after)
        ),
    }
}

/// The call on a file with the largest part of the difference, in the same direction.
fn source(
    work: &Work,
    guard: &Guarding,
    tables: &Tables,
    whole: f64,
    sign: f64,
) -> Option<Contributor> {
    let largest = |rows: &[Row], name: Option<&str>| -> Option<(String, String, f64)> {
        rows.iter()
            .filter(|row| name.is_none_or(|name| row.name == name))
            .filter_map(|row| Some((row, guard.impact(&row.figures)?)))
            .filter(|(_, impact)| impact * sign > 0.0)
            .max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))
            .map(|(row, impact)| (row.name.clone(), guard.subject("operations", row), impact))
    };
    // A run that is slower though its calls are faster is not explained by them.
    if whole * sign <= 0.0 {
        return None;
    }
    let (call, mut subject, of_call) = largest(&tables.syscalls, None)?;
    let mut impact = of_call;
    if impact.abs() < whole.abs() * NAMED {
        return None;
    }
    if let Some((_, on, part)) = largest(&tables.operations, Some(&call))
        && part.abs() >= impact.abs() * EXPLAINS
    {
        (subject, impact) = (on, part);
    }
    let layer = work
        .layers_of(&call)
        .into_iter()
        .filter(|(_, ns)| ns * impact > 0.0 && ns.abs() >= impact.abs() * EXPLAINS)
        .max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()));
    Some(Contributor {
        subject,
        impact,
        whole_call: impact.abs() >= of_call.abs() * NEARLY_ALL,
        layer,
    })
}
