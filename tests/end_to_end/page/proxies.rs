//! Users whom a reverse proxy has signed in.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};

use fathom_tests::environment::must_run;
use fathom_tests::{Scratch, need_program};
use rustix::process::Signal;
use serde_json::Value;

use super::roles::{LOOK, SECRET, ask, error, served};

const PROXY: &str = "[proxy]\norigin = \"https://fathom.example\"\nsecret-file = \"secret\"\n\
                     [proxy.users]\nann = \"record\"\n[proxy.groups]\nstaff = \"look\"\nstorage = \"query\"\n";

#[test]
fn a_proxy_names_its_users() {
    let scratch = Scratch::new();
    let page = served(&scratch, PROXY);
    let get = |headers: &[(&str, &str)]| ask(&page, "get", "/api/access", headers, "");
    let role = |headers: &[(&str, &str)]| {
        let answer = get(headers);
        assert_eq!(answer.status, 200, "{headers:?}: {}", answer.text());
        let value: Value = serde_json::from_slice(&answer.body).unwrap();
        value["role"].as_str().unwrap().to_owned()
    };
    let secret = ("Fathom-Proxy-Secret", SECRET);
    let ann = ("X-Forwarded-User", "ann");
    let bob = ("X-Forwarded-User", "bob");
    let storage = ("X-Forwarded-Groups", "others, storage");
    assert_eq!(role(&[secret, ann]), "record");
    assert_eq!(role(&[secret, bob, storage]), "query");
    // Names of headers have no case.
    let lower = ("fathom-proxy-secret", SECRET);
    assert_eq!(role(&[lower, ("X-FORWARDED-USER", "ann")]), "record");
    // A proxy may have a use of its own for this header.
    let look = format!("Bearer {LOOK}");
    let token = ("Authorization", look.as_str());
    assert_eq!(role(&[secret, ann, token]), "record");
    // Without the secret the names are not heard, and a token has its own role.
    assert_eq!(role(&[ann, storage, token]), "look");
    for (headers, status) in [
        (&[ann][..], 401),
        (&[ann, storage], 401),
        (&[("Fathom-Proxy-Secret", ""), ann], 401),
        (&[("Fathom-Proxy-Secret", LOOK), ann], 401),
        (&[("Fathom-Proxy-Secret", "wrong"), ann, token], 401),
        (&[("Fathom_Proxy_Secret", SECRET), ann], 401),
        (&[("Authorization", &format!("Bearer {SECRET}")), ann], 401),
        (&[secret, secret, ann], 401),
        (&[secret, bob, ann], 401),
        (&[secret, ann, ann], 401),
        (
            &[secret, bob, storage, ("X-Forwarded-Groups", "staff")],
            401,
        ),
        (&[secret], 401),
        (&[secret, ("X-Forwarded-User", "")], 401),
        (&[secret, storage], 401),
        (&[secret, bob], 403),
        (&[secret, ("X-Forwarded-User", "Ann")], 403),
        (&[secret, ("X-Forwarded-User", "ann,bob")], 403),
        (&[secret, ("X_Forwarded_User", "ann")], 401),
        (&[secret, bob, ("X-Forwarded-Groups", "storages")], 403),
        (&[secret, ann, ("Sec-Fetch-Site", "cross-site")], 403),
        (&[secret, ann, ("Origin", "https://evil.example")], 403),
        (&[secret, ann, ("Origin", "http://fathom.example")], 403),
    ] {
        let answer = get(headers);
        assert_eq!(answer.status, status, "{headers:?}: {}", answer.text());
        error(&answer);
    }
    let post = |headers: &[(&str, &str)]| {
        ask(&page, "post", "/api/sessions/a.fathom/save", headers, "").status
    };
    let own = ("Origin", "https://fathom.example");
    assert_eq!(
        post(&[secret, ann, own, ("Sec-Fetch-Site", "same-origin")]),
        409
    );
    assert_eq!(post(&[secret, bob, storage, own]), 403);
    // The proxy may pass the name of the host on.
    let by_name = |host: &str, origin: &str| {
        let head = format!(
            "GET /api/access HTTP/1.1\r\nHost: {host}\r\nOrigin: {origin}\r\nFathom-Proxy-Secret: {SECRET}\r\n\
             X-Forwarded-User: ann\r\nConnection: close\r\n\r\n"
        );
        page.raw(&head, b"").status
    };
    assert_eq!(by_name("fathom.example", "https://fathom.example"), 200);
    assert_eq!(by_name("fathom.example", "http://fathom.example"), 403);
    assert_eq!(by_name("evil.example", "https://fathom.example"), 403);
}

