//! A block: the cells of one dimension of a segment, as bytes.

use std::cell::RefCell;
use std::sync::Arc;

use fathom_model::varint::{put, take, unzigzag, zigzag};
use twox_hash::XxHash64;
use zstd::bulk::{Compressor, Decompressor};

use crate::cells::{Cell, NULL, Names, REST, REST_CUT};
use crate::sum::{LATENCY_BUCKETS, Latency, Sum};
use crate::{Key, PyramidError};

/// Length of a block's head.
pub(crate) const HEAD: usize = 80;
const MAGIC: &[u8; 4] = b"FPB1";
const LAST: u8 = 1;
const TEXT: u8 = 2;
/// More than a block ever has of either, unpacked.
const MAX_UNPACKED: usize = 16 << 20;
/// The same packed, which may be a little more.
const MAX_PACKED: u64 = MAX_UNPACKED as u64 + (1 << 20);
const LEVEL: i32 = 1;

thread_local! {
    // A state of zstd takes a megabyte, which would be mapped and unmapped for each block.
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = RefCell::new(Compressor::new(LEVEL).ok());
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = RefCell::new(Decompressor::new().ok());
}

/// The rows that a segment covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) first_part: u64,
    pub(crate) last_part: u64,
    pub(crate) rows: u64,
    /// Times of the earliest and the latest row.
    pub(crate) first_at_ns: i64,
    pub(crate) last_at_ns: i64,
}

impl Extent {
    pub(crate) const NONE: Self = Self {
        first_part: u64::MAX,
        last_part: 0,
        rows: 0,
        first_at_ns: i64::MAX,
        last_at_ns: i64::MIN,
    };

    pub(crate) fn add(&mut self, other: &Extent) {
        self.first_part = self.first_part.min(other.first_part);
        self.last_part = self.last_part.max(other.last_part);
        self.rows += other.rows;
        self.first_at_ns = self.first_at_ns.min(other.first_at_ns);
        self.last_at_ns = self.last_at_ns.max(other.last_at_ns);
    }
}

/// The subject of a block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    pub(crate) tier: u8,
    pub(crate) dimension: u8,
    pub(crate) shift: u8,
    /// The last block of its segment.
    pub(crate) last: bool,
    pub(crate) extent: Extent,
}

/// Where the parts of a block are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lengths {
    pub(crate) total: u32,
    cells: u32,
    sums: (u32, u32),
    latencies: (u32, u32),
}

/// The cells of a block.
#[derive(Debug, Default)]
pub(crate) struct Decoded {
    pub(crate) keys: Vec<Key>,
    /// Bucket, place in `keys`.
    pub(crate) places: Vec<(i64, u32)>,
    /// Of the same cells.
    pub(crate) sums: Vec<Sum>,
    /// Of the same cells, if asked for.
    pub(crate) latencies: Vec<Latency>,
}

/// Appends a block to `out`. `cells` are sorted by bucket; their keys are texts
/// when there are `names`.
pub(crate) fn encode(block: &Block, cells: &[Cell], names: Option<&Names>, out: &mut Vec<u8>) {
    let mut keys: Vec<i64> = cells.iter().map(|c| c.key).collect();
    keys.sort_unstable();
    keys.dedup();
    let mut sums = Vec::with_capacity(cells.len() * 12);
    put(keys.len() as u64, &mut sums);
    for key in &keys {
        put_key(&mut sums, *key, names);
    }
    let mut before = 0;
    for cell in cells {
        put(zigzag(cell.bucket.wrapping_sub(before)), &mut sums);
        before = cell.bucket;
    }
    for cell in cells {
        put(keys.binary_search(&cell.key).unwrap_or(0) as u64, &mut sums);
    }
    let columns: [fn(&Sum) -> u64; 5] = [
        |s| s.count,
        |s| s.errors,
        |s| s.bytes,
        |s| s.time_ns,
        // Nothing for the many cells of one row.
        |s| s.time_ns.wrapping_sub(s.max_ns),
    ];
    for column in columns {
        for cell in cells {
            put(column(&cell.sum), &mut sums);
        }
    }
    let mut latencies = Vec::with_capacity(cells.len() * 5);
    for cell in cells {
        let counts = &cell.latency;
        let first = counts.iter().position(|n| *n > 0).unwrap_or(0);
        let end = counts.iter().rposition(|n| *n > 0).map_or(first, |i| i + 1);
        latencies.extend([first as u8, (end - first) as u8]);
        for n in &counts[first..end] {
            put(u64::from(*n), &mut latencies);
        }
    }
    let start = out.len();
    out.resize(start + HEAD, 0);
    let sums_packed = pack(&sums, out);
    let latencies_packed = pack(&latencies, out);
    let e = &block.extent;
    let flags = if block.last { LAST } else { 0 } | if names.is_some() { TEXT } else { 0 };
    let mut head = Vec::with_capacity(HEAD);
    head.extend_from_slice(MAGIC);
    head.extend_from_slice(&((out.len() - start) as u32).to_le_bytes());
    head.extend_from_slice(&[0; 8]);
    head.extend_from_slice(&[block.tier, block.dimension, block.shift, flags]);
    head.extend_from_slice(&(cells.len() as u32).to_le_bytes());
    for number in [e.first_part, e.last_part, e.rows] {
        head.extend_from_slice(&number.to_le_bytes());
    }
    head.extend_from_slice(&e.first_at_ns.to_le_bytes());
    head.extend_from_slice(&e.last_at_ns.to_le_bytes());
    for length in [sums.len(), sums_packed, latencies.len(), latencies_packed] {
        head.extend_from_slice(&(length as u32).to_le_bytes());
    }
    out[start..start + HEAD].copy_from_slice(&head);
    let hash = XxHash64::oneshot(0, &out[start + 16..]);
    out[start + 8..start + 16].copy_from_slice(&hash.to_le_bytes());
}

