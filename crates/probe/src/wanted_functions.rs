//! Which functions of which libraries to record.

use std::path::{Path, PathBuf};

use fathom_model::library::{FUNCTIONS, Function, classes};
use thiserror::Error;

/// Why a list of functions is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LibraryError {
    /// It is no class, and names no function.
    #[error(
        "--library: {0} is no class of functions: use {list}, or LIBRARY:FUNCTION",
        list = classes().join(", ")
    )]
    Class(String),
    /// The library or the function is missing.
    #[error("--library: {0}: name both the library and the function, as in libfoo.so:foo_read")]
    Half(String),
    /// The file cannot be read.
    #[error("--library: {path} cannot be read: {cause}", path = path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's words.
        cause: String,
    },
    /// The file has no such function.
    #[error("--library: {path} has no function {function}", path = path.display())]
    Missing {
        /// The file.
        path: PathBuf,
        /// Its name.
        function: String,
    },
}

/// A function, and where it may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WantedFunction {
    /// The element of the list that asks for it.
    pub(crate) asked: String,
    pub(crate) function: Function,
    /// The file; `None`: all libraries with the function's name of a library.
    pub(crate) file: Option<PathBuf>,
}

/// Functions of libraries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted(pub(crate) Vec<WantedFunction>);

impl Wanted {
    /// Reads a list of classes (`stdio`), of functions of libraries (`libfoo.so:foo_read`), and of
    /// functions of files (`/opt/foo/bin/foo:foo_read`). `all` stands for all classes.
    ///
    /// # Errors
    /// [`LibraryError`].
    pub fn parse(list: &[String]) -> Result<Self, LibraryError> {
        let mut wanted = Vec::new();
        for text in list.iter().map(|text| text.trim()) {
            match text.rsplit_once(':') {
                Some(("", _) | (_, "")) => return Err(LibraryError::Half(text.to_owned())),
                Some((library, name)) => wanted.push(named(library, name)?),
                None if text == "all" || classes().contains(&text) => {
                    let of_class = |f: &&Function| text == "all" || f.class == text;
                    let functions = FUNCTIONS.iter().filter(of_class).cloned();
                    wanted.extend(functions.map(|function| WantedFunction {
                        asked: function.class.clone(),
                        function,
                        file: None,
                    }));
                }
                None => return Err(LibraryError::Class(text.to_owned())),
            }
        }
        let mut once: Vec<WantedFunction> = Vec::new();
        for function in wanted {
            if !once.contains(&function) {
                once.push(function);
            }
        }
        Ok(Self(once))
    }

    /// Whether nothing is wanted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The functions that a file with this path may have, if it is a library.
    pub(crate) fn of_library(&self, path: &Path) -> impl Iterator<Item = &WantedFunction> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.into_owned();
        self.0.iter().filter(move |wanted| match &wanted.file {
            Some(file) => file == path,
            None => is_library(&name, &wanted.function.library),
        })
    }
}

fn named(library: &str, name: &str) -> Result<WantedFunction, LibraryError> {
    let file = match library.contains('/') {
        true => {
            let path = PathBuf::from(library);
            let unreadable = |cause: std::io::Error| LibraryError::Unreadable {
                path: path.clone(),
                cause: cause.to_string(),
            };
            Some(path.canonicalize().map_err(unreadable)?)
        }
        false => None,
    };
    // Its row in the table says more than its name.
    let known = FUNCTIONS.iter().find(|f| {
        let of_file = |file: &PathBuf| {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            is_library(&name, &f.library)
        };
        f.name == name
            && file
                .as_ref()
                .map_or(is_library(library, &f.library), of_file)
    });
    let function = match known {
        Some(known) => Function {
            library: library.to_owned(),
            ..known.clone()
        },
        None => Function::unknown(library, name),
    };
    Ok(WantedFunction {
        asked: format!("{library}:{name}"),
        function,
        file,
    })
}

/// Whether the file of this name may be the library: `libc` is libc.so.6, libc-2.31.so, and, as musl
/// calls it, ld-musl-x86_64.so.1; `libhdf5` is libhdf5_serial.so.103; `libfoo.so` is libfoo.so.1.
fn is_library(file: &str, library: &str) -> bool {
    let behind = file.strip_prefix(library);
    let ends = |rest: &str| rest.is_empty() || rest.starts_with(['.', '-', '_']);
    let digit = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
    behind.is_some_and(|rest| ends(rest) || digit(rest))
        || library == "libc" && file.starts_with("ld-musl-")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(of: &[&str]) -> Vec<String> {
        of.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn names_of_files() {
        for (file, library) in [
            ("libc.so.6", "libc"),
            ("libc-2.31.so", "libc"),
            ("ld-musl-x86_64.so.1", "libc"),
            ("libfoo.so.1", "libfoo.so"),
            ("libsqlite3-f2a.so.0", "libsqlite3"),
            ("libhdf5_serial.so.103", "libhdf5"),
        ] {
            assert!(is_library(file, library), "{file}");
        }
        for (file, library) in [
            ("libcap.so.2", "libc"),
            ("libmpich.so.12", "libmpi"),
            ("libfoo.sox", "libfoo.so"),
        ] {
            assert!(!is_library(file, library), "{file}");
        }
    }

    #[test]
    fn classes_and_functions() {
        let wanted = Wanted::parse(&list(&["sqlite", "libfoo.so:bar", "libc:fread"])).unwrap();
        let of = |path: &str| {
            let functions = wanted.of_library(Path::new(path));
            functions
                .map(|w| (w.function.name.clone(), w.function.class.clone()))
                .collect::<Vec<_>>()
        };
        assert!(of("/usr/lib/libsqlite3.so.0").len() > 5);
        assert_eq!(of("/a/libfoo.so.3"), [("bar".into(), "other".into())]);
        assert_eq!(of("/lib/libc.so.6"), [("fread".into(), "stdio".into())]);
        assert_eq!(of("/usr/bin/foo"), []);
        let twice = Wanted::parse(&list(&["sqlite", "sqlite"])).unwrap();
        assert_eq!(twice, Wanted::parse(&list(&["sqlite"])).unwrap());
        assert_eq!(
            Wanted::parse(&list(&["all"])).unwrap().0.len(),
            FUNCTIONS.len()
        );
    }

    #[test]
    fn what_is_refused() {
        let refused = |text: &str| Wanted::parse(&list(&[text])).unwrap_err().to_string();
        assert!(refused("stdoi").contains("use stdio, pthread, mpi-io"));
        assert!(refused(":x").contains("name both"));
        assert!(refused("libfoo.so:").contains("name both"));
        assert!(refused("/no/such/file:f").contains("cannot be read"));
    }
}
