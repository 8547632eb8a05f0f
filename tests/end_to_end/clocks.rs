//! The clocks of a set against known ones: the same captures replayed as of a machine whose clock is off and
//! drifts. Every time of its rows is known on both clocks.

use std::path::{Path, PathBuf};

use fathom_tests::environment::{fathom, must_run};
use fathom_tests::retimed::retimed;
use fathom_tests::session::{meta, query};
use fathom_tests::{Record, Recording, Scratch, need_program, need_root};
use serde_json::Value;

use crate::sets::Hosts;

const SECOND: i64 = 1_000_000_000;
/// Requests of the client, some of them a while after the others.
const REQUESTS: i64 = 300;

/// Reads a file before there are messages, and after them.
const SERVER: &str = "
import os, socket, time
listening = socket.socket()
listening.bind(('10.77.0.1', 7000))
listening.listen()
print('ready', flush=True)
def work():
    for _ in range(20):
        os.close(os.open('/etc/hostname', os.O_RDONLY))
        time.sleep(0.05)
work()
connection, _ = listening.accept()
for number in range(300):
    connection.recv(100, socket.MSG_WAITALL)
    connection.sendall(b'%011d' % number)
work()
";

const CLIENT: &str = "
import socket, time
connection = socket.create_connection(('10.77.0.1', 7000))
for number in range(300):
    connection.sendall(b'x' * 100)
    assert int(connection.recv(11, socket.MSG_WAITALL)) == number
    if number % 50 == 0:
        time.sleep(0.4)
    elif number % 3 == 0:
        time.sleep(0.002)
";

/// The captures of the server and of its client, which are of one machine.
fn captures(scratch: &Scratch) -> [(PathBuf, Recording); 2] {
    let hosts = Hosts::new();
    let raw = ["db", "web"].map(|name| scratch.root().join(name).with_extension("cap"));
    let record = |index: usize, program: &str| {
        Record::named(scratch, ["db", "web"][index])
            .by(hosts.inside(index))
            .options(["--syscalls", "all", "--raw"])
            .options([&raw[index]])
            .command(["python3", "-c", program])
    };
    let mut server = record(0, SERVER).interactive().spawn();
    assert_eq!(server.line(), "ready");
    let client = record(1, CLIENT).run().must_exit(0);
    let server = server.wait().must_exit(0);
    assert_eq!((client.complete().lost, server.complete().lost), (0, 0));
    let [db, web] = raw;
    [(db, server), (web, client)]
}

fn json(arguments: &[&Path]) -> Value {
    serde_json::from_slice(&must_run(fathom(), arguments)).unwrap()
}

/// A clock: how far it is ahead at a time, and by how much it goes faster from then on.
struct Truth {
    at_ns: i64,
    offset_ns: i64,
    rate: f64,
    bent_at_ns: i64,
    then: f64,
}

impl Truth {
    fn of(&self, at_ns: i64) -> i64 {
        let since = (at_ns - self.at_ns) as f64 * self.rate;
        let later = (at_ns - self.bent_at_ns).max(0) as f64 * (self.then - self.rate);
        at_ns + self.offset_ns + (since + later).round() as i64
    }
}

#[test]
fn known_clocks_are_found_within_the_bound() {
    need_root!();
    need_program!("ip", "nsenter", "python3");
    let scratch = Scratch::new();
    let [(db, server), (web, client)] = captures(&scratch);
    let clock = &meta(&client.session)["clock"];
    let start = clock["start_monotonic_ns"].as_i64().unwrap();
    let end = clock["end_monotonic_ns"].as_i64().unwrap();
    let middle = (start + end) / 2;
    // Offset, rate, and the rate in the second half.
    let truths = [
        (37 * SECOND / 10, 41e-6, 41e-6),
        (-start / 2, -380e-6, -380e-6),
        (1_000_000 * SECOND, 41e-6, -300e-6),
        (-37 * SECOND / 10, -500e-6, 500e-6),
        (12 * SECOND, 0.0, 0.05),
    ];
    // Those that bend, and one that does not with FATHOM_ROUNDS=5.
    let truths = truths
        .into_iter()
        .rev()
        .take(fathom_tests::rounds(2) as usize);
    for (number, (offset_ns, rate, then)) in truths.enumerate() {
        let truth = Truth {
            at_ns: start,
            offset_ns,
            rate,
            bent_at_ns: middle,
            then,
        };
        // In turns it is the reference and the other one.
        let root = scratch.root().join(number.to_string());
        std::fs::create_dir(&root).unwrap();
        let first = number % 2 == 0;
        check(&root, [&db, &web], &server, &client, &truth, first);
    }
}

