//! `GET /sessions/ID/findings`: what is wrong, as `fathom diagnose` says it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use axum::extract::{Path, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use fathom_session::Session;

use super::Shared;
use crate::error::ApiError;
use crate::job::{Lane, Stop};
use crate::library::{Stamp, lock};

/// Diagnoses of sessions that have not changed since: all calls must be looked at for one.
#[derive(Default)]
pub(crate) struct Diagnoses(Mutex<HashMap<String, (Stamp, Arc<str>)>>);

/// `GET /sessions/ID/findings`.
pub(crate) async fn findings(
    State(app): State<Shared>,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let state = app.clone();
    let work = move |stop: &Stop| {
        let dir = state.library.dir(&id)?;
        let stamp = Stamp::of(&dir);
        if let Some((known, text)) = lock(&state.diagnoses.0).get(&id)
            && *known == stamp
        {
            return Ok(text.clone());
        }
        let session = Session::open(&dir).map_err(|e| ApiError::session(&id, &e))?;
        let diagnosis = fathom_diagnose::diagnose_while(&session, &|| !stop.is_asked());
        stop.check()?;
        let diagnosis = diagnosis.map_err(|e| ApiError::internal(e.to_string()))?;
        let text = serde_json::to_string(&diagnosis);
        let text: Arc<str> = text.map_err(|e| ApiError::internal(e.to_string()))?.into();
        lock(&state.diagnoses.0).insert(id.clone(), (stamp, text.clone()));
        Ok(text)
    };
    let text = app.jobs.run(Lane::Slow, work).await?;
    let json = [(header::CONTENT_TYPE, "application/json")];
    Ok((json, text.to_string()).into_response())
}
