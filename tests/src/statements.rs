//! Statements on a session: its worker is kept for the next one.
//!
//! A test asks a session many things. A process for each spends most of its time on its start.

use std::cell::RefCell;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fathom_query::worker::{Form, Program, Statement, Worker};
use fathom_query::{Limits, QueryError, names_findings};

use crate::environment::fathom;

/// Workers of one test at a time.
const MOST: usize = 3;

/// A closed session as it is now: each change of it writes `session.json` again.
#[derive(PartialEq, Eq)]
struct Closed {
    session: PathBuf,
    inode: u64,
    changed: (i64, i64),
}

impl Closed {
    /// None for sessions in progress, sets, and what is no session.
    fn of(session: &Path) -> Option<Self> {
        let file = session.join("session.json");
        let meta = fs::metadata(&file).ok()?;
        let text = fs::read(&file).ok()?;
        let json: serde_json::Value = serde_json::from_slice(&text).ok()?;
        (json["state"] == "complete").then(|| Self {
            session: session.to_path_buf(),
            inode: meta.ino(),
            changed: (meta.ctime(), meta.ctime_nsec()),
        })
    }
}

thread_local! {
    /// Those of the running test, the last used last. They end with its thread.
    static WORKERS: RefCell<Vec<(Closed, Worker)>> = const { RefCell::new(Vec::new()) };
}

/// Runs a statement on a closed session: a JSON object per line. None if `fathom query` must be asked:
/// the session is in progress or damaged, or the statement names findings.
pub(crate) fn lines(session: &Path, sql: &str) -> Option<Result<Vec<u8>, QueryError>> {
    if names_findings(sql) {
        return None;
    }
    let closed = Closed::of(session)?;
    let taken = WORKERS.with_borrow_mut(|workers| {
        let place = workers.iter().position(|(of, _)| *of == closed)?;
        Some(workers.remove(place).1)
    });
    let mut worker = match taken {
        Some(worker) => worker,
        None => {
            let mut worker = Worker::start(&Program::at(fathom()), Limits::default()).ok()?;
            worker.open(session, &[]).ok()?;
            worker
        }
    };
    let statement = Statement {
        sql: sql.to_owned(),
        form: Form::LINES,
        findings: None,
        refresh: false,
    };
    let mut written = Vec::new();
    let outcome = worker.query(statement, |bytes| {
        written.extend_from_slice(bytes);
        Ok(())
    });
    if worker.is_usable() {
        WORKERS.with_borrow_mut(|workers| {
            if workers.len() >= MOST {
                workers.remove(0);
            }
            workers.push((closed, worker));
        });
    }
    Some(outcome.map(|_| written))
}
