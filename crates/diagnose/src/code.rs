//! From where in its program a call was made: for the calls that findings show.

use std::collections::{BTreeMap, HashMap, HashSet};

use fathom_model::tables::{FRAMES, STACKS, Table};
use fathom_session::{Session, SessionError};

use crate::columns::Columns;
use crate::finding::Finding;
use crate::site::Site;

/// Table and columns of stacks: which stack a request has.
const STACK: &[&str] = &["rid", "stack_id"];
const FRAME: &[&str] = &[
    "stack_id",
    "frame",
    "function",
    "function_offset",
    "source",
    "line",
    "object",
    "build_id",
    "file_offset",
];

/// Adds the code of their examples to findings. Does nothing in a session without stacks.
pub(crate) fn add(
    session: &Session,
    findings: &mut [Finding],
) -> Result<(), (&'static Table, SessionError)> {
    if session.rows(STACKS.name) == 0 {
        return Ok(());
    }
    let wanted: HashSet<i64> = findings
        .iter()
        .flat_map(|finding| finding.examples.iter().map(|example| example.rid))
        .collect();
    let mut of_request = HashMap::new();
    for batch in session.batches(&STACKS, Some(STACK)) {
        let batch = batch.map_err(|e| (&STACKS, e))?;
        let columns = Columns::new(&batch, STACK);
        for row in 0..columns.rows() {
            if let (Some(rid), Some(stack)) = (columns.i64(0, row), columns.i64(1, row))
                && wanted.contains(&rid)
            {
                of_request.insert(rid, stack);
            }
        }
    }
    let stacks: HashSet<i64> = of_request.values().copied().collect();
    let mut frames: HashMap<i64, BTreeMap<i64, Site>> = HashMap::new();
    for batch in session.batches(&FRAMES, Some(FRAME)) {
        let batch = batch.map_err(|e| (&FRAMES, e))?;
        let columns = Columns::new(&batch, FRAME);
        for row in 0..columns.rows() {
            let (Some(stack), Some(frame)) = (columns.i64(0, row), columns.i64(1, row)) else {
                continue;
            };
            if !stacks.contains(&stack) {
                continue;
            }
            let text = |column| columns.text(column, row).map(str::to_owned);
            let site = Site {
                function: text(2),
                function_offset: columns.i64(3, row),
                source: text(4),
                line: columns.i32(5, row),
                object: text(6),
                build_id: text(7),
                offset: columns.i64(8, row),
            };
            frames.entry(stack).or_default().insert(frame, site);
        }
    }
    for finding in findings {
        for example in &finding.examples {
            let stack = of_request.get(&example.rid).and_then(|id| frames.get(id));
            if let Some(site) = stack.and_then(site)
                && !finding.code.contains(site)
            {
                finding.code.push(site.clone());
            }
        }
    }
    Ok(())
}

/// The place in the program itself.
fn site(frames: &BTreeMap<i64, Site>) -> Option<&Site> {
    let own = |site: &&Site| site.object.is_some() && !site.is_wrapper();
    frames.values().find(own).or_else(|| frames.values().last())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(object: &str, function: &str) -> Site {
        Site {
            object: Some(object.to_owned()),
            function: Some(function.to_owned()),
            ..Site::default()
        }
    }

    #[test]
    fn the_program_is_shown_and_not_the_c_library() {
        let frames = [
            at("/usr/lib/x86_64-linux-gnu/libc.so.6", "write"),
            at("/usr/lib/x86_64-linux-gnu/libc.so.6", "fwrite"),
            at("/opt/app", "save"),
            at("/opt/app", "main"),
        ];
        let frames = (0..).zip(frames).collect();
        assert_eq!(
            site(&frames).and_then(|s| s.function.as_deref()),
            Some("save")
        );
        let only = (0..)
            .zip([at("/lib/ld-linux.so.2", "a"), at("/lib/libc.so.6", "b")])
            .collect();
        assert_eq!(site(&only).and_then(|s| s.function.as_deref()), Some("b"));
    }
}
