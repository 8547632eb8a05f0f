//! `GET /sessions/ID/requests/RID`: one request through the layers.

use std::collections::HashMap;

use arrow::array::Array;
use axum::Extension;
use axum::extract::{Path, State};
use fathom_model::tables::{
    BIOS, BLOCK, FAULTS, IRQS, PERF_COUNTERS, SLICES, SYSCALLS, Table, WAITS, WRITEBACK,
};
use fathom_query::escape::sql_name;
use serde::Serialize;

use super::{Json, Shared};
use crate::access::{Caller, Role};
use crate::columns::{collect, numbers, texts};
use crate::error::ApiError;
use crate::job::{Lane, Stop};
use crate::tables::{Row, columns_sql, rows};
use crate::view::Reader;

/// Rows of a table that belong to a request, at most.
const MOST: usize = 5000;
/// Requests to devices up to which it is looked for what stood before each.
const MOST_AHEAD: usize = 16;
/// Calls of the thread before and after it.
const NEIGHBOURS: usize = 10;
/// How far neighbors are looked for, nanoseconds: further when there are too few.
const REACH_NS: [i64; 4] = [10_000_000, 1_000_000_000, 100_000_000_000, i64::MAX];

/// A request, and everything that was seen below it. Rows have the columns of their
/// tables, with times since the start.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct RequestAnswer {
    /// The table that its row is in: syscalls, faults or writeback.
    pub table: String,
    /// Its row.
    #[cfg_attr(test, ts(type = "Row"))]
    pub row: Row,
    /// Visits of layers, in order of time.
    #[cfg_attr(test, ts(type = "Row[]"))]
    pub slices: Vec<Row>,
    /// Times off the CPU.
    #[cfg_attr(test, ts(type = "Row[]"))]
    pub waits: Vec<Row>,
    /// Interrupts.
    #[cfg_attr(test, ts(type = "Row[]"))]
    pub irqs: Vec<Row>,
    /// Requests to devices that it caused or submitted.
    pub block: Vec<BlockRequest>,
    /// Its perf counters: one row, or none if they were not recorded.
    #[cfg_attr(test, ts(type = "Row[]"))]
    pub counters: Vec<Row>,
    /// Calls of the thread before and after it, in order of time.
    pub neighbors: Neighbors,
}

/// A request to a device.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct BlockRequest {
    /// Its row.
    #[cfg_attr(test, ts(type = "Row"))]
    pub row: Row,
    /// Its bios, including bios of other requests.
    #[cfg_attr(test, ts(type = "Row[]"))]
    pub bios: Vec<Row>,
    /// Requests before it when it was queued; null if not observed, and for a request with many
    /// block requests.
    pub ahead: Option<Ahead>,
}

/// Requests that a device had, or that waited for it, when another one was queued.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct Ahead {
    pub requests: f64,
    pub bytes: f64,
    /// Name of the threads that submitted the most bytes of them.
    pub comm: Option<String>,
}

/// Calls of a thread around a request.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct Neighbors {
    #[cfg_attr(test, ts(type = "Row[]"))]
    pub before: Vec<Row>,
    #[cfg_attr(test, ts(type = "Row[]"))]
    pub after: Vec<Row>,
}

/// `GET /sessions/ID/requests/RID`.
pub(crate) async fn request(
    State(app): State<Shared>,
    Extension(caller): Extension<Caller>,
    Path((id, rid)): Path<(String, String)>,
) -> Result<Json<RequestAnswer>, ApiError> {
    let rid: i64 = rid
        .parse()
        .map_err(|_| ApiError::parameter("RID", "the id of a request is a number"))?;
    let query = move |reader: &Reader, stop: &Stop| answer(reader, stop, rid, caller.role);
    app.jobs.query(id, Lane::Quick, query).await.map(Json)
}

/// The rows of a table that a condition holds for, in order of time.
fn of(reader: &Reader, table: &Table, condition: &str, role: Role) -> Result<Vec<Row>, ApiError> {
    let columns = columns_sql(table, reader.started_at_ns(), role);
    rows(&collect(reader.db().run(&format!(
        "SELECT {columns} FROM {name} AS t WHERE {condition} ORDER BY t.ts_ns LIMIT {MOST}",
        name = sql_name(table.name),
    ))?)?)
}

