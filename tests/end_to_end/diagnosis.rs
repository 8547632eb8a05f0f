//! `fathom diagnose` and the other places of findings, on recordings of programs.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use fathom_tests::environment::{fathom, must_run};
use fathom_tests::tools;
use fathom_tests::{Record, Recording, Scratch, need_python, need_root, workload};
use serde_json::Value;

fn diagnose(session: &Path, format: &str) -> Output {
    Command::new(fathom())
        .arg("diagnose")
        .arg(session)
        .args(["--format", format])
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A recording of the program in a mode; the files lie in `dir`.
fn record(scratch: &Scratch, dir: &Path, mode: &str, options: &[&str]) -> Recording {
    fs::create_dir_all(dir).unwrap();
    fs::write(dir.join("in"), vec![7u8; 256 << 10]).unwrap();
    let program = workload("regress");
    let command = [program.as_os_str(), dir.as_os_str(), mode.as_ref()];
    Record::new(scratch)
        .options(options)
        .command(command)
        .run()
        .must_exit(0)
}

#[test]
fn exit_statuses_tell_findings_from_none_and_from_bad_input() {
    need_root!();
    let scratch = Scratch::new();
    let storm = record(&scratch, &scratch.work(), "fsync", &[]);
    let output = diagnose(&storm.session, "text");
    assert_eq!(output.status.code(), Some(1));
    let page = text(&output.stdout);
    assert!(
        page.contains("sync-storm") && page.contains("64 times"),
        "{page}"
    );
    assert!(page.starts_with("This run took "), "{page}");
    assert!(page.contains("durable, in 64 calls"), "{page}");
    assert!(page.contains("--finding 1"), "{page}");

    let scratch = Scratch::new();
    let healthy = Record::new(&scratch).command(["true"]).run().must_exit(0);
    let output = diagnose(&healthy.session, "text");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stdout));
    let page = text(&output.stdout);
    assert!(
        page.starts_with("This run took ") && page.contains("\nNo findings"),
        "{page}"
    );
    let value: Value = serde_json::from_slice(&diagnose(&healthy.session, "json").stdout).unwrap();
    assert_eq!(value["findings"].as_array().map(Vec::len), Some(0));

    for (session, format) in [("nowhere", "text"), (".", "json")] {
        let output = diagnose(&scratch.root().join(session), format);
        assert_eq!(output.status.code(), Some(2));
        assert!(output.stdout.is_empty() && text(&output.stderr).starts_with("fathom: "));
    }
    assert_eq!(diagnose(&healthy.session, "prose").status.code(), Some(2));
}

