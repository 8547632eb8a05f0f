//! The sessions that clients may name, and the calls that are under way.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{anyhow, bail};
use fathom_extensions::Extensions;
use fathom_model::escape;
use fathom_query::worker::Killer;
use fathom_server::{Folder, link_in};
use fathom_session::Session;
use serde_json::Value;

/// Shared by the thread that reads messages and the one that runs tools.
pub struct Server {
    folder: Folder,
    extensions: Extensions,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// By id: whether the client has cancelled the call.
    calls: HashMap<String, bool>,
    /// The running call.
    running: Option<String>,
    /// The process that runs its SQL.
    killer: Option<Killer>,
}

impl Server {
    pub fn new(folder: Folder, extensions: Extensions) -> Self {
        Self {
            folder,
            extensions,
            state: Mutex::default(),
        }
    }

    /// The directory with the sessions.
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Rules and views of the user.
    pub fn extensions(&self) -> &Extensions {
        &self.extensions
    }

    /// The directory of a session.
    ///
    /// # Errors
    /// When there is no session of this name, or files of it are outside of it.
    pub fn dir(&self, name: &str) -> Result<PathBuf, anyhow::Error> {
        let Some(dir) = self.folder.dir(name) else {
            let root = self.folder.root().to_string_lossy();
            bail!(
                "no session {} in {}; list_sessions has the names of all",
                escape::shorten(&escape::text(name), 100),
                escape::text(&root)
            );
        };
        match link_in(&dir) {
            None => Ok(dir),
            Some(link) => Err(anyhow!(
                "{link} of session {} is a symbolic link, which is not followed; put the files \
                 themselves in its place",
                escape::text(name)
            )),
        }
    }

    /// Opens a session.
    ///
    /// # Errors
    /// The errors of [`Server::dir`] and [`Session::open`].
    pub fn open(&self, name: &str) -> Result<Session, anyhow::Error> {
        Ok(Session::open(&self.dir(name)?)?)
    }

    /// Notes a call that is to run; false if there is one of the same id.
    pub fn expect(&self, id: &Value) -> bool {
        let mut state = self.state();
        let is_new = !state.calls.contains_key(&id.to_string());
        if is_new {
            state.calls.insert(id.to_string(), false);
        }
        is_new
    }

    /// Begins a call; false if the client has cancelled it.
    pub fn begin(&self, id: &Value) -> bool {
        let mut state = self.state();
        let cancelled = state.calls.get(&id.to_string()).copied();
        if cancelled == Some(true) {
            state.calls.remove(&id.to_string());
            return false;
        }
        state.running = Some(id.to_string());
        true
    }

    /// Ends a call; false if the client has cancelled it.
    pub fn end(&self, id: &Value) -> bool {
        let mut state = self.state();
        state.running = None;
        state.killer = None;
        state.calls.remove(&id.to_string()) == Some(false)
    }

    /// Cancels a call, and kills the process that runs its SQL.
    pub fn cancel(&self, id: &Value) {
        let mut state = self.state();
        let id = id.to_string();
        if let Some(cancelled) = state.calls.get_mut(&id) {
            *cancelled = true;
        }
        if let (true, Some(killer)) = (state.running == Some(id), &state.killer) {
            killer.kill();
        }
    }

    /// The process that runs the SQL of the running call.
    pub fn runs_sql(&self, killer: Killer) {
        let mut state = self.state();
        let running = state.running.as_ref();
        if running.and_then(|id| state.calls.get(id)) == Some(&true) {
            killer.kill();
        }
        state.killer = Some(killer);
    }

    /// No step between lock and unlock can fail half-way.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
