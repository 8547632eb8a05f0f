//! `POST /sessions/ID/sql`: a SELECT of the user's.

use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use fathom_query::worker::{Form, Outcome, Statement};
use serde::{Deserialize, Serialize};

use super::Shared;
use crate::columns::{ArrowAnswer, described};
use crate::error::ApiError;
use crate::job::{Lane, Stop};

/// Rows of an answer at most.
const MOST: usize = 100_000;
/// Bytes of a statement at most, and how long they may take to arrive.
const MOST_BYTES: usize = 256 << 10;
const PATIENCE: Duration = Duration::from_secs(10);

/// The request.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
#[cfg_attr(test, ts(optional_fields))]
pub(crate) struct SqlRequest {
    /// One SELECT.
    pub sql: String,
    /// Maximum number of rows: 10,000 by default, never more than 100,000.
    pub max_rows: Option<usize>,
}

/// Description of an answer.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct SqlMeta {
    /// Rows of the answer.
    pub rows: usize,
    /// Whether there are more.
    pub cut: bool,
    pub elapsed_ms: f64,
}

impl SqlMeta {
    pub fn of(outcome: &Outcome) -> Self {
        Self {
            rows: usize::try_from(outcome.rows).unwrap_or(usize::MAX),
            cut: outcome.cut,
            elapsed_ms: outcome.elapsed.as_secs_f64() * 1e3,
        }
    }
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
    let told = match app.library.extensions.names_findings(&request.sql) {
        true => Some(app.diagnoses.of(&app.library, &id).await?),
        false => None,
    };
    let statement = Statement {
        sql: request.sql,
        form: Form::Page { max_rows: most },
        findings: told.map(|told| vec![fathom_diagnose::finding_rows(&told.diagnosis)]),
        refresh: false,
    };
    let state = app.clone();
    let work = move |stop: &Stop| state.workers.query(&state.library, &id, statement, stop);
    let (answer, outcome) = app.jobs.run(Lane::Slow, work).await?;
    described(&answer, &SqlMeta::of(&outcome))
}
