//! Paths: a hash for each component, so that directories still group.
//!
//! Marks by which rules of the diagnosis recognize files stay: words that every host has, endings, and
//! whether a name is of a temporary file or a cache.

use std::borrow::Cow;

use crate::secrets;
use crate::text::Redactor;

/// Components that tell nothing about one host, wherever they are.
const WORDS: &[&str] = &[
    ".cache",
    ".git",
    "LOCK",
    "Thumbnails",
    "__pycache__",
    "aarch64-linux-gnu",
    "backup",
    "base",
    "bin",
    "block",
    "boot",
    "build",
    "cache",
    "cgroup",
    "class",
    "conf",
    "config",
    "console",
    "data",
    "db",
    "debug",
    "dep-graph",
    "deps",
    "dev",
    "disk",
    "dist-packages",
    "etc",
    "fd",
    "fs",
    "full",
    "fuse",
    "glibc-hwcaps",
    "global",
    "group",
    "home",
    "hosts",
    "http:",
    "https:",
    "hugepages",
    "include",
    "incremental",
    "index",
    "init",
    "input",
    "kvm",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.preload",
    "lib",
    "lib32",
    "lib64",
    "local",
    "locale.alias",
    "localtime",
    "lock",
    "lockfile",
    "log",
    "logs",
    "loop-control",
    "lost+found",
    "main",
    "mapper",
    "media",
    "mnt",
    "mqueue",
    "node_modules",
    "nsswitch.conf",
    "null",
    "numbers",
    "objects",
    "opt",
    "out",
    "output",
    "passwd",
    "pg_internal",
    "pg_wal",
    "pg_xact",
    "pid",
    "pidfile",
    "proc",
    "ptmx",
    "pts",
    "python",
    "python2",
    "python3",
    "queue",
    "random",
    "release",
    "resolv.conf",
    "root",
    "ruby",
    "run",
    "sbin",
    "self",
    "selinux",
    "sh",
    "share",
    "shm",
    "site-packages",
    "spool",
    "src",
    "srv",
    "state",
    "stderr",
    "stdin",
    "stdout",
    "sys",
    "system",
    "target",
    "task",
    "temp",
    "test",
    "tests",
    "thumbnails",
    "tmp",
    "tty",
    "urandom",
    "user",
    "usr",
    "var",
    "wal",
    "work",
    "x86_64-linux-gnu",
    "zero",
];

/// Endings of names, without the dot.
const ENDINGS: &[&str] = &[
    "a", "aof", "arrow", "avi", "bak", "bash", "bat", "bin", "blk", "bmp", "bz2", "c", "cc", "cfg",
    "cjs", "class", "conf", "cpp", "csv", "css", "d", "dat", "data", "db", "deb", "dmp", "doc",
    "dump", "fathom", "frm", "fset", "gch", "gif", "go", "gz", "h", "hpp", "htm", "html", "ibd",
    "idx", "img", "index", "ini", "init", "iso", "jar", "java", "jpeg", "jpg", "journal", "js",
    "json", "jsonl", "jsx", "ko", "la", "lck", "ldb", "lo", "lock", "log", "lz4", "map", "md",
    "mjs", "mount", "mov", "mp3", "mp4", "myd", "myi", "new", "o", "obj", "old", "orig", "out",
    "pack", "parquet", "part", "partial", "pdf", "php", "pid", "pl", "pm", "png", "pyc", "pyo",
    "py", "qcow2", "raw", "rb", "rdb", "rlib", "rmeta", "rpm", "rs", "scope", "sdb", "service",
    "sh", "shm", "slice", "snap", "so", "sock", "socket", "sql", "sqlite", "sqlite3", "sst", "svg",
    "swo", "swp", "tar", "target", "temp", "tgz", "timer", "tmp", "toml", "ts", "tsv", "tsx",
    "txt", "vdi", "vmdk", "wal", "wasm", "wav", "webp", "whl", "xml", "xz", "yaml", "yml", "zip",
    "zst",
];

/// Endings that SQLite adds to the name of a database.
const BEHIND: [&str; 3] = ["-journal", "-shm", "-wal"];
/// Digits of an ending: x.log.1, libx.so.12.
const NUMBER: usize = 3;

impl Redactor {
    /// A path of which components are hashed.
    pub(crate) fn path(&self, path: &str) -> String {
        let mut system = self.is_of_system(path);
        let mut before = "";
        let mut out = String::with_capacity(path.len());
        for (i, component) in path.split('/').enumerate() {
            if i > 0 {
                out.push('/');
            }
            // A way out: /usr/../home, /proc/self/root/home.
            system &= component != ".." && before != "root" && before != "cwd";
            before = component;
            out.push_str(&match system {
                true => secrets::mask_random(component),
                false => self.component(component),
            });
        }
        out
    }

    fn is_of_system(&self, path: &str) -> bool {
        let below = |directory: &String| {
            let rest = path.strip_prefix(directory.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.rules.system.iter().any(below) && !self.rules.private.iter().any(below)
    }

    fn component<'a>(&self, name: &'a str) -> Cow<'a, str> {
        if self.is_known(name) {
            return name.into();
        }
        if let Some(memory) = name.strip_prefix("memfd:") {
            return format!("memfd:{}", self.component(memory)).into();
        }
        let hidden = name.strip_prefix('.');
        let (core, ending) = split(hidden.unwrap_or(name));
        let dot = hidden.map_or("", |_| ".");
        if self.is_known(core) {
            return format!("{dot}{core}{ending}").into();
        }
        let lower = core.to_ascii_lowercase();
        let kind = match () {
            () if lower.contains("tmp") || lower.contains("temp") => "tmp-",
            () if lower.contains("cache") => "cache-",
            () if lower.contains("thumbnail") => "thumbnail-",
            () => "",
        };
        format!("{dot}{kind}{}{ending}", self.key.word(core)).into()
    }

