//! Which requests a story is about.

use fathom_model::meta::SessionMeta;
use fathom_query::escape::sql_string;
use fathom_query::fetch::rows;
use fathom_query::{Db, QueryError};

/// The requests a story is about: those for which all that is given holds.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// This request alone.
    pub request: Option<i64>,
    /// Requests on this file.
    pub file: Option<File>,
    /// Requests of this thread.
    pub thread: Option<i64>,
    /// Requests that had not ended at this time, CLOCK_MONOTONIC nanoseconds.
    pub from_ns: Option<i64>,
    /// Requests that had begun before this time, CLOCK_MONOTONIC nanoseconds.
    pub until_ns: Option<i64>,
    /// Calls for which this holds: SQL on the columns of table `syscalls`.
    pub calls: Option<String>,
    /// Page faults for which this holds: SQL on the columns of table `faults`, and a `path2`. With
    /// `calls` and without this, page faults are left out.
    pub faults: Option<String>,
    /// The window is the time of a request of an application, and `calls` are its calls.
    pub of_span: bool,
}

/// A file: each inode that had its path.
#[derive(Clone, Debug, Default)]
pub struct File {
    /// The path.
    pub path: String,
    /// `files.file_id` of each.
    pub ids: Vec<i64>,
}

impl Scope {
    /// Whether all requests of the session are meant.
    pub fn is_whole(&self) -> bool {
        self.request.is_none()
            && self.file.is_none()
            && self.thread.is_none()
            && !self.has_window()
            && self.calls.is_none()
    }

    /// Whether only a part of the time is meant.
    pub fn has_window(&self) -> bool {
        self.from_ns.is_some() || self.until_ns.is_some()
    }

    /// The same, from when on all rows were kept: of the requests before, some are gone.
    pub(crate) fn kept(&self, meta: &SessionMeta) -> Self {
        let keep = meta.history.keep.as_ref();
        let complete_from_ns = keep.and_then(|keep| keep.complete_from_ns);
        let mut scope = self.clone();
        // A request that is there is whole.
        if scope.request.is_none() {
            scope.from_ns = scope.from_ns.max(complete_from_ns);
        }
        scope
    }

    /// Condition on calls.
    pub(crate) fn call_condition(&self) -> String {
        self.condition(self.calls.as_deref())
    }

    /// Condition on page faults; `None` when none is meant.
    pub(crate) fn fault_condition(&self) -> Option<String> {
        if self.calls.is_some() && self.faults.is_none() {
            return None;
        }
        Some(self.condition(self.faults.as_deref()))
    }

    fn condition(&self, more: Option<&str>) -> String {
        let mut all = Vec::new();
        if let Some(rid) = self.request {
            all.push(format!("rid = {rid}"));
        }
        if let Some(file) = &self.file {
            let ids: Vec<String> = file.ids.iter().map(i64::to_string).collect();
            all.push(match ids.is_empty() {
                true => "false".to_owned(),
                false => format!("file_id IN ({})", ids.join(", ")),
            });
        }
        if let Some(tid) = self.thread {
            all.push(format!("tid = {tid}"));
        }
        if let Some(until) = self.until_ns {
            all.push(format!("ts_ns < {until}"));
        }
        if let Some(from) = self.from_ns {
            all.push(format!("ts_ns + coalesce(dur_ns, 0) > {from}"));
        }
        if let Some(more) = more {
            all.push(format!("({more})"));
        }
        match all.is_empty() {
            true => "true".to_owned(),
            false => all.join(" AND "),
        }
    }
}

/// The files that a name stands for.
#[derive(Clone, Debug)]
pub enum Named {
    /// Files with that path, at any time: one path, and each inode that had it.
    File(File),
    /// Several paths end with it; some of them.
    Several(Vec<String>),
    /// None.
    Nothing,
}

/// Paths that are listed when a name stands for several.
const LISTED: usize = 5;

impl File {
    /// The file that `name` stands for: an absolute path, or the end of one.
    ///
    /// # Errors
    /// When a query fails.
    pub fn named(db: &Db, name: &str) -> Result<Named, QueryError> {
        let exact = Self::with_paths(db, &format!("path = {}", sql_string(name)))?;
        let found = match exact.is_empty() {
            false => exact,
            true => {
                let end = format!("/{}", name.trim_start_matches("./").trim_start_matches('/'));
                Self::with_paths(db, &format!("ends_with(path, {})", sql_string(&end)))?
            }
        };
        let mut paths: Vec<&str> = found.iter().map(|(path, _)| path.as_str()).collect();
        paths.dedup();
        match paths.as_slice() {
            [] => Ok(Named::Nothing),
            [path] => Ok(Named::File(File {
                path: (*path).to_owned(),
                ids: found.iter().map(|(_, id)| *id).collect(),
            })),
            several => {
                let listed = several.iter().take(LISTED);
                Ok(Named::Several(
                    listed.map(|path| (*path).to_owned()).collect(),
                ))
            }
        }
    }

    /// Paths, in order, and the ids of the files that had them.
    fn with_paths(db: &Db, condition: &str) -> Result<Vec<(String, i64)>, QueryError> {
        rows(
            db,
            &format!(
                "SELECT DISTINCT path, file_id FROM (
                     SELECT path, file_id FROM files UNION ALL SELECT path, file_id FROM file_paths)
                 WHERE {condition} ORDER BY path, file_id"
            ),
            |row| Ok((row.text("path")?, row.int("file_id")?)),
        )
    }
}
