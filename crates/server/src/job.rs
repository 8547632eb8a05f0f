//! Queries: queued, run in separate threads, and stopped when no client waits for them any more.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::StatusCode;
use fathom_query::Interrupter;
use fathom_query::worker::Killer;
use tokio::sync::Semaphore;

use crate::error::ApiError;
use crate::library::Library;
use crate::lock::lock;
use crate::stamp::Stamp;
use crate::view::{Reader, View};

/// Queries that run at once, over all sessions.
pub(crate) const AT_ONCE: usize = 2;
/// How long a query waits for its turn.
const PATIENCE: Duration = Duration::from_secs(30);
/// The same of queries of [`Lane::Long`].
const LONG_PATIENCE: Duration = Duration::from_secs(600);
/// Interval at which an unwanted query is interrupted: an interrupt before the database has started
/// has no effect.
const INSIST: Duration = Duration::from_millis(10);
/// Tries on a session that changes meanwhile, and how long to wait in between: merges come one by
/// one, and the recording's end is a burst of them.
const TRIES: u32 = 8;
const PAUSE: Duration = Duration::from_millis(20);

/// How long a query is expected to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Queries of plots while they move.
    Quick,
    /// Queries that may read all rows: one at a time, so that the others get their turn.
    Slow,
    /// Queries that read all rows of a session and may take minutes: one at a time, besides the others.
    Long,
}

/// Runs queries.
pub(crate) struct Jobs {
    library: Arc<Library>,
    running: Arc<Semaphore>,
    slow: Arc<Semaphore>,
    long: Arc<Semaphore>,
}

impl Jobs {
    pub fn new(library: Arc<Library>) -> Self {
        Self::with(library, AT_ONCE, 1)
    }

    /// Runs queries of one client that waits for all of them, `at_once` of them together.
    pub fn of_one_client(library: Arc<Library>, at_once: usize) -> Self {
        Self::with(library, at_once, at_once)
    }

    fn with(library: Arc<Library>, running: usize, slow: usize) -> Self {
        let lane = |jobs| Arc::new(Semaphore::new(jobs));
        Self {
            library,
            running: lane(running),
            slow: lane(slow),
            long: lane(1),
        }
    }

    /// Runs `query` on session `id`. When this future is dropped, as its connection
    /// has closed, the query is stopped.
    pub async fn query<T: Send + 'static>(
        &self,
        id: String,
        lane: Lane,
        query: impl Fn(&Reader, &Stop) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let library = self.library.clone();
        self.run(lane, move |stop| on_reader(&library, &id, stop, &query))
            .await
    }

    /// Session `id` as it is now, at once: nothing of it is queried, so that it takes no turn
    /// of what is.
    pub async fn look(&self, id: String) -> Result<Arc<View>, ApiError> {
        let library = self.library.clone();
        let look = tokio::task::spawn_blocking(move || library.view(&id));
        look.await.map_err(|_| ApiError::cancelled())?
    }

    /// Runs `work` on a thread where it may wait.
    pub async fn run<T: Send + 'static>(
        &self,
        lane: Lane,
        work: impl FnOnce(&Stop) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let closed = |_| ApiError::cancelled();
        let turn = async {
            let (own, shared) = match lane {
                Lane::Long => (Some(&self.long), None),
                Lane::Slow => (Some(&self.slow), Some(&self.running)),
                Lane::Quick => (None, Some(&self.running)),
            };
            let mut permits = Vec::new();
            for of in own.into_iter().chain(shared) {
                permits.push(of.clone().acquire_owned().await.map_err(closed)?);
            }
            Ok::<_, ApiError>(permits)
        };
        let patience = match lane {
            Lane::Long => LONG_PATIENCE,
            Lane::Slow | Lane::Quick => PATIENCE,
        };
        let permits = tokio::time::timeout(patience, turn).await.map_err(|_| {
            ApiError::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "other queries took all the time",
                "the queue",
                "try again when they are done",
            )
        })??;
        let stop = Stop::default();
        let guard = StopOnDrop(stop.clone());
        let job = tokio::task::spawn_blocking(move || {
            // Held until the work is really over, whether anyone waits or not.
            let _permits = permits;
            let result = match stop.is_asked() {
                true => Err(ApiError::cancelled()),
                false => work(&stop),
            };
            stop.done();
            result
        });
        let result = job.await;
        drop(guard);
        result.map_err(|e| match e.is_cancelled() {
            true => ApiError::cancelled(),
            false => ApiError::internal("a query failed in an unexpected way"),
        })?
    }
}

