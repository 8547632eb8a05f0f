//! The times of `--from` and `--until`.

use std::time::Duration;

use chrono::{DateTime, NaiveDateTime};
use fathom_model::meta::Clock;
use fathom_model::units;

use crate::error::{ExportError, Result};

/// A time as column `ts_ns` has it, CLOCK_MONOTONIC nanoseconds.
///
/// # Errors
/// [`ExportError::Time`] for what is none of: a time since the recording began
/// ([`units::parse_time`]), in seconds where it has no unit; an RFC 3339 time, UTC where it names no
/// zone; `@` and nanoseconds.
pub fn parse(text: &str, clock: &Clock) -> Result<i64> {
    let wrong = || ExportError::Time(text.to_string());
    let trimmed = text.trim();
    if let Some(ns) = trimmed.strip_prefix('@') {
        return ns.parse().map_err(|_| wrong());
    }
    let seconds = trimmed.parse().ok().map(Duration::try_from_secs_f64);
    if let Some(since) = match seconds {
        Some(seconds) => seconds.ok(),
        None => units::parse_time(trimmed).ok(),
    } {
        let ns = i64::try_from(since.as_nanos()).map_err(|_| wrong())?;
        return Ok(clock.start_monotonic_ns.saturating_add(ns));
    }
    let naive = |format| NaiveDateTime::parse_from_str(trimmed, format).map(|t| t.and_utc());
    let time = DateTime::parse_from_rfc3339(trimmed)
        .map(|t| t.to_utc())
        .or_else(|_| naive("%Y-%m-%dT%H:%M:%S%.f"))
        .or_else(|_| naive("%Y-%m-%d %H:%M:%S%.f"))
        .map_err(|_| wrong())?;
    let ns = time.timestamp_nanos_opt().ok_or_else(wrong)?;
    Ok(ns
        .saturating_sub(clock.start_realtime_ns)
        .saturating_add(clock.start_monotonic_ns))
}

/// The time of day, UTC, with nanoseconds: `2026-01-31T12:00:05.250000000Z`.
pub(crate) fn of_day(realtime_ns: i64) -> String {
    DateTime::from_timestamp_nanos(realtime_ns)
        .format("%Y-%m-%dT%H:%M:%S%.9fZ")
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock() -> Clock {
        Clock {
            start_monotonic_ns: 5_000_000_000,
            start_realtime_ns: 1_700_000_000_000_000_000,
            ..Clock::default()
        }
    }

    #[test]
    fn all_forms() {
        for (text, ns) in [
            ("0s", 5_000_000_000),
            ("1.5s", 6_500_000_000),
            ("2", 7_000_000_000),
            ("0.25", 5_250_000_000),
            ("0", 5_000_000_000),
            ("250ms", 5_250_000_000),
            ("10 us", 5_000_010_000),
            ("2m", 125_000_000_000),
            ("7ns", 5_000_000_007),
            ("@42", 42),
            ("2023-11-14T22:13:20.5Z", 5_500_000_000),
            ("2023-11-14T23:13:21+01:00", 6_000_000_000),
            ("2023-11-14 22:13:22", 7_000_000_000),
        ] {
            assert_eq!(parse(text, &clock()).unwrap(), ns, "{text}");
        }
        for text in [
            "",
            "s",
            "-1s",
            "-1",
            "@x",
            "NaN",
            "NaNs",
            "inf",
            "infs",
            "1e300",
            "yesterday",
        ] {
            assert!(parse(text, &clock()).is_err(), "{text}");
        }
    }

    #[test]
    fn days() {
        assert_eq!(
            of_day(1_700_000_000_250_000_001),
            "2023-11-14T22:13:20.250000001Z"
        );
        assert!(of_day(i64::MIN).ends_with('Z'));
    }
}
