//! `GET /sessions/ID/requests/RID/path`: the critical path of one request.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use fathom_path::{BlockPart, CriticalPath, Name, PathError, Scope, Segment, State as ThreadState};
use fathom_query::{Db, Limits, joined_rid};
use fathom_session::SessionSet;
use serde::Serialize;

use super::{Json, Shared};
use crate::columns::collect;
use crate::error::ApiError;
use crate::job::{Lane, Stop};
use crate::view::Reader;

/// Segments of their own in an answer: the longest ones.
const MOST: usize = 1000;
/// Threads in an answer: those with the most time.
const MOST_THREADS: usize = 100;

/// How the time of a segment passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) enum PathKind {
    /// On a CPU.
    Running,
    /// Waiting for a CPU.
    Runnable,
    /// Waiting, with the block request in the queue of its device.
    Queue,
    /// Waiting, with the block request in the device.
    Device,
    /// Waiting, with the block request completed.
    Completion,
    /// Waiting for something else.
    Waiting,
    /// The thread did not exist, or its state is not known.
    Unknown,
}

impl PathKind {
    fn of(segment: &Segment) -> Self {
        let part = segment.block.as_ref().and_then(|block| block.part);
        match (segment.state, part) {
            (ThreadState::Running, _) => Self::Running,
            (ThreadState::Runnable, _) => Self::Runnable,
            (ThreadState::Blocked, Some(BlockPart::Queue)) => Self::Queue,
            (ThreadState::Blocked, Some(BlockPart::Device)) => Self::Device,
            (ThreadState::Blocked, Some(BlockPart::Completion)) => Self::Completion,
            (ThreadState::Blocked, None) => Self::Waiting,
            (ThreadState::Absent | ThreadState::Unknown, _) => Self::Unknown,
        }
    }
}

/// A piece of the path, as `fathom critical-path --format json` has it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct PathSegment {
    /// When it begins, nanoseconds since the start of the recording.
    pub t: i64,
    pub dur_ns: i64,
    /// Number of waits that lead from the request's thread to this one.
    pub depth: usize,
    /// Host of the thread in the set that is served; null outside of a set.
    pub host: Option<String>,
    pub tid: i64,
    pub comm: Option<String>,
    pub kind: PathKind,
    /// Why it was off the CPU, or why its state is not known; null while it runs.
    pub reason: Option<String>,
    /// The call that it was in.
    pub syscall: Option<String>,
    /// The request that it was in.
    pub rid: Option<i64>,
    /// File of the block request, or else of the request.
    pub path: Option<String>,
    /// The cause of its wait; null unless it was blocked.
    pub culprit: Option<String>,
    /// Device of the block request that it waited for.
    pub device: Option<String>,
    /// The thread that goes on after it, because this one woke it.
    pub wakes: Option<Woken>,
}

/// A thread that goes on.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct Woken {
    /// As in [`PathSegment`].
    pub host: Option<String>,
    pub tid: i64,
}

/// Short segments between two others, summed up.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct PathRest {
    /// When the first one begins.
    pub t: i64,
    /// Their sum.
    pub dur_ns: i64,
    /// How many they are.
    pub segments: usize,
    /// Host of their thread; null outside of a set, and when they are of several threads.
    pub host: Option<String>,
    /// Their thread; null when they are of several.
    pub tid: Option<i64>,
    /// Their sums by kind.
    pub parts: Vec<PathPart>,
}

/// The time of a kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct PathPart {
    pub kind: PathKind,
    pub dur_ns: i64,
}

/// The time of a thread on the path.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct PathThread {
    /// As in [`PathSegment`].
    pub host: Option<String>,
    pub tid: i64,
    pub comm: Option<String>,
    pub dur_ns: i64,
}

/// The chain of segments that the time of a request consists of. `segments` and `rest` together add
/// up to `dur_ns`.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct PathAnswer {
    /// Why there is no path, as a sentence; null when there is one.
    pub why_not: Option<String>,
    /// The largest sum, as a sentence.
    pub headline: String,
    /// Host of the request's thread in the set that is served; null outside of a set.
    pub host: Option<String>,
    /// The thread of the request.
    pub tid: Option<i64>,
    /// When the request begins, nanoseconds since the start of the recording.
    pub from: i64,
    pub dur_ns: i64,
    /// In order of time: the longest ones.
    pub segments: Vec<PathSegment>,
    /// In order of time: the shorter ones between them.
    pub rest: Vec<PathRest>,
    /// Number of all segments.
    pub total: usize,
    /// In the order in which they appear; of many, those with the most time.
    pub threads: Vec<PathThread>,
    /// Sentences about time that the path cannot show.
    pub notes: Vec<String>,
}

