//! redis-benchmark, untraced, against a traced redis-server that keeps an
//! append-only file and writes a log.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::{Measured, Run, words};

/// SET requests of 100 bytes by 50 clients.
const REQUESTS: u64 = 200_000;

/// Runs server and benchmark.
///
/// # Errors
/// When one of them or the tracer fails.
pub fn run(run: &Run) -> Result<Measured> {
    let socket = run.dir.join("redis");
    let log = run.dir.join("redis.log");
    let command = words([
        &"redis-server",
        &"--port",
        &"0",
        &"--unixsocket",
        &socket,
        &"--dir",
        &run.dir,
        &"--appendonly",
        &"yes",
        &"--appendfsync",
        &"everysec",
        &"--save",
        &"3600 100000000",
        &"--daemonize",
        &"no",
        &"--logfile",
        &log,
    ]);
    let mut server = run.start(&command, &[])?;
    let start = Instant::now();
    while !answers(&socket) {
        if server.poll()? || start.elapsed() > Duration::from_secs(60) {
            bail!("redis-server does not answer: {}", server.printed());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let rate = benchmark(&socket, run.amount(REQUESTS));
    server.poll()?;
    let mut connection = UnixStream::connect(&socket).context("redis-server")?;
    connection.write_all(b"SHUTDOWN NOSAVE\r\n")?;
    let usage = server.finish()?;
    Ok(Measured {
        rate: rate?,
        cpu_ns_per_call: None,
        made: None,
        usage,
    })
}

fn answers(socket: &Path) -> bool {
    let mut reply = [0; 5];
    let mut ping = || -> std::io::Result<bool> {
        let mut connection = UnixStream::connect(socket)?;
        connection.set_read_timeout(Some(Duration::from_secs(5)))?;
        connection.write_all(b"PING\r\n")?;
        connection.read_exact(&mut reply)?;
        Ok(&reply == b"+PONG")
    };
    ping().unwrap_or(false)
}

fn benchmark(socket: &Path, requests: u64) -> Result<f64> {
    let output = Command::new("redis-benchmark")
        .arg("-s")
        .arg(socket)
        .args([
            "-t", "set", "-d", "100", "-c", "50", "-r", "100000", "--csv", "-n",
        ])
        .arg(requests.to_string())
        .stdin(Stdio::null())
        .output()
        .context("redis-benchmark")?;
    let text = String::from_utf8_lossy(&output.stdout);
    // "SET","123456.78",... below a line of names.
    let rate = text
        .lines()
        .find_map(|line| line.strip_prefix("\"SET\",\""));
    rate.and_then(|rest| rest.split('"').next()?.parse().ok())
        .with_context(|| format!("redis-benchmark: {}", text.escape_debug()))
}
