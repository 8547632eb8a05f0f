//! The Python package records and reads sessions, and adds shipped ones to Iceberg tables.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use fathom_tests::environment::fathom;
use fathom_tests::{Scratch, need_python, need_root, tools};

/// Runs a check of `tests/python`, which must pass; its output.
fn checked(python: &Path, script: &str, arguments: &[&OsStr]) -> String {
    let project = tools::project();
    let output = Command::new(python)
        .arg(project.join("tests/python").join(script))
        .args(arguments)
        .env("PYTHONPATH", project.join("python"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("FATHOM", fathom())
        // Cargo's would have every recorded program look in it for its libraries.
        .env_remove("LD_LIBRARY_PATH")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors}");
    text
}

#[test]
fn the_package_reads_what_fathom_answers() {
    need_root!();
    let python = need_python!();
    let scratch = Scratch::new();
    let program = fathom();
    let arguments = [scratch.root().as_os_str(), program.as_os_str()];
    let text = checked(&python, "package_check.py", &arguments);
    for line in text.lines().filter(|line| line.starts_with("skipped: ")) {
        println!("{line}");
    }
    assert!(text.contains("as fathom query has them"), "{text}");
    assert!(text.contains("cells of the notebook run"), "{text}");
}

/// On a lake and tables in memory. `tests/lake/iceberg.py` has real ones.
#[test]
fn rounds_of_the_committer_are_whole_after_kills() {
    let python = need_python!();
    let text = checked(&python, "iceberg_check.py", &[]);
    assert!(text.contains("whole after 66 kills"), "{text}");
}