fn pack(bytes: &[u8], out: &mut Vec<u8>) -> usize {
    // Level 1 of zstd into memory does not fail; if it did, the length 0 would be
    // refused on reading.
    let packed = COMPRESSOR.with_borrow_mut(|own| own.as_mut()?.compress(bytes).ok());
    let packed = packed.unwrap_or_default();
    out.extend_from_slice(&packed);
    packed.len()
}

/// Reads the head of a block. `None` when it is none: the end of what was
/// written.
pub(crate) fn decode_head(head: &[u8]) -> Option<(Block, Lengths)> {
    if head.get(..4)? != MAGIC {
        return None;
    }
    let [tier, dimension, shift, flags] = head.get(16..20)? else {
        return None;
    };
    let lengths = Lengths {
        total: u32_at(head, 4)?,
        cells: u32_at(head, 20)?,
        sums: (u32_at(head, 64)?, u32_at(head, 68)?),
        latencies: (u32_at(head, 72)?, u32_at(head, 76)?),
    };
    let parts = HEAD as u64 + u64::from(lengths.sums.1) + u64::from(lengths.latencies.1);
    let most = HEAD as u64 + 2 * MAX_PACKED;
    if parts != u64::from(lengths.total) || parts > most || *shift > 60 {
        return None;
    }
    let block = Block {
        tier: *tier,
        dimension: *dimension,
        shift: *shift,
        last: flags & LAST != 0,
        extent: Extent {
            first_part: u64_at(head, 24)?,
            last_part: u64_at(head, 32)?,
            rows: u64_at(head, 40)?,
            first_at_ns: u64_at(head, 48)? as i64,
            last_at_ns: u64_at(head, 56)? as i64,
        },
    };
    (block.extent.first_part <= block.extent.last_part).then_some((block, lengths))
}

/// Whether a block is as it was written.
fn is_as_written(bytes: &[u8]) -> bool {
    let body = bytes.get(16..).unwrap_or_default();
    u64_at(bytes, 8) == Some(XxHash64::oneshot(0, body))
}

/// Reads the cells of a whole block; histograms only if `latencies`.
pub(crate) fn decode(bytes: &[u8], latencies: bool) -> Result<Decoded, PyramidError> {
    let damaged = |what| move || PyramidError::Damaged(what);
    let (_, lengths) = decode_head(bytes).ok_or_else(damaged("a block has no head"))?;
    if bytes.len() != lengths.total as usize || !is_as_written(bytes) {
        return Err(PyramidError::Damaged("the hash of a block is another"));
    }
    let sums_end = HEAD + lengths.sums.1 as usize;
    let sums = unpack(bytes.get(HEAD..sums_end), lengths.sums.0)?;
    decode_sums(&sums, lengths.cells as usize)
        .and_then(|mut decoded| {
            if latencies {
                let packed = bytes.get(sums_end..);
                let bytes = unpack(packed, lengths.latencies.0).ok()?;
                decoded.latencies = decode_latencies(&bytes, decoded.sums.len())?;
            }
            Some(decoded)
        })
        .ok_or(PyramidError::Damaged("a block is cut"))
        .and_then(|decoded| {
            let text = bytes.get(19).is_some_and(|flags| flags & TEXT != 0);
            let of_kind =
                |k: &Key| !matches!((k, text), (Key::Int(_), true) | (Key::Text(_), false));
            if decoded.keys.iter().all(of_kind) {
                Ok(decoded)
            } else {
                Err(PyramidError::Damaged("a key is of another kind"))
            }
        })
}

