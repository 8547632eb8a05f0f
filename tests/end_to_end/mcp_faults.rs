//! Programs with a known fault, whose sessions a client of `fathom mcp` gets without knowing it:
//! six calls of tools must be enough to find the fault and the calls that show it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use fathom_tests::environment::RULES_OF_THE_MACHINE;
use fathom_tests::models::Client;
use fathom_tests::tools::project;
use fathom_tests::{Record, Scratch, need_program, need_root};
use serde_json::{Value, json};

/// Programs of `tests/corpus` whose fault depends neither on the device nor on the time that calls
/// take. The name begins with the rule.
const FAULTS: [&str; 20] = [
    "content-mismatch/bad",
    "duplicate-open/bad",
    "lost-update/bad",
    "lseek-before-io/bad",
    "missing-dir-fsync/bad",
    "non-atomic-rewrite/bad",
    "publish-unsynced/bad",
    "range-sync-as-commit/bad",
    "reading-replaced-file/bad",
    "redundant-read/bad",
    "redundant-stat/bad-poll",
    "rename-without-fsync/bad",
    "rotation-offset/bad",
    "short-io/bad",
    "small-sequential/bad",
    "temp-leak/bad",
    "write-error-ignored/bad",
    "write-error-ignored/bad-published",
    "write-past-truncation/bad",
    "write-to-deleted/bad",
];

/// A program that runs beside the recorded one.
struct Helper(Child);

impl Drop for Helper {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// A step of a program of the corpus.
fn step(name: &str, step: &str) -> Vec<String> {
    let corpus = project().join("tests/corpus").canonicalize().unwrap();
    let corpus = corpus.to_str().unwrap();
    let words = ["python3", "-S", "-E", "-B", corpus, name, step];
    words.map(str::to_owned).to_vec()
}

fn start(words: &[String], at: &Path) -> Child {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).current_dir(at);
    command.stdin(Stdio::null()).spawn().unwrap()
}

/// Records a program in an empty directory, into session `number`.
fn record(scratch: &Scratch, number: usize, name: &str) {
    let at = scratch.work().join(number.to_string());
    fs::create_dir(&at).unwrap();
    assert!(start(&step(name, "setup"), &at).wait().unwrap().success());
    let _helper = Helper(start(&step(name, "helper"), &at));
    let inner = ["sh", "-c", "cd \"$0\" && exec \"$@\""].map(str::to_owned);
    let command = inner.into_iter().chain([at.to_str().unwrap().to_owned()]);
    Record::named(scratch, &format!("session-{number}"))
        .options(["--content", "hash"])
        .command(command.chain(step(name, "run")))
        .run()
        .must_exit(0);
}

/// The rules of a finding, and of others about the same calls.
fn rules(finding: &Value) -> Vec<String> {
    let also = finding["also"].as_array().unwrap();
    let all = std::iter::once(finding).chain(also);
    all.map(|rule| rule["rule"].as_str().unwrap().to_owned())
        .collect()
}

/// What a client finds in a session: the rules of the two worst findings, or of the worst minor one
/// if there are none, each of which it has followed to its calls.
fn found(root: &Path, session: &str) -> Vec<String> {
    let mut client = Client::ready(root);
    let listed = client.must("list_sessions", json!({}));
    let listed = listed["sessions"].as_array().unwrap().clone();
    assert!(listed.iter().any(|s| s["name"] == session), "{listed:?}");
    let mut diagnosis = client.must("diagnose", json!({"session": session}));
    let mut list = "findings";
    if diagnosis[list].as_array().unwrap().is_empty() {
        list = "minor";
        diagnosis = client.must("diagnose", json!({"session": session, "minor": true}));
    }
    let findings = diagnosis[list].as_array().unwrap();
    let mut told = Vec::new();
    let of_program = findings
        .iter()
        .filter(|f| RULES_OF_THE_MACHINE.iter().all(|rule| f["rule"] != *rule));
    let most = if list == "minor" { 1 } else { 2 };
    for finding in of_program.take(most) {
        assert!(
            !finding["evidence"].as_object().unwrap().is_empty(),
            "{finding}"
        );
        assert!(finding["advice"].as_str().unwrap().len() > 20, "{finding}");
        let number = &finding["finding"];
        let whole = client.must("diagnose", json!({"session": session, "finding": number}));
        let whole = &whole["finding"];
        assert_eq!(whole["title"], finding["title"]);
        let query = json!({"session": session, "sql": whole["query"], "max_rows": 20});
        let calls = client.must("query", query);
        assert!(!calls["rows"].as_array().unwrap().is_empty(), "{whole}");
        told.extend(rules(finding));
    }
    assert!(client.calls <= 6, "{session}: {} calls", client.calls);
    client.close();
    told
}

#[test]
#[ignore = "long"]
fn planted_faults_are_found_in_six_calls() {
    need_root!();
    need_program!("python3");
    let scratch = Scratch::new();
    let root: PathBuf = scratch.root().into();
    for (number, name) in FAULTS.iter().enumerate() {
        record(&scratch, number, name);
    }
    let mut missed = Vec::new();
    for (number, name) in FAULTS.iter().enumerate() {
        let rule = name.split('/').next().unwrap();
        let told = found(&root, &format!("session-{number}.fathom"));
        if !told.iter().any(|told| told == rule) {
            missed.push(format!("{name}: {told:?}"));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}
