//! `fathom set`, and what other commands print of a set.

use std::ffi::OsStr;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use fathom_diagnose::Diagnosis;
use fathom_diff::Diff;
use fathom_model::escape;
use fathom_model::set::{Member, Method};
use fathom_model::units;
use fathom_query::zoom::Tenant;
use fathom_report::Report;
use fathom_session::{Session, SessionSet, write_set};
use fathom_set::{Named, Summary};
use fathom_why::Story;
use serde::Serialize;

use crate::args::{MemberOptions, SessionsFormat, SetArgs};
use crate::exit::Failure;
use crate::output::{aligned, json};

/// The report of a set.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SetReport {
    /// Its sessions, and the traffic between them.
    pub set: Summary,
    /// The report of each session.
    pub members: Vec<MemberReport>,
}

/// The report of a session of a set. Times in it are on the clock of its own host.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MemberReport {
    /// Name of the session in the set.
    pub host: String,
    /// Its report.
    pub report: Report,
}

/// The diagnosis of a session of a set. Times in it are on the clock of its own host.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MemberDiagnosis {
    /// Name of the session in the set.
    pub host: String,
    /// Its diagnosis.
    pub diagnosis: Diagnosis,
}

/// The explanation of a session of a set. Times in it are on the clock of its own host.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MemberStory {
    /// Name of the session in the set.
    pub host: String,
    /// Where its time went.
    pub story: Story,
}

/// The comparison of the sessions of one host in two sets.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MemberDiff {
    /// Name of the sessions in both sets.
    pub host: String,
    /// The changes.
    pub diff: Diff,
}

/// Runs `set` and returns the exit status.
pub fn run(args: &SetArgs) -> Result<u8, Failure> {
    let mut set = match (&args.sessions[..], &args.output) {
        ([path], None) if SessionSet::is_set(Path::new(path)) => open(Path::new(path))?,
        (_, None) => {
            return Err(Failure::input(anyhow::anyhow!(
                "where is the set to be written? Give -o FILE.fset"
            )));
        }
        (sessions, Some(output)) => {
            let named: Vec<Named> = sessions.iter().map(|text| named(text)).collect();
            let set = fathom_set::build(&named).map_err(Failure::input)?;
            warn(&set);
            write_set(output, set.meta().clone(), args.force).map_err(Failure::input)?;
            set
        }
    };
    let summary = Summary::of(&mut set).map_err(Failure::input)?;
    let out = match args.format {
        SessionsFormat::Json => json(&summary)?,
        SessionsFormat::Text => text(&summary),
    };
    std::io::stdout()
        .write_all(out.as_bytes())
        .map_err(Failure::input)?;
    Ok(0)
}

/// `NAME=DIR`, or a directory, which may itself have such a name.
fn named(text: &OsStr) -> Named {
    let bytes = text.as_bytes();
    let cut = bytes.iter().position(|byte| *byte == b'=');
    let parts = cut.and_then(|cut| Some((bytes.get(..cut)?, bytes.get(cut + 1..)?)));
    match parts.and_then(|(name, dir)| Some((std::str::from_utf8(name).ok()?, dir))) {
        Some((name, dir))
            if !name.is_empty() && !name.contains('/') && !Path::new(text).exists() =>
        {
            Named {
                name: Some(name.to_string()),
                dir: PathBuf::from(OsStr::from_bytes(dir)),
            }
        }
        _ => Named {
            name: None,
            dir: PathBuf::from(text),
        },
    }
}

/// Opens a set and prints the problems of its sessions.
pub fn open(path: &Path) -> Result<SessionSet, Failure> {
    let set = SessionSet::open(path).map_err(Failure::input)?;
    warn(&set);
    Ok(set)
}

/// The sessions of a set that options mean, with what the set says of each.
pub fn members<'a>(
    set: &'a SessionSet,
    options: &MemberOptions,
) -> Result<Vec<(&'a Member, &'a Session)>, Failure> {
    let members = set.members();
    let kept: Vec<_> = members
        .filter(|(member, session)| options.keep(member, session))
        .collect();
    if kept.is_empty() {
        let hosts: Vec<&str> = set.members().map(|(member, _)| &*member.host).collect();
        return Err(Failure::input(anyhow::anyhow!(
            "no session of the set has this host and these labels; its hosts are {}, and fathom query shows \
             the labels: SELECT host, labels FROM session",
            escape::text(&hosts.join(", "))
        )));
    }
    Ok(kept)
}

