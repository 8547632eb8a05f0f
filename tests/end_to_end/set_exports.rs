//! Exports of a set: the events of all hosts, apart from each other, on one clock.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use fathom_tests::environment::{fathom, must_run};
use fathom_tests::session::query;
use fathom_tests::tools::{export, project};
use fathom_tests::{Scratch, need_python};
use serde_json::Value;

/// Process ids of the second host have this added.
const OF_SECOND: i64 = 1 << 22;

/// Start of each call on the clock of the set, by host and id.
type Starts = BTreeMap<(String, i64), i64>;

/// Checks the exports of a set of two sessions, each with its name in the set.
pub fn check(scratch: &Scratch, set: &Path, members: [(&str, &Path); 2]) {
    let rows = query(set, "SELECT host, rid, ts_ns, pid FROM syscalls");
    let mut starts = Starts::new();
    let mut pids: BTreeSet<i64> = BTreeSet::new();
    for row in &rows {
        let host = row.text("host").unwrap().to_owned();
        starts.insert(
            (host.clone(), row.int("rid").unwrap()),
            row.int("ts_ns").unwrap(),
        );
        let added = if host == members[1].0 { OF_SECOND } else { 0 };
        pids.insert(row.int("pid").unwrap() + added);
    }
    assert!(
        members
            .iter()
            .all(|(host, _)| starts.keys().any(|(of, _)| of == host))
    );
    table(set, &starts);
    chrome(set, members, &starts, &pids);
    profile(set, members);
    documents(set, members);
    refused(set);
    perfetto(scratch, set, members, &starts);
}

fn table(set: &Path, starts: &Starts) {
    let text = String::from_utf8(export(set, "ndjson", &[]).0).unwrap();
    assert!(text.starts_with("{\"host\":"), "{}", &text[..40]);
    let rows: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let times = rows.iter().map(|row| row["ts_ns"].as_i64().unwrap());
    assert!(times.is_sorted());
    let found = rows.iter().map(|row| {
        let key = (
            row["host"].as_str().unwrap().to_owned(),
            row["rid"].as_i64().unwrap(),
        );
        (key, row["ts_ns"].as_i64().unwrap())
    });
    assert_eq!(found.collect::<Starts>(), *starts);
    let one = export(set, "csv", &["--where", "host = 'db'"]).0;
    let of_db = starts.keys().filter(|(host, _)| host == "db").count();
    assert_eq!(String::from_utf8(one).unwrap().lines().count(), of_db + 1);
    // A window on the clock of the set.
    let all: Vec<i64> = starts.values().copied().collect();
    let middle = (all.iter().min().unwrap() + all.iter().max().unwrap()) / 2;
    let later = export(set, "csv", &["--from", &format!("@{middle}")]).0;
    let expected = all.iter().filter(|ns| **ns >= middle).count();
    assert_eq!(
        String::from_utf8(later).unwrap().lines().count(),
        expected + 1
    );
}

fn chrome(set: &Path, members: [(&str, &Path); 2], starts: &Starts, pids: &BTreeSet<i64>) {
    let trace: Value = serde_json::from_slice(&export(set, "chrome", &[]).0).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let number = |event: &Value, name: &str| event[name].as_i64().unwrap();
    let mut found = Starts::new();
    let mut of_calls = BTreeSet::new();
    for event in events {
        let (pid, phase) = (number(event, "pid"), event["ph"].as_str().unwrap());
        let (host, _) = members[usize::try_from(pid / OF_SECOND).unwrap()];
        if phase == "M" && event["name"] == "process_name" {
            let name = event["args"]["name"].as_str().unwrap();
            assert!(name.starts_with(&format!("{host}: ")), "{pid} {name}");
        }
        if let ("X" | "b", Some(rid)) = (phase, event["args"]["rid"].as_i64()) {
            let key = (host.to_owned(), rid);
            // Page faults, and requests to devices of calls, have ids, too.
            if starts.contains_key(&key) && pid % OF_SECOND != 0 {
                let ns = (event["ts"].as_f64().unwrap() * 1000.0).round() as i64;
                assert!(found.insert(key, ns).is_none(), "{event}");
                of_calls.insert(pid);
            }
        }
    }
    assert_eq!(found, *starts);
    assert_eq!(of_calls, *pids);
}

