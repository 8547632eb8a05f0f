//! Diagnoses of sessions: behind everything else, and once for all who ask.
//!
//! A diagnosis reads every call, which takes half a minute for tens of millions. So it runs at low
//! priority in a separate thread, does not block other queries, and continues after the requesting
//! page has gone, unless another session is requested. The result is kept as long as the session
//! does not change, for a large session also in the session itself.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use fathom_diagnose::{CachedDiagnosis, Diagnosis};
use fathom_extensions::Extensions;
use fathom_session::Session;
use tokio::sync::watch;

use crate::error::ApiError;
use crate::job::Stop;
use crate::library::Library;
use crate::lock::lock;
use crate::stamp::Stamp;

/// How much nicer than the server's other threads.
const NICER: i32 = 5;

/// A diagnosis, as fathom has it and as the page gets it.
pub(crate) struct RenderedDiagnosis {
    pub diagnosis: Diagnosis,
    pub json: String,
}

/// The result of a diagnosis.
type Outcome = Option<Result<Arc<RenderedDiagnosis>, ApiError>>;

/// A diagnosis that is being made.
#[derive(Clone)]
struct Running {
    stop: Stop,
    /// All waiting requests have a receiver of it.
    sender: Arc<watch::Sender<Outcome>>,
}

/// Diagnoses that are there or on their way, by session.
#[derive(Default)]
pub(crate) struct Diagnoses(Arc<State>);

#[derive(Default)]
struct State {
    known: Mutex<HashMap<String, (Stamp, Arc<RenderedDiagnosis>)>>,
    running: Mutex<HashMap<String, Running>>,
    /// One at a time.
    turn: Mutex<()>,
}

impl Diagnoses {
    /// The diagnosis of session `id`. In a session in progress it may be slightly out of date.
    pub async fn of(
        &self,
        library: &Library,
        id: &str,
    ) -> Result<Arc<RenderedDiagnosis>, ApiError> {
        let dir = library.dir(id)?;
        if let Some(told) = self.known(id, &Stamp::of(&dir)) {
            return Ok(told);
        }
        let mut outcome = self.join(library, id, &dir)?;
        let told = outcome.wait_for(Option::is_some).await;
        let told = told.map_err(|_| ApiError::cancelled())?.clone();
        told.unwrap_or_else(|| Err(ApiError::cancelled()))
    }

    fn known(&self, id: &str, now: &Stamp) -> Option<Arc<RenderedDiagnosis>> {
        let known = lock(&self.0.known);
        let (stamp, told) = known.get(id)?;
        (stamp == now).then(|| told.clone())
    }

    /// A receiver for the diagnosis of a session; starts the diagnosis if necessary.
    fn join(
        &self,
        library: &Library,
        id: &str,
        dir: &Path,
    ) -> Result<watch::Receiver<Outcome>, ApiError> {
        let mut running = lock(&self.0.running);
        if let Some(found) = running.get(id)
            && !found.stop.is_asked()
        {
            return Ok(found.sender.subscribe());
        }
        // Diagnoses without waiting requests make room.
        for other in running.values().filter(|r| r.sender.receiver_count() == 0) {
            other.stop.ask();
        }
        let (sender, outcome) = watch::channel(None);
        let begun = Running {
            stop: Stop::default(),
            sender: Arc::new(sender),
        };
        running.insert(id.to_string(), begun.clone());
        drop(running);
        let state = self.0.clone();
        let (name, dir) = (id.to_string(), dir.to_path_buf());
        let extensions = library.extensions.clone();
        let work = move || state.work(&name, &dir, &extensions, &begun);
        let thread = std::thread::Builder::new().name("fathom-diagnose".to_string());
        thread.spawn(work).map_err(|e| {
            lock(&self.0.running).remove(id);
            ApiError::internal(format!("no thread for the diagnosis: {e}"))
        })?;
        Ok(outcome)
    }
}

impl State {
    fn work(&self, id: &str, dir: &Path, extensions: &Extensions, own: &Running) {
        // Of this thread alone; without the right to it stays as it is.
        if let Ok(nice) = rustix::process::getpriority_process(None) {
            rustix::process::setpriority_process(None, nice + NICER).ok();
        }
        // A result cached in the session need not wait for others.
        let kept = own
            .stop
            .check()
            .and_then(|()| self.recall(id, dir, extensions, &own.stop));
        let outcome = match kept.transpose() {
            Some(outcome) => outcome,
            None => {
                let _turn = lock(&self.turn);
                let go_on = own.stop.check();
                go_on.and_then(|()| self.diagnose(id, dir, extensions, &own.stop))
            }
        };
        let mut running = lock(&self.running);
        let is_own = |r: &Running| Arc::ptr_eq(&r.sender, &own.sender);
        if running.get(id).is_some_and(is_own) {
            running.remove(id);
        }
        drop(running);
        own.sender.send_replace(Some(outcome));
    }

    /// Findings cached in the session.
    fn recall(
        &self,
        id: &str,
        dir: &Path,
        extensions: &Extensions,
        stop: &Stop,
    ) -> Result<Option<Arc<RenderedDiagnosis>>, ApiError> {
        let stamp = Stamp::of(dir);
        let session = Session::open(dir).map_err(|e| ApiError::session(id, &e))?;
        match fathom_diagnose::cached(&session) {
            CachedDiagnosis::Findings(mut diagnosis) => {
                extend(&session, &mut diagnosis, extensions, stop)?;
                self.know(id, stamp, diagnosis).map(Some)
            }
            CachedDiagnosis::Nothing | CachedDiagnosis::Unusable(_) => Ok(None),
        }
    }

    fn diagnose(
        &self,
        id: &str,
        dir: &Path,
        extensions: &Extensions,
        stop: &Stop,
    ) -> Result<Arc<RenderedDiagnosis>, ApiError> {
        // Taken before, so that what comes meanwhile makes it an old one.
        let stamp = Stamp::of(dir);
        let mut session = Session::open(dir).map_err(|e| ApiError::session(id, &e))?;
        let told = fathom_diagnose::diagnose_latest(&mut session, &|| !stop.is_asked());
        stop.check()?;
        let mut told = told.map_err(|e| ApiError::internal(e.to_string()))?;
        extend(&session, &mut told.diagnosis, extensions, stop)?;
        self.know(id, stamp, told.diagnosis)
    }

    fn know(
        &self,
        id: &str,
        stamp: Stamp,
        diagnosis: Diagnosis,
    ) -> Result<Arc<RenderedDiagnosis>, ApiError> {
        let json = serde_json::to_string(&diagnosis);
        let json = json.map_err(|e| ApiError::internal(e.to_string()))?;
        let told = Arc::new(RenderedDiagnosis { diagnosis, json });
        lock(&self.known).insert(id.to_string(), (stamp, told.clone()));
        Ok(told)
    }
}

/// Adds what the user's rules find.
fn extend(
    session: &Session,
    diagnosis: &mut Diagnosis,
    extensions: &Extensions,
    stop: &Stop,
) -> Result<(), ApiError> {
    let added = extensions.diagnose(session, diagnosis, &|| !stop.is_asked());
    stop.check()?;
    added.map_err(|e| ApiError::internal(e.to_string()))
}
