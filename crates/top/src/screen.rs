//! Frames on a terminal.

use std::io;
use std::time::{Duration, Instant};

use fathom_model::escape::{shorten, wrap};
use fathom_model::units;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style, Stylize};
use ratatui::text::{Line as Text, Span};
use ratatui::widgets::{Block, Clear, Paragraph, RenderDirection, Row, Sparkline, Table, Widget};

use crate::frame::{Dimension, Frame};
use crate::keys::{Action, KEYS};
use crate::name::shorten_name;
use crate::view::{Column, View};

/// Lines above the table.
const HEAD: u16 = 5;

/// A terminal that is drawn on until this is dropped.
pub struct Screen {
    terminal: ratatui::DefaultTerminal,
    target: String,
}

impl Drop for Screen {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

impl Screen {
    /// Takes the terminal; `target` says what is recorded.
    ///
    /// # Errors
    ///
    /// When the terminal cannot be drawn on.
    pub fn open(target: &str) -> io::Result<Self> {
        Ok(Self {
            terminal: ratatui::try_init()?,
            target: target.to_string(),
        })
    }

    /// Draws `frame`, or the one that is frozen.
    ///
    /// # Errors
    ///
    /// When the terminal is gone.
    pub fn draw(&mut self, view: &View, frame: &Frame) -> io::Result<()> {
        let target = &self.target;
        self.terminal.draw(|to| {
            let area = to.area();
            render(view, frame, target, area, to.buffer_mut());
        })?;
        Ok(())
    }

    /// Takes keys until `deadline`, drawing what they change.
    ///
    /// # Errors
    ///
    /// When the terminal is gone.
    pub fn keys_until(
        &mut self,
        deadline: Instant,
        view: &mut View,
        frame: &Frame,
    ) -> io::Result<Action> {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left == Duration::ZERO || !event::poll(left)? {
                return Ok(Action::None);
            }
            match event::read()? {
                Event::Key(key) if key.kind != KeyEventKind::Release => {
                    let action = view.key(key, frame);
                    if action != Action::None {
                        return Ok(action);
                    }
                    self.draw(view, frame)?;
                }
                Event::Resize(..) => self.draw(view, frame)?,
                _ => {}
            }
        }
    }
}

/// Draws a frame into a part of a screen.
pub fn render(view: &View, latest: &Frame, target: &str, area: Rect, to: &mut Buffer) {
    let frame = view.frozen.as_deref().unwrap_or(latest);
    let [head, table, foot] = Layout::vertical([
        Constraint::Length(HEAD),
        Constraint::Min(1),
        Constraint::Length(1),
    ])
    .areas(area);
    render_head(view, frame, target, head, to);
    let lines = render_table(view, frame, table, to);
    let last = view.first + usize::from(table.height.saturating_sub(1));
    render_foot(view, frame, lines, last.min(lines), foot, to);
    if view.help {
        render_help(area, to);
    }
}

