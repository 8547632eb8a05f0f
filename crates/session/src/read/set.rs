//! Sets of sessions: a file that names them.

use std::fs;
use std::io::{Read, Write};
use std::path::{Component, Path, PathBuf};

use fathom_model::set::{Member, SET_VERSION, SetMeta};

use crate::disk::dir::open_regular;
use crate::disk::new_file::NewFile;
use crate::error::SessionError;
use crate::read::session::Session;

/// More than any set has.
const MAX_BYTES: u64 = 16 << 20;
/// The first bytes of every set.
const BEGINNING: &[u8] = b"{\n  \"set_version\": ";

/// A set of sessions, opened.
#[derive(Clone, Debug)]
pub struct SessionSet {
    meta: SetMeta,
    sessions: Vec<Session>,
}

impl SessionSet {
    /// Whether there is a set at `path`.
    pub fn is_set(path: &Path) -> bool {
        if !fs::metadata(path).is_ok_and(|meta| meta.is_file()) {
            return false;
        }
        let mut start = [0; BEGINNING.len()];
        let read = open_regular(path).and_then(|mut file| file.read_exact(&mut start));
        read.is_ok() && start == BEGINNING
    }

    /// Opens the set at `path` and each of its sessions.
    ///
    /// # Errors
    /// [`SessionError::Io`] and [`SessionError::Damaged`] about the file, the errors of
    /// [`Session::open`] about a session, and [`SessionError::OtherMember`] if another session has
    /// taken its place.
    pub fn open(path: &Path) -> Result<Self, SessionError> {
        let meta = read(path)?;
        let sessions = meta.members.iter().map(|member| {
            let dir = resolve(path, &member.path);
            let session = Session::open(&dir)?;
            match session.meta().id == member.session {
                true => Ok(session),
                false => Err(SessionError::OtherMember {
                    set: path.to_owned(),
                    host: fathom_model::escape::text(&member.host).into_owned(),
                    path: dir,
                }),
            }
        });
        let sessions = sessions.collect::<Result<_, _>>()?;
        Ok(Self { meta, sessions })
    }

    /// A set that has no file yet, of sessions in the order of its members.
    pub fn new(meta: SetMeta, sessions: Vec<Session>) -> Self {
        Self { meta, sessions }
    }

    /// The contents of the file.
    pub fn meta(&self) -> &SetMeta {
        &self.meta
    }

    /// The sessions with what the set says of each, the reference first.
    pub fn members(&self) -> impl Iterator<Item = (&Member, &Session)> {
        self.meta.members.iter().zip(&self.sessions)
    }

    /// The same to refresh them.
    pub fn sessions_mut(&mut self) -> &mut [Session] {
        &mut self.sessions
    }
}

/// The directories of the sessions of the set at `path`; `path` itself if it is no set.
///
/// # Errors
/// [`SessionError::Io`] and [`SessionError::Damaged`] about the set.
pub fn dirs_of(path: &Path) -> Result<Vec<PathBuf>, SessionError> {
    if !SessionSet::is_set(path) {
        return Ok(vec![path.to_owned()]);
    }
    let members = read(path)?.members;
    let dirs = members.iter().map(|member| resolve(path, &member.path));
    Ok(dirs.collect())
}

/// The directories of the members of the set at `path`, for a message; `None` if it is no set.
pub(crate) fn members_of(path: &Path) -> Option<String> {
    let dirs = dirs_of(path).ok().filter(|_| SessionSet::is_set(path))?;
    let words = dirs.iter().map(|dir| dir.to_string_lossy());
    let words = words.map(|dir| fathom_model::escape::shell_words([dir.as_ref()]));
    Some(words.collect::<Vec<_>>().join(", "))
}

fn read(path: &Path) -> Result<SetMeta, SessionError> {
    let damaged = |reason: String| SessionError::Damaged {
        path: path.to_owned(),
        reason,
    };
    let file = open_regular(path).map_err(SessionError::io("open", path))?;
    let mut json = Vec::new();
    file.take(MAX_BYTES)
        .read_to_end(&mut json)
        .map_err(SessionError::io("read", path))?;
    if !json.starts_with(BEGINNING) {
        return Err(damaged("it is not a set of sessions".to_owned()));
    }
    let meta: SetMeta = serde_json::from_slice(&json).map_err(|e| damaged(e.to_string()))?;
    if meta.set_version != SET_VERSION {
        return Err(damaged(format!(
            "it has version {}, this fathom reads version {SET_VERSION}",
            meta.set_version
        )));
    }
    let hosts = meta.members.iter().map(|member| member.host.as_str());
    let distinct: std::collections::BTreeSet<&str> = hosts.collect();
    match distinct.len() == meta.members.len() && !distinct.is_empty() {
        true => Ok(meta),
        false => Err(damaged(
            "two members have one name, or it has none".to_owned(),
        )),
    }
}

/// Writes a set to `path`, in place of a set that is there if `force`. Paths of members are stored
/// relative to the directory of the file where they are in it.
///
/// # Errors
/// [`SessionError::SetExists`] if there is something, [`SessionError::NotReplaceable`] if it is no set;
/// [`SessionError::Io`].
pub fn write_set(path: &Path, mut meta: SetMeta, force: bool) -> Result<(), SessionError> {
    match fs::symlink_metadata(path) {
        Err(_) => {}
        Ok(_) if !force => return Err(SessionError::SetExists(path.to_owned())),
        Ok(_) if SessionSet::is_set(path) => {}
        Ok(_) => {
            return Err(SessionError::NotReplaceable {
                path: path.to_owned(),
                reason: "it is no set of sessions",
            });
        }
    }
    let beside = fs::canonicalize(parent(path)).map_err(SessionError::io("open", parent(path)))?;
    for member in &mut meta.members {
        let whole = fs::canonicalize(&member.path);
        let whole = whole.map_err(SessionError::io("open", &member.path))?;
        member.path = match whole.strip_prefix(&beside) {
            Ok(inside) => inside.to_owned(),
            Err(_) => whole,
        };
    }
    let json = serde_json::to_string_pretty(&meta).map_err(|e| SessionError::Damaged {
        path: path.to_owned(),
        reason: e.to_string(),
    })?;
    let io = SessionError::io("write", path);
    let write = || {
        let (new, mut file) = NewFile::begin(path)?;
        file.write_all(json.as_bytes())?;
        file.write_all(b"\n")?;
        file.sync_all()?;
        new.finish()
    };
    write().map_err(io)
}

fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// The directory of a member of the set at `set`.
fn resolve(set: &Path, member: &Path) -> PathBuf {
    match member.components().next() {
        Some(Component::Normal(_) | Component::ParentDir | Component::CurDir) => {
            parent(set).join(member)
        }
        _ => member.to_owned(),
    }
}
