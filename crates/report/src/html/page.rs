//! The page around the plots.

use std::fmt::Write as _;

use fathom_query::escape::shell_words;

use super::{escape_html as esc, plots};
use crate::report::{Calls, FileActivity, Report, State};
use crate::section::Layout;
use fathom_model::units::{bytes, count, duration, percent, wall_time_of};

const STYLE: &str = include_str!("style.css");
/// Calls whose histogram is drawn.
const MAX_LATENCIES: usize = 16;

/// The two parts of a file's bar.
type Measure = fn(&FileActivity) -> (i64, i64);

/// A table cell: its text and whether it is a path.
enum Cell {
    Left(String),
    Path(String),
    Right(String),
    /// SVG of ours.
    Bar(String),
}

/// The report as one self-contained page.
pub fn to_html(report: &Report) -> String {
    let session = &report.session;
    let what = if session.command.is_empty() {
        session.target.clone()
    } else {
        shell_words(&session.command)
    };
    let mut out = String::with_capacity(64 << 10);
    let _ = write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>fathom: {}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n",
        esc(&what)
    );
    head(&mut out, report, &what);
    why(&mut out, report);
    tiles(&mut out, report);
    super::findings::section(&mut out, report);
    timeline(&mut out, report);
    calls(&mut out, report);
    errors(&mut out, report);
    files(&mut out, report);
    mapped(&mut out, report);
    threads(&mut out, report);
    layers(&mut out, report);
    loss(&mut out, report);
    cost(&mut out, report);
    next(&mut out, report);
    let _ = write!(
        out,
        "<footer>Recorded by fathom {} · session {}</footer>\n</main>\n</body>\n</html>\n",
        esc(&session.fathom_version),
        esc(&session.id)
    );
    out
}

fn head(out: &mut String, report: &Report, what: &str) {
    let session = &report.session;
    let state = match (session.state, session.exit_status) {
        (State::Recording, _) => "still recording".into(),
        (State::Killed, _) => "recorder ended early".into(),
        (State::Complete, Some(status)) => format!("exit status {status}"),
        (State::Complete, None) => "complete".into(),
    };
    let _ = write!(
        out,
        "<header>\n<h1>{}</h1>\n<p class=\"dim\">{} · recorded for {} · {} · {}</p>\n\
         <p class=\"dim\">{}</p>\n</header>\n",
        esc(what),
        esc(&wall_time_of(&session.start_time)),
        duration(session.duration_ns),
        esc(&state),
        esc(&[
            session.recorded(),
            session.filters.join(" "),
            session.label_words().collect::<Vec<_>>().join(" ")
        ]
        .join(" ")),
        esc(&session.machine().join(" · "))
    );
    if !report.problems.is_empty() || !report.limits.is_empty() {
        out.push_str("<ul class=\"problems\">\n");
        for problem in report.problems.iter().chain(&report.limits) {
            let _ = writeln!(out, "<li>{}</li>", esc(problem));
        }
        out.push_str("</ul>\n");
    }
}

/// Where the time went.
fn why(out: &mut String, report: &Report) {
    out.push_str("<section>\n<h2>Why</h2>\n");
    for sentence in &report.why.sentences {
        let _ = writeln!(out, "<p>{}</p>", esc(&sentence.text()));
    }
    out.push_str("</section>\n");
}

