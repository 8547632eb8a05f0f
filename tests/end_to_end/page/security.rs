//! Who may ask, and for what. Needs no root: the session is made of a log.

use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, Instant};

use fathom_tests::Scratch;
use fathom_tests::page::Page;
use fathom_tests::process::{children, peak_bytes};
use fathom_tests::tools::import;

/// What strace writes, with a name that would like to be markup and SQL.
const LOG: &str = r#"10 1700000000.000001 openat(AT_FDCWD, "/tmp/<img src=x onerror=alert(1)>'\"; DROP TABLE x--\n\33[2J", O_RDONLY) = 3 <0.000010>
10 1700000000.000100 read(3, "abc", 100) = 3 <0.000020>
10 1700000000.000200 openat(AT_FDCWD, "/none", O_RDONLY) = -1 ENOENT (No such file or directory) <0.000005>
10 1700000000.000300 close(3) = 0 <0.000003>
"#;
/// The name as it is.
const NAME: &str = "/tmp/<img src=x onerror=alert(1)>'\"; DROP TABLE x--\n\u{1b}[2J";

fn imported(scratch: &Scratch, name: &str) {
    let log = scratch.root().join("log");
    fs::write(&log, LOG).unwrap();
    import(&[&log], &scratch.root().join("sessions").join(name));
}

fn served(scratch: &Scratch) -> Page {
    fs::create_dir(scratch.root().join("sessions")).unwrap();
    imported(scratch, "a.fathom");
    Page::serve(&scratch.root().join("sessions"))
}

/// Every address of the page's.
const ADDRESSES: [&str; 22] = [
    "/sessions",
    "/sessions/a.fathom",
    "/sessions/a.fathom/live",
    "/sessions/a.fathom/tiles",
    "/sessions/a.fathom/timeline",
    "/sessions/a.fathom/threads",
    "/sessions/a.fathom/top",
    "/sessions/a.fathom/events",
    "/sessions/a.fathom/requests/1",
    "/sessions/a.fathom/requests/1/meanwhile",
    "/sessions/a.fathom/requests/1/path",
    "/sessions/a.fathom/offsets?file=1",
    "/sessions/a.fathom/layers",
    "/sessions/a.fathom/layers?mode=requests",
    "/sessions/a.fathom/devices",
    "/sessions/a.fathom/devices/sda?by=comm",
    "/sessions/a.fathom/devices/sda/at_once",
    "/panels",
    "/sessions/a.fathom/cache",
    "/sessions/a.fathom/findings",
    "/sessions/a.fathom/schema",
    "/sessions/a.fathom/tiles?by=file&latency=1",
];

#[test]
fn without_the_token_there_is_nothing() {
    let scratch = Scratch::new();
    let page = served(&scratch);
    let ask = |path: &str, more: &str| {
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{more}\r\n",
            page.address
        );
        page.raw(&head, b"").status
    };
    for path in ADDRESSES {
        let path = format!("/api{path}");
        assert_eq!(
            page.raw(&page.head("GET", &path, ""), b"").status,
            200,
            "{path}"
        );
        assert_eq!(ask(&path, ""), 401, "{path}");
        let mut wrong = page.token.clone().into_bytes();
        wrong[31] ^= 1;
        let wrong = String::from_utf8(wrong).unwrap();
        for token in [&wrong, "", &page.token[1..], "null"] {
            let more = format!("Authorization: Bearer {token}\r\n");
            assert_eq!(ask(&path, &more), 401, "{path} {token}");
        }
        // Nowhere else is it looked for.
        let joint = if path.contains('?') { '&' } else { '?' };
        assert_eq!(ask(&format!("{path}{joint}token={}", page.token), ""), 401);
        assert_eq!(
            ask(&path, &format!("Cookie: token={}\r\n", page.token)),
            401
        );
    }
    assert_eq!(ask("/api/compare", ""), 401);
    assert_eq!(ask("/api/nothing", ""), 401);
    // The page itself holds no secret.
    assert_eq!(ask("/", ""), 200);
}

