//! The program without DuckDB that `./do dist` ships beside the full one.

use std::path::Path;
use std::process::{Command, Stdio};

use fathom_tests::environment::{build_dir, fathom, must_run};
use fathom_tests::session::query;
use fathom_tests::{Scratch, need_root, skip, tools};

/// The library that only the full program looks for.
const LIBRARY: &[u8] = b"libduckdb.so";

/// It records, and the full program reads what it has recorded.
#[test]
fn what_it_records_the_other_reads() {
    let program = build_dir().join("../record-only/fathom");
    if !program.exists() {
        skip("the program that only records is not built; ./do test builds it");
        return;
    }
    let run = |args: &[&str]| {
        let mut command = Command::new(&program);
        command.args(args).stdin(Stdio::null()).output().unwrap()
    };
    let help = run(&["--help"]);
    assert!(help.status.success());
    let help = String::from_utf8(help.stdout).unwrap();
    let commands: Vec<&str> = help
        .lines()
        .filter_map(|l| l.trim().split("  ").next())
        .collect();
    assert!(
        commands.contains(&"record") && commands.contains(&"import"),
        "{help}"
    );
    assert!(
        !commands.contains(&"query") && !commands.contains(&"export"),
        "{help}"
    );
    // Nothing that it is linked with needs DuckDB, nor does it load it later, as the full program does.
    let loads = |program: &Path| {
        let bytes = std::fs::read(program).unwrap();
        bytes.windows(LIBRARY.len()).any(|part| part == LIBRARY)
    };
    assert!(loads(&fathom()) && !loads(&program));
    let libraries = must_run("ldd", [&program]);
    let libraries = String::from_utf8(libraries).unwrap();
    assert!(
        libraries.contains("libelf") && !libraries.contains("duckdb"),
        "{libraries}"
    );

    need_root!();
    let scratch = Scratch::new();
    let session = scratch.session("session");
    let path = session.to_str().unwrap();
    let output = run(&["record", "-q", "-o", path, "--", "cat", "/etc/hostname"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let rows = query(
        &session,
        "SELECT count(*) AS n FROM syscalls WHERE path = '/etc/hostname' AND syscall = 'read'",
    );
    assert!(rows[0].int("n").unwrap() > 0);
    let report = tools::run(["report", path]);
    assert!(report.status.success());
}
