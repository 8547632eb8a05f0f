//! Files that decide what fathom does: settings, rules, views.
//!
//! fathom may run as root. So such a file counts only if no other user can have written it: it and
//! each directory above it belong to the user that runs fathom, or to root, and no other user can
//! write them. Each is opened once, and what was opened is checked.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use fathom_model::escape;
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};
use rustix::io::Errno;
use rustix::process::geteuid;

/// For every open: nothing is inherited, no terminal is taken, no pipe is waited for, no link
/// followed.
const SAFE: OFlags = OFlags::RDONLY
    .union(OFlags::CLOEXEC)
    .union(OFlags::NOCTTY)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOFOLLOW);

/// Symbolic links on the way to a file at most, as in the kernel.
const MOST_LINKS: usize = 40;

const LINK: &str = "it is a symbolic link, which is not followed; put the file itself in its place";

/// Why a file or directory does not count.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", path.display())]
pub struct Distrust {
    /// The file or directory.
    pub path: PathBuf,
    /// The reason, and what to do.
    pub reason: String,
}

impl Distrust {
    /// A reason of the caller's.
    pub fn new(path: &Path, reason: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            reason: reason.into(),
        }
    }
}

/// Where a user's settings, rules, and views are: `$XDG_CONFIG_HOME/fathom`, or
/// `~/.config/fathom`. A relative path is ignored, as the standard says: it would lead to the working
/// directory, which may be a session that someone else made.
pub fn config_dir() -> Option<PathBuf> {
    let absolute = |name| {
        let dir = PathBuf::from(std::env::var_os(name)?);
        dir.is_absolute().then_some(dir)
    };
    let config = absolute("XDG_CONFIG_HOME");
    let config = config.or_else(|| Some(absolute("HOME")?.join(".config")));
    config.map(|dir| dir.join("fathom"))
}

/// Opens a directory. Its path may contain symbolic links, as directories of settings often do: it
/// is resolved once, and each directory on the resolved path is checked, so that no other user can
/// put another one in its place. Returns the resolved path, too.
///
/// # Errors
/// The directory that another user owns or can write, or that cannot be opened.
pub fn open_trusted_dir(dir: &Path) -> Result<(OwnedFd, PathBuf), Distrust> {
    let resolved = dir
        .canonicalize()
        .map_err(|e| Distrust::new(dir, e.to_string()))?;
    check_above(&resolved)?;
    let opened = open(CWD, &resolved, &resolved, OFlags::DIRECTORY)?
        .ok_or_else(|| Distrust::new(&resolved, "it does not exist"))?;
    Ok((opened, resolved))
}

/// The path of a file without symbolic links. Each link on the way, and the directories above it, are
/// checked as those above the file: who can replace a link decides which file is read.
///
/// # Errors
/// The link or directory that another user owns or can replace, or that does not exist.
pub fn resolve_trusted(path: &Path) -> Result<PathBuf, Distrust> {
    let failed = |e: io::Error| Distrust::new(path, e.to_string());
    let mut ahead = vec![std::path::absolute(path).map_err(failed)?];
    let mut here = PathBuf::from("/");
    let mut links = 0;
    while let Some(rest) = ahead.pop() {
        let mut parts = rest.components();
        let Some(part) = parts.next() else {
            continue;
        };
        ahead.push(parts.as_path().to_owned());
        let name = match part {
            Component::Normal(name) => name,
            Component::ParentDir => {
                here.pop();
                continue;
            }
            Component::RootDir => {
                here = PathBuf::from("/");
                continue;
            }
            Component::CurDir | Component::Prefix(_) => continue,
        };
        let at = here.join(name);
        let found = at.symlink_metadata().map_err(failed)?;
        if !found.is_symlink() {
            here = at;
            continue;
        }
        links += 1;
        if links > MOST_LINKS {
            return Err(failed(Errno::LOOP.into()));
        }
        check_above(&at)?;
        check(&at, found.uid(), 0)?;
        ahead.push(at.read_link().map_err(failed)?);
    }
    Ok(here)
}

/// Refuses a path if another user can put something else in the place of one of its parts.
fn check_above(path: &Path) -> Result<(), Distrust> {
    for above in path.ancestors().skip(1) {
        let found = above.symlink_metadata();
        let found = found.map_err(|e| Distrust::new(above, e.to_string()))?;
        // In a directory with this bit only the owner of an entry can replace it.
        let sticky = found.mode() & 0o1000 != 0;
        let mode = if sticky { 0 } else { found.mode() };
        check(above, found.uid(), mode)?;
    }
    Ok(())
}

