//! Other hosts over ssh: `record --on` and `pull`, with real servers of ssh. The hosts have networks
//! and starts of kernels of their own, or are this machine.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use fathom_tests::environment::{fathom, must_run};
use fathom_tests::session::meta;
use fathom_tests::{Record, Scratch, need_program, need_root};
use rustix::process::{Pid, Signal, kill_process};

use crate::sets::{ANSWER, Hosts, REQUEST, REQUESTS};

const PATIENCE: Duration = Duration::from_secs(120);
/// An argument that a shell would change.
const SPECIAL: &str = "it's \"$HOME\" \\ *\n`id`; #";

/// Server on host db, client on host web.
const PROGRAM: &str = "
import os, socket, sys, time
if socket.gethostname() == 'db':
    listening = socket.socket()
    listening.bind(('10.77.0.1', 7000))
    listening.listen()
    file = open(sys.argv[1], 'wb')
    connection, _ = listening.accept()
    for number in range(200):
        file.write(connection.recv(300, socket.MSG_WAITALL))
        file.flush()
        if number % 10 == 0:
            os.fsync(file.fileno())
        connection.sendall(b'%011d' % number)
else:
    while True:
        connection = socket.socket()
        try:
            connection.connect(('10.77.0.1', 7000))
            break
        except ConnectionRefusedError:
            time.sleep(0.01)
    for number in range(200):
        connection.sendall(b'x' * 300)
        assert int(connection.recv(11, socket.MSG_WAITALL)) == number
print('\\x1b[2J' + ascii(sys.argv[2]), flush=True)
";

/// Keys, and the options of ssh for the hosts that were added.
struct Ssh<'a> {
    scratch: &'a Scratch,
    config: PathBuf,
    servers: Vec<Child>,
}

impl<'a> Ssh<'a> {
    fn new(scratch: &'a Scratch) -> Self {
        let root = scratch.root();
        for key in ["key", "host-key"] {
            let file = root.join(key);
            must_run(
                "ssh-keygen",
                ["-q", "-t", "ed25519", "-N", "", "-f", text(&file)],
            );
        }
        let config = root.join("ssh-config");
        let options = format!(
            "IdentityFile {}\nIdentitiesOnly yes\nUser root\nBatchMode yes\nLogLevel ERROR\n\
             StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n",
            root.join("key").display()
        );
        std::fs::write(&config, options).unwrap();
        // Where Debian's sshd keeps nothing, but wants a directory.
        std::fs::create_dir_all("/run/sshd").unwrap();
        Self {
            scratch,
            config,
            servers: Vec::new(),
        }
    }

    /// Starts a server, by `wrapper`, on which ssh knows as `name`.
    fn serve(&mut self, name: &str, address: &str, port: u16, wrapper: &[String]) {
        let root = self.scratch.root();
        let config = root.join(format!("sshd-{name}"));
        let lines = format!(
            "Port {port}\nListenAddress {address}\nHostKey {}\nAuthorizedKeysFile {}\n\
             StrictModes no\nUsePAM no\nPidFile none\nPermitRootLogin yes\n",
            root.join("host-key").display(),
            root.join("key.pub").display()
        );
        std::fs::write(&config, lines).unwrap();
        let mut known = std::fs::read_to_string(&self.config).unwrap();
        known.push_str(&format!("Host {name}\nHostName {address}\nPort {port}\n"));
        std::fs::write(&self.config, known).unwrap();
        let path = std::env::var_os("PATH").unwrap();
        let mut programs = std::env::split_paths(&path).map(|dir| dir.join("sshd"));
        let program = programs.find(|program| program.is_file()).unwrap();
        let mut line: Vec<String> = wrapper.to_vec();
        line.extend([text(&program), "-D", "-e", "-f", text(&config)].map(String::from));
        let log = std::fs::File::create(root.join(format!("sshd-{name}.log"))).unwrap();
        let server = Command::new(&line[0])
            .args(&line[1..])
            .env_remove("LD_LIBRARY_PATH")
            .stdin(Stdio::null())
            .stderr(log)
            .spawn();
        self.servers.push(server.unwrap());
    }

