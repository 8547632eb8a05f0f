//! `--content`: hashes are those of the bytes that the calls moved, wherever
//! they are made, and what is kept are these bytes.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use fathom_tests::environment::must_run;
use fathom_tests::session::{Row, meta, report};
use fathom_tests::truth::{Log, Selection, compare, logs, rows_of};
use fathom_tests::{Record, Recording, Scratch, need_program, need_root, workload};

use crate::kernel::skips_for_oldest_programs;

const MIB: usize = 1 << 20;

/// A recording of the workload, and for each thread its log and what its calls
/// moved.
fn record(options: &[&str], threads: &str, rounds: &str) -> (Scratch, Recording, Vec<Moved>) {
    let scratch = Scratch::new();
    let recording = Record::new(&scratch)
        .options(options)
        .command([workload("content").as_os_str(), "calls".as_ref()])
        .command([
            scratch.work().as_os_str(),
            threads.as_ref(),
            rounds.as_ref(),
        ])
        .run()
        .must_exit(0);
    recording.complete();
    let moved = moved(&scratch.truth());
    (scratch, recording, moved)
}

/// The calls of a thread and what they moved.
struct Moved {
    log: Log,
    bytes: Vec<u8>,
}

fn moved(truth: &Path) -> Vec<Moved> {
    let mut moved: Vec<(PathBuf, Vec<u8>)> = Vec::new();
    for entry in fs::read_dir(truth).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "moved") {
            moved.push((path.clone(), fs::read(&path).unwrap()));
            // What remains are logs.
            fs::remove_file(path).unwrap();
        }
    }
    logs(truth)
        .into_iter()
        .map(|log| {
            let (_, bytes) = moved
                .iter()
                .find(|(path, _)| path.file_stem().unwrap().to_string_lossy() == log.id)
                .unwrap();
            Moved {
                bytes: bytes.clone(),
                log,
            }
        })
        .collect()
}

impl Moved {
    /// The rows of the calls that move data, each with the bytes it moved.
    fn rows<'a>(&'a self, recording: &Recording) -> Vec<(Row, &'a [u8])> {
        let mut rest = self.bytes.as_slice();
        let mut rows = Vec::new();
        for row in rows_of(recording, &self.log) {
            let moves = row.text("class") == Some("data") && row.int("bytes").is_some();
            if !moves {
                continue;
            }
            let (bytes, after) = rest.split_at(row.int("bytes").unwrap() as usize);
            rest = after;
            rows.push((row, bytes));
        }
        assert!(rest.is_empty(), "{} bytes of no call", rest.len());
        rows
    }
}

/// XXH64 of each, as the program of that name prints it.
fn xxh64(scratch: &Scratch, contents: &[&[u8]]) -> Vec<String> {
    let dir = scratch.root().join("pieces");
    fs::create_dir(&dir).unwrap();
    let mut args = vec!["-H1".to_string()];
    for (i, bytes) in contents.iter().enumerate() {
        let path = dir.join(format!("{i:06}"));
        fs::write(&path, bytes).unwrap();
        args.push(path.display().to_string());
    }
    let text = String::from_utf8(must_run("xxhsum", args)).unwrap();
    fs::remove_dir_all(dir).unwrap();
    let hashes: Vec<String> = text
        .lines()
        .map(|line| line.split_whitespace().next().unwrap().to_owned())
        .collect();
    assert_eq!(hashes.len(), contents.len());
    hashes
}

/// Checks every row against the hash of what its call moved, of which at most
/// `cap` bytes count; returns how many had one.
fn check_hashes(scratch: &Scratch, recording: &Recording, moved: &[Moved], cap: usize) -> usize {
    let mut checked = 0;
    let mut capped = 0;
    for thread in moved {
        let rows = thread.rows(recording);
        let taken = |bytes: &'_ [u8]| bytes.len().min(cap);
        let contents: Vec<&[u8]> = rows.iter().map(|(_, b)| &b[..taken(b)]).collect();
        let hashes = xxh64(scratch, &contents);
        for ((row, bytes), hash) in rows.iter().zip(hashes) {
            assert_eq!(row.value("content"), &serde_json::Value::Null);
            if bytes.is_empty() {
                assert_eq!((row.int("hash"), row.int("content_bytes")), (None, None));
                continue;
            }
            let found = row.int("hash").map(|h| format!("{h:016x}"));
            assert_eq!(found, Some(hash), "{row:?}");
            assert_eq!(
                row.int("content_bytes"),
                Some(taken(bytes) as i64),
                "{row:?}"
            );
            checked += 1;
            capped += usize::from(bytes.len() > cap);
        }
    }
    let said = &meta(&recording.session)["content"];
    let all = recording.number("SELECT count(*) FROM syscalls WHERE hash IS NOT NULL");
    assert_eq!(said["mode"], "hash");
    assert_eq!(said["calls"], all);
    assert_eq!(said["unreadable"], 0);
    assert_eq!(said["no_room"], 0);
    assert!(capped > 0 && said["capped"].as_u64().unwrap() >= capped as u64);
    checked
}

