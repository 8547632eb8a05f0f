//! `GET /sessions/ID/top`: what the most time, calls, bytes, ... went into.

use std::collections::HashMap;

use arrow::array::Array;
use axum::extract::{Path, State};
use fathom_query::escape::sql_string;
use serde::{Deserialize, Serialize};

use super::Shared;
use crate::columns::{ArrowAnswer, Columns, collect, numbers, texts};
use crate::error::ApiError;
use crate::job::Lane;
use crate::selection::{Params, Selection, SelectionParams};
use crate::view::Reader;

/// Keys of an answer at most.
const MOST: usize = 1000;

/// Parameters besides the window and the filter.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct TopParams {
    by: Option<String>,
    sort: Option<String>,
    limit: Option<usize>,
}

/// Description of an answer.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct TopMeta {
    /// How many keys there are.
    pub total: usize,
    /// Whether all numbers are exact; percentiles of many millions of calls are not.
    pub exact: bool,
}

/// A way of telling calls apart: the key in SQL, and where names come from.
struct Kind {
    key: &'static str,
    names: Option<&'static str>,
}

fn kind(name: &str) -> Option<Kind> {
    let plain = |key| Kind { key, names: None };
    Some(match name {
        "syscall" => plain("syscall"),
        "class" => plain("class"),
        "errno" => plain("errno"),
        "comm" => plain("comm"),
        "file" => Kind {
            key: "file_id",
            names: Some(
                "SELECT file_id::VARCHAR AS key, path AS label FROM files WHERE file_id IN",
            ),
        },
        "thread" => Kind {
            key: "tid",
            names: Some(
                "SELECT tid::VARCHAR AS key, arg_max(comm, start_ns) AS label FROM processes \
                 WHERE tid IN",
            ),
        },
        "process" => Kind {
            key: "pid",
            names: Some(
                "SELECT pid::VARCHAR AS key, arg_max(comm, start_ns) AS label FROM processes \
                 WHERE pid = tid AND pid IN",
            ),
        },
        _ => return None,
    })
}

/// `GET /sessions/ID/top`.
pub(crate) async fn top(
    State(app): State<Shared>,
    Path(id): Path<String>,
    Params(selection): Params<SelectionParams>,
    Params(params): Params<TopParams>,
) -> Result<ArrowAnswer, ApiError> {
    let selection = selection.parse()?;
    let kind = kind(params.by.as_deref().unwrap_or("file")).ok_or_else(|| {
        let takes = "it is one of file, syscall, thread, process, class, errno, comm";
        ApiError::parameter("by", takes)
    })?;
    let sort = match params.sort.as_deref().unwrap_or("time_ns") {
        "time_ns" => "time_ns",
        "calls" => "calls",
        "bytes" => "bytes",
        "errors" => "errors",
        "max_ns" => "max_ns",
        "p99_ns" => "p99_ns",
        _ => {
            let takes = "it is one of time_ns, calls, bytes, errors, p99_ns, max_ns";
            return Err(ApiError::parameter("sort", takes));
        }
    };
    let limit = params.limit.unwrap_or(20).min(MOST);
    let query =
        move |reader: &Reader, _: &crate::job::Stop| answer(reader, &selection, &kind, sort, limit);
    app.jobs.query(id, Lane::Quick, query).await
}

