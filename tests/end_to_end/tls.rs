//! `fathom record --spans`: requests on encrypted connections, compared with what servers and clients count that
//! were not written for fathom.

use std::collections::BTreeMap;
use std::fs;

use fathom_tests::certificates::certificate;
use fathom_tests::session::meta;
use fathom_tests::tools::project;
use fathom_tests::{Recording, Scratch, need_program, need_root, skip};
use serde_json::Value;

use crate::kernel::release;
use crate::protocols::{WAIT, postgresql, record};

macro_rules! need_content {
    () => {
        need_root!();
        if release() < (5, 17) {
            skip("the programs for this kernel read no bytes of calls");
            return;
        }
    };
}

fn spans(recording: &Recording, kind: &str, condition: &str) -> i64 {
    recording.number(&format!(
        "SELECT count(*) FROM spans WHERE kind = '{kind}' AND {condition}"
    ))
}

fn counts(recording: &Recording) -> Value {
    meta(&recording.session)["spans"].clone()
}

/// A certificate, its key, and a directory that every user may read.
fn credentials(scratch: &Scratch) -> [String; 2] {
    certificate(scratch, "server")
}

/// Starts a server of HTTPS with a thread for each connection, of the files in `www`.
fn https_server(port: u16, [certificate, key]: &[String; 2]) -> String {
    format!(
        "cat >server.py <<'PYTHON'
import http.server, ssl
context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
context.load_cert_chain('{certificate}', '{key}')
class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def __init__(self, *args):
        super().__init__(*args, directory='www')
server = http.server.ThreadingHTTPServer(('127.0.0.1', {port}), Handler)
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
PYTHON
        python3 server.py 2>log &"
    )
}

/// A server with a thread for each connection, and curl: both use OpenSSL on sockets.
#[test]
fn https_requests_are_those_of_the_log() {
    need_content!();
    need_program!("python3", "curl", "openssl");
    let scratch = Scratch::new();
    let credentials = credentials(&scratch);
    let server = https_server(18351, &credentials);
    let [certificate, _] = credentials;
    let script = format!(
        "{WAIT}
        mkdir www
        echo hello >www/a.txt
        head -c 300000 /dev/zero >www/large.bin
        {server}
        url=https://127.0.0.1:18351
        get='curl -s --http1.1 --cacert {certificate}'
        until_true $get -o /dev/null $url/a.txt
        for i in $(seq 20); do $get -o /dev/null \"$url/a.txt?x=secret\"; done
        $get -o /dev/null -o /dev/null -o /dev/null $url/large.bin $url/absent $url/large.bin
        $get -o /dev/null -I $url/a.txt
        kill $!
        wait || true"
    );
    let recording = record(&scratch, "http", &[], &script);
    let log = fs::read_to_string(scratch.work().join("log")).unwrap();
    let requests: Vec<&str> = log
        .lines()
        .filter_map(|line| line.split('\"').nth(1))
        .collect();
    assert_eq!(requests.len(), 25, "{log}");
    for kind in ["server", "client"] {
        assert_eq!(spans(&recording, kind, "true"), 25, "{kind}");
        for (name, number) in [
            ("GET /a.txt", 21),
            ("GET /large.bin", 2),
            ("GET /absent", 1),
            ("HEAD /a.txt", 1),
        ] {
            assert_eq!(
                spans(&recording, kind, &format!("name = '{name}'")),
                number,
                "{kind}: {name}"
            );
        }
    }
    let logged = requests
        .iter()
        .filter(|line| line.starts_with("GET /a.txt"));
    assert_eq!(logged.count(), 21);
    let counts = counts(&recording);
    assert_eq!(counts["unrecognized"], 0, "{counts}");
    assert_eq!(counts["encrypted"], 0, "{counts}");
    let secret = "name LIKE '%secret%' OR attributes LIKE '%secret%'";
    assert_eq!(
        recording.number(&format!("SELECT count(*) FROM spans WHERE {secret}")),
        0
    );
    // The server reads the file between the call that received the request and the one that answers.
    let reads = "syscall = 'openat' AND path LIKE '%/www/a.txt'";
    let inside = recording.number(&format!(
        "SELECT count(*) FROM span_calls WHERE {reads} AND span_name LIKE '% /a.txt'"
    ));
    assert_eq!(inside, 22);
    // Each request of curl is the one that the server received.
    let joined = recording.number(
        "SELECT count(*) FROM spans AS received JOIN spans AS sent ON sent.span_id = received.parent_span_id
         WHERE received.kind = 'server' AND sent.kind = 'client' AND sent.name = received.name
             AND sent.ts_ns <= received.ts_ns + 10000000",
    );
    assert_eq!(joined, 25);
}

