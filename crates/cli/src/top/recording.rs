//! A recording of what `top` shows: `fathom record` with the same filters, for a while.

use std::env::current_exe;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use fathom_model::escape;
use fathom_probe::FilterArgs;
use fathom_top::Scope;

use crate::args::TopArgs;
use crate::exit::Failure;

/// How long is recorded.
const DURATION: Duration = Duration::from_secs(10);
/// Bytes of what `record` says of its failure.
const MAX_REASON: usize = 300;

/// Makes one recording at a time.
pub struct Recording {
    filters: FilterArgs,
    syscalls: Vec<String>,
    layers: Vec<String>,
    running: Option<(Child, PathBuf, Instant)>,
    made: Option<PathBuf>,
}

impl Drop for Recording {
    fn drop(&mut self) {
        // It ends by itself, and its session stays; nothing would show that it did.
        if let Some((_, session, _)) = &self.running {
            errln!("fathom: still recording to {}", session.display());
        }
    }
}

impl Recording {
    pub fn of(args: &TopArgs) -> Self {
        Self {
            filters: args.filter.filters(),
            syscalls: args.syscalls.clone(),
            layers: args.layers.clone(),
            running: None,
            made: None,
        }
    }

    /// The session that was made last.
    pub fn made(&self) -> Option<PathBuf> {
        self.made.clone()
    }

    /// Begins to record; returns what to tell the user.
    pub fn start(&mut self, scope: Option<Scope>) -> String {
        if let Some((_, session, _)) = &self.running {
            return format!("{} is still being recorded", session.display());
        }
        let Some(scope) = scope else {
            return "cannot record these lines by themselves: filter files, processes, threads or \
                    calls, 64 at most"
                .to_owned();
        };
        let session = PathBuf::from(format!(
            "top-{}.fathom",
            fathom_probe::system::local_time_for_names()
        ));
        let started = current_exe().and_then(|fathom| {
            Command::new(fathom)
                .args(["record", "--quiet", "--duration"])
                .arg(DURATION.as_secs().to_string())
                .arg("--output")
                .arg(&session)
                .args(self.options(scope))
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
        });
        match started {
            Ok(child) => {
                let notice = format!("recording to {}", session.display());
                self.running = Some((child, session, Instant::now()));
                notice
            }
            Err(e) => format!("cannot record: {e}"),
        }
    }

    /// Message to the user about a recording that is in progress or has just ended.
    pub fn poll(&mut self) -> Option<String> {
        let (child, session, began) = self.running.as_mut()?;
        match child.try_wait() {
            Ok(None) => {
                let left = DURATION.saturating_sub(began.elapsed()).as_secs();
                Some(format!("recording to {}: {left} s", session.display()))
            }
            Ok(Some(status)) => {
                let (child, session, _) = self.running.take()?;
                if status.success() {
                    let notice = format!("recorded {}; o: report it", session.display());
                    self.made = Some(session);
                    return Some(notice);
                }
                let said = child.stderr.map(io::read_to_string);
                let said = said.and_then(Result::ok).unwrap_or_default();
                let reason: String = said
                    .lines()
                    .next()
                    .unwrap_or_default()
                    .chars()
                    .take(MAX_REASON)
                    .collect();
                Some(format!("cannot record: {}", escape::text(&reason)))
            }
            Err(e) => {
                self.running = None;
                Some(format!("cannot record: {e}"))
            }
        }
    }

    /// Options of `record` for what is looked at, limited to `scope`.
    fn options(&self, scope: Scope) -> Vec<OsString> {
        let mut filters = self.filters.clone();
        let mut syscalls = self.syscalls.join(",");
        let texts = |ids: Vec<i64>| ids.iter().map(i64::to_string).collect();
        match scope {
            Scope::All => {}
            Scope::Files(paths) => filters.path = paths.into_iter().map(Into::into).collect(),
            Scope::Processes(pids) => {
                filters.pid = texts(pids);
                filters.tid.clear();
            }
            Scope::Threads(tids) => {
                filters.tid = texts(tids);
                filters.pid.clear();
            }
            Scope::Calls(names) => syscalls = names.join(","),
        }
        let mut words: Vec<OsString> = vec!["--syscalls".into(), syscalls.into()];
        if !self.layers.is_empty() {
            words.extend(["--layers".into(), self.layers.join(",").into()]);
        }
        let tasks = [
            ("pid", &filters.pid),
            ("tid", &filters.tid),
            ("uid", &filters.uid),
            ("cgroup", &filters.cgroup),
            ("container", &filters.container),
            ("unit", &filters.unit),
            ("pod", &filters.pod),
            ("namespace", &filters.namespace),
        ];
        if filters.comm.is_empty() && tasks.iter().all(|(_, values)| values.is_empty()) {
            words.push("--all".into());
        }
        // With `=`, as a value may begin with a dash.
        for (option, values) in tasks.into_iter().chain([("file-type", &filters.file_type)]) {
            words.extend(
                values
                    .iter()
                    .map(|value| format!("--{option}={value}").into()),
            );
        }
        for (option, values) in [("--comm=", &filters.comm), ("--path=", &filters.path)] {
            for value in values {
                let mut word = OsString::from(option);
                word.push(value);
                words.push(word);
            }
        }
        if let Some(time) = filters.min_duration {
            words.push(format!("--min-duration={}ns", time.as_nanos()).into());
        }
        if filters.errors_only {
            words.push("--errors-only".into());
        }
        words
    }
}

/// Reports a session as `fathom report` does, and returns its exit status.
pub fn report(session: &Path) -> Result<u8, Failure> {
    let fathom = current_exe().context("cannot find the program itself");
    let fathom = fathom.map_err(Failure::recording)?;
    let status = Command::new(fathom).arg("report").arg(session).status();
    let status = status.context("cannot run fathom report");
    let code = status.map_err(Failure::recording)?.code();
    Ok(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(filters: FilterArgs, scope: Scope) -> Vec<String> {
        let recording = Recording {
            filters,
            syscalls: vec!["storage".to_owned()],
            layers: Vec::new(),
            running: None,
            made: None,
        };
        let words = recording.options(scope).into_iter();
        words.map(|word| word.into_string().unwrap()).collect()
    }

    #[test]
    fn what_is_shown_is_recorded() {
        let all = options(FilterArgs::default(), Scope::All);
        assert_eq!(all, ["--syscalls", "storage", "--all"]);
        let filters = FilterArgs {
            path: vec!["/var".into()],
            uid: vec!["!root".to_owned()],
            errors_only: true,
            ..FilterArgs::default()
        };
        // Files that are shown are in the directory that is looked at.
        let files = Scope::Files(vec!["/var/a b".to_owned()]);
        let words = [
            "--syscalls",
            "storage",
            "--uid=!root",
            "--path=/var/a b",
            "--errors-only",
        ];
        assert_eq!(options(filters.clone(), files), words);
        let calls = Scope::Calls(vec!["read".to_owned(), "fsync".to_owned()]);
        assert_eq!(options(filters, calls)[1], "read,fsync");
        let threads = options(FilterArgs::default(), Scope::Threads(vec![7, 8]));
        assert_eq!(threads, ["--syscalls", "storage", "--tid=7", "--tid=8"]);
    }
}
