//! `fathom why`: where the time went, in three sentences.

use std::io::{IsTerminal, Write};

use fathom_extensions::Extensions;
use fathom_query::escape::text;
use fathom_query::{Db, Limits};
use fathom_report::diagnosis_in_passing;
use fathom_session::{Session, on_latest};
use fathom_why::{File, Named, Scope, Story};

use crate::analysis;
use crate::args::{WhyArgs, WhyFormat};
use crate::exit::Failure;
use crate::output::json;

/// Runs `why` and returns the exit status.
pub fn run(args: &WhyArgs) -> Result<u8, Failure> {
    let extensions = args.extensions.load()?;
    let mut session = analysis::open(&args.session)?;
    let story = on_latest(&mut session, |session| story(session, args, &extensions));
    let story = story.map_err(Failure::input)?;
    let stdout = std::io::stdout();
    let width = match stdout.is_terminal() {
        true => analysis::width(),
        false => analysis::DEFAULT_WIDTH,
    };
    let answer = match args.format {
        WhyFormat::Text => fathom_report::story_to_text(&story, width),
        WhyFormat::Json => json(&story)?,
    };
    let mut out = stdout.lock();
    out.write_all(answer.as_bytes())
        .and_then(|()| out.flush())
        .map_err(Failure::input)?;
    Ok(0)
}

/// The explanation that options ask for.
pub fn story(
    session: &Session,
    args: &WhyArgs,
    extensions: &Extensions,
) -> Result<Story, anyhow::Error> {
    let db = Db::open(session, Limits::default())?;
    if let Some(span) = &args.span {
        return of_span(&db, session, span);
    }
    let scope = scope(&db, session, args)?;
    let diagnosis = match scope.request {
        Some(_) => Err(String::new()),
        None => diagnosis_in_passing(session, extensions)?,
    };
    let findings = diagnosis.map(|diagnosis| diagnosis.findings);
    let findings = findings.unwrap_or_default();
    let story = fathom_why::why(&db, session.meta(), &scope, &findings)?;
    if let (Some(rid), []) = (args.request, &story.facts.groups[..]) {
        anyhow::bail!(
            "no request {rid} in this session: it may have been lost or dropped; list requests with: \
             FROM syscalls ORDER BY dur_ns DESC"
        );
    }
    Ok(story)
}

/// The explanation of a request of an application.
fn of_span(db: &Db, session: &Session, span: &str) -> Result<Story, anyhow::Error> {
    let story = fathom_why::why_span(db, session.meta(), span, &[])?;
    story.ok_or_else(|| {
        anyhow::anyhow!(
            "no request named \"{}\" in this session, and no span with this id; list requests with: \
             FROM by_span_name, and spans with: FROM spans ORDER BY dur_ns DESC",
            text(span)
        )
    })
}

/// The requests that options ask about.
fn scope(db: &Db, session: &Session, args: &WhyArgs) -> Result<Scope, anyhow::Error> {
    let clock = &session.meta().clock;
    let (from_ns, until_ns) = analysis::window(args.from.as_deref(), args.until.as_deref(), clock)?;
    let file = args
        .file
        .as_deref()
        .map(|name| file(db, name))
        .transpose()?;
    Ok(Scope {
        request: args.request,
        file,
        thread: args.thread,
        from_ns,
        until_ns,
        ..Scope::default()
    })
}

/// The file that a name stands for.
fn file(db: &Db, name: &str) -> Result<File, anyhow::Error> {
    match File::named(db, name)? {
        Named::File(file) => Ok(file),
        Named::Nothing => anyhow::bail!(
            "no file {} in this session; list its files with: FROM by_file",
            text(name)
        ),
        Named::Several(paths) => {
            let paths: Vec<_> = paths.iter().map(|path| text(path)).collect();
            anyhow::bail!(
                "{} stands for several files: give more of the path, such as {}",
                text(name),
                paths.join(", ")
            )
        }
    }
}