/// Every call, segments, tails, lengths, ends of files and of memory, by threads
/// at once.
/// Values of extended attributes are content, too.
#[test]
fn values_of_extended_attributes() {
    need_root!();
    if skips_for_oldest_programs() {
        return;
    }
    let values = |content: &str| {
        let scratch = Scratch::new();
        let recording = Record::new(&scratch)
            .options(["--content", content, "--syscalls", "xattr"])
            .command([workload("calls").as_os_str(), scratch.work().as_os_str()])
            .run()
            .must_exit(0);
        recording.complete();
        let rows = recording.rows(
            "SELECT DISTINCT syscall, regexp_extract(args, 'value=.*') AS value FROM syscalls
             WHERE errno IS NULL AND syscall LIKE '%etxattr' ORDER BY syscall",
        );
        let text = |row: &fathom_tests::session::Row| {
            let column = |name| row.text(name).unwrap_or_default().to_owned();
            format!("{} {}", column("syscall"), column("value"))
        };
        rows.iter().map(text).collect::<Vec<_>>()
    };
    let names = [
        "fgetxattr",
        "fsetxattr",
        "getxattr",
        "lgetxattr",
        "lsetxattr",
        "setxattr",
    ];
    assert_eq!(
        values("plain"),
        names.map(|name| format!("{name} value=\"abc\""))
    );
    assert_eq!(values("none"), names.map(|name| format!("{name} ")));
}

#[test]
fn hashes_in_the_kernel() {
    need_root!();
    need_program!("xxhsum");
    let (scratch, recording, moved) = record(&["--content", "hash"], "4", "400");
    let checked = check_hashes(&scratch, &recording, &moved, MIB);
    assert!(checked > 4 * 400, "{checked}");
    let logs: Vec<Log> = moved.iter().map(|m| m.log.clone()).collect();
    compare(&recording, &logs, Selection::Storage);
    let used =
        recording.number("SELECT count(DISTINCT syscall) FROM syscalls WHERE hash IS NOT NULL");
    assert_eq!(used, 10);
    let report = report(&recording.session);
    assert_eq!(report["session"]["content"]["mode"], "hash");
    // SQL writes them as xxhsum does.
    let wrong = recording.number(
        "SELECT count(*) FROM syscalls WHERE hash IS NOT NULL AND
            (length(hash_hex(hash)) <> 16
             OR ('0x' || hash_hex(hash))::UBIGINT::HUGEINT
                <> CASE WHEN hash < 0 THEN hash::HUGEINT + 18446744073709551616 ELSE hash END)",
    );
    assert_eq!(wrong, 0);
}

/// The same of fewer calls, for machines that are emulated.
#[test]
fn hashes_of_few_calls() {
    need_root!();
    need_program!("xxhsum");
    if skips_for_oldest_programs() {
        return;
    }
    let (scratch, recording, moved) = record(&["--content", "hash"], "2", "50");
    let checked = check_hashes(&scratch, &recording, &moved, MIB);
    assert!(checked > 2 * 50, "{checked}");
    let logs: Vec<Log> = moved.iter().map(|m| m.log.clone()).collect();
    compare(&recording, &logs, Selection::Storage);
}

#[test]
fn hashes_by_the_recorder() {
    need_root!();
    need_program!("xxhsum");
    let options = [
        "--content",
        "hash",
        "--hash-in",
        "user",
        "--ring-mib",
        "128",
    ];
    let (scratch, recording, moved) = record(&options, "3", "400");
    let checked = check_hashes(&scratch, &recording, &moved, MIB);
    assert!(checked > 3 * 400, "{checked}");
    assert_eq!(meta(&recording.session)["content"]["hash_in"], "user");
}

#[test]
fn hashes_of_less_and_of_more() {
    need_root!();
    need_program!("xxhsum");
    for (place, max, cap) in [
        ("kernel", "4M", 4 * MIB),
        ("kernel", "1", 1),
        ("kernel", "16385", 16385),
        ("user", "100", 100),
        ("user", "32768", 32768),
    ] {
        let options = [
            "--content",
            "hash",
            "--hash-in",
            place,
            "--content-max",
            max,
        ];
        let (scratch, recording, moved) = record(&options, "1", "60");
        if cap < 4 * MIB {
            assert!(check_hashes(&scratch, &recording, &moved, cap) > 100);
        } else {
            // Nothing is as long as that.
            for thread in &moved {
                for (row, bytes) in thread.rows(&recording) {
                    let all = (!bytes.is_empty()).then_some(bytes.len() as i64);
                    assert_eq!(row.int("content_bytes"), all, "{row:?}");
                }
            }
        }
    }
}

