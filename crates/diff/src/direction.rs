//! Which way the durations of a call moved. A shorter median is no improvement where the total
//! or the tail got longer, and fewer calls are none where they took longer or where less work was
//! done.

use fathom_model::units::{count, duration, percent};

use crate::result::{Figure, Metric, Row, Verdict};

/// Factors from which on a total and a 99th and 99.9th percentile count as moved, proven or
/// not: the further out a quantile is, the more it differs by chance.
const MOVED: [(Metric, f64); 3] = [
    (Metric::Time, 1.1),
    (Metric::P99, 1.25),
    (Metric::P999, 2.0),
];
/// Part by which a duration must differ to be mentioned.
const MENTIONED: f64 = 0.05;

/// Which way something went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Up,
    Down,
    Neither,
}

/// Corrects the verdicts of a row of calls whose total or tail went the other way.
pub(crate) fn reconcile(row: &mut Row) {
    let (total, tail) = (way(&row.figures, &[Metric::Time]), tail(row));
    for figure in row.figures.iter_mut().filter(|f| f.metric.is_duration()) {
        let against = match figure.verdict {
            Verdict::Better if total == Way::Up => "the total of these calls got longer",
            Verdict::Better if tail == Way::Up => "the tail of these calls got longer",
            Verdict::Worse if total == Way::Down && tail == Way::Down => {
                "the total and the tail of these calls got shorter"
            }
            _ => continue,
        };
        figure.verdict = Verdict::Mixed;
        figure.why = format!("{}; but {against}", figure.why);
    }
}

/// Corrects the verdicts on a call on a file: `calls` is the row of all its calls.
pub(crate) fn reconcile_part(row: &mut Row, calls: Option<&Row>) {
    let tail = calls.map_or(Way::Neither, tail);
    for figure in row.figures.iter_mut().filter(|f| f.metric == Metric::Time) {
        if figure.verdict == Verdict::Better && tail == Way::Up {
            figure.verdict = Verdict::Mixed;
            figure.why = format!("{}; but the tail of {} got longer", figure.why, row.name);
        }
    }
}

/// Takes the judgment from counts of calls and bytes whose direction says nothing. `work` is the
/// reason if the amount of work of the sessions is not known to be the same.
pub(crate) fn reconcile_counts(figures: &mut [Figure], work: Option<&str>) {
    let time = figures.iter().find(|f| f.metric == Metric::Time);
    let longer = time
        .and_then(|time| ratio(time, 1.0))
        .is_some_and(|ratio| ratio > 1.0);
    let counts = [Metric::Calls, Metric::AskedBytes, Metric::Bytes];
    let any = |verdict: Verdict| {
        let mut counted = figures.iter().filter(|f| counts.contains(&f.metric));
        counted.any(|f| f.verdict == verdict)
    };
    let opposite = any(Verdict::Better) && any(Verdict::Worse);
    for figure in figures.iter_mut().filter(|f| counts.contains(&f.metric)) {
        let why = match (figure.verdict, work) {
            (Verdict::Better | Verdict::Worse, Some(work)) => work,
            (Verdict::Better | Verdict::Worse, None) if opposite => {
                "but calls and bytes went opposite ways"
            }
            (Verdict::Better, None) if longer => "but these calls took longer in total",
            _ => continue,
        };
        figure.verdict = Verdict::Differs;
        figure.why = format!("{}; {why}", figure.why);
    }
}

fn tail(row: &Row) -> Way {
    match row
        .figure(Metric::Tail)
        .map(|f| (f.verdict, f.before < f.after))
    {
        Some((verdict, true)) if verdict.is_change() => Way::Up,
        _ => way(&row.figures, &[Metric::P99, Metric::P999]),
    }
}

/// Up if one of the metrics moved up, down if one moved down and none up.
fn way(figures: &[Figure], metrics: &[Metric]) -> Way {
    let mut out = Way::Neither;
    for figure in figures.iter().filter(|f| metrics.contains(&f.metric)) {
        let least = MOVED.iter().find(|(metric, _)| *metric == figure.metric);
        let Some((ratio, (_, least))) = ratio(figure, 1.0).zip(least) else {
            continue;
        };
        if ratio > *least || figure.verdict == Verdict::Worse {
            return Way::Up;
        }
        if ratio < 1.0 / least || figure.verdict == Verdict::Better {
            out = Way::Down;
        }
    }
    out
}

/// After as a multiple of before; `unit` scales what is there after.
pub(crate) fn ratio(figure: &Figure, unit: f64) -> Option<f64> {
    if figure.verdict == Verdict::NotComparable {
        return None;
    }
    let (before, after) = (figure.before?, figure.after? * unit);
    (before > 0.0 && after > 0.0).then(|| after / before)
}

/// Which way each of the durations moved, in words.
pub(crate) fn moves(row: &Row, unit: f64) -> Vec<String> {
    let always = [Metric::Time, Metric::P50, Metric::P99];
    // The other quantiles say something where the 99th percentile does not.
    let p99 = row.figure(Metric::P99).map(|f| f.verdict);
    let figures = row.figures.iter().filter(|f| {
        let more = f.verdict.is_change() && (f.metric == Metric::Tail || p99 != Some(f.verdict));
        f.metric.is_duration() && (always.contains(&f.metric) || more)
    });
    let one = |figure: &Figure| {
        let name = match figure.metric {
            Metric::Time => "total",
            Metric::P50 => "median",
            Metric::P90 => "p90",
            Metric::P99 => "p99",
            Metric::P999 => "p99.9",
            _ => return tail_words(row, figure),
        };
        let scale = if figure.metric == Metric::Time {
            unit
        } else {
            1.0
        };
        let ratio = ratio(figure, scale)?;
        let mentioned = (ratio - 1.0).abs() >= MENTIONED || figure.verdict.is_change();
        mentioned.then(|| format!("{name} {}", longer(ratio)))
    };
    figures.filter_map(one).collect()
}

fn tail_words(row: &Row, figure: &Figure) -> Option<String> {
    let calls = row.figure(Metric::Calls)?;
    let whole = |n: Option<f64>| n.map(|n| count(n.round() as i64));
    // Rates have no number of calls.
    let threshold = duration(figure.threshold_ns?.round() as i64);
    let (before, after) = (whole(figure.before)?, whole(figure.after)?);
    let of = |n: Option<f64>, part: Option<f64>| match n >= part {
        true => whole(n).map(|n| format!(" of {n}")),
        false => None,
    };
    Some(format!(
        "{after}{} calls longer than {threshold} instead of {before}{}",
        of(calls.after, figure.after).unwrap_or_default(),
        of(calls.before, figure.before).unwrap_or_default(),
    ))
}

/// `29 times as long`, `12 % shorter`, `down to 1/385`.
pub(crate) fn longer(ratio: f64) -> String {
    match ratio {
        r if r >= 10.0 => format!("{} times as long", count(r.round() as i64)),
        r if r >= 2.0 => format!("{r:.1} times as long"),
        r if r >= 1.0 => format!("{} longer", percent(r - 1.0)),
        r if r >= 0.05 => format!("{} shorter", percent(1.0 - r)),
        r => format!("down to 1/{}", count((1.0 / r).round() as i64)),
    }
}

#[cfg(test)]
mod tests {
    use super::longer;

    #[test]
    fn factors_in_words() {
        for (ratio, words) in [
            (29.2, "29 times as long"),
            (3.34, "3.3 times as long"),
            (1.12, "12 % longer"),
            (0.88, "12 % shorter"),
            (1.0 / 385.0, "down to 1/385"),
        ] {
            assert_eq!(longer(ratio), words);
        }
    }
}