#[test]
fn without_a_proxy_in_the_file_its_headers_mean_nothing() {
    let scratch = Scratch::new();
    let page = served(&scratch, "");
    let headers = [
        ("Fathom-Proxy-Secret", SECRET),
        ("X-Forwarded-User", "ann"),
        ("X-Forwarded-Groups", "storage"),
    ];
    assert_eq!(ask(&page, "get", "/api/access", &headers, "").status, 401);
    let look = format!("Bearer {LOOK}");
    let headers = [&headers[..], &[("Authorization", look.as_str())]].concat();
    let answer = ask(&page, "post", "/api/sessions/a.fathom/sql", &headers, "{}");
    assert_eq!(answer.status, 403);
}

/// nginx that signs users in by passwords, until it is dropped.
struct Nginx(Child);

impl Drop for Nginx {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(pid, Signal::TERM).ok();
        self.0.wait().ok();
    }
}

#[test]
fn nginx_signs_users_in() {
    need_program!("nginx", "openssl", "curl");
    let scratch = Scratch::new();
    // A free port, which nginx gets next.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let proxy = PROXY.replace(
        "https://fathom.example",
        &format!("http://127.0.0.1:{port}"),
    );
    let page = served(&scratch, &proxy);
    let dir = scratch.root().join("nginx");
    fs::create_dir(&dir).unwrap();
    let dir_text = dir.display();
    let passwords = "printf 'ann:%s\\nbob:%s\\n' $(openssl passwd -apr1 one) $(openssl passwd -apr1 two) >\"$0\"";
    let path = dir.join("passwords");
    must_run("sh", ["-c", passwords, path.to_str().unwrap()]);
    fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    let conf = format!(
        "pid {dir_text}/pid; error_log {dir_text}/errors; daemon off; worker_processes 1;
        events {{ worker_connections 64; }}
        http {{
            access_log off; client_body_temp_path {dir_text}/body; proxy_temp_path {dir_text}/proxy;
            fastcgi_temp_path {dir_text}/f; uwsgi_temp_path {dir_text}/u; scgi_temp_path {dir_text}/s;
            map $remote_user $groups {{ bob storage; default none; }}
            server {{
                listen 127.0.0.1:{port};
                auth_basic fathom; auth_basic_user_file {dir_text}/passwords;
                location / {{
                    proxy_pass http://{address};
                    proxy_set_header Host $http_host;
                    proxy_set_header Authorization '';
                    proxy_set_header Fathom-Proxy-Secret {SECRET};
                    proxy_set_header X-Forwarded-User $remote_user;
                    proxy_set_header X-Forwarded-Groups $groups;
                }}
            }}
        }}",
        address = page.address
    );
    fs::write(dir.join("conf"), conf).unwrap();
    // The server processes of nginx must reach their folders as another user.
    must_run("chmod", ["o+x", scratch.root().to_str().unwrap()]);
    let mut command = Command::new("nginx");
    let command = command
        .args(["-g", "user root;", "-c"])
        .arg(dir.join("conf"));
    let _nginx = Nginx(
        command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    let curl = |more: &[&str], path: &str| {
        let out = Command::new("curl")
            .args([
                "-s",
                "--retry",
                "30",
                "--retry-connrefused",
                "--retry-delay",
                "1",
                "-w",
                "\n%{http_code}",
            ])
            .args(more)
            .arg(format!("http://127.0.0.1:{port}{path}"))
            .output()
            .unwrap();
        // Answers to SQL are no text.
        let text = String::from_utf8_lossy(&out.stdout);
        let (body, status) = text.rsplit_once('\n').unwrap();
        (status.to_owned(), body.to_owned())
    };
    let role = |more: &[&str]| {
        let (status, body) = curl(more, "/api/access");
        assert_eq!(status, "200", "{more:?}: {body}");
        let value: Value = serde_json::from_str(&body).unwrap();
        format!(
            "{} {}",
            value["name"].as_str().unwrap(),
            value["role"].as_str().unwrap()
        )
    };
    assert_eq!(role(&["-u", "ann:one"]), "ann record");
    assert_eq!(role(&["-u", "bob:two"]), "bob query");
    // Its clients cannot name another user, another group, or the secret.
    let forged = [
        "-u",
        "bob:two",
        "-H",
        "X-Forwarded-User: ann",
        "-H",
        "Fathom-Proxy-Secret: x",
    ];
    assert_eq!(role(&forged), "bob query");
    assert_eq!(curl(&[], "/api/access").0, "401");
    assert_eq!(curl(&["-u", "ann:two"], "/api/access").0, "401");
    let sql = ["-u", "bob:two", "-d", "{\"sql\": \"SELECT 1\"}"];
    assert_eq!(curl(&sql, "/api/sessions/a.fathom/sql").0, "200");
    let save = ["-u", "bob:two", "-X", "POST"];
    assert_eq!(curl(&save, "/api/sessions/a.fathom/save").0, "403");
    let (status, page) = curl(&["-u", "bob:two", "--compressed"], "/");
    assert!(status == "200" && page.contains("<title>"), "{status}");
}
