//! Events of LTTng's kernel tracer as rows: calls here, requests to devices in `requests`, and what threads
//! do between their events in `waits`.

mod requests;
mod scheduler;
mod waits;

use std::collections::HashMap;
use std::rc::Rc;

use fathom_enrich::{InterruptKind, TracedLayers, TracedParts, TracedRequest};
use fathom_model::layers::Layer;
use fathom_model::lttng::{self, TracedCall};
use fathom_model::meta::{RecordedLayer, SessionMeta};

use self::requests::Submitter;
use self::scheduler::Scheduler;
use self::waits::{padded, softirq};
use super::arguments::{self, Slot};
use super::stream::Read;
use super::types::Value;
use crate::builder::{BlockRequest, Builder, ThreadInfo};
use crate::error::ImportError;

/// A call that a thread has entered.
struct Entered {
    /// `None`: one that fathom does not record.
    traced: Option<&'static TracedCall>,
    /// Name of the event behind `syscall_entry_`.
    event: Rc<str>,
    /// Id of its row, if it gets one.
    rid: Option<i64>,
    fields: Value,
    ts_ns: i64,
    parts: TracedParts,
}

/// Descriptors and the directory of a process.
#[derive(Clone, Debug, Default)]
pub(super) struct Process {
    pub slots: HashMap<i32, Slot>,
    pub directory: Option<Vec<u8>>,
}

/// State that is kept between events.
#[derive(Default)]
pub(super) struct Events {
    threads: HashMap<i32, ThreadInfo>,
    processes: HashMap<i32, Process>,
    entered: HashMap<i32, Entered>,
    scheduler: Scheduler,
    layers: TracedLayers,
    /// Whether the trace has changes of threads, and interrupts.
    has_switches: bool,
    has_interrupts: bool,
    requests: HashMap<(i64, i64), (BlockRequest, Option<Submitter>)>,
    disks: HashMap<i64, Vec<u8>>,
    host: String,
    kernel: String,
    machine: String,
    /// Calls that fathom does not record.
    other: u64,
    /// Calls whose thread is not known.
    threadless: u64,
    /// Exits without an entry.
    headless: u64,
    unfinished: u64,
    /// When the latest event took place.
    last_ns: i64,
    /// fathom wrote the trace, with the offsets that it knew.
    by_fathom: bool,
}

/// A call that has ended, or never will.
pub(super) struct Ended<'a> {
    pub traced: &'static TracedCall,
    /// Id of its row.
    pub rid: Option<i64>,
    pub fields: &'a Value,
    /// Fields of the exit.
    pub exit: &'a Value,
    pub ts_ns: i64,
    pub ret: Option<i64>,
    pub dur_ns: Option<i64>,
    pub pid: Option<i32>,
    pub tid: i32,
    pub comm: Option<Vec<u8>>,
    pub cpu: Option<i32>,
}

impl Ended<'_> {
    /// Whether fathom exported it, with fields of its own.
    pub fn by_fathom(&self) -> bool {
        self.fields.get("fathom_rid").is_some() || self.exit.get("fathom_rid").is_some()
    }
}

impl Events {
    /// Takes the environment of a trace.
    pub fn environment(&mut self, all: &HashMap<String, String>) {
        let text = |name: &str| all.get(name).cloned().unwrap_or_default();
        for (to, name) in [(&mut self.host, "hostname"), (&mut self.machine, "machine")] {
            if to.is_empty() {
                *to = text(name);
            }
        }
        if self.kernel.is_empty() {
            let (release, version) = (text("kernel_release"), text("kernel_version"));
            self.kernel = format!("{release} {version}").trim().to_owned();
        }
    }

