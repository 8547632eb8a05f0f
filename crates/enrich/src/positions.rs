//! Where I/O at the position of a shared descriptor took place.
//!
//! The kernel side derives the offset of a read or write from the position at
//! the call's end. When several threads use one open file description, another
//! may have moved the position between the I/O and that moment, so that the
//! derived offset is too high; the position at the call's entry may be too low
//! for the same reason. When both agree the offset is certain. Otherwise the
//! I/O took place at one of them or in between, and this is what is known:
//!
//! - the kernel serialises such I/O by a lock on the position, so the ranges
//!   `[offset, offset + ret)` never overlap;
//! - every position that was ever read, at an entry or at an end, is a boundary
//!   between two ranges, so no range contains one.
//!
//! The calls without a certain offset are placed from left to right into the
//! ranges that the others leave, the one with the lowest derived offset first,
//! with a bounded search backwards when a choice turns out impossible. A call
//! for which no place is left gets no offset rather than a wrong one. All calls
//! together then come out as the ranges that were really transferred; when more
//! than one order of racing calls explains what was seen, which of them moved
//! which range is one of the possible answers.
//!
//! When filters have left calls out, what they moved is not known, and no such
//! call is placed.
//!
//! A range that overlaps one that is taken means that the position was moved
//! (lseek): what was known of the description before is then forgotten.

use hashbrown::HashMap;

/// Taken ranges that are kept of a description while a batch is gathered.
const MAX_CLAIMS: usize = 1024;
/// Taken ranges that are kept of a description from one batch to the next.
const KEPT_CLAIMS: usize = 64;
/// Descriptions that are followed at a time.
const MAX_DESCRIPTIONS: usize = 65_536;
/// Calls of one description that wait to be placed.
const MAX_WAITING: usize = 1024;
/// Steps of the search per call that is to be placed.
const STEPS_PER_CALL: usize = 16;

/// Bytes from `start` up to, not including, `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    start: i64,
    end: i64,
}

/// A call whose offset is not certain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Raced {
    /// Row that waits for the offset.
    pub row: usize,
    /// Position at entry: the lowest offset possible.
    pub entry: i64,
    /// Offset derived from the position at the end: the highest possible.
    pub derived: i64,
    /// Bytes moved, more than 0.
    pub bytes: i64,
}

impl Raced {
    fn lowest(&self) -> i64 {
        // The position was moved back when it was higher at the entry.
        self.entry.min(self.derived)
    }
}

#[derive(Debug, Default)]
struct Description {
    /// Ascending, without overlaps; neighbours that touch are one range.
    claims: Vec<Range>,
    waiting: Vec<Raced>,
    /// When it was last used.
    epoch: u32,
}

/// The descriptions in use. A description is named by the kernel side's id and
/// the file, since ids are used again.
#[derive(Debug, Default)]
pub(crate) struct Positions {
    descriptions: HashMap<(u32, u32), Description>,
    resolved: Vec<(usize, Option<i64>)>,
    epoch: u32,
    /// Calls are missing that may have moved positions.
    calls_left_out: bool,
}

impl Positions {
    /// Descriptions of which nothing is known yet.
    pub(crate) fn new(calls_left_out: bool) -> Self {
        Self {
            calls_left_out,
            ..Self::default()
        }
    }

    /// Notes a call whose offset is certain.
    pub(crate) fn certain(&mut self, id: u32, file: u32, offset: i64, bytes: i64) {
        let Some(range) = range(offset, bytes) else {
            return;
        };
        let epoch = self.epoch;
        self.make_room(id, file);
        let description = self.descriptions.entry((id, file)).or_default();
        description.epoch = epoch;
        if !description.claim(range) {
            description.settle(&mut self.resolved);
            description.claims.clear();
            description.claim(range);
        }
    }

    /// Notes a call whose offset is not certain; [`Positions::resolve`] tells
    /// it.
    pub(crate) fn raced(&mut self, id: u32, file: u32, call: Raced) {
        if self.calls_left_out {
            self.resolved.push((call.row, None));
            return;
        }
        let epoch = self.epoch;
        self.make_room(id, file);
        let description = self.descriptions.entry((id, file)).or_default();
        description.epoch = epoch;
        description.waiting.push(call);
        if description.waiting.len() >= MAX_WAITING {
            description.settle(&mut self.resolved);
        }
    }

