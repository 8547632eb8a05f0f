//! Sessions belong to whoever made them, from the first moment and for good: what another user
//! has put in their way is neither followed nor waited for.

mod readers;

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
pub(crate) const LOG: &str = "\
7 1700000000.000001 openat(AT_FDCWD</>, \"/data/a\", O_RDWR|O_CREAT, 0644) = 3</data/a> <0.000002>
7 1700000000.000002 write(3</data/a>, \"\"..., 10) = 10 <0.000002>
7 1700000000.000003 close(3</data/a>) = 0 <0.000002>
7 1700000000.000004 +++ exited with 0 +++
";

/// fathom as root itself, not by sudo.
pub(crate) fn plain() -> Command {
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
pub(crate) fn ended(command: &mut Command) -> Output {
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

pub(crate) fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[track_caller]
pub(crate) fn must(output: Output) -> String {
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
pub(crate) fn imported(scratch: &Scratch, mut import: Command, session: &Path) {
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
        errors(&report).contains("syscalls is not a folder"),
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
