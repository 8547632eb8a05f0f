//! Perfetto's trace packets.
//!
//! Each thread is a track with its calls as slices and its page faults within them. Operations of
//! io_uring and AIO overlap, so each process has one track per slot in flight, and each device one
//! per request in its queue. Flows lead from a call to its block requests. Counters show bytes per
//! second and requests in flight, and in a group of their own the machine as a whole.
//!
//! Strings are interned and packets compressed; what is interned is forgotten
//! from time to time, so that memory does not grow with the session.

mod counters;
mod machine;
mod packets;
mod proto;

use std::collections::{HashMap, HashSet};
use std::io::Write;

use fathom_query::Db;

use self::counters::{Counter, Counters};
use self::machine::Sample;
use self::packets::Packets;
use self::proto::*;
use crate::chrome::{numbers, texts};
use crate::error::Result;
use crate::lanes::{Ends, Lanes};
use crate::row::{Layer, Row};
use crate::set::{self, Host};
use crate::source::{Selection, Tables};
use crate::{Export, Exporter};

#[derive(Clone, PartialEq, Eq, Hash)]
enum Group {
    Thread(i32, i32),
    Operations(i32, String),
    Device(String),
}

/// The slices that end.
struct Running {
    track: u64,
    /// Bytes that it reads, or that it writes.
    read: i64,
    written: i64,
    device: Option<String>,
    rid: Option<i64>,
    counted: bool,
}

pub(crate) struct Perfetto<'a> {
    db: &'a Db,
    selection: &'a Selection,
    packets: Packets,
    lanes: Lanes<Group>,
    ends: Ends<Running>,
    told: HashSet<u64>,
    /// Calls, operations and faults that run: their tracks, and where the slices
    /// within them that run end.
    running: HashMap<i64, (u64, Vec<i64>)>,
    /// Parts of requests that lie beyond them, as of rows that were left out.
    astray: u64,
    counters: Counters,
    flows: bool,
    host: Option<Host<'a>>,
}

impl<'a> Perfetto<'a> {
    /// `flows`: whether the session has requests to devices.
    pub fn new(export: &Export<'a>, flows: bool) -> Self {
        Perfetto {
            db: export.db,
            selection: export.selection,
            packets: Packets::new(export.meta, export.host.map_or(0, |host| host.number)),
            lanes: Lanes::default(),
            ends: Ends::default(),
            told: HashSet::new(),
            running: HashMap::new(),
            astray: 0,
            counters: Counters::new(export.meta),
            flows,
            host: export.host,
        }
    }

    /// The number of a track, which the tracks of other hosts do not have.
    fn uuid(&self, parts: &[&[u8]]) -> u64 {
        match &self.host {
            None => uuid(parts),
            Some(host) => {
                let number = host.number.to_le_bytes();
                let of_host: [&[u8]; 2] = [b"host", &number];
                uuid(&[&of_host, parts].concat())
            }
        }
    }

    /// The number of a process or thread, which is unique among all hosts.
    fn joined(&self, id: i32) -> i32 {
        let joined = self.host.map(|host| host.joined(i64::from(id)));
        joined.map_or(id, |id| i32::try_from(id).unwrap_or(i32::MAX))
    }

    fn named(&self, name: String) -> String {
        set::named(self.host, name)
    }

    fn track(&mut self, uuid: u64, descriptor: impl FnOnce() -> TrackDescriptor) {
        if self.told.insert(uuid) {
            let packet = TracePacket {
                track_descriptor: Some(TrackDescriptor {
                    uuid: Some(uuid),
                    ..descriptor()
                }),
                ..TracePacket::default()
            };
            self.packets.push(packet);
        }
    }

    fn process(&mut self, pid: i32, comm: &str) -> u64 {
        let uuid = self.uuid(&[b"process", &pid.to_le_bytes()]);
        let (pid, name) = (self.joined(pid), self.named(comm.to_string()));
        self.track(uuid, || TrackDescriptor {
            process: Some(ProcessDescriptor {
                pid: Some(pid),
                process_name: Some(name),
            }),
            ..TrackDescriptor::default()
        });
        uuid
    }

    /// The track of the request that contains a slice, if the request is in progress and the slice
    /// is inside one of its running slices.
    fn within(&mut self, row: &Row<'_>) -> Option<u64> {
        let (start, end) = (row.started_at_ns(), row.ended_at_ns());
        let (track, ends) = self.running.get_mut(&row.rid?)?;
        while ends.len() > 1 && ends.last().is_some_and(|top| *top <= start) {
            ends.pop();
        }
        if ends.last().is_some_and(|top| end > *top) {
            return None;
        }
        ends.push(end);
        Some(*track)
    }

