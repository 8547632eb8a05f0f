//! Rows of a session as they are asked for, in memory that does not grow with
//! their number.
//!
//! The database could sort all rows only in memory, so rows are fetched window by window in order
//! of time: a small histogram of their times gives windows with a bounded number of rows.

use std::ops::Range;

use fathom_query::Db;

use crate::error::{ExportError, Result};
use crate::row::{COLUMNS, Columns, Row};

/// Rows that are sorted at once, about: with all columns some hundred MiB in the
/// database.
const WINDOW_ROWS: i64 = 200_000;
/// Slices of time of one histogram.
const BUCKETS: i64 = 4096;
/// Histograms within histograms: 4096^5 nanoseconds are more than a session has.
const DEPTH: u32 = 5;

/// Which rows of the session are wanted.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Rows that began at this time or later, CLOCK_MONOTONIC nanoseconds.
    pub from_ns: Option<i64>,
    /// Rows that began before this time.
    pub until_ns: Option<i64>,
    /// SQL condition over the columns of table `syscalls`.
    pub condition: Option<String>,
}

/// Which tables an exporter wants rows of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tables {
    /// Table `syscalls`.
    Calls,
    CallsAndFaults,
    /// And page faults, write-back and requests to devices, where there are any.
    All,
}

/// A session and what is wanted of it.
pub(crate) struct SessionRows<'db> {
    db: &'db Db,
    /// A query that answers [`COLUMNS`], not ordered.
    rows: String,
    /// The same with nothing but `ts_ns`.
    times: String,
    total: u64,
}

impl<'db> SessionRows<'db> {
    /// Looks at the session.
    ///
    /// # Errors
    /// [`ExportError::Condition`] when the condition is wrong; what the database
    /// says.
    pub fn new(db: &'db Db, selection: &Selection, tables: Tables) -> Result<Self> {
        check_condition(db, selection)?;
        let mut parts = vec![calls(selection)];
        if tables != Tables::Calls {
            parts.extend(faults(selection));
        }
        if tables == Tables::All {
            parts.extend(others(db, selection)?);
        }
        let rows = parts.join("\nUNION ALL\n");
        let times: Vec<String> = parts
            .iter()
            .map(|part| format!("SELECT ts_ns FROM ({part})"))
            .collect();
        Self::of(db, rows, times.join("\nUNION ALL\n"))
    }

    fn of(db: &'db Db, rows: String, times: String) -> Result<Self> {
        let mut total = 0;
        integers(db, &format!("SELECT count(*) FROM ({times})"), |row| {
            total = row.first().copied().flatten().unwrap_or(0);
        })?;
        Ok(Self {
            db,
            rows,
            times,
            total: u64::try_from(total).unwrap_or(0),
        })
    }

    pub fn total(&self) -> u64 {
        self.total
    }

