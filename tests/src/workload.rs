//! The programs in `workloads/`, compiled when a test first needs them.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};

use crate::environment::{build_dir, must_run};

/// Path of the compiled program `workloads/NAME.c`. It is kept in the build's
/// output directory under the hash of its source. For another machine, where nothing can be
/// compiled, all of them lie in the directory that `FATHOM_WORKLOADS` names.
pub fn workload(name: &str) -> PathBuf {
    std::env::var_os("FATHOM_WORKLOADS").map_or_else(
        || compiled("cc", name, &[]),
        |directory| Path::new(&directory).join(name),
    )
}

/// The same as a 32-bit program; `None` where the compiler can't make one.
pub fn workload_32_bit(name: &str) -> Option<PathBuf> {
    let usable = Path::new("/usr/lib32/crt1.o").exists();
    usable.then(|| compiled("cc", name, &["-m32"]))
}

/// Path of the compiled program `workloads/with_mpi/NAME.c`.
pub fn workload_with_mpi(name: &str) -> PathBuf {
    compiled("mpicc", &format!("with_mpi/{name}"), &[])
}

/// Path of the compiled library `workloads/with_library/NAME.c`.
pub fn workload_library(name: &str) -> PathBuf {
    compiled("cc", &format!("with_library/{name}"), &["-shared", "-fPIC"])
}

/// Path of the program `workloads/with_library/NAME.c`, which is C++ and calls the library.
pub fn workload_with_library(name: &str, library: &Path) -> PathBuf {
    // Also by linkers that leave out what nothing has needed yet.
    let library = format!("-Wl,--no-as-needed,{}", library.display());
    compiled(
        "c++",
        &format!("with_library/{name}"),
        &["-x", "c++", &library],
    )
}

/// Path of the compiled program or library `workloads/contexts/NAME.c`, whose variable code reaches in
/// the way that `compiler` and `flags` say.
pub fn workload_with_context(compiler: &str, name: &str, flags: &[&str]) -> PathBuf {
    compiled(compiler, &format!("contexts/{name}"), flags)
}

fn compiled(compiler: &str, name: &str, more: &[&str]) -> PathBuf {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("workloads");
    let source = sources.join(format!("{name}.c"));
    let mut hasher = DefaultHasher::new();
    (compiler, more).hash(&mut hasher);
    for file in [&source, &sources.join("truth.h"), &sources.join("uring.h")] {
        fs::read(file)
            .unwrap_or_else(|e| panic!("{}: {e}", file.display()))
            .hash(&mut hasher);
    }
    let dir = build_dir().join("workloads");
    let file_name = name.replace('/', "-");
    let program = dir.join(format!("{file_name}-{:016x}", hasher.finish()));
    if !program.exists() {
        fs::create_dir_all(&dir).expect("directory of workloads");
        // Another test may compile the same one: whoever renames last wins, and
        // both files are equal.
        let unique = tempfile::Builder::new()
            .prefix(&file_name)
            .tempfile_in(&dir)
            .expect("file");
        let output = unique.into_temp_path();
        let flags = [
            "-O1",
            "-Wall",
            "-Wextra",
            "-Wno-override-init",
            "-Werror",
            "-pthread",
            "-o",
        ];
        let mut args: Vec<_> = more.iter().chain(&flags).map(|f| f.into()).collect();
        args.push(output.as_os_str().to_owned());
        args.push(source.into_os_string());
        must_run(compiler, args);
        output.persist(&program).expect("compiled workload");
    }
    program
}
