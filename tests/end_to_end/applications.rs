//! Rules about calls of libraries, on programs of the distribution that fathom did not write.

use std::fs;
use std::process::{Command, Stdio};

use fathom_tests::environment::fathom;
use fathom_tests::{Record, Recording, Scratch, need_program, need_root};
use serde_json::Value;

fn diagnosis(recording: &Recording) -> Value {
    let output = Command::new(fathom())
        .arg("diagnose")
        .arg(&recording.session)
        .args(["--format", "json"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Findings of a rule, minor ones too: how much they cost depends on the machine.
fn of_rule(diagnosis: &Value, rule: &str) -> Vec<Value> {
    let lists = ["findings", "minor"].into_iter();
    let all = lists.flat_map(|list| diagnosis[list].as_array().unwrap());
    all.filter(|finding| finding["rule"] == rule)
        .cloned()
        .collect()
}

fn value(finding: &Value, name: &str) -> Option<f64> {
    let evidence = finding["evidence"].as_array().unwrap();
    let own = evidence.iter().find(|own| own["name"] == name)?;
    own["value"].as_f64()
}

/// Runs `sed p` over 5,000 lines of 20 bytes: it writes each twice, and each newline by itself.
fn sed(scratch: &Scratch, before: &str) -> Recording {
    let lines: String = (0..5000).map(|i| format!("{i:019}\n")).collect();
    fs::write(scratch.work().join("in"), lines).unwrap();
    let work = scratch.work();
    let script = format!("cd {} && {before} sed p in > out", work.display());
    let recording = Record::new(scratch)
        .options(["--library", "stdio"])
        .command(["sh", "-c", &script])
        .run()
        .must_exit(0);
    recording.complete();
    recording
}

#[test]
fn a_stream_without_its_buffer() {
    need_root!();
    need_program!("sed", "stdbuf");
    let scratch = Scratch::new();
    let recording = sed(&scratch, "stdbuf -o0");
    let found = of_rule(&diagnosis(&recording), "unbuffered-stdio");
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(
        value(&found[0], "system_writes"),
        Some(20_000.0),
        "{found:?}"
    );
    assert_eq!(value(&found[0], "bytes"), Some(200_000.0), "{found:?}");
    let query = found[0]["query"].as_str().unwrap();
    assert_eq!(recording.rows(query).len(), 20_000);

    let scratch = Scratch::new();
    let recording = sed(&scratch, "");
    let found = of_rule(&diagnosis(&recording), "unbuffered-stdio");
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn rules_without_their_data_say_so() {
    need_root!();
    let scratch = Scratch::new();
    let recording = Record::new(&scratch).command(["true"]).run().must_exit(0);
    let found = diagnosis(&recording);
    let unseen = found["not_observable"].as_array().unwrap();
    let reason = |rule: &str| {
        let own = unseen.iter().find(|own| own["rule"] == rule);
        own.unwrap_or_else(|| panic!("{rule}: {found}"))["reason"]
            .as_str()
            .unwrap()
    };
    for rule in ["slow-request", "queries-in-a-loop"] {
        assert_eq!(
            reason(rule),
            "recorded without --spans, and no spans were imported"
        );
    }
    for rule in ["unbuffered-stdio", "stdio-read-amplification"] {
        assert_eq!(reason(rule), "recorded without --library stdio");
    }
    assert_eq!(
        reason("small-collective-io"),
        "recorded without --library mpi-io"
    );
    let partly = |found: &Value| -> Vec<String> {
        let rules = found["partly_observable"].as_array().unwrap().iter();
        let rules = rules.map(|of| of["rule"].as_str().unwrap().to_owned());
        let mut rules: Vec<String> = rules.collect();
        rules.sort();
        rules
    };
    assert_eq!(partly(&found), ["busy-retry", "userspace-copy"]);
    // Rules with the same reason share a line.
    let text = Command::new(fathom())
        .arg("diagnose")
        .arg(&recording.session)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&text.stdout);
    for line in [
        "\n   slow-request, queries-in-a-loop: recorded without --spans",
        "\n   unbuffered-stdio, stdio-read-amplification: recorded without --library stdio\n",
        "\nPartly observable\n   userspace-copy, busy-retry: recorded without calls on pipes",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let scratch = Scratch::new();
    let more = Record::new(&scratch)
        .options(["--syscalls", "storage,socket"])
        .command(["true"])
        .run()
        .must_exit(0);
    assert!(partly(&diagnosis(&more)).is_empty());
}
