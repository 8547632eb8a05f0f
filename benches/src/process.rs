//! Runs of a tracer with its program, and what the tracer itself used.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

/// A run that takes longer has hung.
const PATIENCE: Duration = Duration::from_secs(300);

/// What a process used itself, without its children.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    /// Processor time, user and system, in nanoseconds; as fine as the clock
    /// tick.
    pub cpu_ns: u64,
    /// Peak of resident memory, bytes, as last seen before its end.
    pub peak_bytes: u64,
}

/// A running process whose output goes to files.
pub struct Running {
    child: Child,
    log: std::path::PathBuf,
    peak_bytes: u64,
    ended: bool,
}

impl Running {
    /// Starts `command`; what it prints goes to `dir`.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(command: &[OsString], dir: &Path, env: &[(&str, OsString)]) -> Result<Running> {
        Running::spawn(command, dir, env, Stdio::null())
    }

    /// Starts `command` at a gate: its process exists, but the program in it
    /// starts only after [`Running::open_gate`].
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start_gated(
        command: &[OsString],
        dir: &Path,
        env: &[(&str, OsString)],
    ) -> Result<Running> {
        let mut gated: Vec<OsString> = ["sh", "-c", "read -r _ && exec \"$@\"", "sh"]
            .map(OsString::from)
            .to_vec();
        gated.extend_from_slice(command);
        Running::spawn(&gated, dir, env, Stdio::piped())
    }

    fn spawn(
        command: &[OsString],
        dir: &Path,
        env: &[(&str, OsString)],
        stdin: Stdio,
    ) -> Result<Running> {
        let (program, args) = command.split_first().context("an empty command")?;
        let log = dir.join("log");
        let output = File::create(&log).with_context(|| log.display().to_string())?;
        let child = Command::new(program)
            .args(args)
            .envs(env.iter().map(|(k, v)| (k, v)))
            .current_dir(dir)
            .stdin(stdin)
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .with_context(|| program.display().to_string())?;
        Ok(Running {
            child,
            log,
            peak_bytes: 0,
            ended: false,
        })
    }

    /// Process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Lets the program behind the gate start.
    ///
    /// # Errors
    /// When it has ended before.
    pub fn open_gate(&mut self) -> Result<()> {
        let mut stdin = self.child.stdin.take().context("no gate")?;
        stdin
            .write_all(b"\n")
            .context("the program ended before its start")
    }

    /// Looks at its memory; whether it has ended.
    ///
    /// # Errors
    /// When it cannot be waited for.
    pub fn poll(&mut self) -> Result<bool> {
        if self.ended {
            return Ok(true);
        }
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap_or_default();
        let peak = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
        let kib: Option<u64> = peak.and_then(|p| p.split_whitespace().next()?.parse().ok());
        self.peak_bytes = self.peak_bytes.max(kib.unwrap_or(0) * 1024);
        let pid = i32::try_from(self.pid())
            .ok()
            .and_then(Pid::from_raw)
            .context("process id")?;
        // It stays a zombie, whose times can still be read.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        self.ended = waitid(WaitId::Pid(pid), options)?.is_some();
        Ok(self.ended)
    }

    /// Waits for its end, which must be a good one.
    ///
    /// # Errors
    /// When it fails or does not end.
    pub fn finish(mut self) -> Result<Usage> {
        let start = Instant::now();
        while !self.poll()? {
            if start.elapsed() > PATIENCE {
                bail!("it does not end:\n{}", self.printed());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let usage = Usage {
            cpu_ns: cpu_ns(self.pid())?,
            peak_bytes: self.peak_bytes,
        };
        let status = self.child.wait()?;
        if !status.success() {
            bail!("{status}: {}", self.printed());
        }
        Ok(usage)
    }

    /// All that it printed.
    pub fn everything(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// The last lines that it printed.
    pub fn printed(&self) -> String {
        let text = self.everything();
        let lines: Vec<_> = text.lines().rev().take(5).collect();
        lines
            .into_iter()
            .rev()
            .map(|l| l.escape_debug().to_string())
            .collect::<Vec<_>>()
            .join("\n")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Waited for already when it ended well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Processor time of a process, its ended threads included.
fn cpu_ns(pid: u32) -> Result<u64> {
    let path = format!("/proc/{pid}/stat");
    let text = fs::read_to_string(&path).with_context(|| path.clone())?;
    // Behind the name, which may hold anything: state is field 3, utime 14.
    let fields = text
        .rsplit_once(") ")
        .map(|(_, rest)| rest.split(' '))
        .context("its format")?;
    let ticks: u64 = fields
        .skip(11)
        .take(2)
        .filter_map(|f| f.parse::<u64>().ok())
        .sum();
    Ok(ticks * 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1))
}
