//! `fathom diff`: compares two sets of sessions.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;

use anyhow::anyhow;
use fathom_diff::{Diff, Options, Profile};
use fathom_extensions::Extensions;
use fathom_query::{Db, Limits, escape};
use fathom_session::on_latest;

use crate::analysis::{self, DEFAULT_WIDTH};
use crate::args::{DiffArgs, DiffFormat};
use crate::exit::Failure;
use crate::output::json;

/// Runs `diff` and returns the exit status: 1 if a guarded metric is worse.
pub fn run(args: &DiffArgs) -> Result<u8, Failure> {
    let diff = compare(args, &args.extensions.load()?)?;
    let terminal = std::io::stdout().is_terminal();
    let text = match args.format {
        DiffFormat::Text => fathom_report::diff_to_text(
            &diff,
            if terminal {
                analysis::width()
            } else {
                DEFAULT_WIDTH
            },
            terminal && analysis::color(),
        ),
        DiffFormat::Json => json(&diff)?,
    };
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(Failure::input)?;
    Ok(u8::from(diff.guard.failed))
}

/// The comparison that options ask for.
pub fn compare(args: &DiffArgs, extensions: &Extensions) -> Result<Diff, Failure> {
    let (mut before, mut after) = (args.before.clone(), args.after.clone());
    match &args.sessions[..] {
        [] => {}
        [b, a] => {
            before.push(b.clone());
            after.push(a.clone());
        }
        _ => {
            return Err(Failure::input(anyhow!(
                "cannot compare a single session: give BEFORE and AFTER, or --before and --after"
            )));
        }
    }
    if before.is_empty() || after.is_empty() {
        let side = if before.is_empty() { "before" } else { "after" };
        return Err(Failure::input(anyhow!(
            "no session {side}: give BEFORE and AFTER, or --before and --after"
        )));
    }
    let before = profiles(&before, extensions)?;
    let after = profiles(&after, extensions)?;
    let options = Options {
        fail_above_percent: args.fail_above,
        guards: (!args.metric.is_empty()).then(|| args.metric.clone()),
    };
    fathom_diff::compare(&before, &after, &options).map_err(Failure::input)
}

/// Reads the figures of sessions, one session at a time.
fn profiles(paths: &[PathBuf], extensions: &Extensions) -> Result<Vec<Profile>, Failure> {
    let profile = |path: &PathBuf| {
        let mut session = analysis::open(path)?;
        let name = path.to_string_lossy();
        let profile = on_latest(&mut session, |session| {
            let db = Db::open(session, Limits::default())?;
            Ok::<_, anyhow::Error>(Profile::gather(&db, session, &name, extensions)?)
        });
        profile.map_err(|error| {
            Failure::input(anyhow!("cannot compare {}: {error}", escape::text(&name)))
        })
    };
    paths.iter().map(profile).collect()
}
