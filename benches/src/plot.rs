//! The speed that each tracer leaves, as bars.

use std::fmt::Write;

/// Characters of a bar for the untraced speed; faster ones are cut off above it.
const WIDTH: f64 = 40.0;
/// Eighths of a character.
const PARTS: [char; 8] = ['\0', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/// One bar per tracer: its name, and its speed as a share of the untraced one, if it was measured.
pub fn bars<'a>(shares: impl Iterator<Item = (&'a str, Option<f64>)>) -> String {
    let known: Vec<(&str, f64)> = shares.filter_map(|(name, s)| Some((name, s?))).collect();
    let width = known.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for (name, share) in known {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {name:width$} {share:>6.3} {}", bar(share));
    }
    text
}

fn bar(share: f64) -> String {
    let eighths = (share.clamp(0.0, 1.0) * WIDTH * 8.0).round() as usize;
    let mut bar = "█".repeat(eighths / 8);
    bar.extend(PARTS.get(eighths % 8).filter(|part| **part != '\0'));
    if share > 1.0 {
        bar.push('+');
    }
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_the_speed() {
        let shares = [
            ("floor", Some(1.0)),
            ("fathom full", Some(0.5)),
            ("strace", None),
            ("perf trace", Some(0.0125)),
            ("luck", Some(1.2)),
        ];
        let text = bars(shares.into_iter());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert_eq!(lines[0], format!("  floor        1.000 {}", "█".repeat(40)));
        assert_eq!(lines[1], format!("  fathom full  0.500 {}", "█".repeat(20)));
        assert_eq!(lines[2], "  perf trace   0.013 ▌");
        assert!(lines[3].ends_with("█+"), "{text}");
    }
}
