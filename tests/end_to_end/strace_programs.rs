//! strace's own test programs: each writes what strace must print of its calls, and
//! fathom's text of the same run is compared with that.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use fathom_tests::environment::must_run;
use fathom_tests::tools::{export, project};
use fathom_tests::{Record, Scratch, need_program, need_root, skip};

/// How programs ended, `NAME STATUS` a line. 77 stands for one that cannot run here.
fn statuses(outputs: &Path) -> String {
    fs::read_to_string(outputs.join("status")).unwrap()
}

/// Every call, result and argument; `tests/strace/check.py` lists why some differ.
#[test]
fn every_call_as_strace_must_print_it() {
    need_root!();
    need_program!("bash", "python3", "timeout");
    let built = project().join(".deps/strace");
    if !built.join("ready").exists() {
        let reason = fs::read_to_string(built.join("missing"))
            .unwrap_or_else(|_| "they are not built; ./do test does that".into());
        skip(&format!("strace's test programs: {}", reason.trim()));
        return;
    }
    let programs = built.join("programs").canonicalize().unwrap();
    let tests = project().join("tests/strace");
    let scratch = Scratch::new();
    let (bare, recorded) = (scratch.root().join("bare"), scratch.root().join("recorded"));
    for outputs in [&bare, &recorded] {
        fs::create_dir(outputs).unwrap();
    }
    let run = tests.join("run.sh");
    must_run("bash", [run.as_path(), &programs, &bare]);
    let recording = Record::new(&scratch)
        .options(["--syscalls", "all", "--content", "plain"])
        .command([OsStr::new("bash"), run.as_os_str()])
        .command([programs.as_os_str(), recorded.as_os_str()])
        .run()
        .must_exit(0);
    recording.complete();
    assert_eq!(statuses(&recorded), statuses(&bare));
    let (skipped, ran): (Vec<_>, Vec<_>) = statuses(&bare)
        .lines()
        .map(|line| line.split_once(' ').unwrap())
        .map(|(name, status)| (name.to_owned(), status.to_owned()))
        .partition(|(_, status)| status == "77");
    println!("cannot run here: {skipped:?}");
    assert!(ran.iter().all(|(_, status)| status == "0"), "{ran:?}");
    assert!(ran.len() > 140, "{} programs", ran.len());

    let threads: String = recording
        .rows("SELECT DISTINCT tid, exe FROM processes WHERE exe IS NOT NULL ORDER BY tid")
        .iter()
        .filter_map(|row| {
            let program = Path::new(row.text("exe")?)
                .strip_prefix(&programs)
                .ok()?
                .display()
                .to_string();
            Some(format!("{} {program}\n", row.int("tid")?))
        })
        .collect();
    let (text, _) = export(&recording.session, "strace", &[]);
    let (log, list) = (
        scratch.root().join("export"),
        scratch.root().join("threads"),
    );
    fs::write(&log, text).unwrap();
    fs::write(&list, threads).unwrap();
    let output = Command::new("python3")
        .arg(tests.join("check.py"))
        .arg(&log)
        .arg(project().join("bpf/syscalls.def"))
        .arg(&recorded)
        .stdin(Stdio::from(fs::File::open(&list).unwrap()))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    println!("{said}");
}
