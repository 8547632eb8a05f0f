//! JSON trace events as Chrome's tracing has them: complete events on the
//! threads, asynchronous ones for what overlaps (operations, requests to
//! devices). Times are microseconds of CLOCK_MONOTONIC with three decimals.

use std::collections::HashSet;
use std::io::Write;

use fathom_model::meta::SessionMeta;

use crate::Exporter;
use crate::error::Result;
use crate::json::Object;
use crate::lanes::Lanes;
use crate::row::{Layer, Row};
use crate::set::{self, Host};
use crate::source::Tables;

/// Process under which requests to devices stand, as they have none.
const NO_PID: i64 = 0;

pub(crate) struct Chrome<'a> {
    head: String,
    text: String,
    first: bool,
    threads: HashSet<(i64, i64)>,
    processes: HashSet<i64>,
    lanes: Lanes<(i64, i64)>,
    host: Option<Host<'a>>,
}

impl<'a> Chrome<'a> {
    pub fn new(meta: &SessionMeta, host: Option<Host<'a>>) -> Self {
        let mut head = String::from("{\"displayTimeUnit\":\"ns\",\"otherData\":");
        let mut o = Object::begin(&mut head);
        o.text("version", Some(&format!("fathom {}", meta.fathom_version)));
        o.text("session", Some(&meta.id));
        o.text("host", Some(&meta.host.name));
        o.text("kernel", Some(&meta.host.kernel));
        o.int("start_monotonic_ns", Some(meta.clock.start_monotonic_ns));
        o.int("start_realtime_ns", Some(meta.clock.start_realtime_ns));
        o.end();
        head.push_str(",\n\"traceEvents\":[");
        Chrome {
            head,
            text: String::new(),
            first: true,
            threads: HashSet::new(),
            processes: HashSet::new(),
            lanes: Lanes::default(),
            host,
        }
    }

    /// The number of a process or thread, which is unique among all hosts.
    fn joined(&self, id: i64) -> i64 {
        self.host.map_or(id, |host| host.joined(id))
    }

    fn separate(&mut self) {
        self.text.push_str(if self.first { "\n" } else { ",\n" });
        self.first = false;
    }

    fn name(&mut self, what: &str, pid: i64, tid: i64, name: &str) {
        self.separate();
        let mut o = Object::begin(&mut self.text);
        o.text("ph", Some("M"));
        o.text("name", Some(what));
        o.int("pid", Some(pid));
        o.int("tid", Some(tid));
        let mut args = o.object("args");
        args.text("name", Some(name));
        args.end();
        o.end();
    }

    fn event(&mut self, row: &Row<'_>, phase: &str, ns: i64, pid: i64, tid: i64) {
        self.separate();
        let asynchronous = matches!(phase, "b" | "e");
        let mut o = Object::begin(&mut self.text);
        o.text("ph", Some(phase));
        o.text("name", row.name.or(Some("?")));
        o.text("cat", row.category());
        o.int("pid", Some(pid));
        o.int("tid", Some(tid));
        o.micros("ts", ns);
        match phase {
            "X" => o.micros("dur", row.dur_ns.unwrap_or(0).max(0)),
            "i" => o.text("s", Some("t")),
            _ => {}
        }
        if asynchronous {
            let rid = row.rid.unwrap_or(0);
            let rid = self.host.map_or(rid, |host| host.joined_rid(rid));
            o.text("id", Some(&format!("{rid:#x}")));
        }
        if phase != "e" {
            let mut args = o.object("args");
            details(row, &mut args);
            args.end();
        }
        o.end();
    }
}

/// Details that a viewer shows in addition to name and times.
fn details(row: &Row<'_>, o: &mut Object<'_>) {
    for (name, value) in texts(row) {
        o.text(name, value);
    }
    for (name, value) in numbers(row) {
        o.int(name, value);
    }
}

/// The texts of a row, by name.
pub(crate) fn texts<'a>(row: &Row<'a>) -> [(&'static str, Option<&'a str>); 9] {
    let block = row.layer() == Layer::Block;
    [
        ("path", row.path),
        ("path2", row.path2),
        ("path_arg", row.path_arg.filter(|p| Some(*p) != row.path)),
        ("path_arg2", row.path_arg2.filter(|p| Some(*p) != row.path2)),
        ("errno", row.errno),
        ("flags", row.flags),
        ("args", row.args),
        ("op_flags", row.op_flags.filter(|f| *f != "0")),
        (if block { "device" } else { "extra" }, row.extra),
    ]
}

pub(crate) fn numbers(row: &Row<'_>) -> [(&'static str, Option<i64>); 9] {
    let block = row.layer() == Layer::Block;
    [
        ("rid", row.rid),
        ("fd", row.fd.map(i64::from)),
        ("file_id", row.file_id),
        ("file_offset", row.file_offset),
        (if block { "queue_depth" } else { "size" }, row.size),
        ("bytes", row.bytes),
        ("ret", row.ret),
        ("cpu", row.cpu.map(i64::from)),
        (if block { "sector" } else { "user_data" }, row.user_data),
    ]
}

impl Exporter for Chrome<'_> {
    fn tables(&self) -> Tables {
        Tables::All
    }

    fn begin(&mut self, out: &mut dyn Write) -> Result<()> {
        // The head describes the reference, whose clock all times are on.
        let is_first = self.host.is_none_or(|host| host.number == 0);
        if is_first {
            out.write_all(self.head.as_bytes())?;
        }
        if let Some(host) = self.host {
            // So that each session of a set has an event, which a comma can precede.
            self.first = is_first;
            let devices = host.joined(NO_PID);
            self.processes.insert(devices);
            self.name("process_name", devices, devices, &host.named("devices"));
            out.write_all(self.text.as_bytes())?;
        }
        Ok(())
    }

    fn row(&mut self, row: &Row<'_>, out: &mut dyn Write) -> Result<()> {
        // They have no thread of their own.
        if row.layer() == Layer::Slice {
            return Ok(());
        }
        self.text.clear();
        let tid = self.joined(i64::from(row.tid.unwrap_or(0)));
        let devices = self.joined(NO_PID);
        // A thread whose process is unknown is a process of its own.
        let pid = match (row.layer(), row.pid) {
            (Layer::Block, _) => devices,
            (_, Some(pid)) => self.joined(i64::from(pid)),
            (_, None) => tid,
        };
        let comm = row.comm.unwrap_or("?");
        if self.processes.insert(pid) {
            let name = if pid == devices { "devices" } else { comm };
            let name = set::named(self.host, name.to_owned());
            self.name("process_name", pid, tid, &name);
        }
        if self.threads.insert((pid, tid)) {
            self.name("thread_name", pid, tid, comm);
        }
        let (start, end) = (row.started_at_ns(), row.ended_at_ns());
        match row.layer() {
            Layer::Operation | Layer::Block => {
                self.event(row, "b", start, pid, tid);
                self.event(row, "e", end, pid, tid);
            }
            Layer::Writeback | Layer::Slice => self.event(row, "i", start, pid, tid),
            Layer::Call | Layer::Fault => {
                // Complete events of a thread must lie in one another.
                if self.lanes.place((pid, tid), start, end, true) == 0 {
                    self.event(row, "X", start, pid, tid);
                } else {
                    self.event(row, "b", start, pid, tid);
                    self.event(row, "e", end, pid, tid);
                }
            }
        }
        out.write_all(self.text.as_bytes())?;
        Ok(())
    }

    fn end(&mut self, out: &mut dyn Write) -> Result<()> {
        if self.host.is_none_or(|host| host.last) {
            out.write_all(b"\n]}\n")?;
        }
        Ok(())
    }
}
