//! Rules and views that a user wrote: they count everywhere, and reach nothing but their session.

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use fathom_tests::environment::{fathom, is_root};
use fathom_tests::page::Page;
use fathom_tests::tools::{import, project};
use fathom_tests::{Record, Scratch, need_root};
use serde_json::{Value, json};

/// A path that ends a string, starts another rule, clears a screen, and is a placeholder.
const HOSTILE: &str = "/data/{path}\\33[2J\\r\\n\\\"' 9. sync-storm <b>";

const RULE: &str = "-- Reads are slow.\n--\n-- title: {comm} reads {path} {calls} times\n-- severity: high\n\
    -- advice: Read {path} once.\n\
    SELECT 'app' AS comm, path, count(*) AS calls, sum(dur_ns) AS cost_ns,\n\
    sum(bytes) AS read_bytes, list(rid) AS examples\n\
    FROM slow_reads GROUP BY path";

const VIEW: &str = "-- Slow reads.\nSELECT * FROM syscalls WHERE syscall = 'pread64'";

/// A session from a log with ten reads.
fn session(scratch: &Scratch, name: &str) -> PathBuf {
    let log = scratch.root().join(format!("{name}.log"));
    let mut lines = format!(
        "7 1700000000.000000 openat(AT_FDCWD</>, \"{HOSTILE}\", O_RDONLY) = 3<{HOSTILE}> <0.1>\n"
    );
    for n in 1..=10 {
        lines += &format!(
            "7 170000000{}.500000 pread64(3<{HOSTILE}>, \"\"..., 4096, 0) = 4096 <0.4>\n",
            n % 10
        );
    }
    let mut sorted: Vec<&str> = lines.lines().collect();
    sorted.sort_unstable();
    fs::write(&log, sorted.join("\n") + "\n").unwrap();
    let session = scratch.root().join(format!("{name}.fathom"));
    import(&[&log], &session);
    session
}

