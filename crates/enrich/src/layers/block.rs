//! Requests to devices: tables `block` and `bios`.

use std::sync::Arc;

use fathom_decode::bios;
use fathom_model::abi::{BLOCK_UNSEEN, BioRecord, BlockRecord, NO_OFFSET};
use fathom_model::batch::{Batch, NULL_I32, NULL_I64, Null};
use fathom_model::bytes::escape_invalid_utf8;
use fathom_model::tables::{BioRow, BioRows, BlockRow, BlockRows};
use fathom_model::{StrId, StringTable};

use super::names;
use super::requests::{Key, Requests};
use super::slices::Block;
use crate::strings::{FileMemo, Known, Name, Strings};
use crate::{id, nonzero, signed, text};

/// Rows that were not taken yet.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    last_id: i64,
    devices: Devices,
    rows: (BlockRows, Strings),
    bios: (BioRows, Strings),
    /// Requests in whose course the bios of one block request were submitted.
    submitters: Vec<Key>,
}

/// Devices that are distinguished: more than a machine has at a time. The last one stands for all
/// that come later, as rows that wait refer to devices by number.
const MAX_DEVICES: usize = 4096;
const OTHER_DEVICES: &str = "(other)";

/// The devices that were seen, by the names of their records and as text.
#[derive(Debug, Default)]
struct Devices {
    disks: Vec<[u8; 32]>,
    names: Vec<Arc<str>>,
    last: usize,
}

impl Devices {
    /// The number of a device.
    fn number(&mut self, disk: &[u8; 32]) -> u16 {
        // Most requests go to the same device as the last one.
        if self.disks.get(self.last) != Some(disk) {
            self.last = match self.disks.iter().position(|known| known == disk) {
                Some(known) => known,
                None => self.add(disk),
            };
        }
        self.last as u16
    }

    fn add(&mut self, disk: &[u8; 32]) -> usize {
        if self.disks.len() < MAX_DEVICES {
            let name = match self.disks.len() + 1 {
                MAX_DEVICES => OTHER_DEVICES.into(),
                _ => Arc::from(&*escape_invalid_utf8(text::until_nul(disk))),
            };
            self.disks.push(*disk);
            self.names.push(name);
        }
        self.disks.len() - 1
    }
}

/// Kinds of texts: the name of a thread, flags, an operation, a device.
const THREAD: u64 = 0;
const FLAGS: u64 = 1 << 16;
const OPERATION: u64 = 2 << 16;
const DEVICE: u64 = 3 << 16;
const NOTHING: [u8; 16] = [0; 16];

impl Blocks {
    #[inline]
    pub(crate) fn pending_rows(&self) -> usize {
        self.rows.0.len() + self.bios.0.len()
    }

    /// The number of a device, by its name.
    pub(crate) fn device(&mut self, name: &[u8]) -> u16 {
        let mut disk = [0; 32];
        for (to, from) in disk.iter_mut().zip(name) {
            *to = *from;
        }
        self.devices.number(&disk)
    }

    /// A request to a device, which makes its rows at once.
    pub(crate) fn on(
        &mut self,
        cpu: u32,
        r: &BlockRecord,
        bio_bytes: &[u8],
        requests: &mut Requests,
        known: &mut Known,
    ) {
        self.last_id += 1;
        let block_id = self.last_id;
        let seen = u32::from(r.flags) & BLOCK_UNSEEN == 0;
        let device = self.devices.number(&r.disk);
        let mut first: Option<(BioRecord, i64)> = None;
        let mut only: Option<(BioRecord, i64)> = None;
        let mut queued_at_ns = 0;
        let mut submitters = std::mem::take(&mut self.submitters);
        for bio in bios(bio_bytes) {
            let cause = Key::new(bio.cause_tid, bio.cause_ns);
            let rid = requests.id(cause).unwrap_or(NULL_I64);
            let submitter = Key::new(bio.submit_tid, bio.submit_ns);
            let submit_rid = requests.id(submitter).unwrap_or(NULL_I64);
            if submitter.ns > 0 && !submitters.contains(&submitter) {
                submitters.push(submitter);
            }
            if bio.queued_at_ns > 0 && (queued_at_ns == 0 || bio.queued_at_ns < queued_at_ns) {
                queued_at_ns = bio.queued_at_ns;
            }
            if is_request(&bio, r) {
                only = Some((bio, submit_rid));
            } else {
                self.push_bio(block_id, &bio, rid, submit_rid, r.completed_at_ns, known);
            }
            first.get_or_insert((bio, rid));
        }
        let times = [
            queued_at_ns,
            r.started_at_ns,
            r.inserted_at_ns,
            r.issued_at_ns,
        ];
        let ts_ns = times.into_iter().filter(|ns| *ns > 0).min();
        let ts_ns = ts_ns.unwrap_or(r.completed_at_ns);
        for key in submitters.drain(..).filter(|_| seen) {
            if let Some(parts) = requests.parts(key) {
                parts.blocks.push(Block {
                    ts_ns,
                    device,
                    queued_at_ns,
                    issued_at_ns: r.issued_at_ns,
                    completed_at_ns: r.completed_at_ns,
                });
            }
        }
        self.submitters = submitters;
        let (rows, strings) = &mut self.rows;
        let file = first.as_ref().map_or(0, |(bio, _)| bio.file);
        let FileMemo { file_id, path } = strings.file(file, r.completed_at_ns, known);
        let name = self.devices.names.get(usize::from(device));
        let device = name.map_or(StrId::NULL, |name| {
            strings.name(Name::new(DEVICE | u64::from(device), &NOTHING), || name)
        });
        let submitter = first
            .as_ref()
            .map(|(bio, _)| bio)
            .filter(|b| b.queued_at_ns > 0);
        rows.push(BlockRow {
            block_id,
            rid: first.map_or(NULL_I64, |(_, rid)| rid),
            ts_ns: signed(ts_ns),
            dur_ns: signed(r.completed_at_ns.saturating_sub(ts_ns)).when(seen),
            device,
            // One without data (a flush) has none.
            sector: signed(r.sector).when(r.sector != u64::MAX),
            bytes: signed(r.bytes),
            op: strings.name(Name::new(OPERATION | u64::from(r.op), &NOTHING), || {
                names::operation(r.op)
            }),
            flags: match names::known_flags(r.flags) {
                0 => StrId::NULL,
                flags => strings.name(Name::new(FLAGS | u64::from(flags), &NOTHING), || {
                    names::block_flags(flags)
                }),
            },
            error: i32::from(r.error).when(seen),
            queued_at_ns: nonzero(queued_at_ns),
            started_at_ns: nonzero(r.started_at_ns),
            inserted_at_ns: nonzero(r.inserted_at_ns),
            issued_at_ns: nonzero(r.issued_at_ns),
            completed_at_ns: signed(r.completed_at_ns).when(seen),
            pid: submitter.map_or(NULL_I32, |b| id(b.submit_pid)),
            tid: submitter.map_or(NULL_I32, |b| id(b.submit_tid)),
            comm: submitter.map_or(StrId::NULL, |b| comm(&b.comm, strings)),
            cpu: id(cpu).when(seen),
            file_id,
            path,
            file_offset: match &first {
                Some((bio, _)) if bio.offset != NO_OFFSET => bio.offset.max(0),
                _ => NULL_I64,
            },
            queue_depth: i64::from(r.queue_depth).when(r.issued_at_ns > 0),
            // Of a request without an end only a single bio is known.
            bios: id(u32::from(r.bios).saturating_add(r.bios_left_out)).when(seen || r.bios == 1),
            requeues: id(r.requeues),
            bio_origin: match &only {
                Some((bio, _)) => strings.word(names::origin(bio.origin)),
                None => StrId::NULL,
            },
            bio_submit_rid: match (&only, &first) {
                (Some((_, submit)), Some((_, rid))) => other(*submit, *rid),
                _ => NULL_I64,
            },
            bio_cause_pid: only.map_or(NULL_I32, |(bio, _)| {
                let caused = bio.cause_ns > 0;
                let cause = id(bio.cause_pid).when(caused);
                other(cause, id(bio.submit_pid).when(bio.queued_at_ns > 0))
            }),
            bio_cause_tid: only.map_or(NULL_I32, |(bio, _)| {
                let caused = bio.cause_ns > 0;
                let cause = id(bio.cause_tid).when(caused);
                other(cause, id(bio.submit_tid).when(bio.queued_at_ns > 0))
            }),
        });
    }

