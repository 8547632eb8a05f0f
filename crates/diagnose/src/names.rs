//! Names as rules compare them.

pub(crate) fn directory(path: &str) -> &str {
    match path.rsplit_once('/') {
        Some(("", _)) | None => "/",
        Some((directory, _)) => directory,
    }
}

/// The deepest directory that has both directories in it, or is one of them.
pub(crate) fn common_directory<'a>(a: &'a str, b: &str) -> &'a str {
    let mut common = a;
    loop {
        let rest = b.strip_prefix(common);
        if common == "/" || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) {
            return common;
        }
        common = directory(common);
    }
}

/// The last part of a path.
pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// The common name of threads that do the same work: `rocksdb:low` of `rocksdb:low3`, `worker` of
/// `worker-12`.
pub(crate) fn role(comm: &str) -> &str {
    let role = comm.trim_end_matches(|c: char| c.is_ascii_digit() || "-_:/#. ".contains(c));
    if role.is_empty() { comm } else { role }
}

/// Whether a file only marks a running process or a lock: its loss in a crash does no harm.
pub(crate) fn is_pid_or_lock(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    let ending = name.rsplit('.').next().unwrap_or("");
    matches!(&*name, "lock" | "pid" | "pidfile" | "lockfile")
        || name.contains('.') && matches!(ending, "pid" | "lock" | "lck")
}

/// Whether a file can be made again from others: a cache, a thumbnail, a part of a build.
pub(crate) fn is_rebuilt(path: &str) -> bool {
    let path = path.to_ascii_lowercase();
    let (directories, name) = path.rsplit_once('/').unwrap_or(("", &path));
    let of_build = |part: &str| matches!(part, "target" | "incremental");
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    // PostgreSQL reads the descriptions of its own tables from it, and recreates it.
    name == "pg_internal.init"
        || name.starts_with("dep-graph")
        // Compilers create these.
        || matches!(ending, "o" | "a" | "obj" | "pyc" | "class" | "gch" | "rlib" | "rmeta")
        || directories.split('/').any(of_build)
        || path
            .split('/')
            .any(|part| part.contains("cache") || part.contains("thumbnail"))
}

/// Whether Python looks at a path to import a module.
pub(crate) fn is_imported(path: &str) -> bool {
    ["/lib/python", "/site-packages", "/dist-packages"]
        .into_iter()
        .any(|place| path.contains(place))
}

/// Whether a database keeps its changes there until they are in the table, as SQLite does.
pub(crate) fn is_journal(path: &str) -> bool {
    ["-journal", "-wal"]
        .iter()
        .any(|ending| path.ends_with(ending))
}

/// Whether a name says that the file is not meant to keep it.
pub(crate) fn is_temporary(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    let ending = name.rsplit('.').next().unwrap_or("");
    name.starts_with('.')
        || name.ends_with('~')
        || name.contains("tmp")
        || name.contains("temp")
        || name.contains('.') && matches!(ending, "new" | "part" | "partial" | "lock")
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
    fn common_directories() {
        assert_eq!(common_directory("/a/b/c", "/a/b/d"), "/a/b");
        assert_eq!(common_directory("/a/b", "/a/bc"), "/a");
        assert_eq!(common_directory("/a", "/a/b"), "/a");
        assert_eq!(common_directory("/a", "/b"), "/");
        assert_eq!(common_directory("/", "/c"), "/");
        assert_eq!(common_directory("/a", "c"), "/");
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

    #[test]
    fn files_that_can_be_made_again() {
        for path in [
            "/var/lib/postgresql/15/main/base/16384/pg_internal.init",
            "/src/app/target/debug/.fingerprint/app",
            "/src/app/target/debug/incremental/app-1/s-2/dep-graph.bin",
            "/home/me/.cache/fonts",
            "/srv/__pycache__/a.cpython-311.pyc",
            "/home/me/.Thumbnails/large/1.png",
            "/src/app/libapp.a",
            "/src/app/main.o",
        ] {
            assert!(is_rebuilt(path), "{path}");
        }
        for path in [
            "/data/target",
            "/data/state",
            "/src/.git/config",
            "/etc/pg.init",
        ] {
            assert!(!is_rebuilt(path), "{path}");
        }
    }

    #[test]
    fn names_that_are_not_to_last() {
        for path in [
            "/a/.b.Xy12",
            "/a/tmp2z0h02o0",
            "/a/b.tmp.1",
            "/a/index.lock",
            "/a/b~",
            "/a/b.new",
        ] {
            assert!(is_temporary(path), "{path}");
        }
        for path in ["/tmp/a", "/a/log", "/a/news", "/a/1.part/b"] {
            assert!(!is_temporary(path), "{path}");
        }
    }
}
