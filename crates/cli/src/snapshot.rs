//! `fathom snapshot`: has a recorder save what it keeps.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use fathom_model::meta::Save;
use fathom_session::Session;
use rustix::process::{Pid, Signal, kill_process};

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
    let (dir, pid) = recorder(&args.session)?;
    let session = Session::open(&dir)?;
    let last = |session: &Session| session.meta().history.saves.last().map(|s| s.at_ns);
    let before = last(&session);
    kill_process(pid, Signal::USR1).with_context(|| {
        format!(
            "can't signal the recorder, process {}",
            pid.as_raw_nonzero()
        )
    })?;
    let save = wait(session, before)?;
    if let Some(error) = save.error {
        bail!("the recorder could not save: {error}");
    }
    let saved = PathBuf::from(&save.path);
    let saved = if saved.is_relative() {
        // As the recorder sees it, whose directory may be another.
        match (dir.parent(), saved.file_name()) {
            (Some(parent), Some(name)) => parent.join(name),
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

/// Waits for the next copy.
fn wait(mut session: Session, before: Option<i64>) -> anyhow::Result<Save> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        std::thread::sleep(Duration::from_millis(20));
        session.refresh()?;
        if let Some(save) = session.meta().history.saves.last()
            && Some(save.at_ns) > before
        {
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

/// The session that is meant, and the process that records it.
fn recorder(named: &Path) -> anyhow::Result<(PathBuf, Pid)> {
    if named.is_dir() {
        let session = Session::open(named)?;
        if !session.is_live() {
            bail!(
                "{} is not being recorded; it is a session of its own already",
                named.display()
            );
        }
        let lock = fs::metadata(named.join(LOCK))?;
        for entry in fs::read_dir("/proc").context("can't look for the recorder")? {
            let name = entry?.file_name();
            let pid = name.to_str().and_then(|n| n.parse().ok());
            let Some(pid) = pid.and_then(Pid::from_raw) else {
                continue;
            };
            let holds = |file: &Path| {
                fs::metadata(file).is_ok_and(|m| m.dev() == lock.dev() && m.ino() == lock.ino())
            };
            if open_files(pid).iter().any(|file| holds(file)) {
                return Ok((named.to_owned(), pid));
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
    for file in open_files(pid) {
        let Ok(path) = fs::read_link(&file) else {
            continue;
        };
        if path.file_name().is_some_and(|name| name == LOCK)
            && let Some(dir) = path.parent()
            && Session::open(dir).is_ok_and(|session| session.is_live())
        {
            return Ok((dir.to_owned(), pid));
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

/// Moves a session that nobody writes.
fn move_session(from: &Path, to: &Path) -> anyhow::Result<()> {
    if fs::rename(from, to).is_ok() {
        return Ok(());
    }
    // Another file system.
    let failed = || format!("can't copy {} to {}", from.display(), to.display());
    copy(from, to).with_context(failed)?;
    fs::remove_dir_all(from).with_context(failed)
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir(to)?;
    fs::set_permissions(to, fs::metadata(from)?.permissions())?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), &target)?;
        }
    }
    Ok(())
}