/// Programs that use connections as few do, on a port.
fn unusual_programs(scratch: &Scratch, port: u16, options: &[&str]) -> Recording {
    let [certificate, key] = credentials(scratch);
    let servers = project().join("tests/python/tls_servers.py");
    let script = format!(
        "python3 -W ignore {} {port} {certificate} {key}",
        servers.display()
    );
    record(scratch, "http", options, &script)
}

#[test]
fn requests_of_unusual_programs() {
    need_content!();
    need_program!("python3", "openssl");
    let scratch = Scratch::new();
    let recording = unusual_programs(&scratch, 18352, &[]);
    for kind in ["server", "client"] {
        for path in ["pieces", "threads", "parent", "child"] {
            let name = format!("name = 'POST /{path}'");
            assert_eq!(spans(&recording, kind, &name), 1, "{kind}: {path}");
        }
        for number in 0..4 {
            let name = format!("name = 'POST /memory{number}'");
            assert_eq!(spans(&recording, kind, &name), 30, "{kind}: {number}");
        }
    }
    // Which thread answered is not one.
    assert_eq!(
        spans(
            &recording,
            "server",
            "name = 'POST /threads' AND tid IS NULL"
        ),
        1
    );
    assert_eq!(
        spans(
            &recording,
            "client",
            "name = 'POST /threads' AND tid IS NOT NULL"
        ),
        1
    );
    let children = recording.number(
        "SELECT count(DISTINCT pid) FROM spans WHERE kind = 'server' AND name IN ('POST /parent', 'POST /child')",
    );
    assert_eq!(children, 2);
    // Connections through memory: which sockets they were on is not known.
    let counts = counts(&recording);
    assert_eq!(counts["encrypted"], 24, "{counts}");
    assert_eq!(counts["unrecognized"], 0, "{counts}");
    assert_eq!(counts["unfinished"], 0, "{counts}");
}

#[test]
fn encrypted_connections_are_counted_without_the_library() {
    need_content!();
    need_program!("python3", "openssl");
    let scratch = Scratch::new();
    let recording = unusual_programs(&scratch, 18353, &["--no-tls"]);
    assert_eq!(recording.number("SELECT count(*) FROM spans"), 0);
    let counts = counts(&recording);
    // Both ends of three connections on sockets, and of twelve through memory.
    assert_eq!(counts["encrypted"], 30, "{counts}");
    assert_eq!(counts["unrecognized"], 0, "{counts}");
    assert_eq!(counts["tls_calls"], 0, "{counts}");
}

