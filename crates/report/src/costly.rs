//! The calls that cost most, by path. Many paths of which each took little time count together.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use fathom_query::fetch::{Row, rows};
use fathom_query::together::{Group, directory_of, groups, marked};
use fathom_query::zoom::PAGE_FAULT;
use fathom_query::{Db, QueryError};

use crate::report::CallsOnFile;

/// The calls on paths that count together, one row per directory, as rows with a group's place.
fn placed(rows: &[Directory]) -> Vec<CallsOnFile> {
    let values: Vec<(&str, i64, f64)> = rows
        .iter()
        .map(|row| (&*row.name, row.calls.paths, row.calls.total_ns as f64))
        .collect();
    let group = |group: Group| {
        let mut members = group.rows.iter().filter_map(|row| rows.get(*row));
        let first = members.next()?;
        let mut longest_ns = first.longest_ns;
        let mut all = first.calls.clone();
        for row in members {
            let more = &row.calls;
            if row.longest_ns > longest_ns {
                (longest_ns, all.file_id) = (row.longest_ns, more.file_id);
            }
            for (sum, n) in [
                (&mut all.files, more.files),
                (&mut all.calls, more.calls),
                (&mut all.bytes, more.bytes),
                (&mut all.total_ns, more.total_ns),
            ] {
                *sum = sum.saturating_add(n);
            }
            all.max_ns = all.max_ns.max(more.max_ns);
        }
        let place = group.place;
        Some(CallsOnFile {
            paths: place.paths(),
            elsewhere: place.elsewhere,
            directory: Some(place.directory),
            ..all
        })
    };
    groups(&values).into_iter().filter_map(group).collect()
}

/// Calls of one name on the paths of a directory.
struct Directory {
    name: String,
    calls: CallsOnFile,
    /// Time of the path with the most.
    longest_ns: i64,
}

/// The costliest calls by path, `most` of them, page faults on mapped files among them.
pub(crate) fn calls(db: &Db, most: usize) -> Result<Vec<CallsOnFile>, QueryError> {
    let marked = marked("of_paths", "path", "total_ns", "syscall");
    let directory = directory_of("path");
    let sql = format!(
        "WITH sums AS (
             SELECT syscall, file_id, path, count(*) AS calls, coalesce(sum(bytes), 0) AS bytes,
                 coalesce(sum(dur_ns), 0) AS total_ns, coalesce(max(dur_ns), 0) AS max_ns
             FROM syscalls GROUP BY syscall, file_id, path
             UNION ALL
             SELECT '{PAGE_FAULT}', file_id, path, count(*), 0, coalesce(sum(dur_ns), 0),
                 coalesce(max(dur_ns), 0)
             FROM faults GROUP BY file_id, path
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
    let mut together: BTreeMap<String, Vec<Directory>> = BTreeMap::new();
    let mut found = Vec::new();
    for (calls, directory, longest_ns) in rows(db, &sql, calls_of)? {
        match directory {
            None => found.push(calls),
            Some(name) => {
                let of_call = together.entry(calls.syscall.clone()).or_default();
                of_call.push(Directory {
                    name,
                    calls,
                    longest_ns,
                });
            }
        }
    }
    found.extend(together.values().flat_map(|rows| placed(rows)));
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
