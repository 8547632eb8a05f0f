//! The same calls as strace saw them.

#[path = "strace_arguments.rs"]
mod arguments;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use fathom_model::syscalls::{Arg, Number, Returns, Syscall};
use fathom_tests::environment::must_run;
use fathom_tests::session::Row;
use fathom_tests::strace::{self, Call};
use fathom_tests::{Record, Recording, Scratch, need_program, need_root, workload};

/// The calls that fathom declares, by thread.
fn declared(text: &str) -> BTreeMap<i64, Vec<(&'static Syscall, Call)>> {
    let mut threads: BTreeMap<i64, Vec<_>> = BTreeMap::new();
    for call in strace::parse(text).unwrap() {
        if let Some(index) = Syscall::index_of(&call.name) {
            let known = &fathom_model::syscalls::SYSCALLS[index];
            threads.entry(call.tid).or_default().push((known, call));
        }
    }
    threads
}

/// A recording in which strace traces a command that succeeds, and what strace wrote.
pub(crate) fn both(
    scratch: &Scratch,
    options: &[&str],
    command: &[PathBuf],
) -> (Recording, String) {
    let (recording, text) = however_it_ends(scratch, options, command);
    (recording.must_exit(0), text)
}

/// The same of a command that may fail.
pub(crate) fn however_it_ends(
    scratch: &Scratch,
    options: &[&str],
    command: &[PathBuf],
) -> (Recording, String) {
    let log = scratch.root().join("strace");
    let recording = Record::new(scratch)
        .options(options)
        .command(["strace", "-f", "-y", "-s", "100000", "-o"])
        .command([log.as_os_str()])
        .command(command)
        .run();
    recording.complete();
    (recording, fs::read_to_string(log).unwrap())
}

/// Rows of a thread from the traced program's first call on. Before that strace
/// prepares its child, whose calls it does not trace.
fn rows(recording: &Recording, tid: i64) -> Vec<Row> {
    // strace sees no operations of AIO and io_uring.
    recording.rows(&format!(
        "SELECT * FROM syscalls WHERE tid = {tid} AND comm <> 'strace' AND api = 'syscall'
         ORDER BY ts_ns, rid"
    ))
}

/// Whether the calls work on what a recording of storage calls leaves out: all the
/// descriptors that they take.
fn not_storage(known: &Syscall, call: &Call) -> bool {
    if known.all_types {
        return true;
    }
    let other = ["socket:", "pipe:", "anon_inode:", "TCP", "UNIX"];
    let is_other = |role| {
        let arg = call.args.get(known.position(role)?)?;
        let behind = strace::behind(arg)?;
        Some(other.iter().any(|o| behind.starts_with(o)))
    };
    is_other(Arg::Fd) == Some(true) && is_other(Arg::Fd2) != Some(false)
}

