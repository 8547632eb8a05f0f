//! `fathom record --spans mongodb`: commands of a driver that was not written for fathom, compared with what
//! the driver's own listener counts.

use std::fs;
use std::process::Command;

use fathom_tests::tools::project;
use fathom_tests::{Scratch, need_program, need_root, skip};
use serde_json::Value;

use crate::kernel::release;
use crate::protocols::{WAIT, record};

/// FerretDB 1 with its SQLite backend is a server of MongoDB's protocol in one program.
#[test]
fn commands_are_those_that_the_driver_counts() {
    need_root!();
    need_program!("ferretdb", "python3");
    if release() < (5, 17) {
        skip("the programs for this kernel read no bytes of calls");
        return;
    }
    let has_driver = Command::new("python3")
        .args(["-c", "import pymongo"])
        .output();
    if !has_driver.is_ok_and(|output| output.status.success()) {
        skip("python3 has no pymongo");
        return;
    }
    let scratch = Scratch::new();
    let client = project().join("tests/python/mongodb_commands.py");
    let script = format!(
        "{WAIT}
        mkdir data
        ferretdb --handler=sqlite --sqlite-url=file:$PWD/data/ --listen-addr= --listen-unix=$PWD/mongodb.sock \\
            --telemetry=disable --debug-addr=- --state-dir=$PWD --log-level=error >log 2>&1 &
        server=$!
        until_there mongodb.sock
        python3 {} \"mongodb://$(echo $PWD/mongodb.sock | sed s,/,%2F,g)/\" counted
        kill $server
        wait || true",
        client.display()
    );
    let recording = record(&scratch, "mongodb", &[], &script);
    let counted = fs::read(scratch.work().join("counted")).unwrap();
    let counted: Value = serde_json::from_slice(&counted).unwrap();
    let number = |value: &Value| value.as_i64().unwrap_or_else(|| panic!("{value}"));
    let spans = |kind: &str, condition: &str| {
        recording.number(&format!(
            "SELECT count(*) FROM spans WHERE kind = '{kind}' AND {condition}"
        ))
    };
    let commands = counted["commands"].as_object().unwrap();
    assert!(commands.len() >= 9, "{counted}");
    for (command, calls) in commands {
        let of = format!("(attributes->>'$.\"db.operation.name\"') = '{command}'");
        for kind in ["client", "server"] {
            assert_eq!(spans(kind, &of), number(calls), "{command} of the {kind}");
            let failed = format!("{of} AND status = 'error' AND name <> 'insert people'");
            let expected = counted["failures"].get(command).map_or(0, number);
            assert_eq!(spans(kind, &failed), expected, "{command} of the {kind}");
        }
        // A span of the client is a part of the time that the driver measured.
        let micros = recording.number(&format!(
            "SELECT CAST(sum(dur_ns) // 1000 AS BIGINT) FROM spans WHERE kind = 'client' AND {of}"
        ));
        let measured = number(&counted["micros"][command]);
        assert!(
            micros > 0 && micros <= measured,
            "{command}: {micros} of {measured}"
        );
    }
    let failed = "name = 'insert people' AND status = 'error' AND status_message = '11000'";
    assert_eq!(spans("server", failed), number(&counted["write_errors"]));
    assert_eq!(spans("client", failed), 3);
    for (name, calls) in [
        ("find people {_id: ?, name: {$ne: ?}}", 80),
        ("find people {age: {$gt: ?}}", 80),
        ("update people {_id: ?}", 80),
        ("delete people {age: {$lt: ?}}", 1),
    ] {
        assert_eq!(
            spans("server", &format!("name = '{name}'")),
            calls,
            "{name}"
        );
    }
    let literals = "name LIKE '%secret%' OR attributes LIKE '%secret%'";
    assert_eq!(
        recording.number(&format!("SELECT count(*) FROM spans WHERE {literals}")),
        0
    );
    // Each command of the driver is the one that the server received.
    let joined = recording.number(
        "SELECT count(DISTINCT sent.span_id) FROM spans AS received JOIN spans AS sent
             ON sent.trace_id = received.trace_id AND sent.span_id = received.parent_span_id
         WHERE received.kind = 'server' AND sent.kind = 'client' AND sent.name = received.name",
    );
    assert_eq!(joined, spans("server", "true"));
}