#[test]
fn other_hosts_and_sites_are_refused() {
    let scratch = Scratch::new();
    let page = served(&scratch);
    let port = page.address.port();
    let ask = |host: &str, more: &str| {
        let head = format!(
            "GET /api/sessions HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {}\r\n\
             Connection: close\r\n{more}\r\n",
            page.token
        );
        page.raw(&head, b"").status
    };
    for host in ["127.0.0.1", "localhost", "[::1]"] {
        let host = format!("{host}:{port}");
        assert_eq!(ask(&host, ""), 200, "{host}");
        assert_eq!(ask(&host, &format!("Origin: http://{host}\r\n")), 200);
        for origin in ["http://evil.example", "null", &format!("https://{host}")] {
            assert_eq!(
                ask(&host, &format!("Origin: {origin}\r\n")),
                403,
                "{origin}"
            );
        }
    }
    for host in [
        format!("evil.example:{port}"),
        "127.0.0.1".to_owned(),
        format!("127.0.0.1:{}", port.wrapping_add(1)),
        format!("localhost.evil.example:{port}"),
    ] {
        assert_eq!(ask(&host, ""), 403, "{host}");
    }
}

#[test]
fn nothing_outside_of_the_directory_is_reached() {
    let scratch = Scratch::new();
    let page = served(&scratch);
    let sessions = scratch.root().join("sessions");
    // A session beside the directory, links to it, and one with a link in it.
    fs::rename(sessions.join("a.fathom"), scratch.root().join("outside")).unwrap();
    imported(&scratch, "a.fathom");
    imported(&scratch, "b.fathom");
    symlink(scratch.root().join("outside"), sessions.join("link.fathom")).unwrap();
    fs::remove_dir_all(sessions.join("b.fathom/syscalls")).unwrap();
    symlink(
        scratch.root().join("outside/syscalls"),
        sessions.join("b.fathom/syscalls"),
    )
    .unwrap();
    for id in [
        "..%2foutside",
        "%2e%2e%2foutside",
        "..",
        "%2e%2e",
        ".",
        "link.fathom",
        "a.fathom%2f..%2f..%2foutside",
        "a.fathom%00",
        "%2ftmp",
        "",
        "nothing",
    ] {
        for path in ["", "/tiles", "/live", "/findings"] {
            let status = page.get(&format!("/sessions/{id}{path}")).status;
            assert_eq!(status, 404, "{id}{path}");
        }
    }
    let refused = page.get("/sessions/b.fathom/tiles");
    assert_eq!(refused.status, 500, "{}", refused.text());
    assert!(
        refused.text().contains("symbolic link"),
        "{}",
        refused.text()
    );
    let all = page.json("/sessions");
    let ids: Vec<_> = all.as_array().unwrap().iter().map(|s| &s["id"]).collect();
    assert_eq!(ids, ["a.fathom", "b.fathom"]);
    for path in ["/../../etc/passwd", "/%2e%2e/Cargo.toml", "/assets/../../x"] {
        assert_eq!(
            page.raw(&page.head("GET", path, ""), b"").status,
            404,
            "{path}"
        );
    }
}

#[test]
fn answers_tell_browsers_to_be_careful() {
    let scratch = Scratch::new();
    let page = served(&scratch);
    for path in ["/", "/api/sessions", "/api/nothing", "/nothing"] {
        let answer = page.raw(&page.head("GET", path, ""), b"");
        let policy = answer.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'self'"), "{path}");
        assert!(policy.contains("frame-ancestors 'none'") && !policy.contains("unsafe"));
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-resource-policy", "same-origin"),
        ] {
            assert_eq!(answer.header(name), Some(value), "{path}");
        }
        assert!(answer.header("access-control-allow-origin").is_none());
        assert!(answer.header("cache-control").is_some());
    }
    let preflight = "Origin: http://evil.example\r\nAccess-Control-Request-Method: POST\r\n";
    let answer = page.raw(&page.head("OPTIONS", "/api/sessions", preflight), b"");
    assert_eq!(answer.status, 403);
}

