//! The sessions of the agent in its directory: the ring, and what was saved from it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use fathom_session::{FolderLock, SessionError, create_folder, discard, repair};

use crate::AgentError;

/// How the names of the agent's sessions begin and end: no others are touched.
const PREFIX: &str = "agent-";
const SUFFIX: &str = ".fathom";

/// A directory of sessions, which no other agent uses meanwhile.
#[derive(Clone)]
pub struct Sessions {
    dir: PathBuf,
    _lock: Arc<FolderLock>,
}

impl Sessions {
    /// Makes the directory; one of the same owner may be there.
    ///
    /// # Errors
    /// [`AgentError::Busy`] if another agent uses it; [`SessionError::Foreign`] if another user can
    /// write in it, and [`SessionError::Io`].
    pub fn open(dir: &Path) -> Result<Self, AgentError> {
        create_folder(dir)?;
        let lock = FolderLock::acquire(dir).map_err(|error| match error {
            SessionError::Busy(dir) => AgentError::Busy(dir),
            error => error.into(),
        })?;
        Ok(Self {
            dir: dir.to_owned(),
            _lock: Arc::new(lock),
        })
    }

    /// The place of the next ring.
    pub fn next(&self, time: &str) -> PathBuf {
        let place = |time: &str| self.dir.join(format!("{PREFIX}{time}{SUFFIX}"));
        let mut path = place(time);
        for number in 2.. {
            if path.symlink_metadata().is_err() {
                break;
            }
            path = place(&format!("{time}-{number}"));
        }
        path
    }

    /// Completes sessions whose recorder was killed. Returns what is to be said.
    pub fn repair(&self) -> Vec<String> {
        let mut said = Vec::new();
        for path in self.list() {
            match repair(&path, true) {
                Ok(done) if done.found.is_empty() => {}
                Ok(done) => said.push(format!(
                    "{} was left behind by an agent that was killed; repaired: {}",
                    path.display(),
                    done.found.join("; ")
                )),
                // Another agent records it.
                Err(SessionError::Busy(_)) => {}
                Err(error) => said.push(format!("cannot repair {}: {error}", path.display())),
            }
        }
        said
    }

    /// Removes the oldest sessions but `keep` and `ring`. Returns what is to be said.
    pub fn prune(&self, keep: usize, ring: Option<&Path>) -> Vec<String> {
        let mut all: Vec<(SystemTime, PathBuf)> = self
            .list()
            .into_iter()
            .filter(|path| Some(path.as_path()) != ring)
            .filter_map(|path| {
                let meta = path.join("session.json").symlink_metadata().ok()?;
                Some((meta.modified().ok()?, path))
            })
            .collect();
        all.sort();
        let surplus = all.len().saturating_sub(keep);
        let mut said = Vec::new();
        for (_, path) in all.into_iter().take(surplus) {
            match discard(&path) {
                Ok(()) | Err(SessionError::Busy(_)) => {}
                Err(error) => said.push(format!("cannot remove {}: {error}", path.display())),
            }
        }
        said
    }

    /// The agent's sessions, by name.
    pub fn list(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(&self.dir).into_iter().flatten();
        let mut all: Vec<PathBuf> = entries
            .filter_map(Result::ok)
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .filter(|entry| {
                let name = entry.file_name();
                let name = name.to_string_lossy();
                name.starts_with(PREFIX) && name.ends_with(SUFFIX)
            })
            .map(|entry| entry.path())
            .collect();
        all.sort();
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_has_one_agent() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("sessions");
        let first = Sessions::open(&dir).unwrap();
        let shipper = first.clone();
        drop(first);
        let Err(AgentError::Busy(busy)) = Sessions::open(&dir) else {
            panic!("two agents");
        };
        assert_eq!(busy, dir);
        drop(shipper);
        Sessions::open(&dir).unwrap();
    }
}