/// `GET /sessions/ID/requests/RID/path`.
pub(crate) async fn path(
    State(app): State<Shared>,
    Path((id, rid)): Path<(String, String)>,
) -> Result<Json<PathAnswer>, ApiError> {
    let rid: i64 = rid
        .parse()
        .map_err(|_| ApiError::parameter("RID", "the id of a request is a number"))?;
    let library = app.library.clone();
    let query = move |reader: &Reader, _: &Stop| {
        let path = match library.set()? {
            Some(set) => gathered_in(set, reader, rid, library.limits())?,
            None => gathered(reader, rid),
        };
        answer(reader, rid, path)
    };
    app.jobs.query(id, Lane::Slow, query).await.map(Json)
}

/// A path, and the time on its clock at which the recording starts.
type Gathered = Result<(CriticalPath, i64), PathError>;

fn gathered(reader: &Reader, rid: i64) -> Gathered {
    let path = CriticalPath::gather(reader.db(), reader.session.meta(), Scope::Request(rid))?;
    Ok((path, reader.started_at_ns()))
}

/// The path across the hosts of a set.
fn gathered_in(
    mut set: SessionSet,
    reader: &Reader,
    rid: i64,
    limits: &Limits,
) -> Result<Gathered, ApiError> {
    let gone = || ApiError::not_found(&reader.id, "its set has changed: reload the page");
    let member = set
        .members()
        .position(|(member, _)| member.host == reader.id)
        .ok_or_else(gone)?;
    let db = Db::open_joined(&mut set, limits)?;
    let members: Vec<_> = set
        .members()
        .map(|(member, session)| (session.meta(), &member.clock))
        .collect();
    let back = members.get(member).ok_or_else(gone)?.1.map.inverse();
    let Some(joined) = joined_rid(member, rid) else {
        return Ok(Err(PathError::NoRequest(rid)));
    };
    let path = CriticalPath::gather_set(&db, &members, Scope::Request(joined));
    Ok(path.map(|path| {
        // Clocks differ by their rates, too: the request is where it is in its own recording.
        let since = back
            .apply(path.from_ns)
            .saturating_sub(reader.started_at_ns());
        let start_ns = path.from_ns.saturating_sub(since);
        (path, start_ns)
    }))
}

fn answer(reader: &Reader, rid: i64, path: Gathered) -> Result<PathAnswer, ApiError> {
    let why_not = match path {
        Ok((path, start_ns)) => return Ok(told(&path, start_ns, MOST)),
        Err(PathError::NoWaits) => {
            "The recording has no waits, so running and waiting cannot be distinguished: record with \
             --layers sched."
        }
        Err(PathError::Asynchronous(_)) => {
            "This is an operation of io_uring or AIO: its thread does other work meanwhile."
        }
        Err(PathError::NoDuration(_)) => "The end of this request was not seen.",
        Err(PathError::NoRequest(_)) if is_writeback(reader, rid)? => {
            "This is a write-back: no thread of a program waits in it."
        }
        Err(error) => return Err(refused(reader, rid, error)),
    };
    Ok(PathAnswer {
        why_not: Some(why_not.to_owned()),
        ..PathAnswer::default()
    })
}

fn is_writeback(reader: &Reader, rid: i64) -> Result<bool, ApiError> {
    let sql = format!("SELECT 1 AS one FROM writeback WHERE rid = {rid} LIMIT 1");
    Ok(collect(reader.db().run(&sql)?)?.num_rows() > 0)
}

fn refused(reader: &Reader, rid: i64, error: PathError) -> ApiError {
    let subject = format!("request {rid} of {}", reader.id);
    match error {
        PathError::Query(error) => ApiError::from(error),
        PathError::NoRequest(_) => {
            ApiError::not_found(subject, "it may have been lost, or dropped by --keep")
        }
        PathError::TooLong(most) => ApiError::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            format!("its critical path contains more than {most} waits or calls"),
            subject,
            "`fathom critical-path` explains a part of it: --thread with --from and --until",
        ),
        other => ApiError::internal(other.to_string()),
    }
}

fn text(name: Option<&Name>) -> Option<String> {
    name.map(Name::to_string)
}