fn compare(known: &Syscall, call: &Call, row: &Row) -> Result<(), String> {
    let equal = |what: &str, want: Option<i64>, got: Option<i64>| {
        if want == got {
            Ok(())
        } else {
            Err(format!("{what}: {got:?}, strace {want:?}"))
        }
    };
    if row.text("syscall") != Some(known.name) {
        return Err("another call".into());
    }
    // Without a return value the call never ended.
    if call.ret.is_some() || row.int("ret") != Some(-512) {
        equal("ret", call.ret, row.int("ret"))?;
    }
    if call.errno.as_deref() != row.text("errno") {
        return Err(format!(
            "errno: {:?}, strace {:?}",
            row.text("errno"),
            call.errno
        ));
    }
    let failed = call.ret.is_some_and(|r| (-4095..0).contains(&r));
    if arguments::is_unknown(call) {
        return Ok(());
    }
    for (at, role) in known.args.iter().enumerate() {
        let Some(arg) = call.args.get(at) else {
            continue;
        };
        match role {
            Arg::Fd => {
                // The column's null; args has it.
                let no_column = i64::from(i32::MIN);
                let fd = strace::descriptor(arg).filter(|fd| *fd != -1 && *fd != no_column);
                equal("fd", fd, row.int("fd").filter(|fd| *fd != -1))?;
                path_of(arg, "path", row)?;
            }
            // The size of openat2's struct is no number of bytes asked for.
            Arg::Size if known.name == "openat2" => equal("size", None, row.int("size"))?,
            // strace shows the register.
            Arg::Size if known.size == Number::Int => {
                let size = arg.parse::<u64>().ok().map(|size| i64::from(size as i32));
                equal("size", size, row.int("size"))?
            }
            Arg::Size => equal("size", number(arg), row.int("size"))?,
            // The descriptor's own position, which strace does not know.
            Arg::Offset if arg == "-1" => {}
            Arg::Offset if known.name != "mmap" || call.args.get(4).is_some_and(|f| f != "-1") => {
                let offset = number(arg).filter(|offset| *offset != i64::MIN);
                equal("file_offset", offset, row.int("file_offset"))?
            }
            Arg::Path | Arg::Target => text_of(arg, "path_arg", row)?,
            Arg::Path2 => text_of(arg, "path_arg2", row)?,
            Arg::Value {
                name: "flags",
                kind,
            } if !matches!(*kind, "hex") => {
                let flags = row.text("flags").unwrap_or("0");
                // strace says of some calls that it does not know a flag, of others not.
                let uncommented = flags.split(" /* ").next() == Some(arg);
                if flags != arg && !uncommented && !(arg == "0" && flags.is_empty()) {
                    return Err(format!("flags: {flags}, strace {arg}"));
                }
            }
            _ => {}
        }
    }
    arguments::compare(known, call, row)?;
    if known.returns == Returns::Bytes && !failed {
        equal("bytes", call.ret, row.int("bytes"))?;
    }
    Ok(())
}

fn number(arg: &str) -> Option<i64> {
    match arg.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).ok(),
        None => arg.parse().ok(),
    }
}

fn text_of(arg: &str, column: &str, row: &Row) -> Result<(), String> {
    // An address that cannot be read is not quoted.
    let Some(bytes) = strace::unquote(arg) else {
        return Ok(());
    };
    let want = fathom_tests::truth::as_text(&bytes);
    if row.text(column) == Some(&want) {
        Ok(())
    } else {
        Err(format!("{column}: {:?}, strace {want:?}", row.text(column)))
    }
}

fn path_of(arg: &str, column: &str, row: &Row) -> Result<(), String> {
    // strace reads it before the call and marks removed files; escaped names
    // and other kinds of files are compared elsewhere.
    match strace::behind(arg) {
        Some(path) if path.starts_with('/') && !path.contains(['\\', '(']) => {
            if row.text(column) == Some(path) {
                Ok(())
            } else {
                Err(format!("{column}: {:?}, strace {path:?}", row.text(column)))
            }
        }
        _ => Ok(()),
    }
}

