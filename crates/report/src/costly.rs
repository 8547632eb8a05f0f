//! The calls that cost most, by path. Many paths of which each took little time count together:
//! otherwise a program that reads thousands of small files would seem to do something else.

use fathom_query::fetch::rows;
use fathom_query::{Db, QueryError};

use crate::report::CallsOnFile;

/// Share of the time of all calls, below which paths are counted together if they are many.
const LITTLE: f64 = 0.02;
const MANY_PATHS: i64 = 20;

/// The costliest calls by path, `most` of them.
pub(crate) fn calls(db: &Db, most: usize) -> Result<Vec<CallsOnFile>, QueryError> {
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
         ), small AS (
             SELECT *, starts_with(path, '/') AND total_ns < {LITTLE} * sum(total_ns) OVER () AS is_small
             FROM of_paths
         ), counted AS (
             SELECT *, coalesce(is_small, false)
                     AND count(*) FILTER (is_small) OVER (PARTITION BY syscall) >= {MANY_PATHS} AS together
             FROM small
         ), keyed AS (
             SELECT *, if(together, NULL, path) AS one, if(path IS NULL, file_id, NULL) AS unnamed
             FROM counted
         )
         SELECT syscall, arg_max(file_id, total_ns) AS file_id, one, sum(files)::BIGINT AS files,
             count(*) AS paths, min(path) AS first, max(path) AS last,
             bounded(sum(calls)) AS calls, bounded(sum(bytes)) AS bytes,
             bounded(sum(total_ns)) AS total_ns, max(max_ns) AS max_ns
         FROM keyed GROUP BY syscall, together, one, unnamed
         ORDER BY total_ns DESC, syscall, one, file_id LIMIT {most}"
    );
    rows(db, &sql, |row| {
        let ends: (Option<String>, Option<String>) = (row.get("first")?, row.get("last")?);
        let paths = row.int("paths")?;
        let directory = match ends {
            (Some(first), Some(last)) if paths > 1 => Some(common_directory(&first, &last)),
            _ => None,
        };
        Ok(CallsOnFile {
            syscall: row.text("syscall")?,
            file_id: row.get("file_id")?,
            path: row.get("one")?,
            files: row.int("files")?,
            paths,
            directory,
            calls: row.int("calls")?,
            bytes: row.int("bytes")?,
            total_ns: row.int("total_ns")?,
            max_ns: row.int("max_ns")?,
        })
    })
}

/// The directory that contains all paths from `first` to `last` in their order.
fn common_directory(first: &str, last: &str) -> String {
    let pairs = first.bytes().zip(last.bytes());
    let same = pairs.take_while(|(a, b)| a == b).count();
    let slash = first
        .as_bytes()
        .get(..same)
        .and_then(|same| same.iter().rposition(|b| *b == b'/'));
    match slash.and_then(|slash| first.get(..slash)) {
        None | Some("") => "/".to_owned(),
        Some(directory) => directory.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::common_directory;

    #[test]
    fn the_directory_of_all() {
        let of = [
            ("/srv/a/1", "/srv/a/2", "/srv/a"),
            ("/srv/a/1", "/srv/b/2", "/srv"),
            ("/srv/a1", "/srv/a2", "/srv"),
            ("/a", "/b", "/"),
            ("/a", "/a/b", "/"),
            ("/srv/ä/1", "/srv/ö/1", "/srv"),
        ];
        for (first, last, directory) in of {
            assert_eq!(common_directory(first, last), directory, "{first} {last}");
        }
    }
}
