//! The report for a terminal.

mod diagnosis;
mod diff;
mod findings;
mod layers;
mod mapped;
mod path;
mod screen;
mod story;
mod style;
mod table;

pub use self::diagnosis::diagnosis_to_text;
pub use self::diff::diff_to_text;
pub use self::path::path_to_text;
pub use self::story::story_to_text;
use fathom_query::escape::{self, shell_words, shorten, wrap};

use self::style::Style;
use self::table::{Column, render};
use crate::report::{Calls, FileActivity, Report, State};
use crate::section::sparkline;
use fathom_model::units::{bytes, count, duration, percent, share, wall_time_of};

/// Narrowest layout.
const MIN_WIDTH: usize = 80;
/// Widest: longer lines are no easier to read.
const MAX_WIDTH: usize = 140;
/// Calls that are listed; the rest is in `by_syscall`.
const MAX_CALLS: usize = 16;
/// Places of loss that are listed.
const MAX_PLACES: usize = 5;

/// Zeros would hide the numbers that matter.
fn blank_zero(n: i64, format: fn(i64) -> String) -> String {
    if n == 0 { "·".into() } else { format(n) }
}

/// The report on one screen of text, at most `width` characters wide (80 at least), with colors
/// when `color` is set. On a screen of `height` lines, parts are shortened until it fits, but for the
/// sentences and what went wrong. Nothing that the recorded program controls reaches the terminal
/// unescaped.
pub fn to_screen(report: &Report, width: usize, height: Option<usize>, color: bool) -> String {
    let laid_out = |amount: &screen::Amount, color| {
        let mut page = Page::new(report, width, color);
        page.screen(amount);
        page.out
    };
    // The terminal breaks what is too long for it.
    let lines_on = |line: &str| line.chars().count().div_ceil(width.max(1)).max(1);
    let fits = |amount: &&screen::Amount| {
        height.is_none_or(|height| {
            laid_out(amount, false).lines().map(lines_on).sum::<usize>() <= height
        })
    };
    let amount = screen::AMOUNTS.iter().find(fits);
    laid_out(amount.unwrap_or(&screen::LEAST), color)
}

/// The whole report as text, otherwise like [`to_screen`].
pub fn to_text(report: &Report, width: usize, color: bool) -> String {
    let mut page = Page::new(report, width, color);
    page.head();
    page.problems();
    page.why();
    page.findings();
    page.timeline();
    page.calls();
    page.errors();
    page.files();
    page.mapped();
    page.threads();
    page.layers();
    page.loss();
    page.cost();
    page.storage();
    page.next();
    page.out
}

struct Page<'a> {
    out: String,
    width: usize,
    style: Style,
    report: &'a Report,
}

impl<'a> Page<'a> {
    fn new(report: &'a Report, width: usize, color: bool) -> Self {
        Self {
            out: String::new(),
            width: width.clamp(MIN_WIDTH, MAX_WIDTH),
            style: Style { color },
            report,
        }
    }
}

