//! Summaries for the list of sessions: one that cannot be opened, or does not come to an end of it,
//! keeps no other from being listed.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use fathom_session::Session;

use super::sessions::{SessionSummary, summary, unreadable};
use crate::error::ApiError;
use crate::library::Library;
use crate::lock::lock;
use crate::stamp::Stamp;

/// How long a list waits for all sessions together that take long to open.
const LONG: Duration = Duration::from_secs(3);
/// How long for any one of them all the same.
const SHORT: Duration = Duration::from_millis(100);

/// The time left for a list.
struct Patience(Instant);

impl Default for Patience {
    fn default() -> Self {
        Self(Instant::now() + LONG)
    }
}

impl Patience {
    fn left(&self) -> Duration {
        let left = self.0.saturating_duration_since(Instant::now());
        left.max(SHORT)
    }
}

/// Summaries of sessions that have not changed since they were made.
#[derive(Clone, Default)]
pub(crate) struct Summaries(Arc<State>);

#[derive(Default)]
struct State {
    known: Mutex<HashMap<String, (Stamp, SessionSummary)>>,
    /// Sessions that are being opened: the next list need not begin with them again.
    opening: Mutex<HashSet<String>>,
    /// One list at a time, so that what another opens is not taken for what takes long.
    turn: Mutex<()>,
}

impl Summaries {
    /// The summaries of all sessions, ordered by name, while `wanted` returns true.
    pub fn all(
        &self,
        library: &Library,
        wanted: impl Fn() -> Result<(), ApiError>,
    ) -> Result<Vec<SessionSummary>, ApiError> {
        let _turn = lock(&self.0.turn);
        let patience = Patience::default();
        let ids = library.ids()?;
        let summary = |id: &String| {
            wanted()?;
            Ok(self.of(library, id, &patience))
        };
        ids.iter().map(summary).collect()
    }

    /// The summary of session `id`; if it cannot be opened, with the error.
    fn of(&self, library: &Library, id: &str, patience: &Patience) -> SessionSummary {
        let summary = library.dir(id).and_then(|dir| self.find(id, dir, patience));
        summary.unwrap_or_else(|error| unreadable(id, error.problem))
    }

    fn find(
        &self,
        id: &str,
        dir: PathBuf,
        patience: &Patience,
    ) -> Result<SessionSummary, ApiError> {
        let stamp = Stamp::of(&dir);
        if let Some((known, summary)) = lock(&self.0.known).get(id)
            && *known == stamp
            && !summary.live
        {
            return Ok(summary.clone());
        }
        if !lock(&self.0.opening).insert(id.to_owned()) {
            return Err(slow(id));
        }
        // On a thread of its own, which may wait for good.
        let (sender, outcome) = channel();
        let (state, name) = (self.0.clone(), id.to_owned());
        let work = move || {
            let opening = Opening(&state.opening, &name);
            let summary = open(&name, &dir);
            if let Ok(summary) = &summary {
                let entry = (stamp, summary.clone());
                lock(&state.known).insert(name.clone(), entry);
            }
            // First: the list that gets the summary may be followed by another at once.
            drop(opening);
            // If that fails, the client has gone.
            sender.send(summary).ok();
        };
        let thread = std::thread::Builder::new().name("fathom-list".to_owned());
        if let Err(e) = thread.spawn(work) {
            lock(&self.0.opening).remove(id);
            return Err(ApiError::internal(format!("no thread to open it: {e}")));
        }
        match outcome.recv_timeout(patience.left()) {
            Ok(summary) => summary,
            Err(RecvTimeoutError::Timeout) => Err(slow(id)),
            Err(RecvTimeoutError::Disconnected) => {
                Err(ApiError::internal("it could not be opened"))
            }
        }
    }
}

fn open(id: &str, dir: &Path) -> Result<SessionSummary, ApiError> {
    let session = Session::glance(dir).map_err(|e| ApiError::session(id, &e))?;
    Ok(summary(id, &session))
}

fn slow(id: &str) -> ApiError {
    ApiError::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "it takes long to open",
        id,
        "look again in a moment; if it stays so see what is in its folder",
    )
}

/// A session that is being opened, until this is dropped.
struct Opening<'a>(&'a Mutex<HashSet<String>>, &'a str);

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        lock(self.0).remove(self.1);
    }
}
