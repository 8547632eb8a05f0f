//! `GET /sessions/ID/errors`: calls that returned an error, over time.

use axum::extract::{Path, State};
use fathom_model::failure::{ErrorKind, error_kind};
use serde::Serialize;

use super::Shared;
use crate::calls::Calls;
use crate::columns::{ArrowAnswer, Columns, collect, numbers, texts};
use crate::error::ApiError;
use crate::job::{Lane, Stop};
use crate::selection::{Params, Selection, SelectionParams};
use crate::view::Reader;

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
    let calls = Calls::of(reader, selection, window)?;
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