fn unpack(packed: Option<&[u8]>, unpacked: u32) -> Result<Vec<u8>, PyramidError> {
    let unpacked = unpacked as usize;
    if unpacked > MAX_UNPACKED {
        return Err(PyramidError::Damaged("a block is too large"));
    }
    let packed = packed.unwrap_or_default();
    DECOMPRESSOR
        .with_borrow_mut(|own| own.as_mut()?.decompress(packed, unpacked).ok())
        .ok_or(PyramidError::Damaged("a block cannot be unpacked"))
}

fn decode_sums(bytes: &[u8], cells: usize) -> Option<Decoded> {
    let mut at = bytes;
    // Each cell takes a byte of each column at least.
    if cells > bytes.len() {
        return None;
    }
    let count = usize::try_from(take(&mut at)?).ok()?;
    if count > bytes.len() {
        return None;
    }
    let mut decoded = Decoded::default();
    for _ in 0..count {
        decoded.keys.push(take_key(&mut at)?);
    }
    let mut bucket = 0i64;
    for _ in 0..cells {
        bucket = bucket.wrapping_add(unzigzag(take(&mut at)?));
        decoded.places.push((bucket, 0));
    }
    for place in &mut decoded.places {
        place.1 = u32::try_from(take(&mut at)?).ok()?;
        if place.1 as usize >= count {
            return None;
        }
    }
    decoded.sums.resize(cells, Sum::default());
    let columns: [fn(&mut Sum, u64); 5] = [
        |s, v| s.count = v,
        |s, v| s.errors = v,
        |s, v| s.bytes = v,
        |s, v| s.time_ns = v,
        |s, v| s.max_ns = s.time_ns.wrapping_sub(v),
    ];
    for column in columns {
        for sum in &mut decoded.sums {
            column(sum, take(&mut at)?);
        }
    }
    Some(decoded)
}

fn decode_latencies(bytes: &[u8], cells: usize) -> Option<Vec<Latency>> {
    let mut at = bytes;
    let mut all = vec![[0; LATENCY_BUCKETS]; cells];
    for latency in &mut all {
        let ([first, length], rest) = at.split_first_chunk::<2>()?;
        at = rest;
        let first = *first as usize;
        for entry in latency.get_mut(first..first + *length as usize)? {
            *entry = u32::try_from(take(&mut at)?).ok()?;
        }
    }
    Some(all)
}

fn put_key(out: &mut Vec<u8>, key: i64, names: Option<&Names>) {
    let key = match (key, names) {
        (NULL, _) => Key::Null,
        (REST, _) => Key::Rest { cut: false },
        (REST_CUT, _) => Key::Rest { cut: true },
        (number, Some(names)) => names.key(number),
        (number, None) => Key::Int(number),
    };
    match key {
        Key::Null => out.push(0),
        Key::Rest { cut: false } => out.push(1),
        Key::Rest { cut: true } => out.push(2),
        Key::Int(number) => {
            out.push(3);
            put(zigzag(number), out);
        }
        Key::Text(name) => {
            out.push(4);
            put(name.len() as u64, out);
            out.extend_from_slice(name.as_bytes());
        }
    }
}

fn take_key(at: &mut &[u8]) -> Option<Key> {
    let (kind, rest) = at.split_first()?;
    *at = rest;
    Some(match kind {
        0 => Key::Null,
        1 => Key::Rest { cut: false },
        2 => Key::Rest { cut: true },
        3 => Key::Int(unzigzag(take(at)?)),
        4 => {
            let length = usize::try_from(take(at)?).ok()?;
            let (name, rest) = at.split_at_checked(length)?;
            *at = rest;
            Key::Text(Arc::from(std::str::from_utf8(name).ok()?))
        }
        _ => return None,
    })
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}
