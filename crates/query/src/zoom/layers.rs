//! Sums by layer: of the visits in table `slices`, and of the calls that have none.
//!
//! The whole time of a call without visits belongs to layer `syscall`. The time of such calls is
//! the time of all calls minus the durations of calls with visits, bucket by bucket: a call and the
//! visit that stands for the whole of it start at the same time.

use std::sync::Arc;

use fathom_pyramid::{Key, LATENCY_BUCKETS, Latency, Sum};

use super::buckets::{Buckets, Entry, NO_LATENCY, Numbers, Row};
use super::gather::{Bytes, Gather, Total};
use super::summed::{Answers, inside, paths};
use super::{By, Filter, Gathered, MAX_ROWS, Request, Zoom, align, busy, rows};
use crate::QueryError;

const SYSCALL: &str = "syscall";
/// Places of the dimensions in the pyramid of table `slices`.
const LAYER: usize = 0;
const REQUEST: usize = 1;

/// Sums by layer in buckets of 2^`asked` ns, or wider ones.
pub(super) fn gather<'a>(
    zoom: &Zoom,
    request: &'a Request,
    window: (i64, i64),
    asked: u8,
) -> Result<Gathered<'a>, QueryError> {
    let filtered = request.filter != Filter::default();
    let max_rows = request.max_rows.unwrap_or(MAX_ROWS);
    let wider = |shift: u8| {
        let of =
            |dimension| match zoom
                .visits
                .answers(dimension, align(window, shift), shift, max_rows)
            {
                Answers::Wider(wider) => Some(wider),
                _ => None,
            };
        // Only rows show which visits belong to matching calls.
        match filtered {
            true => None,
            false => of(LAYER).max(of(REQUEST)),
        }
    };
    let mut shift = asked;
    while let Some(wider) = wider(shift) {
        shift = wider;
    }
    let of_calls = Request {
        by: By::Nothing,
        latency: true,
        busy: false,
        ..request.clone()
    };
    let calls = zoom.gather(&of_calls, window, shift)?;
    let (shift, window) = (calls.shift, calls.window);
    let mut visits = Visits::new(window.0, shift);
    let read = visits.read(zoom, request, window, shift, max_rows)?;

    let mut gather = Gather::new(request);
    gather.start(window.0, shift);
    if !calls.gather.has_directions() {
        gather.without_directions();
    }
    for (entry, latency) in visits.own.iter() {
        let layer = match visits.layers.key(entry.key) {
            Some(layer) => Key::Text(Arc::clone(layer)),
            None => Key::Rest { cut: false },
        };
        gather.add(entry.time, &layer, (&entry.sum, Bytes::default()), latency);
    }
    let syscall = Key::Text(Arc::from(SYSCALL));
    for (bucket, total, _) in calls.gather.finish().into_iter().flat_map(|line| line.1) {
        let time = window.0 + (i64::from(bucket) << shift);
        let without = without(&total, visits.wholes.get(time, 0));
        let (sum, latency) = (&without.sum, &without.latency);
        gather.add(time, &syscall, (sum, total.bytes), latency);
        let known = visits.own.get(time, visits.syscall);
        let known = known.map_or(0, |(entry, _)| entry.sum.max_ns);
        if without.most_ns > known.max(sum.max_ns) {
            gather.longest_may_be_longer(time, &syscall);
        }
    }
    if request.busy {
        busy::spread_visits(zoom, request, (window, shift), &mut gather, &syscall)?;
    }
    Ok(Gathered {
        gather,
        shift,
        window,
        blocks: calls.blocks + read.blocks,
        parts: calls.parts + read.parts,
    })
}

/// How much was read.
struct Answered {
    blocks: usize,
    parts: usize,
}

/// Sums of table `slices`.
struct Visits {
    layers: Numbers<Arc<str>>,
    syscall: u32,
    /// By layer, what visits took themselves.
    own: Buckets,
    /// The time of calls with visits.
    wholes: Buckets,
}

impl Visits {
    /// None, in buckets of 2^`shift` ns, the first of which begins at `from`.
    fn new(from: i64, shift: u8) -> Self {
        let mut layers = Numbers::default();
        Self {
            syscall: layers.of(SYSCALL, |name| Arc::from(name)),
            layers,
            own: Buckets::new(from, shift, true),
            wholes: Buckets::new(from, shift, true),
        }
    }

    fn layer(&mut self, name: &str) -> u32 {
        self.layers.of(name, |name| Arc::from(name))
    }

