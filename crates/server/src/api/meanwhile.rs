//! `GET /sessions/ID/requests/RID/meanwhile`: what else happened while a request was under way.

use std::collections::HashMap;

use arrow::array::Array;
use arrow::record_batch::RecordBatch;
use axum::extract::{Path, State};
use fathom_query::Db;
use fathom_query::escape::sql_string;
use serde::Serialize;

use super::timeline::{begun_before, begun_in};
use super::{Json, Shared};
use crate::columns::{collect, numbers, texts};
use crate::error::ApiError;
use crate::job::{Lane, Stop};
use crate::selection::{Selection, Window};
use crate::view::Reader;

/// Buckets that the time of the request is divided into.
const BUCKETS: i64 = 240;
/// Devices in an answer at most.
const MOST_DEVICES: usize = 3;
/// Processes that are named per device; the others are summed up.
const MOST_OWNERS: usize = 6;
/// Threads in an answer at most.
const MOST_THREADS: usize = 8;

/// The devices and threads of the machine while a request was under way.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct Meanwhile {
    /// From the start of the request to its end.
    pub from: i64,
    pub to: i64,
    pub bucket_ns: i64,
    /// The devices that the request waited for; where it waited for none, the busiest ones.
    pub devices: Vec<MeanwhileDevice>,
    /// Whether the request itself had requests to these devices.
    pub own: bool,
    /// Other recorded threads that were in a call, the longest first.
    pub threads: Vec<MeanwhileThread>,
}

/// A device while a request was under way.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct MeanwhileDevice {
    pub name: String,
    /// By process, the one with the most requests at once first.
    pub owners: Vec<Owner>,
    /// Requests queued before the end of the request whose completion was not seen. How long they
    /// were in flight is not known, so no owner has them.
    pub unseen: f64,
}

/// The requests of a process to a device.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct Owner {
    /// Name of the thread that submitted the most; null when it is not known, and of the sum of
    /// all others.
    pub comm: Option<String>,
    /// Null when it is not known, and of the sum of all others.
    pub pid: Option<f64>,
    /// Whether the request caused or submitted these itself.
    pub own: bool,
    /// Requests that waited or were in the device at any time in between.
    pub requests: f64,
    pub bytes: f64,
    /// How many waited at once, mean of each bucket.
    pub waiting: Vec<f64>,
    /// How many were in the device at once, mean of each bucket.
    pub in_device: Vec<f64>,
}

/// A thread while a request was under way.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct MeanwhileThread {
    pub tid: f64,
    pub pid: Option<f64>,
    pub comm: Option<String>,
    /// Its calls in that time, and the part of that time that it was in them.
    pub calls: f64,
    pub time_ns: f64,
    /// The call with the longest part.
    pub rid: f64,
    pub syscall: String,
    pub path: Option<String>,
    /// When that call began and how long it took.
    pub t: f64,
    pub dur: f64,
}

/// `GET /sessions/ID/requests/RID/meanwhile`.
pub(crate) async fn meanwhile(
    State(app): State<Shared>,
    Path((id, rid)): Path<(String, String)>,
) -> Result<Json<Meanwhile>, ApiError> {
    let rid: i64 = rid
        .parse()
        .map_err(|_| ApiError::parameter("RID", "the id of a request is a number"))?;
    let query = move |reader: &Reader, stop: &Stop| answer(reader, stop, rid);
    app.jobs.query(id, Lane::Quick, query).await.map(Json)
}

fn answer(reader: &Reader, stop: &Stop, rid: i64) -> Result<Meanwhile, ApiError> {
    let start = reader.started_at_ns();
    let window = window_of(reader, rid)?;
    let bucket = ((window.to - window.from) / BUCKETS).max(1);
    let own = own_blocks(reader, rid)?;
    stop.check()?;
    let devices = devices(reader.db(), window, bucket, &own)?;
    stop.check()?;
    Ok(Meanwhile {
        from: window.from - start,
        to: window.to - start,
        bucket_ns: bucket,
        own: !own.is_empty(),
        devices,
        threads: threads(reader, window, rid)?,
    })
}

