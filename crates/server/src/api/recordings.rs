//! `POST /sessions/ID/save` and `POST /sessions/ID/stop`: what a client may change.

use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use fathom_session::Session;
use serde::Serialize;
use tokio::sync::OwnedSemaphorePermit;

use super::{Json, Shared};
use crate::access::Caller;
use crate::error::ApiError;

/// Why a recording was not saved or stopped: what happened.
#[derive(Clone, Debug)]
pub enum RecordingError {
    /// No program records the session, or this program cannot do it.
    Refused(String),
    /// It was tried.
    Failed(String),
}

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
    // A save may take long, and waiting ones must not take the threads of all other requests.
    let Ok(turn) = Arc::clone(&app.saving).try_acquire_owned() else {
        let what = "another recording is being saved";
        let next = "try again when that is done";
        return Err(ApiError::new(StatusCode::CONFLICT, what, id, next));
    };
    change(&app, id, Some(turn), work).await.map(Json)
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
    change(&app, id, None, work).await.map(Json)
}

/// Changes a recording in progress; `turn` is held until the work is over, whether the client waits or
/// not.
async fn change<T: Send + 'static>(
    app: &Shared,
    id: String,
    turn: Option<OwnedSemaphorePermit>,
    work: impl FnOnce(&dyn Recordings, &FilePath) -> Result<T, RecordingError> + Send + 'static,
) -> Result<T, ApiError> {
    let dir = app.library.dir(&id)?;
    let refused = |what: String, next: &str| ApiError::new(StatusCode::CONFLICT, what, &id, next);
    let Some(recordings) = app.recordings.clone() else {
        let next = "serve the directory of the recording itself, without --redact";
        return Err(refused("this server shows copies".to_owned(), next));
    };
    let done = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        let not_recorded = "this session is not being recorded";
        if !Session::is_recorded_now(&dir) {
            return Err(RecordingError::Refused(not_recorded.to_owned()));
        }
        work(recordings.as_ref(), &dir).map_err(|error| match error {
            // It has ended meanwhile.
            RecordingError::Failed(_) if !Session::is_recorded_now(&dir) => {
                RecordingError::Refused(not_recorded.to_owned())
            }
            error => error,
        })
    });
    let done = done.await.map_err(|_| ApiError::cancelled())?;
    done.map_err(|error| match error {
        RecordingError::Refused(what) => {
            refused(what, "see what `fathom sessions` says about the session")
        }
        RecordingError::Failed(what) => {
            let next = "check the messages of the recorder, and the space and the owner of the \
                        directory above the session";
            ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, what, &id, next)
        }
    })
}
