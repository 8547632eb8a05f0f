//! The sessions below the directory that is served, and which of them are open.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use axum::http::StatusCode;
use fathom_model::tables::TABLES;
use fathom_pyramid::SOURCES;
use fathom_query::Limits;
use fathom_session::{Session, on_latest};

use crate::error::ApiError;
use crate::lock::lock;
use crate::view::View;

/// Sessions that stay open.
const OPEN: usize = 6;
/// Files of a session next to its tables.
fn files() -> impl Iterator<Item = &'static str> {
    let pyramids = SOURCES.iter().map(|source| source.file);
    std::iter::once("session.json").chain(pyramids)
}

/// The sessions that are served.
pub(crate) struct Library {
    /// Directory with the sessions, or the one session; without symbolic links.
    root: PathBuf,
    /// Name of the session, when `root` is one.
    single: Option<String>,
    limits: Limits,
    entries: Mutex<HashMap<String, Arc<Entry>>>,
    clock: AtomicU64,
}

/// A session that was asked for.
#[derive(Default)]
struct Entry {
    current: Mutex<Option<Opened>>,
    used: AtomicU64,
}

struct Opened {
    stamp: Stamp,
    view: Arc<View>,
}

/// A fingerprint that changes whenever a file of a session is added or replaced: modification times
/// and sizes of its folders and files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stamp(Vec<Option<(i64, i64, u64)>>);

impl Stamp {
    /// The fingerprint of the session in `dir` now.
    pub fn of(dir: &Path) -> Self {
        let of = |name: &str| {
            let metadata = fs::symlink_metadata(dir.join(name)).ok()?;
            Some((metadata.mtime(), metadata.mtime_nsec(), metadata.size()))
        };
        let names = TABLES.iter().map(|t| t.name).chain(files());
        Self(names.map(of).collect())
    }
}

impl Library {
    /// The sessions in `root`, or the one session that it is.
    pub fn new(root: &Path, limits: Limits) -> std::io::Result<Self> {
        let root = root.canonicalize()?;
        let single = is_session(&root).then(|| name_of(&root)).flatten();
        Ok(Self {
            root,
            single,
            limits,
            entries: Mutex::default(),
            clock: AtomicU64::new(0),
        })
    }

    /// Names of all sessions, in order.
    pub fn ids(&self) -> Result<Vec<String>, ApiError> {
        if let Some(name) = &self.single {
            return Ok(vec![name.clone()]);
        }
        let failed = |e: std::io::Error| {
            ApiError::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                format!("the directory cannot be read: {e}"),
                self.root.display().to_string(),
                "see that it exists and may be read",
            )
        };
        let mut ids = Vec::new();
        for entry in fs::read_dir(&self.root).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if entry.file_type().is_ok_and(|t| t.is_dir()) && is_session(&entry.path()) {
                ids.push(id_of(&entry.file_name()));
            }
        }
        ids.sort();
        Ok(ids)
    }

    /// The folder of a session. Nothing but the name of a folder in the directory
    /// leads anywhere, and no symbolic link is followed.
    pub fn dir(&self, id: &str) -> Result<PathBuf, ApiError> {
        let unknown = || ApiError::not_found(id, "choose one of the list of sessions");
        if let Some(name) = &self.single {
            return match id == name {
                true => Ok(self.root.clone()),
                false => Err(unknown()),
            };
        }
        let is_name = !id.is_empty() && id != "." && id != ".." && !id.contains(['/', '\0']);
        let mut dir = self.root.join(id);
        let is_dir = |path: &Path| fs::symlink_metadata(path).is_ok_and(|m| m.is_dir());
        if is_name && id.contains(ESCAPE) && dir.symlink_metadata().is_err() {
            let entries = fs::read_dir(&self.root).into_iter().flatten().flatten();
            let mut named = entries.filter(|entry| id_of(&entry.file_name()) == id);
            dir = named.next().map_or(dir, |entry| entry.path());
        }
        if !is_name || !is_dir(&dir) || !is_session(&dir) {
            return Err(unknown());
        }
        Ok(dir)
    }

    /// A session as it is now.
    pub fn view(&self, id: &str) -> Result<Arc<View>, ApiError> {
        let dir = self.dir(id)?;
        let entry = self.entry(id);
        let mut current = lock(&entry.current);
        let stamp = Stamp::of(&dir);
        if let Some(opened) = current.as_ref()
            && opened.stamp == stamp
        {
            // A recorder that was killed changes no file.
            let live = opened.view.session.is_live();
            if !live || Session::is_recorded_now(&dir) {
                return Ok(opened.view.clone());
            }
        }
        refuse_links(id, &dir)?;
        if let Some(opened) = current.as_ref()
            && let Some(view) = opened.view.follow()
        {
            let view = Arc::new(view);
            *current = Some(Opened {
                stamp,
                view: view.clone(),
            });
            return Ok(view);
        }
        let mut session = Session::open(&dir).map_err(|e| ApiError::session(id, &e))?;
        let view = on_latest(&mut session, |session| {
            View::open(id, session.clone(), self.limits.clone())
        });
        let view = Arc::new(view?);
        *current = Some(Opened {
            stamp,
            view: view.clone(),
        });
        Ok(view)
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

/// Whether a folder looks like a session: one that is damaged is one, too, and one that may not
/// be looked into goes by its name, so that the list says why it cannot be opened.
pub fn is_session(dir: &Path) -> bool {
    let names = ["session.json", fathom_model::tables::SYSCALLS.name];
    names
        .iter()
        .any(|name| match dir.join(name).symlink_metadata() {
            Ok(_) => true,
            Err(e) => {
                e.kind() == ErrorKind::PermissionDenied
                    && dir
                        .extension()
                        .is_some_and(|extension| extension == "fathom")
            }
        })
}

fn name_of(dir: &Path) -> Option<String> {
    Some(id_of(dir.file_name()?))
}

/// How bytes of a name that are not UTF-8 begin in its ID.
const ESCAPE: &str = "\\x";

/// The ID of a folder: its name, in which bytes that are not UTF-8 are written as `\xff`.
pub fn id_of(name: &OsStr) -> String {
    let mut id = String::new();
    for chunk in name.as_bytes().utf8_chunks() {
        id.push_str(chunk.valid());
        for byte in chunk.invalid() {
            id.push_str(&format!("{ESCAPE}{byte:02x}"));
        }
    }
    id
}

/// A session's folders and files must lie in it: what a link leads to is not served.
fn refuse_links(id: &str, dir: &Path) -> Result<(), ApiError> {
    let names = TABLES.iter().map(|t| t.name).chain(files());
    for name in names {
        let is_link = fs::symlink_metadata(dir.join(name)).is_ok_and(|m| m.is_symlink());
        if is_link {
            return Err(ApiError::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                format!("{name} of this session is a symbolic link, which is not followed"),
                id,
                "put the files themselves in its place",
            ));
        }
    }
    Ok(())
}
