//! Profiles: the time of requests by stack, for tools that draw flame graphs.
//!
//! A stack consists, from the root, of the thread's name, the functions of the program (sessions
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

use fathom_model::meta::SessionMeta;
use fathom_query::Db;

use crate::error::Result;
use crate::{Outcome, Selection, counted};

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
    db: &Db,
    meta: &SessionMeta,
    kind: Kind,
    selection: &Selection,
    out: &mut dyn Write,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<Outcome> {
    let mut tree = Tree::default();
    let source = Source::new(db, selection)?;
    let rows = source.gather(&mut tree, progress)?;
    match kind {
        Kind::Folded => folded::write(&tree, out)?,
        Kind::Pprof => pprof::write(&tree, meta, selection, out)?,
        Kind::Speedscope => speedscope::write(&tree, meta, out)?,
    }
    out.flush()?;
    Ok(Outcome {
        rows,
        notes: notes(&tree, meta),
    })
}

fn notes(tree: &Tree, meta: &SessionMeta) -> Vec<String> {
    let mut notes = Vec::new();
    let missing = meta.totals.lost + meta.totals.counted;
    if missing > 0 {
        notes.push(format!(
            "left out {} without a row (lost or counted only): their stacks are unknown",
            counted(missing, "call", "calls")
        ));
    }
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
        let notes = notes(&tree, &meta);
        assert_eq!(notes.len(), 3);
        assert!(notes[0].contains("7 calls"), "{notes:?}");
        assert!(notes[1].starts_with("1 request is"), "{notes:?}");
        assert!(notes[2].contains("2 requests"), "{notes:?}");
    }
}
