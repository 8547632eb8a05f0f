//! Options of `diff`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use fathom_diff::Metric;

use crate::help;

/// Form of a comparison.
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
  fathom diff --before old-*.fathom --after new-*.fathom      several a side: also tells times apart
  fathom diff old.fathom new.fathom --fail-above 5 --metric calls,bytes

With one session a side counts are compared as they are if the program repeats itself; times are
shown, and claimed to differ only where --metric asks for them. Several sessions a side are tested
(Welch, Holm).

Exit status: 1 when something that guards is worse by more than --fail-above and by more than
noise, 0 when not, 2 on bad input."
)]
pub struct DiffArgs {
    /// Session before, session after
    #[arg(value_name = "SESSION", num_args = 0..=2)]
    pub sessions: Vec<PathBuf>,
    /// Sessions before
    #[arg(long, value_name = "SESSION", num_args = 1..)]
    pub before: Vec<PathBuf>,
    /// Sessions after
    #[arg(long, value_name = "SESSION", num_args = 1..)]
    pub after: Vec<PathBuf>,
    /// Exit with 1 when something is worse by more than PERCENT, and by more than noise
    #[arg(long, value_name = "PERCENT", default_value_t = 10.0, value_parser = percent)]
    pub fail_above: f64,
    /// What guards.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = metric,
          help = help::metrics())]
    pub metric: Vec<Metric>,
    /// Form of the result
    #[arg(long, value_enum, default_value = "text")]
    pub format: DiffFormat,
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
        format!("no metric that can guard: choose among {names}")
    })
}
