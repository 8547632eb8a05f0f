//! Conditions on rows whose answer is known.
#![allow(clippy::unwrap_used)]

use super::*;
use fathom_model::batch::{NULL_I32, NULL_I64};
use fathom_model::tables::{FILE_PATHS, SYSCALLS, SyscallRows};
use fathom_model::{StrId, StringTable};

/// Row 0 is a slow write, row 1 a failed open without descriptor, size and bytes.
fn batch() -> Batch {
    let mut strings = StringTable::new();
    let mut rows = SyscallRows::default();
    for (name, class, dur, ret, errno, path) in [
        (
            "write",
            "data",
            60_000_000,
            100,
            "",
            "/var/lib/a_b/gr\u{fc}n",
        ),
        ("openat", "metadata", 900, -2, "ENOENT", ""),
    ] {
        let mut text = |s: &str| match s {
            "" => StrId::NULL,
            s => strings.intern(s.as_bytes()),
        };
        let moved = |n: i64| if ret < 0 { NULL_I64 } else { n };
        rows.rid.push(1);
        rows.ts_ns.push(5);
        rows.dur_ns.push(dur);
        rows.pid.push(10);
        rows.tid.push(11);
        rows.comm.push(text("it's"));
        rows.cpu.push(0);
        rows.syscall.push(text(name));
        rows.class.push(text(class));
        rows.ret.push(ret);
        rows.errno.push(text(errno));
        rows.fd.push(if ret < 0 { NULL_I32 } else { 3 });
        rows.file_id.push(NULL_I64);
        rows.file_offset.push(moved(0));
        rows.size.push(moved(4096));
        rows.bytes.push(moved(100));
        rows.flags.push(StrId::NULL);
        rows.path_arg.push(StrId::NULL);
        rows.path_arg2.push(StrId::NULL);
        rows.path.push(text(path));
        rows.path2.push(StrId::NULL);
        rows.hash.push(NULL_I64);
        rows.args.push(StrId::NULL);
        rows.api.push(text("syscall"));
        rows.op_flags.push(StrId::NULL);
        rows.user_data.push(NULL_I64);
        rows.content_bytes.push(NULL_I64);
        rows.content.push(StrId::NULL);
    }
    rows.into_batch(strings)
}

/// The value of the condition for both rows: t, f, or - for neither.
///
fn says(text: &str) -> String {
    let condition = Condition::parse(text, &SYSCALLS).unwrap();
    let batch = batch();
    let word = |row| match evaluate::node(&condition.root, &batch, row) {
        Some(true) => 't',
        Some(false) => 'f',
        None => '-',
    };
    (0..2).map(word).collect()
}

#[test]
fn conditions() {
    for (text, expected) in [
        ("dur_ns > 50e6 and class = 'data'", "tf"),
        ("dur_ns > 50000000", "tf"),
        ("DUR_NS >= 60_000_000", "tf"),
        ("dur_ns < 900.5", "ft"),
        ("dur_ns = 900", "ft"),
        ("dur_ns <> 900", "tf"),
        ("dur_ns != 900", "tf"),
        ("50e6 < dur_ns", "tf"),
        ("ret = -2", "ft"),
        ("ret between -5 and 0", "ft"),
        ("ret not between -5 and 0", "tf"),
        ("bytes < size", "t-"),
        ("errno = 'ENOENT'", "-t"),
        ("not errno = 'ENOENT'", "-f"),
        ("errno is null", "tf"),
        ("errno is not null", "ft"),
        ("fd = 3", "t-"),
        ("fd is null or fd = 4", "ft"),
        ("fd = 4 or fd = null", "--"),
        ("fd = 3 or fd = null", "t-"),
        ("fd = 4 and fd = null", "f-"),
        ("syscall in ('read', 'write')", "tf"),
        ("syscall not in ('read', 'write')", "ft"),
        ("fd in (3, null)", "t-"),
        ("fd in (4, null)", "--"),
        ("fd not in (4, null)", "--"),
        ("comm = 'it''s'", "tt"),
        ("file_offset = 0", "t-"),
        ("path like '/var/%'", "t-"),
        ("path like '%/gr_n'", "t-"),
        ("path like '%a\\_b%'", "f-"),
        ("path like '%lib%gr%n%'", "t-"),
        ("path like 'var'", "f-"),
        ("path not like '%x%'", "t-"),
        ("syscall like 'w____'", "tf"),
        ("syscall > 'p'", "tf"),
        ("class = 'data' or class = 'metadata' and ret = 0", "tf"),
        ("(class = 'data' or class = 'metadata') and ret = -2", "ft"),
        ("not (class = 'data')", "ft"),
        ("not not class = 'data'", "tf"),
    ] {
        assert_eq!(says(text), expected, "{text}");
    }
}

