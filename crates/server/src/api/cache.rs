//! `GET /sessions/ID/cache`: the page cache over time.

use axum::extract::{Path, State};
use serde::Serialize;

use super::Shared;
use crate::calls::caused_by;
use crate::columns::{ArrowAnswer, Columns, collect, numbers};
use crate::error::ApiError;
use crate::job::{Lane, Stop};
use crate::selection::{Params, Selection, SelectionParams};
use crate::view::Reader;

/// Description of an answer.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct CacheMeta {
    pub bucket_ns: i64,
    pub from: i64,
    pub to: i64,
}

/// `GET /sessions/ID/cache`.
pub(crate) async fn cache(
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
    let width = window.bucket_ns(selection.pixels);
    let from = window.from;
    let chosen = caused_by(reader, selection, "rid", Some(window.from), window.to)?;
    let columns = [
        "pages",
        "hits",
        "misses",
        "readahead_pages",
        "added_pages",
        "dirtied",
    ];
    let sums = columns.map(|name| format!("coalesce(sum({name}), 0)::DOUBLE AS {name}"));
    let rows = collect(reader.db().run(&format!(
        "SELECT ((ts_ns - {from}) // {width})::DOUBLE AS bucket, {} \
         FROM pagecache WHERE {}{chosen} GROUP BY bucket ORDER BY bucket",
        sums.join(", "),
        window.sql("ts_ns"),
    ))?)?;
    let mut answer = Columns::default();
    let time_of = |bucket: f64| (from - start) as f64 + bucket * width as f64;
    answer.numbers("t", numbers(&rows, "bucket")?.iter().flatten().map(time_of));
    let names = ["pages", "hits", "misses", "readahead", "added", "dirtied"];
    for (name, column) in names.into_iter().zip(columns) {
        answer.optional_numbers(name, numbers(&rows, column)?.iter());
    }
    answer.answer(&CacheMeta {
        bucket_ns: width,
        from: window.from - start,
        to: window.to - start,
    })
}
