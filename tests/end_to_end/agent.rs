//! The agent: its sums against what programs did and against the rows, and what it does when it is
//! asked, restarted, or killed.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use fathom_tests::environment::{fathom, must_run};
use fathom_tests::page::{Answer, Page};
use fathom_tests::session::{meta, query};
use fathom_tests::{Record, Scratch, need_root};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::ship;

pub const PATIENCE: Duration = Duration::from_secs(60);
/// Counts are read once a second, and rows pass the sums a moment later.
pub const SETTLED: Duration = Duration::from_millis(2500);

/// An agent that runs.
pub struct Agent {
    child: Child,
    said: Receiver<String>,
    pub page: Page,
    config: PathBuf,
    directory: PathBuf,
}

impl Agent {
    /// Starts one whose configuration has `more` besides address and directory.
    pub fn start(scratch: &Scratch, more: &str) -> Agent {
        let directory = scratch.root().join("state");
        let config = scratch.root().join("agent.toml");
        write_config(&config, &directory, more);
        let mut child = Command::new(fathom())
            .args(["agent", "--config"])
            .arg(&config)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut err = BufReader::new(child.stderr.take().unwrap());
        let (to, said) = channel();
        std::thread::spawn(move || {
            let mut line = String::new();
            while err.read_line(&mut line).is_ok_and(|n| n > 0) {
                to.send(line.trim_end().to_owned()).ok();
                line.clear();
            }
        });
        let mut agent = Agent {
            child,
            said,
            page: Page::at("http://127.0.0.1:9/#token=secret"),
            config,
            directory,
        };
        let address = agent.hears("metrics: ");
        let (_, address) = address.split_once("http://").unwrap();
        let address: SocketAddr = address.strip_suffix("/metrics").unwrap().parse().unwrap();
        agent.page = Page::at(&format!("http://{address}/#token=secret"));
        agent.hears("fathom: recording");
        agent
    }

    /// Waits until it says a line with `part`.
    pub fn hears(&self, part: &str) -> String {
        let from = Instant::now();
        loop {
            let left = PATIENCE.saturating_sub(from.elapsed());
            let line = self.said.recv_timeout(left);
            let line = line.unwrap_or_else(|_| panic!("it never said {part:?}"));
            if line.contains(part) {
                return line;
            }
        }
    }

    fn get(&self, path: &str) -> Answer {
        self.page.raw(&self.page.head("GET", path, ""), b"")
    }

    /// Its metrics now.
    pub fn metrics(&self) -> Vec<Sample> {
        let answer = self.get("/metrics");
        assert_eq!(answer.status, 200);
        samples(&answer.text())
    }

    /// Kills it.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Ends it; returns its sessions.
    pub fn stop(mut self) -> Vec<PathBuf> {
        self.signal(Signal::TERM);
        self.hears(" stored, ");
        assert!(self.child.wait().unwrap().success());
        sessions(&self.directory)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // Only a test that failed has not stopped it.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn sessions(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap();
    let mut all: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    all.retain(|path| !path.ends_with(".lock"));
    all.sort();
    all
}

fn write_config(path: &Path, directory: &Path, more: &str) {
    // Tables that `more` begins have their keys behind these.
    let mut text = more.to_owned();
    for (table, keys) in [
        ("metrics", "listen = '127.0.0.1:0'".to_owned()),
        ("sessions", format!("directory = {directory:?}")),
    ] {
        let head = format!("[{table}]\n");
        match text.contains(&head) {
            true => text = text.replace(&head, &format!("{head}{keys}\n")),
            false => text.push_str(&format!("\n{head}{keys}\n")),
        }
    }
    fs::write(path, text).unwrap();
}

/// A line of OpenMetrics.
pub struct Sample {
    name: String,
    labels: Vec<(String, String)>,
    value: f64,
}

impl Sample {
    fn label(&self, name: &str) -> &str {
        let found = self.labels.iter().find(|(label, _)| label == name);
        found.map_or("", |(_, value)| value)
    }
}

/// Values of labels in these tests have nothing that is escaped.
fn samples(text: &str) -> Vec<Sample> {
    assert!(text.ends_with("# EOF\n"));
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let (key, value) = line.rsplit_once(' ').unwrap();
            let (name, labels) = key.split_once('{').unwrap_or((key, ""));
            let labels = labels.trim_end_matches('}').split("\",");
            let labels = labels.filter_map(|label| {
                let (name, value) = label.split_once("=\"")?;
                Some((name.to_owned(), value.trim_end_matches('"').to_owned()))
            });
            Sample {
                name: name.to_owned(),
                labels: labels.collect(),
                value: value.parse().unwrap(),
            }
        })
        .collect()
}