/// Opens a directory `name` in a trusted one; `path` is its path for messages. `None` if it does
/// not exist.
///
/// # Errors
/// As [`open_trusted_dir`]. Symbolic links are not followed: the target may be in a directory that
/// another user can write.
pub fn open_trusted_folder(
    parent: impl AsFd,
    name: &str,
    path: &Path,
) -> Result<Option<OwnedFd>, Distrust> {
    open(parent, Path::new(name), path, OFlags::DIRECTORY)
}

/// The text of file `name` in a trusted directory; `path` is its path for messages. `None` if it
/// does not exist.
///
/// # Errors
/// As [`open_trusted_folder`]; a file of more than `most` bytes, or that is not UTF-8.
pub fn read_trusted(
    parent: impl AsFd,
    name: &str,
    path: &Path,
    most: u64,
) -> Result<Option<String>, Distrust> {
    let Some(opened) = open(parent, Path::new(name), path, OFlags::empty())? else {
        return Ok(None);
    };
    let mut text = String::new();
    let read = File::from(opened).take(most + 1).read_to_string(&mut text);
    read.map_err(|e| Distrust::new(path, e.to_string()))?;
    match text.len() as u64 > most {
        true => Err(Distrust::new(
            path,
            format!("it has more than {} KiB", most >> 10),
        )),
        false => Ok(Some(text)),
    }
}

fn open(
    parent: impl AsFd,
    name: &Path,
    path: &Path,
    more: OFlags,
) -> Result<Option<OwnedFd>, Distrust> {
    let opened = match openat(parent, name, SAFE | more, Mode::empty()) {
        Ok(opened) => opened,
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => return Err(Distrust::new(path, LINK)),
        Err(Errno::NOTDIR) => {
            return Err(Distrust::new(
                path,
                "it is not a directory, or a symbolic link to one; put the directory itself in its place",
            ));
        }
        Err(e) => return Err(Distrust::new(path, e.to_string())),
    };
    let stat = fstat(&opened).map_err(|e| Distrust::new(path, e.to_string()))?;
    check(path, stat.st_uid, stat.st_mode)?;
    if more == OFlags::empty() && FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(Distrust::new(path, "it is not a regular file; remove it"));
    }
    Ok(Some(opened))
}

/// Refuses what another user owns or can write.
fn check(path: &Path, owner: u32, mode: u32) -> Result<(), Distrust> {
    let user = geteuid().as_raw();
    let quoted = escape::shell_words([path.as_os_str().as_bytes()]);
    if owner != user && owner != 0 {
        return Err(Distrust::new(
            path,
            format!(
                "it belongs to user {owner}, and fathom runs as user {user}; copy the files to a \
                 directory of user {user}, or run `chown -R {user} {quoted}` if you trust them"
            ),
        ));
    }
    match mode & 0o022 {
        0 => Ok(()),
        _ => Err(Distrust::new(
            path,
            format!("other users can write it; run `chmod go-w {quoted}` if you trust it"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_checked_where_they_are() {
        use std::fs::{self, Permissions};
        use std::os::unix::fs::{PermissionsExt, symlink};
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let mode = |dir: &str, mode| {
            let dir = root.join(dir);
            fs::create_dir_all(&dir).unwrap();
            fs::set_permissions(&dir, Permissions::from_mode(mode)).unwrap();
            dir
        };
        let (own, open) = (mode("own", 0o755), mode("open", 0o777));
        fs::write(own.join("file"), "").unwrap();
        let file = own.join("file");
        assert_eq!(resolve_trusted(&file).unwrap(), file);
        symlink("file", own.join("link")).unwrap();
        symlink("../own/link", own.join("second")).unwrap();
        assert_eq!(resolve_trusted(&own.join("second")).unwrap(), file);
        let dotted = own.join("./../own/second");
        assert_eq!(resolve_trusted(&dotted).unwrap(), file);
        // Any user could make these lead elsewhere, the last one or one on the way.
        symlink(&file, open.join("link")).unwrap();
        symlink(&own, open.join("dir")).unwrap();
        symlink(open.join("link"), own.join("third")).unwrap();
        for path in [open.join("link"), open.join("dir/file"), own.join("third")] {
            let error = resolve_trusted(&path).err().unwrap();
            assert_eq!(error.path, open, "{error}");
            assert!(error.reason.contains("other users can write it"), "{error}");
        }
        // As Kubernetes mounts secrets.
        mode("open", 0o1777);
        assert_eq!(resolve_trusted(&open.join("dir/file")).unwrap(), file);
        symlink("round", own.join("round")).unwrap();
        assert!(resolve_trusted(&own.join("round")).is_err());
        assert!(resolve_trusted(&own.join("missing")).is_err());
    }

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
    }
}
