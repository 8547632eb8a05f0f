#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::HashMap;

use fathom_diagnose::Severity;
use serde_json::json;

use super::*;
use crate::files::SqlFile;

fn rule(head: &str) -> Rule {
    let file = SqlFile {
        name: "mine".into(),
        path: "/home/user/.config/fathom/rules/mine.sql".into(),
        text: format!("{head}-- advice: Because of {{why}}.\nSELECT 1"),
    };
    Rule::parse(&file).unwrap()
}

fn found(head: &str, row: &Value) -> Result<UserFinding, String> {
    let row = row.as_object().unwrap();
    let columns: Vec<String> = row.keys().cloned().collect();
    let example = |rid: i64| Example {
        rid,
        ts_ns: 5,
        dur_ns: 6,
        tid: 7,
        syscall: "read".into(),
        path: None,
        offset: None,
        ret: None,
    };
    let examples: HashMap<_, _> = (1..9).map(|rid| (rid, example(rid))).collect();
    finding(&rule(head), row, &columns, &examples)
}

#[test]
fn columns_become_parts_of_the_finding() {
    let row = json!({
        "pid": 1234567, "tid": 8, "comm": "app", "file_id": 9, "path": "/a",
        "cost_ns": 1500.5, "severity": "high", "why": "it", "calls": 12345,
        "read_bytes": 4096, "mean_ns": 2500, "shares": null, "kind": "text",
        "examples": [3, 2, 1, 4],
    });
    let title = "-- title: {{{comm}}} {pid} {calls} {read_bytes} {mean_ns} {shares}\n";
    let found = found(title, &row).unwrap();
    assert_eq!(found.title, "{app} 1234567 12,345 4.00 KiB 2.50 µs unknown");
    assert_eq!(found.advice, "Because of it.");
    assert_eq!(found.cost_ns, Some(1500));
    assert_eq!(found.severity, Some(Severity::High));
    assert_eq!(found.subject.text(), "app (1234567) thread 8 /a");
    let numbers: Vec<_> = found.evidence.iter().map(|e| (&*e.name, e.value)).collect();
    let expected = [
        ("calls", 12345.0),
        ("mean_ns", 2500.0),
        ("read_bytes", 4096.0),
    ];
    assert_eq!(numbers, expected);
    let rids: Vec<_> = found.examples.iter().map(|e| e.rid).collect();
    assert_eq!(rids, [3, 2, 1]);
}

#[test]
fn columns_of_another_kind_are_told() {
    let title = "-- title: a\n-- severity: low\n";
    for (row, says) in [
        (json!({"severity": "worst"}), "severity is \"worst\""),
        (json!({"severity": 3}), "severity is 3"),
        (json!({"cost_ns": "much"}), "cost_ns is \"much\""),
        (json!({"cost_ns": -1}), "cost_ns is -1"),
    ] {
        let why = found(title, &row).unwrap_err();
        assert!(why.contains(says), "{why}");
    }
    // Null is as no column.
    let row = json!({"severity": null, "cost_ns": null, "examples": null, "pid": null});
    let plain = found(title, &row).unwrap();
    assert_eq!((plain.severity, plain.cost_ns), (Some(Severity::Low), None));
    assert_eq!(
        found(title, &json!({"examples": 5}))
            .unwrap()
            .examples
            .len(),
        1
    );
}

#[test]
fn a_rule_that_takes_too_long_says_so() {
    let Failed::Rule(reason) = QueryError::TimeLimit(crate::RULE_TIME).into() else {
        panic!();
    };
    assert_eq!(reason, "its SQL took longer than 60.0 s");
}

#[test]
fn reasons_have_one_line() {
    let error = QueryError::Sql("Binder Error: no\n\nLINE 1: x\n  ^".into());
    let Failed::Rule(reason) = error.into() else {
        panic!();
    };
    assert_eq!(reason, "its SQL failed: Binder Error: no LINE 1: x ^");
}
