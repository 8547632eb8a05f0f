//! Where I/O at the position of a shared descriptor took place.
//!
//! The kernel side derives the offset of such a read or write from the position that it finds
//! at the return, and notes the lowest offset possible at the entry: the position then, or the
//! size of a file opened with O_APPEND. Where both agree the offset is certain. Where another
//! thread or process used the same open file description meanwhile, they may differ: the
//! I/O took place at one of them or in between. No lock is held at either moment, so one call
//! alone says no more. All calls on the description that overlap in time (a burst) say more:
//!
//! - the kernel serializes I/O at a position by a lock (`f_pos_lock`, file_needs_f_pos_lock() in
//!   fs/file.c), so the ranges `[offset, offset + ret)` are disjoint;
//! - each position that was read is a boundary between two ranges. The boundaries cut the bytes
//!   that a burst moved into cells, and each range is inside one cell;
//! - when the ranges of all calls add up to the distance between the first and the last position,
//!   no call is missing, and each cell is filled.
//!
//! A call gets an offset when these facts leave one possibility, and none otherwise. Ranges that
//! two calls may have moved in either order stay without an owner. When the facts contradict each
//! other, or when lseek() moved the position or close() gave it up meanwhile, no call of the burst
//! has an offset. A call that was alone on its description keeps the derived offset under
//! O_APPEND, where another description moves the end of the file and not this position; else
//! a program that is not recorded moved the position, and the offset is not known.
//!
//! When filters leave calls out, bursts are incomplete, and only certain offsets are kept.

use hashbrown::HashMap;

/// Calls of one description that wait for the end of their burst.
const MAX_WAITING: usize = 4096;
/// Descriptions whose calls wait.
const MAX_DESCRIPTIONS: usize = 65_536;
/// Cells in which the calls of a burst may be, of each call in the mean: beyond that the burst
/// is not settled.
const MAX_CELLS_PER_CALL: usize = 64;

/// A call on an open file description that others may use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Use {
    /// Entry, nanoseconds.
    pub begin_ns: i64,
    pub ended_at_ns: i64,
    /// None of a call that moves the position without moving data (lseek), or gives a
    /// descriptor up (close), after which the kernel may use the description's address again.
    pub moved: Option<Moved>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Moved {
    /// Row that the offset belongs to.
    pub row: usize,
    /// The lowest offset possible.
    pub entry: i64,
    /// Offset derived from the position at the return: the highest possible.
    pub derived: i64,
    /// Bytes, more than 0.
    pub bytes: i64,
    /// Under O_APPEND: `entry` is a size of the file, not a position.
    pub appends: bool,
}

impl Moved {
    fn is_certain(&self) -> bool {
        self.entry == self.derived
    }

    /// The position at the return.
    fn position(&self) -> Option<i64> {
        self.derived.checked_add(self.bytes)
    }
}

impl Use {
    fn is_certain(&self) -> bool {
        self.moved.is_some_and(|m| m.is_certain())
    }
}

/// The calls since the last resolution, by description: the kernel side's id and the file. Ids
/// are addresses, which the kernel uses again: calls on two descriptions of one address do not
/// overlap, as the first is closed before the second is opened.
#[derive(Debug, Default)]
pub(crate) struct Positions {
    descriptions: HashMap<(u32, u32), Vec<Use>>,
    resolved: Vec<(usize, Option<i64>)>,
    calls_left_out: bool,
    unknown: u64,
}

impl Positions {
    /// No calls yet. `calls_left_out`: filters leave out calls that may move positions.
    pub(crate) fn new(calls_left_out: bool) -> Self {
        Self {
            calls_left_out,
            ..Self::default()
        }
    }

    /// Calls whose offset is not known, so far.
    pub(crate) fn unknown(&self) -> u64 {
        self.unknown
    }

    /// Counts a call whose offset the kernel side found not to be known.
    pub(crate) fn count_unknown(&mut self) {
        self.unknown += 1;
    }

    /// Notes a call on the description `id`. Its row has the derived offset until
    /// [`Positions::resolve`] says otherwise.
    pub(crate) fn note(&mut self, id: u32, file: u32, call: Use) {
        if self.calls_left_out {
            if let Some(moved) = call.moved.filter(|m| !m.is_certain()) {
                self.resolved.push((moved.row, None));
            }
            return;
        }
        if self.descriptions.len() >= MAX_DESCRIPTIONS
            && !self.descriptions.contains_key(&(id, file))
        {
            self.settle();
        }
        let calls = self.descriptions.entry((id, file)).or_default();
        calls.push(call);
        if calls.len() >= MAX_WAITING {
            self.settle();
        }
    }

