//! What each role may do, with real requests, and the files that give roles to tokens.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use fathom_tests::environment::fathom;
use fathom_tests::page::{Answer, Page};
use fathom_tests::session::{meta, query};
use fathom_tests::tools::{import, project};
use fathom_tests::{Record, Running, Scratch, need_root};
use rustix::process::Signal;
use serde_json::{Value, json};

const LOG: &str = "10 1700000000.000100 read(3, \"abc\", 100) = 3 <0.000020>\n";

pub(super) const LOOK: &str = "11111111111111111111111111111111";
const QUERY: &str = "22222222222222222222222222222222";
const RECORD: &str = "33333333333333333333333333333333";
pub(super) const SECRET: &str = "ssssssssssssssssssssssssssssssss";

/// Addresses that need more than to look, and the least token for them.
const MORE: [(&str, &str, &str); 4] = [
    ("post", "/sessions/{id}/sql", QUERY),
    ("get", "/panels", QUERY),
    ("post", "/sessions/{id}/save", RECORD),
    ("post", "/sessions/{id}/stop", RECORD),
];

fn write(path: &Path, text: &str, mode: u32) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// An access file with a token for each role, and more.
fn access(scratch: &Scratch, more: &str) -> PathBuf {
    let dir = scratch.root().join("access");
    fs::create_dir_all(&dir).unwrap();
    fs::set_permissions(&dir, Permissions::from_mode(0o700)).unwrap();
    let mut text = String::new();
    for (role, token) in [("look", LOOK), ("query", QUERY), ("record", RECORD)] {
        write(&dir.join(role), &format!("{token}\n"), 0o600);
        text +=
            &format!("[[token]]\nrole = \"{role}\"\nfile = \"{role}\"\nname = \"{role} client\"\n");
    }
    write(&dir.join("secret"), SECRET, 0o640);
    let path = dir.join("access.toml");
    write(&path, &(text + more), 0o644);
    path
}

fn imported(scratch: &Scratch) -> PathBuf {
    let sessions = scratch.root().join("sessions");
    fs::create_dir(&sessions).unwrap();
    let log = scratch.root().join("log");
    fs::write(&log, LOG).unwrap();
    import(&[&log], &sessions.join("a.fathom"));
    sessions
}

pub(super) fn served(scratch: &Scratch, more: &str) -> Page {
    let access = access(scratch, more);
    Page::serve_with(
        &imported(scratch),
        &[OsStr::new("--access"), access.as_os_str()],
    )
}