fn render_head(view: &View, frame: &Frame, target: &str, area: Rect, to: &mut Buffer) {
    let [first, second, trends, queues, tabs] =
        Layout::vertical([Constraint::Length(1); HEAD as usize]).areas(area);
    let whole = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let health = &frame.health;
    let state = if view.frozen.is_some() {
        Span::from(" FROZEN ").reversed().bold()
    } else {
        Span::from("")
    };
    let lost = format!("lost {}", units::count(whole(health.lost)));
    let counts = format!(
        "  {}  calls: seen {}, shown {}, ",
        units::duration(whole(frame.elapsed_ns)),
        units::count(whole(health.seen)),
        units::count(whole(health.shown)),
    );
    // The name of the target gives way, not the count of lost calls.
    const NAME: &str = "fathom top";
    let others = [NAME, &counts, &lost, "  ", &state.content];
    let used: usize = others.iter().map(|text| text.chars().count()).sum();
    let room = usize::from(area.width).saturating_sub(used + 2);
    let lost = if health.lost > 0 {
        Span::from(lost).red().bold()
    } else {
        Span::from(lost)
    };
    Text::from_iter([
        Span::from(NAME).bold(),
        Span::from(format!("  {}{counts}", shorten(target, room))),
        lost,
        Span::from("  "),
        state,
    ])
    .render(first, to);

    let numbers = if view.since_start {
        &frame.total
    } else {
        &frame.now
    };
    let cell = |column| {
        let text = view.cell(numbers, column, frame.interval_ns);
        if text.is_empty() { "0".into() } else { text }
    };
    let per = if view.since_start { "" } else { "/s" };
    let mut parts = vec![
        format!("{}{per} calls", cell(Column::Calls)),
        format!("{}{per} errors", cell(Column::Errors)),
        format!("{}{per} read", cell(Column::Read)),
        format!("{}{per} written", cell(Column::Written)),
        format!("{} in calls", cell(Column::Time)),
        format!("p99 {}", cell(Column::P99)),
        format!("max {}", cell(Column::Max)),
    ];
    fit(&mut parts, "  ", usize::from(second.width));
    Text::from(parts.join("  ")).render(second, to);

    let [left, right] = Layout::horizontal([Constraint::Fill(1); 2])
        .spacing(2)
        .areas(trends);
    let magnitude = |ns: &u64| u64::from(ns.checked_ilog2().unwrap_or(0));
    render_trend("p99", frame.p99_history.iter().map(magnitude), left, to);
    render_trend("calls", frame.history.iter().copied(), right, to);
    match frame.stalled.as_deref() {
        Some([longest, others @ ..]) => render_stalled(&longest.text, others.len(), queues, to),
        _ => render_holdups(frame, queues, to),
    }

    let mut spans = Vec::new();
    for (i, dimension) in Dimension::ALL.into_iter().enumerate() {
        let text = format!(" {} {} ", i + 1, dimension.name());
        spans.push(if dimension == view.dimension {
            Span::from(text).reversed()
        } else {
            Span::from(text)
        });
    }
    let period = if view.since_start {
        "   since the start".to_string()
    } else {
        let ns = i64::try_from(frame.interval_ns).unwrap_or(i64::MAX);
        format!("   last {}", units::duration(ns))
    };
    spans.push(Span::from(period).dim());
    Text::from(spans).render(tabs, to);
}

/// Numbers of the latest intervals, the last one at the right end.
fn render_trend(
    title: &str,
    numbers: impl DoubleEndedIterator<Item = u64>,
    area: Rect,
    to: &mut Buffer,
) {
    let [name, trend] = Layout::horizontal([
        Constraint::Length(title.len() as u16 + 1),
        Constraint::Min(0),
    ])
    .areas(area);
    Text::from(title).dim().render(name, to);
    Sparkline::default()
        .data(numbers.rev().take(usize::from(trend.width)))
        .direction(RenderDirection::RightToLeft)
        .cyan()
        .render(trend, to);
}

/// Calls that do not return: what to look at before anything else.
fn render_stalled(longest: &str, others: usize, area: Rect, to: &mut Buffer) {
    let more = match others {
        0 => String::new(),
        _ => format!("  (and {others} more)"),
    };
    let room = usize::from(area.width).saturating_sub(more.len());
    let text = shorten(longest, room) + &more;
    Text::from(text).red().bold().render(area, to);
}

/// Below this share of the time no program is said to hold another one up.
const HELD_UP: f64 = 0.01;

fn render_holdups(frame: &Frame, area: Rect, to: &mut Buffer) {
    let held = frame.holdups.iter().filter(|held| held.share >= HELD_UP);
    let mut parts: Vec<String> = held
        .map(|held| {
            format!(
                "{} waits for {} behind {} {}",
                held.waiting,
                held.device,
                held.behind,
                units::percent(held.share)
            )
        })
        .collect();
    if parts.is_empty() {
        let text = "no program waits for a device behind another one";
        return Text::from(text).dim().render(area, to);
    }
    fit(&mut parts, "   ", usize::from(area.width));
    Text::from(parts.join("   ")).yellow().render(area, to);
}

/// Drops parts from the end until the rest fits into `width` columns.
fn fit(parts: &mut Vec<String>, between: &str, width: usize) {
    let wide = |parts: &[String]| {
        let texts: usize = parts.iter().map(|part| part.chars().count()).sum();
        texts + between.len() * parts.len().saturating_sub(1)
    };
    while parts.len() > 1 && wide(parts) > width {
        parts.pop();
    }
}

