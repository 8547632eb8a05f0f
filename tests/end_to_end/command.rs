//! What a traced command must not notice: standard streams, terminal, exit
//! status, signals; and what keeps a recording from starting.

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use fathom_tests::environment::fathom;
use fathom_tests::session::meta;
use fathom_tests::{Record, Running, Scratch, need_program, need_root, workload};
use rustix::process::Signal;

fn exit_status(command: &[&str]) -> Option<i32> {
    let scratch = Scratch::new();
    let recording = Record::new(&scratch).command(command).run();
    if recording.session.exists() {
        assert_eq!(meta(&recording.session)["state"], "complete");
    }
    recording.status.code()
}

#[test]
fn the_exit_status_is_the_commands() {
    need_root!();
    assert_eq!(exit_status(&["true"]), Some(0));
    assert_eq!(exit_status(&["sh", "-c", "exit 7"]), Some(7));
    assert_eq!(exit_status(&["sh", "-c", "exit 255"]), Some(255));
    assert_eq!(exit_status(&["sh", "-c", "kill -TERM $$"]), Some(128 + 15));
    assert_eq!(exit_status(&["sh", "-c", "kill -KILL $$"]), Some(128 + 9));
}

#[test]
fn a_command_that_cannot_run() {
    need_root!();
    let scratch = Scratch::new();
    let missing = Record::new(&scratch)
        .command(["no-such-program-anywhere"])
        .run()
        .must_exit(127);
    assert!(
        missing.stderr.contains("no-such-program-anywhere"),
        "{}",
        missing.stderr
    );
    let plain = scratch.work().join("plain");
    fs::write(&plain, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&plain, Permissions::from_mode(0o644)).unwrap();
    let refused = Record::named(&scratch, "refused")
        .command([&plain])
        .run()
        .must_exit(126);
    assert!(refused.stderr.contains("plain"), "{}", refused.stderr);
}

fn pipe_through(mut command: Command, input: &[u8]) -> Vec<u8> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || {
        // A program that ends early closes the pipe: the output tells.
        let _ = stdin.write_all(&input);
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output.stdout
}

#[test]
fn standard_input_and_output_pass_through() {
    need_root!();
    let scratch = Scratch::new();
    let input: Vec<u8> = (0..3_000_001u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let mut command = Command::new(fathom());
    command
        .args(["record", "-o"])
        .arg(scratch.session("session"))
        .args(["--", "cat"]);
    assert!(
        pipe_through(command, &input) == input,
        "cat did not give back its input"
    );
}

/// Runs `line` on a terminal of its own, in place of the shell: one that stayed
/// would answer the terminal's interrupt too, with an exit status of its own.
fn on_a_terminal(line: &str) -> Command {
    let mut command = Command::new("script");
    command
        .args(["-qec", &format!("exec {line}"), "/dev/null"])
        .env("SHELL", "/bin/sh");
    command
}

fn quoted(path: &Path) -> String {
    format!("'{}'", path.display())
}

#[test]
fn the_command_keeps_the_terminal() {
    need_root!();
    need_program!("script");
    let scratch = Scratch::new();
    let line = format!(
        "{} record -o {} -- sh -c 'test -t 0 && test -t 1 && test -t 2 && echo is-a-terminal'",
        quoted(&fathom()),
        quoted(&scratch.session("session"))
    );
    let output = on_a_terminal(&line).stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("is-a-terminal"), "{text}");
    assert!(output.status.success(), "{text}");
}

fn count_signals(scratch: &Scratch) -> Running {
    let mut running = Record::new(scratch)
        .command([
            workload("waits").as_os_str(),
            "count".as_ref(),
            scratch.work().as_os_str(),
        ])
        .interactive()
        .spawn();
    assert!(running.line().starts_with("ready"));
    running
}

#[test]
fn a_signal_to_the_recorder_reaches_the_command_once() {
    need_root!();
    for (signal, counts) in [(Signal::TERM, "0 1"), (Signal::INT, "1 0")] {
        let scratch = Scratch::new();
        let mut running = count_signals(&scratch);
        running.signal(signal);
        // The command prints each signal that it gets, so that the end of its
        // input does not overtake the signal.
        assert_eq!(running.line(), "signal", "{signal:?}");
        running.say("\n");
        assert_eq!(running.line(), counts, "{signal:?}");
        running.wait().must_exit(0).complete();
    }
}

#[test]
fn a_signal_that_ends_the_command_ends_the_recording() {
    need_root!();
    let scratch = Scratch::new();
    let mut running = Record::new(&scratch)
        .command(["sh", "-c", "echo ready; exec sleep 1000"])
        .interactive()
        .spawn();
    running.line();
    running.signal(Signal::TERM);
    running.wait().must_exit(128 + 15).complete();
}

/// The terminal's interrupt goes to its foreground processes: to the command,
/// once, and not to the recording's end.
#[test]
fn an_interrupt_from_the_terminal_is_the_commands() {
    need_root!();
    need_program!("script");
    let scratch = Scratch::new();
    let line = format!(
        "{} record -o {} -- {} count {}",
        quoted(&fathom()),
        quoted(&scratch.session("session")),
        quoted(&workload("waits")),
        quoted(&scratch.work())
    );
    let mut child = on_a_terminal(&line)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut output = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut seen = String::new();
    while !seen.contains("ready") {
        let read = std::io::BufRead::read_line(&mut output, &mut seen).unwrap();
        assert!(read > 0, "{seen}");
    }
    stdin.write_all(b"\x03").unwrap();
    while !seen.contains("signal") {
        let read = std::io::BufRead::read_line(&mut output, &mut seen).unwrap();
        assert!(read > 0, "{seen}");
    }
    stdin.write_all(b"\n").unwrap();
    drop(stdin);
    std::io::Read::read_to_string(&mut output, &mut seen).unwrap();
    assert!(child.wait().unwrap().success(), "{seen}");
    assert!(seen.contains("1 0"), "{seen}");
    assert_eq!(meta(&scratch.session("session"))["state"], "complete");
}

