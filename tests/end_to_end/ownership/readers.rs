//! Who may read a session, and who owns it: from the first file to the last copy.

use super::*;

#[test]
fn nothing_is_made_for_other_users() {
    need_root!();
    need_program!("strace");
    let scratch = Scratch::new();
    let trace = scratch.root().join("trace");
    let session = scratch.session("session");
    let raw = scratch.root().join("session.raw");
    let mut command = Command::new("sh");
    command
        .args([
            "-c",
            "umask 0; exec \"$@\"",
            "sh",
            "strace",
            "-f",
            "-s",
            "300",
            "-o",
        ])
        .arg(&trace)
        .args([
            "-e",
            "trace=open,openat,openat2,creat,mkdir,mkdirat,chmod,fchmod,fchmodat,linkat,link",
        ])
        .arg(fathom())
        .args(["record", "--content", "plain", "-o"])
        .arg(&session)
        .arg("--raw")
        .arg(&raw)
        .args(["--", "cat", "/etc/passwd"])
        .env_remove("SUDO_UID")
        .env_remove("LD_LIBRARY_PATH");
    must(ended(&mut command));
    must_be(&session, 0, 0o700, 0o600);
    must_be(&raw, 0, 0o700, 0o600);
    let text = fs::read_to_string(&trace).unwrap();
    let mut made = 0;
    for line in text.lines().filter(|line| !line.contains(" = -1 ")) {
        let mode = if line.contains("O_CREAT") {
            "0600"
        } else if line.contains("mkdirat(") {
            "0700"
        } else {
            assert!(!line.contains("chmod"), "{line}");
            continue;
        };
        made += 1;
        // A call that another thread interrupts ends in another line.
        let call = line.split_once(" <unfinished").map(|(call, _)| call);
        let call = call.or(line.rsplit_once(')').map(|(call, _)| call));
        assert!(call.unwrap().ends_with(&format!(", {mode}")), "{line}");
    }
    // The session, the capture, folders, parts.
    assert!(made > 40, "{made}\n{text}");
}

#[test]
fn under_sudo_everything_is_of_the_user_who_called_it() {
    need_root!();
    let scratch = Scratch::new();
    let program = for_every_user(&scratch);
    let nobodys = || {
        let mut command = Command::new(&program);
        command.stdin(Stdio::null()).uid(NOBODY).gid(NOBODY);
        command.env_remove("LD_LIBRARY_PATH");
        command
    };
    let dir = scratch.root().join("home");
    fs::create_dir(&dir).unwrap();
    chown(&dir, Some(NOBODY), Some(NOBODY)).unwrap();
    let session = dir.join("mine.fathom");
    let raw = dir.join("mine.raw");
    let mut record = by_sudo();
    record
        .args(["record", "-q", "-o"])
        .arg(&session)
        .arg("--raw")
        .arg(&raw);
    must(ended(record.args(["--", "cat", "/etc/passwd"])));
    must_be(&session, NOBODY, 0o700, 0o600);
    must_be(&raw, NOBODY, 0o700, 0o600);
    for arguments in [
        &["report"][..],
        &["query", "SELECT count(*) FROM syscalls"],
        &["diagnose"],
        &["zoom", "--rebuild"],
        &["repair"],
        &["export", "--format", "csv"],
    ] {
        let mut command = nobodys();
        command
            .arg(arguments[0])
            .arg(&session)
            .args(&arguments[1..]);
        let output = ended(&mut command);
        assert!(
            matches!(output.status.code(), Some(0 | 1)),
            "{arguments:?}: {}",
            errors(&output)
        );
    }
    let replayed = dir.join("replayed.fathom");
    must(ended(
        nobodys().arg("replay").arg(&raw).arg("-o").arg(&replayed),
    ));
    // Root by sudo works on it, and leaves it the user's.
    fs::write(session.join("session.json.tmp"), "left").unwrap();
    must(ended(by_sudo().arg("repair").arg(&session)));
    must(ended(by_sudo().arg("zoom").arg(&session).arg("--rebuild")));
    let csv = dir.join("out.csv");
    must(ended(
        by_sudo()
            .args(["export", "--format", "csv", "-o"])
            .arg(&csv)
            .arg(&session),
    ));
    let log = log(&scratch);
    let imported = dir.join("imported.fathom");
    must(ended(
        by_sudo().arg("import").arg(&log).arg("-o").arg(&imported),
    ));
    for made in [&session, &csv, &imported] {
        must_be(made, NOBODY, 0o700, 0o600);
    }
    // Root without sudo does not.
    must_refuse(
        &ended(plain().arg("repair").arg(&session)),
        "sudo -u '#65534'",
    );
    must_refuse(
        &ended(plain().arg("zoom").arg(&session).arg("--rebuild")),
        "belongs to user",
    );
    must(ended(plain().arg("report").arg(&session)));
}

