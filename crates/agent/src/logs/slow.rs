//! The slowest requests of a saved session among those for which its condition holds, each with the
//! sentences of `fathom why`.
//!
//! Processes of their own read the session. Which requests were described before is on disk, so that
//! sessions that were saved of one recording, which have rows in common, give each request once.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fathom_probe::realtime_ns;
use fathom_session::{Session, discard};
use serde::{Deserialize, Serialize};

use super::record::{Origin, Record, Request, request};
use crate::child::{self, Outcome};
use crate::config::Redaction;

/// How many of them are remembered: more than a recording keeps.
const REMEMBERED: usize = 1000;
/// Rows of calls that ended this long before a save may be missing in it.
const LATE_NS: i64 = 2_000_000_000;
/// Until the processes that read a session are ended.
const PATIENCE: Duration = Duration::from_secs(600);

/// A saved session whose requests are to be described.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saved {
    /// Its directory.
    pub session: PathBuf,
    /// When it was asked for, CLOCK_MONOTONIC nanoseconds.
    pub at_ns: i64,
}

/// The requests of the latest recording that were described.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Described {
    /// Its id.
    recording: String,
    /// When its last save was asked for.
    at_ns: i64,
    /// The requests.
    rids: Vec<i64>,
}

/// Reads slow requests.
#[derive(Debug)]
pub struct SlowRequests {
    /// The program that has the commands.
    pub program: PathBuf,
    /// How many of a session at most.
    pub most: u16,
    /// The condition on rows of table `syscalls`.
    pub condition: String,
    /// For what leaves the host.
    pub redaction: Option<Redaction>,
}

/// Logs, and what is described with them.
pub struct Found {
    /// The logs.
    pub records: Vec<Record>,
    /// To be kept once the logs are.
    pub described: Described,
}

/// Why nothing was read.
pub enum Early {
    /// The agent is to end.
    Stopped,
    /// The reason.
    Failed(String),
}

impl SlowRequests {
    /// Reads the requests of a session that are not described; `copy` is the place of a redacted one.
    /// `stopped` waits a moment, and returns true to end.
    ///
    /// # Errors
    /// When the session is gone, a process fails, or it takes too long.
    pub fn read(
        &self,
        saved: &Saved,
        described: Described,
        copy: &Path,
        stopped: &mut dyn FnMut() -> bool,
    ) -> Result<Found, Early> {
        let since = Instant::now();
        let late = || since.elapsed() > PATIENCE;
        let found = self.found(saved, described, copy, &mut || stopped() || late());
        if self.redaction.is_some() {
            discard(copy).ok();
        }
        found.map_err(|early| match early {
            Early::Stopped if late() => Early::Failed("it took too long".to_owned()),
            early => early,
        })
    }