    /// Whether a name is the same on many hosts.
    pub(crate) fn is_known(&self, name: &str) -> bool {
        matches!(name, "" | "." | ".." | secrets::GONE)
            || WORDS.binary_search(&name).is_ok()
            || self.programs.contains(name)
            || is_anonymous(name)
            || is_device(name)
    }
}

/// Whether it is the kernel's name for a file without a path.
fn is_anonymous(name: &str) -> bool {
    let bracketed = |kind: &str| {
        name.strip_prefix(kind)?
            .strip_prefix(":[")?
            .strip_suffix(']')
    };
    let number = bracketed("pipe").or_else(|| bracketed("socket"));
    let digits = number.is_some_and(|number| number.bytes().all(|b| b.is_ascii_digit()));
    let kinds = [
        "[eventfd]",
        "[eventpoll]",
        "[io_uring]",
        "[pidfd]",
        "[signalfd]",
        "[timerfd]",
    ];
    let kind = name.strip_prefix("anon_inode:");
    digits || kind.is_some_and(|kind| kinds.contains(&kind) || kind == "inotify")
}

/// Whether it is the kernel's name for a device, as in table block.
fn is_device(name: &str) -> bool {
    let kinds = [
        "dm-", "hd", "loop", "md", "nvme", "ram", "sd", "sr", "vd", "xvd", "zram",
    ];
    let rest = kinds.iter().find_map(|kind| name.strip_prefix(kind));
    let number = |rest: &str| {
        rest.bytes()
            .all(|b| b.is_ascii_digit() || b"np".contains(&b))
    };
    // sda, sdaa1; nvme0n1p2.
    rest.is_some_and(|rest| {
        let disk = rest.trim_start_matches(|c: char| c.is_ascii_lowercase());
        let letters = rest.len() - disk.len();
        !rest.is_empty() && rest.len() <= 8 && letters <= 2 && number(disk)
    })
}

/// A name without its endings, and these.
fn split(name: &str) -> (&str, &str) {
    let mut core = name.strip_suffix('~').unwrap_or(name);
    loop {
        let shorter = match core.rsplit_once('.') {
            Some((stem, ending)) if is_ending(ending) => stem,
            _ => match BEHIND.iter().find_map(|behind| core.strip_suffix(behind)) {
                Some(stem) => stem,
                None => break,
            },
        };
        if shorter.is_empty() {
            break;
        }
        core = shorter;
    }
    (core, name.get(core.len()..).unwrap_or_default())
}

fn is_ending(ending: &str) -> bool {
    let number = ending.len() <= NUMBER && ending.bytes().all(|b| b.is_ascii_digit());
    number && !ending.is_empty() || ENDINGS.contains(&ending.to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{Key, Rules};

    fn redactor() -> Redactor {
        Redactor::new(Rules::default(), Key::new(b"a key of sixteen").unwrap())
    }

    #[test]
    fn words_are_in_order() {
        assert!(WORDS.is_sorted());
    }

    #[test]
    fn directories_group_and_endings_stay() {
        let redactor = redactor();
        let word = |text| redactor.key.word(text);
        for (path, redacted) in [
            (
                "/home/alice/a.log",
                format!("/home/{}/{}.log", word("alice"), word("a")),
            ),
            (
                "alice/a.log.1",
                format!("{}/{}.log.1", word("alice"), word("a")),
            ),
            (
                "/opt/x/libx.so.1.2",
                format!("/opt/{}/{}.so.1.2", word("x"), word("libx")),
            ),
            ("/srv/s.db-wal", format!("/srv/{}.db-wal", word("s"))),
            ("/srv/.s.tmp123", format!("/srv/.tmp-{}", word("s.tmp123"))),
            (
                "/srv/mycache/n~",
                format!("/srv/cache-{}/{}~", word("mycache"), word("n")),
            ),
            (
                "/srv/a.secretword",
                format!("/srv/{}", word("a.secretword")),
            ),
            ("/srv/data.db", "/srv/data.db".to_owned()),
            ("/memfd:x", format!("/memfd:{}", word("x"))),
            (
                "/sys/fs/cgroup/x.slice",
                format!("/sys/fs/cgroup/{}.slice", word("x")),
            ),
            ("/usr/local/x", format!("/usr/local/{}", word("x"))),
        ] {
            assert_eq!(redactor.path(path), redacted, "{path}");
        }
        for path in [
            "/dev/null",
            "/dev/sda1",
            "/dev/nvme0n1p2",
            "/usr/lib/x.so",
            "/proc/1/maps",
            "pipe:[7]",
            "anon_inode:[eventfd]",
            "../.",
            "",
        ] {
            assert_eq!(redactor.path(path), path);
        }
    }

    #[test]
    fn no_way_leads_out_of_the_system() {
        let redactor = redactor();
        for path in [
            "/usr/../home/alice",
            "/proc/self/root/home/alice",
            "/proc/7/cwd/alice",
            "/usrs/alice",
            "/dev/shm/alice",
            "/dev/alice/volume",
            "/dev/sdalice",
            "pipe:[alice]",
            "/srv/AKIAIOSFODNN7ALICE00.alice",
        ] {
            let redacted = redactor.path(path).to_lowercase();
            assert!(!redacted.contains("alice"), "{path}: {redacted}");
        }
        let key = "/usr/share/AKIAIOSFODNN7EXAMPLE";
        assert_eq!(redactor.path(key), "/usr/share/***");
    }
}
