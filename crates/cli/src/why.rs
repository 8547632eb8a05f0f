//! `fathom why`: where the time went, in three sentences.

use std::io::{IsTerminal, Write};

use fathom_extensions::Extensions;
use fathom_model::set::ClockMap;
use fathom_query::escape::text;
use fathom_query::zoom::Filter;
use fathom_query::{Db, Limits};
use fathom_report::diagnosis_in_passing;
use fathom_session::{Session, SessionSet, on_latest};
use fathom_why::{File, Named, Scope, Story};

use crate::analysis;
use crate::args::{WhyArgs, WhyFormat};
use crate::exit::Failure;
use crate::output::json;
use crate::set::{self, MemberStory};

/// Runs `why` and returns the exit status.
pub fn run(args: &WhyArgs) -> Result<u8, Failure> {
    let extensions = args.extensions.load()?;
    let answer = match SessionSet::is_set(&args.session) {
        true => of_set(args, &extensions)?,
        false => {
            set::no_members(&args.members)?;
            let mut session = analysis::open(&args.session)?;
            let story = on_latest(&mut session, |session| story(session, args, &extensions));
            let story = story.map_err(Failure::input)?;
            match args.format {
                WhyFormat::Text => to_text(&story),
                WhyFormat::Json => json(&story)?,
            }
        }
    };
    let mut out = std::io::stdout().lock();
    out.write_all(answer.as_bytes())
        .and_then(|()| out.flush())
        .map_err(Failure::input)?;
    Ok(0)
}

fn to_text(story: &Story) -> String {
    let width = match std::io::stdout().is_terminal() {
        true => analysis::width(),
        false => analysis::DEFAULT_WIDTH,
    };
    fathom_report::story_to_text(story, width)
}

/// The explanation of each session of a set, or of the one that an id names.
fn of_set(args: &WhyArgs, extensions: &Extensions) -> Result<String, Failure> {
    let set = set::open(&args.session)?;
    let hosts: Vec<&str> = set.members().map(|(member, _)| &*member.host).collect();
    let id = args.request.as_ref().or(args.thread.as_ref());
    let only = id.map(|id| id.member(&hosts)).transpose();
    let only = only.map_err(Failure::input)?;
    let reference = set.members().next().map(|(_, session)| session);
    let (mut stories, mut failures) = (Vec::new(), Vec::new());
    for (member, session) in set::members(&set, &args.members)? {
        if only.is_some_and(|only| hosts.get(only) != Some(&&*member.host)) {
            continue;
        }
        let on = On {
            reference: reference.unwrap_or(session),
            clock: Some(&member.clock.map),
        };
        let mut session = session.clone();
        let story = on_latest(&mut session, |session| {
            story_on(session, args, extensions, &on)
        });
        match story {
            Ok(story) => stories.push(MemberStory {
                host: member.host.clone(),
                story,
            }),
            // A file or a request of an application is on some hosts only.
            Err(error) if only.is_none() && (args.file.is_some() || args.span.is_some()) => {
                failures.push(error);
            }
            Err(error) => return Err(Failure::input(error)),
        }
    }
    if stories.is_empty()
        && let Some(error) = failures.into_iter().next()
    {
        return Err(Failure::input(error));
    }
    let text = |member: &MemberStory| {
        let heading = set::heading(&member.host);
        format!("{heading}{}", to_text(&member.story))
    };
    match args.format {
        WhyFormat::Json => json(&stories),
        WhyFormat::Text => {
            let text: String = stories.iter().map(text).collect();
            Ok(text.trim_start().to_owned())
        }
    }
}

/// The clock on which options say times.
struct On<'a> {
    /// Its session.
    reference: &'a Session,
    /// How the time of the session leads to it; none where both are the same.
    clock: Option<&'a ClockMap>,
}

/// The explanation that options ask for.
pub fn story(
    session: &Session,
    args: &WhyArgs,
    extensions: &Extensions,
) -> Result<Story, anyhow::Error> {
    for id in [&args.request, &args.thread].into_iter().flatten() {
        id.alone()?;
    }
    let on = On {
        reference: session,
        clock: None,
    };
    story_on(session, args, extensions, &on)
}

fn story_on(
    session: &Session,
    args: &WhyArgs,
    extensions: &Extensions,
    on: &On<'_>,
) -> Result<Story, anyhow::Error> {
    let db = Db::open(session, Limits::default())?;
    if let Some(span) = &args.span {
        return of_span(&db, session, span);
    }
    let scope = scope(&db, args, on)?;
    // In a set another host may have it.
    if on.clock.is_none() {
        set::warn_unknown(&[args.tenants.tenants().unknown(&db)?]);
    }
    let diagnosis = match scope.request {
        Some(_) => Err(String::new()),
        None => diagnosis_in_passing(session, extensions)?,
    };
    let findings = diagnosis.map(|diagnosis| diagnosis.findings);
    let findings = findings.unwrap_or_default();
    let story = fathom_why::why(&db, session.meta(), &scope, &findings)?;
    if let (Some(rid), []) = (scope.request, &story.facts.groups[..]) {
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
fn scope(db: &Db, args: &WhyArgs, on: &On<'_>) -> Result<Scope, anyhow::Error> {
    let clock = &on.reference.meta().clock;
    let (from_ns, until_ns) = analysis::window(args.from.as_deref(), args.until.as_deref(), clock)?;
    let back = on.clock.map(ClockMap::inverse);
    let own = |at_ns| back.as_ref().map_or(at_ns, |back| back.apply(at_ns));
    let file = args
        .file
        .as_deref()
        .map(|name| file(db, name))
        .transpose()?;
    let filter = args.tenants.tenants().narrow(db, Filter::default())?;
    let calls = filter.sql();
    Ok(Scope {
        request: args.request.as_ref().map(|id| id.number),
        file,
        thread: args.thread.as_ref().map(|id| id.number),
        from_ns: from_ns.map(own),
        until_ns: until_ns.map(own),
        faults: calls.as_ref().and_then(|_| filter.faults_sql()),
        calls,
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
