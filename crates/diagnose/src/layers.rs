//! Rows of the layers below the calls, and what they add up to for each request.

mod beside;
mod waits;

use hashbrown::HashMap;

use fathom_model::Batch;
use fathom_model::tables::{BIOS, BLOCK, FAULTS, IRQS, SLICES, SPANS, Table, USER_CALLS, WAITS};

use crate::call::{FileId, LARGEST};
use crate::columns::Columns;
pub use beside::{LibraryCall, Slice, Span};
pub use waits::Wait;

/// A kind of row below the calls that a rule may look at one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layer {
    /// Rows of `block`, with their `bios`.
    Device,
    Fault,
    /// Rows of `irqs`.
    Interrupt,
    /// Rows of `waits`.
    Wait,
    /// Rows of `spans`.
    Span,
    /// Rows of `user_calls`.
    Library,
    /// Rows of `slices`.
    Slice,
}

impl Layer {
    /// The kind of the rows of a table that only some rules look at, and few sessions have.
    pub(crate) fn only_of(table: &Table) -> Option<Self> {
        [
            (&SPANS, Layer::Span),
            (&USER_CALLS, Layer::Library),
            (&SLICES, Layer::Slice),
        ]
        .into_iter()
        .find(|(known, _)| std::ptr::eq(*known, table))
        .map(|(_, layer)| layer)
    }
}

/// A row below the calls.
#[derive(Clone, Copy, Debug)]
pub enum Row<'a> {
    Device(Request<'a>),
    /// A page fault on a mapped file.
    Fault(Fault<'a>),
    /// An interrupt in the course of a request.
    Interrupt(Interrupt<'a>),
    /// A thread was off the CPU, in a request or outside of requests.
    Wait(Wait<'a>),
    Span(Span<'a>),
    Library(LibraryCall<'a>),
    Slice(Slice<'a>),
}

impl Row<'_> {
    pub(crate) fn layer(&self) -> Layer {
        match self {
            Row::Device(_) => Layer::Device,
            Row::Fault(_) => Layer::Fault,
            Row::Interrupt(_) => Layer::Interrupt,
            Row::Wait(_) => Layer::Wait,
            Row::Span(_) => Layer::Span,
            Row::Library(_) => Layer::Library,
            Row::Slice(_) => Layer::Slice,
        }
    }
}

/// A completed block request of any process.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub device: &'a str,
    /// The operation: `read`, `write`, `flush`.
    pub op: &'a str,
    pub bytes: i64,
    /// When it was submitted, nanoseconds; `None` when that was not seen.
    pub queued_at_ns: Option<i64>,
    /// When the device got it.
    pub issued_at_ns: Option<i64>,
    pub completed_at_ns: i64,
    pub pid: Option<i32>,
    pub tid: Option<i32>,
    pub comm: &'a str,
    /// Its bios.
    pub bios: &'a [Bio],
}

/// Where a bio comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The task's own I/O, direct or metadata.
    Call,
    /// A read into the page cache of what was asked for.
    Read,
    /// A read ahead of it.
    Readahead,
    /// Dirty pages.
    Writeback,
    /// The journal of a file system.
    Journal,
    /// Anything else.
    Other,
}

/// The unit in which a file system submits I/O.
#[derive(Clone, Copy, Debug)]
pub struct Bio {
    pub rid: Option<i64>,
    /// Request in whose course it was submitted.
    pub submit_rid: Option<i64>,
    pub bytes: i64,
    /// Where it comes from.
    pub origin: Origin,
    pub cause_pid: Option<i32>,
    pub cause_tid: Option<i32>,
    pub file: Option<FileId>,
    /// Byte in the file.
    pub offset: Option<i64>,
}

/// A page fault on a mapped file.
#[derive(Clone, Copy, Debug)]
pub struct Fault<'a> {
    pub rid: i64,
    pub ts_ns: i64,
    pub dur_ns: i64,
    pub pid: i32,
    pub tid: i32,
    pub comm: &'a str,
    /// `read`, `write` or `exec`.
    pub access: &'a str,
    /// Whether the page had to be read, or waited for.
    pub major: bool,
    pub file: Option<FileId>,
    /// Byte in the file.
    pub offset: i64,
    /// Bytes that were read from devices in its course, ahead ones too: as far as they had arrived.
    pub read_bytes: i64,
}

/// An interrupt that took the CPU in the course of a request.
#[derive(Clone, Copy, Debug)]
pub struct Interrupt<'a> {
    pub dur_ns: i64,
    pub pid: i32,
    pub tid: i32,
    /// Device, or name of the softirq.
    pub name: &'a str,
}

/// Events below one request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Below {
    /// Pages that were not in memory.
    pub misses: i64,
    /// Pages that came into memory ahead of what was asked for.
    pub ahead: i64,
    /// Pieces that it had to read from a device for what it asked for: into the page
    /// cache, or direct.
    pub reads: u32,
    /// Bytes that were read from devices in its course, ahead ones too.
    pub read_bytes: i64,
    /// Bytes that were written to devices in its course.
    pub written_bytes: i64,
    /// Time off the CPU, whatever for, nanoseconds.
    pub off_cpu_ns: i64,
    /// Of which it could have run, but other threads had the CPU.
    pub run_queue_ns: i64,
    /// Of the time off the CPU, for I/O.
    pub io_wait_ns: i64,
    /// Of which in wait for a thread, which is `waker_tid` of the longest,
    /// nanoseconds.
    pub lock_wait_ns: i64,
    /// The thread that ended the longest of these waits.
    pub waker_tid: i32,
    /// The longest of these waits.
    longest_lock_ns: i64,
}

