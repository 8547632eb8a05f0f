//! Requests to devices: tables `block` and `bios`.

use std::sync::Arc;

use fathom_decode::bios;
use fathom_model::abi::{BLOCK_UNSEEN, BioRecord, BlockRecord, NO_OFFSET};
use fathom_model::batch::{Batch, NULL_I32, NULL_I64, Null};
use fathom_model::bytes::escape_invalid_utf8;
use fathom_model::tables::{BioRow, BioRows, BlockRow, BlockRows};
use fathom_model::{StrId, StringTable};

use super::requests::{Key, Requests};
use super::slices::Block;
use super::{file, names};
use crate::strings::Known;
use crate::{id, nonzero, signed, text};

/// Rows that were not taken yet.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    last_id: i64,
    /// Name of the device of the last request, as it came and as text: most come from one.
    device: Option<([u8; 32], Arc<str>)>,
    rows: (BlockRows, StringTable),
    bios: (BioRows, StringTable),
}

impl Blocks {
    #[inline]
    pub(crate) fn pending_rows(&self) -> usize {
        self.rows.0.len() + self.bios.0.len()
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
        let device = match &self.device {
            Some((disk, device)) if *disk == r.disk => Arc::clone(device),
            _ => {
                let device: Arc<str> = Arc::from(&*escape_invalid_utf8(text::until_nul(&r.disk)));
                self.device = Some((r.disk, Arc::clone(&device)));
                device
            }
        };
        let mut first: Option<(BioRecord, i64)> = None;
        let mut queued_at_ns = 0;
        let mut submitters: Vec<Key> = Vec::new();
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
            self.push_bio(block_id, &bio, rid, submit_rid, r.completed_at_ns, known);
            first.get_or_insert((bio, rid));
        }
        for key in submitters.into_iter().filter(|_| seen) {
            if let Some(parts) = requests.parts(key) {
                parts.blocks.push(Block {
                    device: Arc::clone(&device),
                    queued_at_ns,
                    issued_at_ns: r.issued_at_ns,
                    completed_at_ns: r.completed_at_ns,
                });
            }
        }
        let times = [
            queued_at_ns,
            r.started_at_ns,
            r.inserted_at_ns,
            r.issued_at_ns,
        ];
        let ts_ns = times.into_iter().filter(|ns| *ns > 0).min();
        let ts_ns = ts_ns.unwrap_or(r.completed_at_ns);
        let (rows, strings) = &mut self.rows;
        let (mut file_id, mut path) = (NULL_I64, StrId::NULL);
        if let Some((bio, _)) = &first {
            (file_id, path) = file(bio.file, r.completed_at_ns, known, strings);
        }
        let submitter = first
            .as_ref()
            .map(|(bio, _)| bio)
            .filter(|b| b.queued_at_ns > 0);
        rows.push(BlockRow {
            block_id,
            rid: first.map_or(NULL_I64, |(_, rid)| rid),
            ts_ns: signed(ts_ns),
            dur_ns: signed(r.completed_at_ns.saturating_sub(ts_ns)).when(seen),
            device: strings.intern(device.as_bytes()),
            // One without data (a flush) has none.
            sector: signed(r.sector).when(r.sector != u64::MAX),
            bytes: signed(r.bytes),
            op: strings.intern(names::operation(r.op).as_bytes()),
            flags: match names::block_flags(r.flags) {
                none if none.is_empty() => StrId::NULL,
                flags => strings.intern(flags.as_bytes()),
            },
            error: i32::from(r.error).when(seen),
            queued_at_ns: nonzero(queued_at_ns),
            started_at_ns: nonzero(r.started_at_ns),
            inserted_at_ns: nonzero(r.inserted_at_ns),
            issued_at_ns: nonzero(r.issued_at_ns),
            completed_at_ns: signed(r.completed_at_ns).when(seen),
            pid: submitter.map_or(NULL_I32, |b| id(b.submit_pid)),
            tid: submitter.map_or(NULL_I32, |b| id(b.submit_tid)),
            comm: submitter.map_or(StrId::NULL, |b| {
                strings.intern(escape_invalid_utf8(text::until_nul(&b.comm)).as_bytes())
            }),
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
        let (file_id, path) = file(bio.file, now_ns, known, strings);
        let seen = bio.queued_at_ns > 0;
        let caused = bio.cause_ns > 0;
        rows.push(BioRow {
            block_id,
            rid,
            submit_rid,
            ts_ns: nonzero(bio.queued_at_ns),
            sector: signed(bio.sector),
            bytes: i64::from(bio.bytes),
            origin: strings.intern(names::origin(bio.origin).as_bytes()),
            pid: id(bio.submit_pid).when(seen),
            tid: id(bio.submit_tid).when(seen),
            comm: if seen {
                strings.intern(escape_invalid_utf8(text::until_nul(&bio.comm)).as_bytes())
            } else {
                StrId::NULL
            },
            cause_pid: id(bio.cause_pid).when(caused),
            cause_tid: id(bio.cause_tid).when(caused),
            file_id,
            path,
            file_offset: bio.offset.max(0).when(seen && bio.offset != NO_OFFSET),
        });
    }

    /// The rows since the last time, a batch each table.
    pub(crate) fn take(&mut self) -> [Batch; 2] {
        let strings = std::mem::take(&mut self.rows.1);
        let bio_strings = std::mem::take(&mut self.bios.1);
        [
            self.rows.0.take().into_batch(strings),
            self.bios.0.take().into_batch(bio_strings),
        ]
    }
}
