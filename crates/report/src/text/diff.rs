//! Comparisons for a terminal.

use fathom_diff::{Change, Diff, Figure, Metric, Outcome, Row, Side, Status, Verdict};
use fathom_model::units::{bytes, count, duration, percent};
use fathom_query::escape::{self, shell_words, wrap};

use super::style::Style;
use super::table::{Column, render};
use super::{MAX_WIDTH, MIN_WIDTH};

/// Changes that are listed, and minor ones.
const MAX_CHANGES: usize = 12;
const MAX_MINOR: usize = 4;
/// Width from which on three figures fit next to a path.
const WIDE: usize = 130;
/// Rows of each table.
const MAX_ROWS: usize = 8;

/// A comparison as text, at most `width` characters wide. Text that the recorded programs
/// control is escaped.
pub fn diff_to_text(diff: &Diff, width: usize, color: bool) -> String {
    let mut page = Page {
        out: String::new(),
        width: width.clamp(MIN_WIDTH, MAX_WIDTH),
        style: Style { color },
        diff,
    };
    page.head();
    page.changes();
    page.totals();
    let tables = &diff.tables;
    let timed = [Metric::Calls, Metric::Time, Metric::P99];
    page.table("Calls", "call", &tables.syscalls, &timed);
    let moved = [Metric::Calls, Metric::Bytes, Metric::Time];
    // Names are long, and half a figure says nothing.
    let moved = match page.width {
        WIDE.. => &moved[..],
        _ => &moved[..2],
    };
    page.table("Files", "file", &tables.files, moved);
    page.table("Processes", "process", &tables.processes, moved);
    page.table(
        "Layers below the calls",
        "layer",
        &tables.layers,
        &[Metric::Calls, Metric::Time],
    );
    page.table("Devices", "requests", &tables.devices, moved);
    page.table("Errors", "call", &tables.errors, &[Metric::Errors]);
    page.findings();
    page.method();
    page.out
}

struct Page<'a> {
    out: String,
    width: usize,
    style: Style,
    diff: &'a Diff,
}

