//! Tables of the report, before they become text or HTML.

/// Eighths of a character.
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Rows of each ranking.
pub(crate) const TOP: usize = 8;

/// How a column is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    Left,
    Right,
    /// Text that gives way.
    Flexible,
}

/// A table of the report.
pub(crate) struct Section {
    pub(crate) title: &'static str,
    pub(crate) note: String,
    pub(crate) columns: Vec<(&'static str, Layout)>,
    pub(crate) rows: Vec<Vec<String>>,
}

/// A sum; of numbers that cannot be, the largest that there is.
pub(crate) fn total(values: impl Iterator<Item = i64>) -> i64 {
    values.fold(0, i64::saturating_add)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_follow_their_values() {
        assert_eq!(sparkline(&[0, 1, 50, 100]), " ▁▄█");
        assert_eq!(sparkline(&[0, 0]), "  ");
        assert_eq!(sparkline(&[]), "");
    }
}