#[test]
fn names_arrive_byte_for_byte() {
    let scratch = Scratch::new();
    let page = served(&scratch);
    let events = page.table("/sessions/a.fathom/events?columns=syscall,path");
    assert_eq!(events.texts("path")[0], Some(NAME));
    let timeline = page.table("/sessions/a.fathom/timeline");
    assert!(timeline.texts("label").contains(&Some(NAME)));
    let top = page.table("/sessions/a.fathom/top?by=file");
    assert!(top.texts("label").contains(&Some(NAME)));
    // And as part of a filter: what would end a text in SQL is a part of it.
    let filter = "%7B%22path%22%3A%22%27%5C%22%3B%20DROP%22%7D";
    let events = page.table(&format!("/sessions/a.fathom/events?f={filter}"));
    assert_eq!(events.meta["total"], 3.0);
    let answer = page.get("/sessions/a.fathom/events");
    assert_ne!(answer.header("content-type"), Some("text/html"));
}

#[test]
fn nonsense_is_refused_with_reasons() {
    let scratch = Scratch::new();
    let page = served(&scratch);
    for (path, status) in [
        ("/sessions/a.fathom/tiles?f=%7B%22pids%22%3A%5B1%5D%7D", 400),
        ("/sessions/a.fathom/tiles?f=nonsense", 400),
        ("/sessions/a.fathom/tiles?by=color", 400),
        ("/sessions/a.fathom/tiles?from=5&to=4", 400),
        ("/sessions/a.fathom/tiles?from=NaN", 400),
        ("/sessions/a.fathom/tiles?pixels=-1", 400),
        ("/sessions/a.fathom/timeline?lanes=1;2", 400),
        ("/sessions/a.fathom/top?sort=color", 400),
        ("/sessions/a.fathom/events?sort=color", 400),
        ("/sessions/a.fathom/events?columns=rid,color", 400),
        ("/sessions/a.fathom/events?sort=dur_ns%3BDROP", 400),
        ("/sessions/a.fathom/requests/x", 400),
        ("/sessions/a.fathom/requests/99999", 404),
        ("/sessions/a.fathom/offsets", 400),
        ("/fleet", 400),
        ("/fleet?by=color", 400),
        ("/fleet?by=finding,device", 400),
        ("/fleet?by=day&top=-1", 400),
        ("/compare", 400),
        ("/compare?before=a.fathom", 400),
        ("/compare?before=a.fathom&after=..%2Fa.fathom", 404),
        ("/nothing", 404),
    ] {
        let answer = page.get(path);
        assert_eq!(answer.status, status, "{path}: {}", answer.text());
        let error: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
        for member in ["what", "subject", "next"] {
            assert!(error["error"][member].is_string(), "{path}: {error}");
        }
    }
}

#[test]
fn sql_only_selects_from_its_session() {
    let scratch = Scratch::new();
    let page = served(&scratch);
    let answer = page.sql(
        "a.fathom",
        "SELECT syscall, count(*) AS n FROM syscalls GROUP BY 1 ORDER BY 1",
    );
    let table = answer.table();
    assert_eq!(
        table.texts("syscall"),
        [Some("close"), Some("openat"), Some("read")]
    );
    assert_eq!(table.numbers("n"), [1.0, 2.0, 1.0]);
    assert_eq!(
        (&table.meta["rows"], &table.meta["cut"]),
        (&3.into(), &false.into())
    );
    for sql in [
        "DROP TABLE session",
        "COPY syscalls TO '/tmp/x'",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT 1; SELECT 2",
        "ATTACH '/tmp/x'",
        "SET memory_limit = '10GB'",
        "SELECT getenv('HOME')",
        "SELEC 1",
        "SELECT * FROM nothing",
    ] {
        let answer = page.sql("a.fathom", sql);
        assert_eq!(answer.status, 422, "{sql}: {}", answer.text());
    }
    let long = page.sql("a.fathom", &format!("SELECT '{}'", "x".repeat(300_000)));
    assert_eq!(long.status, 413);
}

/// CPU time of a process and of those that it has started, clock ticks.
fn cpu_ticks(pid: u32) -> u64 {
    let children = children(pid).into_iter().map(ticks_of).sum::<u64>();
    children + ticks_of(pid)
}

/// That of one; 0 when it has ended.
fn ticks_of(pid: u32) -> u64 {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return 0;
    };
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split(' ').collect();
    fields[12].parse::<u64>().unwrap() + fields[13].parse::<u64>().unwrap()
}