#[test]
fn every_number_of_a_finding_can_be_counted() {
    need_root!();
    let scratch = Scratch::new();
    let recording = record(&scratch, &scratch.work(), "fsync", &[]);
    let output = diagnose(&recording.session, "json");
    assert_eq!(output.status.code(), Some(1));
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    let findings = value["findings"].as_array().unwrap();
    let storm = findings.iter().find(|f| f["rule"] == "sync-storm").unwrap();
    let evidence = storm["evidence"].as_array().unwrap();
    let syncs = evidence.iter().find(|e| e["name"] == "syncs").unwrap()["value"].as_f64();
    let counted = recording.number("SELECT count(*) FROM syscalls WHERE syscall = 'fsync'");
    assert_eq!(syncs, Some(counted as f64));
    // The query lists all such calls, the examples are among them.
    let query = storm["query"].as_str().unwrap();
    let number = findings
        .iter()
        .position(|f| f["rule"] == "sync-storm")
        .unwrap()
        + 1;
    let by = |arguments: &[&str]| {
        let mut command = Command::new(fathom());
        command.arg("query").arg(&recording.session).args(arguments);
        command.args(["--format", "csv"]).output().unwrap()
    };
    let by_number = by(&["--finding", &number.to_string()]);
    assert!(!by_number.stdout.is_empty());
    assert_eq!(text(&by_number.stdout), text(&by(&[query]).stdout));
    let none = by(&["--finding", "999"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(text(&none.stderr).contains("no finding 999"));
    // The numbers of the summary are those of the calls.
    let summary = &value["summary"];
    assert!(summary["in_calls_ns"].as_i64() <= summary["took_ns"].as_i64());
    let part = &summary["parts"][0];
    assert_eq!(
        (&part["activity"], &part["calls"]),
        (&"sync".into(), &counted.into())
    );
    let rids: Vec<_> = recording
        .rows(query)
        .iter()
        .map(|r| r.int("rid").unwrap())
        .collect();
    let examples = storm["examples"].as_array().unwrap();
    assert!(!examples.is_empty());
    for example in examples {
        assert!(
            rids.contains(&example["rid"].as_i64().unwrap()),
            "{example}"
        );
        let rid = &example["rid"];
        let calls = recording.rows(&format!(
            "SELECT syscall, dur_ns FROM syscalls WHERE rid = {rid}"
        ));
        assert_eq!(calls[0].text("syscall"), example["syscall"].as_str());
        assert_eq!(calls[0].int("dur_ns"), example["dur_ns"].as_i64());
    }
    let page = fathom_tests::tools::project()
        .join("docs")
        .join(storm["page"].as_str().unwrap());
    assert!(page.exists(), "{}", page.display());

    // The same as a table, and in the report.
    let rows = recording.rows(
        "SELECT rule, severity, correctness, cost_ns, title, evidence, examples[1] AS example
         FROM findings",
    );
    assert_eq!(rows.len(), findings.len());
    for (row, finding) in rows.iter().zip(findings) {
        for column in ["rule", "severity", "title"] {
            assert_eq!(row.text(column), finding[column].as_str());
        }
        assert_eq!(row.int("cost_ns"), finding["cost_ns"].as_i64());
        assert_eq!(row.int("example"), finding["examples"][0]["rid"].as_i64());
        let evidence: Value = serde_json::from_str(row.text("evidence").unwrap()).unwrap();
        let first = &finding["evidence"][0];
        assert_eq!(evidence[first["name"].as_str().unwrap()], first["value"]);
    }
    let report = fathom_tests::session::report(&recording.session);
    assert_eq!(
        report["findings"]["count"].as_u64(),
        Some(findings.len() as u64)
    );
    assert_eq!(report["findings"]["top"][0], findings[0]);
    let page = must_run(fathom(), ["report".as_ref(), recording.session.as_os_str()]);
    assert!(text(&page).contains("sync-storm: "), "{}", text(&page));
}

#[test]
fn hostile_names_are_text_everywhere() {
    need_root!();
    let python = need_python!();
    let scratch = Scratch::new();
    let name = "a\u{1b}[2J\n'\"<script>alert(1)<\u{202e}script>\u{9b}31m | é世";
    let recording = record(
        &scratch,
        &scratch.work().join(name),
        "fsync",
        &["--diagnose"],
    );
    let harmless = |what: &str, text: &str| {
        for bad in ['\u{1b}', '\u{202e}', '\u{9b}', '\r'] {
            assert!(!text.contains(bad), "{what}: {bad:?} in {text}");
        }
    };
    harmless("text", &text(&diagnose(&recording.session, "text").stdout));
    harmless("record", &recording.stderr);
    assert!(
        recording.stderr.contains("found sync-storm"),
        "{}",
        recording.stderr
    );
    let session = recording.session.as_os_str();
    harmless(
        "report",
        &text(&must_run(fathom(), ["report".as_ref(), session])),
    );
    let html = must_run(
        fathom(),
        [
            "report".as_ref(),
            session,
            "--format".as_ref(),
            "html".as_ref(),
        ],
    );
    let html = text(&html);
    harmless("html", &html);
    assert!(
        html.contains("sync-storm") && !html.contains("<script>alert"),
        "not escaped"
    );
    let diff = must_run(fathom(), ["diff".as_ref(), session, session]);
    harmless("diff", &text(&diff));
    // JSON keeps the name as it is.
    let json = diagnose(&recording.session, "json");
    let value: Value = serde_json::from_slice(&json.stdout).unwrap();
    // On a busy machine the first finding may be about its processors.
    let mut findings = value["findings"].as_array().unwrap().iter();
    let storm = findings.find(|finding| finding["rule"] == "sync-storm");
    let path = storm.unwrap()["subject"]["path"].as_str().unwrap();
    assert!(path.contains(name), "{path:?}");
    // SARIF: against the schema, and the place is the file.
    let sarif = diagnose(&recording.session, "sarif");
    assert_eq!(sarif.status.code(), Some(1));
    let file = scratch.root().join("log.sarif");
    fs::File::create(&file)
        .unwrap()
        .write_all(&sarif.stdout)
        .unwrap();
    let script = tools::project().join("tests/python/sarif_check.py");
    let uris = must_run(python, [script.as_os_str(), file.as_os_str()]);
    let uris: Vec<String> = serde_json::from_slice(&uris).unwrap();
    assert!(uris.iter().any(|uri| uri == path), "{uris:?}");
}

#[test]
fn rules_that_look_while_recording_find_what_those_do_that_look_later() {
    need_root!();
    let scratch = Scratch::new();
    let work = scratch.work();
    let recording = record(&scratch, &work, "fsync", &["--diagnose"]);
    recording.complete();
    let later: Value =
        serde_json::from_slice(&diagnose(&recording.session, "json").stdout).unwrap();
    let findings = later["findings"].as_array().unwrap();
    for finding in findings {
        let rule = finding["rule"].as_str().unwrap();
        let told = format!("fathom: found {rule} (");
        assert!(
            recording.stderr.contains(&told),
            "{rule}: {}",
            recording.stderr
        );
    }
    let told = recording
        .stderr
        .lines()
        .filter(|l| l.starts_with("fathom: found "))
        .count();
    assert_eq!(told, findings.len(), "{}", recording.stderr);
    let count = match findings.len() {
        1 => "1 finding".to_owned(),
        many => format!("{many} findings"),
    };
    let line = format!("fathom: {count}: fathom diagnose ");
    assert!(recording.stderr.contains(&line), "{}", recording.stderr);
    // What was there for others meanwhile is gone.
    assert!(!recording.session.join("findings.json").exists());

    let quiet = Scratch::new();
    let recording = record(&quiet, &quiet.work(), "fsync", &["--diagnose", "--quiet"]);
    assert!(!recording.stderr.contains("found"), "{}", recording.stderr);
}

#[test]
fn findings_appear_while_the_program_runs() {
    need_root!();
    let scratch = Scratch::new();
    let work = scratch.work();
    let script = "import os, sys, time
fd = os.open(sys.argv[1] + '/log', os.O_WRONLY | os.O_CREAT)
for i in range(64):
    os.write(fd, b'x' * 100)
    os.fsync(fd)
while True:
    os.write(fd, b'x' * 100)
    os.fsync(fd)
    time.sleep(0.0002)
";
    let mut running = Record::new(&scratch)
        .options(["--diagnose"])
        .command([
            "python3".as_ref(),
            "-c".as_ref(),
            script.as_ref(),
            work.as_os_str(),
        ])
        .spawn();
    let current = running.session().join("findings.json");
    let mut found = Value::Null;
    running.until("a finding in the session", || {
        let Ok(bytes) = fs::read(&current) else {
            return false;
        };
        found = serde_json::from_slice(&bytes).unwrap();
        found["findings"]
            .as_array()
            .is_some_and(|all| all.iter().any(|f| f["rule"] == "sync-storm"))
    });
    running.signal(rustix::process::Signal::TERM);
    let recording = running.wait();
    assert!(
        recording.stderr.contains("fathom: found sync-storm"),
        "{}",
        recording.stderr
    );
}