pub(crate) fn compare_all(recording: &Recording, text: &str, all_file_types: bool) -> usize {
    let mut wrong = Vec::new();
    let mut different = 0;
    let mut compared = 0;
    // A fault of one call hides those of the others otherwise.
    let mut shown: BTreeMap<&str, usize> = BTreeMap::new();
    let threads = declared(text);
    assert!(!threads.is_empty(), "strace saw nothing");
    for (tid, mut calls) in threads {
        calls.retain(|(known, call)| all_file_types || !not_storage(known, call));
        let rows = rows(recording, tid);
        for (i, (known, call)) in calls.iter().enumerate() {
            let fault = match rows.get(i) {
                None => Some("no row".to_owned()),
                Some(row) => compare(known, call, row).err(),
            };
            compared += 1;
            if let Some(fault) = fault {
                let lost_step = fault == "another call" || fault == "no row";
                different += 1;
                let of_call = shown.entry(known.name).or_default();
                *of_call += 1;
                if *of_call <= 4 {
                    wrong.push(format!(
                        "{tid} call {i}: {fault}\n    {call:?}\n    {:?}",
                        rows.get(i)
                    ));
                }
                if lost_step {
                    break;
                }
            }
        }
        if rows.len() > calls.len() {
            wrong.push(format!(
                "{tid}: rows too many, first {:?}",
                rows[calls.len()]
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{different} of {compared} calls differ, the first:\n{}",
        wrong
            .iter()
            .take(25)
            .map(|w| format!("  {w}\n"))
            .collect::<String>()
    );
    compared
}

#[test]
fn every_call_at_once_with_strace() {
    need_root!();
    need_program!("strace");
    let scratch = Scratch::new();
    let command = [workload("calls"), scratch.work()];
    let (recording, text) = both(&scratch, &["--syscalls", "all"], &command);
    assert!(compare_all(&recording, &text, true) > 200);
}

#[test]
fn calls_on_mounts_mappings_and_watches_at_once_with_strace() {
    need_root!();
    need_program!("strace");
    let scratch = Scratch::new();
    let command = [workload("system"), scratch.work()];
    let (recording, text) = both(&scratch, &["--syscalls", "all"], &command);
    assert!(compare_all(&recording, &text, true) > 150);
}

#[test]
fn sockets_and_waiting_at_once_with_strace() {
    need_root!();
    need_program!("strace");
    let scratch = Scratch::new();
    let command = [workload("sockets"), scratch.work()];
    let (recording, text) = both(&scratch, &["--syscalls", "all"], &command);
    assert!(compare_all(&recording, &text, true) > 150);
}

/// Every bit and many values of flags, modes and commands.
#[test]
fn the_vocabulary_at_once_with_strace() {
    need_root!();
    need_program!("strace");
    let scratch = Scratch::new();
    let command = [workload("vocabulary")];
    let (recording, text) = both(&scratch, &["--syscalls", "all"], &command);
    assert!(compare_all(&recording, &text, true) > 8000);
}

#[test]
fn threads_at_once_with_strace() {
    need_root!();
    need_program!("strace");
    let scratch = Scratch::new();
    let command = [
        workload("threads"),
        "own".into(),
        scratch.work(),
        "4".into(),
        "50".into(),
    ];
    let (recording, text) = both(&scratch, &[], &command);
    assert!(compare_all(&recording, &text, false) > 4 * 100);
}

#[test]
fn processes_at_once_with_strace() {
    need_root!();
    need_program!("strace");
    let scratch = Scratch::new();
    let command = [workload("processes"), "tree".into(), scratch.work()];
    let (recording, text) = both(&scratch, &["--syscalls", "all"], &command);
    assert!(compare_all(&recording, &text, true) > 14 * 20);
}

/// strace slows its program down and holds it at each call; alone, the same
/// program makes the same calls.
#[test]
fn separate_runs_make_the_same_calls() {
    need_root!();
    need_program!("strace", "setarch");
    let program = workload("calls");
    // Without the randomised layout, addresses and sizes are the same too.
    let command = |work: PathBuf| {
        let mut args: Vec<std::ffi::OsString> = vec!["setarch".into(), "-R".into()];
        args.extend([program.clone().into(), work.into()]);
        args
    };
    let scratch = Scratch::new();
    let recording = Record::new(&scratch)
        .options(["--syscalls", "all"])
        .command(command(scratch.work()))
        .run()
        .must_exit(0);
    recording.complete();
    // In the same directory, made empty again.
    fs::remove_dir_all(scratch.work()).unwrap();
    fs::create_dir(scratch.work()).unwrap();
    let log = scratch.root().join("strace");
    let mut args: Vec<std::ffi::OsString> = ["-f", "-y", "-E"].iter().map(|a| a.into()).collect();
    args.push(format!("TRUTH_DIR={}", scratch.truth().display()).into());
    args.extend(["-o".into(), log.clone().into()]);
    args.extend(command(scratch.work()));
    must_run("strace", args);
    let threads = declared(&fs::read_to_string(&log).unwrap());
    assert_eq!(threads.len(), 1);
    let calls: Vec<_> = threads
        .values()
        .flatten()
        .map(|(known, call)| (known.name.to_owned(), call.errno.clone()))
        .collect();
    let rows: Vec<_> = recording
        .rows("SELECT syscall, errno FROM syscalls WHERE api = 'syscall' ORDER BY ts_ns, rid")
        .iter()
        .map(|r| {
            (
                r.text("syscall").unwrap().to_owned(),
                r.text("errno").map(str::to_owned),
            )
        })
        .collect();
    // Both begin with the first program's first call.
    let first = rows.iter().zip(&calls).position(|(row, call)| row != call);
    if let Some(at) = first {
        panic!("call {at}: recorded {:?}, strace {:?}", rows[at], calls[at]);
    }
    assert_eq!(rows.len(), calls.len());
}
