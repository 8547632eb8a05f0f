//! `fathom sessions`.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Output;

use fathom_tests::{Record, Scratch, need_root};
use rustix::process::Signal;
use serde_json::Value;

use crate::ownership::{ended, imported, must, plain};

fn list(dir: &Path, options: &[&str]) -> Output {
    ended(plain().arg("sessions").arg(dir).args(options))
}

fn json(dir: &Path) -> Vec<Value> {
    serde_json::from_str(&must(list(dir, &["--format", "json"]))).unwrap()
}

#[test]
fn broken_and_hostile_sessions_are_listed() {
    let scratch = Scratch::new();
    let root = scratch.root().join("sessions");
    fs::create_dir(&root).unwrap();
    assert!(must(list(&root, &[])).contains("no sessions"));
    let hostile = OsStr::from_bytes(b"\x1b[2J\xff\n'.fathom");
    imported(&scratch, plain(), &root.join(hostile));
    imported(&scratch, plain(), &root.join("good.fathom"));
    let broken = root.join("broken.fathom");
    imported(&scratch, plain(), &broken);
    fs::write(broken.join("session.json"), "{").unwrap();
    let part = root.join("part.fathom");
    imported(&scratch, plain(), &part);
    for entry in fs::read_dir(part.join("syscalls")).unwrap() {
        let path = entry.unwrap().path();
        let bytes = fs::read(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    }
    // Neither is a session.
    fs::create_dir(root.join("other")).unwrap();
    std::os::unix::fs::symlink("good.fathom", root.join("link.fathom")).unwrap();

    let sessions = json(&root);
    let state = |name: &str| {
        let found = sessions.iter().find(|s| s["name"] == name);
        found.unwrap_or_else(|| panic!("{name}: {sessions:?}"))
    };
    assert_eq!(sessions.len(), 4, "{sessions:?}");
    let good = state("good.fathom");
    assert_eq!(good["state"], "ended");
    assert_eq!(good["source"], "strace");
    assert_eq!(good["calls"], 3);
    assert!(good["bytes"].as_u64().unwrap() > 0);
    assert_eq!(good["findings"], Value::Null);
    assert!(good["next"].as_str().unwrap().starts_with("fathom report "));
    for damaged in ["broken.fathom", "part.fathom"] {
        let damaged = state(damaged);
        assert_eq!(damaged["state"], "damaged", "{damaged}");
        assert!(damaged["problem"].is_string(), "{damaged}");
        assert!(
            damaged["next"]
                .as_str()
                .unwrap()
                .starts_with("fathom repair ")
        );
    }
    assert_eq!(state("\u{1b}[2J\\xff\n'.fathom")["state"], "ended");

    let text = must(list(&root, &[]));
    let bad = text.chars().find(|c| c.is_control() && *c != '\n');
    assert_eq!(bad, None, "{text}");
    assert_eq!(text.lines().filter(|line| line.contains("[2J")).count(), 1);
    assert!(text.contains("fathom repair "), "{text}");

    // One session alone, and a directory that is not there.
    assert_eq!(json(&root.join("good.fathom")).len(), 1);
    let missing = list(&root.join("missing"), &[]);
    assert_eq!(missing.status.code(), Some(2));
}

#[test]
fn running_killed_and_ended_recordings_differ() {
    need_root!();
    let scratch = Scratch::new();
    let command = ["sh", "-c", "echo ready; read line; true"];
    let mut running = Record::named(&scratch, "running")
        .command(command)
        .interactive()
        .spawn();
    assert_eq!(running.line(), "ready");
    let dir = running.session().parent().unwrap().to_owned();
    let state = |name: &str| {
        let sessions = json(&dir);
        let found = sessions.iter().find(|s| {
            let listed = s["name"].as_str().unwrap();
            listed.starts_with(name)
        });
        found.map(|s| s["state"].as_str().unwrap().to_string())
    };
    assert_eq!(state("running").as_deref(), Some("running"));
    let mut killed = Record::named(&scratch, "killed")
        .command(command)
        .interactive()
        .spawn();
    assert_eq!(killed.line(), "ready");
    killed.signal(Signal::KILL);
    killed.killed();
    assert_eq!(state("killed").as_deref(), Some("killed"));
    running.say("\n");
    running.wait().must_exit(0);
    assert_eq!(state("running").as_deref(), Some("ended"));
    // The newest first.
    let starts: Vec<i64> = json(&dir)
        .iter()
        .map(|s| s["started_unix_ns"].as_i64().unwrap())
        .collect();
    assert!(starts.is_sorted_by(|a, b| a >= b), "{starts:?}");
}