impl Below {
    /// Adds pages that were brought into the page cache: asked for, and ahead of those.
    pub(crate) fn cache(&mut self, (misses, ahead): (i64, i64)) {
        self.misses += misses;
        self.ahead += ahead;
    }

    /// Whether it waited for bytes from a device.
    pub fn missed(&self) -> bool {
        self.misses > 0 || self.reads > 0
    }
}

/// Requests whose own row has not come, of which something below was seen: as many
/// twice.
const MAX_OPEN: usize = 1 << 18;
/// Requests to devices whose bios came, but not their own row.
const MAX_BIOS: usize = 1 << 18;

/// Rows on their way to the request that they belong to.
#[derive(Debug, Default)]
pub(crate) struct Layers {
    young: HashMap<i64, Below>,
    old: HashMap<i64, Below>,
    bios: HashMap<i64, Vec<Bio>>,
}

/// Tables of layers with the columns to read, and the column that limits a batch in time. In the
/// order in which batches of one time must be fed.
pub(crate) const TABLES: &[(&Table, &[&str], &str)] = &[
    (&WAITS, waits::COLUMNS, "ts_ns"),
    (&IRQS, &["ts_ns", "dur_ns", "pid", "tid", "name"], "ts_ns"),
    (
        &BIOS,
        &[
            "block_id",
            "rid",
            "submit_rid",
            "bytes",
            "origin",
            "cause_pid",
            "cause_tid",
            "file_id",
            "file_offset",
        ],
        "block_id",
    ),
    (
        &BLOCK,
        &[
            "block_id",
            "device",
            "bytes",
            "op",
            "queued_at_ns",
            "issued_at_ns",
            "completed_at_ns",
            "pid",
            "tid",
            "comm",
            "rid",
            "bio_origin",
            "bio_submit_rid",
            "bio_cause_pid",
            "bio_cause_tid",
            "file_id",
            "file_offset",
        ],
        "completed_at_ns",
    ),
    (
        &FAULTS,
        &[
            "rid",
            "ts_ns",
            "dur_ns",
            "pid",
            "tid",
            "comm",
            "access",
            "kind",
            "file_id",
            "file_offset",
        ],
        "ts_ns",
    ),
    (&SLICES, beside::SLICE_COLUMNS, "ts_ns"),
    (&SPANS, beside::SPAN_COLUMNS, "ts_ns"),
    (&USER_CALLS, beside::LIBRARY_COLUMNS, "ts_ns"),
];