    /// Settles the calls since the last time: `sink` gets each row whose offset is another than
    /// the derived one, and the offset.
    pub(crate) fn resolve(&mut self, mut sink: impl FnMut(usize, Option<i64>)) {
        self.settle();
        for (row, offset) in self.resolved.drain(..) {
            self.unknown += u64::from(offset.is_none());
            sink(row, offset);
        }
    }

    fn settle(&mut self) {
        for (_, mut calls) in self.descriptions.drain() {
            if calls.iter().all(Use::is_certain) {
                continue;
            }
            calls.sort_by_key(|c| c.begin_ns);
            let mut rest = calls.as_slice();
            while let Some(first) = rest.first() {
                let mut ended_at_ns = first.ended_at_ns;
                let mut count = 1;
                while let Some(next) = rest.get(count).filter(|c| c.begin_ns <= ended_at_ns) {
                    ended_at_ns = ended_at_ns.max(next.ended_at_ns);
                    count += 1;
                }
                let (burst, behind) = rest.split_at(count);
                let next = behind.first().and_then(|call| call.moved);
                settle_burst(burst, next, &mut self.resolved);
                rest = behind;
            }
        }
    }
}

/// Adds the rows of a burst whose offset is not the derived one. `next` is the first call after it.
fn settle_burst(burst: &[Use], next: Option<Moved>, out: &mut Vec<(usize, Option<i64>)>) {
    if burst.iter().all(Use::is_certain) {
        return;
    }
    // In the order in which they began.
    let moved: Vec<Moved> = burst.iter().filter_map(|c| c.moved).collect();
    let last = burst
        .iter()
        .max_by_key(|c| c.ended_at_ns)
        .and_then(|c| c.moved);
    let offsets = match (last, moved.as_slice()) {
        // Its position or its description may be another one now.
        _ if moved.len() < burst.len() => None,
        // Alone: this description's position was moved by this call only. Unless the processor stood still between
        // the call's end and the look at the position: calls that began later have moved it then, too, and
        // the first of them found an end of the file that is before that position.
        (_, [call]) => {
            let moved_later = next.zip(call.position());
            let moved_later = moved_later.is_some_and(|(next, position)| next.entry < position);
            let known = call.appends && call.derived >= 0 && !moved_later;
            known.then(|| vec![Some(call.derived)])
        }
        (Some(last), calls) => Cells::new(calls, last).and_then(Cells::settle),
        (None, _) => None,
    };
    let offsets = offsets.unwrap_or_else(|| vec![None; moved.len()]);
    let changed = moved.iter().zip(offsets);
    out.extend(
        changed
            .filter(|(call, offset)| *offset != Some(call.derived))
            .map(|(call, offset)| (call.row, offset)),
    );
}

/// The cells of a burst, and in which of them each call may be.
struct Cells<'a> {
    burst: &'a [Moved],
    /// Positions that were read, ascending: cell `i` is between `bounds[i]` and `bounds[i + 1]`.
    bounds: Vec<i64>,
    /// Cells that a call may be in; empty once it has an offset.
    of_call: Vec<Vec<usize>>,
    /// Calls that may be in a cell; empty once it is filled.
    of_cell: Vec<Vec<usize>>,
    filled: Vec<bool>,
    offsets: Vec<Option<i64>>,
    /// No call is missing: each cell is filled.
    complete: bool,
}

/// Calls to examine again, because possibilities were eliminated.
enum Changed {
    Call(usize),
    Cell(usize),
}

