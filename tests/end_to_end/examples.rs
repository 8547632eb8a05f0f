//! The examples, in their short form.

use std::collections::BTreeMap;
use std::process::Command;

use fathom_tests::environment::{RULES_OF_THE_MACHINE, fathom};
use fathom_tests::{need_program, need_root, tools};

/// What an example prints, by heading; empty before the first.
fn run(name: &str) -> BTreeMap<String, Vec<String>> {
    script(&format!("{name}/run.sh"))
}

/// The same of a script below `examples/`.
pub(crate) fn script(path: &str) -> BTreeMap<String, Vec<String>> {
    let output = Command::new(tools::project().join("examples").join(path))
        .arg("--quick")
        .env("FATHOM", fathom())
        // Cargo's would have every recorded program look in it for its libraries.
        .env_remove("LD_LIBRARY_PATH")
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

/// The rules that the table of findings below a heading names, without those about the machine.
fn rules(lines: &[String]) -> Vec<&str> {
    assert!(
        lines.iter().any(|line| line.starts_with("rule ")),
        "no findings in {lines:?}"
    );
    lines
        .iter()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let rule = words.next()?;
            let found = matches!(words.next()?, "low" | "medium" | "high");
            (found && !RULES_OF_THE_MACHINE.contains(&rule)).then_some(rule)
        })
        .collect()
}

/// The words of the lines of a table from the one that begins with `title`, as long as
/// there are as many.
fn rows<'a>(lines: &'a [String], title: &str) -> Vec<Vec<&'a str>> {
    let place = lines
        .iter()
        .position(|line| line.trim_start().starts_with(title))
        .unwrap_or_else(|| panic!("no {title} in {lines:?}"));
    let columns = lines[place].split_whitespace().count();
    lines[place + 1..]
        .iter()
        .filter(|line| !line.starts_with('─'))
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .take_while(|words| words.len() == columns)
        .collect()
}

/// The row of a table that begins with a word, and its column of a name.
fn cell<'a>(lines: &'a [String], title: &str, row: &str, column: &str) -> &'a str {
    let header: Vec<&str> = lines
        .iter()
        .find(|line| line.trim_start().starts_with(title))
        .unwrap_or_else(|| panic!("no {title} in {lines:?}"))
        .split_whitespace()
        .collect();
    let place = header.iter().position(|name| *name == column).unwrap();
    rows(lines, title)
        .into_iter()
        .find(|words| words[0] == row)
        .unwrap_or_else(|| panic!("no {row} in {lines:?}"))[place]
}

fn number(word: &str) -> f64 {
    word.parse().unwrap_or_else(|_| panic!("{word}"))
}

