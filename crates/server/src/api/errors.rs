//! `GET /sessions/ID/errors`: calls that returned an error, over time.

use axum::extract::{Path, State};
use fathom_model::failure::{ErrorKind, error_kind};
use fathom_query::zoom::By;
use serde::Serialize;

use super::Shared;
use super::tiles::{self, Extras};
use crate::calls::Calls;
use crate::columns::{ArrowAnswer, Columns, collect, numbers, texts};
use crate::error::ApiError;
use crate::job::{Lane, Stop};
use crate::selection::{Params, Selection, SelectionParams, Window};
use crate::view::Reader;

/// Calls in a window from which on the pyramid is asked where its errors are.
const MANY: u64 = 1_000_000;
/// Buckets of that question.
const COARSE: u32 = 32;

/// Description of an answer.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct ErrorsMeta {
    /// The window in whole buckets.
    pub from: i64,
    pub to: i64,
    /// Width of the buckets.
    pub bucket_ns: i64,
}

/// `GET /sessions/ID/errors`.
pub(crate) async fn errors(
    State(app): State<Shared>,
    Path(id): Path<String>,
    Params(selection): Params<SelectionParams>,
) -> Result<ArrowAnswer, ApiError> {
    let selection = selection.parse()?;
    let query = move |reader: &Reader, _: &Stop| answer(reader, &selection);
    app.jobs.query(id, Lane::Quick, query).await
}

fn answer(reader: &Reader, selection: &Selection) -> Result<ArrowAnswer, ApiError> {
    let start = reader.started_at_ns();
    let window = selection.window(start, reader.span());
    let bucket_ns = window.bucket_ns(selection.pixels);
    let shift = bucket_ns.ilog2();
    let calls = Calls::of(reader, selection, with_errors(reader, selection, window)?)?;
    let rows = collect(reader.db().run(&format!(
        "SELECT (ts_ns >> {shift}) << {shift} AS t, syscall, errno, count(*) AS calls \
         FROM {} GROUP BY ALL ORDER BY t, calls DESC, syscall, errno",
        calls.and("errno IS NOT NULL")
    ))?)?;
    let (t, count) = (numbers(&rows, "t")?, numbers(&rows, "calls")?);
    let (syscall, errno) = (texts(&rows, "syscall")?, texts(&rows, "errno")?);
    let mut columns = Columns::default();
    columns.numbers("t", t.iter().flatten().map(|t| t - start as f64));
    columns.words("syscall", syscall.iter());
    columns.words("errno", errno.iter());
    columns.numbers("calls", count.iter().flatten());
    let failed = |(call, errno): (Option<&str>, Option<&str>)| {
        let kind = error_kind(call.unwrap_or_default(), errno.unwrap_or_default());
        kind != ErrorKind::Answer
    };
    columns.flags("failed", syscall.iter().zip(errno.iter()).map(failed));
    columns.answer(&ErrorsMeta {
        from: (window.from >> shift << shift) - start,
        to: ((((window.to - 1) >> shift) + 1) << shift) - start,
        bucket_ns,
    })
}

/// The part of a window that may have errors, by the pyramid: a program that fails at all mostly
/// does so when it starts, and millions of rows without an error need not be read.
fn with_errors(reader: &Reader, selection: &Selection, window: Window) -> Result<Window, ApiError> {
    if !selection.filter.is_empty() || reader.zoom.rows_near(window.from..window.to) < MANY {
        return Ok(window);
    }
    // Wide buckets: they cost less than the rows that narrow ones would spare.
    let mut coarse = selection.clone();
    coarse.pixels = COARSE;
    let sums = tiles::sums(reader, &coarse, By::Nothing, 1, Extras::default())?;
    let (t, errors) = (
        numbers(&sums.rows, "ts_ns")?,
        numbers(&sums.rows, "errors")?,
    );
    let buckets = t.iter().flatten().zip(errors.iter().flatten());
    let failed = buckets.filter(|(_, n)| *n > 0.0).map(|(t, _)| t as i64);
    Ok(narrowed(window, failed, sums.bucket_ns))
}

/// The part of a window from the first of some buckets, in order of time, to the last one.
fn narrowed(window: Window, mut buckets: impl Iterator<Item = i64>, bucket_ns: i64) -> Window {
    let Some(first) = buckets.next() else {
        return Window {
            to: window.from,
            ..window
        };
    };
    let last = buckets.last().unwrap_or(first);
    Window {
        from: window.from.max(first),
        to: window.to.min(last.saturating_add(bucket_ns)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_buckets_with_errors_are_read() {
        let window = Window {
            from: 100,
            to: 1000,
        };
        let part = |buckets: &[i64]| {
            let Window { from, to } = narrowed(window, buckets.iter().copied(), 64);
            (from, to)
        };
        assert_eq!(part(&[]), (100, 100));
        // The first and the last bucket begin before the window and end after it.
        assert_eq!(part(&[64]), (100, 128));
        assert_eq!(part(&[64, 512, 960]), (100, 1000));
        assert_eq!(part(&[128, 256]), (128, 320));
    }
}
