//! Options of `diff`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use fathom_diff::Metric;

use super::ExtensionsOption;
use crate::help;

/// Format of a comparison.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum DiffFormat {
    /// For a terminal
    Text,
    /// For programs: raw numbers
    Json,
}

/// Options of `diff`.
#[derive(Debug, Args)]
#[command(
    override_usage = "fathom diff [OPTIONS] BEFORE AFTER
       fathom diff [OPTIONS] --before SESSION... --after SESSION...",
    after_help = "Examples:
  fathom diff before.fathom after.fathom
  fathom diff --before old-*.fathom --after new-*.fathom      several per side: also tests durations
  fathom diff old.fathom new.fathom --fail-above 5 --metric calls,bytes

With one session per side, counts are compared directly if the program repeats itself; durations
are shown, but judged only if --metric selects them. With several sessions per side, all figures
are tested statistically (Welch, Holm).

Two sets of sessions are compared host by host.

Exit status: 1 if a guarded metric is worse by more than --fail-above and by more than noise,
0 if not, 2 on invalid input."
)]
pub struct DiffArgs {
    /// The session before and the session after, or two sets
    #[arg(value_name = "SESSION", num_args = 0..=2)]
    pub sessions: Vec<PathBuf>,
    /// Sessions before
    #[arg(long, value_name = "SESSION", num_args = 1..)]
    pub before: Vec<PathBuf>,
    /// Sessions after
    #[arg(long, value_name = "SESSION", num_args = 1..)]
    pub after: Vec<PathBuf>,
    /// Exit with 1 if a guarded metric is worse by more than PERCENT and by more than noise
    #[arg(long, value_name = "PERCENT", default_value_t = 10.0, value_parser = percent)]
    pub fail_above: f64,
    /// The guarded metrics.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = metric,
          help = help::metrics())]
    pub metric: Vec<Metric>,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub format: DiffFormat,
    /// Rules and views of the user.
    #[command(flatten)]
    pub extensions: ExtensionsOption,
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').trim_end();
    let parsed = number.parse::<f64>().ok();
    parsed
        .filter(|percent| percent.is_finite() && *percent >= 0.0)
        .ok_or_else(|| "not a percentage, such as 10 or 2.5".to_owned())
}

fn metric(text: &str) -> Result<Metric, String> {
    let known = Metric::GUARDS.into_iter().find(|m| m.name() == text.trim());
    known.ok_or_else(|| {
        let names = Metric::GUARDS.map(Metric::name).join(", ");
        format!("not a metric; choose from {names}")
    })
}