#[test]
fn postgresql_statements_are_those_that_the_server_counts() {
    need_content!();
    need_program!("runuser", "openssl");
    let Some(bin) = postgresql() else {
        skip("PostgreSQL is not installed");
        return;
    };
    let scratch = Scratch::new();
    let [certificate, key] = credentials(&scratch);
    let script = format!(
        "{WAIT}
        export PATH={bin}:$PATH PGHOST=127.0.0.1 PGPORT=18354 PGDATABASE=postgres PGSSLMODE=require
        install -m 600 -o nobody {certificate} server.crt
        install -m 600 -o nobody {key} server.key
        cat >inside <<'SCRIPT'
        {WAIT}
        set -e
        initdb -D data -A trust -N >init 2>&1
        postgres -D data -k $PWD -p 18354 -c listen_addresses=127.0.0.1 -c shared_preload_libraries=pg_stat_statements \\
            -c ssl=on -c ssl_cert_file=$PWD/server.crt -c ssl_key_file=$PWD/server.key >log 2>&1 &
        until_there .s.PGSQL.18354
        until_true psql -c 'SELECT 1' >/dev/null 2>&1
        psql -qc 'CREATE EXTENSION pg_stat_statements'
        pgbench -i -q -s 1 2>/dev/null
        psql -qc 'SELECT pg_stat_statements_reset()' >/dev/null
        for mode in simple prepared; do
            pgbench -n -c 3 -t 50 -M $mode >bench.$mode 2>&1
        done
        psql -qc 'SELECT 1/0' 2>failure || true
        psql -qc \"SELECT repeat('x', 100) FROM generate_series(1, 1000)\" >long
        psql -qAtF'|' -c \"SELECT sum(calls), split_part(query, ' ', 1) FROM pg_stat_statements
            WHERE query ~ 'pgbench_' GROUP BY 2\" >statements
        psql -qAtc 'SELECT count(*) FROM pg_stat_ssl WHERE ssl' >encrypted
        kill -INT $!
        wait
SCRIPT
        runuser -u nobody -- sh inside"
    );
    let recording = record(&scratch, "postgresql", &[], &script);
    let read = |name: &str| fs::read_to_string(scratch.work().join(name)).unwrap();
    assert_eq!(read("encrypted").trim(), "1");
    let mut calls: BTreeMap<String, i64> = BTreeMap::new();
    for line in read("statements").lines() {
        let (number, word) = line.split_once('|').unwrap();
        calls.insert(word.to_owned(), number.parse().unwrap());
    }
    for word in ["UPDATE", "INSERT", "SELECT"] {
        let name =
            format!("name LIKE '{word} %pgbench_%' AND name NOT LIKE '%pg_stat_statements%'");
        let expected = if word == "UPDATE" { 900 } else { 300 };
        assert_eq!(calls[word], expected, "{calls:?}");
        for kind in ["server", "client"] {
            assert_eq!(
                spans(&recording, kind, &name),
                calls[word],
                "{word} of the {kind}"
            );
        }
    }
    let failed = "name = 'SELECT ?/?' AND status = 'error' AND status_message = '22012'";
    assert_eq!(spans(&recording, "server", failed), 1);
    assert_eq!(spans(&recording, "client", failed), 1);
    let counts = counts(&recording);
    assert_eq!(counts["encrypted"], 0, "{counts}");
    let commits = recording.number(
        "SELECT count(DISTINCT span_id) FROM span_calls WHERE span_name = 'END' AND path LIKE '%/pg_wal/%'",
    );
    assert!(commits > 0, "{commits}");
}

#[test]
fn redis_commands_are_those_that_the_server_counts() {
    need_content!();
    need_program!("redis-server", "redis-benchmark", "redis-cli", "openssl");
    let scratch = Scratch::new();
    let [certificate, key] = credentials(&scratch);
    let script = format!(
        "{WAIT}
        tls='--tls --cacert {certificate}'
        redis-server --port 0 --tls-port 18355 --tls-cert-file {certificate} --tls-key-file {key} --tls-auth-clients no \\
            --save '' >log &
        cli=\"redis-cli -p 18355 $tls\"
        until_true $cli ECHO there >/dev/null 2>&1
        redis-benchmark -p 18355 $tls -q -n 2000 -c 5 -t ping_mbulk,set,get,incr,lpush,hset,mset >out
        $cli SET text abc >>out
        $cli INCR text >>out 2>&1 || true
        $cli INFO commandstats >stats
        $cli SHUTDOWN NOSAVE || true
        wait"
    );
    let recording = record(&scratch, "redis", &[], &script);
    let stats = fs::read_to_string(scratch.work().join("stats")).unwrap();
    let mut compared = 0;
    for line in stats
        .lines()
        .filter_map(|line| line.strip_prefix("cmdstat_"))
    {
        let (name, rest) = line.split_once(':').unwrap();
        let calls = rest
            .split(',')
            .next()
            .unwrap()
            .strip_prefix("calls=")
            .unwrap();
        let name = name.split('|').next().unwrap().to_uppercase();
        if ["COMMAND", "CONFIG", "CLIENT"].contains(&name.as_str()) {
            continue;
        }
        compared += 1;
        for kind in ["server", "client"] {
            let named = spans(&recording, kind, &format!("name = '{name}'"));
            assert_eq!(
                named,
                calls.parse::<i64>().unwrap(),
                "{name} of the {kind}: {line}"
            );
        }
    }
    assert!(compared >= 6, "{stats}");
    let failed = "name = 'INCR' AND status = 'error' AND status_message = 'ERR'";
    assert_eq!(spans(&recording, "server", failed), 1);
    assert_eq!(counts(&recording)["encrypted"], 0);
}

