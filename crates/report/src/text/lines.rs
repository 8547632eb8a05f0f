//! Pieces of lines: bars, broken text.

/// Eighths of a character.
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Zeros would hide the numbers that matter.
pub(super) fn blank_zero(n: i64, format: fn(i64) -> String) -> String {
    if n == 0 { "·".into() } else { format(n) }
}

/// `values` as bars; empty ones are blank, others visible.
pub(crate) fn sparkline(values: &[i64]) -> String {
    let max = values.iter().copied().max().unwrap_or(0).max(1);
    values
        .iter()
        .map(|v| match *v {
            v if v <= 0 => ' ',
            v => {
                let level = (v as f64 / max as f64 * 8.0).ceil() as usize;
                BLOCKS.get(level.clamp(1, 8) - 1).copied().unwrap_or('█')
            }
        })
        .collect()
}

/// Breaks `text` between words into lines of at most `width` characters, where
/// words allow it.
pub(super) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let Some(line) = lines.last_mut() else { break };
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_string());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_follow_their_values() {
        assert_eq!(sparkline(&[0, 1, 50, 100]), " ▁▄█");
        assert_eq!(sparkline(&[0, 0]), "  ");
        assert_eq!(sparkline(&[]), "");
    }

    #[test]
    fn text_is_broken_between_words() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("unbreakable", 4), ["unbreakable"]);
    }
}