/// Runs `query` on a connection to session `id`, where it can be stopped; again, some times at
/// most, when it fails and the session has changed meanwhile: parts of a recording are merged into
/// others at any moment.
pub(crate) fn on_reader<T>(
    library: &Library,
    id: &str,
    stop: &Stop,
    query: impl Fn(&Reader, &Stop) -> Result<T, ApiError>,
) -> Result<T, ApiError> {
    for _ in 1..TRIES {
        let before = library.dir(id).map(|dir| Stamp::of(&dir))?;
        let error = match on_reader_once(library, id, stop, &query) {
            Err(error) if !stop.is_asked() => error,
            result => return result,
        };
        let has_changed = || library.dir(id).is_ok_and(|dir| Stamp::of(&dir) != before);
        if !(error.stale || error.status.is_server_error() && has_changed()) {
            return Err(error);
        }
        std::thread::sleep(PAUSE);
        library.forget(id);
    }
    on_reader_once(library, id, stop, &query)
}

fn on_reader_once<T>(
    library: &Library,
    id: &str,
    stop: &Stop,
    query: impl Fn(&Reader, &Stop) -> Result<T, ApiError>,
) -> Result<T, ApiError> {
    let reader = library.view(id)?.reader()?;
    stop.watch(Some(Running::Query(reader.db().interrupter())));
    let result = query(&reader, stop);
    // From here on nothing may be interrupted: the connection may get another query.
    stop.watch(None);
    if !stop.is_asked() {
        reader.give_back();
    }
    result
}

/// A query that can be stopped.
pub(crate) enum Running {
    /// A query of the server's own.
    Query(Interrupter),
    /// One that a user has written.
    Worker(Killer),
}

/// Stops a query that no client waits for.
#[derive(Clone, Default)]
pub(crate) struct Stop(Arc<StopState>);

#[derive(Default)]
struct StopState {
    asked: AtomicBool,
    done: AtomicBool,
    running: Mutex<Option<Running>>,
}

impl Stop {
    /// Whether to stop.
    pub fn is_asked(&self) -> bool {
        self.0.asked.load(Ordering::Relaxed)
    }

    /// Asks for it. A query of the database needs [`Stop::insist`].
    pub fn ask(&self) {
        self.0.asked.store(true, Ordering::Relaxed);
    }

    /// An error when it is time to stop.
    pub fn check(&self) -> Result<(), ApiError> {
        match self.is_asked() {
            true => Err(ApiError::cancelled()),
            false => Ok(()),
        }
    }

    /// The running queries.
    pub fn watch(&self, running: Option<Running>) {
        *lock(&self.0.running) = running;
    }

    fn done(&self) {
        self.0.done.store(true, Ordering::Relaxed);
    }

    /// Interrupts what runs now; true when there is nothing left to stop.
    fn insist(&self) -> bool {
        self.0.asked.store(true, Ordering::Relaxed);
        match &*lock(&self.0.running) {
            Some(Running::Query(query)) => query.interrupt(),
            Some(Running::Worker(worker)) => worker.kill(),
            None => {}
        }
        self.0.done.load(Ordering::Relaxed)
    }
}

/// Stops a query when it is dropped before the query is done.
struct StopOnDrop(Stop);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        if self.0.0.done.load(Ordering::Relaxed) {
            return;
        }
        self.0.0.asked.store(true, Ordering::Relaxed);
        let stop = self.0.clone();
        // Dropped with the server, there is no runtime, and nothing left to stop.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                while !stop.insist() {
                    tokio::time::sleep(INSIST).await;
                }
            });
        }
    }
}