/// The path with at most `most` segments of their own, times since `start_ns`.
fn told(path: &CriticalPath, start_ns: i64, most: usize) -> PathAnswer {
    let mut longest: Vec<usize> = (0..path.segments.len()).collect();
    longest.sort_by_key(|at| path.segments.get(*at).map(|s| std::cmp::Reverse(s.dur_ns)));
    let mut own = vec![false; path.segments.len()];
    for at in longest.into_iter().take(most) {
        if let Some(own) = own.get_mut(at) {
            *own = true;
        }
    }
    // A rest is not wider than this: its place in the request stays known.
    let widest_ns = path.dur_ns / most.max(1) as i64;
    let mut segments = Vec::new();
    let mut rest: Vec<PathRest> = Vec::new();
    let mut open = false;
    for (at, (segment, own)) in path.segments.iter().zip(own).enumerate() {
        if own {
            let next = path.segments.get(at + 1);
            segments.push(of_segment(segment, next, start_ns));
            open = false;
            continue;
        }
        match rest.last_mut().filter(|_| open) {
            Some(rest) => add(rest, segment),
            None => {
                let mut new = PathRest {
                    t: segment.ts_ns.saturating_sub(start_ns),
                    dur_ns: 0,
                    segments: 0,
                    host: text(segment.host.as_ref()),
                    tid: Some(segment.tid),
                    parts: Vec::new(),
                };
                add(&mut new, segment);
                rest.push(new);
            }
        }
        open = rest.last().is_some_and(|rest| rest.dur_ns < widest_ns);
    }
    PathAnswer {
        why_not: None,
        headline: path.headline.clone(),
        host: text(path.host.as_ref()),
        tid: Some(path.tid),
        from: path.from_ns.saturating_sub(start_ns),
        dur_ns: path.dur_ns,
        segments,
        rest,
        total: path.segments.len(),
        threads: threads(&path.segments),
        notes: path.notes.clone(),
    }
}

fn of_segment(segment: &Segment, next: Option<&Segment>, start_ns: i64) -> PathSegment {
    let block = segment.block.as_ref();
    let culprit = segment.culprit.as_ref();
    // From a deeper thread the path goes back to the one that waited for it.
    let other = |next: &Segment| next.tid != segment.tid || next.host != segment.host;
    let woken = next.filter(|next| next.depth < segment.depth && other(next));
    PathSegment {
        t: segment.ts_ns.saturating_sub(start_ns),
        dur_ns: segment.dur_ns,
        depth: segment.depth,
        host: text(segment.host.as_ref()),
        tid: segment.tid,
        comm: text(segment.comm.as_ref()),
        kind: PathKind::of(segment),
        reason: text(segment.reason.as_ref()),
        syscall: text(segment.syscall.as_ref()),
        rid: segment.rid,
        path: text(
            block
                .and_then(|b| b.path.as_ref())
                .or(segment.path.as_ref()),
        ),
        culprit: culprit.map(fathom_path::Culprit::describe),
        device: text(block.and_then(|block| block.device.as_ref())),
        wakes: woken.map(|next| Woken {
            host: text(next.host.as_ref()),
            tid: next.tid,
        }),
    }
}

fn add(rest: &mut PathRest, segment: &Segment) {
    rest.dur_ns = rest.dur_ns.saturating_add(segment.dur_ns);
    rest.segments += 1;
    let same = rest.tid == Some(segment.tid) && rest.host == text(segment.host.as_ref());
    if !same {
        (rest.host, rest.tid) = (None, None);
    }
    let kind = PathKind::of(segment);
    match rest.parts.iter_mut().find(|part| part.kind == kind) {
        Some(part) => part.dur_ns = part.dur_ns.saturating_add(segment.dur_ns),
        None => rest.parts.push(PathPart {
            kind,
            dur_ns: segment.dur_ns,
        }),
    }
}

fn threads(segments: &[Segment]) -> Vec<PathThread> {
    let mut places = std::collections::HashMap::new();
    let mut threads: Vec<PathThread> = Vec::new();
    for segment in segments {
        let thread = (segment.host.clone(), segment.tid);
        let place = *places.entry(thread).or_insert(threads.len());
        match threads.get_mut(place) {
            Some(thread) => {
                thread.dur_ns = thread.dur_ns.saturating_add(segment.dur_ns);
                if thread.comm.is_none() {
                    thread.comm = text(segment.comm.as_ref());
                }
            }
            None => threads.push(PathThread {
                host: text(segment.host.as_ref()),
                tid: segment.tid,
                comm: text(segment.comm.as_ref()),
                dur_ns: segment.dur_ns,
            }),
        }
    }
    if threads.len() > MOST_THREADS {
        let mut times: Vec<i64> = threads.iter().map(|thread| thread.dur_ns).collect();
        times.sort_unstable_by_key(|time| std::cmp::Reverse(*time));
        let least = times.get(MOST_THREADS - 1).copied().unwrap_or(0);
        threads.retain(|thread| thread.dur_ns >= least);
        threads.truncate(MOST_THREADS);
    }
    threads
}

#[cfg(test)]
mod tests;
