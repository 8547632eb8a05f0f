//! `GET /sessions/ID/flame`: the time of calls and page faults by process, file, call, layer, and the owner of the
//! requests that were ahead of them on a device.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use arrow::array::Array;
use axum::extract::{Path, State};
use fathom_model::layers::Layer;
use fathom_query::together;
use fathom_query::zoom::PAGE_FAULT;
use serde::Serialize;

use super::Shared;
use crate::calls::{self, Calls};
use crate::columns::{ArrowAnswer, Columns, collect, numbers, texts};
use crate::error::ApiError;
use crate::job::{Lane, Stop};
use crate::selection::{Params, Selection, SelectionParams, Window};
use crate::view::Reader;

/// Rows of an answer at most; files with less time share rows beyond that.
const MOST: usize = 20_000;
/// Calls in the window up to which their layers are looked at.
const MOST_READ: f64 = 1e7;
/// Layer of calls.
const SYSCALL: &str = "syscall";
/// Requests of the block layer that were queued so long before the window may be ahead of others.
const BEFORE_NS: i64 = 5_000_000_000;

/// Description of an answer.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct FlameMeta {
    /// The window.
    pub from: i64,
    pub to: i64,
    /// Sum of the durations of the calls and page faults, which is the sum of the rows.
    pub total_ns: f64,
    /// Whether the time of each call is split by layer; not with very many calls.
    pub layers: bool,
    /// Files that share rows because there are too many.
    pub other_files: usize,
    /// Files with a smaller share of the time are shown as one frame of their directory, ...
    pub little: f64,
    /// ... if a frame has so many of them or more.
    pub many: usize,
    /// The directory contains at least this share of these files, and of their time.
    pub nearly_all: f64,
}

/// `GET /sessions/ID/flame`.
pub(crate) async fn flame(
    State(app): State<Shared>,
    Path(id): Path<String>,
    Params(selection): Params<SelectionParams>,
) -> Result<ArrowAnswer, ApiError> {
    let selection = selection.parse()?;
    let query = move |reader: &Reader, stop: &Stop| answer(reader, stop, &selection);
    app.jobs.query(id, Lane::Slow, query).await
}

/// Whose time it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Caller {
    pid: i64,
    file: Option<i64>,
    call: String,
}

/// A row of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Frame {
    caller: Caller,
    layer: String,
    ahead: Option<String>,
}

fn answer(reader: &Reader, stop: &Stop, selection: &Selection) -> Result<ArrowAnswer, ApiError> {
    let start = reader.started_at_ns();
    let window = selection.window(start, reader.span());
    let calls = Calls::of(reader, selection, window)?;
    let mut requests = format!(
        "SELECT rid, pid, file_id, syscall, dur_ns FROM {}",
        calls.and("dur_ns IS NOT NULL")
    );
    if let Some(faults) = calls::faults(reader, selection, window)? {
        requests.push_str(&format!(
            " UNION ALL SELECT rid, pid, file_id, '{PAGE_FAULT}', dur_ns FROM {faults} \
             AND dur_ns IS NOT NULL"
        ));
    }
    let totals = totals(reader, &requests)?;
    let total_ns: f64 = totals.values().map(|t| t.0).sum();
    let count: f64 = totals.values().map(|t| t.1).sum();
    let with_layers = count <= MOST_READ && reader.session.rows("slices") > 0;
    stop.check()?;
    let mut frames: HashMap<Frame, f64> = HashMap::new();
    if with_layers {
        by_layer(reader, stop, &requests, window, &mut frames)?;
    }
    complete(&mut frames, &totals);
    stop.check()?;
    let names = Names::of(reader, &totals)?;
    // Processes and files of one name are one frame each.
    let mut rows: HashMap<[Option<String>; 5], f64> = HashMap::new();
    for (frame, ns) in frames {
        *rows.entry(names.row(frame)).or_default() += ns;
    }
    let mut rows: Vec<([Option<String>; 5], f64)> = rows.into_iter().collect();
    rows.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let other_files = share(&mut rows);
    let mut columns = Columns::default();
    for (i, name) in ["process", "file", "syscall", "layer", "ahead"]
        .into_iter()
        .enumerate()
    {
        columns.words(name, rows.iter().map(|row| row.0[i].as_deref()));
    }
    columns.numbers("ns", rows.iter().map(|row| row.1));
    columns.answer(&FlameMeta {
        from: window.from - start,
        to: window.to - start,
        total_ns,
        layers: with_layers,
        other_files,
        little: together::LITTLE,
        many: together::MANY,
        nearly_all: together::NEARLY_ALL,
    })
}