/// The sum of the samples `name` with these labels.
pub fn sum(samples: &[Sample], name: &str, labels: &[(&str, &str)]) -> f64 {
    let fits = |sample: &&Sample| {
        let fits = |(name, value): &(&str, &str)| sample.label(name) == *value;
        sample.name == name && labels.iter().all(fits)
    };
    samples.iter().filter(fits).map(|sample| sample.value).sum()
}

const COUNT: &str = "fathom_call_duration_seconds_count";
const SUM: &str = "fathom_call_duration_seconds_sum";
const BYTES: &str = "fathom_call_bytes_total";
const ERRORS: &str = "fathom_call_errors_total";

/// A copy of dd with a name of its own, so that nothing else on the machine has it.
pub fn own_dd(scratch: &Scratch, name: &str) -> PathBuf {
    let path = scratch.work().join(name);
    fs::copy("/bin/dd", &path).unwrap();
    path
}

/// Writes and reads a file in blocks of 4,096 bytes: 2,000 writes, an fsync, 2,001 reads.
pub fn copy(dd: &Path, scratch: &Scratch) {
    let file = scratch.work().join("data");
    let (to, from) = (
        format!("of={}", file.display()),
        format!("if={}", file.display()),
    );
    let run = |args: &[&str]| drop(must_run(dd, args));
    run(&[
        "if=/dev/zero",
        &to,
        "bs=4096",
        "count=2000",
        "conv=fsync",
        "status=none",
    ]);
    run(&[&from, "of=/dev/null", "bs=4096", "status=none"]);
}

/// The sum of a command's samples on regular files.
fn of_files(metrics: &[Sample], name: &str, command: &str, operation: &str) -> f64 {
    let labels = [
        ("command", command),
        ("file_type", "regular"),
        ("operation", operation),
    ];
    sum(metrics, name, &labels)
}

/// Calls are counted before the names of new processes and files are decoded.
#[test]
fn calls_of_new_processes_have_labels() {
    need_root!();
    let scratch = Scratch::new();
    let agent = Agent::start(&scratch, "[metrics]\nby = ['command', 'file_type']\n");
    let names: Vec<String> = (0..12).map(|i| format!("agent-dd-{i}")).collect();
    for name in &names {
        copy(&own_dd(&scratch, name), &scratch);
        std::thread::sleep(Duration::from_millis(70));
    }
    std::thread::sleep(SETTLED);
    let metrics = agent.metrics();
    for name in &names {
        assert_eq!(of_files(&metrics, COUNT, name, "write"), 2000.0, "{name}");
    }
}

