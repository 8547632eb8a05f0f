//! `POST /sessions/ID/sql`: a SELECT of the user's.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Float64Type, Int64Type, Schema};
use arrow::record_batch::RecordBatch;
use axum::body::{Body, to_bytes};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};

use super::Shared;
use crate::columns::{ArrowAnswer, collect_some, encode, internal};
use crate::error::ApiError;
use crate::job::{Lane, Stop};
use crate::view::Reader;

/// Rows of an answer at most.
const MOST: usize = 100_000;
/// Bytes of a statement at most, and how long they may take to arrive.
const MOST_BYTES: usize = 256 << 10;
const PATIENCE: Duration = Duration::from_secs(10);
/// Whole numbers up to here are exact in JavaScript.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// What is asked.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS))]
#[cfg_attr(test, ts(optional_fields))]
pub(crate) struct SqlRequest {
    /// One SELECT.
    pub sql: String,
    /// Rows that are wanted at most: 10,000 unless told, never more than 100,000.
    pub max_rows: Option<usize>,
}

/// Description of an answer.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct SqlMeta {
    /// Rows of the answer.
    pub rows: usize,
    /// Whether there are more.
    pub cut: bool,
    pub elapsed_ms: f64,
}

/// `POST /sessions/ID/sql`.
pub(crate) async fn sql(
    State(app): State<Shared>,
    Path(id): Path<String>,
    body: Body,
) -> Result<ArrowAnswer, ApiError> {
    let body = tokio::time::timeout(PATIENCE, to_bytes(body, MOST_BYTES));
    let body = body.await.map_err(|_| {
        let next = "send the statement at once";
        ApiError::new(
            StatusCode::REQUEST_TIMEOUT,
            "it does not come",
            "the body",
            next,
        )
    })?;
    let body = body.map_err(|e| {
        let next = "send a shorter statement";
        let what = e.to_string();
        ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, what, "the body", next)
    })?;
    let request: SqlRequest = serde_json::from_slice(&body)
        .map_err(|e| ApiError::parameter("the body", format!("it is not as expected: {e}")))?;
    let most = request.max_rows.unwrap_or(10_000).min(MOST);
    // Before the query takes its turn: a diagnosis may take long.
    let told = match fathom_query::names_findings(&request.sql) {
        true => Some(app.diagnoses.of(&app.library, &id).await?),
        false => None,
    };
    let query = move |reader: &Reader, _: &Stop| {
        let started = Instant::now();
        if let Some(told) = &told {
            reader.fill_findings(&told.diagnosis)?;
        }
        let rows = reader
            .db()
            .query(&request.sql)
            .map_err(ApiError::of_user_sql)?;
        let (batch, cut) = collect_some(rows, most).map_err(ApiError::of_user_sql)?;
        let meta = SqlMeta {
            rows: batch.num_rows(),
            cut,
            elapsed_ms: started.elapsed().as_secs_f64() * 1e3,
        };
        encode(&plain(&batch)?, &meta)
    };
    app.jobs.query(id, Lane::Slow, query).await
}

/// The same rows in types that the page knows: numbers that a double holds exactly as
/// doubles, truth values, lists; everything else as texts.
fn plain(batch: &RecordBatch) -> Result<RecordBatch, ApiError> {
    let mut fields = Vec::new();
    let mut columns: Vec<ArrayRef> = Vec::new();
    for (field, column) in batch.schema().fields().iter().zip(batch.columns()) {
        let column = plain_column(column)?;
        fields.push(Field::new(field.name(), column.data_type().clone(), true));
        columns.push(column);
    }
    let options =
        arrow::record_batch::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)
        .map_err(internal)
}

fn plain_column(column: &ArrayRef) -> Result<ArrayRef, ApiError> {
    let to = |ty: &DataType| cast(column, ty).map_err(internal);
    match column.data_type() {
        DataType::Boolean | DataType::Float64 | DataType::Utf8 => Ok(column.clone()),
        DataType::Decimal128(_, 0) => {
            // Sums of whole numbers.
            let texts = to(&DataType::Utf8)?;
            let doubles = to(&DataType::Float64)?;
            Ok(if is_exact(&doubles) { doubles } else { texts })
        }
        DataType::Int64 => {
            let whole = column.as_primitive_opt::<Int64Type>();
            let exact =
                whole.is_some_and(|w| w.iter().flatten().all(|n| n.unsigned_abs() <= EXACT as u64));
            to(if exact {
                &DataType::Float64
            } else {
                &DataType::Utf8
            })
        }
        DataType::UInt64 => {
            let doubles = to(&DataType::Float64)?;
            match is_exact(&doubles) {
                true => Ok(doubles),
                false => to(&DataType::Utf8),
            }
        }
        t if t.is_numeric() => to(&DataType::Float64),
        DataType::List(item) if item.data_type().is_numeric() => {
            let item = Field::new("item", DataType::Float64, true);
            to(&DataType::List(Arc::new(item)))
        }
        _ => match to(&DataType::Utf8) {
            Ok(texts) => Ok(texts),
            // Structures and the like, as the database writes them.
            Err(_) => texts_of(column),
        },
    }
}

fn is_exact(doubles: &ArrayRef) -> bool {
    let doubles = doubles.as_primitive_opt::<Float64Type>();
    doubles.is_some_and(|d| d.iter().flatten().all(|n| n.abs() < EXACT))
}

fn texts_of(column: &ArrayRef) -> Result<ArrayRef, ApiError> {
    let options = arrow::util::display::FormatOptions::default();
    let format = arrow::util::display::ArrayFormatter::try_new(column.as_ref(), &options);
    let format = format.map_err(internal)?;
    let text = |i| column.is_valid(i).then(|| format.value(i).to_string());
    let texts: arrow::array::StringArray = (0..column.len()).map(text).collect();
    Ok(Arc::new(texts))
}
