//! Filters of files: by path and by type.

use std::collections::BTreeSet;
use std::process::Command;

use fathom_tests::session::{meta, query};
use fathom_tests::{Scratch, need_root, workload};

use super::{logged, record, rows, with_tags};

#[test]
fn paths_in_every_way_to_reach_them() {
    need_root!();
    let scratch = Scratch::new();
    let work = scratch.work().display().to_string();
    std::os::unix::fs::symlink(&work, scratch.root().join("alias")).unwrap();
    let alias = scratch.root().join("alias/in").display().to_string();
    let inside = format!("--path={work}/in");
    let not_inside = format!("--path=!{work}/in");
    let all = format!("--path={work}");
    let cases: [(&[&str], &[&str]); 9] = [
        (&[&inside], &["in", "both"]),
        (&[&format!("--path={work}/./out//../in/")], &["in", "both"]),
        (&[&format!("--path={alias}")], &["in", "both"]),
        (&[&all, &not_inside], &["out", "both"]),
        (&[&all], &["in", "out", "both"]),
        (&[&all, &inside], &["in", "out", "both"]),
        (&["--path=/nonexistent"], &[]),
        (
            &["--path=/nonexistent", &inside, "--detail=fds"],
            &["in", "both"],
        ),
        // Every path of a call has to be left out for it to go.
        (
            &[
                "--path=!/usr",
                "--path=!/etc",
                "--path=!/dev",
                "--path=!/proc",
                "--path=!/lib",
                "--path=!/lib64",
                &format!("--path=!{}", scratch.root().display()),
            ],
            &["none"],
        ),
    ];
    for (number, (options, tags)) in cases.iter().enumerate() {
        let recording = record(&scratch, &format!("paths-{number}"), &["paths"], options);
        let log = logged(&recording.text());
        assert!(log.len() > 80, "{} calls", log.len());
        let mut found = rows(&recording);
        if *tags == ["none"] {
            // What libc did without a path before and after.
            found.retain(|call| with_tags(&log, tags).contains(call));
            found.dedup();
        }
        assert_eq!(found, with_tags(&log, tags), "{options:?}");
        let options = &meta(&recording.session)["options"]["filters"];
        assert!(
            options.as_array().is_some_and(|o| !o.is_empty()),
            "{options}"
        );
    }
}

#[test]
fn relative_paths_start_from_the_working_directory() {
    need_root!();
    if crate::kernel::skips_for_oldest_programs() {
        return;
    }
    let scratch = Scratch::new();
    let work = scratch.work();
    let output = Command::new(fathom_tests::environment::fathom())
        .args(["record", "-o"])
        .arg(scratch.session("relative"))
        .args(["--path", "../work/in", "--"])
        .arg(workload("filters"))
        .arg("paths")
        .arg(&work)
        .current_dir(&work)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let log = logged(std::str::from_utf8(&output.stdout).unwrap());
    let found = query(
        &scratch.session("relative"),
        "SELECT count(*) AS n FROM syscalls",
    );
    let expected = with_tags(&log, &["in", "both"]).len() as i64;
    assert_eq!(found[0].int("n"), Some(expected));
}

#[test]
fn hundreds_of_paths() {
    need_root!();
    let scratch = Scratch::new();
    let work = scratch.work();
    let options: Vec<String> = (0..600)
        .map(|i| format!("--path={}/many/{}", work.display(), 2 * i))
        .collect();
    let recording = record(&scratch, "many", &["many", "1200"], &options);
    let log = logged(&recording.text());
    assert_eq!(rows(&recording), with_tags(&log, &["even"]));
    let paths = recording.rows("SELECT path FROM syscalls ORDER BY ts_ns");
    for (i, row) in paths.iter().enumerate() {
        let expected = work.join(format!("many/{}/x", 2 * i));
        assert_eq!(row.text("path"), expected.to_str());
    }
}

#[test]
fn types_of_files() {
    need_root!();
    let scratch = Scratch::new();
    let work = scratch.work().display().to_string();
    for kind in ["fifo", "socket", "symlink", "anonymous", "char"] {
        let option = format!("--file-type={kind}");
        let recording = record(&scratch, kind, &["types"], &[option.as_str()]);
        let log = logged(&recording.text());
        let mut found = rows(&recording);
        if kind == "char" {
            found = recording
                .rows(
                    "SELECT syscall || ' ' || ret AS call FROM syscalls
                     WHERE path = '/dev/zero' ORDER BY ts_ns, rid",
                )
                .iter()
                .map(|row| row.text("call").unwrap().to_owned())
                .collect();
        }
        assert_eq!(found, with_tags(&log, &[kind]), "{kind}");
        assert_eq!(
            recording.number(&format!(
                "SELECT count(*) FROM syscalls LEFT JOIN files USING (file_id)
                 WHERE file_type IS NOT NULL AND file_type NOT IN ('{kind}', 'unknown')"
            )),
            0,
            "{kind}"
        );
    }
    let inside = format!("--path={work}");
    for (options, tags) in [
        (["--file-type=regular", &inside], &["regular"][..]),
        (
            ["--file-type=directory,symlink", &inside],
            &["directory", "symlink"],
        ),
    ] {
        let recording = record(&scratch, tags[0], &["types"], &options);
        let log = logged(&recording.text());
        // The workload makes its files before it logs: those calls have no file.
        assert_eq!(rows(&recording), with_tags(&log, tags), "{options:?}");
    }
    let options = ["--file-type=!regular", "--syscalls=all"];
    let recording = record(&scratch, "not-regular", &["types"], &options);
    let types: BTreeSet<String> = recording
        .rows(
            "SELECT DISTINCT file_type FROM syscalls JOIN files USING (file_id)
             WHERE fd IS NOT NULL",
        )
        .iter()
        .map(|row| row.text("file_type").unwrap().to_owned())
        .collect();
    for kind in ["fifo", "socket", "anonymous", "char", "directory"] {
        assert!(types.contains(kind), "{kind}: {types:?}");
    }
    assert!(!types.contains("regular"), "{types:?}");
}
