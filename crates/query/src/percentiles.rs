//! Percentiles of durations, and the steps to which percentiles of many calls are rounded.

use std::fmt::Write;

/// Up to here, nanoseconds, a step has one duration.
const EXACT_NS: i64 = 128;
/// Above, each has as many durations in eight times the range of those below.
const RANGE_BITS: u32 = 3;

/// Median, 90th and 99th percentile of durations, as the function `duration_percentiles` of
/// the views; `create` is how the statement begins.
///
/// For many calls, percentiles are rounded to [steps](functions), so that there are few different
/// numbers to count. The database's own estimate (t-digest) takes longer, differs from run to run,
/// and invents a value in the middle if a percentile is between the durations of hits and misses:
/// in real recordings it was up to six times too large.
pub(crate) fn of_durations(create: &str, exact: bool) -> String {
    let rest = if exact {
        "duration_percentiles(ns) AS quantile_disc(ns, [0.5, 0.9, 0.99])"
    } else {
        "duration_percentiles(ns) AS histogram_percentiles(histogram(duration_step(ns)))"
    };
    format!("{create} {rest}")
}

/// The function for percentiles of many calls: `duration_step(ns)`, the lowest duration of the
/// step, at most 1/64 below; no step spans two powers of two. Computed by comparisons, which cost
/// almost nothing per row, because most rows are in one of the first ranges.
pub(crate) fn functions() -> String {
    let mut step = format!("CASE WHEN ns < {EXACT_NS} THEN greatest(ns, 0)");
    let (mut end, mut width) = (EXACT_NS, 1_i64);
    while end < 1 << 60 {
        end <<= RANGE_BITS;
        width = (end >> RANGE_BITS) >> 6;
        let _ = write!(step, " WHEN ns < {end} THEN ns & {}", -width);
    }
    width <<= RANGE_BITS;
    format!(
        "CREATE MACRO duration_step(ns) AS ({step} ELSE ns & {} END)::BIGINT;
        CREATE MACRO histogram_percentile(counts, share) AS list_reduce(
            map_entries(counts),
            lambda below, next: CASE
                WHEN below.value >= share * list_sum(map_values(counts)) THEN below
                ELSE {{'key': next.key, 'value': below.value + next.value}} END
        ).key;
        CREATE MACRO histogram_percentiles(counts) AS [
            histogram_percentile(counts, 0.5),
            histogram_percentile(counts, 0.9),
            histogram_percentile(counts, 0.99)
        ];",
        -width
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both kinds of percentiles of the numbers that `sql` makes of `i`.
    fn both(sql: &str) -> (Vec<i64>, Vec<i64>) {
        let db = crate::engine::plain();
        db.execute_batch(&functions()).unwrap();
        db.execute_batch(&of_durations("CREATE MACRO", false))
            .unwrap();
        let ask = |function: &str| -> Vec<i64> {
            let sql = format!(
                "SELECT unnest({function}) FROM (SELECT ({sql})::BIGINT AS ns FROM range(50000) t(i))"
            );
            let mut statement = db.prepare(&sql).unwrap();
            let rows = statement.query_map([], |row| row.get::<_, Option<i64>>(0));
            rows.unwrap().map(|n| n.unwrap().unwrap_or(-1)).collect()
        };
        (
            ask("quantile_disc(ns, [0.5, 0.9, 0.99])"),
            ask("duration_percentiles(ns)"),
        )
    }

    #[test]
    fn rounded_percentiles_are_at_most_a_sixty_fourth_too_low() {
        for (law, sql) in [
            ("constant", "1500"),
            ("even", "i * 7919 % 1000003"),
            (
                "two values",
                "CASE WHEN i % 2 = 0 THEN 900 ELSE 8000000 END",
            ),
            (
                "hits and misses",
                "CASE WHEN i % 10 < 9 THEN 800 + i % 400 ELSE 8000000 + i END",
            ),
            (
                "rare misses",
                "CASE WHEN i % 100 < 99 THEN 800 + i % 400 ELSE 8000000 + i END",
            ),
            (
                "a heavy tail",
                "500 * pow(1 - (i * 7919 % 50000) / 50000, -1 / 1.1)",
            ),
            ("some unknown", "CASE WHEN i % 3 > 0 THEN i END"),
            ("small", "i % 100"),
            ("large", "9223372036854775807 - i"),
        ] {
            let (exact, rounded) = both(sql);
            assert_eq!(rounded.len(), 3, "{law}");
            for (exact, rounded) in exact.iter().zip(&rounded) {
                assert!(
                    *rounded <= *exact && *rounded >= *exact - *exact / 64,
                    "{law}: {rounded} for {exact}"
                );
            }
        }
        // Unknown durations have no step; invalid ones are not an error.
        assert_eq!(both("NULL").1, [-1, -1, -1]);
        assert_eq!(both("-i - 1").1, [0, 0, 0]);
    }

    #[test]
    fn a_step_lies_between_two_powers_of_two() {
        let db = crate::engine::plain();
        db.execute_batch(&functions()).unwrap();
        let wrong: i64 = db
            .query_row(
                "SELECT count(*) FROM (
                     SELECT unnest([(1::HUGEINT << i) - 1, 1::HUGEINT << i]) AS ns
                     FROM range(63) t(i))
                 WHERE ns > 0 AND length(bin(duration_step(ns::BIGINT))) <> length(bin(ns::BIGINT))",
                [],
                |row| row.get(0),
            )
            .unwrap();
        assert_eq!(wrong, 0);
    }
}
