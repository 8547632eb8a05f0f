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
}
