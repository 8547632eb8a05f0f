//! `GET /compare`: two sessions, or groups of them, side by side.

use axum::extract::{Query, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use fathom_diff::{DiffError, Options, Profile};
use serde::Deserialize;

use super::Shared;
use crate::error::ApiError;
use crate::job::{Lane, Stop, on_reader};

/// Sessions of a side at most.
const MOST: usize = 16;

/// Which sessions: ids, separated by commas.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Sides {
    /// Sessions of the first side: ids, separated by commas, at most 16.
    before: String,
    /// Sessions of the second side.
    after: String,
}

/// `GET /compare`, as `fathom diff` says it.
pub(crate) async fn compare(
    State(app): State<Shared>,
    Query(sides): Query<Sides>,
) -> Result<Response, ApiError> {
    let before = ids("before", &sides.before)?;
    let after = ids("after", &sides.after)?;
    let state = app.clone();
    let work = move |stop: &Stop| {
        let profiles = |ids: &[String]| -> Result<Vec<Profile>, ApiError> {
            ids.iter()
                .map(|id| {
                    stop.check()?;
                    on_reader(&state.library, id, stop, |reader, stop| {
                        let wanted = || !stop.is_asked();
                        let own = &state.library.extensions;
                        Profile::gather_while(reader.db(), &reader.session, id, own, &wanted)
                            .map_err(|e| failed(id, e))
                    })
                })
                .collect()
        };
        let (before, after) = (profiles(&before)?, profiles(&after)?);
        stop.check()?;
        let diff = fathom_diff::compare(&before, &after, &Options::default())
            .map_err(|e| ApiError::internal(e.to_string()))?;
        serde_json::to_string(&diff).map_err(|e| ApiError::internal(e.to_string()))
    };
    let text = app.jobs.run(Lane::Slow, work).await?;
    let json = [(header::CONTENT_TYPE, "application/json")];
    Ok((json, text).into_response())
}

fn ids(side: &str, text: &str) -> Result<Vec<String>, ApiError> {
    let ids: Vec<String> = text
        .split(',')
        .filter(|id| !id.is_empty())
        .map(str::to_string)
        .collect();
    match ids.len() {
        0 => Err(ApiError::parameter(side, "a side needs a session")),
        1..=MOST => Ok(ids),
        n => Err(ApiError::parameter(
            side,
            format!("{n} sessions are too many for a side: {MOST} at most"),
        )),
    }
}

fn failed(id: &str, error: DiffError) -> ApiError {
    let mut error = match error {
        DiffError::Query(error) => ApiError::from(error),
        other => ApiError::internal(other.to_string()),
    };
    error.problem.subject = id.to_string();
    error
}