    /// Adds all visits of a window of whole buckets.
    fn read(
        &mut self,
        zoom: &Zoom,
        request: &Request,
        window: (i64, i64),
        shift: u8,
        max_rows: u64,
    ) -> Result<Answered, QueryError> {
        let table = &zoom.visits;
        let filter = request.filter.sql();
        let blocks = match filter {
            None => self.blocks(zoom, window, shift, max_rows),
            // Only rows show which visits belong to matching calls.
            Some(_) => None,
        };
        let parts = match blocks {
            Some(_) => paths(inside(table.uncovered(), window)),
            None => {
                *self = Self::new(window.0, shift);
                paths(inside(table.parts(), window))
            }
        };
        let answered = Answered {
            blocks: blocks.unwrap_or(0),
            parts: parts.len(),
        };
        if parts.is_empty() {
            return Ok(answered);
        }
        // Calls began before the visits that they are made of.
        let before = || paths(inside(zoom.calls.parts(), (0, window.1)));
        let of_calls = filter.map(|filter| (before(), filter));
        rows::visits(&zoom.db, &parts, window, of_calls, |visit| {
            let key = self.layer(visit.layer);
            let row = |key, took_ns| Row {
                time: visit.time,
                key,
                took_ns,
                failed: false,
                bytes: 0,
                ways: Bytes::default(),
            };
            self.own.row(&row(key, visit.self_ns));
            if let (Some(whole_ns), true) = (visit.whole_ns, key == self.syscall) {
                self.wholes.row(&row(0, whole_ns));
            }
        })?;
        Ok(answered)
    }

    /// Adds the pyramid's blocks and returns their number. `None` if the pyramid does not cover
    /// both sums, or is damaged, which was not noticed until now.
    fn blocks(
        &mut self,
        zoom: &Zoom,
        window: (i64, i64),
        shift: u8,
        max_rows: u64,
    ) -> Option<usize> {
        let pyramid = zoom.visits.pyramid()?;
        let plan = |dimension| match zoom.visits.answers(dimension, window, shift, max_rows) {
            Answers::Blocks(plan) => Some(plan),
            _ => None,
        };
        let (own, wholes) = (plan(LAYER)?, plan(REQUEST)?);
        zoom.visits
            .add_texts(&own, window, &mut self.layers, &mut self.own)?;
        let read = pyramid.read(&wholes, true, |cells| {
            let is_call = |key: &Key| matches!(key, Key::Text(name) if &**name == SYSCALL);
            let calls: Vec<bool> = cells.keys().iter().map(is_call).collect();
            for (time, key, sum, latency) in cells.in_window(window) {
                if let (Some(true), Some(latency)) = (calls.get(key), latency) {
                    self.wholes.merge(time, 0, sum, latency);
                }
            }
        });
        read.ok()?;
        Some(own.blocks() + wholes.blocks())
    }
}

/// Calls that have no visits.
struct Without {
    /// Their sums, with errors and bytes of all calls; of the longest the least that it can be.
    sum: Sum,
    latency: Latency,
    /// The most that the longest can be, nanoseconds.
    most_ns: u64,
}

/// All calls of a bucket minus the calls with visits.
fn without(total: &Total, wholes: Option<(&Entry, &Latency)>) -> Without {
    let (whole, histogram) = wholes.map_or((Sum::default(), &NO_LATENCY), |(e, l)| (e.sum, l));
    let all = &total.sum;
    let mut latency = [0; LATENCY_BUCKETS];
    for ((left, all), whole) in latency.iter_mut().zip(&total.latency).zip(histogram) {
        *left = u32::try_from(all.saturating_sub(u64::from(*whole))).unwrap_or(u32::MAX);
    }
    let (least, most) = match latency.iter().rposition(|n| *n > 0) {
        None => (0, 0),
        Some(_) if all.max_ns > whole.max_ns => (all.max_ns, all.max_ns),
        // The longest call of all has visits: the histogram of the others limits their maximum.
        Some(bucket) => {
            let end = 2u64.checked_shl(bucket as u32).unwrap_or(u64::MAX);
            let least = if bucket == 0 { 0 } else { end / 2 };
            let last = bucket + 1 == LATENCY_BUCKETS;
            (
                least,
                if last {
                    all.max_ns
                } else {
                    all.max_ns.min(end - 1)
                },
            )
        }
    };
    Without {
        sum: Sum {
            count: all.count.saturating_sub(whole.count),
            time_ns: all.time_ns.saturating_sub(whole.time_ns),
            max_ns: least,
            ..*all
        },
        latency,
        most_ns: most,
    }
}
