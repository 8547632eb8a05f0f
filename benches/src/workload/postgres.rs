//! pgbench (read/write, 8 clients), untraced, against a traced PostgreSQL.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::{Measured, Run, words};

/// PostgreSQL refuses to run as root.
const USER: &str = "postgres";
/// Rows of pgbench's largest table, in 100,000.
const SCALE: &str = "10";
const CLIENTS: &str = "8";

/// Where its programs are; `None` when it is not installed.
pub fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
    let mut bins: Vec<PathBuf> = versions
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .filter(|bin| bin.join("postgres").exists() && bin.join("pgbench").exists())
        .collect();
    bins.sort();
    bins.pop()
}

/// Runs server and benchmark.
///
/// # Errors
/// When one of them or the tracer fails.
pub fn run(run: &Run) -> Result<Measured> {
    let bin = programs().context("PostgreSQL is not installed")?;
    let dir = run.bench.shared().join("postgres");
    if !dir.join("data").exists() {
        prepare(&bin, &dir)?;
    }
    let command = words([
        &"setpriv",
        &"--reuid",
        &USER,
        &"--regid",
        &USER,
        &"--clear-groups",
        &bin.join("postgres"),
        &"-D",
        &dir.join("data"),
        &"-k",
        &dir,
        &"-c",
        &"listen_addresses=",
    ]);
    let mut server = run.start(&command, &[])?;
    let start = Instant::now();
    while !(as_user(&bin.join("pg_isready"))
        .args(["-q", "-h"])
        .arg(&dir))
    .stdout(Stdio::null())
    .status()?
    .success()
    {
        if server.poll()? || start.elapsed() > Duration::from_secs(60) {
            bail!("postgres does not answer: {}", server.printed());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let seconds = if run.bench.options().quick { "1" } else { "5" };
    let output = as_user(&bin.join("pgbench"))
        .args(["-n", "-c", CLIENTS, "-j", "2", "-T", seconds, "-h"])
        .arg(&dir)
        .arg("postgres")
        .output()
        .context("pgbench")?;
    server.poll()?;
    let stopped = (as_user(&bin.join("pg_ctl")).args(["stop", "-s", "-m", "fast", "-D"]))
        .arg(dir.join("data"))
        .status()?;
    if !stopped.success() {
        bail!("postgres does not end: {}", server.printed());
    }
    let usage = server.finish()?;
    let text = String::from_utf8_lossy(&output.stdout);
    // "tps = 812.345678 (without initial connection time)"
    let rate = text.lines().find_map(|line| {
        let rest = line.strip_prefix("tps = ")?;
        rest.split(' ').next()?.parse().ok()
    });
    Ok(Measured {
        rate: rate.with_context(|| format!("pgbench: {}", text.escape_debug()))?,
        cpu_ns_per_call: None,
        made: None,
        usage,
    })
}

fn as_user(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid", USER, "--regid", USER, "--clear-groups"])
        .arg(program)
        .current_dir("/")
        .stdin(Stdio::null());
    command
}

/// Makes a cluster with pgbench's tables.
fn prepare(bin: &Path, dir: &Path) -> Result<()> {
    fs::create_dir_all(dir)?;
    // The user has to get there.
    let open = |path: &Path| {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(path, mode)
    };
    dir.parent().map(open).transpose()?;
    let done = |status: std::process::ExitStatus, what: &str| match status.success() {
        true => Ok(()),
        false => bail!("{what}: {status}"),
    };
    let owner = format!("{USER}:{USER}");
    done(Command::new("chown").arg(owner).arg(dir).status()?, "chown")?;
    let data = dir.join("data");
    done(
        as_user(&bin.join("initdb"))
            .arg("-D")
            .arg(&data)
            .stdout(Stdio::null())
            .status()?,
        "initdb",
    )?;
    let options = format!("-k {} -c listen_addresses=", dir.display());
    let control = |action: &[&str]| -> Result<()> {
        let status = as_user(&bin.join("pg_ctl"))
            .args(action)
            .args(["-s", "-w", "-D"])
            .arg(&data)
            .stdout(Stdio::null())
            .status()?;
        done(status, "pg_ctl")
    };
    let log = dir.join("log").display().to_string();
    control(&["start", "-o", &options, "-l", &log])?;
    let filled = as_user(&bin.join("pgbench"))
        .args(["-i", "-q", "-s", SCALE, "-h"])
        .arg(dir)
        .arg("postgres")
        .stderr(Stdio::null())
        .status()?;
    control(&["stop", "-m", "fast"])?;
    done(filled, "pgbench -i")
}
