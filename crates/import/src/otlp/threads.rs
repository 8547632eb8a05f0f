//! The threads of a session, to judge what spans say about theirs.

use std::collections::HashMap;

use fathom_model::ColumnData;
use fathom_model::batch::NULL_I64;
use fathom_model::tables::PROCESSES;
use fathom_session::{Session, SessionError};

/// When the threads of a session were alive.
#[derive(Debug, Default)]
pub(super) struct Threads {
    /// Start and end by process and thread; `i64::MAX` for one that had not ended. One thread may
    /// have several rows: all are kept, and a row that says more comes later.
    lives: HashMap<(i32, i32), HashMap<i64, i64>>,
}

impl Threads {
    pub fn of(session: &Session) -> Result<Self, SessionError> {
        let columns = ["pid", "tid", "started_at_ns", "ended_at_ns"];
        let mut threads = Self::default();
        for batch in session.batches(&PROCESSES, Some(&columns)) {
            let batch = batch?;
            let column = |name: &str| {
                let at = batch.table.columns.iter().position(|c| c.name == name)?;
                batch.columns.get(at)
            };
            let (
                Some(ColumnData::I32(pids)),
                Some(ColumnData::I32(tids)),
                Some(ColumnData::I64(starts)),
                Some(ColumnData::I64(ends)),
            ) = (
                column("pid"),
                column("tid"),
                column("started_at_ns"),
                column("ended_at_ns"),
            )
            else {
                continue;
            };
            for ((pid, tid), (start, end)) in pids.iter().zip(tids).zip(starts.iter().zip(ends)) {
                threads.add(*pid, *tid, *start, (*end != NULL_I64).then_some(*end));
            }
        }
        Ok(threads)
    }

    pub fn add(&mut self, pid: i32, tid: i32, started_ns: i64, ended_ns: Option<i64>) {
        let lives = self.lives.entry((pid, tid)).or_default();
        lives.insert(started_ns, ended_ns.unwrap_or(i64::MAX));
    }

    /// Whether process `pid` had thread `tid` from `from_ns` to `until_ns`.
    pub fn had(&self, pid: i32, tid: i32, from_ns: i64, until_ns: i64) -> bool {
        let lives = self.lives.get(&(pid, tid));
        lives.is_some_and(|lives| {
            lives
                .iter()
                .any(|(start, end)| *start <= from_ns && until_ns <= *end)
        })
    }
}
