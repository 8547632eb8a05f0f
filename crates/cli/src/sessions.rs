//! `fathom sessions`: the recordings in a directory, and what to do with each.
//!
//! Only footers of parts are read. A session that cannot be opened is listed with the reason.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context;
use fathom_diagnose::CachedDiagnosis;
use fathom_model::escape::{self, shell_words};
use fathom_model::meta::State as Recorded;
use fathom_model::tables::TABLES;
use fathom_model::units;
use fathom_server::{id_of, is_session};
use fathom_session::{Session, SessionError};
use serde::Serialize;

use crate::analysis;
use crate::args::{LabelFilter, SessionsArgs, SessionsFormat};
use crate::exit::Failure;
use crate::output::{aligned, json};

/// The state of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
enum State {
    /// It is being recorded.
    Running,
    /// Its recorder has closed it.
    Ended,
    /// Its recorder ended without closing it.
    Killed,
    /// Parts or `session.json` are not as they were written.
    Damaged,
    /// It cannot be read here: no permission, or of another version.
    Unreadable,
}

/// A session in the list.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Listed {
    /// Name of its directory; bytes that are not UTF-8 are written as `\xff`.
    name: String,
    state: State,
    /// Start of the recording, nanoseconds since 1970; null if unknown.
    started_unix_ns: Option<i64>,
    /// Duration of the recording; null if it has not ended or the end is unknown.
    duration_ns: Option<i64>,
    /// Recorded command, quoted for a shell; null if running programs were recorded.
    command: Option<String>,
    /// The recorded target, in words; null for a command.
    target: Option<String>,
    /// Labels that were given to the recording.
    labels: BTreeMap<String, String>,
    /// strace or dio, for an imported log.
    source: Option<String>,
    /// Calls seen; in a running session, the calls that are stored or lost so far.
    calls: Option<u64>,
    /// Bytes of its parts.
    bytes: Option<u64>,
    /// Findings of the cached diagnosis; null if none is cached.
    findings: Option<usize>,
    /// Why it cannot be read, or what is damaged.
    problem: Option<String>,
    /// The next step: a command line.
    next: String,
}

/// Runs `sessions` and returns the exit status.
pub fn run(args: &SessionsArgs) -> Result<u8, Failure> {
    analysis::no_set(&args.dir)?;
    let sessions = list(&args.dir, &args.label).map_err(Failure::input)?;
    let text = match args.format {
        SessionsFormat::Json => json(&sessions)?,
        SessionsFormat::Text if sessions.is_empty() && !args.label.is_empty() => format!(
            "no sessions with this label in {}; without --label all are listed\n",
            escape::text(&args.dir.to_string_lossy())
        ),
        SessionsFormat::Text if sessions.is_empty() => format!(
            "no sessions in {}; record one with fathom record -- COMMAND\n",
            escape::text(&args.dir.to_string_lossy())
        ),
        SessionsFormat::Text => table(&sessions),
    };
    std::io::stdout()
        .write_all(text.as_bytes())
        .map_err(Failure::input)?;
    Ok(0)
}

/// The sessions in a directory with all of `labels`, or the one that it is, the newest first.
///
/// # Errors
/// When the directory cannot be read.
pub fn list(dir: &Path, labels: &[LabelFilter]) -> anyhow::Result<Vec<Listed>> {
    let all = directories(dir)?;
    let mut sessions: Vec<Listed> = all.iter().filter_map(|dir| listed(dir, labels)).collect();
    sessions.sort_by(|a, b| {
        let newest = |s: &Listed| Reverse(s.started_unix_ns);
        newest(a).cmp(&newest(b)).then_with(|| a.name.cmp(&b.name))
    });
    Ok(sessions)
}

/// The directories of the same.
///
/// # Errors
/// When the directory cannot be read.
pub fn directories(dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if is_session(dir) && !is_lake(dir) {
        return Ok(vec![dir.to_owned()]);
    }
    let failed = || {
        format!(
            "cannot list the sessions in {}",
            escape::text(&dir.to_string_lossy())
        )
    };
    let mut all = Vec::new();
    for entry in fs::read_dir(dir).with_context(failed)? {
        let entry = entry.with_context(failed)?;
        let path = match dir == Path::new(".") {
            true => PathBuf::from(entry.file_name()),
            false => entry.path(),
        };
        // No symbolic links: their sessions are listed where they are.
        let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_dir && is_session(&path) && !is_lake(&path) {
            all.push(path);
        }
    }
    Ok(all)
}

/// Whether `fathom ship` writes to the directory: it has the folders of a session, and one for markers.
fn is_lake(dir: &Path) -> bool {
    let has = |name| dir.join(name).symlink_metadata().is_ok();
    has("_sessions") && !has("session.json")
}

/// Whether a session has all of some labels.
pub fn has_labels(session: &Session, labels: &[LabelFilter]) -> bool {
    let has = &session.meta().labels;
    labels.iter().all(|label| label.is_on(has))
}

/// `None` for a session without the labels. One that cannot be read may have them.
fn listed(dir: &Path, labels: &[LabelFilter]) -> Option<Listed> {
    match Session::glance(dir) {
        Ok(session) => has_labels(&session, labels).then(|| summary(dir, &session)),
        Err(error) => Some(unreadable(dir, &error)),
    }
}

