//! `fathom critical-path`: what a thread waited for.

use std::io::{IsTerminal, Write};

use fathom_path::{CriticalPath, Scope};
use fathom_query::{Db, Limits};
use fathom_session::{Session, on_latest};

use crate::analysis;
use crate::args::{CriticalPathArgs, CriticalPathFormat};
use crate::exit::Failure;

/// Runs `critical-path` and returns the exit status.
pub fn run(args: &CriticalPathArgs) -> Result<u8, Failure> {
    let mut session = analysis::open(&args.session)?;
    let path = on_latest(&mut session, |session| path(session, args)).map_err(Failure::input)?;
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
        CriticalPathFormat::Json => analysis::json(&path)?,
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
        scope(session, args)?,
    )?)
}

/// The time that options ask about.
fn scope(session: &Session, args: &CriticalPathArgs) -> Result<Scope, anyhow::Error> {
    let clock = &session.meta().clock;
    let (from_ns, until_ns) = analysis::window(args.from.as_deref(), args.until.as_deref(), clock)?;
    match (args.request, args.thread) {
        (Some(rid), _) => Ok(Scope::Request(rid)),
        (None, Some(tid)) => Ok(Scope::Thread {
            tid,
            from_ns,
            until_ns,
        }),
        (None, None) => anyhow::bail!("a path is of a request or a thread: --request or --thread"),
    }
}