/// Time and number of calls by process, file and call.
fn totals(reader: &Reader, requests: &str) -> Result<HashMap<Caller, (f64, f64)>, ApiError> {
    let rows = collect(reader.db().run(&format!(
        "SELECT pid, file_id, syscall, sum(dur_ns)::DOUBLE AS ns, count(*)::DOUBLE AS calls \
         FROM ({requests}) GROUP BY ALL"
    ))?)?;
    let (ns, count) = (numbers(&rows, "ns")?, numbers(&rows, "calls")?);
    let callers = callers(&rows)?;
    let sums = ns.iter().flatten().zip(count.iter().flatten());
    Ok(callers.into_iter().zip(sums).collect())
}

fn callers(rows: &arrow::record_batch::RecordBatch) -> Result<Vec<Caller>, ApiError> {
    let (pid, file) = (numbers(rows, "pid")?, numbers(rows, "file_id")?);
    let call = texts(rows, "syscall")?;
    Ok((0..rows.num_rows())
        .map(|i| Caller {
            pid: pid.value(i) as i64,
            file: file.is_valid(i).then(|| file.value(i) as i64),
            call: call.value(i).to_string(),
        })
        .collect())
}

/// Adds the time that visits of layers took themselves.
fn by_layer(
    reader: &Reader,
    stop: &Stop,
    requests: &str,
    window: Window,
    frames: &mut HashMap<Frame, f64>,
) -> Result<(), ApiError> {
    let visits = |condition: &str, more: &str| {
        format!(
            "SELECT pid, file_id, syscall, layer{more}, sum(self_ns)::DOUBLE AS ns FROM slices \
             JOIN (SELECT rid, pid, file_id, syscall FROM ({requests})) USING (rid) \
             WHERE slices.ts_ns >= {} AND {condition} GROUP BY ALL HAVING sum(self_ns) > 0",
            window.from,
        )
    };
    let mut add = |sql: &str, ahead: &HashMap<i64, String>| -> Result<(), ApiError> {
        let rows = collect(reader.db().run(sql)?)?;
        let (layer, ns) = (texts(&rows, "layer")?, numbers(&rows, "ns")?);
        let rid = match ahead.is_empty() {
            true => None,
            false => Some(numbers(&rows, "rid")?),
        };
        for (i, caller) in callers(&rows)?.into_iter().enumerate() {
            let owner = rid
                .as_ref()
                .and_then(|rid| ahead.get(&(rid.value(i) as i64)));
            let frame = Frame {
                caller,
                layer: layer.value(i).to_string(),
                ahead: owner.cloned(),
            };
            *frames.entry(frame).or_default() += ns.value(i);
        }
        Ok(())
    };
    let ahead = ahead(reader, window)?;
    stop.check()?;
    if ahead.is_empty() {
        return add(&visits("true", ""), &ahead);
    }
    add(
        &visits("layer NOT IN ('block', 'device')", ""),
        &HashMap::new(),
    )?;
    stop.check()?;
    add(&visits("layer IN ('block', 'device')", ", rid"), &ahead)
}