impl Page<'_> {
    fn line(&mut self, text: &str) {
        self.out.push_str(text);
        self.out.push('\n');
    }

    fn title(&mut self, text: &str) {
        let title = self.style.bold(text);
        self.line(&format!("\n{title}"));
    }

    /// A paragraph.
    fn text(&mut self, text: &str) {
        for (i, line) in wrap(&escape::text(text), self.width - 4).iter().enumerate() {
            self.line(&format!("  {}{line}", if i == 0 { "" } else { "  " }));
        }
    }

    fn head(&mut self) {
        let sentence = escape::text(&self.diff.headline.text);
        for line in wrap(&sentence, self.width) {
            let line = self.style.bold(&line);
            self.line(&line);
        }
        let guard = &self.diff.guard;
        let limit = format!("{} %", guard.fail_above_percent);
        let names: Vec<&str> = guard.metrics.iter().map(|m| m.name()).collect();
        let names = names.join(", ");
        let line = match self.diff.outcome {
            Outcome::Worse => {
                let worse = self.style.bad("Worse");
                let n = count(guard.failures as i64);
                let differences = if guard.failures == 1 {
                    "difference"
                } else {
                    "differences"
                };
                format!("{worse}: {n} {differences} beyond noise and {limit} ({names})")
            }
            Outcome::Changed => {
                let changed = self.style.bold("Changed");
                format!("{changed}, but nothing is worse by more than {limit} ({names})")
            }
            Outcome::WithinNoise => {
                let same = self.style.good(match diff_is_judged(self.diff) {
                    true => "Within noise",
                    false => "Within noise as far as it was judged",
                });
                let changed = match diff_is_judged(self.diff) {
                    true => "changed",
                    false => "is known to have changed",
                };
                format!("{same}: nothing that guards the exit status {changed} ({names})")
            }
        };
        self.line(&line);
        self.side("before", &self.diff.before);
        self.side("after ", &self.diff.after);
        if !self.diff.notes.is_empty() {
            self.title("Not comparable, or with reservations");
            for note in &self.diff.notes {
                self.text(note);
            }
        }
    }

    fn side(&mut self, name: &str, side: &Side) {
        let label = self.style.dim(name);
        for session in &side.sessions {
            let mut line = format!(
                "  {label}  {}: {} calls in {}",
                escape::text(&session.name),
                count(session.calls),
                duration(session.duration_ns),
            );
            if !session.command.is_empty() {
                let command = shell_words(&session.command);
                line.push_str(&format!(", {}", escape::shorten(&command, 60)));
            }
            self.line(&line);
        }
    }

    fn changes(&mut self) {
        let diff = self.diff;
        let of = |minor: bool| diff.changes.iter().filter(move |c| c.minor == minor);
        self.list("Changes", of(false).collect(), MAX_CHANGES);
        let unproven = diff.unproven.iter().collect();
        self.list("Large, but not proven", unproven, MAX_CHANGES);
        self.list("Small changes", of(true).collect(), MAX_MINOR);
    }

    fn list(&mut self, title: &str, changes: Vec<&Change>, most: usize) {
        if changes.is_empty() {
            return;
        }
        self.title(title);
        for change in changes.iter().take(most) {
            let longer = change.impact_ns.is_some_and(|ns| ns > 0.0);
            let timed = change.metric.is_duration();
            let word = match change.verdict {
                Verdict::Worse if change.fails => self.style.bad("worse "),
                Verdict::Worse if timed => self.style.bold("slower"),
                Verdict::Worse => self.style.bold("more  "),
                Verdict::Mixed => self.style.bold("mixed "),
                Verdict::WithinNoise if longer => self.style.dim("slower"),
                Verdict::WithinNoise => self.style.dim("faster"),
                Verdict::Differs if change.fails => self.style.bad("more  "),
                Verdict::Differs if change.before < change.after => self.style.bold("more  "),
                Verdict::Differs => self.style.bold("fewer "),
                _ => self.style.good("better"),
            };
            let text = match (change.metric, change.before, change.after) {
                (Metric::Findings, Some(0.0), _) => format!("new finding {}", change.subject),
                (Metric::Findings, _, Some(0.0)) => format!("finding gone {}", change.subject),
                (Metric::Findings, ..) => format!("finding {}", change.subject),
                _ if !change.moves.is_empty() => {
                    let on = match &change.mostly_on {
                        Some(on) => format!(" (mostly on {on})"),
                        None => String::new(),
                    };
                    format!("{}{on}: {}", change.subject, change.moves.join(", "))
                }
                (metric, before, after) => {
                    let value =
                        |v: Option<f64>| v.map_or("-".to_owned(), |v| self.value(metric, v));
                    let factor = match change.change {
                        Some(change) => format!(" ({})", relative(change)),
                        None => String::new(),
                    };
                    format!(
                        "{}: {} {} -> {}{factor}",
                        change.subject,
                        words(metric),
                        value(before),
                        value(after)
                    )
                }
            };
            let impact = match change.impact_ns.map(|ns| ns.round() as i64) {
                Some(ns) if ns != 0 => {
                    let sign = if ns > 0 { "+" } else { "-" };
                    format!(" [{sign}{} of I/O time]", duration(ns.abs()))
                }
                _ => String::new(),
            };
            let why = match change.why.as_str() {
                "" => String::new(),
                why => format!("; {why}"),
            };
            let lines = wrap(
                &escape::text(&format!("{text}{impact}{why}")),
                self.width - 10,
            );
            for (i, line) in lines.iter().enumerate() {
                let label = if i == 0 { word.as_str() } else { "      " };
                self.line(&format!("  {label}  {line}"));
            }
        }
        let more = changes.len().saturating_sub(most);
        if more > 0 {
            self.line(&format!(
                "  and {} more: --format json lists them",
                count(more as i64)
            ));
        }
    }

    fn value(&self, metric: Metric, value: f64) -> String {
        let rate = self.diff.method.per_second
            && matches!(
                metric,
                Metric::Calls | Metric::Errors | Metric::Bytes | Metric::AskedBytes | Metric::Time
            );
        let text = number(metric, value);
        if rate { format!("{text}/s") } else { text }
    }

    fn totals(&mut self) {
        self.title("All calls");
        let columns = [
            Column::name(""),
            Column::number("before", 0),
            Column::number("after", 0),
            Column::number("change", 0),
            Column::flexible("is it more than noise?"),
        ];
        let rows: Vec<Vec<String>> = self
            .diff
            .totals
            .iter()
            .map(|figure| {
                let value =
                    |v: Option<f64>| v.map_or("-".to_owned(), |v| self.value(figure.metric, v));
                vec![
                    words(figure.metric).to_owned(),
                    value(figure.before),
                    value(figure.after),
                    mark(Status::Both, figure),
                    judged(figure),
                ]
            })
            .collect();
        render(&mut self.out, self.style, self.width, &columns, &rows);
    }

    fn table(&mut self, title: &str, what: &'static str, rows: &[Row], metrics: &[Metric]) {
        if rows.is_empty() {
            return;
        }
        let changed = rows.iter().filter(|row| row.changed()).count();
        let mut note = format!(
            "{} of {} differ by more than noise",
            count(changed as i64),
            count(rows.len() as i64)
        );
        let open = rows.iter().filter(|row| row.is_open()).count();
        if open > 0 {
            note.push_str(&format!("; {} not judged in full", count(open as i64)));
        }
        let (bold, dim) = (self.style.bold(title), self.style.dim(&note));
        self.line(&format!("\n{bold}  {dim}"));
        let mut shown: Vec<&Row> = rows.iter().collect();
        // Changed rows first, each part in the order of weight.
        shown.sort_by_key(|row| !row.changed());
        shown.truncate(MAX_ROWS.max(changed.min(MAX_ROWS * 2)));
        let mut columns = vec![Column::flexible(what)];
        for (i, metric) in metrics.iter().enumerate() {
            let give_way = i as u8;
            columns.push(Column::number(words(*metric), give_way));
            columns.push(Column::number("after", give_way));
            columns.push(Column::number("change", give_way));
        }
        let cells: Vec<Vec<String>> = shown.iter().map(|row| self.cells(row, metrics)).collect();
        render(&mut self.out, self.style, self.width, &columns, &cells);
    }

    fn cells(&self, row: &Row, metrics: &[Metric]) -> Vec<String> {
        let mut name = row.name.clone();
        if let Some(on) = &row.on {
            name = format!("{on} {name}");
        }
        if let Some([before, after]) = row.names {
            let n = |n: usize| count(n as i64);
            name.push_str(&format!(" ({} names, {} after)", n(before), n(after)));
        }
        let mut cells = vec![name];
        for metric in metrics {
            let figure = row.figure(*metric);
            let value = |v: Option<f64>| match v {
                None => "-".to_owned(),
                Some(0.0) => "·".to_owned(),
                Some(v) => self.value(*metric, v),
            };
            cells.push(value(figure.and_then(|f| f.before)));
            cells.push(value(figure.and_then(|f| f.after)));
            cells.push(figure.map_or("-".to_owned(), |f| mark(row.status, f)));
        }
        cells
    }

    fn findings(&mut self) {
        if self.diff.findings.is_empty() {
            return;
        }
        self.title("Findings");
        for finding in self.diff.findings.iter().take(MAX_ROWS * 2) {
            let status = match (finding.status, finding.verdict) {
                (Status::New, _) => "new",
                (Status::Gone, _) => "gone",
                (Status::Both, Verdict::Worse) => "worse",
                (Status::Both, Verdict::Better) => "better",
                (Status::Both, Verdict::Same) => "same",
                (Status::Both, _) => "still",
            };
            let cost = |ns: Option<f64>| ns.map_or("none".to_owned(), |ns| duration(ns as i64));
            let mut text = format!("{status}  {}  {}", finding.rule, finding.title);
            if finding.cost_ns.iter().any(Option::is_some) {
                let [before, after] = finding.cost_ns;
                text.push_str(&format!(" (cost {} -> {})", cost(before), cost(after)));
            }
            if !finding.is_judged() {
                text.push_str(&format!("; {}", finding.why));
            } else if finding.verdict == Verdict::WithinNoise {
                text.push_str(&format!("; within noise: {}", finding.why));
            }
            self.text(&text);
        }
        let more = self.diff.findings.len().saturating_sub(MAX_ROWS * 2);
        if more > 0 {
            self.line(&format!(
                "  and {} more: --format json lists them",
                count(more as i64)
            ));
        }
    }

    fn method(&mut self) {
        self.title("How it was judged");
        self.text("≈ is within noise, ? is not judged, = is the same, n/c is not comparable");
        for text in &self.diff.method.text {
            self.text(text);
        }
    }
}