    /// The same on this machine, at any port.
    fn serve_here(&mut self, name: &str) {
        let port = {
            let any = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            any.local_addr().unwrap().port()
        };
        self.serve(name, "127.0.0.1", port, &[]);
        self.answers(name, &[]);
    }

    /// Waits until a server answers a client that runs by `wrapper`.
    fn answers(&self, name: &str, wrapper: &[String]) {
        let start = Instant::now();
        let mut line: Vec<String> = wrapper.to_vec();
        line.extend(["ssh", "-F", text(&self.config), name, "true"].map(String::from));
        while !quiet(&line).status().unwrap().success() {
            assert!(start.elapsed() < PATIENCE, "sshd of {name} does not answer");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Options of fathom that reach the servers.
    fn options(&self) -> Vec<String> {
        let ssh = format!("ssh -F '{}'", self.config.display());
        let there = format!("'{}'", fathom().display());
        vec!["--ssh".into(), ssh, "--remote-fathom".into(), there]
    }
}

impl Drop for Ssh<'_> {
    fn drop(&mut self) {
        for server in &mut self.servers {
            server.kill().ok();
            server.wait().ok();
        }
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A command without output or input.
fn quiet(line: &[String]) -> Command {
    let mut command = Command::new(&line[0]);
    command.args(&line[1..]).stdin(Stdio::null());
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn run(arguments: &[&str], more: &[String]) -> Output {
    let mut command = Command::new(fathom());
    command.args(arguments).args(more).stdin(Stdio::null());
    command.output().unwrap()
}

fn output(arguments: &[&str]) -> String {
    let out = run(arguments, &[]);
    let errors = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(0), "{arguments:?}: {errors}");
    String::from_utf8(out.stdout).unwrap()
}

fn json(arguments: &[&str]) -> serde_json::Value {
    serde_json::from_str(&output(arguments)).unwrap()
}

/// The only number that a query has.
fn number(session: &Path, sql: &str) -> Option<i64> {
    let out = run(&["query", text(session), sql, "--format", "csv"], &[]);
    let csv = String::from_utf8(out.stdout).unwrap();
    csv.lines().nth(1)?.parse().ok()
}

fn is_empty(dir: &Path) -> bool {
    std::fs::read_dir(dir).unwrap().next().is_none()
}

#[test]
fn one_command_records_two_hosts_as_a_set() {
    need_root!();
    need_program!(
        "ssh",
        "sshd",
        "ssh-keygen",
        "ip",
        "unshare",
        "nsenter",
        "mount",
        "python3"
    );
    let scratch = Scratch::new();
    let hosts = Hosts::new();
    let mut ssh = Ssh::new(&scratch);
    let boots = [
        "44444444-0000-4000-8000-000000000004",
        "55555555-0000-4000-8000-000000000005",
    ];
    let inside = hosts.inside(1);
    for (index, (name, address)) in [("db", "10.77.0.1"), ("web", "10.77.0.2")]
        .iter()
        .enumerate()
    {
        let wrapper = hosts.enter(&scratch, index, name, boots[index]);
        ssh.serve(name, address, 7022, &wrapper);
        ssh.answers(name, &inside);
    }
    let there = scratch.root().join("there");
    std::fs::create_dir(&there).unwrap();
    let (set, file) = (
        scratch.root().join("site.fset"),
        scratch.work().join("requests"),
    );
    let out = Command::new(&inside[0])
        .args(&inside[1..])
        .arg(fathom())
        .args(["record", "--on", "web,root@db", "-o", text(&set)])
        .args(ssh.options())
        .args([
            "--remote-dir",
            text(&there),
            "--syscalls",
            "all",
            "--label",
            "run=a 'b'",
        ])
        .args(["--", "python3", "-c", PROGRAM, text(&file), SPECIAL])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (printed, said) = (
        String::from_utf8(out.stdout).unwrap(),
        String::from_utf8(out.stderr).unwrap(),
    );
    assert_eq!(out.status.code(), Some(0), "{printed}{said}");
    // Each host says so by name; the terminal gets no escape sequence.
    let mut lines: Vec<&str> = printed.lines().collect();
    lines.sort_unstable();
    let special = r#"\x1b[2J'it\'s "$HOME" \\ *\n`id`; #'"#;
    assert_eq!(lines, [format!("db: {special}"), format!("web: {special}")]);
    assert!(said.contains("fathom: recording on web, db"), "{said}");
    // The sessions are here and not there.
    assert!(is_empty(&there));
    for host in ["web", "db"] {
        let session = scratch.root().join(format!("site/{host}.fathom"));
        let totals = &meta(&session)["totals"];
        assert_eq!(
            (&totals["seen"], &totals["lost"]),
            (&totals["stored"], &0.into())
        );
        assert_eq!(meta(&session)["labels"]["run"], "a 'b'");
    }

    // The truth: what the programs did, and one clock.
    let set = text(&set);
    let counts = "SELECT host, syscall, count(*), sum(bytes) FROM syscalls \
                  WHERE syscall IN ('sendto', 'recvfrom', 'fsync') GROUP BY ALL ORDER BY 1, 2";
    let counts = output(&["query", set, counts, "--format", "csv"]);
    let counts: Vec<&str> = counts.lines().skip(1).collect();
    let line = |host, syscall, bytes| format!("{host},{syscall},{REQUESTS},{}", REQUESTS * bytes);
    let expected = [
        line("db", "recvfrom", REQUEST),
        line("db", "sendto", ANSWER),
        line("web", "recvfrom", ANSWER),
        line("web", "sendto", REQUEST),
    ];
    assert!(
        counts[0].starts_with(&format!("db,fsync,{},", REQUESTS / 10)),
        "{counts:?}"
    );
    assert_eq!(counts[1..], expected);
    let summary = json(&["set", set, "--format", "json"]);
    let members = summary["members"].as_array().unwrap();
    assert_eq!(
        (&members[0]["host"], &members[1]["host"]),
        (&"web".into(), &"db".into())
    );
    assert_eq!(members[1]["clock"], "messages");
    assert_eq!(members[1]["messages"], 2 * REQUESTS);
    let start_ns = meta(&scratch.root().join("site/db.fathom"))["clock"]["start_monotonic_ns"]
        .as_i64()
        .unwrap();
    let off_ns = members[1]["started_at_ns"].as_i64().unwrap() - start_ns;
    assert!(
        off_ns.abs() <= members[1]["error_ns"].as_i64().unwrap(),
        "{off_ns}"
    );

    // A receive of the client that waited for the server's disk leads there.
    let receives = "SELECT rid FROM syscalls WHERE host = 'web' AND syscall = 'recvfrom' \
                    AND file_offset % 110 = 0";
    let receives = output(&["query", set, receives, "--format", "csv"]);
    let mut synced = 0;
    for rid in receives.lines().skip(1) {
        let rid = format!("web:{rid}");
        let path = json(&["critical-path", set, "--request", &rid, "--format", "json"]);
        let segments = path["segments"].as_array().unwrap();
        synced += i64::from(
            segments
                .iter()
                .any(|s| s["host"] == "db" && s["syscall"] == "fsync"),
        );
    }
    assert!(synced > REQUESTS / 20, "only {synced} paths lead to a sync");
}

/// Lines of a stream as they come.
fn lines(from: impl std::io::Read + Send + 'static) -> std::sync::mpsc::Receiver<String> {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines() {
            sender.send(line.unwrap()).ok();
        }
    });
    receiver
}