/// A request with exactly these headers besides `Host`.
pub(super) fn ask(
    page: &Page,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Answer {
    let mut head = format!(
        "{} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: {}\r\n",
        method.to_uppercase(),
        page.address,
        body.len()
    );
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    page.raw(&format!("{head}\r\n"), body.as_bytes())
}

fn with_token(page: &Page, token: &str, method: &str, path: &str, body: &str) -> Answer {
    let bearer = format!("Bearer {token}");
    ask(page, method, path, &[("Authorization", &bearer)], body)
}

pub(super) fn error(answer: &Answer) -> Value {
    let value: Value = serde_json::from_slice(&answer.body).unwrap();
    for member in ["what", "subject", "next"] {
        assert!(value["error"][member].is_string(), "{value}");
    }
    value["error"].clone()
}

fn document() -> Value {
    let path = project().join("docs/reference/openapi.json");
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn each_role_against_each_address() {
    let scratch = Scratch::new();
    let page = served(&scratch, "");
    assert_eq!(page.token, "", "no token is printed");
    let document = document();
    let mut asked = 0;
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let least = MORE.iter().find(|(m, p, _)| m == method && p == path);
            let least = least.map_or(LOOK, |(_, _, token)| *token);
            // The document says the same.
            let said = operation["security"][0]["token"][0].as_str().unwrap();
            let role = [(LOOK, "look"), (QUERY, "query"), (RECORD, "record")];
            let role = role
                .into_iter()
                .find(|(token, _)| *token == least)
                .unwrap()
                .1;
            assert_eq!(said, role, "{method} {path}");
            let address = path
                .replace("{id}", "a.fathom")
                .replace("{rid}", "1")
                .replace("{name}", "sda")
                .replace("{question}", "blame-threads");
            let address = format!("/api{address}");
            let body = match path.as_str() {
                "/sessions/{id}/sql" => json!({ "sql": "SELECT 1" }).to_string(),
                "/share" => {
                    json!({ "title": "", "start": "", "views": [], "questions": [] }).to_string()
                }
                _ => String::new(),
            };
            assert_eq!(
                ask(&page, method, &address, &[], &body).status,
                401,
                "{address}"
            );
            for token in [LOOK, QUERY, RECORD] {
                let answer = with_token(&page, token, method, &address, &body);
                // Tokens are in the order of the roles.
                if token >= least {
                    assert!(
                        ![401, 403].contains(&answer.status),
                        "{token} {method} {path}: {}",
                        answer.text()
                    );
                } else {
                    assert_eq!(answer.status, 403, "{token} {method} {path}");
                    let error = error(&answer);
                    assert_eq!(error["what"], "your role does not allow this");
                    assert!(error["next"].as_str().unwrap().contains(role), "{error}");
                }
                asked += 1;
            }
            // The token of no file, and one that is not whole.
            for wrong in [&LOOK[1..], "", SECRET] {
                assert_eq!(
                    with_token(&page, wrong, method, &address, &body).status,
                    401
                );
            }
        }
    }
    assert!(asked >= 3 * 38, "{asked}");
    for (token, role) in [(LOOK, "look"), (QUERY, "query"), (RECORD, "record")] {
        let answer = with_token(&page, token, "get", "/api/access", "");
        let answer: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(answer["role"], role);
        assert_eq!(answer["name"], format!("{role} client"));
        assert_eq!(answer["saves"], role == "record");
        assert_eq!(answer["stops"], false);
    }
    // HEAD is what GET is; other ways of writing the address are other addresses.
    assert_eq!(
        with_token(&page, LOOK, "head", "/api/panels", "").status,
        403
    );
    for other in [
        "/api/sessions/a.fathom/SQL",
        "/api//sessions/a.fathom/sql",
        "/api/sessions/a.fathom/sql/",
    ] {
        assert_eq!(
            with_token(&page, LOOK, "post", other, "{}").status,
            404,
            "{other}"
        );
    }
    let encoded = with_token(&page, LOOK, "post", "/api/sessions/a%2Efathom/sql", "{}");
    assert_eq!(encoded.status, 403);
}

#[test]
fn the_printed_token_may_query() {
    let scratch = Scratch::new();
    let page = Page::serve(&imported(&scratch));
    assert_eq!(page.token.len(), 32);
    let access = page.json("/access");
    assert_eq!(
        (&access["role"], &access["name"]),
        (&json!("query"), &Value::Null)
    );
    assert_eq!(
        (&access["saves"], &access["stops"]),
        (&json!(false), &json!(false))
    );
    assert_eq!(page.sql("a.fathom", "SELECT 1").status, 200);
    let token = page.token.clone();
    for address in ["save", "stop"] {
        let path = format!("/api/sessions/a.fathom/{address}");
        let answer = with_token(&page, &token, "post", &path, "");
        assert_eq!(answer.status, 403, "{}", answer.text());
        assert_eq!(
            page.get(&format!("/sessions/a.fathom/{address}")).status,
            404
        );
    }
}

#[test]
fn what_nobody_records_is_not_saved_or_stopped() {
    let scratch = Scratch::new();
    let page = served(&scratch, "");
    for address in ["save", "stop"] {
        let path = format!("/api/sessions/a.fathom/{address}");
        let answer = with_token(&page, RECORD, "post", &path, "");
        assert_eq!(answer.status, 409, "{}", answer.text());
        assert_eq!(error(&answer)["what"], "this session is not being recorded");
    }
}

