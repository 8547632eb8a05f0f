//! Options in the user's file.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use fathom_tests::environment::fathom;
use fathom_tests::session::meta;
use fathom_tests::{Scratch, need_root};

fn run(home: &Path, args: &[&str]) -> Output {
    let output = Command::new(fathom())
        .args(args)
        .env("XDG_CONFIG_HOME", home)
        .current_dir(home)
        .output();
    output.unwrap()
}

/// A directory of settings with this file, which only its owner can write.
fn home(scratch: &Scratch, text: &str) -> std::path::PathBuf {
    let home = scratch.root().join("home");
    let dir = home.join("fathom");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("config.toml"), text).unwrap();
    for path in [&home, &dir] {
        fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    }
    fs::set_permissions(dir.join("config.toml"), Permissions::from_mode(0o644)).unwrap();
    home
}

#[test]
fn options_of_the_file_count_unless_they_are_given() {
    need_root!();
    let scratch = Scratch::new();
    let text = "[record]\nlabel = ['team=db', 'env=test']\nquiet = true\nring-mib = 4\n\
                [query]\nformat = 'csv'\n";
    let home = home(&scratch, text);
    assert!(
        run(&home, &["record", "-o", "a.fathom", "--", "true"])
            .status
            .success()
    );
    let labels = &meta(&home.join("a.fathom"))["labels"];
    assert_eq!(labels, &serde_json::json!({ "env": "test", "team": "db" }));
    let given = [
        "record", "--label", "env=live", "-o", "b.fathom", "--", "true",
    ];
    assert!(run(&home, &given).status.success());
    let labels = &meta(&home.join("b.fathom"))["labels"];
    assert_eq!(labels, &serde_json::json!({ "env": "live" }));

    let answer = |more: &[&str]| {
        let args = [&["query", "a.fathom", "SELECT 1 AS n"], more].concat();
        String::from_utf8(run(&home, &args).stdout).unwrap()
    };
    assert_eq!(answer(&[]), "n\n1\n");
    assert!(answer(&["--format", "json"]).contains("\"n\""));
    // Commands without a table are as ever.
    assert!(run(&home, &["report", "a.fathom"]).status.success());
}

#[test]
fn a_file_that_is_wrong_or_not_trusted_is_an_error() {
    let scratch = Scratch::new();
    let said = |home: &Path| {
        let output = run(home, &["sessions", "."]);
        let text = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), text)
    };
    for (text, part) in [
        ("[recrod]\n", "recrod is not a command"),
        ("[sessions]\nno-such = 1\n", "no-such is not an option"),
        (
            "[sessions]\nformat = 'color'\n",
            "config.toml do not fit here",
        ),
        ("[sessions\n", "line 1"),
    ] {
        let (status, text) = said(&home(&scratch, text));
        assert_eq!(status, Some(2), "{text}");
        assert!(
            text.contains(part) && text.contains("config.toml"),
            "{text}"
        );
    }
    let home = home(&scratch, "[sessions]\nformat = 'json'\n");
    assert_eq!(said(&home).0, Some(0));
    fs::set_permissions(home.join("fathom"), Permissions::from_mode(0o777)).unwrap();
    let (status, text) = said(&home);
    assert_eq!(status, Some(2));
    assert!(text.contains("other users can write it"), "{text}");
    let none = Command::new(fathom())
        .args(["sessions", "."])
        .env("XDG_CONFIG_HOME", &home)
        .env("FATHOM_CONFIG", "none")
        .output()
        .unwrap();
    assert!(none.status.success());
}
