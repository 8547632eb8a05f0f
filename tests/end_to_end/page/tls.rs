//! The page for other machines: by TLS, or after an explicit consent.

use std::path::Path;
use std::process::Command;

use fathom_tests::certificates::certificate;
use fathom_tests::environment::fathom;
use fathom_tests::page::Page;
use fathom_tests::{Record, Scratch, need_program, need_root};

/// Asks an address with a certificate as the only authority, and prints status and answer.
const CLIENT: &str = "
import ssl, sys, urllib.request
url, token, certificate = sys.argv[1:]
trusted = ssl.create_default_context(cafile=certificate)
request = urllib.request.Request(url, headers={'Authorization': 'Bearer ' + token})
try:
    with urllib.request.urlopen(request, context=trusted) as answer:
        print(answer.status, answer.read().decode())
except urllib.error.HTTPError as error:
    print(error.code)
";

/// Exit status and errors of `fathom ui` that is to refuse its options.
fn refused(session: &Path, options: &[&str]) -> (Option<i32>, String) {
    let out = Command::new("timeout")
        .arg("20")
        .arg(fathom())
        .arg("ui")
        .arg(session)
        .arg("--no-open")
        .args(options)
        .output()
        .unwrap();
    assert!(out.stdout.is_empty(), "{out:?}");
    (out.status.code(), String::from_utf8(out.stderr).unwrap())
}

#[test]
fn other_machines_come_by_tls() {
    need_root!();
    need_program!("openssl", "python3");
    let scratch = Scratch::new();
    let recording = Record::new(&scratch).command(["true"]).run().must_exit(0);
    let session = recording.session.as_path();
    let [own, key] = certificate(&scratch, "own");
    let [other, other_key] = certificate(&scratch, "other");

    let with = ["--tls-certificate", &own, "--tls-key", &key].map(std::ffi::OsStr::new);
    let page = Page::serve_with(session, &with);
    let (url, token) = (page.url(), page.token.as_str());
    let asks = |address: &str, token: &str, authority: &str| {
        let out = Command::new("python3")
            .args(["-c", CLIENT, &format!("{url}{address}"), token, authority])
            .output()
            .unwrap();
        String::from_utf8(out.stdout).unwrap()
    };
    assert!(url.starts_with("https://127.0.0.1:"), "{url}");
    let answer = asks("/api/sessions", token, &own);
    assert!(answer.starts_with("200 [{\"id\":"), "{answer}");
    assert_eq!(asks("/api/sessions", "0", &own).trim(), "401");
    assert!(asks("/", "", &own).contains("<title>"));
    // Another certificate is not trusted, and nothing goes over the connection.
    assert_eq!(asks("/api/sessions", token, &other), "");

    for (options, part) in [
        (&["--listen", "0.0.0.0:0"][..], "--plain-http"),
        (
            &["--listen", "127.0.0.1:0", "--tls-certificate", &own][..],
            "--tls-key",
        ),
        (
            &["--tls-certificate", &own, "--tls-key", &key][..],
            "--listen",
        ),
        (
            &[
                "--listen",
                "0.0.0.0:0",
                "--tls-certificate",
                &own,
                "--tls-key",
                &other_key,
            ][..],
            "its own key",
        ),
        (
            &[
                "--listen",
                "0.0.0.0:0",
                "--tls-certificate",
                &key,
                "--tls-key",
                &key,
            ][..],
            "certificate",
        ),
        (
            &[
                "--listen",
                "0.0.0.0:0",
                "--tls-certificate",
                "/nowhere",
                "--tls-key",
                &key,
            ][..],
            "/nowhere",
        ),
    ] {
        let (status, errors) = refused(session, options);
        assert_eq!(status, Some(2), "{options:?}: {errors}");
        assert!(errors.contains(part), "{options:?}: {errors}");
    }
}
