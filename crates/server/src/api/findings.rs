//! `GET /sessions/ID/findings`: what is wrong, as `fathom diagnose` says it.

use axum::extract::{Path, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};

use super::Shared;
use crate::error::ApiError;

/// `GET /sessions/ID/findings`.
pub(crate) async fn findings(
    State(app): State<Shared>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let told = app.diagnoses.of(&app.library, &id).await?;
    let json = [(header::CONTENT_TYPE, "application/json")];
    Ok((json, told.json.clone()).into_response())
}
