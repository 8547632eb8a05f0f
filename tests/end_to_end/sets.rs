//! Sets of sessions: two hosts with a network of their own. Their clocks are the same in truth, but
//! each kernel claims another start, so fathom must find that out from messages.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use fathom_tests::environment::fathom;
use fathom_tests::page::Page;
use fathom_tests::session::meta;
use fathom_tests::{Record, Recording, Scratch, need_program, need_root};

/// Requests of the client; the server makes every tenth durable.
pub const REQUESTS: i64 = 200;
pub const REQUEST: i64 = 300;
pub const ANSWER: i64 = 11;

const SERVER: &str = "
import os, socket, sys
listening = socket.socket()
listening.bind(('10.77.0.1', 7000))
listening.listen()
print('ready', flush=True)
file = open(sys.argv[1], 'wb')
connection, _ = listening.accept()
for number in range(200):
    file.write(connection.recv(300, socket.MSG_WAITALL))
    file.flush()
    if number % 10 == 0:
        os.fsync(file.fileno())
    connection.sendall(b'%011d' % number)
";

const CLIENT: &str = "
import socket
connection = socket.create_connection(('10.77.0.1', 7000))
for number in range(200):
    connection.sendall(b'x' * 300)
    assert int(connection.recv(11, socket.MSG_WAITALL)) == number
";

/// Two network namespaces that are joined, removed at the end.
pub struct Hosts {
    names: [String; 2],
}

impl Hosts {
    /// Host 0 has address 10.77.0.1, host 1 has 10.77.0.2.
    pub fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let pid = std::process::id();
        let names = ["db", "web"].map(|name| format!("fathom-{pid}-{number}-{name}"));
        let [db, web] = &names;
        let pair = format!("link add eth0 netns {db} type veth peer name eth0 netns {web}");
        let mut lines = vec![format!("netns add {db}"), format!("netns add {web}"), pair];
        for (name, address) in [(db, "10.77.0.1/24"), (web, "10.77.0.2/24")] {
            lines.push(format!("-n {name} addr add {address} dev eth0"));
            lines.push(format!("-n {name} link set eth0 up"));
            lines.push(format!("-n {name} link set lo up"));
        }
        for line in lines {
            let done = Command::new("ip").args(line.split(' ')).status().unwrap();
            assert!(done.success(), "ip {line}");
        }
        Self { names }
    }

    /// A recording in host `index`, as [`Hosts::enter`] has it.
    fn record(&self, scratch: &Scratch, index: usize, name: &str, boot: &str) -> Record {
        Record::named(scratch, name)
            .by(self.enter(scratch, index, name, boot))
            .options(["--syscalls", "all", "--label", &format!("role={name}")])
    }

    /// Runs a command in the network of host `index`.
    pub fn inside(&self, index: usize) -> Vec<String> {
        let net = format!("--net=/run/netns/{}", self.names[index]);
        vec!["nsenter".into(), net]
    }

    /// Runs a command in host `index`, which is called `name` and says that its kernel started as
    /// `boot`.
    pub fn enter(&self, scratch: &Scratch, index: usize, name: &str, boot: &str) -> Vec<String> {
        let id = scratch.root().join(format!("boot-{name}"));
        std::fs::write(&id, format!("{boot}\n")).unwrap();
        let enter = format!(
            "hostname {name} && mount --bind {} /proc/sys/kernel/random/boot_id && \
             exec nsenter --net=/run/netns/{} \"$@\"",
            id.display(),
            self.names[index],
        );
        let wrapper = ["unshare", "-m", "-u", "sh", "-c", &enter, "sh"];
        wrapper.map(String::from).to_vec()
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in &self.names {
            Command::new("ip")
                .args(["netns", "del", name])
                .status()
                .ok();
        }
    }
}

/// The recordings of the server and of its client, with the names of their boots.
fn record(scratch: &Scratch, boots: [&str; 2]) -> (Recording, Recording) {
    record_at(scratch, boots, 1, "10.77.0.1")
}

