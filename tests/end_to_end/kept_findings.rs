//! Findings of a large session: every call is looked at once, whoever asks.

use std::fs;
use std::process::{Command, Output};

use fathom_tests::environment::{fathom, must_run};
use fathom_tests::{Record, Scratch, need_program, need_root};
use serde_json::Value;

fn run(args: &[&str]) -> Output {
    Command::new(fathom()).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The same session where nothing can be written.
const READ_ONLY: &str = r#"
    set -e
    mount --bind "$1" "$1"
    mount -o remount,ro,bind "$1"
    ! touch "$1/touched" 2> /dev/null
    "$2" diagnose "$1" --format json
"#;

#[test]
#[ignore = "long"]
fn every_call_of_a_large_session_is_looked_at_once() {
    need_root!();
    need_program!("dd", "unshare", "mount", "cp");
    let scratch = Scratch::new();
    let out = scratch.work().join("out");
    let of = format!("of={}", out.display());
    let calls = 600_000;
    let recording = Record::new(&scratch)
        .options(["--layers", "syscall"])
        .command([
            "dd",
            "if=/dev/zero",
            &of,
            "bs=16",
            &format!("count={calls}"),
        ])
        .run()
        .must_exit(0);
    recording.complete();
    let session = recording.session.to_str().unwrap();
    let file = recording.session.join("findings.json");
    assert!(!file.exists());

    // A report does not look at so many calls, but has what was found.
    let before = text(&run(&["report", session]).stdout);
    assert!(before.contains("not diagnosed, as 1,200,"), "{before}");
    let first = run(&["diagnose", session, "--format", "json"]);
    assert_eq!(text(&first.stderr), "");
    let found: Value = serde_json::from_slice(&first.stdout).unwrap();
    let rules: Vec<&str> = found["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|f| f["rule"].as_str())
        .collect();
    assert!(rules.contains(&"small-sequential"), "{rules:?}");
    assert!(found["calls"].as_u64().unwrap() > 2 * calls);
    let kept = fs::read(&file).unwrap();
    let written: Value = serde_json::from_slice(&kept).unwrap();
    assert_eq!(written["findings"], found["findings"]);

    let after = text(&run(&["report", session]).stdout);
    assert!(
        after.contains("small-sequential") && !after.contains("looks at them"),
        "{after}"
    );
    let sql = "SELECT rule FROM findings";
    let table = text(&run(&["query", session, sql, "--format", "csv"]).stdout);
    assert_eq!(table.lines().skip(1).collect::<Vec<_>>(), rules);

    // Nothing is read but the file: the rows may lie elsewhere meanwhile.
    let again = run(&["diagnose", session, "--format", "json"]);
    assert_eq!((again.status, &again.stdout), (first.status, &first.stdout));
    assert_eq!(fs::read(&file).unwrap(), kept);

    // Copies, with their times and without.
    let copy = scratch.root().join("copy.fathom");
    for (option, holds) in [("-a", true), ("-r", false)] {
        must_run(
            "cp",
            [
                option.as_ref(),
                recording.session.as_os_str(),
                copy.as_os_str(),
            ],
        );
        let output = run(&["diagnose", copy.to_str().unwrap(), "--format", "json"]);
        assert_eq!(
            (text(&output.stderr).as_str(), &output.stdout),
            ("", &first.stdout)
        );
        assert_eq!(fs::read(copy.join("findings.json")).unwrap() == kept, holds);
        fs::remove_dir_all(&copy).unwrap();
    }

    // Where nothing can be written nothing is kept, and nothing is missing.
    fs::remove_file(&file).unwrap();
    let output = Command::new("unshare")
        .args(["-m", "sh", "-c", READ_ONLY, "sh", session])
        .arg(fathom())
        .output()
        .unwrap();
    assert_eq!(
        (text(&output.stderr).as_str(), &output.stdout),
        ("", &first.stdout)
    );
    assert!(!file.exists());

    // What somebody else has put there is not believed, and said to be wrong.
    fs::write(&file, b"\x1b[2J{}").unwrap();
    let report = text(&run(&["report", session]).stdout);
    // It may be broken at any space.
    let words: Vec<&str> = report.split_whitespace().collect();
    assert!(
        words
            .join(" ")
            .contains("findings.json in the session is damaged"),
        "{report}"
    );
    let output = run(&["diagnose", session, "--format", "json"]);
    let said = text(&output.stderr);
    assert!(
        said.starts_with("fathom: findings.json in the session is damaged")
            && !said.contains('\u{1b}'),
        "{said}"
    );
    assert_eq!(output.stdout, first.stdout);
    assert_eq!(fs::read(&file).unwrap(), kept);

    // A session whose rows are damaged has no findings any more.
    let part = fs::read_dir(recording.session.join("syscalls"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let mut bytes = fs::read(&part).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 4096].fill(0x55);
    fs::write(&part, bytes).unwrap();
    let output = run(&["diagnose", session, "--format", "json"]);
    assert_ne!(output.stdout, first.stdout);
    assert!(output.status.code() == Some(2), "{}", text(&output.stderr));
}