#[test]
fn the_first_row_counts() {
    let first = |text: &str| Condition::parse(text, &SYSCALLS).unwrap().first(&batch());
    assert_eq!(first("dur_ns > 0"), Some(0));
    assert_eq!(first("dur_ns < 1000"), Some(1));
    assert_eq!(first("dur_ns < 0"), None);
    let other = Condition::parse("ts_ns >= 0", &FILE_PATHS).unwrap();
    assert_eq!(other.first(&batch()), None);
}

#[test]
fn what_is_no_condition_says_why() {
    for (text, reason) in [
        (
            "",
            "at character 1: expected a column, a number or 'text', found the end",
        ),
        ("dur_ns", "at character 7: expected a comparison"),
        ("dur_ns >", "at character 9: expected a column"),
        (
            "dur_ns > 5 5",
            "at character 12: expected AND, OR or the end, found 5",
        ),
        (
            "duration > 5",
            "at character 1: syscalls has no column 'duration'; it has rid,",
        ),
        (
            "dur_ns > 'x'",
            "at character 10: text cannot be compared with a number",
        ),
        (
            "syscall = 5",
            "at character 11: a number cannot be compared with text",
        ),
        (
            "syscall = \"write\"",
            "at character 11: syscalls has no column 'write'",
        ),
        ("syscall = 'write", "at character 11: no ' ends this"),
        ("(ret = 0", "at character 9: expected ')', found the end"),
        (
            "ret = 0)",
            "at character 8: expected AND, OR or the end, found ')'",
        ),
        ("ret in 0", "at character 8: expected '(', found 0"),
        (
            "ret not 0",
            "at character 9: expected IN, LIKE or BETWEEN after NOT",
        ),
        ("ret is 0", "at character 8: expected NULL"),
        ("ret like '1'", "expected a column of text before LIKE"),
        ("ret = 5ms", "at character 7: 5ms is no number"),
        ("ret = 1e999", "1e999 is no number"),
        ("ret + 1 = 0", "at character 5: '+' has no meaning here"),
        ("ret; drop", "at character 4: ';' has no meaning here"),
        ("content = 'x'", "column content cannot be compared"),
        ("ret = -ret", "at character 8: expected a number after '-'"),
    ] {
        let error = Condition::parse(text, &SYSCALLS).unwrap_err().to_string();
        assert!(error.contains(reason), "{text}: {error}");
    }
    let deep = format!("{}ret = 0{}", "(".repeat(5000), ")".repeat(5000));
    assert!(Condition::parse(&deep, &SYSCALLS).is_err());
    let long = "ret = 0 or ".repeat(10_000) + "ret = 0";
    assert!(Condition::parse(&long, &SYSCALLS).is_err());
}

/// Whatever comes is understood or refused.
#[test]
fn no_text_is_too_strange() {
    let pieces = [
        "ret", "(", ")", "and", "or", "not", "in", "like", "'a%'", "'", "\"", "=", "<>", "-", "5",
        "1e", ".", "..", "null", "is", "between", ",", "\u{fc}", "\u{0}", "e+5", "_",
    ];
    let mut seed = 7u64;
    for _ in 0..20_000 {
        let mut text = String::new();
        for _ in 0..8 {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1);
            text.push_str(pieces[(seed >> 33) as usize % pieces.len()]);
            text.push(' ');
        }
        if let Ok(condition) = Condition::parse(&text, &SYSCALLS) {
            condition.first(&batch());
        }
    }
}

#[test]
fn saves_have_pauses_and_an_end() {
    let pause = Duration::from_millis(50);
    let mut trigger = Trigger::new(&SaveWhen {
        condition: "syscall = 'write'".into(),
        max_saves: 2,
        pause,
    })
    .unwrap();
    let mut wants = || {
        trigger.look(&batch());
        (trigger.take().is_some(), trigger.take().is_some())
    };
    assert_eq!(wants(), (true, false));
    assert_eq!(wants(), (false, false));
    std::thread::sleep(pause);
    assert_eq!(wants(), (true, false));
    std::thread::sleep(pause);
    assert_eq!(wants(), (false, false));
}