    fn push_bio(
        &mut self,
        block_id: i64,
        bio: &BioRecord,
        rid: i64,
        submit_rid: i64,
        now_ns: u64,
        known: &mut Known,
    ) {
        let (rows, strings) = &mut self.bios;
        let FileMemo { file_id, path } = strings.file(bio.file, now_ns, known);
        let seen = bio.queued_at_ns > 0;
        let caused = bio.cause_ns > 0;
        rows.push(BioRow {
            block_id,
            rid,
            submit_rid,
            ts_ns: nonzero(bio.queued_at_ns),
            sector: signed(bio.sector),
            bytes: i64::from(bio.bytes),
            origin: strings.word(names::origin(bio.origin)),
            pid: id(bio.submit_pid).when(seen),
            tid: id(bio.submit_tid).when(seen),
            comm: match seen {
                true => comm(&bio.comm, strings),
                false => StrId::NULL,
            },
            cause_pid: id(bio.cause_pid).when(caused),
            cause_tid: id(bio.cause_tid).when(caused),
            file_id,
            path,
            file_offset: bio.offset.max(0).when(seen && bio.offset != NO_OFFSET),
        });
    }

    /// Names of all devices, by their numbers.
    pub(crate) fn devices(&self) -> &[Arc<str>] {
        &self.devices.names
    }

    /// The record of a file came: what is remembered of it may be old.
    pub(crate) fn forget_file(&mut self, handle: u32) {
        self.rows.1.forget_file(handle);
        self.bios.1.forget_file(handle);
    }

    /// The rows since the last time, a batch each table.
    pub(crate) fn take(&mut self) -> [Batch; 2] {
        let strings = self.rows.1.take(StringTable::new());
        let bio_strings = self.bios.1.take(StringTable::new());
        [
            self.rows.0.take().into_batch(strings),
            self.bios.0.take().into_batch(bio_strings),
        ]
    }
}

/// Whether a bio is all of its request, whose row then has what a row of the bio would have.
fn is_request(bio: &BioRecord, r: &BlockRecord) -> bool {
    r.bios == 1
        && r.bios_left_out == 0
        && bio.sector == r.sector
        && r.sector != u64::MAX
        && u64::from(bio.bytes) == r.bytes
        && (bio.queued_at_ns > 0 || bio.offset == NO_OFFSET)
        // 0 says that there is no cause.
        && (bio.cause_ns == 0 || bio.cause_pid > 0 && bio.cause_tid > 0)
}

/// A value that the row of a request has for its bio: null for `same`, and 0 for null.
fn other<T: Null + PartialEq + Default>(value: T, same: T) -> T {
    if value == same {
        T::NULL
    } else if value == T::NULL {
        T::default()
    } else {
        value
    }
}

/// The name of a thread as its record has it.
fn comm(name: &[u8; 16], strings: &mut Strings) -> StrId {
    strings.name(Name::new(THREAD, name), || {
        escape_invalid_utf8(text::until_nul(name))
    })
}

#[cfg(test)]
mod tests;
