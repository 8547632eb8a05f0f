//! Running fathom's other commands, and Python with the packages of
//! `tests/python`.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::environment::fathom;

/// Runs fathom to its end.
pub fn run<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Output {
    Command::new(fathom())
        .args(args)
        .stdin(Stdio::null())
        .output()
        .expect("fathom")
}

/// What `fathom export SESSION --format FORMAT` with further options writes, and
/// what it says.
pub fn export(session: &Path, format: &str, options: &[&str]) -> (Vec<u8>, String) {
    let mut args: Vec<&OsStr> = vec!["export".as_ref(), session.as_os_str()];
    args.extend(["--format", format].map(OsStr::new));
    args.extend(options.iter().map(OsStr::new));
    let output = run(args);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.success(),
        "export --format {format}: {errors}"
    );
    (output.stdout, errors)
}

/// Imports logs into `session`; returns what it says.
pub fn import(files: &[&Path], session: &Path) -> String {
    let mut args: Vec<&OsStr> = vec!["import".as_ref(), "-o".as_ref(), session.as_os_str()];
    args.extend(files.iter().map(|f| f.as_os_str()));
    let output = run(args);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "import: {errors}");
    errors
}

/// The root of the project.
pub fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The Python that has the packages; `None` where they are not installed.
pub fn python() -> Option<PathBuf> {
    let dir = project().join(".deps/python");
    let python = dir.join("bin/python3");
    (dir.join("ready").exists() && python.exists()).then_some(python)
}

/// Returns from a test that needs Python's packages when they are not there.
#[macro_export]
macro_rules! need_python {
    () => {
        match $crate::tools::python() {
            Some(python) => python,
            None => {
                $crate::skip("the Python packages of tests/python are not installed");
                return;
            }
        }
    };
}