/// The same with the client in host `client`, which reaches the server by `address`.
fn record_at(
    scratch: &Scratch,
    boots: [&str; 2],
    client: usize,
    address: &str,
) -> (Recording, Recording) {
    let at = |program: &str| program.replace("10.77.0.1", address);
    let hosts = Hosts::new();
    let file = scratch.work().join("requests");
    let file = file.to_str().unwrap();
    let mut server = hosts
        .record(scratch, 0, "db", boots[0])
        .command(["python3", "-c", &at(SERVER), file])
        .interactive()
        .spawn();
    assert_eq!(server.line(), "ready");
    let client = hosts
        .record(scratch, client, "web", boots[1])
        .command(["python3", "-c", &at(CLIENT)])
        .run()
        .must_exit(0);
    let server = server.wait().must_exit(0);
    assert_eq!((client.complete().lost, server.complete().lost), (0, 0));
    (server, client)
}

/// What `fathom` prints, which must succeed.
fn output(arguments: &[&str]) -> String {
    let out = Command::new(fathom()).args(arguments).output().unwrap();
    let errors = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(0), "{arguments:?}: {errors}");
    String::from_utf8(out.stdout).unwrap()
}

fn json(arguments: &[&str]) -> serde_json::Value {
    serde_json::from_str(&output(arguments)).unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
#[ignore = "long"]
fn messages_relate_the_clocks_of_two_hosts() {
    need_root!();
    need_program!("ip", "unshare", "nsenter", "mount", "python3");
    let scratch = Scratch::new();
    let boots = [
        "11111111-0000-4000-8000-000000000001",
        "22222222-0000-4000-8000-000000000002",
    ];
    let (server, client) = record(&scratch, boots);
    let path = scratch.root().join("site.fset");
    let set = text(&path);
    let (db, web) = (server.session.as_path(), client.session.as_path());
    let summary = json(&["set", text(web), text(db), "-o", set, "--format", "json"]);

    // The truth: one clock.
    let member = &summary["members"][1];
    assert_eq!(
        (&member["host"], &member["clock"]),
        (&"db".into(), &"messages".into())
    );
    assert_eq!(member["messages"], 2 * REQUESTS);
    let error_ns = member["error_ns"].as_i64().unwrap();
    let start_ns = meta(&server.session)["clock"]["start_monotonic_ns"]
        .as_i64()
        .unwrap();
    let off_ns = member["started_at_ns"].as_i64().unwrap() - start_ns;
    assert!(
        off_ns.abs() <= error_ns,
        "off by {off_ns} ns, at most {error_ns} are promised"
    );

    // The truth: what the programs sent.
    let traffic = |from: &str| {
        let all = summary["traffic"].as_array().unwrap();
        let one = all.iter().find(|traffic| traffic["from"] == from).unwrap();
        ["messages", "bytes", "before_sent"].map(|name| one[name].as_i64().unwrap())
    };
    assert_eq!(traffic("web"), [REQUESTS, REQUESTS * REQUEST, 0]);
    assert_eq!(traffic("db"), [REQUESTS, REQUESTS * ANSWER, 0]);

    // Rows are those of the sessions, with the host, and times on one clock.
    let query = |of: &str, sql: &str| output(&["query", of, sql, "--format", "csv"]);
    let counts = "SELECT syscall, count(*), sum(bytes) FROM syscalls WHERE host = 'db' GROUP BY 1 \
                  ORDER BY 1";
    let alone = counts.replace("WHERE host = 'db'", "");
    assert_eq!(query(set, counts), query(text(db), &alone));
    let labels = "SELECT host, machine, labels['role'] AS role FROM session ORDER BY 1";
    assert_eq!(
        query(set, labels),
        "host,machine,role\ndb,db,db\nweb,web,web\n"
    );
    let first = "SELECT min(ts_ns) FROM syscalls";
    let number = |csv: String| csv.lines().nth(1).unwrap().parse::<i64>().unwrap();
    let own_ns = number(query(text(db), first));
    let moved_ns = number(query(set, &format!("{first} WHERE host = 'db'")));
    assert!((moved_ns - own_ns).abs() <= error_ns, "{moved_ns} {own_ns}");

    // Receives of the client that waited for the server's disk lead there, and no further than the
    // request.
    let receives = query(
        text(web),
        "SELECT rid FROM syscalls WHERE syscall = 'recvfrom' AND bytes = 11 AND file_offset % 110 = 0",
    );
    let receives: Vec<&str> = receives.lines().skip(1).collect();
    assert_eq!(receives.len() as i64, REQUESTS / 10);
    let mut synced = 0;
    for rid in receives {
        let request = format!("web:{rid}");
        let path = json(&[
            "critical-path",
            set,
            "--request",
            &request,
            "--format",
            "json",
        ]);
        let segments = path["segments"].as_array().unwrap();
        let sum: i64 = segments.iter().map(|s| s["dur_ns"].as_i64().unwrap()).sum();
        assert_eq!(sum, path["dur_ns"].as_i64().unwrap());
        assert_eq!(
            (&path["host"], &path["rid"].to_string()),
            (&"web".into(), &rid.to_string())
        );
        let syncs = |s: &serde_json::Value| s["host"] == "db" && s["syscall"] == "fsync";
        synced += i64::from(segments.iter().any(syncs));
    }
    assert!(synced > REQUESTS / 20, "only {synced} paths lead to a sync");

    other_views(set, text(web), text(db));
    crate::set_exports::check(&scratch, &path, [("web", web), ("db", db)]);
    let all =
        "SELECT rid FROM syscalls WHERE syscall = 'recvfrom' AND bytes = 11 ORDER BY dur_ns DESC";
    let longest = number(query(text(web), all));
    shown(
        &path,
        longest,
        &json(&[
            "critical-path",
            set,
            "--request",
            &format!("web:{longest}"),
            "--format",
            "json",
        ]),
    );

    // The id is the one that was given.
    for (option, id) in [("--request", "web:99999999"), ("--thread", "db:99999999")] {
        let out = Command::new(fathom())
            .args(["critical-path", set, option, id])
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{errors}");
        assert!(errors.contains(&format!(" {id} in this set")), "{errors}");
    }

    // Commands that take one session say so, and name those of the set.
    for command in ["repair", "sessions"] {
        let out = Command::new(fathom())
            .args([command, set])
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{command}: {errors}");
        let both = ["is a set of sessions", "db.fathom"];
        assert!(
            both.iter().all(|part| errors.contains(part)),
            "{command}: {errors}"
        );
    }
}

/// `why`, `zoom`, and `diff` of a set say of each host what they say of its session.
fn other_views(set: &str, web: &str, db: &str) {
    let why = json(&["why", set, "--format", "json"]);
    let hosts: Vec<&str> = (why.as_array().unwrap().iter())
        .map(|member| member["host"].as_str().unwrap())
        .collect();
    assert_eq!(hosts, ["web", "db"]);
    assert_eq!(why[1]["story"], json(&["why", db, "--format", "json"]));
    let thread = "SELECT tid FROM syscalls WHERE syscall = 'fsync' LIMIT 1";
    let thread = output(&["query", db, thread, "--format", "csv"]);
    let tid = thread.lines().nth(1).unwrap();
    let of_set = json(&[
        "why",
        set,
        "--thread",
        &format!("db:{tid}"),
        "--format",
        "json",
    ]);
    let of_one = json(&["why", db, "--thread", tid, "--format", "json"]);
    assert_eq!(of_set.as_array().unwrap().len(), 1);
    assert_eq!(of_set[0]["story"], of_one);
    // Only one host has the file.
    let of_file = json(&["why", set, "--file", "requests", "--format", "json"]);
    assert_eq!(of_file.as_array().unwrap().len(), 1);
    assert_eq!(of_file[0]["host"], "db");
    for id in [tid, "mail:1"] {
        let out = Command::new(fathom())
            .args(["why", set, "--thread", id])
            .output()
            .unwrap();
        assert_eq!(out.status.code(), Some(2), "{id}");
    }

    let zoom = |of: &str, options: &[&str]| {
        let zoom = [
            "zoom", of, "--pixels", "1", "--by", "syscall", "--top", "1000", "--format", "csv",
        ];
        let csv = output(&[&zoom[..], options].concat());
        let mut lines = csv
            .lines()
            .map(|line| line.split(',').map(str::to_owned).collect());
        let head: Vec<String> = lines.next().unwrap();
        let place = |name: &str| head.iter().position(|column| column == name);
        let rows: Vec<Vec<String>> = lines.collect();
        let cell = |row: &[String], name| place(name).map(|at| row[at].clone());
        let int = |row: &[String], name| cell(row, name).unwrap().parse::<i64>().unwrap();
        rows.iter()
            .map(|row| {
                (
                    cell(row, "host"),
                    cell(row, "syscall").unwrap(),
                    int(row, "calls"),
                )
            })
            .collect::<Vec<_>>()
    };
    // The same calls as of each session, and one sum of them.
    let sums = |rows: Vec<(Option<String>, String, i64)>| {
        let mut sums = BTreeMap::new();
        for (_, call, calls) in rows {
            *sums.entry(call).or_insert(0) += calls;
        }
        sums
    };
    let all = zoom(set, &["--per-host"]);
    let mut together = BTreeMap::new();
    for (host, session) in [("web", web), ("db", db)] {
        let of_host = all.iter().filter(|row| row.0.as_deref() == Some(host));
        let own = sums(zoom(session, &[]));
        assert!(!own.is_empty());
        assert_eq!(sums(of_host.cloned().collect()), own, "{host}");
        assert_eq!(sums(zoom(set, &["--host", host])), own, "{host}");
        for (call, calls) in own {
            *together.entry(call).or_insert(0) += calls;
        }
    }
    assert_eq!(sums(zoom(set, &[])), together);
    let out = Command::new(fathom())
        .args(["zoom", set, "--pixels", "100"])
        .output()
        .unwrap();
    // One window of all hosts.
    let said = String::from_utf8(out.stderr).unwrap();
    assert_eq!(said.matches("fathom: buckets of ").count(), 1, "{said}");
    for wrong in [["--host", "mail"], ["--label", "job=18"]] {
        let out = Command::new(fathom())
            .args(["zoom", set])
            .args(wrong)
            .output();
        let out = out.unwrap();
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(
            out.status.code() == Some(2) && said.contains("web, db"),
            "{said}"
        );
    }

    let same = json(&["diff", set, set, "--format", "json"]);
    let hosts = same
        .as_array()
        .unwrap()
        .iter()
        .map(|member| &member["host"]);
    assert_eq!(hosts.collect::<Vec<_>>(), ["web", "db"]);
    for member in same.as_array().unwrap() {
        assert_eq!(member["diff"]["changes"], serde_json::json!([]));
    }
    let out = Command::new(fathom())
        .args(["diff", set, web])
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(2));
}

