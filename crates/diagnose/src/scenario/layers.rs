//! Rows of the layers below the calls of a made-up recording.

use fathom_model::StringTable;
use fathom_model::batch::{NULL_I32, NULL_I64};
use fathom_model::tables::{
    BioRow, BioRows, BlockRow, BlockRows, FaultRow, FaultRows, IrqRow, IrqRows, WaitRow, WaitRows,
};

use super::{GAP_NS, Scenario};
use crate::engine::Engine;

/// Number of the first fault: after all calls.
const FIRST_FAULT: i64 = 1_000_000;

/// A request to a device with one bio.
pub(crate) struct Device<'a> {
    pub(crate) rid: Option<i64>,
    pub(crate) op: &'a str,
    pub(crate) origin: &'a str,
    pub(crate) bytes: i64,
    pub(crate) queued_at_ns: i64,
    pub(crate) completed_at_ns: i64,
    pub(crate) pid: i32,
    pub(crate) comm: &'a str,
    pub(crate) file: Option<i64>,
    pub(crate) offset: Option<i64>,
}

/// Events below the calls of a scenario.
#[derive(Default)]
pub(crate) struct LayerRows {
    block: (BlockRows, StringTable),
    bios: (BioRows, StringTable),
    faults: (FaultRows, StringTable),
    irqs: (IrqRows, StringTable),
    waits: (WaitRows, StringTable),
    /// How much of the time of the requests that calls wait for passes in the device; all of it
    /// unless set.
    served_ns: Option<i64>,
}

impl LayerRows {
    pub(crate) fn device(&mut self, device: &Device) {
        let served_ns = self.served_ns.filter(|_| device.rid.is_some());
        let issued_at_ns = served_ns.map_or(device.queued_at_ns, |ns| {
            device.queued_at_ns.max(device.completed_at_ns - ns)
        });
        let (rows, strings) = &mut self.block;
        let id = rows.block_id.len() as i64 + 1;
        let mut text = |text: &str| strings.intern(text.as_bytes());
        rows.push(BlockRow {
            block_id: id,
            rid: device.rid.unwrap_or(NULL_I64),
            ts_ns: device.queued_at_ns,
            dur_ns: device.completed_at_ns - device.queued_at_ns,
            device: text("vda"),
            sector: 0,
            bytes: device.bytes,
            op: text(device.op),
            error: 0,
            queued_at_ns: device.queued_at_ns,
            started_at_ns: device.queued_at_ns,
            issued_at_ns,
            completed_at_ns: device.completed_at_ns,
            pid: device.pid,
            tid: device.pid,
            comm: text(device.comm),
            cpu: 0,
            file_id: device.file.unwrap_or(NULL_I64),
            file_offset: device.offset.unwrap_or(NULL_I64),
            queue_depth: 1,
            bios: 1,
            ..Default::default()
        });
        let (rows, strings) = &mut self.bios;
        let cause = device.rid.map_or(NULL_I32, |_| device.pid);
        rows.push(BioRow {
            block_id: id,
            rid: device.rid.unwrap_or(NULL_I64),
            submit_rid: device.rid.unwrap_or(NULL_I64),
            ts_ns: device.queued_at_ns,
            bytes: device.bytes,
            origin: strings.intern(device.origin.as_bytes()),
            pid: device.pid,
            tid: device.pid,
            comm: strings.intern(device.comm.as_bytes()),
            cause_pid: cause,
            cause_tid: cause,
            file_id: device.file.unwrap_or(NULL_I64),
            file_offset: device.offset.unwrap_or(NULL_I64),
            ..Default::default()
        });
    }

    pub(crate) fn fault(
        &mut self,
        (ts_ns, dur_ns): (i64, i64),
        (pid, comm): (i32, &str),
        (file, offset): (i64, i64),
        kind: &str,
        access: &str,
    ) {
        let (rows, strings) = &mut self.faults;
        let mut text = |text: &str| strings.intern(text.as_bytes());
        rows.push(FaultRow {
            rid: FIRST_FAULT + rows.rid.len() as i64,
            ts_ns,
            dur_ns,
            pid,
            tid: pid,
            comm: text(comm),
            access: text(access),
            kind: text(kind),
            cause: text("absent"),
            origin: text("user"),
            mapping: text("shared"),
            address: offset,
            file_id: file,
            file_offset: offset,
            ..Default::default()
        });
    }

