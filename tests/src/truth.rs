//! The logs of the workloads, and their comparison with what was recorded.

use std::fmt::Debug;
use std::fs;
use std::path::Path;

use fathom_model::errno;
use fathom_model::syscalls::{Returns, SYSCALLS, Syscall};
use serde_json::Value;

use crate::record::Recording;
use crate::session::Row;

/// What a log says of one column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected<T> {
    /// Nothing.
    Anything,
    /// It is null.
    Null,
    /// Its value.
    Is(T),
}

/// One call that a workload made.
#[derive(Clone, Debug)]
pub struct Call {
    /// Name.
    pub syscall: String,
    /// Return value, negative errno for an error.
    pub ret: i64,
    /// Numeric columns by name.
    pub numbers: Vec<(&'static str, Expected<i64>)>,
    /// Text columns by name, as bytes.
    pub texts: Vec<(&'static str, Vec<u8>)>,
    /// Whether a recording of storage calls takes it in.
    pub storage: bool,
}

/// The calls of one thread between its markers, in order.
#[derive(Clone, Debug)]
pub struct Log {
    /// What the markers are called.
    pub id: String,
    /// Process that made the calls.
    pub pid: i64,
    /// Thread that made the calls.
    pub tid: i64,
    /// The calls.
    pub calls: Vec<Call>,
}

const NUMBERS: [&str; 7] = [
    "fd",
    "size",
    "bytes",
    "file_offset",
    "dev",
    "ino",
    "user_data",
];
const TEXTS: [&str; 7] = [
    "path",
    "path2",
    "path_arg",
    "path_arg2",
    "flags",
    "args",
    "op_flags",
];

/// Reads the logs in a directory.
pub fn logs(dir: &Path) -> Vec<Log> {
    let mut paths: Vec<_> = fs::read_dir(dir)
        .expect("directory of logs")
        .map(|e| e.expect("log").path())
        .collect();
    paths.sort();
    paths
        .iter()
        .map(|path| {
            let text = fs::read_to_string(path).expect("log");
            parse(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
        })
        .collect()
}

fn parse(text: &str) -> Result<Log, String> {
    let mut lines = text
        .lines()
        .map(|l| serde_json::from_str::<Value>(l).map_err(|e| format!("{l}: {e}")));
    let head = lines.next().ok_or("empty")??;
    let field = |name: &str| head[name].as_i64().ok_or(format!("no {name}"));
    let calls = lines
        .map(|line| call(&line?))
        .collect::<Result<_, String>>()?;
    let id = head["id"].as_str().ok_or("no id")?.to_owned();
    Ok(Log {
        id,
        pid: field("pid")?,
        tid: field("tid")?,
        calls,
    })
}

fn call(line: &Value) -> Result<Call, String> {
    let number = |name: &'static str| match line.get(name) {
        None => Expected::Anything,
        Some(Value::Null) => Expected::Null,
        Some(v) => v.as_i64().map_or(Expected::Anything, Expected::Is),
    };
    let text = |name: &'static str| {
        line.get(name)
            .map(|v| Ok((name, unhex(v.as_str().unwrap_or("?"))?)))
    };
    Ok(Call {
        syscall: line["syscall"].as_str().ok_or("no syscall")?.to_owned(),
        ret: line["ret"].as_i64().ok_or("no ret")?,
        numbers: NUMBERS.iter().map(|n| (*n, number(n))).collect(),
        texts: TEXTS
            .iter()
            .filter_map(|n| text(n))
            .collect::<Result<_, String>>()?,
        storage: line["storage"] != Value::Bool(false),
    })
}

fn unhex(digits: &str) -> Result<Vec<u8>, String> {
    let byte = |i: usize| {
        digits
            .get(i..i + 2)
            .and_then(|d| u8::from_str_radix(d, 16).ok())
    };
    (0..digits.len())
        .step_by(2)
        .map(|i| byte(i).ok_or(format!("{digits}: not hex")))
        .collect()
}

/// Bytes as a text column holds them: those that are not UTF-8 stand as `\xHH`.
pub fn as_text(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

/// What a recording selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// Calls on files and directories: the default.
    Storage,
    /// Calls on sockets, pipes and anonymous files too.
    All,
}

/// Calls on all types of files, for `--syscalls`. The workloads make pipes and wait without
/// logging it, except for the one of `sockets.c`.
pub const ALL_BUT_NETWORK: &str = "all,!socket,!wait";

const MOST_SHOWN: usize = 25;

/// Checks that the recording holds exactly the calls of the logs, thread by
/// thread and in order, with every column that the logs know.
pub fn compare(recording: &Recording, logs: &[Log], selection: Selection) {
    assert!(!logs.is_empty(), "no logs:\n{}", recording.stderr);
    let mut wrong = Vec::new();
    for log in logs {
        compare_log(recording, log, selection, &mut wrong);
    }
    let calls: usize = logs.iter().map(|l| l.calls.len()).sum();
    assert!(
        wrong.is_empty(),
        "{} of {calls} calls are wrong, the first:\n{}",
        wrong.len(),
        wrong
            .iter()
            .take(MOST_SHOWN)
            .map(|w| format!("  {w}\n"))
            .collect::<String>()
    );
}

/// The rows between the markers of a log, in order.
pub fn rows_of(recording: &Recording, log: &Log) -> Vec<Row> {
    let mut rows = recording.rows(&format!(
        "SELECT s.*, f.dev, f.ino, f.path AS file_path, hex(f.path_raw) AS file_path_raw,
                f.path_complete
         FROM syscalls s LEFT JOIN files f USING (file_id)
         WHERE s.tid = {} AND s.ts_ns BETWEEN
            (SELECT min(ts_ns) FROM syscalls WHERE path_arg = '/fathom-truth/begin/{id}') AND
            (SELECT max(ts_ns) FROM syscalls WHERE path_arg = '/fathom-truth/end/{id}')
         ORDER BY s.ts_ns, s.rid",
        log.tid,
        id = log.id
    ));
    assert!(rows.len() >= 2, "markers of {} are missing", log.id);
    rows.remove(0);
    rows.pop();
    rows
}

/// Whether a row is not of a call but of an operation of io_uring or AIO.
fn is_operation(name: &str) -> bool {
    name.starts_with("IORING_OP_") || name.starts_with("IOCB_CMD_")
}

/// The calls of a log without those that the loaded programs do not record: for kernels before
/// 5.17 they do not record operations.
pub fn recordable<'a>(recording: &Recording, log: &'a Log) -> impl Iterator<Item = &'a Call> {
    let operations = !has_hook(recording, "programs for Linux 5.8 and newer");
    let calls = log.calls.iter();
    calls.filter(move |c| operations || !is_operation(&c.syscall))
}

