//! `fathom critical-path`: what a thread waited for.

use std::io::{IsTerminal, Write};

use anyhow::{Context, anyhow, bail};
use fathom_path::{CriticalPath, PathError, Scope};
use fathom_query::{Db, Limits, joined_rid, joined_tid};
use fathom_session::{Session, SessionSet, on_latest};

use crate::args::id::Id;
use crate::args::{CriticalPathArgs, CriticalPathFormat};
use crate::exit::Failure;
use crate::output::json;
use crate::{analysis, set};

/// Runs `critical-path` and returns the exit status.
pub fn run(args: &CriticalPathArgs) -> Result<u8, Failure> {
    let path = match SessionSet::is_set(&args.session) {
        true => path_in_set(set::open(&args.session)?, args).map_err(Failure::input)?,
        false => {
            let mut session = analysis::open(&args.session)?;
            on_latest(&mut session, |session| path(session, args)).map_err(Failure::input)?
        }
    };
    let stdout = std::io::stdout();
    let terminal = stdout.is_terminal();
    let answer = match args.format {
        CriticalPathFormat::Text => {
            let width = match terminal {
                true => analysis::width(),
                false => analysis::DEFAULT_WIDTH,
            };
            fathom_report::path_to_text(&path, width, terminal && analysis::color())
        }
        CriticalPathFormat::Json => json(&path)?,
    };
    let mut out = stdout.lock();
    out.write_all(answer.as_bytes())
        .and_then(|()| out.flush())
        .map_err(Failure::input)?;
    Ok(0)
}

/// The path that options ask for.
pub fn path(session: &Session, args: &CriticalPathArgs) -> Result<CriticalPath, anyhow::Error> {
    let db = Db::open(session, Limits::default())?;
    Ok(CriticalPath::gather(
        &db,
        session.meta(),
        scope(session, args, alone)?,
    )?)
}

/// The path that options ask for, across the hosts of a set.
fn path_in_set(
    mut set: SessionSet,
    args: &CriticalPathArgs,
) -> Result<CriticalPath, anyhow::Error> {
    let db = Db::open_joined(&mut set, &Limits::default())?;
    // Times are on the clock of the reference, whose start counts.
    let (_, reference) = set.members().next().context("the set is empty")?;
    let hosts: Vec<&str> = set.members().map(|(member, _)| &*member.host).collect();
    let scope = scope(reference, args, |id| id.member(&hosts))?;
    let members = set
        .members()
        .map(|(member, session)| (session.meta(), &member.clock));
    let members: Vec<_> = members.collect();
    let path = CriticalPath::gather_set(&db, &members, scope);
    path.map_err(|error| in_words_of_set(&error, args))
}

/// The error with the id as the user gave it, in place of its number among the ids of all hosts.
fn in_words_of_set(error: &PathError, args: &CriticalPathArgs) -> anyhow::Error {
    let id = match error {
        PathError::NoRequest(id)
        | PathError::Asynchronous(id)
        | PathError::NoDuration(id)
        | PathError::NoThread(id) => id,
        _ => return anyhow!("{error}"),
    };
    let given = args.request.as_ref().or(args.thread.as_ref());
    let given = given.map_or_else(String::new, Id::to_string);
    let text = error.to_string().replace(&id.to_string(), &given);
    anyhow!("{}", text.replace("in this session", "in this set"))
}

/// The place of the only session.
fn alone(id: &Id) -> Result<usize, anyhow::Error> {
    id.alone().map(|_| 0)
}

/// The time that options ask about; `member` is the place of an id's session.
fn scope(
    session: &Session,
    args: &CriticalPathArgs,
    member: impl Fn(&Id) -> Result<usize, anyhow::Error>,
) -> Result<Scope, anyhow::Error> {
    let clock = &session.meta().clock;
    let (from_ns, until_ns) = analysis::window(args.from.as_deref(), args.until.as_deref(), clock)?;
    match (&args.request, &args.thread) {
        (Some(id), _) => {
            let rid = joined_rid(member(id)?, id.number);
            Ok(Scope::Request(rid.context("no request has this number")?))
        }
        (None, Some(id)) => Ok(Scope::Thread {
            tid: joined_tid(member(id)?, id.number).context("no thread has this number")?,
            from_ns,
            until_ns,
        }),
        (None, None) => bail!("a path is of a request or a thread: --request or --thread"),
    }
}
