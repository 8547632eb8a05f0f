//! The layers below the calls: block requests, waits, and interrupts, and how the time of each
//! request is divided among them.

mod block;
pub(crate) mod faults;
mod names;
pub(crate) mod perf_counters;
pub(crate) mod requests;
mod slices;
pub(crate) mod stacks;
pub(crate) mod traced;
mod waits;

use fathom_model::abi::MAX_KERNEL_FUNCTIONS;
use fathom_model::abi::{BlockRecord, FunctionNameRecord, IrqRecord, SpanRecord, WaitRecord};
use fathom_model::batch::{Batch, NULL_I64};
use fathom_model::bytes::escape_invalid_utf8;
use fathom_model::layers::Layer;
use fathom_model::tables::{IrqRow, IrqRows, SliceRow, SliceRows, WaitRows};
use fathom_model::{StrId, StringTable};

use crate::strings::{Known, Name, Strings, ThreadNames};
use crate::{id, signed};
use block::Blocks;
use requests::{Key, Kind, Requests};
use slices::{Function, Label, Parts, Slicer, Whole};
use waits::{During, Wait};

/// Rows that were not taken yet, and what they wait for.
#[derive(Debug, Default)]
pub(crate) struct Layers {
    pub(crate) requests: Requests,
    blocks: Blocks,
    waits: (WaitRows, Strings),
    irqs: (IrqRows, Strings),
    slices: (SliceRows, Strings),
    slicer: Slicer,
    functions: Vec<Function>,
    faults_left_out: bool,
}

/// A request that has ended.
pub(crate) struct Ended {
    pub(crate) key: Key,
    pub(crate) kind: Kind,
    /// Name of the call; `page_fault`.
    pub(crate) name: &'static str,
    pub(crate) dur_ns: u64,
    /// Whether something that is written later may be its doing.
    pub(crate) changes: bool,
}

impl Layers {
    /// `calls_left_out`: not every call has a record of its own. `faults_left_out`: nor has every
    /// fault on a file.
    pub(crate) fn new(calls_left_out: bool, faults_left_out: bool) -> Self {
        Self {
            requests: Requests::new(calls_left_out),
            faults_left_out,
            ..Self::default()
        }
    }

    /// Rows of all tables that were not taken yet.
    #[inline]
    pub(crate) fn pending_rows(&self) -> usize {
        self.blocks.pending_rows() + self.waits.0.len() + self.irqs.0.len() + self.slices.0.len()
    }

    // Something may come behind the end of its request: an interrupt that fell into the
    // making of that one's own record.

    pub(crate) fn wait(&mut self, cpu: u32, record: &WaitRecord, known: &mut Known) {
        let wait = Wait::new(record);
        let rid = match wait.request_ns() {
            0 => NULL_I64,
            request_ns => match self.in_call(record.tid, request_ns) {
                Ok(parts) => return parts.waits.push((cpu, *record)),
                Err(rid) => rid,
            },
        };
        let (rows, strings) = &mut self.waits;
        wait.push((rows, strings), During::Request(rid), cpu, &[], known);
    }

    pub(crate) fn irq(&mut self, cpu: u32, record: &IrqRecord, known: &mut Known) {
        match self.in_call(record.tid, record.request_ns) {
            Ok(parts) => parts.irqs.push((cpu, *record)),
            Err(rid) => self.push_irq(rid, cpu, record, known),
        }
    }

    pub(crate) fn span(&mut self, record: &SpanRecord) {
        if let Ok(parts) = self.in_call(record.tid, record.request_ns) {
            parts.spans.push(*record);
        }
    }

    /// A function of the kernel whose visits have kind `record.span`.
    pub(crate) fn function(&mut self, record: &FunctionNameRecord, layer: &[u8], name: &[u8]) {
        let layer = std::str::from_utf8(layer).ok().and_then(Layer::named);
        if let Some(layer) = layer
            && self.functions.len() < MAX_KERNEL_FUNCTIONS as usize
        {
            self.functions.push(Function {
                span: record.span,
                layer,
                name: escape_invalid_utf8(name).into(),
            });
        }
    }

    /// Gathered data of a request; if it has ended already, its id.
    fn in_call(&mut self, tid: u32, ns: u64) -> Result<&mut Parts, i64> {
        let parts = self.requests.parts_or_id(Key::new(tid, ns))?;
        parts.in_call = true;
        Ok(parts)
    }

    /// The id of a request that has ended; its rows are made.
    #[inline]
    pub(crate) fn ends(&mut self, ended: &Ended, known: &mut Known) -> i64 {
        let (rid, parts) = self.requests.ends(ended.key, ended.kind, ended.changes);
        if let Some(parts) = parts {
            self.gathered(Some((rid, ended)), &parts, known);
            self.requests.recycle(parts);
        }
        if self.requests.has_stale() {
            self.settle(known);
        }
        rid
    }