/// Whether a place was hooked, or programs loaded, by the session's own list.
pub fn has_hook(recording: &Recording, name: &str) -> bool {
    let meta = crate::session::meta(&recording.session);
    let hooks = meta["hooks"].as_array().expect("hooks");
    hooks
        .iter()
        .any(|hook| hook["name"] == name && hook["attached"] == true)
}

fn compare_log(recording: &Recording, log: &Log, selection: Selection, wrong: &mut Vec<String>) {
    let rows = rows_of(recording, log);
    // Without it (before 6.6) the end of direct I/O of AIO is when it was reaped.
    let exact_ends = has_hook(recording, "tp_btf/iomap_dio_complete");
    let calls: Vec<&Call> = recordable(recording, log)
        .filter(|c| c.storage || selection == Selection::All)
        .collect();
    for (i, call) in calls.iter().enumerate() {
        let Some(row) = rows.get(i) else {
            wrong.push(format!(
                "{}: call {i} and later have no row: {call:?}",
                log.id
            ));
            return;
        };
        if row.text("syscall") != Some(&call.syscall) {
            wrong.push(format!("{}: call {i} is {call:?}, its row {row:?}", log.id));
            return;
        }
        let mut faults = Vec::new();
        let mut call = (*call).clone();
        if !exact_ends && call.syscall.starts_with("IOCB_CMD_") {
            let flags = call.texts.iter_mut().find(|(name, _)| *name == "op_flags");
            if let Some((_, text)) = flags.filter(|(_, text)| text == b"0") {
                *text = b"END_APPROXIMATE".to_vec();
            }
        }
        compare_call(&call, row, &mut faults);
        if row.int("pid") != Some(log.pid) {
            faults.push(format!("pid is not {}", log.pid));
        }
        if !faults.is_empty() {
            let faults = faults.join(", ");
            wrong.push(format!(
                "{}: call {i} {}: {faults}: {row:?}",
                log.id, call.syscall
            ));
        }
    }
    if let Some(row) = rows.get(calls.len()) {
        wrong.push(format!("{}: a row too many: {row:?}", log.id));
    }
}

