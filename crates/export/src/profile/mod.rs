//! Profiles: the time of requests by stack, for tools that draw flame graphs.
//!
//! A stack consists, from the root, of the host in a set, the thread's name, the functions of the program (sessions
//! with stacks), the call, its file, and the layers below it. Each layer has the time that was
//! spent in it but not in deeper ones, so the values add up to the durations of the requests.
//!
//! Requests are read in ranges of their ids: their slices have neighboring ids, and the database
//! can sort one range at a time in bounded memory. Memory grows with the number of different stacks.

mod folded;
mod pprof;
mod source;
mod speedscope;
mod tree;

use std::io::Write;

use fathom_model::escape::text;
use fathom_model::meta::SessionMeta;

use crate::error::Result;
use crate::{Export, Outcome, Selection, counted};

use source::Source;
use tree::Tree;

/// A format of profiles.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Folded,
    Pprof,
    Speedscope,
}

pub(crate) fn write(
    inputs: &[Export<'_>],
    meta: &SessionMeta,
    kind: Kind,
    selection: &Selection,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Outcome> {
    let mut tree = Tree::default();
    let (mut rows, mut notes) = (0, Vec::new());
    for input in inputs {
        let host = input.host.map(|host| host.name);
        let source = Source::new(input.db, selection, host)?;
        let before = rows;
        rows += source.gather(&mut tree, &mut |done, total| {
            progress(before + done, before + total);
        })?;
        let missing = missing(input.meta).into_iter();
        notes.extend(missing.map(|note| match host {
            Some(host) => format!("{}: {note}", text(host)),
            None => note,
        }));
    }
    notes.extend(unknown(&tree));
    match kind {
        Kind::Folded => folded::write(&tree, out)?,
        Kind::Pprof => pprof::write(&tree, meta, selection, out)?,
        Kind::Speedscope => speedscope::write(&tree, meta, out)?,
    }
    out.flush()?;
    Ok(Outcome { rows, notes })
}

/// The calls of a session that have no stack.
fn missing(meta: &SessionMeta) -> Option<String> {
    let missing = meta.totals.lost + meta.totals.counted;
    (missing > 0).then(|| {
        format!(
            "left out {} without a row (lost or counted only): their stacks are unknown",
            counted(missing, "call", "calls")
        )
    })
}

/// The requests whose time is not in the profile as it should be.
fn unknown(tree: &Tree) -> Vec<String> {
    let mut notes = Vec::new();
    if tree.untimed > 0 {
        notes.push(format!(
            "{} of unknown duration counted with no time",
            counted(tree.untimed, "request is", "requests are")
        ));
    }
    if tree.undivided > 0 {
        notes.push(format!(
            "the time of {} is not divided by layer: the slices exceed it",
            counted(tree.undivided, "request", "requests")
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use fathom_model::meta::Totals;

    use super::*;

    #[test]
    fn notes_name_what_a_profile_lacks() {
        let mut tree = Tree::default();
        (tree.untimed, tree.undivided) = (1, 2);
        let meta = SessionMeta {
            totals: Totals {
                lost: 3,
                counted: 4,
                ..Totals::default()
            },
            ..fathom_testkit::meta()
        };
        assert!(missing(&meta).unwrap().contains("7 calls"));
        let notes = unknown(&tree);
        assert_eq!(notes.len(), 2);
        assert!(notes[0].starts_with("1 request is"), "{notes:?}");
        assert!(notes[1].contains("2 requests"), "{notes:?}");
    }
}