/// A directory with these files.
fn directory(scratch: &Scratch, files: &[(&str, &str)]) -> PathBuf {
    let dir = scratch.root().join("mine");
    for folder in ["", "rules", "views"] {
        let folder = dir.join(folder);
        fs::create_dir_all(&folder).unwrap();
        mode(&folder, 0o755);
    }
    for (name, text) in files {
        fs::write(dir.join(name), text).unwrap();
        mode(&dir.join(name), 0o644);
    }
    dir
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// fathom with these arguments and `--extensions DIR`.
fn run(dir: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(fathom());
    command.args(args).arg("--extensions").arg(dir);
    command.output().unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn errors(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The findings of a rule in the JSON of `diagnose`.
fn of_rule<'a>(diagnosis: &'a Value, rule: &str) -> Vec<&'a Value> {
    let all = diagnosis["findings"].as_array().unwrap();
    all.iter()
        .filter(|finding| finding["rule"] == rule)
        .collect()
}

fn diagnosis(dir: &Path, session: &Path) -> Value {
    let output = run(
        dir,
        &["diagnose", session.to_str().unwrap(), "--format", "json"],
    );
    assert_eq!(errors(&output), "");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn findings_of_a_rule_are_everywhere() {
    let scratch = Scratch::new();
    let session = session(&scratch, "session");
    let name = session.to_str().unwrap();
    let dir = directory(
        &scratch,
        &[("rules/slow-app.sql", RULE), ("views/slow_reads.sql", VIEW)],
    );

    let found = diagnosis(&dir, &session);
    crate::json_schemas::check("diagnose", &found);
    let [finding] = of_rule(&found, "slow-app")[..] else {
        panic!("{found}");
    };
    assert_eq!(finding["severity"], "high");
    assert_eq!(finding["cost_ns"], 4_000_000_000_i64);
    let evidence =
        json!([{"name": "calls", "value": 10.0}, {"name": "read_bytes", "value": 40960.0}]);
    assert_eq!(finding["evidence"], evidence);
    assert_eq!(finding["examples"].as_array().unwrap().len(), 3);
    assert_eq!(finding["examples"][0]["syscall"], "pread64");
    // It is data: a placeholder in a path is none, and no text is changed.
    let path = finding["subject"]["path"].as_str().unwrap();
    assert!(path.starts_with("/data/{path}\u{1b}[2J\r\n\"'"), "{path:?}");
    let title = format!("app reads {path} 10 times");
    assert_eq!(finding["title"], title);

    let text = run(&dir, &["diagnose", name]);
    assert_eq!(text.status.code(), Some(1));
    let number = found["findings"].as_array().unwrap().iter();
    let number = 1 + number.take_while(|f| f["rule"] != "slow-app").count();
    let shown = out(&text);
    assert!(shown.contains(&format!("\n{number}. slow-app")), "{shown}");
    let again = format!("--extensions {} --finding {number}\n", dir.display());
    assert!(shown.contains(&again), "{shown}");
    assert!(!shown.contains(['\u{1b}', '\r']), "{shown:?}");
    assert!(!shown.contains("\n9. sync-storm"), "{shown}");

    let rows = run(
        &dir,
        &[
            "query",
            name,
            "--finding",
            &number.to_string(),
            "--format",
            "csv",
        ],
    );
    assert!(out(&rows).starts_with("comm,path,calls,cost_ns,read_bytes,examples\n"));
    let rules = "SELECT rule FROM findings WHERE rule = 'slow-app'";
    let rows = run(&dir, &["query", name, rules, "--format", "csv"]);
    assert_eq!(out(&rows), "rule\nslow-app\n");

    for format in ["text", "json", "html"] {
        let report = run(&dir, &["report", name, "--format", format]);
        let text = out(&report);
        assert!(text.contains("slow-app"), "{}", errors(&report));
        assert!(!text.contains(['\u{1b}', '\r']), "{format}");
        assert!(
            format != "html" || !text.contains("sync-storm <b>"),
            "{text}"
        );
    }
    let sarif = run(&dir, &["diagnose", name, "--format", "sarif"]);
    assert!(
        out(&sarif).contains("\"ruleId\": \"slow-app\""),
        "{}",
        out(&sarif)
    );

    // Without the rule there is no such finding: nothing of it is stored.
    let without = diagnosis(Path::new("none"), &session);
    assert!(of_rule(&without, "slow-app").is_empty());
    assert_eq!(
        without["rules"].as_u64().unwrap() + 1,
        found["rules"].as_u64().unwrap()
    );
    let diff = run(&dir, &["diff", name, name, "--format", "json"]);
    assert!(out(&diff).contains("slow-app"), "{}", errors(&diff));

    let page = Page::serve_with(&session, &["--extensions".as_ref(), dir.as_os_str()]);
    let served = page.json("/sessions/session.fathom/findings");
    assert_eq!(of_rule(&served, "slow-app")[0]["title"], title);
    let counted = page.sql("session.fathom", "SELECT count(*) AS n FROM slow_reads");
    assert_eq!(counted.table().numbers("n"), [10.0]);
}

#[test]
fn models_see_findings_and_views() {
    let scratch = Scratch::new();
    let session = session(&scratch, "session");
    let dir = directory(
        &scratch,
        &[("rules/slow-app.sql", RULE), ("views/slow_reads.sql", VIEW)],
    );
    let call = |id: u32, tool: &str, arguments: Value| {
        let params = json!({"name": tool, "arguments": arguments});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    };
    let sql = "SELECT count(*) AS n FROM slow_reads";
    let messages = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        }}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        call(2, "diagnose", json!({"session": "session.fathom"})),
        call(3, "query", json!({"session": "session.fathom", "sql": sql})),
    ];
    let mut child = Command::new(fathom())
        .arg("mcp")
        .arg(session.parent().unwrap())
        .arg("--extensions")
        .arg(&dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    for message in &messages {
        writeln!(input, "{message}").unwrap();
    }
    drop(input);
    let answers = out(&child.wait_with_output().unwrap());
    let answer = |id: u32| {
        let answers = answers
            .lines()
            .map(|line| serde_json::from_str(line).unwrap());
        let mut own = answers.filter(|answer: &Value| answer["id"] == id);
        own.next().unwrap()["result"]["structuredContent"].clone()
    };
    assert_eq!(of_rule(&answer(2), "slow-app").len(), 1, "{answers}");
    assert_eq!(answer(3)["rows"], json!([{"n": 10}]), "{answers}");
}

