//! Logs that are damaged in every way: an import never panics, and each line is
//! a row, a call that fathom does not record, a note or a bad line.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs;

use fathom_import::{Format, ImportError, import};
use fathom_session::WriterOptions;
use proptest::prelude::*;

fn format(name: &str) -> Format {
    name.parse().unwrap()
}

/// Imports a text; none where it has no times.
fn imported(text: &[u8], format: Format) -> Option<fathom_import::Outcome> {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    fs::write(&log, text).unwrap();
    let session = dir.path().join("s.fathom");
    match import(
        &[log],
        Some(format),
        &session,
        WriterOptions::default(),
        &mut |_, _| {},
    ) {
        Ok(outcome) => Some(outcome),
        Err(ImportError::NoTimes(_) | ImportError::NotCtf { .. }) => None,
        Err(e) => panic!("{e}"),
    }
}

const LINES: [&str; 16] = [
    "7 1700000000.000001 openat(AT_FDCWD</>, \"/a\\n\", O_RDWR|O_APPEND|O_CREAT, 0644) = 3</a> <0.000002>",
    "7 1700000000.000002 read(3</a>, \"x\\\"\"..., 10) = 1 <0.000002>",
    "8 1700000000.000003 readv(3, [{iov_base=\"\", iov_len=4}, {iov_base=\"\"..., iov_len=5}], 2) = 9",
    "7 1700000000.000004 write(3</a>,  <unfinished ...>",
    "7 1700000000.000005 <... write resumed>\"\", 4) = 4 <0.000001>",
    "7 1700000000.000006 clone(child_stack=NULL, flags=CLONE_FILES|SIGCHLD) = 8",
    "7 1700000000.000007 splice(3, [1] => [2], 4, NULL, 10, SPLICE_F_MOVE) = 1",
    "7 1700000000.000008 copy_file_range(3</a>, NULL, 4</b<char 1:3>>, [7], 10, 0) = 10",
    "7 1700000000.000009 lseek(3</a>, -9223372036854775808, SEEK_END) = 9223372036854775807",
    "7 1700000000.000010 rename(\"/a\", \"/b\") = 0",
    "7 1700000000.000011 dup2(3</a>, 2147483647) = 2147483647",
    "7 1700000000.000012 +++ killed by SIGKILL +++",
    "7 1700000000.000013 execve(\"/bin/sh\", [\"sh\", \"-c\"...], 0x7ff /* 3 vars */) = 0",
    "7 1700000000.000014 close_range(0, 4294967295, CLOSE_RANGE_CLOEXEC) = 0",
    "7 1700000000.000015 fcntl(3, F_SETFL, O_RDONLY|O_APPEND) = 0x8000 (flags O_RDONLY)",
    "[pid 9<a b>] 12:00:00.000016 openat2(-100, \"x\", {flags=O_RDONLY, resolve=RESOLVE_BENEATH}, 24) = -1 ENOENT (No such file or directory)",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes(text in proptest::collection::vec(any::<u8>(), 0..400)) {
        for format in Format::ALL {
            imported(&text, *format);
        }
    }

    /// Real lines in any order, with a few bytes changed.
    #[test]
    fn lines_with_changed_bytes(
        order in proptest::collection::vec(0..LINES.len(), 1..40),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
    ) {
        let mut text = order.iter().map(|i| LINES[*i]).collect::<Vec<_>>().join("\n").into_bytes();
        let before = changes.is_empty();
        for (at, byte) in changes {
            let at = at.index(text.len());
            text[at] = byte;
        }
        if let Some(outcome) = imported(&text, format("strace")) {
            let source = &outcome.source;
            // A start without its end becomes an additional row.
            let most = source.lines + 1;
            prop_assert!(outcome.calls + source.other_calls + source.bad_lines <= most + source.lines);
            if before {
                let resumed = order.iter().filter(|i| LINES[**i].contains("resumed")).count() as u64;
                prop_assert!(source.bad_lines <= resumed, "{:?}", outcome.bad_examples);
            }
        }
    }

    #[test]
    fn documents_with_changed_bytes(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        array in any::<bool>(),
    ) {
        let event = r#"{"system_call_name":"read","call_timestamp":5,"execution_time":1,"pid":7,"tid":7,"return_value":-1,"error_message":"EBADF","cpu":1,"args":{"file_descriptor":3,"offset":4,"bytes_requested":9,"signature":"ff","captured_buffer":"a\\xff","captured_size":2},"file_tag":"1|2|3","fdata":{"file_path":"/a","file_type":"Regular file"}}"#;
        let path = r#"{"doc_type":"EventPath","file_path":"/a","file_type":"Regular file","file_tag":"1|2|3"}"#;
        let text = if array { format!("[{event},{path},{event}]") } else { format!("{event}\n{path}\n{event}\n") };
        let mut text = text.into_bytes();
        let whole = changes.is_empty();
        for (at, byte) in changes {
            let at = at.index(text.len());
            text[at] = byte;
        }
        let outcome = imported(&text, format("dio"));
        if whole {
            prop_assert_eq!(outcome.map(|o| (o.calls, o.source.bad_lines)), Some((2, 0)));
        }
    }
}