#[test]
fn sums_equal_what_programs_did_and_the_rows() {
    need_root!();
    let scratch = Scratch::new();
    let dd = own_dd(&scratch, "agent-dd");
    let agent = Agent::start(
        &scratch,
        "[record]\nkeep = '1h'\n[metrics]\nlabel-sets = 5000\nby = ['command', 'file_type']\n",
    );
    for _ in 0..3 {
        copy(&dd, &scratch);
    }
    let missing = Command::new(&dd).arg("if=/nowhere").output().unwrap();
    assert!(!missing.status.success());
    std::thread::sleep(SETTLED);
    let metrics = agent.metrics();
    let of = |name, operation| of_files(&metrics, name, "agent-dd", operation);
    assert_eq!(of(COUNT, "write"), 6000.0);
    assert_eq!(of(BYTES, "write"), 6000.0 * 4096.0);
    assert_eq!(of(COUNT, "sync"), 3.0);
    // The loader reads the heads of libraries.
    assert!(of(COUNT, "read") >= 6003.0 && of(BYTES, "read") >= 6000.0 * 4096.0);
    let command = [("command", "agent-dd")];
    assert!(sum(&metrics, ERRORS, &command) >= 1.0);
    assert_eq!(sum(&metrics, "fathom_calls_lost_total", &[]), 0.0);
    assert_eq!(sum(&metrics, "fathom_calls_without_labels_total", &[]), 0.0);
    let health = agent.get("/health");
    assert_eq!((health.status, health.text().as_str()), (200, "ok\n"));

    let all = agent.stop();
    let [ring] = &all[..] else {
        panic!("{all:?}");
    };
    let rows = query(
        ring,
        "WITH dd AS (SELECT DISTINCT pid FROM processes WHERE pid = tid AND comm = 'agent-dd'),
        calls AS (
            SELECT 1 AS n, greatest(bytes, 0) AS bytes, (errno IS NOT NULL)::INT AS errors, dur_ns
            FROM syscalls JOIN dd USING (pid) WHERE ret IS NOT NULL
            UNION ALL
            SELECT count, bytes, errors, dur_ns FROM counters JOIN dd USING (pid)
        )
        SELECT sum(n)::BIGINT AS n, sum(bytes)::BIGINT AS bytes, sum(errors)::BIGINT AS errors,
            sum(dur_ns)::BIGINT AS dur_ns
        FROM calls",
    );
    let row = |column| rows[0].int(column).unwrap() as f64;
    assert_eq!(sum(&metrics, COUNT, &command), row("n"));
    assert_eq!(sum(&metrics, BYTES, &command), row("bytes"));
    assert_eq!(sum(&metrics, ERRORS, &command), row("errors"));
    let dur_ns = sum(&metrics, SUM, &command) * 1e9;
    assert!((dur_ns - row("dur_ns")).abs() < 1000.0, "{dur_ns}");
    let totals = &meta(ring)["totals"];
    let total = |name: &str| totals[name].as_u64().unwrap_or(0);
    assert!(total("counted") > 0, "{totals}");
    assert_eq!(
        total("seen"),
        total("stored") + total("counted") + total("lost") + total("expired") + total("missing")
    );
}

/// Buckets are of all calls, and each has at least those of the one before.
#[test]
fn histograms_hold_every_call() {
    need_root!();
    let scratch = Scratch::new();
    let agent = Agent::start(&scratch, "[metrics]\nby = ['command']\n");
    copy(&own_dd(&scratch, "agent-hist"), &scratch);
    std::thread::sleep(SETTLED);
    let metrics = agent.metrics();
    let counts = metrics.iter().filter(|sample| sample.name == COUNT);
    let mut checked = 0;
    for count in counts.filter(|sample| sample.label("command") == "agent-hist") {
        let operation = count.label("operation");
        let buckets = metrics.iter().filter(|sample| {
            sample.name == "fathom_call_duration_seconds_bucket"
                && sample.label("command") == "agent-hist"
                && sample.label("operation") == operation
        });
        let values: Vec<f64> = buckets.map(|bucket| bucket.value).collect();
        assert!(values.is_sorted(), "{operation}: {values:?}");
        assert_eq!(values.last(), Some(&count.value), "{operation}");
        assert!(values.len() == 20 && values[0] < count.value || operation != "sync");
        checked += 1;
    }
    assert!(checked >= 4, "{checked}");
    agent.stop();
}