/// Name of a metric.
fn words(metric: Metric) -> &'static str {
    match metric {
        Metric::Calls => "calls",
        Metric::Errors => "errors",
        Metric::AskedBytes => "bytes asked for",
        Metric::Bytes => "bytes",
        Metric::Time => "time",
        Metric::P50 => "p50",
        Metric::P90 => "p90",
        Metric::P99 => "p99",
        Metric::P999 => "p99.9",
        Metric::Longest => "longest",
        Metric::Tail => "long calls",
        Metric::FirstCall => "to first call",
        Metric::LastCall => "to end of last",
        Metric::Findings => "findings",
    }
}

fn number(metric: Metric, value: f64) -> String {
    if metric.is_time() {
        duration(value.round() as i64)
    } else if metric.is_bytes() {
        bytes(value.round() as i64)
    } else if value.fract() == 0.0 || value >= 100.0 {
        count(value.round() as i64)
    } else {
        format!("{value:.1}")
    }
}

/// A change as a share of what was before: `+12 %`, `-3.0 %`, `x 20`.
fn relative(change: f64) -> String {
    match change {
        c if c >= 9.0 => format!("x {}", count((c + 1.0).round() as i64)),
        c if c < 0.0 => format!("-{}", percent(-c)),
        c => format!("+{}", percent(c)),
    }
}

