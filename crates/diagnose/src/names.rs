//! Names as rules compare them.

/// The directory of a path.
pub(crate) fn directory(path: &str) -> &str {
    match path.rsplit_once('/') {
        Some(("", _)) | None => "/",
        Some((directory, _)) => directory,
    }
}

/// What the names of threads have in common that do the same: `rocksdb:low` of
/// `rocksdb:low3`, `worker` of `worker-12`.
pub(crate) fn role(comm: &str) -> &str {
    let role = comm.trim_end_matches(|c: char| c.is_ascii_digit() || "-_:/#. ".contains(c));
    if role.is_empty() { comm } else { role }
}

/// Whether a file only says that a process runs, or keeps others out: nobody misses it after a crash.
pub(crate) fn is_pid_or_lock(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    let ending = name.rsplit('.').next().unwrap_or("");
    matches!(&*name, "lock" | "pid" | "pidfile" | "lockfile")
        || name.contains('.') && matches!(ending, "pid" | "lock" | "lck")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories() {
        assert_eq!(directory("/a/b"), "/a");
        assert_eq!(directory("/a"), "/");
        assert_eq!(directory("a"), "/");
    }

    #[test]
    fn roles() {
        assert_eq!(role("rocksdb:low12"), "rocksdb:low");
        assert_eq!(role("worker-3"), "worker");
        assert_eq!(role("42"), "42");
    }

    #[test]
    fn pid_and_lock_files() {
        for path in [
            "/run/x.pid",
            "/data/LOCK",
            "/data/.s.PGSQL.5432.lock",
            "/data/write.lock",
        ] {
            assert!(is_pid_or_lock(path), "{path}");
        }
        for path in [
            "/data/clock",
            "/data/lock/state",
            "/data/block",
            "/data/pid-1.db",
        ] {
            assert!(!is_pid_or_lock(path), "{path}");
        }
    }
}