    pub fn event(&mut self, read: &Read, builder: &mut Builder) -> Result<(), ImportError> {
        builder.seen(read.ns);
        self.last_ns = self.last_ns.max(read.ns);
        let name = &*read.name;
        let compat = name.strip_prefix("compat_").unwrap_or(name);
        if let Some(call) = compat.strip_prefix("syscall_entry_") {
            return self.enter(read, call, builder);
        }
        if compat.starts_with("syscall_exit_") || compat == "exit_syscall" {
            return self.exit(read, builder);
        }
        if let Some(call) = compat.strip_prefix("sys_") {
            return self.enter(read, call, builder);
        }
        let int = |name: &str| int(&read.fields, name);
        let small = |name: &str| i32::try_from(int(name)?).ok();
        let text = |name: &str| text(&read.fields, name);
        match name {
            "sched_switch" => {
                if let (Some(cpu), Some(tid)) = (read.cpu, small("next_tid")) {
                    let left = (small("prev_tid"), int("prev_state"));
                    self.switch(cpu, left, tid, read.ns);
                    self.thread(tid, None, text("next_comm"), read.ns);
                    self.is_back(cpu, tid, read.ns, builder)?;
                }
            }
            "sched_waking" | "sched_wakeup" | "sched_ttwu" => {
                if let (Some(cpu), Some(tid)) = (read.cpu, small("tid")) {
                    let threads = &self.threads;
                    let name = |waker: i32| {
                        let info = threads.get(&waker);
                        padded(info.and_then(|info| info.comm.as_deref()).unwrap_or(b""))
                    };
                    self.scheduler.wakes(cpu, tid, read.ns, name);
                }
            }
            "irq_handler_entry" => {
                let name = padded(&text("name").unwrap_or_default());
                self.interrupts(read, InterruptKind::Hard, name);
            }
            "irq_handler_exit" => self.handled(read, InterruptKind::Hard),
            "irq_softirq_entry" | "softirq_entry" => {
                if let Some(kind) = softirq(int("vec")) {
                    self.interrupts(read, kind, [0; 16]);
                }
            }
            "irq_softirq_exit" | "softirq_exit" => {
                if let Some(kind) = softirq(int("vec")) {
                    self.handled(read, kind);
                }
            }
            "timer_hrtimer_expire_entry" | "hrtimer_expire_entry" => {
                self.interrupts(read, InterruptKind::Timer, [0; 16]);
            }
            "timer_hrtimer_expire_exit" | "hrtimer_expire_exit" => {
                self.handled(read, InterruptKind::Timer);
            }
            "sched_process_fork" => {
                let (parent, child) = (small("parent_pid"), small("child_pid"));
                let child_tid = small("child_tid");
                if let Some(tid) = child_tid {
                    self.thread(tid, child, text("child_comm"), read.ns);
                    self.scheduler.made(tid, read.ns);
                    if let Some(info) = self.threads.get_mut(&tid).filter(|_| child != parent) {
                        info.ppid = parent;
                    }
                }
                if let (Some(parent), Some(child)) = (parent, child)
                    && parent != child
                    && let Some(process) = self.processes.get(&parent).cloned()
                {
                    self.processes.insert(child, process);
                }
            }
            "sched_process_exec" => {
                let pid = self.tid(read).and_then(|tid| self.pid(read, tid));
                if let Some(process) = pid.and_then(|pid| self.processes.get_mut(&pid)) {
                    process.slots.retain(|_, slot| !slot.closes_on_exec);
                }
            }
            "sched_process_exit" => {
                let info = small("tid").and_then(|tid| self.threads.get_mut(&tid));
                if let Some(info) = info {
                    info.ended_at_ns = Some(read.ns);
                }
            }
            "lttng_statedump_process_state" => {
                if let Some(tid) = small("tid") {
                    self.thread(tid, small("pid"), text("name"), read.ns);
                    if let Some(info) = self.threads.get_mut(&tid) {
                        info.ppid = small("ppid");
                    }
                }
            }
            "lttng_statedump_file_descriptor" => {
                let path = text("filename").filter(|path| !path.is_empty());
                if let (Some(pid), Some(fd), Some(path)) = (small("pid"), small("fd"), path) {
                    let slot = Slot::new(path, read.ns, builder);
                    self.processes
                        .entry(pid)
                        .or_default()
                        .slots
                        .insert(fd, slot);
                }
            }
            "lttng_statedump_block_device" => {
                if let (Some(dev), Some(name)) = (int("dev"), text("diskname")) {
                    self.disks.insert(dev, name);
                }
            }
            "block_rq_insert" | "block_rq_issue" => self.request(read, builder)?,
            "block_rq_complete" => self.complete(read, builder)?,
            _ => {}
        }
        Ok(())
    }

    fn tid(&self, read: &Read) -> Option<i32> {
        let own = read.context("tid").and_then(Value::int);
        let own = own.and_then(|tid| i32::try_from(tid).ok());
        own.or_else(|| self.scheduler.running(read.cpu?))
    }

