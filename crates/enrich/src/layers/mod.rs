//! Rows of the layers below the calls: tables `block`, `bios`, `waits`, `irqs`,
//! `pagecache` and `slices`.

pub(crate) mod requests;
pub(crate) mod slices;
mod words;

use fathom_model::layers::Layer;
use std::sync::Arc;

use fathom_decode::bios;
use fathom_model::abi::{
    BLOCK_UNSEEN, BioRecord, BlockRecord, CacheRecord, IrqRecord, NO_OFFSET, SpanRecord,
    WAIT_PREEMPTED, WAIT_UNSEEN, WAIT_WOKEN, WaitRecord,
};
use fathom_model::batch::{Batch, NULL_I32, NULL_I64};
use fathom_model::bytes::lossless;
use fathom_model::tables::{
    BioRow, BioRows, BlockRow, BlockRows, IrqRow, IrqRows, PagecacheRow, PagecacheRows, SliceRow,
    SliceRows, WaitRow, WaitRows,
};
use fathom_model::{StrId, StringTable};

use crate::files::Files;
use crate::tasks::Tasks;
use crate::{id, signed, text};
use requests::{Key, Kind, Requests};
use slices::{Block, Parts, Whole};

/// Rows that were not taken yet, and what they wait for.
#[derive(Debug, Default)]
pub(crate) struct Layers {
    pub(crate) requests: Requests,
    block_id: i64,
    block: (BlockRows, StringTable),
    bios: (BioRows, StringTable),
    waits: (WaitRows, StringTable),
    irqs: (IrqRows, StringTable),
    pagecache: (PagecacheRows, StringTable),
    slices: (SliceRows, StringTable),
}

/// A request that has ended.
pub(crate) struct Ended<'a> {
    pub(crate) key: Key,
    pub(crate) kind: Kind,
    /// Name of the call; `page_fault`.
    pub(crate) name: &'a str,
    pub(crate) dur_ns: u64,
    /// Where in the file it read how many bytes, if it did.
    pub(crate) read: Option<(i64, i64)>,
}

impl Layers {
    /// Rows of all tables that were not taken yet.
    pub(crate) fn pending_rows(&self) -> usize {
        self.block.0.len()
            + self.bios.0.len()
            + self.waits.0.len()
            + self.irqs.0.len()
            + self.pagecache.0.len()
            + self.slices.0.len()
    }

    // Something may come behind the end of its request: an interrupt that fell into the
    // making of that one's own record.

    pub(crate) fn wait(&mut self, cpu: u32, record: &WaitRecord, tasks: &mut Tasks) {
        match self.in_call(record.tid, record.request_ns) {
            Ok(parts) => parts.waits.push((cpu, *record)),
            Err(rid) => self.push_wait(rid, cpu, record, tasks),
        }
    }

    pub(crate) fn irq(&mut self, cpu: u32, record: &IrqRecord, tasks: &mut Tasks) {
        match self.in_call(record.tid, record.request_ns) {
            Ok(parts) => parts.irqs.push((cpu, *record)),
            Err(rid) => self.push_irq(rid, cpu, record, tasks),
        }
    }

    pub(crate) fn cache(&mut self, record: &CacheRecord, files: &mut Files, tasks: &mut Tasks) {
        let before = match self.in_call(record.tid, record.request_ns) {
            Ok(parts) => parts
                .cache
                .replace(*record)
                .map(|before| (NULL_I64, before)),
            Err(rid) => Some((rid, *record)),
        };
        if let Some((rid, record)) = before {
            self.push_cache(rid, &record, None, files, tasks);
        }
    }

    pub(crate) fn span(&mut self, record: &SpanRecord) {
        if let Ok(parts) = self.in_call(record.tid, record.request_ns) {
            parts.spans.push(*record);
        }
    }

    /// What is gathered of a request; when it has ended already, its id.
    fn in_call(&mut self, tid: u32, ns: u64) -> Result<&mut Parts, i64> {
        let key = Key { tid, ns };
        if let Some(rid) = self.requests.ended(key) {
            return Err(rid);
        }
        let parts = self.requests.parts(key).ok_or(NULL_I64)?;
        parts.in_call = true;
        Ok(parts)
    }