impl Page<'_> {
    fn line(&mut self, text: &str) {
        self.out.push_str(text);
        self.out.push('\n');
    }

    fn title(&mut self, title: &str, note: &str) {
        self.out.push('\n');
        if note.is_empty() {
            let line = self.style.bold(title);
            self.line(&line);
            return;
        }
        let room = self.width.saturating_sub(title.chars().count() + 2);
        let mut before = format!("{}  ", self.style.bold(title));
        for part in wrap(note, room) {
            let line = format!("{before}{}", self.style.dim(&part));
            self.line(&line);
            before = " ".repeat(title.chars().count() + 2);
        }
    }

    fn head(&mut self) {
        self.command_and_run();
        self.machine();
    }

    fn command_and_run(&mut self) {
        let session = &self.report.session;
        let what = if session.command.is_empty() {
            escape::text(&session.target).into_owned()
        } else {
            shell_words(&session.command)
        };
        let line = self.style.bold(&shorten(&what, self.width));
        self.line(&line);
        let mut facts = vec![
            wall_time_of(&session.start_time),
            duration(session.duration_ns),
            match (session.state, session.exit_status) {
                (State::Recording, _) => "still recording".into(),
                (State::Killed, _) => "recorder ended early".into(),
                (State::Complete, Some(status)) => format!("exit status {status}"),
                (State::Complete, None) => "complete".into(),
            },
        ];
        facts.push(session.recorded());
        if !session.filters.is_empty() {
            facts.push(escape::text(&session.filters.join(" ")).into_owned());
        }
        facts.extend(session.label_words());
        self.facts(&facts);
    }

    fn machine(&mut self) {
        let session = &self.report.session;
        if !session.kernel.is_empty() {
            self.facts(&session.machine());
        }
    }

    /// Facts on one line, none broken.
    fn facts(&mut self, facts: &[String]) {
        let line = facts
            .iter()
            .map(|f| escape::text(f))
            .collect::<Vec<_>>()
            .join(" · ");
        let line = shorten(&line, self.width);
        self.line(&line);
    }

    fn problems(&mut self) {
        let problems = self.report.problems.iter();
        let problems: Vec<&String> = problems.chain(&self.report.limits).collect();
        if problems.is_empty() {
            return;
        }
        self.out.push('\n');
        for problem in problems {
            let text = escape::text(problem);
            let lines = wrap(&text, self.width.saturating_sub(2));
            for (i, line) in lines.iter().enumerate() {
                let mark = if i == 0 { "! " } else { "  " };
                let line = self.style.bad(&format!("{mark}{line}"));
                self.line(&line);
            }
        }
    }

    fn timeline(&mut self) {
        let timeline = &self.report.timeline;
        if self.report.loss.stored == 0 {
            return;
        }
        let per_second = |n: i64| n as f64 * 1e9 / timeline.slice_ns.max(1) as f64;
        let calls: Vec<i64> = timeline.slices.iter().map(|s| s.calls).collect();
        let moved: Vec<i64> = timeline
            .slices
            .iter()
            .map(|s| s.read_bytes + s.written_bytes)
            .collect();
        let note = format!("{} a column", duration(self.column_ns()));
        self.title("Over time", &note);
        for (name, values, peak) in [
            (
                "calls",
                &calls,
                calls
                    .iter()
                    .max()
                    .map(|n| format!("{}/s", count(per_second(*n) as i64))),
            ),
            (
                "bytes",
                &moved,
                moved
                    .iter()
                    .max()
                    .map(|n| format!("{}/s", bytes(per_second(*n) as i64))),
            ),
        ] {
            let graph = sparkline(&self.columns_of(values));
            let line = format!("  {name}  {graph}  peak {}", peak.unwrap_or_default());
            self.line(&line);
        }
    }

    /// Slices that share a column of the sparkline.
    fn slices_a_column(&self) -> usize {
        let room = self.width.saturating_sub(36).max(1);
        self.report.timeline.slices.len().div_ceil(room).max(1)
    }

    fn column_ns(&self) -> i64 {
        let slices = i64::try_from(self.slices_a_column()).unwrap_or(1);
        self.report.timeline.slice_ns.saturating_mul(slices)
    }

    fn columns_of(&self, values: &[i64]) -> Vec<i64> {
        values
            .chunks(self.slices_a_column())
            .map(|chunk| chunk.iter().sum())
            .collect()
    }

    fn calls(&mut self) {
        let totals = &self.report.totals;
        let mut note = format!(
            "{} · {} moved · {} in calls · {}",
            count(totals.calls),
            bytes(totals.bytes),
            duration(totals.total_ns),
            totals.errors_in_words().join(" · "),
        );
        if totals.pending > 0 {
            note.push_str(&format!(" · {} had not ended", count(totals.pending)));
        }
        self.title("Calls", &note);
        if totals.calls == 0 {
            self.line("  none");
            return;
        }
        let report = self.report;
        self.call_table("class", &report.classes);
        self.out.push('\n');
        let in_faults = report.mapped.total_ns;
        let listed = report.syscalls.get(..MAX_CALLS).unwrap_or(&report.syscalls);
        self.call_table("call", listed);
        let more = report.syscalls.len() - listed.len();
        if more > 0 {
            let line = self
                .style
                .dim(&format!("  and {more} more: FROM by_syscall"));
            self.line(&line);
        }
        if in_faults > 0 {
            let line = format!(
                "  page faults on mapped files took another {}, by file below",
                duration(in_faults)
            );
            self.line(&line);
        }
    }

    fn call_table(&mut self, title: &'static str, calls: &[Calls]) {
        let total = self.report.totals.total_ns as f64;
        let columns = [
            Column {
                title,
                right: false,
                give_way: 0,
                flexible: false,
            },
            Column::number("count", 0),
            Column::number("errors", 0),
            Column::number("bytes", 0),
            Column::number("p50", 0),
            Column::number("p90", 2),
            Column::number("p99", 0),
            Column::number("max", 0),
            Column::number("total", 0),
            Column::number("share", 1),
        ];
        let time = |ns: Option<i64>| ns.map_or("-".into(), duration);
        let rows: Vec<Vec<String>> = calls
            .iter()
            .map(|c| {
                vec![
                    c.name.clone(),
                    count(c.calls),
                    blank_zero(c.errors, count),
                    blank_zero(c.bytes, bytes),
                    time(c.p50_ns),
                    time(c.p90_ns),
                    time(c.p99_ns),
                    duration(c.max_ns),
                    duration(c.total_ns),
                    share(c.total_ns as f64, total).map_or("-".into(), percent),
                ]
            })
            .collect();
        render(&mut self.out, self.style, self.width, &columns, &rows);
    }

    fn errors(&mut self) {
        let errors = &self.report.errors;
        if errors.is_empty() {
            return;
        }
        self.title("Errors", "failures first");
        let columns = [
            Column::name("call"),
            Column::name("error"),
            Column::name("meaning"),
            Column::number("count", 0),
            Column::flexible("one of the paths"),
        ];
        let rows: Vec<Vec<String>> = errors
            .iter()
            .map(|e| {
                let path = e.example_path.clone().unwrap_or_else(|| "-".into());
                let meaning = if e.failed { "failed" } else { "answer" };
                vec![
                    e.syscall.clone(),
                    e.errno.clone(),
                    meaning.to_owned(),
                    count(e.calls),
                    path,
                ]
            })
            .collect();
        render(&mut self.out, self.style, self.width, &columns, &rows);
    }

    fn files(&mut self) {
        let files = &self.report.files;
        if files.count == 0 {
            return;
        }
        let note = format!("{} in all", count(files.count));
        self.title("Files by time", &note);
        self.file_table(&files.by_time);
        if !files.by_bytes.is_empty() {
            self.title("Files by bytes", "");
            self.file_table(&files.by_bytes);
        }
        self.title("Files by calls", "");
        self.file_table(&files.by_calls);
    }

    fn file_table(&mut self, files: &[FileActivity]) {
        let columns = [
            Column::flexible("path"),
            Column::number("calls", 0),
            Column::number("errors", 3),
            Column::number("read", 0),
            Column::number("written", 0),
            Column::number("max", 2),
            Column::number("total", 0),
            Column::number("share", 1),
        ];
        let total = self.report.totals.total_ns as f64;
        let rows: Vec<Vec<String>> = files
            .iter()
            .map(|f| {
                vec![
                    f.name(),
                    count(f.calls),
                    blank_zero(f.errors, count),
                    blank_zero(f.read_bytes, bytes),
                    blank_zero(f.written_bytes, bytes),
                    duration(f.max_ns),
                    duration(f.total_ns),
                    share(f.total_ns as f64, total).map_or("-".into(), percent),
                ]
            })
            .collect();
        render(&mut self.out, self.style, self.width, &columns, &rows);
    }

    fn threads(&mut self) {
        let threads = &self.report.threads;
        if threads.by_time.is_empty() {
            return;
        }
        let note = format!("{} in all", count(threads.count));
        self.title("Threads by time in calls", &note);
        let columns = [
            Column::name("thread"),
            Column::number("pid", 0),
            Column::number("tid", 0),
            Column::number("calls", 0),
            Column::number("errors", 2),
            Column::number("read", 0),
            Column::number("written", 0),
            Column::number("max", 1),
            Column::number("total", 0),
        ];
        let rows: Vec<Vec<String>> = threads
            .by_time
            .iter()
            .map(|t| {
                vec![
                    t.comm.clone().unwrap_or_else(|| "-".into()),
                    t.pid.to_string(),
                    t.tid.to_string(),
                    count(t.calls),
                    blank_zero(t.errors, count),
                    blank_zero(t.read_bytes, bytes),
                    blank_zero(t.written_bytes, bytes),
                    duration(t.max_ns),
                    duration(t.total_ns),
                ]
            })
            .collect();
        render(&mut self.out, self.style, self.width, &columns, &rows);
    }

    fn loss(&mut self) {
        let loss = &self.report.loss;
        let number = |n: u64| count(i64::try_from(n).unwrap_or(i64::MAX));
        let sum = if loss.balanced { "=" } else { "≠" };
        let parts: Vec<String> = loss
            .parts()
            .map(|(what, n)| format!("{what} {}", number(n)))
            .collect();
        let line = format!("seen {} {sum} {}", number(loss.seen), parts.join(" + "));
        self.title("Loss", "");
        let counted_before = self.report.session.state != State::Complete;
        let line = match (loss.lost == 0, loss.balanced) {
            (true, true) => self.style.good(&line),
            (true, false) if counted_before => line,
            _ => self.style.bad(&line),
        };
        self.line(&format!("  {line}"));
        if !loss.balanced && counted_before {
            self.line("  seen is the recorder's count a moment before");
        }
        for place in loss.places.iter().take(MAX_PLACES) {
            let cpu = if place.cpu < 0 {
                "CPU not known".into()
            } else {
                format!("CPU {}", place.cpu)
            };
            let line = format!(
                "  lost at {}, {cpu}, {}: {}",
                escape::text(&place.stage),
                escape::text(&place.syscall),
                count(place.calls)
            );
            self.line(&line);
        }
        if loss.places.len() > MAX_PLACES {
            let more = loss.places.len() - MAX_PLACES;
            self.line(&format!("  and at {more} more places: FROM losses"));
        }
        for advice in &loss.advice {
            for line in wrap(&format!("→ {advice}"), self.width.saturating_sub(2)) {
                self.line(&format!("  {line}"));
            }
        }
    }

    fn cost(&mut self) {
        let cost = &self.report.cost;
        let signed = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let with = |share: Option<f64>, of: &str| {
            share.map_or(String::new(), |s| format!(", {} of {of}", percent(s)))
        };
        let probes = match (cost.probe_ns_per_call, cost.probe_ns) {
            (None, None) => "not measured".into(),
            (each, all) => {
                let each = each.map(|n| format!("{n:.0} ns per call"));
                let all = all.map(|n| {
                    let share = with(cost.probe_share, "the program's CPU time");
                    format!("{} together{share}", duration(signed(n)))
                });
                [each, all]
                    .into_iter()
                    .flatten()
                    .collect::<Vec<_>>()
                    .join(", ")
            }
        };
        let recorder = cost
            .recorder_cpu_ns
            .map_or("CPU time not measured".into(), |n| {
                let share = with(cost.recorder_share, "one CPU");
                format!("{} of CPU time{share}", duration(signed(n)))
            });
        let memory = cost
            .recorder_peak_rss_bytes
            .map_or("not measured".into(), |n| {
                let limit = cost.recorder_limit_bytes.map_or(String::new(), |limit| {
                    format!(", limit {}", bytes(signed(limit)))
                });
                format!("{} at most{limit}", bytes(signed(n)))
            });
        let fill = cost.ring_peak.map_or("fill not measured".into(), |s| {
            format!("{} full at most", percent(s))
        });
        self.title("Cost of recording", "");
        let lines = [
            format!("probes    {probes}"),
            format!("recorder  {recorder}"),
            format!("memory    {memory}"),
            format!("ring      {} MiB a CPU, {fill}", cost.ring_mib),
        ];
        for line in lines {
            self.line(&format!("  {line}"));
        }
    }

    fn storage(&mut self) {
        let storage = &self.report.storage;
        let row = storage
            .bytes_per_row
            .map_or(String::new(), |n| format!(" · {n:.1} bytes per call"));
        let size = format!(
            "{}{row}",
            bytes(i64::try_from(storage.bytes).unwrap_or(i64::MAX))
        );
        self.title("Session", &size);
        let line = format!("  {}", escape::text(&storage.location));
        self.line(&line);
    }

    fn next(&mut self) {
        self.title("Next", "");
        for next in &self.report.next {
            let purpose = self
                .style
                .dim(&format!("  # {}", escape::text(&next.purpose)));
            self.line(&purpose);
            // Not broken and not shortened: it is there to be copied.
            let line = format!("  {}", escape::text(&next.command));
            self.line(&line);
        }
    }
}
