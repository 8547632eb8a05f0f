//! `fathom diff`: what changed between two sides.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;

use anyhow::anyhow;
use clap::{Args, ValueEnum};
use fathom_diff::{Metric, Options, Profile};
use fathom_query::{Db, Limits, escape};
use fathom_session::on_latest;

use crate::analyse::{self, DEFAULT_WIDTH};
use crate::exit::Failure;
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

/// Runs `diff` and returns the exit status: 1 when something is worse.
pub fn run(args: &DiffArgs) -> Result<u8, Failure> {
    let (mut before, mut after) = (args.before.clone(), args.after.clone());
    match &args.sessions[..] {
        [] => {}
        [b, a] => {
            before.push(b.clone());
            after.push(a.clone());
        }
        _ => {
            return Err(Failure::input(anyhow!(
                "one session alone cannot be compared: give BEFORE and AFTER, or --before and --after"
            )));
        }
    }
    if before.is_empty() || after.is_empty() {
        let side = if before.is_empty() { "before" } else { "after" };
        return Err(Failure::input(anyhow!(
            "there is no session {side}: give BEFORE and AFTER, or --before and --after"
        )));
    }
    let before = profiles(&before)?;
    let after = profiles(&after)?;
    let options = Options {
        fail_above_percent: args.fail_above,
        guards: (!args.metric.is_empty()).then(|| args.metric.clone()),
    };
    let diff = fathom_diff::compare(&before, &after, &options).map_err(Failure::input)?;
    let terminal = std::io::stdout().is_terminal();
    let text = match args.format {
        DiffFormat::Text => fathom_report::diff_to_text(
            &diff,
            if terminal {
                analyse::width()
            } else {
                DEFAULT_WIDTH
            },
            terminal && analyse::color(),
        ),
        DiffFormat::Json => analyse::json(&diff)?,
    };
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(Failure::input)?;
    Ok(u8::from(diff.guard.failed))
}

/// The figures of sessions, which are opened one after the other.
fn profiles(paths: &[PathBuf]) -> Result<Vec<Profile>, Failure> {
    let profile = |path: &PathBuf| {
        let mut session = analyse::open(path)?;
        let name = path.to_string_lossy();
        let profile = on_latest(&mut session, |session| {
            let db = Db::open(session, Limits::default())?;
            Ok::<_, anyhow::Error>(Profile::gather(&db, session, &name)?)
        });
        profile.map_err(|error| {
            Failure::input(anyhow!("cannot compare {}: {error}", escape::text(&name)))
        })
    };
    paths.iter().map(profile).collect()
}