/// A copy is for those who may read the recording.
#[test]
fn copies_of_a_recording_are_as_private_as_that() {
    need_root!();
    let scratch = Scratch::new();
    for (name, options, dir_mode, file_mode) in [
        ("private", &[][..], 0o700, 0o600),
        ("shared", &["--share", "all"], 0o755, 0o644),
    ] {
        let mut running = Record::named(&scratch, name)
            .env("SUDO_UID", NOBODY.to_string())
            .env("SUDO_GID", NOBODY.to_string())
            .options(options)
            .options(["--keep", "60s"])
            .command([
                "sh",
                "-c",
                "cat /etc/passwd >/dev/null; echo ready; read line",
            ])
            .interactive()
            .spawn();
        assert_eq!(running.line(), "ready");
        let copy = scratch.session(&format!("{name}-copy"));
        must(ended(
            by_sudo()
                .arg("snapshot")
                .arg(running.session())
                .arg("-o")
                .arg(&copy),
        ));
        // To another file system.
        let far = tempfile_on("/dev/shm");
        let beside = far.path().join("copy.fathom");
        must(ended(
            by_sudo()
                .arg("snapshot")
                .arg(running.session())
                .arg("-o")
                .arg(&beside),
        ));
        running.say("\n");
        let recording = running.wait().must_exit(0);
        for session in [&recording.session, &copy, &beside] {
            must_be(session, NOBODY, dir_mode, file_mode);
            let reads = query(
                session,
                "SELECT count(*) AS n FROM syscalls WHERE path = '/etc/passwd'",
            );
            assert!(reads[0].int("n") > Some(0), "{}", session.display());
        }
    }
}

fn tempfile_on(dir: &str) -> tempfile::TempDir {
    let root = if Path::new(dir).is_dir() {
        dir.into()
    } else {
        std::env::temp_dir()
    };
    tempfile::Builder::new()
        .prefix("fathom-test-")
        .tempdir_in(root)
        .unwrap()
}

#[test]
fn sessions_are_shared_when_that_is_asked_for() {
    let scratch = Scratch::new();
    let log = log(&scratch);
    let me = rustix::process::geteuid().as_raw();
    let import = |name: &str, share: &[&str]| {
        let session = scratch.session(name);
        let mut command = plain();
        command
            .arg("import")
            .arg(&log)
            .arg("-o")
            .arg(&session)
            .args(share);
        (session, ended(&mut command))
    };
    let (private, _) = import("private", &[]);
    must_be(&private, me, 0o700, 0o600);
    let (all, _) = import("all", &["--share", "all"]);
    must_be(&all, me, 0o755, 0o644);
    let group = rustix::process::getegid().as_raw();
    let group = if me == 0 { NOBODY } else { group };
    let (shared, output) = import("group", &["--share", &group.to_string()]);
    must(output);
    must_be(&shared, me, 0o750, 0o640);
    assert!(
        tree(&shared)
            .iter()
            .all(|path| path.metadata().unwrap().gid() == group)
    );
    // What is added later is for the same users.
    must(ended(plain().arg("zoom").arg(&shared).arg("--rebuild")));
    must_be(&shared, me, 0o750, 0o640);
    assert!(
        tree(&shared)
            .iter()
            .all(|path| path.metadata().unwrap().gid() == group)
    );
    must_refuse(
        &import("none", &["--share", "no-such-group-here"]).1,
        "no such group",
    );
    // What took the place of one that was shared is not.
    must(ended(
        plain()
            .arg("import")
            .arg(&log)
            .arg("-o")
            .arg(&all)
            .arg("--force"),
    ));
    must_be(&all, me, 0o700, 0o600);
}
