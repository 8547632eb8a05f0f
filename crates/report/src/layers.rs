//! Sums of the layers below the calls: numbers, and how they are laid out.

use fathom_query::{Db, read_row};
use serde::Serialize;

use crate::counters::{self, CallCounters};
use crate::error::ReportError;
use crate::library::{self, LibraryFunction};
use crate::queues::{Queue, ReadAhead, queues, read_ahead, thousandths};
use crate::section::Layout::{Flexible, Left, Right};
use crate::section::{Section, TOP, sparkline, total};
use crate::thread_states::{self, ThreadStates, thread_states};
use fathom_model::units::{bytes, count, duration, percent, share};
use fathom_query::fetch::rows;

/// Sums of the layers below the calls. Empty where a layer was not recorded.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "types", derive(schemars::JsonSchema))]
pub struct Layers {
    /// Sum of the durations of all stored requests.
    pub total_ns: i64,
    /// Where that time went, most first.
    pub times: Vec<LayerTime>,
    /// Devices and kinds of requests, by time in the device.
    pub devices: Vec<Device>,
    /// The queues of devices over time, the deepest first.
    pub queues: Vec<Queue>,
    /// Where the wall time of the busiest threads went; empty where waits outside of requests were
    /// not recorded.
    pub threads: Vec<ThreadStates>,
    /// Why threads were off the CPU, by total time.
    pub waits: Vec<Wait>,
    /// Files that the page cache served, those with most misses first.
    pub cached: Vec<CachedFile>,
    /// Read-ahead by file, most waste first.
    pub read_ahead: Vec<ReadAhead>,
    /// Counters of perf by call, by total time; empty when none was recorded.
    pub counters: Vec<CallCounters>,
    /// Calls of libraries, by function.
    pub library: Vec<LibraryFunction>,
    /// Threads that were interrupted, by time.
    pub interrupts: Vec<Interrupt>,
}

/// Time that requests spent in a layer and nowhere deeper.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "types", derive(schemars::JsonSchema))]
pub struct LayerTime {
    /// Layer, as in table `slices`.
    pub layer: String,
    /// Visits; null for the calls themselves.
    pub visits: Option<i64>,
    /// Time.
    pub self_ns: i64,
}

/// Requests of one kind to a device, by every program on the machine.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "types", derive(schemars::JsonSchema))]
pub struct Device {
    /// Its name.
    pub device: String,
    /// read, write, flush, ...
    pub op: String,
    /// Requests.
    pub requests: i64,
    /// Of which the end was not seen.
    pub unseen: i64,
    /// Of which a recorded request caused; `None` for flushes, whose cause is not known.
    pub recorded: Option<i64>,
    /// Bytes moved.
    pub bytes: i64,
    /// Median time from submission to the driver.
    pub queue_p50_ns: Option<i64>,
    /// Median time in the device.
    pub device_p50_ns: Option<i64>,
    /// 99th percentile of that.
    pub device_p99_ns: Option<i64>,
    /// Longest time in the device.
    pub device_max_ns: Option<i64>,
    /// Most requests that the device had at a time.
    pub max_depth: Option<i64>,
}

/// A reason for being off the CPU, and who woke.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "types", derive(schemars::JsonSchema))]
pub struct Wait {
    /// Reason, as in table `waits`.
    pub reason: String,
    /// Thread or interrupt.
    pub waker: Option<String>,
    /// Waits.
    pub waits: i64,
    /// Time off the CPU.
    pub total_ns: i64,
    /// Of which others had the CPU.
    pub run_queue_ns: i64,
    /// 99th percentile.
    pub p99_ns: Option<i64>,
    /// Longest.
    pub max_ns: Option<i64>,
}

/// A file in the page cache.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "types", derive(schemars::JsonSchema))]
pub struct CachedFile {
    /// Id in table `files`.
    pub file_id: Option<i64>,
    /// Path.
    pub path: Option<String>,
    /// Pages that were read.
    pub pages: i64,
    /// Of which were there.
    pub hits: i64,
    /// Of which were not.
    pub misses: i64,
    /// Pages read along.
    pub readahead_pages: i64,
    /// Folios that became dirty.
    pub dirtied: i64,
}

/// A thread and what interrupted it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "types", derive(schemars::JsonSchema))]
pub struct Interrupt {
    /// Thread.
    pub tid: i64,
    /// Its name.
    pub comm: Option<String>,
    /// Kind and name of the interrupt.
    pub name: String,
    /// How many.
    pub interrupts: i64,
    /// Time of their handlers.
    pub total_ns: i64,
}