/// The processes below `pid` whose command line has `word`.
fn below(pid: u32, word: &str) -> Vec<i32> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let children: Vec<u32> = children
        .unwrap_or_default()
        .split_whitespace()
        .map(|pid| pid.parse().unwrap())
        .collect();
    let named = |pid: &&u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0)
            .any(|one| one == word.as_bytes())
    };
    let named = children.iter().filter(named);
    named.map(|pid| i32::try_from(*pid).unwrap()).collect()
}

#[test]
fn hosts_that_fail_are_named_and_the_others_are_kept() {
    need_root!();
    need_program!("ssh", "sshd", "ssh-keygen", "python3");
    let scratch = Scratch::new();
    let mut ssh = Ssh::new(&scratch);
    ssh.serve_here("db");
    let there = scratch.root().join("there");
    std::fs::create_dir(&there).unwrap();
    let set = scratch.root().join("x.fset");
    let mut recorder = Command::new(fathom())
        .args(["record", "--on", "local,db,gone.invalid", "-o", text(&set)])
        .args(ssh.options())
        .args(["--remote-dir", text(&there), "--", "python3", "-c", SLEEPER])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let printed = lines(recorder.stdout.take().unwrap());
    let said = lines(recorder.stderr.take().unwrap());
    let mut begun = [(); 2].map(|()| printed.recv_timeout(PATIENCE).unwrap());
    begun.sort_unstable();
    assert_eq!(begun, ["db: begun", "local: begun"]);
    // The connection is lost: what was recorded stays there, whole.
    let connections = below(recorder.id(), "db");
    assert_eq!(connections.len(), 1);
    kill_process(Pid::from_raw(connections[0]).unwrap(), Signal::KILL).unwrap();
    let mut errors = String::new();
    let left = loop {
        let line = said.recv_timeout(PATIENCE).unwrap();
        errors.push_str(&line);
        errors.push('\n');
        if let Some((_, left)) = line.split_once("fathom pull db:") {
            break PathBuf::from(left);
        }
    };
    assert!(errors.contains("\nfathom: gone.invalid: "), "{errors}");
    assert!(left.starts_with(&there), "{errors}");
    let start = Instant::now();
    while meta(&left)["state"] != "complete" {
        assert!(start.elapsed() < PATIENCE, "the recorder goes on");
        std::thread::sleep(Duration::from_millis(50));
    }
    // The other one ends when it is asked to.
    let pid = Pid::from_raw(i32::try_from(recorder.id()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    let status = recorder.wait().unwrap();
    errors.extend(said.iter().map(|line| line + "\n"));
    assert_eq!(status.code(), Some(125), "{errors}");
    let kept = scratch.root().join("x/local.fathom");
    assert_eq!(meta(&kept)["state"], "complete");
    assert!(errors.contains("there is") && !set.exists(), "{errors}");
    // The one that was left can be fetched.
    let copy = scratch.root().join("db.fathom");
    let source = format!("db:{}", left.display());
    let out = run(&["pull", &source, "-o", text(&copy)], &ssh.options());
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(0), "{said}");
    assert_eq!(meta(&copy)["totals"], meta(&left)["totals"]);
    assert!(number(&copy, "SELECT count(*) FROM syscalls") > Some(5));
}

/// Ends at an interrupt, also where whatever runs the tests ignores it.
const SLEEPER: &str = "
import signal, time
signal.signal(signal.SIGINT, signal.SIG_DFL)
print('begun', flush=True)
time.sleep(1000)
";

/// Writes some, says so, and waits to go on.
const WRITER: &str = "
import os, sys
fd = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR)
for turn in range(2):
    for number in range(500):
        os.pwrite(fd, b'x', number)
    print('written', flush=True)
    sys.stdin.readline()