#[test]
fn a_recording_beside_it_sees_the_same() {
    need_root!();
    let scratch = Scratch::new();
    let dd = own_dd(&scratch, "agent-both");
    let agent = Agent::start(&scratch, "[metrics]\nby = ['command', 'file_system']\n");
    let file = scratch.work().join("data");
    let to = format!("of={}", file.display());
    let recording = Record::named(&scratch, "by-hand").command([
        dd.to_str().unwrap(),
        "if=/dev/zero",
        &to,
        "bs=4096",
        "count=3000",
        "status=none",
    ]);
    let recording = recording.run();
    std::thread::sleep(SETTLED);
    let metrics = agent.metrics();
    let rows = query(
        &recording.session,
        "SELECT count(*) AS n FROM syscalls WHERE syscall = 'write' AND path LIKE '%/data'",
    );
    assert_eq!(rows[0].int("n"), Some(3000));
    let labels = [("command", "agent-both"), ("operation", "write")];
    // What starts the program writes to files of /proc first.
    let proc = [&labels[..], &[("file_system", "proc")]].concat();
    let writes = sum(&metrics, COUNT, &labels) - sum(&metrics, COUNT, &proc);
    assert_eq!(writes, 3000.0);
    agent.stop();
}

#[test]
fn a_reload_takes_what_is_right_only() {
    need_root!();
    let scratch = Scratch::new();
    let agent = Agent::start(&scratch, "[metrics]\nby = ['command']\n");
    let seen = |agent: &Agent| sum(&agent.metrics(), "fathom_calls_seen_total", &[]);
    copy(&own_dd(&scratch, "agent-hup"), &scratch);
    std::thread::sleep(SETTLED);
    let before = seen(&agent);
    assert!(before > 4000.0);
    for (wrong, part) in [
        ("[metrics]\nby = ['color']\n", "color"),
        ("[record]\nrows = 'some'\n", "some"),
        ("[record]\nsave-when = 'no_such > 1'\n", "no_such"),
    ] {
        write_config(&agent.config, &agent.directory, wrong);
        agent.signal(Signal::HUP);
        let said = agent.hears("goes on with the configuration from before");
        assert!(said.contains(part), "{said}");
    }
    assert_eq!(sum(&agent.metrics(), "fathom_recordings_total", &[]), 1.0);
    write_config(
        &agent.config,
        &agent.directory,
        "[metrics]\nby = ['command']\n[record]\nsample = 1\n",
    );
    agent.signal(Signal::HUP);
    agent.hears("was read again");
    agent.hears("fathom: recording");
    let metrics = agent.metrics();
    assert_eq!(sum(&metrics, "fathom_recordings_total", &[]), 2.0);
    // Counters never go back, and the sums of the same labels go on.
    assert!(seen(&agent) >= before);
    assert!(sum(&metrics, COUNT, &[("command", "agent-hup")]) > 4000.0);
    // The time in between is known.
    assert!(sum(&metrics, "fathom_unrecorded_seconds_total", &[]) > 0.0);
    assert_eq!(agent.stop().len(), 2);
}

#[test]
fn what_a_killed_agent_left_is_repaired_and_old_sessions_go() {
    need_root!();
    let scratch = Scratch::new();
    let mut agent = Agent::start(&scratch, "[sessions]\nkeep = 2\n");
    copy(&own_dd(&scratch, "agent-kill"), &scratch);
    std::thread::sleep(SETTLED);
    agent.child.kill().unwrap();
    agent.child.wait().unwrap();
    let left = sessions(&agent.directory);
    assert_eq!(
        (left.len(), meta(&left[0])["state"].as_str()),
        (1, Some("recording"))
    );
    // Not the agent's: it stays.
    let foreign = agent.directory.join("mine.fathom");
    must_run(
        "cp",
        [Path::new("-r"), &left[0], &foreign].map(Path::as_os_str),
    );

    let agent = Agent::start(&scratch, "[sessions]\nkeep = 2\n");
    assert_ne!(meta(&left[0])["state"].as_str(), Some("recording"));
    for _ in 0..3 {
        agent.signal(Signal::USR1);
        agent.hears("saved");
    }
    let all = agent.stop();
    let own: Vec<&PathBuf> = all.iter().filter(|path| **path != foreign).collect();
    // Two, and the ring.
    assert_eq!(own.len(), 3, "{all:?}");
    assert!(!left[0].exists() && foreign.exists());
    for session in own {
        query(session, "SELECT count(*) AS n FROM syscalls");
    }
}