/// Columns of a table of [`TABLES`].
pub(crate) fn columns(table: &Table) -> Option<&'static [&'static str]> {
    TABLES
        .iter()
        .find(|(known, _, _)| std::ptr::eq(*known, table))
        .map(|(_, columns, _)| *columns)
}

fn origin(name: &str) -> Origin {
    match name {
        "call" => Origin::Call,
        "read" => Origin::Read,
        "readahead" => Origin::Readahead,
        "writeback" => Origin::Writeback,
        "journal" => Origin::Journal,
        _ => Origin::Other,
    }
}

/// The bio that the row of a request has in its own columns.
fn only_bio(columns: &Columns, i: usize) -> Option<Bio> {
    let name = columns.text(11, i)?;
    let rid = columns.i64(10, i);
    Some(Bio {
        rid,
        submit_rid: other(columns.i64(12, i), rid),
        bytes: columns.i64(2, i).unwrap_or(0).clamp(0, LARGEST),
        origin: origin(name),
        cause_pid: other(columns.i32(13, i), columns.i32(7, i)),
        cause_tid: other(columns.i32(14, i), columns.i32(8, i)),
        file: columns.i64(15, i).map(FileId),
        offset: columns.i64(16, i),
    })
}

/// A value of that bio: null stands for the request's, 0 for null.
fn other<T: PartialEq + Default>(stored: Option<T>, same: Option<T>) -> Option<T> {
    match stored {
        None => same,
        Some(value) => Some(value).filter(|value| *value != T::default()),
    }
}

impl Layers {
    /// Events below a request that has ended.
    pub(crate) fn take(&mut self, rid: i64) -> Below {
        // Most sessions have no layers.
        if self.young.is_empty() && self.old.is_empty() {
            return Below::default();
        }
        let young = self.young.remove(&rid);
        young.or_else(|| self.old.remove(&rid)).unwrap_or_default()
    }

    /// The same, and it stays known.
    pub(crate) fn of(&self, rid: i64) -> Below {
        let young = self.young.get(&rid);
        young
            .or_else(|| self.old.get(&rid))
            .copied()
            .unwrap_or_default()
    }

    fn below(&mut self, rid: i64) -> &mut Below {
        if self.young.len() >= MAX_OPEN {
            self.old = std::mem::take(&mut self.young);
        }
        let before = self.old.remove(&rid);
        self.young
            .entry(rid)
            .or_insert_with(|| before.unwrap_or_default())
    }

    /// Takes a batch of a table of [`TABLES`]; hands over what is a row by itself.
    pub(crate) fn feed(&mut self, batch: &Batch, row: impl FnMut(&Row)) {
        let Some(names) = columns(batch.table) else {
            return;
        };
        let columns = Columns::new(batch, names);
        let table = batch.table;
        if std::ptr::eq(table, &WAITS) {
            self.waits(&columns, row);
        } else if std::ptr::eq(table, &IRQS) {
            interrupts(&columns, row);
        } else if std::ptr::eq(table, &BIOS) {
            self.pieces(&columns);
        } else if std::ptr::eq(table, &BLOCK) {
            self.requests(&columns, row);
        } else if std::ptr::eq(table, &SLICES) {
            beside::slices(&columns, row);
        } else if std::ptr::eq(table, &SPANS) {
            beside::spans(&columns, row);
        } else if std::ptr::eq(table, &USER_CALLS) {
            beside::library_calls(&columns, row);
        } else {
            self.faults(&columns, row);
        }
    }

    /// Takes the pages that a call that is still to come brought into the page cache: an operation that it
    /// submits, which has no such columns itself, may come before it.
    pub(crate) fn cached(&mut self, rid: i64, cached: (i64, i64)) {
        if cached != (0, 0) {
            self.below(rid).cache(cached);
        }
    }

