//! Sessions belong to whoever made them, from the first moment and for good: what another user
//! has put in their way is neither followed nor waited for.

use std::fs::{self, Permissions};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use fathom_tests::environment::{fathom, must_run};
use fathom_tests::page::Page;
use fathom_tests::session::query;
use fathom_tests::{Record, Scratch, need_program, need_root};

/// The attacker, and the user who calls sudo.
const NOBODY: u32 = 65534;
/// What waits for a pipe waits for ever; what is slow has ended by then.
const PATIENCE: Duration = Duration::from_secs(120);

/// A log of a few calls, from which sessions are made without any right.
const LOG: &str = "\
7 1700000000.000001 openat(AT_FDCWD</>, \"/data/a\", O_RDWR|O_CREAT, 0644) = 3</data/a> <0.000002>
7 1700000000.000002 write(3</data/a>, \"\"..., 10) = 10 <0.000002>
7 1700000000.000003 close(3</data/a>) = 0 <0.000002>
7 1700000000.000004 +++ exited with 0 +++
";

/// fathom as root itself, not by sudo.
fn plain() -> Command {
    let mut command = Command::new(fathom());
    command
        .env_remove("SUDO_UID")
        .env_remove("SUDO_GID")
        .stdin(Stdio::null());
    command
}

/// fathom as root by sudo, which nobody called.
fn by_sudo() -> Command {
    let mut command = plain();
    command
        .env("SUDO_UID", NOBODY.to_string())
        .env("SUDO_GID", NOBODY.to_string());
    command
}

/// A copy of fathom that every user can run, wherever the other was built.
fn for_every_user(scratch: &Scratch) -> PathBuf {
    let dir = scratch.root().join("bin");
    fs::create_dir(&dir).unwrap();
    let beside = fathom();
    let beside = beside.parent().unwrap();
    // Where the program looks for DuckDB's library; one without it finds none.
    let library = "libduckdb.so";
    let libraries = [".", "../lib", "../../.deps/duckdb"].map(|at| beside.join(at).join(library));
    for (from, name) in [
        (Some(fathom()), "fathom"),
        (libraries.into_iter().find(|l| l.exists()), library),
    ] {
        let Some(from) = from else { continue };
        let to = dir.join(name);
        fs::copy(from, &to).unwrap();
        fs::set_permissions(&to, Permissions::from_mode(0o755)).unwrap();
    }
    dir.join("fathom")
}

/// Runs it to its end, which must come.
fn ended(command: &mut Command) -> Output {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipes = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let reader = std::thread::spawn(move || {
        let mut texts = (Vec::new(), Vec::new());
        pipes.0.read_to_end(&mut texts.0).unwrap();
        pipes.1.read_to_end(&mut texts.1).unwrap();
        texts
    });
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if start.elapsed() > PATIENCE {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("{command:?} does not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let (stdout, stderr) = reader.join().unwrap();
    Output {
        status,
        stdout,
        stderr,
    }
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[track_caller]
fn must(output: Output) -> String {
    assert!(output.status.success(), "{}", errors(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[track_caller]
fn must_refuse(output: &Output, because: &str) {
    let text = errors(output);
    assert!(matches!(output.status.code(), Some(2 | 125)), "{output:?}");
    assert!(text.contains(because), "{text}");
}

/// A directory where every user can put something, as /tmp.
fn public(scratch: &Scratch) -> PathBuf {
    let dir = scratch.root().join("public");
    fs::create_dir(&dir).unwrap();
    fs::set_permissions(&dir, Permissions::from_mode(0o1777)).unwrap();
    dir
}

fn log(scratch: &Scratch) -> PathBuf {
    let log = scratch.root().join("strace.log");
    fs::write(&log, LOG).unwrap();
    log
}

/// A session of a few calls; `import` is fathom as whoever is to own it.
fn imported(scratch: &Scratch, mut import: Command, session: &Path) {
    let log = log(scratch);
    must(ended(import.arg("import").arg(log).arg("-o").arg(session)));
}

/// A file, or a directory with everything in it.
fn tree(dir: &Path) -> Vec<PathBuf> {
    let mut all = vec![dir.to_owned()];
    if !dir.symlink_metadata().unwrap().is_dir() {
        return all;
    }
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        all.extend(tree(&path));
    }
    all
}

/// Checks owner and modes of a session.
#[track_caller]
fn must_be(dir: &Path, uid: u32, dir_mode: u32, file_mode: u32) {
    for path in tree(dir) {
        let is = path.symlink_metadata().unwrap();
        let mode = if is.is_dir() { dir_mode } else { file_mode };
        let shown = path.display();
        assert_eq!(is.uid(), uid, "{shown}");
        assert_eq!(is.mode() & 0o7777, mode, "{shown}: {:o}", is.mode());
    }
}

fn chown_all(dir: &Path, uid: u32) {
    for path in tree(dir) {
        chown(&path, Some(uid), Some(uid)).unwrap();
    }
}

fn fifo(path: &Path) {
    must_run("mkfifo", ["-m".as_ref(), "666".as_ref(), path.as_os_str()]);
}

#[test]
fn a_directory_that_another_user_has_made_is_no_place_for_a_session() {
    need_root!();
    let scratch = Scratch::new();
    let public = public(&scratch);
    let log = log(&scratch);
    let raw = scratch.root().join("capture.raw");
    let recorded = scratch.session("own");
    must(ended(
        plain()
            .args(["record", "-q", "-o"])
            .arg(&recorded)
            .arg("--raw")
            .arg(&raw)
            .args(["--", "true"]),
    ));
    for (owner, mode, because) in [
        (NOBODY, 0o777, "belongs to user 65534"),
        (NOBODY, 0o700, "belongs to user 65534"),
        (0, 0o777, "other users can write"),
        (0, 0o1777, "other users can write"),
    ] {
        let planted = public.join("planted.fathom");
        fs::create_dir(&planted).unwrap();
        fs::set_permissions(&planted, Permissions::from_mode(mode)).unwrap();
        chown(&planted, Some(owner), Some(owner)).unwrap();
        let touched = scratch.work().join("touched");
        let record = ended(
            plain()
                .args(["record", "-o"])
                .arg(&planted)
                .args(["--", "touch"])
                .arg(&touched),
        );
        must_refuse(&record, because);
        assert!(!touched.exists(), "the command ran");
        must_refuse(
            &ended(plain().arg("import").arg(&log).arg("-o").arg(&planted)),
            because,
        );
        must_refuse(
            &ended(plain().arg("replay").arg(&raw).arg("-o").arg(&planted)),
            because,
        );
        assert_eq!(fs::read_dir(&planted).unwrap().count(), 0);
        fs::remove_dir(&planted).unwrap();
    }
}

#[test]
fn a_link_is_no_place_for_a_session() {
    let scratch = Scratch::new();
    let log = log(&scratch);
    let real = scratch.session("real");
    imported(&scratch, plain(), &real);
    let before = fs::read(real.join("session.json")).unwrap();
    let link = scratch.session("link");
    symlink(&real, &link).unwrap();
    let mut slash = link.clone().into_os_string();
    slash.push("/");
    for name in [link.as_os_str(), &slash] {
        let refused = ended(
            plain()
                .arg("import")
                .arg(&log)
                .arg("-o")
                .arg(name)
                .arg("--force"),
        );
        must_refuse(&refused, "symbolic link");
    }
    assert_eq!(fs::read(real.join("session.json")).unwrap(), before);
    // To look at it is another thing.
    must(ended(plain().arg("report").arg(&link)));
}

/// Whoever owns the directory can put something else in the place of a folder while it is
/// recorded: here the user who called sudo.
#[test]
fn a_folder_that_is_replaced_while_recording_leads_nowhere() {
    need_root!();
    let scratch = Scratch::new();
    let victim = scratch.root().join("victim");
    fs::create_dir(&victim).unwrap();
    let precious = victim.join("part-00000001.parquet");
    fs::write(&precious, "precious").unwrap();
    let mut running = Record::new(&scratch)
        .env("SUDO_UID", NOBODY.to_string())
        .env("SUDO_GID", NOBODY.to_string())
        .options(["--keep", "1s"])
        .command([
            "sh",
            "-c",
            "echo ready; while read line; do cat /etc/passwd >/dev/null; echo did; done",
        ])
        .interactive()
        .spawn();
    assert_eq!(running.line(), "ready");
    let calls = running.session().join("syscalls");
    let gone = running.session().join("gone");
    running.until("the first calls", || {
        fs::read_dir(&calls).is_ok_and(|parts| parts.count() > 1)
    });
    fs::rename(&calls, &gone).unwrap();
    symlink(&victim, &calls).unwrap();
    let parts = || {
        let names = fs::read_dir(&gone)
            .unwrap()
            .map(|entry| entry.unwrap().file_name());
        names.collect::<std::collections::BTreeSet<_>>()
    };
    let before = parts();
    let mut steps = 0;
    running.say("\n");
    assert_eq!(running.line(), "did");
    running.until("parts in the folder that was made", || {
        steps += 1;
        parts() != before || steps > 1000
    });
    running.say("\n");
    assert_eq!(running.line(), "did");
    let recording = running.wait().must_exit(0);
    assert_eq!(
        fs::read_dir(&victim).unwrap().count(),
        1,
        "{:?}",
        tree(&victim)
    );
    assert_eq!(fs::read(&precious).unwrap(), b"precious");
    assert!(parts() != before);
    // Readers do not go there either.
    let report = ended(plain().arg("report").arg(&recording.session));
    assert!(
        errors(&report).contains("syscalls is no folder"),
        "{}",
        errors(&report)
    );
}

#[test]
fn the_lock_of_another_user_is_neither_followed_nor_made() {
    need_root!();
    let scratch = Scratch::new();
    let victim = scratch.root().join("victim");
    let session = scratch.session("theirs");
    imported(&scratch, plain(), &session);
    fs::remove_file(session.join(".lock")).unwrap();
    symlink(&victim, session.join(".lock")).unwrap();
    chown_all_but_links(&session, NOBODY);
    // What is to be repaired: without it nothing would be written anyway.
    fs::write(session.join("session.json.tmp"), "left").unwrap();
    must_refuse(
        &ended(plain().arg("repair").arg(&session)),
        "belongs to user 65534",
    );
    assert!(!victim.exists());
    assert!(session.join("session.json.tmp").exists());
    // Of the user who called sudo the session is taken, the link is not.
    let repair = ended(by_sudo().arg("repair").arg(&session));
    assert_eq!(repair.status.code(), Some(2), "{repair:?}");
    assert!(!victim.exists());
    assert!(session.join("session.json.tmp").exists());
    // A real one that belongs to somebody else.
    fs::remove_file(session.join(".lock")).unwrap();
    fs::write(session.join(".lock"), "").unwrap();
    chown(session.join(".lock"), Some(1), Some(1)).unwrap();
    must_refuse(
        &ended(by_sudo().arg("repair").arg(&session)),
        "belongs to user 1,",
    );
}

fn chown_all_but_links(dir: &Path, uid: u32) {
    for path in tree(dir) {
        if !path.symlink_metadata().unwrap().is_symlink() {
            chown(&path, Some(uid), Some(uid)).unwrap();
        }
    }
}

/// A signal ends most programs: a session that somebody else has locked sends none.
#[test]
fn a_snapshot_signals_no_process_for_another_user() {
    need_root!();
    need_program!("flock");
    let scratch = Scratch::new();
    let session = scratch.session("theirs");
    imported(&scratch, plain(), &session);
    fs::write(session.join(".lock"), "").unwrap();
    chown_all(&session, NOBODY);
    let mut holder = holding(&session.join(".lock"));
    let refused = ended(plain().arg("snapshot").arg(&session));
    must_refuse(&refused, "user 65534");
    assert!(
        holder.try_wait().unwrap().is_none(),
        "the process was signalled"
    );
    holder.kill().unwrap();
    holder.wait().unwrap();
}

/// A process of nobody's that holds a lock.
fn holding(lock: &Path) -> Child {
    let mut command = Command::new("flock");
    command
        .arg("-n")
        .arg("--no-fork")
        .arg(lock)
        .args(["sleep", "1000"]);
    let child = command.uid(NOBODY).gid(NOBODY).spawn().unwrap();
    let free = || {
        let file = fs::File::open(lock).unwrap();
        file.try_lock_shared().is_ok()
    };
    let start = Instant::now();
    while free() {
        assert!(start.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

#[test]
fn pipes_are_not_waited_for() {
    need_program!("mkfifo");
    let scratch = Scratch::new();
    let root = scratch.root().join("sessions");
    fs::create_dir(&root).unwrap();
    imported(&scratch, plain(), &root.join("good.fathom"));
    for name in [
        "session.json",
        ".lock",
        "findings.json",
        "syscalls.pyramid",
        "syscalls/part-00000000.parquet",
        "syscalls",
    ] {
        let session = root.join(format!("{}.fathom", name.replace('/', "-")));
        imported(&scratch, plain(), &session);
        let path = session.join(name);
        match path.is_dir() {
            true => fs::remove_dir_all(&path).unwrap(),
            false => drop(fs::remove_file(&path)),
        }
        fifo(&path);
        for command in ["report", "diagnose", "repair"] {
            ended(plain().arg(command).arg(&session));
        }
        // It lies there still, or was moved aside.
        if !path.exists() {
            fifo(&path);
        }
        ended(plain().arg("zoom").arg(&session).arg("--rebuild"));
        ended(
            plain()
                .arg("query")
                .arg(&session)
                .arg("SELECT count(*) FROM syscalls"),
        );
        let log = scratch.root().join("strace.log");
        ended(
            plain()
                .arg("import")
                .arg(&log)
                .arg("-o")
                .arg(&session)
                .arg("--force"),
        );
        if !path.exists() {
            fifo(&path);
        }
    }
    let page = Page::serve(&root);
    let list = page.json("/sessions");
    let listed = list.as_array().unwrap();
    assert!(listed.len() >= 6, "{list}");
    let good = listed.iter().find(|s| s["id"] == "good.fathom").unwrap();
    assert_eq!(good["stored"], 3, "{good}");
    let broken = listed
        .iter()
        .find(|s| s["id"] == "session.json.fathom")
        .unwrap();
    assert!(
        broken["error"].is_object() || broken["stored"] == 3,
        "{broken}"
    );
}

/// At no moment may another user open what is made: by the calls with which it is made.
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

#[test]
fn an_export_replaces_a_link_and_goes_into_no_pipe_of_another_user() {
    let scratch = Scratch::new();
    let session = scratch.session("session");
    imported(&scratch, plain(), &session);
    let victim = scratch.root().join("victim");
    fs::write(&victim, "kept").unwrap();
    let out = scratch.root().join("out.csv");
    symlink(&victim, &out).unwrap();
    let export = |to: &Path| {
        let mut command = plain();
        command
            .args(["export", "--format", "csv", "-o"])
            .arg(to)
            .arg(&session);
        command
    };
    must(ended(&mut export(&out)));
    assert_eq!(fs::read(&victim).unwrap(), b"kept");
    let made = out.symlink_metadata().unwrap();
    assert!(made.is_file() && made.len() > 0);
    assert_eq!(made.mode() & 0o7777, 0o600);
    assert_eq!(
        fs::read_dir(scratch.root())
            .unwrap()
            .filter(|e| e
                .as_ref()
                .unwrap()
                .file_name()
                .as_bytes()
                .ends_with(b".tmp"))
            .count(),
        0
    );
    let whole = fs::read(&out).unwrap();
    let mut standard = export(Path::new("/dev/stdout"));
    assert_eq!(ended(&mut standard).stdout, whole);
    if !fathom_tests::is_root() {
        return;
    }
    let pipe = scratch.root().join("pipe");
    fifo(&pipe);
    chown(&pipe, Some(NOBODY), Some(NOBODY)).unwrap();
    must_refuse(&ended(&mut export(&pipe)), "belongs to user 65534");
    let link = scratch.root().join("link-to-pipe");
    symlink("/dev/null", &link).unwrap();
    std::os::unix::fs::lchown(&link, Some(NOBODY), Some(NOBODY)).unwrap();
    must_refuse(&ended(&mut export(&link)), "belongs to user 65534");
}

/// DuckDB takes paths as patterns of text.
#[test]
fn sessions_have_any_name() {
    use std::ffi::OsStr;

    let scratch = Scratch::new();
    let root = scratch.root().join("sessions");
    fs::create_dir(&root).unwrap();
    // What the patterns would find.
    let other = root.join("z.fathom");
    let longer = format!(
        "{LOG}{}",
        LOG.replace("+++ exited with 0 +++\n", "close(9) = 0\n")
    );
    let others = scratch.root().join("other.log");
    fs::write(&others, longer).unwrap();
    must(ended(
        plain().arg("import").arg(&others).arg("-o").arg(&other),
    ));
    let names: [&[u8]; 9] = [
        b"[z].fathom",
        b"?.fathom",
        b"*.fathom",
        b"[a-z]*.fathom",
        b"a\\b.fathom",
        b"\xff\xfe.fathom",
        b"~.fathom",
        b"12:00.fathom",
        b"it's \"new\"\n.fathom",
    ];
    for name in names {
        let name = OsStr::from_bytes(name);
        let session = root.join(name);
        imported(&scratch, plain(), &session);
        // By its name alone, too, as a user in that directory gives it.
        for named in [session.as_os_str(), name] {
            let count = ended(plain().current_dir(&root).arg("query").arg(named).args([
                "SELECT count(*) AS n FROM syscalls",
                "--format",
                "csv",
            ]));
            assert_eq!(must(count), "n\n3\n", "{name:?}");
        }
        for arguments in [
            &["report"][..],
            &["diagnose"],
            &["zoom", "--rebuild"],
            &["zoom", "--events"],
            &["zoom", "--by", "layer"],
            &["repair"],
            &["export", "--format", "csv"],
            &["report", "--sizes"],
        ] {
            let mut command = plain();
            command
                .current_dir(&root)
                .arg(arguments[0])
                .arg(name)
                .args(&arguments[1..]);
            let output = ended(&mut command);
            assert!(
                matches!(output.status.code(), Some(0 | 1)),
                "{name:?} {arguments:?}: {}",
                errors(&output)
            );
        }
        let diff = ended(plain().current_dir(&root).arg("diff").arg(name).arg(name));
        assert_eq!(diff.status.code(), Some(0), "{name:?}: {}", errors(&diff));
    }
    let page = Page::serve(&root);
    let list = page.json("/sessions");
    let listed = list.as_array().unwrap();
    assert_eq!(listed.len(), names.len() + 1, "{list}");
    for session in listed {
        let id = session["id"].as_str().unwrap();
        let escaped: String = id.bytes().map(|b| format!("%{b:02X}")).collect();
        let described = page.json(&format!("/sessions/{escaped}"));
        let stored = if id == "z.fathom" { 7 } else { 3 };
        assert_eq!(described["stored"], stored, "{id}");
    }
}
