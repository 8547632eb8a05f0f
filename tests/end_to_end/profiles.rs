//! Profiles: exports of time by stack. Their sums are those of SQL.

use std::fs;

use fathom_tests::environment::must_run;
use fathom_tests::tools::{self, export};
use fathom_tests::{Record, Recording, Scratch, need_program, need_root, workload};
use serde_json::Value;

/// A recording with stacks, slices, and page faults.
fn recorded(scratch: &Scratch) -> Recording {
    let work = scratch.work().into_os_string();
    let recording = Record::new(scratch)
        .options(["--stacks"])
        .command([
            workload("threads").into_os_string(),
            "own".into(),
            work,
            "2".into(),
            "50".into(),
        ])
        .run()
        .must_exit(0);
    recording.complete();
    recording
}

/// Requests, bytes, and nanoseconds. Page faults during a call are part of the call.
fn sums(recording: &Recording) -> (i64, i64, i64) {
    let outside = "FROM faults WHERE origin IS DISTINCT FROM 'kernel'";
    let number =
        |what: &str| recording.number(&format!("SELECT coalesce({what}, 0)::BIGINT FROM syscalls"));
    let faults =
        |what: &str| recording.number(&format!("SELECT coalesce({what}, 0)::BIGINT {outside}"));
    (
        number("count(*)") + faults("count(*)"),
        number("sum(bytes)"),
        number("sum(dur_ns)") + faults("sum(dur_ns)"),
    )
}

#[test]
fn folded_stacks_add_up() {
    need_root!();
    let scratch = Scratch::new();
    let recording = recorded(&scratch);
    let (text, _) = export(&recording.session, "folded", &[]);
    let text = String::from_utf8(text).unwrap();
    let lines: Vec<(&str, i64)> = text
        .lines()
        .map(|line| line.rsplit_once(' ').unwrap())
        .map(|(stack, ns)| (stack, ns.parse().unwrap()))
        .collect();
    assert_eq!(
        lines.iter().map(|line| line.1).sum::<i64>(),
        sums(&recording).2
    );
    // The time of a layer, by its name: inside or outside of other layers.
    for layer in ["block", "sched", "fs"] {
        let within: i64 = lines
            .iter()
            .filter(|(stack, _)| {
                stack
                    .rsplit(';')
                    .next()
                    .unwrap()
                    .starts_with(&format!("{layer}:"))
            })
            .map(|line| line.1)
            .sum();
        let want = recording.number(&format!(
            "SELECT coalesce(sum(self_ns), 0)::BIGINT FROM slices \
             WHERE depth > 0 AND layer = '{layer}' \
             AND rid NOT IN (SELECT rid FROM faults WHERE origin = 'kernel')"
        ));
        assert_eq!(within, want, "{layer}");
    }
    // From the root: thread, functions, call, file, layers.
    let main = lines.iter().find(|(stack, _)| {
        let frames: Vec<&str> = stack.split(';').collect();
        frames.len() > 3 && frames.iter().any(|frame| frame.starts_with('/'))
    });
    assert!(main.is_some(), "{text}");
    // A condition and a window leave out the rest.
    let (text, _) = export(
        &recording.session,
        "folded",
        &["--where", "syscall = 'fsync'"],
    );
    let text = String::from_utf8(text).unwrap();
    let sum: i64 = text
        .lines()
        .map(|line| line.rsplit_once(' ').unwrap().1.parse::<i64>().unwrap())
        .sum();
    let want = recording
        .number("SELECT coalesce(sum(dur_ns), 0)::BIGINT FROM syscalls WHERE syscall = 'fsync'");
    assert_eq!(sum, want);
}

/// The rules of speedscope's file format: indices of frames, one weight per sample, and the sum.
#[test]
fn speedscope_files_add_up() {
    need_root!();
    let scratch = Scratch::new();
    let recording = recorded(&scratch);
    let (text, _) = export(&recording.session, "speedscope", &[]);
    let file: Value = serde_json::from_slice(&text).unwrap();
    let frames = file["shared"]["frames"].as_array().unwrap();
    assert!(frames.iter().all(|frame| frame["name"].is_string()));
    let (requests, bytes, ns) = sums(&recording);
    let profiles = file["profiles"].as_array().unwrap();
    let wanted = [("nanoseconds", ns), ("bytes", bytes), ("none", requests)];
    assert_eq!(profiles.len(), wanted.len());
    for (profile, (unit, want)) in profiles.iter().zip(wanted) {
        assert_eq!(profile["type"], "sampled");
        assert_eq!(profile["unit"], unit);
        assert_eq!(profile["startValue"], 0);
        assert_eq!(profile["endValue"], want, "{unit}");
        let weights = profile["weights"].as_array().unwrap();
        let samples = profile["samples"].as_array().unwrap();
        assert_eq!(weights.len(), samples.len());
        let sum: i64 = weights.iter().map(|weight| weight.as_i64().unwrap()).sum();
        assert_eq!(sum, want, "{unit}");
        for frame in samples.iter().flat_map(|s| s.as_array().unwrap()) {
            assert!((frame.as_u64().unwrap() as usize) < frames.len());
        }
    }
}

/// Go's pprof reads the profile, and its totals are ours.
#[test]
fn pprof_reads_the_profile() {
    need_root!();
    need_program!("go");
    let scratch = Scratch::new();
    let recording = recorded(&scratch);
    let profile = scratch.root().join("run.pb.gz");
    fs::write(&profile, export(&recording.session, "pprof", &[]).0).unwrap();
    let arguments = ["tool", "pprof", "-raw"].map(std::ffi::OsStr::new);
    let text = must_run("go", arguments.into_iter().chain([profile.as_os_str()]));
    let text = String::from_utf8(text).unwrap();
    let samples = text.split_once("Samples:\n").unwrap().1;
    let (names, samples) = samples.split_once('\n').unwrap();
    assert_eq!(
        names.split_whitespace().collect::<Vec<_>>(),
        ["requests/count", "bytes/bytes", "time/nanoseconds[dflt]"]
    );
    let mut totals = (0, 0, 0);
    for line in samples.split("Locations\n").next().unwrap().lines() {
        let Some((values, _)) = line.split_once(':') else {
            continue;
        };
        let values: Vec<i64> = values
            .split_whitespace()
            .map(|value| value.parse().unwrap())
            .collect();
        totals.0 += values[0];
        totals.1 += values[1];
        totals.2 += values[2];
    }
    assert_eq!(totals, sums(&recording));
}

/// Not for a terminal, and not without a session.
#[test]
fn errors_name_the_session() {
    let scratch = Scratch::new();
    let missing = scratch.root().join("missing.fathom");
    for format in ["folded", "pprof", "speedscope"] {
        let output = tools::run([
            "export".as_ref(),
            missing.as_os_str(),
            "--format".as_ref(),
            format.as_ref(),
        ]);
        assert_eq!(output.status.code(), Some(2));
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains("missing.fathom"), "{text}");
    }
}