#[test]
fn findings_are_counted_and_saved() {
    need_root!();
    let scratch = Scratch::new();
    // On a busy machine there is a finding about that right before.
    let agent = Agent::start(
        &scratch,
        "[record]\ncomm = 'agent-risk'\nrows = 'all'\n[sessions]\nsave-on = 'low'\npause = '1ms'\n",
    );
    let python = scratch.work().join("agent-risk");
    fs::copy("/usr/bin/python3", &python).unwrap();
    // Without the sync of the new file a crash can leave neither the old nor the new one. The
    // filter leaves out the calls of others, so the rule is not sure.
    let script = "
import os, time
for turn in range(60):
    with open('settings.new', 'w') as new:
        new.write('x' * 100)
    os.rename('settings.new', 'settings')
    time.sleep(0.05)
";
    let status = Command::new(&python)
        .args(["-c", script])
        .current_dir(scratch.work())
        .status();
    assert!(status.unwrap().success());
    agent.hears("(finding rename-without-fsync)");
    let metrics = agent.metrics();
    let found = [("rule", "rename-without-fsync"), ("severity", "low")];
    assert!(sum(&metrics, "fathom_findings_total", &found) >= 1.0);
    let saves = sum(&metrics, "fathom_saves_total", &[]);
    assert!(saves >= 1.0);
    assert!(agent.stop().len() as f64 > saves);
}

#[test]
fn closed_sessions_are_shipped() {
    need_root!();
    let scratch = Scratch::new();
    let lake = scratch.root().join("lake");
    let agent = Agent::start(&scratch, &format!("[ship]\nto = {lake:?}\n"));
    agent.signal(Signal::USR1);
    agent.hears("saved");
    let from = Instant::now();
    loop {
        let metrics = agent.metrics();
        if sum(&metrics, "fathom_ships_total", &[]) >= 1.0 {
            assert_eq!(sum(&metrics, "fathom_ships_waiting", &[]), 0.0);
            assert_eq!(sum(&metrics, "fathom_ship_failures_total", &[]), 0.0);
            break;
        }
        assert!(from.elapsed() < PATIENCE, "nothing was shipped");
        std::thread::sleep(Duration::from_millis(100));
    }
    let all = agent.stop();
    // The one that was recorded last is closed now: the next agent ships it.
    assert_eq!(all.len(), 2);
    let shipped = |session: &Path| -> i64 {
        let of_session = format!("/session={}/", meta(session)["id"].as_str().unwrap());
        let mut objects = ship::files(&lake);
        objects.retain(|name, _| name.contains(&of_session));
        ship::rows(&objects, "syscalls", None).0
    };
    let stored = |session: &Path| -> i64 {
        let rows = query(session, "SELECT count(*) AS n FROM syscalls");
        rows[0].int("n").unwrap()
    };
    assert_eq!(shipped(&all[0]), stored(&all[0]));
    let agent = Agent::start(&scratch, &format!("[ship]\nto = {lake:?}\n"));
    let from = Instant::now();
    while sum(&agent.metrics(), "fathom_ships_total", &[]) < 2.0 {
        assert!(from.elapsed() < PATIENCE, "the rest was not shipped");
        std::thread::sleep(Duration::from_millis(100));
    }
    agent.stop();
    for session in &all {
        assert_eq!(shipped(session), stored(session));
    }
}

#[test]
fn only_who_has_the_token_reads_metrics() {
    need_root!();
    let scratch = Scratch::new();
    let token = scratch.root().join("token");
    fs::write(&token, "secret\n").unwrap();
    let agent = Agent::start(&scratch, &format!("[metrics]\ntoken-file = {token:?}\n"));
    assert_eq!(agent.get("/metrics").status, 200);
    let address = agent.page.address;
    let stranger = Page::at(&format!("http://{address}/#token=secreT"));
    let get = |path| stranger.raw(&stranger.head("GET", path, ""), b"").status;
    assert_eq!(get("/metrics"), 401);
    assert_eq!(get("/health"), 200);
    assert_eq!(get("/other"), 404);
    let head = "GET /metrics HTTP/1.1\r\nHost: evil.example\r\nAuthorization: Bearer secret\r\n\
                Connection: close\r\n\r\n";
    assert_eq!(agent.page.raw(head, b"").status, 403);
    agent.stop();
}

