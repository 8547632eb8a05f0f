//! The agent's metrics in Prometheus, and the queries of the dashboard.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fathom_tests::environment::must_run;
use fathom_tests::tools::project;
use fathom_tests::{Scratch, need_program, need_root};
use serde_json::Value;

use crate::agent::{Agent, PATIENCE, SETTLED, copy, own_dd};

/// Prometheus, and what it answers to queries.
struct Prometheus {
    child: Child,
    address: String,
}

impl Prometheus {
    fn start(scratch: &Scratch, agent: SocketAddr) -> Prometheus {
        let config = scratch.root().join("prometheus.yml");
        let text = format!(
            "global:\n  scrape_interval: 1s\nscrape_configs:\n  - job_name: fathom\n    \
             static_configs:\n      - targets: ['{agent}']\n"
        );
        fs::write(&config, text).unwrap();
        // Free now; nothing else on this machine asks for it in the meantime.
        let address = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = address.local_addr().unwrap().to_string();
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", config.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                scratch.root().join("tsdb").display()
            ))
            .arg(format!("--web.listen-address={address}"))
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Prometheus { child, address }
    }

    fn query(&self, query: &str) -> Value {
        let answer = must_run(
            "curl",
            [
                "-s",
                // Of an answer that is tried again nothing is printed.
                "-f",
                &format!("http://{}/api/v1/query", self.address),
                "--retry",
                "30",
                "--retry-connrefused",
                "--retry-delay",
                "1",
                "--data-urlencode",
                &format!("query={query}"),
            ],
        );
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        assert_eq!(answer["status"], "success", "{query}: {answer}");
        answer["data"]["result"].clone()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[test]
fn prometheus_and_the_dashboard_read_it() {
    need_root!();
    need_program!("prometheus");
    need_program!("curl");
    let scratch = Scratch::new();
    let dd = own_dd(&scratch, "agent-prom");
    let agent = Agent::start(&scratch, "[metrics]\nby = ['command', 'file_type']\n");
    let prometheus = Prometheus::start(&scratch, agent.page.address);
    prometheus.query("up");
    let until = Instant::now() + PATIENCE;
    let writes = "sum(fathom_call_duration_seconds_count{command=\"agent-prom\",operation=\"write\",file_type=\"regular\"})";
    let mut copies = 0.0;
    let rates = loop {
        copy(&dd, &scratch);
        copies += 1.0;
        std::thread::sleep(Duration::from_secs(1));
        let rates = prometheus.query("rate(fathom_call_bytes_total{command=\"agent-prom\"}[10s])");
        if copies >= 4.0 && !rates.as_array().unwrap().is_empty() {
            break rates;
        }
        assert!(Instant::now() < until, "no rates");
    };
    assert!(rates.as_array().unwrap().len() > 2, "{rates}");
    // Other programs may keep the agent and the next scrape waiting.
    let wanted = format!("{}", copies * 2000.0);
    let settled = Instant::now() + PATIENCE;
    while prometheus.query(writes)[0]["value"][1] != wanted.as_str() && Instant::now() < settled {
        std::thread::sleep(SETTLED);
    }
    let found = prometheus.query(writes);
    let why = prometheus.query(
        "fathom_calls_lost_total or fathom_calls_without_labels_total or \
         sum by (command, file_type) (fathom_call_duration_seconds_count{operation=\"write\"})",
    );
    assert_eq!(found[0]["value"][1], wanted.as_str(), "{why}");
    let up = prometheus.query("up");
    assert_eq!(up[0]["value"][1], "1");

    let dashboard = project().join("deploy/grafana/fathom.json");
    let dashboard: Value = serde_json::from_slice(&fs::read(dashboard).unwrap()).unwrap();
    let mut answered = 0;
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().unwrap() {
            let query = target["expr"].as_str().unwrap();
            let query = query
                .replace("$__rate_interval", "10s")
                .replace("$command", ".*");
            assert!(!query.contains('$'), "{query}");
            let rows = prometheus.query(&query);
            // Neither problems nor failures of devices have to be there.
            let may_lack = query.contains("findings") || query.contains("device_errors");
            assert!(may_lack || !rows.as_array().unwrap().is_empty(), "{query}");
            answered += 1;
        }
    }
    assert!(answered > 10, "{answered}");
    agent.stop();
}
