//! The inputs that are mutated: captures and sessions of programs that make every kind of record,
//! recorded here where that is allowed, and logs of what these sessions export.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use fathom_decode::capture::Writer;
use fathom_model::abi::{CallRecord, RECORD_CALL};
use fathom_model::raw::{RawChunk, Ring};
use fathom_model::syscalls::SYSCALLS;
use fathom_testkit::meta;
use fathom_tests::environment::fathom;
use fathom_tests::{is_root, workload};

/// Programs to record: a name, the workload and its arguments (WORK is a directory), and options.
const RECORDED: [(&str, &[&str], &[&str]); 4] = [
    (
        "calls",
        &["calls", "WORK"],
        &["--layers", "all", "--content", "plain"],
    ),
    ("uring", &["uring", "WORK"], &["--layers", "all"]),
    ("mapped", &["mapped", "touch", "WORK"], &["--stacks"]),
    (
        "threads",
        &["threads", "own", "WORK", "3", "200"],
        &["--syscalls", "all"],
    ),
];

/// Lines as strace writes them, for where nothing can be recorded.
const STRACE: &str = r#"7 1700000000.000001 openat(AT_FDCWD</>, "/a\n", O_RDWR|O_APPEND|O_CREAT, 0644) = 3</a> <0.000002>
7 1700000000.000002 read(3</a>, "x\""..., 10) = 1 <0.000002>
8 1700000000.000003 readv(3, [{iov_base="", iov_len=4}, {iov_base=""..., iov_len=5}], 2) = 9
7 1700000000.000004 write(3</a>,  <unfinished ...>
7 1700000000.000005 <... write resumed>"", 4) = 4 <0.000001>
7 1700000000.000006 clone(child_stack=NULL, flags=CLONE_FILES|SIGCHLD) = 8
7 1700000000.000008 copy_file_range(3</a>, NULL, 4</b<char 1:3>>, [7], 10, 0) = 10
7 1700000000.000009 lseek(3</a>, -9223372036854775808, SEEK_END) = 9223372036854775807
7 1700000000.000010 rename("/a", "/b") = 0
7 1700000000.000011 dup2(3</a>, 2147483647) = 2147483647
7 1700000000.000012 +++ killed by SIGKILL +++
[pid 9<a b>] 12:00:00.000016 openat2(-100, "x", {flags=O_RDONLY, resolve=RESOLVE_BENEATH}, 24) = -1 ENOENT (No such file or directory)
"#;

/// One document of DIO's.
const DIO: &str = r#"{"system_call_name":"read","call_timestamp":5,"execution_time":1,"pid":7,"tid":7,"return_value":-1,"error_message":"EBADF","cpu":1,"args":{"file_descriptor":3,"offset":4,"bytes_requested":9},"file_tag":"1|2|3","fdata":{"file_path":"/a","file_type":"Regular file"}}
"#;

/// The description of a trace in CTF.
const CTF: &str = r#"trace { major = 1; minor = 8; byte_order = le; };
env { hostname = "h"; };
clock { name = c; freq = 1000000000; offset_s = 5; };
typealias integer { size = 8; map = clock.c.value; } := time_t;
stream { id = 0; event.header := struct { enum : integer { size = 8; } { a = 0 ... 200, b } id; time_t t; }; };
event { name = "sys_read"; id = 32; fields := struct { integer { size = 8; } fd; string count; }; };
event { name = "exit_syscall"; id = 10; fields := struct { integer { size = 3; align = 1; signed = 1; } ret; }; };
"#;

/// Makes the corpus in `dir` unless it is there. It appears whole or not at all.
pub fn make(dir: &Path) {
    if dir.exists() {
        return;
    }
    let parent = dir.parent().expect("a directory of the corpus");
    fs::create_dir_all(parent).expect("directory of the corpus");
    let new = tempfile::tempdir_in(parent).expect("directory of the corpus");
    for kind in ["captures", "sessions", "logs"] {
        fs::create_dir(new.path().join(kind)).expect("directory of the corpus");
    }
    if is_root() {
        for recorded in &RECORDED {
            record(new.path(), recorded);
        }
    }
    fs::write(new.path().join("captures/made"), made()).expect("capture");
    fs::write(new.path().join("logs/strace"), STRACE).expect("log");
    fs::write(new.path().join("logs/dio"), DIO.repeat(3)).expect("log");
    fs::write(new.path().join("logs/ctf"), CTF).expect("log");
    // A session that needs no privilege, from the capture that was made.
    run([
        "replay".into(),
        new.path().join("captures/made"),
        "-o".into(),
        new.path().join("sessions/made.fathom"),
    ]);
    fs::rename(new.keep(), dir).expect("the corpus in its place");
    eprintln!("fathom-fuzz: made {}", dir.display());
}

fn record(dir: &Path, (name, program, options): &(&str, &[&str], &[&str])) {
    let work = tempfile::tempdir().expect("directory to work in");
    let session = dir.join(format!("sessions/{name}.fathom"));
    let mut args: Vec<PathBuf> = vec!["record".into(), "-q".into(), "-o".into(), session.clone()];
    args.extend([
        "--raw".into(),
        dir.join("captures").join(name),
        "--ring-mib".into(),
        "4".into(),
    ]);
    args.extend(options.iter().map(PathBuf::from));
    args.extend(["--".into(), workload(program[0])]);
    args.extend(program[1..].iter().map(|word| match *word {
        "WORK" => work.path().to_owned(),
        word => word.into(),
    }));
    run(args);
    for format in ["strace", "dio"] {
        let log = dir.join(format!("logs/{name}.{format}"));
        run([
            "export".into(),
            session.clone(),
            "--format".into(),
            format.into(),
            "-o".into(),
            log,
        ]);
    }
}

fn run(args: impl IntoIterator<Item = PathBuf>) {
    let args: Vec<PathBuf> = args.into_iter().collect();
    // Workloads leave what they did where they begin.
    let work = tempfile::tempdir().expect("directory to work in");
    let output = Command::new(fathom())
        .args(&args)
        .current_dir(&work)
        .output()
        .expect("fathom");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {text}");
}

/// A capture with a call of every kind in the rings of two CPUs.
fn made() -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), &meta()).expect("capture");
    for cpu in 0..2 {
        let mut bytes = Vec::new();
        for call in 0..SYSCALLS.len() {
            let record = CallRecord {
                kind: RECORD_CALL as u8,
                syscall: call as u16,
                fd: 3,
                ts_ns: 1000 + 10 * call as u64 + cpu,
                dur_ns: 5,
                pid: 10,
                tid: 10 + cpu as u32,
                ..CallRecord::parse(&[0; CallRecord::SIZE]).expect("a record")
            };
            bytes.extend(record.to_bytes());
        }
        let chunk = RawChunk {
            cpu: cpu as u32,
            ring: Ring::Slot,
            bytes,
        };
        writer.chunk(&chunk).expect("capture");
    }
    writer.watermark(u64::MAX).expect("capture");
    writer.finish().expect("capture")
}

/// The files of a kind, in order of their names, so that a case is the same in each run.
pub fn files(dir: &Path, kind: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir.join(kind)).expect("the corpus");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("the corpus").path())
        .collect();
    files.sort();
    assert!(
        !files.is_empty(),
        "the corpus {} has no {kind}: remove it, and it is made",
        dir.display()
    );
    files
}
