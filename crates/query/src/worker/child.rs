//! The worker itself: what runs in the child process.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use fathom_session::{Session, SessionError, SessionSet};

use super::confine::{self, Confined};
use super::frames::{self, ASK, BYTES, DONE, FAILED, READY};
use super::{Ask, Failure, Form, Outcome, Statement};
use crate::engine;
use crate::output::{self, Options, plain};
use crate::{Db, FindPath, Limits, QueryError, UserView};

/// Tries of a statement on a session that is being recorded: parts may be merged while it reads
/// them.
const TRIES: u32 = 6;
/// Number of times that a recording is followed before it is opened again: the database also
/// remembers the footers of parts that were merged since.
const FOLLOWED: u32 = 200;
/// Between tries.
const PAUSE: Duration = Duration::from_millis(20);

/// An error that ends the worker.
type Broken = Box<dyn std::error::Error + Send + Sync>;

/// Runs a worker on standard input and output until the parent has gone. The process confines
/// itself before it opens anything of a session, so nothing else may happen in it. `find_path`
/// computes the rows of table function `critical_path`.
///
/// # Errors
/// When the parent sends what is no request, when its pipes fail, and when the process cannot
/// be confined.
pub fn serve(find_path: FindPath) -> Result<(), Broken> {
    let mut input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let Some(Ask::Open {
        path,
        dirs,
        memory_bytes,
        threads,
        time,
        views,
    }) = next(&mut input)?
    else {
        return Ok(());
    };
    let path = Path::new(OsStr::from_bytes(&path));
    let dirs: Vec<&Path> = dirs
        .iter()
        .map(|dir| Path::new(OsStr::from_bytes(dir)))
        .collect();
    let limits = Limits {
        memory_bytes,
        threads,
        time,
    };
    // While the process may still open files.
    if let Err(error) = engine::load() {
        return tell(&mut output, FAILED, &Failure::from(error));
    }
    let confined = match confine::confine(path, &dirs) {
        Ok(confined) => confined,
        Err(e) => {
            let why = format!("it cannot drop its privileges: {e}");
            return tell(&mut output, FAILED, &Failure::Other(why));
        }
    };
    // The parent may go while a query runs, which does not look at its input.
    std::thread::Builder::new()
        .name("parent-watch".into())
        .spawn(confine::end_with_parent)?;
    let opened = same_dirs(path, &dirs).and_then(|()| Opened::open(path, limits, views, find_path));
    let opened = opened.and_then(|opened| {
        let limited = confined.limit_memory(memory_bytes);
        limited.map_err(|e| QueryError::Worker(format!("its memory cannot be limited: {e}")))?;
        Ok(opened)
    });
    let mut opened = match opened {
        Ok(opened) => opened,
        Err(error) => return tell(&mut output, FAILED, &Failure::from(error)),
    };
    frames::write(&mut output, READY, &[])?;
    while let Some(ask) = next(&mut input)? {
        let Ask::Query(statement) = ask else {
            return Err("a second session".into());
        };
        match opened.answer(&statement, &confined, &mut output) {
            Ok(outcome) => tell(&mut output, DONE, &outcome)?,
            Err(error) => tell(&mut output, FAILED, &Failure::from(error))?,
        }
    }
    Ok(())
}

/// Refuses a set that has changed since the parent named the directories of its sessions, which are
/// what this process may read.
fn same_dirs(path: &Path, dirs: &[&Path]) -> Result<(), QueryError> {
    match fathom_session::dirs_of(path) {
        Ok(now) if now == dirs => Ok(()),
        Ok(_) => Err(QueryError::Worker("the set has changed; try again".into())),
        Err(e) => Err(QueryError::Worker(e.to_string())),
    }
}

fn next(input: &mut File) -> Result<Option<Ask>, Broken> {
    let mut payload = Vec::new();
    match frames::read(input, frames::MOST_ASKED, &mut payload)? {
        Some(ASK) => Ok(Some(serde_json::from_slice(&payload)?)),
        Some(_) => Err("no request".into()),
        None => Ok(None),
    }
}

fn tell(output: &mut File, tag: u8, value: &impl serde::Serialize) -> Result<(), Broken> {
    let mut json = serde_json::to_vec(value)?;
    // A text as long as that is the user's own statement.
    if json.len() > frames::MOST {
        json = serde_json::to_vec(&Failure::Other("its error message is too long".into()))?;
    }
    Ok(frames::write(output, tag, &json)?)
}

/// One session, or several as one.
#[allow(clippy::large_enum_variant)]
enum Sessions {
    One(Session),
    Set(SessionSet),
}

impl Sessions {
    fn open(path: &Path) -> Result<Self, SessionError> {
        match SessionSet::is_set(path) {
            true => SessionSet::open(path).map(Self::Set),
            false => Session::open(path).map(Self::One),
        }
    }

    fn all(&self) -> Vec<&Session> {
        match self {
            Self::One(session) => vec![session],
            Self::Set(set) => set.members().map(|(_, session)| session).collect(),
        }
    }

