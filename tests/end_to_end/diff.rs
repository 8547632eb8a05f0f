//! `fathom diff` on recordings of a program that stays the same, and of what becomes of
//! it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use fathom_tests::environment::fathom;
use fathom_tests::{Record, Scratch, need_root, rounds, workload};
use serde_json::Value;

/// What `fathom diff` printed, and its exit status.
struct Answer {
    status: i32,
    out: String,
    err: String,
}

fn diff<S: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = S>) -> Answer {
    let output = Command::new(fathom())
        .arg("diff")
        .args(args)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Answer {
        status: output.status.code().unwrap(),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn json<S: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = S>) -> (i32, Value) {
    let mut all: Vec<std::ffi::OsString> = vec!["--format".into(), "json".into()];
    all.extend(args.into_iter().map(|a| a.as_ref().to_owned()));
    let answer = diff(all);
    let value = serde_json::from_str(&answer.out)
        .unwrap_or_else(|e| panic!("{e}: {}\n{}", answer.out, answer.err));
    (answer.status, value)
}

/// Records the program in a mode.
fn record(scratch: &Scratch, name: &str, mode: &str) -> PathBuf {
    let work = scratch.work();
    fs::write(work.join("in"), vec![7u8; 256 << 10]).unwrap();
    let program = workload("regress");
    let command = [program.as_os_str(), work.as_os_str(), mode.as_ref()];
    let recording = Record::named(scratch, name)
        .command(command)
        .run()
        .must_exit(0);
    recording.complete();
    recording.session
}

fn must_be_noise(before: &Path, after: &Path) {
    let answer = diff([before, after]);
    assert_eq!(answer.status, 0, "{}{}", answer.out, answer.err);
    assert!(answer.out.contains("\nWithin noise"), "{}", answer.out);
}

#[test]
#[ignore = "long"]
fn the_same_program_is_within_noise_time_and_again() {
    need_root!();
    let scratch = Scratch::new();
    let sessions: Vec<PathBuf> = (0..11)
        .map(|i| record(&scratch, &format!("run-{i}"), "same"))
        .collect();
    let pairs = || sessions.windows(2).take(rounds(4) as usize);
    for pair in pairs() {
        must_be_noise(&pair[0], &pair[1]);
    }
    // No room at all: counts are the same, and times say nothing.
    let all = "calls,bytes,errors,findings";
    for pair in pairs() {
        let answer = diff([
            pair[0].as_os_str(),
            pair[1].as_os_str(),
            "--metric".as_ref(),
            all.as_ref(),
            "--fail-above".as_ref(),
            "0".as_ref(),
        ]);
        assert_eq!(answer.status, 0, "{}", answer.out);
    }
    // Several a side: times guard, too.
    let mut args: Vec<std::ffi::OsString> = vec!["--before".into()];
    args.extend(sessions.iter().take(5).map(|s| s.into()));
    args.push("--after".into());
    args.extend(sessions.iter().skip(5).take(5).map(|s| s.into()));
    let (_, value) = json(&args);
    let guards = value["guard"]["metrics"].as_array().unwrap();
    assert!(
        guards.contains(&"time".into()) && guards.contains(&"p99".into()),
        "{guards:?}"
    );
    for figure in value["totals"].as_array().unwrap() {
        if matches!(
            figure["metric"].as_str(),
            Some("calls" | "bytes" | "errors")
        ) {
            assert_eq!(figure["verdict"], "same", "{figure}");
            assert_eq!(figure["samples"][0].as_array().unwrap().len(), 5);
        }
    }
}

#[test]
fn what_became_worse_comes_first_time_and_again() {
    need_root!();
    let scratch = Scratch::new();
    let work = scratch.work();
    let (input, output) = (work.join("in"), work.join("out"));
    let (input, output) = (input.to_str().unwrap(), output.to_str().unwrap());
    for round in 0..rounds(1) {
        let before = record(&scratch, &format!("before-{round}"), "same");
        for (mode, call, path, counts) in [
            ("fsync", "fsync", output, (0.0, 64.0)),
            ("buffer", "read", input, (17.0, 257.0)),
            ("twice", "openat", input, (1.0, 2.0)),
        ] {
            let after = record(&scratch, &format!("{mode}-{round}"), mode);
            let (status, value) = json([&before, &after]);
            assert_eq!(status, 1, "{mode}: {value:#}");
            assert_eq!(value["outcome"], "worse");
            // Findings come before the calls that they follow from.
            let changes = value["changes"].as_array().unwrap();
            let mut counted = changes.iter().filter(|c| c["metric"] != "findings");
            let first = counted.clone().next().unwrap();
            assert!(
                first["fails"] == true && first["verdict"] == "worse",
                "{first}"
            );
            // Opened twice it is closed twice: both are as weighty.
            let worst: Vec<&Value> = counted.by_ref().take(2).collect();
            let subject = format!("{call} on {path}");
            let told = worst
                .iter()
                .find(|c| c["subject"] == subject.as_str() && c["metric"] == "calls");
            let told = told.unwrap_or_else(|| panic!("{mode}: {:#}", value["changes"]));
            assert_eq!(told["before"].as_f64(), Some(counts.0));
            assert_eq!(told["after"].as_f64(), Some(counts.1));
            if round > 0 {
                continue;
            }
            let answer = diff([&before, &after]);
            assert_eq!(answer.status, 1);
            assert!(answer.out.contains("\nWorse"), "{}", answer.out);
            assert!(answer.out.contains("\n  worse "), "{}", answer.out);
            // The other way round it became better.
            let (status, value) = json([&after, &before]);
            assert_eq!(status, 0, "{mode}: {value:#}");
            assert_eq!(value["outcome"], "changed");
            let mut changes = value["changes"].as_array().unwrap().iter();
            // On a busy machine one open can take longer than two.
            assert!(
                mode == "twice" || changes.any(|c| c["verdict"] == "better"),
                "{mode}: {value:#}"
            );
        }
    }
}

#[test]
fn thresholds_metrics_and_several_a_side() {
    need_root!();
    let scratch = Scratch::new();
    let before: Vec<PathBuf> = (0..3)
        .map(|i| record(&scratch, &format!("before-{i}"), "same"))
        .collect();
    let after: Vec<PathBuf> = (0..3)
        .map(|i| record(&scratch, &format!("after-{i}"), "fsync"))
        .collect();
    let mut args: Vec<std::ffi::OsString> = Vec::new();
    for (name, side) in [("--before", &before), ("--after", &after)] {
        for session in side {
            args.push(name.into());
            args.push(session.into());
        }
    }
    let (status, value) = json(&args);
    assert_eq!(status, 1);
    assert_eq!(value["before"]["sessions"].as_array().unwrap().len(), 3);
    let changes = value["changes"].as_array().unwrap();
    let calls = changes
        .iter()
        .find(|c| c["metric"] == "calls" && c["subject"].as_str().unwrap().starts_with("fsync"));
    let change = calls.unwrap_or_else(|| panic!("{changes:?}"));
    assert_eq!(
        change["why"], "the same in all sessions of each side",
        "{change}"
    );
    // fsync moves no bytes and fails nowhere.
    for metrics in ["bytes", "errors", "bytes,errors"] {
        let answer = diff([&["--metric".into(), metrics.into()][..], &args[..]].concat());
        assert_eq!(answer.status, 0, "{metrics}: {}", answer.out);
    }
    // 64 more calls are less than so many percent, but fsync is new.
    let guarded = |percent: &str, metric: &str| {
        let options = [
            "--fail-above".into(),
            percent.into(),
            "--metric".into(),
            metric.into(),
        ];
        diff([&options[..], &args[..]].concat()).status
    };
    assert_eq!(guarded("1000", "calls"), 1);
    let smaller = record(&scratch, "smaller", "buffer");
    let calls = |percent: &str| {
        let options = ["--metric", "calls", "--fail-above", percent];
        let sessions = [before[0].as_os_str(), smaller.as_os_str()];
        let args = sessions
            .into_iter()
            .chain(options.iter().map(|o| o.as_ref()));
        diff(args).status
    };
    assert_eq!((calls("1000"), calls("2000")), (1, 0));
}

#[test]
fn bad_input_is_told_from_differences() {
    need_root!();
    let scratch = Scratch::new();
    let session = record(&scratch, "one", "same");
    let session = session.as_os_str();
    let nowhere = scratch.root().join("nowhere");
    for (args, says) in [
        (vec![session], "give BEFORE and AFTER"),
        (vec![], "give BEFORE and AFTER"),
        (vec!["--after".as_ref(), session], "no session before"),
        (vec![session, nowhere.as_os_str()], "nowhere"),
        (
            vec![session, session, "--metric".as_ref(), "speed".as_ref()],
            "calls, bytes, time",
        ),
        (
            vec![session, session, "--fail-above=-1".as_ref()],
            "not a percentage",
        ),
        (vec![session, session, session], "unexpected"),
    ] {
        let answer = diff(&args);
        assert_eq!(answer.status, 2, "{args:?}: {}", answer.err);
        assert!(answer.out.is_empty(), "{}", answer.out);
        assert!(answer.err.contains(says), "{args:?}: {}", answer.err);
    }
}

#[test]
fn what_a_side_lacks_is_named() {
    need_root!();
    let scratch = Scratch::new();
    let work = scratch.work();
    let full = record(&scratch, "full", "same");
    let program = workload("regress");
    let command = || [program.as_os_str(), work.as_os_str(), "same".as_ref()];
    let calls = Record::named(&scratch, "calls")
        .options(["--layers", "syscall"])
        .command(command());
    let calls = calls.run().must_exit(0).session;
    let (status, value) = json([&full, &calls]);
    assert_eq!(status, 0, "{value:#}");
    let notes = value["notes"].to_string();
    assert!(
        notes.contains("layer block was not recorded after"),
        "{notes}"
    );
    for row in value["tables"]["layers"].as_array().unwrap() {
        assert_eq!(row["figures"][0]["verdict"], "not_comparable", "{row}");
    }
    // A log without durations.
    let log = scratch.root().join("log.strace");
    fs::write(
        &log,
        "100 1700000000.000100 openat(AT_FDCWD, \"/data/in\", O_RDONLY) = 3</data/in>\n\
         100 1700000000.000200 read(3</data/in>, \"\"..., 4096) = 4096\n\
         100 1700000000.000300 close(3</data/in>) = 0\n",
    )
    .unwrap();
    let imported = scratch.root().join("imported.fathom");
    let status = Command::new(fathom())
        .arg("import")
        .arg(&log)
        .arg("-o")
        .arg(&imported)
        .status()
        .unwrap();
    assert!(status.success());
    let (status, value) = json([&imported, &imported]);
    assert_eq!(status, 0, "{value:#}");
    let notes = value["notes"].to_string();
    assert!(notes.contains("times are not comparable"), "{notes}");
    let total = |metric: &str| {
        let totals = value["totals"].as_array().unwrap();
        totals.iter().find(|f| f["metric"] == metric).unwrap()["verdict"].clone()
    };
    assert_eq!(total("calls"), "same");
    assert_eq!(total("time"), "not_comparable");
}

/// Runs a shell script in a directory of its own.
fn record_script(scratch: &Scratch, name: &str, script: &str) -> PathBuf {
    let command = ["sh".as_ref(), "-c".as_ref(), script.as_ref()] as [&std::ffi::OsStr; 3];
    let recording = Record::named(scratch, name)
        .command(command)
        .run()
        .must_exit(0);
    recording.session
}

/// A data directory whose content was made anew in between: the same is done to files that
/// are numbered otherwise, some of which have a number in common.
#[test]
fn a_data_directory_made_anew_is_the_same() {
    need_root!();
    let scratch = Scratch::new();
    let data = scratch.work().join("data");
    let session = |name: &str, first: u32| {
        let _ = fs::remove_dir_all(&data);
        fs::create_dir_all(data.join("base")).unwrap();
        let files: Vec<String> = (0..4).map(|i| (first + i).to_string()).collect();
        let script = format!(
            "cd {} && for n in {}; do head -c $((4096 * (n - {first} + 1))) /dev/zero > base/$n; done",
            data.display(),
            files.join(" ")
        );
        record_script(&scratch, name, &script)
    };
    // The output goes to a file that is called like the recording.
    let (before, after) = (session("run-1", 16396), session("run-2", 16399));
    let (status, value) = json([&before, &after]);
    assert_eq!(status, 0, "{:#}", value["changes"]);
    let files = value["tables"]["files"].as_array().unwrap();
    let base = data.join("base");
    let base = base.to_str().unwrap();
    let below: Vec<&Value> = files
        .iter()
        .filter(|f| f["name"].as_str().unwrap().starts_with(&format!("{base}/")))
        .collect();
    let [only] = below.as_slice() else {
        panic!("{below:#?}");
    };
    assert_eq!(only["name"], format!("{base}/#"));
    assert_eq!(only["names"], serde_json::json!([4, 4]));
}
