//! The agent's findings and slow requests at a collector, which OpenTelemetry's own definitions read.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use fathom_tests::serve::serve;
use fathom_tests::session::{meta, query};
use fathom_tests::tools::project;
use fathom_tests::{Scratch, need_python, need_root};
use serde_json::Value;

use crate::agent::{Agent, Sample, sum};

const PATIENCE: Duration = Duration::from_secs(60);

/// A collector that fathom has not written the definitions of.
struct Collector {
    child: Child,
    directory: PathBuf,
    port: String,
}

impl Collector {
    fn start(scratch: &Scratch, python: &Path) -> Self {
        let directory = scratch.root().join("collector");
        fs::create_dir(&directory).unwrap();
        let mut collector = Command::new(python);
        collector.arg(project().join("tests/python/otlp_logs.py"));
        let (child, port) = serve(collector.arg(&directory));
        Self {
            child,
            directory,
            port,
        }
    }

    fn config(&self) -> String {
        format!(
            "[otlp]\nlogs = 'http://127.0.0.1:{}/v1/logs'\ninterval = '1s'\nattributes = {{ site = 'b' }}\n",
            self.port
        )
    }

    /// Whether it answers with a failure.
    fn fail(&self, fails: bool) {
        let down = self.directory.join("down");
        match fails {
            true => fs::write(down, "").unwrap(),
            false => fs::remove_file(down).unwrap(),
        }
    }