";

#[test]
fn a_session_is_pulled_while_it_is_recorded() {
    need_root!();
    need_program!("ssh", "sshd", "ssh-keygen", "python3");
    let scratch = Scratch::new();
    let mut ssh = Ssh::new(&scratch);
    ssh.serve_here("db");
    let file = scratch.work().join("file");
    let mut recording = Record::named(&scratch, "run")
        .command(["python3", "-c", WRITER, text(&file)])
        .interactive()
        .spawn();
    assert_eq!(recording.line(), "written");
    let source = format!("root@db:{}", recording.session().display());
    let copy = scratch.root().join("copy.fathom");
    let mut follower = Command::new(fathom())
        .args(["pull", &source, "--follow", "-o", text(&copy)])
        .args(ssh.options())
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // Its rows are there while it is recorded.
    let writes = "SELECT count(*) FROM syscalls WHERE syscall = 'pwrite64'";
    recording.until("the rows", || {
        copy.exists() && number(&copy, writes) == Some(500)
    });
    let refused = run(&["repair", text(&copy)], &[]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("is being recorded"), "{said}");
    // A copy of that moment is a closed session.
    let now = scratch.root().join("now.fathom");
    let address = format!("ssh://root@db{}", recording.session().display());
    let out = run(&["pull", &address, "-o", text(&now)], &ssh.options());
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    assert_eq!(out.status.code(), Some(0), "{said}");
    assert!(said.contains("it is being recorded"), "{said}");
    assert_eq!(
        (number(&now, writes), &meta(&now)["state"]),
        (Some(500), &"complete".into())
    );
    // It goes on to the end.
    recording.say("\n");
    assert_eq!(recording.line(), "written");
    recording.say("\n");
    let recording = recording.wait().must_exit(0);
    assert!(follower.wait().unwrap().success());
    assert_eq!(number(&copy, writes), Some(1000));
    assert_eq!(meta(&copy), meta(&recording.session));
    let out = run(&["repair", "--dry-run", text(&copy)], &[]);
    assert_eq!(String::from_utf8_lossy(&out.stdout), "nothing to repair\n");
    // Nothing is left of either but the copies.
    let names = std::fs::read_dir(scratch.root()).unwrap();
    let hidden = names.filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.to_string_lossy().starts_with('.')
    });
    assert_eq!(hidden.count(), 0);
    refusals(&scratch, &ssh, &source);
}

