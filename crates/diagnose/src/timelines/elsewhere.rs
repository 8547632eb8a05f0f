//! The requests that a request caused in other programs.

use hashbrown::HashMap;
use std::sync::Arc;

use super::{Ahead, Part, Parts, Pending, SpanTime, more};

/// Spans whose requests in other programs are remembered; beyond that all are forgotten.
const MAX_SPANS: usize = 1 << 14;
/// Names that one span causes.
const MAX_CAUSES: usize = 32;
/// A request that has this share of the time of the one that caused it is the one to be named.
const MOST: f64 = 0.5;

/// The work of other programs for a span.
#[derive(Clone, Debug, Default)]
pub(super) struct Elsewhere {
    parts: Parts,
    within: Option<(i64, Arc<str>)>,
    causes: Vec<u64>,
    ahead: Option<Ahead>,
}

impl Elsewhere {
    /// Puts the parts into the place of the wait for them.
    pub(super) fn replace_wait(&self, time: &mut SpanTime) {
        time.causes.clone_from(&self.causes);
        let there = self.parts.sum();
        let waited = time.parts.of(Part::Socket).min(there);
        if waited <= 0 {
            return;
        }
        time.parts.0[Part::Socket as usize] -= waited;
        let share = waited as f64 / there as f64;
        let mut rest = waited;
        for part in Part::ALL {
            let ns = ((self.parts.of(part) as f64 * share) as i64).min(rest);
            rest -= ns;
            time.elsewhere.add(part, ns);
        }
        // Rounding leaves this over.
        time.elsewhere.add(Part::Socket, rest);
        time.parts.add_all(&time.elsewhere);
        time.ahead = more(time.ahead, self.ahead);
        time.within.clone_from(&self.within);
    }
}

/// Adds a span to what was done for the one that caused it.
pub(super) fn pass_on(span: &Pending, time: &SpanTime, all: &mut HashMap<(u64, u64), Elsewhere>) {
    let Some(parent) = span.parent else {
        return;
    };
    let key = (span.trace, parent);
    if all.len() >= MAX_SPANS && !all.contains_key(&key) {
        all.clear();
    }
    let of = all.entry(key).or_default();
    // A server is another thread than its client. Everything else is on the thread of what caused it, which
    // has the same waits.
    let is_server = span.kind == "server";
    of.parts.add_all(if is_server {
        &time.parts
    } else {
        &time.elsewhere
    });
    of.ahead = more(of.ahead, time.ahead);
    let deeper = time.within.as_ref();
    let deeper = deeper.filter(|(ns, _)| !is_server || *ns as f64 >= time.dur_ns as f64 * MOST);
    let within = match deeper {
        Some(deeper) => Some(deeper.clone()),
        None if is_server => Some((
            time.dur_ns,
            format!("{} by {}", time.name, time.service).into(),
        )),
        None => None,
    };
    if within.as_ref().map(|(ns, _)| *ns) > of.within.as_ref().map(|(ns, _)| *ns) {
        of.within = within;
    }
    for cause in time.causes.iter().copied().chain([time.key()]) {
        if of.causes.len() < MAX_CAUSES && !of.causes.contains(&cause) {
            of.causes.push(cause);
        }
    }
}