    /// Gives every row to `take`, in the order in which they started; of rows with the same start
    /// the longest comes first, so that a nested slice comes after the slice that contains it.
    pub fn each(&self, mut take: impl FnMut(&Row<'_>) -> Result<()>) -> Result<()> {
        for window in self.windows()? {
            let sql = format!(
                "SELECT * FROM ({}) WHERE ts_ns >= {} AND ts_ns < {} \
                 ORDER BY ts_ns, dur_ns DESC NULLS LAST, layer = 'slice', rid",
                self.rows, window.start, window.end
            );
            self.query(&sql, &mut take)?;
        }
        Ok(())
    }

    fn query(&self, sql: &str, take: &mut impl FnMut(&Row<'_>) -> Result<()>) -> Result<()> {
        for batch in self.db.query(sql)? {
            let batch = batch?;
            let columns = Columns::new(&batch)?;
            for index in 0..batch.num_rows() {
                take(&columns.row(index))?;
            }
        }
        Ok(())
    }

    /// Ranges of time with about [`WINDOW_ROWS`] rows each, in order.
    pub fn windows(&self) -> Result<Vec<Range<i64>>> {
        let mut bounds = None;
        let sql = format!("SELECT min(ts_ns), max(ts_ns) FROM ({})", self.times);
        integers(self.db, &sql, |row| {
            if let [Some(least), Some(greatest)] = *row {
                bounds = Some(least..greatest.saturating_add(1));
            }
        })?;
        let mut windows = Vec::new();
        if let Some(range) = bounds {
            self.split(range, self.total as i64, DEPTH, &mut windows)?;
        }
        Ok(windows)
    }

    fn split(
        &self,
        range: Range<i64>,
        rows: i64,
        depth: u32,
        out: &mut Vec<Range<i64>>,
    ) -> Result<()> {
        let width = (range.end.saturating_sub(range.start) / BUCKETS).saturating_add(1);
        if rows <= WINDOW_ROWS || depth == 0 || range.end.saturating_sub(range.start) <= 1 {
            out.push(range);
            return Ok(());
        }
        let sql = format!(
            "SELECT (ts_ns - {start}) // {width} AS bucket, count(*) FROM ({times}) \
             WHERE ts_ns >= {start} AND ts_ns < {end} GROUP BY bucket ORDER BY bucket",
            start = range.start,
            end = range.end,
            times = self.times
        );
        let mut buckets = Vec::new();
        integers(self.db, &sql, |row| {
            if let [Some(bucket), Some(count)] = *row {
                buckets.push((range.start.saturating_add(bucket * width), count));
            }
        })?;
        let mut start = range.start;
        let mut sum: i64 = 0;
        for (at, count) in buckets {
            if sum > 0 && sum.saturating_add(count) > WINDOW_ROWS {
                out.push(start..at);
                (start, sum) = (at, 0);
            }
            if count > WINDOW_ROWS {
                let end = at.saturating_add(width).min(range.end);
                self.split(start..end, count, depth - 1, out)?;
                (start, sum) = (end, 0);
            } else {
                sum += count;
            }
        }
        if start < range.end && sum > 0 {
            out.push(start..range.end);
        }
        Ok(())
    }
}

/// Ranges of time with about [`WINDOW_ROWS`] rows each, in order; `times` is a query of one column,
/// `ts_ns`.
pub(crate) fn windows(db: &Db, times: &str) -> Result<Vec<Range<i64>>> {
    SessionRows::of(db, String::new(), times.to_owned())?.windows()
}

impl Selection {
    /// The window: from its first nanosecond to the one behind its last.
    pub(crate) fn range(&self) -> (i64, i64) {
        (
            self.from_ns.unwrap_or(i64::MIN),
            self.until_ns.unwrap_or(i64::MAX),
        )
    }

    /// The condition on times, for any table.
    pub(crate) fn window(&self) -> String {
        let mut parts = Vec::new();
        if let Some(ns) = self.from_ns {
            parts.push(format!("ts_ns >= {ns}"));
        }
        if let Some(ns) = self.until_ns {
            parts.push(format!("ts_ns < {ns}"));
        }
        if parts.is_empty() {
            parts.push("true".into());
        }
        parts.join(" AND ")
    }

    /// The whole condition, for table `syscalls`.
    pub(crate) fn sql(&self) -> String {
        match &self.condition {
            // On lines of its own, as it may end in a comment.
            Some(condition) => format!("{} AND (\n{condition}\n)", self.window()),
            None => self.window(),
        }
    }
}

/// Whether the condition is one, before anything is written.
pub(crate) fn check_condition(db: &Db, selection: &Selection) -> Result<()> {
    let Some(condition) = &selection.condition else {
        return Ok(());
    };
    let sql = format!("SELECT CASE WHEN (\n{condition}\n) THEN 1 END FROM syscalls LIMIT 0");
    match db.query(&sql) {
        Ok(_) => Ok(()),
        Err(e) => Err(ExportError::Condition(e.to_string())),
    }
}

/// `column` for column `column`; `expression AS column` otherwise.
fn select(of: impl Fn(&'static str) -> String) -> String {
    let columns: Vec<String> = COLUMNS
        .iter()
        .map(|name| format!("{} AS \"{name}\"", of(name)))
        .collect();
    columns.join(", ")
}

fn sql_type(column: &str) -> &'static str {
    match column {
        "pid" | "tid" | "cpu" | "fd" => "INTEGER",
        "layer" | "comm" | "syscall" | "class" | "errno" | "flags" | "path_arg" | "path_arg2"
        | "path" | "path2" | "args" | "op_flags" | "extra" => "VARCHAR",
        "content" => "BLOB",
        _ => "BIGINT",
    }
}

fn null(column: &str) -> String {
    format!("NULL::{}", sql_type(column))
}

fn calls(selection: &Selection) -> String {
    let columns = select(|column| match column {
        "layer" => "api".into(),
        "extra" => null(column),
        _ => format!("\"{column}\""),
    });
    format!("SELECT {columns} FROM syscalls WHERE {}", selection.sql())
}

/// The query for page faults; none with a condition, which is on columns that they do not have.
fn faults(selection: &Selection) -> Option<String> {
    if selection.condition.is_some() {
        return None;
    }
    let columns = select(|column| match column {
        "layer" => "'fault'".into(),
        "syscall" => "'page fault'".into(),
        "class" => "'memory'".into(),
        "flags" => "concat_ws(' ', kind, access, mapping, origin)".into(),
        "rid" | "ts_ns" | "dur_ns" | "pid" | "tid" | "comm" | "cpu" | "file_id" | "file_offset"
        | "path" => format!("\"{column}\""),
        _ => null(column),
    });
    Some(format!(
        "SELECT {columns} FROM faults WHERE {}",
        selection.window()
    ))
}

/// Queries for the other tables, where the session has them.
fn others(db: &Db, selection: &Selection) -> Result<Vec<String>> {
    // A condition is on columns that they do not have. Rows that belong to a
    // request come along with it.
    let wanted = |rid: &str| match &selection.condition {
        None => selection.window(),
        Some(_) => format!(
            "{} AND {rid} IN (SELECT rid FROM syscalls WHERE {})",
            selection.window(),
            selection.sql()
        ),
    };
    let mut parts = Vec::new();
    if selection.condition.is_none() {
        let writeback = select(|column| match column {
            "layer" => "'writeback'".into(),
            "syscall" => "'writeback'".into(),
            "class" => "'data'".into(),
            "args" => "'caused by ' || syscall".into(),
            "rid" | "ts_ns" | "pid" | "tid" | "comm" | "cpu" | "file_id" | "file_offset"
            | "bytes" | "path" => format!("\"{column}\""),
            _ => null(column),
        });
        parts.push(format!(
            "SELECT {writeback} FROM writeback WHERE {}",
            selection.window()
        ));
    }
    let block = db.columns("block")?;
    let has = |name: &str| block.iter().any(|(column, _)| column == name);
    if has("rid") && has("ts_ns") {
        let own = |column: &str| match has(column) {
            true => format!("\"{column}\""),
            false => null(column),
        };
        let (begin, duration) = if has("dur_ns") {
            ("ts_ns", "dur_ns")
        } else if has("queued_at_ns") && has("completed_at_ns") {
            (
                "coalesce(queued_at_ns, ts_ns)",
                "completed_at_ns - coalesce(queued_at_ns, ts_ns)",
            )
        } else {
            ("ts_ns", "NULL::BIGINT")
        };
        let columns = select(|column| match column {
            "layer" => "'block'".into(),
            "ts_ns" => begin.into(),
            "dur_ns" => duration.into(),
            "syscall" if has("op") => "op::VARCHAR".into(),
            "class" => "'block'".into(),
            "extra" if has("device") => "device::VARCHAR".into(),
            "file_offset" if has("file_offset") => "file_offset".into(),
            "size" if has("queue_depth") => "queue_depth::BIGINT".into(),
            "user_data" if has("sector") => "sector::BIGINT".into(),
            "rid" | "tid" | "comm" | "file_id" | "bytes" | "flags" | "path" => {
                format!("{}::{}", own(column), sql_type(column))
            }
            _ => null(column),
        });
        parts.push(format!(
            "SELECT {columns} FROM block WHERE {}",
            wanted("rid")
        ));
    }
    let slices = db.columns("slices")?;
    let has = |name: &str| slices.iter().any(|(column, _)| column == name);
    if ["rid", "layer", "name", "ts_ns", "dur_ns", "depth"]
        .into_iter()
        .all(has)
    {
        let columns = select(|column| match column {
            "layer" => "'slice'".into(),
            "syscall" => "name".into(),
            "class" => "layer".into(),
            "rid" | "ts_ns" | "dur_ns" => format!("\"{column}\""),
            _ => null(column),
        });
        // Depth 0 is the request itself.
        parts.push(format!(
            "SELECT {columns} FROM slices WHERE depth > 0 AND {}",
            wanted("rid")
        ));
    }
    Ok(parts)
}

pub(crate) fn integers(db: &Db, sql: &str, mut take: impl FnMut(&[Option<i64>])) -> Result<()> {
    use arrow::array::{Array, AsArray};
    use arrow::datatypes::Int64Type;
    for batch in db.query(sql)? {
        let batch = batch?;
        let mut row = Vec::new();
        for index in 0..batch.num_rows() {
            row.clear();
            for column in batch.columns() {
                let column = column
                    .as_primitive_opt::<Int64Type>()
                    .ok_or(ExportError::Column("ts_ns"))?;
                row.push(column.is_valid(index).then(|| column.value(index)));
            }
            take(&row);
        }
    }
    Ok(())
}
