//! Recorders that are killed and disks that are full.

use std::fs::{self, File};
use std::process::Command;

use fathom_tests::environment::{fathom, must_run};
use fathom_tests::page::Page;
use fathom_tests::session::{meta, query, report, try_query};
use fathom_tests::{Record, Recording, Scratch, need_program, need_root, workload};
use rustix::process::Signal;

#[test]
fn a_killed_recorder_leaves_a_readable_session_and_an_unharmed_command() {
    need_root!();
    let scratch = Scratch::new();
    let stop = scratch.root().join("stop");
    let mut running = Record::new(&scratch)
        .env("FATHOM_STOP", &stop)
        .command([
            workload("threads").as_os_str(),
            "busy".as_ref(),
            scratch.work().as_os_str(),
        ])
        .command(["2", "0"])
        .interactive()
        .spawn();
    let session = running.session();
    let calls = "SELECT count(*) AS n FROM syscalls WHERE syscall = 'preadv'";
    let stored = || {
        try_query(&session, calls)
            .ok()
            .and_then(|rows| rows[0].int("n"))
    };
    // Several parts, so that the kill falls between others.
    let mut first = 0;
    running.until("rows in the session", || {
        first = stored().unwrap_or(0);
        first > 0
    });
    running.until("more rows", || stored() > Some(first));
    let before = stored().unwrap();
    running.signal(Signal::KILL);
    let mut output = running.end_after_kill();
    // The command lives on, works and ends as it would have.
    File::create(&stop).unwrap();
    let mut made = 0;
    let mut text = String::new();
    std::io::Read::read_to_string(&mut output, &mut text).unwrap();
    for line in text.lines() {
        made += line.split_once(' ').unwrap().1.parse::<i64>().unwrap();
    }
    assert_eq!(text.lines().count(), 2, "{text}");
    assert_eq!(meta(&session)["state"], "recording");
    let after = query(&session, calls)[0].int("n").unwrap();
    assert!(
        before <= after && after <= made,
        "{before} <= {after} <= {made}"
    );
    let wrong = query(
        &session,
        "SELECT count(*) AS n FROM syscalls WHERE syscall = 'preadv' AND
            (ret IS DISTINCT FROM 4096 OR path IS NULL OR file_id IS NULL)",
    );
    assert_eq!(wrong[0].int("n"), Some(0));
    must_run(fathom(), ["report".as_ref(), session.as_os_str()]);
}

/// The file system is mounted in a namespace of its own, which goes with the
/// commands in it.
#[test]
fn a_full_disk_harms_no_command_and_its_losses_are_counted() {
    need_root!();
    need_program!("mkfs.ext4", "unshare", "mount");
    const CALLS: i64 = 600_000;
    let scratch = Scratch::new();
    let image = scratch.root().join("image");
    File::create(&image).unwrap().set_len(8 << 20).unwrap();
    must_run(
        "mkfs.ext4",
        [
            "-q".as_ref(),
            "-m0".as_ref(),
            "-O^has_journal".as_ref(),
            image.as_os_str(),
        ],
    );
    let mounted = scratch.root().join("mounted");
    fs::create_dir(&mounted).unwrap();
    let file = scratch.work().join("file");
    let script = r#"
        set -e
        mount -o loop "$1" "$2"
        # All but half a megabyte is taken.
        free=$(stat -f -c '%a * %S' "$2")
        dd if=/dev/zero of="$2/taken" bs=64k count=$(( ($free - 524288) / 65536 )) 2>/dev/null
        set +e
        echo | "$3" record -o "$2/session.fathom" -- "$4" "$5" "$6" > "$7/out" 2> "$7/err"
        echo $? > "$7/status"
        set -e
        rm "$2/taken"
        cp -a "$2/session.fathom" "$7/"
        umount "$2"
    "#;
    let arguments = [
        "-m".into(),
        "sh".into(),
        "-c".into(),
        script.into(),
        "sh".into(),
        image.into_os_string(),
        mounted.into_os_string(),
        fathom().into_os_string(),
        workload("flood").into_os_string(),
        file.into_os_string(),
        CALLS.to_string().into(),
        scratch.root().as_os_str().to_owned(),
    ];
    must_run("unshare", arguments);
    let read = |name: &str| fs::read_to_string(scratch.root().join(name)).unwrap();
    let (out, errors) = (read("out"), read("err"));
    assert_eq!(out, "ready\ndone\n", "{errors}");
    assert_eq!(read("status").trim(), "0", "{errors}");
    assert!(
        errors.contains("space"),
        "nothing is said of the full disk:\n{errors}"
    );
    let recording = Recording {
        session: scratch.session("session"),
        status: Default::default(),
        stdout: out.into_bytes(),
        stderr: errors,
    };
    let totals = recording.balanced();
    assert!(
        totals.lost > 0,
        "the disk had room for all: make it smaller: {totals:?}"
    );
    let stored = recording.number("SELECT count(*) FROM syscalls WHERE syscall = 'preadv'");
    let lost = recording
        .number("SELECT coalesce(sum(count), 0)::BIGINT FROM losses WHERE syscall = 'preadv'");
    assert_eq!(stored + lost, CALLS);
    assert!(
        recording.number("SELECT count(*) FROM losses WHERE stage = 'write' AND count > 0") > 0,
        "{:?}",
        recording.rows("SELECT stage, syscall, count FROM losses")
    );
}

/// What is left can be read, and nobody can overlook that something is missing.
#[test]
fn a_damaged_part_is_named() {
    need_root!();
    let scratch = Scratch::new();
    let recording = Record::new(&scratch).command(["true"]).run().must_exit(0);
    let parts = fathom_tests::parts::files(&recording.session, "syscalls");
    let part = parts.first().expect("a part");
    fs::write(part, "not Parquet").unwrap();
    let output = Command::new(fathom())
        .arg("query")
        .arg(&recording.session)
        .arg("SELECT count(*) FROM files")
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let name = part.file_name().unwrap().to_string_lossy().into_owned();
    assert!(errors.contains(&name), "{name} is not named:\n{errors}");
    let report = report(&recording.session);
    assert_eq!(report["loss"]["balanced"], false, "{report}");
    assert!(report["problems"].to_string().contains(&name), "{report}");
}

/// The page shows sums before all rows were compared with their checksums; no row is shown before.
#[test]
fn the_page_shows_no_damaged_row() {
    need_root!();
    let scratch = Scratch::new();
    let recording = Record::new(&scratch).command(["true"]).run().must_exit(0);
    let id = recording.session.file_name().unwrap().to_string_lossy();
    let path = |rest: &str| format!("/sessions/{id}{rest}");
    let rows = |page: &Page| page.table(&path("/events?limit=10")).rows.len();
    let page = Page::serve(recording.session.parent().unwrap());
    assert!(rows(&page) > 0);
    let about = page.json(&path("?checked=1"));
    assert_eq!(about["checked"], true, "{about}");
    assert_eq!(
        about["problems"].as_array().map(Vec::len),
        Some(0),
        "{about}"
    );
    drop(page);
    for part in fathom_tests::parts::files(&recording.session, "syscalls") {
        let mut bytes = fs::read(&part).unwrap();
        // Behind the magic number: of the rows.
        bytes[40] ^= 1;
        fs::write(&part, bytes).unwrap();
    }
    let page = Page::serve(recording.session.parent().unwrap());
    page.json(&path(""));
    assert_eq!(rows(&page), 0);
    let about = page.json(&path("?checked=1"));
    assert!(
        about["problems"]
            .to_string()
            .contains("its checksum is another"),
        "{about}"
    );
    assert_eq!(about["checked"], true, "{about}");
}
