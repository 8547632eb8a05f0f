//! The location of parts as DuckDB needs it.
//!
//! It takes a path as text and as a pattern: `*`, `?` and `[` stand for other characters, names
//! must be UTF-8, and a beginning such as `~` or `s3://` has a meaning of its own. A session may
//! have any name, and a pattern could find another session's parts. Where its name is not plain,
//! the session's directory is opened, and its parts are named below the descriptor's place in
//! /proc, which consists of digits and slashes.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::QueryError;
use crate::escape::{sql_string, text};

/// The directory of a session. A database keeps it as long as it reads parts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Place {
    /// None for a session whose paths are plain, and for parts without a session.
    opened: Option<Arc<(PathBuf, File)>>,
}

impl Place {
    /// The location of the session in `dir`.
    pub(crate) fn of(dir: &Path) -> Result<Self, QueryError> {
        if is_plain(dir) {
            return Ok(Self::default());
        }
        let file = File::open(dir).map_err(|e| QueryError::Path {
            path: text(&dir.to_string_lossy()).into(),
            reason: e.to_string(),
        })?;
        Ok(Self {
            opened: Some(Arc::new((dir.to_owned(), file))),
        })
    }

    /// A path as an SQL string that DuckDB takes for this path alone.
    fn literal(&self, path: &Path) -> Result<String, QueryError> {
        let named = self.opened.as_deref().and_then(|(dir, file)| {
            let inside = path.strip_prefix(dir).ok()?;
            let dir = format!("/proc/self/fd/{}", file.as_raw_fd());
            Some(Path::new(&dir).join(inside))
        });
        let named = named.as_deref().unwrap_or(path);
        match named.to_str().filter(|_| is_plain(named)) {
            Some(text) => Ok(sql_string(text)),
            None => Err(QueryError::Path {
                path: text(&path.to_string_lossy()).into(),
                reason: "DuckDB takes it for a pattern, or it is not UTF-8; rename the file"
                    .to_owned(),
            }),
        }
    }

    /// The same of several.
    pub(crate) fn literals(&self, paths: &[PathBuf]) -> Result<Vec<String>, QueryError> {
        paths.iter().map(|path| self.literal(path)).collect()
    }
}

/// Whether DuckDB takes a path as it is.
fn is_plain(path: &Path) -> bool {
    path.to_str().is_some_and(|text| {
        !text.contains(['*', '?', '[', '\\']) && !text.starts_with('~') && !text.contains(':')
    })
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    #[test]
    fn paths_are_plain_or_by_descriptor() {
        let root = tempfile::tempdir().unwrap();
        let plain = root.path().join("a'b.fathom");
        std::fs::create_dir(&plain).unwrap();
        let part = plain.join("syscalls/part-00000000.parquet");
        let literal = Place::of(&plain).unwrap().literal(&part).unwrap();
        assert!(literal.contains("a''b.fathom/syscalls/part"), "{literal}");
        let names: [&[u8]; 6] = [b"[z]", b"?", b"*", b"a\\b", b"\xff\xfe", b"s3:"];
        for name in names {
            let dir = root.path().join(OsStr::from_bytes(name));
            std::fs::create_dir(&dir).unwrap();
            let place = Place::of(&dir).unwrap();
            let part = dir.join("syscalls/part-00000000.parquet");
            let literal = place.literal(&part).unwrap();
            let rest = literal.strip_prefix("'/proc/self/fd/").unwrap();
            assert!(
                rest.ends_with("/syscalls/part-00000000.parquet'"),
                "{literal}"
            );
            std::fs::write(dir.join("here"), name).unwrap();
            let there = place.literal(&dir.join("here")).unwrap();
            assert_eq!(std::fs::read(there.trim_matches('\'')).unwrap(), name);
            assert!(Place::default().literal(&part).is_err());
        }
    }
}
