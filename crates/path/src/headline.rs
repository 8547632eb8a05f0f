//! The largest sum of a path, as a sentence.

use fathom_model::units;

use crate::Culprit;
use crate::critical_path::CriticalPath;
use crate::segment::{BlockPart, CulpritKind, State, Total};

pub(crate) fn headline(path: &CriticalPath) -> String {
    let comm = path.comm.as_ref().map_or("thread", |comm| comm.as_str());
    let duration = units::duration(path.dur_ns);
    let begin = match path.rid {
        Some(rid) => format!("Request {rid} of {comm} (TID {}) took {duration}", path.tid),
        None => format!("{comm} (TID {}): {duration}", path.tid),
    };
    let Some(most) = path.totals.first() else {
        return format!("{begin}.");
    };
    let time = units::duration(most.dur_ns);
    format!(
        "{begin}, {time} ({}) of it {}.",
        units::percent(most.share),
        phrase(most)
    )
}

/// The end of a sentence about a sum. Of a wait, it may be any thread of the path that was blocked.
fn phrase(total: &Total) -> String {
    let reason = total.reason.as_ref().map_or("", |reason| reason.as_str());
    let reason = reason.replace('_', " ");
    let culprit = total.culprit.as_ref();
    let other = culprit.filter(|culprit| culprit.kind == CulpritKind::Thread);
    match (total.state, other) {
        (State::Running, None) => "on a CPU".into(),
        (State::Running, Some(other)) => format!("while {} ran", name(other)),
        (State::Runnable, None) => "waiting for a CPU".into(),
        (State::Runnable, Some(other)) => format!("while {} waited for a CPU", name(other)),
        (State::Absent, _) => "before its start or after its end".into(),
        (State::Unknown, None) => format!("unknown ({reason})"),
        (State::Unknown, Some(other)) => {
            format!("while the state of {} was unknown ({reason})", name(other))
        }
        (State::Blocked, _) => match culprit {
            Some(culprit) => blocked(culprit, total.part, &reason),
            None => format!("blocked ({reason})"),
        },
    }
}

fn blocked(culprit: &Culprit, part: Option<BlockPart>, reason: &str) -> String {
    let what = name(culprit);
    match (culprit.kind, part) {
        (CulpritKind::BlockRequest, Some(BlockPart::Queue)) => {
            format!("with block requests in the queue of {what}")
        }
        (CulpritKind::BlockRequest, Some(BlockPart::Device)) => {
            format!("with block requests in {what} itself")
        }
        (CulpritKind::BlockRequest, _) => {
            format!("blocked ({reason}) by block requests to {what}")
        }
        (CulpritKind::Unknown, _) => format!("blocked ({reason}), the cause not recorded"),
        (CulpritKind::Timer, _) => format!("blocked ({reason}) until a timer expired"),
        _ => format!("blocked ({reason}) until {what} woke it"),
    }
}

/// A culprit by its name.
pub(crate) fn name(culprit: &Culprit) -> String {
    let name = culprit.name.as_ref().map(|name| name.as_str());
    match (culprit.kind, name, culprit.tid) {
        (CulpritKind::Thread, Some(name), Some(tid)) => format!("{name} (TID {tid})"),
        (CulpritKind::Thread, None, Some(tid)) => format!("TID {tid}"),
        (_, Some(name), _) => name.to_owned(),
        (CulpritKind::Thread, None, None) => "an unnamed thread".into(),
        (CulpritKind::BlockRequest, None, _) => "a device".into(),
        (CulpritKind::Timer, None, _) => "a timer".into(),
        (CulpritKind::Network, None, _) => "the network".into(),
        (CulpritKind::Signal, None, _) => "a signal".into(),
        (CulpritKind::Interrupt, None, _) => "an interrupt".into(),
        (CulpritKind::Unknown, None, _) => "unknown".into(),
    }
}

impl Culprit {
    /// Its name for people, not escaped.
    pub fn describe(&self) -> String {
        name(self)
    }
}
