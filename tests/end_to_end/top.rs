//! `fathom top` against programs with known I/O.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use fathom_tests::environment::fathom;
use fathom_tests::{Scratch, need_program, need_root};
use serde_json::Value;

/// A shell that becomes `dd` when it is told to.
fn waiting_dd(scratch: &Scratch, count: u32) -> Child {
    let file = scratch.work().join("<b>\x1b[31mred");
    Command::new("sh")
        .arg("-c")
        .arg("read go; exec dd if=/dev/zero of=\"$0\" bs=4096 count=\"$1\" status=none")
        .arg(file)
        .arg(count.to_string())
        .stdin(Stdio::piped())
        .spawn()
        .unwrap()
}

fn sum(frame: &Value, dimension: &str, field: &str) -> u64 {
    let lines = frame["lines"][dimension].as_array().unwrap();
    lines
        .iter()
        .map(|line| line["total"][field].as_u64().unwrap())
        .sum()
}

/// Every dimension of the last frame adds up to what dd did; nothing is missing
/// between the frames.
#[test]
fn frames_are_exact() {
    need_root!();
    need_program!("dd");
    const BLOCKS: u32 = 5000;
    let scratch = Scratch::new();
    let mut dd = waiting_dd(&scratch, BLOCKS);
    let mut top = Command::new(fathom())
        .args(["top", "--format", "json", "--interval", "0.1", "-p"])
        .arg(dd.id().to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(top.stdout.take().unwrap()).lines();
    // It looks as soon as it shows something.
    let first: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    dd.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let mut frames = vec![first];
    frames.extend(lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap()));
    assert!(dd.wait().unwrap().success());
    assert!(top.wait().unwrap().success());

    let last = frames.last().unwrap();
    let health = |name: &str| last["health"][name].as_u64().unwrap();
    assert_eq!(health("seen"), health("shown") + health("lost"));
    assert_eq!(health("lost"), 0, "rings of this size hold so few");
    for field in ["calls", "errors", "read_bytes", "written_bytes", "time_ns"] {
        let total = last["total"][field].as_u64().unwrap();
        for dimension in ["processes", "threads", "calls"] {
            assert_eq!(sum(last, dimension, field), total, "{dimension} {field}");
        }
        let intervals: u64 = frames
            .iter()
            .map(|frame| frame["now"][field].as_u64().unwrap())
            .sum();
        assert_eq!(intervals, total, "{field}");
    }
    let file = last["lines"]["files"]
        .as_array()
        .unwrap()
        .iter()
        .find(|line| line["name"].as_str().unwrap().ends_with("<b>\\x1b[31mred"))
        .unwrap();
    assert_eq!(file["total"]["written_bytes"], u64::from(BLOCKS) * 4096);
    let calls = last["lines"]["calls"].as_array().unwrap();
    let write = calls.iter().find(|line| line["name"] == "write").unwrap();
    assert_eq!(write["total"]["calls"], BLOCKS);
    let process = &last["lines"]["processes"][0];
    assert_eq!(process["name"], "dd");
    // Layers share out the time of calls and of page faults.
    let layers = sum(last, "layers", "time_ns");
    assert!(layers >= last["total"]["time_ns"].as_u64().unwrap());
}

/// On a terminal: draws, takes a key, and leaves the terminal as it was.
#[test]
fn a_terminal_is_left_as_it_was() {
    need_root!();
    need_program!("script");
    let command = format!(
        "stty rows 24 cols 100; exec {} top --interval 0.2",
        fathom().display()
    );
    let mut script = Command::new("script")
        .args(["-qec", &command, "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = BufReader::new(script.stdout.take().unwrap());
    let mut seen = Vec::new();
    // Until the second frame has been drawn.
    while !String::from_utf8_lossy(&seen).contains("seen") {
        let more = output.fill_buf().unwrap();
        assert!(!more.is_empty(), "{}", String::from_utf8_lossy(&seen));
        let length = more.len();
        seen.extend_from_slice(more);
        output.consume(length);
    }
    let mut stdin = script.stdin.take().unwrap();
    stdin.write_all(b"q").unwrap();
    std::io::Read::read_to_end(&mut output, &mut seen).unwrap();
    assert!(script.wait().unwrap().success());
    let text = String::from_utf8_lossy(&seen);
    let (entered, left) = (text.find("\x1b[?1049h"), text.rfind("\x1b[?1049l"));
    assert!(entered.is_some() && entered < left, "{text:?}");
}

/// What cannot be meant is said.
#[test]
fn bad_options() {
    for (options, word) in [
        (["top", "--sort", "size"], "--sort"),
        (["top", "--interval", "0"], "--interval"),
        (["top", "--syscalls", "nosuch"], "nosuch"),
        (["top", "--layers", "nosuch"], "nosuch"),
    ] {
        let output = Command::new(fathom()).args(options).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{options:?}");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(text.contains(word), "{text}");
    }
}
