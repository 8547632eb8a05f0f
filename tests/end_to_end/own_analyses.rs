//! Tables and panels of a user: rows that another program wrote are joined with those of a session, stay
//! with it, and are shown on the page. And what is served with `--redact`.

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use fathom_tests::environment::fathom;
use fathom_tests::page::Page;
use fathom_tests::session::meta;
use fathom_tests::tools::{import, run};
use fathom_tests::{Record, Scratch, need_root, parts};
use serde_json::{Value, json};

/// Of one thread: an open, then eight reads of 0.25 s each, one a second from 1700000001 on.
fn session(scratch: &Scratch, name: &str) -> PathBuf {
    let file = "/data/secret-orders.db";
    let mut lines = format!(
        "7 1700000000.000000 openat(AT_FDCWD</>, \"{file}\", O_RDONLY) = 3<{file}> <0.1>\n"
    );
    for n in 1..=8 {
        lines +=
            &format!("7 170000000{n}.000000 pread64(3<{file}>, \"\"..., 4096, 0) = 4096 <0.25>\n");
    }
    let log = scratch.root().join(format!("{name}.log"));
    fs::write(&log, lines).unwrap();
    let session = scratch.root().join(format!("{name}.fathom"));
    import(&[&log], &session);
    session
}

/// `fathom import FILE --into SESSION --table NAME`, with its exit status and messages.
fn add(session: &Path, file: &Path, name: &str, more: &[&str]) -> (Option<i32>, String) {
    let (file, session) = (file.to_str().unwrap(), session.to_str().unwrap());
    let mut args = vec!["import", file, "--into", session, "--table", name];
    args.extend(more);
    let output = run(args);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), errors)
}

fn must_add(session: &Path, file: &Path, name: &str, more: &[&str]) -> String {
    let (status, errors) = add(session, file, name, more);
    assert_eq!(status, Some(0), "{errors}");
    errors
}

