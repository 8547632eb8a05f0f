//! Reading a pyramid: which segments hold, and which of them a window needs.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, MetadataExt};

use crate::block::Extent;
use crate::block::{self, Decoded};
use crate::file::{HEAD, MAGIC, VERSION};
use crate::{Key, Latency, PyramidError, Source, Sum};

/// A part of the table: the numbers of the first and the last part that were
/// merged in it, and its rows.
pub type Part = (u64, u64, u64);

#[derive(Clone, Debug)]
struct SegmentInfo {
    tier: u8,
    extent: Extent,
    /// Place, length and shift, one a dimension.
    blocks: Vec<(u64, u32, u8)>,
}

/// A pyramid's file and what is in it.
#[derive(Debug)]
pub struct Pyramid {
    file: File,
    segments: Vec<SegmentInfo>,
    read_to: u64,
}

/// Segments that hold for the parts that are there, as a tree.
#[derive(Debug, Default)]
pub struct Cover {
    roots: Vec<usize>,
    /// Of each segment of the pyramid.
    children: Vec<Vec<usize>>,
    /// Numbers of the parts, in the list that was given, that no segment has.
    pub uncovered: Vec<usize>,
}

/// The requirements of a window.
#[derive(Debug, Default)]
pub struct Plan {
    blocks: Vec<(u64, u32, u8)>,
    /// The narrowest buckets, as a shift, for which segments suffice, if the requested ones are too
    /// narrow.
    pub too_narrow: Option<u8>,
    /// Rows in the segments for which they are, about.
    pub rows: u64,
}

impl Plan {
    /// Blocks that will be read.
    pub fn blocks(&self) -> usize {
        self.blocks.len()
    }

    pub fn bytes(&self) -> u64 {
        self.blocks.iter().map(|b| u64::from(b.1)).sum()
    }
}

impl Pyramid {
    /// Reads the file of a pyramid. `None` if it has only a header. Reads the heads of blocks that are
    /// not `known` from the same file; [`Pyramid::read`] compares a block with its hash, since a large
    /// pyramid has a hundred megabytes, and a window needs a few of its blocks.
    ///
    /// # Errors
    /// [`PyramidError::Damaged`] when it is something else,
    /// [`PyramidError::Version`], [`PyramidError::Io`].
    pub fn open(
        file: File,
        source: &Source,
        known: Option<&Self>,
    ) -> Result<Option<Self>, PyramidError> {
        let mut head = [0; HEAD as usize];
        match file.read_exact_at(&mut head, 0) {
            // Killed as it began.
            Err(e) if e.kind() == ErrorKind::UnexpectedEof => return Ok(None),
            result => result?,
        }
        if &head[..8] != MAGIC {
            return Err(PyramidError::Damaged("it does not begin as one does"));
        }
        let version = u32::from_le_bytes([head[8], head[9], head[10], head[11]]);
        if version != VERSION {
            return Err(PyramidError::Version(version));
        }
        let mut pyramid = Self {
            file,
            segments: Vec::new(),
            read_to: HEAD,
        };
        let now = pyramid.file.metadata()?;
        if let Some(known) = known {
            // Its number is not given to another file as long as this one is open.
            let before = known.file.metadata()?;
            if (before.dev(), before.ino()) == (now.dev(), now.ino()) {
                pyramid.segments.clone_from(&known.segments);
                pyramid.read_to = known.read_to;
            }
        }
        pyramid.read_heads(now.len(), source.dimensions.len())?;
        Ok(Some(pyramid))
    }

    /// Reads the segments after the known ones, up to the end or to the first one whose heads are
    /// damaged. Which windows a segment is for is in the head of each of its blocks, so that a
    /// damaged one differs from the others.
    fn read_heads(&mut self, length: u64, dimensions: usize) -> Result<(), PyramidError> {
        let (mut at, mut blocks) = (self.read_to, Vec::new());
        let mut head = [0; block::HEAD];
        let mut of_segment = None;
        while at + block::HEAD as u64 <= length {
            self.file.read_exact_at(&mut head, at)?;
            let Some((block, lengths)) = block::decode_head(&head) else {
                break;
            };
            let end = at + u64::from(lengths.total);
            if end > length || usize::from(block.dimension) != blocks.len() {
                break;
            }
            let place = (block.tier, block.extent);
            let is_last = blocks.len() + 1 == dimensions;
            if *of_segment.get_or_insert(place) != place || block.last != is_last {
                break;
            }
            blocks.push((at, lengths.total, block.shift));
            at = end;
            if block.last {
                self.read_to = at;
                of_segment = None;
                self.segments.push(SegmentInfo {
                    tier: block.tier,
                    extent: block.extent,
                    blocks: std::mem::take(&mut blocks),
                });
            }
        }
        Ok(())
    }

    pub fn segments(&self) -> usize {
        self.segments.len()
    }