    fn found(
        &self,
        saved: &Saved,
        mut described: Described,
        copy: &Path,
        stopped: &mut dyn FnMut() -> bool,
    ) -> Result<Found, Early> {
        let mut run = |arguments: &[OsString]| match child::run(&self.program, arguments, stopped) {
            Outcome::Done(answer) => Ok(answer),
            Outcome::Stopped => Err(Early::Stopped),
            Outcome::Failed(why) => Err(Early::Failed(why)),
        };
        let failed = |error: &dyn std::fmt::Display| Early::Failed(error.to_string());
        let meta = Session::read_meta(&saved.session).map_err(|error| failed(&error))?;
        if described.recording != meta.recording() {
            described = Described {
                recording: meta.recording().to_owned(),
                at_ns: i64::MIN,
                rids: Vec::new(),
            };
        }
        let statement = self.statement(&described);
        let answer = run(&query(&saved.session, &statement))?;
        let rids: Vec<Rid> = serde_json::from_slice(&answer).map_err(|error| failed(&error))?;
        let rids: Vec<i64> = rids.iter().map(|row| row.rid).collect();
        described.at_ns = saved.at_ns;
        described.rids.extend(&rids);
        let surplus = described.rids.len().saturating_sub(REMEMBERED);
        described.rids.drain(..surplus);
        let mut records = Vec::new();
        if rids.is_empty() {
            return Ok(Found { records, described });
        }
        let (session, because) = match &self.redaction {
            None => (saved.session.as_path(), meta.history.saved_because.clone()),
            Some(redaction) => {
                let mut arguments = words(&["redact", "--force", "--output"]);
                arguments.push(copy.into());
                arguments.extend(redaction.arguments());
                arguments.push(saved.session.clone().into());
                run(&arguments)?;
                let copied = Session::read_meta(copy).map_err(|error| failed(&error))?;
                (copy, copied.history.saved_because)
            }
        };
        let statement = format!(
            "SELECT rid, ts_ns, dur_ns, pid, tid, comm, syscall, errno, path, bytes FROM syscalls \
             WHERE rid IN ({}) ORDER BY dur_ns DESC, rid",
            list(&rids)
        );
        let answer = run(&query(session, &statement))?;
        let requests: Vec<Request> =
            serde_json::from_slice(&answer).map_err(|error| failed(&error))?;
        let origin = Origin {
            session: &meta.id,
            recording: meta.recording(),
            because: &because,
        };
        for one in &requests {
            let mut arguments = words(&["why", "--format=json", "--extensions=none", "--request"]);
            arguments.push(one.rid.to_string().into());
            arguments.push(session.into());
            let story: Story =
                serde_json::from_slice(&run(&arguments)?).map_err(|error| failed(&error))?;
            let at_ns = meta.clock.realtime_of(one.ts_ns.saturating_add(one.dur_ns));
            let now_ns = i64::try_from(realtime_ns()).unwrap_or(i64::MAX);
            records.push(request(one, &story.text(), &origin, at_ns, now_ns));
        }
        Ok(Found { records, described })
    }

    /// Asks for the requests that are to be described.
    fn statement(&self, described: &Described) -> String {
        let after = described.at_ns.saturating_sub(LATE_NS);
        let known = match described.rids.is_empty() {
            true => String::new(),
            false => format!(" AND rid NOT IN ({})", list(&described.rids)),
        };
        format!(
            "SELECT rid FROM syscalls WHERE ({}\n) AND ts_ns + dur_ns > {after}{known} \
             ORDER BY dur_ns DESC, rid LIMIT {}",
            self.condition, self.most
        )
    }
}

fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

fn query(session: &Path, statement: &str) -> Vec<OsString> {
    let mut arguments = words(&["query", "--format=json", "--extensions=none"]);
    arguments.push(session.into());
    arguments.push(statement.into());
    arguments
}

fn list(rids: &[i64]) -> String {
    let rids: Vec<String> = rids.iter().map(i64::to_string).collect();
    rids.join(", ")
}

#[derive(Deserialize)]
struct Rid {
    rid: i64,
}

/// The answer of `fathom why`, as far as it is read here.
#[derive(Deserialize)]
struct Story {
    sentences: Vec<Sentence>,
}

#[derive(Deserialize)]
struct Sentence {
    pieces: Vec<Piece>,
}

#[derive(Deserialize)]
struct Piece {
    text: String,
}

impl Story {
    fn text(&self) -> String {
        let sentence = |sentence: &Sentence| {
            let pieces = sentence.pieces.iter().map(|piece| piece.text.as_str());
            pieces.collect::<String>()
        };
        let sentences: Vec<String> = self.sentences.iter().map(sentence).collect();
        sentences.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_requests_and_earlier_ones_are_not_asked_for() {
        let slow = SlowRequests {
            program: "/bin/false".into(),
            most: 3,
            condition: "dur_ns > 1e9 -- slow".into(),
            redaction: None,
        };
        let described = Described {
            recording: "a".into(),
            at_ns: 5_000_000_000,
            rids: vec![4, 9],
        };
        assert_eq!(
            slow.statement(&described),
            "SELECT rid FROM syscalls WHERE (dur_ns > 1e9 -- slow\n) AND ts_ns + dur_ns > 3000000000 \
             AND rid NOT IN (4, 9) ORDER BY dur_ns DESC, rid LIMIT 3"
        );
    }

    #[test]
    fn sentences_are_joined() {
        let story: Story = serde_json::from_str(
            r#"{"facts": 1, "sentences": [{"pieces": [{"text": "A", "link": null}, {"text": " b."}]},
                {"pieces": [{"text": "C."}]}]}"#,
        )
        .unwrap();
        assert_eq!(story.text(), "A b. C.");
    }
}