    fn pieces(&mut self, columns: &Columns) {
        for i in 0..columns.rows() {
            let Some(block) = columns.i64(0, i) else {
                continue;
            };
            if self.bios.len() >= MAX_BIOS {
                self.bios.clear();
            }
            self.bios.entry(block).or_default().push(Bio {
                rid: columns.i64(1, i),
                submit_rid: columns.i64(2, i),
                bytes: columns.i64(3, i).unwrap_or(0).clamp(0, LARGEST),
                origin: origin(columns.text(4, i).unwrap_or("")),
                cause_pid: columns.i32(5, i),
                cause_tid: columns.i32(6, i),
                file: columns.i64(7, i).map(FileId),
                offset: columns.i64(8, i),
            });
        }
    }

    fn requests(&mut self, columns: &Columns, mut row: impl FnMut(&Row)) {
        for i in 0..columns.rows() {
            let Some(block) = columns.i64(0, i) else {
                continue;
            };
            let bios = match only_bio(columns, i) {
                Some(bio) => vec![bio],
                None => self.bios.remove(&block).unwrap_or_default(),
            };
            let op = columns.text(3, i).unwrap_or("");
            for bio in &bios {
                let Some(rid) = bio.submit_rid else { continue };
                let below = self.below(rid);
                match op {
                    "read" => {
                        below.read_bytes += bio.bytes;
                        below.reads += u32::from(bio.origin != Origin::Readahead);
                    }
                    "write" => below.written_bytes += bio.bytes,
                    _ => {}
                }
            }
            // How long it took is what the rules of devices are about.
            let Some(completed_at_ns) = columns.i64(6, i) else {
                continue;
            };
            row(&Row::Device(Request {
                device: columns.text(1, i).unwrap_or(""),
                op,
                bytes: columns.i64(2, i).unwrap_or(0).clamp(0, LARGEST),
                queued_at_ns: columns.i64(4, i),
                issued_at_ns: columns.i64(5, i),
                completed_at_ns,
                pid: columns.i32(7, i),
                tid: columns.i32(8, i),
                comm: columns.text(9, i).unwrap_or(""),
                bios: &bios,
            }));
        }
    }

    fn faults(&mut self, columns: &Columns, mut row: impl FnMut(&Row)) {
        for i in 0..columns.rows() {
            let rid = columns.i64(0, i).unwrap_or(0);
            row(&Row::Fault(Fault {
                rid,
                ts_ns: columns.i64(1, i).unwrap_or(0),
                dur_ns: columns.i64(2, i).unwrap_or(0).clamp(0, LARGEST),
                pid: columns.i32(3, i).unwrap_or(0),
                tid: columns.i32(4, i).unwrap_or(0),
                comm: columns.text(5, i).unwrap_or(""),
                access: columns.text(6, i).unwrap_or(""),
                major: columns.text(7, i) == Some("major"),
                file: columns.i64(8, i).map(FileId),
                offset: columns.i64(9, i).unwrap_or(0),
                read_bytes: self.take(rid).read_bytes,
            }));
        }
    }
}

fn interrupts(columns: &Columns, mut row: impl FnMut(&Row)) {
    for i in 0..columns.rows() {
        row(&Row::Interrupt(Interrupt {
            dur_ns: columns.i64(1, i).unwrap_or(0).clamp(0, LARGEST),
            pid: columns.i32(2, i).unwrap_or(0),
            tid: columns.i32(3, i).unwrap_or(0),
            name: columns.text(4, i).unwrap_or(""),
        }));
    }
}

/// How far a batch of a table of [`TABLES`] reaches: the last time, or id, of its rows.
pub(crate) fn reaches(batch: &Batch, column: &str) -> Option<i64> {
    let columns = Columns::new(batch, &[column]);
    (0..batch.len()).rev().find_map(|row| columns.i64(0, row))
}