fn summary(dir: &Path, session: &Session) -> Listed {
    let meta = session.meta();
    let state = match () {
        () if session.is_live() => State::Running,
        () if is_damaged(session) => State::Damaged,
        () if session.was_killed() => State::Killed,
        () => State::Ended,
    };
    let end = meta.clock.end_monotonic_ns;
    let end = end.filter(|_| meta.state == Recorded::Complete);
    let totals = &meta.totals;
    let parts = TABLES.iter().flat_map(|t| session.part_infos(t.name));
    Listed {
        name: name(dir),
        state,
        // Metadata that was written again from the parts has no time.
        started_unix_ns: Some(meta.clock.start_realtime_ns).filter(|ns| *ns > 0),
        duration_ns: end.map(|end| end.saturating_sub(meta.clock.start_monotonic_ns)),
        command: (!meta.command.is_empty()).then(|| shell_words(&meta.command)),
        target: (meta.command.is_empty() && !meta.target.is_empty()).then(|| meta.target.clone()),
        labels: meta.labels.clone(),
        source: meta.source.as_ref().map(|source| source.format.clone()),
        calls: Some(match state {
            State::Running => {
                session.rows("syscalls") + totals.lost + totals.expired + totals.counted
            }
            _ => totals.seen,
        }),
        bytes: Some(parts.map(|part| part.bytes).sum()),
        findings: match fathom_diagnose::cached(session) {
            CachedDiagnosis::Findings(diagnosis) => Some(diagnosis.findings.len()),
            CachedDiagnosis::Nothing | CachedDiagnosis::Unusable(_) => None,
        },
        problem: match state {
            State::Damaged => Some(session.problems().join("; ")),
            _ => None,
        },
        next: next(state, dir),
    }
}

/// Whether there is more to say than that the recorder was killed, or that a repair took place.
fn is_damaged(session: &Session) -> bool {
    let problems = session.problems().iter();
    let unrepaired = problems.filter(|text| !text.starts_with("repaired: "));
    unrepaired.count() > usize::from(session.was_killed())
}

fn unreadable(dir: &Path, error: &SessionError) -> Listed {
    let state = match error {
        SessionError::Damaged { .. } | SessionError::Part { .. } | SessionError::Parquet { .. } => {
            State::Damaged
        }
        _ => State::Unreadable,
    };
    Listed {
        name: name(dir),
        state,
        started_unix_ns: None,
        duration_ns: None,
        command: None,
        target: None,
        labels: BTreeMap::new(),
        source: None,
        calls: None,
        bytes: None,
        findings: None,
        problem: Some(escape::text(&error.to_string()).into_owned()),
        next: next(state, dir),
    }
}

/// The name of a session's directory.
pub fn name(dir: &Path) -> String {
    let whole = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    id_of(whole.file_name().unwrap_or(whole.as_os_str()))
}

fn next(state: State, dir: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    let command = match state {
        State::Running => "ui",
        State::Ended => "report",
        State::Killed | State::Damaged => "repair",
        // It names the reason.
        State::Unreadable => "report",
    };
    let path = dir.as_os_str().as_bytes();
    shell_words([b"fathom".as_slice(), command.as_bytes(), path])
}

/// Width of a command in the table.
const COMMAND: usize = 40;

fn table(sessions: &[Listed]) -> String {
    let header = [
        "SESSION", "STARTED", "DURATION", "STATE", "CALLS", "SIZE", "FINDINGS", "COMMAND",
    ];
    let dash = || "-".to_string();
    let mut rows: Vec<[String; 8]> = vec![header.map(str::to_string)];
    for s in sessions {
        let what = s.command.as_ref().or(s.target.as_ref());
        let what = what.map(|text| escape::shorten(&escape::text(text), COMMAND));
        let imported = s.source.as_ref().map(|format| format!("(log of {format})"));
        rows.push([
            escape::text(&s.name).into_owned(),
            s.started_unix_ns.map_or_else(dash, units::wall_time),
            s.duration_ns.map_or_else(dash, units::duration),
            state(s.state).to_string(),
            s.calls.map_or_else(dash, |n| units::count(signed(n))),
            s.bytes.map_or_else(dash, |n| units::bytes(signed(n))),
            s.findings.map_or_else(dash, |n| n.to_string()),
            what.or(imported).unwrap_or_else(dash),
        ]);
    }
    let mut text = aligned(&rows);
    let mut first = true;
    for s in sessions {
        let what = match s.state {
            State::Ended => continue,
            State::Running => "is being recorded; watch it:",
            State::Killed => "its recorder was killed; it can be read, and closed by:",
            State::Damaged => "is damaged; save what is left:",
            State::Unreadable => "cannot be read;",
        };
        if std::mem::take(&mut first) {
            text.push('\n');
        }
        let name = escape::text(&s.name);
        let _ = match (s.state, &s.problem) {
            (State::Unreadable, Some(problem)) => writeln!(text, "{name}: {what} {problem}"),
            (_, Some(problem)) => writeln!(text, "{name}: {what} {}\n  {problem}", s.next),
            (_, None) => writeln!(text, "{name}: {what} {}", s.next),
        };
    }
    text
}

fn state(state: State) -> &'static str {
    match state {
        State::Running => "running",
        State::Ended => "ended",
        State::Killed => "killed",
        State::Damaged => "damaged",
        State::Unreadable => "unreadable",
    }
}

fn signed(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