impl Layers {
    /// Takes the numbers from a session.
    ///
    /// # Errors
    /// When a query fails.
    pub(crate) fn build(db: &Db) -> Result<Self, ReportError> {
        let times = times(db)?;
        Ok(Layers {
            total_ns: total(times.iter().map(|time| time.self_ns)),
            times,
            devices: rows(db, &format!("FROM by_device LIMIT {TOP}"), |row| {
                read_row!(row => Device {
                    device op requests unseen recorded bytes queue_p50_ns device_p50_ns
                    device_p99_ns device_max_ns max_depth
                })
            })?,
            queues: queues(db)?,
            counters: counters::by_call(db)?,
            library: library::functions(db)?,
            read_ahead: read_ahead(db)?,
            threads: thread_states(db)?,
            waits: rows(db, &format!("FROM by_wait LIMIT {TOP}"), |row| {
                read_row!(row => Wait {
                    reason waker waits total_ns run_queue_ns p99_ns max_ns
                })
            })?,
            cached: rows(
                db,
                &format!("FROM by_cached_file WHERE pages > 0 OR dirtied > 0 LIMIT {TOP}"),
                |row| {
                    read_row!(row => CachedFile {
                        file_id path pages hits misses readahead_pages dirtied
                    })
                },
            )?,
            interrupts: rows(
                db,
                &format!(
                    "SELECT tid, comm, kind || ' ' || name AS name, interrupts, total_ns \
                     FROM by_interrupt LIMIT {TOP}"
                ),
                |row| read_row!(row => Interrupt { tid comm name interrupts total_ns }),
            )?,
        })
    }

    /// The tables of the report.
    pub(crate) fn sections(&self) -> Vec<Section> {
        let mut sections = Vec::new();
        let times: Vec<_> = self.times.iter().filter(|t| t.self_ns > 0).collect();
        if times.len() > 1 {
            sections.push(Section {
                title: "Time by layer",
                note: format!("{} in all requests", duration(self.total_ns)),
                columns: vec![
                    ("layer", Left),
                    ("visits", Right),
                    ("time", Right),
                    ("share", Right),
                ],
                rows: times
                    .iter()
                    .map(|t| {
                        vec![
                            t.layer.clone(),
                            t.visits.map_or("-".into(), count),
                            duration(t.self_ns),
                            part(t.self_ns, self.total_ns),
                        ]
                    })
                    .collect(),
            });
        }
        sections.push(Section {
            title: "Devices",
            note: match self.devices.iter().map(|d| d.unseen).sum::<i64>() {
                0 => "requests of all programs on the machine".into(),
                unseen => format!(
                    "requests of all programs on the machine; {} without an end: in flight when \
                     the recording ended, or completed while the kernel ran no programs",
                    count(unseen)
                ),
            },
            columns: vec![
                ("device", Left),
                ("op", Left),
                ("requests", Right),
                ("of recorded", Right),
                ("bytes", Right),
                ("queued p50", Right),
                ("device p50", Right),
                ("p99", Right),
                ("max", Right),
                ("depth", Right),
            ],
            rows: self
                .devices
                .iter()
                .map(|d| {
                    vec![
                        d.device.clone(),
                        d.op.clone(),
                        count(d.requests),
                        d.recorded.map_or("-".into(), count),
                        bytes(d.bytes),
                        time(d.queue_p50_ns),
                        time(d.device_p50_ns),
                        time(d.device_p99_ns),
                        time(d.device_max_ns),
                        d.max_depth.map_or("-".into(), count),
                    ]
                })
                .collect(),
        });
        sections.push(Section {
            title: "Queue depth over time",
            note: self.queues.first().map_or_else(String::new, |queue| {
                format!("a bar is {}", duration(queue.window_ns))
            }),
            columns: vec![
                ("device", Left),
                ("waiting", Right),
                ("max", Right),
                ("in device", Right),
                ("max", Right),
                ("over time", Left),
            ],
            rows: self
                .queues
                .iter()
                .map(|q| {
                    vec![
                        q.device.clone(),
                        thousandths(q.mean_waiting),
                        count(q.max_waiting),
                        thousandths(q.mean_depth),
                        count(q.max_depth),
                        sparkline(&q.depths),
                    ]
                })
                .collect(),
        });
        sections.push(thread_states::section(&self.threads));
        sections.push(Section {
            title: "Waits in requests",
            note: String::new(),
            columns: vec![
                ("reason", Left),
                ("woken by", Flexible),
                ("waits", Right),
                ("p99", Right),
                ("max", Right),
                ("in run queue", Right),
                ("total", Right),
            ],
            rows: self
                .waits
                .iter()
                .map(|w| {
                    vec![
                        w.reason.clone(),
                        w.waker.clone().unwrap_or_else(|| "-".into()),
                        count(w.waits),
                        time(w.p99_ns),
                        time(w.max_ns),
                        duration(w.run_queue_ns),
                        duration(w.total_ns),
                    ]
                })
                .collect(),
        });
        sections.push(Section {
            title: "Page cache by file",
            note: String::new(),
            columns: vec![
                ("path", Flexible),
                ("pages read", Right),
                ("misses", Right),
                ("hit ratio", Right),
                ("read along", Right),
                ("made dirty", Right),
            ],
            rows: self
                .cached
                .iter()
                .map(|c| {
                    vec![
                        c.path
                            .clone()
                            .unwrap_or_else(|| "(file without a known path)".into()),
                        count(c.pages),
                        count(c.misses),
                        part(c.hits, c.pages),
                        count(c.readahead_pages),
                        count(c.dirtied),
                    ]
                })
                .collect(),
        });
        sections.push(Section {
            title: "Read ahead by file",
            note: String::new(),
            columns: vec![
                ("path", Flexible),
                ("read ahead", Right),
                ("used", Right),
                ("wasted", Right),
                ("share wasted", Right),
            ],
            rows: self
                .read_ahead
                .iter()
                .map(|r| {
                    vec![
                        r.path
                            .clone()
                            .unwrap_or_else(|| "(file without a known path)".into()),
                        bytes(r.bytes),
                        bytes(r.used_bytes),
                        bytes(r.wasted_bytes),
                        part(r.wasted_bytes, r.bytes),
                    ]
                })
                .collect(),
        });
        sections.push(Section {
            title: "Interrupts in requests",
            note: String::new(),
            columns: vec![
                ("thread", Right),
                ("name", Flexible),
                ("interrupt", Left),
                ("number", Right),
                ("total", Right),
            ],
            rows: self
                .interrupts
                .iter()
                .map(|i| {
                    vec![
                        i.tid.to_string(),
                        i.comm.clone().unwrap_or_default(),
                        i.name.clone(),
                        count(i.interrupts),
                        duration(i.total_ns),
                    ]
                })
                .collect(),
        });
        sections.push(library::section(&self.library));
        sections.push(counters::section(&self.counters));
        sections.retain(|section| !section.rows.is_empty());
        sections
    }
}