/// The server's capture is of a machine with clock `truth`, which is the set's if `first`.
fn check(
    root: &Path,
    [db, web]: [&Path; 2],
    server: &Recording,
    client: &Recording,
    truth: &Truth,
    first: bool,
) {
    let of = |at: i64| truth.of(at);
    let boots = [
        "66666666-0000-4000-8000-000000000006",
        "77777777-0000-4000-8000-000000000007",
    ];
    let moved = root.join("db.cap");
    retimed(db, &moved, "db", boots[0], &of);
    let same = root.join("web.cap");
    retimed(web, &same, "web", boots[1], &|at| at);
    let sessions = ["db", "web"].map(|name| {
        let (capture, session) = (root.join(name), root.join(name));
        let (capture, session) = (
            capture.with_extension("cap"),
            session.with_extension("fathom"),
        );
        must_run(
            fathom(),
            ["replay".as_ref(), &*capture, "-o".as_ref(), &*session],
        );
        session
    });
    let [db, web] = &sessions;
    let what = format!("{} {} {} {first}", truth.offset_ns, truth.rate, truth.then);
    // The replayed sessions are the recorded ones, with all calls at their times on the clock.
    let own = "SELECT rid, ts_ns, ts_ns + dur_ns AS end_ns, syscall, file_offset FROM syscalls WHERE dur_ns IS NOT NULL \
               ORDER BY rid";
    let rows = |session: &Path| query(session, own);
    let (before, after) = (rows(&server.session), rows(db));
    assert_eq!(before.len(), after.len());
    assert!(before.len() > 2 * REQUESTS as usize);
    for (a, b) in before.iter().zip(&after) {
        for column in ["ts_ns", "end_ns"] {
            assert_eq!(
                Some(of(a.int(column).unwrap())),
                b.int(column),
                "{what}: {a:?}"
            );
        }
    }
    assert_eq!(
        format!("{:?}", rows(&client.session)),
        format!("{:?}", rows(web))
    );

    let path = root.join("site.fset");
    let order = match first {
        true => [db, web],
        false => [web, db],
    };
    let set = ["set".as_ref(), &**order[0], order[1], "-o".as_ref(), &path];
    let summary = json(&[&set[..], &["--format".as_ref(), "json".as_ref()]].concat());
    let member = &summary["members"][1];
    assert_eq!(member["clock"], "messages", "{what}: {summary}");
    assert_eq!(member["messages"], 2 * REQUESTS);
    let number = |name: &str| member[name].as_i64().unwrap();
    let (error_ns, inner_ns) = (number("error_ns"), number("error_in_messages_ns"));
    assert!(inner_ns <= error_ns);
    // Every message was on its way for less than the clients waited, and they were often fast.
    assert!(inner_ns < 500_000_000, "{what}: {inner_ns}");

    // Starts and ends of all calls, also of those without messages around them.
    let (host, truths) = match first {
        true => ("web", rows(&client.session)),
        false => ("db", before),
    };
    // From the clock of the recording to the one that is shown.
    let shown = |at: i64| if first { of(at) } else { at };
    let sql = own.replace("WHERE", &format!("WHERE host = '{host}' AND"));
    let (mut worst, mut worst_inner) = (0, 0);
    let found = query(&path, &sql);
    assert_eq!(found.len(), truths.len());
    for (a, b) in truths.iter().zip(&found) {
        let off = ["ts_ns", "end_ns"]
            .map(|column| (shown(a.int(column).unwrap()) - b.int(column).unwrap()).abs());
        worst = worst.max(off[0]).max(off[1]);
        // Not of the first and the last one: one of their ends is outside.
        let inside = (100..(REQUESTS - 1) * 11).contains(&a.int("file_offset").unwrap_or(0));
        match a.text("syscall").unwrap() {
            "sendto" if inside => worst_inner = worst_inner.max(off[0]),
            "recvfrom" if inside => worst_inner = worst_inner.max(off[1]),
            _ => {}
        }
    }
    assert!(
        worst <= error_ns,
        "{what}: off by {worst} ns, at most {error_ns} are promised"
    );
    assert!(
        worst_inner <= inner_ns,
        "{what}: off by {worst_inner} ns between messages, at most {inner_ns} are promised"
    );

    // Message by message: each side has them in the order of its stream.
    for traffic in summary["traffic"].as_array().unwrap() {
        assert_eq!(traffic["messages"], REQUESTS, "{what}");
        assert_eq!(traffic["before_sent"], 0, "{what}");
        assert!(traffic["fastest_ns"].as_i64().unwrap() >= 0);
    }
    let calls = |host: &str, call: &str, time: &str| {
        let sql = format!(
            "SELECT {time} AS n FROM syscalls WHERE host = '{host}' AND syscall = '{call}' AND \
             bytes IN (11, 100) ORDER BY file_offset"
        );
        let all = query(&path, &sql)
            .into_iter()
            .map(|row| row.int("n").unwrap());
        all.collect::<Vec<i64>>()
    };
    for (from, to) in [("web", "db"), ("db", "web")] {
        let sent = calls(from, "sendto", "ts_ns");
        let received = calls(to, "recvfrom", "ts_ns + dur_ns");
        assert_eq!(
            (sent.len(), received.len()),
            (REQUESTS as usize, REQUESTS as usize)
        );
        for (sent, received) in sent.iter().zip(&received) {
            assert!(
                sent <= received,
                "{what}: from {from} at {sent}, there at {received}"
            );
        }
    }

    // The time that a receive of the client waited for the other host, and how exact that is.
    // The first one began before there was a message from there.
    let receive = "SELECT rid FROM syscalls WHERE syscall = 'recvfrom' AND bytes = 11 \
                   AND file_offset > 0 ORDER BY dur_ns DESC LIMIT 1";
    let rid = query(web, receive)[0].int("rid").unwrap();
    let request = format!("web:{rid}");
    let arguments = ["critical-path", "--request", &request, "--format", "json"];
    let mut arguments: Vec<&Path> = arguments.iter().map(Path::new).collect();
    arguments.push(&path);
    let found = json(&arguments);
    let hosts: Vec<&str> = (found["segments"].as_array().unwrap().iter())
        .map(|segment| segment["host"].as_str().unwrap())
        .collect();
    assert!(hosts.contains(&"db"), "{what}: {found}");
    let clock = &found["clocks"][0];
    assert_eq!(clock["host"], host, "{what}: {found}");
    let there_ns = clock["error_ns"].as_i64().unwrap();
    assert!(
        0 < there_ns && there_ns <= inner_ns,
        "{what}: {clock}, between messages {inner_ns}"
    );
    let notes = found["notes"].to_string();
    assert!(notes.contains("off by at most"), "{what}: {notes}");
}