    /// Places all calls that wait: row and offset of each. Descriptions that
    /// were not used since the last time are forgotten.
    pub(crate) fn resolve(&mut self, mut sink: impl FnMut(usize, Option<i64>)) {
        let epoch = self.epoch;
        let resolved = &mut self.resolved;
        self.descriptions.retain(|_, description| {
            description.settle(resolved);
            description.trim(KEPT_CLAIMS);
            description.epoch == epoch
        });
        self.epoch = self.epoch.wrapping_add(1);
        for (row, offset) in self.resolved.drain(..) {
            sink(row, offset);
        }
    }

    fn make_room(&mut self, id: u32, file: u32) {
        if self.descriptions.len() >= MAX_DESCRIPTIONS
            && !self.descriptions.contains_key(&(id, file))
        {
            for (_, mut description) in self.descriptions.drain() {
                description.settle(&mut self.resolved);
            }
        }
    }
}

fn range(start: i64, bytes: i64) -> Option<Range> {
    let end = start.checked_add(bytes)?;
    (start >= 0 && end > start).then_some(Range { start, end })
}

impl Description {
    /// Takes `range`; false when part of it is taken.
    fn claim(&mut self, range: Range) -> bool {
        let at = self.claims.partition_point(|c| c.end < range.start);
        // The first that touches or overlaps `range`, or lies behind it.
        match self.claims.get_mut(at) {
            Some(before) if before.end == range.start => {
                let next = self.claims.get(at + 1).copied();
                if next.is_some_and(|n| n.start < range.end) {
                    return false;
                }
                let joined = next.filter(|n| n.start == range.end);
                if let Some(before) = self.claims.get_mut(at) {
                    before.end = joined.map_or(range.end, |n| n.end);
                }
                if joined.is_some() {
                    self.claims.remove(at + 1);
                }
            }
            Some(behind) if behind.start == range.end => behind.start = range.start,
            Some(behind) if behind.start < range.end => return false,
            _ => {
                self.claims.insert(at, range);
                if self.claims.len() > MAX_CLAIMS {
                    self.trim(MAX_CLAIMS / 2);
                }
            }
        }
        true
    }

    /// Keeps the `count` ranges that lie highest.
    fn trim(&mut self, count: usize) {
        let excess = self.claims.len().saturating_sub(count);
        self.claims.drain(..excess);
    }

    /// Where the range that contains `at` ends.
    fn taken(&self, at: i64) -> Option<i64> {
        let i = self.claims.partition_point(|c| c.end <= at);
        self.claims.get(i).filter(|c| c.start <= at).map(|c| c.end)
    }

    fn is_free(&self, range: Range) -> bool {
        let i = self.claims.partition_point(|c| c.end <= range.start);
        self.claims.get(i).is_none_or(|c| c.start >= range.end)
    }

    /// Places the calls that wait.
    fn settle(&mut self, resolved: &mut Vec<(usize, Option<i64>)>) {
        let mut calls = std::mem::take(&mut self.waiting);
        calls.sort_by_key(|c| (c.lowest(), c.derived));
        // Calls whose ranges cannot meet are placed on their own.
        let mut rest = calls.as_slice();
        while let Some(first) = rest.first() {
            let mut end = first.derived.saturating_add(first.bytes);
            let mut count = 1;
            while let Some(next) = rest.get(count).filter(|c| c.lowest() < end) {
                end = end.max(next.derived.saturating_add(next.bytes));
                count += 1;
            }
            let (group, behind) = rest.split_at(count);
            self.place(group, resolved);
            rest = behind;
        }
    }

    fn place(&mut self, calls: &[Raced], resolved: &mut Vec<(usize, Option<i64>)>) {
        let offsets = Search::new(self, calls).run();
        for (call, offset) in calls.iter().zip(offsets) {
            if let Some(range) = offset.and_then(|o| range(o, call.bytes)) {
                self.claim(range);
            }
            resolved.push((call.row, offset));
        }
    }
}

/// The search for places of a group of calls, from left to right.
struct Search<'a> {
    description: &'a Description,
    calls: &'a [Raced],
    /// Positions that were read: no range contains one.
    boundaries: Vec<i64>,
    states: Vec<State>,
    /// Calls that are still open.
    open: usize,
}

/// What the search has decided on a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    At(i64),
    /// There is no place for it.
    Dropped,
}

/// One step: at `at`, `candidates` were possible; `next` of them is the one to
/// try next.
struct Step {
    at: i64,
    candidates: Vec<usize>,
    next: usize,
}