/// Time of the layers below, and what is left for the requests themselves.
fn times(db: &Db) -> Result<Vec<LayerTime>, ReportError> {
    let mut times = rows(
        db,
        "SELECT layer, count(*) AS visits, bounded(sum(self_ns)) AS self_ns FROM slices \
         WHERE depth > 0 GROUP BY layer ORDER BY self_ns DESC, layer",
        |row| read_row!(row => LayerTime { layer visits self_ns }),
    )?;
    let whole = rows(
        db,
        "SELECT coalesce((SELECT bounded(sum(dur_ns)) FROM syscalls), 0) AS calls, \
         coalesce((SELECT bounded(sum(dur_ns)) FROM faults), 0) AS faults, \
         coalesce((SELECT bounded(sum(dur_ns) - sum(self_ns)) FROM slices \
         WHERE depth = 0 AND layer = 'pagecache'), 0) AS below_faults",
        |row| {
            Ok((
                row.int("calls")?,
                row.int("faults")?,
                row.int("below_faults")?,
            ))
        },
    )?;
    let (calls, faults, below_faults) = whole.first().copied().unwrap_or_default();
    let below = total(times.iter().map(|t| t.self_ns));
    for (layer, self_ns) in [
        ("page fault", faults.saturating_sub(below_faults)),
        (
            "syscall",
            calls.saturating_sub(below.saturating_sub(below_faults)),
        ),
    ] {
        times.push(LayerTime {
            layer: layer.into(),
            visits: None,
            self_ns,
        });
    }
    times.sort_by_key(|time| std::cmp::Reverse(time.self_ns));
    Ok(times)
}

fn time(ns: Option<i64>) -> String {
    ns.map_or("-".into(), duration)
}

fn part(of: i64, all: i64) -> String {
    share(of as f64, all as f64).map_or("-".into(), percent)
}
