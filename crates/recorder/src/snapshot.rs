//! Has the recorder of another process save what it keeps.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fathom_model::meta::Save;
use fathom_session::{Session, is_ours, move_session, open_regular};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::RecordError;

/// How long a recorder may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// File in a session that its recorder holds open.
const LOCK: &str = ".lock";

/// Makes a recording save a snapshot as a separate session, in `output` or next to the recording,
/// and returns its directory. `recording` is its session or the process id of its recorder.
///
/// # Errors
/// When it is not recorded, by this user, or the recorder does not save.
pub fn snapshot(recording: &Path, output: Option<&Path>) -> Result<PathBuf, RecordError> {
    if let Some(output) = output
        && output.symlink_metadata().is_ok()
    {
        return refuse(format!(
            "{} already exists; choose another directory",
            output.display()
        ));
    }
    let (dir, recorder) = recorder(recording)?;
    let session = Session::glance(&dir)?;
    let before = session.meta().history.saves.last().map(|s| s.at_ns);
    pidfd_send_signal(&recorder, Signal::USR1)
        .map_err(RecordError::system("cannot signal the recorder"))?;
    let save = wait(session, before)?;
    if let Some(error) = save.error {
        return refuse(format!("the recorder could not save a snapshot: {error}"));
    }
    let saved = PathBuf::from(&save.path);
    let saved = match (dir.parent(), saved.file_name()) {
        // As the recorder sees it, whose directory may be another.
        (Some(parent), Some(name)) if saved.is_relative() => {
            named_in(parent, &name.to_string_lossy())
        }
        _ => saved,
    };
    match output {
        Some(output) => {
            move_session(&saved, output)?;
            Ok(output.to_owned())
        }
        None => Ok(saved),
    }
}

fn refuse<T>(reason: String) -> Result<T, RecordError> {
    Err(RecordError::Input(reason))
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
fn wait(mut session: Session, before: Option<i64>) -> Result<Save, RecordError> {
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
            return refuse(format!(
                "the recording has ended; its session is {}",
                session.dir().display()
            ));
        }
        if Instant::now() > deadline {
            return refuse(format!(
                "the recorder has not saved a snapshot within {} s; check its messages",
                PATIENCE.as_secs()
            ));
        }
    }
}

/// The session, and the process that records it. A signal ends most programs, so another user's
/// session must not determine which process gets one.
fn recorder(named: &Path) -> Result<(PathBuf, OwnedFd), RecordError> {
    if named.is_dir() {
        let session = Session::glance(named)?;
        if !session.is_live() {
            return refuse(format!(
                "{} is not being recorded; it is already a complete session",
                named.display()
            ));
        }
        let path = named.join(LOCK);
        let lock = open_regular(&path)
            .and_then(|lock| lock.metadata())
            .map_err(RecordError::system::<io::Error>(format!(
                "cannot read {}",
                path.display()
            )))?;
        if !is_ours(lock.uid()) || lock.nlink() != 1 {
            return refuse(format!(
                "{} belongs to user {}, and only that user can save its recording; run fathom as \
                 that user, or give the recorder's process id",
                named.display(),
                lock.uid()
            ));
        }
        for entry in
            fs::read_dir("/proc").map_err(RecordError::system("cannot find the recorder"))?
        {
            let name = entry
                .map_err(RecordError::system("cannot find the recorder"))?
                .file_name();
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
                    && has_locked(pid, file)
            };
            if open_files(pid).iter().any(|file| holds(file)) {
                return Ok((named.to_owned(), process));
            }
        }
        return refuse(format!(
            "cannot see the process that records {}; run as root, in its pid namespace",
            named.display()
        ));
    }
    let pid = named.to_str().and_then(|n| n.parse().ok());
    let Some(pid) = pid.and_then(Pid::from_raw) else {
        return refuse(format!(
            "{} is neither a session nor a process id",
            named.display()
        ));
    };
    let process = pidfd_open(pid, PidfdFlags::empty()).map_err(RecordError::system(format!(
        "cannot examine process {}",
        pid.as_raw_nonzero()
    )))?;
    for file in open_files(pid) {
        let Ok(path) = fs::read_link(&file) else {
            continue;
        };
        if path.file_name().is_some_and(|name| name == LOCK)
            && let Some(dir) = path.parent()
            && has_locked(pid, &file)
            && Session::glance(dir).is_ok_and(|session| session.is_live())
        {
            return Ok((dir.to_owned(), process));
        }
    }
    refuse(format!(
        "process {} does not record a session",
        pid.as_raw_nonzero()
    ))
}

/// Whether a process has locked the open file `file` of /proc as a recorder does. Readers open the file
/// for an instant, too, and lock it shared; a child has its parent's open files until it runs its
/// program.
fn has_locked(pid: Pid, file: &Path) -> bool {
    let number = file.file_name().unwrap_or_default();
    let about = Path::new("/proc").join(pid.as_raw_nonzero().to_string());
    let about = about.join("fdinfo").join(number);
    fs::read_to_string(about).is_ok_and(|about| is_locked_by(&about, pid.as_raw_nonzero().get()))
}

/// Whether a text of /proc/PID/fdinfo has the exclusive lock of flock(2) that process `pid` took.
fn is_locked_by(about: &str, pid: i32) -> bool {
    about.lines().any(|line| {
        let mut words = line.split_ascii_whitespace();
        words.next() == Some("lock:")
            && words.nth(1) == Some("FLOCK")
            && words.nth(1) == Some("WRITE")
            && words.next().and_then(|word| word.parse().ok()) == Some(pid)
    })
}

fn open_files(pid: Pid) -> Vec<PathBuf> {
    let Ok(files) = fs::read_dir(format!("/proc/{}/fd", pid.as_raw_nonzero())) else {
        return Vec::new();
    };
    files.filter_map(|entry| Some(entry.ok()?.path())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorder_has_locked_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(LOCK);
        fs::write(&path, "").unwrap();
        let pid = rustix::process::getpid();
        let locked = || {
            let files = open_files(pid);
            let same = |file: &&PathBuf| fs::read_link(file).is_ok_and(|link| link == path);
            let mut own = files.iter().filter(same);
            let file = own.next().unwrap();
            assert!(own.next().is_none());
            has_locked(pid, file)
        };
        let path = path.canonicalize().unwrap();
        let file = fs::File::open(&path).unwrap();
        assert!(!locked());
        // As a reader looks whether a session is recorded.
        file.lock_shared().unwrap();
        assert!(!locked());
        file.unlock().unwrap();
        file.lock().unwrap();
        assert!(locked());
        file.unlock().unwrap();
        assert!(!locked());
    }

    #[test]
    fn locks_of_a_parent_are_not_the_childs() {
        let about =
            "pos:\t0\nflags:\t02100002\nlock:\t1: FLOCK  ADVISORY  WRITE 71 fd:01:42 0 EOF\n";
        assert!(is_locked_by(about, 71));
        assert!(!is_locked_by(about, 72));
        assert!(!is_locked_by(&about.replace("WRITE", "READ"), 71));
        assert!(!is_locked_by(&about.replace("FLOCK", "POSIX"), 71));
        assert!(!is_locked_by("pos:\t0\n", 71));
    }
}
