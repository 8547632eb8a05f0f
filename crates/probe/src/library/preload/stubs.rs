//! The functions that the object stands for.

use std::collections::HashMap;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use fathom_preload::Stub;
use object::read::ReadCache;
use object::{Object as _, ObjectSymbol, SymbolKind};

use crate::library::desc;
use crate::preload_error::PreloadError;
use crate::wanted_functions::{LibraryError, Wanted};

/// One for each name: a library that has it is recorded if the list asks for it there.
pub(super) fn stubs(wanted: &Wanted) -> Result<Vec<Stub>, PreloadError> {
    // In the order of the list: of several names of one function the first counts.
    let mut stubs: Vec<Stub> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for function in &wanted.0 {
        let name = function.function.name.as_str();
        let library = match &function.file {
            Some(path) => {
                check_file(path, name)?;
                path.file_name()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned()
            }
            None => function.function.library.clone(),
        };
        let desc = desc(&function.function, Path::new(""));
        let place = *places.entry(name).or_insert(stubs.len());
        if place == stubs.len() {
            stubs.push(Stub {
                name: name.to_owned(),
                libraries: Vec::new(),
                stream: desc.stream,
                fd: desc.fd,
                path: desc.path,
                in_registers: true,
            });
        }
        let Some(stub) = stubs.get_mut(place) else {
            continue;
        };
        // A function of another library with this name may take more.
        stub.in_registers &= function.function.in_registers;
        if !stub.libraries.contains(&library) {
            stub.libraries.push(library);
        }
    }
    Ok(stubs)
}

/// Whether the dynamic linker finds the function in the file.
fn check_file(path: &Path, function: &str) -> Result<(), PreloadError> {
    let unreadable = |cause: std::io::Error| LibraryError::Unreadable {
        path: path.to_owned(),
        cause: cause.to_string(),
    };
    let file = File::open(path).map_err(unreadable)?;
    // The file may be anything: a panic in its reader must not be ours.
    let found = catch_unwind(AssertUnwindSafe(|| look(&file, function)));
    match found.ok().flatten() {
        Some(true) => Ok(()),
        _ => Err(PreloadError::NotExported {
            path: path.to_owned(),
            function: function.to_owned(),
        }),
    }
}

/// `None`: it is no library.
fn look(file: &File, function: &str) -> Option<bool> {
    let cache = ReadCache::new(file);
    let object = object::File::parse(&cache).ok().filter(|o| o.is_64())?;
    // A program names its dynamic linker; no other program links with it.
    if object.section_by_name(".interp").is_some() {
        return None;
    }
    let is_it = |symbol: object::Symbol<'_, '_, _>| {
        symbol.is_definition()
            && symbol.kind() == SymbolKind::Text
            && symbol
                .name()
                .is_ok_and(|name| name.split('@').next() == Some(function))
    };
    Some(object.dynamic_symbols().any(is_it))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(list: &[&str]) -> Wanted {
        let list: Vec<String> = list.iter().map(|text| (*text).to_owned()).collect();
        Wanted::parse(&list).unwrap()
    }

    #[test]
    fn a_name_has_one_stub() {
        let stubs = stubs(&wanted(&["pthread", "libfoo.so:fread", "stdio"])).unwrap();
        let of = |name: &str| stubs.iter().find(|stub| stub.name == name).unwrap();
        assert_eq!(of("pthread_join").libraries, ["libc", "libpthread"]);
        assert_eq!(of("fread").libraries, ["libfoo.so", "libc"]);
        // The arguments of libfoo's fread are not known.
        assert!(!of("fread").in_registers);
        assert!(of("fwrite").in_registers && !of("fprintf").in_registers);
        assert_eq!((of("fwrite").stream, of("fopen").path), (3, 0));
    }

    #[test]
    fn functions_of_programs_are_refused() {
        let error = check_file(Path::new("/proc/self/exe"), "main")
            .unwrap_err()
            .to_string();
        assert!(error.contains("--library-by uprobe"), "{error}");
    }
}
