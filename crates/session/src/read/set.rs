//! Sets of sessions: a file that names them.

use std::fs;
use std::io::{Read, Write};
use std::path::{Component, Path, PathBuf};

use fathom_model::escape::text;
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
    /// Its file; empty if it has none yet.
    path: PathBuf,
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
    /// [`SessionError::Io`] and [`SessionError::DamagedSet`] about the file, [`SessionError::Member`] about
    /// a session that cannot be opened, and [`SessionError::OtherMember`] if another session has
    /// taken its place.
    pub fn open(path: &Path) -> Result<Self, SessionError> {
        let meta = read(path)?;
        let sessions = meta.members.iter().map(|member| {
            let session = Session::open(&resolve(path, &member.path));
            session.map_err(|source| SessionError::Member {
                set: path.to_owned(),
                host: text(&member.host).into_owned(),
                source: Box::new(source),
            })
        });
        let sessions = sessions.collect::<Result<_, _>>()?;
        let set = Self {
            path: path.to_owned(),
            meta,
            sessions,
        };
        set.is_as_made()?;
        Ok(set)
    }

    /// Looks again, for sessions that are being recorded.
    ///
    /// # Errors
    /// The errors of [`Session::refresh`], and [`SessionError::OtherMember`].
    pub fn refresh(&mut self) -> Result<(), SessionError> {
        self.sessions.iter_mut().try_for_each(Session::refresh)?;
        self.is_as_made()
    }

    /// Whether each session is the one that the set was made of.
    fn is_as_made(&self) -> Result<(), SessionError> {
        let other = |(member, session): &(&Member, &Session)| member.session != session.meta().id;
        match self.members().find(other) {
            None => Ok(()),
            Some((member, session)) => Err(SessionError::OtherMember {
                set: self.path.clone(),
                host: text(&member.host).into_owned(),
                path: session.dir().to_owned(),
            }),
        }
    }

    /// A set that has no file yet, of sessions in the order of its members.
    pub fn new(meta: SetMeta, sessions: Vec<Session>) -> Self {
        Self {
            path: PathBuf::new(),
            meta,
            sessions,
        }
    }

    /// The contents of the file.
    pub fn meta(&self) -> &SetMeta {
        &self.meta
    }

    /// The sessions with what the set says of each, the reference first.
    pub fn members(&self) -> impl Iterator<Item = (&Member, &Session)> {
        self.meta.members.iter().zip(&self.sessions)
    }
}

/// The directories of the sessions of the set at `path`; `path` itself if it is no set.
///
/// # Errors
/// [`SessionError::Io`] and [`SessionError::DamagedSet`] about the set.
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

/// Why the file at `path`, which has the name of a set, is none.
pub(crate) fn damaged(path: &Path) -> Option<SessionError> {
    if path.extension().is_none_or(|extension| extension != "fset") {
        return None;
    }
    match path.is_symlink() {
        true => Some(SessionError::LinkToSet(path.to_owned())),
        false => read(path).err(),
    }
}

fn read(path: &Path) -> Result<SetMeta, SessionError> {
    let damaged = |reason: String| SessionError::DamagedSet {
        path: path.to_owned(),
        reason,
    };
    let file = open_regular(path).map_err(SessionError::io("open", path))?;
    let mut json = Vec::new();
    file.take(MAX_BYTES)
        .read_to_end(&mut json)
        .map_err(SessionError::io("read", path))?;
    if !json.starts_with(BEGINNING) {
        return Err(damaged("it does not begin as a set does".to_owned()));
    }
    let meta: SetMeta =
        serde_json::from_slice(&json).map_err(|e| damaged(text(&e.to_string()).into_owned()))?;
    if meta.set_version != SET_VERSION {
        return Err(damaged(format!(
            "it has version {}, this fathom reads version {SET_VERSION}",
            meta.set_version
        )));
    }
    // The file may be another user's: its paths and names are shown in messages.
    let printable = |path: &Path| path.to_str().is_some_and(|path| text(path) == path);
    if !meta.members.iter().all(|member| printable(&member.path)) {
        return Err(damaged(
            "a path of a member has characters that control terminals".to_owned(),
        ));
    }
    if !meta
        .members
        .iter()
        .all(|member| member.clock.map.is_sound())
    {
        return Err(damaged("a clock of a member is none".to_owned()));
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
        if whole.to_str().is_none_or(|path| text(path) != path) {
            return Err(SessionError::NotASession {
                path: member.path.clone(),
                reason: "a set cannot name it: its path is not UTF-8 or has control characters",
            });
        }
        member.path = match whole.strip_prefix(&beside) {
            Ok(inside) => inside.to_owned(),
            Err(_) => whole,
        };
    }
    let json = serde_json::to_string_pretty(&meta).map_err(|e| SessionError::DamagedSet {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_set_is_told() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        let said = |name: &str| Session::open(&at(name)).unwrap_err().to_string();
        fs::write(at("empty.fset"), "").unwrap();
        assert!(said("empty.fset").contains("make the set again"));
        std::os::unix::fs::symlink(at("empty.fset"), at("link.fset")).unwrap();
        assert!(said("link.fset").contains("symbolic link"));
        fs::write(at("notes.txt"), "").unwrap();
        assert!(said("notes.txt").contains("not a directory"));

        let member = |host: &str| Member {
            host: host.to_owned(),
            path: host.into(),
            session: String::new(),
            clock: fathom_model::set::MemberClock::reference(),
        };
        let meta = SetMeta {
            set_version: SET_VERSION,
            fathom_version: String::new(),
            members: vec![member("a"), member("b")],
        };
        let json = serde_json::to_string_pretty(&meta).unwrap();
        fs::write(at("moved.fset"), &json).unwrap();
        let moved = SessionSet::open(&at("moved.fset")).unwrap_err().to_string();
        assert!(moved.contains("moved.fset: member a: "), "{moved}");
        fs::write(at("cut.fset"), &json[..json.len() / 2]).unwrap();
        let cut = SessionSet::open(&at("cut.fset")).unwrap_err().to_string();
        assert!(cut.contains("make the set again"), "{cut}");
    }
}
