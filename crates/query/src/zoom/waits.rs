//! Time of threads off the CPU, by reason.

use std::sync::Arc;

use fathom_pyramid::{Key, WAITS_QUEUE, WAITS_REASON};

use super::buckets::{Buckets, Numbers, Row};
use super::gather::{Bytes, Gather};
use super::summed::{Answers, inside, paths};
use super::{Filter, Gathered, MAX_ROWS, Request, Zoom, align, busy, rows};
use crate::QueryError;

/// The reason of a thread that could run.
const CPU: &str = "cpu";

/// Sums by reason in buckets of 2^`asked` ns, or wider ones. Threads wait for the CPU from their
/// wake-up on.
pub(super) fn gather<'a>(
    zoom: &Zoom,
    request: &'a Request,
    window: (i64, i64),
    asked: u8,
) -> Result<Gathered<'a>, QueryError> {
    let max_rows = request.max_rows.unwrap_or(MAX_ROWS);
    let by_pyramid = request.filter == Filter::default();
    let mut shift = asked;
    // Both dimensions have the same cells.
    while let (true, Answers::Wider(wider)) = (
        by_pyramid,
        zoom.waits
            .answers(WAITS_REASON, align(window, shift), shift, max_rows),
    ) {
        shift = wider;
    }
    let window = align(window, shift);
    let mut sums = Sums::new(window.0, shift);
    let blocks = match by_pyramid {
        true => sums.blocks(zoom, window, shift, max_rows),
        false => None,
    };
    let parts = match blocks {
        Some(_) => paths(inside(zoom.waits.uncovered(), window)),
        None => {
            sums = Sums::new(window.0, shift);
            paths(inside(zoom.waits.parts(), window))
        }
    };
    let of_filter = condition(zoom, &request.filter, window)?;
    if !parts.is_empty() {
        rows::waits(&zoom.db, &parts, window, of_filter.as_deref(), |wait| {
            sums.row(wait.time, wait.reason, wait.took_ns, wait.queue_ns);
        })?;
    }
    let mut gather = Gather::new(request);
    gather.start(window.0, shift);
    sums.add_to(&mut gather);
    if request.busy {
        busy::spread_waits(
            zoom,
            request,
            (window, shift),
            of_filter.as_deref(),
            &mut gather,
        )?;
    }
    Ok(Gathered {
        gather,
        shift,
        window,
        blocks: blocks.unwrap_or(0),
        parts: parts.len(),
    })
}

/// The filter as a condition on table `waits`: of threads, and of the calls during which they
/// waited.
fn condition(
    zoom: &Zoom,
    filter: &Filter,
    window: (i64, i64),
) -> Result<Option<String>, QueryError> {
    let of_threads = Filter {
        pid: filter.pid.clone(),
        tid: filter.tid.clone(),
        owners: filter.owners.clone(),
        ..Filter::default()
    };
    if *filter == of_threads {
        return Ok(filter.sql());
    }
    let Some(sql) = filter.sql() else {
        return Ok(None);
    };
    // Calls began before their waits.
    let calls = zoom.calls_in(0..window.1)?;
    Ok(Some(format!(
        "rid IN (SELECT rid FROM {calls} WHERE {sql})"
    )))
}

/// The sums of a window.
struct Sums {
    reasons: Numbers<Arc<str>>,
    cpu: u32,
    /// All of the time off the CPU.
    whole: Buckets,
    /// Of which from the wake-up on.
    queue: Buckets,
}

impl Sums {
    fn new(from: i64, shift: u8) -> Self {
        let mut reasons = Numbers::default();
        Self {
            cpu: reasons.of(CPU, |name| Arc::from(name)),
            reasons,
            whole: Buckets::new(from, shift, true),
            queue: Buckets::new(from, shift, false),
        }
    }

    fn row(&mut self, time: i64, reason: &str, took_ns: i64, queue_ns: i64) {
        let key = self.reasons.of(reason, |name| Arc::from(name));
        let row = |took_ns| Row {
            time,
            key,
            took_ns,
            failed: false,
            bytes: 0,
            ways: Bytes::default(),
        };
        self.whole.row(&row(took_ns));
        self.queue.row(&row(queue_ns));
    }

    /// Adds the pyramid's blocks and returns their number; `None` if the pyramid does not answer.
    fn blocks(
        &mut self,
        zoom: &Zoom,
        window: (i64, i64),
        shift: u8,
        max_rows: u64,
    ) -> Option<usize> {
        let mut blocks = 0;
        for (dimension, to) in [
            (WAITS_REASON, &mut self.whole),
            (WAITS_QUEUE, &mut self.queue),
        ] {
            let Answers::Blocks(plan) = zoom.waits.answers(dimension, window, shift, max_rows)
            else {
                return None;
            };
            blocks += plan.blocks();
            zoom.waits.add_texts(&plan, window, &mut self.reasons, to)?;
        }
        Some(blocks)
    }

    /// Hands the sums on. Counts, longest times and histograms describe whole waits.
    fn add_to(&self, gather: &mut Gather<'_>) {
        let key = |number: u32| match self.reasons.key(number) {
            Some(name) => Key::Text(Arc::clone(name)),
            None => Key::Rest { cut: false },
        };
        for (entry, latency) in self.whole.iter() {
            let mut sum = entry.sum;
            let queue = self.queue.get(entry.time, entry.key);
            let queue_ns = queue.map_or(0, |(entry, _)| entry.sum.time_ns);
            // Of one that was preempted all of it is.
            if entry.key != self.cpu {
                sum.time_ns = sum.time_ns.saturating_sub(queue_ns);
            }
            gather.add(
                entry.time,
                &key(entry.key),
                (&sum, Bytes::default()),
                latency,
            );
        }
        for (entry, _) in self.queue.iter().filter(|(entry, _)| entry.sum.time_ns > 0) {
            let sum = fathom_pyramid::Sum {
                time_ns: entry.sum.time_ns,
                ..Default::default()
            };
            let cpu = key(self.cpu);
            gather.add(
                entry.time,
                &cpu,
                (&sum, Bytes::default()),
                &super::buckets::NO_LATENCY,
            );
        }
    }
}
