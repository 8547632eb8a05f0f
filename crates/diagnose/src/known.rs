//! Well-known programs: the setting that fixes a finding, and its price.
//!
//! Most users of a program control its settings, not its code. So the advice starts with the
//! setting. To add a program, add an entry in [`PROGRAMS`].

use crate::finding::{Example, Subject};
use crate::run::Run;

/// A program, or a library in any program.
struct Program {
    name: &'static str,
    /// Names of its processes, threads or executable; empty: it is recognized only by its files.
    comms: &'static [&'static str],
    advice: &'static [Advice],
}

struct Advice {
    /// Ids of the rules whose findings it fixes.
    rules: &'static [&'static str],
    /// Paths of the finding, with `*` for any text; empty: any path.
    files: &'static [&'static str],
    /// Names of other files in the same directory, one of which must be there; `{}` is the name of
    /// the finding's own file. Empty: no condition.
    beside: &'static [&'static str],
    /// The setting and its price.
    text: &'static str,
    /// Whether the rule's own advice is wrong for it.
    alone: bool,
}

/// Rules about the price of durability.
const COMMITS: &[&str] = &["sync-storm", "write-amplification", "missing-fallocate"];
/// The same with files that are created and removed.
const JOURNALS: &[&str] = &[
    "sync-storm",
    "write-amplification",
    "missing-fallocate",
    "temp-churn",
];
/// Rules about files that a crash may lose.
const UNSYNCED: &[&str] = &[
    "missing-dir-fsync",
    "rename-without-fsync",
    "publish-unsynced",
];
const SMALL: &[&str] = &["small-sequential"];
const COPY: &[&str] = &["userspace-copy"];
const SEEK: &[&str] = &["lseek-before-io"];
/// Rules about names that are looked up.
const NAMES: &[&str] = &[
    "repeated-open",
    "redundant-stat",
    "lookup-storm",
    "metadata-storm",
];

/// Advice that precedes the rule's own.
const fn first(
    rules: &'static [&'static str],
    files: &'static [&'static str],
    text: &'static str,
) -> Advice {
    Advice {
        rules,
        files,
        beside: &[],
        text,
        alone: false,
    }
}

/// Advice that replaces the rule's own.
const fn only(
    rules: &'static [&'static str],
    files: &'static [&'static str],
    text: &'static str,
) -> Advice {
    Advice {
        alone: true,
        ..first(rules, files, text)
    }
}

/// The same if one of these files exists in the same directory.
const fn only_beside(
    rules: &'static [&'static str],
    files: &'static [&'static str],
    beside: &'static [&'static str],
    text: &'static str,
) -> Advice {
    Advice {
        beside,
        ..only(rules, files, text)
    }
}

const SQLITE: &str = "PRAGMA journal_mode=WAL makes a commit an append to one file, instead of a \
    rollback journal that is written, synced and removed each time (not on network file systems). \
    Put many statements into one transaction (BEGIN ... COMMIT): they share the syncs. With WAL, \
    PRAGMA synchronous=NORMAL syncs at checkpoints only: a crash of the machine loses the latest \
    commits, and the database stays consistent.";
const LEVEL: &str = "Put many changes into one WriteBatch: they share one write and one sync of the \
    log. With WriteOptions.sync=false the kernel writes the log when it sees fit: a crash of the \
    machine loses the latest changes, a crash of the process none.";

