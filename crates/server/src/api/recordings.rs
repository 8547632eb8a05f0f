//! `POST /sessions/ID/save` and `POST /sessions/ID/stop`: what a client may change.

use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use fathom_session::Session;
use serde::Serialize;

use super::{Json, Shared};
use crate::access::Caller;
use crate::error::ApiError;

/// Why a recording was not saved or stopped: what happened.
#[derive(Clone, Debug)]
pub struct RecordingError(pub String);

/// Recordings in progress, as the program that serves them can change them.
pub trait Recordings: Send + Sync {
    /// Saves what the recording of `session` keeps as another session and returns its directory;
    /// `by` names the client. May take minutes.
    ///
    /// # Errors
    /// When it is not being recorded, or its recorder cannot save.
    fn save(&self, session: &FilePath, by: Option<&str>) -> Result<PathBuf, RecordingError>;

    /// Ends the recording of `session` as the end of its duration does: a recorded command continues.
    ///
    /// # Errors
    /// When this program does not record it.
    fn stop(&self, session: &FilePath, by: Option<&str>) -> Result<(), RecordingError>;

    /// Whether the sessions of this server are recorded by this program, which can stop only its own.
    fn can_stop(&self) -> bool;
}

/// A session that was saved.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct SavedAnswer {
    /// Name of its folder, next to the recording's.
    pub name: String,
}

/// A recording that ends.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS, schemars::JsonSchema))]
pub(crate) struct StoppedAnswer {
    /// Always true.
    pub stopping: bool,
}

/// `POST /sessions/ID/save`.
pub(crate) async fn save(
    State(app): State<Shared>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<SavedAnswer>, ApiError> {
    let work = move |recordings: &dyn Recordings, dir: &FilePath| {
        let saved = recordings.save(dir, caller.name.as_deref())?;
        let name = saved.file_name().unwrap_or_default().to_string_lossy();
        Ok(SavedAnswer {
            name: name.into_owned(),
        })
    };
    change(&app, id, work).await.map(Json)
}

/// `POST /sessions/ID/stop`.
pub(crate) async fn stop(
    State(app): State<Shared>,
    Extension(caller): Extension<Caller>,
    Path(id): Path<String>,
) -> Result<Json<StoppedAnswer>, ApiError> {
    let work = move |recordings: &dyn Recordings, dir: &FilePath| {
        recordings.stop(dir, caller.name.as_deref())?;
        Ok(StoppedAnswer { stopping: true })
    };
    change(&app, id, work).await.map(Json)
}

/// Changes a recording in progress, one at a time: a save may take long, and waiting ones must not
/// take the threads of all other requests.
async fn change<T: Send + 'static>(
    app: &Shared,
    id: String,
    work: impl FnOnce(&dyn Recordings, &FilePath) -> Result<T, RecordingError> + Send + 'static,
) -> Result<T, ApiError> {
    let dir = app.library.dir(&id)?;
    let refused = |what: String, next: &str| ApiError::new(StatusCode::CONFLICT, what, &id, next);
    let Some(recordings) = app.recordings.clone() else {
        let next = "serve the directory of the recording itself, without --redact";
        return Err(refused("this server shows copies".to_owned(), next));
    };
    let Ok(turn) = Arc::clone(&app.changing).try_acquire_owned() else {
        let next = "try again when that is done";
        return Err(refused("another recording is being saved".to_owned(), next));
    };
    let done = tokio::task::spawn_blocking(move || {
        // Held until the work is over, whether the client waits or not.
        let _turn = turn;
        if !Session::is_recorded_now(&dir) {
            return Err(RecordingError(
                "this session is not being recorded".to_owned(),
            ));
        }
        work(recordings.as_ref(), &dir)
    });
    let done = done.await.map_err(|_| ApiError::cancelled())?;
    done.map_err(|RecordingError(what)| {
        refused(what, "see what `fathom sessions` says about the session")
    })
}