    /// Events below some requests belong to another one.
    pub(crate) fn move_to(&mut self, from: std::ops::Range<i64>, to: i64) {
        let rids = self.bios.0.submit_rid.iter_mut();
        rids.filter(|rid| from.contains(&**rid))
            .for_each(|rid| *rid = to);
    }

    fn next_fault(&self) -> i64 {
        FIRST_FAULT + self.faults.0.rid.len() as i64
    }

    pub(crate) fn interrupt(&mut self, ts_ns: i64, dur_ns: i64, pid: i32, tid: i32, name: &str) {
        let (rows, strings) = &mut self.irqs;
        rows.push(IrqRow {
            ts_ns,
            dur_ns,
            pid,
            tid,
            kind: strings.intern(b"irq"),
            name: strings.intern(name.as_bytes()),
            ..Default::default()
        });
    }

    pub(crate) fn feed(self, engine: &mut Engine) {
        let batches = [
            self.block.0.into_batch(self.block.1),
            self.bios.0.into_batch(self.bios.1),
            self.faults.0.into_batch(self.faults.1),
            self.irqs.0.into_batch(self.irqs.1),
            self.waits.0.into_batch(self.waits.1),
        ];
        engine.feed_together(&batches);
    }
}

impl Scenario {
    /// Only calls were recorded.
    pub(crate) fn no_layers(&mut self) {
        self.no_layers = true;
    }

    fn next_rid(&self) -> i64 {
        self.rows.rid.len() as i64 + 1
    }

    /// The next call reads so much from the device, and waits for it.
    pub(crate) fn missed(&mut self, bytes: i64, wait_ns: i64) {
        self.missed = Some((bytes, wait_ns, "read"));
    }

    /// Requests of calls are in the device for so long from now on, and in its queue before that.
    pub(crate) fn served_within(&mut self, ns: i64) {
        self.layers.served_ns = Some(ns);
    }

    /// The next call brings pages into the page cache: asked for, and ahead of that.
    pub(crate) fn cached(&mut self, misses: i32, ahead: i32) {
        self.cached = Some((misses, ahead));
    }

    /// A worker of the kernel has a device read so much, for whom is not known.
    pub(crate) fn others_read(&mut self, bytes: i64) {
        self.layers.device(&Device {
            rid: None,
            op: "read",
            origin: "other",
            bytes,
            queued_at_ns: self.now - 100,
            completed_at_ns: self.now,
            pid: 0,
            comm: "kworker/1:0",
            file: None,
            offset: None,
        });
    }

    /// Bytes of a file that the last call read ahead arrive after it.
    pub(crate) fn arrives(&mut self, path: &str, offset: i64, bytes: i64) {
        self.layers.device(&Device {
            rid: Some(self.next_rid() - 1),
            op: "read",
            origin: "readahead",
            bytes,
            queued_at_ns: self.now - 100,
            completed_at_ns: self.now,
            pid: self.pid,
            comm: "test",
            file: self.ids.get(path).copied(),
            offset: Some(offset),
        });
    }

    /// The next call is off the CPU for so long, for I/O.
    pub(crate) fn off_cpu(&mut self, wait_ns: i64) {
        let (rid, now, pid) = (self.next_rid(), self.now, self.pid);
        let (rows, strings) = &mut self.layers.waits;
        rows.push(WaitRow {
            rid,
            ts_ns: now,
            dur_ns: wait_ns,
            pid,
            tid: pid,
            state: strings.intern(b"io"),
            reason: strings.intern(b"disk"),
            ..Default::default()
        });
    }

    /// The next call is preempted for so long.
    pub(crate) fn wants_cpu(&mut self, queued_ns: i64) {
        let (rid, now, pid) = (self.next_rid(), self.now, self.pid);
        let (rows, strings) = &mut self.layers.waits;
        rows.push(WaitRow {
            rid,
            ts_ns: now,
            dur_ns: queued_ns,
            pid,
            tid: pid,
            state: strings.intern(b"preempted"),
            reason: strings.intern(b"cpu"),
            ..Default::default()
        });
    }