/// Programs with settings first, then libraries, then languages. The first match is used.
const PROGRAMS: &[Program] = &[
    Program {
        name: "PostgreSQL",
        comms: &["postgres", "postmaster"],
        advice: &[
            only(
                COMMITS,
                &["*/pg_wal/*", "*/pg_xlog/*"],
                "Put many rows into one transaction, or load them with COPY: they share the sync. \
                 synchronous_commit=off returns from a commit before its WAL is durable: a crash \
                 loses the latest commits (of three times wal_writer_delay at most, 0.6 s by \
                 default), and the database stays consistent. commit_delay lets commits of several \
                 sessions share a sync.",
            ),
            only(
                &["temp-churn", "small-sequential", "read-after-write-miss"],
                &["*/pgsql_tmp/*", "*/pgsql_tmp"],
                "Raise work_mem: sorts and hashes that fit into it need no temporary files. Each \
                 such step of each session may use that much memory.",
            ),
        ],
    },
    Program {
        name: "MariaDB, MySQL",
        comms: &["mariadbd", "mysqld"],
        advice: &[
            only(
                COMMITS,
                &["*/ib_logfile*", "*/#innodb_redo/*"],
                "Put many rows into one transaction: they share the sync. \
                 innodb_flush_log_at_trx_commit=2 syncs once per second: a crash of the machine \
                 loses up to about a second of commits.",
            ),
            only(
                COMMITS,
                &["*bin.0*", "*binlog.0*"],
                "Put many rows into one transaction: they share the sync. sync_binlog=100 syncs the \
                 binary log after each 100 groups of commits: a crash of the machine can lose these \
                 from it, and replicas then differ.",
            ),
        ],
    },
    Program {
        name: "Redis",
        comms: &["redis-server", "valkey-server", "keydb-server"],
        advice: &[only(
            COMMITS,
            &["*.aof", "*/appendonlydir", "*/appendonlydir/*"],
            "appendfsync everysec syncs about once per second: a crash of the machine loses that \
             much. With appendfsync always, commands that arrive together share one sync: send \
             several at once (pipelining, MULTI).",
        )],
    },
    Program {
        name: "etcd",
        comms: &["etcd"],
        advice: &[only(
            COMMITS,
            &["*/wal", "*/wal/*", "*/wal.tmp/*", "*.wal"],
            "etcd must sync before it answers, as Raft needs it. Put several keys into one Txn; put \
             --wal-dir on a device of its own with fast syncs: etcd wants 99 of 100 within 10 ms.",
        )],
    },
    Program {
        name: "MongoDB",
        comms: &["mongod"],
        advice: &[only(
            COMMITS,
            &["*/journal/WiredTigerLog.*", "*/journal"],
            "Send many documents at once (insertMany, bulkWrite). Write concern {w: 1, j: false} \
             does not wait for the journal, which is synced every \
             storage.journal.commitIntervalMs (100 ms by default): a crash of the machine loses \
             that much on this member.",
        )],
    },
    Program {
        name: "Elasticsearch, OpenSearch",
        comms: &["java", "elasticsearch*", "opensearch*"],
        advice: &[only(
            COMMITS,
            &["*/translog/translog*", "*/translog"],
            "Index many documents in one _bulk request. index.translog.durability=async syncs every \
             index.translog.sync_interval (5 s by default): a crash loses the writes since then, \
             though they were acknowledged.",
        )],
    },
    Program {
        name: "Kafka",
        comms: &["java", "kafka*"],
        advice: &[only_beside(
            COMMITS,
            &["*.log", "*.index"],
            &["*.timeindex"],
            "Leave log.flush.interval.messages and log.flush.interval.ms unset, as they are by \
             default, and have replicas instead (acks=all, min.insync.replicas=2): messages are \
             lost only when the machines of all replicas crash at once.",
        )],
    },
    Program {
        name: "nginx",
        comms: &["nginx"],
        advice: &[
            only(
                NAMES,
                &[],
                "open_file_cache max=1000 keeps files open and remembers their attributes: a file \
                 that was replaced is seen after open_file_cache_valid (60 s by default) at the \
                 latest. open_file_cache_errors on remembers files that are not there.",
            ),
            only(
                SMALL,
                &["*log*"],
                "access_log PATH combined buffer=64k flush=5s; writes many lines at once: a crash \
                 of nginx loses the lines in the buffer, and readers see them up to 5 s later.",
            ),
        ],
    },
    Program {
        name: "rsyslog",
        comms: &["rsyslogd", "rs:main*"],
        advice: &[
            only(
                COMMITS,
                &[],
                "sync=\"off\" in action(type=\"omfile\"), the default, leaves it to the kernel when \
                 lines are written to the disk: a crash of the machine loses the latest ones.",
            ),
            only(
                SMALL,
                &[],
                "ioBufferSize=\"64k\" flushOnTXEnd=\"off\" asyncWriting=\"on\" flushInterval=\"1\" in \
                 action(type=\"omfile\") writes many lines at once: a crash of rsyslog loses the \
                 lines in the buffer.",
            ),
        ],
    },
    Program {
        name: "systemd-journald",
        comms: &["systemd-journal*"],
        advice: &[only(
            COMMITS,
            &[],
            "SyncIntervalSec= in journald.conf says how often the journal is synced (5 min by \
             default); messages of priority crit, alert and emerg are synced at once. \
             Storage=volatile keeps the journal in memory: it ends with the machine's run.",
        )],
    },
    Program {
        name: "Git",
        comms: &["git", "git-*"],
        advice: &[
            only(
                COMMITS,
                &["*/.git/*", "*.git/objects/*", "*.git"],
                "core.fsyncMethod=batch (Git 2.36) syncs many new objects at once, where the file \
                 system supports it. core.fsync=none leaves out the syncs: a crash of the machine \
                 can damage the repository.",
            ),
            first(
                &["redundant-stat", "metadata-storm", "cold-small-files"],
                &[],
                "core.untrackedCache=true and, where Git has it built in, core.fsmonitor=true let \
                 status look only at what has changed; git gc packs loose objects into one file.",
            ),
        ],
    },
    Program {
        name: "dpkg, APT",
        comms: &["dpkg", "apt", "apt-get", "unattended-upgr*"],
        advice: &[only(
            &[
                "sync-storm",
                "write-amplification",
                "missing-fallocate",
                "sync-all",
            ],
            &[],
            "force-unsafe-io in a file in /etc/dpkg/dpkg.cfg.d leaves out the syncs of unpacked \
             files: a crash of the machine can leave empty files of packages. It suits images and \
             containers, which are made again.",
        )],
    },
    Program {
        name: "pip",
        comms: &["pip*", "python*", "uv"],
        advice: &[only(
            UNSYNCED,
            &["*/site-packages*", "*/dist-packages*"],
            "Nothing is lost that cannot be installed again: after a crash of the machine, pip \
             install --force-reinstall.",
        )],
    },
    Program {
        name: "npm",
        comms: &["npm*", "node", "MainThread"],
        advice: &[only(
            UNSYNCED,
            &["*/node_modules", "*/node_modules/*", "*/_cacache/*"],
            "Nothing is lost that cannot be installed again: after a crash of the machine, npm ci.",
        )],
    },
    // Libraries, recognized by their files.
    Program {
        name: "SQLite",
        comms: &[],
        advice: &[
            only(
                JOURNALS,
                &["*-journal"],
                "PRAGMA journal_mode=WAL makes a commit an append to one file, instead of a rollback \
                 journal that is written, synced and removed each time (not on network file \
                 systems). Put many statements into one transaction (BEGIN ... COMMIT): they share \
                 the syncs. The journal undoes a transaction that a crash has cut off: it must stay \
                 on the disk, and so must its syncs, if it has any.",
            ),
            only(
                COMMITS,
                &["*-wal"],
                "Put many statements into one transaction (BEGIN ... COMMIT): they share the sync. \
                 PRAGMA synchronous=NORMAL syncs at checkpoints only: a crash of the machine loses \
                 the latest commits, and the database stays consistent.",
            ),
            only_beside(COMMITS, &["*"], &["{}-journal", "{}-wal"], SQLITE),
            only(COMMITS, &["*.sqlite", "*.sqlite3", "*.db3"], SQLITE),
        ],
    },
    Program {
        name: "SQLite",
        comms: &["sqlite3"],
        advice: &[only(JOURNALS, &[], SQLITE)],
    },
    Program {
        name: "RocksDB",
        comms: &[],
        advice: &[
            only_beside(COMMITS, &["*.log"], &["OPTIONS-*"], LEVEL),
            only_beside(
                SMALL,
                &["*.log"],
                &["OPTIONS-*"],
                "Put many changes into one WriteBatch: they share one write of the log. \
                 manual_wal_flush=true keeps the log in memory until FlushWAL(): a crash of the \
                 process loses what was not flushed.",
            ),
        ],
    },
    Program {
        name: "LevelDB",
        comms: &[],
        advice: &[
            only_beside(COMMITS, &["*.log"], &["MANIFEST-*"], LEVEL),
            only_beside(
                SMALL,
                &["*.log"],
                &["MANIFEST-*"],
                "Put many changes into one WriteBatch: they share one write of the log.",
            ),
        ],
    },
    Program {
        name: "LMDB",
        comms: &[],
        advice: &[only(
            COMMITS,
            &["*/data.mdb"],
            "Put several changes into one write transaction (mdb_txn_begin ... mdb_txn_commit): they \
             share the syncs. MDB_NOMETASYNC saves one sync of two: a crash of the machine may undo \
             the last transaction. MDB_NOSYNC saves both: such a crash may damage the database.",
        )],
    },
    Program {
        name: "Docker",
        comms: &[],
        advice: &[first(
            &["write-amplification", "redundant-write", "temp-churn"],
            &["*/overlay2/*"],
            "Put files that are written often on a volume (docker run -v): in a container's own \
             layer the first change to a file of the image copies all of it. A volume stays when \
             the container goes.",
        )],
    },
    // Languages.
    Program {
        name: "Java",
        comms: &["java"],
        advice: &[
            first(
                SMALL,
                &[],
                "BufferedOutputStream or BufferedInputStream around the stream, with 65,536 bytes; \
                 for a RandomAccessFile, a ByteBuffer and its FileChannel.",
            ),
            first(
                COPY,
                &[],
                "Files.copy or FileChannel.transferTo copies without these calls.",
            ),
            first(
                SEEK,
                &[],
                "FileChannel.read and write take the position themselves.",
            ),
            first(
                COMMITS,
                &[],
                "FileChannel.force(false) once for several records; force(false) is fdatasync.",
            ),
        ],
    },
    Program {
        name: "Node.js",
        comms: &["node"],
        advice: &[
            first(
                SMALL,
                &[],
                "Collect pieces and write them at once; fs.createReadStream and fs.createWriteStream \
                 take highWaterMark.",
            ),
            first(COPY, &[], "fs.copyFile copies without these calls."),
            first(COMMITS, &[], "fs.fdatasync once for several records."),
        ],
    },
    Program {
        name: "Python",
        comms: &["python*", "pypy*"],
        advice: &[
            first(
                SMALL,
                &[],
                "open(path, 'wb', buffering=65536), without flush() after each write; os.write and \
                 os.read have no buffer.",
            ),
            first(
                COPY,
                &[],
                "shutil.copyfile or os.copy_file_range copies without these calls.",
            ),
            first(
                SEEK,
                &[],
                "os.pread and os.pwrite take the position themselves.",
            ),
            first(
                COMMITS,
                &[],
                "os.fdatasync(f.fileno()) once for several records.",
            ),
            first(
                &["redundant-stat", "metadata-storm"],
                &[],
                "os.scandir gives each entry's type with its name.",
            ),
        ],
    },
];

