//! The Python package records and reads sessions.

use std::process::Command;

use fathom_tests::environment::fathom;
use fathom_tests::{Scratch, need_python, need_root, tools};

/// On a lake and tables in memory. `tests/lake/iceberg.py` has real ones.
#[test]
fn rounds_of_the_committer_are_whole_after_kills() {
    let python = need_python!();
    let project = tools::project();
    let output = Command::new(python)
        .arg("-Werror")
        .arg(project.join("tests/python/iceberg_check.py"))
        .env("PYTHONPATH", project.join("python"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env_remove("LD_LIBRARY_PATH")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}{errors}");
    assert!(text.contains("whole after 32 kills"), "{text}");
}

#[test]
fn the_package_reads_what_fathom_answers() {
    need_root!();
    let python = need_python!();
    let scratch = Scratch::new();
    let project = tools::project();
    let output = Command::new(python)
        .arg(project.join("tests/python/package_check.py"))
        .arg(scratch.root())
        .arg(fathom())
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
    for line in text.lines().filter(|line| line.starts_with("skipped: ")) {
        println!("{line}");
    }
    assert!(text.contains("as fathom query has them"), "{text}");
    assert!(text.contains("cells of the notebook run"), "{text}");
}
