//! Names that were removed while a descriptor still led to their file.

use std::collections::HashMap;

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use fathom_model::bytes;
use fathom_query::Db;

use crate::error::{ExportError, Result};

/// When names were seen, and whether they were removed by then. Memory grows with the number of
/// paths with a removed name.
pub(crate) struct Removed {
    /// By path, in order of time.
    seen: HashMap<String, Vec<Seen>>,
    /// From the text after a descriptor to its path.
    escaped: HashMap<String, String>,
}

struct Seen {
    ns: i64,
    file_id: i64,
    removed: bool,
}

impl Removed {
    pub fn new(db: &Db) -> Result<Self> {
        let mut names = Removed {
            seen: HashMap::new(),
            escaped: HashMap::new(),
        };
        let sql = "SELECT path, ts_ns, file_id, deleted FROM file_paths
             WHERE path IN (SELECT path FROM file_paths WHERE deleted) ORDER BY ts_ns";
        for batch in db.query(sql)? {
            let batch = batch?;
            for row in 0..batch.num_rows() {
                let column = |index: usize| batch.columns().get(index);
                let long = |index: usize| {
                    let column = column(index)?.as_primitive_opt::<Int64Type>()?;
                    Some(column.value(row))
                };
                let (Some(path), Some(ns), Some(file_id), Some(removed)) = (
                    column(0).and_then(|c| c.as_string_opt::<i32>()),
                    long(1),
                    long(2),
                    column(3).and_then(|c| c.as_boolean_opt()),
                ) else {
                    return Err(ExportError::Column("file_paths"));
                };
                names.see(path.value(row), ns, file_id, removed.value(row));
            }
        }
        Ok(names)
    }

    fn see(&mut self, path: &str, ns: i64, file_id: i64, removed: bool) {
        let mut text = String::new();
        bytes::angle_like_strace(&bytes::of_text(path), &mut text);
        let text = text.trim_start_matches('<').trim_end_matches('>');
        self.escaped.insert(text.to_string(), path.to_string());
        let seen = self.seen.entry(path.to_string()).or_default();
        seen.push(Seen {
            ns,
            file_id,
            removed,
        });
    }

    /// Whether the name was removed at `ns`, of the file where that is known.
    pub fn is(&self, path: &str, file_id: Option<i64>, ns: i64) -> bool {
        let Some(seen) = self.seen.get(path) else {
            return false;
        };
        seen.iter()
            .rev()
            .filter(|seen| file_id.is_none_or(|id| id == seen.file_id))
            .find(|seen| seen.ns <= ns)
            .is_some_and(|seen| seen.removed)
    }

    /// The same for a path in the text after a descriptor.
    pub fn is_escaped(&self, text: &str, ns: i64) -> bool {
        let path = self.escaped.get(text);
        path.is_some_and(|path| self.is(path, None, ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_at_a_time() {
        let mut names = Removed {
            seen: HashMap::new(),
            escaped: HashMap::new(),
        };
        names.see("/a>b", 10, 1, false);
        names.see("/a>b", 20, 1, true);
        names.see("/a>b", 30, 2, false);
        let at = |id, ns| names.is("/a>b", id, ns);
        assert!(!at(Some(1), 5) && !at(Some(1), 19) && at(Some(1), 20) && at(Some(1), 40));
        assert!(!at(Some(2), 40));
        // Of a directory the file is not known: the latest one of that name.
        assert!(at(None, 29) && !at(None, 30));
        assert!(names.is_escaped("/a\\76b", 20) && !names.is_escaped("/a>b", 20));
        assert!(!names.is("/c", None, 50));
    }
}