    fn is_live(&self) -> bool {
        self.all().iter().any(|session| session.is_live())
    }

    fn refresh(&mut self) -> Result<(), SessionError> {
        match self {
            Self::One(session) => session.refresh(),
            Self::Set(set) => set.refresh(),
        }
    }

    /// The database over their newest state.
    fn db(&mut self, limits: &Limits, views: &[UserView]) -> Result<Db, QueryError> {
        let db = match self {
            Self::One(session) => Db::open_latest(session, limits),
            Self::Set(set) => Db::open_set_latest(set, limits),
        }?;
        db.add_views(views)?;
        Ok(db)
    }
}

/// A state of the session.
struct Opened {
    sessions: Sessions,
    db: Db,
    limits: Limits,
    views: Vec<UserView>,
    find_path: FindPath,
    /// How often it was followed since it was opened.
    followed: u32,
}

impl Opened {
    fn open(
        path: &Path,
        limits: Limits,
        views: Vec<UserView>,
        find_path: FindPath,
    ) -> Result<Self, QueryError> {
        let mut sessions = Sessions::open(path).map_err(|e| QueryError::Worker(e.to_string()))?;
        let db = sessions.db(&limits, &views)?;
        Ok(Self {
            sessions,
            db,
            limits,
            views,
            find_path,
            followed: 0,
        })
    }

    /// The session as it is now.
    fn refresh(&mut self) -> Result<(), QueryError> {
        let before = match &self.sessions {
            Sessions::One(session) => Some(session.clone()),
            Sessions::Set(_) => None,
        };
        let refreshed = self.sessions.refresh();
        refreshed.map_err(|e| QueryError::Worker(e.to_string()))?;
        if let (Some(before), Sessions::One(session)) = (before, &self.sessions)
            && before.is_live()
            && session.is_live()
            && before.meta().id == session.meta().id
            && self.followed < FOLLOWED
            && let Ok(db) = self.db.follow(&before, session)
        {
            self.db = db;
            self.followed += 1;
            return Ok(());
        }
        self.followed = 0;
        self.db = self.sessions.db(&self.limits, &self.views)?;
        Ok(())
    }

    fn answer(
        &mut self,
        statement: &Statement,
        confined: &Confined,
        output: &mut File,
    ) -> Result<Outcome, QueryError> {
        if statement.refresh {
            self.refresh()?;
        }
        if let Some(time) = self.limits.time {
            confined.limit_processor_time(time);
        }
        let mut out = Pieces {
            output,
            waiting: Vec::new(),
            sent: false,
        };
        let mut tries = TRIES;
        loop {
            let result = self.run(statement, &mut out);
            tries -= 1;
            match result {
                // Nothing of the first try is kept, or all of it.
                Err(error)
                    if error.may_be_stale()
                        && self.sessions.is_live()
                        && !out.sent
                        && tries > 0 =>
                {
                    out.waiting.clear();
                    std::thread::sleep(PAUSE);
                    self.refresh()?;
                }
                Ok(outcome) => {
                    out.send()?;
                    return Ok(outcome);
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn run(&self, statement: &Statement, out: &mut Pieces<'_>) -> Result<Outcome, QueryError> {
        let started = Instant::now();
        if let Some(findings) = &statement.findings {
            self.db.set_findings(findings)?;
        }
        let checked = self.db.check(&statement.sql)?;
        if let Sessions::One(session) = &self.sessions {
            let meta = session.meta();
            self.db.fill_paths(&checked, meta, self.find_path)?;
        } else {
            self.db.refuse_paths(&checked)?;
        }
        let rows = self.db.run(&checked.sql)?;
        let (rows, cut) = match statement.form {
            Form::Output {
                format,
                width,
                color,
                terminal,
                exact,
            } => {
                let options = Options {
                    width,
                    color,
                    terminal,
                    exact,
                };
                (output::write(rows, format, &options, &mut *out)?, false)
            }
            Form::Page { max_rows } => {
                let (batch, cut) = plain::collect(rows, max_rows)?;
                plain::write(&batch, &mut *out)?;
                (batch.num_rows() as u64, cut)
            }
        };
        Ok(Outcome {
            rows,
            cut,
            elapsed: started.elapsed(),
        })
    }
}

/// Bytes of a result, sent in pieces.
struct Pieces<'a> {
    output: &'a mut File,
    waiting: Vec<u8>,
    sent: bool,
}

impl Pieces<'_> {
    fn send(&mut self) -> io::Result<()> {
        if !self.waiting.is_empty() {
            self.sent = true;
            frames::write(self.output, BYTES, &self.waiting)?;
            self.waiting.clear();
        }
        Ok(())
    }
}

impl Write for Pieces<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = frames::PIECE - self.waiting.len();
        let taken = bytes.get(..room).unwrap_or(bytes);
        self.waiting.extend_from_slice(taken);
        if self.waiting.len() >= frames::PIECE {
            self.send()?;
        }
        Ok(taken.len())
    }

    /// Writers flush for reasons of their own; a piece goes when it is full, or at the end.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
