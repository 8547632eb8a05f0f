//! `fathom record --spans`: requests to servers that were not written for fathom, compared with what
//! the servers and their clients count.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;

use fathom_tests::environment::{fathom, must_run};
use fathom_tests::session::{self, meta};
use fathom_tests::tools::{export, project};
use fathom_tests::{Record, Recording, Scratch, need_program, need_python, need_root, skip};
use serde_json::Value;

use crate::kernel::release;

/// Without loops the programs read no memory of calls (Linux 5.17).
macro_rules! need_loops {
    () => {
        if release() < (5, 17) {
            skip("the programs for this kernel read no bytes of calls");
            return;
        }
    };
}

/// Records a shell script in the directory `work`, which starts a server and its clients.
pub(crate) fn record(
    scratch: &Scratch,
    protocols: &str,
    options: &[&str],
    script: &str,
) -> Recording {
    let script = format!("cd {}\nset -e\n{script}", scratch.work().display());
    let recording = Record::new(scratch)
        .options(["--spans", protocols, "--ring-mib", "64"])
        .options(options)
        .command(["sh", "-c", &script])
        .run()
        .must_exit(0);
    let counts = &meta(&recording.session)["spans"];
    let rows = recording.number("SELECT count(*) FROM spans");
    assert_eq!(counts["recorded"], rows, "{counts}");
    assert_eq!(recording.complete().lost, 0);
    assert_eq!(counts["gaps"], 0, "{counts}");
    recording
}

