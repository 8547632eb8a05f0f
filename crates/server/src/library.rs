//! The sessions below the directory that is served, and which of them are open.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use axum::http::StatusCode;
use fathom_extensions::Extensions;
use fathom_query::Limits;
use fathom_session::{Session, SessionSet, on_latest};

use crate::error::ApiError;
use crate::folder::{Folder, link_in};
use crate::lock::lock;
use crate::stamp::Stamp;
use crate::view::View;

/// Sessions that stay open.
const OPEN: usize = 6;

/// The sessions that are served.
pub(crate) struct Library {
    folder: Folder,
    limits: Limits,
    /// Rules and views of the user.
    pub extensions: Arc<Extensions>,
    entries: Mutex<HashMap<String, Arc<Entry>>>,
    clock: AtomicU64,
}

/// A session that was asked for.
#[derive(Default)]
struct Entry {
    current: Mutex<Option<Arc<View>>>,
    used: AtomicU64,
    /// Rows were found that are not as they were written: all are compared before the session is opened.
    damaged: Arc<AtomicBool>,
}

/// Where a symbolic link leads to is not served.
fn refuse_links(id: &str, dir: &Path) -> Result<(), ApiError> {
    match link_in(dir) {
        None => Ok(()),
        Some(name) => Err(ApiError::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            format!("{name} of this session is a symbolic link, which is not followed"),
            id,
            "put the files themselves in its place",
        )),
    }
}

impl Library {
    /// The sessions in `root`, the one session that it is, or the members of the set that it is.
    pub fn new(root: &Path, limits: Limits, extensions: Extensions) -> std::io::Result<Self> {
        Ok(Self {
            folder: Folder::new(root)?,
            limits,
            extensions: Arc::new(extensions),
            entries: Mutex::default(),
            clock: AtomicU64::new(0),
        })
    }

    /// Names of all sessions, in order.
    pub fn ids(&self) -> Result<Vec<String>, ApiError> {
        self.folder.ids().map_err(|e| {
            ApiError::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                format!("the directory cannot be read: {e}"),
                self.folder.root().display().to_string(),
                "see that it exists and may be read",
            )
        })
    }

    /// The folder of a session.
    pub fn dir(&self, id: &str) -> Result<PathBuf, ApiError> {
        let found = self.folder.dir(id);
        found.ok_or_else(|| ApiError::not_found(id, "choose a session from the list"))
    }

    /// A session as it is now.
    pub fn view(&self, id: &str) -> Result<Arc<View>, ApiError> {
        let dir = self.dir(id)?;
        let entry = self.entry(id);
        let mut current = lock(&entry.current);
        let stamp = Stamp::of(&dir);
        if let Some(view) = current.as_ref()
            && view.stamp.as_ref() == Some(&stamp)
        {
            // A recorder that was killed changes no file.
            if !view.session.is_live() || Session::is_recorded_now(&dir) {
                return Ok(view.clone());
            }
        }
        refuse_links(id, &dir)?;
        if let Some(before) = current.as_ref()
            && let Some(mut view) = before.follow()
        {
            view.stamp = Some(stamp);
            let view = Arc::new(view);
            *current = Some(view.clone());
            return Ok(view);
        }
        let mut view = match self.view_unchecked(id, &dir, &entry.damaged)? {
            Some(view) => view,
            None => {
                let mut session = Session::open(&dir).map_err(|e| ApiError::session(id, &e))?;
                on_latest(&mut session, |session| {
                    View::open(id, session.clone(), self.limits.clone())
                })?
            }
        };
        view.stamp = Some(stamp);
        let view = Arc::new(view);
        *current = Some(view.clone());
        Ok(view)
    }

    /// A session whose rows are compared with their checksums only when they are read: to read all of a large one takes
    /// longer than its first view. `None` if they have to be compared before: of a recording in progress, whose parts
    /// change, of one with tables of the user's, and of one with damaged rows.
    fn view_unchecked(
        &self,
        id: &str,
        dir: &Path,
        damaged: &Arc<AtomicBool>,
    ) -> Result<Option<View>, ApiError> {
        if damaged.load(Ordering::Relaxed) || Session::is_recorded_now(dir) {
            return Ok(None);
        }
        let session = Session::glance(dir).map_err(|e| ApiError::session(id, &e))?;
        if session.is_live() || !session.own_tables().is_empty() {
            return Ok(None);
        }
        let (limits, damaged) = (self.limits.clone(), Arc::clone(damaged));
        View::open_unchecked(id, session, limits, damaged).map(Some)
    }

    /// The set that is served; none if sessions are.
    pub fn set(&self) -> Result<Option<SessionSet>, ApiError> {
        if !self.folder.is_set() {
            return Ok(None);
        }
        let root = self.folder.root();
        let set = SessionSet::open(root);
        let set = set.map_err(|e| ApiError::session(&root.to_string_lossy(), &e))?;
        for (member, session) in set.members() {
            refuse_links(&member.host, session.dir())?;
        }
        Ok(Some(set))
    }

    /// Forgets the state of a session, so that the next [`Library::view`] opens it.
    pub fn forget(&self, id: &str) {
        *lock(&self.entry(id).current) = None;
    }

    /// The limits of each query.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    fn entry(&self, id: &str) -> Arc<Entry> {
        let mut entries = lock(&self.entries);
        let entry = entries.entry(id.to_string()).or_default().clone();
        let now = self.clock.fetch_add(1, Ordering::Relaxed);
        entry.used.store(now, Ordering::Relaxed);
        if entries.len() > OPEN {
            let used = |e: &Arc<Entry>| e.used.load(Ordering::Relaxed);
            let oldest = entries.iter().min_by_key(|(_, e)| used(e));
            if let Some(name) = oldest.map(|(name, _)| name.clone()) {
                entries.remove(&name);
            }
        }
        entry
    }
}
