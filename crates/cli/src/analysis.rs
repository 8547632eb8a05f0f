//! `fathom report`, `fathom diagnose`, and `fathom query`: results of sessions.

use std::io::{BufWriter, ErrorKind, IsTerminal, Write};
use std::path::Path;

use fathom_diagnose::Diagnosis;
use fathom_export::parse_time;
use fathom_extensions::Extensions;
use fathom_model::meta::Clock;
use fathom_query::escape::shell_words;
use fathom_query::output::{self, Format, Options};
use fathom_query::worker::{self, Form, Program, Statement, Worker};
use fathom_query::{Batches, Db, Limits, QueryError};
use fathom_redact::Scratch;
use fathom_report::Report;
use fathom_session::{Session, SessionSet, on_latest};
use fathom_set::Summary;

use crate::args::{DiagnoseArgs, DiagnosisFormat, QueryArgs, ReportArgs, ReportFormat};
use crate::exit::Failure;
use crate::interrupt::Interrupt;
use crate::output::json;
use crate::redact;
use crate::set::{self, MemberDiagnosis, MemberReport, SetReport};

/// Width of a terminal that does not report one.
pub const DEFAULT_WIDTH: usize = 100;

/// Runs `query` and returns the exit status.
pub fn query(args: &QueryArgs) -> Result<u8, Failure> {
    let redacted = redact::temporary(&args.session, &args.redact)?;
    let session_dir = redacted.as_ref().map_or(&*args.session, Scratch::session);
    let interrupt = Interrupt::new()?;
    let extensions = args.extensions.load()?;
    let set = match SessionSet::is_set(session_dir) {
        true => Some(set::open(session_dir)?),
        false => None,
    };
    let mut sessions = match &set {
        Some(set) => set.members().map(|(_, session)| session.clone()).collect(),
        None => vec![open(session_dir)?],
    };
    let options = output_options(args.format, args.exact)?;
    let sql = match (&args.sql, args.finding, &mut sessions[..]) {
        (Some(sql), ..) => sql.clone(),
        (None, number, [session]) => {
            query_of(session_dir, session, &extensions, number.unwrap_or(0))?
        }
        (None, ..) => {
            return Err(Failure::input(anyhow::anyhow!(
                "--finding takes one session: a set has a list of findings for each of its members"
            )));
        }
    };
    let limits = Limits {
        memory_bytes: args.memory_mib << 20,
        time: args.timeout,
        ..Limits::default()
    };
    let mut worker = Worker::start(&Program::itself(), limits).map_err(Failure::input)?;
    let watch = interrupt.watch(worker.killer())?;
    let failed = |error| watch.failure(error);
    let findings = match extensions.names_findings(&sql) {
        true => {
            let rows = |session| {
                let found = findings(session, &extensions)?;
                Ok(fathom_diagnose::finding_rows(&found))
            };
            Some(
                sessions
                    .iter_mut()
                    .map(rows)
                    .collect::<Result<_, Failure>>()?,
            )
        }
        false => None,
    };
    let opened = worker.open(session_dir, extensions.views());
    opened.map_err(failed)?;
    let statement = Statement {
        sql,
        form: Form::Output {
            format: args.format,
            width: options.width,
            color: options.color,
            terminal: options.terminal,
            exact: options.exact,
        },
        findings,
        refresh: false,
    };
    let mut out = std::io::stdout().lock();
    let written = worker.query(statement, |bytes| {
        watch.rows_are_there();
        out.write_all(bytes).and_then(|()| out.flush())
    });
    match written {
        // The reader of the output has closed it: not a failure.
        Err(QueryError::Output(e)) if e.kind() == ErrorKind::BrokenPipe => Ok(0),
        written => written.map(|_| 0).map_err(failed),
    }
}

/// Runs the SQL worker process of another fathom.
pub fn sql_worker() -> Result<u8, Failure> {
    worker::serve(fathom_path::sql_rows)
        .map(|()| 0)
        .map_err(|e| Failure::input(anyhow::anyhow!(e)))
}

/// Writes rows to standard output.
pub fn print(rows: impl Batches, format: Format, exact: bool) -> Result<u8, Failure> {
    let options = output_options(format, exact)?;
    let out = BufWriter::new(std::io::stdout());
    output::write(rows, format, &options, out).map_err(Failure::input)?;
    Ok(0)
}