#[test]
fn the_command_runs_as_another_user() {
    need_root!();
    let scratch = Scratch::new();
    let recording = Record::new(&scratch)
        .options(["--user", "nobody"])
        .command(["sh", "-c", "id -u; id -g; id -G"])
        .run()
        .must_exit(0);
    let text = recording.text();
    let nobody = fathom_tests::environment::must_run("id", ["-u", "nobody"]);
    let nobody = String::from_utf8(nobody).unwrap();
    assert_eq!(
        text.lines().next(),
        Some(nobody.trim()),
        "{text}{}",
        recording.stderr
    );
    let group =
        String::from_utf8(fathom_tests::environment::must_run("id", ["-g", "nobody"])).unwrap();
    assert_eq!(text.lines().nth(1), Some(group.trim()), "{text}");
    recording.complete();
    let others = format!("SELECT count(*) FROM processes WHERE comm = 'id' AND uid <> {nobody}");
    assert_eq!(recording.number(&others), 0);
    assert!(recording.number("SELECT count(*) FROM processes WHERE comm = 'id'") >= 3);
}

#[test]
fn an_unknown_user_is_refused() {
    need_root!();
    let scratch = Scratch::new();
    let touched = scratch.work().join("touched");
    let recording = Record::new(&scratch)
        .options(["--user", "no-such-user-here"])
        .command(["touch".as_ref(), touched.as_os_str()])
        .run()
        .must_exit(2);
    assert!(
        recording.stderr.contains("no-such-user-here"),
        "{}",
        recording.stderr
    );
    assert!(!touched.exists());
}

#[test]
fn an_output_that_exists_is_kept_unless_forced() {
    need_root!();
    let scratch = Scratch::new();
    Record::new(&scratch).command(["true"]).run().must_exit(0);
    let before = meta(&scratch.session("session"))["id"].clone();
    let touched = scratch.work().join("touched");
    let refused = Record::new(&scratch)
        .command(["touch".as_ref(), touched.as_os_str()])
        .run()
        .must_exit(125);
    assert!(refused.stderr.contains("--force"), "{}", refused.stderr);
    assert!(
        !touched.exists(),
        "the command ran although there was no recording"
    );
    assert_eq!(meta(&scratch.session("session"))["id"], before);
    let forced = Record::new(&scratch)
        .options(["--force"])
        .command(["touch".as_ref(), touched.as_os_str()])
        .run()
        .must_exit(0);
    assert!(touched.exists());
    assert_ne!(meta(&forced.session)["id"], before);
    forced.complete();
}

#[test]
fn force_does_not_remove_what_is_no_session() {
    need_root!();
    let scratch = Scratch::new();
    let session = scratch.session("session");
    fs::create_dir(&session).unwrap();
    let precious = session.join("precious");
    fs::write(&precious, "data").unwrap();
    Record::new(&scratch)
        .options(["--force"])
        .command(["true"])
        .run()
        .must_exit(125);
    assert_eq!(fs::read(&precious).unwrap(), b"data");
}

#[test]
fn an_output_that_cannot_be_written() {
    need_root!();
    let scratch = Scratch::new();
    let touched = scratch.work().join("touched");
    let output = Command::new(fathom())
        .args(["record", "-o", "/proc/no-place/for-a.fathom", "--", "touch"])
        .arg(&touched)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{errors}");
    assert!(errors.contains("/proc/no-place"), "{errors}");
    assert!(
        !touched.exists(),
        "the command ran although there was no recording"
    );
}

#[test]
fn unread_messages_end_no_recording() {
    need_root!();
    let scratch = Scratch::new();
    let session = scratch.session("unread");
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    // It warns that no program publishes its spans.
    let status = Command::new(fathom())
        .args(["record", "--otel-context", "-o"])
        .arg(&session)
        .args(["--", "true"])
        .stderr(writer)
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(0));
    assert_eq!(meta(&session)["state"], "complete");
}

/// A capture is replaced only if that was asked for, and nothing else ever is.
#[test]
fn force_replaces_a_capture() {
    need_root!();
    let scratch = Scratch::new();
    let capture = scratch.root().join("capture.raw");
    let record = |name: &str, options: &[&str]| {
        Record::named(&scratch, name)
            .options(options)
            .options([Path::new("--raw"), &capture])
            .command(["true"])
            .run()
    };
    record("first", &[]).must_exit(0);
    let first = fs::read(&capture).unwrap();
    record("second", &[]).must_exit(125);
    assert_eq!(fs::read(&capture).unwrap(), first);
    record("third", &["--force"]).must_exit(0);
    assert_ne!(fs::read(&capture).unwrap(), first);

    fs::write(&capture, "a text").unwrap();
    record("fourth", &["--force"]).must_exit(125);
    assert_eq!(fs::read(&capture).unwrap(), b"a text");
}
