//! Calls that returned an error: failures, and answers such as a look-up that found nothing.

use fathom_model::failure::{ErrorKind, error_kind};
use fathom_query::fetch::rows;
use fathom_query::{Db, QueryError};

use crate::report::{ErrorCount, Totals};
use fathom_model::units::count;

/// Rows of the ranking of errors.
const TOP: usize = 10;

/// The most frequent errors: failures first.
pub(crate) fn errors(db: &Db) -> Result<Vec<ErrorCount>, QueryError> {
    let sql = format!(
        "FROM by_error ORDER BY call_failed(syscall, errno) DESC, calls DESC, syscall, errno LIMIT {TOP}"
    );
    rows(db, &sql, |row| {
        let (syscall, errno) = (row.text("syscall")?, row.text("errno")?);
        Ok(ErrorCount {
            failed: error_kind(&syscall, &errno) != ErrorKind::Answer,
            syscall,
            errno,
            calls: row.int("calls")?,
            example_path: row.get("example_path")?,
        })
    })
}

/// Stored calls that failed, and stored calls whose error is an answer.
pub(crate) fn by_meaning(db: &Db) -> Result<[i64; 2], QueryError> {
    let sql = "SELECT count(*) FILTER (call_failed(syscall, errno)) AS failures, \
         count(*) FILTER (NOT call_failed(syscall, errno)) AS answers \
         FROM syscalls WHERE errno IS NOT NULL";
    let found = rows(db, sql, |row| {
        Ok([row.int("failures")?, row.int("answers")?])
    })?;
    Ok(found.first().copied().unwrap_or_default())
}

impl Totals {
    /// The calls that returned an error, in words.
    pub(crate) fn errors_in_words(&self) -> Vec<String> {
        let mut parts = vec![match self.failures {
            0 => "none failed".to_owned(),
            n => format!("{} failed", count(n)),
        }];
        if self.answers > 0 {
            parts.push(format!("{} missed lookups or retries", count(self.answers)));
        }
        // Of calls without a row the error's name is not known.
        let unknown = self.errors - self.failures - self.answers;
        if unknown > 0 {
            parts.push(format!("{} with unknown errors", count(unknown)));
        }
        parts
    }
}