/// The copy is as damaged as the session, and no lake takes it.
#[test]
fn a_damaged_session_is_pulled_with_its_damage() {
    need_root!();
    let scratch = Scratch::new();
    let recording = Record::named(&scratch, "run").command(["true"]).run();
    let recording = recording.must_exit(0);
    let session = recording.session.clone();
    let part = std::fs::read_dir(session.join("syscalls")).unwrap().next();
    let part = std::fs::File::options()
        .write(true)
        .open(part.unwrap().unwrap().path());
    part.unwrap().set_len(1000).unwrap();
    let copy = scratch.root().join("copy.fathom");
    let source = format!("local:{}", session.display());
    for options in [&["--quiet"][..], &["--force"]] {
        let mut arguments = vec!["pull", &source, "-o", text(&copy)];
        arguments.extend(options);
        let out = run(&arguments, &[]);
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert_eq!(out.status.code(), Some(0), "{said}");
        assert!(said.contains("is left out: it is damaged"), "{said}");
        assert!(!said.contains("all as sent"), "{said}");
    }
    let lake = scratch.root().join("lake");
    for session in [&session, &copy] {
        let diagnosed = run(&["diagnose", text(session)], &[]);
        assert_eq!(diagnosed.status.code(), Some(2));
        let shipped = run(&["ship", text(session), "--to", text(&lake)], &[]);
        let said = String::from_utf8_lossy(&shipped.stderr).into_owned();
        assert_eq!(shipped.status.code(), Some(2), "{said}");
        assert!(said.contains("fathom repair"), "{said}");
    }
}

/// Hosts, programs and directories that have no session.
fn refusals(scratch: &Scratch, ssh: &Ssh, source: &str) {
    let to = scratch.root().join("none.fathom");
    let options = ssh.options();
    let with = |fathom: &str| {
        let mut options = options.clone();
        *options.last_mut().unwrap() = fathom.to_owned();
        options
    };
    for (from, options, expected) in [
        ("db:/nowhere", &options, "is not a session"),
        ("db:/etc", &options, "is not a session"),
        (
            source,
            &with("echo hello;:"),
            "no answer from fathom but \"hello\"",
        ),
        (
            source,
            &with("echo fathom-stream 99 1 9.9.9;:"),
            "fathom 9.9.9 there",
        ),
        (source, &with("/nowhere/fathom"), "was not found there"),
        (source, &with("true"), "the connection ended early"),
        ("gone.invalid:x", &options, "ssh could not connect"),
        ("-oProxyCommand=touch:x", &options, ""),
        ("a b:x", &options, "a host may consist of"),
    ] {
        let out = run(&["pull", from, "-o", text(&to)], options);
        let said = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{from}: {said}");
        assert!(said.contains(expected), "{from}: {said}");
        assert!(!to.exists(), "{from}");
    }
    let copy = scratch.root().join("copy.fathom");
    let out = run(&["pull", source, "-o", text(&copy)], &options);
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(
        out.status.code() == Some(2) && said.contains("--force"),
        "{said}"
    );
}
