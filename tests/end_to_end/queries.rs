//! Queries that somebody stops.

use std::process::{Command, Stdio};
use std::time::Duration;

use fathom_tests::environment::fathom;
use fathom_tests::{Record, Scratch, need_root};
use rustix::process::{Pid, Signal, kill_process};

#[test]
fn a_signal_stops_a_query_and_gives_its_status() {
    need_root!();
    let scratch = Scratch::new();
    let recording = Record::new(&scratch)
        .command(["ls", "-lR", "/etc"])
        .run()
        .must_exit(0);
    // Nobody lives to see the end of it.
    let sql = "SELECT count(*) FROM syscalls a, syscalls b, syscalls c, syscalls d, syscalls e \
               WHERE a.dur_ns + b.dur_ns + c.dur_ns + d.dur_ns + e.dur_ns = 1";
    for (signal, status) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let child = Command::new(fathom())
            .arg("query")
            .arg(&recording.session)
            .arg(sql)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Before the signals are held back it would die of the signal itself, which
        // is no exit status.
        let blocked = format!("/proc/{}/status", child.id());
        loop {
            let text = std::fs::read_to_string(&blocked).unwrap();
            let mask = text.lines().find_map(|l| l.strip_prefix("SigBlk:"));
            let mask = u64::from_str_radix(mask.unwrap().trim(), 16).unwrap();
            if mask & 1 << (signal.as_raw() - 1) != 0 {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        kill_process(Pid::from_child(&child), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{errors}");
        assert!(output.stdout.is_empty());
    }
}