#[test]
fn what_is_kept_is_what_was_moved() {
    need_root!();
    for cap in [256, 16384] {
        let options = ["--content", "plain", "--content-max", &cap.to_string()];
        let (_scratch, recording, moved) = record(&options, "2", "100");
        assert!(
            recording.stderr.contains("passwords"),
            "{}",
            recording.stderr
        );
        let mode = fs::metadata(&recording.session)
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o700);
        for thread in &moved {
            for (row, bytes) in thread.rows(&recording) {
                assert_eq!(row.int("hash"), None);
                if bytes.is_empty() {
                    assert_eq!(row.text("content"), None);
                    continue;
                }
                let want = &bytes[..bytes.len().min(cap)];
                let hex: String = want.iter().map(|b| format!("{b:02x}")).collect();
                let found = row.text("content").map(str::to_lowercase);
                assert_eq!(found.as_deref(), Some(hex.as_str()));
                assert_eq!(row.int("content_bytes"), Some(want.len() as i64));
            }
        }
        let kept = recording.number("SELECT count(*) FROM syscalls WHERE content IS NOT NULL");
        assert_eq!(meta(&recording.session)["content"]["calls"], kept);
    }
}

/// Bytes that would act on a terminal, or end a field, come out as digits.
#[test]
fn hostile_content_is_harmless() {
    need_root!();
    let scratch = Scratch::new();
    let hostile = b"\x1b]0;owned\x07\",<script>'\r\n\xff\0";
    fs::write(scratch.work().join("hostile"), hostile).unwrap();
    let recording = Record::new(&scratch)
        .options(["--content", "plain"])
        .command(["dd", "status=none", "of=/dev/null"])
        .command([format!("if={}", scratch.work().join("hostile").display())])
        .run()
        .must_exit(0);
    recording.complete();
    let sql = "SELECT content, content::VARCHAR AS text FROM syscalls WHERE path LIKE '%/hostile' AND bytes > 0";
    for format in ["table", "csv", "json"] {
        let out = must_run(
            fathom_tests::environment::fathom(),
            [
                "query".as_ref(),
                recording.session.as_os_str(),
                sql.as_ref(),
                "--format".as_ref(),
                format.as_ref(),
            ],
        );
        let bad = |b: &u8| *b != b'\n' && (*b < b' ' || *b >= 0xf8 || *b == 0x7f);
        assert!(!out.iter().any(bad), "{format}: {}", out.escape_ascii());
        let text = String::from_utf8(out).unwrap().to_lowercase();
        assert!(text.contains("1b5d303b6f776e656407"), "{format}: {text}");
    }
    let html = must_run(
        fathom_tests::environment::fathom(),
        [
            "report".as_ref(),
            recording.session.as_os_str(),
            "--format".as_ref(),
            "html".as_ref(),
        ],
    );
    assert!(!String::from_utf8_lossy(&html).contains("owned"));
    assert!(String::from_utf8_lossy(&html).contains("in the clear"));
}

/// Memory that is gone when the call returns: no hash, and that is counted.
#[test]
fn memory_that_cannot_be_read_has_no_hash() {
    need_root!();
    for options in [&["hash"][..], &["hash", "--hash-in", "user"], &["plain"]] {
        let scratch = Scratch::new();
        let recording = Record::new(&scratch)
            .options(["--syscalls", "all", "--content"])
            .options(options)
            .command([workload("content").as_os_str(), "gone".as_ref()])
            .run()
            .must_exit(0);
        recording.complete();
        let rows = recording.rows(
            "SELECT hash, content, content_bytes, size FROM syscalls
             WHERE syscall = 'write' AND bytes = 69632",
        );
        assert_eq!(rows.len(), 1, "{rows:?}");
        assert_eq!(rows[0].int("hash"), None);
        assert_eq!(rows[0].text("content"), None);
        assert_eq!(rows[0].int("content_bytes"), None);
        assert_eq!(rows[0].int("size"), Some(69632));
        assert_eq!(meta(&recording.session)["content"]["unreadable"], 1);
    }
}