fn profile(set: &Path, members: [(&str, &Path); 2]) {
    let text = String::from_utf8(export(set, "folded", &[]).0).unwrap();
    for (host, session) in members {
        let alone = String::from_utf8(export(session, "folded", &[]).0).unwrap();
        let [expected, found] = [&alone, &text].map(|text| -> BTreeMap<String, i64> {
            let lines = text.lines().filter_map(|line| line.rsplit_once(' '));
            let lines = lines.map(|(stack, ns)| (stack.to_owned(), ns.parse().unwrap()));
            lines.collect()
        });
        let begin = format!("{host};");
        let found: BTreeMap<&str, i64> = found
            .iter()
            .filter_map(|(stack, ns)| Some((stack.strip_prefix(&begin)?, *ns)))
            .collect();
        let total: i64 = expected.values().sum();
        let of_set: i64 = found.values().sum();
        assert!((total - of_set).abs() <= total / 1000, "{total} {of_set}");
        let stacks = expected.keys().map(String::as_str);
        let stacks: BTreeSet<&str> = stacks.chain(found.keys().copied()).collect();
        for stack in stacks {
            let there = found.get(stack).copied().unwrap_or(0);
            let alone = expected.get(stack).copied().unwrap_or(0);
            // The clock of the first host has another rate: the time that a long call spent outside of its waits
            // differs by the rate times the waits.
            assert!(
                (there - alone).abs() <= total / 1000 + 1000,
                "{stack}: {alone} {there} of {total}"
            );
        }
    }
}

/// The documents of both sessions; those of the second one are on the clock of the first.
fn documents(set: &Path, members: [(&str, &Path); 2]) {
    let lines = |of: &Path, format: &str| -> Vec<Value> {
        let text = String::from_utf8(export(of, format, &[]).0).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    let ids = |lines: &[Value]| -> BTreeSet<String> {
        let ids = lines
            .iter()
            .filter_map(|line| line["index"]["_id"].as_str());
        ids.map(str::to_owned).collect()
    };
    for format in ["opensearch", "dio-bulk"] {
        let of_set = ids(&lines(set, format));
        let each = members
            .iter()
            .flat_map(|(_, session)| ids(&lines(session, format)));
        let each: BTreeSet<String> = each.collect();
        assert_eq!(of_set.len(), each.len(), "{format}");
        // Of the slowest requests, the last ones can take as long as others to the nanosecond: on another clock
        // others are among them.
        let differing: Vec<&String> = of_set.symmetric_difference(&each).collect();
        assert!(differing.len() <= 4, "{format}: {differing:?}");
    }
    let first_call = |host: &str| {
        let sql = format!(
            "SELECT min(ts_ns) AS ns FROM syscalls WHERE host = '{host}' AND ret IS NOT NULL"
        );
        query(set, &sql)[0].int("ns").unwrap()
    };
    let documents = lines(set, "dio");
    let calls = |host: &str| {
        let of = documents
            .iter()
            .filter(|d| d["hostname"] == host && d["return_timestamp"].is_i64());
        of.map(|d| d["call_timestamp"].as_i64().unwrap())
            .min()
            .unwrap()
    };
    let [(first, _), (second, _)] = members;
    assert_eq!(
        calls(second) - calls(first),
        first_call(second) - first_call(first)
    );
}

fn refused(set: &Path) {
    for (format, instead) in [
        ("strace", "--format csv, which has a column host"),
        ("ctf", "viewers of CTF open several traces together"),
        ("iolog", "replay it on the machine"),
        ("iolog3", "replay it on the machine"),
        ("page", "fathom ui"),
    ] {
        let out = Command::new(fathom())
            .args(["export", "--format", format, "-o", "/nonexistent/x"])
            .arg(set)
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{errors}");
        let says = ["takes one session", "each session of the set", instead];
        assert!(says.iter().all(|part| errors.contains(part)), "{errors}");
    }
}

fn perfetto(scratch: &Scratch, set: &Path, members: [(&str, &Path); 2], starts: &Starts) {
    let python = need_python!();
    let file = scratch.root().join("set.pftrace");
    fs::write(&file, export(set, "perfetto", &[]).0).unwrap();
    let script = project().join("tests/python/perfetto_check.py");
    let trace: Value =
        serde_json::from_slice(&must_run(&python, [script.as_os_str(), file.as_os_str()])).unwrap();
    // By thread: names of threads have no host, their ids do.
    let mut found = Starts::new();
    for slice in trace["slices"].as_array().unwrap() {
        let track = slice["track"].as_str().unwrap();
        let tid = track
            .strip_prefix("thread ")
            .and_then(|rest| rest.split(' ').next());
        let (Some(tid), Some(rid)) = (tid, slice["args"]["rid"].as_i64()) else {
            continue;
        };
        let host = members[usize::try_from(tid.parse::<i64>().unwrap() / OF_SECOND).unwrap()].0;
        let key = (host.to_owned(), rid);
        if slice["depth"] == 0 && starts.contains_key(&key) {
            found.insert(key, slice["ts"].as_i64().unwrap());
        }
    }
    assert_eq!(found, *starts);
    let tracks: Vec<&str> = trace["tracks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| t.as_str().unwrap())
        .collect();
    for (host, _) in members {
        let of_host = |what: &str| {
            tracks
                .iter()
                .any(|track| track.contains(&format!("{host}: {what}")))
        };
        assert!(
            of_host("machine") && of_host("requests in flight"),
            "{host}: {tracks:?}"
        );
    }
}