#[test]
fn hashes_of_content_take_role_query() {
    let scratch = Scratch::new();
    let page = served(&scratch, "");
    let get = |token: &str, path: &str| {
        with_token(
            &page,
            token,
            "get",
            &format!("/api/sessions/a.fathom/{path}"),
            "",
        )
    };
    // Names of columns are plain bytes in the schema of an Arrow stream, and keys in JSON.
    let has = |answer: &Answer, name: &str| {
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer
            .body
            .windows(name.len())
            .any(|w| w == name.as_bytes())
    };
    let events = ["events", "events?columns=rid,hash,content"];
    for path in events {
        assert!(has(&get(QUERY, path), "hash"), "{path}");
        assert!(!has(&get(LOOK, path), "hash"), "{path}");
        assert!(has(&get(LOOK, path), "rid"), "{path}");
    }
    let rid = page_rid(&page);
    let request = format!("requests/{rid}");
    assert!(has(&get(QUERY, &request), "\"hash\""));
    assert!(!has(&get(LOOK, &request), "\"hash\""));
    for (token, sort, status) in [
        (LOOK, "hash", 403),
        (LOOK, "-hash", 403),
        (QUERY, "-hash", 200),
        (LOOK, "content", 400),
        (QUERY, "content", 400),
        (RECORD, "-content", 400),
        (LOOK, "-bytes", 200),
        (LOOK, "rid&columns=hash", 400),
        (QUERY, "rid&columns=hash", 200),
        (QUERY, "rid&columns=content", 400),
    ] {
        let answer = get(token, &format!("events?sort={sort}"));
        assert_eq!(answer.status, status, "{token} {sort}: {}", answer.text());
    }
}

/// The id of the only call of the session.
fn page_rid(page: &Page) -> i64 {
    let path = "/api/sessions/a.fathom/events?columns=rid";
    with_token(page, LOOK, "get", path, "")
        .table()
        .numbers("rid")[0] as i64
}

#[test]
fn a_shared_file_has_only_what_its_maker_may_ask() {
    let scratch = Scratch::new();
    let page = served(&scratch, "");
    let sql = json!({ "sql": "SELECT 41 + 1 AS answer" }).to_string();
    let body = json!({ "title": "t", "start": "?s=a.fathom", "views": [], "questions": [
        { "path": "/sessions/a.fathom", "body": null },
        { "path": "/sessions/a.fathom/sql", "body": sql },
        { "path": "/panels", "body": null },
        { "path": "/sessions/a.fathom/stop", "body": "" },
        { "path": "/access", "body": null },
        { "path": "/sessions/a.fathom/live?x", "body": null },
    ]})
    .to_string();
    for (token, missing) in [(LOOK, 5), (QUERY, 3), (RECORD, 3)] {
        let answer = with_token(&page, token, "post", "/api/share", &body);
        assert_eq!(answer.status, 200, "{}", answer.text());
        let text = answer.text();
        assert!(text.contains(&format!("\"missing\":{missing}")), "{token}");
        assert_eq!(text.contains("/sql\",\"body\""), token != LOOK);
        assert!(!text.contains(token));
    }
}

#[test]
fn files_that_others_read_or_write_are_refused() {
    let scratch = Scratch::new();
    let sessions = imported(&scratch);
    let path = access(&scratch, "");
    let refused = |part: &str| {
        let out = Command::new("timeout")
            .arg("20")
            .arg(fathom())
            .args(["ui", "--no-open", "--listen", "127.0.0.1:0", "--access"])
            .arg(&path)
            .arg(&sessions)
            .output()
            .unwrap();
        let errors = String::from_utf8(out.stderr).unwrap();
        assert_eq!(out.status.code(), Some(2), "{errors}");
        assert!(
            out.stdout.is_empty() && errors.contains(part),
            "{part}: {errors}"
        );
        assert!(!errors.contains(LOOK), "{errors}");
    };
    let token = path.with_file_name("look");
    write(&token, LOOK, 0o644);
    refused("every user can read this secret");
    write(&token, LOOK, 0o622);
    refused("other users can write it");
    write(&token, "short", 0o600);
    refused("too short");
    write(&token, LOOK, 0o600);
    write(&path, "[proxy]\n", 0o600);
    refused("origin");
    write(&path, &format!("token = {LOOK:?}\n"), 0o600);
    refused("line 1: expected");
    fs::remove_file(&path).unwrap();
    refused("access.toml");
}

#[test]
fn a_wrong_access_file_replaces_no_session() {
    need_root!();
    let scratch = Scratch::new();
    let session = imported(&scratch).join("a.fathom");
    let before = fs::read(session.join("session.json")).unwrap();
    let missing = scratch.root().join("missing.toml");
    let out = Command::new("timeout")
        .arg("20")
        .arg(fathom())
        .args(["record", "--force", "--ui", "--no-open", "--output"])
        .arg(&session)
        .arg("--access")
        .arg(&missing)
        .args(["--", "true"])
        .output()
        .unwrap();
    let errors = String::from_utf8(out.stderr).unwrap();
    assert_eq!(out.status.code(), Some(2), "{errors}");
    assert!(errors.contains("missing.toml"), "{errors}");
    assert_eq!(fs::read(session.join("session.json")).unwrap(), before);
}