#[test]
fn a_query_ends_with_its_connection() {
    let scratch = Scratch::new();
    let page = served(&scratch);
    let endless = "SELECT count(*) FROM range(10000000) a, range(10000000) b, range(1000) c \
                   WHERE a.range * b.range + c.range = 7";
    let body = serde_json::json!({ "sql": endless }).to_string();
    let more = format!("Content-Length: {}\r\n", body.len());
    let head = page.head("POST", "/api/sessions/a.fathom/sql", &more);
    let mut dropped = TcpStream::connect(page.address).unwrap();
    std::io::Write::write_all(&mut dropped, format!("{head}{body}").as_bytes()).unwrap();
    std::thread::sleep(Duration::from_millis(700));
    let pid = page.pid();
    let before = cpu_ticks(pid);
    std::thread::sleep(Duration::from_millis(300));
    assert!(cpu_ticks(pid) > before, "the query does not run");
    // Others get their turn meanwhile.
    page.table("/sessions/a.fathom/tiles");
    drop(dropped);
    // The next one waits for the first: long queries run one at a time.
    let started = Instant::now();
    let answer = page.sql("a.fathom", "SELECT 1 AS one");
    assert_eq!(answer.table().numbers("one"), [1.0]);
    assert!(started.elapsed() < Duration::from_secs(15));
    std::thread::sleep(Duration::from_millis(300));
    let idle = cpu_ticks(pid);
    std::thread::sleep(Duration::from_millis(500));
    assert!(cpu_ticks(pid) - idle < 10, "the query still runs");
}

/// What the server's own memory grows by when its page is asked for `sql`.
fn growth(page: &Page, sql: &str) -> (u16, String, u64) {
    let before = peak_bytes(page.pid()).unwrap();
    let answer = page.sql("a.fathom", sql);
    let after = peak_bytes(page.pid()).unwrap();
    (answer.status, answer.text(), after.saturating_sub(before))
}

#[test]
fn sql_takes_no_memory_of_the_server() {
    let scratch = Scratch::new();
    let page = served(&scratch);
    page.sql("a.fathom", "SELECT 1").table();
    // Within the limit it is an answer; beyond, an error that says so.
    let (status, text, grown) = growth(&page, "SELECT length(repeat('x', 300000000)) AS n");
    assert_eq!(status, 200, "{text}");
    assert!(grown < 64 << 20, "{grown}");
    let (status, text, grown) = growth(&page, "SELECT length(repeat('x', 4000000000)) AS n");
    assert_eq!(status, 422, "{text}");
    assert!(
        text.contains("more memory than its limit of 1024 MiB"),
        "{text}"
    );
    assert!(text.contains("--memory"), "{text}");
    assert!(grown < 64 << 20, "{grown}");
    // The next one has a worker of its own.
    assert_eq!(
        page.sql("a.fathom", "SELECT 1 AS one")
            .table()
            .numbers("one"),
        [1.0]
    );
}

