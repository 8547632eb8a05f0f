//! Files of SQL, which count if they are trusted: the module `trusted` of crate session says when.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use fathom_session::{Distrust, open_trusted_dir, open_trusted_folder, read_trusted};
use rustix::fs::Dir;
use rustix::io::Errno;

use crate::ExtensionError;

/// Bytes of a file at most, and files of a folder.
const MOST_BYTES: u64 = 256 << 10;
const MOST_FILES: usize = 200;

/// A file of SQL.
#[derive(Clone, Debug)]
pub(crate) struct SqlFile {
    /// Its name without `.sql`.
    pub name: String,
    pub path: PathBuf,
    pub text: String,
}

impl SqlFile {
    pub fn wrong(&self, reason: impl Into<String>) -> ExtensionError {
        let (path, reason) = (self.path.clone(), reason.into());
        ExtensionError::Wrong { path, reason }
    }
}

fn refused(path: &Path, reason: impl Into<String>) -> ExtensionError {
    let (path, reason) = (path.to_owned(), reason.into());
    ExtensionError::Refused { path, reason }
}

impl From<Distrust> for ExtensionError {
    fn from(Distrust { path, reason }: Distrust) -> Self {
        Self::Refused { path, reason }
    }
}

/// The files of `views/`, `rules/`, and `panels/` in `dir`, by name. A folder that does not exist has
/// none.
pub(crate) fn read(dir: &Path) -> Result<[Vec<SqlFile>; 3], ExtensionError> {
    let (root, resolved) = open_trusted_dir(dir)?;
    Ok([
        folder(&root, "views", &resolved)?,
        folder(&root, "rules", &resolved)?,
        folder(&root, "panels", &resolved)?,
    ])
}

fn folder(root: &OwnedFd, name: &str, above: &Path) -> Result<Vec<SqlFile>, ExtensionError> {
    let path = above.join(name);
    let Some(folder) = open_trusted_folder(root, name, &path)? else {
        return Ok(Vec::new());
    };
    let failed = |e: Errno| refused(&path, e.to_string());
    let mut names = Vec::new();
    for entry in Dir::read_from(&folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        // Editors keep their own files under hidden names.
        if !name.starts_with('.') && name.ends_with(".sql") {
            names.push(name);
        }
    }
    if names.len() > MOST_FILES {
        return Err(refused(
            &path,
            format!("it has more than {MOST_FILES} files"),
        ));
    }
    names.sort();
    names
        .iter()
        .map(|name| file(&folder, name, path.join(name)))
        .collect()
}

fn file(folder: &OwnedFd, name: &str, path: PathBuf) -> Result<SqlFile, ExtensionError> {
    let Some(text) = read_trusted(folder, name, &path, MOST_BYTES)? else {
        return Err(refused(&path, "it has been removed meanwhile; try again"));
    };
    let name = name.strip_suffix(".sql").unwrap_or(name).to_owned();
    Ok(SqlFile { name, path, text })
}
