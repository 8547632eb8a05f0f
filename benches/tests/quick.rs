//! The benchmark runs, and what it reports is consistent.

// A step that fails is a failed test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

fn skip(reason: &str) {
    let line = format!("SKIPPED: a_quick_run: {reason}\n");
    eprint!("{line}");
    if let Some(log) = std::env::var_os("FATHOM_SKIP_LOG") {
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(log)
            .unwrap();
        file.write_all(line.as_bytes()).unwrap();
    }
}

#[test]
fn a_quick_run() {
    if !rustix::process::geteuid().is_root() {
        skip("needs root to load programs into the kernel");
        return;
    }
    let program = Path::new(env!("CARGO_BIN_EXE_fathom-bench"));
    assert!(
        program.with_file_name("fathom").exists(),
        "build fathom first: cargo build --release -p fathom-cli"
    );
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("result.json");
    let output = Command::new(program)
        .args([
            "--quick",
            "--only",
            "pread,open",
            "--tracers",
            "empty,fathom,strace -f",
            "--json",
        ])
        .arg(&json)
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{printed}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let report: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    let workloads = report["workloads"].as_array().unwrap();
    assert_eq!(workloads.len(), 2);
    for workload in workloads {
        let name = workload["workload"].as_str().unwrap();
        assert!(printed.contains(name), "{printed}");
        for tracer in [
            "none",
            "empty probes",
            "floor",
            "fathom raw",
            "fathom fds",
            "fathom full",
        ] {
            let line = workload["tracers"]
                .as_array()
                .unwrap()
                .iter()
                .find(|line| line["tracer"] == tracer)
                .unwrap_or_else(|| panic!("no {tracer}: {workload}"));
            assert!(line.get("unavailable").is_none(), "{line}");
            let sample = &line["samples"][0];
            let made = sample["made"].as_u64().unwrap();
            assert!(made > 0 && sample["rate"].as_f64().unwrap() > 0.0, "{line}");
            if tracer.starts_with("fathom") {
                assert_eq!(sample["counted"].as_u64(), Some(made), "{line}");
                let stored = sample["events"].as_u64().unwrap() + sample["lost"].as_u64().unwrap();
                assert!(stored >= made, "{line}");
            } else if tracer == "floor" {
                let records = sample["events"].as_u64().unwrap() + sample["lost"].as_u64().unwrap();
                assert!(records >= made, "{line}");
            }
        }
    }
}
