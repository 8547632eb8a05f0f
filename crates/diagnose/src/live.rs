//! The rules while a session is recorded: findings as they become true.
//!
//! Rows are copied over a bounded channel to a thread of the lowest priority. If it does not keep
//! up, rows are left out and counted, and the rules know that the absence of a call proves nothing.
//! A finding is reported after it has held at two checks, a second apart: an operation that has not
//! ended looks like an omission.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::Path;

use fathom_model::Batch;
use fathom_model::meta::SessionMeta;
use fathom_model::tables::{FILES, PROCESSES, SLICES, SYSCALLS, Table};
use fathom_session::{SessionError, remove_findings, write_findings};

use crate::engine::{Diagnosis, Engine};
use crate::finding::Finding;
use crate::layers;
use crate::rule::Input;
use crate::session::prepare;

/// Number of consecutive checks in which a finding must hold before it is reported: an operation in
/// progress looks like an omission.
const HOLDS: u32 = 2;

/// A key that identifies a finding within its rule.
type Subject = (
    &'static str,
    Option<i32>,
    Option<i32>,
    Option<i64>,
    Option<String>,
);

/// The rules over rows as they are recorded.
#[derive(Debug)]
pub struct Live {
    engine: Engine,
    /// Number of consecutive checks in which unreported findings held.
    seen: HashMap<Subject, u32>,
    told: HashSet<Subject>,
}

impl Live {
    /// Rules for a recording that says this of itself.
    pub fn new(meta: &SessionMeta) -> Self {
        let mut engine = Engine::default();
        prepare(&mut engine, meta);
        engine.lacks(Input::Slices, "looked at when the recording has ended");
        Self {
            engine,
            seen: HashMap::new(),
            told: HashSet::new(),
        }
    }

    /// Whether rules look at rows of a table.
    pub fn wants(table: &Table) -> bool {
        let below = layers::TABLES.iter().map(|(table, ..)| table.name);
        let known = [SYSCALLS.name, FILES.name, PROCESSES.name];
        // There are several for each call.
        below.chain(known).any(|name| name == table.name) && table.name != SLICES.name
    }

    /// Rows that were recorded in the same time, of any tables.
    pub fn feed<'a>(&mut self, batches: impl IntoIterator<Item = &'a Batch>) {
        self.engine.feed_together(batches);
    }

    /// Rows were left out, or lost: the absence of a call proves nothing any more.
    pub fn missed(&mut self) {
        self.engine.has_gaps();
    }

    /// The findings so far, and the ones to report for the first time. At the `end` of the
    /// recording all findings are reported.
    pub fn look(&mut self, end: bool) -> (Diagnosis, Vec<Finding>) {
        // The sum of many small losses is asked for once, as it takes long.
        self.engine.set_minor(end);
        let diagnosis = self.engine.diagnosis();
        let mut seen = HashMap::new();
        let mut new = Vec::new();
        for finding in &diagnosis.findings {
            let subject = subject(finding);
            if self.told.contains(&subject) || seen.contains_key(&subject) {
                continue;
            }
            let times = self.seen.get(&subject).map_or(1, |n| n + 1);
            if end || times >= HOLDS {
                self.told.insert(subject);
                new.push(finding.clone());
            } else {
                seen.insert(subject, times);
            }
        }
        self.seen = seen;
        (diagnosis, new)
    }
}

fn subject(finding: &Finding) -> Subject {
    let s = &finding.subject;
    (finding.rule, s.pid, s.tid, s.file_id, s.path.clone())
}

/// Writes the findings so far next to the tables of a session in progress, for other processes.
///
/// # Errors
/// When the file cannot be written.
pub fn write_current(session: &Path, diagnosis: &Diagnosis) -> io::Result<()> {
    let json = serde_json::to_vec(diagnosis)?;
    write_findings(session, &json).map_err(io::Error::other)
}

/// Removes it: a session that is complete is diagnosed as a whole.
///
/// # Errors
/// When it is there and cannot be removed.
pub fn remove_current(session: &Path) -> Result<(), SessionError> {
    remove_findings(session)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    #[test]
    fn a_finding_is_told_once_when_it_holds() {
        let mut live = Live {
            engine: Engine::default(),
            seen: HashMap::new(),
            told: HashSet::new(),
        };
        for input in [
            Input::Content,
            Input::Cache,
            Input::Faults,
            Input::Block,
            Input::Interrupts,
        ] {
            live.engine.lacks(input, "made up");
        }
        assert!(live.look(false).1.is_empty());
        let mut s = Scenario::new();
        let fd = s.open("/data/log", "O_WRONLY|O_CREAT");
        for _ in 0..100 {
            s.write(fd, 100);
            s.fsync(fd);
        }
        live.feed(&s.batches());
        let (diagnosis, new) = live.look(false);
        assert!(!diagnosis.findings.is_empty() && new.is_empty());
        let (diagnosis, new) = live.look(false);
        assert_eq!(new.len(), diagnosis.findings.len());
        assert!(live.look(false).1.is_empty());
        assert!(live.look(true).1.is_empty());
    }

    #[test]
    fn what_was_found_so_far_can_be_read_by_others() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let (diagnosis, _) = Live {
            engine: Engine::default(),
            seen: HashMap::new(),
            told: HashSet::new(),
        }
        .look(true);
        write_current(dir, &diagnosis).unwrap();
        let json = std::fs::read(dir.join("findings.json")).unwrap();
        assert_eq!(json, serde_json::to_vec(&diagnosis).unwrap());
        remove_current(dir).unwrap();
        remove_current(dir).unwrap();
        assert_eq!(std::fs::read_dir(dir).unwrap().count(), 0);
    }
}
