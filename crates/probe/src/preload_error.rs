//! Why library calls are not recorded by preload.

use std::path::PathBuf;

use crate::wanted_functions::LibraryError;

/// Why functions cannot be recorded by preload.
#[derive(Debug, thiserror::Error)]
pub enum PreloadError {
    /// The object cannot stand for them.
    #[error(transparent)]
    Object(#[from] fathom_preload::PreloadError),
    /// A file that was named.
    #[error(transparent)]
    Library(#[from] LibraryError),
    /// The dynamic linker does not find the function in the file.
    #[error(
        "--library-by preload: {path} is no library that exports {function}: use --library-by uprobe",
        path = path.display()
    )]
    NotExported { path: PathBuf, function: String },
    /// No directory is suitable.
    #[error(
        "--library-by preload needs a directory {what}, and none of {list} is one: use --library-by \
         uprobe"
    )]
    NoDirectory { what: &'static str, list: String },
    /// Something in a directory failed.
    #[error("--library-by preload: {path}: {source}", path = path.display())]
    Directory {
        path: PathBuf,
        source: std::io::Error,
    },
}
