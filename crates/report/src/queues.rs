//! The queues of devices over time, and what was read ahead.

use fathom_query::Db;
use fathom_query::fetch::rows;
use fathom_query::read_row;
use serde::Serialize;

use crate::error::ReportError;
use crate::section::TOP;

/// Pieces of time for which the depth of a queue is given.
const WINDOWS: usize = 24;

/// The queue of a device over the time in which devices had requests.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "types", derive(schemars::JsonSchema))]
pub struct Queue {
    /// Name of the device.
    pub device: String,
    /// When the first window begins, CLOCK_MONOTONIC nanoseconds.
    pub begin_ns: i64,
    /// Length of a window.
    pub window_ns: i64,
    /// Mean number of requests in the device in each window, thousandths.
    pub depths: Vec<i64>,
    /// Mean number of requests in the device, thousandths.
    pub mean_depth: i64,
    /// Mean number of requests that waited for it, thousandths.
    pub mean_waiting: i64,
    /// Most requests that it had at a time.
    pub max_depth: i64,
    /// Most requests that waited for it at a time.
    pub max_waiting: i64,
}

/// Read-ahead of a file.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "types", derive(schemars::JsonSchema))]
pub struct ReadAhead {
    /// Id in table `files`.
    pub file_id: Option<i64>,
    /// Path.
    pub path: Option<String>,
    /// Bytes that were read ahead or along.
    pub bytes: i64,
    /// Of which were used.
    pub used_bytes: i64,
    /// Of which were not.
    pub wasted_bytes: i64,
}

/// A device in one window.
struct Piece {
    device: String,
    begin_ns: i64,
    window_ns: i64,
    window: i64,
    depth: i64,
    waiting: i64,
    max_depth: i64,
    max_waiting: i64,
}

/// The queues of all devices, the deepest first.
pub(crate) fn queues(db: &Db) -> Result<Vec<Queue>, ReportError> {
    let pieces = rows(
        db,
        &format!(
            "WITH steps AS (
                 SELECT device, ts_ns AS b, in_device, waiting,
                     lead(ts_ns) OVER (PARTITION BY device ORDER BY ts_ns) AS e
                 FROM device_queue),
             span AS (
                 SELECT min(b) AS begin_ns, (max(e) - min(b)) // {WINDOWS} + 1 AS width
                 FROM steps WHERE e > b),
             pieces AS (
                 SELECT *, unnest(range((b - begin_ns) // width, (e - 1 - begin_ns) // width + 1)) AS w
                 FROM steps, span WHERE e > b),
             parts AS (
                 SELECT *, least(e, begin_ns + (w + 1) * width) - greatest(b, begin_ns + w * width)
                     AS ns
                 FROM pieces)
             SELECT device, w, any_value(begin_ns) AS begin_ns, any_value(width) AS width,
                 (sum(in_device::HUGEINT * ns) * 1000 / any_value(width))::BIGINT AS depth,
                 (sum(waiting::HUGEINT * ns) * 1000 / any_value(width))::BIGINT AS waiting,
                 max(in_device)::BIGINT AS max_depth, max(waiting)::BIGINT AS max_waiting
             FROM parts GROUP BY device, w ORDER BY device, w"
        ),
        |row| {
            read_row!(row => Piece {
                device begin_ns window_ns = "width" window = "w" depth waiting max_depth
                max_waiting
            })
        },
    )?;
    let mut queues: Vec<Queue> = Vec::new();
    for piece in pieces {
        if queues.last().is_none_or(|q| q.device != piece.device) {
            queues.push(Queue {
                device: piece.device.clone(),
                begin_ns: piece.begin_ns,
                window_ns: piece.window_ns,
                depths: vec![0; WINDOWS],
                mean_depth: 0,
                mean_waiting: 0,
                max_depth: 0,
                max_waiting: 0,
            });
        }
        let Some(queue) = queues.last_mut() else {
            continue;
        };
        let window = usize::try_from(piece.window).ok();
        if let Some(depth) = window.and_then(|window| queue.depths.get_mut(window)) {
            *depth = piece.depth;
        }
        queue.mean_waiting += piece.waiting;
        queue.max_depth = queue.max_depth.max(piece.max_depth);
        queue.max_waiting = queue.max_waiting.max(piece.max_waiting);
    }
    for queue in &mut queues {
        queue.mean_depth = queue.depths.iter().sum::<i64>() / WINDOWS as i64;
        queue.mean_waiting /= WINDOWS as i64;
    }
    queues.sort_by_key(|queue| std::cmp::Reverse(queue.mean_depth));
    queues.truncate(TOP);
    Ok(queues)
}

/// Read-ahead of each file, most waste first.
pub(crate) fn read_ahead(db: &Db) -> Result<Vec<ReadAhead>, ReportError> {
    Ok(rows(
        db,
        &format!(
            "SELECT file_id, path, bounded(sum(bytes)) AS bytes,
                 bounded(sum(used_bytes)) AS used_bytes, bounded(sum(wasted_bytes)) AS wasted_bytes
             FROM readahead WHERE rid IS NOT NULL GROUP BY ALL
             ORDER BY wasted_bytes DESC, bytes DESC, path LIMIT {TOP}"
        ),
        |row| read_row!(row => ReadAhead { file_id path bytes used_bytes wasted_bytes }),
    )?)
}

/// A mean that is kept in thousandths.
pub(crate) fn thousandths(value: i64) -> String {
    format!("{}.{:02}", value / 1000, value % 1000 / 10)
}
