//! The calls that cost most, by path. Many paths of which each took little time count together.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use fathom_query::fetch::{Row, rows};
use fathom_query::together::{Place, directory_of, marked};
use fathom_query::{Db, QueryError};

use crate::report::CallsOnFile;

/// Calls of one name on paths that count together.
struct Together {
    calls: CallsOnFile,
    /// Time of the path with the most.
    longest_ns: i64,
    /// Directory, number of paths in it, and their time.
    directories: Vec<(String, i64, f64)>,
}

impl Together {
    fn add(&mut self, more: &CallsOnFile, longest_ns: i64, directory: String) {
        let of = &mut self.calls;
        if longest_ns > self.longest_ns {
            (self.longest_ns, of.file_id) = (longest_ns, more.file_id);
        }
        for (sum, n) in [
            (&mut of.files, more.files),
            (&mut of.calls, more.calls),
            (&mut of.bytes, more.bytes),
            (&mut of.total_ns, more.total_ns),
        ] {
            *sum = sum.saturating_add(n);
        }
        of.max_ns = of.max_ns.max(more.max_ns);
        let time = more.total_ns as f64;
        self.directories.push((directory, more.paths, time));
    }

    fn placed(self) -> CallsOnFile {
        let rows = self.directories.iter();
        let place = Place::of(rows.map(|(name, paths, time)| (&**name, *paths, *time)));
        CallsOnFile {
            paths: place.paths(),
            elsewhere: place.elsewhere,
            directory: Some(place.directory),
            ..self.calls
        }
    }
}

/// The costliest calls by path, `most` of them.
pub(crate) fn calls(db: &Db, most: usize) -> Result<Vec<CallsOnFile>, QueryError> {
    let marked = marked("of_paths", "path", "total_ns", "syscall");
    let directory = directory_of("path");
    let sql = format!(
        "WITH sums AS (
             SELECT syscall, file_id, path, count(*) AS calls, coalesce(sum(bytes), 0) AS bytes,
                 coalesce(sum(dur_ns), 0) AS total_ns, coalesce(max(dur_ns), 0) AS max_ns
             FROM syscalls GROUP BY syscall, file_id, path
         ), named AS (
             SELECT sums.* REPLACE (coalesce(sums.path, files.path) AS path)
             FROM sums LEFT JOIN (SELECT file_id, path FROM files) AS files USING (file_id)
         ), of_paths AS (
             SELECT syscall, path, arg_max(file_id, total_ns) AS file_id,
                 count(DISTINCT file_id) AS files, sum(calls) AS calls, sum(bytes) AS bytes,
                 sum(total_ns) AS total_ns, max(max_ns) AS max_ns
             FROM named GROUP BY syscall, path, if(path IS NULL, file_id, NULL)
         ), marked AS ({marked}), keyed AS (
             SELECT *, if(together, NULL, path) AS one, if(path IS NULL, file_id, NULL) AS unnamed,
                 if(together, {directory}, NULL) AS directory
             FROM marked
         ), found AS (
             SELECT syscall, together, directory, arg_max(file_id, total_ns) AS file_id, one,
                 sum(files)::BIGINT AS files, count(*) AS paths,
                 bounded(sum(calls)) AS calls, bounded(sum(bytes)) AS bytes,
                 bounded(max(total_ns)) AS longest_ns,
                 bounded(sum(total_ns)) AS total_ns, max(max_ns) AS max_ns
             FROM keyed GROUP BY syscall, together, one, unnamed, directory
         )
         SELECT * FROM found QUALIFY together OR row_number() OVER (
             PARTITION BY together ORDER BY total_ns DESC, syscall, one, file_id) <= {most}
         ORDER BY syscall, one, file_id"
    );
    let mut together: BTreeMap<String, Together> = BTreeMap::new();
    let mut found = Vec::new();
    for (calls, directory, longest_ns) in rows(db, &sql, calls_of)? {
        match directory {
            None => found.push(calls),
            Some(directory) => match together.get_mut(&calls.syscall) {
                Some(of) => of.add(&calls, longest_ns, directory),
                None => {
                    let directories = vec![(directory, calls.paths, calls.total_ns as f64)];
                    let of = Together {
                        calls: calls.clone(),
                        longest_ns,
                        directories,
                    };
                    together.insert(calls.syscall, of);
                }
            },
        }
    }
    found.extend(together.into_values().map(Together::placed));
    // Stable: otherwise in the order of the query.
    found.sort_by_key(|calls| Reverse(calls.total_ns));
    found.truncate(most);
    Ok(found)
}

/// A row, its directory if it counts together with others, and the time of its longest path.
fn calls_of(row: Row<'_>) -> Result<(CallsOnFile, Option<String>, i64), QueryError> {
    let calls = CallsOnFile {
        syscall: row.text("syscall")?,
        file_id: row.get("file_id")?,
        path: row.get("one")?,
        files: row.int("files")?,
        paths: row.int("paths")?,
        directory: None,
        elsewhere: 0,
        calls: row.int("calls")?,
        bytes: row.int("bytes")?,
        total_ns: row.int("total_ns")?,
        max_ns: row.int("max_ns")?,
    };
    Ok((calls, row.get("directory")?, row.int("longest_ns")?))
}