    /// The segments that agree with `parts`, which are in order and do not overlap: a segment
    /// agrees if its range consists of whole parts with the same number of rows.
    pub fn cover(&self, parts: &[Part]) -> Cover {
        let mut cover = Cover {
            children: vec![Vec::new(); self.segments.len()],
            ..Cover::default()
        };
        let mut order: Vec<usize> = (0..self.segments.len()).collect();
        order.sort_by_key(|i| {
            let s = &self.segments[*i];
            (
                s.extent.first_part,
                u64::MAX - s.extent.last_part,
                u8::MAX - s.tier,
            )
        });
        let mut open: Vec<usize> = Vec::new();
        let mut end: Option<u64> = None;
        for i in order {
            let extent = self.segments[i].extent;
            while open
                .last()
                .is_some_and(|o| self.segments[*o].extent.last_part < extent.last_part)
            {
                open.pop();
            }
            match open.last() {
                Some(parent) => {
                    let before = cover.children[*parent].last();
                    let overlaps = before
                        .is_some_and(|b| self.segments[*b].extent.last_part >= extent.first_part);
                    if overlaps {
                        continue;
                    }
                    cover.children[*parent].push(i);
                }
                // Everything inside a valid segment was written with it.
                None => {
                    let overlaps = end.is_some_and(|end| extent.first_part <= end);
                    if overlaps || !holds(&extent, parts) {
                        continue;
                    }
                    end = Some(extent.last_part);
                    cover.roots.push(i);
                }
            }
            open.push(i);
        }
        // Children that are not all there cannot stand for their parent.
        for i in 0..self.segments.len() {
            let rows: u64 = cover.children[i]
                .iter()
                .map(|c| self.segments[*c].extent.rows)
                .sum();
            if rows != self.segments[i].extent.rows {
                cover.children[i].clear();
            }
        }
        let mut roots = cover
            .roots
            .iter()
            .map(|i| self.segments[*i].extent)
            .peekable();
        for (number, part) in parts.iter().enumerate() {
            while roots.next_if(|r| r.last_part < part.0).is_some() {}
            if roots.peek().is_none_or(|r| r.first_part > part.0) && part.2 > 0 {
                cover.uncovered.push(number);
            }
        }
        cover
    }

    /// Times of the earliest and the latest row in a cover.
    pub fn span(&self, cover: &Cover) -> Option<(i64, i64)> {
        let extents = cover.roots.iter().map(|i| &self.segments[*i].extent);
        let first = extents.clone().map(|e| e.first_at_ns).min()?;
        Some((first, extents.map(|e| e.last_at_ns).max()?))
    }

    /// Which blocks of a dimension answer for rows from `from_ns` to before
    /// `to_ns` in buckets of 2^`shift` ns.
    pub fn plan(&self, cover: &Cover, dimension: usize, window: (i64, i64), shift: u8) -> Plan {
        let mut plan = Plan::default();
        let mut todo: Vec<usize> = cover.roots.clone();
        while let Some(i) = todo.pop() {
            let segment = &self.segments[i];
            let e = &segment.extent;
            if e.last_at_ns < window.0 || e.first_at_ns >= window.1 {
                continue;
            }
            let Some(block) = segment.blocks.get(dimension) else {
                continue;
            };
            if block.2 <= shift {
                plan.blocks.push(*block);
            } else if cover.children[i].is_empty() {
                let span = e.last_at_ns.saturating_sub(e.first_at_ns).max(1) as f64;
                let inside = window
                    .1
                    .min(e.last_at_ns)
                    .saturating_sub(window.0.max(e.first_at_ns));
                plan.rows += (e.rows as f64 * (inside as f64 / span).clamp(0.0, 1.0)) as u64;
                plan.too_narrow = Some(plan.too_narrow.unwrap_or(0).max(block.2));
            } else {
                todo.extend(&cover.children[i]);
            }
        }
        plan
    }

    /// Gives the cells of a plan to `each`, a block at a time; some are outside of
    /// the window. Histograms only if `latencies`.
    ///
    /// # Errors
    /// [`PyramidError::Damaged`], [`PyramidError::Io`].
    pub fn read(
        &self,
        plan: &Plan,
        latencies: bool,
        mut each: impl FnMut(&Cells),
    ) -> Result<(), PyramidError> {
        let mut bytes = Vec::new();
        for (at, length, shift) in &plan.blocks {
            bytes.resize(*length as usize, 0);
            self.file.read_exact_at(&mut bytes, *at)?;
            each(&Cells {
                decoded: block::decode(&bytes, latencies)?,
                shift: *shift,
            });
        }
        Ok(())
    }
}

/// The cells of a block.
#[derive(Debug)]
pub struct Cells {
    decoded: Decoded,
    shift: u8,
}

impl Cells {
    pub fn keys(&self) -> &[Key] {
        &self.decoded.keys
    }

    /// The cells from `from_ns` to before `to_ns`: time of the bucket's
    /// beginning, place in [`Cells::keys`], sums, and histogram if it was read.
    pub fn in_window(
        &self,
        (from_ns, to_ns): (i64, i64),
    ) -> impl Iterator<Item = (i64, usize, &Sum, Option<&Latency>)> {
        let Decoded {
            places,
            sums,
            latencies,
            ..
        } = &self.decoded;
        let shift = self.shift;
        let from = places.partition_point(move |p| (p.0 << shift) < from_ns);
        (from..places.len())
            .map(move |i| (places[i].0 << shift, i))
            .take_while(move |(time, _)| *time < to_ns)
            .map(move |(time, i)| (time, places[i].1 as usize, &sums[i], latencies.get(i)))
    }
}

/// Whether the parts of the range are there, whole, with as many rows.
fn holds(extent: &Extent, parts: &[Part]) -> bool {
    let from = parts.partition_point(|p| p.1 < extent.first_part);
    let (mut next, mut rows) = (extent.first_part, 0u64);
    for (first, last, part_rows) in &parts[from..] {
        if *first != next || *last > extent.last_part {
            break;
        }
        rows = rows.saturating_add(*part_rows);
        if *last == extent.last_part {
            return rows == extent.rows;
        }
        next = last + 1;
    }
    false
}
