//! From where in its program a call was made: for the calls that findings show.

use std::collections::{BTreeMap, HashMap, HashSet};

use fathom_model::tables::{FRAMES, STACKS, Table};
use fathom_session::{Session, SessionError};
use serde::{Deserialize, Serialize};

use crate::columns::Columns;
use crate::finding::Finding;

/// A place in a program. Names are as the program has them: not escaped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "types", derive(ts_rs::TS))]
pub struct Site {
    /// The function; `None` when the file has no name for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "types", ts(optional))]
    pub function: Option<String>,
    /// Bytes from its beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "types", ts(optional))]
    pub function_offset: Option<i64>,
    /// File of the source; `None` without debug information.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "types", ts(optional))]
    pub source: Option<String>,
    /// Line in it, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "types", ts(optional))]
    pub line: Option<i32>,
    /// The program or library.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "types", ts(optional))]
    pub object: Option<String>,
    /// Its build id.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "types", ts(optional))]
    pub build_id: Option<String>,
    /// Byte in that file.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "types", ts(optional))]
    pub offset: Option<i64>,
}

impl Site {
    /// In one line: `save_all at /src/app.c:42`, `save_all+0x1f in /usr/bin/app`.
    pub fn text(&self) -> String {
        let object = self.object.as_deref().unwrap_or("code of no file");
        match (&self.function, &self.source, self.line) {
            (Some(function), Some(source), Some(line)) => format!("{function} at {source}:{line}"),
            (Some(function), Some(source), None) => format!("{function} at {source}"),
            (None, Some(source), line) => format!("{source}:{}", line.unwrap_or(0)),
            (Some(function), None, _) => match self.function_offset {
                Some(offset) => format!("{function}+{offset:#x} in {object}"),
                None => format!("{function} in {object}"),
            },
            (None, None, _) => format!("{object}+{:#x}", self.offset.unwrap_or(0)),
        }
    }

    /// Whether it is in a library through which every program makes its calls.
    fn is_wrapper(&self) -> bool {
        let Some(object) = &self.object else {
            return false;
        };
        let name = object.rsplit('/').next().unwrap_or_default();
        let parts = [
            "libc.so",
            "libc-",
            "ld-",
            "libpthread",
            "libstdc++",
            "libc++",
            "libm.so",
        ];
        parts.iter().any(|part| name.starts_with(part))
    }
}

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

    #[test]
    fn in_one_line() {
        let mut site = at("/opt/app", "save");
        site.function_offset = Some(31);
        assert_eq!(site.text(), "save+0x1f in /opt/app");
        (site.source, site.line) = (Some("/src/app.c".to_owned()), Some(42));
        assert_eq!(site.text(), "save at /src/app.c:42");
        let bare = Site {
            object: Some("/opt/app".to_owned()),
            offset: Some(16),
            ..Site::default()
        };
        assert_eq!(bare.text(), "/opt/app+0x10");
    }
}
