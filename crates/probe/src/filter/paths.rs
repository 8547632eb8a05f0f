//! The forms of a path that `--path` is given.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use fathom_model::abi::{MAX_NAME, MAX_PATH};

/// The absolute forms of `given`, which need not exist: as given, and with the
/// symbolic links of the part that exists followed. One when both are the same.
pub(super) fn forms(given: &OsStr) -> io::Result<Vec<Vec<u8>>> {
    let absolute = std::path::absolute(Path::new(given))?;
    let mut forms = vec![normal(&absolute)];
    let real = normal(&real(&absolute));
    if !forms.contains(&real) {
        forms.push(real);
    }
    Ok(forms)
}

/// Whether no file can have this path.
pub(super) fn too_long(path: &[u8]) -> bool {
    path.len() >= MAX_PATH as usize
        || path
            .split(|b| *b == b'/')
            .any(|name| name.len() > MAX_NAME as usize)
}

/// Without `.`, `..` and doubled slashes, by the text alone.
fn normal(path: &Path) -> Vec<u8> {
    let mut out = PathBuf::from("/");
    for component in path.components() {
        match component {
            Component::Normal(name) => out.push(name),
            Component::ParentDir => {
                out.pop();
            }
            _ => {}
        }
    }
    out.into_os_string().into_vec()
}

/// Follows the symbolic links of the longest beginning that exists.
fn real(path: &Path) -> PathBuf {
    let mut rest = Vec::new();
    let mut beginning = path;
    loop {
        if let Ok(real) = fs::canonicalize(beginning) {
            return rest.iter().rev().fold(real, |path, name| path.join(name));
        }
        match (beginning.parent(), beginning.components().next_back()) {
            (Some(parent), Some(last)) => {
                rest.push(OsStr::from_bytes(last.as_os_str().as_bytes()));
                beginning = parent;
            }
            _ => return path.to_path_buf(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_followed_as_far_as_they_exist() {
        let dir = std::env::temp_dir().join(format!("fathom-forms-{}", std::process::id()));
        fs::create_dir_all(dir.join("real")).unwrap();
        let dir = fs::canonicalize(dir).unwrap();
        std::os::unix::fs::symlink("real", dir.join("link")).unwrap();
        let text = |path: PathBuf| path.into_os_string().into_vec();
        assert_eq!(
            forms(dir.join("link/not/there").as_os_str()).unwrap(),
            [
                text(dir.join("link/not/there")),
                text(dir.join("real/not/there"))
            ]
        );
        assert_eq!(
            forms(dir.join("real//./x/../y/").as_os_str()).unwrap(),
            [text(dir.join("real/y"))]
        );
        assert_eq!(forms(OsStr::new("/")).unwrap(), [b"/"]);
        let here = std::env::current_dir().unwrap();
        assert_eq!(
            forms(OsStr::new("a")).unwrap()[0],
            text(here.join("a")),
            "relative to the working directory"
        );
        fs::remove_dir_all(dir).unwrap();
    }

    #[test]
    fn paths_that_cannot_be() {
        assert!(!too_long(b"/a"));
        assert!(too_long(&[b"/".as_slice(), &[b'a'; 256]].concat()));
        assert!(too_long(&b"/a".repeat(2048)));
        assert!(!too_long(&b"/a".repeat(2047)));
    }
}