/// Whether the distribution's Python has a module.
pub(crate) fn python_has(module: &str) -> bool {
    Command::new("/usr/bin/python3")
        .args(["-c", &format!("import {module}")])
        .stderr(std::process::Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
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
                assert_eq!(words[5], writes, "each passes the file system: {lines:?}");
                // The device's queue may merge writes that are neighbours on it, these with each
                // other or with those of other programs.
                let requests: u64 = words[6].parse().unwrap();
                assert!(requests > 0, "{lines:?}");
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

#[test]
fn redis_log() {
    need_root!();
    need_program!("redis-server", "redis-benchmark");
    let sections = run("redis-log");
    let opened = &sections["Log to a file: opened for every line"];
    let opens = number(cell(opened, "syscall", "openat", "calls"));
    assert!(opens > 9000.0, "{opened:?}");
    // What it costs depends on the machine; where it is worth a word it is this.
    let found = rules(opened);
    assert!(
        found
            .iter()
            .all(|rule| *rule == "repeated-open" || *rule == "small-sequential"),
        "{opened:?}"
    );
    let kept = &sections["Log to standard output, which is the same file"];
    let writes = number(cell(kept, "syscall", "write", "calls"));
    assert!(writes > 9000.0, "as many lines: {kept:?}");
    assert!(!rows(kept, "syscall").iter().any(|row| row[0] == "openat"));
    assert!(!rules(kept).contains(&"repeated-open"), "{kept:?}");
    let always = &sections["Append-only file, appendfsync always"];
    let second = &sections["Append-only file, appendfsync everysec"];
    let syncs = |lines: &[String]| -> f64 {
        rows(lines, "syscall")
            .iter()
            .filter(|row| row[0] == "fdatasync")
            .map(|row| number(row[2]))
            .sum()
    };
    assert!(syncs(always) > 100.0 && syncs(second) < 30.0, "{second:?}");
    assert!(!rules(second).contains(&"sync-storm"), "{second:?}");
}

#[test]
fn log_shipper() {
    need_root!();
    need_program!("logtail2");
    if !python_has("pygtail") {
        fathom_tests::skip("Python has no pygtail");
        return;
    }
    let sections = run("log-shipper");
    let broken = &sections["Shipper with pygtail"];
    assert!(
        broken.iter().any(|line| line == "written  68 bytes"),
        "{broken:?}"
    );
    assert!(
        broken.iter().any(|line| line == "shipped  42 bytes"),
        "{broken:?}"
    );
    assert!(rules(broken).contains(&"rotation-offset"), "{broken:?}");
    let fixed = &sections["Shipper that looks at the beginning of the file"];
    assert!(
        fixed.iter().any(|line| line == "shipped  68 bytes"),
        "{fixed:?}"
    );
    assert!(!rules(fixed).contains(&"rotation-offset"), "{fixed:?}");
    // What was written is read with the same signature when nothing is lost.
    let signatures = |call: &str| -> Vec<String> {
        fixed
            .iter()
            .map(|line| line.split_whitespace().collect::<Vec<_>>())
            .filter(|words| words.len() == 7 && words[1] == call)
            .map(|words| words[6].to_string())
            .collect()
    };
    let read = signatures("read");
    assert_eq!(signatures("write").len(), 3, "{fixed:?}");
    assert!(
        signatures("write").iter().all(|one| read.contains(one)),
        "{fixed:?}"
    );
    let rotation = &sections["Rotation that keeps the old file, so that its number is not free"];
    assert_eq!(rotation[0], "renamed:  65 of 65 bytes shipped by logtail2");
}

#[test]
#[ignore = "long"]
fn lsm_compaction() {
    need_root!();
    need_program!("db_bench");
    let sections = run("lsm-compaction");
    for lines in [
        &sections["Compactions as fast as they can"],
        &sections["Compactions and flushes limited to 24 MiB/s"],
    ] {
        for (threads, least) in [
            ("db_bench", 1000.0),
            ("rocksdb:low", 1.0),
            ("rocksdb:high", 1.0),
        ] {
            let row = lines
                .iter()
                .find(|line| line.starts_with(threads) && line.split_whitespace().count() == 6)
                .unwrap_or_else(|| panic!("no {threads} in {lines:?}"));
            let calls = number(row.split_whitespace().nth(2).unwrap());
            assert!(calls >= least, "{row}");
        }
        let by_compactions = rows(lines, "compacting_threads");
        assert!(!by_compactions.is_empty(), "{lines:?}");
    }
}

#[test]
fn databases() {
    need_root!();
    need_program!("pg_ctlcluster", "mariadbd", "mariadb", "sysbench");
    let sections = run("databases");
    let syncs = |title: &str, file: &str| -> f64 {
        rows(&sections[title], "file")
            .iter()
            .filter(|row| row[0] == file)
            .map(|row| number(row[4]))
            .sum()
    };
    let on = syncs("PostgreSQL, synchronous_commit = on", "pg_wal/#");
    let off = syncs("PostgreSQL, synchronous_commit = off", "pg_wal/#");
    assert!(
        on > 2.0 * off,
        "commits that wait: {on}, that do not: {off}"
    );
    let each = syncs(
        "MariaDB, innodb_flush_log_at_trx_commit = 1, sync_binlog = 1",
        "binlog.#",
    );
    let later = syncs(
        "MariaDB, innodb_flush_log_at_trx_commit = 2, sync_binlog = 0",
        "binlog.#",
    );
    assert!(
        each > 20.0 && later < 10.0,
        "each commit: {each}, later: {later}"
    );
}

#[test]
fn sqlite_journals() {
    need_root!();
    need_program!("sqlite3");
    let sections = run("sqlite-journals");
    let modes = &sections["40 transactions in each mode"];
    let syncs = |mode: &str| number(cell(modes, "mode", mode, "syncs"));
    assert!(syncs("delete") >= 3.0 * 40.0, "{modes:?}");
    assert!(syncs("wal") < syncs("delete") / 2.0, "{modes:?}");
    assert!(syncs("wal-normal") < 20.0, "{modes:?}");
    assert_eq!(cell(modes, "mode", "delete", "unlinks"), "41", "{modes:?}");
    assert_eq!(cell(modes, "mode", "truncate", "unlinks"), "0", "{modes:?}");
    // While other tests have the processors, the syncs of one run may be too little of its time.
    let journals = ["delete", "truncate", "persist"].map(|mode| rules(&sections[mode]));
    assert!(
        journals.iter().any(|rules| rules.contains(&"sync-storm")),
        "{journals:?}"
    );
    for healthy in ["wal-normal", "One transaction around all rows"] {
        let lines = &sections[healthy];
        assert!(rules(lines).is_empty(), "{healthy}: {lines:?}");
    }
}

#[test]
fn unsafe_save() {
    need_root!();
    let sections = run("unsafe-save");
    // How much of so short a run Python's own start takes depends on the machine.
    let of_saves = |how: &str| -> Vec<String> {
        let rules = rules(&sections[how]).into_iter();
        let rules = rules.filter(|rule| *rule != "redundant-stat");
        rules.map(str::to_owned).collect()
    };
    assert_eq!(of_saves("rewrite"), ["non-atomic-rewrite"]);
    assert_eq!(of_saves("rename"), ["rename-without-fsync"]);
    assert_eq!(of_saves("safe"), [""; 0]);
}

#[test]
#[ignore = "long"]
fn everyday() {
    need_root!();
    need_program!("git", "gcc");
    if !python_has("ensurepip") {
        fathom_tests::skip("Python has no venv");
        return;
    }
    let sections = run("everyday");
    // Nothing is to be said of these; of others see the example.
    for tool in ["git-add", "git-status", "gcc-all"] {
        let lines = &sections[tool];
        assert!(rules(lines).is_empty(), "{tool}: {lines:?}");
        assert!(number(rows(lines, "calls")[0][0]) > 100.0, "{lines:?}");
    }
    let commit = &sections["git-commit"];
    assert!(
        rules(commit).contains(&"rename-without-fsync"),
        "{commit:?}"
    );
    let synced = &sections["git-commit-fsync"];
    assert!(
        !rules(synced).contains(&"rename-without-fsync"),
        "{synced:?}"
    );
}

#[test]
fn scan_order() {
    need_root!();
    let sections = run("scan-order");
    let continued = |title: &str| number(rows(&sections[title], "reads")[0][1]);
    let index = "By the index";
    let table = "By the table";
    let rebuilt = "By the index, after the table was written anew in its order";
    assert!(continued(index) < 100.0, "{:?}", sections[index]);
    assert!(continued(table) > 2500.0, "{:?}", sections[table]);
    assert!(continued(rebuilt) > 2500.0, "{:?}", sections[rebuilt]);
    assert!(rules(&sections[index]).contains(&"scan-out-of-order"));
    for title in [table, rebuilt] {
        assert!(!rules(&sections[title]).contains(&"scan-out-of-order"));
    }
}

/// OpenSearch comes from Maven's central repository: on demand only.
#[test]
fn opensearch() {
    need_root!();
    need_program!("javac", "mvn");
    if std::env::var_os("FATHOM_EXAMPLE_OPENSEARCH").is_none() {
        fathom_tests::skip("FATHOM_EXAMPLE_OPENSEARCH is not set: 50 MB would be fetched");
        return;
    }
    let sections = run("opensearch");
    let lines = &sections["One check of the disk"];
    let opens = lines
        .iter()
        .filter(|line| line.contains(" openat "))
        .count();
    assert_eq!(opens, 2, "{lines:?}");
    assert!(
        lines.iter().any(|line| line.contains(" fsync ")),
        "{lines:?}"
    );
}