impl<'a> Search<'a> {
    fn new(description: &'a Description, calls: &'a [Raced]) -> Self {
        let mut boundaries: Vec<i64> = calls
            .iter()
            .flat_map(|c| [c.entry, c.derived.saturating_add(c.bytes)])
            .collect();
        boundaries.sort_unstable();
        boundaries.dedup();
        let states = vec![State::Open; calls.len()];
        Self {
            description,
            calls,
            boundaries,
            states,
            open: calls.len(),
        }
    }

    /// Offsets of the calls, in their order.
    fn run(mut self) -> Vec<Option<i64>> {
        let mut budget = self.calls.len().saturating_mul(STEPS_PER_CALL);
        let mut at = self
            .calls
            .iter()
            .map(Raced::lowest)
            .min()
            .unwrap_or_default();
        while self.open > 0 {
            at = self.fill(at, &mut budget);
            // Stuck: a record is missing. Leave a gap.
            let Some(next) = self.skip(at) else { break };
            at = next;
        }
        let offset = |state| match state {
            State::At(offset) => Some(offset),
            State::Open | State::Dropped => None,
        };
        self.states.into_iter().map(offset).collect()
    }

    /// Places as many calls as possible one behind the other from `from`,
    /// without gaps and without passing by a call. Returns where the last ends.
    fn fill(&mut self, from: i64, budget: &mut usize) -> i64 {
        let mut best = (self.open, from, self.states.clone());
        let mut steps = vec![self.step(from)];
        while let Some(step) = steps.last_mut() {
            // Take back what was tried at this step.
            if let Some(tried) = step
                .next
                .checked_sub(1)
                .and_then(|i| step.candidates.get(i))
            {
                if let Some(state) = self.states.get_mut(*tried) {
                    *state = State::Open;
                }
                self.open += 1;
            }
            let Some(&index) = step.candidates.get(step.next) else {
                steps.pop();
                continue;
            };
            step.next += 1;
            let at = step.at;
            let (Some(call), Some(state)) = (self.calls.get(index), self.states.get_mut(index))
            else {
                break;
            };
            *state = State::At(at);
            self.open -= 1;
            let end = at.saturating_add(call.bytes);
            if self.open < best.0 {
                best = (self.open, end, self.states.clone());
            }
            *budget = budget.saturating_sub(1);
            if self.open == 0 || *budget == 0 {
                break;
            }
            let step = self.step(end);
            steps.push(step);
        }
        (self.open, self.states) = (best.0, best.2);
        best.1
    }

    /// What can be placed at `at`, or behind the ranges that are taken there;
    /// nothing when a call would be passed by.
    fn step(&self, mut at: i64) -> Step {
        while let Some(end) = self.description.taken(at) {
            at = end;
        }
        let candidates = if self.passed(at) {
            Vec::new()
        } else {
            self.candidates(at)
        };
        Step {
            at,
            candidates,
            next: 0,
        }
    }

    fn passed(&self, at: i64) -> bool {
        self.calls
            .iter()
            .zip(&self.states)
            .any(|(c, s)| *s == State::Open && c.derived < at)
    }

    /// The next place, from `at` on, where a call can be placed. Calls that are
    /// passed by are dropped.
    fn skip(&mut self, mut at: i64) -> Option<i64> {
        loop {
            while let Some(end) = self.description.taken(at) {
                at = end;
            }
            for (call, state) in self.calls.iter().zip(&mut self.states) {
                if *state == State::Open && call.derived < at {
                    *state = State::Dropped;
                    self.open -= 1;
                }
            }
            if !self.candidates(at).is_empty() {
                return Some(at);
            }
            let next = self.boundaries.partition_point(|b| *b <= at);
            at = *self.boundaries.get(next)?;
        }
    }

    /// Calls that can take place at `at`, those that cannot wait long first.
    fn candidates(&self, at: i64) -> Vec<usize> {
        let next = self.boundaries.partition_point(|b| *b <= at);
        let boundary = self.boundaries.get(next).copied().unwrap_or(i64::MAX);
        let mut candidates: Vec<(i64, usize)> = Vec::new();
        for (i, (call, state)) in self.calls.iter().zip(&self.states).enumerate() {
            // They ascend by their lowest possible offset.
            if call.lowest() > at {
                break;
            }
            let possible = at <= call.derived
                && *state == State::Open
                && range(at, call.bytes)
                    .is_some_and(|r| r.end <= boundary && self.description.is_free(r));
            if possible {
                candidates.push((call.derived, i));
            }
        }
        candidates.sort_unstable();
        candidates.into_iter().map(|(_, i)| i).collect()
    }
}

#[cfg(test)]
mod tests;
