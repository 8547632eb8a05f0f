//! The sessions below a directory, or of a set, by their names: nothing else can be named.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use fathom_model::tables::TABLES;
use fathom_pyramid::SOURCES;
use fathom_session::SessionSet;

/// Files of a session next to its tables.
pub(crate) fn files() -> impl Iterator<Item = &'static str> {
    let pyramids = SOURCES.iter().map(|source| source.file);
    std::iter::once("session.json").chain(pyramids)
}

/// A directory of sessions, one session, or a set.
#[derive(Clone, Debug)]
pub struct Folder {
    /// The directory, or the file of the set, without symbolic links.
    root: PathBuf,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    /// Sessions are directories in the root.
    Sessions,
    /// The root is the session of this name.
    Session(String),
    /// The root is a set: its hosts and their sessions.
    Set(Vec<(String, PathBuf)>),
}

impl Folder {
    /// The sessions in `root`, the one session that it is, or the members of the set that it is.
    ///
    /// # Errors
    /// When there is no such directory, and when a set cannot be opened.
    pub fn new(root: &Path) -> io::Result<Self> {
        let root = root.canonicalize()?;
        let kind = if SessionSet::is_set(&root) {
            let set = SessionSet::open(&root).map_err(io::Error::other)?;
            let members = set.members();
            Kind::Set(
                members
                    .map(|(member, session)| (member.host.clone(), session.dir().to_owned()))
                    .collect(),
            )
        } else if !root.is_dir() {
            return Err(ErrorKind::NotADirectory.into());
        } else {
            let single = is_session(&root).then(|| name_of(&root)).flatten();
            single.map_or(Kind::Sessions, Kind::Session)
        };
        Ok(Self { root, kind })
    }

    /// Whether the sessions are members of a set; then their names are the names of its hosts.
    pub fn is_set(&self) -> bool {
        matches!(self.kind, Kind::Set(_))
    }

    /// The directory, or the file of the set.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Names of all sessions, in order.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn ids(&self) -> io::Result<Vec<String>> {
        match &self.kind {
            Kind::Session(name) => return Ok(vec![name.clone()]),
            Kind::Set(members) => {
                return Ok(members.iter().map(|(host, _)| host.clone()).collect());
            }
            Kind::Sessions => {}
        }
        let mut ids = Vec::new();
        for entry in fs::read_dir(&self.root)? {
            let entry = entry?;
            if entry.file_type().is_ok_and(|t| t.is_dir()) && is_session(&entry.path()) {
                ids.push(id_of(&entry.file_name()));
            }
        }
        ids.sort();
        Ok(ids)
    }

    /// The directory of a session; `None` if there is no such session. Nothing but the name of a
    /// directory in `root` leads anywhere, and no symbolic link is followed.
    pub fn dir(&self, id: &str) -> Option<PathBuf> {
        match &self.kind {
            Kind::Session(name) => return (id == name).then(|| self.root.clone()),
            Kind::Set(members) => {
                let (_, dir) = members.iter().find(|(host, _)| host == id)?;
                return Some(dir.clone());
            }
            Kind::Sessions => {}
        }
        let is_name = !id.is_empty() && id != "." && id != ".." && !id.contains(['/', '\0']);
        let mut dir = self.root.join(id);
        let is_dir = |path: &Path| fs::symlink_metadata(path).is_ok_and(|m| m.is_dir());
        if is_name && id.contains(ESCAPE) && dir.symlink_metadata().is_err() {
            let entries = fs::read_dir(&self.root).into_iter().flatten().flatten();
            let mut named = entries.filter(|entry| id_of(&entry.file_name()) == id);
            dir = named.next().map_or(dir, |entry| entry.path());
        }
        (is_name && is_dir(&dir) && is_session(&dir)).then_some(dir)
    }
}

/// The name of a table or file of the session in `dir` that is a symbolic link: what a link leads
/// to is not served.
pub fn link_in(dir: &Path) -> Option<&'static str> {
    let own = std::iter::once("own");
    let mut names = TABLES.iter().map(|t| t.name).chain(files()).chain(own);
    names.find(|name| fs::symlink_metadata(dir.join(name)).is_ok_and(|m| m.is_symlink()))
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