fn query(session: &Path, sql: &str) -> Vec<Value> {
    let output = run([
        "query",
        session.to_str().unwrap(),
        sql,
        "--format",
        "ndjson",
    ]);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{sql}: {errors}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Orders of the shop, by the wall clock: the second and the fifth second of the log.
fn orders(scratch: &Scratch) -> PathBuf {
    let file = scratch.root().join("orders.csv");
    let rows = "ts_ns,tid,order no,shop\n\
        1700000002100000000,7,A17,\"north, hall 1\"\n\
        1700000005100000000,7,A18,south\n";
    fs::write(&file, rows).unwrap();
    file
}

const JOINED: &str = "SELECT o.\"order no\", o.shop, count(*) AS calls, sum(s.bytes) AS bytes \
    FROM orders AS o JOIN syscalls AS s \
    ON s.tid = o.tid AND o.ts_ns BETWEEN s.ts_ns AND s.ts_ns + s.dur_ns GROUP BY ALL ORDER BY ALL";

fn joined() -> Vec<Value> {
    vec![
        json!({"order no": "A17", "shop": "north, hall 1", "calls": 1, "bytes": 4096}),
        json!({"order no": "A18", "shop": "south", "calls": 1, "bytes": 4096}),
    ]
}

#[test]
fn rows_of_another_program_join_the_calls() {
    let scratch = Scratch::new();
    let session = session(&scratch, "run");
    let csv = orders(&scratch);
    let said = must_add(&session, &csv, "orders", &[]);
    assert!(said.contains("2 rows added to"), "{said}");
    assert!(
        said.contains("    ts_ns BIGINT\n    tid BIGINT\n    order no VARCHAR\n"),
        "{said}"
    );
    assert_eq!(query(&session, JOINED), joined());

    // What another reader of Parquet finds in the file.
    let batches = parts::read(&session, "own");
    assert_eq!(batches.len(), 1);
    let times = batches[0]
        .column_by_name("ts_ns")
        .unwrap()
        .as_primitive::<Int64Type>();
    assert_eq!(
        times.values(),
        &[1_700_000_002_100_000_000, 1_700_000_005_100_000_000]
    );
    let shops = batches[0]
        .column_by_name("shop")
        .unwrap()
        .as_string::<i32>();
    assert_eq!(
        shops.iter().flatten().collect::<Vec<_>>(),
        ["north, hall 1", "south"]
    );

    // The same rows from Parquet and from JSON lines; times of day become times of the session.
    let copy = scratch.root().join("copy.parquet");
    fs::copy(&parts::files(&session, "own")[0], &copy).unwrap();
    must_add(&session, &copy, "from_parquet", &[]);
    let lines = scratch.root().join("lines.jsonl");
    let text = "{\"wall\": \"2023-11-14T22:13:22.100\", \"n\": 1}\n{\"n\": 2, \"more\": [1, 2]}\n";
    fs::write(&lines, text).unwrap();
    must_add(&session, &lines, "from_json", &[]);
    assert_eq!(
        query(
            &session,
            "SELECT count(*) AS n FROM (FROM orders EXCEPT FROM from_parquet)"
        ),
        [json!({"n": 0})]
    );
    assert_eq!(
        query(
            &session,
            "SELECT time_ns(wall) AS ts_ns, n FROM from_json WHERE wall IS NOT NULL"
        ),
        [json!({"ts_ns": 1_700_000_002_100_000_000_i64, "n": 1})]
    );

    // Views, rules, the schema, and the sizes have it, too.
    let page = Page::serve(&session);
    let schema = page.json("/sessions/run.fathom/schema");
    let own = |r: &&Value| r["name"] == "orders";
    let own = schema.as_array().unwrap().iter().find(own).unwrap();
    assert_eq!((&own["view"], &own["rows"]), (&json!(false), &json!(2)));
    assert_eq!(own["columns"][2]["name"], "order no");
    let told = page.sql("run.fathom", "SELECT count(*) AS n FROM orders");
    assert_eq!(told.table().numbers("n"), [2.0]);
    // Another one that comes while the page is served.
    must_add(&session, &csv, "later", &[]);
    let told = page.sql("run.fathom", "SELECT count(*) AS n FROM later");
    assert_eq!(told.table().numbers("n"), [2.0]);
    let sizes = run([
        "report",
        session.to_str().unwrap(),
        "--sizes",
        "--format",
        "json",
    ]);
    let sizes: Vec<Value> = serde_json::from_slice(&sizes.stdout).unwrap();
    let size = sizes.iter().find(|size| size["table"] == "orders").unwrap();
    let bytes = fs::metadata(&parts::files(&session, "own")[0])
        .unwrap()
        .len();
    assert_eq!(
        (&size["rows"], size["bytes"].as_u64() > Some(0), bytes > 0),
        (&json!(2), true, true)
    );
}

#[test]
fn what_cannot_be_a_table_is_refused() {
    let scratch = Scratch::new();
    let session = session(&scratch, "run");
    let csv = orders(&scratch);
    let before = fs::read(session.join("session.json")).unwrap();
    let refused = |file: &Path, name: &str, says: &str| {
        let (status, errors) = add(&session, file, name, &[]);
        assert_eq!(status, Some(2), "{name}: {errors}");
        assert!(errors.contains(says), "{name}: {errors}");
        assert!(!errors.contains('\u{1b}'), "{name}: {errors:?}");
    };
    for name in ["syscalls", "by_file", "findings", "critical_path"] {
        refused(&csv, name, "of its own; choose another name");
    }
    for name in ["Orders", "my orders", "../x", "2x", "\u{1b}[2J"] {
        refused(&csv, name, "choose another name");
    }
    refused(&csv, "select", "is a word of SQL");
    let file = |name: &str, text: &str| {
        let path = scratch.root().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    refused(
        &file("a.txt", "a\n1\n"),
        "a",
        "one of .csv, .tsv, .parquet, .ndjson, .jsonl",
    );
    refused(
        &file("b.csv", "ts_ns\n10:30\n"),
        "b",
        "column ts_ns is TIME",
    );
    refused(&file("c.parquet", "no"), "c", "cannot import");
    refused(&file("d.ndjson", "{\"a\": 1"), "d", "cannot import");
    let link = scratch.root().join("link.csv");
    std::os::unix::fs::symlink(&csv, &link).unwrap();
    refused(&link, "e", "it is no regular file");
    refused(&scratch.root().join("none.csv"), "f", "cannot open");
    // Nothing of all that is left.
    assert!(!session.join("own").exists());
    assert_eq!(fs::read(session.join("session.json")).unwrap(), before);

    must_add(&session, &csv, "orders", &[]);
    refused(&csv, "orders", "replace the table with --force");
    let more = file("more.csv", "n\n1\n2\n3\n");
    must_add(&session, &more, "orders", &["--force"]);
    assert_eq!(parts::files(&session, "own").len(), 1);
    assert_eq!(
        query(&session, "SELECT sum(n)::BIGINT AS n FROM orders"),
        [json!({"n": 6})]
    );
    let (status, errors) = add(&session, &csv, "x", &[more.to_str().unwrap()]);
    assert_eq!(status, Some(2));
    assert!(errors.contains("--table takes one file"), "{errors}");
}

#[test]
fn tables_stay_with_their_session() {
    let scratch = Scratch::new();
    let session = session(&scratch, "run");
    must_add(&session, &orders(&scratch), "orders", &[]);
    let name = session.to_str().unwrap();

    // A set has the rows of all sessions.
    let other = self::session(&scratch, "other");
    let set = scratch.root().join("hosts.fset");
    let members = [format!("db={name}"), format!("web={}", other.display())];
    let made = run(["set", &members[0], &members[1], "-o", set.to_str().unwrap()]);
    assert!(
        made.status.success(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    let rows = query(&set, "SELECT host, count(*) AS n FROM orders GROUP BY host");
    assert_eq!(rows, [json!({"host": "db", "n": 2})]);

    // A session that loses its session.json gets the table back; one whose file changes loses it, and
    // says so.
    fs::remove_file(session.join("session.json")).unwrap();
    let repaired = run(["repair", name]);
    let said = String::from_utf8_lossy(&repaired.stdout).into_owned()
        + &String::from_utf8_lossy(&repaired.stderr);
    assert!(said.contains("it is own table orders again"), "{said}");
    assert_eq!(query(&session, JOINED), joined());
    let file = parts::files(&session, "own").remove(0);
    let mut bytes = fs::read(&file).unwrap();
    bytes[30] ^= 1;
    fs::write(&file, &bytes).unwrap();
    let left_out = run(["query", name, "SELECT count(*) FROM orders"]);
    let errors = String::from_utf8_lossy(&left_out.stderr).into_owned();
    assert_eq!(left_out.status.code(), Some(2), "{errors}");
    assert!(
        errors.contains("own table orders is left out: its file is damaged"),
        "{errors}"
    );
    let calls = run([
        "query",
        name,
        "SELECT count(*) AS n FROM syscalls",
        "--format",
        "csv",
    ]);
    assert_eq!(String::from_utf8_lossy(&calls.stdout), "n\n9\n");
    run(["repair", name]);
    assert!(parts::files(&session, "own").is_empty());
    assert_eq!(meta(&session)["own_tables"], Value::Null);
    // It can be added again, and is replaced and removed with its session.
    must_add(&session, &orders(&scratch), "orders", &[]);
    assert_eq!(query(&session, JOINED), joined());
    let log = scratch.root().join("run.log");
    let again = run(["import", log.to_str().unwrap(), "-o", name, "--force"]);
    assert!(
        again.status.success(),
        "{}",
        String::from_utf8_lossy(&again.stderr)
    );
    assert!(!session.join("own").exists());

    // No rule of redaction says what its columns hold: the copy has no such table.
    must_add(&session, &orders(&scratch), "orders", &[]);
    let copy = scratch.root().join("copy.fathom");
    let redacted = run(["redact", name, "-o", copy.to_str().unwrap()]);
    let errors = String::from_utf8_lossy(&redacted.stderr).into_owned();
    assert!(redacted.status.success(), "{errors}");
    assert!(
        errors.contains("no rule says what they hold: orders"),
        "{errors}"
    );
    assert!(!copy.join("own").exists());
    assert_eq!(meta(&copy)["own_tables"], Value::Null);
}

/// A directory with these files of the user's.
fn directory(scratch: &Scratch, files: &[(&str, &str)]) -> PathBuf {
    let dir = scratch.root().join("mine");
    for folder in ["", "rules", "views", "panels"] {
        fs::create_dir_all(dir.join(folder)).unwrap();
        fs::set_permissions(dir.join(folder), Permissions::from_mode(0o755)).unwrap();
    }
    for (name, text) in files {
        fs::write(dir.join(name), text).unwrap();
        fs::set_permissions(dir.join(name), Permissions::from_mode(0o644)).unwrap();
    }
    dir
}

const PANEL: &str = "-- Calls of each order.\n-- title: Orders <b>\n-- draw: bar\n-- x: shop\n\
    -- y: calls\n-- width: full\nSELECT shop, count(*) AS calls FROM orders GROUP BY shop;\n";

const RULE: &str = "-- Orders wait.\n-- title: order {path} waited\n-- severity: low\n\
    -- advice: Order less.\nSELECT \"order no\" AS path FROM orders LIMIT 1";

#[test]
fn panels_are_files_of_sql() {
    let scratch = Scratch::new();
    let session = session(&scratch, "run");
    must_add(&session, &orders(&scratch), "orders", &[]);
    let table = "-- title: All\nFROM orders";
    let files = [("panels/orders.sql", PANEL), ("panels/zz-all.sql", table)];
    let dir = directory(&scratch, &files);
    // Not from a session.
    fs::create_dir(session.join("panels")).unwrap();
    fs::write(session.join("panels/x.sql"), "-- title: X\nSELECT 1").unwrap();

    let page = Page::serve_with(&session, &["--extensions".as_ref(), dir.as_os_str()]);
    let panels = page.json("/panels");
    let plot = |form: &str, x: &str, y: &[&str]| json!({"form": form, "x": x, "y": y, "series": "", "log": false});
    let sql = "SELECT shop, count(*) AS calls FROM orders GROUP BY shop";
    let queries = json!([
        {"name": "Orders <b>", "sql": sql, "panel": true, "wide": true, "plot": plot("stack", "shop", &["calls"])},
        {"name": "All", "sql": "FROM orders", "panel": true, "wide": false, "plot": plot("table", "", &[])},
    ]);
    let name = dir.join("panels");
    let all = json!([{
        "name": name.to_str().unwrap(),
        "content": {"fathom-queries": 1, "queries": queries},
        "problem": null,
    }]);
    assert_eq!(panels, all);
    assert_eq!(page.sql("run.fathom", sql).table().sum("calls"), 2.0);
    assert_eq!(
        Page::serve_with(&session, &["--extensions".as_ref(), "none".as_ref()]).json("/panels"),
        json!([])
    );

    let refused = |says: &str| {
        let output = run([
            "ui",
            "--no-open",
            session.to_str().unwrap(),
            "--extensions",
            dir.to_str().unwrap(),
        ]);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{errors}");
        assert!(
            errors.contains(says) && errors.contains("panels"),
            "{errors}"
        );
    };
    fs::set_permissions(dir.join("panels/orders.sql"), Permissions::from_mode(0o666)).unwrap();
    refused("other users can write it");
    directory(
        &scratch,
        &[("panels/orders.sql", "-- title: A\n-- draw: pie\nSELECT 1")],
    );
    refused("draw pie is not known; choose from table, line, bar, dots");
    fs::remove_file(dir.join("panels/orders.sql")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", dir.join("panels/orders.sql")).unwrap();
    refused("panels/orders.sql");
}

/// The answer about findings in an exported page, unpacked by Python.
fn exported_findings(html: &Path) -> Value {
    let script = "import base64,gzip,json,re,sys\n\
        text = open(sys.argv[1]).read()\n\
        data = re.search('<script type=\"application/json\" id=\"answers\">(.*?)</script>', text, re.S).group(1)\n\
        for answer in json.loads(data)['answers']:\n\
        \x20   if answer['path'].endswith('/findings'):\n\
        \x20       print(gzip.decompress(base64.b64decode(answer['data'])).decode())\n";
    let output = Command::new("/usr/bin/python3")
        .args(["-c", script])
        .arg(html)
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn an_exported_page_has_the_findings_of_own_rules() {
    let scratch = Scratch::new();
    let session = session(&scratch, "run");
    must_add(&session, &orders(&scratch), "orders", &[]);
    let dir = directory(&scratch, &[("rules/orders.sql", RULE)]);
    let html = scratch.root().join("run.html");
    let export = |extensions: &Path| {
        let (session, html) = (session.to_str().unwrap(), html.to_str().unwrap());
        let extensions = extensions.to_str().unwrap();
        let output = run([
            "export",
            session,
            "--format",
            "page",
            "-o",
            html,
            "--extensions",
            extensions,
        ]);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{errors}");
        let findings = exported_findings(Path::new(html))["findings"].clone();
        let titles = findings.as_array().unwrap().iter();
        titles
            .filter(|f| f["rule"] == "orders")
            .map(|f| f["title"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(export(&dir), ["order A17 waited"]);
    assert!(export(Path::new("none")).is_empty());
}

#[test]
fn own_rules_run_at_the_end_of_a_diagnosed_recording() {
    need_root!();
    let scratch = Scratch::new();
    let rule = "-- Reads.\n-- title: {comm} opens {path} {opens} times\n-- advice: Open it once.\n\
        SELECT comm, path, count(*) AS opens FROM syscalls WHERE syscall = 'openat' AND path = '/etc/hostname' \
        GROUP BY ALL HAVING count(*) = 30";
    let dir = directory(&scratch, &[("rules/hostname.sql", rule)]);
    let record = |more: &[&str]| {
        let recording = Record::new(&scratch)
            .options(["--diagnose", "--force"])
            .options(more)
            .command([
                "sh",
                "-c",
                "for i in $(seq 30); do read name < /etc/hostname; done",
            ])
            .run()
            .must_exit(0);
        recording.stderr
    };
    let errors = record(&["--extensions", dir.to_str().unwrap()]);
    let lines: Vec<&str> = errors
        .lines()
        .filter(|line| line.contains("hostname"))
        .collect();
    assert_eq!(lines.len(), 1, "{errors}");
    let found = "fathom: found hostname (medium): sh opens /etc/hostname 30 times";
    assert_eq!(lines[0], found, "{errors}");
    assert!(!record(&["--extensions", "none"]).contains("found hostname"));
}

#[test]
fn what_is_served_redacted_holds_no_secret() {
    let scratch = Scratch::new();
    let folder = scratch.root().join("sessions");
    fs::create_dir(&folder).unwrap();
    for name in ["a", "b"] {
        let made = session(&scratch, name);
        must_add(&made, &orders(&scratch), "orders", &[]);
        fs::rename(&made, folder.join(format!("{name}.fathom"))).unwrap();
    }
    let copies = scratch.root().join("copies");
    fs::create_dir(&copies).unwrap();
    let path = "SELECT DISTINCT path FROM file_paths";

    let mut child = Command::new(fathom())
        .args(["ui", "--redact", "--no-open", "--listen", "127.0.0.1:0"])
        .arg(&folder)
        .env("TMPDIR", &copies)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut url = String::new();
    let out = child.stdout.take().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut url).unwrap();
    let page = Page::at(url.trim_end());
    let sessions = page.json("/sessions");
    assert_eq!(sessions.as_array().unwrap().len(), 2, "{sessions}");
    let paths = |id: &str| {
        let told = page.sql(id, path).table();
        told.texts("path")
            .into_iter()
            .flatten()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let (a, b) = (paths("a.fathom"), paths("b.fathom"));
    assert!(!a.is_empty() && a == b, "one key for all: {a:?} {b:?}");
    assert!(a.iter().all(|path| !path.contains("secret")), "{a:?}");
    assert_ne!(page.sql("a.fathom", "FROM orders").status, 200);
    for address in [
        "/sessions",
        "/sessions/a.fathom",
        "/sessions/a.fathom/why",
        "/sessions/a.fathom/flame",
    ] {
        assert!(!page.get(address).text().contains("secret"), "{address}");
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    child.wait().unwrap();
    assert_eq!(fs::read_dir(&copies).unwrap().count(), 0);

    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": "query", "arguments": {"session": "a.fathom", "sql": path}}});
    let start = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}});
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let answers = |more: &[&str]| {
        let mut child = Command::new(fathom())
            .arg("mcp")
            .arg(&folder)
            .args(more)
            .env("TMPDIR", &copies)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        for message in [&start, &ready, &call] {
            writeln!(input, "{message}").unwrap();
        }
        drop(input);
        String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
    };
    assert!(answers(&[]).contains("secret-orders.db"));
    let redacted = answers(&["--redact"]);
    assert!(
        redacted.contains("\"rows\"") && !redacted.contains("secret-orders"),
        "{redacted}"
    );
    assert_eq!(fs::read_dir(&copies).unwrap().count(), 0);
    let asked = Command::new(fathom())
        .args([
            "query",
            "--redact",
            "--format",
            "csv",
            folder.join("a.fathom").to_str().unwrap(),
            path,
        ])
        .env("TMPDIR", &copies)
        .output()
        .unwrap();
    let rows = String::from_utf8(asked.stdout).unwrap();
    assert!(
        rows.lines().count() > 1 && !rows.contains("secret-orders"),
        "{rows}"
    );
}