#[test]
fn wrong_configurations_are_refused_before_anything_is_recorded() {
    let scratch = Scratch::new();
    let config = scratch.root().join("agent.toml");
    let check = |config: &Path| {
        let output = Command::new(fathom())
            .args(["agent", "--check", "--config"])
            .arg(config)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), said)
    };
    for (text, part) in [
        ("[record]\noutput = '/x'\n", "output is not an option"),
        ("[record]\nlayers = 'no-such'\n", "no-such"),
        ("[metrics]\nby = 'command'\n", "line 2"),
        ("[otlp]\nendpoint = 'ftp://x'\n", "https://"),
        (
            "[otlp]\nendpoint = 'http://x'\nslow-requests = 3\n",
            "otlp.logs",
        ),
    ] {
        fs::write(&config, text).unwrap();
        let (status, said) = check(&config);
        assert_eq!(status, Some(2), "{text}: {said}");
        assert!(said.contains(part) && said.contains("agent.toml"), "{said}");
    }
    fs::write(&config, "").unwrap();
    assert_eq!(check(&config).0, Some(0));
    must_run("chmod", ["666".as_ref(), config.as_os_str()]);
    let (status, said) = check(&config);
    assert_eq!(status, Some(2));
    assert!(said.contains("written by other users"), "{said}");
    let nowhere = scratch.root().join("nowhere.toml");
    assert_eq!(check(&nowhere).0, Some(2));
}

/// Takes one message at a time, as a collector does; the first is refused.
fn collector(listener: TcpListener) -> Receiver<Value> {
    let (to, messages) = channel();
    std::thread::spawn(move || {
        for (turn, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut length = 0;
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line).unwrap() == 0 || line.trim().is_empty() {
                    break;
                }
                let line = line.to_ascii_lowercase();
                if let Some(value) = line.strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            let status = if turn == 0 { "503 Busy" } else { "200 OK" };
            let answer =
                format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{{}}");
            // Before the answer: the agent ends when it has the last one.
            if turn > 0 && to.send(serde_json::from_slice(&body).unwrap()).is_err() {
                break;
            }
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    messages
}

#[test]
fn a_collector_gets_the_same_numbers() {
    need_root!();
    let scratch = Scratch::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}/v1/metrics", listener.local_addr().unwrap());
    let messages = collector(listener);
    let agent = Agent::start(
        &scratch,
        &format!(
            "[metrics]\nby = ['command', 'file_type']\n[otlp]\nendpoint = '{endpoint}'\n\
             interval = '1s'\nattributes = {{ site = 'b' }}\n"
        ),
    );
    agent.hears("cannot send metrics");
    copy(&own_dd(&scratch, "agent-otlp"), &scratch);
    std::thread::sleep(SETTLED);
    agent.stop();
    // The last one was sent at the end.
    let message = messages.try_iter().last().unwrap();
    let resource = &message["resourceMetrics"][0];
    assert!(
        resource["resource"]["attributes"]
            .to_string()
            .contains("\"site\"")
    );
    let metrics = resource["scopeMetrics"][0]["metrics"].as_array().unwrap();
    let durations = metrics
        .iter()
        .find(|metric| metric["name"] == "fathom_call_duration_seconds")
        .unwrap();
    let points = durations["histogram"]["dataPoints"].as_array().unwrap();
    let is = |point: &&Value, values: &[&str]| {
        let attributes = point["attributes"].to_string();
        values
            .iter()
            .all(|value| attributes.contains(&format!("\"{value}\"")))
    };
    let writes = points
        .iter()
        .find(|point| is(point, &["agent-otlp", "write", "regular"]))
        .unwrap();
    assert_eq!(writes["count"], "2000");
    let buckets = writes["bucketCounts"].as_array().unwrap();
    let number = |value: &Value| value.as_str().unwrap().parse::<u64>().unwrap();
    assert_eq!(buckets.iter().map(number).sum::<u64>(), 2000);
    let bounds = writes["explicitBounds"].as_array().unwrap();
    assert_eq!(buckets.len(), bounds.len() + 1);
}
