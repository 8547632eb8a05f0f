//! The agent's metrics to a collector by TLS.

use std::fs;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use fathom_tests::certificates::certificate;
use fathom_tests::serve::serve;
use fathom_tests::{Scratch, need_program, need_root};
use serde_json::Value;

use crate::agent::Agent;

/// Writes header and body of each request to a file of its own.
const COLLECTOR: &str = "
import http.server, os, ssl, sys
certificate, key, directory = sys.argv[1:]
class Collector(http.server.BaseHTTPRequestHandler):
    count = 0
    def do_POST(self):
        body = self.rfile.read(int(self.headers['Content-Length']))
        name = os.path.join(directory, str(Collector.count))
        with open(name + '.new', 'wb') as file:
            file.write((self.headers.get('Authorization') or '').encode() + b'\\n' + body)
        os.rename(name + '.new', name)
        Collector.count += 1
        self.send_response(200)
        self.send_header('Content-Length', '0')
        self.end_headers()
    def log_message(self, *_):
        pass
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)
server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Collector)
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
server.serve_forever()
";

struct Collector(Child);

impl Drop for Collector {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[test]
fn a_collector_is_reached_by_tls() {
    need_root!();
    need_program!("openssl", "python3");
    let scratch = Scratch::new();
    let [own, key] = certificate(&scratch, "own");
    let [other, _] = certificate(&scratch, "other");
    let received = scratch.root().join("received");
    fs::create_dir(&received).unwrap();
    let mut collector = Command::new("python3");
    collector.args(["-c", COLLECTOR, &own, &key]).arg(&received);
    let (collector, port) = serve(&mut collector);
    let _collector = Collector(collector);
    let config = |authority: &str| {
        format!(
            "[otlp]\nendpoint = 'https://127.0.0.1:{port}/v1/metrics'\ninterval = '1s'\n\
             certificate-authority = '{authority}'\nheaders = {{ Authorization = 'Bearer secret' }}\n"
        )
    };

    // An authority that has not signed the certificate is none.
    let stranger = Scratch::new();
    let agent = Agent::start(&stranger, &config(&other));
    let failure = agent.hears("cannot send metrics");
    assert!(!failure.contains("secret"), "{failure}");
    agent.stop();
    assert_eq!(fs::read_dir(&received).unwrap().count(), 0);

    let agent = Agent::start(&scratch, &config(&own));
    let first = received.join("0");
    let since = Instant::now();
    while !first.exists() {
        assert!(
            since.elapsed() < Duration::from_secs(30),
            "nothing was sent"
        );
        std::thread::sleep(Duration::from_millis(100));
    }
    agent.stop();
    let text = fs::read_to_string(first).unwrap();
    let (authorization, message) = text.split_once('\n').unwrap();
    assert_eq!(authorization, "Bearer secret");
    let message: Value = serde_json::from_str(message).unwrap();
    let resource = &message["resourceMetrics"][0]["resource"]["attributes"];
    assert!(resource.to_string().contains("\"fathom\""), "{message}");
}