/// Whether a row's return value stands for what the program got: a call that a
/// signal interrupted leaves the kernel with a code for its restart, which the
/// program sees as EINTR.
pub fn same_return(program: i64, row: Option<i64>) -> bool {
    row == Some(program) || (program == -4 && matches!(row, Some(-512 | -513 | -514 | -516)))
}

fn compare_call(call: &Call, row: &Row, faults: &mut Vec<String>) {
    fn check<T: PartialEq + Debug>(faults: &mut Vec<String>, column: &str, want: T, got: T) {
        if want != got {
            faults.push(format!("{column} is {got:?}, not {want:?}"));
        }
    }
    let known = known(&call.syscall);
    if !same_return(call.ret, row.int("ret")) {
        check(faults, "ret", Some(call.ret), row.int("ret"));
    }
    check(faults, "class", Some(known.class.name()), row.text("class"));
    let ret = row.int("ret").unwrap_or(call.ret);
    let error = errno::of_return(ret).and_then(errno::name);
    check(faults, "errno", error, row.text("errno"));
    if known.returns == Returns::Bytes && ret >= 0 {
        check(faults, "bytes", Some(ret), row.int("bytes"));
    }
    for (column, expected) in &call.numbers {
        match expected {
            Expected::Anything => {}
            Expected::Null => check(faults, column, None, row.int(column)),
            Expected::Is(value) => check(faults, column, Some(*value), row.int(column)),
        }
    }
    for (column, bytes) in &call.texts {
        check(
            faults,
            column,
            Some(as_text(bytes).as_str()),
            row.text(column),
        );
    }
}

/// The call of that name in the table of calls.
pub fn known(name: &str) -> &'static Syscall {
    let index = Syscall::index_of(name).unwrap_or_else(|| panic!("{name} is not recorded"));
    &SYSCALLS[index]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_read() {
        let log = parse(
            "{\"id\":\"7-8-0\",\"pid\":7,\"tid\":8}\n\
             {\"syscall\":\"read\",\"ret\":-9,\"fd\":3,\"ino\":null,\"path\":\"2f61ff\"}\n",
        )
        .unwrap();
        assert_eq!((log.pid, log.tid, log.calls.len()), (7, 8, 1));
        let call = &log.calls[0];
        assert_eq!(call.ret, -9);
        assert!(call.numbers.contains(&("fd", Expected::Is(3))));
        assert!(call.numbers.contains(&("ino", Expected::Null)));
        assert!(call.numbers.contains(&("size", Expected::Anything)));
        assert_eq!(call.texts, vec![("path", b"/a\xff".to_vec())]);
        assert!(parse("").is_err());
        assert!(parse("{\"id\":\"1\",\"pid\":1,\"tid\":1}\n{\"ret\":1}").is_err());
    }

    #[test]
    fn bytes_that_are_not_utf8_are_escaped() {
        assert_eq!(as_text(b"a\xff\xc3\xa9\x80"), "a\\xff\u{e9}\\x80");
    }

    #[test]
    fn an_interrupted_call_is_the_same() {
        assert!(same_return(-4, Some(-512)));
        assert!(!same_return(-5, Some(-512)));
        assert!(!same_return(0, None));
    }
}
