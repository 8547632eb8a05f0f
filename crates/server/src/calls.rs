//! The calls that are asked about, in SQL.

use crate::error::ApiError;
use crate::selection::{Selection, Window};
use crate::view::Reader;

/// Calls in a window that pass a filter.
pub(crate) struct Calls {
    /// The text after FROM.
    pub source: String,
    /// The text after WHERE.
    pub conditions: String,
}

impl Calls {
    /// Calls that started in `window`.
    pub fn of(reader: &Reader, selection: &Selection, window: Window) -> Result<Self, ApiError> {
        let source = reader.zoom.calls_in(window.from..window.to)?;
        let mut conditions = window.sql("ts_ns");
        if let Some(more) = selection.filter.for_calls(reader.db(), window.from)?.sql() {
            conditions = format!("{conditions} AND {more}");
        }
        Ok(Self { source, conditions })
    }

    /// Both, with one more condition.
    pub fn and(&self, condition: &str) -> String {
        format!("{} WHERE {} AND {condition}", self.source, self.conditions)
    }
}

impl std::fmt::Display for Calls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} WHERE {}", self.source, self.conditions)
    }
}

/// The page faults on mapped files in a window that pass a filter: the text after FROM. `None` if
/// none passes.
pub(crate) fn faults(
    reader: &Reader,
    selection: &Selection,
    window: Window,
) -> Result<Option<String>, ApiError> {
    let condition = selection.filter.for_faults(reader.db(), window.from)?;
    Ok(condition.map(|condition| {
        format!(
            "(SELECT *, NULL::VARCHAR AS path2 FROM faults) WHERE {} AND {condition}",
            window.sql("ts_ns")
        )
    }))
}

/// A condition on `column` of another table: it is the id of a call that matches the filter. Empty
/// if every call matches. Effects of a call may come much later, so calls count that started before
/// `to_ns`, and after `from_ns` if that is given.
pub(crate) fn caused_by(
    reader: &Reader,
    selection: &Selection,
    column: &str,
    from_ns: Option<i64>,
    to_ns: i64,
) -> Result<String, ApiError> {
    if selection.filter.is_empty() {
        return Ok(String::new());
    }
    let window = Window {
        from: from_ns.unwrap_or(0),
        to: to_ns,
    };
    let calls = Calls::of(reader, selection, window)?;
    Ok(format!(" AND {column} IN (SELECT rid FROM {calls})"))
}