/// Advice for users of a known program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) name: &'static str,
    /// The setting.
    pub(crate) text: &'static str,
    /// Whether the rule's own advice is wrong for it.
    pub(crate) alone: bool,
}

/// The known program that a finding is about.
pub(crate) fn known(
    rule: &str,
    subject: &Subject,
    examples: &[Example],
    run: &Run,
) -> Option<Known> {
    let process = subject.pid.and_then(|pid| run.state.process(pid));
    let names = [
        process.map(|process| process.comm.as_str()),
        process.map(|process| process.program.as_str()),
        subject.comm.as_deref(),
    ];
    let names: Vec<&str> = names.into_iter().flatten().collect();
    let of_examples = examples.iter().filter_map(|e| e.path.as_deref());
    let paths: Vec<&str> = subject
        .path
        .as_deref()
        .into_iter()
        .chain(of_examples)
        .collect();
    let fits = |patterns: &[&str], texts: &[&str]| {
        patterns.is_empty()
            || patterns
                .iter()
                .any(|pattern| texts.iter().any(|text| like(pattern, text)))
    };
    PROGRAMS.iter().find_map(|program| {
        if !fits(program.comms, &names) {
            return None;
        }
        let mut all = program.advice.iter();
        let advice = all.find(|advice| {
            advice.rules.contains(&rule)
                && fits(advice.files, &paths)
                && is_beside(advice, &paths, run)
        })?;
        Some(Known {
            name: program.name,
            text: advice.text,
            alone: advice.alone,
        })
    })
}