/// A recorder that sleeps while more is read than its rings hold: every call is a
/// row or a loss, and every row that moved data has its content or is counted.
#[test]
fn what_finds_no_room_is_counted() {
    need_root!();
    const CALLS: i64 = 300_000;
    for options in [&["hash"][..], &["hash", "--hash-in", "user"], &["plain"]] {
        let scratch = Scratch::new();
        let running = Record::new(&scratch)
            // Records of other layers would take the room of calls without content.
            .options(["--ring-mib", "1", "--layers", "syscall", "--content"])
            .options(options)
            .command([
                workload("flood").as_os_str(),
                scratch.work().join("file").as_os_str(),
            ])
            .command([CALLS.to_string()])
            .interactive()
            .spawn();
        let recording = running.flooded().must_exit(0);
        let totals = recording.balanced();
        assert!(totals.lost > 0, "{totals:?}");
        let rows = recording.number("SELECT count(*) FROM syscalls WHERE syscall = 'preadv'");
        let lost = recording
            .number("SELECT coalesce(sum(count), 0)::BIGINT FROM losses WHERE syscall = 'preadv'");
        assert_eq!(rows + lost, CALLS);
        let moved =
            recording.number("SELECT count(*) FROM syscalls WHERE class = 'data' AND bytes > 0");
        let with = recording
            .number("SELECT count(*) FROM syscalls WHERE hash IS NOT NULL OR content IS NOT NULL");
        let said = meta(&recording.session)["content"].clone();
        assert_eq!(said["calls"], with);
        assert_eq!(said["unreadable"], 0);
        assert_eq!(said["no_room"], moved - with, "{said}");
        assert!(with > 0 && moved > with, "{with} of {moved}: {said}");
        // All of them read the same 16 bytes, each into the same place.
        let different = recording.number(
            "SELECT count(DISTINCT coalesce(hash_hex(hash), content::VARCHAR)) FROM syscalls
             WHERE syscall = 'preadv'",
        );
        assert_eq!(different, 1);
        // Their names found room.
        let nameless = recording
            .number("SELECT count(*) FROM syscalls WHERE syscall = 'preadv' AND path IS NULL");
        assert_eq!(nameless, 0);
    }
}

/// Offsets on a shared descriptor are as good with content as without.
#[test]
fn threads_that_share_a_descriptor() {
    need_root!();
    let scratch = Scratch::new();
    const BYTES: usize = 512 * 3001 + 77;
    fs::write(scratch.work().join("shared"), vec![7; BYTES]).unwrap();
    let recording = Record::new(&scratch)
        .options(["--content", "hash"])
        .command([workload("threads").as_os_str(), "shared".as_ref()])
        .command([scratch.work().as_os_str(), "4".as_ref(), "0".as_ref()])
        .run()
        .must_exit(0);
    recording.complete();
    let mut pieces = Vec::new();
    for log in logs(&scratch.truth()) {
        for row in rows_of(&recording, &log) {
            if row.text("syscall") == Some("read") && row.int("ret") > Some(0) {
                assert!(row.int("hash").is_some());
                pieces.push((row.int("file_offset"), row.int("ret").unwrap()));
            }
        }
    }
    crate::ground_truth::assert_shared(&pieces, BYTES as i64);
}

/// A capture replayed gives the same hashes and the same counts.
#[test]
fn a_replay_says_the_same() {
    need_root!();
    let scratch = Scratch::new();
    let raw = scratch.root().join("raw");
    let recording = Record::new(&scratch)
        .options(["--content", "hash", "--hash-in", "user", "--raw"])
        .options([&raw])
        .command([workload("content").as_os_str(), "calls".as_ref()])
        .command([scratch.work().as_os_str(), "1".as_ref(), "50".as_ref()])
        .run()
        .must_exit(0);
    recording.complete();
    let replayed = scratch.session("replayed");
    let args = [
        "replay".into(),
        raw.into_os_string(),
        "-o".into(),
        replayed.clone().into(),
    ];
    must_run(fathom_tests::environment::fathom(), args);
    let sql = "SELECT rid, syscall, hash, content_bytes FROM syscalls ORDER BY rid";
    let text = |session: &Path| {
        let rows = fathom_tests::session::query(session, sql);
        format!("{rows:?}")
    };
    assert_eq!(text(&recording.session), text(&replayed));
    assert_eq!(
        meta(&recording.session)["content"],
        meta(&replayed)["content"]
    );
}

/// Options that contradict each other are refused before anything runs.
#[test]
fn options_that_make_no_sense() {
    let refused = |options: &[&str]| {
        let scratch = Scratch::new();
        let recording = Record::new(&scratch)
            .options(options)
            .command(["true"])
            .run()
            .must_exit(2);
        assert!(!recording.session.exists());
        recording.stderr
    };
    assert!(refused(&["--content", "hash", "--detail", "raw"]).contains("--detail raw"));
    assert!(refused(&["--hash-in", "user"]).contains("--content hash"));
    assert!(refused(&["--content-max", "5"]).contains("--content-max"));
    assert!(refused(&["--content", "plain", "--content-max", "16385"]).contains("16384"));
    assert!(refused(&["--content", "hash", "--content-max", "5M"]).contains("4194304"));
    assert!(refused(&["--content", "hash", "--content-max", "0"]).contains("between 1"));
}