/// Spans of servers that meet a condition.
fn served(recording: &Recording, condition: &str) -> i64 {
    recording.number(&format!(
        "SELECT count(*) FROM spans WHERE kind = 'server' AND {condition}"
    ))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Waits for a file that the server makes.
pub(crate) const WAIT: &str = "until_there() { until_true [ -e \"$1\" ]; }
        until_true() { for i in $(seq 600); do \"$@\" && return; sleep 0.1; done; exit 9; }";

#[test]
fn redis_commands_are_those_that_the_server_counts() {
    need_root!();
    need_loops!();
    need_program!("redis-server", "redis-benchmark", "redis-cli");
    for pipeline in ["1", "8"] {
        let scratch = Scratch::new();
        let script = format!(
            "{WAIT}
            redis-server --port 0 --unixsocket $PWD/sock --save '' >log &
            until_there sock
            redis-benchmark -s sock -q -n 2000 -c 5 -P {pipeline} -t ping_mbulk,set,get,incr,lpush,hset,mset >out
            redis-cli -s sock SET text abc >>out
            redis-cli -s sock INCR text >>out 2>&1 || true
            redis-cli -s sock INFO commandstats >stats
            redis-cli -s sock SHUTDOWN NOSAVE || true
            wait"
        );
        let recording = record(&scratch, "redis", &[], &script);
        let stats = read(&scratch.work().join("stats"));
        let mut compared = 0;
        for line in stats.lines() {
            let Some((name, rest)) = line
                .strip_prefix("cmdstat_")
                .and_then(|l| l.split_once(':'))
            else {
                continue;
            };
            let calls = rest
                .split(',')
                .next()
                .unwrap()
                .strip_prefix("calls=")
                .unwrap();
            // What has a subcommand counts apart.
            let name = name.split('|').next().unwrap().to_uppercase();
            if ["COMMAND", "CONFIG", "CLIENT"].contains(&name.as_str()) {
                continue;
            }
            compared += 1;
            let spans = served(&recording, &format!("name = '{name}'"));
            assert_eq!(spans, calls.parse::<i64>().unwrap(), "{name}: {line}");
            // The clients were recorded, too.
            let condition = format!("kind = 'client' AND name = '{name}'");
            let clients =
                recording.number(&format!("SELECT count(*) FROM spans WHERE {condition}"));
            assert_eq!(clients, spans, "{name} of clients");
        }
        assert!(compared >= 6, "{stats}");
        let failed = "name = 'INCR' AND status = 'error' AND status_message = 'ERR'";
        assert_eq!(served(&recording, failed), 1);
        assert_eq!(served(&recording, "status = 'error'"), 1);
        assert_eq!(served(&recording, "service <> 'redis-server'"), 0);
    }
}

/// Where the programs of PostgreSQL are.
pub(crate) fn postgresql() -> Option<String> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
    let mut dirs: Vec<_> = versions
        .filter_map(|version| Some(version.ok()?.path().join("bin")))
        .filter(|dir| dir.join("initdb").exists() && dir.join("pgbench").exists())
        .collect();
    dirs.sort();
    Some(dirs.pop()?.to_string_lossy().into_owned())
}

#[test]
fn postgresql_statements_are_those_that_the_server_counts() {
    need_root!();
    need_loops!();
    need_program!("runuser");
    let Some(bin) = postgresql() else {
        skip("PostgreSQL is not installed");
        return;
    };
    let scratch = Scratch::new();
    let script = format!(
        "{WAIT}
        export PATH={bin}:$PATH PGHOST=$PWD PGDATABASE=postgres
        cat >inside <<'SCRIPT'
        {WAIT}
        set -e
        initdb -D data -A trust -N >init 2>&1
        postgres -D data -k $PWD -c listen_addresses= -c shared_preload_libraries=pg_stat_statements >log 2>&1 &
        until_there .s.PGSQL.5432
        until_true psql -c 'SELECT 1' >/dev/null 2>&1
        psql -qc 'CREATE EXTENSION pg_stat_statements'
        pgbench -i -q -s 1 2>/dev/null
        psql -qc 'SELECT pg_stat_statements_reset()' >/dev/null
        for mode in simple extended prepared; do
            pgbench -n -c 3 -t 50 -M $mode >bench.$mode 2>&1
        done
        psql -qc 'SELECT 1/0' 2>failure || true
        psql -qc \"SELECT repeat('x', 100) FROM generate_series(1, 1000)\" >long
        psql -qAtF'|' -c \"SELECT calls, query FROM pg_stat_statements WHERE query ~ 'pgbench_'\" >statements
        kill -INT $!
        wait
SCRIPT
        runuser -u nobody -- sh inside"
    );
    let recording = record(&scratch, "postgresql", &[], &script);
    let statements = read(&scratch.work().join("statements"));
    // The server counts the statements of the modes apart.
    let mut calls: BTreeMap<(&str, &str), i64> = BTreeMap::new();
    for line in statements.lines() {
        let (number, query) = line.split_once('|').expect("calls and query");
        let words: Vec<&str> = query.split_whitespace().collect();
        let table = words.iter().find(|word| word.starts_with("pgbench_"));
        if ["UPDATE", "INSERT", "SELECT"].contains(&words[0]) {
            let key = (words[0], *table.expect("a table"));
            *calls.entry(key).or_default() += number.parse::<i64>().expect("calls");
        }
    }
    assert_eq!(calls.len(), 5, "{statements}");
    for ((verb, table), calls) in calls {
        let name = format!("name LIKE '{verb} %{table} %?%'");
        assert_eq!(served(&recording, &name), calls, "{verb} {table}");
        assert_eq!(calls, 450, "{verb} {table}");
    }
    // All modes give a statement one digest.
    let names = recording.number(
        "SELECT count(DISTINCT name) FROM spans WHERE kind = 'server' AND name LIKE 'UPDATE pgbench_accounts%'",
    );
    assert_eq!(names, 1);
    for word in ["BEGIN", "END"] {
        assert_eq!(served(&recording, &format!("name = '{word}'")), 450);
    }
    let failed = "name = 'SELECT ?/?' AND status = 'error' AND status_message = '22012'";
    assert_eq!(served(&recording, failed), 1);
    assert_eq!(served(&recording, "name LIKE 'SELECT repeat(%'"), 1);
    // No literal has been stored: the whole of each statement is in its name.
    let literals = "name LIKE '%xxx%' OR attributes LIKE '%query.text%'";
    assert_eq!(served(&recording, literals), 0);
    // Each write of the log is in the statement that made it.
    let commits = recording.number(
        "SELECT count(DISTINCT span_id) FROM span_calls WHERE span_name = 'END' AND path LIKE '%/pg_wal/%'",
    );
    assert!(commits > 0, "{commits}");
}

#[test]
fn http_requests_are_those_of_the_log() {
    need_root!();
    need_loops!();
    need_program!("nginx", "ab", "curl");
    let scratch = Scratch::new();
    let script = format!(
        "{WAIT}
        mkdir www
        echo hello >www/a.txt
        head -c 300000 /dev/zero >www/large.bin
        cat >conf <<CONF
        pid $PWD/pid; error_log $PWD/errors; worker_processes 2; daemon off; user root;
        events {{ worker_connections 64; }}
        http {{
            log_format short '$(printf '\\044')status $(printf '\\044')request_method $(printf '\\044')uri';
            access_log $PWD/access short; sendfile on;
            client_body_temp_path $PWD/body; proxy_temp_path $PWD/proxy;
            fastcgi_temp_path $PWD/fastcgi; uwsgi_temp_path $PWD/uwsgi; scgi_temp_path $PWD/scgi;
            server {{ listen 127.0.0.1:18341; root $PWD/www; location /no {{ return 503; }} }}
        }}
CONF
        nginx -c $PWD/conf &
        until_there pid
        until_true curl -s -o /dev/null http://127.0.0.1:18341/a.txt
        ab -q -k -n 400 -c 4 http://127.0.0.1:18341/a.txt?x=secret >keep
        ab -q -n 100 -c 3 http://127.0.0.1:18341/large.bin >close
        curl -s -o /dev/null http://127.0.0.1:18341/absent http://127.0.0.1:18341/absent
        curl -s -o /dev/null http://127.0.0.1:18341/no
        curl -s -o /dev/null -I http://127.0.0.1:18341/a.txt
        curl -s -o /dev/null -H 'traceparent: 00-25bb110cdde4f01f02eb51f567907571-d436a762ad96283c-01' \\
            http://127.0.0.1:18341/a.txt
        curl -s -o /dev/null -d @www/large.bin http://127.0.0.1:18341/a.txt
        kill $(cat pid)
        wait"
    );
    let recording = record(&scratch, "http", &[], &script);
    let log = read(&scratch.work().join("access"));
    let mut lines: Vec<&str> = log.lines().collect();
    assert!(lines.len() >= 507, "{}", lines.len());
    assert_eq!(served(&recording, "true"), lines.len() as i64);
    lines.sort_unstable();
    lines.dedup();
    for line in lines {
        let [status, method, path] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        let logged = log.lines().filter(|other| *other == line).count();
        let code = format!("attributes LIKE '%\"http.response.status_code\":{status}}}'");
        let spans = served(&recording, &format!("name = '{method} {path}' AND {code}"));
        assert_eq!(spans, logged as i64, "{line}");
    }
    assert_eq!(
        served(
            &recording,
            "status = 'error' AND status_message = 'HTTP 503'"
        ),
        1
    );
    assert_eq!(served(&recording, "status = 'error'"), 1);
    assert_eq!(
        served(
            &recording,
            "name LIKE '%secret%' OR attributes LIKE '%secret%'"
        ),
        0
    );
    let traced =
        "trace_id = '25bb110cdde4f01f02eb51f567907571' AND parent_span_id = 'd436a762ad96283c'";
    assert_eq!(served(&recording, traced), 1);
    let clients = recording.number("SELECT count(*) FROM spans WHERE kind = 'client'");
    assert!(clients >= 507, "{clients}");
}

/// One request at a time in one thread: each file is read in the span of its request.
/// A script with a server of five files, and a client that gets each.
fn files_over_http(port: u16) -> String {
    format!(
        "{WAIT}
        mkdir www
        for i in 1 2 3 4 5; do echo $i >www/file$i.txt; done
        python3 -m http.server -d www -b 127.0.0.1 {port} 2>log &
        until_true curl -s -o /dev/null http://127.0.0.1:{port}/
        for i in 1 2 3 4 5; do curl -s http://127.0.0.1:{port}/file$i.txt >>out; done
        # The server closes a file after it has answered.
        until_true sh -c \"! ls -l /proc/$!/fd | grep -q /www/file\"
        kill $!
        wait || true"
    )
}

#[test]
fn calls_are_in_the_request_that_made_them() {
    need_root!();
    need_loops!();
    need_program!("python3", "curl");
    let scratch = Scratch::new();
    let recording = record(&scratch, "all", &[], &files_over_http(18342));
    for i in 1..=5 {
        let name = format!("GET /file{i}.txt");
        assert_eq!(served(&recording, &format!("name = '{name}'")), 1);
        let calls = |condition: &str| {
            recording.number(&format!(
                "SELECT count(*) FROM span_calls WHERE path LIKE '%/www/file{i}.txt' AND {condition}
                 AND pid IN (SELECT pid FROM spans WHERE kind = 'server')"
            ))
        };
        // The server reads up to the end of the file and closes it after the response.
        let own = format!("span_name = '{name}'");
        assert_eq!(calls(&format!("syscall = 'openat' AND {own}")), 1, "{name}");
        assert!(calls(&format!("syscall = 'read' AND bytes > 0 AND {own}")) > 0);
        assert_eq!(calls("syscall = 'close' AND span_name IS NULL"), 1);
        let others = format!("syscall IN ('read', 'openat', 'close') AND NOT {own}");
        assert_eq!(calls(&others), 0, "{name}");
    }
}

/// OTLP, read by OpenTelemetry's definitions and by fathom's own import.
#[test]
fn spans_are_exported_with_the_calls_in_them() {
    need_root!();
    need_loops!();
    need_program!("python3", "curl");
    let python = need_python!();
    let scratch = Scratch::new();
    let recording = record(&scratch, "http", &[], &files_over_http(18343));
    let (otlp, errors) = export(&recording.session, "otlp", &[]);
    let file = scratch.root().join("spans.jsonl");
    fs::write(&file, otlp).unwrap();
    let script = project().join("tests/python/otlp_check.py");
    let read = must_run(python, [script.as_os_str(), file.as_os_str()]);
    let read: Vec<Value> = serde_json::from_slice(&read).unwrap();

    let count =
        |kind: &dyn Fn(&Value) -> bool| read.iter().filter(|span| kind(span)).count() as i64;
    let spans = count(&|span| span["rid"].is_null());
    assert_eq!(spans, recording.number("SELECT count(*) FROM spans"));
    let calls = count(&|span| !span["rid"].is_null() && span["layer"].is_null());
    let inside = "FROM span_calls WHERE span_id IS NOT NULL";
    assert_eq!(
        calls,
        recording.number(&format!("SELECT count(*) {inside}"))
    );
    let layers = count(&|span| !span["layer"].is_null());
    let visits =
        format!("SELECT count(*) FROM slices WHERE depth > 0 AND rid IN (SELECT rid {inside})");
    assert_eq!(layers, recording.number(&visits));
    assert!(
        spans >= 10 && calls > spans && layers > 0,
        "{spans} {calls} {layers}"
    );
    let outside = recording.number("SELECT count(*) FROM span_calls WHERE span_id IS NULL");
    assert!(
        errors.contains(&format!("{outside} calls are left out")),
        "{errors}"
    );

    // Each is where SQL has it, on the wall clock.
    let sql = format!(
        "SELECT c.rid, span_name, epoch_ns(wall_time(c.ts_ns)) AS start, c.dur_ns {inside}"
    )
    .replace("FROM span_calls", "FROM span_calls AS c");
    for row in recording.rows(&sql) {
        let number = |name| row.int(name).unwrap();
        let call = read
            .iter()
            .find(|span| span["rid"] == number("rid") && span["layer"].is_null());
        let call = call.unwrap();
        let parent = read
            .iter()
            .find(|span| span["id"][1] == call["parent"])
            .unwrap();
        assert_eq!(parent["name"], row.text("span_name").unwrap());
        let time = |name: &str| call[name].as_i64().unwrap();
        assert_eq!(time("end") - time("start"), number("dur_ns"));
        // wall_time() has the clock of the start, the export the drift since then, too.
        assert!((time("start") - number("start")).abs() < 10_000_000);
    }

    // Nothing is lost on the way back.
    let other = scratch.session("other");
    let copied = Command::new("cp")
        .arg("-r")
        .args([&recording.session, &other])
        .status();
    assert!(copied.unwrap().success());
    let into = [
        OsStr::new("import"),
        "--into".as_ref(),
        other.as_ref(),
        file.as_ref(),
    ];
    must_run(fathom(), into);
    let all = session::query(&other, "SELECT count(*) AS n FROM spans")[0].int("n");
    assert_eq!(all, Some(spans + calls + layers));
}

#[test]
fn mysql_statements_are_those_of_the_client() {
    need_root!();
    need_loops!();
    need_program!("mariadbd", "mariadb", "mariadb-install-db");
    let scratch = Scratch::new();
    let script = format!(
        "{WAIT}
        mkdir data
        mariadb-install-db --no-defaults --datadir=$PWD/data --user=root --auth-root-authentication-method=normal --skip-test-db >init 2>&1
        mariadbd --no-defaults --datadir=$PWD/data --user=root --skip-networking --socket=$PWD/sock >log 2>&1 &
        until_there sock
        client='mariadb --no-defaults --skip-ssl -u root -S sock'
        until_true $client -e 'SELECT 1' >/dev/null 2>&1
        $client -e 'CREATE DATABASE d; CREATE TABLE d.t (a INT PRIMARY KEY, b TEXT)'
        for i in $(seq 100); do echo \"INSERT INTO d.t VALUES ($i, 'text $i');\"; done | $client
        for i in $(seq 50); do echo \"SELECT b FROM d.t WHERE a = $i;\"; done | $client >out
        $client -e 'SELECT b FROM d.absent' 2>failure || true
        $client -e \"PREPARE p FROM 'SELECT 1'; EXECUTE p\" >>out
        $client -e SHUTDOWN
        wait"
    );
    let recording = record(&scratch, "mysql", &["--content", "plain"], &script);
    let count = |condition: &str| served(&recording, condition);
    assert_eq!(count("name = 'INSERT INTO d.t VALUES (?, ...)'"), 100);
    assert_eq!(count("name = 'SELECT b FROM d.t WHERE a = ?'"), 50);
    // Table d.absent does not exist.
    assert_eq!(
        count(
            "name = 'SELECT b FROM d.absent' AND status = 'error' AND status_message LIKE '1146: %'"
        ),
        1
    );
    // The server kills the connection that asked it to end.
    assert_eq!(count("status = 'error' AND name <> 'SHUTDOWN'"), 1);
    // The texts were asked for.
    assert_eq!(
        count("attributes LIKE '%\"db.query.text\":\"INSERT INTO d.t VALUES (7, ''text 7'')\"%'"),
        1
    );
    assert_eq!(count("service <> 'mariadbd'"), 0);
    // Each statement of the client is the one that the server at the other end received.
    let joined = recording.number(
        "SELECT count(DISTINCT sent.span_id) FROM spans AS received JOIN spans AS sent
             ON sent.trace_id = received.trace_id AND sent.span_id = received.parent_span_id
         WHERE received.kind = 'server' AND sent.kind = 'client' AND sent.name = received.name",
    );
    assert_eq!(joined, count("true"));
}

/// Bytes that are none of the protocols give no spans, and are counted.
#[test]
fn other_connections_are_counted() {
    need_root!();
    need_loops!();
    need_program!("python3");
    let scratch = Scratch::new();
    let script = r#"python3 - <<'PYTHON'
import socket
for greeting in (b'220 mail ready\r\n', bytes(range(256)) * 40, b'\x16\x03\x01\x02\x00\x01' + b'x' * 500):
    a, b = socket.socketpair()
    a.sendall(greeting)
    b.recv(20000)
    b.sendall(b'HELO\r\n')
    a.recv(100)
    a.close()
    b.close()
PYTHON"#;
    let recording = record(&scratch, "all", &[], script);
    assert_eq!(recording.number("SELECT count(*) FROM spans"), 0);
    let counts = &meta(&recording.session)["spans"];
    // The last greeting is one of TLS.
    assert_eq!(counts["unrecognized"], 4, "{counts}");
    assert_eq!(counts["encrypted"], 2, "{counts}");
}