#[test]
fn a_worker_ends_with_its_connection_whatever_it_does() {
    let scratch = Scratch::new();
    let page = served(&scratch);
    let body = serde_json::json!({ "sql": "SELECT pg_sleep(600)" }).to_string();
    let more = format!("Content-Length: {}\r\n", body.len());
    let head = page.head("POST", "/api/sessions/a.fathom/sql", &more);
    let mut dropped = TcpStream::connect(page.address).unwrap();
    std::io::Write::write_all(&mut dropped, format!("{head}{body}").as_bytes()).unwrap();
    let until = |what: &str, condition: &dyn Fn() -> bool| {
        let started = Instant::now();
        while !condition() {
            assert!(started.elapsed() < Duration::from_secs(20), "{what}");
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    until("a worker", &|| !children(page.pid()).is_empty());
    let worker = children(page.pid())[0];
    drop(dropped);
    until("its end", &|| !children(page.pid()).contains(&worker));
    assert_eq!(
        page.sql("a.fathom", "SELECT 1 AS one")
            .table()
            .numbers("one"),
        [1.0]
    );
}

#[test]
fn a_broken_session_hurts_no_other() {
    let scratch = Scratch::new();
    let page = served(&scratch);
    let sessions = scratch.root().join("sessions");
    let folder = |name: &str| {
        let folder = sessions.join(name);
        fs::create_dir(&folder).unwrap();
        folder
    };
    let fifo = folder("fifo.fathom").join("session.json");
    fathom_tests::environment::must_run("mkfifo", [&fifo]);
    fs::write(folder("damaged.fathom").join("session.json"), "{\"schema").unwrap();
    fs::write(
        folder("deep.fathom").join("session.json"),
        "[".repeat(1 << 20),
    )
    .unwrap();
    fs::write(
        folder("huge.fathom").join("session.json"),
        vec![b' '; 50 << 20],
    )
    .unwrap();
    let closed = folder("closed.fathom");
    fs::set_permissions(&closed, std::os::unix::fs::PermissionsExt::from_mode(0o0)).unwrap();
    fs::write(folder("no-session").join("file"), "").unwrap();
    for _ in 0..2 {
        let all = page.json("/sessions");
        let all = all.as_array().unwrap();
        let ids: Vec<_> = all.iter().map(|s| s["id"].as_str().unwrap()).collect();
        assert!(
            ids.contains(&"a.fathom") && !ids.contains(&"no-session"),
            "{ids:?}"
        );
        for session in all {
            let whole = session["id"] == "a.fathom";
            assert_eq!(session["error"].is_null(), whole, "{session}");
        }
        assert!(all.len() >= 5, "{ids:?}");
    }
    assert_eq!(page.json("/sessions/a.fathom")["stored"], 4);
    fs::set_permissions(&closed, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    // Lets go who still waits for a writer.
    drop(
        fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(&fifo)
            .unwrap(),
    );
}

#[test]
fn without_the_token_nobody_takes_the_place_of_who_has_it() {
    let scratch = Scratch::new();
    let page = served(&scratch);
    // Heads that never end, and connections that send nothing.
    let connect = || TcpStream::connect(page.address).unwrap();
    let half_open: Vec<TcpStream> = (0..300)
        .map(|_| {
            let mut stream = connect();
            std::io::Write::write_all(&mut stream, b"GET /api/sessions HTTP/1.1\r\nHost: x").ok();
            stream
        })
        .collect();
    let ask = || {
        let started = Instant::now();
        assert_eq!(page.json("/sessions")[0]["id"], "a.fathom");
        started.elapsed()
    };
    println!("beside {} half-open ones: {:?}", half_open.len(), ask());
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let raised = rustix::process::Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, raised).unwrap();
    let idle: Vec<TcpStream> = (0..2000).map(|_| connect()).collect();
    println!("beside {} idle ones: {:?}", idle.len(), ask());
    // One that has shown the token is not who makes room.
    let mut live = connect();
    let head = page
        .head("GET", "/api/sessions/a.fathom", "")
        .replace("close", "keep-alive");
    std::io::Write::write_all(&mut live, head.as_bytes()).unwrap();
    let mut byte = [0];
    assert_eq!(std::io::Read::read(&mut live, &mut byte).unwrap(), 1);
    let more: Vec<TcpStream> = (0..400).map(|_| connect()).collect();
    ask();
    std::io::Write::write_all(&mut live, head.as_bytes()).unwrap();
    let mut answers = Vec::new();
    live.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
    std::io::Read::read_to_end(&mut live, &mut answers).ok();
    let text = String::from_utf8_lossy(&answers);
    assert_eq!(text.matches("HTTP/1.1 200").count(), 1, "{text}");
    drop((half_open, idle, more));
}

#[test]
fn one_session_and_the_end() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.root().join("sessions")).unwrap();
    imported(&scratch, "a.fathom");
    let page = Page::serve(&scratch.root().join("sessions/a.fathom"));
    let all = page.json("/sessions");
    assert_eq!(all[0]["id"], "a.fathom");
    assert_eq!(all[0]["source"], "strace");
    assert_eq!(page.json("/sessions/a.fathom")["stored"], 4);
    assert_eq!(page.get("/sessions/other").status, 404);
    assert_eq!(page.interrupt(), Some(0));
    let none = Path::new("/nonexistent/nowhere");
    let output = std::process::Command::new(fathom_tests::environment::fathom())
        .arg("ui")
        .arg(none)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
}