    /// The id of a request that has ended; its rows are made.
    pub(crate) fn ends(&mut self, ended: &Ended<'_>, files: &mut Files, tasks: &mut Tasks) -> i64 {
        let (rid, parts) = self.requests.ends(ended.key, ended.kind);
        if let Some(parts) = parts {
            self.gathered(Some((rid, ended)), &parts, files, tasks);
        }
        for parts in self.requests.stale() {
            self.gathered(None, &parts, files, tasks);
        }
        rid
    }

    /// The recording is over.
    pub(crate) fn finish(&mut self, files: &mut Files, tasks: &mut Tasks) {
        self.requests.finish();
        for parts in self.requests.stale() {
            self.gathered(None, &parts, files, tasks);
        }
    }

    /// Rows of what was gathered of a request; `None`: its own record did not come.
    #[inline(never)]
    fn gathered(
        &mut self,
        request: Option<(i64, &Ended<'_>)>,
        parts: &Parts,
        files: &mut Files,
        tasks: &mut Tasks,
    ) {
        let rid = request.map_or(NULL_I64, |(rid, _)| rid);
        for (cpu, record) in &parts.waits {
            self.push_wait(rid, *cpu, record, tasks);
        }
        for (cpu, record) in &parts.irqs {
            self.push_irq(rid, *cpu, record, tasks);
        }
        if let Some(record) = &parts.cache {
            let read = request.and_then(|(_, ended)| ended.read);
            self.push_cache(rid, record, read, files, tasks);
        }
        let Some((rid, ended)) = request else {
            return;
        };
        let whole = Whole {
            kind: ended.kind,
            layer: if ended.kind == Kind::Fault {
                Layer::PageCache
            } else {
                Layer::Syscall
            },
            name: ended.name,
            begin: ended.key.ns,
            end: ended.key.ns.saturating_add(ended.dur_ns),
        };
        let (rows, strings) = &mut self.slices;
        for slice in slices::slices(&whole, parts) {
            rows.push(SliceRow {
                rid,
                layer: strings.intern(slice.layer.name().as_bytes()),
                name: strings.intern(slice.name.as_bytes()),
                ts_ns: signed(slice.begin),
                dur_ns: signed(slice.end - slice.begin),
                self_ns: signed(slice.own_ns),
                depth: slice.depth,
            });
        }
    }

    fn push_wait(&mut self, rid: i64, cpu: u32, r: &WaitRecord, tasks: &mut Tasks) {
        let (rows, strings) = &mut self.waits;
        let flags = u32::from(r.flags);
        let seen = flags & WAIT_UNSEEN == 0;
        let woken = flags & WAIT_WOKEN != 0 && flags & WAIT_PREEMPTED == 0;
        let end = r.ts_ns.saturating_add(r.dur_ns);
        let waker = words::waker(r);
        rows.push(WaitRow {
            rid,
            ts_ns: signed(r.ts_ns),
            dur_ns: if seen { signed(r.dur_ns) } else { NULL_I64 },
            pid: id(r.pid),
            tid: id(r.tid),
            comm: comm(tasks, r.tid, r.ts_ns, strings),
            cpu: if seen { id(cpu) } else { NULL_I32 },
            reason: strings.intern(words::reason(r).as_bytes()),
            woken_at_ns: if woken { signed(r.wake_ns) } else { NULL_I64 },
            run_queue_ns: if woken && seen {
                signed(end.saturating_sub(r.wake_ns))
            } else {
                NULL_I64
            },
            waker_tid: match &waker {
                Some((_, Some(tid))) => id(*tid),
                _ => NULL_I32,
            },
            waker: match &waker {
                Some((name, _)) => strings.intern(name.as_bytes()),
                None => StrId::NULL,
            },
        });
    }

    fn push_irq(&mut self, rid: i64, cpu: u32, r: &IrqRecord, tasks: &mut Tasks) {
        let (rows, strings) = &mut self.irqs;
        rows.push(IrqRow {
            rid,
            ts_ns: signed(r.ts_ns),
            dur_ns: signed(r.dur_ns),
            pid: id(r.pid),
            tid: id(r.tid),
            comm: comm(tasks, r.tid, r.ts_ns, strings),
            cpu: id(cpu),
            kind: strings.intern(words::interrupt_kind(r).as_bytes()),
            name: strings.intern(words::interrupt_source(r).as_bytes()),
        });
    }

    fn push_cache(
        &mut self,
        rid: i64,
        r: &CacheRecord,
        read: Option<(i64, i64)>,
        files: &mut Files,
        tasks: &mut Tasks,
    ) {
        // A read looks for all the pages that it was asked for, also those behind the
        // end of the file: what it returned tells how many there were.
        let asked = u64::from(r.pages);
        let pages = match read {
            Some((offset, bytes)) if asked > 0 && offset >= 0 && bytes >= 0 => {
                asked.min(pages_of(offset as u64, bytes as u64))
            }
            _ => asked,
        };
        let misses = u64::from(r.missed).min(pages);
        let (rows, strings) = &mut self.pagecache;
        let looked = |value: u64| if asked > 0 { signed(value) } else { NULL_I64 };
        let (file_id, path) = file(files, r.file, r.request_ns, strings);
        rows.push(PagecacheRow {
            rid,
            ts_ns: signed(r.request_ns),
            pid: id(r.pid),
            tid: id(r.tid),
            comm: comm(tasks, r.tid, r.request_ns, strings),
            file_id,
            path,
            pages: looked(pages),
            hits: looked(pages - misses),
            misses: looked(misses),
            readahead_pages: i64::from(r.ahead) + i64::from(r.missed) - signed(misses),
            added_pages: i64::from(r.added),
            dirtied: i64::from(r.dirtied),
            journal_handles: i64::from(r.handles),
        });
    }

    /// A request to a device, which makes its rows at once.
    pub(crate) fn block(&mut self, cpu: u32, r: &BlockRecord, bio_bytes: &[u8], files: &mut Files) {
        self.block_id += 1;
        let block_id = self.block_id;
        let seen = u32::from(r.flags) & BLOCK_UNSEEN == 0;
        let device: Arc<str> = Arc::from(&*lossless(text::until_nul(&r.disk)));
        let mut first: Option<(BioRecord, i64)> = None;
        let mut queued_at_ns = 0;
        let mut submitters: Vec<Key> = Vec::new();
        for bio in bios(bio_bytes) {
            let rid = self
                .requests
                .id(Key {
                    tid: bio.cause_tid,
                    ns: bio.cause_ns,
                })
                .unwrap_or(NULL_I64);
            let submitter = Key {
                tid: bio.submit_tid,
                ns: bio.submit_ns,
            };
            let submit_rid = self.requests.id(submitter).unwrap_or(NULL_I64);
            if submitter.ns > 0 && !submitters.contains(&submitter) {
                submitters.push(submitter);
            }
            if bio.queued_at_ns > 0 && (queued_at_ns == 0 || bio.queued_at_ns < queued_at_ns) {
                queued_at_ns = bio.queued_at_ns;
            }
            self.push_bio(block_id, &bio, rid, submit_rid, r.completed_at_ns, files);
            first.get_or_insert((bio, rid));
        }
        for key in submitters.into_iter().filter(|_| seen) {
            if let Some(parts) = self.requests.parts(key) {
                parts.blocks.push(Block {
                    device: Arc::clone(&device),
                    queued_at_ns,
                    issued_at_ns: r.issued_at_ns,
                    completed_at_ns: r.completed_at_ns,
                });
            }
        }
        let known = [
            queued_at_ns,
            r.started_at_ns,
            r.inserted_at_ns,
            r.issued_at_ns,
        ];
        let ts_ns = known.into_iter().filter(|ns| *ns > 0).min();
        let ts_ns = ts_ns.unwrap_or(r.completed_at_ns);
        let (rows, strings) = &mut self.block;
        let (mut file_id, mut path) = (NULL_I64, StrId::NULL);
        if let Some((bio, _)) = &first {
            (file_id, path) = file(files, bio.file, r.completed_at_ns, strings);
        }
        let submitter = first
            .as_ref()
            .map(|(bio, _)| bio)
            .filter(|b| b.queued_at_ns > 0);
        rows.push(BlockRow {
            block_id,
            rid: first.map_or(NULL_I64, |(_, rid)| rid),
            ts_ns: signed(ts_ns),
            dur_ns: if seen {
                signed(r.completed_at_ns.saturating_sub(ts_ns))
            } else {
                NULL_I64
            },
            device: strings.intern(device.as_bytes()),
            // One without data (a flush) has none.
            sector: if r.sector == u64::MAX {
                NULL_I64
            } else {
                signed(r.sector)
            },
            bytes: signed(r.bytes),
            op: strings.intern(words::operation(r.op).as_bytes()),
            flags: match words::block_flags(r.flags) {
                none if none.is_empty() => StrId::NULL,
                flags => strings.intern(flags.as_bytes()),
            },
            error: if seen { i32::from(r.error) } else { NULL_I32 },
            queued_at_ns: time(queued_at_ns),
            started_at_ns: time(r.started_at_ns),
            inserted_at_ns: time(r.inserted_at_ns),
            issued_at_ns: time(r.issued_at_ns),
            completed_at_ns: if seen {
                signed(r.completed_at_ns)
            } else {
                NULL_I64
            },
            pid: submitter.map_or(NULL_I32, |b| id(b.submit_pid)),
            tid: submitter.map_or(NULL_I32, |b| id(b.submit_tid)),
            comm: submitter.map_or(StrId::NULL, |b| {
                strings.intern(lossless(text::until_nul(&b.comm)).as_bytes())
            }),
            cpu: if seen { id(cpu) } else { NULL_I32 },
            file_id,
            path,
            file_offset: match &first {
                Some((bio, _)) if bio.offset != NO_OFFSET => bio.offset.max(0),
                _ => NULL_I64,
            },
            queue_depth: if r.issued_at_ns > 0 {
                i64::from(r.queue_depth)
            } else {
                NULL_I64
            },
            // Of a request without an end only a single bio is known.
            bios: if seen || r.bios == 1 {
                id(u32::from(r.bios).saturating_add(r.bios_left_out))
            } else {
                NULL_I32
            },
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
        files: &mut Files,
    ) {
        let (rows, strings) = &mut self.bios;
        let (file_id, path) = file(files, bio.file, now_ns, strings);
        let seen = bio.queued_at_ns > 0;
        let caused = bio.cause_ns > 0;
        let number = |known: bool, value: u32| if known { id(value) } else { NULL_I32 };
        rows.push(BioRow {
            block_id,
            rid,
            submit_rid,
            ts_ns: time(bio.queued_at_ns),
            sector: signed(bio.sector),
            bytes: i64::from(bio.bytes),
            origin: strings.intern(words::origin(bio.origin).as_bytes()),
            pid: number(seen, bio.submit_pid),
            tid: number(seen, bio.submit_tid),
            comm: if seen {
                strings.intern(lossless(text::until_nul(&bio.comm)).as_bytes())
            } else {
                StrId::NULL
            },
            cause_pid: number(caused, bio.cause_pid),
            cause_tid: number(caused, bio.cause_tid),
            file_id,
            path,
            file_offset: if bio.offset == NO_OFFSET || !seen {
                NULL_I64
            } else {
                bio.offset.max(0)
            },
        });
    }

    /// The rows since the last time, a batch each table.
    pub(crate) fn take(&mut self) -> Vec<Batch> {
        macro_rules! batches {
            ($($table:ident),*) => {
                vec![$({
                    let (rows, strings) = std::mem::take(&mut self.$table);
                    rows.into_batch(strings)
                }),*]
            };
        }
        batches![block, bios, waits, irqs, pagecache, slices]
    }
}

/// Pages that a range of bytes lies in. Where pages are larger than 4 KiB (some arm64
/// kernels), the range that was looked up is the limit.
fn pages_of(offset: u64, bytes: u64) -> u64 {
    const PAGE: u64 = 4096;
    if bytes == 0 {
        return 0;
    }
    (offset.saturating_add(bytes) - 1) / PAGE - offset / PAGE + 1
}

fn time(ns: u64) -> i64 {
    if ns > 0 { signed(ns) } else { NULL_I64 }
}

fn comm(tasks: &mut Tasks, tid: u32, now_ns: u64, strings: &mut StringTable) -> StrId {
    tasks
        .used(tid, now_ns)
        .map_or(StrId::NULL, |comm| strings.intern(comm.as_bytes()))
}

fn file(files: &mut Files, handle: u32, now_ns: u64, strings: &mut StringTable) -> (i64, StrId) {
    if handle == 0 {
        return (NULL_I64, StrId::NULL);
    }
    let file = files.by_handle(handle, now_ns);
    let path = file.path.as_ref().map_or(StrId::NULL, |path| {
        strings.intern(lossless(path).as_bytes())
    });
    (file.id, path)
}
