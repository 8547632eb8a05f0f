//! Reads the rows that a walk needs, as far as it needs them.
//!
//! A walk names the threads and times whose rows it lacks. They are read, and the walk is repeated;
//! each round follows the wake-ups one thread further, so there are few rounds.

mod hosts;
mod queries;
mod waits;

use std::collections::BTreeSet;

use crate::PathError;
use crate::critical_path::{CriticalPath, Scope};
use crate::headline::headline;
use crate::label::label;
use crate::name::Names;
use crate::rows::Rows;
use crate::segment::totals;
use crate::walk::{MAX_DEPTH, Walk, walk};
use fathom_model::layers::Layer;
use fathom_model::meta::{SessionMeta, State as SessionState};
use fathom_model::set::MemberClock;
use fathom_model::units;
use fathom_query::{Db, own_rid, own_tid};
use waits::{Coverage, Waits};

/// The recording, or the recordings of a set, that a path is in.
#[derive(Clone, Copy)]
struct Recording {
    start_ns: i64,
    end_ns: i64,
    coverage: Coverage,
}

/// Whether the waits of threads were recorded.
fn has_waits(meta: &SessionMeta) -> bool {
    let mut layers = meta.layers.iter();
    layers.any(|layer| layer.name == Layer::Sched && layer.recorded)
}

impl CriticalPath {
    /// The path of `scope` in the session that `db` was opened on.
    ///
    /// # Errors
    /// When the session has no such request or thread, when it has no waits, and when a query fails.
    pub fn gather(db: &Db, meta: &SessionMeta, scope: Scope) -> Result<Self, PathError> {
        if !has_waits(meta) {
            return Err(PathError::NoWaits);
        }
        let (start_ns, end_ns) = queries::recording(db, meta)?;
        let coverage = Coverage {
            older_ns: match meta.command.is_empty() {
                true => start_ns,
                false => queries::first_start(db)?.map_or(start_ns, |first| first.max(start_ns)),
            },
            complete: meta.state == SessionState::Complete,
        };
        let recording = Recording {
            start_ns,
            end_ns,
            coverage,
        };
        Self::within(db, recording, scope)
    }

    /// The path of `scope` in the set that `db` was opened on by [`Db::open_joined`]. `members` are its
    /// sessions with their clocks. Ids in `scope` are joined ones; in the result they are the ids in
    /// the sessions, and `host` names the session.
    ///
    /// # Errors
    /// The errors of [`CriticalPath::gather`].
    pub fn gather_set(
        db: &Db,
        members: &[(&SessionMeta, &MemberClock)],
        scope: Scope,
    ) -> Result<Self, PathError> {
        if !members.iter().all(|(meta, _)| has_waits(meta)) {
            return Err(PathError::NoWaits);
        }
        let starts = members
            .iter()
            .map(|(meta, clock)| clock.map.apply(meta.clock.start_monotonic_ns));
        let ends = members.iter().map(|(meta, clock)| {
            let end = meta.clock.end_monotonic_ns;
            end.map(|end| clock.map.apply(end))
        });
        // Of recordings that go on, or whose recorder was killed, the last row.
        let ends: Option<Vec<i64>> = ends.collect();
        let end_ns = match ends {
            Some(ends) => ends.into_iter().max(),
            None => queries::last_end(db)?,
        };
        let recording = Recording {
            start_ns: starts.clone().min().unwrap_or(0),
            end_ns: end_ns.unwrap_or(0),
            coverage: Coverage {
                older_ns: starts.max().unwrap_or(0),
                complete: members
                    .iter()
                    .all(|(meta, _)| meta.state == SessionState::Complete),
            },
        };
        let mut path = Self::within(db, recording, scope)?;
        path.name_clocks(db.hosts(), members);
        Ok(path)
    }

    fn within(db: &Db, recording: Recording, scope: Scope) -> Result<Self, PathError> {
        let Recording {
            start_ns,
            end_ns,
            coverage,
        } = recording;
        let mut names = Names::default();
        let (tid, rid, from_ns, until_ns) = match scope {
            Scope::Request(rid) => {
                let request = queries::request(db, rid)?.ok_or(PathError::NoRequest(rid))?;
                if request.asynchronous {
                    return Err(PathError::Asynchronous(rid));
                }
                let dur_ns = request.dur_ns.ok_or(PathError::NoDuration(rid))?;
                let until_ns = request.ts_ns.saturating_add(dur_ns);
                (request.tid, Some(rid), request.ts_ns, until_ns)
            }
            Scope::Thread {
                tid,
                from_ns,
                until_ns,
            } => {
                let life = queries::life(db, tid)?.ok_or(PathError::NoThread(tid))?;
                let end_ns = end_ns.max(start_ns);
                let from_ns = from_ns.or(life.0).unwrap_or(start_ns);
                let until_ns = until_ns.or(life.1).unwrap_or(end_ns);
                let clip = |ns: i64| ns.clamp(start_ns, end_ns);
                (tid, None, clip(from_ns), clip(until_ns))
            }
        };
        if from_ns >= until_ns && rid.is_none() {
            return Err(PathError::Outside(units::duration(
                end_ns.saturating_sub(start_ns),
            )));
        }
        let mut waits = Waits::default();
        let mut rows = Rows::default();
        let mut path = Walk::default();
        // The first round reads the thread itself, the last one the block requests.
        for _ in 0..MAX_DEPTH + 2 {
            path = walk(&rows, tid, from_ns, until_ns);
            if path.missing.is_empty() && path.missing_blocks.is_empty() {
                break;
            }
            let lacking = std::mem::take(&mut path.missing);
            waits.read(db, &lacking, tid, coverage, &mut rows, &mut names)?;
            queries::blocks(db, &path.missing_blocks, &mut rows, &mut names)?;
        }
        let mut notes = Vec::new();
        let all_periods = queries::has_all_periods(db)?;
        if !all_periods {
            notes.push(
                "The recording contains waits in requests only: what threads did outside of them \
                 is unknown."
                    .to_owned(),
            );
        }
        let lost = queries::lost(db)?;
        if lost > 0 {
            notes.push(format!(
                "{} rows of layer sched were lost: time that is shown as running may contain waits.",
                units::count(lost)
            ));
        }
        let mut segments = path.segments;
        let tids: BTreeSet<i64> = segments.iter().map(|segment| segment.tid).collect();
        match queries::calls(db, &tids, from_ns, until_ns, &mut names)? {
            Some(calls) => {
                let none = Vec::new();
                for tid in tids {
                    let calls = calls.get(&tid).unwrap_or(&none);
                    segments = label(segments, tid, calls, !all_periods);
                }
            }
            None if all_periods => notes.push(format!(
                "Running segments are not split by call: the window has more than {} calls.",
                units::count(queries::MAX_CALLS)
            )),
            None => return Err(PathError::TooLong(queries::MAX_CALLS as usize)),
        }
        if let [_, _, ..] = db.hosts() {
            hosts::name(&mut segments, db.hosts(), &mut names);
        }
        let totals = totals(&segments);
        let life = rows
            .threads
            .get(&tid)
            .and_then(|thread| thread.life_at(until_ns));
        let mut path = Self {
            headline: String::new(),
            host: hosts::of(tid, db.hosts(), &mut names),
            tid: own_tid(tid),
            comm: life.and_then(|life| life.comm.clone()),
            pid: life.and_then(|life| life.pid),
            rid: rid.map(own_rid),
            from_ns,
            until_ns,
            dur_ns: until_ns.saturating_sub(from_ns),
            segments,
            totals,
            clocks: Vec::new(),
            notes,
        };
        path.headline = headline(&path);
        Ok(path)
    }
}
