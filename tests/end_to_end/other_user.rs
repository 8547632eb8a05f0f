//! `record --user`: the command gets nothing of the user who records it, neither the terminal's
//! input nor the environment.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;

use fathom_tests::environment::{fathom, must_run};
use fathom_tests::{Record, Scratch, need_program, need_root, workload};

/// Where Linux 6.2 and later say whether programs may type into terminals at all.
const LEGACY: &str = "/proc/sys/dev/tty/legacy_tiocsti";

/// Of the tests that change it one runs at a time.
static LEGACY_USED: Mutex<()> = Mutex::new(());

/// Lets programs type into terminals, as all kernels before 6.2 do, until it is dropped.
struct Typing {
    before: Option<String>,
}

impl Typing {
    fn allowed() -> Self {
        // An older kernel has no such file; some do not let it be written.
        let before = fs::read_to_string(LEGACY).ok();
        let _ = fs::write(LEGACY, "1");
        Self { before }
    }
}

impl Drop for Typing {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = fs::write(LEGACY, before);
        }
    }
}

fn quoted(path: &Path) -> String {
    format!("'{}'", path.display())
}

/// Runs `command` on a terminal of its own and returns what it wrote, and behind it what waits to
/// be read there at the end.
fn on_a_terminal(command: &str) -> String {
    let line =
        format!("{command}; echo waiting:; stty -icanon min 0 time 2; head -c 4096; echo :end");
    let mut child = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .env("SHELL", "/bin/sh")
        .env_remove("LD_LIBRARY_PATH")
        // Open to the end: an end of input would be typed, too.
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let input = child.stdin.take();
    let output = child.wait_with_output().unwrap();
    drop(input);
    String::from_utf8_lossy(&output.stdout).replace('\r', "")
}

#[test]
fn the_command_cannot_type_into_the_terminal() {
    need_root!();
    need_program!("script", "setpriv", "stty");
    let _one = LEGACY_USED.lock();
    let _typing = Typing::allowed();
    let typing = workload("typing");
    // Without fathom it can, where the kernel lets programs: else this shows nothing but what
    // the calls return.
    let alone = on_a_terminal(&format!(
        "setpriv --reuid=65534 --clear-groups {}",
        quoted(&typing)
    ));
    let (said, _) = alone.split_once("waiting:").unwrap();
    let ways: Vec<&str> = said
        .lines()
        .filter_map(|line| line.strip_suffix(" typed"))
        .collect();
    if fs::read_to_string(LEGACY).is_ok_and(|value| value.trim() == "1") {
        assert!(ways.contains(&"input") && ways.contains(&"wide"), "{alone}");
    }

    let scratch = Scratch::new();
    let session = scratch.session("session");
    let recorded = on_a_terminal(&format!(
        "{} record -q -o {} --user nobody -- {}",
        quoted(&fathom()),
        quoted(&session),
        quoted(&typing)
    ));
    let (said, waiting) = recorded.split_once("waiting:").unwrap();
    for way in ["input", "/dev/tty", "wide", "console"] {
        assert!(
            said.contains(&format!("{way} EPERM\n")),
            "{way}: {recorded}"
        );
    }
    if cfg!(target_arch = "x86_64") {
        for way in ["i386", "x32"] {
            // A kernel need not have them at all.
            let refused = ["EPERM", "ENOSYS"].map(|why| format!("{way} {why}\n"));
            assert!(
                refused.iter().any(|text| said.contains(text)),
                "{way}: {recorded}"
            );
        }
    }
    assert!(said.contains("size typed\n"), "{recorded}");
    assert!(!waiting.contains("typed-by-the-command"), "{recorded}");
}

/// What is recorded of a program, and what it can do, is as without --user.
#[test]
fn the_command_is_otherwise_as_ever() {
    need_root!();
    need_program!("setpriv");
    let scratch = Scratch::new();
    // A program that becomes root by its setuid bit.
    let id = scratch.work().join("id");
    fs::copy("/usr/bin/id", &id).unwrap();
    fs::set_permissions(&id, Permissions::from_mode(0o4755)).unwrap();
    let line = format!("{} -u; grep NoNewPrivs /proc/self/status", quoted(&id));
    let recording = Record::new(&scratch)
        .options(["--user", "nobody"])
        .command(["sh", "-c", &line])
        .run()
        .must_exit(0);
    let text = recording.text();
    let becomes_root = must_run(
        "setpriv",
        ["--reuid=65534", "--clear-groups", "sh", "-c", &line],
    );
    assert_eq!(text, String::from_utf8_lossy(&becomes_root), "{text}");
    assert!(text.contains("NoNewPrivs:\t0"), "{text}");

    let calls = |name: &str, options: &[&str]| {
        let recording = Record::named(&scratch, name)
            .options(options)
            .command(["cat", "/etc/passwd"])
            .run()
            .must_exit(0);
        recording.complete();
        let sql = "SELECT coalesce(string_agg(syscall || ' ' || coalesce(path, '') || ' ' || ret,
                   chr(10) ORDER BY ts_ns), '') AS calls FROM syscalls WHERE comm = 'cat'
                   AND class IN ('data', 'metadata') AND regexp_matches(path, '^/(etc|usr/lib)/')
                   AND path NOT LIKE '%/locale%'";
        let rows = fathom_tests::session::query(&recording.session, sql);
        rows[0].text("calls").unwrap().to_owned()
    };
    let own = calls("own", &[]);
    assert!(own.contains("openat /etc/passwd"), "{own}");
    assert_eq!(calls("user", &["--user", "nobody"]), own);
}

#[test]
fn the_environment_is_the_users_own() {
    need_root!();
    need_program!("getent");
    let entry = String::from_utf8(must_run("getent", ["passwd", "nobody"])).unwrap();
    let fields: Vec<&str> = entry.trim_end().split(':').collect();
    let scratch = Scratch::new();
    let run = |name: &str, options: &[&str]| {
        let recording = Record::named(&scratch, name)
            .options(options)
            .env("SECRET_TOKEN", "abc")
            .env("HOME", "/root")
            .env("LC_ALL", "C.UTF-8")
            .env("TERM", "vt100")
            .command(["env"])
            .run()
            .must_exit(0);
        let text = recording.text();
        text.lines()
            .filter_map(|line| line.split_once('='))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect::<std::collections::BTreeMap<String, String>>()
    };
    let environment = run("users", &["--user", "nobody"]);
    for (name, value) in [
        ("USER", "nobody"),
        ("LOGNAME", "nobody"),
        ("HOME", fields[5]),
        ("SHELL", fields[6]),
        ("LC_ALL", "C.UTF-8"),
        ("TERM", "vt100"),
    ] {
        assert_eq!(
            environment.get(name).map(String::as_str),
            Some(value),
            "{environment:?}"
        );
    }
    assert!(environment["PATH"].contains("/usr/bin"), "{environment:?}");
    for name in ["SECRET_TOKEN", "TRUTH_DIR"] {
        assert!(!environment.contains_key(name), "{environment:?}");
    }
    let kept = run("kept", &["--user", "nobody", "--preserve-env"]);
    assert_eq!(kept.get("SECRET_TOKEN").map(String::as_str), Some("abc"));
    assert_eq!(kept.get("HOME").map(String::as_str), Some("/root"));
}
