//! Frames as text, for pipes and programs.

use std::io::{self, Write};

use fathom_model::units;

use crate::frame::Frame;
use crate::view::{Column, View};

/// A frame as a table of at most `lines` lines.
///
/// # Errors
///
/// Numbers of `to`.
pub fn text(view: &View, frame: &Frame, lines: usize, to: &mut dyn Write) -> io::Result<()> {
    let whole = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let health = &frame.health;
    writeln!(
        to,
        "{}  calls: seen {}, shown {}, lost {}",
        units::duration(whole(frame.elapsed_ns)),
        units::count(whole(health.seen)),
        units::count(whole(health.shown)),
        units::count(whole(health.lost)),
    )?;
    for stalled in frame.stalled.iter().flatten().take(lines) {
        write!(to, "in flight: {}", stalled.text)?;
        match stalled.stack[..] {
            [] => writeln!(to)?,
            _ => writeln!(to, "; in the kernel: {}", stalled.stack.join(" < "))?,
        }
    }
    let numbers = Column::ALL.iter().skip(1);
    for column in numbers.clone() {
        write!(to, "{:>10} ", view.title(*column))?;
    }
    writeln!(to, "{}", view.title(Column::Name))?;
    for line in view.lines(frame).into_iter().take(lines) {
        for column in numbers.clone() {
            let cell = view.cell(view.numbers(line), *column, frame.interval_ns);
            write!(to, "{cell:>10} ")?;
        }
        writeln!(to, "{}", view.name(line))?;
    }
    writeln!(to)
}

/// A frame as one line of JSON: all dimensions, raw numbers.
///
/// # Errors
///
/// Numbers of `to`.
pub fn json(frame: &Frame, to: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer(&mut *to, frame)?;
    writeln!(to)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Line, Numbers, Stalled};

    #[test]
    fn tables_and_json() -> Result<(), Box<dyn std::error::Error>> {
        let numbers = Numbers {
            calls: 1234,
            errors: 1,
            read_bytes: 1 << 20,
            time_ns: 2_500_000,
            busy_ns: 2_500_000,
            p50_ns: Some(2047),
            p99_ns: Some(4095),
            max_ns: 4000,
            ..Numbers::default()
        };
        let stalled = Stalled {
            text: "fsync on /data by db".into(),
            ..Stalled::default()
        };
        let mut frame = Frame {
            interval_ns: 1_000_000_000,
            stalled: Some(vec![stalled]),
            ..Frame::default()
        };
        frame.lines[0].push(Line {
            name: "/data".into(),
            id: Some(4),
            now: numbers,
            total: numbers,
        });
        let view = View {
            since_start: true,
            ..View::default()
        };
        let mut out = Vec::new();
        text(&view, &frame, 10, &mut out)?;
        let text = String::from_utf8(out)?;
        assert_eq!(text.lines().nth(1), Some("in flight: fsync on /data by db"));
        let last = text
            .lines()
            .nth(3)
            .map(|line| line.split_whitespace().collect::<Vec<_>>());
        let want = "2.50 ms 1,234 1 1.00 MiB 2.05 µs 4.09 µs 4.00 µs /data";
        assert_eq!(last.map(|words| words.join(" ")).as_deref(), Some(want));

        let mut out = Vec::new();
        json(&frame, &mut out)?;
        let value: serde_json::Value = serde_json::from_slice(&out)?;
        assert_eq!(value["lines"]["files"][0]["now"]["calls"], 1234);
        assert_eq!(value["lines"]["devices"], serde_json::json!([]));
        Ok(())
    }
}