/// Screens that are narrower leave columns out.
const WIDE: u16 = 110;
/// The least that the name has.
const NAME_WIDTH: u16 = 30;

/// Draws the lines that fit and returns how many there are in all.
fn render_table(view: &View, frame: &Frame, area: Rect, to: &mut Buffer) -> usize {
    let lines = view.lines(frame);
    // Columns do not jump while numbers change: all have the width of the
    // longest that is usual.
    let number_width: u16 = if area.width < WIDE { 9 } else { 10 };
    let columns = Column::fitting(area.width, number_width + 1, NAME_WIDTH, view.sort);
    let numbers = columns.len() - 1;
    let mut cells: Vec<Vec<String>> = Vec::new();
    for line in lines
        .iter()
        .skip(view.first)
        .take(usize::from(area.height.saturating_sub(1)))
    {
        let of = view.numbers(line);
        let numbers = columns.iter().skip(1);
        let numbers = numbers.map(|column| view.cell(of, *column, frame.interval_ns));
        cells.push(std::iter::once(view.name(line)).chain(numbers).collect());
    }
    let used = (number_width + 1) * numbers as u16;
    let room = usize::from(area.width.saturating_sub(used));
    let head = columns.iter().map(|column| {
        let mark = match (*column == view.sort, view.reversed) {
            (false, _) => "",
            (true, false) => "▼",
            (true, true) => "▲",
        };
        let mut text = format!("{}{mark}", view.title(*column));
        if text.chars().count() > usize::from(number_width) && *column != Column::Name {
            text = text.replace("/s", "");
        }
        let style = if *column == view.sort {
            Style::new().add_modifier(Modifier::BOLD)
        } else {
            Style::new().add_modifier(Modifier::DIM)
        };
        let text = match column {
            Column::Name => Text::from(text),
            _ => Text::from(text).right_aligned(),
        };
        text.style(style)
    });
    let rows = cells.into_iter().map(|row| {
        Row::new(
            row.into_iter()
                .enumerate()
                .map(|(i, text)| match columns.get(i) {
                    Some(Column::Name) => Text::from(shorten_name(&text, room)),
                    Some(Column::Errors) => Text::from(text).right_aligned().red(),
                    _ => Text::from(text).right_aligned(),
                }),
        )
    });
    let widths = columns.iter().map(|column| match column {
        Column::Name => Constraint::Min(0),
        _ => Constraint::Length(number_width),
    });
    let table = Table::new(rows, widths)
        .header(Row::new(head))
        .column_spacing(1);
    Widget::render(table, area, to);
    if lines.is_empty() && area.height > 2 {
        let text = match (view.dimension, view.filter.is_empty()) {
            (_, false) => "no name has this in it; Esc shows all",
            (Dimension::Devices, _) => "no requests to devices",
            (Dimension::Layers, _) if frame.health.shown > 0 => {
                "no layers are recorded: see --layers"
            }
            _ => "no calls",
        };
        let place = Rect {
            y: area.y + 2,
            height: 1,
            ..area
        };
        Paragraph::new(text).dim().centered().render(place, to);
    }
    lines.len()
}

fn render_foot(view: &View, frame: &Frame, lines: usize, last: usize, area: Rect, to: &mut Buffer) {
    let forgotten = frame
        .forgotten
        .get(view.dimension.index())
        .copied()
        .unwrap_or_default();
    let text = if !view.notice.is_empty() && !view.typing {
        Text::from(view.notice.as_str()).yellow()
    } else if view.typing {
        Text::from(format!("/{}█  Enter: keep, Esc: all", view.filter))
    } else {
        let mut text = format!("{} to {last} of {lines}", lines.min(view.first + 1));
        if !view.filter.is_empty() {
            text.push_str(&format!(" with \"{}\"", view.filter));
        }
        if forgotten > 0 {
            text.push_str(&format!("; {forgotten} idle ones are no longer listed"));
        }
        const HINTS: [&str; 7] = [
            "?: keys",
            "q: quit",
            "/: filter",
            "s: sort",
            "c: since the start",
            "Space: freeze",
            "w: record this",
        ];
        let mut hints: Vec<String> = HINTS.map(String::from).to_vec();
        let room = usize::from(area.width).saturating_sub(text.chars().count() + 3);
        fit(&mut hints, "  ", room);
        Text::from(vec![
            Span::from(text),
            Span::from(format!("   {}", hints.join("  "))).dim(),
        ])
    };
    text.render(area, to);
}