    fn pid(&self, read: &Read, tid: i32) -> Option<i32> {
        let own = read.context("pid").and_then(Value::int);
        let own = own.and_then(|pid| i32::try_from(pid).ok());
        own.or_else(|| self.threads.get(&tid)?.pid)
    }

    /// Keeps a fact of a thread.
    fn thread(&mut self, tid: i32, pid: Option<i32>, comm: Option<Vec<u8>>, ns: i64) {
        let info = self.threads.entry(tid).or_insert_with(|| ThreadInfo {
            tid,
            started_at_ns: ns,
            ..ThreadInfo::default()
        });
        info.pid = pid.or(info.pid);
        if comm.is_some() && comm != info.comm {
            info.comm = comm;
        }
    }

    /// The thread of a call, which its context or a change of threads names.
    fn caller(&mut self, read: &Read) -> Option<i32> {
        let tid = self.tid(read)?;
        let pid = self.pid(read, tid);
        let name = read.context("procname").and_then(Value::text);
        self.thread(tid, pid, name.map(<[u8]>::to_vec), read.ns);
        Some(tid)
    }

    fn enter(&mut self, read: &Read, call: &str, builder: &mut Builder) -> Result<(), ImportError> {
        let traced = lttng::by_event(call);
        let Some(tid) = self.caller(read) else {
            self.threadless += 1;
            return Ok(());
        };
        let entered = Entered {
            traced,
            event: call.into(),
            rid: traced.map(|_| builder.next_rid()),
            fields: read.fields.clone(),
            ts_ns: read.ns,
            parts: TracedParts::default(),
        };
        // The exit of the one before is missing.
        match self.entered.insert(tid, entered) {
            Some(before) => self.abandon(tid, &before, read.ns, builder),
            None => Ok(()),
        }
    }

    fn exit(&mut self, read: &Read, builder: &mut Builder) -> Result<(), ImportError> {
        let Some(tid) = self.caller(read) else {
            return Ok(());
        };
        let Some(entered) = self.entered.remove(&tid) else {
            self.headless += 1;
            return Ok(());
        };
        // An entry whose exit was lost, and an exit whose entry was.
        let of_other =
            read.name
                .split_once("syscall_exit_")
                .is_some_and(|(_, event)| match entered.traced {
                    Some(traced) => lttng::by_event(event).is_none_or(|t| t.event != traced.event),
                    None => lttng::by_event(event).is_some(),
                });
        if of_other {
            self.headless += 1;
            return self.abandon(tid, &entered, read.ns, builder);
        }
        let Some(traced) = entered.traced else {
            self.other += 1;
            return Ok(());
        };
        let ended = Ended {
            traced,
            rid: entered.rid,
            fields: &entered.fields,
            exit: &read.fields,
            ts_ns: entered.ts_ns,
            ret: int(&read.fields, "ret"),
            dur_ns: Some(read.ns.saturating_sub(entered.ts_ns)),
            pid: self.pid(read, tid),
            tid,
            comm: self.threads.get(&tid).and_then(|info| info.comm.clone()),
            cpu: read.cpu,
        };
        self.call(&ended, &entered.parts, builder)
    }

    /// A call of which no end will come gets its row.
    fn abandon(
        &mut self,
        tid: i32,
        entered: &Entered,
        ns: i64,
        builder: &mut Builder,
    ) -> Result<(), ImportError> {
        let Some(traced) = entered.traced else {
            self.other += 1;
            return Ok(());
        };
        self.unfinished += 1;
        let info = self.threads.get(&tid);
        let ended = Ended {
            traced,
            rid: entered.rid,
            fields: &entered.fields,
            exit: &Value::Struct(Vec::new()),
            ts_ns: entered.ts_ns,
            ret: None,
            dur_ns: Some(ns.saturating_sub(entered.ts_ns)),
            pid: info.and_then(|info| info.pid),
            tid,
            comm: info.and_then(|info| info.comm.clone()),
            cpu: None,
        };
        self.call(&ended, &entered.parts, builder)
    }