/// The page over a set: its sessions by their hosts, and paths from one to another.
fn shown(set: &Path, rid: i64, path: &serde_json::Value) {
    let page = Page::serve(set);
    assert_eq!(
        page.json("/set"),
        json(&["set", text(set), "--format", "json"])
    );
    let sessions = page.json("/sessions");
    let sessions: Vec<&str> = (sessions.as_array().unwrap().iter())
        .map(|session| session["id"].as_str().unwrap())
        .collect();
    assert_eq!(sessions, ["web", "db"]);
    assert_eq!(page.get("/sessions/mail").status, 404);
    let shown = page.json(&format!("/sessions/web/requests/{rid}/path"));
    assert_eq!(shown["host"], "web");
    let hosts = |of: &serde_json::Value| {
        let segments = of["segments"].as_array().unwrap().clone();
        let mut hosts: Vec<(String, i64)> = (segments.iter())
            .map(|segment| {
                (
                    segment["host"].as_str().unwrap().to_owned(),
                    segment["dur_ns"].as_i64().unwrap(),
                )
            })
            .collect();
        hosts.sort();
        hosts
    };
    assert_eq!(hosts(&shown), hosts(path));
    assert!(hosts(&shown).iter().any(|(host, _)| host == "db"));
}

/// Sessions of one start of a kernel have one clock, to the nanosecond.
#[test]
fn sessions_of_one_boot_need_no_messages() {
    need_root!();
    need_program!("ip", "unshare", "nsenter", "mount", "python3");
    let scratch = Scratch::new();
    let boot = "33333333-0000-4000-8000-000000000003";
    let (server, client) = record(&scratch, [boot, boot]);
    let path = scratch.root().join("site.fset");
    let (db, web) = (server.session.as_path(), client.session.as_path());
    let named = format!("front={}", text(web));
    let summary = json(&[
        "set",
        &named,
        text(db),
        "-o",
        text(&path),
        "--format",
        "json",
    ]);
    assert_eq!(summary["members"][0]["host"], "front");
    let member = &summary["members"][1];
    assert_eq!(
        (&member["clock"], &member["error_ns"]),
        (&"same-boot".into(), &0.into())
    );
    let start_ns = &meta(&server.session)["clock"]["start_monotonic_ns"];
    assert_eq!(&member["started_at_ns"], start_ns);
    let traffic = summary["traffic"].as_array().unwrap();
    assert_eq!(traffic.len(), 2);
    for traffic in traffic {
        assert_eq!(
            (&traffic["messages"], &traffic["before_sent"]),
            (&REQUESTS.into(), &0.into())
        );
    }

    // A session that took the place of a member is noticed.
    std::fs::rename(db, scratch.root().join("old.fathom")).unwrap();
    std::fs::rename(web, db).unwrap();
    let out = Command::new(fathom())
        .args(["set", text(&path)])
        .output()
        .unwrap();
    assert_eq!(
        out.status.code(),
        Some(2),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
}

/// Each host has a loopback device of its own: its addresses join sessions of one host only.
#[test]
fn messages_on_loopback_stay_on_their_host() {
    need_root!();
    need_program!("ip", "unshare", "nsenter", "mount", "python3");
    let boots = [
        "44444444-0000-4000-8000-000000000004",
        "55555555-0000-4000-8000-000000000005",
    ];
    for (of_client, expected) in [(boots[0], 2), (boots[1], 0)] {
        let scratch = Scratch::new();
        let (server, client) = record_at(&scratch, [boots[0], of_client], 0, "127.0.0.1");
        let path = scratch.root().join("site.fset");
        let (db, web) = (server.session.as_path(), client.session.as_path());
        let set = text(&path);
        let summary = json(&["set", text(web), text(db), "-o", set, "--format", "json"]);
        let traffic = summary["traffic"].as_array().unwrap();
        assert_eq!(traffic.len(), expected, "{traffic:?}");
        for traffic in traffic {
            assert_eq!(traffic["messages"], REQUESTS);
        }
        let receive = "SELECT rid FROM syscalls WHERE syscall = 'recvfrom' AND bytes = 11 \
                       ORDER BY dur_ns DESC LIMIT 1";
        let receive = output(&["query", text(web), receive, "--format", "csv"]);
        let request = format!("web:{}", receive.lines().nth(1).unwrap());
        let found = json(&[
            "critical-path",
            set,
            "--request",
            &request,
            "--format",
            "json",
        ]);
        let segments = found["segments"].as_array().unwrap();
        let leads = segments.iter().any(|segment| segment["host"] == "db");
        assert_eq!(leads, expected > 0, "{found}");
    }
}
