//! What is fuzzed, a file each.

mod captures;
mod http;
mod logs;
mod sessions;
mod sql;
mod streams;

use std::fs;
use std::path::Path;

use fastrand::Rng;
use tempfile::TempDir;

/// Their names.
pub const TARGETS: [&str; 6] = ["captures", "logs", "sessions", "streams", "sql", "http"];

/// Something that takes damaged inputs.
pub trait Target {
    /// Makes one input by `rng` and feeds it.
    ///
    /// # Errors
    /// What it broke.
    fn case(&mut self, rng: &mut Rng) -> Result<(), String>;

    /// Writes the latest input to `path`.
    fn keep(&mut self, path: &Path);
}

/// A target by its name, with its inputs read from the corpus.
pub fn open(name: &str, corpus: &Path) -> Box<dyn Target> {
    match name {
        "captures" => Box::new(captures::Captures::new(corpus)),
        "logs" => Box::new(logs::Logs::new(corpus)),
        "sessions" => Box::new(sessions::Sessions::new(corpus)),
        "streams" => Box::new(streams::Streams::new(corpus)),
        "sql" => Box::new(sql::Sql::new(corpus)),
        "http" => Box::new(http::Http::new(corpus)),
        _ => panic!("there is no target {name}"),
    }
}

/// A directory for what a case writes, in memory where there is some: sessions are flushed.
pub fn scratch() -> TempDir {
    let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    dir.expect("a directory")
}

/// The most memory that a process has had, MiB.
pub fn peak_mib(process: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib >> 10)
}

/// A process and what it has started, as numbers.
pub fn tree(pid: u32) -> Vec<String> {
    let mut all = vec![pid.to_string()];
    let mut at = 0;
    while let Some(pid) = all.get(at) {
        let children = format!("/proc/{pid}/task/{pid}/children");
        let text = fs::read_to_string(children).unwrap_or_default();
        all.extend(text.split_whitespace().map(String::from));
        at += 1;
    }
    all
}
