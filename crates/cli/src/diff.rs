//! `fathom diff`: compares two sets of sessions.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;

use anyhow::anyhow;
use fathom_diff::{Diff, Options, Profile};
use fathom_extensions::Extensions;
use fathom_query::{Db, Limits, escape};
use fathom_session::{SessionSet, on_latest};

use crate::analysis::{self, DEFAULT_WIDTH};
use crate::args::{DiffArgs, DiffFormat};
use crate::exit::Failure;
use crate::output::json;
use crate::set::{self, MemberDiff};

/// Runs `diff` and returns the exit status: 1 if a guarded metric is worse.
pub fn run(args: &DiffArgs) -> Result<u8, Failure> {
    let extensions = args.extensions.load()?;
    let (text, failed) = match of_sets(args, &extensions)? {
        Some(members) => {
            let failed = members.iter().any(|member| member.diff.guard.failed);
            let text = |member: &MemberDiff| {
                let heading = set::heading(&member.host);
                format!("{heading}{}", to_text(&member.diff))
            };
            let text = match args.format {
                DiffFormat::Text => members.iter().map(text).collect(),
                DiffFormat::Json => json(&members)?,
            };
            (text, failed)
        }
        None => {
            let diff = compare(args, &extensions)?;
            let text = match args.format {
                DiffFormat::Text => to_text(&diff),
                DiffFormat::Json => json(&diff)?,
            };
            (text, diff.guard.failed)
        }
    };
    let mut out = std::io::stdout().lock();
    out.write_all(text.trim_start().as_bytes())
        .and_then(|()| out.flush())
        .map_err(Failure::input)?;
    Ok(u8::from(failed))
}

fn to_text(diff: &Diff) -> String {
    let terminal = std::io::stdout().is_terminal();
    let width = match terminal {
        true => analysis::width(),
        false => DEFAULT_WIDTH,
    };
    fathom_report::diff_to_text(diff, width, terminal && analysis::color())
}

/// The comparison of two sets, host by host; none if sessions are compared.
fn of_sets(args: &DiffArgs, extensions: &Extensions) -> Result<Option<Vec<MemberDiff>>, Failure> {
    let (before, after) = match (&args.sessions[..], &args.before[..], &args.after[..]) {
        ([before, after], [], []) => (before, after),
        ([], [before], [after]) => (before, after),
        _ => return Ok(None),
    };
    let is_set = |path: &PathBuf| SessionSet::is_set(path);
    match (is_set(before), is_set(after)) {
        (true, true) => {}
        (false, false) => return Ok(None),
        _ => {
            return Err(Failure::input(anyhow!(
                "a set is compared with a set, not with a session"
            )));
        }
    }
    let (before, after) = (set::open(before)?, set::open(after)?);
    let dir = |set: &SessionSet, host: &str| {
        let mut members = set.members();
        let found = members.find(|(member, _)| member.host == host);
        found.map(|(_, session)| session.dir().to_owned())
    };
    let alone = |set: &SessionSet, other: &SessionSet, side: &str| {
        for (member, _) in set.members() {
            if dir(other, &member.host).is_none() {
                let host = escape::text(&member.host);
                errln!("fathom: host {host} is in the set {side} only and is not compared");
            }
        }
    };
    alone(&before, &after, "before");
    alone(&after, &before, "after");
    let mut members = Vec::new();
    for (member, session) in before.members() {
        let Some(after) = dir(&after, &member.host) else {
            continue;
        };
        let before = profiles(&[session.dir().to_owned()], extensions)?;
        let after = profiles(&[after], extensions)?;
        let diff = fathom_diff::compare(&before, &after, &options(args));
        members.push(MemberDiff {
            host: member.host.clone(),
            diff: diff.map_err(Failure::input)?,
        });
    }
    if members.is_empty() {
        return Err(Failure::input(anyhow!(
            "no host is in both sets: give the sessions the same names with NAME=DIR"
        )));
    }
    Ok(Some(members))
}

fn options(args: &DiffArgs) -> Options {
    Options {
        fail_above_percent: args.fail_above,
        guards: (!args.metric.is_empty()).then(|| args.metric.clone()),
    }
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
    fathom_diff::compare(&before, &after, &options(args)).map_err(Failure::input)
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