/// Refuses options that mean sessions of a set.
pub fn no_members(options: &MemberOptions) -> Result<(), Failure> {
    match options.are_given() {
        true => Err(Failure::input(anyhow::anyhow!(
            "--host and --label choose sessions of a set, and this is one session: leave them out"
        ))),
        false => Ok(()),
    }
}

/// Reports tenants that none of the sessions has: `unknown` has the ones that each session lacks.
pub fn warn_unknown(unknown: &[Vec<(Tenant, &str)>]) {
    let Some((first, others)) = unknown.split_first() else {
        return;
    };
    for asked in first {
        if others.iter().all(|of| of.contains(asked)) {
            let (of, value) = asked;
            errln!(
                "fathom: no {} {} in what was recorded; list them with fathom query: FROM {}",
                of.name(),
                escape::text(value),
                of.view()
            );
        }
    }
}

/// Prints the problems of the sessions.
pub fn warn(set: &SessionSet) {
    for (member, session) in set.members() {
        for problem in session.problems() {
            errln!("fathom: {}: {problem}", escape::text(&member.host));
        }
    }
}

/// The summary for a terminal.
pub fn text(summary: &Summary) -> String {
    let cell = |text: &str| escape::text(text).into_owned();
    let count = |n: u64| units::count(i64::try_from(n).unwrap_or(i64::MAX));
    let mut rows = vec![["HOST", "CALLS", "CLOCK", "ERROR", "RATE", "SESSION"].map(str::to_string)];
    for member in &summary.members {
        let error = match (member.clock, member.error_ns) {
            (Method::Reference | Method::SameBoot, _) => "none".to_string(),
            (_, None) => "unknown".to_string(),
            (_, Some(error)) => {
                let inner = member.error_in_messages_ns.filter(|inner| *inner < error);
                let inner = inner.map(|ns| format!(", ±{} between messages", units::duration(ns)));
                format!("±{}{}", units::duration(error), inner.unwrap_or_default())
            }
        };
        let rate = match (member.clock, member.error_ns) {
            (Method::Messages, _) | (Method::WallClock, Some(_)) => {
                format!("{:+.3} ppm", member.rate_ppm)
            }
            _ => "-".to_string(),
        };
        rows.push([
            cell(&member.host),
            count(member.calls),
            cell(&member.relation),
            error,
            rate,
            cell(&member.session),
        ]);
    }
    let mut out = aligned(&rows);
    for member in summary
        .members
        .iter()
        .filter(|member| !member.note.is_empty())
    {
        out.push_str(&format!(
            "\n{}: {}.\n",
            cell(&member.host),
            cell(&member.note)
        ));
    }
    if summary.traffic.is_empty() {
        return out;
    }
    out.push('\n');
    let mut rows = vec![["FROM", "TO", "MESSAGES", "BYTES", "FASTEST"].map(str::to_string)];
    for traffic in &summary.traffic {
        rows.push([
            cell(&traffic.from),
            cell(&traffic.to),
            count(traffic.messages),
            units::bytes(i64::try_from(traffic.bytes).unwrap_or(i64::MAX)),
            units::duration(traffic.fastest_ns),
        ]);
    }
    out.push_str(&aligned(&rows));
    for traffic in summary
        .traffic
        .iter()
        .filter(|traffic| traffic.before_sent > 0)
    {
        out.push_str(&format!(
            "{} of the messages from {} to {} arrived before they were sent: the clocks are not yet \
             related well enough.\n",
            count(traffic.before_sent),
            cell(&traffic.from),
            cell(&traffic.to),
        ));
    }
    out
}

/// The line above what is printed of a member.
pub fn heading(host: &str) -> String {
    format!("\n===== {} =====\n", escape::text(host))
}
