//! `--detail`: what each level reads, and what it does not.

use std::collections::BTreeMap;
use std::fs;

use fathom_model::tables::TABLES;
use fathom_tests::{Record, Recording, Scratch, need_root, workload};

/// Texts that the workload passes or makes, none of which its command line
/// holds: paths of its calls, text of a link, names of attributes.
const PASSED: [&str; 5] = [
    "fathom-truth",
    "described",
    "name-a",
    "some target",
    "user.none",
];

struct Recorded {
    scratch: Scratch,
    recording: Recording,
    /// Every row of every table, as text.
    rows: String,
    /// The kernel's records as they came.
    raw: Vec<u8>,
}

fn record(detail: &str) -> Recorded {
    let scratch = Scratch::new();
    let raw = scratch.root().join("raw");
    let recording = Record::new(&scratch)
        .options(["--detail", detail, "--syscalls", "all", "--raw"])
        .options([&raw])
        .command([workload("calls").as_os_str(), scratch.work().as_os_str()])
        .run()
        .must_exit(0);
    recording.complete();
    let rows = TABLES
        .iter()
        .flat_map(|table| recording.rows(&format!("SELECT * FROM {}", table.name)))
        .map(|row| format!("{row:?}\n"))
        .collect();
    Recorded {
        raw: fs::read(raw).unwrap(),
        scratch,
        recording,
        rows,
    }
}

impl Recorded {
    fn has(&self, text: &str) -> bool {
        let text = text.as_bytes();
        self.rows.as_bytes().windows(text.len()).any(|w| w == text)
            || self.raw.windows(text.len()).any(|w| w == text)
    }

    /// Whether the second argument of the command was read from its memory: the
    /// metadata at the head of a capture holds it too, but without the end.
    fn has_command_line(&self) -> bool {
        let mut argument = self.scratch.work().into_os_string().into_encoded_bytes();
        argument.push(0);
        self.raw.windows(argument.len()).any(|w| w == argument)
    }
}

/// The search finds what is there.
#[test]
fn full_reads_everything() {
    need_root!();
    let full = record("full");
    for text in PASSED {
        assert!(full.has(text), "{text}");
    }
    assert!(full.has_command_line());
}

/// Numbers only: nothing of the program's memory, and no path.
#[test]
fn raw_reads_no_memory_and_no_path() {
    need_root!();
    let raw = record("raw");
    for text in PASSED {
        assert!(!raw.has(text), "{text}");
    }
    assert!(!raw.has_command_line());
    let directory = raw.scratch.work().display().to_string();
    assert!(!raw.rows.contains(&directory));
    for (table, columns) in [
        (
            "syscalls",
            "path, path2, path_arg, path_arg2, hash, content",
        ),
        ("processes", "exe, cmdline"),
    ] {
        for column in columns.split(", ") {
            let set = raw.recording.number(&format!(
                "SELECT count(*) FROM {table} WHERE {column} IS NOT NULL"
            ));
            assert_eq!(set, 0, "{table}.{column}");
        }
    }
    assert_eq!(raw.recording.number("SELECT count(*) FROM files"), 0);
    // The numbers are there.
    assert!(raw.recording.number("SELECT sum(bytes) FROM syscalls") > 0);
    assert!(
        raw.recording
            .number("SELECT count(*) FROM syscalls WHERE flags IS NOT NULL")
            > 0
    );
}

/// Files behind descriptors have their paths, and what was passed as text is
/// left alone.
#[test]
fn fds_reads_files_and_no_strings() {
    need_root!();
    let fds = record("fds");
    for text in ["fathom-truth", "user.none", "some target"] {
        assert!(!fds.has(text), "{text}");
    }
    let path = fds.scratch.work().join("described").display().to_string();
    let rows = fds.recording.rows(&format!(
        "SELECT syscall, count(*) AS calls FROM syscalls WHERE path = '{path}' GROUP BY syscall"
    ));
    let calls: BTreeMap<&str, i64> = rows
        .iter()
        .map(|r| (r.text("syscall").unwrap(), r.int("calls").unwrap()))
        .collect();
    for call in ["fstat", "fstatfs", "fchmod", "fsetxattr", "pwrite64"] {
        assert!(calls.contains_key(call), "{call}: {calls:?}");
    }
    // With AT_EMPTY_PATH, or without a path, the descriptor says which file.
    for call in ["newfstatat", "statx", "utimensat"] {
        assert_eq!(calls.get(call), Some(&1), "{call}: {calls:?}");
    }
    let by_path = fds.recording.number(
        "SELECT count(*) FROM syscalls WHERE syscall IN ('unlinkat', 'mkdirat', 'truncate')
            AND (path IS NOT NULL OR path_arg IS NOT NULL)",
    );
    assert_eq!(by_path, 0);
}