impl<'a> Cells<'a> {
    /// None when what was seen contradicts itself.
    /// `burst` in the order in which the calls began; `last` is the one that ended last.
    fn new(burst: &'a [Moved], last: Moved) -> Option<Self> {
        let mut bounds = Vec::with_capacity(2 * burst.len());
        for call in burst {
            if call.entry < 0 || call.derived < call.entry {
                return None;
            }
            bounds.push(call.position()?);
            // The size of a file grows while another call appends: then it is no boundary.
            if !call.appends || call.is_certain() {
                bounds.push(call.entry);
            }
        }
        let first = burst.iter().map(|c| c.entry).min()?;
        bounds.push(first);
        bounds.sort_unstable();
        bounds.dedup();
        let begin = burst.first()?.entry;
        let end = last.position()?;
        let moved = burst
            .iter()
            .try_fold(0i64, |sum, c| sum.checked_add(c.bytes))?;
        let complete =
            first == begin && bounds.last() == Some(&end) && end.checked_sub(begin) == Some(moved);
        let mut cells = Self {
            burst,
            of_call: Vec::with_capacity(burst.len()),
            of_cell: vec![Vec::new(); bounds.len().saturating_sub(1)],
            filled: vec![false; bounds.len().saturating_sub(1)],
            offsets: vec![None; burst.len()],
            bounds,
            complete,
        };
        cells.find_possibilities().then_some(cells)
    }

    /// False when there are too many.
    fn find_possibilities(&mut self) -> bool {
        let mut left = self.burst.len().saturating_mul(MAX_CELLS_PER_CALL);
        for (number, call) in self.burst.iter().enumerate() {
            let mut possible = Vec::new();
            let from = self.bounds.partition_point(|b| *b <= call.entry);
            let pairs = self.bounds.windows(2).enumerate();
            for (cell, bounds) in pairs.skip(from.saturating_sub(1)) {
                let &[start, end] = bounds else { break };
                if start > call.derived {
                    break;
                }
                let Some(rest) = left.checked_sub(1) else {
                    return false;
                };
                left = rest;
                // A range [o, o + bytes) in this cell with entry <= o <= derived.
                if start.max(call.entry) <= call.derived.min(end.saturating_sub(call.bytes)) {
                    possible.push(cell);
                    if let Some(calls) = self.of_cell.get_mut(cell) {
                        calls.push(number);
                    }
                }
            }
            self.of_call.push(possible);
        }
        true
    }

    /// Offsets of the calls that have one possibility; None when one has none.
    fn settle(mut self) -> Option<Vec<Option<i64>>> {
        let mut changed: Vec<Changed> = (0..self.of_call.len()).map(Changed::Call).collect();
        changed.extend((0..self.of_cell.len()).map(Changed::Cell));
        while let Some(next) = changed.pop() {
            match next {
                Changed::Call(call) => self.look_at_call(call, &mut changed)?,
                Changed::Cell(cell) => self.look_at_cell(cell, &mut changed)?,
            }
        }
        Some(self.offsets)
    }

    fn look_at_call(&mut self, call: usize, changed: &mut Vec<Changed>) -> Option<()> {
        if self.offsets.get(call)?.is_some() {
            return Some(());
        }
        match self.of_call.get(call)?.as_slice() {
            [] => None,
            &[cell] if self.fills(call, cell) => self.place(call, cell, changed),
            _ => Some(()),
        }
    }

    fn look_at_cell(&mut self, cell: usize, changed: &mut Vec<Changed>) -> Option<()> {
        if !self.complete || *self.filled.get(cell)? {
            return Some(());
        }
        match self.of_cell.get(cell)?.as_slice() {
            [] => None,
            // It fills the cell, or nothing can.
            &[call] => match self.fills(call, cell) {
                true => self.place(call, cell, changed),
                false => None,
            },
            _ => Some(()),
        }
    }

    fn fills(&self, call: usize, cell: usize) -> bool {
        let length = match self.bounds.get(cell..) {
            Some([start, end, ..]) => end.saturating_sub(*start),
            _ => return false,
        };
        self.burst.get(call).is_some_and(|c| c.bytes == length)
    }

    fn place(&mut self, call: usize, cell: usize, changed: &mut Vec<Changed>) -> Option<()> {
        *self.offsets.get_mut(call)? = Some(*self.bounds.get(cell)?);
        *self.filled.get_mut(cell)? = true;
        for other in std::mem::take(self.of_cell.get_mut(cell)?) {
            self.of_call.get_mut(other)?.retain(|c| *c != cell);
            changed.push(Changed::Call(other));
        }
        for other in std::mem::take(self.of_call.get_mut(call)?) {
            self.of_cell.get_mut(other)?.retain(|c| *c != call);
            changed.push(Changed::Cell(other));
        }
        Some(())
    }
}

#[cfg(test)]
mod tests;