    /// The track of a row; its description is written if it is new.
    fn place(&mut self, row: &Row<'_>) -> u64 {
        let (start, end) = (row.started_at_ns(), row.ended_at_ns());
        let tid = row.tid.unwrap_or(0);
        // A thread whose process is unknown is a process of its own.
        let pid = row.pid.unwrap_or(tid);
        let comm = row.comm.unwrap_or("?");
        match row.layer() {
            Layer::Block => {
                let device = row.extra.unwrap_or("?").to_string();
                let group = Group::Device(device.clone());
                let lane = self.lanes.place(group, start, end, false);
                let uuid = self.uuid(&[b"device", device.as_bytes(), &lane.to_le_bytes()]);
                let name = self.named(format!("device {device} slot {lane}"));
                self.track(uuid, || named(name, None));
                uuid
            }
            Layer::Operation => {
                let process = self.process(pid, comm);
                let api = row.layer.unwrap_or("operation").to_string();
                let group = Group::Operations(pid, api.clone());
                let lane = self.lanes.place(group, start, end, false);
                let parts: [&[u8]; 4] = [
                    b"slot",
                    &pid.to_le_bytes(),
                    api.as_bytes(),
                    &lane.to_le_bytes(),
                ];
                let uuid = self.uuid(&parts);
                self.track(uuid, || named(format!("{api} slot {lane}"), Some(process)));
                uuid
            }
            Layer::Call | Layer::Fault | Layer::Writeback | Layer::Slice => {
                let process = self.process(pid, comm);
                let lane = match row.layer() {
                    Layer::Writeback => 0,
                    _ => self.lanes.place(Group::Thread(pid, tid), start, end, true),
                };
                let thread = self.uuid(&[b"thread", &pid.to_le_bytes(), &tid.to_le_bytes()]);
                let (joined_pid, joined_tid) = (self.joined(pid), self.joined(tid));
                self.track(thread, || TrackDescriptor {
                    parent_uuid: Some(process),
                    thread: Some(ThreadDescriptor {
                        pid: Some(joined_pid),
                        tid: Some(joined_tid),
                        thread_name: Some(comm.to_string()),
                    }),
                    ..TrackDescriptor::default()
                });
                if lane == 0 {
                    return thread;
                }
                let uuid = self.uuid(&[
                    b"beside",
                    &pid.to_le_bytes(),
                    &tid.to_le_bytes(),
                    &lane.to_le_bytes(),
                ]);
                self.track(uuid, || named(format!("{comm} {tid} beside"), Some(thread)));
                uuid
            }
        }
    }

    fn begin_slice(&mut self, row: &Row<'_>, track: u64) {
        let kind = match row.layer() {
            Layer::Writeback => INSTANT,
            _ => SLICE_BEGIN,
        };
        let category = row.category().unwrap_or("?");
        let mut interned = InternedData::default();
        let mut event = TrackEvent {
            r#type: Some(kind),
            track_uuid: Some(track),
            ..TrackEvent::default()
        };
        self.packets.make_room();
        let names = &mut self.packets.names;
        event.category_iids = vec![names.category(category, &mut interned)];
        event.name_iid = Some(names.event(row.name.unwrap_or("?"), &mut interned));
        for (name, value) in texts(row) {
            if let Some(value) = value {
                event.debug_annotations.push(DebugAnnotation {
                    name_iid: Some(names.annotation(name, &mut interned)),
                    string_value_iid: Some(names.value(value, &mut interned)),
                    int_value: None,
                });
            }
        }
        for (name, value) in numbers(row) {
            if let Some(value) = value {
                event.debug_annotations.push(DebugAnnotation {
                    name_iid: Some(names.annotation(name, &mut interned)),
                    string_value_iid: None,
                    int_value: Some(value),
                });
            }
        }
        if row.ret.is_none() && matches!(row.layer(), Layer::Call | Layer::Operation) {
            event.debug_annotations.push(DebugAnnotation {
                name_iid: Some(names.annotation("unfinished", &mut interned)),
                string_value_iid: None,
                int_value: Some(1),
            });
        }
        let joined = self.flows
            && match row.layer() {
                Layer::Block => true,
                Layer::Call | Layer::Operation => row.class == Some("data"),
                Layer::Fault => true,
                Layer::Writeback | Layer::Slice => false,
            };
        if let Some(rid) = row.rid.filter(|_| joined) {
            let rid = self.host.map_or(rid, |host| host.joined_rid(rid));
            event.flow_ids.push(rid as u64);
        }
        let packet = TracePacket {
            timestamp: Some(time(row.started_at_ns())),
            track_event: Some(event),
            interned_data: (interned != InternedData::default()).then_some(interned),
            ..TracePacket::default()
        };
        self.packets.push(packet);
    }

    fn end_until(&mut self, ns: i64) {
        while let Some((end, running)) = self.ends.pop_until(ns) {
            self.packets.push(TracePacket {
                timestamp: Some(time(end)),
                track_event: Some(TrackEvent {
                    r#type: Some(SLICE_END),
                    track_uuid: Some(running.track),
                    ..TrackEvent::default()
                }),
                ..TracePacket::default()
            });
            if let Some(rid) = running.rid {
                self.running.remove(&rid);
            }
            if !running.counted {
                continue;
            }
            self.count(end, Counter::Read, running.read);
            self.count(end, Counter::Written, running.written);
            match running.device {
                Some(device) => self.count(end, Counter::Queue(device), -1),
                None => self.count(end, Counter::InFlight, -1),
            }
        }
    }