/// The function that writes rows in a format to standard output.
fn output_options(format: Format, exact: bool) -> Result<Options, Failure> {
    let terminal = std::io::stdout().is_terminal();
    if terminal && format.is_binary() {
        return Err(Failure::input(anyhow::anyhow!(
            "--format {} is not for a terminal: redirect standard output to a file",
            format.name()
        )));
    }
    Ok(Options {
        width: terminal.then(width),
        color: terminal && color(),
        terminal,
        exact,
    })
}

/// Runs `report` and returns the exit status.
pub fn report(args: &ReportArgs) -> Result<u8, Failure> {
    let redacted = redact::temporary(&args.session, &args.redact)?;
    if SessionSet::is_set(&args.session) && !args.sizes {
        return report_set(args);
    }
    let session = redacted.as_ref().map_or(&*args.session, Scratch::session);
    let mut session = open(session)?;
    if args.sizes {
        return crate::sizes::print(&session, args.format);
    }
    let extensions = args.extensions.load()?;
    let report = report_of(&mut session, &extensions)?;
    write(&match args.format {
        ReportFormat::Text => screen(&report, args.full),
        ReportFormat::Json => json(&report)?,
        ReportFormat::Html => fathom_report::to_html(&report),
    })?;
    Ok(0)
}

fn report_of(session: &mut Session, extensions: &Extensions) -> Result<Report, Failure> {
    let report = on_latest(session, |session| {
        let db = Db::open(session, Limits::default())?;
        Ok::<_, anyhow::Error>(Report::build_with(&db, session, extensions)?)
    });
    report.map_err(Failure::input)
}

fn screen(report: &Report, full: bool) -> String {
    let terminal = std::io::stdout().is_terminal();
    let width = if terminal { width() } else { DEFAULT_WIDTH };
    let color = terminal && color();
    match full {
        true => fathom_report::to_text(report, width, color),
        // The last line has the shell's prompt.
        false => {
            let height = if terminal { height() } else { None };
            fathom_report::to_screen(report, width, height.map(|lines| lines - 1), color)
        }
    }
}

/// The report of each session of a set, after what joins them.
fn report_set(args: &ReportArgs) -> Result<u8, Failure> {
    if matches!(args.format, ReportFormat::Html) {
        return Err(Failure::input(anyhow::anyhow!(
            "--format html takes one session: make a page for each member of the set"
        )));
    }
    let extensions = args.extensions.load()?;
    let mut opened = set::open(&args.session)?;
    let summary = Summary::of(&mut opened).map_err(Failure::input)?;
    let members = opened.members().map(|(member, session)| {
        Ok(MemberReport {
            host: member.host.clone(),
            report: report_of(&mut session.clone(), &extensions)?,
        })
    });
    let members = members.collect::<Result<Vec<_>, Failure>>()?;
    let text = match args.format {
        ReportFormat::Json => json(&SetReport {
            set: summary,
            members,
        })?,
        _ => {
            let each = members.iter().map(|member| {
                format!(
                    "{}{}",
                    set::heading(&member.host),
                    screen(&member.report, args.full)
                )
            });
            format!("{}{}", set::text(&summary), each.collect::<String>())
        }
    };
    write(&text)?;
    Ok(0)
}

/// Writes to standard output.
fn write(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(Failure::input)
}

/// Runs `diagnose` and returns the exit status: 1 if there are findings, 2 if a part of the session
/// cannot be read, because the rules' silence then proves nothing.
pub fn diagnose(args: &DiagnoseArgs) -> Result<u8, Failure> {
    let redacted = redact::temporary(&args.session, &args.redact)?;
    if SessionSet::is_set(&args.session) {
        return diagnose_set(args);
    }
    let extensions = args.extensions.load()?;
    let session = redacted.as_ref().map_or(&*args.session, Scratch::session);
    let mut session = open(session)?;
    let diagnosis = findings(&mut session, &extensions)?;
    write(&match args.format {
        DiagnosisFormat::Text => diagnosis_text(&diagnosis, &session, args),
        DiagnosisFormat::Json => json(&diagnosis)?,
        DiagnosisFormat::Sarif => json(&fathom_report::to_sarif(&diagnosis))?,
    })?;
    if session.is_damaged() {
        return Ok(2);
    }
    Ok(u8::from(!diagnosis.findings.is_empty()))
}

fn diagnosis_text(diagnosis: &Diagnosis, session: &Session, args: &DiagnoseArgs) -> String {
    let dir = session.dir().to_string_lossy();
    let extensions = args.extensions.dir().map(|dir| dir.to_string_lossy());
    let mut words = vec![&*dir];
    words.extend(extensions.iter().flat_map(|dir| ["--extensions", &**dir]));
    let terminal = std::io::stdout().is_terminal();
    fathom_report::diagnosis_to_text(
        diagnosis,
        &words,
        session.meta().clock.start_monotonic_ns,
        if terminal { width() } else { DEFAULT_WIDTH },
        terminal && color(),
        args.all,
    )
}