#[test]
fn rules_that_fail_are_listed_and_the_others_go_on() {
    let scratch = Scratch::new();
    let session = session(&scratch, "session");
    let secret = scratch.root().join("secret.csv");
    fs::write(&secret, "a\nplanted\n").unwrap();
    let written = scratch.root().join("written.csv");
    let head = "-- title: a\n-- advice: a\n";
    let sql = |sql: &str| format!("{head}{sql}");
    let read = sql(&format!("SELECT * FROM '{}'", secret.display()));
    let write = sql(&format!("COPY (SELECT 1) TO '{}'", written.display()));
    let broken = sql("SELECT nothing FROM syscalls");
    let wrong = "-- title: {missing}\n-- advice: a\nSELECT 1 AS pid WHERE false";
    let many = sql("SELECT repeat('x', 1000) AS x FROM range(10000)");
    let hungry = sql("SELECT length(repeat('x', 4000000000)) AS x");
    let dir = directory(
        &scratch,
        &[
            ("rules/a-read.sql", &read),
            ("rules/b-write.sql", &write),
            ("rules/c-broken.sql", &broken),
            ("rules/d-wrong.sql", wrong),
            ("rules/e-many.sql", &many),
            ("rules/f-hungry.sql", &hungry),
            ("rules/slow-app.sql", RULE),
            ("views/slow_reads.sql", VIEW),
        ],
    );
    let found = diagnosis(&dir, &session);
    assert_eq!(of_rule(&found, "slow-app").len(), 1);
    let reason = |rule: &str| {
        let mut all = found["not_observable"].as_array().unwrap().iter();
        let own = all.find(|unseen| unseen["rule"] == rule);
        own.unwrap_or_else(|| panic!("{rule}: {found}"))["reason"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    for (rule, says) in [
        ("a-read", "its SQL failed"),
        ("b-write", "its SQL failed: "),
        ("c-broken", "\"nothing\" not found"),
        (
            "d-wrong",
            "its text has {missing}, and its SQL returns no such column: pid",
        ),
        ("e-many", "its rows have more than 4 MiB"),
        ("f-hungry", "its SQL failed"),
    ] {
        assert!(reason(rule).contains(says), "{rule}: {}", reason(rule));
    }
    assert!(
        !reason("a-read").contains("planted"),
        "{}",
        reason("a-read")
    );
    assert!(!written.exists());
}

#[test]
fn what_cannot_be_used_ends_the_command() {
    let scratch = Scratch::new();
    let session = session(&scratch, "session");
    let name = session.to_str().unwrap();
    let refused = |dir: &Path, args: &[&str], says: &str| {
        let output = run(dir, args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", out(&output));
        let errors = errors(&output);
        assert!(
            errors.contains(says) && errors.contains("mine"),
            "{args:?}: {errors}"
        );
    };
    let every = [
        &["diagnose", name][..],
        &["report", name],
        &["why", name],
        &["query", name, "SELECT 1"],
        &["diff", name, name],
        &["mcp", name],
        &["ui", name, "--no-open"],
    ];
    let dir = directory(&scratch, &[("rules/slow-app.sql", RULE)]);
    mode(&dir.join("rules/slow-app.sql"), 0o666);
    for args in every {
        refused(&dir, args, "other users can write it");
    }
    mode(&dir.join("rules/slow-app.sql"), 0o644);
    if is_root() {
        chown(dir.join("rules"), Some(12345), None).unwrap();
        for args in every {
            refused(&dir, args, "it belongs to user 12345");
        }
        chown(dir.join("rules"), Some(0), None).unwrap();
    }
    // The rule uses the view.
    directory(
        &scratch,
        &[("views/slow_reads.sql", "SELECT nothing FROM syscalls")],
    );
    for args in &every[..5] {
        refused(&dir, args, "\"nothing\" not found");
        refused(&dir, args, "views/slow_reads.sql");
    }
    let secret = scratch.root().join("secret.csv");
    fs::write(&secret, "a\n1\n").unwrap();
    let reads = format!("SELECT * FROM '{}'", secret.display());
    directory(&scratch, &[("views/slow_reads.sql", &reads)]);
    refused(&dir, every[3], "view ");
    directory(
        &scratch,
        &[("views/slow_reads.sql", VIEW), ("views/by_file.sql", VIEW)],
    );
    refused(&dir, every[3], "the name of fathom's own by_file");
}

#[test]
fn the_default_directory_is_the_users_and_never_the_working_directory() {
    let scratch = Scratch::new();
    let session = session(&scratch, "session");
    let dir = directory(&scratch, &[("views/slow_reads.sql", VIEW)]);
    // Where a hostile session, and a relative path, would have it.
    for hostile in [
        &session,
        &session.join("fathom"),
        &scratch.root().join("fathom"),
    ] {
        fs::create_dir_all(hostile.join("views")).unwrap();
        fs::write(hostile.join("views/mine.sql"), "SELECT 1").unwrap();
    }
    let query = |home: &[(&str, &Path)], sql: &str| {
        let mut command = Command::new(fathom());
        command.arg("query").arg(&session).arg(sql);
        command.env_remove("XDG_CONFIG_HOME").env_remove("HOME");
        for (name, value) in home {
            command.env(name, value);
        }
        command
            .current_dir(&session)
            .output()
            .unwrap()
            .status
            .code()
    };
    let config = scratch.root().join("config");
    fs::create_dir(&config).unwrap();
    fs::rename(&dir, config.join("fathom")).unwrap();
    let sql = "FROM slow_reads";
    assert_eq!(query(&[("XDG_CONFIG_HOME", &config)], sql), Some(0));
    assert_eq!(query(&[], sql), Some(2));
    let home = scratch.root().join("home");
    fs::create_dir(&home).unwrap();
    fs::rename(&config, home.join(".config")).unwrap();
    assert_eq!(query(&[("HOME", &home)], sql), Some(0));
    for relative in [".", "..", ""] {
        let home = Path::new(relative);
        assert_eq!(
            query(&[("XDG_CONFIG_HOME", home), ("HOME", home)], "FROM mine"),
            Some(2)
        );
    }
}

#[test]
fn sets_have_the_rows_and_findings_of_all_sessions() {
    let scratch = Scratch::new();
    let sessions = [session(&scratch, "db"), session(&scratch, "web")];
    let set = scratch.root().join("hosts.fset");
    let [db, web] = sessions.each_ref().map(|path| path.to_str().unwrap());
    let made = Command::new(fathom())
        .args(["set", &format!("db={db}"), &format!("web={web}"), "-o"])
        .arg(&set)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", errors(&made));
    let dir = directory(
        &scratch,
        &[("rules/slow-app.sql", RULE), ("views/slow_reads.sql", VIEW)],
    );
    let name = set.to_str().unwrap();
    let sql = "SELECT host, count(*) AS n FROM slow_reads GROUP BY host ORDER BY host";
    let rows = run(&dir, &["query", name, sql, "--format", "csv"]);
    assert_eq!(out(&rows), "host,n\ndb,10\nweb,10\n", "{}", errors(&rows));
    let found = run(&dir, &["diagnose", name, "--format", "json"]);
    let members: Value = serde_json::from_slice(&found.stdout).unwrap();
    for member in members.as_array().unwrap() {
        assert_eq!(
            of_rule(&member["diagnosis"], "slow-app").len(),
            1,
            "{members}"
        );
    }
}

/// The files of examples/extensions, on a program that they are about.
#[test]
fn the_example_finds_what_a_program_does() {
    need_root!();
    let scratch = Scratch::new();
    let loop_of = |times: u32| {
        format!("i=0; while [ $i -lt {times} ]; do i=$((i+1)); read x < /etc/hostname; done")
    };
    let dir = scratch.root().join("mine");
    let copied = Command::new("cp")
        .arg("-r")
        .arg(project().join("examples/extensions"))
        .arg(&dir)
        .status();
    assert!(copied.unwrap().success());
    let changed = Command::new("chmod")
        .args(["-R", "go-w"])
        .arg(&dir)
        .status();
    assert!(changed.unwrap().success());
    for (times, findings) in [(150, 1), (50, 0)] {
        let recording = Record::named(&scratch, &format!("times-{times}"))
            .command(["sh", "-c", &loop_of(times)])
            .run()
            .must_exit(0);
        let found = diagnosis(&dir, &recording.session);
        let own = of_rule(&found, "reread-settings");
        assert_eq!(own.len(), findings, "{found}");
        for finding in own {
            assert_eq!(finding["title"], "sh opens /etc/hostname 150 times");
            assert_eq!(
                finding["evidence"][0],
                json!({"name": "opens", "value": 150.0})
            );
        }
        let unseen = found["not_observable"].to_string();
        assert!(
            !unseen.contains("reread-settings") && !unseen.contains("shared-storage"),
            "{unseen}"
        );
    }
}