    /// Changes a counter; what it was in the slices of time that have passed
    /// since is written.
    fn count(&mut self, ns: i64, counter: Counter, change: i64) {
        if change == 0 {
            return;
        }
        for (at, value) in self.counters.change(ns, &counter, change) {
            self.value(counter.name(), None, at, value);
        }
    }

    /// A counter of the machine, in their group.
    fn machine(&mut self, sample: Sample, out: &mut dyn Write) -> Result<()> {
        let group = self.uuid(&[b"machine"]);
        let machine = self.named("machine".into());
        self.track(group, || named(machine, None));
        let name = (sample.name, sample.unit);
        self.value(name, Some(group), sample.at, sample.value);
        self.packets.write_full(out)
    }

    fn value(&mut self, (name, unit): (String, i32), group: Option<u64>, at: i64, value: f64) {
        let track = self.uuid(&[b"counter", name.as_bytes()]);
        let name = self.named(name);
        self.track(track, || TrackDescriptor {
            name: Some(name),
            parent_uuid: group,
            counter: Some(CounterDescriptor {
                unit: Some(unit),
                unit_name: (unit == UNIT_PERCENT).then(|| "%".into()),
            }),
            ..TrackDescriptor::default()
        });
        self.packets.push(TracePacket {
            timestamp: Some(time(at)),
            track_event: Some(TrackEvent {
                r#type: Some(COUNTER),
                track_uuid: Some(track),
                double_counter_value: Some(value),
                ..TrackEvent::default()
            }),
            ..TracePacket::default()
        });
    }
}

fn named(name: String, parent_uuid: Option<u64>) -> TrackDescriptor {
    TrackDescriptor {
        name: Some(name),
        parent_uuid,
        ..TrackDescriptor::default()
    }
}

fn time(ns: i64) -> u64 {
    u64::try_from(ns).unwrap_or(0)
}

/// A number for a track that the same parts always give: FNV-1a, 64 bits. 0 means
/// no track.
fn uuid(parts: &[&[u8]]) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for part in parts {
        // A byte between parts keeps "ab","c" and "a","bc" apart.
        for byte in part.iter().chain([&0xff]) {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    hash.max(1)
}

impl Exporter for Perfetto<'_> {
    fn tables(&self) -> Tables {
        Tables::All
    }

    fn begin(&mut self, out: &mut dyn Write) -> Result<()> {
        self.packets.begin();
        let (db, selection, slice_ns) = (self.db, self.selection, self.counters.slice_ns());
        machine::levels(db, selection, |sample| self.machine(sample, out))?;
        machine::busy(db, selection, slice_ns, |sample| self.machine(sample, out))
    }

    fn row(&mut self, row: &Row<'_>, out: &mut dyn Write) -> Result<()> {
        self.end_until(row.started_at_ns());
        let slice = row.layer() == Layer::Slice;
        let track = if slice {
            let Some(track) = self.within(row) else {
                self.astray += 1;
                return Ok(());
            };
            track
        } else {
            self.place(row)
        };
        self.begin_slice(row, track);
        let request = matches!(row.layer(), Layer::Call | Layer::Operation | Layer::Fault);
        if let Some(rid) = row.rid.filter(|_| request) {
            self.running.insert(rid, (track, vec![row.ended_at_ns()]));
        }
        if row.layer() != Layer::Writeback {
            let data =
                matches!(row.layer(), Layer::Call | Layer::Operation) && row.class == Some("data");
            let bytes = row.bytes.filter(|_| data).unwrap_or(0);
            let writes = row.name.is_some_and(counters::writes);
            let device = (row.layer() == Layer::Block).then(|| row.extra.unwrap_or("?").into());
            let start = row.started_at_ns();
            match &device {
                _ if slice => {}
                Some(device) => self.count(start, Counter::Queue(String::clone(device)), 1),
                None => self.count(start, Counter::InFlight, 1),
            }
            self.ends.push(
                row.ended_at_ns(),
                Running {
                    track,
                    read: if writes { 0 } else { bytes },
                    written: if writes { bytes } else { 0 },
                    device,
                    rid: row.rid.filter(|_| request),
                    counted: !slice,
                },
            );
        }
        self.packets.write_full(out)?;
        Ok(())
    }

    fn end(&mut self, out: &mut dyn Write) -> Result<()> {
        self.end_until(i64::MAX);
        for (counter, at, value) in self.counters.finish() {
            self.value(counter.name(), None, at, value);
        }
        self.packets.finish(out)?;
        Ok(())
    }

    fn notes(&self) -> Vec<String> {
        if self.astray == 0 {
            return Vec::new();
        }
        vec![format!(
            "{} left out: the requests that they belong to are not in the export, or do not \
             contain them",
            crate::counted(self.astray, "part of a request", "parts of requests")
        )]
    }
}

#[cfg(test)]
mod tests {
    use super::uuid;

    #[test]
    fn tracks_have_numbers_of_their_own() {
        assert_ne!(uuid(&[b"ab", b"c"]), uuid(&[b"a", b"bc"]));
        assert_eq!(uuid(&[b"a"]), uuid(&[b"a"]));
    }
}