    fn call(
        &mut self,
        ended: &Ended<'_>,
        parts: &TracedParts,
        builder: &mut Builder,
    ) -> Result<(), ImportError> {
        // Descriptors belong to a process; where that is not known, to the thread.
        self.by_fathom |= ended.by_fathom();
        let process = self
            .processes
            .entry(ended.pid.unwrap_or(ended.tid))
            .or_default();
        let row = arguments::row(ended, process, builder);
        builder.call(ended.traced.call, &row)?;
        arguments::effects(ended, &row, process, builder);
        if !parts.is_empty()
            && let (Some(rid), Some(dur_ns)) = (ended.rid, ended.dur_ns)
        {
            let request = TracedRequest {
                rid,
                name: ended.traced.call.name,
                tid: unsigned(ended.tid),
                begin_ns: unsigned_ns(ended.ts_ns),
                dur_ns: unsigned_ns(dur_ns),
            };
            self.layers.request(&request, parts, ended.comm.as_deref());
        }
        self.flush(builder)
    }

    /// Events are missing.
    pub fn lost(&mut self) {
        self.scheduler.lost();
    }

    /// Stores what is left.
    pub fn finish(
        &mut self,
        builder: &mut Builder,
        meta: &mut SessionMeta,
    ) -> Result<(), ImportError> {
        let last = self.last_ns;
        for tid in self.scheduler.left() {
            let pid = self.threads.get(&tid).and_then(|info| info.pid);
            if let Some(wait) = self.scheduler.goes_on(tid, last, pid.unwrap_or(tid)) {
                self.waited(tid, &wait, builder)?;
            }
        }
        let mut left: Vec<(i32, Entered)> = self.entered.drain().collect();
        left.sort_by_key(|(tid, entered)| (entered.ts_ns, *tid));
        for (tid, entered) in &left {
            self.abandon(*tid, entered, last, builder)?;
        }
        self.store_requests(builder)?;
        builder.batches(self.layers.take())?;
        let mut threads: Vec<ThreadInfo> = self.threads.drain().map(|(_, info)| info).collect();
        threads.sort_by_key(|info| (info.started_at_ns, info.tid));
        builder.threads(&threads)?;
        meta.host.name = std::mem::take(&mut self.host);
        meta.host.kernel = std::mem::take(&mut self.kernel);
        meta.host.arch = std::mem::take(&mut self.machine);
        if let Some(source) = &mut meta.source {
            source.other_calls = self.other;
        }
        let recorded = [
            (Layer::Block, builder.has_blocks()),
            (Layer::Sched, self.has_switches),
            (Layer::Irq, self.has_interrupts),
        ];
        for layer in &mut meta.layers {
            if recorded.contains(&(layer.name, true)) {
                *layer = RecordedLayer {
                    name: layer.name,
                    recorded: true,
                    reason: String::new(),
                };
            }
        }
        Ok(())
    }

    pub fn not_observable(&self) -> Vec<String> {
        let mut missing = vec![
            "inode numbers, structs, page faults, operations of io_uring and AIO, which call caused a \
             block request that writes, calls that were not traced"
                .to_owned(),
        ];
        if !self.has_switches {
            missing.push("what threads waited for (event sched_switch)".to_owned());
        }
        if !self.by_fathom {
            missing.push("offsets of calls that use the descriptor's position".to_owned());
        }
        if self.threadless > 0 {
            missing.push(format!(
                "{} calls of unknown threads (lttng add-context -k -t tid, or event sched_switch)",
                self.threadless
            ));
        }
        if self.headless > 0 {
            missing.push(format!(
                "{} calls of which the trace has the exit only",
                self.headless
            ));
        }
        if self.unfinished > 0 {
            missing.push(format!(
                "results of {} calls of which the trace has the entry only",
                self.unfinished
            ));
        }
        missing
    }
}

pub(super) fn int(fields: &Value, name: &str) -> Option<i64> {
    let number = fields.get(name)?.int()?;
    // Unsigned numbers of 64 bits that a column does not hold keep their bits.
    i64::try_from(number)
        .ok()
        .or_else(|| u64::try_from(number).ok().map(|n| n as i64))
}

pub(super) fn text(fields: &Value, name: &str) -> Option<Vec<u8>> {
    fields.get(name)?.text().map(<[u8]>::to_vec)
}

fn unsigned(id: i32) -> u32 {
    u32::try_from(id).unwrap_or(0)
}

fn unsigned_ns(ns: i64) -> u64 {
    u64::try_from(ns).unwrap_or(0)
}
