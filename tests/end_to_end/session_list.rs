//! `fathom sessions`.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Output;

use fathom_tests::environment::fathom;
use fathom_tests::session::{meta, query};
use fathom_tests::{Record, Scratch, need_program, need_root};
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
    // None of these is a session.
    fs::create_dir(root.join("other")).unwrap();
    for folder in ["syscalls", "sessions", "_sessions"] {
        fs::create_dir_all(root.join("lake").join(folder)).unwrap();
    }
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

/// Records as a host of this name, with a label.
fn recorded_on(host: &str, job: &str, session: &Path, command: &[&str]) {
    let status = std::process::Command::new("unshare")
        .args([
            "--uts",
            "sh",
            "-c",
            "hostname \"$1\" && shift && exec \"$@\"",
            "sh",
            host,
        ])
        .arg(fathom())
        .args(["record", "--quiet", "--layers", "syscall"])
        .arg(format!("--label=job={job}"))
        .arg("--output")
        .arg(session)
        .arg("--")
        .args(command)
        .current_dir(session.parent().unwrap())
        .status();
    assert!(status.unwrap().success());
}

#[test]
fn sessions_of_hosts_are_summed_up() {
    need_root!();
    need_program!("unshare", "hostname", "python3");
    let scratch = Scratch::new();
    let root = scratch.work().join("fleet");
    fs::create_dir(&root).unwrap();
    let write = |host, name: &str, renames: u32| {
        let script = format!(
            "import os\nfor turn in range({renames}):\n    with open('{name}.new', 'w') as new:\n        \
             new.write('x' * 100)\n    os.rename('{name}.new', '{name}')\n"
        );
        let session = root.join(format!("{name}.fathom"));
        let job = if renames > 0 { "17" } else { "18" };
        recorded_on(host, job, &session, &["python3", "-c", &script]);
        session
    };
    let sessions = [
        ("fleet-a", write("fleet-a", "one", 60)),
        ("fleet-a", write("fleet-a", "two", 0)),
        ("fleet-b", write("fleet-b", "three", 90)),
    ];
    let by = |keys: &str| json_by(&root, keys);
    let sum = |host: Option<&str>, sql: &str| -> i64 {
        let of = sessions
            .iter()
            .filter(|(on, _)| host.is_none_or(|host| host == *on));
        of.map(|(_, session)| query(session, sql)[0].int("n").unwrap())
            .sum()
    };
    let number = |group: &Value, name: &str| group[name].as_i64().unwrap();

    let hosts = by("host");
    assert_eq!(hosts.len(), 2, "{hosts:?}");
    for group in &hosts {
        let host = group["host"].as_str().unwrap();
        let of = sessions.iter().filter(|(on, _)| host == *on);
        let seen = of
            .clone()
            .map(|(_, session)| number(&meta(session)["totals"], "seen"));
        assert_eq!(number(group, "calls"), seen.sum::<i64>());
        assert_eq!(number(group, "sessions"), of.count() as i64);
        assert_eq!(number(group, "hosts"), 1);
        let bytes = "SELECT sum(bytes)::BIGINT AS n FROM syscalls";
        assert_eq!(number(group, "bytes"), sum(Some(host), bytes));
        let time = "SELECT sum(dur_ns)::BIGINT AS n FROM syscalls";
        assert_eq!(number(group, "time_ns"), sum(Some(host), time));
        let found = "SELECT count(*) AS n FROM findings";
        assert_eq!(number(group, "findings"), sum(Some(host), found));
        assert_eq!(group["day"], Value::Null);
    }
    let times: Vec<i64> = hosts.iter().map(|group| number(group, "time_ns")).collect();
    assert!(times.is_sorted_by(|a, b| a >= b), "{times:?}");

    // By label, and of the sessions with one.
    let jobs = by("label:job,host");
    let of = |job: &str| -> Vec<i64> {
        let of_job = jobs.iter().filter(|group| group["label"] == job);
        of_job.map(|group| number(group, "calls")).collect()
    };
    let all = |sql| sum(None, sql);
    let calls = "SELECT count(*) AS n FROM syscalls";
    assert_eq!((of("17").len(), of("18").len()), (2, 1), "{jobs:?}");
    assert_eq!(of("17").iter().chain(&of("18")).sum::<i64>(), all(calls));
    assert_eq!(by("label:run")[0]["label"], Value::Null);
    let labeled = |label: &str, keys: &str| {
        let options = ["--label", label, "--by", keys, "--format", "json"];
        serde_json::from_str::<Vec<Value>>(&must(list(&root, &options))).unwrap()
    };
    assert_eq!(
        number(&labeled("job=17", "label:job")[0], "calls"),
        of("17").iter().sum::<i64>()
    );
    assert_eq!(labeled("job", "host").len(), 2);
    assert_eq!(labeled("run", "host").len(), 0);
    let listed = must(list(&root, &["--label", "job=17", "--format", "json"]));
    let listed: Vec<Value> = serde_json::from_str(&listed).unwrap();
    let names: BTreeSet<&str> = listed.iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(names, BTreeSet::from(["one.fathom", "three.fathom"]));
    assert_eq!(listed[0]["labels"], serde_json::json!({"job": "17"}));
    let none = must(list(&root, &["--label", "job=19"]));
    assert!(none.starts_with("no sessions with this label"), "{none}");
    assert!(must(list(&root, &["--by", "label:job"])).starts_with("job  SESSIONS"));

    // A crash can leave neither the old file nor the new one.
    let findings = by("finding,host");
    for (host, name) in [("fleet-a", "one.fathom"), ("fleet-b", "three.fathom")] {
        let is =
            |group: &&Value| group["host"] == host && group["finding"] == "rename-without-fsync";
        let found: Vec<&Value> = findings.iter().filter(is).collect();
        assert_eq!(found.len(), 1, "{findings:?}");
        assert_eq!(
            (&found[0]["session"], number(found[0], "sessions")),
            (&name.into(), 1)
        );
        let cost = "SELECT coalesce(sum(cost_ns), 0)::BIGINT AS n FROM findings \
                    WHERE rule = 'rename-without-fsync'";
        assert_eq!(number(found[0], "time_ns"), sum(Some(host), cost));
        assert_eq!(found[0]["calls"], Value::Null);
    }

    // Every call is of a tenant, and every session of a day.
    let all = sum(None, "SELECT count(*) AS n FROM syscalls");
    for keys in ["tenant", "day", "day,tenant,host", "command"] {
        let calls = by(keys)
            .iter()
            .map(|group| number(group, "calls"))
            .sum::<i64>();
        assert_eq!(calls, all, "{keys}");
    }
    let day = by("day").remove(0)["day"].as_str().unwrap().to_owned();
    assert!(day.len() == 10 && day.starts_with("20"), "{day}");
    assert_eq!(by("volume"), Vec::<Value>::new());
    let empty = must(list(&root, &["--by", "volume"]));
    assert!(
        empty.ends_with("has calls on files of a Kubernetes volume\n"),
        "{empty}"
    );

    // Damaged rows are named and left out.
    imported(&scratch, plain(), &root.join("broken.fathom"));
    for part in fs::read_dir(root.join("broken.fathom/syscalls")).unwrap() {
        fs::write(part.unwrap().path(), "damaged").unwrap();
    }
    let output = list(&root, &["--by", "host"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("broken.fathom: syscalls/part-") && said.contains("is left out"),
        "{said}"
    );
    let text = must(output);
    assert_eq!(text.lines().count(), 4, "{text}");
    assert!(
        text.starts_with("HOST     SESSIONS  HOSTS  FINDINGS  CALLS"),
        "{text}"
    );
    let output = list(&root, &["--by", "tenant,volume"]);
    assert_eq!(output.status.code(), Some(2));
}

fn json_by(dir: &Path, keys: &str) -> Vec<Value> {
    let text = must(list(dir, &["--by", keys, "--top", "0", "--format", "json"]));
    serde_json::from_str(&text).unwrap()
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
