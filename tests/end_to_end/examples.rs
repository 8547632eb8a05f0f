//! The examples, in their short form.

use std::collections::BTreeMap;
use std::process::Command;

use fathom_tests::environment::fathom;
use fathom_tests::{need_program, need_root, tools};

/// What an example prints, by heading; empty before the first.
fn run(name: &str) -> BTreeMap<String, Vec<String>> {
    let output = Command::new(tools::project().join("examples").join(name).join("run.sh"))
        .arg("--quick")
        .env("FATHOM", fathom())
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8(output.stdout).unwrap();
    let mut sections: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut heading = String::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        if let Some(title) = line.strip_prefix("## ") {
            heading = title.to_string();
        } else {
            sections
                .entry(heading.clone())
                .or_default()
                .push(line.to_string());
        }
    }
    sections
}

/// The words of the line below the one that begins with `title` and its rule.
fn below<'a>(lines: &'a [String], title: &str) -> Vec<&'a str> {
    let place = lines
        .iter()
        .position(|line| line.starts_with(title))
        .unwrap_or_else(|| panic!("no {title} in {lines:?}"));
    lines[place + 2].split_whitespace().collect()
}

fn assert_balance(words: &[&str]) {
    let [seen, stored, lost] = words else {
        panic!("{words:?}");
    };
    let number = |word: &str| word.parse::<u64>().unwrap();
    assert_eq!(number(seen), number(stored) + number(lost));
}

#[test]
fn request_breakdown() {
    need_root!();
    need_program!("fio");
    let sections = run("request-breakdown");
    let cached = &sections["Cached sequential reads"];
    assert_balance(&below(cached, "seen"));
    let reads = below(cached, "reads");
    assert_eq!((reads[0], reads[4]), ("300", "0"), "fio reads 300 times");
    let random = &sections["Random reads, mostly from the device"];
    let bars = random
        .iter()
        .skip_while(|line| !line.starts_with("request "))
        .skip(2)
        .take_while(|line| !line.starts_with("s: "))
        .count();
    assert!((13..=25).contains(&bars), "{random:?}");
    let threads = sections
        .iter()
        .find(|(title, _)| title.starts_with("Four threads"))
        .unwrap()
        .1;
    let by_thread: Vec<Vec<&str>> = threads
        .iter()
        .skip_while(|line| !line.trim_start().starts_with("tid"))
        .skip(2)
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(by_thread.len(), 4, "{threads:?}");
    assert!(by_thread.iter().all(|words| words[1] == "300"));
}

#[test]
fn thread_contention() {
    need_root!();
    need_program!("fio");
    let sections = run("thread-contention");
    for (mode, writes) in [("buffered", ["256", "1024"]), ("direct", ["64", "256"])] {
        let lines = &sections[mode];
        for (line, writes) in lines[1..].iter().zip(writes) {
            let words: Vec<&str> = line.split_whitespace().collect();
            assert_eq!((words[2], words[3]), ("0", writes), "{mode} {lines:?}");
            let score: f64 = words[7].parse().unwrap();
            assert!((0.0..=1.0).contains(&score), "{lines:?}");
            if mode == "direct" {
                let requests: u64 = words[6].parse().unwrap();
                assert!(requests >= writes.parse().unwrap(), "{lines:?}");
            }
        }
    }
}

#[test]
fn slow_requests() {
    need_root!();
    need_program!("fio");
    let sections = run("slow-requests");
    assert_balance(&below(&sections[""], "seen"));
    let classes = sections["Requests by what served them"].join("\n");
    assert!(
        classes.contains("C1") && classes.contains("C2"),
        "{classes}"
    );
    let who = &sections["Who filled it"];
    let backup = who.iter().find(|line| line.starts_with("dd ")).unwrap();
    assert!(backup.contains("false"), "it is not recorded: {backup}");
}