fn answer(
    reader: &Reader,
    selection: &Selection,
    kind: &Kind,
    sort: &str,
    limit: usize,
) -> Result<ArrowAnswer, ApiError> {
    let window = selection.window(reader.start_ns(), reader.span());
    let source = reader.zoom.calls_in(window.from..window.to)?;
    let mut conditions = window.sql("ts_ns");
    if let Some(more) = selection.filter.for_calls(window.from).sql() {
        conditions = format!("{conditions} AND {more}");
    }
    let key = kind.key;
    let percentiles = match sort {
        "p99_ns" => ", duration_percentiles(dur_ns)[3]::DOUBLE AS p99_ns",
        _ => "",
    };
    let sums = collect(reader.db().run(&format!(
        "WITH sums AS (SELECT {key}::VARCHAR AS key, count(*)::DOUBLE AS calls, \
         count(errno)::DOUBLE AS errors, coalesce(sum(bytes), 0)::DOUBLE AS bytes, \
         coalesce(sum(bytes) FILTER (call_reads(syscall)), 0)::DOUBLE AS bytes_read, \
         coalesce(sum(bytes) FILTER (call_writes(syscall)), 0)::DOUBLE AS bytes_written, \
         coalesce(sum(dur_ns), 0)::DOUBLE AS time_ns, \
         coalesce(max(dur_ns), 0)::DOUBLE AS max_ns{percentiles} \
         FROM {source} WHERE {conditions} GROUP BY {key}) \
         SELECT *, count(*) OVER () AS total FROM sums \
         ORDER BY {sort} DESC NULLS LAST, key LIMIT {limit}"
    ))?)?;
    let keys = texts(&sums, "key")?;
    // Only of the keys that are shown: percentiles cost more than sums.
    let list: Vec<String> = keys.iter().flatten().map(|key| quoted(kind, key)).collect();
    let null = keys.null_count() > 0;
    let shown = match (list.is_empty(), null) {
        (true, true) => format!("{key} IS NULL"),
        (true, false) => "false".to_string(),
        (false, true) => format!("({key} IN ({}) OR {key} IS NULL)", list.join(", ")),
        (false, false) => format!("{key} IN ({})", list.join(", ")),
    };
    let rows = collect(reader.db().run(&format!(
        "SELECT {key}::VARCHAR AS key, duration_percentiles(dur_ns) AS p, p[1]::DOUBLE AS p50, \
         p[3]::DOUBLE AS p99 FROM {source} WHERE {conditions} AND {shown} GROUP BY {key}"
    ))?)?;
    let mut percentiles = HashMap::new();
    let (names, p50, p99) = (
        texts(&rows, "key")?,
        numbers(&rows, "p50")?,
        numbers(&rows, "p99")?,
    );
    for i in 0..rows.num_rows() {
        let name = names.is_valid(i).then(|| names.value(i).to_string());
        let value = |a: &arrow::array::Float64Array| a.is_valid(i).then(|| a.value(i));
        percentiles.insert(name, (value(&p50), value(&p99)));
    }
    let labels = labels(reader, kind, &list)?;
    let mut columns = Columns::default();
    columns.texts("key", keys.iter());
    columns.texts(
        "label",
        keys.iter().map(|key| match kind.names {
            Some(_) => labels.get(key?).cloned(),
            None => key.map(str::to_string),
        }),
    );
    for name in [
        "calls",
        "errors",
        "bytes",
        "bytes_read",
        "bytes_written",
        "time_ns",
    ] {
        columns.optional_numbers(name, numbers(&sums, name)?.iter());
    }
    let of = |key: Option<&str>| percentiles.get(&key.map(str::to_string)).copied();
    columns.optional_numbers("p50_ns", keys.iter().map(|key| of(key)?.0));
    columns.optional_numbers("p99_ns", keys.iter().map(|key| of(key)?.1));
    columns.optional_numbers("max_ns", numbers(&sums, "max_ns")?.iter());
    let total = numbers(&sums, "total")?;
    columns.answer(&TopMeta {
        total: total.iter().flatten().next().unwrap_or(0.0) as usize,
        exact: reader.db().exact_percentiles(),
    })
}

/// A key as SQL has it.
fn quoted(kind: &Kind, key: &str) -> String {
    match kind.names {
        // Numbers.
        Some(_) => key.to_string(),
        None => sql_string(key),
    }
}

/// Names of keys that are numbers.
fn labels(
    reader: &Reader,
    kind: &Kind,
    keys: &[String],
) -> Result<HashMap<String, String>, ApiError> {
    let Some(names) = kind.names.filter(|_| !keys.is_empty()) else {
        return Ok(HashMap::new());
    };
    let group = match kind.key {
        "file_id" => "",
        _ => " GROUP BY 1",
    };
    let sql = format!("{names} ({}){group}", keys.join(", "));
    let rows = collect(reader.db().run(&sql)?)?;
    let (key, label) = (texts(&rows, "key")?, texts(&rows, "label")?);
    let pairs = key.iter().zip(label.iter());
    Ok(pairs
        .filter_map(|(key, label)| Some((key?.to_string(), label?.to_string())))
        .collect())
}