/// The program that had submitted most of the bytes that a device still had to move when a request
/// arrived there, by request of a program. If a request has several block requests, the longest
/// counts. Empty for requests that found the device idle.
fn ahead(reader: &Reader, window: Window) -> Result<HashMap<i64, String>, ApiError> {
    let rows = collect(reader.db().run(&format!(
        "SELECT b.block_id, b.device, b.comm, b.bytes, b.queued_at_ns, b.completed_at_ns, \
         coalesce(i.rid, b.rid) AS rid \
         FROM block AS b LEFT JOIN (SELECT DISTINCT block_id, rid FROM bios WHERE rid IS NOT NULL) \
         AS i USING (block_id) \
         WHERE b.queued_at_ns IS NOT NULL AND b.completed_at_ns >= {} AND b.queued_at_ns >= {} \
         ORDER BY b.queued_at_ns, b.block_id",
        window.from,
        window.from.saturating_sub(BEFORE_NS),
    ))?)?;
    let (id, bytes) = (numbers(&rows, "block_id")?, numbers(&rows, "bytes")?);
    let (device, comm) = (texts(&rows, "device")?, texts(&rows, "comm")?);
    let (queued, completed) = (
        numbers(&rows, "queued_at_ns")?,
        numbers(&rows, "completed_at_ns")?,
    );
    let rid = numbers(&rows, "rid")?;
    let mut devices: HashMap<&str, Outstanding<'_>> = HashMap::new();
    let mut longest: HashMap<i64, (i64, String)> = HashMap::new();
    let (mut last, mut owner) = (None, None);
    for i in 0..rows.num_rows() {
        let (from, to) = (queued.value(i) as i64, completed.value(i) as i64);
        // A request to a device has a row for each request of a program that it serves.
        if last != Some(id.value(i) as i64) {
            last = Some(id.value(i) as i64);
            let outstanding = devices.entry(device.value(i)).or_default();
            outstanding.complete(from);
            owner = outstanding.owner().map(str::to_string);
            outstanding.add(comm.value(i), bytes.value(i) as i64, to);
        }
        if let (true, Some(owner)) = (rid.is_valid(i), &owner) {
            let known = longest.entry(rid.value(i) as i64).or_default();
            if to - from > known.0 {
                *known = (to - from, owner.clone());
            }
        }
    }
    Ok(longest
        .into_iter()
        .map(|(rid, found)| (rid, found.1))
        .collect())
}

/// The pending work of a device.
#[derive(Default)]
struct Outstanding<'a> {
    ends: BinaryHeap<Reverse<(i64, &'a str, i64)>>,
    /// Bytes and requests by program.
    owners: HashMap<&'a str, (i64, i64)>,
}

impl<'a> Outstanding<'a> {
    /// Removes what is complete at a time.
    fn complete(&mut self, now: i64) {
        while let Some(Reverse((end, comm, bytes))) = self.ends.peek().copied() {
            if end > now {
                break;
            }
            self.ends.pop();
            if let Some(sum) = self.owners.get_mut(comm) {
                *sum = (sum.0 - bytes, sum.1 - 1);
            }
        }
    }

    /// The program with most bytes.
    fn owner(&self) -> Option<&'a str> {
        let busy = self.owners.iter().filter(|(_, sum)| sum.1 > 0);
        let most = busy.max_by_key(|(comm, sum)| (**sum, Reverse(**comm)));
        most.map(|(comm, _)| *comm)
    }

    fn add(&mut self, comm: &'a str, bytes: i64, end: i64) {
        self.ends.push(Reverse((end, comm, bytes)));
        let sum = self.owners.entry(comm).or_default();
        *sum = (sum.0 + bytes, sum.1 + 1);
    }
}

/// Attributes the time of requests that no visit accounts for to the layer of calls, or to the page
/// cache if they are page faults, so that the frames add up to the durations exactly.
fn complete(frames: &mut HashMap<Frame, f64>, totals: &HashMap<Caller, (f64, f64)>) {
    let mut visited: HashMap<&Caller, f64> = HashMap::new();
    for (frame, ns) in frames.iter() {
        *visited.entry(&frame.caller).or_default() += ns;
    }
    let rests: Vec<(Caller, f64)> = totals
        .iter()
        .map(|(caller, total)| {
            let seen = visited.get(caller).copied().unwrap_or(0.0);
            (caller.clone(), total.0 - seen)
        })
        .collect();
    for (caller, rest) in rests {
        if rest > 0.0 {
            let layer = match caller.call == PAGE_FAULT {
                true => Layer::PageCache.name().to_string(),
                false => SYSCALL.to_string(),
            };
            let frame = Frame {
                caller,
                layer,
                ahead: None,
            };
            *frames.entry(frame).or_default() += rest;
        } else if rest < 0.0 {
            // An operation that completes several times shares its visits: scale them.
            let total = totals.get(&caller).map_or(0.0, |t| t.0);
            scale(frames, &caller, total);
        }
    }
}

/// Scales the frames of a caller to a sum, in whole nanoseconds.
fn scale(frames: &mut HashMap<Frame, f64>, caller: &Caller, total: f64) {
    let mut own: Vec<&mut f64> = frames
        .iter_mut()
        .filter(|(frame, _)| frame.caller == *caller)
        .map(|(_, ns)| ns)
        .collect();
    let sum: f64 = own.iter().map(|ns| **ns).sum();
    let mut left = total;
    for ns in &mut own {
        **ns = (**ns * total / sum.max(1.0)).floor();
        left -= **ns;
    }
    if let Some(first) = own.into_iter().next() {
        *first += left;
    }
}

