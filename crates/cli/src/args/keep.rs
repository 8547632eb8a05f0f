//! Options of continuous recordings, and of `snapshot` and `repair`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use fathom_model::units;
use fathom_recorder::KeepLimit;

use super::time;

/// Options of `record` for continuous recordings.
#[derive(Debug, Args)]
#[command(next_help_heading = "Always on")]
pub struct KeepOptions {
    /// Keep only the newest data: 60s, 15m, 2h, or 2GiB; for both limits: --keep 1h --keep 2GiB
    #[arg(long, value_name = "LIMIT", value_parser = keep_limit)]
    pub keep: Vec<KeepLimit>,
    /// Save a snapshot when a call matches this condition on the columns of table syscalls:
    /// "dur_ns > 50e6 AND class = 'data'"; or while a call has not returned for long:
    /// "in_flight > 1s"
    #[arg(long, value_name = "SQL", requires = "keep")]
    pub save_when: Option<String>,
    /// Maximum number of snapshots by --save-when
    #[arg(long, value_name = "N", default_value_t = 20, requires = "save_when")]
    pub max_saves: u64,
    /// Minimum time between two snapshots by --save-when
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time,
          requires = "save_when")]
    pub save_pause: Duration,
    /// Flush stored data to the device at once: a crash of the machine then loses about one second
    /// instead of about half a minute
    #[arg(long)]
    pub durable: bool,
    /// Which calls get a row of their own; the others are counted, exactly
    #[arg(long, value_enum, default_value = "all")]
    pub rows: RowsArg,
    /// With --rows tail: calls are slow that take at least TIME: 250us, 10ms [default: longer
    /// than about 127 of 128 calls of their name and process on their file]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub slower_than: Option<Duration>,
    /// With --rows tail: 1 in N of the calls that are neither slow nor failed gets a row, 0: none
    /// [default: 1000]
    #[arg(long, value_name = "N")]
    pub sample: Option<u32>,
    /// Limit of the recording's cost, probes included, as a share of the time of all CPUs: 3%. At a
    /// higher cost fewer calls get a row; session.json has the times
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub budget: Option<f64>,
    /// With --detail counters: also count per file
    #[arg(long)]
    pub count_files: bool,
}

/// Which calls get a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RowsArg {
    /// All of them
    All,
    /// Calls that fail, are slow, wait, or have events in a layer below, and a sample of the others
    Tail,
}

/// Options of `snapshot`.
#[derive(Debug, Args)]
pub struct SnapshotArgs {
    /// Directory of the session in progress, or process ID of its recorder
    pub session: PathBuf,
    /// Directory of the copy [default: NAME-DATE-TIME.fathom next to the session]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
}

/// Options of `repair`.
#[derive(Debug, Args)]
#[command(
    after_help = "Rows are never deleted unless the session contains them elsewhere; unusable \
files are moved to the session's folder set-aside.
Exit status: 0 if the session is intact or was repaired; with --dry-run, 1 if it needs repair."
)]
pub struct RepairArgs {
    /// Directory of the session
    pub session: PathBuf,
    /// Print what would be done, and change nothing
    #[arg(short = 'n', long)]
    pub dry_run: bool,
}

/// A share, 0 to 1, of a number of percent.
fn percent(text: &str) -> Result<f64, String> {
    match text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>() {
        Ok(percent) if percent > 0.0 && percent <= 100.0 => Ok(percent / 100.0),
        _ => Err("not a number of percent above 0 and up to 100".to_string()),
    }
}

/// A size or a time, by its unit: M is MiB, m is minutes.
fn keep_limit(text: &str) -> Result<KeepLimit, String> {
    match text.chars().last() {
        Some('B' | 'K' | 'M' | 'G' | 'T') => match units::parse_bytes(text)? {
            bytes if (1 << 20..1 << 60).contains(&bytes) => Ok(KeepLimit::Bytes(bytes)),
            _ => Err("the minimum size is 1MiB".to_string()),
        },
        Some(unit) if unit.is_alphabetic() => match time(text)? {
            time if time < Duration::from_secs(1) => Err("the minimum time is 1s".to_string()),
            time if time.as_secs() < 1 << 32 => Ok(KeepLimit::Time(time)),
            _ => Err("the maximum time is 136 years".to_string()),
        },
        _ => Err("not a time (60s, 15m, 2h) or size (500MiB, 2GiB)".to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_are_percent() {
        assert_eq!(percent("3%"), Ok(0.03));
        assert_eq!(percent("0.5"), Ok(0.005));
        for text in ["", "0", "-1%", "101%", "NaN", "3%%", "x"] {
            assert!(percent(text).is_err(), "{text}");
        }
    }

    #[test]
    fn limits_have_units() {
        for (text, limit) in [
            ("60s", KeepLimit::Time(Duration::from_secs(60))),
            ("1500ms", KeepLimit::Time(Duration::from_millis(1500))),
            ("15m", KeepLimit::Time(Duration::from_secs(900))),
            ("1.5h", KeepLimit::Time(Duration::from_secs(5400))),
            ("2GiB", KeepLimit::Bytes(2 << 30)),
            ("500M", KeepLimit::Bytes(500 << 20)),
        ] {
            assert_eq!(keep_limit(text), Ok(limit), "{text}");
        }
        for text in [
            "", "60", "s", "-1s", "0s", "1ms", "1KiB", "m", "1e300h", "NaNs", "NaNG",
        ] {
            assert!(keep_limit(text).is_err(), "{text}");
        }
    }
}