/// Whether one of the files is there that tell a library's directory.
fn is_beside(advice: &Advice, paths: &[&str], run: &Run) -> bool {
    if advice.beside.is_empty() {
        return true;
    }
    let patterns: Vec<String> = paths
        .iter()
        .filter(|path| advice.files.iter().any(|pattern| like(pattern, path)))
        .filter_map(|path| path.rsplit_once('/'))
        .flat_map(|(directory, name)| {
            let beside = advice.beside.iter();
            beside.map(move |other| (directory, name, *other))
        })
        .map(|(directory, name, other)| {
            // A path may hold a star itself: it then stands for any text, as one does here.
            format!("{directory}/{}", other.replace("{}", name))
        })
        .collect();
    run.state.files.iter().any(|(_, file)| {
        let names = [&*file.path, &*file.last_path];
        patterns
            .iter()
            .any(|pattern| names.iter().any(|name| like(pattern, name)))
    })
}

/// Whether a text is like a pattern, in which `*` stands for any text.
fn like(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut text) = text.strip_prefix(start) else {
        return false;
    };
    let mut parts = rest.split('*').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return text.ends_with(part);
        }
        match text.find(part) {
            Some(at) => text = text.get(at + part.len()..).unwrap_or(""),
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::catalog;
    use crate::scenario::{Scenario, fires};

    #[test]
    fn patterns() {
        assert!(like("*-journal", "/a/x.db-journal") && !like("*-journal", "/a/x.db-journal2"));
        assert!(like("*/pg_wal/*", "/var/pg/pg_wal/0001") && !like("*/pg_wal/*", "/a/pg_walk/1"));
        assert!(like("nginx", "nginx") && !like("nginx", "nginx2") && like("*", ""));
        assert!(!like("a*a", "a"));
    }

    #[test]
    fn every_entry_answers_rules_that_there_are() {
        let ids: Vec<&str> = catalog().iter().map(|info| info.id).collect();
        for program in PROGRAMS {
            for advice in program.advice {
                let told = !program.comms.is_empty() || !advice.files.is_empty();
                assert!(told, "{} would be any program", program.name);
                assert!(advice.text.ends_with('.'), "{}", advice.text);
                for rule in advice.rules {
                    assert!(ids.contains(rule), "{}: no rule {rule}", program.name);
                }
            }
        }
    }

    fn commits(comm: &'static str, path: &str) -> Scenario {
        let mut s = Scenario::new();
        s.thread(100, comm);
        let fd = s.open(path, "O_WRONLY|O_CREAT");
        for _ in 0..300 {
            s.write(fd, 100);
            s.fsync(fd);
        }
        s.close(fd);
        s
    }

    #[test]
    fn a_known_program_gets_its_setting_first() {
        let redis = commits("redis-server", "/var/lib/redis/appendonly.aof");
        let advice = &fires("sync-storm", redis)[0].advice;
        assert!(
            advice.starts_with("Redis: appendfsync everysec"),
            "{advice}"
        );
        // Another file of it, and another program with such a file.
        for (comm, path) in [("redis-server", "/tmp/x"), ("program", "/data/log.aof")] {
            let advice = &fires("sync-storm", commits(comm, path))[0].advice;
            assert!(!advice.contains("Redis"), "{advice}");
        }
        let python = commits("python3", "/data/log");
        let advice = &fires("sync-storm", python)[0].advice;
        assert!(
            advice.starts_with("Python: os.fdatasync")
                && advice.contains("Combine several changes"),
            "{advice}"
        );
    }

    #[test]
    fn a_rollback_journal_is_not_moved_into_memory() {
        let mut s = Scenario::new();
        for _ in 0..200 {
            let fd = s.open("/data/x.db-journal", "O_RDWR|O_CREAT");
            s.write(fd, 512);
            s.fsync(fd);
            s.close(fd);
            s.unlink("/data/x.db-journal");
            s.new_file("/data/x.db-journal");
        }
        let advice = &fires("temp-churn", s)[0].advice;
        assert!(
            advice.starts_with("SQLite: PRAGMA journal_mode=WAL"),
            "{advice}"
        );
        for wrong in ["memfd", "tmpfs", "leave out fsync"] {
            assert!(!advice.contains(wrong), "{advice}");
        }
    }

    #[test]
    fn a_library_is_recognized_by_its_files() {
        let log = |beside: Option<&str>| {
            let mut s = Scenario::new();
            if let Some(path) = beside {
                let fd = s.open(path, "O_WRONLY|O_CREAT");
                s.close(fd);
            }
            let fd = s.open("/db/000003.log", "O_WRONLY|O_CREAT");
            for _ in 0..300 {
                s.write(fd, 100);
                s.fdatasync(fd);
            }
            fires("sync-storm", s)[0].advice.clone()
        };
        assert!(log(Some("/db/MANIFEST-000002")).starts_with("LevelDB: "));
        assert!(log(Some("/db/OPTIONS-000005")).starts_with("RocksDB: "));
        assert!(log(Some("/other/MANIFEST-000002")).starts_with("Combine several"));
        assert!(log(None).starts_with("Combine several"));
    }
}