/// Works until a file is there.
const SCRIPT: &str = "while [ ! -e \"$0/end\" ]; do echo x >\"$0/file\"; cat \"$0/file\" >/dev/null; sleep 0.05; done; exit 3";

/// The page of a recording that has told its address, which has no token.
fn page_of(running: &mut Running) -> Page {
    let started = Instant::now();
    loop {
        let errors = running.errors();
        let url = errors
            .lines()
            .find_map(|line| line.strip_prefix("fathom: http://"));
        if let Some(address) = url.and_then(|url| url.strip_suffix('/')) {
            return Page::at(&format!("http://{address}/"));
        }
        assert!(started.elapsed() < Duration::from_secs(60), "{errors}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn saved(answer: &Answer) -> String {
    assert_eq!(answer.status, 200, "{}", answer.text());
    let value: Value = serde_json::from_slice(&answer.body).unwrap();
    value["name"].as_str().unwrap().to_owned()
}

#[test]
fn clients_with_role_record_save_and_stop() {
    need_root!();
    let scratch = Scratch::new();
    let file = access(&scratch, "");
    let mut running = Record::named(&scratch, "live")
        .options(["--ui", "--no-open", "--listen", "127.0.0.1:0", "--access"])
        .options([&file])
        .command(["sh", "-c", SCRIPT])
        .command([scratch.work()])
        .spawn();
    let page = page_of(&mut running);
    let session = running.session();
    let folder = session.parent().unwrap().to_owned();
    let post = |page: &Page, token: &str, what: &str| {
        let path = format!("/api/sessions/live.fathom/{what}");
        with_token(page, token, "post", &path, "")
    };
    let rows = |session: &Path| {
        query(
            session,
            "SELECT count(*) AS n FROM syscalls WHERE syscall = 'openat'",
        )[0]
        .int("n")
        .unwrap()
    };
    running.until("calls", || {
        meta(&session)["totals"]["stored"].as_i64() > Some(100)
    });
    for token in [LOOK, QUERY] {
        assert_eq!(post(&page, token, "save").status, 403);
        assert_eq!(post(&page, token, "stop").status, 403);
    }
    let access = with_token(&page, RECORD, "get", "/api/access", "");
    let access: Value = serde_json::from_slice(&access.body).unwrap();
    assert_eq!(
        (&access["saves"], &access["stops"]),
        (&json!(true), &json!(true))
    );
    let first = saved(&post(&page, RECORD, "save"));
    assert!(rows(&folder.join(&first)) > 0);
    assert!(
        running.errors().contains("record client (page) saved"),
        "{}",
        running.errors()
    );

    // Another server saves it too, but does not stop what it does not record.
    let other = Page::serve_with(&folder, &[OsStr::new("--access"), file.as_os_str()]);
    let second = saved(&post(&other, RECORD, "save"));
    assert_ne!(first, second);
    assert!(rows(&folder.join(&second)) >= rows(&folder.join(&first)));
    let answer = post(&other, RECORD, "stop");
    assert_eq!(answer.status, 409, "{}", answer.text());
    let described = with_token(&other, RECORD, "get", "/api/sessions/live.fathom", "");
    let described: Value = serde_json::from_slice(&described.body).unwrap();
    assert_eq!(described["live"], true);

    // The recording ends; the command, and the page, do not.
    assert_eq!(post(&page, RECORD, "stop").status, 200);
    running.until("the end of the recording", || {
        post(&page, RECORD, "save").status == 409
    });
    assert!(
        running
            .errors()
            .contains("record client (page) stopped the recording")
    );
    let stored = rows(&session);
    let file = scratch.work().join("file");
    fs::remove_file(&file).unwrap();
    running.until("the command's next file", || file.exists());
    assert_eq!(rows(&session), stored, "nothing more is recorded");
    fs::write(scratch.work().join("end"), "").unwrap();
    let started = Instant::now();
    while !running.errors().contains("the page stays") {
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "{}",
            running.errors()
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(post(&page, RECORD, "stop").status, 409);
    running.signal(Signal::INT);
    let recording = running.wait().must_exit(3);
    recording.balanced();
}