/// Diagnoses each session of a set; the exit status is the worst one.
fn diagnose_set(args: &DiagnoseArgs) -> Result<u8, Failure> {
    if matches!(args.format, DiagnosisFormat::Sarif) {
        return Err(Failure::input(anyhow::anyhow!(
            "--format sarif takes one session: make a file for each member of the set"
        )));
    }
    let extensions = args.extensions.load()?;
    let opened = set::open(&args.session)?;
    let (mut members, mut text, mut status) = (Vec::new(), String::new(), 0);
    for (member, session) in opened.members() {
        let mut session = session.clone();
        let diagnosis = findings(&mut session, &extensions)?;
        text.push_str(set::heading(&member.host).trim_start());
        text.push_str(&diagnosis_text(&diagnosis, &session, args));
        status = status.max(match session.is_damaged() {
            true => 2,
            false => u8::from(!diagnosis.findings.is_empty()),
        });
        members.push(MemberDiagnosis {
            host: member.host.clone(),
            diagnosis,
        });
    }
    write(&match args.format {
        DiagnosisFormat::Json => json(&members)?,
        _ => text,
    })?;
    Ok(status)
}

/// The findings of a session, from the cache or from a new diagnosis, with what the user's rules find.
pub fn findings(session: &mut Session, extensions: &Extensions) -> Result<Diagnosis, Failure> {
    let mut told = fathom_diagnose::diagnose_latest(session, &|| true).map_err(Failure::input)?;
    if let Some(notice) = told.notice {
        errln!("fathom: {notice}");
    }
    let added = extensions.diagnose(session, &mut told.diagnosis, &|| true);
    added.map_err(Failure::input)?;
    Ok(told.diagnosis)
}

/// The SQL of the finding with this number in the list of `diagnose`; minor notes come after the
/// findings.
fn query_of(
    path: &Path,
    session: &mut Session,
    extensions: &Extensions,
    number: u32,
) -> Result<String, Failure> {
    let diagnosis = findings(session, extensions)?;
    let all = diagnosis.findings.iter().chain(&diagnosis.minor);
    let at = usize::try_from(number).unwrap_or(usize::MAX);
    match all.clone().nth(at.saturating_sub(1)) {
        Some(finding) => Ok(finding.query.clone()),
        None => Err(Failure::input(anyhow::anyhow!(
            "no finding {number}: the list ends at {}; see {}",
            all.count(),
            shell_words(["fathom", "diagnose", &path.to_string_lossy(), "--all"])
        ))),
    }
}

/// Opens a session and prints its problems.
/// The window that --from and --until name, CLOCK_MONOTONIC nanoseconds.
pub fn window(
    from: Option<&str>,
    until: Option<&str>,
    clock: &Clock,
) -> Result<(Option<i64>, Option<i64>), anyhow::Error> {
    let time = |text: Option<&str>| text.map(|text| parse_time(text, clock)).transpose();
    let (from, until) = (time(from)?, time(until)?);
    if let (Some(from), Some(until)) = (from, until)
        && from >= until
    {
        anyhow::bail!("the window ends before it begins: --until must be later than --from");
    }
    Ok((from, until))
}

pub fn open(path: &Path) -> Result<Session, Failure> {
    let session = Session::open(path).map_err(Failure::input)?;
    for problem in session.problems() {
        errln!("fathom: {problem}");
    }
    Ok(session)
}

/// Refuses a set where a session, or a directory of sessions, is expected.
pub fn no_set(path: &Path) -> Result<(), Failure> {
    match SessionSet::is_set(path) {
        true => Session::open(path).map(drop).map_err(Failure::input),
        false => Ok(()),
    }
}

/// The database of a session, in its newest state.
pub fn database(session: &mut Session, limits: Limits) -> Result<Db, Failure> {
    Db::open_latest(session, &limits).map_err(Failure::input)
}

pub fn width() -> usize {
    rustix::termios::tcgetwinsize(std::io::stdout())
        .ok()
        .map(|size| usize::from(size.ws_col))
        .filter(|width| *width > 0)
        .unwrap_or(DEFAULT_WIDTH)
}

/// Lines of the terminal; `None` if their number is not known.
fn height() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    Some(usize::from(size.ws_row)).filter(|height| *height > 0)
}

/// https://no-color.org
pub fn color() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
