//! Disks that fail and disks that cannot be written to.

use std::fs;

use fathom_tests::environment::{fathom, must_run};
use fathom_tests::{Scratch, need_program, need_root};

/// A file system on a device that stops taking writes: the loop device's own disk is smaller
/// than the device claims to be. Mounted in a namespace of its own, which goes with the
/// commands in it. What the commands print is left in files that are named after them.
///
/// The hash of random bytes cannot be compressed: the rows take 4 MB at least, twice as much as the
/// disk has.
const SCRIPT: &str = r#"
    set -e
    cd "$1"
    fathom=$2
    said() { name=$1; shift; set +e; "$@" > "$name.out" 2> "$name.err"; echo $? > "$name.status"; set -e; }
    mkdir disk mounted
    mount -t tmpfs -o size=2m tmpfs disk
    truncate -s 64m disk/image
    mkfs.ext4 -q -m0 -O ^has_journal -E lazy_itable_init=1,nodiscard disk/image
    mount -o loop disk/image mounted
    said record "$fathom" record --durable --layers syscall --content hash -o mounted/s.fathom -- \
        dd if=/dev/urandom of=work/random bs=16 count=500000
    said report "$fathom" report mounted/s.fathom
    cp -a mounted/s.fathom copy.fathom
    said repair "$fathom" repair copy.fathom
    said again "$fathom" report copy.fathom
    umount mounted

    mount --bind copy.fathom mounted
    mount -o remount,ro,bind mounted
    said ro_report "$fathom" report mounted
    said ro_query "$fathom" query mounted "SELECT count(*) AS n FROM syscalls" --format csv
    said ro_zoom "$fathom" zoom mounted --pixels 4 --format csv
    said ro_rebuild "$fathom" zoom mounted --rebuild
    said ro_repair "$fathom" repair mounted
    said ro_record "$fathom" record -o mounted/s.fathom -- touch touched
"#;

#[test]
fn a_failing_disk_and_one_that_cannot_be_written_to() {
    need_root!();
    need_program!("mkfs.ext4", "unshare", "mount");
    let scratch = Scratch::new();
    let root = scratch.root();
    let work = root.join("work");
    if !work.exists() {
        fs::create_dir(&work).unwrap();
    }
    must_run(
        "unshare",
        [
            "-m".as_ref(),
            "sh".as_ref(),
            "-c".as_ref(),
            SCRIPT.as_ref(),
            "sh".as_ref(),
            root.as_os_str(),
            fathom().as_os_str(),
        ],
    );
    let read = |name: &str| fs::read_to_string(root.join(name)).unwrap();
    let status = |name: &str| read(&format!("{name}.status")).trim().to_owned();
    let errors = |name: &str| read(&format!("{name}.err"));

    // The program did all it wanted to, fathom says what became of the recording.
    assert_eq!(
        fs::metadata(work.join("random")).unwrap().len(),
        500_000 * 16
    );
    assert_eq!(status("record"), "125", "{}", errors("record"));
    let said = errors("record");
    let reasons = [
        "No space left",
        "Input/output error",
        "Read-only file system",
    ];
    assert!(
        reasons.iter().any(|reason| said.contains(reason)) && said.contains("s.fathom"),
        "{said}"
    );
    // What is there can be read, and nobody can overlook that something is missing.
    assert_eq!(status("report"), "0", "{}", errors("report"));
    assert!(
        read("report.out").contains("recorder ended"),
        "{}",
        read("report.out")
    );
    assert_eq!(status("repair"), "0", "{}", errors("repair"));
    assert_eq!(status("again"), "0", "{}", errors("again"));

    // Reading needs no writing.
    for name in ["ro_report", "ro_query", "ro_zoom"] {
        assert_eq!(status(name), "0", "{name}: {}", errors(name));
    }
    let count = read("ro_query.out");
    let rows = count.lines().nth(1).and_then(|n| n.parse::<u64>().ok());
    assert!(rows.is_some_and(|n| n > 0), "{count}");
    let calls: u64 = read("ro_zoom.out")
        .lines()
        .skip(1)
        .filter_map(|line| line.split(',').nth(1)?.parse::<u64>().ok())
        .sum();
    assert_eq!(Some(calls), rows);
    // What has to write says that it cannot, and to what.
    for (name, expected) in [("ro_rebuild", "2"), ("ro_record", "125")] {
        let said = errors(name);
        assert_eq!(status(name), expected, "{name}: {said}");
        assert!(
            said.contains("mounted") && said.contains("Read-only file system"),
            "{name}: {said}"
        );
    }
    assert!(!root.join("touched").exists(), "the command ran unrecorded");
    // Nothing is left to repair, so that nothing needs writing, or it says why it cannot.
    let said = errors("ro_repair");
    assert!(
        status("ro_repair") == "0" || said.contains("Read-only file system"),
        "{said}"
    );
}
