//! Sums by layer: of the visits in table `slices`, and of the calls that have none.
//!
//! All time of a call below which nothing was seen is that of layer `syscall`. What such
//! calls took is what all calls took, less the whole of those that have visits, bucket by
//! bucket: a call and the visit that stands for the whole of it begin at the same time.

use std::collections::BTreeMap;
use std::sync::Arc;

use fathom_pyramid::{Key, LATENCY_BUCKETS, Latency, Sum};

use super::gather::{Bytes, Gather, Total};
use super::summed::{Answers, inside, paths};
use super::{By, Filter, Gathered, MAX_ROWS, Request, Zoom, align, rows};
use crate::QueryError;

/// Layer of calls.
const SYSCALL: &str = "syscall";
/// Places of the dimensions in the pyramid of table `slices`.
const LAYER: usize = 0;
const REQUEST: usize = 1;

/// Buckets and keys with their sums.
type Sums = BTreeMap<(i64, Key), (Sum, Latency)>;

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
        // Which visits are of calls that pass only the rows tell.
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
        ..request.clone()
    };
    let calls = zoom.gather(&of_calls, window, shift)?;
    let (shift, window) = (calls.shift, calls.window);
    let mut read = Read {
        zoom,
        request,
        window,
        shift,
        max_rows,
        blocks: calls.blocks,
        parts: calls.parts,
    };
    let visits = read.sums(LAYER)?;
    let wholes = read.sums(REQUEST)?;
    let (blocks, parts) = (read.blocks, read.parts);

    let mut gather = Gather::new(request);
    gather.start(window.0, shift);
    if !calls.gather.has_directions() {
        gather.without_directions();
    }
    let syscall = Key::Text(Arc::from(SYSCALL));
    for ((time, layer), (sum, latency)) in &visits {
        gather.add(*time, layer, (sum, Bytes::default()), latency);
    }
    let of_syscall = |sums: &Sums, time| sums.get(&(time, syscall.clone())).copied();
    for (bucket, total, _) in calls.gather.finish().into_iter().flat_map(|line| line.1) {
        let time = window.0 + (i64::from(bucket) << shift);
        let without = without(&total, of_syscall(&wholes, time));
        let (sum, latency) = (&without.sum, &without.latency);
        gather.add(time, &syscall, (sum, total.bytes), latency);
        let known = of_syscall(&visits, time).map_or(0, |(sum, _)| sum.max_ns);
        if without.most_ns > known.max(sum.max_ns) {
            gather.longest_may_be_longer(time, &syscall);
        }
    }
    Ok(Gathered {
        gather,
        shift,
        window,
        blocks,
        parts,
    })
}

/// Reads the sums of table `slices`.
struct Read<'a> {
    zoom: &'a Zoom,
    request: &'a Request,
    window: (i64, i64),
    shift: u8,
    max_rows: u64,
    blocks: usize,
    parts: usize,
}

impl Read<'_> {
    fn sums(&mut self, dimension: usize) -> Result<Sums, QueryError> {
        let Self {
            zoom,
            window,
            shift,
            ..
        } = *self;
        let mut sums = Sums::new();
        let table = &zoom.visits;
        let calls_filter = self.request.filter.sql();
        let mut parts = None;
        if let (None, Some(pyramid)) = (&calls_filter, table.pyramid())
            && let Answers::Blocks(plan) = table.answers(dimension, window, shift, self.max_rows)
        {
            let read = pyramid.read(&plan, true, |cells| {
                for (time, key, sum, latency) in cells.in_window(window) {
                    if let (Some(key), Some(latency)) = (cells.keys().get(key), latency) {
                        let time = window.0 + ((time - window.0) >> shift << shift);
                        merge(&mut sums, time, key, sum, latency);
                    }
                }
            });
            match read {
                Ok(()) => {
                    self.blocks += plan.blocks();
                    parts = Some(paths(inside(table.uncovered(), window)));
                }
                // Damaged, which was not noticed until now.
                Err(_) => sums.clear(),
            }
        }
        let parts = parts.unwrap_or_else(|| paths(inside(table.parts(), window)));
        if parts.is_empty() {
            return Ok(sums);
        }
        self.parts += parts.len();
        // Calls began before the visits that they are made of.
        let before = || paths(inside(zoom.calls.parts(), (0, window.1)));
        let of_calls = calls_filter.map(|filter| (before(), filter));
        let whole = dimension == REQUEST;
        rows::visits(
            &zoom.db,
            &parts,
            window,
            shift,
            whole,
            of_calls,
            |time, key, (sum, _), latency| merge(&mut sums, time, key, sum, latency),
        )?;
        Ok(sums)
    }
}

fn merge(sums: &mut Sums, time: i64, key: &Key, sum: &Sum, latency: &Latency) {
    let none = || (Sum::default(), [0; LATENCY_BUCKETS]);
    let (mine, histogram) = sums.entry((time, key.clone())).or_insert_with(none);
    mine.merge(sum);
    for (mine, more) in histogram.iter_mut().zip(latency) {
        *mine = mine.saturating_add(*more);
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

/// All calls of a bucket less those that have visits.
fn without(total: &Total, wholes: Option<(Sum, Latency)>) -> Without {
    let (whole, histogram) = wholes.unwrap_or((Sum::default(), [0; LATENCY_BUCKETS]));
    let all = &total.sum;
    let mut latency = [0; LATENCY_BUCKETS];
    for ((left, all), whole) in latency.iter_mut().zip(&total.latency).zip(histogram) {
        *left = u32::try_from(all.saturating_sub(u64::from(whole))).unwrap_or(u32::MAX);
    }
    let (least, most) = match latency.iter().rposition(|n| *n > 0) {
        None => (0, 0),
        Some(_) if all.max_ns > whole.max_ns => (all.max_ns, all.max_ns),
        // The longest call of all has visits: of the others their histogram tells.
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
