//! `fathom record --spans`: requests that caused each other in several programs, from the URL to the
//! application behind the web server and to its database.

use std::fs;

use fathom_tests::environment::{fathom, must_run};
use fathom_tests::{Scratch, need_program, need_root, skip};

use crate::kernel::release;
use crate::protocols::{WAIT, record};

/// An application that speaks FastCGI: two processes, which read a file for each request.
const APPLICATION: &str = r#"import os, signal, socket, struct
listener = socket.socket(socket.AF_UNIX)
listener.bind('app.sock')
listener.listen(64)
os.fork()

def read(connection, size):
    data = b''
    while len(data) < size:
        data += connection.recv(size - len(data))
    return data

def record(kind, data):
    return struct.pack('>BBHHBx', 1, kind, 1, len(data), 0) + data

while True:
    connection, _ = listener.accept()
    params = b''
    while True:
        _, kind, _, size, padding = struct.unpack('>BBHHBx', read(connection, 8))
        data = read(connection, size + padding)[:size]
        if kind == 4:
            params += data
        if kind == 5 and not size:
            break
    with open('content.txt') as file:
        content = file.read()
    status = 'Status: 404 Not Found\r\n' if b'/app/absent' in params else ''
    output = status + 'Content-Type: text/plain\r\n\r\n' + content
    connection.sendall(record(6, output.encode()) + record(6, b'') + record(3, bytes(8)))
    connection.close()
"#;

#[test]
fn requests_of_a_web_server_lead_to_its_application() {
    need_root!();
    if release() < (5, 17) {
        skip("the programs for this kernel read no bytes of calls");
        return;
    }
    need_program!("nginx", "ab", "curl", "python3");
    let scratch = Scratch::new();
    let dollar = "$(printf '\\044')";
    let script = format!(
        "{WAIT}
        echo hello >content.txt
        cat >app.py <<'PYTHON'
{APPLICATION}
PYTHON
        cat >conf <<CONF
        pid $PWD/pid; error_log $PWD/errors; worker_processes 1; daemon off; user root;
        events {{ worker_connections 64; }}
        http {{
            log_format short '{dollar}status {dollar}request_method {dollar}uri';
            access_log $PWD/access short;
            client_body_temp_path $PWD/body; proxy_temp_path $PWD/proxy;
            fastcgi_temp_path $PWD/fastcgi; uwsgi_temp_path $PWD/uwsgi; scgi_temp_path $PWD/scgi;
            server {{
                listen 127.0.0.1:18345;
                location /app/ {{ include /etc/nginx/fastcgi_params; fastcgi_pass unix:$PWD/app.sock; }}
            }}
        }}
CONF
        setsid python3 app.py &
        application=$!
        until_there app.sock
        nginx -c $PWD/conf -e errors &
        until_there pid
        until_true curl -s -o /dev/null http://127.0.0.1:18345/app/first
        ab -q -n 300 -c 6 http://127.0.0.1:18345/app/page?x=secret >counts
        curl -s -o /dev/null http://127.0.0.1:18345/app/absent
        kill $(cat pid)
        kill -- -$application
        wait || true"
    );
    let recording = record(&scratch, "http,fastcgi", &[], &script);
    let log = fs::read_to_string(scratch.work().join("access")).unwrap();
    let passed = log.lines().count() as i64;
    assert!(passed >= 302, "{log}");
    let applied = "kind = 'server' AND attributes LIKE '%\"network.protocol.name\":\"fastcgi\"%'";
    let count = |condition: &str| {
        recording.number(&format!("SELECT count(*) FROM spans WHERE {condition}"))
    };
    assert_eq!(count(applied), passed);
    assert_eq!(
        count("name LIKE '%secret%' OR attributes LIKE '%secret%'"),
        0
    );
    let absent =
        "name = 'GET /app/absent' AND attributes LIKE '%\"http.response.status_code\":404}'";
    assert_eq!(count(&format!("{applied} AND {absent}")), 1);

    // Each has its request of nginx above it, also of those that nginx answers at a time.
    let trees = recording.number(&format!(
        "SELECT count(DISTINCT received.span_id) FROM (SELECT * FROM spans WHERE {applied}) AS applied
         JOIN spans AS sent ON sent.trace_id = applied.trace_id AND sent.span_id = applied.parent_span_id
         JOIN spans AS received ON received.trace_id = sent.trace_id AND received.span_id = sent.parent_span_id
         WHERE sent.kind = 'client' AND received.kind = 'server' AND sent.pid = received.pid
             AND applied.pid <> sent.pid AND received.name = applied.name
             AND received.ts_ns <= sent.ts_ns AND applied.ts_ns + applied.dur_ns <= received.ts_ns + received.dur_ns"
    ));
    assert_eq!(trees, passed);
    // The file is read for a URL: below a request of ab or curl, which are recorded, too.
    let read = recording.number(
        "SELECT count(DISTINCT root.span_id) FROM span_calls AS c JOIN spans AS root USING (trace_id)
         WHERE c.path LIKE '%/content.txt' AND c.syscall = 'read' AND c.bytes = 6
             AND root.kind = 'client' AND root.parent_span_id IS NULL AND root.name LIKE 'GET /app/%'",
    );
    assert_eq!(read, passed);

    let told = must_run(
        fathom(),
        [
            "why".as_ref(),
            recording.session.as_os_str(),
            "--span".as_ref(),
            "GET /app/absent".as_ref(),
        ],
    );
    let told = String::from_utf8(told).unwrap();
    assert!(told.starts_with("GET /app/absent by nginx"), "{told}");
    assert!(told.contains("\npython3 (PID "), "{told}");
    let steps: Vec<&str> = told
        .lines()
        .filter(|line| line.ends_with(": GET /app/absent"))
        .collect();
    assert!(
        matches!(steps[..], [above, below] if above.contains("nginx (PID") && below.contains("  python3 (PID")),
        "{told}"
    );
}