/// From the start of a request to its end.
fn window_of(reader: &Reader, rid: i64) -> Result<Window, ApiError> {
    for table in ["syscalls", "faults", "writeback"] {
        let found = collect(reader.db().run(&format!(
            "SELECT ts_ns::VARCHAR AS t, coalesce(dur_ns, 0)::VARCHAR AS dur FROM {table} \
             WHERE rid = {rid} ORDER BY ts_ns LIMIT 1"
        ))?)?;
        if found.num_rows() > 0 {
            let value = |name: &str| {
                let text = texts(&found, name)?;
                let value = text.iter().flatten().next().and_then(|t| t.parse().ok());
                Ok::<i64, ApiError>(value.unwrap_or(0))
            };
            let from = value("t")?;
            let to = from.saturating_add(value("dur")?.max(1));
            return Ok(Window { from, to });
        }
    }
    let what = format!("request {rid} of {}", reader.id);
    Err(ApiError::not_found(
        what,
        "it may have been lost, or dropped by --keep",
    ))
}

/// The ids of the requests to devices that a request caused or submitted.
fn own_blocks(reader: &Reader, rid: i64) -> Result<Vec<String>, ApiError> {
    let own = collect(reader.db().run(&format!(
        "SELECT block_id::VARCHAR AS id FROM block WHERE rid = {rid} \
         UNION SELECT block_id::VARCHAR FROM bios WHERE rid = {rid} \
         UNION SELECT block_id::VARCHAR FROM bios WHERE submit_rid = {rid} LIMIT 5000"
    ))?)?;
    Ok(texts(&own, "id")?
        .iter()
        .flatten()
        .map(str::to_owned)
        .collect())
}

fn devices(
    db: &Db,
    window: Window,
    bucket: i64,
    own: &[String],
) -> Result<Vec<MeanwhileDevice>, ApiError> {
    let Window { from, to } = window;
    // Times before the completion that were not seen leave the request where the next one that was
    // has it. Without its completion, a request may have been in flight or not.
    let seen = format!(
        "coalesce(queued_at_ns, started_at_ns, inserted_at_ns, issued_at_ns) < {to} \
         AND completed_at_ns > {from} AND ts_ns < {to}"
    );
    let unseen = format!("completed_at_ns IS NULL AND ts_ns < {to}");
    let is_own = match own.is_empty() {
        true => "false".to_string(),
        false => format!("block_id IN ({})", own.join(", ")),
    };
    let only = match own.is_empty() {
        true => format!("bool_or({seen})"),
        false => format!("bool_or({is_own})"),
    };
    let chosen = collect(db.run(&format!(
        "SELECT device, count(*) FILTER ({unseen})::DOUBLE AS unseen FROM block \
         WHERE ({seen} OR {unseen}) AND device <> '' GROUP BY device HAVING {only} \
         ORDER BY count(*) FILTER ({seen}) DESC, device LIMIT {MOST_DEVICES}"
    ))?)?;
    let unseen = numbers(&chosen, "unseen")?;
    let names: Vec<String> = texts(&chosen, "device")?
        .iter()
        .flatten()
        .map(str::to_owned)
        .collect();
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let listed: Vec<String> = names.iter().map(|name| sql_string(name)).collect();
    let rows = collect(db.run(&format!(
        "WITH r AS (SELECT device, pid, comm, {is_own} AS own, block_id, bytes, \
         coalesce(queued_at_ns, started_at_ns, inserted_at_ns, issued_at_ns) AS q, \
         coalesce(issued_at_ns, completed_at_ns) AS i, completed_at_ns AS c \
         FROM block WHERE {seen} AND device IN ({listed})), \
         p AS (SELECT device, pid, own, true AS waits, greatest(q, {from}) AS a, least(i, {to}) AS z FROM r \
         UNION ALL SELECT device, pid, own, false, greatest(i, {from}), least(c, {to}) FROM r), \
         b AS (SELECT *, unnest(range((a - {from}) // {bucket}, (z - 1 - {from}) // {bucket} + 1)) AS n \
         FROM p WHERE z > a) \
         SELECT device, pid::VARCHAR AS pid, own, waits, n::DOUBLE AS n, \
         sum(least(z, {from} + (n + 1) * {bucket}) - greatest(a, {from} + n * {bucket}))::DOUBLE \
         / {bucket} AS depth, \
         NULL::VARCHAR AS comm, NULL::DOUBLE AS requests, NULL::DOUBLE AS bytes FROM b GROUP BY ALL \
         UNION ALL SELECT device, pid::VARCHAR, own, NULL, NULL, NULL, mode(comm), \
         count(*)::DOUBLE, sum(bytes)::DOUBLE FROM r GROUP BY ALL",
        listed = listed.join(", "),
    ))?)?;
    let length = ((to - from + bucket - 1) / bucket).max(1) as usize;
    let owners = owners(&rows, length)?;
    Ok(names
        .into_iter()
        .zip(unseen.values())
        .map(|(name, unseen)| MeanwhileDevice {
            owners: most(owners.get(&name).cloned().unwrap_or_default(), length),
            unseen: *unseen,
            name,
        })
        .collect())
}

