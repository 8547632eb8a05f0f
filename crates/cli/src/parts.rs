//! The parts of the calls of a recording, in a line.

use fathom_model::meta::Totals;
use fathom_model::units;

/// The parts of the calls that were seen, which add up to them: stored and lost, and others
/// that are not 0.
pub fn parts(totals: &Totals) -> String {
    let count = |n: u64| units::count(i64::try_from(n).unwrap_or(i64::MAX));
    let mut text = format!("{} stored", count(totals.stored));
    for (name, calls) in [
        ("counted", totals.counted),
        ("expired", totals.expired),
        ("missing", totals.missing),
    ] {
        if calls > 0 {
            text.push_str(&format!(", {} {name}", count(calls)));
        }
    }
    text.push_str(&format!(", {} lost", count(totals.lost)));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_the_calls_add_up() {
        let all = Totals {
            seen: 10,
            stored: 10,
            ..Totals::default()
        };
        assert_eq!(parts(&all), "10 stored, 0 lost");
        let some = Totals {
            seen: 15,
            stored: 1,
            lost: 2,
            expired: 4,
            counted: 8,
            ..Totals::default()
        };
        assert_eq!(parts(&some), "1 stored, 8 counted, 4 expired, 2 lost");
    }
}