    /// What it has taken.
    fn taken(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.directory.join("taken")).unwrap_or_default();
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        lines.collect()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn wait_for(what: &str, mut is: impl FnMut() -> bool) {
    let from = Instant::now();
    while !is() {
        assert!(from.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

fn count(agent: &Agent, name: &str) -> f64 {
    sum(&agent.metrics(), name, &[])
}

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_else(|| panic!("{value}"))
}

/// A program of a name of its own.
fn run(scratch: &Scratch, name: &str, script: &str) {
    let python = scratch.work().join(name);
    if !python.exists() {
        fs::copy("/usr/bin/python3", &python).unwrap();
    }
    let status = Command::new(&python)
        .args(["-c", script])
        .current_dir(scratch.work())
        .status();
    assert!(status.unwrap().success());
}

/// Without the sync of the new file a crash can leave neither the old nor the new one.
const RISK: &str = "
import os, time
for turn in range(60):
    with open('settings.new', 'w') as new:
        new.write('x' * 100)
    os.rename('settings.new', 'settings')
    time.sleep(0.05)
";

#[test]
fn a_collector_gets_each_finding_once() {
    need_root!();
    let python = need_python!();
    let scratch = Scratch::new();
    let collector = Collector::start(&scratch, &python);
    let record = "[record]\ncomm = 'logs-risk'\nrows = 'all'\ndiagnose = true\n";
    let config = format!("{record}{}", collector.config());

    let is_risk = |metrics: &[Sample]| {
        let rule = [("rule", "rename-without-fsync")];
        sum(metrics, "fathom_findings_total", &rule) >= 1.0
    };

    // A collector that fails, and an agent that is killed.
    collector.fail(true);
    let agent = Agent::start(&scratch, &config);
    run(&scratch, "logs-risk", RISK);
    wait_for("nothing waits", || {
        let metrics = agent.metrics();
        let found = sum(&metrics, "fathom_findings_total", &[]);
        is_risk(&metrics) && sum(&metrics, "fathom_logs_waiting", &[]) == found
    });
    agent.hears("cannot send logs");
    assert!(count(&agent, "fathom_log_failures_total") >= 1.0);
    agent.kill();
    assert_eq!(collector.taken().len(), 0);
    let spool = fs::read_dir(scratch.root().join("state/logs")).unwrap();
    let names = spool.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let first = names.filter(|name| name.ends_with(".log.json")).count();
    assert!(first > 0);

    let agent = Agent::start(&scratch, &config);
    agent.hears("cannot send logs");
    collector.fail(false);
    run(&scratch, "logs-risk", RISK);
    let mut all = 0.0;
    wait_for("it has not sent all", || {
        let metrics = agent.metrics();
        let found = sum(&metrics, "fathom_findings_total", &[]);
        all = first as f64 + found;
        is_risk(&metrics) && sum(&metrics, "fathom_logs_total", &[]) == all
    });
    assert_eq!(count(&agent, "fathom_logs_dropped_total"), 0.0);
    // On a busy machine other rules may find something meanwhile.
    let taken = collector.taken();
    assert!(taken.len() as f64 >= all);
    let ids = |taken: &[Value]| -> BTreeSet<String> {
        let id = |log: &Value| {
            log["attributes"]["log.record.uid"]
                .as_str()
                .unwrap()
                .to_owned()
        };
        taken.iter().map(id).collect()
    };
    assert_eq!(ids(&taken).len(), taken.len());
    let sessions = agent.stop();
    // Rules look at everything once more at the end.
    let taken = collector.taken();
    assert_eq!(ids(&taken).len(), taken.len());

    let mut recordings: Vec<String> = sessions
        .iter()
        .filter(|path| path.join("session.json").exists())
        .map(|path| meta(path)["id"].as_str().unwrap().to_owned())
        .collect();
    recordings.sort();
    assert_eq!(recordings.len(), 2);
    // The filter leaves out the calls of others, so the rule is not sure.
    let is = |log: &&Value| log["attributes"]["fathom.rule"] == "rename-without-fsync";
    let renames: Vec<&Value> = taken.iter().filter(is).collect();
    let mut of: Vec<&str> = renames
        .iter()
        .map(|log| log["attributes"]["fathom.recording.id"].as_str().unwrap())
        .collect();
    of.sort();
    assert_eq!(of, recordings);
    let host = fs::read_to_string("/etc/machine-id").unwrap_or_default();
    for log in renames {
        assert_eq!(
            (&log["event"], number(&log["severity"])),
            (&"fathom.finding".into(), 9)
        );
        assert_eq!(log["resource"]["site"], "b");
        assert_eq!(log["resource"]["service.name"], "fathom");
        let id = log["resource"]["host.id"].as_str().unwrap_or_default();
        assert_eq!(id, host.trim());
        let name = rustix::system::uname();
        let name = name.nodename().to_string_lossy();
        assert_eq!(log["resource"]["host.name"], *name);
        let body = log["body"].as_str().unwrap();
        assert!(body.contains("settings"), "{body}");
        assert_eq!(log["attributes"]["thread.name"], "logs-risk");
        assert!(number(&log["attributes"]["process.pid"]) > 1);
    }
}

/// Reads from a FIFO that take at least these times, milliseconds.
fn reads(times: &[u32]) -> String {
    format!(
        "
import os, threading, time
if not os.path.exists('slow-fifo'):
    os.mkfifo('slow-fifo')
fd = os.open('slow-fifo', os.O_RDWR)
for ms in {times:?}:
    threading.Timer(ms / 1000, os.write, (fd, b'x')).start()
    os.read(fd, 1)
"
    )
}

/// Saves by `fathom_saves_total`.
fn saved(agent: &Agent, saves: f64) {
    wait_for("it was not saved", || {
        count(agent, "fathom_saves_total") == saves
    });
}

const SLOW: &str = "dur_ns > 150e6 AND syscall = 'read' AND path LIKE '%/slow-fifo'";

#[test]
fn a_collector_gets_the_slowest_requests_of_each_save() {
    need_root!();
    let python = need_python!();
    let scratch = Scratch::new();
    let collector = Collector::start(&scratch, &python);
    let config = format!(
        "[record]\ncomm = 'logs-slow'\nsyscalls = 'all'\nrows = 'all'\nsave-when = \"{SLOW}\"\nsave-pause = '10s'\n{}\
         slow-requests = 3\nfindings = false\n",
        collector.config()
    );
    let agent = Agent::start(&scratch, &config);
    run(&scratch, "logs-slow", &reads(&[160]));
    saved(&agent, 1.0);
    // The pause lets none of these make a session, and the next session has them.
    run(&scratch, "logs-slow", &reads(&[200, 400, 300, 500]));
    std::thread::sleep(Duration::from_secs(10));
    run(&scratch, "logs-slow", &reads(&[180]));
    saved(&agent, 2.0);
    wait_for("it has not sent all", || {
        count(&agent, "fathom_logs_total") == 4.0
    });
    assert_eq!(count(&agent, "fathom_slow_request_failures_total"), 0.0);
    let sessions = agent.stop();
    let taken = collector.taken();
    let last = sessions
        .iter()
        .filter(|path| path.join("session.json").exists())
        .find(|path| {
            meta(path)["history"]["saved_from"]
                .as_str()
                .unwrap_or("")
                .is_empty()
        })
        .unwrap();
    // The whole recording has all of them.
    let rows = query(
        last,
        &format!("SELECT rid, dur_ns, tid, path FROM syscalls WHERE {SLOW} ORDER BY ts_ns"),
    );
    assert_eq!(rows.len(), 6, "{rows:?}");
    // The first save had one request; of the others, the second has the slowest. A busy machine may
    // make them slower than asked for.
    let (first, mut later) = (&rows[0], rows[1..].iter().collect::<Vec<_>>());
    later.sort_by_key(|row| -row.int("dur_ns").unwrap());
    let described = [first].into_iter().chain(later.into_iter().take(3));
    let expected: Vec<i64> = described.map(|row| row.int("rid").unwrap()).collect();
    let rids: Vec<i64> = taken
        .iter()
        .map(|log| number(&log["attributes"]["fathom.rid"]))
        .collect();
    let sorted = |rids: &[i64]| rids.iter().copied().collect::<BTreeSet<i64>>();
    assert_eq!((rids.len(), sorted(&rids)), (4, sorted(&expected)));
    let saves: BTreeSet<String> = sessions
        .iter()
        .filter(|path| *path != last && path.join("session.json").exists())
        .map(|path| meta(path)["id"].as_str().unwrap().to_owned())
        .collect();
    for log in &taken {
        let attributes = &log["attributes"];
        let row = rows
            .iter()
            .find(|row| row.int("rid") == attributes["fathom.rid"].as_i64());
        let row = row.unwrap();
        assert_eq!(log["event"], "fathom.slow_request");
        assert_eq!(attributes["fathom.duration_ns"].as_i64(), row.int("dur_ns"));
        assert_eq!(attributes["thread.id"].as_i64(), row.int("tid"));
        let path = attributes["file.path"].as_str().unwrap();
        assert!(path.ends_with("/slow-fifo"), "{path}");
        assert_eq!(attributes["fathom.recording.id"], meta(last)["id"]);
        assert!(saves.contains(attributes["fathom.session.id"].as_str().unwrap()));
        assert_eq!(attributes["fathom.saved_because"], SLOW);
        let why = log["body"].as_str().unwrap();
        assert!(
            why.starts_with("This read on ") && why.contains("logs-slow"),
            "{why}"
        );
        assert!(log["time"].as_u64().unwrap() < log["observed"].as_u64().unwrap());
    }
}

#[test]
fn redacted_logs_have_no_names() {
    need_root!();
    let python = need_python!();
    let scratch = Scratch::new();
    let collector = Collector::start(&scratch, &python);
    let key = scratch.root().join("key");
    fs::write(&key, [7; 32]).unwrap();
    let config = format!(
        "[record]\ncomm = 'logs-hidden'\nsyscalls = 'all'\nrows = 'all'\ndiagnose = true\nsave-when = \"{SLOW}\"\n{}\
         slow-requests = 3\nredact = true\nkey = {key:?}\n",
        collector.config()
    );
    let agent = Agent::start(&scratch, &config);
    run(&scratch, "logs-hidden", &reads(&[160]));
    saved(&agent, 1.0);
    run(&scratch, "logs-hidden", RISK);
    wait_for("nothing was sent", || {
        let taken = collector.taken();
        let has = |event: &str| taken.iter().any(|log| log["event"] == event);
        has("fathom.slow_request") && has("fathom.finding")
    });
    let sessions = agent.stop();
    let logs = scratch.root().join("state/logs");
    assert!(sessions.contains(&logs));
    assert!(!logs.join("redacted.fathom").exists());
    let taken = collector.taken();
    let slow: Vec<&Value> = taken
        .iter()
        .filter(|log| log["event"] == "fathom.slow_request")
        .collect();
    assert_eq!(slow.len(), 1);
    let why = slow[0]["body"].as_str().unwrap();
    assert!(why.starts_with("This read on "), "{why}");
    let text = fs::read_to_string(collector.directory.join("taken")).unwrap();
    for secret in [
        "logs-hidden",
        "slow-fifo",
        "settings",
        scratch.work().to_str().unwrap(),
    ] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
}
