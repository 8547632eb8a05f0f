//! Numbers as people read and write them.

use std::time::Duration;

/// `n` with a comma after each three digits.
pub fn count(n: i64) -> String {
    let digits = n.unsigned_abs().to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3 + 1);
    if n < 0 {
        out.push('-');
    }
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Bytes: `0 B`, `4.00 KiB`, `1.50 GiB`.
pub fn bytes(n: i64) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    scaled(n as f64, 1024.0, &UNITS)
}

/// A duration: `870 ns`, `12.3 µs`, `1.50 s`, `2 min 5 s`, `3 h 12 min`.
pub fn duration(ns: i64) -> String {
    const UNITS: [&str; 4] = ["ns", "µs", "ms", "s"];
    let seconds = (ns as f64 / 1e9).round() as i64;
    if seconds >= 3600 {
        format!("{} h {} min", count(seconds / 3600), seconds % 3600 / 60)
    } else if seconds >= 120 {
        format!("{} min {} s", seconds / 60, seconds % 60)
    } else {
        scaled(ns as f64, 1000.0, &UNITS)
    }
}

/// Three digits and the unit that fits; the last unit takes what is larger.
fn scaled(mut value: f64, step: f64, units: &[&str]) -> String {
    let mut unit = 0;
    // Rounding to three digits must not give a full step.
    while value.abs() >= step - 0.5 && unit + 1 < units.len() {
        value /= step;
        unit += 1;
    }
    let digits = match value.abs() {
        _ if unit == 0 => 0,
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {}", units.get(unit).unwrap_or(&""))
}

/// A share, 0 to 1, as a percentage: `0 %`, `0.4 %`, `37 %`.
pub fn percent(share: f64) -> String {
    let p = share * 100.0;
    if p == 0.0 {
        "0 %".into()
    } else if p < 0.1 {
        "<0.1 %".into()
    } else if p < 9.95 {
        format!("{p:.1} %")
    } else {
        format!("{p:.0} %")
    }
}

/// `part` as a share of `whole`; `None` when there is no whole.
pub fn share(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

/// Nanoseconds since 1970 as `2025-03-01 12:00:00 UTC`.
pub fn wall_time(ns: i64) -> String {
    chrono::DateTime::from_timestamp_nanos(ns)
        .format("%Y-%m-%d %H:%M:%S UTC")
        .to_string()
}

/// `2025-03-01T12:00:00Z` as people read it.
pub fn wall_time_of(iso: &str) -> String {
    iso.replace('T', " ").replace('Z', " UTC")
}

/// A time that a user wrote, with its unit: `250us`, `1.5s`, `15m`, `1h 30m`. The error is what to
/// tell the user.
///
/// # Errors
/// When it is none.
pub fn parse_time(text: &str) -> Result<Duration, String> {
    // The Greek mu, and a fraction without the zero before it.
    let text = text.trim().replace('\u{3bc}', "\u{b5}");
    let zero = if text.starts_with('.') { "0" } else { "" };
    humantime::parse_duration(&format!("{zero}{text}"))
        .map_err(|_| "not a time, such as 250us, 10ms, 1.5s, 15m or 2h".to_string())
}

/// A number of bytes that a user wrote: `4096`, `64K`, `500MiB`, `1.5G`. K, M, G and T are powers
/// of 1024, with `iB` or without. The error is what to tell the user.
///
/// # Errors
/// When it is none.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    parse_size::Config::new()
        .with_binary()
        .parse_size(text)
        .map_err(|_| "not a number of bytes, such as 256, 64K, 500MiB or 2GiB".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1000), "1,000");
        assert_eq!(count(-1234567), "-1,234,567");
    }

    #[test]
    fn sizes() {
        assert_eq!(bytes(0), "0 B");
        assert_eq!(bytes(1023), "1023 B");
        assert_eq!(bytes(4096), "4.00 KiB");
        assert_eq!(bytes(10 << 20), "10.0 MiB");
        assert_eq!(bytes((1 << 20) - 1), "1.00 MiB");
        assert_eq!(bytes(i64::MAX), "8.00 EiB");
    }

    #[test]
    fn durations() {
        assert_eq!(duration(0), "0 ns");
        assert_eq!(duration(999), "999 ns");
        assert_eq!(duration(1000), "1.00 µs");
        assert_eq!(duration(999_999), "1.00 ms");
        assert_eq!(duration(12_345_678), "12.3 ms");
        assert_eq!(duration(4_000_000_000), "4.00 s");
        assert_eq!(duration(125_000_000_000), "2 min 5 s");
        assert_eq!(duration(11_520_000_000_000), "3 h 12 min");
    }

    #[test]
    fn written_times() {
        for (text, ns) in [
            ("0", 0),
            ("1ns", 1),
            ("250us", 250_000),
            ("250\u{b5}s", 250_000),
            ("250\u{3bc}s", 250_000),
            (".5ms", 500_000),
            ("10 ms", 10_000_000),
            ("1.5s", 1_500_000_000),
            ("15m", 900_000_000_000),
            ("1.5h", 5_400_000_000_000),
            ("1h30m", 5_400_000_000_000),
        ] {
            assert_eq!(parse_time(text).unwrap().as_nanos(), ns, "{text}");
        }
        for text in [
            "", "10", "s", "ms", "-1", "-1ms", "1e3s", "0.1ns", "9e99", "9e99s", "NaN", "inf",
            "NaNs",
        ] {
            assert!(parse_time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn written_sizes() {
        for (text, bytes) in [
            ("256", 256),
            ("64K", 64 << 10),
            ("64k", 64 << 10),
            ("1M", 1 << 20),
            ("500MiB", 500 << 20),
            ("1.5G", 3 << 29),
            ("2 GiB", 2 << 30),
            ("1TiB", 1 << 40),
        ] {
            assert_eq!(parse_bytes(text), Ok(bytes), "{text}");
        }
        for text in ["", "K", "-1", "-1K", "NaNG", "1e300G", "99999999999G", "5s"] {
            assert!(parse_bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn shares() {
        assert_eq!(percent(0.0), "0 %");
        assert_eq!(percent(0.0001), "<0.1 %");
        assert_eq!(percent(0.0123), "1.2 %");
        assert_eq!(percent(0.37), "37 %");
        assert_eq!(share(1.0, 0.0), None);
    }

    #[test]
    fn times_of_day() {
        assert_eq!(wall_time(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(
            wall_time(1_740_830_400_000_000_000),
            "2025-03-01 12:00:00 UTC"
        );
        assert_eq!(
            wall_time(951_827_696_000_000_000),
            "2000-02-29 12:34:56 UTC"
        );
        assert_eq!(wall_time(-1), "1969-12-31 23:59:59 UTC");
    }
}