fn answer(reader: &Reader, stop: &Stop, rid: i64, role: Role) -> Result<RequestAnswer, ApiError> {
    let condition = format!("rid = {rid}");
    let mut found = None;
    for table in [&SYSCALLS, &FAULTS, &WRITEBACK] {
        // An operation that completes several times has several rows.
        if let Some(row) = of(reader, table, &condition, role)?.into_iter().next() {
            found = Some((table, row));
            break;
        }
    }
    let (table, row) = found.ok_or_else(|| {
        let what = format!("request {rid} of {}", reader.id);
        ApiError::not_found(what, "it may have been lost, or dropped by --keep")
    })?;
    stop.check()?;
    let mut slices = of(reader, &SLICES, &condition, role)?;
    let order = |row: &Row| {
        let number = |name: &str| row.get(name).and_then(|v| v.as_f64()).unwrap_or(0.0);
        (number("ts_ns"), number("depth"))
    };
    slices.sort_by(|a, b| {
        order(a)
            .partial_cmp(&order(b))
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    Ok(RequestAnswer {
        table: table.name.to_string(),
        slices,
        waits: of(reader, &WAITS, &condition, role)?,
        irqs: of(reader, &IRQS, &condition, role)?,
        block: block(reader, rid, role)?,
        counters: of(reader, &PERF_COUNTERS, &condition, role)?,
        neighbors: neighbors(reader, stop, &row, role)?,
        row,
    })
}

fn block(reader: &Reader, rid: i64, role: Role) -> Result<Vec<BlockRequest>, ApiError> {
    // One condition at a time: what holds of either has all row groups read, where what is in the
    // footers of the parts leaves few of them for each.
    let own = collect(reader.db().run(&format!(
        "SELECT block_id::BIGINT AS block_id FROM block WHERE rid = {rid} \
         UNION SELECT block_id FROM bios WHERE rid = {rid} \
         UNION SELECT block_id FROM bios WHERE submit_rid = {rid} \
         ORDER BY block_id LIMIT {MOST}"
    ))?)?;
    let ids: Vec<String> = texts(&own, "block_id")?
        .iter()
        .flatten()
        .map(str::to_owned)
        .collect();
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let condition = format!("block_id IN ({})", ids.join(", "));
    let requests = of(reader, &BLOCK, &condition, role)?;
    let number = |row: &Row| row.get("block_id").and_then(|v| v.as_i64());
    let mut ahead = match ids.len() <= MOST_AHEAD {
        true => ahead(reader, &ids)?,
        false => HashMap::new(),
    };
    let bios = of(reader, &BIOS, &condition, role)?;
    let bios_of = |id: Option<i64>| bios.iter().filter(|b| number(b) == id).cloned().collect();
    Ok(requests
        .into_iter()
        .map(|row| BlockRequest {
            bios: bios_of(number(&row)),
            ahead: number(&row).and_then(|id| ahead.remove(&id)),
            row,
        })
        .collect())
}

/// Requests before block requests when they were queued, by their ids: requests that had been
/// queued before and had not completed.
fn ahead(reader: &Reader, ids: &[String]) -> Result<HashMap<i64, Ahead>, ApiError> {
    let rows = collect(reader.db().run(&format!(
        "WITH own AS (SELECT block_id, device, queued_at_ns FROM block \
         WHERE queued_at_ns IS NOT NULL AND block_id IN ({})), \
         others AS (SELECT own.block_id, o.comm, count(o.block_id) AS n, \
         coalesce(sum(o.bytes), 0) AS bytes \
         FROM own LEFT JOIN block AS o ON o.device = own.device AND o.queued_at_ns < own.queued_at_ns \
         AND o.completed_at_ns > own.queued_at_ns GROUP BY ALL) \
         SELECT block_id::DOUBLE AS id, sum(n)::DOUBLE AS n, sum(bytes)::DOUBLE AS bytes, \
         arg_max(comm, bytes) AS comm FROM others GROUP BY 1",
        ids.join(", ")
    ))?)?;
    let (id, n) = (numbers(&rows, "id")?, numbers(&rows, "n")?);
    let (bytes, comm) = (numbers(&rows, "bytes")?, texts(&rows, "comm")?);
    let found = (0..rows.num_rows()).map(|i| {
        let ahead = Ahead {
            requests: n.value(i),
            bytes: bytes.value(i),
            comm: comm.is_valid(i).then(|| comm.value(i).to_string()),
        };
        (id.value(i) as i64, ahead)
    });
    Ok(found.collect())
}

/// The calls of the thread just before and after a request.
fn neighbors(reader: &Reader, stop: &Stop, row: &Row, role: Role) -> Result<Neighbors, ApiError> {
    let number = |name: &str| row.get(name).and_then(|v| v.as_i64());
    let (Some(tid), Some(at), Some(rid)) = (number("tid"), number("ts_ns"), number("rid")) else {
        return Ok(Neighbors::default());
    };
    let start = reader.started_at_ns();
    let at = at.saturating_add(start);
    let columns = columns_sql(&SYSCALLS, start, role);
    let side = |before: bool| {
        let mut found = Vec::new();
        for reach in REACH_NS {
            stop.check()?;
            let (window, order) = match before {
                true => (at.saturating_sub(reach)..at.saturating_add(1), "DESC"),
                false => (at..at.saturating_add(reach), "ASC"),
            };
            let compare = if before { "<" } else { ">" };
            found = rows(&collect(reader.db().run(&format!(
                "SELECT {columns} FROM (SELECT * FROM {source} WHERE tid = {tid} \
                 AND ts_ns >= {from} AND ts_ns < {to} AND (ts_ns, rid) {compare} ({at}, {rid}) \
                 ORDER BY ts_ns {order}, rid {order} LIMIT {NEIGHBOURS})",
                source = reader.zoom.calls_in(window.clone())?,
                from = window.start,
                to = window.end,
            ))?)?)?;
            if found.len() >= NEIGHBOURS {
                break;
            }
        }
        let order = |row: &Row| {
            let number = |name: &str| row.get(name).and_then(|v| v.as_i64());
            (number("ts_ns"), number("rid"))
        };
        found.sort_by_key(order);
        Ok::<_, ApiError>(found)
    };
    Ok(Neighbors {
        before: side(true)?,
        after: side(false)?,
    })
}