/// The processes of each device.
fn owners(rows: &RecordBatch, length: usize) -> Result<HashMap<String, Vec<Owner>>, ApiError> {
    let (device, pid) = (texts(rows, "device")?, texts(rows, "pid")?);
    let own = crate::columns::flags(rows, "own")?;
    let waits = crate::columns::flags(rows, "waits")?;
    let (n, depth) = (numbers(rows, "n")?, numbers(rows, "depth")?);
    let comm = texts(rows, "comm")?;
    let (requests, bytes) = (numbers(rows, "requests")?, numbers(rows, "bytes")?);
    let mut devices: HashMap<String, Vec<Owner>> = HashMap::new();
    for i in 0..rows.num_rows() {
        let all = devices.entry(device.value(i).to_string()).or_default();
        let who = pid.is_valid(i).then(|| pid.value(i).parse().ok()).flatten();
        let is_own = own.value(i);
        let at = match all.iter().position(|o| o.pid == who && o.own == is_own) {
            Some(at) => at,
            None => {
                all.push(Owner {
                    comm: None,
                    pid: who,
                    own: is_own,
                    requests: 0.0,
                    bytes: 0.0,
                    waiting: vec![0.0; length],
                    in_device: vec![0.0; length],
                });
                all.len() - 1
            }
        };
        let Some(owner) = all.get_mut(at) else {
            continue;
        };
        if waits.is_valid(i) {
            let series = match waits.value(i) {
                true => &mut owner.waiting,
                false => &mut owner.in_device,
            };
            if let Some(place) = series.get_mut(n.value(i) as usize) {
                *place += depth.value(i);
            }
        } else {
            owner.comm = comm.is_valid(i).then(|| comm.value(i).to_string());
            owner.requests = requests.value(i);
            owner.bytes = bytes.value(i);
        }
    }
    Ok(devices)
}

/// The request's own share first, then those with the most requests at once; the rest as one.
fn most(mut owners: Vec<Owner>, length: usize) -> Vec<Owner> {
    let weight = |owner: &Owner| -> f64 {
        let sums = owner.waiting.iter().chain(&owner.in_device);
        sums.sum::<f64>()
    };
    owners.sort_by(|a, b| {
        let by_weight = || weight(b).total_cmp(&weight(a));
        b.own.cmp(&a.own).then_with(by_weight)
    });
    if owners.len() <= MOST_OWNERS + 1 {
        return owners;
    }
    let rest = owners.split_off(MOST_OWNERS);
    let mut others = Owner {
        comm: None,
        pid: None,
        own: false,
        requests: 0.0,
        bytes: 0.0,
        waiting: vec![0.0; length],
        in_device: vec![0.0; length],
    };
    for owner in rest {
        others.requests += owner.requests;
        others.bytes += owner.bytes;
        for (to, from) in [
            (&mut others.waiting, &owner.waiting),
            (&mut others.in_device, &owner.in_device),
        ] {
            for (to, from) in to.iter_mut().zip(from) {
                *to += from;
            }
        }
    }
    owners.push(others);
    owners
}