fn render_help(area: Rect, to: &mut Buffer) {
    const WIDEST: u16 = 94;
    let width = WIDEST.min(area.width);
    let keys_width = KEYS.iter().map(|(keys, _)| keys.len()).max().unwrap_or(0);
    // Borders, and blanks before and behind the keys.
    let room = usize::from(width).saturating_sub(keys_width + 6);
    let mut lines: Vec<Text> = Vec::new();
    for (keys, what) in KEYS {
        let mut keys = keys;
        for part in wrap(what, room) {
            lines.push(Text::from(vec![
                Span::from(format!("  {keys:<keys_width$}  ")).bold(),
                Span::from(part),
            ]));
            keys = "";
        }
    }
    lines.push(Text::default());
    lines.push(Text::from("any key closes this").dim());
    let height = (lines.len() as u16 + 2).min(area.height);
    let place = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 2,
        width,
        height,
    };
    Clear.render(place, to);
    Paragraph::new(lines)
        .block(Block::bordered().title(" Keys "))
        .render(place, to);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Line, Numbers, Stalled};
    use crate::queues::Holdup;

    fn drawn(view: &View, frame: &Frame, width: u16, height: u16) -> String {
        let area = Rect::new(0, 0, width, height);
        let mut buffer = Buffer::empty(area);
        render(view, frame, "all", area, &mut buffer);
        let mut text = String::new();
        for y in 0..height {
            for x in 0..width {
                text.push_str(buffer[(x, y)].symbol());
            }
            text.push('\n');
        }
        text
    }

    fn frame() -> Frame {
        let mut frame = Frame {
            interval_ns: 1_000_000_000,
            ..Frame::default()
        };
        frame.health.lost = 12;
        frame.lines[0] = (0..50)
            .map(|i| Line {
                name: format!("/var/lib/data-{i:02}"),
                id: Some(i),
                now: Numbers {
                    calls: 100 - i as u64,
                    busy_ns: 1_000_000 * (100 - i as u64),
                    ..Numbers::default()
                },
                total: Numbers::default(),
            })
            .collect();
        frame
    }

    #[test]
    fn what_is_sorted_first_is_at_the_top() {
        let text = drawn(&View::default(), &frame(), 120, 20);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].contains("lost 12"), "{text}");
        let [head, first] = [5, 6].map(|at| lines[at]);
        assert!(
            head.starts_with("FILE ") && head.contains(" BUSY▼"),
            "{text}"
        );
        assert!(first.starts_with("/var/lib/data-00 ") && first.contains("10 %"));
        assert!(lines[18].starts_with("/var/lib/data-12 "), "{text}");
        let down = View {
            first: 45,
            ..View::default()
        };
        let text = drawn(&down, &frame(), 120, 20);
        assert!(
            text.contains("data-49") && !text.contains("data-44"),
            "{text}"
        );
    }

    #[test]
    fn a_usual_terminal_shows_names() {
        let mut frame = frame();
        frame.lines[0][0].name =
            "/var/lib/postgresql/16/main/base/16384/pg_internal.init.2619".into();
        let text = drawn(&View::default(), &frame, 80, 24);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].contains("fathom top  all") && lines[0].contains("lost 12"));
        assert!(lines[1].contains(" in calls"), "{text}");
        assert!(
            lines[5].starts_with("FILE ") && lines[5].contains("BUSY▼"),
            "{text}"
        );
        // Directories give way.
        assert!(lines[6].starts_with("/var"), "{text}");
        assert!(lines[6].contains("…"), "{text}");
        assert!(lines[6].contains("/pg_internal.init.2619 "), "{text}");
        assert!(lines[7].starts_with("/var/lib/data-01 "), "{text}");
        for left_out in ["P50", "ERRORS/s", "CALLS/s"] {
            assert!(!lines[5].contains(left_out), "{text}");
        }
        let foot = lines[23].trim_end();
        assert!(foot.contains("q: quit") && !foot.ends_with("fre"), "{text}");
        // The column that sorts stays.
        let by_errors = View {
            sort: Column::Errors,
            ..View::default()
        };
        let text = drawn(&by_errors, &frame, 80, 24);
        assert!(
            text.contains("ERRORS/s▼") && text.contains("data-01"),
            "{text}"
        );
        assert!(!text.contains("MAX"), "{text}");
    }

    /// The layout at the sizes that terminals have.
    #[test]
    fn every_size_shows_who_waits_and_how_long_calls_took() {
        let mut frame = frame();
        let holdup = |waiting: &str, share| Holdup {
            device: "vda".into(),
            waiting: waiting.into(),
            behind: "fio".into(),
            share,
        };
        frame.holdups = vec![
            holdup("postgres", 0.86),
            holdup("redis-server", 0.12),
            holdup("rsync", 0.11),
            holdup("cron", 0.001),
        ];
        frame.history = vec![10, 20, 40];
        frame.p99_history = vec![0, 1 << 10, 1 << 20];
        for (width, height, waiting) in [(80, 24, 1), (120, 40, 2), (200, 60, 3)] {
            let text = drawn(&View::default(), &frame, width, height);
            let lines: Vec<&str> = text.lines().collect();
            // The longest latency and rate are the latest, at the right ends of the halves.
            let trends: Vec<char> = lines[2].chars().collect();
            assert!(
                lines[2].starts_with("p99 ") && lines[2].contains("calls "),
                "{text}"
            );
            let half = usize::from(width / 2) - 2;
            assert_eq!((trends[half], trends[half - 1]), ('█', '▄'), "{text}");
            assert_eq!(trends[usize::from(width) - 1], '█', "{text}");
            assert!(
                lines[3].starts_with("postgres waits for vda behind fio 86 %"),
                "{text}"
            );
            assert_eq!(lines[3].matches(" waits for ").count(), waiting, "{text}");
            // Names begin the lines, and the table fills the screen.
            let names = lines
                .iter()
                .filter(|line| line.starts_with("/var/lib/data-"));
            assert_eq!(names.count(), usize::from(height - 7).min(50), "{text}");
        }
        frame.holdups.clear();
        let text = drawn(&View::default(), &frame, 80, 24);
        assert!(text.contains("no program waits for a device"), "{text}");
    }

    #[test]
    fn a_call_that_hangs_is_seen_first() {
        let stalled = |seconds: u64| Stalled {
            text: format!(
                "fdatasync on /var/lib/postgresql/16/main/pg_wal/000000010000000000000001 by \
                 postgres (process 1234, thread 1234) has not returned for {seconds}.00 s"
            ),
            ..Stalled::default()
        };
        let frame = Frame {
            stalled: Some(vec![stalled(31), stalled(2)]),
            ..frame()
        };
        for (width, height) in [(80, 24), (200, 60)] {
            let text = drawn(&View::default(), &frame, width, height);
            let line = text.lines().nth(3).unwrap();
            assert!(line.starts_with("fdatasync on /var/lib"), "{text}");
            assert!(
                line.contains("returned for 31.00 s  (and 1 more)"),
                "{text}"
            );
        }
    }

    #[test]
    fn all_columns_where_there_is_room() {
        let all = |width| Column::fitting(width, 11, NAME_WIDTH, Column::Time);
        assert_eq!(all(118), Column::ALL);
        assert!(!all(117).contains(&Column::P50) && all(117).contains(&Column::Errors));
        assert_eq!(all(1), [Column::Name, Column::Time]);
    }

    #[test]
    fn help_is_whole_on_a_usual_terminal() {
        let help = View {
            help: true,
            ..View::default()
        };
        let text = drawn(&help, &frame(), 80, 24);
        let words: Vec<&str> = text
            .split(|c: char| c.is_whitespace() || c == '│')
            .collect();
        for (keys, what) in KEYS {
            for word in keys.split(' ').chain(what.split(' ')) {
                assert!(words.contains(&word), "{word} is missing: {text}");
            }
        }
        assert!(text.contains("any key closes this"), "{text}");
    }

    #[test]
    fn small_screens_do_no_harm() {
        for (width, height) in [(1, 1), (10, 2), (20, 5), (300, 6)] {
            let help = View {
                help: true,
                ..View::default()
            };
            drawn(&help, &frame(), width, height);
            drawn(&View::default(), &frame(), width, height);
        }
    }
}