fn signed(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

fn tiles(out: &mut String, report: &Report) {
    let totals = &report.totals;
    let failed = match totals.answers {
        0 => "failed".to_owned(),
        n => format!("failed; {} missed lookups or retries", count(n)),
    };
    let mut tiles = vec![
        (count(totals.calls), "calls"),
        (count(totals.failures), &*failed),
        (bytes(totals.bytes), "moved"),
        (duration(totals.total_ns), "in calls, all threads"),
        (count(report.files.count), "files"),
        (count(signed(report.loss.lost)), "lost"),
    ];
    if report.mapped.total_ns > 0 {
        let time = duration(report.mapped.total_ns);
        tiles.insert(4, (time, "in page faults of mapped files besides"));
    }
    out.push_str("<div class=\"tiles\">");
    for (value, name) in tiles {
        let _ = write!(
            out,
            "<div class=\"tile\"><b>{value}</b><span>{name}</span></div>"
        );
    }
    out.push_str("</div>\n");
}

fn timeline(out: &mut String, report: &Report) {
    if report.loss.stored == 0 {
        return;
    }
    let slice = duration(report.timeline.slice_ns);
    let _ = write!(
        out,
        "<section>\n<h2>Over time</h2>\n<h3>Calls <span class=\"a\">succeeded</span> and failed \
         (orange), {slice} a bar</h3>\n{}\n<h3>Bytes read (blue) and written (orange)</h3>\n{}\n\
         </section>\n",
        plots::over_time(
            &report.timeline,
            |s| (s.calls - s.errors, s.errors),
            count,
            "calls per second over time"
        ),
        plots::over_time(
            &report.timeline,
            |s| (s.read_bytes, s.written_bytes),
            bytes,
            "bytes per second over time"
        )
    );
}

fn calls(out: &mut String, report: &Report) {
    out.push_str("<section>\n<h2>Calls</h2>\n");
    call_table(out, report, "class", &report.classes);
    out.push_str("<h3>By name</h3>\n");
    call_table(out, report, "call", &report.syscalls);
    if report.totals.pending > 0 {
        let _ = writeln!(
            out,
            "<p class=\"dim\">Calls that had not ended: {}. Their time so far counts.</p>",
            count(report.totals.pending)
        );
    }
    let shown = report
        .latency
        .get(..MAX_LATENCIES)
        .unwrap_or(&report.latency);
    if !shown.is_empty() {
        let _ = write!(
            out,
            "<h3>Latency: a cell is a power of two, darker where more of the calls lie; counts \
             on the right</h3>\n{}\n",
            plots::latencies(shown)
        );
    }
    out.push_str("</section>\n");
}

fn call_table(out: &mut String, report: &Report, title: &str, calls: &[Calls]) {
    let time = |ns: Option<i64>| ns.map_or("–".into(), duration);
    let total = report.totals.total_ns;
    let rows = calls.iter().map(|c| {
        vec![
            Cell::Left(c.name.clone()),
            Cell::Right(count(c.calls)),
            Cell::Right(count(c.errors)),
            Cell::Right(bytes(c.bytes)),
            Cell::Right(time(c.p50_ns)),
            Cell::Right(time(c.p90_ns)),
            Cell::Right(time(c.p99_ns)),
            Cell::Right(duration(c.max_ns)),
            Cell::Right(duration(c.total_ns)),
            Cell::Bar(plots::bar(c.total_ns, 0, total)),
        ]
    });
    let titles = [
        title,
        "count",
        "errors",
        "bytes",
        "p50",
        "p90",
        "p99",
        "max",
        "total",
        "share of time",
    ];
    table(out, &titles, rows);
}

fn table(out: &mut String, titles: &[&str], rows: impl Iterator<Item = Vec<Cell>>) {
    let rows: Vec<Vec<Cell>> = rows.collect();
    let left = |column: usize| {
        rows.first()
            .and_then(|row| row.get(column))
            .is_some_and(|c| !matches!(c, Cell::Right(_)))
    };
    out.push_str("<div class=\"scroll\"><table>\n<thead><tr>");
    for (i, title) in titles.iter().enumerate() {
        let class = if left(i) { " class=\"l\"" } else { "" };
        let _ = write!(out, "<th{class}>{}</th>", esc(title));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in &rows {
        out.push_str("<tr>");
        for cell in row {
            let _ = match cell {
                Cell::Left(text) => write!(out, "<td class=\"l\">{}</td>", esc(text)),
                Cell::Path(text) => write!(out, "<td class=\"path\">{}</td>", esc(text)),
                Cell::Right(text) => write!(out, "<td>{}</td>", esc(text)),
                Cell::Bar(svg) => write!(out, "<td class=\"bar\">{svg}</td>"),
            };
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table></div>\n");
}

fn errors(out: &mut String, report: &Report) {
    if report.errors.is_empty() {
        return;
    }
    out.push_str("<section>\n<h2>Errors</h2>\n");
    let rows = report.errors.iter().map(|e| {
        vec![
            Cell::Left(e.syscall.clone()),
            Cell::Left(e.errno.clone()),
            Cell::Left(if e.failed { "failed" } else { "answer" }.to_owned()),
            Cell::Right(count(e.calls)),
            Cell::Path(e.example_path.clone().unwrap_or_else(|| "–".into())),
        ]
    });
    let titles = ["call", "error", "meaning", "count", "one of the paths"];
    table(out, &titles, rows);
    out.push_str("</section>\n");
}

fn files(out: &mut String, report: &Report) {
    let files = &report.files;
    if files.count == 0 {
        return;
    }
    let _ = writeln!(
        out,
        "<section>\n<h2>Files</h2>\n<p class=\"dim\">{} in all</p>",
        count(files.count)
    );
    let rankings: [(&str, &[FileActivity], Measure); 3] = [
        ("By time", &files.by_time, |f| (f.total_ns, 0)),
        (
            "By bytes: read (blue) and written (orange)",
            &files.by_bytes,
            |f| (f.read_bytes, f.written_bytes),
        ),
        ("By calls", &files.by_calls, |f| (f.calls, 0)),
    ];
    for (title, ranking, bar) in rankings {
        if ranking.is_empty() {
            continue;
        }
        let most = ranking
            .iter()
            .map(bar)
            .map(|(a, b)| a.saturating_add(b))
            .max()
            .unwrap_or(1);
        let _ = writeln!(out, "<h3>{}</h3>", esc(title));
        let rows = ranking.iter().map(|f| {
            let (a, b) = bar(f);
            vec![
                Cell::Path(f.name()),
                Cell::Bar(plots::bar(a, b, most)),
                Cell::Right(count(f.calls)),
                Cell::Right(count(f.errors)),
                Cell::Right(bytes(f.read_bytes)),
                Cell::Right(bytes(f.written_bytes)),
                Cell::Right(duration(f.max_ns)),
                Cell::Right(duration(f.total_ns)),
            ]
        });
        table(
            out,
            &[
                "path", "", "calls", "errors", "read", "written", "max", "total",
            ],
            rows,
        );
    }
    out.push_str("</section>\n");
}

fn layers(out: &mut String, report: &Report) {
    for section in report.layers.sections() {
        let _ = writeln!(
            out,
            "<section>\n<h2>{}</h2>\n<p class=\"dim\">{}</p>",
            section.title, section.note
        );
        let titles: Vec<&str> = section.columns.iter().map(|(title, _)| *title).collect();
        let layouts: Vec<Layout> = section.columns.iter().map(|(_, layout)| *layout).collect();
        let rows = section.rows.into_iter().map(|row| {
            let cells = row.into_iter().zip(&layouts);
            cells
                .map(|(text, layout)| match layout {
                    Layout::Left => Cell::Left(text),
                    Layout::Right => Cell::Right(text),
                    Layout::Flexible => Cell::Path(text),
                })
                .collect()
        });
        table(out, &titles, rows);
        out.push_str("</section>\n");
    }
}

fn mapped(out: &mut String, report: &Report) {
    let mapped = &report.mapped;
    if mapped.by_time.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "<section>\n<h2>Mapped files by time in page faults</h2>\n<p class=\"dim\">{} in all, \
         {} faults</p>",
        count(mapped.count),
        count(signed(mapped.seen))
    );
    let most = mapped.by_time.first().map_or(1, |f| f.total_ns);
    let rows = mapped.by_time.iter().map(|f| {
        let path = f.path.clone();
        vec![
            Cell::Path(path.unwrap_or_else(|| "(file without a known path)".into())),
            Cell::Bar(plots::bar(f.total_ns, 0, most)),
            Cell::Right(count(f.faults)),
            Cell::Right(count(f.major)),
            Cell::Right(count(f.failed)),
            Cell::Right(count(f.write_faults)),
            Cell::Right(f.max_ns.map_or("–".into(), duration)),
            Cell::Right(duration(f.total_ns)),
            Cell::Right(bytes(f.written_back_bytes)),
        ]
    });
    let titles = [
        "path",
        "",
        "faults",
        "major",
        "failed",
        "by write",
        "max",
        "total",
        "written back",
    ];
    table(out, &titles, rows);
    out.push_str("</section>\n");
}

fn threads(out: &mut String, report: &Report) {
    let threads = &report.threads;
    if threads.by_time.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "<section>\n<h2>Threads by time in calls</h2>\n<p class=\"dim\">{} in all</p>",
        count(threads.count)
    );
    let most = threads.by_time.first().map_or(1, |t| t.total_ns);
    let rows = threads.by_time.iter().map(|t| {
        vec![
            Cell::Left(t.comm.clone().unwrap_or_else(|| "–".into())),
            Cell::Bar(plots::bar(t.total_ns, 0, most)),
            Cell::Right(t.pid.to_string()),
            Cell::Right(t.tid.to_string()),
            Cell::Right(count(t.calls)),
            Cell::Right(count(t.errors)),
            Cell::Right(bytes(t.read_bytes)),
            Cell::Right(bytes(t.written_bytes)),
            Cell::Right(duration(t.max_ns)),
            Cell::Right(duration(t.total_ns)),
        ]
    });
    let titles = [
        "thread", "", "pid", "tid", "calls", "errors", "read", "written", "max", "total",
    ];
    table(out, &titles, rows);
    out.push_str("</section>\n");
}

fn loss(out: &mut String, report: &Report) {
    let loss = &report.loss;
    let class = if loss.lost == 0 && loss.balanced {
        "good"
    } else {
        "bad"
    };
    let parts: Vec<String> = loss
        .parts()
        .map(|(what, n)| format!("{what} {}", count(signed(n))))
        .collect();
    let _ = writeln!(
        out,
        "<section>\n<h2>Loss</h2>\n<p class=\"{class}\">seen {} {} {}</p>",
        count(signed(loss.seen)),
        if loss.balanced { "=" } else { "≠" },
        parts.join(" + ")
    );
    if !loss.balanced && report.session.state != State::Complete {
        out.push_str("<p class=\"dim\">seen is the recorder's count a moment before</p>\n");
    }
    if !loss.places.is_empty() {
        let rows = loss.places.iter().map(|p| {
            vec![
                Cell::Left(p.stage.clone()),
                Cell::Left(if p.cpu < 0 {
                    "not known".into()
                } else {
                    p.cpu.to_string()
                }),
                Cell::Left(p.syscall.clone()),
                Cell::Right(count(p.calls)),
            ]
        });
        table(out, &["stage", "CPU", "call", "lost"], rows);
    }
    for advice in &loss.advice {
        let _ = writeln!(out, "<p>→ {}</p>", esc(advice));
    }
    out.push_str("</section>\n");
}

fn cost(out: &mut String, report: &Report) {
    let cost = &report.cost;
    let missing = || "not measured".to_string();
    let ns = |n: Option<u64>| n.map_or_else(missing, |n| duration(signed(n)));
    let share = |s: Option<f64>| s.map_or_else(missing, percent);
    let storage = &report.storage;
    let facts = [
        (
            "Probes, a call",
            cost.probe_ns_per_call
                .map_or_else(missing, |n| format!("{n:.0} ns")),
        ),
        ("Probes, together", ns(cost.probe_ns)),
        (
            "Probes, share of the program's CPU time",
            share(cost.probe_share),
        ),
        ("CPU time of the program", ns(cost.target_cpu_ns)),
        ("CPU time of the recorder", ns(cost.recorder_cpu_ns)),
        ("Recorder, share of one CPU", share(cost.recorder_share)),
        (
            "Peak memory of the recorder",
            cost.recorder_peak_rss_bytes
                .map_or_else(missing, |n| bytes(signed(n))),
        ),
        (
            "Limit of that",
            cost.recorder_limit_bytes
                .map_or_else(missing, |n| bytes(signed(n))),
        ),
        ("Ring, a CPU", format!("{} MiB", cost.ring_mib)),
        ("Ring, highest fill", share(cost.ring_peak)),
        ("Session", storage.location.clone()),
        ("Size on disk", bytes(signed(storage.bytes))),
        (
            "Bytes a stored call",
            storage
                .bytes_per_row
                .map_or("–".into(), |n| format!("{n:.1}")),
        ),
    ];
    out.push_str("<section>\n<h2>Cost of recording</h2>\n<dl>\n");
    for (name, value) in facts {
        let _ = writeln!(out, "<dt>{}</dt><dd>{}</dd>", esc(name), esc(&value));
    }
    out.push_str("</dl>\n</section>\n");
}

fn next(out: &mut String, report: &Report) {
    out.push_str("<section>\n<h2>Next</h2>\n");
    for next in &report.next {
        let _ = writeln!(
            out,
            "<p class=\"dim\">{}</p>\n<pre>{}</pre>",
            esc(&next.purpose),
            esc(&next.command)
        );
    }
    out.push_str("</section>\n");
}
