//! Bytes of pipes and sockets: where they are in their stream, and table `flows`.

use std::fs;

use fathom_tests::session::Row;
use fathom_tests::{Record, Recording, Scratch, need_root, workload};

use crate::kernel::skips_for_oldest_programs;

const TOTAL: i64 = 300_007;

fn record(options: &[&str]) -> (Scratch, Recording) {
    let scratch = Scratch::new();
    let recording = Record::new(&scratch)
        .options(options)
        .command([workload("streams").as_os_str(), scratch.work().as_os_str()])
        .run()
        .must_exit(0);
    recording.complete();
    (scratch, recording)
}

/// `name offset bytes` of each call that moved bytes, as the program logged it.
fn logged(scratch: &Scratch, stream: &str, end: &str) -> Vec<String> {
    let log = fs::read_to_string(scratch.work().join(format!("{stream}-{end}"))).unwrap();
    log.lines().map(str::to_owned).collect()
}

/// The same of the rows of one file, by calls whose names begin with these.
fn recorded(recording: &Recording, file: i64, names: [&str; 2]) -> Vec<String> {
    let begins = names
        .map(|name| format!("syscall LIKE '{name}%'"))
        .join(" OR ");
    let rows = recording.rows(&format!(
        "SELECT syscall, file_offset, bytes FROM syscalls
         WHERE file_id = {file} AND bytes > 0 AND ({begins}) ORDER BY ts_ns"
    ));
    let line = |row: &Row| {
        let offset = row
            .int("file_offset")
            .map_or("null".into(), |n| n.to_string());
        let bytes = row.int("bytes").unwrap();
        format!("{} {offset} {bytes}", row.text("syscall").unwrap())
    };
    rows.iter().map(line).collect()
}

/// The flow of a protocol that has sent bytes, and the one that has received some.
fn ends(recording: &Recording, protocol: &str) -> [Row; 2] {
    ["sent", "received"].map(|way| {
        let mut rows = recording.rows(&format!(
            "SELECT * FROM flows WHERE protocol = '{protocol}' AND bytes_{way} > 0"
        ));
        // Descriptors of the C library are not in question.
        rows.retain(|row| row.int("opened_at_ns").is_some());
        assert_eq!(rows.len(), 1, "{protocol}: {rows:?}");
        rows.remove(0)
    })
}

#[test]
fn positions_are_the_ones_that_the_program_counted() {
    need_root!();
    // They count no bytes.
    if skips_for_oldest_programs() {
        return;
    }
    let (scratch, recording) = record(&["--syscalls", "storage,socket"]);
    for protocol in ["pipe", "unix", "tcp"] {
        let [sent, received] = ends(&recording, protocol);
        let (from, to) = (
            sent.int("file_id").unwrap(),
            received.int("file_id").unwrap(),
        );
        let sends = recorded(&recording, from, ["write", "send"]);
        assert_eq!(sends, logged(&scratch, protocol, "sent"), "{protocol}");
        let receives = recorded(&recording, to, ["read", "recv"]);
        assert_eq!(
            receives,
            logged(&scratch, protocol, "received"),
            "{protocol}"
        );
        assert_eq!(sent.int("bytes_sent"), Some(TOTAL), "{protocol}");
        assert_eq!(sent.int("peer_file_id"), Some(to), "{protocol}");
        assert_eq!(received.int("peer_file_id"), Some(from), "{protocol}");
        // The end of the consumer closes its end of the pipe, which is the same file.
        if protocol != "pipe" {
            assert!(sent.int("closed_at_ns") > sent.int("opened_at_ns"));
        }
        assert_eq!(sent.int("net_ns").is_none(), protocol == "pipe");
        let retransmits = (protocol == "tcp").then_some(0);
        assert_eq!(sent.int("retransmits"), retransmits, "{protocol}");
        let [local, remote] = ["local_port", "remote_port"].map(|port| sent.int(port));
        if protocol == "tcp" {
            assert_eq!(sent.text("remote_address"), Some("127.0.0.1"));
            assert!(local > Some(0) && remote > Some(0) && local != remote);
            assert_eq!(received.int("local_port"), remote);
            assert_eq!(received.int("remote_port"), local);
        }
    }
}

/// Calls that are left out would be missing in the sums.
#[test]
fn no_position_is_told_where_calls_are_left_out() {
    need_root!();
    for options in [
        &["--syscalls", "socket,read,readv,write"][..],
        &["--syscalls", "storage,socket", "--min-duration", "1ns"],
    ] {
        let (_scratch, recording) = record(options);
        let rows = recording.rows(
            "SELECT * FROM syscalls JOIN files USING (file_id)
             WHERE file_type IN ('socket', 'fifo') AND file_offset IS NOT NULL",
        );
        assert!(rows.is_empty(), "{options:?}: {:?}", rows[0]);
    }
}