/// Other recorded threads that were in a call.
fn threads(reader: &Reader, window: Window, rid: i64) -> Result<Vec<MeanwhileThread>, ApiError> {
    let start = reader.started_at_ns();
    let Window { from, to } = window;
    let everything = Selection::default();
    let select = "SELECT tid, pid, comm, rid, syscall, coalesce(path, path_arg) AS path, ts_ns, \
                  coalesce(dur_ns, 0) AS dur FROM";
    let mut selects = vec![begun_in(reader, &everything, window, select)?];
    selects.extend(begun_before(reader, &everything, window, select)?);
    let rows = collect(reader.db().run(&format!(
        "WITH c AS (SELECT *, least(ts_ns + dur, {to}) - greatest(ts_ns, {from}) AS part \
         FROM ({all})) \
         SELECT tid, any_value(pid) AS pid, any_value(comm) AS comm, count(*) AS calls, \
         sum(part)::DOUBLE AS time_ns, arg_max(rid, part) AS rid, arg_max(syscall, part) AS syscall, \
         arg_max(coalesce(path, ''), part) AS path, arg_max(ts_ns - {start}, part) AS t, \
         arg_max(dur, part) AS dur \
         FROM c WHERE tid NOT IN (SELECT tid FROM c WHERE rid = {rid}) \
         GROUP BY tid ORDER BY time_ns DESC, tid LIMIT {MOST_THREADS}",
        all = selects.join(" UNION ALL "),
    ))?)?;
    let number = |name: &str| numbers(&rows, name);
    let (tid, pid, calls) = (number("tid")?, number("pid")?, number("calls")?);
    let (time, call, t, dur) = (
        number("time_ns")?,
        number("rid")?,
        number("t")?,
        number("dur")?,
    );
    let (comm, syscall, path) = (
        texts(&rows, "comm")?,
        texts(&rows, "syscall")?,
        texts(&rows, "path")?,
    );
    Ok((0..rows.num_rows())
        .map(|i| MeanwhileThread {
            tid: tid.value(i),
            pid: pid.is_valid(i).then(|| pid.value(i)),
            comm: comm.is_valid(i).then(|| comm.value(i).to_string()),
            calls: calls.value(i),
            time_ns: time.value(i),
            rid: call.value(i),
            syscall: syscall.value(i).to_string(),
            path: Some(path.value(i).to_string()).filter(|p| path.is_valid(i) && !p.is_empty()),
            t: t.value(i),
            dur: dur.value(i),
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use fathom_query::Limits;
    use fathom_testkit::sample::{self, Files, START};
    use fathom_testkit::waits::{self, Block};

    use super::*;

    /// Thread 1 had one request in flight all the time. Of 50 requests of thread 2 no completion
    /// was seen.
    #[test]
    fn requests_without_a_completion_are_in_no_depth() {
        let block = |tid, queued_ns, issued_ns, completed_ns| Block {
            tid,
            rid: None,
            queued_ns,
            issued_ns,
            completed_ns,
        };
        let mut all = vec![block(1, 0, 500, 2_000)];
        all.extend((0..50).map(|i| block(2, 10 * i, 10 * i, waits::UNSEEN)));
        let dir = tempfile::tempdir().unwrap();
        let mut files = Files::new(dir.path());
        files.add(&waits::blocks(&all));
        let db = Db::open_parts(
            &sample::meta(),
            |table| files.parts(table),
            Limits::default(),
        )
        .unwrap();
        let window = Window {
            from: START,
            to: START + 1_000,
        };
        let found = devices(&db, window, 500, &[]).unwrap();
        let [device] = found.as_slice() else {
            panic!("{found:?}");
        };
        let [owner] = device.owners.as_slice() else {
            panic!("{device:?}");
        };
        assert_eq!((owner.pid, owner.requests), (Some(1.0), 1.0));
        assert_eq!(
            (owner.waiting.as_slice(), owner.in_device.as_slice()),
            ([1.0, 0.0].as_slice(), [0.0, 1.0].as_slice())
        );
        assert_eq!(device.unseen, 50.0);
        // A device is shown for the request's own requests, even if none was seen to complete.
        let own = devices(&db, window, 500, &["2".into()]).unwrap();
        assert_eq!(own.len(), 1);
    }

    fn owner(pid: f64, own: bool, waiting: f64) -> Owner {
        Owner {
            comm: Some("a".into()),
            pid: Some(pid),
            own,
            requests: 1.0,
            bytes: 10.0,
            waiting: vec![waiting],
            in_device: vec![0.0],
        }
    }

    #[test]
    fn the_rest_is_summed_up() {
        let mut all: Vec<Owner> = (0..9)
            .map(|i| owner(f64::from(i), false, f64::from(i)))
            .collect();
        all.push(owner(100.0, true, 0.5));
        let named = most(all, 1);
        assert_eq!(named.len(), MOST_OWNERS + 1);
        assert!(named[0].own);
        assert_eq!(named[1].pid, Some(8.0));
        let others = named.last().unwrap();
        assert_eq!(
            (others.pid, others.requests, others.bytes),
            (None, 4.0, 40.0)
        );
        assert_eq!(others.waiting, [6.0]);
    }
}
