//! `fathom report`, `fathom diagnose` and `fathom query`: what is made of sessions.

use std::io::{BufWriter, IsTerminal, Write};
use std::path::Path;

use fathom_diagnose::Diagnosis;
use fathom_query::output::{self, Format, Options};
use fathom_query::{Batches, Db, Limits, QueryError};
use fathom_session::Session;

use crate::args::{DiagnoseArgs, DiagnosisFormat, QueryArgs, ReportArgs, ReportFormat};
use crate::exit::Failure;
use crate::patience::Patience;

/// Width of a terminal that does not tell.
pub const DEFAULT_WIDTH: usize = 100;

/// Runs `query` and returns the exit status.
pub fn query(args: &QueryArgs) -> Result<u8, Failure> {
    let patience = Patience::new()?;
    let mut session = open(&args.session)?;
    let limits = Limits {
        memory_bytes: args.memory_mib << 20,
        time: args.timeout,
        ..Limits::default()
    };
    let db = database(&mut session, limits)?;
    let watch = patience.watch(db.interrupter())?;
    if fathom_query::names_findings(&args.sql) {
        let diagnosis = findings(&session)?;
        fathom_report::fill_findings(&db, &diagnosis).map_err(Failure::input)?;
    }
    let rows = db.query(&args.sql).map_err(|error| watch.failure(error))?;
    write(watch.rows(rows), args.format, |error| watch.failure(error))
}

/// Writes rows to standard output.
pub fn print(rows: impl Batches, format: Format) -> Result<u8, Failure> {
    write(rows, format, Failure::input)
}

/// As [`print`], with failures as `failure` makes them.
fn write(
    rows: impl Batches,
    format: Format,
    failure: impl Fn(QueryError) -> Failure,
) -> Result<u8, Failure> {
    let stdout = std::io::stdout();
    let terminal = stdout.is_terminal();
    if terminal && format.is_binary() {
        return Err(Failure::input(anyhow::anyhow!(
            "--format {} is not for a terminal: redirect standard output to a file",
            format.name()
        )));
    }
    let options = Options {
        width: terminal.then(width),
        color: terminal && color(),
        terminal,
    };
    output::write(rows, format, &options, BufWriter::new(stdout)).map_err(failure)?;
    Ok(0)
}

/// Runs `report` and returns the exit status.
pub fn report(args: &ReportArgs) -> Result<u8, Failure> {
    let mut session = open(&args.session)?;
    if args.sizes {
        return crate::sizes::print(&session, args.format);
    }
    let db = database(&mut session, Limits::default())?;
    let report = fathom_report::Report::build(&db, &session).map_err(Failure::input)?;
    let stdout = std::io::stdout();
    let terminal = stdout.is_terminal();
    let text = match args.format {
        ReportFormat::Text => fathom_report::to_text(
            &report,
            if terminal { width() } else { DEFAULT_WIDTH },
            terminal && color(),
        ),
        ReportFormat::Json => json(&report)?,
        ReportFormat::Html => fathom_report::to_html(&report),
    };
    let mut out = stdout.lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(Failure::input)?;
    Ok(0)
}

/// Runs `diagnose` and returns the exit status: 1 when there are findings.
pub fn diagnose(args: &DiagnoseArgs) -> Result<u8, Failure> {
    let session = open(&args.session)?;
    let diagnosis = findings(&session)?;
    let stdout = std::io::stdout();
    let terminal = stdout.is_terminal();
    let text = match args.format {
        DiagnosisFormat::Text => fathom_report::diagnosis_to_text(
            &diagnosis,
            &args.session.to_string_lossy(),
            session.meta().clock.start_monotonic_ns,
            if terminal { width() } else { DEFAULT_WIDTH },
            terminal && color(),
        ),
        DiagnosisFormat::Json => json(&diagnosis)?,
        DiagnosisFormat::Sarif => json(&fathom_report::to_sarif(&diagnosis))?,
    };
    let mut out = stdout.lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(Failure::input)?;
    Ok(u8::from(!diagnosis.findings.is_empty()))
}

/// What the rules find in a session, or have found before.
fn findings(session: &Session) -> Result<Diagnosis, Failure> {
    let told = fathom_diagnose::diagnose_once(session, &|| true).map_err(Failure::input)?;
    if let Some(notice) = told.notice {
        eprintln!("fathom: {notice}");
    }
    Ok(told.diagnosis)
}

/// Something as JSON, with a line feed behind it.
pub fn json(value: &impl serde::Serialize) -> Result<String, Failure> {
    let mut text = serde_json::to_string_pretty(value).map_err(Failure::input)?;
    text.push('\n');
    Ok(text)
}

/// Opens a session and says what is wrong with it.
pub fn open(path: &Path) -> Result<Session, Failure> {
    let session = Session::open(path).map_err(Failure::input)?;
    for problem in session.problems() {
        eprintln!("fathom: {problem}");
    }
    Ok(session)
}

pub fn database(session: &mut Session, limits: Limits) -> Result<Db, Failure> {
    while_live(session, |session| Db::open(session, limits.clone()))
}

/// Opens something of a session: while it is recorded, a part that was listed may
/// have been merged into another one since.
pub fn while_live<T>(
    session: &mut Session,
    open: impl Fn(&Session) -> Result<T, QueryError>,
) -> Result<T, Failure> {
    const TRIES: u32 = 5;
    for _ in 1..TRIES {
        match open(session) {
            Err(QueryError::Table { .. }) if session.is_live() => {
                session.refresh().map_err(Failure::input)?;
            }
            result => return result.map_err(Failure::input),
        }
    }
    open(session).map_err(Failure::input)
}

/// Width of the terminal.
pub fn width() -> usize {
    rustix::termios::tcgetwinsize(std::io::stdout())
        .ok()
        .map(|size| usize::from(size.ws_col))
        .filter(|width| *width > 0)
        .unwrap_or(DEFAULT_WIDTH)
}

/// https://no-color.org
pub fn color() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
