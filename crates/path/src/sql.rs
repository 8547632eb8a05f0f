//! The rows of table function `critical_path`.

use fathom_model::meta::SessionMeta;
use fathom_query::{Db, PathCall, PathRow, QueryError};

use crate::{CriticalPath, Name, PathError, Scope, Segment};

/// The rows of a call of the function: what a worker for SQL is started with
/// ([`fathom_query::worker::serve`]).
///
/// # Errors
/// The errors of [`CriticalPath::gather`].
pub fn sql_rows(db: &Db, meta: &SessionMeta, call: PathCall) -> Result<Vec<PathRow>, QueryError> {
    let scope = match call {
        PathCall::Request(rid) => Scope::Request(rid),
        PathCall::Thread {
            tid,
            from_ns,
            until_ns,
        } => Scope::Thread {
            tid,
            from_ns,
            until_ns,
        },
    };
    match CriticalPath::gather(db, meta, scope) {
        Ok(path) => Ok(path.segments.iter().map(row).collect()),
        Err(PathError::Query(error)) => Err(error),
        Err(error) => Err(QueryError::CriticalPath(error.to_string())),
    }
}

fn row(segment: &Segment) -> PathRow {
    let text = |name: &Option<Name>| name.as_ref().map(|name| name.as_str().to_owned());
    let culprit = segment.culprit.as_ref();
    let block = segment.block.as_ref();
    let because = segment.because.as_ref();
    PathRow {
        ts_ns: segment.ts_ns,
        dur_ns: segment.dur_ns,
        depth: i64::try_from(segment.depth).unwrap_or(i64::MAX),
        tid: segment.tid,
        comm: text(&segment.comm),
        pid: segment.pid,
        process: text(&segment.process),
        state: segment.state.name(),
        reason: text(&segment.reason),
        syscall: text(&segment.syscall),
        rid: segment.rid,
        path: text(&segment.path),
        culprit_kind: culprit.map(|culprit| culprit.kind.name()),
        culprit: culprit.and_then(|culprit| text(&culprit.name)),
        culprit_tid: culprit.and_then(|culprit| culprit.tid),
        block_ts_ns: block.map(|block| block.ts_ns),
        block_device: block.and_then(|block| text(&block.device)),
        block_op: block.and_then(|block| text(&block.op)),
        block_bytes: block.map(|block| block.bytes),
        block_path: block.and_then(|block| text(&block.path)),
        block_part: block.and_then(|block| block.part).map(|part| part.name()),
        because_tid: because.map(|because| because.tid),
        because_reason: because.and_then(|because| text(&because.reason)),
        because_syscall: because.and_then(|because| text(&because.syscall)),
        because_rid: because.and_then(|because| because.rid),
    }
}