/// nginx reads ahead, and sends files by itself.
#[test]
fn requests_to_nginx_are_those_of_its_log() {
    need_content!();
    need_program!("nginx", "ab", "curl", "openssl");
    let scratch = Scratch::new();
    let [certificate, key] = credentials(&scratch);
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
            server {{
                listen 127.0.0.1:18356 ssl; ssl_certificate {certificate}; ssl_certificate_key {key};
                root $PWD/www; location /no {{ return 503; }}
            }}
        }}
CONF
        nginx -c $PWD/conf &
        until_there pid
        url=https://127.0.0.1:18356
        get='curl -s --http1.1 --cacert {certificate} -o /dev/null'
        until_true $get $url/a.txt
        ab -q -k -n 400 -c 4 $url/a.txt?x=secret >keep
        ab -q -n 100 -c 3 $url/large.bin >close
        $get $url/absent -o /dev/null $url/absent
        $get $url/no
        $get -d @www/large.bin $url/a.txt || true
        kill $(cat pid)
        wait"
    );
    let recording = record(&scratch, "http", &[], &script);
    let log = fs::read_to_string(scratch.work().join("access")).unwrap();
    let mut lines: Vec<&str> = log.lines().collect();
    assert!(lines.len() >= 505, "{}", lines.len());
    for kind in ["server", "client"] {
        assert_eq!(
            spans(&recording, kind, "true"),
            lines.len() as i64,
            "{kind}"
        );
    }
    lines.sort_unstable();
    lines.dedup();
    for line in lines {
        let [status, method, path] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        let logged = log.lines().filter(|other| *other == line).count();
        let code = format!("attributes LIKE '%\"http.response.status_code\":{status}}}'");
        let served = spans(
            &recording,
            "server",
            &format!("name = '{method} {path}' AND {code}"),
        );
        assert_eq!(served, logged as i64, "{line}");
    }
    let counts = counts(&recording);
    assert_eq!(counts["encrypted"], 0, "{counts}");
}

/// Debian's wget uses GnuTLS.
#[test]
fn requests_through_gnutls() {
    need_content!();
    need_program!("python3", "wget", "openssl");
    let scratch = Scratch::new();
    let version = std::process::Command::new("wget").arg("--version").output();
    if !version.is_ok_and(|v| String::from_utf8_lossy(&v.stdout).contains("+ssl/gnutls")) {
        skip("wget does not use GnuTLS");
        return;
    }
    let credentials = credentials(&scratch);
    let server = https_server(18357, &credentials);
    let [certificate, _] = credentials;
    let script = format!(
        "{WAIT}
        mkdir www
        head -c 100000 /dev/zero >www/a.bin
        {server}
        get='wget -q --ca-certificate={certificate} -O got https://127.0.0.1:18357/a.bin'
        until_true $get
        for i in $(seq 10); do
            $get
            cmp got www/a.bin
        done
        kill $!
        wait || true"
    );
    let recording = record(&scratch, "http", &[], &script);
    for kind in ["server", "client"] {
        assert_eq!(spans(&recording, kind, "name = 'GET /a.bin'"), 11, "{kind}");
    }
    assert_eq!(counts(&recording)["encrypted"], 0);
}
