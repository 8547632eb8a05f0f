//! Which files are trusted, and their texts.
//!
//! fathom may run as root, and a rule decides what it reports. So a file counts only if no other
//! user can have written it: the directory, its subfolders, and its files belong to the user that
//! runs fathom, or to root, and no other user can write them. Each is opened once, and what was opened
//! is checked.
//!
//! The path of the directory itself may contain symbolic links, as directories of settings often
//! do. It is resolved once, and each directory on the resolved path is checked, so that no other user
//! can put another one in its place. Within the directory no link is followed: its target may be in
//! a directory that another user can write.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use fathom_model::escape;
use rustix::fs::{CWD, Dir, FileType, Mode, OFlags, fstat, openat};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::ExtensionError;

/// Bytes of a file at most, and files of a folder.
const MOST_BYTES: u64 = 256 << 10;
const MOST_FILES: usize = 200;

/// For every open: nothing is inherited, no terminal is taken, no pipe is waited for, no link
/// followed.
const SAFE: OFlags = OFlags::RDONLY
    .union(OFlags::CLOEXEC)
    .union(OFlags::NOCTTY)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOFOLLOW);

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

/// The files of `views/` and of `rules/` in `dir`, by name. A folder that does not exist has none.
pub(crate) fn read(dir: &Path) -> Result<[Vec<SqlFile>; 2], ExtensionError> {
    let resolved = dir.canonicalize().map_err(|e| {
        refused(
            dir,
            format!("{e}; give a directory with folders rules and views"),
        )
    })?;
    for above in resolved.ancestors().skip(1) {
        let found = above.symlink_metadata();
        let found = found.map_err(|e| refused(above, e.to_string()))?;
        // In a directory with this bit only the owner of an entry can replace it.
        let sticky = found.mode() & 0o1000 != 0;
        let mode = if sticky { 0 } else { found.mode() };
        check(above, found.uid(), mode)?;
    }
    let root = open(CWD, &resolved, &resolved, OFlags::DIRECTORY)?
        .ok_or_else(|| refused(&resolved, "it does not exist"))?;
    Ok([
        folder(&root, "views", &resolved)?,
        folder(&root, "rules", &resolved)?,
    ])
}

/// Opens what is trusted; `None` if it does not exist.
fn open(
    parent: impl AsFd,
    name: &Path,
    path: &Path,
    more: OFlags,
) -> Result<Option<OwnedFd>, ExtensionError> {
    let opened = match openat(parent, name, SAFE | more, Mode::empty()) {
        Ok(opened) => opened,
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => return Err(refused(path, LINK)),
        Err(Errno::NOTDIR) => {
            return Err(refused(
                path,
                "it is not a directory, or a symbolic link to one; put the directory itself in its place",
            ));
        }
        Err(e) => return Err(refused(path, e.to_string())),
    };
    let stat = fstat(&opened).map_err(|e| refused(path, e.to_string()))?;
    check(path, stat.st_uid, stat.st_mode)?;
    if more == OFlags::empty() && FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(refused(path, "it is not a regular file; remove it"));
    }
    Ok(Some(opened))
}

const LINK: &str = "it is a symbolic link, which is not followed; put the file itself in its place";

/// Refuses what another user owns or can write.
fn check(path: &Path, owner: u32, mode: u32) -> Result<(), ExtensionError> {
    let user = geteuid().as_raw();
    let quoted = escape::shell_words([path.as_os_str().as_bytes()]);
    if owner != user && owner != 0 {
        return Err(refused(
            path,
            format!(
                "it belongs to user {owner}, and fathom runs as user {user}; copy the rules and \
                 views to a directory of user {user}, or run `chown -R {user} {quoted}` if you trust them; \
                 `--extensions none` works without them"
            ),
        ));
    }
    match mode & 0o022 {
        0 => Ok(()),
        _ => Err(refused(
            path,
            format!("other users can write it; run `chmod go-w {quoted}` if you trust it"),
        )),
    }
}

fn folder(root: &OwnedFd, name: &str, above: &Path) -> Result<Vec<SqlFile>, ExtensionError> {
    let path = above.join(name);
    let Some(folder) = open(root, Path::new(name), &path, OFlags::DIRECTORY)? else {
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
    let Some(opened) = open(folder, Path::new(name), &path, OFlags::empty())? else {
        return Err(refused(&path, "it has been removed meanwhile; try again"));
    };
    let mut text = String::new();
    let read = File::from(opened)
        .take(MOST_BYTES + 1)
        .read_to_string(&mut text);
    read.map_err(|e| refused(&path, e.to_string()))?;
    if text.len() as u64 > MOST_BYTES {
        return Err(refused(
            &path,
            format!("it has more than {} KiB", MOST_BYTES >> 10),
        ));
    }
    let name = name.strip_suffix(".sql").unwrap_or(name).to_owned();
    Ok(SqlFile { name, path, text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_belong_to_the_user_or_to_root() {
        let path = Path::new("/home/a b/fathom");
        let user = geteuid().as_raw();
        assert!(check(path, user, 0o755).is_ok());
        assert!(check(path, 0, 0o755).is_ok());
        let other = user.wrapping_add(12345);
        let Err(error) = check(path, other, 0o700) else {
            unreachable!("user {other} is neither");
        };
        let text = error.to_string();
        assert!(
            text.contains(&format!("it belongs to user {other}")),
            "{text}"
        );
        assert!(text.contains("'/home/a b/fathom'"), "{text}");
        assert!(text.contains("--extensions none"), "{text}");
    }
}