/// Names of processes and paths of files.
struct Names {
    processes: HashMap<String, String>,
    files: HashMap<String, String>,
}

impl Names {
    fn of(reader: &Reader, totals: &HashMap<Caller, (f64, f64)>) -> Result<Self, ApiError> {
        let mut pids: Vec<i64> = totals.keys().map(|c| c.pid).collect();
        let mut files: Vec<i64> = totals.keys().filter_map(|c| c.file).collect();
        for ids in [&mut pids, &mut files] {
            ids.sort_unstable();
            ids.dedup();
        }
        let names = |kind: &str, ids: &[i64]| {
            let ids: Vec<String> = ids.iter().map(i64::to_string).collect();
            let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
            Ok::<_, ApiError>(super::top::names_of(reader, kind, &ids)?.unwrap_or_default())
        };
        Ok(Self {
            processes: names("process", &pids)?,
            files: names("file", &files)?,
        })
    }

    fn row(&self, frame: Frame) -> [Option<String>; 5] {
        let Caller { pid, file, call } = frame.caller;
        let pid = pid.to_string();
        let process = self.processes.get(&pid).cloned().unwrap_or(pid);
        let file = file.map(|id| {
            let id = id.to_string();
            self.files.get(&id).cloned().unwrap_or(id)
        });
        [
            Some(process),
            file,
            Some(call),
            Some(frame.layer),
            frame.ahead,
        ]
    }
}

/// Leaves at most [`MOST`] rows, in order of their time: the files of the others become one.
/// Returns how many files that are.
fn share(rows: &mut Vec<([Option<String>; 5], f64)>) -> usize {
    if rows.len() <= MOST {
        return 0;
    }
    let mut files = std::collections::HashSet::new();
    let mut shared: HashMap<[Option<String>; 5], f64> = HashMap::new();
    for (mut row, ns) in rows.drain(MOST..) {
        if let Some(file) = row[1].take() {
            files.insert(file);
            row[1] = Some("other files".to_string());
        }
        *shared.entry(row).or_default() += ns;
    }
    rows.extend(shared);
    files.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(call: &str) -> Caller {
        Caller {
            pid: 1,
            file: None,
            call: call.to_string(),
        }
    }

    fn frame(call: &str, layer: &str) -> Frame {
        Frame {
            caller: caller(call),
            layer: layer.to_string(),
            ahead: None,
        }
    }

    #[test]
    fn frames_add_up_to_the_calls() {
        let totals = HashMap::from([
            (caller("read"), (100.0, 2.0)),
            (caller("write"), (10.0, 1.0)),
            (caller("fsync"), (7.0, 1.0)),
        ]);
        let mut frames = HashMap::from([
            (frame("read", "device"), 60.0),
            (frame("write", "device"), 16.0),
            (frame("write", "block"), 5.0),
        ]);
        complete(&mut frames, &totals);
        assert_eq!(frames[&frame("read", SYSCALL)], 40.0);
        assert_eq!(frames[&frame("fsync", SYSCALL)], 7.0);
        let written = frames[&frame("write", "device")] + frames[&frame("write", "block")];
        assert_eq!(written, 10.0);
        assert_eq!(frames.values().sum::<f64>(), 117.0);
    }

    #[test]
    fn the_owner_of_most_bytes_is_ahead() {
        let mut device = Outstanding::default();
        assert_eq!(device.owner(), None);
        device.add("a", 4096, 100);
        device.add("b", 8192, 50);
        assert_eq!(device.owner(), Some("b"));
        device.complete(50);
        assert_eq!(device.owner(), Some("a"));
        device.complete(100);
        assert_eq!(device.owner(), None);
    }

    #[test]
    fn files_beyond_the_limit_share_rows() {
        let row = |n: usize| {
            let names = [Some("p".into()), Some(format!("/{n}")), None, None, None];
            (names, (MOST * 2 - n) as f64)
        };
        let mut rows: Vec<_> = (0..MOST + 3).map(row).collect();
        let sum: f64 = rows.iter().map(|r| r.1).sum();
        assert_eq!(share(&mut rows), 3);
        assert_eq!(rows.len(), MOST + 1);
        assert_eq!(rows.iter().map(|r| r.1).sum::<f64>(), sum);
    }
}
