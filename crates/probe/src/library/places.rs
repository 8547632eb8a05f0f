//! The directories of the system's libraries.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The directories that the dynamic linker searches by itself (ld.so(8)). Distributions keep the
/// libraries of a processor's kind in directories below them.
const USUAL: [&str; 5] = ["/lib", "/usr/lib", "/lib64", "/usr/lib64", "/usr/local/lib"];
const CONFIGURATION: &str = "/etc/ld.so.conf";
const FURTHER: &str = "/etc/ld.so.conf.d";

/// The libraries in these directories and in the directories of `LD_LIBRARY_PATH`, which come first.
/// A directory that has several names is read once.
pub(super) fn libraries() -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut seen = HashSet::new();
    for directory in directories() {
        let Ok(directory) = directory.canonicalize() else {
            continue;
        };
        if !seen.insert(directory.clone()) {
            continue;
        }
        let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path());
        // Behind links, as the mappings of processes name them.
        let shared = paths.filter(|path| is_shared(path));
        files.extend(shared.filter_map(|path| path.canonicalize().ok()));
    }
    files
}

fn directories() -> Vec<PathBuf> {
    let mut directories: Vec<PathBuf> = std::env::var_os("LD_LIBRARY_PATH")
        .map(|list| std::env::split_paths(&list).collect())
        .unwrap_or_default();
    for usual in USUAL {
        let triplet = format!("{}-linux-gnu", std::env::consts::ARCH);
        directories.extend([Path::new(usual).join(triplet), usual.into()]);
    }
    let mut texts = vec![fs::read_to_string(CONFIGURATION).unwrap_or_default()];
    let entries = fs::read_dir(FURTHER).into_iter().flatten().flatten();
    texts.extend(entries.filter_map(|entry| fs::read_to_string(entry.path()).ok()));
    let lines = texts.iter().flat_map(|text| text.lines());
    let configured = lines.map(str::trim).filter(|line| line.starts_with('/'));
    directories.extend(configured.map(PathBuf::from));
    directories
}

/// Whether a file is called as shared libraries are: libc.so.6, ld-musl-x86_64.so.1.
fn is_shared(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with(".so") || name.contains(".so.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_c_library_is_among_them() {
        let files = libraries();
        let is_libc = |path: &&PathBuf| {
            let name = path.file_name().unwrap().to_string_lossy();
            name == "libc.so.6" || name.starts_with("ld-musl-")
        };
        assert!(files.iter().any(|path| is_libc(&path)), "{files:?}");
    }
}
