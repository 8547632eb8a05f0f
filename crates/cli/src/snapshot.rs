//! `fathom snapshot`: has a recorder save what it keeps.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use fathom_model::meta::Save;
use fathom_session::{Session, is_ours, move_session, open_regular};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::args_keep::SnapshotArgs;
use crate::exit::Failure;

/// How long a recorder may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// File in a session that its recorder holds open.
const LOCK: &str = ".lock";

/// Runs `snapshot` and returns the exit status.
pub fn run(args: &SnapshotArgs) -> Result<u8, Failure> {
    snapshot(args).map_err(Failure::input)
}

fn snapshot(args: &SnapshotArgs) -> anyhow::Result<u8> {
    if let Some(output) = &args.output
        && output.symlink_metadata().is_ok()
    {
        bail!(
            "{} is there already; choose another directory",
            output.display()
        );
    }
    let (dir, recorder) = recorder(&args.session)?;
    let session = Session::glance(&dir)?;
    let last = |session: &Session| session.meta().history.saves.last().map(|s| s.at_ns);
    let before = last(&session);
    pidfd_send_signal(&recorder, Signal::USR1).context("can't signal the recorder")?;
    let save = wait(session, before)?;
    if let Some(error) = save.error {
        bail!("the recorder could not save: {error}");
    }
    let saved = PathBuf::from(&save.path);
    let saved = if saved.is_relative() {
        // As the recorder sees it, whose directory may be another.
        match (dir.parent(), saved.file_name()) {
            (Some(parent), Some(name)) => named_in(parent, &name.to_string_lossy()),
            _ => saved,
        }
    } else {
        saved
    };
    let output = match &args.output {
        Some(output) => {
            move_session(&saved, output)?;
            output
        }
        None => &saved,
    };
    println!("{}", output.display());
    Ok(0)
}

/// The entry of `parent` whose name is written `name`: session.json is text, and a name need
/// not be.
fn named_in(parent: &Path, name: &str) -> PathBuf {
    let plain = parent.join(name);
    if plain.symlink_metadata().is_ok() {
        return plain;
    }
    let folder = match parent.as_os_str().is_empty() {
        true => Path::new("."),
        false => parent,
    };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut alike = entries.filter(|entry| entry.file_name().to_string_lossy() == name);
    alike
        .next()
        .map_or(plain, |entry| parent.join(entry.file_name()))
}

/// Waits for the next copy.
fn wait(mut session: Session, before: Option<i64>) -> anyhow::Result<Save> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        std::thread::sleep(Duration::from_millis(20));
        session.refresh()?;
        // Not one that --save-when has made meanwhile.
        let mut saves = session.meta().history.saves.iter().rev();
        let asked_for = |save: &&Save| Some(save.at_ns) > before && save.because == "signal";
        if let Some(save) = saves.find(asked_for) {
            return Ok(save.clone());
        }
        if !session.is_live() {
            bail!(
                "the recording has ended; its session is {}",
                session.dir().display()
            );
        }
        if Instant::now() > deadline {
            bail!(
                "the recorder has not saved in {} s; see what it says",
                PATIENCE.as_secs()
            );
        }
    }
}

/// The session that is meant, and the process that records it. A signal ends most programs, so
/// that nobody else's session may tell which process gets one.
fn recorder(named: &Path) -> anyhow::Result<(PathBuf, OwnedFd)> {
    if named.is_dir() {
        let session = Session::glance(named)?;
        if !session.is_live() {
            bail!(
                "{} is not being recorded; it is a session of its own already",
                named.display()
            );
        }
        let path = named.join(LOCK);
        let lock = open_regular(&path)
            .and_then(|lock| lock.metadata())
            .with_context(|| format!("can't read {}", path.display()))?;
        if !is_ours(lock.uid()) || lock.nlink() != 1 {
            bail!(
                "{} is of user {}: only that user can have its recording saved; run fathom as \
                 that user, or give the recorder's process id",
                named.display(),
                lock.uid()
            );
        }
        for entry in fs::read_dir("/proc").context("can't look for the recorder")? {
            let name = entry?.file_name();
            let pid = name.to_str().and_then(|n| n.parse().ok());
            let Some(pid) = pid.and_then(Pid::from_raw) else {
                continue;
            };
            // From here on the number can be no other process's.
            let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else {
                continue;
            };
            let holds = |file: &Path| {
                fs::metadata(file).is_ok_and(|m| m.dev() == lock.dev() && m.ino() == lock.ino())
            };
            if open_files(pid).iter().any(|file| holds(file)) {
                return Ok((named.to_owned(), process));
            }
        }
        bail!(
            "the process that records {} is not to be seen; be root, in its pid namespace",
            named.display()
        );
    }
    let pid = named.to_str().and_then(|n| n.parse().ok());
    let Some(pid) = pid.and_then(Pid::from_raw) else {
        return Err(anyhow!(
            "{} is neither a session nor a process id",
            named.display()
        ));
    };
    let process = pidfd_open(pid, PidfdFlags::empty())
        .with_context(|| format!("can't look at process {}", pid.as_raw_nonzero()))?;
    for file in open_files(pid) {
        let Ok(path) = fs::read_link(&file) else {
            continue;
        };
        if path.file_name().is_some_and(|name| name == LOCK)
            && let Some(dir) = path.parent()
            && Session::glance(dir).is_ok_and(|session| session.is_live())
        {
            return Ok((dir.to_owned(), process));
        }
    }
    Err(anyhow!(
        "process {} records no session",
        pid.as_raw_nonzero()
    ))
}

fn open_files(pid: Pid) -> Vec<PathBuf> {
    let Ok(files) = fs::read_dir(format!("/proc/{}/fd", pid.as_raw_nonzero())) else {
        return Vec::new();
    };
    files.filter_map(|entry| Some(entry.ok()?.path())).collect()
}