    /// A thread sleeps outside of requests from a time until another, when a thread wakes it.
    pub(crate) fn sleeps(
        &mut self,
        (tid, comm): (i32, &str),
        (from, until): (i64, i64),
        reason: &str,
        waker: i32,
    ) {
        let pid = self.pid;
        let (rows, strings) = &mut self.layers.waits;
        rows.push(WaitRow {
            rid: NULL_I64,
            ts_ns: from,
            dur_ns: until - from,
            pid,
            tid,
            comm: strings.intern(comm.as_bytes()),
            state: strings.intern(b"interruptible"),
            reason: strings.intern(reason.as_bytes()),
            in_syscall: strings.intern(reason.as_bytes()),
            woken_at_ns: until,
            run_queue_ns: 0,
            waker_tid: waker,
            cause: strings.intern(b"thread"),
            cause_id: waker.into(),
            address: NULL_I64,
            ..Default::default()
        });
    }

    /// The latest sleep was on the futex at this address.
    pub(crate) fn on_futex(&mut self, address: i64) {
        if let Some(last) = self.layers.waits.0.address.last_mut() {
            *last = address;
        }
    }

    /// All sleeps so far were in writes to pipes.
    pub(crate) fn in_writes(&mut self) {
        let (rows, strings) = &mut self.layers.waits;
        rows.reason.fill(strings.intern(b"pipe"));
        rows.in_syscall.fill(strings.intern(b"write"));
    }

    /// As `missed` where the kernel takes all of it for readahead.
    pub(crate) fn missed_ahead(&mut self, bytes: i64, wait_ns: i64) {
        self.missed = Some((bytes, wait_ns, "readahead"));
    }

    /// The next call writes so much of a file, and of the journal, to the device.
    pub(crate) fn writes_back(&mut self, path: &str, data: i64, journal: i64) {
        let file = self.ids.get(path).copied();
        for (origin, bytes, file) in [("writeback", data, file), ("journal", journal, None)] {
            self.layers.device(&Device {
                rid: Some(self.next_rid()),
                op: "write",
                origin,
                bytes,
                queued_at_ns: self.now + 100,
                completed_at_ns: self.now + 200,
                pid: self.pid,
                comm: self.comm,
                file,
                offset: file.map(|_| 0),
            });
        }
    }

    /// The next call has the device discard blocks, and waits for it.
    pub(crate) fn discards(&mut self, wait_ns: i64) {
        self.layers.device(&Device {
            rid: Some(self.next_rid()),
            op: "discard",
            origin: "call",
            bytes: 1 << 20,
            queued_at_ns: self.now + 100,
            completed_at_ns: self.now + wait_ns,
            pid: self.pid,
            comm: self.comm,
            file: None,
            offset: None,
        });
        self.discard_ns = wait_ns;
    }

    /// Requests of a process that is not recorded, which complete one by one from
    /// now on.
    pub(crate) fn others_ahead(&mut self, count: usize, pid: i32, comm: &str, each_ns: i64) {
        for i in 1..=count as i64 {
            self.layers.device(&Device {
                rid: None,
                op: "write",
                origin: "other",
                bytes: 1 << 20,
                queued_at_ns: self.now - 100,
                completed_at_ns: self.now + i * each_ns,
                pid,
                comm,
                file: None,
                offset: None,
            });
        }
    }

    /// The next page fault has the device read so much.
    pub(crate) fn fault_reads(&mut self, bytes: i64) {
        self.layers.device(&Device {
            rid: Some(self.layers.next_fault()),
            op: "read",
            origin: "readahead",
            bytes,
            queued_at_ns: self.now + 100,
            completed_at_ns: self.now + 200,
            pid: self.pid,
            comm: self.comm,
            file: None,
            offset: None,
        });
    }

    /// A page fault on a file that is mapped.
    pub(crate) fn fault(&mut self, path: &str, offset: i64, ns: i64, major: bool, access: &str) {
        let file = self.file(path, "regular", 1 << 30);
        let kind = if major { "major" } else { "minor" };
        let (times, who) = ((self.now, ns), (self.pid, self.comm));
        self.layers.fault(times, who, (file, offset), kind, access);
        self.now += ns + GAP_NS;
        // Something must tell how long was recorded.
        if offset % 7 == 0 {
            self.stat("/data");
        }
    }

    /// An interrupt in the next call.
    pub(crate) fn interrupt(&mut self, name: &str, ns: i64) {
        let tid = self.tid.unwrap_or(self.pid);
        self.layers.interrupt(self.now, ns, self.pid, tid, name);
    }
}
