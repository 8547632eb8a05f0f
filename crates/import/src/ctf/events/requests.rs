//! Requests to devices.

use fathom_enrich::TracedBlock;

use super::super::stream::Read;
use super::waits::MAX_PARTS;
use super::{Events, int, unsigned_ns};
use crate::builder::{BlockRequest, Builder};
use crate::error::ImportError;

/// Requests that wait for their completion at most; the oldest ones are then stored without.
const MAX_REQUESTS: usize = 1 << 20;

/// The thread that submitted a request to a device, and its call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Submitter {
    pub tid: i32,
    pub rid: Option<i64>,
}

/// Device and sector of a request, by which its events are matched.
fn place(read: &Read) -> Option<(i64, i64)> {
    Some((int(&read.fields, "dev")?, int(&read.fields, "sector")?))
}

impl Events {
    pub(super) fn request(
        &mut self,
        read: &Read,
        builder: &mut Builder,
    ) -> Result<(), ImportError> {
        let int = |name: &str| int(&read.fields, name);
        let Some((dev, sector)) = place(read) else {
            return Ok(());
        };
        if self.requests.len() >= MAX_REQUESTS {
            self.store_requests(builder)?;
        }
        let device = self.device(dev);
        let issues = &*read.name == "block_rq_issue";
        // The thread that submits a request inserts it; any thread may issue it.
        let submitter = match issues {
            true => None,
            false => self.caller(read).map(|tid| Submitter {
                tid,
                rid: self.entered.get(&tid).and_then(|entered| entered.rid),
            }),
        };
        let thread = submitter.and_then(|submitter| self.threads.get(&submitter.tid));
        let (request, by) = self.requests.entry((dev, sector)).or_default();
        // Another request of the same place: the completion of the one before is missing.
        if request.issued_at_ns.is_some() {
            let before = std::mem::take(request);
            *by = None;
            builder.block(&before)?;
        }
        request.device = device;
        let sectors = int("nr_sector").unwrap_or(0).max(0);
        request.bytes = int("bytes")
            .filter(|bytes| *bytes > 0)
            .unwrap_or(sectors.saturating_mul(512));
        request.sector = (sectors > 0).then_some(sector);
        (request.op, request.flags) = operation(int("rwbs").unwrap_or(0));
        if let Some(submitter) = submitter {
            request.tid = Some(submitter.tid);
            request.pid = thread.and_then(|info| info.pid);
            request.comm = thread.and_then(|info| info.comm.clone());
            // Another call may have changed the data that is written.
            request.rid = submitter.rid.filter(|_| request.op == "read");
            *by = Some(submitter);
        }
        match issues {
            true => request.issued_at_ns = Some(read.ns),
            false => request.inserted_at_ns = Some(read.ns),
        }
        Ok(())
    }

    pub(super) fn complete(
        &mut self,
        read: &Read,
        builder: &mut Builder,
    ) -> Result<(), ImportError> {
        let int = |name: &str| int(&read.fields, name);
        let Some((dev, sector)) = place(read) else {
            return Ok(());
        };
        if let Some(cpu) = read.cpu {
            self.scheduler.completes(cpu);
        }
        let sectors = int("nr_sector").unwrap_or(0).max(0);
        let (mut request, by) = match self.requests.remove(&(dev, sector)) {
            Some(request) => request,
            // In flight at the start.
            None => {
                let (op, flags) = operation(int("rwbs").unwrap_or(0));
                let request = BlockRequest {
                    device: self.device(dev),
                    sector: (sectors > 0).then_some(sector),
                    bytes: sectors.saturating_mul(512),
                    op,
                    flags,
                    ..BlockRequest::default()
                };
                (request, None)
            }
        };
        let left = request.bytes.saturating_sub(sectors.saturating_mul(512));
        // A completion of its first part: the rest has a completion of its own.
        if sectors > 0 && left > 0 {
            let mut rest = request.clone();
            rest.bytes = left;
            let next = sector.saturating_add(sectors);
            rest.sector = Some(next);
            self.requests.insert((dev, next), (rest, by));
            request.bytes = sectors.saturating_mul(512);
        }
        request.completed_at_ns = Some(read.ns);
        request.cpu = read.cpu;
        request.status = int("fathom_blk_status")
            .or_else(|| status(int("error")?))
            .and_then(|status| i32::try_from(status).ok());
        let begin_ns = builder.block(&request)?;
        // The call that waits for it.
        if let Some(by) = by
            && let Some(entered) = self.entered.get_mut(&by.tid)
            && entered.rid.is_some()
            && entered.rid == by.rid
            && entered.parts.len() < MAX_PARTS
        {
            let ns = |ns: Option<i64>| ns.map_or(0, unsigned_ns);
            let block = TracedBlock {
                begin_ns: unsigned_ns(begin_ns),
                queued_at_ns: ns(request.inserted_at_ns),
                issued_at_ns: ns(request.issued_at_ns),
                completed_at_ns: unsigned_ns(read.ns),
            };
            entered
                .parts
                .block(&mut self.layers, &request.device, &block);
        }
        Ok(())
    }

    pub(super) fn store_requests(&mut self, builder: &mut Builder) -> Result<(), ImportError> {
        let left = self.requests.drain().map(|(_, (request, _))| request);
        let mut left: Vec<BlockRequest> = left.collect();
        left.sort_by_key(|r| (r.inserted_at_ns.or(r.issued_at_ns), r.sector));
        left.iter()
            .try_for_each(|request| builder.block(request).map(drop))
    }

    /// The name of a device, or its number as `major:minor`.
    fn device(&self, dev: i64) -> Vec<u8> {
        match self.disks.get(&dev) {
            Some(name) => name.clone(),
            None if dev == 0 => Vec::new(),
            None => format!("{}:{}", dev >> 20, dev & 0xf_ffff).into_bytes(),
        }
    }
}

/// Operation and flags in LTTng's bits.
fn operation(rwbs: i64) -> (&'static str, String) {
    let has = |bit: u32| rwbs & (1 << bit) != 0;
    let op = if has(1) {
        match has(7) {
            true => "secure_erase",
            false => "discard",
        }
    } else if has(0) {
        "write"
    } else if has(2) {
        "read"
    } else if has(8) {
        "flush"
    } else {
        "unknown"
    };
    let flags = [
        (5, "SYNC"),
        (6, "META"),
        (9, "FUA"),
        (10, "PREFLUSH"),
        (3, "RAHEAD"),
    ];
    let set = flags.into_iter().filter(|(bit, _)| has(*bit));
    let names: Vec<&str> = set.map(|(_, name)| name).collect();
    (op, names.join("|"))
}

/// The block layer's status of an error number, as far as one has it alone.
fn status(error: i64) -> Option<i64> {
    Some(match -error.abs() {
        0 => 0,
        -95 => 1,
        -110 => 2,
        -28 => 3,
        -67 => 4,
        -121 => 5,
        -52 => 6,
        -61 => 7,
        -84 => 8,
        -12 => 9,
        -5 => 10,
        _ => return None,
    })
}