    /// Makes the rows of requests whose own record did not come.
    #[inline(never)]
    fn settle(&mut self, known: &mut Known) {
        for parts in self.requests.stale() {
            self.gathered(None, &parts, known);
        }
    }

    /// The recording is over.
    pub(crate) fn finish(&mut self, known: &mut Known) {
        self.requests.finish();
        self.settle(known);
    }

    /// Rows of what was gathered of a request; `None`: its own record did not come.
    #[inline(never)]
    fn gathered(
        &mut self,
        request: Option<(i64, &Ended)>,
        parts: &Parts,
        thread_names: &mut impl ThreadNames,
    ) {
        let rid = request.map_or(NULL_I64, |(rid, _)| rid);
        for (cpu, record) in &parts.waits {
            let (rows, strings) = &mut self.waits;
            let wait = Wait::new(record);
            let during = match request {
                Some((rid, _)) => During::Request(rid),
                None if self.faults_left_out || wait.goes_on() => During::LeftOut,
                // One on a file has a record.
                None => During::AnonymousFault,
            };
            wait.push((rows, strings), during, *cpu, &parts.blocks, thread_names);
        }
        for (cpu, record) in &parts.irqs {
            self.push_irq(rid, *cpu, record, thread_names);
        }
        let Some((rid, ended)) = request.filter(|_| parts.has_times()) else {
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
        let devices = self.blocks.devices();
        for slice in self.slicer.slices(&whole, parts, devices, &self.functions) {
            rows.push(SliceRow {
                rid,
                layer: strings.word(slice.layer.name()),
                name: match slice.label {
                    Label::Word(word) => strings.word(word),
                    Label::Device(number) => match devices.get(usize::from(number)) {
                        Some(name) => {
                            strings.name(Name::new(DEVICE | u64::from(number), &[0; 16]), || name)
                        }
                        None => StrId::NULL,
                    },
                    Label::Function(number) => match self.functions.get(number) {
                        Some(function) => {
                            let name = Name::new(FUNCTION | number as u64, &[0; 16]);
                            strings.name(name, || &function.name)
                        }
                        None => StrId::NULL,
                    },
                    Label::Irq(at) => match parts.irqs.get(at) {
                        Some((_, irq)) => {
                            strings.name(names::of_interrupt(irq), || names::interrupt(irq))
                        }
                        None => StrId::NULL,
                    },
                },
                ts_ns: signed(slice.begin),
                dur_ns: signed(slice.end - slice.begin),
                self_ns: signed(slice.own_ns),
                depth: slice.depth,
            });
        }
    }

    /// A request to a device, which makes its rows at once.
    pub(crate) fn block(&mut self, cpu: u32, r: &BlockRecord, bios: &[u8], known: &mut Known) {
        self.blocks.on(cpu, r, bios, &mut self.requests, known);
    }

    fn push_irq(&mut self, rid: i64, cpu: u32, r: &IrqRecord, thread_names: &mut impl ThreadNames) {
        let (rows, strings) = &mut self.irqs;
        rows.push(IrqRow {
            rid,
            ts_ns: signed(r.ts_ns),
            dur_ns: signed(r.dur_ns),
            pid: id(r.pid),
            tid: id(r.tid),
            comm: thread_names.thread_name(r.tid, r.ts_ns, strings),
            cpu: id(cpu),
            kind: strings.word(names::interrupt_kind(r)),
            name: strings.name(names::of_interrupt(r), || names::interrupt_source(r)),
        });
    }

    /// The rows since the last time, a batch each table.
    pub(crate) fn take(&mut self) -> Vec<Batch> {
        let mut batches = Vec::from(self.blocks.take());
        let new = StringTable::new;
        batches.extend([
            self.waits.0.take().into_batch(self.waits.1.take(new())),
            self.irqs.0.take().into_batch(self.irqs.1.take(new())),
            self.slices.0.take().into_batch(self.slices.1.take(new())),
        ]);
        batches
    }

    /// Something happened to a thread: what is remembered of it may be old.
    pub(crate) fn forget_thread(&mut self, tid: u32) {
        self.waits.1.forget_thread(tid);
        self.irqs.1.forget_thread(tid);
    }

    /// The same for a file.
    pub(crate) fn forget_file(&mut self, handle: u32) {
        self.blocks.forget_file(handle);
    }
}

/// Kinds of the names of devices and of functions; the kinds of interrupts are smaller.
const DEVICE: u64 = 1 << 32;
const FUNCTION: u64 = 2 << 32;

/// Id and path of the file behind a handle.
fn file(handle: u32, now_ns: u64, known: &mut Known, strings: &mut StringTable) -> (i64, StrId) {
    if handle == 0 {
        return (NULL_I64, StrId::NULL);
    }
    let file = known.files.by_handle(handle, now_ns);
    let path = file.path.as_ref().map_or(StrId::NULL, |path| {
        strings.intern(escape_invalid_utf8(path).as_bytes())
    });
    (file.id, path)
}