/// A change and what it is worth.
fn mark(status: Status, figure: &Figure) -> String {
    let change = match (status, figure.change) {
        (Status::New, _) => "new".to_owned(),
        (Status::Gone, _) => "gone".to_owned(),
        (_, Some(change)) => relative(change),
        (_, None) => "new".to_owned(),
    };
    match figure.verdict {
        Verdict::Same => "=".to_owned(),
        Verdict::NotComparable if status != Status::Both => "-".to_owned(),
        Verdict::NotComparable => "n/c".to_owned(),
        Verdict::WithinNoise if !figure.is_judged() => format!("?{change}"),
        Verdict::WithinNoise => format!("≈{change}"),
        Verdict::Worse | Verdict::Better | Verdict::Mixed | Verdict::Differs => change,
    }
}

/// Whether it is known of all figures of all calls if they differ by more than noise.
fn diff_is_judged(diff: &Diff) -> bool {
    diff.totals.iter().all(Figure::is_judged)
}

fn judged(figure: &Figure) -> String {
    let word = match figure.verdict {
        Verdict::Same => return "the same".to_owned(),
        Verdict::WithinNoise if !figure.is_judged() => {
            let why = figure.why.split([';', ',']).next();
            return why.unwrap_or_default().to_owned();
        }
        Verdict::WithinNoise => "within noise",
        Verdict::Worse => "more",
        Verdict::Better => "less",
        Verdict::Mixed => "mixed",
        Verdict::Differs if figure.before < figure.after => "more",
        Verdict::Differs => "less",
        Verdict::NotComparable => "not comparable",
    };
    // The rest of the reason is below the tables, and in JSON.
    match figure.why.split([':', ';', ',']).next() {
        None | Some("") => word.to_owned(),
        Some(why) => format!("{word}: {why}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(why: &str) -> Figure {
        Figure {
            metric: Metric::Time,
            before: Some(1.0),
            after: Some(410.0),
            change: Some(409.0),
            verdict: Verdict::WithinNoise,
            why: why.to_owned(),
            p: None,
            interval: None,
            effect: None,
            threshold_ns: None,
            samples: [vec![1.0], vec![410.0]],
        }
    }

    #[test]
    fn a_difference_that_is_not_judged_is_not_called_noise() {
        let open =
            figure("not judged: one session per side; it does not show how much runs differ");
        assert_eq!(judged(&open), "not judged: one session per side");
        assert_eq!(mark(Status::Both, &open), "?x 410");
        let noise = figure("p = 0.500 of 3 tests");
        assert_eq!(judged(&noise), "within noise: p = 0.500 of 3 tests");
        assert_eq!(mark(Status::Both, &noise), "≈x 410");
    }
}
